/* The report of a fit, second part: how sure it is. Everything here is about bags that were not
 * fitted to. */
#include "bags/fit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *fit_main_name(int64_t classes)
{
    return classes ? "accuracy" : "R2";
}

/* "0.8740 +- 0.0130", in a field of its own width; what does not exist is a dash. */
static void print_pair(double value, double se)
{
    char text[64];
    if (!isfinite(value))
        snprintf(text, sizeof text, "-");
    else if (!isfinite(se))
        snprintf(text, sizeof text, "%.4f", fit_round(value));
    else
        snprintf(text, sizeof text, "%.4f +- %.4f", fit_round(value), se);
    printf(" %18s", text);
}

static void print_one(double value)
{
    if (isfinite(value))
        printf(" %9.4f", fit_round(value));
    else
        printf(" %9s", "-");
}

static void print_gain(const fin_validation_row *row)
{
    char text[64];
    double gain = fit_round(0 - row->gain);
    const char *sign = gain > 0 ? "+" : "";
    if (isfinite(row->gain_se))
        snprintf(text, sizeof text, "%s%.4f +- %.4f", sign, gain, row->gain_se);
    else
        snprintf(text, sizeof text, "%s%.4f", sign, gain);
    printf(" %19s", text);
}

static void print_models(const fit_run *run)
{
    char name[64];
    bool times = isatty(STDOUT_FILENO);
    printf("%-16s %18s", "model", fit_main_name(run->classes));
    if (run->classes)
        printf(" %9s %9s %9s %9s", "AUC", "log loss", "Brier", "ECE");
    else
        printf(" %9s %9s %9s %9s", "rmse", "mae", "log score", "in 90%");
    if (run->models > 1)
        printf(" %19s", "gain of the first");
    printf("%s\n", times ? "   seconds" : "");
    for (int i = 0; i < run->models; i++) {
        const fin_validation_row *row = fin_validation_at(run->validation, i);
        const fin_fit_score *s = &row->mean;
        printf("%-16s", fit_title(&run->model[i], run->classes, name, sizeof name));
        print_pair(row->main, row->main_se);
        print_one(run->classes ? s->auc : s->rmse);
        print_one(run->classes ? s->log_loss : s->mae);
        print_one(run->classes ? s->brier : s->log_score);
        print_one(run->classes ? s->ece : s->coverage);
        if (i > 0)
            print_gain(row);
        else if (run->models > 1 && times)
            printf(" %19s", "");
        if (times)
            printf(" %9.3g", row->seconds);
        printf("\n");
    }
}

static void print_reliability(const fit_run *run)
{
    char name[64];
    const fin_fit_score *mean = &fin_validation_at(run->validation, 0)->mean;
    printf("\ncalibration of %s: Brier score %.4f, expected calibration error %.4f\n",
           fit_title(&run->model[0], run->classes, name, sizeof name), mean->brier, mean->ece);
    printf("  %-11s %9s %10s %10s\n", "probability", "how many", "predicted", "observed");
    for (int b = 0; b < FIT_BINS; b++) {
        printf("  %.1f-%.1f     %9lld", (double)b / FIT_BINS, (double)(b + 1) / FIT_BINS,
               (long long)run->bin_count[b]);
        if (run->bin_count[b])
            printf(" %10.3f %10.3f", run->bin_predicted[b], run->bin_observed[b]);
        printf("\n");
    }
}

/* Loss of a prediction that looks at no token: the classes' shares, or the mean of the labels. */
static double blind_loss(const fit_run *run)
{
    double total = 0, entropy = 0;
    for (int64_t c = 0; c < run->classes; c++)
        total += (double)run->class_count[c];
    for (int64_t c = 0; c < run->classes; c++) {
        double share = (double)run->class_count[c] / total;
        entropy -= share > 0 ? share * log(share) : 0;
    }
    return run->classes ? entropy : 1;
}

/* The warning, if mean pooling is better by more than two standard errors, or nothing is good. */
static void print_location(const fit_run *run)
{
    double off = run->loss_mixture - run->loss_mean, se = run->loss_se;
    double blind = blind_loss(run);
    char mixture[64], mean[64];
    bool nothing = fmin(run->loss_mixture, run->loss_mean) > 0.99 * blind, warn = off > 2 * se;
    printf("\none deciding token? %s\n",
           nothing ? "Warning: neither a single token nor the bag's mean says much about the labels"
           : warn  ? "Warning: mean pooling explains the labels better than any single token does"
           : off < -2 * se
               ? "It looks so: a single token explains the labels better than the bag's mean does"
               : "It cannot be told from the bag's mean");
    printf("  (%s of %s %.4f, of %s %.4f, ", fit_loss_name(run->classes),
           fit_name(&run->model[run->row_mixture], run->classes, mixture, sizeof mixture),
           fit_round(run->loss_mixture),
           fit_name(&run->model[run->row_mean], run->classes, mean, sizeof mean),
           fit_round(run->loss_mean));
    if (nothing)
        printf("without looking %.4f)\n", blind);
    else
        printf("mixture minus mean pooling %.4f +- %.4f)%s\n", fit_round(off), se,
               warn ? ":\n  locations may not mean much" : "");
}

static void print_curve(const fit_run *run)
{
    if (run->no_curve[0])
        printf("\nlearning curve: none, %s\n", run->no_curve);
    if (!run->sizes)
        return;
    printf("\nlearning curve: %s on the bags of a fold after so many others (%d folds: mean +- "
           "standard error)\n",
           fit_main_name(run->classes), FIN_CURVE_FOLDS);
    printf("  %10s %18s\n", "bags", fit_main_name(run->classes));
    for (int s = 0; s < run->sizes; s++) {
        printf("  %10.0f", run->size[s].bags);
        print_pair(run->size[s].score, run->size[s].se);
        printf("\n");
    }
}

void fit_print_validation(const fit_run *run)
{
    if (run->validation) {
        const char *file = cli_get(run->args, "folds");
        char path[300];
        printf("\ncross-validation: %d folds, %d time%s%s%s (mean +- standard error over folds)\n",
               run->folds, run->repeats, run->repeats == 1 ? "" : "s", file ? ", from " : "",
               file ? fit_clean(file, path, sizeof path) : "");
        print_models(run);
        if (run->classes)
            print_reliability(run);
    } else {
        printf("\ncross-validation: none%s%s\n", run->no_validation[0] ? ", " : "",
               run->no_validation);
    }
    if (run->compared)
        print_location(run);
    print_curve(run);
}
