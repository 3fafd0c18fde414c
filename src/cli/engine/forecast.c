/* How fast tasks end, and how long the rest will take.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/forecast.h"

static const double SECOND = 1e9;

double pace_get(const struct pace *pace)
{
    return pace->weight > 0 ? pace->rate / pace->weight : 0;
}

double pace_read(struct pace *pace, uint64_t ended, int64_t ns)
{
    double seconds = (double)ns / SECOND, share = seconds / (seconds + 3);

    if (ns > 0) {
        pace->rate += share * ((double)(ended - pace->before) / seconds - pace->rate);
        pace->weight += share * (1 - pace->weight);
        pace->before = ended;
    }
    return pace_get(pace);
}

/* Reckoned from the last end, not from now: or the rate would seem to fall until the next one. */
int64_t forecast_by_rate(const struct progress *progress, uint64_t left, weir_time now)
{
    double took = (double)(progress->last_end - progress->first_start), rest;

    if (!progress->ended)
        return -1;
    rest = took / (double)progress->ended * (double)left - (double)(now - progress->last_end);
    return rest > 0 ? (int64_t)rest : 0;
}

/* By how long its commands take, and how many may run at once. Those that run have a part of it behind them. */
static int64_t by_limit(const struct own_limits *group)
{
    double each, behind, rest;

    if (!group->limit || !group->ended)
        return 0;
    each = (double)group->busy_ns / (double)group->ended;
    behind = (double)group->running_ns;
    if (behind > each * (double)group->running)
        behind = each * (double)group->running;
    rest = (each * (double)group->left - behind) / (double)group->limit;
    return (int64_t)rest;
}

/* By what its pace lets start. */
static int64_t by_pace(const struct own_limits *group)
{
    return (int64_t)((double)group->per_start_ns * (double)(group->left - group->running));
}

int64_t forecast_at_least(const struct own_limits *group)
{
    int64_t limit = by_limit(group), pace = by_pace(group);

    return limit > pace ? limit : pace;
}

int64_t forecast_seconds(int64_t ns)
{
    return (ns / 1000000000 + 1) * 1000000000;
}
