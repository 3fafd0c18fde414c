/* Guards on a server: counts, events and settings on this side of the wire; see remote.h.
 * SPDX-License-Identifier: MIT */
#include "guard/remote.h"

#include "base/os.h"
#include "guard/math.h"

#include <stdio.h>
#include <string.h>

enum { CHANGE_ATTEMPTS = 16 };

/* ---- settings ------------------------------------------------------------------------------------ */

/* Settings of 0 become the names that options have for nothing, since 0 in an option asks for the default. */
static void to_options(weir_guard_options *opt, const struct wr_settings *set)
{
    opt->size = sizeof(*opt);
    opt->kind = set->kind;
    opt->mode = set->mode;
    opt->limit = set->limit ? set->limit : WEIR_NO_CALLS;
    opt->period_ns = set->period_ns;
    opt->burst = set->burst;
    opt->initial_ns = set->initial_ns;
    opt->wait_ns = set->wait_ns ? set->wait_ns : WEIR_NO_WAIT;
    opt->waiters_max = set->waiters_max ? set->waiters_max : WEIR_NO_WAITERS;
}

void wr_remote_settings(struct weir_guard *guard, struct wr_settings *made, struct wr_settings *set)
{
    struct wr_remote *remote = guard->remote;

    wr_lock(&remote->lock);
    if (made)
        *made = remote->made;
    *set = remote->set;
    wr_unlock(&remote->lock);
}

/* Reads the server's settings once more. */
static int refresh(struct weir_guard *guard, struct wr_settings *set)
{
    weir_guard_options opt = { .size = sizeof(opt) };
    int rc = guard->remote->ops->settings(guard->cell, &opt);

    if (!rc)
        rc = wr_settings_load(set, &opt, NULL);
    if (rc)
        return rc;
    wr_lock(&guard->remote->lock);
    guard->remote->set = *set;
    wr_unlock(&guard->remote->lock);
    return 0;
}

static bool server_keeps(weir_guard_kind kind)
{
    return kind == WEIR_GUARD_ANY || kind == WEIR_GUARD_BULKHEAD ||
           kind == WEIR_GUARD_CONCURRENCY || kind == WEIR_GUARD_FREQUENCY ||
           kind == WEIR_GUARD_RATE || kind == WEIR_GUARD_MUTEX;
}

int wr_remote_open(struct weir_guard *guard, const weir_guard_options *opt,
                   const struct wr_settings *set, weir_message *message)
{
    weir_guard_options all = *opt, made = { .size = sizeof(made) }, is = { .size = sizeof(is) };
    struct wr_remote *remote;
    int rc;

    if (!server_keeps(set->kind)) {
        if (message)
            snprintf(message->text, sizeof(message->text),
                     "a server keeps no guards of this kind: use one per process for a %s",
                     wr_kind_of(set->kind)->name);
        return WEIR_EINVAL;
    }
    remote = wr_os_alloc(sizeof(*remote));
    if (!remote)
        return WEIR_ENOMEM;
    remote->ops = guard->ops->remote;
    if (set->kind != WEIR_GUARD_ANY)
        to_options(&all, set);
    rc = remote->ops->open(&guard->cell, guard->store, guard, &all, &made, &is, message);
    if (!rc) {
        rc = wr_settings_load(&remote->made, &made, message);
        rc = rc ? rc : wr_settings_load(&remote->set, &is, message);
        if (rc) {
            guard->ops->close(guard->cell);
            rc = WEIR_EFOREIGN;
        }
    }
    if (rc) {
        wr_os_free(remote);
        return rc;
    }
    guard->kind = wr_kind_of(remote->set.kind);
    guard->remote = remote;
    return 0;
}

weir_cell *weir_guard_cell(weir_guard *guard)
{
    return guard ? guard->cell : NULL;
}

void wr_remote_close(struct weir_guard *guard)
{
    wr_os_free(guard->remote);
}

int wr_remote_change(struct weir_guard *guard, const weir_guard_options *to,
                     const weir_guard_options *expected, weir_message *message)
{
    weir_guard_options from = { .size = sizeof(from) }, after = { .size = sizeof(after) };
    struct wr_settings set, next;
    int rc = 0;

    /* Another process may change it between our look and our change: then look again. */
    for (int i = 0; i < CHANGE_ATTEMPTS; i++) {
        rc = refresh(guard, &set);
        if (rc)
            return rc;
        if (!wr_settings_match(&set, expected))
            return WEIR_EALREADY;
        rc = wr_settings_change(&next, &set, to, message);
        if (rc)
            return rc;
        to_options(&from, &set);
        to_options(&after, &next);
        rc = guard->remote->ops->change(guard->cell, &from, &after);
        if (rc != WEIR_EALREADY)
            break;
    }
    if (rc)
        return rc;
    wr_lock(&guard->remote->lock);
    guard->remote->set = next;
    wr_unlock(&guard->remote->lock);
    return 0;
}

/* ---- entering ------------------------------------------------------------------------------------ */

static int refused(weir_permit *permit, struct weir_guard *guard, const weir_remote_call *call,
                   int rc)
{
    weir_guard_event event = { .type = WEIR_EVENT_REFUSED,
                               .at = wr_os_now(),
                               .permits = call->permits,
                               .error = rc == WEIR_EAGAIN ? guard->kind->error : rc,
                               .retry_at = call->retry_at };

    permit->guard = NULL;
    permit->retry_at = call->retry_at;
    if (rc == WEIR_ECANCELED) {
        event.type = WEIR_EVENT_CANCELLED;
        event.retry_at = 0;
        permit->retry_at = event.at;
    }
    wr_add(rc == WEIR_ECANCELED ? &guard->counts.cancelled : &guard->counts.refused, 1, relaxed);
    wr_guard_tell(guard, &event);
    return event.error;
}

static int enter(weir_permit *permit, struct weir_guard *guard, weir_remote_call *call)
{
    int rc = guard->remote->ops->enter(guard->cell, call);

    if (rc < 0)
        return refused(permit, guard, call, rc);
    wr_permit_fill(permit, guard, call->permits);
    permit->token = call->token;
    permit->since = call->number;
    permit->retry_at = call->where;
    wr_add(&guard->counts.entered, 1, relaxed);
    if (guard->on_event)
        wr_guard_tell(guard, &(weir_guard_event){ .type = WEIR_EVENT_ENTERED,
                                                  .at = wr_os_now(),
                                                  .permits = call->permits });
    return 0;
}

int wr_remote_enter(weir_permit *out, struct weir_guard *guard, int64_t n, weir_time deadline)
{
    weir_remote_call call = { .size = sizeof(call), .permits = n, .retry_at = WEIR_FOREVER };
    struct wr_settings set;

    wr_remote_settings(guard, NULL, &set);
    /* The limit may have been raised since. */
    if (wr_settings_exclude(&set, n) && (refresh(guard, &set) || wr_settings_exclude(&set, n)))
        return WEIR_EINVAL;
    call.deadline = deadline == WEIR_GUARD_WAIT ? wr_sum(wr_os_now(), set.wait_ns) : deadline;
    return enter(out, guard, &call);
}

int64_t wr_remote_reserve(weir_permit *out, struct weir_guard *guard, int64_t n,
                          int64_t patience_ns)
{
    weir_remote_call call = { .size = sizeof(call),
                              .permits = n,
                              .retry_at = WEIR_FOREVER,
                              .reserve = true,
                              .patience_ns = patience_ns };
    struct wr_settings set;
    int rc;

    wr_remote_settings(guard, NULL, &set);
    if (wr_settings_exclude(&set, n))
        return WEIR_EINVAL;
    rc = enter(out, guard, &call);
    return rc ? rc : call.wait_ns;
}

/* ---- leaving ------------------------------------------------------------------------------------- */

/* The call that the permit was given for. Empties the permit. */
static weir_remote_call call_of(weir_permit *permit)
{
    weir_remote_call call = { .size = sizeof(call),
                              .permits = permit->permits,
                              .token = permit->token,
                              .number = permit->since,
                              .where = permit->retry_at };

    permit->guard = NULL;
    return call;
}

int wr_remote_leave(weir_permit *permit, int error)
{
    struct weir_guard *guard = permit->guard;
    weir_remote_call call = call_of(permit);
    int rc = 0;

    (void)error;
    if (guard->kind->end)
        rc = guard->remote->ops->leave(guard->cell, &call);
    wr_add(&guard->counts.left, 1, relaxed);
    if (guard->on_event)
        wr_guard_tell(guard, &(weir_guard_event){ .type = WEIR_EVENT_LEFT,
                                                  .at = wr_os_now(),
                                                  .permits = call.permits });
    return rc;
}

int wr_remote_release(weir_permit *permit)
{
    struct weir_guard *guard = permit->guard;
    weir_remote_call call = call_of(permit);

    wr_add(&guard->counts.released, 1, relaxed);
    return guard->kind->end ? guard->remote->ops->leave(guard->cell, &call)
                            : guard->remote->ops->undo(guard->cell, &call);
}

int64_t wr_remote_drain(struct weir_guard *guard)
{
    return guard->remote->ops->drain(guard->cell);
}

/* ---- seeing -------------------------------------------------------------------------------------- */

int wr_remote_stats(weir_guard_stats *out, struct weir_guard *guard)
{
    struct wr_counts *c = &guard->counts;

    out->failure_percent = out->slow_percent = -1;
    out->entered = wr_load(&c->entered, relaxed);
    out->refused = wr_load(&c->refused, relaxed);
    out->left = wr_load(&c->left, relaxed);
    out->released = wr_load(&c->released, relaxed);
    out->cancelled = wr_load(&c->cancelled, relaxed);
    return guard->remote->ops->look(guard->cell, out);
}

void wr_remote_say(weir_message *out, struct weir_guard *guard)
{
    guard->remote->ops->say(guard->cell, out);
}
