/* ranks_left RANK: three sums over all ranks; then that rank gives up (-1: nobody does), and the others
 * go on to a fourth. Exit code 0 if everything was summed; else 1, and who notices says why. */
#include "join.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    enum { N = 20000 }; /* too many for MPI to send ahead */
    static double parts[N], sum[N];
    fin_error err = {FIN_OK, ""};
    if (argc != 2 || join_ranks(&err))
        return 2;
    fin_status status = FIN_OK;
    for (int round = 0; round < 4 && !status; round++) {
        if (round == 3 && fin_rank() == atoi(argv[1]))
            break;
        for (int i = 0; i < N; i++)
            parts[i] = 1;
        status = fin_ranks_sum(fin_ranks(), N, parts, sum, &err);
        if (!status && sum[N - 1] != fin_ranks())
            return 2;
    }
    if (status)
        fprintf(stderr, "noticed: %s\n", err.message);
    fin_ranks_end();
    return status ? 1 : 0;
}
