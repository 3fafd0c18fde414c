/* Guards whose server cannot be reached: closed, open, or by a share of their own.
 * SPDX-License-Identifier: MIT */
#include "redis/fleet.h"

#include "base/os.h"

#include <stdio.h>
#include <weir/wait.h>

/* A guard of this process with the same settings, except the limit. Made when it is first needed, and kept. */
static weir_guard *share_guard(struct wr_fleet_cell *cell)
{
    weir_guard_options opt;
    weir_guard *guard = NULL;
    bool first;
    char name[32];

    wr_lock(&cell->lock);
    guard = cell->share_guard;
    opt = cell->set;
    wr_unlock(&cell->lock);
    if (guard)
        return guard;
    opt.size = sizeof(opt);
    opt.kind = cell->kind;
    opt.mode = cell->mode;
    if (cell->kind != WEIR_GUARD_MUTEX)
        opt.limit = cell->share;
    opt.on_event = NULL;
    opt.initial_ns = 0;
    snprintf(name, sizeof(name), "share %p", (void *)cell);
    if (weir_guard_new(&guard, cell->fleet->shares, name, &opt, NULL))
        return NULL;
    /* Threads that race get the same guard, by its name, and a reference each. */
    wr_lock(&cell->lock);
    first = !cell->share_guard;
    cell->share_guard = guard;
    wr_unlock(&cell->lock);
    if (!first)
        weir_guard_unref(guard);
    return guard;
}

static int enter_share(struct wr_fleet_cell *cell, struct wr_hold *hold, weir_remote_call *call)
{
    weir_guard *guard = share_guard(cell);
    int rc;

    if (!guard)
        return WEIR_ENOMEM;
    if (call->reserve)
        rc = (int)weir_guard_reserve(&hold->share, guard, call->permits, 0);
    else
        rc = weir_guard_enter_n(&hold->share, guard, call->permits, call->deadline);
    if (rc == WEIR_ECANCELED || !rc)
        return rc;
    call->retry_at = hold->share.retry_at;
    return rc == WEIR_EINVAL ? WEIR_EAWAY : WEIR_EAGAIN; /* more than the share can ever be */
}

int wr_away_enter(struct wr_fleet_cell *cell, weir_remote_call *call, int error)
{
    bool timed = cell->kind == WEIR_GUARD_RATE || cell->kind == WEIR_GUARD_FREQUENCY;
    struct wr_hold *hold;
    int rc = 0;

    (void)error;
    if (cell->when_away == WEIR_AWAY_CLOSED)
        return WEIR_EAWAY;
    hold = wr_os_alloc(sizeof(*hold));
    if (!hold)
        return WEIR_ENOMEM;
    wr_list_init(&hold->link);
    hold->uncounted = true;
    hold->count = call->permits;
    if (cell->when_away == WEIR_AWAY_SHARE)
        rc = enter_share(cell, hold, call);
    if (rc) {
        wr_os_free(hold);
        return rc;
    }
    wr_lock(&cell->lock);
    cell->uncounted++;
    wr_unlock(&cell->lock);
    call->token = 0;
    call->wait_ns = 0;
    call->where = -1;
    call->number = (int64_t)(uintptr_t)hold;
    if (timed) { /* nothing of it is given back */
        hold->share.guard = NULL;
        wr_os_free(hold);
        call->number = 0;
    }
    return 0;
}

void wr_away_leave(struct wr_hold *hold)
{
    if (hold->share.guard)
        weir_guard_leave(&hold->share, 0);
    wr_os_free(hold);
}
