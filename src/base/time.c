/* Deadlines from spans, saturating.
 * SPDX-License-Identifier: MIT */
#include "base/os.h"

#include <weir/time.h>

weir_time weir_now(void)
{
    return wr_os_now();
}

static weir_time in_units(int64_t span, int64_t unit_ns)
{
    weir_time now = wr_os_now();
    int64_t ns;
    weir_time when;

    if (span <= 0)
        return now;
    if (__builtin_mul_overflow(span, unit_ns, &ns) || __builtin_add_overflow(now, ns, &when))
        return WEIR_FOREVER;
    return when;
}

weir_time weir_in_ns(int64_t ns)
{
    return in_units(ns, 1);
}

weir_time weir_in_us(int64_t us)
{
    return in_units(us, 1000);
}

weir_time weir_in_ms(int64_t ms)
{
    return in_units(ms, 1000000);
}

weir_time weir_in_s(int64_t s)
{
    return in_units(s, 1000000000);
}
