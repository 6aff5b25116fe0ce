/* Formulas of columns: a program for a stack machine -> a number with its error.
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
    fin_how how;
    int64_t samples;
    bool any; /* a scalar was seen; settings are exact and of no kind */
} bound;

/* A share without an error of its own has that of its interval. */
static double error_of(const fini_number *n)
{
    if (n->how != FIN_HOW_SHARE || n->error != 0 || n->samples <= 0)
        return n->error;
    fini_interval interval = fini_wilson(n->value * (double)n->samples, n->samples);
    return (interval.high - interval.low) / (2 * 1.96);
}

static void bind(bound *b, int i, const fini_number *n, bool kind, bool alone)
{
    b->value[i] = n->value;
    b->error[i] = alone ? n->error : error_of(n);
    if (!kind)
        return;
    if (!b->any) {
        b->how = n->how;
        b->samples = n->samples;
    } else {
        if (b->how != n->how)
            b->how = FIN_HOW_DERIVED;
        b->samples = b->samples < n->samples ? b->samples : n->samples;
    }
    b->any = true;
}

/* A name and nothing else: then a share stays a share. */
static bool is_alone(const fini_formula *f)
{
    return f->count == 1 && f->steps[0].code == NAME;
}

/* Every column moved by its error, the changes in quadrature. */
static fini_number finish(const fini_formula *f, bound *b)
{
    fini_number number = {.how = b->any ? b->how : FIN_HOW_CLOSED, .samples = b->samples};
    number.value = evaluate(f, b->value, b->error);
    double sum = 0;
    for (int i = 0; i < f->name_count; i++) {
        if (b->error[i] == 0)
            continue;
        double before = b->value[i];
        b->value[i] = before + b->error[i];
        double change = evaluate(f, b->value, b->error) - number.value;
        b->value[i] = before;
        sum += change * change;
    }
    number.error = is_alone(f) ? fabs(b->error[0]) : sqrt(sum); /* the difference would round */
    if (number.how == FIN_HOW_SHARE && !is_alone(f))
        number.how = FIN_HOW_DERIVED;
    return number;
}

static fin_status unknown_name(const char *name, const char *const *names, int count,
                               fin_error *err)
{
    const char *near = fin_nearest_name(name, names, count);
    return fini_fail(err, FIN_ERR_ARGUMENT, "no run has a setting or number '%s'%s%s%s", name,
                     near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
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
        fini_number n = {.value = c->value[row],
                         .error = c->error ? c->error[row] : 0,
                         .how = c->how ? c->how[row] : FIN_HOW_CLOSED,
                         .samples = c->samples ? c->samples[row] : 0};
        bind(&b, i, &n, c->how != NULL, is_alone(formula));
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
        bind(&b, i, &numbers[k], true, is_alone(formula));
    }
    *out = finish(formula, &b);
    return FIN_OK;
}
