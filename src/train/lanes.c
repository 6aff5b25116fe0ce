/* Forms with lanes (the paper's), sixteen runs side by side in vector registers: population descent and reduced SGD.
 * A run is its five overlaps and lam; the steps are in kernel/descent_body.h and reduced_body.h. */
#include "train/train.h"

enum { AT_ONCE = 256 };

static int64_t lanes_width(const fin_train *t)
{
    (void)t;
    return FINI_STATE;
}

static int64_t lanes_scratch(const fin_train *t)
{
    (void)t;
    return 2 * AT_ONCE + FINI_STATE * FINI_RUNS;
}

static fin_status lanes_start(fin_train *t, int64_t run, fin_error *err)
{
    fin_overlaps o;
    fin_status status = fini_start_overlaps(t, run, &o, err);
    double *x = t->state + run * FINI_STATE;
    x[0] = o.kappa;
    x[1] = o.nu;
    x[2] = o.theta;
    x[3] = o.eta;
    x[4] = o.rho;
    x[5] = fini_lam_at(t, 0);
    return status;
}

static void lanes_read(const fin_train *t, int64_t run, fin_overlaps *o, double *lam)
{
    const double *x = t->state + run * FINI_STATE;
    *o = (fin_overlaps){x[0], x[1], x[2], x[3], x[4]};
    *lam = x[5];
}

/* Lanes without a run repeat the last one. */
static void gather(const fin_train *t, int64_t first, int count, double lanes[][FINI_RUNS])
{
    for (int lane = 0; lane < FINI_RUNS; lane++)
        for (int i = 0; i < FINI_STATE; i++)
            lanes[i][lane] = t->state[(first + (lane < count ? lane : count - 1)) * FINI_STATE + i];
}

static void scatter(fin_train *t, int64_t first, int count, double lanes[][FINI_RUNS])
{
    for (int lane = 0; lane < count; lane++)
        for (int i = 0; i < FINI_STATE; i++)
            t->state[(first + lane) * FINI_STATE + i] = lanes[i][lane];
}

static void schedule(const fin_train *t, int64_t from, int64_t n, double *lam, double *alpha)
{
    for (int64_t i = 0; i < n; i++) {
        lam[i] = fini_lam_at(t, from + i);
        alpha[i] = fini_alpha_at(t, from + i);
    }
}

static fin_status population_lanes(fin_train *t, void *worker, double *scratch, int64_t first,
                                   int count, int64_t from, int64_t to, fin_error *err)
{
    (void)worker, (void)err;
    const fin_task_settings *s = &t->task->settings;
    double *lam = scratch, *alpha = scratch + AT_ONCE;
    double(*lanes)[FINI_RUNS] = (double(*)[FINI_RUNS])(scratch + 2 * AT_ONCE);
    fini_population_model p = {.gamma = s->gamma,
                               .mu = s->mu,
                               .m = (double)s->m,
                               .L_mean = t->task->length_mean,
                               .L_var = t->task->length_variance,
                               .penalty = t->settings.penalty,
                               .runs = count};
    schedule(t, from, to - from, lam, alpha);
    gather(t, first, count, lanes);
    t->form->lanes->population(&p, to - from, lam, alpha, lanes);
    scatter(t, first, count, lanes);
    return FIN_OK;
}

static fin_status reduced_lanes(fin_train *t, void *worker, double *scratch, int64_t first,
                                int count, int64_t from, int64_t to, fin_error *err)
{
    (void)worker, (void)err;
    const fin_task_settings *s = &t->task->settings;
    double *lam = scratch, *alpha = scratch + AT_ONCE;
    double(*lanes)[FINI_RUNS] = (double(*)[FINI_RUNS])(scratch + 2 * AT_ONCE);
    fini_reduction p = {.seed = (uint64_t)t->settings.seed,
                        .run = (uint64_t)first,
                        .stream = FINI_STREAM_TRAIN_LANES,
                        .d = s->d,
                        .L = t->task->longest,
                        .batch = t->settings.batch,
                        .gamma = s->gamma,
                        .mu = s->mu,
                        .eps = s->eps,
                        .penalty = t->settings.penalty,
                        .alpha_lam = t->settings.alpha_lam,
                        .runs = count};
    schedule(t, from, to - from, lam, alpha);
    gather(t, first, count, lanes);
    t->form->lanes->reduced(&p, from, to - from, lam, alpha, lanes);
    scatter(t, first, count, lanes);
    return FIN_OK;
}

#define LANES(advance_lanes)                                                                       \
    {                                                                                              \
        .block = FINI_RUNS, .at_once = AT_ONCE, .width = lanes_width, .scratch = lanes_scratch,    \
        .start = lanes_start, .advance = advance_lanes, .read = lanes_read                         \
    }
const fini_engine fini_population_lanes = LANES(population_lanes);
const fini_engine fini_reduced_lanes = LANES(reduced_lanes);
