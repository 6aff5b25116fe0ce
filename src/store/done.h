/* A finished run as bytes, and back. */
#ifndef FINI_STORE_DONE_H
#define FINI_STORE_DONE_H

#include "command/command.h"
#include "finetti/store.h"

/* A finished run, as ranks send it and the store keeps it. */
typedef struct fini_done {
    int64_t position; /* in the study */
    fin_state state;  /* DONE or FAILED */
    double seconds;
    char reason[512];
    fin_result *result; /* owned by whoever holds this; NULL or empty if it failed */
} fini_done;
/* Bytes in fini_alloc memory. */
fin_status fini_done_pack(const fini_done *done, unsigned char **bytes, size_t *size,
                          fin_error *err);
/* Whatever the bytes are: a result or a message. */
fin_status fini_done_unpack(const unsigned char *bytes, size_t size, fini_done *done,
                            fin_error *err);

#endif
