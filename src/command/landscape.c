/* landscape: the risk over (kappa, nu), its derivatives, and where gradient flow rests: on M, and anywhere. */
#include "command/command.h"

#include "math/small.h"
#include "math/stats.h"
#include "theory/theory.h"
#include "train/train.h"
#include "task/task.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/*   type     field    default        lowest  highest         meaning */
#define PLANE_FIELDS(F, C)                                                                         \
    F(int64_t, grid, 41, 2, 2049, "points of the grid along kappa, and along nu")                  \
    F(double, theta, 0, -1, 1, "v.k* at every point of the grid")                                  \
    F(double, eta, 0, -1, 1, "k.v* at every point of the grid")                                    \
    F(double, rho, 0, -1, 1, "k.v at every point of the grid")                                     \
    F(int64_t, starts, 0, 0, INT64_C(1) << 20,                                                     \
      "random starts on the spheres of R^d from which gradient flow is followed to where it "      \
      "ends, and of the "                                                                          \
      "search for stationary points off M; 0: neither")                                            \
    F(int64_t, seed, 1, 0, INT64_C(1) << 53, "seed of these starts")

#define FIN_TABLE_STRUCT plane_settings
FIN_TABLE_OF_ITS_OWN(plane_table, "plane", PLANE_FIELDS);

typedef struct landscape_values {
    fini_model model;
    plane_settings plane;
    char kappa_range[48], nu_range[48];
} landscape_values;

static const fin_word words[] = {
    FINI_MODEL_WORDS(landscape_values, model),
    {FIN_WORD_OF("kappa_range", landscape_values, kappa_range, "-1:1",
                 "ends of the grid along kappa, FROM:TO"),
     .quiet = 1},
    {FIN_WORD_OF("nu_range", landscape_values, nu_range, "-1:1", "ends of the grid along nu"),
     .quiet = 1},
    FIN_WORDS_END,
};

static const fin_output outputs[] = {
    {"minima", "stationary points on M that are minima in the whole space", "points"},
    {"saddles", "those that are saddles", "points"},
    {"stationary", "stationary points on M (theta = eta = rho = 0)", "points"},
    {"least_risk", "least risk on the grid", NULL},
    {"least_kappa", "where that is", NULL},
    {"least_nu", "where that is", NULL},
    {"greatest_risk", "greatest risk on the grid", NULL},
    {"greatest_kappa", "where that is", NULL},
    {"greatest_nu", "where that is", NULL},
    {"left_out", "points of the grid whose overlaps no unit vectors have", "points"},
    {"kappa", "(n) the grid along kappa", NULL},
    {"nu", "(n) the grid along nu", NULL},
    {"risk", "(n, n) the risk, a row for every kappa; nan where no unit vectors have the overlaps",
     NULL},
    {"d_kappa", "(n, n) its derivative in kappa", NULL},
    {"d_nu", "(n, n) its derivative in nu", NULL},
    {"flow_kappa", "(n, n) velocity of kappa under gradient flow on the spheres", NULL},
    {"flow_nu", "(n, n) velocity of nu", NULL},
    {"gradient", "(n, n) norm of the gradient on the spheres", NULL},
    {"point_kappa", "(stationary) kappa of the stationary points, by risk", NULL},
    {"point_nu", "(stationary) their nu", NULL},
    {"point_risk", "(stationary) their risk", NULL},
    {"point_kind",
     "(stationary) 0 minimum, 1 saddle, 2 maximum, 3 degenerate: flat, and none negative", NULL},
    {"point_negative", "(stationary) negative eigenvalues of the Hessian there, with multiplicity",
     NULL},
    {"point_flat", "(stationary) those that cannot be told from 0", NULL},
    {"point_gradient", "(stationary) norm of the gradient on the spheres", NULL},
    {"point_tolerance", "(stationary) what the differences behind the Hessian leave undecided",
     NULL},
    {"point_rest_count", "(stationary) how often each of point_rest is there: d - 4, or 0", NULL},
    {"point_span", "(stationary, 6) eigenvalues in span(k, v, k*, v*), ascending; nan if fewer",
     NULL},
    {"point_rest", "(stationary, 2) the two eigenvalues in all other directions; nan if none",
     NULL},
    {"everywhere", "stationary points found in the whole space, with those on M", "points"},
    {"everywhere_minima", "those that are minima, or flat and nowhere down", "points"},
    {"deepest_risk", "least risk of any of them", NULL},
    {"deepest_share", "share of the starts that end with that risk", NULL},
    {"deepest_low", "lower end of the 95 % interval of that share (Wilson)", NULL},
    {"deepest_high", "upper end of it", NULL},
    {"unended", "share of the starts that end at none of the points", NULL},
    {"all_kappa", "(everywhere) kappa of all stationary points found, by risk", NULL},
    {"all_nu", "(everywhere) their nu", NULL},
    {"all_theta", "(everywhere) their theta", NULL},
    {"all_eta", "(everywhere) their eta", NULL},
    {"all_rho", "(everywhere) their rho", NULL},
    {"all_risk", "(everywhere) their risk", NULL},
    {"all_kind", "(everywhere) as point_kind", NULL},
    {"all_negative", "(everywhere) as point_negative", NULL},
    {"all_flat", "(everywhere) as point_flat", NULL},
    {"all_share", "(everywhere) share of the starts whose gradient flow ends there", NULL},
    {"all_low", "(everywhere) lower end of the 95 % interval of that share (Wilson)", NULL},
    {"all_high", "(everywhere) upper end of it", NULL},
    {NULL, NULL, NULL},
};

static fin_status groups(void *values, fin_group list[FIN_GROUPS], int *count, fin_error *err)
{
    landscape_values *v = values;
    FINI_TRY(fini_model_groups(&v->model, list, count, err));
    list[(*count)++] = (fin_group){&plane_table, &v->plane};
    return FIN_OK;
}

typedef struct range {
    double from, to;
} range;

static fin_status read_range(const char *name, const char *text, range *r, fin_error *err)
{
    char *end;
    r->from = fini_strtod(text, &end);
    const char *second = end + 1;
    bool good = end != text && *end == ':';
    r->to = good ? fini_strtod(second, &end) : 0;
    if (!good || end == second || *end)
        return fini_fail(err, FIN_ERR_ARGUMENT, "%s = '%s' is not FROM:TO, such as 0:1", name,
                         text);
    if (!(r->from >= -1 && r->from < r->to && r->to <= 1))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%s = '%s': an overlap is from -1 to 1, and FROM below TO", name, text);
    return FIN_OK;
}

static fin_status read_ranges(const landscape_values *v, range *kappa, range *nu, fin_error *err)
{
    FINI_TRY(read_range("kappa_range", v->kappa_range, kappa, err));
    return read_range("nu_range", v->nu_range, nu, err);
}

/* The curvature at one point says best which combinations have an exact risk, and why not. */
static fin_status check(const void *values, fin_error *err)
{
    const fini_model *model = &((const landscape_values *)values)->model;
    const fin_overlaps oracle = {.kappa = 1, .nu = 1};
    range kappa, nu;
    fin_curvature curvature;
    fin_task *task;
    fin_error inner = {FIN_OK, ""};
    FINI_TRY(read_ranges(values, &kappa, &nu, err));
    FINI_TRY(fini_model_check(model, err));
    FINI_TRY(fini_model_task(model, 1, 0, &task, err));
    fin_status status = fin_risk_curvature(task, fini_model_form(model), &model->form_settings,
                                           &oracle, &curvature, &inner);
    fin_task_destroy(task);
    return status == FIN_ERR_UNSUPPORTED ? fini_fail(err, status, "%s", inner.message) : FIN_OK;
}

static void tidy_range(char text[48])
{
    range r;
    char from[FINI_SHORTEST], to[FINI_SHORTEST];
    if (read_range("", text, &r, NULL))
        return;
    fini_shortest(r.from, from);
    fini_shortest(r.to, to);
    memset(text, 0, 48);
    snprintf(text, 48, "%.22s:%.22s", from, to);
}

static void tidy(void *values)
{
    landscape_values *v = values;
    tidy_range(v->kappa_range);
    tidy_range(v->nu_range);
}

/* ---- the grid -------------------------------------------------------------------------------- */

/* The series of the grid, in this order in `planes`. */
enum { RISK, D_KAPPA, D_NU, FLOW_KAPPA, FLOW_NU, GRADIENT, PLANES };
static const char *const plane_names[PLANES] = {"risk",       "d_kappa", "d_nu",
                                                "flow_kappa", "flow_nu", "gradient"};

typedef struct extreme {
    fin_estimate risk;
    double kappa, nu;
} extreme;

typedef struct grid {
    const landscape_values *v;
    const fin_task *task;
    int64_t side, left_out;
    double *kappa, *nu;     /* (side) */
    double *planes[PLANES]; /* (side, side) */
    extreme least, greatest;
    bool any;
} grid;

static fin_status point(grid *g, int64_t i, int64_t j, fin_error *err)
{
    const plane_settings *p = &g->v->plane;
    fin_overlaps at = {g->kappa[i], g->nu[j], p->theta, p->eta, p->rho};
    int64_t place = i * g->side + j;
    for (int k = 0; k < PLANES; k++)
        g->planes[k][place] = NAN;
    if (fini_overlaps_realisable(&at, fin_task_get_settings(g->task)->d, NULL)) {
        g->left_out++;
        return FIN_OK;
    }
    fin_risk_report report;
    FINI_TRY(fin_risk(g->task, fini_model_form(&g->v->model), &g->v->model.form_settings, &at, NULL,
                      NULL, &report, err));
    fini_sphere_gradient sphere = fini_gradient_of(&at, report.gradient);
    const double numbers[PLANES] = {report.risk.value, report.gradient[0], report.gradient[1],
                                    0 - sphere.kappa,  0 - sphere.nu,      sphere.norm};
    for (int k = 0; k < PLANES; k++)
        g->planes[k][place] = numbers[k];
    extreme here = {report.risk, at.kappa, at.nu};
    if (!g->any || here.risk.value < g->least.risk.value)
        g->least = here;
    if (!g->any || here.risk.value > g->greatest.risk.value)
        g->greatest = here;
    g->any = true;
    return FIN_OK;
}

/* Ends exactly; symmetric ranges have symmetric points. */
static void set_axis(double *axis, int64_t n, range r)
{
    double last = (double)(n - 1);
    for (int64_t i = 0; i < n; i++)
        axis[i] = (double)(n - 1 - i) / last * r.from + (double)i / last * r.to;
}

static fin_status fill(grid *g, const fin_progress *progress, fin_error *err)
{
    range kappa, nu;
    FINI_TRY(read_ranges(g->v, &kappa, &nu, err));
    set_axis(g->kappa, g->side, kappa);
    set_axis(g->nu, g->side, nu);
    for (int64_t i = 0; i < g->side; i++) {
        for (int64_t j = 0; j < g->side; j++)
            FINI_TRY(point(g, i, j, err));
        FINI_TRY(fini_go_on(progress, "landscape", (double)i, (double)g->side, err));
    }
    if (!g->any)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "no unit vectors have theta = %g, eta = %g, rho = %g with any kappa and "
                         "nu of the grid; smaller ones usually work",
                         g->v->plane.theta, g->v->plane.eta, g->v->plane.rho);
    return FIN_OK;
}

static void add_extreme(fin_result *result, const char *const names[3], const extreme *e)
{
    fini_result_estimate(result, names[0], &e->risk);
    fini_result_scalar(result, names[1], e->kappa, 0, FIN_HOW_DERIVED, 0);
    fini_result_scalar(result, names[2], e->nu, 0, FIN_HOW_DERIVED, 0);
}

static void add_grid(const grid *g, fin_result *result)
{
    const int64_t shape[2] = {g->side, g->side};
    fini_result_series(result, "kappa", FIN_F64, 1, shape, g->kappa);
    fini_result_series(result, "nu", FIN_F64, 1, shape, g->nu);
    for (int k = 0; k < PLANES; k++)
        fini_result_series(result, plane_names[k], FIN_F64, 2, shape, g->planes[k]);
    add_extreme(result, (const char *const[]){"least_risk", "least_kappa", "least_nu"}, &g->least);
    add_extreme(result, (const char *const[]){"greatest_risk", "greatest_kappa", "greatest_nu"},
                &g->greatest);
    fini_result_scalar(result, "left_out", (double)g->left_out, 0, FIN_HOW_DERIVED, 0);
}

static fin_status grid_of(const landscape_values *v, const fin_task *task, fin_result *result,
                          const fin_progress *progress, fin_method *method, fin_error *err)
{
    grid g = {.v = v, .task = task, .side = v->plane.grid};
    int64_t plane = g.side * g.side, all = 2 * g.side + PLANES * plane; /* at most 2049^2 */
    FINI_ROOM(err, "the grid", g.kappa, all, 1);
    g.nu = g.kappa + g.side;
    for (int k = 0; k < PLANES; k++)
        g.planes[k] = g.nu + g.side + k * plane;
    fin_status status = fill(&g, progress, err);
    if (!status)
        add_grid(&g, result);
    *method = g.least.risk.method;
    fini_free(g.kappa);
    return status;
}

/* ---- stationary points ----------------------------------------------------------------------- */

typedef struct points {
    fin_stationary *at;
    int64_t count;
} points;

/* Room for the usual number; for all of them if there are more. */
static fin_status find_points(const landscape_values *v, const fin_task *task, points *found,
                              fin_error *err)
{
    int64_t room = 64;
    for (;;) {
        FINI_ROOM(err, "stationary points", found->at, room, 1);
        FINI_TRY(fin_stationary_points(task, fini_model_form(&v->model), &v->model.form_settings,
                                       room, found->at, &found->count, err));
        if (found->count <= room)
            return FIN_OK;
        fini_free(found->at);
        found->at = NULL;
        room = found->count;
    }
}

enum { COLUMNS = 9, SPAN = 6, REST = 2 };
static const char *const point_names[COLUMNS] = {
    "point_kappa", "point_nu",       "point_risk",      "point_kind",      "point_negative",
    "point_flat",  "point_gradient", "point_tolerance", "point_rest_count"};
static const char *const kinds[] = {"minimum", "saddle", "maximum", "degenerate"};

static int kind_of(const fin_curvature *c, int64_t d)
{
    int kind = 0;
    while (kind < 3 && strcmp(kinds[kind], fin_curvature_name(c, d)) != 0)
        kind++;
    return kind;
}

static fin_status add_points(const points *found, int64_t d, fin_how how, fin_result *result,
                             fin_error *err)
{
    int64_t n = found->count, counts[4] = {0};
    FINI_OWN(err, "stationary points", double, values, n, COLUMNS + SPAN + REST);
    double *span = values + COLUMNS * n, *rest = span + SPAN * n;
    for (int64_t i = 0; i < n; i++) {
        const fin_stationary *p = &found->at[i];
        const fin_curvature *c = &p->curvature;
        int kind = kind_of(c, d);
        const double row[COLUMNS] = {
            p->at.kappa,          p->at.nu,        p->risk,     kind,
            (double)c->negative,  (double)c->flat, c->gradient, c->tolerance,
            (double)c->rest_count};
        counts[kind]++;
        for (int k = 0; k < COLUMNS; k++)
            values[k * n + i] = row[k];
        for (int k = 0; k < SPAN; k++)
            span[i * SPAN + k] = k < c->span_count ? c->span[k] : NAN;
        for (int k = 0; k < REST; k++)
            rest[i * REST + k] = c->rest_count ? c->rest[k] : NAN;
    }
    fini_result_scalar(result, "minima", (double)counts[0], 0, how, 0);
    fini_result_scalar(result, "saddles", (double)counts[1], 0, how, 0);
    fini_result_scalar(result, "stationary", (double)n, 0, how, 0);
    for (int k = 0; k < COLUMNS; k++)
        fini_result_series(result, point_names[k], FIN_F64, 1, &n, values + k * n);
    fini_result_series(result, "point_span", FIN_F64, 2, (const int64_t[]){n, SPAN}, span);
    fini_result_series(result, "point_rest", FIN_F64, 2, (const int64_t[]){n, REST}, rest);
    return FIN_OK;
}

/* ---- anywhere -------------------------------------------------------------------------------- */

/* Stationary points of the whole space, and how many flows end at each. */
typedef struct basins {
    const landscape_values *v;
    const fin_task *task;
    const fin_progress *progress;
    int64_t count;
    fin_stationary at[512]; /* more than were ever seen */
    int64_t ends[512];
} basins;
enum { BASINS = sizeof((basins *)0)->at / sizeof *((basins *)0)->at };

static fin_status search(basins *b, fin_error *err)
{
    const fini_model *m = &b->v->model;
    /* few distinct points: a hundred tries, with their images, are plenty */
    const fin_stationary_tries tries = {fini_least(b->v->plane.starts, 100), b->v->plane.seed};
    return fin_stationary_search(b->task, fini_model_form(m), &m->form_settings, &tries, BASINS,
                                 b->at, &b->count, b->progress, err);
}

/* To the local minimum below where its flow stopped, and to that point's place in the list, if it is there. */
static fin_status settle_run(basins *b, const fin_train *runs, int64_t r, fin_error *err)
{
    const fini_model *m = &b->v->model;
    fin_run end;
    double risk;
    FINI_TRY(fin_train_get_run(runs, r, &end, err));
    if (end.status == FIN_RUN_DIVERGED)
        return FIN_OK;
    fin_overlaps o = {end.now.kappa, end.now.nu, end.now.theta, end.now.eta, end.now.rho};
    FINI_TRY(fini_valley(b->task, fini_model_form(m), &m->form_settings, &o, &risk, err));
    for (int64_t i = 0; i < b->count && i < BASINS; i++)
        if (fini_same_place(&b->at[i].at, &o, 1e-5)) {
            b->ends[i]++;
            break;
        }
    return FIN_OK;
}

/* Gradient flow, whose time is long enough for what Newton steps then finish: 10 over the risk's scale. */
static fin_status follow(basins *b, fin_error *err)
{
    const fini_model *m = &b->v->model;
    fin_train_settings how;
    fin_train *runs;
    fin_settings_defaults(&fin_train_table, &how, sizeof how);
    how.rule = FIN_RULE_FLOW;
    how.alpha = 1e4;
    how.steps = how.log_every = 1;
    how.stuck = 1e-9;
    how.runs = b->v->plane.starts;
    how.seed = b->v->plane.seed;
    fin_status status =
        fin_train_create(&runs, b->task, fini_model_form(m), &m->form_settings, &how, NULL, err);
    if (!status)
        status = fin_train_run(runs, how.steps, b->progress, err);
    for (int64_t r = 0; r < how.runs && !status; r++)
        status = settle_run(b, runs, r, err);
    fin_train_destroy(runs);
    return status;
}

static void add_basins(const basins *b, fin_how how, fin_result *result)
{
    static const char *const names[] = {"all_kappa", "all_nu",    "all_theta", "all_eta",
                                        "all_rho",   "all_risk",  "all_kind",  "all_negative",
                                        "all_flat",  "all_share", "all_low",   "all_high"};
    enum { ALL = sizeof names / sizeof *names };
    double values[ALL][BASINS];
    int64_t n = fini_least(b->count, BASINS), starts = b->v->plane.starts, minima = 0, deepest = 0,
            ended = 0, d = fin_task_get_settings(b->task)->d;
    for (int64_t i = 0; i < n; i++) {
        const fin_stationary *p = &b->at[i];
        int kind = kind_of(&p->curvature, d);
        fini_interval wilson = fini_wilson((double)b->ends[i], starts);
        const double row[ALL] = {p->at.kappa,
                                 p->at.nu,
                                 p->at.theta,
                                 p->at.eta,
                                 p->at.rho,
                                 p->risk,
                                 kind,
                                 (double)p->curvature.negative,
                                 (double)p->curvature.flat,
                                 (double)b->ends[i] / (double)starts,
                                 wilson.low,
                                 wilson.high};
        for (int k = 0; k < ALL; k++)
            values[k][i] = row[k];
        minima += kind == 0 || kind == 3;
        ended += b->ends[i];
        deepest += p->risk <= b->at[0].risk * (1 + 1e-9) ? b->ends[i] : 0;
    }
    fini_result_scalar(result, "everywhere", (double)n, 0, how, 0);
    fini_result_scalar(result, "everywhere_minima", (double)minima, 0, how, 0);
    fini_result_scalar(result, "deepest_risk", b->at[0].risk, 0, how, 0);
    fini_result_share(result, "deepest_share", "deepest", deepest, starts);
    fini_result_share(result, "unended", NULL, starts - ended, starts);
    for (int k = 0; k < ALL; k++)
        fini_result_series(result, names[k], FIN_F64, 1, &n, values[k]);
    if (b->count > n)
        fini_result_note(
            result,
            "more than %lld stationary points were found; those of a curve are all stationary",
            (long long)n);
}

static fin_status look_everywhere(const landscape_values *v, const fin_task *task, fin_how how,
                                  fin_result *result, const fin_progress *progress, fin_error *err)
{
    if (!v->plane.starts)
        return FIN_OK;
    FINI_OWN(err, "stationary points", basins, b, 1, 1);
    memset(b, 0, sizeof *b);
    b->v = v;
    b->task = task;
    b->progress = progress;
    FINI_TRY(search(b, err));
    FINI_TRY(follow(b, err));
    add_basins(b, how, result);
    return FIN_OK;
}

/* ---- running --------------------------------------------------------------------------------- */

/* The points first: that call says best which combinations have a gradient. */
static fin_status run(const void *values, fin_result *result, const fin_progress *progress,
                      fin_error *err)
{
    const landscape_values *v = values;
    fin_task *task;
    points found = {NULL, 0};
    fin_method method = FIN_METHOD_AUTO;
    fin_status status = fini_model_task(&v->model, 1, 0, &task, err);
    if (!status)
        status = find_points(v, task, &found, err);
    if (!status)
        status = grid_of(v, task, result, progress, &method, err);
    if (!status)
        status =
            add_points(&found, fin_task_get_settings(task)->d, fini_how_of(method), result, err);
    if (!status)
        status = look_everywhere(v, task, fini_how_of(method), result, progress, err);
    fini_free(found.at);
    fin_task_destroy(task);
    return status;
}

static fin_status settle(void *values, fin_error *err)
{
    return fini_model_settle(&((landscape_values *)values)->model, err);
}

const fin_command fini_command_landscape = {
    .name = "landscape",
    .summary = "the risk over (kappa, nu), its derivatives, its stationary points and their basins",
    .revision = 1,
    .size = sizeof(landscape_values),
    .words = words,
    .instead = fini_model_instead,
    .outputs = outputs,
    .groups = groups,
    .check = check,
    .tidy = tidy,
    .run = run,
    .settle = settle,
};
