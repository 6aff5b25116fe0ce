/* Bags from mapped NPY files. One input is several files: after a byte that says how they are read,
 * for each of tokens, offsets, bag, y and text two bytes of length (little-endian; 0: no such file) and
 * its bytes. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"tokens.npy", "offsets.npy", "bag.npy", "y.npy",
                                        "text.npy"};
    fin_bag_set *set;
    fin_error err = {FIN_OK, ""};
    size_t at = 1;
    if (size == 0)
        return 0;
    for (int i = 0; i < 5; i++) {
        size_t length = at + 2 <= size ? data[at] | (size_t)data[at + 1] << 8 : 0;
        at = at + 2 <= size ? at + 2 : size;
        length = length < size - at ? length : size - at;
        if (length)
            fuzz_write(names[i], data + at, length);
        else
            remove(fuzz_path(names[i]));
        at += length;
    }
    char place[300];
    snprintf(place, sizeof place, "%s", fuzz_path(""));
    fin_bags_source source = fuzz_source(place, data[0]);
    fin_status status = fin_bag_set_read(&set, &source, NULL, &err);
    FUZZ_CHECK(status ? !set && err.message[0] : set != NULL);
    if (!status)
        fuzz_look_at_set(set);
    fin_bag_set_destroy(set);
    return 0;
}
