/* Cancelling long work: is it still wanted?
 *
 * Whoever made the call is asked, on its own thread, every few milliseconds of work; the other
 * threads only read the answer. Work is counted in products, not in seconds: reading a clock for
 * every row would cost more, and a fit asks as often every time it is made. */
#include "base/cancel.h"

#include <sched.h>
#include <time.h>

enum { ENOUGH = 1 << 23 }; /* products: a few milliseconds */

/* Its address tells threads from each other: a team of OpenMP numbers its threads from 0 again
 * inside of another one. */
static _Thread_local char here;

void fini_cancel_open(fini_cancel *cancel, const fin_progress *progress, const char *what)
{
    *cancel = (fini_cancel){.progress = progress, .what = what, .total = 1, .owner = &here};
    atomic_init(&cancel->stop, false);
}

bool fini_cancel_now(fini_cancel *cancel)
{
    if (!cancel)
        return false;
    if (cancel->owner == &here && !atomic_load(&cancel->stop)) {
        cancel->work = 0;
        if (fini_report(cancel->progress, cancel->what, cancel->done, cancel->total))
            atomic_store(&cancel->stop, true);
    }
    return atomic_load(&cancel->stop);
}

bool fini_cancelled(fini_cancel *cancel, double products)
{
    if (!cancel)
        return false;
    if (cancel->owner == &here) {
        cancel->work += products;
        if (cancel->work >= ENOUGH)
            return fini_cancel_now(cancel);
    }
    return atomic_load(&cancel->stop);
}

/* A barrier takes microseconds, and so does this at first: only who waits for long sleeps. */
void fini_cancel_wait(fini_cancel *cancel, atomic_llong *left)
{
    enum { BUSY = 2000 };
    const struct timespec nap = {.tv_nsec = 2000000};
    for (int turn = 0; cancel && cancel->owner == &here && atomic_load(left) > 0; turn++) {
        if (turn < BUSY) {
            sched_yield();
        } else {
            fini_cancel_now(cancel);
            nanosleep(&nap, NULL);
        }
    }
}

fin_status fini_cancel_end(fini_cancel *cancel, fin_error *err)
{
    return cancel && atomic_load(&cancel->stop)
               ? fini_fail(err, FIN_ERR_CANCELLED, "the fit was cancelled")
               : FIN_OK;
}

fin_status fini_cancel_stage(fini_cancel *cancel, const char *what, double done, double total,
                             fin_error *err)
{
    if (!cancel)
        return FIN_OK;
    cancel->what = what;
    cancel->done = done;
    cancel->total = total;
    fini_cancel_now(cancel);
    return fini_cancel_end(cancel, err);
}

int fini_cancel_hook(void *user, const char *what, double done, double total)
{
    (void)what, (void)done, (void)total;
    return fini_cancel_now(user);
}
