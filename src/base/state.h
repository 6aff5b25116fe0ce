/* The state of an object as a table, which drives files: what is saved, and how it comes back.
 *
 * A field is one array of numbers: its name, type, shape and range, and where in the object it
 * stands. Saving lists the fields of an object as tensors that point into it. Loading goes through
 * the same table in the same order, so that what an earlier field has brought gives the shape of a
 * later one. A file may be hostile, so nothing is believed: every tensor must be there with its type and
 * shape before memory is taken for it, every number must be in its range, and what a range cannot say
 * the field's check says. */
#ifndef FINI_STATE_H
#define FINI_STATE_H

#include "base/base.h"

#include <stddef.h>

enum { /* flags of a field; without any, the numbers stand in the object itself */
       FINI_STATE_THERE = 1,    /* a pointer to them does, */
       FINI_STATE_OWNED = 2,    /* whose memory is taken when they are loaded */
       FINI_STATE_OPTIONAL = 4, /* a file need not have it; not saved without memory or rows */
       FINI_STATE_FREE = 8,     /* the file says how many rows; they go to the member of `rows` */
       FINI_STATE_ANY = 16,     /* what the numbers are only the check knows */
       FINI_STATE_FLOATS = 32   /* floats, which a file may have as doubles */
};

/* A size of a field: what the int64_t member of the object says. */
#define FINI_SIZE(type, member) (-1 - (int64_t)offsetof(type, member))

typedef struct fini_state_field {
    const char *name;
    fin_dtype dtype;
    int flags;
    size_t at;                            /* of the numbers in the object, or of the pointer */
    int64_t rows, columns;                /* a number or FINI_SIZE; columns 0: one axis */
    int64_t most;                         /* rows, if the file says how many */
    double low, high;                     /* of every number; both 0: any that is finite */
    int64_t (*count)(const void *object); /* instead of rows, if it is not NULL */
    bool (*has)(
        const void *object); /* NULL: every object has it; of optional ones only saving asks */
    fin_status (*check)(void *object, fin_error *err); /* once it is loaded; NULL: none */
} fini_state_field;

typedef struct fini_state {
    const char *what, *other; /* for messages: "model"; why it may not fit: "other settings" */
    const fini_state_field *fields;
    int count;
} fini_state;

/* Tensors that come from a file; names of fields stand behind `prefix` there. */
typedef struct fini_state_source {
    const char *prefix;
    const fin_tensor *tensors;
    int64_t count;
} fini_state_source;

/* A list of tensors being filled; beyond `room` they are only counted. */
typedef struct fini_tensor_list {
    fin_tensor *tensors;
    int64_t count, room;
} fini_tensor_list;
/* Adds one called prefix + name; columns 0: one axis. */
void fini_tensor_put(fini_tensor_list *list, const char *prefix, const char *name, fin_dtype dtype,
                     int64_t rows, int64_t columns, const void *data);

/* Adds the fields that the object has. */
void fini_state_save(const fini_state *state, const void *object, const char *prefix,
                     fini_tensor_list *list);
/* Loads the fields. After a failure the object has some of them. */
fin_status fini_state_load(const fini_state *state, void *object, const fini_state_source *from,
                           fin_error *err);
/* Looks at everything but what checks say, and leaves the object as it is. */
fin_status fini_state_verify(const fini_state *state, const void *object,
                             const fini_state_source *from, fin_error *err);
/* The tensor prefix + name, or NULL. */
const fin_tensor *fini_state_find(const fini_state_source *from, const char *name);

#endif
