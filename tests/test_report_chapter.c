/* Chapters of a report, and the formulas in them: what a study file says under `paper:` becomes a story in its order, with key claims and
 * figures, what failed, and links; what is no formula or no number of a paper is refused with its place. */
#include "test_data.h"

#include "finetti/report.h"
#include "finetti/study.h"
#include "report/mathml.h"

static fin_error err;

#define RUNS "runs:\n  - {id: grid, command: risk, set: {d: 100, L: 2}, axes: {lam: [0.1, 0.2]}}\n"
#define CLAIM(id, bound, more)                                                                     \
    "  - {id: " id ", statement: 'Says " id                                                        \
    ".', take: risk, reduce: max, expect: {at_most: " bound "}, "                                  \
    "kind: paper, source: s, fails_if: f" more "}\n"

static const char second[] =
    "study: a_second\npaper: {id: two, order: 2, title: Second & last, question: 'What is $x < "
    "y$?'}\n" RUNS "claims:\n" CLAIM("lost", "-1", ", known: why")
        CLAIM("other", "99", ", key: one");
static const char first[] =
    "study: b_first\npaper:\n  id: one\n  order: 1\n  title: First\n  by: A & B\n  arxiv: "
    "'2410.01537'\n  lead: All is $\\lambda$.\n"
    "  question: Why $k^\\star$?\n  formula: ['\\frac{1}{\\sqrt{x_1}}']\n  found: So.\n  "
    "corrected: [One <note>.]\n"
    "  claims: [listed]\n  try: [{panel: landscape, text: Roll}, {panel: later, text: Not "
    "there}]\n" RUNS "claims:\n" CLAIM("listed", "99", "") CLAIM(
        "plain", "99", "") "figures:\n  - {id: line, kind: lines, key: true, x: {take: lam}, "
                           "lines: [{take: risk}]}\n"
                           "  - {id: rest, kind: lines, x: {take: lam}, lines: [{take: risk}]}\n";
static const char member[] =
    "study: c_member\npaper: one\n" RUNS "claims:\n" CLAIM("keyed", "99", ", key: true");

static void run(fin_store *store, const char *text)
{
    fin_study *study = NULL;
    fin_study_settings settings;
    fin_study_count count;
    fin_settings_defaults(&fin_study_table, &settings, sizeof settings);
    settings.threads = 1;
    assert_ok(fin_study_parse(text, strlen(text), "t.yaml", NULL, &study, &err));
    assert_ok(fin_report_check(study, &err));
    assert_ok(fin_study_conduct(study, store, &settings, NULL, &count, &err));
    fin_study_destroy(study);
}

static char *page_of(fin_store *store)
{
    assert_ok(fin_report_write(store, NULL, 0, NULL, in_folder("r.html"), &err));
    FILE *file = fopen(in_folder("r.html"), "rb");
    assert_non_null(file);
    static char text[1 << 20];
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

/* The places of these texts, one after the other. */
static void assert_order(const char *page, const char *const *texts, int count)
{
    for (int i = 0; i < count; i++) {
        const char *at = strstr(page, texts[i]);
        if (!at)
            fail_msg("'%s' is not there, or not behind '%s'", texts[i], i ? texts[i - 1] : "");
        page = at;
    }
}

static void story__stands_in_order(void **state)
{
    (void)state;
    static const char *const order[] = {"href=\"#paper-one\"",
                                        "<small>A &amp; B</small>",
                                        "All is <math><mrow><mi>λ</mi></mrow></math>.",
                                        "href=\"#paper-two\"",
                                        "<main>",
                                        "id=\"paper-one\"",
                                        "A &amp; B",
                                        "href=\"https://arxiv.org/abs/2410.01537\"",
                                        "Why <math>",
                                        "<mfrac><mrow><mn>1</mn></mrow>",
                                        "id=\"figure-b_first.line\"",
                                        "<p class=\"found\">So.</p>",
                                        "Says other.",
                                        "Says listed.",
                                        "Says keyed.",
                                        "To be known beside it",
                                        "One &lt;note&gt;.",
                                        "<details class=\"more\">",
                                        "id=\"study-b_first\"",
                                        "id=\"figure-b_first.rest\"",
                                        "id=\"study-c_member\"",
                                        "id=\"paper-two\"",
                                        "What is <math>",
                                        "<mo>&lt;</mo>",
                                        "What failed or is open",
                                        "Says lost.",
                                        "why",
                                        "id=\"study-a_second\"",
                                        "id=\"methods\"",
                                        "id=\"claims\"",
                                        "Says lost.",
                                        "Says other."};
    fin_store *store = NULL;
    assert_ok(fin_store_open(in_folder("s.db"), FIN_STORE_CREATE, &store, &err));
    run(store, second);
    run(store, first);
    run(store, member);
    char *page = page_of(store);
    assert_order(page, order, sizeof order / sizeof *order);
    assert_null(strstr(page, "explore.html"));
    assert_null(strstr(strstr(page, "id=\"claims\""), "<p class=\"found\">"));
    FILE *panels = fopen(in_folder("explore.html"), "w"); /* links only where they lead */
    assert_non_null(panels);
    fputs("<section id=\"landscape\">", panels);
    fclose(panels);
    page = page_of(store);
    assert_non_null(strstr(page, "<a href=\"explore.html#landscape\">Roll</a>"));
    assert_null(strstr(page, "Not there")); /* the page has no such panel */
    remove(in_folder("explore.html"));
    fin_store_close(store);
}

static void paper__says_where_and_what(void **state)
{
    (void)state;
    static const struct {
        const char *paper, *message;
    } cases[] = {{"paper: [a]\n", "the id of a chapter"},
                 {"paper: {title: T}\n", "id"},
                 {"paper: {id: a}\n", "title"},
                 {"paper: {id: a b, title: T}\n", "t.yaml:2:13: the id 'a b'"},
                 {"paper: {id: a, title: T, arxiv: 'javascript:1'}\n", "2410.01537"},
                 {"paper: {id: a, title: T, arxiv: '2410.0153x'}\n", "2410.01537"},
                 {"paper: {id: a, title: T, order: inf}\n", "finite"},
                 {"paper: {id: a, title: T, question: 'half $x'}\n", "formula between dollars"},
                 {"paper: {id: a, title: T, found: '$\\foo$'}\n", "formula between dollars"},
                 {"paper: {id: a, title: T, formula: x}\n", "list of texts"},
                 {"paper: {id: a, title: T, formula: ['x_']}\n", "cannot be read"},
                 {"paper: {id: a, title: T, try: [{panel: 'a\"b'}]}\n", "anchor"},
                 {"paper: {id: a, title: T, claims: [none]}\n", "no claim 'none'"},
                 {"paper: {id: a, title: T, figures: [none]}\n", "no figure 'none'"},
                 {"paper: {id: a, title: T, lede: x}\n", "did you mean 'lead'"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        fin_study *study = NULL;
        snprintf(text, sizeof text, "study: s\n%s" RUNS, cases[i].paper);
        assert_ok(fin_study_parse(text, strlen(text), "t.yaml", NULL, &study, &err));
        if (fin_report_check(study, &err) == FIN_OK || !strstr(err.message, cases[i].message))
            fail_msg("case %d: %s", (int)i, err.message);
        fin_study_destroy(study);
    }
}

static void mathml__is_what_it_should_be(void **state)
{
    (void)state;
    static const struct {
        const char *tex, *mathml; /* NULL: refused */
    } cases[] = {
        {"", "<math><mrow></mrow></math>"},
        {"x_1^2", "<math><mrow><msubsup><mi>x</mi><mn>1</mn><mn>2</mn></msubsup></mrow></math>"},
        {"\\sum_{l}^L", "<math><mrow><munderover><mo>∑</mo><mrow><mi>l</mi></mrow><mi>L</mi></"
                        "munderover></mrow></math>"},
        {"a-1.5", "<math><mrow><mi>a</mi><mo>−</mo><mn>1.5</mn></mrow></math>"},
        {"\\text{a<b}", "<math><mrow><mtext>a&lt;b</mtext></mrow></math>"},
        {"\\sqrt{\\alpha}", "<math><mrow><msqrt><mrow><mi>α</mi></mrow></msqrt></mrow></math>"},
        {"<script>", "<math><mrow><mo>&lt;</mo><mi>s</mi><mi>c</mi><mi>r</mi><mi>i</mi><mi>p</"
                     "mi><mi>t</mi><mo>&gt;</mo>"
                     "</mrow></math>"},
        {"{x", NULL},
        {"x}", NULL},
        {"^2", NULL},
        {"\\frac{1}", NULL},
        {"\\text{x", NULL},
        {"\\nothing", NULL},
        {"\\", NULL},
        {"{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{x}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fini_page page = {NULL, 0, 0, false};
        assert_int_equal(fini_mathml(&page, cases[i].tex, false), cases[i].mathml != NULL);
        fini_page_bytes(&page, "", 1);
        assert_string_equal(page.text, cases[i].mathml ? cases[i].mathml : "");
        fini_page_close(&page);
    }
}

/* Texts without an end, and bytes that are none: never read beyond, never markup. */
static void prose__takes_any_bytes(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "$", "$$", "a$b", "\xff$\xc3$", "$\xc3", "<b>$x$</b>"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        fini_page page = {NULL, 0, 0, false};
        fini_prose(&page, texts[i]);
        fini_page_bytes(&page, "", 1);
        assert_null(strstr(page.text, "<b>"));
        fini_page_close(&page);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(story__stands_in_order),
        cmocka_unit_test(paper__says_where_and_what),
        cmocka_unit_test(mathml__is_what_it_should_be),
        cmocka_unit_test(prose__takes_any_bytes),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
