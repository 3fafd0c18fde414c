/* Waiting for tasks: for one, for all, for any.
 * SPDX-License-Identifier: MIT */
#include "base/options.h"
#include "base/os.h"
#include "executor/executor.h"
#include "executor/settle.h"
#include "executor/state.h"
#include "executor/tell.h"

#include <stdio.h>
#include <weir/error.h>

/* ---- among the watchers of a task -------------------------------------------------------------- */

/* Joins the watchers; false if it is too late. */
static bool join(struct weir_task *task, struct wr_watcher *watcher)
{
    bool joined;

    wr_group_lock(task->group);
    joined = wr_watcher_join(watcher, task);
    wr_unlock(&task->group->lock);
    return joined;
}

/* Leaves the watchers: afterwards no thread knows this one. Once they have been told, none does; until then they
 * may be told at any time, under the lock. */
static void leave(struct weir_task *task, struct wr_watcher *watcher)
{
    struct wr_watcher *first, **at;

    if (wr_load(&task->watchers, acquire) == WR_TOLD) /* pairs with wr_task_close_watchers */
        return;
    wr_group_lock(task->group);
    first = wr_load(&task->watchers, relaxed);
    if (first == watcher) {
        wr_store(&task->watchers, watcher->next, relaxed);
    } else if (first != WR_TOLD) {
        for (at = &first->next; *at != watcher; at = &(*at)->next)
            ;
        *at = watcher->next;
    }
    wr_unlock(&task->group->lock);
}

/* ---- for any one of several --------------------------------------------------------------------- */

/* The first that has settled; `count`: none. */
static size_t first_done(weir_task *const *task, size_t count)
{
    size_t i = 0;

    while (i < count && !weir_task_done(task[i]))
        i++;
    return i;
}

/* Until one of the tasks is told of. `nested` NULL: whatever happens to the caller. */
static int wait_until_told(weir_task *const *task, struct wr_watcher *watcher, size_t count,
                           struct wr_nested_wait *nested, weir_time deadline)
{
    struct wr_parker storage, *self = wr_parker_self(&storage);
    size_t joined = 0;
    int rc = 0;

    for (; joined < count; joined++) {
        watcher[joined] = (struct wr_watcher){ .waiter = self };
        if (!join(task[joined], &watcher[joined]))
            break; /* this one has settled */
    }
    while (joined == count && first_done(task, count) == count && !rc) {
        if (nested && wr_load(&nested->refused, acquire))
            rc = WEIR_EDEADLK;
        else if (nested && weir_cancelled())
            rc = WEIR_ECANCELED;
        else
            rc = wr_park(self, deadline);
    }
    while (joined-- > 0)
        leave(task[joined], &watcher[joined]);
    return first_done(task, count) < count ? 0 : rc;
}

/* Waits for any one of the tasks. `outlook` has an entry for each. */
static int wait_for_any(weir_task *const *task, struct wr_watcher *watcher,
                        struct wr_outlook *outlook, size_t count, weir_time deadline,
                        weir_message *why)
{
    struct wr_nested_wait nested;
    int rc;

    if (first_done(task, count) < count)
        return 0;
    wr_nested_wait_init(&nested, task, count, outlook);
    rc = wr_nested_wait_enter(&nested, deadline, why);
    if (rc)
        return first_done(task, count) < count ? 0 : rc; /* it may have settled meanwhile */
    rc = wait_until_told(task, watcher, count, &nested, deadline);
    wr_nested_wait_leave(&nested);
    return rc;
}

/* Whether the caller is a part of what it is about to wait for: a body, or a callback that the end of the whole waits for. */
static bool is_inside(struct weir_task *task)
{
    struct wr_whole *whole = wr_task_whole(task);
    struct weir_task *caller = whole ? weir_task_self() : NULL;
    struct weir_task *told = whole ? wr_telling_task() : NULL;

    if (told && (told == task || whole->inside(whole, told)))
        return true;
    while (caller && !whole->inside(whole, caller))
        caller = wr_task_outer(caller);
    return caller != NULL;
}

static int wait_for(weir_task *task, weir_time deadline, weir_message *why)
{
    struct wr_watcher watcher;

    if (!weir_task_done(task) && is_inside(task)) {
        if (why)
            snprintf(why->text, sizeof(why->text), "a node of a flow waits for its own run");
        return WEIR_EDEADLK;
    }

    return wait_for_any(&task, &watcher, NULL, 1, deadline, why);
}

/* ---- the calls ---------------------------------------------------------------------------------- */

int weir_task_wait_or_say(weir_message *why, weir_result *out, weir_task *task, weir_time deadline)
{
    weir_result result;
    int rc;

    if (why)
        why->text[0] = '\0';
    if (!task)
        return WEIR_EINVAL;
    rc = wait_for(task, deadline, why);
    if (why && rc != WEIR_EDEADLK)
        why->text[0] = '\0'; /* a circle was found, but the wait has ended otherwise before */
    if (rc)
        return rc;
    if (out) {
        wr_task_result(&result, task);
        rc = wr_options_store(out, &result, sizeof(result));
        if (rc)
            return rc;
    }
    return wr_task_word(task) & WR_ABORTED ? WEIR_EREJECTED : 0;
}

int weir_task_wait(weir_result *out, weir_task *task, weir_time deadline)
{
    return weir_task_wait_or_say(NULL, out, task, deadline);
}

void wr_task_wait_told(struct weir_task *task)
{
    struct wr_watcher watcher;

    wait_until_told(&task, &watcher, 1, NULL, WEIR_FOREVER);
}

int weir_task_wait_all(weir_task *const *task, size_t count, weir_time deadline)
{
    int rc = 0;

    if (count && !task)
        return WEIR_EINVAL;
    for (size_t i = 0; i < count && !rc; i++)
        if (task[i])
            rc = wait_for(task[i], deadline, NULL);
    return rc;
}

/* Without the NULLs. */
static size_t copy_tasks(weir_task **copy, weir_task *const *task, size_t count)
{
    size_t n = 0;

    for (size_t i = 0; i < count; i++)
        if (task[i])
            copy[n++] = task[i];
    return n;
}

int weir_task_wait_any(size_t *index, weir_task *const *task, size_t count, weir_time deadline)
{
    struct wr_outlook *outlook;
    struct wr_watcher *watcher;
    weir_task **copy;
    size_t tasks, i = 0;
    int rc;

    if (!task || !count || count > SIZE_MAX / sizeof(*outlook) / 2)
        return WEIR_EINVAL;
    outlook = wr_os_alloc(count * (sizeof(*outlook) + sizeof(*watcher) + sizeof(weir_task *)));
    if (!outlook)
        return WEIR_ENOMEM;
    watcher = (struct wr_watcher *)(void *)&outlook[count];
    copy = (weir_task **)(void *)&watcher[count];
    tasks = copy_tasks(copy, task, count);
    rc = tasks ? wait_for_any(copy, watcher, outlook, tasks, deadline, NULL) : WEIR_EINVAL;
    while (!rc && !(task[i] && weir_task_done(task[i])))
        i++;
    if (!rc && index)
        *index = i;
    wr_os_free(outlook);
    return rc;
}
