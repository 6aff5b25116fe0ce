/* Settings that are formulas of others: lam = sqrt(snr), L = round(d^0.9).
 *
 * The number is what is kept, so that a run is the same run as with the number typed; like the values of a grid it is
 * rounded to 12 digits, because the last bits of a machine's libm must not make a different run. Names are settings of
 * the command, at their defaults where they are not given, and what stands under `let` (pairs named let.FINI_OP_NAME). */
#include "command/command.h"
#include "command/formula.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WAITING, OPEN, DONE };

typedef struct work {
    const fini_filling *with;
    unsigned char *state; /* [count of pairs] */
    int bad;              /* the pair to blame */
    fin_error *err;
} work;

bool fini_is_let(const char *name)
{
    return strncmp(name, "let.", 4) == 0;
}

/* The last pair that is this setting, or this `let`; -1: none. */
static int pair_of(const fini_filling *with, const char *name, bool let)
{
    int i = with->count - 1;
    for (; i >= 0; i--)
        if (fini_is_let(with->pairs[i].name) == let &&
            fini_same_name(with->pairs[i].name + (let ? 4 : 0), name))
            break;
    return i;
}

static const fin_field *field_of(const fini_filling *with, const char *name, int *group)
{
    const fin_field *field = NULL;
    for (int g = 0; g < with->group_count && !field; g++)
        if ((field = fini_field_find(with->groups[g].table, name)))
            *group = g;
    return field && field->type != FIN_TYPE_choice ? field : NULL;
}

static bool is_known(const fini_filling *with, const char *name)
{
    int group;
    return field_of(with, name, &group) || pair_of(with, name, true) >= 0;
}

/* What is no number may be a formula: it parses, and is not just a word that nobody knows; or its signs say that it
 * was meant to be one. */
bool fini_is_formula(const fini_filling *with, const fin_pair *pair)
{
    int group;
    char *end;
    fini_formula *formula;
    fini_strtod(pair->text, &end);
    if ((end != pair->text && !*end) || !*pair->text || strcmp(pair->text, "auto") == 0 ||
        !field_of(with, pair->name, &group))
        return false;
    bool meant = strpbrk(pair->text, "()^*/");
    if (meant || fini_formula_parse(pair->text, &formula, NULL))
        return meant;
    bool word = formula->count == 1 && formula->steps[0].code == FINI_OP_NAME;
    bool good = !word || is_known(with, formula->names[0]);
    fini_formula_destroy(formula);
    return good;
}

static fin_status refuse(work *w, int i, const char *why)
{
    char text[FINI_SHOWN];
    w->bad = i;
    return fini_fail(w->err, FIN_ERR_ARGUMENT, "%s = '%s': %s", w->with->pairs[i].name,
                     fini_shown(w->with->pairs[i].text, text), why);
}

static fin_status unknown(work *w, int i, const char *name)
{
    enum { NAMES = 512 };
    const fini_filling *with = w->with;
    const char *names[NAMES];
    char why[320];
    int count = 0;
    for (int j = 0; j < with->count && count < NAMES; j++)
        if (fini_is_let(with->pairs[j].name))
            names[count++] = with->pairs[j].name + 4;
    for (int g = 0; g < with->group_count; g++)
        for (int j = 0; j < with->groups[g].table->count && count < NAMES; j++)
            if (with->groups[g].table->fields[j].type != FIN_TYPE_choice)
                names[count++] = with->groups[g].table->fields[j].name;
    snprintf(why, sizeof why, "%s has no setting %.64s that is a number%s", with->command->name,
             name, fini_did_you_mean(fin_nearest_name(name, names, count), ""));
    return refuse(w, i, why);
}

static fin_status work_out(work *w, int i);

/* The number that a name of formula i stands for. */
static fin_status value_of(work *w, int i, const char *name, double *value)
{
    const fini_filling *with = w->with;
    int group = 0, let = pair_of(with, name, true), pair = pair_of(with, name, false);
    const fin_field *field = field_of(with, name, &group);
    char why[160];
    if (let >= 0 && !fini_read_number(with->pairs[let].text, value))
        return refuse(w, let, "what formulas only use must be a number");
    if (let >= 0)
        return FIN_OK;
    if (!field)
        return unknown(w, i, name);
    if (pair >= 0 && w->state[pair] == OPEN) {
        snprintf(why, sizeof why, "it needs %.64s, which needs it: give one of them as a number",
                 pair == i ? "itself" : name);
        return refuse(w, i, why);
    }
    if (pair >= 0 && w->state[pair] == WAITING) {
        FINI_TRY(work_out(w, pair));
    }
    *value = fin_settings_get(field, with->groups[group].values);
    if (!fin_is_auto(*value))
        return FIN_OK;
    snprintf(why, sizeof why, "%.64s is auto, which is worked out later; give it as a number",
             name);
    return refuse(w, i, why);
}

/* Into every table that has such a row. */
static fin_status put(work *w, int i, const fini_formula *formula, double value)
{
    const fini_filling *with = w->with;
    char why[sizeof(w->err->message)], number[FINI_SHORTEST];
    fin_error inner = {FIN_OK, ""};
    if (isnan(value))
        return refuse(w, i, "it is no number (NaN) here");
    if (value != floor(value) && formula->count > 1)
        value = fini_range_tidy(value, -HUGE_VAL, HUGE_VAL);
    for (int g = 0; g < with->group_count; g++) {
        const fin_field *field = fini_field_find(with->groups[g].table, with->pairs[i].name);
        if (field && field->type == FIN_TYPE_int64_t && value != floor(value)) {
            fini_shortest(value, number);
            snprintf(why, sizeof why, "it is %s, but %s is a whole number; round(%.60s) is one",
                     number, field->name, with->pairs[i].text);
            return refuse(w, i, why);
        }
        if (field && fin_settings_set(with->groups[g].table, with->groups[g].values, field,
                                      value + 0.0, &inner))
            return refuse(w, i, inner.message);
    }
    return FIN_OK;
}

static fin_status work_out(work *w, int i)
{
    double values[FINI_NAMES_MOST];
    fini_formula *formula;
    fin_status status = fini_formula_parse(w->with->pairs[i].text, &formula, w->err);
    w->bad = status ? i : w->bad;
    w->state[i] = OPEN;
    for (int k = 0; !status && k < formula->count; k++)
        if (formula->steps[k].code == FINI_OP_ERROR)
            status = refuse(w, i, "a setting has no error()");
    for (int k = 0; !status && k < formula->name_count; k++)
        status = value_of(w, i, formula->names[k], &values[k]);
    if (!status)
        status = put(w, i, formula, fini_formula_evaluate(formula, values, NULL));
    w->state[i] = DONE;
    fini_formula_destroy(formula);
    return status;
}

/* Is pair i a formula, and does it count? */
static bool counts(const fini_filling *with, int i)
{
    return pair_of(with, with->pairs[i].name, false) == i && fini_is_formula(with, &with->pairs[i]);
}

bool fini_has_formulas(const fini_filling *with)
{
    int i = 0;
    while (i < with->count && !counts(with, i))
        i++;
    return i < with->count;
}

fin_status fini_formulas_apply(const fini_filling *with, int *bad, fin_error *err)
{
    work w = {.with = with, .state = fini_alloc((size_t)with->count), .bad = -1, .err = err};
    fin_status status = w.state ? FIN_OK : fini_fail_memory(err, (size_t)with->count, "formulas");
    for (int i = 0; i < with->count && !status; i++)
        w.state[i] = counts(with, i) ? WAITING : DONE;
    for (int i = 0; i < with->count && !status; i++)
        if (w.state[i] == WAITING)
            status = work_out(&w, i);
    *bad = w.bad;
    fini_free(w.state);
    return status;
}
