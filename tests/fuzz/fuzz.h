/* What the harnesses share. Each is one file, fuzz_<reader>.c, that defines LLVMFuzzerTestOneInput:
 * run.sh links it with libFuzzer, tests/test_data_fuzz.c replays the corpus with any compiler. */
#ifndef FUZZ_H
#define FUZZ_H

#include "data/data.h"
#include "finetti/data_bags.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An invariant that the readers promise: a finding, like any other crash. */
#define FUZZ_CHECK(condition)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* Removes what is left when the program ends. */
static char fuzz_folder[256];
static inline void fuzz_clean(void)
{
    static const char *const names[] = {"tokens.npy",
                                        "offsets.npy",
                                        "bag.npy",
                                        "y.npy",
                                        "t.npz",
                                        "t.fin",
                                        "text.npy",
                                        "t.h5",
                                        "t.csv",
                                        "t.db",
                                        "t.db-wal",
                                        "t.db-shm",
                                        "good.db",
                                        "good.db-wal",
                                        "good.db-shm",
                                        "t.db-journal",
                                        "x.csv",
                                        "x.npz",
                                        "x.html",
                                        "x.svg",
                                        "config.json",
                                        "vocab.txt",
                                        "tokenizer.json",
                                        "tokenizer_config.json",
                                        "model.safetensors"};
    char path[300];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", fuzz_folder, names[i]);
        remove(path);
    }
    rmdir(fuzz_folder);
}

/* Path of a file in a folder of our own, in memory where the system has such; made on first use. */
static inline const char *fuzz_path(const char *name)
{
    static char path[300];
    if (!fuzz_folder[0]) {
        const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
        snprintf(fuzz_folder, sizeof fuzz_folder, "%s/finetti-fuzz-XXXXXX", base);
        FUZZ_CHECK(mkdtemp(fuzz_folder) != NULL);
        atexit(fuzz_clean);
        fin_threads_set(1); /* the same path through the program for the same bytes */
    }
    snprintf(path, sizeof path, "%s/%s", fuzz_folder, name);
    return path;
}

static inline const char *fuzz_write(const char *name, const uint8_t *data, size_t size)
{
    const char *path = fuzz_path(name);
    FILE *file = fopen(path, "wb");
    FUZZ_CHECK(file && fwrite(data, 1, size, file) == size && fclose(file) == 0);
    return path;
}

/* Everything that a set shows can be looked at, and is what the header promises. */
static inline void fuzz_look_at_set(const fin_bag_set *set)
{
    const fin_bags *bags = fin_bag_set_bags(set);
    int64_t tokens = bags->offsets[bags->n] - bags->offsets[0], classes = fin_bag_set_classes(set);
    double sum = 0;
    FUZZ_CHECK(bags->n >= 0 && bags->d >= 1 && bags->first >= 0);
    FUZZ_CHECK(bags->first + bags->n <= bags->total);
    for (int64_t i = 0; i < bags->n; i++) {
        double y = bags->labels ? bags->labels[i] : 0;
        FUZZ_CHECK(bags->offsets[i + 1] > bags->offsets[i]);
        FUZZ_CHECK(fin_bag_set_name(set, i) && fin_bag_set_name(set, i)[0]);
        FUZZ_CHECK(!bags->groups || (bags->groups[i] >= 0 && bags->groups[i] < bags->total));
        FUZZ_CHECK(classes == 0 || !(y < 0 || y >= (double)classes));
    }
    for (int64_t i = 0; i < tokens * bags->d; i++)
        sum += 0 * (bags->dtype == FIN_F32 ? (double)((const float *)bags->tokens)[i]
                                           : ((const double *)bags->tokens)[i]);
    FUZZ_CHECK(sum == 0); /* all are finite */
    for (int64_t t = 0; t < tokens; t++)
        FUZZ_CHECK(fin_bag_set_row(set, t) >= 1);
    for (int64_t j = 0; j < bags->d; j++)
        FUZZ_CHECK(fin_bag_set_feature(set, j) && fin_bag_set_feature(set, j)[0]);
    for (int64_t c = 0; c < classes; c++)
        FUZZ_CHECK(fin_bag_set_class(set, c) && fin_bag_set_class(set, c)[0]);
    FUZZ_CHECK(!fin_bag_set_name(set, bags->n) && !fin_bag_set_feature(set, bags->d));
    for (int64_t k = 0; k < fin_bag_set_extras(set); k++) {
        FUZZ_CHECK(fin_bag_set_extra(set, k));
        const double *numbers = fin_bag_set_extra_numbers(set, k);
        for (int64_t t = 0; t < tokens; t++) {
            const char *text = fin_bag_set_extra_text(set, k, t);
            FUZZ_CHECK(text || numbers);
            FUZZ_CHECK(!text || !fini_text_fault(text, strlen(text), true));
        }
        FUZZ_CHECK(!fin_bag_set_extra_text(set, k, tokens));
    }
    for (int i = 0; i < fin_bag_set_notes(set); i++)
        FUZZ_CHECK(fin_bag_set_note(set, i)[0]);
}

/* A source by the bits of one byte, so that all ways of reading are tried. */
static inline fin_bags_source fuzz_source(const char *path, uint8_t bits)
{
    static const char *const kinds[] = {NULL, "regression", "classes", "auto"};
    static const char *const features[] = {"x", "z"}, *const classes[] = {"a", "1"};
    fin_bags_source source = {.path = path, .class_count = -1, .kind = kinds[bits & 3]};
    if (bits & 4) {
        source.ranks = 3;
        source.rank = bits & 1 ? 2 : 0;
    }
    if (bits & 8) {
        source.feature_names = features;
        source.feature_count = 2;
    }
    if (bits & 16) {
        source.class_names = classes;
        source.class_count = bits & 1 ? 2 : 0;
    }
    if (bits & 32)
        source.features = bits & 64 ? "x*,2:" : "3,2";
    if (bits & 128)
        source.group = "g";
    source.extras = bits & 2 ? "*" : NULL;
    return source;
}

#endif
