/* Standstills: how long we have been stopped.
 * SPDX-License-Identifier: MIT */
#include "cli/standstill.h"

void standstill_begin(struct standstill *standstill)
{
    wr_lock(&standstill->lock);
    standstill->since = weir_now();
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
