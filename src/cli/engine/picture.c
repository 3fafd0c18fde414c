/* One picture of a run: looks at all groups twice, in one hold of their lock, so that its figures fit together.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/picture.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

enum { WHY_SIZE = 320, STATE_SIZE = 64 };

struct picture {
    struct engine *engine;
    struct film *film;
    const struct picture_wish *wish;
    struct view view;
    weir_time now;
    size_t running, active; /* groups with commands that run; with tasks under way     */
    size_t running_rows, active_rows, idle_rows; /* rows left for these, and for others   */
    weir_time first_start; /* of any group                                            */
    double parts;          /* of tasks that run                                       */
    int64_t at_least_ns;   /* what the slowest group takes by its own limits          */
    bool input_over;
    uint64_t skipped; /* done by an earlier run: they count, but took no time    */
    struct view_group group[PICTURE_ROWS_MAX];
    char state[PICTURE_ROWS_MAX][STATE_SIZE];
    char *key[PICTURE_ROWS_MAX];
    const char *why[PICTURE_WHY_MAX];
    char why_text[PICTURE_WHY_MAX][WHY_SIZE];
};

/* ---- all groups ----------------------------------------------------------------------------------- */

static uint64_t tasks_left(const struct tally *tally)
{
    return tally->in[TASK_WAITS] + tally->in[TASK_RUNS] + tally->in[TASK_RETRIES];
}

static bool is_active(const struct tally *tally)
{
    return tasks_left(tally) > 0;
}

/* At the end, what a whole run's average was says more than what happened lately. */
static double average(const struct picture *p, uint64_t ended)
{
    return p->view.elapsed_ns > 0 ? (double)ended * 1e9 / (double)p->view.elapsed_ns : 0;
}

static void read_pace(struct picture *p, struct tally *tally)
{
    weir_time since = tally->first_start > p->film->seen_at ? tally->first_start : p->film->seen_at;

    if (tally->first_start) /* or it would count the time in which it could not end any */
        pace_read(&tally->pace, tally->in[TASK_ENDED], p->now - since);
}

static struct work work_of(const struct picture *p, const struct tally *tally)
{
    uint64_t running = tally->in[TASK_RUNS];

    return (struct work){ .left = tasks_left(tally),
                          .running = running,
                          .running_ns = (int64_t)running * p->now - tally->started_sum_ns,
                          .ended = tally->attempts,
                          .busy_ns = tally->busy_ns,
                          .limit = tally->limit,
                          .per_start_ns = tally->per_start_ns };
}

/* First look: totals, rates, and how many groups are active. */
static void count(struct tally *tally, void *arg)
{
    struct picture *p = arg;
    struct view_group *total = &p->view.total;
    uint64_t ended = tally->in[TASK_ENDED];
    struct work work = work_of(p, tally);
    int64_t least = forecast_at_least(&work);

    read_pace(p, tally);
    p->running += tally->in[TASK_RUNS] > 0;
    p->active += is_active(tally);
    if (least > p->at_least_ns)
        p->at_least_ns = least;
    p->parts += forecast_parts(&work);
    if (tally->first_start && (!p->first_start || tally->first_start < p->first_start))
        p->first_start = tally->first_start;
    total->done += ended;
    total->failed += tally->failed;
    total->not_run += tally->in[TASK_NOT_RUN];
    total->running += tally->in[TASK_RUNS];
    total->waiting += tally->in[TASK_WAITS] + tally->in[TASK_RETRIES];
}

static void expect(struct picture *p)
{
    struct engine *engine = p->engine;
    uint64_t read = atomic_load(&engine->totals.read), bytes = atomic_load(&engine->input_bytes);

    if (p->input_over) {
        p->view.expected = read;
    } else if (engine->source->size > 0 && bytes > 0) {
        p->view.expected = (uint64_t)((double)read * (double)engine->source->size / (double)bytes);
        p->view.expected_is_estimate = true;
    }
}

/* Groups that are forgotten, and records that were not valid, count in what has ended, but it is not known when their
 * first task began: the run's beginning is taken for that. */
static void estimate(struct picture *p, const struct tally_sums *others)
{
    struct view *view = &p->view;
    uint64_t done = view->total.done, over = done + view->total.not_run;
    int64_t eta;

    view->eta_ns = -1;
    if (!view->expected || over > view->expected || p->wish->last)
        return;
    if (others->ended || !p->first_start)
        p->first_start = p->film->began;
    eta = forecast_by_rate(view->expected - over, p->parts, done - p->skipped,
                           p->now - p->first_start);
    if (eta >= 0)
        view->eta_ns = forecast_seconds(eta > p->at_least_ns ? eta : p->at_least_ns);
}

/* ---- groups that have a row ------------------------------------------------------------------------ */

/* What is special about a group, if anything. */
static int special_state(const struct picture *p, const struct tally *tally, char *text)
{
    char duration[16];

    if (tally->cools_until > p->now) {
        quantity_show_duration(duration, tally->cools_until - p->now);
        return snprintf(text, STATE_SIZE, "cooling down %s", duration);
    }
    if (tally->in[TASK_RETRIES])
        return snprintf(text, STATE_SIZE, "%llu to retry",
                        (unsigned long long)tally->in[TASK_RETRIES]);
    if (tally->per_start_ns && tally->in[TASK_WAITS])
        return snprintf(text, STATE_SIZE, "paced");
    return 0;
}

/* How long the group takes for what is known of it, if it goes on as it did since its first start; but not longer than
 * the run, since it gets more of -j when others have ended. -1: no telling. */
static int64_t group_eta(const struct picture *p, const struct tally *tally)
{
    struct work work = work_of(p, tally);
    int64_t eta, least = forecast_at_least(&work);

    if (!is_active(tally) || p->wish->last)
        return -1;
    eta = forecast_by_rate(work.left, forecast_parts(&work), tally->in[TASK_ENDED],
                           p->now - tally->first_start);
    if (eta < 0)
        return -1;
    eta = forecast_seconds(eta > least ? eta : least);
    return p->view.eta_ns >= 0 && eta > p->view.eta_ns ? p->view.eta_ns : eta;
}

static void describe_group(struct picture *p, const struct tally *tally, struct view_group *group,
                           char *text)
{
    int64_t eta = group_eta(p, tally);
    int n = special_state(p, tally, text);
    char duration[16];

    group->is_special = n > 0;
    if (eta >= 0) {
        quantity_show_duration(duration, eta);
        n += snprintf(text + n, (size_t)(STATE_SIZE - n), "%seta %s", n ? ", " : "", duration);
    }
    group->state = n ? text : NULL;
}

/* Rows go to groups with commands that run, then to those with tasks that wait, then to others; all in the order in
 * which they appeared. */
static void share_rows(struct picture *p)
{
    size_t left = p->wish->rows;

    p->running_rows = p->running < left ? p->running : left;
    left -= p->running_rows;
    p->active_rows = p->active - p->running < left ? p->active - p->running : left;
    p->idle_rows = left - p->active_rows;
}

/* Whether there is a row for the group, which is taken then. */
static bool take_row(struct picture *p, const struct tally *tally)
{
    size_t *rows = tally->in[TASK_RUNS] ? &p->running_rows
                   : is_active(tally)   ? &p->active_rows
                                        : &p->idle_rows;

    if (*rows == 0)
        return false;
    --*rows;
    return true;
}

/* Second look: the groups that are shown. */
static void take(struct tally *tally, void *arg)
{
    struct picture *p = arg;
    size_t i = p->view.count;

    if (i == p->wish->rows || !take_row(p, tally)) {
        p->view.others += is_active(tally);
        return;
    }
    p->key[i] = strdup(tally->key); /* the tally may be gone when the picture is drawn */
    p->group[i] = (struct view_group){
        .key = p->key[i] ? p->key[i] : "",
        .done = tally->in[TASK_ENDED],
        .failed = tally->failed,
        .running = tally->in[TASK_RUNS],
        .waiting = tally->in[TASK_WAITS] + tally->in[TASK_RETRIES],
        .not_run = tally->in[TASK_NOT_RUN],
        .per_second = p->wish->last ? average(p, tally->in[TASK_ENDED]) : pace_get(&tally->pace),
        .limit = tally->limit,
    };
    describe_group(p, tally, &p->group[i], p->state[i]);
    p->view.count++;
}

/* More groups than rows: groups that run go first, since reasons and other lines may take more rows yet. */
static void put_running_first(struct picture *p)
{
    struct view_group sorted[PICTURE_ROWS_MAX] = { 0 };
    size_t count = 0;

    for (int running = 1; running >= 0; running--)
        for (size_t i = 0; i < p->view.count; i++)
            if ((p->group[i].running > 0) == running)
                sorted[count++] = p->group[i];
    memcpy(p->group, sorted, count * sizeof(*sorted));
}

/* ---- why ------------------------------------------------------------------------------------------ */

/* Here the executor's limit is -j. */
static void say_why(char *text, size_t size, const weir_why *why)
{
    if (why->reason == WEIR_REASON_GLOBAL_INFLIGHT)
        snprintf(text, size, "all places of -j are in use (%lld of %lld)", (long long)why->held,
                 (long long)why->limit);
    else
        weir_why_text(text, size, why);
}

/* The first task that waits in a group can say why. */
static void ask_why(struct tally *tally, void *arg)
{
    struct picture *p = arg;
    size_t i = p->view.why_count;
    weir_why why = { .size = sizeof(why) };
    struct task *task;
    char held_back[120];
    int n;

    if (wr_list_empty(&tally->tasks))
        return;
    if (i == PICTURE_WHY_MAX) {
        p->view.why_others++;
        return;
    }
    task = WR_CONTAINER(tally->tasks.next, struct task, link);
    if (weir_task_why(&why, task->handle) < 0)
        return;
    n = snprintf(p->why_text[i], WHY_SIZE,
                 "%.60s: %llu wait; task %llu: ", tally->key[0] ? tally->key : "(none)",
                 (unsigned long long)tally->in[TASK_WAITS], (unsigned long long)task->seq);
    if (gate_why(&p->engine->gate, held_back, sizeof(held_back)))
        snprintf(p->why_text[i] + n, (size_t)(WHY_SIZE - n), "held_back (%s)", held_back);
    else
        say_why(p->why_text[i] + n, (size_t)(WHY_SIZE - n), &why);
    p->why[i] = p->why_text[i];
    p->view.why_count++;
}

/* ---- the whole ------------------------------------------------------------------------------------- */

/* Holding the tallies. */
static void gather(struct picture *p)
{
    struct tallies *tallies = p->engine->tallies;
    struct tally_sums others = tallies_others(tallies);
    struct view_group *total = &p->view.total;

    p->skipped = others.skipped;
    *total = (struct view_group){ .done = others.ended,
                                  .failed = others.failed,
                                  .not_run = others.not_run };
    tallies_each(tallies, count, p);
    total->per_second = pace_read(&p->film->pace, total->done, p->now - p->film->seen_at);
    if (p->wish->last)
        total->per_second = average(p, total->done);
    total->done += p->skipped;
    expect(p);
    estimate(p, &others);
    share_rows(p);
    tallies_each(tallies, take, p);
    if (p->view.others)
        put_running_first(p);
    if (p->wish->why) {
        p->view.why = p->why;
        tallies_each(tallies, ask_why, p);
    }
}

struct picture *picture_new(struct engine *engine, struct film *film,
                            const struct picture_wish *wish, weir_time now, const char *phase)
{
    struct picture *p = calloc(1, sizeof(*p));

    if (!p)
        return NULL;
    p->engine = engine;
    p->film = film;
    p->wish = wish;
    p->now = now;
    p->view.grouped = engine->opt->grouped;
    p->view.groups = p->group;
    p->view.phase = phase;
    p->view.elapsed_ns = now - film->began;
    p->input_over = window_input_is_over(engine); /* before the lock: locks never nest */
    tallies_hold(engine->tallies);
    gather(p);
    tallies_let_go(engine->tallies);
    film->seen_at = now;
    return p;
}

const struct view *picture_view(const struct picture *picture)
{
    return &picture->view;
}

void picture_free(struct picture *picture)
{
    for (size_t i = 0; i < picture->view.count; i++)
        free(picture->key[i]);
    free(picture);
}
