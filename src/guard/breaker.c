/* The breaker's state machine.
 * SPDX-License-Identifier: MIT */
#include "guard/breaker.h"

#include "guard/backoff.h"
#include "guard/math.h"

size_t wr_breaker_size(const struct wr_breaker_settings *set)
{
    size_t window = wr_outcomes_size(set->window, set->by_time);
    size_t probing = wr_outcomes_size(set->probes, false);

    return offsetof(struct wr_breaker, outcomes) + (window > probing ? window : probing);
}

int64_t wr_breaker_open_ns(const struct wr_breaker_settings *set, uint64_t attempt, uint64_t luck)
{
    int64_t ns = wr_grown_ns(set->open_ns, set->open_growth, set->open_max_ns, attempt);

    return wr_max(wr_scaled_ns(ns, 1 + set->open_jitter * (2 * wr_chance(luck) - 1)), 1);
}

/* ---- shares ---------------------------------------------------------------------------------- */

static int64_t enough(const struct wr_breaker *b)
{
    if (b->outcomes.by_time)
        return b->set.minimum;
    return wr_min(b->set.minimum, b->outcomes.size);
}

static double share(const struct wr_breaker *b, int64_t part)
{
    int64_t stored = b->outcomes.sum.stored;

    return stored < enough(b) ? -1 : (double)part * 100 / (double)stored;
}

double wr_breaker_failed(const struct wr_breaker *b)
{
    return share(b, b->outcomes.sum.failed);
}

double wr_breaker_slow(const struct wr_breaker *b)
{
    return share(b, b->outcomes.sum.slow);
}

/* ---- transitions ----------------------------------------------------------------------------- */

static void enter(struct wr_breaker *b, weir_breaker_state to, const struct wr_breaker_step *step)
{
    struct wr_breaker_news *news = step->news;

    if (news && news->count < 3) {
        news->change[news->count].from = b->state;
        news->change[news->count++].to = to;
    }
    b->state = to;
    b->epoch++;
    b->not_permitted = 0;
    b->told_failed = b->told_slow = false;
    if (to == WEIR_OPEN)
        return;
    b->filling = b->epoch;
    b->probes_out = 0;
    if (to == WEIR_HALF_OPEN)
        wr_outcomes_reset(&b->outcomes, b->set.probes, false, step->now);
    else
        wr_outcomes_reset(&b->outcomes, b->set.window, b->set.by_time, step->now);
    if (to != WEIR_HALF_OPEN)
        b->attempt = 0;
}

static void trip(struct wr_breaker *b, const struct wr_breaker_step *step)
{
    enter(b, WEIR_OPEN, step);
    b->attempt++;
    b->until = wr_sum(step->now, wr_breaker_open_ns(&b->set, b->attempt, step->luck));
}

static void half_open(struct wr_breaker *b, const struct wr_breaker_step *step)
{
    enter(b, WEIR_HALF_OPEN, step);
    b->until = wr_sum(step->now, b->set.half_open_ns);
}

void wr_breaker_init(struct wr_breaker *b, const struct wr_breaker_settings *set, weir_time now)
{
    struct wr_breaker_step step = { .now = now };

    b->set = *set;
    enter(b, WEIR_CLOSED, &step);
    if (set->initial == WEIR_OPEN)
        trip(b, &step);
    else if (set->initial != WEIR_CLOSED)
        enter(b, set->initial, &step);
}

void wr_breaker_refresh(struct wr_breaker *b, const struct wr_breaker_step *step)
{
    if (b->state == WEIR_OPEN && b->set.auto_half_open && step->now > b->until)
        half_open(b, step);
    if (b->state == WEIR_HALF_OPEN && step->now >= b->until) {
        if (b->set.half_open_then == WEIR_CLOSED)
            enter(b, WEIR_CLOSED, step);
        else
            trip(b, step);
    }
}

/* ---- calls ----------------------------------------------------------------------------------- */

bool wr_breaker_permits(const struct wr_breaker *b, weir_time now, weir_time *when)
{
    *when = now;
    switch (b->state) {
    case WEIR_OPEN:
        *when = wr_sum(b->until, 1);
        return now > b->until;
    case WEIR_HALF_OPEN:
        *when = WEIR_FOREVER; /* when a probe ends, which is not known */
        return b->probes_out + b->outcomes.sum.stored < b->set.probes;
    case WEIR_FORCED_OPEN:
        *when = WEIR_FOREVER;
        return false;
    default:
        return true;
    }
}

uint64_t wr_breaker_pass(struct wr_breaker *b, const struct wr_breaker_step *step)
{
    if (b->state == WEIR_OPEN)
        half_open(b, step);
    if (b->state == WEIR_HALF_OPEN)
        b->probes_out++;
    return b->epoch;
}

void wr_breaker_undo(struct wr_breaker *b, uint64_t epoch)
{
    if (b->state == WEIR_HALF_OPEN && epoch == b->epoch && b->probes_out > 0)
        b->probes_out--;
}

static void judge(struct wr_breaker *b, const struct wr_breaker_step *step)
{
    bool failed = wr_breaker_failed(b) >= b->set.failure_percent;
    bool slow = wr_breaker_slow(b) >= b->set.slow_percent;
    bool watches = b->state == WEIR_METRICS_ONLY;

    if (step->news) {
        step->news->too_many_failed = failed && !(watches && b->told_failed);
        step->news->too_many_slow = slow && !(watches && b->told_slow);
    }
    b->told_failed |= failed;
    b->told_slow |= slow;
    if (watches)
        return;
    if (failed || slow)
        trip(b, step);
    else if (b->state == WEIR_HALF_OPEN)
        enter(b, WEIR_CLOSED, step);
}

void wr_breaker_end(struct wr_breaker *b, const struct wr_breaker_step *step, uint64_t epoch,
                    bool failed, int64_t ns)
{
    int bits = (failed ? WR_FAILED : 0) | (ns > b->set.slow_ns ? WR_SLOW : 0);

    if (epoch != b->filling || b->state == WEIR_DISABLED || b->state == WEIR_FORCED_OPEN)
        return;
    wr_breaker_undo(b, epoch);
    wr_outcomes_add(&b->outcomes, step->now, bits, ns);
    if (b->state == WEIR_OPEN || b->outcomes.sum.stored < enough(b))
        return;
    if (b->state == WEIR_HALF_OPEN || b->outcomes.sum.failed || b->outcomes.sum.slow)
        judge(b, step); /* else all is well, and closed */
}

/* ---- the operator ---------------------------------------------------------------------------- */

bool wr_breaker_set(struct wr_breaker *b, const struct wr_breaker_step *step, weir_breaker_state to,
                    weir_time until)
{
    if (b->state == to) {
        if (to == WEIR_OPEN && until)
            b->until = until;
        return true;
    }
    if ((to == WEIR_HALF_OPEN && b->state == WEIR_CLOSED) ||
        (b->state == WEIR_METRICS_ONLY && (to == WEIR_OPEN || to == WEIR_HALF_OPEN)))
        return false;
    if (to == WEIR_OPEN) {
        trip(b, step);
        b->until = until ? until : b->until;
    } else if (to == WEIR_HALF_OPEN) {
        half_open(b, step);
    } else {
        enter(b, to, step);
    }
    return true;
}

void wr_breaker_reset(struct wr_breaker *b, const struct wr_breaker_step *step)
{
    struct wr_breaker_step quiet = *step;

    if (b->state == WEIR_CLOSED) /* the same state: a fresh window, and no transition to tell of */
        quiet.news = NULL;
    enter(b, WEIR_CLOSED, &quiet);
}

bool wr_breaker_is_whole(const struct wr_breaker *b, weir_time now)
{
    if (b->state != WEIR_CLOSED)
        return false;
    return (b->outcomes.sum.failed == 0 && b->outcomes.sum.slow == 0) ||
           (b->outcomes.by_time && now / 1000000000 - b->outcomes.second >= b->outcomes.size);
}
