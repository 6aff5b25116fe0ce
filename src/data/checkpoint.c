/* Encoders from files and to files. A file may be hostile: its settings, heads and sizes are checked
 * before memory is taken for what they promise.
 *
 *     metadata   finetti = "encoder", version, written_by,
 *                setting.<field> of the encoder, inputs, values,
 *                head.<i> = "<name> <kind> <where> <size> <weight>",
 *                learn.<field> if learning is kept, entry.<key> what the caller gave
 *     tensors    those of the encoder by their own names (as torch would load them),
 *                scale.center, scale.scale, and those of the learning, learn.<name>
 *
 * A setting that a file does not have keeps its default, so that settings can be added without a new
 * version; one that this version does not know is refused, because the encoder would be another. */
#include "data/tensors.h"
#include "finetti/data_encoder.h"
#include "encoder/learn.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEARN "learn."
#define ENTRY "entry."

enum { KINDS = 3, PLACES = 2 };
static const char *const kinds[KINDS] = {"value", "gaussian",
                                         "classes"}; /* by FIN_HEAD_VALUE ... */
static const char *const places[PLACES] = {"tokens", "pooled"};

struct fin_checkpoint {
    fin_tensor_file *file;
    char path[208]; /* for messages */
    fin_encoder_settings settings;
    fin_encoder_shape shape;
    bool learns;
    fin_learn_settings learn;
    bool scaled;
    fin_token_scale scale; /* with memory of its own */
};

/* ---- shape ------------------------------------------------------------------------------------ */

enum { LARGEST = 1 << 20 }; /* columns of a token, numbers of an answer */

static fin_status bad_shape(const fin_checkpoint *c, const char *key, const char *value,
                            fin_error *err)
{
    value = value ? value : "";
    return fini_fail(err, FIN_ERR_FORMAT,
                     "the encoder '%s' cannot be read: its entry '%s' is '%s', not what finetti "
                     "writes there",
                     c->path, key, FINI_SHOW(value));
}

static bool read_whole(const char *text, int64_t lowest, int64_t *number)
{
    char *end;
    if (!text || *text < '0' || *text > '9')
        return false;
    long long value = strtoll(text, &end, 10); /* saturates, and is then too large */
    *number = value;
    return (*end == '\0' || *end == ' ') && value >= lowest && value <= LARGEST;
}

/* The next word of the text, without the space behind it; false: there is none, or it is too long. */
static bool take_word(const char **text, char *word, size_t room)
{
    size_t length = strcspn(*text, " ");
    if (length == 0 || length >= room)
        return false;
    memcpy(word, *text, length);
    word[length] = '\0';
    *text += length + ((*text)[length] == ' ');
    return true;
}

static int find_word(const char *word, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(word, names[i]) == 0)
            return i;
    return -1;
}

static bool read_head(const char *text, fin_head *head)
{
    char word[40], *end;
    *head = (fin_head){0};
    if (!take_word(&text, head->name, sizeof head->name) || !take_word(&text, word, sizeof word) ||
        (head->kind = find_word(word, kinds, KINDS)) < 0 || !take_word(&text, word, sizeof word) ||
        (head->where = find_word(word, places, PLACES)) < 0 ||
        !take_word(&text, word, sizeof word) || !read_whole(word, 1, &head->size) ||
        !take_word(&text, word, sizeof word) || *text)
        return false;
    head->weight = fini_strtod(word, &end);
    return *end == '\0' && isfinite(head->weight) && head->weight >= 0;
}

static fin_status read_shape(fin_checkpoint *c, fin_error *err)
{
    fin_encoder_shape *shape = &c->shape;
    const char *inputs = fin_tensors_entry(c->file, "inputs"),
               *values = fin_tensors_entry(c->file, "values");
    if (!read_whole(inputs, 1, &shape->inputs))
        return bad_shape(c, "inputs", inputs, err);
    if (!read_whole(values, 0, &shape->values) || shape->values > shape->inputs)
        return bad_shape(c, "values", values, err);
    char key[] = "head.0";
    for (int i = 0; i < FIN_HEADS_MOST; i++) {
        key[sizeof key - 2] = (char)('0' + i);
        const char *text = fin_tensors_entry(c->file, key);
        if (!text && i > 0)
            return FIN_OK;
        if (!text || !read_head(text, &shape->head[i]))
            return bad_shape(c, key, text, err);
        shape->heads = i + 1;
    }
    return FIN_OK;
}

/* ---- tensors ---------------------------------------------------------------------------------- */

/* Is the tensor one of the encoder's? */
static bool of_encoder(const fin_tensor *tensor)
{
    return !fini_begins(tensor->name, LEARN) && !fini_begins(tensor->name, "scale.");
}

/* Memory for an encoder is taken only if the file has about as many numbers: its matrices are
 *     width inputs + layers (4 width^2 + 2 width hidden). */
static fin_status check_size(const fin_checkpoint *c, fin_error *err)
{
    const fin_encoder_settings *s = &c->settings;
    double width = (double)s->width, need, have = 0;
    double hidden = fin_is_auto((double)s->hidden) ? 4 * width : (double)s->hidden;
    need = width * (double)c->shape.inputs +
           (double)s->layers * (4 * width * width + 2 * width * hidden);
    for (int64_t i = 0; i < c->shape.heads; i++)
        need += width * (double)fin_head_answers(&c->shape.head[i]);
    if (s->positions == FIN_POSITIONS_LEARNED && !fin_is_auto((double)s->longest))
        need += width * (double)s->longest;
    for (int64_t i = 0; i < fin_tensors_count(c->file); i++) {
        const fin_tensor *tensor = fin_tensors_at(c->file, i);
        double count = of_encoder(tensor);
        for (int k = 0; k < tensor->ndim; k++)
            count *= (double)tensor->shape[k];
        have += count;
    }
    if (have >= need)
        return FIN_OK;
    return fini_fail(err, FIN_ERR_FORMAT,
                     "the encoder '%s' says that it has width %lld and %lld layers, which take at "
                     "least %.0f numbers, and the file has %.0f: it is of another shape",
                     c->path, (long long)s->width, (long long)s->layers, need, have);
}

#define SCALE(name_, member)                                                                       \
    .name = "scale." name_, .dtype = FIN_F64, .at = offsetof(fin_token_scale, member),             \
    .flags = FINI_STATE_OWNED, .rows = FINI_SIZE(fin_token_scale, columns)

static const fini_state_field scale_fields[] = {
    {SCALE("center", center)},
    {SCALE("scale", scale), .low = DBL_TRUE_MIN, .high = DBL_MAX},
};
static const fini_state scale_state = {"encoder", "tokens of other columns", scale_fields, 2};

static fin_status read_scale(fin_checkpoint *c, fin_error *err)
{
    const fini_state_source from = {"", c->file->tensors, c->file->count};
    fin_error why = {FIN_OK, ""};
    c->scale.columns = c->shape.inputs;
    c->scaled = fini_state_find(&from, "scale.center") || fini_state_find(&from, "scale.scale");
    fin_status status = c->scaled ? fini_state_load(&scale_state, &c->scale, &from, &why) : FIN_OK;
    return status ? fini_fail(err, status, "cannot read the encoder '%s': %.280s", c->path,
                              why.message)
                  : FIN_OK;
}

/* ---- the file --------------------------------------------------------------------------------- */

fin_status fin_checkpoint_read(const char *path, fin_checkpoint **out, fin_error *err)
{
    FINI_NEED_TO_MAKE(err, out, path);
    fin_checkpoint *c = *out = fini_alloc(sizeof *c);
    if (!c)
        return fini_fail_memory(err, sizeof *c, "a checkpoint");
    memset(c, 0, sizeof *c);
    fini_printable(path, strlen(path), c->path, sizeof c->path);
    fin_status status = fini_tensors_open(path, "encoder", FIN_CHECKPOINT_VERSION, &c->file, err);
    if (status)
        c->file = NULL;
    if (!status)
        status = fini_tensors_settings(c->file, "encoder", "setting.", &fin_encoder_table,
                                       &c->settings, NULL, err);
    if (!status)
        status = fini_tensors_settings(c->file, "encoder", LEARN, &fin_learn_table, &c->learn,
                                       &c->learns, err);
    if (!status)
        status = read_shape(c, err);
    if (!status)
        status = check_size(c, err);
    if (!status)
        status = read_scale(c, err);
    if (status) {
        fin_checkpoint_close(c);
        *out = NULL;
    }
    return status;
}

void fin_checkpoint_close(fin_checkpoint *c)
{
    if (!c)
        return;
    fin_tensors_close(c->file);
    fini_free_all(c->scale.center, c->scale.scale, c);
}

fin_status fin_checkpoint_encoder(const fin_checkpoint *c, fin_encoder **encoder, fin_error *err)
{
    FINI_NEED_TO_MAKE(err, encoder, c);
    int64_t count = 0;
    fin_error why = {FIN_OK, ""};
    FINI_NEW(err, "a checkpoint", fin_tensor, own, c->file->count, 1);
    for (int64_t i = 0; i < c->file->count; i++)
        if (of_encoder(&c->file->tensors[i]))
            own[count++] = c->file->tensors[i];
    fin_status status = fin_encoder_create(encoder, &c->settings, &c->shape, 0, &why);
    if (!status)
        status = fin_encoder_load(*encoder, own, count, 0, NULL, &why);
    fini_free(own);
    if (!status)
        return FIN_OK;
    fin_encoder_destroy(*encoder);
    *encoder = NULL;
    return fini_fail(err, status, "cannot read the encoder '%s': %.280s", c->path, why.message);
}

fin_status fin_checkpoint_restore(const fin_checkpoint *c, fin_learn *learn, fin_error *err)
{
    FINI_NEED(err, c, learn);
    fin_error why = {FIN_OK, ""};
    if (!c->learns)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "'%s' has an encoder, but not the state of its learning, so that learning "
                         "cannot go on from it; a checkpoint has both",
                         c->path);
    fin_status status = fini_learn_restore(learn, c->file->tensors, c->file->count, &why);
    return status ? fini_fail(err, status, "cannot go on from '%s': %.280s", c->path, why.message)
                  : FIN_OK;
}

/* ---- what is in it ---------------------------------------------------------------------------- */

const fin_encoder_settings *fin_checkpoint_settings(const fin_checkpoint *c)
{
    return c ? &c->settings : NULL;
}

const fin_encoder_shape *fin_checkpoint_shape(const fin_checkpoint *c)
{
    return c ? &c->shape : NULL;
}

const fin_token_scale *fin_checkpoint_scale(const fin_checkpoint *c)
{
    return c && c->scaled ? &c->scale : NULL;
}

const fin_learn_settings *fin_checkpoint_learn(const fin_checkpoint *c)
{
    return c && c->learns ? &c->learn : NULL;
}

const char *fin_checkpoint_entry(const fin_checkpoint *c, const char *key)
{
    if (!c || !key)
        return NULL;
    const fin_entry *entry;
    int64_t count = fini_tensors_entries(c->file, &entry);
    for (int64_t i = 0; i < count; i++)
        if (fini_begins(entry[i].key, ENTRY) && strcmp(entry[i].key + strlen(ENTRY), key) == 0)
            return entry[i].value;
    return NULL;
}

/* ---- writing ---------------------------------------------------------------------------------- */

static void add_shape(fini_metadata *m, const fin_encoder_shape *shape)
{
    char text[128], weight[64], number[24];
    fini_metadata_number(m, "inputs", shape->inputs);
    fini_metadata_number(m, "values", shape->values);
    for (int64_t i = 0; i < shape->heads; i++) {
        const fin_head *head = &shape->head[i];
        fini_print_double(head->weight, 17, weight, sizeof weight);
        snprintf(text, sizeof text, "%s %s %s %lld %s", head->name, kinds[head->kind],
                 places[head->where], (long long)head->size, weight);
        snprintf(number, sizeof number, "%lld", (long long)i);
        fini_metadata_add(m, "head.", number, text);
    }
}

static fin_status gather_tensors(const fin_encoder *encoder, const fin_learn *learn,
                                 const fin_token_scale *scale, fin_tensor **out, int64_t *count,
                                 fin_error *err)
{
    int64_t own = fin_encoder_tensors(encoder, NULL, 0);
    int64_t state = learn ? fini_learn_tensors(learn, NULL, 0) : 0, room = own + state + 2;
    fin_tensor *tensors = *out = fini_alloc_array(room, sizeof *tensors);
    if (!tensors)
        return fini_fail_memory(err, (size_t)room * sizeof *tensors, "a checkpoint");
    fin_encoder_tensors(encoder, tensors, own);
    if (learn) /* their names begin with "learn." */
        fini_learn_tensors(learn, tensors + own, state);
    fini_tensor_list l = {tensors, own + state, room};
    if (scale)
        fini_state_save(&scale_state, scale, "", &l);
    *count = l.count;
    return FIN_OK;
}

/* The same encoder and entries give the same bytes. The file is written whole under a temporary name
 * and renamed, so that a full disk or a power cut leaves the last good checkpoint. */
fin_status fin_checkpoint_write(const char *path, const fin_encoder *encoder,
                                const fin_learn *learn, const fin_token_scale *scale,
                                const fin_entry *entries, int64_t count, fin_error *err)
{
    FINI_NEED(err, path, encoder, !count || entries);
    FINI_FREED fin_tensor *tensors = NULL;
    int64_t tensor_count = 0;
    fini_metadata m;
    fini_metadata_open(&m, "encoder", FIN_CHECKPOINT_VERSION, err);
    fini_metadata_settings(&m, "setting.", &fin_encoder_table, fin_encoder_get_settings(encoder));
    add_shape(&m, fin_encoder_get_shape(encoder));
    if (learn)
        fini_metadata_settings(&m, LEARN, &fin_learn_table, fin_learn_get_settings(learn));
    for (int64_t i = 0; i < count; i++)
        fini_metadata_add(&m, ENTRY, entries[i].key, entries[i].value);
    if (!m.status)
        m.status = gather_tensors(encoder, learn, scale, &tensors, &tensor_count, err);
    return fini_metadata_write(&m, path, tensors, tensor_count);
}
