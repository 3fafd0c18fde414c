/* Prints a command's man page in man(7) macros.
 * SPDX-License-Identifier: MIT */
#include "cli/opt/opt.h"
#include "cli/opt/opt_text.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { LINE_MAX_COLUMNS = 76 }; /* of the page's source, for its readers */

/* ---- characters ------------------------------------------------------------------------------ */

/* The code point at text[0..length) and how many bytes it takes; nonsense is itself. */
static unsigned decode(const char *text, size_t length, size_t *taken)
{
    unsigned char first = (unsigned char)text[0];
    size_t n = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
    unsigned point = n == 1 ? first : first & (0x7fu >> n);

    for (size_t i = 1; i < n; i++) {
        if (i >= length || ((unsigned char)text[i] & 0xc0) != 0x80) {
            *taken = 1;
            return first;
        }
        point = point << 6 | ((unsigned char)text[i] & 0x3f);
    }
    *taken = n;
    return point;
}

/* How to write a character that roff would interpret, or make typographic, so that it could not be copied. */
static const char *escape(char c)
{
    switch (c) {
    case '\\':
        return "\\(rs";
    case '-':
        return "\\-";
    case '\'':
        return "\\(aq";
    case '`':
        return "\\(ga";
    case '^':
        return "\\(ha";
    case '~':
        return "\\(ti";
    case '"':
        return "\\(dq";
    default:
        return NULL;
    }
}

static void put(FILE *out, const char *text, size_t length)
{
    size_t taken;

    for (size_t i = 0; i < length; i += taken) {
        unsigned point = decode(text + i, length - i, &taken);
        const char *escaped = point < 0x80 ? escape((char)point) : NULL;
        if (escaped)
            fputs(escaped, out);
        else if (point < 0x80)
            fputc((int)point, out);
        else
            fprintf(out, "\\[u%04X]", point);
    }
}

static void put_text(FILE *out, const char *text)
{
    put(out, text, strlen(text));
}

static void put_upper(FILE *out, const char *text)
{
    for (; *text; text++) {
        char upper = (char)toupper((unsigned char)*text);
        put(out, &upper, 1);
    }
}

/* At the beginning of a line a full stop would make a request of it. */
static void guard(FILE *out, const char *text)
{
    if (*text == '.')
        fputs("\\&", out);
}

/* ---- words ----------------------------------------------------------------------------------- */

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '-' || c == '_';
}

/* How much of text[0..length) is an option: -j, --jobs. */
static size_t option_length(const char *text, size_t length)
{
    size_t dashes = 0, n;

    while (dashes < length && text[dashes] == '-')
        dashes++;
    if (dashes < 1 || dashes > 2 || dashes == length || !isalpha((unsigned char)text[dashes]))
        return 0;
    for (n = dashes; n < length && is_name(text[n]); n++)
        continue;
    if (dashes == 1)
        return n == 2 ? n : 0;
    if (n + 1 < length && text[n] == '=' && islower((unsigned char)text[n + 1])) /* --color=never */
        for (n++; n < length && is_name(text[n]); n++)
            continue;
    return n;
}

/* How much is a placeholder: N, FILE. One capital alone may begin a sentence, so `known` says which are. */
static size_t placeholder_length(const char *text, size_t length, const char *known)
{
    size_t n = 0;

    while (n < length && (isupper((unsigned char)text[n]) || text[n] == '_'))
        n++;
    if (n == 0 || (n < length && is_name(text[n])))
        return 0;
    if (!known)
        return n;
    for (const char *at = known; *at; at += *at != '\0') {
        size_t run = 0;
        while (isupper((unsigned char)at[run]) || at[run] == '_')
            run++;
        if (run == n && strncmp(at, text, n) == 0)
            return n;
        at += run;
    }
    return 0;
}

/* One word: options in bold, placeholders in italics. */
static void put_word(FILE *out, const char *text, size_t length, const char *known)
{
    for (size_t i = 0; i < length;) {
        bool starts = i == 0 || !is_name(text[i - 1]);
        size_t bold = starts ? option_length(text + i, length - i) : 0;
        size_t italic = starts ? placeholder_length(text + i, length - i, known) : 0;
        size_t n = bold ? bold : italic ? italic : 1;

        while (!bold && !italic && i + n < length && ((unsigned char)text[i + n] & 0xc0) == 0x80)
            n++; /* the rest of a character */
        if (bold || italic)
            fputs(bold ? "\\fB" : "\\fI", out);
        put(out, text + i, n);
        if (bold || italic)
            fputs("\\fR", out);
        i += n;
    }
}

static bool ends_sentence(struct opt_piece word)
{
    size_t n = word.length;

    while (n && strchr(")\"'", word.text[n - 1]))
        n--;
    return n && strchr(".!?", word.text[n - 1]);
}

/* Words in lines of bearable length. A sentence ends its line: that is how roff knows. */
static void put_words(FILE *out, struct opt_piece from, const char *known)
{
    struct opt_piece word, next;
    int column = 0;
    bool more = opt_text_word(&word, &from);

    while (more) {
        int columns = opt_text_columns(word.text, word.length);
        more = opt_text_word(&next, &from);
        if (column == 0)
            guard(out, word.text);
        put_word(out, word.text, word.length, known);
        column += columns;
        if (!more)
            break;
        if (ends_sentence(word) && isupper((unsigned char)next.text[0])) {
            fputc('\n', out);
            column = 0;
        } else if (column + 1 + opt_text_columns(next.text, next.length) > LINE_MAX_COLUMNS) {
            fputs(ends_sentence(word) ? "\\&\n" : "\n", out); /* "e.g." ends none */
            column = 0;
        } else {
            fputc(' ', out);
            column++;
        }
        word = next;
    }
    fputc('\n', out);
}

static void put_paragraph(FILE *out, const char *text, const char *known)
{
    put_words(out, (struct opt_piece){ .text = text, .length = strlen(text) }, known);
}

static void put_example(FILE *out, struct opt_piece example)
{
    fputs(".RS 4\n.nf\n", out);
    for (struct opt_piece line; opt_text_line(&line, &example);) {
        if (line.length > 4) {
            line.text += 4; /* .RS stands for the blanks */
            line.length -= 4;
            guard(out, line.text);
            put(out, line.text, line.length);
        } else {
            fputs("\\&", out);
        }
        fputc('\n', out);
    }
    fputs(".fi\n.RE\n", out);
}

/* Paragraphs and examples of a command; what its synopsis has in capitals is a placeholder there, too. */
static void put_prose(FILE *out, const struct opt_command *command, const char *text)
{
    const char *known = command->synopsis ? command->synopsis : "";
    struct opt_piece piece;

    for (bool first = true; opt_text_piece(&piece, &text); first = false) {
        if (!first)
            fputs(".PP\n", out);
        if (piece.example)
            put_example(out, piece);
        else
            put_words(out, piece, known);
    }
}

/* ---- sections -------------------------------------------------------------------------------- */

static void put_page_name(FILE *out, const struct opt_command *command)
{
    fputs(command->name[0] ? "weir\\-" : "weir", out);
    put_text(out, command->name);
}

static void put_call(FILE *out, const struct opt_command *command)
{
    fputs(command->name[0] ? "\\fBweir " : "\\fBweir", out);
    put_text(out, command->name);
    fputs("\\fR", out);
}

/* [OPTION]... -- COMMAND: capitals are placeholders, brackets, bars and dots ours, the rest is typed. */
static void put_synopsis(FILE *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length;) {
        size_t typed = 0, italic = placeholder_length(text + i, length - i, NULL);
        while (i + typed < length && !strchr(" []{}|.=", text[i + typed]))
            typed++;
        if (italic)
            typed = italic;
        if (typed)
            fputs(italic ? "\\fI" : "\\fB", out);
        put(out, text + i, typed ? typed : 1);
        if (typed)
            fputs("\\fR", out);
        i += typed ? typed : 1;
    }
}

static void put_usage(FILE *out, const struct opt_command *command)
{
    const char *text = command->synopsis ? command->synopsis : "";

    for (;;) {
        size_t length = strcspn(text, "\n");
        put_call(out, command);
        if (length)
            fputc(' ', out);
        put_synopsis(out, text, length);
        fputc('\n', out);
        if (!text[length])
            break;
        fputs(".br\n", out);
        text += length + 1;
    }
}

static void put_option(FILE *out, const struct opt *opt)
{
    fputs(".TP\n", out);
    if (opt->letter) {
        fputs("\\fB\\-", out);
        put(out, &opt->letter, 1);
        fputs("\\fR, ", out);
    }
    fputs("\\fB\\-\\-", out);
    put_text(out, opt->name);
    fputs("\\fR", out);
    if (opt_value_is_optional(opt)) {
        fputs("[=", out);
        put_word(out, opt->argument + 1, strlen(opt->argument + 1), NULL);
    } else if (opt->argument) {
        fputc(' ', out);
        put_word(out, opt->argument, strlen(opt->argument), NULL);
    }
    fputc('\n', out);
    if (opt->help)
        put_paragraph(out, opt->help, opt->argument ? opt->argument : "");
}

static void put_options(FILE *out, const struct opt *options)
{
    if (!options || !options->name)
        return;
    fputs(".SH OPTIONS\n", out);
    for (const struct opt *opt = options; opt->name; opt++) {
        if (opt->id) {
            put_option(out, opt);
        } else {
            fputs(".SS ", out);
            put_text(out, opt->name);
            fputc('\n', out);
        }
    }
}

static bool has_page(const struct opt_command *command)
{
    return command->sections && command->sections->title;
}

static void put_sentence(FILE *out, const char *text)
{
    char first = (char)toupper((unsigned char)text[0]);

    put(out, &first, 1);
    if (text[0])
        put_text(out, text + 1);
    fputs(".\n", out);
}

static void put_subcommands(FILE *out, const struct opt_command *const *commands)
{
    if (!commands || !commands[0])
        return;
    fputs(".SH COMMANDS\n", out);
    for (size_t i = 0; commands[i]; i++) {
        fputs(".TP\n", out);
        put_call(out, commands[i]);
        if (has_page(commands[i])) {
            fputc('\n', out);
            put_sentence(out, commands[i]->summary);
            fputs("See \\fB", out);
            put_page_name(out, commands[i]);
            fputs("\\fR(1).\n", out);
        } else {
            fputc(' ', out);
            if (commands[i]->synopsis)
                put_synopsis(out, commands[i]->synopsis, strcspn(commands[i]->synopsis, "\n"));
            fputc('\n', out);
            put_sentence(out, commands[i]->summary);
            if (commands[i]->intro && *commands[i]->intro) {
                fputs(".RS\n.PP\n", out);
                put_prose(out, commands[i], commands[i]->intro);
                fputs(".RE\n", out);
            }
        }
    }
}

static bool is_see_also(const struct opt_section *section)
{
    return strcasecmp(section->title, "See also") == 0;
}

static void put_section(FILE *out, const struct opt_command *command,
                        const struct opt_section *section)
{
    fputs(".SH ", out);
    put_upper(out, section->title);
    fputc('\n', out);
    put_prose(out, command, section->text);
}

static void put_see_also(FILE *out, const struct opt_command *command)
{
    const char *before = "";

    if (command->name[0]) {
        fputs(".SH SEE ALSO\n\\fBweir\\fR(1)\n", out);
        return;
    }
    for (size_t i = 0; command->subcommands && command->subcommands[i]; i++) {
        if (!has_page(command->subcommands[i]))
            continue;
        fputs(*before ? before : ".SH SEE ALSO\n", out);
        fputs("\\fB", out);
        put_page_name(out, command->subcommands[i]);
        fputs("\\fR(1)", out);
        before = ",\n";
    }
    if (*before)
        fputc('\n', out);
}

void opt_print_man(FILE *out, const struct opt_command *command, const char *version,
                   const char *date)
{
    const struct opt_section *see_also = NULL;

    fputs(".TH WEIR", out);
    fputs(command->name[0] ? "\\-" : "", out);
    put_upper(out, command->name);
    fprintf(out, " 1 \"%s\" \"weir %s\" \"User Commands\"\n", date, version);
    fputs(".nh\n.ad l\n.SH NAME\n", out); /* options are not to be hyphenated */
    put_page_name(out, command);
    fputs(" \\- ", out);
    put_text(out, command->summary);
    fputs("\n.SH SYNOPSIS\n", out);
    put_usage(out, command);
    if (command->intro && *command->intro) {
        fputs(".SH DESCRIPTION\n", out);
        put_prose(out, command, command->intro);
    }
    put_subcommands(out, command->subcommands);
    put_options(out, command->options);
    for (const struct opt_section *s = command->sections; s && s->title; s++) {
        if (is_see_also(s))
            see_also = s;
        else
            put_section(out, command, s);
    }
    if (see_also)
        put_section(out, command, see_also);
    else
        put_see_also(out, command);
}
