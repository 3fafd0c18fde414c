/* Points in time and deadlines.
 *
 * weir knows points in time, not durations: every call that waits takes the moment at which it must
 * give up, so one budget runs through nested calls unchanged. The clock is monotonic and counts
 * nanoseconds; its zero means nothing.
 * SPDX-License-Identifier: MIT */
#ifndef WEIR_TIME_H
#define WEIR_TIME_H

#include <weir/defs.h>

WEIR_BEGIN_DECLS

typedef int64_t weir_time; /* absolute, monotonic, ns */

#define WEIR_FOREVER      INT64_MAX      /* a deadline that never comes                        */
#define WEIR_NOW_OR_NEVER ((weir_time)0) /* a deadline that has passed: look once, do not wait */

/* The present moment. Never below 1. */
weir_time weir_now(void);

/* The moment that far from now. Sums saturate at WEIR_FOREVER; negative spans give the present. */
weir_time weir_in_ns(int64_t ns);
weir_time weir_in_us(int64_t us);
weir_time weir_in_ms(int64_t ms);
weir_time weir_in_s(int64_t s);

WEIR_END_DECLS

#endif
