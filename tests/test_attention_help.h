/* Ragged batches and a plain long double attention to compare with. Include after cmocka.h. */
#ifndef TEST_ATTENTION_HELP_H
#define TEST_ATTENTION_HELP_H

#include "finetti/attention.h"
#include "finetti/random.h"
#include "attention/form.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Settings worth trying of every form: form name, lam, c. */
typedef struct help_form {
    const char *name;
    double lam, c;
} help_form;

static const help_form help_forms[] = {
    {"erf", 0.7, 0},        {"softmax", 1.3, 0}, {"linear", 0.4, 0},   {"shifted", 0.6, -0.3},
    {"softplus", 0.9, 0},   {"hardmax", 0.1, 0}, {"bayes", 0.8, -0.2}, {"bayes", 1.1, 0},
    {"bayes", INFINITY, 0}, {"erf", 0, 0},       {"softmax", 0, 0},    {"softplus", 0, 0},
};
enum { HELP_FORMS = sizeof help_forms / sizeof *help_forms };

static inline int help_normalised(const help_form *form)
{
    return !fini_form_elementwise(fin_form_find(form->name));
}

typedef struct ragged {
    int64_t n, d, longest, *offsets;
    fin_dtype dtype;
    double *X; /* the tokens in double, exactly */
    float *Xf; /* and in float, if dtype is FIN_F32 */
    double *k, *v, *y;
} ragged;

static inline ragged ragged_make(int64_t n, int64_t d, const int64_t *lengths, fin_dtype dtype,
                                 uint64_t seed)
{
    ragged b = {.n = n, .d = d, .dtype = dtype};
    b.offsets = calloc((size_t)n + 1, sizeof *b.offsets);
    for (int64_t i = 0; i < n; i++) {
        b.offsets[i + 1] = b.offsets[i] + lengths[i];
        b.longest = lengths[i] > b.longest ? lengths[i] : b.longest;
    }
    int64_t count = b.offsets[n] * d;
    b.X = malloc((size_t)count * sizeof *b.X + 1);
    b.Xf = malloc((size_t)count * sizeof *b.Xf + 1);
    b.k = malloc((size_t)d * sizeof *b.k);
    b.v = malloc((size_t)d * sizeof *b.v);
    b.y = malloc((size_t)n * sizeof *b.y + 1);
    fin_random_normals_f64(seed, 4000, 0, 0, count, b.X);
    fin_random_normals_f64(seed, 4000, 1, 0, d, b.k);
    fin_random_normals_f64(seed, 4000, 2, 0, d, b.v);
    fin_random_normals_f64(seed, 4000, 3, 0, n, b.y);
    for (int64_t i = 0; i < count; i++) {
        b.Xf[i] = (float)b.X[i];
        b.X[i] = dtype == FIN_F32 ? (double)b.Xf[i] : b.X[i];
    }
    for (int64_t c = 0; c < d; c++) {
        b.k[c] /= sqrt((double)d);
        b.v[c] /= sqrt((double)d);
    }
    return b;
}

static inline void ragged_free(ragged *b)
{
    free(b->offsets);
    free(b->X);
    free(b->Xf);
    free(b->k);
    free(b->v);
    free(b->y);
}

/* Samples from .. to-1 of it. */
static inline fin_batch ragged_view(const ragged *b, int64_t from, int64_t to)
{
    int64_t at = b->offsets[from] * b->d;
    return (fin_batch){to - from, b->d, b->dtype,
                       b->dtype == FIN_F32 ? (const void *)(b->Xf + at) : b->X + at,
                       b->offsets + from};
}

static inline fin_attention *help_attention(const help_form *form, const ragged *b)
{
    fin_attention *attention;
    fin_error err = {FIN_OK, ""};
    fin_form_settings s = {form->lam, form->c};
    if (fin_attention_create(&attention, fin_form_find(form->name), &s, b->d, b->dtype,
                             b->longest > 0 ? b->longest : 1, &err))
        fail_msg("%s: %s", form->name, err.message);
    assert_int_equal(fin_attention_set(attention, NULL, b->k, b->v, NULL), FIN_OK);
    return attention;
}

/* Valgrind computes long double as double: then there is nothing longer to compare with. */
static inline int long_double_is_longer(void)
{
    volatile long double one = 1, sum = one + 0x1p-60L;
    return sum != one;
}

static inline long double help_softplus(long double x)
{
    return x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x));
}

/* Weights of one sample by the formula on the front page, from scores and squared norms. */
static inline void help_weights(const help_form *form, int64_t L, const long double *chi,
                                const long double *norm2, long double *w)
{
    long double lam = form->lam, c = form->c, top = -INFINITY, total = 0, ties = 0;
    int hard = strcmp(form->name, "hardmax") == 0 || isinf(form->lam);
    for (int64_t l = 0; l < L; l++)
        top = chi[l] > top ? chi[l] : top;
    for (int64_t l = 0; l < L; l++)
        ties += chi[l] == top;
    for (int64_t l = 0; l < L; l++)
        if (hard)
            w[l] = chi[l] == top ? 1 / ties : 0;
        else if (strcmp(form->name, "erf") == 0)
            w[l] = erfl(lam * chi[l]);
        else if (strcmp(form->name, "linear") == 0)
            w[l] = 1 + lam * chi[l];
        else if (strcmp(form->name, "shifted") == 0)
            w[l] = 1 + erfl(c + lam * chi[l]);
        else if (strcmp(form->name, "softplus") == 0)
            total += w[l] = help_softplus(lam * chi[l]);
        else /* softmax, bayes: long double has the range, so the plain formula will do */
            total += w[l] = expl(lam * chi[l] + (form->name[0] == 'b' ? c * norm2[l] : 0));
    for (int64_t l = 0; l < L && total > 0; l++)
        w[l] /= total;
}

#endif
