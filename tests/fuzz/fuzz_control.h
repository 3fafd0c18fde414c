/* The fuzzer's calls on groups, domains and the executor.
 * SPDX-License-Identifier: MIT */
#ifndef WR_FUZZ_CONTROL_H
#define WR_FUZZ_CONTROL_H

#include "fuzz/fuzz_handle.h"

/* ---- groups ---------------------------------------------------------------------------------------- */

static inline weir_group *take_group_handle(struct actor *actor, int *key)
{
    weir_group *group = NULL;
    int rc;

    *key = (int)take_below(&actor->in, KEYS);
    rc = weir_group_get(&group, world.ex, group_name[*key]);
    CHECK(rc == 0 || (rc == WEIR_ECLOSED && world.closing) || world.faults);
    if (!rc)
        world.handle[*key] = group;
    return world.handle[*key];
}

static inline void open_gates(weir_group *group)
{
    weir_group_resume(group);
    weir_group_cool_down(group, 0);
    weir_group_pace(group, 0, 0, 0);
}

static inline void call_gate(struct actor *actor)
{
    int key;
    weir_group *group = take_group_handle(actor, &key);
    uint32_t which = take_below(&actor->in, 5);

    if (!group)
        return;
    say(actor, "gate %u of %s", which, group_name[key]);
    if (which == 0)
        weir_group_pause(group);
    else if (which == 1 || which == 2)
        weir_group_resume(group);
    else if (which == 3)
        weir_group_cool_down(group, take_soon(&actor->in));
    else
        weir_group_pace(group, take_below(&actor->in, 3), take_between(&actor->in, 1, 5) * MS,
                        take_between(&actor->in, 1, 3));
    if (world.winding_down)
        open_gates(group);
}

static inline void call_group_resize(struct actor *actor)
{
    int key, rc;
    weir_group *group = take_group_handle(actor, &key);
    int64_t limit = take_below(&actor->in, 5), inflight = take_below(&actor->in, 6);

    if (!group || world.winding_down)
        return;
    if (limit > world.group_ceiling[key])
        world.group_ceiling[key] = limit;
    rc = weir_group_resize(group, limit, inflight, take_queue(&actor->in));
    say(actor, "resize %s to %d, %d: %d", group_name[key], (int)limit, (int)inflight, rc);
    CHECK(rc == 0 || rc == WEIR_EINVAL || (rc == WEIR_ECLOSED && world.closing) || world.faults);
    world.limits_lowered = true;
}

static inline void call_group_run_on(struct actor *actor)
{
    int key;
    weir_group *group = take_group_handle(actor, &key);

    if (!group)
        return;
    weir_group_run_on(group, take_chance(&actor->in, 2) ? WEIR_THREADS : WEIR_WORKERS);
    weir_group_set_weight(group, take_between(&actor->in, 1, 3));
}

static inline void land_all(void)
{
    for (int i = 0; i < world.items; i++)
        world.item[i].ending = true;
}

static inline void call_evict(struct actor *actor)
{
    int key = (int)take_below(&actor->in, KEYS), rc;
    int flags = (int)take_below(&actor->in, 4);

    if (flags & WEIR_CANCEL_RUNNING)
        land_all();
    world.plain_evictions[key] += !(flags & WEIR_CARRY_OVER);
    world.landing += (flags & WEIR_CANCEL_RUNNING) != 0;
    say(actor, "evict %s, %d", group_name[key], flags);
    rc = weir_group_evict(world.ex, group_name[key], flags);
    world.landing -= (flags & WEIR_CANCEL_RUNNING) != 0;
    say(actor, "evicted %s: %d", group_name[key], rc);
    CHECK(rc == 0 || world.faults);
}

/* ---- domains --------------------------------------------------------------------------------------- */

static inline void call_release(struct actor *actor)
{
    uint32_t domain = take_below(&actor->in, DOMAINS), to = take_below(&actor->in, DOMAINS + 1);
    int flags = take_chance(&actor->in, 3) ? WEIR_CANCEL_RUNNING : 0, rc;
    weir_message why;

    if (!world.policy.domain_count || world.winding_down)
        return;
    world.slots_moved = true;
    if (flags)
        land_all();
    world.landing += flags != 0;
    rc = weir_domain_release(world.ex, domain_name[domain], to < DOMAINS ? domain_name[to] : NULL,
                             flags, &why);
    world.landing -= flags != 0;
    say(actor, "release %s to %s: %d", domain_name[domain], to < DOMAINS ? domain_name[to] : "NULL",
        rc);
    CHECK(rc == 0 || rc == WEIR_EINVAL || rc == WEIR_EALREADY || world.faults);
    CHECK(domain || rc == WEIR_EINVAL);
    if (world.winding_down)
        weir_domain_restore(world.ex, domain_name[domain], NULL);
}

static inline void call_restore(struct actor *actor)
{
    uint32_t domain = take_below(&actor->in, DOMAINS);
    int rc;

    if (!world.policy.domain_count)
        return;
    rc = weir_domain_restore(world.ex, domain_name[domain], NULL);
    say(actor, "restore %s: %d", domain_name[domain], rc);
    CHECK(rc == 0 || rc == WEIR_EINVAL || rc == WEIR_EALREADY);
}

static inline void call_domain_resize(struct actor *actor)
{
    uint32_t domain = take_below(&actor->in, DOMAINS), slots = take_below(&actor->in, 5);
    int rc;

    if (!world.policy.domain_count || world.winding_down)
        return;
    world.slots_moved = true;
    rc = weir_domain_resize(world.ex, domain_name[domain], slots, take_below(&actor->in, 9), NULL);
    say(actor, "resize %s to %u: %d", domain_name[domain], slots, rc);
    CHECK(rc == 0 || rc == WEIR_EINVAL);
}

/* ---- the executor ---------------------------------------------------------------------------------- */

static inline void call_resize(struct actor *actor)
{
    int64_t max = take_chance(&actor->in, 4) ? WEIR_NO_LIMIT : take_below(&actor->in, 6);

    if (world.winding_down)
        return;
    if (max > world.inflight_ceiling)
        world.inflight_ceiling = max;
    world.limits_lowered = true;
    say(actor, "resize the executor to %lld", (long long)max);
    CHECK(weir_executor_resize(world.ex, max, take_queue(&actor->in)) == 0);
}

static inline void look_at_domains(void)
{
    weir_domain_stats d = { .size = sizeof(d) };

    for (int i = 0; i < DOMAINS; i++) {
        int rc = weir_domain_stats_get(&d, world.ex, domain_name[i]);
        CHECK(rc == (world.policy.domain_count ? 0 : WEIR_ENODOMAIN));
        CHECK(rc || (d.used >= 0 && d.borrowed <= d.used && d.recalled <= d.taken));
    }
}

static inline void look_at_handles(void)
{
    for (int k = 0; k < KEYS; k++) {
        if (!world.handle[k])
            continue;
        CHECK(strcmp(weir_group_key(world.handle[k]), group_name[k]) == 0);
        CHECK(strcmp(weir_group_domain(world.handle[k]),
                     domain_name[world.policy.domain_count ? k : 0]) == 0);
    }
}

static inline void call_look(struct actor *actor)
{
    weir_executor_stats all = { .size = sizeof(all) };
    weir_group_stats one = { .size = sizeof(one) };
    char **keys = NULL;
    size_t count = 0;
    int rc = weir_executor_keys(&keys, &count, world.ex);

    CHECK(rc == 0 || world.faults);
    CHECK(rc || (count <= KEYS && !keys[count]));
    free(keys);
    CHECK(weir_executor_stats_get(&all, world.ex) == 0);
    rc = weir_group_stats_get(&one, world.ex, group_name[take_below(&actor->in, KEYS)]);
    CHECK(rc == 0 || rc == WEIR_ENOGROUP);
    CHECK(rc || (one.running <= one.inflight && one.peak >= one.running));
    look_at_domains();
    look_at_handles();
}

static inline void check_drain(const struct actor *actor, int rc, weir_time deadline)
{
    bool own = actor->place == IN_BODY && !actor->item->by_caller;

    CHECK(rc == 0 || rc == WEIR_ETIMEDOUT || rc == WEIR_EDEADLK ||
          (rc == WEIR_ECANCELED && weir_cancelled()));
    CHECK(!own || rc == WEIR_EDEADLK);
    CHECK(rc != WEIR_EDEADLK || actor->place != ON_THREAD);
    CHECK(rc != WEIR_ETIMEDOUT || weir_now() >= deadline);
}

static inline void call_drain(struct actor *actor)
{
    weir_time deadline = take_deadline(actor);
    int rc = weir_executor_drain(world.ex, deadline);

    say(actor, "drained: %d", rc);
    check_drain(actor, rc, deadline);
}

/* Seldom, or most lives would be short. */
static inline void call_close(struct actor *actor)
{
    uint32_t way = take_below(&actor->in, 24);
    weir_time deadline = take_deadline(actor);

    if (way > 6)
        return;
    world.closing = true;
    land_all();
    say(actor, "close, %u", way);
    if (way < 4)
        weir_executor_close(world.ex, (int)way);
    else
        check_drain(actor, weir_executor_shutdown(world.ex, deadline), deadline);
    say(actor, "closed");
}

#endif
