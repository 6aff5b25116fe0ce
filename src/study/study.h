/* Private face of the module study.
 *
 *     yaml.c        text -> tree of nodes that know their line and column; safe for any input
 *                   (tree.c: its memory; node.c: asking it; edit.c: `full:` and --set)
 *     read.c        tree -> study: blocks, axes, claims, figures (block.c, axes.c)
 *     each.c        families and groups of claims and figures -> claims and figures
 *     plan.c        run i of a study: its settings, canonical JSON and hash
 *     record.c      plan -> store, and the study as it was run back from there
 *     run.c         what is missing -> threads and ranks -> the store; ranks.c: MPI or alone
 *     expression.c  formulas of columns
 *     claim.c       columns -> a number with its uncertainty -> a verdict
 *     conduct.c     run, judge, hand on; the studies of a store, each read once */
#ifndef FINI_STUDY_H
#define FINI_STUDY_H

#include "command/command.h"
#include "command/formula.h"
#include "finetti/study.h"
#include "math/stats.h"
#include "store/done.h"
#include "store/frame.h"

/* ---- YAML as a tree (yaml.c) ---------------------------------------------------------------- */

typedef enum fini_kind { FINI_TEXT, FINI_LIST, FINI_MAP } fini_kind;

typedef struct fini_node fini_node;
struct fini_node {
    fini_kind kind;
    int line, column;           /* of the value, from 1 */
    const char *name;           /* in a map: its key, else NULL */
    int name_line, name_column; /* of the key */
    const char *text;           /* FINI_TEXT: never NULL, valid UTF-8 without control characters
                                 * other than newline and tab; else NULL */
    bool plain;                 /* FINI_TEXT: it was not quoted */
    int count;                  /* FINI_LIST, FINI_MAP: children */
    fini_node *child;           /* [count], in file order; keys of a map are different */
};

typedef struct fini_tree fini_tree;
enum { FINI_YAML_BYTES = 1 << 20, FINI_YAML_DEPTH = 32, FINI_YAML_NODES = 100000 };

/* Anchors, aliases, tags, merge keys, several documents and keys that are no plain text are refused
 * with a message. `label` (copied) stands for the file in messages. */
fin_status fini_yaml_parse(const char *text, size_t size, const char *label, fini_tree **out,
                           fin_error *err);
void fini_yaml_destroy(fini_tree *tree); /* NULL is fine */
fini_node *fini_yaml_root(const fini_tree *tree);
const char *fini_yaml_label(const fini_tree *tree);

/* "FILE:3:7: ..." at the value (or at the key) of this node. */
fin_status fini_node_fail(const fini_tree *tree, const fini_node *node, fin_error *err,
                          const char *format, ...) __attribute__((format(printf, 4, 5)));
fin_status fini_node_fail_key(const fini_tree *tree, const fini_node *node, fin_error *err,
                              const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The child of a map with this key, or NULL. node may be NULL. */
const fini_node *fini_node_get(const fini_node *node, const char *key);
/* It is a map, and has no keys but these (NULL-terminated): else file, line, column and the nearest
 * of them. `what` names the map: "a claim". */
fin_status fini_node_keys(const fini_tree *tree, const fini_node *node, const char *what,
                          const char *const *names, fin_error *err);
/* The text (or number, or truth) of child `key`; `fallback` where there is none, unless it is
 * required (fallback NULL or NAN; for flags -1). */
fin_status fini_node_text(const fini_tree *tree, const fini_node *map, const char *key,
                          const char *fallback, const char **text, fin_error *err);
fin_status fini_node_number(const fini_tree *tree, const fini_node *map, const char *key,
                            double fallback, double *number, fin_error *err);
fin_status fini_node_flag(const fini_tree *tree, const fini_node *map, const char *key,
                          int fallback, bool *flag, fin_error *err);

/* The same, one question after the other: the first failure counts, and what is asked after it gives
 * something harmless ("", 0, false). */
typedef struct fini_ask {
    const fini_tree *tree;
    fin_error *err; /* may be NULL */
    fin_status status;
} fini_ask;
/* A call, and a message about a node, unless something has failed before. */
#define FINI_ASK(ask, call) ((ask)->status = (ask)->status ? (ask)->status : (call))
#define FINI_ASK_FAIL(ask, node, ...)                                                              \
    FINI_ASK(ask, fini_node_fail((ask)->tree, node, (ask)->err, __VA_ARGS__))
void fini_ask_keys(fini_ask *ask, const fini_node *map, const char *what, const char *const *keys);
const char *fini_ask_text(fini_ask *ask, const fini_node *map, const char *key,
                          const char *fallback);
double fini_ask_number(fini_ask *ask, const fini_node *map, const char *key, double fallback);
bool fini_ask_flag(fini_ask *ask, const fini_node *map, const char *key, int fallback);

/* ---- studies (read.c, plan.c) ---------------------------------------------------------------- */

typedef struct fini_axis {
    const char *name;
    int64_t count;
    const char **texts;    /* [count] */
    const fini_node *node; /* of the axis; values of a list: node->child[i] */
    bool random;           /* not part of the grid: one value a draw, count = draws */
} fini_axis;

typedef struct fini_block {
    const char *id;
    const fin_command *command;
    const fini_node *node;
    fin_pair *fixed;
    int fixed_count;
    fini_axis *axes; /* seeds included, last; the last one moves fastest */
    int axis_count;
    int64_t draws;      /* 1 without random axes */
    int64_t count;      /* runs: the grid times draws */
    int64_t first;      /* position of its first run in the study */
    const char **names; /* what formulas may have: settings of its first run, then what it leaves */
    int name_count, setting_count;
} fini_block;

typedef struct fini_claim_plan fini_claim_plan; /* claim.h */

struct fin_study {
    fini_arena arena; /* holds what is below, this struct too, or however read.c wants it */
    fini_tree *tree;
    char *text; /* the file as it was read */
    size_t text_size;
    char *changes; /* the paths of --set, one "path=value" a line; "" if there are none */
    bool full;
    const char *name, *title, *source, *about;
    const fini_node
        *paper; /* the chapter of a report it belongs to (src/report/chapter.h), or NULL */
    fini_block *blocks;
    int block_count;
    int64_t run_count;
    fini_claim_plan *claims;   /* [claim_count] */
    int claim_count, left_out; /* left_out: claims (families of them) of the full size alone */
    const fini_node *figures;  /* a list, or NULL; families (`each`) are unfolded */
};
enum { FINI_RUNS_MOST = 10000000, FINI_BLOCKS_MOST = 1000, FINI_AXES_MOST = 16 };

const fini_block *fini_study_block(const fin_study *study, const char *id); /* NULL: none */
/* The first figure with this id, or NULL and the nearest id (may be NULL). */
const fini_node *fini_study_figure(const fin_study *study, const char *id, const char **near);
/* The block that has run i, 0 <= i < run_count. */
const fini_block *fini_study_block_at(const fin_study *study, int64_t i);
/* fin_study_get_run of a run that is there, and its settings in values (the command's size bytes). */
fin_status fini_study_get_run(const fin_study *study, int64_t i, void *values, fin_plan *out,
                              fin_error *err);
/* Settings of run i into values (the command's size bytes). */
fin_status fini_study_settings(const fin_study *study, int64_t i, void *values, fin_error *err);
/* The study as the store keeps it: text, changes, full -> the same study again. */
fin_status fini_study_restore(const char *text, size_t size, const char *changes, bool full,
                              const char *label, fin_study **out, fin_error *err);

/* ---- into the store, and back (record.c) ----------------------------------------------------- */

/* Puts the study and its plan in place of what the store has under this name, in one transaction.
 * Sets missing[i] = 1 for runs that are to be done (failed ones too, if retry), and known[i] (or NULL).
 * progress may be NULL; what it cancels leaves the store as it was. */
fin_status fini_store_plan(fin_store *store, const fin_study *study, bool retry,
                           unsigned char *missing, fini_known *known, const fin_progress *progress,
                           fin_error *err);
/* Keeps finished runs, in one transaction. */
fin_status fini_study_keep(fin_store *store, const fin_study *study, const fini_done *done,
                           int count, fin_error *err);
/* The study with this name as it was run. FIN_ERR_ARGUMENT with the nearest name if there is none. */
fin_status fini_store_study(fin_store *store, const char *name, fin_study **out, fin_error *err);

/* ---- formulas of columns (expression.c) ----------------------------------------------------------------- */

/* An interval of 95 % is so many standard errors to each side. */
#define FINI_Z95 1.959963984540054

typedef struct fini_number {
    double value, error; /* error: of independent errors of the columns, to first order */
    double low, high;    /* its 95 % interval, which need not have value in the middle */
    fin_how how;         /* of its columns if they agree; else CLOCK if one is, or DERIVED */
    int64_t samples;
    bool drawn; /* chance has a part in it: it is neither closed form nor quadrature */
} fini_number;
/* With the interval that belongs to it: Wilson's for a share, else from the error. */
fini_number fini_number_make(double value, double error, fin_how how, int64_t samples);
/* At one row of a frame; an unknown name: FIN_ERR_ARGUMENT with the nearest one. */
fin_status fini_formula_frame(const fini_formula *formula, const fini_frame *frame, int64_t row,
                              fini_number *out, fin_error *err);
/* With given values for its names. */
fin_status fini_formula_values(const fini_formula *formula, const char *const *names,
                               const fini_number *numbers, int count, fini_number *out,
                               fin_error *err);

/* Conditions of the study file as such clauses. */
typedef struct fini_where {
    char **clauses; /* [count], one block of fini_alloc memory */
    int count;
} fini_where;
/* `where` of a claim, a value, a figure or a line, and the settings of its case of `each` that it
 * does not name itself and that the block has. map NULL: no clauses. */
fin_status fini_where_read(const fin_study *study, const fini_block *block, const fini_node *map,
                           fini_where *out, fin_error *err);
void fini_where_free(fini_where *where);
/* The block that `from` of the map names, else `fallback`. */
fin_status fini_from_read(const fin_study *study, const fini_node *map, const fini_block *fallback,
                          const fini_block **block, fin_error *err);
bool fini_block_has_setting(const fini_block *block, const char *name);
/* A formula that stands in the file: it parses, and its names are settings or outputs of the block,
 * or "seconds"; else file, line, column and the nearest name. out may be NULL. */
fin_status fini_formula_read(const fin_study *study, const fini_block *block, const fini_node *node,
                             fini_formula **out, fin_error *err);
/* A text that names a setting of the block. */
fin_status fini_setting_read(const fin_study *study, const fini_block *block, const fini_node *node,
                             fin_error *err);

/* ---- claims (claim.c) ------------------------------------------------------------------------ */

/* The id of a claim or a figure: 1 to 64 letters, digits, - or _. */
bool fini_is_id(const char *text);
/* Reads the claims into study->claims, with all checks: keys, formulas, blocks, reductions. What was
 * read is freed by fini_claims_free, after a failure too. */
fin_status fini_claims_read(fin_study *study, const fini_node *list, fin_error *err);
void fini_claims_free(fin_study *study);
typedef fin_status (*fini_claim_row)(void *user, const fin_claim *claim, fin_error *err);
/* Judges them, keeps the verdicts, and hands each to `row`, which may be NULL. */
fin_status fini_claims_judge(fin_store *store, const fin_study *study, fini_claim_row row,
                             void *user, fin_error *err);
/* Claims of the store, and those of the study that nobody has judged. study NULL: one that cannot be
 * read back has at least what was judged. */
fin_status fini_claims_list(fin_store *store, const char *name, const fin_study *study,
                            fini_claim_row row, void *user, fin_error *err);

/* ---- the studies of a store (conduct.c) -------------------------------------------------------- */

/* Which of them, and those that the caller has already: no study is read twice. */
typedef struct fini_studies {
    const char *const *names; /* [count]; NULL: all */
    int count;
    const fin_study *const *hand; /* [hand_count] */
    int hand_count;
} fini_studies;
/* study NULL: it cannot be read back, and `why` says why. */
typedef fin_status (*fini_study_visit)(void *user, const char *name, const fin_study *study,
                                       const fin_error *why, fin_error *err);
/* Visits each study once. An unknown name: FIN_ERR_ARGUMENT with the nearest one. */
fin_status fini_studies_visit(fin_store *store, const fini_studies *which, fini_study_visit visit,
                              void *user, fin_error *err);

#endif
