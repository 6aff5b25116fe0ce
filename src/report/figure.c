/* The figure as data: its memory, its limits, its CSV and its layout as JSON.
 *
 * All that belongs to a figure is cut from pieces that are freed together, so that the kinds
 * need no clean-up of their own; the first failure, such as running out of memory, is remembered. */
#include "report/figure.h"

#include "math/stats.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct fini_piece {
    struct fini_piece *next;
};
enum { HEAD = 64 }; /* keeps what follows aligned */

const char *fini_mark_name(fini_mark mark)
{
#define NAME(name, text) text,
    static const char *const names[] = {FINI_MARK_LIST(NAME)};
#undef NAME
    return names[mark];
}

void fini_figure_open(fini_figure *figure)
{
    memset(figure, 0, sizeof *figure);
    figure->study = figure->id = figure->title = figure->caption = figure->kind = "";
    figure->heading = "";
    figure->panel_end = &figure->panels;
    figure->note_end = &figure->notes;
}

struct fini_figure_frame {
    struct fini_figure_frame *next;
    fini_frame *frame;
};

void fini_figure_close(fini_figure *figure)
{
    for (; figure->frames; figure->frames = figure->frames->next)
        fini_frame_destroy(figure->frames->frame);
    while (figure->pieces) {
        struct fini_piece *next = figure->pieces->next;
        fini_free(figure->pieces);
        figure->pieces = next;
    }
}

fin_status fini_figure_status(const fini_figure *figure, fin_error *err)
{
    fin_status status = figure->trouble.status;
    if (status && err)
        *err = figure->trouble;
    for (const struct fini_figure_frame *f = figure->frames; f && !status; f = f->next)
        status = fini_frame_status(f->frame, err); /* a column that could not be read */
    return status;
}

void fini_figure_fail(fini_figure *figure, fin_status status, const char *format, ...)
{
    if (figure->failed)
        return;
    va_list list;
    va_start(list, format);
    vsnprintf(figure->trouble.message, sizeof figure->trouble.message, format, list);
    va_end(list);
    figure->trouble.status = status;
    figure->failed = true;
}

const fini_frame *fini_figure_runs(fini_figure *figure, fin_store *store, const char *study,
                                   const char *block, const char *const *where, int count)
{
    struct fini_figure_frame *kept = fini_figure_take(figure, 1, sizeof *kept);
    fin_error err = {FIN_OK, ""};
    if (!kept)
        return NULL;
    fin_status status = fini_frame_read(store, study, block, where, count, &kept->frame, &err);
    if (status) {
        fini_figure_fail(figure, status, "%s", err.message);
        return NULL;
    }
    kept->next = figure->frames;
    figure->frames = kept;
    return kept->frame;
}

void *fini_figure_take(fini_figure *figure, int64_t count, size_t size)
{
    unsigned char *piece = NULL;
    size_t most = SIZE_MAX - HEAD;
    if (!figure->failed && count >= 0 && (size == 0 || (uint64_t)count <= most / size))
        piece = fini_alloc(HEAD + (size_t)count * size);
    if (!piece) {
        fini_figure_fail(figure, FIN_ERR_MEMORY, "out of memory for a figure");
        return NULL;
    }
    memset(piece, 0, HEAD + (size_t)count * size);
    ((struct fini_piece *)piece)->next = figure->pieces;
    figure->pieces = (struct fini_piece *)piece;
    return piece + HEAD;
}

const char *fini_figure_copy(fini_figure *figure, const char *text)
{
    if (!text || !*text)
        return "";
    size_t size = strlen(text) + 1;
    char *copy = fini_figure_take(figure, (int64_t)size, 1);
    return copy ? memcpy(copy, text, size) : "";
}

const char *fini_figure_say(fini_figure *figure, const char *format, ...)
{
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return fini_figure_copy(figure, text);
}

void fini_figure_note(fini_figure *figure, const char *format, ...)
{
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    for (const fini_note *note = figure->notes; note; note = note->next)
        if (!strcmp(note->text, text))
            return; /* said already */
    fini_note *note = fini_figure_take(figure, 1, sizeof *note);
    if (!note)
        return;
    note->text = fini_figure_copy(figure, text);
    *figure->note_end = note;
    figure->note_end = &note->next;
}

fini_panel *fini_figure_panel(fini_figure *figure, const char *title)
{
    fini_panel *panel = fini_figure_take(figure, 1, sizeof *panel);
    if (!panel)
        return NULL;
    panel->title = fini_figure_copy(figure, title);
    panel->says = panel->part = "";
    panel->x = panel->y = panel->value = (fini_scale){"", false, NAN, NAN, NULL, 0};
    panel->curve_end = &panel->curves;
    panel->reference_end = &panel->references;
    *figure->panel_end = panel;
    figure->panel_end = &panel->next;
    figure->panel_count++;
    return panel;
}

fini_curve *fini_figure_curve(fini_figure *figure, fini_panel *panel, const char *label,
                              fini_mark mark, int64_t count)
{
    fini_curve *curve = fini_figure_take(figure, 1, sizeof *curve);
    if (!curve)
        return NULL;
    curve->label = fini_figure_copy(figure, label);
    curve->name = curve->of = curve->slope = "";
    curve->mark = mark;
    curve->shape = -1;
    curve->count = count;
    curve->x = fini_figure_array(figure, curve);
    curve->y = fini_figure_array(figure, curve);
    if (figure->failed)
        return NULL;
    *panel->curve_end = curve;
    panel->curve_end = &curve->next;
    return curve;
}

double *fini_figure_array(fini_figure *figure, const fini_curve *curve)
{
    return fini_figure_take(figure, curve->count, sizeof(double));
}

void fini_figure_reference(fini_figure *figure, fini_panel *panel, int where, double at,
                           const char *label)
{
    fini_reference *reference = fini_figure_take(figure, 1, sizeof *reference);
    if (!reference)
        return;
    reference->where = where;
    reference->at = at;
    reference->label = fini_figure_copy(figure, label);
    *panel->reference_end = reference;
    panel->reference_end = &reference->next;
}

/* ---- sorting -------------------------------------------------------------------------------- */

void fini_curve_sort(fini_figure *figure, fini_curve *curve)
{
    int64_t n = curve->count;
    int64_t *order = fini_figure_take(figure, n, 2 * sizeof *order);
    double *old = fini_figure_take(figure, n, sizeof *old);
    if (!order || !old || n == 0)
        return;
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    fini_sort_places(curve->x, n, order, order + n);
    double *arrays[] = {curve->x,     curve->y,  curve->low, curve->high,
                        curve->value, curve->dx, curve->dy};
    for (size_t k = 0; k < sizeof arrays / sizeof *arrays; k++)
        if (arrays[k]) {
            memcpy(old, arrays[k], (size_t)n * sizeof *old);
            for (int64_t i = 0; i < n; i++)
                arrays[k][i] = old[order[i]];
        }
}

/* ---- limits --------------------------------------------------------------------------------- */

bool fini_scale_shows(const fini_scale *scale, double number)
{
    return scale->log ? number >= 1e-300 && number <= 1e300 : fabs(number) <= 1e300;
}

double fini_scale_place(const fini_scale *scale, double number)
{
    if (scale->log)
        return (log10(number) - log10(scale->low)) / (log10(scale->high) - log10(scale->low));
    /* Halves, because the difference of two limits may be out of range. */
    return (number / 2 - scale->low / 2) / (scale->high / 2 - scale->low / 2);
}

typedef struct range {
    double low, high;
} range;

static void widen(range *r, const fini_scale *scale, double number)
{
    if (!fini_scale_shows(scale, number))
        return;
    r->low = fmin(r->low, number);
    r->high = fmax(r->high, number);
}

/* Sets what is not given, with a little air around the data. */
static void set_limits(fini_scale *scale, range r, double air)
{
    bool set_low = !fini_scale_shows(scale, scale->low);
    bool set_high = !fini_scale_shows(scale, scale->high);
    if (scale->categories > 0) {
        scale->low = -0.6;
        scale->high = scale->categories - 0.4;
        return;
    }
    if (!(r.low <= r.high)) {
        r = scale->log ? (range){0.1, 10} : (range){0, 1};
        air = 0;
    }
    if (scale->log) {
        double a = log10(r.low), b = log10(r.high), pad = b > a ? air * (b - a) : 0.3;
        r.low = fmax(pow(10, a - pad), 1e-300);
        r.high = fmin(pow(10, b + pad), 1e300);
    } else {
        double pad = r.high > r.low ? air * (r.high - r.low) : fabs(r.low) * 0.1;
        if (!(r.high + pad > r.low - pad)) /* one number, 0 or lost in rounding */
            pad = 1;
        r.low = fmax(r.low - pad, -1e300);
        r.high = fmin(r.high + pad, 1e300);
    }
    scale->low = set_low ? r.low : scale->low;
    scale->high = set_high ? r.high : scale->high;
    if (!(scale->low < scale->high)) { /* limits given the wrong way round, or 1e300 only */
        scale->low = scale->log ? r.low / 10 : r.low - fabs(r.low) * 0.1 - 1;
        scale->high = scale->log ? r.low * 10 : r.low + fabs(r.low) * 0.1 + 1;
    }
}

/* The data's range. On a logarithmic axis an interval may reach down to nearly 0: it must not push
 * everything else into the corner, so that `low` counts at most one decade below the points. */
static void panel_range(const fini_panel *panel, range *x, range *y, range *value)
{
    double ends = INFINITY;
    for (const fini_curve *c = panel->curves; c; c = c->next)
        for (int64_t i = 0; i < c->count; i++) {
            bool cells = c->mark == FINI_MARK_CELLS;
            if (!fini_scale_shows(&panel->x, c->x[i]))
                continue;
            widen(x, &panel->x, c->x[i]);
            if (!fini_scale_shows(&panel->y, c->y[i]))
                continue;
            if (c->mark != FINI_MARK_BARS)
                widen(y, &panel->y, c->y[i]);
            if (c->high)
                widen(y, &panel->y, c->high[i]);
            if (c->low && (!panel->y.log || c->low[i] > 0))
                ends = fmin(ends, c->low[i]);
            if (cells && c->value)
                widen(value, &panel->value, c->value[i]);
        }
    if (isfinite(ends))
        widen(y, &panel->y, panel->y.log ? fmax(ends, y->low / 10) : ends);
    for (const fini_reference *r = panel->references; r; r = r->next)
        if (r->where != FINI_DIAGONAL)
            widen(r->where == FINI_AT_X ? x : y, r->where == FINI_AT_X ? &panel->x : &panel->y,
                  r->at);
}

double fini_cell_edge(const fini_scale *scale, const double *middles, int64_t step, int64_t n,
                      int64_t k)
{
    fini_scale unit = *scale; /* places that do not depend on the limits */
    unit.low = scale->log ? 1 : 0;
    unit.high = scale->log ? 10 : 1;
    if (n == 1) {
        double at = fini_scale_place(&unit, middles[0]);
        double half = scale->log || scale->categories ? 0.5 : fmax(fabs(at) * 0.1, 0.5);
        at += k ? half : -half;
        return scale->log ? pow(10, at) : at;
    }
    int64_t a = k == 0 ? 0 : k == n ? n - 2 : k - 1; /* between middles a and a + 1, or outside */
    double left = fini_scale_place(&unit, middles[a * step]);
    double right = fini_scale_place(&unit, middles[(a + 1) * step]);
    double at = k == 0 ? left - (right - left) / 2
                       : (k == n ? right + (right - left) / 2 : left + (right - left) / 2);
    return scale->log ? pow(10, at) : at;
}

/* Cells are drawn around their middles: the axes end where the outermost cells do. */
static bool cell_limits(fini_panel *panel)
{
    for (const fini_curve *c = panel->curves; c; c = c->next)
        if (c->mark == FINI_MARK_CELLS && c->columns > 0 && c->rows > 0) {
            fini_scale *x = &panel->x, *y = &panel->y;
            x->low = fini_cell_edge(x, c->x, c->rows, c->columns, 0);
            x->high = fini_cell_edge(x, c->x, c->rows, c->columns, c->columns);
            y->low = fini_cell_edge(y, c->y, 1, c->rows, 0);
            y->high = fini_cell_edge(y, c->y, 1, c->rows, c->rows);
            return true;
        }
    return false;
}

static int64_t count_hidden(const fini_panel *panel, bool *log)
{
    int64_t hidden = 0;
    for (const fini_curve *c = panel->curves; c; c = c->next)
        for (int64_t i = 0; i < c->count; i++) {
            const fini_scale *bad = !fini_scale_shows(&panel->x, c->x[i])   ? &panel->x
                                    : !fini_scale_shows(&panel->y, c->y[i]) ? &panel->y
                                                                            : NULL;
            hidden += bad != NULL;
            *log = *log || (bad && bad->log);
        }
    return hidden;
}

/* Nothing but zeros says more as a sentence than as a line in the middle of an axis from -1 to 1. */
static void say_zero(fini_figure *figure, fini_panel *p, range y)
{
    bool lines = p->curves != NULL;
    for (const fini_curve *c = p->curves; c; c = c->next)
        lines = lines && c->mark <= FINI_MARK_POINTS;
    if (lines && !p->y.log && y.low == 0 && y.high == 0 && isnan(p->y.low) && isnan(p->y.high))
        p->says = fini_figure_say(figure, "%.200s: exactly 0, at every point.",
                                  p->y.label[0] ? p->y.label
                                  : p->title[0] ? p->title
                                                : "All");
}

fin_status fini_figure_finish(fini_figure *figure, fin_error *err)
{
    int64_t hidden = 0;
    bool log = false;
    for (fini_panel *p = figure->panels; p; p = p->next) {
        range x = {INFINITY, -INFINITY}, y = x, value = x;
        panel_range(p, &x, &y, &value);
        hidden += count_hidden(p, &log);
        if (p->square && x.low <= x.high && y.low <= y.high)
            x = y = (range){fmin(x.low, y.low), fmax(x.high, y.high)};
        say_zero(figure, p, y);
        if (!cell_limits(p)) {
            set_limits(&p->x, x, 0.04);
            set_limits(&p->y, y, 0.04);
        }
        set_limits(&p->value, value, 0);
    }
    if (hidden > 0)
        fini_figure_note(figure, "%lld point%s left out: %s.", (long long)hidden,
                         hidden == 1 ? " is" : "s are",
                         log ? "not positive, on a logarithmic axis, or no number" : "no number");
    return fini_figure_status(figure, err);
}

/* ---- as CSV and JSON ------------------------------------------------------------------------ */

static void csv_place(fini_page *page, const fini_scale *scale, double number)
{
    int64_t k =
        scale->categories > 0 && number >= 0 && number < scale->categories ? (int64_t)number : -1;
    if (k >= 0)
        fini_page_csv(page, scale->category[k]);
    else
        fini_page_number(page, number);
}

static void csv_cell(fini_page *page, const double *numbers, int64_t i)
{
    fini_page_add(page, ",");
    if (numbers)
        fini_page_number(page, numbers[i]);
}

static void csv_name(fini_page *page, const fini_panel *panel)
{
    char name[300];
    snprintf(name, sizeof name, "%s%s%s", panel->title[0] ? panel->title : panel->y.label,
             panel->part[0] ? ": " : "", panel->part);
    fini_page_csv(page, name);
}

void fini_figure_csv(const fini_figure *figure, fini_page *page)
{
    bool value = false, arrows = false;
    for (const fini_panel *p = figure->panels; p; p = p->next)
        for (const fini_curve *c = p->curves; c; c = c->next) {
            value = value || c->value;
            arrows = arrows || c->dx;
        }
    fini_page_add(page, "panel,series,x,y,low,high");
    fini_page_add(page, value ? ",value" : "");
    fini_page_add(page, arrows ? ",dx,dy\n" : "\n");
    for (const fini_panel *p = figure->panels; p; p = p->next)
        for (const fini_curve *c = p->curves; c; c = c->next)
            for (int64_t i = 0; i < c->count; i++) {
                csv_name(page, p);
                fini_page_add(page, ",");
                fini_page_csv(page, c->label);
                fini_page_add(page, ",");
                csv_place(page, &p->x, c->x[i]);
                fini_page_add(page, ",");
                csv_place(page, &p->y, c->y[i]);
                csv_cell(page, c->low, i);
                csv_cell(page, c->high, i);
                if (value)
                    csv_cell(page, c->value, i);
                if (arrows) {
                    csv_cell(page, c->dx, i);
                    csv_cell(page, c->dy, i);
                }
                fini_page_add(page, "\n");
            }
}

static void json_scale(fini_page *page, const char *name, const fini_scale *scale)
{
    fini_page_form(page, "\"%-s\":{\"label\":%2s,\"log\":%-s,\"low\":%g,\"high\":%g", name,
                   scale->label, scale->log ? "true" : "false", scale->low, scale->high);
    for (int i = 0; i < scale->categories; i++)
        fini_page_form(page, "%-s%2s", i ? "," : ",\"categories\":[", scale->category[i]);
    fini_page_add(page, scale->categories > 0 ? "]}," : "},");
}

static void json_curve(fini_page *page, const fini_curve *c)
{
    fini_page_form(page, "{\"label\":%2s", c->label);
    fini_page_print(page, ",\"mark\":\"%s\",\"count\":%lld}", fini_mark_name(c->mark),
                    (long long)c->count);
}

/* What is drawn is the SVG; this is for whoever points at it. */
void fini_figure_json(const fini_figure *figure, fini_page *page)
{
    fini_page_add(page, "[");
    for (const fini_panel *p = figure->panels; p; p = p->next) {
        fini_page_add(page, p == figure->panels ? "{" : ",{");
        json_scale(page, "x", &p->x);
        json_scale(page, "y", &p->y);
        if (p->has_value)
            json_scale(page, "value", &p->value);
        fini_page_add(page, "\"curves\":[");
        for (const fini_curve *c = p->curves; c; c = c->next) {
            fini_page_add(page, c == p->curves ? "" : ",");
            json_curve(page, c);
        }
        fini_page_add(page, "]}");
    }
    fini_page_add(page, "]");
}
