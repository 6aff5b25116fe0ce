/* Task and form of a command: from words to tables, and from settings to a task. */
#include "command/command.h"

#include "theory/theory.h"

#include <stdio.h>
#include <string.h>

const fin_instead fini_model_instead[] = {FINI_MODEL_INSTEAD, {.name = NULL}};

/* ---- tables --------------------------------------------------------------------------------- */

fin_status fini_model_groups(fini_model *model, fin_group groups[FIN_GROUPS], int *count,
                             fin_error *err)
{
    FINI_TRY(fin_word_group("task", model->task, &model->task_settings, groups, count, err));
    return fin_word_group("form", model->form, &model->form_settings, groups, count, err);
}

/* ---- the task ------------------------------------------------------------------------------- */

fin_status fini_model_lengths(const fini_model *model, fini_lengths *room,
                              const fin_lengths **lengths, fin_error *err)
{
    int count;
    *lengths = model->lengths[0] ? &room->lengths : NULL;
    if (!*lengths)
        return FIN_OK;
    FINI_TRY(fini_parse_pieces(model->lengths, "lengths", "5:0.2,10:0.8 (LENGTH:WEIGHT)",
                               FINI_PIECES, room->L, room->p, &count, err));
    room->lengths = (fin_lengths){count, room->L, room->p};
    return FIN_OK;
}

fin_status fini_model_task(const fini_model *model, int64_t seed, int flags, fin_task **task,
                           fin_error *err)
{
    const fin_task_kind *kind = fin_task_find(model->task);
    fini_lengths room;
    const fin_lengths *lengths;
    fin_group unused[FIN_GROUPS];
    int none = 0;
    *task = NULL;
    if (!kind)
        return fin_word_group("task", model->task, NULL, unused, &none, err);
    FINI_TRY(fini_model_lengths(model, &room, &lengths, err));
    return fin_task_create(task, kind, &model->task_settings, lengths, (uint64_t)seed, flags, err);
}

fin_status fini_model_settle(fini_model *model, fin_error *err)
{
    fin_task *task;
    FINI_TRY(fini_model_task(model, 1, 0, &task, err));
    fin_form_settings given = model->form_settings;
    fin_status status =
        fini_form_resolve(task, fini_model_form(model), &given, &model->form_settings, err);
    model->task_settings = *fin_task_get_settings(task);
    fin_task_destroy(task);
    return status;
}

fin_status fin_command_task(const fin_command *command, const void *values, int64_t seed, int flags,
                            fin_task **task, fin_error *err)
{
    FINI_NEED_TO_MAKE(err, task, command, values);
    fin_group groups[FIN_GROUPS];
    fini_model model;
    int count = 0;
    memset(&model, 0, sizeof model);
    for (const fin_word *word = command->words; word->name; word++) {
        const char *text = (const char *)values + word->offset;
        if (strcmp(word->name, "task") == 0)
            snprintf(model.task, sizeof model.task, "%s", text);
        if (strcmp(word->name, "lengths") == 0)
            snprintf(model.lengths, sizeof model.lengths, "%s", text);
    }
    /* It only says where the tables' structs are; nothing is written. */
    fin_status status = fin_command_groups(command, (void *)(uintptr_t)values, groups, &count, err);
    for (int g = 0; g < count; g++)
        if (fin_task_find(model.task) &&
            groups[g].table == fin_task_kind_table(fin_task_find(model.task)))
            memcpy(&model.task_settings, groups[g].values, sizeof model.task_settings);
    return status ? status : fini_model_task(&model, seed, flags, task, err);
}

const fin_form *fini_model_form(const fini_model *model)
{
    return fin_form_find(model->form);
}

fin_status fini_model_check(const fini_model *model, fin_error *err)
{
    fin_task *task;
    fin_status status = fini_model_task(model, 1, 0, &task, err);
    fin_task_destroy(task);
    return status;
}

/* ---- numbers -------------------------------------------------------------------------------- */

/* The finaliser of splitmix64: every bit of the seed moves every bit of the answer. The constant
 * keeps 0 from being its own image. */
int64_t fini_seed_apart(int64_t seed)
{
    uint64_t x = (uint64_t)seed + UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (int64_t)((x ^ x >> 31) >> 11);
}

fin_how fini_how_of(fin_method method)
{
    switch (method) {
    case FIN_METHOD_CLOSED:
        return FIN_HOW_CLOSED;
    case FIN_METHOD_QUADRATURE:
        return FIN_HOW_QUADRATURE;
    case FIN_METHOD_SIMULATION:
        return FIN_HOW_SIMULATION;
    case FIN_METHOD_AUTO:
        break;
    }
    return FIN_HOW_DERIVED;
}

void fini_result_estimate(fin_result *result, const char *name, const fin_estimate *estimate)
{
    fini_result_scalar(result, name, estimate->value, estimate->rare ? NAN : estimate->error,
                       fini_how_of(estimate->method), estimate->samples);
}

void fini_result_flagged(fin_result *result, const char *name, const fin_estimate *estimate)
{
    char flag[64];
    fini_result_estimate(result, name, estimate);
    if (!estimate->rare)
        return;
    snprintf(flag, sizeof flag, "%s_rare", name);
    fini_result_scalar(result, flag, 1, 0, FIN_HOW_DERIVED, 0);
    fini_result_note(
        result,
        "%s: one sample makes up a tenth of it; larger ones were most likely not met: it is "
        "too small, and its error is not known",
        name);
}
