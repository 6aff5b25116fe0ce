/* Private face of the data module: files, text and numbers as its readers and writers share them. */
#ifndef FINI_DATA_H
#define FINI_DATA_H

#include "base/base.h"
#include "finetti/data.h"

#include <string.h>

/* ---- files (file.c) ----------------------------------------------------------------------- */

/* "cannot read 'x.csv': No such file or directory"; `number` is an errno. */
fin_status fini_fail_io(fin_error *err, const char *action, const char *path, int number);

/* A regular file, open for reading, and its size; pipes, devices and folders are refused. */
fin_status fini_open_regular(const char *path, int *fd, int64_t *size, fin_error *err);

/* A file that is not there until it is committed.
 *
 * A new or regular file is written under a temporary name in the same folder and renamed; "-",
 * devices and pipes are written directly, unless the caller needs to seek: then they are refused.
 * A failed write is remembered, so that commit cannot succeed after it. */
typedef struct fini_output fini_output;

fin_status fini_output_open(const char *path, bool seekable, fini_output **out, fin_error *err);
fin_status fini_output_write(fini_output *output, const void *data, size_t size, fin_error *err);
/* Absolute position. Only for an output that was opened seekable. */
fin_status fini_output_seek(fini_output *output, int64_t position, fin_error *err);
int64_t fini_output_tell(const fini_output *output);
/* Both end the output. Abort takes NULL. */
fin_status fini_output_commit(fini_output *output, fin_error *err);
void fini_output_abort(fini_output *output);

/* Reads a whole file of text ("-": standard input), also gzipped, into one block for fini_free, with a NUL
 * after it. Stops early at a NUL byte, because then it is no text and may be endless. */
fin_status fini_read_text(const char *path, char **text, size_t *size, fin_error *err);

/* ---- text (text.c) -------------------------------------------------------------------------- */

/* Length of the UTF-8 sequence at p, or 0 if it is not valid. */
int fini_utf8_length(const char *p, const char *end);
/* The next character of a text that ends in NUL: 0 at its end, where *p stays; '?' for a byte that
 * is no UTF-8. And its bytes; returns how many. */
uint32_t fini_utf8_next(const char **p);
int fini_utf8_put(uint32_t character, char to[4]);
/* What keeps bytes from being text, the first of it. lines: tabs and line ends are text too. */
typedef enum { FINI_FAULT_NONE, FINI_FAULT_UTF8, FINI_FAULT_CONTROL } fini_fault;
fini_fault fini_text_fault(const char *text, size_t size, bool lines);
static inline bool fini_begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}
/* A short, printable, terminated copy for messages: at most `room` bytes with the NUL, odd bytes as
 * '?', "..." where it was cut. Returns buffer. */
char *fini_printable(const char *text, size_t size, char *buffer, size_t room);
enum { FINI_SHORT = 48 }; /* bytes of a name in a message */
/* A name in a message, in a buffer that lives as long as the block around it. */
#define FINI_SHOW(text)                                                                            \
    fini_printable(text, strlen(text), (char[FINI_SHORT]){""}, (size_t)FINI_SHORT)

/* ---- numbers (decimal.c, format.c) ---------------------------------------------------------- */

/* Reads the number at p, correctly rounded. Returns the end of what was read, or NULL: *value is
 * then infinite if it was a number out of range, else NaN. */
const char *fini_decimal(const char *p, const char *end, double *value);

enum { FINI_NUMBER = 32 }; /* room for %.17g: at most 24 characters */
/* Writes the number as %.17g; returns the length. Not terminated. */
size_t fini_format(double number, char buffer[FINI_NUMBER]);

/* ---- names (names.c) ------------------------------------------------------------------------ */

/* Many short texts in one block, numbered from 0, found by a hash table. All zeros is empty. */
typedef struct fini_names {
    int64_t count, room;
    int64_t *at; /* (room) where text i begins in letters */
    char *letters;
    size_t used, size;
    struct fini_name_slot *slots; /* (places) or NULL: not found by name */
    int64_t places;               /* a power of two */
    uint64_t seed;
} fini_names;

/* Appends without looking; text need not end with NUL. */
fin_status fini_names_add(fini_names *names, const char *text, size_t size, fin_error *err);
/* Appends one text made of two. */
fin_status fini_names_join(fini_names *names, const char *first, const char *second,
                           fin_error *err);
/* Number of the text, which is added if it is new. */
fin_status fini_names_put(fini_names *names, const char *text, size_t size, int64_t *number,
                          fin_error *err);
/* Makes what was added findable; of equal texts the first is found. */
fin_status fini_names_index(fini_names *names, fin_error *err);
int64_t fini_names_find(const fini_names *names, const char *text, size_t size); /* or -1 */
const char *fini_names_get(const fini_names *names, int64_t i);
/* One that may have been meant by `word`, among the first; NULL: none is like it. The edit distance to
 * every one of a million names is no help. */
enum { FINI_NEAR_MOST = 1000 };
const char *fini_names_near(const fini_names *names, const char *word);
/* "a, b, c", as many as fit, for messages; how many are left out is said by ", ...". */
enum { FINI_LISTED = 200 };
const char *fini_names_list(const fini_names *names, char text[FINI_LISTED]);
/* Adds "first", "first + 1", ...: count of them. */
fin_status fini_names_numbers(fini_names *names, int64_t first, int64_t count, fin_error *err);
void fini_names_close(fini_names *names);

/* ---- one array as NPY (npy.c) ---------------------------------------------------------------- */

enum { FINI_NPY_HEADER_MOST = 1024 }; /* 32 numbers of 20 digits and the rest fit */

/* How elements lie in a file. Texts (from BYTES on) have a fixed length, filled up with NULs. */
typedef enum {
    FINI_NPY_SAME,
    FINI_NPY_HALF,
    FINI_NPY_I8,
    FINI_NPY_I16,
    FINI_NPY_U16,
    FINI_NPY_U32,
    FINI_NPY_BYTES,
    FINI_NPY_WIDE /* UTF-32 */
} fini_npy_kind;

typedef struct fini_npy_form {
    fini_npy_kind kind;
    size_t size;   /* of an element in the file */
    int64_t bytes; /* of all */
    bool fortran;  /* the first axis is the fastest */
} fini_npy_form;

/* Are the bytes of the file the array? */
static inline bool fini_npy_plain(const fini_npy_form *form)
{
    return !form->fortran && (form->kind == FINI_NPY_SAME || form->kind >= FINI_NPY_BYTES);
}

float fini_half(uint16_t half); /* exactly */
/* `count` elements of the file from the one numbered `first`, which lie at `from`, into the array at
 * `to`. Texts keep their bytes. */
void fini_npy_place(const fini_npy_form *form, const fin_array *array, int64_t first, int64_t count,
                    const void *from, void *to);
/* Writes magic, lengths and description ("<f8"); returns its size, a multiple of 64. */
size_t fini_npy_header(const char *descr, int ndim, const int64_t *shape,
                       char buffer[FINI_NPY_HEADER_MOST]);
/* Reads the first 12 bytes: *start and *size say where the description lies. `label` names the
 * array in messages, as in the next one. */
fin_status fini_npy_prefix(const unsigned char bytes[12], const char *label, size_t *start,
                           size_t *size, fin_error *err);
/* Reads the description text into everything of *out but data: the array as it is used, and how it
 * lies in the file. Of texts the type is FIN_U8. */
fin_status fini_npy_describe(const char *text, size_t size, const char *label, fin_array *out,
                             fini_npy_form *form, fin_error *err);

/* ---- arrays of an archive, texts too (npz_read.c) ----------------------------------------------- */

/* Shape and form without the elements. */
fin_status fini_npz_look(fin_npz *npz, int64_t i, fin_array *out, fini_npy_form *form,
                         fin_error *err);
/* As fin_npz_array, of array i; texts are bytes as form says. */
fin_status fini_npz_any(fin_npz *npz, int64_t i, fin_array *out, fini_npy_form *form,
                        fin_error *err);

#endif
