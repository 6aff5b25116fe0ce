/* The table of families of exchangeable tokens, and making one. */
#include "family/family.h"

#include "math/gram.h"

#include <string.h>

/* In the order in which they are listed. */
#define FAMILY_LIST(F)                                                                             \
    F(concept)                                                                                     \
    F(mean)                                                                                        \
    F(process)                                                                                     \
    F(counts)                                                                                      \
    F(concepts)                                                                                    \
    F(sphere)                                                                                      \
    F(finite)                                                                                      \
    F(urn)

#define FAMILY_EXTERN(name) extern const fin_family fini_family_##name;
FAMILY_LIST(FAMILY_EXTERN)

#define FAMILY_ROW(name) &fini_family_##name,
static const fin_family *const families[] = {FAMILY_LIST(FAMILY_ROW)};
enum { FAMILIES = sizeof families / sizeof *families };

int fin_family_count(void)
{
    return FAMILIES;
}

const fin_family *fin_family_at(int i)
{
    return i >= 0 && i < FAMILIES ? families[i] : NULL;
}

const fin_family *fin_family_find(const char *name)
{
    for (int i = 0; name && i < FAMILIES; i++)
        if (strcmp(families[i]->name, name) == 0)
            return families[i];
    return NULL;
}

const char *fin_family_name(const fin_family *family)
{
    return family ? family->name : NULL;
}

const char *fin_family_summary(const fin_family *family)
{
    return family ? family->summary : NULL;
}

const fin_settings *fin_family_table(const fin_family *family)
{
    return family ? family->settings : NULL;
}

const char *fin_family_z_parts(const fin_family *family)
{
    return family ? family->z_parts : NULL;
}

const char *fin_family_posterior_parts(const fin_family *family)
{
    return family ? family->posterior_parts : NULL;
}

const char *fini_families_that(bool (*can)(const fin_family *family), char *list, size_t size)
{
    list[0] = '\0';
    for (int i = 0; i < FAMILIES; i++)
        if (!can || can(families[i]))
            fini_add_name(families[i]->name, list, size);
    return list;
}

/* ---- create and destroy ---------------------------------------------------------------------- */

static fin_status build(fin_latent *latent, fin_error *err)
{
    const fin_family *family = latent->family;
    fin_status status = fin_settings_validate(family->settings, &latent->settings, err);
    latent->shape.longest = INT64_MAX;
    if (status || (status = family->resolve(latent, err)))
        return status;
    if (latent->commons > FINI_COMMON_MOST)
        return fini_fail(
            err, FIN_ERR_ARGUMENT,
            "%s: what all sequences share has %lld numbers; at most %lld are possible, "
            "with fewer concepts, covariates, outcomes or features",
            family->name, (long long)latent->commons, (long long)FINI_COMMON_MOST);
    if (latent->commons == 0)
        return FIN_OK;
    FINI_ROOM(err, "a family", latent->common, latent->commons, 1);
    family->prepare(latent);
    return FIN_OK;
}

fin_status fin_latent_create(fin_latent **out, const fin_family *family,
                             const fin_latent_settings *settings, uint64_t seed, fin_error *err)
{
    FINI_NEED(err, out);
    *out = NULL;
    if (!family) {
        char names[256];
        return fini_fail(err, FIN_ERR_ARGUMENT, "no such family; fin_family_find knows %s",
                         fini_families_that(NULL, names, sizeof names));
    }
    FINI_MAKE(err, "a family", fin_latent, latent);
    latent->family = family;
    latent->seed = seed;
    if (settings)
        latent->settings = *settings;
    else
        fin_settings_defaults(family->settings, &latent->settings, sizeof latent->settings);
    fin_status status = fini_blas_ready(err);
    if (!status)
        status = build(latent, err);
    FINI_HAND_OVER(out, latent, status, fin_latent_destroy);
}

void fin_latent_destroy(fin_latent *latent)
{
    if (!latent)
        return;
    fini_free_all(latent->common, latent);
}

/* ---- what it is ------------------------------------------------------------------------------ */

void fin_latent_get_shape(const fin_latent *latent, fin_latent_shape *shape)
{
    if (!latent || !shape)
        return;
    *shape = latent->shape;
}

const fin_family *fin_latent_get_family(const fin_latent *latent)
{
    return latent ? latent->family : NULL;
}

const fin_latent_settings *fin_latent_get_settings(const fin_latent *latent)
{
    return latent ? &latent->settings : NULL;
}

int64_t fini_latent_width(const fin_latent *latent)
{
    return latent->shape.outcomes > 0 ? latent->shape.outcomes : latent->shape.dv;
}
