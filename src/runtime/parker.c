/* Parking for code outside the library: weir/sys/park.h.
 * SPDX-License-Identifier: MIT */
#include "runtime/worker.h"

#include <weir/sys/park.h>

_Static_assert(sizeof(struct wr_parker) <= sizeof(weir_parker_room), "room for a thread's parker");

weir_parker *weir_parker_self(weir_parker_room *room)
{
    return (weir_parker *)wr_parker_self((struct wr_parker *)room);
}

int weir_park(weir_parker *self, weir_time deadline)
{
    return wr_park((struct wr_parker *)self, deadline);
}

void weir_unpark(weir_parker *parker)
{
    wr_unpark((struct wr_parker *)parker);
}

bool weir_on_worker(void)
{
    return wr_worker_self() != NULL;
}
