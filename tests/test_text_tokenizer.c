/* Tokenizers: the examples that came with BERT, hostile texts, and unigram against all ways to cut a word. */
#include "test_text_help.h"

/* An encoder without layers whose vocabulary is `pieces`, a line each. */
static fin_text_encoder *encoder_of(const char *pieces, const char *config)
{
    static char text[4096];
    snprintf(text, sizeof text, "[UNK]\n[CLS]\n[SEP]\n%s", pieces);
    model m = {"bert", "gelu", 0, 1, 1, 1, 1, 64, 3, 0};
    for (const char *p = pieces; *p; p++)
        m.vocabulary += *p == '\n';
    write_model(&m, F32);
    write_text("vocab.txt", text);
    remove(in_folder("tokenizer_config.json"));
    if (config)
        write_text("tokenizer_config.json", config);
    return open_encoder();
}

/* The pieces of a text, without those around it, with spaces between. */
static const char *cut_size(const fin_text_encoder *e, const char *text, size_t size)
{
    static char all[8192];
    const int64_t sizes[] = {(int64_t)size};
    fin_text_pieces *p = NULL;
    assert_ok(fin_text_pieces_cut(&p, e, 1, &text, sizes, 0, &err));
    int64_t count = fin_text_pieces_offsets(p)[1],
            around = strcmp(fin_text_encoder_shape(e)->kind, "use-lite") != 0;
    const int32_t *ids = fin_text_pieces_ids(p);
    all[0] = '\0';
    if (around) {
        assert_string_equal(fin_text_encoder_piece(e, ids[0]), "[CLS]");
        assert_string_equal(fin_text_encoder_piece(e, ids[count - 1]), "[SEP]");
    }
    for (int64_t t = around; t < count - around; t++) {
        int64_t begin = fin_text_pieces_begin(p)[t], end = fin_text_pieces_end(p)[t];
        assert_true(begin >= 0 && begin <= end && end <= (int64_t)size);
        strcat(strcat(all, t > around ? " " : ""), fin_text_encoder_piece(e, ids[t]));
    }
    fin_text_pieces_destroy(p);
    return all;
}

static const char *cut(const fin_text_encoder *e, const char *text)
{
    return cut_size(e, text, strlen(text));
}

static const char WANTED[] = "want\n##want\n##ed\nwa\nun\nrunn\n##ing\n,\n";

/* tokenization_test.py of BERT's own repository. */
static void wordpiece__published_examples(void **state)
{
    (void)state;
    fin_text_encoder *e = encoder_of(WANTED, NULL);
    assert_string_equal(cut(e, "UNwant\xc3\xa9"
                               "d,running"),
                        "un ##want ##ed , runn ##ing");
    assert_string_equal(cut(e, ""), "");
    assert_string_equal(cut(e, "unwanted running"), "un ##want ##ed runn ##ing");
    assert_string_equal(cut(e, "unwantedX running"), "[UNK] runn ##ing");
    fin_text_encoder_destroy(e);
    e = encoder_of("hello\n!\nhow\nare\nyou\n?\n", "{\"do_lower_case\":true}");
    assert_string_equal(cut(e, " \tHeLLo!how  \n Are yoU?  "), "hello ! how are you ?");
    assert_string_equal(cut(e, "H\xc3\xa9llo"), "hello");
    fin_text_encoder_destroy(e);
    e = encoder_of("HeLLo\n!\nhow\nAre\nyoU\n?\nH\xc3\xa9llo\nHello\n", NULL); /* capitals: cased */
    assert_string_equal(cut(e, " \tHeLLo!how  \n Are yoU?  "), "HeLLo ! how Are yoU ?");
    assert_string_equal(cut(e, "H\xc3\xa9llo"), "H\xc3\xa9llo");
    fin_text_encoder_destroy(e);
    e = encoder_of("HeLLo\nHello\n", "{\"do_lower_case\":false,\"strip_accents\":true}");
    assert_string_equal(cut(e, "H\xc3\xa9llo He\xcc\x81LLo"), "Hello HeLLo");
    fin_text_encoder_destroy(e);
    e = encoder_of("ah\n\xe5\x8d\x9a\n\xe6\x8e\xa8\nzz\nah\xe5\x8d\x9a\n", NULL);
    assert_string_equal(cut(e, "ah\xe5\x8d\x9a\xe6\x8e\xa8zz"), "ah \xe5\x8d\x9a \xe6\x8e\xa8 zz");
    fin_text_encoder_destroy(e);
    e = encoder_of("ah\xe5\x8d\x9a\n", "{\"tokenize_chinese_chars\":false}");
    assert_string_equal(cut(e, "ah\xe5\x8d\x9a"), "ah\xe5\x8d\x9a");
    fin_text_encoder_destroy(e);
}

/* Letters of several scripts: marks, case, Hangul, punctuation beyond ASCII. */
static void wordpiece__follows_unicode(void **state)
{
    (void)state;
    fin_text_encoder *e =
        encoder_of("istanbul\n\xc3\x9f\n\xce\xb1\xcf\x83\n\xe2\x80\x9c\n\xd0\xb8\n"
                   "\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab\n\xef\xac\x81\no\n\xc7\xa7\n",
                   "{\"do_lower_case\":true}");
    assert_string_equal(cut(e, "\xc4\xb0STANBUL"), "istanbul"); /* U+0130 */
    assert_string_equal(cut(e, "\xe1\xba\x9e"), "\xc3\x9f");    /* capital sharp s */
    assert_string_equal(cut(e, "\xce\x86\xce\xa3"),
                        "\xce\xb1\xcf\x83"); /* Alpha with tonos, Sigma */
    assert_string_equal(cut(e, "\xe2\x80\x9c\xd0\x99"),
                        "\xe2\x80\x9c \xd0\xb8"); /* quote, short I */
    assert_string_equal(cut(e, "\xed\x95\x9c"),
                        "\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab"); /* Hangul */
    assert_string_equal(cut(e, "\xef\xac\x81"),
                        "\xef\xac\x81"); /* a ligature stays: NFD, not NFKD */
    assert_string_equal(cut(e, "\xe1\xbb\x9e\xc2\xa0\xe3\x80\x80o"), "o o"); /* two marks; spaces */
    assert_string_equal(cut(e, "\xc7\xa6"), "[UNK]"); /* G with caron is g, no piece */
    assert_string_equal(cut(e, "o\xe2\x80\xa8o\xe2\x80\xa9o"), "o o o"); /* U+2028, U+2029 */
    fin_text_encoder_destroy(e);
}

static void wordpiece__survives_hostile_texts(void **state)
{
    (void)state;
    fin_text_encoder *e = encoder_of("a\n##a\nb\n", NULL);
    assert_string_equal(cut_size(e, "a\xff\xfe\x80 b\xc3", 7), "a b");
    assert_string_equal(cut_size(e, "a\0b\x01\x7f\xc2\x85 b\xe2\x80\x8b", 12), "[UNK] b");
    assert_string_equal(cut_size(e, "\xed\xa0\x80\xf4\x90\x80\x80", 7), "");
    char *text = malloc(10000001);
    assert_non_null(text);
    memset(text, 'a', 10000000);
    text[10000000] = '\0';
    assert_string_equal(cut(e, text), "[UNK]"); /* a word of more than 100 characters */
    text[100] = ' ';
    fin_text_pieces *p = cut_texts(e, 1, (const char *const *)&text);
    assert_int_equal(fin_text_pieces_offsets(p)[1], 64);
    assert_int_equal(fin_text_pieces_left_out(p)[0], 101 - 62);
    assert_int_equal(fin_text_pieces_ids(p)[63], 2);
    assert_int_equal(fin_text_pieces_end(p)[62], 62);
    fin_text_pieces_destroy(p);
    for (int i = 0; i < 10000000; i++)
        text[i] = (char)(i * 2654435761u >> 11);
    p = NULL;
    assert_ok(fin_text_pieces_cut(&p, e, 1, (const char *const *)&text, (const int64_t[]){10000000},
                                  0, &err));
    fin_text_pieces_destroy(p);
    free(text);
    fin_text_encoder_destroy(e);
}

/* tokenizer.json says the same as vocab.txt. */
static void json__wordpiece(void **state)
{
    (void)state;
    static const char good[] =
        "{\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,"
        "\"handle_chinese_chars\":true,\"strip_accents\":null,\"lowercase\":true},"
        "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"model\":{\"type\":\"WordPiece\","
        "\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":\"@@\","
        "\"max_input_chars_per_word\":9,\"vocab\":{\"[CLS]\":1,\"@@ing\":4,\"runn\":3,\"[UNK]\":0,"
        "\"[SEP]\":2}}}";
    fin_text_encoder *e = encoder_of("a\nb\n", NULL);
    fin_text_encoder_destroy(e);
    write_text("tokenizer.json", good);
    e = open_encoder();
    assert_string_equal(cut(e, "Running runningng"), "runn @@ing [UNK]");
    fin_text_encoder_destroy(e);
    static const char *const bad[][2] = {{"\"@@ing\":4", "\"@@ing\":3"},
                                         {"\"@@ing\":4", "\"@@ing\":5"},
                                         {"BertNormalizer", "NFKC\",\"x\":\""},
                                         {"BertPreTokenizer", "ByteLevel"},
                                         {":9", ":0"},
                                         {"\"@@\"", "\"@@@@@@@@@@@@@@@@@@@@\""}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[1024];
        const char *at = strstr(good, bad[i][0]);
        assert_non_null(at);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, bad[i][1],
                 at + strlen(bad[i][0]));
        write_text("tokenizer.json", text);
        fin_text_encoder *none = (void *)&err;
        assert_true(fin_text_encoder_open(&none, folder, &err) != FIN_OK);
        assert_null(none);
    }
}

/* ---- unigram ------------------------------------------------------------------------------------ */

static const char *const unigram[] = {"?",
                                      "\xe2\x96\x81",
                                      "a",
                                      "b",
                                      "ab",
                                      "ba",
                                      "aab",
                                      "\xe2\x96\x81"
                                      "a",
                                      "\xe2\x96\x81"
                                      "ab",
                                      "bb",
                                      "abba"};
static const double scores[] = {0, -3, -2.5, -2.25, -3.5, -4.25, -6, -3.75, -5.5, -4, -8.75};
enum { UNIGRAM = sizeof scores / sizeof *scores };

/* The best sum of scores of all ways to cut a text, by trying them. */
static double best_of(const char *text)
{
    double best = *text ? -1e9 : 0;
    for (int i = 1; i < UNIGRAM && *text; i++)
        if (strncmp(text, unigram[i], strlen(unigram[i])) == 0)
            best = fmax(best, scores[i] + best_of(text + strlen(unigram[i])));
    return best;
}

static void unigram__is_the_best_of_all_cuts(void **state)
{
    (void)state;
    const model m = {"use-lite", "relu", 0, 1, 1, 1, 1, 64, UNIGRAM, 0};
    char json[2048] = "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[";
    write_model(&m, F32);
    for (int i = 0; i < UNIGRAM; i++)
        sprintf(json + strlen(json), "%s[\"%s\",%g]", i ? "," : "", unigram[i], scores[i]);
    strcat(json, "]},\"added_tokens\":[{\"id\":0}]}");
    write_text("tokenizer.json", json);
    fin_text_encoder *e = open_encoder();
    for (int code = 2; code < 1 << 10; code++) { /* all words of a and b of up to 9 letters */
        char word[16] = "", full[32];
        for (int i = code; i > 1; i /= 2)
            strcat(word, i % 2 ? "a" : "b");
        snprintf(full, sizeof full, "\xe2\x96\x81%s", word);
        const char *text = word;
        fin_text_pieces *p = cut_texts(e, 1, &text);
        double sum = 0;
        int64_t to = 0;
        for (int64_t t = 0; t < fin_text_pieces_offsets(p)[1]; t++) {
            sum += scores[fin_text_pieces_ids(p)[t]];
            assert_int_equal(fin_text_pieces_begin(p)[t], to);
            to = fin_text_pieces_end(p)[t];
        }
        assert_int_equal(to, (int64_t)strlen(word));
        assert_true(fabs(sum - best_of(full)) < 1e-4);
        fin_text_pieces_destroy(p);
    }
    assert_string_equal(cut(e, "  a \t b\xc2\xa0"
                               "ab"),
                        "\xe2\x96\x81"
                        "a \xe2\x96\x81 b \xe2\x96\x81"
                        "ab");
    assert_string_equal(cut(e, "xyz b"),
                        "\xe2\x96\x81 ? \xe2\x96\x81 b"); /* unknown neighbours: one */
    assert_string_equal(cut(e, "\xef\xbd\x81"), "\xe2\x96\x81"
                                                "a"); /* wide a */
    fin_text_pieces *none = (void *)&err;
    const char *empty = " ";
    assert_int_equal(fin_text_pieces_cut(&none, e, 1, &empty, NULL, 0, &err), FIN_ERR_ARGUMENT);
    assert_null(none);
    char *text = malloc(1000001);
    assert_non_null(text);
    memset(text, 'b', 1000000);
    text[1000000] = '\0';
    none = cut_texts(e, 1, (const char *const *)&text);
    assert_int_equal(fin_text_pieces_offsets(none)[1], 64);
    assert_true(fin_text_pieces_left_out(none)[0] >= 499000);
    fin_text_pieces_destroy(none);
    free(text);
    fin_text_encoder_destroy(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(wordpiece__published_examples, empty_folder),
        cmocka_unit_test_setup(wordpiece__follows_unicode, empty_folder),
        cmocka_unit_test_setup(wordpiece__survives_hostile_texts, empty_folder),
        cmocka_unit_test_setup(json__wordpiece, empty_folder),
        cmocka_unit_test_setup(unigram__is_the_best_of_all_cuts, empty_folder),
    };
    int failed = cmocka_run_group_tests(tests, make_folder, remove_folder);
    forget_tensors();
    return failed;
}
