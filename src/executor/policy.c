/* Checking a policy, copying it, and asking it about a key.
 * SPDX-License-Identifier: MIT */
#include "executor/policy.h"

#include "base/options.h"
#include "base/os.h"
#include "executor/admit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/error.h>

enum { WEIGHT_MAX = 1000 };
static const int64_t IDLE_EVICT_MS_MAX = 31536000000;

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
        snprintf(check->message->text, sizeof(check->message->text),
                 "groups[\"%.64s\"].%s is %lld: %s", key, field, (long long)value, instead);
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

static void check_group(struct check *check, const weir_policy *given, weir_group_policy *group)
{
    if (!group->key) {
        complain(check, "", "key", 0, "an entry of groups needs a key");
        return;
    }
    if (!group->limit && !group->inflight_max && !group->queue_max && !group->weight)
        complain(check, group->key, "limit", 0,
                 "an entry must set something; remove it, or set a limit");
    /* A limit left open is asked of limit_for later; zero stays zero until then. */
    if (group->limit)
        check_limit(check, group->key, "limit", &group->limit, 0);
    check_limit(check, group->key, "inflight_max", &group->inflight_max, given->group_inflight_max);
    check_queue(check, group->key, "queue_max", &group->queue_max, given->group_queue_max);
    if (!group->weight)
        group->weight = 1;
    if (group->weight < 1 || group->weight > WEIGHT_MAX)
        complain(check, group->key, "weight", group->weight, "use 1 to 1000");
}

static void check_policy(struct check *check, struct wr_policy *policy)
{
    weir_policy *given = &policy->given;

    check_limit(check, NULL, "inflight_max", &given->inflight_max, WEIR_NO_LIMIT);
    check_queue(check, NULL, "queue_max", &given->queue_max, WEIR_NO_LIMIT);
    check_limit(check, NULL, "group_limit", &given->group_limit, 1);
    check_limit(check, NULL, "group_inflight_max", &given->group_inflight_max, WEIR_NO_LIMIT);
    check_queue(check, NULL, "group_queue_max", &given->group_queue_max, WEIR_NO_LIMIT);
    if (given->idle_evict_ms < 0 || given->idle_evict_ms > IDLE_EVICT_MS_MAX)
        complain(check, NULL, "idle_evict_ms", given->idle_evict_ms,
                 "use 1 to 31536000000 (a year), or 0 for never");
    if ((unsigned)given->rejection > WEIR_BLOCK)
        complain(check, NULL, "rejection", given->rejection, "use one of enum weir_rejection");
    if (given->group_count && !given->groups)
        complain(check, NULL, "group_count", (int64_t)given->group_count, "groups is NULL");
    for (size_t i = 0; i < given->group_count && !check->failed; i++)
        check_group(check, given, &policy->group[i]);
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

/* Entries and keys in one allocation. */
static int copy_groups(struct wr_policy *policy)
{
    const weir_policy *given = &policy->given;
    size_t count = given->groups ? given->group_count : 0, keys = 0;
    char *at;

    for (size_t i = 0; i < count; i++)
        keys += given->groups[i].key ? strlen(given->groups[i].key) + 1 : 0;
    if (!count)
        return 0;
    policy->group = wr_os_alloc(count * sizeof(policy->group[0]) + keys);
    if (!policy->group)
        return WEIR_ENOMEM;
    memcpy(policy->group, given->groups, count * sizeof(policy->group[0]));
    at = (char *)&policy->group[count];
    for (size_t i = 0; i < count; i++) {
        if (!policy->group[i].key)
            continue;
        char *copy = at;
        at = stpcpy(copy, policy->group[i].key) + 1;
        policy->group[i].key = copy;
    }
    qsort(policy->group, count, sizeof(policy->group[0]), by_key);
    return 0;
}

int wr_policy_init(struct wr_policy *policy, const weir_policy *given, weir_message *message)
{
    struct check check = { .message = message };
    int rc;

    if (message)
        message->text[0] = '\0';
    policy->group = NULL;
    rc = wr_options_load(&policy->given, sizeof(policy->given), given);
    if (!rc)
        rc = copy_groups(policy);
    if (rc)
        return rc;
    check_policy(&check, policy);
    policy->given.groups = policy->group;
    if (check.failed) {
        wr_policy_fini(policy);
        return WEIR_EINVAL;
    }
    return 0;
}

void wr_policy_fini(struct wr_policy *policy)
{
    wr_os_free(policy->group);
    policy->group = NULL;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static int64_t asked_limit(const weir_policy *given, const char *key)
{
    int64_t limit = 0;

    if (!given->limit_for || given->limit_for(&limit, key, given->limit_arg) != 0)
        return given->group_limit;
    return limit < 1 ? 1 : limit;
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
    return limits;
}
