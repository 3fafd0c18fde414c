/* Records from all inputs of a run.
 * SPDX-License-Identifier: MIT */
#include "cli/input/records.h"

#include "cli/input/reader.h"
#include "cli/input/values.h"
#include "cli/opt/refuse.h"
#include "cli/screen/say.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

struct input {
    const char *name; /* NULL: standard input */
    int fd;           /* -1: not open yet     */
    int64_t size;     /* -1: not known        */
    uint64_t device, inode;
};

struct records {
    const struct feed_options *opt;
    struct record_syntax *syntax;
    int stop_fd;
    struct values *values; /* NULL: inputs are read */
    struct input *input;
    size_t inputs, current;
    struct reader *reader; /* of the current one */
    uint64_t before;       /* bytes of the inputs before it */
    bool none;
    struct record *shuffled; /* all of them; NULL: not read */
    size_t shuffled_count, served;
};

static int wrong(const char *what, const char *why)
{
    say("%s: %s", what, why);
    return SAY_WRONG;
}

static const char *name_of(const struct input *input)
{
    return input->name ? input->name : "standard input";
}

/* ---- opening --------------------------------------------------------------------------------------- */

static int open_input(struct records *records, struct input *input)
{
    struct stat st;

    if (!input->name && records->opt->stdin_is_closed)
        return wrong("standard input",
                     "it is closed; name a file with -a, or write ::: and values");
    input->fd = input->name ? open(input->name, O_RDONLY | O_CLOEXEC) : 0;
    if (input->fd < 0)
        return say_wrong(input->name, errno);
    if (fstat(input->fd, &st) == 0) {
        input->size = S_ISREG(st.st_mode) ? st.st_size : -1;
        input->device = st.st_dev;
        input->inode = st.st_ino;
    }
    if (input->name && S_ISDIR(st.st_mode))
        return say_wrong(input->name, EISDIR);
    if (!input->name && isatty(0))
        say("reading records from the terminal; Ctrl-D ends the input");
    return 0;
}

/* All inputs are opened before anything is run: a wrong name is noticed at once. */
static int open_inputs(struct records *records)
{
    const struct feed_options *opt = records->opt;
    size_t count = opt->input_count ? opt->input_count : 1;
    int status = 0;

    records->input = calloc(count, sizeof(*records->input));
    if (!records->input)
        return say_wrong("cannot start", ENOMEM);
    for (; records->inputs < count && !status; records->inputs++) {
        struct input *input = &records->input[records->inputs];
        const char *name = opt->input_count ? opt->inputs[records->inputs] : "-";
        *input = (struct input){ .name = strcmp(name, "-") ? name : NULL, .fd = -1, .size = -1 };
        status = open_input(records, input);
    }
    return status;
}

/* A reader for the current input. */
static int start_reader(struct records *records)
{
    struct input *input = &records->input[records->current];
    int rc;

    reader_free(records->reader);
    records->reader = NULL;
    rc = reader_new(&records->reader, input->fd, name_of(input), records->opt->separator,
                    records->syntax, records->stop_fd);
    if (!rc && records->opt->record_end)
        reader_set_end(records->reader, records->opt->record_end, records->opt->record_end_length);
    return rc;
}

/* ---- headers --------------------------------------------------------------------------------------- */

static bool has_header(const struct records *records)
{
    return records->opt->header &&
           (records->syntax->form == FORM_CSV || records->syntax->form == FORM_TSV);
}

/* Further files have the same columns as the first. */
static int compare_header(const struct records *records, const struct record *header,
                          weir_message *message)
{
    const struct record_syntax *syntax = records->syntax;
    bool same = header->field_count == syntax->name_count;

    for (size_t i = 0; i < syntax->name_count && same; i++)
        same = strlen(syntax->names[i]) == header->fields[i].length &&
               !memcmp(syntax->names[i], header->fields[i].text, header->fields[i].length);
    return same ? 0
                : refuse(message,
                         "%.200s: its header differs from that of %.200s: files that are read "
                         "together need the same columns",
                         name_of(&records->input[records->current]), name_of(records->input));
}

/* Reads the first row of the current input, if that has names. 1: there is one, or none is needed; 0: it is empty. */
static int take_header(struct records *records, weir_message *message)
{
    struct record header;
    int rc;

    if (!has_header(records))
        return 1;
    rc = reader_next(&header, records->reader, message);
    if (rc <= 0)
        return rc;
    rc = record_split(&header, records->syntax, message);
    if (!rc && records->syntax->names)
        rc = compare_header(records, &header, message);
    else if (!rc)
        rc = record_syntax_set_names(records->syntax, &header, message);
    record_fini(&header);
    return rc ? rc : 1;
}

/* ---- one after the other --------------------------------------------------------------------------- */

static void name_file(const struct records *records, weir_message *message)
{
    char text[sizeof(message->text)];
    const char *name = name_of(&records->input[records->current]);

    if (records->inputs < 2 || !message->text[0] || strstr(message->text, name))
        return;
    snprintf(text, sizeof(text), "%.200s: %.*s", name, (int)sizeof(text) - 210, message->text);
    memcpy(message->text, text, sizeof(text));
}

static int next_of_inputs(struct record *out, struct records *records, weir_message *message)
{
    int rc;

    while ((rc = reader_next(out, records->reader, message)) == 0 &&
           records->current + 1 < records->inputs) {
        records->before += reader_bytes(records->reader);
        records->current++;
        rc = start_reader(records);
        if (!rc)
            rc = take_header(records, message);
        if (rc < 0)
            break;
    }
    if (rc < 0)
        name_file(records, message);
    return rc;
}

static int next_in_order(struct record *out, struct records *records, weir_message *message)
{
    return records->values ? values_next(out, records->values)
                           : next_of_inputs(out, records, message);
}

/* ---- --shuf ---------------------------------------------------------------------------------------- */

static uint64_t luck_below(uint64_t n)
{
    uint64_t random = 0;

    if (getrandom(&random, sizeof(random), 0) != sizeof(random))
        random = (uint64_t)weir_now();
    return random % n;
}

static int read_all(struct records *records, weir_message *message)
{
    size_t size = 0;
    struct record record, *larger;
    int rc;

    records->shuffled = malloc(sizeof(*records->shuffled));
    if (!records->shuffled)
        return WEIR_ENOMEM;
    while ((rc = next_in_order(&record, records, message)) > 0) {
        if (records->shuffled_count == size) {
            size = size ? 2 * size : 1024;
            larger = realloc(records->shuffled, size * sizeof(*larger));
            if (!larger) {
                record_fini(&record);
                return WEIR_ENOMEM;
            }
            records->shuffled = larger;
        }
        records->shuffled[records->shuffled_count++] = record;
    }
    for (size_t i = records->shuffled_count; i > 1; i--) {
        size_t other = luck_below(i);
        record = records->shuffled[i - 1];
        records->shuffled[i - 1] = records->shuffled[other];
        records->shuffled[other] = record;
    }
    return rc;
}

static int next_by_luck(struct record *out, struct records *records, weir_message *message)
{
    int rc = records->shuffled ? 0 : read_all(records, message);

    if (rc < 0)
        return rc;
    if (records->served == records->shuffled_count)
        return 0;
    *out = records->shuffled[records->served];
    records->shuffled[records->served++] = (struct record){ 0 };
    return 1;
}

int records_next(struct record *out, struct records *records, weir_message *message)
{
    return records->opt->shuffle ? next_by_luck(out, records, message)
                                 : next_in_order(out, records, message);
}

/* ---- the whole ------------------------------------------------------------------------------------- */

static int open_lists(struct records *records)
{
    weir_message message = { "" };
    int rc = values_new(&records->values, records->opt->lists, records->opt->separator, &message);

    if (!rc)
        return 0;
    say("%s", message.text[0] ? message.text : weir_strerror(rc));
    return SAY_WRONG;
}

static int open_first(struct records *records)
{
    weir_message message = { "" };
    int status = open_inputs(records), rc;

    if (status)
        return status;
    rc = start_reader(records);
    if (!rc)
        rc = take_header(records, &message);
    records->none = records->syntax->names_lost = rc == 0;
    if (rc >= 0)
        return 0;
    say("%s", message.text[0] ? message.text : weir_strerror(rc));
    return SAY_WRONG;
}

int records_open(struct records **out, const struct feed_options *opt, struct record_syntax *syntax,
                 int stop_fd)
{
    struct records *records = *out = calloc(1, sizeof(*records));

    if (!records)
        return say_wrong("cannot start", ENOMEM);
    records->opt = opt;
    records->syntax = syntax;
    records->stop_fd = stop_fd;
    return opt->lists ? open_lists(records) : open_first(records);
}

void records_free(struct records *records)
{
    if (!records)
        return;
    for (size_t i = records->served; i < records->shuffled_count; i++)
        record_fini(&records->shuffled[i]);
    for (size_t i = 0; i < records->inputs; i++)
        if (records->input[i].fd > 0)
            close(records->input[i].fd);
    free(records->shuffled);
    free(records->input);
    values_free(records->values);
    reader_free(records->reader);
    free(records);
}

bool records_are_none(const struct records *records)
{
    return records->none;
}

uint64_t records_position(const struct records *records)
{
    if (records->values)
        return values_taken(records->values);
    return records->before + reader_bytes(records->reader);
}

int64_t records_size(const struct records *records)
{
    int64_t size = 0;

    if (records->values)
        return (int64_t)values_total(records->values);
    for (size_t i = 0; i < records->inputs; i++) {
        if (records->input[i].size < 0)
            return 0;
        size += records->input[i].size;
    }
    return size;
}

bool records_are_used_up(const struct records *records)
{
    int64_t size = records_size(records);

    return size > 0 && records_position(records) >= (uint64_t)size &&
           records->served == records->shuffled_count;
}

int records_input(const struct records *records, size_t index, uint64_t *device, uint64_t *inode)
{
    if (index >= records->inputs)
        return -1;
    *device = records->input[index].device;
    *inode = records->input[index].inode;
    return 0;
}
