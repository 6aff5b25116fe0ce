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

/* Of each of n bags of L tokens: the sum of weight times value. */
static int answers(const fin_form *form, const fin_form_settings *s, int64_t n, int64_t L,
                   const int64_t *offsets, const double *chi, const double *z, double *w, double *f)
{
    if (fin_form_weights(form, s, n, offsets, chi, NULL, w, &web_error))
        return -1;
    for (int64_t i = 0; i < n; i++) {
        f[i] = 0;
        for (int64_t l = 0; l < L; l++)
            f[i] += w[i * L + l] * z[i * L + l];
    }
    return 0;
}

/* E (f - Y)^2 = E (E[Y|X] - Y)^2 + E (f - E[Y|X])^2: only the last is simulated, so that nothing is left where f is right. */
static int excess(const fin_task *task, const fin_form *form, int64_t n, int64_t L, int64_t seed,
                  int64_t points, const double *lam, double *memory, double *out)
{
    const fin_overlaps oracle = {.kappa = 1, .nu = 1};
    double *chi = memory, *z = chi + n * L, *w = z + n * L, *f = w + n * L, *best = f + n;
    int64_t *offsets = (int64_t *)(best + n), *J = offsets + n + 1;
    const fin_projections where = {.chi_star = chi, .z_star = z};
    fin_form_settings posterior = {0};
    for (int64_t i = 0; i <= n; i++)
        offsets[i] = i * L;
    fin_task_bayes_parameters(task, &posterior.lam, &posterior.c);
    if (fin_task_project(task, &oracle, (uint64_t)seed << 32, n, offsets, &where, NULL, J,
                         &web_error) ||
        answers(web_form(1), &posterior, n, L, offsets, chi, z, w, best))
        return -1;
    for (int64_t k = 0; k < points; k++) {
        fin_form_settings s = {.lam = lam[k]};
        double sum = 0, squares = 0;
        if (answers(form, &s, n, L, offsets, chi, z, w, f))
            return -1;
        for (int64_t i = 0; i < n; i++) {
            double gap = (f[i] - best[i]) * (f[i] - best[i]);
            sum += gap;
            squares += gap * gap;
        }
        double mean = sum / (double)n, variance = squares / (double)n - mean * mean;
        out[2 * k] = mean;
        out[2 * k + 1] = sqrt(fmax(0, variance) / (double)(n - 1));
    }
    return (int)(2 * points);
}

int web_excess(int count, const double *in, int room, double *out)
{
    web_in from = {in, count, false};
    int form = web_choice(&from, 3);
    double snr = web_number(&from);
    int64_t L = web_whole(&from), n = web_whole(&from), seed = web_whole(&from);
    int64_t points = from.left;
    const double *lam = web_array(&from, points);
    if (!web_ready(&from, 2 * points, room))
        return -1;
    if (n < 2 || L < 1 || n > 1000000 / L || seed < 0 || seed >= INT64_C(1) << 31)
        return web_refuse("there are 2 samples or more, of at most 10^6 tokens in all");
    fin_task *task = spiked(snr, L, 1);
    double *memory = task ? web_take((int)(3 * n * L + 4 * n + 2)) : NULL;
    if (task && !memory)
        web_refuse("there is no memory for so many tokens");
    int answers = memory ? excess(task, web_form(form), n, L, seed, points, lam, memory, out) : -1;
    web_give_back(memory);
    fin_task_destroy(task);
    return answers;
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

/* What panel 6 asks of; false: refused, which is written. Taken: snr L eps alpha. */
static bool bags_of(web_in *from, fini_learning_task *task)
{
    task->snr = web_number(from);
    task->L = web_whole(from);
    task->eps = web_number(from);
    task->alpha = web_number(from);
    if (from->bad ||
        (task->snr >= 0 && task->snr <= 1e4 && task->L >= 1 && task->L <= 1000000 &&
         task->eps >= 0 && task->eps <= 10 && task->alpha >= 1e-3 && task->alpha <= 1e6))
        return true;
    web_refuse("snr is 0 to 10000, L 1 to 1e6, eps 0 to 10, alpha 0.001 to 1e6");
    return false;
}

int web_erm(int count, const double *in, int room, double *out)
{
    web_in from = {in, count, false};
    fini_erm_task task = {.best = false};
    if (!bags_of(&from, &task.bags))
        return -1;
    task.penalty[0] = task.penalty[1] = web_number(&from);
    task.samples = web_whole(&from);
    task.seed = web_whole(&from);
    if (!web_ready(&from, 4, room))
        return -1;
    if (!(task.penalty[0] >= 1e-3 && task.penalty[0] <= 1e3) || task.samples < 1000 ||
        task.samples > 100000)
        return web_refuse("a penalty is 0.001 to 1000, samples are 1000 to 100000");
    fini_erm found;
    if (fini_learning_erm(&task, NULL, &found, &web_error))
        return -1;
    out[0] = found.risk.value;
    out[1] = found.risk.error;
    out[2] = found.cosine[0].value;
    out[3] = found.cosine[1].value;
    for (int i = 0; i < 4 && !found.settled; i++)
        out[i] = NAN;
    return 4;
}

int web_curve(int count, const double *in, int room, double *out)
{
    web_in from = {in, count, false};
    fini_learning_task task;
    fini_learning found;
    if (!bags_of(&from, &task))
        return -1;
    if (!web_ready(&from, 8, room) || fini_learning_curve(&task, NULL, &found, &web_error))
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
