/* Figures as data, SVG and CSV: hostile names, numbers that are none, axes without data. Every SVG
 * is read by a small checker of well-formed XML; every coordinate in it must be a finite number. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fault.h"
#include "report/figure.h"

/* ---- a checker of XML ------------------------------------------------------------------------ */

enum { DEPTH = 64 };

static bool entity(const char *p)
{
    static const char *const known[] = {"&lt;", "&gt;", "&amp;", "&quot;", "&#39;"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp(p, known[i], strlen(known[i])) == 0)
            return true;
    return false;
}

/* Attributes up to '>' or '/'; NULL if they are malformed. */
static const char *attributes(const char *p)
{
    while (*p == ' ') {
        p++;
        while (*p && strchr("=\"<>& ", *p) == NULL)
            p++;
        if (p[0] != '=' || p[1] != '"')
            return NULL;
        for (p += 2; *p != '"'; p++)
            if (*p == '\0' || *p == '<' || (*p == '&' && !entity(p)))
                return NULL;
        p++;
    }
    return p;
}

/* Elements nest and close, text and attributes have no bare < and &. */
static bool well_formed(const char *p)
{
    const char *open[DEPTH];
    size_t length[DEPTH];
    int depth = 0;
    for (; *p; p++) {
        if (*p == '&' && !entity(p))
            return false;
        if (*p == '>')
            return false;
        if (*p != '<')
            continue;
        bool closes = p[1] == '/';
        const char *name = p + 1 + closes;
        size_t size = strspn(name, "abcdefghijklmnopqrstuvwxyz");
        if (size == 0)
            return false;
        p = attributes(name + size);
        if (!p)
            return false;
        if (closes) {
            depth--;
            if (depth < 0 || length[depth] != size || memcmp(open[depth], name, size) != 0)
                return false;
        } else if (*p == '/') {
            p++;
        } else {
            if (depth == DEPTH)
                return false;
            open[depth] = name;
            length[depth++] = size;
        }
        if (*p != '>')
            return false;
    }
    return depth == 0;
}

static char *terminated(fini_page *page)
{
    fini_page_bytes(page, "", 1);
    assert_false(page->failed);
    return page->text;
}

/* Finishes the figure, draws it, looks at it, closes it. The text is for free(). */
static char *drawn(fini_figure *figure)
{
    fini_page page = {NULL, 0, 0, false};
    assert_int_equal(fini_figure_finish(figure, NULL), FIN_OK);
    for (const fini_panel *p = figure->panels; p; p = p->next) {
        assert_true(isfinite(p->x.low) && isfinite(p->x.high) && p->x.low < p->x.high);
        assert_true(isfinite(p->y.low) && isfinite(p->y.high) && p->y.low < p->y.high);
    }
    fini_figure_svg(figure, 432, 288, &page);
    char *copy = strdup(terminated(&page));
    assert_non_null(copy);
    assert_true(well_formed(copy));
    assert_null(strstr(copy, "nan"));
    assert_null(strstr(copy, "inf"));
    fini_page_close(&page);
    fini_figure_close(figure);
    return copy;
}

static fini_curve *curve_of(fini_figure *figure, fini_panel *panel, fini_mark mark, int count,
                            const double *x, const double *y)
{
    fini_curve *curve = fini_figure_curve(figure, panel, "curve", mark, count);
    assert_non_null(curve);
    memcpy(curve->x, x, (size_t)count * sizeof *x);
    memcpy(curve->y, y, (size_t)count * sizeof *y);
    curve->shape = FINI_CIRCLE;
    return curve;
}

/* One panel, one curve; returns the text for free(), and the notes' number. */
static char *one(bool log, int count, const double *x, const double *y, fini_mark mark, int *notes)
{
    fini_figure figure;
    fini_figure_open(&figure);
    fini_panel *panel = fini_figure_panel(&figure, "");
    panel->x.log = panel->y.log = log;
    curve_of(&figure, panel, mark, count, x, y);
    assert_int_equal(fini_figure_finish(&figure, NULL), FIN_OK);
    *notes = 0;
    for (const fini_note *n = figure.notes; n; n = n->next)
        ++*notes;
    return drawn(&figure);
}

static int count_of(const char *text, const char *part)
{
    int count = 0;
    for (const char *p = strstr(text, part); p; p = strstr(p + 1, part))
        count++;
    return count;
}

/* ---- the checker itself ---------------------------------------------------------------------- */

static void checker__finds_what_is_wrong(void **state)
{
    (void)state;
    assert_true(well_formed("<a b=\"c\"><d/>text &amp; &lt;</a>"));
    assert_false(well_formed("<a><b></a></b>"));
    assert_false(well_formed("<a>&nbsp;</a>"));
    assert_false(well_formed("<a b=c></a>"));
    assert_false(well_formed("<a>"));
    assert_false(well_formed("<a b=\"<\"></a>"));
}

/* ---- names ----------------------------------------------------------------------------------- */

static void svg__hostile_names_are_escaped(void **state)
{
    (void)state;
    static const char *const names[] = {"</text><script>alert(1)</script>",
                                        "\"onload=\"x",
                                        "a & b < c > d 'e'",
                                        "\x01\x02\x7f",
                                        "\xff\xfe\xc0\x80",
                                        "\xef\xbf\xbf",
                                        "]]>",
                                        ""};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        fini_figure figure;
        fini_figure_open(&figure);
        figure.title = names[i];
        fini_panel *panel = fini_figure_panel(&figure, names[i]);
        panel->x.label = panel->y.label = names[i];
        double x[] = {1, 2}, y[] = {3, 4};
        curve_of(&figure, panel, FINI_MARK_SOLID, 2, x, y)->label = names[i];
        fini_figure_reference(&figure, panel, FINI_AT_X, 1.5, names[i]);
        char *svg = drawn(&figure);
        assert_null(strstr(svg, "<script"));
        free(svg);
    }
}

static void csv__fields_are_quoted(void **state)
{
    (void)state;
    fini_figure figure;
    fini_page page = {NULL, 0, 0, false};
    fini_figure_open(&figure);
    fini_panel *panel = fini_figure_panel(&figure, "a,b");
    double x[] = {0.1, NAN}, y[] = {1e300, -INFINITY};
    fini_curve *curve = curve_of(&figure, panel, FINI_MARK_SOLID, 2, x, y);
    curve->label = "say \"no\"\nplease";
    fini_figure_csv(&figure, &page);
    assert_string_equal(terminated(&page), "panel,series,x,y,low,high\n"
                                           "\"a,b\",\"say \"\"no\"\"\nplease\",0.1,1e+300,,\n"
                                           "\"a,b\",\"say \"\"no\"\"\nplease\",nan,-inf,,\n");
    fini_page_close(&page);
    fini_figure_close(&figure);
}

static void script__cannot_be_left(void **state)
{
    (void)state;
    static const char text[] = "</script><!-- \\x3c \xe2\x80\xa8 & '\"";
    fini_page page = {NULL, 0, 0, false};
    fini_page_script(&page, text, strlen(text));
    assert_string_equal(terminated(&page), "\\x3c/script>\\x3c!-- \\\\x3c \xe2\x80\xa8 & '\"");
    fini_page_close(&page);
    fini_page_json(&page, text);
    assert_string_equal(terminated(&page), "\"\\u003c/script\\u003e\\u003c!-- \\u005cx3c \\u2028 "
                                           "\\u0026 \\u0027\\u0022\"");
    fini_page_close(&page);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static void svg__numbers_of_every_kind(void **state)
{
    (void)state;
    const double wild[] = {NAN,    INFINITY, -INFINITY, 0,    -0.0, 1e308, -1e308, 5e-324,
                           1e-300, 1e300,    -1e300,    1e15, 1,    1,     0.1,    1e-9};
    enum { N = sizeof wild / sizeof *wild };
    for (int mark = 0; mark <= FINI_MARK_POINTS; mark++)
        for (int log = 0; log <= 1; log++)
            for (int from = 0; from < N; from++)
                for (int count = 0; from + count <= N; count++) {
                    int notes;
                    free(one(log, count, wild + from, wild + N - from - count, (fini_mark)mark,
                             &notes));
                }
}

static void svg__points_without_a_place_are_counted(void **state)
{
    (void)state;
    const double x[] = {1, 10, 100, 1000}, y[] = {-1, 0, 2, NAN};
    int notes;
    char *svg = one(true, 4, x, y, FINI_MARK_POINTS, &notes);
    assert_int_equal(notes, 1);
    assert_int_equal(count_of(svg, "a3.4 3.4"), 2 * 2); /* a circle here and one in the legend */
    free(svg);
    svg = one(false, 3, x, y, FINI_MARK_POINTS, &notes);
    assert_int_equal(notes, 0);
    assert_int_equal(count_of(svg, "a3.4 3.4"), 2 * 4);
    free(svg);
}

static void svg__same_data_same_bytes(void **state)
{
    (void)state;
    const double x[] = {3, 1, 2}, y[] = {1, 2, 4};
    int notes;
    char *a = one(true, 3, x, y, FINI_MARK_DASHED, &notes);
    char *b = one(true, 3, x, y, FINI_MARK_DASHED, &notes);
    assert_string_equal(a, b);
    assert_int_equal(count_of(a, "stroke-dasharray=\"6 4\""), 2);
    free(a);
    free(b);
}

static void svg__empty_figure(void **state)
{
    (void)state;
    fini_figure figure;
    fini_figure_open(&figure);
    free(drawn(&figure)); /* no panel at all */
    fini_figure_open(&figure);
    fini_figure_panel(&figure, "nothing");
    char *svg = drawn(&figure);
    assert_non_null(strstr(svg, "no data"));
    free(svg);
}

static void svg__cells_arrows_bars(void **state)
{
    (void)state;
    static const char *names[] = {"a<b", "c&d"};
    for (int n = 1; n <= 2; n++) { /* one cell, and four of which one is empty */
        fini_figure figure;
        fini_figure_open(&figure);
        fini_panel *panel = fini_figure_panel(&figure, "cells");
        const double x[] = {1, 1, 2, 2}, y[] = {10, 20, 10, 20};
        panel->has_value = true;
        panel->x.category = names;
        panel->x.categories = 2;
        fini_curve *cells = curve_of(&figure, panel, FINI_MARK_CELLS, n * n, x, y);
        cells->columns = cells->rows = n;
        cells->shape = -1;
        cells->value = fini_figure_array(&figure, cells);
        for (int i = 0; i < n * n; i++)
            cells->value[i] = i == 2 ? NAN : i;
        fini_curve *arrows = curve_of(&figure, panel, FINI_MARK_ARROWS, n, x, y);
        arrows->dx = fini_figure_array(&figure, arrows);
        arrows->dy = fini_figure_array(&figure, arrows);
        arrows->dx[0] = NAN;
        panel = fini_figure_panel(&figure, "bars");
        fini_curve *bars = curve_of(&figure, panel, FINI_MARK_BARS, 2, x, y);
        bars->low = fini_figure_array(&figure, bars);
        bars->high = fini_figure_array(&figure, bars);
        bars->high[0] = 10;
        bars->high[1] = NAN;
        fini_page csv = {NULL, 0, 0, false};
        fini_figure_csv(&figure, &csv);
        assert_memory_equal(csv.text, "panel,series,x,y,low,high,value,dx,dy\n", 38);
        fini_page_close(&csv);
        char *svg = drawn(&figure);
        assert_non_null(strstr(svg, "c&amp;d"));
        free(svg);
    }
}

/* ---- limits, ticks, order -------------------------------------------------------------------- */

/* Up to the right: a shaft, and a head of two equal strokes that meet at its end and open backwards. */
static void svg__arrow_has_a_head(void **state)
{
    (void)state;
    fini_figure figure;
    fini_figure_open(&figure);
    fini_panel *panel = fini_figure_panel(&figure, "");
    const double x[] = {0, 1, 2}, y[] = {0, 1, 2};
    curve_of(&figure, panel, FINI_MARK_SOLID, 3, x, y);
    fini_curve *arrow = curve_of(&figure, panel, FINI_MARK_ARROWS, 1, x + 1, y + 1);
    arrow->dx = fini_figure_array(&figure, arrow);
    arrow->dy = fini_figure_array(&figure, arrow);
    arrow->dx[0] = 0.6;
    arrow->dy[0] = 0.8;
    char *svg = drawn(&figure);
    double p[5][2]; /* foot, tip; left, tip, right */
    const char *end = strstr(svg, "\" stroke=\"white\" stroke-opacity"), *path = end;
    assert_non_null(end);
    while (strncmp(path, "<path d=\"", 9) != 0)
        path--;
    assert_int_equal(sscanf(path, "<path d=\"M%lf %lfL%lf %lfM%lf %lfL%lf %lfL%lf %lf\"", &p[0][0],
                            &p[0][1], &p[1][0], &p[1][1], &p[2][0], &p[2][1], &p[3][0], &p[3][1],
                            &p[4][0], &p[4][1]),
                     10);
    double shaft[2] = {p[1][0] - p[0][0], p[1][1] - p[0][1]}, along[2], across[2];
    assert_true(p[3][0] == p[1][0] && p[3][1] == p[1][1]);
    /* y grows downwards */
    assert_true(shaft[0] > 0 && shaft[1] < 0 && fabs(shaft[1] / shaft[0] + 4.0 / 3) < 0.05);
    for (int i = 0; i < 2; i++) {
        double stroke[2] = {p[2 + 2 * i][0] - p[1][0], p[2 + 2 * i][1] - p[1][1]};
        along[i] = stroke[0] * shaft[0] + stroke[1] * shaft[1];
        across[i] = stroke[0] * shaft[1] - stroke[1] * shaft[0];
    }
    double size = shaft[0] * shaft[0] + shaft[1] * shaft[1];
    assert_true(along[0] < 0 && fabs(along[0] - along[1]) < 0.01 * size);
    assert_true(fabs(across[0]) > 0.05 * size && fabs(across[0] + across[1]) < 0.01 * size);
    free(svg);
}

/* A label of one letter is one; none is none. */
static void svg__references_have_their_labels(void **state)
{
    (void)state;
    static const char *const labels[] = {"", "Q", "QQ"};
    const double x[] = {0, 1, 2}, y[] = {0, 1, 2};
    for (int i = 0; i < 3; i++)
        for (int where = FINI_AT_X; where <= FINI_DIAGONAL; where++) {
            char said[16];
            fini_figure figure;
            fini_figure_open(&figure);
            fini_panel *panel = fini_figure_panel(&figure, "");
            curve_of(&figure, panel, FINI_MARK_SOLID, 3, x, y);
            fini_figure_reference(&figure, panel, where, 0.7, labels[i]);
            char *svg = drawn(&figure);
            snprintf(said, sizeof said, ">%s</text>", labels[i]);
            assert_int_equal(count_of(svg, said), i > 0);
            free(svg);
        }
}

static void limits__bands_near_zero_do_not_rule_a_log_axis(void **state)
{
    (void)state;
    fini_figure figure;
    fini_figure_open(&figure);
    fini_panel *panel = fini_figure_panel(&figure, "");
    panel->y.log = true;
    const double x[] = {1, 2}, y[] = {1, 2};
    fini_curve *curve = curve_of(&figure, panel, FINI_MARK_SOLID, 2, x, y);
    curve->low = fini_figure_array(&figure, curve);
    curve->high = fini_figure_array(&figure, curve);
    curve->low[0] = 1e-200;
    curve->high[0] = curve->high[1] = 3;
    assert_int_equal(fini_figure_finish(&figure, NULL), FIN_OK);
    assert_true(panel->y.low > 0.05 && panel->y.low < 0.1);
    assert_true(panel->y.high > 3 && panel->y.high < 4);
    fini_figure_close(&figure);
}

static void ticks__are_inside_and_said(void **state)
{
    (void)state;
    const struct {
        double low, high;
        bool log;
        const char *first;
    } cases[] = {{0, 1, false, "0"},
                 {-0.1, 0.1, false,
                  "\xe2\x88\x92"
                  "0.10"},
                 {0.011, 0.9, true, "0.02"},
                 {0.9e-7, 2e4, true, ""},
                 {1.21, 1.29, true, "1.21"},
                 {0, 3e7, false, "0"},
                 {1e300, 1.0001e300, false, ""},
                 {1e-300, 1e300, true, ""},
                 {1e15, 1e15 + 1, false, ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fini_scale scale = {"", cases[i].log, cases[i].low, cases[i].high, NULL, 0};
        fini_tick ticks[FINI_TICKS];
        int count = fini_ticks(&scale, 6, ticks);
        assert_true(count <= FINI_TICKS);
        for (int k = 0; k < count; k++) {
            double place = fini_scale_place(&scale, ticks[k].at);
            assert_true(place > -1e-6 && place < 1 + 1e-6);
        }
        if (cases[i].first[0]) {
            int k = 0;
            while (k < count && !ticks[k].text[0])
                k++;
            assert_true(k < count);
            if (strcmp(ticks[k].text, cases[i].first) != 0)
                fail_msg("case %d: '%s', not '%s'", (int)i, ticks[k].text, cases[i].first);
        }
    }
}

/* Over three decades and more only powers of ten have a text, not many more than wanted. */
static void ticks__of_many_decades_are_powers_of_ten(void **state)
{
    (void)state;
    const struct {
        double low, high;
        int said;
    } cases[] = {{1e-3, 1, 4}, {1e-9, 0.1, 4}, {0.5, 2e4, 5}, {1e-30, 1e30, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fini_scale scale = {"", true, cases[i].low, cases[i].high, NULL, 0};
        fini_tick ticks[FINI_TICKS];
        int count = fini_ticks(&scale, 6, ticks), said = 0;
        for (int k = 0; k < count; k++)
            if (ticks[k].text[0]) {
                double power = log10(ticks[k].at);
                assert_true(fabs(power - round(power)) < 1e-9);
                said++;
            }
        assert_in_range(said, cases[i].said, 7);
    }
}

/* The label of a value stands beside the point that has it, on both axes. */
static void axes__labels_stand_at_their_values(void **state)
{
    (void)state;
    enum { N = 6 };
    const double x[N] = {0, 2, 4, 6, 8, 10}, y[N] = {0, 20, 40, 60, 80, 100};
    double at[2][N], left, top;
    int notes, labels[2] = {0, 0};
    char *svg = one(false, N, x, y, FINI_MARK_SOLID, &notes);
    const char *inner = strstr(svg, "<svg class=\"marks\" x="),
               *path = inner ? strstr(inner, "<path d=\"M") : NULL;
    assert_non_null(path);
    assert_int_equal(sscanf(inner, "<svg class=\"marks\" x=\"%lf\" y=\"%lf\"", &left, &top), 2);
    path += strlen("<path d=\"");
    for (int i = 0; i < N; i++) {
        int size = 0;
        assert_int_equal(sscanf(path, "%*1[ML]%lf %lf%n", &at[0][i], &at[1][i], &size), 2);
        at[0][i] += left;
        at[1][i] += top;
        path += size;
    }
    for (const char *p = strstr(svg, "<text "); p; p = strstr(p + 1, "<text ")) {
        double place[2], value;
        if (sscanf(p, "<text x=\"%lf\" y=\"%lf\">%lf<", &place[0], &place[1], &value) != 3)
            continue; /* the legend */
        int axis = p > strstr(svg, "<g class=\"y\""), i = (int)(value / (axis ? 20 : 2));
        assert_true(i >= 0 && i < N && value == (axis ? y[i] : x[i]));
        assert_true(fabs(place[axis] - at[axis][i]) < 5); /* text stands on its foot */
        labels[axis]++;
    }
    assert_true(labels[0] == N && labels[1] == N);
    free(svg);
}

/* Lines of several values of a setting have what they are at their ends, in their colours and never on top of each other; what they
 * have in common stands below, once. */
static void svg__values_stand_at_their_lines(void **state)
{
    (void)state;
    static const char *const values[] = {"L = 2", "L = 4", "L = 8"};
    const double x[] = {1, 2}, y[] = {1, 1};
    fini_figure figure;
    fini_figure_open(&figure);
    fini_panel *panel = fini_figure_panel(&figure, "");
    for (int i = 0; i < 6; i++) {
        fini_curve *curve =
            curve_of(&figure, panel, i < 3 ? FINI_MARK_SOLID : FINI_MARK_DASHED, 2, x, y);
        curve->label = i < 3 ? "measured, so" : "predicted, so";
        curve->name = i < 3 ? "measured" : "predicted";
        curve->of = values[i % 3];
        curve->colour = i % 3;
        curve->y[1] += 0.001 * i;
    }
    assert_true(fini_panel_direct(panel));
    char *svg = drawn(&figure);
    double last = -1;
    for (int i = 2; i >= 0; i--) { /* the highest first */
        char said[160];
        snprintf(said, sizeof said, "font-size=\"10\" fill=\"%s\">%s</text>", fini_svg_colour(i),
                 values[i]);
        assert_int_equal(count_of(svg, said), 1);
        const char *text = strstr(svg, said);
        while (strncmp(text, "<text ", 6) != 0)
            text--;
        double at;
        assert_int_equal(sscanf(text, "<text x=\"%*f\" y=\"%lf\"", &at), 1);
        assert_true(last < 0 || at - last > 9.9);
        last = at;
    }
    assert_int_equal(count_of(svg, ">measured</text>"), 1);
    assert_int_equal(count_of(svg, ">predicted</text>"), 1);
    assert_int_equal(count_of(svg, ", so</text>"), 0);
    free(svg);
}

/* The diagonal goes through the points that lie on it, on logarithmic axes too. */
static void svg__diagonal_is_where_both_are_equal(void **state)
{
    (void)state;
    const double x[] = {1, 100}, y[] = {1, 100};
    for (int log = 0; log <= 1; log++) {
        fini_figure figure;
        fini_figure_open(&figure);
        fini_panel *panel = fini_figure_panel(&figure, "");
        panel->square = true;
        panel->x.log = panel->y.log = log;
        curve_of(&figure, panel, FINI_MARK_SOLID, 2, x, y)->shape = -1;
        fini_figure_reference(&figure, panel, FINI_DIAGONAL, 0, "");
        char *svg = drawn(&figure);
        const char *inner = strstr(svg, "class=\"marks\"");
        double p[2][4];
        for (int i = 0; i < 2; i++) { /* the diagonal, the line */
            inner = strstr(inner, "<path d=\"M") + 1;
            assert_int_equal(
                sscanf(inner, "path d=\"M%lf %lfL%lf %lf", &p[i][0], &p[i][1], &p[i][2], &p[i][3]),
                4);
        }
        double slope = (p[0][3] - p[0][1]) / (p[0][2] - p[0][0]);
        for (int k = 0; k < 4; k += 2)
            assert_true(fabs(p[0][1] + slope * (p[1][k] - p[0][0]) - p[1][k + 1]) < 0.3);
        free(svg);
    }
}

/* Nothing but zeros is a sentence; a single other number, a log axis or given limits are axes. */
static void svg__zeros_are_a_sentence(void **state)
{
    (void)state;
    const double x[] = {1, 2, 3}, y[] = {0, 0, 0};
    for (int other = 0; other <= 2; other++) {
        fini_figure figure;
        fini_figure_open(&figure);
        fini_panel *panel = fini_figure_panel(&figure, "");
        panel->y.label = "distance";
        fini_curve *curve = curve_of(&figure, panel, FINI_MARK_SOLID, 3, x, y);
        curve->y[1] = other == 1 ? 1e-300 : 0;
        panel->y.low = other == 2 ? -1 : NAN;
        char *svg = drawn(&figure);
        assert_int_equal(count_of(svg, "distance: exactly 0, at every point."), other == 0);
        assert_int_equal(count_of(svg, "class=\"marks\""), other != 0);
        free(svg);
    }
}

/* Before colours come again, so do no signs. */
static void svg__every_colour_has_a_shape_of_its_own(void **state)
{
    (void)state;
    const double x[] = {0, 1}, y[] = {0, 1};
    char *signs[FINI_COLOURS];
    for (int k = 0; k < FINI_COLOURS; k++) {
        fini_figure figure;
        fini_figure_open(&figure);
        fini_panel *panel = fini_figure_panel(&figure, "");
        fini_curve *curve = curve_of(&figure, panel, FINI_MARK_POINTS, 2, x, y);
        curve->shape = k;
        char *svg = drawn(&figure), *inner = strstr(svg, "class=\"marks\"");
        char *sign = strchr(strstr(inner, "<path d=\"M"), 'm');
        *strpbrk(sign, "M\"") = '\0';
        signs[k] = strdup(sign);
        for (int i = 0; i < k; i++)
            assert_string_not_equal(signs[i], signs[k]);
        free(svg);
    }
    for (int k = 0; k < FINI_COLOURS; k++)
        free(signs[k]);
}

static void form__escapes_what_comes_from_outside(void **state)
{
    (void)state;
    fini_page page = {NULL, 0, 0, false};
    fini_page_form(&page, "<a id=\"%1s\">%s</a>%-s 100%% %2s %f %f %g %g.", "a<b c", "<&\"'>\x01",
                   "<br>", "</script>", 1.256, -0.004, 0.5, NAN);
    fini_page_bytes(&page, "", 1);
    assert_string_equal(page.text,
                        "<a id=\"a_b_c\">&lt;&amp;&quot;&#39;&gt;\xef\xbf\xbd</a><br> 100% "
                        "\"\\u003c/script\\u003e\" 1.3 0 0.5 null.");
    fini_page_close(&page);
}

static void sort__by_x_keeps_what_belongs_together(void **state)
{
    (void)state;
    fini_figure figure;
    fini_figure_open(&figure);
    const double x[] = {3, NAN, 1, 3, 2}, y[] = {30, 0, 10, 31, 20};
    fini_curve *curve = curve_of(&figure, fini_figure_panel(&figure, ""), FINI_MARK_SOLID, 5, x, y);
    fini_curve_sort(&figure, curve);
    assert_int_equal(fini_figure_status(&figure, NULL), FIN_OK);
    const double expected[] = {10, 20, 30, 31, 0};
    assert_memory_equal(curve->y, expected, sizeof expected);
    assert_true(isnan(curve->x[4]));
    fini_figure_close(&figure);
}

/* ---- faults ---------------------------------------------------------------------------------- */

static fin_status draw_all(void *user, fin_error *err)
{
    (void)user;
    fini_figure figure;
    fini_page page = {NULL, 0, 0, false};
    fini_figure_open(&figure);
    fini_panel *panel = fini_figure_panel(&figure, "title");
    fini_curve *curve =
        panel ? fini_figure_curve(&figure, panel, "curve", FINI_MARK_SOLID, 50) : NULL;
    for (int i = 0; curve && i < 50; i++)
        curve->x[i] = curve->y[i] = 50 - i;
    fin_status status = fini_figure_status(&figure, err);
    if (!status)
        fini_curve_sort(&figure, curve);
    if (!status)
        fini_figure_note(&figure, "a note");
    if (!status)
        status = fini_figure_finish(&figure, err);
    if (!status) {
        fini_figure_svg(&figure, 432, 288, &page);
        fini_figure_csv(&figure, &page);
        fini_figure_json(&figure, &page);
        status = fini_page_status(&page, err);
    }
    fini_page_close(&page);
    fini_figure_close(&figure);
    return status;
}

static void figure__every_allocation_may_fail(void **state)
{
    (void)state;
    assert_true(fault_every(draw_all, NULL) > 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checker__finds_what_is_wrong),
        cmocka_unit_test(svg__hostile_names_are_escaped),
        cmocka_unit_test(csv__fields_are_quoted),
        cmocka_unit_test(script__cannot_be_left),
        cmocka_unit_test(svg__numbers_of_every_kind),
        cmocka_unit_test(svg__points_without_a_place_are_counted),
        cmocka_unit_test(svg__same_data_same_bytes),
        cmocka_unit_test(svg__empty_figure),
        cmocka_unit_test(svg__cells_arrows_bars),
        cmocka_unit_test(svg__arrow_has_a_head),
        cmocka_unit_test(svg__references_have_their_labels),
        cmocka_unit_test(limits__bands_near_zero_do_not_rule_a_log_axis),
        cmocka_unit_test(ticks__are_inside_and_said),
        cmocka_unit_test(ticks__of_many_decades_are_powers_of_ten),
        cmocka_unit_test(axes__labels_stand_at_their_values),
        cmocka_unit_test(svg__values_stand_at_their_lines),
        cmocka_unit_test(svg__diagonal_is_where_both_are_equal),
        cmocka_unit_test(svg__zeros_are_a_sentence),
        cmocka_unit_test(svg__every_colour_has_a_shape_of_its_own),
        cmocka_unit_test(form__escapes_what_comes_from_outside),
        cmocka_unit_test(sort__by_x_keeps_what_belongs_together),
        cmocka_unit_test(figure__every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
