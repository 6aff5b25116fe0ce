/* What the file says about claims: checked, with line and column, and parsed.
 *
 * A claim is read with its study, and judged as it was read. Names in formulas and in `where` are looked up in the settings of the block's first run
 * and in the table of what its command leaves: a typing error is found before anything runs. */
#include "study/claim.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MEASURES_MOST = 32, CLAIMS_MOST = 10000, ID_LENGTH = 64 };

static const char *const reduce_words[] = {
#define WORD(name, word, how, quantity) word,
    FINI_REDUCE_LIST(WORD)
#undef WORD
};

static const char *const kind_words[] = {
#define WORD(name, word, title) word,
    FIN_KIND_LIST(WORD)
#undef WORD
};

static const char *const name_characters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";

/* ---- one measure ----------------------------------------------------------------------------- */

/* The study, and what has gone wrong so far. */
typedef struct reader {
    const fin_study *study;
    fini_ask ask;
} reader;

/* A text that must stand in the map; NULL after a failure. */
static const fini_node *need(reader *r, const fini_node *map, const char *what, const char *key)
{
    const fini_node *child = fini_node_get(map, key);
    if (!child)
        FINI_ASK_FAIL(&r->ask, map, "%s has no '%s'", what, key);
    else if (child->kind != FINI_TEXT)
        FINI_ASK_FAIL(&r->ask, child, "'%s' must be a text", key);
    return r->ask.status ? NULL : child;
}

static fini_reduce read_reduce(reader *r, const fini_node *map)
{
    const fini_node *node = fini_node_get(map, "reduce");
    const char *given = !node ? "only" : node->kind == FINI_TEXT ? node->text : "";
    for (int i = 0; i < FINI_REDUCTIONS; i++)
        if (strcmp(given, reduce_words[i]) == 0)
            return (fini_reduce)i;
    FINI_ASK_FAIL(&r->ask, node, "there is no reduction '%.40s'%s", given,
                  fini_did_you_mean(fin_nearest_name(given, reduce_words, FINI_REDUCTIONS),
                                    "; there are only, first, last, min, max, mean, median, sum, "
                                    "count, share and slope"));
    return FINI_REDUCE_ONLY;
}

static const char *read_formula(reader *r, const fini_block *block, const fini_node *node,
                                fini_formula **formula)
{
    if (node)
        FINI_ASK(&r->ask, fini_formula_read(r->study, block, node, formula, r->ask.err));
    return node ? node->text : NULL;
}

/* from, where, take, reduce, against. */
static void read_measure(reader *r, const fini_node *map, const char *what,
                         const fini_block *fallback, fini_measure *m)
{
    const fini_node *against = fini_node_get(map, "against");
    FINI_ASK(&r->ask, fini_from_read(r->study, map, fallback, &m->block, r->ask.err));
    FINI_ASK(&r->ask, fini_where_read(r->study, m->block, map, &m->where, r->ask.err));
    m->take_text = read_formula(r, m->block, need(r, map, what, "take"), &m->take);
    m->reduce = read_reduce(r, map);
    if (against && m->reduce != FINI_REDUCE_SLOPE)
        FINI_ASK(&r->ask, fini_node_fail_key(r->ask.tree, against, r->ask.err,
                                             "'against' is for 'reduce: slope' alone"));
    if (!against && m->reduce == FINI_REDUCE_SLOPE)
        FINI_ASK_FAIL(&r->ask, fini_node_get(map, "reduce"),
                      "a slope needs 'against', such as against: log(L)");
    m->against_text = read_formula(r, m->block, against, &m->against);
}

/* ---- several measures and a formula of them -------------------------------------------------- */

static void check_value_name(reader *r, const fini_node *node)
{
    const char *name = node->name;
    size_t length = strlen(name);
    if (length == 0 || length >= ID_LENGTH || strspn(name, name_characters) != length ||
        (name[0] >= '0' && name[0] <= '9') || strcmp(name, "pi") == 0 || strcmp(name, "inf") == 0)
        FINI_ASK(&r->ask,
                 fini_node_fail_key(r->ask.tree, node, r->ask.err,
                                    "the name of a value is made of letters, digits and _, does "
                                    "not begin with a digit, and is not pi or inf"));
}

static void check_quantity(reader *r, const fini_node *node, const fini_claim_plan *plan)
{
    const char *names[MEASURES_MOST];
    for (int i = 0; i < plan->count; i++)
        names[i] = plan->measures[i].name;
    for (int i = 0; !r->ask.status && i < fini_formula_name_count(plan->quantity); i++) {
        const char *name = fini_formula_name(plan->quantity, i);
        int k = 0;
        while (k < plan->count && strcmp(name, names[k]) != 0)
            k++;
        if (k == plan->count)
            FINI_ASK_FAIL(&r->ask, node, "'quantity' has '%s', which is none of the 'values'%s",
                          name, fini_did_you_mean(fin_nearest_name(name, names, plan->count), ""));
    }
}

static void read_values(reader *r, const fini_node *claim, const fini_block *block,
                        fini_claim_plan *plan)
{
    static const char *const keys[] = {"from", "where", "take", "reduce", "against", "each", NULL};
    const fini_node *values = fini_node_get(claim, "values");
    for (int i = 0; i < values->count && !r->ask.status; i++) {
        const fini_node *value = &values->child[i];
        plan->measures[i].name = value->name;
        plan->count = i + 1; /* now, so that a half-read one is freed */
        check_value_name(r, value);
        fini_ask_keys(&r->ask, value, "a value", keys);
        if (!r->ask.status)
            read_measure(r, value, "the value", block, &plan->measures[i]);
    }
    const fini_node *node = need(r, claim, "a claim with 'values'", "quantity");
    plan->quantity_text = read_formula(r, NULL, node, &plan->quantity);
    check_quantity(r, node, plan);
}

/* `take` of one block, or `values` and `quantity`. */
static void read_quantity(reader *r, const fini_node *claim, fini_claim_plan *plan)
{
    static const char *const single[] = {"take", "reduce", "against", "where"};
    const fini_node *values = fini_node_get(claim, "values");
    const fini_node *quantity = fini_node_get(claim, "quantity");
    const fini_block *block = NULL;
    FINI_ASK(&r->ask, fini_from_read(r->study, claim, &r->study->blocks[0], &block, r->ask.err));
    if (values && (values->kind != FINI_MAP || values->count < 1 || values->count > MEASURES_MOST))
        FINI_ASK_FAIL(&r->ask, values, "'values' must be a map of 1 to %d named numbers",
                      MEASURES_MOST);
    for (int i = 0; i < 4 && values; i++) {
        const fini_node *extra = fini_node_get(claim, single[i]);
        if (extra)
            FINI_ASK(&r->ask, fini_node_fail_key(r->ask.tree, extra, r->ask.err,
                                                 "a claim with 'values' has '%s' in each of them",
                                                 single[i]));
    }
    if (!values && quantity)
        FINI_ASK(&r->ask, fini_node_fail_key(r->ask.tree, quantity, r->ask.err,
                                             "'quantity' is a formula of 'values', which the claim "
                                             "has not; use 'take' for a formula of runs"));
    if (r->ask.status)
        return;
    int count = values ? values->count : 1;
    plan->measures = fini_alloc_array(count, sizeof *plan->measures);
    if (!plan->measures) {
        r->ask.status =
            fini_fail_memory(r->ask.err, (size_t)count * sizeof *plan->measures, "a claim");
        return;
    }
    memset(plan->measures, 0, (size_t)count * sizeof *plan->measures);
    plan->count = values ? 0 : 1;
    if (values)
        read_values(r, claim, block, plan);
    else
        read_measure(r, claim, "a claim", block, &plan->measures[0]);
}

/* ---- what is expected ------------------------------------------------------------------------ */

static void number_text(double number, char *text, size_t size)
{
    for (int digits = 6; digits <= 17; digits++) {
        fini_print_double(number, digits, text, size);
        if (fini_strtod(text, NULL) == number)
            return;
    }
}

static void read_between(reader *r, const fini_node *node, fini_claim_plan *plan)
{
    if (node->kind != FINI_LIST || node->count != 2 || node->child[0].kind != FINI_TEXT ||
        node->child[1].kind != FINI_TEXT || !fini_read_number(node->child[0].text, &plan->low) ||
        !fini_read_number(node->child[1].text, &plan->high) || !(plan->low <= plan->high) ||
        isinf(plan->low) || isinf(plan->high))
        FINI_ASK_FAIL(&r->ask, node,
                      "'between' takes two finite numbers, the smaller one first: [0.35, 0.65]; a "
                      "claim with one bound has at_most or at_least");
}

static void read_bounds(reader *r, const fini_node *node, fini_claim_plan *plan)
{
    char a[32], b[32];
    plan->low = -INFINITY;
    plan->high = INFINITY;
    if (fini_node_get(node, "between")) {
        read_between(r, fini_node_get(node, "between"), plan);
        number_text(plan->low, a, sizeof a);
        number_text(plan->high, b, sizeof b);
        snprintf(plan->expected, sizeof plan->expected, "%s to %s", a, b);
    } else if (fini_node_get(node, "equal")) {
        double value = fini_ask_number(&r->ask, node, "equal", NAN);
        double tolerance = fini_ask_number(&r->ask, node, "tolerance", 0);
        if (!(tolerance >= 0 && tolerance < INFINITY && fabs(value) < INFINITY))
            FINI_ASK_FAIL(&r->ask, node,
                          "'equal' must be finite and 'tolerance' finite, 0 or more");
        plan->low = value - tolerance;
        plan->high = value + tolerance;
        number_text(value, a, sizeof a);
        number_text(tolerance, b, sizeof b);
        snprintf(plan->expected, sizeof plan->expected, tolerance > 0 ? "%s +- %s" : "%s", a, b);
    } else {
        bool most = fini_node_get(node, "at_most") != NULL;
        double bound = fini_ask_number(&r->ask, node, most ? "at_most" : "at_least", NAN);
        if (isinf(bound)) /* every number would do, or none */
            FINI_ASK_FAIL(&r->ask, node, "the bound of a claim must be finite");
        *(most ? &plan->high : &plan->low) = bound;
        number_text(bound, a, sizeof a);
        snprintf(plan->expected, sizeof plan->expected, "at %s %s", most ? "most" : "least", a);
    }
}

static void read_expect(reader *r, const fini_node *claim, fini_claim_plan *plan)
{
    static const char *const keys[] = {"equal",    "tolerance", "at_most",
                                       "at_least", "between",   NULL};
    const fini_node *node = fini_node_get(claim, "expect");
    if (!node) {
        FINI_ASK_FAIL(&r->ask, claim, "a claim has no 'expect', such as expect: {at_most: 5}");
        return;
    }
    fini_ask_keys(&r->ask, node, "'expect'", keys);
    int kinds = 0;
    for (int i = 0; keys[i]; i++)
        kinds += i != 1 && fini_node_get(node, keys[i]) != NULL;
    if (kinds != 1 || (fini_node_get(node, "tolerance") && !fini_node_get(node, "equal")))
        FINI_ASK_FAIL(&r->ask, node,
                      "'expect' takes one of {equal: x, tolerance: t}, {at_most: x}, {at_least: x} "
                      "and {between: [a, b]}");
    read_bounds(r, node, plan);
    const fini_node *precision = fini_node_get(claim, "precision");
    if (precision)
        FINI_ASK(&r->ask,
                 fini_node_fail_key(r->ask.tree, precision, r->ask.err,
                                    "claims have no 'precision' any more: one holds if all of "
                                    "its 95 %% interval is inside what is expected; leave the "
                                    "line out, and take more samples or runs where it says "
                                    "undecided"));
}

/* ---- a claim --------------------------------------------------------------------------------- */

bool fini_is_id(const char *text)
{
    size_t length = strlen(text), good = 0;
    while (good < length && (text[good] == '-' || strchr(name_characters, text[good])))
        good++;
    return length >= 1 && length <= ID_LENGTH && good == length;
}

/* Whose claim it is; in a file that does not say it, its writer's. */
static fin_kind read_kind(reader *r, const fini_node *claim)
{
    const fini_node *node = fini_node_get(claim, "kind");
    const char *given = fini_ask_text(&r->ask, claim, "kind", "derived");
    for (int i = 0; i < FIN_KINDS && !r->ask.status; i++)
        if (strcmp(given, kind_words[i]) == 0)
            return (fin_kind)i;
    FINI_ASK_FAIL(&r->ask, node, "there is no kind of claim '%.40s'%s", given,
                  fini_did_you_mean(fin_nearest_name(given, kind_words, FIN_KINDS),
                                    "; there are paper, derived and check"));
    return FIN_KIND_DERIVED;
}

static void read_words(reader *r, const fini_node *claim, fini_claim_plan *plan)
{
    const char *near;
    const fini_node *id = need(r, claim, "a claim", "id");
    if (id && !fini_is_id(id->text))
        FINI_ASK_FAIL(&r->ask, id, "the id '%.70s' must have 1 to %d letters, digits, - or _",
                      id->text, ID_LENGTH);
    const fini_node *statement = need(r, claim, "a claim", "statement");
    plan->source =
        fini_ask_text(&r->ask, claim, "source", r->study->source ? r->study->source : "");
    plan->figure = fini_ask_text(&r->ask, claim, "figure", "");
    if (plan->figure[0] && !fini_study_figure(r->study, plan->figure, &near))
        FINI_ASK_FAIL(&r->ask, fini_node_get(claim, "figure"), "there is no figure '%.64s'%s",
                      plan->figure, fini_did_you_mean(near, ""));
    plan->kind = read_kind(r, claim);
    plan->fails_if = fini_ask_text(&r->ask, claim, "fails_if", "");
    plan->known = fini_ask_text(&r->ask, claim, "known", "");
    plan->key = fini_ask_text(&r->ask, claim, "key", "");
    plan->id = id ? id->text : "";
    plan->statement = statement ? statement->text : "";
}

/* What is half-read stays in the plan, for fini_claims_free. */
static fin_status read_claim(const fin_study *study, const fini_node *node, fini_claim_plan *plan,
                             fin_error *err)
{
    static const char *const keys[] = {"id",     "statement", "source",  "from",   "where",
                                       "take",   "reduce",    "against", "values", "quantity",
                                       "expect", "precision", "figure",  "each",   "kind",
                                       "known",  "fails_if",  "key",     NULL};
    reader r = {study, {study->tree, err, FIN_OK}};
    fini_ask_keys(&r.ask, node, "a claim", keys);
    read_words(&r, node, plan);
    read_quantity(&r, node, plan);
    read_expect(&r, node, plan);
    return r.ask.status;
}

fin_status fini_claims_read(fin_study *study, const fini_node *list, fin_error *err)
{
    if (list->count > CLAIMS_MOST)
        return fini_node_fail(study->tree, list, err, "there are %d claims; the most is %d",
                              list->count, CLAIMS_MOST);
    FINI_ROOM(err, "claims", study->claims, list->count, 1);
    memset(study->claims, 0, (size_t)list->count * sizeof *study->claims);
    while (study->claim_count < list->count) {
        int i = study->claim_count++;
        FINI_TRY(read_claim(study, &list->child[i], &study->claims[i], err));
        for (int k = 0; k < i; k++)
            if (strcmp(study->claims[k].id, study->claims[i].id) == 0)
                return fini_node_fail(study->tree, fini_node_get(&list->child[i], "id"), err,
                                      "there are two claims '%s'; the first one is in line %d",
                                      study->claims[i].id,
                                      fini_node_get(&list->child[k], "id")->line);
    }
    return FIN_OK;
}

void fini_claims_free(fin_study *study)
{
    for (int k = 0; k < study->claim_count; k++) {
        fini_claim_plan *plan = &study->claims[k];
        for (int i = 0; i < plan->count; i++) {
            fini_where_free(&plan->measures[i].where);
            fini_formula_destroy(plan->measures[i].take);
            fini_formula_destroy(plan->measures[i].against);
        }
        fini_free(plan->measures);
        fini_formula_destroy(plan->quantity);
    }
    fini_free(study->claims);
    study->claims = NULL;
    study->claim_count = 0;
}
