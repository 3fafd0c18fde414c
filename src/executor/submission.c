/* Submissions: reading options, making records; see submission.h.
 * SPDX-License-Identifier: MIT */
#include "executor/submission.h"
#include "base/options.h"
#include "base/os.h"
#include "executor/executor.h"
#include "executor/record.h"
#include "executor/tell.h"
#include "executor/watch.h"

#include <string.h>
#include <weir/error.h>

static bool is_span(int64_t ms)
{
    return ms >= 0 && (ms <= WEIR_SPAN_MAX_MS || ms == WEIR_NO_LIMIT);
}

static bool needs_side(const weir_task_options *o)
{
    return o->id || o->cost > 1 || o->drop || o->drop_arg || o->on_done ||
           (o->priority && o->priority != WEIR_NORMAL);
}

int wr_submission_init(struct wr_submission *sub, weir_task_options *options,
                       struct weir_executor *ex, weir_fn *fn, void *arg,
                       const weir_task_options *opt, bool wants_handle, struct wr_whole *whole)
{
    static const weir_task_options none = { .size = sizeof(none) };
    bool has_locals = *wr_context_slot() != NULL;
    bool watched = wr_load(&ex->policy.watched, relaxed);
    size_t id_size, watch_size;
    char *rest;
    int rc;

    *sub = (struct wr_submission){
        .fn = fn, .arg = arg, .options = &none, .whole = whole, .wants_handle = wants_handle
    };
    if (!fn && !whole)
        return WEIR_EINVAL;
    if (!opt && !has_locals && !watched && !whole)
        return 0;
    rc = wr_options_load(options, sizeof(*options), opt);
    if (rc)
        return rc;
    sub->options = options;
    if (sub->options->priority > WEIR_IDLE || sub->options->cost > WEIR_LIMIT_MAX ||
        !is_span(sub->options->deadlines.wait_ms) || !is_span(sub->options->deadlines.run_ms) ||
        !is_span(sub->options->deadlines.total_ms))
        return WEIR_EINVAL;
    if (wr_has_deadlines(&sub->options->deadlines) && !watched) {
        watched = true;
        rc = wr_clock_start(&ex->clock);
        if (rc)
            return rc;
    }
    if (!needs_side(sub->options) && !has_locals && !watched && !whole)
        return 0;
    id_size = sub->options->id ? strnlen(sub->options->id, WEIR_ID_MAX + 1) + 1 : 0;
    if (id_size > WEIR_ID_MAX + 1)
        return WEIR_EINVAL;
    sub->watched = watched;
    watch_size = watched ? sizeof(struct wr_watch) : 0;
    if (options->on_done) {
        sub->on_done = wr_watcher_new(options->on_done, options->on_done_arg);
        if (!sub->on_done)
            return WEIR_ENOMEM;
    }
    sub->side = wr_os_alloc(sizeof(*sub->side) + watch_size + id_size);
    if (!sub->side)
        return WEIR_ENOMEM;
    sub->side->arg = arg;
    sub->side->cost = sub->options->cost ? sub->options->cost : 1;
    sub->side->level = sub->options->priority ? sub->options->priority - 1 : WR_LEVEL_NORMAL;
    sub->side->drop = sub->options->drop;
    sub->side->drop_arg = sub->options->drop_arg;
    sub->side->arg_holds = 1;
    sub->side->whole = whole;
    sub->side->locals = whole ? NULL : wr_locals_capture();
    rest = (char *)(sub->side + 1);
    if (watched)
        sub->side->watch = (struct wr_watch *)(void *)rest;
    if (id_size)
        sub->side->id = memcpy(rest + watch_size, sub->options->id, id_size);
    return 0;
}

void wr_submission_discard(struct wr_submission *sub)
{
    wr_os_free(sub->on_done);
    sub->on_done = NULL;
    if (!sub->side)
        return;
    wr_locals_release(sub->side->locals);
    wr_os_free(sub->side);
    sub->side = NULL;
}

int wr_submission_record(struct weir_task **out, struct weir_group *group,
                         struct wr_submission *sub, weir_time now)
{
    struct weir_task *task = wr_task_alloc(group, sub->wants_handle ? 2 : 1);

    if (!task)
        return WEIR_ENOMEM;
    task->fn = sub->fn;
    task->queued_at = now;
    if (sub->side) {
        wr_add(&task->word, WR_SIDE, relaxed);
        task->u.side = sub->side;
        if (sub->side->watch)
            wr_watch_init(sub->side->watch, task, &sub->options->deadlines);
        sub->side = NULL; /* the record's now */
    } else {
        task->u.arg = sub->arg;
    }
    *out = task;
    return 0;
}

void wr_submission_hand_on_done(struct weir_task *task, struct wr_submission *sub)
{
    if (!sub->on_done)
        return;
    wr_watcher_join(sub->on_done, task);
    sub->on_done = NULL;
}
