/* CSV: rows and their fields.
 * SPDX-License-Identifier: MIT */
#include "cli/input/csv.h"

#include "cli/opt/refuse.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows ---------------------------------------------------------------------------------------- */

static enum csv_place place_after(enum csv_place place, char c, char delimiter)
{
    switch (place) {
    case CSV_QUOTED:
        return c == '"' ? CSV_AFTER_QUOTE : CSV_QUOTED;
    case CSV_AFTER_QUOTE: /* the quote closed the field, or was the first of two */
    case CSV_FIELD_START:
        if (c == '"')
            return CSV_QUOTED;
        break;
    case CSV_UNQUOTED:
        break;
    }
    return c == delimiter ? CSV_FIELD_START : CSV_UNQUOTED;
}

const char *csv_row_end(enum csv_place *place, const char *text, size_t length, char delimiter,
                        char separator)
{
    const char *end = text + length;

    if (*place == CSV_FIELD_START) { /* most rows have no quotes */
        const char *found = memchr(text, separator, length);
        if (found && !memchr(text, '"', (size_t)(found - text)))
            return found;
    }
    for (const char *at = text; at < end; at++) {
        if (*place == CSV_QUOTED) {
            at = memchr(at, '"', (size_t)(end - at));
            if (!at)
                return NULL;
        } else if (*at == separator) {
            *place = CSV_FIELD_START;
            return at;
        }
        *place = place_after(*place, *at, delimiter);
    }
    return NULL;
}

/* ---- fields -------------------------------------------------------------------------------------- */

/* The quote that closes a field which opened before `at`; NULL: none. */
static const char *closing_quote(bool *doubled, const char *at, const char *end)
{
    *doubled = false;
    while ((at = memchr(at, '"', (size_t)(end - at)))) {
        if (at + 1 == end || at[1] != '"')
            return at;
        *doubled = true;
        at += 2;
    }
    return NULL;
}

/* Copies with "" made one quote; answers how much. */
static size_t undouble(char *out, const char *text, size_t length)
{
    size_t used = 0;

    for (size_t i = 0; i < length; i++) {
        out[used++] = text[i];
        if (text[i] == '"')
            i++;
    }
    return used;
}

/* Takes the field at *at, which has a quote, and moves to the delimiter or the end behind it. *used counts
 * what is taken of record->decoded. */
static int take_quoted(struct record *record, const char **at, size_t *used, char delimiter,
                       weir_message *message)
{
    const char *end = record->text + record->length, *from = *at + 1, *close;
    struct span *field = &record->fields[record->field_count++];
    bool doubled;

    close = closing_quote(&doubled, from, end);
    if (!close)
        return refuse(message, "line %" PRIu64 ": a quote is never closed", record->line);
    *at = close + 1;
    if (*at < end && **at != delimiter)
        return refuse(message, "line %" PRIu64 ": text after the closing quote of column %zu",
                      record->line, record->field_count);
    *field = (struct span){ from, (size_t)(close - from) };
    if (!doubled)
        return 0;
    if (!record->decoded)
        record->decoded = malloc(record->length);
    if (!record->decoded)
        return WEIR_ENOMEM;
    field->text = record->decoded + *used;
    field->length = undouble(record->decoded + *used, from, field->length);
    *used += field->length;
    return 0;
}

static void take_unquoted(struct record *record, const char **at, char delimiter)
{
    const char *end = record->text + record->length, *from = *at;
    const char *stop = memchr(from, delimiter, (size_t)(end - from));

    *at = stop ? stop : end;
    record->fields[record->field_count++] = (struct span){ from, (size_t)(*at - from) };
}

/* Room for one more field; it grows by doubling. */
static int make_room(struct record *record, weir_message *message)
{
    enum { FEW = 16 };
    size_t count = record->field_count;
    struct span *larger;

    if (count == RECORD_FIELDS_MAX)
        return record_too_wide(record, message);
    if (count % FEW || (count && count & (count - 1)))
        return 0;
    larger = realloc(record->fields, (count ? 2 * count : FEW) * sizeof(*larger));
    if (!larger)
        return WEIR_ENOMEM;
    record->fields = larger;
    return 0;
}

int csv_split(struct record *record, char delimiter, weir_message *message)
{
    const char *at = record->text, *end = at + record->length;
    size_t used = 0;

    for (;; at++) {
        int rc = make_room(record, message);
        if (rc < 0)
            return rc;
        if (at < end && *at == '"')
            rc = take_quoted(record, &at, &used, delimiter, message);
        else
            take_unquoted(record, &at, delimiter);
        if (rc < 0 || at == end)
            return rc;
    }
}
