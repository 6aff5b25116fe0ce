/* Pretraining under way, and how it is told: cmd_pretrain.c does it, pretrain_print.c prints. */
#ifndef CLI_PRETRAIN_H
#define CLI_PRETRAIN_H

#include "encoder/encoder.h"

typedef struct pretraining {
    cli_args *args;
    encoder_plan plan;
    encoder_data data;
    fin_checkpoint *file; /* that it goes on from, or NULL */
    fin_encoder *encoder;
    fin_learn *learn;
    encoder_entries entries;
    const char *checkpoint; /* or NULL */
    double due;
    bool warned; /* that a checkpoint could not be written */
    double start;
    double tokens[2]; /* seen at the first report and at the last */
    fin_evaluation test;
    int lengths;
    int64_t length[ENCODER_LENGTHS];
    fin_evaluation at[ENCODER_LENGTHS];
} pretraining;

int pretrain_print_json(const pretraining *p);
int pretrain_print_text(const pretraining *p);

#endif
