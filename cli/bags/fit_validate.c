/* Cross-validation: which folds, which models, and the run itself. */
#include "bags/fit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Without --cv, five folds once, if that takes no longer than a look at the screen. */
enum { USUAL_FOLDS = 5 };
static const double USUAL_SIZE = 2e6; /* tokens times columns */

fin_status fit_cv_read(const char *text, int *folds, int *repeats, fin_error *err)
{
    char *end = NULL;
    bool digits = text[0] >= '0' && text[0] <= '9';
    long f = strtol(text, &end, 10), r = 1;
    if (digits && *end == 'x') {
        digits = end[1] >= '0' && end[1] <= '9';
        r = strtol(end + 1, &end, 10);
    }
    if (!digits || *end || f < 2 || f > 1000 || r < 1 || r > 1000)
        return cli_status(err, FIN_ERR_ARGUMENT,
                          "--cv '%.40s': allowed are none, or FOLDSxREPEATS such as 10x5 or 5 "
                          "(2 to 1000 folds, 1 to 1000 repeats)%s",
                          text, text[0] == 'n' || text[0] == 'N' ? "; did you mean none?" : "");
    *folds = (int)f;
    *repeats = (int)r;
    return FIN_OK;
}

const char *fit_main_name(int64_t classes)
{
    return classes ? "accuracy" : "R2";
}

double fit_work(const fin_fit_settings *settings, int64_t classes)
{
    enum { NO = 1, YES = 2 }; /* of calibrate */
    bool chooses = fin_fit_model_get(settings)->chooses;
    int count = chooses ? fin_fit_candidates(settings, classes, NULL, 0) : 1;
    bool inner = chooses || settings->calibrate == YES || (classes && settings->calibrate != NO);
    return (double)count * (inner ? (double)(settings->inner + 1) : 1);
}

/* ---- folds ---------------------------------------------------------------------------------- */

/* What folds are made of: bags of the rarest class, or all; groups of them, if there are any. */
static int64_t rarest(const fit_run *run)
{
    int64_t least = run->groups ? run->groups : run->bags->n;
    for (int64_t c = 0; c < run->classes; c++) {
        int64_t have = fit_class_groups(run, c);
        least = have < least ? have : least;
    }
    return least;
}

/* None, and why, or the usual ones. */
static void usual_folds(fit_run *run)
{
    double size = (double)run->info.tokens * (double)run->bags->d;
    if (fin_ranks() > 1)
        snprintf(run->no_validation, sizeof run->no_validation, "not with several processes");
    else if (size > USUAL_SIZE)
        snprintf(run->no_validation, sizeof run->no_validation,
                 "the data are large; --cv 5 asks for it");
    else if (rarest(run) < USUAL_FOLDS)
        snprintf(run->no_validation, sizeof run->no_validation, "too few %s%s",
                 run->groups ? "groups" : "bags", run->classes ? " of a class" : "");
    else
        run->folds = USUAL_FOLDS, run->repeats = 1;
}

static fin_status read_folds(fit_run *run, const char *path, fin_error *err)
{
    run->fold_read = true;
    return fin_folds_read(path, run->set, &run->repeats, &run->folds, &run->fold, err);
}

/* The library knows classes by number; a person by name. */
static fin_status check_lone(const fit_run *run, fin_error *err)
{
    const char *what = run->groups ? "group" : "bag";
    for (int64_t c = 0; c < run->classes; c++)
        if (fit_class_groups(run, c) == 1)
            return cli_status(err, FIN_ERR_ARGUMENT,
                              "class '%.60s' has a single %s: when it is left out, nothing is "
                              "known of its class; cross-validation takes two %ss of every class, "
                              "--cv none goes without",
                              fin_bag_set_class(run->set, c), what, what);
    return FIN_OK;
}

static fin_status make_folds(fit_run *run, fin_error *err)
{
    double n = (double)run->bags->n * run->repeats;
    if (check_lone(run, err))
        return err->status;
    int64_t most = run->groups ? run->groups : run->bags->n;
    const char *what = run->groups ? "groups" : "bags";
    if (run->folds > most)
        return cli_status(err, FIN_ERR_ARGUMENT,
                          "--cv with %d folds, but there are %lld %s; as many folds as %s at most",
                          run->folds, (long long)most, what, what);
    run->fold = malloc((size_t)n * sizeof *run->fold);
    if (!run->fold)
        return cli_status_memory(err, n * 4, "the folds");
    return fin_folds_make(run->bags->n, run->classes, run->bags->labels, run->bags->groups,
                          run->repeats, run->folds, run->settings.seed, run->fold, err);
}

/* ---- models --------------------------------------------------------------------------------- */

static void add_model(fit_run *run, const fin_fit_settings *settings)
{
    for (int i = 0; i < run->models; i++)
        if (fit_same(&run->model[i], settings, run->classes))
            return;
    if (run->models < FIT_MODELS)
        run->model[run->models++] = *settings;
}

/* Compared with what was asked for: what auto chooses from, if there is time; else baselines, and the
 * mixture for the question whether one token decides. */
static void usual_models(fit_run *run)
{
    fin_fit_settings base = run->settings, candidates[FIT_MODELS];
    bool asked = cli_get(run->args, "cv") || cli_get(run->args, "folds"); /* time is no matter */
    if (fin_fit_model_get(&base)->chooses == FIN_CHOOSES_BEST && asked) {
        int count = fin_fit_candidates(&base, run->classes, candidates, FIT_MODELS);
        for (int i = 0; i < count && i < FIT_MODELS; i++) {
            candidates[i].positive = base.positive; /* a single row for both sides of `any` */
            add_model(run, &candidates[i]);
        }
        return;
    }
    base.heads = 1;
    base.basis = FIN_BASIS_AUTO;
    int count = fin_fit_baselines(&base, candidates, FIT_MODELS);
    for (int i = 0; i < count && i < FIT_MODELS; i++)
        add_model(run, &candidates[i]);
}

static fin_status listed_models(fit_run *run, const char *list, fin_error *err)
{
    while (*list) {
        char word[96];
        size_t length = strcspn(list, ",");
        snprintf(word, sizeof word, "%.*s", length < sizeof word ? (int)length : 95, list);
        fin_fit_settings settings = run->settings;
        CLI_TRY(fit_name_read(word, &settings, err));
        if (run->models == FIT_MODELS)
            return cli_status(err, FIN_ERR_ARGUMENT, "--compare takes at most %d models",
                              FIT_MODELS - 1);
        add_model(run, &settings);
        list += length;
        list += *list == ',';
    }
    return FIN_OK;
}

fin_status fit_validate_prepare(fit_run *run, fin_error *err)
{
    const char *cv = cli_get(run->args, "cv"), *file = cli_get(run->args, "folds"),
               *compare = cli_get(run->args, "compare");
    fin_status status = FIN_OK;
    if (cv && strcmp(cv, "none") == 0)
        return FIN_OK;
    if (cv && strcmp(cv, "auto") != 0)
        status = fit_cv_read(cv, &run->folds, &run->repeats, err);
    else if (!file)
        usual_folds(run);
    if (!status && file)
        status = read_folds(run, file, err);
    else if (!status && run->repeats)
        status = make_folds(run, err);
    if (status || !run->repeats)
        return status;
    add_model(run, &run->settings);
    if (!compare)
        usual_models(run);
    else if (strcmp(compare, "none") != 0)
        status = listed_models(run, compare, err);
    return status;
}

fin_status fit_validate(fit_run *run, fin_error *err)
{
    if (!run->repeats)
        return FIN_OK;
    double start = fit_clock();
    fin_folds folds = {run->repeats, run->folds, run->fold};
    fin_status status = fin_validate(&run->validation, run->models, run->model, run->classes,
                                     run->bags, &folds, cli_progress(), err);
    if (!status && run->classes)
        status = fin_validation_reliability(run->validation, 0, FIT_BINS, run->bin_count,
                                            run->bin_predicted, run->bin_observed, err);
    run->seconds_validate = fit_clock() - start;
    return status;
}

/* ---- predictions for bags that were left out ---------------------------------------------------- */

typedef struct left_out {
    const fit_run *run;
    char name[FIT_MODELS][64];
} left_out;

static void tell_left_out(cli_row *row, const void *user, int64_t line)
{
    const left_out *all = user;
    const fit_run *run = all->run;
    int64_t n = run->bags->n, i = line % n, classes = run->classes, best = 0;
    int model = (int)(line / n);
    const double *mean = fin_validation_mean(run->validation, model);
    double label = run->bags->labels[i];
    cli_cell_text(row, "model", all->name[model]);
    cli_cell_text(row, "bag", fin_bag_set_name(run->set, i));
    if (!classes) {
        cli_cell(row, "true_label", label);
        cli_cell(row, "mean", mean[i]);
        return;
    }
    for (int64_t c = 1; c < classes; c++)
        best = mean[i * classes + c] > mean[i * classes + best] ? c : best;
    cli_cell_text(row, "true_label", fin_bag_set_class(run->set, (int64_t)label));
    cli_cell_text(row, "predicted", fin_bag_set_class(run->set, best));
    for (int64_t c = 0; c < classes; c++)
        cli_cell_of(row, "probability", "p", fin_bag_set_class(run->set, c), "",
                    mean[i * classes + c]);
}

fin_status fit_write_left_out(const fit_run *run, const char *path, fin_error *err)
{
    if (!run->validation)
        return cli_status(err, FIN_ERR_ARGUMENT,
                          "--cv-out: there was no cross-validation; --cv 5 asks for it");
    left_out all = {.run = run};
    for (int m = 0; m < run->models; m++)
        fit_name(&run->model[m], run->classes, all.name[m], sizeof all.name[m]);
    return cli_write_rows(path, tell_left_out, &all, run->bags->n * run->models, err);
}
