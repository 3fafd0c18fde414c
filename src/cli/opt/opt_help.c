/* Prints a command's help for a terminal.
 * SPDX-License-Identifier: MIT */
#include "cli/opt/opt.h"
#include "cli/opt/opt_text.h"

#include <ctype.h>
#include <string.h>

enum {
    WIDTH_MIN = 40,
    WIDTH_MAX = 100,   /* longer lines are hard to read */
    WIDTH_NARROW = 60, /* below, two columns leave too little room for the second */
    INDENT = 2,
    GAP = 2,            /* between the columns          */
    STACKED_INDENT = 8, /* of an explanation below its option */
};

/* A page as it is written: where the cursor is, and where wrapped lines begin. */
struct page {
    FILE *out;
    int width, column, indent;
    bool inside; /* after a word of this line's text, so that a blank must follow */
};

static void put(struct page *page, const char *text, size_t length)
{
    fwrite(text, 1, length, page->out);
    page->column += opt_text_columns(text, length);
    page->inside = true;
}

static void end_line(struct page *page)
{
    fputc('\n', page->out);
    page->column = 0;
    page->inside = false;
}

static void move_to(struct page *page, int column)
{
    if (page->column < column)
        fprintf(page->out, "%*s", column - page->column, "");
    page->column = column;
    page->inside = false;
}

/* One more word, on the next line if it does not fit. */
static void put_word(struct page *page, const char *text, size_t length)
{
    if (page->inside && page->column + 1 + opt_text_columns(text, length) > page->width)
        end_line(page);
    if (page->inside)
        put(page, " ", 1);
    else
        move_to(page, page->indent);
    put(page, text, length);
}

static void put_words(struct page *page, struct opt_piece from)
{
    for (struct opt_piece word; opt_text_word(&word, &from);)
        put_word(page, word.text, word.length);
}

/* The same with a capital first and a full stop at the end. */
static void put_summary(struct page *page, const char *summary)
{
    char first = (char)toupper((unsigned char)summary[0]);
    struct opt_piece rest = { .text = summary, .length = strlen(summary) }, word;

    if (opt_text_word(&word, &rest)) {
        put(page, &first, 1);
        put(page, word.text + 1, word.length - 1);
        put_words(page, rest);
        put(page, ".", 1);
        end_line(page);
    }
}

/* Paragraphs and examples, with empty lines between. */
static void put_prose(struct page *page, const char *text, int indent)
{
    struct opt_piece piece, line;
    bool first = true;

    page->indent = indent;
    while (opt_text_piece(&piece, &text)) {
        if (!first)
            end_line(page);
        first = false;
        if (!piece.example) {
            put_words(page, piece);
            end_line(page);
        }
        while (piece.example && opt_text_line(&line, &piece)) {
            put(page, line.text, line.length);
            end_line(page);
        }
    }
}

static void put_title(struct page *page, const char *title)
{
    end_line(page);
    put(page, title, strlen(title));
    put(page, ":", 1);
    end_line(page);
}

/* ---- usage ----------------------------------------------------------------------------------- */

/* How far a word of a synopsis reaches: blanks in brackets do not part it. */
static size_t synopsis_word(const char *text, size_t length)
{
    int depth = 0;
    size_t i;

    for (i = 0; i < length && (depth > 0 || text[i] != ' '); i++)
        depth += (text[i] == '[') - (text[i] == ']');
    return i;
}

static void put_usage(struct page *page, const struct opt_command *command)
{
    const char *text = command->synopsis ? command->synopsis : "";
    const char *before = "Usage: ";

    do {
        size_t length = strcspn(text, "\n");
        page->indent = (int)strlen("Usage: ");
        fprintf(page->out, "%7s", before);
        page->column = page->indent;
        put_word(page, "weir", 4);
        if (command->name[0])
            put_word(page, command->name, strlen(command->name));
        page->indent += 4; /* what does not fit is set in, to tell it from another usage */
        while (length) {
            size_t word = synopsis_word(text, length);
            if (word)
                put_word(page, text, word);
            word += word < length; /* the blank */
            text += word;
            length -= word;
        }
        end_line(page);
        before = "";
    } while (*text++ == '\n');
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* The left column of a list, and how it is laid out. */
struct list {
    int column; /* where explanations begin; 0: below */
    bool letters;
};

static int label(char *out, size_t size, const struct opt *opt, bool letters)
{
    bool optional = opt_value_is_optional(opt);
    const char *between = !opt->argument ? "" : optional ? "[=" : " ";
    const char *argument = !opt->argument ? "" : opt->argument + optional;
    char letter[8] = "";

    if (letters)
        snprintf(letter, sizeof(letter), opt->letter ? "-%c, " : "    ", opt->letter);
    snprintf(out, size, "%s--%s%s%s", letter, opt->name, between, argument);
    return opt_text_columns(out, strlen(out));
}

/* The widest entry decides, unless that is one that would take the room from all the others. */
static void list_widen(struct list *list, const struct page *page, int columns)
{
    int wanted = INDENT + columns + GAP;

    if (page->width >= WIDTH_NARROW && wanted <= page->width * 3 / 8 && wanted > list->column)
        list->column = wanted;
}

static void put_entry(struct page *page, const struct list *list, const char *left,
                      const char *explanation)
{
    page->indent = INDENT;
    put_word(page, left, strlen(left));
    page->indent = list->column ? list->column : STACKED_INDENT;
    if (!list->column || page->column + GAP > page->indent)
        end_line(page);
    if (explanation && *explanation) {
        move_to(page, page->indent);
        put_words(page, (struct opt_piece){ .text = explanation, .length = strlen(explanation) });
    }
    if (page->column)
        end_line(page);
}

static void put_options(struct page *page, const struct opt *options)
{
    struct list list = { 0 };
    char left[128];

    for (const struct opt *opt = options; opt && opt->name; opt++)
        list.letters |= opt->id && opt->letter;
    for (const struct opt *opt = options; opt && opt->name; opt++)
        if (opt->id)
            list_widen(&list, page, label(left, sizeof(left), opt, list.letters));
    for (const struct opt *opt = options; opt && opt->name; opt++) {
        if (!opt->id || opt == options)
            put_title(page, opt->id ? "Options" : opt->name);
        if (opt->id) {
            label(left, sizeof(left), opt, list.letters);
            put_entry(page, &list, left, opt->help);
        }
    }
}

static void put_subcommands(struct page *page, const struct opt_command *const *commands)
{
    static const char more[] = "weir COMMAND --help shows the options of a command.";
    struct list list = { 0 };

    if (!commands || !commands[0])
        return;
    put_title(page, "Commands");
    for (size_t i = 0; commands[i]; i++)
        list_widen(&list, page, (int)strlen(commands[i]->name));
    for (size_t i = 0; commands[i]; i++)
        put_entry(page, &list, commands[i]->name, commands[i]->summary);
    end_line(page);
    put_prose(page, more, 0);
}

void opt_print_help(FILE *out, const struct opt_command *command, int width)
{
    struct page page = { .out = out, .width = width };

    if (page.width < WIDTH_MIN)
        page.width = WIDTH_MIN;
    if (page.width > WIDTH_MAX)
        page.width = WIDTH_MAX;
    put_usage(&page, command);
    page.indent = 0;
    end_line(&page);
    put_summary(&page, command->summary);
    if (command->intro && *command->intro) {
        end_line(&page);
        put_prose(&page, command->intro, 0);
    }
    put_subcommands(&page, command->subcommands);
    put_options(&page, command->options);
    for (const struct opt_section *s = command->sections; s && s->title; s++) {
        put_title(&page, s->title);
        put_prose(&page, s->text, INDENT);
    }
}
