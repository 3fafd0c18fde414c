/* Here-documents of a shell script: their end marks, and where their texts begin and end.
 * SPDX-License-Identifier: MIT */
#include "cli/input/shell_script.h"

#include "cli/opt/refuse.h"

#include <string.h>

/* At <<, not <<<: notes the end mark; the text begins after the next end of line. */
void heredoc_note(struct script *s)
{
    struct heredoc doc = { .tabs = script_peek(s, 2) == '-' };
    char quote = '\0';

    script_copy(s, doc.tabs ? 3 : 2);
    while (script_peek(s, 0) == ' ' || script_peek(s, 0) == '\t')
        script_copy(s, 1);
    doc.mark = s->at;
    for (; s->at < s->end; script_copy(s, 1)) {
        char c = *s->at;
        if (quote) {
            quote = c == quote ? '\0' : quote;
        } else if (c == '\'' || c == '"') {
            quote = c;
            doc.quoted = true;
        } else if (c == '\\') {
            doc.quoted = true;
            script_copy(s, 1);
        } else if (strchr(" \t\n;&|<>()`", c)) {
            break;
        }
    }
    doc.length = (size_t)(s->at - doc.mark);
    if (s->pending_count == HEREDOCS_MAX)
        s->error =
            refuse(s->message, "too many here-documents in one line of the script: use at most 8");
    else if (doc.length)
        s->pending[s->pending_count++] = doc;
}

/* Whether the line [at, end) is the end mark, whose quotes do not count. */
static bool is_mark(const struct heredoc *doc, const char *at, const char *end)
{
    while (doc->tabs && at < end && *at == '\t')
        at++;
    for (size_t i = 0; i < doc->length; i++) {
        if (strchr("'\"\\", doc->mark[i]))
            continue;
        if (at == end || *at++ != doc->mark[i])
            return false;
    }
    return at == end;
}

/* After an end of line outside of quotes, or after a here-document: the text of the next one follows. */
void heredoc_open_next(struct script *s)
{
    struct level *level;

    if (s->pending_done == s->pending_count) {
        s->pending_done = s->pending_count = 0;
        return;
    }
    level = script_push(s, HEREDOC);
    level->mark = s->pending_done++;
    level->quoted = s->pending[level->mark].quoted;
}

/* At the beginning of a line: closes the here-document if the line is its end. */
bool heredoc_close(struct script *s)
{
    const char *stop = memchr(s->at, '\n', (size_t)(s->end - s->at));

    if (!is_mark(&s->pending[script_top(s)->mark], s->at, stop ? stop : s->end))
        return false;
    script_copy(s, (size_t)((stop ? stop + 1 : s->end) - s->at));
    script_pop(s);
    script_top(s)->command = true;
    heredoc_open_next(s);
    return true;
}
