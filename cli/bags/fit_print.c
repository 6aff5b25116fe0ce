/* The report of a fit as text: the data, what was fitted, what matters; then how sure it is. */
#include "bags/fit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LABEL = 12, WIDTH = 100 };

static bool inside(char c) /* of a character of several bytes, not its first one */
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

char *fit_clean(const char *text, char *buffer, size_t size)
{
    text = text ? text : "";
    size_t end = strlen(text);
    if (end >= size)
        for (end = size - 1; end > 0 && inside(text[end]);)
            end--;
    snprintf(buffer, size, "%.*s", (int)end, text);
    for (char *c = buffer; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = '?';
    return buffer;
}

char *fit_cell(const char *text, int width, char *buffer, size_t size)
{
    fit_clean(text, buffer, size - (size_t)width);
    int shown = 0;
    char *c = buffer;
    for (; *c && (inside(*c) || shown < width); c++)
        shown += !inside(*c);
    for (; shown < width; shown++)
        *c++ = ' ';
    *c = '\0';
    return buffer;
}

static const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

/* ---- the data ------------------------------------------------------------------------------- */

/* Items with commas, in lines of at most WIDTH characters. */
static int item(int column, const char *text)
{
    if (column > LABEL && column + 2 + (int)strlen(text) > WIDTH) {
        printf(",\n%*s", LABEL, "");
        column = LABEL;
    }
    return column + printf("%s%s", column > LABEL ? ", " : "", text);
}

static void print_label(const fit_run *run)
{
    char text[160], name[80];
    enum { SHOWN = 20 };
    const double *labels = run->bags->labels;
    printf("%-*s", LABEL, "label");
    fit_clean(fin_bag_set_label(run->set), name, sizeof name);
    if (run->classes) {
        printf("%s: %lld classes\n%-*s", name, (long long)run->classes, LABEL, "classes");
        for (int64_t c = 0, column = LABEL; c < run->classes && c <= SHOWN; c++) {
            char class[64];
            snprintf(text, sizeof text, "%s: %.0f",
                     fit_clean(fin_bag_set_class(run->set, c), class, sizeof class),
                     run->class_count[c]);
            column = item((int)column, c < SHOWN ? text : "...");
        }
        printf("\n");
        return;
    }
    double mean = 0, squares = 0, n = (double)run->bags->n;
    for (int64_t i = 0; i < run->bags->n; i++)
        mean += labels[i] / n;
    for (int64_t i = 0; i < run->bags->n; i++)
        squares += (labels[i] - mean) * (labels[i] - mean) / n;
    if (fin_ranks() == 1)
        printf("%s: a number, mean %.4g, standard deviation %.4g\n", name, mean, sqrt(squares));
    else
        printf("%s: a number\n", name);
}

/* Column j has the same value everywhere. */
static bool is_constant(const fin_bags *bags, int64_t j)
{
    int64_t rows = bags->offsets[bags->n] - bags->offsets[0], d = bags->d;
    const float *f = bags->tokens;
    const double *g = bags->tokens;
    for (int64_t t = 1; t < rows; t++)
        if (bags->dtype == FIN_F32 ? f[t * d + j] != f[j] : g[t * d + j] != g[j])
            return false;
    return true;
}

static void print_left_out(const fit_run *run)
{
    int64_t left = run->bags->d - run->info.columns;
    int column = LABEL, shown = 0;
    char name[80];
    if (left <= 0)
        return;
    printf("%-*s%lld constant column%s", LABEL, "left out", (long long)left, plural(left));
    if (fin_ranks() == 1) {
        printf(":\n%*s", LABEL, "");
        for (int64_t j = 0; j < run->bags->d && shown <= FIT_TOP; j++)
            if (is_constant(run->bags, j)) {
                fit_clean(fin_bag_set_feature(run->set, j), name, sizeof name);
                column = item(column, shown++ < FIT_TOP ? name : "...");
            }
    }
    printf("\n");
}

/* Columns that are constant within every bag, if they are not used. */
static void print_levels(const fit_run *run)
{
    char names[700];
    if (run->levels && !run->level_kept)
        printf("%-*s%lld column%s constant within every bag: %s (--features names %s to keep "
               "%s)\n",
               LABEL, "left out", (long long)run->levels,
               run->levels == 1 ? " that is" : "s that are",
               fit_level_names(run, names, sizeof names), run->levels == 1 ? "it" : "them",
               run->levels == 1 ? "it" : "them");
}

static void print_data(const fit_run *run)
{
    char path[400], name[80];
    printf("%-*s%s: %lld bag%s, %lld token%s, %lld column%s\n", LABEL, "data",
           fit_clean(run->path, path, sizeof path), (long long)run->info.bags,
           plural(run->info.bags), (long long)run->info.tokens, plural(run->info.tokens),
           (long long)run->bags->d, plural(run->bags->d));
    if (fin_ranks() > 1)
        printf("%*sread by %d processes\n", LABEL, "", fin_ranks());
    if (run->groups)
        printf("%-*s%s: %lld of %lld bags\n", LABEL, "groups",
               fit_clean(fin_bag_set_group(run->set), name, sizeof name), (long long)run->groups,
               (long long)run->info.bags);
    print_label(run);
    print_levels(run);
    print_left_out(run);
}

/* ---- what was fitted ------------------------------------------------------------------------ */

static const char *class_name(const void *set, int64_t c)
{
    return fin_bag_set_class(set, c);
}

/* Which class a token can bring about matters to `any`; else only to what locate says of tokens. */
static bool has_any(const fit_run *run)
{
    double weight;
    for (int64_t i = 0; i < run->info.parts; i++)
        if (fin_fit_part(run->fit, i, &weight)->model == FIN_MODEL_ANY)
            return true;
    return false;
}

static void print_fitted(const fit_run *run)
{
    const fin_fit_info *info = &run->info;
    char asked[64], name[64];
    const fin_fit_settings *only = &run->settings;
    int64_t parts = fit_parts(run->fit, &only);
    fit_title(&run->settings, run->classes, asked, sizeof asked);
    printf("%-*s%s", LABEL, "model", asked);
    fit_title(only, run->classes, name, sizeof name);
    if (parts == 1 && strcmp(asked, name) != 0)
        printf(": %s", name);
    printf("; %lld fit%s averaged, %s%lld parameters%s\n", (long long)info->members,
           plural(info->members), info->parts > 1 ? "up to " : "", (long long)info->parameters,
           info->members > 1 ? " each" : "");
    if (parts > 1)
        fit_print_parts(run->fit, LABEL, class_name, run->set);
    if (run->classes == 2 && info->positive >= 0)
        printf("%-*s%s (%s)\n", LABEL, "positive",
               fit_clean(fin_bag_set_class(run->set, info->positive), name, sizeof name),
               !fin_is_auto((double)run->settings.positive) ? "as asked"
               : has_any(run)                               ? "chosen on inner folds"
                              : "the second class; --positive names the other");
    printf("%-*s%lld iterations of L-BFGS, %lld evaluations", LABEL, "search",
           (long long)info->iterations, (long long)info->evaluations);
    if (info->unfinished)
        printf("; %lld of %lld fits used all of theirs (--iterations)", (long long)info->unfinished,
               (long long)info->members);
    printf("\n%-*s%s %.4g on the bags it was fitted to (%s)\n", LABEL, "training",
           fit_loss_name(run->classes), info->loss,
           run->validation || run->sizes ? "new bags: see below"
                                         : "too good: new bags were not tried");
    if (isfinite(info->inner_loss))
        printf("%-*s%s %.4f", LABEL, "inner folds", fit_loss_name(run->classes),
               fit_round(info->inner_loss));
    if (isfinite(info->inner_loss) && isfinite(info->base_loss))
        printf(" (base rate %.4f)", info->base_loss);
    if (isfinite(info->inner_loss))
        printf("\n");
    if (!run->classes)
        printf("%-*sa label is off its prediction by %.4g (standard deviation)\n", LABEL, "noise",
               info->noise);
}

/* ---- what matters --------------------------------------------------------------------------- */

typedef struct weighed {
    int64_t column;
    double weight;
} weighed;

static int heavier(const void *a, const void *b)
{
    const weighed *p = a, *q = b;
    if (p->weight != q->weight)
        return p->weight > q->weight ? -1 : 1;
    return p->column < q->column ? -1 : p->column > q->column;
}

/* The heaviest columns, first; weights that are not numbers are none. Returns how many. */
static int heaviest(const double *weights, int64_t d, weighed top[FIT_TOP])
{
    int count = 0;
    for (int64_t j = 0; j < d; j++) {
        weighed one = {j, weights[j]};
        if (!(weights[j] > 0))
            continue;
        if (count < FIT_TOP)
            top[count++] = one;
        else if (heavier(&one, &top[FIT_TOP - 1]) < 0)
            top[FIT_TOP - 1] = one;
        qsort(top, (size_t)count, sizeof *top, heavier);
    }
    return count;
}

static void print_weighed(const fit_run *run, const weighed *top, int i, int count, bool last)
{
    char name[160];
    if (i < count)
        printf("  %s %8.4f",
               fit_cell(fin_bag_set_feature(run->set, top[i].column), 24, name, sizeof name),
               top[i].weight);
    else if (last)
        return;
    else
        printf("  %-24s %8s", "", "");
}

static void print_importance(const fit_run *run)
{
    weighed key[FIT_TOP], value[FIT_TOP];
    if (!run->key) {
        printf("\nfeatures that matter: %s\n", run->unimportant);
        return;
    }
    int keys = heaviest(run->key, run->bags->d, key),
        values = heaviest(run->value, run->bags->d, value), rows = keys > values ? keys : values;
    printf("\nfeatures that matter (standard deviation of a token's score, and of its value, that "
           "is due to them)\n");
    printf("      %-24s %8s  %s\n", "where to look (k)", "", "what is read there (v)");
    for (int i = 0; i < rows; i++) {
        printf("  %2d", i + 1);
        print_weighed(run, key, i, keys, false);
        print_weighed(run, value, i, values, true);
        printf("\n");
    }
}

/* ---- all of it ------------------------------------------------------------------------------ */

int fit_print(const fit_run *run)
{
    const char *out = cli_get(run->args, "out");
    char who[160];
    print_data(run);
    print_fitted(run);
    if (isatty(STDOUT_FILENO)) /* so that outputs can be compared */
        printf("%-*s%.3g s of the processor: reading %.3g, fitting %.3g, cross-validation %.3g, "
               "learning curve %.3g\n",
               LABEL, "time",
               run->seconds_read + run->seconds_fit + run->seconds_validate + run->seconds_curve,
               run->seconds_read, run->seconds_fit, run->seconds_validate, run->seconds_curve);
    if (fin_fit_locates(run->fit))
        printf("%-*sby %s\n", LABEL, "locations", fit_locator(run->fit, who, sizeof who));
    else
        printf("%-*snone: it sees a bag as a whole; for `locate` name a model, such as mixture\n",
               LABEL, "locations");
    if (out)
        printf("%-*s%s\n", LABEL, "written to", out);
    fit_print_validation(run);
    print_importance(run);
    return cli_flush();
}
