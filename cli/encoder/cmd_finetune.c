/* finetti finetune: labels learnt on top of a pretrained encoder, judged on a fold held out.
 *
 * The same encoder with new weights (--train scratch) is what pretraining has to beat. The fold that
 * is held out decides nothing: early stopping looks at a fifth of the training sequences instead. */
#include "encoder/encoder.h"
#include "bags/fit.h"

#include <stdio.h>
#include <string.h>

static int run_command(cli_args *args);

enum { HEADS, ALL, SCRATCH };
static const char *const ways[] = {"heads", "all", "scratch"};

static const cli_word words[] = {
    {"data", "FILE",
     "required: bags or images with labels; what is not said about them is as for pretraining"},
    ENCODER_DATA_WORDS,
    {"train", "heads|all|scratch",
     "what is trained: the map from the representation to labels alone, everything, or everything "
     "from new weights, for comparison; default: all"},
    {"keep", "SHARE",
     "a random share of the tokens, from SHARE to 1, is shown in each step: helps where labels are "
     "few; default 1, all of them"},
    {"start", "probe|random",
     "where the map to labels begins: at a linear probe fitted to the training sequences, or near "
     "0; default: probe, and random from new weights"},
    {"out", "FILE", "write the encoder with its labels: ENC.fin"},
    {"log", "FILE", "evaluations while it learnt, as CSV"},
    {"json", NULL, "print JSON"},
    {NULL, NULL, NULL},
};

static fin_status groups(void *values, fin_group list[FIN_GROUPS], int *count, fin_error *err)
{
    encoder_asked *s = values;
    (void)err;
    list[(*count)++] = (fin_group){&encoder_data_table, &s->data};
    list[(*count)++] = (fin_group){encoder_learn_table(), &s->learn};
    return FIN_OK;
}

static const fin_command options = {
    .name = "finetune",
    .size = sizeof(encoder_asked),
    .words = cli_no_words,
    .groups = groups,
};

const cli_command cli_finetune = {
    .name = "finetune",
    .summary = "labels learnt with a pretrained encoder, judged on sequences held out",
    .about =
        "Puts a new map from the mean representation of a sequence to its label on an encoder\n"
        "that 'finetti pretrain --out' has written. Trains it or everything, and says how good\n"
        "it is on the fold that is held out. That is the fold that pretraining did not see,\n"
        "unless --test-folds or --test-fold say otherwise. docs/encoder.md is a guide.",
    .examples =
        "  finetti finetune enc.fin --data digits.csv --label digit --per-class 10\n"
        "  finetti finetune enc.fin --data digits.csv --label digit --per-class 10 --train heads\n"
        "  finetti finetune enc.fin --data digits.csv --label digit --per-class 10 --train "
        "scratch\n",
    .settings = &options,
    .computes = true,
    .operands = {.name = "ENC", .meaning = "an encoder's file", .least = 1, .most = 1},
    .words = words,
    .ranks = true,
    .run = run_command,
};

typedef struct tuning {
    cli_args *args;
    int way;
    bool probe; /* the map to labels begins at a probe */
    fin_corpus_settings corpus;
    fin_checkpoint *file;
    encoder_plan plan;
    encoder_data data;
    fin_token_set *learnt, *watched; /* with early stopping: four fifths and a fifth of train */
    fin_corpus *learnt_from, *watch;
    fin_encoder *encoder;
    fin_learn_settings settings;
    fin_learn *learn;
    fin_evaluation test;
    double start;
} tuning;

/* ---- options -------------------------------------------------------------------------------- */

static const char *const outputs[] = {"out", "log", NULL};

static int check_options(tuning *t)
{
    cli_args *args = t->args;
    const char *out = cli_get(args, "out"), *train = cli_get(args, "train");
    const char *start = cli_get(args, "start"), *keep = cli_get(args, "keep");
    fin_error err = {FIN_OK, ""};
    t->way = ALL;
    for (int i = 0; train && i < 3; i++)
        if (strcmp(train, ways[i]) == 0)
            t->way = i;
    t->probe = start ? strcmp(start, "probe") == 0 : t->way != SCRATCH;
    fin_settings_defaults(&fin_corpus_table, &t->corpus, sizeof t->corpus);
    t->corpus.objective = FIN_OBJECTIVE_SUPERVISED;
    if (start && !t->probe && strcmp(start, "random") != 0)
        return cli_usage("--start '%.40s' is not known; allowed are probe and random", start);
    if (keep && fin_settings_parse(&fin_corpus_table, &t->corpus, "keep", keep, &err))
        return cli_usage("--keep: %s", err.message);
    if (keep && fin_settings_validate(&fin_corpus_table, &t->corpus, &err))
        return cli_usage("--keep: %s", err.message);
    if (train && strcmp(train, ways[t->way]) != 0)
        return cli_usage("--train '%.40s' is not known; allowed are heads (the map to labels "
                         "alone), all and scratch (new weights)",
                         train);
    if (!cli_get(args, "data"))
        return cli_usage("--data is missing: --data FILE with labels");
    if (out && (cli_ends_with(out, ".csv") || cli_ends_with(out, ".npz")))
        return cli_usage("--out '%.200s' is an encoder's file, and no table; end it in .fin", out);
    CLI_TRY(encoder_check_files(args, outputs));
    return encoder_check_learn(args);
}

/* What works for a few hundred labels, where nothing else is said: a linear map alone wants a
 * larger rate, and there are no fresh sequences to take thousands of steps on. */
static void choose_settings(tuning *t)
{
    fin_learn_settings *s = &t->settings;
    *s = encoder_get(t->args)->learn;
    if (!cli_given(t->args, "steps"))
        s->steps = 500;
    if (!cli_given(t->args, "batch"))
        s->batch = 64;
    if (!cli_given(t->args, "rate"))
        s->rate = t->way == HEADS ? 1e-2 : 1e-3;
    s->train = t->way == HEADS ? FIN_LEARN_HEADS : FIN_LEARN_ALL;
}

/* ---- steps ---------------------------------------------------------------------------------- */

static fin_status read_data(tuning *t, fin_error *err)
{
    const char *path = t->args->operand[0];
    CLI_TRY(fin_checkpoint_read(path, &t->file, err));
    CLI_TRY(encoder_plan_read(&t->plan, t->file, path, err));
    CLI_TRY(encoder_plan_data(&t->plan, t->args, err));
    t->plan.corpus = t->corpus;
    t->plan.seed = t->settings.seed;
    CLI_TRY(encoder_data_open(&t->data, &t->plan, fin_checkpoint_scale(t->file), err));
    const fin_memory *have = fin_token_set_memory(t->data.train);
    const fin_encoder_shape *want = fin_checkpoint_shape(t->file);
    if (have->inputs != want->inputs || have->values != want->values)
        return cli_status(err, FIN_ERR_ARGUMENT,
                          "%.150s: a token has %lld columns, %lld of them values; the encoder "
                          "%.150s was trained with %lld and %lld",
                          t->plan.path, (long long)have->inputs, (long long)have->values, path,
                          (long long)want->inputs, (long long)want->values);
    return FIN_OK;
}

/* Does learning still see every class? With a few labels of each it may not. */
static fin_status every_class(const tuning *t, fin_error *err)
{
    const fin_memory *m = fin_token_set_memory(t->learnt);
    for (int64_t c = 0; c < m->classes; c++) {
        int64_t seen = 0;
        for (int64_t i = 0; i < m->n; i++)
            seen += m->labels[i] == (double)c;
        if (!seen)
            return cli_status(err, FIN_ERR_ARGUMENT,
                              "--patience sets a fifth of the %lld training sequences apart, and "
                              "none of class '%.60s' is left to learn from; leave it out, or give "
                              "more labels",
                              (long long)fin_token_set_memory(t->data.train)->n,
                              fin_token_set_class(t->learnt, c));
    }
    return FIN_OK;
}

/* Every fifth of the training sequences is set apart for early stopping. */
static fin_status set_apart(tuning *t, fin_error *err)
{
    fin_token_part part = {.folds = 5};
    if (t->settings.patience == 0)
        return FIN_OK;
    CLI_TRY(fin_token_set_part(&t->learnt, t->data.train, &part, err));
    part.test = 1;
    CLI_TRY(every_class(t, err));
    CLI_TRY(fin_token_set_part(&t->watched, t->data.train, &part, err));
    CLI_TRY(fin_corpus_memory(&t->learnt_from, &t->plan.corpus, fin_token_set_memory(t->learnt), 0,
                              err));
    return fin_corpus_memory(&t->watch, &t->plan.corpus, fin_token_set_memory(t->watched), 0, err);
}

/* The encoder of the file with a head for the labels, and its weights but for heads. */
static fin_status make_encoder(tuning *t, fin_error *err)
{
    fin_encoder *old = NULL;
    fin_encoder_shape shape;
    fin_corpus_get_shape(t->data.corpus, &shape);
    fin_status status = fin_encoder_create(&t->encoder, fin_checkpoint_settings(t->file), &shape,
                                           (uint64_t)t->settings.seed, err);
    if (status || t->way == SCRATCH)
        return status;
    status = fin_checkpoint_encoder(t->file, &old, err);
    enum { MOST = 4096 };
    static fin_tensor tensors[MOST];
    int64_t kept = 0, count = status ? 0 : fin_encoder_tensors(old, tensors, MOST);
    for (int64_t i = 0; i < count && i < MOST; i++)
        if (strncmp(tensors[i].name, "head.", 5) != 0)
            tensors[kept++] = tensors[i];
    if (!status)
        status = fin_encoder_load(t->encoder, tensors, kept, 1, NULL, err);
    fin_encoder_destroy(old);
    return status;
}

static int after_step(void *user, const fin_learn_report *report)
{
    (void)user;
    return cli_progress_learn(NULL, report);
}

static fin_status all_steps(tuning *t, fin_error *err)
{
    fin_status status = read_data(t, err);
    if (!status)
        status = set_apart(t, err);
    if (!status)
        status = make_encoder(t, err);
    const fin_corpus *from = t->learnt_from ? t->learnt_from : t->data.corpus;
    const fin_corpus *watch = t->watch ? t->watch : t->data.judge;
    if (!status && t->probe)
        status = fin_encoder_start_head(t->encoder, from, FIN_AUTO, cli_progress(), err);
    if (!status)
        status =
            fin_learn_create(&t->learn, &t->settings, t->encoder, from, watch,
                             fin_ranks() > 1 ? fin_ranks_sum : NULL, fin_rank(), fin_ranks(), err);
    CLI_TRY(fit_agree(status, err));
    CLI_TRY(fin_learn_run(t->learn, -1, after_step, NULL, err));
    return encoder_judge(t->encoder, &t->data, 0, -1, &t->test, err);
}

/* ---- the end -------------------------------------------------------------------------------- */

static fin_status write_encoder(const tuning *t, const char *path, fin_error *err)
{
    static encoder_entries list;
    char key[32];
    encoder_plan_entries(&list, &t->plan);
    encoder_entry(&list, "pretrained", t->args->operand[0]);
    encoder_entry(&list, "train", ways[t->way]);
    for (int64_t c = 0; c < fin_token_set_memory(t->data.train)->classes && c < 256; c++) {
        snprintf(key, sizeof key, "class.%lld", (long long)c);
        encoder_entry(&list, key, fin_token_set_class(t->data.train, c));
    }
    fin_status status =
        list.failed ? cli_status_memory(err, 1e5, "the settings")
                    : fin_checkpoint_write(path, t->encoder, NULL, fin_token_set_scale(t->data.all),
                                           list.entry, list.count, err);
    encoder_entries_close(&list);
    return status;
}

static const char form[] = ENCODER_PLAN_FORM
    "labels      [{classes} classes|numbers][{?per_class}, {per_class} of each to learn from]\n"
    "trained     [{?train=heads}the map to labels alone|{?train=all}everything"
    "|everything, from new weights, in the shape] of {encoder}, {step} steps\n" ENCODER_TEST_FORM
    "[{?tty}\ntime        {seconds:.3g} s\n]";

static int report(const tuning *t)
{
    const fin_memory *m = fin_token_set_memory(t->data.train);
    json_t *record = json_pack(
        "{s:o, s:s, s:o, s:o, s:o, s:I, s:o, s:s, s:o, s:f, s:s, s:f, s:I, s:o*, s:o*}", "encoder",
        cli_json_text(t->args->operand[0]), "train", ways[t->way], "data",
        encoder_plan_of(&t->plan, &t->data), "shape", encoder_of(t->encoder), "learn",
        cli_json_settings(&fin_learn_table, fin_learn_get_settings(t->learn)), "step",
        cli_int(fin_learn_step(t->learn)), "test", encoder_test(&t->test), "test_on",
        t->data.test ? "sequences held out" : "of the same sequences", "log", encoder_log(t->learn),
        "seconds", cli_clock() - t->start, "start", t->probe ? "probe" : "random", "keep",
        t->corpus.keep, "per_class", cli_int(t->plan.data.per_class), "classes",
        m->classes ? json_integer(cli_int(m->classes)) : NULL, "out",
        cli_json_text(cli_get(t->args, "out")));
    return cli_show(t->args, record, form);
}

static int finish(const tuning *t, fin_error *err)
{
    const char *out = cli_get(t->args, "out"), *log = cli_get(t->args, "log");
    if (fin_rank() != 0)
        return CLI_OK;
    if ((out && write_encoder(t, out, err)) || (log && encoder_write_log(log, t->learn, err)))
        return cli_error(err);
    cli_progress_end();
    encoder_data_notes(&t->data);
    return report(t);
}

static int run_command(cli_args *args)
{
    static tuning t;
    fin_error err = {FIN_OK, ""};
    memset(&t, 0, sizeof t);
    t.args = args;
    t.start = cli_clock();
    CLI_TRY(check_options(&t));
    choose_settings(&t);
    if (fin_ranks() > 1)
        cli_release_signals(); /* a process that stops alone would leave the others waiting */
    fin_status status = cli_try_outputs(args, outputs, &err);
    status = fit_agree(status, &err);
    if (!status)
        status = all_steps(&t, &err);
    int code = status == FIN_ERR_CANCELLED ? cli_stopped("cancelled; nothing was written")
               : status                    ? cli_error(&err)
                                           : finish(&t, &err);
    fin_learn_destroy(t.learn);
    fin_corpus_destroy(t.learnt_from);
    fin_corpus_destroy(t.watch);
    fin_token_set_destroy(t.learnt);
    fin_token_set_destroy(t.watched);
    fin_encoder_destroy(t.encoder);
    encoder_data_close(&t.data);
    fin_checkpoint_close(t.file);
    return code;
}
