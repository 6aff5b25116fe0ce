/* train: what the files of `finetti train` share. */
#ifndef CLI_TRAIN_H
#define CLI_TRAIN_H

#include "cli.h"

/* What came out, and how people read it. curvature: one for each run, or NULL. every: with every run. */
json_t *train_record(const fin_training *t, const fin_result *result,
                     const fin_curvature *curvature, bool every);
extern const char train_form[];

#endif
