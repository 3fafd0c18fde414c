/* Pauses between attempts, and the budget that retries come from. Pure.
 * SPDX-License-Identifier: MIT */
#ifndef WR_GUARD_BACKOFF_H
#define WR_GUARD_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

struct wr_backoff {
    int64_t first_ns, max_ns;
    double growth, jitter;
};

/* first, first x growth, first x growth^2, ... for attempt 1, 2, 3, ...; not above `most`. */
int64_t wr_grown_ns(int64_t first, double growth, int64_t most, uint64_t attempt);

/* ns x by, up to the end of time. */
int64_t wr_scaled_ns(int64_t ns, double by);

/* A number from 0 to 1, made of any random number. */
static inline double wr_chance(uint64_t luck)
{
    return (double)(luck >> 11) / (double)(UINT64_C(1) << 53);
}

/* The pause after the n-th attempt, n from 1. */
int64_t wr_backoff_ns(const struct wr_backoff *backoff, uint32_t attempt, uint64_t luck);

/* Tokens in hundredths of a percent of one, so that shares add up exactly: 0 <= tokens <= limit * WR_TOKEN. */
enum { WR_TOKEN = 10000 };
struct wr_budget {
    int64_t limit, share; /* share: earned per first call                                       */
    int64_t tokens;
};

void wr_budget_init(struct wr_budget *budget, int64_t limit, double percent);
void wr_budget_change(struct wr_budget *budget, int64_t limit, double percent);
void wr_budget_earn(struct wr_budget *budget);
bool wr_budget_can(const struct wr_budget *budget);
void wr_budget_spend(struct wr_budget *budget);
void wr_budget_give(struct wr_budget *budget);

#endif
