/* Files that travel inside the library (cmake/Embed.cmake makes the arrays). */
#ifndef FINI_EMBEDDED_H
#define FINI_EMBEDDED_H

#include <stddef.h>

typedef struct fini_file {
    const char *name; /* without its folder; NULL ends the array */
    const char *text; /* ends with a NUL that size does not count */
    size_t size;
} fini_file;

extern const fini_file fini_shipped[]; /* studies/, by name */
extern const fini_file fini_assets[];  /* of the HTML report */
extern const fini_file fini_explore[]; /* the page to play with, or nothing */

#endif
