/* A double as %.17g prints it in the C locale, several times faster for numbers of usual size.
 *
 * x = m 2^e with m < 2^53. With k such that 10^16 <= x 10^k < 10^17, the 17 digits are
 *     x 10^k = m 5^k 2^(e + k)   rounded to the nearest whole number, ties to even.
 * For 10^-4 <= x < 10^16, where %.17g prints no exponent, 0 <= k <= 21 and m 5^k < 2^102: the
 * product is exact in 128 bits and the rounding one shift. The rest goes to snprintf; the caller
 * sees to the locale. */
#include "data/data.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

__extension__ typedef unsigned __int128 u128;

#define TEN_16 UINT64_C(10000000000000000)

/* Nearest whole number to m 5^k 2^two, ties to even. */
static uint64_t scaled(uint64_t m, int k, int two)
{
    u128 product = m;
    for (; k >= 13; k -= 13)
        product *= 1220703125; /* 5^13 */
    static const uint32_t five[13] = {1,     5,      25,      125,     625,      3125,     15625,
                                      78125, 390625, 1953125, 9765625, 48828125, 244140625};
    product *= five[k];
    if (two >= 0)
        return (uint64_t)(product << two);
    u128 rest = product & (((u128)1 << -two) - 1), half = (u128)1 << (-two - 1);
    uint64_t whole = (uint64_t)(product >> -two);
    return whole + (rest > half || (rest == half && (whole & 1)));
}

/* For 1e-4 <= x < 1e16. Returns the length. */
static size_t format_fixed(double x, char *to)
{
    int e;
    uint64_t m = (uint64_t)ldexp(frexp(x, &e), 53);
    e -= 53;
    /* 2^(e+52) <= x. Of the power of ten p is the right one or one less; 1233 / 4096 is log10(2) as
     * far as these exponents, -14 to 53, can tell. */
    int p = ((e + 52) * 1233 - 4095 * (e + 52 < 0)) / 4096, k = 16 - p;
    uint64_t digits = scaled(m, k, e + k);
    if (digits >= TEN_16 * 10) {
        p++;
        k--;
        digits = scaled(m, k, e + k);
    }
    if (digits >= TEN_16 * 10) { /* rounded up to the next power of ten */
        p++;
        digits = TEN_16;
    }
    char text[17];
    for (int i = 16; i >= 0; i--, digits /= 10)
        text[i] = (char)('0' + digits % 10);
    size_t count = 17, whole = p >= 0 ? (size_t)p + 1 : 0, used = 0;
    while (count > whole && text[count - 1] == '0')
        count--;
    if (whole == 0)
        to[used++] = '0';
    memcpy(to + used, text, whole);
    used += whole;
    if (count > whole)
        to[used++] = '.';
    for (int i = p; i < -1; i++)
        to[used++] = '0';
    memcpy(to + used, text + whole, count - whole);
    return used + count - whole;
}

static size_t format_whole(uint64_t number, char *to)
{
    char digits[20];
    size_t used = 0, length = 0;
    do
        digits[used++] = (char)('0' + number % 10);
    while (number /= 10);
    while (used > 0)
        to[length++] = digits[--used];
    return length;
}

size_t fini_format(double number, char buffer[FINI_NUMBER])
{
    double size = fabs(number);
    size_t sign = signbit(number) ? 1 : 0;
    buffer[0] = '-';
    if (size < 1e16 && size == (double)(uint64_t)size)
        return sign + format_whole((uint64_t)size, buffer + sign);
    if (size >= 1e-4 && size < 1e16)
        return sign + format_fixed(size, buffer + sign);
    if (isnan(number)) /* without the sign that some systems print */
        return (size_t)snprintf(buffer, FINI_NUMBER, "nan");
    return (size_t)snprintf(buffer, FINI_NUMBER, "%.17g", number);
}
