/* The fit as text: what was given, what was chosen, how good it is, what it answers. */
#include "attend/attend.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LABEL = 12, WIDTH = 100, ANSWERS = 20 };

/* ---- the head ------------------------------------------------------------------------------- */

static void print_names(const char *label, const attend_source *source, const attend_list *list,
                        const char *remark)
{
    int column = printf("%-*s", LABEL, label);
    for (int j = 0; j < list->count; j++) {
        const char *name = source->column[list->at[j]].name;
        if (column + (int)strlen(name) + 6 > WIDTH && j + 1 < list->count) {
            printf(", ... (%d)", list->count);
            break;
        }
        column += printf("%s%s", j ? ", " : "", name);
    }
    printf("%s\n", remark);
}

static const char *kernel_name(const fin_cross_settings *s, char *buffer, size_t size)
{
    return fin_settings_text(fin_settings_find(&fin_cross_table, "kernel"), s, buffer, size);
}

static void print_settings(const attend_fit *fit)
{
    const fin_cross_settings *s = &fit->settings;
    char name[32];
    if (s->form == FIN_CROSS_SOFTMAX) {
        printf("%-*ssoftmax: temperature %.6g\n", LABEL, "form", s->temperature);
        return;
    }
    printf("%-*s%s: %s kernel", LABEL, "form", s->form == FIN_CROSS_CME ? "cme" : "nw",
           kernel_name(s, name, sizeof name));
    if (s->kernel == FIN_KERNEL_POLYNOMIAL)
        printf(", degree %lld, offset %.6g", (long long)s->degree, s->offset);
    if (!fit->scales)
        printf(", scale %.6g", s->scale);
    if (s->form == FIN_CROSS_CME)
        printf(", prior %.6g, noise %.6g, level %.6g", s->prior, s->noise, s->level);
    printf("\n");
    for (int64_t j = 0; fit->scales && j < fit->data->dk; j++)
        printf("%-*s%-20s %.6g\n", LABEL, j ? "" : "scales", attend_key_name(fit->data, j),
               s->scale * fit->scales[j]);
}

static void print_tuned(const attend_fit *fit)
{
    char names[64];
    bool evidence = fit->tune.by == FIN_TUNE_BY_EVIDENCE, cme = fit->settings.form == FIN_CROSS_CME;
    printf("%-*s%s by %s: %.6g, before %.6g\n", LABEL, "tuned",
           attend_tuned_names(fit->tune.which, names, sizeof names),
           evidence ? "marginal likelihood"
           : cme    ? "leave-one-out log score"
                    : "leave-one-out squared error",
           evidence || cme ? fit->tune.after : -fit->tune.after,
           evidence || cme ? fit->tune.before : -fit->tune.before);
    if (cme && fit->settings.method == FIN_CROSS_NYSTROM)
        printf("%-*son a random part of %lld tokens, by the dual method\n", LABEL, "",
               (long long)fit->tune.tokens);
}

/* "24 kB", "3.2 GB" */
static char *bytes_text(double bytes, char *buffer, size_t size)
{
    const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    int unit = 0;
    for (; bytes >= 999.5 && unit < 4; unit++)
        bytes /= 1000;
    snprintf(buffer, size, "%.3g %s", bytes, units[unit]);
    return buffer;
}

static void print_method(const attend_fit *fit)
{
    const fin_cross_info *info = &fit->info;
    char memory[32];
    bytes_text(info->bytes, memory, sizeof memory);
    if (info->method == FIN_CROSS_DUAL)
        printf("%-*sdual, exact; %s\n", LABEL, "method", memory);
    else if (info->method == FIN_CROSS_PRIMAL)
        printf("%-*sprimal, exact, %lld features; %s\n", LABEL, "method", (long long)info->features,
               memory);
    else if (info->method == FIN_CROSS_NYSTROM)
        printf("%-*snystrom, %lld landmarks: %.3g of the prior variance missed, means off by about "
               "%.2g sd of the values; %s\n",
               LABEL, "method", (long long)info->features, info->residual, info->moved, memory);
    if (fit->jitter > 0)
        printf("%-*s%.3g added to the noise\n", LABEL, "jitter", fit->jitter);
    if (fit->has_evidence)
        printf("%-*s%.8g (log marginal likelihood)\n", LABEL, "evidence", fit->evidence);
}

static void print_head(const attend_fit *fit)
{
    const attend_data *data = fit->data;
    printf("%-*s%s: %lld token%s", LABEL, "context", data->context.label,
           (long long)data->tokens.count, data->tokens.count == 1 ? "" : "s");
    if (data->sequence.count)
        printf(" in %lld sequence%s (%s), the longest has %lld", (long long)data->known,
               data->known == 1 ? "" : "s", data->context.column[data->sequence.at[0]].name,
               (long long)data->longest);
    printf("\n");
    print_names("key", &data->context, &data->key, data->standardized ? " (standardized)" : "");
    print_names("value", &data->context, &data->value, "");
    print_settings(fit);
    if (fit->tune.which)
        print_tuned(fit);
    print_method(fit);
}

/* ---- scores --------------------------------------------------------------------------------- */

static void print_pit(const int64_t pit[FIN_SCORE_BINS], bool cme)
{
    enum { BAR = 50 };
    int64_t most = 1, total = 0;
    for (int b = 0; b < FIN_SCORE_BINS; b++) {
        most = pit[b] > most ? pit[b] : most;
        total += pit[b];
    }
    printf("PIT of %lld values%s; flat is right, %.3g in every row\n", (long long)total,
           cme ? "" : " (a normal law with the weighted spread)", (double)total / FIN_SCORE_BINS);
    for (int b = 0; b < FIN_SCORE_BINS; b++) {
        char bar[BAR + 1];
        int length = (int)(((double)pit[b] * BAR) / (double)most + 0.5);
        memset(bar, '#', (size_t)length);
        bar[length] = '\0';
        printf("  %.1f-%.1f %7lld%s%s\n", (double)b / FIN_SCORE_BINS,
               (double)(b + 1) / FIN_SCORE_BINS, (long long)pit[b], length ? "  " : "", bar);
    }
}

/* What does not exist is a dash. */
__attribute__((format(printf, 1, 0))) static void print_score(const char *format, int width,
                                                              double number)
{
    if (isfinite(number))
        printf(format, number);
    else
        printf("%*s", width, "-");
}

static void print_scores(const attend_fit *fit, const char *title, int64_t n, const double *values,
                         const double *mean, const double *variance, double noise, bool pit)
{
    int64_t all[FIN_SCORE_BINS] = {0};
    bool cme = fit->settings.form == FIN_CROSS_CME;
    printf("\n%-20s %8s %12s %9s %12s %7s %7s %7s\n", title, "values", "rmse", "R2", "log score",
           "in 50%", "in 90%", "in 95%");
    for (int64_t j = 0; j < fit->data->dv; j++) {
        fin_cross_score s;
        fin_cross_judge(n, fit->data->dv, values + j, mean + j, variance + j, noise, &s, NULL);
        printf("%-20.60s %8lld", attend_value_name(fit->data, j), (long long)s.count);
        print_score(" %12.6g", 13, s.rmse);
        print_score(" %9.4f", 10, s.r2);
        print_score(" %12.6g", 13, cme ? s.log_score : NAN);
        for (int k = 0; k < FIN_SCORE_LEVELS; k++)
            print_score(" %6.1f%%", 8, 100 * s.coverage[k]);
        printf("\n");
        for (int b = 0; b < FIN_SCORE_BINS; b++)
            all[b] += s.pit[b];
    }
    if (!cme && n > 0)
        printf(
            "(in ..%%: intervals from the weighted spread of the values, which is no posterior)\n");
    int64_t total = 0;
    for (int b = 0; b < FIN_SCORE_BINS; b++)
        total += all[b];
    if (total == 0)
        printf("(nothing to judge: %s)\n",
               pit ? "no token has another one in its sequence" : "no query has an answer");
    else if (pit)
        print_pit(all, cme);
}

/* ---- the learning curve --------------------------------------------------------------------- */

/* 0, 1, 2, 3, 5, 7, 10, 14, 20, ..., and the last one. */
static bool is_shown(int64_t l, int64_t last)
{
    static const int64_t steps[] = {10, 14, 20, 30, 50, 70};
    if (l <= 3 || l == 5 || l == 7 || l == last)
        return true;
    for (int64_t scale = 1; scale <= l; scale *= 10)
        for (int i = 0; i < 6; i++)
            if (l == scale * steps[i])
                return true;
    return false;
}

/* One token's error says little: of tokens, a row is the mean since the row before it. */
static void print_curve(const attend_fit *fit)
{
    bool cme = fit->settings.form == FIN_CROSS_CME, mean = !fit->curve_of_queries;
    printf("\nlearning curve: %s\n",
           mean ? "every token predicted from those before it; means over the tokens since the row "
                  "above"
                : "queries predicted from the first tokens");
    printf("%8s %10s %19s%s\n", "tokens", "averaged", mean ? "mean squared error" : "squared error",
           !cme   ? ""
           : mean ? "   mean -log score"
                  : "        -log score");
    double error = 0, score = 0;
    int64_t count = 0;
    for (int64_t l = 0; l < fit->lengths; l++) {
        int64_t here = fit->curve_count[l];
        if (here) {
            error += (double)here * fit->curve_error[l];
            score += (double)here * fit->curve_score[l];
            count += here;
        }
        if (count && is_shown(l, fit->lengths - 1)) {
            printf("%8lld %10lld %19.6g", (long long)l, (long long)(mean ? count : here),
                   mean ? error / (double)count : fit->curve_error[l]);
            if (cme)
                printf(" %17.6g", mean ? score / (double)count : fit->curve_score[l]);
            printf("\n");
        }
        if (!mean || is_shown(l, fit->lengths - 1)) {
            error = score = 0;
            count = 0;
        }
    }
}

/* ---- answers -------------------------------------------------------------------------------- */

static void print_answer_head(const attend_fit *fit)
{
    const attend_data *data = fit->data;
    bool cme = fit->settings.form == FIN_CROSS_CME;
    printf("\n%6s", "query");
    if (data->sequence.count)
        printf(" %10.10s", data->context.column[data->sequence.at[0]].name);
    for (int64_t j = 0; j < data->dk && j < 4; j++)
        printf(" %10.10s", attend_key_name(data, j));
    printf("%s", data->dk > 4 ? " ..." : "");
    for (int64_t j = 0; j < data->dv; j++)
        printf(" %12.12s %10s%s", attend_value_name(data, j), cme ? "sd" : "spread",
               cme ? "     sd new" : "");
    printf("%s\n", fit->top ? "  most attended rows: weight" : "");
}

static void print_answer(const attend_fit *fit, int64_t q)
{
    const attend_data *data = fit->data;
    int64_t row = data->queries.row[q], dv = data->dv;
    printf("%6lld", (long long)row + 1);
    char name[64];
    if (data->sequence.count)
        printf(" %10.10s", attend_cell_text(&data->asked->column[data->asked_sequence.at[0]], row,
                                            name, sizeof name));
    for (int64_t j = 0; j < data->dk && j < 4; j++)
        printf(" %10.6g", attend_cell(&data->asked->column[data->asked_key.at[j]], row));
    printf("%s", data->dk > 4 ? " ..." : "");
    for (int64_t j = 0; j < dv; j++) {
        double variance = fit->variance[q * dv + j];
        printf(" %12.6g %10.4g", fit->mean[q * dv + j], sqrt(variance));
        if (fit->settings.form == FIN_CROSS_CME)
            printf(" %10.4g", sqrt(variance + fit->settings.noise));
    }
    for (int k = 0; k < fit->top && fit->top_token[q * fit->top + k] >= 0; k++)
        printf("%s%lld: %.3g", k ? ", " : "  ", (long long)fit->top_token[q * fit->top + k] + 1,
               fit->top_weight[q * fit->top + k]);
    printf("\n");
}

int attend_print(const cli_args *args, const attend_fit *fit)
{
    const attend_data *data = fit->data;
    print_head(fit);
    if (fit->leaves_out)
        print_scores(fit, "leave-one-out", data->tokens.count, data->values, fit->loo_mean,
                     fit->loo_variance, 0, true);
    if (fit->grows)
        print_curve(fit);
    if (data->answers)
        print_scores(fit, "queries", data->queries.count, data->answers, fit->mean, fit->variance,
                     fit->settings.form == FIN_CROSS_CME ? fit->settings.noise : 0, false);
    if (fit->predicts && !fit->curve_of_queries && !cli_get(args, "out")) {
        print_answer_head(fit);
        for (int64_t q = 0; q < data->queries.count && q < ANSWERS; q++)
            print_answer(fit, q);
        if (data->queries.count > ANSWERS)
            printf("... %lld more; --out FILE has all\n",
                   (long long)(data->queries.count - ANSWERS));
    }
    return cli_flush();
}
