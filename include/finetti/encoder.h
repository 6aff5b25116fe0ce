/* encoder: a pre-norm transformer encoder of sets of tokens, forward and backward.
 *
 *     x = A t + a (+ position)                 t: columns of a token; a hidden token shows its key
 *                                              columns only, zeros for values; `mask` is added
 *     x <- x + O attention(norm x) + o         every token asks, visible tokens answer
 *     x <- x + W2 act(W1 norm x + b1) + b2     both `layers` times
 *     r = norm x                               the representation of a token
 *     answers = H r + h                        of a token, or of the mean of r over visible tokens
 *
 * Attention of a head, with q = Q x + .., k = K x + .., v = V x + .. of width / heads numbers:
 *
 *     softmax   sum_l softmax_l(q.k_l / sqrt(width / heads)) v_l
 *     cme       V'K (K'K + ridge I)^-1 q, with a ridge for every head that is learnt (its logarithm
 *               is the parameter): exactly the posterior mean of a linear concept, for the right
 *               maps
 *
 * A hidden token is nobody's key, so that any number of them is predicted at once, each as if it
 * were alone; where no token is visible attention adds nothing but its bias. Without positions the
 * tokens are a set: a sequence is put in an order of its own (visible first, then by content)
 * before any sum is taken, so that a permutation of the tokens permutes the answers to the last
 * bit.
 *
 * One block of memory holds all parameters (float). A pass goes through a few sequences at a time,
 * forward and backward, so that what it needs stays in the cache and no more memory is needed for a
 * large batch than for a small one. Where it is asked for losses and gradients alone, and a
 * sequence has no targets but those of hidden tokens, its visible tokens are keys and values of the
 * last layer and take no other part in it: masked training saves about a fifth. */
#ifndef FINETTI_ENCODER_H
#define FINETTI_ENCODER_H

#include "finetti/bags.h" /* fin_tensor, fin_sum */

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what it is made of ---------------------------------------------------------------------- */

#define FIN_ENCODER_FIELDS(F, C)                                                                   \
    F(int64_t, width, 64, 1, 8192, "numbers that represent a token; a multiple of heads")          \
    F(int64_t, layers, 2, 0, 256, "layers: attention and feed-forward")                            \
    F(int64_t, heads, 4, 1, 256, "attention heads of a layer")                                     \
    F(int64_t, hidden, FIN_AUTO_INT, 0, 65536,                                                     \
      "units of the feed-forward part; 0 = there is none; auto = 4 width")                         \
    C(attention, 0, "softmax|cme", "attention: softmax, or kernel ridge with a learnt ridge")      \
    C(activation, 0, "gelu|relu", "of the feed-forward part")                                      \
    C(norm, 0, "layer|none", "before attention, feed-forward and answers: layer norm, or nothing") \
    C(positions, 0, "none|sinusoidal|learned",                                                     \
      "what tells tokens apart beside their columns: nothing (a set), or their place")             \
    F(int64_t, longest, FIN_AUTO_INT, 1, 1048576,                                                  \
      "learned positions: tokens of the longest sequence; auto = that of the data")

enum { FIN_ENCODER_SOFTMAX, FIN_ENCODER_CME };
enum { FIN_ENCODER_GELU, FIN_ENCODER_RELU };
enum { FIN_NORM_LAYER, FIN_NORM_NONE };
enum { FIN_POSITIONS_NONE, FIN_POSITIONS_SINUSOIDAL, FIN_POSITIONS_LEARNED };

typedef struct fin_encoder_settings {
    FIN_ENCODER_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} fin_encoder_settings;
FIN_API extern const fin_settings fin_encoder_table;

/* What is asked of the representation. Loss of one target, and what an answer is:
 *
 *     value      sum_j (f_j - y_j)^2                          size numbers
 *     gaussian   sum_j ((f_j - y_j)^2 / s_j + log s_j) / 2    size means, then size log variances
 *                                                             (log s_j, kept within +-20)
 *     classes    - log softmax(f)_y                           size logits; the target is one number
 *
 * The loss of a head is the mean over its targets; the whole loss the sum of weight * loss. */
enum { FIN_HEAD_VALUE, FIN_HEAD_GAUSSIAN, FIN_HEAD_CLASSES };
enum { FIN_HEAD_TOKENS, FIN_HEAD_POOLED }; /* an answer for each token, or one for the sequence */
typedef struct fin_head {
    char name[24]; /* letters, digits, _; "value", "label" ... */
    int kind, where;
    int64_t size;
    double weight;
} fin_head;
enum { FIN_HEADS_MOST = 8 };
FIN_API int64_t fin_head_answers(const fin_head *head); /* numbers of an answer */
FIN_API int64_t fin_head_targets(const fin_head *head); /* numbers of a target */
/* What answers (rows, fin_head_answers) say, in their place: of scores of classes probabilities; of the logarithm of a
 * variance the variance. Values were scaled as (raw - center) * scale, by column (size), and are raw again; NULL: as they are. */
FIN_API fin_status fin_head_say(const fin_head *head, int64_t rows,
                                FIN_OR_NULL const double *center, FIN_OR_NULL const double *scale,
                                double *answers, fin_error *err);

typedef struct fin_encoder_shape {
    int64_t inputs; /* columns of a token, the key's first, then the value's */
    int64_t values; /* how many of them are the value's, which a hidden token does not show */
    int64_t heads;  /* entries of head; at least 1 */
    fin_head head[FIN_HEADS_MOST];
} fin_encoder_shape;

typedef struct fin_encoder fin_encoder;

/* Parameters drawn from the seed (linear maps N(0, 1/fan-in), those that add to the residual
 * divided by sqrt(2 layers), answers' maps by 10 (not exactly 0, so that gradients flow); norms 1;
 * the input's bias N(0, 1), unless there are neither norms nor feed-forward parts: it is most of
 * what the first norm divides by, which makes that about linear in a token; the rest 0, ridges
 * 1). */
FIN_API fin_status fin_encoder_create(fin_encoder **encoder, const fin_encoder_settings *settings,
                                      const fin_encoder_shape *shape, uint64_t seed,
                                      fin_error *err);
FIN_API void fin_encoder_destroy(fin_encoder *encoder); /* NULL is fine */
FIN_API const fin_encoder_settings *fin_encoder_get_settings(const fin_encoder *encoder);
FIN_API const fin_encoder_shape *fin_encoder_get_shape(const fin_encoder *encoder);
FIN_API int64_t fin_encoder_parameters(const fin_encoder *encoder);
FIN_API float *fin_encoder_weights(fin_encoder *encoder); /* (parameters): the one block */
/* The parameters by name, as pieces of the block: input.weight (width, inputs), input.bias, mask,
 * positions (longest, width); layer.<i>.norm1.weight/bias, layer.<i>.attention.in.weight (3 width,
 * width: queries, keys, values)/in.bias/out.weight/out.bias/ridge (heads: its logarithm),
 * layer.<i>.norm2.weight/bias, layer.<i>.ff1.weight (hidden, width)/bias, layer.<i>.ff2.weight
 * (width, hidden)/bias; norm.weight/bias; head.<name>.weight (answers, width)/bias. What a setting
 * leaves out is not there. Rows are outputs, as in torch. Fills at most `room`; returns how many
 * there are. */
FIN_API int64_t fin_encoder_tensors(const fin_encoder *encoder, FIN_OR_NULL fin_tensor *tensors,
                                    int64_t room);
/* Copies parameters in by name. Names that are not here are ignored if `some`, and those that are
 * missing keep their values; else both are refused. Shapes and finiteness are always checked.
 * copied: (may be NULL) how many tensors were. On failure nothing has changed. */
FIN_API fin_status fin_encoder_load(fin_encoder *encoder, const fin_tensor *tensors, int64_t count,
                                    int some, FIN_OR_NULL int64_t *copied, fin_error *err);

/* ---- passes ---------------------------------------------------------------------------------- */

/* Sequences, ragged. Borrowed. */
typedef struct fin_sequences {
    int64_t n;
    const int64_t *offsets; /* (n + 1) ascending from 0; every sequence has at least one token */
    const float *tokens;    /* (offsets[n], inputs), finite */
    const uint8_t *hidden;  /* (offsets[n]) 1: the value is not shown; or NULL: all are */
} fin_sequences;

/* What a pass is asked for. Arrays are caller-owned; NULL: not wanted. Of heads: in their order. */
typedef struct fin_pass {
    fin_dtype dtype;     /* of the computation: FIN_F32, or FIN_F64 (slow: for checking) */
    const void *weights; /* (parameters) of dtype; NULL: the encoder's own */
    int64_t blocks;      /* sums are taken over so many blocks of sequences, at most 64; 0: 8.
                          * The gradient depends on it, but not on threads and processes */
    /* Over processes; NULL: alone. This one has sequences first .. first + n - 1 of total, as
     * fin_encoder_share cuts them; 0, 0: alone. */
    fin_sum sum;
    int64_t first, total;

    /* (tokens or n, fin_head_targets) and (tokens or n, fin_head_answers). A number of a
     * target that is NaN counts for nothing, and a row of such is no target. NULL targets: the head
     * has no loss. */
    const double *targets[FIN_HEADS_MOST];
    double *answers[FIN_HEADS_MOST];
    double *losses; /* (tokens or n) of head 0: loss of each target, NaN where there is none */
    double *states; /* (tokens, width): x after `layer` layers; layer = layers: r, the end */
    double *pooled; /* (n, width): its mean over visible tokens (over all if all are hidden) */
    int64_t layer;  /* of states, pooled and maps */
    double *maps;   /* weights of the attention of layer `layer` (0 .. layers - 1), head
                     * `map_head`: for each sequence L x L, row = who asks; sequence after
                     * sequence. cme: K (K'K + ridge I)^-1 q, may be negative */
    int64_t map_head;
    double *gradient; /* (parameters) of the loss, written */
    int heads_only;   /* 1: the gradient of heads, and zeros for the rest: about the price of a
                       * pass without a gradient */

    double loss;                          /* out: the whole loss; NaN if there are no targets */
    double head_loss[FIN_HEADS_MOST];     /* out: means over targets */
    int64_t head_targets[FIN_HEADS_MOST]; /* out: how many, of all processes */
} fin_pass;

/* FIN_ERR_ARGUMENT for a sequence without tokens (by number), a token or target that is not finite
 * (by number), a class that there is not, more tokens than learned positions. A loss that is not
 * finite is no failure of the pass: the caller sees it. */
FIN_API fin_status fin_encoder_pass(const fin_encoder *encoder, const fin_sequences *sequences,
                                    fin_pass *pass, fin_error *err);
/* The sequences of process `rank` of `ranks`: whole blocks. */
FIN_API void fin_encoder_share(int64_t total, int64_t blocks, int rank, int ranks, int64_t *first,
                               int64_t *count);

#ifdef __cplusplus
}
#endif
#endif
