/* The screen: rows of cells, of which the last few are in view.
 * SPDX-License-Identifier: MIT */
#include "command/screen.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

enum { PARAMETERS_MAX = 8 };

/* A character with its marks. The right half of a wide one has columns 0. */
struct cell {
    char bytes[20]; /* empty: blank */
    int columns;
};

struct row {
    struct cell *cells;
    int length;   /* cells that were written to */
    bool wrapped; /* the next row goes on with the same line */
};

struct screen {
    int cols, rows;
    struct row *all; /* history first; the last `rows` of them are in view */
    int count, size;
    int row, col;      /* of the cursor, row within the view */
    bool pending_wrap; /* the last column is written; the next character goes to the next row */
    bool visible;
    int unknown;
    char *text; /* lent to the caller */

    enum { GROUND, ESCAPE, SEQUENCE, STRING } state;
    char private;
    int parameters[PARAMETERS_MAX], parameter_count;
    unsigned char utf8[4];
    int utf8_length, utf8_need;
};

static void *must(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

static struct row *row_at(struct screen *s, int row)
{
    return &s->all[s->count - s->rows + row];
}

static void add_row(struct screen *s)
{
    if (s->count == s->size) {
        s->size = 2 * s->size + 64;
        s->all = must(realloc(s->all, (size_t)s->size * sizeof(*s->all)));
    }
    s->all[s->count++] =
        (struct row){ .cells = must(calloc((size_t)s->cols, sizeof(struct cell))) };
}

static void cut_row(struct row *row, int length)
{
    for (int i = length; i < row->length; i++)
        row->cells[i] = (struct cell){ 0 };
    if (row->length > length)
        row->length = length;
    row->wrapped = false;
}

struct screen *screen_new(int cols, int rows)
{
    struct screen *s = must(calloc(1, sizeof(*s)));

    s->cols = cols;
    s->rows = rows;
    s->visible = true;
    while (s->count < rows)
        add_row(s);
    return s;
}

static void free_rows(struct row *rows, int count)
{
    for (int i = 0; i < count; i++)
        free(rows[i].cells);
    free(rows);
}

void screen_free(struct screen *s)
{
    if (!s)
        return;
    free_rows(s->all, s->count);
    free(s->text);
    free(s);
}

/* ---- writing ------------------------------------------------------------------------------------- */

static void line_feed(struct screen *s)
{
    s->pending_wrap = false;
    if (s->row < s->rows - 1)
        s->row++;
    else
        add_row(s);
}

static void put_wide(struct screen *s, const char *bytes, int columns)
{
    struct row *row;

    if (s->pending_wrap || s->col + columns > s->cols) {
        row_at(s, s->row)->wrapped = true;
        s->col = 0;
        line_feed(s);
    }
    row = row_at(s, s->row);
    for (int i = 0; i < columns && s->col + i < s->cols; i++)
        row->cells[s->col + i] = (struct cell){ .columns = i == 0 ? columns : 0 };
    snprintf(row->cells[s->col].bytes, sizeof(row->cells[0].bytes), "%s", bytes);
    s->col += columns;
    if (row->length < s->col)
        row->length = s->col;
    if (s->col >= s->cols) {
        s->col = s->cols - 1;
        s->pending_wrap = true;
    }
}

/* A mark goes on top of what was written last. */
static void put_mark(struct screen *s, const char *bytes)
{
    struct row *row = row_at(s, s->row);
    int col = s->pending_wrap ? s->col : s->col - 1;
    struct cell *cell;

    while (col > 0 && row->cells[col].columns == 0)
        col--;
    if (col < 0)
        return;
    cell = &row->cells[col];
    if (strlen(cell->bytes) + strlen(bytes) < sizeof(cell->bytes))
        strcat(cell->bytes, bytes);
}

static void put_character(struct screen *s, uint32_t c, const char *bytes)
{
    int columns = c < 0x80 ? 1 : wcwidth((wchar_t)c);

    if (columns < 0) {
        s->unknown++;
        columns = 1;
    }
    if (columns == 0)
        put_mark(s, bytes);
    else
        put_wide(s, bytes, columns);
}

static void put_utf8(struct screen *s)
{
    char bytes[5] = { 0 };
    uint32_t c = s->utf8[0] & (0x7fu >> s->utf8_length);

    memcpy(bytes, s->utf8, (size_t)s->utf8_length);
    for (int i = 1; i < s->utf8_length; i++)
        c = c << 6 | (s->utf8[i] & 0x3f);
    put_character(s, c, bytes);
    s->utf8_length = s->utf8_need = 0;
}

static void feed_high(struct screen *s, unsigned char byte)
{
    if ((byte & 0xc0) == 0x80 && s->utf8_length > 0) {
        s->utf8[s->utf8_length++] = byte;
        if (s->utf8_length == s->utf8_need)
            put_utf8(s);
        return;
    }
    s->utf8_length = 0;
    s->utf8_need = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    if (byte < 0xc0 || byte >= 0xf8) {
        s->unknown++;
        put_wide(s, "?", 1);
        return;
    }
    s->utf8[s->utf8_length++] = byte;
}

/* ---- sequences ----------------------------------------------------------------------------------- */

static void move_to(struct screen *s, int row, int col)
{
    s->row = row < 0 ? 0 : row >= s->rows ? s->rows - 1 : row;
    s->col = col < 0 ? 0 : col >= s->cols ? s->cols - 1 : col;
    s->pending_wrap = false;
}

static void blank_start(struct screen *s, int row, int to)
{
    struct row *r = row_at(s, row);

    for (int i = 0; i <= to && i < r->length; i++)
        r->cells[i] = (struct cell){ 0 };
}

static void erase_line(struct screen *s, int how)
{
    if (how == 0)
        cut_row(row_at(s, s->row), s->col);
    else if (how == 1)
        blank_start(s, s->row, s->col);
    else
        cut_row(row_at(s, s->row), 0);
    s->pending_wrap = false;
}

static void erase_display(struct screen *s, int how)
{
    erase_line(s, how);
    for (int i = 0; i < s->rows; i++)
        if ((how == 0 && i > s->row) || (how == 1 && i < s->row) || how == 2)
            cut_row(row_at(s, i), 0);
}

static void set_mode(struct screen *s, bool on)
{
    if (s->private != '?')
        s->unknown++;
    else if (s->parameters[0] == 25)
        s->visible = on;
    else if (s->parameters[0] != 2026)
        s->unknown++;
}

static void run_sequence(struct screen *s, char final)
{
    int first = s->parameters[0], n = first > 0 ? first : 1;

    if (final == 'h' || final == 'l')
        set_mode(s, final == 'h');
    else if (s->private)
        s->unknown++;
    else if (final == 'A')
        move_to(s, s->row - n, s->col);
    else if (final == 'B')
        move_to(s, s->row + n, s->col);
    else if (final == 'C')
        move_to(s, s->row, s->col + n);
    else if (final == 'D')
        move_to(s, s->row, s->col - n);
    else if (final == 'E')
        move_to(s, s->row + n, 0);
    else if (final == 'F')
        move_to(s, s->row - n, 0);
    else if (final == 'G')
        move_to(s, s->row, n - 1);
    else if (final == 'H')
        move_to(s, n - 1, s->parameters[1] - 1);
    else if (final == 'J' && first <= 2)
        erase_display(s, first);
    else if (final == 'K' && first <= 2)
        erase_line(s, first);
    else if (final != 'm')
        s->unknown++;
}

static void feed_sequence(struct screen *s, unsigned char byte)
{
    if (byte >= '0' && byte <= '9') {
        int *p = &s->parameters[s->parameter_count];
        *p = *p < 10000 ? *p * 10 + (byte - '0') : *p;
    } else if (byte == ';' || byte == ':') {
        if (s->parameter_count < PARAMETERS_MAX - 1)
            s->parameter_count++;
    } else if (byte >= '<' && byte <= '?') {
        s->private = (char)byte;
    } else if (byte >= 0x40 && byte <= 0x7e) {
        s->state = GROUND;
        run_sequence(s, (char)byte);
    } else {
        s->state = GROUND;
        s->unknown++;
    }
}

static void feed_escape(struct screen *s, unsigned char byte)
{
    s->state = GROUND;
    if (byte == '[') {
        s->state = SEQUENCE;
        s->private = 0;
        memset(s->parameters, 0, sizeof(s->parameters));
        s->parameter_count = 0;
        return;
    }
    s->unknown++;
    if (byte == ']' || byte == 'P') /* a title, say: up to BEL or ESC \ */
        s->state = STRING;
}

static void feed_ground(struct screen *s, unsigned char byte)
{
    if (byte >= 0x80) {
        feed_high(s, byte);
        return;
    }
    s->utf8_length = 0;
    if (byte >= 0x20 && byte != 0x7f)
        put_wide(s, (char[]){ (char)byte, '\0' }, 1);
    else if (byte == '\r')
        move_to(s, s->row, 0);
    else if (byte == '\n')
        line_feed(s);
    else if (byte == '\b')
        move_to(s, s->row, s->col - 1);
    else if (byte == '\t')
        move_to(s, s->row, s->col / 8 * 8 + 8);
    else if (byte != '\a')
        s->unknown++;
}

static void feed_byte(struct screen *s, unsigned char byte)
{
    if (byte == '\033' || s->state == ESCAPE) {
        if (byte != '\033')
            feed_escape(s, byte);
        else if (s->state != STRING)
            s->state = ESCAPE;
    } else if (s->state == SEQUENCE) {
        feed_sequence(s, byte);
    } else if (s->state == STRING) {
        if (byte == '\a' || byte == '\\')
            s->state = GROUND;
    } else {
        feed_ground(s, byte);
    }
}

void screen_feed(struct screen *s, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        feed_byte(s, (unsigned char)bytes[i]);
}

/* ---- another size -------------------------------------------------------------------------------- */

static void copy_cells(struct screen *to, const struct row *row)
{
    for (int i = 0; i < row->length; i++) {
        const struct cell *cell = &row->cells[i];
        if (cell->columns > 0 || !cell->bytes[0])
            put_wide(to, cell->bytes[0] ? cell->bytes : " ", cell->columns > 0 ? cell->columns : 1);
        i += cell->columns > 1 ? cell->columns - 1 : 0;
    }
}

/* Plays all rows again on a screen of the new size. */
void screen_resize(struct screen *s, int cols, int rows)
{
    struct screen *to = screen_new(cols, rows);
    int cursor = s->count - s->rows + s->row, last = s->count - 1, base;
    int row = 0;

    while (last > cursor && s->all[last].length == 0)
        last--;
    for (int i = 0; i <= last; i++) {
        if (i == cursor)
            row = to->count - to->rows + to->row; /* counted from the very first row */
        copy_cells(to, &s->all[i]);
        if (i < last && !s->all[i].wrapped) {
            to->col = 0;
            line_feed(to);
        }
    }
    base = to->count - to->rows;
    move_to(to, row - base, s->col);

    free_rows(s->all, s->count);
    s->all = to->all;
    s->count = to->count;
    s->size = to->size;
    s->cols = cols;
    s->rows = rows;
    s->row = to->row;
    s->col = to->col;
    s->pending_wrap = false;
    to->all = NULL;
    to->count = 0;
    screen_free(to);
}

/* ---- reading ------------------------------------------------------------------------------------- */

static size_t row_text(char *out, const struct row *row)
{
    size_t length = 0;

    for (int i = 0; i < row->length; i++) {
        const struct cell *cell = &row->cells[i];
        const char *bytes = cell->bytes[0] ? cell->bytes : " ";
        memcpy(out + length, bytes, strlen(bytes));
        length += strlen(bytes);
        i += cell->columns > 1 ? cell->columns - 1 : 0;
    }
    while (length > 0 && out[length - 1] == ' ')
        length--;
    out[length] = '\0';
    return length;
}

static char *new_text(struct screen *s, int rows)
{
    size_t row_size = (size_t)s->cols * sizeof(struct cell) + 2;

    free(s->text);
    s->text = must(calloc((size_t)rows + 1, row_size));
    return s->text;
}

const char *screen_line(struct screen *s, int row)
{
    char *text = new_text(s, 1);

    if (row >= 0 && row < s->rows)
        row_text(text, row_at(s, row));
    return text;
}

const char *screen_text(struct screen *s)
{
    char *text = new_text(s, s->count);
    size_t length = 0, end = 0;

    for (int i = 0; i < s->count; i++) {
        size_t added = row_text(text + length, &s->all[i]);
        length += added;
        text[length++] = '\n';
        if (added > 0)
            end = length;
    }
    text[end] = '\0';
    return text;
}

int screen_find(struct screen *s, const char *text)
{
    for (int i = 0; i < s->rows; i++)
        if (strstr(screen_line(s, i), text))
            return i;
    return -1;
}

int screen_cursor_row(const struct screen *s)
{
    return s->row;
}

int screen_cursor_col(const struct screen *s)
{
    return s->col;
}

bool screen_cursor_visible(const struct screen *s)
{
    return s->visible;
}

int screen_unknown(const struct screen *s)
{
    return s->unknown;
}
