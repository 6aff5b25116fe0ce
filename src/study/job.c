/* The table of jobs. A new command for studies is one file, job_<name>.c, and one row here. */
#include "study/job.h"

#include <string.h>

static const fini_job *const jobs[] = {
    &fini_job_risk,   &fini_job_train,  &fini_job_landscape, &fini_job_law,
    &fini_job_rate,   &fini_job_limit,  &fini_job_identity,  &fini_job_latent,
    &fini_job_regret, &fini_job_urn,    &fini_job_fit,       &fini_job_prior,
    &fini_job_erm,    &fini_job_linear, &fini_job_lipschitz, &fini_job_stationary,
    &fini_job_shift,  &fini_job_head,   &fini_job_encoder,   &fini_job_pretrain,
    &fini_job_mil,
};
enum { JOBS = sizeof jobs / sizeof *jobs };

int fini_job_count(void)
{
    return JOBS;
}

const fini_job *fini_job_at(int i)
{
    return i >= 0 && i < JOBS ? jobs[i] : NULL;
}

const fini_job *fini_job_find(const char *name)
{
    for (int i = 0; i < JOBS; i++)
        if (strcmp(jobs[i]->name, name) == 0)
            return jobs[i];
    return NULL;
}

int fin_job_count(void)
{
    return JOBS;
}

const char *fin_job_name(int i)
{
    const fini_job *job = fini_job_at(i);
    return job ? job->name : NULL;
}

const char *fin_job_summary(int i)
{
    const fini_job *job = fini_job_at(i);
    return job ? job->summary : NULL;
}

void fin_job_outputs(int i, void (*row)(void *user, const char *name, const char *meaning),
                     void *user)
{
    const fini_job *job = fini_job_at(i);
    for (const fini_output_row *o = job ? job->outputs : NULL; o && o->name; o++)
        row(user, o->name, o->meaning);
}
