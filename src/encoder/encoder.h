/* Private face of the encoder module: its engine: where parameters stand, how sequences are cut into
 * blocks, put in order, and what a pass hands to the code of its type. */
#ifndef FINI_ENCODER_H
#define FINI_ENCODER_H

#include "base/base.h"
#include "finetti/encoder.h"
#include "math/small.h"

/* ---- the encoder (encoder.c, parameters.c) ------------------------------------------------------- */

/* A parameter: its place in the block, its shape, and what it starts as: `start`, or normal numbers
 * of standard deviation `spread` where that is positive. */
typedef struct fini_piece {
    char name[48];
    int64_t at, rows, columns; /* columns 0: one dimension */
    double start, spread;
} fini_piece;

/* Places in the block; -1: there is none. */
typedef struct fini_pair {
    int64_t weight, bias;
} fini_pair;
typedef struct fini_layer {
    fini_pair norm1, in, out, norm2, ff1, ff2;
    int64_t ridge;
} fini_layer;

typedef struct fini_memory_pool fini_memory_pool;

struct fin_encoder {
    fin_encoder_settings settings; /* hidden is not auto any more */
    fin_encoder_shape shape;
    int64_t width, hidden, d; /* d: width of a head */
    int64_t count;            /* parameters */
    fini_pair input, norm, head[FIN_HEADS_MOST];
    int64_t mask, positions;
    fini_layer *layer; /* (layers) */
    fini_piece *piece; /* (pieces) */
    int64_t pieces;
    float *weights;         /* (count) */
    fini_memory_pool *pool; /* memory of the last pass, for the next one */
    fini_arena arena;
};

/* Fills in all places. With o->piece == NULL it only counts. */
void fini_encoder_layout(fin_encoder *o);

/* ---- blocks (pass.c) ------------------------------------------------------------------------ */

enum { FINI_BLOCKS = 8, FINI_BLOCKS_MOST = 64 };
int64_t fini_encoder_blocks(int64_t total, int64_t blocks); /* in use */

/* ---- order (order.c) ------------------------------------------------------------------------- */

typedef struct fini_sorter {
    uint64_t *keys, *other; /* (longest) each */
} fini_sorter;
/* The order in which a sequence of L tokens is summed: order[row] = token. Visible ones first;
 * then, without positions, by content (hidden tokens: their keys alone). twin[row]: the first row
 * with the same content, of which all such rows take their answers. Returns how many are
 * visible. */
int64_t fini_encoder_order(const fin_encoder *o, int64_t L, const float *tokens,
                           const uint8_t *hidden, int64_t *order, int64_t *twin,
                           fini_sorter *scratch);

/* ---- kernel ridge attention of one head of one sequence (cme.c): m queries, L keys and values -- */

/* All matrices are dense. A, W, B: scratch (d, d). */
typedef struct fini_cme {
    int64_t m, L, d;
    double ridge;
    double *Q, *K, *V;    /* (m, d), (L, d), (L, d) */
    double *O;            /* (m, d): answers, or on the way back their gradient */
    double *dQ, *dK, *dV; /* written by the way back */
    double *A, *W, *B;
} fini_cme;

void fini_cme_forward(fini_cme *o);
void fini_cme_weights(fini_cme *o, int64_t i, double *weights);
double fini_cme_backward(fini_cme *o); /* returns d/d ridge */

/* ---- passes (pass.c, check.c, pool.c, loss.c; pass_f32.c, pass_f64.c) ----------------------- */

/* Rows of a group: so many tokens of whole sequences are taken at a time, or one sequence that is
 * longer. It is a matter of caches, and changes the last bits of a gradient. */
enum { FINI_GROUP = 256 };
enum { FINI_LONGEST = 1 << 24 }; /* most tokens of a sequence */

typedef struct fini_work {
    const fin_encoder *o;
    const fin_sequences *sequences;
    fin_pass *pass;
    const void *weights;          /* (count) of the type of the pass */
    const void *panels;           /* (2 count) layers' matrices packed, for both ways; or NULL */
    bool back;                    /* gradients are asked for */
    bool through;                 /* of more than heads: the way back goes through all layers */
    int64_t slopes;               /* first parameter with a gradient; heads are the last ones */
    bool head[FIN_HEADS_MOST];    /* the head has something to do */
    int64_t depth;                /* layers that have to be gone through */
    bool everywhere;              /* the end of every token is asked for, not of targets alone */
    int64_t total, blocks;        /* sequences of all processes; blocks of them */
    int64_t first, block, own;    /* first sequence, first block, and blocks of this process */
    int64_t longest, rows, most;  /* longest sequence; most rows and sequences of a group */
    double scale[FIN_HEADS_MOST]; /* weight / targets of everybody */
    int64_t columns;              /* of parts: heads, then parameters with a gradient */
    double *parts;                /* (own, columns): sums of losses, gradients */
    const void *sines;            /* (longest, width) sinusoidal positions, or NULL */
} fini_work;

/* Code for one type of numbers. `layout` cuts (or, without base, measures) the scratch of one
 * thread; `run` does one block with it. */
typedef struct fini_passer {
    size_t size;    /* of a number */
    size_t scratch; /* of the struct that layout fills */
    void (*layout)(const fini_work *job, fini_arena *arena, void *scratch);
    void (*run)(const fini_work *job, int64_t block, void *scratch);
    void (*convert)(int64_t n, const float *from, void *to);
    void (*sines)(int64_t longest, int64_t width, void *to);
} fini_passer;
extern const fini_passer fini_passer_f32, fini_passer_f64;

/* Everything that can be wrong with the arguments of a pass; fills in the job's plain numbers. */
fin_status fini_encoder_check(fini_work *job, fin_error *err);

/* Targets of head h among sequences from .. to - 1 of this process. */
int64_t fini_encoder_targets(const fini_work *job, int h, int64_t from, int64_t to);
double fini_log_variance(double t); /* kept within +-20 */
/* Is any number of a target there? */
bool fini_head_asked(const fin_head *head, const double *target);
/* Loss of one target, and its gradient in the answer (NULL: not wanted). */
double fini_head_loss(const fin_head *head, const double *answer, const double *target,
                      double *gradient);

/* Memory that is handed from pass to pass. Taking is safe from several threads: who comes second
 * gets new memory. */
fin_status fini_memory_pool_create(fini_memory_pool **pool, fin_error *err);
void fini_memory_pool_destroy(fini_memory_pool *pool);
void *fini_memory_pool_take(fini_memory_pool *pool,
                            size_t *size); /* NULL: memory is out; *size: at least */
void fini_memory_pool_give(fini_memory_pool *pool, void *memory, size_t size);

/* Bytes that a pass takes beside its arguments, for a longest sequence of L tokens. */
double fini_encoder_bytes(const fin_encoder *encoder, int64_t L, fin_dtype dtype);

#endif
