/* Tables from CSV, of numbers and with texts. */
#include "fuzz.h"

typedef fin_status (*reader)(const char *text, size_t size, const char *label, fin_table **out,
                             fin_error *err);

static void try_reader(reader read, const uint8_t *data, size_t size)
{
    fin_table *table;
    fin_error err = {FIN_OK, ""};
    char *text = malloc(size ? size : 1); /* of the exact size, so that a read past it is seen */
    FUZZ_CHECK(text);
    memcpy(text, data, size);
    fin_status status = read(text, size, "t.csv", &table, &err);
    free(text);
    FUZZ_CHECK(status ? !table && err.message[0] : table != NULL);
    if (status)
        return;
    FUZZ_CHECK(fin_table_rows(table) >= 1 && fin_table_columns(table) >= 1);
    for (int j = 0; j < fin_table_columns(table); j++) {
        int64_t texts = fin_table_texts(table, j);
        FUZZ_CHECK(fin_table_column(table, fin_table_name(table, j)) == j);
        double last = fin_table_values(table, j)[fin_table_rows(table) - 1];
        FUZZ_CHECK(!texts || !(last < 1 || last > (double)texts));
        for (int64_t i = 0; i < texts; i++)
            FUZZ_CHECK(fin_table_find_text(table, j, fin_table_text(table, j, i)) == i);
    }
    fin_table_destroy(table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_reader(fin_table_parse, data, size);
    try_reader(fin_table_parse_texts, data, size);
    return 0;
}
