/* Command templates for a shell: a script in which every value is a variable.
 *
 * The script is copied from left to right, with a stack of what is open around the current place: quotes,
 * $(...), `...`, ${...}, arithmetic, here-documents. It only has to be known well enough to write each
 * reference the right way; where a guess is wrong, a value may be split into words, but since the script's
 * text is fixed before any value is known, none can become code.
 * SPDX-License-Identifier: MIT */
#include "cli/input/shell_use.h"
#include "cli/input/template_parts.h"
#include "cli/opt/refuse.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 64, PENDING_MAX = 8 };

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
    struct level levels[DEPTH_MAX];
    int depth; /* of the innermost */
    struct heredoc pending[PENDING_MAX];
    size_t pending_count, pending_done;
    enum shell_use assigned; /* what the shell does with values of some variables */
    const char *loose;       /* right behind a backslash that stands for itself, in double quotes */
    int error;
};

/* ---- writing ------------------------------------------------------------------------------------- */

static void put(struct script *s, const char *text, size_t length)
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

static void put_text(struct script *s, const char *text)
{
    put(s, text, strlen(text));
}

/* The next `count` bytes as they are, as far as there are so many. */
static void copy(struct script *s, size_t count)
{
    size_t left = (size_t)(s->end - s->at);

    if (count > left)
        count = left;
    put(s, s->at, count);
    s->at += count;
}

static char peek(const struct script *s, size_t ahead)
{
    return (size_t)(s->end - s->at) > ahead ? s->at[ahead] : '\0';
}

/* ---- levels -------------------------------------------------------------------------------------- */

static struct level *top(struct script *s)
{
    return &s->levels[s->depth];
}

static struct level *push(struct script *s, enum place place)
{
    if (s->depth + 1 == DEPTH_MAX) {
        if (!s->error)
            s->error = refuse(s->message, "the command is nested too deeply");
        return top(s); /* nobody reads it any more */
    }
    s->depth++;
    *top(s) = (struct level){ .place = place, .command = true };
    return top(s);
}

static void pop(struct script *s)
{
    if (s->depth > 0)
        s->depth--;
    top(s)->command = false;
}

/* Whether blanks in a value would not split it here, and quotes would not quote. */
static bool is_quoted(const struct level *level)
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
static int backtick_depth(const struct script *s)
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
    const struct level *level = top(s);
    int form = level->place == SINGLE ? 2 : level->place == ANSI ? 3 : is_quoted(level);
    char name[32];

    snprintf(name, sizeof(name), "weir_%zu", index + 1);
    put_text(s, forms[form].before);
    put_text(s, name);
    put_text(s, forms[form].after);
    if (is_arithmetic(s) && !s->error)
        s->template->placeholders[index].numeric = true;
}

static enum shell_use use_in_command(const struct script *s, const struct level *level,
                                     size_t length)
{
    enum shell_use use = USE_TEXT;

    if (level->first)
        use = shell_use_in_command(level->first, s->at, s->at + length, s->end);
    if (use == USE_TEXT && level->word && shell_begins_assignment(level->word, s->at))
        use = s->assigned;
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

/* Takes account of that. */
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
    struct level *level = top(s);
    size_t index;

    if (level->place == HEREDOC && level->quoted)
        s->error = refuse(
            s->message, "%.*s: placeholders do not work in a here-document with a quoted end mark",
            (int)length, s->at);
    else if (backtick_depth(s) && s->at > s->from && s->at[-1] == '\\')
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
    if (s->loose == s->at) /* or it would take the dollar's meaning away */
        put_text(s, "\\");
    put_reference(s, index);
    s->at += length;
}

static bool refer_if_placeholder(struct script *s)
{
    struct held held;
    size_t length = placeholder_at(&held, s->at, s->end, s->syntax);
    bool is_program = top(s)->place == HEREDOC && top(s)->quoted; /* where nothing is replaced */

    if (length)
        refer(s, &held, length);
    else if (!is_program)
        s->error = template_refuse_unknown(s->at, s->end, s->syntax, s->message);
    return length > 0 || s->error;
}

/* \{name} within quotes, where the shell would keep the backslash: the text {name}. */
static bool keep_if_name(struct script *s)
{
    size_t length = *s->at == '\\' ? template_name_at(s->at + 1, s->end, s->syntax) : 0;

    if (!length)
        return false;
    s->at++;
    copy(s, length);
    return true;
}

/* ---- here-documents ------------------------------------------------------------------------------ */

/* At <<, not <<<: notes the end mark; the text begins after the next end of line. */
static void note_heredoc(struct script *s)
{
    struct heredoc doc = { .tabs = peek(s, 2) == '-' };
    char quote = '\0';

    copy(s, doc.tabs ? 3 : 2);
    while (peek(s, 0) == ' ' || peek(s, 0) == '\t')
        copy(s, 1);
    doc.mark = s->at;
    for (; s->at < s->end; copy(s, 1)) {
        char c = *s->at;
        if (quote) {
            quote = c == quote ? '\0' : quote;
        } else if (c == '\'' || c == '"') {
            quote = c;
            doc.quoted = true;
        } else if (c == '\\') {
            doc.quoted = true;
            copy(s, 1);
        } else if (strchr(" \t\n;&|<>()`", c)) {
            break;
        }
    }
    doc.length = (size_t)(s->at - doc.mark);
    if (s->pending_count == PENDING_MAX)
        s->error = refuse(s->message, "the command has too many here-documents in one line");
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
static void open_heredoc(struct script *s)
{
    struct level *level;

    if (s->pending_done == s->pending_count) {
        s->pending_done = s->pending_count = 0;
        return;
    }
    level = push(s, HEREDOC);
    level->mark = s->pending_done++;
    level->quoted = s->pending[level->mark].quoted;
}

/* At the beginning of a line: closes the here-document if the line is its end. */
static bool close_heredoc(struct script *s)
{
    const char *stop = memchr(s->at, '\n', (size_t)(s->end - s->at));

    if (!is_mark(&s->pending[top(s)->mark], s->at, stop ? stop : s->end))
        return false;
    copy(s, (size_t)((stop ? stop + 1 : s->end) - s->at));
    pop(s);
    top(s)->command = true;
    open_heredoc(s);
    return true;
}

/* ---- what a character does ----------------------------------------------------------------------- */

/* A backslash where only some characters after it are special. */
static void step_backslash(struct script *s, const char *special)
{
    char next = peek(s, 1);

    if (next && strchr(special, next)) {
        copy(s, 2);
        return;
    }
    copy(s, 1);
    s->loose = s->at;
}

static void step_dollar(struct script *s)
{
    bool quoted = is_quoted(top(s));
    struct held held;
    char next = peek(s, 1);

    if (next == '(' || next == '[') {
        bool arithmetic = next == '[' || peek(s, 2) == '(';
        copy(s, next == '(' && arithmetic ? 3 : 2);
        push(s, arithmetic ? ARITH : BARE)->closer = next == '[' ? ']' : ')';
    } else if (next == '{') {
        size_t length = placeholder_at(&held, s->at + 1, s->end, s->syntax);
        if (length && held.kind == HOLDS_RECORD) {
            s->error =
                refuse(s->message, "$%.*s is not known to the shell; for a dollar sign write \\$",
                       (int)length, s->at + 1);
            return;
        }
        copy(s, 2);
        push(s, BRACE)->quoted = quoted;
        top(s)->word = s->at;
    } else if (next == '\'' && !quoted) {
        copy(s, 2);
        push(s, ANSI);
    } else {
        /* $$ and the like take the character, so that it begins nothing else. */
        copy(s, next && strchr("$?!#@*-", next) ? 2 : 1);
    }
}

static void step_backtick(struct script *s)
{
    int depth = backtick_depth(s);
    bool quoted = is_quoted(top(s));

    copy(s, 1);
    if (depth) { /* the shell looks for the next backtick first, whatever is around it */
        s->depth = depth;
        pop(s);
    } else {
        push(s, BACKTICK)->quoted = quoted;
    }
}

/* A word of the script has ended: of reserved words those matter that open or close a case, because its
 * patterns end with a parenthesis, and those that a command may follow. */
static void end_word(struct script *s)
{
    static const char *const openers[] = { "if",    "then", "else", "elif", "while",
                                           "until", "do",   "!",    "{",    "time" };
    struct level *level = top(s);
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
    struct level *level = top(s);

    if (*s->at == ')') {
        copy(s, 1);
        if (level->place == BARE && !level->open)
            pop(s);
        if (!top(s)->word) /* behind a pattern of a case a command follows */
            top(s)->command = top(s)->open > 0;
    } else if (peek(s, 1) == '(') {
        copy(s, 2);
        push(s, ARITH)->closer = ')';
    } else {
        bool array = s->at > s->from && s->at[-1] == '='; /* a=( */
        copy(s, 1);
        level->command = false;
        push(s, BARE)->array = array;
    }
}

static void step_comment(struct script *s)
{
    bool backtick = backtick_depth(s) > 0;

    while (s->at < s->end && *s->at != '\n' && !(backtick && *s->at == '`'))
        copy(s, 1);
}

/* What separates words. */
static void step_separator(struct script *s)
{
    struct level *level = top(s);

    end_word(s);
    if (level->test && *s->at != ';') {
        copy(s, 1);
        return;
    }
    switch (*s->at) {
    case '\n':
        level->command = true;
        copy(s, 1);
        open_heredoc(s);
        break;
    case ';':
    case '&':
    case '|':
        level->command = true;
        copy(s, 1);
        break;
    case '(':
    case ')':
        step_parenthesis(s);
        break;
    case '<':
        if (peek(s, 1) == '<' && peek(s, 2) == '<')
            copy(s, 3);
        else if (peek(s, 1) == '<')
            note_heredoc(s);
        else
            copy(s, 1);
        break;
    default:
        copy(s, 1);
    }
}

static void step_bare(struct script *s)
{
    struct level *level = top(s);
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
    if (c == '\\' && peek(s, 1) == '"' && level->place == BACKTICK && level->quoted) {
        copy(s, 2);
        push(s, DOUBLE)->escaped = true;
    } else if (c == '\\') {
        copy(s, 2);
    } else if (c == '\'' || c == '"') {
        copy(s, 1);
        push(s, c == '"' ? DOUBLE : SINGLE);
    } else if (c == '$') {
        step_dollar(s);
    } else if (!refer_if_placeholder(s)) {
        copy(s, 1);
    }
}

static void step_double(struct script *s)
{
    bool escaped = top(s)->escaped;

    if (keep_if_name(s))
        return;
    switch (*s->at) {
    case '"':
        copy(s, 1);
        if (!escaped)
            pop(s);
        break;
    case '\\':
        if (escaped && peek(s, 1) == '"') {
            copy(s, 2);
            pop(s);
        } else {
            step_backslash(s, "$`\"\\\n");
        }
        break;
    case '$':
        step_dollar(s);
        break;
    default:
        if (!refer_if_placeholder(s))
            copy(s, 1);
    }
}

static void step_single(struct script *s)
{
    if (keep_if_name(s))
        return;
    if (*s->at == '\\' && top(s)->place == ANSI) {
        copy(s, 2);
    } else if (*s->at == '\'') {
        copy(s, 1);
        pop(s);
    } else if (!refer_if_placeholder(s)) {
        copy(s, 1);
    }
}

static void step_brace(struct script *s)
{
    bool quoted = top(s)->quoted;
    char c = *s->at;

    if (c == '}') {
        copy(s, 1);
        pop(s);
    } else if (c == '\\') {
        if (quoted && !keep_if_name(s))
            step_backslash(s, "$`\"\\}\n");
        else if (!quoted)
            copy(s, 2);
    } else if (c == '"' || (c == '\'' && !quoted)) {
        copy(s, 1);
        push(s, c == '"' ? DOUBLE : SINGLE);
    } else if (c == '$') {
        step_dollar(s);
    } else if (!refer_if_placeholder(s)) {
        copy(s, 1);
    }
}

static void step_arith(struct script *s)
{
    struct level *level = top(s);
    char opener = level->closer == ')' ? '(' : '[', c = *s->at;

    if (c == '\\') {
        copy(s, 2);
    } else if (c == '$') {
        step_dollar(s);
    } else if (c == level->closer && level->open == 0) {
        bool last = c == ']' || peek(s, 1) == ')';
        copy(s, c == ')' && last ? 2 : 1);
        pop(s);
        if (!last) /* $((a) b): it was a subshell within $(...) */
            push(s, BARE)->command = false;
    } else if (!refer_if_placeholder(s)) {
        level->open += (c == opener) - (c == level->closer);
        copy(s, 1);
    }
}

static void step_heredoc(struct script *s)
{
    bool quoted = top(s)->quoted;
    char c = *s->at;

    if ((s->at == s->from || s->at[-1] == '\n') && close_heredoc(s))
        return;
    if (!quoted && keep_if_name(s))
        return;
    if (c == '\\' && !quoted)
        step_backslash(s, "$`\\\n");
    else if (c == '$' && !quoted)
        step_dollar(s);
    else if (!refer_if_placeholder(s))
        copy(s, 1);
}

static void step(struct script *s)
{
    struct level *level = top(s);

    if (*s->at == '`' && !(level->place == HEREDOC && level->quoted) &&
        (backtick_depth(s) || (level->place != SINGLE && level->place != ANSI))) {
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

/* ---- the whole ----------------------------------------------------------------------------------- */

/* The words, joined by blanks; *length without the final zero. */
static char *join(size_t *length, char *const *words, size_t count)
{
    size_t size = 1;
    char *joined, *at;

    for (size_t i = 0; i < count; i++)
        size += strlen(words[i]) + 1;
    joined = at = malloc(size);
    if (!joined)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        if (i)
            *at++ = ' ';
        at = stpcpy(at, words[i]);
    }
    *at = '\0';
    *length = (size_t)(at - joined);
    return joined;
}

static int translate(struct script *s)
{
    s->levels[0] = (struct level){ .place = BARE, .command = true };
    s->assigned = shell_use_of_assignments(s->from, s->end);
    put_text(s, "");
    while (s->at < s->end && !s->error)
        step(s);
    return s->error;
}

/* weir_1=$1; weir_2=$2; shift 2; and the script, on one line so that line numbers in the shell's messages
 * are those of the user's text. */
static char *with_assignments(const char *script, size_t count)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    bool failed;

    if (!f)
        return NULL;
    for (size_t i = 1; i <= count; i++)
        fprintf(f, i < 10 ? "weir_%zu=$%zu; " : "weir_%zu=${%zu}; ", i, i);
    if (count)
        fprintf(f, "shift %zu; ", count);
    fputs(script, f);
    failed = ferror(f);
    if (fclose(f) == 0 && !failed)
        return text;
    free(text);
    return NULL;
}

/* shell -c script sh value... */
static int add_words(struct template *template, const char *shell, const char *script)
{
    size_t shell_length = strlen(shell), script_length = strlen(script);
    char *text = template->text = malloc(shell_length + script_length + 1);
    const struct {
        const char *text;
        size_t length;
    } words[] = {
        { text, shell_length }, { "-c", 2 }, { text + shell_length, script_length }, { "sh", 2 }
    };
    int rc = 0;

    if (!text)
        return WEIR_ENOMEM;
    stpcpy(stpcpy(text, shell), script);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]) && rc == 0; i++) {
        rc = template_open_word(template);
        if (rc == 0)
            rc = template_add_text(template, words[i].text, words[i].length);
    }
    for (size_t i = 0; i < template->placeholder_count && rc == 0; i++) {
        rc = template_open_word(template);
        if (rc == 0)
            rc = template_add_reference(template, i);
    }
    return rc;
}

static int build(struct template *template, struct script *s, const char *shell)
{
    char *script;
    int rc = translate(s);

    if (rc < 0)
        return rc;
    script = with_assignments(s->out, template->placeholder_count);
    if (!script)
        return WEIR_ENOMEM;
    rc = add_words(template, shell, script);
    free(script);
    return rc;
}

int template_new_shell(struct template **out, const char *shell, char *const *words, size_t count,
                       const struct record_syntax *syntax, weir_message *message)
{
    struct template *template = NULL;
    struct script *s = NULL;
    char *source = NULL;
    size_t length;
    int rc = WEIR_ENOMEM;

    *out = NULL;
    if (!count)
        return refuse(message, "no command given");
    source = join(&length, words, count);
    template = calloc(1, sizeof(*template));
    s = calloc(1, sizeof(*s));
    if (source && template && s) {
        s->template = template;
        s->syntax = syntax;
        s->message = message;
        s->from = s->at = source;
        s->end = source + length;
        rc = build(template, s, shell);
        free(s->out);
    }
    free(s);
    free(source);
    if (rc < 0)
        template_free(template);
    else
        *out = template;
    return rc;
}
