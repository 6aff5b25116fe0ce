/* Where an axis has its ticks, and what stands there.
 *
 * Linear: steps of 1, 2 or 5 times a power of ten, all texts with the same number of decimals.
 * Logarithmic: powers of ten, every n-th where they are many, with small ticks between; where there
 * are fewer than three powers, 1, 2 and 5 times them, and where that is too coarse, linear ticks.
 * Powers are written with the superscripts of Unicode, which every font of a browser has. */
#include "report/figure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void superscript(int number, char *text, size_t size)
{
    static const char *const digits[] = {
        "\xe2\x81\xb0", "\xc2\xb9",     "\xc2\xb2",     "\xc2\xb3",     "\xe2\x81\xb4",
        "\xe2\x81\xb5", "\xe2\x81\xb6", "\xe2\x81\xb7", "\xe2\x81\xb8", "\xe2\x81\xb9"};
    char plain[16];
    snprintf(plain, sizeof plain, "%d", number);
    size_t used = 0;
    text[0] = '\0';
    for (const char *p = plain; *p; p++) {
        const char *sign = *p == '-' ? "\xe2\x81\xbb" : digits[*p - '0'];
        if (used + strlen(sign) + 1 > size)
            return;
        memcpy(text + used, sign, strlen(sign) + 1);
        used += strlen(sign);
    }
}

/* "5×10⁻⁷"; a factor of 1 is left out. */
static void power_text(double factor, int power, char text[FINI_TICK_TEXT])
{
    char above[24], front[24];
    superscript(power, above, sizeof above);
    fini_print_double(factor, 4, front, sizeof front);
    if (factor == 1)
        snprintf(text, FINI_TICK_TEXT, "10%s", above);
    else
        snprintf(text, FINI_TICK_TEXT,
                 "%s\xc3\x97"
                 "10%s",
                 front, above);
}

/* The number k * step, where step = unit * 10^power and unit is 1, 2 or 5. */
static void linear_text(double k, int unit, int power, double most, char text[FINI_TICK_TEXT])
{
    double number = k * unit * pow(10, power);
    if (k == 0) {
        snprintf(text, FINI_TICK_TEXT, "0");
    } else if (most >= 1e6 || power < -4) {
        int top = (int)floor(log10(fabs(number)) + 1e-9);
        char front[32], above[24];
        fini_print_double(round(k * unit * pow(10, power - top) * 1e6) / 1e6, 6, front,
                          sizeof front);
        superscript(top, above, sizeof above);
        snprintf(text, FINI_TICK_TEXT,
                 "%.12s\xc3\x97"
                 "10%s",
                 front, above);
    } else {
        /* Written from whole numbers: no locale, and never 0.30000000000000004. */
        int decimals = power < 0 ? -power : 0;
        long long scale = 1, whole = llround(fabs(number) * pow(10, decimals));
        for (int i = 0; i < decimals; i++)
            scale *= 10;
        const char *sign = number < 0 ? "\xe2\x88\x92" : "";
        if (decimals == 0)
            snprintf(text, FINI_TICK_TEXT, "%s%lld", sign, whole);
        else
            snprintf(text, FINI_TICK_TEXT, "%s%lld.%0*lld", sign, whole / scale, decimals,
                     whole % scale);
    }
}

static int linear(double low, double high, int wanted, fini_tick ticks[FINI_TICKS])
{
    double rough = (high / 2 - low / 2) / (wanted > 1 ? wanted : 1) * 2;
    if (!(rough > 1e-300 && rough < 1e301)) /* too narrow to be told apart */
        return 0;
    int power = (int)floor(log10(rough));
    double part = rough / pow(10, power);
    int unit = part < 1.5 ? 1 : part < 3.5 ? 2 : part < 7.5 ? 5 : 10;
    if (unit == 10) {
        unit = 1;
        power++;
    }
    double step = unit * pow(10, power), most = fmax(fabs(low), fabs(high));
    if (!(step > 0) || !isfinite(step) || !(fabs(low / step) < 1e15 && fabs(high / step) < 1e15))
        return 0;
    int count = 0;
    for (double k = ceil(low / step - 1e-9); k <= floor(high / step + 1e-9); k++) {
        if (count == FINI_TICKS)
            break;
        ticks[count].at = k * step;
        linear_text(k, unit, power, most, ticks[count++].text);
    }
    return count;
}

/* Texts at 1, 2 and 5 times the powers of ten; small ticks at all others. */
static int logarithmic(double low, double high, int wanted, fini_tick ticks[FINI_TICKS])
{
    int first = (int)floor(log10(low) + 1e-9), last = (int)ceil(log10(high) - 1e-9);
    int decades = 0;
    for (int p = first; p <= last; p++)
        decades += pow(10, p) >= low * (1 - 1e-9) && pow(10, p) <= high * (1 + 1e-9);
    int every = (decades + wanted) / (wanted + 1);
    every = every > 0 ? every : 1;
    bool fine = decades < 3, small = last - first <= 12;
    int count = 0;
    for (int p = first; p <= last; p++)
        for (int m = 1; m <= (small ? 9 : 1); m++) {
            double at = m * pow(10, p);
            if (!(at >= low * (1 - 1e-9) && at <= high * (1 + 1e-9)) || count == FINI_TICKS)
                continue;
            bool said = m == 1 ? p % every == 0 : fine && (m == 2 || m == 5);
            ticks[count].at = at;
            ticks[count].text[0] = '\0';
            if (said && fine && p >= -3 && p <= 3)
                fini_print_double(at, 4, ticks[count].text, FINI_TICK_TEXT);
            else if (said)
                power_text(m, p, ticks[count].text);
            count++;
        }
    return count;
}

int fini_ticks(const fini_scale *scale, int wanted, fini_tick ticks[FINI_TICKS])
{
    if (!(scale->low < scale->high))
        return 0;
    if (!scale->log)
        return linear(scale->low, scale->high, wanted, ticks);
    int count = logarithmic(scale->low, scale->high, wanted, ticks), said = 0;
    for (int i = 0; i < count; i++)
        said += ticks[i].text[0] != '\0';
    if (said >= 2)
        return count;
    int other = linear(scale->low, scale->high, wanted, ticks);
    while (other > 0 && !(ticks[0].at > 0)) { /* 0 has no place on this axis */
        memmove(ticks, ticks + 1, (size_t)--other * sizeof *ticks);
    }
    return other;
}
