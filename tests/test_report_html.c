/* The HTML report and the figures of a study, from a store that a small study with hostile names
 * has filled: what comes from outside is escaped, the same store gives the same bytes, every claim
 * is there, and what is missing is said. */
#include "test_data.h"

#include <math.h>

#include "fault_places.h"
#include "finetti/report.h"
#include "finetti/study.h"
#include "report/html.h"

static fin_error err;

/* Titles, labels, statements and captions are free text and stand anywhere. */
static const char study_text[] =
    "study: hostile\n"
    "title: \"</title><script>alert(1)</script>\"\n"
    "source: \"\\\"onmouseover=\\\"alert(2)\"\n"
    "about: \"a & b <img src=x onerror=alert(3)>\"\n"
    "runs:\n"
    "  - id: grid\n"
    "    command: risk\n"
    "    set: {form: erf, d: 100, show: \"risk,linear\"}\n"
    "    axes:\n"
    "      L: [10, 2]\n"
    "      lam: [0.3, 0.2, 0.1]\n"
    "  - id: plane\n"
    "    command: landscape\n"
    "    set: {d: 100, grid: 5}\n"
    "  - id: off\n"
    "    command: landscape\n"
    "    set: {d: 100, grid: 5, theta: 0.1}\n"
    "  - id: training\n"
    "    command: train\n"
    "    set: {d: 20, init: manifold, steps: 500, log_every: 1, runs: 3}\n"
    "  - id: law\n"
    "    command: law\n"
    "    set: {d: 5, batch: 2, L: 3, steps: 5, log_every: 5, runs: 8, risk_samples: 2}\n"
    "claims:\n"
    "  - id: first\n"
    "    statement: \"</td></table><script>alert(4)</script>\"\n"
    "    where: {L: 2, lam: 0.1}\n"
    "    take: risk\n"
    "    expect: {at_least: 0}\n"
    "    figure: lines\n"
    "  - id: second\n"
    "    statement: It fails & says so.\n"
    "    kind: paper\n"
    "    fails_if: \"</small><script>alert(5)</script>\"\n"
    "    known: \"</th><script>alert(6)</script> a < b\"\n"
    "    where: {L: 2, lam: 0.1}\n"
    "    take: risk\n"
    "    expect: {at_most: -1}\n"
    "  - id: third\n"
    "    statement: It is near & far.\n"
    "    kind: check\n"
    "    where: {L: 2, lam: 0.1}\n"
    "    take: risk\n"
    "    expect: {equal: 0, tolerance: 100}\n"
    "figures:\n"
    "  - id: lines\n"
    "    title: \"<b>bold</b>\"\n"
    "    caption: \"</script><script>alert(5)</script>\"\n"
    "    kind: lines\n"
    "    x: {take: lam, label: \"</script><!--\", scale: log}\n"
    "    y: {label: \"y \\u2028 label\", scale: log}\n"
    "    lines:\n"
    "      - {take: risk, label: \"</script><script>alert(6)</script>\", split: L, band: true}\n"
    "      - {take: linear, label: 'back\\slash', split: L, style: dashed, fit: true}\n"
    "    reference: [{y: 0.5, label: \"'\\\"&\"}]\n"
    "  - id: bars\n"
    "    kind: bars\n"
    "    where: {lam: 0.1}\n"
    "    x: {take: L}\n"
    "    lines: [{take: risk, label: \"<part>\"}, {take: linear}]\n"
    "  - id: heat\n"
    "    kind: heat\n"
    "    x: {take: lam, scale: log}\n"
    "    y: {take: L}\n"
    "    take: risk\n"
    "  - id: calibration\n"
    "    kind: calibration\n"
    "    x: {take: linear}\n"
    "    y: {take: risk}\n"
    "    diagonal: the <same>\n"
    "  - {id: training, kind: training, from: training}\n"
    "  - {id: portrait, kind: portrait, from: plane, paths: training}\n"
    "  - {id: off, kind: portrait, from: off}\n"
    "  - {id: quantiles, kind: quantiles, from: law, of: [kappa, nu]}\n"
    "  - {id: steps, kind: bars, where: {lam: 0.1}, x: {take: L}, y: {scale: log,\n"
    "     limits: [1e-9, 10]}, lines: [{take: risk, label: '<one>'}]}\n"
    "  - {id: series, kind: series, from: training, x: {take: step}, diagonal: '<same>',\n"
    "     lines: [{take: excess, label: '</script><b>'}, {take: lam, style: points}]}\n";
enum { RUNS = 10, FIGURES = 10 };

static fin_study *parse(const char *text)
{
    fin_study *study = NULL;
    assert_ok(fin_study_parse(text, strlen(text), "test.yaml", NULL, &study, &err));
    return study;
}

/* The store `name` with all runs of the study, or with its plan alone; judged or not. */
static void fill(const char *name, bool run, bool judge)
{
    fin_store *store = NULL;
    fin_study *study = parse(study_text);
    fin_study_settings settings;
    fin_settings_defaults(&fin_study_table, &settings, sizeof settings);
    settings.threads = 1;
    settings.shards = run ? 1 : 1000; /* the last of so many parts has no run */
    settings.shard = run ? 0 : 999;
    assert_ok(fin_store_open(in_folder(name), FIN_STORE_CREATE, &store, &err));
    assert_ok(fin_report_check(study, &err));
    fin_study_count count;
    assert_ok(fin_study_run(study, store, &settings, NULL, NULL, &count, &err));
    assert_int_equal(count.done, run ? RUNS : 0);
    if (judge)
        assert_ok(fin_store_judge(store, NULL, &err));
    fin_store_close(store);
    fin_study_destroy(study);
}

static fin_store *open_store(const char *name)
{
    fin_store *store = NULL;
    assert_ok(fin_store_open(in_folder(name), FIN_STORE_READ, &store, &err));
    return store;
}

static char *read_all(const char *name)
{
    FILE *file = fopen(in_folder(name), "rb");
    assert_non_null(file);
    static char text[4 << 20];
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = '\0';
    char *copy = strdup(text);
    assert_non_null(copy);
    assert_int_equal(strlen(copy), size);
    return copy;
}

static char *report_of(const char *store_name, const char *title)
{
    fin_store *store = open_store(store_name);
    assert_ok(fin_report_write(store, NULL, 0, title, in_folder("r.html"), &err));
    fin_store_close(store);
    return read_all("r.html");
}

static int count_of(const char *text, const char *part)
{
    int count = 0;
    for (const char *p = strstr(text, part); p; p = strstr(p + 1, part))
        count++;
    return count;
}

/* ---- the page -------------------------------------------------------------------------------- */

static void report__escapes_what_comes_from_outside(void **state)
{
    (void)state;
    char *html = report_of("full.db", "<script>alert(0)</script>\"'&");
    assert_null(strstr(html, "<script>alert"));
    assert_null(strstr(html, "<img src=x"));
    assert_null(strstr(html, "\"onmouseover=\""));
    assert_null(strstr(html, "<b>bold"));
    assert_null(strstr(html, "\xe2\x80\xa8\"")); /* U+2028 inside of JSON */
    assert_non_null(strstr(html, "&lt;script&gt;alert(0)&lt;/script&gt;&quot;&#39;&amp;"));
    assert_non_null(strstr(html, "a &amp; b &lt;img src=x onerror=alert(3)&gt;"));
    /* Scripts: that of the page, and two of data per figure. */
    assert_int_equal(count_of(html, "<script"), 1 + 2 * FIGURES);
    assert_int_equal(count_of(html, "</script"), 1 + 2 * FIGURES);
    assert_int_equal(count_of(html, "</style"), 1);
    free(html);
}

static void report__has_every_claim_and_figure(void **state)
{
    (void)state;
    char *html = report_of("full.db", NULL);
    assert_non_null(strstr(html, "<title>&lt;/title&gt;&lt;script&gt;")); /* of its only study */
    assert_non_null(strstr(
        html, "claims of papers: 0 of 1 hold</strong>, <a href=\"#claim-hostile.second\">1 "
              "fails</a> \xc2\xb7 <strong>derived here: 1 of "
              "1 holds</strong> \xc2\xb7 <strong>checks of the code: 1 of 1 holds</strong>"));
    assert_non_null(strstr(html, "<small class=\"known\">known: &lt;/th&gt;"));
    assert_non_null(strstr(html, "<small>fails if &lt;/small&gt;"));
    const char *fold = strstr(html, "<details class=\"kind check\"><summary>");
    assert_true(fold && fold < strstr(html, "It is near") && strstr(html, "It fails &amp;") < fold);
    assert_non_null(strstr(html, "id=\"claim-hostile.first\""));
    assert_non_null(strstr(html, "id=\"claim-hostile.second\""));
    assert_non_null(strstr(html, "It fails &amp; says so."));
    assert_non_null(strstr(html, "href=\"#figure-hostile.lines\""));
    assert_int_equal(count_of(html, "<figure id=\"figure-hostile."), FIGURES);
    assert_int_equal(count_of(html, "could not be drawn"), 0);
    assert_int_equal(count_of(html, "missing"), 1); /* in what the verdicts mean */
    assert_non_null(strstr(html, "A claim holds if its 95 % interval lies inside what is "));
    assert_non_null(strstr(html, "<td data-label=\"expected\">0 \xc2\xb1 100</td>"));
    assert_non_null(strstr(html, "10 of 10 runs done"));
    assert_non_null(strstr(html, ">the &lt;same&gt;</text>"));
    assert_int_equal(count_of(html, "finetti plot --study hostile --figure "), FIGURES);
    free(html);
}

/* Every setting with its value: 20 in `set`, two axes. */
static void report__has_every_setting(void **state)
{
    (void)state;
    char *html = report_of("full.db", NULL);
    assert_int_equal(count_of(html, "</th><td><code>"), 20 + 2);
    assert_int_equal(count_of(html, "</code></td></tr>"), 20);
    assert_non_null(strstr(html, "<th scope=\"row\">d</th><td><code>100</code></td></tr>"));
    assert_non_null(strstr(html, "<th scope=\"row\">init</th><td><code>manifold</code></td></tr>"));
    assert_non_null(strstr(html, "<th scope=\"row\">L</th><td><code>10</code>, <code>2</code> "
                                 "<small>2 values</small></td></tr>"));
    free(html);
}

static void report__same_store_same_bytes(void **state)
{
    (void)state;
    char *a = report_of("full.db", NULL), *b = report_of("full.db", NULL);
    assert_string_equal(a, b);
    free(a);
    free(b);
}

static void report__says_what_is_missing(void **state)
{
    (void)state;
    char *html = report_of("empty.db", NULL);
    assert_non_null(strstr(
        html,
        "derived here: 0 of 1 hold</strong>, <a href=\"#claim-hostile.first\">1 is untested</a>"));
    assert_non_null(strstr(html, "6 of 6 runs of grid are missing."));
    assert_non_null(strstr(html, "2 of 2 runs of grid are missing.")); /* those of the bars */
    assert_int_equal(count_of(html, "<figure id=\"figure-hostile."), FIGURES);
    assert_int_equal(count_of(html, "could not be drawn"), 0);
    free(html);
}

/* The policy names the script and the style that are there: SHA-256 of what stands in between. */
/* A run that was killed leaves claims that nobody has judged: they count, too. */
static void report__has_claims_that_were_not_judged(void **state)
{
    (void)state;
    char *html = report_of("cut.db", NULL);
    assert_non_null(strstr(
        html,
        "derived here: 0 of 1 hold</strong>, <a href=\"#claim-hostile.first\">1 is untested</a>"));
    assert_non_null(strstr(html, "id=\"claim-hostile.first\""));
    assert_non_null(strstr(html, "id=\"claim-hostile.second\""));
    assert_non_null(strstr(html, "at most -1"));
    assert_int_equal(count_of(html, "not judged yet"), 3);
    free(html);
}

static void report__shows_a_study_once(void **state)
{
    (void)state;
    const char *const names[] = {"hostile", "hostile"};
    fin_store *store = open_store("full.db");
    assert_ok(fin_report_write(store, names, 2, NULL, in_folder("r.html"), &err));
    fin_store_close(store);
    char *html = read_all("r.html");
    assert_int_equal(count_of(html, "id=\"study-hostile\""), 1);
    assert_non_null(strstr(html, "derived here: 1 of 1 holds"));
    free(html);
}

static void report__policy_has_the_hashes(void **state)
{
    (void)state;
    char *html = report_of("full.db", NULL), hash[FINI_SHA256_TEXT], expected[64];
    const struct {
        const char *open, *close;
    } parts[] = {{"<style>", "</style>"}, {"<script>", "</script>"}};
    for (int i = 0; i < 2; i++) {
        const char *from = strstr(html, parts[i].open) + strlen(parts[i].open);
        fini_sha256(from, (size_t)(strstr(from, parts[i].close) - from), hash);
        snprintf(expected, sizeof expected, "-src 'sha256-%s'", hash);
        assert_non_null(strstr(html, expected));
    }
    fini_sha256("abc", 3, hash); /* FIPS 180-4 */
    assert_string_equal(hash, "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
    fini_sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, hash);
    assert_string_equal(hash, "JI1qYdIGOLjlwCaTDD5gOaM85Flk/yFn9uzt1BnbBsE=");
    free(html);
}

static void report__unknown_study_and_path(void **state)
{
    (void)state;
    fin_store *store = open_store("full.db");
    const char *names[] = {"hostil"};
    assert_int_equal(fin_report_write(store, names, 1, NULL, in_folder("n.html"), &err),
                     FIN_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "hostile"));
    assert_int_equal(fin_report_write(store, NULL, 0, NULL, in_folder("no/n.html"), &err),
                     FIN_ERR_IO);
    assert_int_equal(fin_report_write(NULL, NULL, 0, NULL, "x", &err), FIN_ERR_ARGUMENT);
    fin_store_close(store);
}

/* ---- figures --------------------------------------------------------------------------------- */

/* The text in the page, unescaped, is the file that `plot` writes. */
static void figure__csv_is_that_of_the_page(void **state)
{
    (void)state;
    static const char *const ids[] = {"lines",    "bars", "heat",      "calibration", "training",
                                      "portrait", "off",  "quantiles", "steps",       "series"};
    char *html = report_of("full.db", NULL);
    const char *at = html;
    fin_store *store = open_store("full.db");
    for (int i = 0; i < FIGURES; i++) {
        fin_figure figure = {.study = "hostile", .id = ids[i]};
        assert_ok(fin_report_figure(store, &figure, in_folder("f.csv"), &err));
        assert_ok(fin_report_figure(store, &figure, in_folder("f.svg"), &err));
        char *csv = read_all("f.csv");
        fini_page escaped = {NULL, 0, 0, false};
        fini_page_script(&escaped, csv, strlen(csv));
        at = strstr(at, "<script type=\"text/csv\">");
        assert_non_null(at);
        at += strlen("<script type=\"text/csv\">");
        assert_memory_equal(at, escaped.text, escaped.size);
        assert_memory_equal(at + escaped.size, "</script>", 9);
        fini_page_close(&escaped);
        free(csv);
    }
    fin_store_close(store);
    free(html);
}

static void figure__lines_are_sorted_and_split(void **state)
{
    (void)state;
    fin_store *store = open_store("full.db");
    const char *y[] = {"risk", "2 * linear"}, *where[] = {"lam<=0.2"};
    fin_figure figure = {.study = "hostile",
                         .x = "lam",
                         .y = y,
                         .y_count = 2,
                         .split = "L",
                         .where = where,
                         .where_count = 1,
                         .log_x = 1,
                         .fit = 1};
    assert_ok(fin_report_figure(store, &figure, in_folder("f.csv"), &err));
    char *csv = read_all("f.csv");
    /* Two lines of two points for each y, and a fit of two points for each line. */
    assert_int_equal(count_of(csv, "\n"), 1 + 8 + 8);
    const char *two = strstr(csv, "\"risk, L = 2\",0.1"),
               *ten = strstr(csv, "\"risk, L = 10\",0.1");
    assert_true(two && ten && two < ten);
    assert_true(strstr(two, "\"risk, L = 2\",0.2") > two);
    assert_non_null(strstr(csv, "risk, L = 2: slope "));
    free(csv);
    const struct {
        fin_figure figure;
        const char *path, *message;
    } wrong[] = {
        {{.study = "hostile", .id = "line"}, "f.svg", "lines"},
        {{.study = "hostile", .x = "lam"}, "f.svg", "at least one y"},
        {{.study = "hostile", .x = "lamm", .y = y, .y_count = 1}, "f.svg", "lam"},
        {{.study = "hostile", .x = "lam", .y = y, .y_count = 1, .split = "risk"}, "f.svg", "risk"},
        {{.study = "hostile", .x = "lam", .y = y, .y_count = 1, .block = "g"}, "f.svg", "grid"},
        {{.study = "hostile", .id = "lines"}, "f.jpg", ".svg"},
        {{.study = "hostile", .id = "lines", .width = NAN}, "f.svg", "width"},
        {{.study = "hostile", .id = "lines", .height = 1e9}, "f.svg", "height"},
        {{.study = "nobody", .id = "lines"}, "f.svg", "nobody"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        fin_status got = fin_report_figure(store, &wrong[i].figure, in_folder(wrong[i].path), &err);
        if (got != FIN_ERR_ARGUMENT || !strstr(err.message, wrong[i].message))
            fail_msg("case %d: %s: %s", (int)i, fin_status_name(got), err.message);
    }
    fin_store_close(store);
}

/* Of 501 logged steps every 21st is drawn, and the last; runs are lines of where they ended. */
static void figure__training_is_thinned_out_to_its_end(void **state)
{
    (void)state;
    fin_store *store = open_store("full.db");
    fin_figure figure = {.study = "hostile", .id = "training"};
    assert_ok(fin_report_figure(store, &figure, in_folder("f.csv"), &err));
    char *csv = read_all("f.csv");
    int lines = count_of(csv, "\nExcess risk,");
    assert_int_equal(lines, 3 * 25);
    assert_int_equal(count_of(csv, "\nExcess risk,\"found k*, v*\",") +
                         count_of(csv, "\nExcess risk,neither,") +
                         count_of(csv, "\nExcess risk,swapped,"),
                     lines);
    assert_int_equal(count_of(csv, ",21,"), 3 * 4);
    assert_int_equal(count_of(csv, ",17,"), 0);
    assert_int_equal(count_of(csv, ",500,"), 3 * 4);
    assert_int_equal(count_of(csv, "\nPaths,"), 3 * 25 + 2 * 3);
    assert_int_equal(count_of(csv, "\nPaths,end,"), 3);
    free(csv);
    fin_store_close(store);
}

/* ---- what a reader must know ----------------------------------------------------------------- */

static void keep_note(void *user, const char *text)
{
    size_t used = strlen(user);
    snprintf((char *)user + used, 1024 - used, "%s|", text);
}

static void figure__tells_its_notes(void **state)
{
    (void)state;
    char notes[1024] = "";
    fin_store *store = open_store("full.db");
    fin_figure figure = {
        .study = "hostile", .id = "training", .note = keep_note, .note_user = notes};
    assert_ok(fin_report_figure(store, &figure, in_folder("f.csv"), &err));
    assert_non_null(strstr(notes, "Not every logged step is drawn"));
    const char *y[] = {"risk - 100"};
    figure = (fin_figure){.study = "hostile",
                          .x = "lam",
                          .y = y,
                          .y_count = 1,
                          .log_y = 1,
                          .note = keep_note,
                          .note_user = notes};
    assert_int_equal(fin_report_figure(store, &figure, in_folder("none.csv"), &err),
                     FIN_ERR_FORMAT);
    assert_non_null(strstr(err.message, "3 points are left out"));
    fin_store_close(store);
    store = open_store("empty.db");
    figure.log_y = 0;
    assert_int_equal(fin_report_figure(store, &figure, in_folder("none.csv"), &err),
                     FIN_ERR_FORMAT);
    assert_non_null(strstr(err.message, "nothing to draw. 6 of 6 runs of grid are missing."));
    figure = (fin_figure){.study = "hostile", .id = "training"};
    assert_int_equal(fin_report_figure(store, &figure, in_folder("none.csv"), &err),
                     FIN_ERR_FORMAT);
    fin_store_close(store);
    assert_null(fopen(in_folder("none.csv"), "rb"));
}

static void figure__has_the_title_it_is_given(void **state)
{
    (void)state;
    fin_store *store = open_store("full.db");
    fin_figure figure = {.study = "hostile", .id = "training", .title = "Mine & yours"};
    assert_ok(fin_report_figure(store, &figure, in_folder("f.svg"), &err));
    char *svg = read_all("f.svg");
    assert_non_null(strstr(svg, "<title>Mine &amp; yours</title>"));
    assert_int_equal(count_of(svg, "Mine &amp; yours</text>"), 1);
    free(svg);
    fin_store_close(store);
}

/* Descent on spheres: at |kappa| = 1 nothing moves along kappa, at |nu| = 1 nothing along nu. */
static void figure__arrows_stay_on_the_spheres(void **state)
{
    (void)state;
    fin_store *store = open_store("full.db");
    fin_figure figure = {.study = "hostile", .id = "portrait"};
    assert_ok(fin_report_figure(store, &figure, in_folder("f.csv"), &err));
    char *csv = read_all("f.csv");
    int count = 0, moving = 0;
    for (const char *at = csv; (at = strstr(at, "direction of descent,")); at++) {
        double x, y, dx, dy;
        assert_int_equal(sscanf(strchr(at, ','), ",%lf,%lf,,,,%lf,%lf", &x, &y, &dx, &dy), 4);
        if (fabs(x) == 1)
            assert_true(dx == 0);
        if (fabs(y) == 1)
            assert_true(dy == 0);
        if (fabs(x) == 0.5 && fabs(y) == 0.5)
            moving += dx != 0 && dy != 0;
        count++;
    }
    assert_int_equal(count, 25);
    assert_int_equal(moving, 4);
    free(csv);
    figure.id = "off"; /* the plane is not invariant there */
    char notes[1024] = "";
    figure.note = keep_note;
    figure.note_user = notes;
    assert_ok(fin_report_figure(store, &figure, in_folder("f.csv"), &err));
    csv = read_all("f.csv");
    assert_int_equal(count_of(csv, "direction of descent"), 0);
    assert_non_null(strstr(notes, "Off M"));
    free(csv);
    fin_store_close(store);
}

/* By how much, or per what; exact numbers have no uncertainty. */
static void figure__fits_say_what_they_are(void **state)
{
    (void)state;
    static const struct {
        const char *y;
        int log_x, log_y;
        const char *label;
    } cases[] = {{"2 * lam", 0, 0, "2 * lam: slope 2,"},
                 {"lam^3", 1, 1, "lam^3: slope 3,"},
                 {"10^(4 * lam)", 0, 1, "10^(4 * lam): slope 4 decades per unit of x,"},
                 {"log10(lam)", 1, 0, "log10(lam): slope 1 per decade of x,"},
                 {"lam + 0 * seconds", 0, 0, " \xc2\xb1 "},
                 {"lam^2 + 0 * seconds", 0, 0, NULL}};
    fin_store *store = open_store("full.db");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fin_figure figure = {.study = "hostile",
                             .x = "lam",
                             .y = &cases[i].y,
                             .y_count = 1,
                             .log_x = cases[i].log_x,
                             .log_y = cases[i].log_y,
                             .fit = 1};
        char notes[1024] = "";
        figure.note = keep_note;
        figure.note_user = notes;
        assert_ok(fin_report_figure(store, &figure, in_folder("f.csv"), &err));
        char *csv = read_all("f.csv");
        if (cases[i].label && !strstr(csv, cases[i].label))
            fail_msg("no '%s' in\n%s", cases[i].label, csv);
        assert_int_equal(strstr(notes, "95 % interval of a slope") != NULL,
                         strstr(csv, " \xc2\xb1 ") != NULL);
        assert_true(cases[i].label || strstr(notes, "95 % interval of a slope"));
        free(csv);
    }
    fin_store_close(store);
}

/* A band that cannot be drawn is said to be missing, not drawn with no width. */
static void figure__bands_without_numbers_are_noted(void **state)
{
    (void)state;
    char notes[1024] = "";
    const char *y[] = {"risk"};
    fin_store *store = NULL;
    fin_study *study = parse("study: bands\nruns:\n  - {id: a, command: risk, axes: {lam: [0.1, "
                             "0.2]}}\n");
    unsigned char missing[2];
    assert_ok(fin_store_open(in_folder("bands.db"), FIN_STORE_CREATE, &store, &err));
    assert_ok(fini_store_plan(store, study, false, missing, NULL, NULL, &err));
    for (int i = 0; i < 2; i++) {
        fini_done done = {.position = i, .state = FIN_STATE_DONE, .result = fin_result_create()};
        fini_result_scalar(done.result, "risk", 1 + i, i ? INFINITY : 0.1, FIN_HOW_SIMULATION, 9);
        assert_ok(fini_study_keep(store, study, &done, 1, &err));
        fin_result_destroy(done.result);
    }
    fin_figure figure = {
        .study = "bands", .x = "lam", .y = y, .y_count = 1, .note = keep_note, .note_user = notes};
    assert_ok(fin_report_figure(store, &figure, in_folder("f.csv"), &err));
    assert_non_null(strstr(notes, "the interval of 1 point is not known"));
    fin_store_close(store);
    fin_study_destroy(study);
}

/* One of `runs` runs failed, one is missing if there are more than two, the others are done. */
static void notes_of(const char *name, int runs, const char *axis, char *notes)
{
    char text[200];
    const char *y[] = {"risk"};
    fin_store *store = NULL;
    snprintf(text, sizeof text, "study: gaps\nruns:\n  - {id: a, command: risk, axes: {lam: %s}}\n",
             axis);
    fin_study *study = parse(text);
    unsigned char missing[8];
    assert_ok(fin_store_open(in_folder(name), FIN_STORE_CREATE, &store, &err));
    assert_ok(fini_store_plan(store, study, false, missing, NULL, NULL, &err));
    for (int i = 0; i < (runs > 2 ? runs - 1 : runs); i++) {
        fini_done done = {.position = i, .state = i ? FIN_STATE_DONE : FIN_STATE_FAILED};
        snprintf(done.reason, sizeof done.reason, "%s", i ? "" : "no");
        done.result = i ? fin_result_create() : NULL;
        if (i)
            fini_result_scalar(done.result, "risk", i, 0, FIN_HOW_CLOSED, 0);
        assert_ok(fini_study_keep(store, study, &done, 1, &err));
        fin_result_destroy(done.result);
    }
    fin_figure figure = {
        .study = "gaps", .x = "lam", .y = y, .y_count = 1, .note = keep_note, .note_user = notes};
    if (fin_report_figure(store, &figure, in_folder("f.csv"), &err))
        strcpy(notes, err.message); /* nothing to draw */
    fin_store_close(store);
    fin_study_destroy(study);
}

static void figure__counts_runs_that_are_not_there(void **state)
{
    (void)state;
    char notes[sizeof err.message > 1024 ? sizeof err.message : 1024] = "";
    notes_of("four.db", 4, "[0.1, 0.2, 0.3, 0.4]", notes);
    assert_non_null(strstr(notes, "1 of 4 runs of a is missing."));
    assert_non_null(strstr(notes, "1 of 4 runs of a failed."));
    notes[0] = '\0';
    notes_of("one.db", 1, "[0.1]", notes);
    assert_non_null(strstr(notes, "1 of 1 run of a failed."));
}

/* Three runs at lam = 0.1 (1, 2 and 6: mean 3, sd sqrt(7)), one at 0.2 with its own error, one
 * number and one NaN at 0.3; L tells the runs apart. */
static fin_store *open_several(void)
{
    static const double values[] = {1, 2, 6, 5, NAN, NAN, 7, NAN, NAN};
    static const char text[] =
        "study: several\nruns:\n"
        "  - {id: a, command: risk, axes: {lam: [0.1, 0.2, 0.3], L: [2, 3, 4]}}\n"
        "figures:\n"
        "  - {id: plain, kind: lines, x: {take: lam}, where: {lam: 0.1}, lines: [{take: risk}]}\n"
        "  - {id: mean, kind: lines, x: {take: lam}, lines: [{take: risk, average: true}]}\n"
        "  - {id: split, kind: lines, x: {take: lam}, where: {lam: 0.1},\n"
        "     lines: [{take: risk, split: L}]}\n";
    fin_store *store = NULL;
    fin_study *study = parse(text);
    unsigned char missing[9];
    assert_ok(fin_report_check(study, &err));
    assert_ok(fin_store_open(in_folder("several.db"), FIN_STORE_CREATE, &store, &err));
    assert_ok(fini_store_plan(store, study, false, missing, NULL, NULL, &err));
    for (int i = 0; i < 9; i++) {
        fini_done done = {.position = i, .state = FIN_STATE_DONE, .result = fin_result_create()};
        fini_result_scalar(done.result, "risk", values[i], 0.5, FIN_HOW_SIMULATION, 9);
        assert_ok(fini_study_keep(store, study, &done, 1, &err));
        fin_result_destroy(done.result);
    }
    fin_study_destroy(study);
    return store;
}

static char *draw(fin_store *store, fin_figure figure, char notes[1024])
{
    notes[0] = '\0';
    figure.study = "several";
    figure.note = keep_note;
    figure.note_user = notes;
    assert_ok(fin_report_figure(store, &figure, in_folder("f.csv"), &err));
    return read_all("f.csv");
}

static void assert_point(const char *csv, const char *start, double y, double half)
{
    double got = NAN, low = NAN, high = NAN;
    const char *at = strstr(csv, start);
    at = at ? strchr(at + strlen(start), ',') : NULL; /* x has 17 digits */
    if (!at || sscanf(at, ",%lf,%lf,%lf", &got, &low, &high) != 3)
        fail_msg("no '%s' with an interval in\n%s", start, csv);
    assert_true(fabs(got - y) < 1e-12);
    assert_true(fabs(low - (y - half)) < 1e-6 && fabs(high - (y + half)) < 1e-6);
}

static void figure__several_runs_at_one_x(void **state)
{
    (void)state;
    char notes[1024];
    const char *y[] = {"risk"};
    const double spread = 4.302652729749464 * sqrt(7.0 / 3), own = 1.959963984540054 * 0.5;
    const fin_figure asked[] = {{.id = "mean"}, {.x = "lam", .y = y, .y_count = 1}};
    fin_store *store = open_several();
    for (int i = 0; i < 2; i++) {
        char *csv = draw(store, asked[i], notes);
        assert_int_equal(count_of(csv, "\n"), 1 + 3);
        assert_point(csv, "risk,0.1", 3, spread);
        assert_point(csv, "risk,0.2", 5, own);
        assert_point(csv, "risk,0.3", 7, own);
        assert_non_null(strstr(notes, "risk: 4 numbers are not finite and left out of the means."));
        assert_int_equal(count_of(notes, "Several runs at one x: their mean is drawn"), i);
        assert_null(strstr(notes, "average: true"));
        free(csv);
    }
    char *csv = draw(store, (fin_figure){.id = "plain"}, notes);
    assert_int_equal(count_of(csv, "\n"), 1 + 3); /* all three, as they are */
    assert_string_equal(notes, "Several runs at one x: 'average: true' draws their mean.|");
    free(csv);
    csv = draw(store, (fin_figure){.id = "split"}, notes);
    assert_int_equal(count_of(csv, "\n"), 1 + 3);
    assert_string_equal(notes, "");
    free(csv);
    fin_store_close(store);
}

/* "observed" stands on the axis, and not in a legend of one entry as well. */
static void figure__calibration_has_no_legend_of_one(void **state)
{
    (void)state;
    fin_store *store = open_store("full.db");
    fin_figure figure = {.study = "hostile", .id = "calibration"};
    assert_ok(fin_report_figure(store, &figure, in_folder("f.svg"), &err));
    char *svg = read_all("f.svg");
    assert_int_equal(count_of(svg, "observed</text>"), 1);
    free(svg);
    fin_store_close(store);
}

static fin_status count_row(void *user, const fin_figure_row *row, fin_error *e)
{
    (void)e;
    assert_string_equal(row->study, "hostile");
    ++*(int *)user;
    return FIN_OK;
}

static void figures__are_listed(void **state)
{
    (void)state;
    fin_store *store = open_store("full.db");
    int count = 0;
    assert_ok(fin_report_figures(store, NULL, count_row, &count, &err));
    assert_int_equal(count, FIGURES);
    assert_ok(fin_report_figures(store, "hostile", count_row, &count, &err));
    assert_int_equal(count, 2 * FIGURES);
    fin_store_close(store);
}

/* ---- checks ---------------------------------------------------------------------------------- */

static void check__says_where_and_what(void **state)
{
    (void)state;
#define BLOCKS "study: s\nruns:\n  - id: grid\n    command: risk\n    axes: {lam: [0.1, 0.2]}\n"
#define LINES "kind: lines, x: {take: lam}, "
    static const struct {
        const char *figures, *message;
    } cases[] = {
        {"figures:\n  - {id: a, kind: line}\n", "test.yaml:7:19: there is no kind"},
        {"figures:\n  - {id: a, kind: lines, lins: []}\n", "lines"},
        {"figures:\n  - {kind: lines}\n", "id"},
        {"figures:\n  - {id: a, " LINES "lines: [{take: rsk}]}\n", "risk"},
        {"figures:\n  - {id: a, " LINES "lines: [{take: 'risk +'}]}\n", "test.yaml:7:"},
        {"figures:\n  - {id: a, " LINES "lines: []}\n", "needs 'lines'"},
        {"figures:\n  - {id: a, " LINES "lines: [{take: risk, style: wavy}]}\n", "dashed"},
        {"figures:\n  - {id: a, " LINES "lines: [{take: risk, split: laam}]}\n", "lam"},
        {"figures:\n  - {id: a, " LINES "lines: [{take: risk, from: gird}]}\n", "grid"},
        {"figures:\n  - {id: a, " LINES "lines: [{take: risk, where: {lm: 1}}]}\n", "lam"},
        {"figures:\n  - {id: a, " LINES "lines: [{take: risk}], reference: [{x: 1, y: 2}]}\n",
         "either"},
        {"figures:\n  - {id: a, kind: lines, x: {take: lam, scale: lin}, lines: [{take: risk}]}\n",
         "linear or log"},
        {"figures:\n  - {id: a, kind: lines, x: {take: lam, limits: [2, 1]}, lines: [{take: risk}]}"
         "\n",
         "lower one first"},
        {"figures:\n  - {id: a, kind: lines, x: {take: lam, limits: [1, inf]}, lines: [{take: "
         "risk}]}\n",
         "finite"},
        {"figures:\n  - {id: a, " LINES "lines: [{take: risk}], reference: [{x: inf}]}\n",
         "finite"},
        {"figures:\n  - {id: a.b, " LINES "lines: [{take: risk}]}\n",
         "test.yaml:7:10: the id 'a.b' must have"},
        {"figures:\n  - {id: '', " LINES "lines: [{take: risk}]}\n", "letters"},
        {"figures:\n  - {id: a, kind: training}\n", "command train"},
        {"figures:\n  - {id: a, kind: heat, x: {take: lam}, y: {take: risk}, take: risk}\n",
         "no setting"},
        {"figures:\n  - {id: a, " LINES "lines: [{take: risk}]}\n  - {id: a, " LINES
         "lines: [{take: risk}]}\n",
         "two figures"},
        {"claims:\n  - {id: c, statement: s, take: risk, reduce: max, expect: {at_most: 9}, "
         "figure: aa}\nfigures:\n  - {id: a, " LINES "lines: [{take: risk}]}\n",
         "no figure"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[2048];
        fin_study *study = NULL;
        snprintf(text, sizeof text, BLOCKS "%s", cases[i].figures);
        fin_status got = fin_study_parse(text, strlen(text), "test.yaml", NULL, &study, &err);
        if (!got)
            got = fin_report_check(study, &err);
        if (got == FIN_OK || !strstr(err.message, cases[i].message) ||
            strncmp(err.message, "test.yaml:", 10) != 0)
            fail_msg("case %d: %s: %s", (int)i, fin_status_name(got), err.message);
        fin_study_destroy(study);
    }
}

/* ---- faults ---------------------------------------------------------------------------------- */

static fin_status write_report(void *user, fin_error *e)
{
    (void)user;
    fin_store *store = NULL;
    fin_status status = fin_store_open(in_folder("full.db"), FIN_STORE_READ, &store, e);
    if (!status)
        status = fin_report_write(store, NULL, 0, NULL, in_folder("fault.html"), e);
    fin_store_close(store);
    return status;
}

static void report__every_allocation_may_fail(void **state)
{
    (void)state;
    assert_true(fault_places(write_report, NULL) > 50);
}

static int set_up(void **state)
{
    if (make_folder(state))
        return -1;
    fill("full.db", true, true);
    fill("empty.db", false, true);
    fill("cut.db", true, false);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(report__escapes_what_comes_from_outside),
        cmocka_unit_test(report__has_every_claim_and_figure),
        cmocka_unit_test(report__has_every_setting),
        cmocka_unit_test(report__same_store_same_bytes),
        cmocka_unit_test(report__says_what_is_missing),
        cmocka_unit_test(report__has_claims_that_were_not_judged),
        cmocka_unit_test(report__shows_a_study_once),
        cmocka_unit_test(report__policy_has_the_hashes),
        cmocka_unit_test(report__unknown_study_and_path),
        cmocka_unit_test(figure__csv_is_that_of_the_page),
        cmocka_unit_test(figure__lines_are_sorted_and_split),
        cmocka_unit_test(figure__training_is_thinned_out_to_its_end),
        cmocka_unit_test(figure__tells_its_notes),
        cmocka_unit_test(figure__has_the_title_it_is_given),
        cmocka_unit_test(figure__arrows_stay_on_the_spheres),
        cmocka_unit_test(figure__fits_say_what_they_are),
        cmocka_unit_test(figure__bands_without_numbers_are_noted),
        cmocka_unit_test(figure__counts_runs_that_are_not_there),
        cmocka_unit_test(figure__several_runs_at_one_x),
        cmocka_unit_test(figure__calibration_has_no_legend_of_one),
        cmocka_unit_test(figures__are_listed),
        cmocka_unit_test(check__says_where_and_what),
        cmocka_unit_test(report__every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, set_up, remove_folder);
}
