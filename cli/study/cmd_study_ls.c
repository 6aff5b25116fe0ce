/* finetti study ls: the studies of a store, or the runs of a study. */
#include "study/study.h"

#include <stdio.h>
#include <string.h>

static int run(cli_args *args);

static const cli_word words[] = {
    STUDY_WORD_STORE,
    {"block", "ID", "only runs of this block of the study"},
    {"state", "NAME", "only runs that are done, failed or planned"},
    {"json", NULL, "print JSON"},
    {NULL, NULL, NULL},
};

static const cli_word lists[] = {
    {"where", "CONDITION",
     "only runs with this setting: lam=0.1, form=softmax, 'L>=10'; of several, all must hold"},
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
    .lists = lists,
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
    fin_status status = study_claims_read(store, study_json_text(study, "study"), &claims, err);
    json_object_set_new(study, "claims", json_integer(claims.total));
    json_object_set_new(study, "held", json_integer(claims.count[FIN_VERDICT_HOLDS]));
    json_decref(claims.list);
    return status;
}

static long long number_of(const json_t *study, const char *name)
{
    return (long long)json_integer_value(json_object_get(study, name));
}

static void print_study(const json_t *study)
{
    static const int widths[] = {24, 13, 8, 8, 0};
    char runs[64], failed[32], claims[64];
    snprintf(runs, sizeof runs, "%lld/%lld", number_of(study, "done"), number_of(study, "runs"));
    snprintf(failed, sizeof failed, "%lld", number_of(study, "failed"));
    snprintf(claims, sizeof claims, "%lld/%lld", number_of(study, "held"),
             number_of(study, "claims"));
    const char *cells[] = {study_json_text(study, "study"), runs, failed, claims,
                           study_json_text(study, "title")};
    study_print_cells(cells, widths, 5);
}

static int print_studies(json_t *list)
{
    static const int widths[] = {24, 13, 8, 8, 0};
    const char *header[] = {"study", "runs done", "failed", "claims", "title"};
    size_t i;
    json_t *study;
    if (json_array_size(list) == 0)
        printf("the store is empty\n");
    else
        study_print_cells(header, widths, 5);
    json_array_foreach(list, i, study) print_study(study);
    return cli_flush();
}

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
    int code = status                  ? cli_error(&err)
               : cli_get(args, "json") ? cli_print_json(json_incref(list))
                                       : print_studies(list);
    json_decref(list);
    return code;
}

/* ---- runs of one ---------------------------------------------------------------------------- */

typedef struct listing {
    study_varying varying;
    json_t *list;
    int64_t count;
} listing;

static fin_status add_varying(void *user, const fin_run_row *run, fin_error *err)
{
    listing *l = user;
    return study_varying_add(&l->varying, run->block ? run->block : "", run->settings, err);
}

static fin_status add_run(void *user, const fin_run_row *row, fin_error *err)
{
    static const int widths[] = {7, 16, 12, 8, 0};
    listing *l = user;
    char place[32], hash[13], text[2048];
    const char *block = row->block ? row->block : "";
    (void)err;
    l->count++;
    if (l->list) {
        json_array_append_new(l->list, json_pack("{s:I, s:s, s:s, s:s, s:s, s:s, s:o}", "position",
                                                 (json_int_t)row->position, "block", block,
                                                 "command", row->command, "hash", row->hash,
                                                 "state", fin_state_name(row->state), "reason",
                                                 row->reason ? row->reason : "", "settings",
                                                 study_settings(row->settings)));
        return FIN_OK;
    }
    snprintf(place, sizeof place, "%7lld", (long long)row->position);
    snprintf(hash, sizeof hash, "%.12s", row->hash);
    study_varying_text(&l->varying, block, row->settings, text, sizeof text);
    if (row->state == FIN_STATE_FAILED && row->reason) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s(%s)", used ? "  " : "", row->reason);
    }
    const char *cells[] = {place, block, hash, fin_state_name(row->state), text};
    study_print_cells(cells, widths, 5);
    return FIN_OK;
}

static int list_runs(cli_args *args, fin_store *store, const char *name)
{
    fin_query query,
        whole = {.study = name}; /* what tells runs apart does not depend on a choice */
    fin_error err = {FIN_OK, ""};
    bool json = cli_get(args, "json");
    int code = study_query(args, name, &query);
    if (code)
        return code;
    listing l = {.list = json ? json_array() : NULL};
    fin_status status = study_need(store, name, &err);
    if (!status && !study_varying_create(&l.varying))
        status = cli_status_memory(&err, 0, "the list of runs");
    if (!status)
        status = fin_store_runs(store, &whole, add_varying, &l, &err);
    if (!status)
        status = fin_store_runs(store, &query, add_run, &l, &err);
    char text[64];
    if (status)
        code = cli_error(&err);
    else if (json)
        code = cli_print_json(json_incref(l.list));
    else
        printf("%s\n", study_plural(l.count, "run", text, sizeof text));
    study_varying_destroy(&l.varying);
    json_decref(l.list);
    return code ? code : cli_flush();
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
