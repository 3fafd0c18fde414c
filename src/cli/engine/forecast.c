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

/* A command may take longer than others did: then it is as good as done, no more. */
double forecast_parts(const struct work *work)
{
    double parts;

    if (!work->ended || work->busy_ns <= 0)
        return 0;
    parts = (double)work->running_ns * (double)work->ended / (double)work->busy_ns;
    return parts < (double)work->running ? parts : (double)work->running;
}

/* With the parts, since else the rate would seem to fall until the next task ends. */
int64_t forecast_by_rate(uint64_t left, double parts, uint64_t ended, int64_t took_ns)
{
    double rest = (double)left - parts;

    if (!ended)
        return -1;
    return rest > 0 ? (int64_t)(rest * (double)took_ns / ((double)ended + parts)) : 0;
}

/* By how long its commands take, and how many may run at once. */
static int64_t by_limit(const struct work *work)
{
    if (!work->limit || !work->ended)
        return 0;
    return (int64_t)(((double)work->left - forecast_parts(work)) * (double)work->busy_ns /
                     (double)work->ended / (double)work->limit);
}

/* By what its pace lets start. */
static int64_t by_pace(const struct work *work)
{
    return (int64_t)((double)work->per_start_ns * (double)(work->left - work->running));
}

int64_t forecast_at_least(const struct work *work)
{
    int64_t limit = by_limit(work), pace = by_pace(work);

    return limit > pace ? limit : pace;
}

int64_t forecast_seconds(int64_t ns)
{
    return (ns / 1000000000 + 1) * 1000000000;
}
