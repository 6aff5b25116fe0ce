/* Cancelling long work that several threads do: see cancel.c. */
#ifndef FINI_CANCEL_H
#define FINI_CANCEL_H

#include "base/base.h"

#include <stdatomic.h>

/* One for each fit that runs, or NULL: nobody asks. A process that was stopped takes part in no sum
 * any more, as one whose memory is out (fin_sum). */
typedef struct fini_cancel {
    const fin_progress *progress;
    const char *what; /* reported, with done of total */
    double done, total;
    double work;       /* since the last report */
    const void *owner; /* the thread that reports */
    atomic_bool stop;
} fini_cancel;

void fini_cancel_open(fini_cancel *cancel, const fin_progress *progress, const char *what);
/* From any thread, after so many products: true if all is to be dropped. */
bool fini_cancelled(fini_cancel *cancel, double products);
bool fini_cancel_now(fini_cancel *cancel); /* the same, and reports */
/* At the end of a thread's share of a loop: the thread that reports goes on asking while others are at
 * work (one of them may have a single piece that takes minutes); `left`: pieces that are not done. The
 * others go on to the barrier. */
void fini_cancel_wait(fini_cancel *cancel, atomic_llong *left);
/* After a loop: FIN_ERR_CANCELLED if it was stopped. */
fin_status fini_cancel_end(fini_cancel *cancel, fin_error *err);
/* Begins something else, and reports. */
fin_status fini_cancel_stage(fini_cancel *cancel, const char *what, double done, double total,
                             fin_error *err);

/* What a fin_progress calls, for those who know only that: user is a fini_cancel. */
int fini_cancel_hook(void *user, const char *what, double done, double total);

#endif
