/* SentencePiece's unigram model (Kudo 2018): of all ways to cut a word into pieces, the one whose
 * scores (log probabilities) sum up to most, by dynamic programming.
 *
 *     best(j) = max_i best(i) + score(text[i, j))          a character that is no piece: worst - 10
 *
 * Spaces are folded to one, wide and unbreakable forms to the usual ones, and every word begins with
 * U+2581. As no piece has one in its middle, words are cut one by one; one of more than PART bytes
 * is taken in parts, so that memory does not depend on the text. Other compatibility characters and
 * what is not composed (NFKC) stay as they are. */
#include "text/text.h"

#include <math.h>
#include <string.h>

enum { PART = 1 << 14 }; /* bytes */
static const float UNKNOWN = -10;

typedef struct lattice {
    char text[PART + 8];
    float best[PART + 9];
    int32_t id[PART + 9], from[PART + 9], next[PART + 9];
    int64_t begin[PART + 9], end[PART + 9]; /* of the byte's character */
    int used;
} lattice;

size_t fini_unigram_scratch(void)
{
    return sizeof(lattice);
}

static void offer(lattice *l, int from, int to, int32_t id, float score)
{
    if (score >= l->best[to]) {
        l->best[to] = score;
        l->id[to] = id;
        l->from[to] = from;
    }
}

static void search(const fini_tokenizer *t, lattice *l)
{
    const char *end = l->text + l->used;
    for (int i = 0; i <= l->used; i++)
        l->best[i] = i ? -INFINITY : 0;
    for (int i = 0; i < l->used;) {
        int next = i + fini_utf8_length(l->text + i, end);
        for (int j = next; j - i <= t->longest; j += fini_utf8_length(l->text + j, end)) {
            int64_t id = fini_names_find(&t->vocabulary, l->text + i, (size_t)(j - i));
            if (id >= 0 && t->score[id] > -INFINITY)
                offer(l, i, j, (int32_t)id, l->best[i] + t->score[id]);
            else if (j == next)
                offer(l, i, j, t->unknown, l->best[i] + t->worst + UNKNOWN);
            if (j == l->used)
                break;
        }
        i = next;
    }
}

/* Neighbours that are unknown are one piece. */
static void add(const fini_tokenizer *t, fini_pieces *pieces, fini_piece piece)
{
    fini_piece *last = pieces->count > 0 && pieces->count <= pieces->room
                           ? &pieces->piece[pieces->count - 1]
                           : NULL;
    if (last && piece.id == t->unknown && last->id == t->unknown && last->end == piece.begin)
        last->end = piece.end;
    else
        fini_pieces_add(pieces, piece.id, piece.begin, piece.end);
}

static void cut_part(const fini_tokenizer *t, lattice *l, fini_pieces *pieces)
{
    search(t, l);
    for (int at = l->used; at > 0; at = l->from[at])
        l->next[l->from[at]] = at;
    for (int at = 0; at < l->used; at = l->next[at]) {
        int to = l->next[at];
        add(t, pieces, (fini_piece){l->id[to], l->begin[at], l->end[to - 1]});
    }
    l->used = 0;
}

static void append(lattice *l, fini_char c, int64_t begin, int64_t end)
{
    int length = fini_utf8_put(c, l->text + l->used);
    for (int i = 0; i < length; i++) {
        l->begin[l->used + i] = begin;
        l->end[l->used + i] = end;
    }
    l->used += length;
}

void fini_unigram_cut(const fini_tokenizer *t, void *scratch, const char *text, size_t size,
                      fini_pieces *pieces)
{
    lattice *l = scratch;
    bool space = true;
    l->used = 0;
    for (const char *p = text, *stop = text + size; p < stop;) {
        int64_t begin = p - text;
        fini_char c = fini_char_width(fini_char_next(&p, stop));
        if (c == 0 || fini_char_control(c))
            continue;
        if (fini_char_space(c)) {
            space = true;
            continue;
        }
        if (space || l->used >= PART)
            cut_part(t, l, pieces);
        if (space)
            append(l, 0x2581, begin, begin);
        space = false;
        append(l, c, begin, p - text);
    }
    cut_part(t, l, pieces);
}
