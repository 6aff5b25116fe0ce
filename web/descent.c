/* Panels 2 and 3: the landscape of the risk, and how k and v move in it. */
#include "call.h"
#include "finetti/train.h"
#include "web.h"

#include <string.h>

static fin_task *slr_task(const web_slr *slr)
{
    fin_task *task = NULL;
    return fin_task_create(&task, fin_task_find("slr"), &slr->task, NULL, 1, 0, &web_error) ? NULL
                                                                                            : task;
}

/* Ends exactly, and symmetric: as the command `landscape` has it. */
static double axis_at(int64_t n, int64_t i)
{
    double last = (double)(n - 1);
    return (double)(n - 1 - i) / last * -1 + (double)i / last;
}

static void fill(const fin_task *task, double lam, int64_t n, fin_risk_point *points)
{
    const fin_task_settings *s = fin_task_get_settings(task);
    for (int64_t i = 0; i < n * n; i++)
        points[i] = (fin_risk_point){.kappa = axis_at(n, i / n),
                                     .nu = axis_at(n, i % n),
                                     .lam = lam,
                                     .gamma = s->gamma,
                                     .mu = s->mu,
                                     .eps = s->eps,
                                     .m = (double)s->m,
                                     .L_mean = fin_task_length_mean(task),
                                     .L_var = fin_task_length_variance(task)};
}

int web_plane(int count, const double *in, int room, double *out)
{
    web_in from = {in, count, false};
    web_slr slr = web_slr_of(&from);
    int64_t n = web_whole(&from), all = n >= 2 && n <= 2049 ? n * n : -1;
    if (!web_ready(&from, all, room))
        return -1;
    fin_task *task = slr_task(&slr);
    const int per_point = (int)(sizeof(fin_risk_point) / sizeof(double)),
              per_value = (int)(sizeof(fin_risk_value) / sizeof(double));
    double *memory = task ? web_take((int)all * (per_point + per_value)) : NULL;
    fin_risk_point *points = (fin_risk_point *)memory;
    fin_risk_value *values = (fin_risk_value *)(memory + (memory ? all * per_point : 0));
    if (memory)
        fill(task, slr.form.lam, n, points);
    fin_status status = memory ? fin_risk_erf(all, points, values, &web_error) : FIN_ERR_MEMORY;
    for (int64_t i = 0; i < all && !status; i++)
        out[i] = values[i].risk;
    web_give_back(memory);
    fin_task_destroy(task);
    return status ? -1 : (int)all;
}

int web_risk(int count, const double *in, int room, double *out)
{
    web_in from = {in, count, false};
    web_slr slr = web_slr_of(&from);
    fin_overlaps at = web_overlaps(&from);
    fin_risk_report report;
    fin_task *task = web_ready(&from, 4, room) ? slr_task(&slr) : NULL;
    fin_status status =
        task ? fin_risk(task, web_form(0), &slr.form, &at, NULL, NULL, &report, &web_error)
             : FIN_ERR_ARGUMENT;
    fin_task_destroy(task);
    if (status)
        return -1;
    out[0] = report.risk.value;
    out[1] = report.signal;
    out[2] = report.noise;
    out[3] = report.bias;
    return 4;
}

/* 0 minimum, 1 saddle, 2 maximum, 3 degenerate: as in the command `landscape`. */
static int kind_of(const fin_curvature *c, int64_t d)
{
    static const char *const kinds[] = {"minimum", "saddle", "maximum", "degenerate"};
    int kind = 0;
    while (kind < 3 && strcmp(kinds[kind], fin_curvature_name(c, d)) != 0)
        kind++;
    return kind;
}

int web_stationary(int count, const double *in, int room, double *out)
{
    enum { MOST = 64, EACH = 6 };
    static fin_stationary points[MOST];
    web_in from = {in, count, false};
    web_slr slr = web_slr_of(&from);
    int64_t found = 0;
    fin_task *task = web_ready(&from, MOST * EACH, room) ? slr_task(&slr) : NULL;
    fin_status status =
        task ? fin_stationary_points(task, web_form(0), &slr.form, MOST, points, &found, &web_error)
             : FIN_ERR_ARGUMENT;
    found = found < MOST ? found : MOST;
    for (int64_t i = 0; i < found && !status; i++) {
        const fin_stationary *p = &points[i];
        const double row[EACH] = {p->at.kappa,
                                  p->at.nu,
                                  p->risk,
                                  kind_of(&p->curvature, slr.task.d),
                                  (double)p->curvature.negative,
                                  (double)p->curvature.flat};
        memcpy(out + i * EACH, row, sizeof row);
    }
    fin_task_destroy(task);
    return status ? -1 : (int)found * EACH;
}

int web_curvature(int count, const double *in, int room, double *out)
{
    web_in from = {in, count, false};
    web_slr slr = web_slr_of(&from);
    fin_overlaps at = web_overlaps(&from);
    fin_curvature c;
    fin_task *task = web_ready(&from, 4, room) ? slr_task(&slr) : NULL;
    fin_status status = task ? fin_risk_curvature(task, web_form(0), &slr.form, &at, &c, &web_error)
                             : FIN_ERR_ARGUMENT;
    fin_task_destroy(task);
    if (status)
        return -1;
    out[0] = c.gradient;
    out[1] = c.span[0];
    out[2] = c.span[c.span_count - 1];
    if (c.rest_count > 0) {
        out[1] = c.rest[0] < out[1] ? c.rest[0] : out[1];
        out[2] = c.rest[1] > out[2] ? c.rest[1] : out[2];
    }
    out[3] = (double)c.negative;
    return 4;
}

/* ---- training ----------------------------------------------------------------------------------- */

enum { LOGGED = 8 };

static fin_train_settings settings_of(web_in *in)
{
    fin_train_settings s;
    fin_settings_defaults(&fin_train_table, &s, sizeof s);
    s.engine = web_choice(in, 2); /* population or reduced */
    s.init = web_choice(in, 3);   /* sphere, manifold or overlaps */
    s.alpha = web_number(in);
    s.decay = web_number(in);
    s.batch = web_whole(in);
    s.steps = web_whole(in);
    s.runs = web_whole(in);
    s.seed = web_whole(in);
    s.log_every = web_whole(in);
    return s;
}

/* How many numbers come out, or -1. */
static int64_t answers_of(const fin_train_settings *s)
{
    int64_t logs = s->log_every >= 1 && s->steps >= 0 ? s->steps / s->log_every + 2 : -1;
    if (logs < 1 || logs > 1 << 20 || s->runs < 1 || s->runs > 1 << 10)
        return -1;
    return 1 + logs + s->runs * (2 + logs * LOGGED);
}

static int read_out(fin_train *train, int64_t runs, double *out)
{
    static const char *const names[LOGGED] = {"kappa", "nu",  "theta", "eta",
                                              "rho",   "lam", "risk",  "distance"};
    fin_train_array step = fin_train_named(train, "step");
    int64_t logs = step.shape[0];
    double *to = out;
    *to++ = (double)logs;
    for (int64_t i = 0; i < logs; i++)
        *to++ = (double)((const int64_t *)step.data)[i];
    for (int64_t r = 0; r < runs; r++) {
        fin_run run;
        if (fin_train_get_run(train, r, &run, &web_error))
            return -1;
        *to++ = run.status;
        *to++ = (double)run.step;
    }
    for (int k = 0; k < LOGGED; k++) {
        const double *column = fin_train_named(train, names[k]).data;
        for (int64_t i = 0; i < runs * logs; i++)
            to[i * LOGGED + k] = column[i];
    }
    return (int)(to - out + runs * logs * LOGGED);
}

/* The runs of the last call of web_train, so that a page can draw between two pieces of them. */
static struct {
    fin_train *train;
    fin_task *task;
    int64_t runs, answers;
} kept;

static void forget(void)
{
    fin_train_destroy(kept.train);
    fin_task_destroy(kept.task);
    kept.train = NULL;
    kept.task = NULL;
}

static int go_on(int64_t until, double *out)
{
    return fin_train_run(kept.train, until, NULL, &web_error)
               ? -1
               : read_out(kept.train, kept.runs, out);
}

int web_train(int count, const double *in, int room, double *out)
{
    web_in from = {in, count, false};
    web_slr slr = web_slr_of(&from);
    fin_train_settings s = settings_of(&from);
    fin_overlaps at = web_overlaps(&from);
    int64_t until = web_whole(&from);
    fin_train_start start = {0};
    if (s.init == FIN_INIT_OVERLAPS)
        start = (fin_train_start){.count = 1, .overlaps = &at};
    if (!web_ready(&from, answers_of(&s), room))
        return -1;
    forget();
    kept.task = slr_task(&slr);
    kept.runs = s.runs;
    kept.answers = answers_of(&s);
    if (kept.task &&
        !fin_train_create(&kept.train, kept.task, web_form(0), &slr.form, &s, &start, &web_error))
        return go_on(until, out);
    forget();
    return -1;
}

int web_further(int count, const double *in, int room, double *out)
{
    web_in from = {in, count, false};
    int64_t until = web_whole(&from);
    if (!web_ready(&from, kept.answers, room))
        return -1;
    return kept.train ? go_on(until, out) : web_refuse("nothing has been started");
}
