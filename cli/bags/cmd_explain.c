/* finetti explain: a page on new bags and what a model says of them, for those who did not run it. */
#include "bags/fit.h"

static int run(cli_args *args);

static const cli_word words[] = {
    {"report", "FILE", "the page: FILE.html"},
    FIT_ANSWER_WORDS,
    {"coords", "X,Y", "two columns that say where tokens lie: pictures of the bags that are shown"},
    {"json", NULL, "print JSON"},
    {NULL, NULL, NULL},
};

const cli_command cli_explain = {
    .name = "explain",
    .summary =
        "a page on new bags: predictions, which tokens are responsible, what to be careful about",
    .about = "Writes one HTML page that needs nothing else. It says how good the predictions are "
             "if the\n"
             "bags have labels, and what is far outside of what the model has seen. It shows the "
             "bags\n"
             "where the model is surest and least sure, with their tokens, and which columns "
             "matter.\n"
             "The same is written by 'finetti fit --report' on the bags of a fit, with "
             "cross-validation.",
    .examples = "  finetti explain model.fin new.csv --report new.html\n"
                "  finetti explain model.fin slides.csv --report slides.html --coords x,y\n",
    .computes = true,
    .operands = FIT_ANSWER_OPERANDS,
    .words = words,
    .run = run,
};

static fin_status explain(const fit_answer *from, const cli_args *args, const fit_coords *coords,
                          fin_error *err)
{
    const char *notes[FIT_NOTES];
    const double *place[2];
    char model[64];
    CLI_TRY(fit_coords_find(coords, from->set, place, err));
    for (int i = 0; i < from->notes; i++)
        notes[i] = from->note[i];
    const fin_bag_report report = {
        .fit = from->fit,
        .model = fit_title(fin_fit_get_settings(from->fit), from->classes, model, sizeof model),
        .set = from->set,
        .data = args->operand[1],
        .class_names = from->class_names,
        .fresh = 1,
        .notes = notes,
        .note_count = from->notes,
        .coords = {coords->name[0], coords->name[1]},
    };
    return fin_report_bags(&report, cli_get(args, "report"), err);
}

static int run(cli_args *args)
{
    fit_answer from;
    fit_coords coords;
    fin_error err = {FIN_OK, ""};
    const char *out = cli_get(args, "report");
    if (!out)
        return cli_usage("explain takes --report FILE.html, the page that is to be written");
    char extras[FIT_EXTRAS];
    int code = fit_page_check(args);
    if (code)
        return code;
    fit_coords_read(&coords, args);
    CLI_TRY(cli_try_output(out, &err)
                ? cli_error(&err)
                : fit_answer_open(&from, args, fit_page_extras(args, extras)));
    if (fit_answer_known(&from, &err) || explain(&from, args, &coords, &err)) {
        code = cli_error(&err);
    } else {
        cli_progress_end();
        fit_answer_say(&from);
        code = cli_show(args,
                        json_pack("{s:s, s:I, s:o}", "report", out, "bags", cli_int(from.bags->n),
                                  "notes", fit_answer_json(&from)),
                        "written to  {report}\n");
    }
    fit_answer_close(&from);
    return code;
}
