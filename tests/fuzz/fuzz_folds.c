/* Folds of four bags, one of them with a quote in its name. */
#include "fuzz.h"

#include "data/bags.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char bags[] = "bag,y,x\n1,0,1\nb,1,2\n\"c\"\"d\",0,3\n4,1,4\n";
    fin_bag_set *set;
    fin_error err = {FIN_OK, ""};
    int repeats = 0, folds = 0;
    int32_t *fold;
    fuzz_path("t.csv"); /* one thread */
    fin_bags_source source = fuzz_source("t.csv", 0);
    FUZZ_CHECK(fini_bag_set_parse(&set, &source, bags, strlen(bags), NULL, &err) == FIN_OK);
    char *text = malloc(size ? size : 1);
    FUZZ_CHECK(text);
    memcpy(text, data, size);
    fin_status status = fini_folds_parse(text, size, "f.csv", set, &repeats, &folds, &fold, &err);
    free(text);
    FUZZ_CHECK(status ? !fold && err.message[0] : fold && repeats >= 1 && folds >= 2);
    for (int i = 0; !status && i < 4 * repeats; i++)
        FUZZ_CHECK(fold[i] >= 0 && fold[i] < folds);
    fin_folds_free(fold);
    fin_bag_set_destroy(set);
    return 0;
}
