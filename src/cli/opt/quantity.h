/* Quantities as people write them: 30s, 1.5m, 250ms, 10/s, 100/m:20.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_QUANTITY_H
#define WR_CLI_QUANTITY_H

#include <stdbool.h>
#include <stdint.h>

/* ns, us, ms, s (also without unit), m, h, d; a fraction is fine, and so are several, the larger unit first:
 * 1h30m. False: not a duration, negative, or beyond 100 years. */
bool quantity_duration(int64_t *ns, const char *text);

/* N/PERIOD[:BURST], PERIOD a unit or a duration: 10/s, 5/250ms, 100/m:20. Burst is 1 unless given. All are
 * positive. */
struct quantity_rate {
    int64_t count, period_ns, burst;
};
bool quantity_rate(struct quantity_rate *rate, const char *text);

/* A whole number from `low` to `high`, in decimal digits, perhaps with a minus. */
bool quantity_count(int64_t *count, const char *text, int64_t low, int64_t high);

/* Bytes: a number with k, M, G or T behind it (1024 each), or none. False: not so, or beyond 2^62. */
bool quantity_bytes(int64_t *bytes, const char *text);

/* 512, 1.5k, 64M; at most 15 characters with the zero. */
void quantity_show_bytes(char out[16], int64_t bytes);

/* Short forms for displays, at most 15 characters with the zero: 850ms, 1.5s, 12s, 3m05s, 2h10m, 4d3h. */
void quantity_show_duration(char out[16], int64_t ns);

#endif
