/* What the files that read studies share: tree.c and yaml.c (text -> tree), node.c (asking it),
 * edit.c (changes to it), each.c (families of claims and figures), axes.c (values of an axis),
 * block.c and read.c (tree -> study).
 *
 * A study lives in the memory of its tree: everything that is read from the file, made from it, or
 * given by --set stays until the tree is destroyed, so that there is nothing to free one by one. */
#ifndef FINI_STUDY_READ_H
#define FINI_STUDY_READ_H

#include "study/study.h"

enum {
    FINI_PAIRS_MOST = 256,      /* fixed settings of a block */
    FINI_AXIS_MOST = 1000000,   /* values of an axis, because they are kept as texts */
    FINI_VALUES_MOST = 4000000, /* of all axes of a study */
    FINI_NAME_MOST = 64         /* letters of a study's or block's name */
};

/* ---- the tree (tree.c) ---------------------------------------------------------------------- */

typedef struct fini_chunk fini_chunk;

struct fini_tree {
    fini_chunk *chunks; /* of memory; the first one is being filled */
    const char *label;
    fini_node *root;
    const char **paths; /* of --set: nodes with line -n come from paths[n - 1] */
    int path_count, path_room;
};

/* Zeroed, aligned for anything; NULL if it overflows or memory is out. */
void *fini_tree_take(fini_tree *tree, int64_t count, size_t size);
char *fini_tree_copy(fini_tree *tree, const char *text, size_t length); /* NULL: no memory */
fin_status fini_tree_fail_memory(fin_error *err);
void fini_tree_clear(fini_tree *tree); /* frees its memory, and not the struct */
/* From here on nodes with line -path_count come from --set `path`. */
fin_status fini_tree_remember(fini_tree *tree, const char *path, fin_error *err);

/* ---- changing the tree (yaml.c, node.c, edit.c) --------------------------------------------- */

/* The value of a --set: YAML if it begins with a bracket or a quote (unless `raw`), else the text
 * as it is. Its nodes know that they come from --set `path`, and messages about them say so. */
fin_status fini_tree_graft(fini_tree *tree, const char *path, const char *text, bool raw,
                           fini_node *out, fin_error *err);
/* Nothing yet, at the place of `node`. */
fini_node fini_node_empty(const fini_node *node, fini_kind kind);
fini_node *fini_node_find(fini_node *map, const char *key); /* '-' and '_' are the same */
fin_status fini_node_put(fini_tree *tree, fini_node *map, const char *key, const fini_node *value,
                         fin_error *err);
void fini_node_remove(fini_node *map, const char *key);
/* With all that is below it; texts are shared. */
fin_status fini_node_copy(fini_tree *tree, const fini_node *from, fini_node *out, fin_error *err);

/* `full:` of every block into the block, or out of it, and claims with `only: full` out of their list;
 * then the changes, "path=value" each. */
fin_status fini_edit_full(fini_tree *tree, bool full, int *left_out, fin_error *err);
bool fini_edit_has_full(const fini_tree *tree);
fin_status fini_edit_set(fini_tree *tree, const char *change, fin_error *err);

/* ---- helpers -------------------------------------------------------------------------------- */

/* [A-Za-z0-9_-]{1,64} */
bool fini_is_name(const char *text);
/* A plain ~, null or nothing at all. */
bool fini_node_is_null(const fini_node *node);
/* "; did you mean 'x'?" or "; allowed are a, b, c". Returns buffer. */
char *fini_hint(const char *word, const char *const *names, int count, char *buffer, size_t size);
/* ---- block.c: whom to blame -------------------------------------------------------------------- */

/* Settings do not fit together: the pair without which (at its default) they do, one from --set if
 * there is such a one, else the last; -1 if there is none. values: scratch. */
int fini_command_blame(const fin_command *command, void *values, const fin_pair *pairs, int count);

/* ---- axes.c --------------------------------------------------------------------------------- */

typedef struct fini_axis_place {
    fini_tree *tree;
    const fini_node *node; /* the axis */
    int64_t draws;         /* 0: the block has none */
    int64_t seed;          /* of the draws */
    bool whole;            /* the setting is a whole number */
} fini_axis_place;

/* Is it a random law? False for anything malformed too. */
bool fini_axis_is_random(const fini_node *node);
fin_status fini_axis_read(const fini_axis_place *place, const char *name, fini_axis *axis,
                          fin_error *err);
/* seeds: 5 or a list. */
fin_status fini_axis_seeds(fini_tree *tree, const fini_node *node, fini_axis *axis, fin_error *err);

/* ---- block.c -------------------------------------------------------------------------------- */

typedef struct fini_reader {
    fini_tree *tree;
    fin_study *study;
    int64_t values; /* of all axes so far */
    fin_error *err;
} fini_reader;

/* The text under `key`, which must be a name. fallback NULL: it must be there. */
fin_status fini_read_name(fini_reader *r, const fini_node *map, const char *key,
                          const char *fallback, const char **name);
/* The block with all its values checked; adds its runs to those of the study. */
fin_status fini_read_block(fini_reader *r, const fini_node *node, fini_block *block);
/* Its names (claim_where.c). */
fin_status fini_block_names(fini_reader *r, fini_block *block);

/* ---- each.c --------------------------------------------------------------------------------- */

/* The list under `key` (claims, figures) with its families and groups unfolded; NULL: there is
 * none. */
fin_status fini_unfold(fini_reader *r, const char *key, const fini_node **out);

#endif
