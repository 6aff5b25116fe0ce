/* The tables of finitely many concepts.
 *
 * The library keeps the tables P_z(r | c) to itself, but a drawn sequence has its z, and the
 * `truth` at a query is the row of z and the query's covariate: enough sequences show all rows, to
 * the last bit. */
#include "command/command.h"

#include <stdio.h>
#include <string.h>

/* ---- the tables of concepts ------------------------------------------------------------------ */

enum { QUERIES = 64, PATIENCE = 1000 };

/* Sequences in turn, until no row is missing: about rows log(rows) / QUERIES of them, or, with few
 * covariates, concepts log(concepts). */
static fin_status meet_all(const fin_latent *latent, double *tables, unsigned char *seen,
                           double *queries, double *truth, fin_error *err)
{
    const fin_latent_settings *s = fin_latent_get_settings(latent);
    int64_t C = s->covariates, R = s->outcomes, rows = s->concepts * C, missing = rows;
    int64_t most = PATIENCE * s->concepts * (1 + C / QUERIES);
    double z;
    const fin_latent_sample sample = {
        .n = 1, .Q = QUERIES, .queries = queries, .truth = truth, .z = &z};
    for (int64_t i = 0; i < most && missing > 0; i++) {
        FINI_TRY(fin_latent_draw(latent, (uint64_t)i, &sample, err));
        for (int q = 0; q < QUERIES; q++) {
            int64_t row = (int64_t)z * C + (int64_t)queries[q];
            missing -= !seen[row];
            seen[row] = 1;
            memcpy(tables + row * R, truth + q * R, (size_t)R * sizeof(double));
        }
    }
    return missing == 0 ? FIN_OK
                        : fini_fail(err, FIN_ERR_NUMERIC,
                                    "%lld of %lld rows of the concepts' tables were not met",
                                    (long long)missing, (long long)rows);
}

fin_status fini_concept_tables(const fin_latent *latent, double **tables, fin_error *err)
{
    const fin_latent_settings *s = fin_latent_get_settings(latent);
    int64_t rows = s->concepts * s->covariates, R = s->outcomes;
    *tables = fini_alloc_array(rows * R, sizeof **tables);
    unsigned char *seen = fini_alloc_array(rows, 1);
    double *room = fini_alloc_array(QUERIES * (R + 1), sizeof *room);
    fin_status status = FIN_OK;
    if (!*tables || !seen || !room)
        status = fini_fail_memory(err, (size_t)(rows * R) * sizeof **tables, "tables of concepts");
    if (!status) {
        memset(seen, 0, (size_t)rows);
        status = meet_all(latent, *tables, seen, room, room + QUERIES, err);
    }
    fini_free_all(room, seen);
    if (status) {
        fini_free(*tables);
        *tables = NULL;
    }
    return status;
}
