/* The end of a generation: evicted by a call, with the executor, or for having been idle.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/os.h"
#include "executor/settle.h"
#include "executor/state.h"
#include "executor/tell.h"

#include <string.h>
#include <weir/error.h>

void wr_group_detach(struct weir_group *group)
{
    struct weir_executor *ex = group->executor;
    struct wr_shard *shard = wr_table_shard(&ex->table, group->hash);

    wr_shard_remove(shard, group);
    wr_group_lock(group);
    group->evicted = true;
    group->pins++;
    if (wr_group_place(group) == WR_READY)
        wr_line_remove(wr_group_ring(group), group); /* or a worker has it, and finds it evicted */
    wr_thread_forget(group);
    if (ex->domains)
        wr_domain_sync(group); /* it wants nothing any more */
    wr_unlock(&group->lock);
    wr_list_append(&shard->retired, &group->link); /* it will never stand in the ring again */
}

void wr_group_retire(struct weir_group *group, weir_reason reason, int flags)
{
    struct weir_executor *ex = group->executor;
    struct wr_telling telling;

    if (flags & WEIR_CANCEL_RUNNING) {
        wr_store(&group->cancel_all, true, seq_cst);
        wr_executor_sweep(ex);
        wr_telling_open(&telling);
        wr_group_end_pending(group, reason);
        wr_telling_close(&telling);
    }
    /* It may have been owed permits, and kept others waiting. */
    if (wr_executor_has_ready(ex))
        wr_executor_wake(ex);
    while (wr_reject_first(group, reason))
        ; /* one by one: nothing enters or starts any more, but a cancel may come between */
    wr_room_made(ex);
    wr_group_lock(group);
    wr_group_left(group);
    wr_unlock(&group->lock);
    wr_group_unpin(group);
}

uint32_t wr_group_retire_if(struct weir_executor *ex,
                            bool (*which)(struct weir_group *group, weir_time now), weir_time now,
                            weir_reason reason)
{
    struct weir_group *group, *next, *victims = NULL;
    uint32_t count = 0;

    for (struct wr_shard *shard = ex->table.shard; shard < ex->table.shard + WR_SHARDS; shard++) {
        wr_lock(&shard->lock);
        for (group = wr_shard_next(shard, NULL); group; group = next) {
            next = wr_shard_next(shard, group);
            if (which && !which(group, now))
                continue;
            wr_group_detach(group);
            group->table_next = victims; /* free to use: it is in no bucket any more */
            victims = group;
        }
        wr_unlock(&shard->lock);
    }
    for (group = victims; group; group = next, count++) {
        next = group->table_next;
        wr_group_retire(group, reason, 0);
    }
    return count;
}

/* The next generation of a key that there is, resolved, or NULL. It is known to nothing yet: there may be no memory for it,
 * and whatever answers for the policy may take long. */
static int new_heir(struct weir_group **out, struct weir_executor *ex, const char *key)
{
    struct weir_group *old = wr_group_look_up(ex, key), *heir;
    size_t length = strlen(key);
    int rc;

    *out = NULL;
    if (!old)
        return 0;
    wr_group_unpin(old); /* another may take its place meanwhile, and is then succeeded as well */
    heir = wr_group_new(ex, key, length, wr_table_hash(&ex->table, key, length));
    if (!heir)
        return WEIR_ENOMEM;
    rc = wr_group_resolve(heir);
    if (rc)
        wr_group_discard(heir);
    else
        *out = heir;
    return rc;
}

/* The present generation, with a record where its heir is kept; NULL: there is none. Under the shard's lock. */
static int find_present(struct weir_group **out, const struct wr_shard *shard,
                        const struct weir_group *heir)
{
    bool memory = true;

    *out = NULL;
    if (wr_load(&heir->executor->closed, acquire))
        return WEIR_ECLOSED;
    *out = wr_shard_get(shard, heir->hash, heir->key);
    if (*out) {
        wr_group_lock(*out);
        memory = wr_group_extras(*out) != NULL;
        wr_unlock(&(*out)->lock);
    }
    return memory ? 0 : WEIR_ENOMEM;
}

/* The heir is charged for what the old one has in flight. */
static void charge_heir(struct weir_group *old, struct weir_group *heir)
{
    wr_group_lock(old);
    heir->sums.carried = old->sums.inflight + old->sums.carried;
    heir->pins = heir->sums.carried > 0; /* by the old one, until it is gone */
    if (heir->pins) { /* else waits of overdue bodies are left, which keep nothing */
        old->extras->heir = heir;
        wr_node_move(&old->waits, &heir->waits);
    }
    wr_unlock(&old->lock);
    wr_add(&old->executor->evicted, 1, relaxed);
}

/* The heir takes the place of `old`, or of one that was evicted meanwhile (NULL). Under the waits' lock and the
 * shard's. Whatever ends in the old one from now on goes to the heir, so that is complete before it is charged. */
static void succeed(struct weir_group *old, struct weir_group *heir, struct wr_shard *shard)
{
    if (old)
        wr_group_detach(old);
    wr_group_introduce(heir, shard);
    if (old)
        charge_heir(old, heir);
}

static int carry_over(struct weir_executor *ex, const char *key, int flags)
{
    struct weir_group *heir, *old;
    struct wr_shard *shard;
    int rc = new_heir(&heir, ex, key);

    if (!heir)
        return rc;
    wr_lock(&wr_waits_lock);
    shard = wr_table_lock(&ex->table, heir->hash);
    rc = find_present(&old, shard, heir);
    if (!rc)
        succeed(old, heir, shard);
    wr_unlock(&shard->lock);
    wr_unlock(&wr_waits_lock);
    if (rc)
        wr_group_discard(heir);
    else if (old)
        wr_group_retire(old, WEIR_REASON_EVICTED, flags);
    return rc == WEIR_ECLOSED ? 0 : rc; /* then all are evicted anyway */
}

int weir_group_evict(weir_executor *ex, const char *key, int flags)
{
    struct weir_group *group;
    struct wr_shard *shard;
    uint32_t hash;

    if (!ex || !key)
        return WEIR_EINVAL;
    if (flags & WEIR_CARRY_OVER)
        return carry_over(ex, key, flags);
    hash = wr_table_hash(&ex->table, key, strlen(key));
    shard = wr_table_lock(&ex->table, hash);
    group = wr_shard_get(shard, hash, key);
    if (group) {
        wr_group_detach(group);
        wr_add(&ex->evicted, 1, relaxed);
    }
    wr_unlock(&shard->lock);
    if (group)
        wr_group_retire(group, WEIR_REASON_EVICTED, flags);
    return 0;
}

/* ---- idle groups ------------------------------------------------------------------------------ */

/* Has been idle for long enough, and nothing shows that it was forgotten. */
static bool is_forgettable(struct weir_group *group, weir_time now)
{
    int64_t idle_ms = group->executor->policy.given.idle_evict_ms;
    bool idle;

    wr_group_lock(group);
    idle = group->idle && (int32_t)((uint32_t)(now / 1000000) - group->idle_since) >= idle_ms &&
           !group->has_handle && !group->pins && !group->records &&
           wr_gates_are_at_rest(group, now);
    wr_unlock(&group->lock);
    return idle;
}

static void sweep_idle(struct wr_alarm *alarm, weir_time now)
{
    struct weir_executor *ex = WR_CONTAINER(alarm, struct weir_executor, sweeping);
    int64_t idle_ns = ex->policy.given.idle_evict_ms * 1000000;

    wr_add(&ex->evicted, wr_group_retire_if(ex, is_forgettable, now, WEIR_REASON_EVICTED), relaxed);
    wr_clock_set(&ex->clock, alarm, now + idle_ns / 2);
}

void wr_group_sweep_idle(struct weir_executor *ex)
{
    wr_alarm_init(&ex->sweeping, sweep_idle);
    wr_clock_set(&ex->clock, &ex->sweeping, wr_os_now());
}
