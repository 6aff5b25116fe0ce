/* --report: the page on a fit to bags, and --coords: the columns that say where tokens lie. */
#include "bags/fit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int fit_page_check(const cli_args *args)
{
    const char *report = cli_get(args, "report"), *coords = cli_get(args, "coords");
    const char *comma = coords ? strchr(coords, ',') : NULL;
    if (report && !cli_ends_with(report, ".html"))
        return cli_usage("--report '%.200s' is a page; end it in .html", report);
    if (coords && (!comma || comma == coords || !comma[1] || strchr(comma + 1, ',') ||
                   strlen(coords) >= FIT_COORDS))
        return cli_usage("--coords '%.60s' is not two columns, such as x,y", coords);
    return CLI_OK;
}

const char *fit_page_extras(const cli_args *args, char text[FIT_EXTRAS])
{
    const char *coords = cli_get(args, "coords");
    snprintf(text, FIT_EXTRAS, "%s;*", coords ? coords : "");
    return text;
}

void fit_coords_read(fit_coords *coords, const cli_args *args)
{
    const char *text = cli_get(args, "coords");
    *coords = (fit_coords){.name = {NULL, NULL}};
    if (!text)
        return;
    snprintf(coords->text, sizeof coords->text, "%s", text);
    coords->name[0] = coords->text;
    coords->name[1] = strchr(coords->text, ',');
    *strchr(coords->text, ',') = '\0';
    coords->name[1]++;
}

fin_status fit_coords_find(const fit_coords *coords, const fin_bag_set *set, const double *place[2],
                           fin_error *err)
{
    for (int c = 0; c < 2; c++) {
        place[c] = NULL;
        for (int64_t k = 0; coords->name[c] && k < fin_bag_set_extras(set); k++)
            if (strcmp(fin_bag_set_extra(set, k), coords->name[c]) == 0)
                place[c] = fin_bag_set_extra_numbers(set, k);
        if (coords->name[c] && !place[c])
            return cli_status(err, FIN_ERR_ARGUMENT,
                              "--coords: '%.60s' is no column of numbers beside the features; "
                              "--features leaves a "
                              "column out of them",
                              coords->name[c]);
    }
    return FIN_OK;
}

fin_status fit_page(const fit_run *run, const char *path, const char *verdict, fin_error *err)
{
    static char titles[FIT_MODELS][64], level[900], own[FIT_OWN_NOTES][900];
    const char *names[FIT_MODELS], *classes[FIT_MODELS], *notes[2 * FIT_NOTES];
    const double *place[2];
    fit_coords coords;
    char model[64];
    int count = 0;
    const char **class_names = classes;
    fin_status status = FIN_OK;
    fit_coords_read(&coords, run->args);
    CLI_TRY(fit_coords_find(&coords, run->set, place, err));
    if (run->classes > FIT_MODELS)
        class_names = malloc((size_t)run->classes * sizeof *class_names);
    if (!class_names)
        return cli_status_memory(err, 8.0 * (double)run->classes, "the names of classes");
    for (int64_t c = 0; c < run->classes; c++)
        class_names[c] = fin_bag_set_class(run->set, c);
    for (int i = 0; i < run->models; i++)
        names[i] = fit_title(&run->model[i], run->classes, titles[i], sizeof titles[i]);
    for (int i = 0; i < fin_bag_set_notes(run->set) && count < FIT_NOTES; i++)
        notes[count++] = fin_bag_set_note(run->set, i);
    if (run->levels)
        notes[count++] = fit_level_note(run, level, sizeof level);
    for (int kind = FIT_NOTE_IDS; kind < FIT_OWN_NOTES; kind++)
        if (fit_note(run, kind, own[kind], sizeof own[kind]))
            notes[count++] = own[kind];
    const fin_bag_report report = {
        .fit = run->fit,
        .model = fit_title(&run->settings, run->classes, model, sizeof model),
        .set = run->set,
        .data = run->path,
        .class_names = run->classes ? class_names : NULL,
        .notes = notes,
        .note_count = count,
        .validation = run->validation,
        .model_names = names,
        .models = run->models,
        .folds = run->folds,
        .repeats = run->repeats,
        .verdict = verdict,
        .sizes = run->size,
        .size_count = run->sizes,
        .coords = {coords.name[0], coords.name[1]},
    };
    status = fin_report_bags(&report, path, err);
    if (class_names != classes)
        free(class_names);
    return status;
}
