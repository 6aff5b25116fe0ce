/* The candidates of `auto`, and what a stack is made of: a list in order of preference. */
#include "train/bags_judge.h"

#include <string.h>

/* In order of preference. features -1: as given. */
static const struct {
    int model, features;
} preference[] = {
    {FIN_MODEL_STACK, -1},     {FIN_MODEL_SOFTMAX, 2}, {FIN_MODEL_MIXTURE, 2},
    {FIN_MODEL_EMBEDDING, -1}, {FIN_MODEL_SOFTMAX, 0}, {FIN_MODEL_MIXTURE, 0},
    {FIN_MODEL_ANY, 2},
};

/* Models with RBF features are there beside the linear ones, unless the caller wants one kind. */
int fin_fit_candidates(const fin_fit_settings *base, fin_fit_settings *models, int room)
{
    int count = 0;
    for (size_t k = 0; k < sizeof preference / sizeof *preference; k++) {
        fin_fit_settings s = *base;
        s.model = preference[k].model;
        if (s.model == FIN_MODEL_STACK && base->model == FIN_MODEL_STACK)
            continue;
        if (preference[k].features >= 0 && base->features && preference[k].features == 0)
            continue;
        if (preference[k].features >= 0 && !base->features)
            s.features = preference[k].features;
        if (count < room)
            models[count] = s;
        count++;
    }
    return count;
}

int fini_candidates(const fin_fit_settings *base, int64_t classes, fin_fit_settings *model)
{
    fin_fit_settings stack = *base;
    bool several = base->model == FIN_MODEL_AUTO || base->model == FIN_MODEL_STACK;
    stack.model = FIN_MODEL_STACK; /* its candidates: all but itself */
    int count = several ? fin_fit_candidates(&stack, NULL, 0) : 1;
    if (!model)
        return count;
    model[0] = *base;
    if (several)
        fin_fit_candidates(&stack, model, count);
    for (int m = count - 1; m >= 0; m--) {
        model[m].calibrate = 0;                                         /* not by itself */
        if (several && model[m].model == FIN_MODEL_ANY && classes != 2) /* it is for two */
            memmove(&model[m], &model[m + 1], (size_t)(--count - m) * sizeof *model);
    }
    return count;
}
