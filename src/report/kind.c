/* The table of figure kinds, and what their files share: which runs, which numbers of them, and
 * whether the study file asks for things that exist. A new kind is one file and one row here. */
#include "report/figure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const fini_figure_kind *const kinds[] = {
    &fini_figure_lines, &fini_figure_training, &fini_figure_portrait,    &fini_figure_quantiles,
    &fini_figure_bars,  &fini_figure_heat,     &fini_figure_calibration, &fini_figure_series,
};
enum { KINDS = sizeof kinds / sizeof *kinds, KEYS_MOST = 24, GROUPS_MOST = 64 };

/* ---- checks --------------------------------------------------------------------------------- */

static fin_status find_kind(const fini_spec *spec, const fini_figure_kind **kind, fin_error *err)
{
    const char *name, *names[KINDS];
    fin_status status = fini_node_text(spec->study->tree, spec->node, "kind", NULL, &name, err);
    if (status)
        return status;
    for (int i = 0; i < KINDS; i++) {
        names[i] = kinds[i]->name;
        *kind = kinds[i];
        if (strcmp(name, names[i]) == 0)
            return FIN_OK;
    }
    const char *near = fin_nearest_name(name, names, KINDS);
    return fini_node_fail(
        spec->study->tree, fini_node_get(spec->node, "kind"), err,
        "there is no kind of figure '%.40s'%s", name,
        fini_did_you_mean(near, "; there are lines, training, portrait, quantiles, bars, heat, "
                                "calibration and series"));
}

static fin_status check_keys(const fini_spec *spec, const fini_figure_kind *kind, fin_error *err)
{
    static const char *const common[] = {"id", "title", "caption", "kind", "from", "where", "each"};
    const char *keys[KEYS_MOST + 1];
    int count = 0;
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        keys[count++] = common[i];
    for (int i = 0; kind->keys[i] && count < KEYS_MOST; i++)
        keys[count++] = kind->keys[i];
    keys[count] = NULL;
    return fini_node_keys(spec->study->tree, spec->node, "a figure", keys, err);
}

fin_status fini_figure_check(const fini_spec *spec, fin_error *err)
{
    const fini_tree *tree = spec->study->tree;
    const fini_figure_kind *kind = NULL;
    const fini_block *block;
    const char *text;
    if (spec->node->kind != FINI_MAP)
        return fini_node_fail(tree, spec->node, err,
                              "a figure must be a map, such as {id: risk, kind: lines, ...}");
    fin_status status = find_kind(spec, &kind, err);
    if (!status)
        status = check_keys(spec, kind, err);
    if (!status)
        status = fini_node_text(tree, spec->node, "id", NULL, &text, err);
    if (!status && !fini_is_id(text))
        status = fini_node_fail(tree, fini_node_get(spec->node, "id"), err,
                                "the id '%.70s' must have 1 to 64 letters, digits, - or _", text);
    if (!status)
        status = fini_node_text(tree, spec->node, "title", "", &text, err);
    if (!status)
        status = fini_node_text(tree, spec->node, "caption", "", &text, err);
    if (!status)
        status = fini_spec_block(spec, NULL, &block, err);
    if (!status)
        status = fini_spec_where(spec, block, spec->node, err);
    return status ? status : kind->check(spec, err);
}

fin_status fini_spec_block(const fini_spec *spec, const fini_node *line, const fini_block **block,
                           fin_error *err)
{
    const fini_node *map = fini_node_get(line, "from") ? line : spec->node;
    return fini_from_read(spec->study, map, &spec->study->blocks[0], block, err);
}

fin_status fini_spec_formula(const fini_spec *spec, const fini_block *block, const fini_node *map,
                             const char *key, fin_error *err)
{
    const fini_node *node = fini_node_get(map, key);
    if (!node)
        return fini_node_fail(spec->study->tree, map, err,
                              "'%s' is missing: a formula of settings and numbers, such as "
                              "%s: log(risk)",
                              key, key);
    return fini_formula_read(spec->study, block, node, NULL, err);
}

fin_status fini_spec_setting(const fini_spec *spec, const fini_block *block, const fini_node *map,
                             const char *key, fin_error *err)
{
    const fini_node *node = fini_node_get(map, key);
    return node ? fini_setting_read(spec->study, block, node, err) : FIN_OK;
}

fin_status fini_spec_where(const fini_spec *spec, const fini_block *block, const fini_node *map,
                           fin_error *err)
{
    fini_where where;
    fin_status status = fini_where_read(spec->study, block, map, &where, err);
    if (!status)
        fini_where_free(&where);
    return status;
}

static fin_status check_limits(const fini_tree *tree, const fini_node *axis, fin_error *err)
{
    const fini_node *limits = fini_node_get(axis, "limits");
    double low, high;
    if (!limits ||
        (limits->kind == FINI_LIST && limits->count == 2 && limits->child[0].kind == FINI_TEXT &&
         limits->child[1].kind == FINI_TEXT && fini_read_number(limits->child[0].text, &low) &&
         fini_read_number(limits->child[1].text, &high) && low < high && isfinite(low) &&
         isfinite(high)))
        return FIN_OK;
    return fini_node_fail(
        tree, limits, err,
        "'limits' must be two finite numbers, the lower one first, such as [0, 1]");
}

fin_status fini_spec_axis(const fini_spec *spec, const fini_block *block, const char *key,
                          bool take, fin_error *err)
{
    static const char *const with[] = {"take", "label", "scale", "limits", NULL};
    const fini_tree *tree = spec->study->tree;
    const fini_node *axis = fini_node_get(spec->node, key);
    if (!axis && take)
        return fini_node_fail(tree, spec->node, err,
                              "a figure of this kind needs '%s', such as %s: {take: lam}", key,
                              key);
    if (!axis)
        return FIN_OK;
    const char *text;
    fin_status status = fini_node_keys(tree, axis, "an axis", take ? with : with + 1, err);
    if (!status)
        status = fini_node_text(tree, axis, "label", "", &text, err);
    if (!status)
        status = fini_node_text(tree, axis, "scale", "linear", &text, err);
    if (!status && strcmp(text, "linear") != 0 && strcmp(text, "log") != 0)
        status = fini_node_fail(tree, fini_node_get(axis, "scale"), err,
                                "a scale is linear or log, not '%.40s'", text);
    if (!status)
        status = check_limits(tree, axis, err);
    return status || !take ? status : fini_spec_formula(spec, block, axis, "take", err);
}

fin_status fini_spec_command(const fini_spec *spec, const fini_block *block, const char *command,
                             const char *what, fin_error *err)
{
    if (strcmp(block->command->name, command) == 0)
        return FIN_OK;
    const fini_node *from = fini_node_get(spec->node, "from");
    return fini_node_fail(spec->study->tree, from ? from : spec->node, err,
                          "a figure of kind %s shows runs of the command %s, and block %.64s is "
                          "%s",
                          what, command, block->id, block->command->name);
}

/* ---- building ------------------------------------------------------------------------------- */

static const char *text_or(const fini_node *map, const char *key, const char *fallback)
{
    const fini_node *node = fini_node_get(map, key);
    return node && node->kind == FINI_TEXT ? node->text : fallback;
}

fin_status fini_figure_build(const fini_spec *spec, fini_figure *figure, fin_error *err)
{
    const fini_figure_kind *kind = NULL;
    figure->study = fini_figure_copy(figure, spec->study->name);
    figure->id = fini_figure_copy(figure, text_or(spec->node, "id", ""));
    figure->title = fini_figure_copy(figure, text_or(spec->node, "title", ""));
    figure->caption = fini_figure_copy(figure, text_or(spec->node, "caption", ""));
    figure->kind = fini_figure_copy(figure, text_or(spec->node, "kind", ""));
    fin_status status = fini_figure_status(figure, err);
    if (!status)
        status = fini_figure_check(spec, err); /* a store may hold a study of another version */
    if (!status)
        status = find_kind(spec, &kind, err);
    if (!status)
        status = kind->build(spec, figure, err);
    return status ? status : fini_figure_finish(figure, err);
}

void fini_spec_scale(const fini_spec *spec, fini_figure *figure, const char *key,
                     const char *fallback, fini_scale *scale)
{
    const fini_node *axis = fini_node_get(spec->node, key);
    const fini_node *limits = fini_node_get(axis, "limits");
    scale->label = fini_figure_copy(figure, text_or(axis, "label", fallback));
    scale->log = strcmp(text_or(axis, "scale", "linear"), "log") == 0;
    if (limits && limits->kind == FINI_LIST && limits->count == 2) {
        fini_read_number(limits->child[0].text, &scale->low);
        fini_read_number(limits->child[1].text, &scale->high);
    }
}

void fini_spec_missing(fini_figure *figure, const char *block, const fini_frame *frame)
{
    long long rows = fini_frame_rows(frame), missing = fini_frame_missing(frame);
    long long failed = fini_frame_failed(frame), all = rows + missing + failed;
    if (missing > 0)
        fini_figure_note(figure, "%lld of %lld run%s of %s %s missing.", missing, all,
                         all == 1 ? "" : "s", block, missing == 1 ? "is" : "are");
    if (failed > 0)
        fini_figure_note(figure, "%lld of %lld run%s of %s failed.", failed, all,
                         all == 1 ? "" : "s", block);
    if (all == 0)
        fini_figure_note(figure, "No run of %s fits what is asked for.", block);
}

fin_status fini_spec_frame(const fini_spec *spec, const fini_node *line, fini_figure *figure,
                           fini_frame **frame, fin_error *err)
{
    *frame = NULL;
    const fini_block *block = NULL;
    fini_where own = {0}, of_line = {0};
    const char **clauses = NULL;
    fin_status status = fini_spec_block(spec, line, &block, err);
    /* A line from another block need not have the settings of the figure's `where`; its own
     * replaces it then. */
    bool other = line && fini_node_get(line, "from");
    if (!status && !other)
        status = fini_where_read(spec->study, block, spec->node, &own, err);
    if (!status && line)
        status = fini_where_read(spec->study, block, line, &of_line, err);
    int count = own.count + of_line.count;
    if (!status && !(clauses = fini_alloc_array(count + 1, sizeof *clauses)))
        status = fini_fail_memory(err, (size_t)count * sizeof *clauses, "a 'where'");
    if (!status) {
        for (int i = 0; i < count; i++)
            clauses[i] = i < own.count ? own.clauses[i] : of_line.clauses[i - own.count];
        status =
            fini_frame_read(spec->store, spec->study->name, block->id, clauses, count, frame, err);
    }
    if (!status)
        fini_spec_missing(figure, block->id, *frame);
    fini_free(clauses);
    fini_where_free(&own);
    fini_where_free(&of_line);
    return status;
}

fin_status fini_spec_values(const fini_frame *frame, const char *formula, fini_figure *figure,
                            fini_values *values, fin_error *err)
{
    fini_formula *parsed = NULL;
    int64_t rows = fini_frame_rows(frame);
    values->count = rows;
    values->drawn = false;
    values->value = fini_figure_take(figure, rows, sizeof(double));
    values->low = fini_figure_take(figure, rows, sizeof(double));
    values->high = fini_figure_take(figure, rows, sizeof(double));
    fin_status status = fini_figure_status(figure, err);
    if (!status)
        status = fini_formula_parse(formula, &parsed, err);
    for (int64_t i = 0; i < rows && !status; i++) {
        fini_number number;
        status = fini_formula_frame(parsed, frame, i, &number, err);
        if (status)
            break;
        bool known = isfinite(number.low) && isfinite(number.high);
        values->value[i] = number.value;
        values->low[i] = known ? number.low : NAN;
        values->high[i] = known ? number.high : NAN;
        values->drawn = values->drawn || number.drawn;
    }
    fini_formula_destroy(parsed);
    return status;
}

/* ---- groups of rows ------------------------------------------------------------------------- */

/* By size where all are numbers: 2, 10, 100. An insertion sort: there are at most GROUPS_MOST. */
static void sort_texts(const char **texts, int count)
{
    double a, b;
    for (int i = 0; i < count; i++)
        if (!fini_read_number(texts[i], &a) || isnan(a))
            return;
    for (int i = 1; i < count; i++)
        for (int k = i; k > 0; k--) {
            fini_read_number(texts[k - 1], &a);
            fini_read_number(texts[k], &b);
            if (a <= b)
                break;
            const char *t = texts[k];
            texts[k] = texts[k - 1];
            texts[k - 1] = t;
        }
}

static int find_text(const char *const *texts, int count, const char *text)
{
    for (int k = 0; k < count; k++)
        if (strcmp(texts[k], text) == 0)
            return k;
    return -1;
}

fin_status fini_spec_groups(const fini_frame *frame, const char *setting, fini_figure *figure,
                            const char ***texts, int *count, int **which, fin_error *err)
{
    const fini_column *column = fini_frame_column(frame, setting);
    int64_t rows = column && column->text ? fini_frame_rows(frame) : 0;
    *count = 0;
    *texts = fini_figure_take(figure, GROUPS_MOST, sizeof **texts);
    *which = fini_figure_take(figure, fini_frame_rows(frame), sizeof **which);
    fin_status status = fini_figure_status(figure, err);
    if (!status && !column)
        status = fini_frame_status(frame, err); /* none, or it could not be read? */
    if (status)
        return status;
    bool cut = false;
    for (int64_t i = 0; i < rows; i++) {
        const char *text = column->text[i] ? column->text[i] : "";
        if (find_text(*texts, *count, text) >= 0)
            continue;
        if (*count < GROUPS_MOST)
            (*texts)[(*count)++] = fini_figure_copy(figure, text);
        else
            cut = true;
    }
    sort_texts(*texts, *count);
    for (int64_t i = 0; i < fini_frame_rows(frame); i++)
        (*which)[i] =
            i < rows ? find_text(*texts, *count, column->text[i] ? column->text[i] : "") : -1;
    if (cut)
        fini_figure_note(figure, "More than %d values of %s: the first ones are shown.",
                         (int)GROUPS_MOST, setting);
    return fini_figure_status(figure, err);
}
