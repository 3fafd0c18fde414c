/* A clock's thread, and the alarms that it fires; see clock.h.
 * SPDX-License-Identifier: MIT */
#include "runtime/clock.h"

#include "base/assert.h"
#include "base/os.h"

#include <stddef.h>
#include <weir/error.h>

static void ring(struct wr_clock *clock)
{
    wr_add(&clock->bell, 1, seq_cst);
    wr_os_futex_wake(&clock->bell, 1);
}

static void fire_due(struct wr_clock *clock, weir_time now)
{
    struct wr_timer *timer;

    while ((timer = wr_wheel_expire(clock->wheel, now))) {
        struct wr_alarm *alarm = WR_CONTAINER(timer, struct wr_alarm, timer);
        clock->firing = alarm;
        wr_unlock(&clock->lock);
        alarm->fired(alarm, now); /* the alarm may be gone afterwards */
        wr_lock(&clock->lock);
        clock->firing = NULL;
    }
}

static void clock_main(void *clock_arg)
{
    struct wr_clock *clock = clock_arg;

    wr_lock(&clock->lock);
    while (!clock->stopping) {
        uint32_t bell = wr_load(&clock->bell, seq_cst);
        weir_time now = wr_os_now();
        fire_due(clock, now);
        weir_time until = clock->sleeps_until = wr_wheel_next(clock->wheel);
        wr_unlock(&clock->lock);
        wr_os_futex_wait(&clock->bell, bell, until);
        wr_lock(&clock->lock);
    }
    wr_unlock(&clock->lock);
}

/* Under the lock. */
static int start(struct wr_clock *clock)
{
    int rc;

    if (clock->wheel)
        return 0;
    clock->wheel = wr_os_alloc(sizeof(*clock->wheel));
    if (!clock->wheel)
        return WEIR_ENOMEM;
    wr_wheel_init(clock->wheel, wr_os_now());
    rc = wr_os_thread_start(&clock->thread, clock_main, clock, "weir-clock");
    if (rc) {
        wr_os_free(clock->wheel);
        clock->wheel = NULL;
    }
    return rc;
}

int wr_clock_start(struct wr_clock *clock)
{
    int rc;

    wr_lock(&clock->lock);
    rc = start(clock);
    wr_unlock(&clock->lock);
    return rc;
}

bool wr_clock_set(struct wr_clock *clock, struct wr_alarm *alarm, weir_time when)
{
    bool newly = false;

    wr_lock(&clock->lock);
    if (clock->wheel && !clock->stopping) {
        newly = wr_list_empty(&alarm->timer.link);
        wr_timer_cancel(clock->wheel, &alarm->timer);
        wr_timer_arm(clock->wheel, &alarm->timer, when);
        if (when < clock->sleeps_until)
            ring(clock);
    }
    wr_unlock(&clock->lock);
    return newly;
}

bool wr_clock_cancel(struct wr_clock *clock, struct wr_alarm *alarm)
{
    bool armed;

    wr_lock(&clock->lock);
    armed = clock->wheel && !wr_list_empty(&alarm->timer.link);
    if (armed)
        wr_timer_cancel(clock->wheel, &alarm->timer);
    wr_unlock(&clock->lock);
    return armed;
}

void wr_clock_forget(struct wr_clock *clock, struct wr_alarm *alarm)
{
    wr_lock(&clock->lock);
    if (clock->wheel)
        wr_timer_cancel(clock->wheel, &alarm->timer);
    while (clock->firing == alarm) { /* for a few instructions more */
        wr_unlock(&clock->lock);
        wr_os_yield();
        wr_lock(&clock->lock);
    }
    wr_unlock(&clock->lock);
}

void wr_clock_stop(struct wr_clock *clock)
{
    wr_lock(&clock->lock);
    clock->stopping = true;
    ring(clock);
    wr_unlock(&clock->lock);
    if (!clock->wheel)
        return;
    wr_os_thread_join(&clock->thread);
    wr_lock(&clock->lock);
    wr_os_free(clock->wheel);
    clock->wheel = NULL;
    wr_unlock(&clock->lock);
}
