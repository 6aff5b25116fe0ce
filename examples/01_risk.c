/* The exact risk of an attention layer at a point of its landscape, and what it is measured
 * against. */
#include <finetti.h>
#include <stdio.h>

int main(void)
{
    fin_error err;
    fin_task *task = NULL;
    const fin_form *erf = fin_form_find("erf");
    fin_form_settings form = {.lam = 0.1};
    fin_overlaps halfway = {.kappa = 0.5, .nu = 0.5}, oracle = {.kappa = 1, .nu = 1};
    fin_risk_settings how;
    fin_risk_report here, best;
    fin_estimate bayes, star;
    double lam;

    /* The paper's task: d = 400, L = 10, gamma = sqrt(1/2), mu = sqrt(d/2), eps = 0. */
    fin_settings_defaults(&fin_risk_table, &how, sizeof how);
    if (fin_task_create(&task, fin_task_find("slr"), NULL, NULL, 1, 0, &err) ||
        fin_risk(task, erf, &form, &halfway, &how, NULL, &here, &err) ||
        fin_risk(task, erf, &form, &oracle, &how, NULL, &best, &err) ||
        fin_lam_star(task, erf, &form, &how, NULL, &lam, &star, &err) ||
        fin_risk_bayes(task, &how, NULL, &bayes, &err)) {
        fprintf(stderr, "%s\n", err.message);
        fin_task_destroy(task);
        return 1;
    }
    printf("halfway     %.10f  (%s)\n", here.risk.value, fin_method_name(here.risk.method));
    printf("  slope in kappa %.6f, in nu %.6f\n", here.gradient[0], here.gradient[1]);
    printf("oracle      %.10f\n", best.risk.value);
    printf("at lambda*  %.10f  (lambda* = %.4f)\n", star.value, lam);
    printf("best linear %.10f\n", fin_risk_linear(task, NULL).value);
    printf("Bayes       %.2g       (%s)\n", bayes.value, fin_method_name(bayes.method));
    fin_task_destroy(task);
    return 0;
}
