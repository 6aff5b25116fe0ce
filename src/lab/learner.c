/* An encoder, its sequences and its learning from the settings of a command. */
#include "lab/learner.h"

/* What a corpus of single-location regression has to say: its tokens are the task's, and there is
 * nothing to mask. */
#define TASK_CORPUS_FIELDS(F, C)                                                                   \
    C(answer, 0, "value|gaussian", "squared error, or a Gaussian with learnt variance")            \
    F(int64_t, samples, 0, 0, INT64_C(1) << 40,                                                    \
      "fixed-sample (ERM) training: so many sequences, again and again; 0 = fresh ones")
#define FIN_TABLE_STRUCT fin_corpus_settings
FIN_TABLE(static, task_corpus_table, "corpus", TASK_CORPUS_FIELDS);

/* ---- settings -------------------------------------------------------------------------------- */

fin_status fini_learner_groups(fini_learner_values *v, fin_group list[FIN_GROUPS], int *count,
                               fin_error *err)
{
    const fin_task_kind *kind = fin_task_find(v->family);
    if (kind)
        list[(*count)++] = (fin_group){fin_task_kind_table(kind), &v->task};
    else
        FINI_TRY(fin_word_group("family", v->family, &v->latent, list, count, err));
    list[(*count)++] = (fin_group){kind ? &task_corpus_table : &fin_corpus_table, &v->corpus};
    list[(*count)++] = (fin_group){&fin_encoder_table, &v->encoder};
    list[(*count)++] = (fin_group){&fin_learn_table, &v->learn};
    return FIN_OK;
}

fin_status fini_learner_check(const fini_learner_values *v, fin_error *err)
{
    fini_learner learner;
    fin_status status = fini_learner_open(&learner, v, err);
    fini_learner_close(&learner);
    return status;
}

/* ---- making ---------------------------------------------------------------------------------- */

static fin_status open_corpus(fini_learner *o, const fini_learner_values *v, fin_error *err)
{
    uint64_t seed = (uint64_t)v->learn.seed;
    const fin_task_kind *kind = fin_task_find(v->family);
    if (!kind) {
        FINI_TRY(fin_latent_create(&o->latent, fin_family_find(v->family), &v->latent, seed, err));
        return fin_corpus_latent(&o->corpus, &v->corpus, o->latent, seed, err);
    }
    fin_corpus_settings corpus; /* rows that the small table has not */
    fin_settings_defaults(&fin_corpus_table, &corpus, sizeof corpus);
    corpus.objective = FIN_OBJECTIVE_SUPERVISED;
    corpus.answer = v->corpus.answer;
    corpus.samples = v->corpus.samples;
    FINI_TRY(fin_task_create(&o->task, kind, &v->task, NULL, seed, FIN_TASK_AMBIENT, err));
    return fin_corpus_task(&o->corpus, &corpus, o->task, err);
}

fin_status fini_learner_open(fini_learner *o, const fini_learner_values *v, fin_error *err)
{
    fin_encoder_shape shape;
    fin_encoder_settings settings = v->encoder;
    *o = (fini_learner){NULL, NULL, NULL, NULL, NULL};
    fin_status status = open_corpus(o, v, err);
    if (!status) {
        fin_corpus_get_shape(o->corpus, &shape);
        if (settings.positions == FIN_POSITIONS_LEARNED && settings.longest == FIN_AUTO_INT)
            settings.longest = fin_corpus_longest(o->corpus);
        status = fin_encoder_create(&o->encoder, &settings, &shape, (uint64_t)v->learn.seed, err);
    }
    if (!status)
        status =
            fin_learn_create(&o->learn, &v->learn, o->encoder, o->corpus, NULL, NULL, 0, 1, err);
    if (status)
        fini_learner_close(o);
    return status;
}

void fini_learner_close(fini_learner *o)
{
    fin_learn_destroy(o->learn);
    fin_encoder_destroy(o->encoder);
    fin_corpus_destroy(o->corpus);
    fin_task_destroy(o->task);
    fin_latent_destroy(o->latent);
    *o = (fini_learner){NULL, NULL, NULL, NULL, NULL};
}

/* ---- learning -------------------------------------------------------------------------------- */

typedef struct watch {
    const char *what;
    const fin_progress *progress;
} watch;

static int look(void *user, const fin_learn_report *report)
{
    const watch *w = user;
    return fini_report(w->progress, w->what, (double)report->step, (double)report->steps);
}

fin_status fini_learner_run(fin_learn *learn, const char *what, const fin_progress *progress,
                            fin_error *err)
{
    watch w = {what, progress};
    return fin_learn_run(learn, -1, look, &w, err);
}
