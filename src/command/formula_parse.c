/* Formulas: text -> a short program for a stack machine.
 *
 *     comparison = sum [("<" | "<=" | ">" | ">=" | "==" | "!=") sum]
 *     sum        = product {("+" | "-") product}
 *     product    = sign {("*" | "/") sign}
 *     sign       = {"-" | "+"} power
 *     power      = atom ["^" sign]                          2^3^2 = 2^(3^2), -2^2 = -4
 *     atom       = number | name | function "(" comparison {"," comparison} ")"
 *                | "error" "(" name ")" | "(" comparison ")"
 *
 * Whoever wrote the text may mean harm: length, depth and the stack are bounded when it is parsed,
 * so that evaluation has nothing to check, allocates nothing and may be called from any thread. */
#include "command/formula.h"

#include "data/data.h"
#include "base/constants.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LENGTH_MOST = 1000, DEPTH_MOST = 50 };

/* ---- parsing --------------------------------------------------------------------------------- */

typedef struct parser {
    const char *text, *at;
    fini_formula *formula;
    int nested, height; /* of brackets and signs; of the stack after the steps so far */
    fin_status status;  /* the first failure counts; what follows it is not kept */
    fin_error *err;
} parser;

static void parse_level(parser *p, int level);

enum { SHOWN = 120, SHOWN_REST = 24 };

static void refuse(parser *p, const char *where, const char *what)
{
    char text[SHOWN], rest[SHOWN_REST];
    if (p->status)
        return;
    fini_printable(p->text, strlen(p->text), text, sizeof text);
    fini_printable(where, strlen(where), rest, sizeof rest);
    p->status =
        fini_fail(p->err, FIN_ERR_FORMAT, "formula '%s': %s at %s%s%s (character %d)", text, what,
                  *where ? "'" : "the end", rest, *where ? "'" : "", (int)(where - p->text) + 1);
}

static void skip_space(parser *p)
{
    p->at += strspn(p->at, " \t\n");
}

/* Takes the word if it comes next. */
static bool accept(parser *p, const char *word)
{
    skip_space(p);
    size_t length = strlen(word);
    if (p->status || strncmp(p->at, word, length) != 0)
        return false;
    p->at += length;
    return true;
}

static void expect(parser *p, const char *word, const char *what)
{
    if (!accept(p, word))
        refuse(p, p->at, what);
}

/* A step that takes `takes` numbers from the stack and leaves one. There are fewer steps than
 * characters, so that the array that was measured by the text suffices. */
static void emit(parser *p, fini_step s, int takes)
{
    p->height += 1 - takes;
    if (p->height > FINI_STACK_MOST)
        refuse(p, p->at, "too many numbers wait for an operator");
    if (!p->status)
        p->formula->steps[p->formula->count++] = s;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void parse_number(parser *p)
{
    const char *start = p->at, *end = start;
    end += strspn(end, "0123456789");
    if (*end == '.')
        end += 1 + strspn(end + 1, "0123456789");
    if (*end == 'e' || *end == 'E') {
        const char *exponent = end + 1 + (end[1] == '+' || end[1] == '-');
        if (is_digit(*exponent))
            end = exponent + strspn(exponent, "0123456789");
    }
    char *stopped;
    double number = fini_strtod(start, &stopped);
    if (stopped != end || is_letter(*end) || *end == '.') /* 0x10, 1.2.3, 3d */
        refuse(p, start, "this is no number, such as 2, 0.5 or 1e-3,");
    p->at = end;
    emit(p, (fini_step){.code = FINI_OP_PUSH, .number = number}, 0);
}

static size_t word_length(const char *start)
{
    size_t length = 0;
    while (is_letter(start[length]) || (length && is_digit(start[length])))
        length++;
    return length;
}

/* The value (or the error) of a column. */
static void emit_name(parser *p, const char *start, size_t length, fini_opcode code)
{
    fini_formula *f = p->formula;
    int index = 0;
    if (length >= FINI_NAME_LENGTH)
        refuse(p, start, "a name is longer than 63 characters");
    while (index < f->name_count &&
           (strlen(f->names[index]) != length || memcmp(f->names[index], start, length) != 0))
        index++;
    if (index == FINI_NAMES_MOST)
        refuse(p, start, "there are more than 32 different names");
    if (!p->status && index == f->name_count) {
        memcpy(f->names[index], start, length);
        f->names[f->name_count++][length] = '\0';
    }
    emit(p, (fini_step){.code = code, .index = index}, 0);
}

static void unknown_function(parser *p, const char *start, size_t length)
{
    enum { MOST = 32 };
    char word[FINI_NAME_LENGTH], text[SHOWN];
    const char *names[MOST] = {"error"};
    int count = 1;
    for (; count < MOST && fini_function_at(count - 1); count++)
        names[count] = fini_function_at(count - 1)->name;
    snprintf(word, sizeof word, "%.*s", (int)(length < 63 ? length : 63), start);
    fini_printable(p->text, strlen(p->text), text, sizeof text);
    p->status = fini_fail(
        p->err, FIN_ERR_FORMAT, "formula '%s': there is no function '%s'%s", text, word,
        fini_did_you_mean(fin_nearest_name(word, names, count),
                          "; there are error, sqrt, abs, exp, log, log10, log2, erf, floor, round, "
                          "sign, min and max"));
}

/* error(name), the name of a column. */
static void parse_error_of(parser *p)
{
    skip_space(p);
    const char *start = p->at;
    size_t length = word_length(start);
    if (!length)
        refuse(p, start, "error() takes the name of a number, which is missing");
    p->at += length;
    emit_name(p, start, length, FINI_OP_ERROR);
    expect(p, ")", "error() takes a name alone: ')' is missing");
}

static void parse_call(parser *p, const char *start, size_t length)
{
    int i = 0;
    const fini_function *f;
    while ((f = fini_function_at(i)) &&
           (strlen(f->name) != length || memcmp(f->name, start, length) != 0))
        i++;
    if (!f) {
        unknown_function(p, start, length);
        return;
    }
    for (int k = 0; k < f->arguments; k++) {
        if (k)
            expect(p, ",", "this function takes two numbers: ',' is missing");
        parse_level(p, 0);
    }
    expect(p, ")", "')' is missing");
    emit(p,
         (fini_step){.code = f->arguments == 1 ? FINI_OP_CALL_ONE : FINI_OP_CALL_TWO, .index = i},
         f->arguments);
}

static void parse_word(parser *p)
{
    const char *start = p->at;
    size_t length = word_length(start);
    p->at += length;
    bool call = accept(p, "(");
    if (call && length == 5 && memcmp(start, "error", 5) == 0)
        parse_error_of(p);
    else if (call)
        parse_call(p, start, length);
    else if (length == 2 && memcmp(start, "pi", 2) == 0)
        emit(p, (fini_step){.code = FINI_OP_PUSH, .number = FINI_PI}, 0);
    else if (length == 3 && memcmp(start, "inf", 3) == 0)
        emit(p, (fini_step){.code = FINI_OP_PUSH, .number = INFINITY}, 0);
    else
        emit_name(p, start, length, FINI_OP_NAME);
}

static void parse_atom(parser *p)
{
    skip_space(p);
    if (is_digit(*p->at) || *p->at == '.') {
        parse_number(p);
    } else if (is_letter(*p->at)) {
        parse_word(p);
    } else {
        expect(p, "(", "a number, a name or '(' is missing");
        parse_level(p, 0);
        expect(p, ")", "')' is missing");
    }
}

static void parse_sign(parser *p)
{
    /* Every way down leads through here: brackets, calls, signs and powers. */
    if (++p->nested > DEPTH_MOST)
        refuse(p, p->at, "it is nested more than 50 deep");
    if (p->status)
        return;
    if (accept(p, "-")) {
        parse_sign(p);
        emit(p, (fini_step){.code = FINI_OP_NEGATE}, 1);
    } else if (accept(p, "+")) {
        parse_sign(p);
    } else {
        parse_atom(p);
        if (accept(p, "^")) {
            parse_sign(p);
            emit(p, (fini_step){.code = FINI_OP_POWER}, 2);
        }
    }
    p->nested--;
}

/* Operators of a level, from the left; of comparisons there is one at most. */
static void parse_level(parser *p, int level)
{
    static const struct {
        const char *word;
        fini_opcode code;
        int level;
    } operators[] = {{"<=", FINI_OP_LESS_EQUAL, 0}, {">=", FINI_OP_GREATER_EQUAL, 0},
                     {"==", FINI_OP_EQUAL, 0},      {"!=", FINI_OP_NOT_EQUAL, 0},
                     {"<", FINI_OP_LESS, 0},        {">", FINI_OP_GREATER, 0},
                     {"+", FINI_OP_ADD, 1},         {"-", FINI_OP_SUBTRACT, 1},
                     {"*", FINI_OP_MULTIPLY, 2},    {"/", FINI_OP_DIVIDE, 2}};
    enum { OPERATORS = sizeof operators / sizeof *operators, HIGHEST = 2 };
    if (level > HIGHEST) {
        parse_sign(p);
        return;
    }
    parse_level(p, level + 1);
    for (int i = 0; i < OPERATORS && !p->status; i++) {
        if (operators[i].level != level || !accept(p, operators[i].word))
            continue;
        parse_level(p, level + 1);
        emit(p, (fini_step){.code = operators[i].code}, 2);
        if (level == 0)
            return;
        i = -1; /* from the beginning again */
    }
}

static void layout(fini_arena *arena, size_t length, fini_formula **formula)
{
    fini_formula *f = fini_take(arena, 1, sizeof *f);
    fini_step *steps = fini_take(arena, (int64_t)length + 1, sizeof *steps);
    int64_t names = (int64_t)length / 2 + 1;
    char(*pool)[FINI_NAME_LENGTH] =
        fini_take(arena, names < FINI_NAMES_MOST ? names : FINI_NAMES_MOST, sizeof *pool);
    if (arena->base) {
        f->steps = steps;
        f->names = pool;
    }
    *formula = f;
}

fin_status fini_formula_parse(const char *text, fini_formula **out, fin_error *err)
{
    *out = NULL;
    size_t length = strlen(text);
    if (length > LENGTH_MOST)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "a formula has %zu characters; at most %d are allowed", length,
                         LENGTH_MOST);
    fini_arena arena = {0};
    fini_formula *formula;
    FINI_LAY_OUT(err, &arena, "a formula", layout(&arena, length, &formula));
    parser p = {.text = text, .at = text, .formula = formula, .err = err};
    parse_level(&p, 0);
    skip_space(&p);
    if (*p.at)
        refuse(&p, p.at, "an operator is missing");
    formula->arena = arena;
    if (p.status)
        fini_formula_destroy(formula);
    else
        *out = formula;
    return p.status;
}

void fini_formula_destroy(fini_formula *formula)
{
    if (!formula)
        return;
    fini_arena arena = formula->arena; /* the struct lies in it */
    fini_arena_close(&arena);
}

int fini_formula_name_count(const fini_formula *formula)
{
    return formula->name_count;
}

const char *fini_formula_name(const fini_formula *formula, int i)
{
    return formula->names[i];
}
