/* Looking up one field of a record: by number, by name, by a path into an object.
 * SPDX-License-Identifier: MIT */
#include "base/json.h"
#include "cli/input/record.h"
#include "cli/opt/refuse.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- columns ------------------------------------------------------------------------------------- */

/* A whole number of at most nine digits, no zero before others; -1: it is not. */
static int32_t number_of(const char *text, size_t length)
{
    int32_t number = 0;

    if (length == 0 || length > 9 || (text[0] == '0' && length > 1))
        return -1;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        number = number * 10 + (text[i] - '0');
    }
    return number;
}

/* The column with that name, or that number, from 1; 0: none. A name goes first, for headers such as
 * 2024,2025. */
static size_t column_of(const struct record_syntax *syntax, const char *name, size_t length)
{
    int32_t number;

    for (size_t i = 0; i < syntax->name_count && length; i++)
        if (strncmp(syntax->names[i], name, length) == 0 && !syntax->names[i][length])
            return i + 1;
    number = number_of(name, length);
    return number > 0 ? (size_t)number : 0;
}

static int column_field(struct span *out, const struct record *record,
                        const struct record_syntax *syntax, const char *name, weir_message *message)
{
    size_t column = column_of(syntax, name, strlen(name));

    if (!column)
        return refuse(message, "line %" PRIu64 ": no column \"%.80s\"", record->line, name);
    if (column > record->field_count)
        return refuse(message, "line %" PRIu64 ": no column \"%.80s\", only %zu column%s",
                      record->line, name, record->field_count, record->field_count == 1 ? "" : "s");
    *out = record->fields[column - 1];
    return 0;
}

/* ---- objects ------------------------------------------------------------------------------------- */

static bool enter(struct wr_json *value, const char *step, size_t length)
{
    int32_t index;

    if (value->type != WR_JSON_ARRAY)
        return wr_json_member(value, value, step, length);
    index = number_of(step, length);
    return index >= 0 && wr_json_element(value, value, (size_t)index);
}

/* Follows a.b.0: at each level the longest beginning of the path that is a member's name is taken, since
 * names may have dots of their own. */
static bool follow(struct wr_json *value, const char *path)
{
    size_t length = strlen(path), step = length;

    for (;;) {
        if (enter(value, path, step)) {
            if (step == length)
                return true;
            path += step + 1;
            length -= step + 1;
            step = length;
            continue;
        }
        do { /* back to the dot before */
            if (step == 0)
                return false;
            step--;
        } while (path[step] != '.');
    }
}

/* The object of a record that was checked. */
static struct wr_json object_of(const struct record *record)
{
    const char *blanks = " \t\r\n", *from = record->text;
    size_t length = record->length;

    while (length && strchr(blanks, *from) && *from) {
        from++;
        length--;
    }
    while (length && strchr(blanks, from[length - 1]) && from[length - 1])
        length--;
    return (struct wr_json){ WR_JSON_OBJECT, from, length };
}

static int value_text(struct span *out, char **owned, const struct wr_json *value)
{
    if (value->type == WR_JSON_NULL) {
        *out = (struct span){ "", 0 };
        return 0;
    }
    *out = (struct span){ value->text, value->length };
    if (value->type != WR_JSON_STRING || value->length < 2)
        return 0;
    if (!memchr(value->text, '\\', value->length)) { /* itself, between the quotes */
        *out = (struct span){ value->text + 1, value->length - 2 };
        return 0;
    }
    *owned = malloc(value->length);
    if (!*owned)
        return WEIR_ENOMEM;
    *out = (struct span){ *owned, wr_json_decode(*owned, value) };
    return 0;
}

static int member_field(struct span *out, char **owned, const struct record *record,
                        const char *name, weir_message *message)
{
    struct wr_json value = object_of(record);

    if (!follow(&value, name))
        return refuse(message, "line %" PRIu64 ": the object has no field \"%.80s\"", record->line,
                      name);
    return value_text(out, owned, &value);
}

int record_field(struct span *out, char **owned, const struct record *record,
                 const struct record_syntax *syntax, const char *name, weir_message *message)
{
    *owned = NULL;
    if (syntax->form == FORM_JSONL)
        return member_field(out, owned, record, name, message);
    return column_field(out, record, syntax, name, message);
}

/* ---- what could be one ----------------------------------------------------------------------------- */

static bool is_letter(char c)
{
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char)c >= 0x80;
}

/* Dots only between parts, so that {a..z} is left to the shell. */
static bool looks_like_path(const char *name, size_t length)
{
    if (length == 0 || !is_letter(name[0]) || name[length - 1] == '.')
        return false;
    for (size_t i = 1; i < length; i++) {
        bool digit = name[i] >= '0' && name[i] <= '9';
        if (!is_letter(name[i]) && !digit && name[i] != '-' &&
            (name[i] != '.' || name[i - 1] == '.'))
            return false;
    }
    return true;
}

bool record_may_have(const struct record_syntax *syntax, const char *name, size_t length)
{
    return column_of(syntax, name, length) ||
           (syntax->form == FORM_JSONL && looks_like_path(name, length));
}
