/* A clock: a thread that fires alarms, each at its time. It starts when it is first needed.
 *
 * Callers may hold locks of their own when they set or cancel an alarm; the thread holds none while one fires.
 * SPDX-License-Identifier: MIT */
#ifndef WR_RUNTIME_CLOCK_H
#define WR_RUNTIME_CLOCK_H

#include "base/lock.h"
#include "base/os.h"
#include "runtime/timer.h"

/* `fired` is called at a time, on the clock's thread, with no lock held. It must not run code of the user's: if
 * that blocked the thread, all other alarms would be late. */
struct wr_alarm {
    struct wr_timer timer;
    void (*fired)(struct wr_alarm *alarm, weir_time now);
};

static inline void wr_alarm_init(struct wr_alarm *alarm,
                                 void (*fired)(struct wr_alarm *alarm, weir_time now))
{
    wr_timer_init(&alarm->timer);
    alarm->fired = fired;
}

struct wr_clock {
    struct wr_lock lock;
    struct wr_wheel *wheel; /* NULL: not started                                  */
    weir_time sleeps_until;
    bool stopping;
    _Atomic uint32_t bell;   /* counts rings; a futex                              */
    struct wr_alarm *firing; /* whose `fired` is being called; NULL: none */
    struct wr_os_thread thread;
};

/* Starts the clock, unless it runs. WEIR_ENOMEM, WEIR_EAGAIN. */
int wr_clock_start(struct wr_clock *clock);

/* Has the alarm fire at `when`, instead of any time asked for before. The clock must run. True: it was not
 * armed, and is now. */
bool wr_clock_set(struct wr_clock *clock, struct wr_alarm *alarm, weir_time when);

/* Disarms the alarm. True: it was armed. False: it was not; it may be about to fire at this moment. */
bool wr_clock_cancel(struct wr_clock *clock, struct wr_alarm *alarm);

/* Forgets the alarm: when this returns it does not fire, and will not. Do not call this under a lock that the
 * alarm's `fired` takes. */
void wr_clock_forget(struct wr_clock *clock, struct wr_alarm *alarm);

void wr_clock_stop(struct wr_clock *clock);

#endif
