/* One pass of a study on a store at a time.
 *
 * The lock is one of the system's on bytes of the store, far behind all data: it dies with the
 * process that holds it, however that ends, so that there is never a lock of nobody. It belongs to
 * an open file (F_OFD_SETLK), not to a process, so that two stores in one process exclude each other
 * too. Every study has its byte; who tidies up takes them all.
 *
 * Closing any file descriptor of a file drops SQLite's own locks on it, those of all connections of
 * the process: the stores that are open are listed here, and a descriptor stays until the last
 * store on its file has been closed. */
#define _GNU_SOURCE /* F_OFD_SETLK */
#include "store/store.h"

#include "data/data.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_BYTE (INT64_C(1) << 61)
enum { BYTES = 0x10000, LEFT_OPEN = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static fin_store *stores; /* open ones */
static struct {
    uint64_t device, file;
    int fd;
    bool used;
} left_open[LEFT_OPEN];

/* ---- the stores of this process -------------------------------------------------------------- */

void fini_stores_lock(void)
{
    pthread_mutex_lock(&lock);
}

void fini_stores_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

bool fini_stores_have(uint64_t device, uint64_t file)
{
    for (const fin_store *store = stores; store; store = store->next)
        if (store->device == device && store->file == file)
            return true;
    return false;
}

void fini_stores_add(fin_store *store)
{
    struct stat info;
    const char *path = sqlite3_db_filename(store->db, "main");
    if (path && stat(path, &info) == 0) {
        store->device = (uint64_t)info.st_dev;
        store->file = (uint64_t)info.st_ino;
    }
    store->next = stores;
    stores = store;
}

/* ---- the lock -------------------------------------------------------------------------------- */

#ifdef F_OFD_SETLK

/* 0, or what the system says. */
static int set(int fd, short type, int64_t first, int64_t count)
{
    struct flock range = {.l_type = type, .l_whence = SEEK_SET};
    range.l_start = (off_t)first;
    range.l_len = (off_t)count;
    int code;
    do
        code = fcntl(fd, F_OFD_SETLK, &range);
    while (code != 0 && errno == EINTR);
    return code ? errno : 0;
}

/* Once; it stays open until SQLite has closed the file. */
static fin_status open_lock(fin_store *store, fin_error *err)
{
    const char *path = sqlite3_db_filename(store->db, "main");
    if (store->lock >= 0 || !path || !*path)
        return FIN_OK;
    int fd = open(path, (store->writes ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    if (fd < 0)
        return fini_fail_io(err, "lock the store", path, errno);
    store->lock = fd;
    return FIN_OK;
}

static fin_status take(fin_store *store, int64_t first, int64_t count, bool *held, fin_error *err)
{
    *held = false;
    FINI_TRY(store->writes ? open_lock(store, err) : FIN_OK);
    if (store->lock < 0)
        return FIN_OK;
    int code = set(store->lock, F_WRLCK, FIRST_BYTE + first, count);
    *held = code == EAGAIN || code == EACCES; /* anything else: this file system has no locks */
    return FIN_OK;
}

void fini_store_unlock(fin_store *store)
{
    if (store->lock >= 0)
        set(store->lock, F_UNLCK, FIRST_BYTE, BYTES);
    store->locked = false;
}

/* Whoever holds it: 1, 0 for nobody, -1 for a file system that has no locks. */
static int held_by_another(fin_store *store, int64_t first)
{
    struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    range.l_start = (off_t)(FIRST_BYTE + first);
    if (open_lock(store, NULL) || store->lock < 0 || fcntl(store->lock, F_OFD_GETLK, &range) != 0)
        return -1;
    return range.l_type != F_UNLCK;
}

#else

static fin_status take(fin_store *store, int64_t first, int64_t count, bool *held, fin_error *err)
{
    (void)store, (void)first, (void)count, (void)err;
    *held = false;
    return FIN_OK;
}

void fini_store_unlock(fin_store *store)
{
    store->locked = false;
}

static int held_by_another(fin_store *store, int64_t first)
{
    (void)store, (void)first;
    return -1;
}

#endif

static int64_t byte_of(const char *study)
{
    char hash[FIN_HASH_TEXT];
    fini_hash(study, hash);
    hash[16] = '\0';
    return (int64_t)(strtoull(hash, NULL, 16) % BYTES);
}

int fini_store_is_locked(fin_store *store, const char *study)
{
    return store->locked ? 1 : held_by_another(store, byte_of(study));
}

fin_status fini_store_lock(fin_store *store, const char *study, fin_error *err)
{
    bool held;
    fin_status status = take(store, byte_of(study), 1, &held, err);
    store->locked = store->locked || (!status && !held);
    if (!status && held)
        status = fini_fail(err, FIN_ERR_IO,
                           "another pass of study '%.80s' is running on this store ('finetti study "
                           "status' shows it); wait for it, stop it, or use another store",
                           study);
    return status;
}

fin_status fini_store_lock_all(fin_store *store, fin_error *err)
{
    bool held;
    FINI_TRY(take(store, 0, BYTES, &held, err));
    if (held)
        return fini_fail(err, FIN_ERR_IO,
                         "a study is running on the store '%s' ('finetti study status' shows it); "
                         "nothing was removed; wait for it or stop it",
                         store->shown);
    return FIN_OK;
}

/* ---- the end of a store ----------------------------------------------------------------------- */

/* Where the list is full the descriptor stays for good: that does no harm but its number. */
static void leave_open(const fin_store *store)
{
    for (int i = 0; i < LEFT_OPEN; i++)
        if (!left_open[i].used) {
            left_open[i].device = store->device;
            left_open[i].file = store->file;
            left_open[i].fd = store->lock;
            left_open[i].used = true;
            return;
        }
}

static void close_left(uint64_t device, uint64_t file)
{
    for (int i = 0; i < LEFT_OPEN; i++)
        if (left_open[i].used && left_open[i].device == device && left_open[i].file == file) {
            close(left_open[i].fd);
            left_open[i].used = false;
        }
}

void fini_stores_remove(fin_store *store)
{
    fini_store_unlock(store);
    pthread_mutex_lock(&lock);
    for (fin_store **at = &stores; *at; at = &(*at)->next)
        if (*at == store) {
            *at = store->next;
            break;
        }
    bool last = !fini_stores_have(store->device, store->file);
    if (store->lock >= 0 && last)
        close(store->lock);
    else if (store->lock >= 0)
        leave_open(store);
    if (last)
        close_left(store->device, store->file);
    store->lock = -1;
    pthread_mutex_unlock(&lock);
}
