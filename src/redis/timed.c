/* Rates and frequencies of a fleet: permits are spent when they are taken, so there is no lease and nothing to renew.
 *
 * The server gives turns ahead: a caller that may wait is told its time by the one answer, and sleeps until then. So callers of
 * all processes go in the order in which they asked.
 * SPDX-License-Identifier: MIT */
#include "redis/fleet.h"

#include "base/os.h"

#include <weir/runtime.h>
#include <weir/wait.h>

static int64_t to_us(int64_t ns)
{
    return ns < 0 ? 0 : ns / 1000;
}

/* Gives back permits that were not needed. */
static int give(struct wr_fleet_cell *cell, const weir_remote_call *call)
{
    bool rate = cell->kind == WEIR_GUARD_RATE;
    struct wr_command command;
    struct wr_words words;
    int keys, rc;

    wr_words_init(&words);
    keys = wr_cell_keys(&words, cell, rate ? 2 : 4);
    wr_words_add(&words, "give");
    wr_words_number(&words, call->permits);
    if (rate) {
        wr_words_number(&words, call->where);
        wr_words_number(&words, (int64_t)call->token);
        wr_words_number(&words, call->number);
    } else {
        wr_words_add(&words, cell->fleet->process);
        wr_words_number(&words, call->number);
        wr_words_number(&words, call->where);
    }
    command = wr_words_command(&words, rate ? &cell->fleet->rate : &cell->fleet->window, keys);
    rc = wr_redis_send(cell->fleet->redis, &command);
    wr_words_fini(&words);
    return rc;
}

/* Asks the script of either kind for permits, and says how long the caller would wait for its turn. */
static int take(struct wr_fleet_cell *cell, weir_remote_call *call, struct wr_reply **reply)
{
    bool rate = cell->kind == WEIR_GUARD_RATE, crowded;
    weir_time now = wr_os_now();
    struct wr_words words;
    int64_t patience;
    int keys, rc;

    wr_lock(&cell->lock);
    crowded = wr_load(&cell->crowd, relaxed) >=
              (cell->set.waiters_max == WEIR_NO_WAITERS ? 0 : cell->set.waiters_max);
    wr_unlock(&cell->lock);
    patience = crowded                          ? 0
               : call->reserve                  ? call->patience_ns
               : call->deadline == WEIR_FOREVER ? INT64_C(1) << 60
                                                : call->deadline - now;
    wr_words_init(&words);
    keys = wr_cell_keys(&words, cell, rate ? 2 : 4);
    wr_words_add(&words, "take");
    wr_words_number(&words, call->permits);
    if (!rate) {
        call->number = wr_add(&cell->fleet->number, call->permits, relaxed);
        wr_words_add(&words, cell->fleet->process);
        wr_words_number(&words, call->number);
        wr_words_number(&words, call->permits);
    }
    wr_words_number(&words, to_us(patience));
    rc = wr_cell_call(reply, cell, rate ? &cell->fleet->rate : &cell->fleet->window, &words, keys,
                      call->deadline);
    wr_words_fini(&words);
    return rc;
}

/* { 1 taken, now, version, wait, where, part, count }. `where` of the call is the version: after a change nothing is given
 * back. */
static int read_rate(weir_remote_call *call, const struct wr_reply *reply)
{
    call->wait_ns = wr_server_span(0, wr_reply_number(reply, 3));
    call->where = wr_reply_number(reply, 2);
    call->token = (uint64_t)wr_reply_number(reply, 4);
    call->number = wr_reply_number(reply, 5);
    return wr_reply_number(reply, 0) == 1 ? 0 : WEIR_EAGAIN;
}

/* { 1 taken, now, version, when, count } */
static int read_window(weir_remote_call *call, const struct wr_reply *reply)
{
    int64_t when = wr_reply_number(reply, 3);

    call->wait_ns = when < 0 ? -1 : wr_server_span(wr_reply_number(reply, 1), when);
    call->where = when;
    call->token = 0;
    return wr_reply_number(reply, 0) == 1 ? 0 : WEIR_EAGAIN;
}

/* The caller gave up before the answer came: a turn that the server may have given goes back, by its number. A call that went
 * at once stays counted; and a rate gives back only what its answer has named. */
static void give_unheard(struct wr_fleet_cell *cell, weir_remote_call *call, int error)
{
    if (cell->kind == WEIR_GUARD_RATE || (error != WEIR_ECANCELED && error != WEIR_ETIMEDOUT))
        return;
    call->where = 0; /* not in a window that still counts */
    give(cell, call);
}

/* The server gives the turn, and the caller sleeps until then. */
static int enter(struct wr_fleet_cell *cell, weir_remote_call *call)
{
    struct wr_reply *reply = NULL;
    weir_time now;
    int rc = take(cell, call, &reply);

    if (rc) {
        give_unheard(cell, call, rc);
        return rc;
    }
    rc = cell->kind == WEIR_GUARD_RATE ? read_rate(call, reply) : read_window(call, reply);
    now = wr_os_now();
    call->retry_at = call->wait_ns < 0 ? WEIR_FOREVER : now + call->wait_ns;
    wr_cell_saw(cell, wr_reply_number(reply, 2), -1, -1);
    wr_reply_free(reply);
    if (rc || call->reserve || call->wait_ns <= 0)
        return rc;
    if (call->retry_at > call->deadline) { /* weir's script does not give such a turn */
        give(cell, call);
        return WEIR_EAGAIN;
    }
    wr_add(&cell->crowd, 1, relaxed);
    rc = weir_sleep(now + call->wait_ns);
    wr_sub(&cell->crowd, 1, relaxed);
    if (rc)
        give(cell, call);
    return rc;
}

int wr_timed_enter(weir_cell *base, weir_remote_call *call)
{
    struct wr_fleet_cell *cell = wr_cell_of(base);
    int rc = enter(cell, call);

    return wr_fleet_is_away(rc) ? wr_away_enter(cell, call, rc) : rc;
}

int wr_timed_undo(weir_cell *base, weir_remote_call *call)
{
    struct wr_fleet_cell *cell = wr_cell_of(base);

    if (call->where >= 0 && !wr_compat_serves(cell))
        give(cell, call); /* else it entered without the server, or nothing can be given back */
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
