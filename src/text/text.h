/* Private face of the text module: characters, tokenizers, and encoders of text from folders. */
#ifndef FINI_TEXT_H
#define FINI_TEXT_H

#include "base/base.h"
#include "data/data.h"
#include "finetti/text.h"

#include <jansson.h>

/* ---- characters (unicode.c) ------------------------------------------------------------------- */

typedef uint32_t fini_char;
enum { FINI_NO_CHAR = 0xfffd }; /* what stands for bytes that are no UTF-8 */

/* The character at *p, which moves on: behind it, or by one byte where it is no UTF-8. */
fini_char fini_char_next(const char **p, const char *end);

bool fini_char_space(fini_char c);   /* Z*, tab and line ends */
bool fini_char_control(fini_char c); /* Cc, Cf, Co, Cs, but tab and line ends */
bool fini_char_punctuation(fini_char c);
bool fini_char_cjk(fini_char c); /* ideographs, each a word */
fini_char fini_char_lower(fini_char c);
fini_char fini_char_width(fini_char c); /* a wide, narrow or unbreakable form as the usual one */
/* Without its marks: 0 to 3 characters. */
int fini_char_plain(fini_char c, fini_char to[3]);

/* ---- tokenizers -------------------------------------------------------------------------------- */

/* A piece with the bytes of the text that it is of; those around a text, such as [CLS], have none. */
typedef struct fini_piece {
    int32_t id;
    int64_t begin, end;
} fini_piece;

/* Takes the pieces of a text, one after the other. Those beyond `room` are counted only. */
typedef struct fini_pieces {
    fini_piece *piece;
    int64_t room, count;
} fini_pieces;

typedef struct fini_tokenizer fini_tokenizer;
struct fini_tokenizer {
    bool unigram; /* else WordPiece */
    fini_names vocabulary;
    int64_t longest;  /* bytes of the longest piece */
    int32_t unknown;  /* id of [UNK] */
    int32_t cls, sep; /* around a text; -1: nothing is */
    /* WordPiece */
    bool clean, cjk, lower, strip;
    char inside[16]; /* "##": before a piece that does not begin a word */
    int64_t word_most;
    /* unigram */
    float *score; /* (vocabulary); -inf: never found in a text */
    float worst;  /* of a character that is no piece */
};

/* From a folder: tokenizer.json, or vocab.txt with what tokenizer_config.json says. */
fin_status fini_tokenizer_read(fini_tokenizer *t, const char *folder, fin_error *err);
void fini_tokenizer_close(fini_tokenizer *t);
enum { FINI_WORD_MOST = 1000 }; /* characters of a word that WordPiece looks at */
/* The pieces of a text without those around it. scratch: fini_unigram_scratch() bytes. */
void fini_wordpiece_cut(const fini_tokenizer *t, const char *text, size_t size,
                        fini_pieces *pieces);
void fini_unigram_cut(const fini_tokenizer *t, void *scratch, const char *text, size_t size,
                      fini_pieces *pieces);
size_t fini_unigram_scratch(void);
static inline void fini_pieces_add(fini_pieces *p, int32_t id, int64_t begin, int64_t end)
{
    if (p->count < p->room)
        p->piece[p->count] = (fini_piece){id, begin, end};
    p->count++;
}

/* ---- JSON of a folder (folder.c) ------------------------------------------------------------------ */

/* A file of the folder; *root NULL and FIN_OK: it is not there. */
fin_status fini_folder_json(const char *folder, const char *name, json_t **root, fin_error *err);
/* "folder/name"; too long: "". Returns buffer. */
enum { FINI_FOLDER_PATH = 4096 };
char *fini_folder_path(const char *folder, const char *name, char buffer[FINI_FOLDER_PATH]);
bool fini_folder_has(const char *folder, const char *name);

/* ---- what is in a file or folder, as a key (key.c) -------------------------------------------------------- */

#define FINI_TEXT_KEY_LEAD "xxh128:"
enum { FINI_TEXT_KEY = 48 };
/* Reads a file, or all that an encoder is made of, once while files stay as they are, and remembers where they lie. */
fin_status fini_text_key(const char *folder, char key[FINI_TEXT_KEY], fin_error *err);
bool fini_text_is_key(const char *text);
/* A setting that is a path becomes its key, if it has one. */
void fini_text_to_key(char *given, size_t size);
/* The path of a setting that is one, or the key of one in this process, whose files are still the same. */
fin_status fini_text_given(const char *name, const char *given, char path[FINI_FOLDER_PATH],
                           fin_error *err);

/* ---- weights (weights.c) -------------------------------------------------------------------------- */

/* A matrix or vector in the file: numbers of one of three types, not aligned. */
typedef enum { FINI_F32, FINI_F16, FINI_BF16 } fini_float;
typedef struct fini_weight {
    fini_float type;
    int64_t rows, columns; /* a vector is a column */
    const unsigned char *data;
} fini_weight;

typedef struct fini_weights fini_weights; /* a file of tensors, mapped */
fin_status fini_weights_open(fini_weights **weights, const char *path, fin_error *err);
void fini_weights_close(fini_weights *weights);
bool fini_weights_has(const fini_weights *weights, const char *name);
/* FIN_ERR_FORMAT where it is missing or of another shape; columns 0: a vector. */
fin_status fini_weights_get(const fini_weights *weights, const char *name, int64_t rows,
                            int64_t columns, fini_weight *weight, fin_error *err);
/* As floats: where they lie if they are floats and aligned, else converted to `room`. */
const float *fini_weight_floats(const fini_weight *weight, float *room);
/* Row r of a matrix, likewise. */
const float *fini_weight_row(const fini_weight *weight, int64_t r, float *room);

/* ---- encoders (encoder.c, forward.c) --------------------------------------------------------------- */

enum { FINI_ACT_GELU, FINI_ACT_TANH, FINI_ACT_RELU };

typedef struct fini_linear {
    fini_weight weight, bias;
} fini_linear;

typedef struct fini_text_layer {
    int64_t in; /* width of what comes in; what comes out has that of the encoder */
    fini_linear query, key, value, out, norm1, up, down, norm2;
    fini_linear residual; /* from `in` to the width, where they differ */
} fini_text_layer;

struct fin_text_encoder {
    fin_text_shape shape;
    int64_t first; /* width of what comes into the first layer */
    int act;
    bool norm_first; /* before attention and feed-forward; else after them (BERT) */
    float eps;
    fini_tokenizer tokenizer;
    fini_weights *weights;
    fini_weight words, places, kinds; /* kinds, rows 0: there are none */
    fini_linear norm;                 /* of the embedding; weight.rows 0: there is none */
    fini_linear pooler;               /* use-lite: of the mean */
    fini_text_layer *layer;           /* (layers) */
};

struct fin_text_pieces {
    int64_t n, width; /* texts */
    int64_t *offsets; /* (n + 1) */
    int32_t *id;      /* (offsets[n]) */
    int64_t *begin, *end;
    int64_t *left_out; /* (n) */
    int64_t cut;       /* texts with pieces left out */
};

#endif
