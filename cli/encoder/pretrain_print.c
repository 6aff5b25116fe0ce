/* What finetti pretrain prints when it is done. */
#include "encoder/pretrain.h"

#include <stdio.h>
#include <unistd.h>

int pretrain_print_json(const pretraining *p)
{
    const char *out = cli_get(p->args, "out");
    json_t *lengths = json_array();
    for (int i = 0; i < p->lengths; i++) {
        json_t *one = encoder_json_test(&p->at[i]);
        json_object_set_new(one, "L", json_integer((json_int_t)p->length[i]));
        json_array_append_new(lengths, one);
    }
    json_t *root =
        json_pack("{s:o, s:o, s:o, s:I, s:b, s:o, s:o, s:o, s:f}", "data",
                  encoder_json_plan(&p->plan, &p->data), "encoder",
                  encoder_json_encoder(fin_encoder_get_settings(p->encoder),
                                       fin_encoder_get_shape(p->encoder),
                                       (double)fin_encoder_parameters(p->encoder)),
                  "learn", cli_json_settings(&fin_learn_table, fin_learn_get_settings(p->learn)),
                  "step", (json_int_t)fin_learn_step(p->learn), "done", fin_learn_done(p->learn),
                  "test", encoder_json_test(&p->test), "lengths", lengths, "log",
                  encoder_json_log(p->learn), "seconds", cli_clock() - p->start);
    if (out)
        json_object_set_new(root, "out", json_string(out));
    return cli_print_json(root);
}

static void print_lengths(const pretraining *p)
{
    printf("\nat other lengths\n%8s %12s %12s %12s %10s %12s\n", "L", "risk", "Bayes", "excess",
           "+-", "of Bayes");
    for (int i = 0; i < p->lengths; i++) {
        const fin_evaluation *t = &p->at[i];
        printf("%8lld %12.5g %12.5g %12.4g %10.2g", (long long)p->length[i], t->risk, t->bayes,
               t->excess, t->excess_se);
        if (encoder_has_quotient(t))
            printf(" %10.1f %%", 100 * t->excess / t->bayes);
        printf("\n");
    }
}

int pretrain_print_text(const pretraining *p)
{
    const fin_learn_settings *s = fin_learn_get_settings(p->learn);
    const fin_learn_row *row;
    const char *out = cli_get(p->args, "out");
    int64_t rows = fin_learn_log(p->learn, &row);
    double seconds = cli_clock() - p->start;
    encoder_print_plan(&p->plan, &p->data);
    encoder_print_encoder("encoder", fin_encoder_get_settings(p->encoder),
                          fin_encoder_get_shape(p->encoder),
                          (double)fin_encoder_parameters(p->encoder));
    printf("%-*sstep %lld of %lld", ENCODER_MARGIN, "learning", (long long)fin_learn_step(p->learn),
           (long long)s->steps);
    if (s->optimizer == FIN_OPTIMIZER_LBFGS)
        printf(" of L-BFGS");
    else
        printf(", %lld sequences each", (long long)(s->batch * s->accumulate));
    if (rows > 1)
        printf(", loss %.5g at the end", row[rows - 1].loss);
    printf("\n");
    encoder_print_test(&p->test, p->data.judge ? "sequences held out"
                                 : p->data.all ? "of the same sequences"
                                               : "fresh sequences");
    if (out)
        printf("%-*s%s\n", ENCODER_MARGIN, "written to", out);
    if (p->lengths)
        print_lengths(p);
    if (isatty(STDOUT_FILENO))
        printf("\n%-*s%.3g s, %.3g tokens a second\n", ENCODER_MARGIN, "time", seconds,
               (p->tokens[1] - p->tokens[0]) / seconds);
    return cli_flush();
}
