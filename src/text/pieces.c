/* Texts to pieces, ragged, in two sweeps: the first counts (threads share the texts), the second fills. */
#include "text/text.h"

#include "finetti/kernel.h"

#include <omp.h>
#include <stdatomic.h>
#include <string.h>

enum { TEXTS_MOST = 1 << 30 };

typedef struct job {
    const fin_text_encoder *e;
    int64_t n, longest;
    const char *const *texts;
    const int64_t *sizes;
    fin_text_pieces *p;
} job;

static int64_t around(const job *j)
{
    return j->e->tokenizer.cls >= 0 ? 2 : 0;
}

/* Pieces of text i, with those around it, at most longest. */
static void cut(const job *j, int64_t i, void *scratch, fini_pieces *pieces)
{
    const fini_tokenizer *t = &j->e->tokenizer;
    size_t size = j->sizes ? (size_t)j->sizes[i] : strlen(j->texts[i]);
    int64_t room = j->longest - around(j);
    fini_piece *start = pieces->piece;
    fini_pieces own = {start + (around(j) ? 1 : 0), room, 0};
    if (t->unigram)
        fini_unigram_cut(t, scratch, j->texts[i], size, &own);
    else
        fini_wordpiece_cut(t, j->texts[i], size, &own);
    int64_t kept = own.count < room ? own.count : room;
    j->p->left_out[i] = own.count - kept;
    if (around(j)) {
        int64_t end = kept ? start[kept].end : 0;
        start[0] = (fini_piece){t->cls, 0, 0};
        start[kept + 1] = (fini_piece){t->sep, end, end};
    }
    pieces->count = kept + around(j);
}

/* What a thread needs: a lattice, and the pieces of a text. */
static size_t scratch_bytes(const job *j)
{
    size_t lattice = j->e->tokenizer.unigram ? fini_unigram_scratch() : 0;
    return (lattice + 63) / 64 * 64 + (size_t)j->longest * sizeof(fini_piece);
}

static void sweep(const job *j, unsigned char *scratch, size_t each, int threads, bool fill)
{
    fin_text_pieces *p = j->p;
    size_t lattice = each - (size_t)j->longest * sizeof(fini_piece);
#pragma omp parallel for num_threads(threads) schedule(dynamic, 64)
    for (int64_t i = 0; i < j->n; i++) {
        unsigned char *own = scratch + (size_t)omp_get_thread_num() * each;
        fini_pieces pieces = {.piece = (void *)(own + lattice)};
        cut(j, i, own, &pieces);
        if (!fill)
            p->offsets[i + 1] = pieces.count;
        for (int64_t k = 0; fill && k < pieces.count; k++) {
            int64_t to = p->offsets[i] + k;
            p->id[to] = pieces.piece[k].id;
            p->begin[to] = pieces.piece[k].begin;
            p->end[to] = pieces.piece[k].end;
        }
    }
}

static fin_status cut_all(const job *j, fin_error *err)
{
    fin_text_pieces *p = j->p;
    int threads = fin_threads_get();
    size_t each = (scratch_bytes(j) + 63) / 64 * 64;
    unsigned char *scratch = fini_alloc_array(threads, each);
    p->offsets = fini_alloc_array(j->n + 1, sizeof *p->offsets);
    p->left_out = fini_alloc_array(j->n, sizeof *p->left_out);
    fin_status status = FIN_OK;
    if (!scratch || !p->offsets || !p->left_out)
        status = fini_fail_memory(err, (size_t)threads * each, "cutting texts");
    else {
        p->offsets[0] = 0;
        sweep(j, scratch, each, threads, false);
        for (int64_t i = 0; i < j->n && !status; i++) {
            if (p->offsets[i + 1] == 0)
                status = fini_fail(err, FIN_ERR_ARGUMENT,
                                   "text %lld (from 0) has no pieces: it is empty, or spaces",
                                   (long long)i);
            p->offsets[i + 1] += p->offsets[i];
        }
    }
    int64_t total = status ? 0 : p->offsets[j->n];
    if (!status) {
        p->id = fini_alloc_array(total, sizeof *p->id);
        p->begin = fini_alloc_array(total, sizeof *p->begin);
        p->end = fini_alloc_array(total, sizeof *p->end);
        if (!p->id || !p->begin || !p->end)
            status = fini_fail_memory(err, (size_t)total * 20, "pieces of texts");
        else
            sweep(j, scratch, each, threads, true);
    }
    fini_free(scratch);
    return status;
}

static fin_status check(const job *j, fin_error *err)
{
    if (j->n < 0 || j->n > TEXTS_MOST)
        return fini_fail(err, FIN_ERR_ARGUMENT, "%lld texts; at most %d are cut at once",
                         (long long)j->n, TEXTS_MOST);
    if (j->longest <= around(j) || j->longest > j->e->shape.longest)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "texts of at most %lld pieces: the encoder takes %lld to %lld; 0 is as "
                         "many as it takes",
                         (long long)j->longest, (long long)around(j) + 1,
                         (long long)j->e->shape.longest);
    for (int64_t i = 0; i < j->n; i++)
        if (!j->texts[i] || (j->sizes && j->sizes[i] < 0))
            return fini_fail(err, FIN_ERR_ARGUMENT, "text %lld (from 0) is missing", (long long)i);
    return FIN_OK;
}

fin_status fin_text_pieces_cut(fin_text_pieces **out, const fin_text_encoder *e, int64_t n,
                               const char *const *texts, const int64_t *sizes, int64_t longest,
                               fin_error *err)
{
    FINI_NEED_TO_MAKE(err, out, e, !n || texts);
    job j = {e, n, longest ? longest : e->shape.longest, texts, sizes, NULL};
    FINI_TRY(check(&j, err));
    FINI_MAKE(err, "pieces of texts", fin_text_pieces, p);
    *p = (fin_text_pieces){.n = n};
    j.p = p;
    fin_status status = cut_all(&j, err);
    FINI_HAND_OVER(out, p, status, fin_text_pieces_destroy);
}

void fin_text_pieces_destroy(fin_text_pieces *p)
{
    if (!p)
        return;
    fini_free_all(p->offsets, p->left_out, p->id, p->begin, p->end, p);
}

int64_t fin_text_pieces_texts(const fin_text_pieces *p)
{
    return p ? p->n : 0;
}

const int64_t *fin_text_pieces_offsets(const fin_text_pieces *p)
{
    return p ? p->offsets : NULL;
}

const int32_t *fin_text_pieces_ids(const fin_text_pieces *p)
{
    return p ? p->id : NULL;
}

const int64_t *fin_text_pieces_begin(const fin_text_pieces *p)
{
    return p ? p->begin : NULL;
}

const int64_t *fin_text_pieces_end(const fin_text_pieces *p)
{
    return p ? p->end : NULL;
}

const int64_t *fin_text_pieces_left_out(const fin_text_pieces *p)
{
    return p ? p->left_out : NULL;
}
