/* JSON: a checker that never recurses, and walks over text that was checked.
 * SPDX-License-Identifier: MIT */
#include "base/json.h"

#include "base/assert.h"

#include <stdint.h>
#include <string.h>
#include <weir/error.h>

struct cursor {
    const char *at, *end;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Characters that stand in a string as themselves and are one byte long. */
static bool is_plain(char c)
{
    return (signed char)c >= 0x20 && c != '"' && c != '\\';
}

static int hex_of(char c)
{
    if (is_digit(c))
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Four hexadecimal digits; -1: they are not. */
static int32_t hex4(const char *at, const char *end)
{
    int32_t value = 0;

    if (end - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = hex_of(at[i]);
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

/* How many bytes the character at `at` takes; 0: not UTF-8. Overlong forms, surrogates and codes
 * beyond U+10FFFF are not; all three show in the first two bytes. */
static size_t utf8_length(const char *at, const char *end)
{
    const unsigned char *s = (const unsigned char *)at;
    size_t left = (size_t)(end - at), length;

    if (s[0] < 0x80)
        return 1;
    length = s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
    if (!length || left < length)
        return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

/* ---- checking ------------------------------------------------------------------------------------ */

/* Each of these functions moves past the text it expects; or answers false, and the cursor is at the byte it did not
 * expect. */

static void pass_blanks(struct cursor *c)
{
    while (c->at < c->end && is_blank(*c->at))
        c->at++;
}

static bool pass(struct cursor *c, char expected)
{
    if (c->at == c->end || *c->at != expected)
        return false;
    c->at++;
    return true;
}

static bool pass_escape(struct cursor *c)
{
    if (c->end - c->at < 2)
        return false;
    if (c->at[1] == 'u') {
        if (hex4(c->at + 2, c->end) < 0)
            return false;
        c->at += 6;
        return true;
    }
    if (!c->at[1] || !strchr("\"\\/bfnrt", c->at[1]))
        return false;
    c->at += 2;
    return true;
}

static bool pass_string(struct cursor *c)
{
    size_t length;

    if (!pass(c, '"'))
        return false;
    for (;;) {
        while (c->at < c->end && is_plain(*c->at))
            c->at++;
        if (c->at == c->end)
            return false;
        if (*c->at == '"') {
            c->at++;
            return true;
        }
        if (*c->at == '\\') {
            if (!pass_escape(c))
                return false;
            continue;
        }
        length = (unsigned char)*c->at < 0x20 ? 0 : utf8_length(c->at, c->end);
        if (!length)
            return false;
        c->at += length;
    }
}

static bool pass_digits(struct cursor *c)
{
    const char *from = c->at;

    while (c->at < c->end && is_digit(*c->at))
        c->at++;
    return c->at > from;
}

static bool pass_number(struct cursor *c)
{
    pass(c, '-');
    if (!pass(c, '0') && !pass_digits(c))
        return false;
    if (pass(c, '.') && !pass_digits(c))
        return false;
    if (!pass(c, 'e') && !pass(c, 'E'))
        return true;
    if (!pass(c, '+'))
        pass(c, '-');
    return pass_digits(c);
}

static bool pass_word(struct cursor *c, const char *word)
{
    for (; *word; word++)
        if (!pass(c, *word))
            return false;
    return true;
}

static bool pass_scalar(struct cursor *c)
{
    switch (c->at < c->end ? *c->at : '\0') {
    case '"':
        return pass_string(c);
    case 't':
        return pass_word(c, "true");
    case 'f':
        return pass_word(c, "false");
    case 'n':
        return pass_word(c, "null");
    default:
        return pass_number(c);
    }
}

/* A member's name and the colon. */
static bool pass_name(struct cursor *c)
{
    pass_blanks(c);
    if (!pass_string(c))
        return false;
    pass_blanks(c);
    return pass(c, ':');
}

/* Passes what may follow a value: ends of open arrays and objects, then a comma, or the end of it all. */
static bool pass_ends(struct cursor *c, const char *closers, int *depth)
{
    while (*depth > 0) {
        char closer = closers[*depth - 1];
        pass_blanks(c);
        if (!pass(c, closer))
            return pass(c, ',') && (closer == ']' || pass_name(c));
        --*depth;
    }
    return true;
}

static bool pass_value(struct cursor *c)
{
    char closers[WR_JSON_DEPTH];
    int depth = 0;

    do {
        pass_blanks(c);
        if (c->at < c->end && (*c->at == '{' || *c->at == '[')) {
            if (depth == WR_JSON_DEPTH)
                return false;
            closers[depth++] = *c->at++ == '{' ? '}' : ']';
            pass_blanks(c);
            if (c->at == c->end)
                return false;
            if (*c->at != closers[depth - 1]) { /* not empty */
                if (closers[depth - 1] == '}' && !pass_name(c))
                    return false;
                continue;
            }
        } else if (!pass_scalar(c)) {
            return false;
        }
        if (!pass_ends(c, closers, &depth))
            return false;
    } while (depth > 0);
    return true;
}

static enum wr_json_type type_of(char first)
{
    switch (first) {
    case '{':
        return WR_JSON_OBJECT;
    case '[':
        return WR_JSON_ARRAY;
    case '"':
        return WR_JSON_STRING;
    case 't':
    case 'f':
        return WR_JSON_BOOL;
    case 'n':
        return WR_JSON_NULL;
    default:
        return WR_JSON_NUMBER;
    }
}

int wr_json_parse(struct wr_json *out, size_t *at, const char *text, size_t length)
{
    struct cursor c = { text, text + length };
    const char *from;
    bool fine;

    pass_blanks(&c);
    from = c.at;
    fine = pass_value(&c);
    if (fine) {
        *out = (struct wr_json){ type_of(*from), from, (size_t)(c.at - from) };
        pass_blanks(&c);
    }
    if (at)
        *at = (size_t)(c.at - text);
    return fine && c.at == c.end ? 0 : WEIR_EINVAL;
}

/* ---- walking over checked text -------------------------------------------------------------------- */

/* From here on the text is known to be well-formed. Bounds are kept all the same: a caller that forgot to
 * check finds nonsense, but nothing outside the text. */

static void skip_string(struct cursor *c)
{
    for (c->at++; c->at < c->end && *c->at != '"'; c->at++)
        if (*c->at == '\\' && c->at + 1 < c->end)
            c->at++;
    if (c->at < c->end)
        c->at++;
}

static void skip_container(struct cursor *c)
{
    int depth = 0;

    while (c->at < c->end) {
        char first = *c->at;
        if (first == '"') {
            skip_string(c);
            continue;
        }
        c->at++;
        if (first == '{' || first == '[')
            depth++;
        else if ((first == '}' || first == ']') && --depth == 0)
            return;
    }
}

/* Answers the value at the cursor, and moves past it. */
static struct wr_json take(struct cursor *c)
{
    struct wr_json value = { WR_JSON_NULL, NULL, 0 };

    pass_blanks(c);
    value.text = c->at;
    if (c->at == c->end)
        return value;
    value.type = type_of(*c->at);
    if (value.type == WR_JSON_STRING)
        skip_string(c);
    else if (value.type == WR_JSON_OBJECT || value.type == WR_JSON_ARRAY)
        skip_container(c);
    else
        while (c->at < c->end && *c->at != ',' && !is_blank(*c->at))
            c->at++;
    value.length = (size_t)(c->at - value.text);
    return value;
}

/* Moves past the colon or comma. */
static void take_mark(struct cursor *c)
{
    pass_blanks(c);
    if (c->at < c->end)
        c->at++;
}

/* The text between a value's first byte and its last. */
static struct cursor inside(const struct wr_json *value)
{
    if (value->length < 2)
        return (struct cursor){ value->text, value->text };
    return (struct cursor){ value->text + 1, value->text + value->length - 1 };
}

static size_t encode_utf8(char out[4], uint32_t code)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3f));
        out[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3f));
    out[2] = (char)(0x80 | (code >> 6 & 0x3f));
    out[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

/* The low half of a surrogate pair, if an escape for one is at `at`; else -1. */
static int32_t low_surrogate(const char *at, const char *end)
{
    int32_t low = end - at >= 6 && at[0] == '\\' && at[1] == 'u' ? hex4(at + 2, end) : -1;

    return low >= 0xdc00 && low <= 0xdfff ? low : -1;
}

/* Decodes \uXXXX, the cursor being at the first digit. */
static size_t decode_unicode(char out[4], struct cursor *c)
{
    int32_t code = hex4(c->at, c->end), low;

    if (code < 0) { /* never in checked text */
        out[0] = 'u';
        return 1;
    }
    c->at += 4;
    if (code < 0xd800 || code > 0xdfff)
        return encode_utf8(out, (uint32_t)code);
    if (code <= 0xdbff && (low = low_surrogate(c->at, c->end)) >= 0) {
        c->at += 6;
        return encode_utf8(out, 0x10000 + ((uint32_t)(code & 0x3ff) << 10 | (low & 0x3ff)));
    }
    if (code >= 0xdc80 && code <= 0xdcff) {
        out[0] = (char)(code & 0xff);
        return 1;
    }
    return encode_utf8(out, 0xfffd);
}

/* Decodes one byte, or one escape. */
static size_t decode_one(char out[4], struct cursor *c)
{
    out[0] = *c->at++;
    if (out[0] != '\\' || c->at == c->end)
        return 1;
    switch (*c->at++) {
    case 'b':
        out[0] = '\b';
        return 1;
    case 'f':
        out[0] = '\f';
        return 1;
    case 'n':
        out[0] = '\n';
        return 1;
    case 'r':
        out[0] = '\r';
        return 1;
    case 't':
        out[0] = '\t';
        return 1;
    case 'u':
        return decode_unicode(out, c);
    default: /* a quote, a slash, a backslash */
        out[0] = c->at[-1];
        return 1;
    }
}

size_t wr_json_decode(char *out, const struct wr_json *value)
{
    struct cursor c = inside(value);
    size_t length = 0;

    WR_ASSERT(value->type == WR_JSON_STRING);
    while (c.at < c.end) {
        const char *escape = memchr(c.at, '\\', (size_t)(c.end - c.at));
        size_t run = (size_t)((escape ? escape : c.end) - c.at);
        char bytes[4];
        size_t count;

        memcpy(out + length, c.at, run);
        length += run;
        c.at += run;
        if (!escape)
            break;
        count = decode_one(bytes, &c);
        memcpy(out + length, bytes, count); /* never more than the escape took */
        length += count;
    }
    return length;
}

/* Whether a string value, decoded, is that name. */
static bool is_name(const struct wr_json *value, const char *name, size_t length)
{
    struct cursor c = inside(value);
    size_t inner = (size_t)(c.end - c.at), done = 0;

    if (inner < length || value->type != WR_JSON_STRING)
        return false;
    if (!memchr(c.at, '\\', inner))
        return inner == length && memcmp(c.at, name, length) == 0;
    while (c.at < c.end) {
        char bytes[4];
        size_t count = decode_one(bytes, &c);
        if (count > length - done || memcmp(bytes, name + done, count) != 0)
            return false;
        done += count;
    }
    return done == length;
}

bool wr_json_member(struct wr_json *out, const struct wr_json *object, const char *name,
                    size_t length)
{
    struct cursor c = inside(object);
    bool found = false;

    if (object->type != WR_JSON_OBJECT)
        return false;
    while (pass_blanks(&c), c.at < c.end) {
        struct wr_json member = take(&c), value;
        take_mark(&c);
        value = take(&c);
        take_mark(&c);
        if (is_name(&member, name, length)) {
            *out = value;
            found = true;
        }
    }
    return found;
}

bool wr_json_element(struct wr_json *out, const struct wr_json *array, size_t index)
{
    struct cursor c = inside(array);

    if (array->type != WR_JSON_ARRAY)
        return false;
    while (pass_blanks(&c), c.at < c.end) {
        struct wr_json value = take(&c);
        take_mark(&c);
        if (index-- == 0) {
            *out = value;
            return true;
        }
    }
    return false;
}

/* ---- writing ------------------------------------------------------------------------------------- */

struct sink {
    char *out;
    size_t size, length; /* length: how long the text would be, given room */
};

static void put(struct sink *sink, const char *bytes, size_t count)
{
    if (sink->length < sink->size) {
        size_t room = sink->size - sink->length;
        memcpy(sink->out + sink->length, bytes, count < room ? count : room);
    }
    sink->length += count;
}

static void put_unicode(struct sink *sink, unsigned code)
{
    static const char digits[] = "0123456789abcdef";
    const char escape[6] = { '\\',
                             'u',
                             digits[code >> 12 & 15],
                             digits[code >> 8 & 15],
                             digits[code >> 4 & 15],
                             digits[code & 15] };

    put(sink, escape, sizeof(escape));
}

static void put_escape(struct sink *sink, char c)
{
    static const char plain[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const char *known = c ? strchr(plain, c) : NULL;

    if (known)
        put(sink, (const char[2]){ '\\', letters[known - plain] }, 2);
    else
        put_unicode(sink, (unsigned char)c);
}

size_t wr_json_quote(char *out, size_t size, const char *text, size_t length)
{
    struct sink sink = { out, size, 0 };
    const char *at = text ? text : "", *end = at + length; /* NULL is as good as "" */

    put(&sink, "\"", 1);
    while (at < end) {
        const char *from = at;
        size_t count;

        while (at < end && is_plain(*at))
            at++;
        if (at > from) {
            put(&sink, from, (size_t)(at - from));
            continue;
        }
        count = utf8_length(at, end);
        if (count > 1)
            put(&sink, at, count);
        else if (count == 1)
            put_escape(&sink, *at);
        else
            put_unicode(&sink, 0xdc00 | (unsigned char)*at);
        at += count ? count : 1;
    }
    put(&sink, "\"", 1);
    return sink.length;
}
