/* Keeping leases: renewals from the client's own body, and holders that are told to stop in time.
 *
 * A cell has one timer. It is set for the next renewal, a third of a lease after the one before; for the moment at which a lease
 * that could not be renewed comes to its margin; and, while a caller of this process waits, for the moment at which the server's
 * next lease ends, because a request that comes then finds it over. Without holds and waiters the timer is not set, and nothing
 * is sent.
 * SPDX-License-Identifier: MIT */
#include "redis/fleet.h"

#include "base/assert.h"
#include "base/os.h"

#include <string.h>

/* ---- the timer ----------------------------------------------------------------------------------- */

void wr_cell_renew_by(struct wr_fleet_cell *cell, weir_time when)
{
    bool sooner;

    wr_lock(&cell->lock);
    sooner = when < cell->renew_at && !cell->closing;
    if (sooner)
        cell->renew_at = when;
    wr_unlock(&cell->lock);
    if (sooner)
        wr_redis_timer_set(cell->fleet->redis, &cell->renewal, when);
}

void wr_cell_renew_now(struct wr_fleet_cell *cell)
{
    bool some;

    wr_lock(&cell->lock);
    some = !wr_list_empty(&cell->holds) || !wr_list_empty(&cell->leaving);
    cell->again = cell->renewing != 0;
    wr_unlock(&cell->lock);
    wr_lock(&cell->fleet->lock);
    some = some || !wr_list_empty(&cell->waiters);
    wr_unlock(&cell->fleet->lock);
    if (some)
        wr_cell_renew_by(cell, wr_os_now());
}

/* ---- losses -------------------------------------------------------------------------------------- */

static void tell_lost(struct wr_fleet_cell *cell, const weir_lost *lost)
{
    if (cell->on_lost)
        cell->on_lost(lost, cell->lost_arg);
    if (lost->task && !cell->keep_task)
        weir_task_cancel(lost->task);
    weir_task_unref(lost->task);
}

/* Under the lock. The hold stays with its holder; only its lease is not kept any more. */
static weir_lost lose(struct wr_fleet_cell *cell, struct wr_hold *hold, const char *why)
{
    hold->lost = true;
    cell->lost++;
    return (weir_lost){ .guard = cell->guard,
                        .token = hold->token,
                        .permits = hold->count,
                        .until = hold->until,
                        .task = hold->task ? weir_task_ref(hold->task) : NULL,
                        .why = why };
}

/* Gives up the holds that `which` picks, and tells their holders. One hold at a time, since others may leave meanwhile. */
static void lose_all(struct wr_fleet_cell *cell,
                     bool (*which)(struct wr_fleet_cell *cell, const struct wr_hold *hold,
                                   const int64_t *arg, size_t count),
                     const int64_t *arg, size_t count, const char *why)
{
    bool found;

    do {
        weir_lost lost;

        found = false;
        wr_lock(&cell->lock);
        wr_list_each(at, &cell->holds) {
            struct wr_hold *hold = WR_CONTAINER(at, struct wr_hold, link);
            if (!hold->lost && which(cell, hold, arg, count)) {
                lost = lose(cell, hold, why);
                found = true;
                break;
            }
        }
        wr_unlock(&cell->lock);
        if (found)
            tell_lost(cell, &lost);
    } while (found);
}

static bool is_due(struct wr_fleet_cell *cell, const struct wr_hold *hold, const int64_t *now,
                   size_t count)
{
    (void)count;
    return hold->until - cell->margin_ns <= *now;
}

static bool is_listed(struct wr_fleet_cell *cell, const struct wr_hold *hold,
                      const int64_t *numbers, size_t count)
{
    (void)cell;
    for (size_t i = 0; i < count; i++)
        if (numbers[i] >= hold->number && numbers[i] < hold->number + hold->count)
            return true;
    return false;
}

void wr_cell_evicted(struct wr_fleet_cell *cell, int64_t number)
{
    lose_all(cell, is_listed, &number, 1, "an operator took the permit away");
}

/* ---- renewing ------------------------------------------------------------------------------------ */

static void renewed(int error, struct wr_reply *reply, void *arg);

/* Adds the numbers of all holds whose lease is kept; answers how many. Under the lock. */
static int add_holds(struct wr_fleet_cell *cell, struct wr_words *words, weir_time now)
{
    int count = 0;

    wr_list_each(at, &cell->holds) {
        struct wr_hold *hold = WR_CONTAINER(at, struct wr_hold, link);
        if (hold->lost)
            continue;
        hold->asked = now;
        for (int64_t i = 0; i < hold->count; i++, count++)
            wr_words_number(words, hold->number + i);
    }
    return count;
}

static int add_waiters(struct wr_fleet_cell *cell, struct wr_words *words)
{
    int count = 0;

    wr_lock(&cell->fleet->lock);
    wr_list_each(at, &cell->waiters) {
        struct wr_waiter *waiter = WR_CONTAINER(at, struct wr_waiter, cell_link);
        /* Also one whose answer "in line" is still on its way: it may have been served, and the message lost before
         * this process listened. If the server does not know it yet, that is no news (wr_waiter_forgotten). */
        if (!waiter->served) {
            wr_words_number(words, waiter->number);
            count++;
        }
    }
    wr_unlock(&cell->fleet->lock);
    return count;
}

static int64_t count_holds(struct wr_fleet_cell *cell)
{
    int64_t count = 0;

    wr_list_each(at, &cell->holds) {
        const struct wr_hold *hold = WR_CONTAINER(at, struct wr_hold, link);
        count += hold->lost ? 0 : hold->count;
    }
    return count;
}

/* Sends a renewal of all holds and waiters. True: it is under way; false: there are none (`nothing`), or it could not be sent. */
static bool send_renewal(struct wr_fleet_cell *cell, weir_time now, bool *nothing)
{
    struct wr_command command;
    struct wr_words words;
    int keys, rc, count;

    wr_words_init(&words);
    keys = wr_cell_keys(&words, cell, 5);
    wr_words_add(&words, "renew");
    wr_words_add(&words, cell->fleet->process);
    wr_words_add(&words, "-1");
    wr_words_add(&words, "0");
    wr_lock(&cell->lock);
    wr_words_number(&words, count_holds(cell));
    wr_words_number(&words, cell->born);
    count = add_holds(cell, &words, now);
    cell->renewing = now;
    cell->again = false;
    wr_unlock(&cell->lock);
    count += add_waiters(cell, &words);
    *nothing = count == 0;
    rc = WEIR_ENOMEM;
    if (count && !words.failed) {
        command = wr_words_command(&words, &cell->fleet->permits, keys);
        wr_cell_ref(cell);
        rc = wr_redis_ask(cell->fleet->redis, &command, now + cell->lease_ns, renewed, cell);
        if (rc)
            wr_cell_unref(cell);
    }
    wr_words_fini(&words);
    if (!rc)
        return true;
    wr_lock(&cell->lock);
    cell->renewing = 0;
    wr_unlock(&cell->lock);
    return false;
}

/* The next moment at which a lease comes to its margin. */
static weir_time next_margin(struct wr_fleet_cell *cell)
{
    weir_time next = WEIR_FOREVER;

    wr_lock(&cell->lock);
    wr_list_each(at, &cell->holds) {
        const struct wr_hold *hold = WR_CONTAINER(at, struct wr_hold, link);
        if (!hold->lost && hold->until - cell->margin_ns < next)
            next = hold->until - cell->margin_ns;
    }
    wr_unlock(&cell->lock);
    return next;
}

/* Gives back the permits that could not be given back while the server was away. False: some still cannot be. */
static bool flush_leaving(struct wr_fleet_cell *cell)
{
    struct wr_hold *hold;

    for (;;) {
        wr_lock(&cell->lock);
        hold = wr_list_empty(&cell->leaving)
                   ? NULL
                   : WR_CONTAINER(cell->leaving.next, struct wr_hold, link);
        if (hold)
            wr_list_remove(&hold->link);
        wr_unlock(&cell->lock);
        if (!hold)
            return true;
        if (wr_cell_send_leave(cell, hold->number, hold->count)) {
            wr_lock(&cell->lock);
            wr_list_append(&cell->leaving, &hold->link);
            wr_unlock(&cell->lock);
            return false;
        }
        wr_hold_free(hold);
    }
}

/* Locks under the original's names are renewed one by one: there is one per guard. */
static void renew_compat(struct wr_fleet_cell *cell, weir_time now)
{
    int64_t number = 0;
    int rc;

    wr_lock(&cell->lock);
    wr_list_each(at, &cell->holds) {
        const struct wr_hold *hold = WR_CONTAINER(at, struct wr_hold, link);
        number = hold->lost ? number : hold->number;
    }
    wr_unlock(&cell->lock);
    if (!number)
        return;
    rc = wr_compat_renew(cell, number);
    if (rc == WEIR_ENOGUARD)
        lose_all(cell, is_listed, &number, 1, "the lock is free, or has another holder");
    wr_lock(&cell->lock);
    wr_list_each(at, &cell->holds) {
        struct wr_hold *hold = WR_CONTAINER(at, struct wr_hold, link);
        if (!rc && hold->number == number)
            hold->until = now + cell->lease_ns;
    }
    wr_unlock(&cell->lock);
    wr_cell_renew_by(cell, rc ? wr_cell_soon(cell, now) : now + cell->lease_ns / 3);
}

static void fire(struct wr_redis_timer *timer, void *arg)
{
    struct wr_fleet_cell *cell = arg;
    weir_time now = wr_os_now(), margin;
    bool under_way, nothing = true, sent = true, flushed;

    (void)timer;
    wr_lock(&cell->lock);
    cell->renew_at = WEIR_FOREVER;
    under_way = cell->renewing != 0;
    wr_unlock(&cell->lock);
    lose_all(cell, is_due, &now, 1, "the lease could not be renewed");
    flushed = flush_leaving(cell);
    if (wr_compat_serves(cell))
        renew_compat(cell, now);
    else if (!under_way)
        sent = send_renewal(cell, now, &nothing);
    if ((!sent && !nothing) || !flushed)
        wr_cell_renew_by(cell, wr_cell_soon(cell, now));
    margin = next_margin(cell);
    if (margin != WEIR_FOREVER)
        wr_cell_renew_by(cell, margin > now ? margin : now);
}

/* Extends the leases that the request sent at `sent` named; those that the server lists as lost are lost. */
static void take_leases(struct wr_fleet_cell *cell, weir_time sent, const int64_t *lost,
                        size_t count)
{
    wr_lock(&cell->lock);
    wr_list_each(at, &cell->holds) {
        struct wr_hold *hold = WR_CONTAINER(at, struct wr_hold, link);
        if (hold->asked == sent && !hold->lost && !is_listed(cell, hold, lost, count))
            hold->until = sent + cell->lease_ns;
    }
    wr_unlock(&cell->lock);
    if (count)
        lose_all(cell, is_listed, lost, count, "the server does not know the permit any more");
}

/* { now, version, next end, target, limit, held, born, lost, numbers..., then number, token, count, ends of waiters } */
static void take_reply(struct wr_fleet_cell *cell, weir_time sent, const struct wr_reply *reply)
{
    weir_time now = wr_os_now(), due = sent + cell->lease_ns / 3, freed;
    int64_t clock = wr_reply_number(reply, 0), next = wr_reply_number(reply, 2);
    size_t lost_count = wr_reply_count(reply, 7), at = 8 + lost_count;
    int64_t *lost = lost_count ? wr_os_alloc(lost_count * sizeof(*lost)) : NULL;
    bool waits = false, some;

    for (size_t i = 0; lost && i < lost_count; i++)
        lost[i] = wr_reply_number(reply, 8 + i);
    wr_lock(&cell->lock);
    cell->born = wr_reply_number(reply, 6);
    wr_unlock(&cell->lock);
    take_leases(cell, sent, lost, lost ? lost_count : 0);
    wr_os_free(lost);
    for (; at + 3 < reply->count; at += 4) {
        int64_t number = wr_reply_number(reply, at), token = wr_reply_number(reply, at + 1);

        if (token > 0)
            wr_waiter_serve(cell->fleet, number, token, wr_reply_number(reply, at + 2),
                            wr_reply_number(reply, at + 3));
        else if (token < 0)
            wr_waiter_forgotten(cell->fleet, number);
        waits = waits || token == 0;
    }
    wr_cell_saw(cell, wr_reply_number(reply, 1), wr_reply_number(reply, 4),
                wr_reply_number(reply, 5));
    wr_lock(&cell->lock);
    some = !wr_list_empty(&cell->holds);
    wr_unlock(&cell->lock);
    freed = now + wr_server_span(clock, next) + WR_MS;
    if (waits && next && freed < due)
        due = freed;
    if (some || waits)
        wr_cell_renew_by(cell, due > now ? due : now);
}

/* Has all callers in line ask again: they get the error that new callers get. None will be served before an operator has
 * mended the keys. */
static void send_away(struct wr_fleet_cell *cell)
{
    struct wr_fleet *fleet = cell->fleet;

    wr_lock(&fleet->lock);
    wr_list_each(at, &cell->waiters) {
        struct wr_waiter *waiter = WR_CONTAINER(at, struct wr_waiter, cell_link);
        if (!waiter->served && waiter->in_line) {
            waiter->again = true;
            waiter->in_line = false;
            weir_unpark(waiter->parker);
        }
    }
    wr_unlock(&fleet->lock);
}

static void renewed(int error, struct wr_reply *reply, void *arg)
{
    struct wr_fleet_cell *cell = arg;
    weir_time sent, now = wr_os_now();
    bool again, forgotten = !error && wr_reply_number(reply, 0) < 0;

    if (wr_cell_judge(cell, error, reply, NULL) == WEIR_EFOREIGN)
        send_away(cell);
    wr_lock(&cell->lock);
    sent = cell->renewing;
    cell->renewing = 0;
    again = cell->again;
    wr_unlock(&cell->lock);
    if (forgotten && !wr_cell_open(cell, true, wr_fleet_deadline(cell->fleet, 0), NULL))
        again = true;
    if (error || (forgotten && !again))
        wr_cell_renew_by(cell, wr_cell_soon(cell, now));
    else if (!forgotten)
        take_reply(cell, sent, reply);
    if (again)
        wr_cell_renew_by(cell, now);
    wr_reply_free(reply);
    wr_cell_unref(cell);
}

void wr_cell_renewal_init(struct wr_fleet_cell *cell)
{
    cell->renew_at = WEIR_FOREVER;
    cell->renewal = (struct wr_redis_timer){ .fire = fire, .arg = cell };
}
