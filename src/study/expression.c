/* Formulas of columns: a formula (command/formula.h) and what its names are -> a number with its error and its
 * interval. It may be called from any thread and allocates nothing. */
#include "command/formula.h"
#include "study/study.h"

#include <math.h>
#include <string.h>

/* What a formula reads at one row. */
typedef struct bound {
    double value[FINI_NAMES_MOST], error[FINI_NAMES_MOST];
    double low[FINI_NAMES_MOST], high[FINI_NAMES_MOST];
    fin_how how;
    int64_t samples;
    bool any, drawn; /* any: a scalar was seen; settings are exact and of no kind */
} bound;

fini_number fini_number_make(double value, double error, fin_how how, int64_t samples)
{
    fini_number n = {.value = value, .error = error, .how = how, .samples = samples};
    n.drawn = how != FIN_HOW_CLOSED && how != FIN_HOW_QUADRATURE;
    if (how == FIN_HOW_SHARE && samples > 0 && value >= 0 && value <= 1) {
        fini_interval interval = fini_wilson(round(value * (double)samples), samples);
        n.low = interval.low;
        n.high = interval.high;
        if (error == 0)
            n.error = (n.high - n.low) / (2 * FINI_Z95);
        return n;
    }
    /* An exact infinity is no NaN. */
    n.low = error == 0 ? value : value - FINI_Z95 * error;
    n.high = error == 0 ? value : value + FINI_Z95 * error;
    return n;
}

static void bind(bound *b, int i, const fini_number *n, bool kind)
{
    b->value[i] = n->value;
    b->error[i] = n->error;
    b->low[i] = n->low;
    b->high[i] = n->high;
    if (!kind)
        return;
    b->drawn = b->drawn || n->drawn;
    if (!b->any) {
        b->how = n->how;
        b->samples = n->samples;
    } else {
        if (b->how != n->how) /* what a clock has a part in differs from machine to machine */
            b->how = b->how == FIN_HOW_CLOCK || n->how == FIN_HOW_CLOCK ? FIN_HOW_CLOCK
                                                                        : FIN_HOW_DERIVED;
        b->samples = b->samples < n->samples ? b->samples : n->samples;
    }
    b->any = true;
}

/* A name and nothing else: then a share stays a share. */
static bool is_alone(const fini_formula *f)
{
    return f->count == 1 && f->steps[0].code == FINI_OP_NAME;
}

static double at(const fini_formula *f, bound *b, int i, double moved)
{
    double before = b->value[i];
    b->value[i] = moved;
    double value = fini_formula_evaluate(f, b->value, b->error);
    b->value[i] = before;
    return value;
}

/* How far the formula goes down and up while one column goes over its interval. Both are 0 or
 * more, or NaN: a formula that is no number at an end has no interval. */
static void sweep(const fini_formula *f, bound *b, int i, double value, double *down, double *up)
{
    double low = at(f, b, i, b->low[i]) - value, high = at(f, b, i, b->high[i]) - value;
    *down = fini_max_of(0, -fini_min_of(low, high));
    *up = fini_max_of(0, fini_max_of(low, high));
}

/* Every column moved by its error and over its interval, the changes in quadrature. Where the error of one is not
 * known, that of the formula is not. */
static fini_number finish(const fini_formula *f, bound *b)
{
    fini_number number = {
        .how = b->any ? b->how : FIN_HOW_CLOSED, .samples = b->samples, .drawn = b->drawn};
    number.value = fini_formula_evaluate(f, b->value, b->error);
    double sum = 0, below = 0, above = 0;
    int moving = 0, last = 0;
    for (int i = 0; i < f->name_count; i++) {
        if (isnan(b->error[i])) { /* not known: a comparison would not notice */
            number.error = number.low = number.high = NAN;
            return number;
        }
        if (b->error[i] == 0 && b->low[i] == b->high[i])
            continue;
        double change = at(f, b, i, b->value[i] + b->error[i]) - number.value, down, up;
        sweep(f, b, i, number.value, &down, &up);
        sum += change * change;
        below += down * down;
        above += up * up;
        last = i;
        moving++;
    }
    number.error = is_alone(f) ? fabs(b->error[0]) : sqrt(sum); /* the difference would round */
    if (moving == 0) {
        number.low = number.high = number.value; /* infinities, too */
    } else if (moving == 1) {                    /* its ends themselves, without rounding */
        double a = at(f, b, last, b->low[last]), c = at(f, b, last, b->high[last]);
        number.low = fini_min_of(number.value, fini_min_of(a, c));
        number.high = fini_max_of(number.value, fini_max_of(a, c));
    } else {
        number.low = number.value - sqrt(below);
        number.high = number.value + sqrt(above);
    }
    if (number.how == FIN_HOW_SHARE && !is_alone(f))
        number.how = FIN_HOW_DERIVED;
    return number;
}

static fin_status unknown_name(const char *name, const char *const *names, int count,
                               fin_error *err)
{
    const char *near = fin_nearest_name(name, names, count);
    return fini_fail(err, FIN_ERR_ARGUMENT, "no run has a setting or number '%s'%s", name,
                     fini_did_you_mean(near, ""));
}

fin_status fini_formula_frame(const fini_formula *formula, const fini_frame *frame, int64_t row,
                              fini_number *out, fin_error *err)
{
    bound b = {.any = false};
    for (int i = 0; i < formula->name_count; i++) {
        const fini_column *c = fini_frame_column(frame, formula->names[i]);
        if (!c) {
            int count;
            const char *const *names = fini_frame_names(frame, &count);
            FINI_TRY(fini_frame_status(frame, err)); /* it could not be read? */
            return unknown_name(formula->names[i], names, count, err);
        }
        fini_number n = fini_number_make(c->value[row], c->error ? c->error[row] : 0,
                                         c->how ? c->how[row] : FIN_HOW_CLOSED,
                                         c->samples ? c->samples[row] : 0);
        bind(&b, i, &n, c->how != NULL);
    }
    *out = finish(formula, &b);
    return FIN_OK;
}

fin_status fini_formula_values(const fini_formula *formula, const char *const *names,
                               const fini_number *numbers, int count, fini_number *out,
                               fin_error *err)
{
    bound b = {.any = false};
    for (int i = 0; i < formula->name_count; i++) {
        int k = 0;
        while (k < count && strcmp(names[k], formula->names[i]) != 0)
            k++;
        if (k == count)
            return unknown_name(formula->names[i], names, count, err);
        bind(&b, i, &numbers[k], true);
    }
    *out = finish(formula, &b);
    return FIN_OK;
}
