/* Bags from long CSV. The first byte says how they are read. */
#include "fuzz.h"

#include "data/bags.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fin_bag_set *set;
    fin_error err = {FIN_OK, ""};
    if (size == 0)
        return 0;
    fuzz_path("t.csv"); /* one thread */
    fin_bags_source source = fuzz_source("t.csv", data[0]);
    char *text = malloc(size); /* without the first byte of the exact size, but for malloc's 0 */
    FUZZ_CHECK(text);
    memcpy(text + 1, data + 1, size - 1);
    fin_status status = fini_bag_set_parse(&set, &source, text + 1, size - 1, NULL, &err);
    free(text);
    FUZZ_CHECK(status ? !set && err.message[0] : set != NULL);
    if (!status)
        fuzz_look_at_set(set);
    fin_bag_set_destroy(set);
    return 0;
}
