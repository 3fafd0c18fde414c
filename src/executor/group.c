/* Groups: finding and making them, and their end.
 * SPDX-License-Identifier: MIT */
#include "executor/group.h"

#include "base/assert.h"
#include "base/os.h"
#include "executor/executor.h"
#include "executor/settle.h"
#include "executor/state.h"

#include <string.h>
#include <weir/error.h>

/* ---- life ------------------------------------------------------------------------------------ */

struct weir_group *wr_group_new(struct weir_executor *ex, const struct wr_key *key)
{
    struct weir_group *group = wr_os_alloc(sizeof(*group) + wr_key_room(key->length));

    if (!group)
        return NULL;
    if (ex->domains && !wr_group_extras(group)) {
        wr_os_free(group);
        return NULL;
    }
    wr_store(&group->use, WR_UNRESOLVED, relaxed);
    wr_stand_init(&group->stand, key->hash);
    group->executor = ex;
    group->hash = key->hash;
    group->idle = true;
    group->idle_since = wr_idle_ms(wr_os_now_coarse());
    memcpy(group->key, key->text, key->length);
    return group;
}

void wr_group_discard(struct weir_group *group)
{
    wr_group_free_gates(group);
    wr_group_empty_queue(group, &group->queue);
    if (group->extras) {
        for (int level = 0; level < WR_LEVELS; level++)
            wr_group_empty_queue(group, &group->extras->levels[level]);
        wr_refusals_fini(&group->extras->refused);
    }
    wr_os_free(group->extras);
    wr_os_free(group);
}

/* Why a group is of no use; 0: it can be used. */
static int use_error(enum wr_use use)
{
    return use == WR_NO_DOMAIN ? WEIR_ENODOMAIN : use == WR_NO_MEMORY ? WEIR_ENOMEM : 0;
}

/* Sets the limits of a new group. Answers what it is good for: a pace and deadlines need memory. Under the lock. */
static enum wr_use set_limits(struct weir_group *group, const struct wr_group_limits *limits)
{
    struct weir_executor *ex = group->executor;

    wr_set_limits(&group->sums, &ex->root, limits->limit, limits->inflight_max, limits->queue_max);
    wr_store(&group->stand.weight, limits->weight, relaxed);
    group->domain = limits->domain;
    group->carrier = (uint8_t)limits->run_on;
    if (limits->lost)
        return WR_NO_DOMAIN;
    if (limits->pace.interval) {
        if (!wr_group_make_gates(group))
            return WR_NO_MEMORY;
        wr_gates_set_pace(wr_group_gates(group), &limits->pace, wr_os_now());
    }
    if (!wr_has_deadlines(&limits->deadlines))
        return WR_USABLE;
    if (!wr_group_extras(group))
        return WR_NO_MEMORY;
    group->extras->deadlines = limits->deadlines;
    wr_store(&ex->policy.watched, true, relaxed); /* read under the group's lock */
    return WR_USABLE;
}

/* Only the thread that made the group asks. All others wait in check_usable, so the policy is asked once. */
int wr_group_resolve(struct weir_group *group)
{
    struct weir_executor *ex = group->executor;
    struct wr_group_limits limits;
    struct wr_frame frame = { 0 };
    enum wr_use use;

    wr_frame_enter(&frame);
    limits = wr_policy_resolve(&ex->policy, group->key);
    wr_frame_leave(&frame);
    if (limits.run_on == WEIR_THREADS)
        wr_domains_count(ex, WR_COUNTS_READY);
    wr_group_lock(group);
    use = set_limits(group, &limits);
    wr_store(&group->use, (uint8_t)use, seq_cst); /* see struct wr_waitq */
    wr_unlock(&group->lock);
    wr_waitq_wake_all(&ex->resolved);
    return use_error(use);
}

static bool is_resolved(void *group)
{
    return wr_load(&((struct weir_group *)group)->use, seq_cst) != WR_UNRESOLVED;
}

/* Waits until the group is resolved. One that is of no use is not kept, nor is the caller's pin: the resolver may
 * have a better answer next time, or there may be memory. */
static int check_usable(struct weir_group *group)
{
    struct weir_executor *ex = group->executor;
    struct wr_shard *shard;
    int rc;

    wr_waitq_wait(&ex->resolved, is_resolved, group, WEIR_FOREVER, false);
    rc = use_error((enum wr_use)wr_load(&group->use, relaxed));
    if (rc) {
        shard = wr_table_lock(&ex->table, group->hash);
        wr_group_evict(group->evicted ? NULL : group, shard, WEIR_REASON_NONE, 0);
        wr_group_unpin(group);
    }
    return rc;
}

/* Takes the group out of `retired` and adds its counts to `gone` and the archive, in one hold of the shard's lock, so that no sum
 * misses them. */
static void close_books(struct weir_group *group)
{
    struct wr_key key = { group->key, strlen(group->key), group->hash };
    struct weir_executor *ex = group->executor;
    struct wr_shard *shard = wr_table_lock(&ex->table, group->hash);
    struct wr_totals totals = { 0 };

    wr_list_remove(&group->retired);
    wr_totals_add_group(&totals, group);
    wr_totals_add(&shard->gone, &totals);
    wr_archive_add(&ex->archive, &key, &totals);
    wr_unlock(&shard->lock);
}

/* Whether nothing refers to the group, and no thread can find it any more. Under the lock. */
static bool is_dead(const struct weir_group *group)
{
    /* A worker that has it in its hands will look at it, and reap it then. */
    return group->evicted && !group->has_handle && !wr_group_is_in_line(group) &&
           group->sums.queued == 0 && group->records == 0 && group->pins == 0 &&
           group->telling == 0;
}

/* Frees a dead group. Answers its heir, locked and one pin less; NULL: it has none. */
static struct weir_group *group_delete(struct weir_group *group)
{
    struct weir_executor *ex = group->executor;
    struct weir_group *heir = wr_group_heir(group);

    WR_ASSERT(!wr_group_is_in_line(group) && group->sums.queued == 0 && group->sums.inflight == 0);
    close_books(group);
    wr_group_discard(group);
    if (heir) {
        wr_group_lock(heir);
        heir->pins--;
    }
    wr_executor_unref(ex);
    return heir;
}

void wr_group_unlock_and_reap(struct weir_group *group)
{
    while (group) { /* and its heirs, if it was the last to keep them: there may be many */
        bool dead = is_dead(group);
        wr_unlock(&group->lock);
        group = dead ? group_delete(group) : NULL;
    }
}

void wr_group_unpin(struct weir_group *group)
{
    wr_group_lock(group);
    WR_ASSERT(group->pins > 0);
    group->pins--;
    wr_group_unlock_and_reap(group);
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

struct weir_group *wr_group_lock_by_key(struct weir_executor *ex, const char *key)
{
    struct weir_group *group = wr_table_lock_group(&ex->table, key);

    if (!group || wr_load(&group->use, relaxed) == WR_USABLE)
        return group;
    wr_unlock(&group->lock);
    return NULL;
}

struct weir_group *wr_group_look_up(struct weir_executor *ex, const char *key)
{
    bool closed = wr_load(&ex->closed, acquire);
    struct weir_group *group = closed ? NULL : wr_table_lock_group(&ex->table, key);

    if (group)
        wr_group_locked(group);
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
    wr_map_put(&shard->present, &group->in_table);
}

/* Pins the group of that key, under the shard's lock, so that it is not evicted in between. If there is none, `made` becomes
 * that group, unless it is NULL or the executor is closed. */
static struct weir_group *pin(struct weir_executor *ex, const struct wr_key *key,
                              struct weir_group *made)
{
    struct wr_shard *shard = wr_table_lock(&ex->table, key->hash);
    struct weir_group *group = wr_shard_get(shard, key);

    if (!group && made && !wr_load(&ex->closed, acquire)) {
        group = made;
        wr_group_introduce(group, shard);
    }
    if (group) {
        wr_group_lock(group);
        group->pins++;
        wr_unlock(&group->lock);
    }
    wr_unlock(&shard->lock);
    return group;
}

int wr_group_find(struct weir_group **out, struct weir_executor *ex, const char *text)
{
    struct wr_key key = wr_table_key(&ex->table, text);
    struct weir_group *group, *made;

    if (key.length > WEIR_KEY_MAX)
        return WEIR_EINVAL;
    group = pin(ex, &key, NULL);
    if (!group) {
        made = wr_group_new(ex, &key);
        if (!made)
            return WEIR_ENOMEM;
        group = pin(ex, &key, made);
        if (group == made)
            wr_group_resolve(group);
        else
            wr_group_discard(made); /* another thread was faster */
        if (!group)
            return WEIR_ECLOSED;
    }
    *out = group;
    return check_usable(group);
}

struct weir_group *wr_group_present(struct weir_group *group)
{
    struct weir_group *present = group;
    bool evicted;

    wr_group_lock(group);
    evicted = group->evicted;
    group->pins += !evicted;
    wr_unlock(&group->lock);
    return evicted && wr_group_find(&present, group->executor, group->key) ? NULL : present;
}

/* The group has a handle from now on. It may be evicted just now: handles lead to the present generation. */
static void keep(struct weir_group *group)
{
    wr_group_lock(group);
    group->has_handle = true;
    wr_unlock(&group->lock);
}

struct weir_group *wr_group_current(struct weir_group *handle)
{
    struct weir_group *group = wr_group_present(handle);

    if (group)
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
    rc = wr_load(&ex->closed, acquire) ? WEIR_ECLOSED : wr_group_find(&group, ex, key);
    if (rc)
        return rc;
    keep(group);
    wr_group_unpin(group);
    *out = group;
    return 0;
}

void wr_group_forget_handles(struct weir_executor *ex)
{
    struct weir_group *group = NULL;
    struct wr_map_node *kept = NULL;

    while ((group = wr_table_walk(&ex->table, group))) {
        WR_ASSERT(group->evicted);
        wr_group_lock(group);
        if (group->has_handle) { /* any other is reaped by its last holder, which may be about to */
            group->has_handle = false;
            group->pins++;
            group->in_table.next = kept;
            kept = &group->in_table;
        }
        wr_unlock(&group->lock);
    }
    while ((group = wr_group_of(kept))) {
        kept = kept->next;
        wr_group_unpin(group);
    }
}
