/* Rates and frequencies of a fleet: what is taken is spent, so there is no lease and nothing to renew.
 *
 * A rate reserves ahead on the server: whoever may wait sleeps until its turn. A frequency has no turns; of the callers of one
 * process that wait for room one at a time asks the server, when the server said there would be some.
 * SPDX-License-Identifier: MIT */
#include "redis/fleet.h"

#include "base/os.h"

#include <stdio.h>
#include <weir/runtime.h>
#include <weir/wait.h>

static int64_t to_us(int64_t ns)
{
    return ns < 0 ? 0 : ns / 1000;
}

/* ---- rate ---------------------------------------------------------------------------------------- */

static int give_rate(struct wr_fleet_cell *cell, const weir_remote_call *call)
{
    struct wr_command command;
    struct wr_words words;
    int keys, rc;

    wr_words_init(&words);
    keys = wr_cell_keys(&words, cell, 2);
    wr_words_add(&words, "give");
    wr_words_number(&words, call->permits);
    wr_words_number(&words, call->where);
    wr_words_number(&words, (int64_t)call->token);
    wr_words_number(&words, call->number);
    command = wr_words_command(&words, &cell->fleet->rate, keys);
    rc = wr_redis_send(cell->fleet->redis, &command);
    wr_words_fini(&words);
    return rc;
}

static int enter_rate(struct wr_fleet_cell *cell, weir_remote_call *call)
{
    struct wr_reply *reply = NULL;
    struct wr_words words;
    int64_t patience, wait;
    weir_time now = wr_os_now();
    bool crowded;
    int keys, rc;

    wr_lock(&cell->lock);
    crowded = wr_load(&cell->crowd, relaxed) >=
              (cell->set.waiters_max == WEIR_NO_WAITERS ? 0 : cell->set.waiters_max);
    wr_unlock(&cell->lock);
    patience = call->reserve                    ? call->patience_ns
               : call->deadline == WEIR_FOREVER ? INT64_C(1) << 60
                                                : call->deadline - now;
    wr_words_init(&words);
    keys = wr_cell_keys(&words, cell, 2);
    wr_words_add(&words, "take");
    wr_words_number(&words, call->permits);
    wr_words_number(&words, crowded ? 0 : to_us(patience));
    rc = wr_cell_call(&reply, cell, &cell->fleet->rate, &words, keys, call->deadline);
    wr_words_fini(&words);
    if (rc)
        return rc;
    wait = wr_reply_number(reply, 3) * 1000;
    call->where = wr_reply_number(reply, 2);
    call->token = (uint64_t)wr_reply_number(reply, 4);
    call->number = wr_reply_number(reply, 5);
    call->wait_ns = wait;
    now = wr_os_now();
    call->retry_at = now + wait;
    rc = wr_reply_number(reply, 0) == 1 ? 0 : WEIR_EAGAIN;
    wr_cell_saw(cell, call->where, -1, -1);
    wr_reply_free(reply);
    if (rc || call->reserve || !wait)
        return rc;
    wr_add(&cell->crowd, 1, relaxed);
    rc = weir_sleep(now + wait);
    wr_sub(&cell->crowd, 1, relaxed);
    if (rc)
        give_rate(cell, call);
    return rc;
}

/* ---- frequency ----------------------------------------------------------------------------------- */

/* One look. WEIR_EAGAIN: not now; call->retry_at says when. */
static int take_window(struct wr_fleet_cell *cell, weir_remote_call *call)
{
    struct wr_reply *reply = NULL;
    struct wr_words words;
    int64_t when;
    int keys, rc;

    call->number = wr_add(&cell->fleet->number, call->permits, relaxed);
    wr_words_init(&words);
    keys = wr_cell_keys(&words, cell, 3);
    wr_words_add(&words, "take");
    wr_words_number(&words, call->permits);
    wr_words_add(&words, cell->fleet->process);
    wr_words_number(&words, call->number);
    rc = wr_cell_call(&reply, cell, &cell->fleet->window, &words, keys, call->deadline);
    wr_words_fini(&words);
    if (rc)
        return rc;
    when = wr_reply_number(reply, 3);
    call->where = wr_reply_number(reply, 1);
    call->token = 0;
    call->retry_at = when < 0 ? WEIR_FOREVER : wr_os_now() + (when - call->where) * 1000;
    rc = wr_reply_number(reply, 0) == 1 ? 0 : WEIR_EAGAIN;
    wr_cell_saw(cell, wr_reply_number(reply, 2), -1, -1);
    wr_reply_free(reply);
    return rc;
}

/* The line of this process: whoever holds it asks the server. */
static weir_guard *queue_of(struct wr_fleet_cell *cell)
{
    weir_guard *guard;
    char name[32];

    wr_lock(&cell->lock);
    guard = cell->queue;
    wr_unlock(&cell->lock);
    if (guard)
        return guard;
    snprintf(name, sizeof(name), "queue %p", (void *)cell);
    if (weir_guard_new(&guard, cell->fleet->shares, name, WEIR_MUTEX(.limit = 1), NULL))
        return NULL;
    wr_lock(&cell->lock);
    if (!cell->queue)
        cell->queue = guard;
    wr_unlock(&cell->lock);
    return guard;
}

/* At the head of the line: sleeps until there is room, and looks. */
static int wait_for_window(struct wr_fleet_cell *cell, weir_remote_call *call)
{
    int rc = take_window(cell, call);

    while (rc == WEIR_EAGAIN && call->retry_at <= call->deadline && wr_os_now() < call->deadline) {
        rc = weir_sleep(call->retry_at);
        rc = rc ? rc : take_window(cell, call);
    }
    return rc;
}

static int queue_for_window(struct wr_fleet_cell *cell, weir_remote_call *call, int64_t most)
{
    weir_guard *queue = queue_of(cell);
    weir_permit turn = WEIR_PERMIT;
    int rc;

    if (!queue)
        return WEIR_ENOMEM;
    if (wr_add(&cell->crowd, 1, relaxed) >= most) {
        wr_sub(&cell->crowd, 1, relaxed);
        return WEIR_EAGAIN;
    }
    rc = weir_guard_enter(&turn, queue, call->deadline);
    if (!rc) {
        rc = wait_for_window(cell, call);
        weir_guard_leave(&turn, 0);
    } else if (rc == WEIR_ELOCKED) {
        rc = WEIR_EAGAIN;
    }
    wr_sub(&cell->crowd, 1, relaxed);
    return rc;
}

static int enter_window(struct wr_fleet_cell *cell, weir_remote_call *call)
{
    int64_t most;
    int rc = WEIR_EAGAIN;

    wr_lock(&cell->lock);
    most = cell->set.waiters_max == WEIR_NO_WAITERS ? 0 : cell->set.waiters_max;
    wr_unlock(&cell->lock);
    /* Whoever comes while others wait does not outrun them. */
    if (wr_load(&cell->crowd, relaxed) == 0 || call->deadline <= wr_os_now()) {
        rc = take_window(cell, call);
        if (rc != WEIR_EAGAIN || call->deadline <= wr_os_now() || call->retry_at > call->deadline)
            return rc;
    }
    return queue_for_window(cell, call, most);
}

/* ---- both ---------------------------------------------------------------------------------------- */

int wr_timed_enter(weir_cell *base, weir_remote_call *call)
{
    struct wr_fleet_cell *cell = wr_cell_of(base);
    int rc = cell->kind == WEIR_GUARD_RATE ? enter_rate(cell, call) : enter_window(cell, call);

    return wr_fleet_is_away(rc) ? wr_away_enter(cell, call, rc) : rc;
}

int wr_timed_undo(weir_cell *base, weir_remote_call *call)
{
    struct wr_fleet_cell *cell = wr_cell_of(base);
    struct wr_command command;
    struct wr_words words;
    int keys;

    if (call->where < 0 || wr_compat_serves(cell))
        return 0; /* entered without the server, or counted where nothing is taken back */
    if (cell->kind == WEIR_GUARD_RATE) {
        give_rate(cell, call);
        return 0;
    }
    wr_words_init(&words);
    keys = wr_cell_keys(&words, cell, 3);
    wr_words_add(&words, "give");
    wr_words_number(&words, call->permits);
    wr_words_add(&words, cell->fleet->process);
    wr_words_number(&words, call->number);
    wr_words_number(&words, call->where);
    command = wr_words_command(&words, &cell->fleet->window, keys);
    wr_redis_send(cell->fleet->redis, &command);
    wr_words_fini(&words);
    return 0;
}

int64_t wr_timed_drain(weir_cell *base)
{
    struct wr_fleet_cell *cell = wr_cell_of(base);
    struct wr_reply *reply = NULL;
    struct wr_words words;
    int64_t drained;
    int keys, rc;

    wr_words_init(&words);
    keys = wr_cell_keys(&words, cell, 2);
    wr_words_add(&words, "drain");
    rc = wr_cell_call(&reply, cell, &cell->fleet->rate, &words, keys, 0);
    wr_words_fini(&words);
    if (rc)
        return rc;
    drained = wr_reply_number(reply, 0);
    wr_reply_free(reply);
    return drained;
}
