/* Quantities as people write them. No strtod: its decimal point depends on the locale.
 * SPDX-License-Identifier: MIT */
#include "cli/opt/quantity.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const int64_t second = INT64_C(1000000000);
static const int64_t longest = INT64_C(100) * 36525 * 864 * INT64_C(1000000000); /* 100 years */

struct unit {
    const char *name;
    int64_t size;
};

static const struct unit duration_units[] = {
    { "d", INT64_C(86400000000000) },
    { "h", INT64_C(3600000000000) },
    { "m", INT64_C(60000000000) },
    { "s", INT64_C(1000000000) },
    { "ms", 1000000 },
    { "us", 1000 },
    { "ns", 1 },
    { NULL, 0 },
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Digits, perhaps with a point and more digits. The fraction is kept in parts of 10^-18, which is exact
 * enough for any unit below. */
struct decimal {
    int64_t whole, fraction;
};

static bool take_digits(int64_t *number, const char **at)
{
    if (!is_digit(**at))
        return false;
    for (*number = 0; is_digit(**at); ++*at)
        if (__builtin_mul_overflow(*number, 10, number) ||
            __builtin_add_overflow(*number, **at - '0', number))
            return false;
    return true;
}

static bool take_decimal(struct decimal *out, const char **at)
{
    int64_t scale = INT64_C(1000000000000000000);

    *out = (struct decimal){ 0, 0 };
    if (**at != '.' && !take_digits(&out->whole, at))
        return false;
    if (**at != '.')
        return true;
    if (!is_digit(*++*at))
        return false;
    for (; is_digit(**at); ++*at) {
        scale /= 10;
        out->fraction += scale * (**at - '0');
    }
    return true;
}

/* number * unit, rounded down; false: too large. */
static bool multiply(int64_t *out, const struct decimal *number, int64_t unit)
{
    __extension__ typedef __int128 wide;
    wide product =
        (wide)number->whole * unit + (wide)number->fraction * unit / INT64_C(1000000000000000000);

    if (product > INT64_MAX)
        return false;
    *out = (int64_t)product;
    return true;
}

/* The unit that is at *at, as a whole word. */
static const struct unit *take_unit(const char **at, const struct unit *units)
{
    size_t length = 0;

    while (is_letter((*at)[length]))
        length++;
    for (; units->name; units++)
        if (strlen(units->name) == length && memcmp(units->name, *at, length) == 0) {
            *at += length;
            return units;
        }
    return NULL;
}

bool quantity_duration(int64_t *ns, const char *text)
{
    const struct unit *units = duration_units;
    int64_t total = 0, part;

    do {
        struct decimal number;
        int64_t unit = second;

        if (!take_decimal(&number, &text))
            return false;
        if (*text || units != duration_units) { /* without unit only if it is all there is */
            const struct unit *found = take_unit(&text, units);
            if (!found)
                return false;
            unit = found->size;
            units = found + 1;
        }
        if (!multiply(&part, &number, unit) || __builtin_add_overflow(total, part, &total) ||
            total > longest)
            return false;
    } while (*text);
    *ns = total;
    return true;
}

static bool period(int64_t *ns, const char *text)
{
    const char *at = text;
    const struct unit *unit = take_unit(&at, duration_units);

    if (unit && !*at) {
        *ns = unit->size;
        return true;
    }
    return quantity_duration(ns, text) && *ns > 0;
}

bool quantity_rate(struct quantity_rate *rate, const char *text)
{
    struct quantity_rate read = { .burst = 1 };
    char word[64];
    size_t length;

    if (!take_digits(&read.count, &text) || read.count < 1 || *text++ != '/')
        return false;
    length = strcspn(text, ":");
    if (length >= sizeof(word))
        return false;
    memcpy(word, text, length);
    word[length] = '\0';
    if (!period(&read.period_ns, word))
        return false;
    if (text[length] && !quantity_count(&read.burst, text + length + 1, 1, INT64_MAX))
        return false;
    *rate = read;
    return true;
}

bool quantity_count(int64_t *count, const char *text, int64_t low, int64_t high)
{
    bool negative = *text == '-';
    int64_t number;

    text += negative;
    if (!take_digits(&number, &text) || *text)
        return false;
    if (negative)
        number = -number;
    if (number < low || number > high)
        return false;
    *count = number;
    return true;
}

bool quantity_bytes(int64_t *bytes, const char *text)
{
    static const struct unit units[] = {
        { "k", INT64_C(1) << 10 }, { "K", INT64_C(1) << 10 }, { "M", INT64_C(1) << 20 },
        { "G", INT64_C(1) << 30 }, { "T", INT64_C(1) << 40 }, { NULL, 0 },
    };
    const struct unit *unit = NULL;
    struct decimal number;

    if (!take_decimal(&number, &text))
        return false;
    if (*text && !(unit = take_unit(&text, units)))
        return false;
    return !*text && multiply(bytes, &number, unit ? unit->size : 1) && *bytes < INT64_C(1) << 62;
}

void quantity_show_bytes(char out[16], int64_t bytes)
{
    static const char units[] = "kMGTPE";
    double size = (double)bytes;
    int unit = -1;

    for (; size >= 1024 && unit < 5; unit++)
        size /= 1024;
    if (unit < 0)
        snprintf(out, 16, "%d", (int)bytes);
    else
        snprintf(out, 16, size < 10 ? "%.1f%c" : "%.0f%c", size, units[unit]);
}

void quantity_show_duration(char out[16], int64_t ns)
{
    const char *sign = ns < 0 ? "-" : "";
    uint64_t n = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
    /* 64 bits of nanoseconds are less than 2^35 seconds, so what is shown fits; the compiler cannot see that. */
    unsigned small = (unsigned)(n % 1000000000 / (n < 1000 ? 1 : n < 1000000 ? 1000 : 1000000));
    unsigned s = (unsigned)(n / 1000000000 % 60), m = (unsigned)(n / 60000000000 % 60);
    unsigned h = (unsigned)(n / 3600000000000 % 24), d = (unsigned)(n / 86400000000000);
    char text[64];

    if (n < 1000000000)
        snprintf(text, sizeof(text), "%s%u%s", sign, small,
                 n < 1000      ? "ns"
                 : n < 1000000 ? "us"
                               : "ms");
    else if (n < 10000000000 && small / 100)
        snprintf(text, sizeof(text), "%s%u.%us", sign, s, small / 100);
    else if (n < 60000000000)
        snprintf(text, sizeof(text), "%s%us", sign, s);
    else if (n < 3600000000000)
        snprintf(text, sizeof(text), "%s%um%02us", sign, m, s);
    else if (!d)
        snprintf(text, sizeof(text), "%s%uh%02um", sign, h, m);
    else
        snprintf(text, sizeof(text), "%s%ud%uh", sign, d, h);
    snprintf(out, 16, "%.15s", text);
}
