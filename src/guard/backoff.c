/* Pauses that grow, and a budget for retries.
 * SPDX-License-Identifier: MIT */
#include "guard/backoff.h"

#include "guard/math.h"

int64_t wr_grown_ns(int64_t first, double growth, int64_t most, uint64_t attempt)
{
    double ns = (double)first;

    if (attempt <= 1 || growth <= 1 || first >= most)
        return wr_min(first, most); /* to the nanosecond, of whatever size */
    for (uint64_t i = 1; i < attempt && ns < (double)most; i++)
        ns *= growth;
    return ns >= (double)most ? most : (int64_t)ns;
}

int64_t wr_scaled_ns(int64_t ns, double by)
{
    double scaled = (double)ns * by;

    return by == 1 ? ns : scaled >= 9e18 ? INT64_MAX : (int64_t)scaled;
}

int64_t wr_backoff_ns(const struct wr_backoff *backoff, uint32_t attempt, uint64_t luck)
{
    int64_t ns = wr_grown_ns(backoff->first_ns, backoff->growth, backoff->max_ns, attempt);

    return wr_scaled_ns(ns, 1 - backoff->jitter * wr_chance(luck));
}

static void bound(struct wr_budget *budget)
{
    budget->tokens = wr_min(budget->tokens, budget->limit * WR_TOKEN);
}

void wr_budget_init(struct wr_budget *budget, int64_t limit, double percent)
{
    wr_budget_change(budget, limit, percent);
    budget->tokens = limit * WR_TOKEN;
}

void wr_budget_change(struct wr_budget *budget, int64_t limit, double percent)
{
    budget->limit = limit;
    budget->share = (int64_t)(percent * (WR_TOKEN / 100.0) + 0.5);
    bound(budget);
}

void wr_budget_earn(struct wr_budget *budget)
{
    budget->tokens += budget->share;
    bound(budget);
}

bool wr_budget_can(const struct wr_budget *budget)
{
    return budget->tokens >= WR_TOKEN;
}

void wr_budget_spend(struct wr_budget *budget)
{
    budget->tokens -= WR_TOKEN;
}

void wr_budget_give(struct wr_budget *budget)
{
    budget->tokens += WR_TOKEN;
    bound(budget);
}
