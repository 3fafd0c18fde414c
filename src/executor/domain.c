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

static const char *receiver_of(const struct weir_executor *ex, const struct wr_share *s)
{
    bool away = s->released || s->slots.forced || s->places.forced;

    return away ? ex->policy.domain[s->receiver].name : NULL;
}

/* Tasks that wait without a slot, where the ledger does not count them. */
static uint32_t count_waiting(struct weir_executor *ex, uint32_t d, uint32_t promised)
{
    struct weir_group *group = NULL;
    uint64_t queued = 0;

    while ((group = wr_table_walk(&ex->table, group))) {
        wr_group_lock(group);
        queued += group->domain == d && !group->evicted ? group->sums.queued : 0;
        wr_unlock(&group->lock);
    }
    return queued > promised ? (uint32_t)(queued - promised) : 0;
}

int weir_domain_stats_get(weir_domain_stats *out, weir_executor *ex, const char *name)
{
    int d = out ? named_domain(ex, name, NULL, NULL) : WEIR_EINVAL;
    struct wr_share s;
    int64_t used;

    if (d < 0)
        return d;
    s = wr_domains_look(ex, (uint32_t)d, &used);
    uint32_t waiting = wr_load(&ex->domains->counts, relaxed)
                           ? wr_ledger_waiting(&s)
                           : count_waiting(ex, (uint32_t)d, s.promised);
    weir_domain_stats stats = {
        .size = sizeof(stats),
        .name = ex->policy.domain[d].name,
        .slots_mode = ex->policy.domain[d].slots_mode,
        .queue_mode = ex->policy.domain[d].queue_mode,
        .slots = s.slots.amount,
        .limit = s.slots.limit,
        .used = used,
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
        .receiver = receiver_of(ex, &s),
        .peak = s.peak,
        .slots_lent = s.slots.loans,
        .slots_recalled = s.slots.recalls,
        .timed_out = wr_load(&ex->domains->domain[d].timed_out, relaxed),
        .overdue = wr_load(&ex->domains->domain[d].overdue, relaxed),
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
    wr_executor_wake(ex);
}

int weir_domain_release(weir_executor *ex, const char *name, const char *receiver, int flags,
                        weir_message *message)
{
    const char *to = receiver ? receiver : WEIR_DEFAULT_DOMAIN;
    int d = named_domain(ex, name, "the default domain cannot be released", message);
    int r = d < 0 ? d : named_domain(ex, to, NULL, message);
    struct wr_domains *domains;
    bool already, can;

    if (r < 0)
        return r;
    if (d == r)
        return refuse_call(message, WEIR_EINVAL, name, "a domain cannot receive its own slots");
    domains = ex->domains;
    wr_domains_lock(ex, WR_ALL_DOMAINS);
    already = domains->ledger.share[d].released;
    can = !already && wr_ledger_can_release(&domains->ledger, (uint32_t)d, (uint32_t)r);
    if (can) {
        wr_ledger_release(&domains->ledger, (uint32_t)d, (uint32_t)r);
        wr_store(&domains->domain[d].released, true, release);
        if (flags & WEIR_CANCEL_RUNNING) /* now: bodies that begin after a restore are not meant */
            wr_add(&domains->domain[d].cancels, 1, seq_cst);
    }
    wr_domains_unlock(ex);
    if (already)
        return refuse_call(message, WEIR_EALREADY, name, "already released");
    if (!can)
        return refuse_call(
            message, WEIR_EINVAL, name,
            "the domain or its receiver is part of a release that is not over: restore first");
    wr_executor_wake(ex);
    if (flags & WEIR_CANCEL_RUNNING) {
        wr_executor_sweep(ex); /* its bodies on threads are in everyone's pool */
        wr_executor_end_pending(ex, d, WEIR_REASON_DOMAIN_RELEASED);
    }
    empty_groups(ex, (uint32_t)d);
    wr_room_made(ex);
    return 0;
}

int weir_domain_restore(weir_executor *ex, const char *name, weir_message *message)
{
    int d = named_domain(ex, name, "the default domain is never released", message);
    struct wr_domains *domains;
    bool released;

    if (d < 0)
        return d;
    domains = ex->domains;
    wr_domains_lock(ex, WR_ALL_DOMAINS);
    released = domains->ledger.share[d].released;
    if (released) {
        wr_ledger_restore(&domains->ledger, (uint32_t)d);
        wr_store(&domains->domain[d].released, false, release);
    }
    wr_domains_unlock(ex);
    if (!released)
        return refuse_call(message, WEIR_EALREADY, name, "not released");
    wr_executor_wake(ex);
    wr_room_made(ex);
    return 0;
}

/* ---- resizing --------------------------------------------------------------------------------- */

/* An amount as a caller gives it: 0 leaves what is there. */
static bool fits(int64_t amount, uint32_t most)
{
    uint32_t count = 0;

    return !amount || (wr_queue_from(&count, amount) && count <= most);
}

/* Says what is wrong with an amount that does not fit. `otherwise` is what else it might be. */
static int refuse_amount(weir_message *message, const char *domain, const char *field,
                         int64_t amount, uint32_t most, const char *otherwise)
{
    int64_t at_most = wr_limit_to(most);

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

static void resize(struct wr_ledger *l, enum wr_resource what, uint32_t d, int64_t amount)
{
    uint32_t count = 0;

    if (!amount)
        return;
    wr_queue_from(&count, amount);
    wr_ledger_resize(l, what, d, count);
}

int weir_domain_resize(weir_executor *ex, const char *name, int64_t slots, int64_t queue,
                       weir_message *message)
{
    uint32_t most_slots, most_places;
    struct wr_ledger *l;
    bool in_release, slots_fit, queue_fits;
    int d = named_domain(
        ex, name, "the default domain has what the other domains leave: resize those", message);

    if (d < 0)
        return d;
    l = &ex->domains->ledger;
    if (queue && queue != WEIR_NO_LIMIT)
        wr_domains_count(ex);
    wr_domains_lock(ex, WR_ALL_DOMAINS);
    in_release = wr_ledger_in_release(l, (uint32_t)d);
    most_slots = wr_ledger_most(l, WR_SLOTS, (uint32_t)d);
    most_places = wr_ledger_most(l, WR_PLACES, (uint32_t)d);
    slots_fit = slots != WEIR_NO_QUEUE && fits(slots, most_slots);
    queue_fits = fits(queue, most_places);
    if (!in_release && slots_fit && queue_fits) {
        if (queue && queue != WEIR_NO_LIMIT)
            wr_domains_follow_no_more(ex->domains);
        resize(l, WR_SLOTS, (uint32_t)d, slots);
        resize(l, WR_PLACES, (uint32_t)d, queue);
    }
    wr_domains_unlock(ex);
    if (!slots_fit)
        return refuse_amount(message, name, "slots", slots, most_slots, "");
    if (!queue_fits)
        return refuse_amount(message, name, "queue", queue, most_places, " or WEIR_NO_QUEUE");
    if (in_release)
        return refuse_call(message, WEIR_EINVAL, name,
                           "the domain is part of a release that is not over: restore first");
    wr_executor_wake(ex);
    wr_room_made(ex);
    return 0;
}
