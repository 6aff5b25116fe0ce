/* Projected stochastic gradient descent in R^d with the library's forward-backward: k and v find k*
 * and v* up to a common sign, from fresh samples. */
#include <finetti.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { D = 40, L = 5, BATCH = 5, STEPS = 20000 };

/* v <- normalise(v - step (I - v v^T) g) */
static void descend(double *v, const double *g, double step)
{
    double along = 0, norm2 = 0;
    for (int i = 0; i < D; i++)
        along += v[i] * g[i];
    for (int i = 0; i < D; i++) {
        v[i] -= step * (g[i] - along * v[i]);
        norm2 += v[i] * v[i];
    }
    for (int i = 0; i < D; i++)
        v[i] /= sqrt(norm2);
}

static double dot(const double *a, const double *b)
{
    double sum = 0;
    for (int i = 0; i < D; i++)
        sum += a[i] * b[i];
    return sum;
}

static fin_status train(fin_task *task, fin_attention *attention, fin_error *err)
{
    static double tokens[BATCH * L * D];
    double y[BATCH], k[D], v[D], gk[D], gv[D];
    int64_t offsets[BATCH + 1];
    fin_random random;
    fin_random_open(&random, 2, FIN_STREAM_USER, 0);
    fin_random_sphere(&random, D, k);
    fin_random_sphere(&random, D, v);
    for (int t = 0; t <= STEPS; t++) {
        fin_form_settings form = {.lam = 2 / (1 + 1e-3 * t)};
        fin_gradient gradient = {.k = gk, .v = gv};
        fin_batch batch = {BATCH, D, FIN_F64, tokens, offsets};
        uint64_t first = (uint64_t)t * BATCH;
        double loss = 0;
        for (int i = 0; i < D; i++)
            gk[i] = gv[i] = 0;
        fin_status status;
        if ((status = fin_task_offsets(task, first, BATCH, offsets, err)) ||
            (status = fin_task_draw(task, first, BATCH, FIN_F64, offsets, tokens, y, NULL, err)) ||
            (status = fin_attention_set(attention, &form, k, v, err)) ||
            (status = fin_attention_loss(attention, &batch, y, NULL, &loss, &gradient, err)))
            return status;
        if (t % 5000 == 0)
            printf("step %5d  |k.k*| = %.2f  |v.v*| = %.2f\n", t,
                   fabs(dot(k, fin_task_k_star(task))), fabs(dot(v, fin_task_v_star(task))));
        descend(k, gk, 4e-3 / BATCH);
        descend(v, gv, 4e-3 / BATCH);
    }
    return FIN_OK;
}

int main(void)
{
    fin_error err;
    fin_task *task = NULL;
    fin_attention *attention = NULL;
    fin_task_settings settings;
    fin_settings_defaults(fin_task_kind_table(fin_task_find("slr")), &settings, sizeof settings);
    settings.d = D;
    settings.L = L;
    fin_status status =
        fin_task_create(&task, fin_task_find("slr"), &settings, NULL, 1, FIN_TASK_AMBIENT, &err);
    if (!status)
        status = fin_attention_create(&attention, fin_form_find("erf"), NULL, D, FIN_F64, L, &err);
    if (!status)
        status = train(task, attention, &err);
    if (status)
        fprintf(stderr, "%s\n", err.message);
    fin_attention_destroy(attention);
    fin_task_destroy(task);
    return status != FIN_OK;
}
