/* Run i of a study: which block, which value of every axis, and from them the settings.
 *
 * Positions are numbers in mixed base: block by block, the draw first, then the axes of the grid,
 * the last one moving fastest. Nothing is kept between calls, so that threads can ask a study for
 * any run at the same time. */
#include "store/store.h"
#include "study/read.h"

#include <string.h>

const fini_block *fini_study_block(const fin_study *study, const char *id)
{
    for (int i = 0; i < study->block_count; i++)
        if (strcmp(study->blocks[i].id, id) == 0)
            return &study->blocks[i];
    return NULL;
}

const fini_node *fini_study_figure(const fin_study *study, const char *id, const char **near)
{
    *near = NULL;
    for (int i = 0; study->figures && i < study->figures->count; i++) {
        const fini_node *name = fini_node_get(&study->figures->child[i], "id");
        if (!name || name->kind != FINI_TEXT)
            continue;
        if (strcmp(name->text, id) == 0)
            return &study->figures->child[i];
        *near = *near ? *near : fin_nearest_name(id, &name->text, 1);
    }
    return NULL;
}

const fini_block *fini_study_block_at(const fin_study *study, int64_t i)
{
    int low = 0, high = study->block_count - 1;
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (study->blocks[middle].first <= i)
            low = middle;
        else
            high = middle - 1;
    }
    return &study->blocks[low];
}

static int fill_pairs(const fini_block *block, int64_t i, fin_pair *pairs)
{
    int64_t rest = i - block->first, draw = rest / (block->count / block->draws);
    int count = block->fixed_count;
    if (count)
        memcpy(pairs, block->fixed, (size_t)count * sizeof *pairs);
    for (int a = block->axis_count - 1; a >= 0; a--) {
        const fini_axis *axis = &block->axes[a];
        int64_t value = axis->random ? draw : rest % axis->count;
        if (!axis->random)
            rest /= axis->count;
        pairs[count++] = (fin_pair){axis->name, axis->texts[value], NULL};
    }
    return count;
}

/* whole: they must fit together too. */
static fin_status settings_of(const fin_study *study, const fini_block *block, int64_t i,
                              bool whole, void *values, fin_error *err)
{
    fin_pair pairs[FINI_PAIRS_MOST + FINI_AXES_MOST];
    int count = fill_pairs(block, i, pairs);
    fin_error inner = {FIN_OK, ""};
    fin_status status = whole
                            ? fin_command_apply(block->command, values, pairs, count, NULL, &inner)
                            : fini_command_fill(block->command, values, pairs, count, &inner);
    if (status)
        fini_fail(err, status, "%.100s: run %lld of block '%s': %.300s",
                  fini_yaml_label(study->tree), (long long)(i - block->first + 1), block->id,
                  inner.message);
    return status;
}

static fin_status check_position(const fin_study *study, int64_t i, fin_error *err)
{
    if (i >= 0 && i < study->run_count)
        return FIN_OK;
    return fini_fail(err, FIN_ERR_ARGUMENT, "study '%s' has no run %lld; it has runs 0 to %lld",
                     study->name, (long long)i, (long long)study->run_count - 1);
}

fin_status fini_study_settings(const fin_study *study, int64_t i, void *values, fin_error *err)
{
    FINI_TRY(check_position(study, i, err));
    return settings_of(study, fini_study_block_at(study, i), i, true, values, err);
}

/* Settings that do not fit together are a run too: one that will fail, and say why. */
fin_status fini_study_get_run(const fin_study *study, int64_t i, void *values, fin_plan *out,
                              fin_error *err)
{
    const fini_block *block = fini_study_block_at(study, i);
    FINI_TRY(settings_of(study, block, i, false, values, err));
    FINI_TRY(fin_command_text(block->command, values, out->settings, sizeof out->settings, err));
    out->block = block->id;
    out->command = block->command->name;
    fini_hash(out->settings, out->hash);
    return FIN_OK;
}

fin_status fin_study_get_run(const fin_study *study, int64_t i, fin_plan *out, fin_error *err)
{
    FINI_NEED(err, study, out);
    FINI_TRY(check_position(study, i, err));
    size_t size = fini_study_block_at(study, i)->command->size;
    FINI_FREED void *values = fini_alloc(size);
    if (!values)
        return fini_fail_memory(err, size, "the settings of a run");
    return fini_study_get_run(study, i, values, out, err);
}

static fin_status plan_of(const void *study, int64_t position, fin_plan *out, fin_error *err)
{
    return fin_study_get_run(study, position, out, err);
}

fin_status fini_study_keep(fin_store *store, const fin_study *study, const fini_done *done,
                           int count, fin_error *err)
{
    return fini_store_keep(store, plan_of, study, done, count, err);
}
