/* The studies that travel inside the library, each under its file's name without ".yaml". */
#include "base/embedded.h"
#include "study/study.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { SHIPPED_MOST = 64, NAME = 80 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char names[SHIPPED_MOST][NAME];
static int count;

static void read_names(void)
{
    for (; count < SHIPPED_MOST && fini_shipped[count].name; count++) {
        const char *name = fini_shipped[count].name, *dot = strrchr(name, '.');
        int length = dot && strcmp(dot, ".yaml") == 0 ? (int)(dot - name) : (int)strlen(name);
        snprintf(names[count], NAME, "%.*s", length, name);
    }
}

int fin_shipped_count(void)
{
    pthread_once(&once, read_names);
    return count;
}

const char *fin_shipped_name(int i)
{
    return i >= 0 && i < fin_shipped_count() ? names[i] : NULL;
}

const char *fin_shipped_text(int i)
{
    return i >= 0 && i < fin_shipped_count() ? fini_shipped[i].text : NULL;
}
