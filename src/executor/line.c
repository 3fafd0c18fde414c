/* Lines of groups; see line.h.
 * SPDX-License-Identifier: MIT */
#include "executor/line.h"

#include "base/assert.h"
#include "base/os.h"
#include "executor/slice.h"

void wr_line_init(struct wr_line *line, enum wr_place place, uint8_t parts, _Atomic uint64_t *set,
                  uint64_t bit)
{
    WR_ASSERT(!set || parts == 1);
    for (int i = 0; i < WR_PARTS; i++) {
        wr_list_init(&line->part[i].groups);
        wr_store(&line->first[i], WR_SHOWS_NONE, relaxed);
    }
    line->parts = parts;
    line->place = (uint8_t)place;
    line->set = set;
    line->bit = bit;
}

/* ---- the order of all ---------------------------------------------------------------------------- */

/* Tickets wrap around. */
static bool is_before(uint64_t one, uint64_t other)
{
    if (one == WR_SHOWS_NONE || other == WR_SHOWS_NONE)
        return one < other;
    return (int32_t)((uint32_t)one - (uint32_t)other) < 0;
}

/* The part that has the first group; NULL: there is no group. */
static struct wr_part *first_part(struct wr_line *line)
{
    uint64_t shown, first = wr_load(&line->first[0], seq_cst);
    uint32_t part = 0;

    for (uint32_t i = 1; i < line->parts; i++)
        if (is_before(shown = wr_load(&line->first[i], seq_cst), first)) {
            first = shown;
            part = i;
        }
    return first == WR_SHOWS_NONE ? NULL : &line->part[part];
}

/* A ticket to go before all others. */
static uint32_t ticket_before_all(struct wr_line *line)
{
    struct wr_part *part = first_part(line);
    uint64_t first = part ? wr_load(&line->first[part - line->part], relaxed) : WR_SHOWS_NONE;

    return (first == WR_SHOWS_NONE ? wr_load(&line->tickets, relaxed) : (uint32_t)first) - 1;
}

/* ---- under the lock of a part -------------------------------------------------------------------- */

static struct wr_part *part_of(struct wr_line *line, const struct weir_group *group)
{
    return &line->part[line->parts == 1 ? 0 : group->part];
}

static struct weir_group *group_at(const struct wr_list *node)
{
    return WR_CONTAINER(node, struct weir_group, link);
}

/* NULL: there is none. */
static struct weir_group *first_of(const struct wr_part *part)
{
    return wr_list_empty(&part->groups) ? NULL : group_at(part->groups.next);
}

static uint64_t to_show(const struct wr_part *part)
{
    const struct weir_group *first = first_of(part);

    return first ? first->ticket : WR_SHOWS_NONE;
}

/* After every change of its groups. */
static void show_first(struct wr_line *line, const struct wr_part *part)
{
    _Atomic uint64_t *shown = &line->first[part - line->part];
    uint64_t first = to_show(part);

    if (wr_load(shown, relaxed) != first)
        wr_store(shown, first, seq_cst);
}

/* The first group may be another now, or need less: workers that sleep for its permits are to look. */
static void ask_again(struct wr_line *line)
{
    if (wr_load(&line->needed, seq_cst))
        wr_store(&line->needed, 0, seq_cst); /* pairs with a sleeper's look; see parking.md */
}

static void insert(struct wr_line *line, struct wr_part *part, struct weir_group *group, bool first)
{
    group->ticket = first ? ticket_before_all(line) : wr_add(&line->tickets, 1, relaxed);
    /* Before the first is after the head. */
    wr_list_append(first ? part->groups.next : &part->groups, &group->link);
    show_first(line, part);
}

static void link_group(struct wr_line *line, struct weir_group *group, bool first)
{
    struct wr_part *part = part_of(line, group);
    bool was_empty = wr_list_empty(&part->groups);

    wr_store(&group->place, line->place, relaxed);
    insert(line, part, group, first);
    if (was_empty && line->set)
        wr_add(line->set, line->bit, seq_cst); /* pairs with a sleeper's look; see parking.md */
}

static void unlink_group(struct wr_line *line, struct weir_group *group, enum wr_place place)
{
    struct wr_part *part = part_of(line, group);

    wr_list_remove(&group->link);
    wr_store(&group->place, (uint8_t)place, relaxed);
    show_first(line, part);
    if (line->set && wr_list_empty(&part->groups))
        wr_sub(line->set, line->bit, seq_cst);
}

void wr_line_add(struct wr_line *line, struct weir_group *group, bool first)
{
    link_group(line, group, first);
    if (first) /* then it goes before the one that was */
        ask_again(line);
    wr_add(&part_of(line, group)->count, 1,
           seq_cst); /* pairs with a sleeper's look; see parking.md */
}

/* Looks for another that a group of weight > 1 may cost while it is decided. Its worker may have lost its CPU, so others
 * offer theirs after the first hundred; in the end they go on without it. */
enum { LOOKS_AT_ONCE = 100, LOOKS_MAX = 20000 };

static bool is_deciding(struct wr_line *line)
{
    return wr_load(&line->deciding, seq_cst) && wr_add(&line->looks, 1, relaxed) < LOOKS_MAX;
}

static void decide(struct wr_line *line, struct weir_group *group)
{
    wr_store(&line->looks, 0, relaxed);
    wr_store(&line->deciding, group, seq_cst);
    wr_add(&line->decisions, 1, seq_cst);
}

struct weir_group *wr_line_first(struct wr_line *line)
{
    WR_ASSERT(line->parts == 1);
    return wr_list_empty(&line->part->groups) || is_deciding(line) ? NULL : first_of(line->part);
}

void wr_line_take(struct wr_line *line, struct weir_group *group)
{
    if (wr_load(&group->weight, relaxed) > 1) /* before another part shows the first */
        decide(line, group);
    unlink_group(line, group, line->place | WR_IN_HANDS);
    ask_again(line);
}

static void count_out(struct wr_line *line, const struct weir_group *group)
{
    wr_sub(&part_of(line, group)->count, 1, seq_cst);
}

bool wr_line_drop(struct wr_line *line, struct weir_group *group)
{
    if (wr_load(&group->place, relaxed) & WR_IN_HANDS)
        return false;
    WR_ASSERT(wr_load(&group->place, relaxed) == line->place);
    unlink_group(line, group, WR_AT_REST);
    ask_again(line);
    count_out(line, group);
    return true;
}

void wr_line_bring(struct wr_line *line)
{
    struct wr_beats *beats = wr_load(&line->beats, relaxed);
    weir_time now = wr_os_now();
    struct weir_group *group;

    while ((group = wr_beats_due(beats, now))) {
        wr_store(&group->first_needs, 1 | WR_HAS_BEAT, relaxed);
        wr_line_add(line, group, false);
    }
}

/* ---- without it ---------------------------------------------------------------------------------- */

void wr_line_enter(struct wr_line *line, struct weir_group *group, bool first)
{
    struct wr_part *part;

    if (line->parts > 1)
        group->part = group->hash % WR_PARTS;
    part = part_of(line, group);
    wr_lock(&part->lock);
    wr_line_add(line, group, first);
    wr_unlock(&part->lock);
}

bool wr_line_remove(struct wr_line *line, struct weir_group *group)
{
    struct wr_part *part = part_of(line, group);
    bool in;

    wr_lock(&part->lock);
    in = wr_line_drop(line, group);
    wr_unlock(&part->lock);
    return in;
}

void wr_line_give_way(struct wr_line *line)
{
    if (wr_load(&line->deciding, relaxed) && wr_load(&line->looks, relaxed) > LOOKS_AT_ONCE)
        wr_os_yield();
}

/* Locks the part that has the first group of all; NULL: there is none, or it may come back yet, because it is being
 * decided. `served`: only if none is. */
static struct wr_part *lock_first(struct wr_line *line, bool served)
{
    for (;;) {
        uint32_t decisions = wr_load(&line->decisions, seq_cst);
        struct wr_part *part = first_part(line);

        if (!part || (served && is_deciding(line)))
            return NULL;
        wr_lock(&part->lock);
        if (first_part(line) == part &&
            (!served || wr_load(&line->decisions, seq_cst) == decisions))
            return part;
        wr_unlock(&part->lock);
    }
}

struct weir_group *wr_line_pull(struct wr_line *line,
                                bool (*grant)(struct weir_group *group, void *arg), void *arg)
{
    struct weir_group *group = NULL;
    struct wr_part *part;

    part = lock_first(line, true);
    if (part) {
        group = first_of(part);
        if (grant(group, arg))
            wr_line_take(line, group);
        else
            group = NULL;
        wr_unlock(&part->lock);
    }
    if (!group)
        wr_line_give_way(line);
    return group;
}

/* Brings those whose time has come. The clock's thread will if it comes just now. */
static void bring_due(struct wr_line *line)
{
    struct wr_beats *beats = wr_load(&line->beats, acquire);

    if (beats && wr_load(&beats->first, relaxed) <= wr_os_now()) {
        wr_lock(&line->part->lock);
        wr_line_bring(line);
        wr_unlock(&line->part->lock);
    }
}

/* Takes the first group of a part with its permits, under its lock. */
static struct weir_group *take_with_permits(struct wr_line *line, struct wr_part *part,
                                            struct wr_root *root, uint32_t *reserved,
                                            struct wr_slice *slice)
{
    struct weir_group *group = first_of(part);
    uint32_t needs = wr_load(&group->first_needs, relaxed);

    if (!wr_reserve(root, wr_cost_of(needs), reserved)) {
        wr_store(&line->needed, wr_cost_of(needs), seq_cst);
        return NULL;
    }
    wr_line_take(line, group);
    if (needs & WR_HAS_BEAT && wr_beat_step(group, slice, wr_os_now()))
        wr_line_decided(line, group);
    else if (needs & WR_HAS_BEAT) /* it cannot start by that, and is in hands like any other */
        wr_store(&group->first_needs, 1, relaxed);
    return group;
}

struct weir_group *wr_line_pull_with_permits(struct wr_line *line, struct wr_root *root,
                                             uint32_t *reserved, struct wr_slice *slice)
{
    struct weir_group *group = NULL;
    struct wr_part *part;

    bring_due(line);
    do {
        part = lock_first(line, true);
        if (!part)
            break;
        group = take_with_permits(line, part, root, reserved, slice);
        wr_unlock(&part->lock);
    } while (!group && first_part(line) != part); /* another has come before what was refused */
    if (!group)
        wr_line_give_way(line);
    return group;
}

static void undecided_no_more(struct wr_line *line, const struct weir_group *group)
{
    if (wr_load(&line->deciding, relaxed) != group)
        return;
    wr_store(&line->deciding, NULL, seq_cst); /* it stands there again, if it is ready */
    wr_add(&line->decisions, 1, seq_cst);
}

void wr_line_decided(struct wr_line *line, const struct weir_group *group)
{
    undecided_no_more(line, group);
    count_out(line, group);
}

void wr_line_return(struct wr_line *line, struct weir_group *group, uint32_t needed)
{
    struct wr_part *part = part_of(line, group);

    wr_lock(&part->lock);
    link_group(line, group, true);
    undecided_no_more(line, group);
    wr_store(&line->needed, needed, seq_cst);
    if (first_part(line) != part) /* another has come before it meanwhile */
        ask_again(line);
    wr_unlock(&part->lock);
}

uint32_t wr_line_first_cost(struct wr_line *line, bool patient)
{
    struct wr_part *part = lock_first(line, false);
    uint32_t needs = 0;

    if (part) {
        needs = wr_load(&first_of(part)->first_needs, relaxed);
        wr_unlock(&part->lock);
    }
    return patient && needs & WR_TIMED ? 0 : wr_cost_of(needs);
}

bool wr_line_to_end(struct wr_line *line, struct weir_group *group)
{
    struct wr_part *part = part_of(line, group);
    bool in;

    wr_lock(&part->lock);
    in = !(wr_load(&group->place, relaxed) & WR_IN_HANDS);
    if (in) {
        wr_list_remove(&group->link);
        insert(line, part, group, false);
        ask_again(line);
    }
    wr_unlock(&part->lock);
    return in;
}

void wr_line_ask_again(struct wr_line *line, struct weir_group *group)
{
    struct wr_part *part = part_of(line, group);

    wr_lock(&part->lock); /* whoever found that it needs something else has said so by now */
    ask_again(line);
    wr_unlock(&part->lock);
}

bool wr_line_is_valid(struct wr_line *line)
{
    uint32_t groups = 0;

    for (uint32_t i = 0; i < WR_PARTS; i++) {
        wr_list_each(node, &line->part[i].groups)
            groups++;
        if (wr_load(&line->first[i], relaxed) != to_show(&line->part[i]))
            return false;
    }
    return wr_line_count(line) >= groups;
}
