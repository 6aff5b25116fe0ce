/* Fitting with several processes: errors and counts that all of them have to know.
 *
 * A process that gives up alone leaves the others waiting in the next sum. So after every step that
 * can fail on one of them (reading its share) all learn who failed and why. */
#include "bags/fit.h"

#include <stdlib.h>
#include <string.h>

/* Every process has one block, so that the sum is over processes. */
fin_status fit_add(double *numbers, int64_t n, fin_error *err)
{
    if (fin_ranks() == 1)
        return FIN_OK;
    double *sum = malloc((size_t)(n > 0 ? n : 1) * sizeof *sum);
    if (!sum) /* the others wait: a process that ends makes mpirun end them */
        abort();
    fin_status status = fin_ranks_sum(fin_ranks(), n, numbers, sum, err);
    memcpy(numbers, sum, (size_t)n * sizeof *sum);
    free(sum);
    return status;
}

fin_status fit_agree(fin_status status, fin_error *err)
{
    enum { TEXT = sizeof err->message };
    int ranks = fin_ranks(), first = 0;
    if (ranks == 1)
        return status;
    double *failed = calloc((size_t)ranks, sizeof *failed), text[TEXT + 1] = {0};
    if (!failed)
        abort();
    failed[fin_rank()] = status != FIN_OK;
    fit_add(failed, ranks, err);
    while (first < ranks && failed[first] == 0)
        first++;
    free(failed);
    if (first == ranks)
        return FIN_OK;
    if (first == fin_rank()) {
        text[TEXT] = (double)status;
        for (int i = 0; i < TEXT - 1; i++)
            text[i] = (unsigned char)err->message[i];
        for (int i = (int)strlen(err->message); i < TEXT; i++)
            text[i] = 0;
    }
    fin_error own;
    fit_add(text, TEXT + 1, &own);
    err->status = (fin_status)text[TEXT];
    for (int i = 0; i < TEXT; i++)
        err->message[i] = (char)(unsigned char)text[i];
    return err->status;
}
