/* The curves of a panel as SVG. They stand in an <svg> of their own that is as large as the box of
 * the axes: what lies outside is clipped, without ids.
 *
 * A colour is never the only sign: curves differ in dashes and in the shape of their points too. */
#include "report/figure.h"
#include "report/mathml.h"

#include <math.h>
#include <stdio.h>

/* After Okabe and Ito: told apart with any kind of colour vision. In the dark report.css puts others in place of them. */
static const char *const palette[FINI_COLOURS] = {"#0072b2", "#d55e00", "#009e73", "#aa4499",
                                                  "#b8860b", "#56b4e9", "#6e4b3a"};

const char *fini_svg_colour(int colour)
{
    return colour < 0 ? "#1f2328" : palette[colour % FINI_COLOURS];
}

/* Nine places of "viridis" (van der Walt, Smith), straight between them: dark to light in equal
 * steps of lightness. */
void fini_svg_heat(double place, char text[8])
{
    static const unsigned char stops[9][3] = {
        {0x44, 0x01, 0x54}, {0x47, 0x2d, 0x7b}, {0x3b, 0x52, 0x8b},
        {0x2c, 0x72, 0x8e}, {0x21, 0x91, 0x8c}, {0x28, 0xae, 0x80},
        {0x5e, 0xc9, 0x62}, {0xad, 0xdc, 0x30}, {0xfd, 0xe7, 0x25}};
    double at = place >= 0 ? fmin(place, 1) * 8 : 0; /* NaN too */
    int k = at < 8 ? (int)at : 7;
    double part = at - k;
    unsigned rgb[3];
    for (int i = 0; i < 3; i++)
        rgb[i] = (unsigned)lround(stops[k][i] + part * (stops[k + 1][i] - stops[k][i])) & 0xff;
    snprintf(text, 8, "#%02x%02x%02x", rgb[0], rgb[1], rgb[2]);
}

static void pair(fini_page *page, const char *before, double x, double y)
{
    fini_page_form(page, "%-s%f %f", before, x, y);
}

static const char *dashes(fini_mark mark)
{
    return mark == FINI_MARK_DASHED   ? " stroke-dasharray=\"6 4\""
           : mark == FINI_MARK_DOTTED ? " stroke-dasharray=\"1.5 3\""
                                      : "";
}

/* ---- places in the box ---------------------------------------------------------------------- */

/* Far outside is as good as just outside: keeps coordinates small. */
static double limited(double place)
{
    return place < -2 ? -2 : place > 3 ? 3 : place;
}

static double x_place(const fini_panel *panel, fini_box box, double x)
{
    return limited(fini_scale_place(&panel->x, x)) * box.width;
}

static double y_place(const fini_panel *panel, fini_box box, double y)
{
    if (panel->y.log && !(y >= panel->y.low)) /* of a band that reaches 0 */
        return box.height * 1.1;
    return (1 - limited(fini_scale_place(&panel->y, y))) * box.height;
}

static bool shown(const fini_panel *panel, const fini_curve *c, int64_t i)
{
    return fini_scale_shows(&panel->x, c->x[i]) && fini_scale_shows(&panel->y, c->y[i]);
}

/* ---- points --------------------------------------------------------------------------------- */

/* From the middle on in relative steps, so that whoever zooms has to move the middle alone. */
static void shape_path(fini_page *page, int shape, double x, double y, double r)
{
    fini_page_form(page, "M%f %f", x, y);
    switch (shape) {
    case FINI_SQUARE:
        fini_page_form(page, "m%f %fh%fv%fh%fz", -0.85 * r, -0.85 * r, 1.7 * r, 1.7 * r, -1.7 * r);
        break;
    case FINI_TRIANGLE:
        fini_page_form(page, "m0 %fl%f %fh%fz", -1.15 * r, r, 1.9 * r, -2 * r);
        break;
    case FINI_DOWN:
        fini_page_form(page, "m0 %fl%f %fh%fz", 1.15 * r, r, -1.9 * r, -2 * r);
        break;
    case FINI_DIAMOND:
        fini_page_form(page, "m0 %fl%f %fl%f %fl%f %fz", -1.25 * r, 1.1 * r, 1.25 * r, -1.1 * r,
                       1.25 * r, -1.1 * r, -1.25 * r);
        break;
    case FINI_PLUS:
        fini_page_form(page, "m0 %fv%fm%f %fh%f", -1.2 * r, 2.4 * r, -1.2 * r, -1.2 * r, 2.4 * r);
        break;
    case FINI_CROSS:
        fini_page_form(page, "m%f %fl%f %fm0 %fl%f %f", -r, -r, 2 * r, 2 * r, -2 * r, -2 * r,
                       2 * r);
        break;
    default:
        fini_page_form(page, "m%f 0a%f %f 0 1 0 %f 0a%f %f 0 1 0 %f 0", -r, r, r, 2 * r, r, r,
                       -2 * r);
    }
}

/* Their edge is drawn below all of them, so that points that overlap do not hide each other. */
static void shape_end(fini_page *page, const fini_curve *c)
{
    const char *colour = fini_svg_colour(c->colour);
    if (c->shape == FINI_CROSS || c->shape == FINI_PLUS)
        fini_page_print(page, "\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"/>\n", colour);
    else
        fini_page_print(page,
                        "\" fill=\"%s\" stroke=\"#fff\" stroke-width=\"1.6\" "
                        "paint-order=\"stroke\"/>\n",
                        colour);
}

static double radius(const fini_curve *c)
{
    return c->mark != FINI_MARK_POINTS ? 2.6 : c->count > 400 ? 1.6 : c->count > 100 ? 2.4 : 3.4;
}

static void draw_points(fini_page *page, const fini_panel *panel, const fini_curve *c, fini_box box)
{
    bool any = false;
    for (int64_t i = 0; i < c->count; i++) {
        if (!shown(panel, c, i))
            continue;
        fini_page_add(page, any ? "" : "<path d=\"");
        any = true;
        shape_path(page, c->shape, x_place(panel, box, c->x[i]), y_place(panel, box, c->y[i]),
                   radius(c));
    }
    if (any)
        shape_end(page, c);
}

/* An interval around every point. */
static void draw_whiskers(fini_page *page, const fini_panel *panel, const fini_curve *c,
                          fini_box box)
{
    bool any = false;
    for (int64_t i = 0; i < c->count; i++) {
        if (!shown(panel, c, i) || isnan(c->low[i]) || isnan(c->high[i]))
            continue;
        fini_page_add(page, any ? "" : "<path d=\"");
        any = true;
        double x = x_place(panel, box, c->x[i]);
        pair(page, "M", x, y_place(panel, box, c->low[i]));
        pair(page, "L", x, y_place(panel, box, c->high[i]));
    }
    if (any)
        fini_page_print(page, "\" stroke=\"%s\" stroke-width=\"1.2\" fill=\"none\"/>\n",
                        fini_svg_colour(c->colour));
}

/* ---- lines and bands ------------------------------------------------------------------------ */

static void draw_band(fini_page *page, const fini_panel *panel, const fini_curve *c, fini_box box)
{
    for (int64_t from = 0; from < c->count;) {
        int64_t to = from; /* a piece without gaps */
        while (to < c->count && shown(panel, c, to) && !isnan(c->low[to]) && !isnan(c->high[to]))
            to++;
        if (to - from > 1) {
            for (int64_t i = from; i < to; i++)
                pair(page, i == from ? "<path d=\"M" : "L", x_place(panel, box, c->x[i]),
                     y_place(panel, box, c->high[i]));
            for (int64_t i = to - 1; i >= from; i--)
                pair(page, "L", x_place(panel, box, c->x[i]), y_place(panel, box, c->low[i]));
            fini_page_print(page, "z\" fill=\"%s\" fill-opacity=\"0.18\"/>\n",
                            fini_svg_colour(c->colour));
        }
        from = to > from ? to : from + 1;
    }
}

/* Points that no eye can tell from the last one drawn are left out. */
static void draw_line(fini_page *page, const fini_panel *panel, const fini_curve *c, fini_box box)
{
    bool any = false, pen = false;
    double last_x = 0, last_y = 0;
    for (int64_t i = 0; i < c->count; i++) {
        if (!shown(panel, c, i)) {
            pen = false;
            continue;
        }
        double x = x_place(panel, box, c->x[i]), y = y_place(panel, box, c->y[i]);
        bool end = i + 1 == c->count || !shown(panel, c, i + 1);
        if (pen && !end && fabs(x - last_x) < 0.4 && fabs(y - last_y) < 0.4)
            continue;
        fini_page_add(page, any ? "" : "<path d=\"");
        pair(page, pen ? "L" : "M", x, y);
        any = pen = true;
        last_x = x;
        last_y = y;
    }
    if (any)
        fini_page_print(page, "\" stroke=\"%s\" stroke-width=\"%s\"%s fill=\"none\"/>\n",
                        fini_svg_colour(c->colour), c->thin ? "1" : "1.8", dashes(c->mark));
}

/* ---- bars, cells, arrows -------------------------------------------------------------------- */

static void draw_bars(fini_page *page, const fini_panel *panel, const fini_curve *c, fini_box box)
{
    for (int64_t i = 0; i < c->count; i++) {
        if (!shown(panel, c, i) || !c->low || isnan(c->low[i]) || isnan(c->high[i]))
            continue;
        double left = x_place(panel, box, c->x[i] - 0.35);
        double right = x_place(panel, box, c->x[i] + 0.35);
        double top = y_place(panel, box, c->high[i]), bottom = y_place(panel, box, c->low[i]);
        fini_page_form(page,
                       "<path d=\"M%f %fL%f %fL%f %fL%f %fz\" fill=\"%-s\" stroke=\"#fff\" "
                       "stroke-width=\"0.8\"/>\n",
                       left, bottom, left, top, right, top, right, bottom,
                       fini_svg_colour(c->colour));
    }
}

enum { LEVELS = 64 };

static int level(const fini_panel *panel, double value)
{
    if (!fini_scale_shows(&panel->value, value))
        return -1;
    double place = fini_scale_place(&panel->value, value);
    return place >= 1 ? LEVELS - 1 : place > 0 ? (int)(place * LEVELS) : 0;
}

/* One path per colour; neighbours of one colour in a column are one piece. */
static void draw_cells(fini_page *page, const fini_panel *panel, const fini_curve *c, fini_box box)
{
    for (int k = 0; k < LEVELS; k++) {
        bool any = false;
        for (int64_t i = 0; i < c->columns; i++) {
            double left =
                x_place(panel, box, fini_cell_edge(&panel->x, c->x, c->rows, c->columns, i));
            double right =
                x_place(panel, box, fini_cell_edge(&panel->x, c->x, c->rows, c->columns, i + 1));
            const double *value = c->value + i * c->rows;
            for (int64_t j = 0; j < c->rows; j++) {
                if (level(panel, value[j]) != k)
                    continue;
                int64_t from = j;
                while (j + 1 < c->rows && level(panel, value[j + 1]) == k)
                    j++;
                double low = y_place(panel, box, fini_cell_edge(&panel->y, c->y, 1, c->rows, from));
                double high =
                    y_place(panel, box, fini_cell_edge(&panel->y, c->y, 1, c->rows, j + 1));
                /* A little larger, so that no light shines through between two. */
                fini_page_form(page, "%-sM%f %fH%fV%fH%fz", any ? "" : "<path d=\"", left, low,
                               right + 0.3, high - 0.3, left);
                any = true;
            }
        }
        char colour[8];
        fini_svg_heat((k + 0.5) / LEVELS, colour);
        if (any)
            fini_page_print(page, "\" fill=\"%s\"/>\n", colour);
    }
}

static void draw_arrows(fini_page *page, const fini_panel *panel, const fini_curve *c, fini_box box)
{
    bool any = false;
    double reach = 0.5 * fmin(box.width, box.height) / sqrt((double)c->count + 1);
    for (int64_t i = 0; i < c->count; i++) {
        double size = hypot(c->dx[i], c->dy[i]);
        if (!shown(panel, c, i) || !(size > 0) || !isfinite(size))
            continue;
        double x = x_place(panel, box, c->x[i]), y = y_place(panel, box, c->y[i]);
        double u = c->dx[i] * reach, v = -c->dy[i] * reach;
        double head = 0.35;
        pair(page, any ? "M" : "<path d=\"M", x - u, y - v);
        pair(page, "L", x + u, y + v);
        pair(page, "M", x + u - head * (2 * u - v), y + v - head * (2 * v + u));
        pair(page, "L", x + u, y + v);
        pair(page, "L", x + u - head * (2 * u + v), y + v - head * (2 * v - u));
        any = true;
    }
    if (any)
        fini_page_add(page, "\" stroke=\"white\" stroke-opacity=\"0.75\" stroke-width=\"0.9\" "
                            "fill=\"none\"/>\n");
}

/* ---- all of them ---------------------------------------------------------------------------- */

static void draw_reference(fini_page *page, const fini_panel *panel, const fini_reference *r,
                           fini_box box)
{
    bool across = r->where == FINI_AT_Y;
    if (r->where == FINI_DIAGONAL) {
        double low = fmax(panel->x.low, panel->y.low), high = fmin(panel->x.high, panel->y.high);
        pair(page, "<path d=\"M", x_place(panel, box, low), y_place(panel, box, low));
        pair(page, "L", x_place(panel, box, high), y_place(panel, box, high));
    } else if (!fini_scale_shows(across ? &panel->y : &panel->x, r->at)) {
        return;
    } else {
        double at = across ? y_place(panel, box, r->at) : x_place(panel, box, r->at);
        pair(page, "<path d=\"M", across ? 0 : at, across ? at : 0);
        pair(page, "L", across ? box.width : at, across ? at : box.height);
    }
    fini_page_add(page, "\" stroke=\"#57606a\" stroke-width=\"1\" stroke-dasharray=\"3 3\" "
                        "fill=\"none\"/>\n");
}

/* At the right end of a line across, at the top of an upright one, above the diagonal; on top of
 * everything else, with a light edge. */
static void label_reference(fini_page *page, const fini_panel *panel, const fini_reference *r,
                            fini_box box)
{
    const fini_scale *scale = r->where == FINI_AT_Y ? &panel->y : &panel->x;
    if (!r->label[0] || (r->where != FINI_DIAGONAL && !fini_scale_shows(scale, r->at)))
        return;
    double x = 0.84 * box.width, y = 0.16 * box.height - 6; /* above the diagonal */
    bool start = false;
    if (r->where == FINI_AT_Y) {
        double at = y_place(panel, box, r->at);
        x = box.width - 6;
        y = at > 16 ? at - 4 : at + 12;
    } else if (r->where == FINI_AT_X) {
        double at = x_place(panel, box, r->at);
        start = at <= box.width * 0.8;
        x = start ? at + 4 : at - 4;
        y = 11;
    }
    fini_page_form(page,
                   "<text x=\"%f\" y=\"%f\" text-anchor=\"%-s\" font-size=\"9\" "
                   "fill=\"#57606a\" stroke=\"#fff\" stroke-width=\"2.5\" "
                   "paint-order=\"stroke\">",
                   x, y, start ? "start" : "end");
    fini_words_svg(page, r->label);
    fini_page_add(page, "</text>\n");
}

static void draw_curve(fini_page *page, const fini_panel *panel, const fini_curve *c, fini_box box)
{
    switch (c->mark) {
    case FINI_MARK_BARS:
        draw_bars(page, panel, c, box);
        break;
    case FINI_MARK_CELLS:
        draw_cells(page, panel, c, box);
        break;
    case FINI_MARK_ARROWS:
        draw_arrows(page, panel, c, box);
        break;
    case FINI_MARK_POINTS:
        if (c->low)
            draw_whiskers(page, panel, c, box);
        draw_points(page, panel, c, box);
        break;
    default:
        draw_line(page, panel, c, box);
        if (c->shape >= 0)
            draw_points(page, panel, c, box);
    }
}

/* Band or cells below (under), all else above what the references draw. */
static void draw_layer(fini_page *page, const fini_panel *panel, fini_box box, bool under)
{
    int k = 0;
    for (const fini_curve *c = panel->curves; c; c = c->next, k++) {
        bool band = c->low && c->high && c->mark < FINI_MARK_POINTS,
             cells = c->mark == FINI_MARK_CELLS;
        if (under ? !band && !cells : cells)
            continue;
        fini_page_print(page, "<g data-k=\"%d\">\n", k);
        if (under && band)
            draw_band(page, panel, c, box);
        else
            draw_curve(page, panel, c, box);
        fini_page_add(page, "</g>\n");
    }
}

void fini_svg_marks(fini_page *page, const fini_panel *panel, fini_box box)
{
    fini_page_form(
        page,
        "<svg class=\"marks\" x=\"%f\" y=\"%f\" width=\"%f\" height=\"%f\" overflow=\"hidden\">\n",
        box.x, box.y, box.width, box.height);
    draw_layer(page, panel, box, true);
    for (const fini_reference *r = panel->references; r; r = r->next)
        draw_reference(page, panel, r, box);
    draw_layer(page, panel, box, false);
    for (const fini_reference *r = panel->references; r; r = r->next)
        label_reference(page, panel, r, box);
    fini_page_add(page, "</svg>\n");
}

void fini_svg_sample(fini_page *page, const fini_curve *c, double x, double y, double width)
{
    const char *colour = fini_svg_colour(c->colour);
    if (c->mark == FINI_MARK_BARS) {
        fini_page_form(page, "<path d=\"M%f %fh10v10h-10z\" fill=\"%-s\"/>\n", x - 5, y - 5,
                       colour);
        return;
    }
    if (c->low && c->mark < FINI_MARK_POINTS)
        fini_page_form(page, "<path d=\"M%f %fh%fv10h%fz\" fill=\"%-s\" fill-opacity=\"%-s\"/>\n",
                       x - width / 2, y - 5, width, -width, colour, c->inner ? "0.4" : "0.18");
    if (c->mark < FINI_MARK_POINTS)
        fini_page_form(
            page, "<path d=\"M%f %fh%f\" stroke=\"%-s\" stroke-width=\"%-s\"%-s fill=\"none\"/>\n",
            x - width / 2, y, width, colour, c->thin ? "1" : "1.8", dashes(c->mark));
    if (c->shape >= 0) {
        fini_page_add(page, "<path d=\"");
        shape_path(page, c->shape, x, y, c->mark == FINI_MARK_POINTS ? 3.4 : 2.6);
        shape_end(page, c);
    }
}
