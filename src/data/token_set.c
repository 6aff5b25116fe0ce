/* Sequences of tokens in memory: one block for everything, and parts of it (folds, so many of each
 * class). */
#include "data/token_set.h"

#include "random/streams.h"

#include <math.h>
#include <string.h>

static fin_token_set *layout(fini_arena *arena, const fini_token_sizes *s)
{
    int64_t cells;
    if (__builtin_mul_overflow(s->tokens, s->inputs, &cells))
        cells = -1; /* fini_take reports it */
    fin_token_set *set = fini_take(arena, 1, sizeof *set);
    int64_t *offsets = fini_take(arena, s->n + 1, sizeof *offsets);
    float *tokens = fini_take(arena, cells, sizeof *tokens);
    double *labels = fini_take(arena, s->labels ? s->n : 0, sizeof *labels);
    double *center = fini_take(arena, s->inputs, sizeof *center);
    double *scale = fini_take(arena, s->inputs, sizeof *scale);
    const char **names = fini_take(arena, s->classes, sizeof *names);
    char *letters = fini_take(arena, s->letters, 1);
    if (!arena->base)
        return NULL;
    *set = (fin_token_set){.scale = {s->inputs, center, scale},
                           .class_names = names,
                           .offsets = offsets,
                           .tokens = tokens,
                           .labels = s->labels ? labels : NULL,
                           .letters = letters};
    set->memory = (fin_memory){.n = s->n,
                               .inputs = s->inputs,
                               .values = s->values,
                               .offsets = offsets,
                               .tokens = tokens,
                               .labels = set->labels,
                               .classes = s->classes};
    return set;
}

fin_status fini_token_set_create(fin_token_set **out, const fini_token_sizes *sizes, fin_error *err)
{
    fini_arena arena = {0};
    *out = NULL;
    layout(&arena, sizes);
    FINI_TRY(fini_arena_open(&arena, "sequences of tokens", err));
    *out = layout(&arena, sizes);
    (*out)->arena = arena;
    return FIN_OK;
}

void fin_token_set_destroy(fin_token_set *set)
{
    if (!set)
        return;
    fini_arena arena = set->arena; /* the set lies in it */
    fini_arena_close(&arena);
}

const fin_memory *fin_token_set_memory(const fin_token_set *set)
{
    return set ? &set->memory : NULL;
}

const fin_token_scale *fin_token_set_scale(const fin_token_set *set)
{
    return set ? &set->scale : NULL;
}

const char *fin_token_set_class(const fin_token_set *set, int64_t c)
{
    return set && c >= 0 && c < set->memory.classes ? set->class_names[c] : NULL;
}

int64_t fin_token_set_across(const fin_token_set *set)
{
    return set ? set->across : 0;
}

int fin_token_set_notes(const fin_token_set *set)
{
    return set ? set->notes.count : 0;
}

const char *fin_token_set_note(const fin_token_set *set, int i)
{
    return set && i >= 0 && i < set->notes.count ? set->notes.text[i] : NULL;
}

/* ---- parts ------------------------------------------------------------------------------------ */

/* The numbers of the sequences of the fold: *list (*count), for fini_free. */
static fin_status pick_fold(const fin_memory *m, const fin_token_part *which, int64_t **list,
                            int64_t *count, fin_error *err)
{
    *count = 0;
    FINI_ROOM(err, "a part of the sequences", *list, m->n, 1);
    for (int64_t i = 0; i < m->n; i++)
        if (which->folds <= 1 || (i % which->folds == which->fold) == (which->test != 0))
            (*list)[(*count)++] = i;
    if (*count)
        return FIN_OK;
    return fini_fail(err, FIN_ERR_ARGUMENT,
                     "fold %lld of %lld has no sequences%s: there are only %lld",
                     (long long)which->fold, (long long)which->folds,
                     which->test ? "" : " beside it", (long long)m->n);
}

/* Leaves the first per_class of each class in a random order; the list keeps its order. The order is
 * that of a shuffle of all sequences of the fold, so that 10 of a class are among its first 100. */
static fin_status pick_classes(const fin_token_set *set, const fin_token_part *which, int64_t *list,
                               int64_t *count, fin_error *err)
{
    const fin_memory *m = &set->memory;
    fin_random random;
    int64_t n = *count, kept = 0;
    FINI_FREED int64_t *order = fini_alloc_array(n, sizeof *order);
    FINI_FREED int64_t *left = fini_alloc_array(m->classes, sizeof *left);
    FINI_FREED char *take = fini_alloc_array(n, 1);
    fin_status status = FIN_OK;
    if (!order || !left || !take) {
        status = fini_fail_memory(err, (size_t)n * sizeof *order, "a part of the sequences");
    } else {
        for (int64_t i = 0; i < n; i++)
            order[i] = i;
        fin_random_open(&random, which->seed, FINI_STREAM_SUBSET, 0);
        fini_random_shuffle(&random, n, order);
        for (int64_t c = 0; c < m->classes; c++)
            left[c] = which->per_class;
        for (int64_t i = 0; i < n; i++) {
            double y = m->labels[list[order[i]]];
            take[order[i]] = !isnan(y) && left[(int64_t)y]-- > 0;
        }
        for (int64_t c = 0; c < m->classes && !status; c++)
            if (left[c] > 0)
                status = fini_fail(err, FIN_ERR_ARGUMENT,
                                   "%lld sequences of each class are asked for, and class '%.60s' "
                                   "has only %lld",
                                   (long long)which->per_class, set->class_names[c],
                                   (long long)(which->per_class - left[c]));
        for (int64_t i = 0; i < n; i++)
            if (take[i])
                list[kept++] = list[i];
        *count = kept;
    }
    return status;
}

static fin_status copy_part(fin_token_set **out, const fin_token_set *set, const int64_t *list,
                            int64_t count, fin_error *err)
{
    const fin_memory *m = &set->memory;
    fini_token_sizes sizes = {count, 0, m->inputs, m->values, m->classes, 0, m->labels != NULL};
    for (int64_t c = 0; c < m->classes; c++)
        sizes.letters += (int64_t)strlen(set->class_names[c]) + 1;
    for (int64_t i = 0; i < count; i++)
        sizes.tokens += m->offsets[list[i] + 1] - m->offsets[list[i]];
    FINI_TRY(fini_token_set_create(out, &sizes, err));
    fin_token_set *part = *out;
    for (int64_t i = 0; i < count; i++) {
        int64_t from = m->offsets[list[i]], length = m->offsets[list[i] + 1] - from;
        part->offsets[i + 1] = part->offsets[i] + length;
        memcpy(part->tokens + part->offsets[i] * m->inputs, m->tokens + from * m->inputs,
               (size_t)(length * m->inputs) * sizeof *part->tokens);
        if (part->labels)
            part->labels[i] = m->labels[list[i]];
    }
    memcpy(part->scale.center, set->scale.center, (size_t)m->inputs * sizeof(double));
    memcpy(part->scale.scale, set->scale.scale, (size_t)m->inputs * sizeof(double));
    char *to = part->letters;
    for (int64_t c = 0; c < m->classes; c++) {
        size_t length = strlen(set->class_names[c]) + 1;
        part->class_names[c] = memcpy(to, set->class_names[c], length);
        to += length;
    }
    part->notes = set->notes;
    part->across = set->across;
    return FIN_OK;
}

static fin_status check_part(const fin_memory *m, const fin_token_part *which, fin_error *err)
{
    if (which->folds < 0 || (which->folds <= 1 && which->test) ||
        (which->folds > 1 && (which->fold < 0 || which->fold >= which->folds)))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "fold %lld of %lld is asked for; folds are at least 2 and counted from 0 "
                         "(5 and 0 are usual)",
                         (long long)which->fold, (long long)which->folds);
    if (which->per_class < 0)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%lld sequences of each class are asked for; 0 (all) or more are allowed",
                         (long long)which->per_class);
    if (which->per_class > 0 && (!m->labels || m->classes == 0))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%lld sequences of each class are asked for, but the labels are %s",
                         (long long)which->per_class, m->labels ? "numbers" : "missing");
    return FIN_OK;
}

fin_status fin_token_set_part(fin_token_set **out, const fin_token_set *set,
                              const fin_token_part *which, fin_error *err)
{
    FINI_NEED_TO_MAKE(err, out, set, which);
    FINI_FREED int64_t *list = NULL;
    int64_t count = 0;
    FINI_TRY(check_part(&set->memory, which, err));
    FINI_TRY(pick_fold(&set->memory, which, &list, &count, err));
    if (which->per_class > 0)
        FINI_TRY(pick_classes(set, which, list, &count, err));
    return copy_part(out, set, list, count, err);
}
