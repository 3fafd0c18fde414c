/* Rate arithmetic: cycles with reservations ahead (SEMANTICS 4.5), and the generic cell rate algorithm.
 * SPDX-License-Identifier: MIT */
#include "guard/rate.h"

#include "guard/math.h"

/* ---- cycles ---------------------------------------------------------------------------------- */

static weir_time cycle_begin(const struct wr_rate *rate, int64_t cycle)
{
    return wr_sum(rate->start, wr_product(cycle, rate->period));
}

/* Cuts off the parts of holes that are of past cycles; the holes that are left come first. */
static void tidy(struct wr_rate *rate)
{
    int to = 0;

    for (int from = 0; from < WR_HOLES_MAX; from++) {
        struct wr_hole hole = rate->hole[from];
        if (hole.at > rate->limit) {
            hole.n -= wr_min(hole.at - rate->limit, hole.n);
            hole.at = rate->limit;
        }
        rate->hole[from].n = 0;
        if (hole.n)
            rate->hole[to++] = hole;
    }
}

/* Moves to the cycle of `now`. A clock that runs back leaves all as it is. */
static void refresh(struct wr_rate *rate, weir_time now)
{
    int64_t passed, more;

    if (now < rate->cycle_end)
        return;
    passed = wr_sum(now, -rate->start) / rate->period - rate->cycle;
    more = wr_product(passed, rate->limit);
    for (int i = 0; i < WR_HOLES_MAX && rate->hole[i].n; i++)
        rate->hole[i].at = wr_sum(rate->hole[i].at, more);
    tidy(rate);
    rate->available = wr_min(wr_sum(rate->available, more), rate->limit);
    rate->cycle += passed;
    rate->cycle_end = cycle_begin(rate, rate->cycle + 1);
}

/* Cycles from the present one to that of position x. */
static int64_t cycles_to(const struct wr_rate *rate, int64_t x)
{
    return x >= 1 ? 0 : wr_clip(wr_ceil_div(1 - (__int128)x, rate->limit));
}

static int64_t wait_for(const struct wr_rate *rate, weir_time now, int64_t last)
{
    int64_t cycles = cycles_to(rate, last);
    weir_time from = wr_max(now, cycle_begin(rate, rate->cycle));

    if (cycles == 0)
        return 0;
    return wr_sum(wr_sum(rate->cycle_end, -from), wr_product(rate->period, cycles - 1));
}

/* The earliest hole that n fit into whole. */
static struct wr_hole *hole_for(struct wr_rate *rate, int64_t n)
{
    struct wr_hole *best = NULL;

    for (int i = 0; i < WR_HOLES_MAX && rate->hole[i].n; i++)
        if (rate->hole[i].n >= n && (!best || rate->hole[i].at > best->at))
            best = &rate->hole[i];
    return best;
}

static bool cycles_take(struct wr_rate *rate, weir_time now, int64_t n, int64_t patience,
                        struct wr_reserved *out)
{
    struct wr_hole *hole = hole_for(rate, n);
    int64_t at = hole ? hole->at : rate->available;

    out->at = at;
    out->part = rate->cycle;
    out->wait = wait_for(rate, now, wr_sum(at, 1 - n));
    if (out->wait > patience)
        return false;
    if (!hole) {
        rate->available = wr_sum(at, -n);
        return true;
    }
    hole->at -= n;
    hole->n -= n;
    if (!hole->n)
        tidy(rate);
    return true;
}

/* Holes at the end of the tape are no holes. */
static void mend(struct wr_rate *rate)
{
    for (int i = 0; i < WR_HOLES_MAX && rate->hole[i].n; i++)
        if (rate->hole[i].at - rate->hole[i].n == rate->available) {
            rate->available = rate->hole[i].at;
            rate->hole[i].n = 0;
            tidy(rate);
            i = -1;
        }
}

static void cycles_give(struct wr_rate *rate, int64_t n, const struct wr_reserved *r)
{
    int64_t at = wr_sum(r->at, wr_product(rate->cycle - r->part, rate->limit));
    int i = 0;

    if (at > rate->limit) { /* positions of past cycles are lost */
        n -= wr_min(at - rate->limit, n);
        at = rate->limit;
    }
    while (i < WR_HOLES_MAX && rate->hole[i].n)
        i++;
    if (n > 0 && at - n == rate->available)
        rate->available = at;
    else if (n > 0 && at - n > rate->available && i < WR_HOLES_MAX)
        rate->hole[i] = (struct wr_hole){ at, n };
    mend(rate);
}

/* ---- smooth ---------------------------------------------------------------------------------- */

/* A moment as an exact fraction: whole + part / limit. */
struct moment {
    weir_time whole;
    int64_t part;
};

static struct moment later(const struct wr_rate *rate, struct moment m, int64_t n)
{
    __int128 step = (__int128)n * rate->period, part;

    if (m.whole == WEIR_FOREVER)
        return m;
    part = (__int128)m.part + step % rate->limit;
    m.whole = wr_clip((__int128)m.whole + step / rate->limit + part / rate->limit);
    m.part = m.whole == WEIR_FOREVER ? 0 : (int64_t)(part % rate->limit);
    return m;
}

static struct moment earliest(const struct wr_rate *rate, weir_time now)
{
    if (rate->next >= now)
        return (struct moment){ rate->next, rate->next_part };
    return (struct moment){ now, 0 };
}

/* Until the arrival time after n more is at most a burst ahead. */
static int64_t smooth_wait(const struct wr_rate *rate, weir_time now, int64_t n)
{
    struct moment after = later(rate, earliest(rate, now), n);
    __int128 slack = (__int128)rate->burst * rate->period;
    __int128 ahead; /* in 1 / limit ns */

    if (after.whole == WEIR_FOREVER)
        return INT64_MAX;
    ahead = ((__int128)after.whole - now) * rate->limit + after.part - slack;
    return ahead <= 0 ? 0 : wr_clip(wr_ceil_div(ahead, rate->limit));
}

static bool smooth_take(struct wr_rate *rate, weir_time now, int64_t n, int64_t patience,
                        struct wr_reserved *out)
{
    struct moment before = earliest(rate, now), after = later(rate, before, n);

    out->wait = smooth_wait(rate, now, n);
    out->at = before.whole;
    out->part = before.part;
    if (out->wait > patience || out->wait == INT64_MAX)
        return false;
    rate->next = after.whole;
    rate->next_part = after.part;
    return true;
}

static void smooth_give(struct wr_rate *rate, int64_t n, const struct wr_reserved *r)
{
    struct moment after = later(rate, (struct moment){ r->at, r->part }, n);

    if (rate->next == after.whole && rate->next_part == after.part) {
        rate->next = r->at;
        rate->next_part = r->part;
    }
}

/* Calls that fit into the burst now. */
static int64_t smooth_left(const struct wr_rate *rate, weir_time now)
{
    struct moment m = earliest(rate, now);
    __int128 slack = (__int128)rate->burst * rate->period;
    __int128 ahead = ((__int128)m.whole - now) * rate->limit + m.part;
    __int128 left = slack - ahead;

    if (m.whole == WEIR_FOREVER)
        return INT64_MIN;
    return wr_clip(left >= 0 ? left / rate->period : -wr_ceil_div(-left, rate->period));
}

/* The arrival time at which exactly `left` calls (a fraction counts) fit into the burst. */
static void smooth_set_ahead(struct wr_rate *rate, weir_time now, __int128 ahead)
{
    __int128 whole = now + ahead / rate->limit;

    rate->next = wr_clip(whole);
    rate->next_part = rate->next == WEIR_FOREVER ? 0 : (int64_t)(ahead % rate->limit);
}

/* ---- both ------------------------------------------------------------------------------------ */

void wr_rate_init(struct wr_rate *rate, int64_t limit, int64_t period, int64_t burst, bool smooth,
                  weir_time now)
{
    *rate = (struct wr_rate){ .limit = limit,
                              .period = period,
                              .burst = burst,
                              .smooth = smooth,
                              .start = now,
                              .cycle_end = wr_sum(now, period),
                              .available = limit };
}

void wr_rate_delay(struct wr_rate *rate, weir_time first)
{
    struct moment m = later(rate, (struct moment){ first, 0 }, rate->burst - 1);

    rate->next = m.whole;
    rate->next_part = m.part;
}

int64_t wr_rate_wait(const struct wr_rate *rate, weir_time now, int64_t n)
{
    struct wr_rate copy = *rate;
    struct wr_reserved reserved;

    if (rate->smooth)
        return smooth_wait(rate, now, n);
    refresh(&copy, now);
    cycles_take(&copy, now, n, -1, &reserved);
    return reserved.wait;
}

bool wr_rate_take(struct wr_rate *rate, weir_time now, int64_t n, int64_t patience,
                  struct wr_reserved *reserved)
{
    reserved->era = rate->era;
    if (rate->smooth)
        return smooth_take(rate, now, n, patience, reserved);
    refresh(rate, now);
    return cycles_take(rate, now, n, patience, reserved);
}

void wr_rate_give(struct wr_rate *rate, weir_time now, int64_t n,
                  const struct wr_reserved *reserved)
{
    if (!rate->smooth)
        refresh(rate, now);
    if (reserved->era != rate->era)
        return;
    if (rate->smooth)
        smooth_give(rate, n, reserved);
    else
        cycles_give(rate, n, reserved);
}

int64_t wr_rate_available(const struct wr_rate *rate, weir_time now)
{
    struct wr_rate copy = *rate;
    int64_t sum;

    if (rate->smooth)
        return smooth_left(rate, now);
    refresh(&copy, now);
    sum = copy.available;
    for (int i = 0; i < WR_HOLES_MAX; i++)
        sum = wr_sum(sum, copy.hole[i].n);
    return sum;
}

int64_t wr_rate_drain(struct wr_rate *rate, weir_time now)
{
    int64_t left = wr_max(wr_rate_available(rate, now), 0);

    if (!rate->smooth) {
        refresh(rate, now);
        for (int i = 0; i < WR_HOLES_MAX; i++)
            if (rate->hole[i].at >= 1)
                rate->hole[i].n = 0;
        tidy(rate);
        rate->available = wr_min(rate->available, 0);
    } else if (left > 0) {
        smooth_set_ahead(rate, now, (__int128)rate->burst * rate->period);
    }
    return left;
}

static void smooth_change(struct wr_rate *rate, weir_time now, int64_t limit, int64_t period,
                          int64_t burst)
{
    struct moment m = earliest(rate, now);
    __int128 ahead = ((__int128)m.whole - now) * rate->limit + m.part;
    __int128 spent = ahead / rate->period, rest = ahead % rate->period; /* in calls */

    spent = spent * period + (rest * period + rate->period - 1) / rate->period;
    /* A burst that grows is not filled by that: what was left is left. If nothing was spent, all is there. */
    if (spent > 0)
        spent += (__int128)(burst - rate->burst) * period;
    if (spent > (__int128)INT64_MAX * limit || m.whole == WEIR_FOREVER)
        spent = (__int128)INT64_MAX * limit;
    rate->limit = limit;
    rate->period = period;
    rate->burst = burst;
    smooth_set_ahead(rate, now, spent > 0 ? spent : 0);
}

void wr_rate_change(struct wr_rate *rate, weir_time now, int64_t limit, int64_t period,
                    int64_t burst)
{
    rate->era++;
    if (rate->smooth) {
        smooth_change(rate, now, limit, period, burst);
        return;
    }
    refresh(rate, now);
    if (period !=
        rate->period) { /* counted anew from now: an earlier start would earn in hindsight */
        rate->start = wr_max(now, cycle_begin(rate, rate->cycle));
        rate->cycle = 0;
        rate->period = period;
        rate->cycle_end = cycle_begin(rate, 1);
    }
    for (int i = 0; i < WR_HOLES_MAX && (limit != rate->limit); i++)
        rate->hole[i].n = 0;
    rate->limit = limit;
    rate->available = wr_min(rate->available, limit);
}

bool wr_rate_is_whole(const struct wr_rate *rate, weir_time now)
{
    if (rate->smooth)
        return rate->next <= now;
    return wr_rate_available(rate, now) == rate->limit;
}
