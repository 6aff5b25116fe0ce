/* Models in files, with the checksum made right; a model that is read must also answer. */
#include "fuzz.h"

#include "fuzz_checksum.h"

/* Two bags of two tokens. */
static void fuzz_ask(const fin_model *model)
{
    enum { WIDE = 4096 };
    fin_fit_info info;
    fin_error err = {FIN_OK, ""};
    fin_fit_get_info(fin_model_fit(model), &info);
    FUZZ_CHECK(info.d == fin_model_features(model) && info.classes == fin_model_classes(model));
    for (int64_t j = 0; j < fin_model_features(model); j++)
        FUZZ_CHECK(fin_model_feature_names(model)[j] != NULL);
    for (int64_t c = 0; c < info.classes; c++)
        FUZZ_CHECK(fin_model_class_names(model)[c] != NULL);
    if (info.d > WIDE || info.classes > WIDE)
        return;
    static const int64_t offsets[] = {0, 2, 4};
    double labels[] = {0, 1}, weights[4], given[4], own[4], none[2];
    unsigned char known[2];
    int64_t *outside = malloc((size_t)info.d * sizeof *outside);
    double *tokens = malloc(4 * (size_t)info.d * sizeof *tokens);
    size_t outputs = 2 * (info.classes ? (size_t)info.classes : 1);
    double *mean = malloc(outputs * sizeof *mean), *sd = malloc(outputs * sizeof *sd);
    FUZZ_CHECK(tokens && mean && sd && outside);
    for (int64_t i = 0; i < 4 * info.d; i++)
        tokens[i] = (double)(i % 7) - 3;
    fin_bags bags = {2, info.d, 0, 2, offsets, FIN_F64, tokens, labels, NULL};
    (void)fin_fit_predict(fin_model_fit(model), &bags, mean, sd, NULL, &err);
    double ends[4];
    fin_status bounded =
        fin_fit_interval(fin_model_fit(model), &bags, 0.9, mean, NULL, ends, NULL, &err);
    FUZZ_CHECK((bounded == FIN_OK) == (info.classes == 0) || err.message[0]);
    if (fin_fit_locates(fin_model_fit(model)))
        (void)fin_fit_locate(fin_model_fit(model), &bags,
                             &(fin_locations){weights, given, own, none}, NULL, &err);
    FUZZ_CHECK(fin_fit_known(fin_model_fit(model), &bags, known, &err) == FIN_OK);
    FUZZ_CHECK(fin_fit_outside(fin_model_fit(model), &bags, outside, NULL, NULL, &err) == FIN_OK);
    for (int64_t j = 0; j < info.d; j++)
        FUZZ_CHECK(outside[j] >= 0 && outside[j] <= 4);
    for (int64_t k = 0; k < info.parts; k++)
        FUZZ_CHECK(fin_fit_part(fin_model_fit(model), k, NULL) != NULL);
    FUZZ_CHECK(info.locator < info.parts && info.positive < 2);
    free(tokens);
    free(mean);
    free(sd);
    free(outside);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fin_model *model;
    const fin_entry *notes;
    fin_error err = {FIN_OK, ""};
    fin_status status = fin_model_read(fuzz_write_checked("t.fin", data, size), &model, &err);
    FUZZ_CHECK(status ? !model && err.message[0] : model != NULL);
    if (status)
        return 0;
    fuzz_ask(model);
    (void)fin_model_notes(model, &notes);
    fin_model_destroy(model);
    return 0;
}
