/* The fuzzer's calls that wait for time, and those that submit. Each call of the fuzzer reads a few bytes, makes one call of
 * the library and looks at the answer.
 * SPDX-License-Identifier: MIT */
#ifndef WR_FUZZ_SUBMIT_H
#define WR_FUZZ_SUBMIT_H

#include "fuzz/fuzz_body.h"
#include "fuzz/fuzz_policy.h"

/* ---- time ----------------------------------------------------------------------------------------- */

static inline weir_time take_soon(struct input *in)
{
    return weir_now() + take_below(in, 12) * MS;
}

/* Never, too. */
static inline weir_time take_deadline(struct actor *actor)
{
    weir_time soon = take_soon(&actor->in);
    bool forever = take_chance(&actor->in, 3);

    return forever && !actor->bounded ? WEIR_FOREVER : soon;
}

static inline void call_sleep(struct actor *actor)
{
    int rc = weir_sleep(take_soon(&actor->in));

    say(actor, "sleeps: %d", rc);
    CHECK(rc == 0 || (rc == WEIR_ECANCELED && weir_cancelled()));
}

static inline void call_busy(struct actor *actor)
{
    weir_sim_busy(take_below(&actor->in, 4) * MS);
}

static inline int blocking_call(void *arg)
{
    weir_sim_busy((int64_t)(intptr_t)arg * MS);
    return 7;
}

static inline void call_blocking(struct actor *actor)
{
    int result = 0, rc;

    rc = weir_blocking(&result, blocking_call, (void *)(intptr_t)take_below(&actor->in, 5),
                       take_soon(&actor->in));
    say(actor, "blocking: %d", rc);
    CHECK(rc || result == 7);
    CHECK(rc == 0 || rc == WEIR_ETIMEDOUT || (rc == WEIR_ECANCELED && weir_cancelled()) ||
          world.faults);
}

/* ---- submitting ----------------------------------------------------------------------------------- */

static inline void item_init(struct item *item, struct actor *actor)
{
    struct input *in = &actor->in;

    item->number = (int)(item - world.item);
    item->key = (int)take_below(in, KEYS);
    item->cost = 1;
    snprintf(item->id, sizeof(item->id), "%d", item->number);
    item->body = take_branch(in);
    item->callback = take_branch(in);
    item->timed = world.timed;
    item->ending = world.landing > 0;
    item->bounded = actor->bounded;
    item->submitting = true;
    item->submitter = actor->place == ON_THREAD ? NULL : actor->item;
    item->local = weir_local_get(&fuzz_local);
}

/* So many in a row, or NULL; no other actor comes between. */
static inline struct item *new_items(struct actor *actor, uint32_t count)
{
    struct item *item = &world.item[world.items];

    if (world.items + (int)count > ITEMS)
        return NULL;
    world.items += (int)count;
    for (uint32_t i = 0; i < count; i++)
        item_init(&item[i], actor);
    return item;
}

static inline weir_task_options take_options(struct actor *actor, struct item *item)
{
    struct input *in = &actor->in;
    weir_task_options opt = { .size = sizeof(opt), .id = item->id };

    item->cost = opt.cost = take_chance(in, 4) ? take_between(in, 2, 3) : 1;
    opt.priority = take_chance(in, 3) ? (uint8_t)take_between(in, 1, 4) : 0;
    opt.deadlines = item->deadlines = take_deadlines(in, 5);
    item->timed |= has_deadlines(&opt.deadlines);
    world.timed |= item->timed;
    item->drops = take_chance(in, 2);
    opt.drop = item->drops ? drop_value : NULL;
    item->calls_back = take_chance(in, 2);
    opt.on_done = item->calls_back ? option_on_done : NULL;
    opt.on_done_arg = item;
    item->drops_arg = take_chance(in, 3);
    opt.drop_arg = item->drops_arg ? drop_arg : NULL;
    opt.deadline = take_deadline(actor);
    return opt;
}

static inline void check_submit(const struct actor *actor, struct item *item, int rc,
                                weir_task *task)
{
    bool blocks = world.policy.rejection == WEIR_BLOCK;

    item->entered_by = weir_now();
    item->submitting = false;
    item->rc = rc;
    item->accepted = rc == 0;
    item->task = task;
    say(actor, "submit %s as %d, cost %u: %s", group_name[item->key], item->number, item->cost,
        rc ? weir_errname(rc) : "0");
    CHECK_ITEM(item, rc == 0 || (rc == WEIR_EINVAL && item->cost > 1) ||
                         (rc == WEIR_ECLOSED && world.closing) ||
                         (rc == WEIR_ETIMEDOUT && blocks) ||
                         (rc == WEIR_EDEADLK && blocks && actor->place != ON_THREAD) ||
                         (rc == WEIR_ECANCELED && blocks && weir_cancelled()) ||
                         (world.faults && (rc == WEIR_ENOMEM || rc == WEIR_EAGAIN)));
    CHECK_ITEM(item, (task != NULL) == (rc == 0 && item->wants_handle));
}

static inline void call_submit(struct actor *actor)
{
    weir_task *task = NULL, **out;
    weir_group *group = NULL;
    struct item *item = new_items(actor, 1);
    int rc;

    if (!item)
        return;
    weir_task_options opt = take_options(actor, item);
    item->wants_handle = !take_chance(&actor->in, 4);
    out = item->wants_handle ? &task : NULL;
    if (take_chance(&actor->in, 3)) {
        rc = weir_group_get(&group, world.ex, group_name[item->key]);
        if (!rc)
            rc = weir_submit(out, group, fuzz_body, item, &opt);
    } else {
        rc = weir_submit_key(out, world.ex, group_name[item->key], fuzz_body, item, &opt);
    }
    check_submit(actor, item, rc, task);
}

/* Several to one group. They have no ids, so it is not for a life that is listened to. */
static inline void call_submit_many(struct actor *actor)
{
    uint32_t count = take_between(&actor->in, 1, 4);
    weir_time deadline = take_deadline(actor);
    struct item *item = world.listens ? NULL : new_items(actor, count);
    weir_group *group = NULL;
    weir_task *task[4] = { NULL };
    void *arg[4];
    int64_t rc;

    if (!item)
        return;
    for (uint32_t i = 0; i < count; i++) {
        arg[i] = &item[i];
        item[i].key = item[0].key;
        item[i].id[0] = '\0';
        item[i].wants_handle = true;
    }
    rc = weir_group_get(&group, world.ex, group_name[item->key]);
    if (!rc)
        rc = weir_submit_many(task, group, fuzz_body, arg, count, WEIR_TASK(.deadline = deadline));
    say(actor, "submit_many %u: %lld", count, (long long)rc);
    for (uint32_t i = 0; i < count; i++) {
        if (rc < 0 || i < rc) {
            check_submit(actor, &item[i], rc < 0 ? (int)rc : 0, task[i]);
        } else {
            CHECK_ITEM(&item[i], !task[i]);
            item[i].submitting = false;
        }
    }
}

/* A submission that failed has a result as well, with the error of the call. */
static inline void take_batch_result(struct item *item, const weir_result *result)
{
    int error = result->error;

    item->submitting = false;
    item->accepted = result->outcome != WEIR_REJECTED || error == WEIR_EREJECTED ||
                     error == -ENOSPC || error == -EIO;
    if (item->accepted)
        check_result(item, result);
}

static inline void call_execute_all(struct actor *actor)
{
    uint32_t count = take_between(&actor->in, 1, 3);
    weir_result result[3] = { WEIR_RESULT, WEIR_RESULT, WEIR_RESULT };
    struct item *item = !actor->bounded ? new_items(actor, count) : NULL;
    weir_work work[3];
    int rc;

    if (!item)
        return;
    for (uint32_t i = 0; i < count; i++) {
        work[i] = (weir_work){ group_name[item[i].key], item[i].id, fuzz_body, &item[i] };
        item[i].ending = true; /* if one cannot be waited for, all are cancelled */
    }
    rc = weir_execute_all(result, world.ex, work, count);
    say(actor, "execute_all %d to %d: %d", item->number, item[count - 1].number, rc);
    CHECK(rc == 0 || (rc == WEIR_ECANCELED && weir_cancelled()) || rc == WEIR_EDEADLK ||
          (rc == WEIR_ECLOSED && world.closing) || world.faults);
    CHECK(rc != WEIR_EDEADLK || actor->place != ON_THREAD);
    for (uint32_t i = 0; i < count; i++)
        if (rc == 0 || rc == WEIR_ECANCELED || rc == WEIR_EDEADLK)
            take_batch_result(&item[i], &result[i]);
}

#endif
