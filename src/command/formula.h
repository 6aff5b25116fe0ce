/* Formulas, of settings (settings.c) and of columns (study/expression.c): programs for a stack machine, which
 * formula_parse.c writes and formula.c runs. */
#ifndef FINI_FORMULA_H
#define FINI_FORMULA_H

#include "base/base.h"

/* A formula: + - * / ^, brackets, numbers, names, pi, inf; sqrt abs exp log log10 log2
 * erf min(a,b) max(a,b) floor round sign; error(name): the error of a column; comparisons give 0
 * or 1. */
typedef struct fini_formula fini_formula;
fin_status fini_formula_parse(const char *text, fini_formula **out, fin_error *err);
void fini_formula_destroy(fini_formula *formula);
/* The names in it, all different. */
int fini_formula_name_count(const fini_formula *formula);
const char *fini_formula_name(const fini_formula *formula, int i);

/* With values and errors of its names, in their order; errors may be NULL where error() is not in it. */
double fini_formula_evaluate(const fini_formula *formula, const double *values,
                             const double *errors);
/* Unlike fmin and fmax: a NaN stays one, because a number that is not there must not hide. */
double fini_min_of(double a, double b);
double fini_max_of(double a, double b);

/* Bounds that the parser keeps, so that evaluation has nothing to check. */
enum { FINI_STACK_MOST = 64, FINI_NAMES_MOST = 32, FINI_NAME_LENGTH = 64 };

typedef struct fini_function {
    const char *name;
    int arguments; /* 1 or 2, and so one of the two pointers */
    double (*one)(double);
    double (*two)(double, double);
} fini_function;
const fini_function *fini_function_at(int i); /* NULL past the end */

typedef enum fini_opcode {
    FINI_OP_PUSH,  /* number */
    FINI_OP_NAME,  /* value of name `index` */
    FINI_OP_ERROR, /* error of name `index` */
    FINI_OP_NEGATE,
    FINI_OP_ADD,
    FINI_OP_SUBTRACT,
    FINI_OP_MULTIPLY,
    FINI_OP_DIVIDE,
    FINI_OP_POWER,
    FINI_OP_LESS,
    FINI_OP_LESS_EQUAL,
    FINI_OP_GREATER,
    FINI_OP_GREATER_EQUAL,
    FINI_OP_EQUAL,
    FINI_OP_NOT_EQUAL,
    FINI_OP_CALL_ONE, /* function `index` */
    FINI_OP_CALL_TWO
} fini_opcode;

typedef struct fini_step {
    fini_opcode code;
    int index;
    double number;
} fini_step;

struct fini_formula {
    fini_arena arena; /* holds this struct and all below */
    fini_step *steps; /* [count] */
    int count;
    char (*names)[FINI_NAME_LENGTH]; /* [name_count], different */
    int name_count;
};

#endif
