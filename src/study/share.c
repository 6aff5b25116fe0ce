/* The study of rank 0 on every rank: as text, as the store keeps it, and read again there. */
#include "study/run.h"

#include <string.h>

typedef struct parcel {
    int64_t present, text, changes, label, full; /* sizes; full: 0 or 1 */
} parcel;

static fin_status pack(const fin_study *study, const parcel *p, char **bytes, fin_error *err)
{
    /* Each of the three ends with a 0. */
    int64_t size = p->text + p->changes + p->label + 3;
    *bytes = fini_alloc_array(size, 1);
    if (!*bytes)
        return fini_fail_memory(err, (size_t)size, "the text of the study");
    memset(*bytes, 0, (size_t)size);
    if (study) {
        memcpy(*bytes, study->text, (size_t)p->text);
        memcpy(*bytes + p->text + 1, study->changes, (size_t)p->changes);
        memcpy(*bytes + p->text + p->changes + 2, fini_yaml_label(study->tree), (size_t)p->label);
    }
    return FIN_OK;
}

fin_status fin_study_share(fin_study **study, fin_error *err)
{
    FINI_NEED(err, study);
    if (fin_ranks() == 1)
        return FIN_OK;
    bool leads = fin_rank() == 0;
    parcel p = {0};
    if (leads && *study) {
        const fin_study *s = *study;
        p = (parcel){1, (int64_t)s->text_size, (int64_t)strlen(s->changes),
                     (int64_t)strlen(fini_yaml_label(s->tree)), s->full};
    }
    if (!leads)
        *study = NULL;
    fini_ranks_broadcast(&p, sizeof p);
    if (!p.present)
        return FIN_OK;
    char *bytes = NULL;
    fin_error own = {FIN_OK, ""};
    fin_status status = fini_ranks_agree(pack(leads ? *study : NULL, &p, &bytes, &own), &own);
    if (!status) {
        fini_ranks_broadcast(bytes, p.text + p.changes + p.label + 3);
        if (!leads)
            status = fini_study_restore(bytes, (size_t)p.text, bytes + p.text + 1, p.full != 0,
                                        bytes + p.text + p.changes + 2, study, &own);
        status = fini_ranks_agree(status, &own);
    }
    if (status && !leads) {
        fin_study_destroy(*study);
        *study = NULL;
    }
    fini_free(bytes);
    if (status && err)
        *err = own;
    return status;
}
