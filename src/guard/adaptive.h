/* Adaptive concurrency: a limit that follows the latency of calls. Pure.
 * SPDX-License-Identifier: MIT */
#ifndef WR_GUARD_ADAPTIVE_H
#define WR_GUARD_ADAPTIVE_H

#include <stdbool.h>
#include <stdint.h>
#include <weir/guard.h>

/* limit_min <= exact <= limit_max; the limit that counts is `exact`, cut to a whole number. */
struct wr_adaptive {
    weir_guard_mode mode;
    int64_t limit_min, limit_max, latency_ns;
    double exact;
    /* So many calls that were under way when the limit fell have yet to end: they tell nothing new */
    int64_t quiet;
    /* Gradient: */
    double usual_ns; /* average of the latest `averaged` calls                                   */
    int64_t averaged;
    double least_ns;  /* average without a queue, as far as is known; 0: no call yet              */
    int64_t samples;  /* since it was last measured                                               */
    int64_t probing;  /* so many more calls with half the limit, to measure it again              */
    double probed_ns; /* sum                                                                      */
    double before;    /* the limit before that                                                    */
};

void wr_adaptive_init(struct wr_adaptive *a, weir_guard_mode mode, int64_t limit, int64_t limit_min,
                      int64_t limit_max, int64_t latency_ns);
int64_t wr_adaptive_limit(const struct wr_adaptive *a);

/* A call has ended, while `used` were under way, itself included. */
void wr_adaptive_end(struct wr_adaptive *a, bool failed, int64_t ns, int64_t used);

/* Other bounds. */
void wr_adaptive_bound(struct wr_adaptive *a, int64_t limit, int64_t limit_min, int64_t limit_max,
                       int64_t latency_ns);

#endif
