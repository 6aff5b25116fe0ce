/* Replays the corpus of the fuzzers (tests/fuzz): every input that they started from, and every one
 * that was once a finding, through the same harnesses, with whatever compiler this is. */
#include "fuzz/fuzz_replay.h"

int fuzz_table(const uint8_t *data, size_t size);
int fuzz_bags(const uint8_t *data, size_t size);
int fuzz_arrays(const uint8_t *data, size_t size);
int fuzz_npz(const uint8_t *data, size_t size);
int fuzz_hdf5(const uint8_t *data, size_t size);
int fuzz_folds(const uint8_t *data, size_t size);
int fuzz_tensors(const uint8_t *data, size_t size);
int fuzz_model(const uint8_t *data, size_t size);
int fuzz_checkpoint(const uint8_t *data, size_t size);
int fuzz_encoder(const uint8_t *data, size_t size);
int fuzz_images(const uint8_t *data, size_t size);
int fuzz_result(const uint8_t *data, size_t size);
int fuzz_text(const uint8_t *data, size_t size);
int fuzz_study(const uint8_t *data, size_t size);
int fuzz_store(const uint8_t *data, size_t size);

#define LLVMFuzzerTestOneInput fuzz_table
#include "fuzz/fuzz_table.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_bags
#include "fuzz/fuzz_bags.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_arrays
#include "fuzz/fuzz_arrays.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_npz
#include "fuzz/fuzz_npz.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_hdf5
#include "fuzz/fuzz_hdf5.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_folds
#include "fuzz/fuzz_folds.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_tensors
#include "fuzz/fuzz_tensors.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_model
#include "fuzz/fuzz_model.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_checkpoint
#include "fuzz/fuzz_checkpoint.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_images
#include "fuzz/fuzz_images.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_encoder
#include "fuzz/fuzz_encoder.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_result
#include "fuzz/fuzz_result.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_text
#include "fuzz/fuzz_text.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_study
#include "fuzz/fuzz_study.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_store
#include "fuzz/fuzz_store.c"
#undef LLVMFuzzerTestOneInput

REPLAY(table, 64)
REPLAY(bags, 64)
REPLAY(arrays, 64)
REPLAY(npz, 64)
REPLAY(hdf5, 64)
REPLAY(folds, 64)
REPLAY(tensors, 64)
REPLAY(model, 64)
REPLAY(checkpoint, 64)
REPLAY(images, 64)
REPLAY(encoder, 64)
REPLAY(result, 64)
REPLAY(text, 64)
REPLAY(study, 64)
REPLAY(store, 2) /* each opens several files */

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corpus__table),  cmocka_unit_test(corpus__bags),
        cmocka_unit_test(corpus__arrays), cmocka_unit_test(corpus__npz),
        cmocka_unit_test(corpus__folds),  cmocka_unit_test(corpus__tensors),
        cmocka_unit_test(corpus__model),  cmocka_unit_test(corpus__checkpoint),
        cmocka_unit_test(corpus__images), cmocka_unit_test(corpus__encoder),
        cmocka_unit_test(corpus__result), cmocka_unit_test(corpus__text),
        cmocka_unit_test(corpus__study),  cmocka_unit_test(corpus__store),
        cmocka_unit_test(corpus__hdf5),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
