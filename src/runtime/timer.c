/* The timing wheel; see timer.h for its invariants.
 * SPDX-License-Identifier: MIT */
#include "runtime/timer.h"

#include "base/assert.h"

#include <stddef.h>

enum { DIGIT_BITS = 6, DIGIT_MASK = 63, SCAN_MAX = 16 };

void wr_wheel_init(struct wr_wheel *wheel, weir_time now)
{
    wheel->now_ = now;
    for (int l = 0; l < WR_WHEEL_LEVELS; l++) {
        wheel->occupied[l] = 0;
        for (int s = 0; s < WR_WHEEL_SLOTS; s++)
            wr_list_init(&wheel->slot[l][s]);
    }
}

static unsigned digit(weir_time time, int level)
{
    return (unsigned)((uint64_t)time >> (DIGIT_BITS * level)) & DIGIT_MASK;
}

static int level_of(weir_time now, weir_time deadline)
{
    uint64_t difference = (uint64_t)(now ^ deadline);

    return difference ? (63 - __builtin_clzll(difference)) / DIGIT_BITS : 0;
}

static void place(struct wr_wheel *wheel, struct wr_timer *timer)
{
    int level = level_of(wheel->now_, timer->deadline);
    unsigned s = digit(timer->deadline, level);

    wr_list_append(&wheel->slot[level][s], &timer->link);
    wheel->occupied[level] |= (uint64_t)1 << s;
}

void wr_timer_arm(struct wr_wheel *wheel, struct wr_timer *timer, weir_time deadline)
{
    WR_ASSERT_SLOW(wr_list_empty(&timer->link));
    timer->deadline = deadline > wheel->now_ ? deadline : wheel->now_;
    place(wheel, timer);
}

void wr_timer_cancel(struct wr_wheel *wheel, struct wr_timer *timer)
{
    struct wr_list *head = timer->link.next;
    bool alone = head == timer->link.prev && head != &timer->link;

    if (alone) { /* both neighbours are the slot itself, which gets empty now */
        size_t index = (size_t)(head - &wheel->slot[0][0]);
        wheel->occupied[index / WR_WHEEL_SLOTS] &= ~((uint64_t)1 << index % WR_WHEEL_SLOTS);
    }
    wr_list_remove(&timer->link);
}

/* The first occupied slot: its level, or -1; *start is the first moment it covers. Slots before the
 * present digit are empty by the invariant, so the lowest bit is the next in time. */
static int first_slot(const struct wr_wheel *wheel, unsigned *slot, weir_time *start)
{
    for (int level = 0; level < WR_WHEEL_LEVELS; level++) {
        if (!wheel->occupied[level])
            continue;
        int shift = DIGIT_BITS * level;
        uint64_t above = shift + DIGIT_BITS < 64 ? ~(uint64_t)0 << (shift + DIGIT_BITS) : 0;
        *slot = (unsigned)__builtin_ctzll(wheel->occupied[level]);
        *start = (weir_time)(((uint64_t)wheel->now_ & above) | (uint64_t)*slot << shift);
        return level;
    }
    return -1;
}

struct wr_timer *wr_wheel_expire(struct wr_wheel *wheel, weir_time now)
{
    weir_time start;
    unsigned s;
    int level;

    while ((level = first_slot(wheel, &s, &start)) >= 0 && start <= now) {
        struct wr_list *slot = &wheel->slot[level][s];
        if (start > wheel->now_)
            wheel->now_ = start;
        if (level == 0) {
            struct wr_timer *due = WR_CONTAINER(slot->next, struct wr_timer, link);
            wr_timer_cancel(wheel, due);
            return due;
        }
        /* The wheel entered a wide slot: spread its timers, in order, over the levels below. */
        struct wr_list spread;
        wr_list_init(&spread);
        wr_list_splice(&spread, slot);
        wheel->occupied[level] &= ~((uint64_t)1 << s);
        wr_list_each_safe(node, &spread)
            place(wheel, WR_CONTAINER(node, struct wr_timer, link));
    }
    if (now > wheel->now_)
        wheel->now_ = now;
    return NULL;
}

weir_time wr_wheel_next(const struct wr_wheel *wheel)
{
    weir_time start, first = WEIR_FOREVER;
    unsigned s;
    int seen = 0;
    int level = first_slot(wheel, &s, &start);

    if (level <= 0)
        return level < 0 ? WEIR_FOREVER : start;
    wr_list_each(node, &wheel->slot[level][s]) {
        weir_time deadline = WR_CONTAINER(node, struct wr_timer, link)->deadline;
        if (++seen > SCAN_MAX)
            return start;
        if (deadline < first)
            first = deadline;
    }
    return first;
}
