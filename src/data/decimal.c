/* Decimal text to the nearest double, fast, and a double to text (at the end).
 *
 * A decimal is m * 10^e with a whole m. Three ways, tried in this order, all correctly rounded:
 *   m <= 2^53, |e| <= 22   both are exact doubles, so one multiplication or division rounds once
 *                          (Clinger 1990); nearly all numbers written by hand or with 15 digits;
 *   m < 2^64,  |e| <= 27   5^27 < 2^64, so product or quotient with 5^|e| is known to the last bit
 *                          in 128-bit integers; most numbers written with 17 digits. For the
 *                          quotient a product with 1 / 5^|e| is enough, but for one case in 500;
 *   the rest               strtod, on a copy, because the text has no terminator of its own.
 * Digits are read eight at a time, as one 64-bit word, except near the end of the text.
 * Hexadecimal numbers and nan(...), which strtod would take, are not decimals and are refused. */
#include "data/data.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

__extension__ typedef unsigned __int128 u128;

enum {
    EXACT_TEN = 22,     /* 10^22 is the last power of ten that is a double */
    EXACT_FIVE = 27,    /* 5^27 is the last power of five below 2^64 */
    DIGITS_MOST = 19,   /* 10^19 - 1 < 2^64 */
    LENGTH_MOST = 1023, /* of a number given to strtod */
    EXPONENT_MOST = 99999
};

static const double ten[EXACT_TEN + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                          1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                          1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

#define FOUR(a, b, c, d) a, b, c, d /* a row of a table */
static const uint64_t five[EXACT_FIVE + 1] = {
    FOUR(1, 5, 25, 125),
    FOUR(625, 3125, 15625, 78125),
    FOUR(390625, 1953125, 9765625, 48828125),
    FOUR(244140625, 1220703125, 6103515625, 30517578125),
    FOUR(152587890625, 762939453125, 3814697265625, 19073486328125),
    FOUR(95367431640625, 476837158203125, 2384185791015625, 11920928955078125),
    FOUR(59604644775390625, 298023223876953125, 1490116119384765625, 7450580596923828125)};

/* floor(2^127 / b), where b is 5^k shifted left as far as it goes:
 *     for k in range(1, 28): b = 5**k << (64 - (5**k).bit_length()); print(hex(2**127 // b)) */
static const uint64_t inverse_five[EXACT_FIVE + 1] = {
    FOUR(0x0, 0xcccccccccccccccc, 0xa3d70a3d70a3d70a, 0x83126e978d4fdf3b),
    FOUR(0xd1b71758e219652b, 0xa7c5ac471b478423, 0x8637bd05af6c69b5, 0xd6bf94d5e57a42bc),
    FOUR(0xabcc77118461cefc, 0x89705f4136b4a597, 0xdbe6fecebdedd5be, 0xafebff0bcb24aafe),
    FOUR(0x8cbccc096f5088cb, 0xe12e13424bb40e13, 0xb424dc35095cd80f, 0x901d7cf73ab0acd9),
    FOUR(0xe69594bec44de15b, 0xb877aa3236a4b449, 0x9392ee8e921d5d07, 0xec1e4a7db69561a5),
    FOUR(0xbce5086492111aea, 0x971da05074da7bee, 0xf1c90080baf72cb1, 0xc16d9a0095928a27),
    FOUR(0x9abe14cd44753b52, 0xf79687aed3eec551, 0xc612062576589dda, 0x9e74d1b791e07e48)};

/* 2^e for a normal result. */
static double power_of_two(int e)
{
    uint64_t bits = (uint64_t)(e + 1023) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* a 2^63 / b for b = 5^k shifted, as whole number whose lowest bit is set if it is not exact.
 *
 * With R = floor(2^127 / b) the quotient Q lies in [a R, a R + a) / 2^64, so with q = floor(a R /
 * 2^64) in [q, q + 2). q has 63 or 64 bits, of which the last 10 or 11 are rounded away: only if
 * they are next to one half does the rounding depend on where in that range Q lies. */
static uint64_t divide(uint64_t a, int k, uint64_t b)
{
    uint64_t q = (uint64_t)((u128)a * inverse_five[k] >> 64);
    int dropped = 11 - __builtin_clzll(q);
    uint64_t low = q & ((UINT64_C(1) << dropped) - 1), half = UINT64_C(1) << (dropped - 1);
    if (low - (half - 1) > 1) /* neither half - 1 nor half */
        return q | 1;
    u128 n = (u128)a << 63;
    q = (uint64_t)(n / b);
    return q | (n != (u128)q * b);
}

/* m * 10^e = m * 5^e * 2^e for m > 0. The factor of 5 leaves q with at least 62 bits, whose lowest
 * is set if anything nonzero lies below; then the one rounding, to 53 bits, is that of (double)q.
 */
static double scale(uint64_t m, int e)
{
    int shift = __builtin_clzll(m), two;
    uint64_t a = m << shift, q;
    if (e < 0) {
        int shift_five = __builtin_clzll(five[-e]);
        q = divide(a, -e, five[-e] << shift_five); /* a / b lies in (1/2, 2) */
        two = e - shift + shift_five - 63;
    } else {
        u128 n = (u128)a * five[e];
        int high = n >> 64 ? 64 - __builtin_clzll((uint64_t)(n >> 64)) : 0;
        q = (uint64_t)(n >> high);
        two = e - shift + high;
        q |= (u128)q << high != n;
    }
    return (double)q * power_of_two(two);
}

static const char *read_word(const char *p, const char *end, bool negative, double *value)
{
    static const struct {
        const char *word;
        double value;
    } words[] = {{"infinity", INFINITY}, {"inf", INFINITY}, {"nan", NAN}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t length = strlen(words[i].word);
        if ((size_t)(end - p) >= length && strncasecmp(p, words[i].word, length) == 0) {
            *value = negative ? -words[i].value : words[i].value;
            return p + length;
        }
    }
    *value = NAN;
    return NULL;
}

static const char *read_slowly(const char *start, const char *end, double *value)
{
    char copy[LENGTH_MOST + 1];
    size_t length = (size_t)(end - start);
    *value = NAN;
    if (length > LENGTH_MOST)
        return NULL;
    memcpy(copy, start, length);
    copy[length] = '\0';
    *value = fini_strtod(copy, NULL);
    return isinf(*value) ? NULL : end;
}

static inline bool is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

/* Digits are added modulo 2^64; the caller knows from their number whether they fitted. */
static inline const char *read_digits(const char *p, const char *end, uint64_t *m)
{
    uint64_t sum = *m;
    for (; p < end && is_digit(*p); p++)
        sum = sum * 10 + (uint64_t)(*p - '0');
    *m = sum;
    return p;
}

/* "e-12" at p; without digits it is left alone, as by strtod. */
static const char *read_exponent(const char *p, const char *end, int *exponent)
{
    const char *q = p + 1;
    bool negative = false;
    if (q < end && (*q == '-' || *q == '+'))
        negative = *q++ == '-';
    if (q == end || !is_digit(*q))
        return p;
    int sum = 0;
    for (; q < end && is_digit(*q); q++)
        sum = sum < EXPONENT_MOST ? sum * 10 + (*q - '0') : sum;
    *exponent = negative ? -sum : sum;
    return q;
}

/* Up to eight digits at p, as one word: their number is returned, and they are put behind *m. */
static inline int read_eight(const char *p, uint64_t *m)
{
    static const uint64_t tens[9] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
    uint64_t word;
    memcpy(&word, p, sizeof word);
    word ^= UINT64_C(0x3030303030303030); /* a digit is now 0 to 9, all else is more */
    uint64_t other = ((word + UINT64_C(0x7676767676767676)) | word) & UINT64_C(0x8080808080808080);
    /* A carry leaves only a byte that is no digit, so that the first such byte is right. */
    int count = other ? __builtin_ctzll(other) >> 3 : 8;
    if (count == 0)
        return 0;
    word <<= 64 - 8 * count; /* zeros in front; then pairs, fours, all eight */
    word = (word * 10 + (word >> 8)) & UINT64_C(0x00ff00ff00ff00ff);
    word = (word * 100 + (word >> 16)) & UINT64_C(0x0000ffff0000ffff);
    word = (word * 10000 + (word >> 32)) & UINT64_C(0x00000000ffffffff);
    *m = *m * tens[count] + word;
    return count;
}

enum { EIGHTS = 3, AHEAD = 2 + 2 * 8 * (EIGHTS + 1) }; /* bytes that may be looked at */

/* Digits as read_digits reads them, if there are at most 24; with more, p stops at one. */
static inline const char *read_many(const char *p, uint64_t *m)
{
    for (int i = 0; i < EIGHTS; i++) {
        int count = read_eight(p, m);
        p += count;
        if (count < 8)
            break;
    }
    return p;
}

/* The number m * 10^e, if one of the two fast ways knows it. */
static inline bool convert(uint64_t m, ptrdiff_t e, double *size)
{
    if (m <= UINT64_C(1) << 53 && e >= -EXACT_TEN && e <= EXACT_TEN)
        *size = e < 0 ? (double)m / ten[-e] : (double)m * ten[e];
    else if (m > 0 && e >= -EXACT_FIVE && e <= EXACT_FIVE)
        *size = scale(m, (int)e);
    else
        *size = 0;
    return m == 0 || (e >= -EXACT_FIVE && e <= EXACT_FIVE);
}

/* Any number, at the end of the text as well. */
static const char *read_any(const char *p, const char *end, double *value)
{
    const char *start = p;
    bool negative = false;
    if (p < end && (*p == '-' || *p == '+'))
        negative = *p++ == '-';
    const char *first = p;
    uint64_t m = 0;
    p = read_digits(p, end, &m);
    ptrdiff_t digits = p - first, fraction = 0;
    if (p < end && *p == '.') {
        const char *point = ++p;
        p = read_digits(p, end, &m);
        fraction = p - point;
        digits += fraction;
    }
    if (digits == 0)
        return read_word(first, end, negative, value);
    int exponent = 0;
    if (p < end && (*p == 'e' || *p == 'E'))
        p = read_exponent(p, end, &exponent);
    if (digits > DIGITS_MOST) /* zeros in front do not count */
        for (const char *q = first; digits > 0 && (*q == '0' || *q == '.'); q++)
            digits -= *q == '0';
    if (digits > DIGITS_MOST)
        return read_slowly(start, p, value);
    double size;
    if (!convert(m, exponent - fraction, &size))
        return read_slowly(start, p, value);
    *value = negative ? -size : size;
    return p;
}

const char *fini_decimal(const char *start, const char *end, double *value)
{
    if (end - start < AHEAD)
        return read_any(start, end, value);
    bool negative = *start == '-';
    const char *first = start + (negative | (*start == '+')), *p;
    uint64_t m = 0;
    p = read_many(first, &m);
    ptrdiff_t digits = p - first, fraction = 0;
    if (*p == '.') {
        const char *point = ++p;
        p = read_many(p, &m);
        fraction = p - point;
        digits += fraction;
    }
    if (digits == 0 || digits > DIGITS_MOST)
        return read_any(start, end, value);
    int exponent = 0;
    if ((*p | 0x20) == 'e')
        p = read_exponent(p, end, &exponent);
    double size;
    if (!convert(m, exponent - fraction, &size))
        return read_slowly(start, p, value);
    *value = negative ? -size : size;
    return p;
}

/* ---- to text ------------------------------------------------------------------------------------ */

/* A double as %.17g prints it in the C locale, several times faster for numbers of usual size.
 *
 * x = m 2^e with m < 2^53. With k such that 10^16 <= x 10^k < 10^17, the 17 digits are
 *     x 10^k = m 5^k 2^(e + k)   rounded to the nearest whole number, ties to even.
 * For 10^-4 <= x < 10^16, where %.17g prints no exponent, 0 <= k <= 21 and m 5^k < 2^102: the
 * product is exact in 128 bits and the rounding one shift. The rest goes to snprintf; the caller
 * sees to the locale. */
#define TEN_16 UINT64_C(10000000000000000)

/* Nearest whole number to m 5^k 2^two, ties to even. */
static uint64_t scaled(uint64_t m, int k, int two)
{
    u128 product = m;
    for (; k >= 13; k -= 13)
        product *= 1220703125; /* 5^13 */
    static const uint32_t powers[13] = {1,     5,      25,      125,     625,      3125,     15625,
                                        78125, 390625, 1953125, 9765625, 48828125, 244140625};
    product *= powers[k];
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
