/* Lines of groups; see line.h.
 * SPDX-License-Identifier: MIT */
#include "executor/line.h"

#include "base/assert.h"
#include "base/os.h"
#include "executor/slice.h"

void wr_line_init(struct wr_line *line, enum wr_place place, _Atomic uint64_t *set, uint64_t bit)
{
    wr_list_init(&line->groups);
    line->place = (uint8_t)place;
    line->set = set;
    line->bit = bit;
}

/* ---- under the lock ------------------------------------------------------------------------------ */

/* The first group may be another now, or need less: workers that sleep for its permits are to look. */
static void ask_again(struct wr_line *line)
{
    if (wr_load(&line->needed, relaxed))
        wr_store(&line->needed, 0, seq_cst); /* pairs with a sleeper's look; see parking.md */
}

static void link_group(struct wr_line *line, struct weir_group *group, bool first)
{
    bool was_empty = wr_list_empty(&line->groups);

    /* Before the first is after the head. */
    wr_list_append(first ? line->groups.next : &line->groups, &group->link);
    wr_store(&group->place, line->place, relaxed);
    wr_store(&line->listed, wr_load(&line->listed, relaxed) + 1, relaxed);
    if (was_empty && line->set)
        wr_add(line->set, line->bit, seq_cst); /* pairs with a sleeper's look; see parking.md */
}

static void unlink_group(struct wr_line *line, struct weir_group *group, enum wr_place place)
{
    wr_list_remove(&group->link);
    wr_store(&group->place, (uint8_t)place, relaxed);
    wr_store(&line->listed, wr_load(&line->listed, relaxed) - 1, relaxed);
    if (line->set && wr_list_empty(&line->groups))
        wr_sub(line->set, line->bit, seq_cst);
}

/* Whether workers sleep for more permits than there can be; see first_that_can. */
static bool keeps_nobody(const struct wr_line *line, const struct weir_executor *ex)
{
    return !ex->domains &&
           wr_load(&line->needed, relaxed) > wr_load(&ex->root.inflight_max, relaxed);
}

void wr_line_add(struct wr_line *line, struct weir_group *group, bool first)
{
    link_group(line, group, first);
    /* Then it goes before the one that was first. */
    if (first || keeps_nobody(line, group->executor))
        ask_again(line);
    wr_add(&line->count, 1, seq_cst); /* pairs with a sleeper's look; see parking.md */
}

/* Looks for another that a group of weight > 1 may cost while it is decided. Its worker may have lost its CPU, so others
 * offer theirs after the first hundred; in the end they go on without it. */
enum { LOOKS_AT_ONCE = 100, LOOKS_MAX = 20000 };

static bool is_deciding(struct wr_line *line)
{
    uint32_t looks = wr_load(&line->looks, relaxed);

    if (!wr_load(&line->deciding, acquire) || looks >= LOOKS_MAX)
        return false;
    wr_store(&line->looks, looks + 1, relaxed);
    return true;
}

/* Whether there can never be as many permits as its first task costs, unless the executor's limit is raised. With
 * domains such a task keeps others of its workers' waiting: there crews are owed permits, and look no further. */
static bool costs_too_much(const struct weir_group *group)
{
    const struct weir_executor *ex = group->executor;

    return !ex->domains && wr_cost_of(wr_load(&group->first_needs, relaxed)) >
                               wr_load(&ex->root.inflight_max, relaxed);
}

/* Such a one keeps no other waiting; if there is no other, it is the first. There is a group. */
static struct weir_group *first_that_can(const struct wr_line *line)
{
    wr_list_each(node, &line->groups) {
        struct weir_group *group = WR_CONTAINER(node, struct weir_group, link);
        if (WR_LIKELY(!costs_too_much(group)))
            return group;
    }
    return WR_CONTAINER(line->groups.next, struct weir_group, link);
}

struct weir_group *wr_line_first(struct wr_line *line)
{
    if (wr_list_empty(&line->groups) || is_deciding(line))
        return NULL;
    return first_that_can(line);
}

void wr_line_take(struct wr_line *line, struct weir_group *group)
{
    unlink_group(line, group, line->place | WR_IN_HANDS);
    ask_again(line);
    if (wr_load(&group->weight, relaxed) > 1) {
        wr_store(&line->deciding, group, relaxed);
        wr_store(&line->looks, 0, relaxed);
    }
}

bool wr_line_drop(struct wr_line *line, struct weir_group *group)
{
    if (wr_load(&group->place, relaxed) & WR_IN_HANDS)
        return false;
    WR_ASSERT(wr_load(&group->place, relaxed) == line->place);
    unlink_group(line, group, WR_AT_REST);
    ask_again(line);
    wr_sub(&line->count, 1, seq_cst);
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
    wr_lock(&line->lock);
    wr_line_add(line, group, first);
    wr_unlock(&line->lock);
}

bool wr_line_remove(struct wr_line *line, struct weir_group *group)
{
    bool in;

    wr_lock(&line->lock);
    in = wr_line_drop(line, group);
    wr_unlock(&line->lock);
    return in;
}

void wr_line_give_way(struct wr_line *line)
{
    if (wr_load(&line->deciding, relaxed) && wr_load(&line->looks, relaxed) > LOOKS_AT_ONCE)
        wr_os_yield();
}

struct weir_group *wr_line_pull(struct wr_line *line,
                                bool (*grant)(struct weir_group *group, void *arg), void *arg)
{
    struct weir_group *group;

    if (wr_load(&line->listed, relaxed) == 0)
        return NULL; /* if one was put there just now, `count` has us look again before we sleep */
    wr_lock(&line->lock);
    group = wr_line_first(line);
    if (group && grant(group, arg))
        wr_line_take(line, group);
    else
        group = NULL;
    wr_unlock(&line->lock);
    if (!group)
        wr_line_give_way(line);
    return group;
}

/* Whether nothing can be taken now. If a group was put there just now, `count` has us look again before we sleep; and the
 * clock's thread if its time has just come. */
static bool is_empty(struct wr_line *line)
{
    struct wr_beats *beats = wr_load(&line->beats, acquire);

    return wr_load(&line->listed, relaxed) == 0 &&
           (!beats || wr_load(&beats->first, relaxed) > wr_os_now());
}

/* Takes the first with its permits, under the lock. */
static struct weir_group *take_first(struct wr_line *line, struct wr_root *root, uint32_t *reserved,
                                     struct wr_slice *slice)
{
    struct weir_group *group = wr_line_first(line);
    uint32_t needs = group ? wr_load(&group->first_needs, relaxed) : 0;

    if (!group)
        return NULL;
    if (!wr_reserve(root, wr_cost_of(needs), reserved)) {
        wr_store(&line->needed, wr_cost_of(needs), relaxed);
        return NULL;
    }
    wr_line_take(line, group);
    if (needs & WR_HAS_BEAT && wr_beat_step(group, slice, wr_os_now()))
        wr_line_decided(line, group);
    return group;
}

struct weir_group *wr_line_pull_with_permits(struct wr_line *line, struct wr_root *root,
                                             uint32_t *reserved, struct wr_slice *slice)
{
    struct weir_group *group;

    if (is_empty(line))
        return NULL;
    wr_lock(&line->lock);
    if (wr_load(&line->beats, relaxed))
        wr_line_bring(line);
    group = take_first(line, root, reserved, slice);
    wr_unlock(&line->lock);
    if (!group)
        wr_line_give_way(line);
    return group;
}

static void undecided_no_more(struct wr_line *line, const struct weir_group *group)
{
    if (wr_load(&line->deciding, relaxed) == group)
        wr_store(&line->deciding, NULL, release); /* it stands there again, if it is ready */
}

void wr_line_decided(struct wr_line *line, const struct weir_group *group)
{
    undecided_no_more(line, group);
    wr_sub(&line->count, 1, seq_cst);
}

void wr_line_return(struct wr_line *line, struct weir_group *group, uint32_t needed)
{
    wr_lock(&line->lock);
    link_group(line, group, true);
    undecided_no_more(line, group);
    wr_store(&line->needed, needed, relaxed);
    wr_unlock(&line->lock);
}

uint32_t wr_line_first_cost(struct wr_line *line, bool patient)
{
    uint32_t needs = 0;

    wr_lock(&line->lock);
    if (!wr_list_empty(&line->groups))
        needs = wr_load(&first_that_can(line)->first_needs, relaxed);
    wr_unlock(&line->lock);
    return patient && needs & WR_TIMED ? 0 : wr_cost_of(needs);
}

bool wr_line_to_end(struct wr_line *line, struct weir_group *group)
{
    bool in;

    wr_lock(&line->lock);
    in = !(wr_load(&group->place, relaxed) & WR_IN_HANDS);
    if (in) {
        wr_list_remove(&group->link);
        wr_list_append(&line->groups, &group->link);
        ask_again(line);
    }
    wr_unlock(&line->lock);
    return in;
}

void wr_line_ask_again(struct wr_line *line)
{
    wr_lock(&line->lock);
    ask_again(line);
    wr_unlock(&line->lock);
}
