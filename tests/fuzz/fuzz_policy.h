/* The fuzzer's executor: a policy from bytes, and the user's functions that it names.
 * SPDX-License-Identifier: MIT */
#ifndef WR_FUZZ_POLICY_H
#define WR_FUZZ_POLICY_H

#include "fuzz/fuzz_world.h"

static inline int fuzz_group_for(weir_group_policy *out, const char *key, void *arg)
{
    (void)arg;
    *out = world.answer[key[1] - '0'];
    return 0;
}

static inline int64_t take_ms(struct input *in, uint32_t once_in, uint32_t most)
{
    return take_chance(in, once_in) ? take_between(in, 1, most) : 0;
}

static inline weir_deadlines take_deadlines(struct input *in, uint32_t once_in)
{
    weir_deadlines deadlines = { 0 };

    if (take_chance(in, once_in)) {
        deadlines.wait_ms = take_ms(in, 2, 40);
        deadlines.run_ms = take_ms(in, 2, 20);
        deadlines.total_ms = take_ms(in, 2, 50);
    }
    return deadlines;
}

static inline bool has_deadlines(const weir_deadlines *d)
{
    return d->wait_ms || d->run_ms || d->total_ms;
}

/* Those of a policy hold for any task, to keep it simple. */
static inline weir_deadlines take_common_deadlines(struct input *in, uint32_t once_in)
{
    weir_deadlines deadlines = take_deadlines(in, once_in);

    world.timed |= has_deadlines(&deadlines);
    return deadlines;
}

static inline int64_t take_queue(struct input *in)
{
    switch (take_below(in, 4)) {
    case 0:
        return WEIR_NO_QUEUE;
    case 1:
        return take_between(in, 1, 4);
    default:
        return 0;
    }
}

static inline weir_group_policy take_group(struct input *in)
{
    weir_group_policy group = { .limit = take_between(in, 1, 3) };

    if (take_chance(in, 4))
        group.inflight_max = take_between(in, 1, 4);
    group.queue_max = take_queue(in);
    group.weight = take_below(in, 4);
    group.deadlines = take_common_deadlines(in, 6);
    group.run_on = take_chance(in, 3) ? WEIR_THREADS : WEIR_WORKERS;
    if (take_chance(in, 5))
        group.pace = (weir_pace){ .starts = take_between(in, 1, 3),
                                  .period_ns = take_between(in, 1, 9) * MS,
                                  .burst = take_below(in, 3) };
    return group;
}

/* Some groups by name, some by group_for, the rest by default. */
static inline void take_groups(struct input *in)
{
    weir_policy *policy = &world.policy;

    policy->group_limit = take_between(in, 1, 3);
    policy->group_inflight_max = take_chance(in, 4) ? take_between(in, 1, 4) : 0;
    policy->group_queue_max = take_queue(in);
    policy->groups = world.group;
    policy->group_for = take_chance(in, 2) ? fuzz_group_for : NULL;
    for (int k = 0; k < KEYS; k++) {
        world.group_ceiling[k] = policy->group_limit;
        if (take_chance(in, 3)) {
            world.group[policy->group_count] = take_group(in);
            world.group_ceiling[k] = world.group[policy->group_count].limit;
            world.group[policy->group_count++].key = group_name[k];
        } else if (policy->group_for && take_chance(in, 2)) {
            world.answer[k] = take_group(in);
            world.group_ceiling[k] = world.answer[k].limit;
        }
    }
}

static inline void take_domains(struct input *in)
{
    weir_policy *policy = &world.policy;
    bool places = take_chance(in, 2);

    if (!take_chance(in, 2))
        return;
    for (int d = 1; d < DOMAINS; d++)
        world.domain[d - 1] =
            (weir_domain_policy){ .name = domain_name[d],
                                  .slots = take_between(in, 1, 2),
                                  .slots_mode = d > 1 ? WEIR_RESERVED : WEIR_MAX,
                                  .queue = places ? take_between(in, 1, 5) : 0,
                                  .queue_mode = d == 2 ? WEIR_RESERVED : WEIR_MAX,
                                  .weight = take_below(in, 4),
                                  .workers = d == 3 ? take_below(in, 3) : 0,
                                  .run_on = take_chance(in, 6) ? WEIR_THREADS : WEIR_WORKERS,
                                  .deadlines = take_common_deadlines(in, 8) };
    world.domain[DOMAINS - 1] =
        (weir_domain_policy){ .name = domain_name[0],
                              .lend_max = take_below(in, 2),
                              .queue_lend_max = places * take_below(in, 4) };
    policy->domains = world.domain;
    policy->domain_count = DOMAINS;
    policy->slots = 7;
    policy->queue_places = places ? 18 : 0;
    policy->default_floor = take_below(in, 2);
    policy->domain_for = domain_for;
    policy->lending = (weir_lending){ .period_ms = take_ms(in, 2, 8),
                                      .hold = take_below(in, 3),
                                      .headroom_percent = take_chance(in, 2) ? WEIR_NONE : 0,
                                      .step = take_below(in, 3) };
}

static inline int fuzz_rejection(weir_result *result, weir_task *task, weir_reason reason,
                                 void *arg)
{
    (void)task;
    (void)reason;
    result->error = -ENOSPC;
    return arg ? -EIO : 0;
}

static inline void take_policy(struct input *in)
{
    weir_policy *policy = &world.policy;

    *policy = (weir_policy){ .size = sizeof(*policy) };
    policy->workers = take_between(in, 1, 4);
#ifdef __SANITIZE_ADDRESS__ /* frames are larger, and bodies may be nested dozens deep (WEIR_CALLER_RUNS) */
    policy->stack_size = 1 << 20;
#endif
    policy->inflight_max = take_chance(in, 2) ? take_between(in, 2, 5) : 0;
    policy->queue_max = take_queue(in);
    policy->rejection = (weir_rejection)take_below(in, 4);
    if (take_chance(in, 10)) {
        policy->rejection_fn = fuzz_rejection;
        policy->rejection_arg = take_chance(in, 2) ? policy : NULL;
    }
    policy->idle_evict_ms = take_ms(in, 3, 6);
    policy->deadlines = take_common_deadlines(in, 8);
    policy->deadlines_max = take_common_deadlines(in, 12);
    policy->overdue = (weir_overdue)take_below(in, 3);
    policy->overdue_max = take_below(in, 3);
    policy->threads_max = take_between(in, 1, 4);
    policy->stall_policy = (weir_stall_policy)take_below(in, 2);
    take_groups(in);
    take_domains(in);
    world.inflight_ceiling = policy->inflight_max ? policy->inflight_max : WEIR_NO_LIMIT;
    world.listens = take_chance(in, 2);
    world.callbacks_act = take_chance(in, 2);
}

#endif
