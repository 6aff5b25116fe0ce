/* What a step learns from, and how fast: all of it pure functions of settings and step. */
#include "encoder/corpus.h"
#include "encoder/learn.h"
#include "random/streams.h"
#include "base/constants.h"

#include <math.h>

/* With w steps of warm-up and S steps in all, s = 0, 1, ... (torch's LambdaLR counts like this)
 *
 *     rate (s + 1) / w                                                          s < w
 *     rate (final + (1 - final) (1 + cos(pi (s - w) / (S - w))) / 2)            after
 *
 * so that no step has rate 0. */
double fini_learn_rate(const fin_learn *learn, int64_t step)
{
    const fin_learn_settings *set = &learn->settings;
    int64_t w = learn->warmup, S = set->steps;
    if (step < w)
        return set->rate * ((double)(step + 1) / (double)w);
    if (step >= S)
        return set->rate * set->final_rate;
    double angle = FINI_PI * ((double)(step - w) / (double)(S - w));
    return set->rate * (set->final_rate + (1 - set->final_rate) * 0.5 * (1 + cos(angle)));
}

/* ---- order of a fixed sample ----------------------------------------------------------------- */

/* A permutation of 0 .. n - 1 that needs no memory and can be asked for any place: a number below
 * a b is two digits (l, r), and rounds of
 *
 *     l <- l + F(r) mod a        r <- r + G(l) mod b
 *
 * are bijections whatever F and G are (Luby and Rackoff 1988): here a Philox word of (seed, epoch,
 * round, digit). a b is less than n + a; numbers beyond n are sent round again until they are
 * below, which keeps it a permutation (Black and Rogaway 2002). */
enum { ROUNDS = 6, ROUND_BITS = 3, DIGIT_BITS = 21 };

static uint64_t turn(uint64_t seed, uint64_t epoch, uint64_t round, uint64_t digit, uint64_t bound)
{
    fin_random r;
    uint64_t key = ((epoch << ROUND_BITS | round) << DIGIT_BITS) | digit;
    fin_random_open(&r, seed, FINI_STREAM_LEARN_ORDER, key);
    return (uint64_t)fin_random_below(&r, (int64_t)bound);
}

uint64_t fini_learn_order(uint64_t n, uint64_t seed, uint64_t epoch, uint64_t p)
{
    uint64_t a = (uint64_t)ceil(sqrt((double)n)), b = (n + a - 1) / a;
    do {
        uint64_t l = p / b, r = p % b;
        for (uint64_t round = 0; round < ROUNDS; round += 2) {
            l = (l + turn(seed, epoch, round, r, a)) % a;
            r = (r + turn(seed, epoch, round + 1, l, b)) % b;
        }
        p = l * b + r;
    } while (p >= n);
    return p;
}

/* ---- lengths --------------------------------------------------------------------------------- */

/* Log-uniform on least .. most: L = floor(exp u) with u uniform on (log least, log(most + 1)); from
 * 0 on, L + 1 is. */
int64_t fini_learn_length(const fin_learn *learn, int64_t batch)
{
    const fin_corpus_settings *c = fin_corpus_get_settings(learn->corpus);
    if (learn->corpus->kind != &fini_corpus_kind_latent || c->L_least >= c->L)
        return -1;
    int64_t more = c->L_least == 0;
    double low = log((double)(c->L_least + more)), high = log((double)(c->L + 1 + more));
    fin_random r;
    fin_random_open(&r, (uint64_t)learn->settings.seed, FINI_STREAM_LEARN_LENGTH, (uint64_t)batch);
    int64_t L = (int64_t)exp(low + fin_random_uniform(&r) * (high - low)) - more;
    return L < c->L_least ? c->L_least : L > c->L ? c->L : L;
}
