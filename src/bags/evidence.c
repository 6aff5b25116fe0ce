/* Evidence of the tokens: what a bag's prediction would be without a token, with it alone, and as tokens
 * are taken away one after the other.
 *
 * The prediction of a form is a function of a sum over tokens (of terms: a weight, the weight times what is
 * read there, ...), so that all of these are sums of terms over subsets of a bag, predicted at once:
 *
 *     without l       the sum before l plus the sum behind it: no difference, so that nothing cancels
 *     l alone         its term, with a weight of its own
 *     from rank r on  the sum from the last one back to r
 *
 * Sums of exponentials relative to the largest score vanish where the largest is taken out and the others
 * are 1e-280 times smaller. The form says NaN then, and those tokens start anew with a largest score of their own.
 *
 * A form without terms is asked for every subset in turn. Models whose map makes one row of a bag have rows for
 * its subsets made here: a mean is one over tokens, whose predictions are sums; of largest values and
 * statistics the two ends of a column and its mean tell those of the rest of the bag. */
#include "bags/descend.h"
#include "bags/map.h"
#include "kernel/rows.h"
#include "bags/bags.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

/* ---- subsets of the tokens of one bag ----------------------------------------------------------------- */

int64_t fini_evidence_scratch(const fini_bag_shape *shape)
{
    const fini_bag_form *form = shape->form;
    int64_t term = form->term ? form->term(shape) : 0, width = shape->classes ? shape->classes : 1;
    int64_t q = form->keys(shape) + form->values(shape);
    return shape->longest * (2 * term + width + q) + 2 * term;
}

typedef struct subsets {
    const fini_bag *bag;
    int64_t term, width, q;
    double *terms, *sums; /* (L + 1, term) */
    double *out;          /* (L, width) */
    double *U;            /* (L, q) of some tokens */
} subsets;

static subsets open_subsets(const fini_bag *bag, double *room)
{
    const fini_bag_form *form = bag->shape->form;
    subsets s = {.bag = bag, .width = bag->shape->classes ? bag->shape->classes : 1};
    s.term = form->term ? form->term(bag->shape) : 0;
    s.q = form->keys(bag->shape) + form->values(bag->shape);
    s.terms = room;
    s.sums = s.terms + (bag->L + 1) * s.term;
    s.out = s.sums + (bag->L + 1) * s.term;
    s.U = s.out + bag->L * s.width;
    return s;
}

/* The tokens order[0] .. order[count - 1] (NULL: the first) but `not`, by themselves. */
static void predict_some(const subsets *s, const int64_t *order, int64_t count, int64_t not,
                         double *out)
{
    fini_bag some = *s->bag;
    some.U = s->U;
    some.L = 0;
    for (int64_t l = 0; l < count; l++) {
        int64_t from = order ? order[l] : l;
        if (from != not )
            memcpy(s->U + some.L++ * s->q, s->bag->U + from * s->q, (size_t)s->q * sizeof *s->U);
    }
    s->bag->shape->form->predict(&some, out, NULL);
}

static void add(int64_t n, const double *a, const double *b, double *sum)
{
    for (int64_t j = 0; j < n; j++)
        sum[j] = a[j] + b[j];
}

/* sums[l] = terms before l plus terms behind it. */
static void leave_out(const subsets *s)
{
    int64_t L = s->bag->L, n = s->term;
    for (int64_t j = 0; j < n; j++) {
        const double *term = s->terms + j;
        double *sum = s->sums + j, before = 0, behind = 0;
        for (int64_t l = L - 1; l >= 0; behind += term[l-- * n])
            sum[l * n] = behind;
        for (int64_t l = 0; l < L; before += term[l++ * n])
            sum[l * n] += before;
    }
}

static void average(int64_t n, double share, const double *from, double *to)
{
    for (int64_t j = 0; j < n; j++)
        to[j] += share * from[j];
}

static void without_each(const subsets *s)
{
    const fini_bag_form *form = s->bag->shape->form;
    int64_t L = s->bag->L;
    if (form->term && L > 1) {
        form->terms(s->bag, false, s->terms);
        leave_out(s);
        form->settle(s->bag, L, s->sums, s->out);
    }
    for (int64_t l = 0; l < L; l++) {
        double *out = s->out + l * s->width;
        if (L == 1) /* nothing is left */
            for (int64_t c = 0; c < s->width; c++)
                out[c] = NAN;
        else if (!form->term || isnan(out[0])) {
            if (fini_cancelled(s->bag->cancel, 8))
                break;
            predict_some(s, NULL, L, l, out);
        }
    }
}

void fini_evidence_whole(const fini_bag *bag, double share, double *room, double *whole)
{
    subsets s = open_subsets(bag, room);
    bag->shape->form->predict(bag, s.out, NULL);
    average(s.width, share, s.out, whole);
}

void fini_evidence_without(const fini_bag *bag, double share, double *room, double *without)
{
    subsets s = open_subsets(bag, room);
    without_each(&s);
    average(bag->L * s.width, share, s.out, without);
}

void fini_evidence_alone(const fini_bag *bag, double share, double *room, double *alone)
{
    subsets s = open_subsets(bag, room);
    const fini_bag_form *form = bag->shape->form;
    if (form->term) {
        form->terms(bag, true, s.terms);
        form->settle(bag, bag->L, s.terms, s.out);
    }
    for (int64_t l = 0; l < bag->L && !form->term && !fini_cancelled(bag->cancel, 8); l++)
        predict_some(&s, &l, 1, -1, s.out + l * s.width);
    average(bag->L * s.width, share, s.out, alone);
}

/* Sums from the last of the order back to its first; as far back as they are large enough to be settled
 * with the largest score of all; what is smaller is asked again without those in front. */
void fini_evidence_after(const fini_bag *bag, const int64_t *order, double share, double *room,
                         double *after)
{
    subsets s = open_subsets(bag, room);
    const fini_bag_form *form = bag->shape->form;
    fini_bag rest = *bag;
    int64_t n = s.term, L = bag->L;
    for (int64_t from = 0; from < L && !fini_cancelled(bag->cancel, 8); from = L - rest.L) {
        double *out = s.out + from * s.width;
        rest.L = L - from;
        rest.U = s.U;
        for (int64_t r = from; r < L; r++)
            memcpy(s.U + (r - from) * s.q, bag->U + order[r] * s.q, (size_t)s.q * sizeof *s.U);
        if (!form->term) {
            form->predict(&rest, out, NULL);
            rest.L--;
            continue;
        }
        form->terms(&rest, false, s.terms);
        memset(s.sums + rest.L * n, 0, (size_t)n * sizeof *s.sums);
        for (int64_t r = rest.L - 1; r >= 0; r--)
            add(n, s.sums + (r + 1) * n, s.terms + r * n, s.sums + r * n);
        form->settle(&rest, rest.L, s.sums, out);
        int64_t good = 1; /* the first is the whole rest: there is no better way for it */
        while (good < rest.L && !isnan(out[good * s.width]))
            good++;
        rest.L -= good;
    }
    average(L * s.width, share, s.out, after);
}

/* ---- subsets of a bag that is one row ------------------------------------------------------------------- */

/* What a part's members make of rows of statistics: scores U (rows, q of all members) are sums over the columns
 * z and over the features of each group of columns, which are read without being made (features.c). */
typedef struct reader {
    const fini_part *part;
    fini_bag_shape shape;
    int64_t q, all, width; /* scores of a member, of all; numbers of a prediction */
    double *V, *constant;  /* (all, m), (all): features read by all members */
    double *lines, *means; /* (all, linear) columns z; (all, d) those of means, or 0 */
    struct reading {
        double *z, *room; /* (LOT, s), and that of fini_features_read */
        double *U, *more; /* (LOT, all) */
        double *one;      /* (LOT, q) of a member */
        double *subsets, *work;
    } * desk;
} reader;

enum { LOT = FINI_MAP_TILE };

static void layout_reader(reader *r, fini_arena *a, int threads)
{
    const fini_map *map = &r->part->map;
    r->V = fini_take(a, r->all, (size_t)map->m * sizeof(double));
    r->constant = fini_take(a, r->all, sizeof(double));
    r->lines = fini_take(a, r->all, (size_t)map->linear * sizeof(double));
    r->means = fini_take(a, r->all, (size_t)map->d * sizeof(double));
    r->desk = fini_take(a, threads, sizeof *r->desk);
    for (int t = 0; t < threads; t++) {
        struct reading d = {.z = fini_take(a, LOT * map->s, sizeof(double))};
        d.room = fini_take(a, LOT * (map->s + 2 * map->m), sizeof(double));
        d.U = fini_take(a, LOT * r->all, sizeof(double));
        d.more = fini_take(a, LOT * r->all, sizeof(double));
        d.one = fini_take(a, LOT * r->q, sizeof(double));
        d.subsets = fini_take(a, fini_evidence_scratch(&r->shape), sizeof(double));
        d.work = fini_take(a, r->part->form->scratch(&r->shape), sizeof(double));
        if (a->base)
            r->desk[t] = d;
    }
}

/* W: room for (all, p). */
static void open_reader(reader *r, double *W)
{
    const fini_part *part = r->part;
    const fini_map *map = &part->map;
    for (int64_t m = 0; m < part->members; m++)
        memcpy(W + m * r->q * map->p, part->member + m * part->parameters,
               (size_t)(r->q * map->p) * sizeof *W);
    for (int64_t k = 0; k < r->all; k++)
        memcpy(r->lines + k * map->linear, W + k * map->p, (size_t)map->linear * sizeof *W);
    for (int64_t k = 0; k < r->all && map->linear == map->s; k++)
        memcpy(r->means + k * map->d, W + k * map->p, (size_t)map->d * sizeof *W);
    if (map->m)
        fini_features_readouts(map, r->all, W, r->V, r->constant);
}

/* U of at most LOT rows x (rows, s). kept: NULL, or what is read of all but the means, (all) for each row, which
 * has means alone then. */
static void read_rows(const reader *r, struct reading *d, int64_t rows, const double *x,
                      const double *const *kept)
{
    const fini_map *map = &r->part->map;
    const fin_bags view = {.n = rows, .d = map->s, .dtype = FIN_F64, .tokens = x};
    int64_t all = r->all, lines = kept ? map->d : map->linear;
    int groups = !map->m ? 0 : kept ? 1 : fini_map_groups(map);
    fini_map seen = *map;
    seen.s = kept ? map->d : map->s;
    for (int64_t i = 0; i < rows; i++) {
        fini_columns_apply(&seen, &view, i, d->z + i * map->s);
        memcpy(d->room + i * lines, d->z + i * map->s + seen.s - lines, (size_t)lines * sizeof *x);
    }
    fini_rows_get()->project_f64(rows, lines, d->room, NULL, NULL, all, kept ? r->means : r->lines,
                                 d->U);
    for (int64_t i = 0; i < rows; i++)
        add(all, d->U + i * all, kept ? kept[i] : r->constant, d->U + i * all);
    for (int g = 0; g < groups; g++) {
        fini_features_read(map, g, rows, d->z, all, r->V, d->more, d->room);
        add(rows * all, d->U, d->more, d->U);
    }
}

/* Predictions (rows, width) of rows whose U is there, added to, times share. */
static void settle_rows(const reader *r, struct reading *d, int64_t rows, double share, double *out)
{
    const fini_part *part = r->part;
    for (int64_t m = 0; m < part->members; m++) {
        const double *extra = part->member + m * part->parameters + r->q * part->map.p;
        const fini_bag bag = {&r->shape, extra, rows, d->one, d->work, NULL};
        for (int64_t i = 0; i < rows; i++)
            memcpy(d->one + i * r->q, d->U + i * r->all + m * r->q, (size_t)r->q * sizeof *out);
        fini_evidence_alone(&bag, share / (double)part->members, d->subsets, out);
    }
}

/* Rows of statistics that wait for their predictions, and where those are added to. */
typedef struct batch {
    reader reader;
    fini_cancel *cancel;
    double share;
    int threads;
    int64_t s, room, count;
    double *rows;        /* (room, s) */
    const double **kept; /* (room) as in read_rows */
    double *out;         /* (room, width) */
    double **to;         /* (room) */
} batch;

static fin_status flush(batch *b, fin_error *err)
{
    const reader *r = &b->reader;
    int64_t width = r->width, count = b->count;
    double cost = LOT * (double)r->part->map.m * (double)(b->s + 16);
    memset(b->out, 0, (size_t)(count * width) * sizeof *b->out);
#pragma omp parallel for schedule(dynamic) num_threads(b->threads)
    for (int64_t lot = 0; lot < count; lot += LOT) {
        struct reading *d = r->desk + omp_get_thread_num();
        int64_t to = count - lot < LOT ? count : lot + LOT, end;
        if (fini_cancelled(b->cancel, cost))
            continue;
        for (int64_t i = lot; i < to; i = end) { /* rows of one kind */
            for (end = i + 1; end < to && !b->kept[end] == !b->kept[i];)
                end++;
            read_rows(r, d, end - i, b->rows + i * b->s, b->kept[i] ? b->kept + i : NULL);
            settle_rows(r, d, end - i, b->share, b->out + i * width);
        }
        for (int64_t k = lot; k < to; k++)
            average(width, 1, b->out + k * width, b->to[k]);
    }
    b->count = 0;
    return fini_cancel_end(b->cancel, err);
}

/* Room for one more row; NULL: *status says why not. */
static double *next_row(batch *b, const double *kept, double *to, fin_status *status,
                        fin_error *err)
{
    if (!*status && b->count == b->room)
        *status = flush(b, err);
    if (*status)
        return NULL;
    b->kept[b->count] = kept;
    b->to[b->count] = to;
    return b->rows + b->count++ * b->s;
}

/* The two largest and the two smallest of each column, and whose the first are; sums of differences from
 * the first token, as in map.c. (d) each. */
typedef struct ends {
    bool all; /* not the largest alone */
    int64_t d, L;
    double *first, *sum, *high, *high2, *low, *low2;
    int64_t *at_high, *at_low;
} ends;

static void take_token(ends *e, int64_t l, const double *x)
{
    for (int64_t j = 0; j < e->d && e->L == 0; j++) {
        e->high[j] = e->high2[j] = -INFINITY;
        e->low[j] = e->low2[j] = INFINITY;
        e->first[j] = x[j];
        e->sum[j] = 0;
    }
    for (int64_t j = 0; j < e->d; j++)
        if (x[j] > e->high2[j]) {
            bool top = x[j] > e->high[j];
            e->high2[j] = top ? e->high[j] : x[j];
            e->high[j] = top ? x[j] : e->high[j];
            e->at_high[j] = top ? l : e->at_high[j];
        }
    for (int64_t j = 0; j < e->d && e->all; j++) {
        e->sum[j] += x[j] - e->first[j];
        if (x[j] < e->low2[j]) {
            bool least = x[j] < e->low[j];
            e->low2[j] = least ? e->low[j] : x[j];
            e->low[j] = least ? x[j] : e->low[j];
            e->at_low[j] = least ? l : e->at_low[j];
        }
    }
    e->L++;
}

/* The row of all tokens but l, which is x; l = -1: of all. means: no more than these. */
static void write_row(const ends *e, int64_t l, const double *x, bool means, double *row)
{
    double left = (double)(l < 0 ? e->L : e->L - 1);
    double *high = e->all ? row + 2 * e->d : row, *low = row + e->d;
    for (int64_t j = 0; j < e->d && e->all; j++)
        row[j] = e->first[j] + (l < 0 ? e->sum[j] : e->sum[j] - (x[j] - e->first[j])) / left;
    for (int64_t j = 0; j < e->d && !means; j++)
        high[j] = e->at_high[j] == l ? e->high2[j] : e->high[j];
    for (int64_t j = 0; j < e->d && !means && e->all; j++)
        low[j] = e->at_low[j] == l ? e->low2[j] : e->low[j];
    if (e->all && !means)
        row[3 * e->d] = log(left);
}

typedef struct whole {
    batch batch;
    ends ends;
    const fin_bags *bags;
    const fini_evidence *to;
    double *room, *W;   /* (d) for a token; of open_reader */
    double *row, *rest; /* (s) of a bag; (n, all) what is read of its subsets beside their means */
    double *same;       /* (n, width) predictions of the bags themselves */
    unsigned char *other; /* (tokens) does the bag without it have other ends? */
    fini_arena arena;
} whole;

/* The bag itself, and what its subsets with the same ends have in common. */
static void read_bag(whole *w, int64_t i)
{
    const reader *r = &w->batch.reader;
    double *U = r->desk->U, *rest = w->rest + i * r->all;
    write_row(&w->ends, -1, NULL, false, w->row);
    read_rows(r, r->desk, 1, w->row, NULL);
    settle_rows(r, r->desk, 1, w->batch.share, w->same + i * r->width);
    if (!w->ends.all || w->ends.L == 1)
        return;
    const double *const nothing = rest;
    w->row[w->batch.s - 1] = log((double)w->ends.L - 1);
    read_rows(r, r->desk, 1, w->row, &nothing);
    for (int64_t k = 0; k < r->all; k++)
        rest[k] = -U[k];
    read_rows(r, r->desk, 1, w->row, NULL);
    add(r->all, rest, U, rest);
}

/* Of largest values alone, all but a few tokens leave the row as it is. */
static fin_status without_rows(whole *w, int64_t i, int64_t from, int64_t L, fin_error *err)
{
    fin_status status = FIN_OK;
    int64_t width = w->batch.reader.width;
    ends *e = &w->ends;
    memset(w->other + from, 0, (size_t)L);
    for (int64_t j = 0; j < e->d; j++) {
        w->other[from + e->at_high[j]] = 1;
        w->other[from + (e->all ? e->at_low : e->at_high)[j]] = 1;
    }
    for (int64_t k = 0; k < 2 * L && !status; k++) { /* those first that have more to be asked */
        int64_t l = k % L;
        double *to = w->to->without + (from + l) * width;
        const double *kept = k < L ? NULL : w->rest + i * w->batch.reader.all;
        if (w->other[from + l] != (k < L))
            continue;
        for (int64_t c = 0; c < width && L == 1; c++)
            to[c] = NAN;
        if (L > 1 && kept && !e->all)
            average(width, 1, w->same + i * width, to);
        if (L == 1 || (kept && !e->all))
            continue;
        double *row = next_row(&w->batch, kept, to, &status, err);
        if (row)
            write_row(e, l, fini_row(w->bags, from + l, 0, e->d, w->room), kept, row);
    }
    return status;
}

static fin_status after_rows(whole *w, int64_t from, int64_t L, fin_error *err)
{
    fin_status status = FIN_OK;
    w->ends.L = 0;
    for (int64_t r = L - 1; r >= 0 && !status; r--) {
        int64_t l = w->to->order[from + r];
        take_token(&w->ends, l, fini_row(w->bags, from + l, 0, w->ends.d, w->room));
        double *row = next_row(&w->batch, NULL, w->to->after + (from + r) * w->batch.reader.width,
                               &status, err);
        if (row)
            write_row(&w->ends, -1, NULL, false, row);
    }
    return status;
}

/* Alone, a token is its own mean, smallest and largest. */
static fin_status alone_rows(whole *w, int64_t from, int64_t L, fin_error *err)
{
    fin_status status = FIN_OK;
    for (int64_t l = 0; l < L && !status; l++) {
        w->ends.L = 0;
        take_token(&w->ends, l, fini_row(w->bags, from + l, 0, w->ends.d, w->room));
        double *row = next_row(&w->batch, NULL, w->to->alone + (from + l) * w->batch.reader.width,
                               &status, err);
        if (row)
            write_row(&w->ends, -1, NULL, false, row);
    }
    return status;
}

static fin_status one_bag(whole *w, int64_t i, fin_error *err)
{
    int64_t from, to, width = w->batch.reader.width;
    fin_status status = FIN_OK;
    fini_bag_rows(w->bags, i, &from, &to);
    if (w->to->without || w->to->whole) {
        w->ends.L = 0;
        for (int64_t l = from; l < to; l++)
            take_token(&w->ends, l - from, fini_row(w->bags, l, 0, w->ends.d, w->room));
        read_bag(w, i);
    }
    if (w->to->whole)
        average(width, 1, w->same + i * width, w->to->whole + i * width);
    if (w->to->without)
        status = without_rows(w, i, from, to - from, err);
    if (!status && w->to->alone && w->ends.all)
        status = alone_rows(w, from, to - from, err);
    if (!status && w->to->after)
        status = after_rows(w, from, to - from, err);
    return status;
}

static void layout(whole *w)
{
    fini_arena *a = &w->arena;
    batch *b = &w->batch;
    reader *r = &b->reader;
    ends *e = &w->ends;
    double **columns[] = {&e->first, &e->sum, &e->high, &e->high2, &e->low, &e->low2, &w->room};
    for (size_t k = 0; k < sizeof columns / sizeof *columns; k++)
        *columns[k] = fini_take(a, e->d, sizeof(double));
    e->at_high = fini_take(a, e->d, sizeof *e->at_high);
    e->at_low = fini_take(a, e->d, sizeof *e->at_low);
    w->W = fini_take(a, r->all, (size_t)r->part->map.p * sizeof(double));
    w->row = fini_take(a, b->s, sizeof(double));
    w->rest = fini_take(a, w->bags->n, (size_t)r->all * sizeof(double));
    w->same = fini_take(a, w->bags->n, (size_t)r->width * sizeof(double));
    w->other = fini_take(a, fini_bags_tokens(w->bags), 1);
    b->rows = fini_take(a, b->room, (size_t)b->s * sizeof(double));
    b->kept = fini_take(a, b->room, sizeof *b->kept);
    b->out = fini_take(a, b->room, (size_t)r->width * sizeof(double));
    b->to = fini_take(a, b->room, sizeof *b->to);
    layout_reader(r, a, b->threads);
}

static fin_status of_rows(const fini_part *part, const fin_bags *bags, double share,
                          const fini_evidence *to, fini_cancel *cancel, fin_error *err)
{
    const int64_t numbers = 1024 * 1024;
    whole w = {.bags = bags, .to = to};
    batch *b = &w.batch;
    reader *r = &b->reader;
    *b = (batch){.cancel = cancel, .share = share, .s = part->map.s};
    *r = (reader){.part = part, .shape = part->shape, .width = part->shape.classes};
    r->width = r->width ? r->width : 1;
    r->shape.longest = LOT;
    r->q = part->form->keys(&r->shape) + part->form->values(&r->shape);
    r->all = r->q * part->members;
    b->room = LOT + numbers / (part->map.s + part->map.p);
    b->threads = fini_map_threads((double)b->room * (double)(part->map.m + 1) * (double)b->s);
    w.ends.d = bags->d;
    w.ends.all = part->map.statistics == FINI_STATISTICS;
    layout(&w);
    fin_status status = fini_arena_open(&w.arena, "evidence", err);
    if (status)
        return status;
    layout(&w);
    open_reader(r, w.W);
    for (int64_t i = 0; i < bags->n && !status; i++) {
        status = one_bag(&w, i, err);
        if (!status)
            status = fini_cancel_stage(cancel, "answers", (double)i, (double)bags->n, err);
    }
    if (!status)
        status = flush(b, err);
    fini_arena_close(&w.arena);
    return status;
}

/* ---- parts and fits --------------------------------------------------------------------------------------- */

/* A mean of features is what `mean` says of tokens; a token alone is its own mean and largest value. */
fin_status fini_part_evidence(const fini_part *part, const fin_bags *bags, double share,
                              const fini_evidence *to, fini_cancel *cancel, fin_error *err)
{
    int statistics = part->map.statistics;
    fini_part tokens = *part;
    fini_evidence seen = *to;
    fin_status status = FIN_OK;
    tokens.map.statistics = FINI_TOKENS;
    if (statistics == FINI_MAX || statistics == FINI_STATISTICS) {
        status = of_rows(part, bags, share, to, cancel, err);
        seen = (fini_evidence){.alone = statistics == FINI_MAX ? to->alone : NULL};
    }
    if (!status && (seen.whole || seen.without || seen.alone || seen.after))
        status = fini_part_answer_all(
            &tokens, bags, &(fini_answer){.evidence = seen, .share = share, .known = to->known},
            cancel, err);
    return status;
}

static fin_status fit_evidence(const fin_fit *fit, const fin_bags *bags, const fini_evidence *to,
                               const fin_progress *progress, fin_error *err)
{
    fin_status status = fini_fit_check_bags(fit, bags, err);
    if (status)
        return status;
    int64_t N = fini_bags_tokens(bags), width = fit->classes ? fit->classes : 1;
    double *out[] = {to->without, to->alone, to->after, to->whole}, all = 0;
    int64_t rows[] = {N, N, N, bags->n};
    for (int64_t k = 0; k < fit->parts; k++)
        all += fit->part[k].weight > 0 ? fit->part[k].weight : 0;
    for (int o = 0; o < 4; o++)
        if (out[o])
            memset(out[o], 0, (size_t)(rows[o] * width) * sizeof(double));
    unsigned char *known = fini_alloc((size_t)bags->n + 1);
    if (!known)
        return fini_fail_memory(err, (size_t)bags->n + 1, "bags that are known");
    fini_evidence seen = *to;
    seen.known = known;
    status = fin_fit_known(fit, bags, known, err);
    fini_cancel cancel;
    fini_cancel_open(&cancel, progress, "answers");
    for (int64_t k = 0; k < fit->parts && !status; k++)
        if (fit->part[k].weight > 0)
            status = fini_part_evidence(&fit->part[k], bags, fit->part[k].weight / all, &seen,
                                        &cancel, err);
    fini_free(known);
    for (int o = 0; o < 4 && !status; o++)
        if (out[o])
            fini_fit_outside_units(fit, rows[o], out[o], NULL, NULL);
    return status;
}

/* The place, in a row of a prediction, of what it comes to. */
static int64_t likeliest(int64_t width, const double *prediction)
{
    int64_t best = 0;
    for (int64_t c = 1; c < width; c++)
        best = prediction[c] > prediction[best] ? c : best;
    return best;
}

static void compare(const fin_bags *bags, int64_t width, const double *prediction,
                    const fin_evidence *to)
{
    for (int64_t i = 0; i < bags->n; i++) {
        int64_t from, end, c = likeliest(width, prediction + i * width);
        fini_bag_rows(bags, i, &from, &end);
        for (int64_t l = from; l < end; l++) {
            if (to->change)
                to->change[l] =
                    end - from == 1 ? 0 : prediction[i * width + c] - to->without[l * width + c];
            if (to->only)
                to->only[l] = to->alone[l * width + c];
        }
    }
}

fin_status fin_fit_evidence(const fin_fit *fit, const fin_bags *bags, const fin_evidence *to,
                            const fin_progress *progress, fin_error *err)
{
    FINI_NEED(err, fit, bags, to);
    fin_status status = fini_fit_check_bags(fit, bags, err);
    if (status)
        return status;
    int64_t N = fini_bags_tokens(bags), width = fit->classes ? fit->classes : 1;
    bool short_one = to->change || to->only;
    fin_evidence all = *to;
    fini_arena a = {0};
    double *prediction = NULL;
    for (int twice = 0; twice < 2 && !status; twice++) {
        double *room = fini_take(&a, to->change && !to->without ? N : 0, (size_t)width * 8);
        all.without = to->change && !to->without ? room : to->without;
        room = fini_take(&a, to->only && !to->alone ? N : 0, (size_t)width * 8);
        all.alone = to->only && !to->alone ? room : to->alone;
        prediction = fini_take(&a, short_one ? bags->n : 0, (size_t)width * 8);
        status = twice ? FIN_OK : fini_arena_open(&a, "evidence", err);
    }
    const fini_evidence seen = {
        .whole = short_one ? prediction : NULL, .without = all.without, .alone = all.alone};
    if (!status)
        status = fit_evidence(fit, bags, &seen, progress, err);
    if (!status && short_one)
        compare(bags, width, prediction, &all);
    fini_arena_close(&a);
    return status;
}

/* Is it each bag's 0 .. L - 1, in some order? */
static fin_status check_order(const fin_bags *bags, const int64_t *order, fin_error *err)
{
    int64_t longest = fini_bags_longest(bags);
    unsigned char *seen = fini_alloc_array(longest, 1);
    if (!seen)
        return fini_fail_memory(err, (size_t)longest, "an order of tokens");
    fin_status status = FIN_OK;
    for (int64_t i = 0; i < bags->n && !status; i++) {
        int64_t from, to;
        fini_bag_rows(bags, i, &from, &to);
        memset(seen, 0, (size_t)(to - from));
        for (int64_t r = from; r < to && !status; r++) {
            int64_t l = order[r];
            if (l < 0 || l >= to - from || seen[l])
                status = fini_fail(err, FIN_ERR_ARGUMENT,
                                   "the order of bag %lld has %lld at place %lld; it takes each of "
                                   "the numbers 0 to %lld once",
                                   (long long)i, (long long)l, (long long)(r - from),
                                   (long long)(to - from - 1));
            else
                seen[l] = 1;
        }
    }
    fini_free(seen);
    return status;
}

fin_status fini_fit_flip(const fin_fit *fit, const fin_bags *bags, const int64_t *order,
                         double *curve, const fin_progress *progress, fin_error *err)
{
    FINI_NEED(err, fit, bags, order, curve);
    fin_status status = fini_fit_check_bags(fit, bags, err);
    if (!status)
        status = check_order(bags, order, err);
    if (status)
        return status;
    const fini_evidence all = {.order = order, .after = curve};
    return fit_evidence(fit, bags, &all, progress, err);
}

/* ---- the curve in short ------------------------------------------------------------------------------------ */

typedef struct scored {
    double score;
    int64_t token;
} scored;

static int before(const void *a, const void *b)
{
    const scored *p = a, *q = b;
    if (p->score != q->score)
        return p->score > q->score ? -1 : 1;
    return p->token < q->token ? -1 : 1;
}

static fin_status order_by(const fin_bags *bags, const double *score, int64_t *order,
                           fin_error *err)
{
    int64_t longest = fini_bags_longest(bags);
    scored *rows = fini_alloc_array(longest, sizeof *rows);
    if (!rows)
        return fini_fail_memory(err, (size_t)longest * sizeof *rows, "an order of tokens");
    for (int64_t i = 0; i < bags->n; i++) {
        int64_t from, to;
        fini_bag_rows(bags, i, &from, &to);
        for (int64_t l = from; l < to; l++) /* what is no number comes last */
            rows[l - from] = (scored){isnan(score[l]) ? -INFINITY : score[l], l - from};
        qsort(rows, (size_t)(to - from), sizeof *rows, before);
        for (int64_t l = from; l < to; l++)
            order[l] = rows[l - from].token;
    }
    fini_free(rows);
    return FIN_OK;
}

static void shorten(const fin_bags *bags, int64_t width, const double *curve, fin_flipping *out)
{
    double square = 0;
    *out = (fin_flipping){.area_se = NAN};
    for (int64_t i = 0; i < bags->n; i++) {
        int64_t from, to, c;
        fini_bag_rows(bags, i, &from, &to);
        int64_t L = to - from;
        const double *first = curve + from * width;
        double area = 0;
        c = likeliest(width, first);
        if (L < 2)
            continue;
        out->bags++;
        for (int64_t r = 0; r < L; r++) {
            double fall = first[c] - first[r * width + c];
            area += (width == 1 ? fabs(fall) : fall) / (double)L;
        }
        for (int k = 0; k < FIN_FLIP_POINTS; k++) {
            int64_t r = k * L / (FIN_FLIP_POINTS - 1) < L ? k * L / (FIN_FLIP_POINTS - 1) : L - 1;
            double fall = first[c] - first[r * width + c];
            out->fall[k] += ((width == 1 ? fabs(fall) : fall) - out->fall[k]) / (double)out->bags;
        }
        double gap = area - out->area;
        out->area += gap / (double)out->bags;
        square += gap * (area - out->area);
    }
    if (out->bags > 1)
        out->area_se = sqrt(square / (double)(out->bags - 1) / (double)out->bags);
    for (int k = 0; k < FIN_FLIP_POINTS && !out->bags; k++)
        out->fall[k] = out->area = NAN;
}

fin_status fin_fit_flipping(const fin_fit *fit, const fin_bags *bags, const double *score,
                            fin_flipping *flipping, const fin_progress *progress, fin_error *err)
{
    FINI_NEED(err, fit, bags, score, flipping);
    fin_status status = fini_fit_check_bags(fit, bags, err);
    if (status)
        return status;
    int64_t N = fini_bags_tokens(bags), width = fit->classes ? fit->classes : 1;
    double *curve = fini_alloc_array(N, (size_t)width * sizeof *curve);
    int64_t *order = fini_alloc_array(N, sizeof *order);
    status = curve && order
                 ? order_by(bags, score, order, err)
                 : fini_fail_memory(err, (size_t)(N * width) * sizeof *curve, "the flipping curve");
    if (!status)
        status = fini_fit_flip(fit, bags, order, curve, progress, err);
    if (!status)
        shorten(bags, width, curve, flipping);
    fini_free(curve);
    fini_free(order);
    return status;
}
