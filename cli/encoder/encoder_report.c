/* Encoders, what they were trained on and how good they are, as records; the log of learning as CSV. */
#include "encoder/encoder.h"

#include <math.h>

json_t *encoder_of(const fin_encoder *encoder)
{
    static const char *const kinds[][2] = {
        {"number", "numbers"}, {"mean and variance", "means and variances"}, {"class", "classes"}};
    const fin_encoder_settings *s = fin_encoder_get_settings(encoder);
    const fin_encoder_shape *shape = fin_encoder_get_shape(encoder);
    json_t *heads = json_array();
    for (int64_t i = 0; i < shape->heads; i++) {
        const fin_head *head = &shape->head[i];
        json_array_append_new(heads,
                              json_pack("{s:s, s:s, s:s, s:I}", "name", head->name, "kind",
                                        kinds[head->kind][head->size != 1], "of",
                                        head->where == FIN_HEAD_POOLED ? "sequence" : "token",
                                        "size", cli_int(head->size)));
    }
    return json_pack("{s:o, s:I, s:I, s:I, s:I, s:o}", "settings",
                     cli_json_settings(&fin_encoder_table, s), "hidden",
                     cli_int(fin_is_auto((double)s->hidden) ? 4 * s->width : s->hidden),
                     "parameters", cli_int((int64_t)fin_encoder_parameters(encoder)), "inputs",
                     cli_int(shape->inputs), "values", cli_int(shape->values), "heads", heads);
}

/* ---- what it was trained on ------------------------------------------------------------------ */

json_t *encoder_plan_of(const encoder_plan *plan, const encoder_data *data)
{
    static const char *const names[] = {"family", "task", "data"};
    const fin_corpus_settings *c = fin_corpus_get_settings(data->corpus);
    bool family = plan->from == ENCODER_FAMILY, shorter = family && c->L_least < c->L;
    json_t *object = json_pack(
        "{s:o, s:o, s:o*, s:o*, s:o*}", "corpus", cli_json_settings(&fin_corpus_table, c),
        names[plan->from], cli_json_text(encoder_plan_name(plan)), "family_settings",
        family ? cli_json_settings(fin_family_table(plan->family), &plan->latent) : NULL,
        "task_settings",
        plan->from == ENCODER_TASK ? cli_json_settings(fin_task_kind_table(plan->kind), &plan->task)
                                   : NULL,
        "shortest", shorter ? json_integer(cli_int(c->L_least)) : NULL);
    if (!data->all)
        return object;
    const fin_memory *train = fin_token_set_memory(data->train);
    json_t *more = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I}", "sequences", cli_int(fin_token_set_memory(data->all)->n),
        "train", cli_int(train->n), "test",
        cli_int(data->test ? fin_token_set_memory(data->test)->n : 0), "patch",
        cli_int(plan->data.patch), "patches", cli_int(plan->data.patch ? train->offsets[1] : 0),
        "columns", cli_int(train->inputs));
    json_object_update_missing(object, more);
    json_decref(more);
    return object;
}

/* ---- how good it is --------------------------------------------------------------------------- */

json_t *encoder_test(const fin_evaluation *t)
{
    double share = t->accuracy, n = t->targets > 0 ? (double)t->targets : 1;
    /* The excess in per cent of Bayes says something if the Bayes risk is more than rounding. */
    bool quotient = isfinite(t->bayes) && t->bayes > 1e-12 * fabs(t->risk);
    json_t *object =
        json_pack("{s:I, s:I}", "sequences", cli_int(t->sequences), "targets", cli_int(t->targets));
    cli_put(object, "risk", t->risk, "risk_se", t->risk_se, "bayes", t->bayes, "bayes_se",
            t->bayes_se, "excess", t->excess, "excess_se", t->excess_se, "of_bayes",
            quotient ? t->excess / t->bayes : NAN, "quotient", t->quotient, "distance", t->distance,
            "correlation", t->correlation, "accuracy", t->accuracy, "accuracy_se",
            sqrt(share * (1 - share) / n), "loss", t->loss, NULL);
    return object;
}

json_t *encoder_log(const fin_learn *learn)
{
    const fin_learn_row *row;
    json_t *array = json_array();
    for (int64_t i = 0, rows = fin_learn_log(learn, &row); i < rows; i++) {
        json_t *one = json_pack("{s:I, s:o}", "step", cli_int(row[i].step), "test",
                                encoder_test(&row[i].test));
        cli_put(one, "rate", row[i].rate, "loss", row[i].loss, "norm", row[i].norm, NULL);
        json_array_append_new(array, one);
    }
    return array;
}

static void tell_row(cli_row *row, const void *user, int64_t i)
{
    const fin_learn_row *r = (const fin_learn_row *)user + i;
    cli_cell_int(row, "step", r->step);
    cli_cell(row, "rate", r->rate);
    cli_cell(row, "loss", r->loss);
    cli_cell(row, "norm", r->norm);
    cli_cell(row, "risk", r->test.risk);
    cli_cell(row, "risk_se", r->test.risk_se);
    cli_cell(row, "bayes", r->test.bayes);
    cli_cell(row, "excess", r->test.excess);
    cli_cell(row, "excess_se", r->test.excess_se);
    cli_cell(row, "correlation", r->test.correlation);
    cli_cell(row, "accuracy", r->test.accuracy);
}

fin_status encoder_write_log(const char *path, const fin_learn *learn, fin_error *err)
{
    static const fin_learn_row none;
    const fin_learn_row *row;
    int64_t rows = fin_learn_log(learn, &row);
    return cli_write_rows(path, tell_row, rows ? row : &none, rows, err);
}
