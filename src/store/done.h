/* A finished run as bytes, and back. */
#ifndef FINI_STORE_DONE_H
#define FINI_STORE_DONE_H

#include "command/command.h"
#include "finetti/store.h"

/* A run of a plan that is in the store: its number there, and the first digits of its hash. */
typedef struct fini_known {
    int64_t id; /* 0: not known */
    uint64_t hash;
} fini_known;

/* A finished run, as ranks send it and the store keeps it. */
typedef struct fini_done {
    int64_t position; /* in the study */
    fin_state state;  /* DONE or FAILED */
    double seconds;
    char reason[512];
    fin_result *result; /* owned by whoever holds this; NULL or empty if it failed */
    fini_known known;   /* is not sent */
} fini_done;
/* Bytes in fini_alloc memory. */
fin_status fini_done_pack(const fini_done *done, unsigned char **bytes, size_t *size,
                          fin_error *err);
/* Whatever the bytes are: a result or a message. */
fin_status fini_done_unpack(const unsigned char *bytes, size_t size, fini_done *done,
                            fin_error *err);

#endif
