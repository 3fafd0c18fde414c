/* The reader's thread: from plans to tasks, as many as may be under way.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/journal.h"
#include "cli/engine/printer.h"
#include "cli/engine/run.h"
#include "cli/engine/tally.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WINDOW_BYTES = 64 << 20 }; /* of records under way, whatever their number */

/* ---- the window ---------------------------------------------------------------------------------- */

static bool has_room(const struct engine *engine)
{
    return engine->window.under_way <
               (uint64_t)(engine->opt->max_wait + atomic_load(&engine->jobs)) &&
           (engine->window.bytes < WINDOW_BYTES || engine->window.under_way == 0);
}

/* Waits until one more task may be under way; false: no more are wanted. */
static bool window_wait(struct engine *engine)
{
    bool wanted;

    pthread_mutex_lock(&engine->window.lock);
    while (!has_room(engine) && atomic_load(&engine->phase) == PHASE_RUNNING)
        pthread_cond_wait(&engine->window.room, &engine->window.lock);
    wanted = atomic_load(&engine->phase) == PHASE_RUNNING;
    pthread_mutex_unlock(&engine->window.lock);
    return wanted;
}

static void window_enter(struct engine *engine, size_t weight)
{
    pthread_mutex_lock(&engine->window.lock);
    engine->window.under_way++;
    engine->window.bytes += weight;
    pthread_mutex_unlock(&engine->window.lock);
}

void window_leave(struct engine *engine, size_t weight)
{
    bool had_room, closed;

    pthread_mutex_lock(&engine->window.lock);
    had_room = has_room(engine);
    engine->window.under_way--;
    engine->window.bytes -= weight;
    if (!had_room && has_room(engine))
        pthread_cond_signal(&engine->window.room);
    closed = engine->window.input_over && engine->window.under_way == 0;
    pthread_mutex_unlock(&engine->window.lock);
    if (closed)
        engine_wake(engine);
}

bool window_is_full(struct engine *engine)
{
    bool full;

    pthread_mutex_lock(&engine->window.lock);
    full = !has_room(engine);
    pthread_mutex_unlock(&engine->window.lock);
    return full;
}

bool window_is_full_of(struct engine *engine, uint64_t tasks)
{
    bool full;

    pthread_mutex_lock(&engine->window.lock);
    full = !has_room(engine) && engine->window.under_way == tasks;
    pthread_mutex_unlock(&engine->window.lock);
    return full;
}

bool window_input_is_over(struct engine *engine)
{
    bool over;

    pthread_mutex_lock(&engine->window.lock);
    over = engine->window.input_over;
    pthread_mutex_unlock(&engine->window.lock);
    return over;
}

bool window_is_closed(struct engine *engine)
{
    bool closed;

    pthread_mutex_lock(&engine->window.lock);
    closed = engine->window.input_over && engine->window.under_way == 0;
    pthread_mutex_unlock(&engine->window.lock);
    return closed;
}

void supply_stop(struct engine *engine)
{
    uint64_t one = 1;
    ssize_t n = write(engine->stop_fd, &one, sizeof(one));

    (void)n; /* an eventfd takes more of them than we ever write, even if it is never read */
    pthread_mutex_lock(&engine->window.lock);
    pthread_cond_signal(&engine->window.room);
    pthread_mutex_unlock(&engine->window.lock);
}

/* ---- tasks --------------------------------------------------------------------------------------- */

/* A task for a plan, which is used up; NULL without memory. */
static struct task *task_new(struct engine *engine, struct plan *plan)
{
    struct task *task = calloc(1, sizeof(*task));

    if (task && plan->argv &&
        !(task->tally = tally_get(engine->tallies, plan->key ? plan->key : ""))) {
        free(task);
        task = NULL;
    }
    if (!task)
        return NULL;
    task->engine = engine;
    task->seq = atomic_fetch_add(&engine->totals.read, 1) + 1;
    task->plan = *plan;
    task->outcome = plan->argv ? OUTCOME_NOT_RUN : OUTCOME_BAD_INPUT;
    task->status = -1;
    atomic_init(&task->holders, 1);
    *plan = (struct plan){ 0 };
    return task;
}

/* The source has no more; or says why it cannot go on. */
static bool end_of_input(struct engine *engine, int rc, const weir_message *message)
{
    if (rc < 0 && rc != WEIR_ECANCELED) {
        atomic_store(&engine->wrong, true);
        engine_say(engine, "%s", message->text[0] ? message->text : weir_strerror(rc));
    }
    atomic_store(&engine->totals.all_read, rc == 0);
    return false;
}

/* Whether the journal says that the task need not run; then that is the end of it. */
static bool was_done_before(struct task *task)
{
    enum journal_verdict verdict = JOURNAL_RUN;

    if (!task->engine->journal || journal_meet(&verdict, task) < 0 || verdict == JOURNAL_RUN)
        return false;
    if (verdict == JOURNAL_FAILED)
        atomic_fetch_add(&task->engine->totals.failed_before, 1);
    task->outcome = OUTCOME_SKIPPED;
    task_skip(task);
    return true;
}

/* Takes one plan and makes a task of it; false: that was the last. */
static bool take_one(struct engine *engine)
{
    const struct source *source = engine->source;
    weir_message message = { "" };
    struct plan plan = { 0 };
    struct task *task;
    int rc = source->next(&plan, source->arg, atomic_load(&engine->totals.read) + 1, &message);

    if (rc <= 0)
        return end_of_input(engine, rc, &message);
    if (!plan.argv)
        engine_say(engine, "%s", message.text);
    atomic_store(&engine->input_bytes, source->position(source->arg));
    task = task_new(engine, &plan);
    if (!task) {
        plan_fini(&plan);
        return end_of_input(engine, WEIR_ENOMEM, &message);
    }
    window_enter(engine, task->plan.weight);
    if (task->outcome == OUTCOME_BAD_INPUT)
        task_end(task);
    else if (!was_done_before(task))
        task_submit(task);
    return true;
}

/* Plans without a command leave the window at once, but what is said about them waits to be printed. */
static void wait_for_printer(struct engine *engine)
{
    struct pollfd polled[] = {
        { .fd = printer_room_fd(engine->printer), .events = POLLIN },
        { .fd = engine->stop_fd, .events = POLLIN },
    };

    while (printer_is_full(engine->printer) && !polled[1].revents)
        poll(polled, 2, -1);
}

static void *run(void *arg)
{
    struct engine *engine = arg;

    while (window_wait(engine) && take_one(engine))
        wait_for_printer(engine);
    if (engine->source->is_used_up(engine->source->arg)) /* we stopped before `next` could say so */
        atomic_store(&engine->totals.all_read, true);
    pthread_mutex_lock(&engine->window.lock);
    engine->window.input_over = true;
    pthread_mutex_unlock(&engine->window.lock);
    engine_wake(engine);
    return NULL;
}

int supply_start(pthread_t *thread, struct engine *engine)
{
    return -pthread_create(thread, NULL, run, engine);
}
