/* What looks like a placeholder and is none: a misspelt name, or a form of GNU parallel's.
 *
 * It is refused before any command runs, since it would go unnoticed into every one of them. But braces mean much in
 * other languages: what cannot be a name ({print $1}, {a,b}, {1..3}, {"a":1}, { cmd; }) is text, and so is what follows
 * the mark of a variable or a format (${x}, $ENV{x}, %{x}, \p{x}, {{x}}).
 * SPDX-License-Identifier: MIT */
#include "cli/input/template_parts.h"
#include "cli/opt/refuse.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

struct braces {
    const char *text; /* between them */
    size_t length;
};

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ---- names ---------------------------------------------------------------------------------------- */

/* Letters, digits, _ and -, a letter among them; with dots between parts if it begins with a letter. */
static bool is_name(const char *name, size_t length)
{
    bool letters = false;

    for (size_t i = 0; i < length; i++) {
        if (name[i] == '.') {
            if (!is_letter(name[0]) || i + 1 == length || name[i - 1] == '.')
                return false;
        } else if (!is_letter(name[i]) && !is_digit(name[i]) && name[i] != '-') {
            return false;
        }
        letters |= is_letter(name[i]);
    }
    return letters;
}

/* Statements of awk that stand alone in braces. */
static bool is_statement(const struct braces *b)
{
    static const char *const known[] = { "print", "next", "nextfile", "exit", "getline" };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (template_is_text(b->text, b->length, known[i]))
            return true;
    return false;
}

/* The length of the name, without a part of a path behind it: path of {path//}; 0: it is none. */
static size_t name_length(const struct braces *b)
{
    enum path_part part;
    size_t length;

    if (is_statement(b))
        return 0;
    length = b->length - template_part_at_end(&part, b->text, b->length);
    return is_name(b->text, length) ? length : 0;
}

/* Whether what stands before the brace makes its text a variable's name or a format of another language's. */
static bool is_foreign_place(const char *from, const char *at, const char *close, const char *end)
{
    const char *word = at;

    if (at == from)
        return false;
    if (at[-1] == '$' || at[-1] == '%')
        return true;
    if (at[-1] == '{' && close + 1 < end && close[1] == '}')
        return true;
    if (at - from >= 2 && at[-2] == '\\' && strchr("pPxNkguo", at[-1])) /* regular expressions */
        return true;
    while (word > from && (is_letter(word[-1]) || is_digit(word[-1])))
        word--;
    return word < at && word > from && word[-1] == '$';
}

/* ---- GNU parallel's -------------------------------------------------------------------------------- */

struct form {
    const char *form, *meant;
};

static const struct form forms_of_paths[] = {
    { "..", "{.} leaves out one extension; use --shell for more" },
    { "...", "{.} leaves out one extension; use --shell for more" },
    { "/..", "{/.} leaves out one extension; use --shell for more" },
    { "/...", "{/.} leaves out one extension; use --shell for more" },
    { "+/", "use --shell for this" },
    { "+.", "use --shell for the extension: ${x##*.}" },
    { "+..", "use --shell for the extension" },
    { "+...", "use --shell for the extension" },
    { NULL, NULL },
};

static const struct form other_forms[] = {
    { "##", "the number of all tasks is not known while the input is read" },
    { "0", "columns count from 1; {} is the whole record" },
    { "0#", "{#} is the number of the task" },
    { "slot", "{%} is the number of the slot" },
    { NULL, NULL },
};

static const char *find_form(const struct form *forms, const char *text, size_t length)
{
    for (; forms->form; forms++)
        if (template_is_text(text, length, forms->form))
            return forms->meant;
    return NULL;
}

/* What to write instead of a form of parallel's; NULL: it is none. */
static const char *foreign_form(const struct braces *b)
{
    const char *text = b->text, *end = text + b->length;
    bool minus = text < end && *text == '-';
    const char *meant = find_form(other_forms, text, b->length);

    for (text += minus; text < end && is_digit(*text);)
        text++;
    if (minus) /* {-1} */
        return text == end && b->length > 1 ? "columns count from 1, from the left" : NULL;
    if (!meant) /* {..}, or {1..} of a column */
        meant = find_form(forms_of_paths, text, (size_t)(end - text));
    if (!meant && end - text > 1 && *text == '=' && end[-1] == '=')
        meant = "there are no Perl expressions; use --shell";
    return meant;
}

/* ---- what was meant -------------------------------------------------------------------------------- */

/* The header's names, as many as fit; the others are counted. */
static void list_names(char *text, size_t size, const struct record_syntax *syntax)
{
    enum { NAMES_SIZE = 210 };
    size_t used = 0, left = 0;

    for (size_t i = 0; i < syntax->name_count; i++) {
        const char *name = syntax->names[i];
        if (!*name)
            continue;
        if (left || used + strlen(name) > NAMES_SIZE)
            left++;
        else
            used += (size_t)snprintf(text + used, size - used, "%s%s",
                                     used ? ", " : "the columns are ", name);
    }
    if (left)
        snprintf(text + used, size - used,
                 used ? ", and %zu more" : "all %zu columns have long names", left);
    else if (!used)
        snprintf(text, size, "no column has a name");
}

/* Words for what weir has by another name; NULL: it is none. */
static const char *our_word(const char *name, size_t length)
{
    static const struct form words[] = {
        { "key", "{key} is the group" },
        { "group", "{key} is the group" },
        { "seq", "{seq} is the number of the task" },
        { "line", "{} is the record" },
        { "record", "{} is the record" },
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strlen(words[i].form) == length && strncasecmp(words[i].form, name, length) == 0)
            return words[i].meant;
    return NULL;
}

/* What to write if the name is one of ours, or if columns have no names. */
static const char *meant_by_name(const struct braces *b, size_t name,
                                 const struct record_syntax *syntax)
{
    const char *ours = our_word(b->text, name);

    if (ours && name < b->length)
        return "only the record and its columns have parts, as in {/.} and {1/.}";
    if (ours)
        return ours;
    if (syntax->form == FORM_LINES)
        return "columns are {1}, {2}; --csv, --tsv and --jsonl give them names";
    return "without a header columns are {1}, {2}";
}

/* ---- for the templates ------------------------------------------------------------------------------- */

static bool find_braces(struct braces *b, const char *at, const char *end)
{
    const char *close = at < end && *at == '{' ? memchr(at, '}', (size_t)(end - at)) : NULL;

    if (close)
        *b = (struct braces){ at + 1, (size_t)(close - at) - 1 };
    return close != NULL;
}

size_t template_escaped_at(const char *at, const char *end, const struct record_syntax *syntax)
{
    struct braces b;
    struct held held;

    if (!find_braces(&b, at, end))
        return 0;
    if (!placeholder_at(&held, at, end, syntax) && !foreign_form(&b) && !name_length(&b))
        return 0;
    return b.length + 2;
}

int template_refuse_unknown(const char *from, const char *at, const char *end,
                            const struct record_syntax *syntax, weir_message *message)
{
    struct braces b;
    const char *meant;
    char names[256];
    size_t name;
    int length;

    if (!find_braces(&b, at, end) || is_foreign_place(from, at, b.text + b.length, end))
        return 0;
    meant = foreign_form(&b);
    name = name_length(&b);
    if (!meant && (!name || syntax->names_lost))
        return 0;
    if (!meant && (!syntax->names || our_word(b.text, name)))
        meant = meant_by_name(&b, name, syntax);
    length = b.length < 78 ? (int)b.length + 2 : 80;
    if (meant)
        return refuse(message, "%.*s: no such placeholder: %s; for the text itself write \\%.*s",
                      length, at, meant, length, at);
    list_names(names, sizeof(names), syntax);
    return refuse(message, "%.*s: no such column; %s; for the text itself write \\%.*s", length, at,
                  names, length, at);
}
