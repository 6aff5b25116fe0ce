/* The order in which the tokens of a sequence are summed.
 *
 * Sums of floating-point numbers depend on their order. A set has none, so it is given one that
 * depends on its content alone: visible tokens first, then hidden ones, each part sorted by its
 * columns, the first column first. A permutation of the tokens then gives the very same rows to
 * every sum. Visible ones come first so that they are the first rows of keys and values, and no
 * masks are needed.
 *
 * Tokens with the same content are told apart by nothing. Their answers could still differ in the
 * last bit, since a product of matrices may treat the last rows of a tile in another way than the
 * first; so all take the answer of the first of them, their twin. -0 counts as 0.
 *
 * A merge sort of words that hold the first column, made comparable as an integer, and the number
 * of the token: other columns are looked at where the first ones are equal. */
#include "encoder/encoder.h"

#include <string.h>

enum { RUN = 12 }; /* tokens sorted by insertion */

typedef struct contents {
    const float *tokens;
    int64_t inputs, shown; /* columns; of which are compared */
} contents;

/* Finite floats as integers in the same order. */
static uint64_t comparable(float x)
{
    uint32_t bits;
    x += 0.0f; /* -0 becomes 0 */
    memcpy(&bits, &x, sizeof bits);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

/* < 0, 0, > 0 for the columns after the first. */
static int compare_rest(const contents *c, uint64_t a, uint64_t b)
{
    const float *x = c->tokens + (int64_t)(a & 0xffffffffu) * c->inputs;
    const float *y = c->tokens + (int64_t)(b & 0xffffffffu) * c->inputs;
    for (int64_t j = 1; j < c->shown; j++)
        if (x[j] != y[j])
            return x[j] < y[j] ? -1 : 1;
    return 0;
}

static bool same(const contents *c, uint64_t a, uint64_t b)
{
    return a >> 32 == b >> 32 && compare_rest(c, a, b) == 0;
}

/* Does b go before a, which stood before it? */
static bool before(const contents *c, uint64_t b, uint64_t a)
{
    return b >> 32 != a >> 32 ? b >> 32 < a >> 32 : compare_rest(c, b, a) < 0;
}

static void insert_all(const contents *c, int64_t n, uint64_t *keys)
{
    for (int64_t i = 1; i < n; i++) {
        uint64_t key = keys[i];
        int64_t j = i;
        for (; j > 0 && before(c, key, keys[j - 1]); j--)
            keys[j] = keys[j - 1];
        keys[j] = key;
    }
}

static void merge(const contents *c, int64_t n, int64_t half, const uint64_t *from, uint64_t *to)
{
    int64_t a = 0, b = half;
    for (int64_t i = 0; i < n; i++) {
        bool second = a == half || (b < n && before(c, from[b], from[a]));
        to[i] = second ? from[b++] : from[a++];
    }
}

/* The sorted keys are in what is returned: keys or other. */
static uint64_t *sort(const contents *c, int64_t n, uint64_t *keys, uint64_t *other)
{
    for (int64_t i = 0; i < n; i += RUN)
        insert_all(c, n - i < RUN ? n - i : RUN, keys + i);
    for (int64_t half = RUN; half < n; half *= 2) {
        for (int64_t i = 0; i < n; i += 2 * half) {
            int64_t all = n - i < 2 * half ? n - i : 2 * half;
            merge(c, all, all < half ? all : half, keys + i, other + i);
        }
        uint64_t *swap = keys;
        keys = other;
        other = swap;
    }
    return keys;
}

int64_t fini_encoder_order(const fin_encoder *o, int64_t L, const float *tokens,
                           const uint8_t *hidden, int64_t *order, int64_t *twin,
                           fini_sorter *scratch)
{
    int64_t row = 0, visible = 0, inputs = o->shape.inputs;
    bool sorted = o->settings.positions == FIN_POSITIONS_NONE;
    for (int part = 0; part < 2; part++) {
        contents c = {tokens, inputs, part ? inputs - o->shape.values : inputs};
        uint64_t *keys = scratch->keys;
        int64_t n = 0;
        for (int64_t i = 0; i < L; i++)
            if ((hidden && hidden[i]) == part)
                keys[n++] = (c.shown ? comparable(tokens[i * inputs]) << 32 : 0) | (uint64_t)i;
        if (sorted)
            keys = sort(&c, n, keys, scratch->other);
        for (int64_t i = 0; i < n; i++, row++) {
            order[row] = (int64_t)(keys[i] & 0xffffffffu);
            twin[row] = sorted && i && same(&c, keys[i], keys[i - 1]) ? twin[row - 1] : row;
        }
        if (!part)
            visible = n;
    }
    return visible;
}
