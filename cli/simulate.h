/* simulate: samples drawn piece by piece, for files larger than memory. */
#ifndef CLI_SIMULATE_H
#define CLI_SIMULATE_H

#include "cli.h"

#define SIMULATE_FIELDS(F, C)                                                                      \
    F(int64_t, n, 1000, 1, INT64_C(1) << 40, "samples (sequences) to draw")                        \
    F(int64_t, skip, 0, 0, INT64_C(1) << 53,                                                       \
      "number of the first one: new samples with the same k* and v*, such as for testing")         \
    F(int64_t, seed, 1, 0, INT64_C(1) << 53, "seed; sample i is a function of the seed and i")     \
    C(dtype, 0, "float|double", "precision of the tokens")
typedef struct simulate_settings {
    SIMULATE_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} simulate_settings;
typedef struct simulate_asked {
    char task[32], lengths[512];
    fin_task_settings task_settings;
    simulate_settings draw;
} simulate_asked;
static inline const simulate_settings *simulate_get(const cli_args *args)
{
    return &((const simulate_asked *)(const void *)args->values)->draw;
}

typedef struct draws {
    fin_task *task;
    int64_t n, d, m;
    bool single;       /* float, else double */
    uint64_t skip;     /* number of the first sample */
    bool sign;         /* outputs are 1 if positive, else 0 */
    size_t element;    /* bytes of one coordinate */
    int64_t *offsets;  /* (n + 1) */
    double *y;         /* (n), filled as samples are drawn */
    int64_t *location; /* (n, m), likewise */
    void *tokens;      /* samples first .. next-1 */
    size_t capacity;   /* of tokens, in bytes */
    int64_t first, next;
    size_t taken; /* bytes of tokens handed out already */
} draws;

/* Checks sizes against memory (and free disk space, bytes_per_number > 0) before anything is taken.
 */
fin_status draws_open(draws *s, const cli_args *args, double bytes_per_number, const char *path,
                      fin_error *err);
void draws_close(draws *s);
/* Draws the next samples, as many as fit; s->first == s->n at the end. */
fin_status draws_next(draws *s, fin_error *err);

#endif
