/* Values on the command line, and their product.
 * SPDX-License-Identifier: MIT */
#include "cli/input/values.h"

#include "cli/input/reader.h"
#include "cli/opt/refuse.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct list {
    struct span *value;
    size_t count;
    char **owned; /* texts of values from files */
    size_t owned_count;
    bool linked; /* goes on with the list before */
};

/* Lists that are linked go on together; the product counts only the first of them. */
struct values {
    struct list *list;
    size_t count;
    size_t *position; /* by list; of linked ones the first list's counts */
    uint64_t total, taken;
};

/* ::: :::+ :::: ::::+ */
bool values_open(const char *word)
{
    size_t colons = strspn(word, ":");

    return (colons == 3 || colons == 4) && (!word[colons] || !strcmp(word + colons, "+"));
}

/* ---- lists ---------------------------------------------------------------------------------------- */

static struct list *add_list(struct values *values, bool linked)
{
    struct list *larger = realloc(values->list, (values->count + 1) * sizeof(*larger));

    if (!larger)
        return NULL;
    values->list = larger;
    larger[values->count] = (struct list){ .linked = linked };
    return &larger[values->count++];
}

static int add_value(struct list *list, const char *text, size_t length)
{
    struct span *larger = list->value;

    if (!(list->count & (list->count - 1))) /* at a power of two */
        larger = realloc(larger, (list->count ? 2 * list->count : 1) * sizeof(*larger));
    if (!larger)
        return WEIR_ENOMEM;
    list->value = larger;
    list->value[list->count++] = (struct span){ text, length };
    return 0;
}

static int own(struct list *list, char *text)
{
    char **larger = realloc(list->owned, (list->owned_count + 1) * sizeof(*larger));

    if (!larger) {
        free(text);
        return WEIR_ENOMEM;
    }
    list->owned = larger;
    list->owned[list->owned_count++] = text;
    return 0;
}

static int add_lines(struct list *list, struct reader *reader, weir_message *message)
{
    struct record record;
    int rc;

    while ((rc = reader_next(&record, reader, message)) > 0) {
        rc = own(list, record.text);
        if (!rc)
            rc = add_value(list, record.text, record.length);
        if (rc)
            return rc;
    }
    return rc;
}

static int add_file(struct list *list, const char *path, char separator, weir_message *message)
{
    static const struct record_syntax lines = { .form = FORM_LINES };
    int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : 0, rc;
    struct reader *reader = NULL;

    if (fd < 0)
        return refuse(message, "%.200s: %s", path, strerror(errno));
    rc = reader_new(&reader, fd, path, separator, &lines, -1);
    if (!rc)
        rc = add_lines(list, reader, message);
    reader_free(reader);
    if (fd)
        close(fd);
    return rc;
}

/* One list of words up to the next that opens one; *words moves there. */
static int add_words(struct values *values, char ***words, bool linked)
{
    struct list *list = add_list(values, linked);
    int rc = list ? 0 : WEIR_ENOMEM;

    for (; !rc && **words && !values_open(**words); ++*words)
        rc = add_value(list, **words, strlen(**words));
    return rc;
}

/* A list for each file. */
static int add_files(struct values *values, char ***words, bool linked, char separator,
                     weir_message *message)
{
    int rc = 0;

    for (; !rc && **words && !values_open(**words); ++*words) {
        struct list *list = add_list(values, linked);
        rc = list ? add_file(list, **words, separator, message) : WEIR_ENOMEM;
    }
    return rc;
}

static int add_all(struct values *values, char **words, char separator, weir_message *message)
{
    int rc = 0;

    while (*words && !rc) {
        const char *opener = *words++;
        bool files = opener[3] == ':', linked = opener[strlen(opener) - 1] == '+';
        if (linked && !values->count)
            return refuse(message,
                          "%s links to the list before it: begin with ::: or ::::", opener);
        rc = files ? add_files(values, &words, linked, separator, message)
                   : add_words(values, &words, linked);
    }
    return rc;
}

/* ---- the product ---------------------------------------------------------------------------------- */

/* How many steps the list at i takes with those that are linked to it: the shortest decides. */
static size_t steps_of(const struct values *values, size_t i)
{
    size_t steps = values->list[i].count;

    while (++i < values->count && values->list[i].linked)
        if (values->list[i].count < steps)
            steps = values->list[i].count;
    return steps;
}

static int count_all(struct values *values, weir_message *message)
{
    values->total = 1;
    for (size_t i = 0; i < values->count; i++)
        if (!values->list[i].linked &&
            __builtin_mul_overflow(values->total, steps_of(values, i), &values->total))
            return refuse(message, "the lists have too many combinations");
    return 0;
}

int values_new(struct values **out, char **words, char separator, weir_message *message)
{
    struct values *values = *out = calloc(1, sizeof(*values));
    int rc = values ? add_all(values, words, separator, message) : WEIR_ENOMEM;

    if (!rc)
        rc = count_all(values, message);
    if (!rc) {
        values->position = calloc(values->count + 1, sizeof(*values->position));
        rc = values->position ? 0 : WEIR_ENOMEM;
    }
    return rc;
}

void values_free(struct values *values)
{
    if (!values)
        return;
    for (size_t i = 0; i < values->count; i++) {
        for (size_t k = 0; k < values->list[i].owned_count; k++)
            free(values->list[i].owned[k]);
        free(values->list[i].owned);
        free(values->list[i].value);
    }
    free(values->list);
    free(values->position);
    free(values);
}

uint64_t values_total(const struct values *values)
{
    return values->total;
}

uint64_t values_taken(const struct values *values)
{
    return values->taken;
}

void values_rewind(struct values *values)
{
    values->taken = 0;
    memset(values->position, 0, values->count * sizeof(*values->position));
}

static const struct span *value_of(const struct values *values, size_t i)
{
    size_t first = i;

    while (values->list[first].linked)
        first--;
    return &values->list[i].value[values->position[first]];
}

/* The last list turns fastest. */
static void turn(struct values *values)
{
    for (size_t i = values->count; i-- > 0;) {
        if (values->list[i].linked)
            continue;
        if (++values->position[i] < steps_of(values, i))
            return;
        values->position[i] = 0;
    }
}

int values_next(struct record *out, struct values *values)
{
    size_t length = values->count ? values->count - 1 : 0, used = 0;

    if (values->taken == values->total || !values->count)
        return 0;
    for (size_t i = 0; i < values->count; i++)
        length += value_of(values, i)->length;
    *out = (struct record){ .length = length, .line = values->taken + 1, .is_split = true };
    out->text = malloc(length + 1);
    out->fields = malloc(values->count * sizeof(*out->fields));
    if (!out->text || !out->fields) {
        record_fini(out);
        return WEIR_ENOMEM;
    }
    for (size_t i = 0; i < values->count; i++) {
        const struct span *value = value_of(values, i);
        memcpy(out->text + used, value->text, value->length);
        out->fields[out->field_count++] = (struct span){ out->text + used, value->length };
        used += value->length;
        out->text[used++] = ' ';
    }
    out->text[length] = 0;
    values->taken++;
    turn(values);
    return 1;
}
