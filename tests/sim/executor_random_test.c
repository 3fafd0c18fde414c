/* Whole executors under random orders, random schedules and failing allocations.
 *
 * A few threads submit, cancel, settle, resize, pause, evict and close as luck has it; bodies sleep, compute,
 * fail or stay pending. Rules that must always hold are checked where it could break: in bodies, after each call,
 * at moments when nothing moves, and at the end. Variables are plain: there is one OS thread, and a point
 * only where the library has one, so a look at its records is a look at one moment.
 *
 * All sleeps are whole milliseconds; a watch looks at the half ones, when all that can move has moved.
 * SPDX-License-Identifier: MIT */
#include "executor/settle.h"
#include "executor/state.h"
#include "runtime/worker.h"
#include "support/sim_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/error.h>

enum { ITEMS = 15, KEYS = 3, ACTORS = 2, GENERATIONS = 64 };

static const char *const keys[KEYS] = { "a", "b", "c" };

enum kind { RETURNS, SLEEPS, COMPUTES, YIELDS, STAYS_PENDING, WAITS, FAILS, KINDS };

/* One submission. */
struct item {
    enum kind kind;
    int key, ms, level;
    uint32_t cost, generation;
    bool detached, submitted, admitted, with_drop;
    int rc;
    weir_task *task,
        *self; /* the submitter's reference, and the body's own if it is pending      */
    uint64_t called,
        answered;        /* when submit was called and returned, in `moments`                   */
    int runs;            /* times its body began                                                */
    bool running;        /* its body runs                                                       */
    bool inside, flying; /* likewise, with permits; it was not settled since                    */
    bool ending;         /* another thread may have ended it already                            */
    bool dead;           /* it was said never to run                                            */
    bool by_caller;
    int heard_submitted, heard_started, heard_completed, heard_rejected, called_back;
    int made, dropped, taken, arg_dropped;
};

static struct {
    weir_executor *ex;
    weir_group *group[KEYS];
    weir_rejection rejection;
    bool listens, calls_back, closes, faults, slips;
    bool abandons; /* threads that could settle pending tasks do not: the executor ends them */
    bool winding_down, over, closed;
    int actors_left;
    struct item item[ITEMS];
    int items;
    uint64_t moments;
    int asked; /* for limits */
    int computing;
    int evicting[KEYS]; /* evictions under way that cancel what runs */
    uint32_t costs, workers;

    /* Bounds of what runs: see look(). */
    struct {
        uint64_t running, seen_running, seen_limit;
    } generation[GENERATIONS];
    uint64_t flying, seen_flying, seen_max, max_since_rest;
    int64_t limit_asked[KEYS][ACTORS], max_asked[ACTORS];
    bool touched[KEYS]; /* its limits were changed, or its gate was closed */
} w;

static int below(int n)
{
    return (int)(weir_sim_random() % (uint64_t)n);
}

static bool chance(int percent)
{
    return below(100) < percent;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- rules that must always hold ---------------------------------------------------------------- */

/* I1, I2: the cost of running tasks is within the limit, or they were already running when the limit was lowered: it does not
 * grow beyond any limit that was in force since the last look, or that a caller asks for just now. The
 * executor's limit is no lock: each worker may have read it just before it was lowered. */
static void look(void)
{
    struct wr_root *root = &w.ex->root;
    uint64_t max = larger(larger(w.seen_flying, w.seen_max), atomic_load(&root->inflight_max));

    for (struct weir_group *g = NULL; (g = wr_table_next(&w.ex->table, g));) {
        uint64_t limit = larger(w.generation[g->generation].seen_running,
                                larger(w.generation[g->generation].seen_limit, g->sums.limit));
        CHECK(g->generation < GENERATIONS);
        for (int a = 0; a < ACTORS; a++)
            limit = larger(limit, (uint64_t)w.limit_asked[g->key[0] - 'a'][a]);
        if (w.generation[g->generation].seen_limit == 0)
            limit = WR_INF; /* never seen before */
        if (g->sums.running > limit)
            weir_sim_fail("group %s runs %u, allowed are %llu", g->key, g->sums.running,
                          (unsigned long long)limit);
        CHECK(w.generation[g->generation].running <= g->sums.running);
        CHECK(g->sums.running <= g->sums.inflight);
        if (w.costs == 1 && !w.touched[g->key[0] - 'a'] && g->sums.queue_max != WR_INF) /* I3 */
            CHECK(g->sums.queued <= (uint64_t)g->sums.queue_max + wr_free(&g->sums));
        w.generation[g->generation].seen_running = g->sums.running;
        w.generation[g->generation].seen_limit = g->sums.limit;
    }
    for (int a = 0; a < ACTORS; a++)
        max = larger(max, (uint64_t)w.max_asked[a]);
    w.max_since_rest = larger(w.max_since_rest, max);
    if (w.flying > max && (w.flying > w.max_since_rest || w.flying - max > w.workers * w.costs))
        weir_sim_fail("%llu are in flight, allowed are %llu", (unsigned long long)w.flying,
                      (unsigned long long)max);
    w.seen_flying = larger(w.flying, atomic_load(&root->held)); /* some have yet to begin */
    w.seen_max = atomic_load(&root->inflight_max);
}

/* The first of all, by the tickets of each part's first. */
static struct weir_group *first_in(const struct wr_line *ring)
{
    struct weir_group *first = NULL;

    for (int i = 0; i < ring->parts; i++)
        if (!wr_list_empty(&ring->part[i].stands)) {
            struct weir_group *group =
                WR_CONTAINER(ring->part[i].stands.next, struct weir_group, stand.link);
            if (!first || (int32_t)(group->stand.ticket - first->stand.ticket) < 0)
                first = group;
        }
    return first;
}

/* I6: nothing moves any more at this moment, so each task that waits has a reason. */
static void look_at_rest(void)
{
    struct wr_root *root = &w.ex->root;
    struct wr_line *ring = &w.ex->ring;
    uint64_t held = atomic_load(&root->held), max = atomic_load(&root->inflight_max);

    w.max_since_rest = max;
    CHECK(wr_line_is_valid(ring));
    for (struct weir_group *g = NULL; (g = wr_table_next(&w.ex->table, g));) {
        uint64_t *first = wr_group_first(g);
        uint32_t cost = first ? wr_cost_at(first) : 0;
        CHECK(!g->sums.queued == !first && atomic_load(&g->lock.word) == 0);
        if (!first || g->sums.closed || cost > wr_free(&g->sums) || cost > max)
            continue; /* which stands in no ring */
        CHECK(wr_group_place(g) == WR_READY);
        if (max != WR_INF && held + cost > max)
            continue;
        if (w.computing >= (int)w.workers)
            continue;
        if (max != WR_INF) { /* another may be owed the next permits, and need more of them */
            struct weir_group *owed = first_in(ring);
            uint64_t *next = wr_group_first(owed);
            if (owed != g && next && held + wr_cost_at(next) > max && !owed->sums.closed &&
                wr_cost_at(next) <= wr_free(&owed->sums))
                continue;
        }
        weir_sim_fail("group %s waits at %lld with room: %u of %u run, %u wait, %llu of %llu held, "
                      "needed %u, %d compute",
                      g->key, (long long)weir_now(), g->sums.running, g->sums.limit, g->sums.queued,
                      (unsigned long long)held, (unsigned long long)max, atomic_load(&ring->needed),
                      w.computing);
    }
}

static void watch(void *arg)
{
    (void)arg;
    /* When no pace falls due, so that the clock's thread rests as well: changed ones do at halves and quarters, or a
     * nanosecond later. */
    weir_sim_busy(MS / 2 + 7);
    while (!w.over) {
        if (!w.slips && !w.faults) /* without memory for a stack a worker tries again later */
            look_at_rest();
        weir_sim_busy(MS);
    }
}

/* I7: no task of its group and level, or of a level before, that came earlier still waits. */
static void check_order(const struct item *me, const struct weir_group *group)
{
    for (int i = 0; i < w.items; i++) {
        struct item *other = &w.item[i];
        if (!other->task || other->answered == 0 || other->answered > me->called ||
            other->task->group != group || other->level > me->level)
            continue;
        uint32_t word = atomic_load(&other->task->word);
        CHECK((word & WR_PHASE_MASK) != WR_PHASE_QUEUED || (word & WR_OUTCOME_MASK));
    }
}

/* I9 */
static void check_times(const weir_result *r)
{
    CHECK(r->ended_at >= r->started_at);
    CHECK(r->started_at >= r->queued_at);
}

/* ---- bodies ------------------------------------------------------------------------------------- */

static void land(struct item *item)
{
    if (item->flying) {
        item->flying = false;
        w.flying -= item->cost;
    }
}

static void drop(void *value)
{
    ((struct item *)value)->dropped++;
}

/* It is the last: no body uses the argument, and all callbacks have been told of the end. */
static void drop_arg(void *arg)
{
    struct item *item = arg;

    CHECK(++item->arg_dropped == 1);
    CHECK(!item->running && item->called_back == 1);
    CHECK(!w.listens || item->heard_completed + item->heard_rejected >= 1);
}

/* A task that has been asked to end may hold its permits no longer. */
static void expect_end(struct item *item)
{
    item->ending = true;
    if (!item->inside)
        land(item);
}
static void wait_inside(const struct item *me);

static int body(void **value, void *arg)
{
    struct item *me = arg;
    weir_task *self = weir_task_self();
    bool held; /* it holds permits: its caller does not run it */
    int error = 0;

    CHECK(me >= w.item && me < w.item + ITEMS);
    me->runs++;
    CHECK(me->runs == 1 && !me->dead); /* I8 */
    CHECK(self && me->arg_dropped == 0);
    held = (atomic_load(&self->word) & WR_PHASE_MASK) == WR_PHASE_RUNNING;
    me->by_caller = !held;
    me->running = true;
    if (held) {
        me->generation = self->group->generation;
        CHECK(me->generation < GENERATIONS);
        w.generation[me->generation].running += me->cost;
        CHECK(w.generation[me->generation].running <= self->group->sums.running);
        w.flying += me->cost;
        me->inside = me->flying = true;
        me->ending |= w.evicting[me->key] > 0; /* it came too late for expect_end */
        if (me->ending) /* it still holds its permits, but this counts what is sure */
            land(me);
        check_order(me, self->group);
        look();
    }
    switch (me->kind) {
    case SLEEPS:
        error = weir_sleep(weir_now() + me->ms * MS);
        break;
    case COMPUTES:
        w.computing += held;
        weir_sim_busy(me->ms * MS);
        w.computing -= held;
        break;
    case YIELDS:
        weir_yield();
        break;
    case WAITS:
        wait_inside(me);
        break;
    case STAYS_PENDING:
        me->self = weir_task_ref(self);
        error = WEIR_PENDING;
        break;
    case FAILS:
        error = -5;
        break;
    default:
        break;
    }
    CHECK(weir_task_self() == self && me->arg_dropped == 0);
    me->running = false;
    if (held) {
        look();
        w.generation[me->generation].running -= me->cost;
        me->inside = false;
        if (error != WEIR_PENDING || me->ending)
            land(me);
    }
    if (error != WEIR_PENDING && me->with_drop) {
        me->made++;
        *value = me;
    }
    return error;
}

/* ---- listening ------------------------------------------------------------------------------------ */

/* Of the random ones; those of check_capacity() have no id, and no item. */
static struct item *item_of(weir_task *task)
{
    int number = atoi(weir_task_id(task));
    static struct item none;

    if (!*weir_task_id(task)) {
        return memset(&none, 0, sizeof(none));
    }

    CHECK(number >= 0 && number < ITEMS);
    return &w.item[number];
}

static void on_submitted(weir_task *task, void *arg)
{
    struct item *item = item_of(task);
    (void)arg;
    CHECK(++item->heard_submitted == 1);
    if (*weir_task_id(task) && chance(3)) { /* a listener may call anything */
        item->ending = item->dead = true;
        CHECK(weir_task_cancel(task));
    }
}

static void on_started(weir_task *task, void *arg)
{
    struct item *item = item_of(task);
    (void)arg;
    CHECK(++item->heard_started == 1 && item->runs == 0);
}

static void on_completed(weir_task *task, const weir_result *result, void *arg)
{
    struct item *item = item_of(task);
    (void)arg;
    CHECK(++item->heard_completed == 1 && item->called_back == 0);
    CHECK(!item->heard_rejected || item->by_caller);
    CHECK(result->outcome != WEIR_UNSETTLED && result->outcome != WEIR_REJECTED);
    check_times(result);
}

static void on_rejected(weir_task *task, weir_reason reason, void *arg)
{
    struct item *item = item_of(task);
    (void)arg;
    CHECK(++item->heard_rejected == 1 && item->heard_completed == 0 && item->runs == 0);
    CHECK(reason >= WEIR_REASON_GLOBAL_QUEUE_FULL && reason <= WEIR_REASON_EVICTED);
}

static void call_back(void);

static void on_done(weir_task *task, const weir_result *result, void *arg)
{
    struct item *item = arg;
    (void)task;
    CHECK(++item->called_back == 1);
    check_times(result);
    if (w.calls_back)
        call_back();
}

static int limit_for(int64_t *limit, const char *key, void *arg)
{
    (void)arg;
    (void)key;
    w.asked++;
    *limit = 1 + below(3);
    return chance(10) ? -1 : 0;
}

/* The same, by the richer form; asked again through limit_for if it leaves the limit open. */
static int group_for(weir_group_policy *out, const char *key, void *arg)
{
    (void)arg;
    (void)key;
    out->limit = chance(80) ? 1 + below(3) : 0;
    out->weight = below(4);
    w.asked += out->limit != 0;
    return 0;
}

/* ---- what threads do -------------------------------------------------------------------------------- */

static struct item *next_item(bool plain)
{
    struct item *item = &w.item[w.items++];

    item->kind = (enum kind)below(KINDS);
    item->key = below(KEYS);
    item->ms = 1 + below(3);
    item->cost = plain ? 1 : 1 + (uint32_t)below((int)w.costs);
    item->level = plain || chance(70) ? WEIR_NORMAL : 1 + below(4);
    item->detached = chance(25);
    item->with_drop = !plain;
    item->submitted = true;
    item->called = ++w.moments;
    return item;
}

static void check_answer(struct item *item, int rc, weir_task *task, bool has_deadline)
{
    item->rc = rc;
    item->task = task;
    item->answered = ++w.moments;
    item->admitted = rc == 0;
    CHECK(rc == 0 || rc == WEIR_ECLOSED || rc == WEIR_EINVAL || rc == WEIR_ENOMEM ||
          rc == WEIR_ETIMEDOUT);
    CHECK(rc != WEIR_ECLOSED || w.closed);
    CHECK(rc != WEIR_ENOMEM || w.faults);
    CHECK(rc != WEIR_EINVAL || item->cost > 1);
    CHECK(rc != WEIR_ETIMEDOUT || (w.rejection == WEIR_BLOCK && has_deadline));
    CHECK((task != NULL) == (rc == 0 && !item->detached));
    if (rc)
        item->dead = true;
}

static void submit(void)
{
    char id[8];
    struct item *item;
    weir_task_options opt = { .size = sizeof(opt) };
    bool plain = !w.listens && chance(50);
    weir_task *task = NULL;
    int rc;

    if (w.items == ITEMS)
        return;
    item = next_item(plain);
    snprintf(id, sizeof(id), "%d", (int)(item - w.item));
    if (!plain)
        opt = (weir_task_options){ .size = sizeof(opt),
                                   .id = id,
                                   .cost = item->cost,
                                   .priority = (uint8_t)item->level,
                                   .drop = drop,
                                   .drop_arg = drop_arg,
                                   .on_done = on_done,
                                   .on_done_arg = item };
    if (chance(40))
        opt.deadline = weir_now() + below(3) * MS + 1;
    if (chance(50))
        rc = weir_submit(item->detached ? NULL : &task, w.group[item->key], body, item, &opt);
    else
        rc =
            weir_submit_key(item->detached ? NULL : &task, w.ex, keys[item->key], body, item, &opt);
    check_answer(item, rc, task, opt.deadline);
}

/* Several in one call. Those after one that fails were never submitted. */
static void submit_several(void)
{
    enum { MOST = 5 };
    int count = 2 + below(MOST - 1);
    weir_task_options opt = { .size = sizeof(opt) };
    weir_task *task[MOST];
    void *item[MOST];
    int64_t done;

    if (w.listens || w.items + count > ITEMS)
        return;
    for (int i = 0; i < count; i++) {
        struct item *first = i ? item[0] : NULL, *one = item[i] = next_item(true);
        one->key = first ? first->key : one->key;
        one->detached = first ? first->detached : one->detached;
    }
    bool detached = ((struct item *)item[0])->detached;
    if (chance(40))
        opt.deadline = weir_now() + below(3) * MS + 1;
    done = weir_submit_many(detached ? NULL : task, w.group[((struct item *)item[0])->key], body,
                            item, (size_t)count, &opt);
    for (int i = 0; i < count; i++) {
        if (done < 0 || i < done) {
            check_answer(item[i], done < 0 ? (int)done : 0, detached ? NULL : task[i],
                         opt.deadline);
        } else {
            CHECK(w.closed || w.faults || opt.deadline);
            CHECK(detached || !task[i]);
            ((struct item *)item[i])->rc = WEIR_ECANCELED;
            ((struct item *)item[i])->answered = ++w.moments;
            ((struct item *)item[i])->dead = true;
        }
    }
}

static struct item *some_item(void)
{
    struct item *item = w.items ? &w.item[below(w.items)] : NULL;

    return item && item->task ? item : NULL;
}

static void cancel(void)
{
    struct item *item = some_item();

    if (!item)
        return;
    item->ending = true;
    if (!item->inside)
        land(item);
    if (weir_task_cancel(item->task)) {
        weir_result result = WEIR_RESULT;
        CHECK(weir_task_wait(&result, item->task, WEIR_NOW_OR_NEVER) == 0);
        CHECK(result.outcome == WEIR_CANCELLED && result.reason == WEIR_REASON_CANCELLED);
        check_times(&result);
        if (!item->runs && (atomic_load(&item->task->word) & WR_PHASE_MASK) == WR_PHASE_OVER)
            item->dead = true;
    }
}

/* Takes the body's own reference over, so that no other thread settles it. */
static void settle_item(struct item *item)
{
    weir_task *self = item->self;
    int rc;

    item->self = NULL;
    item->ending = true;
    if (!item->inside)
        land(item);
    item->made += item->with_drop;
    rc = weir_task_settle(self, chance(20) ? -7 : 0, item->with_drop ? item : NULL);
    CHECK(rc == 0 || rc == WEIR_EALREADY);
    CHECK(weir_task_settle(self, WEIR_PENDING, NULL) == WEIR_EINVAL);
    CHECK(weir_task_settle(self, 0, NULL) == WEIR_EALREADY);
    weir_task_unref(self);
}

/* One that is pending, or will be as soon as its body has returned. */
static bool settle_one(void)
{
    for (int i = 0; i < w.items; i++)
        if (w.item[i].self) {
            settle_item(&w.item[i]);
            return true;
        }
    return false;
}

/* From outside, at any time: before it starts, while its body begins, or when it is pending. */
static void settle_hastily(void)
{
    struct item *item = some_item();
    int rc;

    if (!item || item->kind != STAYS_PENDING)
        return;
    item->ending = true;
    if (!item->inside)
        land(item);
    item->made += item->with_drop;
    rc = weir_task_settle(item->task, 0, item->with_drop ? item : NULL);
    CHECK(rc == 0 || rc == WEIR_EALREADY);
}

static void wait_a_little(void)
{
    struct item *item = some_item();
    weir_result result = WEIR_RESULT;
    int rc;

    if (!item)
        return;
    rc = weir_task_wait(&result, item->task, weir_now() + below(3) * MS);
    CHECK(rc == 0 || rc == WEIR_ETIMEDOUT || rc == WEIR_EREJECTED);
    if (rc == WEIR_ETIMEDOUT)
        return;
    check_times(&result);
    if (result.outcome == WEIR_REJECTED && !item->runs)
        item->dead = true;
}

/* In a body, for any task: it may be its own, or one that waits for it in turn. */
static void wait_inside(const struct item *me)
{
    struct item *item = some_item();
    int rc;

    if (!item)
        return;
    rc = weir_task_wait(NULL, item->task, me->ms > 1 ? WEIR_FOREVER : weir_now() + me->ms * MS);
    CHECK(rc == 0 || rc == WEIR_ETIMEDOUT || rc == WEIR_EREJECTED || rc == WEIR_EDEADLK ||
          (rc == WEIR_ECANCELED && weir_cancelled()));
    CHECK(rc != 0 || weir_task_done(item->task));
    CHECK(rc != WEIR_EDEADLK || weir_task_self());
}

/* From a callback, which must not keep its worker: neither wait for room nor run a body. */
static void call_back(void)
{
    int what = below(6);

    if (what == 0)
        cancel();
    else if (what == 1)
        settle_one();
    else if (what == 2 && (w.rejection == WEIR_ABORT || w.rejection == WEIR_DISCARD))
        submit();
}

static void resize_group(int actor)
{
    int key = below(KEYS), rc;
    int64_t limit = chance(70) ? 1 + below(4) : 0;
    int64_t inflight_max = chance(30) ? 2 + below(3) : chance(10) ? WEIR_NO_LIMIT : 0;
    int64_t queue_max = chance(30) ? below(4) : 0;

    look();
    w.limit_asked[key][actor] = limit;
    w.touched[key] = true;
    rc = weir_group_resize(w.group[key], limit, inflight_max, queue_max);
    CHECK(rc == 0 || (rc == WEIR_ECLOSED && w.closed) || (rc == WEIR_EINVAL && w.costs > 1) ||
          w.faults);
    look();
    w.limit_asked[key][actor] = 0;
}

static void resize_executor(int actor)
{
    int64_t max = chance(30) ? WEIR_NO_LIMIT : 3 + below(3);

    look();
    w.max_asked[actor] = max;
    CHECK(weir_executor_resize(w.ex, max, chance(30) ? 1 + below(4) : 0) == 0);
    look();
    w.max_asked[actor] = 0;
}

static void open_gates(int key)
{
    weir_group_resume(w.group[key]);
    if (w.faults && w.ex->clock.wheel == NULL)
        return; /* then no gate has a time */
    weir_group_cool_down(w.group[key], 0);
    weir_group_pace(w.group[key], 0, 0, 0);
}

static void work_a_gate(void)
{
    int key = below(KEYS);

    w.touched[key] = true;
    switch (below(5)) {
    case 0:
        weir_group_pause(w.group[key]);
        break;
    case 1:
    case 2:
        weir_group_resume(w.group[key]);
        break;
    case 3:
        weir_group_cool_down(w.group[key], weir_now() + (below(4) - 1) * MS);
        break;
    default:
        weir_group_pace(w.group[key], below(3), 2 * MS, 1 + below(2));
        break;
    }
    if (w.winding_down)
        open_gates(key);
}

static void evict(void)
{
    static const int flags[] = { 0, 0, WEIR_CARRY_OVER, WEIR_CANCEL_RUNNING };
    int key = below(KEYS), flag = flags[below(4)], rc;

    if (w.ex->table.generation > GENERATIONS - 2 * KEYS)
        return;
    w.touched[key] = true;
    for (int i = 0; flag == WEIR_CANCEL_RUNNING && i < w.items; i++)
        if (w.item[i].key == key)
            expect_end(&w.item[i]);
    w.evicting[key] += flag == WEIR_CANCEL_RUNNING;
    rc = weir_group_evict(w.ex, keys[key], flag);
    w.evicting[key] -= flag == WEIR_CANCEL_RUNNING;
    CHECK(rc == 0 || w.faults);
}

static void act(int actor)
{
    int what = below(100);

    if (what < 34)
        submit();
    else if (what < 42)
        submit_several();
    else if (what < 52)
        cancel();
    else if (what < 58)
        settle_one();
    else if (what < 61)
        settle_hastily();
    else if (what < 65)
        wait_a_little();
    else if (what < 71)
        resize_group(actor);
    else if (what < 76)
        resize_executor(actor);
    else if (what < 84)
        work_a_gate();
    else if (what < 88)
        evict();
    else if (what < 90)
        weir_group_set_weight(w.group[below(KEYS)], 1 + below(3));
    else
        weir_sim_busy((1 + below(3)) * MS);
    look();
}

static void actor(void *arg)
{
    int number = *(int *)arg;

    for (int i = 0; i < 14 && !w.winding_down; i++)
        act(number);
    w.actors_left--;
}

/* ---- the course of a run ------------------------------------------------------------------------------ */

static weir_executor *set_up(void)
{
    weir_executor *ex = NULL;
    weir_policy policy = { .size = sizeof(policy) };
    weir_message message;
    int rc;

    memset(&w, 0, sizeof(w));
    w.costs = chance(40) ? 3 : 1;
    w.workers = 1 + (uint32_t)below(3);
    w.listens = chance(60);
    w.calls_back = chance(50);
    w.closes = chance(30);
    w.abandons = chance(20);
    w.rejection = (weir_rejection)below(4);
    policy.workers = w.workers;
    policy.inflight_max = chance(50) ? WEIR_NO_LIMIT : 3 + below(3);
    policy.queue_max = chance(50) ? WEIR_NO_LIMIT : chance(30) ? WEIR_NO_QUEUE : 1 + below(4);
    policy.group_limit = 1 + below(3);
    policy.group_inflight_max = chance(60) ? 0 : 1 + below(4);
    policy.group_queue_max = chance(50) ? 0 : chance(30) ? WEIR_NO_QUEUE : 1 + below(4);
    policy.limit_for = limit_for;
    policy.group_for = chance(30) ? group_for : NULL;
    policy.rejection = w.rejection;
    if (w.listens)
        policy.listener = (weir_listener){ .submitted = on_submitted,
                                           .started = on_started,
                                           .completed = on_completed,
                                           .rejected = on_rejected };
    rc = weir_executor_new(&ex, &policy, &message);
    CHECK(rc == 0 || rc == WEIR_ENOMEM);
    return ex;
}

static void expect_close(void)
{
    w.closed = true;
    for (int i = 0; i < w.items; i++)
        expect_end(&w.item[i]);
}

static void close_somehow(void)
{
    expect_close();
    if (chance(50))
        weir_executor_close(w.ex, below(4));
    else
        weir_executor_shutdown(w.ex, weir_now() + below(4) * MS);
}

/* It takes too long: says what is left. */
static __attribute__((noreturn)) void complain(const char *what)
{
    char text[700] = "";
    size_t at = 0;

    for (struct weir_group *g = NULL; (g = wr_table_next(&w.ex->table, g)) && at < sizeof(text);)
        at +=
            (size_t)snprintf(text + at, sizeof(text) - at,
                             "\n%s: limit %u/%u/%u runs %u flies %u waits %u carried %u closed %u "
                             "place %d telling %u",
                             g->key, g->sums.limit, g->sums.inflight_max, g->sums.queue_max,
                             g->sums.running, g->sums.inflight, g->sums.queued, g->sums.carried,
                             g->sums.closed, wr_load(&g->stand.place, relaxed), g->telling);
    for (int i = 0; i < w.items && at < sizeof(text); i++) {
        struct item *item = &w.item[i];
        if (item->task && !weir_task_done(item->task))
            at += (size_t)snprintf(text + at, sizeof(text) - at,
                                   "\n%d: kind %d key %s cost %u runs %d word %x", i, item->kind,
                                   keys[item->key], item->cost, item->runs,
                                   atomic_load(&item->task->word));
        else if (!item->answered)
            at += (size_t)snprintf(text + at, sizeof(text) - at, "\n%d: submits to %s, cost %u", i,
                                   keys[item->key], item->cost);
    }
    weir_sim_fail("%s: live %llu held %llu of %u claimed %llu of %u needed %u%s", what,
                  (unsigned long long)atomic_load(&w.ex->live),
                  (unsigned long long)atomic_load(&w.ex->root.held),
                  atomic_load(&w.ex->root.inflight_max),
                  (unsigned long long)atomic_load(&w.ex->root.claimed),
                  atomic_load(&w.ex->root.queue_max), atomic_load(&w.ex->ring.needed), text);
}

/* All tasks and threads that may be stuck behind a gate or a pending task go on. */
static void wind_down(void)
{
    w.winding_down = true;
    for (int key = 0; key < KEYS; key++)
        open_gates(key);
    if (w.abandons) {
        expect_close();
        weir_executor_close(w.ex, 0);
    }
    for (int i = 0; (!w.abandons && settle_one()) || w.actors_left; i++) {
        if (i == 200)
            complain("threads do not end");
        weir_sim_busy(MS);
    }
}

static bool all_settled(void)
{
    bool all = true;

    for (int i = 0; i < w.items; i++)
        all = all && (!w.item[i].task || weir_task_done(w.item[i].task));
    return all && atomic_load(&w.ex->live) == 0;
}

/* I5: each has one end, and all callbacks heard of it. */
static void check_item(struct item *item)
{
    weir_result result = WEIR_RESULT;
    int rc;

    if (w.listens && (item->rc == 0 || item->heard_submitted)) {
        CHECK(item->heard_submitted == 1);
        CHECK(item->heard_completed + item->heard_rejected - item->by_caller == 1);
        CHECK(item->heard_started == item->runs);
    }
    if (item->with_drop)
        CHECK(item->called_back == (item->rc == 0));
    if (!item->task)
        return;
    rc = weir_task_wait(&result, item->task, WEIR_FOREVER);
    check_times(&result);
    CHECK(rc == 0 || (rc == WEIR_EREJECTED && result.outcome == WEIR_REJECTED));
    CHECK(result.outcome != WEIR_UNSETTLED);
    CHECK(result.outcome != WEIR_REJECTED || item->runs == 0);
    CHECK((result.outcome != WEIR_DONE && result.outcome != WEIR_FAILED) || item->runs == 1);
    if (chance(30) && weir_task_take(item->task)) {
        CHECK(result.outcome == WEIR_DONE && item->with_drop);
        item->taken++;
        CHECK(!weir_task_take(item->task));
    }
}

static int nap(void **value, void *arg)
{
    (void)value;
    (void)arg;
    return weir_sleep(weir_now() + MS);
}

/* I4: exactly as many as ever fit. Nothing ends before time moves, and time stands still here. */
static void check_capacity(void)
{
    weir_task *task[6];
    int key = below(KEYS);

    if (w.closed || w.faults || w.slips)
        return;
    CHECK(weir_executor_resize(w.ex, 4, WEIR_NO_QUEUE) == 0);
    CHECK(weir_group_resize(w.group[key], 2, 3, 1) == 0);
    if (w.rejection != WEIR_DISCARD)
        return;
    for (int twice = 0; twice < 2; twice++) {
        for (int i = 0; i < 4; i++)
            CHECK(weir_submit(&task[i], w.group[key], nap, NULL, NULL) == 0);
        for (int i = 0; i < 4; i++) {
            weir_result result = WEIR_RESULT;
            CHECK(weir_task_wait(&result, task[i], WEIR_FOREVER) == 0);
            CHECK(result.outcome == (i < 3 ? WEIR_DONE : WEIR_REJECTED));
            weir_task_unref(task[i]);
        }
    }
}

/* A worker may have a permit in its hands for a task that was cancelled just now; it gives it back, some time. */
static uint64_t held_at_rest(void)
{
    for (int tries = 0; atomic_load(&w.ex->root.held) && tries < 1000; tries++)
        weir_sleep(weir_now() + 1000);
    return atomic_load(&w.ex->root.held);
}

static void check_rest(void)
{
    weir_executor_stats s = { .size = sizeof(s) };

    uint64_t held = held_at_rest(), claimed = atomic_load(&w.ex->root.claimed);

    CHECK(w.flying == 0);
    CHECK(held == 0 && claimed == 0); /* I4 */
    CHECK(weir_executor_stats_get(&s, w.ex) == 0);
    CHECK(s.running == 0 && s.inflight == 0 && s.waiting == 0);
    if (!w.faults && s.submitted != s.succeeded + s.failed + s.cancelled + s.rejected)
        weir_sim_fail("submitted %d, succeeded %d, failed %d, cancelled %d, rejected %d",
                      (int)s.submitted, (int)s.succeeded, (int)s.failed, (int)s.cancelled,
                      (int)s.rejected);
    if (!w.faults && !w.closed && w.asked > (int)w.ex->table.generation) /* I10 */
        weir_sim_fail("limits were asked for %d times for %u generations", w.asked,
                      w.ex->table.generation);
}

static void tear_down(void)
{
    bool before = chance(50);

    for (int i = 0; i < w.items; i++)
        check_item(&w.item[i]);
    for (int i = 0; before && i < w.items; i++)
        weir_task_unref(w.item[i].task);
    weir_executor_free(w.ex);
    while (settle_one()) /* tasks that nothing awaits any more */
        CHECK(w.abandons);
    for (int i = 0; !before && i < w.items; i++)
        weir_task_unref(w.item[i].task);
    for (int i = 0; i < w.items; i++) {
        struct item *item = &w.item[i];
        CHECK(item->made == item->dropped + item->taken);
        CHECK(item->arg_dropped == (item->with_drop && item->submitted && item->rc == 0));
    }
}

static void play(bool faults, bool slips)
{
    int64_t thread[ACTORS + 1];
    int number[ACTORS];
    bool usable = true;

    weir_executor *ex = set_up();
    if (!ex)
        return;
    w.ex = ex;
    w.faults = faults;
    w.slips = slips;
    for (int key = 0; key < KEYS; key++)
        usable = weir_group_get(&w.group[key], ex, keys[key]) == 0 && usable;
    CHECK(usable || faults);
    if (!usable) {
        weir_executor_free(ex);
        return;
    }
    look();
    w.actors_left = ACTORS;
    for (int i = 0; i < ACTORS; i++) {
        number[i] = i;
        thread[i] = weir_sim_thread(actor, &number[i], "actor");
    }
    thread[ACTORS] = weir_sim_thread(watch, NULL, "watch");
    weir_sim_busy((1 + below(8)) * MS);
    if (w.closes)
        close_somehow();
    weir_sim_busy((1 + below(8)) * MS);
    wind_down();
    for (int i = 0; i < ACTORS; i++)
        weir_sim_join(thread[i]);
    for (int i = 0; !all_settled(); i++) {
        if (i == 200)
            complain("tasks do not end");
        if (!w.abandons)
            settle_one();
        weir_sim_busy(MS);
    }
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    while (settle_one())
        ; /* its body stayed pending although it was cancelled */
    /* A worker that found nothing may have a permit in its hand; and the clock may jump before it moves on. */
    for (int i = 0; i < (slips ? 20 : 1); i++)
        weir_sim_busy(MS);
    check_rest();
    check_capacity();
    w.over = true;
    weir_sim_join(thread[ACTORS]);
    tear_down();
}

static void orderly(void *arg)
{
    (void)arg;
    play(false, false);
}

static void with_faults(void *arg)
{
    (void)arg;
    play(true, false);
}

static void with_slips(void *arg)
{
    (void)arg;
    play(false, true);
}

enum { ORDERLY = 20000, FAULTY = SANITIZED ? 1000 : 5000, SLIPPED = 5000 };

static void test_random_orders_keep_all_promises(void **state)
{
    (void)state;
    explore(ORDERLY, WEIR_SIM_OPTIONS(.seed = 1), orderly);
}

static void test_random_orders_survive_any_failed_allocation(void **state)
{
    const char *given = getenv("WEIR_SEED");
    uint64_t first = given ? strtoull(given, NULL, 10) : soak_seed(1);
    uint64_t count = given ? 1 : soak_times(FAULTY);
    (void)state;
    for (uint64_t seed = first; seed < first + count; seed++) {
        weir_sim_report report = WEIR_SIM_REPORT;
        weir_sim_options opt = { .size = sizeof(opt),
                                 .seed = seed,
                                 .fail_alloc = 1 + seed * 2654435761u / 64 % 60,
                                 .sticky = seed % 8 == 0 };
        if (weir_sim_run(&report, &opt, with_faults, NULL))
            fail_msg("%s", report.message);
    }
}

static void test_random_orders_when_time_slips(void **state)
{
    (void)state;
    explore(SLIPPED, WEIR_SIM_OPTIONS(.seed = 1, .slip_per_65536 = 200), with_slips);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_orders_keep_all_promises),
        cmocka_unit_test(test_random_orders_survive_any_failed_allocation),
        cmocka_unit_test(test_random_orders_when_time_slips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
