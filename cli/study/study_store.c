/* Stores and studies by the names that a person gives them. */
#include "study/study.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const cli_word study_where[] = {
    {"where", "CONDITION",
     "only runs with this setting: lam=0.1, form=softmax, 'L>=10'; of several, all must hold"},
    {NULL, NULL, NULL},
};

const char *study_store(const cli_args *args)
{
    const char *given = cli_get(args, "store"), *usual = getenv("FINETTI_STORE");
    return given ? given : usual && *usual ? usual : "finetti.db";
}

fin_status study_open(const cli_args *args, int how, fin_store **store, fin_error *err)
{
    const char *path = study_store(args);
    *store = NULL;
    if (how != FIN_STORE_CREATE && access(path, F_OK) != 0)
        return cli_status(err, FIN_ERR_IO,
                          "there is no store '%.200s'; 'finetti study run' makes one, --store FILE "
                          "names another",
                          path);
    return fin_store_open(path, how, store, err);
}

/* ---- study files ---------------------------------------------------------------------------- */

static int find_shipped(const char *name)
{
    for (int i = 0; i < fin_shipped_count(); i++)
        if (strcmp(fin_shipped_name(i), name) == 0)
            return i;
    return -1;
}

static const char *nearest_shipped(const char *name)
{
    const char *names[256];
    int count = 0;
    for (; count < fin_shipped_count() && count < 256; count++)
        names[count] = fin_shipped_name(count);
    return fin_nearest_name(name, names, count);
}

/* It may be a pipe that nobody writes to: while it is read, a signal ends the program. */
static fin_status read_file(const char *name, const fin_study_changes *changes, fin_study **study,
                            fin_error *err)
{
    cli_release_signals();
    fin_status status = fin_study_read(name, changes, study, err);
    cli_catch_signals();
    return status;
}

fin_status study_read(const char *name, const fin_study_changes *changes, fin_study **study,
                      fin_error *err)
{
    int shipped = find_shipped(name);
    *study = NULL;
    if (access(name, F_OK) == 0)
        return read_file(name, changes, study, err);
    if (shipped >= 0) {
        const char *text = fin_shipped_text(shipped);
        return fin_study_parse(text, strlen(text), name, changes, study, err);
    }
    const char *near = strpbrk(name, "/.") ? NULL : nearest_shipped(name);
    return cli_status(err, FIN_ERR_IO, "there is no file '%.200s', nor a study of that name%s",
                      name, cli_hint(near, "; 'finetti help study run' lists those"));
}

/* ---- studies in a store --------------------------------------------------------------------- */

enum { NAMES = 256 };

typedef struct search {
    const char *wanted;
    bool found;
    char names[NAMES][64];
    int count;
} search;

static fin_status search_row(void *user, const fin_study_row *study, fin_error *err)
{
    search *s = user;
    (void)err;
    s->found = s->found || strcmp(study->name, s->wanted) == 0;
    if (s->count < NAMES)
        cli_clean(study->name, s->names[s->count++], sizeof s->names[0]);
    return FIN_OK;
}

static fin_status skip_claim(void *user, const fin_claim *claim, fin_error *err)
{
    (void)user;
    (void)claim;
    (void)err;
    return FIN_OK;
}

fin_status study_need(fin_store *store, const char *name, fin_error *err)
{
    /* A list of studies counts the runs of each, which takes a while: so it comes second. */
    if (fin_store_claims(store, name, skip_claim, NULL, NULL) == FIN_OK)
        return FIN_OK;
    static search s; /* large */
    s = (search){.wanted = name};
    CLI_TRY(fin_store_studies(store, search_row, &s, err));
    if (s.found)
        return FIN_OK;
    const char *names[NAMES];
    for (int i = 0; i < s.count; i++)
        names[i] = s.names[i];
    const char *near = fin_nearest_name(name, names, s.count);
    return cli_status(err, FIN_ERR_ARGUMENT, "the store has no study '%.60s'%s", name,
                      cli_hint(near, "; 'finetti study ls' lists them"));
}

/* ---- queries -------------------------------------------------------------------------------- */

int study_query(const cli_args *args, const char *study, fin_query *query)
{
    const char *state = cli_get(args, "state");
    memset(query, 0, sizeof *query);
    query->study = study;
    query->block = cli_get(args, "block");
    query->where = cli_list(args, "where", &query->where_count);
    if (!state)
        return CLI_OK;
    if (strcmp(state, fin_state_name(FIN_STATE_DONE)) == 0)
        query->state = FIN_STATE_DONE;
    else if (strcmp(state, fin_state_name(FIN_STATE_FAILED)) == 0)
        query->state = FIN_STATE_FAILED;
    else if (strcmp(state, fin_state_name(FIN_STATE_PLANNED)) == 0)
        query->state = -1;
    else
        return cli_usage("--state '%.40s' is not one of done, failed, planned", state);
    return CLI_OK;
}
