/* finetti train: how k and v move, for many runs at a time. */
#include "train/train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int run(cli_args *args);

static const cli_word words[] = {
    {"start", "FILE",
     "NPZ with arrays k and v, of shape (d) or (runs, d), where --init vectors starts; if it has "
     "k_star and v_star, of shape (d), these are the true directions"},
    {"out", "FILE",
     "FILE.npz gets every logged number, the state of the runs and the settings; numpy reads it, "
     "and so does --resume"},
    {"checkpoint", "FILE",
     "the same format, written while the runs go on, when they are stopped and at the end"},
    {"resume", "FILE",
     "goes on from such a file with its settings, to the same bytes as if it had not been stopped; "
     "beside it only --steps (not fewer), --stop-at, --out, --checkpoint, --checkpoint-every, "
     "--curvature, --threads and --json"},
    {"curvature", NULL, "eigenvalues of the Hessian of the risk where each run ends"},
    {"json", NULL, "print JSON: every run, and the summary"},
    {NULL, NULL, NULL},
};

static const fin_word setting_words[] = {
    FIN_WORD("task", train_asked, task, "slr", "generative model"),
    FIN_WORD("form", train_asked, form, "erf", "attention form"),
    FIN_WORD("lengths", train_asked, lengths, "",
             "law of the sequence length, such as 5:0.2,10:0.8, instead of L"),
    FIN_WORD("lam_schedule", train_asked, lam_schedule, "",
             "lam by steps, such as 0:1,1000:0.5, instead of lam; divided by 1 + decay t too"),
    FIN_WORD("alpha_schedule", train_asked, alpha_schedule, "", "alpha by steps, instead of alpha"),
    FIN_WORDS_END,
};

static fin_status groups(void *values, fin_group list[FIN_GROUPS], int *count, fin_error *err)
{
    train_asked *s = values;
    fin_status status = fin_word_group("form", s->form, &s->form_settings, list, count, err);
    if (!status)
        status = fin_word_group("task", s->task, &s->task_settings, list, count, err);
    list[(*count)++] = (fin_group){&fin_overlaps_table, &s->overlaps};
    list[(*count)++] = (fin_group){&fin_train_table, &s->train};
    list[(*count)++] = (fin_group){&cli_pause_table, &s->pause};
    return status;
}

static const fin_command options = {
    .name = "train",
    .size = sizeof(train_asked),
    .words = setting_words,
    .groups = groups,
};

const cli_command cli_train = {
    .name = "train",
    .summary = "gradient descent, SGD or gradient flow on the spheres of k and v",
    .about =
        "Trains k and v from many starting points, at a cost that does not depend on d: with\n"
        "the exact gradient of the risk (--engine population) or with fresh samples (reduced);\n"
        "ambient does the latter with vectors in R^d. Prints how many runs converged, with the\n"
        "95 % interval of that share, and where they ended. Run r depends on the settings, the\n"
        "seed and r alone. Times are printed to terminals only, so that outputs can be compared.",
    .examples =
        "  finetti train --lam 0.1 --init manifold --out runs.npz\n"
        "  finetti train --engine reduced --d 80 --eps 0.1 --lam 2 --decay 1e-4 --alpha 1e-3\n"
        "  finetti train --init overlaps --kappa 0.1 --nu 0.1 --runs 1 --rule flow --json\n"
        "  finetti train --engine ambient --steps 20000 --checkpoint run.npz\n"
        "  finetti train --resume run.npz --checkpoint run.npz --out runs.npz\n",
    .settings = &options,
    .computes = true,
    .words = words,
    .run = run,
};

/* ---- do the options fit together ------------------------------------------------------------ */

static int check_resume(cli_args *args)
{
    static const char *const fitting[] = {"resume", "out",   "checkpoint", "curvature",
                                          "json",   "steps", "stop_at",    "checkpoint_every",
                                          NULL};
    const char *odd = cli_odd_option(args, fitting);
    char option[CLI_NAME + 2];
    if (odd)
        return cli_usage("%s cannot be changed: --resume takes the settings from the file; only "
                         "--steps, --stop-at, --out, --checkpoint, --checkpoint-every, "
                         "--curvature, --threads and --json go with it",
                         cli_dashed(odd, option));
    return CLI_OK;
}

static int check_start(cli_args *args)
{
    const fin_train_settings *train = &train_get(args)->train;
    for (int i = 0; i < fin_overlaps_table.count; i++)
        if (cli_given(args, fin_overlaps_table.fields[i].name) && train->init != FIN_INIT_OVERLAPS)
            return cli_usage("--%s is where runs start with --init overlaps; add that, or leave it "
                             "out",
                             fin_overlaps_table.fields[i].name);
    bool vectors = train->init == FIN_INIT_VECTORS;
    if (vectors && !cli_get(args, "start"))
        return cli_usage("--init vectors needs --start FILE.npz with arrays k and v");
    if (!vectors && cli_get(args, "start"))
        return cli_usage("--start goes with --init vectors; add that, or leave it out");
    return CLI_OK;
}

static int check_options(cli_args *args)
{
    const char *out = cli_get(args, "out");
    if (out && !cli_ends_with(out, ".npz"))
        return cli_usage("--out '%.200s': the format is NPZ; end it in .npz", out);
    if (cli_given(args, "checkpoint_every") && !cli_get(args, "checkpoint"))
        return cli_usage("--checkpoint-every goes with --checkpoint FILE");
    if (cli_get(args, "resume"))
        return check_resume(args);
    if (cli_given(args, "log_every") && cli_given(args, "log_decade") &&
        train_get(args)->train.log_decade > 0)
        return cli_usage("--log-decade takes the place of --log-every; give one or the other");
    if (cli_get(args, "lam_schedule") && cli_given(args, "lam"))
        return cli_usage("--lam-schedule takes the place of --lam; give one or the other");
    if (cli_get(args, "alpha_schedule") && cli_given(args, "alpha"))
        return cli_usage("--alpha-schedule takes the place of --alpha; give one or the other");
    return check_start(args);
}

/* The files must be writable before an hour is spent. */
static fin_status try_outputs(const cli_args *args, fin_error *err)
{
    const char *out = cli_get(args, "out"), *checkpoint = cli_get(args, "checkpoint");
    fin_status status = out ? training_try(out, err) : FIN_OK;
    return status || !checkpoint ? status : training_try(checkpoint, err);
}

/* And the curvature must be one that can be had. */
static fin_status try_curvature(const training *t, fin_error *err)
{
    fin_curvature curvature;
    return fin_risk_curvature(t->task, cli_form(t->args), &train_get(t->args)->form_settings, NULL,
                              &curvature, err);
}

/* ---- running -------------------------------------------------------------------------------- */

/* The step at which to stop; refuses one that lies behind. */
static fin_status find_end(const training *t, int64_t *until, fin_error *err)
{
    const fin_train_settings *settings = fin_train_get_settings(t->train);
    int64_t stop = train_get(t->args)->pause.stop_at;
    *until = settings->steps;
    if (fin_is_auto((double)stop))
        return FIN_OK;
    if (stop > settings->steps)
        return cli_status(err, FIN_ERR_ARGUMENT,
                          "--stop-at %lld lies beyond --steps %lld; give a step from 0 to that",
                          (long long)stop, (long long)settings->steps);
    if (settings->rule == FIN_RULE_FLOW && stop > 0 && stop < settings->steps)
        return cli_status(err, FIN_ERR_ARGUMENT,
                          "--stop-at %lld: a flow is computed in one piece and stops only at 0 or "
                          "at its end, --steps %lld",
                          (long long)stop, (long long)settings->steps);
    const int64_t *at = training_array(t, "at").data;
    for (int64_t r = 0; r < settings->runs; r++)
        if (at[r] > stop)
            return cli_status(err, FIN_ERR_ARGUMENT,
                              "--stop-at %lld lies behind: run %lld has made %lld steps",
                              (long long)stop, (long long)r, (long long)at[r]);
    *until = stop;
    return FIN_OK;
}

/* Progress that also stops the library when a checkpoint is due; going on costs nothing. */
typedef struct keeper {
    const char *path; /* NULL: no checkpoints */
    double due;
    double whole; /* what there was to do before the first checkpoint */
} keeper;

static int report(void *user, const char *what, double done, double total)
{
    keeper *k = user;
    const fin_progress *line = cli_progress();
    if (k->whole < total)
        k->whole = total;
    if (line->report(line->user, what, k->whole - total + done, k->whole))
        return 1;
    /* Something is done between two checkpoints, however often they are wanted. */
    return k->path && done > 0 && cli_clock() >= k->due;
}

static fin_status advance(training *t, int64_t until, fin_error *err)
{
    keeper k = {.path = cli_get(t->args, "checkpoint")};
    const fin_progress hook = {report, &k};
    for (;;) {
        k.due = cli_clock() + train_get(t->args)->pause.checkpoint_every;
        fin_status status = fin_train_run(t->train, until, &hook, err);
        bool due = status == FIN_ERR_CANCELLED && !cli_cancelled();
        if (!due)
            return status;
        if ((status = training_write(t, k.path, err)))
            return status;
    }
}

/* Stopped by a signal: keeps what there is, and says how to go on. */
static int keep(const training *t)
{
    const char *path = cli_get(t->args, "checkpoint");
    fin_error err = {FIN_OK, ""};
    if (!path)
        return cli_stopped("cancelled; nothing was kept (--checkpoint FILE keeps what was done)");
    if (training_write(t, path, &err))
        return cli_stopped("cancelled, and nothing more was kept: %s", err.message);
    return cli_stopped("cancelled; go on with: finetti train --resume %.200s --checkpoint %.200s",
                       path, path);
}

/* ---- printing ------------------------------------------------------------------------------- */

static int print_json(const training *t, const train_summary *summary,
                      const fin_curvature *curvature)
{
    json_t *runs = train_json_runs(t, curvature);
    if (!runs)
        return cli_failed("not enough memory for the JSON text");
    return cli_print_json(json_pack("{s:o, s:o, s:o}", "settings", train_json_settings(t), "runs",
                                    runs, "summary", train_json_summary(summary)));
}

static int print_text(const training *t, const train_summary *summary,
                      const fin_curvature *curvature, double steps, double seconds)
{
    train_print_head(t);
    train_print_summary(summary);
    if (curvature)
        train_print_curvature(t, curvature);
    if (isatty(STDOUT_FILENO))
        printf("\n%-16s %.3g s, %.3g steps a second\n", "time", seconds, steps / seconds);
    return cli_flush();
}

static int all_diverged(const train_summary *s)
{
    return cli_failed("all %lld runs diverged, run %lld after %lld steps: the next one was not "
                      "finite; a smaller --alpha (or --alpha-lam, if lam is trained) usually works",
                      (long long)s->runs, (long long)s->first_diverged, (long long)s->first_step);
}

static int finish(const training *t, double steps, double seconds)
{
    const cli_args *args = t->args;
    train_summary summary;
    fin_curvature *curvature = NULL;
    fin_error err = {FIN_OK, ""};
    fin_status status = FIN_OK; /* what took long is kept first */
    if (cli_get(args, "checkpoint"))
        status = training_write(t, cli_get(args, "checkpoint"), &err);
    if (!status && cli_get(args, "out"))
        status = training_write(t, cli_get(args, "out"), &err);
    if (!status)
        status = train_summarise(t, &summary, &err);
    if (!status && cli_get(args, "curvature"))
        status = train_curvature(t, &curvature, &err);
    cli_progress_end();
    bool json = cli_get(args, "json"),
         none = !status && summary.count[FIN_RUN_DIVERGED] == summary.runs;
    int code = status ? cli_error(&err)
               : json ? print_json(t, &summary, curvature)
               : none ? CLI_OK
                      : print_text(t, &summary, curvature, steps, seconds);
    if (none && !code)
        code = all_diverged(&summary);
    free(curvature);
    return code;
}

static double steps_made(const training *t)
{
    fin_train_array at = training_array(t, "at");
    double sum = 0;
    for (int64_t r = 0; r < at.shape[0]; r++)
        sum += (double)((const int64_t *)at.data)[r];
    return sum;
}

static int run(cli_args *args)
{
    int code = check_options(args);
    if (code)
        return code;
    training t;
    fin_error err = {FIN_OK, ""};
    const char *resume = cli_get(args, "resume");
    fin_status status =
        resume ? training_resume(&t, args, resume, &err) : training_open(&t, args, &err);
    int64_t until = 0;
    if (!status)
        status = find_end(&t, &until, &err);
    if (!status)
        status = try_outputs(args, &err);
    if (!status && cli_get(args, "curvature"))
        status = try_curvature(&t, &err);
    if (!status) {
        double before = steps_made(&t), start = cli_clock();
        status = advance(&t, until, &err);
        if (status == FIN_ERR_CANCELLED)
            code = keep(&t);
        else if (!status)
            code = finish(&t, steps_made(&t) - before, cli_clock() - start);
    }
    if (status && !code)
        code = cli_error(&err);
    training_close(&t);
    return code;
}
