/* The laws of bags of the command `mil`.
 *
 * Three are after Raff and Holt, Reproducibility in Multiple Instance Learning: A Case For Algorithmic Unit
 * Tests (NeurIPS 2023, arXiv 2310.17867), Algorithms 1 to 3. The numbers are those with which the
 * library torchmil restates the algorithms (SCStandardMILDataset, MCStandardMILDataset,
 * FalseFrequencyMILDataset); the paper's own listing was not available to us. Bag i is positive if i is odd.
 * All columns of a token are independent:
 *
 *     background   N(0, 1)           `least` to `most` tokens of every bag, uniformly
 *     poison       N(-10, 0.1^2)
 *
 * single: a bag with a concept token is positive.
 *     concepts     A: N(0, 3^2),  B: N(1, 1)
 *     positive     1 to k concept tokens, each A or B with probability 1/2
 *     poison       one token; in training in every negative bag, flipped in every positive one
 *
 * concepts: a bag with both concepts is positive.
 *     concepts     A: N(2, 0.1^2),  B: N(3, 0.1^2)
 *     positive     1 to k tokens of A and as many of B
 *     negative     one token, of A or of B with probability 1/2
 *     poison       as above
 *
 * frequency: the same rule, and there is no poison.
 *     concepts     A: N(2, 0.1^2),  B: N(3, 0.1^2)
 *     positive     one token of A and one of B
 *     negative     of A or of B with probability 1/2: in training one token, flipped `least_repeats` to
 *                  `most_repeats` of them
 *
 * Two things are ours. The number of background tokens of `single` is a parameter there, and drawn as
 * in the other two here. The concept of a negative bag of `frequency` is always A in torchmil; here it
 * is either, as in `concepts`, else B alone would decide. 3 and 0.1 are standard deviations.
 *
 * A bag has the same numbers in both laws. From one to the other, positive bags of the first two tests
 * gain a token and negative ones lose one; negative bags of the third gain tokens. A model that is
 * monotone (one more token can only raise the positive class) therefore has in every trial
 *
 *     single, concepts    AUC flipped >= AUC as trained
 *     frequency           AUC flipped <= AUC as trained
 *
 * Four are ours: who decides is known. A token points to a class, by x_0 = +-1.5 + N(0, 1); its other columns are
 * N(0, 1). `least` to `most` tokens of a bag point anywhere; one more, of `three` three more, points to
 * the bag's class, and is another in its other columns:
 *
 *     linear, three   x_1 = 3 + N(0, 1)
 *     sides           x_1 = +-3 + N(0, 1), either with probability 1/2
 *     ball            x_1, x_2, x_3 are N(0, 0.2^2)
 *
 * With r_l = density of l's other columns if it decides / density if not, the places of k responsible tokens
 * have the probabilities  prod_{l in S} r_l / e_k(r_1, ..., r_L),  e_k the elementary symmetric polynomial.
 * Given the label, r_l is to be multiplied by the like ratio for x_0. */
#include "lab/mil.h"

#include "random/streams.h"

#include <math.h>

static const double value_at = 1.5, key_at = 3, ball_radius = 0.2;
enum { BALL_COLUMNS = 3, MOST_DECIDING = 3 };

typedef struct gaussian {
    double mean, deviation;
} gaussian;

static gaussian law_of(int test, int what)
{
    static const gaussian background = {0, 1}, poison = {-10, 0.1};
    static const gaussian wide[2] = {{0, 3}, {1, 1}}, narrow[2] = {{2, 0.1}, {3, 0.1}};
    if (what == FINI_MIL_BACKGROUND)
        return background;
    if (what == FINI_MIL_POISON)
        return poison;
    if (test == FINI_MIL_SINGLE)
        return what == FINI_MIL_A ? wide[0] : wide[1];
    return what == FINI_MIL_A ? narrow[0] : narrow[1];
}

int64_t fini_mil_deciding(const fini_mil_law *law)
{
    return law->test < FINI_MIL_LINEAR ? 0 : law->test == FINI_MIL_THREE ? MOST_DECIDING : 1;
}

int64_t fini_mil_longest(const fini_mil_law *law)
{
    if (fini_mil_deciding(law))
        return law->most + fini_mil_deciding(law);
    int64_t repeats = law->most_repeats > 2 ? law->most_repeats : 2;
    return law->most + (law->test == FINI_MIL_SINGLE     ? law->k + 1
                        : law->test == FINI_MIL_CONCEPTS ? 2 * law->k + 1
                                                         : repeats);
}

fin_status fini_mil_open(fini_mil_bags *room, const fini_mil_law *law, int64_t n, fin_error *err)
{
    int64_t tokens = n * fini_mil_longest(law);
    *room = (fini_mil_bags){.offsets = fini_alloc_array(n + 1, sizeof *room->offsets),
                            .tokens = fini_alloc_array(tokens * law->d, sizeof *room->tokens),
                            .labels = fini_alloc_array(n, sizeof *room->labels),
                            .what = fini_alloc_array(tokens, sizeof *room->what)};
    if (room->offsets && room->tokens && room->labels && room->what)
        return FIN_OK;
    fini_mil_close(room);
    return fini_fail_memory(err, (size_t)(tokens * law->d) * sizeof *room->tokens, "the bags");
}

void fini_mil_close(fini_mil_bags *room)
{
    fini_free_all(room->offsets, room->tokens, room->labels, room->what);
    *room = (fini_mil_bags){.offsets = NULL};
}

static int64_t between(fin_random *r, int64_t least, int64_t most)
{
    return least + fin_random_below(r, most - least + 1);
}

/* What the tokens of a bag are, in the order in which they are drawn. Returns how many. Both laws take
 * the same numbers from r. */
static int64_t compose(const fini_mil_law *law, uint64_t seed, uint64_t bag, bool flipped,
                       unsigned char *what)
{
    bool positive = bag % 2;
    int64_t count = 0;
    fin_random r;
    fin_random_open(&r, seed, FINI_STREAM_MIL_BAGS, bag);
    for (int64_t left = between(&r, law->least, law->most); left > 0; left--)
        what[count++] = FINI_MIL_BACKGROUND;
    int64_t some = between(&r, 1, law->k);
    int64_t repeats = between(&r, law->least_repeats, law->most_repeats);
    int either = FINI_MIL_A + (int)fin_random_below(&r, 2);
    if (law->test == FINI_MIL_SINGLE)
        for (int64_t i = 0; positive && i < some; i++)
            what[count++] = (unsigned char)(FINI_MIL_A + fin_random_below(&r, 2));
    else if (positive)
        for (int64_t i = 0; i < (law->test == FINI_MIL_CONCEPTS ? some : 1); i++) {
            what[count++] = FINI_MIL_A;
            what[count++] = FINI_MIL_B;
        }
    else
        for (int64_t i = 0; i < (law->test == FINI_MIL_FREQUENCY && flipped ? repeats : 1); i++)
            what[count++] = (unsigned char)either;
    if (law->test != FINI_MIL_FREQUENCY && positive == flipped)
        what[count++] = FINI_MIL_POISON;
    return count;
}

/* The same where responsible tokens are known: they come last. */
static int64_t compose_known(const fini_mil_law *law, uint64_t seed, uint64_t bag,
                             unsigned char *what)
{
    fin_random r;
    fin_random_open(&r, seed, FINI_STREAM_MIL_BAGS, bag);
    int64_t others = between(&r, law->least, law->most), L = others + fini_mil_deciding(law);
    for (int64_t l = 0; l < L; l++) {
        bool says = fin_random_below(&r, 2), left = fin_random_below(&r, 2);
        if (l >= others)
            says = bag % 2;
        what[l] = (unsigned char)((l >= others ? FINI_MIL_DECIDES : 0) |
                                  (says ? FINI_MIL_SAYS_ONE : 0) | (left ? FINI_MIL_LEFT : 0));
    }
    return L;
}

static void place_known(const fini_mil_law *law, int what, double *x)
{
    x[0] += what & FINI_MIL_SAYS_ONE ? value_at : -value_at;
    if (!(what & FINI_MIL_DECIDES))
        return;
    for (int j = 1; j <= BALL_COLUMNS && law->test == FINI_MIL_BALL; j++)
        x[j] *= ball_radius;
    if (law->test != FINI_MIL_BALL)
        x[1] += law->test == FINI_MIL_SIDES && what & FINI_MIL_LEFT ? -key_at : key_at;
}

/* The logarithm of r_l; with a label, times the ratio for x_0, which is
 * N(x; s v, 1) / (N(x; v, 1) / 2 + N(x; -v, 1) / 2) = 2 / (1 + exp(-2 s v x)),  s = +-1. */
static double log_ratio(const fini_mil_law *law, const double *x, const double *label)
{
    double r = 0, out = fabs(key_at * x[1]);
    if (law->test == FINI_MIL_BALL)
        for (int j = 1; j <= BALL_COLUMNS; j++)
            r += 0.5 * x[j] * x[j] * (1 - 1 / (ball_radius * ball_radius)) - log(ball_radius);
    else if (law->test == FINI_MIL_SIDES)
        r = out + log1p(exp(-2 * out)) - log(2) - 0.5 * key_at * key_at;
    else
        r = key_at * x[1] - 0.5 * key_at * key_at;
    return label ? r - log1p(exp((*label > 0 ? -2 : 2) * value_at * x[0])) : r;
}

/* p_l = r_l e_(k-1)(r without l) / e_k(r), from r relative to the largest. */
static void best_of(int64_t L, int64_t k, const double *log_r, double *p)
{
    double top = log_r[0], all = 0;
    for (int64_t l = 1; l < L; l++)
        top = fmax(top, log_r[l]);
    for (int64_t l = 0; l < L; l++) {
        double e[MOST_DECIDING] = {1};
        for (int64_t i = 0; i < L; i++)
            for (int64_t j = k - 1; j > 0 && i != l; j--)
                e[j] += exp(log_r[i] - top) * e[j - 1];
        p[l] = exp(log_r[l] - top) * e[k - 1];
        all += p[l] / (double)k; /* each set is counted by each of its tokens */
    }
    for (int64_t l = 0; l < L; l++)
        p[l] /= all;
}

void fini_mil_best(const fini_mil_law *law, const fini_mil_bags *room, double *log_r,
                   double *weight, double *probability)
{
    for (int known = 0; known < 2; known++)
        for (int64_t i = 0; i < room->bags.n; i++) {
            int64_t from = room->offsets[i], L = room->offsets[i + 1] - from;
            for (int64_t l = from; l < from + L; l++)
                log_r[l] =
                    log_ratio(law, room->tokens + l * law->d, known ? &room->labels[i] : NULL);
            best_of(L, fini_mil_deciding(law), log_r + from, (known ? probability : weight) + from);
        }
}

void fini_mil_draw(fini_mil_bags *room, const fini_mil_law *law, uint64_t seed, uint64_t first,
                   int64_t n, bool flipped)
{
    room->offsets[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t bag = first + (uint64_t)i;
        unsigned char *what = room->what + room->offsets[i];
        double *x = room->tokens + room->offsets[i] * law->d;
        bool known = fini_mil_deciding(law) > 0;
        int64_t L =
            known ? compose_known(law, seed, bag, what) : compose(law, seed, bag, flipped, what);
        fin_random_normals_f64(seed, FINI_STREAM_MIL_TOKENS, bag, 0, L * law->d, x);
        for (int64_t l = 0; l < L && known; l++)
            place_known(law, what[l], x + l * law->d);
        for (int64_t l = 0; l < L && !known; l++) {
            gaussian g = law_of(law->test, what[l]);
            for (int64_t j = l * law->d; j < (l + 1) * law->d; j++)
                x[j] = g.mean + g.deviation * x[j];
        }
        room->labels[i] = (double)(bag % 2);
        room->offsets[i + 1] = room->offsets[i] + L;
    }
    room->bags = (fin_bags){.n = n,
                            .d = law->d,
                            .total = n,
                            .offsets = room->offsets,
                            .dtype = FIN_F64,
                            .tokens = room->tokens,
                            .labels = room->labels};
}
