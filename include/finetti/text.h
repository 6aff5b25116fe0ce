/* text: pretrained encoders of text, as people have them: a folder with config.json, model.safetensors
 * and vocab.txt or tokenizer.json. What became of a text's pieces, layer by layer.
 *
 *     bert, distilbert   x = norm(word + place + kind 0)
 *                        x <- norm(x + O attention(x) + o)            softmax, every piece sees every piece
 *                        x <- norm(x + W2 act(W1 x + b1) + b2)        `layers` times
 *     use-lite           x = word + place; norms stand before attention and feed-forward, the residual of the
 *                        first layer goes through a map from 256 to 512 numbers (Universal Sentence Encoder
 *                        Lite as tools/convert_use.py writes it)
 *
 * Weights are float32, float16 or bfloat16, mapped from the file; numbers are computed in float32. What a
 * configuration asks for beyond that is refused by name. */
#ifndef FINETTI_TEXT_H
#define FINETTI_TEXT_H

#include "finetti/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fin_text_encoder fin_text_encoder;

typedef struct fin_text_shape {
    char kind[16]; /* "bert", "distilbert", "use-lite" */
    int64_t layers, heads, width, hidden;
    int64_t longest;    /* pieces of a text, with those around it */
    int64_t vocabulary; /* pieces that there are */
} fin_text_shape;

/* Opens a folder. Files are checked before anything is believed; weights stay in the file. */
FIN_API fin_status fin_text_encoder_open(fin_text_encoder **encoder, const char *folder,
                                         fin_error *err);
FIN_API void fin_text_encoder_destroy(fin_text_encoder *encoder); /* NULL is fine */
FIN_API const fin_text_shape *fin_text_encoder_shape(const fin_text_encoder *encoder);
/* Numbers of a piece after `layer` layers: 0 (the embedding) to layers. */
FIN_API int64_t fin_text_encoder_width(const fin_text_encoder *encoder, int64_t layer);
FIN_API const char *fin_text_encoder_piece(const fin_text_encoder *encoder, int64_t id);

/* ---- pieces ---------------------------------------------------------------------------------- */

typedef struct fin_text_pieces fin_text_pieces;

/* Cuts n texts (UTF-8; other bytes are left out) into at most `longest` pieces each, with those around them
 * ([CLS], [SEP]); 0: as many as the encoder takes. A text without a piece of its own is refused where
 * nothing stands around it. sizes: bytes; NULL: texts end with NUL. */
FIN_API fin_status fin_text_pieces_cut(fin_text_pieces **pieces, const fin_text_encoder *encoder,
                                       int64_t n, const char *const *texts,
                                       FIN_OR_NULL const int64_t *sizes, int64_t longest,
                                       fin_error *err);
FIN_API void fin_text_pieces_destroy(fin_text_pieces *pieces); /* NULL is fine */
FIN_API int64_t fin_text_pieces_texts(const fin_text_pieces *pieces);
FIN_API const int64_t *fin_text_pieces_offsets(const fin_text_pieces *pieces); /* (texts + 1) */
FIN_API const int32_t *fin_text_pieces_ids(const fin_text_pieces *pieces);     /* (pieces) */
/* Bytes of the text that a piece is of: begin == end for those around it. (pieces) */
FIN_API const int64_t *fin_text_pieces_begin(const fin_text_pieces *pieces);
FIN_API const int64_t *fin_text_pieces_end(const fin_text_pieces *pieces);
/* Pieces of each text that were one too many, and were left out. (texts) */
FIN_API const int64_t *fin_text_pieces_left_out(const fin_text_pieces *pieces);

/* ---- passes ---------------------------------------------------------------------------------- */

/* Which states of a text: those of all its pieces, or one row, that of its first (such as [CLS]) or
 * last piece, of piece `at`, or the mean over all. */
enum { FIN_TEXT_ALL, FIN_TEXT_FIRST, FIN_TEXT_LAST, FIN_TEXT_AT, FIN_TEXT_MEAN };

/* What is asked of a pass; arrays are the caller's, NULL is not wanted. The bits of a text depend on the
 * text alone: neither on threads, nor on the texts beside it, nor on what else is asked for. */
typedef struct fin_text_pass {
    float *const *states; /* (layers + 1) arrays of (pieces or texts, width of the layer), each may
                           * be NULL */
    int pick;             /* FIN_TEXT_ ..., of states */
    int64_t at;           /* FIN_TEXT_AT: from 0; every text needs so many */
    float *pooled;        /* (texts, width): the mean over a text's pieces after the last layer;
                           * use-lite: its own, of length 1 */
} fin_text_pass;
/* FIN_ERR_NUMERIC, with the number of the text, where a state is not finite. */
FIN_API fin_status fin_text_encoder_run(const fin_text_encoder *encoder,
                                        const fin_text_pieces *pieces, const fin_text_pass *pass,
                                        const fin_progress *progress, fin_error *err);

#ifdef __cplusplus
}
#endif
#endif
