/* Formulas: a program for a stack machine -> a number.
 *
 * It may be called from any thread, allocates nothing, and needs no checks, because the parser
 * (formula_parse.c) has bounded the program. */
#include "command/formula.h"

#include <math.h>

/* ---- functions and operators ----------------------------------------------------------------- */

static double f_sign(double x)
{
    return x != x ? x : (double)((x > 0) - (x < 0));
}

/* Unlike fmin and fmax: a NaN stays one, because a number that is not there must not hide. */
double fini_min_of(double a, double b)
{
    return a != a || b != b ? NAN : fmin(a, b);
}

double fini_max_of(double a, double b)
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
    F("min", 2, NULL, fini_min_of)                                                                 \
    F("max", 2, NULL, fini_max_of)

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
    case FINI_OP_ADD:
        return a + b;
    case FINI_OP_SUBTRACT:
        return a - b;
    case FINI_OP_MULTIPLY:
        return a * b;
    case FINI_OP_DIVIDE:
        return a / b;
    case FINI_OP_POWER: /* pow(NaN, 0) = 1 would hide a number that is not there */
        return a != a || b != b ? NAN : pow(a, b);
    default:
        break;
    }
    if (a != a || b != b) /* a comparison with NaN is no answer */
        return NAN;
    switch (code) {
    case FINI_OP_LESS:
        return a < b;
    case FINI_OP_LESS_EQUAL:
        return a <= b;
    case FINI_OP_GREATER:
        return a > b;
    case FINI_OP_GREATER_EQUAL:
        return a >= b;
    case FINI_OP_EQUAL:
        return a == b;
    default:
        return a != b;
    }
}

double fini_formula_evaluate(const fini_formula *f, const double *values, const double *errors)
{
    double stack[FINI_STACK_MOST + 1];
    int top = 0; /* numbers on the stack */
    for (int i = 0; i < f->count; i++) {
        const fini_step *s = &f->steps[i];
        switch (s->code) {
        case FINI_OP_PUSH:
            stack[top++] = s->number;
            break;
        case FINI_OP_NAME:
            stack[top++] = values[s->index];
            break;
        case FINI_OP_ERROR:
            stack[top++] = errors[s->index];
            break;
        case FINI_OP_NEGATE:
            stack[top - 1] = -stack[top - 1];
            break;
        case FINI_OP_CALL_ONE:
            stack[top - 1] = functions[s->index].one(stack[top - 1]);
            break;
        case FINI_OP_CALL_TWO:
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
