/* From options to runs. */
#include "train/train.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- schedules ------------------------------------------------------------------------------ */

/* One "STEP:VALUE"; *text moves behind it. */
static bool read_piece(const char **text, int64_t *step, double *value)
{
    char *end;
    errno = 0;
    *step = strtoll(*text, &end, 10);
    if (end == *text || errno || *end != ':')
        return false;
    const char *number = end + 1;
    *value = strtod(number, &end);
    bool ok = end != number && (*end == ',' || *end == '\0');
    *text = *end == ',' ? end + 1 : end;
    return ok && !(*end == ',' && end[1] == '\0');
}

static fin_status read_schedule(const cli_args *args, const char *name, int64_t *count,
                                int64_t **steps, double **values, fin_error *err)
{
    const char *text = cli_get(args, name);
    size_t most = 1;
    if (!text)
        return FIN_OK;
    for (const char *c = text; *c; c++)
        most += *c == ',';
    *steps = malloc(most * sizeof **steps);
    *values = malloc(most * sizeof **values);
    if (!*steps || !*values)
        return cli_status_memory(err, 16.0 * (double)most, "the schedule");
    for (const char *rest = text; *rest; ++*count)
        if (!read_piece(&rest, &(*steps)[*count], &(*values)[*count]))
            return cli_status(err, FIN_ERR_ARGUMENT,
                              "--%s '%.60s' is not a list of STEP:VALUE, such as 0:1,1000:0.5",
                              name, text);
    return FIN_OK;
}

/* ---- making the runs ------------------------------------------------------------------------ */

/* Vectors in R^d are made only where somebody looks at them: they are what limits d. */
static int task_flags(const fin_train_settings *train)
{
    bool vectors = train->engine == FIN_ENGINE_AMBIENT || train->init == FIN_INIT_VECTORS;
    return vectors ? FIN_TASK_AMBIENT : 0;
}

static fin_status make_task(training *t, fin_error *err)
{
    cli_args *args = t->args;
    fin_status status =
        read_schedule(args, "lam_schedule", &t->lam.count, &t->lam.step, &t->lam.value, err);
    if (!status)
        status = read_schedule(args, "alpha_schedule", &t->alpha.count, &t->alpha.step,
                               &t->alpha.value, err);
    if (!status)
        status = cli_task_create(args, train_get(args)->train.seed,
                                 task_flags(&train_get(args)->train), &t->task, err);
    return status;
}

static fin_status make_train(training *t, fin_train_start *start, fin_error *err)
{
    const train_asked *asked = train_get(t->args);
    start->lam = (fin_schedule){t->lam.count, t->lam.step, t->lam.value};
    start->alpha = (fin_schedule){t->alpha.count, t->alpha.step, t->alpha.value};
    if (asked->train.init == FIN_INIT_OVERLAPS) {
        start->count = 1;
        start->overlaps = &asked->overlaps;
    }
    return fin_train_create(&t->train, t->task, cli_form(t->args), &asked->form_settings,
                            &asked->train, start, err);
}

/* Its arrays are as large as the runs, and have been copied. */
static void forget_file(training *t)
{
    fin_npz_close(t->file);
    t->file = NULL;
}

/* What would be a wrong option is here something wrong with the file. */
static fin_status blame(const char *path, fin_status status, fin_error *err)
{
    if (status != FIN_ERR_ARGUMENT && status != FIN_ERR_FORMAT && status != FIN_ERR_UNSUPPORTED)
        return status;
    char message[sizeof err->message];
    memcpy(message, err->message, sizeof message);
    if (!strstr(message, path))
        cli_status(err, FIN_ERR_FORMAT, "'%.100s': %.380s", path, message);
    return err->status = FIN_ERR_FORMAT;
}

fin_status training_open(training *t, cli_args *args, fin_error *err)
{
    memset(t, 0, sizeof *t);
    t->args = args;
    fin_train_start start = {.count = 0};
    fin_status status = make_task(t, err);
    if (!status && cli_get(args, "start"))
        status = blame(cli_get(args, "start"),
                       training_read_start(t, cli_get(args, "start"), &start, err), err);
    if (!status)
        status = make_train(t, &start, err);
    free((void *)start.k);
    free((void *)start.v);
    forget_file(t);
    return status;
}

static fin_status lengthen(training *t, int64_t steps, fin_error *err)
{
    fin_train_settings *settings = &train_get(t->args)->train;
    if (steps < settings->steps)
        return cli_status(err, FIN_ERR_ARGUMENT,
                          "--steps %lld is less than the %lld steps of the file; give more of "
                          "them, or use --stop-at",
                          (long long)steps, (long long)settings->steps);
    settings->steps = steps;
    return FIN_OK;
}

static fin_status go_on(training *t, const char *path, fin_error *err)
{
    fin_status status = make_task(t, err);
    if (!status)
        status = training_read_directions(t, path, err);
    if (status)
        return status;
    /* The runs have left their starting points; any vectors do, since the state follows. */
    fin_train_start start = {.count = 0};
    if (train_get(t->args)->train.init == FIN_INIT_VECTORS)
        start = (fin_train_start){
            .count = 1, .k = fin_task_k_star(t->task), .v = fin_task_v_star(t->task)};
    status = make_train(t, &start, err);
    return status ? status : training_read_state(t, err);
}

fin_status training_resume(training *t, cli_args *args, const char *path, fin_error *err)
{
    memset(t, 0, sizeof *t);
    t->args = args;
    int64_t steps = cli_given(args, "steps") ? train_get(args)->train.steps : -1;
    fin_status status = blame(path, training_read_settings(t, path, err), err);
    if (!status && steps >= 0)
        status = lengthen(t, steps, err);
    if (!status)
        status = blame(path, go_on(t, path, err), err);
    forget_file(t);
    return status;
}

fin_train_array training_array(const training *t, const char *name)
{
    fin_train_array a = {.name = NULL};
    for (int i = 0; i < fin_train_array_count(t->train); i++)
        if (fin_train_get_array(t->train, i, &a, NULL) == FIN_OK && strcmp(a.name, name) == 0)
            return a;
    assert(!"an array that every training has");
    return a;
}

void training_close(training *t)
{
    fin_train_destroy(t->train);
    fin_task_destroy(t->task);
    free(t->lam.step);
    free(t->lam.value);
    free(t->alpha.step);
    free(t->alpha.value);
    free(t->text);
    forget_file(t);
}
