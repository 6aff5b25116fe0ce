/* risk: what the three faces of `finetti risk` (one point, a table, a sweep) share. */
#ifndef CLI_RISK_H
#define CLI_RISK_H

#include "cli.h"

/* The numbers that --show can name, in the order in which they are printed. */
#define RISK_SHOW_LIST(S) S(risk) S(oracle) S(star) S(linear) S(bayes)
enum {
#define RISK_SHOW_PLACE(name) RISK_PLACE_##name,
    RISK_SHOW_LIST(RISK_SHOW_PLACE)
#undef RISK_SHOW_PLACE
#define RISK_SHOW_BIT(name) RISK_SHOW_##name = 1 << RISK_PLACE_##name,
        RISK_SHOW_LIST(RISK_SHOW_BIT)
#undef RISK_SHOW_BIT
};

typedef struct risk_numbers {
    fin_risk_report risk, oracle;
    fin_estimate star, linear, attention, bayes; /* attention: best linear attention, on spiked */
    double lam_star;
    bool has_star, has_bayes, has_attention;
    char no_star[160], no_bayes[160]; /* why not */
} risk_numbers;

/* --show as bits. Returns an exit code, after the message. */
int risk_show(cli_args *args, unsigned usual, unsigned *show);
/* Computes what is asked for in `show`. */
fin_status risk_evaluate(const cli_args *args, const fin_task *task, unsigned show,
                         risk_numbers *numbers, fin_error *err);

int risk_points(cli_args *args);
int risk_sweep(cli_args *args);

#endif
