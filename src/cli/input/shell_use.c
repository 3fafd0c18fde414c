/* What a shell would do with a value at a place in a script.
 * SPDX-License-Identifier: MIT */
#include "cli/input/shell_use.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct word {
    const char *text;
    size_t length;
};

/* ---- words ---------------------------------------------------------------------------------------- */

/* Moves to the end of a word, within `quote` at first; answers the quote that is still open at `end`. */
static char skip_word(const char **at, const char *end, char quote)
{
    for (; *at < end && (quote || !strchr(" \t\n;|&()<>", **at)); ++*at) {
        if (quote)
            quote = **at == quote ? 0 : quote;
        else if (**at == '\'' || **at == '"')
            quote = **at;
        else if (**at == '\\' && *at + 1 < end)
            ++*at;
    }
    return quote;
}

/* The word at *at, quotes and all; moves behind it. False: there is none before `end`. `between`: what stands between
 * words. */
static bool next_word(struct word *out, const char **at, const char *end, const char *between)
{
    const char *from;

    while (*at < end && strchr(between, **at))
        ++*at;
    from = *at;
    skip_word(at, end, 0);
    *out = (struct word){ from, (size_t)(*at - from) };
    return out->length > 0;
}

static bool is(const struct word *word, const char *text)
{
    return word->length == strlen(text) && memcmp(word->text, text, word->length) == 0;
}

/* One of a list of words that are separated by blanks. */
static bool is_one_of(const struct word *word, const char *list)
{
    while (*list) {
        size_t n = strcspn(list, " ");
        if (n == word->length && memcmp(list, word->text, n) == 0)
            return true;
        list += n + (list[n] == ' ');
    }
    return false;
}

bool shell_is_name_character(char c)
{
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* NAME=..., which may stand before a command. */
static bool is_assignment(const struct word *word)
{
    size_t i = 0;

    while (i < word->length && shell_is_name_character(word->text[i]))
        i++;
    return i > 0 && i < word->length && word->text[i] == '=';
}

/* -x, -ix; not --long. */
static bool has_letter(const struct word *word, char letter)
{
    return word->length > 1 && word->text[0] == '-' && word->text[1] != '-' &&
           memchr(word->text, letter, word->length);
}

/* The name without its directory: /bin/sh is sh. */
static struct word base_of(struct word word)
{
    const char *slash = memrchr(word.text, '/', word.length);

    if (slash) {
        word.length -= (size_t)(slash + 1 - word.text);
        word.text = slash + 1;
    }
    return word;
}

/* name[ before the value, and no bracket closes. */
static bool is_subscript(const struct word *begun)
{
    size_t i = 0;

    while (i < begun->length && shell_is_name_character(begun->text[i]))
        i++;
    return i > 0 && i < begun->length && begun->text[i] == '[' &&
           !memchr(begun->text + i, ']', begun->length - i);
}

/* ---- commands ------------------------------------------------------------------------------------- */

/* A command that runs scripts of its own, as far as its words have been seen. */
struct nest {
    struct word command;
    bool takes_argument; /* an option whose argument is the next word              */
    bool script_is_next; /* sh -c: the first word that is no option is the script  */
    bool runs_all;       /* ssh HOST, eval: all words from here on are a script     */
    bool ended;          /* sh FILE: what follows are arguments                     */
};

static const char shells[] = "sh bash dash ksh zsh ash mksh fish";

/* Whether the word may stand before a command. (In the words of other commands the name of a shell is noticed.) */
static bool is_assignment_or_prefix(const struct word *word)
{
    return is_assignment(word) ||
           is_one_of(word, "command builtin exec time ! env nohup nice setsid sudo doas");
}

/* The next word of a command, which is no value. */
static void nest_pass(struct nest *n, const struct word *word)
{
    bool option = word->length > 1 && (word->text[0] == '-' || word->text[0] == '+');
    struct word base = base_of(*word);

    if (n->command.length && !n->ended && !n->runs_all && !is_one_of(&n->command, shells) &&
        !is_one_of(&n->command, "echo printf") &&
        is_one_of(&base, shells)) { /* timeout 5 sh -c, xargs sh -c, docker exec NAME sh -c */
        *n = (struct nest){ .command = base };
    } else if (!n->command.length) {
        if (!is_assignment_or_prefix(word) && !option)
            n->command = base;
        n->runs_all = is_one_of(&n->command, "eval trap compgen complete");
    } else if (n->takes_argument) {
        n->takes_argument = false;
    } else if (is_one_of(&n->command, shells) || is(&n->command, "su")) {
        if (n->ended)
            return;
        if (!option) {
            n->script_is_next = false;
            n->ended = !is(&n->command, "su"); /* su has options behind the user, too */
        } else if (has_letter(word, 'c'))
            n->script_is_next = true;
        else
            n->takes_argument = has_letter(word, 'o') || has_letter(word, 'O');
    } else if (is(&n->command, "ssh")) {
        if (!option)
            n->runs_all = true; /* behind the host */
        else
            n->takes_argument = word->length == 2 && strchr("BbcDEeFIiJLlmOopQRSWw", word->text[1]);
    }
}

/* Whether a value in the next word is code. */
static bool nest_runs_next(const struct nest *n)
{
    return n->command.length && !n->takes_argument && (n->script_is_next || n->runs_all);
}

bool shell_runs_word(char *const *words, size_t which)
{
    struct nest n = { .runs_all = false };

    for (size_t i = 0; i < which; i++)
        nest_pass(&n, &(struct word){ words[i], strlen(words[i]) });
    return nest_runs_next(&n);
}

/* What is known at the value: the command's name, the word before, the beginning of its own word, what follows. */
struct place {
    struct word command, before, begun, next;
    bool integer;   /* declare -i */
    bool reference; /* declare -n */
    struct nest nest;
};

static const char compares[] = "-eq -ne -lt -le -gt -ge";

/* In [[ ... ]] operators are part of the command, elsewhere they end it. */
static const char *between_words(const struct place *p)
{
    return is(&p->command, "[[") ? " \t\n;|&()<>" : " \t\n";
}

static void look(struct place *p, const char *from, const char *at, const char *after,
                 const char *end)
{
    struct word word = { from, 0 };
    const char *own;

    *p = (struct place){ .begun = { at, 0 } };
    while (next_word(&word, &from, at, between_words(p))) {
        if (word.text + word.length == at) { /* the value's own word */
            p->begun = word;
            break;
        }
        nest_pass(&p->nest, &word);
        if (!p->command.length) {
            p->command = p->nest.command;
            continue;
        }
        p->integer |= has_letter(&word, 'i');
        p->reference |= has_letter(&word, 'n');
        p->before = word;
    }
    own = p->begun.text;
    skip_word(&after, end, skip_word(&own, at, 0)); /* the rest of its word */
    next_word(&p->next, &after, end, " \t\n");
}

static enum shell_use in_test(const struct place *p)
{
    if (is_one_of(&p->before, "-v -R"))
        return USE_NAME;
    if (is(&p->command, "[[") && (is_one_of(&p->before, compares) || is_one_of(&p->next, compares)))
        return USE_NUMBER;
    return USE_TEXT;
}

static enum shell_use in_declaration(const struct place *p)
{
    if (p->integer)
        return USE_NUMBER;
    if (p->reference || !memchr(p->begun.text, '=', p->begun.length))
        return USE_NAME;
    return USE_TEXT;
}

static enum shell_use by_command(const struct place *p)
{
    const struct word *command = &p->command;

    if (is(command, "let"))
        return USE_NUMBER;
    if (is_one_of(command, "[[ [ test"))
        return in_test(p);
    if (is_one_of(command, "declare typeset local readonly export"))
        return in_declaration(p);
    if (is(command, "printf"))
        return is(&p->before, "-v") || (p->begun.length >= 2 && !memcmp(p->begun.text, "-v", 2))
                   ? USE_NAME
                   : USE_TEXT;
    if (is(command, "read"))
        return is_one_of(&p->before, "-p -d -t -n -N -u -i") ? USE_TEXT : USE_NAME;
    if (is_one_of(command, "unset mapfile readarray getopts wait"))
        return USE_NAME;
    return nest_runs_next(&p->nest) ? USE_CODE : USE_TEXT;
}

/* declare -i NAME or declare -n NAME: what is assigned later is calculated with, or taken for a name. */
enum shell_use shell_use_of_assignments(const char *from, const char *end)
{
    enum shell_use use = USE_TEXT;
    bool declares = false;
    struct word word;

    while (from < end) {
        if (!next_word(&word, &from, end, " \t\n;|&()<>"))
            break;
        if (is_one_of(&word, "declare typeset local readonly export"))
            declares = true;
        else if (word.text[0] != '-')
            declares = false;
        else if (declares && has_letter(&word, 'n'))
            return USE_NAME;
        else if (declares && has_letter(&word, 'i'))
            use = USE_NUMBER;
    }
    return use;
}

enum shell_use shell_use_in_assignment(const char *from, const char *at, enum shell_use declared)
{
    struct word name = { from, 0 };
    size_t length = (size_t)(at - from), i;

    while (name.length < length && shell_is_name_character(from[name.length]))
        name.length++;
    i = name.length + (name.length < length && from[name.length] == '+');
    if (!name.length || i == length || from[i] != '=')
        return USE_TEXT;
    if (is_one_of(&name, "RANDOM SRANDOM OPTIND SECONDS LINENO HISTCMD"))
        return USE_NUMBER;
    if (is_one_of(&name, "PS0 PS1 PS2 PS4 PROMPT_COMMAND BASH_ENV ENV"))
        return USE_CODE;
    return declared;
}

bool shell_begins_subscript(const char *from, const char *at)
{
    return from < at && *from == '[' && !memchr(from, ']', (size_t)(at - from));
}

enum shell_use shell_use_in_command(const char *from, const char *at, const char *after,
                                    const char *end)
{
    struct place p;
    enum shell_use use;

    look(&p, from, at, after, end);
    use = p.command.length ? by_command(&p) : USE_TEXT;
    if (use == USE_TEXT && is_subscript(&p.begun))
        return USE_NUMBER;
    return use;
}

enum shell_use shell_use_in_braces(const char *from, const char *at)
{
    while (from < at && (*from == '#' || *from == '!'))
        from++;
    while (from < at && (shell_is_name_character(*from) || *from == '@' || *from == '*'))
        from++;
    if (from < at && *from == '[') {
        const char *close = memchr(from, ']', (size_t)(at - from));
        if (!close)
            return USE_NUMBER;
        from = close + 1;
    }
    if (from < at && *from == ':' && (from + 1 == at || !strchr("-=?+", from[1])))
        return USE_NUMBER;
    return USE_TEXT;
}
