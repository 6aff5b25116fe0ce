/* What the calls share: numbers in, a failure out. */
#ifndef FINETTI_WEB_CALL_H
#define FINETTI_WEB_CALL_H

#include "finetti/base.h"
#include "finetti/task.h"
#include "finetti/theory.h"

#include <stdbool.h>

/* The arguments of a call, taken one after the other. */
typedef struct web_in {
    const double *at;
    int left;
    bool bad; /* one was missing, or not whole where it had to be */
} web_in;

double web_number(web_in *in);
int64_t web_whole(web_in *in); /* at most 2^53 in size */
int web_choice(web_in *in, int count);
/* n numbers, or NULL. */
const double *web_array(web_in *in, int64_t n);
/* Is what was asked in order, all of it taken, and is there room for what comes? Else the message is written. */
bool web_ready(const web_in *in, int64_t answers, int room);

/* The error that web_message() tells, and -1. */
extern fin_error web_error;
int web_refuse(const char *sentence);

const fin_form *web_form(int form);
/* What panels 2 and 3 ask of: slr with these settings; NULL: refused. Taken: d L lam gamma eps. */
typedef struct web_slr {
    fin_task_settings task;
    fin_form_settings form;
} web_slr;
web_slr web_slr_of(web_in *in);
fin_overlaps web_overlaps(web_in *in);

#endif
