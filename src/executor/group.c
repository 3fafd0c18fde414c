/* Groups: finding and making them, and their end.
 * SPDX-License-Identifier: MIT */
#include "executor/group.h"

#include "base/assert.h"
#include "base/os.h"
#include "executor/executor.h"
#include "executor/group_check.h"
#include "executor/settle.h"
#include "executor/state.h"

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
    wr_store(&group->weight, 1, relaxed);
    wr_list_init(&group->link);
    group->executor = ex;
    group->hash = hash;
    group->idle = true;
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
    wr_store(&group->weight, limits.weight, relaxed);
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

    wr_list_remove(&group->link);
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
    /* Whoever has it in hands will look at it, and reap it then. */
    return group->evicted && !group->has_handle && wr_group_place(group) == WR_AT_REST &&
           group->sums.queued == 0 && group->records == 0 && group->pins == 0 &&
           group->telling == 0;
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

        WR_ASSERT(wr_group_place(group) == WR_AT_REST && group->sums.queued == 0 &&
                  group->sums.inflight == 0);
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

weir_executor *wr_group_executor(const struct weir_group *group)
{
    return group->executor;
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
    group->has_handle = true;
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

void wr_group_forget_handles(struct weir_executor *ex)
{
    struct weir_group *group = NULL, *next, *kept = NULL;

    while ((group = wr_table_walk(&ex->table, group))) {
        WR_ASSERT(group->evicted);
        wr_group_lock(group);
        if (group->has_handle) { /* any other is reaped by its last holder, which may be about to */
            group->has_handle = false;
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
