/* report: figures and the HTML report, from a store alone. Nothing is computed anew. */
#ifndef FINETTI_REPORT_H
#define FINETTI_REPORT_H

#include "finetti/base.h"
#include "finetti/bags.h"
#include "finetti/data_bags.h"
#include "finetti/study.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether the figures that a study file describes make sense; run it before the study. */
FIN_API fin_status fin_report_check(const fin_study *study, fin_error *err);

/* One HTML file that needs nothing else: claims, figures, settings, the data behind each figure.
 * studies NULL: all of the store. title NULL: the default one. */
FIN_API fin_status fin_report_write(fin_store *store, FIN_OR_NULL const char *const *studies,
                                    int count, FIN_OR_NULL const char *title, const char *path,
                                    fin_error *err);
/* All of the store, for a caller who has (some of) its studies as they were run: these are not read
 * back. */
FIN_API fin_status fin_report_all(fin_store *store, FIN_OR_NULL const fin_study *const *hand,
                                  int count, FIN_OR_NULL const char *title, const char *path,
                                  fin_error *err);

/* The page to play with, one HTML file with the library in it; report: the address of a report that it links to. It is there
 * if it was built with the library (make web), else FIN_ERR_UNSUPPORTED with how to get it. */
FIN_API int fin_explore_there(void);
FIN_API fin_status fin_explore_write(FIN_OR_NULL const char *report, const char *path,
                                     fin_error *err);

typedef struct fin_figure_row {
    const char *study, *id, *title, *kind;
} fin_figure_row;
/* study NULL: the figures of all studies. */
FIN_API fin_status fin_report_figures(fin_store *store, FIN_OR_NULL const char *study,
                                      fin_status (*row)(void *user, const fin_figure_row *figure,
                                                        fin_error *err),
                                      void *user, fin_error *err);

/* A figure for a paper. id: one that the study file describes, or NULL: x against y below. */
typedef struct fin_figure {
    const char *study, *id;
    const char *block;    /* of the study; NULL: its first */
    const char *x;        /* a setting, a scalar or a formula of them */
    const char *const *y; /* the same; several runs at one x: their mean is drawn */
    int y_count;
    const char *split;        /* a line for every value of this setting; NULL: one line */
    const char *const *where; /* as in fin_query */
    int where_count;
    const char *title;     /* NULL: none */
    int log_x, log_y, fit; /* fit: a straight line through the points, with its slope */
    double width, height;  /* in points (1/72 inch); 0: 432 and 288 a panel */
    /* Told what a reader of the figure must know: runs that are missing, points that are left out.
     * May be NULL. */
    void (*note)(void *user, const char *text);
    void *note_user;
} fin_figure;
/* FILE.svg, or FILE.csv: the numbers in it. A figure without a point is an error that says why. */
FIN_API fin_status fin_report_figure(fin_store *store, const fin_figure *figure, const char *path,
                                     fin_error *err);

/* ---- a fit to bags, for those who did not run it ---------------------------------------------- */

/* What the page is made of; everything is borrowed. */
typedef struct fin_bag_report {
    const fin_fit *fit;
    const char *model;      /* what it is called */
    const fin_bag_set *set; /* bags; new ones if `fresh` is 1: the model has not seen them */
    const char *data;       /* where they are from */
    const char *const *class_names; /* (classes) or NULL: numbers */
    int fresh;
    const char *const *notes; /* (note_count) what a person should know */
    int note_count;
    /* Cross-validation on these bags, its models by their names, the first of them the fit's; NULL: none. */
    const fin_validation *validation;
    const char *const *model_names; /* (models) */
    int models, folds, repeats;
    const char *verdict;         /* does one token decide? NULL: not known */
    const fin_curve_size *sizes; /* (size_count) the learning curve */
    int size_count;
    const char *coords[2]; /* extra columns of the set that say where tokens lie; NULL: none */
} fin_bag_report;
/* One HTML file that needs nothing else: what was fitted and how good it is, features, and the bags where
 * it is surest and least sure, with their tokens. */
FIN_API fin_status fin_report_bags(const fin_bag_report *report, const char *path, fin_error *err);

/* Tokens of a bag where they lie, coloured by a number: FILE.svg. */
typedef struct fin_bag_picture {
    int64_t tokens;
    const double *x, *y, *value; /* (tokens); those whose place is not finite are left out */
    const char *title, *meaning; /* of the numbers */
} fin_bag_picture;
FIN_API fin_status fin_report_bag(const fin_bag_picture *picture, const char *path, fin_error *err);

#ifdef __cplusplus
}
#endif
#endif
