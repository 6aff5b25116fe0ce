/* finetti study show: everything about one study, or about one run. */
#include "study/study.h"

#include <string.h>

static int run(cli_args *args);

static const cli_word words[] = {
    STUDY_WORD_STORE,
    {"json", NULL, "print JSON"},
    {NULL, NULL, NULL},
};

const cli_command cli_study_show = {
    .name = "study show",
    .summary = "everything about a study, or about one run",
    .about =
        "Of a study: title, source, blocks with the settings that vary, claims as last judged.\n"
        "Of a run, named by the beginning of its hash: settings, numbers with their errors and\n"
        "how they came about, series with their shapes, and what computed them.",
    .examples = "  finetti study show slr_training\n"
                "  finetti study show 3fa9c2\n"
                "  finetti study show 3fa9c2 --json\n",
    .operands = {"NAME", "a study of the store, or the first digits of a run's hash", 1, 1, false},
    .words = words,
    .run = run,
};

/* ---- a study -------------------------------------------------------------------------------- */

typedef struct summary {
    const char *name;
    json_t *study;  /* NULL: there is none */
    json_t *blocks; /* name: runs, done, failed */
    study_varying varying;
} summary;

static fin_status find_study(void *user, const fin_study_row *row, fin_error *err)
{
    summary *s = user;
    (void)err;
    if (strcmp(row->name, s->name) != 0)
        return FIN_OK;
    s->study = json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:f, s:b}", "study", row->name, "title",
                         row->title ? row->title : "", "source", row->source ? row->source : "",
                         "runs", (json_int_t)row->planned, "done", (json_int_t)row->done, "failed",
                         (json_int_t)row->failed, "seconds", row->seconds, "full", row->full);
    return FIN_OK;
}

static void count_up(json_t *block, const char *name)
{
    json_int_t now = json_integer_value(json_object_get(block, name));
    json_object_set_new(block, name, json_integer(now + 1));
}

static fin_status add_block(void *user, const fin_run_row *row, fin_error *err)
{
    summary *s = user;
    json_t *block = json_object_get(s->blocks, row->block);
    if (!block) {
        json_object_set_new(s->blocks, row->block,
                            json_pack("{s:s, s:i, s:i, s:i}", "command", row->command, "runs", 0,
                                      "done", 0, "failed", 0));
        block = json_object_get(s->blocks, row->block);
    }
    count_up(block, "runs");
    if (row->state != FIN_STATE_PLANNED)
        count_up(block, row->state == FIN_STATE_DONE ? "done" : "failed");
    return study_varying_add(&s->varying, row->block, row->settings, err);
}

static const char form[] =
    "study      {study}[{?full} (full size)]\n[{?title}title      {title}\n]"
    "[{?source}source     {source}\n]\n{%16,10,13,8,50|block|command|runs done|failed|varies}"
    "[{*blocks|{%16,10,13,8,50|{@}|{command}|{done}/{runs}|{failed}|{varies}}}]"
    "[{?claims}\n" STUDY_CLAIMS_FORM STUDY_SUM_FORM "]";

static int show_study(cli_args *args, fin_store *store, summary *s)
{
    fin_query query = {.study = s->name};
    fin_error err = {FIN_OK, ""};
    study_claims claims = {.total = 0};
    fin_status status = FIN_OK;
    s->blocks = json_object();
    if (!s->blocks || !study_varying_create(&s->varying))
        status = cli_status_memory(&err, 0, "the study");
    if (!status)
        status = fin_store_runs(store, &query, add_block, s, &err);
    if (!status)
        status = study_claims_read(store, s->name, &claims, &err);
    const char *name;
    json_t *block;
    char names[512];
    json_object_foreach(s->blocks, name, block)
    {
        study_varying_names(&s->varying, name, names, sizeof names);
        json_object_set_new(block, "varies", cli_json_text(names));
    }
    json_object_set(s->study, "blocks", s->blocks);
    json_object_set(s->study, "claims", claims.list);
    json_object_set_new(s->study, "sum", study_claims_sum(&claims));
    int code = status ? cli_error(&err) : cli_show(args, json_incref(s->study), form);
    json_decref(claims.list);
    return code;
}

static bool is_hash(const char *text)
{
    return strlen(text) >= 4 && strspn(text, "0123456789abcdef") == strlen(text);
}

static int run(cli_args *args)
{
    fin_store *store;
    fin_error err = {FIN_OK, ""};
    summary s = {.name = args->operand[0]};
    int code = CLI_OK;
    if (study_open(args, FIN_STORE_READ, &store, &err) ||
        fin_store_studies(store, find_study, &s, &err))
        code = cli_error(&err);
    else if (s.study)
        code = show_study(args, store, &s);
    else if (is_hash(s.name))
        code = study_show_run(args, store, s.name);
    else if (study_need(store, s.name, &err))
        code = cli_error(&err);
    study_varying_destroy(&s.varying);
    json_decref(s.study);
    json_decref(s.blocks);
    fin_store_close(store);
    return code;
}
