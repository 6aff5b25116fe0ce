/* Conditions, formulas and blocks that claims and figures name, checked against what the runs of a
 * block will have: `where: L >= 10, keys = sphere, vmf`, as on the command line. */
#include "study/read.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum { CLAUSES_MOST = 32 };

/* ---- names that a block knows ----------------------------------------------------------------- */

/* Leaves of the canonical JSON; groups of settings are objects. names NULL: only counts. */
static int find_keys(fini_tree *tree, json_t *object, const char **names, int count)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        if (json_is_object(value))
            count = find_keys(tree, value, names, count);
        else if (names && !(names[count] = fini_tree_copy(tree, key, strlen(key))))
            return -1;
        else
            count++;
        if (count < 0)
            return -1;
    }
    return count;
}

/* Settings of the first run's canonical JSON, so that there is no second list of them; what a run
 * leaves is in the table of its command. */
fin_status fini_block_names(fini_reader *r, fini_block *block)
{
    int outputs = 1;
    for (const fin_output *row = block->command->outputs; row->name; row++)
        outputs++;
    FINI_MAKE(r->err, "the names of a block", fin_plan, plan);
    fin_status status = fin_study_get_run(r->study, block->first, plan, r->err);
    json_t *json = status ? NULL : json_loads(plan->settings, 0, NULL);
    fini_free(plan);
    if (status)
        return status;
    block->setting_count = json ? find_keys(r->tree, json, NULL, 0) : -1;
    block->names =
        fini_tree_take(r->tree, (int64_t)block->setting_count + outputs, sizeof *block->names);
    bool fine = json && block->names && find_keys(r->tree, json, block->names, 0) >= 0;
    json_decref(json);
    if (!fine)
        return fini_tree_fail_memory(r->err);
    const char **next = block->names + block->setting_count;
    *next++ = "seconds";
    for (const fin_output *row = block->command->outputs; row->name; row++)
        *next++ = row->name;
    block->name_count = (int)(next - block->names);
    return FIN_OK;
}

static bool has_name(const fini_block *block, const char *name, int count)
{
    int i = 0;
    while (i < count && strcmp(block->names[i], name) != 0)
        i++;
    return i < count;
}

bool fini_block_has_setting(const fini_block *block, const char *name)
{
    return has_name(block, name, block->setting_count);
}

static fin_status check_name(const fin_study *study, const fini_block *block, const char *name,
                             bool setting, const fini_node *node, fin_error *err)
{
    int count = setting ? block->setting_count : block->name_count;
    if (has_name(block, name, count))
        return FIN_OK;
    const char *near = fin_nearest_name(name, block->names, count);
    return fini_node_fail(study->tree, node, err, "'%.64s' is no %s of the runs of %s%s", name,
                          setting ? "setting" : "setting or number", block->id,
                          fini_did_you_mean(near, ""));
}

fin_status fini_setting_read(const fin_study *study, const fini_block *block, const fini_node *node,
                             fin_error *err)
{
    if (node->kind != FINI_TEXT)
        return fini_node_fail(study->tree, node, err, "'%s' must be the name of a setting",
                              node->name);
    return check_name(study, block, node->text, true, node, err);
}

fin_status fini_formula_read(const fin_study *study, const fini_block *block, const fini_node *node,
                             fini_formula **out, fin_error *err)
{
    if (node->kind != FINI_TEXT)
        return fini_node_fail(study->tree, node, err,
                              "a formula must be a text, such as log(risk)");
    fini_formula *formula = NULL;
    fin_error why;
    fin_status status = fini_formula_parse(node->text, &formula, &why);
    if (status == FIN_ERR_MEMORY)
        return fini_fail(err, status, "%s", why.message);
    if (status)
        return fini_node_fail(study->tree, node, err, "%s", why.message);
    for (int i = 0; block && i < fini_formula_name_count(formula) && !status; i++)
        status = check_name(study, block, fini_formula_name(formula, i), false, node, err);
    if (status || !out)
        fini_formula_destroy(formula);
    else
        *out = formula;
    return status;
}

fin_status fini_from_read(const fin_study *study, const fini_node *map, const fini_block *fallback,
                          const fini_block **block, fin_error *err)
{
    const fini_node *node = fini_node_get(map, "from");
    *block = fallback;
    if (!node)
        return FIN_OK;
    if (node->kind != FINI_TEXT)
        return fini_node_fail(study->tree, node, err, "'from' must be the id of a block of runs");
    *block = fini_study_block(study, node->text);
    if (*block)
        return FIN_OK;
    const char *near = NULL;
    for (int i = 0; i < study->block_count && !near; i++)
        near = fin_nearest_name(node->text, &study->blocks[i].id, 1);
    return fini_node_fail(study->tree, node, err, "there is no block of runs '%.64s'%s%s",
                          node->text, fini_did_you_mean(near, "; the first one is "),
                          near ? "" : study->blocks[0].id);
}

/* ---- where ------------------------------------------------------------------------------------ */

typedef struct reader {
    const fin_study *study;
    const fini_block *block;
    fini_where *out;
    char *end; /* of the last clause's text: an alternative goes here */
    fin_error *err;
} reader;

/* Bytes that the clauses of a node take at most, and how many there can be. */
static size_t measure(const fini_node *node, int *clauses)
{
    size_t bytes = 8 + (node->name ? strlen(node->name) : 0);
    if (node->kind == FINI_TEXT) {
        bytes += 2 * strlen(node->text);
        ++*clauses;
        for (const char *comma = node->text; (comma = strchr(comma, ',')); comma++)
            ++*clauses;
    }
    for (int i = 0; i < node->count; i++)
        bytes += measure(&node->child[i], clauses);
    return bytes;
}

static fin_status fail_form(const reader *r, const fini_node *node)
{
    return fini_node_fail(r->study->tree, node, r->err,
                          "a condition is a setting, one of = != < <= > >=, and a value, such as "
                          "L >= 10; one of several is keys = sphere, vmf");
}

/* A value: not empty, no bar, which separates alternatives, and no sign, which is mistyped. */
static bool is_value(const char *text, size_t length)
{
    return length > 0 && !strchr("=<>!", text[0]) && !memchr(text, '|', length);
}

/* `name` of `length` letters, `sign` and a value open a clause. */
static fin_status open_clause(reader *r, const fini_node *node, const char *name, size_t length,
                              const char *sign, size_t signs)
{
    if (r->out->count == CLAUSES_MOST)
        return fini_node_fail(r->study->tree, node, r->err, "'where' has more than %d conditions",
                              CLAUSES_MOST);
    char *text = r->end ? r->end + 1 : r->out->clauses[0];
    memcpy(text, name, length);
    text[length] = '\0';
    r->out->clauses[r->out->count++] = text;
    fini_node at = *node;
    if (node->name && strcmp(node->name, text) == 0) { /* of a map: at the key */
        at.line = node->name_line;
        at.column = node->name_column;
    }
    fin_status status = check_name(r->study, r->block, text, true, &at, r->err);
    memcpy(text + length, sign, signs);
    r->end = text + length + signs;
    *r->end = '\0';
    return status;
}

/* mark: before one more value; 0: it is the first. */
static void add_value(reader *r, char mark, const char *text, size_t length)
{
    if (mark)
        *r->end++ = mark;
    memcpy(r->end, text, length);
    r->end += length;
    *r->end = '\0';
}

static const char *trim(const char *text, size_t *length)
{
    for (; *length && (*text == ' ' || *text == '\n' || *text == '\t'); text++)
        --*length;
    while (*length && strchr(" \n\t", text[*length - 1]))
        --*length;
    return text;
}

/* Between two commas: a condition, or one more value of the one before. */
static fin_status read_piece(reader *r, const fini_node *node, const char *text, size_t length)
{
    text = trim(text, &length);
    size_t name = 0, signs, skip;
    while (name < length && !strchr("=<>!", text[name]))
        name++;
    if (name == length) {
        const char *before = r->end ? r->out->clauses[r->out->count - 1] : "";
        char sign = before[strcspn(before, "=<>!")];
        if ((sign != '=' && sign != '!') || !is_value(text, length))
            return fail_form(r, node);
        add_value(r, ',', text, length); /* or part of a word, 5:0.2,10:0.8: the store tries both */
        return FIN_OK;
    }
    signs = 1 + (name + 1 < length && text[name + 1] == '=' && text[name] != '=');
    skip = name + signs;
    size_t left = length - skip;
    const char *value = trim(text + skip, &left);
    trim(text, &name);
    if (name == 0 || (signs == 1 && text[skip - 1] == '!') || !is_value(value, left))
        return fail_form(r, node);
    FINI_TRY(open_clause(r, node, text, name, text + skip - signs, signs));
    add_value(r, 0, value, left);
    return FIN_OK;
}

static fin_status read_text(reader *r, const fini_node *node)
{
    if (node->kind != FINI_TEXT)
        return fail_form(r, node);
    fin_status status = FIN_OK;
    for (const char *at = node->text; !status; at++) {
        size_t length = strcspn(at, ",");
        status = read_piece(r, node, at, length);
        at += length;
        if (!*at)
            break;
    }
    return status;
}

/* A map reads as well: {L: 10, keys: [sphere, vmf], lam: [">=", 0.1]}. */
static fin_status read_pair(reader *r, const fini_node *node)
{
    static const char *const signs[] = {"=", "!=", "<", "<=", ">", ">="};
    const fini_node *values = node->kind == FINI_LIST ? node->child : node;
    int count = node->kind == FINI_LIST ? node->count : 1, first = 0;
    const char *sign = "=";
    for (int i = 0; i < 6 && count == 2 && first == 0; i++)
        if (values[0].kind == FINI_TEXT && strcmp(values[0].text, signs[i]) == 0)
            sign = values[first++].text;
    FINI_TRY(open_clause(r, node, node->name, strlen(node->name), sign, strlen(sign)));
    if (count == 0)
        return fail_form(r, node);
    for (int i = first; i < count; i++) {
        if (values[i].kind != FINI_TEXT || !is_value(values[i].text, strlen(values[i].text)))
            return fail_form(r, &values[i]);
        add_value(r, i > first ? '|' : 0, values[i].text, strlen(values[i].text));
    }
    return FIN_OK;
}

/* The case of `each` that this claim or figure is, as far as `where` does not say otherwise. */
static fin_status read_case(reader *r, const fini_node *each)
{
    int written = r->out->count;
    for (int i = 0; each && i < each->count; i++) {
        const char *name = each->child[i].name;
        bool skip = !fini_block_has_setting(r->block, name);
        for (int k = 0; k < written && !skip; k++) {
            size_t length = strcspn(r->out->clauses[k], "=<>!");
            skip = length == strlen(name) && memcmp(r->out->clauses[k], name, length) == 0;
        }
        if (!skip)
            FINI_TRY(read_pair(r, &each->child[i]));
    }
    return FIN_OK;
}

fin_status fini_where_read(const fin_study *study, const fini_block *block, const fini_node *map,
                           fini_where *out, fin_error *err)
{
    const fini_node *where = fini_node_get(map, "where"), *each = fini_node_get(map, "each");
    *out = (fini_where){0};
    if (!where && !each)
        return FIN_OK;
    int most = 0;
    size_t bytes = (where ? measure(where, &most) : 0) + (each ? measure(each, &most) : 0);
    if (where && where->kind != FINI_TEXT)
        most += where->count;
    size_t pointers = ((size_t)most + 1) * sizeof(char *);
    out->clauses = fini_alloc(pointers + bytes + 1);
    if (!out->clauses)
        return fini_fail_memory(err, pointers + bytes, "a 'where'");
    out->clauses[0] = (char *)out->clauses + pointers;
    reader r = {study, block, out, NULL, err};
    fin_status status = FIN_OK;
    if (where && where->kind == FINI_TEXT)
        status = read_text(&r, where);
    for (int i = 0; where && i < where->count && !status; i++)
        status = (where->kind == FINI_MAP ? read_pair : read_text)(&r, &where->child[i]);
    if (!status)
        status = read_case(&r, each);
    if (status)
        fini_where_free(out);
    return status;
}

void fini_where_free(fini_where *where)
{
    fini_free(where->clauses);
    *where = (fini_where){0};
}
