/* Two stores beside each other, for merge.c and diff.c. */
#ifndef FINI_STORE_DIFF_H
#define FINI_STORE_DIFF_H

#include "store/store.h"

/* The other store beside this one, as `other`; not within a transaction. */
fin_status fini_store_attach(fin_store *store, const fin_store *other, fin_error *err);
void fini_store_detach(fin_store *store);

typedef struct fini_difference {
    fin_difference face;
    int64_t id[2]; /* of the run, left and right; 0: not there */
    bool number;   /* a scalar or a series */
    bool same;     /* it is none: only packed in another way */
} fini_difference;
/* All of them, by hash and name. */
fin_status fini_store_differences(fin_store *store, double tolerance,
                                  fin_status (*row)(void *user, const fini_difference *difference,
                                                    fin_error *err),
                                  void *user, fin_error *err);

#endif
