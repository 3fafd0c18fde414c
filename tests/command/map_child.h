/* The counters of map-child, in a file that all of them map.
 * SPDX-License-Identifier: MIT */
#ifndef WR_TESTS_MAP_CHILD_H
#define WR_TESTS_MAP_CHILD_H

#include <stdatomic.h>

struct gauge {
    _Atomic int now, peak, ran;
};

enum { GAUGES = 1024, SLOT_GAUGES = 512 };

#endif
