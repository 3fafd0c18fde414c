/* Checking a policy: every field that makes no sense is named, with its value and what would be right.
 * SPDX-License-Identifier: MIT */
#include "executor/ledger.h"
#include "executor/policy.h"
#include "runtime/runtime.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <weir/error.h>

struct check {
    weir_message *message;
    const char *list; /* of entries with a key: "groups" or "domains" */
    bool failed;
};

static void complain(struct check *check, const char *key, const char *field, int64_t value,
                     const char *instead)
{
    if (check->failed)
        return;
    check->failed = true;
    if (!check->message)
        return;
    if (key)
        snprintf(check->message->text, sizeof(check->message->text), "%s[\"%.64s\"].%s is %lld: %s",
                 check->list, key, field, (long long)value, instead);
    else
        snprintf(check->message->text, sizeof(check->message->text), "%s is %lld: %s", field,
                 (long long)value, instead);
}

#define COUNTABLE "1 to 4294967294" /* up to WR_INF, which is no limit */

static void check_limit(struct check *check, const char *key, const char *field, int64_t *value,
                        int64_t otherwise)
{
    if (*value == 0)
        *value = otherwise;
    if (!wr_limit_from(*value))
        complain(check, key, field, *value,
                 "use " COUNTABLE ", WEIR_NO_LIMIT, or 0 for the default");
}

static void check_queue(struct check *check, const char *key, const char *field, int64_t *value,
                        int64_t otherwise)
{
    uint32_t ignored;

    if (*value == 0)
        *value = otherwise;
    if (!wr_queue_from(&ignored, *value))
        complain(check, key, field, *value,
                 "use " COUNTABLE ", WEIR_NO_LIMIT, WEIR_NO_QUEUE, or 0 for the default");
}

static void check_weight(struct check *check, const char *key, int64_t *weight)
{
    if (!*weight)
        *weight = 1;
    if (*weight < 1 || *weight > WEIR_WEIGHT_MAX)
        complain(check, key, "weight", *weight, "use 1 to 1000");
}

static void check_span(struct check *check, const char *key, const char *field, int64_t ms)
{
    if (ms < 0 || (ms > WEIR_SPAN_MAX_MS && ms != WEIR_NO_LIMIT))
        complain(check, key, field, ms,
                 "use 1 to 31536000000 (a year), WEIR_NO_LIMIT, or 0 for the default");
}

static void check_deadlines(struct check *check, const char *key, const weir_deadlines *d)
{
    check_span(check, key, "deadlines.wait_ms", d->wait_ms);
    check_span(check, key, "deadlines.run_ms", d->run_ms);
    check_span(check, key, "deadlines.total_ms", d->total_ms);
}

static void check_carrier(struct check *check, const char *key, weir_carrier run_on)
{
    if ((unsigned)run_on > WEIR_THREADS)
        complain(check, key, "run_on", run_on, "use WEIR_WORKERS or WEIR_THREADS");
}

/* Zero asks for the default, which `instead` names with the range. */
static void check_most(struct check *check, const char *key, const char *field, uint32_t value,
                       uint32_t most, const char *instead)
{
    if (value > most)
        complain(check, key, field, value, instead);
}

bool wr_has_deadlines(const weir_deadlines *d)
{
    return d->wait_ms || d->run_ms || d->total_ms;
}

static bool has_pace(const weir_pace *pace)
{
    return pace->starts || pace->period_ns || pace->burst;
}

static void check_pace(struct check *check, const char *key, weir_pace *pace)
{
    struct wr_pace ignored;

    if (!has_pace(pace))
        return;
    if (pace->starts < 0)
        complain(check, key, "pace.starts", pace->starts, "use 1 or more, or 0 for no pace");
    if (!pace->starts)
        complain(check, key, "pace.starts", 0, "use 1 or more: period_ns or burst is set");
    if (pace->period_ns < 0)
        complain(check, key, "pace.period_ns", pace->period_ns, "use 1 or more, or 0 for a second");
    if (pace->burst < 0)
        complain(check, key, "pace.burst", pace->burst, "use 1 or more, or 0 for 1");
    if (!pace->period_ns)
        pace->period_ns = WR_PACE_PERIOD_NS;
    if (!check->failed && !wr_pace_from(&ignored, pace))
        complain(check, key, "pace.burst", pace->burst, "the burst is too large");
}

static void check_group(struct check *check, const struct wr_policy *policy,
                        weir_group_policy *group)
{
    const weir_policy *given = &policy->given;

    if (!group->key) {
        complain(check, "", "key", 0, "an entry of groups needs a key");
        return;
    }
    if (!group->limit && !group->inflight_max && !group->queue_max && !group->weight &&
        !group->domain && !group->run_on && !wr_has_deadlines(&group->deadlines) &&
        !has_pace(&group->pace))
        complain(check, group->key, "limit", 0,
                 "the entry sets nothing: set a field, or remove the entry");
    /* A limit left open is asked of limit_for later; zero stays zero until then. */
    if (group->limit)
        check_limit(check, group->key, "limit", &group->limit, 0);
    check_limit(check, group->key, "inflight_max", &group->inflight_max, given->group_inflight_max);
    check_queue(check, group->key, "queue_max", &group->queue_max, given->group_queue_max);
    check_weight(check, group->key, &group->weight);
    check_deadlines(check, group->key, &group->deadlines);
    check_carrier(check, group->key, group->run_on);
    check_pace(check, group->key, &group->pace);
    if (group->domain && wr_policy_domain(policy, group->domain) < 0 && !check->failed) {
        complain(check, group->key, "domain", 0, "unknown domain");
        if (check->message)
            snprintf(check->message->text, sizeof(check->message->text),
                     "groups[\"%.64s\"].domain is \"%.64s\": unknown domain", group->key,
                     group->domain);
    }
}

/* ---- domains --------------------------------------------------------------------------------- */

static void check_mode(struct check *check, const char *name, const char *field, weir_share mode)
{
    if ((unsigned)mode > WEIR_RESERVED)
        complain(check, name, field, mode, "use WEIR_MAX or WEIR_RESERVED");
}

/* The default domain has what is left, and lends only if it is told to: by being borrowed from it
 * serves others as it is. */
static void check_default(struct check *check, weir_domain_policy *d)
{
    if (d->slots)
        complain(check, d->name, "slots", d->slots,
                 "use 0: the default domain has what the other domains leave");
    if (d->queue)
        complain(check, d->name, "queue", d->queue,
                 "use 0: the default domain has what the other domains leave");
    if (d->slots_mode != WEIR_MAX)
        complain(check, d->name, "slots_mode", d->slots_mode,
                 "use WEIR_MAX: the default domain has no domain to borrow from");
    if (d->queue_mode != WEIR_MAX)
        complain(check, d->name, "queue_mode", d->queue_mode,
                 "use WEIR_MAX: the default domain has no domain to borrow from");
    if (!d->lend_max)
        d->lend_max = WEIR_NONE;
    if (!d->queue_lend_max)
        d->queue_lend_max = WEIR_NONE;
}

/* 0 stays: half of what the domain has, however much that is. */
static void check_lend_max(struct check *check, const char *name, const char *field, int64_t most)
{
    uint32_t ignored;

    if (most && !wr_queue_from(&ignored, most))
        complain(check, name, field, most, "use " COUNTABLE ", or WEIR_NONE");
}

static void check_domain(struct check *check, const weir_policy *given, weir_domain_policy *d)
{
    uint32_t ignored;

    check_mode(check, d->name, "slots_mode", d->slots_mode);
    check_mode(check, d->name, "queue_mode", d->queue_mode);
    check_weight(check, d->name, &d->weight);
    check_deadlines(check, d->name, &d->deadlines);
    check_carrier(check, d->name, d->run_on);
    check_most(check, d->name, "workers", d->workers, WR_WORKERS_MAX,
               "use 1 to 4096, or 0 for the workers of the executor");
    if (strcmp(d->name, WEIR_DEFAULT_DOMAIN) == 0) {
        check_default(check, d);
    } else {
        if (d->slots < 1 || d->slots >= WR_INF)
            complain(check, d->name, "slots", d->slots, "use " COUNTABLE);
        if (!d->queue && given->queue_places == WEIR_NO_LIMIT)
            d->queue = WEIR_NO_LIMIT;
        if (!wr_queue_from(&ignored, d->queue) ||
            (d->queue == WEIR_NO_LIMIT && given->queue_places != WEIR_NO_LIMIT))
            complain(check, d->name, "queue", d->queue,
                     "use " COUNTABLE
                     ", or WEIR_NO_QUEUE; WEIR_NO_LIMIT only if queue_places has none");
    }
    check_lend_max(check, d->name, "lend_max", d->lend_max);
    check_lend_max(check, d->name, "queue_lend_max", d->queue_lend_max);
}

static void check_sums(struct check *check, const struct wr_policy *policy)
{
    const weir_policy *given = &policy->given;
    int64_t slots = 0, places = 0;

    for (uint32_t i = 0; i < policy->domain_count; i++) {
        const weir_domain_policy *d = &policy->domain[i];
        slots += d->slots;
        places += d->queue > 0 && d->queue != WEIR_NO_LIMIT ? d->queue : 0;
        if (slots > given->slots)
            complain(check, d->name, "slots", d->slots,
                     "the domains together have more than the policy's slots");
        if (places > given->queue_places)
            complain(check, d->name, "queue", d->queue,
                     "the domains together have more than the policy's queue_places");
    }
    if (given->default_floor < 0 || given->default_floor > given->slots - slots)
        complain(check, NULL, "default_floor", given->default_floor,
                 "use 0 up to the slots that the other domains leave");
}

static void check_range(struct check *check, const char *field, int64_t *value, int64_t otherwise,
                        int64_t most)
{
    char instead[96];

    if (*value == 0)
        *value = otherwise;
    if (*value >= 1 && *value <= most)
        return;
    snprintf(instead, sizeof(instead), "use 1 to %lld, or 0 for %lld", (long long)most,
             (long long)otherwise);
    complain(check, NULL, field, *value, instead);
}

static void check_lending(struct check *check, weir_lending *l)
{
    if (l->period_ms < 0 || l->period_ms > WEIR_SPAN_MAX_MS)
        complain(check, NULL, "lending.period_ms", l->period_ms,
                 "use 1 to 31536000000 (a year), or 0 for no lending");
    check_range(check, "lending.low_percent", &l->low_percent, 30, 100);
    check_range(check, "lending.high_percent", &l->high_percent, 90, 100);
    check_range(check, "lending.hold", &l->hold, 3, 1000000);
    check_range(check, "lending.step", &l->step, WR_INF, WR_INF);
    if (l->headroom_percent == WEIR_NONE)
        l->headroom_percent = 0;
    else
        check_range(check, "lending.headroom_percent", &l->headroom_percent, 25, 100);
    if (l->low_percent >= l->high_percent)
        complain(check, NULL, "lending.low_percent", l->low_percent,
                 "use less than lending.high_percent");
}

static void check_domains(struct check *check, struct wr_policy *policy)
{
    weir_policy *given = &policy->given;

    check_queue(check, NULL, "queue_places", &given->queue_places, WEIR_NO_LIMIT);
    if (given->domain_count && !given->domains)
        complain(check, NULL, "domain_count", (int64_t)given->domain_count, "domains is NULL");
    if (given->domain_count >= WR_DOMAINS_MAX)
        complain(check, NULL, "domain_count", (int64_t)given->domain_count, "use at most 63");
    for (uint32_t i = 0; i < policy->domain_count; i++)
        if (!policy->domain[i].name || !*policy->domain[i].name)
            complain(check, NULL, "domains", (int64_t)i - 1, "an entry needs a name");
    if (check->failed)
        return;
    if (!policy->domain) {
        if (given->slots || given->queue_places != WEIR_NO_LIMIT || given->default_floor ||
            given->domain_for || given->lending.period_ms)
            complain(check, NULL, "domain_count", 0,
                     "slots, queue_places, default_floor, lending and domain_for need domains");
        return;
    }
    if (given->slots < 1 || given->slots >= WR_INF)
        complain(check, NULL, "slots", given->slots, "with domains, use " COUNTABLE);
    check->list = "domains";
    for (uint32_t i = 0; i < policy->domain_count && !check->failed; i++)
        check_domain(check, given, &policy->domain[i]);
    for (uint32_t i = 1; i < policy->domain_count && !check->failed; i++)
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(policy->domain[j].name, policy->domain[i].name) == 0)
                complain(check, policy->domain[i].name, "name", i, "duplicate name");
    if (!check->failed) /* figures out of range have no sum */
        check_sums(check, policy);
    check_lending(check, &given->lending);
    check->list = "groups";
}

static void check_time(struct check *check, weir_policy *given)
{
    check_deadlines(check, NULL, &given->deadlines);
    check_span(check, NULL, "deadlines_max.wait_ms", given->deadlines_max.wait_ms);
    check_span(check, NULL, "deadlines_max.run_ms", given->deadlines_max.run_ms);
    check_span(check, NULL, "deadlines_max.total_ms", given->deadlines_max.total_ms);
    if ((unsigned)given->overdue > WEIR_REPLACE)
        complain(check, NULL, "overdue", given->overdue, "use one of enum weir_overdue");
    check_range(check, "overdue_max", &given->overdue_max, 64, INT32_MAX);
    if ((unsigned)given->stall_policy > WEIR_STALL_TO_THREADS)
        complain(check, NULL, "stall_policy", given->stall_policy,
                 "use one of enum weir_stall_policy");
    check_range(check, "stall_max", &given->stall_max, 1, INT32_MAX);
}

/* What the runtime is asked for. The sentences say its ranges and defaults in numbers. */
static_assert(WR_WORKERS_MAX == 4096 && WR_THREADS_MAX == 65536 && WR_THREADS_DEFAULT == 256 &&
                  WR_MS_MAX == 86400000 && WR_STALL_MS_DEFAULT == 10 && WR_STACK_MIN == 16384 &&
                  WR_STACK_MAX == 1 << 30 && WR_STACK_DEFAULT == 131072,
              "the sentences below are true");

static void check_runtime(struct check *check, weir_policy *given)
{
    check_most(check, NULL, "workers", given->workers, WR_WORKERS_MAX,
               "use 1 to 4096, or 0 for one per CPU");
    check_most(check, NULL, "threads_max", given->threads_max, WR_THREADS_MAX,
               "use 1 to 65536, or 0 for 256");
    if (!given->threads_max)
        given->threads_max = WR_THREADS_DEFAULT;
    check_most(check, NULL, "stall_after_ms", given->stall_after_ms, WR_MS_MAX,
               "use 1 to 86400000 (a day), or 0 for 10");
    check_most(check, NULL, "replacements_max", given->replacements_max, WR_WORKERS_MAX,
               "use 1 to 4096, or 0 for one per worker and 64");
    if (given->stack_size && (given->stack_size < WR_STACK_MIN || given->stack_size > WR_STACK_MAX))
        complain(check, NULL, "stack_size", (int64_t)given->stack_size,
                 "use 16384 to 1073741824 (1 GiB), or 0 for 131072");
}

static void check_policy(struct check *check, struct wr_policy *policy)
{
    weir_policy *given = &policy->given;

    check_limit(check, NULL, "inflight_max", &given->inflight_max, WEIR_NO_LIMIT);
    check_queue(check, NULL, "queue_max", &given->queue_max, WEIR_NO_LIMIT);
    check_limit(check, NULL, "group_limit", &given->group_limit, 1);
    check_limit(check, NULL, "group_inflight_max", &given->group_inflight_max, WEIR_NO_LIMIT);
    check_queue(check, NULL, "group_queue_max", &given->group_queue_max, WEIR_NO_LIMIT);
    if (given->idle_evict_ms < 0 || given->idle_evict_ms > WEIR_SPAN_MAX_MS)
        complain(check, NULL, "idle_evict_ms", given->idle_evict_ms,
                 "use 1 to 31536000000 (a year), or 0 for never");
    check_range(check, "totals_max", &given->totals_max, 1000, 10000000);
    if ((unsigned)given->rejection > WEIR_BLOCK)
        complain(check, NULL, "rejection", given->rejection, "use one of enum weir_rejection");
    check_domains(check, policy);
    check_time(check, given);
    check_runtime(check, given);
    if (given->group_count && !given->groups)
        complain(check, NULL, "group_count", (int64_t)given->group_count, "groups is NULL");
    for (size_t i = 0; i < given->group_count && !check->failed; i++)
        check_group(check, policy, &policy->group[i]);
    for (size_t i = 1; i < given->group_count && !check->failed; i++)
        if (strcmp(policy->group[i - 1].key, policy->group[i].key) == 0)
            complain(check, policy->group[i].key, "key", (int64_t)i, "duplicate key");
}

int wr_policy_check(struct wr_policy *policy, weir_message *message)
{
    struct check check = { .message = message, .list = "groups" };

    check_policy(&check, policy);
    return check.failed ? WEIR_EINVAL : 0;
}
