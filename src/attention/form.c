/* The table of attention forms. */
#include "attention/form.h"

#include <math.h>
#include <string.h>

/* In the order in which they are listed. */
#define FORM_LIST(F)                                                                               \
    F(erf)                                                                                         \
    F(softmax)                                                                                     \
    F(linear)                                                                                      \
    F(shifted)                                                                                     \
    F(softplus)                                                                                    \
    F(hardmax)                                                                                     \
    F(bayes)

#define FORM_EXTERN(name) extern const fin_form fini_form_##name;
FORM_LIST(FORM_EXTERN)

#define FORM_ROW(name) &fini_form_##name,
static const fin_form *const forms[] = {FORM_LIST(FORM_ROW)};
enum { FORMS = sizeof forms / sizeof *forms };

int fin_form_count(void)
{
    return FORMS;
}

const fin_form *fin_form_at(int i)
{
    return i >= 0 && i < FORMS ? forms[i] : NULL;
}

const fin_form *fin_form_find(const char *name)
{
    for (int i = 0; name && i < FORMS; i++)
        if (strcmp(forms[i]->name, name) == 0)
            return forms[i];
    return NULL;
}

const char *fin_form_name(const fin_form *form)
{
    return form ? form->name : NULL;
}

const char *fin_form_summary(const fin_form *form)
{
    return form ? form->summary : NULL;
}

const fin_settings *fin_form_table(const fin_form *form)
{
    return form ? form->settings : NULL;
}

int fini_form_elementwise(const fin_form *form)
{
    return form ? form->elementwise : 0;
}

fin_status fini_form_check(const fin_form *form, const fin_form_settings *settings, fin_error *err)
{
    FINI_TRY(fin_settings_validate(form->settings, settings, err));
    if (fin_is_auto(settings->lam) || fin_is_auto(settings->c))
        return fini_fail(
            err, FIN_ERR_ARGUMENT,
            "%s: %s needed, as auto is a task's; fin_task_bayes_parameters gives those of a task",
            form->name, form->needs_norm2 ? "lam and c are" : "lam is");
    return FIN_OK;
}

fin_status fin_form_weights(const fin_form *form, const fin_form_settings *settings, int64_t n,
                            const int64_t *offsets, const double *chi, const double *norm2,
                            double *w, fin_error *err)
{
    FINI_NEED(err, form, !n || offsets, !n || chi, !n || w);
    settings = fini_or_defaults(form->settings, settings, &(fin_form_settings){0});
    FINI_TRY(fini_form_check(form, settings, err));
    if (form->needs_norm2 && settings->c != 0 && !norm2)
        return fini_fail(err, FIN_ERR_ARGUMENT, "%s with c != 0 needs |X|^2 of every token",
                         form->name);
    if (n < 0)
        return fini_fail(err, FIN_ERR_ARGUMENT, "n = %lld samples; it must not be negative",
                         (long long)n);
    for (int64_t i = 0; i < n; i++)
        if (offsets[i + 1] < offsets[i])
            return fini_fail(err, FIN_ERR_ARGUMENT, "offsets go down at sample %lld", (long long)i);
    form->weights(settings, n, offsets, chi, norm2, w);
    return FIN_OK;
}
