/* finetti probe: what can be read, linearly, from the representations of an encoder; and looking at
 * them: attention, representations in a file, reconstructions of images. */
#include "encoder/encoder.h"
#include "text/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int run_command(cli_args *args);

static const cli_word words[] = {
    {"data", "FILE",
     "bags or images with labels; default: what the encoder was trained on, as its file says"},
    ENCODER_DATA_WORDS,
    {"layer", "N|all|joint",
     "representation after so many layers, from 0 (the tokens' map) to all, the normed end; all = "
     "a table; joint = all of them side by side; default: the end"},
    {"text", "COLUMN", "an encoder of text: the column of --data with the texts"},
    {"token", "first|last|mean|N",
     "an encoder of text: which piece is read (N from 0), or the mean of all; default: first"},
    {"test_data", "FILE", "an encoder of text: judge by these texts, not by a fold of --data"},
    {"seed", "N", "which sequences --per-class takes; default: that of the encoder"},
    {"maps", "FILE", "CSV: attention weights of one head of layer --layer (default: the last)"},
    {"head", "N", "for --maps: which head, from 0; default 0"},
    {"sequence", "N", "for --maps: which of the test sequences, from 0; default 0"},
    {"states", "FILE",
     "NPZ: representations of --test sequences: states of tokens, pooled of sequences, offsets"},
    {"reconstruct", "FILE",
     "ten images with hidden patches beside their reconstruction: FILE.svg, or FILE.csv"},
    {"json", NULL, "print JSON"},
    {NULL, NULL, NULL},
};

static fin_status groups(void *values, fin_group list[FIN_GROUPS], int *count, fin_error *err)
{
    encoder_asked *s = values;
    (void)err;
    list[(*count)++] = (fin_group){encoder_probe_table(), &s->probe};
    list[(*count)++] = (fin_group){&encoder_data_table, &s->data};
    return FIN_OK;
}

static const fin_command options = {
    .name = "probe",
    .size = sizeof(encoder_asked),
    .words = cli_no_words,
    .groups = groups,
};

const cli_command cli_probe = {
    .name = "probe",
    .summary = "what an encoder's representations tell: linear probes, attention, pictures",
    .about =
        "Fits a linear map (ridge regression, or logistic for classes) from the representation\n"
        "of a sequence to its label, or to the numbers of the posterior (--target posterior, for\n"
        "families). Says how well it reads sequences that it was not fitted\n"
        "to: those of the fold held out, or fresh ones. Of a pretrained encoder of text (a folder\n"
        "with config.json): from the representation of one piece. docs/encoder.md is a guide.",
    .examples =
        "  finetti probe enc.fin --layer all\n"
        "  finetti probe enc.fin --target mean\n"
        "  finetti probe enc.fin --data digits.csv --label digit --per-class 10 --layer all\n"
        "  finetti probe minilm/ --data texts.csv --text sentence --label mood --layer all\n"
        "  finetti probe enc.fin --reconstruct images.svg --maps map.csv --states states.npz\n",
    .settings = &options,
    .computes = true,
    .operands = {.name = "ENC",
                 .meaning = "an encoder's file, or the folder of one of text",
                 .least = 1,
                 .most = 1},
    .words = words,
    .run = run_command,
};

enum { LAYERS = 257 }; /* what the encoder's table allows, and the tokens' map */

typedef struct probing {
    cli_args *args;
    fin_checkpoint *file;
    fin_encoder *encoder;
    encoder_plan plan; /* of the target: labels, or as it was learnt */
    encoder_data data;
    int64_t layers, layer; /* layer -1: all of them, -2: side by side */
    fin_probe_settings settings;
    int count;
    int64_t at[LAYERS];
    fin_probe_score score[LAYERS];
    int64_t head, sequence; /* of the map */
} probing;

/* ---- options -------------------------------------------------------------------------------- */

/* A whole number from 0 to most; false, after the message, if it is something else. */
static bool read_number(const cli_args *args, const char *name, int64_t most, int64_t *value)
{
    const char *text = cli_get(args, name);
    char *end;
    if (!text)
        return true;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    *value = number;
    if (end != text && !*end && !errno && number >= 0 && number <= most)
        return true;
    cli_usage("--%s '%.40s' is not a whole number from 0 to %lld", name, text, (long long)most);
    return false;
}

static const char *const outputs[] = {"maps", "states", "reconstruct", NULL};

static int check_options(probing *p)
{
    const cli_args *args = p->args;
    const char *layer = cli_get(args, "layer"), *picture = cli_get(args, "reconstruct");
    const char *maps = cli_get(args, "maps");
    CLI_TRY(encoder_check_files(args, outputs));
    p->layer = p->layers;
    if (layer && strcmp(layer, "all") == 0)
        p->layer = -1;
    else if (layer && strcmp(layer, "joint") == 0)
        p->layer = -2;
    else if (layer && (strspn(layer, "0123456789") != strlen(layer) || strlen(layer) > 4 ||
                       (p->layer = atoi(layer)) > p->layers))
        return cli_usage("--layer '%.40s' is no number from 0 to %lld (the end), and neither all "
                         "nor joint",
                         layer, (long long)p->layers);
    if (!read_number(args, "seed", INT64_C(1) << 53, &p->plan.seed))
        return CLI_USAGE;
    if (maps && (cli_ends_with(maps, ".npz") || cli_ends_with(maps, ".svg")))
        return cli_usage("--maps '%.200s': the format is CSV; end it in .csv", maps);
    if (picture && !cli_ends_with(picture, ".svg") && !cli_ends_with(picture, ".csv"))
        return cli_usage("--reconstruct '%.200s' tells no format; end it in .svg or .csv", picture);
    if (cli_get(args, "states") && !cli_ends_with(cli_get(args, "states"), ".npz"))
        return cli_usage("--states '%.200s': the format is NPZ; end it in .npz",
                         cli_get(args, "states"));
    if ((cli_get(args, "head") || cli_get(args, "sequence")) && !cli_get(args, "maps"))
        return cli_usage("--%s goes with --maps FILE", cli_get(args, "head") ? "head" : "sequence");
    if (!read_number(args, "head", fin_encoder_get_settings(p->encoder)->heads - 1, &p->head) ||
        !read_number(args, "sequence", INT64_C(1) << 30, &p->sequence))
        return CLI_USAGE;
    if (cli_get(args, "maps") && (p->layers == 0 || p->layer == 0))
        return cli_usage("--maps: attention is that of layers 1 to %lld; layer 0 is the tokens' "
                         "own map",
                         (long long)p->layers);
    return CLI_OK;
}

/* ---- what is read ----------------------------------------------------------------------------- */

/* The label of data; the posterior of families, if nothing else is asked for; y of tasks. */
static void choose_target(probing *p)
{
    p->settings = encoder_get(p->args)->probe;
    if (!cli_given(p->args, "target"))
        p->settings.target = p->plan.from == ENCODER_FAMILY ? FIN_PROBE_POSTERIOR : FIN_PROBE_LABEL;
    if (p->settings.target == FIN_PROBE_LABEL)
        p->plan.corpus.objective = FIN_OBJECTIVE_SUPERVISED;
    p->plan.corpus.samples = 0;
}

static fin_status open_all(probing *p, fin_error *err)
{
    const char *path = p->args->operand[0];
    CLI_TRY(fin_checkpoint_read(path, &p->file, err));
    CLI_TRY(encoder_plan_read(&p->plan, p->file, path, err));
    CLI_TRY(fin_checkpoint_encoder(p->file, &p->encoder, err));
    return encoder_plan_data(&p->plan, p->args, err);
}

static fin_status probe_layers(probing *p, fin_error *err)
{
    int64_t from = p->layer == -1 ? 0 : p->layer, to = p->layer == -1 ? p->layers : p->layer;
    for (int64_t layer = from; layer <= to; layer++) {
        p->settings.layer = layer;
        cli_progress_part((double)(layer - from) / (double)(to - from + 1),
                          1 / (double)(to - from + 1));
        p->at[p->count] = layer;
        CLI_TRY(fin_encoder_probe_on(p->encoder, p->data.corpus, p->data.judge, &p->settings,
                                     &p->score[p->count++], NULL, 0, cli_progress(), err));
    }
    return FIN_OK;
}

/* Images are shown as they were learnt: with hidden patches. */
static fin_status show_images(const probing *p, const char *path, fin_error *err)
{
    encoder_plan masked = p->plan;
    CLI_AT_END(encoder_data_close) encoder_data data = {0};
    masked.corpus.objective = FIN_OBJECTIVE_MASKED;
    masked.data.per_class = 0;
    CLI_TRY(encoder_data_open(&data, &masked, fin_checkpoint_scale(p->file), err));
    return encoder_reconstruct(path, p->encoder, &masked, &data, err);
}

/* A file has so many sequences; of families there are always more. */
static fin_status check_sequence(const probing *p, fin_error *err)
{
    const encoder_data *d = &p->data;
    int64_t there = d->all ? fin_token_set_memory(d->test ? d->test : d->train)->n : INT64_MAX;
    if (!cli_get(p->args, "maps") || p->sequence < there)
        return FIN_OK;
    return cli_status(err, FIN_ERR_ARGUMENT,
                      "--sequence %lld is not there: the test sequences of %.200s are 0 to %lld",
                      (long long)p->sequence, p->plan.path, (long long)there - 1);
}

static fin_status write_files(probing *p, fin_error *err)
{
    const cli_args *args = p->args;
    const char *maps = cli_get(args, "maps"), *states = cli_get(args, "states"),
               *images = cli_get(args, "reconstruct");
    int64_t layer = p->layer < 0 ? p->layers : p->layer;
    if (maps)
        CLI_TRY(encoder_write_maps(maps, p->encoder, &p->data, layer, p->head, p->sequence, err));
    if (states)
        CLI_TRY(encoder_write_states(states, p->encoder, &p->data, layer, p->settings.test, err));
    if (images)
        CLI_TRY(show_images(p, images, err));
    return FIN_OK;
}

/* ---- printing ------------------------------------------------------------------------------- */

static const char form[] = ENCODER_FORM("shape") ENCODER_PLAN_FORM
    "target      {target}, [{?layers.0.accuracy>-1}logistic|ridge] probe fitted to "
    "{layers.0.train} "
    "rows, judged on {layers.0.test}\n\n"
    "[{?layers.0.accuracy>-1} layer   accuracy         +-   log loss    penalty\n"
    "| layer         R2      least       most       rmse    penalty\n]"
    "{*layers|{name:6s} [{accuracy:10.4f} {~accuracy_se:10.4f} {~log_loss:10.4f}"
    "|{~r2:10.4f} {~r2_least:10.4f} {~r2_most:10.4f} {~rmse:10.4g}] {~penalty:10.2g}\n}";

static int report(const probing *p)
{
    char target[32], name[32];
    json_t *rows = json_array();
    for (int i = 0; i < p->count; i++) {
        const fin_probe_score *s = &p->score[i];
        snprintf(name, sizeof name, "%lld", (long long)p->at[i]);
        json_t *one = json_pack("{s:I, s:s, s:I, s:I, s:I}", "layer", cli_int(p->at[i]), "name",
                                p->at[i] == p->layers ? "end"
                                : p->at[i] < 0        ? "joint"
                                                      : name,
                                "train", cli_int(s->train), "test", cli_int(s->test), "columns",
                                cli_int(s->columns));
        cli_put(one, "r2", s->r2, "r2_least", s->r2_least, "r2_most", s->r2_most, "rmse", s->rmse,
                "accuracy", s->accuracy, "accuracy_se", s->accuracy_se, "log_loss", s->log_loss,
                "penalty", s->penalty, NULL);
        json_array_append_new(rows, one);
    }
    fin_settings_text(fin_settings_find(&fin_probe_table, "target"), &p->settings, target,
                      sizeof target);
    return cli_show(p->args,
                    json_pack("{s:o, s:s, s:o, s:o, s:o}", "encoder",
                              cli_json_text(p->args->operand[0]), "target", target, "data",
                              encoder_plan_of(&p->plan, &p->data), "shape", encoder_of(p->encoder),
                              "layers", rows),
                    form);
}

static int run_command(cli_args *args)
{
    if (text_is_folder(args->operand[0]))
        return text_probe(args);
    static probing p;
    static const char *const of_text[] = {"text", "token", "test_data"};
    for (size_t i = 0; i < sizeof of_text / sizeof *of_text; i++)
        if (cli_get(args, of_text[i]))
            return cli_usage("--%s is for the folder of an encoder of text, and %.200s is a file",
                             of_text[i], args->operand[0]);
    fin_error err = {FIN_OK, ""};
    memset(&p, 0, sizeof p);
    p.args = args;
    fin_status status = open_all(&p, &err);
    int code = CLI_OK;
    if (!status) {
        p.layers = fin_encoder_get_settings(p.encoder)->layers;
        code = check_options(&p);
        choose_target(&p);
    }
    if (!status && !code)
        status = encoder_data_open(&p.data, &p.plan, fin_checkpoint_scale(p.file), &err);
    if (!status && !code)
        status = check_sequence(&p, &err);
    if (!status && !code)
        status = cli_try_outputs(args, outputs, &err);
    if (!status && !code)
        status = probe_layers(&p, &err);
    if (!status && !code)
        status = write_files(&p, &err);
    cli_progress_end();
    if (status)
        code = cli_error(&err);
    if (!code) {
        encoder_data_notes(&p.data);
        code = report(&p);
    }
    fin_encoder_destroy(p.encoder);
    encoder_data_close(&p.data);
    fin_checkpoint_close(p.file);
    return code;
}
