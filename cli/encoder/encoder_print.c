/* Encoders, what they were trained on and how good they are: as text, as JSON, as CSV. */
#include "encoder/encoder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the encoder ---------------------------------------------------------------------------- */

static const char *choice(const fin_settings *table, const char *name, const void *values,
                          char *buffer, size_t size)
{
    return fin_settings_text(fin_settings_find(table, name), values, buffer, size);
}

static const char *head_kind(const fin_head *head)
{
    static const char *const kinds[][2] = {
        {"number", "numbers"}, {"mean and variance", "means and variances"}, {"class", "classes"}};
    return kinds[head->kind][head->size != 1];
}

void encoder_print_encoder(const char *label, const fin_encoder_settings *s,
                           const fin_encoder_shape *shape, double parameters)
{
    char attention[32], positions[32], activation[32];
    const fin_settings *table = &fin_encoder_table;
    printf("%-*s%lld layer%s of %s attention, width %lld, %lld head%s", ENCODER_MARGIN, label,
           (long long)s->layers, s->layers == 1 ? "" : "s",
           choice(table, "attention", s, attention, sizeof attention), (long long)s->width,
           (long long)s->heads, s->heads == 1 ? "" : "s");
    int64_t hidden = fin_is_auto((double)s->hidden) ? 4 * s->width : s->hidden;
    if (hidden)
        printf(", %lld %s units", (long long)hidden,
               choice(table, "activation", s, activation, sizeof activation));
    printf("\n%*s%s positions, %s norm, %.0f parameters\n", ENCODER_MARGIN, "",
           s->positions ? choice(table, "positions", s, positions, sizeof positions) : "no",
           s->norm ? "no" : "layer", parameters);
    for (int64_t i = 0; i < shape->heads; i++)
        printf("%-*s%s: %lld %s of %s\n", ENCODER_MARGIN, i ? "" : "answers", shape->head[i].name,
               (long long)shape->head[i].size, head_kind(&shape->head[i]),
               shape->head[i].where == FIN_HEAD_POOLED ? "a sequence" : "a token");
}

/* Parameters in units of the encoder's own table are in its settings. */
json_t *encoder_json_encoder(const fin_encoder_settings *settings, const fin_encoder_shape *shape,
                             double parameters)
{
    json_t *heads = json_array();
    for (int64_t i = 0; i < shape->heads; i++)
        json_array_append_new(
            heads, json_pack("{s:s, s:s, s:s, s:I}", "name", shape->head[i].name, "kind",
                             head_kind(&shape->head[i]), "of",
                             shape->head[i].where == FIN_HEAD_POOLED ? "sequence" : "token", "size",
                             (json_int_t)shape->head[i].size));
    return json_pack("{s:o, s:I, s:I, s:I, s:o}", "settings",
                     cli_json_settings(&fin_encoder_table, settings), "parameters",
                     (json_int_t)parameters, "inputs", (json_int_t)shape->inputs, "values",
                     (json_int_t)shape->values, "heads", heads);
}

/* ---- what it was trained on ------------------------------------------------------------------ */

static void print_data(const encoder_plan *plan, const encoder_data *data)
{
    const fin_memory *train = fin_token_set_memory(data->train);
    int64_t held = data->test ? fin_token_set_memory(data->test)->n : 0;
    printf("%-*s%s: %lld %s", ENCODER_MARGIN, "data", plan->path,
           (long long)fin_token_set_memory(data->all)->n, plan->data.patch ? "images" : "bags");
    if (plan->data.patch)
        printf(" as %lld patch%s of %lld x %lld", (long long)train->offsets[1],
               train->offsets[1] == 1 ? "" : "es", (long long)plan->data.patch,
               (long long)plan->data.patch);
    else
        printf(", %lld column%s of a token", (long long)train->inputs,
               train->inputs == 1 ? "" : "s");
    printf("\n%*s%lld to learn from, %lld held out\n", ENCODER_MARGIN, "", (long long)train->n,
           (long long)held);
}

void encoder_print_plan(const encoder_plan *plan, const encoder_data *data)
{
    const fin_corpus_settings *c = fin_corpus_get_settings(data->corpus);
    char objective[32];
    if (plan->from == ENCODER_DATA) {
        print_data(plan, data);
    } else {
        bool family = plan->from == ENCODER_FAMILY;
        printf("%-*s%-4s ", ENCODER_MARGIN, family ? "family" : "task", encoder_plan_name(plan));
        const fin_settings *table =
            family ? fin_family_table(plan->family) : fin_task_kind_table(plan->kind);
        for (int i = 0; i < table->count; i++) {
            char text[64];
            printf(" %s=%s", table->fields[i].name,
                   fin_settings_text(&table->fields[i],
                                     family ? (const void *)&plan->latent : &plan->task, text,
                                     sizeof text));
        }
        printf("\n");
    }
    printf("%-*s%s", ENCODER_MARGIN, "objective",
           choice(&fin_corpus_table, "objective", c, objective, sizeof objective));
    if (plan->from == ENCODER_FAMILY && c->L_least < c->L)
        printf(": %lld to %lld tokens in sight", (long long)c->L_least, (long long)c->L);
    else if (plan->from == ENCODER_FAMILY)
        printf(": %lld token%s in sight", (long long)c->L, c->L == 1 ? "" : "s");
    if (plan->from == ENCODER_FAMILY && c->objective == FIN_OBJECTIVE_MASKED)
        printf(", %lld hidden", (long long)c->M);
    if (plan->from == ENCODER_DATA && c->objective == FIN_OBJECTIVE_MASKED)
        printf(": %g of the tokens are hidden", c->share);
    printf("\n");
}

json_t *encoder_json_plan(const encoder_plan *plan, const encoder_data *data)
{
    json_t *root =
        json_pack("{s:o}", "corpus",
                  cli_json_settings(&fin_corpus_table, fin_corpus_get_settings(data->corpus)));
    if (plan->from == ENCODER_FAMILY)
        json_object_set_new(root, "family_settings",
                            cli_json_settings(fin_family_table(plan->family), &plan->latent));
    if (plan->from == ENCODER_TASK)
        json_object_set_new(root, "task_settings",
                            cli_json_settings(fin_task_kind_table(plan->kind), &plan->task));
    if (data->all) {
        json_object_set_new(root, "sequences",
                            json_integer((json_int_t)fin_token_set_memory(data->all)->n));
        json_object_set_new(root, "train",
                            json_integer((json_int_t)fin_token_set_memory(data->train)->n));
        json_object_set_new(
            root, "test",
            json_integer(data->test ? (json_int_t)fin_token_set_memory(data->test)->n : 0));
    }
    static const char *const names[] = {"family", "task", "data"};
    json_object_set_new(root, names[plan->from], json_string(encoder_plan_name(plan)));
    return root;
}

/* ---- how good it is --------------------------------------------------------------------------- */

static double standard_error(double share, int64_t n)
{
    return sqrt(share * (1 - share) / (double)(n > 0 ? n : 1));
}

bool encoder_has_quotient(const fin_evaluation *t)
{
    return isfinite(t->bayes) && t->bayes > 1e-12 * fabs(t->risk);
}

void encoder_print_test(const fin_evaluation *t, const char *on)
{
    printf("%-*s%lld %s, %lld targets\n", ENCODER_MARGIN, "test", (long long)t->sequences, on,
           (long long)t->targets);
    if (isfinite(t->accuracy))
        printf("%*saccuracy %.4f +- %.4f\n", ENCODER_MARGIN, "", t->accuracy,
               standard_error(t->accuracy, t->targets));
    printf("%*srisk %.5g", ENCODER_MARGIN, "", t->risk);
    if (isfinite(t->risk_se)) /* of one sequence there is none */
        printf(" +- %.2g", t->risk_se);
    if (isfinite(t->bayes))
        printf(", Bayes %.5g, excess %.4g +- %.2g", t->bayes, t->excess, t->excess_se);
    if (encoder_has_quotient(t))
        printf(" (%.1f %% of Bayes)", 100 * t->excess / t->bayes);
    printf("\n");
    if (isfinite(t->correlation))
        printf("%*scorrelation with the Bayes prediction %.5f\n", ENCODER_MARGIN, "",
               t->correlation);
}

static void put(json_t *object, const char *name, double number)
{
    if (isfinite(number)) /* what does not apply is not there */
        json_object_set_new(object, name, json_real(number));
}

json_t *encoder_json_test(const fin_evaluation *t)
{
    json_t *object = json_pack("{s:I, s:I}", "sequences", (json_int_t)t->sequences, "targets",
                               (json_int_t)t->targets);
    put(object, "risk", t->risk);
    put(object, "risk_se", t->risk_se);
    put(object, "bayes", t->bayes);
    put(object, "bayes_se", t->bayes_se);
    put(object, "excess", t->excess);
    put(object, "excess_se", t->excess_se);
    put(object, "quotient", t->quotient);
    put(object, "distance", t->distance);
    put(object, "correlation", t->correlation);
    put(object, "accuracy", t->accuracy);
    if (isfinite(t->accuracy))
        put(object, "accuracy_se", standard_error(t->accuracy, t->targets));
    put(object, "loss", t->loss);
    return object;
}

json_t *encoder_json_log(const fin_learn *learn)
{
    const fin_learn_row *row;
    json_t *array = json_array();
    for (int64_t i = 0, rows = fin_learn_log(learn, &row); i < rows; i++) {
        json_t *one = json_pack("{s:I, s:o}", "step", (json_int_t)row[i].step, "test",
                                encoder_json_test(&row[i].test));
        put(one, "rate", row[i].rate);
        put(one, "loss", row[i].loss);
        put(one, "norm", row[i].norm);
        json_array_append_new(array, one);
    }
    return array;
}

fin_status encoder_write_log(const char *path, const fin_learn *learn, fin_error *err)
{
    static const char *const names[] = {"step",      "rate",        "loss",    "norm",
                                        "risk",      "risk_se",     "bayes",   "excess",
                                        "excess_se", "correlation", "accuracy"};
    enum { COLUMNS = sizeof names / sizeof *names };
    const fin_learn_row *row;
    fin_csv *csv = NULL;
    int64_t rows = fin_learn_log(learn, &row);
    fin_status status = fin_csv_open(path, names, COLUMNS, &csv, err);
    for (int64_t i = 0; i < rows && !status; i++) {
        const fin_evaluation *t = &row[i].test;
        const double numbers[COLUMNS] = {
            (double)row[i].step, row[i].rate, row[i].loss, row[i].norm,  t->risk,
            t->risk_se,          t->bayes,    t->excess,   t->excess_se, t->correlation,
            t->accuracy};
        status = fin_csv_row(csv, numbers, err);
    }
    if (!status)
        return fin_csv_commit(csv, err);
    fin_csv_abort(csv);
    return status;
}
