/* finetti landscape: the risk over (kappa, nu), where gradient flow goes, and where it rests. */
#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int run(cli_args *args);
static void prepare(cli_args *args);

static const cli_word words[] = {
    {"points", "FILE", "the numbers, without the grids, for each row of a CSV file of settings"},
    {"out", "FILE",
     "the grid as CSV: kappa, nu, risk, its derivatives d_kappa and d_nu, the velocity flow_kappa, "
     "flow_nu of gradient flow, and gradient, its norm. - is standard output. FILE.npz gets the "
     "stationary points, too"},
    {"json", NULL, "print JSON: numbers, stationary points and grid"},
    {NULL, NULL, NULL},
};
static const cli_word lists[] = {CLI_ROW_LISTS, {NULL, NULL, NULL}};

const cli_command cli_landscape = {
    .name = "landscape",
    .summary = "risk, gradient flow and stationary points over (kappa, nu)",
    .about =
        "Prints the stationary points of the risk on M (theta = eta = rho = 0) with the\n"
        "eigenvalues of the Hessian in all of the two spheres. Then the range of the risk over a\n"
        "grid of (kappa, nu); --out writes that grid. Then the stationary points found anywhere,\n"
        "with the share of random starts whose gradient flow ends there (--starts: 100 if there\n"
        "is neither --out nor a sweep; 0: on M only). For forms whose risk has an "
        "exact gradient:\n"
        "element-wise ones, on slr and spiked. Points of the grid that no unit vectors have are\n"
        "left out.",
    .examples = "  finetti landscape --lam 0.1\n"
                "  finetti landscape --grid 101 --out plane.csv\n"
                "  finetti landscape --theta 0.3 --rho 0.1 --kappa-range 0:1 --out - | head\n"
                "  finetti landscape --task spiked --form shifted --c 1 --json\n",
    .row = "landscape",
    .words = words,
    .lists = lists,
    .prepare = prepare,
    .computes = true,
    .run = run,
};

/* The numbers of a series, which the command has. */
static const double *series(const fin_result *result, const char *name, int64_t *rows)
{
    for (int i = 0; i < fin_result_series_count(result); i++) {
        fin_series s = fin_result_get_series(result, i);
        if (strcmp(s.name, name) == 0) {
            *rows = s.shape[0];
            return s.data;
        }
    }
    *rows = 0;
    return NULL;
}

static double number(const fin_result *result, const char *name)
{
    fin_scalar s = {.value = NAN};
    cli_find_scalar(result, name, &s);
    return s.value;
}

/* ---- printing ------------------------------------------------------------------------------- */

/* What cannot be told from 0 is shown as 0. */
static double rounded(double eigenvalue, double tolerance)
{
    return fabs(eigenvalue) > tolerance ? eigenvalue : 0;
}

static void print_eigenvalues(const fin_result *result, int64_t i)
{
    enum { SPAN = 6, REST = 2 };
    int64_t n;
    const double *span = series(result, "point_span", &n) + i * SPAN,
                 *rest = series(result, "point_rest", &n) + i * REST,
                 tolerance = series(result, "point_tolerance", &n)[i];
    for (int k = 0; k < SPAN && !isnan(span[k]); k++)
        printf("%s%.4g", k ? " " : "", rounded(span[k], tolerance));
    if (!isnan(rest[0]))
        printf("; %.4g and %.4g, each %.0f times", rounded(rest[0], tolerance),
               rounded(rest[1], tolerance), series(result, "point_rest_count", &n)[i]);
    putchar('\n');
}

static void print_stationary(const fin_result *result)
{
    static const char *const kinds[] = {"minimum", "saddle", "maximum", "degenerate"};
    int64_t n;
    const double *kappa = series(result, "point_kappa", &n), *nu = series(result, "point_nu", &n),
                 *risk = series(result, "point_risk", &n), *kind = series(result, "point_kind", &n),
                 *negative = series(result, "point_negative", &n);
    printf("\nStationary points on M (theta = eta = rho = 0)\n\n%-13s %-13s %-16s %-11s %-9s %s\n",
           "kappa", "nu", "risk", "kind", "negative", "eigenvalues: in the span; the rest");
    for (int64_t i = 0; i < n; i++) {
        printf("%-13.8g %-13.8g %-16.10g %-11s %-9.0f ", kappa[i], nu[i], risk[i],
               kinds[(int)kind[i]], negative[i]);
        print_eigenvalues(result, i);
    }
}

static void print_range(const fin_result *result)
{
    int64_t rows, columns;
    const double *kappa = series(result, "kappa", &rows), *nu = series(result, "nu", &columns);
    double left_out = number(result, "left_out");
    fin_scalar least = {.name = NULL};
    char how[128];
    cli_find_scalar(result, "least_risk", &least);
    printf("\nGrid of %.0f points, kappa in [%g, %g], nu in [%g, %g]",
           (double)rows * (double)columns - left_out, kappa[0], kappa[rows - 1], nu[0],
           nu[columns - 1]);
    if (left_out > 0)
        printf("; %.0f left out: no unit vectors have these overlaps", left_out);
    printf("\nleast risk    %.10g at kappa = %g, nu = %g\n", least.value,
           number(result, "least_kappa"), number(result, "least_nu"));
    printf("greatest risk %.10g at kappa = %g, nu = %g\n", number(result, "greatest_risk"),
           number(result, "greatest_kappa"), number(result, "greatest_nu"));
    printf("how           %s\n", cli_scalar_how(&least, how, sizeof how));
}

static void print_everywhere(const fin_result *result)
{
    static const char *const kinds[] = {"minimum", "saddle", "maximum", "degenerate"};
    static const char *const names[] = {"all_kappa", "all_nu", "all_theta", "all_eta", "all_rho"};
    int64_t n;
    const double *risk = series(result, "all_risk", &n), *kind = series(result, "all_kind", &n),
                 *share = series(result, "all_share", &n), *low = series(result, "all_low", &n),
                 *high = series(result, "all_high", &n),
                 *negative = series(result, "all_negative", &n), *at[5];
    if (!risk)
        return;
    fin_scalar deepest = {.name = NULL};
    cli_find_scalar(result, "deepest_share", &deepest);
    for (int j = 0; j < 5; j++)
        at[j] = series(result, names[j], &n);
    printf("\nStationary points found anywhere, and where gradient flow from %lld random starts "
           "ends\n\n%-10s %-10s %-10s %-10s %-10s %-14s %-11s %-9s %s\n",
           (long long)deepest.samples, "kappa", "nu", "theta", "eta", "rho", "risk", "kind",
           "negative", "share of starts, 95 % interval");
    for (int64_t i = 0; i < n; i++) {
        for (int j = 0; j < 5; j++)
            printf("%-10.5f ", fabs(at[j][i]) < 5e-6 ? 0 : at[j][i]);
        printf("%-14.9g %-11s %-9.0f ", risk[i], kinds[(int)kind[i]], negative[i]);
        if (share[i] > 0)
            printf("%.3g, %.3g to %.3g", share[i], low[i], high[i]);
        else
            putchar('-');
        putchar('\n');
    }
    if (number(result, "unended") > 0)
        printf("%.3g of the starts end at none of them\n", number(result, "unended"));
}

/* ---- the grid as CSV ------------------------------------------------------------------------ */

static fin_status write_grid(const fin_result *result, const char *path, fin_error *err)
{
    static const char *const names[] = {"kappa", "nu",         "risk",    "d_kappa",
                                        "d_nu",  "flow_kappa", "flow_nu", "gradient"};
    enum { COLUMNS = sizeof names / sizeof *names };
    const double *of[COLUMNS];
    int64_t n = 0, side;
    fin_csv *csv;
    for (int j = 0; j < COLUMNS; j++)
        of[j] = series(result, names[j], &side);
    fin_status status = fin_csv_open(path, names, COLUMNS, &csv, err);
    for (int64_t i = 0; i < side * side && !status; i++) {
        double row[COLUMNS] = {of[0][i / side], of[1][i % side]};
        for (int j = 2; j < COLUMNS; j++)
            row[j] = of[j][i];
        if (isnan(row[2])) /* no unit vectors have these overlaps */
            continue;
        n++;
        status = fin_csv_row(csv, row, err);
    }
    if (status) {
        fin_csv_abort(csv);
        return status;
    }
    if (!(status = fin_csv_commit(csv, err)))
        cli_note("%lld points to %s; %.0f left out: no unit vectors have these overlaps",
                 (long long)n, strcmp(path, "-") ? path : "standard output",
                 number(result, "left_out"));
    return status;
}

/* ---- running -------------------------------------------------------------------------------- */

static int show(cli_args *args, const fin_result *result)
{
    const char *out = cli_get(args, "out");
    fin_error err = {FIN_OK, ""};
    if (out && (cli_ends_with(out, ".npz") ? cli_write_result(out, result, &err)
                                           : write_grid(result, out, &err)))
        return cli_error(&err);
    if (cli_get(args, "json"))
        return cli_print_result_json(args, result);
    if (out)
        return cli_flush();
    CLI_TRY(cli_print_asked_model(args));
    print_stationary(result);
    print_range(result);
    print_everywhere(result);
    return cli_flush();
}

static void prepare(cli_args *args)
{
    if (!cli_given(args, "starts") && !cli_get(args, "out") && !cli_is_many(args))
        cli_add(args, "starts", "100");
}

static int run(cli_args *args)
{
    fin_result *result;
    int code = cli_check_row(args);
    if (code || cli_is_many(args))
        return code ? code : cli_sweep(args, NULL);
    code = cli_run_row(args, &result);
    if (!code)
        code = show(args, result);
    fin_result_destroy(result);
    return code;
}
