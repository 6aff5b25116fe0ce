/* `where` and formulas of the study file, checked against what the runs of a block will have.
 *
 * The settings of a block are those of its first run's canonical JSON, so that there is no second
 * list of them; what a run leaves is in the table of its command. Shared by claims and figures. */
#include "study/study.h"

#include <stdio.h>
#include <string.h>

enum { CLAUSES_MOST = 32, CLAUSE_BYTES = 4096, NAMES_MOST = 400 };

/* ---- names that a block knows ----------------------------------------------------------------- */

typedef struct names {
    fin_plan plan;
    const char *list[NAMES_MOST];
    int count, settings; /* settings: how many of them are */
} names;

/* Keys of canonical JSON: a string before a colon. Cuts the text into pieces. */
static void find_keys(names *n)
{
    char *at = n->plan.settings;
    while ((at = strchr(at, '"')) && n->count < NAMES_MOST) {
        char *end = at + 1;
        while (*end && *end != '"')
            end += end[0] == '\\' && end[1] ? 2 : 1;
        if (!*end)
            return;
        if (end[1] == ':' && end[2] != '{') {
            *end = '\0';
            n->list[n->count++] = at + 1;
        }
        at = end + 1;
    }
}

static void add_name(names *n, const char *name)
{
    if (n->count < NAMES_MOST)
        n->list[n->count++] = name;
}

static fin_status read_names(const fin_study *study, const fini_block *block, names *n,
                             fin_error *err)
{
    fin_status status = fin_study_get_run(study, block->first, &n->plan, err);
    if (status)
        return status;
    n->count = 0;
    find_keys(n);
    n->settings = n->count;
    add_name(n, "seconds");
    for (const fin_output *row = block->command->outputs; row->name; row++)
        add_name(n, row->name);
    return FIN_OK;
}

static bool has_name(const names *n, const char *name, bool settings)
{
    int count = settings ? n->settings : n->count;
    for (int i = 0; i < count; i++)
        if (strcmp(n->list[i], name) == 0)
            return true;
    return false;
}

/* In this block, or in any. `what` is the sentence if it is not there: "no run has ...". */
static fin_status check_name(const fin_study *study, const fini_block *block, const char *name,
                             bool settings, const fini_node *node, bool key, fin_error *err)
{
    int first = block ? (int)(block - study->blocks) : 0;
    int last = block ? first + 1 : study->block_count;
    names *n = fini_alloc(sizeof *n);
    if (!n)
        return fini_fail_memory(err, sizeof *n, "the names of a block");
    fin_status status = FIN_OK;
    bool found = false;
    char near[80] = "";
    for (int i = first; i < last && !status && !found; i++) {
        status = read_names(study, &study->blocks[i], n, err);
        found = !status && has_name(n, name, settings);
        if (status || found || near[0])
            continue;
        const char *nearest = fin_nearest_name(name, n->list, settings ? n->settings : n->count);
        snprintf(near, sizeof near, "%s", nearest ? nearest : "");
    }
    fini_free(n);
    if (status || found)
        return status;
    return (key ? fini_node_fail_key : fini_node_fail)(
        study->tree, node, err, "'%.64s' is no %s of the runs of %s%s%s%s", name,
        settings ? "setting" : "setting or number", block ? block->id : "this study",
        near[0] ? "; did you mean " : "", near, near[0] ? "?" : "");
}

fin_status fini_formula_check(const fin_study *study, const fini_block *block,
                              const fini_node *node, fin_error *err)
{
    if (node->kind != FINI_TEXT)
        return fini_node_fail(study->tree, node, err,
                              "a formula must be a text, such as log(risk)");
    fini_formula *formula;
    fin_error why;
    fin_status status = fini_formula_parse(node->text, &formula, &why);
    if (status == FIN_ERR_MEMORY)
        return fini_fail(err, status, "%s", why.message);
    if (status)
        return fini_node_fail(study->tree, node, err, "%s", why.message);
    for (int i = 0; i < fini_formula_name_count(formula) && !status; i++)
        status = check_name(study, block, fini_formula_name(formula, i), false, node, false, err);
    fini_formula_destroy(formula);
    return status;
}

/* ---- where ------------------------------------------------------------------------------------ */

static const char *comparison(const fini_node *node)
{
    static const char *const signs[] = {"=", "!=", "<", "<=", ">", ">="};
    for (int i = 0; i < 6; i++)
        if (node->kind == FINI_TEXT && strcmp(node->text, signs[i]) == 0)
            return signs[i];
    return NULL;
}

/* A value in a clause: not empty, no bar, which separates alternatives, and no sign, which stands
 * where none can be, or is mistyped. */
static bool is_value(const fini_node *node)
{
    return node->kind == FINI_TEXT && node->text[0] && !strchr("=<>!", node->text[0]) &&
           !strchr(node->text, '|');
}

/* "name=a|b" or "name>=a" into text (CLAUSE_BYTES). */
static fin_status write_clause(const fin_study *study, const fini_node *node, char *text,
                               fin_error *err)
{
    const char *sign = "=";
    int first = 0, count = node->kind == FINI_LIST ? node->count : 1;
    if (node->kind == FINI_LIST && node->count == 2 && comparison(&node->child[0])) {
        sign = comparison(&node->child[0]);
        first = 1;
    }
    int used = snprintf(text, CLAUSE_BYTES, "%s%s", node->name, sign);
    for (int i = first; i < count && used < CLAUSE_BYTES; i++) {
        const fini_node *value = node->kind == FINI_LIST ? &node->child[i] : node;
        if (!is_value(value))
            return fini_node_fail(
                study->tree, value, err,
                "'where' takes a value, a list of values, or a comparison such as "
                "[\">=\", 10]");
        used += snprintf(text + used, (size_t)(CLAUSE_BYTES - used), "%s%s", i > first ? "|" : "",
                         value->text);
    }
    if (count == 0 || used >= CLAUSE_BYTES)
        return fini_node_fail(study->tree, node, err, "'where' has %s for '%.64s'",
                              count ? "too many values" : "no value", node->name);
    return FIN_OK;
}

fin_status fini_where_read(const fin_study *study, const fini_block *block, const fini_node *node,
                           fini_where *out, fin_error *err)
{
    *out = (fini_where){0};
    if (!node || (node->kind == FINI_MAP && node->count == 0))
        return FIN_OK;
    if (node->kind != FINI_MAP || node->count > CLAUSES_MOST)
        return fini_node_fail(study->tree, node, err,
                              "'where' must be a map of at most %d settings, such as {L: 100}",
                              CLAUSES_MOST);
    size_t pointers = (size_t)node->count * sizeof(char *);
    size_t size = pointers + (size_t)node->count * CLAUSE_BYTES;
    char **clauses = fini_alloc(size);
    if (!clauses)
        return fini_fail_memory(err, size, "a 'where'");
    out->clauses = clauses;
    out->count = node->count;
    fin_status status = FIN_OK;
    for (int i = 0; i < node->count && !status; i++) {
        const fini_node *child = &node->child[i];
        clauses[i] = (char *)clauses + pointers + (size_t)i * CLAUSE_BYTES;
        status = check_name(study, block, child->name, true, child, true, err);
        if (!status)
            status = write_clause(study, child, clauses[i], err);
    }
    if (status)
        fini_where_free(out);
    return status;
}

void fini_where_free(fini_where *where)
{
    fini_free(where->clauses);
    *where = (fini_where){0};
}
