/* Tensors in the layout of safetensors, with and without our checksum, which is made right if the
 * file has room for one: what stands behind it is to be tried too. */
#include "fuzz.h"

#include "fuzz_checksum.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fin_tensor_file *file;
    fin_error err = {FIN_OK, ""};
    const char *path = fuzz_write_checked("t.fin", data, size);
    fin_status status = fin_tensors_open(path, &file, &err);
    FUZZ_CHECK(status ? !file && err.message[0] : file != NULL);
    if (status)
        return 0;
    for (int64_t i = 0; i < fin_tensors_count(file); i++) {
        const fin_tensor *tensor = fin_tensors_at(file, i);
        int64_t bytes = (int64_t)fin_dtype_size(tensor->dtype);
        FUZZ_CHECK(tensor->ndim >= 0 && tensor->ndim <= 4);
        for (int k = 0; k < tensor->ndim; k++)
            bytes *= tensor->shape[k];
        FUZZ_CHECK(fin_tensors_find(file, tensor->name) != NULL);
        for (int64_t k = 0; k < bytes; k += bytes / 4 + 1) {
            volatile unsigned char byte = ((const unsigned char *)tensor->data)[k];
            (void)byte;
        }
        if (bytes > 0) {
            volatile unsigned char byte = ((const unsigned char *)tensor->data)[bytes - 1];
            (void)byte;
        }
    }
    (void)fin_tensors_entry(file, "version");
    fin_tensors_close(file);
    return 0;
}
