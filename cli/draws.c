/* Samples drawn piece by piece. Offsets, outputs and locations stay in memory, tokens do not. */
#include "simulate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

static const double PIECE = 8 << 20; /* bytes of tokens drawn at a time */

/* ---- is there room -------------------------------------------------------------------------- */

static double memory_size(void)
{
    double pages = (double)sysconf(_SC_PHYS_PAGES), size = (double)sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? pages * size : 1e300;
}

/* Free space in the folder of `path`, or "infinite" where nobody knows. */
static double disk_free(const char *path)
{
    char folder[4096];
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) + 1 : 0;
    struct statvfs info;
    if (length >= sizeof folder)
        return 1e300;
    snprintf(folder, sizeof folder, "%.*s", (int)length, path);
    if (statvfs(length ? folder : ".", &info) != 0)
        return 1e300;
    return (double)info.f_bavail * (double)info.f_frsize;
}

/* In double, so that nothing can overflow before it has been compared. */
static fin_status check_memory(const draws *s, fin_error *err)
{
    double n = (double)s->n, longest = (double)fin_task_longest(s->task);
    double sample = longest * (double)s->d * (double)s->element;
    double bytes = n * (16 + 8 * (double)s->m) + (sample > PIECE ? sample : PIECE);
    if (bytes > memory_size())
        return cli_status(err, FIN_ERR_MEMORY,
                          "n = %lld samples, the longest of %lld tokens of dimension %lld, need "
                          "%.3g GB of memory; this machine has %.3g GB",
                          (long long)s->n, (long long)fin_task_longest(s->task), (long long)s->d,
                          bytes / 1e9, memory_size() / 1e9);
    return FIN_OK;
}

static fin_status check_disk(const draws *s, double bytes_per_number, const char *path,
                             fin_error *err)
{
    double bytes = (double)s->offsets[s->n] * (double)s->d * bytes_per_number;
    if (bytes_per_number > 0 && bytes > disk_free(path))
        return cli_status(err, FIN_ERR_IO,
                          "'%.200s' would have at least %.3g GB, but only %.3g GB are free there",
                          path, bytes / 1e9, disk_free(path) / 1e9);
    return FIN_OK;
}

/* ---- opening and drawing -------------------------------------------------------------------- */

static fin_status take_memory(draws *s, fin_error *err)
{
    double sample = (double)fin_task_longest(s->task) * (double)s->d * (double)s->element;
    double total = sample * (double)s->n;
    s->capacity = (size_t)(sample > PIECE ? sample : total < PIECE ? total : PIECE);
    s->offsets = malloc(((size_t)s->n + 1) * sizeof *s->offsets);
    s->y = malloc((size_t)s->n * sizeof *s->y);
    s->location = malloc((size_t)s->n * (size_t)s->m * sizeof *s->location);
    s->tokens = malloc(s->capacity);
    if (!s->offsets || !s->y || !s->location || !s->tokens)
        return cli_status_memory(err, (double)s->n * (16 + 8 * (double)s->m) + (double)s->capacity,
                                 "the samples");
    return FIN_OK;
}

fin_status draws_open(draws *s, const cli_args *args, double bytes_per_number, const char *path,
                      fin_error *err)
{
    const simulate_settings *asked = simulate_get(args);
    memset(s, 0, sizeof *s);
    s->n = asked->n;
    s->skip = (uint64_t)asked->skip;
    s->single = asked->dtype == 0;
    s->sign = cli_get(args, "sign") != NULL;
    s->element = s->single ? sizeof(float) : sizeof(double);
    fin_status status = cli_task_create(args, asked->seed, FIN_TASK_AMBIENT, &s->task, err);
    if (status)
        return status;
    s->d = fin_task_get_settings(s->task)->d;
    s->m = fin_task_get_settings(s->task)->m;
    if ((status = check_memory(s, err)) || (status = take_memory(s, err)))
        return status;
    if ((status = fin_task_offsets(s->task, s->skip, s->n, s->offsets, err)))
        return status;
    return check_disk(s, bytes_per_number, path, err);
}

void draws_close(draws *s)
{
    fin_task_destroy(s->task);
    free(s->offsets);
    free(s->y);
    free(s->location);
    free(s->tokens);
}

fin_status draws_next(draws *s, fin_error *err)
{
    size_t row = (size_t)s->d * s->element;
    int64_t start = s->first = s->next;
    while (s->next < s->n &&
           (size_t)(s->offsets[s->next + 1] - s->offsets[start]) * row <= s->capacity)
        s->next++;
    s->taken = 0;
    if (cli_cancelled())
        return cli_status(err, FIN_ERR_CANCELLED, "cancelled");
    CLI_TRY(fin_task_draw(s->task, s->skip + (uint64_t)start, s->next - start,
                          s->single ? FIN_F32 : FIN_F64, s->offsets + start, s->tokens,
                          s->y + start, s->location + start * s->m, err));
    for (int64_t i = start; s->sign && i < s->next; i++)
        s->y[i] = s->y[i] > 0;
    return FIN_OK;
}
