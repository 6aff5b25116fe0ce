/* The candidates of `auto`, what a stack is made of, and the single models behind any model asked for. */
#include "bags/judge.h"

#include <string.h>

/* In order of preference. Every model that a report compares by itself can be chosen. */
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

static bool is_several(const fin_fit_settings *s)
{
    return s->model == FIN_MODEL_AUTO || s->model == FIN_MODEL_STACK;
}

/* Who assumes that models are monotone speaks of a positive class: it is 1 unless he says otherwise. */
fin_fit_settings fini_asked(const fin_fit_settings *settings, bool swapped)
{
    fin_fit_settings asked = *settings;
    if (asked.assume == 1 && fin_is_auto((double)asked.positive))
        asked.positive = 1;
    if (swapped && !fin_is_auto((double)asked.positive))
        asked.positive = 1 - asked.positive;
    return asked;
}

/* Both sides, unless one is given. Returns how many; side may be NULL. */
static int sides_of(const fin_fit_settings *s, int64_t classes, fin_fit_settings *side)
{
    bool both = s->model == FIN_MODEL_ANY && classes == 2 && fin_is_auto((double)s->positive);
    for (int k = 0; k <= both && side; k++) {
        side[k] = *s;
        if (both)
            side[k].positive = 1 - k;
        fini_single(&side[k], classes);
    }
    return 1 + both;
}

/* Models that see tokens through another basis than the caller's are left out, if he has one. */
int fin_fit_candidates(const fin_fit_settings *base, int64_t classes, fin_fit_settings *models,
                       int room)
{
    int count = 0;
    for (size_t k = 0; k < sizeof preference / sizeof *preference; k++) {
        fin_fit_settings s = fini_asked(base, false), side[2];
        bool tokens = fini_bag_form_of(preference[k].model) != &fini_bag_mean;
        s.model = preference[k].model;
        if ((s.model == FIN_MODEL_ANY && classes != 2) ||
            (base->assume == 1 && !preference[k].monotone) ||
            (tokens && base->basis != FIN_BASIS_AUTO && base->basis != preference[k].basis))
            continue;
        s.basis = preference[k].basis;
        for (int i = 0, both = sides_of(&s, classes, side); i < both; i++, count++)
            if (count < room)
                models[count] = side[i];
    }
    return count;
}

void fini_single(fin_fit_settings *s, int64_t classes)
{
    s->basis = s->model == FIN_MODEL_BASE ? FIN_BASIS_LINEAR : fin_fit_basis(s, classes);
    s->calibrate = s->assume = s->locator = 0;
    s->heads = fin_fit_has_heads(s) ? s->heads : 1;
    if (s->model != FIN_MODEL_ANY)
        s->positive = FIN_AUTO_INT;
}

int fini_candidates(const fin_fit_settings *asked, int64_t classes, fin_fit_settings *model,
                    int room)
{
    fin_fit_settings side[2];
    if (is_several(asked))
        return fin_fit_candidates(asked, classes, model, room);
    int count = sides_of(asked, classes, side);
    for (int k = 0; k < count && k < room; k++)
        model[k] = side[k];
    return count;
}

bool fini_same(const fin_fit_settings *a, const fin_fit_settings *b)
{
    for (int i = 0; i < fin_fit_table.count; i++) {
        const fin_field *field = &fin_fit_table.fields[i];
        if (fin_settings_get(field, a) != fin_settings_get(field, b))
            return false;
    }
    return true;
}

int fini_place(fin_fit_settings *list, int *count, const fin_fit_settings *model)
{
    for (int k = 0; k < *count; k++)
        if (fini_same(&list[k], model))
            return k;
    list[*count] = *model;
    return (*count)++;
}
