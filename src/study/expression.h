/* A formula as a program for a stack machine: expression_parse.c writes it, expression.c runs it. */
#ifndef FINI_EXPRESSION_H
#define FINI_EXPRESSION_H

#include "study/study.h"

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
    PUSH,  /* number */
    NAME,  /* value of name `index` */
    ERROR, /* error of name `index` */
    NEGATE,
    ADD,
    SUBTRACT,
    MULTIPLY,
    DIVIDE,
    POWER,
    LESS,
    LESS_EQUAL,
    GREATER,
    GREATER_EQUAL,
    EQUAL,
    NOT_EQUAL,
    CALL_ONE, /* function `index` */
    CALL_TWO
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
