/* A job from its submission to its end: attempts, retries, cooling down.
 * SPDX-License-Identifier: MIT */
#include "cli/map.h"
#include "cli/printer.h"
#include "cli/results.h"
#include "cli/tally.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COOLED_MAX = 100 }; /* times one job may send its group to cool down */

/* How long a job may wait for a process or descriptors, and how long between two looks. */
static const int64_t SHORTAGE_NS = INT64_C(60000000000);
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

/* --delay: starts are at least so far apart. Nobody else could start meanwhile, so it may be waited for here,
 * with permits held. */
static void wait_for_delay(struct map *map)
{
    weir_time now = weir_now(), turn = atomic_load(&map->next_start), next;

    if (!map->opt->delay_ns)
        return;
    do {
        if (__builtin_add_overflow(turn > now ? turn : now, map->opt->delay_ns, &next))
            next = WEIR_FOREVER;
    } while (!atomic_compare_exchange_weak(&map->next_start, &turn, next));
    weir_fd_wait(map->stop_fd, WEIR_READ, next - map->opt->delay_ns); /* or until we stop */
}

/* How long to wait before attempt number n + 1. */
static int64_t backoff(const struct map_options *opt, int64_t n)
{
    int64_t ns = opt->backoff_ns;

    while (--n > 0 && ns < opt->backoff_max_ns)
        ns *= 2;
    return ns < opt->backoff_max_ns ? ns : opt->backoff_max_ns;
}

/* A failed attempt: is there another? */
static bool try_again(struct job *job, int64_t cool_ns)
{
    const struct map_options *opt = job->map->opt;

    if (atomic_load(&job->map->phase) != MAP_RUNNING || !outcome_is_failure(job->outcome))
        return false;
    if (cool_ns >= 0 && job->cooled < COOLED_MAX) {
        job->cooled++;
        return true;
    }
    if (job->outcome == OUTCOME_CANNOT_RUN || job->attempts - job->cooled > opt->retries)
        return false;
    job->retry_at = weir_in_ns(backoff(opt, job->attempts - job->cooled));
    return true;
}

static void forget_output(struct job *job)
{
    for (int i = 0; i < 2; i++)
        spooled_fini(&job->stream[i], job->map->spool);
}

/* An attempt that failed amid a line ends it, or the next one's first line would be joined to it. */
static void end_lines(struct job *job)
{
    for (int i = 0; i < 2; i++)
        if (!spooled_is_empty(&job->stream[i]) || job->amid_line[i])
            printer_lines(job->map->printer, job, i, "\n", 1);
}

/* The latest call counts, so each asks for as long as any. */
static void cool_group(struct job *job, int64_t cool_ns)
{
    weir_task_cool_down(weir_task_self(), tally_cools(job, weir_in_ns(cool_ns)));
}

/* No process, descriptor or memory to be had just now: others that end give some back. */
static bool is_passing(const struct job *job)
{
    int error = job->exec_error;

    return job->outcome == OUTCOME_CANNOT_RUN &&
           (error == EAGAIN || error == EMFILE || error == ENFILE || error == ENOMEM);
}

/* Why a command cannot be started. */
static void say_error(char *text, size_t size, int error)
{
    struct rlimit limit;

    if (error == EMFILE && getrlimit(RLIMIT_NOFILE, &limit) == 0)
        snprintf(text, size,
                 "no file descriptor left (limit %llu): raise it with `ulimit -n`, or lower -j",
                 (unsigned long long)limit.rlim_cur);
    else
        snprintf(text, size, "%s", strerror(error));
}

static void tell_shortage(const struct job *job)
{
    char why[160];

    say_error(why, sizeof(why), job->exec_error);
    map_say(job->map, "task %llu has to wait, and fewer run at once than -j allows: %s",
            (unsigned long long)job->seq, why);
}

/* One attempt. A shortage is waited out with permits held, so that nobody else runs into it instead. */
static void attempt(struct job *job, int64_t *cool_ns)
{
    struct map *map = job->map;
    weir_time until = weir_in_ns(SHORTAGE_NS);
    int64_t pause_ns = SHORTAGE_PAUSE_NS;

    attempt_run(job, cool_ns);
    while (is_passing(job) && weir_now() < until && atomic_load(&map->phase) == MAP_RUNNING) {
        if (!atomic_exchange(&map->short_told, true))
            tell_shortage(job);
        weir_fd_wait(map->stop_fd, WEIR_READ, weir_in_ns(pause_ns));
        pause_ns = pause_ns < SHORTAGE_PAUSE_MAX_NS ? 2 * pause_ns : pause_ns;
        attempt_run(job, cool_ns);
    }
}

static void count_end(struct job *job);

static int body(void **value, void *arg)
{
    struct job *job = arg;
    int64_t cool_ns;

    (void)value;
    tally_moves(job, JOB_RUNS);
    wait_for_delay(job->map);
    job->again = false;
    if (atomic_load(&job->map->phase) != MAP_RUNNING || atomic_load(&job->map->asked))
        return 0; /* with the outcome it had */
    job->attempts++;
    job->retry_at = 0;
    attempt(job, &cool_ns);
    if (cool_ns >= 0)
        cool_group(job, cool_ns);
    job->again = try_again(job, cool_ns);
    if (job->again && job->map->opt->output == OUTPUT_GROUPED)
        forget_output(job); /* what the last attempt writes is what counts */
    else if (job->map->opt->output == OUTPUT_LINES)
        end_lines(job);
    if (!job->again) /* with permits held: what failures ask for is known before the next one starts */
        count_end(job);
    return job->outcome == OUTCOME_DONE ? 0 : -1;
}

/* ---- around it ----------------------------------------------------------------------------------- */

/* Its permits are given back by now. */
static void settled(weir_task *task, const weir_result *result, void *arg)
{
    struct job *job = arg;

    (void)task;
    if (result->outcome == WEIR_REJECTED || result->outcome == WEIR_CANCELLED) {
        job_end(job);
    } else if (!job->again) {
        job_end(job);
    } else if (!job->retry_at) {
        job_submit(job); /* its group cools down, and it waits there */
    } else {
        tally_moves(job, JOB_RETRIES);
        retries_add(job->map->retries, job);
        front_wake(job->map);
    }
}

void job_submit(struct job *job)
{
    const weir_task_options *opt = WEIR_TASK(.on_done = settled, .on_done_arg = job);
    int rc;

    if (!job->queued_at)
        job->queued_at = weir_now();
    tally_submits(job);
    rc = weir_submit_key(NULL, job->map->executor, job->tally->key, body, job, opt);
    if (!rc)
        return;
    if (rc != WEIR_ECLOSED) {
        atomic_store(&job->map->wrong, true);
        map_say(job->map, "task %llu: %s", (unsigned long long)job->seq, weir_strerror(rc));
    }
    job_end(job);
}

/* ---- its end ------------------------------------------------------------------------------------- */

static void describe_outcome(const struct job *job, char *text, size_t size)
{
    switch (job->outcome) {
    case OUTCOME_TIMED_OUT:
        snprintf(text, size, " exceeded --timeout");
        break;
    case OUTCOME_CANNOT_RUN:
        snprintf(text, size, " could not be started");
        break;
    case OUTCOME_BAD_INPUT:
        snprintf(text, size, " was not run: its record is not valid");
        break;
    case OUTCOME_OUTPUT_LOST:
        snprintf(text, size, " ran, but its output could not be written (%s)",
                 strerror(job->output_error));
        break;
    default:
        if (WIFSIGNALED(job->status))
            snprintf(text, size, " was ended by signal %d", WTERMSIG(job->status));
        else
            snprintf(text, size, " exited with %d", WEXITSTATUS(job->status));
        break;
    }
}

/* The first failure, for the last words of the run. */
static void describe(const struct job *job, char *text, size_t size)
{
    int n = snprintf(text, size, "task %llu", (unsigned long long)job->seq);

    if (job->tally && job->tally->key[0] && (size_t)n < size)
        n += snprintf(text + n, size - (size_t)n, " of %.60s", job->tally->key);
    if ((size_t)n < size)
        describe_outcome(job, text + n, size - (size_t)n);
}

/* What could not be run; or the directory, if that is why. */
static const char *obstacle(const struct job *job)
{
    struct stat st;

    if (!job->directory || (stat(job->directory, &st) == 0 && S_ISDIR(st.st_mode) &&
                            access(job->directory, X_OK) == 0))
        return job->argv[0];
    return job->directory;
}

static void count_failure(struct job *job)
{
    struct map *map = job->map;
    bool told = false;
    char why[160];

    atomic_fetch_add(&map->failed, 1);
    if (atomic_compare_exchange_strong(&map->first_told, &told, true))
        describe(job, map->first_failure, sizeof(map->first_failure));
    if (job->outcome == OUTCOME_CANNOT_RUN) {
        say_error(why, sizeof(why), job->exec_error);
        map_say(map, "task %llu: %.200s: %s", (unsigned long long)job->seq, obstacle(job), why);
    }
}

/* Asks the front to halt, if failures are as many as that. */
static void judge(struct map *map)
{
    int asked = halt_judge(&map->opt->halt, atomic_load(&map->failed), atomic_load(&map->ended));
    int before = atomic_load(&map->asked);

    while (asked > before && !atomic_compare_exchange_weak(&map->asked, &before, asked))
        ;
    if (asked > before)
        front_wake(map);
}

/* Once per job. */
static void count_end(struct job *job)
{
    struct map *map = job->map;

    if (job->counted)
        return;
    job->counted = true;
    if (job->outcome == OUTCOME_NOT_RUN) {
        atomic_fetch_add(&map->not_run, 1);
        return;
    }
    atomic_fetch_add(&map->ended, 1);
    if (outcome_is_failure(job->outcome))
        count_failure(job);
    else if (job->outcome == OUTCOME_HALTED)
        atomic_fetch_add(&map->halted, 1);
    judge(map);
}

void job_end(struct job *job)
{
    struct map *map = job->map;

    if (!job->ended_at)
        job->ended_at = weir_now();
    count_end(job);
    if (map->results)
        results_add(map->results, job);
    if (job->tally)
        tally_moves(job, job->outcome == OUTCOME_NOT_RUN ? JOB_NOT_RUN : JOB_ENDED);
    if (map->opt->keep_order || !spooled_is_empty(&job->stream[0]) ||
        !spooled_is_empty(&job->stream[1])) {
        printer_job(map->printer, job);
        return;
    }
    job_free(job);
}

void job_free(struct job *job)
{
    struct map *map = job->map;
    size_t weight = job->weight;

    forget_output(job);
    if (job->tally)
        tally_leaves(job);
    record_fini(&job->input);
    free(job->argv);
    free(job->directory);
    free(job->tag);
    free(job);
    window_leave(map, weight);
}
