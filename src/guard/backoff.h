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
