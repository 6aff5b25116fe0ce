/* finetti fit: attention fitted to bags of tokens, and a report on it.
 *
 * Several processes (mpirun) read a share of the bags each and fit together; rank 0 alone prints and
 * writes. Cross-validation is for one process: it fits to parts of the bags side by side. */
#include "bags/fit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int run_command(cli_args *args);

static const cli_word words[] = {
    {"bag", "COLUMN", "the column that names the bag; default: bag, bag_id or the first one"},
    {"label", "COLUMN", "the column with the bag's label; default: label or y"},
    {"group", "COLUMN",
     "the column that says which bags belong together, such as the patient: they are never on both "
     "sides of a split; default: none"},
    {"features", "COLUMNS",
     "feature columns: names, x*, a:c or numbers from 1, with commas; default: all other columns "
     "that are numbers and not constant within every bag"},
    FIT_FILE_WORDS,
    {"kind", "KIND",
     "what labels are: regression (numbers), classes, or auto: text, two different numbers and "
     "few different whole numbers are classes"},
    {"positive", "CLASS",
     "any: the class that a single token can bring about, one of two; default: what inner folds "
     "prefer"},
    {"cv", "FOLDSxREPEATS",
     "cross-validation, such as 10x5: ten folds, five times; none; default: 5x1 if the data are "
     "small"},
    {"folds", "FILE",
     "folds from a CSV file: the bag's name, then a column for every repeat with the fold's "
     "number"},
    {"compare", "MODELS",
     "models that are cross-validated beside --model, with commas, such as mean,softmax+rbf; "
     "none; default: base, mean, max and mixture; with --cv and --model auto what it chooses from"},
    {"cv_out", "FILE",
     "what every model of the cross-validation predicts for bags that were left out: FILE.csv"},
    {"curve", NULL, "the learning curve, also without cross-validation"},
    {"no_curve", NULL, "no learning curve"},
    {"out", "FILE", "write the model, for predict and locate: MODEL.fin"},
    {"report", "FILE",
     "a page for those who did not run it, FILE.html: how good it is, which columns matter, bags "
     "with "
     "their tokens, what to be careful about"},
    {"coords", "X,Y",
     "two columns that say where tokens lie, for pictures in the report; they are no features"},
    {"json", NULL, "print JSON"},
    {"quiet", NULL, "print nothing but errors"},
    {NULL, NULL, NULL},
};

/* The name of a model may say more than the table's row: softmax+rbf, erf:rbf x4. */
static const fin_word setting_words[] = {
    FIN_WORD(
        "model", fit_asked, model, "softmax",
        "the model; +rbf has RBF features beside the columns, :rbf those alone, :linear columns "
        "alone"),
    FIN_WORDS_END,
};

CLI_SETTINGS(options, "fit", fit_asked, setting_words, {&fin_fit_table, offsetof(fit_asked, fit)});

const cli_command cli_fit = {
    .name = "fit",
    .summary = "your own bags: fit attention, say how good it is, write a model",
    .about =
        "A bag is a set of tokens (vectors) with one label, for which one or a few of them are\n"
        "responsible: molecules and conformers, slides and patches, documents and sentences.\n"
        "Fits a model, cross-validates it beside simpler ones, says which features matter and\n"
        "whether one token is responsible. A model's name ends with the features of its\n"
        "tokens: softmax+rbf, softmax:rbf, softmax:linear. Under mpirun the bags are split over\n"
        "the ranks.\n"
        "docs/fit.md is a guide.",
    .examples =
        "  finetti fit bags.csv --bag molecule --label active --out model.fin\n"
        "  finetti fit bags.csv --label y --features 'x*' --model mixture+rbf --cv 10x5\n"
        "  finetti fit slides.csv --bag slide --group patient --label grade --model auto\n"
        "  finetti fit features/ --labels slides.csv --group case_id --model auto --cv 5\n"
        "  finetti fit bags.csv --folds folds.csv --compare mean,max,mixture,softmax+rbf --json\n"
        "  finetti simulate --n 500 --d 20 --out bags.npz && finetti fit bags.npz\n"
        "  mpirun -n 4 finetti fit tokens.npy --model softmax --out model.fin\n",
    .settings = &options,
    .computes = true,
    .operands = {.name = "DATA",
                 .meaning =
                     "bags: a CSV file with a row per token, or an NPZ or HDF5 file with tokens, "
                     "offsets and y. Or a folder of such NPY files, or of HDF5 files, one a bag",
                 .least = 1,
                 .most = 1},
    .words = words,
    .ranks = true,
    .run = run_command,
};

double fit_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- options -------------------------------------------------------------------------------- */

static int check_ranks(const cli_args *args)
{
    const char *cv = cli_get(args, "cv");
    if (fin_ranks() == 1)
        return CLI_OK;
    if ((cv && strcmp(cv, "none") != 0 && strcmp(cv, "auto") != 0) || cli_get(args, "folds") ||
        cli_get(args, "curve"))
        return cli_usage("--cv, --folds and --curve are for one process: cross-validate without "
                         "mpirun, on data that fit into one machine");
    return CLI_OK;
}

static int check_options(cli_args *args)
{
    const char *out = cli_get(args, "out"), *cv = cli_get(args, "cv"),
               *kind = cli_get(args, "kind");
    bool none = cv && strcmp(cv, "none") == 0;
    fin_error err = {FIN_OK, ""};
    int folds, repeats;
    if (kind && fit_kind_check(kind, &err))
        return cli_error(&err);
    if (cv && !none && strcmp(cv, "auto") != 0 && fit_cv_read(cv, &folds, &repeats, &err))
        return cli_error(&err);
    if (fit_model_settle(args, &err))
        return cli_error(&err);
    if (cv && !none && strcmp(cv, "auto") != 0 && cli_get(args, "folds"))
        return cli_usage("--cv and --folds both say what the folds are; give one of them");
    if (none && (cli_get(args, "folds") || cli_get(args, "compare")))
        return cli_usage("--cv none and %s do not go together",
                         cli_get(args, "folds") ? "--folds" : "--compare");
    if (cli_get(args, "curve") && cli_get(args, "no_curve"))
        return cli_usage("--curve and --no-curve do not go together");
    if (cli_get(args, "quiet") && (cli_get(args, "json") || (!out && !cli_get(args, "report"))))
        return cli_usage(cli_get(args, "json") ? "--quiet and --json do not go together"
                                               : "--quiet without --out: nothing would come of it");
    if (out &&
        (cli_ends_with(out, ".csv") || cli_ends_with(out, ".npz") || cli_ends_with(out, ".npy")))
        return cli_usage("--out '%.200s' is the model's file, and a model is no table; end it in "
                         ".fin",
                         out);
    if (cli_get(args, "cv_out") && !cli_ends_with(cli_get(args, "cv_out"), ".csv"))
        return cli_usage("--cv-out '%.200s' is a table; end it in .csv", cli_get(args, "cv_out"));
    if (cli_get(args, "cv_out") && none)
        return cli_usage("--cv none and --cv-out do not go together");
    if (cli_get(args, "coords") && !cli_get(args, "report"))
        return cli_usage("--coords is about the pictures of --report");
    CLI_TRY(fit_page_check(args));
    return check_ranks(args);
}

/* ---- steps ---------------------------------------------------------------------------------- */

static fin_status count_classes(fit_run *run, fin_error *err)
{
    const double *labels = run->bags->labels;
    if (!run->classes)
        return FIN_OK;
    run->class_count = calloc((size_t)run->classes, sizeof *run->class_count);
    if (!run->class_count)
        return cli_status_memory(err, 8.0 * (double)run->classes, "the classes");
    for (int64_t i = 0; i < run->bags->n; i++)
        if (labels[i] >= 0 && labels[i] < (double)run->classes)
            run->class_count[(int64_t)labels[i]]++;
    return FIN_OK;
}

static fin_status read_bags(fit_run *run, fin_error *err)
{
    cli_args *args = run->args;
    double start = fit_clock();
    char extras[FIT_EXTRAS];
    fin_bags_source source = {
        .path = args->operand[0],
        .bag = cli_get(args, "bag"),
        .label = cli_get(args, "label"),
        .group = cli_get(args, "group"),
        .features = cli_get(args, "features"),
        .extras = cli_get(args, "report") ? fit_page_extras(args, extras) : NULL,
        .kind = cli_get(args, "kind") ? cli_get(args, "kind") : "auto",
        .rank = fin_rank(),
        .ranks = fin_ranks(),
        .class_count = -1,
    };
    fin_status status = fit_file_read(args, &source, err);
    if (!status)
        status = fin_bag_set_read(&run->set, &source, cli_progress(), err);
    if (!status) {
        run->bags = fin_bag_set_bags(run->set);
        run->classes = fin_bag_set_classes(run->set);
        if (!run->bags->labels)
            status = cli_status(err, FIN_ERR_FORMAT,
                                "%.200s has no labels; --label names the column (or array) that "
                                "has them",
                                run->path);
    }
    if (!status)
        status = count_classes(run, err);
    if (!status && cli_get(args, "positive"))
        status =
            fit_positive_read(cli_get(args, "positive"), run->set, &run->settings.positive, err);
    else if (!status && run->settings.assume == 1 && run->classes == 2)
        status = fit_positive_guess(run->set, &run->settings.positive, err);
    status = fit_agree(status, err);
    if (!status && run->classes)
        status = fit_add(run->class_count, run->classes, err);
    if (!status)
        status = fit_level(run, err);
    if (!status)
        status = fit_count_groups(run, err);
    run->seconds_read = fit_clock() - start;
    return status;
}

/* How much columns matter; a model that cannot tell says so in the report. */
static fin_status importance(fit_run *run, fin_error *err)
{
    fin_error why = {FIN_OK, ""};
    size_t d = (size_t)run->bags->d;
    run->key = malloc(4 * d * sizeof *run->key);
    if (!run->key)
        return cli_status_memory(err, 32.0 * (double)d, "the columns");
    run->value = run->key + d;
    run->key_sign = run->value + d;
    run->value_sign = run->key_sign + d;
    if (fin_fit_signs(run->fit, run->key_sign, run->value_sign, err))
        return err->status;
    if (fin_fit_importance(run->fit, run->key, run->value, &why)) {
        free(run->key);
        run->key = run->value = NULL;
        snprintf(run->unimportant, sizeof run->unimportant, "%s", why.message);
    }
    return FIN_OK;
}

/* Models that choose do it by cross-validation: bags of a class that has but one are of no use. */
static fin_status check_choice(const fit_run *run, fin_error *err)
{
    double useful = run->classes ? 0 : (double)run->bags->total;
    char name[64];
    for (int64_t c = 0; c < run->classes; c++)
        useful += run->class_count[c] > 1 ? run->class_count[c] : 0;
    if (!fin_fit_model_get(&run->settings)->chooses || useful >= (run->classes ? 2 : 3))
        return FIN_OK;
    return cli_status(err, FIN_ERR_ARGUMENT,
                      "--model %s compares models by cross-validation, for which there are too few "
                      "bags; name a model, such as --model mean",
                      fit_name(&run->settings, run->classes, name, sizeof name));
}

static fin_status fit_model(fit_run *run, fin_error *err)
{
    if (check_choice(run, err))
        return err->status;
    double start = fit_clock();
    bool alone = fin_ranks() == 1;
    /* What is compared can be chosen. */
    fin_fit_others others = {run->models > 1 ? run->models - 1 : 0, run->model + 1};
    fin_status status = fin_fit_create_among(&run->fit, &others, &run->settings, run->classes,
                                             run->bags, NULL, alone ? NULL : fin_ranks_sum,
                                             fin_rank() == 0 ? cli_progress() : NULL, err);
    run->seconds_fit = fit_clock() - start;
    if (status)
        return status;
    fin_fit_get_info(run->fit, &run->info);
    run->locates = fin_fit_locates(run->fit);
    return importance(run, err);
}

/* Shares of the work, for the time that is left. The fit comes first: it finds out what is wrong
 * with the data. */
static fin_status all_steps(fit_run *run, fin_error *err)
{
    const cli_args *args = run->args;
    CLI_TRY(read_bags(run, err));
    run->info.tokens = run->bags->offsets[run->bags->n] - run->bags->offsets[0];
    CLI_TRY(fit_validate_prepare(run, err));
    bool curve =
        cli_get(args, "curve") || (cli_get(args, "cv") && run->repeats) || cli_get(args, "folds");
    curve = curve && !cli_get(args, "no_curve");
    double first = fit_work(&run->settings, run->classes), second = 0,
           third = curve ? FIN_CURVE_SIZES * FIN_CURVE_FOLDS : 0;
    for (int i = 0; i < run->models; i++)
        second += fit_work(&run->model[i], run->classes) * run->folds * run->repeats;
    double all = first + second + third;
    cli_progress_part(0, first / all);
    fin_status status = fit_model(run, err);
    cli_progress_part(first / all, second / all);
    if (!status)
        status = fit_validate(run, err);
    if (!status)
        fin_validation_locate(run->validation, &run->location);
    cli_progress_part((first + second) / all, third / all);
    if (!status && curve)
        status = fit_curve(run, err);
    cli_progress_part(0, 1);
    return status;
}

/* ---- the end -------------------------------------------------------------------------------- */

/* What a person may want to know of a model that is found again in a year. */
static fin_status write_model(const fit_run *run, const char *path, fin_error *err)
{
    char score[96], folds[64];
    int count = 0;
    fin_entry notes[3] = {{"data", run->path}};
    count++;
    if (run->validation) {
        const fin_validation_row *row = fin_validation_at(run->validation, 0);
        snprintf(score, sizeof score, "%.4f +- %.4f", fabs(row->main) < 0.5e-4 ? 0 : row->main,
                 row->main_se);
        snprintf(folds, sizeof folds, "%d folds, %d times", run->folds, run->repeats);
        notes[count++] = (fin_entry){fit_main_name(run->classes), score};
        notes[count++] = (fin_entry){"cross-validation", folds};
    }
    return fin_model_write(path, run->fit, run->set, notes, count, err);
}

static int finish(const fit_run *run)
{
    const cli_args *args = run->args;
    const char *out = cli_get(args, "out"), *report = cli_get(args, "report"),
               *cv_out = cli_get(args, "cv_out");
    char note[900];
    fin_error err = {FIN_OK, ""};
    if (out && write_model(run, out, &err))
        return cli_error(&err);
    if (cv_out && fit_write_left_out(run, cv_out, &err))
        return cli_error(&err);
    if (report && fit_page(run, report, fit_verdict(run), &err))
        return cli_error(&err);
    cli_progress_end();
    if (cli_get(args, "quiet"))
        return CLI_OK;
    for (int i = 0; i < fin_bag_set_notes(run->set); i++)
        cli_note("note: %s", fin_bag_set_note(run->set, i));
    for (int kind = 0; kind < FIT_OWN_NOTES; kind++)
        if (fit_note(run, kind, note, sizeof note))
            cli_note("note: %s", note);
    return fit_report(run);
}

static void close_run(fit_run *run)
{
    fin_validation_destroy(run->validation);
    if (run->fold_read)
        fin_folds_free(run->fold);
    else
        free(run->fold);
    free(run->key);
    free(run->class_count);
    free(run->level_names);
    fin_fit_destroy(run->fit);
    fin_bag_set_destroy(run->set);
}

static int run_command(cli_args *args)
{
    CLI_TRY(check_options(args));
    static fit_run run;
    fin_error err = {FIN_OK, ""};
    run = (fit_run){.args = args,
                    .path = args->operand[0],
                    .settings = ((const fit_asked *)(const void *)args->values)->fit};
    if (fin_ranks() > 1)
        cli_release_signals(); /* a process that stops alone would leave the others waiting */
    fin_status status =
        cli_try_outputs(args, (const char *const[]){"out", "report", "cv_out", NULL}, &err);
    status = fit_agree(status, &err);
    if (!status)
        status = all_steps(&run, &err);
    int code = status ? cli_error(&err) : fin_rank() != 0 ? CLI_OK : finish(&run);
    close_run(&run);
    return code;
}
