/* finetti train: how k and v move, for many runs at a time. */
#include "train/train.h"

#include <stdlib.h>
#include <string.h>

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
    {"checkpoint_every", "SECONDS", "time between two checkpoints; 60"},
    {"stop_at", "STEP", "stop at this step and write --checkpoint and --out there; auto = steps"},
    {"resume", "FILE",
     "goes on from such a file with its settings, to the same bytes as if it had not been stopped. "
     "Beside it only --steps (not fewer), --stop-at, --out, --checkpoint, --checkpoint-every, "
     "--curvature, --threads and --json"},
    {"curvature", NULL, "eigenvalues of the Hessian of the risk where each run ends"},
    {"json", NULL, "print JSON: every run, and the summary"},
    {NULL, NULL, NULL},
};

const cli_command cli_train = {
    .name = "train",
    .summary = "gradient descent, SGD or gradient flow on the spheres of k and v",
    .about =
        "Trains k and v from many starting points, at a cost that does not depend on d. Goes by\n"
        "the exact gradient of the risk (--engine population) or by fresh samples (reduced).\n"
        "ambient does the latter with vectors in R^d. Prints where runs ended (at the oracle k*, "
        "v*;\n"
        "swapped, k = v* and v = k*; elsewhere) with the 95 % interval of each share and the\n"
        "risk there, and says so if steps were too long. Run r depends on the settings, the\n"
        "seed and r alone. Times are printed to terminals only, so that outputs can be compared.",
    .examples =
        "  finetti train --lam 0.1 --init manifold --out runs.npz\n"
        "  finetti train --engine reduced --d 80 --eps 0.1 --lam 2 --decay 1e-4 --alpha 1e-3\n"
        "  finetti train --init overlaps --kappa 0.1 --nu 0.1 --runs 1 --rule flow --json\n"
        "  finetti train --engine ambient --steps 20000 --checkpoint run.npz\n"
        "  finetti train --resume run.npz --checkpoint run.npz --out runs.npz\n",
    .settings = &fin_training_settings,
    .computes = true,
    .words = words,
    .run = run,
};

/* ---- do the options fit together ------------------------------------------------------------ */

static int check_options(const cli_args *args)
{
    static const char *const fitting[] = {"resume", "out",   "checkpoint", "curvature",
                                          "json",   "steps", "stop_at",    "checkpoint_every",
                                          NULL};
    const char *out = cli_get(args, "out");
    const char *odd = cli_get(args, "resume") ? cli_odd_option(args, fitting) : NULL;
    char option[CLI_NAME + 2];
    if (out && !cli_ends_with(out, ".npz"))
        return cli_usage("--out '%.200s': the format is NPZ; end it in .npz", out);
    if (cli_get(args, "checkpoint_every") && !cli_get(args, "checkpoint"))
        return cli_usage("--checkpoint-every goes with --checkpoint FILE");
    if (odd)
        return cli_usage("%s cannot be changed: --resume takes the settings from the file; only "
                         "--steps, --stop-at, --out, --checkpoint, --checkpoint-every, "
                         "--curvature, --threads and --json go with it",
                         cli_dashed(odd, option));
    return CLI_OK;
}

static fin_status read_pause(const cli_args *args, cli_pause_settings *pause, fin_error *err)
{
    fin_settings_defaults(&cli_pause_table, pause, sizeof *pause);
    for (int i = 0; i < cli_pause_table.count; i++) {
        const char *name = cli_pause_table.fields[i].name, *text = cli_get(args, name);
        if (text)
            CLI_TRY(fin_settings_parse(&cli_pause_table, pause, name, text, err));
    }
    return FIN_OK;
}

/* The curvature must be one that can be had, before an hour is spent. */
static fin_status try_curvature(const fin_training *t, fin_error *err)
{
    fin_training_parts of = fin_training_get(t);
    fin_curvature curvature;
    return fin_risk_curvature(of.task, of.form, of.form_settings, NULL, &curvature, err);
}

/* ---- from options to runs ------------------------------------------------------------------- */

static fin_status make(fin_training **t, const cli_args *args, fin_error *err)
{
    const fin_training_start start = {.path = cli_get(args, "start")};
    const fin_training_source file = {.path = cli_get(args, "resume")};
    const fin_train_settings *asked = cli_values(args, &fin_train_table);
    if (!file.path)
        return fin_training_create(t, args->pairs, args->pair_count, &start, err);
    fin_status status =
        fin_training_resume(t, &file, cli_given(args, "steps") ? asked->steps : -1, err);
    const char *version = status ? fin_version() : fin_training_get(*t).version;
    if (strcmp(version, fin_version()) != 0)
        cli_note("note: the file was written by version %.20s, this is %s; numbers may differ",
                 version, fin_version());
    return status;
}

static double steps_made(const fin_training *t)
{
    double sum = 0;
    fin_train_array at = fin_train_named(fin_training_get(t).runs, "at");
    for (int64_t r = 0; r < at.shape[0]; r++)
        sum += (double)((const int64_t *)at.data)[r];
    return sum;
}

/* The step at which to stop; refuses one that lies behind. */
static fin_status find_end(int64_t stop, const fin_training *t, int64_t *until, fin_error *err)
{
    fin_training_parts of = fin_training_get(t);
    *until = of.settings->steps;
    if (fin_is_auto((double)stop))
        return FIN_OK;
    if (stop > of.settings->steps)
        return cli_status(err, FIN_ERR_ARGUMENT,
                          "--stop-at %lld lies beyond --steps %lld; give a step from 0 to that",
                          (long long)stop, (long long)of.settings->steps);
    if (of.settings->rule == FIN_RULE_FLOW && stop > 0 && stop < of.settings->steps)
        return cli_status(err, FIN_ERR_ARGUMENT,
                          "--stop-at %lld: a flow is computed in one piece and stops only at 0 or "
                          "at its end, --steps %lld",
                          (long long)stop, (long long)of.settings->steps);
    const int64_t *at = fin_train_named(of.runs, "at").data;
    for (int64_t r = 0; r < of.settings->runs; r++)
        if (at[r] > stop)
            return cli_status(err, FIN_ERR_ARGUMENT,
                              "--stop-at %lld lies behind: run %lld has made %lld steps",
                              (long long)stop, (long long)r, (long long)at[r]);
    *until = stop;
    return FIN_OK;
}

/* ---- running -------------------------------------------------------------------------------- */

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

static fin_status advance(fin_training *t, int64_t until, const char *checkpoint, double every,
                          fin_error *err)
{
    keeper k = {.path = checkpoint};
    const fin_progress hook = {report, &k};
    for (;;) {
        k.due = cli_clock() + every;
        fin_status status = fin_train_run(fin_training_runs(t), until, &hook, err);
        bool due = status == FIN_ERR_CANCELLED && !cli_cancelled();
        if (!due)
            return status;
        if ((status = fin_training_write(t, k.path, err)))
            return status;
    }
}

/* Stopped by a signal: keeps what there is, and says how to go on. */
static int keep(const cli_args *args, const fin_training *t)
{
    const char *path = cli_get(args, "checkpoint");
    fin_error err = {FIN_OK, ""};
    if (!path)
        return cli_stopped("cancelled; nothing was kept (--checkpoint FILE keeps what was done)");
    if (fin_training_write(t, path, &err))
        return cli_stopped("cancelled, and nothing more was kept: %s", err.message);
    return cli_stopped("cancelled; go on with: finetti train --resume %.200s --checkpoint %.200s",
                       path, path);
}

/* Of every run; for the caller to free. */
static fin_status curvatures(const fin_training *t, fin_curvature **out, fin_error *err)
{
    int64_t runs = fin_training_get(t).settings->runs;
    const fin_progress *progress = cli_progress();
    *out = calloc((size_t)runs, sizeof **out);
    if (!*out)
        return cli_status_memory(err, (double)runs * sizeof **out, "the curvatures");
    for (int64_t r = 0; r < runs; r++) {
        CLI_TRY(fin_training_curvature(t, r, &(*out)[r], err));
        if (progress->report(progress->user, "curvature", (double)r, (double)runs))
            return cli_status(err, FIN_ERR_CANCELLED, "cancelled");
    }
    return FIN_OK;
}

static int finish(const cli_args *args, const fin_training *t, double steps, double seconds)
{
    const char *files[2] = {cli_get(args, "checkpoint"), cli_get(args, "out")};
    fin_curvature *curvature = NULL;
    fin_result *result = NULL;
    fin_error err = {FIN_OK, ""}, none = {FIN_OK, ""};
    fin_status status = FIN_OK; /* what took long is kept first */
    for (int i = 0; i < 2 && !status; i++)
        status = files[i] ? fin_training_write(t, files[i], &err) : FIN_OK;
    if (!status)
        status = fin_training_result(t, cli_progress(), &result, &err);
    if (!status && cli_get(args, "curvature"))
        status = curvatures(t, &curvature, &err);
    cli_progress_end();
    int code = status ? cli_error(&err) : CLI_OK;
    bool json = cli_get(args, "json");
    if (!code && (json || !fin_training_check(t, &none))) {
        json_t *record = train_record(t, result, curvature, json);
        if (!json)
            cli_put(record, "seconds", seconds, "steps_a_second", steps / seconds, NULL);
        code = cli_show(args, record, train_form);
        const char *note;
        for (int i = 0; !code && !json && (note = fin_result_note(result, i)); i++)
            cli_note("note: %s", note);
    }
    if (!code && fin_training_check(t, &none))
        code = cli_error(&none);
    fin_result_destroy(result);
    free(curvature);
    return code;
}

static int run(cli_args *args)
{
    int code = check_options(args);
    if (code)
        return code;
    fin_training *t = NULL;
    fin_error err = {FIN_OK, ""};
    int64_t until = 0;
    cli_pause_settings pause;
    fin_status status = read_pause(args, &pause, &err);
    if (!status)
        status = make(&t, args, &err);
    if (!status)
        status = find_end(pause.stop_at, t, &until, &err);
    if (!status)
        status = cli_try_outputs(args, (const char *const[]){"out", "checkpoint", NULL}, &err);
    if (!status && cli_get(args, "curvature"))
        status = try_curvature(t, &err);
    if (!status) {
        double before = steps_made(t), start = cli_clock();
        status = advance(t, until, cli_get(args, "checkpoint"), pause.checkpoint_every, &err);
        if (status == FIN_ERR_CANCELLED)
            code = keep(args, t);
        else if (!status)
            code = finish(args, t, steps_made(t) - before, cli_clock() - start);
    }
    if (status && !code)
        code = cli_error(&err);
    fin_training_destroy(t);
    return code;
}
