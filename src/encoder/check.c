/* What a pass is given, looked at before anything is computed, and what follows from it. */
#include "encoder/encoder.h"

#include <math.h>

static fin_status check_offsets(fini_work *job, fin_error *err)
{
    const fin_sequences *s = job->sequences;
    const int64_t most = INT64_C(1) << 48;
    if (s->n < 0 || s->n > most)
        return fini_fail(err, FIN_ERR_ARGUMENT, "%lld sequences", (long long)s->n);
    if (s->n && (!s->offsets || !s->tokens))
        return fini_fail(err, FIN_ERR_ARGUMENT, "sequences without tokens or without offsets");
    if (s->n && s->offsets[0] != 0)
        return fini_fail(err, FIN_ERR_ARGUMENT, "offsets begin with %lld; they must begin with 0",
                         (long long)s->offsets[0]);
    for (int64_t i = 0; i < s->n; i++) {
        int64_t from = s->offsets[i], to = s->offsets[i + 1];
        if (to <= from)
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "sequence %lld has no tokens (offsets %lld and %lld); every sequence "
                             "has at least one",
                             (long long)(job->first + i), (long long)from, (long long)to);
        if (to > most / job->o->shape.inputs || to - from > FINI_LONGEST)
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "sequence %lld has %lld tokens; a sequence can have %d",
                             (long long)(job->first + i), (long long)(to - from), FINI_LONGEST);
        job->longest = to - from > job->longest ? to - from : job->longest;
    }
    return FIN_OK;
}

static fin_status check_tokens(const fini_work *job, fin_error *err)
{
    const fin_sequences *s = job->sequences;
    const fin_encoder *o = job->o;
    int64_t inputs = o->shape.inputs;
    if (o->settings.positions == FIN_POSITIONS_LEARNED && job->longest > o->settings.longest)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "a sequence has %lld tokens, but there are learned positions for %lld; "
                         "the setting longest says how many",
                         (long long)job->longest, (long long)o->settings.longest);
    for (int64_t i = 0; i < s->n; i++)
        for (int64_t l = s->offsets[i]; l < s->offsets[i + 1]; l++)
            for (int64_t j = 0; j < inputs; j++)
                if (!isfinite(s->tokens[l * inputs + j]))
                    return fini_fail(err, FIN_ERR_ARGUMENT,
                                     "column %lld of token %lld of sequence %lld is %g; tokens "
                                     "must be finite",
                                     (long long)j, (long long)(l - s->offsets[i]),
                                     (long long)(job->first + i),
                                     (double)s->tokens[l * inputs + j]);
    return FIN_OK;
}

static fin_status check_targets(const fini_work *job, int h, fin_error *err)
{
    const fin_head *head = &job->o->shape.head[h];
    const fin_sequences *s = job->sequences;
    const double *y = job->pass->targets[h];
    bool tokens = head->where == FIN_HEAD_TOKENS;
    int64_t size = fin_head_targets(head), n = !s->n ? 0 : tokens ? s->offsets[s->n] : s->n;
    for (int64_t i = 0; y && i < n; i++) {
        double first = y[i * size];
        if (head->kind == FIN_HEAD_CLASSES && !isnan(first) &&
            !(first >= 0 && first < (double)head->size && first == floor(first)))
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "the target of head %s is class %g at %s %lld; classes are 0 to %lld",
                             head->name, first, tokens ? "token" : "sequence", (long long)i,
                             (long long)head->size - 1);
        for (int64_t j = 0; j < size; j++)
            if (isinf(y[i * size + j]))
                return fini_fail(err, FIN_ERR_ARGUMENT,
                                 "the target of head %s is %g at %s %lld; it must be finite, or "
                                 "NaN where there is none",
                                 head->name, y[i * size + j], tokens ? "token" : "sequence",
                                 (long long)i);
    }
    return FIN_OK;
}

/* The blocks of this process, and that its sequences are whole ones. */
static fin_status check_share(fini_work *job, fin_error *err)
{
    const fin_pass *pass = job->pass;
    int64_t n = job->sequences->n, b = 0;
    if (pass->blocks < 0 || pass->blocks > FINI_BLOCKS_MOST)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "sums over %lld blocks of sequences; there can be 1 to %d, or 0 for %d",
                         (long long)pass->blocks, FINI_BLOCKS_MOST, FINI_BLOCKS);
    bool alone = pass->first == 0 && pass->total == 0;
    job->total = alone ? n : pass->total;
    job->first = pass->first;
    job->blocks = fini_encoder_blocks(job->total, pass->blocks);
    bool good = job->first >= 0 && job->total >= 0 && job->total <= INT64_C(1) << 48 && n >= 0 &&
                n <= job->total && job->first <= job->total - n;
    for (; good && b < job->blocks; b++)
        if (fini_block_start(job->total, job->blocks, b) >= job->first)
            break;
    job->block = b;
    for (; good && b < job->blocks; b++)
        if (fini_block_start(job->total, job->blocks, b) >= job->first + n)
            break;
    job->own = b - job->block;
    if (!good || (n && fini_block_start(job->total, job->blocks, job->block) != job->first) ||
        (n && fini_block_start(job->total, job->blocks, b) != job->first + n))
        return fini_fail(
            err, FIN_ERR_ARGUMENT,
            "%lld sequences from number %lld on, of %lld, are not whole blocks of %lld: "
            "fin_encoder_share cuts them",
            (long long)n, (long long)job->first, (long long)job->total, (long long)job->blocks);
    if (!pass->sum && n != job->total)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "a share of %lld of %lld sequences needs a sum over processes",
                         (long long)n, (long long)job->total);
    return FIN_OK;
}

/* What is asked for: how many layers that takes, and which heads. */
static fin_status check_questions(fini_work *job, fin_error *err)
{
    fin_pass *pass = job->pass;
    const fin_encoder_settings *s = &job->o->settings;
    bool states = pass->states || pass->pooled, any = false;
    if ((states || pass->maps) &&
        (pass->layer < 0 || pass->layer > s->layers - (pass->maps ? 1 : 0)))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "layer %lld of an encoder with %lld layers: states are those after 0 to "
                         "%lld layers, attention that of layers 0 to %lld",
                         (long long)pass->layer, (long long)s->layers, (long long)s->layers,
                         (long long)s->layers - 1);
    if (pass->maps && (pass->map_head < 0 || pass->map_head >= s->heads))
        return fini_fail(err, FIN_ERR_ARGUMENT, "attention head %lld; there are 0 to %lld",
                         (long long)pass->map_head, (long long)s->heads - 1);
    job->back = pass->gradient != NULL;
    job->through = job->back && !pass->heads_only;
    job->slopes = job->through ? 0 : job->back ? job->o->head[0].weight : job->o->count;
    for (int h = 0; h < (int)job->o->shape.heads; h++) {
        job->head[h] = pass->targets[h] || pass->answers[h] || (h == 0 && pass->losses);
        any = any || job->head[h];
    }
    job->depth = any || job->back ? s->layers : pass->maps ? pass->layer + 1 : 0;
    if (states && job->depth < pass->layer)
        job->depth = pass->layer;
    job->everywhere = s->layers == 0 || (states && pass->layer == s->layers) ||
                      (pass->maps && pass->layer == s->layers - 1);
    for (int h = 0; h < (int)job->o->shape.heads; h++)
        job->everywhere = job->everywhere || pass->answers[h] ||
                          (job->head[h] && job->o->shape.head[h].where == FIN_HEAD_POOLED);
    job->columns = job->o->shape.heads + job->o->count - job->slopes;
    return FIN_OK;
}

fin_status fini_encoder_check(fini_work *job, fin_error *err)
{
    if (job->pass->dtype != FIN_F32 && job->pass->dtype != FIN_F64)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "a pass computes in FIN_F32 or FIN_F64, not type %d",
                         (int)job->pass->dtype);
    FINI_TRY(check_share(job, err));
    FINI_TRY(check_questions(job, err));
    FINI_TRY(check_offsets(job, err));
    FINI_TRY(check_tokens(job, err));
    for (int h = 0; h < (int)job->o->shape.heads; h++)
        FINI_TRY(check_targets(job, h, err));
    return FIN_OK;
}
