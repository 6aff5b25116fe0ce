/* Projections drawn without tokens have the law of drawn tokens projected: both against the exact
 * first and second moments of (X.k, X.v, X.k*, X.v*) and their covariances with |X|^2.
 *
 * A token is X = m + s G with m = mu k* or 0; for quadratic forms
 *     Cov(X'AX, X'BX) = 2 s^4 tr(AB) + 4 s^2 m'ABm,   Cov(X'AX, b.X) = 2 s^2 m'Ab. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "test_random_stats.h"
#include "test_task_help.h"

#include <stdio.h>

enum { N = 7000, L = 3, SEEN = 4, FRAME = 4 };

/* Coordinates of (k, v, k*, v*) in an orthonormal frame that begins with k*, v*. */
typedef struct directions {
    double c[SEEN][FRAME];
} directions;

static fin_overlaps overlaps_of(const directions *D)
{
    double rho = 0;
    for (int i = 0; i < FRAME; i++)
        rho += D->c[0][i] * D->c[1][i];
    return (fin_overlaps){D->c[0][0], D->c[1][1], D->c[1][0], D->c[0][1], rho};
}

/* One token: what is seen of it and its squared norm. */
typedef struct law {
    stats_mean first[SEEN], second[SEEN][SEEN], norm, norm2, with_norm[SEEN], squares[SEEN][SEEN];
    stats_mean with_y[SEEN], chi2_z2;
} law;

static double dot(const double *a, const double *b)
{
    double sum = 0;
    for (int i = 0; i < FRAME; i++)
        sum += a[i] * b[i];
    return sum;
}

static void add(law *w, const directions *D, double mu, double s, int64_t d, const double *x,
                double norm2, double y)
{
    double n = norm2 - ((double)d * s * s + mu * mu),
           scale = sqrt(2 * (double)d) * s * s + 2 * s * mu + 1e-300;
    for (int i = 0; i < SEEN; i++) {
        stats_add(&w->first[i], x[i]);
        stats_add(&w->with_norm[i], (x[i] - mu * D->c[i][0]) * n / scale);
        stats_add(&w->with_y[i], x[i] * y);
        for (int j = 0; j <= i; j++) {
            stats_add(&w->second[i][j], x[i] * x[j]);
            stats_add(&w->squares[i][j], x[i] * x[j] * n / scale);
        }
    }
    stats_add(&w->norm, n / scale);
    stats_add(&w->norm2, n * n / (scale * scale));
    stats_add(&w->chi2_z2, x[0] * x[0] * x[1] * x[1]);
}

/* y_gain: E[y x] = y_gain * (direction . v*), 0 for tokens that are not in y. */
static void judge(const law *w, const directions *D, double mu, double s, int64_t d, double y_gain)
{
    double s2 = s * s, scale = sqrt(2 * (double)d) * s2 + 2 * s * mu + 1e-300;
    for (int i = 0; i < SEEN; i++) {
        double mi = mu * D->c[i][0];
        stats_z("mean", stats_mean_z(&w->first[i], mi));
        stats_z("with |X|^2", stats_mean_z(&w->with_norm[i], 2 * s2 * mi / scale));
        stats_z("with y", stats_mean_z(&w->with_y[i], y_gain * D->c[i][1]));
        for (int j = 0; j <= i; j++) {
            double mj = mu * D->c[j][0], ab = dot(D->c[i], D->c[j]);
            stats_z("product", stats_mean_z(&w->second[i][j], s2 * ab + mi * mj));
            stats_z("product with |X|^2",
                    stats_mean_z(&w->squares[i][j], (2 * s2 * s2 * ab + 4 * s2 * mi * mj) / scale));
        }
    }
    double m0 = mu * D->c[0][0], m1 = mu * D->c[1][0], rho = dot(D->c[0], D->c[1]);
    stats_z("|X|^2", stats_mean_z(&w->norm, 0));
    stats_z("Var |X|^2", stats_mean_z(&w->norm2, (2 * (double)d * s2 * s2 + 4 * s2 * mu * mu) /
                                                     (scale * scale)));
    stats_z("chi^2 z^2",
            stats_mean_z(&w->chi2_z2, (s2 + m0 * m0) * (s2 + m1 * m1) + 2 * s2 * s2 * rho * rho +
                                          4 * s2 * m0 * m1 * rho));
}

static void check(const char *kind, const fin_task_settings *s, const directions *D, int drawn)
{
    fin_task *task = help_task(kind, s, 51 + (uint64_t)s->d);
    const fin_task_settings *r = fin_task_get_settings(task);
    int64_t d = s->d;
    static double x[SEEN][N * L], norm2[N * L], y[N];
    static int64_t offsets[N + 1], location[N];
    fin_task_offsets(task, 0, N, offsets, NULL);
    if (drawn) {
        help_batch b = help_draw(task, 0, N, FIN_F64);
        double *frame = malloc((size_t)(FRAME * d) * sizeof *frame),
               *k = calloc((size_t)(SEEN * d), sizeof *k);
        help_frame(task, d < FRAME ? (int)d : FRAME, frame);
        for (int i = 0; i < SEEN; i++)
            for (int j = 0; j < FRAME && j < d; j++)
                for (int64_t c = 0; c < d; c++)
                    k[i * d + c] += D->c[i][j] * frame[j * d + c];
        for (int64_t row = 0; row < N * L; row++) {
            for (int i = 0; i < SEEN; i++)
                x[i][row] = help_dot(&b, row, k + i * d);
            norm2[row] = help_norm2(&b, row);
        }
        memcpy(y, b.y, sizeof y);
        memcpy(location, b.location, sizeof location);
        free(frame);
        free(k);
        help_free(&b);
    } else {
        fin_projections out = {x[0], x[1], x[2], x[3], norm2};
        fin_overlaps o = overlaps_of(D);
        fin_error err = {FIN_OK, ""};
        if (fin_task_project(task, &o, 0, N, offsets, &out, y, location, &err))
            fail_msg("d = %d: %s", (int)d, err.message);
    }
    static law relevant, other;
    memset(&relevant, 0, sizeof relevant);
    memset(&other, 0, sizeof other);
    int max = strcmp(kind, "max") == 0;
    for (int64_t row = 0; row < N * L; row++) {
        double seen[SEEN] = {x[0][row], x[1][row], x[2][row], x[3][row]};
        assert_true(norm2[row] > 0);
        if (max) { /* all tokens together are N(0, I); y holds one of L */
            add(&other, D, 0, 1, d, seen, norm2[row], y[row / L]);
            continue;
        }
        int is = location[row / L] == row % L;
        add(is ? &relevant : &other, D, is ? r->mu : 0, is ? r->gamma : 1, d, seen, norm2[row],
            y[row / L]);
    }
    judge(&other, D, 0, 1, d, max ? 1.0 / L : 0);
    if (!max)
        judge(&relevant, D, r->mu, r->gamma, d, r->gamma * r->gamma);
    fin_task_destroy(task);
}

/* Unit vectors k, v in the first `room` coordinates. */
static directions random_directions(uint64_t number, int64_t room)
{
    directions D = {{{0}, {0}, {1}, {0, 1}}};
    fin_random r;
    fin_random_open(&r, 52, 3000, number);
    fin_random_sphere(&r, room < FRAME ? room : FRAME, D.c[0]);
    fin_random_sphere(&r, room < FRAME ? room : FRAME, D.c[1]);
    return D;
}

static void run(const char *kind, int drawn, const char *name)
{
    static const int64_t dims[] = {2, 3, 4, 5, 50};
    /* Corners of the frame: k or v in the plane of k*, v*, k = v, k = -k*, three dimensions. */
    static const directions corners[] = {
        {{{1}, {0, 1}, {1}, {0, 1}}},
        {{{-1}, {0.6, 0.8}, {1}, {0, 1}}},
        {{{0.6, -0.8}, {0.6, -0.8}, {1}, {0, 1}}},
        {{{1}, {0.48, 0.6, 0.64}, {1}, {0, 1}}}, /* k = k*, v outside the plane */
        {{{0.6, 0.8}, {0, 0, 1}, {1}, {0, 1}}},
        {{{0.48, 0.6, 0.64}, {0, 1}, {1}, {0, 1}}},
        {{{0, 0, 1}, {0, 0, -1}, {1}, {0, 1}}},
        {{{0.48, 0.6, 0.64}, {-0.6, 0, 0.8}, {1}, {0, 1}}},
        {{{0, 0, 1}, {0, 0, 0, 1}, {1}, {0, 1}}},
    };
    static const int64_t needs[] = {2, 2, 2, 3, 3, 3, 3, 3, 4};
    stats_begin();
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        fin_task_settings s = help_settings(kind, dims[i], L);
        s.eps = 0.2;
        s.gamma = 0.8;
        s.mu = 1.1;
        s.snr = 2;
        for (uint64_t t = 0; t < 2; t++) {
            directions D = random_directions(10 * (uint64_t)dims[i] + t, dims[i]);
            check(kind, &s, &D, drawn);
        }
        for (int c = 0; c < 9; c++)
            if (needs[c] <= dims[i] &&
                !(drawn && dims[i] > 4)) /* the draw does not know about k and v */
                check(kind, &s, &corners[c], drawn);
    }
    stats_end(name);
}

static void project__has_the_exact_moments(void **state)
{
    (void)state;
    run("slr", 0, "slr projected");
    run("spiked", 0, "spiked projected");
    run("max", 0, "max projected");
}

static void draw__has_the_exact_moments(void **state)
{
    (void)state;
    run("slr", 1, "slr drawn");
    run("max", 1, "max drawn");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(project__has_the_exact_moments),
        cmocka_unit_test(draw__has_the_exact_moments),
    };
    return cmocka_run_group_tests_name("task_project", tests, NULL, NULL);
}
