/* Keys of the commands `rate` and `limit`, and means over contexts. */
#include "lab/rate.h"

#include "finetti/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A zero vector has probability zero; it is left alone. */
static void normalise(int64_t n, int64_t d, double *rows)
{
    for (int64_t i = 0; i < n; i++) {
        double *x = rows + i * d, norm2 = 0;
        for (int64_t j = 0; j < d; j++)
            norm2 += x[j] * x[j];
        double scale = norm2 > 0 ? 1 / sqrt(norm2) : 0;
        for (int64_t j = 0; j < d; j++)
            x[j] *= scale;
    }
}

static void draw_vmf(const fini_rate_law *keys, int64_t seed, uint32_t stream, uint64_t sample,
                     int64_t n, double *out)
{
    double axis[64] = {1};
    fin_random r;
    fin_random_open(&r, (uint64_t)seed, stream, sample);
    for (int64_t i = 0; i < n; i++)
        fin_random_vmf(&r, keys->d, axis, keys->concentration, out + i * keys->d);
}

void fini_rate_draw(const fini_rate_law *keys, int64_t seed, uint32_t stream, uint64_t sample,
                    int64_t n, double *out)
{
    int64_t count = n * keys->d;
    if (keys->law == FINI_RATE_VMF) {
        draw_vmf(keys, seed, stream, sample, n, out);
        return;
    }
    fin_random_normals_f64((uint64_t)seed, stream, sample, 0, count, out);
    if (keys->law == FINI_RATE_SPHERE)
        normalise(n, keys->d, out);
    double scale = keys->law == FINI_RATE_GAUSSIAN ? sqrt(keys->g) : 1;
    for (int64_t i = 0; i < count && scale != 1; i++)
        out[i] *= scale;
}

static int along_axis(const void *left, const void *right)
{
    const double *a = left, *b = right;
    int first = (a[0] > b[0]) - (a[0] < b[0]);
    return first ? first : (a[1] > b[1]) - (a[1] < b[1]);
}

/* With a skewed law it is chance how many queries fall where keys are rare, and errors there are the
 * largest. So several times as many are drawn and sorted along the axis, and of every few neighbours
 * one is taken: each is as likely to be taken as any other, so that a mean over queries has the
 * expectation that it had, and a smaller spread. */
void fini_rate_draw_spread(const fini_rate_law *keys, int64_t seed, uint64_t sample, int64_t n,
                           double *room, double *out)
{
    int64_t d = keys->d, few = FINI_RATE_CANDIDATES;
    size_t row = (size_t)d * sizeof(double);
    fin_random r;
    fini_rate_draw(keys, seed, FINI_STREAM_RATE_QUERIES, sample, few * n, room);
    qsort(room, (size_t)(few * n), row, along_axis);
    fin_random_open(&r, (uint64_t)seed, FINI_STREAM_RATE_PICKS, sample);
    for (int64_t i = 0; i < n; i++)
        memcpy(out + i * d, room + (few * i + fin_random_below(&r, few)) * d, row);
}

void fini_average_add(fini_average *average, double x)
{
    double step = x - average->mean;
    average->mean += step / (double)++average->count;
    average->squares += step * (x - average->mean);
}

double fini_average_error(const fini_average *average)
{
    double n = (double)average->count;
    return average->count < 2 ? NAN : sqrt(average->squares / (n - 1) / n);
}
