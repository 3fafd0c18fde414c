/* Standstills: how long we have been stopped.
 * SPDX-License-Identifier: MIT */
#include "cli/standstill.h"

/* How long a command may take to start, and how long between two looks. */
enum { START_MS = 1000, LOOK_US = 100 };

static bool is_any_starting(struct standstill *standstill)
{
    bool starting;

    wr_lock(&standstill->lock);
    starting = standstill->starting > 0;
    wr_unlock(&standstill->lock);
    return starting;
}

bool standstill_begin(struct standstill *standstill)
{
    weir_time until = weir_in_ms(START_MS);

    wr_lock(&standstill->lock);
    standstill->since = weir_now();
    wr_unlock(&standstill->lock);
    while (is_any_starting(standstill)) {
        if (weir_now() >= until)
            return false;
        weir_sleep(weir_in_us(LOOK_US));
    }
    return true;
}

static bool may_start(struct standstill *standstill)
{
    bool may;

    wr_lock(&standstill->lock);
    may = !standstill->since;
    standstill->starting += may;
    wr_unlock(&standstill->lock);
    return may;
}

void standstill_hold_off(struct standstill *standstill)
{
    while (!may_start(standstill))
        weir_sleep(weir_in_us(LOOK_US));
}

void standstill_allow(struct standstill *standstill)
{
    wr_lock(&standstill->lock);
    standstill->starting--;
    wr_unlock(&standstill->lock);
}

int64_t standstill_end(struct standstill *standstill)
{
    int64_t ns;

    wr_lock(&standstill->lock);
    ns = weir_now() - standstill->since;
    standstill->ns += ns;
    standstill->since = 0;
    wr_unlock(&standstill->lock);
    return ns;
}

int64_t standstill_ns(struct standstill *standstill)
{
    int64_t ns;

    wr_lock(&standstill->lock);
    ns = standstill->ns;
    if (standstill->since)
        ns += weir_now() - standstill->since;
    wr_unlock(&standstill->lock);
    return ns;
}
