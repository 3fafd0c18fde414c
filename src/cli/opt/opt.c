/* Reads the arguments of a command by its table of options.
 * SPDX-License-Identifier: MIT */
#include "cli/opt/opt.h"

#include "base/say.h"

#include <limits.h>
#include <string.h>

enum { SHOWN_MAX = 60 }; /* of what was typed, in a message */

/* ---- messages -------------------------------------------------------------------------------- */

static int wrong(weir_message *message)
{
    if (message)
        message->text[0] = '\0';
    return OPT_WRONG;
}

/* ---- names that are nearly right ------------------------------------------------------------- */

enum { NAME_MAX_COMPARED = 64 };

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* How many letters must be added, left out, replaced, or swapped with a neighbour to make b of a. */
static unsigned distance(const char *a, size_t a_length, const char *b)
{
    unsigned rows[3][NAME_MAX_COMPARED + 1];
    unsigned *before = rows[0], *above = rows[1], *row = rows[2];
    size_t b_length = strlen(b);

    if (a_length > NAME_MAX_COMPARED || b_length > NAME_MAX_COMPARED)
        return UINT_MAX;
    for (size_t j = 0; j <= b_length; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= a_length; i++) {
        unsigned *oldest = before;
        before = above;
        above = row;
        row = oldest;
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_length; j++) {
            row[j] = least(above[j - 1] + (a[i - 1] != b[j - 1]), least(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
    }
    return row[b_length];
}

/* The nearest name so far. Beyond a third of its letters a guess would only puzzle. */
struct guess {
    const char *typed, *name;
    size_t length;
    unsigned distance;
};

static void guess_start(struct guess *guess, const char *typed, size_t length)
{
    *guess = (struct guess){ .typed = typed, .length = length };
    guess->distance = length < 3 ? 1 : (unsigned)length / 3 + 1;
}

static void guess_try(struct guess *guess, const char *name)
{
    unsigned d = distance(guess->typed, guess->length, name);

    if (d < guess->distance) {
        guess->distance = d;
        guess->name = name;
    }
}

/* ---- long names ------------------------------------------------------------------------------ */

const struct opt *opt_after(const struct opt_command *command, const struct opt *opt)
{
    opt = opt ? opt + 1 : command->options;
    while (opt && opt->name && !opt->id) /* a section's title */
        opt++;
    return opt && opt->name ? opt : NULL;
}

static bool begins(const struct opt *opt, const char *typed, size_t length)
{
    return strncmp(opt->name, typed, length) == 0;
}

/* The hint for an option of another tool by that name; NULL: there is none. */
static const struct opt_hint *has_hint(const struct opt_command *command, const char *dashes,
                                       const char *typed, size_t length)
{
    for (const struct opt_hint *hint = command->hints; hint && hint->typed; hint++) {
        const char *name = hint->typed + strlen(dashes);
        if (!strncmp(hint->typed, dashes, strlen(dashes)) && strlen(name) == length &&
            !strncmp(name, typed, length))
            return hint;
    }
    return NULL;
}

/* Says what to write instead of it; false: none is known by that name. */
static bool say_hint(weir_message *message, const struct opt_command *command, const char *dashes,
                     const char *typed, size_t length)
{
    const struct opt_hint *hint = has_hint(command, dashes, typed, length);

    if (hint)
        wr_say(message, "%s: no such option: %s", hint->typed, hint->answer);
    return hint;
}

static void say_unknown(weir_message *message, const struct opt_command *command, const char *typed,
                        size_t length)
{
    struct guess guess;

    if (say_hint(message, command, "--", typed, length))
        return;
    wr_say(message, "--%.*s: no such option", length < SHOWN_MAX ? (int)length : SHOWN_MAX, typed);
    guess_start(&guess, typed, length);
    for (const struct opt *opt = NULL; (opt = opt_after(command, opt));)
        guess_try(&guess, opt->name);
    if (guess.name)
        wr_say(message, "; did you mean --%s?", guess.name);
}

static void say_ambiguous(weir_message *message, const struct opt_command *command,
                          const char *typed, size_t length)
{
    size_t left = 0;

    for (const struct opt *opt = NULL; (opt = opt_after(command, opt));)
        left += begins(opt, typed, length);
    wr_say(message, "--%.*s could be ", (int)length, typed);
    for (const struct opt *opt = NULL; (opt = opt_after(command, opt));)
        if (begins(opt, typed, length)) {
            left--;
            wr_say(message, "--%s%s", opt->name, left > 1 ? ", " : left ? " or " : "");
        }
}

/* The option of exactly that name, or the only one whose name begins so, unless another tool has an option of just that
 * name. NULL: none, or several, as the message says. */
static const struct opt *find_name(const struct opt_command *command, const char *typed,
                                   size_t length, weir_message *message)
{
    const struct opt *found = NULL;
    bool several = false;

    for (const struct opt *opt = NULL; length && (opt = opt_after(command, opt));) {
        if (!begins(opt, typed, length))
            continue;
        if (!opt->name[length])
            return opt;
        several |= found && found->id != opt->id; /* two names of one option are no question */
        found = opt;
    }
    if (found && !several && !has_hint(command, "--", typed, length))
        return found;
    wrong(message);
    if (several)
        say_ambiguous(message, command, typed, length);
    else
        say_unknown(message, command, typed, length);
    return NULL;
}

/* ---- values ---------------------------------------------------------------------------------- */

bool opt_value_is_optional(const struct opt *opt)
{
    const char *end = opt->argument && opt->argument[0] == '[' ? strchr(opt->argument, ']') : NULL;

    return end && !end[1]; /* [PATTERN=]N is not */
}

/* Takes the next argument as the value. Not "--": in `--timeout -- make` the value was forgotten. */
static bool take_value(struct opt_reader *reader)
{
    if (!*reader->argv || strcmp(*reader->argv, "--") == 0)
        return false;
    reader->value = *reader->argv++;
    return true;
}

static int read_long(struct opt_reader *reader, const char *word, weir_message *message)
{
    const char *name = word + 2;
    size_t length = strcspn(name, "=");
    const struct opt *opt = find_name(reader->command, name, length, message);

    if (!opt)
        return OPT_WRONG;
    reader->found = opt;
    if (name[length] == '=')
        reader->value = name + length + 1;
    if (reader->value && !opt->argument) {
        wrong(message);
        wr_say(message, "--%s takes no value", opt->name);
        return OPT_WRONG;
    }
    if (reader->value || !opt->argument || opt_value_is_optional(opt) || take_value(reader))
        return opt->id;
    wrong(message);
    wr_say(message, "--%s needs a value: --%s %s", opt->name, opt->name, opt->argument);
    return OPT_WRONG;
}

/* ---- letters --------------------------------------------------------------------------------- */

/* `word` is all of -abc. */
static void say_unknown_letter(weir_message *message, const struct opt_command *command,
                               const char *word, char letter)
{
    size_t length = strcspn(word + 1, "=");

    if (say_hint(message, command, "-", &letter, 1))
        return;
    if (!word[2] || (unsigned char)letter >= 0x80) {
        wr_say(message, "%.*s: no such option", SHOWN_MAX, word);
        return;
    }
    wr_say(message, "%.*s: unknown option -%c", SHOWN_MAX, word, letter);
    for (const struct opt *opt = NULL; (opt = opt_after(command, opt));)
        if (length > 2 && begins(opt, word + 1, length)) { /* -timeout */
            wr_say(message, "; did you mean --%s?", opt->name);
            return;
        }
}

static int read_letter(struct opt_reader *reader, weir_message *message)
{
    char letter = *reader->cluster++;
    const struct opt *opt = NULL;

    if (!*reader->cluster)
        reader->cluster = NULL;
    while ((opt = opt_after(reader->command, opt)) && opt->letter != letter)
        continue;
    reader->found = opt;
    if (!opt) {
        reader->cluster = NULL;
        wrong(message);
        say_unknown_letter(message, reader->command, reader->argv[-1], letter);
        return OPT_WRONG;
    }
    if (!opt->argument || opt_value_is_optional(opt))
        return opt->id;
    reader->value = reader->cluster;
    reader->cluster = NULL;
    if (reader->value || take_value(reader))
        return opt->id;
    wrong(message);
    wr_say(message, "-%c needs a value: -%c %s", letter, letter, opt->argument);
    return OPT_WRONG;
}

/* ---- in order -------------------------------------------------------------------------------- */

void opt_start(struct opt_reader *reader, const struct opt_command *command, char **argv)
{
    *reader = (struct opt_reader){ .command = command, .argv = argv };
}

/* An empty cluster marks the end, so that words after "--" are never taken for options. */
static int end(struct opt_reader *reader)
{
    reader->cluster = "";
    return OPT_END;
}

int opt_next(struct opt_reader *reader, weir_message *message)
{
    const char *word = *reader->argv;

    reader->found = NULL;
    reader->value = NULL;
    if (reader->cluster)
        return *reader->cluster ? read_letter(reader, message) : OPT_END;
    if (!word || word[0] != '-' || !word[1])
        return end(reader);
    reader->argv++;
    if (word[1] == '-')
        return word[2] ? read_long(reader, word, message) : end(reader);
    reader->cluster = word + 1;
    return read_letter(reader, message);
}

const struct opt_command *opt_subcommand(const struct opt_command *weir, const char *name,
                                         weir_message *message)
{
    struct guess guess;

    guess_start(&guess, name, strlen(name));
    for (size_t i = 0; weir->subcommands && weir->subcommands[i]; i++) {
        if (strcmp(weir->subcommands[i]->name, name) == 0)
            return weir->subcommands[i];
        guess_try(&guess, weir->subcommands[i]->name);
    }
    wrong(message);
    wr_say(message, "%.*s: no such command", SHOWN_MAX, name);
    if (guess.name)
        wr_say(message, "; did you mean %s?", guess.name);
    return NULL;
}
