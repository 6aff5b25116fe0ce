/* Replays the corpus of a harness in a test. */
#ifndef FUZZ_REPLAY_H
#define FUZZ_REPLAY_H

#include "test_data.h"

#include "fuzz.h"

/* Every file of the reader's corpus, and so many of its beginnings; the harness ends the program if
 * something is wrong. */
static void replay(const char *reader, int (*harness)(const uint8_t *, size_t), size_t cuts)
{
    char path[1024];
    int count = 0;
    snprintf(path, sizeof path, "%s/../fuzz/corpus/%s", FIN_TEST_DATA, reader);
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.')
            continue;
        size_t size;
        char name[2048];
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        char *data = read_file(name, &size);
        assert_int_equal(harness((const uint8_t *)data, size), 0);
        for (size_t cut = 0; cut < size && cut < cuts; cut++)
            assert_int_equal(harness((const uint8_t *)data, size - 1 - cut * size / cuts), 0);
        free(data);
        count++;
    }
    closedir(dir);
    assert_true(count >= 3);
}

#define REPLAY(reader, cuts)                                                                       \
    static void corpus__##reader(void **state)                                                     \
    {                                                                                              \
        (void)state;                                                                               \
        replay(#reader, fuzz_##reader, cuts);                                                      \
    }

#endif
