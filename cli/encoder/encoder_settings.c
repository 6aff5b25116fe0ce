/* Settings of encoders as options. */
#include "encoder/encoder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIN_TABLE_STRUCT cli_data_settings
FIN_TABLE(, encoder_data_table, "data", ENCODER_DATA_FIELDS);

/* A copy of the table without one row. */
static const fin_settings *without(const fin_settings *from, const char *name, fin_field *fields,
                                   int room, fin_settings *table)
{
    *table = *from;
    table->count = 0;
    for (int i = 0; i < from->count && table->count < room; i++)
        if (strcmp(from->fields[i].name, name) != 0)
            fields[table->count++] = from->fields[i];
    table->fields = fields;
    return table;
}

const fin_settings *encoder_learn_table(void)
{
    static fin_field fields[48];
    static fin_settings table;
    return without(&fin_learn_table, "train", fields, 48, &table);
}

const fin_settings *encoder_probe_table(void)
{
    static fin_field fields[16];
    static fin_settings table;
    return without(&fin_probe_table, "layer", fields, 16, &table);
}

fin_status encoder_lengths_read(const char *text, int64_t lengths[ENCODER_LENGTHS], int *count,
                                fin_error *err)
{
    enum { LONGEST = 1 << 20 };
    *count = 0;
    for (const char *p = text;; p++) {
        char *end;
        errno = 0;
        long long value = strtoll(p, &end, 10);
        if (end == p || errno || value < 0 || value > LONGEST || (*end && *end != ',') ||
            *count == ENCODER_LENGTHS)
            return cli_status(err, FIN_ERR_ARGUMENT,
                              "--lengths '%.60s' is not a list of at most %d lengths from 0 to %d, "
                              "such as 4,8,16,32",
                              text, ENCODER_LENGTHS, LONGEST);
        lengths[(*count)++] = value;
        if (!*end)
            return FIN_OK;
        p = end;
    }
}
