/* The page on a fit to bags in parts: bag_report.c what stands where, bag_figures.c its figures, bag_tokens.c bags with
 * their tokens. */
#ifndef FINI_BAG_REPORT_H
#define FINI_BAG_REPORT_H

#include "finetti/report.h"
#include "report/html.h"

enum { FINI_BAG_BESIDE = 4 }; /* extra columns shown beside a token */

/* What is known of the bags. */
typedef struct fini_bag_view {
    const fin_bag_report *of;
    const fin_bags *bags;
    fin_fit_info info;
    int64_t n, classes, width;
    int positive;         /* two classes: the one that curves are about */
    const double *labels; /* (n) or NULL */
    const double
        *mean; /* (n, width) predictions: of bags left out, if there was cross-validation */
    double *own, *own_sd;            /* (n, width) those of the fit itself */
    double *own_ends;                /* (n, 2) of 90 %, numbers; else NULL */
    fin_fit_score score;             /* of `mean`; count 0: there are no labels */
    bool left_out;                   /* `mean` is of bags that were left out */
    const double *place[2];          /* (tokens) coordinates, or NULL */
    int64_t beside[FINI_BAG_BESIDE]; /* the first other extra columns; -1: no more */
    int64_t piece;         /* the extra column with what tokens are of a text; -1: there is none */
    const double *span[2]; /* (tokens) where they begin and end in it, or NULL */
    fini_arena arena;
} fini_bag_view;

/* Sections; each may find that there is nothing to show. */
fin_status fini_bag_curves(const fini_bag_view *view, fini_page *page, fin_error *err);
fin_status fini_bag_flips(const fini_bag_view *view, fini_page *page, fin_error *err);
fin_status fini_bag_examples(const fini_bag_view *view, fini_page *page, fin_error *err);

/* Bag i alone, where it is. */
fin_bags fini_bag_alone(const fin_bags *bags, int64_t i);
const char *fini_bag_class(const fini_bag_view *view, int64_t c);
/* A number in so many digits; a dash if it is none. */
void fini_bag_number(fini_page *page, double number, int digits);
void fini_bag_share(fini_page *page, double number); /* three decimals */
/* The picture as <svg>, so many points wide. */
void fini_bag_picture(fini_page *page, const fin_bag_picture *picture, double width);

#endif
