/* Looking up from long work: is it still wanted?
 *
 * Whoever made the call is asked, on its own thread, every few milliseconds of work; the other
 * threads only read the answer. Work is counted in products, not in seconds: reading a clock for
 * every row would cost more, and a fit asks as often every time it is made. */
#include "bags/bags.h"

enum { ENOUGH = 1 << 23 }; /* products: a few milliseconds */

/* Its address tells threads from each other: a team of OpenMP numbers its threads from 0 again
 * inside of another one. */
static _Thread_local char here;

void fini_look_open(fini_look *look, const fin_progress *progress, const char *what)
{
    *look = (fini_look){.progress = progress, .what = what, .total = 1, .owner = &here};
    atomic_init(&look->stop, false);
}

bool fini_look_now(fini_look *look)
{
    if (!look)
        return false;
    if (look->owner == &here && !atomic_load(&look->stop)) {
        look->work = 0;
        if (fini_report(look->progress, look->what, look->done, look->total))
            atomic_store(&look->stop, true);
    }
    return atomic_load(&look->stop);
}

bool fini_look_on(fini_look *look, double products)
{
    if (!look)
        return false;
    if (look->owner == &here) {
        look->work += products;
        if (look->work >= ENOUGH)
            return fini_look_now(look);
    }
    return atomic_load(&look->stop);
}

fin_status fini_look_end(fini_look *look, fin_error *err)
{
    return look && atomic_load(&look->stop)
               ? fini_fail(err, FIN_ERR_CANCELLED, "the fit was cancelled")
               : FIN_OK;
}

fin_status fini_look_stage(fini_look *look, const char *what, double done, double total,
                           fin_error *err)
{
    if (!look)
        return FIN_OK;
    look->what = what;
    look->done = done;
    look->total = total;
    fini_look_now(look);
    return fini_look_end(look, err);
}
