/* Results on standard output, as text and as JSON. */
#include "cli.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

void cli_free_at(void *place)
{
    void *block;
    memcpy(&block, place, sizeof block);
    free(block);
}

bool cli_output_closed(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&out, 1, 0) == 1 && (out.revents & POLLERR);
}

int cli_flush(void)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return CLI_OK;
    if (cli_output_closed())
        return CLI_SIGNAL + SIGPIPE;
    return cli_failed("cannot write to standard output: %s",
                      errno ? strerror(errno) : "unknown error");
}

/* Jansson leaves out what it has no memory for, here and there without a word: remembered, so that
 * no text with holes is printed. */
static bool json_starved;

static void *json_take(size_t size)
{
    void *memory = malloc(size);
    json_starved = json_starved || (!memory && size);
    return memory;
}

void cli_json_begin(void)
{
    json_set_alloc_funcs(json_take, free);
}

bool cli_json_starved(const json_t *record)
{
    return json_starved || !record;
}

int cli_print_json(json_t *root)
{
    if (cli_json_starved(root)) {
        json_decref(root);
        return cli_failed("not enough memory for the JSON text");
    }
    errno = 0;
    int bad = json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    json_decref(root);
    if (bad && cli_output_closed())
        return CLI_SIGNAL + SIGPIPE;
    if (bad)
        return cli_failed(errno ? "cannot write to standard output: %s"
                                : "a name is no UTF-8, which JSON cannot have%s",
                          errno ? strerror(errno) : "");
    putchar('\n');
    return cli_flush();
}

json_t *cli_json_number(double number)
{
    if (isfinite(number))
        return json_real(number);
    return json_string(isnan(number) ? "nan" : number > 0 ? "inf" : "-inf");
}

json_t *cli_json_text(const char *text)
{
    return text ? json_string_nocheck(text) : NULL;
}

json_t *cli_json_texts(const char *const *texts, int64_t count)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < count; i++)
        json_array_append_new(list, cli_json_text(texts[i]));
    return list;
}

void cli_put(json_t *object, ...)
{
    va_list list;
    const char *name;
    va_start(list, object);
    while ((name = va_arg(list, const char *))) {
        double number = va_arg(list, double);
        if (isfinite(number))
            json_object_set_new(object, name, json_real(number));
    }
    va_end(list);
}

json_t *cli_json_settings(const fin_settings *table, const void *values)
{
    json_t *object = json_object();
    for (int i = 0; i < table->count; i++) {
        const fin_field *field = &table->fields[i];
        double number = fin_settings_get(field, values);
        char text[64];
        json_t *value;
        if (field->type == FIN_TYPE_choice || fin_is_auto(number))
            value = json_string(fin_settings_text(field, values, text, sizeof text));
        else if (field->type == FIN_TYPE_int64_t)
            value = json_integer((json_int_t)number);
        else
            value = cli_json_number(number);
        json_object_set_new(object, field->name, value);
    }
    return object;
}

char *cli_number(double number, char *buffer, size_t size)
{
    fin_field plain = {.type = FIN_TYPE_double};
    return fin_settings_text(&plain, &number, buffer, size);
}

enum { MARGIN = 17, WIDTH = 100 };

void cli_print_settings(const fin_settings *table, const void *values)
{
    int column = MARGIN;
    for (int i = 0; i < table->count; i++) {
        char text[64], part[128];
        int length = snprintf(part, sizeof part, "%s=%s", table->fields[i].name,
                              fin_settings_text(&table->fields[i], values, text, sizeof text));
        if (column > MARGIN && column + 1 + length > WIDTH) {
            printf("\n%*s", MARGIN, "");
            column = MARGIN;
        }
        column += printf("%s%s", column > MARGIN ? " " : "", part);
    }
    putchar('\n');
}

void cli_print_model(const fin_task *task, const char *lengths, const fin_form *form,
                     const fin_form_settings *settings)
{
    const fin_task_kind *kind = fin_task_get_kind(task);
    printf("task  %-10s ", fin_task_kind_name(kind));
    cli_print_settings(fin_task_kind_table(kind), fin_task_get_settings(task));
    if (*lengths)
        printf("%*slengths %s: mean %g, variance %g\n", MARGIN, "", lengths,
               fin_task_length_mean(task), fin_task_length_variance(task));
    printf("form  %-10s ", fin_form_name(form));
    cli_print_settings(fin_form_table(form), settings);
}

int cli_print_asked_model(const cli_args *args)
{
    fin_task *task = NULL;
    fin_error err;
    if (cli_task_create(args, 1, 0, &task, &err))
        return cli_error(&err);
    cli_print_model(task, cli_word_text(args, "lengths"), cli_form(args),
                    cli_values(args, fin_form_table(cli_form(args))));
    fin_task_destroy(task);
    return CLI_OK;
}

/* ---- files ---------------------------------------------------------------------------------- */

bool cli_ends_with(const char *path, const char *end)
{
    size_t length = strlen(path), tail = strlen(end);
    return length > tail && strcasecmp(path + length - tail, end) == 0;
}

fin_status cli_try_outputs(const cli_args *args, const char *const *names, fin_error *err)
{
    fin_status status = FIN_OK;
    for (; *names && !status && fin_rank() == 0; names++)
        if (cli_get(args, *names))
            status = cli_try_output(cli_get(args, *names), err);
    return status;
}

fin_status cli_try_output(const char *path, fin_error *err)
{
    static const char *const names[] = {"x"};
    fin_csv *csv;
    struct stat info;
    if (strcmp(path, "-") == 0)
        return FIN_OK;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
        return FIN_OK; /* whoever reads a pipe would take the trial for the end */
    CLI_TRY(fin_csv_open(path, names, 1, &csv, err));
    fin_csv_abort(csv);
    return FIN_OK;
}
