/* finetti latent risk: what is left to know about a family of exchangeable tokens after L of them,
 * and how far attention is from it.
 *
 * cme gets the family's own prior and noise, with which it is the posterior mean wherever that is
 * linear in the values; softmax the temperature that is best for this length, unless one is given. */
#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int run(cli_args *args);

static const cli_word words[] = {
    {"L", "LIST", "numbers of tokens, such as 1,2,5,10; default 1,2,4,...,64"},
    {"attention", "LIST",
     "forms beside the Bayes risk: cme, softmax, nw, or none; default cme,softmax where there are "
     "keys and values are "
     "numbers"},
    {"temperature", "T", "of softmax; default: the best one for every length, by search"},
    {"out", "FILE", "CSV file instead of the table; - is standard output"},
    {"json", NULL, "print JSON"},
    {NULL, NULL, NULL},
};

#define SAMPLES_FIELDS(F, C)                                                                       \
    F(int64_t, samples, 10000, 2, INT64_C(1) << 40, "sequences in a simulation")                   \
    F(int64_t, seed, 1, 0, INT64_C(1) << 53, "seed of the simulation")
typedef struct risk_settings {
    SAMPLES_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} risk_settings;
#define FIN_TABLE_STRUCT risk_settings
FIN_TABLE(static, samples_table, "risk", SAMPLES_FIELDS);
#undef FIN_TABLE_STRUCT

typedef struct risk_asked {
    char family[32];
    fin_latent_settings latent;
    risk_settings own;
} risk_asked;

static const fin_word setting_words[] = {
    FIN_WORD("family", risk_asked, family, "concept", "family of exchangeable tokens"),
    FIN_WORDS_END,
};

static fin_status groups(void *values, fin_group list[FIN_GROUPS], int *count, fin_error *err)
{
    risk_asked *s = values;
    fin_status status = fin_word_group("family", s->family, &s->latent, list, count, err);
    list[(*count)++] = (fin_group){&samples_table, &s->own};
    return status;
}

static const fin_command options = {
    .name = "latent risk",
    .size = sizeof(risk_asked),
    .words = setting_words,
    .groups = groups,
};

const cli_command cli_latent_risk = {
    .name = "latent risk",
    .summary = "Bayes risk against length, and attention's beside it",
    .about =
        "Prints E |truth - prediction|^2 at a new query after L tokens, without the noise of the\n"
        "answer itself: for the posterior mean (nobody can do better), for cme attention with the\n"
        "family's own prior and noise, and for softmax attention at its best temperature.",
    .examples = "  finetti latent risk\n"
                "  finetti latent risk --family counts --outcomes 4 --L 1,10,100\n"
                "  finetti latent risk --family process --kernel matern32 --d 1 --L 5,20,80\n"
                "  finetti latent risk --family finite --samples 20000 --attention cme\n",
    .settings = &options,
    .computes = true,
    .words = words,
    .run = run,
};

enum { CME, SOFTMAX, NW, FORMS, MOST = 64, SEARCH = 2000 }; /* SEARCH: samples of the search */
static const char *const form_names[FORMS] = {"cme", "softmax", "nw"};

typedef struct row {
    int64_t L;
    fin_estimate bayes, risk[FORMS];
    double temperature;
} row;

typedef struct table {
    cli_args *args;
    fin_latent *latent;
    fin_risk_settings settings;
    bool wanted[FORMS];
    double temperature; /* 0: search */
    int rows;
    row row[MOST];
} table;

/* ---- what is asked for ---------------------------------------------------------------------- */

static int read_lengths(table *t)
{
    const char *text = cli_get(t->args, "L");
    if (!text) {
        for (int64_t L = 1; L <= 64; L *= 2)
            t->row[t->rows++].L = L;
        return CLI_OK;
    }
    for (char *end;; text = end + 1) {
        long long L = strtoll(text, &end, 10);
        if (end == text || (*end && *end != ',') || L < 0)
            return cli_usage("--L '%.40s' is not a list of whole numbers such as 1,2,5,10", text);
        if (t->rows == MOST)
            return cli_usage("--L has more than %d lengths", MOST);
        t->row[t->rows++].L = L;
        if (!*end)
            return CLI_OK;
    }
}

static int read_forms(table *t)
{
    fin_latent_shape shape;
    fin_latent_get_shape(t->latent, &shape);
    bool possible = shape.dk > 0 && shape.outcomes == 0;
    const char *text = cli_get(t->args, "attention");
    if (!text)
        text = possible ? "cme,softmax" : "none";
    while (strcmp(text, "none") != 0 && *text) {
        size_t length = strcspn(text, ",");
        int form = 0;
        while (form < FORMS &&
               (strlen(form_names[form]) != length || strncmp(form_names[form], text, length) != 0))
            form++;
        if (form == FORMS)
            return cli_usage("--attention '%.40s': there are cme, softmax, nw and none", text);
        if (!possible)
            return cli_usage("attention needs keys and values that are numbers; the family %s has "
                             "%s",
                             fin_family_name(cli_settings_family(t->args)),
                             shape.dk > 0 ? "outcomes" : "no keys");
        t->wanted[form] = true;
        text += length + (text[length] == ',');
    }
    return CLI_OK;
}

static int read_temperature(table *t)
{
    const char *text = cli_get(t->args, "temperature");
    char *end = NULL;
    t->temperature = text ? strtod(text, &end) : 0;
    if (text && (end == text || *end || !(t->temperature > 0) || !isfinite(t->temperature)))
        return cli_usage("--temperature '%.40s' is not a positive number", text);
    if (text && !t->wanted[SOFTMAX])
        return cli_usage("--temperature is softmax attention's; it goes with --attention softmax");
    return CLI_OK;
}

/* ---- attention ------------------------------------------------------------------------------ */

/* A linear concept on the features; a process has its kernel; of rotations the second moments count. */
static void choose_attention(const table *t, int form, fin_cross_settings *cross)
{
    const fin_latent_settings *s = fin_latent_get_settings(t->latent);
    const char *family = fin_family_name(cli_settings_family(t->args));
    fin_settings_defaults(&fin_cross_table, cross);
    cross->form = form;
    cross->kernel = form == NW ? FIN_KERNEL_RBF : FIN_KERNEL_LINEAR;
    cross->prior = s->prior;
    cross->noise = s->noise;
    if (strcmp(family, "process") == 0) {
        cross->kernel = s->kernel;
        cross->scale = s->scale;
        cross->degree = s->degree;
        cross->offset = s->offset;
    } else if (strcmp(family, "sphere") == 0) {
        double along = fin_sphere_mean(s->d, s->rho);
        cross->prior = fmax(1e-100, along * along / (double)s->d); /* rho = 0: nothing to find */
        cross->noise = fmax(0, (1 - along * along) / (double)s->d);
    }
}

typedef struct search {
    const table *t;
    fin_cross_settings cross;
    int64_t L;
    fin_error err;
    fin_status status;
} search;

static double risk_at(double log_temperature, void *user)
{
    search *s = user;
    fin_estimate risk;
    fin_risk_settings few = s->t->settings;
    few.samples = few.samples < SEARCH ? few.samples : SEARCH;
    s->cross.temperature = exp(log_temperature);
    if (s->status)
        return INFINITY;
    s->status = fin_latent_risk_cross(s->t->latent, &s->cross, s->L, &few, NULL, &risk, &s->err);
    return s->status ? INFINITY : risk.value;
}

/* All temperatures see the same draws. */
static fin_status best_temperature(search *s, double *temperature, fin_error *err)
{
    double where, least;
    fin_status status = fin_brent(risk_at, s, -7, 9, 1e-3, &where, &least, err);
    if (s->status) {
        *err = s->err;
        return s->status;
    }
    *temperature = exp(where);
    return status;
}

static fin_status attend(table *t, row *r, int form, fin_error *err)
{
    search s = {.t = t, .L = r->L};
    fin_status status = FIN_OK;
    choose_attention(t, form, &s.cross);
    if (form == SOFTMAX) {
        r->temperature = t->temperature;
        if (!(t->temperature > 0) && r->L > 1) /* one token has all the weight at any temperature */
            status = best_temperature(&s, &r->temperature, err);
        if (r->temperature > 0)
            s.cross.temperature = r->temperature;
    }
    return status ? status
                  : fin_latent_risk_cross(t->latent, &s.cross, r->L, &t->settings, cli_progress(),
                                          &r->risk[form], err);
}

static fin_status compute(table *t, fin_error *err)
{
    const fin_progress *progress = cli_progress();
    for (int i = 0; i < t->rows; i++) {
        row *r = &t->row[i];
        cli_progress_part((double)i / t->rows, 1.0 / t->rows);
        fin_status status =
            fin_latent_risk(t->latent, r->L, &t->settings, progress, &r->bayes, err);
        for (int form = 0; form < FORMS && !status; form++)
            if (t->wanted[form] && (r->L > 0 || form == CME))
                status = attend(t, r, form, err);
        if (!status && progress->report(progress->user, "lengths", 1, 1))
            status = cli_status(err, FIN_ERR_CANCELLED, "cancelled");
        if (status)
            return status;
    }
    return FIN_OK;
}

/* ---- output --------------------------------------------------------------------------------- */

static bool has(const table *t, const row *r, int form)
{
    return t->wanted[form] && (r->L > 0 || form == CME);
}

/* Cells of 22 characters, no blanks behind the last one. */
typedef struct line {
    char text[256];
    size_t used;
} line;

static void add_cell(line *l, const char *text)
{
    int n = snprintf(l->text + l->used, sizeof l->text - l->used, " %-22s", text);
    l->used += n > 0 ? (size_t)n : 0;
    l->used = l->used < sizeof l->text ? l->used : sizeof l->text - 1;
}

static void add_estimate(line *l, const fin_estimate *e)
{
    char text[64];
    if (e->method == FIN_METHOD_SIMULATION)
        snprintf(text, sizeof text, "%.6g +- %.1g%s", e->value, e->error, e->rare ? " (!)" : "");
    else
        snprintf(text, sizeof text, "%.8g", e->value);
    add_cell(l, text);
}

static void end_line(line *l)
{
    while (l->used > 0 && l->text[l->used - 1] == ' ')
        l->text[--l->used] = '\0';
    puts(l->text);
}

static void print_row(const table *t, const row *r)
{
    line l = {"", 0};
    char number[32];
    l.used = (size_t)snprintf(l.text, sizeof l.text, "%-8lld", (long long)r->L);
    add_estimate(&l, &r->bayes);
    for (int form = 0; form < FORMS; form++)
        if (has(t, r, form))
            add_estimate(&l, &r->risk[form]);
        else if (t->wanted[form])
            add_cell(&l, "-");
    snprintf(number, sizeof number, "%.4g", r->temperature);
    if (t->wanted[SOFTMAX])
        add_cell(&l, has(t, r, SOFTMAX) && r->temperature > 0 ? number : "any");
    end_line(&l);
}

static void print_how(const table *t)
{
    const fin_estimate *bayes = &t->row[t->rows - 1].bayes;
    bool forms = t->wanted[CME] || t->wanted[SOFTMAX] || t->wanted[NW], rare = false;
    bool simulated = forms || bayes->method == FIN_METHOD_SIMULATION;
    for (int i = 0; i < t->rows; i++) {
        rare = rare || t->row[i].bayes.rare;
        for (int form = 0; form < FORMS; form++)
            rare = rare || (has(t, &t->row[i], form) && t->row[i].risk[form].rare);
    }
    printf("\nBayes: %s%s", fin_method_name(bayes->method), forms ? "; attention: simulation" : "");
    if (simulated)
        printf(" of %lld sequences, +- is a standard error", (long long)t->settings.samples);
    printf("%s\n", rare ? "\n(!): made by a few sequences; it is most likely too small" : "");
}

static int print_table(const table *t)
{
    line head = {"L       ", 8};
    printf("family %-9s ", fin_family_name(cli_settings_family(t->args)));
    cli_print_settings(fin_family_table(cli_settings_family(t->args)),
                       fin_latent_get_settings(t->latent));
    putchar('\n');
    add_cell(&head, "Bayes");
    for (int form = 0; form < FORMS; form++)
        if (t->wanted[form])
            add_cell(&head, form_names[form]);
    if (t->wanted[SOFTMAX])
        add_cell(&head, "temperature");
    end_line(&head);
    for (int i = 0; i < t->rows; i++)
        print_row(t, &t->row[i]);
    print_how(t);
    return cli_flush();
}

static int print_json(const table *t)
{
    json_t *lengths = json_array();
    for (int i = 0; i < t->rows; i++) {
        const row *r = &t->row[i];
        json_t *one =
            json_pack("{s:I, s:o}", "L", (json_int_t)r->L, "bayes", cli_json_estimate(&r->bayes));
        for (int form = 0; form < FORMS; form++)
            if (has(t, r, form))
                json_object_set_new(one, form_names[form], cli_json_estimate(&r->risk[form]));
        if (has(t, r, SOFTMAX) && r->temperature > 0)
            json_object_set_new(one, "temperature", cli_json_number(r->temperature));
        json_array_append_new(lengths, one);
    }
    return cli_print_json(
        json_pack("{s:s, s:o, s:I, s:I, s:o}", "family",
                  fin_family_name(cli_settings_family(t->args)), "family_settings",
                  cli_json_settings(fin_family_table(cli_settings_family(t->args)),
                                    fin_latent_get_settings(t->latent)),
                  "samples", (json_int_t)t->settings.samples, "seed", (json_int_t)t->settings.seed,
                  "lengths", lengths));
}

static fin_status write_csv(const table *t, const char *path, fin_error *err)
{
    const char *names[2 + 2 + 2 * FORMS] = {"L", "bayes", "bayes_error"};
    static const char *const errors[FORMS] = {"cme_error", "softmax_error", "nw_error"};
    int count = 3;
    for (int form = 0; form < FORMS; form++)
        if (t->wanted[form]) {
            names[count++] = form_names[form];
            names[count++] = errors[form];
        }
    if (t->wanted[SOFTMAX])
        names[count++] = "temperature";
    fin_csv *csv;
    fin_status status = fin_csv_open(path, names, count, &csv, err);
    if (status)
        return status;
    for (int i = 0; i < t->rows && !status; i++) {
        const row *r = &t->row[i];
        double values[2 + 2 + 2 * FORMS] = {(double)r->L, r->bayes.value, r->bayes.error};
        int k = 3;
        for (int form = 0; form < FORMS; form++)
            if (t->wanted[form]) {
                values[k++] = has(t, r, form) ? r->risk[form].value : NAN;
                values[k++] = has(t, r, form) ? r->risk[form].error : NAN;
            }
        if (t->wanted[SOFTMAX])
            values[k++] = has(t, r, SOFTMAX) && r->temperature > 0 ? r->temperature : NAN;
        status = fin_csv_row(csv, values, err);
    }
    if (status) {
        fin_csv_abort(csv);
        return status;
    }
    return fin_csv_commit(csv, err);
}

/* ---- running -------------------------------------------------------------------------------- */

static int print_or_write(const table *t)
{
    const char *path = cli_get(t->args, "out");
    fin_error err;
    if (path)
        return write_csv(t, path, &err) ? cli_error(&err) : CLI_OK;
    return cli_get(t->args, "json") ? print_json(t) : print_table(t);
}

static int run(cli_args *args)
{
    table t = {.args = args};
    fin_error err = {FIN_OK, ""};
    if (cli_get(args, "out") && cli_get(args, "json"))
        return cli_usage("--out writes CSV and --json prints; give one or the other");
    fin_settings_defaults(&fin_risk_table, &t.settings);
    const risk_asked *asked = (const void *)args->values;
    t.settings.samples = asked->own.samples;
    t.settings.seed = asked->own.seed;
    if (fin_latent_create(&t.latent, cli_settings_family(args), &asked->latent,
                          (uint64_t)t.settings.seed, &err))
        return cli_error(&err);
    int code = read_lengths(&t);
    code = code ? code : read_forms(&t);
    code = code ? code : read_temperature(&t);
    if (!code && cli_get(args, "out") && strcmp(cli_get(args, "out"), "-") != 0 &&
        cli_try_output(cli_get(args, "out"), &err))
        code = cli_error(&err);
    if (!code && compute(&t, &err))
        code = cli_error(&err);
    cli_progress_end();
    code = code ? code : print_or_write(&t);
    fin_latent_destroy(t.latent);
    return code;
}
