/* Lists of what to compute: "risk,bayes" as bits, and in one form. */
#include "command/command.h"

#include <stdio.h>
#include <string.h>

static int find(const char *const *names, int count, const char *name, size_t length)
{
    for (int i = 0; i < count; i++)
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
            return i;
    return -1;
}

static fin_status unknown(const char *const *names, int count, const char *text, size_t length,
                          fin_error *err)
{
    char name[32], all[160] = "";
    snprintf(name, sizeof name, "%.*s", (int)(length < 31 ? length : 31), text);
    for (int i = 0; i < count; i++) {
        size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", names[i]);
    }
    const char *near = fin_nearest_name(name, names, count);
    return fini_fail(err, FIN_ERR_ARGUMENT, "show: '%s' is not one of %s%s%s%s", name, all,
                     near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

fin_status fini_show_parse(const char *text, const char *const *names, int count, unsigned *show,
                           fin_error *err)
{
    *show = 0;
    for (const char *rest = text;;) {
        rest += strspn(rest, " ");
        size_t length = strcspn(rest, ", ");
        int i = find(names, count, rest, length);
        if (i < 0)
            return unknown(names, count, rest, length, err);
        *show |= 1u << i;
        rest += length;
        rest += strspn(rest, " ");
        if (!*rest)
            return FIN_OK;
        rest += *rest == ',';
    }
}

void fini_show_tidy(char *text, size_t size, const char *const *names, int count)
{
    unsigned show;
    if (fini_show_parse(text, names, count, &show, NULL))
        return;
    memset(text, 0, size); /* the names once each are no longer than the text was */
    for (int i = 0; i < count; i++)
        if (show & 1u << i)
            strcat(strcat(text, text[0] ? "," : ""), names[i]);
}
