/* A group: one generation of a key's limits, counts and queue.
 *
 *     group.c         finding and making it, and its end
 *     group_place.c   where it stands: its first task, its place in the ring, its permits
 *     group_limits.c  its limits, changed while it runs
 *     group_check.c   the equations below
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_GROUP_H
#define WR_EXECUTOR_GROUP_H

#include "base/list.h"
#include "base/lock.h"
#include "base/map.h"
#include "executor/beat.h"
#include "executor/gate.h"
#include "executor/hand.h"
#include "executor/queue.h"
#include "executor/task.h"
#include "limits/admit.h"
#include "limits/circle.h"
#include "limits/line.h"
#include "limits/refusals.h"
#include "policy/policy.h"

#include <weir/group.h>

struct wr_shard;

enum { WR_LEVELS = 4, WR_LEVEL_NORMAL = 1 };

/* Whether a generation can be used, or why not. */
enum wr_use {
    WR_USABLE,
    WR_UNRESOLVED, /* the thread that made the group is about to ask the policy about it    */
    WR_NO_DOMAIN,  /* the policy named no known one                                         */
    WR_NO_MEMORY,
    WR_CANCELLED, /* was usable, is evicted, and its running bodies are asked to end         */
};

/* stand.place: the one word that says where a group's next task stands, and so why it does not start. From WR_READY on the group
 * is in a line or in the ring's wheel, or a thread has just taken it out of there (WR_IN_HANDS, see line.h). Then the word is
 * written under that line's lock; except for IN_HANDS, and while a beat is out, also under the group's lock, so either lock will
 * do to read it.
 *
 * A line for workers, and for the slots and permits that a start needs besides, is called a ring: the executor has one, in
 * parts, or each of its domains has one. The other line is for threads. */
enum wr_place {
    WR_AT_REST, /* nothing waits; or a limit of its own, or a cost beyond the executor's limit */
    WR_PAUSED,  /* whether or not anything waits                                           */
    WR_GATED,   /* likewise: a gate has refused it, and will call                          */
    WR_READY,   /* in its ring                                                             */
    WR_AWAITS_THREAD, /* in line for a thread                                                    */
    WR_KEEPS_TIME,    /* in the ring's wheel until the next start of its beat; see beat.h        */
};

/* Fields are in the order of use: submitting writes the first cache line only, and reads the second.
 *
 * Under the lock (wr_group_is_valid walks them, but for turn_left, which the line's lock guards, and the last):
 *     stand.place says where its next task stands; while it is in its ring, stand.turn_left > 0 (slice.h)
 *     queued > 0 and nothing of its own in the way  <=>  place is WR_READY     (at rest)
 *     paused  <=>  place is WR_PAUSED; else a gate refuses it  <=>  WR_GATED    (once it is in no line)
 *     sums.closed is WR_SHUT if it is paused or gated; else WR_LACKS_THREAD in the line for threads; else WR_OPEN
 *     has_thread  =>  place is WR_READY: one is reserved for its next task, which goes first
 *     sums.queued == tasks in its queues, of which wr_queue_entries(queue) have no record
 *     records == records of its tasks: in its queues, running, pending, or held by a handle
 *     submitted + wr_queue_entries(queue) == tasks that were ever submitted
 *     pending == tasks of pending_first that are PENDING
 *     telling == ends that are being told + guests + tasks that are ASIDE + alarms that go off in vain (watch.h)
 *     lives while it is in the table, or has_handle, or sums.queued + records + pins + telling > 0      */
struct weir_group {
    struct wr_lock lock;
    bool evicted;        /* set under the shard's lock as well: either lock will do to read    */
    uint8_t carrier : 3; /* enum weir_carrier: where its next task runs                      */
    uint8_t has_thread : 1;
    uint8_t idle : 1;       /* it has no tasks                                                 */
    uint8_t paused : 1;     /* by its user                                                     */
    uint8_t asks_gates : 1; /* one of its gates is asked when a task is submitted              */
    uint8_t has_handle : 1; /* given to a user: stays until the executor goes                  */
    uint8_t domain;
    _Atomic uint8_t use; /* enum wr_use; also read without the lock                          */
    struct wr_sums sums;
    struct wr_queue queue; /* tasks of WEIR_NORMAL priority                                    */

    struct weir_executor *executor;
    struct wr_extras *extras; /* NULL until needed                                              */
    union {
        struct wr_stand stand; /* in its ring, or in line for a thread                           */
        struct {
            struct wr_list retired; /* once it is evicted: in its shard                         */
            uint32_t idle_since;    /* while it is idle: when its last task left, in ms         */
        };
    };
    uint32_t records;
    uint32_t bodies; /* tasks that execute                                                  */

    uint32_t telling; /* settled tasks whose listeners and callbacks are being told             */
    uint32_t pins;
    uint64_t submitted, started, succeeded;
    int64_t waited_ns, ran_ns;
    /* Tasks that are PENDING or ASIDE, newest first. If WR_HAND_OUT is set there are none, and it is
     * the hand that is out; with WR_HAND_OF_BEAT that of its beat. */
    struct weir_task *pending_first;
    uint32_t pending; /* tasks that are settled later                                         */
    uint32_t peak;

    /* Seldom written, and read by threads that look for a key: apart from fields that workers write in each turn. */
    uint32_t failed, cancelled;
    struct wr_node *waits; /* of its tasks, and those of generations that it is charged for;
                                        NULL: none waits; see deadlock.h                        */
    union {
        struct wr_map_node
            in_table; /* its `next` is free to use once the group is evicted         */
        struct {
            uint32_t hash, generation; /* the node's hash and number                              */
        };
    };
    char key[]; /* of wr_key_room bytes                                                         */
};

static_assert(sizeof(void *) != 8 || sizeof(struct weir_group) == 224,
              "with a short key and what malloc keeps, a group takes 240 bytes");
static_assert(sizeof(void *) != 8 || offsetof(struct weir_group, queue.first) == 64,
              "submitting writes one cache line");
static_assert(offsetof(struct weir_group, idle_since) == offsetof(struct weir_group, stand.ticket),
              "what its line lends it is not used in line");
WR_KEY_LIES_BEHIND(struct weir_group, in_table, key);

/* NULL for NULL. */
static inline struct weir_group *wr_group_of(struct wr_map_node *node)
{
    return node ? WR_CONTAINER(node, struct weir_group, in_table) : NULL;
}

static inline struct weir_group *wr_group_at(const struct wr_stand *stand)
{
    return stand ? WR_CONTAINER(stand, struct weir_group, stand) : NULL;
}

/* Fields that only some groups need. Submitting reads those from the queues of lower priority to `gates`, which share a cache
 * line or two. */
struct wr_extras {
    struct wr_queue levels[WR_LEVELS]; /* of other priorities than WEIR_NORMAL                  */

    /* Groups in domains always have this record. */
    _Atomic uint32_t want;  /* under the domains' lock; also read without it          */
    uint8_t counted;        /* likewise, enum wr_counts: what the ledger is told of its tasks */
    bool waits_with_thread; /* likewise: has_thread, and no worker has it in hands     */
    bool was_passed_over;   /* its turn for a thread came when its domain was full     */
    bool emptied;           /* in a list of groups being emptied, by `next`            */

    struct wr_group_gates *gates;
    struct weir_group *next;
    struct wr_refusals refused;
    struct weir_group *heir;  /* the next generation, pinned, if it was charged for our permits  */
    weir_deadlines deadlines; /* of tasks that have none of their own                 */
    uint32_t timed_out, stalls, overdue; /* overdue: bodies that run beyond their deadline      */
};

static inline struct wr_gates *wr_group_gates(const struct weir_group *group)
{
    return group->extras && group->extras->gates ? &group->extras->gates->gates : NULL;
}

/* Where its next task stands, in that line or just taken from it. */
static inline enum wr_place wr_group_place(const struct weir_group *group)
{
    return (enum wr_place)(wr_load(&group->stand.place, relaxed) & ~WR_IN_HANDS);
}

/* Whether it stands in the line of that place, and was not just taken from it. */
static inline bool wr_group_stands_at(const struct weir_group *group, enum wr_place place)
{
    return wr_load(&group->stand.place, relaxed) == place;
}

/* Where it stands while it is in no line. */
static inline enum wr_place wr_group_place_at_rest(const struct weir_group *group)
{
    const struct wr_gates *gates = wr_group_gates(group);

    return group->paused ? WR_PAUSED : gates && gates->refused ? WR_GATED : WR_AT_REST;
}

/* Whether it stands in a line or in the wheel, or was just taken from there. */
static inline bool wr_group_is_in_line(const struct weir_group *group)
{
    return wr_load(&group->stand.place, relaxed) >= WR_READY;
}

/* Whether a worker has just taken it from its ring. */
static inline bool wr_group_is_in_hands(const struct weir_group *group)
{
    return wr_load(&group->stand.place, relaxed) == (WR_READY | WR_IN_HANDS);
}

/* Whether a beat is out, and was not folded. Under the lock. */
static inline bool wr_group_has_beat(const struct weir_group *group)
{
    return (uintptr_t)group->pending_first & WR_HAND_OF_BEAT;
}

/* Every lock of a group is followed by this, which folds a hand that is out; except for one kind of submit, see hand.h. */
static inline void wr_group_locked(struct weir_group *group)
{
    if (WR_UNLIKELY((uintptr_t)group->pending_first & WR_HAND_OUT))
        wr_hand_fold(group);
}

static inline void wr_group_lock(struct weir_group *group)
{
    wr_lock(&group->lock);
    wr_group_locked(group);
}

/* Made if need be; NULL without memory. Under the lock. */
struct wr_extras *wr_group_extras(struct weir_group *group);

static inline struct weir_group *wr_group_heir(const struct weir_group *group)
{
    return group->extras ? group->extras->heir : NULL;
}

/* Whether the ledger of domains is told of each of its tasks that waits. */
static inline bool wr_group_is_counted(const struct weir_group *group)
{
    return group->extras && group->extras->counted;
}

/* A time as idle_since has it: rounded up, and around again after 49 days. */
static inline uint32_t wr_idle_ms(weir_time time)
{
    return (uint32_t)((uint64_t)(time + 999999) / 1000000);
}

static inline uint64_t wr_group_submitted(const struct weir_group *group)
{
    return group->submitted + wr_queue_entries(&group->queue);
}

/* The queue of a priority level; NULL if nothing ever stood there. */
static inline struct wr_queue *wr_group_level(struct weir_group *group, int level)
{
    if (level == WR_LEVEL_NORMAL)
        return &group->queue;
    return group->extras ? &group->extras->levels[level] : NULL;
}

/* A group without limits that no other thread knows yet; NULL without memory. */
struct weir_group *wr_group_new(struct weir_executor *ex, const struct wr_key *key);

/* Asks the policy for the group's limits. The policy may ask the user, so call it without any lock. 0, or why the group is of
 * no use: WEIR_ENODOMAIN, WEIR_ENOMEM. */
int wr_group_resolve(struct weir_group *group);

/* Becomes the present generation of its key. Under its shard's lock. */
void wr_group_introduce(struct weir_group *group, struct wr_shard *shard);

/* Frees the record of a group that nothing points to. */
void wr_group_discard(struct weir_group *group);

/* Finds or makes the group; answers it with a pin. */
int wr_group_find(struct weir_group **out, struct weir_executor *ex, const char *key);

/* Locks the group of that key, but folds no hand; NULL: there is none that is of use yet, and wr_group_find must deal
 * with it. */
struct weir_group *wr_group_lock_by_key(struct weir_executor *ex, const char *key);

/* The present generation of a group, pinned; NULL if the executor is closed or out of memory. */
struct weir_group *wr_group_present(struct weir_group *group);

/* The same for a call that steers the group behind a handle: it is kept from now on, like every group with a handle. */
struct weir_group *wr_group_current(struct weir_group *handle);

/* Takes a finished or settled task's permits back; if the group was evicted with WEIR_CARRY_OVER, those
 * that its heir was charged, too. Under the lock; a heir's lock is taken after its ancestor's. */
void wr_group_finish(struct weir_group *group, uint32_t cost);
void wr_group_settle_pending(struct weir_group *group, uint32_t cost);

/* From now on, groups that were idle long enough are evicted. The clock must be running. */
void wr_group_sweep_idle(struct weir_executor *ex);

/* Locks an existing group; NULL: there is none, or the executor is closed. */
struct weir_group *wr_group_look_up(struct weir_executor *ex, const char *key);

/* Gives a pin back. Frees the group if nothing is left. */
void wr_group_unpin(struct weir_group *group);

/* For callers that hold the lock and may have dropped the last record: unlocks, frees if need be. */
void wr_group_unlock_and_reap(struct weir_group *group);

/* Takes a group (NULL: none) out of the table and refuses what waits in it. WEIR_REASON_EVICTED: it counts as evicted. Under
 * its shard's lock, which is given back. */
void wr_group_evict(struct weir_group *group, struct wr_shard *shard, weir_reason reason,
                    int flags);

/* The same with all groups, or (`which`) those that it says. Call it without any lock. */
void wr_group_retire_if(struct weir_executor *ex,
                        bool (*which)(struct weir_group *group, weir_time now), weir_time now,
                        weir_reason reason);

/* The executor goes: groups that were kept because they have a handle are kept no longer. */
void wr_group_forget_handles(struct weir_executor *ex);

/* The first word of the first task in its queues (see queue.h), or NULL. Under the lock. */
static inline uint64_t *wr_group_first(struct weir_group *group)
{
    uint64_t *first = NULL;

    if (WR_LIKELY(!group->extras))
        return wr_group_first_in(group, &group->queue);
    for (int level = 0; !first && level < WR_LEVELS; level++)
        first = wr_group_first_in(group, wr_group_level(group, level));
    return first;
}

/* Takes the first task out of its queue. */
void wr_group_pop(struct weir_group *group, const uint64_t *first);

/* All tasks that wait, in the order in which they start: `at` is zero at first. NULL: that was the last. */
struct wr_group_walk {
    int level;
    struct wr_queue_place place;
};
uint64_t *wr_group_next(struct weir_group *group, struct wr_group_walk *at);

/* Whether there can be as many permits of the executor's as a task costs. If its limit was lowered to less, the task waits until it is
 * raised, and keeps no other group waiting. */
bool wr_group_fits(const struct weir_group *group, uint32_t cost);

/* Whether its first task could start, as far as the group is concerned. Under the lock. */
bool wr_group_is_ready(struct weir_group *group);

/* Notes what the ring has to know of the first task, which there must be: its cost, and whether it will not wait for ever. True:
 * that has changed. Under the lock. */
bool wr_group_note_first(struct weir_group *group);

/* Whether some of its waiting tasks can only start after another call: it is paused, its domain has no slots, or the
 * executor's limit was lowered below a task's cost. Without the lock. For wr_group_retire_if; `now` is not used. */
bool wr_group_never_finishes(struct weir_group *group, weir_time now);

/* Call it when a pause, a gate or the line for threads begins or ceases to keep the group: updates its place, if it is in no
 * line, and its sums. Under the lock; to be followed by wr_group_refresh. */
void wr_group_note_closed(struct weir_group *group);

/* Follows every change of a group: puts it where its next task belongs, into a line or out of it. Answers whether a worker should
 * be woken. Under the lock. */
bool wr_group_refresh(struct weir_group *group);

/* The same where nothing else is left to do under the lock: unlocks, and wakes workers and submits that wait for room. */
void wr_group_changed(struct weir_group *group);

void wr_group_refuse_count(struct weir_group *group, weir_reason reason);

/* Whether the equations above hold. For WR_ASSERT_SLOW, under the group's lock, after a step is complete: wr_group_refresh comes before.
 * Long queues are taken on trust, so that a step costs no more for them. */
bool wr_group_is_valid(struct weir_group *group);

#endif
