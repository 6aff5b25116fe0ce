/* Which token is responsible? Draws sequences and prints the exact posterior of the location beside the
 * truth. */
#include <finetti.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 4, L = 5, D = 20 };

int main(void)
{
    fin_error err;
    fin_task *task = NULL;
    fin_task_settings settings;
    fin_settings_defaults(fin_task_kind_table(fin_task_find("spiked")), &settings, sizeof settings);
    settings.d = D;
    settings.L = L;
    settings.snr = 9;

    static float tokens[N * L * D];
    int64_t offsets[N + 1], location[N];
    double y[N], w[N * L], guess[N];
    fin_batch batch = {N, D, FIN_F32, tokens, offsets};
    if (fin_task_create(&task, fin_task_find("spiked"), &settings, NULL, 1, FIN_TASK_AMBIENT,
                        &err) ||
        fin_task_offsets(task, 0, N, offsets, &err) ||
        fin_task_draw(task, 0, N, FIN_F32, offsets, tokens, y, location, &err) ||
        fin_task_posterior(task, &batch, w, &err) || fin_task_predict(task, &batch, guess, &err)) {
        fprintf(stderr, "%s\n", err.message);
        fin_task_destroy(task);
        return 1;
    }
    for (int i = 0; i < N; i++) {
        printf("sample %d: token %d is responsible; P =", i, (int)location[i]);
        for (int l = 0; l < L; l++)
            printf(" %.3f", w[i * L + l]);
        printf("; y = %+.3f, E[y|X] = %+.3f\n", y[i], guess[i]);
    }
    fin_task_destroy(task);
    return 0;
}
