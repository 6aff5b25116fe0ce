/* Families of claims and figures: `each`, groups, and what is refused of them. */
#include "test_data.h"

#include "fault.h"
#include "study/claim.h"

static fin_error err;

/* The claims and figures of these begin in line 11. */
static const char *const head = "study: s\n"
                                "runs:\n"
                                "  - id: grid\n"
                                "    command: rate\n"
                                "    axes: {d: [2, 3], keys: [sphere, vmf], L: [64, 128]}\n"
                                "  - id: circle\n"
                                "    command: rate\n"
                                "    set: {d: 2}\n"
                                "    axes: {L: [64, 128]}\n"
                                "  - {command: risk}\n";

static fin_study *study_of(const char *rest)
{
    static char text[16384];
    fin_study *study;
    snprintf(text, sizeof text, "%s%s", head, rest);
    if (fin_study_parse(text, strlen(text), "s.yaml", NULL, &study, &err))
        fail_msg("%s: %s", rest, err.message);
    return study;
}

/* "id: statement; take where a, b" of claim i. */
static void expect_claim(const fin_study *study, int i, const char *wanted)
{
    char text[1024];
    assert_true(i < study->claim_count);
    const fini_claim_plan *plan = &study->claims[i];
    int used = snprintf(text, sizeof text, "%s: %s", plan->id, plan->statement);
    for (int m = 0; m < plan->count; m++) {
        const fini_measure *measure = &plan->measures[m];
        used += snprintf(text + used, sizeof text - (size_t)used, "; %s of %s", measure->take_text,
                         measure->block->id);
        for (int c = 0; c < measure->where.count; c++)
            used +=
                snprintf(text + used, sizeof text - (size_t)used, " %s", measure->where.clauses[c]);
    }
    assert_string_equal(text, wanted);
}

static void each__makes_every_combination(void **state)
{
    (void)state;
    fin_study *study = study_of("claims:\n"
                                "  - id: rate-slope\n"
                                "    statement: \"d = {d}, {keys}\"\n"
                                "    each: {d: [2, 3], keys: [sphere, vmf]}\n"
                                "    where: L >= 64\n"
                                "    take: log(rmse)\n"
                                "    against: log(L)\n"
                                "    reduce: slope\n"
                                "    expect: {equal: -0.5, tolerance: 1}\n");
    assert_int_equal(fin_study_claim_count(study), 4);
    expect_claim(study, 0,
                 "rate-slope-d2-sphere: d = 2, sphere; log(rmse) of grid L>=64 d=2 keys=sphere");
    expect_claim(study, 1, "rate-slope-d2-vmf: d = 2, vmf; log(rmse) of grid L>=64 d=2 keys=vmf");
    expect_claim(study, 2,
                 "rate-slope-d3-sphere: d = 3, sphere; log(rmse) of grid L>=64 d=3 keys=sphere");
    expect_claim(study, 3, "rate-slope-d3-vmf: d = 3, vmf; log(rmse) of grid L>=64 d=3 keys=vmf");
    fin_study_destroy(study);
}

static void each__gives_words_and_numbers(void **state)
{
    (void)state;
    fin_study *study =
        study_of("claims:\n"
                 "  - id: a-{shape}-{keys}\n"
                 "    statement: \"{keys} keys on the {shape}, {rank}{d} {0} {}\"\n"
                 "    each:\n"
                 "      d: {2: {shape: circle, rank: 5}, 3: {shape: sphere, rank: 9}}\n"
                 "      keys: {vmf: skewed}\n"
                 "    take: rmse / {rank}\n"
                 "    reduce: max\n"
                 "    expect: {at_most: '{rank}'}\n"
                 "  - id: least\n"
                 "    statement: S\n"
                 "    each: {lam: [0.1, -2], keys: {sphere: uniform}}\n"
                 "    take: rmse\n"
                 "    reduce: min\n"
                 "    expect: {at_most: 1}\n");
    expect_claim(study, 0,
                 "a-circle-skewed: skewed keys on the circle, 52 {0} {}; rmse / 5 of grid d=2 "
                 "keys=vmf");
    expect_claim(study, 1,
                 "a-sphere-skewed: skewed keys on the sphere, 93 {0} {}; rmse / 9 of grid d=3 "
                 "keys=vmf");
    assert_true(study->claims[1].high == 9);
    expect_claim(study, 2, "least-lam0_1-uniform: S; rmse of grid lam=0.1 keys=sphere");
    expect_claim(study, 3, "least-lam-2-uniform: S; rmse of grid lam=-2 keys=sphere");
    fin_study_destroy(study);
}

/* Blocks without the setting, a `where` that names it, values with blocks of their own. */
static void each__adds_conditions_where_they_fit(void **state)
{
    (void)state;
    fin_study *study = study_of("claims:\n"
                                "  - id: v-{d}-{block}\n"
                                "    statement: S\n"
                                "    each: {d: [3], block: [grid, circle]}\n"
                                "    values:\n"
                                "      a: {from: '{block}', take: rmse, reduce: min}\n"
                                "      b: {from: risk, where: L = 10, take: risk}\n"
                                "      c: {where: d != 3, take: rmse, reduce: max}\n"
                                "    quantity: a + b + c\n"
                                "    expect: {at_most: 1}\n"
                                "  - id: other\n"
                                "    statement: S\n"
                                "    each: {keys: [vmf]}\n"
                                "    from: risk\n"
                                "    take: risk\n"
                                "    expect: {at_most: 1}\n");
    expect_claim(study, 0,
                 "v-3-grid: S; rmse of grid d=3; risk of risk L=10 d=3; rmse of grid d!=3");
    expect_claim(study, 1,
                 "v-3-circle: S; rmse of circle d=3; risk of risk L=10 d=3; rmse of grid d!=3");
    expect_claim(study, 2, "other-vmf: S; risk of risk");
    fin_study_destroy(study);
}

static void groups__give_what_members_do_not_say(void **state)
{
    (void)state;
    fin_study *study =
        study_of("claims:\n"
                 "  - source: the group\n"
                 "    each: {d: {2: circle, 3: sphere}}\n"
                 "    reduce: max\n"
                 "    expect: {at_most: 1}\n"
                 "    claims:\n"
                 "      - {id: 'one-{d}', statement: 'one, {d}', take: rmse}\n"
                 "      - {id: two, statement: two, take: bias, source: its own, each: {keys: "
                 "[vmf]}}\n"
                 "      - {from: circle, claims: [{id: three, statement: three, take: rmse}]}\n"
                 "  - {id: last, statement: S, from: risk, take: risk, expect: {equal: 1}}\n");
    assert_int_equal(study->claim_count, 7);
    expect_claim(study, 0, "one-circle: one, circle; rmse of grid d=2");
    expect_claim(study, 1, "two-circle-vmf: two; bias of grid d=2 keys=vmf");
    expect_claim(study, 2, "three-circle: three; rmse of circle d=2");
    expect_claim(study, 3, "one-sphere: one, sphere; rmse of grid d=3");
    expect_claim(study, 6, "last: S; risk of risk");
    assert_string_equal(study->claims[0].source, "the group");
    assert_string_equal(study->claims[1].source, "its own");
    assert_int_equal(study->claims[5].measures[0].reduce, FINI_REDUCE_MAX);
    assert_int_equal(study->claims[6].measures[0].reduce, FINI_REDUCE_ONLY);
    fin_study_destroy(study);
}

static void figures__have_families_and_lines(void **state)
{
    (void)state;
    fin_study *study =
        study_of("figures:\n"
                 "  - id: error-{d}\n"
                 "    title: \"on the {d}\"\n"
                 "    each: {d: {2: circle, 3: sphere}}\n"
                 "    kind: lines\n"
                 "    x: {take: L}\n"
                 "    lines:\n"
                 "      - style: points\n"
                 "        lines: [{take: rmse, each: {keys: [sphere, vmf]}, label: '{keys}'}]\n"
                 "      - {from: circle, take: rmse, style: dashed}\n");
    assert_int_equal(study->figures->count, 2);
    const fini_node *second = &study->figures->child[1];
    assert_string_equal(fini_node_get(second, "id")->text, "error-sphere");
    assert_string_equal(fini_node_get(second, "title")->text, "on the sphere");
    const fini_node *lines = fini_node_get(second, "lines");
    assert_int_equal(lines->count, 3);
    assert_string_equal(fini_node_get(&lines->child[1], "label")->text, "vmf");
    assert_string_equal(fini_node_get(&lines->child[1], "style")->text, "points");
    fini_where where;
    const char *const clauses[][3] = {{"keys=sphere"}, {"keys=vmf"}, {"d=3"}};
    for (int i = 0; i < 3; i++) {
        const fini_block *block;
        assert_ok(fini_from_read(study, &lines->child[i], study->blocks, &block, &err));
        assert_ok(fini_where_read(study, block, &lines->child[i], &where, &err));
        assert_int_equal(where.count, 1);
        assert_string_equal(where.clauses[0], clauses[i][0]);
        fini_where_free(&where);
    }
    assert_ok(fini_where_read(study, study->blocks, second, &where, &err));
    assert_int_equal(where.count, 1);
    assert_string_equal(where.clauses[0], "d=3");
    fini_where_free(&where);
    fin_study_destroy(study);
}

static void refuses(const char *rest, const char *place, const char *part)
{
    char text[8192], where[64];
    fin_study *study;
    snprintf(text, sizeof text, "%s%s", head, rest);
    fin_status status = fin_study_parse(text, strlen(text), "s.yaml", NULL, &study, &err);
    snprintf(where, sizeof where, "s.yaml:%s", place);
    if (!status || study || !strstr(err.message, part) ||
        strncmp(err.message, where, strlen(where)))
        fail_msg("%s: %s: '%s' has not '%s' and '%s'", rest, fin_status_name(status), err.message,
                 where, part);
}

/* One claim in line 12 with this `each`, which begins in column 45. */
static void refuses_each(const char *each, const char *place, const char *part)
{
    char claims[1024];
    snprintf(claims, sizeof claims,
             "claims:\n"
             "  - {id: c, statement: 'S of {keyz}', each: %s, take: rmse, expect: {equal: 1}}\n",
             each);
    refuses(claims, place, part);
}

static void each__says_what_is_wrong(void **state)
{
    (void)state;
    refuses_each("{keys: [vmf]}", "12:", "'each' has no 'keyz' for {keyz}; did you mean 'keys'?");
    refuses_each("[2]", "12:45: ", "'each' must be a map");
    refuses_each("2", "12:45: ", "'each' must be a map");
    refuses_each("{keyz: 2}", "12:52: ", "needs a list of values");
    refuses_each("{keyz: []}", "12:52: ", "needs a list of values");
    refuses_each("{keyz: [[2]]}", "12:53: ", "lists of values");
    refuses_each("{keyz: {2: [3]}}", "12:", "lists of values");
    refuses_each("{keyz: {2: {a: [3]}}}", "12:", "lists of values");
    refuses_each("{keyz: ['']}", "12:53: ", "lists of values");
    refuses_each("{keyz: [1], keyss: [2]}", "12:57: ",
                 "'keyss' is no setting of the runs, and no text has {keyss}; did you mean keys?");
    refuses("claims:\n"
            "  - {id: 'c', statement: S, each: {d: [2, 2]}, take: rmse, expect: {equal: 1}}\n",
            "12:10: ", "two claims 'c-d2'");
    refuses("claims:\n"
            "  - {id: c, statement: S, values: {a: {each: {d: [2]}, take: rmse}}, quantity: a}\n",
            "12:40: ", "'each' stands in a claim, a figure or a line");
    refuses("claims:\n  - {id: c, claims: 3}\n", "12:21: ", "claims must be a list");
    refuses("claims: 3\n", "11:9: ", "claims must be a list");
    refuses("figures: {a: b}\n", "11:10: ", "figures must be a list");
}

/* Families of families: refused before they fill the memory. */
static void each__has_a_limit(void **state)
{
    (void)state;
    char text[8192] = "claims:\n  - {id: c, statement: '{w0} {w1} {w2} {w3} {w4} {w5} {w6} {w7}', "
                      "each: {";
    for (int i = 0; i < 8; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "%sw%d: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]", i ? ", " : "", i);
    strcat(text, "}, take: rmse, expect: {equal: 1}}\n");
    refuses(text, " ", "unfold to more than 64 MB");
}

static fin_status parse_family(void *user, fin_error *e)
{
    fin_study *study;
    fin_status status = fin_study_parse(user, strlen(user), "f", NULL, &study, e);
    fin_study_destroy(study);
    return status;
}

static void each__survives_refused_memory(void **state)
{
    (void)state;
    char text[2048];
    snprintf(text, sizeof text,
             "%sclaims:\n"
             "  - claims: [{id: c, statement: '{d}', each: {d: {2: {a: b}}, keys: [vmf]}, take: "
             "rmse, reduce: max, where: 'L = 64, 128', expect: {equal: 1}}]\n",
             head);
    assert_true(fault_every(parse_family, text) >= 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each__makes_every_combination),
        cmocka_unit_test(each__gives_words_and_numbers),
        cmocka_unit_test(each__adds_conditions_where_they_fit),
        cmocka_unit_test(groups__give_what_members_do_not_say),
        cmocka_unit_test(figures__have_families_and_lines),
        cmocka_unit_test(each__says_what_is_wrong),
        cmocka_unit_test(each__has_a_limit),
        cmocka_unit_test(each__survives_refused_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
