/* The executor: making one, closing it, and its end.
 * SPDX-License-Identifier: MIT */
#include "executor/state.h"

#include "base/assert.h"
#include "base/os.h"
#include "executor/executor.h"
#include "executor/settle.h"
#include "executor/tell.h"

#include <weir/error.h>

void wr_executor_unref(struct weir_executor *ex)
{
    if (wr_sub(&ex->references, 1, acq_rel) > 1)
        return;
    wr_cells_fini(&ex->cells);
    wr_archive_fini(&ex->archive);
    wr_table_fini(&ex->table);
    wr_os_free(ex->domains);
    wr_policy_fini(&ex->policy);
    wr_os_free(wr_load(&ex->beats, relaxed));
    wr_os_free(ex);
}

static void stop(struct weir_executor *ex)
{
    wr_clock_stop(&ex->clock);
    for (struct wr_crew *crew = &ex->crew; crew; crew = crew->next)
        wr_runtime_stop(crew->runtime);
    /* After all have stopped: a body in one may wake another. */
    for (struct wr_crew *crew = &ex->crew; crew; crew = crew->next) {
        wr_runtime_delete(crew->runtime);
        crew->runtime = NULL;
    }
}

/* Starts the threads. */
static int start(struct weir_executor *ex)
{
    int rc = 0;

    for (struct wr_crew *crew = &ex->crew; crew && !rc; crew = crew->next)
        rc = wr_crew_start(crew);
    if (!rc)
        rc = wr_domains_start(ex);
    if (!rc && ex->policy.timed)
        rc = wr_clock_start(&ex->clock);
    if (!rc && ex->policy.given.idle_evict_ms)
        wr_group_sweep_idle(ex);
    if (rc)
        stop(ex);
    return rc;
}

void wr_executor_wake_domains(struct weir_executor *ex)
{
    for (struct wr_crew *crew = &ex->crew; crew; crew = crew->next)
        if (crew->runtime && wr_domains_ready_for(ex->domains, crew))
            wr_runtime_wake(crew->runtime);
}

static void for_each_runtime(struct weir_executor *ex, void (*call)(weir_runtime *runtime))
{
    for (struct wr_crew *crew = &ex->crew; crew; crew = crew->next)
        if (crew->runtime)
            call(crew->runtime);
}

void wr_executor_wake_all(struct weir_executor *ex)
{
    for_each_runtime(ex, wr_runtime_wake);
}

void wr_executor_sweep(struct weir_executor *ex)
{
    wr_waitq_wake_all(&ex->guests);
    for_each_runtime(ex, wr_runtime_sweep);
}

/* The part that cannot fail. If the policy is not valid, the executor is not used. */
static void init(struct weir_executor *ex)
{
    const weir_policy *policy = &ex->policy.given;
    uint32_t inflight_max = wr_limit_from(policy->inflight_max), queue_max = 0;

    wr_store(&ex->references, 1, relaxed);
    wr_line_init(&ex->ring, WR_READY, WR_PARTS, NULL, 0);
    wr_waitq_init(&ex->quiet);
    wr_waitq_init(&ex->room);
    wr_waitq_init(&ex->guests);
    wr_waitq_init(&ex->returned);
    wr_waitq_init(&ex->resolved);
    wr_list_init(&ex->untold.jobs);
    wr_archive_init(&ex->archive, policy->keep_totals ? (size_t)policy->totals_max : 0);
    wr_crew_init(&ex->crew, ex, policy->workers);
    wr_threads_init(ex);
    wr_queue_from(&queue_max, policy->queue_max);
    wr_store(&ex->root.queue_max, queue_max, relaxed);
    wr_store(&ex->root.inflight_max, inflight_max, relaxed);
    ex->table.counted = inflight_max != WR_INF;
}

int weir_executor_new(weir_executor **out, const weir_policy *given, weir_message *message)
{
    struct weir_executor *ex;
    int rc;

    if (message)
        message->text[0] = '\0';
    if (!out)
        return wr_policy_say(message, WEIR_EINVAL,
                             "out is NULL: there is nowhere to store the executor");
    *out = NULL;
    ex = wr_os_alloc(sizeof(*ex));
    if (!ex)
        return wr_policy_say(message, WEIR_ENOMEM, weir_strerror(WEIR_ENOMEM));
    rc = wr_policy_init(&ex->policy, given, message);
    init(ex);
    if (!rc)
        rc = wr_table_init(&ex->table);
    if (!rc && ex->policy.domain)
        rc = wr_domains_new(ex);
    if (!rc)
        rc = start(ex);
    if (rc) {
        wr_executor_unref(ex);
        return wr_policy_say(message, rc, weir_strerror(rc));
    }
    *out = ex;
    return 0;
}

bool wr_permits_are_owed(struct weir_group *group)
{
    struct weir_executor *ex = group->executor;
    uint32_t needed = ex->domains ? wr_domain_owed(group) : wr_load(&ex->ring.needed, relaxed);

    return needed &&
           wr_load(&ex->root.held, seq_cst) + needed > wr_load(&ex->root.inflight_max, relaxed);
}

uint32_t wr_permits_owed_first(struct weir_group *group)
{
    struct weir_executor *ex = group->executor;

    if (ex->domains)
        return wr_domain_most_owed(group);
    if (wr_group_place(group) == WR_AWAITS_THREAD || !wr_load(&ex->ring.needed, relaxed))
        return 0; /* a group that is yet to be called for a thread will go before all others */
    return wr_line_first_cost(&ex->ring, true);
}

/* ---- limits ---------------------------------------------------------------------------------- */

/* Groups take part in the sums or not; and what the first task of one costs may be more than there can be now, or no
 * longer. Under all locks of the table: a group that is made later finds the new state. */
static void update_groups(struct weir_executor *ex)
{
    struct weir_group *group = NULL;

    for (struct wr_shard *shard = ex->table.shard; shard < ex->table.shard + WR_SHARDS; shard++)
        while ((group = wr_shard_next(shard, group))) {
            wr_group_lock(group);
            wr_set_counted(&group->sums, &ex->root, ex->table.counted);
            wr_group_refresh(group);
            wr_unlock(&group->lock);
        }
}

int weir_executor_resize(weir_executor *ex, int64_t inflight_max, int64_t queue_max)
{
    uint32_t limit = wr_limit_from(inflight_max), queue = 0;

    if (!ex || (inflight_max && !limit) || (queue_max && !wr_queue_from(&queue, queue_max)))
        return WEIR_EINVAL;
    if (inflight_max && limit != WR_INF)
        wr_domains_count(ex, WR_COUNTS_READY); /* it then knows what each waiting task may need */
    wr_table_lock_all(&ex->table);
    if (queue_max)
        wr_store(&ex->root.queue_max, queue, relaxed);
    if (inflight_max) {
        /* Groups join or leave the sums one by one; the limit is raised first and lowered last, so that
         * no task is held to a sum that is not complete. */
        bool join = limit != WR_INF && !ex->table.counted;
        ex->table.counted = limit != WR_INF;
        if (join)
            update_groups(ex);
        wr_store(&ex->root.inflight_max, limit, relaxed);
        update_groups(ex);
    }
    wr_table_unlock_all(&ex->table);
    if (ex->domains) { /* crews that were refused permits look again */
        wr_domains_lock(ex, 0);
        wr_domains_unlock(ex);
    }
    wr_room_made(ex);
    wr_executor_wake(ex);
    wr_waits_suspect(ex);
    return 0;
}

/* ---- closing --------------------------------------------------------------------------------- */

void wr_executor_end_pending(struct weir_executor *ex, int domain, weir_reason reason)
{
    struct weir_group *group = NULL;
    struct wr_telling telling;
    bool meant;

    wr_telling_open(&telling);
    while ((group = wr_table_walk(&ex->table, group))) {
        wr_group_lock(group);
        meant = domain < 0 || group->domain == domain;
        wr_unlock(&group->lock);
        if (meant)
            wr_group_end_pending(group, reason);
    }
    wr_telling_close(&telling);
}

void weir_executor_close(weir_executor *ex, int flags)
{
    if (!ex)
        return;
    wr_store(&ex->closed, true, seq_cst);
    wr_store(&ex->finishing, (flags & WEIR_FINISH_WAITING) != 0, relaxed);
    /* Waiting tasks are turned away first: a running body that gives up would let the next one start. */
    if (!(flags & WEIR_FINISH_WAITING))
        wr_group_retire_if(ex, NULL, 0, WEIR_REASON_SHUT_DOWN);
    if (!(flags & WEIR_LEAVE_RUNNING)) {
        if (flags & WEIR_FINISH_WAITING) /* tasks that still start are not meant */
            wr_add(&ex->cancels, 1, seq_cst);
        else
            wr_store(&ex->cancel_all, true, seq_cst);
        wr_executor_sweep(ex);
        wr_executor_end_pending(ex, -1, WEIR_REASON_SHUT_DOWN);
    }
    wr_room_made(ex); /* a submit that waits for room finds the executor closed */
}

bool wr_executor_is_closed(const weir_executor *ex)
{
    return wr_load(&ex->closed, acquire);
}

static bool called_by_own_task(const struct weir_executor *ex)
{
    weir_task *self = weir_task_self();

    return self && self->group->executor == ex;
}

static bool has_no_task(void *ex)
{
    return wr_load(&((struct weir_executor *)ex)->live, seq_cst) == 0;
}

/* Whether there is neither a task nor an overdue body without permits. Such a body that returns is a task first (see
 * wr_task_end_locked), so they are looked at in this order. */
static bool has_no_body(void *ex)
{
    return wr_load(&((struct weir_executor *)ex)->freed, seq_cst) == 0 && has_no_task(ex);
}

int weir_executor_drain(weir_executor *ex, weir_time deadline)
{
    if (!ex)
        return WEIR_EINVAL;
    if (called_by_own_task(ex))
        return WEIR_EDEADLK;
    return wr_waitq_wait(&ex->quiet, has_no_task, ex, deadline, true);
}

int weir_executor_shutdown(weir_executor *ex, weir_time deadline)
{
    struct weir_group *group = NULL;
    int rc;

    if (!ex)
        return WEIR_EINVAL;
    if (called_by_own_task(ex))
        return WEIR_EDEADLK;
    wr_store(&ex->closed, true, seq_cst);
    wr_room_made(ex);
    while ((group = wr_table_walk(&ex->table, group))) {
        wr_group_lock(group); /* a submit that found the executor open under it is over then */
        wr_unlock(&group->lock);
    }
    rc = wr_waitq_wait(&ex->quiet, has_no_body, ex, deadline, true);
    weir_executor_close(ex, 0);
    return rc;
}

void weir_executor_free(weir_executor *ex)
{
    bool finishing;

    if (!ex)
        return;
    WR_ASSERT(!called_by_own_task(ex));
    wr_store(&ex->freeing, true, seq_cst);
    finishing = wr_load(&ex->finishing, relaxed);
    if (finishing) { /* accepted tasks run, except those that cannot */
        wr_group_retire_if(ex, wr_group_never_finishes, 0, WEIR_REASON_SHUT_DOWN);
        wr_executor_end_pending(ex, -1, WEIR_REASON_SHUT_DOWN);
        wr_waitq_wait(&ex->quiet, has_no_body, ex, WEIR_FOREVER, false);
    }
    weir_executor_close(ex, finishing ? WEIR_LEAVE_RUNNING : 0);
    wr_waitq_wait(&ex->quiet, has_no_body, ex, WEIR_FOREVER, false);
    stop(ex);
    wr_group_forget_handles(ex);
    wr_executor_unref(ex);
}
