/* Many numbers -> one, with a 95 % interval.
 *
 *     only first last min max    the chosen number's own: 1.96 errors, Wilson's if it is a share
 *     mean                       1.96 standard errors from the spread between runs; shares are
 *                                pooled: Wilson's interval of all their runs together
 *     median                     between order statistics, from the binomial law
 *     sum                        errors in quadrature
 *     count                      none: it is what it is
 *     share                      Wilson's
 *     slope                      1.96 standard errors of the least squares line */
#include "study/claim.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double NORMAL_95 = 1.96;

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

static void set_error(fini_measured *out, double value, double error)
{
    /* An exact infinity is no NaN. */
    out->value = value;
    out->low = error == 0 ? value : value - NORMAL_95 * error;
    out->high = error == 0 ? value : value + NORMAL_95 * error;
}

static void set_share(fini_measured *out, double count, int64_t n)
{
    fini_interval interval = fini_wilson(count, n);
    out->value = count / (double)n;
    out->low = interval.low;
    out->high = interval.high;
}

static bool is_share(const fini_number *number)
{
    return number->how == FIN_HOW_SHARE && number->samples > 0;
}

static void set_chosen(fini_measured *out, const fini_number *number)
{
    if (is_share(number)) {
        set_share(out, round(number->value * (double)number->samples), number->samples);
        out->value = number->value;
    } else {
        set_error(out, number->value, number->error);
    }
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

static void set_mean(fini_measured *out, const fini_number *numbers, int64_t n)
{
    double sum = 0, count = 0, squares = 0;
    int64_t samples = 0;
    bool shares = true;
    for (int64_t i = 0; i < n; i++) {
        sum += numbers[i].value;
        count += round(numbers[i].value * (double)numbers[i].samples);
        samples += numbers[i].samples;
        shares = shares && is_share(&numbers[i]);
    }
    if (shares) {
        set_share(out, count, samples);
        snprintf(out->how, sizeof out->how, "share of %lld runs", (long long)samples);
        return;
    }
    double mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++)
        squares += (numbers[i].value - mean) * (numbers[i].value - mean);
    double error = n > 1 ? sqrt(squares / (double)(n - 1) / (double)n) : numbers[0].error;
    set_error(out, mean, error);
}

/* The largest k with P(Binomial(n, 1/2) < k) <= 0.025: the interval goes from the k-th number to
 * the k-th from above. With five numbers or fewer there is no such k; then k = 1. */
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
    return k > 1 ? k : 1;
}

static fin_status set_median(fini_measured *out, const fini_number *numbers, int64_t n,
                             fin_error *err)
{
    if (n == 1) {
        set_chosen(out, &numbers[0]);
        return FIN_OK;
    }
    double *sorted = fini_alloc_array(n, sizeof *sorted);
    if (!sorted)
        return fini_fail_memory(err, (size_t)n * sizeof *sorted, "the numbers of a claim");
    for (int64_t i = 0; i < n; i++)
        sorted[i] = numbers[i].value;
    fini_sort(sorted, n);
    int64_t k = median_rank(n);
    out->value = fini_quantile(sorted, n, 0.5);
    out->low = sorted[k - 1];
    out->high = sorted[n - k];
    fini_free(sorted);
    return FIN_OK;
}

static void set_sum(fini_measured *out, const fini_number *numbers, int64_t n)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += numbers[i].value;
        squares += numbers[i].error * numbers[i].error;
    }
    set_error(out, sum, sqrt(squares));
}

static int64_t count_true(const fini_number *numbers, int64_t n)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++)
        count += numbers[i].value != 0;
    return count;
}

static void add(fini_measured *out, const char *text)
{
    size_t used = strlen(out->how);
    snprintf(out->how + used, sizeof out->how - used, "%s", text);
}

static fin_status set_slope(fini_measured *out, const fini_number *numbers, const double *x,
                            int64_t n, fin_error *err)
{
    if (n < 2) {
        out->known = false;
        out->value = out->low = out->high = NAN;
        snprintf(out->how, sizeof out->how, "a slope needs two runs or more; there is one");
        return FIN_OK;
    }
    double *y = fini_alloc_array(n, sizeof *y);
    if (!y)
        return fini_fail_memory(err, (size_t)n * sizeof *y, "the numbers of a claim");
    for (int64_t i = 0; i < n; i++)
        y[i] = numbers[i].value;
    fini_line line = fini_fit_line(x, y, n);
    fini_free(y);
    set_error(out, line.slope, n == 2 ? 0 : line.slope_error);
    if (n == 2)
        add(out, ", uncertainty not known");
    return FIN_OK;
}

fin_status fini_reduce_numbers(fini_reduce reduce, const fini_number *numbers, const double *x,
                               int64_t n, fini_measured *out, fin_error *err)
{
    fin_status status = FIN_OK;
    out->known = true;
    describe(reduce, numbers, n, out);
    switch (reduce) {
    case FINI_REDUCE_MEAN:
        set_mean(out, numbers, n);
        break;
    case FINI_REDUCE_MEDIAN:
        status = set_median(out, numbers, n, err);
        break;
    case FINI_REDUCE_SUM:
        set_sum(out, numbers, n);
        break;
    case FINI_REDUCE_COUNT:
        set_error(out, (double)count_true(numbers, n), 0);
        break;
    case FINI_REDUCE_SHARE:
        set_share(out, (double)count_true(numbers, n), n);
        break;
    case FINI_REDUCE_SLOPE:
        status = set_slope(out, numbers, x, n, err);
        break;
    default:
        set_chosen(out, &numbers[choose(reduce, numbers, n)]);
    }
    return status;
}
