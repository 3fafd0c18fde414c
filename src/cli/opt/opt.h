/* Options of the command: one table per subcommand, from which arguments are read and the help, the man
 * page and the shells' completions are printed.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_OPT_H
#define WR_CLI_OPT_H

#include <stdbool.h>
#include <stdio.h>
#include <weir.h>

/* What an option's value is, for completion. */
enum opt_value { OPT_TEXT, OPT_FILE, OPT_DIRECTORY, OPT_CHOICE };

struct opt {
    int id;           /* what opt_next answers; positive; 0: only opens a section of the list */
    char letter;      /* 0: none                                                              */
    const char *name; /* without dashes; of a section: its title                              */
    /* "N", "FILE"; "[TEXT]": may be left out, --name or --name=TEXT, and the letter has none; NULL: none */
    const char *argument;
    const char *help; /* a sentence or two, in plain text; wrapped when it is printed         */
    enum opt_value value;
    const char *choices; /* OPT_CHOICE: "never auto always" */
};

/* A piece of prose for help or man page: a title ("Exit status": the man page prints capitals) and
 * paragraphs, with an empty line between. A line that begins with four blanks is an example, printed as it
 * stands. */
struct opt_section {
    const char *title, *text;
};

/* An option that users of other tools type, and what to say to it. */
struct opt_hint {
    const char *typed; /* "-P", "--joblog" */
    const char *answer;
};

struct opt_command {
    const char *name; /* "map"; "" for weir itself */
    /* "[OPTION]... -- COMMAND [ARGUMENT]..."; a line for each way to call it. Completion learns from it what
     * the words are: a command line if there is COMMAND in it, these words for "bash|zsh|fish", else files;
     * nothing if it names none but OPTION. */
    const char *synopsis;
    const char *summary;       /* one line, lower case, no full stop                            */
    const char *intro;         /* paragraphs, as in sections                                    */
    const struct opt *options; /* ended by an entry without name                                */
    /* After the options; ended by one without title. A subcommand that has any has a man page of its own;
     * weir(1) tells all about the others. "See also" replaces what the page would have there. */
    const struct opt_section *sections;
    const struct opt_hint *hints; /* ended by one without `typed`; NULL: none                   */
    const struct opt_command *const *subcommands; /* of weir itself; NULL-ended; else NULL      */
};

/* Reading arguments: options up to the first word that is none, or up to "--". -abc, -j4, -j 4, --name
 * VALUE, --name=VALUE and unambiguous beginnings of long names are understood; "-" is a word. A value that
 * is a word of its own cannot be "--": there, it was forgotten. */
struct opt_reader {
    const struct opt_command *command;
    char **argv;             /* what is left; after OPT_END, the other words             */
    const char *cluster;     /* inside -abc; "": no more options, ever; NULL: between words */
    const struct opt *found; /* the one opt_next answered; also a known one that is wrong */
    const char *value;       /* NULL if it has none                                      */
};

enum { OPT_END = 0, OPT_WRONG = -1 };

/* argv: after the program's and the subcommand's names, NULL-ended. */
void opt_start(struct opt_reader *reader, const struct opt_command *command, char **argv);

/* The next option's id; OPT_END; or OPT_WRONG with a sentence in message ("--tiemout: no such option; did you
 * mean --timeout?"). */
int opt_next(struct opt_reader *reader, weir_message *message);

/* Whether the argument is all in brackets, as [TEXT] is, and [PATTERN=]N is not. */
bool opt_value_is_optional(const struct opt *opt);

/* The subcommand of that name; or NULL with a sentence ("mpa: no such command; did you mean map?"). */
const struct opt_command *opt_subcommand(const struct opt_command *weir, const char *name,
                                         weir_message *message);

/* Help for a terminal of that width (at least 40 is assumed). */
void opt_print_help(FILE *out, const struct opt_command *command, int width);

/* The man page in man(7) macros; `version` and `date` go into its header. */
void opt_print_man(FILE *out, const struct opt_command *command, const char *version,
                   const char *date);

/* A completion script for the whole command. False: no such shell. */
bool opt_print_completion(FILE *out, const struct opt_command *weir, const char *shell);

/* The option of the table after `opt`, or its first, without titles of sections; NULL: there is none. */
const struct opt *opt_after(const struct opt_command *command, const struct opt *opt);

#endif
