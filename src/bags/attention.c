/* Attention as forms: softmax, erf and linear weights, H heads.
 *
 *     f_o = sum_h sum_l w_hl z_hlo + b_o,   u_hl = k_h.phi_l,   z_hlo = v_ho.phi_l
 *
 *     softmax  w_hl = exp(u_hl) / sum_m exp(u_hm)
 *     erf      w_hl = erf(u_hl + c_h)       c_h: one more number each, because centring the columns
 *                                           moves the scores of the paper's erf(k.x)
 *     linear   w_hl = (1 + u_hl) / L
 *
 * Scores of a token in U: u_1 .. u_H, then z_1 .. (head by head, output by output). With g_o =
 * dloss/df_o:  dz_hlo = g_o w_hl;  and with s_hl = sum_o g_o z_hlo,
 *
 *     softmax  du_hl = w_hl (s_hl - sum_m w_hm s_hm)
 *     erf      du_hl = s_hl 2/sqrt(pi) exp(-(u_hl + c_h)^2),   dc_h = sum_l du_hl
 *     linear   du_hl = s_hl / L
 *
 * Location: |w_hl| normalised over the bag, averaged over heads. Given the label, with the label's
 * emission at the token (the other heads as they are), P(h, l | y) is in proportion to
 *
 *     |w_hl| p(y | f - f_h + z_hl),   f_h = sum_l w_hl z_hl. */
#include "bags/bags.h"

#include "kernel/kernel.h"

static int64_t keys(const fini_bag_shape *shape)
{
    return shape->heads;
}

static int64_t values(const fini_bag_shape *shape)
{
    return shape->heads * shape->outputs;
}

static int64_t biases_and_shifts(const fini_bag_shape *shape)
{
    return shape->outputs + shape->heads;
}

/* Weights (H, L), another (L), outputs of heads (H, O), their sum (O), its derivative (O). */
static int64_t scratch(const fini_bag_shape *shape)
{
    return shape->longest * (shape->heads + 1) + (shape->heads + 2) * shape->outputs;
}

typedef struct pieces {
    double *w, *more, *head, *f, *df;
} pieces;

static pieces cut(const fini_bag_shape *shape, int64_t L, double *work)
{
    pieces p = {.w = work, .more = work + shape->heads * L};
    p.head = p.more + L;
    p.f = p.head + shape->heads * shape->outputs;
    p.df = p.f + shape->outputs;
    return p;
}

/* ---- weights of one head --------------------------------------------------------------------- */

static void softmax_weights(int64_t L, const double *U, int64_t q, double shift, double *w)
{
    (void)shift;
    double top = U[0], sum = 0;
    for (int64_t l = 1; l < L; l++)
        top = U[l * q] > top ? U[l * q] : top;
    for (int64_t l = 0; l < L; l++)
        w[l] = U[l * q] - top;
    fini_kernel_get()->exp(L, w, w);
    for (int64_t l = 0; l < L; l++)
        sum += w[l];
    for (int64_t l = 0; l < L; l++)
        w[l] /= sum;
}

static void erf_weights(int64_t L, const double *U, int64_t q, double shift, double *w)
{
    for (int64_t l = 0; l < L; l++)
        w[l] = U[l * q] + shift;
    fini_kernel_get()->erf(L, w, w);
}

static void linear_weights(int64_t L, const double *U, int64_t q, double shift, double *w)
{
    (void)shift;
    for (int64_t l = 0; l < L; l++)
        w[l] = (1 + U[l * q]) / (double)L;
}

typedef void (*weights_of)(int64_t L, const double *U, int64_t q, double shift, double *w);

static void forward(const fini_bag_shape *shape, weights_of weights, bool shifts,
                    const double *extra, int64_t L, const double *U, pieces p)
{
    int64_t H = shape->heads, O = shape->outputs, q = H + H * O;
    for (int64_t o = 0; o < O; o++)
        p.f[o] = extra[o];
    for (int64_t h = 0; h < H; h++) {
        double *w = p.w + h * L;
        weights(L, U + h, q, shifts ? extra[O + h] : 0, w);
        for (int64_t o = 0; o < O; o++) {
            const double *z = U + H + h * O + o;
            double sum = 0;
            for (int64_t l = 0; l < L; l++)
                sum += w[l] * z[l * q];
            p.head[h * O + o] = sum;
            p.f[o] += sum;
        }
    }
}

/* ---- loss -------------------------------------------------------------------------------------- */

/* dz of one head; s_hl into p.more. */
static void values_back(const fini_bag_shape *shape, int64_t h, int64_t L, const double *U,
                        pieces p, double *dU)
{
    int64_t H = shape->heads, O = shape->outputs, q = H + H * O;
    const double *w = p.w + h * L;
    for (int64_t l = 0; l < L; l++) {
        const double *z = U + l * q + H + h * O;
        double *dz = dU + l * q + H + h * O, s = 0;
        for (int64_t o = 0; o < O; o++) {
            s += p.df[o] * z[o];
            dz[o] = p.df[o] * w[l];
        }
        p.more[l] = s;
    }
}

/* du of head h, from the scores u of the tokens, their weights w and s, as above; returns the sum of
 * du where there is a shift. mean: sum_m w_m s_m. */
static double softmax_back(int64_t L, const double *u, int64_t q, double shift, double mean,
                           double *w, const double *s, double *du)
{
    (void)u, (void)shift;
    for (int64_t l = 0; l < L; l++)
        du[l * q] = w[l] * (s[l] - mean);
    return 0;
}

static double erf_back(int64_t L, const double *u, int64_t q, double shift, double mean, double *w,
                       const double *s, double *du)
{
    const double two_over_root_pi = 1.1283791670955126;
    double sum = 0, *slope = w; /* the weights are not needed any more */
    (void)mean;
    for (int64_t l = 0; l < L; l++)
        slope[l] = u[l * q] + shift;
    fini_kernel_get()->gauss(L, slope, slope);
    for (int64_t l = 0; l < L; l++)
        sum += du[l * q] = two_over_root_pi * slope[l] * s[l];
    return sum;
}

static double linear_back(int64_t L, const double *u, int64_t q, double shift, double mean,
                          double *w, const double *s, double *du)
{
    (void)u, (void)shift, (void)mean, (void)w;
    for (int64_t l = 0; l < L; l++)
        du[l * q] = s[l] / (double)L;
    return 0;
}

typedef double (*weights_back)(int64_t L, const double *u, int64_t q, double shift, double mean,
                               double *w, const double *s, double *du);

static double loss(const fini_bag_shape *shape, weights_of weights, weights_back back, bool shifts,
                   const double *extra, int64_t L, const double *U, double y, double *dU,
                   double *dextra, double *work)
{
    int64_t H = shape->heads, O = shape->outputs, q = H + H * O;
    pieces p = cut(shape, L, work);
    forward(shape, weights, shifts, extra, L, U, p);
    double value = fini_emission_loss(shape, p.f, y, p.df);
    for (int64_t o = 0; o < O; o++)
        dextra[o] += p.df[o];
    for (int64_t h = 0; h < H; h++) {
        double mean = 0;
        values_back(shape, h, L, U, p, dU);
        for (int64_t o = 0; o < O; o++)
            mean += p.df[o] * p.head[h * O + o];
        double sum =
            back(L, U + h, q, shifts ? extra[O + h] : 0, mean, p.w + h * L, p.more, dU + h);
        if (shifts)
            dextra[O + h] += sum;
    }
    return value;
}

/* ---- prediction and location ------------------------------------------------------------------- */

static void predict(const fini_bag_shape *shape, weights_of weights, bool shifts,
                    const double *extra, int64_t L, const double *U, double *out, double *variance,
                    double *work)
{
    pieces p = cut(shape, L, work);
    forward(shape, weights, shifts, extra, L, U, p);
    fini_emission_predict(shape, p.f, out);
    if (variance)
        variance[0] = 0;
}

/* |w| of one head, sum 1. */
static void normalise(int64_t L, double *w)
{
    double sum = 0;
    for (int64_t l = 0; l < L; l++)
        sum += w[l] = fabs(w[l]);
    for (int64_t l = 0; l < L; l++)
        w[l] = sum > 0 && isfinite(sum) ? w[l] / sum : 1 / (double)L;
}

/* more[l] = log p(y | f - f_h + z_hl), but for a constant. */
static void log_emissions(const fini_bag_shape *shape, int64_t h, int64_t L, const double *U,
                          double y, double sigma2, pieces p)
{
    int64_t H = shape->heads, O = shape->outputs, q = H + H * O;
    for (int64_t l = 0; l < L; l++) {
        for (int64_t o = 0; o < O; o++)
            p.df[o] = p.f[o] - p.head[h * O + o] + U[l * q + H + h * O + o];
        double value = fini_emission_loss(shape, p.df, y, NULL);
        p.more[l] = shape->classes ? -value : -value / sigma2;
    }
}

static void locate(const fini_bag_shape *shape, weights_of weights, bool shifts,
                   const double *extra, int64_t L, const double *U, const double *y, double sigma2,
                   double *weight, double *work)
{
    int64_t H = shape->heads;
    pieces p = cut(shape, L, work);
    forward(shape, weights, shifts, extra, L, U, p);
    double top = -INFINITY, sum = 0;
    for (int64_t h = 0; h < H; h++) {
        double *w = p.w + h * L;
        normalise(L, w);
        if (y)
            log_emissions(shape, h, L, U, *y, sigma2 > 0 ? sigma2 : 1e-300, p);
        for (int64_t l = 0; l < L; l++) { /* to logarithms */
            w[l] = log(w[l]) + (y ? p.more[l] : 0);
            top = w[l] > top ? w[l] : top;
        }
    }
    for (int64_t l = 0; l < L; l++) {
        weight[l] = 0;
        for (int64_t h = 0; h < H; h++)
            weight[l] += isfinite(top) ? exp(p.w[h * L + l] - top) : 1;
        sum += weight[l];
    }
    for (int64_t l = 0; l < L; l++)
        weight[l] /= sum;
}

#define FORM(form, shifts, extras)                                                                 \
    static double form##_loss(const fini_bag_shape *shape, const double *extra, int64_t L,         \
                              const double *U, double y, double *dU, double *dextra, double *work) \
    {                                                                                              \
        return loss(shape, form##_weights, form##_back, shifts, extra, L, U, y, dU, dextra, work); \
    }                                                                                              \
    static void form##_predict(const fini_bag_shape *shape, const double *extra, int64_t L,        \
                               const double *U, double *out, double *variance, double *work)       \
    {                                                                                              \
        predict(shape, form##_weights, shifts, extra, L, U, out, variance, work);                  \
    }                                                                                              \
    static void form##_locate(const fini_bag_shape *shape, const double *extra, int64_t L,         \
                              const double *U, const double *y, double sigma2, double *weight,     \
                              double *work)                                                        \
    {                                                                                              \
        locate(shape, form##_weights, shifts, extra, L, U, y, sigma2, weight, work);               \
    }                                                                                              \
    const fini_bag_form fini_bag_##form = {                                                        \
        #form, keys, values, extras, scratch, form##_loss, form##_predict, form##_locate, NULL}

FORM(softmax, false, fini_size_outputs);
FORM(erf, true, biases_and_shifts);
FORM(linear, false, fini_size_outputs);
