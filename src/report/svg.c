/* A figure as SVG: for papers, for print, and for browsers without a script.
 *
 * Every panel is a box with the axes, and below it the legend, where it covers no data. Only
 * presentation attributes and no ids are used, so that many figures fit into one page whose content
 * security policy forbids inline styles. Coordinates have one decimal: the same figure has the
 * same bytes everywhere. */
#include "report/figure.h"
#include "report/mathml.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define INK "#1f2328"
#define SOFT "#57606a"
#define GRID "#e4e7eb"
enum { FONT = 11, SMALL = 10, LEGEND_ROW = 16, SAMPLE = 22 };

/* ---- text ----------------------------------------------------------------------------------- */

/* Width in points, by the widths of a wide sans-serif face (DejaVu Sans), so that nothing is cut off. */
static double text_width(const char *text, double size)
{
    double width = 0;
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if ((*p & 0xc0) == 0x80)
            continue; /* inside of a character */
        if (*p >= 0xe3)
            width += 1;
        else if (*p >= 0x80)
            width += 0.64;
        else if (strchr("ijl|.,:;'!()[]ft ", *p))
            width += 0.36;
        else if (strchr("mwMW@%", *p))
            width += 0.98;
        else
            width += *p >= 'A' && *p <= 'Z' ? 0.71 : 0.62;
    }
    return width * size;
}

static void text_at(fini_page *page, double x, double y, const char *anchor, int size,
                    const char *fill, const char *text)
{
    fini_page_form(page,
                   "<text x=\"%f\" y=\"%f\" text-anchor=\"%-s\" font-size=\"%f\" fill=\"%-s\">", x,
                   y, anchor, (double)size, fill);
    fini_words_svg(page, text);
    fini_page_add(page, "</text>\n");
}

static void line_at(fini_page *page, double x1, double y1, double x2, double y2, const char *stroke)
{
    fini_page_form(page, "<path d=\"M%f %fL%f %f\" stroke=\"%-s\" fill=\"none\"/>\n", x1, y1, x2,
                   y2, stroke);
}

/* ---- legend --------------------------------------------------------------------------------- */

enum { ITEMS_BELOW = 4, LABELS_MOST = 24 };

static bool in_legend(const fini_curve *c)
{
    return !c->quiet && c->label[0];
}

bool fini_panel_direct(const fini_panel *panel)
{
    int items = 0, values = 0;
    for (const fini_curve *c = panel->curves; c; c = c->next) {
        if (c->mark > FINI_MARK_POINTS)
            return false;
        items += in_legend(c) && !c->fit;
        values += c->of[0] && !c->fit;
    }
    return values > 1 || items > ITEMS_BELOW;
}

/* Is it labelled at its end? Of those of one value the first is. */
static bool at_line(const fini_panel *panel, const fini_curve *c)
{
    if (!in_legend(c) || c->fit)
        return false;
    bool some = false;
    for (const fini_curve *other = panel->curves; other; other = other->next)
        some = some || other->of[0];
    if (!some)
        return true;
    for (const fini_curve *other = panel->curves; other != c; other = other->next)
        if (other->of[0] && strcmp(other->of, c->of) == 0)
            return false;
    return c->of[0] != '\0';
}

/* What stands below although values stand at the lines: what the values have in common, once. */
static bool is_common(const fini_panel *panel, const fini_curve *c)
{
    if (!in_legend(c) || c->fit)
        return false;
    if (!c->of[0])
        return !at_line(panel, c);
    for (const fini_curve *other = panel->curves; other != c; other = other->next)
        if (other->of[0] && strcmp(other->name, c->name) == 0 && other->mark == c->mark)
            return false;
    return c->name[0] != '\0';
}

static double item_width(const char *label)
{
    return SAMPLE + 6 + text_width(label, SMALL) + 16;
}

static void open_item(fini_page *page, const char *tag, int k)
{
    fini_page_print(page, "<g class=\"%s\" data-k=\"%d\">\n", tag, k);
}

/* Draws (page NULL: only measures) the legend from (x, y) on; returns its height. */
static double legend(fini_page *page, const fini_panel *panel, double x, double y, double width)
{
    double at = 0, row = 0;
    bool any = false, direct = fini_panel_direct(panel);
    int k = 0;
    for (const fini_curve *c = panel->curves; c; c = c->next, k++) {
        if (direct ? !is_common(panel, c) : !in_legend(c))
            continue;
        const char *label = (direct && c->of[0]) || (!c->of[0] && c->name[0]) ? c->name : c->label;
        double item = item_width(label);
        if (any && at + item - 16 > width) {
            at = 0;
            row += LEGEND_ROW;
        }
        if (page) {
            fini_curve of_all = *c;
            if (direct && c->of[0]) { /* in the colour of none of them */
                of_all.colour = FINI_INK;
                of_all.shape = c->shape >= 0 ? FINI_CIRCLE : -1;
                fini_page_add(page, "<g>\n");
            } else {
                open_item(page, "item", k);
            }
            fini_svg_sample(page, &of_all, x + at + SAMPLE / 2.0, y + row + LEGEND_ROW / 2.0,
                            SAMPLE);
            text_at(page, x + at + SAMPLE + 6, y + row + LEGEND_ROW / 2.0 + 3.5, "start", SMALL,
                    INK, label);
            fini_page_add(page, "</g>\n");
        }
        any = true;
        at += item;
    }
    return any ? row + LEGEND_ROW + 4 : 0;
}

/* ---- labels at the ends of lines ------------------------------------------------------------ */

typedef struct end_label {
    const fini_curve *curve;
    int k;         /* its number in the panel */
    double x, y;   /* where the curve ends, in the box */
    double middle; /* where the label stands */
} end_label;

static void label_text(const fini_curve *c, char text[256])
{
    snprintf(text, 256, "%.120s%s%.120s", c->of[0] ? c->of : c->label, c->slope[0] ? ": " : "",
             c->slope);
}

/* Where the curve is seen last: its rightmost point. */
static bool find_end(const fini_panel *panel, const fini_curve *c, fini_box box, end_label *end)
{
    double best = -INFINITY;
    for (int64_t i = 0; i < c->count; i++) {
        if (!fini_scale_shows(&panel->x, c->x[i]) || !fini_scale_shows(&panel->y, c->y[i]))
            continue;
        double x = fini_scale_place(&panel->x, c->x[i]), y = fini_scale_place(&panel->y, c->y[i]);
        if (!(x > best && x <= 1.0001 && y >= 0 && y <= 1))
            continue;
        best = x;
        end->x = x * box.width;
        end->y = end->middle = (1 - y) * box.height;
    }
    return isfinite(best);
}

/* Sorted from the top, and pushed apart: down first, then back up from the lower edge. */
static void spread(end_label *labels, int count, double step, double height)
{
    for (int i = 1; i < count; i++)
        for (int j = i; j > 0 && labels[j - 1].middle > labels[j].middle; j--) {
            end_label t = labels[j];
            labels[j] = labels[j - 1];
            labels[j - 1] = t;
        }
    for (int i = 1; i < count; i++)
        labels[i].middle = fmax(labels[i].middle, labels[i - 1].middle + step);
    double free = height;
    for (int i = count - 1; i >= 0; i--) {
        labels[i].middle = fmin(labels[i].middle, free);
        free = labels[i].middle - step;
    }
}

static double end_room(const fini_panel *panel)
{
    double width = 0;
    char text[256];
    for (const fini_curve *c = panel->curves; c && fini_panel_direct(panel); c = c->next)
        if (at_line(panel, c)) {
            label_text(c, text);
            width = fmax(width, text_width(text, SMALL));
        }
    return width > 0 ? width + 20 : 0;
}

static void draw_ends(fini_page *page, const fini_panel *panel, fini_box box)
{
    end_label labels[LABELS_MOST];
    int count = 0, k = 0;
    for (const fini_curve *c = panel->curves; c && count < LABELS_MOST; c = c->next, k++)
        if (at_line(panel, c) && find_end(panel, c, box, &labels[count])) {
            labels[count].curve = c;
            labels[count++].k = k;
        }
    spread(labels, count, fmin(12, box.height / (count + 1)), box.height);
    for (int i = 0; i < count; i++) {
        const end_label *l = &labels[i];
        const char *colour = fini_svg_colour(l->curve->colour);
        double x = box.x + box.width + 14, y = box.y + l->middle;
        char text[256];
        label_text(l->curve, text);
        open_item(page, "item", l->k);
        fini_page_form(
            page,
            "<path d=\"M%f %fL%f %f\" stroke=\"%-s\" stroke-opacity=\"0.6\" fill=\"none\"/>\n",
            box.x + l->x + 3, box.y + l->y, x - 3, y, colour);
        text_at(page, x, y + 3.5, "start", SMALL, colour, text);
        fini_page_add(page, "</g>\n");
    }
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

/* The lines of an axis, as few paths; the script moves and drops them piece by piece. */
typedef struct axis_lines {
    fini_page grid, ticks;
} axis_lines;

static void open_axis(fini_page *page, const char *name, const char *anchor)
{
    fini_page_form(page, "<g class=\"%-s\" text-anchor=\"%-s\" font-size=\"%f\" fill=\"%-s\">\n",
                   name, anchor, (double)SMALL, SOFT);
}

static void close_axis(fini_page *page, axis_lines *lines)
{
    const struct {
        fini_page *path;
        const char *stroke;
    } paths[] = {{&lines->grid, GRID}, {&lines->ticks, SOFT}};
    for (int i = 0; i < 2; i++) {
        if (paths[i].path->size > 0) {
            fini_page_add(page, "<path d=\"");
            fini_page_bytes(page, paths[i].path->text, paths[i].path->size);
            fini_page_form(page, "\" stroke=\"%-s\" fill=\"none\"/>\n", paths[i].stroke);
        }
        page->failed = page->failed || paths[i].path->failed;
        fini_page_close(paths[i].path);
    }
    fini_page_add(page, "</g>\n");
}

static void x_axis(fini_page *page, const fini_scale *scale, fini_box box, bool grid)
{
    fini_tick ticks[FINI_TICKS];
    axis_lines lines = {{NULL, 0, 0, false}, {NULL, 0, 0, false}};
    int count = axis_ticks(scale, (int)(box.width / 62), ticks);
    double free = -INFINITY, bottom = box.y + box.height;
    open_axis(page, "x", "middle");
    for (int i = 0; i < count; i++) {
        double place = fini_scale_place(scale, ticks[i].at);
        if (!(place >= -1e-6 && place <= 1 + 1e-6))
            continue;
        double x = box.x + place * box.width, half = text_width(ticks[i].text, SMALL) / 2;
        bool major = ticks[i].text[0] != '\0';
        if (major && grid)
            fini_page_form(&lines.grid, "M%f %fL%f %f", x, box.y, x, bottom);
        fini_page_form(&lines.ticks, "M%f %fL%f %f", x, bottom, x, bottom + (major ? 4 : 2));
        if (!major || x - half < free) /* never on top of the one before */
            continue;
        fini_page_form(page, "<text x=\"%f\" y=\"%f\">%s</text>\n", x, bottom + 15, ticks[i].text);
        free = x + half + 6;
    }
    close_axis(page, &lines);
    if (scale->label[0])
        text_at(page, box.x + box.width / 2, bottom + 31, "middle", FONT, INK, scale->label);
}

static void y_axis(fini_page *page, const fini_scale *scale, fini_box box, double label_x,
                   bool grid)
{
    fini_tick ticks[FINI_TICKS];
    axis_lines lines = {{NULL, 0, 0, false}, {NULL, 0, 0, false}};
    int count = axis_ticks(scale, (int)(box.height / 38), ticks);
    double free = INFINITY;
    open_axis(page, "y", "end");
    for (int i = 0; i < count; i++) {
        double place = fini_scale_place(scale, ticks[i].at);
        if (!(place >= -1e-6 && place <= 1 + 1e-6))
            continue;
        double y = box.y + (1 - place) * box.height;
        bool major = ticks[i].text[0] != '\0';
        if (major && grid)
            fini_page_form(&lines.grid, "M%f %fL%f %f", box.x, y, box.x + box.width, y);
        fini_page_form(&lines.ticks, "M%f %fL%f %f", box.x - (major ? 4 : 2), y, box.x, y);
        if (!major || y + 6 > free)
            continue;
        fini_page_form(page, "<text x=\"%f\" y=\"%f\">%s</text>\n", box.x - 7, y + 3.5,
                       ticks[i].text);
        free = y - 6;
    }
    close_axis(page, &lines);
    if (!scale->label[0])
        return;
    fini_page_form(page, "<g transform=\"translate(%f %f) rotate(-90)\">", label_x,
                   box.y + box.height / 2);
    text_at(page, 0, 0, "middle", FONT, INK, scale->label);
    fini_page_add(page, "</g>\n");
}

/* The colours of cells and what they mean, to the right of the box. */
static void colour_bar(fini_page *page, const fini_scale *scale, fini_box box, double right)
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
        text_at(page, right, box.y - 6, "end", SMALL, INK, scale->label);
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
    m.right = fmax(m.right, fmin(end_room(panel), width * 0.5));
    return m;
}

/* A sentence where axes would show nothing. */
static void draw_sentence(fini_page *page, const fini_panel *panel, fini_box box)
{
    fini_page_form(page, "<path d=\"M%f %fh%fv%fh%fz\" fill=\"none\" stroke=\"%-s\"/>\n", box.x,
                   box.y, box.width, box.height, -box.width, GRID);
    text_at(page, box.x + box.width / 2, box.y + box.height / 2 + 4, "middle", FONT, INK,
            panel->says);
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
    if (panel->says[0]) {
        draw_sentence(page, panel, (fini_box){x + 12, box.y, width - 24, box.height});
        fini_page_add(page, "</g>\n");
        return;
    }
    x_axis(page, &panel->x, box, !panel->has_value && !panel->x.categories);
    y_axis(page, &panel->y, box, x + m.label_x, !panel->has_value);
    fini_svg_marks(page, panel, box);
    line_at(page, box.x, box.y, box.x, box.y + box.height, SOFT);
    line_at(page, box.x, box.y + box.height, box.x + box.width, box.y + box.height, SOFT);
    if (panel->has_value)
        colour_bar(page, &panel->value, box, box.x + box.width + m.right - 2);
    if (!panel->curves)
        text_at(page, box.x + box.width / 2, box.y + box.height / 2, "middle", FONT, SOFT,
                "no data");
    if (fini_panel_direct(panel))
        draw_ends(page, panel, box);
    legend(page, panel, box.x, y + height + 2, box.width + m.right - 6);
    fini_page_add(page, "</g>\n");
}

/* ---- images --------------------------------------------------------------------------------- */

enum { HEADING = 24, ROWS_MOST = 64 };

static double legend_height(const fini_panel *panel, double width, double height)
{
    margins m = measure(panel, width, height);
    return panel->says[0] ? 0 : legend(NULL, panel, 0, 0, width - m.left - 6);
}

static void open_svg(fini_page *page, double width, double height, const char *title,
                     const char *part)
{
    fini_page_form(
        page,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%f\" height=\"%f\" "
        "viewBox=\"0 0 %f %f\" role=\"img\" font-family=\"Helvetica, Arial, 'Liberation "
        "Sans', 'DejaVu Sans', sans-serif\" stroke-linejoin=\"round\">\n<title>%s%-s%s</title>\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
        width, height, width, height, title, part[0] ? ": " : "", part);
}

static const char *title_of(const fini_figure *figure)
{
    return figure->title[0] ? figure->title : figure->id;
}

int fini_figure_columns(const fini_figure *figure)
{
    return figure->columns > 0 ? figure->columns : figure->panel_count > 1 ? 2 : 1;
}

void fini_panel_svg(const fini_figure *figure, const fini_panel *panel, double width, double height,
                    fini_page *page)
{
    open_svg(page, width, height + 6 + legend_height(panel, width, height), title_of(figure),
             panel->title);
    draw_panel(page, panel, 0, 0, width, height);
    fini_page_add(page, "</svg>\n");
}

void fini_figure_svg(const fini_figure *figure, double width, double height, fini_page *page)
{
    int columns = fini_figure_columns(figure);
    int rows = (figure->panel_count + columns - 1) / columns;
    double heights[ROWS_MOST], top = figure->heading[0] ? HEADING : 0, total = top;
    const fini_panel *p = figure->panels;
    for (int r = 0; r < rows && r < ROWS_MOST; r++) {
        heights[r] = 0;
        for (int c = 0; c < columns && p; c++, p = p->next)
            heights[r] = fmax(heights[r], legend_height(p, width, height));
        heights[r] += height + 6;
        total += heights[r];
    }
    open_svg(page, columns * width, total, title_of(figure), "");
    if (figure->heading[0])
        text_at(page, 12, 18, "start", FONT + 3, INK, figure->heading);
    p = figure->panels;
    for (int r = 0; r < rows && r < ROWS_MOST; r++) {
        for (int c = 0; c < columns && p; c++, p = p->next)
            draw_panel(page, p, c * width, top, width, height);
        top += heights[r];
    }
    fini_page_add(page, "</svg>\n");
}
