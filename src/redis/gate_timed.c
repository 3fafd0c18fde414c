/* A rate or a frequency of a fleet before the tasks of a group: the gate takes from the server as many calls at a time as the
 * group would start. If there are none, the server says when to ask again.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/os.h"
#include "redis/fleet.h"

#include <weir/sys/gate.h>

enum { SOON_MS = 100 };

/* Under its lock, which comes after the group's. */
struct timed_gate {
    struct wr_fleet_cell *cell; /* the guard's: good until drop, and while an answer is to come */
    weir_guard *guard;
    weir_gate *gate;
    weir_gate_calls calls;
    struct wr_redis_timer timer;
    struct wr_lock lock;
    int64_t stock;       /* calls that were taken and have not started */
    weir_time stock_end; /* they are good until then: later they would come on top of others */
    int64_t asked;       /* tasks that were refused                    */
    weir_time again;     /* the server has none before that            */
    bool asking, dropped;
    int refs; /* the gate's, and one per answer that is to come */
};

static void unref(struct timed_gate *g)
{
    bool last;

    wr_lock(&g->lock);
    last = --g->refs == 0;
    wr_unlock(&g->lock);
    if (last)
        wr_os_free(g);
}

static uint32_t timed_ask(void *arg, uint32_t count, weir_time now, weir_time *again)
{
    struct timed_gate *g = arg;
    int64_t some;

    wr_lock(&g->lock);
    if (now >= g->stock_end)
        g->stock = 0;
    some = g->stock < count ? g->stock : count;
    if (count == 0)
        some = g->stock > 0;
    else
        g->stock -= some;
    if (count ? some < count : !some) {
        g->asked = count ? count - some : 1;
        *again = WEIR_FOREVER;
        if (!g->asking && g->gate) {
            g->asking = true;
            wr_redis_timer_set(g->cell->fleet->redis, &g->timer, g->again > now ? g->again : now);
        }
    }
    wr_unlock(&g->lock);
    return (uint32_t)some;
}

static void timed_take_back(void *arg, uint32_t count, weir_time now)
{
    struct timed_gate *g = arg;

    (void)now;
    wr_lock(&g->lock);
    g->stock += count;
    wr_unlock(&g->lock);
}

static void timed_describe(void *arg, weir_gate_state *out, weir_time now)
{
    struct timed_gate *g = arg;

    out->reason = WEIR_REASON_FLEET;
    wr_lock(&g->lock);
    out->earliest = g->again > now ? g->again : 0;
    wr_unlock(&g->lock);
    wr_lock(&g->cell->lock);
    out->limit = out->held = g->cell->seen_limit;
    wr_unlock(&g->cell->lock);
}

static bool timed_at_rest(void *arg, weir_time now)
{
    (void)arg, (void)now;
    return false;
}

/* Calls that can be had without the server. Under the lock. */
static int64_t uncounted(const struct timed_gate *g)
{
    return g->cell->when_away == WEIR_AWAY_OPEN    ? g->asked
           : g->cell->when_away == WEIR_AWAY_SHARE ? 1
                                                   : 0;
}

static void answered(int error, struct wr_reply *reply, void *arg)
{
    struct timed_gate *g = arg;
    struct wr_fleet_cell *cell = g->cell;
    bool forgotten = !error && wr_reply_number(reply, 0) < 0, rate = cell->kind == WEIR_GUARD_RATE;
    weir_time now, taken;

    wr_cell_judge(cell, error, reply, NULL);
    if (forgotten)
        wr_cell_open(cell, true, wr_fleet_deadline(cell->fleet, 0), NULL);
    now = wr_os_now();
    wr_lock(&cell->lock);
    taken = now + cell->set.period_ns;
    wr_unlock(&cell->lock);
    wr_lock(&g->lock);
    g->asking = false;
    g->again = now;
    if (error && uncounted(g)) {
        g->stock += uncounted(g);
        g->stock_end = taken;
    } else if (error || forgotten) {
        g->again = now + (forgotten ? 0 : SOON_MS * WR_MS);
    } else if (wr_reply_number(reply, 0) == 1) {
        int64_t count = wr_reply_number(reply, rate ? 6 : 4);
        g->stock += count < 0          ? 0
                    : count < g->asked ? count
                                       : g->asked; /* not more than was asked for */
        g->stock_end = taken;
    } else {
        int64_t wait =
            wr_server_span(rate ? 0 : wr_reply_number(reply, 1), wr_reply_number(reply, 3));
        g->again = now + (wait > 0 ? wait : SOON_MS * WR_MS);
    }
    if (g->stock)
        g->asked = 0;
    if (!g->dropped && g->stock)
        weir_gate_open(g->gate);
    if (!g->dropped && !g->stock) {
        g->asking = true;
        wr_redis_timer_set(cell->fleet->redis, &g->timer, g->again);
    }
    wr_unlock(&g->lock);
    wr_reply_free(reply);
    unref(g);
    wr_cell_unref(cell);
}

static void fire(struct wr_redis_timer *timer, void *arg)
{
    struct timed_gate *g = arg;
    struct wr_fleet_cell *cell = g->cell;
    bool rate = cell->kind == WEIR_GUARD_RATE;
    struct wr_command command;
    struct wr_words words;
    int64_t count;
    int keys, rc;

    (void)timer;
    wr_lock(&g->lock);
    count = g->dropped ? 0 : g->asked;
    g->asking = count > 0;
    g->refs += g->asking;
    wr_unlock(&g->lock);
    if (!count)
        return;
    wr_words_init(&words);
    keys = wr_cell_keys(&words, cell, rate ? 2 : 4);
    wr_words_add(&words, "take");
    wr_words_number(&words, count);
    if (rate) {
        wr_words_add(&words, "0");
    } else {
        wr_words_add(&words, cell->fleet->process);
        wr_words_number(&words, wr_add(&cell->fleet->number, count, relaxed));
    }
    wr_words_add(&words, "1");
    command = wr_words_command(&words, rate ? &cell->fleet->rate : &cell->fleet->window, keys);
    wr_cell_ref(cell);
    rc = words.failed ? WEIR_ENOMEM
                      : wr_redis_ask(cell->fleet->redis, &command,
                                     wr_fleet_deadline(cell->fleet, 0), answered, g);
    wr_words_fini(&words);
    if (rc)
        answered(rc, NULL, g);
}

static void timed_drop(void *arg)
{
    struct timed_gate *g = arg;

    wr_lock(&g->lock);
    g->dropped = true;
    wr_unlock(&g->lock);
    wr_redis_timer_stop(g->cell->fleet->redis, &g->timer);
    weir_guard_unref(g->guard);
    unref(g);
}

int wr_gate_timed(weir_gate **out, struct wr_fleet_cell *cell, weir_group *group, weir_guard *guard)
{
    struct timed_gate *g = wr_os_alloc(sizeof(*g));
    weir_gate *made;
    int rc;

    if (!g)
        return WEIR_ENOMEM;
    g->cell = cell;
    g->refs = 1;
    g->guard = weir_guard_ref(guard);
    g->timer = (struct wr_redis_timer){ .fire = fire, .arg = g };
    g->calls = (weir_gate_calls){ .size = sizeof(g->calls),
                                  .name = weir_guard_name(guard),
                                  .ask = timed_ask,
                                  .take_back = timed_take_back,
                                  .describe = timed_describe,
                                  .at_rest = timed_at_rest,
                                  .drop = timed_drop };
    rc = weir_group_gate_add(&made, group, &g->calls, g);
    if (rc) {
        weir_guard_unref(guard);
        wr_os_free(g);
        return rc;
    }
    wr_lock(&g->lock);
    g->gate = made;
    weir_gate_open(made);
    wr_unlock(&g->lock);
    if (out)
        *out = made;
    return 0;
}
