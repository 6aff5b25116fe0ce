/* Do the options of the commands on encoders fit together? An option that would change nothing is
 * refused: who gives it believes that it does. A file that would be written over another one of the
 * same command is refused, too: hours of learning, or the data, would be lost. */
#include "encoder/encoder.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- files ------------------------------------------------------------------------------------ */

static bool same_file(const char *a, const char *b)
{
    struct stat s, t;
    if (strcmp(a, b) == 0)
        return true;
    return stat(a, &s) == 0 && stat(b, &t) == 0 && s.st_dev == t.st_dev && s.st_ino == t.st_ino;
}

int encoder_check_files(const cli_args *args, const char *const outputs[])
{
    for (int i = 0; outputs[i]; i++) {
        const char *path = cli_get(args, outputs[i]), *data = cli_get(args, "data");
        if (!path)
            continue;
        if (strcmp(path, "-") == 0)
            return cli_usage("--%s - is not possible: standard output has the results (--json for "
                             "programs); give the name of a file",
                             outputs[i]);
        if (data && same_file(path, data))
            return cli_usage("--%s would write over the data, %.200s; give it another name",
                             outputs[i], path);
        if (args->operand[0] && same_file(path, args->operand[0]))
            return cli_usage("--%s would write over the encoder that is read, %.200s; give it "
                             "another name",
                             outputs[i], path);
        for (int j = 0; j < i; j++)
            if (cli_get(args, outputs[j]) && same_file(path, cli_get(args, outputs[j])))
                return cli_usage("--%s and --%s name the same file, %.200s; give them two",
                                 outputs[j], outputs[i], path);
    }
    return CLI_OK;
}

/* ---- options that would change nothing --------------------------------------------------------- */

/* The first of `names` (up to a NULL) that is on the command line, or NULL. */
static const char *first_given(cli_args *args, const char *const names[])
{
    for (int i = 0; names[i]; i++)
        if (cli_given(args, names[i]))
            return names[i];
    return NULL;
}

static int refuse(const char *name, const char *why)
{
    char option[ENCODER_OPTION];
    return cli_usage("%s would change nothing here: %s", cli_dashed(name, option), why);
}

int encoder_check_learn(cli_args *args)
{
    static const char *const adamw[] = {"batch", "accumulate", "rate",  "warmup", "final_rate",
                                        "beta1", "beta2",      "decay", "clip",   NULL};
    const char *odd =
        encoder_get(args)->learn.optimizer == FIN_OPTIMIZER_LBFGS ? first_given(args, adamw) : NULL;
    return odd ? refuse(odd, "L-BFGS looks at all sequences and finds its own steps; it is for "
                             "--optimizer adamw")
               : CLI_OK;
}

static int check_corpus(cli_args *args)
{
    static const char *const of_families[] = {"L_least", "M", "label_noise", NULL};
    static const char *const of_masked[] = {"M", "share", "readout", NULL};
    static const char *const of_labels[] = {"label_noise", "keep", NULL};
    const char *odd, *data = cli_get(args, "data");
    if ((data || cli_task_kind(args)) && (odd = first_given(args, of_families)))
        return refuse(odd, "it is for families of tokens (--family)");
    if (data && cli_given(args, "L"))
        return refuse("L", "the sequences of a file have their own lengths");
    if (encoder_get(args)->corpus.objective == FIN_OBJECTIVE_SUPERVISED &&
        (odd = first_given(args, of_masked)))
        return refuse(odd, "nothing is hidden; it is for --objective masked");
    if (encoder_get(args)->corpus.objective == FIN_OBJECTIVE_MASKED &&
        (odd = first_given(args, of_labels)))
        return refuse(odd, "hidden tokens are learnt and no labels; it is for --objective "
                           "supervised");
    return CLI_OK;
}

int encoder_check_pretrain(cli_args *args)
{
    const fin_encoder_settings *e = &encoder_get(args)->encoder;
    CLI_TRY(check_corpus(args));
    CLI_TRY(encoder_check_learn(args));
    if (e->positions != FIN_POSITIONS_LEARNED && cli_given(args, "longest"))
        CLI_TRY(refuse("longest", "only learned positions end somewhere (--positions learned)"));
    if (e->hidden == 0 && cli_given(args, "activation"))
        CLI_TRY(refuse("activation", "with --hidden 0 there is no feed-forward part"));
    return CLI_OK;
}

fin_status encoder_check_data(const encoder_plan *plan, cli_args *args, fin_error *err)
{
    static const char *const words[] = {"bag", "label", "kind", "columns", "key_columns"};
    static const char *const fields[] = {"patch",     "rows",      "test_folds",
                                         "test_fold", "per_class", NULL};
    const cli_data_settings *s = &plan->data;
    const char *odd = first_given(args, fields);
    char option[ENCODER_OPTION];
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        odd = cli_get(args, words[i]) ? words[i] : odd;
    if (plan->from != ENCODER_DATA && odd)
        return cli_status(err, FIN_ERR_ARGUMENT, "%s goes with --data FILE",
                          cli_dashed(odd, option));
    if (s->patch == 0 && cli_given(args, "rows"))
        return cli_status(err, FIN_ERR_ARGUMENT,
                          "--rows is for images, and goes with --patch SIDE");
    if (s->patch > 0 && cli_get(args, "bag"))
        return cli_status(err, FIN_ERR_ARGUMENT,
                          "--bag is for bags; with --patch every row is an image (--columns says "
                          "which columns are pixels)");
    if (cli_given(args, "test_folds") && s->test_folds == 1)
        return cli_status(err, FIN_ERR_ARGUMENT,
                          "--test-folds 1 would hold everything out; it is 0 (nothing is held out) "
                          "or at least 2, and 5 is usual");
    if (cli_given(args, "test_fold") && s->test_folds == 0)
        return cli_status(err, FIN_ERR_ARGUMENT,
                          "--test-fold says which fold is held out, and --test-folds 0 that there "
                          "is none");
    return FIN_OK;
}
