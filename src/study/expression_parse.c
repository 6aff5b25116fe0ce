/* Formulas of columns: text -> a short program for a stack machine.
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
#include "study/expression.h"

#include "data/data.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LENGTH_MOST = 1000, DEPTH_MOST = 50 };

/* ---- parsing --------------------------------------------------------------------------------- */

typedef struct parser {
    const char *text, *at;
    fini_formula *formula;
    int nested, height; /* of brackets and signs; of the stack after the steps so far */
    fin_error *err;
} parser;

static fin_status parse_comparison(parser *p);

enum { SHOWN = 120, SHOWN_REST = 24 };

static fin_status refuse(const parser *p, const char *where, const char *what)
{
    char text[SHOWN], rest[SHOWN_REST];
    fini_printable(p->text, strlen(p->text), text, sizeof text);
    fini_printable(where, strlen(where), rest, sizeof rest);
    return fini_fail(p->err, FIN_ERR_FORMAT, "formula '%s': %s at %s%s%s (character %d)", text,
                     what, *where ? "'" : "the end", rest, *where ? "'" : "",
                     (int)(where - p->text) + 1);
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
    if (strncmp(p->at, word, length) != 0)
        return false;
    p->at += length;
    return true;
}

/* A step that takes `takes` numbers from the stack and leaves one. There are fewer steps than
 * characters, so that the array that was measured by the text suffices. */
static fin_status emit(parser *p, fini_step s, int takes)
{
    p->height += 1 - takes;
    if (p->height > FINI_STACK_MOST)
        return refuse(p, p->at, "too many numbers wait for an operator");
    p->formula->steps[p->formula->count++] = s;
    return FIN_OK;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static fin_status parse_number(parser *p)
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
        return refuse(p, start, "this is no number, such as 2, 0.5 or 1e-3,");
    p->at = end;
    return emit(p, (fini_step){.code = PUSH, .number = number}, 0);
}

static fin_status find_name(parser *p, const char *start, size_t length, int *index)
{
    fini_formula *f = p->formula;
    if (length >= FINI_NAME_LENGTH)
        return refuse(p, start, "a name is longer than 63 characters");
    for (*index = 0; *index < f->name_count; ++*index)
        if (strlen(f->names[*index]) == length && !memcmp(f->names[*index], start, length))
            return FIN_OK;
    if (f->name_count == FINI_NAMES_MOST)
        return refuse(p, start, "there are more than 32 different names");
    memcpy(f->names[f->name_count], start, length);
    f->names[f->name_count++][length] = '\0';
    return FIN_OK;
}

static fin_status unknown_function(const parser *p, const char *start, size_t length)
{
    enum { MOST = 32 };
    char word[FINI_NAME_LENGTH];
    const char *names[MOST] = {"error"};
    int count = 1;
    for (; count < MOST && fini_function_at(count - 1); count++)
        names[count] = fini_function_at(count - 1)->name;
    snprintf(word, sizeof word, "%.*s", (int)(length < 63 ? length : 63), start);
    const char *near = fin_nearest_name(word, names, count);
    char text[SHOWN];
    fini_printable(p->text, strlen(p->text), text, sizeof text);
    return fini_fail(
        p->err, FIN_ERR_FORMAT, "formula '%s': there is no function '%s'%s", text, word,
        fini_did_you_mean(near,
                          "; there are error, sqrt, abs, exp, log, log10, log2, erf, floor, round, "
                          "sign, min and max"));
}

/* error(name), the name of a column. */
static fin_status parse_error_of(parser *p)
{
    skip_space(p);
    const char *start = p->at;
    size_t length = 0;
    int index;
    while (is_letter(start[length]) || (length && is_digit(start[length])))
        length++;
    if (!length)
        return refuse(p, start, "error() takes the name of a number, which is missing");
    fin_status status = find_name(p, start, length, &index);
    if (status)
        return status;
    p->at += length;
    if (!accept(p, ")"))
        return refuse(p, p->at, "error() takes a name alone: ')' is missing");
    return emit(p, (fini_step){.code = ERROR, .index = index}, 0);
}

static fin_status parse_call(parser *p, const char *start, size_t length)
{
    if (length == 5 && memcmp(start, "error", 5) == 0)
        return parse_error_of(p);
    int i = 0;
    const fini_function *f;
    while ((f = fini_function_at(i)) &&
           (strlen(f->name) != length || memcmp(f->name, start, length) != 0))
        i++;
    if (!f)
        return unknown_function(p, start, length);
    for (int k = 0; k < f->arguments; k++) {
        if (k && !accept(p, ","))
            return refuse(p, p->at, "this function takes two numbers: ',' is missing");
        fin_status status = parse_comparison(p);
        if (status)
            return status;
    }
    if (!accept(p, ")"))
        return refuse(p, p->at, "')' is missing");
    fini_step call = {.code = f->arguments == 1 ? CALL_ONE : CALL_TWO, .index = i};
    return emit(p, call, f->arguments);
}

static fin_status parse_word(parser *p)
{
    const char *start = p->at;
    size_t length = 1;
    while (is_letter(start[length]) || is_digit(start[length]))
        length++;
    p->at += length;
    if (accept(p, "("))
        return parse_call(p, start, length);
    if (length == 2 && memcmp(start, "pi", 2) == 0)
        return emit(p, (fini_step){.code = PUSH, .number = 3.14159265358979323846}, 0);
    if (length == 3 && memcmp(start, "inf", 3) == 0)
        return emit(p, (fini_step){.code = PUSH, .number = INFINITY}, 0);
    int index;
    fin_status status = find_name(p, start, length, &index);
    return status ? status : emit(p, (fini_step){.code = NAME, .index = index}, 0);
}

static fin_status parse_atom(parser *p)
{
    skip_space(p);
    if (is_digit(*p->at) || *p->at == '.')
        return parse_number(p);
    if (is_letter(*p->at))
        return parse_word(p);
    if (!accept(p, "("))
        return refuse(p, p->at, "a number, a name or '(' is missing");
    fin_status status = parse_comparison(p);
    if (!status && !accept(p, ")"))
        status = refuse(p, p->at, "')' is missing");
    return status;
}

static fin_status parse_sign(parser *p)
{
    /* Every way down leads through here: brackets, calls, signs and powers. */
    if (++p->nested > DEPTH_MOST)
        return refuse(p, p->at, "it is nested more than 50 deep");
    fin_status status;
    if (accept(p, "-")) {
        status = parse_sign(p);
        if (!status)
            status = emit(p, (fini_step){.code = NEGATE}, 1);
    } else if (accept(p, "+")) {
        status = parse_sign(p);
    } else {
        status = parse_atom(p);
        if (!status && accept(p, "^")) {
            status = parse_sign(p);
            if (!status)
                status = emit(p, (fini_step){.code = POWER}, 2);
        }
    }
    p->nested--;
    return status;
}

static fin_status parse_product(parser *p)
{
    fin_status status = parse_sign(p);
    while (!status) {
        fini_opcode code = accept(p, "*") ? MULTIPLY : accept(p, "/") ? DIVIDE : PUSH;
        if (code == PUSH)
            break;
        status = parse_sign(p);
        if (!status)
            status = emit(p, (fini_step){.code = code}, 2);
    }
    return status;
}

static fin_status parse_sum(parser *p)
{
    fin_status status = parse_product(p);
    while (!status) {
        fini_opcode code = accept(p, "+") ? ADD : accept(p, "-") ? SUBTRACT : PUSH;
        if (code == PUSH)
            break;
        status = parse_product(p);
        if (!status)
            status = emit(p, (fini_step){.code = code}, 2);
    }
    return status;
}

static fin_status parse_comparison(parser *p)
{
    static const struct {
        const char *word;
        fini_opcode code;
    } signs[] = {{"<=", LESS_EQUAL}, {">=", GREATER_EQUAL}, {"==", EQUAL},
                 {"!=", NOT_EQUAL},  {"<", LESS},           {">", GREATER}};
    fin_status status = parse_sum(p);
    for (int i = 0; !status && i < (int)(sizeof signs / sizeof *signs); i++)
        if (accept(p, signs[i].word)) {
            status = parse_sum(p);
            if (!status)
                status = emit(p, (fini_step){.code = signs[i].code}, 2);
            break;
        }
    return status;
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
    layout(&arena, length, &formula);
    fin_status status = fini_arena_open(&arena, "a formula", err);
    if (status)
        return status;
    layout(&arena, length, &formula);
    parser p = {.text = text, .at = text, .formula = formula, .err = err};
    status = parse_comparison(&p);
    skip_space(&p);
    if (!status && *p.at)
        status = refuse(&p, p.at, "an operator is missing");
    formula->arena = arena;
    if (status)
        fini_formula_destroy(formula);
    else
        *out = formula;
    return status;
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
