/* Several guards of which some are on servers: entered one after the other, and left again if one refuses.
 *
 * There is no step over several servers. All guards of this process are one part, which is entered as one step; each guard
 * on a server is a part of its own. All parts are tried without waiting. The part that refuses is the one to wait for, with
 * nothing else held; then the rest is tried again. So two callers that want the same guards cannot wait for each other.
 * SPDX-License-Identifier: MIT */
#include "base/os.h"
#include "guard/math.h"
#include "guard/remote.h"

#include <string.h>
#include <weir/runtime.h>
#include <weir/wait.h>

struct part {
    size_t count; /* guards of this process; 1 of a server's */
    weir_guard *guard[WEIR_TOGETHER_MAX];
    weir_permit *permit[WEIR_TOGETHER_MAX];
    bool entered;
};

struct parts {
    size_t count;
    struct part part[WEIR_TOGETHER_MAX + 1]; /* the first: guards of this process, maybe none */
};

/* Guards whose permits are spent come last: what is entered last need not be given back. */
static int compare(const struct weir_guard *a, const struct weir_guard *b)
{
    bool a_spends = !a->kind->holds, b_spends = !b->kind->holds;

    if (a_spends != b_spends)
        return a_spends ? 1 : -1;
    if (a->kind->rank != b->kind->rank)
        return a->kind->rank < b->kind->rank ? -1 : 1;
    if (a->store != b->store)
        return a->store < b->store ? -1 : 1;
    return strcmp(a->name, b->name);
}

static int add_remote(struct parts *all, weir_permit *permit, weir_guard *guard)
{
    size_t at = all->count;

    while (at > 1) {
        int order = compare(all->part[at - 1].guard[0], guard);

        if (order == 0)
            return WEIR_EINVAL; /* the same guard twice */
        if (order < 0)
            break;
        all->part[at] = all->part[at - 1];
        at--;
    }
    all->part[at] = (struct part){ .count = 1, .guard = { guard }, .permit = { permit } };
    all->count++;
    return 0;
}

static int parts_init(struct parts *all, weir_permit *permits, weir_guard *const *guards,
                      size_t count)
{
    memset(all, 0, sizeof(*all));
    all->count = 1;
    for (size_t i = 0; i < count; i++) {
        struct part *local = &all->part[0];
        int rc = wr_permit_check(&permits[i], guards[i], 1);

        if (!rc && guards[i]->remote)
            rc = add_remote(all, &permits[i], guards[i]);
        if (rc)
            return WEIR_EINVAL;
        if (!guards[i]->remote) {
            local->guard[local->count] = guards[i];
            local->permit[local->count++] = &permits[i];
        }
    }
    return 0;
}

static int enter_part(struct part *part, weir_time deadline)
{
    weir_permit own[WEIR_TOGETHER_MAX]; /* side by side, as the step wants them */
    int rc = 0;

    if (part->count == 0)
        return 0;
    if (part->guard[0]->remote) {
        rc = wr_remote_enter(part->permit[0], part->guard[0], 1, deadline);
    } else {
        for (size_t i = 0; i < part->count; i++)
            own[i] = WEIR_PERMIT;
        rc = wr_together_local(own, part->guard, part->count, deadline);
        for (size_t i = 0; i < part->count; i++)
            if (rc)
                part->permit[i]->retry_at = own[i].retry_at;
            else
                weir_permit_move(part->permit[i], &own[i]);
    }
    part->entered = rc == 0;
    return rc;
}

/* Gives all parts back, as if they had never been entered. */
static void undo_all(struct parts *all)
{
    for (size_t i = all->count; i-- > 0;) {
        struct part *part = &all->part[i];

        for (size_t k = part->count; part->entered && k-- > 0;)
            weir_guard_release(part->permit[k]);
        part->entered = false;
    }
}

/* The part `first` with that deadline, all others without waiting. Answers 0, or the error, and which part refused. */
static int try_all(struct parts *all, size_t first, weir_time deadline, size_t *refusing)
{
    int rc = enter_part(&all->part[first], deadline);

    *refusing = first;
    for (size_t i = 0; !rc && i < all->count; i++) {
        if (i == first)
            continue;
        rc = enter_part(&all->part[i], WEIR_NOW_OR_NEVER);
        *refusing = i;
    }
    if (rc)
        undo_all(all);
    return rc;
}

/* Whether the refusal may pass: a limit was reached, or a server is away. */
static bool is_passing(const struct part *part, int error)
{
    for (size_t i = 0; i < part->count; i++)
        if (error == part->guard[i]->kind->error || (part->guard[i]->remote && error == WEIR_EAWAY))
            return true;
    return false;
}

static int refuse(struct parts *all, size_t refusing, int error)
{
    weir_time retry_at = all->part[refusing].permit[0]->retry_at;

    for (size_t i = 0; i < all->count; i++)
        for (size_t k = 0; k < all->part[i].count; k++)
            all->part[i].permit[k]->retry_at = retry_at;
    return error;
}

static weir_time deadline_of(const struct parts *all, weir_time deadline)
{
    struct wr_settings set;

    if (deadline != WEIR_GUARD_WAIT)
        return deadline;
    wr_remote_settings(all->part[1].guard[0], NULL, &set);
    return wr_sum(wr_os_now(), set.wait_ns);
}

static int enter_parts(struct parts *all, weir_time deadline)
{
    size_t first = 0, refusing;
    bool wait = false;

    for (;;) {
        int rc = try_all(all, first, wait ? deadline : WEIR_NOW_OR_NEVER, &refusing);
        struct part *part;

        if (!rc)
            return 0;
        part = &all->part[refusing];
        if (!is_passing(part, rc) || wr_os_now() >= deadline || (wait && refusing == first))
            return refuse(all, refusing, rc);
        first = refusing;
        wait = part->guard[0]->kind != &wr_kind_rate || !part->guard[0]->remote || rc == WEIR_EAWAY;
        if (wait)
            continue;
        /* A rate would reserve: its turn is slept for instead, so that nothing has to be given back. */
        if (part->permit[0]->retry_at > deadline)
            return refuse(all, refusing, rc);
        rc = weir_sleep(part->permit[0]->retry_at);
        if (rc)
            return refuse(all, refusing, rc);
    }
}

int wr_together_remote(weir_permit *permits, weir_guard *const *guards, size_t count,
                       weir_time deadline)
{
    struct parts all;
    int rc = parts_init(&all, permits, guards, count);

    if (rc)
        return rc;
    for (size_t i = 0; i < count; i++)
        wr_guard_pin(guards[i]); /* it may wait for any of them */
    rc = enter_parts(&all, deadline_of(&all, deadline));
    for (size_t i = 0; i < count; i++)
        wr_guard_waited(guards[i], &permits[i], rc == 0);
    return rc;
}
