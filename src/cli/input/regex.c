/* Regular expressions: a program is run on all ways at once.
 * SPDX-License-Identifier: MIT */
#include "cli/input/regex.h"

#include "cli/input/regex_program.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

/* ---- characters ----------------------------------------------------------------------------------- */

size_t regex_next_character(wint_t *out, const char *text, size_t length)
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

/* Follows all ways by one character. A way that is at its end becomes the best so far if it is longer; ways that
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
                regex_next_character(&run->here, run->text + run->at, run->length - run->at);
            add_way(run, to, way->step + 1, way->place);
            run->at = at;
            run->before = before;
            run->here = here;
        }
    }
    return matched;
}

/* Whether stop_fd says that the search should end; it asks the kernel only now and then. */
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
            n = regex_next_character(&run->here, run->text + run->at, run->length - run->at);
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
