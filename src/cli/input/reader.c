/* Records from a descriptor: a large buffer, searched for ends of lines.
 *
 *     buffer   [ handed out | begin ... scanned ... end | room ]
 *
 * Between begin and scanned no record ends; `place` is where in a CSV row `scanned` is.
 * SPDX-License-Identifier: MIT */
#include "cli/input/reader.h"

#include "cli/input/csv.h"
#include "cli/opt/refuse.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER_SIZE = 256 << 10 };

static const char byte_order_mark[3] = { '\xef', '\xbb', '\xbf' };

struct reader {
    const struct record_syntax *syntax;
    char *name;
    int fd, stop_fd;
    char separator;
    const char *ending; /* of several bytes, in place of the separator; NULL: none */
    size_t ending_length;
    bool ended;       /* the input did */
    bool past_mark;   /* no byte order mark is to be expected any more */
    uint64_t line;    /* number of the line at begin */
    uint64_t handled; /* bytes before begin, since the beginning of the input */
    enum csv_place place;
    size_t begin, scanned, end, capacity;
    char *buffer;
};

int reader_new(struct reader **out, int fd, const char *name, char separator,
               const struct record_syntax *syntax, int stop_fd)
{
    struct reader *reader = calloc(1, sizeof(*reader));

    *out = NULL;
    if (!reader)
        return WEIR_ENOMEM;
    reader->syntax = syntax;
    reader->fd = fd;
    reader->stop_fd = stop_fd;
    reader->separator = separator;
    reader->past_mark = syntax->form == FORM_LINES;
    reader->line = 1;
    reader->capacity = BUFFER_SIZE;
    reader->name = strdup(name);
    reader->buffer = malloc(reader->capacity);
    if (!reader->name || !reader->buffer) {
        reader_free(reader);
        return WEIR_ENOMEM;
    }
    *out = reader;
    return 0;
}

void reader_set_end(struct reader *reader, const char *text, size_t length)
{
    reader->ending = text;
    reader->ending_length = length;
}

void reader_free(struct reader *reader)
{
    if (!reader)
        return;
    free(reader->name);
    free(reader->buffer);
    free(reader);
}

uint64_t reader_bytes(const struct reader *reader)
{
    return reader->handled;
}

/* ---- reading ------------------------------------------------------------------------------------- */

static int resize(struct reader *reader, size_t capacity)
{
    char *buffer = realloc(reader->buffer, capacity);

    if (!buffer)
        return WEIR_ENOMEM;
    reader->buffer = buffer;
    reader->capacity = capacity;
    return 0;
}

/* Moves what is left to the front, and grows when that is more than half of the buffer: so each byte is
 * moved a few times at most. */
static int make_room(struct reader *reader)
{
    size_t left = reader->end - reader->begin;

    if (reader->end < reader->capacity && left)
        return 0;
    memmove(reader->buffer, reader->buffer + reader->begin, left);
    reader->scanned -= reader->begin;
    reader->begin = 0;
    reader->end = left;
    if (left > reader->capacity / 2)
        return resize(reader, reader->capacity * 2);
    if (reader->capacity > BUFFER_SIZE && left < BUFFER_SIZE / 2)
        (void)resize(reader,
                     BUFFER_SIZE); /* after one long line; it does no harm if shrinking fails */
    return 0;
}

/* Waits until there is input. Regular files are always ready, so this costs them one call per buffer. */
static int wait_for_input(const struct reader *reader)
{
    struct pollfd fds[2] = { { .fd = reader->stop_fd, .events = POLLIN },
                             { .fd = reader->fd, .events = POLLIN } };

    while (poll(fds, 2, -1) < 0)
        if (errno != EINTR && errno != EAGAIN)
            return -errno;
    return fds[0].revents ? WEIR_ECANCELED : 0;
}

static int fill(struct reader *reader, weir_message *message)
{
    ssize_t count;
    int rc = make_room(reader);

    if (rc < 0)
        return rc;
    do {
        rc = wait_for_input(reader);
        if (rc < 0)
            return rc;
        count = read(reader->fd, reader->buffer + reader->end, reader->capacity - reader->end);
    } while (count < 0 && (errno == EINTR || errno == EAGAIN));
    if (count < 0) {
        rc = -errno;
        refuse(message, "%.100s: %s", reader->name, weir_strerror(rc));
        return rc;
    }
    reader->end += (size_t)count;
    reader->ended = count == 0;
    return 0;
}

/* ---- finding records ----------------------------------------------------------------------------- */

static void advance(struct reader *reader, size_t count)
{
    reader->begin += count;
    reader->handled += count;
    if (reader->scanned < reader->begin)
        reader->scanned = reader->begin;
}

/* False: what is there could become a byte order mark with more input. */
static bool pass_mark(struct reader *reader)
{
    size_t left = reader->end - reader->begin, size = sizeof(byte_order_mark);
    bool same =
        memcmp(reader->buffer + reader->begin, byte_order_mark, left < size ? left : size) == 0;

    if (same && left < size && !reader->ended)
        return false;
    if (same && left >= size)
        advance(reader, size);
    reader->past_mark = true;
    return true;
}

/* The same for an ending of several bytes, of which only a part may be in the buffer yet. */
static const char *find_text(struct reader *reader)
{
    const char *from = reader->buffer + reader->scanned;
    size_t length = reader->end - reader->scanned, keep = reader->ending_length - 1;
    const char *found = memmem(from, length, reader->ending, reader->ending_length);

    if (found)
        reader->scanned = (size_t)(found - reader->buffer);
    else if (reader->ended)
        reader->scanned = reader->end;
    else if (length > keep)
        reader->scanned = reader->end - keep;
    return found;
}

/* Where the record at begin ends; NULL: not in the buffer. */
static const char *find_end(struct reader *reader)
{
    const char *from, *found;
    size_t length;

    if (!reader->past_mark && !pass_mark(reader))
        return NULL;
    from = reader->buffer + reader->scanned;
    length = reader->end - reader->scanned;
    if (reader->syntax->form == FORM_CSV)
        found = csv_row_end(&reader->place, from, length,
                            reader->syntax->delimiter ? reader->syntax->delimiter : ',',
                            reader->separator);
    else if (reader->ending)
        return find_text(reader);
    else
        found = memchr(from, reader->separator, length);
    reader->scanned = found ? (size_t)(found - reader->buffer) : reader->end;
    return found;
}

static bool is_empty(const struct reader *reader, const char *text, size_t length)
{
    if (reader->syntax->form != FORM_JSONL)
        return length == 0;
    for (size_t i = 0; i < length; i++)
        if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r')
            return false;
    return true;
}

static uint64_t count_lines(const struct reader *reader, const char *text, size_t length)
{
    const char *end = text + length;
    uint64_t lines = 0;

    if (reader->syntax->form == FORM_CSV && reader->separator == '\n')
        for (; (text = memchr(text, '\n', (size_t)(end - text))); text++)
            lines++;
    return lines;
}

static int take(struct record *out, const struct reader *reader, const char *text, size_t length)
{
    char *copy = malloc(length + 1);

    if (!copy)
        return WEIR_ENOMEM;
    memcpy(copy, text, length);
    copy[length] = '\0';
    *out = (struct record){ .text = copy, .length = length, .line = reader->line };
    return 1;
}

/* The record of `length` bytes at begin, of which `ending` more are the separator. 1: a record; 0: an empty
 * line that means nothing. */
static int take_or_skip(struct record *out, struct reader *reader, size_t length, size_t ending)
{
    const char *text = reader->buffer + reader->begin;
    size_t kept = length;
    uint64_t lines = 1 + count_lines(reader, text, length);
    int rc = 0;

    if (reader->syntax->form != FORM_LINES) {
        if (ending && reader->separator == '\n' && kept && text[kept - 1] == '\r')
            kept--;
        if (!is_empty(reader, text, kept))
            rc = take(out, reader, text, kept);
    } else {
        rc = take(out, reader, text, kept);
    }
    if (rc < 0)
        return rc;
    if (rc > 0)
        out->is_cut = !ending;
    reader->line += lines;
    reader->place = CSV_FIELD_START;
    advance(reader, length + ending);
    return rc;
}

static int too_long(const struct reader *reader, weir_message *message)
{
    return refuse(message, "%.100s: line %" PRIu64 " is longer than %d MiB%s", reader->name,
                  reader->line, READER_RECORD_MAX >> 20,
                  reader->place == CSV_QUOTED ? "; is a quote never closed?" : "");
}

static size_t ending_size(const struct reader *reader)
{
    return reader->ending ? reader->ending_length : 1;
}

int reader_next(struct record *out, struct reader *reader, weir_message *message)
{
    for (;;) {
        const char *found = find_end(reader);
        size_t length = reader->scanned - reader->begin;
        int rc;

        if (length > READER_RECORD_MAX)
            return too_long(reader, message);
        if (found || (reader->ended && length)) {
            rc = take_or_skip(out, reader, length, found ? ending_size(reader) : 0);
            if (rc)
                return rc;
        } else if (reader->ended) {
            return 0;
        } else {
            rc = fill(reader, message);
            if (rc < 0)
                return rc;
        }
    }
}
