/* finetti risk: the risk of a predictor and, beside it, the risks it should be compared with. */
#include "risk.h"

#include <stdio.h>
#include <string.h>

static int run(cli_args *args);

static const cli_word words[] = {
    {"task", "NAME", "generative model"},
    {"form", "NAME", "attention form"},
    {"lengths", "L:P,...", "law of the sequence length, such as 5:0.2,10:0.8, instead of --L"},
    {"show", "LIST",
     "which numbers: risk, oracle (same lam, k = k*, v = v*), star (the oracle at its best lam), "
     "linear (best linear predictor), bayes; default all, in a sweep all but star"},
    {"points", "FILE",
     "a table: for each row of a CSV file with columns such as kappa,nu,theta,eta,rho,lambda,gamma,"
     "mu,L,eps (missing ones take the option's value) the risk and its gradient; - is standard "
     "input"},
    {"out", "FILE", "where --sweep and --points write; default standard output"},
    {"json", NULL, "print JSON"},
    {NULL, NULL, NULL},
};

static const cli_word lists[] = {
    {"sweep", "NAME=RANGE",
     "a curve as CSV: lam=0.01:3:100log, L=2:50:10lin (lin is the default) or lam=0.1,0.2,0.5; two "
     "of them make a grid"},
    {NULL, NULL, NULL},
};

const cli_command cli_risk = {
    .name = "risk",
    .summary = "exact risk of a predictor, beside oracle, best linear and Bayes",
    .about =
        "Prints E (Y - f(X))^2 for f(X) = sum_l w_l X_l.v with weights from the scores X_l.k,\n"
        "given the overlaps of k and v with the true directions; beside it the oracle's, the\n"
        "best linear predictor's and the Bayes risk. Every number says how it was obtained.",
    .examples = "  finetti risk --d 400 --L 10 --lam 0.1 --kappa 0.5 --nu 0.9\n"
                "  finetti risk --task spiked --form softmax --snr 4 --lam 2 --samples 1000000\n"
                "  finetti risk --sweep lam=0.01:3:100log --show risk,linear --out curve.csv\n"
                "  finetti risk --points table.csv --out answers.csv\n",
    .uses = CLI_USES_TASK | CLI_USES_FORM | CLI_USES_OVERLAPS | CLI_USES_RISK | CLI_USES_RUN,
    .words = words,
    .lists = lists,
    .run = run,
};

static const char *const gradient_names[5] = {"d_kappa", "d_nu", "d_theta", "d_eta", "d_rho"};

/* ---- one point as a table ------------------------------------------------------------------- */

static void print_line(const char *label, const fin_estimate *estimate)
{
    char how[128];
    printf("%-32s %-20.12g %s\n", label, estimate->value, cli_how(estimate, how, sizeof how));
}

static void print_part(const char *label, double value)
{
    printf("  %-30s %.12g\n", label, value);
}

static void print_parts(const fin_risk_report *report, double eps)
{
    if (report->has_parts) {
        print_part("eps^2", eps * eps);
        print_part("signal (relevant tokens)", report->signal);
        print_part("noise (irrelevant tokens)", report->noise);
        print_part("bias^2", report->bias);
    }
    for (int i = 0; report->has_gradient && i < 5; i++)
        print_part(gradient_names[i], report->gradient[i]);
}

static void print_head(const cli_args *args, const fin_task *task, const char *note)
{
    cli_print_model(args, task);
    printf("at    %-10s ", "overlaps");
    cli_print_settings(&fin_overlaps_table, &args->overlaps);
    if (*note)
        printf("note: %s\n", note);
    printf("\n%-32s %-20s %s\n", "", "value", "how");
}

static void print_numbers(const risk_numbers *n, unsigned show, double eps)
{
    char label[64];
    if (show & RISK_SHOW_risk) {
        print_line("risk", &n->risk.risk);
        print_parts(&n->risk, eps);
    }
    if (show & RISK_SHOW_oracle)
        print_line("oracle (k = k*, v = v*)", &n->oracle.risk);
    if (show & RISK_SHOW_star && n->has_star) {
        snprintf(label, sizeof label, "oracle at lam* = %.8g", n->lam_star);
        print_line(label, &n->star);
        if (n->lam_star < 1.01 * FIN_LAM_LEAST || n->lam_star > 0.99 * FIN_LAM_MOST)
            printf("  (at the end of the search: the risk still falls there)\n");
    } else if (show & RISK_SHOW_star) {
        printf("%-32s %-20s %s\n", "oracle at lam*", "-", n->no_star);
    }
    if (show & RISK_SHOW_linear)
        print_line("best linear predictor", &n->linear);
    if (show & RISK_SHOW_linear && n->has_attention)
        print_line("best linear attention", &n->attention);
    if (show & RISK_SHOW_bayes && n->has_bayes)
        print_line("Bayes", &n->bayes);
    else if (show & RISK_SHOW_bayes)
        printf("%-32s %-20s %s\n", "Bayes", "-", n->no_bayes);
}

/* ---- one point as JSON ---------------------------------------------------------------------- */

static json_t *json_risk(const fin_risk_report *report, double eps)
{
    json_t *object = cli_json_estimate(&report->risk);
    if (report->has_parts)
        json_object_set_new(object, "parts",
                            json_pack("{s:o, s:o, s:o, s:o}", "eps2", cli_json_number(eps * eps),
                                      "signal", cli_json_number(report->signal), "noise",
                                      cli_json_number(report->noise), "bias",
                                      cli_json_number(report->bias)));
    if (report->has_gradient) {
        json_t *gradient = json_object();
        for (int i = 0; i < 5; i++)
            json_object_set_new(gradient, gradient_names[i] + 2,
                                cli_json_number(report->gradient[i]));
        json_object_set_new(object, "gradient", gradient);
    }
    return object;
}

static json_t *json_settings(const cli_args *args, const fin_task *task)
{
    json_t *root = cli_json_model(args, task);
    json_object_set_new(root, "overlaps", cli_json_settings(&fin_overlaps_table, &args->overlaps));
    json_object_set_new(root, "risk_settings", cli_json_settings(&fin_risk_table, &args->risk));
    return root;
}

static json_t *json_reason(const char *why)
{
    return json_pack("{s:n, s:s}", "value", "reason", why);
}

static json_t *json_numbers(json_t *root, const risk_numbers *n, unsigned show, double eps)
{
    if (show & RISK_SHOW_risk)
        json_object_set_new(root, "risk", json_risk(&n->risk, eps));
    if (show & RISK_SHOW_oracle)
        json_object_set_new(root, "oracle", json_risk(&n->oracle, eps));
    if (show & RISK_SHOW_star) {
        json_t *star = n->has_star ? cli_json_estimate(&n->star) : json_reason(n->no_star);
        if (n->has_star)
            json_object_set_new(star, "lam", cli_json_number(n->lam_star));
        json_object_set_new(root, "star", star);
    }
    if (show & RISK_SHOW_linear)
        json_object_set_new(root, "linear", cli_json_estimate(&n->linear));
    if (show & RISK_SHOW_linear && n->has_attention)
        json_object_set_new(root, "linear_attention", cli_json_estimate(&n->attention));
    if (show & RISK_SHOW_bayes)
        json_object_set_new(root, "bayes",
                            n->has_bayes ? cli_json_estimate(&n->bayes) : json_reason(n->no_bayes));
    return root;
}

/* ---- running -------------------------------------------------------------------------------- */

static int one_point(cli_args *args)
{
    unsigned show;
    int code = risk_show(args, ~0u, &show);
    if (code)
        return code;
    fin_task *task;
    fin_error err = {FIN_OK, ""}, unreal = {FIN_OK, ""};
    risk_numbers numbers;
    if (cli_task_create(args, &args->task, args->risk.seed, 0, &task, &err))
        return cli_error(&err);
    if (risk_evaluate(args, task, show, &numbers, &err)) {
        fin_task_destroy(task);
        return cli_error(&err);
    }
    cli_progress_end();
    fin_overlaps_realisable(&args->overlaps, args->task.d, &unreal);
    double eps = fin_task_get_settings(task)->eps;
    if (cli_get(args, "json")) {
        json_t *root = json_settings(args, task);
        if (unreal.message[0])
            json_object_set_new(root, "note", json_string(unreal.message));
        code = cli_print_json(json_numbers(root, &numbers, show, eps));
    } else {
        print_head(args, task, unreal.message);
        print_numbers(&numbers, show, eps);
        code = cli_flush();
    }
    fin_task_destroy(task);
    return code;
}

static int run(cli_args *args)
{
    const char *points = cli_get(args, "points");
    int sweeps;
    cli_list(args, "sweep", &sweeps);
    bool many = points || sweeps;
    if (cli_check_lengths(args))
        return CLI_USAGE;
    if (points && sweeps)
        return cli_usage("--points and --sweep do not go together");
    if (points && cli_get(args, "show"))
        return cli_usage("--points writes risk and gradient; --show does not go with it");
    if (many && cli_get(args, "json"))
        return cli_usage("--%s writes CSV; --json is for one point", points ? "points" : "sweep");
    if (!many && cli_get(args, "out"))
        return cli_usage("--out goes with --points or --sweep; use > FILE for one point");
    return points ? risk_points(args) : sweeps ? risk_sweep(args) : one_point(args);
}
