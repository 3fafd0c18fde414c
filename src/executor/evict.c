/* The end of a generation: evicted by a call, with the executor, or for having been idle.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/os.h"
#include "executor/settle.h"
#include "executor/state.h"
#include "executor/tell.h"

#include <weir/error.h>

/* Takes a group out of the table, pinned. Under its shard's lock. */
static void detach(struct weir_group *group)
{
    struct weir_executor *ex = group->executor;
    struct wr_shard *shard = wr_table_shard(&ex->table, group->hash);

    wr_map_remove(&shard->present, &group->in_table);
    wr_group_lock(group);
    group->evicted = true;
    group->pins++;
    if (wr_group_place(group) == WR_READY) /* or a worker has it, and finds it evicted */
        wr_line_remove(wr_group_ring(group), &group->stand);
    wr_thread_forget(group);
    if (ex->domains)
        wr_domain_sync(group); /* it wants nothing any more */
    wr_unlock(&group->lock);
    wr_list_append(&shard->retired, &group->retired); /* it will never stand in the ring again */
}

/* Refuses what waits in a detached group, and gives the pin back. WEIR_REASON_EVICTED: it counts as evicted. */
static void retire(struct weir_group *group, weir_reason reason, int flags)
{
    struct weir_executor *ex = group->executor;
    uint8_t usable = WR_USABLE;
    struct wr_telling telling;

    if (reason == WEIR_REASON_EVICTED)
        wr_add(&ex->evicted, 1, relaxed);
    if (flags & WEIR_CANCEL_RUNNING) {
        wr_cas(&group->use, &usable, WR_CANCELLED, seq_cst); /* or nothing ever ran there */
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
    group->pins--;
    wr_group_unlock_and_reap(group);
}

void wr_group_retire_if(struct weir_executor *ex,
                        bool (*which)(struct weir_group *group, weir_time now), weir_time now,
                        weir_reason reason)
{
    struct wr_map_node *victims = NULL;
    struct weir_group *group, *next;

    for (struct wr_shard *shard = ex->table.shard; shard < ex->table.shard + WR_SHARDS; shard++) {
        wr_lock(&shard->lock);
        for (group = wr_shard_next(shard, NULL); group && !group->evicted; group = next) {
            next = wr_shard_next(shard, group);
            if (which && !which(group, now))
                continue;
            detach(group);
            group->in_table.next = victims;
            victims = &group->in_table;
        }
        wr_unlock(&shard->lock);
    }
    while ((group = wr_group_of(victims))) {
        victims = victims->next;
        retire(group, reason, 0);
    }
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
}

/* The heir takes the place of the present generation, *out, or of one that was evicted meanwhile (NULL). Under the waits' lock
 * and the shard's. Whatever ends in the old one from now on goes to the heir, so that is complete before it is charged. */
static int succeed(struct weir_group **out, struct weir_group *heir, const struct wr_key *key,
                   struct wr_shard *shard)
{
    struct weir_group *old = wr_shard_get(shard, key);
    bool memory;

    if (wr_load(&heir->executor->closed, acquire))
        return WEIR_ECLOSED;
    if (old) {
        wr_group_lock(old);
        memory = wr_group_extras(old) != NULL; /* where its heir is kept */
        wr_unlock(&old->lock);
        if (!memory)
            return WEIR_ENOMEM;
        detach(old);
    }
    wr_group_introduce(heir, shard);
    if (old)
        charge_heir(old, heir);
    *out = old;
    return 0;
}

/* The heir is made first, and known to nothing yet: there may be no memory for it, and whatever answers for the policy may take
 * long. Another may take the place of the present generation meanwhile, and is then succeeded as well. */
static int carry_over(struct weir_executor *ex, const struct wr_key *key, int flags)
{
    struct weir_group *old = wr_group_look_up(ex, key->text), *heir;
    struct wr_shard *shard;
    int rc;

    if (!old)
        return 0;
    wr_unlock(&old->lock);
    heir = wr_group_new(ex, key);
    if (!heir)
        return WEIR_ENOMEM;
    rc = wr_group_resolve(heir);
    if (!rc) {
        wr_lock(&wr_waits_lock);
        shard = wr_table_lock(&ex->table, key->hash);
        rc = succeed(&old, heir, key, shard);
        wr_unlock(&shard->lock);
        wr_unlock(&wr_waits_lock);
    }
    if (rc)
        wr_group_discard(heir);
    else if (old)
        retire(old, WEIR_REASON_EVICTED, flags);
    return rc == WEIR_ECLOSED ? 0 : rc; /* then all are evicted anyway */
}

void wr_group_evict(struct weir_group *group, struct wr_shard *shard, weir_reason reason, int flags)
{
    if (group)
        detach(group);
    wr_unlock(&shard->lock);
    if (group)
        retire(group, reason, flags);
}

int weir_group_evict(weir_executor *ex, const char *text, int flags)
{
    struct wr_shard *shard;
    struct wr_key key;

    if (!ex || !text)
        return WEIR_EINVAL;
    key = wr_table_key(&ex->table, text);
    if (flags & WEIR_CARRY_OVER)
        return carry_over(ex, &key, flags);
    shard = wr_table_lock(&ex->table, key.hash);
    wr_group_evict(wr_shard_get(shard, &key), shard, WEIR_REASON_EVICTED, flags);
    return 0;
}

/* ---- idle groups ------------------------------------------------------------------------------ */

/* Has been idle for long enough, and nothing shows that it was forgotten. */
static bool is_forgettable(struct weir_group *group, weir_time now)
{
    int64_t idle_ms = group->executor->policy.given.idle_evict_ms;
    const struct wr_gates *gates;
    bool idle;

    wr_group_lock(group);
    gates = wr_group_gates(group);
    idle = group->idle && (int32_t)((uint32_t)(now / 1000000) - group->idle_since) >= idle_ms &&
           !group->has_handle && !group->pins && !group->records && !group->paused &&
           (!gates || wr_gates_are_at_rest(gates, now));
    wr_unlock(&group->lock);
    return idle;
}

static void sweep_idle(struct wr_alarm *alarm, weir_time now)
{
    struct weir_executor *ex = WR_CONTAINER(alarm, struct weir_executor, sweeping);
    int64_t idle_ns = ex->policy.given.idle_evict_ms * 1000000;

    wr_group_retire_if(ex, is_forgettable, now, WEIR_REASON_EVICTED);
    wr_clock_set(&ex->clock, alarm, now + idle_ns / 2);
}

void wr_group_sweep_idle(struct weir_executor *ex)
{
    wr_alarm_init(&ex->sweeping, sweep_idle);
    wr_clock_set(&ex->clock, &ex->sweeping, wr_os_now());
}
