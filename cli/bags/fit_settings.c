/* Settings of a fit as options, and names of models as people write them. */
#include "bags/fit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- names ---------------------------------------------------------------------------------- */

static bool chooses(const fin_fit_settings *settings)
{
    return fin_fit_model_get(settings)->chooses;
}

const char *fit_basis_name(const fin_fit_settings *settings, int64_t classes)
{
    static const char *const names[] = {"auto", "linear", "rbf", "both"};
    return names[chooses(settings) ? settings->basis : fin_fit_basis(settings, classes)];
}

/* What the model is seen through is always said, unless it is its columns and nobody would think
 * otherwise. */
static const char *ending(const fin_fit_settings *settings, int64_t classes)
{
    fin_fit_settings usual = *settings;
    usual.basis = FIN_BASIS_AUTO;
    if (fin_fit_model_get(settings)->constant ||
        (chooses(settings) && settings->basis == FIN_BASIS_AUTO))
        return "";
    switch (fin_fit_basis(settings, classes)) {
    case FIN_BASIS_BOTH:
        return "+rbf";
    case FIN_BASIS_RBF:
        return ":rbf";
    default:
        return chooses(settings) || fin_fit_basis(&usual, classes) != FIN_BASIS_LINEAR ? ":linear"
                                                                                       : "";
    }
}

char *fit_name(const fin_fit_settings *settings, int64_t classes, char *buffer, size_t size)
{
    char model[32], heads[24] = "";
    const fin_field *field = fin_settings_find(&fin_fit_table, "model");
    fin_settings_text(field, settings, model, sizeof model);
    if (settings->heads > 1 && fin_fit_model_get(settings)->heads)
        snprintf(heads, sizeof heads, " x%lld", (long long)settings->heads);
    snprintf(buffer, size, "%s%s%s", model, ending(settings, classes), heads);
    return buffer;
}

char *fit_title(const fin_fit_settings *settings, int64_t classes, char *buffer, size_t size)
{
    const char *title = fin_fit_model_get(settings)->title;
    fit_name(settings, classes, buffer, size);
    if (title)
        snprintf(buffer, size, "%s", title);
    return buffer;
}

/* The models there are: "auto", "softmax", ... Returns how many. */
static int model_names(char *text, size_t size, const char **names, int room)
{
    int count = 0;
    snprintf(text, size, "%s", fin_settings_find(&fin_fit_table, "model")->names);
    for (char *word = text; word && count < room; count++) {
        char *bar = strchr(word, '|');
        if (bar)
            *bar++ = '\0';
        names[count] = word;
        word = bar;
    }
    return count;
}

static fin_status no_model(const char *option, const char *word, const char *const *names,
                           int count, fin_error *err)
{
    const char *near = fin_nearest_name(word, names, count);
    return cli_status(
        err, FIN_ERR_ARGUMENT,
        "%s: there is no model '%.40s'%s models are %s, with +rbf for RBF features "
        "beside the columns, :rbf for RBF features alone or :linear for columns alone",
        option, word, cli_hint(near, ";"), fin_settings_find(&fin_fit_table, "model")->names);
}

/* A name in its parts. */
typedef struct parts {
    char word[64];
    int model, basis; /* -1: no such model; the name says nothing of it */
    int64_t heads;    /* 0: the name says nothing */
} parts;

/* "+rbf", ":rbf x4", " x2" or nothing. */
static bool read_ending(const char *end, parts *p)
{
    static const struct {
        const char *text;
        int basis;
    } bases[] = {{"+rbf", FIN_BASIS_BOTH}, {":rbf", FIN_BASIS_RBF}, {":linear", FIN_BASIS_LINEAR}};
    for (int i = 0; i < 3 && p->basis < 0; i++)
        if (strncmp(end, bases[i].text, strlen(bases[i].text)) == 0) {
            p->basis = bases[i].basis;
            end += strlen(bases[i].text);
        }
    if (end[0] == ' ' && end[1] == 'x' && end[2] >= '1' && end[2] <= '9') {
        char *rest;
        p->heads = strtoll(end + 2, &rest, 10);
        end = rest;
    }
    return !*end;
}

static fin_status read_parts(const char *option, const char *name, parts *p, fin_error *err)
{
    char text[256];
    const char *names[32];
    int count = model_names(text, sizeof text, names, 32);
    size_t length = strcspn(name, "+: ");
    *p = (parts){.model = -1, .basis = -1};
    snprintf(p->word, sizeof p->word, "%.*s", length < sizeof p->word ? (int)length : 63, name);
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], p->word) == 0)
            p->model = i;
    if (p->model < 0)
        return no_model(option, p->word, names, count, err);
    if (!read_ending(name + length, p))
        return cli_status(err, FIN_ERR_ARGUMENT,
                          "%s: '%.60s' is no model; write %s, %s+rbf, %s:rbf or %s:linear", option,
                          name, p->word, p->word, p->word, p->word);
    return FIN_OK;
}

static fin_status check_heads(const char *option, const fin_fit_settings *settings, fin_error *err)
{
    char word[32];
    if (settings->heads <= 1 || fin_fit_model_get(settings)->heads)
        return FIN_OK;
    fin_settings_text(fin_settings_find(&fin_fit_table, "model"), settings, word, sizeof word);
    return cli_status(
        err, FIN_ERR_ARGUMENT,
        "%s: %s has no heads, so %lld of them mean nothing; softmax, erf and linear have", option,
        word, (long long)settings->heads);
}

fin_status fit_name_read(const char *name, fin_fit_settings *settings, fin_error *err)
{
    parts p;
    CLI_TRY(read_parts("--compare", name, &p, err));
    settings->model = p.model;
    settings->basis = p.basis < 0 ? FIN_BASIS_AUTO : p.basis;
    settings->heads = p.heads ? p.heads : 1;
    CLI_TRY(fin_settings_validate(&fin_fit_table, settings, err));
    return check_heads("--compare", settings, err);
}

/* ---- --model -------------------------------------------------------------------------------- */

fin_status fit_model_settle(cli_args *args, fin_error *err)
{
    const char *text = cli_get(args, "model");
    fin_fit_settings *settings = &((fit_asked *)(void *)args->values)->fit;
    parts p;
    CLI_TRY(text ? read_parts("--model", text, &p, err) : FIN_OK);
    if (text && p.basis >= 0 && cli_given(args, "basis") && settings->basis != p.basis)
        return cli_status(err, FIN_ERR_ARGUMENT,
                          "--model %.60s and --basis contradict each other; give one of them",
                          text);
    if (text && p.heads && cli_given(args, "heads") && settings->heads != p.heads)
        return cli_status(err, FIN_ERR_ARGUMENT,
                          "--model %.60s and --heads contradict each other; give one of them",
                          text);
    if (text)
        settings->model = p.model;
    if (text && p.basis >= 0)
        settings->basis = p.basis;
    if (text && p.heads)
        settings->heads = p.heads;
    CLI_TRY(fin_settings_validate(&fin_fit_table, settings, err));
    return check_heads("--heads", settings, err);
}

/* Basis, heads and positive class count where they mean something. */
bool fit_same(const fin_fit_settings *a, const fin_fit_settings *b, int64_t classes)
{
    fin_fit_settings two[2] = {*a, *b};
    for (int k = 0; k < 2; k++) {
        fin_fit_settings *s = &two[k];
        s->basis = chooses(s) ? s->basis : fin_fit_basis(s, classes);
        s->heads = fin_fit_model_get(s)->heads ? s->heads : 1;
        if (!fin_fit_model_get(s)->sides && !chooses(s))
            s->positive = FIN_AUTO_INT;
    }
    for (int i = 0; i < fin_fit_table.count; i++) {
        const fin_field *field = &fin_fit_table.fields[i];
        if (fin_settings_get(field, &two[0]) != fin_settings_get(field, &two[1]))
            return false;
    }
    return true;
}

/* ---- other options -------------------------------------------------------------------------- */

fin_status fit_positive_read(const char *name, const fin_bag_set *set, int64_t *positive,
                             fin_error *err)
{
    int64_t classes = fin_bag_set_classes(set);
    if (classes != 2)
        return cli_status(err, FIN_ERR_ARGUMENT,
                          "--positive '%.40s' names one of two classes, and %s", name,
                          classes ? "there are more" : "the labels are numbers");
    const char *names[2] = {fin_bag_set_class(set, 0), fin_bag_set_class(set, 1)};
    for (int c = 0; c < 2; c++)
        if (strcmp(names[c], name) == 0) {
            *positive = c;
            return FIN_OK;
        }
    const char *near = fin_nearest_name(name, names, 2);
    return cli_status(err, FIN_ERR_ARGUMENT,
                      "--positive: there is no class '%.40s'%s the classes are '%.40s' and "
                      "'%.40s'",
                      name, cli_hint(near, ";"), names[0], names[1]);
}

/* Names that say by themselves which class is the positive one: the second. */
fin_status fit_positive_guess(const fin_bag_set *set, int64_t *positive, fin_error *err)
{
    static const char *const pairs[][2] = {{"0", "1"},           {"-1", "1"},
                                           {"no", "yes"},        {"false", "true"},
                                           {"neg", "pos"},       {"negative", "positive"},
                                           {"absent", "present"}};
    const char *names[2] = {fin_bag_set_class(set, 0), fin_bag_set_class(set, 1)};
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++)
        if (strcasecmp(names[0], pairs[k][0]) == 0 && strcasecmp(names[1], pairs[k][1]) == 0) {
            *positive = 1;
            return FIN_OK;
        }
    return cli_status(err, FIN_ERR_ARGUMENT,
                      "--assume monotone: one more token can only raise the positive class; which "
                      "is it, '%.40s' or '%.40s'? --positive '%.40s' says so",
                      names[0], names[1], names[1]);
}

fin_status fit_kind_check(const char *kind, fin_error *err)
{
    static const char *const kinds[] = {"auto", "regression", "classes"};
    for (int i = 0; i < 3; i++)
        if (strcmp(kind, kinds[i]) == 0)
            return FIN_OK;
    const char *near = fin_nearest_name(kind, kinds, 3);
    return cli_status(err, FIN_ERR_ARGUMENT,
                      "--kind '%.40s'%s allowed are auto, regression (labels are numbers) and "
                      "classes",
                      kind, cli_hint(near, ":"));
}

/* A sign by itself or by its name. */
static fin_status read_sign(const char *option, const char *word, const char *signs,
                            const char *const *names, char *sign, fin_error *err)
{
    for (int i = 0; signs[i] && word; i++)
        if ((word[0] == signs[i] && !word[1]) || strcmp(word, names[i]) == 0) {
            *sign = signs[i];
            return FIN_OK;
        }
    return word ? cli_status(err, FIN_ERR_ARGUMENT,
                             "--%s '%.20s' is none of %s, %s%s%s%s%s; without it, it is detected",
                             option, word, names[0], names[1], names[2] ? ", " : "",
                             names[2] ? names[2] : "", names[2] ? ", " : "",
                             names[2] ? names[3] : "")
                : FIN_OK;
}

fin_status fit_file_read(const cli_args *args, fin_bags_source *source, fin_error *err)
{
    static const char *const seps[] = {"comma", "semicolon", "tab", "bar"};
    static const char *const decimals[] = {"point", "comma", NULL};
    source->table = cli_get(args, "labels");
    CLI_TRY(read_sign("sep", cli_get(args, "sep"), ",;\t|", seps, &source->sep, err));
    return read_sign("decimal", cli_get(args, "decimal"), ".,", decimals, &source->decimal, err);
}
