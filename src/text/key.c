/* What is in a folder of an encoder, or in a file, as a key: settings that name one are known by it, so that
 * the same run is the same wherever it lies, and another one when a number has changed. */
#define _POSIX_C_SOURCE 200809L
#include "text/text.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

static const char *const files[] = {"config.json", "tokenizer.json", "tokenizer_config.json",
                                    "vocab.txt", "model.safetensors"};
enum { FILES = sizeof files / sizeof *files, KNOWN_MOST = 64, BLOCK = 1 << 18 };

/* Folders whose key is known, and what their files were then. */
typedef struct known {
    char folder[FINI_FOLDER_PATH], key[FINI_TEXT_KEY];
    struct stat about[FILES + 1]; /* the last: of a path that is a file itself */
} known;
static known *list[KNOWN_MOST];
static int count;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static fin_status add_file(XXH3_state_t *hash, const char *path, unsigned char *block,
                           fin_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : 1;
    while (got > 0 || (got < 0 && fd >= 0 && errno == EINTR)) {
        got = read(fd, block, BLOCK);
        if (got > 0)
            XXH3_128bits_update(hash, block, (size_t)got);
    }
    fin_status status = got < 0 ? fini_fail_io(err, "read", path, errno) : FIN_OK;
    if (fd >= 0)
        close(fd);
    return status;
}

static const char *path_of(const known *k, int i, char path[FINI_FOLDER_PATH])
{
    return i < FILES ? fini_folder_path(k->folder, files[i], path) : k->folder;
}

/* Names and sizes are hashed, too: what is in one file cannot be in another. */
static fin_status hash_files(known *k, fin_error *err)
{
    char path[FINI_FOLDER_PATH];
    XXH3_state_t *hash = XXH3_createState();
    unsigned char *block = fini_alloc(BLOCK);
    fin_status status = hash && block ? FIN_OK : fini_fail_memory(err, BLOCK, "a key");
    bool there = false;
    if (!status)
        XXH3_128bits_reset(hash);
    for (int i = 0; i <= FILES && !status; i++) {
        char head[64];
        if (!S_ISREG(k->about[i].st_mode))
            continue;
        there = true;
        int size = snprintf(head, sizeof head, "%s %lld\n", i < FILES ? files[i] : "file",
                            (long long)k->about[i].st_size);
        XXH3_128bits_update(hash, head, (size_t)size);
        status = add_file(hash, path_of(k, i, path), block, err);
    }
    if (!status && !there)
        status = fini_fail(err, FIN_ERR_IO, "'%.200s' is no file, and no folder of an encoder",
                           k->folder);
    if (!status) {
        XXH128_hash_t digest = XXH3_128bits_digest(hash);
        snprintf(k->key, sizeof k->key, FINI_TEXT_KEY_LEAD "%016llx%016llx",
                 (unsigned long long)digest.high64, (unsigned long long)digest.low64);
    }
    XXH3_freeState(hash);
    fini_free(block);
    return status;
}

/* Under the mutex: takes k over, or frees it. */
static void remember(known *k)
{
    for (int i = 0; i < count; i++)
        if (strcmp(list[i]->folder, k->folder) == 0) {
            fini_free(list[i]);
            list[i] = k;
            return;
        }
    if (count < KNOWN_MOST)
        list[count++] = k;
    else
        fini_free(k);
}

static bool find_key(known *k)
{
    for (int i = 0; i < count; i++) {
        bool same = strcmp(list[i]->folder, k->folder) == 0;
        for (int f = 0; f <= FILES && same; f++)
            same = same_file(&list[i]->about[f], &k->about[f]);
        if (same)
            strcpy(k->key, list[i]->key);
        if (same)
            return true;
    }
    return false;
}

bool fini_text_is_key(const char *text)
{
    const size_t lead = sizeof FINI_TEXT_KEY_LEAD - 1;
    return strncmp(text, FINI_TEXT_KEY_LEAD, lead) == 0 && strlen(text) == lead + 32 &&
           strspn(text + lead, "0123456789abcdef") == 32;
}

fin_status fini_text_key(const char *folder, char key[FINI_TEXT_KEY], fin_error *err)
{
    char path[FINI_FOLDER_PATH];
    FINI_MAKE(err, "a key", known, k);
    snprintf(k->folder, sizeof k->folder, "%s", folder);
    for (int i = 0; i <= FILES; i++)
        if (stat(path_of(k, i, path), &k->about[i]))
            memset(&k->about[i], 0, sizeof k->about[i]);
    pthread_mutex_lock(&mutex);
    bool there = find_key(k);
    fin_status status = there ? FIN_OK : hash_files(k, err);
    strcpy(key, k->key);
    if (status || there)
        fini_free(k);
    else
        remember(k);
    pthread_mutex_unlock(&mutex);
    return status;
}

void fini_text_to_key(char *given, size_t size)
{
    char key[FINI_TEXT_KEY];
    if (*given && !fini_text_is_key(given) && !fini_text_key(given, key, NULL)) {
        memset(given, 0, size);
        strcpy(given, key);
    }
}

static bool find_path(const char *key, char path[FINI_FOLDER_PATH])
{
    bool found = false;
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < count && !found; i++) {
        found = strcmp(list[i]->key, key) == 0;
        if (found)
            strcpy(path, list[i]->folder);
    }
    pthread_mutex_unlock(&mutex);
    return found;
}

fin_status fini_text_given(const char *name, const char *given, char path[FINI_FOLDER_PATH],
                           fin_error *err)
{
    char key[FINI_TEXT_KEY];
    if (!fini_text_is_key(given))
        snprintf(path, FINI_FOLDER_PATH, "%s", given);
    else if (!find_path(given, path))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%s = %s: nothing with this was given; set %s to its path", name, given,
                         name);
    FINI_TRY(fini_text_key(path, key, err));
    if (fini_text_is_key(given) && strcmp(key, given) != 0)
        return fini_fail(err, FIN_ERR_FORMAT, "'%.200s' has changed since it was given", path);
    return FIN_OK;
}
