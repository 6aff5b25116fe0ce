/* The tree itself: its memory, and messages that say where a node stands.
 *
 * Memory comes in chunks that are freed together. A node knows its line; one that came from --set
 * has a negative line, the number of the change, so that messages can name it. */
#include "data/data.h"
#include "study/read.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- memory --------------------------------------------------------------------------------- */

enum { CHUNK = 1 << 16, ALIGN = 16 };

typedef struct fini_chunk chunk;
struct fini_chunk {
    chunk *next;
    size_t used, room; /* behind this header, which takes ALIGN-ed space */
};
enum { CHUNK_HEAD = (sizeof(chunk) + ALIGN - 1) / ALIGN * ALIGN };

void *fini_tree_take(fini_tree *tree, int64_t count, size_t size)
{
    size_t bytes;
    if (count < 0 || __builtin_mul_overflow((size_t)count, size, &bytes) || bytes > SIZE_MAX / 4)
        return NULL;
    bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    chunk *c = tree->chunks;
    if (!c || c->room - c->used < bytes) {
        size_t room = bytes > CHUNK / 4 ? bytes : CHUNK;
        chunk *more = fini_alloc(CHUNK_HEAD + room);
        if (!more)
            return NULL;
        *more = (chunk){NULL, 0, room};
        /* A large piece has a chunk of its own, behind the one that still has room. */
        if (c && room != CHUNK) {
            more->next = c->next;
            c->next = more;
        } else {
            more->next = c;
            tree->chunks = more;
        }
        c = more;
    }
    void *piece = (unsigned char *)c + CHUNK_HEAD + c->used;
    c->used += bytes;
    memset(piece, 0, bytes);
    return piece;
}

char *fini_tree_copy(fini_tree *tree, const char *text, size_t length)
{
    char *copy = fini_tree_take(tree, (int64_t)length + 1, 1);
    if (copy)
        memcpy(copy, text, length);
    return copy;
}

fin_status fini_tree_fail_memory(fin_error *err)
{
    return fini_fail(err, FIN_ERR_MEMORY, "out of memory while a study was read");
}

void fini_tree_clear(fini_tree *tree)
{
    for (chunk *c = tree->chunks, *next; c; c = next) {
        next = c->next;
        fini_free(c);
    }
}

void fini_yaml_destroy(fini_tree *tree)
{
    if (tree)
        fini_tree_clear(tree);
    fini_free(tree);
}

fini_node *fini_yaml_root(const fini_tree *tree)
{
    return tree->root;
}

const char *fini_yaml_label(const fini_tree *tree)
{
    return tree->label;
}

/* ---- messages ------------------------------------------------------------------------------- */

/* line > 0: FILE:line:column; else a --set. A path of --set is the user's fault as an argument, a
 * file is malformed. */
static fin_status fail_where(const fini_tree *tree, int line, int column, fin_error *err,
                             const char *format, va_list args)
{
    fin_status status = line < 0 ? FIN_ERR_ARGUMENT : FIN_ERR_FORMAT;
    if (!err)
        return status;
    size_t room = sizeof err->message;
    int used;
    char shown[200];
    if (line < 0) {
        const char *path = tree->paths[-line - 1];
        used = snprintf(err->message, room,
                        "--set %s: ", fini_printable(path, strlen(path), shown, sizeof shown));
    } else {
        used = snprintf(err->message, room, "%s:%d:%d: ",
                        fini_printable(tree->label, strlen(tree->label), shown, sizeof shown), line,
                        column);
    }
    vsnprintf(err->message + used, room - (size_t)used, format, args);
    err->status = status;
    return status;
}

fin_status fini_node_fail(const fini_tree *tree, const fini_node *node, fin_error *err,
                          const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fin_status status = fail_where(tree, node->line, node->column, err, format, args);
    va_end(args);
    return status;
}

fin_status fini_node_fail_key(const fini_tree *tree, const fini_node *node, fin_error *err,
                              const char *format, ...)
{
    bool key = node->name && node->name_line;
    va_list args;
    va_start(args, format);
    fin_status status = fail_where(tree, key ? node->name_line : node->line,
                                   key ? node->name_column : node->column, err, format, args);
    va_end(args);
    return status;
}

/* ---- values of --set ------------------------------------------------------------------------ */

fin_status fini_tree_remember(fini_tree *tree, const char *path, fin_error *err)
{
    if (tree->path_count == tree->path_room) {
        int room = tree->path_room ? tree->path_room * 2 : 16;
        const char **larger = fini_tree_take(tree, room, sizeof *larger);
        if (!larger)
            return fini_tree_fail_memory(err);
        if (tree->path_count)
            memcpy(larger, tree->paths, (size_t)tree->path_count * sizeof *larger);
        tree->paths = larger;
        tree->path_room = room;
    }
    const char *copy = fini_tree_copy(tree, path, strlen(path));
    if (!copy)
        return fini_tree_fail_memory(err);
    tree->paths[tree->path_count++] = copy;
    return FIN_OK;
}
