/* A figure as SVG: for papers, for print, and for browsers without a script.
 *
 * Every panel is a box with the axes, and below it the legend, where it covers no data. Only
 * presentation attributes and no ids are used, so that many figures fit into one page whose content
 * security policy forbids inline styles. Coordinates have two decimals: the same figure has the
 * same bytes everywhere. */
#include "report/figure.h"

#include <math.h>
#include <string.h>

#define INK "#1f2328"
#define SOFT "#57606a"
#define GRID "#e4e7eb"
enum { FONT = 11, SMALL = 10, LEGEND_ROW = 16, SAMPLE = 22 };

/* ---- text ----------------------------------------------------------------------------------- */

/* Width in points, by the widths of a common sans-serif face: good to a tenth. */
static double text_width(const char *text, double size)
{
    double width = 0;
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if ((*p & 0xc0) == 0x80)
            continue; /* inside of a character */
        if (*p >= 0xe3)
            width += 1;
        else if (*p >= 0x80)
            width += 0.58;
        else if (strchr("ijl|.,:;'!()[]ft ", *p))
            width += 0.32;
        else if (strchr("mwMW@%", *p))
            width += 0.88;
        else
            width += *p >= 'A' && *p <= 'Z' ? 0.68 : 0.57;
    }
    return width * size;
}

static void text_at(fini_page *page, double x, double y, const char *anchor, int size,
                    const char *fill, const char *text)
{
    fini_page_form(page,
                   "<text x=\"%f\" y=\"%f\" text-anchor=\"%-s\" font-size=\"%f\" fill=\"%-s\">"
                   "%s</text>\n",
                   x, y, anchor, (double)size, fill, text);
}

static void line_at(fini_page *page, double x1, double y1, double x2, double y2, const char *stroke)
{
    fini_page_form(page, "<path d=\"M%f %fL%f %f\" stroke=\"%-s\" fill=\"none\"/>\n", x1, y1, x2,
                   y2, stroke);
}

/* ---- legend --------------------------------------------------------------------------------- */

static double item_width(const char *label)
{
    return SAMPLE + 6 + text_width(label, SMALL) + 16;
}

/* Draws (page NULL: only measures) the legend from (x, y) on; returns its height. */
static double legend(fini_page *page, const fini_panel *panel, double x, double y, double width)
{
    double at = 0, row = 0;
    bool any = false;
    for (const fini_curve *c = panel->curves; c; c = c->next) {
        if (c->quiet || !c->label[0])
            continue;
        double item = item_width(c->label);
        if (any && at + item - 16 > width) {
            at = 0;
            row += LEGEND_ROW;
        }
        if (page) {
            fini_svg_sample(page, c, x + at + SAMPLE / 2.0, y + row + LEGEND_ROW / 2.0, SAMPLE);
            text_at(page, x + at + SAMPLE + 6, y + row + LEGEND_ROW / 2.0 + 3.5, "start", SMALL,
                    INK, c->label);
        }
        any = true;
        at += item;
    }
    return any ? row + LEGEND_ROW + 4 : 0;
}

/* ---- axes ----------------------------------------------------------------------------------- */

/* Ticks of either kind of axis: categories have one each. */
static int axis_ticks(const fini_scale *scale, int wanted, fini_tick ticks[FINI_TICKS])
{
    if (scale->categories == 0)
        return fini_ticks(scale, wanted, ticks);
    int count = scale->categories < FINI_TICKS ? scale->categories : FINI_TICKS;
    for (int i = 0; i < count; i++) {
        ticks[i].at = i;
        size_t length = strlen(scale->category[i]), room = FINI_TICK_TEXT - 1;
        length = length < room ? length : room;
        while (length > 0 && length == room && (scale->category[i][length] & 0xc0) == 0x80)
            length--; /* not through a character */
        memcpy(ticks[i].text, scale->category[i], length);
        ticks[i].text[length] = '\0';
    }
    return count;
}

static double widest(const fini_tick *ticks, int count)
{
    double width = 0;
    for (int i = 0; i < count; i++)
        width = fmax(width, text_width(ticks[i].text, SMALL));
    return width;
}

static void x_axis(fini_page *page, const fini_scale *scale, fini_box box, bool grid)
{
    fini_tick ticks[FINI_TICKS];
    int count = axis_ticks(scale, (int)(box.width / 62), ticks);
    double free = -INFINITY, bottom = box.y + box.height;
    for (int i = 0; i < count; i++) {
        double place = fini_scale_place(scale, ticks[i].at);
        if (!(place >= -1e-6 && place <= 1 + 1e-6))
            continue;
        double x = box.x + place * box.width, half = text_width(ticks[i].text, SMALL) / 2;
        bool major = ticks[i].text[0] != '\0';
        if (major && grid)
            line_at(page, x, box.y, x, bottom, GRID);
        line_at(page, x, bottom, x, bottom + (major ? 4 : 2), SOFT);
        if (!major || x - half < free) /* never on top of the one before */
            continue;
        text_at(page, x, bottom + 15, "middle", SMALL, SOFT, ticks[i].text);
        free = x + half + 6;
    }
    if (scale->label[0])
        text_at(page, box.x + box.width / 2, bottom + 31, "middle", FONT, INK, scale->label);
}

static void y_axis(fini_page *page, const fini_scale *scale, fini_box box, double label_x,
                   bool grid)
{
    fini_tick ticks[FINI_TICKS];
    int count = axis_ticks(scale, (int)(box.height / 38), ticks);
    double free = INFINITY;
    for (int i = 0; i < count; i++) {
        double place = fini_scale_place(scale, ticks[i].at);
        if (!(place >= -1e-6 && place <= 1 + 1e-6))
            continue;
        double y = box.y + (1 - place) * box.height;
        bool major = ticks[i].text[0] != '\0';
        if (major && grid)
            line_at(page, box.x, y, box.x + box.width, y, GRID);
        line_at(page, box.x - (major ? 4 : 2), y, box.x, y, SOFT);
        if (!major || y + 6 > free)
            continue;
        text_at(page, box.x - 7, y + 3.5, "end", SMALL, SOFT, ticks[i].text);
        free = y - 6;
    }
    if (!scale->label[0])
        return;
    fini_page_form(page, "<g transform=\"translate(%f %f) rotate(-90)\">", label_x,
                   box.y + box.height / 2);
    text_at(page, 0, 0, "middle", FONT, INK, scale->label);
    fini_page_add(page, "</g>\n");
}

/* The colours of cells and what they mean, to the right of the box. */
static void colour_bar(fini_page *page, const fini_scale *scale, fini_box box)
{
    enum { STEPS = 64 };
    double x = box.x + box.width + 10, step = box.height / STEPS;
    for (int i = 0; i < STEPS; i++) {
        char colour[8];
        fini_svg_heat((i + 0.5) / STEPS, colour);
        fini_page_form(page, "<path d=\"M%f %fh10v%fh-10z\" fill=\"%-s\"/>\n", x,
                       box.y + box.height - (i + 1) * step, step + 0.3, colour);
    }
    fini_tick ticks[FINI_TICKS];
    int count = axis_ticks(scale, (int)(box.height / 38), ticks);
    for (int i = 0; i < count; i++) {
        double y = box.y + (1 - fini_scale_place(scale, ticks[i].at)) * box.height;
        if (ticks[i].text[0])
            text_at(page, x + 14, y + 3.5, "start", SMALL, SOFT, ticks[i].text);
    }
    if (scale->label[0])
        text_at(page, x - 2, box.y - 6, "start", SMALL, INK, scale->label);
}

/* ---- panels --------------------------------------------------------------------------------- */

typedef struct frame {
    double left, right, top, bottom; /* around the box */
    double label_x;                  /* of the y label, from the panel's left side */
} margins;

static margins measure(const fini_panel *panel, double width, double height)
{
    fini_tick ticks[FINI_TICKS];
    margins m = {0, 14, panel->title[0] || panel->has_value ? 26 : 12, 24, 12};
    double ys = widest(ticks, axis_ticks(&panel->y, (int)(height / 46), ticks));
    m.left = fmin(ys, width / 3) + 10 + (panel->y.label[0] ? 18 : 4);
    if (panel->x.label[0])
        m.bottom += 14;
    if (panel->has_value)
        m.right = 32 + widest(ticks, axis_ticks(&panel->value, (int)(height / 46), ticks));
    return m;
}

static void draw_panel(fini_page *page, const fini_panel *panel, double x, double y, double width,
                       double height)
{
    margins m = measure(panel, width, height);
    fini_box box = {x + m.left, y + m.top, width - m.left - m.right, height - m.top - m.bottom};
    box.width = fmax(box.width, 20);
    box.height = fmax(box.height, 20);
    fini_page_add(page, "<g>\n");
    if (panel->title[0])
        text_at(page, box.x, y + 14, "start", FONT + 1, INK, panel->title);
    x_axis(page, &panel->x, box, !panel->has_value && !panel->x.categories);
    y_axis(page, &panel->y, box, x + m.label_x, !panel->has_value);
    fini_svg_marks(page, panel, box);
    line_at(page, box.x, box.y, box.x, box.y + box.height, SOFT);
    line_at(page, box.x, box.y + box.height, box.x + box.width, box.y + box.height, SOFT);
    if (panel->has_value)
        colour_bar(page, &panel->value, box);
    if (!panel->curves)
        text_at(page, box.x + box.width / 2, box.y + box.height / 2, "middle", FONT, SOFT,
                "no data");
    legend(page, panel, box.x, y + height + 2, box.width + m.right - 6);
    fini_page_add(page, "</g>\n");
}

enum { HEADING = 24 };

void fini_figure_svg(const fini_figure *figure, double width, double height, fini_page *page)
{
    int columns = figure->panel_count > 1 ? 2 : 1;
    int rows = (figure->panel_count + columns - 1) / columns;
    double heights[64], top = figure->heading[0] ? HEADING : 0, total = top;
    const fini_panel *p = figure->panels;
    for (int r = 0; r < rows && r < 64; r++) {
        heights[r] = 0;
        for (int c = 0; c < columns && p; c++, p = p->next) {
            margins m = measure(p, width, height);
            heights[r] = fmax(heights[r], legend(NULL, p, 0, 0, width - m.left - 6));
        }
        heights[r] += height + 6;
        total += heights[r];
    }
    fini_page_form(
        page,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%f\" height=\"%f\" "
        "viewBox=\"0 0 %f %f\" role=\"img\" font-family=\"Helvetica, Arial, 'Liberation "
        "Sans', 'DejaVu Sans', sans-serif\" stroke-linejoin=\"round\">\n<title>%s</title>\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
        columns * width, total, columns * width, total,
        figure->title[0] ? figure->title : figure->id);
    if (figure->heading[0])
        text_at(page, 12, 18, "start", FONT + 3, INK, figure->heading);
    p = figure->panels;
    for (int r = 0; r < rows && r < 64; r++) {
        for (int c = 0; c < columns && p; c++, p = p->next)
            draw_panel(page, p, c * width, top, width, height);
        top += heights[r];
    }
    fini_page_add(page, "</svg>\n");
}
