/* Images as sets of square patches, as a vision transformer sees them:
 *
 *     token t = (t / across, t % across), with across = columns / patch patches in a row of patches;
 *     its value j is the pixel (t / across * patch + j / patch, t % across * patch + j % patch)
 *     its key: which row of patches and which place in it, both one-hot
 *
 * A patch that knows its place is a token of an exchangeable sequence: the encoder needs no
 * positions, a hidden patch still shows where it is, and some can be left out. Only the map from
 * numbers of tokens to pixels is made here; reading, scaling and copying are those of bags
 * (token_set_read.c). */
#include "data/token_set.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Pixels from top to bottom: as asked for, as the array has them, or the root of their number. */
static fin_status find_height(const fin_bag_set *bags, const fin_token_source *source,
                              int64_t *height, fin_error *err)
{
    const char *file = source->bags.path;
    int64_t pixels = fin_bag_set_bags(bags)->d, root = (int64_t)(sqrt((double)pixels) + 0.5);
    if (bags->axes > 3)
        return fini_fail(
            err, FIN_ERR_UNSUPPORTED,
            "%.200s: the images have %d axes; an array (images, rows, columns) of grey "
            "images is read",
            file, bags->axes);
    bool whole = bags->height > 0 && pixels % bags->height == 0; /* features may leave some out */
    *height = source->rows > 0 ? source->rows : whole ? bags->height : root;
    if (*height > pixels || pixels % *height)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "%.200s: an image has %lld pixels, which do not make %lld rows of equal "
                         "length%s",
                         file, (long long)pixels, (long long)*height,
                         source->rows > 0 ? ""
                                          : "; say how many rows it has (--rows), or which columns "
                                            "are pixels (--columns)");
    if (source->rows == 0 && !whole && root * root != pixels)
        return fini_fail(
            err, FIN_ERR_FORMAT,
            "%.200s: an image has %lld pixels, which make no square; say how many rows "
            "it has (--rows), or which columns are pixels (--columns)",
            file, (long long)pixels);
    return FIN_OK;
}

fin_status fini_images_map(const fin_bag_set *bags, const fin_token_source *source,
                           fini_token_map *map, fin_error *err)
{
    int64_t pixels = fin_bag_set_bags(bags)->d, patch = source->patch, height = 0;
    FINI_TRY(find_height(bags, source, &height, err));
    int64_t width = pixels / height;
    if (patch > height || patch > width || height % patch || width % patch)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%.200s: patches of %lld x %lld pixels do not tile images of %lld x %lld; "
                         "a side that divides both is needed (4 for 28 x 28, 2 for 8 x 8)",
                         source->bags.path, (long long)patch, (long long)patch, (long long)height,
                         (long long)width);
    int64_t across = width / patch, size = patch * patch, tokens = pixels / size, cells;
    int64_t keys = height / patch + across, inputs = keys + size;
    if (__builtin_mul_overflow(tokens, inputs, &cells))
        cells = -1; /* which is not allocated */
    *map = (fini_token_map){.tokens = tokens,
                            .inputs = inputs,
                            .values = size,
                            .across = across,
                            .at = fini_alloc_array(cells, sizeof *map->at)};
    if (!map->at)
        return fini_fail_memory(err, (size_t)cells * sizeof *map->at, "patches");
    for (int64_t t = 0; t < tokens; t++) {
        int64_t *at = map->at + t * inputs;
        for (int64_t k = 0; k < keys; k++)
            at[k] = FINI_TOKEN_ZERO;
        at[t / across] = at[height / patch + t % across] = FINI_TOKEN_ONE;
        for (int64_t j = 0; j < size; j++)
            at[keys + j] =
                (t / across * patch + j / patch) * width + t % across * patch + j % patch;
    }
    return FIN_OK;
}

/* ---- pictures --------------------------------------------------------------------------------- */

/* Grey images to an SVG file: one rectangle for every run of pixels of the same grey in a row of an
 * image, so that a dark background costs little. Whole or absent, as all files here. */

enum { CELL = 120, GAP = 8, HIDDEN = -1 }; /* sizes in points of the picture */

typedef struct picture {
    const fin_images *of;
    double side; /* of a pixel in the picture */
    fini_output *output;
} picture;

static int grey(const picture *p, double x)
{
    if (isnan(x))
        return HIDDEN;
    double low = p->of->low, high = p->of->high;
    double share = high > low ? (x - low) / (high - low) : 0.5;
    return (int)lround(255 * fmin(fmax(share, 0), 1));
}

/* A number without trailing zeros, in the C locale. */
static const char *place(double x, char text[32])
{
    fini_print_double(round(1e4 * x) / 1e4, 8, text, 32);
    return text;
}

static fin_status draw_run(const picture *p, double x, double y, double width, int shade,
                           fin_error *err)
{
    char text[256], number[4][32], color[8] = "#9db7d5";
    if (shade != HIDDEN)
        snprintf(color, sizeof color, "#%02x%02x%02x", shade & 255, shade & 255, shade & 255);
    int length = snprintf(text, sizeof text,
                          "<rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" fill=\"%s\"/>\n",
                          place(x, number[0]), place(y, number[1]), place(width, number[2]),
                          place(p->side, number[3]), color);
    return fini_output_write(p->output, text, (size_t)length, err);
}

static fin_status draw_image(const picture *p, const double *x, double left, double top,
                             fin_error *err)
{
    fin_status status = FIN_OK;
    int64_t width = p->of->width;
    for (int64_t r = 0; r < p->of->height; r++)
        for (int64_t c = 0, end; c < width && !status; c = end) {
            int shade = grey(p, x[r * width + c]);
            for (end = c + 1; end < width && grey(p, x[r * width + end]) == shade; end++)
                ;
            status = draw_run(p, left + p->side * (double)c, top + p->side * (double)r,
                              p->side * (double)(end - c), shade, err);
        }
    return status;
}

fin_status fin_images_write(const char *path, const char *title, const fin_images *images,
                            fin_error *err)
{
    FINI_NEED(err, path, title, images, images && images->pixels);
    enum { MOST = 1000 };
    int64_t rows = images->rows, count = images->count;
    int64_t height = images->height, width = images->width;
    char head[512], *tail = "</svg>\n";
    if (rows < 1 || rows > MOST || count < 1 || count > MOST || height < 1 || width < 1 ||
        !(isfinite(images->low) && isfinite(images->high)) || strpbrk(title, "<&"))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "a picture of %lld x %lld images of %lld x %lld pixels cannot be drawn; "
                         "from 1 to %d are, with a title without < and &",
                         (long long)rows, (long long)count, (long long)height, (long long)width,
                         MOST);
    picture p = {images, (double)CELL / (double)(height > width ? height : width), NULL};
    FINI_TRY(fini_output_open(path, false, &p.output, err));
    int length = snprintf(head, sizeof head,
                          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%lld\" "
                          "height=\"%lld\" shape-rendering=\"crispEdges\">\n<title>%.200s</title>\n"
                          "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
                          (long long)(GAP + count * (CELL + GAP)),
                          (long long)(GAP + rows * (CELL + GAP)), title);
    fin_status status = fini_output_write(p.output, head, (size_t)length, err);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < count && !status; i++)
            status =
                draw_image(&p, images->pixels + (r * count + i) * height * width,
                           (double)(GAP + i * (CELL + GAP)), (double)(GAP + r * (CELL + GAP)), err);
    if (!status)
        status = fini_output_write(p.output, tail, strlen(tail), err);
    if (!status)
        return fini_output_commit(p.output, err);
    fini_output_abort(p.output);
    return status;
}
