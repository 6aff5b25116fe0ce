/* Studies from their files: what is read, what --set and `full:` change, and what is refused, with
 * file, line and column. tests/data/study_bad.txt holds a mistake a case. */
#include "test_json.h"

#include "fault.h"
#include "study/study.h"

#include <math.h>

static fin_error err;

static fin_study *parse_with(const char *text, const fin_study_changes *changes)
{
    fin_study *study = NULL;
    if (fin_study_parse(text, strlen(text), "f", changes, &study, &err))
        fail_msg("%s", err.message);
    return study;
}

static fin_study *parse(const char *text)
{
    return parse_with(text, NULL);
}

/* A setting of run i as text. */
static const char *setting(const fin_study *study, int64_t i, const char *name)
{
    static fin_plan plan;
    assert_ok(fin_study_get_run(study, i, &plan, &err));
    const char *text = json_setting(plan.settings, name);
    if (!text)
        fail_msg("there is no %s in %s", name, plan.settings);
    return text;
}

/* ---- mistakes ------------------------------------------------------------------------------- */

static const struct bad {
    const char *file;
    int line, column;
    const char *part; /* of the message */
} bad[] = {
    {"alias", 2, 8, "aliases (*name) are not read; write the value out"},
    {"anchor", 1, 8, "anchors (&name) are not read; write the value out"},
    {"at_sign", 2, 8, "a text that begins with @ ` or % needs quotes"},
    {"axes_list", 4, 11, "axes must be a map, {lam: [0.1, 0.2]}"},
    {"axis_empty", 4, 17, "the list is empty; give at least one value"},
    {"axis_empty_map", 4, 17, "an axis is a list of values, {from: .., to: .., count: ..},"},
    {"axis_first_value", 5, 11, "slr: L = 'x'; it must be a whole number"},
    {"axis_law", 4, 18, "did you mean 'uniform'?"},
    {"axis_nested", 4, 21, "a value must be a number or a word"},
    {"axis_twice", 4, 22, "the value 2.0 stands here twice"},
    {"seeds_twice", 3, 17, "the value 1 stands here twice"},
    {"dash_name", 1, 8, "'-x' is no name"},
    {"axis_not_whole", 4, 22, "from = 2.5, but L is a whole number, so its ends must be too"},
    {"axis_not_whole_end", 4, 29, "to = 10.5, but L is a whole number"},
    {"axis_null", 4, 21, "a value must be a number or a word"},
    {"axis_text", 4, 17, "an axis is a list of values, {from: .., to: .., count: ..},"},
    {"axis_two_laws", 4, 17, "an axis is a list of values, {from: .., to: .., count: ..},"},
    {"axis_unknown", 5, 7, "did you mean 'lam'?"},
    {"axis_value", 6, 13, "erf: lam = -4; it must be a number"},
    {"axis_word", 4, 24, "did you mean softmax?"},
    {"bad_id", 4, 9, "'a.b' is no name: letters, digits, - and _, at most 64 of them"},
    {"bad_indent", 4, 2, "this is no YAML: did not find expected key, while parsing a"},
    {"bad_name", 1, 8, "'a b' is no name: letters, digits, - and _, at most 64 of them"},
    {"block_text", 3, 5, "a block of runs must be a map, such as {id: ...}, not a text"},
    {"bomb", 1, 4, "anchors (&a) are not read; write the value out"},
    {"check_alone", 5, 20, "slr: L_min = 5 is above L = 2"},
    {"claims_map", 4, 9, "claims must be a list"},
    {"deep", 2, 38, "lists and maps are nested more than 32 deep"},
    {"deep_blocks", 1, 65, "lists and maps are nested more than 32 deep"},
    {"deep_open", 2, 38, "lists and maps are nested more than 32 deep"},
    {"draws_alone", 4, 5, "draws needs an axis with a law, such as {uniform: [0, 1]};"},
    {"draws_fraction", 4, 12, "draws = 1.5; it must be a whole number"},
    {"draws_huge", 4, 12, "draws = 1e+20; it must be a whole number"},
    {"draws_text", 4, 12, "draws = 'many'; it must be a number"},
    {"draws_zero", 4, 12, "draws = 0; it must be a whole number"},
    {"duplicate_key", 4, 1, "the key 'title' stands here for the second time; the first is"},
    {"empty", 1, 1, "there is nothing in it; a study begins with 'study: NAME'"},
    {"empty_key", 2, 1, "this is no YAML: did not find expected key, while parsing a"},
    {"empty_runs", 2, 7, "runs must be a list of 1 to 1000 blocks, each with a command"},
    {"escape_character", 2, 8, "here stands a control character (0x1b); a study is text in"},
    {"escaped_control", 2, 8, "this text has a control character (0x1b) in it"},
    {"escaped_nul", 2, 8, "this text has a NUL byte (0x00) in it"},
    {"figures_text", 4, 10, "figures must be a list"},
    {"full_axes_list", 4, 18, "axes must be a map of settings"},
    {"full_key", 4, 12, "full has no key 'seed'; did you mean 'seeds'?"},
    {"full_setting", 4, 18, "did you mean 'lam'?"},
    {"full_text", 4, 11, "full must be a map, such as {set: ...}, not a text"},
    {"full_value", 6, 21, "slr: L = 0; it must be a whole number"},
    {"law_choice", 5, 24, "choice takes a list of values"},
    {"law_integers_huge", 5, 26, "integers takes two whole numbers [lowest, highest], at most"},
    {"law_not_whole", 5, 29, "high = 9.5, but L is a whole number"},
    {"law_order", 5, 27, "uniform takes two finite numbers [low, high], low below high"},
    {"law_outside", 5, 19, "overlaps: kappa = "},
    {"law_overflow", 5, 27, "uniform takes two finite numbers [low, high], low below high"},
    {"law_sd", 5, 26, "normal takes [mean, standard deviation], finite, the second"},
    {"law_three", 5, 27, "uniform takes two finite numbers [low, high], low below high"},
    {"law_whole", 5, 26, "integers takes two whole numbers [lowest, highest], at most"},
    {"law_zero", 5, 30, "loguniform takes two finite numbers [low, high], 0 below low"},
    {"list_key", 2, 3, "a key must be a word, not a list or a map"},
    {"list_root", 1, 1, "a study must be a map, such as {study: ...}, not a list"},
    {"local_tag", 2, 7, "tags (!x) are not read; leave it out"},
    {"long_name", 1, 8, "aaa...' is no name"},
    {"many_axes", 4, 11, "a block has at most 16 axes"},
    {"many_runs", 3, 5, "with block 'risk' the study has more than 10000000 runs; take"},
    {"many_values", 10, 7, "up to here the axes have more than 4000000 values in all"},
    {"merge", 5, 7, "merge keys (<<) are not read; write the keys out"},
    {"name_is_list", 1, 8, "study must be a text, not a list"},
    {"next_line", 2, 9, "here stands a control character (0xc2); a study is text in"},
    {"no_command", 3, 5, "'command' is missing here: a text"},
    {"no_draws", 4, 18, "a random axis needs 'draws: N' in its block: how many to draw"},
    {"no_name", 1, 1, "'study' is missing here: a text"},
    {"no_runs", 1, 1, "'runs' is missing: a list of blocks, each with a command"},
    {"not_utf8", 2, 11, "here stands a byte that is not UTF-8 (0xe9); a study is text"},
    {"nul", 3, 16, "here stands a NUL byte (0x00); a study is text in UTF-8"},
    {"null_name", 1, 1, "study has no value; it must be a text"},
    {"only_comment", 1, 1, "there is nothing in it; a study begins with 'study: NAME'"},
    {"overlong", 2, 9, "here stands a byte that is not UTF-8 (0xc0); a study is text"},
    {"quoted_newline_key", 2, 1, "a study has no key 'a?b'; allowed are study, title, source,"},
    {"range_equal", 4, 17, "from and to must be two different, finite numbers"},
    {"range_huge", 4, 41, "count = 1e+12; it must be a whole number"},
    {"range_infinite", 4, 17, "from and to must be two different, finite numbers"},
    {"range_key", 4, 34, "did you mean 'count'?"},
    {"range_log", 4, 17, "from and to must be above 0 for spacing: log"},
    {"range_nan", 4, 24, "from = 'nan'; it must be a number"},
    {"range_no_count", 4, 17, "'count' is missing here: a number"},
    {"range_one", 4, 41, "count = 1; it must be a whole number"},
    {"range_outside", 4, 15, "slr: L = 0; it must be a whole number"},
    {"range_spacing", 4, 53, "spacing must be linear or log"},
    {"runs_map", 2, 7, "runs must be a list of 1 to 1000 blocks, each with a command"},
    {"scalar_root", 1, 1, "a study must be a map, such as {study: ...}, not a text"},
    {"seed_alone", 4, 5, "this seed is that of 'draws', which the block does not have;"},
    {"seed_negative", 4, 11, "seed = -5; it must be a whole number"},
    {"seeds_and_seed", 5, 5, "seed is both a fixed setting and an axis; keep one of them"},
    {"seeds_map", 4, 12, "seeds must be a number N, for the seeds 1 to N, or a list"},
    {"seeds_value", 4, 16, "risk: seed = -2; it must be a whole number"},
    {"seeds_zero", 4, 12, "seeds = 0; it must be a whole number"},
    {"set_and_axis", 5, 12, "lam is both a fixed setting and an axis; keep one of them"},
    {"set_bad_form", 4, 17, "did you mean softmax?"},
    {"set_bad_task", 4, 25, "there is no task 'srl'; there are slr, spiked, max"},
    {"set_fraction", 4, 14, "slr: L = 2.5; it must be a whole number"},
    {"set_ignored", 4, 24, "nu is where runs start with init = overlaps; add that, or leave"},
    {"set_lengths_and_L", 4, 36, "lengths takes the place of L and L_min; give one or the other"},
    {"set_list", 4, 10, "set must be a map of settings, {lam: 0.1}"},
    {"set_long_word", 5, 16, "risk: lengths has 8003 letters; it may have at most 4095"},
    {"set_no_exact_risk", 4, 26, "need an exact risk; there is none for softmax on slr"},
    {"set_nan", 4, 16, "erf: lam = nan; it must be a number"},
    {"set_not_number", 4, 16, "erf: lam = 'true'; it must be a number"},
    {"set_null", 5, 7, "lam has no value"},
    {"set_of_list", 4, 16, "lam must be one value here; several values stand under 'axes:'"},
    {"set_other_task", 4, 11, "slr has no setting snr; it belongs to spiked, max"},
    {"set_range", 5, 10, "slr: L = 0; it must be a whole number"},
    {"set_twice", 4, 21, "L_min is set twice ('-' is '_')"},
    {"set_unknown", 6, 7, "did you mean 'gamma'?"},
    {"surrogate", 2, 8, "here stands a byte that is not UTF-8 (0xed); a study is text"},
    {"tab", 3, 1, "a text that begins with @ ` or % needs quotes"},
    {"tag", 1, 8, "tags (tag:yaml.org,2002:str) are not read; leave it out"},
    {"tag_directive", 1, 1, "%TAG is not read; leave it out"},
    {"title_list", 2, 8, "title must be a text, not a list"},
    {"two_blocks", 4, 5, "there are two blocks 'risk'; give each an 'id' of its own"},
    {"two_documents", 4, 1, "a second document begins here; a file has one"},
    {"two_ids", 4, 26, "there are two blocks 'x'; give each an 'id' of its own"},
    {"unclosed", 3, 1, "this is no YAML: did not find expected ',' or ']', while"},
    {"unclosed_quote", 3, 1, "this is no YAML: found unexpected end of stream, while"},
    {"unknown_block_key", 4, 5, "a block of runs has no key 'sets'; did you mean 'set'?"},
    {"unknown_command", 3, 14, "did you mean 'risk'?"},
    {"unknown_key", 4, 1, "a study has no key 'claim'; did you mean 'claims'?"},
    {"utf16", 1, 1, "here stands a byte that is not UTF-8 (0xff); a study is text"},
};

static void assert_bad(const struct bad *b, const char *path, const char *label)
{
    fin_study *study = (fin_study *)&err;
    char where[1200];
    err = (fin_error){FIN_OK, ""};
    fin_status status = fin_study_read(path, NULL, &study, &err);
    snprintf(where, sizeof where, "%s:%d:%d: ", label, b->line, b->column);
    if (status != FIN_ERR_FORMAT || err.status != status || study ||
        strncmp(err.message, where, strlen(where)) != 0 || !strstr(err.message, b->part))
        fail_msg("%s: expected %s%s, got %s", b->file, where, b->part, err.message);
    assert_int_equal(fin_study_read(path, NULL, &study, NULL), FIN_ERR_FORMAT);
}

/* ---- the cases of study_bad.txt ---- */

enum { MOST_MISTAKES = 200 };
static struct {
    char *name, *text; /* both within `cases_file`; the text is what it stands for */
    size_t size;
} mistakes[MOST_MISTAKES];
static size_t mistake_count;
static char *cases_file;

/* From `from` up to `end`, escapes replaced, to `to`; how many bytes. The escapes: study_bad.txt. */
static size_t unescape(const char *from, const char *end, char *to)
{
    char *start = to;
    while (from < end) {
        unsigned byte;
        int count, used = 0;
        const char *close;
        if (*from != '\\') {
            *to++ = *from++;
        } else if (from[1] == '\n') {
            from += 2;
        } else if (from[1] == '\\') {
            *to++ = '\\';
            from += 2;
        } else if (sscanf(from, "\\x%2x", &byte) == 1) {
            *to++ = (char)byte;
            from += 4;
        } else if (sscanf(from, "\\{%d}(%n", &count, &used) == 1 && used &&
                   (close = memchr(from, ')', (size_t)(end - from)))) {
            size_t length = (size_t)(close - from) - (size_t)used;
            for (int i = 0; i < count; i++, to += length)
                memcpy(to, from + used, length);
            from = close + 1;
        } else {
            fail_msg("study_bad.txt: no such escape: %.20s", from);
        }
    }
    return (size_t)(to - start);
}

/* Group set-up: a folder, and the cases. */
static int read_cases(void **state)
{
    static char texts[1 << 16];
    char *to = texts;
    cases_file = read_file(FIN_TEST_DATA "/study_bad.txt", NULL);
    char *line = strstr(cases_file, "\n=== ");
    while (line) {
        assert_true(mistake_count < MOST_MISTAKES);
        char *name = line + 5, *begin = strchr(name, '\n');
        assert_non_null(begin);
        line = strstr(begin, "\n=== ");
        const char *end = line ? line + 1 : begin + strlen(begin);
        mistakes[mistake_count].name = name;
        mistakes[mistake_count].text = to;
        mistakes[mistake_count].size = unescape(begin + 1, end, to);
        to += mistakes[mistake_count++].size;
        assert_true(to < texts + sizeof texts / 2);
        *begin = '\0';
    }
    return make_folder(state);
}

static int forget_cases(void **state)
{
    free(cases_file);
    return remove_folder(state);
}

/* Read from a folder with a short name, so that no message is cut. */
static void bad__says_where_and_what(void **state)
{
    (void)state;
    char before[1024];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(folder), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char path[128];
        size_t k = 0;
        while (k < mistake_count && strcmp(mistakes[k].name, bad[i].file) != 0)
            k++;
        if (k == mistake_count)
            fail_msg("study_bad.txt has no case %s", bad[i].file);
        snprintf(path, sizeof path, "%s.yaml", bad[i].file);
        write_file(path, mistakes[k].text, mistakes[k].size);
        assert_bad(&bad[i], path, path);
    }
    assert_int_equal(chdir(before), 0);
}

/* A case that no row knows would test nothing. */
static void bad__every_case_has_a_row(void **state)
{
    (void)state;
    assert_int_equal(mistake_count, sizeof bad / sizeof *bad);
    for (size_t k = 0; k < mistake_count; k++) {
        size_t i = 0;
        while (i < sizeof bad / sizeof *bad && strcmp(mistakes[k].name, bad[i].file) != 0)
            i++;
        if (i == sizeof bad / sizeof *bad)
            fail_msg("no row for the case %s", mistakes[k].name);
    }
}

static void read__tells_files_that_cannot_be(void **state)
{
    (void)state;
    fin_study *study;
    assert_int_equal(fin_study_read(in_folder("none.yaml"), NULL, &study, &err), FIN_ERR_IO);
    assert_message(&err, "none.yaml");
    assert_int_equal(fin_study_read(folder, NULL, &study, &err), FIN_ERR_IO);
    char *large = malloc(FINI_YAML_BYTES + 1);
    memset(large, '#', FINI_YAML_BYTES + 1);
    const char *path = write_file("large.yaml", large, FINI_YAML_BYTES + 1);
    free(large);
    assert_int_equal(fin_study_read(path, NULL, &study, &err), FIN_ERR_FORMAT);
    assert_message(&err, "larger than 1048576 bytes");
    assert_null(study);
}

/* ---- what is read --------------------------------------------------------------------------- */

static const char two_blocks[] = "study: st-1\n"
                                 "title: T\n"
                                 "source: S\n"
                                 "about: A\n"
                                 "runs:\n"
                                 "  - id: one\n"
                                 "    command: risk\n"
                                 "    set: {lam: 0.2, L-min: 2}\n"
                                 "    axes: {L: [5, 1e1], d: [20, 30, 40]}\n"
                                 "    full:\n"
                                 "      set: {lam: 0.3, d: 50}\n"
                                 "      axes: {L: [5, 6, 7], eps: [0, 1]}\n"
                                 "  - command: train\n"
                                 "    set: {steps: 10}\n"
                                 "    seeds: 2\n"
                                 "    full: {seeds: [4, 5, 6]}\n"
                                 "figures: []\n";

static void read__blocks_in_order(void **state)
{
    (void)state;
    const char *path = write_file("a.yaml", two_blocks, strlen(two_blocks));
    fin_study *study;
    assert_ok(fin_study_read(path, NULL, &study, &err));
    assert_string_equal(fin_study_name(study), "st-1");
    assert_string_equal(fin_study_title(study), "T");
    assert_string_equal(study->source, "S");
    assert_string_equal(study->about, "A");
    assert_string_equal(study->changes, "");
    assert_int_equal(study->text_size, strlen(two_blocks));
    assert_string_equal(study->text, two_blocks);
    assert_int_equal(fin_study_claim_count(study), 0);
    assert_non_null(study->figures);
    assert_null(study->claims);
    assert_int_equal(fin_study_run_count(study), 8);
    const fini_block *one = fini_study_block(study, "one"), *two = fini_study_block(study, "train");
    assert_null(fini_study_block(study, "risk"));
    assert_int_equal(one->first, 0);
    assert_int_equal(one->count, 6);
    assert_int_equal(one->axis_count, 2);
    assert_int_equal(two->first, 6);
    assert_int_equal(two->count, 2);
    assert_string_equal(two->axes[0].name, "seed");
    assert_string_equal(setting(study, 0, "L"), "5");
    assert_string_equal(setting(study, 0, "L_min"), "2");
    assert_string_equal(setting(study, 0, "lam"), "0.2");
    assert_string_equal(setting(study, 4, "L"), "10");
    assert_string_equal(setting(study, 4, "d"), "30");
    assert_string_equal(setting(study, 7, "seed"), "2");
    assert_string_equal(setting(study, 7, "steps"), "10");
    fin_study_destroy(study);
    fin_study_destroy(NULL);
}

static void read__missing_texts_are_empty(void **state)
{
    (void)state;
    fin_study *study = parse("study: s\nruns: [{command: risk}]\n");
    assert_string_equal(fin_study_title(study), "");
    assert_string_equal(study->source, "");
    assert_string_equal(study->about, "");
    assert_int_equal(fin_study_run_count(study), 1);
    fin_study_destroy(study);
}

static void full__replaces_and_adds(void **state)
{
    (void)state;
    fin_study *study = parse_with(two_blocks, &(fin_study_changes){.full = 1});
    const fini_block *one = fini_study_block(study, "one");
    assert_int_equal(fin_study_run_count(study), 3 * 2 + 3);
    assert_int_equal(one->axis_count, 2); /* L, eps; d is fixed now */
    assert_string_equal(setting(study, 0, "d"), "50");
    assert_string_equal(setting(study, 0, "lam"), "0.3");
    assert_string_equal(setting(study, 0, "L_min"), "2");
    assert_string_equal(setting(study, 3, "eps"), "1");
    assert_string_equal(setting(study, 3, "L"), "6");
    assert_string_equal(setting(study, 8, "seed"), "6");
    assert_true(study->full);
    fin_study_destroy(study);
}

/* Claims, and groups of them, that are asked at full size alone. */
static void full__claims_of_its_own(void **state)
{
    (void)state;
    static const char text[] =
        "study: s\n"
        "runs: [{command: risk, full: {set: {L: 3}}}]\n"
        "claims:\n"
        "  - {id: a, statement: A, take: risk, expect: {at_most: 1}}\n"
        "  - {id: b, statement: B, take: risk, expect: {at_most: 1}, only: full}\n"
        "  - take: risk\n"
        "    claims:\n"
        "      - {id: c, statement: C, expect: {at_most: 1}, only: full}\n"
        "      - {id: d, statement: D, expect: {at_most: 1}}\n";
    fin_study *quick = parse(text), *full = parse_with(text, &(fin_study_changes){.full = 1});
    assert_int_equal(fin_study_claim_count(quick), 2);
    assert_int_equal(quick->left_out, 2);
    assert_int_equal(fin_study_claim_count(full), 4);
    assert_int_equal(full->left_out, 0);
    fin_study_destroy(quick);
    fin_study_destroy(full);
    static const char wrong[] =
        "study: s\n"
        "runs: [{command: risk}]\n"
        "claims: [{id: a, statement: A, take: risk, expect: {at_most: 1}, only: quick}]\n";
    fin_study *none;
    fin_error why;
    assert_int_equal(fin_study_parse(wrong, sizeof wrong - 1, "w", NULL, &none, &why),
                     FIN_ERR_FORMAT);
    assert_non_null(strstr(why.message, "w:3:"));
    assert_non_null(strstr(why.message, "'only' can be full"));
}

/* ---- --set ---------------------------------------------------------------------------------- */

static fin_study *parse_set(const char *text, int count, const char *const *set)
{
    return parse_with(text, &(fin_study_changes){set, count, 0});
}
#define SET(text, ...)                                                                             \
    parse_set(text, (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)),                 \
              (const char *[]){__VA_ARGS__})

static void set__long_paths(void **state)
{
    (void)state;
    fin_study *study =
        SET(two_blocks, "title=a: [b] = {c", "study=other", "runs.one.set.lam=0.7",
            "runs.one.axes.L=[6, 7, 8, 9]", "runs.one.set.d=77", "runs.train.seeds=[9]");
    assert_string_equal(fin_study_title(study), "a: [b] = {c");
    assert_string_equal(fin_study_name(study), "other");
    assert_string_equal(setting(study, 0, "lam"), "0.7");
    assert_string_equal(setting(study, 1, "L"), "7");
    assert_string_equal(setting(study, 1, "d"), "77"); /* no axis any more */
    assert_int_equal(fini_study_block(study, "one")->count, 4);
    assert_string_equal(setting(study, 4, "seed"), "9");
    assert_int_equal(fin_study_run_count(study), 5);
    fin_study_destroy(study);
    study = SET(two_blocks, "runs.one.axes.kappa={uniform: [0, 1]}", "runs.one.draws=3",
                "runs.one.seed=5", "runs.one.axes.lam=[1]");
    assert_int_equal(fini_study_block(study, "one")->count, 18);
    assert_string_equal(setting(study, 0, "lam"), "1"); /* not fixed any more */
    fin_study_destroy(study);
}

static void set__short_paths(void **state)
{
    (void)state;
    fin_study *study = SET(two_blocks, "one.lam=0.4", "one.L=9", "one.d=[21, 22]", "one.L_min=3",
                           "train.seed=12", "train.lengths=5:0.2,10:0.8");
    assert_int_equal(fin_study_run_count(study), 3);
    assert_string_equal(setting(study, 1, "lam"), "0.4");
    assert_string_equal(setting(study, 1, "L"), "9");
    assert_string_equal(setting(study, 1, "L_min"), "3");
    assert_string_equal(setting(study, 1, "d"), "22");
    assert_string_equal(setting(study, 2, "seed"), "12");
    assert_string_equal(setting(study, 2, "lengths"), "5:0.2,10:0.8");
    fin_study_destroy(study);
    study = SET("study: s\nruns: [{command: risk}]\n", "lam=0.4", "L=[2, 3]", "seeds=3");
    assert_int_equal(fin_study_run_count(study), 6);
    assert_string_equal(setting(study, 5, "lam"), "0.4");
    assert_string_equal(setting(study, 5, "L"), "3");
    assert_string_equal(setting(study, 5, "seed"), "3");
    fin_study_destroy(study);
}

static void set__wins_over_full(void **state)
{
    (void)state;
    fin_study *study = parse_with(
        two_blocks, &(fin_study_changes){(const char *[]){"one.lam=0.9", "one.L=4"}, 2, 1});
    assert_int_equal(fini_study_block(study, "one")->count, 2);
    assert_string_equal(setting(study, 0, "lam"), "0.9");
    assert_string_equal(setting(study, 0, "L"), "4");
    fin_study_destroy(study);
}

/* Changes do not keep a mistake under `full:` from being told, and changes that do not go with it
 * are no mistake. */
static void set__full_is_checked_too(void **state)
{
    (void)state;
    static const char wrong[] = "study: s\nruns: [{command: risk, full: {set: {lamm: 2}}}]\n";
    static const char good[] = "study: s\n"
                               "runs:\n"
                               "  - command: risk\n"
                               "    full: {draws: 3, axes: {kappa: {uniform: [0, 1]}}}\n";
    fin_study *study;
    fin_study_changes lam = {(const char *[]){"lam=0.2"}, 1, 0};
    fin_study_changes kappa = {(const char *[]){"kappa=0.2"}, 1, 0};
    assert_int_equal(fin_study_parse(wrong, strlen(wrong), "f", &lam, &study, &err),
                     FIN_ERR_FORMAT);
    assert_message(&err, "has no setting 'lamm'");
    assert_null(study);
    assert_ok(fin_study_parse(good, strlen(good), "f", &kappa, &study, &err));
    assert_int_equal(fin_study_run_count(study), 1);
    fin_study_destroy(study);
    kappa.full = 1;
    assert_int_equal(fin_study_parse(good, strlen(good), "f", &kappa, &study, &err),
                     FIN_ERR_FORMAT);
}

static void set__refusals(void **state)
{
    (void)state;
    static const struct {
        const char *set, *message;
    } cases[] = {
        {"one.lamm=3", "--set one.lamm: risk with task slr and form erf has no setting 'lamm'; did "
                       "you mean 'lam'?"},
        {"onne.lam=3", "--set onne.lam: the study has no block 'onne'; did you mean 'one'?"},
        {"runs.noe.set.lam=3", "--set runs.noe.set.lam: the study has no block 'noe'"},
        {"runs.one.axis.lam=[3]", "a block has no 'axis'; did you mean 'axes'?"},
        {"runs.one.lam=3", "--set runs.one.lam: a block has no 'lam'"},
        {"runs.one.set=3", "--set runs.one.set: no such path"},
        {"runs.one.draws.x=3", "no such path"},
        {"a.b.c.d.e=3", "no such path"},
        {"a..b=3", "no such path"},
        {"tilte=x", "--set tilte: 'tilte' is no key of a study; did you mean 'title'?"},
        {"lam=3", "a setting needs its block, as in one.lam"},
        {"one.lam=", "--set one.lam: there is no value after the '='"},
        {"one.lam=~", "there is no value"},
        {"one.lam", "--set one.lam: give PATH=VALUE"},
        {"=3", "give PATH=VALUE"},
        {"one.lam=1\n2", "give PATH=VALUE"},
        {"one.lam=x", "--set one.lam: erf: lam = 'x'; it must be a number"},
        {"one.lam=[1, -2]", "--set one.lam: erf: lam = -2; it must be"},
        {"one.L=[1, 2", "--set one.L: this is no YAML"},
        {"one.L=[*a]", "--set one.L: aliases"},
        {"one.L=[]", "--set one.L: the list is empty"},
        {"title=\x01", "--set title: here stands a control character"},
        {"one.L=\xff", "--set one.L: here stands a byte that is not UTF-8"},
        {"study=a b", "--set study: 'a b' is no name"},
        {"runs.one.set.lam=[1]", "--set runs.one.set.lam: lam must be one value here"},
        {"runs.one.axes.lam=1", "--set runs.one.axes.lam: an axis is a list"},
        {"one.lengths=5:1", "--set one.lengths: lengths takes the place of L and L_min"},
        {"one.L_min=20", "--set one.L_min: slr: L_min = 20 is above L = 5"},
        {"train.kappa=0.3", "--set train.kappa: kappa is where runs start with init = overlaps"},
        {"one.snr=3", "--set one.snr: slr has no setting snr; it belongs to spiked, max"},
        {"one.draws=3", "--set one.draws: draws needs an axis with a law"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fin_study *study = (fin_study *)&err;
        fin_status status =
            fin_study_parse(two_blocks, strlen(two_blocks), "f",
                            &(fin_study_changes){&cases[i].set, 1, 0}, &study, &err);
        if (status != FIN_ERR_ARGUMENT || study || !strstr(err.message, cases[i].message))
            fail_msg("--set %s: expected '%s', got %d: %s", cases[i].set, cases[i].message, status,
                     err.message);
    }
}

/* What cannot be changed is told as the mistake that it is. */
static void set__of_what_is_no_study(void **state)
{
    (void)state;
    static const char *const texts[] = {"[]",
                                        "x",
                                        "study: s\nruns: [risk]",
                                        "runs: x",
                                        "runs: []",
                                        "study: s\nruns: [[]]",
                                        "runs: [{set: 1, axes: 2, full: {set: {L: 3}}}]"};
    static const char *const sets[] = {"lam=3", "L=[2]", "seeds=3", "draws=2", "title=x"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (int full = 0; full <= 1; full++) {
            fin_study *study;
            assert_int_equal(fin_study_parse(texts[i], strlen(texts[i]), "f",
                                             &(fin_study_changes){sets, 5, full}, &study, &err),
                             FIN_ERR_FORMAT);
        }
}

/* ---- the same study again ------------------------------------------------------------------- */

static void restore__gives_the_same_runs(void **state)
{
    (void)state;
    static const char *const set[] = {"one.lam=0.4", "title=x y", "one.L=[2, 3]"};
    for (int count = 0; count <= 3; count++) {
        fin_study *study = parse_with(two_blocks, &(fin_study_changes){set, count, count % 2});
        fin_study *again = NULL;
        assert_ok(fini_study_restore(study->text, study->text_size, study->changes, study->full,
                                     "store", &again, &err));
        assert_string_equal(study->changes, again->changes);
        assert_string_equal(fin_study_title(study), fin_study_title(again));
        assert_int_equal(study->full, again->full);
        assert_int_equal(fin_study_run_count(study), fin_study_run_count(again));
        fin_plan *a = malloc(sizeof *a), *b = malloc(sizeof *b);
        for (int64_t i = 0; i < fin_study_run_count(study); i++) {
            assert_ok(fin_study_get_run(study, i, a, &err));
            assert_ok(fin_study_get_run(again, i, b, &err));
            assert_string_equal(a->settings, b->settings);
            assert_string_equal(a->hash, b->hash);
        }
        free(a);
        free(b);
        fin_study_destroy(study);
        fin_study_destroy(again);
    }
    fin_study *study;
    assert_int_equal(
        fini_study_restore(two_blocks, strlen(two_blocks), "x=1\n", 0, "store", &study, &err),
        FIN_ERR_ARGUMENT);
}

/* ---- shipped studies ------------------------------------------------------------------------ */

static void shipped__all_can_be_read(void **state)
{
    (void)state;
    int count = fin_shipped_count();
    assert_null(fin_shipped_name(count));
    assert_null(fin_shipped_text(count));
    assert_null(fin_shipped_name(-1));
    for (int i = 0; i < count; i++) {
        const char *text = fin_shipped_text(i), *name = fin_shipped_name(i);
        fin_study *study = NULL;
        assert_null(strstr(name, ".yaml"));
        assert_ok(fin_study_parse(text, strlen(text), name, NULL, &study, &err));
        assert_string_equal(fin_study_name(study), name);
        fin_study_destroy(study);
    }
}

/* ---- faults --------------------------------------------------------------------------------- */

static fin_status read_once(void *user, fin_error *e)
{
    static const char *const set[] = {"one.lam=0.4", "one.L=[2, 3]", "title=x",
                                      "one.kappa={uniform: [0, 1]}", "one.draws=5"};
    fin_study *study, *again = NULL;
    fin_status status = fin_study_read(user, &(fin_study_changes){set, 5, 1}, &study, e);
    if (status)
        return status;
    status = fini_study_restore(study->text, study->text_size, study->changes, study->full, "s",
                                &again, e);
    fin_plan *plan = malloc(sizeof *plan);
    if (!status)
        status = fin_study_get_run(again, 1, plan, e);
    free(plan);
    fin_study_destroy(study);
    fin_study_destroy(again);
    if (!status) /* reads `full:` too */
        status = fin_study_read(user, NULL, &study, e);
    if (!status)
        fin_study_destroy(study);
    return status;
}

static void read__survives_allocation_faults(void **state)
{
    (void)state;
    char path[1024];
    snprintf(path, sizeof path, "%s", write_file("a.yaml", two_blocks, strlen(two_blocks)));
    assert_true(fault_every(read_once, path) >= 10);
}

#define TEST(name) cmocka_unit_test_setup(name, empty_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(bad__says_where_and_what),
        TEST(bad__every_case_has_a_row),
        TEST(read__tells_files_that_cannot_be),
        TEST(read__blocks_in_order),
        TEST(read__missing_texts_are_empty),
        TEST(full__replaces_and_adds),
        TEST(full__claims_of_its_own),
        TEST(set__long_paths),
        TEST(set__short_paths),
        TEST(set__wins_over_full),
        TEST(set__full_is_checked_too),
        TEST(set__refusals),
        TEST(set__of_what_is_no_study),
        TEST(restore__gives_the_same_runs),
        TEST(shipped__all_can_be_read),
        TEST(read__survives_allocation_faults),
    };
    return cmocka_run_group_tests(tests, read_cases, forget_cases);
}
