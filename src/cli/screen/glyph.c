/* Cleaning and measuring, one character with its marks at a time.
 * SPDX-License-Identifier: MIT */
#include "cli/screen/glyph.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <wchar.h>

/* More than this is not writing but an attempt to paint over the lines above. */
enum { MARKS_MAX = 2 };

/* Decodes one character; answers its length, or 0 for what is not UTF-8: overlong forms, surrogates
 * and what is cut off by the end included. */
static size_t decode(uint32_t *out, const char *text)
{
    static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
    const unsigned char *at = (const unsigned char *)text;
    size_t length;
    uint32_t c;

    if (at[0] < 0x80) {
        *out = at[0];
        return 1;
    }
    if (at[0] >= 0xc2 && at[0] < 0xe0)
        length = 2;
    else if (at[0] >= 0xe0 && at[0] < 0xf0)
        length = 3;
    else if (at[0] >= 0xf0 && at[0] < 0xf5)
        length = 4;
    else
        return 0;
    c = at[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (at[i] & 0x3f);
    }
    if (c < smallest[length] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return 0;
    *out = c;
    return length;
}

/* Joiners and variation selectors: terminals differ in what they make of them, and all agree on
 * the width of a text without them. */
static bool is_dropped(uint32_t c)
{
    return c == 0x200c || c == 0x200d || (c >= 0xfe00 && c <= 0xfe0f) ||
           (c >= 0xe0100 && c <= 0xe01ef);
}

/* Control characters; what turns the direction of its neighbours; what is not seen at all. */
static bool is_hidden(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x61c ||
           (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
           (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) ||
           (c >= 0xe0000 && c <= 0xe0fff);
}

static bool is_mark(uint32_t c)
{
    return c >= 0x300 && !is_hidden(c) && wcwidth((wchar_t)c) == 0;
}

static void glyph_add(struct glyph *glyph, const char *bytes, size_t length)
{
    memcpy(glyph->bytes + glyph->length, bytes, length);
    glyph->length += (uint8_t)length;
    glyph->bytes[glyph->length] = '\0';
}

/* The character that carries marks. A mark with nothing to stand on counts as hidden. */
static void glyph_begin(struct glyph *glyph, const char *bytes, size_t length, uint32_t c,
                        bool utf8)
{
    int columns = 1;
    bool seen = length > 0 && !is_hidden(c);

    glyph->length = 0;
    if (seen && c >= 0x80) {
        columns = utf8 ? wcwidth((wchar_t)c) : 0;
        seen = columns > 0;
    }
    if (seen)
        glyph_add(glyph, bytes, length);
    else
        glyph_add(glyph, utf8 ? "\xef\xbf\xbd" : "?", utf8 ? 3 : 1);
    glyph->columns = (uint8_t)(seen ? columns : 1);
}

bool glyph_next(struct glyph *glyph, const char **text, bool utf8)
{
    const char *at = *text;
    uint32_t c = 0;
    size_t length = 0;
    int marks = 0;

    while (*at && (length = decode(&c, at)) > 0 && is_dropped(c))
        at += length;
    if (!*at)
        return false;
    glyph_begin(glyph, at, length, c, utf8);
    at += length ? length : 1;
    while (*at && (length = decode(&c, at)) > 0 && (is_mark(c) || is_dropped(c))) {
        if (utf8 && !is_dropped(c) && marks++ < MARKS_MAX)
            glyph_add(glyph, at, length);
        at += length;
    }
    *text = at;
    return true;
}

int glyph_columns(const char *text, bool utf8)
{
    struct glyph glyph;
    int columns = 0;

    while (columns < INT_MAX - 2 && glyph_next(&glyph, &text, utf8))
        columns += glyph.columns;
    return columns;
}
