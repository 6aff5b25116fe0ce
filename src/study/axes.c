/* The values of an axis: a list, evenly spaced numbers, or draws from a law.
 *
 * Numbers that are made here are rounded to 12 digits. That way 0.1 .. 0.9 in nine steps has a 0.3
 * in it and no 0.30000000000000004, so that `where: {lam: 0.3}` finds it; and a logarithm whose
 * last bit depends on the machine's libm does not make a different run of it.
 *
 * Draw i of an axis is a function of (seed, name, i) alone: more draws or another axis leave all
 * others as they were. */
#include "random/streams.h"
#include "study/read.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define WHOLE_MOST 9007199254740992.0 /* 2^53 */

/* ---- numbers -------------------------------------------------------------------------------- */

static char *number_text(fini_tree *tree, double number)
{
    char text[FINI_SHORTEST];
    size_t length = fini_shortest(number, text);
    return fini_tree_copy(tree, text, length);
}

/* Room for the texts of `count` values. */
static fin_status take_texts(const fini_axis_place *place, int64_t count, fini_axis *axis,
                             fin_error *err)
{
    axis->count = count;
    axis->texts = fini_tree_take(place->tree, count, sizeof *axis->texts);
    return axis->texts ? FIN_OK : fini_tree_fail_memory(err);
}

static fin_status check_count(const fini_tree *tree, const fini_node *node, double number,
                              double least, const char *what, fin_error *err)
{
    if (number >= least && number <= FINI_AXIS_MOST && number == floor(number))
        return FIN_OK;
    return fini_node_fail(tree, node, err, "%s = %g; it must be a whole number from %g to %d", what,
                          number, least, (int)FINI_AXIS_MOST);
}

/* Between ends that are whole numbers, values may be rounded to whole numbers; the ends may not. */
static fin_status check_whole(const fini_axis_place *place, const fini_node *node, double number,
                              const char *what, fin_error *err)
{
    if (!place->whole || number == floor(number))
        return FIN_OK;
    return fini_node_fail(place->tree, node, err,
                          "%s = %g, but %s is a whole number, so its ends must be too", what,
                          number, place->node->name);
}

/* ---- values that are written out ------------------------------------------------------------ */

typedef struct listed {
    const fini_node *node;
    double number; /* NaN: a word */
} listed;

/* Numbers before words; what is equal, in the order of the file. */
static int by_value(const void *a, const void *b)
{
    const listed *x = a, *y = b;
    int words = (isnan(x->number) != 0) - (isnan(y->number) != 0), order;
    if (words)
        return words;
    order = isnan(x->number) ? strcmp(x->node->text, y->node->text)
                             : (x->number > y->number) - (x->number < y->number);
    return order ? order : (x->node > y->node) - (x->node < y->node);
}

/* The same value twice would be the same run twice, and count twice. */
static fin_status check_different(fini_tree *tree, const fini_node *list, fin_error *err)
{
    FINI_FREED listed *values = fini_alloc_array(list->count, sizeof *values);
    if (!values)
        return fini_tree_fail_memory(err);
    for (int i = 0; i < list->count; i++) {
        values[i] = (listed){&list->child[i], NAN};
        if (!fini_read_number(list->child[i].text, &values[i].number))
            values[i].number = NAN;
    }
    qsort(values, (size_t)list->count, sizeof *values, by_value);
    for (int i = 1; i < list->count; i++) {
        const listed *a = &values[i - 1], *b = &values[i];
        bool same = isnan(a->number) ? isnan(b->number) && strcmp(a->node->text, b->node->text) == 0
                                     : a->number == b->number;
        if (same)
            return fini_node_fail(tree, b->node, err, "the value %.40s stands here twice",
                                  b->node->text);
    }
    return FIN_OK;
}

/* A list; of an axis, if it is `grid`: all different. */
static fin_status read_list(fini_tree *tree, const fini_node *list, bool grid, const char ***texts,
                            fin_error *err)
{
    if (list->count == 0)
        return fini_node_fail(tree, list, err, "the list is empty; give at least one value");
    *texts = fini_tree_take(tree, list->count, sizeof **texts);
    if (!*texts)
        return fini_tree_fail_memory(err);
    for (int i = 0; i < list->count; i++) {
        const fini_node *value = &list->child[i];
        if (value->kind != FINI_TEXT || fini_node_is_null(value))
            return fini_node_fail(tree, value, err, "a value must be a number or a word");
        (*texts)[i] = value->text;
    }
    return grid ? check_different(tree, list, err) : FIN_OK;
}

/* ---- evenly spaced -------------------------------------------------------------------------- */

static fin_status fill_spaced(const fini_axis_place *place, double from, double to,
                              bool logarithmic, int64_t n, fini_axis *axis, fin_error *err)
{
    FINI_TRY(take_texts(place, n, axis, err));
    double last = NAN;
    int64_t used = 0;
    for (int64_t i = 0; i < n; i++) {
        double x = fini_range_value(from, to, logarithmic, i, n);
        if (place->whole)
            x = round(x);
        if (x == last) /* rounded to the same whole number */
            continue;
        last = x;
        axis->texts[used] = number_text(place->tree, x);
        if (!axis->texts[used++])
            return fini_tree_fail_memory(err);
    }
    axis->count = used;
    return FIN_OK;
}

static fin_status read_spaced(const fini_axis_place *place, fini_axis *axis, fin_error *err)
{
    static const char *const keys[] = {"from", "to", "count", "spacing", NULL};
    const fini_tree *tree = place->tree;
    const fini_node *node = place->node;
    fini_ask ask = {tree, err, FIN_OK};
    fini_ask_keys(&ask, node, "an evenly spaced axis", keys);
    double from = fini_ask_number(&ask, node, "from", NAN);
    double to = fini_ask_number(&ask, node, "to", NAN);
    double count = fini_ask_number(&ask, node, "count", NAN);
    const char *spacing = fini_ask_text(&ask, node, "spacing", "linear");
    FINI_ASK(&ask, check_count(tree, fini_node_get(node, "count"), count, 2, "count", err));
    if (ask.status)
        return ask.status;
    bool logarithmic = strcmp(spacing, "log") == 0;
    if (!logarithmic && strcmp(spacing, "linear") != 0)
        return fini_node_fail(tree, fini_node_get(node, "spacing"), err,
                              "spacing must be linear or log");
    if (!isfinite(from) || !isfinite(to) || from == to)
        return fini_node_fail(tree, node, err, "from and to must be two different, finite numbers");
    if (logarithmic && !(from > 0 && to > 0))
        return fini_node_fail(tree, node, err, "from and to must be above 0 for spacing: log");
    FINI_ASK(&ask, check_whole(place, fini_node_get(node, "from"), from, "from", err));
    FINI_ASK(&ask, check_whole(place, fini_node_get(node, "to"), to, "to", err));
    return FINI_ASK(&ask, fill_spaced(place, from, to, logarithmic, (int64_t)count, axis, err));
}

/* ---- random laws ---------------------------------------------------------------------------- */

typedef enum law { UNIFORM, LOGUNIFORM, NORMAL, INTEGERS, CHOICE, LAWS } law;
static const char *const law_names[] = {"uniform",  "loguniform", "normal",
                                        "integers", "choice",     NULL};

static law find_law(const char *name)
{
    int i = 0;
    while (i < LAWS && strcmp(name, law_names[i]) != 0)
        i++;
    return (law)i;
}

bool fini_axis_is_random(const fini_node *node)
{
    return node->kind == FINI_MAP && node->count == 1 && find_law(node->child[0].name) != LAWS;
}

/* Two numbers that the law can be drawn with. */
static fin_status read_numbers(const fini_tree *tree, law which, const fini_node *node, double *a,
                               double *b, fin_error *err)
{
    static const char *const asked[] = {
        "two finite numbers [low, high], low below high",
        "two finite numbers [low, high], 0 below low below high",
        "[mean, standard deviation], finite, the second above 0",
        "two whole numbers [lowest, highest], at most 2^53 in size",
    };
    bool good = node->kind == FINI_LIST && node->count == 2 && node->child[0].kind == FINI_TEXT &&
                node->child[1].kind == FINI_TEXT && fini_read_number(node->child[0].text, a) &&
                fini_read_number(node->child[1].text, b) && isfinite(*a) && isfinite(*b);
    if (good && which == UNIFORM)
        good = *a < *b && isfinite(*b - *a);
    else if (good && which == LOGUNIFORM)
        good = 0 < *a && *a < *b;
    else if (good && which == NORMAL)
        good = *b > 0;
    else if (good)
        good = *a == floor(*a) && *b == floor(*b) && fabs(*a) <= WHOLE_MOST &&
               fabs(*b) <= WHOLE_MOST && *a <= *b;
    return good ? FIN_OK
                : fini_node_fail(tree, node, err, "%s takes %s", law_names[which], asked[which]);
}

static double draw(law which, double a, double b, fin_random *r)
{
    switch (which) {
    case UNIFORM:
        return fini_range_tidy(a + (b - a) * fin_random_uniform(r), a, b);
    case LOGUNIFORM: {
        double u = fin_random_uniform(r);
        return fini_range_tidy(exp((1 - u) * log(a) + u * log(b)), a, b);
    }
    case NORMAL:
        return fini_range_tidy(a + b * fin_random_normal(r), -HUGE_VAL, HUGE_VAL);
    default:
        return a + (double)fin_random_below(r, (int64_t)(b - a) + 1);
    }
}

/* '-' and '_' are the same in names, so they draw the same. */
static uint64_t key_of(const char *name, int64_t seed)
{
    char plain[FINI_NAME_MOST + 1];
    snprintf(plain, sizeof plain, "%s", name);
    for (char *c = plain; *c; c++)
        *c = *c == '-' ? '_' : *c;
    return XXH3_64bits_withSeed(plain, strlen(plain), (uint64_t)seed);
}

static fin_status read_random(const fini_axis_place *place, fini_axis *axis, fin_error *err)
{
    fini_tree *tree = place->tree;
    const fini_node *node = &place->node->child[0];
    law which = find_law(node->name);
    const char **choices = NULL;
    double a = 0, b = 0;
    fin_status status;
    if (place->draws == 0)
        return fini_node_fail_key(tree, node, err,
                                  "a random axis needs 'draws: N' in its block: how many to draw");
    if (which == CHOICE && node->kind != FINI_LIST)
        return fini_node_fail(tree, node, err, "choice takes a list of values");
    if (which == CHOICE)
        status = read_list(tree, node, false, &choices, err);
    else
        status = read_numbers(tree, which, node, &a, &b, err);
    if (!status && (which == UNIFORM || which == LOGUNIFORM))
        status = check_whole(place, &node->child[0], a, "low", err);
    if (!status && (which == UNIFORM || which == LOGUNIFORM))
        status = check_whole(place, &node->child[1], b, "high", err);
    if (!status)
        status = take_texts(place, place->draws, axis, err);
    axis->random = true;
    uint64_t key = key_of(axis->name, place->seed);
    for (int64_t i = 0; i < axis->count && !status; i++) {
        fin_random r;
        fin_random_open(&r, key, FINI_STREAM_STUDY_AXES, (uint64_t)i);
        if (which == CHOICE) {
            axis->texts[i] = choices[fin_random_below(&r, node->count)];
            continue;
        }
        double x = draw(which, a, b, &r);
        axis->texts[i] = number_text(tree, place->whole ? round(x) : x);
        if (!axis->texts[i])
            status = fini_tree_fail_memory(err);
    }
    return status;
}

/* ---- an axis -------------------------------------------------------------------------------- */

fin_status fini_axis_read(const fini_axis_place *place, const char *name, fini_axis *axis,
                          fin_error *err)
{
    const fini_node *node = place->node;
    *axis = (fini_axis){.name = name, .node = node};
    if (node->kind == FINI_TEXT)
        return fini_node_fail(place->tree, node, err,
                              "an axis is a list of values, {from: .., to: .., count: ..}, or a "
                              "law such as {uniform: [0, 1]}; one value alone stands under 'set:'");
    if (fini_axis_is_random(node))
        return read_random(place, axis, err);
    if (node->kind == FINI_LIST) {
        axis->count = node->count;
        return read_list(place->tree, node, true, &axis->texts, err);
    }
    if (fini_node_get(node, "from") || fini_node_get(node, "to"))
        return read_spaced(place, axis, err);
    char hint[200];
    if (node->count == 1)
        return fini_node_fail_key(
            place->tree, &node->child[0], err, "an axis is a list, {from, to, count} or a law%s",
            fini_hint(node->child[0].name, law_names, LAWS, hint, sizeof hint));
    return fini_node_fail(place->tree, node, err,
                          "an axis is a list of values, {from: .., to: .., count: ..}, or one law "
                          "such as {uniform: [0, 1]}");
}

fin_status fini_axis_seeds(fini_tree *tree, const fini_node *node, fini_axis *axis, fin_error *err)
{
    fini_axis_place place = {.tree = tree, .node = node};
    *axis = (fini_axis){.name = "seed", .node = node};
    if (node->kind == FINI_LIST) {
        axis->count = node->count;
        return read_list(tree, node, true, &axis->texts, err);
    }
    double count;
    if (node->kind != FINI_TEXT || !fini_read_number(node->text, &count))
        return fini_node_fail(tree, node, err,
                              "seeds must be a number N, for the seeds 1 to N, or a list");
    FINI_TRY(check_count(tree, node, count, 1, "seeds", err));
    FINI_TRY(take_texts(&place, (int64_t)count, axis, err));
    for (int64_t i = 0; i < axis->count; i++)
        if (!(axis->texts[i] = number_text(tree, (double)(i + 1))))
            return fini_tree_fail_memory(err);
    return FIN_OK;
}
