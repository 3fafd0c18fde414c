/* The kinds of guards: which arithmetic stands behind each, and what of a permit it needs.
 * SPDX-License-Identifier: MIT */
#include "guard/guard.h"
#include "guard/math.h"

const struct wr_kind *wr_kind_of(weir_guard_kind kind)
{
    static const struct wr_kind *const kinds[] = {
        [WEIR_GUARD_BULKHEAD] = &wr_kind_bulkhead,
        [WEIR_GUARD_CONCURRENCY] = &wr_kind_concurrency,
        [WEIR_GUARD_FREQUENCY] = &wr_kind_frequency,
        [WEIR_GUARD_RATE] = &wr_kind_rate,
        [WEIR_GUARD_BREAKER] = &wr_kind_breaker,
        [WEIR_GUARD_MUTEX] = &wr_kind_mutex,
        [WEIR_GUARD_ADAPTIVE] = &wr_kind_adaptive,
        [WEIR_GUARD_BUDGET] = &wr_kind_budget,
    };

    return kinds[kind];
}

static size_t plain_size(const struct wr_settings *set)
{
    (void)set;
    return sizeof(struct wr_state);
}

static bool plain_is_sound(const struct wr_state *state, size_t size)
{
    return size == sizeof(*state);
}

/* ---- permits: bulkhead, concurrency, mutex, adaptive --------------------------------------------- */

static int64_t permits_limit(const struct wr_state *state)
{
    return state->set.kind == WEIR_GUARD_ADAPTIVE ? wr_adaptive_limit(&state->as.adaptive)
                                                  : state->set.limit;
}

static void permits_init(struct wr_state *state, weir_time now)
{
    const struct wr_settings *s = &state->set;

    state->token = (uint64_t)now; /* above all those of a guard of that name that was forgotten */
    if (s->kind == WEIR_GUARD_ADAPTIVE)
        wr_adaptive_init(&state->as.adaptive, s->mode, s->limit, s->limit_min, s->limit_max,
                         s->latency_ns);
}

static weir_time permits_when(const struct wr_state *state, const struct wr_call *call)
{
    struct weir_guard *guard = call->guard;

    return guard->ops->used(guard->cell) + call->n <= permits_limit(state) ? call->now
                                                                           : WEIR_FOREVER;
}

static void permits_take(struct wr_state *state, struct wr_call *call)
{
    (void)state;
    call->guard->ops->take(call->guard->cell, call->n);
}

static void mutex_take(struct wr_state *state, struct wr_call *call)
{
    call->permit->token = ++state->token;
    permits_take(state, call);
}

static void permits_give(struct wr_state *state, struct wr_call *call)
{
    (void)state;
    call->guard->ops->give(call->guard->cell, call->n);
}

static void adaptive_end(struct wr_state *state, struct wr_call *call)
{
    if (call->counted)
        wr_adaptive_end(&state->as.adaptive, call->failed, call->ns,
                        call->guard->ops->used(call->guard->cell));
    permits_give(state, call);
}

static void permits_change(struct wr_state *state, const struct wr_settings *to, weir_time now)
{
    const struct wr_settings *from = &state->set;

    (void)now;
    if (to->kind == WEIR_GUARD_ADAPTIVE)
        wr_adaptive_bound(&state->as.adaptive, to->limit != from->limit ? to->limit : 0,
                          to->limit_min, to->limit_max, to->latency_ns);
}

static bool permits_is_whole(const struct wr_state *state, weir_time now)
{
    (void)state;
    (void)now;
    return true; /* the cell knows how many permits are used */
}

static void permits_stats(weir_guard_stats *out, struct wr_state *state, weir_time now)
{
    (void)now;
    out->limit = permits_limit(state);
    out->available = out->limit - out->used;
}

#define PERMITS(label, rank_, error_, fast_, timed_, take_, end_)                         \
    {                                                                                     \
        .name = label, .rank = rank_, .error = error_, .fast = fast_, .holds = true,      \
        .timed = timed_, .size = plain_size, .init = permits_init, .when = permits_when,  \
        .take = take_, .end = end_, .undo = permits_give, .change = permits_change,       \
        .is_whole = permits_is_whole, .is_sound = plain_is_sound, .stats = permits_stats, \
    }

const struct wr_kind wr_kind_bulkhead =
    PERMITS("bulkhead", 4, WEIR_EFULL, true, false, permits_take, permits_give);
const struct wr_kind wr_kind_concurrency =
    PERMITS("concurrency", 4, WEIR_EFULL, true, false, permits_take, permits_give);
const struct wr_kind wr_kind_adaptive =
    PERMITS("adaptive", 4, WEIR_EFULL, false, true, permits_take, adaptive_end);
const struct wr_kind wr_kind_mutex =
    PERMITS("mutex", 5, WEIR_ELOCKED, false, false, mutex_take, permits_give);

/* ---- rate ---------------------------------------------------------------------------------------- */

static void rate_init(struct wr_state *state, weir_time now)
{
    const struct wr_settings *s = &state->set;

    wr_rate_init(&state->as.rate, s->limit, s->period_ns, s->burst, s->mode == WEIR_SMOOTH, now);
    if (s->initial_ns)
        wr_rate_delay(&state->as.rate, wr_sum(now, s->initial_ns));
}

static weir_time rate_when(const struct wr_state *state, const struct wr_call *call)
{
    return wr_sum(call->now, wr_rate_wait(&state->as.rate, call->now, call->n));
}

/* Takes permits if it can, and else says how long the wait would be. A permit remembers what was reserved, to give it back. */
static void rate_take(struct wr_state *state, struct wr_call *call)
{
    weir_permit *permit = call->permit;
    struct wr_reserved r;

    if (wr_rate_take(&state->as.rate, call->now, call->n, call->patience, &r)) {
        permit->token = (uint64_t)r.at;
        permit->since = r.part;
        permit->retry_at = r.era;
        wr_permit_fill(permit, call->guard, call->n);
    }
    call->wait = r.wait;
}

static void rate_undo(struct wr_state *state, struct wr_call *call)
{
    const weir_permit *permit = call->permit;
    struct wr_reserved r = { .at = (int64_t)permit->token,
                             .part = permit->since,
                             .era = (uint32_t)permit->retry_at };

    wr_rate_give(&state->as.rate, call->now, call->n, &r);
}

static void rate_change(struct wr_state *state, const struct wr_settings *to, weir_time now)
{
    const struct wr_settings *from = &state->set;

    if (to->limit != from->limit || to->period_ns != from->period_ns || to->burst != from->burst)
        wr_rate_change(&state->as.rate, now, to->limit, to->period_ns, to->burst);
}

static bool rate_is_whole(const struct wr_state *state, weir_time now)
{
    return wr_rate_is_whole(&state->as.rate, now);
}

static bool rate_is_sound(const struct wr_state *state, size_t size)
{
    const struct wr_rate *r = &state->as.rate;

    return plain_is_sound(state, size) && r->limit > 0 && r->period > 0 && r->burst > 0 &&
           r->available <= r->limit && r->cycle >= 0 && r->next_part >= 0 &&
           r->next_part < r->limit;
}

static void rate_stats(weir_guard_stats *out, struct wr_state *state, weir_time now)
{
    const struct wr_rate *r = &state->as.rate;

    out->available = wr_rate_available(r, now);
    out->cycle = r->smooth ? 0 : wr_max(now - r->start, 0) / r->period;
}

const struct wr_kind wr_kind_rate = {
    .name = "rate",
    .rank = 2,
    .error = WEIR_ETOOFAST,
    .size = plain_size,
    .init = rate_init,
    .when = rate_when,
    .take = rate_take,
    .undo = rate_undo,
    .change = rate_change,
    .is_whole = rate_is_whole,
    .is_sound = rate_is_sound,
    .stats = rate_stats,
};

/* ---- frequency ----------------------------------------------------------------------------------- */

static size_t frequency_size(const struct wr_settings *set)
{
    return wr_max(sizeof(struct wr_state),
                  offsetof(struct wr_state, as) + wr_frequency_size(set->mode, set->limit));
}

static void frequency_init(struct wr_state *state, weir_time now)
{
    const struct wr_settings *s = &state->set;

    wr_frequency_init(wr_state_frequency(state), s->mode, s->limit, s->period_ns, now);
}

static weir_time frequency_when(const struct wr_state *state, const struct wr_call *call)
{
    return wr_frequency_when(wr_state_frequency(state), call->now, call->n);
}

static void frequency_take(struct wr_state *state, struct wr_call *call)
{
    wr_frequency_take(wr_state_frequency(state), call->now, call->n);
    call->permit->since = call->now;
}

static void frequency_undo(struct wr_state *state, struct wr_call *call)
{
    wr_frequency_give(wr_state_frequency(state), call->now, call->n, call->permit->since);
}

static void frequency_change(struct wr_state *state, const struct wr_settings *to, weir_time now)
{
    struct wr_frequency *f = wr_state_frequency(state);

    f->limit = to->limit;
    if (to->period_ns == f->period)
        return;
    if (f->mode != WEIR_EXACT) { /* calls counted so far count in the window that begins now */
        f->current = wr_min(f->current + (f->mode == WEIR_WEIGHTED ? f->last : 0), to->limit);
        f->last = 0;
        f->begin = now - now % to->period_ns;
    }
    f->period = to->period_ns;
}

static bool frequency_is_whole(const struct wr_state *state, weir_time now)
{
    return wr_frequency_is_whole(wr_state_frequency(state), now);
}

static bool frequency_is_sound(const struct wr_state *state, size_t size)
{
    const struct wr_frequency *f = wr_state_frequency(state);

    return f->period > 0 && f->current >= 0 && f->last >= 0 && f->count <= f->room &&
           (f->room == 0 || f->first < f->room) &&
           size >= offsetof(struct wr_state, as) + sizeof(*f) + f->room * sizeof(weir_time);
}

static void frequency_stats(weir_guard_stats *out, struct wr_state *state, weir_time now)
{
    out->available = wr_frequency_available(wr_state_frequency(state), now);
}

const struct wr_kind wr_kind_frequency = {
    .name = "frequency",
    .rank = 3,
    .error = WEIR_ETOOFAST,
    .size = frequency_size,
    .init = frequency_init,
    .when = frequency_when,
    .take = frequency_take,
    .undo = frequency_undo,
    .change = frequency_change,
    .is_whole = frequency_is_whole,
    .is_sound = frequency_is_sound,
    .stats = frequency_stats,
};

/* ---- breaker ------------------------------------------------------------------------------------- */

static void breaker_settings(struct wr_breaker_settings *to, const struct wr_settings *s)
{
    *to = (struct wr_breaker_settings){
        .failure_percent = s->failure_percent,
        .slow_percent = s->slow_percent,
        .open_growth = s->open_growth,
        .open_jitter = s->open_jitter,
        .slow_ns = s->slow_ns,
        .window = s->window,
        .minimum = s->minimum,
        .probes = s->probes,
        .open_ns = s->open_ns,
        .open_max_ns = s->open_max_ns,
        .half_open_ns = s->half_open_ns,
        .by_time = s->mode == WEIR_BY_TIME,
        .auto_half_open = s->auto_half_open,
        .half_open_then = s->half_open_then,
        .initial = s->initial,
    };
}

static size_t breaker_size(const struct wr_settings *set)
{
    struct wr_breaker_settings s;

    breaker_settings(&s, set);
    s.probes = wr_max(s.probes, s.window); /* room for a change */
    return offsetof(struct wr_state, as) + wr_breaker_size(&s);
}

static void breaker_init(struct wr_state *state, weir_time now)
{
    struct wr_breaker_settings s;

    breaker_settings(&s, &state->set);
    wr_breaker_init(wr_state_breaker(state), &s, now);
}

static weir_time breaker_when(const struct wr_state *state, const struct wr_call *call)
{
    weir_time when;

    return wr_breaker_permits(wr_state_breaker(state), call->now, &when) ? call->now : when;
}

static void breaker_step(struct wr_breaker_step *step, struct wr_call *call)
{
    *step = (struct wr_breaker_step){ .now = call->now,
                                      .luck = (uint64_t)call->now * 0x9e3779b97f4a7c15u,
                                      .news = &call->news.breaker };
}

static void breaker_take(struct wr_state *state, struct wr_call *call)
{
    struct wr_breaker_step step;

    breaker_step(&step, call);
    call->permit->token = wr_breaker_pass(wr_state_breaker(state), &step);
}

void wr_guard_refresh(struct wr_call *call)
{
    const struct wr_breaker *b = wr_state_breaker(wr_guard_read(call->guard));
    struct wr_breaker_step step;

    if ((b->state != WEIR_OPEN && b->state != WEIR_HALF_OPEN) || call->now < b->until)
        return;
    breaker_step(&step, call);
    wr_breaker_refresh(wr_state_breaker(wr_guard_write(call->guard)), &step);
}

static void breaker_end(struct wr_state *state, struct wr_call *call)
{
    struct wr_breaker *b = wr_state_breaker(state);
    struct wr_breaker_step step;

    breaker_step(&step, call);
    wr_breaker_refresh(b, &step);
    if (call->counted)
        wr_breaker_end(b, &step, call->permit->token, call->failed, call->ns);
    else
        wr_breaker_undo(b, call->permit->token);
}

static void breaker_undo(struct wr_state *state, struct wr_call *call)
{
    wr_breaker_undo(wr_state_breaker(state), call->permit->token);
}

static void breaker_change(struct wr_state *state, const struct wr_settings *to, weir_time now)
{
    (void)now;
    breaker_settings(&wr_state_breaker(state)->set, to);
}

static bool breaker_is_whole(const struct wr_state *state, weir_time now)
{
    return wr_breaker_is_whole(wr_state_breaker(state), now);
}

static bool breaker_is_sound(const struct wr_state *state, size_t size)
{
    const struct wr_breaker *b = wr_state_breaker(state);
    const struct wr_outcomes *o = &b->outcomes;

    return b->state >= WEIR_CLOSED && b->state <= WEIR_FORCED_OPEN && o->size > 0 &&
           o->size <= WEIR_PERMITS_MAX && o->at >= 0 && o->at < o->size && o->second >= 0 &&
           size >= breaker_size(&state->made) && b->set.window == state->made.window &&
           offsetof(struct wr_state, as) + offsetof(struct wr_breaker, outcomes) +
                   wr_outcomes_size(o->size, o->by_time) <=
               size;
}

static void breaker_stats(weir_guard_stats *out, struct wr_state *state, weir_time now)
{
    struct wr_breaker *b = wr_state_breaker(state);

    wr_outcomes_refresh(&b->outcomes, now);
    out->state = b->state;
    out->epoch = b->epoch;
    out->attempt = b->attempt;
    out->not_permitted = b->not_permitted;
    out->stored = b->outcomes.sum.stored;
    out->stored_failed = b->outcomes.sum.failed;
    out->stored_slow = b->outcomes.sum.slow;
    out->stored_slow_failed = b->outcomes.sum.slow_failed;
    out->stored_ns = b->outcomes.sum.ns;
    out->failure_percent = wr_breaker_failed(b);
    out->slow_percent = wr_breaker_slow(b);
    out->probes_out = b->probes_out;
}

const struct wr_kind wr_kind_breaker = {
    .name = "breaker",
    .rank = 1,
    .error = WEIR_EBROKEN,
    .timed = true,
    .size = breaker_size,
    .init = breaker_init,
    .when = breaker_when,
    .take = breaker_take,
    .end = breaker_end,
    .undo = breaker_undo,
    .change = breaker_change,
    .is_whole = breaker_is_whole,
    .is_sound = breaker_is_sound,
    .stats = breaker_stats,
};

/* ---- budget -------------------------------------------------------------------------------------- */

static void budget_init(struct wr_state *state, weir_time now)
{
    (void)now;
    wr_budget_init(&state->as.budget, state->set.limit, state->set.budget_percent);
}

static weir_time budget_when(const struct wr_state *state, const struct wr_call *call)
{
    return wr_budget_can(&state->as.budget) ? call->now : WEIR_FOREVER;
}

static void budget_take(struct wr_state *state, struct wr_call *call)
{
    (void)call;
    wr_budget_spend(&state->as.budget);
}

static void budget_undo(struct wr_state *state, struct wr_call *call)
{
    (void)call;
    wr_budget_give(&state->as.budget);
}

static void budget_change(struct wr_state *state, const struct wr_settings *to, weir_time now)
{
    (void)now;
    wr_budget_change(&state->as.budget, to->limit, to->budget_percent);
}

static bool budget_is_whole(const struct wr_state *state, weir_time now)
{
    (void)now;
    return state->as.budget.tokens == state->as.budget.limit * WR_TOKEN;
}

static void budget_stats(weir_guard_stats *out, struct wr_state *state, weir_time now)
{
    (void)now;
    out->available = state->as.budget.tokens / WR_TOKEN;
}

const struct wr_kind wr_kind_budget = {
    .name = "budget",
    .rank = 6,
    .error = WEIR_EFULL,
    .size = plain_size,
    .init = budget_init,
    .when = budget_when,
    .take = budget_take,
    .undo = budget_undo,
    .change = budget_change,
    .is_whole = budget_is_whole,
    .is_sound = plain_is_sound,
    .stats = budget_stats,
};
