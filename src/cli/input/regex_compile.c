/* Regular expressions: from a pattern to a program.
 * SPDX-License-Identifier: MIT */
#include "cli/input/regex.h"
#include "cli/input/regex_program.h"
#include "cli/opt/refuse.h"

#include <stdlib.h>
#include <string.h>

/* WORK_MAX: what a character of the text may take, steps of the program and ranges of its sets. */
enum { WORK_MAX = 20000, REPEAT_MAX = 255, CLASS_NAME_MAX = 16, DEPTH_MAX = 200 };

struct compiler {
    struct regex *regex;
    const char *at, *end;
    weir_message *message;
    size_t work; /* of the program so far, for one character */
    int depth;   /* parentheses that are open */
    int error;
};

static uint32_t emit(struct compiler *c, struct step step)
{
    struct regex *r = c->regex;

    if (c->error)
        return 0;
    c->work++;
    if (step.op == OP_SET)
        c->work += r->sets[step.value].ranges + r->sets[step.value].classes;
    if (c->work > WORK_MAX) {
        c->error = refuse(c->message,
                          "the expression is too large: use fewer repetitions, or smaller counts");
        return 0;
    }
    if (r->length == r->size) {
        size_t size = r->size ? 2 * r->size : 64;
        struct step *larger = realloc(r->program, size * sizeof(*larger));
        if (!larger) {
            c->error = WEIR_ENOMEM;
            return 0;
        }
        r->program = larger;
        r->size = size;
    }
    r->program[r->length] = step;
    return (uint32_t)r->length++;
}

/* Copies steps [from, to) to the end, with their jumps among themselves. */
static void emit_copy(struct compiler *c, uint32_t from, uint32_t to)
{
    uint32_t by = (uint32_t)c->regex->length - from;

    for (uint32_t i = from; i < to && !c->error; i++) {
        struct step step = c->regex->program[i];
        if (step.op == OP_SPLIT || step.op == OP_JUMP) {
            step.next += by;
            step.other += by;
        }
        emit(c, step);
    }
}

/* Puts a step before those from `from` on. */
static void insert(struct compiler *c, uint32_t from, struct step step)
{
    struct step *program;

    emit(c, (struct step){ .op = OP_MATCH });
    if (c->error)
        return;
    program = c->regex->program;
    memmove(program + from + 1, program + from, (c->regex->length - 1 - from) * sizeof(*program));
    for (size_t i = from + 1; i < c->regex->length; i++) {
        if (program[i].op != OP_SPLIT && program[i].op != OP_JUMP)
            continue;
        program[i].next += program[i].next >= from;
        program[i].other += program[i].other >= from;
    }
    program[from] = step;
}

/* An array of `count` items with room for one more: it doubles, so that many take time by their number. NULL: no memory. */
static void *with_room(void *array, size_t count, size_t size)
{
    bool full = (count & (count - 1)) == 0; /* 0, or a power of two */

    return full ? realloc(array, (count ? 2 * count : 1) * size) : array;
}

static struct set *add_set(struct compiler *c)
{
    struct regex *r = c->regex;
    struct set *larger = with_room(r->sets, r->set_count, sizeof(*larger));

    if (!larger) {
        c->error = WEIR_ENOMEM;
        return NULL;
    }
    r->sets = larger;
    r->sets[r->set_count] = (struct set){ 0 };
    return &r->sets[r->set_count++];
}

static void add_range(struct compiler *c, struct set *set, wint_t from, wint_t to)
{
    struct range *larger = with_room(set->range, set->ranges, sizeof(*larger));

    if (!larger) {
        c->error = WEIR_ENOMEM;
        return;
    }
    set->range = larger;
    set->range[set->ranges++] = (struct range){ from, to };
}

static void add_class(struct compiler *c, struct set *set, const char *name)
{
    wctype_t class = wctype(name), *larger = with_room(set->class, set->classes, sizeof(class));

    if (larger)
        set->class = larger;
    if (!class)
        c->error =
            refuse(c->message, "[:%s:]: no such class; use one such as alpha or digit", name);
    else if (!larger)
        c->error = WEIR_ENOMEM;
    if (c->error)
        return;
    set->class[set->classes++] = class;
}

static wint_t take_character(struct compiler *c)
{
    wint_t character;

    c->at += regex_next_character(&character, c->at, (size_t)(c->end - c->at));
    return character;
}

static bool is_dash_of_range(const struct compiler *c)
{
    return c->at[0] == '-' && c->at[1] && c->at[1] != ']';
}

/* At "[:name:]" inside of brackets. */
static bool take_class(struct compiler *c, struct set *set)
{
    const char *close = memmem(c->at, (size_t)(c->end - c->at), ":]", 2);
    char name[CLASS_NAME_MAX];
    size_t length;

    if (c->at[0] != '[' || c->at[1] != ':')
        return false;
    length = close ? (size_t)(close - c->at) - 2 : 0;
    if (!close || close < c->at + 2 || length >= sizeof(name)) {
        c->error = refuse(c->message, "[: is never closed by :]");
        return true;
    }
    memcpy(name, c->at + 2, length);
    name[length] = 0;
    c->at = close + 2;
    add_class(c, set, name);
    if (!c->error && is_dash_of_range(c))
        c->error = refuse(c->message, "a class such as [:%s:] cannot begin a range", name);
    return true;
}

static void take_range(struct compiler *c, struct set *set, bool first)
{
    const char *text = c->at;
    wint_t from = take_character(c), to = from;

    if (from == '-' && !first && *c->at != ']')
        c->error = refuse(c->message, "write - first or last in [ ]");
    if (is_dash_of_range(c)) {
        c->at++;
        if (c->at[0] == '[' && c->at[1] && strchr(":.=", c->at[1]))
            c->error = refuse(c->message, "a class such as [:alpha:] cannot end a range");
        to = take_character(c);
    }
    if (!c->error && to < from)
        c->error = refuse(c->message, "[%.*s]: the range is the wrong way round",
                          (int)(c->at - text), text);
    add_range(c, set, from, to);
}

static void take_brackets(struct compiler *c)
{
    struct set *set = add_set(c);
    bool first = true;

    c->at++;
    if (!set)
        return;
    if (c->at < c->end && *c->at == '^') {
        set->negated = true;
        c->at++;
    }
    for (; c->at < c->end && (*c->at != ']' || first) && !c->error; first = false) {
        if (take_class(c, set))
            continue;
        if (*c->at == '[' && (c->at[1] == '.' || c->at[1] == '='))
            c->error = refuse(c->message, "[. .] and [= =] are not known");
        else
            take_range(c, set, first);
    }
    if (!c->error && c->at == c->end)
        c->error = refuse(c->message, "[ is never closed by ]");
    c->at++;
    emit(c, (struct step){ .op = OP_SET, .value = (uint32_t)(c->regex->set_count - 1) });
}

/* \w, \s and their opposites. */
static void emit_class(struct compiler *c, const char *class, bool word, bool negated)
{
    struct set *set = add_set(c);

    if (!set)
        return;
    set->negated = negated;
    add_class(c, set, class);
    if (word)
        add_range(c, set, '_', '_');
    emit(c, (struct step){ .op = OP_SET, .value = (uint32_t)(c->regex->set_count - 1) });
}

/* False: it stands for a place, and cannot be repeated. */
static bool take_escape(struct compiler *c)
{
    static const struct {
        char letter;
        enum place place;
    } places[] = { { '`', AT_BEGIN },   { '\'', AT_END },       { 'b', AT_WORD_EDGE },
                   { 'B', AT_NO_EDGE }, { '<', AT_WORD_BEGIN }, { '>', AT_WORD_END } };
    char letter = c->at[1];

    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
        if (places[i].letter == letter) {
            c->at += 2;
            emit(c, (struct step){ .op = OP_ASSERT, .value = places[i].place });
            return false;
        }
    if (!letter) {
        c->error = refuse(c->message, "\\ at the end: write \\\\ for the character itself");
    } else if (letter >= '1' && letter <= '9') {
        c->error = refuse(c->message, "back-references such as \\%c are not known", letter);
    } else if (letter == 'w' || letter == 'W' || letter == 's' || letter == 'S') {
        c->at += 2;
        emit_class(c, letter == 'w' || letter == 'W' ? "alnum" : "space",
                   letter == 'w' || letter == 'W', letter == 'W' || letter == 'S');
    } else {
        c->at++;
        emit(c, (struct step){ .op = OP_CHAR, .value = take_character(c) });
    }
    return true;
}

static void take_alternatives(struct compiler *c);

static void take_group(struct compiler *c)
{
    size_t number = ++c->regex->captures;

    c->at++;
    if (++c->depth > DEPTH_MAX)
        c->error = refuse(c->message, "the expression is nested too deeply");
    if (number <= REGEX_CAPTURES_MAX)
        emit(c, (struct step){ .op = OP_SAVE, .value = (uint32_t)(2 * number) });
    take_alternatives(c);
    if (number <= REGEX_CAPTURES_MAX)
        emit(c, (struct step){ .op = OP_SAVE, .value = (uint32_t)(2 * number + 1) });
    if (!c->error && c->at == c->end)
        c->error = refuse(c->message, "( is never closed by )");
    c->at++;
    c->depth--;
}

/* False: it stands for a place, and cannot be repeated. */
static bool take_atom(struct compiler *c)
{
    switch (*c->at) {
    case '(':
        take_group(c);
        return true;
    case '[':
        take_brackets(c);
        return true;
    case '\\':
        return take_escape(c);
    case '.':
        c->at++;
        emit(c, (struct step){ .op = OP_ANY });
        return true;
    case '^':
    case '$':
        emit(c, (struct step){ .op = OP_ASSERT, .value = *c->at++ == '^' ? AT_BEGIN : AT_END });
        return false;
    case '*':
    case '+':
    case '?':
    case '{':
        c->error =
            refuse(c->message, "nothing to repeat before %c: write \\%c for the character itself",
                   *c->at, *c->at);
        return false;
    default: /* a ) that closes nothing is itself */
        emit(c, (struct step){ .op = OP_CHAR, .value = take_character(c) });
        return true;
    }
}

static void make_optional(struct compiler *c, uint32_t from)
{
    insert(c, from, (struct step){ .op = OP_SPLIT, .next = from + 1 });
    if (!c->error)
        c->regex->program[from].other = (uint32_t)c->regex->length;
}

static void make_loop(struct compiler *c, uint32_t from)
{
    uint32_t back = emit(c, (struct step){ .op = OP_SPLIT, .next = from });

    if (!c->error)
        c->regex->program[back].other = back + 1;
}

/* A count at `*at`, past which it steps; -1: none. A count that is too large need not be exact. */
static int take_count(const char **at)
{
    int count = -1;

    for (; **at >= '0' && **at <= '9'; ++*at)
        if (count <= REPEAT_MAX)
            count = (count < 0 ? 0 : 10 * count) + (**at - '0');
    return count;
}

/* {m}, {m,}, {,n} or {m,n}; -1 for no end. */
static void take_counts(struct compiler *c, int *least, int *most)
{
    const char *at = c->at + 1;
    bool comma;

    *least = *most = take_count(&at);
    comma = *at == ',';
    if (comma) {
        at++;
        *most = take_count(&at);
    }
    if (*at != '}' || (*least < 0 && !comma))
        c->error = refuse(c->message, "{ begins a count, such as {2} or {1,3}: write \\{ for the "
                                      "character itself");
    else if (*least > REPEAT_MAX || *most > REPEAT_MAX)
        c->error = refuse(c->message, "use at most %d repetitions", REPEAT_MAX);
    else if (*most >= 0 && *most < *least)
        c->error = refuse(c->message, "{%d,%d}: the smaller number comes first", *least, *most);
    if (*least < 0)
        *least = 0;
    c->at = at + 1;
}

/* The atom of steps from `from` on, so many times. */
static void repeat(struct compiler *c, uint32_t from, int least, int most)
{
    uint32_t to = (uint32_t)c->regex->length;

    if (least == 0 && most == 0) {
        c->regex->length = from;
        return;
    }
    for (int i = 1; i < least; i++)
        emit_copy(c, from, to);
    if (least == 0) {
        if (most < 0)
            make_loop(c, from);
        for (int i = 1; i < most; i++) {
            uint32_t copy = (uint32_t)c->regex->length;
            emit_copy(c, from, to);
            make_optional(c, copy);
        }
        make_optional(c, from);
        return;
    }
    if (most < 0)
        make_loop(c, (uint32_t)c->regex->length - (to - from));
    for (int i = least; i < most; i++) {
        uint32_t copy = (uint32_t)c->regex->length;
        emit_copy(c, from, to);
        make_optional(c, copy);
    }
}

static void take_repeated(struct compiler *c)
{
    uint32_t from = (uint32_t)c->regex->length;
    int least, most;

    if (!take_atom(c))
        return;
    while (!c->error && c->at < c->end && strchr("*+?{", *c->at)) {
        if (*c->at == '{') {
            take_counts(c, &least, &most);
        } else {
            least = *c->at == '+';
            most = *c->at == '?' ? 1 : -1;
            c->at++;
        }
        if (!c->error)
            repeat(c, from, least, most);
    }
}

/* a|b|c: a way into each, and from the end of each a jump behind the last. */
static void take_alternatives(struct compiler *c)
{
    uint32_t from = (uint32_t)c->regex->length, jump;

    while (!c->error && c->at < c->end && *c->at != '|' && (*c->at != ')' || c->depth == 0))
        take_repeated(c);
    if (c->error || c->at == c->end || *c->at != '|')
        return;
    c->at++;
    insert(c, from, (struct step){ .op = OP_SPLIT, .next = from + 1 });
    jump = emit(c, (struct step){ .op = OP_JUMP });
    if (c->error)
        return;
    c->regex->program[from].other = jump + 1;
    take_alternatives(c);
    if (!c->error)
        c->regex->program[jump].next = (uint32_t)c->regex->length;
}

int regex_new(struct regex **out, const char *pattern, weir_message *message)
{
    struct compiler c = { .at = pattern, .end = pattern + strlen(pattern), .message = message };

    *out = NULL;
    c.regex = calloc(1, sizeof(*c.regex));
    if (!c.regex)
        return WEIR_ENOMEM;
    take_alternatives(&c);
    emit(&c, (struct step){ .op = OP_MATCH });
    if (c.error)
        regex_free(c.regex);
    else
        *out = c.regex;
    return c.error;
}

void regex_free(struct regex *regex)
{
    if (!regex)
        return;
    for (size_t i = 0; i < regex->set_count; i++) {
        free(regex->sets[i].range);
        free(regex->sets[i].class);
    }
    free(regex->sets);
    free(regex->program);
    free(regex);
}

size_t regex_captures(const struct regex *regex)
{
    return regex->captures < REGEX_CAPTURES_MAX ? regex->captures : REGEX_CAPTURES_MAX;
}
