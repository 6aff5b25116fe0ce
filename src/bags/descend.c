/* From starts to members: a fit for every penalty of the grid.
 *
 * What is minimised, with n the sum of the weights and |phi| of the order of 1:
 *
 *     (1/n) sum_i w_i loss_i + lam/(2n) (KEY |keys|^2 + |values|^2)
 *
 * The sum of losses, not their mean, stands against the penalty: 1/lam is the prior variance of a
 * score, whatever the number of bags and of columns. For numbers the noise is not known, and the
 * squared error becomes the likelihood with the noise profiled out,
 *
 *     (n + NU)/(2n) log(RSS + NU S0),   RSS = sum_i w_i (f_i - y_i)^2,
 *
 * so that the penalty is relative to the noise that is found; NU and S0 are a prior's few degrees of
 * freedom, which keep it from zero. (The mixture has its noise among its parameters.)
 *
 * From the strongest penalty to the weakest: mean pooling from its last minimum, to many digits since
 * it is convex; then the form itself from there, and from other starts if there are restarts. Attention
 * to two classes may start where bags reach farthest instead (extreme.c): a needle is not seen from
 * the mean. At one of the penalties both are tried, and what is lower by more than a few bags' worth of
 * loss is the start for all. Where
 * members are polished, all but the first start at the last one's minimum, which is near. Numbers on
 * many features have second derivatives that help (ridge.c). */
#include "bags/descend.h"

#include <string.h>

#define KEY 2.0
#define NU 5.0
#define S0 0.1
static const double grid[] = {1, 0.3, 0.1, 0.03, 0.01, 0};
/* Where what a penalty shrinks is fitted again it hardly matters which, and weak ones only let the
 * key of attention fit the noise. */
static const double grid_polished[] = {3, 1, 0.3, 0};
enum { PATIENCE = 10 };
/* Losses, summed over bags, by which a start far out must be better than the mean. */
#define FAR 3.0
/* Tokens a bag from which on one of them may be lost in the mean. */
#define CROWD 16.0
/* Attention to classes is better, and five times faster, when it does not go all the way. */
enum { ITERATIONS = 200, ITERATIONS_CLASSES = 20, MEAN_ITERATIONS = 1000, EM_STEPS = 5 };

bool fini_polished(const fini_problem *problem)
{
    const fini_part *part = problem->part;
    double columns = (double)(problem->phi->bags.d - problem->phi->left_out);
    double bags = part->stands_for > 0 ? part->stands_for : problem->bags;
    return part->form->finds && part->shape.classes == 0 && !problem->held &&
           bags >= FINI_RELAX_BAGS * columns;
}

int64_t fini_penalties(const fini_problem *problem, double *penalty)
{
    const fini_part *part = problem->part;
    const double *from = grid, *usual = part->model->penalties;
    int64_t count = 0;
    if (part->model->is.draws) { /* none has a penalty */
        for (; count < part->model->is.draws && penalty; count++)
            penalty[count] = 0;
        return part->model->is.draws;
    }
    if (part->model->is.constant) /* none matters */
        count = 1;
    else if (!fin_is_auto(part->settings.penalty))
        from = &part->settings.penalty, count = 1;
    else if (fini_polished(problem))
        from = grid_polished;
    else if (usual && part->shape.classes == 0)
        from = usual;
    for (int64_t all = !count; all && from[count] > 0;)
        count++;
    if (penalty)
        memcpy(penalty, from, (size_t)count * sizeof *from);
    return count;
}

/* ---- the function ---------------------------------------------------------------------------------- */

typedef struct objective {
    fini_risk *risk, *held; /* held: to stop early, or NULL */
    int64_t keys, values;   /* numbers, not vectors */
    double penalty, n;
    bool profile;
    bool frozen; /* biases alone are free: the base rate */
    /* stopping early */
    double best;
    double *best_x;
    int64_t parameters, waited;
    fin_status status;
    fin_error *err;
    fini_cancel *cancel;
    const fini_ridge *ridge; /* or NULL */
} objective;

static double penalise(int64_t n, double times, const double *x, double *gradient)
{
    double square = 0;
    for (int64_t i = 0; i < n; i++) {
        square += x[i] * x[i];
        gradient[i] += times * x[i];
    }
    return 0.5 * times * square;
}

static fin_status evaluate(void *user, const double *x, double *value, double *gradient,
                           fin_error *err)
{
    objective *o = user;
    double loss;
    FINI_TRY(fini_risk_value(o->risk, x, &loss, gradient, err));
    if (o->profile) {
        double rss = 2 * o->n * loss + NU * S0, factor = (o->n + NU) / rss;
        loss = 0.5 * (o->n + NU) / o->n * log(rss);
        for (int64_t i = 0; i < o->parameters; i++)
            gradient[i] *= factor;
    }
    if (o->frozen)
        memset(gradient, 0, (size_t)(o->keys + o->values) * sizeof *gradient);
    double lam = o->penalty / o->n;
    *value = loss + penalise(o->keys, KEY * lam, x, gradient) +
             penalise(o->values, lam, x + o->keys, gradient + o->keys);
    return FIN_OK;
}

/* After each iteration: tells how far, and looks at the bags held out. */
static bool watch(void *user, int64_t iteration, const double *x, double value)
{
    objective *o = user;
    (void)value;
    if (iteration % 16 == 15 && fini_cancel_now(o->cancel))
        return true;
    if (!o->held)
        return false;
    double loss;
    o->status = fini_risk_value(o->held, x, &loss, NULL, o->err);
    if (o->status)
        return true;
    if (loss < o->best) {
        o->best = loss;
        o->waited = 0;
        memcpy(o->best_x, x, (size_t)o->parameters * sizeof *x);
        return false;
    }
    return ++o->waited >= PATIENCE;
}

static bool newton(void *user, double *d)
{
    const objective *o = user;
    return fini_ridge_solve(o->ridge, o->parameters, d);
}

/* ---- the way ---------------------------------------------------------------------------------------- */

typedef struct way {
    fini_problem *problem;
    fini_phi means;
    const fini_phi *mean_phi;
    fini_risk *mean_risk, *risk, *held;
    fini_lbfgs mean_search, search;
    fini_ridge *ridge; /* of mean pooling, or NULL */
    bool polished;
    double *mean, *x; /* mean pooling's parameters; the form's */
    double *last;     /* the form's minimum at the last penalty, before it was polished */
    double *best_x;   /* the best of stopping early */
    double *far;      /* the start where bags reach farthest, or NULL: not there */
    double first;     /* length of the gradient where nothing is known */
} way;

static void close_way(way *w)
{
    fini_risk_destroy(w->mean_risk);
    fini_risk_destroy(w->risk);
    fini_risk_destroy(w->held);
    fini_ridge_destroy(w->ridge);
    fini_phi_close(&w->means);
    fini_lbfgs_close(&w->mean_search);
    fini_lbfgs_close(&w->search);
    fini_free_all(w->mean, w->x, w->last, w->best_x, w->far);
}

static fin_status open_risks(way *w, fin_error *err)
{
    fini_problem *o = w->problem;
    const fini_part *part = o->part;
    fin_status status = FIN_OK;
    w->mean_phi = o->phi;
    /* What is convex, or polished afterwards, is found to more digits than float has. */
    fini_problem here = *o;
    here.rough = part->shape.classes && !part->form->pools;
    if (!part->form->pools) {
        status = fini_phi_means(o->phi, &w->means, o->cancel, err);
        if (w->means.bags.tokens)
            w->mean_phi = &w->means;
        if (!status)
            status = fini_risk_create(&w->risk, part->form, &here, err);
    }
    fini_problem means = here, held = here;
    means.phi = w->mean_phi;
    held.weights = o->held;
    if (!status)
        status = fini_risk_create(&w->mean_risk, &fini_bag_mean, &means, err);
    if (!status && o->held)
        status = fini_risk_create(&w->held, part->form, &held, err);
    return status;
}

static fin_status open_way(way *w, fin_error *err)
{
    const fini_part *part = w->problem->part;
    fin_status status = open_risks(w, err);
    int64_t means = status ? 0 : fini_risk_parameters(w->mean_risk), all = part->parameters;
    if (!status)
        status = fini_lbfgs_create(&w->mean_search, means, err);
    if (!status && w->risk)
        status = fini_lbfgs_create(&w->search, all, err);
    if (status)
        return status;
    w->mean = fini_alloc_array(means, sizeof(double));
    w->x = fini_alloc_array(all, sizeof(double));
    w->last = fini_alloc_array(all, sizeof(double));
    w->best_x = fini_alloc_array(all, sizeof(double));
    w->polished = fini_polished(w->problem);
    if (!w->mean || !w->x || !w->last || !w->best_x)
        return fini_fail_memory(err, (size_t)all * sizeof(double), "parameters");
    memset(w->mean, 0, (size_t)means * sizeof(double));
    return FIN_OK;
}

/* Runs one search from x; best by the bags held out, if there are any. */
static fin_status run(way *w, fini_lbfgs *search, objective *o, double *x, fin_error *err)
{
    fini_part *part = w->problem->part;
    search->function = evaluate;
    search->watch = watch;
    search->newton = o->ridge ? newton : NULL;
    search->user = o;
    search->noise = fini_risk_noise(o->risk);
    o->best = INFINITY;
    o->best_x = w->best_x;
    o->waited = 0;
    o->err = err;
    fin_status status = fini_lbfgs_run(search, x, err);
    if (!status)
        status = o->status;
    if (!status)
        status = fini_cancel_end(o->cancel, err);
    if (!status && o->held && isfinite(o->best))
        memcpy(x, w->best_x, (size_t)o->parameters * sizeof *x);
    part->iterations += search->done;
    part->evaluations += search->evaluations;
    return status;
}

/* Least squares in rounds of a few iterations, each with the noise that was found so far. */
static fin_status run_rounds(way *w, objective *o, fin_error *err)
{
    enum { ROUND = 30 };
    fini_lbfgs *search = &w->mean_search;
    int64_t left = search->iterations;
    fin_status status = FIN_OK;
    do {
        double loss = 0;
        status = fini_risk_value(o->risk, w->mean, &loss, NULL, err);
        if (!status)
            status = fini_ridge_factor(w->ridge, o->penalty / o->n,
                                       (2 * o->n * loss + NU * S0) / (o->n + NU), o->cancel, err);
        search->iterations = left < ROUND ? left : ROUND;
        if (!status)
            status = run(w, search, o, w->mean, err);
        left -= search->iterations;
    } while (!status && !search->finished && left > 0);
    return status;
}

/* Mean pooling at one penalty, from where w->mean is. It is a member itself if the form is `mean`;
 * otherwise plain least squares, whose residual variance the mixture's noise starts from. */
static fin_status pool(way *w, double penalty, double *variance, fin_error *err)
{
    fini_problem *problem = w->problem;
    const fini_part *part = problem->part;
    bool itself = part->form->pools;
    int64_t n = fini_risk_parameters(w->mean_risk);
    objective o = {.risk = w->mean_risk,
                   .held = itself ? w->held : NULL,
                   .values = n - part->shape.outputs,
                   .penalty = penalty,
                   .n = problem->weight,
                   .profile = itself && part->shape.classes == 0,
                   .frozen = part->model->is.constant,
                   .parameters = n,
                   .cancel = problem->cancel};
    /* As a start it need not be exact; as a model it is convex and cheap, so it is. */
    double loss = 0, tolerance = itself ? fmin(1e-7, part->settings.tolerance) : 1e-4;
    fin_status status = FIN_OK;
    if (w->first == 0) {
        status = evaluate(&o, w->mean, &loss, w->mean_search.g, err);
        for (int64_t i = 0; i < n; i++)
            w->first += w->mean_search.g[i] * w->mean_search.g[i];
        w->first = sqrt(w->first);
    }
    w->mean_search.iterations =
        part->settings.iterations > MEAN_ITERATIONS ? part->settings.iterations : MEAN_ITERATIONS;
    if (part->form->begin)
        w->mean_search.iterations = 0; /* it starts elsewhere */
    w->mean_search.gradient = tolerance * w->first;
    w->mean_search.decrease = itself ? 1e-14 : 1e-6;
    if (!status && o.profile && !o.frozen && !w->held && !w->ridge &&
        fini_ridge_helps(problem->phi, problem->bags))
        status = fini_ridge_create(&w->ridge, problem, err);
    o.ridge = w->ridge;
    if (!status)
        status = w->ridge ? run_rounds(w, &o, err) : run(w, &w->mean_search, &o, w->mean, err);
    if (!status && !itself && part->shape.classes == 0)
        status = fini_risk_value(w->mean_risk, w->mean, &loss, NULL, err);
    *variance = 2 * loss;
    return status;
}

static int64_t iterations_of(const fini_part *part)
{
    int64_t given = part->settings.iterations;
    return given != FIN_AUTO_INT ? given : part->shape.classes ? ITERATIONS_CLASSES : ITERATIONS;
}

static int64_t starts_of(const fini_part *part)
{
    int64_t given = part->settings.restarts;
    return given != FIN_AUTO_INT ? given : part->model->starts ? part->model->starts : 1;
}

/* One start of the form at penalty m, after `done` others. Returns its value in *value, its parameters in w->x. */
static fin_status descend(way *w, int64_t done, int64_t m, int64_t start, double variance,
                          double *value, fin_error *err)
{
    fini_problem *problem = w->problem;
    fini_part *part = problem->part;
    int64_t p = problem->phi->bags.d, keys = part->form->keys(&part->shape) * p;
    objective o = {.risk = w->risk,
                   .held = w->held,
                   .keys = keys,
                   .values = part->form->values(&part->shape) * p,
                   .penalty = part->penalty[m],
                   .n = problem->weight,
                   .profile = part->shape.classes == 0 && !part->form->likelihood,
                   .parameters = part->parameters,
                   .cancel = problem->cancel};
    bool elsewhere = part->form->begin, far = start == 0 && w->far;
    bool again = done > 0 && !far && (start == 1 || elsewhere || (start == 0 && w->polished));
    if (again || far)
        memcpy(w->x, far ? w->far : w->last, (size_t)part->parameters * sizeof *w->x);
    else
        fini_start(problem, start, w->mean, variance, w->x);
    int64_t steps = part->settings.em_steps;
    steps = steps != FIN_AUTO_INT ? steps : part->shape.classes ? 0 : EM_STEPS;
    if (part->form->approach && steps > 0 && !again && !w->held) {
        double lam = o.penalty / o.n, penalty_of[2] = {KEY * lam, lam}, reached;
        FINI_TRY(part->form->approach(w->risk, problem, penalty_of, steps, w->x, &reached, err));
    }
    w->search.iterations = iterations_of(part);
    /* What is polished afterwards need not be exact. */
    double tolerance = (w->polished ? 10 : 1) * part->settings.tolerance;
    w->search.gradient = tolerance * w->first;
    w->search.decrease = 0.1 * tolerance;
    FINI_TRY(run(w, &w->search, &o, w->x, err));
    *value = w->held ? o.best : w->search.value;
    return FIN_OK;
}

/* What the penalty has shrunk, and keys that labels say little about (polish.c). Stopping early
 * has shrunk things on purpose. */
static fin_status polish(way *w, int64_t m, double *x, fin_error *err)
{
    const fini_problem *problem = w->problem;
    const fini_part *part = problem->part;
    double loss;
    int gate = part->settings.gate;
    if (w->held || (part->shape.classes && gate != FINI_GATE_GAUSSIAN))
        return FIN_OK;
    return fini_polish(w->risk, problem, part->penalty[m] / problem->weight, gate, x, &loss, err);
}

/* The best of all starts becomes member m. */
static fin_status member(way *w, int64_t m, double variance, fin_error *err)
{
    fini_part *part = w->problem->part;
    double *x = part->member + m * part->parameters, best = INFINITY;
    int64_t starts = starts_of(part);
    bool finished = true, automatic = part->settings.iterations == FIN_AUTO_INT;
    for (int64_t start = 0; start < starts; start++) {
        double value;
        FINI_TRY(descend(w, m, m, start, variance, &value, err));
        if (start > 0 && !(value < best))
            continue;
        best = value;
        finished = w->search.finished;
        memcpy(x, w->x, (size_t)part->parameters * sizeof *x);
    }
    part->unfinished += !finished && !(automatic && part->shape.classes);
    memcpy(w->last, x, (size_t)part->parameters * sizeof *x);
    return polish(w, m, x, err);
}

/* Is there a better start than the mean? Tried at the middle penalty. Leaves w as it was but for w->far. */
static fin_status probe(way *w, fin_error *err)
{
    fini_problem *problem = w->problem;
    fini_part *part = problem->part;
    int64_t m = part->members / 2, iterations = part->iterations, evaluations = part->evaluations;
    double variance, near, far;
    bool found = false;
    if (part->shape.classes != 2 || !w->risk || problem->held || part->shape.heads > 1 ||
        problem->tokens < CROWD * problem->bags || !part->form->reach)
        return FIN_OK;
    FINI_NEW(err, "a start", double, x, part->parameters, 1);
    fin_status status = fini_extreme(problem, x, &found, err);
    if (!status && found)
        status = pool(w, part->penalty[m], &variance, err);
    if (!status && found)
        status = descend(w, 0, m, 0, variance, &near, err);
    w->far = found ? x : NULL;
    if (!status && found)
        status = descend(w, 0, m, 0, variance, &far, err);
    if (!found)
        fini_free(x);
    if (status || !found)
        return status;
    if (!((near - far) * problem->weight > FAR)) {
        fini_free(w->far);
        w->far = NULL;
    }
    w->first = 0;
    memset(w->mean, 0, (size_t)fini_risk_parameters(w->mean_risk) * sizeof *w->mean);
    part->iterations = iterations;
    part->evaluations = evaluations;
    return FIN_OK;
}

static fin_status go(way *w, fin_error *err)
{
    fini_part *part = w->problem->part;
    fin_status status = probe(w, err);
    for (int64_t m = 0; m < part->members && !status; m++) {
        double variance;
        status =
            fini_cancel_stage(w->problem->cancel, "fit", (double)m, (double)part->members, err);
        if (!status)
            status = pool(w, part->penalty[m], &variance, err);
        if (!status && w->risk) {
            status = member(w, m, variance, err);
        } else if (!status) {
            memcpy(part->member + m * part->parameters, w->mean,
                   (size_t)part->parameters * sizeof(double));
            part->unfinished += !w->mean_search.finished;
        }
    }
    if (!status)
        status = fini_cancel_stage(w->problem->cancel, "fit", (double)part->members,
                                   (double)part->members, err);
    return status;
}

fin_status fini_part_descend(fini_problem *problem, fin_error *err)
{
    FINI_AT_END(close_way) way w = {.problem = problem};
    FINI_TRY(open_way(&w, err));
    return go(&w, err);
}
