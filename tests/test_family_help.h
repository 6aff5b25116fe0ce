/* Short ways to make families and sequences of them for the tests. Include after cmocka.h. */
#ifndef TEST_TASK_LATENT_HELP_H
#define TEST_TASK_LATENT_HELP_H

#include "finetti/random.h"
#include "finetti/family.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static inline fin_latent_settings help_defaults(const char *family)
{
    fin_latent_settings s;
    fin_settings_defaults(fin_family_table(fin_family_find(family)), &s, sizeof s);
    return s;
}

static inline fin_latent *help_latent(const char *family, const fin_latent_settings *s,
                                      uint64_t seed)
{
    fin_latent *latent;
    fin_error err = {FIN_OK, ""};
    if (fin_latent_create(&latent, fin_family_find(family), s, seed, &err))
        fail_msg("%s", err.message);
    return latent;
}

static inline double *help_array(int64_t n)
{
    double *a = calloc((size_t)(n > 0 ? n : 1), sizeof *a);
    assert_non_null(a);
    return a;
}

typedef struct help_sequences {
    int64_t n, L, Q;
    fin_latent_shape shape;
    int64_t width; /* of truth */
    double *keys, *values, *queries, *answers, *truth, *z;
} help_sequences;

static inline help_sequences help_draw(const fin_latent *latent, uint64_t first, int64_t n,
                                       int64_t L, int64_t Q)
{
    help_sequences s = {.n = n, .L = L, .Q = Q};
    fin_latent_get_shape(latent, &s.shape);
    s.width = s.shape.outcomes ? s.shape.outcomes : s.shape.dv;
    s.keys = help_array(n * L * s.shape.dk);
    s.values = help_array(n * L * s.shape.dv);
    s.queries = help_array(n * Q * s.shape.dk);
    s.answers = help_array(n * Q * s.shape.dv);
    s.truth = help_array(n * Q * s.width);
    s.z = help_array(n * s.shape.latent);
    fin_error err = {FIN_OK, ""};
    if (fin_latent_draw(
            latent, first,
            &(fin_latent_sample){n, L, Q, s.keys, s.values, s.queries, s.answers, s.truth, s.z},
            &err))
        fail_msg("%s", err.message);
    return s;
}

static inline void help_free(help_sequences *s)
{
    free(s->keys);
    free(s->values);
    free(s->queries);
    free(s->answers);
    free(s->truth);
    free(s->z);
}

/* Largest |a - b|, relative to the largest |b| or 1. */
static inline double help_gap(int64_t n, const double *a, const double *b)
{
    double gap = 0, size = 1;
    for (int64_t i = 0; i < n; i++) {
        size = fmax(size, fabs(b[i]));
        gap = a[i] == a[i] ? fmax(gap, fabs(a[i] - b[i])) : INFINITY;
    }
    return gap / size;
}

#endif
