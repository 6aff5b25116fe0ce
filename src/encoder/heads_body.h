/* What comes in and what goes out of a group: tokens, states, answers, losses. Part of pass_f32.c
 * and pass_f64.c. */

/* ---- in -------------------------------------------------------------------------------------- */

/* First rows of sequence i of the group whose end nobody asks for: if no visible token has a
 * target, all of them (they are keys and values in the last layer and nothing more), else none. It
 * depends on the sequence alone, and so do the bits of its sums. */
static int64_t rows_to_skip(const fini_work *job, const scratch *s, int64_t i)
{
    const fin_pass *pass = job->pass;
    const int64_t *place = s->place + s->start[i];
    int64_t at = job->sequences->offsets[s->first + i];
    if (job->everywhere)
        return 0;
    for (int h = 0; h < (int)job->o->shape.heads; h++) {
        const fin_head *head = &job->o->shape.head[h];
        int64_t m = fin_head_targets(head);
        for (int64_t r = 0; pass->targets[h] && r < s->visible[i]; r++)
            if (fini_head_asked(head, pass->targets[h] + (at + place[r]) * m))
                return 0;
    }
    return s->visible[i];
}

/* Sequences from `first` on, before `end`: as many as fill a group, at least one. */
static void load_group(const fini_work *job, scratch *s, int64_t first, int64_t end)
{
    const fin_sequences *q = job->sequences;
    int64_t inputs = job->o->shape.inputs, keys = inputs - job->o->shape.values;
    s->first = first;
    s->n = s->rows = s->end[0] = 0;
    for (int64_t i = first; i < end; i++) {
        int64_t at = s->rows, begin = q->offsets[i], L = q->offsets[i + 1] - begin;
        if (s->n && at + L > FINI_GROUP)
            break;
        const float *tokens = q->tokens + begin * inputs;
        const uint8_t *hidden = q->hidden ? q->hidden + begin : NULL;
        s->start[s->n] = at;
        s->visible[s->n] =
            fini_encoder_order(job->o, L, tokens, hidden, s->place + at, s->twin + at, &s->sorter);
        for (int64_t l = 0; l < L; l++) {
            const float *from = tokens + s->place[at + l] * inputs;
            REAL *to = s->t + (at + l) * inputs;
            int64_t shown = l < s->visible[s->n] ? inputs : keys;
            s->twin[at + l] += at;
            for (int64_t j = 0; j < inputs; j++)
                to[j] = j < shown ? (REAL)(from[j] + 0.0f) : 0; /* no -0, as in the order */
        }
        s->skip[s->n] = rows_to_skip(job, s, s->n);
        s->end[s->n + 1] = s->end[s->n] + L - s->skip[s->n];
        s->rows += L;
        s->n++;
    }
    s->start[s->n] = s->rows;
}

/* x = A t + a + mask of hidden ones + position. */
static void forward_input(const fini_work *job, scratch *s)
{
    const fin_encoder *o = job->o;
    const REAL *weights = job->weights;
    const REAL *positions = o->positions >= 0 ? weights + o->positions : job->sines;
    int64_t w = o->width;
    REAL *x = s->layer[0].x;
    map_bias(s->rows, o->shape.inputs, w, s->t, weights, o->input, x);
    for (int64_t i = 0; i < s->n; i++) {
        int64_t from = s->start[i] + s->visible[i], rows = s->start[i + 1] - from;
        LAYERS->add_bias(rows, w, weights + o->mask, x + from * w, x + from * w);
    }
    for (int64_t r = 0; r < s->rows && o->settings.positions != FIN_POSITIONS_NONE; r++)
        LAYERS->add_bias(1, w, positions + s->place[r] * w, x + r * w, x + r * w);
}

static void backward_input(const fini_work *job, scratch *s)
{
    const fin_encoder *o = job->o;
    int64_t w = o->width;
    map_back_weight(s->rows, o->shape.inputs, w, s->t, s->dx, s->gradient + o->input.weight);
    LAYERS->sum_rows(s->rows, w, s->dx, s->gradient + o->input.bias);
    for (int64_t i = 0; i < s->n; i++) {
        int64_t from = s->start[i] + s->visible[i], rows = s->start[i + 1] - from;
        LAYERS->sum_rows(rows, w, s->dx + from * w, s->gradient + o->mask);
    }
    for (int64_t r = 0; r < s->rows && o->positions >= 0; r++)
        LAYERS->sum_rows(1, w, s->dx + r * w, s->gradient + o->positions + s->place[r] * w);
}

/* ---- states ---------------------------------------------------------------------------------- */

/* Rows whose mean a sequence is pooled to: those that are visible, or all if none is. */
static int64_t pooled_rows(const scratch *s, int64_t i)
{
    return s->visible[i] ? s->visible[i] : s->start[i + 1] - s->start[i];
}

static void write_states(const fini_work *job, const scratch *s, const REAL *x)
{
    const fin_pass *pass = job->pass;
    int64_t w = job->o->width;
    for (int64_t i = 0; i < s->n; i++) {
        double *to = pass->states ? pass->states + job->sequences->offsets[s->first + i] * w : NULL;
        for (int64_t r = s->start[i]; to && r < s->start[i + 1]; r++)
            for (int64_t j = 0; j < w; j++)
                to[s->place[r] * w + j] = (double)x[s->twin[r] * w + j];
        double *mean = pass->pooled ? pass->pooled + (s->first + i) * w : NULL;
        int64_t n = pooled_rows(s, i);
        for (int64_t j = 0; mean && j < w; j++) {
            mean[j] = 0;
            for (int64_t r = s->start[i]; r < s->start[i] + n; r++)
                mean[j] += (double)x[r * w + j];
            mean[j] /= (double)n;
        }
    }
}

/* ---- answers --------------------------------------------------------------------------------- */

static void pool(const fini_work *job, scratch *s, const REAL *r)
{
    int64_t w = job->o->width;
    memset(s->mean, 0, (size_t)(s->n * w) * sizeof(REAL));
    for (int64_t i = 0; i < s->n; i++) {
        int64_t n = pooled_rows(s, i);
        LAYERS->sum_rows(n, w, r + s->start[i] * w, s->mean + i * w);
        for (int64_t j = 0; j < w; j++)
            s->mean[i * w + j] /= (REAL)n;
    }
}

/* dy += the gradient of the means, spread over their rows. */
static void pool_back(const fini_work *job, scratch *s)
{
    int64_t w = job->o->width;
    for (int64_t i = 0; i < s->n; i++) {
        int64_t n = pooled_rows(s, i);
        for (int64_t j = 0; j < w; j++)
            s->dmean[i * w + j] /= (REAL)n;
        REAL *rows = s->dy + s->start[i] * w;
        LAYERS->add_bias(n, w, s->dmean + i * w, rows, rows);
    }
}

/* One answer: written where it is wanted, its loss added; in its place comes its gradient. `to` is
 * the token or sequence of this process. */
static double one_answer(const fini_work *job, int h, scratch *s, int64_t to, REAL *answer)
{
    const fin_head *head = &job->o->shape.head[h];
    const fin_pass *pass = job->pass;
    int64_t n = fin_head_answers(head), m = fin_head_targets(head);
    const double *y = pass->targets[h] ? pass->targets[h] + to * m : NULL;
    double *f = s->row, *slope = s->row + n, loss = NAN;
    for (int64_t j = 0; j < n; j++)
        f[j] = (double)answer[j];
    bool asked = y && fini_head_asked(head, y);
    if (asked)
        loss = fini_head_loss(head, f, y, job->back ? slope : NULL);
    for (int64_t j = 0; job->back && j < n; j++)
        answer[j] = asked ? (REAL)(job->scale[h] * slope[j]) : 0;
    for (int64_t j = head->size; j < n; j++)
        f[j] = fini_log_variance(f[j]);
    if (pass->answers[h])
        memcpy(pass->answers[h] + to * n, f, (size_t)n * sizeof *f);
    if (h == 0 && pass->losses)
        pass->losses[to] = loss;
    return asked ? loss : 0;
}

static double all_answers(const fini_work *job, int h, scratch *s)
{
    int64_t n = fin_head_answers(&job->o->shape.head[h]);
    bool tokens = job->o->shape.head[h].where == FIN_HEAD_TOKENS;
    double loss = 0;
    if (!tokens) {
        for (int64_t i = 0; i < s->n; i++)
            loss += one_answer(job, h, s, s->first + i, s->answers + i * n);
        return loss;
    }
    for (int64_t i = s->n - 1; i >= 0; i--) {
        int64_t at = job->sequences->offsets[s->first + i], from = s->start[i] + s->skip[i];
        REAL *answers = s->answers + (s->end[i] - from) * n; /* row r has its answer at r */
        /* Backwards: a twin's answer is copied before its gradient takes its place. */
        for (int64_t r = s->start[i + 1] - 1; r >= from; r--) {
            if (s->twin[r] != r)
                memcpy(answers + r * n, answers + s->twin[r] * n, (size_t)n * sizeof(REAL));
            loss += one_answer(job, h, s, at + s->place[r], answers + r * n);
        }
        for (int64_t r = s->start[i]; r < from && h == 0 && job->pass->losses; r++)
            job->pass->losses[at + s->place[r]] = NAN;
    }
    return loss;
}

/* Head h of representations r: its losses, and on the way back its gradient added to dy (tokens) or
 * dmean (pooled). */
static double answer(const fini_work *job, int h, scratch *s, const REAL *r)
{
    const fin_encoder *o = job->o;
    const REAL *weights = job->weights;
    int64_t w = o->width, n = fin_head_answers(&o->shape.head[h]);
    bool tokens = o->shape.head[h].where == FIN_HEAD_TOKENS;
    int64_t rows = tokens ? s->end[s->n] : s->n;
    const REAL *x = tokens ? r : s->mean;
    map_bias(rows, w, n, x, weights, o->head[h], s->answers);
    double loss = all_answers(job, h, s);
    if (job->back && job->pass->targets[h]) {
        map_back_weight(rows, w, n, x, s->answers, s->gradient + o->head[h].weight);
        LAYERS->sum_rows(rows, n, s->answers, s->gradient + o->head[h].bias);
        if (job->through)
            map_back(rows, w, n, s->answers, weights + o->head[h].weight, 1,
                     tokens ? s->dy : s->dmean);
    }
    return loss;
}
