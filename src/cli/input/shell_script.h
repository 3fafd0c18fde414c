/* A shell script on its way from a template's words to the text that runs; for shell_*.c and template_shell.c.
 *
 * The script is copied from left to right, with a stack of what is open around the current place: quotes,
 * $(...), `...`, ${...}, arithmetic, here-documents. It only has to be known well enough to write each
 * reference the right way; where a guess is wrong, a value may be split into words, but since the script's
 * text is fixed before any value is known, none can become code.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_INPUT_SHELL_SCRIPT_H
#define WR_CLI_INPUT_SHELL_SCRIPT_H

#include "cli/input/shell_use.h"
#include "cli/input/template_parts.h"

enum { SCRIPT_DEPTH_MAX = 64, HEREDOCS_MAX = 8 };

enum place {
    BARE,     /* the script itself, (...) and $(...) */
    BACKTICK, /* as BARE, up to the next backtick that has no backslash */
    DOUBLE,   /* "..." */
    SINGLE,   /* '...' */
    ANSI,     /* $'...' */
    BRACE,    /* ${...} */
    ARITH,    /* $((...)), ((...)), $[...] */
    HEREDOC,
};

struct level {
    enum place place;
    bool quoted;  /* BRACE, BACKTICK: inside something like double quotes; HEREDOC: no expansion */
    bool escaped; /* DOUBLE: opened by \" and closed so, in "`...`" */
    char closer;  /* ARITH: ')' or ']' */
    int open;     /* ARITH: parentheses inside. BARE: case words without their esac */
    bool command; /* BARE: a command's first word may follow */
    bool test;    /* BARE: within [[ ... ]], where && and ( are operators of its own */
    bool array;   /* BARE: within a=(...) */
    const char *word; /* BARE: where the current word began; NULL: between words. BRACE: the name */
    const char *first; /* BARE: where the current command began; NULL: none so far */
    size_t mark;       /* HEREDOC: which one */
};

struct heredoc {
    const char *mark; /* the end mark as written, quotes and all */
    size_t length;
    bool quoted, tabs; /* tabs: <<- */
};

struct script {
    struct template *template;
    const struct record_syntax *syntax;
    weir_message *message;
    const char *from, *at, *end;
    char *out;
    size_t length, capacity;
    struct level levels[SCRIPT_DEPTH_MAX];
    int depth; /* of the innermost */
    struct heredoc pending[HEREDOCS_MAX];
    size_t pending_count, pending_done;
    enum shell_use assigned; /* what the shell does with values of some variables */
    const char *prompt;      /* x@P of a ${x@P} that may not be; NULL: none */
    size_t prompt_length;
    int error;
};

/* ---- shell_script.c: writing, levels, references ---------------------------------------------------- */

void script_put(struct script *s, const char *text, size_t length);
void script_put_text(struct script *s, const char *text);

/* The next `count` bytes as they are, as far as there are so many. */
void script_copy(struct script *s, size_t count);

/* The byte so far ahead of the cursor; 0 behind the end. */
char script_peek(const struct script *s, size_t ahead);

/* The innermost level. */
struct level *script_top(struct script *s);
struct level *script_push(struct script *s, enum place place);
void script_pop(struct script *s);

/* Whether blanks in a value would not split it here, and quotes would not quote. */
bool script_is_quoted(const struct level *level);

/* The innermost backtick level; 0: none. */
int script_backtick_depth(const struct script *s);

/* Writes a reference to the placeholder at the cursor; false: there is none. Errors are in s->error. */
bool script_refer_if_placeholder(struct script *s);

/* \{name} within quotes, where the shell would keep the backslash: writes the text {name}. False: it is none. */
bool script_keep_if_escaped(struct script *s);

/* ---- shell_heredoc.c --------------------------------------------------------------------------------- */

/* At <<, not <<<: notes the end mark; the text begins after the next end of line. */
void heredoc_note(struct script *s);

/* After an end of line outside of quotes, or after a here-document: the text of the next one follows. */
void heredoc_open_next(struct script *s);

/* At the beginning of a line: closes the here-document if the line is its end. */
bool heredoc_close(struct script *s);

/* ---- shell_prompt.c ---------------------------------------------------------------------------------- */

/* Takes note of the text of a ${...}. */
void prompt_note(struct script *s, const char *from, const char *end);

/* Refuses ${x@P} in a script with values. Call it once all placeholders are known. */
int prompt_check(const struct script *s);

/* ---- shell_scan.c ------------------------------------------------------------------------------------ */

/* All of it; 0 or a negative code. */
int script_translate(struct script *s);

#endif
