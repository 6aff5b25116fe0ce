/* The candidates of `auto`, and what a stack is made of: a list in order of preference. */
#include "train/bags_judge.h"

/* In order of preference. Every model that a report compares can be chosen. */
static const struct {
    int model, basis;
    bool monotone; /* one more token can only raise the positive class */
} preference[] = {
    {FIN_MODEL_SOFTMAX, FIN_BASIS_BOTH, false},     {FIN_MODEL_MIXTURE, FIN_BASIS_BOTH, false},
    {FIN_MODEL_EMBEDDING, FIN_BASIS_LINEAR, false}, {FIN_MODEL_SOFTMAX, FIN_BASIS_LINEAR, false},
    {FIN_MODEL_MIXTURE, FIN_BASIS_LINEAR, false},   {FIN_MODEL_ANY, FIN_BASIS_BOTH, true},
    {FIN_MODEL_ANY, FIN_BASIS_LINEAR, true},        {FIN_MODEL_MAX, FIN_BASIS_LINEAR, false},
    {FIN_MODEL_MEAN, FIN_BASIS_LINEAR, false},      {FIN_MODEL_BASE, FIN_BASIS_LINEAR, true},
};

/* Models of another basis than the caller's are left out, if he has one. `any` is there for both sides
 * unless one is given. */
int fin_fit_candidates(const fin_fit_settings *base, int64_t classes, fin_fit_settings *models,
                       int room)
{
    int count = 0;
    for (size_t k = 0; k < sizeof preference / sizeof *preference; k++) {
        fin_fit_settings s = *base;
        bool any = preference[k].model == FIN_MODEL_ANY, base_rate = preference[k].model == FIN_MODEL_BASE;
        bool tokens = fini_bag_form_of(preference[k].model) != &fini_bag_mean;
        bool side = fin_is_auto((double)base->positive);
        if (any && classes != 2)
            continue;
        if (base->assume == 1 && !preference[k].monotone)
            continue;
        if (tokens && base->basis != FIN_BASIS_AUTO && base->basis != preference[k].basis)
            continue;
        s.model = preference[k].model;
        s.basis = base_rate ? FIN_BASIS_LINEAR : preference[k].basis;
        for (int p = any && side ? 1 : 0; p >= 0; p--) {
            s.positive = any && side ? p : base->positive;
            if (count < room)
                models[count] = s;
            count++;
        }
    }
    return count;
}

int fini_candidates(const fin_fit_settings *base, int64_t classes, fin_fit_settings *model)
{
    bool several = base->model == FIN_MODEL_AUTO || base->model == FIN_MODEL_STACK;
    int count = several ? fin_fit_candidates(base, classes, NULL, 0) : 1;
    if (!model)
        return count;
    model[0] = *base;
    if (several)
        fin_fit_candidates(base, classes, model, count);
    for (int m = 0; m < count; m++)
        model[m].calibrate = 0;
    return count;
}
