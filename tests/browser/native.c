/* The calls of web/web.h, run natively: for tests/browser/module.mjs, which compares them with the WebAssembly module. A
 * line in is the name of a call, the room for its answers and its numbers, 16 hexadecimal digits each; a line out is the
 * answers likewise, or "refused". */
#include "web.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int web_call(int count, const double *in, int room, double *out);

static web_call *find(const char *name)
{
#define WEB_CALL_ROW(name, takes, leaves) {#name, web_##name},
    static const struct {
        const char *name;
        web_call *call;
    } calls[] = {WEB_CALLS(WEB_CALL_ROW)};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(calls[i].name, name) == 0)
            return calls[i].call;
    return NULL;
}

int main(void)
{
    char name[64];
    int room, count;
    while (scanf("%63s %d %d", name, &room, &count) == 3) {
        web_call *call = find(name);
        double *in = web_take(count + 1), *out = web_take(room + 1);
        if (!call || !in || !out)
            return 1;
        for (int i = 0; i < count; i++) {
            uint64_t bits;
            if (scanf("%" SCNx64, &bits) != 1)
                return 1;
            memcpy(&in[i], &bits, sizeof bits);
        }
        int answers = call(count, in, room, out);
        if (answers < 0)
            printf("refused %s", web_message());
        for (int i = 0; i < answers; i++) {
            uint64_t bits;
            memcpy(&bits, &out[i], sizeof bits);
            printf("%016" PRIx64 " ", bits);
        }
        putchar('\n');
        web_give_back(in);
        web_give_back(out);
    }
    return 0;
}
