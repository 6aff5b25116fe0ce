/* Commands: what `finetti risk` and `finetti lab urn` compute, from names and texts. One run, a laboratory experiment,
 * a sweep of many points at once, and what a wrong name is answered with. */
#include <finetti.h>
#include <stdio.h>

static int fail(const fin_error *err)
{
    printf("%s\n", err->message);
    return 1;
}

/* Every number of a result, with how it came about, and its notes. */
static int show(const char *name, const fin_pair *pairs, int count, fin_error *err)
{
    fin_result *result;
    if (fin_command_run(fin_command_find(name), pairs, count, NULL, &result, err))
        return fail(err);
    printf("%s\n", name);
    for (int i = 0; i < fin_result_scalar_count(result); i++) {
        fin_scalar s = fin_result_get_scalar(result, i);
        printf("  %-10s %10.6f   %s\n", s.name, s.value, fin_how_name(s.how));
    }
    for (int i = 0; fin_result_note(result, i); i++)
        printf("  note: %s\n", fin_result_note(result, i));
    fin_result_destroy(result);
    return 0;
}

/* lam* = 0.06377 for d = 400, L = 10: the risk falls before it and grows behind it. */
static int sweep(fin_error *err)
{
    enum { MOST = 16 };
    double lam[MOST];
    int64_t n, bad;
    fin_sweep *sweep;
    if (fin_range_read("0.01:0.3:5log", 0, MOST, lam, &n, err))
        return fail(err);
    const fin_column columns[] = {{.name = "lam", .numbers = lam}};
    const fin_sweep_points points = {.n = n, .columns = columns, .count = 1};
    if (fin_command_sweep(fin_command_find("risk"), NULL, 0, &points, NULL, &sweep, &bad, err))
        return fail(err);
    fin_sweep_column risk = fin_sweep_get(sweep, 0);
    printf("%s against lam, %s\n", risk.name, fin_how_name(risk.how));
    for (int64_t i = 0; i < n; i++)
        printf("  %-14g %.6f\n", lam[i], risk.value[i]);
    fin_sweep_destroy(sweep);
    return 0;
}

int main(void)
{
    fin_error err;
    const fin_pair at[] = {{.name = "kappa", .text = "0.5"},
                           {.name = "nu", .text = "0.9"},
                           {.name = "m", .text = "2"},
                           {.name = "show", .text = "linear,bayes"}};
    const fin_pair urn[] = {{.name = "N", .text = "100"}, {.name = "L", .text = "5"}};
    const fin_pair wrong[] = {{.name = "lamb", .text = "0.1"}};

    if (show("risk", at, 4, &err) || show("urn", urn, 2, &err) || sweep(&err))
        return 1;
    show("risk", wrong, 1, &err);
    return 0;
}
