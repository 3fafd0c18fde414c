/* Outcomes of the latest calls, by count or by time, and their sums. Pure: time is an argument.
 * SPDX-License-Identifier: MIT */
#ifndef WR_GUARD_OUTCOMES_H
#define WR_GUARD_OUTCOMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/time.h>

enum { WR_FAILED = 1, WR_SLOW = 2 }; /* bits of an outcome */

/* stored, failed, slow, slow_failed, ns: of one second, or of all. */
struct wr_tally {
    int64_t stored, failed, slow, slow_failed, ns;
};

/* By count: slot[0 .. stored) or all of them hold `ns << 2 | bits` of the latest calls.
 * By time: bucket[s % size] is that of second s, for `second - size < s <= second`.
 *     sum == sum of slots, or of buckets */
struct wr_outcomes {
    int64_t size;
    bool by_time;
    int64_t at;           /* the slot to write next                                           */
    int64_t second;       /* the latest second                                                */
    weir_time second_end; /* saves a division                                                 */
    struct wr_tally sum;
    union {
        uint64_t slot[1];
        struct wr_tally bucket[1];
    } of;
};

/* Bytes that the struct needs for that many slots or seconds. */
size_t wr_outcomes_size(int64_t size, bool by_time);

/* Forgets all. `size` is at most what there is room for. */
void wr_outcomes_reset(struct wr_outcomes *o, int64_t size, bool by_time, weir_time now);

void wr_outcomes_add(struct wr_outcomes *o, weir_time now, int bits, int64_t ns);

/* The same for calls that went well, all of the latest second. */
void wr_outcomes_add_fine(struct wr_outcomes *o, const uint32_t *ns, size_t count);

/* Forgets seconds that have passed. By count: nothing to do. */
void wr_outcomes_refresh(struct wr_outcomes *o, weir_time now);

#endif
