/* The ring of ready groups.
 * SPDX-License-Identifier: MIT */
#include "executor/ring.h"

#include "base/assert.h"
#include "executor/group.h"

void wr_ring_init(struct wr_ring *ring, _Atomic uint64_t *set, uint64_t bit)
{
    wr_list_init(&ring->groups);
    ring->set = set;
    ring->bit = bit;
}

/* The first group may be another now, or need less: workers that sleep for its permits are to look. Under the lock. */
static void ask_again(struct wr_ring *ring)
{
    if (wr_load(&ring->needed, relaxed))
        wr_store(&ring->needed, 0, seq_cst); /* pairs with a sleeper's look; see parking.md */
}

/* Under the lock: a group enters, as the last or the first; or leaves. */
static void enter(struct wr_ring *ring, struct wr_list *before, struct weir_group *group)
{
    bool was_empty = wr_list_empty(&ring->groups);

    wr_list_append(before, &group->ring_link);
    wr_store(&ring->listed, wr_load(&ring->listed, relaxed) + 1, relaxed);
    if (was_empty && ring->set)
        wr_add(ring->set, ring->bit, seq_cst); /* pairs with a sleeper's look; see parking.md */
}

static void leave(struct wr_ring *ring, struct weir_group *group)
{
    wr_list_remove(&group->ring_link);
    wr_store(&ring->listed, wr_load(&ring->listed, relaxed) - 1, relaxed);
    if (ring->set && wr_list_empty(&ring->groups))
        wr_sub(ring->set, ring->bit, seq_cst);
}

void wr_ring_append(struct wr_ring *ring, struct weir_group *group)
{
    wr_lock(&ring->lock);
    enter(ring, &ring->groups, group);
    wr_add(&ring->count, 1, seq_cst); /* pairs with a sleeper's look; see parking.md */
    wr_unlock(&ring->lock);
}

void wr_ring_keep(struct wr_ring *ring, struct weir_group *group)
{
    wr_lock(&ring->lock);
    enter(ring, ring->groups.next, group); /* before the first is after the head */
    ask_again(ring);
    wr_add(&ring->count, 1, seq_cst);
    wr_unlock(&ring->lock);
}

struct weir_group *wr_ring_take(struct wr_ring *ring, struct wr_root *root, uint32_t *reserved)
{
    struct weir_group *group = NULL;

    if (wr_load(&ring->listed, relaxed) == 0)
        return NULL; /* if one was put there just now, `count` has us look again before we sleep */
    wr_lock(&ring->lock);
    if (!wr_list_empty(&ring->groups)) {
        group = WR_CONTAINER(ring->groups.next, struct weir_group, ring_link);
        uint32_t cost = wr_load(&group->first_needs, relaxed) & ~WR_TIMED;
        if (wr_reserve(root, cost, reserved)) {
            leave(ring, group);
            ask_again(ring);
        } else {
            wr_store(&ring->needed, cost, relaxed);
            group = NULL;
        }
    }
    wr_unlock(&ring->lock);
    return group;
}

struct weir_group *wr_ring_take_with(struct wr_ring *ring,
                                     bool (*take)(struct weir_group *group, void *arg), void *arg)
{
    struct weir_group *group = NULL;

    wr_lock(&ring->lock);
    if (!wr_list_empty(&ring->groups))
        group = WR_CONTAINER(ring->groups.next, struct weir_group, ring_link);
    if (group && take(group, arg))
        leave(ring, group);
    else
        group = NULL;
    wr_unlock(&ring->lock);
    return group;
}

void wr_ring_decided(struct wr_ring *ring)
{
    wr_sub(&ring->count, 1, seq_cst);
}

void wr_ring_return(struct wr_ring *ring, struct weir_group *group, uint32_t needed)
{
    wr_lock(&ring->lock);
    enter(ring, ring->groups.next, group); /* before the first is after the head */
    wr_store(&ring->needed, needed, relaxed);
    wr_unlock(&ring->lock);
}

uint32_t wr_ring_first_cost(struct wr_ring *ring, bool patient)
{
    struct weir_group *first;
    uint32_t needs = 0;

    wr_lock(&ring->lock);
    if (!wr_list_empty(&ring->groups)) {
        first = WR_CONTAINER(ring->groups.next, struct weir_group, ring_link);
        needs = wr_load(&first->first_needs, relaxed);
    }
    wr_unlock(&ring->lock);
    return patient && needs & WR_TIMED ? 0 : needs & ~WR_TIMED;
}

void wr_ring_to_end(struct wr_ring *ring, struct weir_group *group)
{
    wr_lock(&ring->lock);
    if (!wr_list_empty(&group->ring_link)) {
        wr_list_remove(&group->ring_link);
        wr_list_append(&ring->groups, &group->ring_link);
        ask_again(ring);
    }
    wr_unlock(&ring->lock);
}

void wr_ring_ask_again(struct wr_ring *ring)
{
    wr_lock(&ring->lock);
    ask_again(ring);
    wr_unlock(&ring->lock);
}

bool wr_ring_remove(struct wr_ring *ring, struct weir_group *group)
{
    bool in;

    wr_lock(&ring->lock);
    in = !wr_list_empty(&group->ring_link);
    if (in) {
        leave(ring, group);
        ask_again(ring);
        wr_sub(&ring->count, 1, seq_cst);
    }
    wr_unlock(&ring->lock);
    return in;
}
