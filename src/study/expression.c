/* Formulas of columns: a program for a stack machine -> a number with its error and its interval.
 *
 * It may be called from any thread, allocates nothing, and needs no checks, because the parser
 * (expression_parse.c) has bounded the program. */
#include "study/expression.h"

#include <math.h>
#include <string.h>

/* ---- functions and operators ----------------------------------------------------------------- */

static double f_sign(double x)
{
    return x != x ? x : (double)((x > 0) - (x < 0));
}

/* Unlike fmin and fmax: a NaN stays one, because a number that is not there must not hide. */
static double f_min(double a, double b)
{
    return a != a || b != b ? NAN : fmin(a, b);
}

static double f_max(double a, double b)
{
    return a != a || b != b ? NAN : fmax(a, b);
}

/*   name   arguments, one of the two functions */
#define FUNCTION_LIST(F)                                                                           \
    F("sqrt", 1, sqrt, NULL)                                                                       \
    F("abs", 1, fabs, NULL)                                                                        \
    F("exp", 1, exp, NULL)                                                                         \
    F("log", 1, log, NULL)                                                                         \
    F("log10", 1, log10, NULL)                                                                     \
    F("log2", 1, log2, NULL)                                                                       \
    F("erf", 1, erf, NULL)                                                                         \
    F("floor", 1, floor, NULL)                                                                     \
    F("round", 1, round, NULL)                                                                     \
    F("sign", 1, f_sign, NULL)                                                                     \
    F("min", 2, NULL, f_min)                                                                       \
    F("max", 2, NULL, f_max)

static const fini_function functions[] = {
#define FUNCTION_ROW(name, arguments, one, two) {name, arguments, one, two},
    FUNCTION_LIST(FUNCTION_ROW)
#undef FUNCTION_ROW
};

const fini_function *fini_function_at(int i)
{
    return i < (int)(sizeof functions / sizeof *functions) ? &functions[i] : NULL;
}

/* ---- evaluation ------------------------------------------------------------------------------ */

static double combine(fini_opcode code, double a, double b)
{
    switch (code) {
    case ADD:
        return a + b;
    case SUBTRACT:
        return a - b;
    case MULTIPLY:
        return a * b;
    case DIVIDE:
        return a / b;
    case POWER: /* pow(NaN, 0) = 1 would hide a number that is not there */
        return a != a || b != b ? NAN : pow(a, b);
    default:
        break;
    }
    if (a != a || b != b) /* a comparison with NaN is no answer */
        return NAN;
    switch (code) {
    case LESS:
        return a < b;
    case LESS_EQUAL:
        return a <= b;
    case GREATER:
        return a > b;
    case GREATER_EQUAL:
        return a >= b;
    case EQUAL:
        return a == b;
    default:
        return a != b;
    }
}

static double evaluate(const fini_formula *f, const double *values, const double *errors)
{
    double stack[FINI_STACK_MOST + 1];
    int top = 0; /* numbers on the stack */
    for (int i = 0; i < f->count; i++) {
        const fini_step *s = &f->steps[i];
        switch (s->code) {
        case PUSH:
            stack[top++] = s->number;
            break;
        case NAME:
            stack[top++] = values[s->index];
            break;
        case ERROR:
            stack[top++] = errors[s->index];
            break;
        case NEGATE:
            stack[top - 1] = -stack[top - 1];
            break;
        case CALL_ONE:
            stack[top - 1] = functions[s->index].one(stack[top - 1]);
            break;
        case CALL_TWO:
            top--;
            stack[top - 1] = functions[s->index].two(stack[top - 1], stack[top]);
            break;
        default:
            top--;
            stack[top - 1] = combine(s->code, stack[top - 1], stack[top]);
        }
    }
    return stack[0];
}

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
    return f->count == 1 && f->steps[0].code == NAME;
}

static double at(const fini_formula *f, bound *b, int i, double moved)
{
    double before = b->value[i];
    b->value[i] = moved;
    double value = evaluate(f, b->value, b->error);
    b->value[i] = before;
    return value;
}

/* How far the formula goes down and up while one column goes over its interval. Both are 0 or
 * more, or NaN: a formula that is no number at an end has no interval. */
static void sweep(const fini_formula *f, bound *b, int i, double value, double *down, double *up)
{
    double low = at(f, b, i, b->low[i]) - value, high = at(f, b, i, b->high[i]) - value;
    *down = f_max(0, -f_min(low, high));
    *up = f_max(0, f_max(low, high));
}

/* Every column moved by its error and over its interval, the changes in quadrature. Where the error of one is not
 * known, that of the formula is not. */
static fini_number finish(const fini_formula *f, bound *b)
{
    fini_number number = {
        .how = b->any ? b->how : FIN_HOW_CLOSED, .samples = b->samples, .drawn = b->drawn};
    number.value = evaluate(f, b->value, b->error);
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
        number.low = f_min(number.value, f_min(a, c));
        number.high = f_max(number.value, f_max(a, c));
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
            fin_status status = fini_frame_status(frame, err); /* it could not be read? */
            return status ? status : unknown_name(formula->names[i], names, count, err);
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
