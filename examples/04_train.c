/* Training in a few lines: the paper's online SGD, four runs of 200 000 steps, at a cost that does
 * not depend on d, and the exact risk of what they have learned. */
#include <finetti.h>
#include <math.h>
#include <stdio.h>

int main(void)
{
    fin_error err;
    fin_task *task = NULL;
    fin_train *train = NULL;
    fin_task_settings model;
    fin_train_settings settings;
    fin_settings_defaults(fin_task_kind_table(fin_task_find("slr")), &model, sizeof model);
    fin_settings_defaults(&fin_train_table, &settings, sizeof settings);
    model.d = 80;
    model.eps = 0.1;
    settings.engine = FIN_ENGINE_REDUCED;
    settings.runs = 4;
    settings.steps = 200000;
    settings.alpha = 1e-3;
    settings.decay = 1e-4; /* lam at step t is 2 / (1 + 1e-4 t) */
    fin_form_settings form = {.lam = 2};
    if (fin_task_create(&task, fin_task_find("slr"), &model, NULL, 1, 0, &err) ||
        fin_train_create(&train, task, fin_form_find("erf"), &form, &settings, NULL, &err) ||
        fin_train_run(train, settings.steps, NULL, &err)) {
        fprintf(stderr, "%s\n", err.message);
        fin_train_destroy(train);
        fin_task_destroy(task);
        return 1;
    }
    for (int64_t r = 0; r < settings.runs; r++) {
        fin_run run;
        if (!fin_train_get_run(train, r, &run, &err))
            printf("run %d  |k.k*| = %.3f  |v.v*| = %.3f  risk - eps^2 = %.4f  %s\n", (int)r,
                   fabs(run.now.kappa), fabs(run.now.nu), run.now.excess,
                   fin_run_status_name(run.status));
    }
    fin_train_destroy(train);
    fin_task_destroy(task);
}
