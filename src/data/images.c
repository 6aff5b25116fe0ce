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
    fin_status status = find_height(bags, source, &height, err);
    if (status)
        return status;
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
