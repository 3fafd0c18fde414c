/* Groups: finding and making them, their queues, limits and permits, and their end.
 * SPDX-License-Identifier: MIT */
#include "executor/group.h"

#include "base/assert.h"
#include "base/os.h"
#include "executor/executor.h"
#include "executor/group_check.h"
#include "executor/settle.h"

#include <stdlib.h>
#include <string.h>
#include <weir/error.h>

/* ---- life ------------------------------------------------------------------------------------ */

struct weir_group *wr_group_new(struct weir_executor *ex, const char *key, size_t length,
                                uint32_t hash)
{
    struct weir_group *group = wr_os_alloc(sizeof(*group) + length + 1);

    if (!group)
        return NULL;
    if (ex->domains && !wr_group_extras(group)) {
        wr_os_free(group);
        return NULL;
    }
    group->resolution = WR_UNRESOLVED;
    group->weight = 1;
    wr_list_init(&group->ring_link);
    group->executor = ex;
    group->hash = hash;
    group->idle_since = wr_idle_ms(wr_os_now_coarse());
    memcpy(group->key, key, length + 1);
    return group;
}

static void free_queues(struct weir_group *group)
{
    wr_queue_fini(group, &group->queue);
    for (int level = 0; group->extras && level < WR_LEVELS; level++)
        wr_queue_fini(group, &group->extras->levels[level]);
}

void wr_group_discard(struct weir_group *group)
{
    wr_gates_free(group);
    free_queues(group);
    if (group->extras)
        wr_refusals_fini(&group->extras->refused);
    wr_os_free(group->extras);
    wr_os_free(group);
}

/* What few groups have is kept apart, if there is memory for it. Under the lock. */
static enum wr_resolution resolve_extras(struct weir_group *group,
                                         const struct wr_group_limits *limits)
{
    if (limits->lost)
        return WR_LOST;
    if (limits->pace.interval && wr_pace_begin(group, &limits->pace))
        return WR_STARVED;
    if (!wr_has_deadlines(&limits->deadlines))
        return WR_RESOLVED;
    if (!wr_group_extras(group))
        return WR_STARVED;
    group->extras->deadlines = limits->deadlines;
    wr_store(&group->executor->policy.watched, true, relaxed); /* read under the group's lock */
    return WR_RESOLVED;
}

static int resolution_error(enum wr_resolution resolution)
{
    return resolution == WR_RESOLVED ? 0 : resolution == WR_LOST ? WEIR_ENODOMAIN : WEIR_ENOMEM;
}

/* Asks the policy, which may ask the user, so without any lock. Only who made the group does; all others wait
 * in wait_resolved, so that nobody is asked twice. */
int wr_group_resolve(struct weir_group *group)
{
    struct weir_executor *ex = group->executor;
    struct wr_group_limits limits;
    struct wr_frame frame = { 0 };
    enum wr_resolution resolution;

    wr_frame_enter(&frame);
    limits = wr_policy_resolve(&ex->policy, group->key);
    wr_frame_leave(&frame);
    if (limits.run_on == WEIR_THREADS)
        wr_domains_count(ex);
    wr_group_lock(group);
    wr_set_limits(&group->sums, &ex->root, limits.limit, limits.inflight_max, limits.queue_max);
    group->weight = limits.weight;
    group->domain = limits.domain;
    group->carrier = (uint8_t)limits.run_on;
    resolution = resolve_extras(group, &limits);
    group->resolution = (uint8_t)resolution;
    wr_unlock(&group->lock);
    wr_waitq_wake_all(&ex->resolved);
    return resolution_error(resolution);
}

static enum wr_resolution resolution_of(struct weir_group *group)
{
    enum wr_resolution resolution;

    wr_group_lock(group);
    resolution = (enum wr_resolution)group->resolution;
    wr_unlock(&group->lock);
    return resolution;
}

static enum wr_resolution wait_resolved(struct weir_group *group)
{
    enum wr_resolution resolution = resolution_of(group);
    struct wr_parker storage, *self;
    struct wr_waiter waiter;

    if (resolution != WR_UNRESOLVED)
        return resolution;
    self = wr_parker_self(&storage);
    wr_waitq_enter(&group->executor->resolved, &waiter, self);
    while ((resolution = resolution_of(group)) == WR_UNRESOLVED)
        wr_park(self, WEIR_FOREVER);
    wr_waitq_leave(&group->executor->resolved, &waiter);
    return resolution;
}

/* Waits until the group is resolved. One that is of no use is not kept, nor is the caller's pin: the resolver may
 * have a better answer next time, or there may be memory. */
static int check_usable(struct weir_group *group)
{
    enum wr_resolution resolution = wait_resolved(group);
    struct wr_shard *shard;
    bool ours;

    if (resolution == WR_RESOLVED)
        return 0;
    shard = wr_table_lock(&group->executor->table, group->hash);
    ours = !group->evicted;
    if (ours)
        wr_group_detach(group);
    wr_unlock(&shard->lock);
    if (ours)
        wr_group_retire(group, WEIR_REASON_EVICTED, 0);
    wr_group_unpin(group);
    return resolution_error(resolution);
}

/* Leaves the retired; what it had counted goes to the books, in the same hold, so that it is never missing. */
static void close_books(struct weir_group *group)
{
    struct weir_executor *ex = group->executor;
    struct wr_shard *shard = wr_table_lock(&ex->table, group->hash);
    struct wr_totals totals = { 0 };

    wr_list_remove(&group->ring_link);
    wr_totals_add_group(&totals, group);
    wr_totals_add(&shard->gone, &totals);
    wr_lock(&ex->archive.lock);
    wr_archive_add(&ex->archive, group->hash, group->key, &totals);
    wr_unlock(&ex->archive.lock);
    wr_unlock(&shard->lock);
}

/* Nobody has it, and nobody can get it any more. Under the lock. */
static bool is_dead(const struct weir_group *group)
{
    /* A worker that has just taken it from the ring will look at it, and reap it then. */
    return group->evicted && !group->kept && !group->in_ring && group->sums.queued == 0 &&
           group->records == 0 && group->pins == 0 &&
           group->thread != WR_THREAD_AWAITED; /* else it is being called */
}

/* Gives a pin back; true if that was the last thing that kept the group. */
static bool unpin(struct weir_group *group)
{
    bool dead;

    wr_group_lock(group);
    WR_ASSERT(group->pins > 0);
    group->pins--;
    dead = is_dead(group);
    wr_unlock(&group->lock);
    return dead;
}

/* Frees a dead group; and its heirs, if it was the last to keep them, in a loop: there may be many. */
static void group_delete(struct weir_group *group)
{
    while (group) {
        struct weir_executor *ex = group->executor;
        struct weir_group *heir = wr_group_heir(group);

        WR_ASSERT(!group->in_ring && group->sums.queued == 0 && group->sums.inflight == 0);
        close_books(group);
        wr_group_discard(group);
        group = heir && unpin(heir) ? heir : NULL;
        wr_executor_unref(ex);
    }
}

void wr_group_unlock_and_reap(struct weir_group *group)
{
    bool dead = is_dead(group);

    wr_unlock(&group->lock);
    if (dead)
        group_delete(group);
}

void wr_group_unpin(struct weir_group *group)
{
    if (unpin(group))
        group_delete(group);
}

const char *weir_group_key(const weir_group *group)
{
    return group->key;
}

/* ---- finding --------------------------------------------------------------------------------- */

/* Under the shard's lock, so that it is not evicted in between. */
static struct weir_group *pin_existing(struct wr_shard *shard, uint32_t hash, const char *key)
{
    struct weir_group *group = wr_shard_get(shard, hash, key);

    if (group) {
        wr_group_lock(group);
        group->pins++;
        wr_unlock(&group->lock);
    }
    return group;
}

struct weir_group *wr_group_lock_by_key(struct weir_executor *ex, const char *key)
{
    struct weir_group *group = wr_table_lock_group(&ex->table, key);

    if (!group || group->resolution == WR_RESOLVED)
        return group;
    wr_unlock(&group->lock);
    return NULL;
}

struct weir_group *wr_group_look_up(struct weir_executor *ex, const char *key)
{
    uint32_t hash = wr_table_hash(&ex->table, key, strlen(key));
    struct wr_shard *shard = wr_table_lock(&ex->table, hash);
    struct weir_group *group = NULL;

    if (!wr_load(&ex->closed, acquire))
        group = pin_existing(shard, hash, key);
    wr_unlock(&shard->lock);
    return group;
}

void wr_group_introduce(struct weir_group *group, struct wr_shard *shard)
{
    struct weir_executor *ex = group->executor;

    group->generation = wr_add(&ex->table.generation, 1, relaxed);
    wr_set_counted(&group->sums, &ex->root, ex->table.counted);
    if (ex->domains)
        wr_domain_join(group);
    wr_add(&ex->references, 1, relaxed);
    wr_shard_put(shard, group);
}

int wr_group_find(struct weir_group **out, struct weir_executor *ex, const char *key)
{
    size_t length = strnlen(key, WEIR_KEY_MAX + 1);
    struct weir_group *group, *made;
    struct wr_shard *shard;
    uint32_t hash;

    if (length > WEIR_KEY_MAX)
        return WEIR_EINVAL;
    hash = wr_table_hash(&ex->table, key, length);
    shard = wr_table_lock(&ex->table, hash);
    group = pin_existing(shard, hash, key);
    wr_unlock(&shard->lock);
    if (group) {
        *out = group;
        return check_usable(group);
    }
    made = wr_group_new(ex, key, length, hash);
    if (!made)
        return WEIR_ENOMEM;
    wr_lock(&shard->lock);
    if (wr_load(&ex->closed, acquire)) {
        wr_unlock(&shard->lock);
        wr_group_discard(made);
        return WEIR_ECLOSED;
    }
    group = pin_existing(shard, hash, key);
    if (!group) {
        group = made;
        made = NULL;
        group->pins = 1;
        wr_group_introduce(group, shard);
    }
    wr_unlock(&shard->lock);
    if (made) /* another was faster */
        wr_group_discard(made);
    else
        wr_group_resolve(group);
    *out = group;
    return check_usable(group);
}

struct weir_group *wr_group_present(struct weir_group *group)
{
    struct weir_group *present = NULL;
    bool evicted;

    wr_group_lock(group);
    evicted = group->evicted;
    group->pins += !evicted;
    wr_unlock(&group->lock);
    if (!evicted)
        return group;
    return wr_group_find(&present, group->executor, group->key) ? NULL : present;
}

/* Evicted just now or not: its handles lead to whatever is current. */
static void keep(struct weir_group *group)
{
    wr_group_lock(group);
    group->kept = true;
    wr_unlock(&group->lock);
}

struct weir_group *wr_group_current(struct weir_group *handle)
{
    struct weir_group *group = wr_group_present(handle);

    if (group && group != handle)
        keep(group);
    return group;
}

int weir_group_get(weir_group **out, weir_executor *ex, const char *key)
{
    struct weir_group *group;
    int rc;

    if (!out || !ex || !key)
        return WEIR_EINVAL;
    *out = NULL;
    if (wr_load(&ex->closed, acquire))
        return WEIR_ECLOSED;
    rc = wr_group_find(&group, ex, key);
    if (rc)
        return rc;
    keep(group);
    wr_group_unpin(group);
    *out = group;
    return 0;
}

void wr_group_forget_kept(struct weir_executor *ex)
{
    struct weir_group *group = NULL, *next, *kept = NULL;

    while ((group = wr_table_walk(&ex->table, group))) {
        WR_ASSERT(group->evicted);
        wr_group_lock(group);
        if (group->kept) { /* any other is reaped by its last holder, which may be about to */
            group->kept = false;
            group->pins++;
            group->table_next = kept; /* free to use: it is in no bucket any more */
            kept = group;
        }
        wr_unlock(&group->lock);
    }
    for (group = kept; group; group = next) {
        next = group->table_next;
        wr_group_unpin(group);
    }
}

/* ---- the queue ------------------------------------------------------------------------------- */

struct wr_extras *wr_group_extras(struct weir_group *group)
{
    if (!group->extras)
        group->extras = wr_os_alloc(sizeof(*group->extras));
    return group->extras;
}

void wr_group_pop(struct weir_group *group, const uint64_t *first)
{
    const struct wr_side *side = wr_is_entry(*first) ? NULL : wr_task_side(wr_record_at(first));

    wr_queue_pop(wr_group_level(group, side ? side->level : WR_LEVEL_NORMAL), first);
}

uint64_t *wr_group_next(struct weir_group *group, struct wr_group_place *at)
{
    for (; at->level < WR_LEVELS; *at = (struct wr_group_place){ .level = at->level + 1 }) {
        struct wr_queue *queue = wr_group_level(group, at->level);
        uint64_t *word = queue ? wr_queue_next(queue, &at->place) : NULL;
        if (word)
            return word;
    }
    return NULL;
}

bool wr_group_is_ready(struct weir_group *group)
{
    return group->sums.queued > 0 && wr_cost_at(wr_group_first(group)) <= wr_free(&group->sums);
}

bool wr_group_note_first(struct weir_group *group)
{
    const uint64_t *first = wr_group_first(group);
    uint32_t cost = wr_cost_at(first), needs = cost < WR_TIMED ? cost : WR_TIMED - 1;

    if (wr_is_timed_at(first))
        needs |= WR_TIMED;
    if (needs == wr_load(&group->first_needs, relaxed))
        return false;
    wr_store(&group->first_needs, needs, relaxed);
    return true;
}

/* Its first task may have changed while it stood in the ring. */
static inline bool refresh_in_ring(struct weir_group *group)
{
    struct wr_ring *ring = wr_group_ring(group);

    if (!wr_group_is_ready(group)) { /* it would keep others waiting for a turn it cannot take */
        if (!wr_ring_remove(ring, group))
            return false; /* a worker has it, and will see */
        group->in_ring = false;
        if (group->executor->domains && !wr_group_is_counted(group))
            return wr_domain_sync(group);
        return wr_load(&ring->count, relaxed) > 0; /* it may have been owed permits */
    }
    if (!wr_group_note_first(group))
        return false;
    wr_ring_ask_again(ring);
    if (group->executor
            ->domains) /* also those that are about to sleep until there are more permits */
        wr_domain_ask_again(group);
    return true;
}

/* Puts a group that has become ready into its ring. */
static inline bool refresh_out_of_ring(struct weir_group *group)
{
    if (!wr_group_is_ready(group))
        return false;
    group->in_ring = true;
    wr_group_note_first(group);
    /* A turn that was only interrupted, by the group's own limit or for want of a thread, goes on. */
    if (group->turn_left > 0 || group->thread == WR_THREAD_KEPT) {
        wr_ring_keep(wr_group_ring(group), group);
        if (group->executor->domains) /* it may need less than who was first */
            wr_domain_ask_again(group);
    } else {
        wr_ring_append(wr_group_ring(group), group);
    }
    return true;
}

/* Where the ledger counts: a group leaves its ring before it ceases to want a slot, and wants one before it enters, so
 * that one in a ring always wants something. */
static __attribute__((noinline)) bool refresh_in_domain(struct weir_group *group)
{
    bool wake = !group->evicted && group->in_ring && refresh_in_ring(group), ready;

    ready = wr_domain_sync(group);
    if (!group->evicted && !group->in_ring)
        wake |= refresh_out_of_ring(group);
    return wake || ready;
}

bool wr_group_refresh(struct weir_group *group)
{
    if (group->sums.queued == 0)
        group->turn_left = 0;
    if (WR_UNLIKELY(group->thread))
        wr_thread_refresh(group);
    if (WR_UNLIKELY(wr_group_is_counted(group)))
        return refresh_in_domain(group);
    if (group->evicted)
        return false;
    return group->in_ring ? refresh_in_ring(group) : refresh_out_of_ring(group);
}

void wr_group_changed(struct weir_group *group)
{
    bool wake = wr_group_refresh(group);

    WR_ASSERT_SLOW(wr_group_is_valid(group));
    wr_unlock(&group->lock);
    if (wake)
        wr_executor_wake(group->executor);
    wr_room_made(group->executor);
}

void wr_group_refuse_count(struct weir_group *group, weir_reason reason)
{
    if (wr_group_extras(group)) /* without memory one is not counted; it is told all the same */
        wr_refusals_add(&group->extras->refused, reason);
}

/* ---- permits --- */

static void discharge_heir(struct weir_group *group, uint32_t cost)
{
    struct weir_group *heir = wr_group_heir(group), *next;
    bool wake = false;

    for (; heir; heir = next) { /* which may have been evicted itself, and have charged its own */
        wr_group_lock(heir);
        WR_ASSERT(heir->sums.carried >= cost);
        wr_carry(&heir->sums, &group->executor->root, heir->sums.carried - cost);
        wake |= wr_group_refresh(heir);
        next = wr_group_heir(heir);
        wr_unlock(&heir->lock);
    }
    if (wake)
        wr_executor_wake(group->executor);
}

/* Permits are back. If all that are left are kept by tasks that wait, a costly one may be first in line in vain. */
static void given_back(struct weir_group *group, uint32_t cost)
{
    struct weir_executor *ex = group->executor;

    if (ex->domains)
        wr_domain_give(group);
    discharge_heir(group, cost);
    if (WR_UNLIKELY(wr_load(&ex->nested.count, relaxed)) && group->sums.counted &&
        wr_load(&ex->root.held, relaxed) <= wr_load(&ex->nested.parked, relaxed))
        wr_waits_suspect(ex);
}

void wr_group_finish(struct weir_group *group, uint32_t cost)
{
    wr_finish(&group->sums, &group->executor->root, cost);
    given_back(group, cost);
}

void wr_group_settle_pending(struct weir_group *group, uint32_t cost)
{
    wr_settle_pending(&group->sums, &group->executor->root, cost);
    given_back(group, cost);
}

/* ---- limits ---------------------------------------------------------------------------------- */

/* The highest cost of what waits. Under the lock. */
static uint32_t highest_cost(struct weir_group *group)
{
    uint32_t highest = group->sums.queued ? 1 : 0;
    struct wr_group_place at = { 0 };
    uint64_t *word;

    if (group->sums.queued_cost == group->sums.queued)
        return highest; /* each costs 1 */
    while ((word = wr_group_next(group, &at)))
        highest = wr_cost_at(word) > highest ? wr_cost_at(word) : highest;
    return highest;
}

bool wr_group_never_finishes(struct weir_group *group)
{
    struct weir_executor *ex = group->executor;
    bool never;

    wr_group_lock(group);
    never = group->sums.closed & WR_PAUSED ||
            highest_cost(group) > wr_load(&ex->root.inflight_max, relaxed) ||
            (ex->domains && !wr_domain_has_slots(group));
    wr_unlock(&group->lock);
    return never;
}

/* The present generation behind a handle, locked and pinned, to be changed; NULL: the executor is closed. */
static struct weir_group *begin_change(struct weir_group *handle)
{
    struct weir_group *group = wr_group_current(handle);

    if (group)
        wr_group_lock(group);
    return group;
}

/* Whatever depends on it is told. */
static void end_change(struct weir_group *group)
{
    wr_group_changed(group);
    wr_waits_suspect(group->executor);
    wr_group_unpin(group);
}

int weir_group_resize(weir_group *handle, int64_t limit, int64_t inflight_max, int64_t queue_max)
{
    uint32_t l = wr_limit_from(limit), f = wr_limit_from(inflight_max), q = 0;
    struct weir_group *group;
    struct wr_sums *s;
    bool too_low;

    if (!handle || (limit && !l) || (inflight_max && !f) ||
        (queue_max && !wr_queue_from(&q, queue_max)))
        return WEIR_EINVAL;
    group = begin_change(handle);
    if (!group)
        return WEIR_ECLOSED;
    s = &group->sums;
    too_low = (limit && l < highest_cost(group)) || (inflight_max && f < highest_cost(group));
    if (!too_low)
        wr_set_limits(s, &group->executor->root, limit ? l : s->limit,
                      inflight_max ? f : s->inflight_max, queue_max ? q : s->queue_max);
    end_change(group);
    return too_low ? WEIR_EINVAL : 0;
}

int weir_group_run_on(weir_group *handle, weir_carrier carrier)
{
    struct weir_group *group;

    if (!handle || (unsigned)carrier > WEIR_THREADS)
        return WEIR_EINVAL;
    if (carrier == WEIR_THREADS)
        wr_domains_count(handle->executor);
    group = begin_change(handle);
    if (!group)
        return WEIR_ECLOSED;
    group->carrier = (uint8_t)carrier; /* it may have waited for a thread */
    end_change(group);
    return 0;
}

int weir_group_set_weight(weir_group *handle, int64_t weight)
{
    struct weir_group *group;

    if (!handle || weight < 1 || weight > WEIR_WEIGHT_MAX)
        return WEIR_EINVAL;
    group = begin_change(handle);
    if (!group)
        return WEIR_ECLOSED;
    group->weight = (uint16_t)weight;
    end_change(group);
    return 0;
}
