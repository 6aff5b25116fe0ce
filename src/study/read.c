/* A study from its file: text -> tree -> changes -> blocks (block.c), claims, figures. */
#include "data/data.h"
#include "study/read.h"

#include <stdio.h>
#include <string.h>

static fin_status read_blocks(fini_reader *r, const fini_node *root)
{
    const fini_node *runs = fini_node_get(root, "runs");
    fin_study *study = r->study;
    if (!runs)
        return fini_node_fail(r->tree, root, r->err,
                              "'runs' is missing: a list of blocks, each with a command");
    if (runs->kind != FINI_LIST || runs->count == 0 || runs->count > FINI_BLOCKS_MOST)
        return fini_node_fail(r->tree, runs, r->err,
                              "runs must be a list of 1 to %d blocks, each with a command",
                              (int)FINI_BLOCKS_MOST);
    study->blocks = fini_tree_take(r->tree, runs->count, sizeof *study->blocks);
    if (!study->blocks)
        return fini_tree_fail_memory(r->err);
    fin_status status = FIN_OK;
    for (int i = 0; i < runs->count && !status; i++) {
        status = fini_read_block(r, &runs->child[i], &study->blocks[i]);
        study->block_count = i + 1;
    }
    return status;
}

/* ---- the study ------------------------------------------------------------------------------ */

static fin_status read_list_of(fini_reader *r, const fini_node *root, const char *key,
                               const fini_node **out)
{
    const fini_node *node = fini_node_get(root, key);
    if (node && node->kind != FINI_LIST)
        return fini_node_fail(r->tree, node, r->err, "%s must be a list", key);
    *out = node;
    return FIN_OK;
}

static fin_status read_root(fini_reader *r)
{
    static const char *const keys[] = {"study", "title",  "source",  "about",
                                       "runs",  "claims", "figures", NULL};
    const fini_node *root = fini_yaml_root(r->tree);
    fin_study *study = r->study;
    fin_status status = fini_node_keys(r->tree, root, "a study", keys, r->err);
    if (!status)
        status = fini_read_name(r, root, "study", NULL, &study->name);
    if (!status)
        status = fini_node_text(r->tree, root, "title", "", &study->title, r->err);
    if (!status)
        status = fini_node_text(r->tree, root, "source", "", &study->source, r->err);
    if (!status)
        status = fini_node_text(r->tree, root, "about", "", &study->about, r->err);
    if (!status)
        status = read_blocks(r, root);
    if (!status)
        status = read_list_of(r, root, "claims", &study->claims);
    if (!status)
        status = read_list_of(r, root, "figures", &study->figures);
    return status ? status : fini_claims_check(study, r->err);
}

/* The study's struct and what it keeps of the call, in the tree's memory. */
static fin_status keep_call(fini_tree *tree, const char *text, size_t size,
                            const fin_study_changes *changes, fin_study **out, fin_error *err)
{
    size_t length = 0;
    int count = changes ? changes->count : 0;
    for (int i = 0; i < count; i++)
        length += strlen(changes->set[i]) + 1;
    fin_study *study = fini_tree_take(tree, 1, sizeof *study);
    char *copy = fini_tree_copy(tree, text, size), *lines = fini_tree_take(tree, 1, length + 1);
    if (!study || !copy || !lines)
        return fini_tree_fail_memory(err);
    *study = (fin_study){.tree = tree, .text = copy, .text_size = size, .changes = lines};
    study->full = changes && changes->full;
    for (int i = 0; i < count; i++)
        lines += sprintf(lines, "%s%s", i ? "\n" : "", changes->set[i]);
    *out = study;
    return FIN_OK;
}

static fin_status parse(const char *text, size_t size, const char *label,
                        const fin_study_changes *changes, bool *has_full, fin_study **out,
                        fin_error *err)
{
    fini_reader r = {.err = err};
    fin_status status = fini_yaml_parse(text, size, label, &r.tree, err);
    if (status)
        return status;
    status = keep_call(r.tree, text, size, changes, &r.study, err);
    if (!status)
        status = fini_edit_full(r.tree, r.study->full, has_full, err);
    for (int i = 0; changes && i < changes->count && !status; i++)
        status = fini_edit_set(r.tree, changes->set[i], err);
    if (!status)
        status = read_root(&r);
    if (status)
        fini_yaml_destroy(r.tree);
    else
        *out = r.study;
    return status;
}

/* A mistake under `full:` is not to be found by whoever waits for the large run. Changes that do not
 * go with the large sizes are none, if the file alone is good: they were made for the quick ones. */
static fin_status check_full(const char *text, size_t size, const char *label,
                             const fin_study_changes *changes, fin_error *err)
{
    fin_study_changes full = {.full = 1};
    fin_study *large = NULL;
    bool has_full;
    fin_error inner = {FIN_OK, ""};
    if (changes) {
        full.set = changes->set;
        full.count = changes->count;
    }
    fin_status status = parse(text, size, label, &full, &has_full, &large, &inner);
    fin_study_destroy(large);
    if (status && status != FIN_ERR_MEMORY && full.count) {
        fin_study_changes plain = {.full = 1};
        large = NULL;
        if (!parse(text, size, label, &plain, &has_full, &large, NULL))
            status = FIN_OK;
        fin_study_destroy(large);
    }
    return status ? fini_fail(err, status, "%s", inner.message) : FIN_OK;
}

fin_status fin_study_parse(const char *text, size_t size, const char *label,
                           const fin_study_changes *changes, fin_study **out, fin_error *err)
{
    bool has_full = false;
    *out = NULL;
    fin_status status = parse(text, size, label, changes, &has_full, out, err);
    if (!status && has_full && !(*out)->full) {
        status = check_full(text, size, label, changes, err);
        if (status) {
            fin_study_destroy(*out);
            *out = NULL;
        }
    }
    return status;
}

fin_status fin_study_read(const char *path, const fin_study_changes *changes, fin_study **out,
                          fin_error *err)
{
    char *text;
    size_t size;
    *out = NULL;
    fin_status status = fini_read_text(path, &text, &size, err);
    if (status)
        return status;
    const char *label = strcmp(path, "-") == 0 ? "standard input" : path;
    status = fin_study_parse(text, size, label, changes, out, err);
    fini_free(text);
    return status;
}

fin_status fini_study_restore(const char *text, size_t size, const char *changes, bool full,
                              const char *label, fin_study **out, fin_error *err)
{
    int count = 0;
    *out = NULL;
    size_t length = strlen(changes);
    for (size_t i = 0; i < length; i++)
        count += changes[i] == '\n';
    count += length > 0;
    /* The lines, cut apart, and where they begin. */
    char *copy = fini_alloc(length + 1);
    const char **set = fini_alloc_array(count, sizeof *set);
    if (!copy || !set) {
        fini_free(copy);
        fini_free(set);
        return fini_tree_fail_memory(err);
    }
    memcpy(copy, changes, length + 1);
    char *line = copy;
    for (int i = 0; i < count; i++) {
        set[i] = line;
        line += strcspn(line, "\n");
        *line++ = '\0';
    }
    fin_study_changes given = {set, count, full};
    fin_status status = fin_study_parse(text, size, label, &given, out, err);
    fini_free(copy);
    fini_free(set);
    return status;
}

void fin_study_destroy(fin_study *study)
{
    if (study)
        fini_yaml_destroy(study->tree); /* which holds the study */
}

const char *fin_study_name(const fin_study *study)
{
    return study->name;
}

const char *fin_study_title(const fin_study *study)
{
    return study->title;
}

int64_t fin_study_run_count(const fin_study *study)
{
    return study->run_count;
}

int fin_study_claim_count(const fin_study *study)
{
    return study->claims ? study->claims->count : 0;
}
