/* The table of figure kinds, and what their files share: which runs, which numbers of them, and
 * whether the study file asks for things that exist. A new kind is one file and one row here. */
#include "report/figure.h"

#include <math.h>
#include <string.h>

static const fini_figure_kind *const kinds[] = {
    &fini_figure_lines, &fini_figure_training, &fini_figure_portrait,    &fini_figure_quantiles,
    &fini_figure_bars,  &fini_figure_heat,     &fini_figure_calibration, &fini_figure_series,
};
enum { KINDS = sizeof kinds / sizeof *kinds, KEYS_MOST = 24, GROUPS_MOST = 64 };

/* ---- asking the node ------------------------------------------------------------------------ */

const fini_node *fini_spec_list(fini_spec *spec, const char *key, const char *such)
{
    static const fini_node none = {.kind = FINI_LIST};
    const fini_node *list = fini_node_get(spec->node, key);
    if (!list || list->kind != FINI_LIST || list->count == 0)
        FINI_ASK_FAIL(&spec->ask, list ? list : spec->node, "this kind of figure needs '%s', %s",
                      key, such);
    return spec->ask.status ? &none : list;
}

fini_mark fini_spec_style(fini_spec *spec, const fini_node *line)
{
    const char *text = fini_ask_text(&spec->ask, line, "style", "solid");
    for (int i = 0; i < FINI_MARK_STYLES; i++)
        if (strcmp(text, fini_mark_name((fini_mark)i)) == 0)
            return (fini_mark)i;
    FINI_ASK_FAIL(&spec->ask, fini_node_get(line, "style"),
                  "a style is solid, dashed, dotted or points, not '%.40s'", text);
    return FINI_MARK_SOLID;
}

const fini_block *fini_spec_block(fini_spec *spec, const fini_node *line)
{
    const fini_node *map = fini_node_get(line, "from") ? line : spec->node;
    const fini_block *first = &spec->study->blocks[0], *block = NULL;
    FINI_ASK(&spec->ask, fini_from_read(spec->study, map, first, &block, spec->ask.err));
    return block ? block : first;
}

const char *fini_spec_formula(fini_spec *spec, const fini_block *block, const fini_node *map,
                              const char *key)
{
    const fini_node *node = fini_node_get(map, key);
    if (!node)
        FINI_ASK_FAIL(&spec->ask, map ? map : spec->node,
                      "'%s' is missing: a formula of settings and numbers, such as %s: log(risk)",
                      key, key);
    FINI_ASK(&spec->ask, fini_formula_read(spec->study, block, node, NULL, spec->ask.err));
    return spec->ask.status ? "" : node->text;
}

void fini_spec_setting(fini_spec *spec, const fini_block *block, const fini_node *map,
                       const char *key)
{
    const fini_node *node = fini_node_get(map, key);
    if (node)
        FINI_ASK(&spec->ask, fini_setting_read(spec->study, block, node, spec->ask.err));
}

void fini_spec_where(fini_spec *spec, const fini_block *block, const fini_node *map)
{
    fini_where where = {0};
    FINI_ASK(&spec->ask, fini_where_read(spec->study, block, map, &where, spec->ask.err));
    fini_where_free(&where);
}

static void check_limits(fini_spec *spec, const fini_node *axis)
{
    const fini_node *limits = fini_node_get(axis, "limits");
    double low, high;
    if (limits &&
        !(limits->kind == FINI_LIST && limits->count == 2 && limits->child[0].kind == FINI_TEXT &&
          limits->child[1].kind == FINI_TEXT && fini_read_number(limits->child[0].text, &low) &&
          fini_read_number(limits->child[1].text, &high) && low < high && isfinite(low) &&
          isfinite(high)))
        FINI_ASK_FAIL(&spec->ask, limits,
                      "'limits' must be two finite numbers, the lower one first, such as [0, 1]");
}

void fini_spec_axis(fini_spec *spec, const char *key, fini_axis_take take)
{
    static const char *const with[] = {"take", "label", "scale", "limits", NULL};
    const fini_block *block = fini_spec_block(spec, NULL);
    const fini_node *axis = fini_node_get(spec->node, key);
    if (!axis && take)
        FINI_ASK_FAIL(&spec->ask, spec->node,
                      "a figure of this kind needs '%s', such as %s: {take: lam}", key, key);
    if (!axis)
        return;
    fini_ask_keys(&spec->ask, axis, "an axis", take ? with : with + 1);
    fini_ask_text(&spec->ask, axis, "label", "");
    const char *scale = fini_ask_text(&spec->ask, axis, "scale", "linear");
    if (strcmp(scale, "linear") != 0 && strcmp(scale, "log") != 0)
        FINI_ASK_FAIL(&spec->ask, fini_node_get(axis, "scale"),
                      "a scale is linear or log, not '%.40s'", scale);
    check_limits(spec, axis);
    if (take)
        fini_spec_formula(spec, block, axis, "take");
    if (take == FINI_TAKE_SETTING)
        fini_spec_setting(spec, block, axis, "take");
}

void fini_spec_command(fini_spec *spec, const char *command, const char *what)
{
    const fini_block *block = fini_spec_block(spec, NULL);
    const fini_node *from = fini_node_get(spec->node, "from");
    if (strcmp(block->command->name, command) != 0)
        FINI_ASK_FAIL(&spec->ask, from ? from : spec->node,
                      "a figure of kind %s shows runs of the command %s, and block %.64s is %s",
                      what, command, block->id, block->command->name);
}

/* ---- a figure ------------------------------------------------------------------------------- */

static const fini_figure_kind *find_kind(fini_spec *spec)
{
    const char *name = fini_ask_text(&spec->ask, spec->node, "kind", NULL), *names[KINDS];
    for (int i = 0; i < KINDS; i++) {
        names[i] = kinds[i]->name;
        if (strcmp(name, names[i]) == 0)
            return kinds[i];
    }
    char hint[FIN_HINT];
    FINI_ASK_FAIL(
        &spec->ask, fini_node_get(spec->node, "kind"), "there is no kind of figure '%.40s'%s", name,
        fin_hint(
            fin_nearest_name(name, names, KINDS),
            "; there are lines, training, portrait, quantiles, bars, heat, calibration and series",
            hint));
    return kinds[0];
}

static void check_keys(fini_spec *spec, const fini_figure_kind *kind)
{
    static const char *const common[] = {"id",   "title", "caption", "kind",
                                         "from", "where", "each",    "key"};
    const char *keys[KEYS_MOST + 1];
    int count = 0;
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        keys[count++] = common[i];
    for (int i = 0; kind->keys[i] && count < KEYS_MOST; i++)
        keys[count++] = kind->keys[i];
    keys[count] = NULL;
    fini_ask_keys(&spec->ask, spec->node, "a figure", keys);
}

fin_status fini_figure_check(fini_spec *spec)
{
    if (spec->node->kind != FINI_MAP)
        return FINI_ASK_FAIL(&spec->ask, spec->node,
                             "a figure must be a map, such as {id: risk, kind: lines, ...}");
    const fini_figure_kind *kind = find_kind(spec);
    check_keys(spec, kind);
    const char *id = fini_ask_text(&spec->ask, spec->node, "id", NULL);
    if (!fini_is_id(id))
        FINI_ASK_FAIL(&spec->ask, fini_node_get(spec->node, "id"),
                      "the id '%.70s' must have 1 to 64 letters, digits, - or _", id);
    fini_ask_text(&spec->ask, spec->node, "title", "");
    fini_ask_text(&spec->ask, spec->node, "caption", "");
    fini_ask_text(&spec->ask, spec->node, "key", "");
    fini_spec_where(spec, fini_spec_block(spec, NULL), spec->node);
    if (!spec->ask.status)
        kind->check(spec);
    return spec->ask.status;
}

static const char *text_or(const fini_node *map, const char *key, const char *fallback)
{
    const fini_node *node = fini_node_get(map, key);
    return node && node->kind == FINI_TEXT ? node->text : fallback;
}

fin_status fini_figure_build(fini_spec *spec, fini_figure *figure)
{
    figure->study = fini_figure_copy(figure, spec->study->name);
    figure->id = fini_figure_copy(figure, text_or(spec->node, "id", ""));
    figure->title = fini_figure_copy(figure, text_or(spec->node, "title", ""));
    figure->caption = fini_figure_copy(figure, text_or(spec->node, "caption", ""));
    figure->kind = fini_figure_copy(figure, text_or(spec->node, "kind", ""));
    FINI_TRY(fini_figure_check(spec)); /* a store may hold a study of another version */
    if (!figure->failed)
        find_kind(spec)->build(spec, figure);
    FINI_TRY(spec->ask.status ? spec->ask.status : fini_figure_status(figure, spec->ask.err));
    return fini_figure_finish(figure, spec->ask.err);
}

const char *fini_symbol(const char *setting)
{
    static const char *const symbols[][2] = {
        {"lam", "λ"},   {"kappa", "κ"}, {"nu", "ν"},          {"theta", "θ"},
        {"eta", "η"},   {"rho", "ρ"},   {"eps", "ε"},         {"gamma", "γ"},
        {"alpha", "α"}, {"mu", "μ"},    {"abs_kappa", "|κ|"}, {"abs_nu", "|ν|"}};
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
        if (strcmp(setting, symbols[i][0]) == 0)
            return symbols[i][1];
    return setting;
}

const char *fini_spec_take(const fini_spec *spec, const char *key)
{
    return text_or(fini_node_get(spec->node, key), "take", "");
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

const fini_frame *fini_spec_frame(fini_spec *spec, const fini_node *line, fini_figure *figure)
{
    const fini_block *block = fini_spec_block(spec, line);
    const fini_frame *frame = NULL;
    fini_where own = {0}, of_line = {0};
    /* A line from another block need not have the settings of the figure's `where`; its own
     * replaces it then. */
    if (!line || !fini_node_get(line, "from"))
        FINI_ASK(&spec->ask, fini_where_read(spec->study, block, spec->node, &own, spec->ask.err));
    if (line)
        FINI_ASK(&spec->ask, fini_where_read(spec->study, block, line, &of_line, spec->ask.err));
    int count = own.count + of_line.count;
    const char **clauses =
        spec->ask.status ? NULL : fini_figure_take(figure, count + 1, sizeof *clauses);
    if (clauses) {
        for (int i = 0; i < count; i++)
            clauses[i] = i < own.count ? own.clauses[i] : of_line.clauses[i - own.count];
        frame = fini_figure_runs(figure, spec->store, spec->study->name, block->id, clauses, count);
    }
    if (frame)
        fini_spec_missing(figure, block->id, frame);
    fini_where_free(&own);
    fini_where_free(&of_line);
    return frame;
}

int64_t fini_spec_runs(const fini_frame *frame, int64_t most, fini_figure *figure)
{
    int64_t rows = fini_frame_rows(frame);
    if (rows > most && most == 1)
        fini_figure_note(figure, "The first of %lld runs is shown.", (long long)rows);
    else if (rows > most)
        fini_figure_note(figure, "The first %lld of %lld runs are shown.", (long long)most,
                         (long long)rows);
    return rows < most ? rows : most;
}

fini_values fini_spec_values(const fini_frame *frame, const char *formula, fini_figure *figure)
{
    fini_formula *parsed = NULL;
    int64_t rows = fini_frame_rows(frame);
    fini_values values = {rows, fini_figure_take(figure, rows, sizeof(double)),
                          fini_figure_take(figure, rows, sizeof(double)),
                          fini_figure_take(figure, rows, sizeof(double)), false};
    if (figure->failed)
        return values;
    fin_error err = {FIN_OK, ""};
    fin_status status = fini_formula_parse(formula, &parsed, &err);
    for (int64_t i = 0; i < rows && !status; i++) {
        fini_number number;
        status = fini_formula_frame(parsed, frame, i, &number, &err);
        if (status)
            break;
        bool known = isfinite(number.low) && isfinite(number.high);
        values.value[i] = number.value;
        values.low[i] = known ? number.low : NAN;
        values.high[i] = known ? number.high : NAN;
        values.drawn = values.drawn || number.drawn;
    }
    fini_formula_destroy(parsed);
    if (status)
        fini_figure_fail(figure, status, "%s", err.message);
    return values;
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

fini_groups fini_spec_groups(const fini_frame *frame, const char *setting, fini_figure *figure)
{
    const fini_column *column = fini_frame_column(frame, setting);
    int64_t all = fini_frame_rows(frame), rows = column && column->text ? all : 0;
    fini_groups g = {fini_figure_take(figure, GROUPS_MOST, sizeof *g.texts), 0,
                     fini_figure_take(figure, all, sizeof *g.which)};
    fin_error err = {FIN_OK, ""};
    if (!column && fini_frame_status(frame, &err)) /* none, or it could not be read? */
        fini_figure_fail(figure, err.status, "%s", err.message);
    if (figure->failed)
        return g;
    bool cut = false;
    for (int64_t i = 0; i < rows; i++) {
        const char *text = column->text[i] ? column->text[i] : "";
        if (find_text(g.texts, g.count, text) >= 0)
            continue;
        if (g.count < GROUPS_MOST)
            g.texts[g.count++] = fini_figure_copy(figure, text);
        else
            cut = true;
    }
    sort_texts(g.texts, g.count);
    for (int64_t i = 0; i < all; i++)
        g.which[i] =
            i < rows ? find_text(g.texts, g.count, column->text[i] ? column->text[i] : "") : -1;
    if (cut)
        fini_figure_note(figure, "More than %d values of %s: the first ones are shown.",
                         (int)GROUPS_MOST, setting);
    return g;
}
