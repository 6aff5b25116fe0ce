/* Replays the corpus of the fuzzer of the command line tool (tests/fuzz), as test_data_fuzz.c does
 * for the library. cmake/Tests.cmake links the tool's other files. */
#include "fuzz/fuzz_replay.h"

int fuzz_cli(const uint8_t *data, size_t size);

#pragma push_macro("main") /* of the test, which may have another name */
#define LLVMFuzzerTestOneInput fuzz_cli
#include "fuzz/fuzz_cli.c"
#undef LLVMFuzzerTestOneInput
#pragma pop_macro("main")

REPLAY(cli, 64)

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(corpus__cli)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
