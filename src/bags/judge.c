/* How good predictions are.
 *
 * One call for classes and for numbers; what does not apply is NaN, so that a table can leave it
 * out. Bags whose label is NaN (not known) do not count. A probability of 0 for what happened would
 * make the log loss infinite whatever else is right: it is taken as DBL_EPSILON, as scikit-learn
 * does. */
#include "bags/judge.h"

#include "math/stats.h"
#include "base/constants.h"

#include <float.h>
#include <math.h>

/* Both sides are sorted by themselves and merged: for every score of the class, how many of the
 * others are smaller and how many the same. */
static double auc_of_sorted(const double *in, int64_t ins, const double *out, int64_t outs)
{
    double right = 0;
    for (int64_t i = 0, less = 0, most = 0; i < ins; i++) {
        while (less < outs && out[less] < in[i])
            less++;
        most = most < less ? less : most;
        while (most < outs && out[most] <= in[i])
            most++;
        right += (double)less + (double)(most - less) / 2;
    }
    return ins && outs ? right / (double)ins / (double)outs : NAN;
}

double fini_auc(int64_t n, const double *labels, double class, const double *score, int64_t stride,
                double *scratch)
{
    int64_t ins = 0, outs = 0;
    for (int64_t i = 0; i < n; i++) {
        if (labels[i] == class)
            scratch[ins++] = score[i * stride];
        else if (!isnan(labels[i]))
            scratch[n - ++outs] = score[i * stride];
    }
    fini_sort(scratch, ins);
    fini_sort(scratch + n - outs, outs);
    return auc_of_sorted(scratch, ins, scratch + n - outs, outs);
}

int fini_bin(double probability, int bins)
{
    double b = probability * bins;
    return b >= bins ? bins - 1 : b > 0 ? (int)b : 0; /* also if it is not a number */
}

/* Sum over bins of how far what was said is from what happened. */
static double apart(const double *bins)
{
    double sum = 0;
    for (int b = 0; b < FINI_ECE_BINS; b++)
        sum += fabs(bins[b]);
    return sum;
}

/* ---- classes --------------------------------------------------------------------------------- */

/* Mean over classes that some bags have and some have not; of two classes, both say the same. */
static double mean_auc(int64_t n, int64_t classes, const double *labels, const double *probability,
                       double *scratch)
{
    double sum = 0, count = 0;
    for (int64_t c = classes == 2; c < classes; c++) {
        double auc = fini_auc(n, labels, (double)c, probability + c, classes, scratch);
        if (!isnan(auc)) {
            sum += auc;
            count++;
        }
    }
    return count ? sum / count : NAN;
}

/*     log loss   -log p_y
 *     Brier      sum_c (p_c - [c = y])^2 / 2: (p - y)^2 for two classes
 *     ECE        sum over 15 equal bins of the predicted class's probability ("confidence"):
 *                |sum of [right] - sum of confidence| / n        (Guo et al., ICML 2017) */
static void judge_classes(int64_t n, int64_t classes, const double *labels,
                          const double *probability, fin_fit_score *s)
{
    double right = 0, log_loss = 0, brier = 0, bins[FINI_ECE_BINS] = {0};
    for (int64_t i = 0; i < n; i++) {
        const double *p = probability + i * classes;
        int64_t best = 0;
        double squares = 0;
        if (isnan(labels[i]))
            continue;
        int64_t y = (int64_t)labels[i];
        for (int64_t c = 0; c < classes; c++) {
            double gap = p[c] - (c == y);
            squares += gap * gap;
            best = p[c] > p[best] ? c : best;
        }
        right += best == y;
        log_loss -= log(fmin(fmax(p[y], DBL_EPSILON), 1));
        brier += squares / 2;
        bins[fini_bin(p[best], FINI_ECE_BINS)] += (best == y) - p[best];
        s->count++;
    }
    double count = (double)s->count;
    s->accuracy = right / count;
    s->log_loss = log_loss / count;
    s->brier = brier / count;
    s->ece = apart(bins) / count;
}

/* Shares recognised. count: (2 classes) of bags of a class, and of those that are recognised. */
static void judge_balance(int64_t n, int64_t classes, const double *labels,
                          const double *probability, double *count, fin_fit_score *s)
{
    double *right = count + classes, sum = 0, present = 0;
    for (int64_t c = 0; c < 2 * classes; c++)
        count[c] = 0;
    for (int64_t i = 0; i < n; i++) {
        const double *p = probability + i * classes;
        int64_t best = 0;
        for (int64_t c = 1; c < classes; c++)
            best = p[c] > p[best] ? c : best;
        if (isnan(labels[i]))
            continue;
        count[(int64_t)labels[i]]++;
        right[(int64_t)labels[i]] += best == (int64_t)labels[i];
    }
    for (int64_t c = 0; c < classes; c++) {
        sum += count[c] > 0 ? right[c] / count[c] : 0;
        present += count[c] > 0;
    }
    s->balanced = present > 0 ? sum / present : NAN;
    s->sensitivity = classes == 2 && count[1] > 0 ? right[1] / count[1] : NAN;
    s->specificity = classes == 2 && count[0] > 0 ? right[0] / count[0] : NAN;
}

static fin_status check_classes(int64_t n, int64_t classes, const double *labels,
                                const double *probability, fin_error *err)
{
    for (int64_t i = 0; i < n; i++) {
        double y = labels[i];
        if (!isnan(y) && !(y >= 0 && y < (double)classes && y == floor(y)))
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "bag %lld has the label %g; with %lld classes it is one of 0 .. %lld",
                             (long long)i, y, (long long)classes, (long long)classes - 1);
        for (int64_t c = 0; c < classes; c++)
            if (!(probability[i * classes + c] >= -1e-9 &&
                  probability[i * classes + c] <= 1 + 1e-9))
                return fini_fail(err, FIN_ERR_ARGUMENT,
                                 "bag %lld has the probability %g for class %lld; it must be in "
                                 "[0, 1]",
                                 (long long)i, probability[i * classes + c], (long long)c);
    }
    return FIN_OK;
}

/* ---- numbers --------------------------------------------------------------------------------- */

/*     r2          1 - sum (y - f)^2 / sum (y - mean of y)^2
 *     log score   -log of the density of Normal(f, sd^2) at y: smaller is better
 *     coverage    share of labels inside their interval, or |y - f| <= 1.645 sd: 0.9 if all is well */
static void judge_numbers(int64_t n, const double *labels, const double *mean, const double *sd,
                          const double *ends, fin_fit_score *s)
{
    const double z90 = 1.6448536269514722;
    double center = 0, squares = 0, around = 0, absolute = 0, log_score = 0, within = 0;
    for (int64_t i = 0; i < n; i++) {
        if (isnan(labels[i]))
            continue;
        s->count++;
        center += (labels[i] - center) / (double)s->count;
    }
    for (int64_t i = 0; i < n; i++) {
        if (isnan(labels[i]))
            continue;
        double gap = labels[i] - mean[i], deviation = labels[i] - center;
        squares += gap * gap;
        around += deviation * deviation;
        absolute += fabs(gap);
        if (sd) {
            double z = gap / sd[i];
            if (sd[i] > 0)
                log_score += z * z / 2 + log(sd[i]) + FINI_LOG_TWO_PI / 2;
            else
                log_score += gap == 0 ? -INFINITY : INFINITY; /* sure, and right or wrong */
            within += !ends && fabs(gap) <= z90 * sd[i];
        }
        within += ends && ends[2 * i] <= labels[i] && labels[i] <= ends[2 * i + 1];
    }
    double count = (double)s->count;
    s->rmse = sqrt(squares / count);
    s->mae = absolute / count;
    s->r2 = around > 0 ? 1 - squares / around : NAN;
    s->log_score = sd ? log_score / count : NAN;
    s->coverage = sd || ends ? within / count : NAN;
}

static fin_status check_numbers(int64_t n, const double *labels, const double *mean,
                                const double *sd, fin_error *err)
{
    for (int64_t i = 0; i < n; i++) {
        if (isinf(labels[i]))
            return fini_fail(err, FIN_ERR_ARGUMENT, "the label of bag %lld is infinite",
                             (long long)i);
        if (!isfinite(mean[i]))
            return fini_fail(err, FIN_ERR_ARGUMENT, "the prediction for bag %lld is not finite",
                             (long long)i);
        if (sd && !(sd[i] >= 0))
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "the standard deviation for bag %lld is %g; it cannot be negative",
                             (long long)i, sd[i]);
    }
    return FIN_OK;
}

fin_status fin_fit_judge(int64_t n, int64_t classes, const double *labels, const double *mean,
                         const double *sd, const double *ends, fin_fit_score *score, fin_error *err)
{
    FINI_NEED(err, labels, mean, score);
    *score = (fin_fit_score){0, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    if (n < 1 || classes < 0 || classes == 1)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%lld bags of %lld classes to judge; give labels and predictions of at "
                         "least one bag, and 0 classes (numbers) or at least 2",
                         (long long)n, (long long)classes);
    FINI_TRY(classes ? check_classes(n, classes, labels, mean, err)
                     : check_numbers(n, labels, mean, sd, err));
    double *scratch;
    if (!classes) {
        judge_numbers(n, labels, mean, sd, ends, score);
    } else if ((scratch = fini_alloc_array(n + 2 * classes, sizeof *scratch))) {
        judge_balance(n, classes, labels, mean, scratch, score);
        judge_classes(n, classes, labels, mean, score);
        score->auc = mean_auc(n, classes, labels, mean, scratch);
        fini_free(scratch);
    } else {
        return fini_fail_memory(err, (size_t)n * sizeof *scratch, "judging predictions");
    }
    if (score->count)
        return FIN_OK;
    return fini_fail(err, FIN_ERR_ARGUMENT, "no bag has a label: there is nothing to judge by");
}

/* ---- tokens ---------------------------------------------------------------------------------- */

/* One bag: its share of `first` and its AUC; false if its tokens are all alike. */
static bool find_tokens(int64_t L, const unsigned char *relevant, const double *score,
                        double *scratch, double *first, double *auc)
{
    double top = -INFINITY, ties = 0, hits = 0, *labels = scratch + L;
    int64_t deciding = 0;
    for (int64_t l = 0; l < L; l++) {
        labels[l] = relevant[l];
        deciding += relevant[l];
        top = score[l] > top ? score[l] : top;
    }
    for (int64_t l = 0; l < L; l++) {
        ties += score[l] == top;
        hits += score[l] == top && relevant[l];
    }
    *first = hits / ties;
    *auc = fini_auc(L, labels, 1, score, 1, scratch);
    return deciding > 0 && deciding < L;
}

static void average_found(const double *sum, const double *square, fin_found *found)
{
    double n = (double)found->bags, *mean[] = {&found->first, &found->auc},
           *se[] = {&found->first_se, &found->auc_se};
    for (int k = 0; k < 2 && n > 0; k++) {
        *mean[k] = sum[k] / n;
        if (n > 1)
            *se[k] = sqrt(fmax(0, square[k] / n - *mean[k] * *mean[k]) / (n - 1));
    }
}

fin_status fin_tokens_judge(const fin_bags *bags, const unsigned char *relevant,
                            const double *score, fin_found *found, fin_error *err)
{
    FINI_NEED(err, bags, relevant, score, found);
    FINI_TRY(fini_bags_check(bags, err));
    int64_t longest = fini_bags_longest(bags),
            N = bags->n ? bags->offsets[bags->n] - bags->offsets[0] : 0;
    double sum[2] = {0}, square[2] = {0}, bins[FINI_ECE_BINS] = {0}, judged = 0;
    double shares[FINI_ECE_BINS] = {0};
    bool probabilities = true;
    *found = (fin_found){0, NAN, NAN, NAN, NAN, NAN, NAN};
    for (int64_t t = 0; t < N; t++)
        if (isnan(score[t]) || relevant[t] > 1)
            return fini_fail(
                err, FIN_ERR_ARGUMENT,
                "token %lld has the score %g and is relevant = %d; scores are numbers, "
                "and relevant is 0 or 1",
                (long long)t, score[t], relevant[t]);
    FINI_NEW(err, "judging tokens", double, scratch, longest, 2);
    for (int64_t i = 0; i < bags->n; i++) {
        int64_t from = bags->offsets[i] - bags->offsets[0],
                L = bags->offsets[i + 1] - bags->offsets[i];
        double value[2];
        if (!find_tokens(L, relevant + from, score + from, scratch, &value[0], &value[1]))
            continue;
        found->bags++;
        judged += (double)L;
        for (int k = 0; k < 2; k++) {
            sum[k] += value[k];
            square[k] += value[k] * value[k];
        }
        double all = 0;
        for (int64_t t = from; t < from + L; t++)
            all += fmax(score[t], 0);
        for (int64_t t = from; t < from + L; t++) {
            double share = all > 0 ? fmax(score[t], 0) / all : 1 / (double)L;
            shares[fini_bin(share, FINI_ECE_BINS)] += relevant[t] - share;
            probabilities = probabilities && score[t] >= 0 && score[t] <= 1 + 1e-9;
            bins[fini_bin(score[t], FINI_ECE_BINS)] += relevant[t] - score[t];
        }
    }
    fini_free(scratch);
    average_found(sum, square, found);
    found->ece = probabilities && judged > 0 ? apart(bins) / judged : NAN;
    found->share_ece = judged > 0 ? apart(shares) / judged : NAN;
    return FIN_OK;
}
