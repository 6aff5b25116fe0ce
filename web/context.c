/* Panels 4 and 5: queries that attend to a context, small and large. */
#include "call.h"
#include "finetti/context_tune.h"
#include "lab/rate.h"
#include "web.h"

#include <math.h>
#include <string.h>

/* ---- one context -------------------------------------------------------------------------------- */

typedef struct asked {
    fin_cross_settings s;
    int64_t L, m;
    const double *keys, *values, *queries;
} asked;

static fin_cross_settings cross_defaults(web_in *in)
{
    fin_cross_settings s;
    fin_settings_defaults(&fin_cross_table, &s, sizeof s);
    s.form = web_choice(in, 3);
    s.kernel = web_choice(in, 6);
    return s;
}

static asked ask(web_in *in)
{
    asked a = {.s = cross_defaults(in)};
    a.s.scale = web_number(in);
    a.s.prior = web_number(in);
    a.s.noise = web_number(in);
    a.s.level = web_number(in);
    a.s.temperature = web_number(in);
    a.L = web_whole(in);
    a.m = web_whole(in);
    a.keys = web_array(in, a.L);
    a.values = web_array(in, a.L);
    a.queries = web_array(in, a.m);
    return a;
}

static int answer(const asked *a, double *mean, double *variance, double *weights, int answers)
{
    fin_cross *cross = NULL;
    fin_status status = fin_cross_create(&cross, &a->s, NULL, 1, 1, a->L ? a->L : 1, &web_error);
    if (!status)
        status = fin_cross_load(cross, a->L, a->keys, a->values, NULL, &web_error);
    if (!status)
        status =
            fin_cross_predict(cross, a->m, a->queries, mean, variance, weights, NULL, &web_error);
    fin_cross_destroy(cross);
    return status ? -1 : answers;
}

int web_context(int count, const double *in, int room, double *out)
{
    web_in from = {in, count, false};
    asked a = ask(&from);
    if (!web_ready(&from, 2 * a.m, room))
        return -1;
    return answer(&a, out, out + a.m, NULL, (int)(2 * a.m));
}

int web_attend(int count, const double *in, int room, double *out)
{
    web_in from = {in, count, false};
    asked a = ask(&from);
    int64_t all = from.bad ? -1 : a.m * a.L; /* both are at most `count` */
    if (!web_ready(&from, all, room))
        return -1;
    double *mean = web_take((int)a.m + 1);
    if (!mean)
        return web_refuse("out of memory");
    int answers = answer(&a, mean, NULL, out, (int)all);
    web_give_back(mean);
    return answers;
}

/* What `finetti attend --tune` does with settings that are not given: those named by bits of `tuned` are chosen, as are
 * level and, where they are not tuned, all others by the size of the data. */
int web_tune(int count, const double *in, int room, double *out)
{
    web_in from = {in, count, false};
    fin_cross_settings s = cross_defaults(&from);
    int64_t tuned = web_whole(&from), L = web_whole(&from);
    const double *keys = web_array(&from, L), *values = web_array(&from, L);
    if (!web_ready(&from, 6, room))
        return -1;
    const int64_t offsets[2] = {0, L};
    const fin_tune_data data = {1, 1, 1, offsets, keys, values, NULL};
    fin_tune_settings how;
    fin_tune_report report = {0};
    fin_settings_defaults(&fin_tune_table, &how, sizeof how);
    if (tuned < 0 || tuned > 31 || L < 2)
        return web_refuse("tuning needs two tokens, and bits 0 to 4 say what is chosen");
    if (fin_tune_choose(&s, NULL, (unsigned)tuned, &data, &how, NULL, &report, &web_error))
        return -1;
    const double answers[6] = {s.scale, s.prior, s.noise, s.level, s.temperature, report.after};
    memcpy(out, answers, sizeof answers);
    return 6;
}

/* ---- more and more tokens, on the circle -------------------------------------------------------- */

static fini_rate rate_of(web_in *in)
{
    fini_rate rate = {.d = 2, .g = 1, .radius = 1, .dv = 1};
    rate.form = web_choice(in, 3);
    rate.keys = web_choice(in, 2); /* sphere or vmf */
    rate.concentration = web_number(in);
    rate.kappa = web_number(in);
    rate.kappa_power = web_number(in);
    rate.lam = web_number(in);
    rate.lam_power = web_number(in);
    rate.linear = web_number(in);
    rate.quadratic = web_number(in);
    rate.noise = web_number(in);
    rate.L = 2;
    if (rate.keys == FINI_RATE_SPHERE)
        rate.concentration = 1; /* what it is if it is not given */
    return rate;
}

/* Numbers that a formula may square without harm; finetti's own ranges are narrower where they matter. */
static bool is_fine(const fini_rate *r)
{
    const double x[] = {r->concentration, r->kappa, r->lam, r->linear, r->quadratic, r->noise};
    for (int i = 0; i < 6; i++)
        if (!(x[i] >= 0 && x[i] <= 1e6))
            return false;
    return r->kappa >= 1e-6 && r->lam >= 1e-12 && fabs(r->kappa_power) <= 4 &&
           fabs(r->lam_power) <= 4 && r->L >= 2 && r->L <= 1 << 20 && fini_rate_kappa(r) <= 1e10 &&
           fini_rate_kappa(r) >= 1e-9;
}

static const char *const not_fine = "a number is beyond the ranges of finetti lab rate";

int web_predicted(int count, const double *in, int room, double *out)
{
    web_in from = {in, count, false};
    fini_rate rate = rate_of(&from);
    int64_t n = from.left;
    const double *L = web_array(&from, n);
    if (!web_ready(&from, 3 * n, room))
        return -1;
    for (int64_t i = 0; i < n; i++) {
        if (!(L[i] >= 2 && L[i] <= 1 << 20))
            return web_refuse(not_fine);
        rate.L = (int64_t)L[i];
        if (!is_fine(&rate))
            return web_refuse(not_fine);
        fini_sphere_error e = {NAN, NAN};
        if (!fini_rate_predicted(&rate, &e))
            e = (fini_sphere_error){NAN, NAN};
        out[3 * i] = sqrt(e.bias + e.variance);
        out[3 * i + 1] = e.bias;
        out[3 * i + 2] = e.variance;
    }
    return (int)(3 * n);
}

extern const fin_command fini_command_rate;

/* The command itself: the dots are those of `finetti lab rate`. */
int web_rate(int count, const double *in, int room, double *out)
{
    web_in from = {in, count, false};
    fini_rate rate = rate_of(&from);
    rate.L = web_whole(&from);
    rate.contexts = web_whole(&from);
    rate.queries = web_whole(&from);
    rate.seed = web_whole(&from);
    if (!web_ready(&from, 2, room))
        return -1;
    if (!is_fine(&rate) || rate.L > 4096 || rate.contexts < 2 || rate.contexts > 1000 ||
        rate.queries < 1 || rate.queries > 4096 || rate.seed < 0)
        return web_refuse(not_fine);
    fin_result *result = fin_result_create();
    fin_status status = result ? fini_command_rate.run(&rate, result, NULL, &web_error)
                               : fini_fail_memory(&web_error, 0, "the answers");
    for (int i = 0; result && i < fin_result_scalar_count(result); i++) {
        fin_scalar scalar = fin_result_get_scalar(result, i);
        if (strcmp(scalar.name, "rmse") == 0) {
            out[0] = scalar.value;
            out[1] = scalar.error;
        }
    }
    fin_result_destroy(result);
    return status ? -1 : 2;
}

/* m(angle) = sqrt(2 linear) cos(angle) + sqrt(2 quadratic) cos(2 angle): mean squares as they should be. */
static double truth(const fini_rate *r, const double *key)
{
    return sqrt(2 * r->linear) * key[0] + sqrt(2 * r->quadratic) * (2 * key[0] * key[0] - 1);
}

/* fini_rate_limit of the harmonics, read at this m. */
static double limit(const fini_rate *r, const double *key)
{
    double psi[5] = {0};
    if (!fini_rate_limit(r, key, psi))
        return NAN;
    double two = fini_rate_quadratic(r) > 0 ? sqrt(2.0) * (psi[2] - psi[4]) / sqrt(2.0) : 0;
    return sqrt(2.0) * psi[0] + two;
}

typedef struct one_context {
    double *keys, *values, *queries, *found, *memory;
} one_context;

static bool draw(const fini_rate *r, int64_t n, one_context *c)
{
    c->memory = web_take((int)(3 * r->L + 3 * n));
    if (!c->memory)
        return false;
    c->keys = c->memory;
    c->values = c->keys + 2 * r->L;
    c->queries = c->values + r->L;
    c->found = c->queries + 2 * n;
    const fini_rate_law law = {r->keys, 2, r->concentration, r->g};
    fini_rate_draw(&law, r->seed, FINI_STREAM_RATE_KEYS, (uint64_t)r->L << 32, r->L, c->keys);
    fin_random_normals_f64((uint64_t)r->seed, FIN_STREAM_USER, (uint64_t)r->L, 0, r->L, c->values);
    for (int64_t l = 0; l < r->L; l++)
        c->values[l] = truth(r, c->keys + 2 * l) + sqrt(r->noise) * c->values[l];
    for (int64_t i = 0; i < n; i++) {
        double angle = 2 * 3.14159265358979323846 * ((double)i / (double)n - 0.5);
        c->queries[2 * i] = cos(angle);
        c->queries[2 * i + 1] = sin(angle);
    }
    return true;
}

int web_circle(int count, const double *in, int room, double *out)
{
    web_in from = {in, count, false};
    fini_rate rate = rate_of(&from);
    rate.L = web_whole(&from);
    rate.seed = web_whole(&from);
    int64_t n = web_whole(&from);
    one_context c;
    fin_cross *cross = NULL;
    if (!web_ready(&from, n >= 1 && n <= 4096 ? 3 * n : -1, room))
        return -1;
    if (!is_fine(&rate) || rate.L > 4096)
        return web_refuse(not_fine);
    if (!draw(&rate, n, &c))
        return web_refuse("out of memory");
    fin_cross_settings s;
    fin_settings_defaults(&fin_cross_table, &s, sizeof s);
    s.form = rate.form;
    s.scale = 1 / sqrt(fini_rate_kappa(&rate));
    s.noise = fini_rate_lam(&rate);
    s.temperature = 1 / fini_rate_kappa(&rate);
    fin_status status = fin_cross_create(&cross, &s, NULL, 2, 1, rate.L, &web_error);
    if (!status)
        status = fin_cross_load(cross, rate.L, c.keys, c.values, NULL, &web_error);
    if (!status)
        status = fin_cross_predict(cross, n, c.queries, c.found, NULL, NULL, NULL, &web_error);
    for (int64_t i = 0; i < n && !status; i++) {
        out[3 * i] = truth(&rate, c.queries + 2 * i);
        out[3 * i + 1] = c.found[i];
        out[3 * i + 2] = limit(&rate, c.queries + 2 * i);
    }
    fin_cross_destroy(cross);
    web_give_back(c.memory);
    return status ? -1 : (int)(3 * n);
}
