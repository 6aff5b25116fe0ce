/* Many numbers -> one, with a 95 % interval.
 *
 *     only first last min max    the chosen number's own
 *     mean, slope                the wider one of two: from the spread of the numbers, by Student's
 *                                law, and from their own errors. Shares are pooled by a mean:
 *                                Wilson's interval of all their runs together
 *     median                     between order statistics, from the binomial law; with fewer than
 *                                six numbers there is none
 *     sum                        what the numbers have to each side, in quadrature
 *     count                      none: it is what it is
 *     share                      Wilson's
 *
 * Numbers in which chance has no part (closed forms and quadratures on a grid of settings) spread
 * because they differ, not because they are uncertain: their mean, slope and median have what their
 * own errors give, and none without. */
#include "study/claim.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *fini_reduce_quantity(fini_reduce reduce)
{
    static const char *const texts[] = {
#define QUANTITY(name, word, how, quantity) quantity,
        FINI_REDUCE_LIST(QUANTITY)
#undef QUANTITY
    };
    return texts[reduce];
}

/* ---- how it came about ----------------------------------------------------------------------- */

static fin_how common_kind(const fini_number *numbers, int64_t n)
{
    for (int64_t i = 1; i < n; i++)
        if (numbers[i].how != numbers[0].how)
            return FIN_HOW_DERIVED;
    return numbers[0].how;
}

/* "closed form", "share of 30 runs", "over 30 runs". */
static void kind_text(const fini_number *number, fin_how kind, char *text, size_t size)
{
    if (number->samples > 0 && kind == FIN_HOW_SHARE)
        snprintf(text, size, "share of %lld runs", (long long)number->samples);
    else if (number->samples > 0 && kind == FIN_HOW_RUNS)
        snprintf(text, size, "over %lld runs", (long long)number->samples);
    else
        snprintf(text, size, "%s", fin_how_name(kind));
}

static void describe(fini_reduce reduce, const fini_number *numbers, int64_t n, fini_measured *out)
{
    static const char *const words[] = {
#define WORD(name, word, how, quantity) how,
        FINI_REDUCE_LIST(WORD)
#undef WORD
    };
    char kind[96];
    out->kind = common_kind(numbers, n);
    kind_text(&numbers[0], out->kind, kind, sizeof kind);
    if (reduce == FINI_REDUCE_ONLY)
        snprintf(out->how, sizeof out->how, "%s", kind);
    else
        snprintf(out->how, sizeof out->how, "%s %lld %s%s, %s", words[reduce], (long long)n,
                 reduce == FINI_REDUCE_SLOPE ? "point" : "number", n == 1 ? "" : "s", kind);
}

/* ---- intervals ------------------------------------------------------------------------------- */

/* half: NaN if it is not known. */
static void set_half(fini_measured *out, double value, double half)
{
    /* An exact infinity is no NaN. */
    out->value = value;
    out->low = half == 0 ? value : value - half;
    out->high = half == 0 ? value : value + half;
}

double fini_student_95(int64_t degrees)
{
    static const double table[] = {
        INFINITY,          12.70620473617471, 4.302652729749464, 3.182446305283710,
        2.776445105197793, 2.570581835636314, 2.446911851144969, 2.364624251592785,
        2.306004135204167, 2.262157162798205, 2.228138851964939, 2.200985160091639,
        2.178812829667228, 2.160368656462792, 2.144786687917804, 2.131449545559776};
    enum { TABLE = sizeof table / sizeof *table };
    if (degrees < TABLE)
        return table[degrees > 0 ? degrees : 0];
    /* The expansion in 1 / degrees (Cornish and Fisher) is good to 1e-5 from here on. */
    double z = FINI_Z95, z2 = z * z, n = (double)degrees;
    double a = z * (z2 + 1) / 4, b = z * ((5 * z2 + 16) * z2 + 3) / 96;
    double c = z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384;
    double d = z * ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160;
    return z + (a + (b + (c + d / n) / n) / n) / n;
}

static void set_share(fini_measured *out, double count, int64_t n)
{
    fini_interval interval = fini_wilson(count, n);
    out->value = n > 0 ? count / (double)n : NAN;
    out->low = interval.low;
    out->high = interval.high;
}

static bool is_share(const fini_number *number)
{
    return number->how == FIN_HOW_SHARE && number->samples > 0;
}

static void set_chosen(fini_measured *out, const fini_number *number)
{
    out->value = number->value;
    out->low = number->low;
    out->high = number->high;
}

/* Has chance a part in them? */
static bool are_drawn(const fini_number *numbers, int64_t n, bool sampled)
{
    for (int64_t i = 0; i < n && !sampled; i++)
        sampled = numbers[i].drawn;
    return sampled;
}

static void add(fini_measured *out, const char *text)
{
    size_t used = strlen(out->how);
    snprintf(out->how + used, sizeof out->how - used, "%s", text);
}

static int64_t choose(fini_reduce reduce, const fini_number *numbers, int64_t n)
{
    int64_t best = reduce == FINI_REDUCE_LAST ? n - 1 : 0;
    for (int64_t i = 0; i < n; i++)
        if ((reduce == FINI_REDUCE_MIN && numbers[i].value < numbers[best].value) ||
            (reduce == FINI_REDUCE_MAX && numbers[i].value > numbers[best].value))
            best = i;
    return best;
}

static void set_mean(fini_measured *out, const fini_number *numbers, int64_t n, bool drawn)
{
    double sum = 0, count = 0, squares = 0, errors = 0;
    int64_t samples = 0;
    bool shares = true;
    for (int64_t i = 0; i < n; i++) {
        sum += numbers[i].value;
        count += round(numbers[i].value * (double)numbers[i].samples);
        samples += numbers[i].samples;
        errors += numbers[i].error * numbers[i].error;
        shares = shares && is_share(&numbers[i]);
    }
    if (shares) {
        set_share(out, count, samples);
        snprintf(out->how, sizeof out->how, "share of %lld runs", (long long)samples);
        return;
    }
    if (n == 1) {
        set_chosen(out, &numbers[0]);
        return;
    }
    double mean = sum / (double)n, half = FINI_Z95 * sqrt(errors) / (double)n;
    for (int64_t i = 0; i < n; i++)
        squares += (numbers[i].value - mean) * (numbers[i].value - mean);
    if (drawn)
        half = fmax(half, fini_student_95(n - 1) * sqrt(squares / (double)(n - 1) / (double)n));
    set_half(out, mean, half);
}

/* The largest k with P(Binomial(n, 1/2) < k) <= 0.025: the interval goes from the k-th number to
 * the k-th from above. With five numbers or fewer there is no such k: 0. */
static int64_t median_rank(int64_t n)
{
    double log_term = -(double)n * 0.69314718055994530942, below = 0; /* log C(n, 0) / 2^n */
    int64_t k = 0;
    while (k < n / 2) {
        below += exp(log_term);
        if (below > 0.025)
            break;
        log_term += log((double)(n - k) / (double)(k + 1));
        k++;
    }
    return k;
}

static fin_status set_median(fini_measured *out, const fini_number *numbers, int64_t n, bool drawn,
                             fin_error *err)
{
    double widest = 0;
    if (n == 1) {
        set_chosen(out, &numbers[0]);
        return FIN_OK;
    }
    FINI_OWN(err, "the numbers of a claim", double, sorted, n, 1);
    for (int64_t i = 0; i < n; i++) {
        sorted[i] = numbers[i].value;
        widest = fmax(widest, numbers[i].error);
    }
    fini_sort(sorted, n);
    int64_t k = median_rank(n);
    set_half(out, fini_quantile(sorted, n, 0.5), drawn ? NAN : FINI_Z95 * widest);
    if (drawn && k > 0) {
        out->low = sorted[k - 1];
        out->high = sorted[n - k];
    } else if (drawn) {
        add(out, ", uncertainty not known: an interval needs six numbers");
    }
    return FIN_OK;
}

static void set_sum(fini_measured *out, const fini_number *numbers, int64_t n)
{
    double sum = 0, below = 0, above = 0;
    for (int64_t i = 0; i < n; i++) {
        const fini_number *x = &numbers[i];
        sum += x->value;
        below += x->low == x->value ? 0 : (x->value - x->low) * (x->value - x->low);
        above += x->high == x->value ? 0 : (x->high - x->value) * (x->high - x->value);
    }
    out->value = sum;
    out->low = below == 0 ? sum : sum - sqrt(below);
    out->high = above == 0 ? sum : sum + sqrt(above);
}

static int64_t count_true(const fini_number *numbers, int64_t n)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++)
        count += numbers[i].value != 0;
    return count;
}

/* The error of a slope that comes from errors of the numbers: its weights are (x - mean) / Sxx. */
static double slope_error(const fini_number *numbers, const double *x, int64_t n)
{
    double mean = 0, sxx = 0, sum = 0;
    for (int64_t i = 0; i < n; i++)
        mean += x[i] / (double)n;
    for (int64_t i = 0; i < n; i++) {
        double part = (x[i] - mean) * numbers[i].error;
        sxx += (x[i] - mean) * (x[i] - mean);
        sum += part * part;
    }
    return sqrt(sum) / sxx;
}

static fin_status set_slope(fini_measured *out, const fini_number *numbers, const double *x,
                            int64_t n, bool drawn, fin_error *err)
{
    if (n < 2) {
        out->known = false;
        out->value = out->low = out->high = NAN;
        snprintf(out->how, sizeof out->how, "a slope needs two runs or more; there is one");
        return FIN_OK;
    }
    FINI_NEW(err, "the numbers of a claim", double, y, n, 1);
    for (int64_t i = 0; i < n; i++)
        y[i] = numbers[i].value;
    fini_line line = fini_fit_line(x, y, n);
    fini_free(y);
    double half = FINI_Z95 * slope_error(numbers, x, n);
    if (drawn && n > 2)
        half = fmax(half, fini_student_95(n - 2) * line.slope_error);
    bool known = !drawn || n > 2 || half > 0; /* two points do not spread about their line */
    set_half(out, line.slope, known ? half : NAN);
    if (!known)
        add(out, ", uncertainty not known: there are two points without errors");
    return FIN_OK;
}

/* A number whose error nobody knows, one of rare events say, leaves nothing known of what it has a part
 * in, the largest of many included: it might be larger. */
static void spread_doubt(fini_reduce reduce, const fini_number *numbers, int64_t n,
                         fini_measured *out)
{
    bool one =
        reduce == FINI_REDUCE_ONLY || reduce == FINI_REDUCE_FIRST || reduce == FINI_REDUCE_LAST;
    int64_t from = one ? choose(reduce, numbers, n) : 0, doubts = 0;
    for (int64_t i = from; i < (one ? from + 1 : n); i++)
        doubts += isnan(numbers[i].error);
    if (doubts > 0 && out->known) {
        char text[96];
        out->low = out->high = NAN;
        snprintf(text, sizeof text, ", uncertainty not known in %lld of %lld", (long long)doubts,
                 (long long)n);
        add(out, text);
    }
}

fin_status fini_reduce_numbers(fini_reduce reduce, const fini_number *numbers, const double *x,
                               int64_t n, bool sampled, fini_measured *out, fin_error *err)
{
    fin_status status = FIN_OK;
    bool drawn = are_drawn(numbers, n, sampled);
    out->known = true;
    describe(reduce, numbers, n, out);
    switch (reduce) {
    case FINI_REDUCE_MEAN:
        set_mean(out, numbers, n, drawn);
        break;
    case FINI_REDUCE_MEDIAN:
        status = set_median(out, numbers, n, drawn, err);
        break;
    case FINI_REDUCE_SUM:
        set_sum(out, numbers, n);
        break;
    case FINI_REDUCE_COUNT:
        set_half(out, (double)count_true(numbers, n), 0);
        break;
    case FINI_REDUCE_SHARE: /* of a grid it is what it is, of draws an estimate */
        if (drawn)
            set_share(out, (double)count_true(numbers, n), n);
        else
            set_half(out, (double)count_true(numbers, n) / (double)n, 0);
        break;
    case FINI_REDUCE_SLOPE:
        status = set_slope(out, numbers, x, n, drawn, err);
        break;
    default:
        set_chosen(out, &numbers[choose(reduce, numbers, n)]);
    }
    spread_doubt(reduce, numbers, n, out);
    return status;
}
