/* finetti pretrain: an encoder that learns to infer, from a family, a task or data.
 *
 * Several processes (mpirun) each compute a share of every batch and all have the same bits; rank 0
 * alone prints and writes. Checkpoints are written between two steps, under a temporary name: a full
 * disk or a power cut leaves the last good one. */
#include "bags/fit.h"
#include "encoder/encoder.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int run_command(cli_args *args);

static const cli_word words[] = {
    ENCODER_DATA_WORDS,
    {"lengths", "L,...",
     "families: how good it is at these other lengths, such as 4,8,16,32,64,128"},
    {"out", "FILE", "write the encoder, for finetune and probe: ENC.fin"},
    {"checkpoint", "FILE", "the same with the state of learning, written now and then"},
    {"log", "FILE", "evaluations while it learnt, as CSV"},
    {"json", NULL, "print JSON"},
    {NULL, NULL, NULL},
};

static const char one_source[] = "--task, --family, --data and --resume each say where sequences "
                                 "come from; give one of them";

static const fin_word setting_words[] = {
    FIN_WORD(
        "family", encoder_asked, family, "",
        "family of exchangeable tokens to draw sequences from; concept if nothing else is given"),
    FIN_WORD("task", encoder_asked, task, "",
             "or a task of single-location regression (--objective supervised)"),
    FIN_WORD("data", encoder_asked, data_path, "",
             "or a file: bags (CSV, NPZ, folder of NPY, as finetti fit reads them). With --patch "
             "images (a row of a CSV file, or an entry of `images` in an NPZ file, is one)"),
    FIN_WORD("resume", encoder_asked, resume, "",
             "goes on from a checkpoint with its settings, to the same bytes as if it had not been "
             "stopped. Beside it only --data (the file has another name now), --out, --checkpoint, "
             "--checkpoint-every, --stop-at, --lengths, --log, --threads and --json"),
    FIN_WORDS_END,
};

static fin_status groups(void *values, fin_group list[FIN_GROUPS], int *count, fin_error *err)
{
    encoder_asked *s = values;
    fin_status status = FIN_OK;
    bool file = *s->data_path || *s->resume;
    if (!!*s->task + !!*s->family + file > 1)
        return cli_status(err, FIN_ERR_ARGUMENT, "%s", one_source);
    if (!*s->task && !*s->family && !file)
        strcpy(s->family, "concept");
    if (*s->task)
        status = fin_word_group("task", s->task, &s->task_settings, list, count, err);
    else if (*s->family)
        status = fin_word_group("family", s->family, &s->latent, list, count, err);
    list[(*count)++] = (fin_group){&fin_corpus_table, &s->corpus};
    list[(*count)++] = (fin_group){&encoder_data_table, &s->data};
    list[(*count)++] = (fin_group){&fin_encoder_table, &s->encoder};
    list[(*count)++] = (fin_group){encoder_learn_table(), &s->learn};
    list[(*count)++] = (fin_group){&cli_pause_table, &s->pause};
    return status;
}

static const fin_command options = {
    .name = "pretrain",
    .size = sizeof(encoder_asked),
    .words = setting_words,
    .groups = groups,
};

const cli_command cli_pretrain = {
    .name = "pretrain",
    .summary = "an encoder (transformer) that learns to infer: masked tokens or labels",
    .about =
        "Trains a transformer encoder to predict hidden tokens (--objective masked) or labels\n"
        "(supervised). On families and tasks the exact Bayes prediction stands beside it: the\n"
        "number that counts is the excess over Bayes. Without positions tokens are a set.\n"
        "Ctrl-C saves a checkpoint. Under mpirun the batches are split over the ranks, with the\n"
        "same result. docs/encoder.md is a guide.",
    .examples =
        "  finetti pretrain --family concept --d 5 --noise 0.1 --attention cme --layers 1 --out "
        "enc.fin\n"
        "  finetti pretrain --L 32 --lengths 4,8,16,32,64,128 --steps 20000 --checkpoint run.fin\n"
        "  finetti pretrain --resume run.fin --checkpoint run.fin --out enc.fin\n"
        "  finetti pretrain --task slr --objective supervised --d 16 --L 10\n"
        "  finetti pretrain --data digits.csv --label digit --patch 2 --readout pooled --out "
        "enc.fin\n"
        "  mpirun -n 4 finetti pretrain --data mnist.npz --patch 4 --share 0.75 --readout pooled "
        "--out enc.fin\n",
    .settings = &options,
    .computes = true,
    .words = words,
    .ranks = true,
    .run = run_command,
};

typedef struct pretraining {
    cli_args *args;
    encoder_plan plan;
    encoder_data data;
    fin_checkpoint *file; /* that it goes on from, or NULL */
    fin_encoder *encoder;
    fin_learn *learn;
    encoder_entries entries;
    const char *checkpoint; /* or NULL */
    double due;
    bool warned; /* that a checkpoint could not be written */
    double start;
    double tokens[2]; /* seen at the first report and at the last */
    fin_evaluation test;
    int lengths;
    int64_t length[ENCODER_LENGTHS];
    fin_evaluation at[ENCODER_LENGTHS];
} pretraining;

/* ---- do the options fit together ------------------------------------------------------------ */

static int check_resume(cli_args *args)
{
    static const char *const fitting[] = {"resume",           "data", "out",  "checkpoint",
                                          "lengths",          "log",  "json", "stop_at",
                                          "checkpoint_every", NULL};
    const char *odd = cli_odd_option(args, fitting);
    char option[ENCODER_OPTION];
    if (odd)
        return cli_usage("%s cannot be changed: --resume takes the settings from the file; only "
                         "--data, --out, --checkpoint, --checkpoint-every, --stop-at, --lengths, "
                         "--log, --threads and --json go with it",
                         cli_dashed(odd, option));
    const char *out = cli_get(args, "out");
    if (out && strcmp(out, cli_get(args, "resume")) == 0)
        return cli_usage("--out would write over the checkpoint %.200s an encoder that cannot go "
                         "on learning; give it another name (--checkpoint may be the same)",
                         out);
    return CLI_OK;
}

static int check_data(cli_args *args)
{
    static const char *const names[] = {"share", "readout", "keep"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!cli_get(args, "data") && cli_given(args, names[i]))
            return cli_usage("--%s goes with --data FILE", names[i]);
    if (cli_get(args, "data") && cli_get(args, "lengths"))
        return cli_usage("--lengths is for families; the sequences of a file have their own");
    return encoder_check_pretrain(args);
}

static const char *const outputs[] = {"out", "checkpoint", "log", NULL};

static int check_options(cli_args *args)
{
    CLI_TRY(encoder_check_files(args, outputs));
    for (int i = 0; i < 2; i++) {
        const char *path = cli_get(args, outputs[i]);
        if (path && (cli_ends_with(path, ".csv") || cli_ends_with(path, ".npz") ||
                     cli_ends_with(path, ".npy")))
            return cli_usage("--%s '%.200s' is an encoder's file, and no table; end it in .fin",
                             outputs[i], path);
    }
    if (cli_given(args, "checkpoint_every") && !cli_get(args, "checkpoint"))
        return cli_usage("--checkpoint-every goes with --checkpoint FILE");
    if (cli_get(args, "task") && cli_get(args, "lengths"))
        return cli_usage("--lengths is for families; a task has its own (--L)");
    if (cli_get(args, "resume"))
        return check_resume(args);
    return check_data(args);
}

/* ---- making it ------------------------------------------------------------------------------ */

static fin_status new_encoder(pretraining *p, fin_error *err)
{
    cli_args *args = p->args;
    fin_encoder_settings settings = encoder_get(args)->encoder;
    fin_encoder_shape shape;
    fin_corpus_get_shape(p->data.corpus, &shape);
    if (fin_is_auto((double)settings.longest)) {
        settings.longest = fin_corpus_longest(p->data.corpus);
        if (p->data.judge && fin_corpus_longest(p->data.judge) > settings.longest)
            settings.longest = fin_corpus_longest(p->data.judge);
        if (settings.positions != FIN_POSITIONS_LEARNED && settings.longest > 1 << 20)
            settings.longest = 1 << 20; /* there are none to run out of */
    }
    return fin_encoder_create(&p->encoder, &settings, &shape,
                              (uint64_t)encoder_get(args)->learn.seed, err);
}

static fin_status make_learn(pretraining *p, const fin_learn_settings *settings, fin_error *err)
{
    return fin_learn_create(&p->learn, settings, p->encoder, p->data.corpus, p->data.judge,
                            fin_ranks() > 1 ? fin_ranks_sum : NULL, fin_rank(), fin_ranks(), err);
}

static fin_status open_new(pretraining *p, fin_error *err)
{
    CLI_TRY(encoder_plan_args(&p->plan, p->args, err));
    CLI_TRY(encoder_data_open(&p->data, &p->plan, NULL, err));
    CLI_TRY(new_encoder(p, err));
    return make_learn(p, &encoder_get(p->args)->learn, err);
}

/* Learning that goes on with other sequences would be neither the old run nor a new one. */
static fin_status same_data(const pretraining *p, const char *path, fin_error *err)
{
    char mark[ENCODER_OPTION];
    const char *before = fin_checkpoint_entry(p->file, "data.mark");
    if (!before || strcmp(before, encoder_data_mark(&p->data, mark)) == 0)
        return FIN_OK;
    return cli_status(err, FIN_ERR_ARGUMENT,
                      "%.200s has other sequences (%s) than those that '%.200s' has learnt from "
                      "(%.60s); --data says where these are now",
                      p->plan.path, mark, path, before);
}

static fin_status open_old(pretraining *p, const char *path, fin_error *err)
{
    CLI_TRY(fin_checkpoint_read(path, &p->file, err));
    CLI_TRY(encoder_plan_read(&p->plan, p->file, path, err));
    if (cli_get(p->args, "data") && p->plan.from != ENCODER_DATA)
        return cli_status(err, FIN_ERR_ARGUMENT,
                          "--data: '%.200s' was trained on %s, not on a file", path,
                          encoder_plan_name(&p->plan));
    CLI_TRY(encoder_plan_data(&p->plan, p->args, err));
    if (!fin_checkpoint_learn(p->file))
        return cli_status(err, FIN_ERR_FORMAT,
                          "'%.200s' is an encoder without the state of its learning; "
                          "--checkpoint writes one to go on from, --out does not",
                          path);
    CLI_TRY(encoder_data_open(&p->data, &p->plan, fin_checkpoint_scale(p->file), err));
    CLI_TRY(same_data(p, path, err));
    CLI_TRY(fin_checkpoint_encoder(p->file, &p->encoder, err));
    CLI_TRY(make_learn(p, fin_checkpoint_learn(p->file), err));
    return fin_checkpoint_restore(p->file, p->learn, err);
}

static fin_status open_all(pretraining *p, fin_error *err)
{
    cli_args *args = p->args;
    const char *resume = cli_get(args, "resume"), *lengths = cli_get(args, "lengths");
    char mark[ENCODER_OPTION];
    CLI_TRY(resume ? open_old(p, resume, err) : open_new(p, err));
    if (lengths && p->plan.from != ENCODER_FAMILY)
        return cli_status(err, FIN_ERR_ARGUMENT,
                          "--lengths is for families, and this was trained on %.200s",
                          encoder_plan_name(&p->plan));
    if (lengths)
        CLI_TRY(encoder_lengths_read(lengths, p->length, &p->lengths, err));
    int64_t stop = encoder_get(args)->pause.stop_at;
    if (!fin_is_auto((double)stop) && stop < fin_learn_step(p->learn))
        return cli_status(err, FIN_ERR_ARGUMENT,
                          "--stop-at %lld lies behind: %lld steps have been made", (long long)stop,
                          (long long)fin_learn_step(p->learn));
    encoder_plan_entries(&p->entries, &p->plan);
    if (*encoder_data_mark(&p->data, mark))
        encoder_entry(&p->entries, "data.mark", mark);
    if (p->entries.failed)
        return cli_status_memory(err, 1e5, "the settings");
    return FIN_OK;
}

/* ---- learning ------------------------------------------------------------------------------- */

static fin_status write_file(const pretraining *p, const char *path, bool state, fin_error *err)
{
    const fin_token_scale *scale = p->data.all ? fin_token_set_scale(p->data.all) : NULL;
    return fin_checkpoint_write(path, p->encoder, state ? p->learn : NULL, scale, p->entries.entry,
                                p->entries.count, err);
}

/* A disk that is full now may have room later, and an hour of learning is worth more than a
 * checkpoint: it goes on, and the last good one stays. */
static void write_checkpoint(pretraining *p)
{
    fin_error err = {FIN_OK, ""};
    fin_status status = write_file(p, p->checkpoint, true, &err);
    if (status && !p->warned)
        cli_note("warning: no checkpoint at step %lld: %s; learning goes on, and what was written "
                 "before stays",
                 (long long)fin_learn_step(p->learn), err.message);
    p->warned = status != FIN_OK;
}

static int after_step(void *user, const fin_learn_report *report)
{
    pretraining *p = user;
    p->tokens[0] = p->tokens[1] == 0 ? report->tokens : p->tokens[0];
    p->tokens[1] = report->tokens;
    if (p->checkpoint && fin_rank() == 0 && cli_clock() >= p->due) {
        write_checkpoint(p);
        p->due = cli_clock() + encoder_get(p->args)->pause.checkpoint_every;
    }
    return cli_progress_learn(NULL, report);
}

static fin_status advance(pretraining *p, fin_error *err)
{
    int64_t stop = encoder_get(p->args)->pause.stop_at;
    p->checkpoint = cli_get(p->args, "checkpoint");
    p->start = cli_clock();
    p->due = p->start + encoder_get(p->args)->pause.checkpoint_every;
    return fin_learn_run(p->learn, fin_is_auto((double)stop) ? -1 : stop, after_step, p, err);
}

/* Stopped by a signal: keeps what there is, and says how to go on. */
static int keep(pretraining *p)
{
    const char *out = cli_get(p->args, "out"), *path = p->checkpoint;
    char beside[ENCODER_TEXT + 16];
    fin_error err = {FIN_OK, ""};
    if (!path && out) {
        snprintf(beside, sizeof beside, "%.1000s.checkpoint", out);
        path = beside;
    }
    if (!path)
        return cli_stopped("cancelled; nothing was kept (--checkpoint FILE keeps what was done)");
    if (write_file(p, path, true, &err))
        return cli_stopped("cancelled, and nothing more was kept: %s", err.message);
    return cli_stopped("cancelled after step %lld of %lld; go on with: finetti pretrain --resume "
                       "%.200s --checkpoint %.200s%s%.200s",
                       (long long)fin_learn_step(p->learn),
                       (long long)fin_learn_get_settings(p->learn)->steps, path, path,
                       out ? " --out " : "", out ? out : "");
}

/* A number that was not finite: the file is left as it was. */
static int broken(const pretraining *p, const fin_error *err)
{
    if (!p->checkpoint || access(p->checkpoint, F_OK) != 0)
        return cli_failed("%s", err->message);
    return cli_failed("%s; the last good checkpoint is in %.200s", err->message, p->checkpoint);
}

/* ---- the end -------------------------------------------------------------------------------- */

static fin_status judge(pretraining *p, fin_error *err)
{
    int64_t fresh = fin_learn_get_settings(p->learn)->evaluate_on;
    CLI_TRY(encoder_judge(p->encoder, &p->data, fresh, -1, &p->test, err));
    for (int i = 0; i < p->lengths; i++)
        CLI_TRY(encoder_judge(p->encoder, &p->data, fresh, p->length[i], &p->at[i], err));
    return FIN_OK;
}

static fin_status write_all(pretraining *p, fin_error *err)
{
    const char *out = cli_get(p->args, "out"), *log = cli_get(p->args, "log");
    fin_error second = {FIN_OK, ""};
    fin_status status = FIN_OK, last = FIN_OK; /* what took long is kept first, and if one of the */
    if (p->checkpoint)                         /* disks is full, then on the other one */
        status = write_file(p, p->checkpoint, true, err);
    if (out)
        last = write_file(p, out, false, status ? &second : err);
    CLI_TRY(status ? status : last);
    if (log)
        CLI_TRY(encoder_write_log(log, p->learn, err));
    return FIN_OK;
}

static const char learning_form[] =
    "learning    step {step} of {learn.steps}[{?learn.optimizer=lbfgs} of L-BFGS"
    "|, {sequences_a_step} sequences each][, loss {end_loss:.5g} at the end]\n";
static const char lengths_form[] =
    "[{?lengths}\nat other lengths\n"
    "       L         risk        Bayes       excess         +-     of Bayes\n"
    "{*lengths|{L:8d} {~risk:12.5g} {~bayes:12.5g} {~excess:12.4g} {~excess_se:10.2g}"
    "[ {of_bayes:10.1p} %]\n}]"
    "[{?tty}\ntime        {seconds:.3g} s, {tokens_a_second:.3g} tokens a second\n]";

static int report(const pretraining *p)
{
    const fin_learn_settings *s = fin_learn_get_settings(p->learn);
    const fin_learn_row *row;
    int64_t rows = fin_learn_log(p->learn, &row);
    double seconds = cli_clock() - p->start;
    json_t *lengths = json_array();
    for (int i = 0; i < p->lengths; i++) {
        json_t *one = encoder_test(&p->at[i]);
        json_object_set_new(one, "L", json_integer(cli_int(p->length[i])));
        json_array_append_new(lengths, one);
    }
    json_t *record =
        json_pack("{s:o, s:o, s:o, s:I, s:I, s:b, s:o, s:s, s:o, s:o, s:f, s:o*}", "data",
                  encoder_plan_of(&p->plan, &p->data), "encoder", encoder_of(p->encoder), "learn",
                  cli_json_settings(&fin_learn_table, s), "step", cli_int(fin_learn_step(p->learn)),
                  "sequences_a_step", cli_int(s->batch * s->accumulate), "done",
                  fin_learn_done(p->learn), "test", encoder_test(&p->test), "test_on",
                  p->data.judge ? "sequences held out"
                  : p->data.all ? "of the same sequences"
                                : "fresh sequences",
                  "lengths", lengths, "log", encoder_log(p->learn), "seconds", seconds, "out",
                  cli_json_text(cli_get(p->args, "out")));
    cli_put(record, "end_loss", rows > 1 ? row[rows - 1].loss : NAN, "tokens_a_second",
            cli_get(p->args, "json") ? NAN : (p->tokens[1] - p->tokens[0]) / seconds, NULL);
    return cli_show(p->args, record, ENCODER_PLAN_FORM ENCODER_FORM("encoder"), learning_form,
                    ENCODER_TEST_FORM, lengths_form);
}

static int finish(pretraining *p, fin_status status, fin_error *err)
{
    if (status == FIN_ERR_CANCELLED)
        return keep(p);
    if (status == FIN_ERR_NUMERIC)
        return broken(p, err);
    if (!status && fin_rank() == 0)
        status = write_all(p, err);
    status = fit_agree(status, err);
    if (!status)
        status = judge(p, err);
    cli_progress_end();
    if (status == FIN_ERR_CANCELLED)
        return cli_stopped("cancelled; what was learnt has been written");
    if (status)
        return cli_error(err);
    if (fin_rank() != 0)
        return CLI_OK;
    encoder_data_notes(&p->data);
    return report(p);
}

static int run_command(cli_args *args)
{
    int code = check_options(args);
    if (code)
        return code;
    static pretraining p;
    fin_error err = {FIN_OK, ""};
    memset(&p, 0, sizeof p);
    p.args = args;
    if (fin_ranks() > 1)
        cli_release_signals(); /* a process that stops alone would leave the others waiting */
    fin_status status = open_all(&p, &err);
    if (!status)
        status = cli_try_outputs(args, outputs, &err);
    status = fit_agree(status, &err);
    if (status) {
        code = cli_error(&err);
    } else {
        status = advance(&p, &err);
        code = finish(&p, status, &err);
    }
    fin_learn_destroy(p.learn);
    fin_encoder_destroy(p.encoder);
    encoder_data_close(&p.data);
    encoder_entries_close(&p.entries);
    fin_checkpoint_close(p.file);
    return code;
}
