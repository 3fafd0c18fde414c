/* Checking a policy: the first field that makes no sense is named, with its value and which values to use.
 * SPDX-License-Identifier: MIT */
#include "limits/ledger.h"
#include "policy/policy.h"

#include <stdio.h>
#include <string.h>
#include <weir/error.h>

struct check {
    weir_message *message;
    const char *list; /* of entries with a key: "groups" or "domains" */
    bool failed;
};

/* Only the first complaint counts. `key` NULL: it is about the policy itself. */
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

/* Checks the numbers of a struct, and fills in defaults. */
static void check_fields(struct check *check, const char *key, const struct wr_field *fields,
                         void *in)
{
    const struct wr_field *wrong = check->failed ? NULL : wr_fields_fill(fields, in);

    if (wrong)
        complain(check, key, wrong->name, wr_field_value(wrong, in), wrong->range->instead);
}

/* ---- groups ---------------------------------------------------------------------------------- */

static void check_pace(struct check *check, const char *key, const weir_pace *pace)
{
    struct wr_pace ignored;

    if (!pace->starts && (pace->period_ns || pace->burst))
        complain(check, key, "pace.starts", 0, "use 1 or more: period_ns or burst is set");
    else if (!wr_pace_from(&ignored, pace))
        complain(check, key, "pace.burst", pace->burst, "the burst is too large");
}

static void check_group_domain(struct check *check, const struct wr_policy *policy,
                               const weir_group_policy *group)
{
    if (!group->domain || wr_policy_domain(policy, group->domain) >= 0)
        return;
    check->failed = true;
    if (check->message)
        snprintf(check->message->text, sizeof(check->message->text),
                 "groups[\"%.64s\"].domain is \"%.64s\": unknown domain", group->key,
                 group->domain);
}

static void check_group(struct check *check, const struct wr_policy *policy,
                        weir_group_policy *group)
{
    if (!group->key) {
        complain(check, "", "key", 0, "an entry of groups needs a key");
        return;
    }
    if (!group->domain && wr_fields_are_zero(wr_group_fields, group))
        complain(check, group->key, "limit", 0,
                 "the entry sets nothing: set a field, or remove the entry");
    check_fields(check, group->key, wr_group_fields, group);
    if (check->failed)
        return;
    wr_policy_complete(group, &policy->given);
    check_pace(check, group->key, &group->pace);
    if (!check->failed)
        check_group_domain(check, policy, group);
}

static void check_groups(struct check *check, struct wr_policy *policy)
{
    const weir_policy *given = &policy->given;

    if (given->group_count && !given->groups)
        complain(check, NULL, "group_count", (int64_t)given->group_count, "groups is NULL");
    for (size_t i = 0; i < given->group_count && !check->failed; i++)
        check_group(check, policy, &policy->group[i]);
    for (size_t i = 1; i < given->group_count && !check->failed; i++)
        if (strcmp(policy->group[i - 1].key, policy->group[i].key) == 0)
            complain(check, policy->group[i].key, "key", (int64_t)i, "duplicate key");
}

/* ---- domains --------------------------------------------------------------------------------- */

#define COUNTABLE "use 1 to 4294967294" /* WEIR_LIMIT_MAX */

static void check_domain(struct check *check, const weir_policy *given, weir_domain_policy *d)
{
    bool unlimited = given->queue_places == WEIR_NO_LIMIT;
    uint32_t ignored;

    check_fields(check, d->name, wr_domain_fields, d);
    if (strcmp(d->name, WEIR_DEFAULT_DOMAIN) == 0) {
        check_fields(check, d->name, wr_default_domain_fields, d);
        return;
    }
    if (d->slots < 1 || d->slots > WEIR_LIMIT_MAX)
        complain(check, d->name, "slots", d->slots, COUNTABLE);
    if (!d->queue && unlimited)
        d->queue = WEIR_NO_LIMIT;
    if (!wr_queue_from(&ignored, d->queue) || (d->queue == WEIR_NO_LIMIT && !unlimited))
        complain(check, d->name, "queue", d->queue,
                 COUNTABLE ", or WEIR_NO_QUEUE; WEIR_NO_LIMIT only if queue_places has none");
}

static void check_names(struct check *check, const struct wr_policy *policy)
{
    for (uint32_t i = 0; i < policy->domain_count && !check->failed; i++) {
        const char *name = policy->domain[i].name;
        if (!name || !*name)
            complain(check, NULL, "domains", (int64_t)i - 1, "an entry needs a name");
        for (uint32_t j = 0; j < i && !check->failed; j++)
            if (strcmp(policy->domain[j].name, name) == 0)
                complain(check, name, "name", i, "duplicate name");
    }
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

static void check_lending(struct check *check, weir_lending *lending)
{
    if (lending->headroom_percent == WEIR_NONE)
        lending->headroom_percent = 0;
    if (lending->low_percent >= lending->high_percent)
        complain(check, NULL, "lending.low_percent", lending->low_percent,
                 "use less than lending.high_percent");
}

static void check_no_domains(struct check *check, const weir_policy *given)
{
    if (given->slots || given->queue_places != WEIR_NO_LIMIT || given->default_floor ||
        given->domain_for || given->lending.period_ms)
        complain(check, NULL, "domain_count", 0,
                 "slots, queue_places, default_floor, lending and domain_for need domains");
}

static void check_domains(struct check *check, struct wr_policy *policy)
{
    weir_policy *given = &policy->given;

    if (given->domain_count && !given->domains)
        complain(check, NULL, "domain_count", (int64_t)given->domain_count, "domains is NULL");
    if (given->domain_count > WEIR_DOMAINS_MAX)
        complain(check, NULL, "domain_count", (int64_t)given->domain_count, "use at most 63");
    if (check->failed)
        return;
    if (!policy->domain) {
        check_no_domains(check, given);
        return;
    }
    check->list = "domains";
    check_names(check, policy);
    if (given->slots < 1 || given->slots > WEIR_LIMIT_MAX)
        complain(check, NULL, "slots", given->slots, "with domains, " COUNTABLE);
    for (uint32_t i = 0; i < policy->domain_count && !check->failed; i++)
        check_domain(check, given, &policy->domain[i]);
    if (!check->failed) /* figures out of range have no sum */
        check_sums(check, policy);
    check_lending(check, &given->lending);
    check->list = "groups";
}

int wr_policy_check(struct wr_policy *policy, weir_message *message)
{
    struct check check = { .message = message, .list = "groups" };

    check_fields(&check, NULL, wr_policy_fields, &policy->given);
    check_domains(&check, policy);
    if (!check.failed)
        check_groups(&check, policy);
    return check.failed ? WEIR_EINVAL : 0;
}
