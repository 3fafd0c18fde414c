/* Guards as their operator sees them: settings that change, states that are set.
 * SPDX-License-Identifier: MIT */
#include "base/options.h"
#include "base/os.h"
#include "guard/remote.h"

#include <stdio.h>

/* Under the lock. */
static int apply(struct weir_guard *guard, const weir_guard_options *to,
                 const weir_guard_options *expected, weir_message *message)
{
    struct wr_state *state = wr_guard_write(guard);
    struct wr_settings set;
    int rc;

    if (!wr_settings_match(&state->set, expected))
        return WEIR_EALREADY;
    rc = wr_settings_change(&set, &state->set, to, message);
    if (rc)
        return rc;
    guard->kind->change(state, &set, wr_os_now());
    state->set = set;
    wr_store(&guard->limit, set.limit, relaxed);
    guard->ops->tell(guard->cell); /* the first in line may fit now */
    return 0;
}

static int change(struct weir_guard *guard, const weir_guard_options *to,
                  const weir_guard_options *expected, weir_message *message)
{
    int rc;

    do {
        rc = wr_guard_lock(guard);
        if (rc)
            return rc;
        rc = apply(guard, to, expected, message);
    } while (!wr_guard_unlock(guard));
    return rc;
}

int weir_guard_change(weir_guard *guard, const weir_guard_options *to,
                      const weir_guard_options *expected, weir_message *message)
{
    weir_guard_options all, old;
    int rc = guard && to ? wr_options_load(&all, sizeof(all), to) : WEIR_EINVAL;

    if (message)
        message->text[0] = '\0';
    if (!rc)
        rc = wr_options_load(&old, sizeof(old), expected);
    if (!rc && guard->remote)
        rc = wr_remote_change(guard, &all, &old, message);
    else if (!rc)
        rc = change(guard, &all, &old, message);
    if (!rc && guard->kind == &wr_kind_rate && !guard->remote)
        wr_groups_ask_again(guard);
    if (!rc)
        wr_guard_tell(guard, &(weir_guard_event){ .type = WEIR_EVENT_CHANGED, .at = wr_os_now() });
    if (rc && message && !message->text[0])
        snprintf(message->text, sizeof(message->text), "%s",
                 rc == WEIR_EALREADY ? "the settings are not the expected ones"
                                     : weir_strerror(rc));
    return rc;
}

int64_t weir_guard_drain(weir_guard *guard)
{
    weir_time now = wr_os_now();
    int64_t drained;
    int rc;

    if (!guard || guard->kind != &wr_kind_rate)
        return WEIR_EINVAL;
    if (guard->remote) {
        drained = wr_remote_drain(guard);
        if (drained < 0)
            return drained;
    } else {
        do {
            rc = wr_guard_lock(guard);
            if (rc)
                return rc;
            drained = wr_rate_drain(&wr_guard_write(guard)->as.rate, now);
        } while (!wr_guard_unlock(guard));
    }
    wr_guard_tell(guard,
                  &(weir_guard_event){ .type = WEIR_EVENT_DRAINED, .at = now, .permits = drained });
    return drained;
}

static bool is_state(int state)
{
    return state >= WEIR_CLOSED && state <= WEIR_FORCED_OPEN;
}

const char *weir_breaker_state_name(weir_breaker_state state)
{
    static const char *const names[] = { "?",        "closed",       "open",       "half open",
                                         "disabled", "metrics only", "forced open" };

    return is_state((int)state) ? names[state] : names[0];
}

/* A state that an operator wants a breaker to have. */
struct order {
    weir_breaker_state to, expected;
    weir_time until;
    weir_message *message; /* may be NULL */
};

/* Under the lock. */
static int set_state(struct wr_breaker *b, struct wr_call *call, struct wr_breaker_step *step,
                     const struct order *order)
{
    weir_breaker_state from, to = order->to, expected = order->expected;

    wr_breaker_refresh(b, step);
    from = b->state;
    if ((!expected || expected == from) && wr_breaker_set(b, step, to, order->until)) {
        if (call->guard->open_for && to == WEIR_OPEN && !order->until && step->news->count) {
            call->news.attempt = b->attempt;
            call->news.epoch = b->epoch;
        }
        return 0;
    }
    if (order->message)
        snprintf(order->message->text, sizeof(order->message->text),
                 "the breaker is %s: it cannot become %s%s%s", weir_breaker_state_name(from),
                 weir_breaker_state_name(to),
                 expected && expected != from ? ", expected it to be " : "",
                 expected && expected != from ? weir_breaker_state_name(expected) : "");
    return WEIR_EALREADY;
}

/* Carries out the order; without one, resets the breaker. The first in line looks again. */
static int operate(struct wr_call *call, const struct order *order)
{
    struct weir_guard *guard = call->guard;
    struct wr_breaker_step step = { .now = call->now,
                                    .luck = (uint64_t)call->now * 0x9e3779b97f4a7c15u,
                                    .news = &call->news.breaker };
    struct wr_breaker *b;
    int rc;

    do {
        rc = wr_guard_lock(guard);
        if (rc)
            return rc;
        call->news = (struct wr_news){ 0 };
        b = wr_state_breaker(wr_guard_write(guard));
        if (order)
            rc = set_state(b, call, &step, order);
        else
            wr_breaker_reset(b, &step);
        guard->ops->tell(guard->cell);
    } while (!wr_guard_unlock(guard));
    wr_guard_tell_news(guard, &call->news, call->now);
    return rc;
}

/* Says what is wrong with the arguments of weir_guard_set_state; "": nothing. */
static void check_order(weir_message *out, const struct weir_guard *guard, int to, int expected)
{
    out->text[0] = '\0';
    if (!guard)
        snprintf(out->text, sizeof(out->text), "the guard is NULL");
    else if (guard->kind != &wr_kind_breaker)
        snprintf(out->text, sizeof(out->text), "%s is not a breaker: it is a %s", guard->name,
                 guard->kind->name);
    else if (!is_state(to) || (expected && !is_state(expected)))
        snprintf(out->text, sizeof(out->text), "%d is not a state: use %d to %d",
                 is_state(to) ? expected : to, WEIR_CLOSED, WEIR_FORCED_OPEN);
}

int weir_guard_set_state(weir_guard *guard, weir_breaker_state to, weir_time until,
                         weir_breaker_state expected, weir_message *message)
{
    struct wr_call call = { .guard = guard, .n = 1, .now = wr_os_now() };
    weir_message wrong;

    check_order(&wrong, guard, (int)to, (int)expected);
    if (message)
        *message = wrong;
    if (wrong.text[0])
        return WEIR_EINVAL;
    return operate(&call, &(struct order){ to, expected, until, message });
}

int weir_guard_reset(weir_guard *guard)
{
    struct wr_call call = { .guard = guard, .n = 1, .now = wr_os_now() };
    int rc = guard && guard->kind == &wr_kind_breaker ? operate(&call, NULL) : WEIR_EINVAL;

    if (!rc)
        wr_guard_tell(guard, &(weir_guard_event){ .type = WEIR_EVENT_RESET, .at = call.now });
    return rc;
}
