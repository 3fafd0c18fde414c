/* What a guard tells of itself.
 * SPDX-License-Identifier: MIT */
#include "base/options.h"
#include "base/os.h"
#include "base/say.h"
#include "guard/remote.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void fill_counts(weir_guard_stats *out, struct weir_guard *guard)
{
    struct wr_counts *c = &guard->counts;

#define COPY(name) out->name = wr_load(&c->name, relaxed);
    COPY(entered)
    COPY(refused)
    COPY(left)
    COPY(released)
    COPY(cancelled)
    COPY(succeeded)
    COPY(failed)
    COPY(ignored)
    COPY(slow)
#undef COPY
    if (!guard->fast)
        return;
    /* Leaves are not counted on the fast way: all calls that entered and are not inside any more. */
    out->entered = wr_groups_entered(guard) +
                   (wr_load(guard->fast, relaxed) & ~WEIR_WORD_SLOW) / WEIR_WORD_ENTERED;
    out->left = out->entered - out->released - (uint64_t)out->used;
}

/* Under the lock. */
static void fill(weir_guard_stats *out, struct wr_call *call)
{
    struct weir_guard *guard = call->guard;
    struct wr_state *state;

    if (guard->kind == &wr_kind_breaker)
        wr_guard_refresh(call);
    state = wr_guard_write(guard);
    out->kind = state->set.kind;
    out->mode = state->set.mode;
    out->limit = state->set.limit;
    out->used = guard->kind->holds ? guard->ops->used(guard->cell) : 0;
    out->waiting = guard->ops->waiting(guard->cell) + wr_load(&guard->sleeping, relaxed);
    out->failure_percent = out->slow_percent = -1;
    guard->kind->stats(out, state, call->now);
    out->retry_at = guard->kind->when(state, call);
    fill_counts(out, guard);
}

int weir_guard_stats_get(weir_guard_stats *out, weir_guard *guard)
{
    struct wr_call call = { .guard = guard, .n = 1, .now = wr_os_now() };
    weir_guard_stats all = { .size = sizeof(all) };
    int rc;

    if (!out || !guard)
        return WEIR_EINVAL;
    if (guard->remote) {
        rc = wr_remote_stats(&all, guard);
        return rc ? rc : wr_options_store(out, &all, sizeof(all));
    }
    rc = wr_guard_lock(guard);
    if (rc)
        return rc;
    fill(&all, &call);
    wr_guard_unlock(guard);
    wr_guard_tell_news(guard, &call.news, call.now);
    return wr_options_store(out, &all, sizeof(all));
}

/* ---- in words ------------------------------------------------------------------------------------ */

static void say_span(weir_message *out, int64_t ns)
{
    if (ns >= 10000000000)
        wr_say(out, "%" PRId64 " s", ns / 1000000000);
    else if (ns >= 10000000)
        wr_say(out, "%" PRId64 " ms", ns / 1000000);
    else
        wr_say(out, "%" PRId64 " us", ns / 1000);
}

void wr_guard_holders(char *text, size_t size, struct weir_guard *guard)
{
    size_t at = 0;
    int64_t pid, permits, ours = 0;

    text[0] = '\0';
    if (!guard->kind->holds || guard->remote || wr_guard_lock(guard))
        return;
    for (size_t i = 0; at < size && guard->ops->holder(guard->cell, i, &pid, &permits); i++)
        if (pid)
            at += (size_t)snprintf(text + at, size - at, "%sprocess %" PRId64 " (%" PRId64 ")",
                                   i ? ", " : "", pid, permits);
        else
            ours = permits;
    wr_guard_unlock(guard);
    if (ours)
        wr_group_holders(text, size, guard, ours);
}

static void say_holders(weir_message *out, struct weir_guard *guard)
{
    char text[sizeof(out->text)];

    wr_guard_holders(text, sizeof(text), guard);
    if (*text && strncmp(text, "callers", 7) != 0) /* that goes without saying */
        wr_say(out, ", held by %s", text);
}

static void say_breaker(weir_message *out, const weir_guard_stats *s)
{
    wr_say(out, "%s", weir_breaker_state_name(s->state));
    if (s->failure_percent >= 0)
        wr_say(out, ", %.1f %% of %" PRId64 " calls failed, %.1f %% were slow", s->failure_percent,
               s->stored, s->slow_percent);
    else
        wr_say(out, ", %" PRId64 " calls so far", s->stored);
}

static void say_kind(weir_message *out, const weir_guard_stats *s, struct weir_guard *guard)
{
    switch (s->kind) {
    case WEIR_GUARD_BREAKER:
        say_breaker(out, s);
        break;
    case WEIR_GUARD_RATE:
    case WEIR_GUARD_FREQUENCY:
        wr_say(out, "%" PRId64 " of %" PRId64 " calls left", s->available, s->limit);
        break;
    case WEIR_GUARD_BUDGET:
        wr_say(out, "%" PRId64 " of %" PRId64 " retries left", s->available, s->limit);
        break;
    default:
        wr_say(out, "%" PRId64 " of %" PRId64 " permits in use", s->used, s->limit);
        say_holders(out, guard);
    }
}

int weir_guard_describe(weir_message *out, weir_guard *guard)
{
    weir_guard_stats s = { .size = sizeof(s) };
    int rc = out ? weir_guard_stats_get(&s, guard) : WEIR_EINVAL;
    weir_time now = wr_os_now();

    if (rc && (!out || !guard || !guard->remote))
        return rc;
    out->text[0] = '\0';
    if (rc) { /* the server has no figures, but may say why */
        wr_say(out, "%s %.200s", guard->kind->name, guard->name);
        wr_remote_say(out, guard);
        return rc;
    }
    wr_say(out, "%s %.200s: ", guard->kind->name, guard->name);
    say_kind(out, &s, guard);
    if (s.waiting)
        wr_say(out, ", %" PRId64 " caller%s wait%s", s.waiting, s.waiting == 1 ? "" : "s",
               s.waiting == 1 ? "s" : "");
    if (s.retry_at > now && s.retry_at != WEIR_FOREVER) {
        wr_say(out, ", again in ");
        say_span(out, s.retry_at - now);
    }
    if (guard->remote)
        wr_remote_say(out, guard);
    return 0;
}
