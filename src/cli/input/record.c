/* Records: their fields, and the names these have.
 * SPDX-License-Identifier: MIT */
#include "cli/input/record.h"

#include "base/json.h"
#include "cli/input/csv.h"
#include "cli/opt/refuse.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int record_too_wide(const struct record *record, weir_message *message)
{
    return refuse(message, "line %" PRIu64 " has more than %d columns", record->line,
                  RECORD_FIELDS_MAX);
}

/* ---- lines --------------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static size_t count_words(const struct record *record)
{
    size_t count = 0;
    bool inside = false;

    for (size_t i = 0; i < record->length; i++) {
        bool blank = is_blank(record->text[i]);
        count += !blank && !inside;
        inside = !blank;
    }
    return count;
}

/* Runs of blanks separate; those at both ends mean nothing. */
static int split_at_blanks(struct record *record, weir_message *message)
{
    const char *at = record->text, *end = at + record->length, *from;
    size_t count = count_words(record);

    if (count > RECORD_FIELDS_MAX)
        return record_too_wide(record, message);
    record->fields = malloc((count + 1) * sizeof(record->fields[0]));
    if (!record->fields)
        return WEIR_ENOMEM;
    while (record->field_count < count) {
        while (is_blank(*at))
            at++;
        for (from = at; at < end && !is_blank(*at);)
            at++;
        record->fields[record->field_count++] = (struct span){ from, (size_t)(at - from) };
    }
    return 0;
}

/* Each delimiter separates two fields, so there is always one field at least. */
static int split_at(struct record *record, const char *delimiter, size_t size,
                    weir_message *message)
{
    const char *at = record->text, *end = at + record->length;
    size_t count = 1;

    for (const char *p = at; (p = memmem(p, (size_t)(end - p), delimiter, size)); p += size)
        count++;
    if (count > RECORD_FIELDS_MAX)
        return record_too_wide(record, message);
    record->fields = malloc(count * sizeof(record->fields[0]));
    if (!record->fields)
        return WEIR_ENOMEM;
    while (record->field_count < count) {
        const char *stop = memmem(at, (size_t)(end - at), delimiter, size);
        if (!stop)
            stop = end;
        record->fields[record->field_count++] = (struct span){ at, (size_t)(stop - at) };
        at = stop + size;
    }
    return 0;
}

/* ---- TSV ----------------------------------------------------------------------------------------- */

/* Copies with escapes resolved; other backslashes stay. Answers the length. */
static size_t unescape(char *out, const struct span *field)
{
    static const char letters[] = "tnr\\", meanings[] = "\t\n\r\\";
    size_t used = 0;

    for (size_t i = 0; i < field->length; i++) {
        char c = field->text[i], next = i + 1 < field->length ? field->text[i + 1] : '\0';
        const char *known = c == '\\' && next ? strchr(letters, next) : NULL;
        out[used++] = known ? meanings[known - letters] : c;
        i += known != NULL;
    }
    return used;
}

static int split_tsv(struct record *record, char delimiter, weir_message *message)
{
    char *out;
    int rc = split_at(record, &delimiter, 1, message);

    if (rc < 0 || !memchr(record->text, '\\', record->length))
        return rc;
    out = record->decoded = malloc(record->length);
    if (!out)
        return WEIR_ENOMEM;
    for (size_t i = 0; i < record->field_count; i++) {
        struct span *field = &record->fields[i];
        field->length = unescape(out, field);
        field->text = out;
        out += field->length;
    }
    return 0;
}

/* ---- JSON ---------------------------------------------------------------------------------------- */

static int check_object(const struct record *record, weir_message *message)
{
    struct wr_json value;
    size_t at;

    if (wr_json_parse(&value, &at, record->text, record->length) < 0)
        return refuse(message, "line %" PRIu64 ": not valid JSON at byte %zu", record->line,
                      at + 1);
    if (value.type != WR_JSON_OBJECT)
        return refuse(message, "line %" PRIu64 ": expected a JSON object such as {\"a\": 1}",
                      record->line);
    return 0;
}

/* ---- records ------------------------------------------------------------------------------------- */

static void forget_fields(struct record *record)
{
    free(record->fields);
    free(record->decoded);
    record->fields = NULL;
    record->field_count = 0;
    record->decoded = NULL;
}

int record_split(struct record *record, const struct record_syntax *syntax, weir_message *message)
{
    char delimiter = syntax->delimiter;
    int rc = 0;

    if (record->is_split)
        return 0;
    forget_fields(record);
    switch (syntax->form) {
    case FORM_LINES:
        if (syntax->delimiter_text)
            rc = split_at(record, syntax->delimiter_text, strlen(syntax->delimiter_text), message);
        else
            rc = delimiter ? split_at(record, &delimiter, 1, message)
                           : split_at_blanks(record, message);
        break;
    case FORM_CSV:
        rc = csv_split(record, delimiter ? delimiter : ',', message);
        break;
    case FORM_TSV:
        rc = split_tsv(record, delimiter ? delimiter : '\t', message);
        break;
    case FORM_JSONL:
        rc = check_object(record, message);
        break;
    }
    if (rc < 0)
        forget_fields(record);
    return rc;
}

void record_fini(struct record *record)
{
    forget_fields(record);
    free(record->text);
    record->text = NULL;
    record->length = 0;
}

/* ---- names --------------------------------------------------------------------------------------- */

/* Whether an earlier column has the same name; those without have none to share. */
static bool is_taken(const struct record *header, size_t column)
{
    const struct span *name = &header->fields[column];

    for (size_t i = 0; i < column && name->length; i++)
        if (header->fields[i].length == name->length &&
            memcmp(header->fields[i].text, name->text, name->length) == 0)
            return true;
    return false;
}

static int add_name(struct record_syntax *syntax, const struct record *header, size_t column,
                    weir_message *message)
{
    const struct span *field = &header->fields[column];
    char *name;

    if (memchr(field->text, '\0', field->length))
        return refuse(message, "the header's column %zu has a zero byte in its name", column + 1);
    if (is_taken(header, column))
        return refuse(message, "the header has two columns named \"%.*s\"",
                      field->length < 80 ? (int)field->length : 80, field->text);
    name = strndup(field->text, field->length);
    if (!name)
        return WEIR_ENOMEM;
    syntax->names[syntax->name_count++] = name;
    return 0;
}

int record_syntax_set_names(struct record_syntax *syntax, const struct record *header,
                            weir_message *message)
{
    int rc = 0;

    record_syntax_fini(syntax);
    syntax->names = calloc(header->field_count + 1, sizeof(syntax->names[0]));
    if (!syntax->names)
        return WEIR_ENOMEM;
    for (size_t i = 0; i < header->field_count && rc == 0; i++)
        rc = add_name(syntax, header, i, message);
    if (rc < 0)
        record_syntax_fini(syntax);
    return rc;
}

void record_syntax_fini(struct record_syntax *syntax)
{
    for (size_t i = 0; i < syntax->name_count; i++)
        free(syntax->names[i]);
    free(syntax->names);
    syntax->names = NULL;
    syntax->name_count = 0;
}
