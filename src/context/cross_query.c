/* What is asked of a context: checked here, divided into blocks, answered by its method. */
#include "context/cross.h"

#include <math.h>
#include <string.h>

static fin_status need_tokens(const fin_cross *o, int64_t least, fin_error *err)
{
    if (o->settings.form == FIN_CROSS_CME || o->tokens >= least)
        return FIN_OK;
    return fini_fail(err, FIN_ERR_ARGUMENT,
                     "form %s needs at least %lld token%s and the context has %lld; form cme "
                     "answers with its prior then",
                     o->settings.form == FIN_CROSS_NW ? "nw" : "softmax", (long long)least,
                     least == 1 ? "" : "s", (long long)o->tokens);
}

/* noise 0, and fewer independent tokens than features. */
static fin_status need_solved(const fin_cross *o, fin_error *err)
{
    if (!o->D || o->solved)
        return FIN_OK;
    return fini_fail(err, FIN_ERR_NUMERIC,
                     "with noise 0 the %lld tokens do not fix the %lld features of this kernel; "
                     "give a positive noise, more tokens, or method dual",
                     (long long)o->tokens, (long long)o->features);
}

fin_status fin_cross_predict(const fin_cross *o, int64_t m, const double *queries, double *mean,
                             double *variance, double *weights, const fin_progress *progress,
                             fin_error *err)
{
    FINI_NEED(err, o, !m || queries, !m || mean);
    FINI_TRY(need_tokens(o, 1, err));
    FINI_TRY(need_solved(o, err));
    if (m < 0)
        return fini_fail(err, FIN_ERR_ARGUMENT, "%lld queries", (long long)m);
    FINI_TRY(fini_cross_check(o, "query", m, queries, err));
    if (m == 0)
        return FIN_OK;
    int64_t block = o->method->block < m ? o->method->block : m;
    int64_t need = o->method->scratch(o, block), numbers = block * o->dk + need;
    FINI_OWN(err, "a block of queries", double, divided, numbers, 1);
    for (int64_t at = 0; at < m; at += block) {
        int64_t b = m - at < block ? m - at : block;
        fini_cross_divide(o, b, queries + at * o->dk, divided);
        FINI_TRY(fini_cross_overflow(o, "query", at, b, divided, err));
        if (fini_report(progress, "queries", (double)at, (double)m))
            FINI_TRY(fini_cross_cancelled(err));
        o->method->predict(o, b, divided, mean + at * o->dv,
                           variance ? variance + at * o->dv : NULL,
                           weights ? weights + at * o->tokens : NULL, divided + block * o->dk);
    }
    return FIN_OK;
}

fin_status fin_cross_loo(const fin_cross *o, double *mean, double *variance,
                         const fin_progress *progress, fin_error *err)
{
    FINI_NEED(err, o, mean);
    FINI_TRY(need_tokens(o, 2, err));
    FINI_TRY(need_solved(o, err));
    if (o->tokens == 0)
        return FIN_OK;
    return o->method->loo(o, mean, variance, progress, err);
}

fin_status fin_cross_prefix(const fin_cross *o, int64_t m, const double *queries,
                            const double *answers, double *error, double *score,
                            const fin_progress *progress, fin_error *err)
{
    FINI_NEED(err, o, !m || queries, !m || answers, error);
    if (m < 0)
        return fini_fail(err, FIN_ERR_ARGUMENT, "%lld queries; 0 of them for the tokens themselves",
                         (long long)m);
    fin_status status = fini_cross_check(o, "query", m, queries, err);
    for (int64_t i = 0; i < m * o->dv && !status; i++)
        if (!isfinite(answers[i]))
            status = fini_fail(err, FIN_ERR_ARGUMENT,
                               "the answer to query %lld is %g in column %lld; only finite numbers "
                               "are allowed",
                               (long long)(i / o->dv), answers[i], (long long)(i % o->dv));
    if (status)
        return status;
    int64_t entries = m > 0 ? o->tokens + 1 : o->tokens;
    FINI_NEW(err, "queries", double, divided, m, o->dk);
    fini_cross_divide(o, m, queries, divided);
    status = fini_cross_overflow(o, "query", 0, m, divided, err);
    memset(error, 0, (size_t)entries * sizeof *error);
    if (score)
        memset(score, 0, (size_t)entries * sizeof *score);
    if (!status)
        status =
            o->method->prefix(o, m, m > 0 ? divided : NULL, answers, error, score, progress, err);
    fini_free(divided);
    for (int64_t l = 0; l < entries && m > 0 && !status; l++) {
        error[l] /= (double)m;
        if (score)
            score[l] /= (double)m;
    }
    return status;
}

fin_status fin_cross_evidence(const fin_cross *o, double *evidence, double gradient[3],
                              double *by_column, const fin_progress *progress, fin_error *err)
{
    FINI_NEED(err, o, evidence);
    if (o->settings.form != FIN_CROSS_CME)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "form %s is no probability model, so that its tokens have no evidence; "
                         "take form cme, or compare leave-one-out errors",
                         o->settings.form == FIN_CROSS_NW ? "nw" : "softmax");
    FINI_TRY(need_solved(o, err));
    if (!gradient && !by_column)
        return o->method->evidence(o, evidence, NULL, NULL, progress, err);
    double sums[3] = {0};
    FINI_OWN(err, "a gradient", double, columns, o->dk, 1);
    memset(columns, 0, (size_t)o->dk * sizeof *columns);
    FINI_TRY(o->method->evidence(o, evidence, sums, columns, progress, err));
    if (gradient)
        memcpy(gradient, sums, sizeof sums);
    if (by_column)
        memcpy(by_column, columns, (size_t)o->dk * sizeof *columns);
    return FIN_OK;
}
