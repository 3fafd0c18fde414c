/* What each character of a shell script does.
 * SPDX-License-Identifier: MIT */
#include "cli/input/shell_script.h"

#include "cli/opt/refuse.h"

#include <string.h>

/* A backslash where only some characters after it are special. */
static void step_backslash(struct script *s, const char *special)
{
    char next = script_peek(s, 1);

    if (next && strchr(special, next)) {
        script_copy(s, 2);
        return;
    }
    script_copy(s, 1);
}

static void step_dollar(struct script *s)
{
    bool quoted = script_is_quoted(script_top(s));
    struct held held;
    char next = script_peek(s, 1);

    if (next == '(' || next == '[') {
        bool arithmetic = next == '[' || script_peek(s, 2) == '(';
        script_copy(s, next == '(' && arithmetic ? 3 : 2);
        script_push(s, arithmetic ? ARITH : BARE)->closer = next == '[' ? ']' : ')';
    } else if (next == '{') {
        size_t length = placeholder_at(&held, s->at + 1, s->end, s->syntax);
        if (length && held.kind == HOLDS_RECORD) {
            s->error =
                refuse(s->message, "$%.*s is not known to the shell; for a dollar sign write \\$",
                       (int)length, s->at + 1);
            return;
        }
        script_copy(s, 2);
        script_push(s, BRACE)->quoted = quoted;
        script_top(s)->word = s->at;
    } else if (next == '\'' && !quoted) {
        script_copy(s, 2);
        script_push(s, ANSI);
    } else {
        /* $$ and the like take the character, so that it begins nothing else. */
        script_copy(s, next && strchr("$?!#@*-", next) ? 2 : 1);
    }
}

static void step_backtick(struct script *s)
{
    int depth = script_backtick_depth(s);
    bool quoted = script_is_quoted(script_top(s));

    script_copy(s, 1);
    if (depth) { /* the shell looks for the next backtick first, whatever is around it */
        s->depth = depth;
        script_pop(s);
    } else {
        script_push(s, BACKTICK)->quoted = quoted;
    }
}

/* A word of the script has ended: of reserved words those matter that open or close a case, because its
 * patterns end with a parenthesis, and those that a command may follow. */
static void end_word(struct script *s)
{
    static const char *const openers[] = { "if",    "then", "else", "elif", "while",
                                           "until", "do",   "!",    "{",    "time" };
    struct level *level = script_top(s);
    const char *word = level->word;
    size_t length = word ? (size_t)(s->at - word) : 0;
    bool command = level->command;

    level->word = NULL;
    if (word && length == 2 && memcmp(word, "]]", 2) == 0)
        level->test = false;
    if (!word || !command)
        return;
    for (size_t i = 0; i < sizeof(openers) / sizeof(openers[0]); i++)
        if (strlen(openers[i]) == length && memcmp(openers[i], word, length) == 0)
            return;
    level->command = false;
    if (length == 2 && memcmp(word, "[[", 2) == 0)
        level->test = true;
    if (length == 4 && memcmp(word, "case", 4) == 0)
        level->open++;
    else if (length == 4 && memcmp(word, "esac", 4) == 0 && level->open)
        level->open--;
}

static void step_parenthesis(struct script *s)
{
    struct level *level = script_top(s);

    if (*s->at == ')') {
        script_copy(s, 1);
        if (level->place == BARE && !level->open)
            script_pop(s);
        if (!script_top(s)->word) /* behind a pattern of a case a command follows */
            script_top(s)->command = script_top(s)->open > 0;
    } else if (script_peek(s, 1) == '(') {
        script_copy(s, 2);
        script_push(s, ARITH)->closer = ')';
    } else {
        bool array = s->at > s->from && s->at[-1] == '='; /* a=( */
        script_copy(s, 1);
        level->command = false;
        script_push(s, BARE)->array = array;
    }
}

static void step_comment(struct script *s)
{
    bool backtick = script_backtick_depth(s) > 0;

    while (s->at < s->end && *s->at != '\n' && !(backtick && *s->at == '`'))
        script_copy(s, 1);
}

/* What separates words. */
static void step_separator(struct script *s)
{
    struct level *level = script_top(s);

    end_word(s);
    if (level->test && *s->at != ';') {
        script_copy(s, 1);
        return;
    }
    switch (*s->at) {
    case '\n':
        level->command = true;
        script_copy(s, 1);
        heredoc_open_next(s);
        break;
    case ';':
    case '&':
    case '|':
        level->command = true;
        script_copy(s, 1);
        break;
    case '(':
    case ')':
        step_parenthesis(s);
        break;
    case '<':
        if (script_peek(s, 1) == '<' && script_peek(s, 2) == '<')
            script_copy(s, 3);
        else if (script_peek(s, 1) == '<')
            heredoc_note(s);
        else
            script_copy(s, 1);
        break;
    default:
        script_copy(s, 1);
    }
}

/* Within a word: a quote opens, something is expanded, or it is text. `single`: ' is a quote here. */
static void step_word(struct script *s, bool single)
{
    char c = *s->at;

    if (c == '"' || (c == '\'' && single)) {
        script_copy(s, 1);
        script_push(s, c == '"' ? DOUBLE : SINGLE);
    } else if (c == '$') {
        step_dollar(s);
    } else if (!script_refer_if_placeholder(s)) {
        script_copy(s, 1);
    }
}

static void step_bare(struct script *s)
{
    struct level *level = script_top(s);
    char c = *s->at;

    if (strchr(" \t\n;&|()<>", c)) {
        step_separator(s);
        return;
    }
    if (!level->word) {
        if (c == '#') {
            step_comment(s);
            return;
        }
        level->word = s->at;
        if (level->command)
            level->first = s->at;
    }
    if (c == '\\' && script_peek(s, 1) == '"' && level->place == BACKTICK && level->quoted) {
        script_copy(s, 2);
        script_push(s, DOUBLE)->escaped = true;
    } else if (c == '\\') {
        script_copy(s, 2);
    } else {
        step_word(s, true);
    }
}

static void step_double(struct script *s)
{
    bool escaped = script_top(s)->escaped;

    if (script_keep_if_escaped(s))
        return;
    switch (*s->at) {
    case '"':
        script_copy(s, 1);
        if (!escaped)
            script_pop(s);
        break;
    case '\\':
        if (escaped && script_peek(s, 1) == '"') {
            script_copy(s, 2);
            script_pop(s);
        } else {
            step_backslash(s, "$`\"\\\n");
        }
        break;
    case '$':
        step_dollar(s);
        break;
    default:
        if (!script_refer_if_placeholder(s))
            script_copy(s, 1);
    }
}

static void step_single(struct script *s)
{
    if (script_keep_if_escaped(s))
        return;
    if (*s->at == '\\' && script_top(s)->place == ANSI) {
        script_copy(s, 2);
    } else if (*s->at == '\'') {
        script_copy(s, 1);
        script_pop(s);
    } else if (!script_refer_if_placeholder(s)) {
        script_copy(s, 1);
    }
}

static void step_brace(struct script *s)
{
    bool quoted = script_top(s)->quoted;
    char c = *s->at;

    if (c == '}') {
        prompt_note(s, script_top(s)->word, s->at);
        script_copy(s, 1);
        script_pop(s);
    } else if (c == '\\') {
        if (quoted && !script_keep_if_escaped(s))
            step_backslash(s, "$`\"\\}\n");
        else if (!quoted)
            script_copy(s, 2);
    } else {
        step_word(s, !quoted);
    }
}

static void step_arith(struct script *s)
{
    struct level *level = script_top(s);
    char opener = level->closer == ')' ? '(' : '[', c = *s->at;

    if (c == '\\') {
        script_copy(s, 2);
    } else if (c == '$') {
        step_dollar(s);
    } else if (c == level->closer && level->open == 0) {
        bool last = c == ']' || script_peek(s, 1) == ')';
        script_copy(s, c == ')' && last ? 2 : 1);
        script_pop(s);
        if (!last) /* $((a) b): it was a subshell within $(...) */
            script_push(s, BARE)->command = false;
    } else if (!script_refer_if_placeholder(s)) {
        level->open += (c == opener) - (c == level->closer);
        script_copy(s, 1);
    }
}

static void step_heredoc(struct script *s)
{
    bool quoted = script_top(s)->quoted;
    char c = *s->at;

    if ((s->at == s->from || s->at[-1] == '\n') && heredoc_close(s))
        return;
    if (!quoted && script_keep_if_escaped(s))
        return;
    if (c == '\\' && !quoted)
        step_backslash(s, "$`\\\n");
    else if (c == '$' && !quoted)
        step_dollar(s);
    else if (!script_refer_if_placeholder(s))
        script_copy(s, 1);
}

static void step(struct script *s)
{
    struct level *level = script_top(s);

    if (*s->at == '`' && !(level->place == HEREDOC && level->quoted) &&
        (script_backtick_depth(s) || (level->place != SINGLE && level->place != ANSI))) {
        if (level->place == BARE && !level->word)
            level->word = s->at;
        step_backtick(s);
        return;
    }
    switch (level->place) {
    case BARE:
    case BACKTICK:
        step_bare(s);
        break;
    case DOUBLE:
        step_double(s);
        break;
    case SINGLE:
    case ANSI:
        step_single(s);
        break;
    case BRACE:
        step_brace(s);
        break;
    case ARITH:
        step_arith(s);
        break;
    case HEREDOC:
        step_heredoc(s);
        break;
    }
}

int script_translate(struct script *s)
{
    s->levels[0] = (struct level){ .place = BARE, .command = true };
    s->assigned = shell_use_of_assignments(s->from, s->end);
    script_put_text(s, "");
    while (s->at < s->end && !s->error)
        step(s);
    if (!s->error)
        s->error = prompt_check(s);
    return s->error;
}
