/* A ring of outcomes, or of seconds.
 * SPDX-License-Identifier: MIT */
#include "guard/outcomes.h"

#include "guard/math.h"

#include <string.h>

enum { SECOND = 1000000000 };

#define NS_MAX (INT64_MAX >> 2)
#define NS_MAX_BY_TIME \
    (INT64_C(1) << 42) /* more than an hour: two million such calls add up, and any usual ones */

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
    t->ns = (int64_t)((uint64_t)t->ns + (uint64_t)(sign * ns));
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
    o->sum.ns = (int64_t)((uint64_t)o->sum.ns - (uint64_t)b->ns);
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
    return wr_min(wr_max(ns, 0), o->by_time ? NS_MAX_BY_TIME : NS_MAX / o->size);
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

/* Forgets a slot that is written again at once: the number of slots stored stays. */
static void forget_slot(struct wr_outcomes *o, uint64_t slot)
{
    tally(&o->sum, -1, (int)(slot & 3), (int64_t)(slot >> 2));
    o->sum.stored++;
}

/* By count: the outcomes that stood there before go. */
static void replace_some(struct wr_outcomes *o, const uint32_t *ns, size_t count)
{
    int64_t at = o->at, size = o->size, sum = 0;

    for (size_t i = 0; i < count; i++) {
        uint64_t old = o->of.slot[at];

        if (o->sum.stored < size)
            o->sum.stored++;
        else if (old & (WR_FAILED | WR_SLOW))
            forget_slot(o, old);
        else
            sum -= (int64_t)(old >> 2);
        o->of.slot[at] = (uint64_t)ns[i] << 2;
        sum += ns[i];
        at = at + 1 == size ? 0 : at + 1;
    }
    o->sum.ns += sum;
    o->at = at;
}

/* At least as many as there are slots: the latest are written from where the next one would be, and nothing of what stood there
 * before is left. */
static void replace_all(struct wr_outcomes *o, const uint32_t *ns, size_t count)
{
    int64_t at = o->at = (o->at + (int64_t)count) % o->size;

    o->sum = (struct wr_tally){ .stored = o->size };
    for (size_t i = count - (size_t)o->size; i < count; i++) {
        o->of.slot[at] = (uint64_t)ns[i] << 2;
        o->sum.ns += ns[i];
        at = at + 1 == o->size ? 0 : at + 1;
    }
}

void wr_outcomes_add_fine(struct wr_outcomes *o, const uint32_t *ns, size_t count)
{
    struct wr_tally *bucket;
    int64_t sum = 0;

    if (!o->by_time) {
        if (count < (size_t)o->size)
            replace_some(o, ns, count);
        else
            replace_all(o, ns, count);
        return;
    }
    bucket = &o->of.bucket[o->second % o->size];
    for (size_t i = 0; i < count; i++)
        sum += ns[i];
    bucket->stored += (int64_t)count;
    bucket->ns = (int64_t)((uint64_t)bucket->ns + (uint64_t)sum);
    o->sum.stored += (int64_t)count;
    o->sum.ns = (int64_t)((uint64_t)o->sum.ns + (uint64_t)sum);
}
