/* Study files: the first byte says with which sizes and with how many changes (--set), which are the
 * first lines of the text. A study that is read can be planned, its figures checked, and it is the
 * same when a store gives it back. */
#include "fuzz_study.h"

#include "finetti/report.h"

#include <math.h>

enum { FUZZ_CHANGES = 3, FUZZ_RUNS = 4 };

/* Is there a number that, as the length of an axis, is allowed but takes its time? Larger ones are
 * refused, and mean nothing but a number elsewhere. */
static bool fuzz_takes_long(const char *text)
{
    for (const char *p = text; *p;) {
        char *end = NULL;
        double number = *p >= '0' && *p <= '9' ? strtod(p, &end) : 0;
        if (number > 300 && number <= FINI_RUNS_MOST)
            return true;
        p = end && end > p ? end : p + 1;
    }
    return false;
}

static void fuzz_look_at_run(const fin_study *study, int64_t i, fin_plan *plan)
{
    fin_error err = {FIN_OK, ""};
    fin_status status = fin_study_get_run(study, i, plan, &err);
    FUZZ_CHECK(!status || err.message[0]);
    if (status)
        return;
    FUZZ_CHECK(strlen(plan->hash) == FIN_HASH_TEXT - 1 && plan->block[0] && plan->command[0]);
    FUZZ_CHECK(plan->settings[0] == '{' && plan->settings[strlen(plan->settings) - 1] == '}');
    void *values = malloc(fini_study_block_at(study, i)->command->size);
    FUZZ_CHECK(values);
    status = fini_study_settings(study, i, values, &err); /* or it would fail */
    FUZZ_CHECK(!status || err.message[0]);
    free(values);
}

/* As a store gives it back. */
static void fuzz_restore(const fin_study *study)
{
    fin_study *again;
    fin_error err = {FIN_OK, ""};
    static fin_plan one, other; /* large */
    FUZZ_CHECK(!fini_study_restore(study->text, study->text_size, study->changes, study->full, "x",
                                   &again, &err));
    FUZZ_CHECK(fin_study_run_count(again) == fin_study_run_count(study));
    FUZZ_CHECK(strcmp(fin_study_name(again), fin_study_name(study)) == 0);
    for (int64_t i = 0; i < fin_study_run_count(study) && i < FUZZ_RUNS; i++) {
        int64_t last = fin_study_run_count(study) - 1 - i;
        memset(&one, 0, sizeof one);
        memset(&other, 0, sizeof other);
        fuzz_look_at_run(study, i % 2 ? last : i, &one);
        fuzz_look_at_run(again, i % 2 ? last : i, &other);
        FUZZ_CHECK(strcmp(one.hash, other.hash) == 0);
    }
    fin_study_destroy(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    fuzz_path("x"); /* one thread */
    fin_study *study;
    fin_error err = {FIN_OK, ""};
    const char *set[FUZZ_CHANGES];
    fin_study_changes changes = {set, 0, data[0] & 1};
    char *copy = malloc(size); /* as it would stand in memory: of the exact size */
    FUZZ_CHECK(copy);
    memcpy(copy, data + 1, size - 1);
    copy[size - 1] = '\0';
    char *text = copy;
    while (changes.count < (data[0] >> 1) % (FUZZ_CHANGES + 1) && strchr(text, '\n')) {
        set[changes.count++] = text;
        text = strchr(text, '\n');
        *text++ = '\0';
    }
    bool slow = fuzz_takes_long(text);
    for (int i = 0; i < changes.count; i++)
        slow = slow || fuzz_takes_long(set[i]);
    if (!slow) {
        size_t length = (size_t)(copy + size - 1 - text);
        fin_status status = fin_study_parse(
            text, length, "x.yaml", data[0] & 1 || changes.count ? &changes : NULL, &study, &err);
        FUZZ_CHECK(status ? !study && err.message[0] : study != NULL);
        if (!status) {
            fuzz_restore(study);
            status = fin_report_check(study, &err);
            FUZZ_CHECK(!status || err.message[0]);
        }
        fin_study_destroy(study);
    }
    free(copy);
    return 0;
}
