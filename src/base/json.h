/* JSON, as far as we speak it: finding a value in a text, and writing one (RFC 8259).
 * SPDX-License-Identifier: MIT */
#ifndef WR_BASE_JSON_H
#define WR_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>

enum wr_json_type {
    WR_JSON_NULL,
    WR_JSON_BOOL,
    WR_JSON_NUMBER,
    WR_JSON_STRING,
    WR_JSON_ARRAY,
    WR_JSON_OBJECT
};

/* A value inside a text that was checked. It points into that text. */
struct wr_json {
    enum wr_json_type type;
    const char *text; /* from its first byte: a string's quote, an object's brace  */
    size_t length;
};

/* Checks that the text is one JSON value and nothing else, in UTF-8, at most WR_JSON_DEPTH levels deep.
 * Negative: WEIR_EINVAL, and *at (which may be NULL) tells how many bytes were fine. */
enum { WR_JSON_DEPTH = 256 };
int wr_json_parse(struct wr_json *out, size_t *at, const char *text, size_t length);

/* A member of an object by name (the last of equal ones); false if there is none. */
bool wr_json_member(struct wr_json *out, const struct wr_json *object, const char *name,
                    size_t length);

/* An element of an array, from 0; false if there are not so many. */
bool wr_json_element(struct wr_json *out, const struct wr_json *array, size_t index);

/* Decodes a string value into `out`, which has room for value->length bytes; answers the length. Lone
 * surrogates \udc80..\udcff become the byte they stand for (see wr_json_quote), others U+FFFD. */
size_t wr_json_decode(char *out, const struct wr_json *value);

/* Writes text as a JSON string with its quotes, at most `size` bytes, no final zero; answers how long it is
 * in full. Bytes that are not UTF-8 become \udc80..\udcff, so that nothing is lost. */
size_t wr_json_quote(char *out, size_t size, const char *text, size_t length);

#endif
