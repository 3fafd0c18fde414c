/* Calls with arguments that make little sense: each is refused, or does no harm.
 * SPDX-License-Identifier: MIT */
#ifndef WR_FUZZ_ODD_H
#define WR_FUZZ_ODD_H

#include "fuzz/fuzz_control.h"

static inline int64_t take_odd(struct input *in)
{
    static const int64_t odd[] = { 0,
                                   1,
                                   -1,
                                   INT64_MAX,
                                   INT64_MIN,
                                   INT64_MAX - 1,
                                   INT64_MIN + 1,
                                   UINT32_MAX,
                                   (int64_t)UINT32_MAX + 1,
                                   INT32_MAX,
                                   INT32_MIN,
                                   UINT16_MAX,
                                   1000000007 };

    return odd[take_below(in, sizeof(odd) / sizeof(odd[0]))];
}

static inline int never_runs(void **value, void *arg)
{
    (void)value;
    (void)arg;
    weir_sim_fail("a task runs that was refused");
}

/* One that is never accepted. */
static inline int submit_oddly(struct input *in)
{
    weir_task_options opt = { .size = sizeof(opt) };
    const char *key = group_name[take_below(in, KEYS)];

    switch (take_below(in, 5)) {
    case 0:
        opt.priority = (uint8_t)take_between(in, 5, 200);
        break;
    case 1:
        opt.cost = UINT32_MAX; /* beyond WEIR_LIMIT_MAX */
        take_byte(in);
        break;
    case 2:
        opt.deadlines.run_ms = -1 - (int64_t)take_byte(in);
        break;
    case 3:
        key = NULL;
        break;
    default:
        return weir_submit_key(NULL, world.ex, key, NULL, NULL, &opt);
    }
    return weir_submit_key(NULL, world.ex, key, never_runs, NULL, &opt);
}

/* Limits that hold nothing back, or are refused. */
static inline int resize_oddly(struct input *in, weir_group *group, int key)
{
    int64_t limit = take_odd(in);

    if (limit > world.group_ceiling[key])
        world.group_ceiling[key] = limit;
    world.limits_lowered = true;
    return weir_group_resize(group, limit, take_odd(in), take_odd(in));
}

static inline int pace_oddly(struct input *in, weir_group *group)
{
    int rc = weir_group_pace(group, take_odd(in), take_odd(in), take_odd(in));

    weir_group_pace(group, 0, 0, 0);
    return rc;
}

static inline void call_odd(struct actor *actor)
{
    struct input *in = &actor->in;
    int key, rc = 0;
    weir_group *group = take_group_handle(actor, &key);
    uint32_t which = take_below(in, 6);

    if (which == 0)
        rc = submit_oddly(in);
    else if (which == 1 && group && !world.winding_down)
        rc = resize_oddly(in, group, key);
    else if (which == 2 && group)
        rc = pace_oddly(in, group);
    else if (which == 3)
        rc = weir_domain_resize(world.ex, domain_name[0], take_odd(in), take_odd(in), NULL);
    else if (which == 4)
        rc = weir_domain_release(world.ex, "none", NULL, 0, NULL);
    else if (which == 5 && group)
        rc = weir_group_set_weight(group, take_odd(in));
    say(actor, "odd call %u: %s", which, rc ? weir_errname(rc) : "0");
    CHECK(which != 0 || rc != 0);
    CHECK(rc == 0 || rc == WEIR_EINVAL || rc == WEIR_ENODOMAIN ||
          (rc == WEIR_ECLOSED && world.closing) || world.faults);
}

/* ---- policies -------------------------------------------------------------------------------------- */

/* Any field, set to anything: it makes an executor, or is refused in words. */
static inline void take_odd_policy(struct input *in)
{
    weir_policy *p = &world.policy;
    int64_t *const field[] = { &p->inflight_max,
                               &p->queue_max,
                               &p->group_limit,
                               &p->group_inflight_max,
                               &p->group_queue_max,
                               &p->idle_evict_ms,
                               &p->slots,
                               &p->queue_places,
                               &p->default_floor,
                               &p->deadlines.wait_ms,
                               &p->deadlines.run_ms,
                               &p->deadlines_max.total_ms,
                               &p->overdue_max,
                               &p->stall_max,
                               &p->lending.period_ms,
                               &p->lending.hold,
                               &p->lending.step,
                               &p->lending.headroom_percent,
                               &p->lending.low_percent,
                               &world.domain[1].slots,
                               &world.domain[1].queue,
                               &world.domain[2].lend_max,
                               &world.domain[0].weight,
                               &world.group[0].limit,
                               &world.group[0].weight,
                               &world.group[0].pace.period_ns };
    weir_message why = { "" };
    int rc;

    *field[take_below(in, sizeof(field) / sizeof(field[0]))] = take_odd(in);
    rc = weir_executor_new(&world.ex, p, &why);
    CHECK(rc == 0 || rc == WEIR_EINVAL || world.faults);
    CHECK(rc != WEIR_EINVAL || why.text[0]);
    if (!rc)
        weir_executor_free(world.ex);
}

#endif
