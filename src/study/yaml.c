/* YAML text -> a tree of nodes that know where they stand.
 *
 * libyaml's events, and not its documents, because limits must hold while reading: depth and number
 * of nodes are counted as they come. What makes YAML surprising or dangerous has no use in a study
 * and is refused with a message: anchors and aliases (a few lines of them unfold to gigabytes),
 * tags, merge keys, several documents, keys that are lists. Text is checked before libyaml sees it,
 * so that its readers meet valid UTF-8 without control characters only, and again after it, because
 * escapes ("\0") can bring such characters back.
 *
 * Children of a list or map wait on a stack until it is complete; then they are copied side by side
 * into the tree's memory. */
#include "data/data.h"
#include "study/read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

/* ---- is it text? ---------------------------------------------------------------------------- */

/* Length of the character at p, 0 if a study may not have it. C1 controls hold U+0085, which
 * libyaml would take for the end of a line. */
static int character(const char *p, const char *end, const char **what)
{
    int length = fini_utf8_length(p, end);
    unsigned char a = (unsigned char)p[0];
    *what = "a control character";
    if (length == 0)
        *what = "a byte that is not UTF-8";
    else if (a == 0)
        *what = "a NUL byte";
    else if ((length == 1 && a >= 0x20 && a != 0x7f) || a == '\t' || a == '\n')
        return length;
    else if (length > 1 && !(a == 0xc2 && (unsigned char)p[1] < 0xa0))
        return length;
    return 0;
}

static fin_status check_text(const fini_tree *tree, int change, const char *text, size_t size,
                             fin_error *err)
{
    fini_node here = {.line = 1, .column = 1};
    for (const char *p = text, *end = text + size; p < end;) {
        const char *what;
        int length = *p == '\r' ? 1 : character(p, end, &what);
        if (length == 0) {
            here.line = change ? -change : here.line;
            return fini_node_fail(tree, &here, err,
                                  "here stands %s (0x%02x); a study is text in UTF-8", what,
                                  (unsigned char)*p);
        }
        bool ends = *p == '\n' || (*p == '\r' && !(p + 1 < end && p[1] == '\n'));
        here.line += ends;
        here.column = ends ? 1 : here.column + (*p != '\r');
        p += length;
    }
    return FIN_OK;
}

/* ---- events -> tree ------------------------------------------------------------------------- */

typedef struct frame {
    fini_node node; /* the list or map that is open */
    int first;      /* its children on the stack */
    bool has_key;
    fini_node key; /* its name and where it stands */
} frame;

typedef struct builder {
    yaml_parser_t yaml;
    fini_tree *tree;
    int change; /* number of the --set, 0 for the file */
    frame frames[FINI_YAML_DEPTH];
    int depth;
    fini_node *stack; /* fini_alloc memory */
    int used, room, nodes, documents;
    fini_node root;
    fin_error *err;
} builder;

static fini_node place(const builder *b, yaml_mark_t mark)
{
    int line = (int)mark.line + 1;
    return (fini_node){.line = b->change ? -b->change : line, .column = (int)mark.column + 1};
}

#define FAIL(b, mark, ...)                                                                         \
    fini_node_fail((b)->tree, &(fini_node[]){place(b, mark)}[0], (b)->err, __VA_ARGS__)

static fin_status fail_yaml(builder *b)
{
    yaml_parser_t *yaml = &b->yaml;
    if (yaml->error == YAML_MEMORY_ERROR)
        return fini_tree_fail_memory(b->err);
    const char *problem = yaml->problem ? yaml->problem : "unknown problem";
    const char *tab =
        strstr(problem, "cannot start any token")
            ? " (a tab may not indent, and a text that begins with @ ` or % needs quotes)"
            : "";
    if (yaml->error == YAML_READER_ERROR)
        return FAIL(b, yaml->mark, "this is no YAML: %s", problem);
    if (yaml->context && !strstr(yaml->context, "next token"))
        return FAIL(b, yaml->problem_mark, "this is no YAML: %s%s, %s that begins at line %zu",
                    problem, tab, yaml->context, yaml->context_mark.line + 1);
    return FAIL(b, yaml->problem_mark, "this is no YAML: %s%s", problem, tab);
}

static fin_status push(builder *b, const fini_node *node)
{
    if (b->used == b->room) {
        int room = b->room ? b->room * 2 : 256;
        fini_node *larger = fini_alloc_array(room, sizeof *larger);
        if (!larger)
            return fini_tree_fail_memory(b->err);
        if (b->used)
            memcpy(larger, b->stack, (size_t)b->used * sizeof *larger);
        fini_free(b->stack);
        b->stack = larger;
        b->room = room;
    }
    b->stack[b->used++] = *node;
    return FIN_OK;
}

/* A complete node: under its key, or into its list, or it is the root. */
static fin_status add(builder *b, fini_node node)
{
    if (b->depth == 0) {
        b->root = node;
        return FIN_OK;
    }
    frame *top = &b->frames[b->depth - 1];
    if (top->node.kind == FINI_MAP) {
        node.name = top->key.name;
        node.name_line = top->key.line;
        node.name_column = top->key.column;
        top->has_key = false;
    }
    return push(b, &node);
}

static int by_name(const void *a, const void *b)
{
    const fini_node *const *x = a, *const *y = b;
    int order = strcmp((*x)->name, (*y)->name);
    return order ? order : (*x < *y ? -1 : *x > *y);
}

/* Sorted, because a hostile map may have very many keys. */
static fin_status check_keys(builder *b, const fini_node *map)
{
    if (map->count < 2)
        return FIN_OK;
    const fini_node **order = fini_alloc_array(map->count, sizeof *order);
    if (!order)
        return fini_tree_fail_memory(b->err);
    for (int i = 0; i < map->count; i++)
        order[i] = &map->child[i];
    qsort(order, (size_t)map->count, sizeof *order, by_name);
    fin_status status = FIN_OK;
    for (int i = 1; i < map->count && !status; i++) {
        char shown[FINI_SHOWN];
        if (strcmp(order[i]->name, order[i - 1]->name) == 0)
            status = fini_node_fail_key(b->tree, order[i], b->err,
                                        "the key '%s' stands here for the second time; the first "
                                        "is in line %d",
                                        fini_shown(order[i]->name, shown), order[i - 1]->name_line);
    }
    fini_free(order);
    return status;
}

static fin_status close_frame(builder *b)
{
    frame *top = &b->frames[b->depth - 1];
    fini_node node = top->node;
    node.count = b->used - top->first;
    node.child = fini_tree_take(b->tree, node.count, sizeof *node.child);
    if (!node.child)
        return fini_tree_fail_memory(b->err);
    if (node.count)
        memcpy(node.child, b->stack + top->first, (size_t)node.count * sizeof *node.child);
    b->used = top->first;
    b->depth--;
    FINI_TRY(node.kind == FINI_MAP ? check_keys(b, &node) : FIN_OK);
    return add(b, node);
}

static fin_status open_frame(builder *b, fini_kind kind, const yaml_event_t *event)
{
    if (b->depth == FINI_YAML_DEPTH)
        return FAIL(b, event->start_mark, "lists and maps are nested more than %d deep",
                    (int)FINI_YAML_DEPTH);
    frame *top = &b->frames[b->depth++];
    *top = (frame){.node = place(b, event->start_mark), .first = b->used};
    top->node.kind = kind;
    return FIN_OK;
}

static fin_status read_scalar(builder *b, const yaml_event_t *event)
{
    const char *value = (const char *)event->data.scalar.value, *what;
    size_t length = event->data.scalar.length;
    for (const char *p = value, *end = value + length; p < end;) {
        int step = character(p, end, &what);
        if (step == 0)
            return FAIL(b, event->start_mark, "this text has %s (0x%02x) in it", what,
                        (unsigned char)*p);
        p += step;
    }
    fini_node node = place(b, event->start_mark);
    node.kind = FINI_TEXT;
    node.plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    node.text = fini_tree_copy(b->tree, value, length);
    if (!node.text)
        return fini_tree_fail_memory(b->err);
    frame *top = b->depth ? &b->frames[b->depth - 1] : NULL;
    if (!top || top->node.kind != FINI_MAP || top->has_key)
        return add(b, node);
    if (node.plain && strcmp(node.text, "<<") == 0)
        return FAIL(b, event->start_mark, "merge keys (<<) are not read; write the keys out");
    if (length == 0)
        return FAIL(b, event->start_mark, "a key is missing before the ':'");
    top->key = node;
    top->key.name = node.text;
    top->has_key = true;
    return FIN_OK;
}

/* What every value may not have. */
static fin_status check_value(builder *b, const yaml_event_t *event, const yaml_char_t *anchor,
                              const yaml_char_t *tag)
{
    char shown[FINI_SHOWN];
    const frame *top = b->depth ? &b->frames[b->depth - 1] : NULL;
    if (anchor)
        return FAIL(b, event->start_mark, "anchors (&%s) are not read; write the value out",
                    fini_shown((const char *)anchor, shown));
    if (tag)
        return FAIL(b, event->start_mark, "tags (%s) are not read; leave it out",
                    fini_shown((const char *)tag, shown));
    if (event->type != YAML_SCALAR_EVENT && top && top->node.kind == FINI_MAP && !top->has_key)
        return FAIL(b, event->start_mark, "a key must be a word, not a list or a map");
    if (++b->nodes > FINI_YAML_NODES)
        return FAIL(b, event->start_mark, "there are more than %d values", (int)FINI_YAML_NODES);
    return FIN_OK;
}

static fin_status read_event(builder *b, const yaml_event_t *event)
{
    fin_status status = FIN_OK;
    char shown[FINI_SHOWN];
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (b->documents++)
            return FAIL(b, event->start_mark, "a second document begins here; a file has one");
        if (event->data.document_start.tag_directives.start !=
            event->data.document_start.tag_directives.end)
            return FAIL(b, event->start_mark, "%%TAG is not read; leave it out");
        return FIN_OK;
    case YAML_ALIAS_EVENT:
        return FAIL(b, event->start_mark, "aliases (*%s) are not read; write the value out",
                    fini_shown((const char *)event->data.alias.anchor, shown));
    case YAML_SCALAR_EVENT:
        status = check_value(b, event, event->data.scalar.anchor, event->data.scalar.tag);
        return status ? status : read_scalar(b, event);
    case YAML_SEQUENCE_START_EVENT:
        status = check_value(b, event, event->data.sequence_start.anchor,
                             event->data.sequence_start.tag);
        return status ? status : open_frame(b, FINI_LIST, event);
    case YAML_MAPPING_START_EVENT:
        status =
            check_value(b, event, event->data.mapping_start.anchor, event->data.mapping_start.tag);
        return status ? status : open_frame(b, FINI_MAP, event);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return close_frame(b);
    default:
        return FIN_OK;
    }
}

/* Reads text into *root, in the tree's memory. */
static fin_status build(fini_tree *tree, int change, const char *text, size_t size, fini_node *root,
                        fin_error *err)
{
    fin_status status = check_text(tree, change, text, size, err);
    if (status)
        return status;
    FINI_FREED builder *b = fini_alloc(sizeof *b); /* large for a stack of unknown size */
    if (!b)
        return fini_tree_fail_memory(err);
    memset(b, 0, sizeof *b);
    b->tree = tree;
    b->change = change;
    b->err = err;
    if (!yaml_parser_initialize(&b->yaml))
        return fini_tree_fail_memory(err);
    if (size >= 3 &&
        memcmp(text, "\xef\xbb\xbf", 3) == 0) { /* a byte order mark, as some editors do */
        text += 3;
        size -= 3;
    }
    yaml_parser_set_encoding(&b->yaml, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&b->yaml, (const unsigned char *)text, size);
    for (bool ended = false; !ended && !status;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&b->yaml, &event)) {
            status = fail_yaml(b);
            break;
        }
        ended = event.type == YAML_STREAM_END_EVENT;
        status = read_event(b, &event);
        yaml_event_delete(&event);
    }
    if (!status && !b->documents)
        status =
            FAIL(b, (yaml_mark_t){0}, "there is nothing in it; a study begins with 'study: NAME'");
    *root = b->root;
    yaml_parser_delete(&b->yaml);
    fini_free(b->stack);
    return status;
}

fin_status fini_yaml_parse(const char *text, size_t size, const char *label, fini_tree **out,
                           fin_error *err)
{
    *out = NULL;
    fini_tree *tree = fini_alloc(sizeof *tree);
    if (!tree)
        return fini_tree_fail_memory(err);
    memset(tree, 0, sizeof *tree);
    fin_status status = FIN_OK;
    tree->label = fini_tree_copy(tree, label, strlen(label));
    tree->root = fini_tree_take(tree, 1, sizeof *tree->root);
    if (!tree->label || !tree->root)
        status = fini_tree_fail_memory(err);
    else if (size > FINI_YAML_BYTES)
        status = fini_fail(err, FIN_ERR_FORMAT,
                           "%.200s: it is larger than %d bytes, the most that a study may have",
                           label, (int)FINI_YAML_BYTES);
    else
        status = build(tree, 0, text, size, tree->root, err);
    FINI_HAND_OVER(out, tree, status, fini_yaml_destroy);
}

/* ---- values of --set ------------------------------------------------------------------------ */

fin_status fini_tree_graft(fini_tree *tree, const char *path, const char *text, bool raw,
                           fini_node *out, fin_error *err)
{
    FINI_TRY(fini_tree_remember(tree, path, err));
    text += strspn(text, " \t");
    size_t size = strlen(text);
    while (size > 0 && (text[size - 1] == ' ' || text[size - 1] == '\t'))
        size--;
    *out = (fini_node){.kind = FINI_TEXT, .line = -tree->path_count, .column = 1, .plain = !raw};
    if (size > FINI_YAML_BYTES)
        return fini_node_fail(tree, out, err, "the value is longer than %d bytes",
                              (int)FINI_YAML_BYTES);
    if (!raw && size > 0 && strchr("[{\"'", text[0]))
        return build(tree, tree->path_count, text, size, out, err);
    FINI_TRY(check_text(tree, tree->path_count, text, size, err));
    if (!(out->text = fini_tree_copy(tree, text, size)))
        return fini_tree_fail_memory(err);
    return FIN_OK;
}
