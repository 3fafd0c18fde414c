/* Makes all callbacks of a client, one at a time: results, messages, states and timers.
 * SPDX-License-Identifier: MIT */
#include "redis/teller.h"

#include "base/assert.h"

#include <weir/runtime.h>

struct awaiting {
    struct wr_list link;
    weir_parker *parker;
};

void wr_teller_init(struct wr_teller *teller)
{
    *teller = (struct wr_teller){ 0 };
    wr_list_init(&teller->queue);
    wr_list_init(&teller->timers);
    wr_list_init(&teller->waiting);
}

/* Under the lock. */
static void wake(struct wr_teller *teller)
{
    if (teller->parker && teller->asleep) {
        teller->asleep = false;
        weir_unpark(teller->parker);
    }
}

void wr_teller_post(struct wr_teller *teller, struct wr_told *told)
{
    wr_lock(&teller->lock);
    wr_list_append(&teller->queue, &told->link);
    wake(teller);
    wr_unlock(&teller->lock);
}

void wr_teller_bodies(struct wr_teller *teller, int change)
{
    wr_lock(&teller->lock);
    teller->bodies += change;
    wake(teller);
    wr_unlock(&teller->lock);
}

void wr_teller_close(struct wr_teller *teller)
{
    wr_lock(&teller->lock);
    teller->closing = true;
    wake(teller);
    wr_unlock(&teller->lock);
}

bool wr_teller_is_closing(struct wr_teller *teller)
{
    bool closing;

    wr_lock(&teller->lock);
    closing = teller->closing;
    wr_unlock(&teller->lock);
    return closing;
}

void wr_teller_calls(struct wr_teller *teller, const void *what)
{
    wr_lock(&teller->lock);
    teller->busy_with = what;
    wr_unlock(&teller->lock);
}

/* ---- timers ---------------------------------------------------------------------------------- */

static struct wr_redis_timer *timer_of(struct wr_list *link)
{
    return WR_CONTAINER(link, struct wr_redis_timer, link);
}

/* Under the lock. Searches from the end: most timers are due later than those already set. */
static void insert(struct wr_teller *teller, struct wr_redis_timer *timer)
{
    struct wr_list *after = teller->timers.prev;

    while (after != &teller->timers && timer_of(after)->when > timer->when)
        after = after->prev;
    timer->link.prev = after;
    timer->link.next = after->next;
    after->next->prev = &timer->link;
    after->next = &timer->link;
}

void wr_teller_timer_set(struct wr_teller *teller, struct wr_redis_timer *timer, weir_time when)
{
    wr_lock(&teller->lock);
    if (timer->set)
        wr_list_remove(&timer->link);
    timer->set = true;
    timer->when = when;
    insert(teller, timer);
    if (teller->timers.next == &timer->link)
        wake(teller);
    wr_unlock(&teller->lock);
}

void wr_teller_timer_clear(struct wr_teller *teller, struct wr_redis_timer *timer)
{
    wr_lock(&teller->lock);
    if (timer->set)
        wr_list_remove(&timer->link);
    timer->set = false;
    wr_unlock(&teller->lock);
}

void wr_teller_await(struct wr_teller *teller, const void *what)
{
    weir_parker_room room;
    struct awaiting me = { .parker = weir_parker_self(&room) };

    wr_lock(&teller->lock);
    while (teller->busy_with == what && teller->parker != me.parker) {
        wr_list_append(&teller->waiting, &me.link);
        wr_unlock(&teller->lock);
        weir_park(me.parker, WEIR_FOREVER);
        wr_lock(&teller->lock);
        wr_list_remove(&me.link);
    }
    wr_unlock(&teller->lock);
}

/* ---- the body -------------------------------------------------------------------------------- */

/* Under the lock: a callback is over. */
static void over(struct wr_teller *teller)
{
    teller->busy_with = NULL;
    teller->told++;
    wr_list_each(node, &teller->waiting)
        weir_unpark(WR_CONTAINER(node, struct awaiting, link)->parker);
}

/* Under the lock: a timer that is due, or NULL. While closing, timers with `at_close` are due, and no others. */
static struct wr_redis_timer *next_timer(struct wr_teller *teller)
{
    wr_list_each(node, &teller->timers) {
        struct wr_redis_timer *timer = timer_of(node);
        if (teller->closing ? timer->at_close : timer->when <= weir_now())
            return timer;
        if (!teller->closing)
            return NULL;
    }
    return NULL;
}

/* Makes one callback. Called with the lock, which is released meanwhile. False: no callback was due. */
static bool tell_next(struct wr_teller *teller)
{
    struct wr_list *first = teller->queue.next;

    if (first != &teller->queue) {
        struct wr_told *told = WR_CONTAINER(first, struct wr_told, link);
        wr_list_remove(first);
        wr_unlock(&teller->lock);
        told->tell(told); /* may free it */
        wr_lock(&teller->lock);
        over(teller);
        return true;
    }
    struct wr_redis_timer *timer = next_timer(teller);
    if (!timer)
        return false;
    wr_list_remove(&timer->link);
    timer->set = false;
    teller->busy_with = timer;
    wr_unlock(&teller->lock);
    timer->fire(timer, timer->arg); /* may free it */
    wr_lock(&teller->lock);
    over(teller);
    return true;
}

void wr_teller_main(void *arg)
{
    struct wr_teller *teller = arg;
    weir_parker_room room;

    wr_lock(&teller->lock);
    teller->parker = weir_parker_self(&room);
    for (;;) {
        if (tell_next(teller))
            continue;
        if (teller->closing && !teller->bodies)
            break;
        weir_time until = teller->closing || wr_list_empty(&teller->timers)
                              ? WEIR_FOREVER
                              : timer_of(teller->timers.next)->when;
        teller->asleep = true;
        wr_unlock(&teller->lock);
        weir_park(teller->parker, until);
        wr_lock(&teller->lock);
        teller->asleep = false;
    }
    teller->parker = NULL;
    wr_unlock(&teller->lock);
}
