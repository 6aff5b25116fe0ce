/* Claims against the store: runs -> numbers -> one number with its 95 % interval -> a verdict.
 *
 * A claim never makes a call fail: where runs are missing or have failed, or a number is not there,
 * it is untested and `how` says why. Only memory, the file and a study that cannot be read back do. */
#include "study/claim.h"

#include "store/store.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *fin_verdict_name(fin_verdict verdict)
{
    static const char *const names[] = {
#define NAME(name, text) text,
        FIN_VERDICT_LIST(NAME)
#undef NAME
    };
    return (unsigned)verdict < sizeof names / sizeof *names ? names[verdict] : "unknown";
}

const char *fin_kind_name(fin_kind kind)
{
    static const char *const names[] = {
#define NAME(name, text, title) text,
        FIN_KIND_LIST(NAME)
#undef NAME
    };
    return (unsigned)kind < FIN_KINDS ? names[kind] : "unknown";
}

/* ---- one measure ------------------------------------------------------------------------------ */

static void not_known(fini_measured *out, const char *reason)
{
    out->value = out->low = out->high = NAN;
    out->known = false;
    snprintf(out->how, sizeof out->how, "%s", reason);
}

typedef struct failure {
    char hash[16], reason[200];
} failure;

static fin_status keep_first_failure(void *user, const fin_run_row *run, fin_error *err)
{
    (void)err;
    failure *f = user;
    if (!f->hash[0]) {
        snprintf(f->hash, sizeof f->hash, "%.8s", run->hash);
        snprintf(f->reason, sizeof f->reason, "%s", run->reason ? run->reason : "");
    }
    return FIN_OK;
}

/* Says why, if not all runs are done. */
static fin_status explain_absence(fin_store *store, const char *study, const fini_measure *m,
                                  const fini_frame *frame, fini_measured *out, fin_error *err)
{
    long long rows = (long long)fini_frame_rows(frame);
    long long missing = (long long)fini_frame_missing(frame);
    long long failed = (long long)fini_frame_failed(frame), total = rows + missing + failed;
    char text[320];
    if (failed > 0) {
        failure first = {"", ""};
        fin_query query = {.study = study,
                           .block = m->block->id,
                           .where = (const char *const *)m->where.clauses,
                           .where_count = m->where.count,
                           .state = FIN_STATE_FAILED};
        FINI_TRY(fin_store_runs(store, &query, keep_first_failure, &first, err));
        snprintf(text, sizeof text, "%lld of %lld runs failed; run %s failed: %s", failed, total,
                 first.hash, first.reason);
    } else if (missing > 0) {
        snprintf(text, sizeof text, "%lld of %lld runs are missing", missing, total);
    } else if (rows == 0) {
        snprintf(text, sizeof text, "no run of %.64s matches 'where'", m->block->id);
    } else if (m->reduce == FINI_REDUCE_ONLY && rows > 1) {
        snprintf(text, sizeof text, "%lld runs match; 'reduce: only' takes one", rows);
    } else {
        return FIN_OK;
    }
    not_known(out, text);
    return FIN_OK;
}

/* Evaluates the formulas at every row; counts what is no number. x may be NULL. */
static fin_status evaluate(const fini_measure *m, const fini_frame *frame, fini_number *numbers,
                           double *x, int64_t *bad, fin_error *err)
{
    *bad = 0;
    for (int64_t i = 0; i < fini_frame_rows(frame); i++) {
        fini_number at = {0};
        FINI_TRY(fini_formula_frame(m->take, frame, i, &numbers[i], err));
        if (m->against)
            FINI_TRY(fini_formula_frame(m->against, frame, i, &at, err));
        x[i] = at.value;
        *bad += isnan(numbers[i].value) || isnan(at.value);
    }
    return FIN_OK;
}

/* Are the runs a sample: do settings come from a draw, or are there several seeds? */
static fin_status is_sampled(const fini_block *block, const fini_frame *frame, bool *sampled,
                             fin_error *err)
{
    *sampled = false;
    for (int i = 0; i < block->axis_count; i++)
        *sampled = *sampled || block->axes[i].random;
    const fini_column *seed = fini_frame_column(frame, "seed");
    for (int64_t i = 1; seed && i < fini_frame_rows(frame); i++)
        *sampled = *sampled || seed->value[i] != seed->value[0];
    return fini_frame_status(frame, err);
}

static fin_status reduce(const fini_measure *m, const fini_frame *frame, fini_measured *out,
                         fin_error *err)
{
    int64_t n = fini_frame_rows(frame), bad;
    bool sampled;
    fini_number *numbers = fini_alloc_array(n, sizeof *numbers + sizeof(double));
    if (!numbers)
        return fini_fail_memory(err, (size_t)n * sizeof *numbers, "the numbers of a claim");
    double *x = (void *)(numbers + n);
    fin_error why = {FIN_OK, ""};
    fin_status status = evaluate(m, frame, numbers, x, &bad, &why);
    if (status == FIN_ERR_ARGUMENT) { /* a name that no run has: they were not asked for it */
        not_known(out, why.message);
        status = FIN_OK;
    } else if (status) {
        fini_fail(err, status, "%s", why.message);
    } else if (bad > 0) {
        char text[160];
        snprintf(text, sizeof text, "%.80s is not a number in %lld of %lld runs", m->take_text,
                 (long long)bad, (long long)n);
        not_known(out, text);
    } else {
        status = is_sampled(m->block, frame, &sampled, err);
        if (!status)
            status = fini_reduce_numbers(m->reduce, numbers, m->against ? x : NULL, n, sampled, out,
                                         err);
    }
    fini_free(numbers);
    return status;
}

static fin_status measure(fin_store *store, const char *study, const fini_measure *m,
                          fini_measured *out, fin_error *err)
{
    fini_frame *frame;
    FINI_TRY(fini_frame_read(store, study, m->block->id, (const char *const *)m->where.clauses,
                             m->where.count, &frame, err));
    *out = (fini_measured){.known = true};
    fin_status status = explain_absence(store, study, m, frame, out, err);
    if (!status && out->known)
        status = reduce(m, frame, out, err);
    fini_frame_destroy(frame);
    return status;
}

/* ---- a quantity of several measures ----------------------------------------------------------- */

static void append(char *text, size_t size, const char *more)
{
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s", more);
}

/* "closed form" if all came about in the same way, else all that are different. */
static void join_how(const fini_measured *parts, int count, char *how, size_t size)
{
    how[0] = '\0';
    for (int i = 0; i < count; i++) {
        int k = 0;
        while (k < i && strcmp(parts[k].how, parts[i].how) != 0)
            k++;
        if (k < i)
            continue;
        append(how, size, i ? "; " : "");
        append(how, size, parts[i].how);
    }
}

static fin_status combine(const fini_claim_plan *plan, const fini_measured *parts,
                          fini_measured *out, fin_error *err)
{
    enum { MOST = 32 };
    const char *names[MOST];
    fini_number numbers[MOST], number;
    for (int i = 0; i < plan->count && i < MOST; i++) {
        names[i] = plan->measures[i].name;
        if (!parts[i].known) {
            char text[320];
            snprintf(text, sizeof text, "%.64s: %.250s", names[i], parts[i].how);
            not_known(out, text);
            return FIN_OK;
        }
        double half = parts[i].low == parts[i].high ? 0 : (parts[i].high - parts[i].low) / 2;
        numbers[i] = fini_number_make(parts[i].value, half / FINI_Z95, parts[i].kind, 0);
        numbers[i].low = parts[i].low;
        numbers[i].high = parts[i].high;
    }
    FINI_TRY(fini_formula_values(plan->quantity, names, numbers, plan->count, &number, err));
    out->known = true;
    out->kind = number.how;
    out->value = number.value;
    out->low = number.low;
    out->high = number.high;
    join_how(parts, plan->count, out->how, sizeof out->how);
    return FIN_OK;
}

static fin_status measure_claim(fin_store *store, const char *study, const fini_claim_plan *plan,
                                fini_measured *out, fin_error *err)
{
    if (!plan->quantity)
        return measure(store, study, &plan->measures[0], out, err);
    FINI_OWN(err, "a claim", fini_measured, parts, plan->count, 1);
    for (int i = 0; i < plan->count; i++)
        FINI_TRY(measure(store, study, &plan->measures[i], &parts[i], err));
    return combine(plan, parts, out, err);
}

/* ---- a verdict -------------------------------------------------------------------------------- */

/* What is measured: "max of abs(z)", "slope of log(risk) against log(L), where L>=10". */
static void measure_text(const fini_measure *m, char *text, size_t size)
{
    append(text, size, fini_reduce_quantity(m->reduce));
    append(text, size, m->take_text);
    if (m->against_text) {
        append(text, size, " against ");
        append(text, size, m->against_text);
    }
    for (int i = 0; i < m->where.count; i++) {
        append(text, size, i ? ", " : " where ");
        append(text, size, m->where.clauses[i]);
    }
}

static void quantity_text(const fini_claim_plan *plan, char *text, size_t size)
{
    text[0] = '\0';
    if (!plan->quantity) {
        measure_text(&plan->measures[0], text, size);
        return;
    }
    append(text, size, plan->quantity_text);
    for (int i = 0; i < plan->count; i++) {
        append(text, size, i ? "; " : ", with ");
        append(text, size, plan->measures[i].name);
        append(text, size, " = ");
        measure_text(&plan->measures[i], text, size);
    }
}

/* What would decide it, by intervals that shrink like 1 / sqrt(n): `side` is the part of the interval that
 * reaches over the bound, `distance` the value's from it. Both are 0 or more. */
static double factor(double side, double distance)
{
    return side <= distance ? 1 : (side / distance) * (side / distance);
}

static void say_needed(const fini_claim_plan *plan, const fini_measured *m, char *text, size_t size)
{
    bool inside = m->value >= plan->low && m->value <= plan->high;
    double below = m->value - m->low, above = m->high - m->value, times;
    if (isinf(below) || isinf(above)) {
        snprintf(text, size, "the interval has no end");
        return;
    }
    if (inside)
        times = fmax(factor(below, m->value - plan->low), factor(above, plan->high - m->value));
    else
        times = m->value < plan->low ? factor(above, plan->low - m->value)
                                     : factor(below, m->value - plan->high);
    if (m->kind == FIN_HOW_SHARE &&
        (m->value == 0 || m->value == 1)) /* Wilson's shrinks like 1 / n */
        times = sqrt(times);
    if (plan->low == plan->high && inside)
        snprintf(text, size, "no number with an error is exactly %s: it takes a tolerance",
                 plan->expected);
    else if (!(times < 1e9))
        snprintf(text, size, "the value is at the bound: more runs may not decide it");
    else if (m->kind == FIN_HOW_CLOSED || m->kind == FIN_HOW_QUADRATURE)
        snprintf(text, size, "an error %.2g times smaller would decide it", sqrt(times));
    else
        snprintf(text, size, "about %.2g times as many %s would decide it", times,
                 m->kind == FIN_HOW_SIMULATION ? "samples" : "runs");
}

/* needed: said if it is undecided. */
static fin_verdict judge(const fini_claim_plan *plan, fini_measured *m, char *needed, size_t size)
{
    needed[0] = '\0';
    if (m->known && isnan(m->value))
        not_known(m, "the quantity is not a number");
    if (m->known && isinf(m->value))
        not_known(m, "the quantity is infinite");
    if (!m->known)
        return FIN_VERDICT_UNTESTED;
    /* Nothing can be said of a number whose uncertainty nobody knows, such as one of rare events. */
    if (isnan(m->low) || isnan(m->high)) {
        snprintf(needed, size, "the uncertainty is not known");
        return FIN_VERDICT_UNDECIDED;
    }
    if (m->low >= plan->low && m->high <= plan->high)
        return FIN_VERDICT_HOLDS;
    if (m->high < plan->low || m->low > plan->high)
        return FIN_VERDICT_FAILS;
    say_needed(plan, m, needed, size);
    return FIN_VERDICT_UNDECIDED;
}

int fin_claim_fine(const fin_claim *claim)
{
    bool known = claim && claim->known && claim->known[0];
    return claim && claim->verdict != FIN_VERDICT_UNTESTED &&
           (claim->verdict == FIN_VERDICT_HOLDS) != known;
}

/* What a claim points to beside its plan. */
typedef struct verdict_row {
    fini_measured measured;
    char quantity[1200], needed[160];
} verdict_row;

static fin_claim describe(const fin_study *study, const fini_claim_plan *plan, verdict_row *row)
{
    quantity_text(plan, row->quantity, sizeof row->quantity);
    return (fin_claim){.study = study->name,
                       .id = plan->id,
                       .statement = plan->statement,
                       .source = plan->source,
                       .quantity = row->quantity,
                       .expected = plan->expected,
                       .figure = plan->figure,
                       .how = row->measured.how,
                       .value = row->measured.value + 0.0, /* no -0, which a store does not keep */
                       .low = row->measured.low + 0.0,
                       .high = row->measured.high + 0.0,
                       .verdict = FIN_VERDICT_UNTESTED,
                       .kind = plan->kind,
                       .fails_if = plan->fails_if,
                       .known = plan->known,
                       .needed = row->needed};
}

fin_status fini_claims_judge(fin_store *store, const fin_study *study, fini_claim_row row,
                             void *user, fin_error *err)
{
    int count = study->claim_count;
    size_t each = sizeof(verdict_row) + sizeof(fin_claim);
    verdict_row *rows = fini_alloc_array(count + 1, each);
    if (!rows)
        return fini_fail_memory(err, (size_t)count * each, "the claims of a study");
    memset(rows, 0, ((size_t)count + 1) * each);
    fin_claim *claims = (void *)(rows + count);
    fin_status status = FIN_OK;
    for (int i = 0; i < count && !status; i++) {
        status = measure_claim(store, study->name, &study->claims[i], &rows[i].measured, err);
        if (status)
            break;
        fin_verdict verdict =
            judge(&study->claims[i], &rows[i].measured, rows[i].needed, sizeof rows[i].needed);
        claims[i] = describe(study, &study->claims[i], &rows[i]);
        claims[i].verdict = verdict;
    }
    if (!status)
        status = fini_store_keep_claims(store, study->name, claims, count, err);
    for (int i = 0; i < count && row && !status; i++)
        status = row(user, &claims[i], err);
    fini_free(rows);
    return status;
}

/* ---- what has been judged, and what has not --------------------------------------------------- */

typedef struct listing {
    const fin_study *study; /* NULL: it cannot be read back */
    bool *seen;             /* [claims of the study] */
    fini_claim_row row;
    void *user;
} listing;

static fin_status pass_on(void *user, const fin_claim *claim, fin_error *err)
{
    listing *l = user;
    for (int i = 0; l->study && i < l->study->claim_count; i++)
        l->seen[i] = l->seen[i] || strcmp(l->study->claims[i].id, claim->id) == 0;
    return l->row(l->user, claim, err);
}

fin_status fini_claims_list(fin_store *store, const char *name, const fin_study *study,
                            fini_claim_row row, void *user, fin_error *err)
{
    int count = study ? study->claim_count : 0;
    listing l = {study, fini_alloc_array(count + 1, sizeof *l.seen), row, user};
    verdict_row *unjudged = fini_alloc(sizeof *unjudged);
    fin_status status = FIN_OK;
    if (!l.seen || !unjudged)
        status = fini_fail_memory(err, sizeof *unjudged, "the claims of a study");
    if (!status) {
        memset(l.seen, 0, ((size_t)count + 1) * sizeof *l.seen);
        unjudged->needed[0] = '\0';
        not_known(&unjudged->measured, "not judged yet: the runs were cut short");
        status = fin_store_claims(store, name, pass_on, &l, err);
    }
    for (int i = 0; i < count && !status; i++) {
        if (l.seen[i])
            continue;
        fin_claim claim = describe(study, &study->claims[i], unjudged);
        status = row(user, &claim, err);
    }
    fini_free_all(l.seen, unjudged);
    return status;
}
