/* Private face of tensors in files: the layout of safetensors, as tensors_read.c, tensors_write.c
 * and bags_model.c share it.
 *
 *     8 bytes   length of the header, little-endian
 *     header    {"__metadata__":{"checksum":"0123456789abcdef","finetti":"model", ...},
 *                "0.members":{"dtype":"F64","shape":[3,7],"data_offsets":[0,168]}, ...}   spaces
 *     data      the tensors, one after the other, without holes
 *
 * https://huggingface.co/docs/safetensors. The checksum stands at a fixed place, so that it is found
 * without trusting anything: it is the xxh3 of all bytes of the file, with its own digits as zeros. */
#ifndef FINI_TENSORS_H
#define FINI_TENSORS_H

#include "base/state.h"
#include "data/data.h"
#include "finetti/data_bags.h"

#include <jansson.h>

#define FINI_CHECKSUM_BEFORE "{\"__metadata__\":{\"checksum\":\""

enum {
    FINI_TENSOR_AXES = 4,
    FINI_CHECKSUM = 16, /* hexadecimal digits */
    FINI_CHECKSUM_AT = sizeof FINI_CHECKSUM_BEFORE - 1,
    FINI_TENSOR_ALIGN = 64, /* of the data in the file, and of every tensor in memory */
    /* A header becomes up to 70 times its size in memory; ours have some kilobytes. */
    FINI_HEADER_MOST = 8 << 20
};

struct fin_tensor_file {
    char path[208]; /* for messages */
    int fd;
    int64_t header_size, size;  /* of the header, of the data */
    char *header;               /* [8 + header_size] as in the file; freed once it is understood */
    unsigned char *data, *copy; /* [size]; of the tensors that are not aligned, or NULL */
    json_t *root, *metadata;    /* root is dropped once it is understood */
    int64_t count, entry_count;
    fin_tensor *tensors;
    fin_entry *entries; /* texts are in metadata */
};

/* Fills the list of tensors from the parsed header, in the order of the file; they agree with the bytes that
 * are there. (tensors_list.c) */
fin_status fini_tensors_list(fin_tensor_file *file, fin_error *err);

/* What the file must be: metadata "finetti" is `kind` ("model") and "version" at most `version`.
 * Asked after the checksum, and before the tensors are looked at, which a later version may write
 * otherwise. kind NULL: any safetensors file. */
fin_status fini_tensors_open(const char *path, const char *kind, int version,
                             fin_tensor_file **file, fin_error *err);
/* The header alone, read and parsed (root): what follows it in `fd`, size bytes, is left where it is,
 * and nothing of what the header says has been believed. */
fin_status fini_tensors_head(const char *path, fin_tensor_file **file, fin_error *err);
/* All metadata, in the order of the file. */
int64_t fini_tensors_entries(const fin_tensor_file *file, const fin_entry **entries);
/* The settings in entries called `before` + field, checked; others keep their defaults. `kind` is
 * for the message. Returns in *found, if it is not NULL, whether there is one. */
fin_status fini_tensors_settings(const fin_tensor_file *file, const char *kind, const char *before,
                                 const fin_settings *table, void *values, bool *found,
                                 fin_error *err);

/* Metadata to be written, in the order in which they are added: `before` and `key` make the key.
 * The first failure is kept, and nothing is done after it. (tensors_write.c) */
typedef struct fini_metadata {
    fini_names texts; /* key, value, key, value, ... */
    fin_status status;
    fin_error *err;
} fini_metadata;

/* With the two entries that every file of ours begins with. */
void fini_metadata_open(fini_metadata *m, const char *kind, int version, fin_error *err);
void fini_metadata_add(fini_metadata *m, const char *before, const char *key, const char *value);
void fini_metadata_number(fini_metadata *m, const char *key, int64_t value);
void fini_metadata_settings(fini_metadata *m, const char *before, const fin_settings *table,
                            const void *values);
/* Writes the file, unless something has failed before, and closes the metadata. */
fin_status fini_metadata_write(fini_metadata *m, const char *path, const fin_tensor *tensors,
                               int64_t count);

#endif
