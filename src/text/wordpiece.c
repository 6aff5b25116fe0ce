/* WordPiece, as published with BERT (Devlin et al. 2019; Wu et al. 2016).
 *
 * A text is cut into words at spaces, before and behind punctuation and ideographs, lower-cased and
 * without accents where the vocabulary is; a word into pieces, the longest that is in the vocabulary
 * first. A word of more than `word_most` characters, or with a rest that no piece begins, is one
 * [UNK]. One sweep: no more than a word is ever kept, and a piece is looked for no further than the
 * longest is long, so that time is linear in the text, whatever it is. */
#include "text/text.h"

#include <string.h>

enum { WORD_MOST = FINI_WORD_MOST, LEAD = 16 };

typedef struct word {
    char text[LEAD + 4 * WORD_MOST]; /* from LEAD on: before it is room for "##" */
    int at[WORD_MOST + 1];           /* where its characters begin in text */
    int64_t begin[WORD_MOST], end[WORD_MOST];
    int64_t count; /* characters, those that were too many as well */
    int64_t first, last;
} word;

static int32_t find(const fini_tokenizer *t, word *w, int from, int to)
{
    char *start = w->text + w->at[from];
    size_t size = (size_t)(w->at[to] - w->at[from]);
    if (from > 0) { /* what is overwritten is in pieces already */
        size_t lead = strlen(t->inside);
        start -= lead;
        memcpy(start, t->inside, lead);
        size += lead;
    }
    return (int32_t)fini_names_find(&t->vocabulary, start, size);
}

static void cut_word(const fini_tokenizer *t, word *w, fini_pieces *pieces)
{
    const int64_t before = pieces->count;
    bool whole = w->count <= t->word_most;
    for (int from = 0, n = (int)w->count; whole && from < n;) {
        int to = n;
        int32_t id = -1;
        while (to > from && w->at[to] - w->at[from] > t->longest)
            to--;
        for (; to > from && (id = find(t, w, from, to)) < 0; to--)
            continue;
        whole = id >= 0;
        if (whole)
            fini_pieces_add(pieces, id, w->begin[from], w->end[to - 1]);
        from = to;
    }
    if (!whole) {
        pieces->count = before;
        fini_pieces_add(pieces, t->unknown, w->first, w->last);
    }
}

static void flush(const fini_tokenizer *t, word *w, fini_pieces *pieces)
{
    if (w->count)
        cut_word(t, w, pieces);
    w->count = 0;
}

static void append(const fini_tokenizer *t, word *w, fini_char c, int64_t begin, int64_t end)
{
    int i = (int)w->count;
    if (w->count == 0)
        w->first = begin;
    w->last = end;
    if (w->count++ >= t->word_most)
        return;
    if (i == 0)
        w->at[0] = LEAD;
    w->begin[i] = begin;
    w->end[i] = end;
    w->at[i + 1] = w->at[i] + fini_utf8_put(c, w->text + w->at[i]);
}

void fini_wordpiece_cut(const fini_tokenizer *t, const char *text, size_t size, fini_pieces *pieces)
{
    word w = {.count = 0};
    for (const char *p = text, *stop = text + size; p < stop;) {
        int64_t begin = p - text;
        fini_char c = fini_char_next(&p, stop), plain[3] = {c};
        int64_t end = p - text;
        if (t->clean && (c == 0 || c == FINI_NO_CHAR || fini_char_control(c)))
            continue;
        if (fini_char_space(c)) {
            flush(t, &w, pieces);
            continue;
        }
        int count = t->strip ? fini_char_plain(c, plain) : 1;
        for (int i = 0; i < count; i++) {
            fini_char x = t->lower ? fini_char_lower(plain[i]) : plain[i];
            bool alone = (t->cjk && fini_char_cjk(c)) || fini_char_punctuation(x);
            if (alone)
                flush(t, &w, pieces);
            append(t, &w, x, begin, end);
            if (alone)
                flush(t, &w, pieces);
        }
    }
    flush(t, &w, pieces);
}
