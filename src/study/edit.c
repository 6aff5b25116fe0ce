/* Changes to the tree before it is read as a study: the sizes under `full:` and the claims that are
 * asked there alone, then --set.
 *
 * Both replace nodes and nothing else, so that what they give is checked as if it stood in the
 * file. A setting is fixed or an axis, never both: whichever comes last wins. */
#include "study/read.h"

#include <stdio.h>
#include <string.h>

/* ---- blocks --------------------------------------------------------------------------------- */

/* The map under this key of a block, made if there is none; NULL with FIN_OK if it is something
 * else (which reading will tell). */
static fin_status part(fini_tree *tree, fini_node *block, const char *key, fini_node **out,
                       fin_error *err)
{
    fini_node *node = fini_node_find(block, key);
    *out = NULL;
    if (block->kind != FINI_MAP)
        return FIN_OK;
    if (!node) {
        fini_node empty = fini_node_empty(block, FINI_MAP);
        FINI_TRY(fini_node_put(tree, block, key, &empty, err));
        node = fini_node_find(block, key);
    }
    *out = node->kind == FINI_MAP ? node : NULL;
    return FIN_OK;
}

/* Puts a setting under `set` or `axes`, and takes it from the other. */
static fin_status put_setting(fini_tree *tree, fini_node *block, const char *where,
                              const char *name, const fini_node *value, fin_error *err)
{
    fini_node *map = NULL;
    bool fixed = strcmp(where, "set") == 0;
    fini_node_remove(fini_node_find(block, fixed ? "axes" : "set"), name);
    if (fini_same_name(name, "seed"))
        fini_node_remove(block, "seeds");
    FINI_TRY(part(tree, block, where, &map, err));
    return !map ? FIN_OK : fini_node_put(tree, map, name, value, err);
}

static fin_status put_seeds(fini_tree *tree, fini_node *block, const fini_node *value,
                            fin_error *err)
{
    fini_node_remove(fini_node_find(block, "set"), "seed");
    fini_node_remove(fini_node_find(block, "axes"), "seed");
    return fini_node_put(tree, block, "seeds", value, err);
}

static const char *block_id(fini_node *block)
{
    const fini_node *id = fini_node_get(block, "id");
    if (!id)
        id = fini_node_get(block, "command");
    return id && id->kind == FINI_TEXT ? id->text : "";
}

/* ---- full ----------------------------------------------------------------------------------- */

static fin_status merge_block(fini_tree *tree, fini_node *block, const fini_node *full,
                              fin_error *err)
{
    static const char *const keys[] = {"set", "axes", "draws", "seeds", NULL};
    fin_status status = fini_node_keys(tree, full, "full", keys, err);
    for (int i = 0; !status && i < full->count; i++) {
        const fini_node *node = &full->child[i];
        bool settings = strcmp(node->name, "set") == 0 || strcmp(node->name, "axes") == 0;
        if (settings && node->kind != FINI_MAP)
            return fini_node_fail(tree, node, err, "%s must be a map of settings", node->name);
        for (int j = 0; settings && !status && j < node->count; j++)
            status =
                put_setting(tree, block, node->name, node->child[j].name, &node->child[j], err);
        if (!status && strcmp(node->name, "draws") == 0)
            status = fini_node_put(tree, block, "draws", node, err);
        if (!status && strcmp(node->name, "seeds") == 0)
            status = put_seeds(tree, block, node, err);
    }
    return status;
}

/* Claims with `only: full` are asked with --full alone: a list of claims, groups too, without the others. */
static fin_status sift_claims(fini_tree *tree, fini_node *list, bool full, int *left_out,
                              fin_error *err)
{
    int kept = 0;
    fin_status status = FIN_OK;
    for (int i = 0; list && list->kind == FINI_LIST && i < list->count && !status; i++) {
        fini_node *claim = &list->child[i], *only = fini_node_find(claim, "only");
        if (only && (only->kind != FINI_TEXT || strcmp(only->text, "full") != 0))
            return fini_node_fail(tree, only, err,
                                  "'only' can be full: the claim is asked with --full alone");
        if (only && !full) {
            ++*left_out;
            continue;
        }
        fini_node_remove(claim, "only");
        status = sift_claims(tree, fini_node_find(claim, "claims"), full, left_out, err);
        list->child[kept++] = *claim;
    }
    if (list && list->kind == FINI_LIST && !status)
        list->count = kept;
    return status;
}

fin_status fini_edit_full(fini_tree *tree, bool full, int *left_out, fin_error *err)
{
    fini_node *runs = fini_node_find(fini_yaml_root(tree), "runs");
    fini_node *claims = fini_node_find(fini_yaml_root(tree), "claims");
    *left_out = 0;
    FINI_TRY(sift_claims(tree, claims, full, left_out, err));
    for (int i = 0; runs && runs->kind == FINI_LIST && i < runs->count; i++) {
        fini_node *block = &runs->child[i], *found = fini_node_find(block, "full");
        if (!found)
            continue;
        fini_node copy = *found; /* its children stay where they are */
        fini_node_remove(block, "full");
        if (full)
            FINI_TRY(merge_block(tree, block, &copy, err));
    }
    return FIN_OK;
}

bool fini_edit_has_full(const fini_tree *tree)
{
    fini_node *runs = fini_node_find(fini_yaml_root(tree), "runs");
    bool has = false;
    for (int i = 0; runs && runs->kind == FINI_LIST && i < runs->count; i++)
        has = has || fini_node_find(&runs->child[i], "full");
    return has;
}

/* ---- --set ---------------------------------------------------------------------------------- */

static const char *const top_keys[] = {"study", "title", "source", "about"};
static const char *const block_keys[] = {"set", "axes", "draws", "seed", "seeds"};
enum { TOP_KEYS = 4, BLOCK_KEYS = 5, IDS = 64, PARTS = 4 };

typedef struct change {
    fini_tree *tree;
    fini_node *runs;       /* a list of at least one block */
    char parts[PARTS][80]; /* of the path */
    int count;
    fini_node value;
    fin_error *err;
} change;

static fin_status fail_form(const change *c)
{
    return fini_node_fail(c->tree, &c->value, c->err,
                          "no such path; write title=TEXT, BLOCK.SETTING=VALUE, "
                          "runs.BLOCK.set.SETTING=VALUE or runs.BLOCK.axes.SETTING=[VALUES]");
}

static fin_status find_block(const change *c, const char *id, fini_node **out)
{
    const char *ids[IDS];
    int count = 0;
    char hint[200], shown[FINI_SHOWN];
    for (int i = 0; i < c->runs->count; i++) {
        *out = &c->runs->child[i];
        if (strcmp(block_id(*out), id) == 0)
            return FIN_OK;
        if (count < IDS)
            ids[count++] = block_id(*out);
    }
    return fini_node_fail(c->tree, &c->value, c->err, "the study has no block '%s'%s",
                          fini_shown(id, shown), fini_hint(id, ids, count, hint, sizeof hint));
}

/* runs.BLOCK.set.NAME, runs.BLOCK.draws */
static fin_status put_long(change *c)
{
    fini_node *block;
    FINI_TRY(find_block(c, c->parts[1], &block));
    const char *key = c->parts[2];
    bool settings = strcmp(key, "set") == 0 || strcmp(key, "axes") == 0, known = settings;
    char hint[200], shown[FINI_SHOWN];
    for (int i = 0; i < BLOCK_KEYS; i++)
        known = known || strcmp(key, block_keys[i]) == 0;
    if (!known)
        return fini_node_fail(c->tree, &c->value, c->err, "a block has no '%s'%s",
                              fini_shown(key, shown),
                              fini_hint(key, block_keys, BLOCK_KEYS, hint, sizeof hint));
    if (c->count != (settings ? 4 : 3))
        return fail_form(c);
    if (settings)
        return put_setting(c->tree, block, key, c->parts[3], &c->value, c->err);
    if (strcmp(key, "seeds") == 0)
        return put_seeds(c->tree, block, &c->value, c->err);
    return fini_node_put(c->tree, block, key, &c->value, c->err);
}

static fin_status put_in(change *c, fini_node *block, const char *name)
{
    if (strcmp(name, "seeds") == 0)
        return put_seeds(c->tree, block, &c->value, c->err);
    if (strcmp(name, "draws") == 0)
        return fini_node_put(c->tree, block, name, &c->value, c->err);
    return put_setting(c->tree, block, c->value.kind == FINI_TEXT ? "set" : "axes", name, &c->value,
                       c->err);
}

/* BLOCK.NAME, *.NAME in all blocks, or NAME alone in a study of one. A list or a law makes it an axis. */
static fin_status put_short(change *c, const char *name)
{
    bool all = c->count == 2 && strcmp(c->parts[0], "*") == 0;
    fini_node *block = &c->runs->child[0];
    FINI_TRY(c->count == 2 && !all ? find_block(c, c->parts[0], &block) : FIN_OK);
    FINI_TRY(put_in(c, block, name));
    for (int64_t i = 1; all && i < c->runs->count; i++)
        FINI_TRY(put_in(c, &c->runs->child[i], name));
    return FIN_OK;
}

static fin_status put_change(change *c)
{
    char hint[200], shown[FINI_SHOWN];
    const char *first = c->parts[0];
    for (int i = 0; i < TOP_KEYS && c->count == 1; i++)
        if (strcmp(first, top_keys[i]) == 0)
            return fini_node_put(c->tree, fini_yaml_root(c->tree), first, &c->value, c->err);
    c->runs = fini_node_find(fini_yaml_root(c->tree), "runs");
    if (!c->runs || c->runs->kind != FINI_LIST || c->runs->count == 0)
        return FIN_OK; /* reading will tell */
    if (c->count >= 3)
        return strcmp(first, "runs") == 0 ? put_long(c) : fail_form(c);
    if (c->count == 1 && c->runs->count > 1)
        return fini_node_fail(c->tree, &c->value, c->err,
                              "'%s' is no key of a study%s; a setting needs its block, as in %s.%s",
                              fini_shown(first, shown),
                              fini_hint(first, top_keys, TOP_KEYS, hint, sizeof hint),
                              block_id(&c->runs->child[0]), shown);
    return put_short(c, c->parts[c->count - 1]);
}

/* Cuts "a.b.c" at its dots. */
static bool split(change *c, const char *path)
{
    for (const char *p = path;; p++) {
        size_t length = strcspn(p, ".");
        if (c->count == PARTS || length == 0 || length >= sizeof c->parts[0])
            return false;
        memcpy(c->parts[c->count], p, length);
        c->parts[c->count++][length] = '\0';
        p += length;
        if (!*p)
            return true;
    }
}

fin_status fini_edit_set(fini_tree *tree, const char *text, fin_error *err)
{
    const char *equal = strchr(text, '=');
    char shown[FINI_SHOWN], path[400];
    if (!equal || equal == text || equal - text >= (int)sizeof path || strchr(text, '\n'))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "--set %s: give PATH=VALUE on one line, such as BLOCK.lam=0.2",
                         fini_shown(text, shown));
    snprintf(path, sizeof path, "%.*s", (int)(equal - text), text);
    change c = {.tree = tree, .err = err};
    bool words =
        strcmp(path, "title") == 0 || strcmp(path, "source") == 0 || strcmp(path, "about") == 0;
    FINI_TRY(fini_tree_graft(tree, path, equal + 1, words, &c.value, err));
    if (fini_node_is_null(&c.value))
        return fini_node_fail(tree, &c.value, err, "there is no value after the '='");
    return split(&c, path) ? put_change(&c) : fail_form(&c);
}
