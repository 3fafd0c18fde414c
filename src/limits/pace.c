/* The arithmetic of pace; see pace.h.
 * SPDX-License-Identifier: MIT */
#include "limits/pace.h"

bool wr_pace_from(struct wr_pace *out, const weir_pace *pace)
{
    int64_t interval;

    *out = (struct wr_pace){ 0 };
    if (!pace->starts)
        return true;
    interval = pace->period_ns / pace->starts;
    out->interval = interval > 0 ? interval : 1;
    if (!__builtin_mul_overflow(out->interval, pace->burst > 1 ? pace->burst - 1 : 0, &out->slack))
        return true;
    out->slack = INT64_MAX;
    return false;
}

static int64_t add_capped(int64_t a, int64_t b)
{
    int64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

weir_time wr_pace_after(const struct wr_pace *pace, weir_time next, weir_time start)
{
    return add_capped(next > start ? next : start, pace->interval);
}

/* How far `next` is ahead of the clock. */
static int64_t spent(weir_time next, weir_time now)
{
    return next > now ? next - now : 0;
}

uint32_t wr_pace_allows(const struct wr_pace *pace, weir_time next, uint32_t most, weir_time now)
{
    int64_t left = pace->slack - spent(next, now);

    if (left < 0)
        return 0;
    left = left / pace->interval + 1;
    return left < most ? (uint32_t)left : most;
}

/* span * to / from, at most INT64_MAX. */
static int64_t scaled(int64_t span, int64_t from, int64_t to)
{
    int64_t whole, part;

    if (__builtin_mul_overflow(span / from, to, &whole))
        return INT64_MAX;
    if (__builtin_mul_overflow(span % from, to, &part)) /* intervals of years: near enough */
        return add_capped(whole, (int64_t)((double)(span % from) / (double)from * (double)to));
    return add_capped(whole, part / from);
}

weir_time wr_pace_change(const struct wr_pace *from, const struct wr_pace *to, weir_time next,
                         weir_time now)
{
    int64_t had = add_capped(from->slack, from->interval);
    int64_t most = add_capped(to->slack, to->interval), ahead = spent(next, now), left;

    if (!from->interval || !next)
        return 0;
    left = scaled(had > ahead ? had - ahead : 0, from->interval, to->interval);
    return add_capped(now, left < most ? most - left : 0);
}
