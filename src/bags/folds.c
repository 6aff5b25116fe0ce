/* Folds for cross-validation: stratified, repeated, a pure function of the seed.
 *
 * Bags are put in a line in which like labels are neighbours, in random order among equals, and the
 * folds are dealt along the line:
 *
 *     classes   class after class, fold = place mod folds: within every class and over all, sizes
 *               differ by one at most. Which fold is dealt first is random, so that fold 0 is not the
 *               largest in all repeats.
 *     numbers   by size of the label; each run of `folds` neighbours gets all folds in random
 *               order: every fold has its share of every quantile.
 *
 * Classes are taken in the order in which they appear, not in that of their numbers, which come from
 * their names: what a class is called changes nothing.
 *
 * Groups of bags (slides of one patient) are dealt as a whole: classes: large groups first, each to the
 * fold that has the smallest share of the group's classes so far; numbers: by the mean of their labels,
 * as bags are.
 *
 * Every repeat is a stream sample of its own: repeat 3 of 5 is repeat 3 of 100. */
#include "bags/judge.h"

#include "math/stats.h"
#include "random/streams.h"

#include <math.h>
#include <string.h>

/* order: (folds) numbers of folds, in the order of dealing. */
static void deal(fin_random *random, int64_t classes, int64_t n, const int64_t *line, int folds,
                 int64_t *order, int32_t *fold)
{
    for (int f = 0; f < folds; f++)
        order[f] = f;
    for (int64_t k = 0; k < n; k++) {
        if (k == 0 || (!classes && k % folds == 0))
            fini_random_shuffle(random, folds, order);
        fold[line[k]] = (int32_t)order[k % folds];
    }
}

/* ---- what can be dealt -------------------------------------------------------------------------- */

static fin_status check_label(int64_t i, int64_t classes, double y, fin_error *err)
{
    if (classes ? y >= 0 && y < (double)classes && y == floor(y) : (bool)isfinite(y))
        return FIN_OK;
    if (!classes)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "the label of bag %lld is not a finite number; folds need all labels",
                         (long long)i);
    return fini_fail(err, FIN_ERR_ARGUMENT,
                     "bag %lld has the label %g; with %lld classes it is one of 0 .. %lld",
                     (long long)i, y, (long long)classes, (long long)classes - 1);
}

/* In a line sorted by class: takes out the bags that are the only one of their class. When such a bag
 * is left out, there is nothing to learn about its class from. */
static fin_status drop_lone(const double *labels, bool lone, int64_t *n, int64_t *line,
                            fin_error *err)
{
    int64_t kept = 0;
    for (int64_t k = 0, end; k < *n; k = end) {
        double y = labels[line[k]];
        for (end = k + 1; end < *n && labels[line[end]] == y;)
            end++;
        if (end == k + 1 && !lone)
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "class %g has a single bag (bag %lld): when it is left out, nothing "
                             "is known of its class; every class needs two bags at least",
                             y, (long long)line[k]);
        for (int64_t j = k; j < end && end > k + 1; j++)
            line[kept++] = line[j];
    }
    *n = kept;
    return FIN_OK;
}

static fin_status check_sizes(int64_t n, int64_t classes, int repeats, int folds, fin_error *err)
{
    if (n < 1 || classes < 0 || classes == 1)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "folds of %lld bags with %lld classes; give at least one bag, and 0 "
                         "classes (numbers) or at least 2",
                         (long long)n, (long long)classes);
    if (repeats < 1 || folds < 2)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%d folds, %d times; give at least 2 folds, once; usual are 10 folds, 5 "
                         "times",
                         folds, repeats);
    return FIN_OK;
}

/* Fills `line` with the bags that are dealt. */
static fin_status line_up(const fini_dealt *bags, int64_t *count, int64_t *line, fin_error *err)
{
    *count = 0;
    for (int64_t i = 0; i < bags->n; i++) {
        if (bags->use && !bags->use[i])
            continue;
        FINI_TRY(check_label(i, bags->classes, bags->labels[i], err));
        line[(*count)++] = i;
    }
    return FIN_OK;
}

/* ---- groups --------------------------------------------------------------------------------------- */

/* Sorted by group, then by bag; a group's number is that of its first bag among the first bags. */
fin_status fini_groups_number(int64_t n, const int64_t *groups, const unsigned char *use,
                              int64_t *number, int64_t *count, fin_error *err)
{
    FINI_FREED int64_t *line = fini_alloc_array(n, 2 * sizeof *line);
    int64_t used = 0;
    FINI_FREED double *key = fini_alloc_array(n, sizeof *key);
    *count = 0;
    if (!line || !key)
        return fini_fail_memory(err, (size_t)n * 3 * sizeof *line, "groups of bags");
    for (int64_t i = 0; i < n; i++) {
        number[i] = -1;
        key[i] = (double)groups[i];
        if (!use || use[i])
            line[used++] = i;
    }
    fini_sort_places(key, used, line, line + n);
    int64_t *first = line + n; /* of the group of bag i */
    for (int64_t k = 0, begin = 0; k < used; k++) {
        begin = groups[line[k]] == groups[line[begin]] ? begin : k;
        number[line[k]] = line[begin];
    }
    for (int64_t i = 0; i < n; i++)
        if (number[i] == i)
            first[i] = (*count)++;
    for (int64_t i = 0; i < n; i++)
        number[i] = number[i] >= 0 ? first[number[i]] : -1;
    return FIN_OK;
}

typedef struct dealing {
    int64_t n, classes;
    const double *labels; /* (n) */
    int64_t *group;       /* (n), or -1 */
    int64_t groups;
    double *key;      /* (groups) size, or mean label */
    double *mean;     /* (groups) */
    int64_t *begin;   /* (groups + 1) of its bags in `bag` */
    int64_t *bag;     /* (n) */
    int64_t *line;    /* (2 groups) */
    double *of_class; /* (classes + 1) bags */
    double *only;     /* (classes + 1): the one group of a class, or -1 */
    double *have;     /* (folds, classes + 1): bags of a class in a fold */
} dealing;

static void layout(fini_arena *a, dealing *g, int folds)
{
    g->group = fini_take(a, g->n, sizeof *g->group);
    g->bag = fini_take(a, g->n, sizeof *g->bag);
    g->key = fini_take(a, g->n, sizeof *g->key);
    g->mean = fini_take(a, g->n, sizeof *g->mean);
    g->begin = fini_take(a, g->n + 1, sizeof *g->begin);
    g->line = fini_take(a, 2 * g->n, sizeof *g->line);
    g->of_class = fini_take(a, g->classes + 1, sizeof *g->of_class);
    g->only = fini_take(a, g->classes + 1, sizeof *g->only);
    g->have = fini_take(a, (g->classes + 1) * folds, sizeof *g->have);
}

static int64_t class_of(const dealing *g, int64_t i)
{
    return g->classes ? (int64_t)g->labels[i] : 0;
}

/* Bags by group, sizes and means; classes that a single group has. */
static void collect(dealing *g)
{
    memset(g->begin, 0, (size_t)(g->groups + 1) * sizeof *g->begin);
    for (int64_t i = 0; i < g->n; i++)
        if (g->group[i] >= 0)
            g->begin[g->group[i] + 1]++;
    for (int64_t k = 0; k < g->groups; k++) {
        g->begin[k + 1] += g->begin[k];
        g->line[k] = g->begin[k];
        g->mean[k] = 0;
    }
    for (int64_t c = 0; c <= g->classes; c++)
        g->only[c] = NAN;
    for (int64_t i = 0; i < g->n; i++) {
        int64_t k = g->group[i], c = class_of(g, i);
        if (k < 0)
            continue;
        g->bag[g->line[k]++] = i;
        g->mean[k] += g->labels[i] / (double)(g->begin[k + 1] - g->begin[k]);
        g->of_class[c]++;
        g->only[c] = isnan(g->only[c]) || g->only[c] == (double)k ? (double)k : -1;
    }
}

/* A group that has all bags of a class is never left out: there would be nothing to learn of the class. */
static fin_status keep_lone(const dealing *g, bool lone, int64_t *count, fin_error *err)
{
    *count = 0;
    for (int64_t k = 0; k < g->groups; k++) {
        bool alone = false;
        for (int64_t b = g->begin[k]; b < g->begin[k + 1] && g->classes; b++)
            alone |= g->only[class_of(g, g->bag[b])] == (double)k;
        if (alone && !lone)
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "all bags of a class are in one group, that of bag %lld: when it is "
                             "left out, nothing is known of the class; every class needs two "
                             "groups at least",
                             (long long)g->bag[g->begin[k]]);
        if (!alone)
            g->line[(*count)++] = k;
    }
    return FIN_OK;
}

/* The fold with the smallest share of the group's classes; among equals, the one with fewest bags, the
 * first in the random order. */
static int64_t best_fold(const dealing *g, int64_t k, int folds, const int64_t *order)
{
    int64_t best = -1, all = g->classes + 1;
    double least = 0, fewest = 0;
    for (int f = 0; f < folds; f++) {
        const double *have = g->have + order[f] * all;
        double load = 0;
        for (int64_t b = g->begin[k]; b < g->begin[k + 1]; b++)
            load += have[class_of(g, g->bag[b])] / g->of_class[class_of(g, g->bag[b])];
        if (best < 0 || load < least || (load == least && have[g->classes] < fewest)) {
            best = order[f];
            least = load;
            fewest = have[g->classes];
        }
    }
    return best;
}

static fin_status deal_groups(dealing *g, bool lone, int folds, int64_t *order, fin_random *random,
                              int32_t *fold, fin_error *err)
{
    int64_t count, all = g->classes + 1;
    FINI_TRY(keep_lone(g, lone, &count, err));
    if (count < folds)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%d folds of %lld groups of bags: some would be empty; give at most %lld "
                         "folds",
                         folds, (long long)count, (long long)count);
    fini_random_shuffle(random, count, g->line);
    for (int64_t k = 0; k < g->groups; k++)
        g->key[k] = g->classes ? -(double)(g->begin[k + 1] - g->begin[k]) : g->mean[k];
    fini_sort_places(g->key, count, g->line, g->line + g->n);
    for (int f = 0; f < folds; f++)
        order[f] = f;
    memset(g->have, 0, (size_t)(all * folds) * sizeof *g->have);
    for (int64_t k = 0; k < count; k++) {
        int64_t group = g->line[k];
        if (k == 0 || (!g->classes && k % folds == 0))
            fini_random_shuffle(random, folds, order);
        int64_t to = g->classes ? best_fold(g, group, folds, order) : order[k % folds];
        for (int64_t b = g->begin[group]; b < g->begin[group + 1]; b++) {
            g->have[to * all + class_of(g, g->bag[b])]++;
            g->have[to * all + g->classes] += g->classes > 0;
            fold[g->bag[b]] = (int32_t)to;
        }
    }
    return FIN_OK;
}

/* ---- bags ------------------------------------------------------------------------------------------ */

/* key: (n) the label, or the place of its class in the order of their first bags. */
static fin_status rank_classes(const fini_dealt *bags, double *key, fin_error *err)
{
    int64_t classes = bags->classes;
    FINI_OWN(err, "classes", double, rank, classes + 1, 1);
    double next = 0;
    for (int64_t c = 0; c < classes; c++)
        rank[c] = -1;
    for (int64_t i = 0; i < bags->n; i++) {
        key[i] = bags->labels[i];
        if (!classes || (bags->use && !bags->use[i]))
            continue;
        double *own = &rank[(int64_t)bags->labels[i]];
        *own = *own < 0 ? next++ : *own;
        key[i] = *own;
    }
    return FIN_OK;
}

static fin_status deal_bags(const fini_dealt *bags, const double *key, int folds,
                            fin_random *random, int64_t *line, int64_t *order, int32_t *fold,
                            fin_error *err)
{
    int64_t count;
    fin_status status = line_up(bags, &count, line, err);
    if (status)
        return status;
    fini_random_shuffle(random, count, line);
    fini_sort_places(key, count, line, line + bags->n);
    if (bags->classes && (status = drop_lone(bags->labels, bags->lone, &count, line, err)))
        return status;
    if (count < folds)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%d folds of %lld bags: some would be empty; give at most %lld folds",
                         folds, (long long)count, (long long)count);
    deal(random, bags->classes, count, line, folds, order, fold);
    return FIN_OK;
}

fin_status fini_folds_make(const fini_dealt *bags, int repeats, int folds, int64_t seed,
                           int32_t *fold, fin_error *err)
{
    int64_t n = bags->n;
    fin_status status = check_sizes(n, bags->classes, repeats, folds, err);
    fini_arena arena = {0};
    dealing g = {.n = n, .classes = bags->classes, .labels = bags->labels};
    if (status)
        return status;
    FINI_FREED int64_t *line = fini_alloc_array(n, 2 * sizeof *line);
    int64_t count;
    FINI_FREED int64_t *order = fini_alloc_array(folds, sizeof *order);
    FINI_FREED double *key = fini_alloc_array(n, sizeof *key);
    if (!line || !order || !key)
        status = fini_fail_memory(err, (size_t)n * 3 * sizeof *line, "folds");
    if (!status)
        status = line_up(bags, &count, line, err);
    if (!status)
        status = rank_classes(bags, key, err);
    if (!status && bags->groups) {
        layout(&arena, &g, folds);
        status = fini_arena_open(&arena, "folds", err);
    }
    if (!status && bags->groups) {
        layout(&arena, &g, folds);
        status = fini_groups_number(n, bags->groups, bags->use, g.group, &g.groups, err);
        if (!status)
            collect(&g);
    }
    for (int r = 0; !status && r < repeats; r++) {
        fin_random random;
        fin_random_open(&random, (uint64_t)seed, FINI_STREAM_BAGS_FOLDS, (uint64_t)r);
        memset(fold + r * n, 0xff, (size_t)n * sizeof *fold); /* -1 */
        status = bags->groups
                     ? deal_groups(&g, bags->lone, folds, order, &random, fold + r * n, err)
                     : deal_bags(bags, key, folds, &random, line, order, fold + r * n, err);
    }
    fini_arena_close(&arena);
    return status;
}

typedef struct ordered {
    int64_t *line, *groups;
    double *labels;
    unsigned char *use;
    int32_t *fold;
    fini_arena arena;
} ordered;

static void layout_ordered(ordered *o, int64_t n)
{
    o->line = fini_take(&o->arena, 2 * n, sizeof *o->line);
    o->groups = fini_take(&o->arena, n, sizeof *o->groups);
    o->labels = fini_take(&o->arena, n, sizeof *o->labels);
    o->use = fini_take(&o->arena, n, 1);
    o->fold = fini_take(&o->arena, n, sizeof *o->fold);
}

fin_status fini_folds_ordered(const fini_dealt *bags, const double *order, int folds, int64_t seed,
                              int32_t *fold, fin_error *err)
{
    ordered o = {0};
    int64_t n = bags->n;
    FINI_LAY_OUT(err, &o.arena, "folds", layout_ordered(&o, n));
    for (int64_t i = 0; i < n; i++)
        o.line[i] = i;
    fini_sort_places(order, n, o.line, o.line + n);
    for (int64_t i = 0; i < n; i++) {
        o.labels[i] = bags->labels[o.line[i]];
        o.use[i] = !bags->use || bags->use[o.line[i]];
        o.groups[i] = bags->groups ? bags->groups[o.line[i]] : 0;
    }
    fini_dealt sorted = {n,     bags->classes, o.labels, bags->groups ? o.groups : NULL,
                         o.use, bags->lone};
    fin_status status = fini_folds_make(&sorted, 1, folds, seed, o.fold, err);
    for (int64_t i = 0; i < n && !status; i++)
        fold[o.line[i]] = o.fold[i];
    fini_arena_close(&o.arena);
    return status;
}

fin_status fin_folds_make(int64_t n, int64_t classes, const double *labels, const int64_t *groups,
                          int repeats, int folds, int64_t seed, int32_t *fold, fin_error *err)
{
    FINI_NEED(err, labels, fold);
    fini_dealt bags = {n, classes, labels, groups, NULL, false};
    return fini_folds_make(&bags, repeats, folds, seed, fold, err);
}
