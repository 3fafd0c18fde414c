/* Takes prose apart: paragraphs, examples, words.
 * SPDX-License-Identifier: MIT */
#include "cli/opt/opt_text.h"

#include <string.h>

#define EXAMPLE "    " /* what a line of an example begins with */

static const char *line_end(const char *line)
{
    return line + strcspn(line, "\n");
}

static bool line_is_blank(const char *line)
{
    return line[strspn(line, " \t")] == '\n' || !line[strspn(line, " \t")];
}

static bool line_is_example(const char *line)
{
    return strncmp(line, EXAMPLE, strlen(EXAMPLE)) == 0 && !line_is_blank(line);
}

static const char *skip_blank_lines(const char *line)
{
    while (*line && line_is_blank(line)) {
        line = line_end(line);
        line += *line == '\n';
    }
    return line;
}

bool opt_text_piece(struct opt_piece *piece, const char **rest)
{
    const char *line = *rest ? skip_blank_lines(*rest) : "";

    *piece = (struct opt_piece){ .text = line, .example = line_is_example(line) };
    if (!*line)
        return false;
    do {
        const char *end = line_end(line);
        piece->length = (size_t)(end - piece->text);
        line = end + (*end == '\n');
        /* Examples may have blank lines inside, as scripts do. */
        if (piece->example && line_is_example(skip_blank_lines(line)))
            line = line_is_example(line) ? line : skip_blank_lines(line);
    } while (*line && !line_is_blank(line) && line_is_example(line) == piece->example);
    *rest = line;
    return true;
}

bool opt_text_line(struct opt_piece *line, struct opt_piece *from)
{
    const char *end = memchr(from->text, '\n', from->length);
    size_t taken = end ? (size_t)(end - from->text) + 1 : from->length;

    *line = *from;
    if (from->length == 0)
        return false;
    line->length = end ? taken - 1 : taken;
    from->text += taken;
    from->length -= taken;
    return true;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t';
}

bool opt_text_word(struct opt_piece *word, struct opt_piece *from)
{
    while (from->length && is_space(*from->text)) {
        from->text++;
        from->length--;
    }
    *word = (struct opt_piece){ .text = from->text };
    while (from->length && !is_space(*from->text)) {
        from->text++;
        from->length--;
        word->length++;
    }
    return word->length > 0;
}

struct opt_piece opt_text_sentence(const char *text)
{
    struct opt_piece sentence = { .text = text ? text : "" };
    const char *at = sentence.text;

    /* "e.g. this" goes on: what follows a full stop begins with a capital. */
    while (*at && !(*at == '.' && (!at[1] || (is_space(at[1]) && at[2] >= 'A' && at[2] <= 'Z'))))
        at++;
    sentence.length = (size_t)(at - sentence.text);
    return sentence;
}

int opt_text_columns(const char *text, size_t length)
{
    int columns = 0;

    for (size_t i = 0; i < length; i++)
        columns += ((unsigned char)text[i] & 0xc0) != 0x80;
    return columns;
}
