/* The tokenizer of a folder: tokenizer.json (WordPiece or unigram), or vocab.txt with what
 * tokenizer_config.json says. What it asks for beyond what is known here is refused by name. */
#include "text/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { VOCABULARY_MOST = 1 << 22, PIECE_MOST = 1 << 10 };

static fin_status no_tokenizer(const char *folder, const char *file, const char *why,
                               fin_error *err)
{
    return fini_fail(err, FIN_ERR_UNSUPPORTED,
                     "%s of '%.200s': %s; WordPiece as BERT has it, and unigram, are read", file,
                     folder, why);
}

/* ---- pieces ------------------------------------------------------------------------------------- */

static fin_status add(fini_tokenizer *t, const char *piece, size_t size, fin_error *err)
{
    if (t->vocabulary.count == VOCABULARY_MOST || size > PIECE_MOST)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "a vocabulary of more than %d pieces, or a piece of more than %d bytes",
                         VOCABULARY_MOST, PIECE_MOST);
    if ((int64_t)size > t->longest)
        t->longest = (int64_t)size;
    return fini_names_add(&t->vocabulary, piece, size, err);
}

static int32_t find(const fini_tokenizer *t, const char *piece)
{
    return (int32_t)fini_names_find(&t->vocabulary, piece, strlen(piece));
}

/* Pieces around a text and for what is none. */
static fin_status find_special(fini_tokenizer *t, const char *folder, const char *unknown,
                               fin_error *err)
{
    FINI_TRY(fini_names_index(&t->vocabulary, err));
    t->unknown = find(t, unknown);
    t->cls = find(t, "[CLS]");
    t->sep = find(t, "[SEP]");
    if (t->unknown < 0 || t->cls < 0 || t->sep < 0)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "the vocabulary of '%.200s' has no %s: it is none of BERT's", folder,
                         t->unknown < 0 ? FINI_SHOW(unknown)
                         : t->cls < 0   ? "[CLS]"
                                        : "[SEP]");
    return FIN_OK;
}

/* ---- vocab.txt ---------------------------------------------------------------------------------- */

static fin_status read_lines(fini_tokenizer *t, const char *folder, fin_error *err)
{
    char path[FINI_FOLDER_PATH], *text;
    size_t size;
    fin_status status =
        fini_read_text(fini_folder_path(folder, "vocab.txt", path), &text, &size, err);
    if (status)
        return status;
    for (const char *p = text, *end = text + size; p < end && !status;) {
        const char *stop = memchr(p, '\n', (size_t)(end - p)), *last = stop ? stop : end;
        while (last > p && last[-1] == '\r')
            last--;
        status = add(t, p, (size_t)(last - p), err);
        p = stop ? stop + 1 : end;
    }
    fini_free(text);
    return status;
}

/* A vocabulary of lower-case pieces is of lower-case text; those in brackets do not count. */
static bool has_capitals(const fini_tokenizer *t)
{
    for (int64_t i = 0; i < t->vocabulary.count; i++) {
        const char *piece = fini_names_get(&t->vocabulary, i);
        for (; *piece && *piece != '['; piece++)
            if (*piece >= 'A' && *piece <= 'Z')
                return true;
    }
    return false;
}

/* A switch of the configuration; null and absent are `usual`. */
static bool is_on(const json_t *config, const char *name, bool usual)
{
    const json_t *value = json_object_get(config, name);
    return json_is_boolean(value) ? json_is_true(value) : usual;
}

static fin_status read_config(fini_tokenizer *t, const char *folder, fin_error *err)
{
    json_t *config;
    fin_status status = fini_folder_json(folder, "tokenizer_config.json", &config, err);
    if (status)
        return status;
    t->clean = true;
    t->lower = is_on(config, "do_lower_case", !has_capitals(t));
    t->strip = is_on(config, "strip_accents", t->lower);
    t->cjk = is_on(config, "tokenize_chinese_chars", true);
    if (!is_on(config, "do_basic_tokenize", true))
        status = no_tokenizer(folder, "tokenizer_config.json", "do_basic_tokenize is false", err);
    json_decref(config);
    return status;
}

/* ---- tokenizer.json ------------------------------------------------------------------------------ */

static const char *type_of(const json_t *part)
{
    const char *type = json_string_value(json_object_get(part, "type"));
    return type ? type : json_is_null(part) || !part ? "null" : "?";
}

/* {"piece": number, ...}: in the order of the numbers, which are 0, 1, ... */
static fin_status read_vocabulary(fini_tokenizer *t, const char *folder, const json_t *vocabulary,
                                  fin_error *err)
{
    int64_t count = (int64_t)json_object_size(vocabulary);
    const char **piece = fini_alloc_array(count, sizeof *piece), *text;
    json_t *number;
    fin_status status = piece ? FIN_OK : fini_fail_memory(err, (size_t)count * 8, "a vocabulary");
    for (int64_t i = 0; i < count && piece; i++)
        piece[i] = NULL;
    json_object_foreach((json_t *)vocabulary, text, number)
    {
        json_int_t i = json_is_integer(number) ? json_integer_value(number) : -1;
        if (!status && (i < 0 || i >= count || piece[i]))
            status = fini_fail(err, FIN_ERR_FORMAT,
                               "tokenizer.json of '%.200s': piece '%s' has no number of its own "
                               "from 0 to %lld",
                               folder, FINI_SHOW(text), (long long)count - 1);
        else if (!status)
            piece[i] = text;
    }
    for (int64_t i = 0; i < count && !status; i++)
        status = add(t, piece[i], strlen(piece[i]), err);
    fini_free(piece);
    return status;
}

static fin_status read_wordpiece(fini_tokenizer *t, const char *folder, const json_t *root,
                                 fin_error *err)
{
    const json_t *model = json_object_get(root, "model");
    const json_t *normalizer = json_object_get(root, "normalizer"),
                 *words = json_object_get(root, "pre_tokenizer"),
                 *most = json_object_get(model, "max_input_chars_per_word");
    const char *inside = json_string_value(json_object_get(model, "continuing_subword_prefix"));
    const char *unknown = json_string_value(json_object_get(model, "unk_token"));
    if (strcmp(type_of(normalizer), "BertNormalizer") != 0)
        return no_tokenizer(folder, "tokenizer.json", "its normalizer is not BertNormalizer", err);
    if (strcmp(type_of(words), "BertPreTokenizer") != 0)
        return no_tokenizer(folder, "tokenizer.json", "its pre_tokenizer is not BertPreTokenizer",
                            err);
    if (inside && strlen(inside) >= sizeof t->inside)
        return no_tokenizer(folder, "tokenizer.json", "continuing_subword_prefix is too long", err);
    if (inside)
        strcpy(t->inside, inside);
    if (json_is_integer(most))
        t->word_most = json_integer_value(most);
    if (t->word_most < 1 || t->word_most > FINI_WORD_MOST)
        return no_tokenizer(folder, "tokenizer.json",
                            "max_input_chars_per_word is not from 1 to 1000", err);
    t->clean = is_on(normalizer, "clean_text", true);
    t->cjk = is_on(normalizer, "handle_chinese_chars", true);
    t->lower = is_on(normalizer, "lowercase", true);
    t->strip = is_on(normalizer, "strip_accents", t->lower);
    FINI_TRY(read_vocabulary(t, folder, json_object_get(model, "vocab"), err));
    return find_special(t, folder, unknown ? unknown : "[UNK]", err);
}

/* Pieces that the tokenizer added are never found in a text. */
static void hide_added(fini_tokenizer *t, const json_t *added)
{
    for (size_t i = 0; i < json_array_size(added); i++) {
        const json_t *id = json_object_get(json_array_get(added, i), "id");
        json_int_t number = json_is_integer(id) ? json_integer_value(id) : -1;
        if (number >= 0 && number < t->vocabulary.count)
            t->score[number] = -INFINITY;
    }
}

/* [["piece", score], ...] */
static fin_status read_scores(fini_tokenizer *t, const char *folder, const json_t *vocabulary,
                              fin_error *err)
{
    int64_t count = (int64_t)json_array_size(vocabulary);
    FINI_ROOM(err, "scores of pieces", t->score, count, 1);
    for (int64_t i = 0; i < count; i++) {
        const json_t *pair = json_array_get(vocabulary, (size_t)i), *text = json_array_get(pair, 0);
        double score = json_number_value(json_array_get(pair, 1));
        if (!json_is_string(text) || !json_is_number(json_array_get(pair, 1)) ||
            !(fabs(score) <= 1e6))
            return fini_fail(err, FIN_ERR_FORMAT,
                             "tokenizer.json of '%.200s': piece %lld is no text with a score from "
                             "-1e6 to 1e6",
                             folder, (long long)i);
        t->score[i] = (float)score;
        if (t->score[i] < t->worst)
            t->worst = t->score[i];
        FINI_TRY(add(t, json_string_value(text), json_string_length(text), err));
    }
    return FIN_OK;
}

static fin_status read_unigram(fini_tokenizer *t, const char *folder, const json_t *root,
                               fin_error *err)
{
    const json_t *model = json_object_get(root, "model");
    const json_t *unknown = json_object_get(model, "unk_id");
    FINI_TRY(read_scores(t, folder, json_object_get(model, "vocab"), err));
    json_int_t id = json_is_integer(unknown) ? json_integer_value(unknown) : -1;
    if (id < 0 || id >= t->vocabulary.count)
        return no_tokenizer(folder, "tokenizer.json", "unk_id is no piece", err);
    t->unigram = true;
    t->unknown = (int32_t)id;
    t->cls = t->sep = -1;
    hide_added(t, json_object_get(root, "added_tokens"));
    return fini_names_index(&t->vocabulary, err);
}

static fin_status read_json(fini_tokenizer *t, const char *folder, const json_t *root,
                            fin_error *err)
{
    char why[128];
    const char *type = type_of(json_object_get(root, "model"));
    if (strcmp(type, "WordPiece") == 0)
        return read_wordpiece(t, folder, root, err);
    if (strcmp(type, "Unigram") == 0)
        return read_unigram(t, folder, root, err);
    snprintf(why, sizeof why, "its model is '%s'", FINI_SHOW(type));
    return no_tokenizer(folder, "tokenizer.json", why, err);
}

/* ---- either -------------------------------------------------------------------------------------- */

fin_status fini_tokenizer_read(fini_tokenizer *t, const char *folder, fin_error *err)
{
    json_t *root;
    *t = (fini_tokenizer){.inside = "##", .word_most = 100};
    fin_status status = fini_folder_json(folder, "tokenizer.json", &root, err);
    if (!status && root)
        status = read_json(t, folder, root, err);
    else if (!status && !fini_folder_has(folder, "vocab.txt"))
        status =
            fini_fail(err, FIN_ERR_IO, "'%.200s' has neither tokenizer.json nor vocab.txt", folder);
    else if (!status) {
        status = read_lines(t, folder, err);
        if (!status)
            status = find_special(t, folder, "[UNK]", err);
        if (!status)
            status = read_config(t, folder, err);
    }
    json_decref(root);
    if (status)
        fini_tokenizer_close(t);
    return status;
}

void fini_tokenizer_close(fini_tokenizer *t)
{
    fini_names_close(&t->vocabulary);
    fini_free(t->score);
    t->score = NULL;
}
