/* erm: attention learnt from n sequences of L tokens, M of them masked, against the Bayes
 * prediction.
 *
 * The small models of mixed.h are fitted by least squares to the masked values; what is measured is
 *
 *     excess = E |f(q) - E[v | tokens, q]|^2 on sequences of their own,
 *
 * the risk above that of the posterior mean. cme attention can be the posterior mean, so that its
 * excess is all generalization error: n excess tends to tr(H^-1 S), H = E J'J / M, S = Cov(J'r /
 * M), which does not grow with L. softmax attention cannot; the best it can do, with scores kappa
 * q.k and values gain * v, is its floor, and what is above the floor falls like 1/n.
 *
 * The other objective is supervised: nothing is masked, every sequence has a label y = <A, Z> +
 * noise, |A| = 1, and cme with a head learns it from the tokens; the excess is that over <A, posterior
 * mean>, and all the rest is as above.
 *
 * Fits start at the best parameters (starts = 0): then this is about the minimum that belongs to them.
 * Or they start anywhere, some times, and that with the least training risk is kept: then it is about
 * learning. */
#include "lab/mixed.h"

#include "finetti/math.h"
#include "math/small.h"

#include <math.h>
#include <string.h>

#define ERM_FIELDS(F, C)                                                                           \
    C(form, 0, "cme|softmax", "attention form")                                                    \
    C(objective, 0, "masked|supervised",                                                           \
      "masked: hidden values are learnt; supervised: a label <A, Z> + noise of every sequence "    \
      "(cme)")                                                                                     \
    F(int64_t, n, 256, 2, 1000000, "training sequences")                                           \
    F(int64_t, repetitions, 20, 2, 100000, "training sets")                                        \
    F(int64_t, test, 1000, 10, 1000000, "sequences that each fit is judged on")                    \
    F(int64_t, starts, 0, 0, 1000,                                                                 \
      "random starts of a fit, of which the least training risk is kept; 0: at the best "          \
      "parameters")                                                                                \
    F(double, label_noise, 0.1, 0, 1e3, "variance of a label around <A, Z> (supervised)")          \
    F(int64_t, sandwich, 0, 0, 1000000,                                                            \
      "sequences for the limit of n excess, tr(H^-1 S), at the best parameters; 0: not computed")  \
    F(int64_t, seed, 1, 0, INT64_C(1) << 53, "seed of everything drawn")

#define FIN_TABLE_STRUCT erm_own
FIN_TABLE_OF_ITS_OWN(erm_table, "erm", ERM_FIELDS);

typedef struct erm_values {
    erm_own own;
    fini_mixed_task task;
} erm_values;

static const fin_output outputs[] = {
    {"excess", "E |f(q) - posterior mean|^2, or of the label; mean over training sets", NULL},
    {"scaled", "n times the excess", NULL},
    {"bayes", "E |truth - posterior mean|^2, what no predictor can beat", NULL},
    {"floor", "least excess of any parameters (softmax)", NULL},
    {"floor_scaled", "L times the least excess (softmax)", NULL},
    {"kappa", "scores of the best parameters (softmax)", NULL},
    {"above", "excess - floor, from the same sequences (softmax)", NULL},
    {"above_scaled", "n times what is above the floor (softmax)", NULL},
    {"predicted", "limit of n excess, or of n above: tr(H^-1 S)", NULL},
    {"rank", "eigenvalues of H that count: above 1e-11 of the largest", NULL},
    {"steps", "steps of a fit, mean", "steps"},
    {"gradient", "largest gradient that a fit ended with", NULL},
    {"training", "training risk of the fits, mean", NULL},
    {"reached", "share of sets where it is at most that of a fit from the best parameters (starts)",
     "share"},
    {NULL, NULL, NULL},
};

enum { SUPERVISED = 1, FINAL = 3 };
enum { FLOOR_SEQUENCES = 1 << 21 }; /* where those that the floor is found on begin */

static int64_t greater(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static fin_status check(const void *values, fin_error *err)
{
    const erm_values *v = values;
    int64_t n = greater(greater(v->own.n, v->own.test), v->own.sandwich);
    if (v->own.objective == SUPERVISED && v->own.form == FINI_MIXED_SOFTMAX)
        return fini_fail(
            err, FIN_ERR_ARGUMENT,
            "objective = supervised, form = softmax: a label has no query to attend by; "
            "form = cme learns labels");
    return v->own.form == FINI_MIXED_SOFTMAX ? fini_mixed_check_tokens(n, &v->task, err) : FIN_OK;
}

/* ---- work ------------------------------------------------------------------------------------ */

typedef struct work {
    const erm_values *v;
    fini_mixed_world world;
    fini_mixed_model model;
    fini_mixed_set train, test;
    fini_mixed_fit fit;
    fini_arena arena;
    fini_mixed_sandwich sandwich;
    double *best, *theta, *trial;                /* (parameters) */
    double *finals;                              /* (FINAL, parameters) */
    double *f;                                   /* (rows): one sequence */
    double A[FINI_MIXED_KEYS * FINI_MIXED_KEYS]; /* of the label */
    double gain;                                 /* softmax: of the best values */
    fini_average excess, bayes, floor, above, steps, training, reached;
    double gradient;
} work;

static void lay_out(void *user)
{
    work *w = user;
    fini_arena *a = &w->arena;
    int64_t P = w->model.parameters, rows = w->model.rows;
    bool tokens = w->model.form == FINI_MIXED_SOFTMAX;
    fini_mixed_set_take(&w->train, a, tokens);
    fini_mixed_set_take(&w->test, a, tokens);
    fini_mixed_fit_take(&w->fit, a, P, rows);
    w->best = fini_take(a, P, sizeof(double));
    w->theta = fini_take(a, P, sizeof(double));
    w->trial = fini_take(a, P, sizeof(double));
    w->finals = fini_take(a, FINAL * P, sizeof(double));
    w->f = fini_take(a, rows, sizeof(double));
    fini_mixed_sandwich_take(&w->sandwich, a, &w->model);
}

/* |f(q) - mean q|^2 of a test sequence: exactly over q for cme, at masked tokens for softmax; of a
 * label (f - <A, mean>)^2. */
static double distance(work *w, const double *theta, int64_t i)
{
    const fini_mixed_model *m = &w->model;
    double sum = 0, F[FINI_MIXED_KEYS * FINI_MIXED_KEYS];
    if (m->form == FINI_MIXED_LABEL) {
        const double *mean = w->test.mean + i * m->dv * m->d;
        fini_mixed_answers(m, theta, &w->test, i, w->f, NULL);
        sum = w->f[0] - fini_hand_dot(m->dv * m->d, w->A, mean);
        return sum * sum;
    }
    if (m->form == FINI_MIXED_CME) {
        const double *mean = w->test.mean + i * m->dv * m->d;
        fini_mixed_matrix(m, theta, w->test.moments + i * m->p * m->p, F);
        for (int64_t j = 0; j < m->dv * m->d; j++)
            sum += (F[j] - mean[j]) * (F[j] - mean[j]) / (double)m->d;
        return sum;
    }
    fini_mixed_answers(m, theta, &w->test, i, w->f, NULL);
    for (int64_t k = 0; k < m->M * m->dv; k++) {
        double far = w->f[k] - fini_mixed_bayes(&w->test, i, k);
        sum += far * far / (double)m->M;
    }
    return sum;
}

/* ---- the best softmax attention can do ------------------------------------------------------- */

/* Its parameters by symmetry: scores kappa q.k, values gain * v. The gain that fits best to the
 * posterior mean at this kappa, and what is left then. */
static double floor_at(double log_kappa, void *user)
{
    work *w = user;
    const fini_mixed_model *m = &w->model;
    double ff = 0, fm = 0, mm = 0;
    fini_mixed_truth(m, &w->world, exp(log_kappa), 1, w->best);
    for (int64_t i = 0; i < w->test.n; i++) {
        fini_mixed_answers(m, w->best, &w->test, i, w->f, NULL);
        for (int64_t k = 0; k < m->M * m->dv; k++) {
            double truth = fini_mixed_bayes(&w->test, i, k);
            ff += w->f[k] * w->f[k];
            fm += w->f[k] * truth;
            mm += truth * truth;
        }
    }
    w->gain = fm / ff;
    return mm - fm * fm / ff;
}

static fin_status find_best(work *w, double *kappa, fin_error *err)
{
    double least, log_kappa;
    if (w->model.form != FINI_MIXED_SOFTMAX) {
        int64_t D = w->model.dv * w->model.d;
        fini_mixed_truth(&w->model, &w->world, 0, 0, w->best);
        if (w->model.form == FINI_MIXED_LABEL)
            memcpy(w->best + w->model.parameters - D, w->A, (size_t)D * sizeof *w->A);
        return FIN_OK;
    }
    fini_mixed_draw(&w->test, FINI_STREAM_SMALL_TEST, FLOOR_SEQUENCES);
    FINI_TRY(fini_brent(floor_at, w, log(0.3), log(100), 1e-4, &log_kappa, &least, err));
    floor_at(log_kappa, w);
    *kappa = exp(log_kappa);
    fini_mixed_truth(&w->model, &w->world, *kappa, w->gain, w->best);
    return FIN_OK;
}

/* ---- tr(H^-1 S) ------------------------------------------------------------------------------ */

/* Sequences with their labels, if labels are learnt: A is drawn first, noise for each set. */
static void draw(work *w, fini_mixed_set *set, uint32_t stream, uint64_t first)
{
    fin_random r;
    fini_mixed_draw(set, stream, first);
    if (w->model.form != FINI_MIXED_LABEL)
        return;
    fin_random_open(&r, w->world.seed,
                    stream == FINI_STREAM_SMALL ? FINI_STREAM_HEAD_LABELS : FINI_STREAM_HEAD,
                    first + 1);
    fini_mixed_label_draw(set, w->A, w->v->own.label_noise, &r);
}

static fin_status predict(work *w, fin_result *result, fin_error *err)
{
    int64_t done = 0;
    double trace = 0, error = 0;
    int rank = 0;
    for (uint64_t from = FLOOR_SEQUENCES * 2; done < w->v->own.sandwich; done += w->test.n) {
        draw(w, &w->test, FINI_STREAM_SMALL_TEST, from + (uint64_t)done);
        fini_mixed_sandwich_add(&w->sandwich, &w->fit, &w->test, w->best);
    }
    fin_status status = fini_mixed_sandwich_trace(&w->sandwich, &trace, &error, &rank, err);
    fini_result_scalar(result, "predicted", trace, error, FIN_HOW_SIMULATION, done);
    fini_result_exact(result, "rank", rank);
    return status;
}

/* ---- training sets --------------------------------------------------------------------------- */

/* Parameters in trial: `steps` on the first `few` training sequences. Their risk on all of them. */
static double descend(work *w, const fini_mixed_loss *loss, int64_t few, int64_t steps)
{
    fini_mixed_set part = fini_mixed_part(loss->set, 0, few < loss->set->n ? few : loss->set->n);
    fini_mixed_loss first = {&w->model, &part};
    fini_mixed_rows rows = fini_mixed_rows_of(&first), all = fini_mixed_rows_of(loss);
    w->fit.most = steps;
    fini_mixed_fit_run(&w->fit, &rows, w->trial);
    double value = fini_mixed_sums(&w->fit, &all, w->trial, NULL, NULL);
    return isfinite(value) ? value : INFINITY;
}

/* theta <- a fit from anywhere. All random starts descend for a while on few sequences, the FINAL best
 * of them for longer on more, and the best of those goes on to its minimum on all. */
static fin_status from_anywhere(work *w, const fini_mixed_loss *loss, int64_t repetition,
                                fin_error *err)
{
    fini_mixed_rows all = fini_mixed_rows_of(loss);
    int64_t P = w->model.parameters, steps = 0, best = 0, kept = 0;
    double value[FINAL], known = w->fit.value;
    for (int64_t s = 0; s < w->v->own.starts; s++) {
        fin_random r;
        fin_random_open(&r, w->world.seed, FINI_STREAM_HEAD_STARTS,
                        (uint64_t)repetition << 16 | (uint64_t)s);
        for (int64_t a = 0; a < P; a++)
            w->trial[a] = 0.5 * fin_random_normal(&r);
        double now = descend(w, loss, 128, 30);
        int64_t worst = kept < FINAL ? kept++ : 0;
        for (int64_t k = 0; k < kept && s >= FINAL; k++)
            worst = value[k] > value[worst] ? k : worst;
        if (s >= FINAL && !(now < value[worst]))
            continue;
        value[worst] = now;
        memcpy(w->finals + worst * P, w->trial, (size_t)P * sizeof *w->trial);
    }
    for (int64_t k = 0; k < kept; k++) {
        memcpy(w->trial, w->finals + k * P, (size_t)P * sizeof *w->trial);
        value[k] = descend(w, loss, 256, 60);
        memcpy(w->finals + k * P, w->trial, (size_t)P * sizeof *w->trial);
        best = value[k] < value[best] ? k : best;
    }
    memcpy(w->theta, w->finals + best * P, (size_t)P * sizeof *w->theta);
    fin_status status = fini_mixed_search(&w->fit, &all, w->theta, 600, &steps, NULL, err);
    fini_average_add(&w->reached, w->fit.value <= known * (1 + 1e-3));
    w->fit.steps = steps;
    return status;
}

static fin_status one_set(work *w, int64_t repetition, fin_error *err)
{
    const fini_mixed_model *m = &w->model;
    fini_mixed_loss loss = {m, &w->train};
    double excess = 0, floor = 0, bayes = 0, n = (double)w->test.n;
    draw(w, &w->train, FINI_STREAM_SMALL, (uint64_t)(repetition * w->train.n));
    fini_mixed_draw(&w->test, FINI_STREAM_SMALL_TEST, (uint64_t)repetition << 32);
    w->fit.enough = 1e-9;
    fin_status status = fini_mixed_learn(&w->fit, &loss, w->best, w->theta, err);
    if (!status && w->v->own.starts > 0)
        status = from_anywhere(w, &loss, repetition, err);
    w->gradient = fmax(w->gradient, w->fit.gradient);
    for (int64_t i = 0; i < w->test.n; i++) {
        const double *z = w->test.z + i * m->dv * m->d, *mean = w->test.mean + i * m->dv * m->d;
        excess += distance(w, w->theta, i) / n;
        if (m->form == FINI_MIXED_SOFTMAX)
            floor += distance(w, w->best, i) / n;
        double far = 0; /* in the direction of the label */
        for (int64_t j = 0; j < m->dv * m->d; j++) {
            far += w->A[j] * (z[j] - mean[j]);
            if (m->form != FINI_MIXED_LABEL)
                bayes += (z[j] - mean[j]) * (z[j] - mean[j]) / (double)m->d / n;
        }
        bayes += far * far / n;
    }
    fini_average_add(&w->excess, excess);
    fini_average_add(&w->floor, floor);
    fini_average_add(&w->above, excess - floor);
    fini_average_add(&w->bayes, bayes);
    fini_average_add(&w->steps, (double)w->fit.steps);
    fini_average_add(&w->training, w->fit.value);
    return status;
}

static void add_all(const work *w, double kappa, fin_result *result)
{
    double n = (double)w->v->own.n;
    fini_result_average(result, "excess", &w->excess, 1);
    fini_result_average(result, "scaled", &w->excess, n);
    fini_result_average(result, "bayes", &w->bayes, 1);
    fini_result_average(result, "steps", &w->steps, 1);
    fini_result_exact(result, "gradient", w->gradient);
    fini_result_average(result, "training", &w->training, 1);
    if (w->v->own.starts > 0)
        fini_result_average(result, "reached", &w->reached, 1);
    if (w->model.form != FINI_MIXED_SOFTMAX)
        return;
    fini_result_average(result, "floor", &w->floor, 1);
    fini_result_average(result, "floor_scaled", &w->floor, (double)w->v->task.L);
    fini_result_average(result, "above", &w->above, 1);
    fini_result_average(result, "above_scaled", &w->above, n);
    fini_result_scalar(result, "kappa", kappa, NAN, FIN_HOW_SIMULATION, w->test.n);
}

static fin_status measure(void *user, fin_result *result, const fin_progress *progress,
                          fin_error *err)
{
    work *w = user;
    double kappa = 0;
    int64_t count = w->v->own.repetitions;
    FINI_TRY(find_best(w, &kappa, err));
    if (w->v->own.sandwich > 0)
        FINI_TRY(predict(w, result, err));
    for (int64_t i = 0; i < count; i++) {
        FINI_TRY(fini_go_on(progress, "learning", (double)i, (double)count, err));
        FINI_TRY(one_set(w, i, err));
    }
    add_all(w, kappa, result);
    return FIN_OK;
}

static fin_status run(const void *values, fin_result *result, const fin_progress *progress,
                      fin_error *err)
{
    const erm_values *v = values;
    bool labels = v->own.objective == SUPERVISED;
    int form = labels ? FINI_MIXED_LABEL : (int)v->own.form;
    work w = {.v = v, .model = fini_mixed_model_make(form, 1, &v->task)};
    fini_mixed_world_make(&w.world, &v->task, fini_lab_seed(v->own.seed, v->task.L, v->own.n));
    if (labels) {
        fin_random r;
        fin_random_open(&r, w.world.seed, FINI_STREAM_HEAD, 0);
        fin_random_sphere(&r, v->task.d * v->task.dv, w.A);
    }
    w.train = (fini_mixed_set){.n = v->own.n, .world = &w.world};
    w.test = (fini_mixed_set){.n = v->own.test, .world = &w.world};
    const fini_lab_frame frame = {&w.arena, "training and test sets", lay_out, measure};
    return fini_lab_frame_run(&frame, &w, result, progress, err);
}

const fin_command fini_command_erm = {
    .name = "erm",
    .summary = "small attention layers learnt from n sequences, against the posterior mean",
    .revision = 2,
    .size = sizeof(erm_values),
    .words = fini_no_words,
    .outputs = outputs,
    .tables = FINI_MIXED_TABLES(erm_values, erm_table),
    .check = check,
    .run = run,
};
