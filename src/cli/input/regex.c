/* Regular expressions: compiled to a small program, run on all ways at once.
 * SPDX-License-Identifier: MIT */
#include "cli/input/regex.h"

#include "cli/opt/refuse.h"

#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

/* What a character of the text may take: steps of the program, and ranges of its sets. */
enum { WORK_MAX = 20000, REPEAT_MAX = 255, CLASS_NAME_MAX = 16, DEPTH_MAX = 200 };

enum operation {
    OP_CHAR,   /* one character: `value`          */
    OP_ANY,    /* any character                   */
    OP_SET,    /* one of set `value`              */
    OP_SPLIT,  /* goes on at both, `next` first   */
    OP_JUMP,   /* goes on at `next`               */
    OP_SAVE,   /* notes the place as `value`      */
    OP_ASSERT, /* holds here: `value`             */
    OP_MATCH,
};

enum place { AT_BEGIN, AT_END, AT_WORD_EDGE, AT_NO_EDGE, AT_WORD_BEGIN, AT_WORD_END };

struct step {
    enum operation op;
    uint32_t value, next, other;
};

struct range {
    wint_t from, to;
};

struct set {
    struct range *range;
    wctype_t *class;
    size_t ranges, classes;
    bool negated;
};

struct regex {
    struct step *program;
    size_t length, size;
    struct set *sets;
    size_t set_count;
    size_t captures;
};

/* ---- characters ----------------------------------------------------------------------------------- */

/* The next character and its length in bytes; what is no character of the locale is a byte of its own. */
static size_t next_character(wint_t *out, const char *text, size_t length)
{
    mbstate_t state = { 0 };
    wchar_t wide;
    size_t n;

    if ((unsigned char)*text < 0x80) {
        *out = (unsigned char)*text;
        return 1;
    }
    n = mbrtowc(&wide, text, length, &state);
    if (n == 0 || n > length) {
        *out = 0x110000 + (unsigned char)*text; /* equal to no character */
        return 1;
    }
    *out = (wint_t)wide;
    return n;
}

static bool set_has(const struct set *set, wint_t c)
{
    bool has = false;

    for (size_t i = 0; i < set->ranges && !has; i++)
        has = c >= set->range[i].from && c <= set->range[i].to;
    for (size_t i = 0; i < set->classes && !has; i++)
        has = c < 0x110000 && iswctype(c, set->class[i]);
    return has != set->negated;
}

/* ---- compiling ------------------------------------------------------------------------------------ */

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
        c->error = refuse(c->message, "the expression is too large");
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

static struct set *add_set(struct compiler *c)
{
    struct regex *r = c->regex;
    struct set *larger = realloc(r->sets, (r->set_count + 1) * sizeof(*larger));

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
    struct range *larger = realloc(set->range, (set->ranges + 1) * sizeof(*larger));

    if (!larger) {
        c->error = WEIR_ENOMEM;
        return;
    }
    set->range = larger;
    set->range[set->ranges++] = (struct range){ from, to };
}

static void add_class(struct compiler *c, struct set *set, const char *name)
{
    wctype_t class = wctype(name),
             *larger = realloc(set->class, (set->classes + 1) * sizeof(class));

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

    c->at += next_character(&character, c->at, (size_t)(c->end - c->at));
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

/* A count at `*at`, past which it steps; -1: none. Larger ones than may be are all the same. */
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

/* ---- matching ------------------------------------------------------------------------------------- */

enum { PLACES = 2 * (1 + REGEX_CAPTURES_MAX) };

/* A way to match: the next step, and the places noted so far. */
struct way {
    uint32_t step;
    size_t place[PLACES];
};

struct ways {
    struct way *way;
    size_t count;
    uint32_t *seen; /* by step: the round in which it was added last */
};

struct run {
    const struct regex *regex;
    const char *text;
    size_t length, at;
    wint_t before, here; /* characters around `at`; WEOF: none */
    size_t places;       /* how many of a way are in use */
    uint32_t round;
    int stop_fd;
    size_t work; /* since the last look at stop_fd */
    struct {     /* steps that are still to be followed, and places to be put back */
        uint32_t step;
        size_t place, value;
    } * stack;
};

static bool is_word(wint_t c)
{
    return c != WEOF && c < 0x110000 && (c == '_' || iswalnum(c));
}

static bool holds(const struct run *run, enum place place)
{
    bool before = is_word(run->before), here = is_word(run->here);

    switch (place) {
    case AT_BEGIN:
        return run->at == 0;
    case AT_END:
        return run->at == run->length;
    case AT_WORD_EDGE:
        return before != here;
    case AT_NO_EDGE:
        return before == here;
    case AT_WORD_BEGIN:
        return !before && here;
    case AT_WORD_END:
        return before && !here;
    }
    return false;
}

enum { PUT_BACK = UINT32_MAX };

/* Adds the ways that lead on from a step without a character, in their order. Each step is entered once a round, so
 * this ends. */
static void add_way(struct run *run, struct ways *to, uint32_t first, const size_t *places)
{
    const struct step *program = run->regex->program;
    size_t place[PLACES], depth = 0;

    memcpy(place, places, run->places * sizeof(*place));
    run->stack[depth++].step = first;
    while (depth) {
        uint32_t i = run->stack[--depth].step;
        if (i == PUT_BACK) {
            place[run->stack[depth].place] = run->stack[depth].value;
            continue;
        }
        if (to->seen[i] == run->round)
            continue;
        to->seen[i] = run->round;
        switch (program[i].op) {
        case OP_JUMP:
            run->stack[depth++].step = program[i].next;
            break;
        case OP_SPLIT:
            run->stack[depth++].step = program[i].other;
            run->stack[depth++].step = program[i].next;
            break;
        case OP_SAVE:
            run->stack[depth].step = PUT_BACK;
            run->stack[depth].place = program[i].value;
            run->stack[depth++].value = place[program[i].value];
            place[program[i].value] = run->at;
            run->stack[depth++].step = i + 1;
            break;
        case OP_ASSERT:
            if (holds(run, (enum place)program[i].value))
                run->stack[depth++].step = i + 1;
            break;
        default:
            to->way[to->count].step = i;
            memcpy(to->way[to->count++].place, place, run->places * sizeof(*place));
        }
    }
}

static bool takes(const struct regex *regex, const struct step *step, wint_t c)
{
    return step->op == OP_ANY || (step->op == OP_CHAR && step->value == c) ||
           (step->op == OP_SET && set_has(&regex->sets[step->value], c));
}

/* Follows all ways by one character. A way that is at its end becomes the best so far if it is longer; those that
 * began further right are no longer of interest. */
static bool follow(struct run *run, struct ways *from, struct ways *to, size_t *best, size_t n)
{
    bool matched = false;

    to->count = 0;
    for (size_t i = 0; i < from->count; i++) {
        const struct way *way = &from->way[i];
        const struct step *step = &run->regex->program[way->step];
        if (step->op == OP_MATCH) {
            if (best[1] == SIZE_MAX || run->at > best[1] || way->place[0] < best[0]) {
                memcpy(best, way->place, run->places * sizeof(*best));
                best[1] = run->at;
                matched = true;
            }
        } else if (n && (best[1] == SIZE_MAX || way->place[0] <= best[0]) &&
                   takes(run->regex, step, run->here)) {
            size_t at = run->at;
            wint_t before = run->before, here = run->here;
            run->before = here;
            run->at += n;
            run->here = WEOF;
            if (run->at < run->length)
                next_character(&run->here, run->text + run->at, run->length - run->at);
            add_way(run, to, way->step + 1, way->place);
            run->at = at;
            run->before = before;
            run->here = here;
        }
    }
    return matched;
}

/* Whether the search should end, of which it asks the kernel only now and then. */
static bool is_stopped(struct run *run, size_t work)
{
    enum { OFTEN = 1 << 20 };
    struct pollfd polled = { .fd = run->stop_fd, .events = POLLIN };

    run->work += work;
    if (run->stop_fd < 0 || run->work < OFTEN)
        return false;
    run->work = 0;
    return poll(&polled, 1, 0) > 0;
}

static int search(struct run *run, struct ways *ways, size_t *best)
{
    struct ways *now = &ways[0], *then = &ways[1];
    size_t none[PLACES];

    memset(none, 0xff, sizeof(none));
    run->before = WEOF;
    run->round = 1;
    for (;;) {
        struct ways *swap = now;
        size_t n = 0;
        run->here = WEOF;
        if (run->at < run->length)
            n = next_character(&run->here, run->text + run->at, run->length - run->at);
        if (best[1] == SIZE_MAX) { /* a match may also begin here, after those that began before */
            none[0] = run->at;
            add_way(run, now, 0, none);
        }
        run->round++;
        follow(run, now, then, best, n);
        now = then;
        then = swap;
        if (!n || (!now->count && best[1] != SIZE_MAX))
            return 0;
        if (is_stopped(run, 1 + now->count))
            return WEIR_ECANCELED;
        run->before = run->here;
        run->at += n;
    }
}

static void *allocate(struct run *run, struct ways ways[2])
{
    size_t steps = run->regex->length;
    size_t size =
        2 * steps * (sizeof(struct way) + sizeof(uint32_t)) + (3 * steps + 2) * sizeof(*run->stack);
    char *memory = calloc(1, size);

    if (!memory)
        return NULL;
    ways[0].way = (struct way *)memory;
    ways[1].way = ways[0].way + steps;
    run->stack = (void *)(ways[1].way + steps);
    ways[0].seen = (uint32_t *)(run->stack + 3 * steps + 2);
    ways[1].seen = ways[0].seen + steps;
    return memory;
}

int regex_match(const struct regex *regex, struct span found[1 + REGEX_CAPTURES_MAX],
                const char *text, size_t length, int stop_fd)
{
    struct run run = { .regex = regex, .text = text, .length = length, .stop_fd = stop_fd };
    struct ways ways[2] = { { 0 }, { 0 } };
    size_t best[PLACES];
    void *memory;
    int rc;

    run.places = 2 * (1 + regex_captures(regex));
    memory = allocate(&run, ways);
    if (!memory)
        return WEIR_ENOMEM;
    memset(best, 0xff, sizeof(best));
    rc = search(&run, ways, best);
    free(memory);
    if (rc < 0)
        return rc;
    for (size_t i = 0; 2 * i < run.places; i++) {
        bool took_part =
            best[1] != SIZE_MAX && best[2 * i] != SIZE_MAX && best[2 * i + 1] != SIZE_MAX;
        found[i] = took_part ? (struct span){ text + best[2 * i], best[2 * i + 1] - best[2 * i] }
                             : (struct span){ NULL, 0 };
    }
    return best[1] != SIZE_MAX;
}
