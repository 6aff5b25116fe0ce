/* The page on a fit to bags: for somebody who knows the data and did not run the fit. First what came out in a sentence and what to
 * be careful about, then how good it is, which columns matter, and bags with their tokens. */
#include "report/bag_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- words ----------------------------------------------------------------------------------------- */

void fini_bag_number(fini_page *page, double number, int digits)
{
    if (!isfinite(number))
        fini_page_add(page, "\xe2\x80\x93");
    else
        fini_page_short(page, fabs(number) < 1e-300 ? 0 : number, digits);
}

void fini_bag_share(fini_page *page, double number)
{
    if (!(fabs(number) < 1e6)) {
        fini_bag_number(page, number, 4);
        return;
    }
    long long thousandths = llround(number * 1000),
              size = thousandths < 0 ? -thousandths : thousandths;
    fini_page_print(page, "%s%lld.%03lld", thousandths < 0 ? "\xe2\x88\x92" : "", size / 1000,
                    size % 1000);
}

const char *fini_bag_class(const fini_bag_view *v, int64_t c)
{
    const char *name = v->of->class_names && c >= 0 && c < v->classes ? v->of->class_names[c] : "";
    return name ? name : "";
}

/* "0.92 +- 0.01" */
static void pair(fini_page *page, double value, double se)
{
    fini_bag_share(page, value);
    if (!isfinite(se))
        return;
    fini_page_add(page, " \xc2\xb1 ");
    fini_bag_share(page, se);
}

static void cell(fini_page *page, const char *label, double value)
{
    fini_page_form(page, "<td data-label=\"%s\">", label);
    fini_bag_share(page, value);
    fini_page_add(page, "</td>");
}

static void row_text(fini_page *page, const char *name, const char *text)
{
    fini_page_form(page, "<tr><th scope=\"row\">%s</th><td>%s</td></tr>\n", name, text);
}

static void row_number(fini_page *page, const char *name, double value, int digits)
{
    fini_page_form(page, "<tr><th scope=\"row\">%s</th><td>", name);
    fini_bag_number(page, value, digits);
    fini_page_add(page, "</td></tr>\n");
}

/* ---- in short ---------------------------------------------------------------------------------------- */

/* Share of the commonest class among labels. */
static double commonest(const fini_bag_view *v)
{
    double most = 0, all = 0;
    for (int64_t c = 0; c < v->classes; c++) {
        double count = 0;
        for (int64_t i = 0; i < v->n; i++)
            count += v->labels && v->labels[i] == (double)c;
        most = fmax(most, count);
        all += count;
    }
    return all > 0 ? most / all : NAN;
}

static void say_score(const fini_bag_view *v, fini_page *page)
{
    const fin_validation_row *row = v->left_out ? fin_validation_at(v->of->validation, 0) : NULL;
    const char *of = v->left_out    ? "bags that were left out"
                     : v->of->fresh ? "these bags"
                                    : "the bags it learnt from";
    if (!v->score.count) {
        fini_page_add(page,
                      "These bags have no labels: how good the predictions are cannot be said.");
        return;
    }
    if (v->classes) {
        fini_page_add(page, "<strong>Of 100 bags it puts about ");
        fini_page_short(page, floor(100 * (row ? row->main : v->score.accuracy) + 0.5), 3);
        fini_page_form(
            page, " into the right class</strong> (%s; always saying the commonest class: ", of);
        fini_page_short(page, floor(100 * commonest(v) + 0.5), 3);
        fini_page_add(page, ").");
    } else {
        fini_page_add(page, "<strong>It explains ");
        fini_page_short(page, floor(100 * fmax(0, row ? row->main : v->score.r2) + 0.5), 3);
        fini_page_form(
            page, " %% of the variance of the labels</strong> (%s); a prediction is off by ", of);
        fini_bag_number(page, row ? row->mean.rmse : v->score.rmse, 3);
        fini_page_add(page, " (root of the mean square).");
    }
    if (!v->left_out && !v->of->fresh)
        fini_page_add(page, " That is too good: new bags were not tried.");
}

static void warn(fini_page *page, const char *text)
{
    fini_page_form(page, "<li>%s</li>\n", text);
}

static bool warned(const fini_bag_view *v)
{
    return v->of->verdict && strncmp(v->of->verdict, "Warning: ", 9) == 0;
}

/* What is wrong, or may be. Returns how many there are. */
static int warnings(const fini_bag_view *v, fini_page *page)
{
    int count = 0;
    enum { FEW = 50 };
    for (int k = 0; k < v->of->note_count; k++, count++)
        warn(page, v->of->notes[k]);
    if (!v->of->fresh && v->n < FEW && ++count)
        warn(page, "Few bags: every number here is rough, and the best of several models may have "
                   "been lucky.");
    if (v->left_out && ++count) {
        const fin_validation_row *row = fin_validation_at(v->of->validation, 0);
        bool better =
            v->classes ? row->main - 2 * row->main_se > commonest(v) : row->main > 2 * row->main_se;
        if (better)
            count--;
        else
            warn(page, "The model is not clearly better than a guess that looks at no token. Its "
                       "locations and "
                       "features then mean nothing.");
    }
    if (warned(v) && ++count)
        fini_page_form(page, "<li>No single token seems to decide: %s.</li>\n",
                       strchr(v->of->verdict, ' ') + 1);
    if (v->classes && v->score.count && v->score.ece > 0.1 && v->n >= FEW && ++count)
        warn(page, "Its probabilities are off by more than a tenth on average: read them as an "
                   "order, not as shares.");
    const fin_curve_size *size = v->of->sizes;
    int last = v->of->size_count - 1;
    if (size && last > 0 && size[last].score - size[last - 1].score > 2 * size[last].se && ++count)
        warn(page, "The learning curve still rises: more bags would help.");
    return count;
}

static void add_short(const fini_bag_view *v, fini_page *page)
{
    fini_page list = {NULL, 0, 0, false};
    int count = warnings(v, &list);
    page->failed = page->failed || list.failed;
    if (count) {
        fini_page_add(page, "<section id=\"care\">\n<h2>Be careful</h2>\n<ul>\n");
        fini_page_bytes(page, list.text, list.size);
        fini_page_add(page, "</ul>\n</section>\n");
    }
    fini_page_close(&list);
}

/* ---- what was fitted, and why ------------------------------------------------------------------------- */

static void settings_name(const fin_fit_settings *settings, int64_t classes, char *text,
                          size_t size)
{
    static const char *const bases[] = {"", "its columns", "RBF features",
                                        "columns and RBF features"};
    int basis = fin_fit_basis(settings, classes);
    snprintf(text, size, "%s, through %s", fin_fit_model_get(settings)->name,
             basis > 0 && basis < 4 ? bases[basis] : "its columns");
}

static void add_parts(const fini_bag_view *v, fini_page *page)
{
    const fin_fit_settings *part;
    double weight;
    for (int64_t k = 0; (part = fin_fit_part(v->of->fit, k, &weight)); k++) {
        char text[128];
        settings_name(part, v->classes, text, sizeof text);
        fini_page_form(page, "<tr><th scope=\"row\">%-s</th><td>%s", k ? "" : "made of", text);
        if (weight > 0 && weight < 1) {
            fini_page_add(page, " <small>weight ");
            fini_bag_number(page, weight, 3);
            fini_page_add(page, "</small>");
        } else if (!(weight > 0)) {
            fini_page_add(page, " <small>for locations only</small>");
        }
        fini_page_add(page, "</td></tr>\n");
    }
}

static void add_fitted(const fini_bag_view *v, fini_page *page)
{
    const char *loss = v->classes ? "log loss" : "squared error over the variance";
    fini_page_add(
        page, "<section id=\"fitted\">\n<h2>What was fitted, and why</h2>\n<div class=\"blocks\">\n"
              "<div class=\"block\"><table><caption><strong>Data</strong></caption>\n<tbody>\n");
    row_text(page, v->of->fresh ? "new bags" : "bags", v->of->data ? v->of->data : "");
    row_number(page, "number", (double)v->n, 9);
    row_number(page, "tokens", (double)(v->bags->offsets[v->n] - v->bags->offsets[0]), 12);
    row_number(page, "columns", (double)v->bags->d, 9);
    for (int64_t c = 0; c < v->classes && c < 12 && v->labels; c++) {
        double count = 0;
        for (int64_t i = 0; i < v->n; i++)
            count += v->labels[i] == (double)c;
        fini_page_form(page, "<tr><th scope=\"row\">class %s</th><td>", fini_bag_class(v, c));
        fini_bag_number(page, count, 9);
        fini_page_add(page, "</td></tr>\n");
    }
    if (v->of->fresh)
        row_number(page, "fitted to bags", (double)v->info.bags, 9);
    fini_page_add(page,
                  "</tbody></table></div>\n<div "
                  "class=\"block\"><table><caption><strong>Model</strong></caption>\n<tbody>\n");
    row_text(page, "asked for", v->of->model ? v->of->model : "");
    add_parts(v, page);
    row_number(page, "fits averaged", (double)v->info.members, 9);
    if (isfinite(v->info.inner_loss)) {
        fini_page_form(
            page, "<tr><th scope=\"row\">chosen by</th><td>%s on training bags left out: ", loss);
        fini_bag_number(page, v->info.inner_loss, 4);
        fini_page_add(page, " (a guess: ");
        fini_bag_number(page, v->info.base_loss, 4);
        fini_page_add(page, ")</td></tr>\n");
    }
    if (!v->classes)
        row_number(page, "noise", v->info.noise, 4);
    fini_page_add(page, "</tbody></table></div>\n</div>\n</section>\n");
}

/* ---- how good ----------------------------------------------------------------------------------------- */

static void head(fini_page *page, const char *const *names)
{
    fini_page_add(page, "<div class=\"scroll\"><table class=\"scores\"><thead><tr>");
    for (; *names; names++)
        fini_page_form(page, "<th scope=\"col\">%s</th>", *names);
    fini_page_add(page, "</tr></thead>\n<tbody>\n");
}

static const char *const class_heads[] = {
    "Model", "Right",    "Balanced", "Sensitivity", "Specificity",
    "AUC",   "Log loss", "Brier",    "ECE",         "First row is better by",
    NULL};
static const char *const number_heads[] = {"Model",
                                           "R2",
                                           "Root mean square",
                                           "Mean absolute",
                                           "In 90 % intervals",
                                           "First row is better by",
                                           NULL};

static void score_cells(const fini_bag_view *v, const fin_fit_score *s, fini_page *page)
{
    bool flip = v->positive == 0;
    if (v->classes) {
        cell(page, "Balanced", s->balanced);
        cell(page, "Sensitivity", flip ? s->specificity : s->sensitivity);
        cell(page, "Specificity", flip ? s->sensitivity : s->specificity);
        cell(page, "AUC", s->auc);
        cell(page, "Log loss", s->log_loss);
        cell(page, "Brier", s->brier);
        cell(page, "ECE", s->ece);
    } else {
        cell(page, "Root mean square", s->rmse);
        cell(page, "Mean absolute", s->mae);
        cell(page, "In 90 % intervals", s->coverage);
    }
}

static void add_scores(const fini_bag_view *v, fini_page *page)
{
    const char *main = v->classes ? "Right" : "R2";
    if (!v->score.count)
        return;
    if (v->left_out)
        fini_page_print(page,
                        "<p class=\"about\">Each of %d parts of the bags was left out in turn, %d "
                        "time%s; a model learnt from "
                        "the others and was asked about it. \xc2\xb1 is the standard error over "
                        "parts. The last column compares "
                        "on the same bags: two standard errors are worth something.</p>\n",
                        v->of->folds, v->of->repeats, v->of->repeats == 1 ? "" : "s");
    head(page, v->classes ? class_heads : number_heads);
    for (int m = 0; m < (v->left_out ? v->of->models : 1); m++) {
        const fin_validation_row *row =
            v->left_out ? fin_validation_at(v->of->validation, m) : NULL;
        fini_page_form(page, "<tr><th scope=\"row\">%s</th><td data-label=\"%s\">",
                       row ? v->of->model_names[m] : v->of->model, main);
        pair(page,
             row          ? row->main
             : v->classes ? v->score.accuracy
                          : v->score.r2,
             row ? row->main_se : NAN);
        fini_page_add(page, "</td>");
        score_cells(v, row ? &row->mean : &v->score, page);
        fini_page_add(page, "<td data-label=\"First row is better by\">");
        if (row && m)
            pair(page, 0 - row->gain, row->gain_se);
        fini_page_add(page, "</td></tr>\n");
    }
    fini_page_add(page, "</tbody></table></div>\n");
    if (v->classes == 2)
        fini_page_form(
            page,
            "<p class=\"source\">Sensitivity is the share of \"%s\" that is recognised, "
            "specificity that of the "
            "other class; balanced is their mean. AUC: how often a positive bag is ranked above "
            "another. ECE: by how much probabilities are off.</p>\n",
            fini_bag_class(v, v->positive));
}

static fin_status add_good(const fini_bag_view *v, fini_page *page, fin_error *err)
{
    if (!v->score.count && !v->of->size_count)
        return FIN_OK;
    fini_page_form(page, "<section id=\"good\">\n<h2>How good it is</h2>\n");
    add_scores(v, page);
    if (v->of->verdict && !warned(v))
        fini_page_form(page, "<p><strong>Does one token decide?</strong> %s.</p>\n",
                       v->of->verdict);
    fin_status status = fini_bag_curves(v, page, err);
    fini_page_add(page, "</section>\n");
    return status;
}

/* ---- features ------------------------------------------------------------------------------------------ */

enum { FEATURES = 15 };

static void add_feature(const fini_bag_view *v, int64_t j, const double *weight, const double *sign,
                        double most, fini_page *page)
{
    const char *name = j < 0 ? NULL : fin_bag_set_feature(v->of->set, j);
    if (j < 0) {
        fini_page_add(page, "<td></td>");
        return;
    }
    fini_page_form(page,
                   "<td><svg width=\"60\" height=\"8\" viewBox=\"0 0 60 8\" "
                   "aria-hidden=\"true\"><path d=\"M0 0h%fv8h-%fz\" "
                   "fill=\"currentColor\" fill-opacity=\"0.55\"/></svg> %-s <b>%s</b> <small>",
                   60 * weight[j] / most, 60 * weight[j] / most,
                   sign[j] > 0   ? "+"
                   : sign[j] < 0 ? "\xe2\x88\x92"
                                 : "\xc2\xb1",
                   name ? name : "");
    fini_bag_number(page, weight[j], 3);
    fini_page_add(page, "</small></td>");
}

/* The heaviest that is not marked; -1: there is none. */
static int64_t heaviest(int64_t d, const double *weight, unsigned char *taken)
{
    int64_t best = -1;
    for (int64_t j = 0; j < d; j++)
        if (!taken[j] && weight[j] > 0 && (best < 0 || weight[j] > weight[best]))
            best = j;
    if (best >= 0)
        taken[best] = 1;
    return best;
}

static void feature_rows(const fini_bag_view *v, const double *number, unsigned char *taken,
                         fini_page *page)
{
    int64_t d = v->bags->d;
    const double *key = number, *value = key + d, *key_sign = value + d, *value_sign = key_sign + d;
    double most[2] = {0, 0};
    fini_page_add(
        page, "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">Score: which token</th>"
              "<th scope=\"col\">Value: its part in the label</th></tr></thead>\n<tbody>\n");
    for (int r = 0; r < FEATURES; r++) {
        int64_t k = heaviest(d, key, taken), w = heaviest(d, value, taken + d);
        if (k < 0 && w < 0)
            break;
        if (r == 0) {
            most[0] = k >= 0 ? key[k] : 1;
            most[1] = w >= 0 ? value[w] : 1;
        }
        fini_page_add(page, "<tr>");
        add_feature(v, k, key, key_sign, most[0], page);
        add_feature(v, w, value, value_sign, most[1], page);
        fini_page_add(page, "</tr>\n");
    }
    fini_page_add(page, "</tbody></table></div>\n");
}

static fin_status add_features(const fini_bag_view *v, fini_page *page, fin_error *err)
{
    int64_t d = v->bags->d;
    fin_error why = {FIN_OK, ""};
    FINI_FREED double *number = fini_alloc_array(d, 4 * sizeof *number + 2);
    if (!number)
        return fini_fail_memory(err, 34 * (size_t)d, "the features of a report");
    unsigned char *taken = (unsigned char *)(number + 4 * d);
    memset(taken, 0, 2 * (size_t)d);
    fini_page_add(page, "<section id=\"features\">\n<h2>Features that matter</h2>\n");
    if (fin_fit_importance(v->of->fit, number, number + d, &why)) {
        fini_page_form(page, "<p>None can be named: %s.</p>\n", why.message);
    } else {
        fin_fit_signs(v->of->fit, number + 2 * d, number + 3 * d, err);
        fini_page_form(page,
                       "<p class=\"about\">How much a column changes the score, which decides the "
                       "weight of a token (left), and its value, its part in the label (right), in "
                       "standard deviations. +: larger numbers raise the weight, or "
                       "make %s likelier; \xe2\x88\x92: the other way; \xc2\xb1: that differs. "
                       "Columns that move "
                       "together share their weight: "
                       "this describes the model, not nature.</p>\n",
                       v->classes == 2 ? fini_bag_class(v, 1)
                       : v->classes    ? "a class"
                                       : "larger labels");
        feature_rows(v, number, taken, page);
    }
    fini_page_add(page, "</section>\n");
    return FIN_OK;
}

/* ---- bags ------------------------------------------------------------------------------------------------- */

static fin_status add_bags(const fini_bag_view *v, fini_page *page, fin_error *err)
{
    bool located = fin_fit_locates(v->of->fit);
    fini_page_add(
        page, "<section id=\"bags\">\n<h2>Which tokens are responsible</h2>\n<p class=\"about\">");
    if (located)
        fini_page_add(
            page,
            "<b>Responsible</b> is the probability that this token is responsible, before the "
            "label is known. ");
    fini_page_form(
        page,
        "<b>Evidence</b> is how much smaller the %s would be without the token, and <b>alone</b> "
        "what it would be for the token "
        "by itself. %-s%-s</p>\n",
        v->classes ? "probability of the predicted class" : "predicted number",
        v->piece < 0 ? "<b>Row</b> is the row of the file, from 1; a line of names does not count."
        : located ? "The stronger its colour, the more probably a piece of a text is responsible."
                  : "The stronger its colour, the larger the evidence of a piece of a text.",
        v->of->fresh ? ""
                     : " The model has learnt from these bags; predictions beside their names are "
                       "of bags left out, where that was tried.");
    fin_status status = fini_bag_flips(v, page, err);
    if (!status)
        status = fini_bag_examples(v, page, err);
    fini_page_add(page, "</section>\n");
    return status;
}

/* ---- all of it --------------------------------------------------------------------------------------------- */

static const double *column(const fin_bag_set *set, const char *name)
{
    for (int64_t k = 0; name && k < fin_bag_set_extras(set); k++)
        if (strcmp(fin_bag_set_extra(set, k), name) == 0)
            return fin_bag_set_extra_numbers(set, k);
    return NULL;
}

/* Texts: what finetti embed writes beside tokens. And what else the file says of a token. */
static void find_texts(fini_bag_view *v)
{
    const fin_bag_set *set = v->of->set;
    v->piece = fin_bag_set_extras(set) - 1;
    while (v->piece >= 0 && (strcmp(fin_bag_set_extra(set, v->piece), "piece") != 0 ||
                             fin_bag_set_extra_numbers(set, v->piece)))
        v->piece--;
    v->span[0] = column(set, "begin");
    v->span[1] = column(set, "end");
    int count = 0;
    for (int64_t k = 0; k < fin_bag_set_extras(set) && count < FINI_BAG_BESIDE; k++) {
        const double *numbers = fin_bag_set_extra_numbers(set, k);
        bool known = k == v->piece;
        for (int c = 0; c < 2; c++)
            known = known || (numbers && (numbers == v->span[c] || numbers == v->place[c]));
        if (!known)
            v->beside[count++] = k;
    }
    while (count < FINI_BAG_BESIDE)
        v->beside[count++] = -1;
}

static fin_status open_view(fini_bag_view *v, fin_error *err)
{
    const fin_bag_report *of = v->of;
    v->bags = fin_bag_set_bags(of->set);
    fin_fit_get_info(of->fit, &v->info);
    v->n = v->bags->n;
    v->classes = v->info.classes;
    v->width = v->classes ? v->classes : 1;
    v->positive = v->info.positive == 0 ? 0 : 1;
    v->labels = v->bags->labels;
    v->left_out = of->validation != NULL;
    if (v->n < 1)
        return fini_fail(err, FIN_ERR_ARGUMENT, "a report on no bags: there is nothing to say");
    for (int twice = 0; twice < 2; twice++) {
        v->own = fini_take(&v->arena, v->n, (size_t)v->width * sizeof(double));
        v->own_sd = fini_take(&v->arena, v->n, (size_t)v->width * sizeof(double));
        v->own_ends = v->classes ? NULL : fini_take(&v->arena, v->n, 2 * sizeof(double));
        FINI_TRY(twice ? FIN_OK : fini_arena_open(&v->arena, "a report", err));
    }
    fin_status status = v->classes ? fin_fit_predict(of->fit, v->bags, v->own, v->own_sd, NULL, err)
                                   : fin_fit_interval(of->fit, v->bags, 0.9, v->own, v->own_sd,
                                                      v->own_ends, NULL, err);
    v->mean = v->left_out ? fin_validation_mean(of->validation, 0) : v->own;
    for (int k = 0; k < 2; k++)
        v->place[k] = column(of->set, of->coords[k]);
    find_texts(v);
    bool any = false;
    for (int64_t i = 0; v->labels && i < v->n; i++)
        any = any || !isnan(v->labels[i]);
    if (!status && any)
        status = fin_fit_judge(v->n, v->classes, v->labels, v->mean,
                               v->left_out || v->classes ? NULL : v->own_sd,
                               v->left_out ? NULL : v->own_ends, &v->score, err);
    return status;
}

static fin_status compose(const fini_bag_view *v, fini_page *page, fin_error *err)
{
    char title[256];
    fini_html_frame frame;
    snprintf(title, sizeof title, "%s: %.200s", v->of->fresh ? "New bags" : "A fit to bags",
             v->of->data ? v->of->data : "");
    FINI_TRY(fini_html_open(&frame, title, page, err));
    fini_page_add(page, "<p class=\"summary\">");
    say_score(v, page);
    fini_page_add(page, "</p>\n");
    fini_html_main(page);
    add_short(v, page);
    fin_status status = add_good(v, page, err);
    if (!status)
        status = add_bags(v, page, err);
    if (!status)
        status = add_features(v, page, err);
    if (!status)
        add_fitted(v, page);
    fini_html_close(&frame, "a model and its bags", page);
    return status ? status : fini_page_status(page, err);
}

fin_status fin_report_bags(const fin_bag_report *report, const char *path, fin_error *err)
{
    FINI_NEED(err, report, path);
    FINI_NEED(err, report->fit, report->set,
              !report->validation || report->models < 1 || report->model_names,
              !report->note_count || report->notes, !report->size_count || report->sizes);
    fini_bag_view view = {.of = report};
    fini_page page = {NULL, 0, 0, false};
    fin_status status = open_view(&view, err);
    if (!status)
        status = compose(&view, &page, err);
    if (!status)
        status = fini_page_write(&page, path, err);
    fini_page_close(&page);
    fini_arena_close(&view.arena);
    return status;
}
