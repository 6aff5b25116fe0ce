/* The numbers of a fit as named tensors, for files, and back from files that may be hostile.
 *
 *     counts, numbers          of the fit: parts, classes, columns, bags, tokens; the labels' centre
 *                              and scale, the noise
 *     sharpness                power of the probabilities, if it is not 1
 *     choice                   are two classes swapped inside; the part that locates (from 1; 0: none)
 *     inner                    losses on inner folds: of the fit, of the base rate, of what locates (-1: not
 *                              known); sharpness of what locates
 *     range, hashes            of training tokens (2, d); of training bags (same.c)
 *     K.settings               of part K, as lines "name=value": a later version that knows more
 *                              settings can still be read, and so can an earlier one
 *     K.counts, K.numbers      members, parameters, iterations, evaluations, unfinished; weight,
 *                              noise, loss
 *     K.penalty, K.members     (members), (members, parameters)
 *     K.draws                  instead of members, as floats, where they are draws from a posterior
 *     K.columns                (4, s) of the map: centres, scales, bounds, spreads
 *     K.groups, K.bandwidth    (2) features of each group of columns, if the map has features
 *     K.landmarks, K.whiten    numbers of all groups
 *     K.shift, K.stretch       (m)
 *
 * Version 0.1 wrote no choice, inner, range and hashes. Tensors point into the fit, so what is not an
 * array there is made one when a fit is complete. */
#include "bags/map.h"

#include <stdio.h>
#include <string.h>

/* FEATURES: of a group of columns, far more than settings allow. */
enum { PARTS = 64, MEMBERS = 4096, CLASSES = 1000000, TEXT = 65536, FEATURES = 1 << 20 };

#define COUNTS .low = 0, .high = 0x1p50
#define NUMBERS .low = -1e200, .high = 1e200
#define FIELDS(list) list, (int)(sizeof(list) / sizeof *(list))

/* ---- a map ----------------------------------------------------------------------------------- */

static int64_t landmark_numbers(const void *object)
{
    const fini_map *map = object;
    int64_t count = 0;
    for (int g = 0; g < fini_map_groups(map); g++)
        count += (map->kind == 0 ? map->group_m[g] : map->group_m[g] / 2) * fini_map_width(map, g);
    return count;
}

static int64_t whiten_numbers(const void *object)
{
    const fini_map *map = object;
    int64_t count = 0;
    for (int g = 0; g < fini_map_groups(map); g++)
        count += map->group_m[g] * map->group_m[g];
    return count;
}

static bool has_features(const void *object)
{
    return ((const fini_map *)object)->features != 0;
}

static bool has_whiten(const void *object)
{
    return has_features(object) && ((const fini_map *)object)->kind == 0;
}

static fin_status check_columns(void *object, fin_error *err)
{
    fini_map *map = object;
    fini_map_cut(map);
    for (int64_t j = 0; j < map->s; j++) {
        bool good = isfinite(map->center[j]) && map->scale[j] >= 0 && isfinite(map->scale[j]) &&
                    map->bound[j] >= 0 && map->spread[j] >= 0 && isfinite(map->spread[j]);
        if (!good)
            return fini_fail(err, FIN_ERR_FORMAT,
                             "column %lld has centre %g, scale %g, bound %g and spread %g; the "
                             "first must be finite, the others not negative",
                             (long long)j, map->center[j], map->scale[j], map->bound[j],
                             map->spread[j]);
        map->used += map->scale[j] > 0;
    }
    return FIN_OK;
}

static fin_status check_groups(void *object, fin_error *err)
{
    fini_map *map = object;
    if (map->s > (INT64_MAX >> 24))
        return fini_fail(err, FIN_ERR_FORMAT, "there are %lld columns", (long long)map->s);
    for (int g = 0; g < 2; g++) {
        bool there = g < fini_map_groups(map);
        int64_t m = map->group_m[g];
        if (m > (there ? FEATURES : 0) || (map->kind == 1 && m % 2) ||
            (there && !(map->bandwidth[g] > 0)))
            return fini_fail(err, FIN_ERR_FORMAT,
                             "%lld features of bandwidth %g in group %d of the columns cannot be",
                             (long long)m, map->bandwidth[g], g);
        map->m += m;
    }
    return FIN_OK;
}

#define MAP(name_, type, member)                                                                   \
    .name = name_, .dtype = FIN_##type, .at = offsetof(fini_map, member)
#define MAP_NUMBERS .flags = FINI_STATE_OWNED, .low = -1e150, .high = 1e150

static const fini_state_field map_fields[] = {
    {MAP("columns", F64, center), .flags = FINI_STATE_OWNED | FINI_STATE_ANY, .rows = 4,
     .columns = FINI_SIZE(fini_map, s), .check = check_columns},
    {MAP("groups", I64, group_m), .rows = 2, COUNTS, .has = has_features},
    {MAP("bandwidth", F64, bandwidth), .rows = 2, .low = 0, .high = 1e100, .has = has_features,
     .check = check_groups},
    {MAP("landmarks", F64, landmarks), MAP_NUMBERS, .count = landmark_numbers, .has = has_features},
    {MAP("whiten", F64, whiten), MAP_NUMBERS, .count = whiten_numbers, .has = has_whiten},
    {MAP("shift", F64, shift), MAP_NUMBERS, .rows = FINI_SIZE(fini_map, m), .has = has_features},
    {MAP("stretch", F64, stretch), .flags = FINI_STATE_OWNED, .high = 1e150,
     .rows = FINI_SIZE(fini_map, m), .has = has_features},
};
const fini_state fini_map_state = {"model", "other settings", FIELDS(map_fields)};

fin_status fini_map_restore(fini_map *map, const fin_fit_settings *settings, int64_t d,
                            const fini_state_source *from, fin_error *err)
{
    fin_status status = fini_map_open(map, settings, d, err);
    if (!status)
        status = fini_state_load(&fini_map_state, map, from, err);
    map->p = map->linear + map->m;
    if (status)
        fini_map_close(map);
    return status;
}

/* ---- settings of a part ---------------------------------------------------------------------- */

/* "name=value" for every setting, a line each. */
static fin_status write_settings(fini_part *part, fin_error *err)
{
    enum { ROOM = 2048 };
    size_t used = 0;
    fini_free(part->text);
    part->text = fini_alloc(ROOM);
    if (!part->text)
        return fini_fail_memory(err, ROOM, "settings");
    for (int i = 0; i < fin_fit_table.count; i++) {
        char value[64];
        const fin_field *field = &fin_fit_table.fields[i];
        fin_settings_text(field, &part->settings, value, sizeof value);
        int more = snprintf(part->text + used, ROOM - used, "%s=%s\n", field->name, value);
        if (more < 0 || (size_t)more >= ROOM - used)
            return fini_fail(err, FIN_ERR_NUMERIC, "the settings do not fit %d letters", ROOM);
        used += (size_t)more;
    }
    part->letters = (int64_t)used;
    return FIN_OK;
}

/* One line "name=value"; names that this version does not know are passed over. */
static fin_status read_line(char *line, fin_fit_settings *settings, fin_error *err)
{
    char *value = strchr(line, '='), basis[] = "basis";
    if (!value)
        return fini_fail(err, FIN_ERR_FORMAT, "there is a line without '='");
    *value++ = '\0';
    if (strcmp(line, "features") == 0) /* its name in version 0.1 */
        line = basis;
    if (!fin_settings_find(&fin_fit_table, line))
        return FIN_OK;
    fin_status status = fin_settings_parse(&fin_fit_table, settings, line, value, err);
    return status ? FIN_ERR_FORMAT : FIN_OK;
}

static fin_status read_settings(void *object, fin_error *err)
{
    fini_part *part = object;
    fin_settings_defaults(&fin_fit_table, &part->settings, sizeof part->settings);
    for (char *line = part->text, *next; *line; line = next) {
        char *end = strchr(line, '\n');
        next = end ? end + 1 : line + strlen(line);
        if (end)
            *end = '\0';
        FINI_TRY(read_line(line, &part->settings, err));
    }
    if (fin_settings_validate(&fin_fit_table, &part->settings, err))
        return FIN_ERR_FORMAT;
    return FIN_OK;
}

/* ---- a part ---------------------------------------------------------------------------------- */

static fin_status check_part_counts(void *object, fin_error *err)
{
    fini_part *part = object;
    if (part->members < 1 || part->members > MEMBERS || part->parameters < 1)
        return fini_fail(err, FIN_ERR_FORMAT, "%lld members of %lld numbers cannot be",
                         (long long)part->members, (long long)part->parameters);
    return FIN_OK;
}

static fin_status check_part_numbers(void *object, fin_error *err)
{
    fini_part *part = object;
    if (!(part->weight >= 0 && part->weight <= 1 + 1e-9 && part->noise >= 0))
        return fini_fail(err, FIN_ERR_FORMAT, "the weight %g or the noise %g is out of range",
                         part->weight, part->noise);
    return FIN_OK;
}

static bool is_drawn(const void *object)
{
    const fini_bag_model *model = fini_bag_model_of(((const fini_part *)object)->settings.model);
    return model && model->is.draws;
}

static bool is_fitted(const void *object)
{
    return !is_drawn(object);
}

/* Members from the draws of a file. */
static fin_status widen(void *object, fin_error *err)
{
    fini_part *part = object;
    part->member = fini_alloc_array(part->members, (size_t)part->parameters * sizeof(double));
    if (!part->member)
        return fini_fail_memory(err, (size_t)part->parameters * sizeof(double), "draws");
    for (int64_t i = 0; i < part->members * part->parameters; i++)
        part->member[i] = (double)part->draw[i];
    return FIN_OK;
}

/* Draws for a file, from members, which are floats by value. */
static fin_status narrow(fini_part *part, fin_error *err)
{
    if (!is_drawn(part) || part->draw)
        return FIN_OK;
    part->draw = fini_alloc_array(part->members, (size_t)part->parameters * sizeof(float));
    if (!part->draw)
        return fini_fail_memory(err, (size_t)part->parameters * sizeof(float), "draws");
    for (int64_t i = 0; i < part->members * part->parameters; i++)
        part->draw[i] = (float)part->member[i];
    return FIN_OK;
}

#define PART(name_, type, member)                                                                  \
    .name = name_, .dtype = FIN_##type, .at = offsetof(fini_part, member)

static const fini_state_field part_fields[] = {
    {PART("settings", U8, text), .flags = FINI_STATE_OWNED | FINI_STATE_FREE,
     .rows = FINI_SIZE(fini_part, letters), .most = TEXT, .check = read_settings},
    {PART("counts", I64, members), .rows = 5, COUNTS, .check = check_part_counts},
    {PART("numbers", F64, weight), .rows = 3, NUMBERS, .check = check_part_numbers},
    {PART("penalty", F64, penalty), .flags = FINI_STATE_OWNED, NUMBERS,
     .rows = FINI_SIZE(fini_part, members)},
    {PART("members", F64, member), .flags = FINI_STATE_OWNED, NUMBERS,
     .rows = FINI_SIZE(fini_part, members), .columns = FINI_SIZE(fini_part, parameters),
     .has = is_fitted},
    {PART("draws", F32, draw), .flags = FINI_STATE_OWNED, NUMBERS,
     .rows = FINI_SIZE(fini_part, members), .columns = FINI_SIZE(fini_part, parameters),
     .has = is_drawn, .check = widen},
};
const fini_state fini_part_state = {"model", "other settings", FIELDS(part_fields)};
_Static_assert(offsetof(fini_part, unfinished) == offsetof(fini_part, members) + 32 &&
                   offsetof(fini_part, loss) == offsetof(fini_part, weight) + 16,
               "counts and numbers of a part stand as in files");

static fin_status restore_part(const fin_fit *fit, fini_part *part, const fini_state_source *from,
                               fin_error *err)
{
    FINI_TRY(fini_state_load(&fini_part_state, part, from, err));
    fini_part_shape(part, fit->classes);
    if (!part->form || (part->model->is.sides && fit->classes != 2))
        return fini_fail(err, FIN_ERR_FORMAT,
                         "part '%s' of the model is auto or a stack, or not for these classes",
                         from->prefix);
    FINI_TRY(fini_map_restore(&part->map, &part->settings, fit->d, from, err));
    int64_t wanted, q = part->form->keys(&part->shape) + part->form->values(&part->shape);
    if (__builtin_mul_overflow(q, part->map.p, &wanted) ||
        __builtin_add_overflow(wanted, part->form->extras(&part->shape), &wanted) ||
        part->parameters != wanted)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "tensor '%smembers' has members of %lld numbers; the settings of the part "
                         "ask for another number",
                         from->prefix, (long long)part->parameters);
    return FIN_OK;
}

/* ---- the fit --------------------------------------------------------------------------------- */

static fin_status check_numbers(void *object, fin_error *err)
{
    fin_fit *fit = object;
    if (fit->parts < 1 || fit->parts > PARTS || fit->classes == 1 || fit->classes > CLASSES ||
        fit->d < 1 || !(fit->label_scale > 0) || !(fit->noise >= 0))
        return fini_fail(err, FIN_ERR_FORMAT,
                         "a model of %lld parts for %lld classes and %lld columns, labels divided "
                         "by %g: that is not one",
                         (long long)fit->parts, (long long)fit->classes, (long long)fit->d,
                         fit->label_scale);
    return FIN_OK;
}

static bool is_sharp(const void *object)
{
    return ((const fin_fit *)object)->sharpness != 1;
}

static fin_status check_sharpness(void *object, fin_error *err)
{
    if (!((const fin_fit *)object)->classes)
        return fini_fail(err, FIN_ERR_FORMAT, "a power of probabilities, and there are no classes");
    return FIN_OK;
}

static bool has_choice(const void *object)
{
    return ((const fin_fit *)object)->choice[0] >= 0;
}

static fin_status check_hashes(void *object, fin_error *err)
{
    const fin_fit *fit = object;
    for (int64_t i = 1; i < fit->hashes; i++)
        if (fit->hash[i] < fit->hash[i - 1])
            return fini_fail(err, FIN_ERR_FORMAT, "hashes of bags do not ascend");
    return FIN_OK;
}

#define FIT(name_, type, member) .name = name_, .dtype = FIN_##type, .at = offsetof(fin_fit, member)
#define SHARPEST (FINI_SHARPEST * (1 + 1e-9))

static const fini_state_field fit_fields[] = {
    {FIT("counts", I64, parts), .rows = 5, COUNTS},
    {FIT("numbers", F64, label_center), .rows = 3, NUMBERS, .check = check_numbers},
    {FIT("sharpness", F64, sharpness), .flags = FINI_STATE_OPTIONAL, .rows = 1, .low = 1 / SHARPEST,
     .high = SHARPEST, .has = is_sharp, .check = check_sharpness},
    {FIT("choice", I64, choice), .flags = FINI_STATE_OPTIONAL, .rows = 2, .high = PARTS},
    {FIT("inner", F64, inner), .rows = 4, NUMBERS, .has = has_choice},
    {FIT("range", F64, range), .flags = FINI_STATE_OPTIONAL | FINI_STATE_OWNED, .rows = 2,
     .columns = FINI_SIZE(fin_fit, d), NUMBERS},
    {FIT("hashes", I64, hash),
     .flags = FINI_STATE_OPTIONAL | FINI_STATE_OWNED | FINI_STATE_FREE | FINI_STATE_ANY,
     .rows = FINI_SIZE(fin_fit, hashes), .most = FINI_SIZE(fin_fit, bags), .check = check_hashes},
};
const fini_state fini_fit_state = {"model", "other settings", FIELDS(fit_fields)};
_Static_assert(offsetof(fin_fit, tokens) == offsetof(fin_fit, parts) + 32 &&
                   offsetof(fin_fit, noise) == offsetof(fin_fit, label_center) + 16,
               "counts and numbers of a fit stand as in files");

fin_status fini_fit_finish(fin_fit *fit, fin_error *err)
{
    const double losses[] = {fit->inner_loss, fit->base_loss, fit->locator_loss};
    for (int i = 0; i < 3; i++)
        fit->inner[i] = isfinite(losses[i]) ? losses[i] : -1;
    fit->inner[3] = fit->locator_sharpness;
    fit->choice[0] = fit->swapped;
    fit->choice[1] = fit->locator + 1;
    for (int64_t k = 0; k < fit->parts; k++)
        FINI_TRY(write_settings(&fit->part[k], err));
    for (int64_t k = 0; k < fit->parts; k++)
        FINI_TRY(narrow(&fit->part[k], err));
    return FIN_OK;
}

int64_t fin_fit_tensors(const fin_fit *fit, fin_tensor *tensors, int64_t room)
{
    if (!fit)
        return 0;
    fini_tensor_list l = {tensors, 0, tensors ? room : 0};
    fini_state_save(&fini_fit_state, fit, "", &l);
    for (int64_t k = 0; k < fit->parts; k++) {
        char prefix[32];
        snprintf(prefix, sizeof prefix, "%lld.", (long long)k);
        fini_state_save(&fini_part_state, &fit->part[k], prefix, &l);
        fini_state_save(&fini_map_state, &fit->part[k].map, prefix, &l);
    }
    return l.count;
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
static fin_status restore_choice(fin_fit *fit, fin_error *err)
{
    const int64_t *choice = fit->choice;
    const double *inner = fit->inner;
    fit->locator = heaviest_locator(fit);
    if (!has_choice(fit))
        return FIN_OK;
    if (choice[0] > (fit->classes == 2) || choice[1] > fit->parts ||
        (choice[1] && !fit->part[choice[1] - 1].form->locate) ||
        !(inner[3] >= 1 / SHARPEST && inner[3] <= SHARPEST))
        return fini_fail(err, FIN_ERR_FORMAT,
                         "tensors 'choice' and 'inner': a part that locates, an order of classes "
                         "or a sharpness cannot be");
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

static fin_status restore_parts(fin_fit *fit, fini_state_source *from, fin_error *err)
{
    double weight = 0;
    fin_status status = FIN_OK;
    FINI_ROOM(err, "a model", fit->part, fit->parts, 1);
    memset(fit->part, 0, (size_t)fit->parts * sizeof *fit->part);
    for (int64_t k = 0; k < fit->parts && !status; k++) {
        char prefix[32];
        snprintf(prefix, sizeof prefix, "%lld.", (long long)k);
        from->prefix = prefix;
        status = restore_part(fit, &fit->part[k], from, err);
        weight += fit->part[k].weight;
    }
    if (!status && !(fabs(weight - 1) < 1e-6))
        status = fini_fail(err, FIN_ERR_FORMAT,
                           "the weights of the model's parts sum to %g, not to 1", weight);
    return status;
}

fin_status fin_fit_restore(fin_fit **out, const fin_fit_settings *settings,
                           const fin_tensor *tensors, int64_t count, fin_error *err)
{
    FINI_NEED_TO_MAKE(err, out, !count || tensors);
    settings = fini_or_defaults(&fin_fit_table, settings, &(fin_fit_settings){0});
    FINI_TRY(fin_settings_validate(&fin_fit_table, settings, err));
    FINI_MAKE(err, "a model", fin_fit, fit);
    *fit = (fin_fit){.settings = *settings,
                     .sharpness = 1,
                     .locator = -1,
                     .locator_sharpness = 1,
                     .inner_loss = NAN,
                     .base_loss = NAN,
                     .locator_loss = NAN,
                     .choice = {-1}};
    fini_state_source from = {"", tensors, count};
    fin_status status = fini_state_load(&fini_fit_state, fit, &from, err);
    if (!status)
        status = restore_parts(fit, &from, err);
    if (!status)
        status = restore_choice(fit, err);
    if (!status)
        status = fini_fit_finish(fit, err);
    FINI_HAND_OVER(out, fit, status, fin_fit_destroy);
}
