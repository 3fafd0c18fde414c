/* Counts per group, for the display and for what waits and why.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/tally.h"

#include "base/assert.h"
#include "base/lock.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

enum { TALLIES_MAX = 10000 }; /* beyond this, groups without tasks are forgotten */

struct tallies {
    struct engine *engine;
    struct wr_lock lock;
    void *tree;          /* by key, of tsearch(3) */
    struct wr_list list; /* in the order of appearance */
    struct wr_list idle; /* those that may be forgotten: without tasks */
    size_t count;
    struct tally_sums others;
};

/* The task that this thread is about to submit. */
static _Thread_local struct task *submitting;

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct tally *)a)->key, ((const struct tally *)b)->key);
}

int tallies_new(struct tallies **out, struct engine *engine)
{
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return WEIR_ENOMEM;
    (*out)->engine = engine;
    wr_list_init(&(*out)->list);
    wr_list_init(&(*out)->idle);
    return 0;
}

static void forget(struct tallies *tallies, struct tally *tally)
{
    tallies->others.ended += tally->in[TASK_ENDED];
    tallies->others.failed += tally->failed;
    tallies->others.not_run += tally->in[TASK_NOT_RUN];
    tdelete(tally, &tallies->tree, by_key);
    wr_list_remove(&tally->link);
    wr_list_remove(&tally->idle);
    tallies->count--;
    free(tally->key);
    free(tally);
}

void tallies_free(struct tallies *tallies)
{
    if (!tallies)
        return;
    while (!wr_list_empty(&tallies->list))
        forget(tallies, WR_CONTAINER(tallies->list.next, struct tally, link));
    free(tallies);
}

/* Makes room by forgetting the group that has had no tasks for longest. */
static void forget_one(struct tallies *tallies)
{
    if (!wr_list_empty(&tallies->idle))
        forget(tallies, WR_CONTAINER(tallies->idle.next, struct tally, idle));
}

static struct tally *make(struct tallies *tallies, const char *key)
{
    const struct engine_options *opt = tallies->engine->opt;
    struct tally *tally = calloc(1, sizeof(*tally));
    const struct rule *limit, *rate;

    if (tally)
        tally->key = strdup(key);
    if (!tally || !tally->key || !tsearch(tally, &tallies->tree, by_key)) {
        if (tally)
            free(tally->key);
        free(tally);
        return NULL;
    }
    limit = rules_find(&opt->rules, RULE_LIMIT, key);
    tally->limit = limit ? limit->count : opt->per_group;
    rate = rules_find(&opt->rules, RULE_RATE, key);
    tally->per_start_ns = rate ? rate->rate.period_ns / rate->rate.count : 0;
    wr_list_init(&tally->tasks);
    wr_list_init(&tally->idle);
    wr_list_append(&tallies->list, &tally->link);
    tallies->count++;
    return tally;
}

struct tally *tally_get(struct tallies *tallies, const char *key)
{
    struct tally probe = { .key = (char *)key }, **found, *tally;

    wr_lock(&tallies->lock);
    found = tfind(&probe, &tallies->tree, by_key);
    tally = found ? *found : NULL;
    if (!tally) {
        if (tallies->count >= TALLIES_MAX)
            forget_one(tallies);
        tally = make(tallies, key);
    }
    if (tally && !tally->references++)
        wr_list_remove(&tally->idle);
    wr_unlock(&tallies->lock);
    return tally;
}

/* ---- what a task does ----------------------------------------------------------------------------- */

void tally_submits(struct task *task)
{
    submitting = task;
}

/* Under the lock. Answers the handle of the task, which is not asked why it waits any more. */
static weir_task *move(struct task *task, enum task_state to)
{
    struct tally *tally = task->tally;
    weir_task *handle = task->handle;

    if (task->state == TASK_WAITS)
        wr_list_remove(&task->link);
    if (task->state != TASK_NEW)
        tally->in[task->state]--;
    task->state = to;
    tally->in[to]++;
    task->handle = NULL;
    return handle;
}

/* Under the lock: what the group's commands took so far. */
static void keep_time(struct tally *tally, struct task *task, enum task_state to, weir_time now)
{
    if (task->state == TASK_RUNS) {
        tally->attempts++;
        tally->busy_ns += now - task->runs_since;
        tally->started_sum_ns -= task->runs_since;
    }
    if (to == TASK_RUNS) {
        task->runs_since = now;
        tally->started_sum_ns += now;
        if (!tally->first_start)
            tally->first_start = now;
    }
}

void tally_moves(struct task *task, enum task_state to)
{
    struct tallies *tallies = task->engine->tallies;
    weir_time now = weir_now();
    weir_task *handle;

    wr_lock(&tallies->lock);
    keep_time(task->tally, task, to, now);
    handle = move(task, to);
    if (to == TASK_ENDED && outcome_is_failure(task->outcome))
        task->tally->failed++;
    wr_unlock(&tallies->lock);
    weir_task_unref(handle);
}

void tally_submitted(weir_task *handle, void *arg)
{
    struct tallies *tallies = arg;
    struct task *task = submitting;

    wr_lock(&tallies->lock);
    move(task, TASK_WAITS);
    task->handle = weir_task_ref(handle);
    wr_list_append(&task->tally->tasks, &task->link);
    wr_unlock(&tallies->lock);
}

weir_time tally_cools(struct task *task, weir_time until)
{
    struct tallies *tallies = task->engine->tallies;

    wr_lock(&tallies->lock);
    if (until > task->tally->cools_until)
        task->tally->cools_until = until;
    until = task->tally->cools_until;
    wr_unlock(&tallies->lock);
    return until;
}

void tally_leaves(struct task *task)
{
    struct tallies *tallies = task->engine->tallies;

    wr_lock(&tallies->lock);
    if (!--task->tally->references)
        wr_list_append(&tallies->idle, &task->tally->idle);
    wr_unlock(&tallies->lock);
}

void tallies_hold(struct tallies *tallies)
{
    wr_lock(&tallies->lock);
}

void tallies_let_go(struct tallies *tallies)
{
    wr_unlock(&tallies->lock);
}

void tallies_each(struct tallies *tallies, void (*see)(struct tally *tally, void *arg), void *arg)
{
    wr_list_each(link, &tallies->list)
        see(WR_CONTAINER(link, struct tally, link), arg);
}

void tally_bad(struct tallies *tallies)
{
    wr_lock(&tallies->lock);
    tallies->others.ended++;
    tallies->others.failed++;
    wr_unlock(&tallies->lock);
}

struct tally_sums tallies_others(const struct tallies *tallies)
{
    return tallies->others;
}

void tally_skips(struct tallies *tallies)
{
    wr_lock(&tallies->lock);
    tallies->others.skipped++;
    wr_unlock(&tallies->lock);
}
