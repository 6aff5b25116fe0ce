/* Tables from CSV. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fin_table *table;
    fin_error err = {FIN_OK, ""};
    char *text = malloc(size ? size : 1); /* of the exact size, so that a read past it is seen */
    FUZZ_CHECK(text);
    memcpy(text, data, size);
    fin_status status = fin_table_parse(text, size, "t.csv", &table, &err);
    free(text);
    FUZZ_CHECK(status ? !table && err.message[0] : table != NULL);
    if (status)
        return 0;
    FUZZ_CHECK(fin_table_rows(table) >= 1 && fin_table_columns(table) >= 1);
    for (int j = 0; j < fin_table_columns(table); j++) {
        FUZZ_CHECK(fin_table_column(table, fin_table_name(table, j)) == j);
        volatile double last = fin_table_values(table, j)[fin_table_rows(table) - 1];
        (void)last;
    }
    fin_table_destroy(table);
    return 0;
}
