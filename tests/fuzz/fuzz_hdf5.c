/* Bags from an HDF5 file. The first byte says how it is read. The HDF5 library, which is not built with
 * what looks for faults here, reads the bytes; this looks at what is made of its answers. */
#include "fuzz.h"

/* Where a file is damaged, the library leaks memory of its own; asked by LeakSanitizer. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libhdf5";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fin_bag_set *set;
    fin_error err = {FIN_OK, ""};
    if (size == 0)
        return 0;
    fin_bags_source source = fuzz_source(fuzz_write("t.h5", data + 1, size - 1), data[0]);
    fin_status status = fin_bag_set_read(&set, &source, NULL, &err);
    FUZZ_CHECK(status ? !set && err.message[0] : set != NULL);
    if (!status)
        fuzz_look_at_set(set);
    fin_bag_set_destroy(set);
    return 0;
}
