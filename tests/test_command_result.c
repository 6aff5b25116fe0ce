/* What a run leaves, and the same as bytes: order, refusals, every bit kept, hostile bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fault.h"
#include "store/done.h"

#include <math.h>
#include <string.h>

static fin_error err;

static double from_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* ---- results --------------------------------------------------------------------------------- */

static void result__sorted_by_name(void **state)
{
    (void)state;
    static const char *const names[] = {"risk", "bayes", "z", "a", "star_2", "star", "0"};
    static const char *const sorted[] = {"0", "a", "bayes", "risk", "star", "star_2", "z"};
    const int64_t one = 1;
    fin_result *r = fin_result_create();
    for (int i = 0; i < 7; i++) {
        double x = i;
        fini_result_scalar(r, names[i], x, 0.5, FIN_HOW_SIMULATION, 10 + i);
        fini_result_series(r, names[i], FIN_F64, 1, &one, &x);
    }
    assert_int_equal(fini_result_status(r, &err), FIN_OK);
    assert_int_equal(fin_result_scalar_count(r), 7);
    assert_int_equal(fin_result_series_count(r), 7);
    for (int i = 0; i < 7; i++) {
        fin_scalar scalar = fin_result_get_scalar(r, i);
        fin_series series = fin_result_get_series(r, i);
        int from = (int)scalar.value;
        assert_string_equal(scalar.name, sorted[i]);
        assert_string_equal(series.name, sorted[i]);
        assert_string_equal(scalar.name, names[from]);
        assert_true(scalar.error == 0.5 && scalar.how == FIN_HOW_SIMULATION);
        assert_int_equal(scalar.samples, 10 + from);
        assert_true(series.ndim == 1 && series.shape[0] == 1 && series.dtype == FIN_F64);
        assert_true(*(const double *)series.data == from);
    }
    fin_result_destroy(r);
}

static void result__grows(void **state)
{
    (void)state;
    fin_result *r = fin_result_create();
    for (int i = 0; i < 1000; i++) {
        char name[16];
        snprintf(name, sizeof name, "x%03d", 999 - i);
        fini_result_scalar(r, name, 999 - i, 0, FIN_HOW_CLOSED, 0);
    }
    assert_int_equal(fini_result_status(r, &err), FIN_OK);
    for (int i = 0; i < 1000; i++)
        assert_true(fin_result_get_scalar(r, i).value == i);
    fin_result_destroy(r);
}

static void result__data_are_copied(void **state)
{
    (void)state;
    const int64_t shape[2] = {2, 2};
    int32_t data[4] = {1, 2, 3, 4};
    char name[] = "grid";
    fin_result *r = fin_result_create();
    fini_result_series(r, name, FIN_I32, 2, shape, data);
    memset(data, 0, sizeof data);
    memset(name, 'x', 4);
    fin_series s = fin_result_get_series(r, 0);
    const int32_t known[4] = {1, 2, 3, 4};
    assert_memory_equal(s.data, known, sizeof known);
    assert_string_equal(s.name, "grid");
    fin_result_destroy(r);
}

static void expect_refused(fin_result *r)
{
    err = (fin_error){FIN_OK, ""};
    assert_int_equal(fini_result_status(r, &err), FIN_ERR_ARGUMENT);
    assert_true(err.message[0] != '\0');
    int scalars = fin_result_scalar_count(r), series = fin_result_series_count(r);
    const int64_t one = 1;
    fini_result_scalar(r, "later", 1, 0, FIN_HOW_CLOSED, 0); /* remembered, whatever follows */
    fini_result_series(r, "later", FIN_U8, 1, &one, "");
    assert_int_equal(fin_result_scalar_count(r), scalars);
    assert_int_equal(fin_result_series_count(r), series);
    assert_int_equal(fini_result_status(r, NULL), FIN_ERR_ARGUMENT);
    fini_result_clear(r);
    assert_int_equal(fini_result_status(r, NULL), FIN_OK);
    assert_int_equal(fin_result_scalar_count(r), 0);
    assert_int_equal(fin_result_series_count(r), 0);
}

static void result__bad_names_are_refused(void **state)
{
    (void)state;
    char longest[66];
    memset(longest, 'n', 65);
    longest[65] = '\0';
    const char *const bad[] = {"", "Risk", "a b", "a-b", "\xc3\xa9", "a\n", "a.b", longest};
    fin_result *r = fin_result_create();
    for (int i = 0; i < 8; i++) {
        fini_result_scalar(r, bad[i], 1, 0, FIN_HOW_CLOSED, 0);
        expect_refused(r);
        fini_result_series(r, bad[i], FIN_F64, 1, &(int64_t){0}, NULL);
        expect_refused(r);
    }
    fini_result_scalar(r, longest + 1, 1, 0, FIN_HOW_CLOSED, 0); /* 64 are allowed */
    assert_int_equal(fini_result_status(r, &err), FIN_OK);
    fin_result_destroy(r);
}

static void result__bad_numbers_are_refused(void **state)
{
    (void)state;
    const int64_t shape[5] = {2, 2, 2, 2, 2}, negative = -1;
    const int64_t vast[4] = {INT64_MAX, 1, 1, 1}, wide[2] = {INT64_C(1) << 40, INT64_C(1) << 40};
    double data[32] = {0};
    fin_result *r = fin_result_create();
    fini_result_scalar(r, "a", 1, 0, FIN_HOW_CLOSED, 0);
    fini_result_scalar(r, "a", 1, 0, FIN_HOW_CLOSED, 0);
    expect_refused(r);
    fini_result_series(r, "a", FIN_F64, 1, shape, data);
    fini_result_series(r, "a", FIN_F64, 1, shape, data);
    expect_refused(r);
    fini_result_scalar(r, "a", 1, -1, FIN_HOW_CLOSED, 0);
    expect_refused(r);
    fini_result_scalar(r, "a", 1, 0, FIN_HOW_COUNT, 0);
    expect_refused(r);
    fini_result_scalar(r, "a", 1, 0, (fin_how)-1, 0);
    expect_refused(r);
    fini_result_scalar(r, "a", 1, 0, FIN_HOW_CLOSED, -1);
    expect_refused(r);
    fini_result_series(r, "a", FIN_F64, 0, shape, data);
    expect_refused(r);
    fini_result_series(r, "a", FIN_F64, 5, shape, data);
    expect_refused(r);
    fini_result_series(r, "a", (fin_dtype)17, 1, shape, data);
    expect_refused(r);
    fini_result_series(r, "a", FIN_F64, 1, &negative, data);
    expect_refused(r);
    fini_result_series(r, "a", FIN_F64, 1, vast, data);
    expect_refused(r);
    fini_result_series(r, "a", FIN_F64, 2, wide, data);
    expect_refused(r);
    fini_result_scalar(r, "a", NAN, NAN, FIN_HOW_CLOSED, 0); /* numbers that are none are fine */
    fini_result_scalar(r, "b", INFINITY, INFINITY, FIN_HOW_CLOSED, 0);
    assert_int_equal(fini_result_status(r, &err), FIN_OK);
    fin_result_destroy(r);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* A run with everything: all types, no elements, four dimensions, numbers that are none. */
static fin_result *make_result(void)
{
    static const float f4[3] = {1.5f, -0.0f, INFINITY};
    static const int32_t i4[2] = {INT32_MIN, 7};
    static const int64_t i8[4] = {INT64_MIN, INT64_MAX, 0, -1};
    static const unsigned char u1[6] = {0, 1, 2, 253, 254, 255};
    const double f8[4] = {from_bits(UINT64_C(0x7ff8000000000123)), -0.0, -INFINITY, 5e-324};
    fin_result *r = fin_result_create();
    if (!r)
        return NULL;
    fini_result_scalar(r, "risk", 0.1, 1e-17, FIN_HOW_QUADRATURE, 0);
    fini_result_scalar(r, "nothing", NAN, NAN, FIN_HOW_DERIVED, 0);
    fini_result_scalar(r, "minus_zero", -0.0, INFINITY, FIN_HOW_CLOCK, INT64_MAX);
    fini_result_scalar(r, "most", -INFINITY, 0, FIN_HOW_SHARE, 30);
    fini_result_series(r, "f4", FIN_F32, 1, &(int64_t){3}, f4);
    fini_result_series(r, "f8", FIN_F64, 2, (int64_t[]){2, 2}, f8);
    fini_result_series(r, "i4", FIN_I32, 1, &(int64_t){2}, i4);
    fini_result_series(r, "i8", FIN_I64, 4, (int64_t[]){1, 2, 1, 2}, i8);
    fini_result_series(r, "u1", FIN_U8, 3, (int64_t[]){1, 2, 3}, u1);
    fini_result_series(r, "none", FIN_F64, 2, (int64_t[]){0, 5}, NULL);
    return r;
}

static fini_done make_done(void)
{
    return (fini_done){
        .position = 12345678901, .state = FIN_STATE_DONE, .seconds = 0.25, .result = make_result()};
}

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static void expect_same(const fini_done *a, const fini_done *b)
{
    assert_int_equal(a->position, b->position);
    assert_int_equal(a->state, b->state);
    assert_true(bits_of(a->seconds) == bits_of(b->seconds));
    assert_string_equal(a->reason, b->reason);
    assert_int_equal(a->result != NULL, b->result != NULL);
    if (!a->result)
        return;
    assert_int_equal(fin_result_scalar_count(a->result), fin_result_scalar_count(b->result));
    assert_int_equal(fin_result_series_count(a->result), fin_result_series_count(b->result));
    for (int i = 0; i < fin_result_scalar_count(a->result); i++) {
        fin_scalar x = fin_result_get_scalar(a->result, i);
        fin_scalar y = fin_result_get_scalar(b->result, i);
        assert_string_equal(x.name, y.name);
        assert_true(bits_of(x.value) == bits_of(y.value) && bits_of(x.error) == bits_of(y.error));
        assert_true(x.how == y.how && x.samples == y.samples);
    }
    for (int i = 0; i < fin_result_series_count(a->result); i++) {
        static const size_t sizes[] = {4, 8, 4, 8, 1};
        fin_series x = fin_result_get_series(a->result, i);
        fin_series y = fin_result_get_series(b->result, i);
        size_t bytes = sizes[x.dtype];
        assert_string_equal(x.name, y.name);
        assert_true(x.dtype == y.dtype && x.ndim == y.ndim);
        assert_memory_equal(x.shape, y.shape, sizeof x.shape);
        for (int j = 0; j < x.ndim; j++)
            bytes *= (size_t)x.shape[j];
        assert_memory_equal(x.data, y.data, bytes);
    }
}

static void expect_round_trip(const fini_done *done)
{
    unsigned char *bytes;
    size_t size;
    fini_done back;
    assert_int_equal(fini_done_pack(done, &bytes, &size, &err), FIN_OK);
    if (fini_done_unpack(bytes, size, &back, &err))
        fail_msg("%s", err.message);
    expect_same(done, &back);
    fin_result_destroy(back.result);
    fini_free(bytes);
}

static void pack__round_trip(void **state)
{
    (void)state;
    fini_done done = make_done();
    expect_round_trip(&done);
    fini_result_clear(done.result);
    expect_round_trip(&done);
    fin_result_destroy(done.result);
    fini_done failed = {.position = -1, .state = FIN_STATE_FAILED, .seconds = NAN};
    expect_round_trip(&failed);
    memset(failed.reason, 'x', sizeof failed.reason - 1);
    expect_round_trip(&failed);
    snprintf(failed.reason, sizeof failed.reason, "alpha = 9 \xe2\x86\x92 \"diverged\"\n");
    expect_round_trip(&failed);
}

/* A reason without its NUL is not read beyond. */
static void pack__reason_without_end(void **state)
{
    (void)state;
    fini_done failed = {.state = FIN_STATE_FAILED}, back;
    unsigned char *bytes;
    size_t size;
    memset(failed.reason, 'x', sizeof failed.reason);
    assert_int_equal(fini_done_pack(&failed, &bytes, &size, &err), FIN_OK);
    assert_int_equal(fini_done_unpack(bytes, size, &back, &err), FIN_OK);
    assert_int_equal(strlen(back.reason), sizeof back.reason - 1);
    fini_free(bytes);
}

/* Ranks may run on machines of another kind: the layout is written down here byte by byte. */
static void pack__bytes_are_fixed(void **state)
{
    (void)state;
    static const char known[] = "FINR\1\0\0\0\x61\0\0\0\0\0\0\0"       /* version, size */
                                "\2\1\0\0\0\0\0\0"                     /* position 258 */
                                "\1\0\0\0\1\0\0\0\0\0\0\0\0\0\xe0\x3f" /* done, 0.5 s */
                                "\2\0\0\0ok\1\0\0\0\1\0\0\0"           /* reason, counts */
                                "\1z\6\5\0\0\0\0\0\0\0"                /* derived, of 5 */
                                "\0\0\0\0\0\0\xf0\xbf\0\0\0\0\0\0\0\0" /* -1, error 0 */
                                "\1s\2\1\1\0\0\0\0\0\0\0\4\3\2\1";     /* int32, (1) */
    fini_done done = {.position = 258, .state = FIN_STATE_DONE, .seconds = 0.5, .reason = "ok"};
    unsigned char *bytes;
    size_t size;
    done.result = fin_result_create();
    fini_result_scalar(done.result, "z", -1, 0, FIN_HOW_DERIVED, 5);
    fini_result_series(done.result, "s", FIN_I32, 1, &(int64_t){1}, &(int32_t){0x01020304});
    assert_int_equal(fini_done_pack(&done, &bytes, &size, &err), FIN_OK);
    assert_int_equal(size, sizeof known - 1);
    assert_memory_equal(bytes, known, sizeof known - 1);
    fini_free(bytes);
    fin_result_destroy(done.result);
}

static void pack__refuses(void **state)
{
    (void)state;
    fini_done done = {.state = FIN_STATE_PLANNED};
    unsigned char *bytes;
    size_t size;
    assert_int_equal(fini_done_pack(&done, &bytes, &size, &err), FIN_ERR_ARGUMENT);
    assert_null(bytes);
    done.state = FIN_STATE_DONE;
    done.result = fin_result_create();
    fini_result_scalar(done.result, "No", 0, 0, FIN_HOW_CLOSED, 0);
    assert_int_equal(fini_done_pack(&done, &bytes, &size, &err), FIN_ERR_ARGUMENT);
    assert_null(bytes);
    fin_result_destroy(done.result);
}

/* ---- hostile bytes --------------------------------------------------------------------------- */

/* Bytes of a size that a sanitizer watches. Returns whether they were taken for a run. */
static bool feed(const unsigned char *bytes, size_t size)
{
    unsigned char *exact = malloc(size ? size : 1), *again;
    size_t again_size;
    fini_done back, twice;
    memcpy(exact, bytes, size);
    err = (fin_error){FIN_OK, ""};
    fin_status status = fini_done_unpack(exact, size, &back, &err);
    free(exact);
    if (status) {
        assert_int_equal(status, FIN_ERR_FORMAT);
        assert_true(err.message[0] != '\0');
        assert_null(back.result);
        return false;
    }
    assert_int_equal(fini_done_pack(&back, &again, &again_size, &err), FIN_OK);
    assert_int_equal(again_size, size);
    assert_int_equal(fini_done_unpack(again, again_size, &twice, &err), FIN_OK);
    expect_same(&back, &twice);
    fini_free(again);
    fin_result_destroy(back.result);
    fin_result_destroy(twice.result);
    return true;
}

static void unpack__cut_anywhere(void **state)
{
    (void)state;
    fini_done done = make_done();
    unsigned char *bytes;
    size_t size;
    assert_int_equal(fini_done_pack(&done, &bytes, &size, &err), FIN_OK);
    for (size_t cut = 0; cut < size; cut++) {
        assert_false(feed(bytes, cut));
        unsigned char kept[8]; /* the same with a size that fits */
        if (cut < 16)
            continue;
        memcpy(kept, bytes + 8, 8);
        for (int i = 0; i < 8; i++)
            bytes[8 + i] = (unsigned char)((uint64_t)cut >> 8 * i);
        assert_false(feed(bytes, cut));
        memcpy(bytes + 8, kept, 8);
    }
    unsigned char *longer = malloc(size + 1);
    memcpy(longer, bytes, size);
    longer[size] = 0;
    assert_false(feed(longer, size + 1));
    for (int i = 0; i < 8; i++)
        longer[8 + i] = (unsigned char)((uint64_t)(size + 1) >> 8 * i);
    assert_false(feed(longer, size + 1));
    free(longer);
    fini_free(bytes);
    fin_result_destroy(done.result);
}

static void unpack__every_byte_changed(void **state)
{
    (void)state;
    fini_done done = make_done();
    unsigned char *bytes;
    size_t size, taken = 0;
    static const unsigned char masks[] = {0x01, 0x80, 0xff, 0x20, 0x7f};
    assert_int_equal(fini_done_pack(&done, &bytes, &size, &err), FIN_OK);
    for (size_t i = 0; i < size; i++)
        for (size_t k = 0; k < sizeof masks; k++) {
            bytes[i] ^= masks[k];
            bool ok = feed(bytes, size);
            taken += ok;
            if (i < 16) /* magic, version and size */
                assert_false(ok);
            bytes[i] ^= masks[k];
        }
    assert_true(taken > 0); /* numbers may be any */
    fini_free(bytes);
    fin_result_destroy(done.result);
}

static void unpack__noise(void **state)
{
    (void)state;
    fini_done done = make_done();
    unsigned char *bytes;
    size_t size;
    uint64_t x = 88172645463325252u;
    assert_int_equal(fini_done_pack(&done, &bytes, &size, &err), FIN_OK);
    for (int round = 0; round < 20000; round++) {
        unsigned char *copy = malloc(size);
        memcpy(copy, bytes, size);
        for (int changes = 1 + round % 8; changes > 0; changes--) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            copy[(x >> 8) % size] = (unsigned char)x;
        }
        feed(copy, size);
        free(copy);
    }
    fini_free(bytes);
    fin_result_destroy(done.result);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static fin_status make_pack_unpack(void *user, fin_error *error)
{
    (void)user;
    fini_done done = make_done(), back = {.result = NULL};
    unsigned char *bytes = NULL;
    size_t size;
    if (!done.result)
        return fini_fail_memory(error, 1, "a result");
    fin_status status = fini_result_status(done.result, error);
    if (!status)
        status = fini_done_pack(&done, &bytes, &size, error);
    if (!status)
        status = fini_done_unpack(bytes, size, &back, error);
    fin_result_destroy(back.result);
    fini_free(bytes);
    fin_result_destroy(done.result);
    return status;
}

static void memory__every_allocation_fails(void **state)
{
    (void)state;
    assert_true(fault_every(make_pack_unpack, NULL) > 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(result__sorted_by_name),
        cmocka_unit_test(result__grows),
        cmocka_unit_test(result__data_are_copied),
        cmocka_unit_test(result__bad_names_are_refused),
        cmocka_unit_test(result__bad_numbers_are_refused),
        cmocka_unit_test(pack__round_trip),
        cmocka_unit_test(pack__reason_without_end),
        cmocka_unit_test(pack__bytes_are_fixed),
        cmocka_unit_test(pack__refuses),
        cmocka_unit_test(unpack__cut_anywhere),
        cmocka_unit_test(unpack__every_byte_changed),
        cmocka_unit_test(unpack__noise),
        cmocka_unit_test(memory__every_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
