/* text: sentences whose mood depends on one word, through a pretrained encoder (Marion et al. 2025, section 2).
 *
 * A sentence is a shape, such as "The {n} {w} {d} was {a} {t}", with words drawn from lists. Half of them say
 * something good, half something bad, by {a} alone, whose words in test sentences are in no training sentence.
 * probe: what a linear map reads of the mood from one piece after so many layers. locate: attention fitted to
 * all pieces, and whether the piece it holds most probably responsible is of {a}. */
#include "command/command.h"

#include "finetti/bags.h"
#include "finetti/encoder_probe.h"
#include "random/streams.h"
#include "text/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define TEXT_FIELDS(F, C)                                                                          \
    C(measure, 0, "probe|locate",                                                                  \
      "probe: a linear map from one piece; locate: attention fitted to all pieces")                \
    C(token, 0, "first|last|mean", "probe: the first or last piece of a sentence, or their mean")  \
    F(int64_t, layer, 0, 0, 256, "states after so many layers; 0 = the embedding")                 \
    F(int64_t, train, 800, 4, 100000, "sentences to learn from")                                   \
    F(int64_t, test, 400, 2, 100000, "others to judge by")                                         \
    F(int64_t, seen, 27, 1, 1000, "words of each mood that training sentences have")

#define FIN_TABLE_STRUCT text_own
FIN_TABLE_OF_ITS_OWN(own_table, "text", TEXT_FIELDS);

enum { FOLDER = 1024, LIST = 1536, WORDS_MOST = 256, SENTENCE = 2048 };
typedef struct text_values {
    char encoder[FOLDER], shapes[LIST], test_shapes[LIST], good[LIST], bad[LIST], test_good[LIST],
        test_bad[LIST], nouns[LIST], who[LIST], did[LIST], when[LIST];
    text_own own;
    fin_fit_settings fit;
} text_values;

#define WORD(name, fallback, meaning) FIN_WORD(#name, text_values, name, fallback, meaning)
static const fin_word words[] = {
    WORD(encoder, "",
         "folder of an encoder as finetti embed takes it; runs are known by what is in it"),
    WORD(shapes,
         "The {n} that {w} {d} {t} was {a}|The {n} {w} {d} was {a} {t}|"
         "The {n} was {a} and {w} {d} it {t}",
         "sentences, with | between them: {a} decides, {n}, {w}, {d}, {t} are drawn"),
    WORD(test_shapes, "", "those of test sentences, if they are others"),
    WORD(good,
         "good|great|excellent|wonderful|pleasant|brilliant|fantastic|amazing|perfect|beautiful|"
         "impressive|nice|fine|awesome|gorgeous|exciting|attractive|comfortable|happy|safe|smart|"
         "clean|useful|helpful|successful|strong|fun|funny|easy|fresh|healthy|valuable|incredible|"
         "interesting|cute|cool|sweet|rich|wise",
         "words for {a}"),
    WORD(bad,
         "bad|awful|terrible|horrible|poor|nasty|boring|ugly|annoying|painful|uncomfortable|stupid|"
         "ridiculous|sad|angry|dangerous|dirty|broken|weak|worst|worse|evil|cheap|difficult|sick|"
         "dead|crazy|dumb|wrong|lazy|violent|guilty|rude|slow|expensive|fake|false|insane|silly",
         "words for {a}"),
    WORD(test_good, "", "words for {a} in test sentences; default: those of good that are left"),
    WORD(test_bad, "", "words for {a} in test sentences; default: those of bad that are left"),
    WORD(nouns,
         "phone|film|book|hotel|meal|song|game|car|coffee|garden|lecture|concert|jacket|museum|"
         "camera|story",
         "words for {n}"),
    WORD(
        who,
        "my sister|our neighbour|the teacher|my friend|a colleague|his brother|the guide|her uncle",
        "words for {w}"),
    WORD(did, "bought|saw|mentioned|described|remembered|noticed", "words for {d}"),
    WORD(when, "yesterday|last week|in spring|on Monday|this morning|a year ago", "words for {t}"),
    FIN_WORDS_END,
};

static const fin_output outputs[] = {
    {"accuracy", "probe: share of test sentences whose mood is read", NULL},
    {"log_loss", "probe: mean log loss", NULL},
    {"found", "locate: share of test sentences where the piece held responsible is of {a}", NULL},
    {"probability", "locate: mean probability of that piece", NULL},
    {NULL, NULL, NULL},
};

/* ---- lists ----------------------------------------------------------------------------------- */

/* Words of a list, as they stand in its text. */
typedef struct list {
    const char *word[WORDS_MOST];
    int size[WORDS_MOST], count;
} list;

static list cut_list(const char *text)
{
    list out = {.count = 0};
    while (*text && out.count < WORDS_MOST) {
        out.word[out.count] = text;
        out.size[out.count++] = (int)strcspn(text, "|");
        text += strcspn(text, "|");
        text += *text == '|';
    }
    return out;
}

static fin_status check_list(const char *name, const char *text, int least, fin_error *err)
{
    list words_of = cut_list(text);
    for (int i = 0; i < words_of.count; i++)
        if (words_of.size[i] == 0 || words_of.size[i] > 400)
            return fini_fail(err, FIN_ERR_ARGUMENT, "%s: a word between two | is empty or too long",
                             name);
    if (words_of.count < least)
        return fini_fail(err, FIN_ERR_ARGUMENT, "%s has %d words, and %d are needed", name,
                         words_of.count, least);
    return FIN_OK;
}

/* A shape has one {a}. */
static fin_status check_shapes(const char *name, const char *text, fin_error *err)
{
    list shapes = cut_list(text);
    FINI_TRY(check_list(name, text, 0, err));
    for (int i = 0; i < shapes.count; i++) {
        int count = 0;
        for (int k = 0; k + 3 <= shapes.size[i]; k++)
            count += memcmp(shapes.word[i] + k, "{a}", 3) == 0;
        if (count != 1)
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "%s: '%.*s' needs one {a}, the word that decides", name,
                             shapes.size[i] < 100 ? shapes.size[i] : 100, shapes.word[i]);
    }
    return FIN_OK;
}

/* ---- settings -------------------------------------------------------------------------------- */

static fin_status check_encoder(const text_values *v, fin_error *err)
{
    char key[FINI_TEXT_KEY];
    fin_text_encoder *e = NULL;
    if (!v->encoder[0] || fini_text_is_key(v->encoder)) /* a run says what is missing */
        return FIN_OK;
    fin_status status = fin_text_encoder_open(&e, v->encoder, err);
    if (!status && v->own.layer > fin_text_encoder_shape(e)->layers)
        status = fini_fail(err, FIN_ERR_ARGUMENT, "layer = %lld: the encoder has %lld",
                           (long long)v->own.layer, (long long)fin_text_encoder_shape(e)->layers);
    fin_text_encoder_destroy(e);
    return status ? status : fini_text_key(v->encoder, key, err);
}

static fin_status check(const void *values, fin_error *err)
{
    const text_values *v = values;
    const int seen = (int)v->own.seen;
    FINI_TRY(check_shapes("shapes", v->shapes, err));
    if (!v->shapes[0])
        return fini_fail(err, FIN_ERR_ARGUMENT, "shapes is empty: a sentence is needed");
    FINI_TRY(check_shapes("test_shapes", v->test_shapes, err));
    FINI_TRY(check_list("good", v->good, v->test_good[0] ? seen : seen + 1, err));
    FINI_TRY(check_list("bad", v->bad, v->test_bad[0] ? seen : seen + 1, err));
    const char *const names[] = {"test_good", "test_bad", "nouns", "who", "did", "when"};
    const char *const texts[] = {v->test_good, v->test_bad, v->nouns, v->who, v->did, v->when};
    for (int i = 0; i < 6; i++)
        FINI_TRY(check_list(names[i], texts[i], i < 2 ? 0 : 1, err));
    return check_encoder(v, err);
}

static void tidy(void *values)
{
    text_values *v = values;
    fini_text_to_key(v->encoder, sizeof v->encoder);
}

/* ---- sentences ------------------------------------------------------------------------------- */

typedef struct corpus {
    list words[2][2]; /* of bad, good; for training, for testing */
    list shapes[2], slot[4];
    int64_t n; /* training first */
    char (*text)[SENTENCE];
    int64_t *begin, *end; /* (n) bytes of the word that decides */
    double *mood;         /* (n) 0 bad, 1 good */
} corpus;

/* The first `seen` of the words in an order of their own, and the others. */
static void split_words(list all, const char *others, int seen, uint64_t seed, int mood,
                        list out[2])
{
    fin_random r;
    fin_random_open(&r, seed, FINI_STREAM_TEXT_SPLIT, (uint64_t)mood);
    for (int i = all.count - 1; i > 0; i--) {
        int k = (int)fin_random_below(&r, i + 1), size = all.size[i];
        const char *word = all.word[i];
        all.word[i] = all.word[k];
        all.size[i] = all.size[k];
        all.word[k] = word;
        all.size[k] = size;
    }
    out[0] = out[1] = (list){.count = 0};
    for (int i = 0; i < all.count; i++) {
        list *to = &out[i >= seen];
        to->word[to->count] = all.word[i];
        to->size[to->count++] = all.size[i];
    }
    if (*others)
        out[1] = cut_list(others);
}

static int draw_word(fin_random *r, const list *of)
{
    return (int)fin_random_below(r, of->count);
}

/* Sentence i of a corpus. False: it is too long. */
static bool write_sentence(corpus *c, int64_t i, bool test, uint64_t seed)
{
    fin_random r;
    char *to = c->text[i], *stop = to + SENTENCE - 1;
    fin_random_open(&r, seed, FINI_STREAM_TEXT_SENTENCE, (uint64_t)i);
    const list *deciding = &c->words[i % 2][test], *shapes = &c->shapes[test];
    int word = draw_word(&r, deciding), shape = draw_word(&r, shapes), slot[4];
    for (int k = 0; k < 4; k++)
        slot[k] = draw_word(&r, &c->slot[k]);
    c->mood[i] = (double)(i % 2);
    const char *p = shapes->word[shape], *end = p + shapes->size[shape];
    while (p < end) {
        const char *name =
            end - p >= 3 && p[0] == '{' && p[2] == '}' ? strchr("anwdt", p[1]) : NULL;
        const list *from = name && *name != 'a' ? &c->slot[strchr("nwdt", *name) - "nwdt"] : NULL;
        const char *text = p;
        int size = 1;
        if (name && *name == 'a') {
            text = deciding->word[word];
            size = deciding->size[word];
            c->begin[i] = to - c->text[i];
            c->end[i] = c->begin[i] + size;
        } else if (from) {
            int at = slot[from - c->slot];
            text = from->word[at];
            size = from->size[at];
        }
        if (stop - to < size)
            return false;
        memcpy(to, text, (size_t)size);
        to += size;
        p += name ? 3 : 1;
    }
    *to = '\0';
    return true;
}

static void corpus_close(corpus *c)
{
    fini_free_all(c->text, c->begin, c->end, c->mood);
}

static fin_status corpus_open(corpus *c, const text_values *v, fin_error *err)
{
    const uint64_t seed = (uint64_t)fini_seed_apart(v->fit.seed);
    const char *const slots[] = {v->nouns, v->who, v->did, v->when};
    c->n = v->own.train + v->own.test;
    c->text = fini_alloc_array(c->n, sizeof *c->text);
    c->begin = fini_alloc_array(c->n, sizeof *c->begin);
    c->end = fini_alloc_array(c->n, sizeof *c->end);
    c->mood = fini_alloc_array(c->n, sizeof *c->mood);
    if (!c->text || !c->begin || !c->end || !c->mood)
        return fini_fail_memory(err, (size_t)c->n * SENTENCE, "sentences");
    for (int k = 0; k < 4; k++)
        c->slot[k] = cut_list(slots[k]);
    c->shapes[0] = cut_list(v->shapes);
    c->shapes[1] = cut_list(v->test_shapes[0] ? v->test_shapes : v->shapes);
    split_words(cut_list(v->bad), v->test_bad, (int)v->own.seen, seed, 0, c->words[0]);
    split_words(cut_list(v->good), v->test_good, (int)v->own.seen, seed, 1, c->words[1]);
    for (int64_t i = 0; i < c->n; i++)
        if (!write_sentence(c, i, i >= v->own.train, seed))
            return fini_fail(err, FIN_ERR_ARGUMENT, "a sentence has more than %d bytes",
                             SENTENCE - 1);
    return FIN_OK;
}

/* ---- what is measured -------------------------------------------------------------------------- */

typedef struct measuring {
    const text_values *v;
    const corpus *c;
    fin_text_encoder *encoder;
    fin_text_pieces *pieces;
    int64_t rows, w; /* states: pieces or sentences, and their width */
    float *states;
} measuring;

static fin_status encode(measuring *m, const fin_progress *progress, fin_error *err)
{
    static const int picks[] = {FIN_TEXT_FIRST, FIN_TEXT_LAST, FIN_TEXT_MEAN};
    float *states[257] = {NULL};
    const text_own *own = &m->v->own;
    const char **texts = fini_alloc_array(m->c->n, sizeof *texts);
    if (!texts)
        return fini_fail_memory(err, (size_t)m->c->n * sizeof *texts, "sentences");
    for (int64_t i = 0; i < m->c->n; i++)
        texts[i] = m->c->text[i];
    fin_status status = fin_text_pieces_cut(&m->pieces, m->encoder, m->c->n, texts, NULL, 0, err);
    fini_free(texts);
    if (status)
        return status;
    bool all = own->measure == 1;
    m->w = fin_text_encoder_width(m->encoder, own->layer);
    m->rows = all ? fin_text_pieces_offsets(m->pieces)[m->c->n] : m->c->n;
    FINI_ROOM(err, "states", m->states, m->rows, m->w);
    states[own->layer] = m->states;
    fin_text_pass pass = {.states = states, .pick = all ? FIN_TEXT_ALL : picks[own->token]};
    return fin_text_encoder_run(m->encoder, m->pieces, &pass, progress, err);
}

static fin_status probe(const measuring *m, fin_result *result, fin_error *err)
{
    const int64_t train = m->v->own.train, test = m->v->own.test;
    FINI_OWN(err, "states", double, x, m->rows, m->w);
    fin_probe *fitted = NULL;
    fin_probe_score score = {0};
    for (int64_t i = 0; i < m->rows * m->w; i++)
        x[i] = (double)m->states[i];
    fin_status status = fin_probe_fit(&fitted, train, m->w, x, 2, 1, m->c->mood, FIN_AUTO, err);
    if (!status)
        status = fin_probe_judge(fitted, test, x + train * m->w, m->c->mood + train, &score, NULL,
                                 0, err);
    if (!status) {
        fini_result_share(result, "accuracy", NULL, llround(score.accuracy * (double)test), test);
        fini_result_scalar(result, "log_loss", score.log_loss, NAN, FIN_HOW_SIMULATION, test);
    }
    fin_probe_destroy(fitted);
    return status;
}

/* Test sentences whose likeliest piece is of the word that decides. */
static void judge(const measuring *m, const double *prior, fin_result *result)
{
    const int64_t *offsets = fin_text_pieces_offsets(m->pieces) + m->v->own.train,
                  *begin = fin_text_pieces_begin(m->pieces), test = m->v->own.test;
    int64_t found = 0;
    double sum = 0, square = 0;
    for (int64_t i = 0; i < test; i++) {
        int64_t best = offsets[i], k = m->v->own.train + i;
        for (int64_t t = offsets[i]; t < offsets[i + 1]; t++)
            best = prior[t - offsets[0]] > prior[best - offsets[0]] ? t : best;
        double p = prior[best - offsets[0]];
        found +=
            begin[best] < m->c->end[k] && fin_text_pieces_end(m->pieces)[best] > m->c->begin[k];
        sum += p / (double)test;
        square += p * p / (double)test;
    }
    fini_result_share(result, "found", NULL, found, test);
    fini_result_scalar(result, "probability", sum,
                       sqrt(fmax(0, square - sum * sum) / (double)(test - 1)), FIN_HOW_SIMULATION,
                       test);
}

static fin_status locate(const measuring *m, fin_result *result, const fin_progress *progress,
                         fin_error *err)
{
    const int64_t train = m->v->own.train, test = m->v->own.test,
                  *offsets = fin_text_pieces_offsets(m->pieces);
    fin_fit_settings settings = m->v->fit;
    fin_fit *fit = NULL;
    fin_bags bags = {.n = train,
                     .d = m->w,
                     .total = train,
                     .offsets = offsets,
                     .dtype = FIN_F32,
                     .tokens = m->states,
                     .labels = m->c->mood};
    FINI_OWN(err, "probabilities", double, prior, offsets[m->c->n] - offsets[train], 1);
    fin_status status = fin_fit_create(&fit, &settings, 2, &bags, NULL, NULL, progress, err);
    bags.n = bags.total = test;
    bags.offsets = offsets + train;
    bags.tokens = m->states + offsets[train] * m->w;
    bags.labels = NULL;
    if (!status)
        status = fin_fit_locate(fit, &bags, &(fin_locations){.prior = prior}, progress, err);
    if (!status)
        judge(m, prior, result);
    fin_fit_destroy(fit);
    return status;
}

static fin_status run(const void *values, fin_result *result, const fin_progress *progress,
                      fin_error *err)
{
    const text_values *v = values;
    char folder[FINI_FOLDER_PATH];
    corpus c = {.n = 0};
    measuring m = {.v = v, .c = &c};
    if (!v->encoder[0])
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "no encoder: set encoder to a folder with config.json and "
                         "model.safetensors; docs/encoder.md says where there is one");
    fin_status status = fini_text_given("encoder", v->encoder, folder, err);
    if (!status)
        status = fin_text_encoder_open(&m.encoder, folder, err);
    if (!status && v->own.layer > fin_text_encoder_shape(m.encoder)->layers)
        status = fini_fail(err, FIN_ERR_ARGUMENT, "layer = %lld: the encoder has %lld",
                           (long long)v->own.layer,
                           (long long)fin_text_encoder_shape(m.encoder)->layers);
    if (!status)
        status = corpus_open(&c, v, err);
    if (!status)
        status = encode(&m, progress, err);
    if (!status)
        status = v->own.measure == 1 ? locate(&m, result, progress, err) : probe(&m, result, err);
    fini_free(m.states);
    fin_text_pieces_destroy(m.pieces);
    fin_text_encoder_destroy(m.encoder);
    corpus_close(&c);
    return status;
}

const fin_command fini_command_text = {
    .name = "text",
    .summary =
        "sentences whose mood depends on one word, through an encoder: what pieces tell, which "
        "is responsible",
    .revision = 1,
    .size = sizeof(text_values),
    .words = words,
    .outputs = outputs,
    .tables = FINI_TABLES({&own_table, offsetof(text_values, own)},
                          {&fin_fit_table, offsetof(text_values, fit)}),
    .tidy = tidy,
    .check = check,
    .run = run,
};
