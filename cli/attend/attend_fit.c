/* Sequence by sequence, everything that was asked for: one factor serves all of it. */
#include "attend/attend.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- memory --------------------------------------------------------------------------------- */

/* The matrix, and once more for its inverse; asked before an hour is spent on it. */
static fin_status check_memory(const attend_fit *fit, bool tunes, fin_error *err)
{
    const attend_data *data = fit->data;
    double bytes, machine = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    CLI_TRY(fin_cross_bytes(&fit->settings, data->dk, data->dv, data->longest, &bytes, err));
    bool twice = fit->leaves_out || tunes;
    if (machine > 0 && bytes * (twice ? 2 : 1) > machine)
        return cli_status(err, FIN_ERR_UNSUPPORTED,
                          "%lld tokens take %.3g GB and this machine has %.3g GB; --method "
                          "nystrom takes less",
                          (long long)data->longest, bytes * (twice ? 2 : 1) / 1e9, machine / 1e9);
    return FIN_OK;
}

static fin_status take(void *at, int64_t count, int64_t width, fin_error *err)
{
    double bytes = 8.0 * (double)count * (double)width;
    void *block = bytes < 1e15 ? calloc((size_t)(count * width) + 1, 8) : NULL;
    memcpy(at, &block, sizeof block);
    return block ? FIN_OK : cli_status_memory(err, bytes, "the results");
}

static fin_status take_results(attend_fit *fit, fin_error *err)
{
    const attend_data *data = fit->data;
    int64_t m = data->queries.count, n = data->tokens.count, dv = data->dv;
    fin_status status = FIN_OK;
    fit->lengths = data->longest + fit->curve_of_queries;
    if (fit->predicts)
        (void)((status = take(&fit->mean, m, dv, err)) ||
               (status = take(&fit->variance, m, dv, err)) ||
               (status = take(&fit->top_token, m, fit->top, err)) ||
               (status = take(&fit->top_weight, m, fit->top, err)));
    if (!status && fit->leaves_out)
        (void)((status = take(&fit->loo_mean, n, dv, err)) ||
               (status = take(&fit->loo_variance, n, dv, err)));
    if (!status && fit->grows)
        (void)((status = take(&fit->curve_error, fit->lengths, 1, err)) ||
               (status = take(&fit->curve_score, fit->lengths, 1, err)) ||
               (status = take(&fit->curve_count, fit->lengths, 1, err)));
    return status;
}

/* ---- one sequence --------------------------------------------------------------------------- */

typedef struct part {
    fin_cross *cross;
    int64_t s;        /* the sequence */
    int64_t first, n; /* its tokens */
    int64_t asked, m; /* its queries */
    double *weights;  /* (chunk, longest) */
    int64_t chunk;
    double *error, *score;   /* (longest + 1) */
    double *query, *answers; /* those that have answers */
} part;

/* The largest |weights| first; of equal ones the first. */
static void find_top(const attend_fit *fit, const part *p, const double *w, int64_t q)
{
    int64_t *token = fit->top_token + q * fit->top, found = 0;
    double *weight = fit->top_weight + q * fit->top;
    for (int64_t l = 0; l < p->n; l++) {
        int64_t place = found;
        while (place > 0 && fabs(weight[place - 1]) < fabs(w[l]))
            place--;
        if (place >= fit->top)
            continue;
        found = found < fit->top ? found + 1 : found;
        for (int64_t i = found - 1; i > place; i--) {
            token[i] = token[i - 1];
            weight[i] = weight[i - 1];
        }
        token[place] = fit->data->tokens.row[p->first + l];
        weight[place] = w[l];
    }
    for (; found < fit->top; found++) {
        token[found] = -1;
        weight[found] = NAN;
    }
}

static fin_status predict(attend_fit *fit, part *p, fin_error *err)
{
    const attend_data *data = fit->data;
    fin_status status = FIN_OK;
    char name[64];
    if (p->n == 0 && p->m > 0 && fit->settings.form != FIN_CROSS_CME)
        return cli_status(err, FIN_ERR_FORMAT,
                          "sequence %s of the queries has no tokens, and this form has no prior; "
                          "leave these queries out or use --form cme",
                          attend_sequence_name(data, p->s, name, sizeof name));
    for (int64_t from = 0; from < p->m && !status; from += p->chunk) {
        int64_t q = p->asked + from, m = p->m - from < p->chunk ? p->m - from : p->chunk;
        status = fin_cross_predict(p->cross, m, data->query + q * data->dk,
                                   fit->mean + q * data->dv, fit->variance + q * data->dv,
                                   fit->top ? p->weights : NULL, cli_progress(), err);
        for (int64_t i = 0; i < m && fit->top && !status; i++)
            find_top(fit, p, p->weights + i * p->n, q + i);
        if (cli_cancelled())
            return cli_status(err, FIN_ERR_CANCELLED, "cancelled");
    }
    return status;
}

static fin_status leave_out(attend_fit *fit, part *p, fin_error *err)
{
    int64_t dv = fit->data->dv;
    double *mean = fit->loo_mean + p->first * dv, *variance = fit->loo_variance + p->first * dv;
    if (p->n >= 2 || fit->settings.form == FIN_CROSS_CME)
        return fin_cross_loo(p->cross, mean, variance, cli_progress(), err);
    for (int64_t i = 0; i < p->n * dv; i++)
        mean[i] = variance[i] = NAN;
    return FIN_OK;
}

/* Copies the queries of this sequence whose answers are all there. */
static int64_t answered(const attend_fit *fit, part *p)
{
    const attend_data *data = fit->data;
    int64_t m = 0;
    for (int64_t q = p->asked; q < p->asked + p->m; q++) {
        bool whole = true;
        for (int64_t j = 0; j < data->dv; j++)
            whole = whole && !isnan(data->answers[q * data->dv + j]);
        if (!whole)
            continue;
        memcpy(p->query + m * data->dk, data->query + q * data->dk,
               (size_t)data->dk * sizeof(double));
        memcpy(p->answers + m * data->dv, data->answers + q * data->dv,
               (size_t)data->dv * sizeof(double));
        m++;
    }
    return m;
}

static fin_status grow(attend_fit *fit, part *p, fin_error *err)
{
    int64_t m = fit->curve_of_queries ? answered(fit, p) : 0;
    if (fit->curve_of_queries && m == 0)
        return FIN_OK;
    CLI_TRY(fin_cross_prefix(p->cross, m, m ? p->query : NULL, m ? p->answers : NULL, p->error,
                             p->score, cli_progress(), err));
    int64_t weight = m ? m : 1, count = p->n + (m > 0);
    for (int64_t l = 0; l < count; l++) {
        if (!isfinite(p->error[l]))
            continue; /* nothing to attend to */
        fit->curve_error[l] += (double)weight * p->error[l];
        fit->curve_score[l] += (double)weight * p->score[l];
        fit->curve_count[l] += weight;
    }
    return FIN_OK;
}

static fin_status weigh(attend_fit *fit, const part *p, fin_error *err)
{
    double evidence;
    if (fit->settings.form != FIN_CROSS_CME || !fit->has_evidence)
        return FIN_OK;
    fin_status status = fin_cross_evidence(p->cross, &evidence, NULL, NULL, cli_progress(), err);
    if (status == FIN_ERR_UNSUPPORTED || status == FIN_ERR_NUMERIC) { /* by this method, or none */
        fit->has_evidence = false;
        return FIN_OK;
    }
    fit->evidence += evidence;
    return status;
}

/* The library counts the tokens of one sequence from 0. */
static fin_status explain(const attend_fit *fit, const part *p, fin_error *err)
{
    fin_error cause = *err;
    char name[64];
    if (fit->data->sequence.count)
        return cli_status(err, cause.status, "sequence %s: %.400s (tokens are counted from 0)",
                          attend_sequence_name(fit->data, p->s, name, sizeof name), cause.message);
    return cli_status(err, cause.status, "%.400s (token 0 is row 1)", cause.message);
}

static fin_status one(attend_fit *fit, part *p, fin_error *err)
{
    const attend_data *data = fit->data;
    fin_cross_info info;
    fin_status status = fin_cross_load(p->cross, p->n, data->keys + p->first * data->dk,
                                       data->values + p->first * data->dv, cli_progress(), err);
    if (status)
        return status == FIN_ERR_NUMERIC ? explain(fit, p, err) : status;
    fin_cross_get_info(p->cross, &info);
    if (p->n == data->longest)
        fit->info = info;
    fit->jitter = fmax(fit->jitter, info.jitter);
    fit->jittered += info.jitter > 0;
    if (p->n > 0)
        status = weigh(fit, p, err);
    if (p->n > 0 && fit->leaves_out && !status)
        status = leave_out(fit, p, err);
    if (p->n > 0 && fit->grows && !status)
        status = grow(fit, p, err);
    if (fit->predicts && !status)
        status = predict(fit, p, err);
    return status;
}

/* ---- all of them ---------------------------------------------------------------------------- */

static fin_status take_scratch(const attend_fit *fit, part *p, fin_error *err)
{
    const double room = 4e6; /* numbers */
    const attend_data *data = fit->data;
    double longest = (double)(data->longest > 0 ? data->longest : 1);
    p->chunk = (int64_t)fmin(fmax(room / longest, 1), 4096);
    fin_status status = FIN_OK;
    if (fit->predicts && fit->top)
        status = take(&p->weights, p->chunk, data->longest, err);
    if (!status && fit->grows)
        (void)((status = take(&p->error, data->longest + 1, 1, err)) ||
               (status = take(&p->score, data->longest + 1, 1, err)));
    if (!status && fit->grows && fit->curve_of_queries)
        (void)((status = take(&p->query, data->queries.count, data->dk, err)) ||
               (status = take(&p->answers, data->queries.count, data->dv, err)));
    return status;
}

static fin_status every(attend_fit *fit, fin_error *err)
{
    const attend_data *data = fit->data;
    part p = {.cross = NULL};
    fin_status status = take_scratch(fit, &p, err);
    if (!status)
        status = fin_cross_create(&p.cross, &fit->settings, fit->scales, data->dk, data->dv,
                                  data->longest, err);
    for (int64_t s = 0; s < data->sequences && !status; s++) {
        p.s = s;
        p.first = data->tokens.offsets[s];
        p.n = data->tokens.offsets[s + 1] - p.first;
        p.asked = fit->predicts ? data->queries.offsets[s] : 0;
        p.m = fit->predicts ? data->queries.offsets[s + 1] - p.asked : 0;
        cli_progress_part((double)s / (double)data->sequences, 1 / (double)data->sequences);
        status =
            cli_cancelled() ? cli_status(err, FIN_ERR_CANCELLED, "cancelled") : one(fit, &p, err);
    }
    cli_progress_part(0, 1);
    fin_cross_destroy(p.cross);
    void *const blocks[] = {p.weights, p.error, p.score, p.query, p.answers};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        free(blocks[i]);
    for (int64_t l = 0; fit->grows && !status && l < fit->lengths; l++) {
        double count = (double)fit->curve_count[l];
        fit->curve_error[l] = count > 0 ? fit->curve_error[l] / count : NAN;
        fit->curve_score[l] = count > 0 ? fit->curve_score[l] / count : NAN;
    }
    return status;
}

fin_status attend_fit_run(attend_fit *fit, cli_args *args, attend_data *data, fin_error *err)
{
    *fit = (attend_fit){.data = data, .has_evidence = true};
    fit->predicts = data->asked != NULL;
    fit->grows = cli_get(args, "prefix") != NULL;
    fit->leaves_out = cli_get(args, "loo") || (!fit->predicts && !fit->grows);
    fit->top = fit->predicts ? (int)attend_asked(args)->list.top : 0;
    fit->top = fit->top < data->longest ? fit->top : (int)data->longest;
    const double most = 1e9; /* weights: minutes; the means alone do not need them */
    if (!cli_given(args, "top") && (double)data->longest * (double)data->queries.count > most) {
        fit->top = 0;
        attend_note(data,
                    "the most attended rows are left out, which would take %.2g weights; "
                    "--top 3 lists them",
                    (double)data->longest * (double)data->queries.count);
    }
    fit->curve_of_queries = fit->grows && data->answers;
    if (fit->grows && fit->predicts && !data->answers)
        attend_note(data, "the queries have no answers: the learning curve predicts every token "
                          "from those before it");
    fit->settings = attend_asked(args)->cross; /* its method decides, whatever the rest will be */
    fin_cross_settings *s = &fit->settings;
    s->scale = s->prior = s->noise = s->temperature = 1;
    s->level = fin_is_auto(s->level) ? 1 : s->level;
    CLI_TRY(check_memory(fit, cli_get(args, "tune") != NULL, err));
    CLI_TRY(attend_choose(fit, args, err));
    CLI_TRY(take_results(fit, err));
    CLI_TRY(every(fit, err));
    fit->has_evidence = fit->has_evidence && fit->settings.form == FIN_CROSS_CME;
    if (fit->jitter > 0)
        attend_note(data,
                    "%.3g was added to the noise of %lld sequence%s, so that rounding leaves the "
                    "matrix positive definite; a larger --noise is better",
                    fit->jitter, (long long)fit->jittered, fit->jittered == 1 ? "" : "s");
    return FIN_OK;
}

void attend_fit_close(attend_fit *fit)
{
    void *const blocks[] = {fit->scales,      fit->mean,       fit->variance,    fit->top_token,
                            fit->top_weight,  fit->loo_mean,   fit->curve_count, fit->loo_variance,
                            fit->curve_error, fit->curve_score};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        free(blocks[i]);
}
