/* What group_for answers: brought into range, since nobody can be told that it makes no sense.
 * SPDX-License-Identifier: MIT */
#include "executor/admit.h"
#include "executor/policy.h"

#include <string.h>

static int64_t limit_in_range(int64_t limit)
{
    if (limit < 0)
        return 1;
    return limit && !wr_limit_from(limit) ? WEIR_NO_LIMIT : limit;
}

static int64_t queue_in_range(int64_t queue_max)
{
    return queue_max < 0 ? WEIR_NO_QUEUE : limit_in_range(queue_max);
}

static int64_t weight_in_range(int64_t weight)
{
    return weight < 1 ? 1 : weight > WEIR_WEIGHT_MAX ? WEIR_WEIGHT_MAX : weight;
}

static int64_t span_in_range(int64_t ms)
{
    if (ms < 0)
        return 1;
    return ms > WEIR_SPAN_MAX_MS && ms != WEIR_NO_LIMIT ? WEIR_SPAN_MAX_MS : ms;
}

static weir_pace pace_in_range(const weir_pace *pace)
{
    if (!pace->starts)
        return (weir_pace){ 0 };
    return (weir_pace){ .starts = pace->starts < 0 ? 1 : pace->starts,
                        .period_ns = pace->period_ns < 0 ? 1
                                     : pace->period_ns   ? pace->period_ns
                                                         : WR_PACE_PERIOD_NS,
                        .burst = pace->burst < 1 ? 1 : pace->burst };
}

static int64_t or_default(int64_t value, int64_t otherwise)
{
    return value ? value : otherwise;
}

/* Room for what a newer program may know of an entry; what we do not know is ignored. */
union answer {
    weir_group_policy known;
    char room[WR_ENTRY_MAX];
};

bool wr_policy_ask(weir_group_policy *out, const struct wr_policy *policy, const char *key)
{
    const weir_policy *given = &policy->given;
    union answer answer;

    if (!given->group_for)
        return false;
    memset(&answer, 0, sizeof(answer));
    answer.known.key = key;
    if (given->group_for(&answer.known, key, given->group_arg) != 0)
        return false;
    *out = answer.known;
    out->limit = limit_in_range(out->limit);
    out->inflight_max = or_default(limit_in_range(out->inflight_max), given->group_inflight_max);
    out->queue_max = or_default(queue_in_range(out->queue_max), given->group_queue_max);
    out->weight = weight_in_range(out->weight);
    out->deadlines.wait_ms = span_in_range(out->deadlines.wait_ms);
    out->deadlines.run_ms = span_in_range(out->deadlines.run_ms);
    out->deadlines.total_ms = span_in_range(out->deadlines.total_ms);
    if ((unsigned)out->run_on > WEIR_THREADS)
        out->run_on = WEIR_WORKERS;
    out->pace = pace_in_range(&out->pace);
    return true;
}
