/* Checking a policy, copying it, and asking it about a key.
 * SPDX-License-Identifier: MIT */
#include "executor/policy.h"

#include "base/options.h"
#include "base/os.h"
#include "executor/ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/error.h>

enum { WEIGHT_MAX = 1000 };
static const int64_t MS_MAX = 31536000000; /* a year */

uint32_t wr_limit_from(int64_t limit)
{
    if (limit == WEIR_NO_LIMIT)
        return WR_INF;
    return limit > 0 && limit < WR_INF ? (uint32_t)limit : 0;
}

int64_t wr_limit_to(uint32_t limit)
{
    return limit == WR_INF ? WEIR_NO_LIMIT : limit;
}

bool wr_queue_from(uint32_t *out, int64_t queue_max)
{
    if (queue_max == WEIR_NO_QUEUE) {
        *out = 0;
        return true;
    }
    *out = wr_limit_from(queue_max);
    return *out != 0;
}

int64_t wr_queue_to(uint32_t queue_max)
{
    return queue_max ? wr_limit_to(queue_max) : WEIR_NO_QUEUE;
}

/* ---- checking -------------------------------------------------------------------------------- */

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

static void check_limit(struct check *check, const char *key, const char *field, int64_t *value,
                        int64_t otherwise)
{
    if (*value == 0)
        *value = otherwise;
    if (!wr_limit_from(*value))
        complain(check, key, field, *value, "use 1 or more, WEIR_NO_LIMIT, or 0 for the default");
}

static void check_queue(struct check *check, const char *key, const char *field, int64_t *value,
                        int64_t otherwise)
{
    uint32_t ignored;

    if (*value == 0)
        *value = otherwise;
    if (!wr_queue_from(&ignored, *value))
        complain(check, key, field, *value,
                 "use 1 or more, WEIR_NO_LIMIT, WEIR_NO_QUEUE, or 0 for the default");
}

static void check_weight(struct check *check, const char *key, int64_t *weight)
{
    if (!*weight)
        *weight = 1;
    if (*weight < 1 || *weight > WEIGHT_MAX)
        complain(check, key, "weight", *weight, "use 1 to 1000");
}

static void check_span(struct check *check, const char *key, const char *field, int64_t ms)
{
    if (ms < 0 || (ms > MS_MAX && ms != WEIR_NO_LIMIT))
        complain(
            check, key, field, ms,
            "use 1 to 31536000000 (a year), WEIR_NO_LIMIT, or 0 for what the next one up says");
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

static bool has_deadlines(const weir_deadlines *d)
{
    return d->wait_ms || d->run_ms || d->total_ms;
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
        !group->domain && !group->run_on && !has_deadlines(&group->deadlines))
        complain(check, group->key, "limit", 0,
                 "an entry must set something; remove it, or set a limit");
    /* A limit left open is asked of limit_for later; zero stays zero until then. */
    if (group->limit)
        check_limit(check, group->key, "limit", &group->limit, 0);
    check_limit(check, group->key, "inflight_max", &group->inflight_max, given->group_inflight_max);
    check_queue(check, group->key, "queue_max", &group->queue_max, given->group_queue_max);
    check_weight(check, group->key, &group->weight);
    check_deadlines(check, group->key, &group->deadlines);
    check_carrier(check, group->key, group->run_on);
    if (group->domain && wr_policy_domain(policy, group->domain) < 0 && !check->failed) {
        complain(check, group->key, "domain", 0, "there is no such domain");
        if (check->message)
            snprintf(check->message->text, sizeof(check->message->text),
                     "groups[\"%.64s\"].domain is \"%.64s\": there is no such domain", group->key,
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
        complain(check, d->name, "slots", d->slots, "the default domain has the rest; leave it 0");
    if (d->queue)
        complain(check, d->name, "queue", d->queue, "the default domain has the rest; leave it 0");
    if (d->slots_mode != WEIR_MAX)
        complain(check, d->name, "slots_mode", d->slots_mode,
                 "the default domain has nobody to borrow from; use WEIR_MAX");
    if (d->queue_mode != WEIR_MAX)
        complain(check, d->name, "queue_mode", d->queue_mode,
                 "the default domain has nobody to borrow from; use WEIR_MAX");
    if (!d->lend_max)
        d->lend_max = WEIR_NO_QUEUE;
}

static void check_domain(struct check *check, const weir_policy *given, weir_domain_policy *d)
{
    uint32_t ignored;

    check_mode(check, d->name, "slots_mode", d->slots_mode);
    check_mode(check, d->name, "queue_mode", d->queue_mode);
    check_weight(check, d->name, &d->weight);
    check_deadlines(check, d->name, &d->deadlines);
    check_carrier(check, d->name, d->run_on);
    if (strcmp(d->name, WEIR_DEFAULT_DOMAIN) == 0) {
        check_default(check, d);
    } else {
        if (d->slots < 1 || d->slots >= WR_INF)
            complain(check, d->name, "slots", d->slots, "use 1 or more");
        if (!d->queue && given->queue_places == WEIR_NO_LIMIT)
            d->queue = WEIR_NO_LIMIT;
        if (!wr_queue_from(&ignored, d->queue) ||
            (d->queue == WEIR_NO_LIMIT && given->queue_places != WEIR_NO_LIMIT))
            complain(check, d->name, "queue", d->queue,
                     "use 1 or more, or WEIR_NO_QUEUE; no limit only if queue_places has none");
    }
    if (!d->lend_max)
        d->lend_max = d->slots > 1 ? d->slots / 2 : WEIR_NO_QUEUE;
    if (!wr_queue_from(&ignored, d->lend_max))
        complain(check, d->name, "lend_max", d->lend_max, "use 1 or more, or WEIR_NO_QUEUE");
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
                     "with it, the domains have more than the policy's slots");
        if (places > given->queue_places)
            complain(check, d->name, "queue", d->queue,
                     "with it, the domains have more than the policy's queue_places");
    }
    if (given->default_floor < 0 || given->default_floor > given->slots - slots)
        complain(check, NULL, "default_floor", given->default_floor,
                 "use 0 up to what the domains leave of slots");
}

static void check_range(struct check *check, const char *field, int64_t *value, int64_t otherwise,
                        int64_t most)
{
    if (*value == 0)
        *value = otherwise;
    if (*value < 1 || *value > most)
        complain(check, NULL, field, *value, "is out of range; 0 asks for the default");
}

static void check_lending(struct check *check, weir_lending *l)
{
    if (l->period_ms < 0 || l->period_ms > MS_MAX)
        complain(check, NULL, "lending.period_ms", l->period_ms,
                 "use 1 or more, or 0 for no lending");
    check_range(check, "lending.low_percent", &l->low_percent, 30, 100);
    check_range(check, "lending.high_percent", &l->high_percent, 90, 100);
    check_range(check, "lending.hold", &l->hold, 3, 1000000);
    check_range(check, "lending.step", &l->step, WR_INF, WR_INF);
    if (l->headroom_percent == WEIR_NO_QUEUE)
        l->headroom_percent = 0;
    else
        check_range(check, "lending.headroom_percent", &l->headroom_percent, 25, 100);
    if (l->low_percent >= l->high_percent)
        complain(check, NULL, "lending.low_percent", l->low_percent,
                 "must be below lending.high_percent, or loans would go to and fro");
}

static void check_domains(struct check *check, struct wr_policy *policy)
{
    weir_policy *given = &policy->given;

    check_queue(check, NULL, "queue_places", &given->queue_places, WEIR_NO_LIMIT);
    if (!policy->domain) {
        if (given->slots || given->default_floor || given->domain_for || given->lending.period_ms)
            complain(check, NULL, "domain_count", 0,
                     "slots, default_floor, lending and domain_for need domains");
        return;
    }
    if (given->slots < 1 || given->slots >= WR_INF)
        complain(check, NULL, "slots", given->slots, "an executor with domains needs 1 or more");
    check->list = "domains";
    for (uint32_t i = 0; i < policy->domain_count && !check->failed; i++)
        check_domain(check, given, &policy->domain[i]);
    for (uint32_t i = 1; i < policy->domain_count && !check->failed; i++)
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(policy->domain[j].name, policy->domain[i].name) == 0)
                complain(check, policy->domain[i].name, "name", i, "the name stands there twice");
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

static void check_policy(struct check *check, struct wr_policy *policy)
{
    weir_policy *given = &policy->given;

    check_limit(check, NULL, "inflight_max", &given->inflight_max, WEIR_NO_LIMIT);
    check_queue(check, NULL, "queue_max", &given->queue_max, WEIR_NO_LIMIT);
    check_limit(check, NULL, "group_limit", &given->group_limit, 1);
    check_limit(check, NULL, "group_inflight_max", &given->group_inflight_max, WEIR_NO_LIMIT);
    check_queue(check, NULL, "group_queue_max", &given->group_queue_max, WEIR_NO_LIMIT);
    if (given->idle_evict_ms < 0 || given->idle_evict_ms > MS_MAX)
        complain(check, NULL, "idle_evict_ms", given->idle_evict_ms,
                 "use 1 to 31536000000 (a year), or 0 for never");
    if ((unsigned)given->rejection > WEIR_BLOCK)
        complain(check, NULL, "rejection", given->rejection, "use one of enum weir_rejection");
    check_domains(check, policy);
    check_time(check, given);
    if (given->group_count && !given->groups)
        complain(check, NULL, "group_count", (int64_t)given->group_count, "groups is NULL");
    for (size_t i = 0; i < given->group_count && !check->failed; i++)
        check_group(check, policy, &policy->group[i]);
    for (size_t i = 1; i < given->group_count && !check->failed; i++)
        if (strcmp(policy->group[i - 1].key, policy->group[i].key) == 0)
            complain(check, policy->group[i].key, "key", (int64_t)i, "the key stands there twice");
}

/* ---- copying --------------------------------------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
    const char *ka = ((const weir_group_policy *)a)->key, *kb = ((const weir_group_policy *)b)->key;

    return !ka || !kb ? (ka != NULL) - (kb != NULL) : strcmp(ka, kb);
}

static size_t length_of(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

/* Copies a text to *at, which moves on. */
static void keep(const char **text, char **at)
{
    char *copy = *at;

    if (*text) {
        *at = stpcpy(copy, *text) + 1;
        *text = copy;
    }
}

/* Entries and names in one allocation, the default domain's first, which is made if nobody named it. */
static int copy_domains(struct check *check, struct wr_policy *policy)
{
    const weir_policy *given = &policy->given;
    size_t count = given->domains ? given->domain_count : 0, names = 0, n = 1;
    char *at;

    check->list = "domains";
    if (given->domain_count && !given->domains)
        complain(check, NULL, "domain_count", (int64_t)given->domain_count, "domains is NULL");
    if (count >= WR_DOMAINS_MAX)
        complain(check, NULL, "domain_count", (int64_t)count, "use 63 at most");
    for (size_t i = 0; i < count && !check->failed; i++) {
        if (!given->domains[i].name)
            complain(check, NULL, "domains", (int64_t)i, "an entry needs a name");
        names += length_of(given->domains[i].name);
    }
    if (!count || check->failed)
        return 0;
    policy->domain = wr_os_alloc((count + 1) * sizeof(policy->domain[0]) + names);
    if (!policy->domain)
        return WEIR_ENOMEM;
    policy->domain[WR_DEFAULT].name = WEIR_DEFAULT_DOMAIN;
    at = (char *)&policy->domain[count + 1];
    for (size_t i = 0; i < count; i++) {
        bool first = strcmp(given->domains[i].name, WEIR_DEFAULT_DOMAIN) == 0 &&
                     policy->domain[WR_DEFAULT].weight == 0;
        weir_domain_policy *to = &policy->domain[first ? WR_DEFAULT : n++];
        *to = given->domains[i];
        keep(&to->name, &at);
        check_weight(check, to->name, &to->weight);
    }
    policy->domain_count = (uint32_t)n;
    check->list = "groups";
    return 0;
}

/* Entries and keys in one allocation. */
static int copy_groups(struct wr_policy *policy)
{
    const weir_policy *given = &policy->given;
    size_t count = given->groups ? given->group_count : 0, keys = 0;
    char *at;

    for (size_t i = 0; i < count; i++)
        keys += length_of(given->groups[i].key) + length_of(given->groups[i].domain);
    if (!count)
        return 0;
    policy->group = wr_os_alloc(count * sizeof(policy->group[0]) + keys);
    if (!policy->group)
        return WEIR_ENOMEM;
    memcpy(policy->group, given->groups, count * sizeof(policy->group[0]));
    at = (char *)&policy->group[count];
    for (size_t i = 0; i < count; i++) {
        keep(&policy->group[i].key, &at);
        keep(&policy->group[i].domain, &at);
    }
    qsort(policy->group, count, sizeof(policy->group[0]), by_key);
    return 0;
}

static bool is_watched(const struct wr_policy *policy)
{
    const weir_policy *given = &policy->given;
    bool watched = has_deadlines(&given->deadlines) || has_deadlines(&given->deadlines_max);

    for (uint32_t i = 0; i < policy->domain_count; i++)
        watched |= has_deadlines(&policy->domain[i].deadlines);
    for (size_t i = 0; policy->group && i < given->group_count; i++)
        watched |= has_deadlines(&policy->group[i].deadlines);
    return watched;
}

int wr_policy_init(struct wr_policy *policy, const weir_policy *given, weir_message *message)
{
    struct check check = { .message = message, .list = "groups" };
    int rc;

    if (message)
        message->text[0] = '\0';
    policy->group = NULL;
    policy->domain = NULL;
    rc = wr_options_load(&policy->given, sizeof(policy->given), given);
    if (!rc)
        rc = copy_groups(policy);
    if (!rc)
        rc = copy_domains(&check, policy);
    if (rc) {
        wr_policy_fini(policy);
        return rc;
    }
    check_policy(&check, policy);
    policy->given.groups = policy->group;
    policy->given.domains = policy->domain;
    policy->watched = is_watched(policy);
    if (check.failed) {
        wr_policy_fini(policy);
        return WEIR_EINVAL;
    }
    return 0;
}

void wr_policy_fini(struct wr_policy *policy)
{
    wr_os_free(policy->group);
    wr_os_free(policy->domain);
    policy->group = NULL;
    policy->domain = NULL;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static int64_t asked_limit(const weir_policy *given, const char *key)
{
    int64_t limit = 0;

    if (!given->limit_for || given->limit_for(&limit, key, given->limit_arg) != 0)
        return given->group_limit;
    return limit < 1 ? 1 : limit;
}

int wr_policy_domain(const struct wr_policy *policy, const char *name)
{
    for (uint32_t i = 0; i < policy->domain_count; i++)
        if (strcmp(policy->domain[i].name, name) == 0)
            return (int)i;
    return -1;
}

static void resolve_domain(struct wr_group_limits *limits, const struct wr_policy *policy,
                           const weir_group_policy *entry, const char *key)
{
    const weir_policy *given = &policy->given;
    const char *name = entry ? entry->domain : NULL;
    int domain = WR_DEFAULT;

    if (!policy->domain)
        return;
    if (!name && given->domain_for && given->domain_for(&name, key, given->domain_arg) != 0)
        name = NULL;
    if (name)
        domain = wr_policy_domain(policy, name);
    limits->lost = domain < 0 && !given->unknown_domain_is_default;
    limits->domain = (uint8_t)(domain < 0 ? WR_DEFAULT : domain);
}

static int64_t first_of(int64_t a, int64_t b)
{
    return a ? a : b;
}

static weir_deadlines inherit(const weir_deadlines *own, const weir_deadlines *next)
{
    return (weir_deadlines){ .wait_ms = first_of(own->wait_ms, next->wait_ms),
                             .run_ms = first_of(own->run_ms, next->run_ms),
                             .total_ms = first_of(own->total_ms, next->total_ms) };
}

/* The smaller of two spans of which 0 and WEIR_NO_LIMIT mean none. */
static int64_t capped(int64_t span, int64_t most)
{
    if (span == 0 || (most && most < span))
        span = most;
    return span == WEIR_NO_LIMIT ? 0 : span;
}

weir_deadlines wr_policy_deadlines(const struct wr_policy *policy, const weir_deadlines *own,
                                   const weir_deadlines *inherited)
{
    static const weir_deadlines none = { 0 };
    const weir_deadlines *most = &policy->given.deadlines_max;
    weir_deadlines d = inherit(own, inherited ? inherited : &none);

    return (weir_deadlines){ .wait_ms = capped(d.wait_ms, most->wait_ms),
                             .run_ms = capped(d.run_ms, most->run_ms),
                             .total_ms = capped(d.total_ms, most->total_ms) };
}

/* The group's own, else its domain's, else the executor's. */
static weir_deadlines resolve_deadlines(const struct wr_policy *policy,
                                        const weir_group_policy *entry, uint8_t domain)
{
    static const weir_deadlines none = { 0 };
    weir_deadlines d = inherit(entry ? &entry->deadlines : &none,
                               policy->domain ? &policy->domain[domain].deadlines : &none);

    return inherit(&d, &policy->given.deadlines);
}

struct wr_group_limits wr_policy_resolve(const struct wr_policy *policy, const char *key)
{
    const weir_policy *given = &policy->given;
    weir_group_policy wanted = { .key = key }, *entry = NULL;
    struct wr_group_limits limits = { .weight = 1 };

    if (policy->group)
        entry = bsearch(&wanted, policy->group, given->group_count, sizeof(wanted), by_key);
    limits.limit = wr_limit_from(entry && entry->limit ? entry->limit : asked_limit(given, key));
    if (!limits.limit)
        limits.limit = WR_INF; /* limit_for asked for more than we can count */
    limits.inflight_max = wr_limit_from(entry ? entry->inflight_max : given->group_inflight_max);
    wr_queue_from(&limits.queue_max, entry ? entry->queue_max : given->group_queue_max);
    if (entry)
        limits.weight = (uint16_t)entry->weight;
    resolve_domain(&limits, policy, entry, key);
    limits.deadlines = resolve_deadlines(policy, entry, limits.domain);
    limits.run_on = entry ? entry->run_on : WEIR_WORKERS;
    if (!limits.run_on && policy->domain)
        limits.run_on = policy->domain[limits.domain].run_on;
    return limits;
}
