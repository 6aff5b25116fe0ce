/* What the file says about claims: checked, with line and column, and parsed.
 *
 * The same function serves the check when a study is read and the judge later, so that they cannot
 * differ. Names in formulas and in `where` are looked up in the settings of the block's first run
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

static const char *const name_characters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";

/* ---- one measure ----------------------------------------------------------------------------- */

/* A text that must stand in the map. */
static fin_status need(const fin_study *study, const fini_node *map, const char *what,
                       const char *key, const fini_node **child, fin_error *err)
{
    *child = fini_node_get(map, key);
    if (!*child)
        return fini_node_fail(study->tree, map, err, "%s has no '%s'", what, key);
    if ((*child)->kind != FINI_TEXT)
        return fini_node_fail(study->tree, *child, err, "'%s' must be a text", key);
    return FIN_OK;
}

static fin_status read_reduce(const fin_study *study, const fini_node *map, fini_reduce *reduce,
                              fin_error *err)
{
    const fini_node *node = fini_node_get(map, "reduce");
    *reduce = FINI_REDUCE_ONLY;
    if (!node)
        return FIN_OK;
    const char *given = node->kind == FINI_TEXT ? node->text : "";
    for (int i = 0; i < FINI_REDUCTIONS; i++)
        if (strcmp(given, reduce_words[i]) == 0) {
            *reduce = (fini_reduce)i;
            return FIN_OK;
        }
    const char *near = fin_nearest_name(given, reduce_words, FINI_REDUCTIONS);
    return fini_node_fail(
        study->tree, node, err, "there is no reduction '%.40s'%s", given,
        fini_did_you_mean(near,
                          "; there are only, first, last, min, max, mean, median, sum, count, "
                          "share and slope"));
}

/* from, where, take, reduce, against. */
static fin_status read_measure(const fin_study *study, const fini_node *map, const char *what,
                               const fini_block *fallback, fini_measure *m, fin_error *err)
{
    const fini_node *take, *against = fini_node_get(map, "against");
    fin_status status = fini_from_read(study, map, fallback, &m->block, err);
    if (!status)
        status = fini_where_read(study, m->block, map, &m->where, err);
    if (!status)
        status = need(study, map, what, "take", &take, err);
    if (!status)
        status = fini_formula_read(study, m->block, take, &m->take, err);
    if (!status)
        status = read_reduce(study, map, &m->reduce, err);
    if (status)
        return status;
    m->take_text = take->text;
    if ((m->reduce == FINI_REDUCE_SLOPE) != (against != NULL))
        return against ? fini_node_fail_key(study->tree, against, err,
                                            "'against' is for 'reduce: slope' alone")
                       : fini_node_fail(study->tree, fini_node_get(map, "reduce"), err,
                                        "a slope needs 'against', such as against: log(L)");
    if (!against)
        return FIN_OK;
    m->against_text = against->text;
    return fini_formula_read(study, m->block, against, &m->against, err);
}

/* ---- several measures and a formula of them -------------------------------------------------- */

static fin_status check_value_name(const fin_study *study, const fini_node *node, fin_error *err)
{
    const char *name = node->name;
    size_t length = strlen(name);
    if (length == 0 || length >= ID_LENGTH || strspn(name, name_characters) != length ||
        (name[0] >= '0' && name[0] <= '9') || strcmp(name, "pi") == 0 || strcmp(name, "inf") == 0)
        return fini_node_fail_key(study->tree, node, err,
                                  "the name of a value is made of letters, digits and _, does not "
                                  "begin with a digit, and is not pi or inf");
    return FIN_OK;
}

static fin_status check_quantity(const fin_study *study, const fini_node *node,
                                 const fini_claim_plan *plan, fin_error *err)
{
    const char *names[MEASURES_MOST];
    for (int i = 0; i < plan->count; i++)
        names[i] = plan->measures[i].name;
    for (int i = 0; i < fini_formula_name_count(plan->quantity); i++) {
        const char *name = fini_formula_name(plan->quantity, i), *near;
        int k = 0;
        while (k < plan->count && strcmp(name, names[k]) != 0)
            k++;
        if (k < plan->count)
            continue;
        near = fin_nearest_name(name, names, plan->count);
        return fini_node_fail(study->tree, node, err,
                              "'quantity' has '%s', which is none of the 'values'%s", name,
                              fini_did_you_mean(near, ""));
    }
    return FIN_OK;
}

static fin_status read_values(const fin_study *study, const fini_node *claim,
                              const fini_block *block, fini_claim_plan *plan, fin_error *err)
{
    static const char *const keys[] = {"from", "where", "take", "reduce", "against", "each", NULL};
    const fini_node *values = fini_node_get(claim, "values"), *node;
    for (int i = 0; i < values->count; i++) {
        const fini_node *value = &values->child[i];
        fini_measure *m = &plan->measures[i];
        m->name = value->name;
        plan->count = i + 1; /* now, so that a half-read one is freed */
        fin_status status = check_value_name(study, value, err);
        if (!status)
            status = fini_node_keys(study->tree, value, "a value", keys, err);
        if (!status)
            status = read_measure(study, value, "the value", block, m, err);
        if (status)
            return status;
    }
    fin_status status = need(study, claim, "a claim with 'values'", "quantity", &node, err);
    if (!status)
        status = fini_formula_read(study, NULL, node, &plan->quantity, err);
    if (status)
        return status;
    plan->quantity_text = node->text;
    return check_quantity(study, node, plan, err);
}

/* `take` of one block, or `values` and `quantity`. */
static fin_status read_quantity(const fin_study *study, const fini_node *claim,
                                fini_claim_plan *plan, fin_error *err)
{
    const fini_node *values = fini_node_get(claim, "values");
    const fini_block *block;
    fin_status status = fini_from_read(study, claim, &study->blocks[0], &block, err);
    if (status)
        return status;
    if (values && (values->kind != FINI_MAP || values->count < 1 || values->count > MEASURES_MOST))
        return fini_node_fail(study->tree, values, err,
                              "'values' must be a map of 1 to %d named numbers", MEASURES_MOST);
    static const char *const single[] = {"take", "reduce", "against", "where"};
    for (int i = 0; i < 4 && values; i++) {
        const fini_node *extra = fini_node_get(claim, single[i]);
        if (extra)
            return fini_node_fail_key(study->tree, extra, err,
                                      "a claim with 'values' has '%s' in each of them", single[i]);
    }
    const fini_node *quantity = fini_node_get(claim, "quantity");
    if (!values && quantity)
        return fini_node_fail_key(study->tree, quantity, err,
                                  "'quantity' is a formula of 'values', which the claim has not; "
                                  "use 'take' for a formula of runs");
    int count = values ? values->count : 1;
    plan->measures = fini_alloc_array(count, sizeof *plan->measures);
    if (!plan->measures)
        return fini_fail_memory(err, (size_t)count * sizeof *plan->measures, "a claim");
    memset(plan->measures, 0, (size_t)count * sizeof *plan->measures);
    if (values)
        return read_values(study, claim, block, plan, err);
    plan->count = 1;
    return read_measure(study, claim, "a claim", block, &plan->measures[0], err);
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

static fin_status read_between(const fin_study *study, const fini_node *node, fini_claim_plan *plan,
                               fin_error *err)
{
    if (node->kind != FINI_LIST || node->count != 2 || node->child[0].kind != FINI_TEXT ||
        node->child[1].kind != FINI_TEXT || !fini_read_number(node->child[0].text, &plan->low) ||
        !fini_read_number(node->child[1].text, &plan->high) || !(plan->low <= plan->high) ||
        isinf(plan->low) || isinf(plan->high))
        return fini_node_fail(study->tree, node, err,
                              "'between' takes two finite numbers, the smaller one first: [0.35, "
                              "0.65]; a claim with one bound has at_most or at_least");
    return FIN_OK;
}

static fin_status read_bounds(const fin_study *study, const fini_node *node, fini_claim_plan *plan,
                              fin_error *err)
{
    double value = 0, tolerance = 0;
    char a[32], b[32];
    fin_status status = FIN_OK;
    plan->low = -INFINITY;
    plan->high = INFINITY;
    if (fini_node_get(node, "between")) {
        status = read_between(study, fini_node_get(node, "between"), plan, err);
        number_text(plan->low, a, sizeof a);
        number_text(plan->high, b, sizeof b);
        snprintf(plan->expected, sizeof plan->expected, "%s to %s", a, b);
    } else if (fini_node_get(node, "equal")) {
        status = fini_node_number(study->tree, node, "equal", NAN, &value, err);
        if (!status)
            status = fini_node_number(study->tree, node, "tolerance", 0, &tolerance, err);
        if (!status && !(tolerance >= 0 && tolerance < INFINITY && fabs(value) < INFINITY))
            return fini_node_fail(study->tree, node, err,
                                  "'equal' must be finite and 'tolerance' finite, 0 or more");
        plan->low = value - tolerance;
        plan->high = value + tolerance;
        number_text(value, a, sizeof a);
        number_text(tolerance, b, sizeof b);
        snprintf(plan->expected, sizeof plan->expected, tolerance > 0 ? "%s +- %s" : "%s", a, b);
    } else {
        bool most = fini_node_get(node, "at_most") != NULL;
        double *bound = most ? &plan->high : &plan->low;
        status =
            fini_node_number(study->tree, node, most ? "at_most" : "at_least", NAN, bound, err);
        if (!status && isinf(*bound)) /* every number would do, or none */
            status = fini_node_fail(study->tree, node, err, "the bound of a claim must be finite");
        number_text(*bound, a, sizeof a);
        snprintf(plan->expected, sizeof plan->expected, "at %s %s", most ? "most" : "least", a);
    }
    return status;
}

static fin_status read_expect(const fin_study *study, const fini_node *claim, fini_claim_plan *plan,
                              fin_error *err)
{
    static const char *const keys[] = {"equal",    "tolerance", "at_most",
                                       "at_least", "between",   NULL};
    const fini_node *node = fini_node_get(claim, "expect");
    if (!node)
        return fini_node_fail(study->tree, claim, err,
                              "a claim has no 'expect', such as expect: {at_most: 5}");
    fin_status status = fini_node_keys(study->tree, node, "'expect'", keys, err);
    if (status)
        return status;
    int kinds = 0;
    for (int i = 0; keys[i]; i++)
        kinds += i != 1 && fini_node_get(node, keys[i]) != NULL;
    if (kinds != 1 || (fini_node_get(node, "tolerance") && !fini_node_get(node, "equal")))
        return fini_node_fail(study->tree, node, err,
                              "'expect' takes one of {equal: x, tolerance: t}, {at_most: x}, "
                              "{at_least: x} and {between: [a, b]}");
    status = read_bounds(study, node, plan, err);
    if (!status)
        status = fini_node_number(study->tree, claim, "precision", INFINITY, &plan->precision, err);
    if (!status && !(plan->precision > 0))
        status = fini_node_fail(study->tree, fini_node_get(claim, "precision"), err,
                                "'precision' must be larger than 0");
    return status;
}

/* ---- a claim --------------------------------------------------------------------------------- */

bool fini_is_id(const char *text)
{
    size_t length = strlen(text), good = 0;
    while (good < length && (text[good] == '-' || strchr(name_characters, text[good])))
        good++;
    return length >= 1 && length <= ID_LENGTH && good == length;
}

/* Is there such a figure? The figures' own form is not looked at here. */
static fin_status check_figure(const fin_study *study, const fini_node *claim, const char *figure,
                               fin_error *err)
{
    const char *near = NULL;
    int count = study->figures ? study->figures->count : 0;
    for (int i = 0; i < count; i++) {
        const fini_node *id = fini_node_get(&study->figures->child[i], "id");
        if (!id || id->kind != FINI_TEXT)
            continue;
        if (strcmp(id->text, figure) == 0)
            return FIN_OK;
        if (!near)
            near = fin_nearest_name(figure, &id->text, 1);
    }
    return fini_node_fail(study->tree, fini_node_get(claim, "figure"), err,
                          "there is no figure '%.64s'%s", figure, fini_did_you_mean(near, ""));
}

static fin_status read_words(const fin_study *study, const fini_node *claim, fini_claim_plan *plan,
                             fin_error *err)
{
    const fini_node *id, *statement;
    fin_status status = need(study, claim, "a claim", "id", &id, err);
    if (!status && !fini_is_id(id->text))
        status = fini_node_fail(study->tree, id, err,
                                "the id '%.70s' must have 1 to %d letters, digits, - or _",
                                id->text, ID_LENGTH);
    if (!status)
        status = need(study, claim, "a claim", "statement", &statement, err);
    if (!status)
        status = fini_node_text(study->tree, claim, "source", study->source ? study->source : "",
                                &plan->source, err);
    if (!status)
        status = fini_node_text(study->tree, claim, "figure", "", &plan->figure, err);
    if (!status && plan->figure[0])
        status = check_figure(study, claim, plan->figure, err);
    if (status)
        return status;
    plan->id = id->text;
    plan->statement = statement->text;
    return FIN_OK;
}

/* What is half-read stays in the plan, for fini_claims_free. */
static fin_status read_claim(const fin_study *study, const fini_node *node, fini_claim_plan *plan,
                             fin_error *err)
{
    static const char *const keys[] = {"id",     "statement", "source",  "from",   "where",
                                       "take",   "reduce",    "against", "values", "quantity",
                                       "expect", "precision", "figure",  "each",   NULL};
    fin_status status = fini_node_keys(study->tree, node, "a claim", keys, err);
    if (!status)
        status = read_words(study, node, plan, err);
    if (!status)
        status = read_quantity(study, node, plan, err);
    return status ? status : read_expect(study, node, plan, err);
}

fin_status fini_claims_read(fin_study *study, const fini_node *list, fin_error *err)
{
    if (list->count > CLAIMS_MOST)
        return fini_node_fail(study->tree, list, err, "there are %d claims; the most is %d",
                              list->count, CLAIMS_MOST);
    study->claims = fini_alloc_array(list->count, sizeof *study->claims);
    if (!study->claims)
        return fini_fail_memory(err, (size_t)list->count * sizeof *study->claims, "claims");
    memset(study->claims, 0, (size_t)list->count * sizeof *study->claims);
    fin_status status = FIN_OK;
    while (study->claim_count < list->count && !status) {
        int i = study->claim_count++;
        status = read_claim(study, &list->child[i], &study->claims[i], err);
        for (int k = 0; k < i && !status; k++)
            if (strcmp(study->claims[k].id, study->claims[i].id) == 0)
                status =
                    fini_node_fail(study->tree, fini_node_get(&list->child[i], "id"), err,
                                   "there are two claims '%s'; the first one is in line %d",
                                   study->claims[i].id, fini_node_get(&list->child[k], "id")->line);
    }
    return status;
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
