/* landscape: the risk on a grid of (kappa, nu). */
#ifndef CLI_LANDSCAPE_H
#define CLI_LANDSCAPE_H

#include "train/train.h"

/* The columns of the CSV file, in their order. */
#define LANDSCAPE_COLUMNS(C)                                                                       \
    C(kappa) C(nu) C(risk) C(d_kappa) C(d_nu) C(flow_kappa) C(flow_nu) C(gradient)
typedef struct landscape_point {
#define LANDSCAPE_MEMBER(name) double name;
    LANDSCAPE_COLUMNS(LANDSCAPE_MEMBER)
#undef LANDSCAPE_MEMBER
} landscape_point;

typedef struct landscape_axis {
    double from, to;
} landscape_axis;

typedef struct landscape {
    landscape_axis kappa, nu;
    int64_t side; /* points along an axis */
    landscape_point *points;
    int64_t count, left_out; /* points here, and those that no unit vectors have */
    fin_estimate how;        /* the last risk, with the largest error */
} landscape;

/* The grid that args asks for. Returns an exit code, after the message. */
int landscape_read(landscape *g, const cli_args *args);
fin_status landscape_compute(landscape *g, const cli_args *args, const fin_task *task,
                             fin_error *err);
fin_status landscape_write(const landscape *g, const char *path, fin_error *err);

#endif
