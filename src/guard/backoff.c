/* Pauses that grow, and a budget for retries.
 * SPDX-License-Identifier: MIT */
#include "guard/backoff.h"

#include "guard/math.h"

int64_t wr_backoff_ns(const struct wr_backoff *backoff, uint32_t attempt, uint64_t luck)
{
    double ns = (double)backoff->first_ns, most = (double)backoff->max_ns;
    double chance = (double)(luck >> 11) / (double)(UINT64_C(1) << 53);

    for (uint32_t i = 1; i < attempt && ns < most && backoff->growth > 1; i++)
        ns *= backoff->growth;
    if (ns > most)
        ns = most;
    ns -= ns * backoff->jitter * chance;
    return ns >= 9e18 ? INT64_MAX : (int64_t)ns;
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
    budget->share = (int64_t)(percent * (WR_TOKEN / 100) + 0.5);
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
