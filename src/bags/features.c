/* Features of an RBF kernel k(a, b) = exp(-|a - b|^2 / (2 h^2)) of the columns z.
 *
 *     nystrom   f(x) = C^-1 k_m(x), C C' = K_m the matrix of m landmarks: f(a).f(b) is the kernel
 *               seen through the landmarks (Williams and Seeger 2001). K_m^-1/2 k_m(x) is the same
 *               up to a rotation, of which an L2 penalty knows nothing, and costs ten times more.
 *               Landmarks that those before them know already are left out.
 *     fourier   f(x) = (cos w_i.z, sin w_i.z) / sqrt(pairs), w_i normal with deviation 1 / h
 *               (Rahimi and Recht 2007)
 *
 * Features are centred over the training rows, and divided by one number, so that the mean of their
 * squared norm is 1 like that of z. h^2 is 0.3 times the median squared distance of landmarks.
 *
 * Everything is made of pairs of rows (kernel/pairs.h), where a number depends on its own two rows
 * only: the features of a row do not depend on what other rows are asked about, to the last bit. */
#include "kernel/kernel.h"
#include "kernel/pairs.h"
#include "kernel/rows.h"
#include "bags/map.h"

#include <math.h>
#include <string.h>

enum { TILE = FINI_MAP_TILE };

int64_t fini_features_scratch(const fini_map *map)
{
    return TILE * (2 * map->s + 4 * map->m);
}

double fini_features_cost(const fini_map *map, int64_t rows)
{
    const double wave = 20; /* cosine and sine */
    double each = (double)map->s;
    for (int g = 0; g < fini_map_groups(map); g++) {
        double m = (double)map->group_m[g], width = (double)fini_map_width(map, g);
        each += m * (width + (map->kind == 0 ? m / 2 : wave));
    }
    return (double)rows * each;
}

/* f = whiten k for `rows` rows of k (rows, m), whiten lower triangular: of the first features only
 * the first numbers matter. few: room for 2 TILE m numbers. */
static void whiten_rows(int64_t m, const double *whiten, int64_t rows, const double *k, double *f,
                        int64_t ld, double *few)
{
    double *k_few = few + TILE * m;
    for (int64_t j = 0; j < m; j += TILE) {
        int64_t n = m - j < TILE ? m - j : TILE, d = j + n;
        for (int64_t i = 0; i < n; i++)
            memcpy(few + i * d, whiten + (j + i) * m, (size_t)d * sizeof *few);
        for (int64_t r = 0; r < rows; r++)
            memcpy(k_few + r * d, k + r * m, (size_t)d * sizeof *few);
        fini_pairs_get()->dots(d, rows, k_few, n, few, 1, f + j, ld);
    }
}

/* k(a, landmarks) of `rows` rows of group g. */
static void kernels(const fini_map *map, int g, const double *landmarks, int64_t rows,
                    const double *a, double *k)
{
    int64_t width = fini_map_width(map, g), m = map->group_m[g];
    double bandwidth = map->bandwidth[g];
    fini_pairs_get()->squares(width, rows, a, m, landmarks, -0.5 / bandwidth / bandwidth, k, m);
    fini_kernel_get()->exp(rows * m, k, k);
}

/* Features of `rows` rows of group g: a (rows, its width) to f (rows, map->m); k: room for 3 TILE m. */
static void nystrom(const fini_map *map, int g, const double *landmarks, const double *whiten,
                    int64_t rows, const double *a, double *k, double *f)
{
    int64_t m = map->group_m[g];
    kernels(map, g, landmarks, rows, a, k);
    whiten_rows(m, whiten, rows, k, f, map->m, k + TILE * m);
}

static void fourier(const fini_map *map, int g, const double *frequencies, int64_t rows,
                    const double *a, double *k, double *f, int64_t ld)
{
    int64_t width = fini_map_width(map, g), half = map->group_m[g] / 2;
    double times = 1 / sqrt((double)half);
    fini_pairs_get()->dots(width, rows, a, half, frequencies, 1, k, half);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < half; i++) {
            f[r * ld + i] = times * cos(k[r * half + i]);
            f[r * ld + half + i] = times * sin(k[r * half + i]);
        }
}

/* f = whiten k is read by w as k is by whiten' w: a row costs m then, not m^2 / 2. */
void fini_features_readouts(const fini_map *map, int64_t q, const double *W, double *V,
                            double *constant)
{
    const double *whiten = map->whiten;
    for (int64_t g = 0, at = 0; g < fini_map_groups(map); at += map->group_m[g++]) {
        int64_t m = map->group_m[g];
        for (int64_t r = 0; r < q; r++, V += m) {
            const double *w = W + r * map->p + map->linear + at;
            memset(V, 0, (size_t)m * sizeof *V);
            for (int64_t j = 0; j < m; j++) {
                double own = w[j] * map->stretch[at + j];
                constant[r] -= own * map->shift[at + j];
                V[j] += map->kind == 0 ? 0 : own;
                for (int64_t i = 0; i <= j && map->kind == 0; i++)
                    V[i] += own * whiten[j * m + i];
            }
        }
        whiten += map->kind == 0 ? m * m : 0;
    }
}

void fini_features_read(const fini_map *map, int group, int64_t rows, const double *z, int64_t q,
                        const double *V, double *U, double *room)
{
    const double *landmarks = map->landmarks;
    double *k = room + TILE * map->s;
    for (int g = 0; g < group; g++) {
        landmarks += map->group_m[g] / (map->kind ? 2 : 1) * fini_map_width(map, g);
        V += q * map->group_m[g];
    }
    int64_t m = map->group_m[group], width = fini_map_width(map, group);
    for (int64_t r = 0; r < rows; r++)
        fini_map_pick(map, group, z + r * map->s, room + r * width);
    if (map->kind)
        fourier(map, group, landmarks, rows, room, k, k + TILE * m, m);
    else
        kernels(map, group, landmarks, rows, room, k);
    fini_rows_get()->project_f64(rows, m, map->kind ? k + TILE * m : k, NULL, NULL, q, V, U);
}

void fini_features_raw(const fini_map *map, int64_t rows, const double *z, double *f, double *room)
{
    const double *landmarks = map->landmarks, *whiten = map->whiten;
    double *k = room + TILE * map->s;
    for (int g = 0; g < fini_map_groups(map); g++) {
        int64_t m = map->group_m[g], width = fini_map_width(map, g);
        if (m == 0)
            continue;
        for (int64_t r = 0; r < rows; r++)
            fini_map_pick(map, g, z + r * map->s, room + r * width);
        if (map->kind == 0) {
            nystrom(map, g, landmarks, whiten, rows, room, k, f);
            landmarks += m * width;
            whiten += m * m;
        } else {
            fourier(map, g, landmarks, rows, room, k, f, map->m);
            landmarks += m / 2 * width;
        }
        f += m;
    }
}

void fini_features_apply(const fini_map *map, const fin_bags *bags, int64_t first, int64_t rows,
                         double *out, double *scratch)
{
    double *z = scratch, *room = z + TILE * map->s, *f = room + TILE * (map->s + 3 * map->m);
    for (int64_t r = 0; r < rows; r++)
        fini_columns_apply(map, bags, first + r, z + r * map->s);
    if (map->m)
        fini_features_raw(map, rows, z, f, room);
    for (int64_t r = 0; r < rows; r++) {
        double *to = out + r * map->p;
        memcpy(to, z + (r + 1) * map->s - map->linear, (size_t)map->linear * sizeof *to);
        for (int64_t j = 0; j < map->m; j++)
            to[map->linear + j] = (f[r * map->m + j] - map->shift[j]) * map->stretch[j];
    }
}
