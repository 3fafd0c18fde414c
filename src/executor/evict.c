/* The end of a generation: evicted by a call, with the executor, or for having been idle.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/os.h"
#include "executor/executor.h"
#include "executor/settle.h"
#include "executor/tell.h"

#include <string.h>
#include <weir/error.h>

void wr_group_detach(struct weir_group *group)
{
    struct weir_executor *ex = group->executor;

    wr_table_remove(&ex->table, group);
    wr_lock(&group->lock);
    group->evicted = true;
    group->pins++;
    if (group->in_ring && wr_ring_remove(wr_group_ring(group), group))
        group->in_ring = false; /* else a worker has just taken it, and will find it evicted */
    if (group->berth)
        wr_berth_forget(group);
    if (ex->hall)
        wr_domain_sync(group); /* it wants nothing any more */
    wr_unlock(&group->lock);
    wr_list_append(&ex->retired, &group->ring_link); /* it will never stand in the ring again */
}

void wr_group_retire(struct weir_group *group, weir_reason reason, int flags)
{
    struct weir_executor *ex = group->executor;
    struct wr_telling telling;

    if (flags & WEIR_CANCEL_RUNNING) {
        wr_store(&group->cancel_all, true, release);
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
    wr_lock(&group->lock);
    wr_group_left(group);
    wr_unlock(&group->lock);
    wr_group_unpin(group);
}

/* Makes the next generation at once and charges it for what the present one has in flight. */
static int carry_over(struct weir_executor *ex, const char *key, int flags)
{
    size_t length = strlen(key);
    uint64_t hash = wr_table_hash(&ex->table, key, length);
    struct weir_group *heir = wr_group_new(ex, key, length, hash), *old;
    struct wr_telling telling;
    bool memory = true;

    if (!heir)
        return WEIR_ENOMEM;
    wr_waits_lock();
    wr_lock(&ex->table.lock);
    old = wr_load(&ex->closed, acquire) ? NULL : wr_table_get(&ex->table, hash, key);
    if (old) {
        wr_lock(&old->lock);
        memory = wr_group_rare(old) != NULL; /* where the heir is kept */
        wr_unlock(&old->lock);
    }
    if (!old || !memory) {
        wr_unlock(&ex->table.lock);
        wr_waits_unlock();
        wr_group_discard(heir);
        return memory ? 0 : WEIR_ENOMEM;
    }
    wr_group_detach(old);
    heir->generation = ex->table.generation++;
    wr_set_counted(&heir->sums, &ex->root, ex->table.counted);
    wr_lock(&old->lock);
    heir->sums.carried = old->sums.inflight + old->sums.carried;
    heir->pins = heir->sums.carried > 0; /* by the old one, until it is gone */
    if (heir->pins) { /* else waits of overdue bodies are left, which keep nothing */
        old->rare->heir = heir;
        wr_waits_carry_over(old, heir);
    }
    wr_unlock(&old->lock);
    heir->pins++; /* by us */
    wr_add(&ex->references, 1, relaxed);
    wr_add(&ex->evicted, 1, relaxed);
    wr_table_put(&ex->table, heir);
    wr_unlock(&ex->table.lock);
    wr_waits_unlock();
    wr_telling_open(&telling); /* callbacks may use the key: not before it is resolved */
    wr_group_retire(old, WEIR_REASON_EVICTED, flags); /* now: who is asked may take long */
    wr_group_resolve(heir);
    wr_telling_close(&telling);
    wr_group_unpin(heir);
    return 0;
}

int weir_group_evict(weir_executor *ex, const char *key, int flags)
{
    struct weir_group *group;

    if (!ex || !key)
        return WEIR_EINVAL;
    if (flags & WEIR_CARRY_OVER)
        return carry_over(ex, key, flags);
    wr_lock(&ex->table.lock);
    group = wr_table_get(&ex->table, wr_table_hash(&ex->table, key, strlen(key)), key);
    if (group) {
        wr_group_detach(group);
        wr_add(&ex->evicted, 1, relaxed);
    }
    wr_unlock(&ex->table.lock);
    if (group)
        wr_group_retire(group, WEIR_REASON_EVICTED, flags);
    return 0;
}

/* ---- idle groups ------------------------------------------------------------------------------ */

/* Has been idle for long enough, and nobody will notice that it was forgotten. */
static bool is_forgettable(struct weir_group *group, weir_time now, int64_t idle_ns)
{
    bool idle;

    wr_lock(&group->lock);
    idle = group->idle_since &&
           (int32_t)((uint32_t)(now / 1000000) - group->idle_since) >= idle_ns / 1000000 &&
           !group->kept && !group->pins && !group->records && wr_gate_is_at_rest(group, now);
    wr_unlock(&group->lock);
    return idle;
}

weir_time wr_group_sweep_idle(struct weir_executor *ex, weir_time now)
{
    int64_t idle_ns = ex->policy.given.idle_evict_ms * 1000000;
    struct weir_group *group = NULL, *next, *victims = NULL;

    wr_lock(&ex->table.lock);
    for (group = wr_table_next(&ex->table, NULL); group; group = next) {
        next = wr_table_next(&ex->table, group);
        if (!is_forgettable(group, now, idle_ns))
            continue;
        wr_group_detach(group);
        group->table_next = victims; /* free to use: it is not in the table any more */
        victims = group;
    }
    wr_unlock(&ex->table.lock);
    for (group = victims; group; group = next) {
        next = group->table_next;
        wr_add(&ex->evicted, 1, relaxed);
        wr_group_retire(group, WEIR_REASON_EVICTED, 0);
    }
    return now + (idle_ns / 2 > 0 ? idle_ns / 2 : 1);
}
