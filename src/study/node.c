/* Asking a node of the tree for what it should be, and changing a map. Messages name file, line,
 * column and the nearest valid word. */
#include "data/data.h"
#include "study/read.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

bool fini_same_name(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if (*a != *b && !((*a == '-' || *a == '_') && (*b == '-' || *b == '_')))
            return false;
    return *a == *b;
}

bool fini_is_name(const char *text)
{
    size_t length = strlen(text);
    return length >= 1 && length <= FINI_NAME_MOST && text[0] != '-' && /* no option */
           strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") ==
               length;
}

const char *fini_shown(const char *word, char *buffer)
{
    return fini_printable(word, strlen(word), buffer, FINI_SHOWN);
}

char *fini_hint(const char *word, const char *const *names, int count, char *buffer, size_t size)
{
    const char *near = fin_nearest_name(word, names, count);
    size_t used = 0;
    buffer[0] = '\0';
    if (near) {
        snprintf(buffer, size, "%s", fini_did_you_mean_quoted(near, ""));
        return buffer;
    }
    for (int i = 0; i < count; i++) {
        int length =
            snprintf(buffer + used, size - used, "%s%s",
                     i ? ", " : (count > 1 ? "; allowed are " : "; allowed is "), names[i]);
        if (length < 0 || (size_t)length >= size - used) { /* a whole name, or none of it */
            buffer[used] = '\0';
            break;
        }
        used += (size_t)length;
    }
    return buffer;
}

/* ---- reading -------------------------------------------------------------------------------- */

bool fini_node_is_null(const fini_node *node)
{
    return node->kind == FINI_TEXT && node->plain &&
           (!*node->text || strcmp(node->text, "~") == 0 || strcasecmp(node->text, "null") == 0);
}

const fini_node *fini_node_get(const fini_node *node, const char *key)
{
    if (!node || node->kind != FINI_MAP)
        return NULL;
    for (int i = 0; i < node->count; i++)
        if (strcmp(node->child[i].name, key) == 0)
            return &node->child[i];
    return NULL;
}

static const char *kind_name(const fini_node *node)
{
    return node->kind == FINI_LIST ? "a list" : node->kind == FINI_MAP ? "a map" : "a text";
}

fin_status fini_node_keys(const fini_tree *tree, const fini_node *node, const char *what,
                          const char *const *names, fin_error *err)
{
    int count = 0;
    while (names[count])
        count++;
    if (node->kind != FINI_MAP)
        return fini_node_fail(tree, node, err, "%s must be a map, such as {%s: ...}, not %s", what,
                              names[0], fini_node_is_null(node) ? "nothing" : kind_name(node));
    for (int i = 0; i < node->count; i++) {
        const char *name = node->child[i].name;
        int j = 0;
        while (j < count && strcmp(name, names[j]) != 0)
            j++;
        char shown[FINI_SHOWN], hint[300];
        if (j == count)
            return fini_node_fail_key(tree, &node->child[i], err, "%s has no key '%s'%s", what,
                                      fini_shown(name, shown),
                                      fini_hint(name, names, count, hint, sizeof hint));
    }
    return FIN_OK;
}

/* The child as a text, or NULL with FIN_OK where it is missing and need not be there. */
static fin_status text_child(const fini_tree *tree, const fini_node *map, const char *key,
                             bool required, const char *kind, const fini_node **out, fin_error *err)
{
    const fini_node *node = fini_node_get(map, key);
    *out = NULL;
    if (!node && required)
        return fini_node_fail(tree, map, err, "'%s' is missing here: %s", key, kind);
    if (!node)
        return FIN_OK;
    if (node->kind != FINI_TEXT)
        return fini_node_fail(tree, node, err, "%s must be %s, not %s", key, kind, kind_name(node));
    if (fini_node_is_null(node))
        return fini_node_fail_key(tree, node, err, "%s has no value; it must be %s", key, kind);
    *out = node;
    return FIN_OK;
}

fin_status fini_node_text(const fini_tree *tree, const fini_node *map, const char *key,
                          const char *fallback, const char **text, fin_error *err)
{
    const fini_node *node;
    FINI_TRY(text_child(tree, map, key, !fallback, "a text", &node, err));
    *text = node ? node->text : fallback;
    return FIN_OK;
}

bool fini_read_number(const char *text, double *number)
{
    const char *end = text + strlen(text);
    return fini_decimal(text, end, number) == end && !isnan(*number);
}

fin_status fini_node_number(const fini_tree *tree, const fini_node *map, const char *key,
                            double fallback, double *number, fin_error *err)
{
    const fini_node *node;
    char shown[FINI_SHOWN];
    FINI_TRY(text_child(tree, map, key, isnan(fallback), "a number", &node, err));
    *number = fallback;
    if (node && !fini_read_number(node->text, number))
        return fini_node_fail(tree, node, err, "%s = '%s'; it must be a number", key,
                              fini_shown(node->text, shown));
    return FIN_OK;
}

fin_status fini_node_flag(const fini_tree *tree, const fini_node *map, const char *key,
                          int fallback, bool *flag, fin_error *err)
{
    const fini_node *node;
    char shown[FINI_SHOWN];
    FINI_TRY(text_child(tree, map, key, fallback < 0, "true or false", &node, err));
    *flag = fallback > 0;
    if (!node)
        return FIN_OK;
    *flag = strcmp(node->text, "true") == 0;
    if (!*flag && strcmp(node->text, "false") != 0)
        return fini_node_fail(tree, node, err, "%s = '%s'; it must be true or false", key,
                              fini_shown(node->text, shown));
    return FIN_OK;
}

void fini_ask_keys(fini_ask *ask, const fini_node *map, const char *what, const char *const *keys)
{
    FINI_ASK(ask, fini_node_keys(ask->tree, map, what, keys, ask->err));
}

const char *fini_ask_text(fini_ask *ask, const fini_node *map, const char *key,
                          const char *fallback)
{
    const char *text = "";
    FINI_ASK(ask, fini_node_text(ask->tree, map, key, fallback, &text, ask->err));
    return text;
}

double fini_ask_number(fini_ask *ask, const fini_node *map, const char *key, double fallback)
{
    double number = 0;
    FINI_ASK(ask, fini_node_number(ask->tree, map, key, fallback, &number, ask->err));
    return number;
}

bool fini_ask_flag(fini_ask *ask, const fini_node *map, const char *key, int fallback)
{
    bool flag = false;
    FINI_ASK(ask, fini_node_flag(ask->tree, map, key, fallback, &flag, ask->err));
    return flag;
}

/* ---- changing ------------------------------------------------------------------------------- */

fini_node fini_node_empty(const fini_node *node, fini_kind kind)
{
    return (fini_node){.kind = kind, .line = node->line, .column = node->column};
}

fini_node *fini_node_find(fini_node *map, const char *key)
{
    for (int i = 0; map && map->kind == FINI_MAP && i < map->count; i++)
        if (fini_same_name(map->child[i].name, key))
            return &map->child[i];
    return NULL;
}

fin_status fini_node_put(fini_tree *tree, fini_node *map, const char *key, const fini_node *value,
                         fin_error *err)
{
    fini_node *old = fini_node_find(map, key), node = *value;
    if (map->kind != FINI_MAP) /* reading will tell */
        return FIN_OK;
    if (!old) {
        fini_node *larger = fini_tree_take(tree, (int64_t)map->count + 1, sizeof *larger);
        node.name = fini_tree_copy(tree, key, strlen(key));
        if (!larger || !node.name)
            return fini_tree_fail_memory(err);
        if (map->count)
            memcpy(larger, map->child, (size_t)map->count * sizeof *larger);
        map->child = larger;
        old = &map->child[map->count++];
    } else {
        node.name = old->name;
    }
    if (!value->name) { /* it stands where its value does */
        node.name_line = value->line;
        node.name_column = value->column;
    }
    *old = node;
    return FIN_OK;
}

void fini_node_remove(fini_node *map, const char *key)
{
    fini_node *node = fini_node_find(map, key);
    if (!node)
        return;
    fini_node *end = map->child + map->count--;
    memmove(node, node + 1, (size_t)(end - node - 1) * sizeof *node);
}

fin_status fini_node_copy(fini_tree *tree, const fini_node *from, fini_node *out, fin_error *err)
{
    *out = *from;
    if (from->kind == FINI_TEXT)
        return FIN_OK;
    out->child = fini_tree_take(tree, from->count, sizeof *out->child);
    if (!out->child)
        return fini_tree_fail_memory(err);
    for (int i = 0; i < from->count; i++)
        FINI_TRY(fini_node_copy(tree, &from->child[i], &out->child[i], err));
    return FIN_OK;
}
