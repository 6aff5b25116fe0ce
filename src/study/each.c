/* Families: one claim, figure or line of the file that stands for many.
 *
 *     - id: rate-{keys}
 *       each: {d: [2, 3], keys: {sphere: uniform, vmf: skewed}}
 *
 * is a claim for every combination, the last name moving fastest. A list gives values; a map gives
 * values and a word for each, or several named words. {d} in a text is the word, else the value.
 * Every member keeps its case as `each: {d: 2, keys: vmf}`, which fini_where_read takes for
 * conditions. An id without braces gets the case at its end: rate-d2-skewed.
 *
 * A group, {claims: [...], source: ...}, gives all in it what they do not say themselves, its
 * `each` included; so do {figures: [...]} and {lines: [...]}.
 *
 * All is copied into the tree's memory, whose growth is limited: families within families could
 * unfold to gigabytes. */
#include "study/read.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { WORDS_MOST = 16, UNFOLDED_BYTES = 1 << 26 };

/* A name that texts can use; those of one case are a list, the last one first. */
typedef struct word word;
struct word {
    const word *before;
    const char *name, *text;
    const fini_node *value; /* of a setting: its value in this case; NULL: a word beside it */
    bool line;              /* it is the line's own, and not its figure's */
    bool *used;
};

typedef struct unfolder {
    fini_reader *r;
    size_t bytes;
} unfolder;

/* What a list of claims, figures or lines is made of. */
typedef struct place {
    const char *key;           /* "claims", "figures", "lines" */
    const fini_node *defaults; /* of the group, or NULL */
    const word *words;
} place;

typedef struct list {
    fini_node node;
    int room;
} list;

static void *take(unfolder *u, size_t count, size_t size)
{
    u->bytes += count * size;
    return u->bytes > UNFOLDED_BYTES ? NULL : fini_tree_take(u->r->tree, (int64_t)count, size);
}

static fin_status fail_room(const unfolder *u)
{
    if (u->bytes > UNFOLDED_BYTES)
        return fini_fail(u->r->err, FIN_ERR_FORMAT,
                         "%.200s: the families of 'each' unfold to more than %d MB",
                         fini_yaml_label(u->r->tree), UNFOLDED_BYTES >> 20);
    return fini_tree_fail_memory(u->r->err);
}

/* ---- texts with words in braces --------------------------------------------------------------- */

/* Length of a name in braces at p, 0 if there is none. */
static size_t braced(const char *p)
{
    size_t length = 1;
    if (*p != '{' || !(isalpha((unsigned char)p[1]) || p[1] == '_'))
        return 0;
    while (isalnum((unsigned char)p[length]) || p[length] == '_')
        length++;
    return p[length] == '}' ? length + 1 : 0;
}

static const word *find_word(const word *words, const char *name, size_t length)
{
    while (words && (strlen(words->name) != length || memcmp(words->name, name, length) != 0))
        words = words->before;
    return words;
}

static fin_status fail_word(const unfolder *u, const fini_node *node, const char *name,
                            size_t length, const word *words)
{
    const char *names[64];
    char given[80], hint[200];
    int count = 0;
    for (; words && count < 64; words = words->before)
        names[count++] = words->name;
    snprintf(given, sizeof given, "%.*s", (int)length, name);
    return fini_node_fail(u->r->tree, node, u->r->err, "'each' has no '%s' for {%s}%s", given,
                          given, fini_hint(given, names, count, hint, sizeof hint));
}

/* Twice: to measure (out NULL), and to write. */
static fin_status fill(const unfolder *u, const fini_node *node, const word *words, char *out,
                       size_t *length)
{
    *length = 0;
    for (const char *p = node->text; *p;) {
        size_t name = braced(p), size = 1;
        const char *text = p;
        if (name) {
            const word *w = find_word(words, p + 1, name - 2);
            if (!w)
                return fail_word(u, node, p + 1, name - 2, words);
            *w->used = true;
            text = w->text;
            size = strlen(text);
        }
        if (out)
            memcpy(out + *length, text, size);
        *length += size;
        p += name ? name : 1;
    }
    return FIN_OK;
}

static fin_status copy_text(unfolder *u, fini_node *node, const word *words)
{
    size_t length;
    if (!words || !strchr(node->text, '{'))
        return FIN_OK;
    fin_status status = fill(u, node, words, NULL, &length);
    char *text = status ? NULL : take(u, length + 1, 1);
    if (status || !text)
        return status ? status : fail_room(u);
    FINI_TRY(fill(u, node, words, text, &length));
    node->text = text;
    return FIN_OK;
}

/* An id that does not say which case it is. */
static fin_status mark_id(unfolder *u, fini_node *id, const word *words)
{
    char end[200] = "", mark[80];
    for (const word *w = words; w; w = w->before) {
        double number;
        if (!w->value)
            continue;
        bool named = fini_read_number(w->text, &number);
        snprintf(mark, sizeof mark, "-%.30s%.40s", named ? w->name : "", w->text);
        for (char *c = mark; *c; c++)
            *c = isalnum((unsigned char)*c) || *c == '-' ? *c : '_';
        if (strlen(mark) + strlen(end) < sizeof end) { /* the last name comes first */
            memmove(end + strlen(mark), end, strlen(end) + 1);
            memcpy(end, mark, strlen(mark));
        }
    }
    char *text = take(u, strlen(id->text) + strlen(end) + 1, 1);
    if (!text)
        return fail_room(u);
    sprintf(text, "%s%s", id->text, end);
    id->text = text;
    return FIN_OK;
}

/* ---- copies ----------------------------------------------------------------------------------- */

static fin_status unfold_list(unfolder *u, const fini_node *from, const place *at, list *out);

static fin_status push(unfolder *u, list *l, const fini_node *node)
{
    if (l->node.count == l->room) {
        int room = l->room ? l->room * 2 : 16;
        fini_node *larger = take(u, (size_t)room, sizeof *larger);
        if (!larger)
            return fail_room(u);
        if (l->node.count)
            memcpy(larger, l->node.child, (size_t)l->node.count * sizeof *larger);
        l->node.child = larger;
        l->room = room;
    }
    l->node.child[l->node.count++] = *node;
    return FIN_OK;
}

static fin_status copy(unfolder *u, const fini_node *from, const word *words, fini_node *out)
{
    *out = *from;
    if (from->kind == FINI_TEXT)
        return copy_text(u, out, words);
    if (from->kind == FINI_LIST && from->name && strcmp(from->name, "lines") == 0) {
        list lines = {.node = *from};
        lines.node.child = NULL;
        lines.node.count = 0;
        FINI_TRY(unfold_list(u, from, &(place){"lines", NULL, words}, &lines));
        *out = lines.node;
        return FIN_OK;
    }
    out->child = take(u, (size_t)from->count, sizeof *out->child);
    FINI_TRY(out->child ? FIN_OK : fail_room(u));
    for (int i = 0; i < from->count; i++) {
        const fini_node *child = &from->child[i];
        if (from->kind == FINI_MAP && strcmp(child->name, "each") == 0)
            return fini_node_fail_key(u->r->tree, child, u->r->err,
                                      "'each' stands in a claim, a figure or a line");
        FINI_TRY(copy(u, child, words, &out->child[i]));
    }
    return FIN_OK;
}

/* The map without `key`, and what `more` has beside it. */
static fin_status merge(unfolder *u, const fini_node *map, const char *key, const fini_node *more,
                        fini_node *out)
{
    *out = *map;
    out->count = 0;
    out->child = take(u, (size_t)map->count + (more ? (size_t)more->count : 0), sizeof *out->child);
    if (!out->child)
        return fail_room(u);
    for (int i = 0; i < map->count; i++)
        if (strcmp(map->child[i].name, "each") != 0 && strcmp(map->child[i].name, key) != 0)
            out->child[out->count++] = map->child[i];
    for (int i = 0; more && i < more->count; i++)
        if (!fini_node_get(map, more->child[i].name))
            out->child[out->count++] = more->child[i];
    return FIN_OK;
}

/* The settings of a case, the outermost first. own: what belongs to the line alone. */
static fin_status put_settings(unfolder *u, fini_node *each, const word *words, bool own)
{
    FINI_TRY(words ? put_settings(u, each, words->before, own) : FIN_OK);
    if (!words || !words->value || (own && !words->line))
        return FIN_OK;
    fini_node value = fini_node_empty(words->value, FINI_TEXT);
    value.text = words->value->text;
    return fini_node_put(u->r->tree, each, words->name, &value, u->r->err);
}

/* `each` of a member: its case. */
static fin_status put_case(unfolder *u, fini_node *map, const word *words, bool own)
{
    fini_node each = fini_node_empty(map, FINI_MAP);
    FINI_TRY(put_settings(u, &each, words, own));
    return !each.count ? FIN_OK : fini_node_put(u->r->tree, map, "each", &each, u->r->err);
}

static fin_status add_member(unfolder *u, const fini_node *item, const place *at, list *out)
{
    fini_node merged, member;
    FINI_TRY(merge(u, item, "each", at->defaults, &merged));
    FINI_TRY(copy(u, &merged, at->words, &member));
    fini_node *id = fini_node_find(&member, "id");
    const fini_node *given = fini_node_get(&merged, "id");
    fini_node *values = fini_node_find(&member, "values");
    bool line = strcmp(at->key, "lines") == 0;
    if (at->words && !line && id && id->kind == FINI_TEXT && strcmp(given->text, id->text) == 0)
        FINI_TRY(mark_id(u, id, at->words));
    for (int i = 0; values && values->kind == FINI_MAP && i < values->count; i++)
        if (values->child[i].kind == FINI_MAP)
            FINI_TRY(put_case(u, &values->child[i], at->words, false));
    FINI_TRY(put_case(u, &member, at->words, line && !fini_node_get(&member, "from")));
    return push(u, out, &member);
}

/* ---- cases ------------------------------------------------------------------------------------ */

static fin_status unfold_case(unfolder *u, const fini_node *item, const place *at, list *out)
{
    const fini_node *group = fini_node_get(item, at->key);
    if (!group)
        return add_member(u, item, at, out);
    fini_node defaults;
    FINI_TRY(merge(u, item, at->key, at->defaults, &defaults));
    return unfold_list(u, group, &(place){at->key, &defaults, at->words}, out);
}

static fin_status check_used(const unfolder *u, const fini_node *variable, bool used)
{
    const fin_study *study = u->r->study;
    for (int i = 0; i < study->block_count && !used; i++)
        used = fini_block_has_setting(&study->blocks[i], variable->name);
    if (used)
        return FIN_OK;
    const char *near = NULL;
    for (int i = 0; i < study->block_count && !near; i++)
        near = fin_nearest_name(variable->name, study->blocks[i].names,
                                study->blocks[i].setting_count);
    return fini_node_fail_key(u->r->tree, variable, u->r->err,
                              "'%.64s' is no setting of the runs, and no text has {%.64s}%s",
                              variable->name, variable->name, fini_did_you_mean(near, ""));
}

static fin_status unfold_each(unfolder *u, const fini_node *item, const fini_node *each,
                              int variable, const place *at, list *out);

/* One value of a name: a text, with a word for it, or with a map of words. */
static fin_status unfold_value(unfolder *u, const fini_node *item, const fini_node *each,
                               int variable, const fini_node *value, const place *at, bool *used,
                               list *out)
{
    const char *name = each->child[variable].name, *text = value->name ? value->name : value->text;
    word words[WORDS_MOST + 1];
    fini_node setting = *value;
    int count = value->kind == FINI_MAP ? value->count : 0;
    bool fine = text && *text && count <= WORDS_MOST && value->kind != FINI_LIST;
    for (int i = 0; i < count && fine; i++)
        fine = value->child[i].kind == FINI_TEXT;
    if (!fine)
        return fini_node_fail(u->r->tree, value, u->r->err,
                              "'each' takes lists of values, {d: [2, 3]}, or a word or words for "
                              "each value, {d: {2: circle, 3: {shape: sphere}}}");
    setting.text = text;
    words[0] = (word){at->words,
                      name,
                      value->name && count == 0 ? value->text : text,
                      &setting,
                      strcmp(at->key, "lines") == 0,
                      used};
    for (int i = 0; i < count; i++)
        words[i + 1] = (word){&words[i], value->child[i].name, value->child[i].text,
                              NULL,      words[0].line,        used};
    return unfold_each(u, item, each, variable + 1, &(place){at->key, at->defaults, &words[count]},
                       out);
}

static fin_status unfold_each(unfolder *u, const fini_node *item, const fini_node *each,
                              int variable, const place *at, list *out)
{
    if (variable == (each ? each->count : 0))
        return unfold_case(u, item, at, out);
    const fini_node *values = &each->child[variable];
    if (values->kind == FINI_TEXT || values->count == 0)
        return fini_node_fail(u->r->tree, values, u->r->err,
                              "'%.64s' needs a list of values, such as {d: [2, 3]}", values->name);
    bool used = false;
    for (int i = 0; i < values->count; i++)
        FINI_TRY(unfold_value(u, item, each, variable, &values->child[i], at, &used, out));
    return check_used(u, values, used);
}

static fin_status unfold_list(unfolder *u, const fini_node *from, const place *at, list *out)
{
    if (from->kind != FINI_LIST)
        return fini_node_fail(u->r->tree, from, u->r->err, "%s must be a list", at->key);
    for (int i = 0; i < from->count; i++) {
        const fini_node *item = &from->child[i], *each = fini_node_get(item, "each");
        if (item->kind != FINI_MAP) /* whoever reads it says what it should be */
            FINI_TRY(push(u, out, item));
        else if (each && each->kind != FINI_MAP)
            return fini_node_fail(u->r->tree, each, u->r->err,
                                  "'each' must be a map, such as {d: [2, 3], keys: [sphere]}");
        else
            FINI_TRY(unfold_each(u, item, each, 0, at, out));
    }
    return FIN_OK;
}

fin_status fini_unfold(fini_reader *r, const char *key, const fini_node **out)
{
    const fini_node *from = fini_node_get(fini_yaml_root(r->tree), key);
    *out = NULL;
    if (!from)
        return FIN_OK;
    unfolder u = {r, 0};
    list *all = fini_tree_take(r->tree, 1, sizeof *all);
    if (!all)
        return fini_tree_fail_memory(r->err);
    all->node = *from;
    all->node.child = NULL;
    all->node.count = 0;
    *out = &all->node;
    return unfold_list(&u, from, &(place){key, NULL, NULL}, all);
}
