/* The bags of the command `mil`: three laws that ask whether a model respects what multiple-instance
 * learning assumes, and four whose responsible tokens are known (mil_draw.c), fitted and judged by mil.c. */
#ifndef FINI_LAB_MIL_H
#define FINI_LAB_MIL_H

#include "finetti/bags.h"
#include "command/command.h"

enum {
    FINI_MIL_SINGLE,
    FINI_MIL_CONCEPTS,
    FINI_MIL_FREQUENCY,
    FINI_MIL_LINEAR, /* from here on responsible tokens are known */
    FINI_MIL_SIDES,
    FINI_MIL_BALL,
    FINI_MIL_THREE
};

/*   type     field    default        lowest  highest         meaning */
#define FINI_MIL_FIELDS(F, C)                                                                      \
    C(test, 0, "single|concepts|frequency|linear|sides|ball|three",                                \
      "of Raff and Holt: one token of a concept, tokens of both concepts, how often does not "     \
      "count. With known responsible tokens: far out in a column, on either side, near a place, "  \
      "three of them")                                                                             \
    F(int64_t, trials, 6, 2, 100000, "training sets drawn")                                        \
    F(int64_t, bags, 100, 10, 1000000, "training bags, every other one positive")                  \
    F(int64_t, judged, 400, 10, 1000000, "fresh bags that a trial is judged on, in either law")    \
    F(int64_t, d, 16, 1, 4096, "columns of a token")                                               \
    F(int64_t, least, 1, 1, 10000, "fewest background tokens of a bag")                            \
    F(int64_t, most, 9, 1, 10000, "most of them")                                                  \
    F(int64_t, k, 3, 1, 1000, "single: a positive bag has 1 to k concept tokens; concepts: pairs") \
    F(int64_t, least_repeats, 35, 1, 10000,                                                        \
      "frequency: fewest tokens of its concept in a flipped negative bag")                         \
    F(int64_t, most_repeats, 44, 1, 10000, "frequency: most of them")

typedef struct fini_mil_law {
    FINI_MIL_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} fini_mil_law;

/* What a token is; where responsible tokens are known: a sum of the second. */
enum { FINI_MIL_BACKGROUND, FINI_MIL_A, FINI_MIL_B, FINI_MIL_POISON };
enum { FINI_MIL_DECIDES = 1, FINI_MIL_SAYS_ONE = 2, FINI_MIL_LEFT = 4 };

/* Room for bags; `bags` is a view of the rest. */
typedef struct fini_mil_bags {
    fin_bags bags;
    int64_t *offsets;
    double *tokens, *labels;
    unsigned char *what; /* (tokens) as above */
} fini_mil_bags;

/* Most tokens that a bag of this law can have. */
int64_t fini_mil_longest(const fini_mil_law *law);
fin_status fini_mil_open(fini_mil_bags *room, const fini_mil_law *law, int64_t n, fin_error *err);
void fini_mil_close(fini_mil_bags *room); /* {0} is fine */

/* Bags first .. first + n - 1 of this seed, drawn as the training bags are, or flipped. A bag has the
 * same label and the same tokens in both laws, but for the poison or the repeats, which come last. */
void fini_mil_draw(fini_mil_bags *room, const fini_mil_law *law, uint64_t seed, uint64_t first,
                   int64_t n, bool flipped);

/* Responsible tokens of a bag, where they are known; else 0. */
int64_t fini_mil_deciding(const fini_mil_law *law);
/* What who knows the law can say of every token: the probability that it decides, without the bag's label
 * and with it. weight, probability: (tokens); scratch too. */
void fini_mil_best(const fini_mil_law *law, const fini_mil_bags *room, double *scratch,
                   double *weight, double *probability);

#endif
