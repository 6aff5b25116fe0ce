/* Explicit features of the linear and the polynomial kernel, so that phi(a).phi(b) = k(a, b):
 *
 *     (offset + a.b)^p = sum over exponents e with e_0 + |e| = p of
 *                        p! / (e_0! e_1! ...) offset^e_0 prod_c (a_c b_c)^e_c
 *
 * A monomial of degree t is one of degree t - 1, its parent, times a column not before the parent's
 * last one: every monomial comes once, in order of degree. The linear kernel is p = 1, offset = 0.
 * If offset is 0 only those of degree p are features, and the others only lead to them.
 *
 * The prior variance is in the features, and the level is one more, constant feature. */
#include "context/cross.h"

#include <math.h>

static int64_t degree_of(const fin_cross_settings *s)
{
    return s->kernel == FIN_KERNEL_LINEAR ? 1 : s->degree;
}

static double offset_of(const fin_cross_settings *s)
{
    return s->kernel == FIN_KERNEL_LINEAR ? 0 : s->offset;
}

static double choose(double n, int64_t k)
{
    double result = 1;
    for (int64_t i = 1; i <= k; i++)
        result = result * (n - (double)k + (double)i) / (double)i;
    return floor(result + 0.5);
}

double fini_monomials_count(const fin_cross_settings *s, int64_t dk)
{
    int64_t p = degree_of(s);
    if (s->kernel != FIN_KERNEL_LINEAR && s->kernel != FIN_KERNEL_POLYNOMIAL)
        return 0;
    double count = choose((double)dk + (double)p - (offset_of(s) > 0 ? 0 : 1), p);
    return count + (s->level > 0);
}

void fini_monomials_take(fini_arena *a, fini_monomials *basis, const fin_cross_settings *s,
                         int64_t dk)
{
    double all = choose((double)dk + (double)degree_of(s), degree_of(s));
    basis->all = (int64_t)all;
    basis->skip = basis->all - ((int64_t)fini_monomials_count(s, dk) - (s->level > 0));
    basis->parent = fini_take(a, basis->all, sizeof *basis->parent);
    basis->column = fini_take(a, basis->all, sizeof *basis->column);
    basis->factor = fini_take(a, basis->all, sizeof *basis->factor);
}

/* How often column c is in monomial j. */
static int64_t power(const fini_monomials *basis, int64_t j, int64_t c)
{
    int64_t count = 0;
    for (; j > 0; j = basis->parent[j])
        count += basis->column[j] == c;
    return count;
}

/* factor holds p! / (e_0! e_1! ...) at first: one power more of column c is e_0 / e_c times it. */
void fini_monomials_fill(fini_monomials *basis, const fin_cross_settings *s, int64_t dk)
{
    int64_t p = degree_of(s), first = 0, end = 1, next = 1;
    basis->factor[0] = 1;
    for (int64_t t = 1; t <= p; t++) {
        for (int64_t j = first; j < end; j++)
            for (int64_t c = basis->column[j]; c < dk; c++, next++) {
                basis->parent[next] = (int32_t)j;
                basis->column[next] = (int32_t)c;
                basis->factor[next] =
                    basis->factor[j] * (double)(p - t + 1) / (double)power(basis, next, c);
            }
        first = end;
        end = next;
    }
    for (int64_t j = 0, t = 0; j < basis->all; j++) {
        t = 0;
        for (int64_t up = j; up > 0; up = basis->parent[up])
            t++;
        double scale = s->prior * basis->factor[j];
        basis->factor[j] = sqrt(scale) * pow(offset_of(s), 0.5 * (double)(p - t));
    }
}

void fini_monomials_features(const fin_cross *o, int64_t b, const double *keys, double *F,
                             int64_t ld)
{
    const fini_monomials *basis = &o->basis;
    int64_t count = basis->all - basis->skip;
    for (int64_t j = basis->skip; j < basis->all; j++) {
        double *row = F + (j - basis->skip) * ld;
        for (int64_t i = 0; i < b; i++)
            row[i] = 1;
        /* With all of them kept the parent's row is there; else the product is made anew. */
        for (int64_t up = j; up > 0; up = basis->parent[up]) {
            const double *x = keys + basis->column[up];
            const double *parent = F + (int64_t)basis->parent[up] * ld;
            for (int64_t i = 0; i < b; i++)
                row[i] = x[i * o->dk] * (basis->skip ? row[i] : parent[i]);
            if (!basis->skip)
                break;
        }
    }
    for (int64_t j = 0; j < count; j++)
        for (int64_t i = 0; i < b; i++)
            F[j * ld + i] *= basis->factor[basis->skip + j];
    for (int64_t i = 0; i < b && o->settings.level > 0; i++)
        F[count * ld + i] = sqrt(o->settings.level);
}

int64_t fini_monomials_power(const fin_cross *o, int64_t j, int64_t c)
{
    return j < o->basis.all - o->basis.skip ? power(&o->basis, o->basis.skip + j, c) : 0;
}
