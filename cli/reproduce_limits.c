/* finetti reproduce limits: the papers' limits beside the values they are limits of. */
#include "reproduce.h"

#include <math.h>
#include <stdio.h>

/* ---- single-location regression ------------------------------------------------------------- */

static const int64_t lengths[] = {2, 10, 100, 1000};
static const int64_t dimensions[] = {100, 400, 10000, 1000000, 1000000000};
static const double strengths[] = {0.5, 1, 2, 3, 5, 8, 12};
#define COUNT(array) (int)(sizeof(array) / sizeof *(array))
enum { CELLS = COUNT(lengths) * COUNT(dimensions), SPIKED_L = 2 };

/* Tokens drawn for one Bayes risk: the whole table then takes a second or two. */
static const int64_t BUDGET = 400000;

typedef struct cell {
    int64_t L, d;
    double lam;
    fin_estimate oracle, linear, bayes;
} cell;

typedef struct spiked_cell {
    double snr, linear;
    fin_estimate bayes;
} spiked_cell;

static fin_status compute_cell(cell *c, fin_error *err)
{
    const fin_task_kind *slr = fin_task_find("slr");
    const fin_form *erf = fin_form_find("erf");
    fin_task_settings settings;
    fin_form_settings form;
    fin_risk_settings how;
    fin_settings_defaults(fin_task_kind_table(slr), &settings);
    fin_settings_defaults(fin_form_table(erf), &form);
    fin_settings_defaults(&fin_risk_table, &how);
    settings.L = c->L;
    settings.d = c->d;
    how.samples = BUDGET / c->L;
    fin_task *task;
    fin_status status = fin_task_create(&task, slr, &settings, NULL, 1, 0, err);
    if (status)
        return status;
    status = fin_lam_star(task, erf, &form, &how, cli_progress(), &c->lam, &c->oracle, err);
    if (!status)
        status = fin_risk_bayes(task, &how, cli_progress(), &c->bayes, err);
    c->linear = fin_risk_linear(task, NULL);
    fin_task_destroy(task);
    return status;
}

static fin_status compute(cell *cells, spiked_cell *spiked, fin_error *err)
{
    for (int i = 0; i < CELLS; i++) {
        cells[i].L = lengths[i / COUNT(dimensions)];
        cells[i].d = dimensions[i % COUNT(dimensions)];
        cli_progress_part((double)i / CELLS, 1.0 / CELLS);
        fin_status status = compute_cell(&cells[i], err);
        if (!status && cli_cancelled())
            status = cli_status(err, FIN_ERR_CANCELLED, "cancelled");
        if (status)
            return status;
    }
    for (int i = 0; i < COUNT(strengths); i++) {
        spiked[i].snr = strengths[i];
        spiked[i].linear = fin_spiked_linear(strengths[i], SPIKED_L);
        fin_status status = fin_spiked_bayes(strengths[i], SPIKED_L, &spiked[i].bayes, err);
        if (status)
            return status;
    }
    return FIN_OK;
}

/* ---- as text -------------------------------------------------------------------------------- */

static void print_slr(const cell *cells)
{
    printf("Single-location regression: gamma = sqrt(1/2), mu = sqrt(d/2), eps = 0\n\n"
           "%6s %10s  %-11s %-11s %-11s %-11s %-11s %-11s %s\n",
           "L", "d", "lam*", "lam*sqrt(d)", "lam*sqrt(L)", "erf oracle", "linear", "Bayes", "s.e.");
    for (int i = 0; i < CELLS; i++) {
        const cell *c = &cells[i];
        printf("%s%6lld %10lld  %-11.5g %-11.4g %-11.4g %-11.5g %-11.6g %-11.4g %.1g\n",
               i && i % COUNT(dimensions) == 0 ? "\n" : "", (long long)c->L, (long long)c->d,
               c->lam, c->lam * sqrt((double)c->d), c->lam * sqrt((double)c->L), c->oracle.value,
               c->linear.value, c->bayes.value, c->bayes.error);
    }
    printf("\n%17s  %-11s %-11s %-11s %-11s %s\n"
           "how: lam* by search; erf oracle: %s; linear: %s;\n"
           "     Bayes: %s, %lld / L samples; 0 is less than 1e-308\n"
           "limits: d -> inf at fixed L\n",
           "papers' limits", "", "-> inf", "-> 0", "-> eps^2 = 0", "-> gamma^2 + eps^2 = 0.5",
           fin_method_name(cells[0].oracle.method), fin_method_name(cells[0].linear.method),
           fin_method_name(cells[0].bayes.method), (long long)BUDGET);
}

static void print_spiked(const spiked_cell *spiked)
{
    char how[128];
    printf("\nSpiked task, L = %d, risk over Var(Y): softmax is Bayes\n\n"
           "%6s  %-22s %-22s %s\n",
           SPIKED_L, "snr", "softmax = Bayes", "best linear attention", "linear * snr / L");
    for (int i = 0; i < COUNT(strengths); i++)
        printf("%6g  %-22.15g %-22.15g %.4g\n", spiked[i].snr, spiked[i].bayes.value,
               spiked[i].linear, spiked[i].linear * spiked[i].snr / SPIKED_L);
    printf("\npaper's limits: Bayes decays exponentially in snr, linear like L/snr (last column -> "
           "1)\n"
           "how: Bayes: %s (last row); linear: closed form\n",
           cli_how(&spiked[COUNT(strengths) - 1].bayes, how, sizeof how));
}

/* ---- as JSON -------------------------------------------------------------------------------- */

static json_t *json_cell(const cell *c)
{
    return json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "L", (json_int_t)c->L, "d",
                     (json_int_t)c->d, "lam_star", cli_json_number(c->lam), "lam_sqrt_d",
                     cli_json_number(c->lam * sqrt((double)c->d)), "lam_sqrt_L",
                     cli_json_number(c->lam * sqrt((double)c->L)), "oracle",
                     cli_json_estimate(&c->oracle), "linear", cli_json_estimate(&c->linear),
                     "bayes", cli_json_estimate(&c->bayes));
}

static json_t *json_all(const cell *cells, const spiked_cell *spiked)
{
    json_t *slr = json_array(), *sequel = json_array();
    for (int i = 0; i < CELLS; i++)
        json_array_append_new(slr, json_cell(&cells[i]));
    for (int i = 0; i < COUNT(strengths); i++)
        json_array_append_new(sequel, json_pack("{s:o, s:i, s:o, s:o}", "snr",
                                                cli_json_number(spiked[i].snr), "L", SPIKED_L,
                                                "linear", cli_json_number(spiked[i].linear),
                                                "bayes", cli_json_estimate(&spiked[i].bayes)));
    return json_pack("{s:o, s:{s:f, s:f}, s:o}", "slr", slr, "slr_limits", "oracle", 0.0, "linear",
                     0.5, "spiked", sequel);
}

int reproduce_limits(cli_args *args, json_t **json)
{
    static cell cells[CELLS];
    static spiked_cell spiked[COUNT(strengths)];
    fin_error err = {FIN_OK, ""};
    if (compute(cells, spiked, &err))
        return cli_error(&err);
    cli_progress_end();
    if (cli_get(args, "json")) {
        *json = json_all(cells, spiked);
        return CLI_OK;
    }
    print_slr(cells);
    print_spiked(spiked);
    return cli_flush();
}
