/* Private face of the report room.
 *
 *     figure.c          a figure as data: panels, axes, curves; limits; the same as CSV
 *     figure_<kind>.c   what a study file asks for + a store -> such a figure; one kind each
 *     kind.c            the table of kinds, and what their files share: blocks, `where`, formulas
 *     series.c          what the kinds share that draw series of one run
 *     ticks.c           where an axis has its ticks and what stands there
 *     svg.c             figure -> SVG;  svg_marks.c: its curves
 *     html*.c           store -> one HTML file; chapter.c, mathml.c: the story of a paper; assets/: style and script
 *     page.c            text that grows, and every escape
 *     report.c          the public calls
 *
 * A figure knows nothing of how it is drawn, so that SVG, CSV and the browser show the same. */
#ifndef FINI_FIGURE_H
#define FINI_FIGURE_H

#include "report/page.h"
#include "study/study.h"

/* ---- the model (figure.c) -------------------------------------------------------------------- */

/* The names are those of `style:` in study files, where they may be chosen, and of the script. */
#define FINI_MARK_LIST(M)                                                                          \
    M(SOLID, "solid")                                                                              \
    M(DASHED, "dashed")                                                                            \
    M(DOTTED, "dotted")                                                                            \
    M(POINTS, "points")                                                                            \
    M(BARS, "bars")     /* from low to high */                                                     \
    M(CELLS, "cells")   /* colour: value */                                                        \
    M(ARROWS, "arrows") /* towards (dx, dy), longest = 1 */
typedef enum fini_mark {
#define FINI_MARK_ENUM(name, text) FINI_MARK_##name,
    FINI_MARK_LIST(FINI_MARK_ENUM)
#undef FINI_MARK_ENUM
        FINI_MARK_COUNT
} fini_mark;
enum { FINI_MARK_STYLES = FINI_MARK_POINTS + 1 }; /* those a study file may ask for */
const char *fini_mark_name(fini_mark mark);

/* As many as colours: no two curves have the same sign before their colours come again. */
enum {
    FINI_CIRCLE,
    FINI_SQUARE,
    FINI_TRIANGLE,
    FINI_DIAMOND,
    FINI_DOWN,
    FINI_PLUS,
    FINI_CROSS,
    FINI_SHAPES
};
enum { FINI_COLOURS = FINI_SHAPES, FINI_INK = -1 }; /* FINI_INK: the colour of text */

typedef struct fini_curve fini_curve;
struct fini_curve {
    fini_curve *next;
    const char *label;
    fini_mark mark;
    int colour; /* a number of the palette, taken modulo FINI_COLOURS; or FINI_INK */
    int shape;  /* of its points; -1: a line without */
    bool thin;  /* one path of many */
    bool fit;   /* a straight line through the points of another curve */
    bool inner; /* its band lies inside that of another curve with the same line */
    bool quiet; /* not in the legend */
    /* Of several curves for the values of a setting: what it is, and which of them ("measured", "L = 16"); else "". A name alone
     * stands in the legend in place of the label. */
    const char *name, *of;
    const char *slope; /* of the line through it: "slope -1"; "" if there is none */
    int64_t count;
    double *x, *y;         /* [count] */
    double *low, *high;    /* [count] or NULL */
    double *value;         /* [count], cells; NaN: nothing there */
    int64_t columns, rows; /* cells: count = columns * rows, y moves fastest */
    double *dx, *dy;       /* [count], arrows */
};

typedef struct fini_reference fini_reference;
struct fini_reference {
    fini_reference *next;
    enum { FINI_AT_X, FINI_AT_Y, FINI_DIAGONAL } where;
    double at;
    const char *label;
};

typedef struct fini_scale {
    const char *label;
    bool log;
    double low, high; /* limits; NaN before fini_figure_finish: from the data */
    const char **category;
    int categories; /* > 0: numbers are places in category */
} fini_scale;

typedef struct fini_panel fini_panel;
struct fini_panel {
    fini_panel *next;
    const char *title;
    fini_scale x, y, value; /* value: of cells */
    bool has_value;
    bool square;      /* both axes show the same */
    const char *part; /* what tells it from others with the same title, in CSV; else "" */
    const char *says; /* a sentence in place of axes; "" if there is something to draw */
    fini_curve *curves, **curve_end;
    fini_reference *references, **reference_end;
};

typedef struct fini_note fini_note;
struct fini_note {
    fini_note *next;
    const char *text;
};

typedef struct fini_figure {
    const char *study, *id, *title, *caption, *kind;
    const char *heading; /* drawn above it; "" on a page, which has it in its text */
    fini_panel *panels, **panel_end;
    fini_note *notes, **note_end;
    int panel_count;
    int columns;                      /* panels in a row; 0: two, or one if there is only one */
    struct fini_piece *pieces;        /* all its memory */
    struct fini_figure_frame *frames; /* runs that it is drawn from */
    bool failed;                      /* see trouble: what is asked for then is not done */
    fin_error trouble;
} fini_figure;

void fini_figure_open(fini_figure *figure);
void fini_figure_close(fini_figure *figure);
fin_status fini_figure_status(const fini_figure *figure, fin_error *err);
/* The first failure counts; out of memory is one, too. */
void fini_figure_fail(fini_figure *figure, fin_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The runs of a block (fini_frame_read), kept by the figure; NULL after a failure. */
const fini_frame *fini_figure_runs(fini_figure *figure, fin_store *store, const char *study,
                                   const char *block, const char *const *where, int count);
/* Zeroed memory that lives as long as the figure; NULL: fini_figure_status tells. */
void *fini_figure_take(fini_figure *figure, int64_t count, size_t size);
const char *fini_figure_copy(fini_figure *figure, const char *text); /* NULL gives "" */
const char *fini_figure_say(fini_figure *figure, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void fini_figure_note(fini_figure *figure, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
fini_panel *fini_figure_panel(fini_figure *figure, const char *title);
/* With x and y; all zero. */
fini_curve *fini_figure_curve(fini_figure *figure, fini_panel *panel, const char *label,
                              fini_mark mark, int64_t count);
/* Another array of a curve: low, high, ... */
double *fini_figure_array(fini_figure *figure, const fini_curve *curve);
void fini_figure_reference(fini_figure *figure, fini_panel *panel, int where, double at,
                           const char *label);
/* Sorts the points by x, those at one x as they were. */
void fini_curve_sort(fini_figure *figure, fini_curve *curve);
/* Sets limits that are NaN, and notes how many points cannot be drawn. */
fin_status fini_figure_finish(fini_figure *figure, fin_error *err);
/* Where cell k of n begins (k = n: where the last one ends), as a place on the scale: half-way
 * between its middle and the one before; middles[k * step]. */
double fini_cell_edge(const fini_scale *scale, const double *middles, int64_t step, int64_t n,
                      int64_t k);
/* Can it be drawn on this axis? */
bool fini_scale_shows(const fini_scale *scale, double number);
/* Where between 0 (low) and 1 (high); not limited to that. */
double fini_scale_place(const fini_scale *scale, double number);

/* panel,series,x,y,low,high and, where a curve has them, value,dx,dy. */
void fini_figure_csv(const fini_figure *figure, fini_page *page);
/* What the script needs beside the CSV: axes, and how many rows each curve has. */
void fini_figure_json(const fini_figure *figure, fini_page *page);

/* ---- ticks (ticks.c) ------------------------------------------------------------------------- */

enum { FINI_TICKS = 128, FINI_TICK_TEXT = 64 };
typedef struct fini_tick {
    double at;
    char text[FINI_TICK_TEXT]; /* "" for a small one */
} fini_tick;
/* About `wanted` ticks with a text, for a scale with limits and without categories. Returns their
 * number. */
int fini_ticks(const fini_scale *scale, int wanted, fini_tick ticks[FINI_TICKS]);

/* ---- SVG (svg.c, svg_marks.c) ---------------------------------------------------------------- */

/* width, height: of a panel, in points. */
void fini_figure_svg(const fini_figure *figure, double width, double height, fini_page *page);
/* One panel as an image of its own. What the script looks for: curves and entries of the legend are <g data-k="number of the
 * curve">, ticks <g class="x">, <g class="y">, curves stand in <svg class="marks">. */
void fini_panel_svg(const fini_figure *figure, const fini_panel *panel, double width, double height,
                    fini_page *page);
int fini_figure_columns(const fini_figure *figure);
/* Do curves have their labels at their ends, on the right? Those of several values of a setting do, and many. */
bool fini_panel_direct(const fini_panel *panel);

typedef struct fini_box {
    double x, y, width, height;
} fini_box;
/* The curves and references of a panel, inside a box. */
void fini_svg_marks(fini_page *page, const fini_panel *panel, fini_box box);
/* The sample of a curve in a legend, `width` points wide, its middle at (x, y). */
void fini_svg_sample(fini_page *page, const fini_curve *curve, double x, double y, double width);
const char *fini_svg_colour(int colour);
/* Colour of a place between 0 and 1 in the palette of cells: "#rrggbb". */
void fini_svg_heat(double place, char text[8]);

/* ---- kinds (kind.c, figure_<kind>.c) --------------------------------------------------------- */

/* What a figure is built from. */
typedef struct fini_spec {
    const fin_study *study;
    fin_store *store; /* NULL while checking */
    const fini_node *node;
    fini_ask ask;
} fini_spec;

typedef struct fini_figure_kind {
    const char *name;
    const char *const *keys; /* beside those that every figure has; ends with NULL */
    void (*check)(fini_spec *spec);
    void (*build)(fini_spec *spec, fini_figure *figure);
} fini_figure_kind;
extern const fini_figure_kind fini_figure_lines, fini_figure_training, fini_figure_portrait,
    fini_figure_quantiles, fini_figure_bars, fini_figure_heat, fini_figure_calibration,
    fini_figure_series;

/* Checks one figure of a study. */
fin_status fini_figure_check(fini_spec *spec);
/* Builds and finishes it. */
fin_status fini_figure_build(fini_spec *spec, fini_figure *figure);

/* The children of the list under `key`, of which there must be some; `such` is an example. */
const fini_node *fini_spec_list(fini_spec *spec, const char *key, const char *such);
/* `style` of a line. */
fini_mark fini_spec_style(fini_spec *spec, const fini_node *line);
/* The block that `from` of `line` (may be NULL), else of the figure, names; else the first. */
const fini_block *fini_spec_block(fini_spec *spec, const fini_node *line);
/* Its runs that `where` of both lets through. Notes what is missing, once per figure. */
const fini_frame *fini_spec_frame(fini_spec *spec, const fini_node *line, fini_figure *figure);
/* Notes which runs of the block are not there. */
void fini_spec_missing(fini_figure *figure, const char *block, const fini_frame *frame);
/* Child `key` of map: a formula of the block's settings and outputs. */
const char *fini_spec_formula(fini_spec *spec, const fini_block *block, const fini_node *map,
                              const char *key);
/* Is child `key` of map (if it is there) a setting of the block? */
void fini_spec_setting(fini_spec *spec, const fini_block *block, const fini_node *map,
                       const char *key);
/* Is `where` of map (if it is there) well formed? */
void fini_spec_where(fini_spec *spec, const fini_block *block, const fini_node *map);
/* Is child `key` of the figure (if it is there) an axis: label, scale; it must be there with a `take`
 * that is a formula, or a setting? */
typedef enum fini_axis_take { FINI_TAKE_NONE, FINI_TAKE_FORMULA, FINI_TAKE_SETTING } fini_axis_take;
void fini_spec_axis(fini_spec *spec, const char *key, fini_axis_take take);
/* `take` of an axis that was checked. */
const char *fini_spec_take(const fini_spec *spec, const char *key);
/* Is the figure's block of this command? `what` is the kind of figure. */
void fini_spec_command(fini_spec *spec, const char *command, const char *what);
/* The letter that papers have for a setting, as Greek for lam; its name if they have none. */
const char *fini_symbol(const char *setting);
/* Label and scale of an axis that was checked; `fallback` where it has no label. */
void fini_spec_scale(const fini_spec *spec, fini_figure *figure, const char *key,
                     const char *fallback, fini_scale *scale);

/* Values of a formula at all rows: columns in the figure's memory. */
typedef struct fini_values {
    int64_t count;
    double *value, *low, *high; /* low, high: the 95 % interval; NaN where it is not known */
    bool drawn;                 /* chance has a part in them */
} fini_values;
fini_values fini_spec_values(const fini_frame *frame, const char *formula, fini_figure *figure);
/* The different texts of a setting in a frame: texts[k], and for every row its k in which[row]. By
 * size where all are numbers, else in the order of their first rows. */
typedef struct fini_groups {
    const char **texts; /* [count] */
    int count, *which;
} fini_groups;
fini_groups fini_spec_groups(const fini_frame *frame, const char *setting, fini_figure *figure);

/* A series of one run as numbers, in the figure's memory. FIN_ERR_FORMAT unless it has `ndim`
 * dimensions (0: 1 or 2); values NULL if the run has no such series. */
typedef struct fini_matrix {
    double *values;
    int64_t rows, columns; /* rows = 1 for a vector */
} fini_matrix;
fini_matrix fini_spec_series(const fini_frame *frame, int64_t row, const char *name, int ndim,
                             fini_figure *figure);
/* Keeps every so many of its columns, and the last, so that about `most` are left, and six digits of each: a page is read by
 * people, and the store has all. */
void fini_matrix_thin(fini_matrix *matrix, int64_t most);
/* How many of the frame's runs are shown: at most so many, which a note says. */
int64_t fini_spec_runs(const fini_frame *frame, int64_t most, fini_figure *figure);
/* What tells a run from the other rows: "L = 10, seed = 2"; "" for the only one. */
const char *fini_spec_row(const fini_frame *frame, const fini_block *block, int64_t row,
                          fini_figure *figure);
/* How many rows of a matrix are to be drawn: none without columns, however many a file says there
 * are, and not more than anybody could tell apart, which a note says. */
int64_t fini_spec_lines(fini_figure *figure, const fini_matrix *matrix);
/* A curve of row `row` of the matrices (x: a vector, or as many rows). */
fini_curve *fini_spec_curve(fini_figure *figure, fini_panel *panel, const char *label,
                            fini_mark mark, const fini_matrix *x, const fini_matrix *y,
                            int64_t row);

/* What becomes of several points of a line at one x. */
typedef enum fini_several {
    FINI_SEVERAL_KEEP, /* all are drawn */
    FINI_SEVERAL_TELL, /* as well, with a note that their mean could be */
    FINI_SEVERAL_MEAN, /* their mean, with the 95 % interval from their spread */
    FINI_SEVERAL_AUTO  /* as well, with a note that this was done */
} fini_several;

/* A line of a `lines` figure, from a study file or from fin_figure. */
typedef struct fini_line_spec {
    const char *x, *take, *label, *split; /* split NULL: one line */
    fini_mark mark;
    bool band, fit;
    fini_several several;
    const char
        *as; /* what a value of split is called, with {} for the value; NULL or "": "L = 16" */
} fini_line_spec;
void fini_lines_add(const fini_frame *frame, const fini_line_spec *line, fini_figure *figure,
                    fini_panel *panel);

#endif
