/* Encoders in files: weights, settings, heads, scales and the state of learning come back to the last
 * bit; learning goes on to the same bytes; damaged and hostile files, and files of another shape, are
 * refused; a full disk leaves the old file. */
#include "test_data.h"

#include "data/tensors.h"
#include "fault.h"
#include "finetti/data_encoder.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <xxhash.h>

static fin_error err;

static const fin_entry notes[] = {{"family", "concept"}, {"label", "a \"quoted\"\nlabel"}};
enum { NOTES = sizeof notes / sizeof *notes };

static fin_encoder *small_encoder(int64_t width, uint64_t seed)
{
    fin_encoder_settings settings;
    fin_encoder *encoder = NULL;
    const fin_encoder_shape shape = {
        .inputs = 3,
        .values = 1,
        .heads = 3,
        .head = {{"value", FIN_HEAD_GAUSSIAN, FIN_HEAD_TOKENS, 1, 1},
                 {"label", FIN_HEAD_CLASSES, FIN_HEAD_POOLED, 4, 1.0 / 3},
                 {"other", FIN_HEAD_VALUE, FIN_HEAD_POOLED, 2, 0}}};
    fin_settings_defaults(&fin_encoder_table, &settings, sizeof settings);
    settings.width = width;
    settings.heads = 2;
    settings.layers = 1;
    settings.hidden = 6;
    settings.attention = FIN_ENCODER_CME;
    settings.positions = FIN_POSITIONS_LEARNED;
    settings.longest = 5;
    assert_ok(fin_encoder_create(&encoder, &settings, &shape, seed, &err));
    return encoder;
}

static fin_checkpoint *read_back(const char *path)
{
    fin_checkpoint *c = NULL;
    assert_ok(fin_checkpoint_read(path, &c, &err));
    return c;
}

static void refuse(const char *path, fin_status status, const char *part)
{
    fin_checkpoint *c = (fin_checkpoint *)&err;
    assert_int_equal(fin_checkpoint_read(path, &c, &err), status);
    assert_null(c);
    assert_message(&err, part);
}

static void same_settings(const fin_settings *table, const void *a, const void *b)
{
    for (int i = 0; i < table->count; i++)
        assert_true(fin_settings_get(&table->fields[i], a) ==
                    fin_settings_get(&table->fields[i], b));
}

/* ---- the encoder -------------------------------------------------------------------------------- */

static void checkpoint__encoder_comes_back(void **state)
{
    (void)state;
    fin_encoder *encoder = small_encoder(4, 7), *again = NULL;
    double center[3] = {0.1, -2, 1e300}, scale[3] = {1.0 / 3, 1e-300, 7};
    const fin_token_scale of = {3, center, scale};
    assert_ok(fin_checkpoint_write(in_folder("e.fin"), encoder, NULL, &of, notes, NOTES, &err));
    fin_checkpoint *c = read_back(in_folder("e.fin"));
    same_settings(&fin_encoder_table, fin_encoder_get_settings(encoder),
                  fin_checkpoint_settings(c));
    const fin_encoder_shape *a = fin_encoder_get_shape(encoder), *b = fin_checkpoint_shape(c);
    assert_true(a->inputs == b->inputs && a->values == b->values && a->heads == b->heads);
    for (int64_t i = 0; i < a->heads; i++) {
        assert_string_equal(a->head[i].name, b->head[i].name);
        assert_true(a->head[i].kind == b->head[i].kind && a->head[i].where == b->head[i].where);
        assert_true(a->head[i].size == b->head[i].size && a->head[i].weight == b->head[i].weight);
    }
    assert_ok(fin_checkpoint_encoder(c, &again, &err));
    assert_int_equal(fin_encoder_parameters(encoder), fin_encoder_parameters(again));
    assert_memory_equal(fin_encoder_weights(encoder), fin_encoder_weights(again),
                        (size_t)fin_encoder_parameters(encoder) * sizeof(float));
    assert_non_null(fin_checkpoint_scale(c));
    assert_int_equal(fin_checkpoint_scale(c)->columns, 3);
    assert_memory_equal(fin_checkpoint_scale(c)->center, center, sizeof center);
    assert_memory_equal(fin_checkpoint_scale(c)->scale, scale, sizeof scale);
    assert_null(fin_checkpoint_learn(c));
    for (int i = 0; i < NOTES; i++)
        assert_string_equal(fin_checkpoint_entry(c, notes[i].key), notes[i].value);
    assert_null(fin_checkpoint_entry(c, "finetti"));
    assert_null(fin_checkpoint_entry(c, "absent"));
    /* Written once more, it is the same file. */
    size_t size, other;
    assert_ok(fin_checkpoint_write(in_folder("f.fin"), again, NULL, fin_checkpoint_scale(c), notes,
                                   NOTES, &err));
    char *x = read_file(in_folder("e.fin"), &size), *y = read_file(in_folder("f.fin"), &other);
    assert_int_equal(size, other);
    assert_memory_equal(x, y, size);
    free(x);
    free(y);
    fin_checkpoint_close(c);
    fin_checkpoint_close(NULL);
    fin_encoder_destroy(encoder);
    fin_encoder_destroy(again);
}

/* ---- learning ----------------------------------------------------------------------------------- */

typedef struct lesson {
    fin_latent *latent;
    fin_corpus *corpus;
    fin_encoder *encoder;
    fin_learn *learn;
} lesson;

static fin_learn_settings lesson_settings(void)
{
    fin_learn_settings s;
    fin_settings_defaults(&fin_learn_table, &s, sizeof s);
    s.steps = 12;
    s.batch = 4;
    s.evaluate_every = 5;
    s.evaluate_on = 8;
    s.patience = 3;
    s.rate = 1.0 / 300;
    return s;
}

/* encoder NULL: a new one. */
static lesson begin(fin_encoder *encoder)
{
    lesson l = {.encoder = encoder};
    fin_corpus_settings corpus;
    fin_encoder_settings settings;
    fin_encoder_shape shape;
    fin_settings_defaults(&fin_corpus_table, &corpus, sizeof corpus);
    corpus.L = 4;
    corpus.M = 2;
    assert_ok(fin_latent_create(&l.latent, fin_family_find("concept"), NULL, 3, &err));
    assert_ok(fin_corpus_latent(&l.corpus, &corpus, l.latent, 3, &err));
    fin_corpus_get_shape(l.corpus, &shape);
    fin_settings_defaults(&fin_encoder_table, &settings, sizeof settings);
    settings.width = 8;
    settings.heads = 2;
    settings.layers = 1;
    if (!encoder)
        assert_ok(fin_encoder_create(&l.encoder, &settings, &shape, 5, &err));
    fin_learn_settings s = lesson_settings();
    assert_ok(fin_learn_create(&l.learn, &s, l.encoder, l.corpus, NULL, NULL, 0, 1, &err));
    return l;
}

static void finish(lesson *l)
{
    fin_learn_destroy(l->learn);
    fin_encoder_destroy(l->encoder);
    fin_corpus_destroy(l->corpus);
    fin_latent_destroy(l->latent);
}

static void checkpoint__learning_goes_on_to_the_same_bytes(void **state)
{
    (void)state;
    lesson whole = begin(NULL);
    assert_ok(fin_learn_run(whole.learn, -1, NULL, NULL, &err));
    assert_ok(fin_checkpoint_write(in_folder("whole.fin"), whole.encoder, whole.learn, NULL, NULL,
                                   0, &err));
    size_t size, other;
    char *a = read_file(in_folder("whole.fin"), &size);
    for (int64_t stop = 0; stop <= 12; stop += 3) {
        lesson first = begin(NULL);
        assert_ok(fin_learn_run(first.learn, stop, NULL, NULL, &err));
        assert_ok(fin_checkpoint_write(in_folder("part.fin"), first.encoder, first.learn, NULL,
                                       NULL, 0, &err));
        finish(&first);
        fin_checkpoint *c = read_back(in_folder("part.fin"));
        fin_learn_settings expected = lesson_settings();
        assert_non_null(fin_checkpoint_learn(c));
        same_settings(&fin_learn_table, &expected, fin_checkpoint_learn(c));
        fin_encoder *encoder = NULL;
        assert_ok(fin_checkpoint_encoder(c, &encoder, &err));
        lesson second = begin(encoder);
        assert_ok(fin_checkpoint_restore(c, second.learn, &err));
        assert_int_equal(fin_learn_step(second.learn), stop);
        assert_ok(fin_learn_run(second.learn, -1, NULL, NULL, &err));
        assert_ok(fin_checkpoint_write(in_folder("part.fin"), encoder, second.learn, NULL, NULL, 0,
                                       &err));
        char *b = read_file(in_folder("part.fin"), &other);
        assert_int_equal(size, other);
        assert_memory_equal(a, b, size);
        free(b);
        fin_checkpoint_close(c);
        finish(&second);
    }
    free(a);
    finish(&whole);
}

static void checkpoint__of_another_shape_or_without_state(void **state)
{
    (void)state;
    lesson l = begin(NULL);
    fin_encoder *other = small_encoder(4, 1);
    assert_ok(fin_checkpoint_write(in_folder("bare.fin"), l.encoder, NULL, NULL, NULL, 0, &err));
    fin_checkpoint *c = read_back(in_folder("bare.fin"));
    assert_int_equal(fin_checkpoint_restore(c, l.learn, &err), FIN_ERR_FORMAT);
    assert_message(&err, "not the state of its learning");
    assert_null(fin_checkpoint_scale(c));
    fin_checkpoint_close(c);
    /* The state of one learning with the encoder of another: as many moments as weights are needed. */
    assert_ok(fin_checkpoint_write(in_folder("odd.fin"), other, l.learn, NULL, NULL, 0, &err));
    c = read_back(in_folder("odd.fin"));
    fin_encoder *encoder = NULL;
    fin_learn *learn = NULL;
    assert_ok(fin_checkpoint_encoder(c, &encoder, &err));
    fin_learn_settings s = lesson_settings();
    fin_status status = fin_learn_create(&learn, &s, encoder, l.corpus, NULL, NULL, 0, 1, &err);
    if (!status) /* an encoder of other inputs may be refused before */
        status = fin_checkpoint_restore(c, learn, &err);
    assert_true(status == FIN_ERR_FORMAT || status == FIN_ERR_ARGUMENT);
    fin_learn_destroy(learn);
    fin_encoder_destroy(encoder);
    fin_encoder_destroy(other);
    fin_checkpoint_close(c);
    finish(&l);
}

/* ---- hostile files ------------------------------------------------------------------------------ */

/* Makes the checksum of changed bytes right. */
static void seal(char *bytes, size_t size)
{
    char digits[FINI_CHECKSUM + 1];
    const size_t at = 8 + FINI_CHECKSUM_AT;
    memset(bytes + at, '0', FINI_CHECKSUM);
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)XXH3_64bits(bytes, size));
    memcpy(bytes + at, digits, FINI_CHECKSUM);
}

static char *encoder_bytes(size_t *size)
{
    fin_encoder *encoder = small_encoder(4, 7);
    double center[3] = {0, 1, 2}, scale[3] = {1, 2, 3};
    const fin_token_scale of = {3, center, scale};
    assert_ok(fin_checkpoint_write(in_folder("e.fin"), encoder, NULL, &of, notes, NOTES, &err));
    fin_encoder_destroy(encoder);
    return read_file(in_folder("e.fin"), size);
}

/* The file with `from` (which is there once) replaced by `to`, which is as long, and a right
 * checksum. */
static const char *changed(const char *from, const char *to)
{
    size_t size, length = strlen(from);
    char *bytes = encoder_bytes(&size), *at = NULL;
    assert_int_equal(length, strlen(to));
    for (size_t i = 0; i + length <= size; i++)
        if (memcmp(bytes + i, from, length) == 0)
            at = bytes + i;
    assert_non_null(at);
    memcpy(at, to, length);
    seal(bytes, size);
    const char *path = write_file("changed.fin", bytes, size);
    free(bytes);
    return path;
}

static void hostile__what_finetti_does_not_write(void **state)
{
    (void)state;
    const struct {
        const char *from, *to, *part;
    } changes[] = {
        {"\"finetti\":\"encoder\"", "\"finetti\":\"encodes\"", "not an encoder"},
        {"\"version\":\"1\"", "\"version\":\"7\"", "version 7"},
        {"\"setting.width\":\"4\"", "\"setting.width\":\"0\"", "setting that is not allowed"},
        {"\"setting.width\":\"4\"", "\"setting.wodth\":\"4\"", "setting that is not allowed"},
        {"\"setting.layers\":\"1\"", "\"setting.layers\":\"9\"", "of another shape"},
        {"\"inputs\":\"3\"", "\"inputs\":\"x\"", "'inputs' is 'x'"},
        {"\"inputs\":\"3\"", "\"inputs\":\"0\"", "'inputs' is '0'"},
        {"\"values\":\"1\"", "\"values\":\"9\"", "'values' is '9'"},
        {"value gaussian tokens 1 1", "value gaussian tokens 1 z", "'head.0'"},
        {"value gaussian tokens 1 1", "value gaussian tikens 1 1", "'head.0'"},
        {"value gaussian tokens 1 1", "value guussian tokens 1 1", "'head.0'"},
        {"value gaussian tokens 1 1", "value gaussian tokens 0 1", "'head.0'"},
        {"value gaussian tokens 1 1", "                         ", "'head.0'"},
    };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        const char *path = changed(changes[i].from, changes[i].to);
        fin_checkpoint *c = NULL;
        fin_status status = fin_checkpoint_read(path, &c, &err);
        assert_true(status == FIN_ERR_FORMAT || status == FIN_ERR_UNSUPPORTED);
        assert_null(c);
        assert_message(&err, changes[i].part);
    }
    /* Widths that do not fit the tensors are seen when the encoder is made. */
    fin_checkpoint *c = read_back(changed("\"setting.hidden\":\"6\"", "\"setting.hidden\":\"5\""));
    fin_encoder *encoder = NULL;
    assert_int_not_equal(fin_checkpoint_encoder(c, &encoder, &err), FIN_OK);
    assert_null(encoder);
    assert_message(&err, "changed.fin");
    fin_checkpoint_close(c);
}

static void hostile__scales(void **state)
{
    (void)state;
    const double bad[] = {0, -1, NAN, INFINITY};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fin_encoder *encoder = small_encoder(4, 7);
        double center[3] = {0, 1, 2}, scale[3] = {1, bad[i], 3};
        const fin_token_scale of = {3, center, scale};
        assert_ok(fin_checkpoint_write(in_folder("s.fin"), encoder, NULL, &of, NULL, 0, &err));
        refuse(in_folder("s.fin"), FIN_ERR_FORMAT, "scale.scale");
        const fin_token_scale few = {2, center, center};
        assert_ok(fin_checkpoint_write(in_folder("s.fin"), encoder, NULL, &few, NULL, 0, &err));
        refuse(in_folder("s.fin"), FIN_ERR_FORMAT, "scale.center");
        fin_encoder_destroy(encoder);
    }
}

/* Every byte changed, and every length: a message, never more. */
static void hostile__damage(void **state)
{
    (void)state;
    size_t size;
    char *bytes = encoder_bytes(&size);
    for (size_t at = 0; at < size; at += size / 400 + 1) {
        patch_file(in_folder("e.fin"), at, (char)(bytes[at] ^ 0x55));
        fin_checkpoint *c = NULL;
        assert_int_not_equal(fin_checkpoint_read(in_folder("e.fin"), &c, &err), FIN_OK);
        assert_null(c);
        patch_file(in_folder("e.fin"), at, bytes[at]);
        if (at % 5 == 0) {
            write_file("cut.fin", bytes, at);
            assert_int_not_equal(fin_checkpoint_read(in_folder("cut.fin"), &c, &err), FIN_OK);
        }
    }
    fin_checkpoint_close(read_back(in_folder("e.fin")));
    refuse(in_folder("absent.fin"), FIN_ERR_IO, "absent.fin");
    const fin_entry model = {"finetti", "model"};
    assert_ok(fin_tensors_write(in_folder("m.fin"), &model, 1, NULL, 0, &err));
    refuse(in_folder("m.fin"), FIN_ERR_FORMAT, "'model', not an encoder");
    free(bytes);
}

/* ---- a full disk -------------------------------------------------------------------------------- */

static void full_disk__leaves_the_old_file(void **state)
{
    (void)state;
    struct rlimit old, few;
    size_t size, other;
    char *before = encoder_bytes(&size);
    fin_encoder *encoder = small_encoder(32, 1);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    few = old;
    few.rlim_cur = 2000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
    fin_status status =
        fin_checkpoint_write(in_folder("e.fin"), encoder, NULL, NULL, NULL, 0, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(status, FIN_ERR_IO);
    char *after = read_file(in_folder("e.fin"), &other);
    assert_int_equal(size, other);
    assert_memory_equal(before, after, size);
    assert_int_equal(list_folder(0), 1); /* nothing half-written beside it */
    free(before);
    free(after);
    fin_encoder_destroy(encoder);
}

/* ---- memory ------------------------------------------------------------------------------------- */

static fin_status there_and_back(void *user, fin_error *error)
{
    fin_checkpoint *c = NULL;
    fin_encoder *encoder = NULL;
    const char *path = user;
    fin_status status = fin_checkpoint_read(path, &c, error);
    if (!status)
        status = fin_checkpoint_encoder(c, &encoder, error);
    if (!status)
        status =
            fin_checkpoint_write(path, encoder, NULL, fin_checkpoint_scale(c), notes, NOTES, error);
    fin_encoder_destroy(encoder);
    fin_checkpoint_close(c);
    return status;
}

static void faults__every_allocation(void **state)
{
    (void)state;
    size_t size;
    free(encoder_bytes(&size));
    char path[1024];
    snprintf(path, sizeof path, "%s", in_folder("e.fin"));
    fault_every(there_and_back, path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(checkpoint__encoder_comes_back, empty_folder),
        cmocka_unit_test_setup(checkpoint__learning_goes_on_to_the_same_bytes, empty_folder),
        cmocka_unit_test_setup(checkpoint__of_another_shape_or_without_state, empty_folder),
        cmocka_unit_test_setup(hostile__what_finetti_does_not_write, empty_folder),
        cmocka_unit_test_setup(hostile__scales, empty_folder),
        cmocka_unit_test_setup(hostile__damage, empty_folder),
        cmocka_unit_test_setup(full_disk__leaves_the_old_file, empty_folder),
        cmocka_unit_test_setup(faults__every_allocation, empty_folder),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
