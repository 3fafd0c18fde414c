/* A ring of outcomes, or of seconds.
 * SPDX-License-Identifier: MIT */
#include "guard/outcomes.h"

#include "guard/math.h"

#include <string.h>

enum { SECOND = 1000000000 };

#define NS_MAX (INT64_MAX >> 2)

size_t wr_outcomes_size(int64_t size, bool by_time)
{
    size_t each = by_time ? sizeof(struct wr_tally) : sizeof(uint64_t);

    return offsetof(struct wr_outcomes, of) + (size_t)size * each;
}

void wr_outcomes_reset(struct wr_outcomes *o, int64_t size, bool by_time, weir_time now)
{
    memset(o, 0, wr_outcomes_size(size, by_time));
    o->size = size;
    o->by_time = by_time;
    o->second = now / SECOND;
    o->second_end = wr_product(o->second + 1, SECOND);
}

static void tally(struct wr_tally *t, int64_t sign, int bits, int64_t ns)
{
    t->stored += sign;
    t->ns += sign * ns;
    if (bits) {
        t->failed += bits & WR_FAILED ? sign : 0;
        t->slow += bits & WR_SLOW ? sign : 0;
        t->slow_failed += bits == (WR_FAILED | WR_SLOW) ? sign : 0;
    }
}

static void forget_bucket(struct wr_outcomes *o, struct wr_tally *b)
{
    o->sum.stored -= b->stored;
    o->sum.failed -= b->failed;
    o->sum.slow -= b->slow;
    o->sum.slow_failed -= b->slow_failed;
    o->sum.ns -= b->ns;
    *b = (struct wr_tally){ 0 };
}

void wr_outcomes_refresh(struct wr_outcomes *o, weir_time now)
{
    int64_t second, gone;

    if (!o->by_time || now < o->second_end)
        return;
    second = now / SECOND;
    gone = wr_min(second - o->second, o->size);
    for (int64_t i = 1; i <= gone; i++)
        forget_bucket(o, &o->of.bucket[(o->second + i) % o->size]);
    o->second = second;
    o->second_end = wr_product(second + 1, SECOND);
}

/* Durations are cut so that a window full of them can be added up. */
static int64_t cut(const struct wr_outcomes *o, int64_t ns)
{
    return wr_min(wr_max(ns, 0), o->by_time ? NS_MAX >> 32 : NS_MAX / o->size);
}

void wr_outcomes_add(struct wr_outcomes *o, weir_time now, int bits, int64_t ns)
{
    uint64_t *slot;

    if (ns >> 30)
        ns = cut(o, ns);
    if (o->by_time) {
        wr_outcomes_refresh(o, now);
        tally(&o->of.bucket[o->second % o->size], 1, bits, ns);
        tally(&o->sum, 1, bits, ns);
        return;
    }
    slot = &o->of.slot[o->at];
    if (o->sum.stored == o->size)
        tally(&o->sum, -1, (int)(*slot & 3), (int64_t)(*slot >> 2));
    *slot = (uint64_t)ns << 2 | (uint64_t)bits;
    tally(&o->sum, 1, bits, ns);
    o->at = o->at + 1 == o->size ? 0 : o->at + 1;
}
