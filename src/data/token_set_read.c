/* Sequences of tokens from files. Bags and images are read by the reader of bags, an image as a bag
 * with one row; here its rows become tokens: keys first, or patches, scaled, as float.
 *
 *     token = (raw - center) * scale, center = mean, scale = 1 / deviation (1 if it is 0)
 *
 * of a column of bags, or of all pixels together: the brightness of a patch must stay comparable with
 * that of its neighbours. The two ones of a patch's place are scaled so that their squares sum to the
 * number of pixels: at first the place weighs as much as what is seen there. */
#include "data/token_set.h"

#include <math.h>
#include <string.h>

static double raw(const fin_bags *bags, int64_t row, int64_t column)
{
    int64_t at = row * bags->d + column;
    if (column < 0)
        return column == FINI_TOKEN_ONE;
    return bags->dtype == FIN_F32 ? (double)((const float *)bags->tokens)[at]
                                  : ((const double *)bags->tokens)[at];
}

/* ---- columns ---------------------------------------------------------------------------------- */

/* The columns of the keys by name, then the others. */
static fin_status order_columns(fin_bag_set *bags, const fin_token_source *source,
                                fini_token_map *map, fin_error *err)
{
    int64_t d = bags->bags.d, *list = NULL, keys = 0;
    fin_status status = FIN_OK;
    FINI_ROOM(err, "columns", map->at, d, 1);
    if (source->keys) {
        fin_bag_set names = {.notes =
                                 bags->notes}; /* takes the names of the keys, and is dropped */
        const fin_bags_source wanted = {.path = source->bags.path, .features = source->keys};
        const fini_columns columns = {.file = source->bags.path, .names = &bags->features};
        status = fini_names_index(&bags->features, err);
        if (!status)
            status = fini_bags_columns(&names, &wanted, &columns, &list, &keys, err);
        fini_names_close(&names.features);
        if (!status && keys == d)
            status = fini_fail(err, FIN_ERR_ARGUMENT,
                               "%.200s: all %lld columns are keys; at least one must be a value, "
                               "which a hidden token does not show",
                               source->bags.path, (long long)d);
    }
    char *is_key = status ? NULL : fini_alloc_array(d, 1);
    if (!status && !is_key)
        status = fini_fail_memory(err, (size_t)d, "columns");
    if (!status) {
        memset(is_key, 0, (size_t)d);
        for (int64_t k = 0; k < keys; k++)
            is_key[map->at[k] = list[k]] = 1;
        for (int64_t j = 0, next = keys; j < d; j++)
            if (!is_key[j])
                map->at[next++] = j;
    }
    fini_free_all(is_key, list);
    *map = (fini_token_map){.tokens = 1, .inputs = d, .values = d - keys, .at = map->at};
    return status;
}

/* ---- scale ------------------------------------------------------------------------------------- */

/* Mean and deviation of the numbers of columns first .. first + count - 1 of all tokens, in two
 * passes: no square of a large mean is subtracted. */
static void find_scale(const fin_bags *bags, const fini_token_map *map, int64_t first,
                       int64_t count, double *center, double *scale)
{
    int64_t rows = bags->offsets[bags->n] - bags->offsets[0], cells = 0;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t t = 0; t < map->tokens; t++)
            for (int64_t j = first; j < first + count; j++, cells++)
                sum += raw(bags, i, map->at[t * map->inputs + j]);
    *center = sum / (double)cells;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t t = 0; t < map->tokens; t++)
            for (int64_t j = first; j < first + count; j++) {
                double x = raw(bags, i, map->at[t * map->inputs + j]) - *center;
                squares += x * x;
            }
    *scale = squares > 0 ? 1 / sqrt(squares / (double)cells) : 1;
}

static bool is_scale(double center, double scale)
{
    return isfinite(center) && isfinite(scale) && scale != 0;
}

fin_status fin_token_scale_find(const fin_bags *bags, fin_token_scale *scale, fin_error *err)
{
    FINI_NEED(err, bags, scale);
    FINI_NEED(err, scale->center, scale->scale);
    scale->columns = bags->d;
    for (int64_t j = 0; j < bags->d; j++) {
        const fini_token_map column = {.tokens = 1, .inputs = 1, .at = &j};
        find_scale(bags, &column, 0, 1, &scale->center[j], &scale->scale[j]);
        if (!is_scale(scale->center[j], scale->scale[j]))
            return fini_fail(err, FIN_ERR_NUMERIC,
                             "numbers of column %lld are so large or so small that their deviation "
                             "cannot be computed; are the units right?",
                             (long long)j);
    }
    return FIN_OK;
}

static fin_status fill_scale(fin_token_set *set, const fin_bags *bags, const fini_token_map *map,
                             const fin_token_source *source, fin_error *err)
{
    fin_token_scale *s = &set->scale;
    const fin_token_scale *given = source->scale;
    if (given && given->columns != s->columns)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%.200s: a token has %lld columns, and the encoder was trained with %lld; "
                         "the same columns (or patches of the same size) are needed",
                         source->bags.path, (long long)s->columns, (long long)given->columns);
    if (given) {
        memcpy(s->center, given->center, (size_t)s->columns * sizeof *s->center);
        memcpy(s->scale, given->scale, (size_t)s->columns * sizeof *s->scale);
        return FIN_OK;
    }
    int64_t at_once = source->patch > 0 ? map->values : 1;
    int64_t places = source->patch > 0 ? map->inputs - map->values : 0;
    for (int64_t j = 0; j < places; j++) {
        s->center[j] = 0;
        s->scale[j] = sqrt((double)map->values / 2);
    }
    for (int64_t j = places; j < map->inputs; j += at_once) {
        find_scale(bags, map, j, at_once, &s->center[j], &s->scale[j]);
        if (!is_scale(s->center[j], s->scale[j]))
            return fini_fail(err, FIN_ERR_FORMAT,
                             "%.200s: numbers of %s are so large or so small that their deviation "
                             "cannot be computed; are the units right?",
                             source->bags.path, source->patch > 0 ? "pixels" : "a column");
        for (int64_t k = j + 1; k < j + at_once; k++) {
            s->center[k] = s->center[j];
            s->scale[k] = s->scale[j];
        }
    }
    return FIN_OK;
}

/* ---- the set ----------------------------------------------------------------------------------- */

static fin_status fill_tokens(fin_token_set *set, const fin_bag_set *from,
                              const fini_token_map *map, const fin_token_source *source,
                              fin_error *err)
{
    const fin_bags *bags = &from->bags;
    int64_t rows = bags->offsets[bags->n] - bags->offsets[0], size = map->tokens * map->inputs;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < size; k++) {
            int64_t j = k % map->inputs;
            double x = raw(bags, i, map->at[k]);
            float value = (float)((x - set->scale.center[j]) * set->scale.scale[j]);
            if (!isfinite(value))
                return fini_fail(err, FIN_ERR_FORMAT,
                                 "%.200s, row %lld, column '%.60s': %g is %g once it is scaled, "
                                 "beyond what a float holds; are the units right?",
                                 source->bags.path, (long long)fin_bag_set_row(from, i),
                                 map->at[k] < 0 ? "place" : fin_bag_set_feature(from, map->at[k]),
                                 x, (x - set->scale.center[j]) * set->scale.scale[j]);
            set->tokens[i * size + k] = value;
        }
    return FIN_OK;
}

static fin_status build(fin_token_set **out, const fin_bag_set *from, const fini_token_map *map,
                        const fin_token_source *source, fin_error *err)
{
    const fin_bags *bags = &from->bags;
    fini_token_sizes sizes = {.n = bags->n,
                              .inputs = map->inputs,
                              .values = map->values,
                              .classes = from->classes,
                              .labels = bags->labels != NULL};
    int64_t rows = bags->offsets[bags->n] - bags->offsets[0];
    if (__builtin_mul_overflow(rows, map->tokens, &sizes.tokens))
        sizes.tokens = -1; /* fini_take reports it */
    for (int64_t c = 0; c < sizes.classes; c++)
        sizes.letters += (int64_t)strlen(fin_bag_set_class(from, c)) + 1;
    FINI_TRY(fini_token_set_create(out, &sizes, err));
    fin_token_set *set = *out;
    for (int64_t i = 0; i <= sizes.n; i++)
        set->offsets[i] = (bags->offsets[i] - bags->offsets[0]) * map->tokens;
    if (sizes.labels)
        memcpy(set->labels, bags->labels, (size_t)sizes.n * sizeof *set->labels);
    char *to = set->letters;
    for (int64_t c = 0; c < sizes.classes; c++) {
        size_t length = strlen(fin_bag_set_class(from, c)) + 1;
        set->class_names[c] = memcpy(to, fin_bag_set_class(from, c), length);
        to += length;
    }
    set->notes = *from->notes;
    set->across = map->across;
    FINI_TRY(fill_scale(set, bags, map, source, err));
    return fill_tokens(set, from, map, source, err);
}

fin_status fin_token_set_read(fin_token_set **out, const fin_token_source *source,
                              const fin_progress *progress, fin_error *err)
{
    FINI_NEED_TO_MAKE(err, out, source);
    fin_bag_set *bags = NULL;
    fini_token_map map = {0};
    fin_bags_source from = source->bags;
    if (source->patch < 0 || source->rows < 0)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "patches of %lld pixels and images of %lld rows are asked for; both are 0 "
                         "or more",
                         (long long)source->patch, (long long)source->rows);
    if (source->patch > 0 && source->keys)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "patches of images have no columns as keys: their key is their place");
    from.each = source->patch > 0;
    from.unlabelled = 1;
    from.rank = 0; /* every process has all sequences: they are drawn in any order */
    from.ranks = 1;
    fin_status status = fin_bag_set_read(&bags, &from, progress, err);
    if (!status)
        status = source->patch > 0 ? fini_images_map(bags, source, &map, err)
                                   : order_columns(bags, source, &map, err);
    if (!status)
        status = build(out, bags, &map, source, err);
    if (status) {
        fin_token_set_destroy(*out);
        *out = NULL;
    }
    fini_free(map.at);
    fin_bag_set_destroy(bags);
    return status;
}
