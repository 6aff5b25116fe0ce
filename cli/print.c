/* Results on standard output, as text and as JSON. */
#include "cli.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

int cli_flush(void)
{
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout))
        return cli_failed("cannot write to standard output: %s",
                          errno ? strerror(errno) : "unknown error");
    return CLI_OK;
}

int cli_print_json(json_t *root)
{
    if (!root)
        return cli_failed("not enough memory for the JSON text");
    errno = 0;
    int bad = json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    json_decref(root);
    if (bad)
        return cli_failed("cannot write to standard output: %s",
                          errno ? strerror(errno) : "unknown error");
    putchar('\n');
    return cli_flush();
}

json_t *cli_json_number(double number)
{
    if (isfinite(number))
        return json_real(number);
    return json_string(isnan(number) ? "nan" : number > 0 ? "inf" : "-inf");
}

json_t *cli_json_estimate(const fin_estimate *estimate)
{
    return json_pack("{s:o, s:o, s:s, s:I, s:b}", "value", cli_json_number(estimate->value),
                     "error", cli_json_number(estimate->error), "method",
                     fin_method_name(estimate->method), "samples", (json_int_t)estimate->samples,
                     "rare", estimate->rare);
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

char *cli_how(const fin_estimate *estimate, char *buffer, size_t size)
{
    const char *name = fin_method_name(estimate->method);
    switch (estimate->method) {
    case FIN_METHOD_AUTO:
    case FIN_METHOD_CLOSED:
        snprintf(buffer, size, "%s", name);
        break;
    case FIN_METHOD_QUADRATURE:
        snprintf(buffer, size, "%s, error %.1g", name, estimate->error);
        break;
    case FIN_METHOD_SIMULATION:
        snprintf(buffer, size, "%s, %lld samples, s.e. %.2g%s", name, (long long)estimate->samples,
                 estimate->error, estimate->rare ? " (rare events: too small)" : "");
        break;
    }
    return buffer;
}

void cli_print_settings(const fin_settings *table, const void *values)
{
    char text[64];
    for (int i = 0; i < table->count; i++)
        printf("%s%s=%s", i ? " " : "", table->fields[i].name,
               fin_settings_text(&table->fields[i], values, text, sizeof text));
    putchar('\n');
}
