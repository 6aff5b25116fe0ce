/* Bags and their tokens: those where the model is surest and least sure, and tokens where they lie. */
#include "report/bag_report.h"

#include "data/data.h"
#include "math/stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fin_bags fini_bag_alone(const fin_bags *bags, int64_t i)
{
    fin_bags one = *bags;
    int64_t skip = (bags->offsets[i] - bags->offsets[0]) * bags->d;
    one.n = one.total = 1;
    one.first = 0;
    one.offsets = bags->offsets + i;
    one.tokens = (const char *)bags->tokens + skip * (bags->dtype == FIN_F32 ? 4 : 8);
    one.labels = bags->labels ? bags->labels + i : NULL;
    one.groups = NULL;
    return one;
}

/* ---- tokens where they lie ----------------------------------------------------------------------- */

enum { SHOWN_PLACES = 3000 };

typedef struct frame {
    double low[2], high[2], size, side; /* points a unit; of a token's square */
    int64_t count;                      /* tokens that have a place */
    double most;                        /* the largest number */
} frame;

static bool placed(const fin_bag_picture *p, int64_t l)
{
    return isfinite(p->x[l]) && isfinite(p->y[l]) && isfinite(p->value[l]);
}

enum { STEPS = 24 }; /* colours of a legend */

/* Both directions have one scale. Squares are such that as many as there are fill the area. */
static frame frame_of(const fin_bag_picture *p, double width)
{
    frame f = {{INFINITY, INFINITY}, {-INFINITY, -INFINITY}, 1, 6, 0, 0};
    for (int64_t l = 0; l < p->tokens; l++) {
        double at[2] = {p->x[l], p->y[l]};
        if (!placed(p, l))
            continue;
        f.count++;
        f.most = fmax(f.most, p->value[l]);
        for (int k = 0; k < 2; k++) {
            f.low[k] = fmin(f.low[k], at[k]);
            f.high[k] = fmax(f.high[k], at[k]);
        }
    }
    double across = f.high[0] - f.low[0], up = f.high[1] - f.low[1], longer = fmax(across, up);
    f.size = longer > 0 && isfinite(longer) ? width / longer : 1;
    double area = fmax(across * f.size, width / 50) * fmax(up * f.size, width / 50);
    f.side = f.count ? fmin(24, fmax(2, 0.9 * sqrt(area / (double)f.count))) : 6;
    return f;
}

/* Of many tokens those with the largest numbers: the least that is shown. */
/* Of many tokens those with the largest numbers: the least that is shown. */
static double least_shown(const fin_bag_picture *p, const frame *f)
{
    double *sorted = f->count > SHOWN_PLACES ? fini_alloc_array(f->count, sizeof *sorted) : NULL;
    double least = -INFINITY;
    int64_t k = 0;
    if (!sorted)
        return least;
    for (int64_t l = 0; l < p->tokens; l++)
        if (placed(p, l))
            sorted[k++] = p->value[l];
    fini_sort(sorted, k);
    least = sorted[k - SHOWN_PLACES];
    fini_free(sorted);
    return least;
}

static void legend(fini_page *page, const fin_bag_picture *p, const frame *f, double x, double y)
{
    for (int k = 0; k < STEPS; k++) {
        char colour[8];
        fini_svg_heat((k + 0.5) / STEPS, colour);
        fini_page_form(page, "<path d=\"M%f %fh5v10h-5z\" fill=\"%-s\"/>\n", x + 5.0 * k, y,
                       colour);
    }
    fini_page_form(page, "<text x=\"%f\" y=\"%f\" font-size=\"10\" fill=\"currentColor\">0 to ",
                   x + 5.0 * STEPS + 6, y + 9);
    fini_bag_number(page, f->most, 3);
    fini_page_form(page, ": %s</text>\n", p->meaning ? p->meaning : "");
}

void fini_bag_picture(fini_page *page, const fin_bag_picture *p, double width)
{
    frame f = frame_of(p, width);
    double least = least_shown(p, &f), margin = f.side / 2 + 2, most = f.most > 0 ? f.most : 1;
    double across = f.count ? (f.high[0] - f.low[0]) * f.size : 0;
    double up = f.count ? (f.high[1] - f.low[1]) * f.size : 0;
    double words = p->meaning ? 6.0 * (double)strlen(p->meaning) : 0; /* beside the colours */
    double wide = fmax(across + 2 * margin, 5.0 * STEPS + 75 + words), tall = up + 2 * margin + 20;
    int64_t left = 0;
    fini_page_form(
        page,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%f\" height=\"%f\" viewBox=\"0 0 %f "
        "%f\" "
        "role=\"img\" font-family=\"Helvetica, Arial, sans-serif\">\n<title>%s</title>\n",
        wide, tall, wide, tall, p->title ? p->title : "");
    for (int pass = 0; pass < 2; pass++) /* the larger half of the colours on top */
        for (int64_t l = 0; l < p->tokens; l++) {
            char colour[8];
            if (!placed(p, l) || (p->value[l] > most / 2) != (pass == 1))
                continue;
            if (p->value[l] < least || left > SHOWN_PLACES)
                continue;
            left++;
            fini_svg_heat(p->value[l] / most, colour);
            fini_page_form(
                page, "<rect x=\"%f\" y=\"%f\" width=\"%f\" height=\"%f\" fill=\"%-s\"/>\n",
                margin + (p->x[l] - f.low[0]) * f.size - f.side / 2,
                margin + (p->y[l] - f.low[1]) * f.size - f.side / 2, f.side, f.side, colour);
        }
    legend(page, p, &f, 2, tall - 14);
    fini_page_add(page, "</svg>\n");
}

fin_status fin_report_bag(const fin_bag_picture *picture, const char *path, fin_error *err)
{
    FINI_NEED(err, picture, path);
    FINI_NEED(err, picture->x, picture->y, picture->value, picture->tokens >= 0);
    FINI_AT_END(fini_page_close) fini_page page = {NULL, 0, 0, false};
    fini_bag_picture(&page, picture, 600);
    return fini_page_write(&page, path, err);
}

/* ---- examples -------------------------------------------------------------------------------------- */

enum { EXAMPLES = 6, TOP = 5, TOO_LONG = 20000 };

typedef struct example {
    double sureness;
    int64_t bag;
} example;

static int surest_first(const void *a, const void *b)
{
    const example *p = a, *q = b;
    if (p->sureness != q->sureness)
        return p->sureness > q->sureness ? -1 : 1;
    return p->bag < q->bag ? -1 : 1;
}

static int64_t likeliest(const fini_bag_view *v, const double *row)
{
    int64_t best = 0;
    for (int64_t c = 1; c < v->width; c++)
        best = row[c] > row[best] ? c : best;
    return best;
}

/* A bar of a table, as wide as the share of its largest says. */
static void bar(fini_page *page, double share)
{
    fini_page_form(
        page,
        "<svg width=\"36\" height=\"8\" viewBox=\"0 0 36 8\" aria-hidden=\"true\">"
        "<path d=\"M0 0h%fv8h-%fz\" fill=\"currentColor\" fill-opacity=\"0.55\"/></svg> ",
        36 * fmin(1, fmax(0, share)), 36 * fmin(1, fmax(0, share)));
}

static void say_prediction(const fini_bag_view *v, int64_t i, fini_page *page)
{
    const double *row = v->mean + i * v->width;
    if (v->classes) {
        int64_t c = likeliest(v, row);
        fini_page_form(page, "predicted <b>%s</b> with probability ", fini_bag_class(v, c));
        fini_bag_share(page, row[c]);
    } else {
        fini_page_add(page, "predicted <b>");
        fini_bag_number(page, row[0], 4);
        fini_page_add(page, "</b>");
    }
    if (!v->labels || isnan(v->labels[i]))
        return;
    bool wrong = v->classes && likeliest(v, row) != (int64_t)v->labels[i];
    if (v->classes) {
        fini_page_form(page, "; it is <b>%s</b>%-s", fini_bag_class(v, (int64_t)v->labels[i]),
                       wrong ? " <span class=\"verdict fails\">wrong</span>" : "");
    } else {
        fini_page_add(page, "; it is <b>");
        fini_bag_number(page, v->labels[i], 4);
        fini_page_add(page, "</b>");
    }
}

/* ---- texts ---------------------------------------------------------------------------------------- */

enum { LEVELS = 10, WORDS_MOST = 1000 };

static const char *piece_of(const fini_bag_view *v, int64_t t)
{
    const char *text = v->piece < 0 ? NULL : fin_bag_set_extra_text(v->of->set, v->piece, t);
    return text ? text : "";
}

/* Does token t stand in the text right behind the one before? */
static bool is_joined(const fini_bag_view *v, int64_t t)
{
    return v->span[0] && v->span[1] && v->span[1][t] > v->span[0][t] &&
           v->span[1][t - 1] > v->span[0][t - 1] && v->span[0][t] == v->span[1][t - 1];
}

/* The text of tokens `from` to from + L, each with a colour as strong as its share says. */
static void sentence(const fini_bag_view *v, int64_t from, int64_t L, const double *value,
                     double most, fini_page *page)
{
    fini_page_add(page, "<p class=\"words\">");
    for (int64_t l = 0; l < L && l < WORDS_MOST; l++) {
        double share = most > 0 ? fmin(1, fabs(value[l]) / most) : 0;
        fini_page_add(page, l > 0 && !is_joined(v, from + l) ? " " : "");
        fini_page_print(page, "<span class=\"w%d\" title=\"", (int)lround(share * LEVELS));
        fini_bag_share(page, value[l]);
        fini_page_form(page, "\">%s</span>", piece_of(v, from + l));
    }
    fini_page_add(page, L > WORDS_MOST ? " ...</p>\n" : "</p>\n");
}

/* A row below token t with what the file says of it. */
static void say_beside(const fini_bag_view *v, int64_t t, int columns, fini_page *page)
{
    const char *between = "";
    for (int c = 0; c < FINI_BAG_BESIDE && v->beside[c] >= 0; c++) {
        const double *numbers = fin_bag_set_extra_numbers(v->of->set, v->beside[c]);
        const char *text = fin_bag_set_extra_text(v->of->set, v->beside[c], t);
        char number[32] = "";
        if (!text && numbers && !isnan(numbers[t]))
            snprintf(number, sizeof number, "%.6g", numbers[t]);
        if (c == 0)
            fini_page_print(page, "<tr class=\"beside\"><td colspan=\"%d\"><small>", columns);
        fini_page_form(page, "%-s%s %s", between, fin_bag_set_extra(v->of->set, v->beside[c]),
                       FINI_SHOW(text ? text : number));
        between = ", ";
    }
    if (*between)
        fini_page_add(page, "</small></td></tr>\n");
}

typedef struct tokens {
    int64_t L;
    double *prior, *change, *only; /* (L); prior NULL: the model has no location */
    int64_t *order;                /* (TOP) the first few */
} tokens;

static void table(const fini_bag_view *v, int64_t i, const tokens *t, fini_page *page)
{
    int64_t from = v->bags->offsets[i] - v->bags->offsets[0], rows = t->L < TOP ? t->L : TOP;
    double most = v->classes ? 1 : 0; /* of a probability all is 1 */
    for (int64_t l = 0; l < t->L && !v->classes; l++)
        most = fmax(most, fabs(t->change[l]));
    fini_page_form(page,
                   "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">%s</th>%-s<th "
                   "scope=\"col\">Evidence</th><th scope=\"col\">Alone</th>",
                   v->piece < 0 ? "Row" : "Piece",
                   t->prior ? "<th scope=\"col\">Responsible</th>" : "");
    fini_page_add(page, "</tr></thead>\n<tbody>\n");
    for (int64_t r = 0; r < rows; r++) {
        int64_t l = t->order[r];
        if (v->piece >= 0)
            fini_page_form(page, "<tr><th scope=\"row\">%s</th>", piece_of(v, from + l));
        else
            fini_page_print(page, "<tr><th scope=\"row\">%lld</th>",
                            (long long)fin_bag_set_row(v->of->set, from + l));
        if (t->prior) {
            fini_page_add(page, "<td>");
            bar(page, t->prior[l]);
            fini_bag_share(page, t->prior[l]);
            fini_page_add(page, "</td>");
        }
        fini_page_add(page, "<td>");
        bar(page, most > 0 ? fabs(t->change[l]) / most : 0);
        fini_bag_share(page, t->change[l]);
        fini_page_add(page, "</td><td>");
        fini_bag_share(page, t->only[l]);
        fini_page_add(page, "</td></tr>\n");
        say_beside(v, from + l, t->prior ? 4 : 3, page);
    }
    fini_page_add(page, "</tbody></table></div>\n");
    if (rows < t->L)
        fini_page_print(page, "<p><small>and %lld more</small></p>\n", (long long)(t->L - rows));
}

static fin_status look(const fini_bag_view *v, const fin_bags *bag, const tokens *t, fin_error *err)
{
    fin_evidence evidence = {.change = t->change, .only = t->only};
    FINI_TRY(fin_fit_evidence(v->of->fit, bag, &evidence, NULL, err));
    if (t->prior)
        FINI_TRY(fin_fit_locate(v->of->fit, bag, &(fin_locations){.prior = t->prior}, NULL, err));
    return FIN_OK;
}

/* The first few, by probability, or by evidence where there is none. */
static void order_tokens(const tokens *t)
{
    const double *by = t->prior ? t->prior : t->change;
    int64_t count = 0;
    for (int64_t l = 0; l < t->L; l++) {
        int64_t at = count < TOP ? count++ : TOP;
        for (; at > 0 && by[l] > by[t->order[at - 1]]; at--)
            if (at < TOP)
                t->order[at] = t->order[at - 1];
        if (at < TOP)
            t->order[at] = l;
    }
}

static fin_status show(const fini_bag_view *v, int64_t i, fini_page *page, fin_error *err)
{
    fin_bags bag = fini_bag_alone(v->bags, i);
    int64_t L = bag.offsets[1] - bag.offsets[0], from = bag.offsets[0] - v->bags->offsets[0];
    const char *name = fin_bag_set_name(v->of->set, i);
    fini_page_form(page, "<div class=\"block bag\"><p><strong>%s</strong> <small>",
                   name ? name : "");
    fini_page_print(page, "%lld token%s</small><br>", (long long)L, L == 1 ? "" : "s");
    say_prediction(v, i, page);
    fini_page_add(page, "</p>\n");
    double *room = L > TOO_LONG ? NULL : fini_alloc_array(L, 3 * sizeof *room);
    int64_t first[TOP];
    if (L > TOO_LONG) {
        fini_page_add(
            page,
            "<p><small>Too many tokens for a page; finetti locate has them.</small></p></div>\n");
        return FIN_OK;
    }
    if (!room)
        return fini_fail_memory(err, 24 * (size_t)L, "the tokens of a bag");
    tokens t = {L, fin_fit_locates(v->of->fit) ? room : NULL, room + L, room + 2 * L, first};
    fin_status status = look(v, &bag, &t, err);
    if (!status) {
        double most = t.prior ? 1 : 0;
        for (int64_t l = 0; l < L && !t.prior; l++)
            most = fmax(most, fabs(t.change[l]));
        if (v->piece >= 0)
            sentence(v, from, L, t.prior ? t.prior : t.change, most, page);
        order_tokens(&t);
        table(v, i, &t, page);
        if (v->place[0] && v->place[1]) {
            const fin_bag_picture picture = {L,
                                             v->place[0] + from,
                                             v->place[1] + from,
                                             t.prior ? t.prior : t.change,
                                             name,
                                             t.prior ? "responsible" : "evidence"};
            fini_bag_picture(page, &picture, 280);
        }
    }
    fini_page_add(page, "</div>\n");
    fini_free(room);
    return status;
}

/* By the probability of what is predicted; of numbers by the deviation. */
static double sureness(const fini_bag_view *v, int64_t i)
{
    const double *row = v->mean + i * v->width;
    double sure = v->classes ? row[likeliest(v, row)] : v->own_sd ? -v->own_sd[i] : 0;
    return isnan(sure) ? -INFINITY : sure;
}

fin_status fini_bag_examples(const fini_bag_view *v, fini_page *page, fin_error *err)
{
    static const char *const titles[2] = {"Where it is surest", "Where it is least sure"};
    FINI_OWN(err, "the bags of a report", example, all, v->n, 1);
    for (int64_t i = 0; i < v->n; i++)
        all[i] = (example){sureness(v, i), i};
    qsort(all, (size_t)v->n, sizeof *all, surest_first);
    fin_status status = FIN_OK;
    int64_t shown = v->n < 2 * EXAMPLES ? v->n / 2 : EXAMPLES, first = v->n == 1 ? 1 : shown;
    for (int half = 0; half < 2 && !status; half++) {
        int64_t count = half ? shown : first;
        if (count)
            fini_page_form(page, "<h3>%s</h3>\n<div class=\"blocks\">\n", titles[half]);
        for (int64_t k = 0; k < count && !status; k++)
            status = show(v, all[half ? v->n - 1 - k : k].bag, page, err);
        fini_page_add(page, count ? "</div>\n" : "");
    }
    return status;
}
