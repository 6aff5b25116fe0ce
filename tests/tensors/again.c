/* again IN OUT: reads a file of tensors, prints what is in it, and writes it again. For the tests that
 * compare with Python. */
#include <finetti.h>

#include <stdio.h>

int main(int argc, char **argv)
{
    enum { MOST = 32 };
    fin_error err;
    fin_tensor_file *file;
    fin_tensor tensors[MOST];
    if (argc != 3)
        return 2;
    if (fin_tensors_open(argv[1], &file, &err)) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    int64_t count = fin_tensors_count(file);
    for (int64_t i = 0; i < count && i < MOST; i++) {
        tensors[i] = *fin_tensors_at(file, i);
        printf("%s %d %d", tensors[i].name, (int)tensors[i].dtype, tensors[i].ndim);
        for (int j = 0; j < tensors[i].ndim; j++)
            printf(" %lld", (long long)tensors[i].shape[j]);
        printf("\n");
    }
    const char *text = fin_tensors_entry(file, "text");
    const fin_entry metadata[] = {{"text", text ? text : ""}};
    fin_status status = fin_tensors_write(argv[2], metadata, 1, tensors, count, &err);
    if (status)
        fprintf(stderr, "%s\n", err.message);
    fin_tensors_close(file);
    return status ? 1 : 0;
}
