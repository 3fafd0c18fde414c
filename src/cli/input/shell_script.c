/* A shell script: its text as it is written, what is open around the cursor, and references to values.
 * SPDX-License-Identifier: MIT */
#include "cli/input/shell_script.h"

#include "cli/opt/refuse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- writing ------------------------------------------------------------------------------------- */

void script_put(struct script *s, const char *text, size_t length)
{
    if (s->error)
        return;
    if (s->capacity - s->length <= length) {
        size_t capacity = 2 * (s->capacity + length) + 64;
        char *larger = realloc(s->out, capacity);
        if (!larger) {
            s->error = WEIR_ENOMEM;
            return;
        }
        s->out = larger;
        s->capacity = capacity;
    }
    memcpy(s->out + s->length, text, length);
    s->length += length;
    s->out[s->length] = '\0';
}

void script_put_text(struct script *s, const char *text)
{
    script_put(s, text, strlen(text));
}

/* The next `count` bytes as they are, as far as there are so many. */
void script_copy(struct script *s, size_t count)
{
    size_t left = (size_t)(s->end - s->at);

    if (count > left)
        count = left;
    script_put(s, s->at, count);
    s->at += count;
}

char script_peek(const struct script *s, size_t ahead)
{
    return (size_t)(s->end - s->at) > ahead ? s->at[ahead] : '\0';
}

/* ---- levels -------------------------------------------------------------------------------------- */

struct level *script_top(struct script *s)
{
    return &s->levels[s->depth];
}

struct level *script_push(struct script *s, enum place place)
{
    if (s->depth + 1 == SCRIPT_DEPTH_MAX) {
        if (!s->error)
            s->error = refuse(s->message, "the script is nested too deeply: use at most %d levels",
                              SCRIPT_DEPTH_MAX - 1);
        return script_top(s); /* not read any more */
    }
    s->depth++;
    *script_top(s) = (struct level){ .place = place, .command = true };
    return script_top(s);
}

void script_pop(struct script *s)
{
    if (s->depth > 0)
        s->depth--;
    script_top(s)->command = false;
}

/* Whether blanks in a value would not split it here, and quotes would not quote. */
bool script_is_quoted(const struct level *level)
{
    switch (level->place) {
    case DOUBLE:
    case ARITH:
    case HEREDOC:
        return true;
    case BRACE:
        return level->quoted;
    default:
        return false;
    }
}

/* Whether what is written here ends up in an arithmetic expression without a command in between. */
static bool is_arithmetic(const struct script *s)
{
    int depth = s->depth;

    while (depth > 0 && (s->levels[depth].place == BRACE || s->levels[depth].place == DOUBLE))
        depth--;
    return s->levels[depth].place == ARITH;
}

/* The innermost backtick level; 0: none. */
int script_backtick_depth(const struct script *s)
{
    int depth = s->depth;

    while (depth > 0 && s->levels[depth].place != BACKTICK)
        depth--;
    return depth;
}

/* ---- references ---------------------------------------------------------------------------------- */

static void put_reference(struct script *s, size_t index)
{
    static const struct {
        const char *before, *after;
    } forms[] = { { "\"$", "\"" }, { "${", "}" }, { "'\"$", "\"'" }, { "'\"$", "\"$'" } };
    const struct level *level = script_top(s);
    int form = level->place == SINGLE ? 2 : level->place == ANSI ? 3 : script_is_quoted(level);
    char name[32];

    snprintf(name, sizeof(name), "weir_%zu", index + 1);
    script_put_text(s, forms[form].before);
    script_put_text(s, name);
    script_put_text(s, forms[form].after);
    if (is_arithmetic(s) && !s->error)
        s->template->placeholders[index].numeric = true;
}

static enum shell_use use_in_command(const struct script *s, const struct level *level,
                                     size_t length)
{
    enum shell_use use = USE_TEXT;

    if (level->first)
        use = shell_use_in_command(level->first, s->at, s->at + length, s->end);
    if (use == USE_TEXT && level->word)
        use = shell_use_in_assignment(level->word, s->at, s->assigned);
    return use;
}

/* What the shell does with a value of `length` bytes of script at the cursor: in the innermost ${...} around it, and
 * in the command around that. */
static enum shell_use use_here(const struct script *s, size_t length)
{
    enum shell_use use = USE_TEXT;
    int depth = s->depth;

    for (; use == USE_TEXT && depth >= 0; depth--) {
        const struct level *level = &s->levels[depth];
        if (level->place == BRACE)
            use = shell_use_in_braces(level->word, s->at);
        else if (level->place == BARE && level->array)
            return shell_begins_subscript(level->word, s->at) ? USE_NUMBER : USE_TEXT;
        else if (level->place == BARE || level->place == BACKTICK)
            return use_in_command(s, level, length);
        else if (level->place == ARITH || level->place == HEREDOC)
            return use;
    }
    return use;
}

/* Notes the use of a value at the cursor. */
static void note_use(struct script *s, size_t index, size_t length)
{
    switch (use_here(s, length)) {
    case USE_NUMBER:
        s->template->placeholders[index].numeric = true;
        break;
    case USE_NAME:
        s->error = refuse(s->message,
                          "%.*s: a value cannot be the name of a variable (bash would run what is "
                          "in it): write the name into the script",
                          (int)length, s->at);
        break;
    case USE_CODE:
        s->template->nested_code = true;
        break;
    case USE_TEXT:
        break;
    }
}

/* A placeholder of `length` bytes is at the cursor. */
static void refer(struct script *s, const struct held *held, size_t length)
{
    struct level *level = script_top(s);
    size_t index;

    if (level->place == HEREDOC && level->quoted)
        s->error = refuse(
            s->message, "%.*s: placeholders do not work in a here-document with a quoted end mark",
            (int)length, s->at);
    else if (script_backtick_depth(s) && s->at > s->from && s->at[-1] == '\\')
        s->error =
            refuse(s->message, "%.*s after a backslash within backticks is ambiguous; use $(...)",
                   (int)length, s->at);
    if (s->error)
        return;
    s->error = template_add_placeholder(&index, s->template, held, s->at);
    if (!s->error)
        note_use(s, index, length);
    if (s->error)
        return;
    put_reference(s, index);
    s->at += length;
}

bool script_refer_if_placeholder(struct script *s)
{
    struct held held;
    size_t length = placeholder_at(&held, s->at, s->end, s->syntax);
    bool is_program =
        script_top(s)->place == HEREDOC && script_top(s)->quoted; /* where nothing is replaced */

    if (length)
        refer(s, &held, length);
    else if (!is_program)
        s->error = template_refuse_unknown(s->from, s->at, s->end, s->syntax, s->message);
    return length > 0 || s->error;
}

bool script_keep_if_escaped(struct script *s)
{
    size_t length = *s->at == '\\' ? template_escaped_at(s->at + 1, s->end, s->syntax) : 0;

    if (!length)
        return false;
    s->at++;
    script_copy(s, length);
    return true;
}
