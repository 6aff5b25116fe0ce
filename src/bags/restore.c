/* A fit from its tensors (tensors.c), which may come from a hostile file.
 *
 * Nothing is believed: every tensor must be there with the type and the shape that settings and the
 * sizes before it ask for, every number must be finite and in its range. Sizes are compared with
 * shapes of tensors, whose data the caller vouches for, before anything is allocated. */
#include "bags/map.h"

#include <stdio.h>
#include <string.h>

/* FEATURES: of a group of columns, far more than settings allow. */
enum { PARTS = 64, MEMBERS = 4096, CLASSES = 1000000, TEXT = 65536, FEATURES = 1 << 20 };

typedef struct source {
    const fin_tensor *tensors;
    int64_t count;
    fin_error *err;
} source;

/* The tensor, with its type and shape as they must be (fini_tensor_fits). */
static const fin_tensor *find(const source *s, const char *prefix, const char *name,
                              fin_dtype dtype, int64_t rows, int64_t columns)
{
    const fin_tensor *t = fini_tensor_find(s->tensors, s->count, prefix, name);
    if (!t)
        fini_fail(s->err, FIN_ERR_FORMAT,
                  "the model has no tensor '%s%s'; the file is not complete", prefix, name);
    else if (fini_tensor_fits(t, dtype, rows, columns) && (t->data || rows == 0))
        return t;
    else
        fini_fail(s->err, FIN_ERR_FORMAT,
                  "the tensor '%s%s' of the model has not the type and shape that its settings and "
                  "the other tensors ask for",
                  prefix, name);
    return NULL;
}

/* Copies of a few numbers; tensors of a file need not be aligned. */
static fin_status counts_of(const source *s, const char *prefix, const char *name, int64_t n,
                            int64_t *to)
{
    const fin_tensor *t = find(s, prefix, name, FIN_I64, n, 0);
    if (!t)
        return FIN_ERR_FORMAT;
    memcpy(to, t->data, (size_t)n * sizeof *to);
    for (int64_t i = 0; i < n; i++)
        if (to[i] < 0 || to[i] > INT64_C(1) << 50)
            return fini_fail(s->err, FIN_ERR_FORMAT,
                             "number %lld of '%s%s' is %lld; that cannot be a count", (long long)i,
                             prefix, name, (long long)to[i]);
    return FIN_OK;
}

static fin_status numbers_of(const source *s, const char *prefix, const char *name, int64_t rows,
                             int64_t columns, double *to)
{
    const fin_tensor *t = find(s, prefix, name, FIN_F64, rows, columns);
    int64_t n = rows * (columns ? columns : 1);
    if (!t)
        return FIN_ERR_FORMAT;
    memcpy(to, t->data, (size_t)n * sizeof *to);
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(to[i]) <= 1e200))
            return fini_fail(s->err, FIN_ERR_FORMAT,
                             "number %lld of '%s%s' is not finite, or too large for a model",
                             (long long)i, prefix, name);
    return FIN_OK;
}

/* ---- settings of a part ------------------------------------------------------------------------------ */

/* One line "name=value"; names that this version does not know are passed over. */
static fin_status read_line(char *line, fin_fit_settings *settings, fin_error *err)
{
    char *value = strchr(line, '='), basis[] = "basis";
    if (!value)
        return fini_fail(err, FIN_ERR_FORMAT, "the settings of the model have a line without '='");
    *value++ = '\0';
    if (strcmp(line, "features") == 0) /* its name in version 0.1 */
        line = basis;
    if (!fin_settings_find(&fin_fit_table, line))
        return FIN_OK;
    fin_error why = {FIN_OK, ""};
    if (fin_settings_parse(&fin_fit_table, settings, line, value, &why))
        return fini_fail(err, FIN_ERR_FORMAT, "a setting of the model: %s", why.message);
    return FIN_OK;
}

static fin_status read_settings(const source *s, const char *prefix, fin_fit_settings *settings)
{
    const fin_tensor *t = find(s, prefix, "settings", FIN_U8, -1, 0);
    if (!t)
        return FIN_ERR_FORMAT;
    if (t->shape[0] > TEXT)
        return fini_fail(s->err, FIN_ERR_FORMAT, "the settings of the model are %lld letters long",
                         (long long)t->shape[0]);
    char *text = fini_alloc((size_t)t->shape[0] + 1);
    if (!text)
        return fini_fail_memory(s->err, (size_t)t->shape[0] + 1, "settings");
    memcpy(text, t->data, (size_t)t->shape[0]);
    text[t->shape[0]] = '\0';
    fin_settings_defaults(&fin_fit_table, settings);
    fin_status status = FIN_OK;
    for (char *line = text, *next; *line && !status; line = next) {
        char *end = strchr(line, '\n');
        next = end ? end + 1 : line + strlen(line);
        if (end)
            *end = '\0';
        status = read_line(line, settings, s->err);
    }
    fini_free(text);
    fin_error why = {FIN_OK, ""};
    if (!status && fin_settings_validate(&fin_fit_table, settings, &why))
        status = fini_fail(s->err, FIN_ERR_FORMAT, "settings of the model: %s", why.message);
    return status;
}

/* ---- the map of a part ----------------------------------------------------------------------------------- */

/* Copies n numbers from a tensor; those that are not between low and high are refused. */
static fin_status copy(const source *s, const char *prefix, const char *name, int64_t n, double low,
                       double high, double **to)
{
    const fin_tensor *t = find(s, prefix, name, FIN_F64, n, 0);
    fin_status status = t ? fini_numbers(to, 1, n, "a map from a file", s->err) : FIN_ERR_FORMAT;
    if (status)
        return status;
    const double *x = t->data;
    for (int64_t i = 0; i < n; i++) {
        (*to)[i] = x[i];
        if (!(x[i] >= low && x[i] <= high))
            return fini_fail(s->err, FIN_ERR_FORMAT,
                             "the model's tensor %s%s has %g at place %lld; it should be between "
                             "%g and %g",
                             prefix, name, x[i], (long long)i, low, high);
    }
    return FIN_OK;
}

static fin_status restore_columns(fini_map *map, const source *s, const fin_tensor *t)
{
    memcpy(map->center, t->data, 4 * (size_t)map->s * sizeof(double));
    for (int64_t j = 0; j < map->s; j++) {
        bool good = isfinite(map->center[j]) && map->scale[j] >= 0 && isfinite(map->scale[j]) &&
                    map->bound[j] >= 0 && map->spread[j] >= 0 && isfinite(map->spread[j]);
        if (!good)
            return fini_fail(s->err, FIN_ERR_FORMAT,
                             "the model's column %lld has centre %g, scale %g, bound %g and spread "
                             "%g; the first must be finite, the others not negative",
                             (long long)j, map->center[j], map->scale[j], map->bound[j],
                             map->spread[j]);
        map->used += map->scale[j] > 0;
    }
    return FIN_OK;
}

static fin_status restore_features(fini_map *map, const source *s, const char *prefix)
{
    const fin_tensor *groups = find(s, prefix, "groups", FIN_I64, 2, 0);
    const fin_tensor *bandwidth = groups ? find(s, prefix, "bandwidth", FIN_F64, 2, 0) : NULL;
    if (!bandwidth)
        return FIN_ERR_FORMAT;
    memcpy(map->group_m, groups->data, sizeof map->group_m);
    memcpy(map->bandwidth, bandwidth->data, sizeof map->bandwidth);
    for (int g = 0; g < 2; g++) {
        int64_t m = map->group_m[g], most = g < fini_map_groups(map) ? FEATURES : 0;
        bool there = g < fini_map_groups(map);
        if (m < 0 || m > most || (map->kind == 1 && m % 2) ||
            !(map->bandwidth[g] >= 0 && map->bandwidth[g] <= 1e100) ||
            (there && !(map->bandwidth[g] > 0)))
            return fini_fail(s->err, FIN_ERR_FORMAT,
                             "the model has %lld features of bandwidth %g in group %d of its "
                             "columns, which cannot be",
                             (long long)m, map->bandwidth[g], g);
        map->m += m;
    }
    int64_t landmarks, whiten;
    if (map->s > (INT64_MAX >> 24))
        return fini_fail(s->err, FIN_ERR_FORMAT, "the model has %lld columns", (long long)map->s);
    fini_map_sizes(map, &landmarks, &whiten);
    fin_status status = copy(s, prefix, "landmarks", landmarks, -1e150, 1e150, &map->landmarks);
    if (!status && map->kind == 0)
        status = copy(s, prefix, "whiten", whiten, -1e150, 1e150, &map->whiten);
    if (!status)
        status = copy(s, prefix, "shift", map->m, -1e150, 1e150, &map->shift);
    if (!status)
        status = copy(s, prefix, "stretch", map->m, 0, 1e150, &map->stretch);
    return status;
}

fin_status fini_map_restore(fini_map *map, const fin_fit_settings *settings, const char *prefix,
                            const fin_tensor *tensors, int64_t count, fin_error *err)
{
    source s = {tensors, count, err};
    *map = (fini_map){0};
    const fin_tensor *columns = find(&s, prefix, "columns", FIN_F64, 4, -1);
    if (!columns)
        return FIN_ERR_FORMAT;
    int64_t d = columns->shape[1];
    bool thrice = settings->model == FIN_MODEL_EMBEDDING;
    if (thrice && (d < 4 || d % 3 != 1))
        return fini_fail(err, FIN_ERR_FORMAT,
                         "the model's tensor %scolumns has %lld columns, which are not the "
                         "statistics of tokens",
                         prefix, (long long)d);
    fin_status status = fini_map_open(map, settings, thrice ? d / 3 : d, err);
    if (!status)
        status = restore_columns(map, &s, columns);
    if (!status && map->features)
        status = restore_features(map, &s, prefix);
    map->p = map->linear + map->m;
    if (status)
        fini_map_close(map);
    return status;
}

/* ---- a part ---------------------------------------------------------------------------------------------- */

static fin_status restore_members(const source *s, const char *prefix, fini_part *part)
{
    int64_t wanted, q = part->form->keys(&part->shape) + part->form->values(&part->shape);
    int64_t counts[5];
    double numbers[3];
    fin_status status = counts_of(s, prefix, "counts", 5, counts);
    if (!status)
        status = numbers_of(s, prefix, "numbers", 3, 0, numbers);
    if (status)
        return status;
    if (__builtin_mul_overflow(q, part->map.p, &wanted) ||
        __builtin_add_overflow(wanted, part->form->extras(&part->shape), &wanted) ||
        counts[0] < 1 || counts[0] > MEMBERS || counts[1] != wanted)
        return fini_fail(s->err, FIN_ERR_FORMAT,
                         "part '%s' of the model has %lld members of %lld numbers; its settings "
                         "ask for another number",
                         prefix, (long long)counts[0], (long long)counts[1]);
    if (!(numbers[0] >= 0 && numbers[0] <= 1 + 1e-9 && numbers[1] >= 0))
        return fini_fail(s->err, FIN_ERR_FORMAT,
                         "part '%s' of the model has a weight or a noise that is out of range",
                         prefix);
    if (!find(s, prefix, "members", FIN_F64, counts[0], counts[1]))
        return FIN_ERR_FORMAT; /* before memory is taken for it */
    part->members = counts[0];
    part->parameters = counts[1];
    part->iterations = counts[2];
    part->evaluations = counts[3];
    part->unfinished = counts[4];
    part->weight = numbers[0];
    part->noise = numbers[1];
    part->loss = numbers[2];
    part->penalty = fini_alloc_array(part->members, sizeof(double));
    part->member = fini_alloc_array(part->members, (size_t)part->parameters * sizeof(double));
    if (!part->penalty || !part->member)
        return fini_fail_memory(s->err, (size_t)part->parameters * sizeof(double), "parameters");
    status = numbers_of(s, prefix, "penalty", part->members, 0, part->penalty);
    if (!status)
        status = numbers_of(s, prefix, "members", part->members, part->parameters, part->member);
    return status;
}

static fin_status restore_part(const source *s, const fin_fit *fit, int64_t k, fini_part *part)
{
    char prefix[32];
    snprintf(prefix, sizeof prefix, "%lld.", (long long)k);
    fin_status status = read_settings(s, prefix, &part->settings);
    if (status)
        return status;
    fini_part_shape(part, fit->classes);
    if (!part->form || (part->form == &fini_bag_any && fit->classes != 2))
        return fini_fail(s->err, FIN_ERR_FORMAT,
                         "part '%s' of the model is auto or a stack, or not for these classes",
                         prefix);
    status = fini_map_restore(&part->map, &part->settings, prefix, s->tensors, s->count, s->err);
    if (!status && part->map.d != fit->d)
        status = fini_fail(s->err, FIN_ERR_FORMAT,
                           "part '%s' of the model is for %lld columns, the model for %lld", prefix,
                           (long long)part->map.d, (long long)fit->d);
    if (!status)
        status = restore_members(s, prefix, part);
    return status;
}

/* ---- the fit --------------------------------------------------------------------------------------------- */

static const fin_tensor *there(const source *s, const char *name)
{
    return fini_tensor_find(s->tensors, s->count, "", name);
}

/* A model that is not calibrated, or of an earlier version, has no such tensor. */
static fin_status restore_sharpness(const source *s, fin_fit *fit)
{
    if (!there(s, "sharpness"))
        return FIN_OK;
    fin_status status = numbers_of(s, "", "sharpness", 1, 0, &fit->sharpness);
    const double most = FINI_SHARPEST * (1 + 1e-9);
    if (!status && !(fit->classes && fit->sharpness >= 1 / most && fit->sharpness <= most))
        status =
            fini_fail(s->err, FIN_ERR_FORMAT,
                      "the model takes probabilities of %lld classes to the power %g; it is "
                      "%g to %g, and for classes only",
                      (long long)fit->classes, fit->sharpness, 1 / FINI_SHARPEST, FINI_SHARPEST);
    return status;
}

/* The part of an earlier version that locates: the heaviest that can. */
static int64_t heaviest_locator(const fin_fit *fit)
{
    int64_t best = -1;
    for (int64_t k = 0; k < fit->parts; k++)
        if (fit->part[k].form->locate && (best < 0 || fit->part[k].weight > fit->part[best].weight))
            best = k;
    return best;
}

/* What inner folds said, and which part locates. */
static fin_status restore_choice(const source *s, fin_fit *fit)
{
    int64_t choice[2];
    double inner[4];
    fit->locator = heaviest_locator(fit);
    if (!there(s, "choice"))
        return FIN_OK;
    fin_status status = counts_of(s, "", "choice", 2, choice);
    if (!status)
        status = numbers_of(s, "", "inner", 4, 0, inner);
    if (status)
        return status;
    const double most = FINI_SHARPEST * (1 + 1e-9);
    if (choice[0] > (fit->classes == 2) || choice[1] > fit->parts ||
        (choice[1] && !fit->part[choice[1] - 1].form->locate) ||
        !(inner[3] >= 1 / most && inner[3] <= most))
        return fini_fail(
            s->err, FIN_ERR_FORMAT,
            "the model has a part that locates, an order of classes or a sharpness that "
            "cannot be");
    fit->swapped = choice[0];
    for (int64_t k = 0; k < fit->parts; k++)
        fit->part[k].shape.positive ^= fit->swapped;
    fit->locator = choice[1] - 1;
    fit->inner_loss = inner[0] >= 0 ? inner[0] : NAN;
    fit->base_loss = inner[1] >= 0 ? inner[1] : NAN;
    fit->locator_loss = inner[2] >= 0 ? inner[2] : NAN;
    fit->locator_sharpness = inner[3];
    return FIN_OK;
}

static int not_descending(const int64_t *numbers, int64_t n)
{
    for (int64_t i = 1; i < n; i++)
        if (numbers[i] < numbers[i - 1])
            return 0;
    return 1;
}

/* What training data were like. */
static fin_status restore_memory(const source *s, fin_fit *fit)
{
    fin_status status = FIN_OK;
    if (there(s, "range")) {
        if (!find(s, "", "range", FIN_F64, 2, fit->d))
            return FIN_ERR_FORMAT; /* before memory is taken for it */
        fit->range = fini_alloc_array(fit->d, 2 * sizeof *fit->range);
        if (!fit->range)
            return fini_fail_memory(s->err, (size_t)fit->d * 2 * sizeof *fit->range, "a model");
        status = numbers_of(s, "", "range", 2, fit->d, fit->range);
    }
    const fin_tensor *hashes = there(s, "hashes");
    if (status || !hashes)
        return status;
    hashes = find(s, "", "hashes", FIN_I64, -1, 0);
    if (!hashes)
        return FIN_ERR_FORMAT;
    if (hashes->shape[0] > fit->bags) /* before memory is taken for it */
        return fini_fail(s->err, FIN_ERR_FORMAT,
                         "the model has hashes of %lld bags, and was fitted to %lld",
                         (long long)hashes->shape[0], (long long)fit->bags);
    fit->hash = fini_alloc_array(hashes->shape[0] ? hashes->shape[0] : 1, sizeof *fit->hash);
    if (!fit->hash)
        return fini_fail_memory(s->err, (size_t)hashes->shape[0] * sizeof *fit->hash, "a model");
    fit->hashes = hashes->shape[0];
    memcpy(fit->hash, hashes->data, (size_t)fit->hashes * sizeof *fit->hash);
    if (!not_descending(fit->hash, fit->hashes))
        return fini_fail(s->err, FIN_ERR_FORMAT, "the model's hashes of bags do not ascend");
    return FIN_OK;
}

static fin_status restore_all(const source *s, fin_fit *fit)
{
    int64_t counts[5];
    double numbers[3], weight = 0;
    fin_status status = counts_of(s, "", "counts", 5, counts);
    if (!status)
        status = numbers_of(s, "", "numbers", 3, 0, numbers);
    if (status)
        return status;
    if (counts[0] < 1 || counts[0] > PARTS || counts[1] == 1 || counts[1] > CLASSES ||
        counts[2] < 1 || !(numbers[1] > 0) || !(numbers[2] >= 0))
        return fini_fail(s->err, FIN_ERR_FORMAT,
                         "a model of %lld parts for %lld classes and %lld columns, labels divided "
                         "by %g: that is not one",
                         (long long)counts[0], (long long)counts[1], (long long)counts[2],
                         numbers[1]);
    fit->classes = counts[1];
    fit->d = counts[2];
    fit->bags = counts[3];
    fit->tokens = counts[4];
    fit->label_center = numbers[0];
    fit->label_scale = numbers[1];
    fit->noise = numbers[2];
    status = restore_sharpness(s, fit);
    if (status)
        return status;
    fit->part = fini_alloc_array(counts[0], sizeof *fit->part);
    if (!fit->part)
        return fini_fail_memory(s->err, (size_t)counts[0] * sizeof *fit->part, "a model");
    memset(fit->part, 0, (size_t)counts[0] * sizeof *fit->part);
    fit->parts = counts[0];
    for (int64_t k = 0; k < fit->parts && !status; k++) {
        status = restore_part(s, fit, k, &fit->part[k]);
        weight += fit->part[k].weight;
    }
    if (!status && !(fabs(weight - 1) < 1e-6))
        status = fini_fail(s->err, FIN_ERR_FORMAT,
                           "the weights of the model's parts sum to %g, not to 1", weight);
    if (!status)
        status = restore_choice(s, fit);
    return status ? status : restore_memory(s, fit);
}

fin_status fin_fit_restore(fin_fit **out, const fin_fit_settings *settings,
                           const fin_tensor *tensors, int64_t count, fin_error *err)
{
    *out = NULL;
    fin_status status = fin_settings_validate(&fin_fit_table, settings, err);
    if (status)
        return status;
    fin_fit *fit = fini_alloc(sizeof *fit);
    if (!fit)
        return fini_fail_memory(err, sizeof *fit, "a model");
    *fit = (fin_fit){.settings = *settings,
                     .sharpness = 1,
                     .locator = -1,
                     .locator_sharpness = 1,
                     .inner_loss = NAN,
                     .base_loss = NAN,
                     .locator_loss = NAN};
    source s = {tensors, count, err};
    status = restore_all(&s, fit);
    if (!status)
        status = fini_fit_finish(fit, err);
    if (status) {
        fin_fit_destroy(fit);
        return status;
    }
    *out = fit;
    return FIN_OK;
}
