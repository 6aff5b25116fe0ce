/* Finished runs as ranks send them. What is read can be sent again, and is then the same. */
#include "fuzz.h"

#include "store/done.h"

static void fuzz_look_at_result(const fin_result *result)
{
    double sum = 0;
    for (int i = 0; i < fin_result_scalar_count(result); i++) {
        fin_scalar s = fin_result_get_scalar(result, i);
        FUZZ_CHECK(s.name[0] && fin_how_name(s.how) && s.samples >= 0);
        FUZZ_CHECK(i == 0 || strcmp(fin_result_get_scalar(result, i - 1).name, s.name) < 0);
    }
    for (int i = 0; i < fin_result_series_count(result); i++) {
        fin_series s = fin_result_get_series(result, i);
        size_t bytes = fin_dtype_size(s.dtype);
        FUZZ_CHECK(s.name[0] && bytes && s.ndim >= 1 && s.ndim <= 4);
        for (int a = 0; a < s.ndim; a++)
            bytes *= (size_t)s.shape[a];
        for (size_t b = 0; b < bytes; b++)
            sum += ((const unsigned char *)s.data)[b];
    }
    FUZZ_CHECK(sum >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fini_done done, again;
    fin_error err = {FIN_OK, ""};
    unsigned char *bytes, *same;
    size_t length, same_length;
    fin_status status = fini_done_unpack(data, size, &done, &err);
    FUZZ_CHECK(status ? !done.result && err.message[0] : !err.message[0]);
    if (status)
        return 0;
    FUZZ_CHECK(memchr(done.reason, 0, sizeof done.reason));
    if (done.result)
        fuzz_look_at_result(done.result);
    FUZZ_CHECK(!fini_done_pack(&done, &bytes, &length, &err) && length <= size);
    FUZZ_CHECK(!fini_done_unpack(bytes, length, &again, &err));
    FUZZ_CHECK(!fini_done_pack(&again, &same, &same_length, &err));
    FUZZ_CHECK(length == same_length && memcmp(bytes, same, length) == 0);
    fin_result_destroy(done.result);
    fin_result_destroy(again.result);
    fini_free(bytes);
    fini_free(same);
    return 0;
}
