/* The calls of weir/domain.h: looking at domains, releasing, restoring and resizing them.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/options.h"
#include "base/os.h"
#include "executor/settle.h"
#include "executor/state.h"

#include <stdio.h>
#include <weir/error.h>

const char *weir_domain_name(weir_executor *ex, size_t index)
{
    return ex && index < ex->policy.domain_count ? ex->policy.domain[index].name : NULL;
}

const char *weir_group_domain(const weir_group *group)
{
    const struct weir_executor *ex = group->executor;

    return ex->policy.domain ? ex->policy.domain[group->domain].name : WEIR_DEFAULT_DOMAIN;
}

const char *weir_task_domain(const weir_task *task)
{
    return weir_group_domain(task->group);
}

static int refuse_call(weir_message *message, int error, const char *domain, const char *why)
{
    if (message)
        snprintf(message->text, sizeof(message->text), "domain \"%.64s\": %s", domain, why);
    return error;
}

/* Finds the domain of a call; negative: the answer. `unless` says why it cannot be the default one, NULL: it can. */
static int named_domain(weir_executor *ex, const char *name, const char *unless,
                        weir_message *message)
{
    int d = ex && name ? wr_policy_domain(&ex->policy, name) : -1;

    if (!ex || !name)
        return WEIR_EINVAL;
    if (d < 0)
        return refuse_call(message, WEIR_ENODOMAIN, name, "unknown domain");
    return d == WR_DEFAULT && unless ? refuse_call(message, WEIR_EINVAL, name, unless) : d;
}

/* Tasks that wait without a slot. Where the ledger is not told of each, they are counted. */
static uint32_t count_waiting(struct weir_executor *ex, uint32_t d, struct wr_share *s)
{
    struct weir_group *group = NULL;

    if (wr_load(&ex->domains->counts, relaxed) == WR_COUNTS_QUEUED)
        return wr_ledger_waiting(s);
    s->queued = 0;
    while ((group = wr_table_walk(&ex->table, group))) {
        wr_group_lock(group);
        if (group->domain == d && !group->evicted)
            s->queued += (int64_t)group->sums.queued - wr_group_is_in_hands(group);
        wr_unlock(&group->lock);
    }
    return wr_ledger_waiting(s);
}

int weir_domain_stats_get(weir_domain_stats *out, weir_executor *ex, const char *name)
{
    int d = out ? named_domain(ex, name, NULL, NULL) : WEIR_EINVAL;
    struct wr_domain *domain;
    struct wr_share s;
    uint32_t peak, waiting;
    bool away;

    if (d < 0)
        return d;
    domain = &ex->domains->domain[d];
    wr_domains_lock(ex, WR_ALL_DOMAINS);
    s = ex->domains->ledger.share[d];
    wr_domains_unlock_unchanged(ex);
    away = s.released || s.slots.forced || s.places.forced;
    waiting = count_waiting(ex, (uint32_t)d, &s);
    peak = wr_load(&domain->peak, relaxed);
    weir_domain_stats stats = {
        .size = sizeof(stats),
        .name = ex->policy.domain[d].name,
        .slots_mode = ex->policy.domain[d].slots_mode,
        .queue_mode = ex->policy.domain[d].queue_mode,
        .slots = s.slots.amount,
        .limit = s.slots.limit,
        .used = (int64_t)s.own + s.borrowed + s.strays,
        .borrowed = s.borrowed,
        .overhang = s.strays,
        .charged = s.charged,
        .lent = s.slots.lent,
        .taken = s.slots.received,
        .recalled = s.slots.due,
        .waiting = waiting,
        .queue = wr_limit_to(s.places.amount),
        .queue_limit = wr_limit_to(s.places.limit),
        .queue_borrowed = wr_ledger_places_borrowed(&s),
        .released = s.released,
        .receiver = away ? ex->policy.domain[s.receiver].name : NULL,
        .peak = peak > s.peak ? peak : s.peak,
        .slots_lent = s.slots.loans,
        .slots_recalled = s.slots.recalls,
        .timed_out = wr_load(&domain->timed_out, relaxed),
        .overdue = wr_load(&domain->overdue, relaxed),
        .queue_lent = s.places.lent,
        .queue_taken = s.places.received,
        .queue_recalled = s.places.due,
        .places_lent = s.places.loans,
        .places_recalled = s.places.recalls,
    };
    return wr_options_store(out, &stats, sizeof(stats));
}

/* Refuses what waits in a group, unless its domain was restored meanwhile: then it may stay. Locks the group: if
 * the domain is released once more, that call has left this group to us, or has yet to look at it. */
static void empty_and_lock(struct weir_group *group)
{
    for (;;) {
        while (wr_reject_first(group, WEIR_REASON_DOMAIN_RELEASED))
            ;
        wr_group_lock(group);
        if (!group->sums.queued || !wr_domain_is_released(group))
            return;
        wr_unlock(&group->lock);
    }
}

/* Refuses what waits in the groups of a domain that accepts nothing any more. */
static void empty_groups(struct weir_executor *ex, uint32_t d)
{
    struct weir_group *group = NULL, *first = NULL, *next;

    while ((group = wr_table_walk(&ex->table, group))) {
        wr_group_lock(group);
        if (group->domain == d && (group->sums.queued || group->sums.inflight) && !group->evicted &&
            !group->extras->emptied) {
            group->pins++;
            group->extras->emptied = true;
            group->extras->next = first;
            first = group;
        }
        wr_unlock(&group->lock);
    }
    for (group = first; group; group = next) {
        empty_and_lock(group);
        next = group->extras->next;
        group->extras->emptied = false;
        wr_group_left(group);
        wr_unlock(&group->lock);
        wr_group_unpin(group);
    }
}

/* The end of each of these calls. */
static int done(struct weir_executor *ex)
{
    wr_executor_wake(ex);
    wr_room_made(ex);
    return 0;
}

int weir_domain_release(weir_executor *ex, const char *name, const char *receiver, int flags,
                        weir_message *message)
{
    int d = named_domain(ex, name, "the default domain cannot be released", message), rc = 0;
    int r = d < 0 ? d : named_domain(ex, receiver ? receiver : WEIR_DEFAULT_DOMAIN, NULL, message);
    struct wr_ledger *l;

    if (r < 0)
        return r;
    if (d == r)
        return refuse_call(message, WEIR_EINVAL, name, "a domain cannot receive its own slots");
    l = &ex->domains->ledger;
    wr_domains_lock(ex, WR_ALL_DOMAINS);
    if (l->share[d].released) {
        rc = refuse_call(message, WEIR_EALREADY, name, "already released");
    } else if (!wr_ledger_can_release(l, (uint32_t)d, (uint32_t)r)) {
        rc = refuse_call(
            message, WEIR_EINVAL, name,
            "the domain or its receiver is part of a release that is not over: restore first");
    } else {
        wr_ledger_release(l, (uint32_t)d, (uint32_t)r);
        wr_store(&ex->domains->domain[d].released, true, release);
        if (flags & WEIR_CANCEL_RUNNING) /* now: bodies that begin after a restore are not meant */
            wr_add(&ex->domains->domain[d].cancels, 1, seq_cst);
    }
    wr_domains_unlock(ex);
    if (rc)
        return rc;
    wr_executor_wake(ex);
    if (flags & WEIR_CANCEL_RUNNING) {
        wr_executor_sweep(ex); /* its bodies on threads are in the executor's pool */
        wr_executor_end_pending(ex, d, WEIR_REASON_DOMAIN_RELEASED);
    }
    empty_groups(ex, (uint32_t)d);
    return done(ex);
}

int weir_domain_restore(weir_executor *ex, const char *name, weir_message *message)
{
    int d = named_domain(ex, name, "the default domain is never released", message);
    bool released;

    if (d < 0)
        return d;
    wr_domains_lock(ex, WR_ALL_DOMAINS);
    released = ex->domains->ledger.share[d].released;
    if (released) {
        wr_ledger_restore(&ex->domains->ledger, (uint32_t)d);
        wr_store(&ex->domains->domain[d].released, false, release);
    }
    wr_domains_unlock(ex);
    return released ? done(ex) : refuse_call(message, WEIR_EALREADY, name, "not released");
}

/* ---- resizing --------------------------------------------------------------------------------- */

/* Reads an amount as a caller gives it: 0 leaves what is there. Answers 0, or says what is wrong with it. `otherwise` is what
 * else it might be. */
static int read_amount(uint32_t *count, int64_t amount, uint32_t most, const char *otherwise,
                       weir_message *message, const char *domain, const char *field)
{
    int64_t at_most = wr_limit_to(most);

    if (!amount || (wr_queue_from(count, amount) && (*count || *otherwise) && *count <= most))
        return 0;
    if (message && amount > at_most)
        snprintf(message->text, sizeof(message->text),
                 "domain \"%.64s\": %s is %lld: use at most %lld: its own and all that "
                 "the default domain can give",
                 domain, field, (long long)amount, (long long)at_most);
    else if (message)
        snprintf(message->text, sizeof(message->text),
                 "domain \"%.64s\": %s is %lld: use 1 or more%s, or 0 to leave it as it is", domain,
                 field, (long long)amount, otherwise);
    return WEIR_EINVAL;
}

int weir_domain_resize(weir_executor *ex, const char *name, int64_t slots, int64_t queue,
                       weir_message *message)
{
    int rc, d = named_domain(ex, name,
                             "the default domain has what the other domains leave: resize those",
                             message);
    uint32_t slot_count = 0, place_count = 0;
    struct wr_ledger *l;

    if (d < 0)
        return d;
    l = &ex->domains->ledger;
    if (queue && queue != WEIR_NO_LIMIT)
        wr_domains_count(ex, WR_COUNTS_QUEUED);
    wr_domains_lock(ex, WR_ALL_DOMAINS);
    rc = read_amount(&slot_count, slots, wr_ledger_most(l, WR_SLOTS, (uint32_t)d), "", message,
                     name, "slots");
    if (!rc)
        rc = read_amount(&place_count, queue, wr_ledger_most(l, WR_PLACES, (uint32_t)d),
                         " or WEIR_NO_QUEUE", message, name, "queue");
    if (!rc && wr_ledger_in_release(l, (uint32_t)d))
        rc = refuse_call(message, WEIR_EINVAL, name,
                         "the domain is part of a release that is not over: restore first");
    if (!rc && slots)
        wr_ledger_resize(l, WR_SLOTS, (uint32_t)d, slot_count);
    if (!rc && queue)
        wr_ledger_resize(l, WR_PLACES, (uint32_t)d, place_count);
    wr_domains_unlock(ex);
    return rc ? rc : done(ex);
}
