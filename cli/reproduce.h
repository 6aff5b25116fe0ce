/* reproduce: the two things that `finetti reproduce` prints. */
#ifndef CLI_REPRODUCE_H
#define CLI_REPRODUCE_H

#include "cli.h"

/* Each computes, then prints text to standard output or, with --json, sets *json. They return an
 * exit code, after the message. */
int reproduce_limits(cli_args *args, json_t **json);
/* *holds: whether everything is as theory says. */
int reproduce_slr(cli_args *args, json_t **json, bool *holds);
/* Whether the options of slr make sense, and its folder can be written: before any work. */
int reproduce_slr_check(cli_args *args);

#endif
