/* Status names and the one function that writes a message. */
#include "base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FINI_STRING_(x) #x
#define FINI_STRING(x) FINI_STRING_(x)

const char *fin_version(void)
{
    return FINI_STRING(FIN_VERSION_MAJOR) "." FINI_STRING(FIN_VERSION_MINOR) "." FINI_STRING(
        FIN_VERSION_PATCH);
}

const char *fin_status_name(fin_status status)
{
    switch (status) {
#define FINI_STATUS_CASE(name, text)                                                               \
    case name:                                                                                     \
        return text;
        FIN_STATUS_LIST(FINI_STATUS_CASE)
    }
    return "unknown status";
}

fin_status fini_fail(fin_error *err, fin_status status, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        err->status = status;
        vsnprintf(err->message, sizeof err->message, format, args);
        va_end(args);
    }
    return status;
}

/* names: what FINI_NEED was given, as it is written there, parted by commas; the name is the last word of each. */
bool fini_missing(const bool *given, size_t count, const char *names, const char *function,
                  fin_error *err)
{
    size_t i = 0;
    while (i < count && given[i])
        i++;
    if (i == count)
        return false;
    for (; i > 0; i--)
        names = strchr(names, ',') + 1;
    const char *end = names + strcspn(names, ","), *name = end;
    while (name > names && name[-1] != ' ')
        name--;
    fini_fail(err, FIN_ERR_ARGUMENT, "%s: %.*s is NULL, and it is needed", function,
              (int)(end - name), name);
    return true;
}

fin_status fini_fail_memory(fin_error *err, size_t size, const char *what)
{
    return fini_fail(err, FIN_ERR_MEMORY, "out of memory: %.3g MB for %s", (double)size / 1e6,
                     what);
}

bool fini_report(const fin_progress *progress, const char *what, double done, double total)
{
    return progress && progress->report && progress->report(progress->user, what, done, total) != 0;
}

fin_status fini_go_on(const fin_progress *progress, const char *what, double done, double total,
                      fin_error *err)
{
    return fini_report(progress, what, done, total) ? fini_fail(err, FIN_ERR_CANCELLED, "cancelled")
                                                    : FIN_OK;
}

int fini_share_report(void *part, const char *what, double done, double total)
{
    const fini_share *p = part;
    double share = total > 0 ? done / total : 0;
    return fini_report(p->whole, what, (double)p->at + share, (double)p->count);
}
