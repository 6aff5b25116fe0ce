/* finetti embed: texts to bags of tokens, one a piece, through a pretrained encoder. */
#include "encoder/encoder.h"
#include "text/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int run(cli_args *args);

static const cli_word words[] = {
    {"text", "COLUMN", "the column with the texts; default: text"},
    {"layer", "N|all",
     "states after so many layers, from 0 (the embedding); all = all of them side by side; "
     "default: "
     "the last"},
    {"longest", "N",
     "pieces of a text, with those around it; default: as many as the encoder takes"},
    {"out", "FILE", "FILE.npz: bags for finetti fit"},
    {"json", NULL, "print JSON"},
    {NULL, NULL, NULL},
};

const cli_command cli_embed = {
    .name = "embed",
    .summary = "texts as bags of tokens: the states of a pretrained encoder, piece by piece",
    .about =
        "Reads an encoder as people have it (BERT, MiniLM, DistilBERT: a folder with config.json,\n"
        "model.safetensors and vocab.txt or tokenizer.json) and texts from a CSV file. Writes\n"
        "a bag for every text. A piece is a token: its state, what it is of the text (piece), and\n"
        "where (place, and characters begin to end). Other columns of the CSV file go along, such\n"
        "as labels. docs/encoder.md is a guide.",
    .examples = "  finetti embed minilm/ texts.csv --text sentence --out tokens.npz\n"
                "  finetti embed minilm/ texts.csv --layer 0 --out words.npz\n"
                "  finetti fit words.npz --label mood --out model.fin\n",
    .computes = true,
    .operands = {.name = "ENCODER TEXTS",
                 .meaning = "the folder of an encoder, and a CSV file",
                 .least = 2,
                 .most = 2},
    .words = words,
    .run = run,
};

enum { LAYERS = 257, PIECE = 200 }; /* bytes of a piece that are written */

typedef struct embedding {
    cli_args *args;
    const char *out;
    fin_text_encoder *encoder;
    text_file file;
    fin_text_pieces *pieces;
    int64_t n, tokens, layers, layer, longest; /* layer -1: all */
    int64_t width, from[LAYERS];               /* columns of a token; where a layer's begin */
    float *states;                             /* (tokens, width) */
    int64_t *place, *begin, *end;              /* (tokens); in characters */
    char *letters;                             /* of all pieces, each with its NUL */
    const char **piece;                        /* (tokens) */
} embedding;

/* ---- options -------------------------------------------------------------------------------- */

static bool read_number(const char *text, int64_t most, int64_t *value)
{
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    *value = number;
    return end != text && !*end && !errno && number >= 0 && number <= most;
}

static int check_options(embedding *e)
{
    const char *layer = cli_get(e->args, "layer"), *longest = cli_get(e->args, "longest");
    int64_t most = fin_text_encoder_shape(e->encoder)->longest;
    e->layer = e->layers;
    if (layer && strcmp(layer, "all") == 0)
        e->layer = -1;
    else if (layer && !read_number(layer, e->layers, &e->layer))
        return cli_usage("--layer '%.40s' is neither all nor a number from 0 to %lld", layer,
                         (long long)e->layers);
    if (longest && !read_number(longest, most, &e->longest))
        return cli_usage("--longest '%.40s' is no number from 0 (all) to %lld", longest,
                         (long long)most);
    return CLI_OK;
}

/* ---- states ----------------------------------------------------------------------------------- */

static fin_status run_encoder(embedding *e, fin_error *err)
{
    float *states[LAYERS] = {NULL};
    double bytes = 0;
    for (int64_t l = 0; l <= e->layers; l++)
        if (e->layer < 0 || l == e->layer) {
            e->from[l] = e->width;
            e->width += fin_text_encoder_width(e->encoder, l);
        }
    bytes = 4.0 * (double)e->tokens * (double)e->width * (e->layer < 0 ? 2 : 1);
    float *block = bytes < 1e18 ? malloc((size_t)bytes + 4) : NULL;
    if (!block)
        return cli_status_memory(err, bytes, "the states (fewer texts at once help)");
    float *next = block;
    e->states = e->layer < 0 ? block + e->tokens * e->width : block;
    for (int64_t l = 0; l <= e->layers; l++)
        if (e->layer < 0 || l == e->layer) {
            states[l] = next;
            next += e->tokens * fin_text_encoder_width(e->encoder, l);
        }
    fin_text_pass pass = {.states = states};
    CLI_TRY(fin_text_encoder_run(e->encoder, e->pieces, &pass, cli_progress(), err));
    for (int64_t l = 0; l <= e->layers && e->layer < 0; l++) {
        int64_t w = fin_text_encoder_width(e->encoder, l);
        for (int64_t t = 0; t < e->tokens; t++)
            memcpy(e->states + t * e->width + e->from[l], states[l] + t * w,
                   (size_t)w * sizeof *block);
    }
    return FIN_OK;
}

/* ---- pieces ------------------------------------------------------------------------------------- */

/* What piece t of text i is called: what it is of the text; one around a text as in the vocabulary. */
static const char *piece_of(const embedding *e, int64_t i, int64_t t, size_t *size)
{
    int64_t begin = fin_text_pieces_begin(e->pieces)[t], end = fin_text_pieces_end(e->pieces)[t];
    const char *from = e->file.texts[i] + begin;
    *size = (size_t)(end - begin);
    if (begin == end) {
        from = fin_text_encoder_piece(e->encoder, fin_text_pieces_ids(e->pieces)[t]);
        *size = strlen(from);
    }
    return from;
}

/* Without what a line or a terminal would trip over. An endless word is cut, with an ellipsis: an array of
 * texts is as wide as the longest. */
static char *write_piece(const embedding *e, int64_t i, int64_t t, char *to)
{
    static const char ellipsis[] = "\xe2\x80\xa6";
    size_t size, kept;
    const char *from = piece_of(e, i, t, &size);
    for (kept = size < PIECE ? size : PIECE; kept && kept < size && (from[kept] & 0xc0) == 0x80;)
        kept--; /* not within a character */
    for (size_t k = 0; k < kept; k++)
        *to++ = (unsigned char)from[k] < ' ' || from[k] == 0x7f ? ' ' : from[k];
    for (const char *more = kept < size ? ellipsis : ""; *more; more++)
        *to++ = *more;
    *to++ = '\0';
    return to;
}

/* Characters of a text before byte `at`, from the byte and number where it was left. */
static int64_t characters(const char *text, int64_t at, int64_t *byte, int64_t *number)
{
    for (; *byte < at; ++*byte)
        *number += (text[*byte] & 0xc0) != 0x80;
    return *number;
}

static fin_status list_pieces(embedding *e, fin_error *err)
{
    const int64_t *offsets = fin_text_pieces_offsets(e->pieces);
    const int64_t *begin = fin_text_pieces_begin(e->pieces), *end = fin_text_pieces_end(e->pieces);
    size_t size = 0, one;
    for (int64_t i = 0; i < e->n; i++)
        for (int64_t t = offsets[i]; t < offsets[i + 1]; t++) {
            piece_of(e, i, t, &one);
            size += (one < PIECE ? one : PIECE) + sizeof "...";
        }
    e->letters = malloc(size + 1);
    e->piece = malloc((size_t)e->tokens * sizeof *e->piece + 8);
    e->place = malloc((size_t)e->tokens * 3 * sizeof *e->place + 8);
    if (!e->letters || !e->piece || !e->place)
        return cli_status_memory(err, (double)size + 32.0 * (double)e->tokens, "the pieces");
    e->begin = e->place + e->tokens;
    e->end = e->begin + e->tokens;
    char *to = e->letters;
    for (int64_t i = 0; i < e->n; i++) {
        int64_t byte = 0, number = 0;
        for (int64_t t = offsets[i]; t < offsets[i + 1]; t++) {
            e->place[t] = t - offsets[i];
            e->begin[t] = characters(e->file.texts[i], begin[t], &byte, &number);
            e->end[t] = characters(e->file.texts[i], end[t], &byte, &number);
            e->piece[t] = to;
            to = write_piece(e, i, t, to);
        }
    }
    return FIN_OK;
}

static const char *piece_text(const void *user, int64_t t)
{
    return ((const embedding *)user)->piece[t];
}

/* ---- the file -------------------------------------------------------------------------------------- */

typedef struct names {
    const fin_table *table;
    int column;
} names;

static const char *label_text(const void *user, int64_t i)
{
    const names *n = user;
    double value = fin_table_values(n->table, n->column)[i];
    return isnan(value) ? "" : fin_table_text(n->table, n->column, (int64_t)value - 1);
}

/* The other columns, as they are. */
static fin_status add_labels(embedding *e, cli_npz *z, names *columns, fin_error *err)
{
    static const char *const ours[] = {"tokens", "offsets", "piece", "place", "begin", "end"};
    const fin_table *table = e->file.table;
    for (int j = 0; j < fin_table_columns(table); j++) {
        const char *name = fin_table_name(table, j);
        if (j == e->file.column)
            continue;
        for (size_t k = 0; k < sizeof ours / sizeof *ours; k++)
            if (strcmp(name, ours[k]) == 0)
                return cli_status(err, FIN_ERR_ARGUMENT,
                                  "the column '%s' has the name of an array that embed writes; "
                                  "give it another one",
                                  name);
        columns[j] = (names){table, j};
        if (fin_table_texts(table, j) == 0)
            cli_npz_add(z, name, FIN_F64, 1, &e->n, fin_table_values(table, j));
        else if (!z->status)
            z->status = fin_npz_add_texts(z->npz, name, e->n, label_text, &columns[j], z->err);
    }
    return z->status;
}

static fin_status write_file(embedding *e, fin_error *err)
{
    cli_npz z;
    CLI_FREED names *columns = malloc((size_t)fin_table_columns(e->file.table) * sizeof *columns);
    if (!columns)
        return cli_status_memory(err, 1e3, "names");
    CLI_TRY(cli_npz_open(&z, e->out, err));
    cli_npz_add(&z, "tokens", FIN_F32, 2, (int64_t[]){e->tokens, e->width}, e->states);
    cli_npz_add(&z, "offsets", FIN_I64, 1, (int64_t[]){e->n + 1},
                fin_text_pieces_offsets(e->pieces));
    if (!z.status)
        z.status = fin_npz_add_texts(z.npz, "piece", e->tokens, piece_text, e, err);
    cli_npz_add(&z, "place", FIN_I64, 1, &e->tokens, e->place);
    cli_npz_add(&z, "begin", FIN_I64, 1, &e->tokens, e->begin);
    cli_npz_add(&z, "end", FIN_I64, 1, &e->tokens, e->end);
    if (!z.status)
        z.status = add_labels(e, &z, columns, err);
    CLI_TRY(cli_npz_close(&z));
    return FIN_OK;
}

/* ---- all of it ---------------------------------------------------------------------------------- */

static const char form[] = TEXT_FORM("shape") "texts       {texts}: {n}, {tokens} pieces\n"
                                              "[{?layer>-1}layer       {layer}|layers      all]: "
                                              "{width} numbers of a token\n"
                                              "written to  {out}\n";

static int report(const embedding *e)
{
    json_t *record =
        json_pack("{s:o, s:o, s:o, s:I, s:I, s:I, s:o}", "encoder",
                  cli_json_text(e->args->operand[0]), "shape", text_shape(e->encoder), "texts",
                  cli_json_text(e->args->operand[1]), "n", cli_int(e->n), "tokens",
                  cli_int(e->tokens), "width", cli_int(e->width), "out", cli_json_text(e->out));
    if (record && e->layer >= 0)
        json_object_set_new(record, "layer", json_integer(cli_int(e->layer)));
    return cli_show(e->args, record, form);
}

static fin_status embed(embedding *e, fin_error *err)
{
    const char *column = cli_get(e->args, "text");
    CLI_TRY(text_file_open(&e->file, e->args->operand[1], column ? column : "text", err));
    CLI_TRY(text_file_cut(&e->file, e->encoder, e->longest, &e->pieces, err));
    e->n = e->file.n;
    e->tokens = fin_text_pieces_offsets(e->pieces)[e->n];
    CLI_TRY(run_encoder(e, err));
    CLI_TRY(list_pieces(e, err));
    return write_file(e, err);
}

static int run(cli_args *args)
{
    static embedding e;
    static const char *const outputs[] = {"out", NULL};
    fin_error err = {FIN_OK, ""};
    memset(&e, 0, sizeof e);
    e.args = args;
    e.out = cli_get(args, "out");
    if (!e.out || !cli_ends_with(e.out, ".npz"))
        return cli_usage("--out FILE.npz is needed");
    int code = encoder_check_files(args, outputs);
    if (code)
        return code;
    fin_status status = fin_text_encoder_open(&e.encoder, args->operand[0], &err);
    if (!status) {
        e.layers = fin_text_encoder_shape(e.encoder)->layers;
        code = check_options(&e);
    }
    if (!status && !code)
        status = cli_try_outputs(args, outputs, &err);
    if (!status && !code)
        status = embed(&e, &err);
    cli_progress_end();
    if (status)
        code = cli_error(&err);
    if (!code)
        code = report(&e);
    free(e.layer < 0 && e.states ? e.states - e.tokens * e.width : e.states);
    free(e.letters);
    free(e.piece);
    free(e.place);
    fin_text_pieces_destroy(e.pieces);
    text_file_close(&e.file);
    fin_text_encoder_destroy(e.encoder);
    return code;
}
