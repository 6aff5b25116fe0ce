/* finetti landscape: the risk over (kappa, nu), where gradient flow goes, and where it rests. */
#include "landscape.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int run(cli_args *args);

static const cli_word words[] = {
    {"kappa_range", "FROM:TO", "the grid along kappa; default -1:1"},
    {"nu_range", "FROM:TO", "the grid along nu; default -1:1"},
    {"out", "FILE",
     "the grid as CSV: kappa, nu, risk, its derivatives d_kappa and d_nu, the velocity flow_kappa, "
     "flow_nu of gradient flow, and gradient, the norm of the gradient on the spheres; - is "
     "standard output"},
    {"json", NULL, "print JSON: the stationary points and, if --grid is given, the grid"},
    {NULL, NULL, NULL},
};

const cli_command cli_landscape = {
    .name = "landscape",
    .summary = "risk, gradient flow and stationary points over (kappa, nu)",
    .about =
        "Prints the stationary points of the risk on M (theta = eta = rho = 0) with the\n"
        "eigenvalues of the Hessian in all of the two spheres, and the range of the risk over a\n"
        "grid of (kappa, nu); --out writes that grid. For forms whose risk has an exact gradient:\n"
        "element-wise ones, on slr and spiked. Points of the grid that no unit vectors have are\n"
        "left out.",
    .examples = "  finetti landscape --lam 0.1\n"
                "  finetti landscape --grid 101 --out plane.csv\n"
                "  finetti landscape --theta 0.3 --rho 0.1 --kappa-range 0:1 --out - | head\n"
                "  finetti landscape --task spiked --form shifted --c 1 --json\n",
    .row = "landscape",
    .computes = true,
    .words = words,
    .run = run,
};

/* ---- stationary points ---------------------------------------------------------------------- */

enum { POINTS_MOST = 256 };

typedef struct stationary_list {
    fin_stationary point[POINTS_MOST];
    int64_t count, found; /* written here, and in all */
} stationary_list;

/* What cannot be told from 0 is shown as 0. */
static double rounded(const fin_curvature *c, double eigenvalue)
{
    return fabs(eigenvalue) > c->tolerance ? eigenvalue : 0;
}

static void print_eigenvalues(const fin_curvature *c)
{
    for (int i = 0; i < c->span_count; i++)
        printf("%s%.4g", i ? " " : "", rounded(c, c->span[i]));
    if (c->rest_count)
        printf("; %.4g and %.4g, each %lld times", rounded(c, c->rest[0]), rounded(c, c->rest[1]),
               (long long)c->rest_count);
    putchar('\n');
}

static void print_stationary(const stationary_list *list, int64_t d)
{
    printf("\nStationary points on M (theta = eta = rho = 0)\n\n%-13s %-13s %-16s %-11s %-9s %s\n",
           "kappa", "nu", "risk", "kind", "negative", "eigenvalues: in the span; the rest");
    for (int64_t i = 0; i < list->count; i++) {
        const fin_stationary *p = &list->point[i];
        printf("%-13.8g %-13.8g %-16.10g %-11s %-9lld ", p->at.kappa, p->at.nu, p->risk,
               fin_curvature_name(&p->curvature, d), (long long)p->curvature.negative);
        print_eigenvalues(&p->curvature);
    }
    if (list->found > list->count)
        printf("... and %lld more\n", (long long)(list->found - list->count));
}

static void print_range(const landscape *g)
{
    const landscape_point *least = g->points, *most = g->points;
    for (int64_t i = 0; i < g->count; i++) {
        least = g->points[i].risk < least->risk ? &g->points[i] : least;
        most = g->points[i].risk > most->risk ? &g->points[i] : most;
    }
    char how[128];
    printf("\nGrid of %lld points, kappa in [%g, %g], nu in [%g, %g]", (long long)g->count,
           g->kappa.from, g->kappa.to, g->nu.from, g->nu.to);
    if (g->left_out)
        printf("; %lld left out: no unit vectors have these overlaps", (long long)g->left_out);
    printf("\n");
    if (!g->count)
        return;
    printf("least risk    %.10g at kappa = %g, nu = %g\n", least->risk, least->kappa, least->nu);
    printf("greatest risk %.10g at kappa = %g, nu = %g\n", most->risk, most->kappa, most->nu);
    printf("how           %s\n", cli_how(&g->how, how, sizeof how));
}

/* ---- as JSON -------------------------------------------------------------------------------- */

static json_t *json_stationary(const stationary_list *list, int64_t d)
{
    json_t *array = json_array();
    for (int64_t i = 0; i < list->count; i++) {
        const fin_stationary *p = &list->point[i];
        json_t *object = train_json_curvature(&p->curvature, d);
        json_object_set_new(object, "kappa", cli_json_number(p->at.kappa));
        json_object_set_new(object, "nu", cli_json_number(p->at.nu));
        json_object_set_new(object, "risk", cli_json_number(p->risk));
        json_array_append_new(array, object);
    }
    return array;
}

static json_t *json_grid(const landscape *g)
{
    json_t *root = json_object();
#define COLUMN(name)                                                                               \
    {                                                                                              \
        json_t *list = json_array();                                                               \
        for (int64_t i = 0; i < g->count; i++)                                                     \
            json_array_append_new(list, cli_json_number(g->points[i].name));                       \
        json_object_set_new(root, #name, list);                                                    \
    }
    LANDSCAPE_COLUMNS(COLUMN)
#undef COLUMN
    return root;
}

static int print_json(cli_args *args, const fin_task *task, const landscape *g,
                      const stationary_list *list)
{
    int64_t d = fin_task_get_settings(task)->d;
    json_t *root = cli_json_model(args, task);
    json_object_set_new(root, "stationary", json_stationary(list, d));
    json_object_set_new(root, "stationary_count", json_integer((json_int_t)list->found));
    json_object_set_new(root, "method", json_string(fin_method_name(g->how.method)));
    json_object_set_new(root, "left_out", json_integer((json_int_t)g->left_out));
    if (cli_given(args, "grid"))
        json_object_set_new(root, "grid", json_grid(g));
    return cli_print_json(root);
}

/* ---- running -------------------------------------------------------------------------------- */

static int print(cli_args *args, const fin_task *task, const landscape *g,
                 const stationary_list *list)
{
    if (cli_get(args, "json"))
        return print_json(args, task, g, list);
    cli_print_model(args, task);
    print_stationary(list, fin_task_get_settings(task)->d);
    print_range(g);
    return cli_flush();
}

static int written(const landscape *g, const char *path)
{
    cli_note("%lld points to %s; %lld left out: no unit vectors have these overlaps",
             (long long)g->count, strcmp(path, "-") ? path : "standard output",
             (long long)g->left_out);
    return CLI_OK;
}

static int run(cli_args *args)
{
    static stationary_list list;
    const char *out = cli_get(args, "out");
    bool json = cli_get(args, "json");
    landscape g;
    fin_task *task = NULL;
    fin_error err = {FIN_OK, ""};
    int code = landscape_read(&g, args);
    if (!code && out && json && strcmp(out, "-") == 0)
        code = cli_usage("--json and the grid cannot both go to standard output");
    if (code)
        return code;
    fin_status status = cli_task_create(args, 1, 0, &task, &err);
    if (!status && out && strcmp(out, "-") != 0)
        status = cli_try_output(out, &err);
    if (!status)
        status = landscape_compute(&g, args, task, &err);
    if (!status && (json || !out))
        status = fin_stationary_points(task, cli_form(args),
                                       cli_values(args, fin_form_table(cli_form(args))),
                                       POINTS_MOST, list.point, &list.found, &err);
    list.count = list.found < POINTS_MOST ? list.found : POINTS_MOST;
    if (!status && out)
        status = landscape_write(&g, out, &err);
    cli_progress_end();
    code = status         ? cli_error(&err)
           : json || !out ? print(args, task, &g, &list)
                          : written(&g, out);
    free(g.points);
    fin_task_destroy(task);
    return code;
}
