/* Waiting for tasks: for one, for any.
 * SPDX-License-Identifier: MIT */
#include "base/options.h"
#include "base/os.h"
#include "base/say.h"
#include "executor/executor.h"
#include "executor/settle.h"
#include "executor/state.h"
#include "executor/tell.h"

#include <weir/error.h>

/* Takes a watcher out of the task's: afterwards no thread knows it. Once the watchers have been told, none does; until then
 * they may be told at any time, under the lock. */
static void leave(struct weir_task *task, struct wr_watcher *watcher)
{
    struct wr_watcher *first, **at = &first;

    if (wr_load(&task->watchers, acquire) == WR_TOLD) /* pairs with wr_task_close_watchers */
        return;
    wr_group_lock(task->group);
    first = wr_load(&task->watchers, relaxed);
    if (first != WR_TOLD) {
        while (*at != watcher)
            at = &(*at)->next;
        *at = watcher->next;
        wr_store(&task->watchers, first, relaxed);
    }
    wr_unlock(&task->group->lock);
}

static bool any_done(weir_task *const *task, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (weir_task_done(task[i]))
            return true;
    return false;
}

/* Waits until one of the tasks is told of. `nested` NULL: even if the caller is asked to end. */
static int wait_until_told(weir_task *const *task, struct wr_watcher *watcher, size_t count,
                           const struct wr_nested_wait *nested, weir_time deadline)
{
    struct wr_parker storage, *self = wr_parker_self(&storage);
    size_t joined = 0;
    int rc = 0;

    for (; joined < count; joined++) {
        watcher[joined] = (struct wr_watcher){ .waiter = self };
        if (!wr_watcher_join(&watcher[joined], task[joined]))
            break;
    }
    while (joined == count && !any_done(task, count) && !rc) {
        if (nested && wr_load(&nested->wait.refused, acquire)) /* pairs with refuse */
            rc = WEIR_EDEADLK;
        else if (nested && weir_cancelled())
            rc = WEIR_ECANCELED;
        else
            rc = wr_park(self, deadline);
    }
    while (joined-- > 0)
        leave(task[joined], &watcher[joined]);
    return any_done(task, count) ? 0 : rc;
}

/* Waits for any one of the tasks. `outlook`, unless there is but one, has an entry for each. */
static int wait_for_any(weir_task *const *task, struct wr_watcher *watcher,
                        struct wr_outlook *outlook, size_t count, weir_time deadline,
                        weir_message *why)
{
    struct wr_nested_wait nested;
    int rc;

    if (any_done(task, count))
        return 0;
    nested = (struct wr_nested_wait){ .awaited = task, .count = count, .message = why };
    nested.wait.outlook = outlook;
    nested.bounded = deadline != WEIR_FOREVER;
    wr_nested_wait_look(&nested, WEIR_REASON_NONE); /* if refused, they may settle meanwhile */
    rc = wait_until_told(task, watcher, count, &nested, deadline);
    wr_nested_wait_leave(&nested);
    return rc;
}

/* Whether the caller is a part of the whole that it is about to wait for: a body, or a callback that the end of the whole waits
 * for. */
static bool is_inside(struct weir_task *task)
{
    struct wr_whole *whole = wr_task_whole(task);
    struct weir_task *part = whole ? wr_telling_task() : NULL;

    if (part && (part == task || whole->inside(whole, part)))
        return true;
    part = whole ? weir_task_self() : NULL;
    while (part && !whole->inside(whole, part))
        part = wr_task_outer(part);
    return part != NULL;
}

static int wait_for(weir_task *task, weir_time deadline, weir_message *why)
{
    struct wr_watcher watcher;

    if (weir_task_done(task) || !is_inside(task))
        return wait_for_any(&task, &watcher, NULL, 1, deadline, why);
    wr_say(why, "a node of a flow waits for its own run");
    return WEIR_EDEADLK;
}

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
    if (!rc && out) {
        wr_task_result(&result, task);
        rc = wr_options_store(out, &result, sizeof(result));
    }
    return !rc && wr_task_word(task) & WR_ABORTED ? WEIR_EREJECTED : rc;
}

int weir_task_wait(weir_result *out, weir_task *task, weir_time deadline)
{
    return weir_task_wait_or_say(NULL, out, task, deadline);
}

static bool has_returned(void *task_arg)
{
    struct weir_task *task = task_arg;
    bool returned;

    wr_group_lock(task->group);
    returned = !wr_phase_has_body(wr_task_phase(task));
    wr_unlock(&task->group->lock);
    return returned;
}

void wr_task_wait_over(struct weir_task *task, bool body)
{
    struct wr_watcher watcher;

    if (!weir_task_done(task))
        wait_until_told(&task, &watcher, 1, NULL, WEIR_FOREVER);
    if (body)
        wr_waitq_wait(&task->group->executor->returned, has_returned, task, WEIR_FOREVER, false);
}

int weir_task_wait_any(size_t *index, weir_task *const *task, size_t count, weir_time deadline)
{
    struct wr_outlook *outlook;
    struct wr_watcher *watcher;
    weir_task **copy;
    size_t tasks = 0, i = 0;
    int rc;

    if (!task || !count || count > SIZE_MAX / sizeof(*outlook) / 2)
        return WEIR_EINVAL;
    outlook = wr_os_alloc(count * (sizeof(*outlook) + sizeof(*watcher) + sizeof(weir_task *)));
    if (!outlook)
        return WEIR_ENOMEM;
    watcher = (struct wr_watcher *)(void *)&outlook[count];
    copy = (weir_task **)(void *)&watcher[count];
    for (size_t from = 0; from < count; from++)
        if (task[from])
            copy[tasks++] = task[from];
    rc = tasks ? wait_for_any(copy, watcher, outlook, tasks, deadline, NULL) : WEIR_EINVAL;
    while (!rc && !(task[i] && weir_task_done(task[i])))
        i++;
    if (!rc && index)
        *index = i;
    wr_os_free(outlook);
    return rc;
}
