/* NPZ archives: every array of it, then bags. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fin_npz *npz;
    fin_array array;
    fin_bag_set *set;
    fin_error err = {FIN_OK, ""};
    const char *path = fuzz_write("t.npz", data, size);
    fin_status status = fin_npz_open(path, &npz, &err);
    FUZZ_CHECK(status ? !npz && err.message[0] : npz != NULL);
    if (status)
        return 0;
    for (int64_t i = 0; i < fin_npz_count(npz); i++) {
        err.message[0] = '\0';
        status = fin_npz_array(npz, fin_npz_name(npz, i), &array, &err);
        FUZZ_CHECK(!status || err.message[0]);
        for (int64_t k = 0; !status && k < array.count; k += array.count / 4 + 1) {
            volatile unsigned char byte =
                ((const unsigned char *)array.data)[(size_t)k * fin_dtype_size(array.dtype)];
            (void)byte;
        }
    }
    fin_npz_close(npz);
    fin_bags_source source = fuzz_source(path, size ? data[size / 2] : 0);
    status = fin_bag_set_read(&set, &source, NULL, &err);
    if (!status)
        fuzz_look_at_set(set);
    fin_bag_set_destroy(set);
    return 0;
}
