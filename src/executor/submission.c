/* Submissions: reading options, making records; see submission.h.
 * SPDX-License-Identifier: MIT */
#include "executor/submission.h"
#include "base/options.h"
#include "base/os.h"
#include "executor/tell.h"

#include <string.h>
#include <weir/error.h>

static bool are_valid(const weir_task_options *o)
{
    return o->priority <= WEIR_IDLE && o->cost <= WEIR_LIMIT_MAX &&
           wr_is_span(o->deadlines.wait_ms) && wr_is_span(o->deadlines.run_ms) &&
           wr_is_span(o->deadlines.total_ms);
}

static bool need_side(const weir_task_options *o)
{
    return o->id || o->cost > 1 || o->drop || o->drop_arg || o->on_done ||
           (o->priority && o->priority != WEIR_NORMAL);
}

static int make_side(struct wr_submission *sub, const weir_task_options *o)
{
    size_t id_size = o->id ? strnlen(o->id, WEIR_ID_MAX + 1) + 1 : 0;
    size_t watch_size = sub->watched ? sizeof(struct wr_watch) : 0;
    struct wr_side *side;

    if (id_size > WEIR_ID_MAX + 1)
        return WEIR_EINVAL;
    if (o->on_done) {
        sub->on_done = wr_watcher_new(o->on_done, o->on_done_arg);
        if (!sub->on_done)
            return WEIR_ENOMEM;
    }
    side = sub->side = wr_os_alloc(sizeof(*side) + watch_size + id_size);
    if (!side)
        return WEIR_ENOMEM;
    side->arg = sub->arg;
    side->cost = o->cost ? o->cost : 1;
    side->level = o->priority ? o->priority - 1 : WR_LEVEL_NORMAL;
    side->drop = o->drop;
    side->drop_arg = o->drop_arg;
    side->arg_holds = 1;
    side->whole = sub->ask->whole;
    side->locals = sub->ask->whole ? NULL : wr_locals_capture();
    if (sub->watched)
        side->watch = (struct wr_watch *)(void *)(side + 1);
    if (id_size)
        side->id = memcpy((char *)(side + 1) + watch_size, o->id, id_size);
    return 0;
}

int wr_submission_prepare(struct wr_submission *sub, weir_task_options *options)
{
    const struct wr_request *ask = sub->ask;
    bool needs_side = ask->whole || *wr_context_slot(); /* whatever its options */
    int rc;

    sub->watched = wr_load(&ask->ex->policy.watched, relaxed);
    if (!ask->fn && !ask->whole)
        return WEIR_EINVAL;
    if (!ask->opt && !needs_side && !sub->watched)
        return 0;
    rc = wr_options_load(options, sizeof(*options), ask->opt);
    if (!rc && !are_valid(options))
        rc = WEIR_EINVAL;
    if (!rc && !sub->watched && wr_has_deadlines(&options->deadlines)) {
        sub->watched = true;
        rc = wr_clock_start(&ask->ex->clock);
    }
    sub->options = options;
    if (!rc && (needs_side || sub->watched || need_side(options)))
        rc = make_side(sub, options);
    return rc;
}

void wr_submission_discard(struct wr_submission *sub)
{
    wr_os_free(sub->on_done);
    if (sub->side)
        wr_locals_release(sub->side->locals);
    wr_os_free(sub->side);
    sub->on_done = NULL;
    sub->side = NULL;
    sub->options = NULL;
}

int wr_submission_record(struct wr_submission *sub, struct weir_group *group)
{
    struct weir_task *task = wr_task_alloc(group, sub->out ? 2 : 1);

    if (!task)
        return WEIR_ENOMEM;
    task->fn = sub->ask->fn;
    task->queued_at = sub->now;
    if (sub->side) {
        wr_add(&task->word, WR_SIDE, relaxed);
        task->u.side = sub->side;
        if (sub->side->watch)
            wr_watch_init(sub->side->watch, task, &sub->options->deadlines);
        sub->side = NULL; /* the record's now */
    } else {
        task->u.arg = sub->arg;
    }
    sub->task = task;
    return 0;
}

void wr_submission_hand_on_done(struct wr_submission *sub)
{
    if (!sub->on_done)
        return;
    wr_watcher_add(sub->on_done, sub->task);
    sub->on_done = NULL;
}
