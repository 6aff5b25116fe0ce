/* A context of (key, value) tokens, and queries that attend to it: the posterior mean of a function
 * that was never seen, its uncertainty, and which tokens were looked at. Then the context grows,
 * and the oldest tokens leave. */
#include <finetti.h>
#include <math.h>
#include <stdio.h>

enum { TOKENS = 40, QUERIES = 3 };

static int fail(const fin_error *err)
{
    printf("%s\n", err->message);
    return 1;
}

static int answer(const fin_cross *context, const char *when, fin_error *err)
{
    const double queries[QUERIES] = {-1, 0.5, 4};
    double mean[QUERIES], variance[QUERIES];
    if (fin_cross_predict(context, QUERIES, queries, mean, variance, NULL, NULL, err))
        return fail(err);
    printf("%s\n", when);
    for (int i = 0; i < QUERIES; i++)
        printf("  q = %4.1f   mean %7.4f   sd %6.4f   sin(q) = %7.4f\n", queries[i], mean[i],
               sqrt(variance[i]), sin(queries[i]));
    return 0;
}

int main(void)
{
    double keys[TOKENS], values[TOKENS], error[TOKENS], score[TOKENS];
    fin_random r;
    fin_error err;
    fin_cross *context = NULL;
    fin_cross_settings settings;

    fin_random_open(&r, 1, FIN_STREAM_USER, 0);
    for (int l = 0; l < TOKENS; l++) { /* noisy values of a sine between -3 and 3 */
        keys[l] = 6 * fin_random_uniform(&r) - 3;
        values[l] = sin(keys[l]) + 0.1 * fin_random_normal(&r);
    }
    fin_settings_defaults(&fin_cross_table, &settings, sizeof settings);
    settings.form = FIN_CROSS_CME; /* the posterior mean of a Gaussian process */
    settings.kernel = FIN_KERNEL_RBF;
    settings.noise = 0.01;

    if (fin_cross_create(&context, &settings, NULL, 1, 1, TOKENS, &err) ||
        fin_cross_load(context, 10, keys, values, NULL, &err))
        return fail(&err);
    int code = answer(context, "10 tokens", &err);
    if (fin_cross_append(context, 30, keys + 10, values + 10, &err))
        return fail(&err);
    code |= answer(context, "30 more", &err);
    if (fin_cross_prefix(context, 0, NULL, NULL, error, score, NULL, &err))
        return fail(&err);
    printf("squared error of token l, predicted from those before it\n ");
    for (int l = 0; l < TOKENS; l += 8)
        printf("  l = %d: %.4f", l, error[l]);
    putchar('\n');
    if (fin_cross_drop(context, 30, &err))
        return fail(&err);
    code |= answer(context, "the 10 newest", &err);
    fin_cross_destroy(context);
    return code;
}
