/* Copying a policy, and asking it about a key.
 * SPDX-License-Identifier: MIT */
#include "policy/policy.h"

#include "base/options.h"
#include "base/os.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/error.h>

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

static bool is_default(const weir_domain_policy *domain)
{
    return domain->name && strcmp(domain->name, WEIR_DEFAULT_DOMAIN) == 0;
}

/* Entries as the caller knows them. Fields that all versions have can be read there. */
static const weir_group_policy *given_group(const weir_policy *given, size_t i)
{
    return (const void *)((const char *)given->groups + i * given->group_size);
}

static const weir_domain_policy *given_domain(const weir_policy *given, size_t i)
{
    return (const void *)((const char *)given->domains + i * given->domain_size);
}

/* An entry is as large as the caller says: 0 is the first size it had. */
static int load_entry_size(size_t *size, size_t first, const char *kind, weir_message *message)
{
    if (!*size)
        *size = first;
    if (*size >= first && *size <= WR_ENTRY_MAX && *size % sizeof(int64_t) == 0)
        return 0;
    if (message)
        snprintf(message->text, sizeof(message->text), "%s_size is %zu: use sizeof(weir_%s_policy)",
                 kind, *size, kind);
    return WEIR_EINVAL;
}

static int load_entry_sizes(weir_policy *given, weir_message *message)
{
    const size_t group_first = offsetof(weir_group_policy, pace) + sizeof(weir_pace);
    const size_t domain_first = offsetof(weir_domain_policy, deadlines) + sizeof(weir_deadlines);
    int rc = load_entry_size(&given->group_size, group_first, "group", message);

    return rc ? rc : load_entry_size(&given->domain_size, domain_first, "domain", message);
}

/* Entries and names in one allocation, the default domain's first, which is made if the caller has none. Entries
 * without a name are found when all is checked. */
static int copy_domains(struct wr_policy *policy)
{
    const weir_policy *given = &policy->given;
    size_t count = given->domains && given->domain_count < WR_DOMAINS_MAX ? given->domain_count : 0;
    size_t names = 0, n = 1;
    bool named = false;
    char *at;
    int rc = 0;

    for (size_t i = 0; i < count; i++)
        names += length_of(given_domain(given, i)->name);
    if (!count)
        return 0;
    policy->domain = wr_os_alloc((count + 1) * sizeof(policy->domain[0]) + names);
    if (!policy->domain)
        return WEIR_ENOMEM;
    policy->domain[WR_DEFAULT].name = WEIR_DEFAULT_DOMAIN;
    at = (char *)&policy->domain[count + 1];
    for (size_t i = 0; i < count && !rc; i++) {
        bool first = is_default(given_domain(given, i)) && !named;
        weir_domain_policy *to = &policy->domain[first ? WR_DEFAULT : n++];
        rc = wr_options_entry(to, sizeof(*to), given_domain(given, i), given->domain_size);
        keep(&to->name, &at);
        named |= first;
    }
    policy->domain_count = (uint32_t)n;
    return rc;
}

/* Entries and keys in one allocation. */
static int copy_groups(struct wr_policy *policy)
{
    const weir_policy *given = &policy->given;
    size_t count = given->groups ? given->group_count : 0, keys = 0;
    char *at;
    int rc = 0;

    for (size_t i = 0; i < count; i++)
        keys += length_of(given_group(given, i)->key) + length_of(given_group(given, i)->domain);
    if (!count)
        return 0;
    policy->group = wr_os_alloc(count * sizeof(policy->group[0]) + keys);
    if (!policy->group)
        return WEIR_ENOMEM;
    at = (char *)&policy->group[count];
    for (size_t i = 0; i < count && !rc; i++) {
        weir_group_policy *to = &policy->group[i];
        rc = wr_options_entry(to, sizeof(*to), given_group(given, i), given->group_size);
        keep(&to->key, &at);
        keep(&to->domain, &at);
    }
    qsort(policy->group, count, sizeof(policy->group[0]), by_key);
    return rc;
}

bool wr_has_deadlines(const weir_deadlines *d)
{
    return d->wait_ms || d->run_ms || d->total_ms;
}

static bool is_watched(const struct wr_policy *policy)
{
    const weir_policy *given = &policy->given;
    bool watched = wr_has_deadlines(&given->deadlines) || wr_has_deadlines(&given->deadlines_max);

    for (uint32_t i = 0; i < policy->domain_count; i++)
        watched |= wr_has_deadlines(&policy->domain[i].deadlines);
    for (size_t i = 0; policy->group && i < given->group_count; i++)
        watched |= wr_has_deadlines(&policy->group[i].deadlines);
    return watched;
}

static bool is_timed(const struct wr_policy *policy, bool watched)
{
    bool timed = watched || policy->given.group_for || policy->given.idle_evict_ms;

    for (size_t i = 0; policy->group && i < policy->given.group_count; i++)
        timed |= policy->group[i].pace.starts != 0;
    return timed;
}

int wr_policy_say(weir_message *message, int rc, const char *why)
{
    if (message && !message->text[0])
        snprintf(message->text, sizeof(message->text), "%s", why);
    return rc;
}

/* Copies the policy that the caller gave, or says why it cannot be read. */
static int load(struct wr_policy *policy, const weir_policy *given, weir_message *message)
{
    int rc = wr_options_load(&policy->given, sizeof(policy->given), given);
    char why[128];

    if (rc == WEIR_EINVAL)
        snprintf(why, sizeof(why),
                 "size is %zu: use sizeof(weir_policy), as the macro WEIR_POLICY does",
                 given->size);
    if (rc == WEIR_EVERSION)
        snprintf(why, sizeof(why),
                 "a field is set that weir %s does not know: the program was built for a newer "
                 "version",
                 weir_version());
    return rc ? wr_policy_say(message, rc, why) : 0;
}

int wr_policy_init(struct wr_policy *policy, const weir_policy *given, weir_message *message)
{
    bool watched;
    int rc;

    policy->group = NULL;
    policy->domain = NULL;
    rc = load(policy, given, message);
    if (!rc)
        rc = load_entry_sizes(&policy->given, message);
    if (!rc)
        rc = copy_groups(policy);
    if (!rc)
        rc = copy_domains(policy);
    if (!rc)
        rc = wr_policy_check(policy, message);
    if (rc) {
        wr_policy_fini(policy);
        return rc;
    }
    policy->given.groups = policy->group;
    policy->given.group_size = sizeof(policy->group[0]);
    policy->given.domains = policy->domain;
    policy->given.domain_size = sizeof(policy->domain[0]);
    watched = is_watched(policy);
    policy->timed = is_timed(policy, watched);
    wr_store(&policy->watched, watched, relaxed);
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

void wr_policy_complete(weir_group_policy *group, const weir_policy *given)
{
    if (!group->inflight_max)
        group->inflight_max = given->group_inflight_max;
    if (!group->queue_max)
        group->queue_max = given->group_queue_max;
    if (group->pace.starts && !group->pace.period_ns)
        group->pace.period_ns = WR_PACE_PERIOD_NS;
}

/* Room for an entry as a newer program may know it; fields that we do not know are ignored. */
union answer {
    weir_group_policy known;
    char room[WR_ENTRY_MAX];
};

/* Asks group_for; false: it has no opinion, or there is none. */
static bool ask_group_for(weir_group_policy *out, const weir_policy *given, const char *key)
{
    union answer answer = { .room = { 0 } };

    answer.known.key = key;
    if (!given->group_for || given->group_for(&answer.known, key, given->group_arg) != 0)
        return false;
    *out = answer.known;
    wr_fields_bring_into_range(wr_group_fields, out);
    wr_policy_complete(out, given);
    return true;
}

static int64_t ask_limit_for(const weir_policy *given, const char *key)
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

    if (!policy->domain && (!name || strcmp(name, WEIR_DEFAULT_DOMAIN) == 0))
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

/* The entry of `groups`, else the answer of group_for, which is stored in *answer; NULL: neither. */
static const weir_group_policy *entry_for(weir_group_policy *answer, const struct wr_policy *policy,
                                          const char *key)
{
    weir_group_policy wanted = { .key = key }, *entry = NULL;

    if (policy->group)
        entry = bsearch(&wanted, policy->group, policy->given.group_count, sizeof(wanted), by_key);
    if (entry)
        return entry;
    return ask_group_for(answer, &policy->given, key) ? answer : NULL;
}

struct wr_group_limits wr_policy_resolve(const struct wr_policy *policy, const char *key)
{
    const weir_policy *given = &policy->given;
    weir_group_policy answer;
    const weir_group_policy *entry = entry_for(&answer, policy, key);
    struct wr_group_limits limits = { .weight = 1 };

    limits.limit = wr_limit_from(entry && entry->limit ? entry->limit : ask_limit_for(given, key));
    if (!limits.limit)
        limits.limit = WR_INF; /* limit_for asked for more than we can count */
    limits.inflight_max = wr_limit_from(entry ? entry->inflight_max : given->group_inflight_max);
    wr_queue_from(&limits.queue_max, entry ? entry->queue_max : given->group_queue_max);
    if (entry) {
        limits.weight = (uint16_t)entry->weight;
        wr_pace_from(&limits.pace, &entry->pace);
    }
    resolve_domain(&limits, policy, entry, key);
    limits.deadlines = resolve_deadlines(policy, entry, limits.domain);
    limits.run_on = entry ? entry->run_on : WEIR_WORKERS;
    if (!limits.run_on && policy->domain)
        limits.run_on = policy->domain[limits.domain].run_on;
    return limits;
}
