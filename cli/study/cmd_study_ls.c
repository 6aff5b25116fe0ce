/* finetti study ls: the studies of a store, or the runs of a study. */
#include "study/study.h"

static int run(cli_args *args);

static const cli_word words[] = {
    STUDY_WORD_STORE,
    {"block", "ID", "only runs of this block of the study"},
    {"state", "NAME", "only runs that are done, failed or planned"},
    {"json", NULL, "print JSON"},
    {NULL, NULL, NULL},
};

const cli_command cli_study_ls = {
    .name = "study ls",
    .summary = "the studies of a store, or the runs of a study",
    .about =
        "Lists the studies of a store with how many of their runs are done and how many of\n"
        "their claims hold; with the name of a study, its runs: place, block, hash, state and\n"
        "the settings that tell them apart.",
    .examples = "  finetti study ls\n"
                "  finetti study ls slr_training --store report/finetti.db\n"
                "  finetti study ls lengths --where 'L>=10' --where form=erf\n"
                "  finetti study ls lengths --state failed\n",
    .operands = {"NAME", "a study of the store; default: list the studies", 0, 1, false},
    .words = words,
    .lists = study_where,
    .run = run,
};

/* ---- studies -------------------------------------------------------------------------------- */

static fin_status add_study(void *user, const fin_study_row *study, fin_error *err)
{
    json_t *row = json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:i, s:i, s:f, s:b}", "study",
                            study->name, "title", study->title, "source", study->source, "runs",
                            (json_int_t)study->planned, "done", (json_int_t)study->done, "failed",
                            (json_int_t)study->failed, "claims", study->claims, "held", study->held,
                            "seconds", study->seconds, "full", study->full);
    if (!row || json_array_append_new(user, row))
        return cli_status(err, FIN_ERR_FORMAT,
                          "the studies cannot be listed: not enough memory, or text that is no "
                          "UTF-8");
    return FIN_OK;
}

/* Those that nobody has judged yet, because runs were cut short, count as claims, too. */
static fin_status count_claims(fin_store *store, json_t *study, fin_error *err)
{
    study_claims claims = {.total = 0};
    const char *name = json_string_value(json_object_get(study, "study"));
    fin_status status = study_claims_read(store, name, &claims, err);
    json_object_set_new(study, "claims", json_integer(claims.total));
    json_object_set_new(study, "held",
                        json_integer(study_claims_count(&claims, FIN_VERDICT_HOLDS)));
    json_decref(claims.list);
    return status;
}

static const char form[] =
    "[{?.}{%24,13,8,8,0|study|runs done|failed|claims|title}"
    "{*.|{%24,13,8,8,0|{study}|{done}/{runs}|{failed}|{held}/{claims}|{title}}}"
    "|the store is empty\n]";

static int list_studies(cli_args *args, fin_store *store)
{
    fin_error err = {FIN_OK, ""};
    if (cli_get(args, "block") || cli_get(args, "state") || args->list_count[0])
        return cli_usage("--block, --state and --where choose runs: name a study before them");
    json_t *list = json_array();
    fin_status status = list ? fin_store_studies(store, add_study, list, &err)
                             : cli_status_memory(&err, 0, "the list of studies");
    size_t i;
    json_t *study;
    json_array_foreach(list, i, study) if (!status) status = count_claims(store, study, &err);
    if (!status)
        return cli_show(args, list, form);
    json_decref(list);
    return cli_error(&err);
}

/* ---- runs of one ---------------------------------------------------------------------------- */

typedef struct listing {
    study_varying varying;
    json_t *list;
    bool json;
} listing;

static fin_status add_varying(void *user, const fin_run_row *run, fin_error *err)
{
    listing *l = user;
    return study_varying_add(&l->varying, run->block ? run->block : "", run->settings, err);
}

static fin_status add_run(void *user, const fin_run_row *row, fin_error *err)
{
    listing *l = user;
    (void)err;
    json_array_append_new(l->list, study_run_row(row, &l->varying, l->json));
    return FIN_OK;
}

static int list_runs(cli_args *args, fin_store *store, const char *name)
{
    fin_query query,
        whole = {.study = name}; /* what tells runs apart does not depend on a choice */
    fin_error err = {FIN_OK, ""};
    int code = study_query(args, name, &query);
    if (code)
        return code;
    listing l = {.list = json_array(), .json = cli_get(args, "json")};
    fin_status status = study_need(store, name, &err);
    if (!status && !study_varying_create(&l.varying))
        status = cli_status_memory(&err, 0, "the list of runs");
    if (!status)
        status = fin_store_runs(store, &whole, add_varying, &l, &err);
    if (!status)
        status = fin_store_runs(store, &query, add_run, &l, &err);
    if (!status)
        code = cli_show(args, json_incref(l.list), STUDY_RUNS_FORM "{.#run}\n");
    study_varying_destroy(&l.varying);
    json_decref(l.list);
    return status ? cli_error(&err) : code;
}

static int run(cli_args *args)
{
    fin_store *store;
    fin_error err = {FIN_OK, ""};
    if (study_open(args, FIN_STORE_READ, &store, &err))
        return cli_error(&err);
    int code =
        args->operand_count ? list_runs(args, store, args->operand[0]) : list_studies(args, store);
    fin_store_close(store);
    return code;
}
