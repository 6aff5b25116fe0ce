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
    for (int i = 0; i < runs->count; i++) {
        FINI_TRY(fini_read_block(r, &runs->child[i], &study->blocks[i]));
        study->block_count = i + 1;
        FINI_TRY(fini_block_names(r, &study->blocks[i]));
    }
    return FIN_OK;
}

/* ---- the study ------------------------------------------------------------------------------ */

static fin_status read_root(fini_reader *r)
{
    static const char *const keys[] = {"study", "title",  "source",  "about", "paper",
                                       "runs",  "claims", "figures", NULL};
    const fini_node *root = fini_yaml_root(r->tree), *claims = NULL;
    fin_study *study = r->study;
    fini_ask ask = {r->tree, r->err, FIN_OK};
    fini_ask_keys(&ask, root, "a study", keys);
    FINI_ASK(&ask, fini_read_name(r, root, "study", NULL, &study->name));
    study->title = fini_ask_text(&ask, root, "title", "");
    study->source = fini_ask_text(&ask, root, "source", "");
    study->about = fini_ask_text(&ask, root, "about", "");
    study->paper = fini_node_get(root, "paper");
    FINI_ASK(&ask, read_blocks(r, root));
    FINI_ASK(&ask, fini_unfold(r, "figures", &study->figures));
    FINI_ASK(&ask, fini_unfold(r, "claims", &claims));
    return claims ? FINI_ASK(&ask, fini_claims_read(study, claims, r->err)) : ask.status;
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

/* Changes to the tree, then the study. */
static fin_status read_changed(fini_reader *r, const fin_study_changes *changes)
{
    FINI_TRY(fini_edit_full(r->tree, r->study->full, &r->study->left_out, r->err));
    for (int i = 0; changes && i < changes->count; i++)
        FINI_TRY(fini_edit_set(r->tree, changes->set[i], r->err));
    return read_root(r);
}

/* The study with the sizes under `full:`, from a copy of the tree; it is only looked at. */
static fin_status read_full(const fini_tree *tree, const fini_node *root,
                            const fin_study_changes *changes, fin_error *err)
{
    FINI_AT_END(fini_tree_clear) fini_tree copy = {.label = tree->label};
    FINI_AT_END(fini_claims_free) fin_study study = {.tree = &copy, .full = true};
    fini_reader r = {.tree = &copy, .study = &study, .err = err};
    copy.root = fini_tree_take(&copy, 1, sizeof *copy.root);
    FINI_TRY(copy.root ? fini_node_copy(&copy, root, copy.root, err) : fini_tree_fail_memory(err));
    return read_changed(&r, changes);
}

/* A mistake under `full:` is not to be found by whoever waits for the large run. Changes that do not
 * go with the large sizes are none, if the file alone is good: they were made for the quick ones. */
static fin_status check_full(const fini_tree *tree, const fini_node *root,
                             const fin_study_changes *changes, fin_error *err)
{
    fin_error inner = {FIN_OK, ""};
    fin_status status = read_full(tree, root, changes, &inner);
    if (status && status != FIN_ERR_MEMORY && changes && changes->count &&
        !read_full(tree, root, NULL, NULL))
        status = FIN_OK;
    return status ? fini_fail(err, status, "%s", inner.message) : FIN_OK;
}

fin_status fin_study_parse(const char *text, size_t size, const char *label,
                           const fin_study_changes *changes, fin_study **out, fin_error *err)
{
    FINI_NEED_TO_MAKE(err, out, !size || text, label);
    fini_reader r = {.err = err};
    FINI_TRY(fini_yaml_parse(text, size, label, &r.tree, err));
    fin_status status = keep_call(r.tree, text, size, changes, &r.study, err);
    fini_node pristine; /* as the file has it, where `full:` is to be checked too */
    bool both = !status && !r.study->full && fini_edit_has_full(r.tree);
    if (both)
        status = fini_node_copy(r.tree, r.tree->root, &pristine, err);
    if (!status)
        status = read_changed(&r, changes);
    if (!status && both)
        status = check_full(r.tree, &pristine, changes, err);
    if (status && r.study)
        fini_claims_free(r.study);
    if (status)
        fini_yaml_destroy(r.tree);
    else
        *out = r.study;
    return status;
}

fin_status fin_study_read(const char *path, const fin_study_changes *changes, fin_study **out,
                          fin_error *err)
{
    FINI_NEED_TO_MAKE(err, out, path);
    char *text;
    size_t size;
    FINI_TRY(fini_read_text(path, &text, &size, err));
    const char *label = strcmp(path, "-") == 0 ? "standard input" : path;
    fin_status status = fin_study_parse(text, size, label, changes, out, err);
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
    FINI_FREED char *copy = fini_alloc(length + 1);
    const char **set = fini_alloc_array(count, sizeof *set);
    if (!copy || !set) {
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
    fini_free(set);
    return status;
}

void fin_study_destroy(fin_study *study)
{
    if (!study)
        return;
    fini_claims_free(study);
    fini_yaml_destroy(study->tree); /* which holds the study */
}

const char *fin_study_name(const fin_study *study)
{
    return study ? study->name : NULL;
}

const char *fin_study_title(const fin_study *study)
{
    return study ? study->title : NULL;
}

int64_t fin_study_run_count(const fin_study *study)
{
    return study ? study->run_count : 0;
}

int fin_study_claim_count(const fin_study *study)
{
    return study ? study->claim_count : 0;
}
