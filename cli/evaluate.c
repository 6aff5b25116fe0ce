/* From options to a task, and from a task to its risks. */
#include "risk.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the task ------------------------------------------------------------------------------- */

/* One "LENGTH:WEIGHT"; *text moves behind it. */
static bool read_length(const char **text, int64_t *L, double *p)
{
    char *end;
    errno = 0;
    *L = strtoll(*text, &end, 10);
    if (end == *text || errno || *end != ':')
        return false;
    const char *weight = end + 1;
    *p = strtod(weight, &end);
    bool ok = end != weight && (*end == ',' || *end == '\0');
    *text = *end == ',' ? end + 1 : end;
    return ok && !(*end == ',' && end[1] == '\0');
}

static fin_status create_with_lengths(const cli_args *args, const char *text,
                                      const fin_task_settings *settings, int64_t seed, int flags,
                                      fin_task **task, fin_error *err)
{
    size_t most = 1, count = 0;
    for (const char *c = text; *c; c++)
        most += *c == ',';
    int64_t *L = malloc(most * sizeof *L);
    double *p = malloc(most * sizeof *p);
    fin_status status = FIN_OK;
    if (!L || !p)
        status = cli_status_memory(err, 16.0 * (double)most, "the lengths");
    for (const char *rest = text; !status && *rest; count++)
        if (!read_length(&rest, &L[count], &p[count]))
            status = cli_status(err, FIN_ERR_ARGUMENT,
                                "--lengths '%.60s' is not a list of LENGTH:WEIGHT, such as "
                                "5:0.2,10:0.8",
                                text);
    if (!status) {
        fin_lengths lengths = {(int64_t)count, L, p};
        status = fin_task_create(task, args->kind, settings, &lengths, (uint64_t)seed, flags, err);
    }
    free(L);
    free(p);
    return status;
}

fin_status cli_task_create(const cli_args *args, const fin_task_settings *settings, int64_t seed,
                           int flags, fin_task **task, fin_error *err)
{
    const char *lengths = cli_get(args, "lengths");
    if (lengths)
        return create_with_lengths(args, lengths, settings, seed, flags, task, err);
    return fin_task_create(task, args->kind, settings, NULL, (uint64_t)seed, flags, err);
}

/* ---- what to show --------------------------------------------------------------------------- */

int risk_show(cli_args *args, unsigned usual, unsigned *show)
{
#define NAME(name) #name,
    static const char *const names[] = {RISK_SHOW_LIST(NAME)};
#undef NAME
    enum { COUNT = sizeof names / sizeof *names };
    const char *text = cli_get(args, "show");
    *show = text ? 0 : usual;
    while (text) {
        char name[32];
        size_t length = strcspn(text, ",");
        snprintf(name, sizeof name, "%.*s", (int)(length < 31 ? length : 31), text);
        int i = 0;
        while (i < COUNT && strcmp(names[i], name) != 0)
            i++;
        if (i == COUNT) {
            const char *near = fin_nearest_name(name, names, COUNT);
            return cli_usage("--show: '%s' is not one of risk, oracle, star, linear, bayes%s%s%s",
                             name, near ? "; did you mean " : "", near ? near : "",
                             near ? "?" : "");
        }
        *show |= 1u << i;
        text = text[length] ? text + length + 1 : NULL;
    }
    return CLI_OK;
}

/* ---- the numbers ---------------------------------------------------------------------------- */

/* A number that this combination does not have is a remark, not a failure. */
static fin_status excuse(fin_status status, const fin_error *err, bool *has, char *why, size_t size)
{
    *has = status == FIN_OK;
    if (status != FIN_ERR_UNSUPPORTED && status != FIN_ERR_ARGUMENT)
        return status;
    snprintf(why, size, "%.*s", (int)size - 1, err->message);
    return FIN_OK;
}

static fin_status evaluate_star(const cli_args *args, const fin_task *task, risk_numbers *numbers,
                                fin_error *err)
{
    if (!fin_settings_find(fin_form_table(args->form), "lam")) {
        snprintf(numbers->no_star, sizeof numbers->no_star, "%s has no lam",
                 fin_form_name(args->form));
        return FIN_OK;
    }
    fin_status status = fin_lam_star(task, args->form, &args->form_settings, &args->risk,
                                     cli_progress(), &numbers->lam_star, &numbers->star, err);
    return excuse(status, err, &numbers->has_star, numbers->no_star, sizeof numbers->no_star);
}

static fin_status evaluate_bayes(const cli_args *args, const fin_task *task, risk_numbers *numbers,
                                 fin_error *err)
{
    if (fin_task_get_settings(task)->m > 1) {
        snprintf(numbers->no_bayes, sizeof numbers->no_bayes,
                 "known for one relevant token only, here m = %lld",
                 (long long)fin_task_get_settings(task)->m);
        return FIN_OK;
    }
    /* --method speaks of the predictor's risk; the Bayes risk takes the most exact way it has. */
    fin_risk_settings settings = args->risk;
    settings.method = FIN_METHOD_AUTO;
    fin_status status = fin_risk_bayes(task, &settings, cli_progress(), &numbers->bayes, err);
    return excuse(status, err, &numbers->has_bayes, numbers->no_bayes, sizeof numbers->no_bayes);
}

fin_status risk_evaluate(const cli_args *args, const fin_task *task, unsigned show,
                         risk_numbers *numbers, fin_error *err)
{
    memset(numbers, 0, sizeof *numbers);
    fin_overlaps oracle;
    fin_settings_defaults(&fin_overlaps_table, &oracle); /* k = k*, v = v* */
    fin_status status = FIN_OK;
    if (show & RISK_SHOW_risk)
        status = fin_risk(task, args->form, &args->form_settings, &args->overlaps, &args->risk,
                          cli_progress(), &numbers->risk, err);
    if (!status && show & RISK_SHOW_oracle)
        status = fin_risk(task, args->form, &args->form_settings, &oracle, &args->risk,
                          cli_progress(), &numbers->oracle, err);
    if (!status && show & RISK_SHOW_star)
        status = evaluate_star(args, task, numbers, err);
    if (!status && show & RISK_SHOW_linear) {
        const fin_task_settings *s = fin_task_get_settings(task);
        numbers->linear = fin_risk_linear(task, NULL);
        numbers->has_attention =
            strcmp(fin_task_kind_name(args->kind), "spiked") == 0 && s->m == 1 && s->L_min == s->L;
        numbers->attention =
            (fin_estimate){.value = s->eps * s->eps + fin_spiked_linear(s->snr, s->L),
                           .method = FIN_METHOD_CLOSED};
    }
    if (!status && show & RISK_SHOW_bayes)
        status = evaluate_bayes(args, task, numbers, err);
    if (!status && cli_cancelled())
        status = cli_status(err, FIN_ERR_CANCELLED, "cancelled");
    return status;
}
