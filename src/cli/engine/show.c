/* What is shown while we run: gathers counts into a picture, and says when to draw it.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/show.h"

#include "base/assert.h"
#include "cli/engine/printer.h"
#include "cli/engine/tally.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS_MAX = 200, WHY_MAX = 12, WHY_SIZE = 320, STATE_SIZE = 64 };

/* A picture in the making. */
struct picture {
    struct show *show;
    struct view view;
    size_t rows;            /* how many fit                                                */
    size_t running, active; /* groups with commands that run; with tasks under way     */
    size_t running_rows, active_rows, idle_rows; /* rows left for these, and for others   */
    double share; /* what a new reading counts in smoothed rates                */
    weir_time now;
    int64_t eta_ns;
    uint64_t skipped; /* done by an earlier run: they count, but took no time */
    struct view_group group[ROWS_MAX];
    char state[ROWS_MAX][STATE_SIZE];
    char *key[ROWS_MAX];
    const char *why[WHY_MAX];
    char why_text[WHY_MAX][WHY_SIZE];
};

int show_open(struct show *show, struct engine *engine)
{
    enum progress_mode mode = engine->opt->progress;
    bool always = mode == PROGRESS_ALWAYS;

    *show = (struct show){ .engine = engine, .began = weir_now() };
    show->smoothed_at = show->began;
    if (mode == PROGRESS_NEVER)
        return 0;
    /* Whoever types records into the terminal needs its echo and its lines. */
    show->live = term_is_live(2) && !engine->opt->typed_input;
    show->plain = !show->live && always;
    show->period_ns = (show->live ? 100 : 1000) * INT64_C(1000000);
    /* Nothing at all for what is over at once, but what is asked for comes. */
    show->next = show->began + (show->live ? show->period_ns / 2 : show->period_ns);
    return show->live ? term_open(&show->term, 2) : 0;
}

/* ---- the picture --------------------------------------------------------------------------------- */

static uint64_t tasks_left(const struct tally *tally)
{
    return tally->in[TASK_WAITS] + tally->in[TASK_RUNS] + tally->in[TASK_RETRIES];
}

static bool is_active(const struct tally *tally)
{
    return tasks_left(tally) > 0;
}

/* A new reading. The weight says how much of a full one all readings so far make, so that the first ones do not begin
 * from nothing. */
static double smooth(struct pace *pace, uint64_t ended, double seconds, double share)
{
    if (seconds > 0) {
        pace->rate += share * ((double)(ended - pace->before) / seconds - pace->rate);
        pace->weight += share * (1 - pace->weight);
        pace->before = ended;
    }
    return pace->weight > 0 ? pace->rate / pace->weight : 0;
}

/* At the end, what a whole run's average was says more than what happened lately. */
static double average(const struct picture *p, uint64_t ended)
{
    return p->view.elapsed_ns > 0 ? (double)ended * 1e9 / (double)p->view.elapsed_ns : 0;
}

/* How long the group takes for what is known of it, if it goes on as it did since its first start; 0: no telling. */
static int64_t group_eta(const struct picture *p, const struct tally *tally)
{
    uint64_t ended = tally->in[TASK_ENDED], left = tasks_left(tally);

    if (!ended || !left || p->show->closing)
        return 0;
    return (int64_t)((double)left / (double)ended * (double)(p->now - tally->first_start));
}

/* Whether the group's own limit or rate decides when it ends, and not its share of -j; and it has shown how fast. */
static bool is_bound(const struct tally *tally)
{
    enum { TELLING = 3 };

    return tally->in[TASK_ENDED] >= TELLING && tally->in[TASK_WAITS] &&
           (tally->paced || (tally->limit && (int64_t)tally->in[TASK_RUNS] >= tally->limit));
}

/* First look: totals, rates, and how many groups are active. */
static void count(struct tally *tally, void *arg)
{
    struct picture *p = arg;
    struct view_group *total = &p->view.total;
    uint64_t ended = tally->in[TASK_ENDED];
    double seconds = (double)(p->now - p->show->smoothed_at) / 1e9;

    smooth(&tally->pace, ended, seconds, p->share);
    p->running += tally->in[TASK_RUNS] > 0;
    p->active += is_active(tally);
    if (is_bound(tally) && group_eta(p, tally) > p->eta_ns) /* the slowest decides */
        p->eta_ns = group_eta(p, tally);
    total->done += ended;
    total->failed += tally->failed;
    total->not_run += tally->in[TASK_NOT_RUN];
    total->running += tally->in[TASK_RUNS];
    total->waiting += tally->in[TASK_WAITS] + tally->in[TASK_RETRIES];
}

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
    if (tally->paced && tally->in[TASK_WAITS])
        return snprintf(text, STATE_SIZE, "paced");
    return 0;
}

static void describe_group(struct picture *p, const struct tally *tally, struct view_group *group,
                           char *text)
{
    int64_t eta = group_eta(p, tally);
    int n = special_state(p, tally, text);
    char duration[16];

    group->is_special = n > 0;
    if (eta) {
        quantity_show_duration(duration, (eta / 1000000000 + 1) * 1000000000);
        n += snprintf(text + n, (size_t)(STATE_SIZE - n), "%seta %s", n ? ", " : "", duration);
    }
    group->state = n ? text : NULL;
}

/* Rows go to groups with commands that run, then to those with tasks that wait, then to others; all in the order in
 * which they appeared. */
static void share_rows(struct picture *p)
{
    size_t left = p->rows;

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

/* Second look: those that are shown. */
static void take(struct tally *tally, void *arg)
{
    struct picture *p = arg;
    size_t i = p->view.count;

    if (i == p->rows || !take_row(p, tally)) {
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
        .per_second = p->show->closing         ? average(p, tally->in[TASK_ENDED])
                      : tally->pace.weight > 0 ? tally->pace.rate / tally->pace.weight
                                               : 0,
        .limit = tally->limit,
    };
    describe_group(p, tally, &p->group[i], p->state[i]);
    p->view.count++;
}

/* More groups than rows: those that run go first, since reasons and other lines may take more rows yet. */
static void put_running_first(struct picture *p)
{
    struct view_group sorted[ROWS_MAX];
    size_t count = 0;

    for (int running = 1; running >= 0; running--)
        for (size_t i = 0; i < p->view.count; i++)
            if ((p->group[i].running > 0) == running)
                sorted[count++] = p->group[i];
    memcpy(p->group, sorted, count * sizeof(*sorted));
}

/* Here the executor's limit is -j. */
static void say_why(char *text, size_t size, const weir_why *why)
{
    if (why->reason == WEIR_REASON_GLOBAL_INFLIGHT)
        snprintf(text, size, "all jobs of -j are in use (%lld of %lld)", (long long)why->held,
                 (long long)why->limit);
    else
        weir_why_text(text, size, why);
}

/* The first that waits in a group can say why. */
static void ask_why(struct tally *tally, void *arg)
{
    struct picture *p = arg;
    size_t i = p->view.why_count;
    weir_why why = { .size = sizeof(why) };
    struct task *task;
    int n;

    char held_back[120];

    if (i == WHY_MAX || wr_list_empty(&tally->tasks))
        return;
    task = WR_CONTAINER(tally->tasks.next, struct task, link);
    if (weir_task_why(&why, task->handle) < 0)
        return;
    n = snprintf(p->why_text[i], WHY_SIZE,
                 "%.60s: %llu wait; task %llu: ", tally->key[0] ? tally->key : "(none)",
                 (unsigned long long)tally->in[TASK_WAITS], (unsigned long long)task->seq);
    if (gate_why(&p->show->engine->gate, held_back, sizeof(held_back)))
        snprintf(p->why_text[i] + n, (size_t)(WHY_SIZE - n), "held_back (%s)", held_back);
    else
        say_why(p->why_text[i] + n, (size_t)(WHY_SIZE - n), &why);
    p->why[i] = p->why_text[i];
    p->view.why_count++;
}

static void expect(struct picture *p)
{
    struct engine *engine = p->show->engine;
    uint64_t read = atomic_load(&engine->totals.read), bytes = atomic_load(&engine->input_bytes);
    bool over;

    pthread_mutex_lock(&engine->window.lock);
    over = engine->window.input_over;
    pthread_mutex_unlock(&engine->window.lock);
    if (over) {
        p->view.expected = read;
    } else if (engine->source->size > 0 && bytes > 0) {
        p->view.expected = (uint64_t)((double)read * (double)engine->source->size / (double)bytes);
        p->view.expected_is_estimate = true;
    }
}

static void estimate(struct picture *p)
{
    struct view *view = &p->view;
    uint64_t done = view->total.done;

    view->eta_ns = -1;
    if (!view->expected || done <= p->skipped || done > view->expected || p->show->closing)
        return;
    view->eta_ns = (int64_t)((double)(view->expected - done) / (double)(done - p->skipped) *
                             (double)view->elapsed_ns);
    if (!view->expected_is_estimate && p->eta_ns > view->eta_ns)
        view->eta_ns = p->eta_ns;
    view->eta_ns = (view->eta_ns / 1000000000 + 1) * 1000000000; /* whole seconds, and never none */
}

static void gather(struct picture *p, const char *phase)
{
    struct show *show = p->show;
    struct engine *engine = show->engine;
    double seconds = (double)(p->now - show->smoothed_at) / 1e9;
    struct tally_sums others = tallies_others(engine->tallies);
    struct view_group *total = &p->view.total;

    p->share = seconds / (seconds + 3); /* three seconds fade a reading to half */
    p->view.grouped = engine->opt->grouped;
    p->view.groups = p->group;
    p->view.phase = phase;
    p->view.elapsed_ns = p->now - show->began;
    p->skipped = others.skipped;
    *total = (struct view_group){ .done = others.ended,
                                  .failed = others.failed,
                                  .not_run = others.not_run };
    tallies_each(engine->tallies, count, p);
    total->per_second = smooth(&show->pace, total->done, seconds, p->share);
    if (show->closing)
        total->per_second = average(p, total->done);
    total->done += p->skipped;
    show->smoothed_at = p->now;
    expect(p);
    estimate(p);
    share_rows(p);
    tallies_each(engine->tallies, take, p);
    if (p->view.others)
        put_running_first(p);
    if (show->with_why) {
        p->view.why = p->why;
        tallies_each(engine->tallies, ask_why, p);
    }
}

static size_t rows_of(const struct show *show)
{
    int rows = show->live ? show->term.look.height - 4 : 0;

    return rows < 1 ? 1 : rows > ROWS_MAX ? ROWS_MAX : (size_t)rows;
}

static void draw(struct show *show, const struct view *view)
{
    ssize_t n;

    if (show->live) {
        view_render(&show->text, view, &show->term.look);
        if (printer_in_line(show->engine->printer)) {
            if (printer_is_amid(show->engine->printer))
                return; /* the rest of the line comes */
            n = write(show->term.fd, "\n", 1);
            (void)n;
            printer_line_ended(show->engine->printer);
        }
        term_draw(&show->term, &show->text);
        return;
    }
    view_render_plain(&show->text, view);
    if (show->closing)
        fwrite(show->text.text, 1, show->text.length, stderr);
    else
        printer_text(show->engine->printer, 2, show->text.text, show->text.length);
}

/* Whoever asked for lines gets one at the end as well. */
static bool last_line(const struct show *show)
{
    return show->closing && show->engine->opt->progress == PROGRESS_ALWAYS;
}

void show_update(struct show *show, bool regardless, const char *phase)
{
    weir_time now = weir_now();
    struct picture *p;

    if (!show->live && !show->plain)
        return;
    if (now < show->next && !(regardless && show->live) && !last_line(show))
        return;
    p = calloc(1, sizeof(*p));
    if (!p)
        return;
    show->next = now + show->period_ns;
    p->show = show;
    p->now = now;
    p->rows = rows_of(show);
    gather(p, phase);
    draw(show, &p->view);
    for (size_t i = 0; i < p->view.count; i++)
        free(p->key[i]);
    free(p);
}

/* ---- the rest ------------------------------------------------------------------------------------ */

void show_make_way(struct show *show)
{
    if (show->live)
        term_clear(&show->term);
}

void show_key(struct show *show, int key)
{
    if (key == 'w' || key == 'W')
        show->with_why = !show->with_why;
}

void show_close(struct show *show)
{
    show->closing = true;
    show->with_why = false;
    show->term.look.keys = false;
    show_update(show, true, NULL);
    if (show->live)
        term_close(&show->term);
    free(show->text.text);
}
