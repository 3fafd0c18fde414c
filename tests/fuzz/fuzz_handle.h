/* The fuzzer's calls on handles of tasks: wait, cancel, settle and what else one can do.
 * SPDX-License-Identifier: MIT */
#ifndef WR_FUZZ_HANDLE_H
#define WR_FUZZ_HANDLE_H

#include "fuzz/fuzz_submit.h"

static inline void call_wait(struct actor *actor)
{
    weir_time deadline = take_deadline(actor);
    struct item *item = take_item(&actor->in);
    weir_result result = WEIR_RESULT;
    weir_message why;
    int rc;

    if (!item)
        return;
    say(actor, "waits for %d%s", item->number, deadline == WEIR_FOREVER ? " for ever" : "");
    if (actor->place == IN_BODY)
        actor->item->awaits = item;
    rc = weir_task_wait_or_say(&why, &result, item->task, deadline);
    if (actor->place == IN_BODY)
        actor->item->awaits = NULL;
    say(actor, "waited for %d: %s %s", item->number, rc ? weir_errname(rc) : "0", why.text);
    check_wait(actor, item, rc, &result, deadline);
    CHECK_ITEM(item, (rc == WEIR_EDEADLK) == (why.text[0] != '\0'));
    world.changes += rc != 0;
    if (rc == WEIR_EDEADLK && !world.timed)
        check_never_ends(item);
    world.changes += rc != 0;
    item_release(item);
}

/* Up to three, NULLs among them. */
static inline size_t take_several(struct input *in, struct item **item, weir_task **task)
{
    size_t count = take_between(in, 1, 3);

    for (size_t i = 0; i < count; i++) {
        item[i] = take_item(in);
        task[i] = item[i] ? item[i]->task : NULL;
    }
    return count;
}

static inline void check_wait_several(const struct actor *actor, int rc, weir_time deadline)
{
    CHECK(rc == 0 || rc == WEIR_EINVAL || (rc == WEIR_ETIMEDOUT && weir_now() >= deadline) ||
          (rc == WEIR_ECANCELED && weir_cancelled()) ||
          (rc == WEIR_EDEADLK && actor->place != ON_THREAD) || (rc == WEIR_ENOMEM && world.faults));
    world.changes += rc != 0;
}

static inline void call_wait_all(struct actor *actor)
{
    weir_time deadline = take_deadline(actor);
    struct item *item[3];
    weir_task *task[3];
    size_t count = take_several(&actor->in, item, task);
    int rc = weir_task_wait_all(task, count, deadline);

    say(actor, "wait_all of %zu: %d", count, rc);
    check_wait_several(actor, rc, deadline);
    for (size_t i = 0; i < count; i++) {
        CHECK(rc || !task[i] || weir_task_done(task[i]));
        if (item[i])
            item_release(item[i]);
    }
}

static inline void call_wait_any(struct actor *actor)
{
    weir_time deadline = take_deadline(actor);
    struct item *item[3];
    weir_task *task[3];
    size_t count = take_several(&actor->in, item, task), which = 99;
    int rc = weir_task_wait_any(&which, task, count, deadline);

    say(actor, "wait_any of %zu: %d", count, rc);
    check_wait_several(actor, rc, deadline);
    CHECK(rc || (which < count && weir_task_done(task[which])));
    for (size_t i = 0; i < count; i++)
        if (item[i])
            item_release(item[i]);
}

static inline void call_cancel(struct actor *actor)
{
    struct item *item = take_item(&actor->in);
    weir_result result = WEIR_RESULT;
    bool won;

    if (!item)
        return;
    item->ending = true;
    won = weir_task_cancel(item->task);
    say(actor, "cancel %d: %d", item->number, won);
    if (won) {
        CHECK_ITEM(item, weir_task_wait(&result, item->task, WEIR_NOW_OR_NEVER) == 0);
        CHECK_ITEM(item, result.outcome == WEIR_CANCELLED);
        check_result(item, &result);
    }
    item_release(item);
}

/* `task` is the submitter's reference, or the body's own. */
static inline void settle(struct item *item, weir_task *task, int error)
{
    int rc;

    item->ending = true;
    item->hasty |= !item->began;
    item->made += item->drops;
    rc = weir_task_settle(task, error, item->drops ? item : NULL);
    CHECK_ITEM(item, rc == 0 || rc == WEIR_EALREADY);
    CHECK_ITEM(item, rc || weir_task_done(task));
}

static inline void call_settle(struct actor *actor)
{
    struct item *item = take_item(&actor->in);

    if (!item)
        return;
    say(actor, "settle %d", item->number);
    settle(item, item->task, take_chance(&actor->in, 3) ? -EIO : 0);
    item_release(item);
}

static inline void call_on_done(struct actor *actor)
{
    struct item *item = take_item(&actor->in);
    int rc;

    if (!item)
        return;
    item->asked++;
    rc = weir_task_on_done(item->task, later_on_done, item);
    say(actor, "on_done %d: %d", item->number, rc);
    CHECK_ITEM(item, rc == 0 || (rc == WEIR_ENOMEM && world.faults));
    item->asked -= rc != 0;
    item_release(item);
}

static inline void call_take(struct actor *actor)
{
    struct item *item = take_item(&actor->in);

    if (!item)
        return;
    if (weir_task_take(item->task)) {
        item->taken++;
        CHECK_ITEM(item, item->outcome <= WEIR_DONE && item->taken == 1);
    }
    item_release(item);
}

static inline void call_unref(struct actor *actor)
{
    struct item *item = take_item(&actor->in);

    if (!item)
        return;
    say(actor, "unref %d", item->number);
    item->unwanted = true;
    item_release(item);
}

static inline void call_fd(struct actor *actor)
{
    struct item *item = take_item(&actor->in);
    int fd, rc;

    if (!item)
        return;
    fd = weir_task_fd(item->task);
    CHECK_ITEM(item, fd >= 0 || world.faults);
    if (fd >= 0) {
        rc = weir_fd_wait(fd, WEIR_READ, take_soon(&actor->in));
        say(actor, "fd of %d: %d", item->number, rc);
        CHECK_ITEM(item, rc < 0 || weir_task_done(item->task));
        CHECK_ITEM(item, rc > 0 || rc == WEIR_ETIMEDOUT || world.faults ||
                             (rc == WEIR_ECANCELED && weir_cancelled()));
        weir_sim_close(fd);
    }
    item_release(item);
}

static inline void call_why(struct actor *actor)
{
    struct item *item = take_item(&actor->in);
    weir_why why = { .size = sizeof(why) };
    char text[200];

    if (!item)
        return;
    CHECK_ITEM(item, weir_task_why(&why, item->task) == 0);
    CHECK_ITEM(item, weir_why_text(text, sizeof(text), &why) > 0);
    CHECK_ITEM(item, strcmp(weir_task_key(item->task), group_name[item->key]) == 0);
    say(actor, "why %d: %s", item->number, text);
    item_release(item);
}

static inline void call_task_cool_down(struct actor *actor)
{
    struct item *item = take_item(&actor->in);

    if (!item)
        return;
    weir_task_cool_down(item->task, take_soon(&actor->in));
    item_release(item);
}

static inline void call_local(struct actor *actor)
{
    static int value[64];

    if (actor->place == IN_CALLBACK)
        return; /* it would be set for the thread that calls back */
    world.locals_made++;
    if (weir_local_set(&fuzz_local, &value[take_below(&actor->in, 64)]))
        world.locals_made--;
}

#endif
