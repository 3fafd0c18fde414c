/* The ring: groups that are ready, in the order of their turns.
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_RING_H
#define WR_EXECUTOR_RING_H

#include "base/list.h"
#include "base/lock.h"

struct weir_group;
struct wr_root;

/* A worker takes a group out, and decides: it starts a task and is done with the group, or the executor's limit
 * refuses and the group goes back to the head. In between the group still counts: to whoever looks at
 * `count` then, it is a group that waits for its turn. */
struct wr_ring {
    struct wr_lock lock;
    struct wr_list groups;
    _Atomic uint64_t *set; /* has the bit while there are groups; NULL: there is no such set */
    uint64_t bit;
    _Atomic uint32_t
        count; /* groups in the ring, or taken and not decided; also read without the lock */
    _Atomic uint32_t
        listed; /* groups in the ring; also read without the lock, by who would take one         */
    _Atomic uint32_t
        needed; /* permits of the executor's that the first one waits for                   */
};

void wr_ring_init(struct wr_ring *ring, _Atomic uint64_t *set, uint64_t bit);

/* Last in line. */
void wr_ring_append(struct wr_ring *ring, struct weir_group *group);

/* First in line: its turn lasts. */
void wr_ring_keep(struct wr_ring *ring, struct weir_group *group);

/* Takes the first, with as many permits of the executor's as its first task costs, in *reserved; or neither,
 * and NULL, so that nobody overtakes it. One of the next two must follow. */
struct weir_group *wr_ring_take(struct wr_ring *ring, struct wr_root *root, uint32_t *reserved);
void wr_ring_decided(struct wr_ring *ring);

/* The same of a ring whose groups need no permits of the executor's, but what `take` takes for the first, under the lock. */
struct weir_group *wr_ring_take_with(struct wr_ring *ring,
                                     bool (*take)(struct weir_group *group, void *arg), void *arg);
void wr_ring_return(struct wr_ring *ring, struct weir_group *group, uint32_t needed);

/* What the first one needs; 0: there is none, or (`patient`) it will not wait for ever. */
uint32_t wr_ring_first_cost(struct wr_ring *ring, bool patient);

/* Its turn is over: from wherever it stands to the end. Not if somebody took it just now. */
void wr_ring_to_end(struct wr_ring *ring, struct weir_group *group);

/* The first one may need less than it did. */
void wr_ring_ask_again(struct wr_ring *ring);

/* Takes this one out, if it is in. False: somebody took it just now. */
bool wr_ring_remove(struct wr_ring *ring, struct weir_group *group);

#endif
