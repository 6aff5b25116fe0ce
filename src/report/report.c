/* Figures by name, for the command line and for papers; and the check of what a study file says of
 * them. The HTML report is in html.c. */
#include "finetti/report.h"
#include "report/chapter.h"
#include "report/figure.h"

#include <stdio.h>
#include <string.h>

/* ---- checks --------------------------------------------------------------------------------- */

static const char *text_of(const fini_node *map, const char *key)
{
    const fini_node *node = fini_node_get(map, key);
    return node && node->kind == FINI_TEXT ? node->text : "";
}

fin_status fin_report_check(const fin_study *study, fin_error *err)
{
    FINI_NEED(err, study);
    const fini_node *figures = study->figures;
    fin_status status = fini_chapter_check(study, err);
    for (int i = 0; figures && i < figures->count && !status; i++) {
        fini_spec spec = {study, NULL, &figures->child[i], {study->tree, err, FIN_OK}};
        status = fini_figure_check(&spec);
        const char *near, *id = text_of(spec.node, "id");
        if (!status && fini_study_figure(study, id, &near) != spec.node)
            status = fini_node_fail(study->tree, spec.node, err,
                                    "the study has two figures with the id '%.64s'", id);
    }
    return status; /* that claims name figures that are there is checked when they are read */
}

/* ---- lists ---------------------------------------------------------------------------------- */

typedef struct list {
    fin_status (*row)(void *user, const fin_figure_row *figure, fin_error *err);
    void *user;
} list;

static fin_status list_study(void *user, const char *name, const fin_study *study,
                             const fin_error *why, fin_error *err)
{
    const list *l = user;
    FINI_TRY(study ? FIN_OK : fini_fail(err, why->status, "%s", why->message));
    for (int i = 0; study->figures && i < study->figures->count; i++) {
        const fini_node *node = &study->figures->child[i];
        fin_figure_row row = {name, text_of(node, "id"), text_of(node, "title"),
                              text_of(node, "kind")};
        FINI_TRY(l->row(l->user, &row, err));
    }
    return FIN_OK;
}

fin_status fin_report_figures(fin_store *store, const char *study,
                              fin_status (*row)(void *user, const fin_figure_row *figure,
                                                fin_error *err),
                              void *user, fin_error *err)
{
    FINI_NEED(err, store, row);
    list l = {row, user};
    fini_studies which = {.names = study ? &study : NULL, .count = 1};
    return fini_studies_visit(store, &which, list_study, &l, err);
}

/* ---- one figure ----------------------------------------------------------------------------- */

static fin_status build_named(fin_store *store, const fin_study *study, const char *id,
                              fini_figure *figure, fin_error *err)
{
    const char *near;
    fini_spec spec = {
        study, store, fini_study_figure(study, id, &near), {study->tree, err, FIN_OK}};
    if (spec.node)
        return fini_figure_build(&spec, figure);
    if (!near && study->figures && study->figures->count > 0)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "the study %.64s has no figure '%.64s'; its first one is %.64s",
                         study->name, id, text_of(&study->figures->child[0], "id"));
    return fini_fail(err, FIN_ERR_ARGUMENT, "the study %.64s has no figure '%.64s'%s", study->name,
                     id, fini_did_you_mean(near, ""));
}

/* x against y. */
static fin_status build_lines(fin_store *store, const fin_study *study, const fin_figure *what,
                              fini_figure *figure, fin_error *err)
{
    const char *block = what->block;
    if (!what->x || what->y_count < 1 || !what->y)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "a figure needs an id, or x and at least one y, such as lam and risk");
    if (!block && study->block_count > 0)
        block = study->blocks[0].id;
    if (block && !fini_study_block(study, block))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "the study %.64s has no block of runs '%.64s'; its first one is %.64s",
                         study->name, block, study->block_count ? study->blocks[0].id : "");
    figure->study = fini_figure_copy(figure, study->name);
    fini_panel *panel = fini_figure_panel(figure, "");
    if (!panel)
        return fini_figure_status(figure, err);
    panel->x.label = fini_figure_copy(figure, what->x);
    panel->y.label = what->y_count == 1 ? fini_figure_copy(figure, what->y[0]) : "";
    panel->x.log = what->log_x != 0;
    panel->y.log = what->log_y != 0;
    const fini_frame *frame =
        fini_figure_runs(figure, store, study->name, block, what->where, what->where_count);
    if (!frame)
        return fini_figure_status(figure, err);
    fini_spec_missing(figure, block ? block : study->name, frame);
    const fini_column *split = what->split ? fini_frame_column(frame, what->split) : NULL;
    FINI_TRY(fini_frame_status(frame, err));
    if (what->split && fini_frame_rows(frame) > 0 && !(split && split->text))
        return fini_fail(err, FIN_ERR_ARGUMENT, "'%.64s' is no setting of these runs", what->split);
    for (int i = 0; i < what->y_count; i++) {
        fini_line_spec line = {.x = what->x,
                               .take = what->y[i],
                               .label = what->y[i],
                               .split = what->split,
                               .mark = FINI_MARK_SOLID,
                               .band = true,
                               .fit = what->fit != 0,
                               .several = FINI_SEVERAL_AUTO};
        fini_lines_add(frame, &line, figure, panel);
        FINI_TRY(fini_figure_status(figure, err));
    }
    return fini_figure_finish(figure, err);
}

static bool ends_with(const char *path, const char *end)
{
    size_t a = strlen(path), b = strlen(end);
    return a > b && strcmp(path + a - b, end) == 0;
}

/* On a page an empty panel has its place; a file with nothing in it helps nobody. */
static fin_status need_points(const fini_figure *figure, fin_error *err)
{
    for (const fini_panel *p = figure->panels; p; p = p->next)
        for (const fini_curve *c = p->curves; c; c = c->next)
            for (int64_t i = 0; i < c->count; i++)
                if (fini_scale_shows(&p->x, c->x[i]) && fini_scale_shows(&p->y, c->y[i]))
                    return FIN_OK;
    return fini_fail(err, FIN_ERR_FORMAT, "there is nothing to draw. %s%s%s",
                     figure->notes ? figure->notes->text : "No run has these numbers.",
                     figure->notes && figure->notes->next ? " " : "",
                     figure->notes && figure->notes->next ? figure->notes->next->text : "");
}

static double size_or(double given, double fallback)
{
    return given >= 100 && given <= 10000 ? given : fallback;
}

fin_status fin_report_figure(fin_store *store, const fin_figure *figure, const char *path,
                             fin_error *err)
{
    FINI_NEED(err, store, figure, path);
    FINI_NEED(err, figure->study);
    bool csv = ends_with(path, ".csv");
    if (!csv && !ends_with(path, ".svg"))
        return fini_fail(err, FIN_ERR_ARGUMENT, "'%.200s' must end with .svg or .csv", path);
    if ((figure->width != 0 && size_or(figure->width, 0) == 0) ||
        (figure->height != 0 && size_or(figure->height, 0) == 0))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "width and height must be between 100 and 10000 points; 432 and 288 fit a "
                         "column");
    fin_study *study = NULL;
    fini_figure built;
    fini_page page = {NULL, 0, 0, false};
    fini_figure_open(&built);
    fin_status status = fini_store_study(store, figure->study, &study, err);
    if (!status)
        status = figure->id ? build_named(store, study, figure->id, &built, err)
                            : build_lines(store, study, figure, &built, err);
    if (!status)
        status = need_points(&built, err);
    if (!status && figure->title) {
        built.heading = built.title = fini_figure_copy(&built, figure->title);
        status = fini_figure_status(&built, err);
    }
    if (!status && csv)
        fini_figure_csv(&built, &page);
    else if (!status)
        fini_figure_svg(&built, size_or(figure->width, 432), size_or(figure->height, 288), &page);
    if (!status)
        status = fini_page_write(&page, path, err);
    for (const fini_note *n = built.notes; n && figure->note && !status; n = n->next)
        figure->note(figure->note_user, n->text);
    fini_page_close(&page);
    fini_figure_close(&built);
    fin_study_destroy(study);
    return status;
}
