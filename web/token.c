/* Panels 1 and 6: which token? And how many bags does it take to know? */
#include "call.h"
#include "theory/learning.h"
#include "web.h"

#include <math.h>

static fin_task *spiked(double snr, int64_t L, int64_t seed)
{
    const fin_task_kind *kind = fin_task_find("spiked");
    fin_task_settings s;
    fin_task *task = NULL;
    fin_settings_defaults(fin_task_kind_table(kind), &s, sizeof s);
    s.snr = snr;
    s.L = L;
    return fin_task_create(&task, kind, &s, NULL, (uint64_t)seed, 0, &web_error) ? NULL : task;
}

int web_tokens(int count, const double *in, int room, double *out)
{
    web_in from = {in, count, false};
    double snr = web_number(&from);
    int64_t L = web_whole(&from), seed = web_whole(&from), sample = web_whole(&from), J;
    if (!web_ready(&from, 1 + 2 * L, room))
        return -1;
    fin_task *task = spiked(snr, L, seed);
    if (!task)
        return -1;
    const fin_overlaps oracle = {.kappa = 1, .nu = 1};
    const int64_t offsets[2] = {0, L};
    const fin_projections where = {.chi_star = out + 1, .z_star = out + 1 + L};
    fin_status status =
        fin_task_project(task, &oracle, (uint64_t)sample, 1, offsets, &where, NULL, &J, &web_error);
    fin_task_destroy(task);
    out[0] = (double)J;
    return status ? -1 : (int)(1 + 2 * L);
}

int web_weights(int count, const double *in, int room, double *out)
{
    web_in from = {in, count, false};
    int form = web_choice(&from, 3);
    fin_form_settings s = {.lam = web_number(&from)}, posterior = {0};
    double snr = web_number(&from);
    int64_t L = from.left / 2;
    const double *chi = web_array(&from, L), *z = web_array(&from, L);
    if (!web_ready(&from, 2 * L + 2, room))
        return -1;
    fin_task *task = spiked(snr, L, 1);
    if (!task)
        return -1;
    const int64_t offsets[2] = {0, L};
    fin_task_bayes_parameters(task, &posterior.lam, &posterior.c);
    fin_task_destroy(task);
    if (fin_form_weights(web_form(form), &s, 1, offsets, chi, NULL, out, &web_error) ||
        fin_form_weights(web_form(1), &posterior, 1, offsets, chi, NULL, out + L, &web_error))
        return -1;
    for (int part = 0; part < 2; part++) {
        double sum = 0;
        for (int64_t l = 0; l < L; l++)
            sum += out[part * L + l] * z[l];
        out[2 * L + part] = sum;
    }
    return (int)(2 * L + 2);
}

int web_risks(int count, const double *in, int room, double *out)
{
    web_in from = {in, count, false};
    int form = web_choice(&from, 3);
    double snr = web_number(&from);
    int64_t L = web_whole(&from), n = from.left;
    const double *lam = web_array(&from, n);
    if (!web_ready(&from, 3 * n, room))
        return -1;
    fin_task *task = spiked(snr, L, 1);
    fin_status status = task ? FIN_OK : FIN_ERR_ARGUMENT;
    for (int64_t i = 0; i < n && !status; i++) {
        fin_form_settings s = {.lam = lam[i]};
        fin_risk_report report;
        status = fin_risk(task, web_form(form), &s, NULL, NULL, NULL, &report, &web_error);
        if (status)
            break;
        out[3 * i] = report.risk.value;
        out[3 * i + 1] = report.risk.error;
        out[3 * i + 2] = report.risk.method;
    }
    fin_task_destroy(task);
    return status ? -1 : (int)(3 * n);
}

int web_bayes(int count, const double *in, int room, double *out)
{
    web_in from = {in, count, false};
    double snr = web_number(&from);
    int64_t L = web_whole(&from);
    fin_estimate risk;
    if (!web_ready(&from, 3, room) || fin_spiked_bayes(snr, L, &risk, &web_error))
        return -1;
    out[0] = risk.value;
    out[1] = risk.error;
    out[2] = fin_spiked_linear(snr, L);
    return 3;
}

int web_curve(int count, const double *in, int room, double *out)
{
    web_in from = {in, count, false};
    fini_learning_task task = {.snr = web_number(&from)};
    task.L = web_whole(&from);
    task.eps = web_number(&from);
    task.alpha = web_number(&from);
    fini_learning found;
    bool ready = web_ready(&from, 8, room);
    if (ready && !(task.snr >= 0 && task.snr <= 1e4 && task.L >= 1 && task.L <= 1000000 &&
                   task.eps >= 0 && task.eps <= 10 && task.alpha >= 1e-3 && task.alpha <= 1e6))
        return web_refuse("snr is 0 to 10000, L 1 to 1e6, eps 0 to 10, alpha 0.001 to 1e6");
    if (!ready || fini_learning_curve(&task, NULL, &found, &web_error))
        return -1;
    const double answers[8] = {found.optimal.q_k.value,
                               found.optimal.q_v.value,
                               found.optimal.risk.value,
                               found.optimal.risk.error,
                               found.known.value,
                               found.linear.value,
                               found.differ ? found.other.risk.value : NAN,
                               found.differ && found.low_wins};
    for (int i = 0; i < 8; i++)
        out[i] = answers[i];
    return 8;
}
