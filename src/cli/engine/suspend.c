/* Suspends: how long we have been stopped.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/suspend.h"

/* How long a command may take to start, and how long between two looks. */
enum { START_MS = 1000, LOOK_US = 100 };

static bool is_any_starting(struct suspend *suspend)
{
    bool starting;

    wr_lock(&suspend->lock);
    starting = suspend->starting > 0;
    wr_unlock(&suspend->lock);
    return starting;
}

bool suspend_begin(struct suspend *suspend)
{
    weir_time until = weir_in_ms(START_MS);

    wr_lock(&suspend->lock);
    suspend->since = weir_now();
    wr_unlock(&suspend->lock);
    while (is_any_starting(suspend)) {
        if (weir_now() >= until)
            return false;
        weir_sleep(weir_in_us(LOOK_US));
    }
    return true;
}

static bool may_start(struct suspend *suspend)
{
    bool may;

    wr_lock(&suspend->lock);
    may = !suspend->since;
    suspend->starting += may;
    wr_unlock(&suspend->lock);
    return may;
}

void suspend_hold_off(struct suspend *suspend)
{
    while (!may_start(suspend))
        weir_sleep(weir_in_us(LOOK_US));
}

void suspend_allow(struct suspend *suspend)
{
    wr_lock(&suspend->lock);
    suspend->starting--;
    wr_unlock(&suspend->lock);
}

int64_t suspend_end(struct suspend *suspend)
{
    int64_t ns;

    wr_lock(&suspend->lock);
    ns = weir_now() - suspend->since;
    suspend->ns += ns;
    suspend->since = 0;
    wr_unlock(&suspend->lock);
    return ns;
}

int64_t suspend_ns(struct suspend *suspend)
{
    int64_t ns;

    wr_lock(&suspend->lock);
    ns = suspend->ns;
    if (suspend->since)
        ns += weir_now() - suspend->since;
    wr_unlock(&suspend->lock);
    return ns;
}
