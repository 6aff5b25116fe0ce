/* train: what the files of `finetti train` share. */
#ifndef CLI_TRAIN_H
#define CLI_TRAIN_H

#include "cli.h"

/* What came out, as text and as JSON. curvature: one for each run, or NULL. */
void train_print(const fin_training *t, const fin_result *result, const fin_curvature *curvature);
json_t *train_json(const fin_training *t, const fin_result *result, const fin_curvature *curvature);

#endif
