/* Whole files in, all-or-nothing files out.
 *
 * Output goes to a temporary file beside its target, because rename is atomic only inside one file
 * system. Where the system can (O_TMPFILE), that file has no name until it is complete, so that a
 * program that dies in the middle, by kill -9 or inside another library, leaves nothing. The file
 * is opened with mode 0666 rather than by mkstemp: the kernel then applies the umask, which a
 * library cannot read without a race. A file that is replaced keeps its permissions, and a symbolic
 * link keeps being one: its target is replaced.
 *
 * Input is read into memory, not mapped: a mapped file that another program cuts short would end
 * this one with SIGBUS. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "data/data.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum {
    BUFFER = 1 << 16,
    TEMPORARY_NAME = 64,
    ATTEMPTS = 1000,
    READ_FIRST = 1 << 16,
    PIECE = 1 << 20
};

struct fini_output {
    fini_arena arena; /* holds this struct too */
    int fd;
    bool standard;   /* standard output, which is not ours to close */
    bool direct;     /* the target itself is open, there is nothing to rename */
    char *path;      /* as given, for messages */
    char *target;    /* with symbolic links followed */
    char *temporary; /* "" if direct, or while the file has no name */
    unsigned char *buffer;
    size_t used;       /* of the buffer */
    int64_t position;  /* of the start of the buffer in the file */
    fin_error failure; /* the first one, if its status is not FIN_OK */
};

fin_status fini_fail_io(fin_error *err, const char *action, const char *path, int number)
{
    char reason[128] = "unknown error";
    strerror_r(number, reason, sizeof reason);
    return fini_fail(err, FIN_ERR_IO, "cannot %s '%.300s': %s", action, path, reason);
}

static bool is_dash(const char *path)
{
    return strcmp(path, "-") == 0;
}

/* Calls itself what it is in messages. */
static const char *shown(const char *path, const char *standard)
{
    return is_dash(path) ? standard : path;
}

/* ---- output ------------------------------------------------------------------------------- */

/* What the name stands for: direct or to be renamed, and where. */
static fin_status inspect(const char *path, bool seekable, char target[PATH_MAX], bool *direct,
                          mode_t *mode, fin_error *err)
{
    struct stat info;
    size_t length = strlen(path);
    *mode = 0;
    *direct = is_dash(path);
    if (length == 0)
        return fini_fail(err, FIN_ERR_ARGUMENT, "the name of the output file is empty");
    if (length >= PATH_MAX)
        return fini_fail_io(err, "write", path, ENAMETOOLONG);
    memcpy(target, path, length + 1);
    if (!*direct && stat(path, &info) == 0) {
        if (S_ISDIR(info.st_mode))
            return fini_fail(err, FIN_ERR_IO, "cannot write '%.300s': it is a folder", path);
        if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0)
            return fini_fail_io(err, "write", path, errno);
        *direct = !S_ISREG(info.st_mode);
        *mode = info.st_mode & 0777;
        if (!*direct && !realpath(path, target))
            return fini_fail_io(err, "write", path, errno);
    } else if (!*direct) {
        if (errno != ENOENT)
            return fini_fail_io(err, "write", path, errno);
        if (lstat(path, &info) == 0)
            return fini_fail(err, FIN_ERR_IO,
                             "cannot write '%.300s': it is a symbolic link to nothing", path);
        if (path[length - 1] == '/')
            return fini_fail(err, FIN_ERR_IO, "cannot write '%.300s': it names a folder", path);
    }
    if (*direct && seekable)
        return fini_fail(err, FIN_ERR_IO,
                         "cannot write '%.300s': this format needs a regular file, not %s", path,
                         is_dash(path) ? "standard output" : "a device or a pipe");
    return FIN_OK;
}

static fini_output *layout(fini_arena *arena, size_t path, size_t target)
{
    fini_output *output = fini_take(arena, 1, sizeof *output);
    char *path_copy = fini_take(arena, (int64_t)path + 1, 1);
    char *target_copy = fini_take(arena, (int64_t)target + 1, 1);
    char *temporary = fini_take(arena, (int64_t)target + TEMPORARY_NAME, 1);
    unsigned char *buffer = fini_take(arena, BUFFER, 1);
    if (!arena->base)
        return NULL;
    *output = (fini_output){.fd = -1,
                            .path = path_copy,
                            .target = target_copy,
                            .temporary = temporary,
                            .buffer = buffer};
    return output;
}

static int folder_length(const fini_output *output)
{
    const char *slash = strrchr(output->target, '/');
    return slash ? (int)(slash + 1 - output->target) : 0;
}

/* Gives the file a name that is free in the folder of the target, by `make` (0, or -1 and errno).
 * The name's length does not depend on that of the target's, which may already be as long as the
 * file system allows. */
static bool name_temporary(fini_output *output, int (*make)(fini_output *output))
{
    static atomic_uint counter;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        sprintf(output->temporary, "%.*s.finetti-%ld-%u.tmp", folder_length(output), output->target,
                (long)getpid(), atomic_fetch_add(&counter, 1));
        if (make(output) == 0)
            return true;
        if (errno != EEXIST && errno != EINTR)
            break;
    }
    output->temporary[0] = '\0'; /* not ours, if it exists at all */
    return false;
}

static int create_named(fini_output *output)
{
    output->fd = open(output->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return output->fd >= 0 ? 0 : -1;
}

static int link_nameless(fini_output *output)
{
    char self[32];
    snprintf(self, sizeof self, "/proc/self/fd/%d", output->fd);
    return linkat(AT_FDCWD, self, AT_FDCWD, output->temporary, AT_SYMLINK_FOLLOW);
}

/* A file without a name, or fd = -1 where there is no such thing. */
static void open_nameless(fini_output *output)
{
    output->fd = -1;
#ifdef __O_TMPFILE
    char folder[PATH_MAX] = ".";
    if (folder_length(output) > 0)
        snprintf(folder, sizeof folder, "%.*s", folder_length(output), output->target);
    if (access("/proc/self/fd", X_OK) == 0)
        output->fd = open(folder, __O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
#endif
}

static fin_status open_temporary(fini_output *output, mode_t mode, fin_error *err)
{
    int folder = folder_length(output);
    open_nameless(output);
    if (output->fd >= 0 || name_temporary(output, create_named)) {
        if (mode)
            (void)fchmod(output->fd, mode); /* a file system without modes is no failure */
        return FIN_OK;
    }
    int number = errno;
    char reason[128] = "unknown error";
    strerror_r(number, reason, sizeof reason);
    return fini_fail(err, FIN_ERR_IO, "cannot write '%.300s': no file can be created in '%.*s': %s",
                     output->path, folder ? (folder > 80 ? 80 : folder) : 1,
                     folder ? output->target : ".", reason);
}

fin_status fini_output_open(const char *path, bool seekable, fini_output **out, fin_error *err)
{
    char target[PATH_MAX];
    bool direct;
    mode_t mode;
    *out = NULL;
    fin_status status = inspect(path, seekable, target, &direct, &mode, err);
    if (status)
        return status;
    const char *name = shown(path, "standard output");
    fini_arena arena = {0};
    layout(&arena, strlen(name), strlen(target));
    FINI_TRY(fini_arena_open(&arena, "an output file", err));
    fini_output *output = layout(&arena, strlen(name), strlen(target));
    output->arena = arena;
    output->direct = direct;
    output->standard = is_dash(path);
    strcpy(output->path, name);
    strcpy(output->target, target);
    if (output->standard) {
        fflush(stdout); /* what the program has printed so far comes first */
        output->fd = STDOUT_FILENO;
    } else if (direct) {
        output->fd = open(target, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        status = output->fd >= 0 ? FIN_OK : fini_fail_io(err, "write", path, errno);
    } else {
        status = open_temporary(output, mode, err);
    }
    FINI_HAND_OVER(out, output, status, fini_output_abort);
}

static fin_status remember(fini_output *output, const char *action, int number)
{
    return fini_fail_io(&output->failure, action, output->path, number);
}

static fin_status report(const fini_output *output, fin_error *err)
{
    if (output->failure.status && err)
        *err = output->failure;
    return output->failure.status;
}

/* Writes it all or remembers why not. */
static void write_through(fini_output *output, const unsigned char *data, size_t size)
{
    while (size > 0 && !output->failure.status) {
        ssize_t written = write(output->fd, data, size);
        if (written < 0 && errno != EINTR)
            remember(output, "write", errno);
        if (written > 0) {
            data += written;
            size -= (size_t)written;
            output->position += written;
        }
    }
}

static void flush(fini_output *output)
{
    write_through(output, output->buffer, output->used);
    output->used = 0;
}

fin_status fini_output_write(fini_output *output, const void *data, size_t size, fin_error *err)
{
    if (size > BUFFER - output->used)
        flush(output);
    if (size >= BUFFER) {
        write_through(output, data, size);
    } else if (!output->failure.status) {
        memcpy(output->buffer + output->used, data, size);
        output->used += size;
    }
    return report(output, err);
}

int64_t fini_output_tell(const fini_output *output)
{
    return output->position + (int64_t)output->used;
}

fin_status fini_output_seek(fini_output *output, int64_t position, fin_error *err)
{
    flush(output);
    if (!output->failure.status && lseek(output->fd, (off_t)position, SEEK_SET) < 0)
        remember(output, "move in", errno);
    output->position = position;
    return report(output, err);
}

/* Closes, removes what is not committed, frees. */
static void end(fini_output *output)
{
    if (output->fd >= 0 && !output->standard)
        close(output->fd);
    if (output->temporary[0])
        unlink(output->temporary);
    fini_arena arena = output->arena;
    fini_arena_close(&arena);
}

fin_status fini_output_commit(fini_output *output, fin_error *err)
{
    flush(output);
    if (!output->direct && !output->failure.status && fsync(output->fd) != 0)
        remember(output, "write", errno);
    if (!output->direct && !output->failure.status && !output->temporary[0] &&
        !name_temporary(output, link_nameless))
        remember(output, "write", errno);
    /* Network file systems may say only at the close that the disk was full. */
    if (!output->failure.status && !output->standard) {
        if (close(output->fd) != 0)
            remember(output, "write", errno);
        output->fd = -1;
    }
    if (!output->direct && !output->failure.status) {
        if (rename(output->temporary, output->target) == 0)
            output->temporary[0] = '\0';
        else
            remember(output, "write", errno);
    }
    fin_status status = report(output, err);
    end(output);
    return status;
}

void fini_output_abort(fini_output *output)
{
    if (output)
        end(output);
}

/* ---- input -------------------------------------------------------------------------------- */

fin_status fini_open_regular(const char *path, int *fd, int64_t *size, fin_error *err)
{
    struct stat info;
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); /* a pipe must not wait */
    fin_status status = FIN_OK;
    if (*fd < 0 || fstat(*fd, &info) != 0)
        status = fini_fail_io(err, "read", path, errno);
    else if (!S_ISREG(info.st_mode))
        status = fini_fail(err, FIN_ERR_IO, "cannot read '%.300s': it is %s, not a regular file",
                           path, S_ISDIR(info.st_mode) ? "a folder" : "a device or a pipe");
    else
        *size = info.st_size;
    if (status && *fd >= 0)
        close(*fd);
    return status;
}

/* Bytes of a file, unpacked if they are gzip. */
typedef struct source {
    int fd;
    bool packed, ended; /* ended: a gzip member has ended, and another may follow */
    z_stream z;
    unsigned char *in; /* [PIECE] packed bytes */
} source;

static ssize_t read_some(int fd, void *to, size_t room)
{
    for (;;) {
        ssize_t got = read(fd, to, room);
        if (got >= 0 || errno != EINTR)
            return got;
    }
}

/* The next bytes: as read, and -2 for gzip that is damaged or cut short. */
static ssize_t next_bytes(source *s, char *to, size_t room)
{
    if (!s->packed)
        return read_some(s->fd, to, room);
    s->z.next_out = (unsigned char *)to;
    s->z.avail_out = (unsigned)room;
    while (s->z.avail_out == room) {
        if (s->z.avail_in == 0) {
            ssize_t got = read_some(s->fd, s->in, PIECE);
            if (got <= 0)
                return got < 0 ? got : s->ended ? 0 : -2;
            s->z.next_in = s->in;
            s->z.avail_in = (unsigned)got;
        }
        if (s->ended && inflateReset(&s->z) != Z_OK)
            return -2;
        s->ended = false;
        int code = inflate(&s->z, Z_NO_FLUSH);
        s->ended = code == Z_STREAM_END;
        if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
            return -2;
    }
    return (ssize_t)(room - s->z.avail_out);
}

/* The first two bytes say whether it is gzip; if not, they are the first of the block. */
static fin_status open_source(source *s, const char *path, char *block, size_t *used,
                              fin_error *err)
{
    ssize_t got;
    while (*used < 2 && (got = read_some(s->fd, block + *used, 2 - *used)) != 0) {
        if (got < 0)
            return fini_fail_io(err, "read", path, errno);
        *used += (size_t)got;
    }
    s->packed = *used == 2 && memcmp(block, "\x1f\x8b", 2) == 0;
    if (!s->packed)
        return FIN_OK;
    s->in = fini_alloc(PIECE);
    if (!s->in || inflateInit2(&s->z, 16 + MAX_WBITS) != Z_OK)
        return fini_fail_memory(err, PIECE, "the text of a file");
    memcpy(s->in, block, 2);
    s->z.next_in = s->in;
    s->z.avail_in = 2;
    *used = 0;
    return FIN_OK;
}

static fin_status grow(char **block, size_t *room, size_t used, fin_error *err)
{
    size_t more = *room <= SIZE_MAX / 4 ? *room * 2 : 0;
    char *larger = more ? fini_alloc(more) : NULL;
    if (!larger)
        return fini_fail_memory(err, more, "the text of a file");
    memcpy(larger, *block, used);
    fini_free(*block);
    *block = larger;
    *room = more;
    return FIN_OK;
}

static fin_status read_all(int fd, const char *path, size_t room, char **text, size_t *size,
                           fin_error *err)
{
    source s = {.fd = fd};
    char *block = fini_alloc(room);
    size_t used = 0;
    if (!block)
        return fini_fail_memory(err, room, "the text of a file");
    fin_status status = open_source(&s, path, block, &used, err);
    bool stop = !s.packed && memchr(block, '\0', used);
    while (!status && !stop) {
        if (used == room && (status = grow(&block, &room, used, err))) /* a pipe, or it has grown */
            break;
        /* by pieces, so that the search for NUL finds them in the cache */
        ssize_t got = next_bytes(&s, block + used, room - used < PIECE ? room - used : PIECE);
        if (got == -2)
            status = fini_fail(err, FIN_ERR_FORMAT, "'%.300s' is gzip that is damaged or cut short",
                               path);
        else if (got < 0)
            status = fini_fail_io(err, "read", path, errno);
        else
            stop = got == 0 || memchr(block + used, '\0', (size_t)got);
        used += got > 0 ? (size_t)got : 0;
    }
    if (!status && used == room)
        status = grow(&block, &room, used, err);
    if (s.packed)
        inflateEnd(&s.z);
    fini_free(s.in);
    if (status) {
        fini_free(block);
        return status;
    }
    block[used] = '\0';
    *text = block;
    *size = used;
    return FIN_OK;
}

fin_status fini_read_text(const char *path, char **text, size_t *size, fin_error *err)
{
    struct stat info;
    bool standard = is_dash(path);
    *text = NULL;
    *size = 0;
    int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    const char *name = shown(path, "standard input");
    if (fd < 0 || fstat(fd, &info) != 0) {
        int number = errno;
        if (fd >= 0 && !standard)
            close(fd);
        return fini_fail_io(err, "read", name, number);
    }
    fin_status status;
    size_t room = READ_FIRST;
    if (S_ISREG(info.st_mode) && info.st_size > 0) /* one more: the end is seen without growing */
        room = (uintmax_t)info.st_size < SIZE_MAX / 4 ? (size_t)info.st_size + 1 : SIZE_MAX;
    if (S_ISDIR(info.st_mode))
        status = fini_fail(err, FIN_ERR_IO, "cannot read '%.300s': it is a folder", name);
    else
        status = read_all(fd, name, room, text, size, err);
    if (!standard)
        close(fd);
    return status;
}
