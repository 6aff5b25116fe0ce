/* The state of learning as tensors, for files, and back from them.
 *
 * A file may be hostile: everything is looked at before anything is changed. Settings are not part
 * of the state: who goes on with other ones (more steps, say) may. */
#include "encoder/learn.h"

#include <math.h>
#include <string.h>

static bool has_moments(const void *object)
{
    return ((const fin_learn *)object)->settings.optimizer == FIN_OPTIMIZER_ADAMW;
}

static bool has_search(const void *object)
{
    return !has_moments(object);
}

static bool has_best(const void *object)
{
    const fin_learn *o = object;
    return o->best && isfinite(o->number[FINI_BEST]);
}

static fin_status check_numbers(void *object, fin_error *err)
{
    const int64_t *c = ((const fin_learn *)object)->count;
    const double *x = ((const fin_learn *)object)->number;
    bool good = c[FINI_STEP] <= INT64_C(1) << 40 && c[FINI_SINCE] <= c[FINI_STEP] &&
                c[FINI_STOPPED] <= 1 && c[FINI_KEPT] <= FINI_LBFGS_MEMORY &&
                c[FINI_NEWEST] < FINI_LBFGS_MEMORY;
    good = good && x[FINI_TOKENS_SEEN] >= 0 && !isnan(x[FINI_BEST]);
    for (int i = FINI_LOSS_SUM; i < FINI_NUMBERS; i++)
        good = good && isfinite(x[i]);
    if (!good)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "counts or numbers of the state of learning are out of range");
    return FIN_OK;
}

/* Steps ascend and are not beyond the one that learning is at. */
static fin_status check_log(void *object, fin_error *err)
{
    const fin_learn *o = object;
    int64_t step = o->count[FINI_STEP];
    double last = -1;
    bool good = o->rows >= 1 && o->rows <= step + 1;
    for (int64_t i = 0; good && i < o->rows; i++) {
        const double *row = o->row_numbers + i * FINI_ROW;
        good = row[0] > last && row[0] <= (double)step && row[0] == floor(row[0]);
        last = row[0];
        for (int j = 4; j <= 5; j++)
            good = good && row[j] >= 0 && row[j] <= 0x1p52;
    }
    if (!good)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "the log of the state of learning has steps that do not ascend to %lld",
                         (long long)step);
    return FIN_OK;
}

#define LEARN(name_, type, member)                                                                 \
    .name = "learn." name_, .dtype = FIN_##type, .at = offsetof(fin_learn, member),                \
    .flags = FINI_STATE_THERE
#define EACH .rows = FINI_SIZE(fin_learn, parameters)
#define PAIRS .rows = FINI_LBFGS_MEMORY, .columns = FINI_SIZE(fin_learn, parameters)

/* The first two say whether there are others; the log is the last. */
enum { HEAD = 2, FIELDS = 11 };
static const fini_state_field fields[FIELDS] = {
    {LEARN("counts", I64, count), .rows = FINI_COUNTS, .high = 0x1p50},
    {LEARN("numbers", F64, number) | FINI_STATE_ANY, .rows = FINI_NUMBERS, .check = check_numbers},
    {LEARN("first", F32, moment_first), EACH, .has = has_moments},
    {LEARN("second", F32, moment_second), EACH, .high = HUGE_VAL, .has = has_moments},
    {LEARN("x", F64, x), EACH, .has = has_search},
    {LEARN("gradient", F64, search.g), EACH, .has = has_search},
    {LEARN("S", F64, search.S), PAIRS, .has = has_search},
    {LEARN("Y", F64, search.Y), PAIRS, .has = has_search},
    {LEARN("rho", F64, search.rho), .rows = FINI_LBFGS_MEMORY, .has = has_search},
    {LEARN("best", F32, best), EACH, .has = has_best},
    {LEARN("log", F64, row_numbers) | FINI_STATE_OWNED | FINI_STATE_FREE | FINI_STATE_OPTIONAL |
         FINI_STATE_ANY,
     .rows = FINI_SIZE(fin_learn, rows), .most = INT64_C(1) << 32, .columns = FINI_ROW,
     .check = check_log},
};
#define WHAT "state of learning", "another optimizer"
const fini_state fini_learn_state = {WHAT, fields, FIELDS};
static const fini_state head = {WHAT, fields, HEAD},
                        body = {WHAT, fields + HEAD, FIELDS - 1 - HEAD},
                        log_only = {WHAT, fields + FIELDS - 1, 1};

int64_t fini_learn_tensors(const fin_learn *learn, fin_tensor *tensors, int64_t room)
{
    fini_tensor_list l = {tensors, 0, tensors ? room : 0};
    if (learn)
        fini_state_save(&fini_learn_state, learn, "", &l);
    return l.count;
}

/* Whatever `next` has that has been looked at becomes the state. */
static fin_status take_over(fin_learn *learn, const fin_learn *next, const fini_state_source *from,
                            fin_error *err)
{
    FINI_TRY(fini_learn_room(learn, next->rows, err));
    memcpy(learn->count, next->count, FINI_COUNTS * sizeof *learn->count);
    memcpy(learn->number, next->number, FINI_NUMBERS * sizeof *learn->number);
    fin_status status = fini_state_load(&body, learn, from, err);
    if (!has_best(learn)) {
        learn->number[FINI_BEST] = INFINITY;
        learn->count[FINI_WAITED] = 0;
    }
    learn->rows = next->rows;
    for (int64_t i = 0; i < learn->rows; i++) {
        memcpy(learn->row_numbers + i * FINI_ROW, next->row_numbers + i * FINI_ROW,
               FINI_ROW * sizeof(double));
        fini_learn_row_from(learn->row_numbers + i * FINI_ROW, &learn->row[i]);
    }
    if (has_search(learn))
        fini_learn_lbfgs_load(learn);
    return status;
}

fin_status fini_learn_restore(fin_learn *learn, const fin_tensor *tensors, int64_t count,
                              fin_error *err)
{
    FINI_NEED(err, learn, !count || tensors);
    const fini_state_source from = {"", tensors, count};
    int64_t counts[FINI_COUNTS];
    double numbers[FINI_NUMBERS];
    fin_learn next = *learn; /* with counts, numbers and a log of its own */
    next.count = counts;
    next.number = numbers;
    next.row_numbers = NULL;
    next.rows = 0;
    fin_status status = fini_state_load(&head, &next, &from, err);
    if (!status)
        status = fini_state_load(&log_only, &next, &from, err);
    if (!status)
        status = fini_state_verify(&body, &next, &from, err);
    if (!status)
        status = take_over(learn, &next, &from, err);
    fini_free(next.row_numbers);
    return status;
}
