/* Studies from end to end: run, judge, hand on; and the studies of a store one after the other.
 *
 * A study is read once. Whoever has one hands it on; what only a store has is read back here, and
 * handed to all who want something of it. */
#include "store/store.h"
#include "study/study.h"

#include <stdio.h>
#include <string.h>

/* ---- the studies of a store ------------------------------------------------------------------ */

enum { NAME_BYTES = 128 };
typedef struct name_list {
    char (*names)[NAME_BYTES]; /* NULL: only count */
    int64_t count, most;
} name_list;

static fin_status keep_name(void *user, const fin_study_row *study, fin_error *err)
{
    (void)err;
    name_list *list = user;
    if (list->names && list->count < list->most)
        snprintf(list->names[list->count], NAME_BYTES, "%s", study->name);
    list->count++;
    return FIN_OK;
}

static fin_status visit_one(fin_store *store, const fini_studies *which, const char *name,
                            fini_study_visit visit, void *user, fin_error *err)
{
    for (int i = 0; i < which->hand_count; i++)
        if (strcmp(which->hand[i]->name, name) == 0)
            return visit(user, name, which->hand[i], NULL, err);
    fin_study *study = NULL;
    fin_error why = {FIN_OK, ""};
    int64_t id;
    FINI_TRY(fini_store_find_study(store, name, &id, err));
    fin_status status = fini_store_study(store, name, &study, &why);
    if (status == FIN_ERR_MEMORY || status == FIN_ERR_CANCELLED)
        return fini_fail(err, status, "%s", why.message);
    status = visit(user, name, study, &why, err);
    fin_study_destroy(study);
    return status;
}

fin_status fini_studies_visit(fin_store *store, const fini_studies *which, fini_study_visit visit,
                              void *user, fin_error *err)
{
    fin_status status = FIN_OK;
    for (int i = 0; which->names && i < which->count && !status; i++) {
        int first = 0; /* named twice is visited once */
        while (strcmp(which->names[first], which->names[i]) != 0)
            first++;
        if (first == i)
            status = visit_one(store, which, which->names[i], visit, user, err);
    }
    name_list list = {0};
    if (which->names || (status = fin_store_studies(store, keep_name, &list, err)))
        return status;
    list.most = list.count;
    FINI_ROOM(err, "names of studies", list.names, list.most + 1, 1);
    list.count = 0;
    status = fin_store_studies(store, keep_name, &list, err);
    for (int64_t i = 0; i < list.count && i < list.most && !status; i++)
        status = visit_one(store, which, list.names[i], visit, user, err);
    fini_free(list.names);
    return status;
}

/* ---- claims ---------------------------------------------------------------------------------- */

static fin_status judge_visited(void *user, const char *name, const fin_study *study,
                                const fin_error *why, fin_error *err)
{
    (void)name;
    return study ? fini_claims_judge(user, study, NULL, NULL, err)
                 : fini_fail(err, why->status, "%s", why->message);
}

fin_status fin_store_judge(fin_store *store, const char *study, fin_error *err)
{
    FINI_NEED(err, store);
    fini_studies which = {.names = study ? &study : NULL, .count = 1};
    return fini_studies_visit(store, &which, judge_visited, store, err);
}

typedef struct listing {
    fin_store *store;
    fini_claim_row row;
    void *user;
} listing;

static fin_status list_visited(void *user, const char *name, const fin_study *study,
                               const fin_error *why, fin_error *err)
{
    const listing *l = user;
    (void)why;
    return fini_claims_list(l->store, name, study, l->row, l->user, err);
}

fin_status fin_store_verdicts(fin_store *store, const char *name, fini_claim_row row, void *user,
                              fin_error *err)
{
    FINI_NEED(err, store, row);
    listing l = {store, row, user};
    return fini_studies_visit(store, &(fini_studies){.names = name ? &name : NULL, .count = 1},
                              list_visited, &l, err);
}

/* ---- from end to end ------------------------------------------------------------------------- */

typedef struct failures {
    const char *study;
    int64_t count;
} failures;

static fin_status count_failed(void *user, const fin_study_row *study, fin_error *err)
{
    failures *f = user;
    (void)err;
    if (strcmp(study->name, f->study) == 0)
        f->count = study->failed;
    return FIN_OK;
}

fin_status fin_study_conduct(const fin_study *study, fin_store *store,
                             const fin_study_settings *settings, const fin_study_calls *calls,
                             fin_study_count *count, fin_error *err)
{
    FINI_NEED(err, study, count);
    static const fin_study_calls none = {0};
    calls = calls ? calls : &none;
    fin_status status = fin_study_run(study, store, settings, calls->news, calls->user, count, err);
    if (fin_rank() != 0 || !store)
        return status;
    if (status) { /* cut short: what is finished is judged all the same, as far as the store works */
        (void)fini_claims_judge(store, study, NULL, NULL, NULL);
        return status;
    }
    FINI_TRY(fini_claims_judge(store, study, calls->claim, calls->user, err));
    failures f = {.study = study->name};
    FINI_TRY(fin_store_studies(store, count_failed, &f, err));
    count->failed_in_store = f.count;
    return FIN_OK;
}
