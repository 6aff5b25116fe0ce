/* Losses of answers, in double whatever the pass computes in (encoder.h has the formulas). */
#include "encoder/encoder.h"

#include "math/small.h"

#include <math.h>

/* d/df of sum_j (f_j - y_j)^2 is 2 (f_j - y_j). Numbers that are no target say nothing. */
static double value_loss(int64_t n, const double *f, const double *y, double *gradient)
{
    double loss = 0;
    for (int64_t j = 0; j < n; j++) {
        double off = isnan(y[j]) ? 0 : f[j] - y[j];
        loss += off * off;
        if (gradient)
            gradient[j] = 2 * off;
    }
    return loss;
}

/* With s = exp(t): d/df = (f - y) / s and d/dt = (1 - (f - y)^2 / s) / 2, or 0 where t is at a
 * bound. */
static double gaussian_loss(int64_t n, const double *f, const double *y, double *gradient)
{
    double loss = 0;
    for (int64_t j = 0; j < n; j++) {
        double t = fini_log_variance(f[n + j]), off = f[j] - y[j], inverse = exp(-t);
        bool asked = !isnan(y[j]);
        loss += asked ? (off * off * inverse + t) / 2 : 0;
        if (gradient) {
            gradient[j] = asked ? off * inverse : 0;
            gradient[n + j] = asked && t == f[n + j] ? (1 - off * off * inverse) / 2 : 0;
        }
    }
    return loss;
}

/* d/df_c of log sum_c exp(f_c) - f_y is softmax(f)_c - [c = y]. */
static double classes_loss(int64_t n, const double *f, double y, double *gradient)
{
    double top = f[0], sum = 0;
    int64_t class = (int64_t)y;
    for (int64_t c = 1; c < n; c++)
        top = f[c] > top || isnan(f[c]) ? f[c] : top;
    for (int64_t c = 0; c < n; c++)
        sum += exp(f[c] - top);
    for (int64_t c = 0; gradient && c < n; c++)
        gradient[c] = exp(f[c] - top) / sum - (c == class);
    return log(sum) + top - f[class];
}

/* Not a number stays one. */
double fini_log_variance(double t)
{
    return t > 20 ? 20 : t < -20 ? -20 : t;
}

double fini_head_loss(const fin_head *head, const double *answer, const double *target,
                      double *gradient)
{
    switch (head->kind) {
    case FIN_HEAD_GAUSSIAN:
        return gaussian_loss(head->size, answer, target, gradient);
    case FIN_HEAD_CLASSES:
        return classes_loss(head->size, answer, target[0], gradient);
    default:
        return value_loss(head->size, answer, target, gradient);
    }
}

fin_status fin_head_say(const fin_head *head, int64_t rows, const double *center,
                        const double *scale, double *answers, fin_error *err)
{
    FINI_NEED(err, head, answers);
    int64_t n = fin_head_answers(head), size = head->size;
    for (double *f = answers; f < answers + rows * n; f += n) {
        if (head->kind == FIN_HEAD_CLASSES) {
            fini_softmax_libm(size, f, false);
            continue;
        }
        for (int64_t j = 0; j < size; j++) {
            double unit = scale ? 1 / scale[j] : 1;
            f[j] = f[j] * unit + (center ? center[j] : 0);
            if (head->kind == FIN_HEAD_GAUSSIAN)
                f[size + j] = exp(f[size + j]) * unit * unit;
        }
    }
    return FIN_OK;
}

bool fini_head_asked(const fin_head *head, const double *target)
{
    for (int64_t j = 0; j < fin_head_targets(head); j++)
        if (!isnan(target[j]))
            return true;
    return false;
}

int64_t fini_encoder_targets(const fini_work *job, int h, int64_t from, int64_t to)
{
    const fin_head *head = &job->o->shape.head[h];
    const double *y = job->pass->targets[h];
    int64_t n = 0, step = fin_head_targets(head);
    if (!y || from >= to)
        return 0;
    bool tokens = head->where == FIN_HEAD_TOKENS;
    int64_t a = tokens ? job->sequences->offsets[from] : from;
    int64_t b = tokens ? job->sequences->offsets[to] : to;
    for (int64_t i = a; i < b; i++)
        n += fini_head_asked(head, y + i * step);
    return n;
}
