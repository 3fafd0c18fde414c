/* Frequency arithmetic: fixed windows, two windows by weight, and a log of moments.
 * SPDX-License-Identifier: MIT */
#include "guard/frequency.h"

#include "base/assert.h"
#include "guard/math.h"

#include <string.h>

size_t wr_frequency_size(weir_guard_mode mode, int64_t limit)
{
    size_t moments = mode == WEIR_EXACT && limit > 0 ? (size_t)limit : 0;

    return sizeof(struct wr_frequency) + moments * sizeof(weir_time);
}

void wr_frequency_init(struct wr_frequency *f, weir_guard_mode mode, int64_t limit, int64_t period,
                       weir_time now)
{
    f->limit = limit;
    f->period = period;
    f->mode = mode;
    f->begin = now - now % period;
    f->room = mode == WEIR_EXACT ? (uint32_t)wr_max(limit, 0) : 0;
}

/* ---- windows --------------------------------------------------------------------------------- */

/* The window that `now` is in, and what it and the one before have. */
static void windows(const struct wr_frequency *f, weir_time now, struct wr_frequency *out)
{
    weir_time begin = now - now % f->period;
    int64_t last = begin - f->begin == f->period ? f->current : 0;

    if (out != f)
        *out = *f;
    if (wr_sum(now, -f->begin) < f->period)
        return; /* also if the clock ran back */
    out->begin = begin;
    out->last = last;
    out->current = 0;
}

static int64_t elapsed(const struct wr_frequency *w, weir_time now)
{
    return wr_max(now - w->begin, 0);
}

/* floor(last * (d - e) / d) */
static int64_t carried(const struct wr_frequency *w, weir_time now)
{
    if (w->mode == WEIR_FIXED)
        return 0;
    return (int64_t)((__int128)w->last * (w->period - elapsed(w, now)) / w->period);
}

/* The least e from which on floor(last * (d - e) / d) <= room; room >= 0. */
static int64_t carried_until(int64_t last, int64_t d, int64_t room)
{
    WR_ASSERT(room >= 0);
    if (last <= room)
        return 0;
    return (int64_t)(d - wr_ceil_div((__int128)(room + 1) * d, last) + 1);
}

static weir_time windows_when(const struct wr_frequency *f, weir_time now, int64_t n)
{
    struct wr_frequency w;
    int64_t room;
    weir_time next;

    windows(f, now, &w);
    room = w.limit - w.current - n;
    if (room >= carried(&w, now))
        return now;
    if (room >= 0) /* here only if two windows are weighed: later in this one */
        return wr_sum(w.begin, carried_until(w.last, w.period, room));
    next = wr_sum(w.begin, w.period);
    if (w.mode == WEIR_FIXED)
        return next;
    return wr_sum(next, carried_until(w.current, w.period, w.limit - n));
}

/* ---- a log ----------------------------------------------------------------------------------- */

static weir_time moment(const struct wr_frequency *f, uint32_t i)
{
    return f->moment[(f->first + i) % f->room];
}

/* How many of the oldest have left the window; by halves, since they are in order. */
static uint32_t expired(const struct wr_frequency *f, weir_time now)
{
    uint32_t from = 0, to = f->count;

    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (wr_sum(moment(f, middle), f->period) <= now)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static weir_time exact_when(const struct wr_frequency *f, weir_time now, int64_t n)
{
    int64_t live = f->count - expired(f, now), over = live + n - f->limit;

    if (over <= 0)
        return now;
    return wr_sum(moment(f, (uint32_t)(f->count - live + over - 1)), f->period);
}

static void exact_take(struct wr_frequency *f, weir_time now, int64_t n)
{
    uint32_t gone = expired(f, now);

    if (f->count && f->count > gone) /* a clock that ran back must not break the order */
        now = wr_max(now, moment(f, f->count - 1));
    f->first = (f->first + gone) % f->room;
    f->count -= gone;
    for (int64_t i = 0; i < n; i++)
        f->moment[(f->first + f->count++) % f->room] = now;
}

/* Takes n moments `when` out of the middle; those after it move up. */
static void exact_give(struct wr_frequency *f, int64_t n, weir_time when)
{
    uint32_t to = 0;

    for (uint32_t i = 0; i < f->count; i++) {
        weir_time m = moment(f, i);
        if (m == when && n > 0)
            n--;
        else
            f->moment[(f->first + to++) % f->room] = m;
    }
    f->count = to;
}

/* ---- all ------------------------------------------------------------------------------------- */

weir_time wr_frequency_when(const struct wr_frequency *f, weir_time now, int64_t n)
{
    if (n > f->limit)
        return WEIR_FOREVER;
    return f->mode == WEIR_EXACT ? exact_when(f, now, n) : windows_when(f, now, n);
}

void wr_frequency_take(struct wr_frequency *f, weir_time now, int64_t n)
{
    if (f->mode == WEIR_EXACT) {
        exact_take(f, now, n);
        return;
    }
    windows(f, now, f);
    f->current += n;
}

void wr_frequency_give(struct wr_frequency *f, weir_time now, int64_t n, weir_time when)
{
    if (f->mode == WEIR_EXACT) {
        exact_give(f, n, when);
        return;
    }
    windows(f, now, f);
    if (when >= f->begin)
        f->current = wr_max(f->current - n, 0);
    else if (f->begin - when <= f->period)
        f->last = wr_max(f->last - n, 0);
}

int64_t wr_frequency_available(const struct wr_frequency *f, weir_time now)
{
    struct wr_frequency w;

    if (f->mode == WEIR_EXACT)
        return wr_max(f->limit - (f->count - expired(f, now)), 0);
    windows(f, now, &w);
    return wr_max(w.limit - w.current - carried(&w, now), 0);
}

bool wr_frequency_is_whole(const struct wr_frequency *f, weir_time now)
{
    struct wr_frequency w;

    if (f->mode == WEIR_EXACT)
        return f->count == expired(f, now);
    windows(f, now, &w);
    return w.current == 0 && (w.last == 0 || w.mode == WEIR_FIXED);
}
