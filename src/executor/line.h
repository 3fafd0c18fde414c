/* Where a group's next task stands, and the lines in which groups stand.
 *
 * Each node that can keep a group waiting has a line, and all lines are served alike: by turns and weight, a turn that was
 * only interrupted first. The line for a worker, and for the slots and permits that a start needs besides, is called a ring;
 * the executor has one, or each of its domains has. Threads have the other kind.
 *
 * Whoever serves a line takes a group out of it, and decides: under the group's lock it finds the group another place, or
 * puts it back first. In between the group still counts: to whoever looks at wr_line_count then, it is a group that waits.
 *
 * The executor's ring is in parts, by key, so that its workers do not all meet at one lock. Its order is one all the same: a
 * group draws a ticket when it comes, each part shows the ticket of its first, and who serves the line locks the part that
 * shows the lowest and looks again. Groups of weight > 1 go before all others while they are being decided, too: a count of
 * such decisions that has not changed says that none was overlooked. Nobody holds two parts' locks.
 *
 * Who adds a group writes its part's ticket, and then looks at `needed`; who is refused permits for the first one writes
 * `needed`, and then looks at the tickets: not both may miss the other, so all four are seq_cst.
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_LINE_H
#define WR_EXECUTOR_LINE_H

#include "base/atomic.h"
#include "base/list.h"
#include "base/lock.h"

#include <stdbool.h>
#include <stdint.h>

enum { WR_PARTS = 4 };

struct weir_group;
struct wr_beats;
struct wr_slice;
struct wr_root;

/* group->place: the one word that says where a group's next task stands, and so what keeps it. From WR_READY on it is in a line, and
 * written under the lock of that line; but for IN_HANDS, and while a beat is out, also under the group's, so either will do to
 * look. */
enum wr_place {
    WR_AT_REST, /* nothing waits; or a limit of its own, or a cost beyond the executor's limit */
    WR_PAUSED,  /* whether or not anything waits                                           */
    WR_GATED,   /* likewise: a gate has refused it, and will call                          */
    WR_READY,   /* in its ring                                                             */
    WR_AWAITS_THREAD, /* in line for a thread                                                    */
    WR_KEEPS_TIME,    /* in the ring's wheel until the next start of its beat; see beat.h        */
    WR_IN_HANDS =
        8, /* with READY or AWAITS_THREAD: just taken from there by a thread that is yet to decide */
};

/* Some of a line's groups, in the order of their tickets. */
struct wr_part {
    struct wr_lock lock;
    /* Groups that entered by this part less those that left by it. A group may leave by another than it came by (beat.h), so only
     * the sum over all parts means anything: groups in line, or in hands. Also read without the lock. */
    _Atomic uint32_t count;
    struct wr_list groups;
    char apart[64 - sizeof(struct wr_lock) - sizeof(uint32_t) - sizeof(struct wr_list)];
};

struct wr_line {
    struct wr_part part[WR_PARTS]; /* groups with beats, and the beats, are in the first          */
    _Atomic uint64_t first[WR_PARTS]; /* each part's first ticket, or WR_SHOWS_NONE        */
    uint8_t parts;         /* 1, or WR_PARTS                                                     */
    uint8_t place;         /* of the groups in it: WR_READY or WR_AWAITS_THREAD                  */
    _Atomic uint64_t *set; /* has the bit while there are groups; NULL: there is no such set      */
    uint64_t bit;
    _Atomic uint32_t tickets; /* the next one                                                     */
    _Atomic uint32_t needed;  /* permits of the executor's that the first one waits for           */
    /* In hands, of weight > 1: its turn may last, so it goes before others */
    _Atomic(struct weir_group *) deciding;
    _Atomic uint32_t decisions; /* how often that has changed                                     */
    _Atomic uint32_t looks;     /* for another, since then                                        */
    /* Of groups that come here when it is time; NULL: there never were any */
    _Atomic(struct wr_beats *) beats;
};

/* What a part shows that has no group. */
#define WR_SHOWS_NONE UINT64_MAX

/* Whether there are groups in line; those in hands come back by somebody who looks again. */
static inline bool wr_line_has_groups(const struct wr_line *line)
{
    for (uint32_t i = 0; i < line->parts; i++)
        if (wr_load(&line->first[i], seq_cst) != WR_SHOWS_NONE)
            return true;
    return false;
}

/* How many groups are in line, or in hands. */
static inline uint32_t wr_line_count(const struct wr_line *line)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < line->parts; i++)
        count += wr_load(&line->part[i].count, seq_cst);
    return count;
}

/* A set only if it is in one part. */
void wr_line_init(struct wr_line *line, enum wr_place place, uint8_t parts, _Atomic uint64_t *set,
                  uint64_t bit);

/* ---- under the lock of the first part, where the group stands -------------------------------------- */

/* As the last; or as the first: its turn was only interrupted. */
void wr_line_add(struct wr_line *line, struct weir_group *group, bool first);

/* The first of a line in one part; NULL: there is none, or it may come back yet, because it is being decided. */
struct weir_group *wr_line_first(struct wr_line *line);

/* Takes it out, into the caller's hands. wr_line_decided or wr_line_return must follow. */
void wr_line_take(struct wr_line *line, struct weir_group *group);

/* Groups whose time has come enter, as the last. There are beats. */
void wr_line_bring(struct wr_line *line);

/* Takes this one out for good, if it is in. False: it is in somebody's hands. */
bool wr_line_drop(struct wr_line *line, struct weir_group *group);

/* ---- without it ---------------------------------------------------------------------------------- */

void wr_line_enter(struct wr_line *line, struct weir_group *group, bool first);
bool wr_line_remove(struct wr_line *line, struct weir_group *group);

/* Takes the first, if `grant` gives it what the caller came with, under the lock of its part; or answers NULL. */
struct weir_group *wr_line_pull(struct wr_line *line,
                                bool (*grant)(struct weir_group *group, void *arg), void *arg);

/* The same with as many permits of the executor's as its first task costs, in *reserved; or neither, and NULL, so that
 * nobody overtakes it. If slice->beat is set then, its next task has begun, and nothing is left to decide. */
struct weir_group *wr_line_pull_with_permits(struct wr_line *line, struct wr_root *root,
                                             uint32_t *reserved, struct wr_slice *slice);

/* By who found nothing to take: the group that goes before others may be in the hands of a thread without a CPU. */
void wr_line_give_way(struct wr_line *line);

/* What was taken has found its place elsewhere, or at the end of this line; or goes back to the head. Under the group's
 * lock. */
void wr_line_decided(struct wr_line *line, const struct weir_group *group);
void wr_line_return(struct wr_line *line, struct weir_group *group, uint32_t needed);

/* What the first one needs; 0: there is none, or (`patient`) it will not wait for ever. */
uint32_t wr_line_first_cost(struct wr_line *line, bool patient);

/* Its turn is over: from wherever it stands to the end. False: it is in somebody's hands. */
bool wr_line_to_end(struct wr_line *line, struct weir_group *group);

/* Each part shows its first group, and all are counted. At rest; slow. */
bool wr_line_is_valid(struct wr_line *line);

/* A group that stands in it needs something else than it did. */
void wr_line_ask_again(struct wr_line *line, struct weir_group *group);

#endif
