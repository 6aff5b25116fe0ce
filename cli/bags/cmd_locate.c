/* finetti locate: which token of a bag is responsible, with probabilities. */
#include "bags/fit.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int run(cli_args *args);

static const cli_word words[] = {
    FIT_ANSWER_WORDS,
    {"blind", NULL, "do not use the labels, even if the data have them"},
    {"evidence", NULL,
     "what each token does to the prediction: without it, and alone; lists tokens by it, and says "
     "how "
     "fast the prediction falls as they are taken away"},
    {"out", "FILE", "FILE.csv or FILE.npz; - is CSV on standard output, a terminal gets a table"},
    {"pictures", "FOLDER",
     "a picture of each bag (SVG): tokens where they lie, coloured by their probability, else by "
     "their evidence; takes --coords"},
    {"coords", "X,Y", "with --pictures: two columns that say where tokens lie"},
    {"extras", "COLUMNS",
     "columns of the data that come back beside each token, as a,b or a:c or x*; none for none; "
     "default: all that are no feature, bag or label"},
    {"beside", "FOLDER",
     "HDF5 with a file for each bag: a folder with a second file of the same name, such as one "
     "with "
     "coords"},
    {"json", NULL, "print JSON"},
    {NULL, NULL, NULL},
};

#define LOCATE_FIELDS(F, C)                                                                        \
    F(int64_t, top, FIN_AUTO_INT, 1, INT64_C(1) << 40,                                             \
      "tokens listed of a bag; auto = all, 3 on a terminal")
#define FIN_TABLE_STRUCT locate_settings
FIN_TABLE_OF_ITS_OWN(locate_table, "locate", LOCATE_FIELDS);

CLI_SETTINGS(options, "locate", locate_settings, cli_no_words, {&locate_table, 0});

const cli_command cli_locate = {
    .name = "locate",
    .summary = "which token of a bag is responsible, with probabilities",
    .about =
        "For every token of every bag, the probability that it is responsible for the label.\n"
        "If the data have labels, `given_label` is that probability given the label, and tokens\n"
        "are ranked by it; --blind does not use the labels. `row` counts the file's rows from 1,\n"
        "`token` those of the bag from 0. Where the model is any or mixture with two classes,\n"
        "`own` is the probability that the token by itself is positive, and `none` that no token\n"
        "of the bag is. The models of a bag as a whole (embedding, mean, max, base) have no\n"
        "location, unless fit has kept one that has beside them.\n"
        "Every model has evidence (--evidence): by how much the probability of the likeliest\n"
        "class, or the predicted number, changes when the token is taken out (`evidence`).\n"
        "And what it is for the token alone (`alone`).",
    .examples = "  finetti locate model.fin bags.csv\n"
                "  finetti locate model.fin bags.csv --top 1 --out responsible.csv\n"
                "  finetti locate model.fin bags.csv --evidence --out evidence.csv\n"
                "  finetti locate model.fin bags.npz --blind --json\n",
    .settings = &options,
    .computes = true,
    .operands = FIT_ANSWER_OPERANDS,
    .words = words,
    .run = run,
};

typedef struct located {
    fit_answer from;
    double *room;
    double *prior, *given;    /* (tokens); NULL: no location; given: NULL without labels */
    double *own, *none;       /* (tokens), (bags); NULL: the model has none */
    double *change, *only;    /* (tokens) evidence; NULL: not asked for */
    fin_flipping flipping[2]; /* by evidence; by probability, if there is one */
    int64_t *order;           /* (tokens) tokens, bag by bag, the most probable first */
    int64_t top;              /* of a bag; at most */
    int64_t lines;            /* tokens listed, all in all */
    int64_t *bag, *place;     /* (lines) of each */
    char **extra;             /* names of the extra columns, as they are written */
    int64_t extras;
} located;

/* ---- locating and ranking ------------------------------------------------------------------- */

typedef struct ranked {
    double probability;
    int64_t token;
} ranked;

static int before(const void *a, const void *b)
{
    const ranked *p = a, *q = b;
    if (p->probability != q->probability)
        return p->probability > q->probability ? -1 : 1;
    return p->token < q->token ? -1 : 1;
}

static int64_t bag_start(const located *l, int64_t i)
{
    return l->from.bags->offsets[i] - l->from.bags->offsets[0];
}

static int64_t bag_size(const located *l, int64_t i)
{
    return bag_start(l, i + 1) - bag_start(l, i);
}

static int64_t shown(const located *l, int64_t i)
{
    return bag_size(l, i) < l->top ? bag_size(l, i) : l->top;
}

static fin_status rank_tokens(located *l, fin_error *err)
{
    int64_t longest = 0;
    for (int64_t i = 0; i < l->from.bags->n; i++)
        longest = bag_size(l, i) > longest ? bag_size(l, i) : longest;
    CLI_FREED ranked *rows = malloc((size_t)longest * sizeof *rows);
    if (!rows)
        return cli_status_memory(err, 16.0 * (double)longest, "the ranks");
    for (int64_t i = 0; i < l->from.bags->n; i++) {
        int64_t first = bag_start(l, i), size = bag_size(l, i);
        bool known = l->given && !isnan(l->given[first]);
        const double *by = l->change ? l->change : known ? l->given : l->prior;
        for (int64_t t = first; t < first + size; t++)
            rows[t - first] = (ranked){l->from.classes ? by[t] : fabs(by[t]), t};
        qsort(rows, (size_t)size, sizeof *rows, before);
        for (int64_t t = 0; t < size; t++)
            l->order[first + t] = rows[t].token;
    }
    return FIN_OK;
}

static bool any_number(const double *x, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!isnan(x[i]))
            return true;
    return false;
}

/* Numbers: which way the mean moves does not matter to the order. */
static fin_status flip(const located *l, const double *score, fin_flipping *to, fin_error *err)
{
    size_t count = (size_t)l->from.tokens;
    CLI_FREED double *size = malloc(count * sizeof *size + 8);
    if (!size)
        return cli_status_memory(err, 8.0 * (double)count, "the scores");
    for (size_t t = 0; t < count; t++)
        size[t] = l->from.classes ? score[t] : fabs(score[t]);
    return fin_fit_flipping(l->from.fit, l->from.bags, size, to, cli_progress(), err);
}

static fin_status find_evidence(located *l, fin_error *err)
{
    const fin_evidence to = {.change = l->change, .only = l->only};
    CLI_TRY(fin_fit_evidence(l->from.fit, l->from.bags, &to, cli_progress(), err));
    CLI_TRY(flip(l, l->change, &l->flipping[0], err));
    if (l->prior)
        CLI_TRY(flip(l, l->prior, &l->flipping[1], err));
    return FIN_OK;
}

static fin_status locate(located *l, bool blind, bool evidence, fin_error *err)
{
    size_t count = (size_t)l->from.tokens;
    bool locates = fin_fit_locates(l->from.fit);
    if (!locates && !evidence) {
        char name[64];
        return cli_status(
            err, FIN_ERR_UNSUPPORTED,
            "this model (%s) looks at a bag as a whole and has no location; --evidence says what "
            "its tokens do, or fit one with --model softmax or mixture",
            fit_name(fin_fit_get_settings(l->from.fit), l->from.classes, name, sizeof name));
    }
    size_t n = (size_t)l->from.bags->n, room = 6 * count + n;
    l->room = malloc(room * sizeof *l->room);
    if (!l->room)
        return cli_status_memory(err, 8.0 * (double)room, "the probabilities");
    for (size_t i = 0; i < room; i++)
        l->room[i] = NAN;
    l->order = (int64_t *)(void *)(l->room + 2 * count);
    l->prior = locates ? l->room : NULL;
    l->given = locates && l->from.labels && !blind ? l->room + count : NULL;
    l->own = l->room + 3 * count;
    l->none = l->room + 6 * count;
    l->change = evidence ? l->room + 4 * count : NULL;
    l->only = evidence ? l->room + 5 * count : NULL;
    const fin_locations to = {.prior = l->prior, .given = l->given, .own = l->own, .none = l->none};
    fin_status status =
        locates ? fin_fit_locate(l->from.fit, l->from.bags, &to, cli_progress(), err) : FIN_OK;
    l->own = any_number(l->own, count) ? l->own : NULL;
    l->none = any_number(l->none, n) ? l->none : NULL;
    if (!status && evidence)
        status = find_evidence(l, err);
    return status ? status : rank_tokens(l, err);
}

/* ---- rows and arrays ------------------------------------------------------------------------ */

/* What stands at place r of bag i. */
static int64_t token_at(const located *l, int64_t i, int64_t r)
{
    return l->order[bag_start(l, i) + r];
}

static void tell_token(cli_row *row, const located *l, int64_t i, int64_t t)
{
    cli_cell_int(row, "row", fin_bag_set_row(l->from.set, t));
    cli_cell_int(row, "token", t - bag_start(l, i));
    if (l->prior)
        cli_cell(row, "probability", l->prior[t]);
    if (l->given)
        cli_cell_known(row, "given_label", l->given[t]);
    if (l->own)
        cli_cell_known(row, "own", l->own[t]);
    if (l->change) {
        cli_cell(row, "evidence", l->change[t]);
        cli_cell(row, "alone", l->only[t]);
    }
}

/* What the data have beside features: as their text if they are text. */
static void tell_extras(cli_row *row, const located *l, int64_t t)
{
    const fin_bag_set *set = l->from.set;
    for (int64_t k = 0; k < l->extras; k++) {
        const double *numbers = fin_bag_set_extra_numbers(set, k);
        const char *text = fin_bag_set_extra_text(set, k, t);
        if (numbers && (!text || cli_row_object(row)))
            cli_cell_known(row, l->extra[k], numbers[t]);
        else
            cli_cell_text(row, l->extra[k], text);
    }
}

/* The names of extra columns; one that is a column of ours already gets "data_" before it. */
static fin_status name_extras(located *l, fin_error *err)
{
    static const char *const ours[] = {"bag",         "rank",      "row",      "token",
                                       "probability", "own",       "none",     "size",
                                       "given_label", "bag_names", "evidence", "alone"};
    int64_t count = fin_bag_set_extras(l->from.set);
    l->extra = calloc((size_t)count + 1, sizeof *l->extra);
    for (int64_t k = 0; k < count && l->extra; k++) {
        const char *name = fin_bag_set_extra(l->from.set, k), *before = "";
        for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
            before = strcmp(ours[i], name) == 0 ? "data_" : before;
        size_t size = strlen(name) + sizeof "data_";
        l->extra[k] = malloc(size);
        if (!l->extra[k])
            return cli_status_memory(err, (double)size, "a name");
        snprintf(l->extra[k], size, "%s%s", before, name);
        l->extras++;
    }
    return l->extra ? FIN_OK : cli_status_memory(err, 8.0 * (double)count, "names");
}

/* A line of CSV; l->bag and l->place say which token it is. */
static void tell_line(cli_row *row, const void *user, int64_t line)
{
    const located *l = user;
    int64_t i = l->bag[line], r = l->place[line];
    cli_cell_text(row, "bag", fin_bag_set_name(l->from.set, i));
    cli_cell_int(row, "rank", r + 1);
    tell_token(row, l, i, token_at(l, i, r));
    if (l->none)
        cli_cell(row, "none", l->none[i]);
    tell_extras(row, l, token_at(l, i, r));
}

typedef struct place {
    const located *l;
    int64_t bag;
} place;

static void tell_place(cli_row *row, const void *user, int64_t r)
{
    const place *p = user;
    tell_token(row, p->l, p->bag, token_at(p->l, p->bag, r));
    tell_extras(row, p->l, token_at(p->l, p->bag, r));
}

static json_t *bags_of(const located *l, int64_t most)
{
    json_t *bags = json_array();
    for (int64_t i = 0; i < l->from.bags->n && i < most; i++) {
        const char *label = fit_class_text(&l->from, i);
        char number[64];
        if (l->from.labels && !l->from.classes && !isnan(l->from.labels[i]))
            label = cli_number(l->from.labels[i], number, sizeof number);
        bool none = l->none && !isnan(l->none[i]);
        json_array_append_new(bags,
                              json_pack("{s:o, s:I, s:o, s:o*, s:o*}", "bag",
                                        cli_json_text(fin_bag_set_name(l->from.set, i)), "size",
                                        cli_int(bag_size(l, i)), "tokens",
                                        cli_json_rows(tell_place, &(place){l, i}, shown(l, i)),
                                        "label", cli_json_text(l->given && *label ? label : NULL),
                                        "none", none ? cli_json_number(l->none[i]) : NULL));
    }
    return bags;
}

/* Which token every line is about. */
static fin_status make_lines(located *l, fin_error *err)
{
    for (int64_t i = 0; i < l->from.bags->n; i++)
        l->lines += shown(l, i);
    l->bag = malloc((size_t)l->lines * 2 * sizeof *l->bag + 8);
    if (!l->bag)
        return cli_status_memory(err, 16.0 * (double)l->lines, "the lines");
    l->place = l->bag + l->lines;
    for (int64_t i = 0, k = 0; i < l->from.bags->n; i++)
        for (int64_t r = 0; r < shown(l, i); r++, k++) {
            l->bag[k] = i;
            l->place[k] = r;
        }
    return FIN_OK;
}

/* Column `extra` of l, line by line, for an NPZ file. */
typedef struct extra_column {
    const located *l;
    int64_t extra;
} extra_column;

static const char *extra_text(const void *user, int64_t line)
{
    const extra_column *c = user;
    int64_t t = token_at(c->l, c->l->bag[line], c->l->place[line]);
    return fin_bag_set_extra_text(c->l->from.set, c->extra, t);
}

static void add_extras(const located *l, cli_npz *z, extra_column *columns, double *room)
{
    for (int64_t k = 0; k < l->extras; k++) {
        const double *numbers = fin_bag_set_extra_numbers(l->from.set, k);
        char name[200]; /* of an array, which is a file in the archive */
        snprintf(name, sizeof name, "%s", l->extra[k]);
        for (char *p = name; (p = strpbrk(p, "/\\"));)
            *p = '_';
        columns[k] = (extra_column){l, k};
        for (int64_t i = 0; numbers && i < l->lines; i++)
            room[k * l->lines + i] = numbers[token_at(l, l->bag[i], l->place[i])];
        if (numbers)
            cli_npz_add(z, name, FIN_F64, 1, &l->lines, room + k * l->lines);
        else if (!z->status)
            z->status = fin_npz_add_texts(z->npz, name, l->lines, extra_text, &columns[k], z->err);
    }
}

static fin_status write_npz(const located *l, const char *path, fin_error *err)
{
    cli_npz z;
    int64_t count = l->lines;
    CLI_FREED int64_t *whole = malloc((size_t)count * 3 * sizeof *whole + 8);
    const struct {
        const char *name;
        const double *of; /* (tokens) or NULL */
    } array[] = {{"probability", l->prior},
                 {"given_label", l->given},
                 {"own", l->own},
                 {"evidence", l->change},
                 {"alone", l->only}};
    enum { ARRAYS = sizeof array / sizeof *array };
    CLI_FREED double *real =
        malloc((size_t)count * (ARRAYS + (size_t)l->extras) * sizeof *real + 8);
    CLI_FREED extra_column *columns = malloc((size_t)(l->extras + 1) * sizeof *columns);
    fin_status status = whole && real && columns
                            ? FIN_OK
                            : cli_status_memory(err, 64.0 * (double)count, "the arrays");
    for (int64_t k = 0; k < count && !status; k++) {
        int64_t i = l->bag[k], t = token_at(l, i, l->place[k]);
        whole[k] = l->place[k] + 1;
        whole[count + k] = fin_bag_set_row(l->from.set, t);
        whole[2 * count + k] = t - bag_start(l, i);
        for (int a = 0; a < ARRAYS; a++)
            real[a * count + k] = array[a].of ? array[a].of[t] : NAN;
    }
    if (!status && !(status = cli_npz_open(&z, path, err))) {
        cli_npz_add(&z, "bag", FIN_I64, 1, &count, l->bag);
        cli_npz_add(&z, "rank", FIN_I64, 1, &count, whole);
        cli_npz_add(&z, "row", FIN_I64, 1, &count, whole + count);
        cli_npz_add(&z, "token", FIN_I64, 1, &count, whole + 2 * count);
        for (int a = 0; a < ARRAYS; a++)
            if (array[a].of)
                cli_npz_add(&z, array[a].name, FIN_F64, 1, &count, real + a * count);
        if (l->none)
            cli_npz_add(&z, "none", FIN_F64, 1, &l->from.bags->n, l->none);
        cli_npz_names(&z, "bag_names", l->from.bags->n, fit_bag_name, l->from.set);
        add_extras(l, &z, columns, real + ARRAYS * count);
        status = cli_npz_close(&z);
    }
    return status;
}

/* ---- running -------------------------------------------------------------------------------- */

static const char table_form[] =
    "bag                  tokens[{?none}  none]  row from 1 (token from 0): probability that it is "
    "responsible"
    "[{?given} (given the label)][{?own} \\[that it is positive\\]]"
    "[{?evidence}, evidence: what the prediction loses without it][{?none}; none: that no token is "
    "positive]\n"
    "{*bags|{bag:-20.20s} {size:6d} [{none:5.3f} ]{*tokens|[{?first} |, ]{row} ({token}): "
    "[{probability:.3f}|-][ ({given_label:.3f})][ \\[{own:.3f}\\]][ {evidence:+.3f}]}"
    "[  label {label}]\n}"
    "[{?more}... {more} more bags; --out FILE has all\n]";

/* The column `relevant`: 1 for the tokens that are known to be responsible. NULL: there is none, or it is not 0s
 * and 1s. */
static unsigned char *known_tokens(const located *l)
{
    const double *column = NULL;
    unsigned char *relevant = malloc((size_t)l->from.tokens + 1);
    for (int64_t k = 0; k < l->extras; k++)
        if (strcmp(fin_bag_set_extra(l->from.set, k), "relevant") == 0)
            column = fin_bag_set_extra_numbers(l->from.set, k);
    for (int64_t t = 0; t < l->from.tokens && relevant; t++) {
        if (!column || (column[t] != 0 && column[t] != 1)) {
            free(relevant);
            return NULL;
        }
        relevant[t] = column[t] == 1;
    }
    return relevant;
}

/* How well the scores there are find them; evidence counts by its size where labels are numbers. NULL: none
 * are known. */
static json_t *found_of(const located *l)
{
    const struct {
        const char *name;
        const double *of;
    } score[] = {{"probability", l->prior},
                 {"given_label", l->given},
                 {"own", l->own},
                 {"evidence", l->change},
                 {"alone", l->only}};
    unsigned char *relevant = known_tokens(l);
    json_t *rows = relevant ? json_array() : NULL;
    fin_error err;
    fin_found found;
    for (size_t k = 0; k < sizeof score / sizeof *score && relevant; k++) {
        if (!score[k].of || fin_tokens_judge(l->from.bags, relevant, score[k].of, &found, &err) ||
            !found.bags)
            continue;
        json_t *row = json_pack("{s:s, s:I}", "score", score[k].name, "bags", cli_int(found.bags));
        cli_put(row, "first", found.first, "first_se", found.first_se, "auc", found.auc, "auc_se",
                found.auc_se, "ece", found.ece, "share_ece", found.share_ece, NULL);
        json_array_append_new(rows, row);
    }
    free(relevant);
    return rows;
}

#define FOUND_FORM                                                                                 \
    "[{?found}known tokens (column relevant):{*found|[{?first}|;] {score} first "                  \
    "{first:.3f}[ +- {first_se:.3f}], AUC {auc:.3f}[, calibration error {ece:.3f}|, calibration "  \
    "error as shares {share_ece:.3f}]}]"

/* How far predictions fall as tokens are taken away. */
static json_t *flipping_of(const located *l)
{
    json_t *object = json_object();
    static const char *const by[] = {"evidence", "probability"};
    for (int k = 0; k < 1 + (l->prior != NULL); k++) {
        const fin_flipping *f = &l->flipping[k];
        json_t *fall = json_array(), *one = json_pack("{s:I}", "bags", cli_int(f->bags));
        for (int p = 0; p < FIN_FLIP_POINTS; p++)
            json_array_append_new(fall, cli_json_number(f->fall[p]));
        json_object_set_new(one, "fall", fall);
        cli_put(one, "area", f->area, "area_se", f->area_se, NULL);
        json_object_set_new(object, by[k], one);
    }
    return object;
}

#define FLIP_FORM                                                                                  \
    "[taking tokens away, those of most evidence first: the prediction falls by "                  \
    "{flipping.evidence.area:.4f}[ +- {flipping.evidence.area_se:.4f}] on average"                 \
    "[, by {flipping.probability.area:.4f} in the order of probability]]"

/* --pictures: FOLDER/1-name.svg and so on; of a name only what suits a file. */
static fin_status draw_bags(const located *l, const fit_coords *coords, const char *folder,
                            fin_error *err)
{
    const double *at[2], *value = l->prior ? l->prior : l->change;
    CLI_TRY(fit_coords_find(coords, l->from.set, at, err));
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return cli_status(err, FIN_ERR_IO, "'%.300s' cannot be made: %s", folder, strerror(errno));
    for (int64_t i = 0; i < l->from.bags->n; i++) {
        char path[1200], name[64];
        int64_t from = bag_start(l, i);
        const char *title = fin_bag_set_name(l->from.set, i);
        size_t k = 0;
        for (; title[k] && k + 1 < sizeof name; k++)
            name[k] = isalnum((unsigned char)title[k]) || title[k] == '-' ? title[k] : '_';
        name[k] = '\0';
        if (snprintf(path, sizeof path, "%s/%lld-%s.svg", folder, (long long)i + 1, name) >=
            (int)sizeof path)
            return cli_status(err, FIN_ERR_ARGUMENT, "--pictures: the name is too long");
        const fin_bag_picture picture = {
            bag_size(l, i), at[0] + from,
            at[1] + from,   value + from,
            title,          l->prior ? "probability that it is responsible" : "evidence"};
        CLI_TRY(fin_report_bag(&picture, path, err));
    }
    return FIN_OK;
}

static int finish(const cli_args *args, located *l, bool table)
{
    enum { BAGS = 40 };
    const char *out = cli_get(args, "out");
    bool json = cli_get(args, "json");
    int64_t n = l->from.bags->n, most = table ? BAGS : n;
    fin_error err = {FIN_OK, ""};
    fin_status status = make_lines(l, &err);
    if (!status)
        status = name_extras(l, &err);
    if (!status && cli_get(args, "pictures")) {
        fit_coords coords;
        fit_coords_read(&coords, args);
        status = draw_bags(l, &coords, cli_get(args, "pictures"), &err);
    }
    cli_progress_end();
    if (!status && out && cli_ends_with(out, ".npz"))
        status = write_npz(l, out, &err);
    else if (!status && (out || (!json && !table)))
        status = cli_write_rows(out ? out : "-", tell_line, l, l->lines, &err);
    if (status)
        return cli_error(&err);
    json_t *record = json_pack(
        "{s:o*, s:o?, s:o, s:o*, s:o*}", "bags", json || table ? bags_of(l, most) : NULL, "locator",
        fit_locator(l->from.fit), "notes", fit_answer_json(&l->from), "flipping",
        l->change ? flipping_of(l) : NULL, "found", l->change ? found_of(l) : NULL);
    fit_answer_say(&l->from);
    cli_note_of(record, "[located by " FIT_LOCATOR_FORM("locator.") "]");
    if (l->given)
        cli_note("note: the data have labels: tokens are ranked by given_label, which uses them; "
                 "--blind goes without");
    cli_note_of(record, FLIP_FORM);
    cli_note_of(record, FOUND_FORM);
    if (table) { /* what its columns are */
        json_object_set_new(record, "given", json_boolean(l->given));
        json_object_set_new(record, "own", json_boolean(l->own));
        json_object_set_new(record, "evidence", json_boolean(l->change));
        json_object_set_new(record, "none", json_boolean(l->none));
        json_object_set_new(record, "more", json_integer(n > most ? cli_int(n - most) : 0));
    }
    return cli_show(args, record, table ? table_form : "");
}

static int run(cli_args *args)
{
    located l = {.prior = NULL};
    fin_error err = {FIN_OK, ""};
    bool table = !cli_get(args, "out") && !cli_get(args, "json") && isatty(STDOUT_FILENO);
    int64_t top = ((const locate_settings *)(const void *)args->values)->top;
    l.top = !fin_is_auto((double)top) ? top : table ? 3 : INT64_MAX;
    const char *extras = cli_get(args, "extras");
    extras = !extras ? "*" : strcmp(extras, "none") == 0 ? NULL : extras;
    if (!cli_get(args, "pictures") != !cli_get(args, "coords"))
        return cli_usage("--pictures FOLDER and --coords X,Y go together");
    int code = fit_page_check(args);
    if (!code)
        code = fit_answer_open(&l.from, args, extras);
    if (!code)
        code = locate(&l, cli_get(args, "blind") != NULL, cli_get(args, "evidence") != NULL, &err)
                   ? cli_error(&err)
                   : finish(args, &l, table);
    free(l.room);
    free(l.bag);
    for (int64_t k = 0; k < l.extras; k++)
        free(l.extra[k]);
    free(l.extra);
    fit_answer_close(&l.from);
    return code;
}
