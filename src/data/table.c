/* The table itself: one block of memory, columns found by name. */
#include "data/data.h"

#include <string.h>

static fin_table *layout(fini_arena *arena, int columns, int64_t capacity, int64_t letters)
{
    fin_table *table = fini_take(arena, 1, sizeof *table);
    char **names = fini_take(arena, columns, sizeof *names);
    char *text = fini_take(arena, letters, 1);
    int32_t *order = fini_take(arena, columns, sizeof *order);
    int32_t *spare = fini_take(arena, columns, sizeof *spare);
    int64_t count;
    if (__builtin_mul_overflow(capacity, (int64_t)columns, &count))
        count = -1; /* fini_take reports it */
    double *values = fini_take(arena, count, sizeof *values);
    if (!arena->base)
        return NULL;
    *table = (fin_table){.capacity = capacity,
                         .columns = columns,
                         .names = names,
                         .letters = text,
                         .order = order,
                         .spare = spare,
                         .values = values};
    return table;
}

fin_status fini_table_create(int columns, int64_t capacity, int64_t letters, fin_table **out,
                             fin_error *err)
{
    fini_arena arena = {0};
    *out = NULL;
    layout(&arena, columns, capacity, letters);
    fin_status status = fini_arena_open(&arena, "a table", err);
    if (status)
        return status;
    *out = layout(&arena, columns, capacity, letters);
    (*out)->arena = arena;
    return FIN_OK;
}

/* Merge sort of the column numbers by name: qsort may allocate behind our back, and a hash table
 * can be made slow by a file that is written for it. */
void fini_table_sort(fin_table *table)
{
    int n = table->columns;
    int32_t *from = table->order, *to = table->spare;
    for (int j = 0; j < n; j++)
        from[j] = j;
    for (int width = 1; width < n; width *= 2) {
        for (int low = 0; low < n; low += 2 * width) {
            int middle = low + width < n ? low + width : n;
            int high = low + 2 * width < n ? low + 2 * width : n;
            for (int a = low, b = middle, i = low; i < high; i++) {
                bool left = a < middle && (b == high || strcmp(table->names[from[a]],
                                                               table->names[from[b]]) <= 0);
                to[i] = left ? from[a++] : from[b++];
            }
        }
        int32_t *swap = from;
        from = to;
        to = swap;
    }
    table->order = from;
    table->spare = to;
}

void fin_table_destroy(fin_table *table)
{
    if (!table)
        return;
    fini_arena arena = table->arena;
    fini_arena_close(&arena);
}

int64_t fin_table_rows(const fin_table *table)
{
    return table->rows;
}

int fin_table_columns(const fin_table *table)
{
    return table->columns;
}

const char *fin_table_name(const fin_table *table, int j)
{
    return j >= 0 && j < table->columns ? table->names[j] : NULL;
}

const double *fin_table_values(const fin_table *table, int j)
{
    return j >= 0 && j < table->columns ? table->values + j * table->capacity : NULL;
}

int fin_table_column(const fin_table *table, const char *name)
{
    int low = 0, high = table->columns;
    while (low < high) {
        int middle = low + (high - low) / 2;
        int sign = strcmp(name, table->names[table->order[middle]]);
        if (sign == 0)
            return table->order[middle];
        if (sign < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return -1;
}
