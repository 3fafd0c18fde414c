/* A task from its submission to its end: attempts, retries, cooling down.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/journal.h"
#include "cli/engine/printer.h"
#include "cli/engine/results.h"
#include "cli/engine/run.h"
#include "cli/engine/tally.h"
#include "cli/screen/say.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GATE_MS = 100 };
enum { COOLED_MAX = 100 }; /* times one task may send its group to cool down */

/* How long a task may wait for a process or descriptors, and how long between two looks. */
static const int64_t SHORTAGE_NS = INT64_C(60000000000), SHORTAGE_ALONE_NS = 2000000000;
static const int64_t SHORTAGE_PAUSE_NS = 10000000, SHORTAGE_PAUSE_MAX_NS = 500000000;

const char *outcome_name(enum outcome outcome)
{
    static const char *const name[] = {
#define OUTCOME_NAME(name, label) [OUTCOME_##name] = label,
        OUTCOMES(OUTCOME_NAME)
#undef OUTCOME_NAME
    };

    return name[outcome];
}

/* ---- the body ------------------------------------------------------------------------------------ */

/* --delay: starts are at least so far apart. No other task could start meanwhile, so this one may wait here, with
 * permits held. A task takes its turn when the turn has come: a turn that was given ahead could be taken late, and
 * the next one would follow too soon. */
static void wait_for_delay(struct engine *engine)
{
    weir_time now = weir_now(), turn = atomic_load(&engine->next_start), next;

    while (engine->opt->delay_ns && atomic_load(&engine->phase) == PHASE_RUNNING) {
        if (__builtin_add_overflow(now, engine->opt->delay_ns, &next))
            next = WEIR_FOREVER;
        if (now < turn)
            weir_fd_wait(engine->stop_fd, WEIR_READ, turn); /* or until we stop */
        else if (atomic_compare_exchange_weak(&engine->next_start, &turn, next))
            return;
        now = weir_now();
        turn = atomic_load(&engine->next_start);
    }
}

/* --load and the like: no task may start, so this one waits here, with permits held. */
static void wait_for_gate(struct engine *engine)
{
    while (gate_is_closed(&engine->gate) && atomic_load(&engine->phase) == PHASE_RUNNING) {
        engine_wake(engine); /* the loop says why nothing starts */
        weir_fd_wait(engine->stop_fd, WEIR_READ, weir_in_ms(GATE_MS));
    }
}

/* How long to wait before attempt number n + 1. */
static int64_t backoff(const struct engine_options *opt, int64_t n)
{
    int64_t ns = opt->backoff_ns;

    while (--n > 0 && ns < opt->backoff_max_ns)
        ns *= 2;
    return ns < opt->backoff_max_ns ? ns : opt->backoff_max_ns;
}

/* A failed attempt: is there another? */
static bool try_again(struct task *task, int64_t cool_ns)
{
    const struct engine_options *opt = task->engine->opt;

    if (atomic_load(&task->engine->phase) != PHASE_RUNNING || !outcome_is_failure(task->outcome))
        return false;
    if (cool_ns >= 0 && task->cooled < COOLED_MAX) {
        task->cooled++;
        return true;
    }
    if (task->outcome == OUTCOME_CANNOT_RUN || task->attempts - task->cooled > opt->retries)
        return false;
    task->retry_at = weir_in_ns(backoff(opt, task->attempts - task->cooled));
    return true;
}

static void forget_output(struct task *task)
{
    for (int i = 0; i < 2; i++) {
        spooled_fini(&task->stream[i], task->engine->spool);
        task->earlier[i] = 0;
    }
}

/* An attempt that failed amid a line ends it, or the next one's first line would be joined to it. */
static void end_lines(struct task *task)
{
    for (int i = 0; i < 2; i++)
        if (!spooled_is_empty(&task->stream[i]) || task->amid_line[i])
            printer_lines(task->engine->printer, task, i, "\n", 1);
}

/* Of several calls of weir_task_cool_down the latest counts, so each asks for as long as any. */
static void cool_group(struct task *task, int64_t cool_ns)
{
    weir_task_cool_down(weir_task_self(), tally_cools(task, weir_in_ns(cool_ns)));
}

/* No process, descriptor or memory to be had just now: others that end give some back. */
static bool is_passing(const struct task *task)
{
    int error = task->exec_error;

    return task->outcome == OUTCOME_CANNOT_RUN &&
           (error == EAGAIN || error == EMFILE || error == ENFILE || error == ENOMEM);
}

static void tell_shortage(const struct task *task)
{
    char why[160];

    say_why(why, sizeof(why), task->exec_error);
    engine_say(task->engine, "task %llu has to wait, and fewer run at once than -j allows: %s",
               (unsigned long long)task->seq, why);
}

/* Whether a shortage may pass: other commands run, or so little time has gone by that others may be about to. */
static bool may_pass(struct task *task, weir_time since)
{
    weir_time now = weir_now();

    return now < since + SHORTAGE_ALONE_NS ||
           (now < since + SHORTAGE_NS && slots_running(task->engine->slots) > 0);
}

/* One attempt. A shortage is waited out with permits held, so that no other task runs into it instead. */
static void attempt(struct task *task, int64_t *cool_ns)
{
    struct engine *engine = task->engine;
    weir_time since = weir_now();
    int64_t pause_ns = SHORTAGE_PAUSE_NS;
    enum outcome before = task->outcome;

    attempt_run(task, cool_ns);
    while (is_passing(task) && may_pass(task, since) &&
           atomic_load(&engine->phase) == PHASE_RUNNING) {
        if (!atomic_exchange(&engine->short_told, true))
            tell_shortage(task);
        weir_fd_wait(engine->stop_fd, WEIR_READ, weir_in_ns(pause_ns));
        pause_ns = pause_ns < SHORTAGE_PAUSE_MAX_NS ? 2 * pause_ns : pause_ns;
        attempt_run(task, cool_ns);
    }
    if (is_passing(task) && atomic_load(&engine->phase) != PHASE_RUNNING) {
        task->outcome = before; /* we stopped before it could start: it has not failed */
        task->attempts--;
    }
}

static void count_end(struct task *task);
static void record_and_tell(struct task *task);

/* With permits held: so the next command of -j1 starts after this one was passed on, outputs come in the order in
 * which commands ended, and no more are counted as running than -j allows. */
static void pass_on(struct task *task)
{
    count_end(task);
    task->handed_over = true;
    atomic_fetch_add(&task->holders, 1);
    record_and_tell(task);
}

/* What becomes of the output of an attempt. */
static void settle_output(struct task *task)
{
    const struct engine_options *opt = task->engine->opt;

    if (opt->output == OUTPUT_LINES)
        end_lines(task);
    else if (task->again && opt->output == OUTPUT_GROUPED) {
        if (task->engine->results || task->engine->journal)
            results_note_attempt(task);
        if (!opt->show_retries)
            forget_output(task); /* what the last attempt writes is what counts */
    } else {
        for (int i = 0; i < 2; i++)
            spooled_settle(&task->stream[i], task->engine->spool);
    }
}

static int body(void **value, void *arg)
{
    struct task *task = arg;
    int64_t cool_ns;
    int error;

    (void)value;
    wait_for_delay(task->engine);
    wait_for_gate(task->engine);
    task->again = false;
    if (atomic_load(&task->engine->phase) != PHASE_RUNNING || atomic_load(&task->engine->asked))
        return 0; /* with the outcome it had */
    tally_moves(task, TASK_RUNS);
    task->attempts++;
    task->retry_at = 0;
    attempt(task, &cool_ns);
    if (cool_ns >= 0)
        cool_group(task, cool_ns);
    task->again = try_again(task, cool_ns);
    settle_output(task);
    error = task->outcome == OUTCOME_DONE ? 0 : -1;
    if (task->again)
        tally_moves(task, TASK_RETRIES);
    else
        pass_on(task);
    return error;
}

/* ---- around it ----------------------------------------------------------------------------------- */

/* The executor's task is over, and its permits are given back by now. */
static void settled(weir_task *handle, const weir_result *result, void *arg)
{
    struct task *task = arg;

    (void)handle;
    if (task->handed_over) {
        task_release(task);
    } else if (result->outcome == WEIR_REJECTED || result->outcome == WEIR_CANCELLED ||
               !task->again) {
        task_end(task);
    } else if (!task->retry_at) {
        task_submit(task); /* its group cools down, and it waits there */
    } else {
        retries_add(task->engine->retries, task);
        engine_wake(task->engine);
    }
}

void task_submit(struct task *task)
{
    const weir_task_options *opt = WEIR_TASK(.on_done = settled, .on_done_arg = task);
    int rc;

    if (!task->queued_at)
        task->queued_at = weir_now();
    tally_submits(task);
    rc = weir_submit_key(NULL, task->engine->executor, task->tally->key, body, task, opt);
    if (!rc)
        return;
    if (rc != WEIR_ECLOSED) {
        atomic_store(&task->engine->wrong, true);
        engine_say(task->engine, "task %llu: %s", (unsigned long long)task->seq, weir_strerror(rc));
    }
    task_end(task);
}

/* ---- its end ------------------------------------------------------------------------------------- */

static void describe_outcome(const struct task *task, char *text, size_t size)
{
    switch (task->outcome) {
    case OUTCOME_TIMED_OUT:
        snprintf(text, size, " exceeded --timeout");
        break;
    case OUTCOME_CANNOT_RUN:
        snprintf(text, size, " could not be started");
        break;
    case OUTCOME_BAD_INPUT:
        snprintf(text, size, " was not run: its record is not valid");
        break;
    case OUTCOME_NOT_RECORDED:
        snprintf(text, size, " ran, but the journal could not be written");
        break;
    case OUTCOME_OUTPUT_LOST:
        snprintf(text, size,
                 task->no_files ? " was not run: its --files could not be created (%s)"
                                : " ran, but its output could not be written (%s)",
                 strerror(task->output_error));
        break;
    default:
        if (WIFSIGNALED(task->status))
            snprintf(text, size, " was ended by signal %d", WTERMSIG(task->status));
        else
            snprintf(text, size, " exited with %d", WEXITSTATUS(task->status));
        break;
    }
}

/* The first failure, for the last words of the run. */
static void describe(const struct task *task, char *text, size_t size)
{
    int n = snprintf(text, size, "task %llu", (unsigned long long)task->seq);

    if (task->tally && task->tally->key[0] && (size_t)n < size)
        n += snprintf(text + n, size - (size_t)n, " of %.60s", task->tally->key);
    if ((size_t)n < size)
        describe_outcome(task, text + n, size - (size_t)n);
}

/* The command that could not be run; or the directory, if that is why. */
static const char *obstacle(const struct task *task)
{
    struct stat st;

    if (!task->plan.directory || (stat(task->plan.directory, &st) == 0 && S_ISDIR(st.st_mode) &&
                                  access(task->plan.directory, X_OK) == 0))
        return task->plan.argv[0];
    return task->plan.directory;
}

static void count_failure(struct task *task)
{
    struct engine *engine = task->engine;
    bool told = false;
    char why[160];

    atomic_fetch_add(&engine->totals.failed, 1);
    if (atomic_compare_exchange_strong(&engine->totals.first_told, &told, true))
        describe(task, engine->totals.first_failure, sizeof(engine->totals.first_failure));
    if (task->outcome == OUTCOME_CANNOT_RUN) {
        say_why(why, sizeof(why), task->exec_error);
        engine_say(engine, "task %llu: %.200s: %s", (unsigned long long)task->seq, obstacle(task),
                   why);
    }
}

/* Asks the loop to halt, if failures or successes are as many as --halt says. */
static void judge(struct engine *engine)
{
    const struct totals *totals = &engine->totals;

    engine_ask(engine, halt_judge(&engine->opt->halt, atomic_load(&totals->failed),
                                  atomic_load(&totals->succeeded), atomic_load(&totals->ended)));
}

/* Once per task. */
static void count_end(struct task *task)
{
    struct engine *engine = task->engine;

    if (task->counted)
        return;
    task->counted = true;
    if (task->outcome == OUTCOME_NOT_RUN) {
        atomic_fetch_add(&engine->totals.not_run, 1);
        return;
    }
    atomic_fetch_add(&engine->totals.ended, 1);
    if (outcome_is_failure(task->outcome))
        count_failure(task);
    else if (task->outcome == OUTCOME_HALTED)
        atomic_fetch_add(&engine->totals.halted, 1);
    else if (task->outcome == OUTCOME_DONE)
        atomic_fetch_add(&engine->totals.succeeded, 1);
    judge(engine);
}

/* Makes known what became of the task: nothing of it is told before. */
static void tell(struct task *task)
{
    struct engine *engine = task->engine;

    if (task->outcome == OUTCOME_NOT_RECORDED) { /* it will run again, so nothing of it is told */
        forget_output(task);
        count_failure(task);
    }
    if (engine->results)
        results_add(engine->results, task);
    if (task->tally)
        tally_moves(task, task->outcome == OUTCOME_NOT_RUN ? TASK_NOT_RUN : TASK_ENDED);
    else
        tally_bad(engine->tallies);
    if (engine->opt->keep_order || !spooled_is_empty(&task->stream[0]) ||
        !spooled_is_empty(&task->stream[1]))
        printer_task(engine->printer, task);
    else
        task_release(task);
}

/* Whether the outcome is final: what was not run, or ended by us, is left for the next run. */
static bool is_final(const struct task *task)
{
    return task->journal_id && task->outcome != OUTCOME_NOT_RUN && task->outcome != OUTCOME_HALTED;
}

static void record_and_tell(struct task *task)
{
    if (!task->engine->journal || !is_final(task)) {
        tell(task);
        return;
    }
    tally_moves(task, TASK_RECORDS);
    journal_add(task->engine->journal, task, tell);
}

void task_end(struct task *task)
{
    if (!task->ended_at)
        task->ended_at = weir_now();
    count_end(task);
    record_and_tell(task);
}

void task_skip(struct task *task)
{
    struct engine *engine = task->engine;

    atomic_fetch_add(&engine->totals.skipped, 1);
    tally_skips(engine->tallies);
    if (engine->opt->keep_order)
        printer_task(engine->printer, task);
    else
        task_release(task);
}

void task_release(struct task *task)
{
    struct engine *engine = task->engine;
    size_t weight = task->plan.weight;

    if (atomic_fetch_sub(&task->holders, 1) > 1)
        return;
    forget_output(task);
    if (task->tally)
        tally_leaves(task);
    plan_fini(&task->plan);
    free(task->failed_attempts);
    free(task);
    window_leave(engine, weight);
}
