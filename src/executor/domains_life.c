/* Domains: making them, sampling, and counting what waits in them; see domains.h.
 * SPDX-License-Identifier: MIT */
#include "base/os.h"
#include "executor/settle.h"
#include "executor/state.h"

#include <weir/error.h>

/* ---- sampling ---------------------------------------------------------------------------------- */

static void sample(struct wr_alarm *alarm, weir_time now)
{
    struct wr_domains *domains = WR_CONTAINER(alarm, struct wr_domains, sampling);
    struct weir_executor *ex = domains->domain[WR_DEFAULT].crew->executor;
    int64_t period = ex->policy.given.lending.period_ms * 1000000;

    wr_domains_lock(ex, WR_ALL_DOMAINS);
    wr_ledger_sample(&domains->ledger);
    wr_domains_unlock(ex);
    wr_executor_wake(ex);
    wr_waits_suspect(ex);             /* a loan that was hoped for may not have come */
    wr_room_made(ex);                 /* a task that has a slot now needs no place */
    while (domains->sample_at <= now) /* a late look does not make the next one late */
        domains->sample_at += period;
    wr_clock_set(&ex->clock, &domains->sampling, domains->sample_at);
}

/* ---- counting ---------------------------------------------------------------------------------- */

/* From now on the ledger is told so much of the group's tasks, except of one that a worker has in its hands. Under the group's
 * lock. Its last tasks may have started without that lock (hand.c): then it leaves its ring before it is known to want no
 * slot. */
static void count_group(struct weir_group *group, enum wr_counts counts)
{
    struct wr_line *ring = wr_group_ring(group);
    uint8_t *counted = &group->extras->counted;

    wr_domains_lock_near(group->executor, group->domain);
    wr_lock(&ring->part->lock); /* a slot is taken, and its group out of the ring, at one moment */
    if (counts == WR_COUNTS_QUEUED && *counted < counts)
        wr_domains_of(group)->ledger.share[group->domain].queued +=
            (int64_t)group->sums.queued - wr_group_is_in_hands(group);
    if (*counted < counts)
        *counted = (uint8_t)counts;
    wr_unlock(&ring->part->lock);
    wr_domains_unlock(group->executor);
    wr_group_refresh(group);
}

void wr_domains_count(struct weir_executor *ex, enum wr_counts counts)
{
    struct wr_domains *domains = ex->domains;
    struct weir_group *group = NULL;

    if (!domains || wr_load(&domains->counts, acquire) >= counts)
        return;
    wr_domains_lock(ex, WR_ALL_DOMAINS);
    wr_store(&domains->counting, true, seq_cst);
    for (uint32_t d = 0; d < domains->ledger.count; d++)
        wr_domains_set_asks(domains, d, false);
    if (wr_load(&domains->counts, relaxed) < counts)
        wr_store(&domains->counts, (uint8_t)counts, seq_cst);
    wr_domains_unlock(ex);
    while ((group = wr_table_walk(&ex->table, group))) {
        wr_group_lock(group);
        if (!group->evicted)
            count_group(group, counts);
        wr_unlock(&group->lock);
    }
    wr_store(&domains->counting, false, seq_cst);
    wr_executor_wake(ex);
}

void wr_domain_join(struct weir_group *group)
{
    wr_lock(&wr_domains_of(group)->lock);
    group->extras->counted = wr_load(&wr_domains_of(group)->counts, seq_cst);
    wr_unlock(&wr_domains_of(group)->lock);
}

/* ---- life -------------------------------------------------------------------------------------- */

static void init_domain(struct weir_executor *ex, uint32_t d)
{
    struct wr_domain *domain = &ex->domains->domain[d];

    wr_line_init(&domain->ring, WR_READY, 1, &ex->domains->ready, wr_domain_bit(d));
    wr_store(&domain->slots, WR_IN_LEDGER, relaxed);
    domain->crew = &ex->crew;
    if (ex->policy.domain[d].workers) {
        domain->crew = &domain->own;
        wr_crew_init(&domain->own, ex, ex->policy.domain[d].workers);
        domain->own.next = ex->crew.next;
        ex->crew.next = &domain->own;
    }
    domain->crew->domains |= wr_domain_bit(d);
}

int wr_domains_new(struct weir_executor *ex)
{
    uint32_t count = ex->policy.domain_count;
    size_t arrays = wr_ledger_size(count);
    struct wr_domains *domains = wr_os_alloc(sizeof(*domains) + count * sizeof(domains->domain[0]) +
                                             2 * arrays); /* in one piece */

    ex->domains = domains;
    if (!domains)
        return WEIR_ENOMEM;
    wr_ledger_place(&domains->ledger, count, domains->domain + count);
    wr_ledger_place(&domains->supposed, count, (char *)(domains->domain + count) + arrays);
    wr_store(&domains->counts, (uint8_t)wr_policy_fill_ledger(&ex->policy, &domains->ledger),
             relaxed);
    for (uint32_t d = 0; d < count; d++)
        init_domain(ex, d);
    wr_list_init(&domains->refused);
    wr_alarm_init(&domains->sampling, sample);
    wr_domains_lock(ex, WR_ALL_DOMAINS);
    wr_domains_unlock(ex); /* publishes, and cedes */
    return 0;
}

int wr_domains_start(struct weir_executor *ex)
{
    struct wr_domains *domains = ex->domains;
    int rc;

    if (!domains || !domains->ledger.lending.on)
        return 0;
    rc = wr_clock_start(&ex->clock);
    domains->sample_at = wr_os_now() + ex->policy.given.lending.period_ms * 1000000;
    if (!rc)
        wr_clock_set(&ex->clock, &domains->sampling, domains->sample_at);
    return rc;
}
