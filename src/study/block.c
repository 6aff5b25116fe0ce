/* A block of runs: command, fixed settings, axes.
 *
 * Everything that can be known before the first run is checked here: names, every fixed setting and
 * every value of every axis, so that a mistake is told with its line and column and not after an
 * hour. Settings that fail only in combination are found when that run is prepared. */
#include "study/read.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- settings of a block -------------------------------------------------------------------- */

static const fin_pair *find_pair(const fini_block *block, const char *name)
{
    for (int i = 0; i < block->fixed_count; i++)
        if (fini_same_name(block->fixed[i].name, name))
            return &block->fixed[i];
    return NULL;
}

static fin_status read_fixed(fini_reader *r, const fini_node *set, fini_block *block)
{
    if (!set)
        return FIN_OK;
    if (set->kind != FINI_MAP)
        return fini_node_fail(r->tree, set, r->err, "set must be a map of settings, {lam: 0.1}");
    if (set->count > FINI_PAIRS_MOST)
        return fini_node_fail(r->tree, set, r->err, "set has more than %d settings",
                              (int)FINI_PAIRS_MOST);
    block->fixed = fini_tree_take(r->tree, set->count, sizeof *block->fixed);
    if (!block->fixed)
        return fini_tree_fail_memory(r->err);
    for (int i = 0; i < set->count; i++) {
        const fini_node *node = &set->child[i];
        char shown[FINI_SHOWN];
        if (node->kind != FINI_TEXT)
            return fini_node_fail(r->tree, node, r->err,
                                  "%s must be one value here; several values stand under 'axes:'",
                                  fini_shown(node->name, shown));
        if (fini_node_is_null(node))
            return fini_node_fail_key(r->tree, node, r->err, "%s has no value",
                                      fini_shown(node->name, shown));
        if (find_pair(block, node->name))
            return fini_node_fail_key(r->tree, node, r->err, "%s is set twice ('-' is '_')",
                                      fini_shown(node->name, shown));
        block->fixed[block->fixed_count++] = (fin_pair){node->name, node->text, node};
    }
    return FIN_OK;
}

/* ---- axes of a block ------------------------------------------------------------------------ */

/* All that chooses tables: fixed settings, and the first of values that are written out. */
static int first_words(const fini_block *block, const fini_node *axes, fin_pair *pairs)
{
    int count = block->fixed_count;
    if (count)
        memcpy(pairs, block->fixed, (size_t)count * sizeof *pairs);
    for (int i = 0; i < axes->count; i++) {
        const fini_node *list = &axes->child[i];
        if (list->kind == FINI_LIST && list->count > 0 && list->child[0].kind == FINI_TEXT)
            pairs[count++] = (fin_pair){list->name, list->child[0].text, NULL};
    }
    return count;
}

static fin_status check_axis_name(fini_reader *r, const fini_block *block, const fini_node *node,
                                  const char *name)
{
    char shown[FINI_SHOWN];
    if (find_pair(block, name))
        return fini_node_fail_key(r->tree, node, r->err,
                                  "%s is both a fixed setting and an axis; keep one of them",
                                  fini_shown(name, shown));
    for (int i = 0; i < block->axis_count; i++)
        if (fini_same_name(block->axes[i].name, name))
            return fini_node_fail_key(r->tree, node, r->err, "there are two axes %s",
                                      fini_shown(name, shown));
    return FIN_OK;
}

static fin_status count_axis(fini_reader *r, fini_block *block, const fini_node *node)
{
    const fini_axis *axis = &block->axes[block->axis_count++];
    r->values += axis->count;
    if (r->values > FINI_VALUES_MOST)
        return fini_node_fail_key(r->tree, node, r->err,
                                  "up to here the axes have more than %d values in all",
                                  (int)FINI_VALUES_MOST);
    return FIN_OK;
}

/* draws and its seed: whole numbers; 0 where there are no draws. */
static fin_status read_draws(fini_reader *r, const fini_node *node, int64_t *draws, int64_t *seed)
{
    fini_ask ask = {r->tree, r->err, FIN_OK};
    double count = fini_ask_number(&ask, node, "draws", 0);
    const fini_node *at = fini_node_get(node, "draws");
    if (at && !(count >= 1 && count <= FINI_AXIS_MOST && count == floor(count)))
        FINI_ASK_FAIL(&ask, at, "draws = %g; it must be a whole number from 1 to %d", count,
                      (int)FINI_AXIS_MOST);
    double number = fini_ask_number(&ask, node, "seed", 1);
    at = fini_node_get(node, "seed");
    if (!(number >= 0 && number <= 0x1p53 && number == floor(number)))
        FINI_ASK_FAIL(&ask, at, "seed = %g; it must be a whole number from 0 to 2^53", number);
    if (at && count == 0)
        FINI_ASK(&ask, fini_node_fail_key(r->tree, at, r->err,
                                          "this seed is that of 'draws', which the block does not "
                                          "have; the setting seed stands under 'set:'"));
    *draws = ask.status ? 0 : (int64_t)count;
    *seed = ask.status ? 0 : (int64_t)number;
    return ask.status;
}

static fin_status read_axes(fini_reader *r, const fini_node *node, fini_block *block, void *values)
{
    const fini_node *seeds = fini_node_get(node, "seeds"), *axes = fini_node_get(node, "axes");
    const fini_node none = fini_node_empty(node, FINI_MAP);
    if (axes && axes->kind != FINI_MAP)
        return fini_node_fail(r->tree, axes, r->err, "axes must be a map, {lam: [0.1, 0.2]}");
    axes = axes ? axes : &none;
    if (axes->count + (seeds != NULL) > FINI_AXES_MOST)
        return fini_node_fail(r->tree, axes, r->err, "a block has at most %d axes",
                              (int)FINI_AXES_MOST);
    block->axes = fini_tree_take(r->tree, axes->count + 1, sizeof *block->axes);
    if (!block->axes)
        return fini_tree_fail_memory(r->err);
    fin_pair pairs[FINI_PAIRS_MOST + FINI_AXES_MOST];
    int words = first_words(block, axes, pairs);
    fini_axis_place place = {.tree = r->tree};
    fin_status status = read_draws(r, node, &place.draws, &place.seed);
    bool random = false;
    for (int i = 0; i < axes->count && !status; i++) {
        place.node = &axes->child[i];
        const char *name = place.node->name;
        random = random || fini_axis_is_random(place.node);
        place.whole = fini_command_is_whole(block->command, values, pairs, words, name);
        status = check_axis_name(r, block, place.node, name);
        if (!status)
            status = fini_axis_read(&place, name, &block->axes[block->axis_count], r->err);
        if (!status)
            status = count_axis(r, block, place.node);
    }
    if (!status && place.draws && !random)
        status = fini_node_fail_key(r->tree, fini_node_get(node, "draws"), r->err,
                                    "draws needs an axis with a law, such as {uniform: [0, 1]}; "
                                    "for the same settings again use 'seeds'");
    if (seeds) {
        fini_ask ask = {r->tree, r->err, status};
        FINI_ASK(&ask, check_axis_name(r, block, seeds, "seed"));
        FINI_ASK(&ask, fini_axis_seeds(r->tree, seeds, &block->axes[block->axis_count], r->err));
        status = FINI_ASK(&ask, count_axis(r, block, seeds));
    }
    block->draws = random ? place.draws : 1;
    return status;
}

/* ---- are the values good? ------------------------------------------------------------------- */

/* A failure told by the settings, at its place in the file. */
static fin_status fail_at(fini_reader *r, const fini_node *node, fin_status status,
                          const fin_error *inner)
{
    if (status == FIN_ERR_MEMORY)
        return fini_fail(r->err, status, "%s", inner->message);
    return fini_node_fail(r->tree, node, r->err, "%s", inner->message);
}

static const fini_node *value_node(const fini_axis *axis, int64_t i)
{
    return axis->node->kind == FINI_LIST ? &axis->node->child[i] : axis->node;
}

/* Values that were made from a law or a range: the row alone, which is fast. */
static fin_status check_made(fini_reader *r, const fini_block *block, const fini_axis *axis,
                             void *values)
{
    fin_error inner = {FIN_OK, ""};
    fin_status status = FIN_OK;
    for (int64_t i = 1; i < axis->count && !status; i++)
        status = fini_command_try(block->command, values, axis->name, axis->texts[i], &inner);
    return status ? fail_at(r, axis->node, status, &inner) : FIN_OK;
}

/* Values that are written out, one by one with the first of all others. What does not fit together
 * is forgiven if another axis could make it fit. */
static fin_status check_written(fini_reader *r, const fini_block *block, int a, fin_pair *pairs,
                                int count, void *values)
{
    const fini_axis *axis = &block->axes[a];
    fin_pair *pair = &pairs[block->fixed_count + a];
    bool alone = true;
    for (int i = 0; i < block->axis_count; i++)
        alone = alone && (i == a || block->axes[i].count == 1);
    for (int64_t i = 1; i < axis->count; i++) {
        fin_error inner = {FIN_OK, ""};
        int bad;
        pair->text = axis->texts[i];
        fin_status status = fin_command_apply(block->command, values, pairs, count, &bad, &inner);
        if (status && (bad >= 0 || alone || status == FIN_ERR_MEMORY))
            return fail_at(r, value_node(axis, i), status, &inner);
    }
    pair->text = axis->texts[0];
    return FIN_OK;
}

static fin_status check_values(fini_reader *r, const fini_block *block, void *values)
{
    fin_pair pairs[FINI_PAIRS_MOST + FINI_AXES_MOST];
    int count = block->fixed_count, bad;
    if (count)
        memcpy(pairs, block->fixed, (size_t)count * sizeof *pairs);
    for (int a = 0; a < block->axis_count; a++)
        pairs[count++] = (fin_pair){block->axes[a].name, block->axes[a].texts[0],
                                    value_node(&block->axes[a], 0)};
    fin_error inner = {FIN_OK, ""};
    fin_status status = fin_command_apply(block->command, values, pairs, count, &bad, &inner);
    if (status && bad < 0 && status != FIN_ERR_MEMORY)
        bad = fini_command_blame(block->command, values, pairs, count);
    if (status) { /* an unknown setting: at its name */
        const fini_node *node = bad >= 0 ? pairs[bad].mark : block->node;
        bool unknown = bad >= 0 && strstr(inner.message, "has no setting");
        if (unknown && bad >= block->fixed_count)
            node = block->axes[bad - block->fixed_count].node;
        return unknown ? fini_node_fail_key(r->tree, node, r->err, "%s", inner.message)
                       : fail_at(r, node, status, &inner);
    }
    /* The rows first: they want the values as they are now. */
    for (int a = 0; a < block->axis_count && !status; a++)
        if (block->axes[a].node->kind != FINI_LIST)
            status = check_made(r, block, &block->axes[a], values);
    for (int a = 0; a < block->axis_count && !status; a++)
        if (block->axes[a].node->kind == FINI_LIST)
            status = check_written(r, block, a, pairs, count, values);
    return status;
}

/* ---- blocks --------------------------------------------------------------------------------- */

fin_status fini_read_name(fini_reader *r, const fini_node *map, const char *key,
                          const char *fallback, const char **name)
{
    char shown[FINI_SHOWN];
    fin_status status = fini_node_text(r->tree, map, key, fallback, name, r->err);
    const fini_node *node = fini_node_get(map, key);
    if (!status && !fini_is_name(*name))
        status = fini_node_fail(r->tree, node ? node : map, r->err,
                                "'%s' is no name: letters, digits, - and _, at most %d of "
                                "them, and not - first",
                                fini_shown(*name, shown), (int)FINI_NAME_MOST);
    return status;
}

static fin_status find_job(fini_reader *r, const fini_node *node, const fin_command **command)
{
    enum { COMMANDS = 64 };
    const char *names[COMMANDS], *name;
    char shown[FINI_SHOWN], hint[200];
    int count = 0;
    FINI_TRY(fini_node_text(r->tree, node, "command", NULL, &name, r->err));
    *command = fin_command_find(name);
    if (*command)
        return FIN_OK;
    for (; count < fin_command_count() && count < COMMANDS; count++)
        names[count] = fin_command_at(count)->name;
    return fini_node_fail(r->tree, fini_node_get(node, "command"), r->err,
                          "there is no command '%s' that a study can run%s",
                          fini_shown(name, shown),
                          fini_hint(name, names, count, hint, sizeof hint));
}

/* Runs of the block; overflow is impossible because every product is checked against the most. */
static fin_status count_runs(fini_reader *r, fini_block *block)
{
    int64_t count = block->draws, most = FINI_RUNS_MOST - r->study->run_count;
    for (int a = 0; a < block->axis_count && count <= most; a++)
        if (!block->axes[a].random)
            count *= block->axes[a].count; /* at most 1e7 * 1e6 */
    if (count > most)
        return fini_node_fail(r->tree, block->node, r->err,
                              "with block '%s' the study has more than %d runs; take fewer values, "
                              "or cut it into several studies",
                              block->id, (int)FINI_RUNS_MOST);
    block->count = count;
    block->first = r->study->run_count;
    r->study->run_count += count;
    return FIN_OK;
}

fin_status fini_read_block(fini_reader *r, const fini_node *node, fini_block *block)
{
    static const char *const keys[] = {"id",   "command", "set",  "axes", "draws",
                                       "seed", "seeds",   "full", NULL};
    block->node = node;
    FINI_TRY(fini_node_keys(r->tree, node, "a block of runs", keys, r->err));
    FINI_TRY(find_job(r, node, &block->command));
    FINI_TRY(fini_read_name(r, node, "id", block->command->name, &block->id));
    if (fini_study_block(r->study, block->id)) {
        const fini_node *id = fini_node_get(node, "id");
        return fini_node_fail(r->tree, id ? id : node, r->err,
                              "there are two blocks '%s'; give each an 'id' of its own", block->id);
    }
    FINI_TRY(read_fixed(r, fini_node_get(node, "set"), block));
    FINI_FREED void *values = fini_alloc(block->command->size);
    if (!values)
        return fini_fail_memory(r->err, block->command->size, "the settings of a run");
    FINI_TRY(read_axes(r, node, block, values));
    FINI_TRY(check_values(r, block, values));
    return count_runs(r, block);
}

/* ---- whom to blame ---------------------------------------------------------------------------- */

int fini_command_blame(const fin_command *command, void *values, const fin_pair *pairs, int count)
{
    fin_pair rest[FINI_PAIRS_MOST + FINI_AXES_MOST];
    int blamed = -1;
    bool given = false; /* the blamed one comes from --set */
    for (int i = count - 1; i >= 0 && count <= FINI_PAIRS_MOST + FINI_AXES_MOST; i--) {
        const fini_node *node = pairs[i].mark;
        bool set = node && node->line < 0;
        if (blamed >= 0 && (given || !set))
            continue;
        int left = 0;
        for (int j = 0; j < count; j++)
            if (j != i)
                rest[left++] = pairs[j];
        if (fin_command_apply(command, values, rest, left, NULL, NULL))
            continue;
        blamed = i;
        given = set;
    }
    return blamed;
}
