/* Holding permits of a fleet: entering, the line, leaving.
 *
 * One round trip decides. A call that may wait is listed here before its request is sent, because the message that it was
 * served comes on another connection, and may come before the reply. The request is sent with the same number until there is
 * an answer: the server gives the same permits for the same number, so a lost answer costs nothing.
 * SPDX-License-Identifier: MIT */
#include "redis/fleet.h"

#include "base/assert.h"
#include "base/os.h"

#include <string.h>
#include <weir/runtime.h>
#include <weir/wait.h>

/* ---- holds --------------------------------------------------------------------------------------- */

struct wr_hold *wr_hold_new(struct wr_fleet_cell *cell, int64_t count)
{
    struct wr_hold *hold = wr_os_alloc(sizeof(*hold));
    weir_task *task = weir_task_self();

    if (!hold)
        return NULL;
    wr_list_init(&hold->link);
    hold->count = count;
    hold->number = wr_add(&cell->fleet->number, count, relaxed);
    hold->task = task ? weir_task_ref(task) : NULL;
    return hold;
}

void wr_hold_free(struct wr_hold *hold)
{
    weir_task_unref(hold->task);
    wr_os_free(hold);
}

void wr_hold_keep(struct wr_fleet_cell *cell, struct wr_hold *hold)
{
    weir_time due = hold->until - 2 * (cell->lease_ns / 3);
    bool sooner;

    wr_lock(&cell->lock);
    wr_list_append(&cell->holds, &hold->link);
    sooner = due < cell->renew_at;
    wr_unlock(&cell->lock);
    if (sooner)
        wr_cell_renew_by(cell, due);
}

int wr_cell_send_leave(struct wr_fleet_cell *cell, int64_t number, int64_t count)
{
    struct wr_command command;
    struct wr_words words;
    int keys, rc;

    wr_words_init(&words);
    keys = wr_cell_keys(&words, cell, 4);
    wr_words_add(&words, "leave");
    wr_words_add(&words, cell->fleet->process);
    wr_words_number(&words, number);
    wr_words_number(&words, count);
    command = wr_words_command(&words, &cell->fleet->permits, keys);
    rc = words.failed ? WEIR_ENOMEM : wr_redis_send(cell->fleet->redis, &command);
    wr_words_fini(&words);
    return rc;
}

/* Gives back the permits that the server may have given, later if it cannot be reached. Takes the hold over. */
static void give_back(struct wr_fleet_cell *cell, struct wr_hold *hold)
{
    if (!wr_cell_send_leave(cell, hold->number, hold->count)) {
        wr_hold_free(hold);
        return;
    }
    weir_task_unref(hold->task);
    hold->task = NULL;
    wr_lock(&cell->lock);
    wr_list_append(&cell->leaving, &hold->link);
    wr_unlock(&cell->lock);
    wr_cell_renew_by(cell, wr_os_now() + cell->lease_ns / 10);
}

int wr_hold_leave(weir_cell *base, weir_remote_call *call)
{
    struct wr_fleet_cell *cell = wr_cell_of(base);
    struct wr_hold *hold = (struct wr_hold *)(uintptr_t)call->number;

    if (!hold)
        return 0;
    if (hold->uncounted) {
        wr_away_leave(hold);
        return 0;
    }
    wr_lock(&cell->lock);
    wr_list_remove(&hold->link);
    wr_unlock(&cell->lock);
    give_back(cell, hold);
    return 0;
}

/* ---- the line ------------------------------------------------------------------------------------ */

static struct wr_list *bucket(struct wr_fleet *fleet, int64_t number)
{
    return &fleet->waiters[(uint64_t)number % WR_FLEET_BUCKETS];
}

void wr_waiter_enlist(struct wr_waiter *waiter, struct wr_fleet_cell *cell)
{
    waiter->cell = cell;
    wr_fleet_listen(cell->fleet);
    wr_lock(&cell->fleet->lock);
    wr_list_append(bucket(cell->fleet, waiter->number), &waiter->link);
    wr_list_init(&waiter->cell_link);
    if (!waiter->told) /* a pool renews its own waiter */
        wr_list_append(&cell->waiters, &waiter->cell_link);
    wr_unlock(&cell->fleet->lock);
}

void wr_waiter_delist(struct wr_waiter *waiter)
{
    wr_lock(&waiter->cell->fleet->lock);
    wr_list_remove(&waiter->link);
    wr_list_remove(&waiter->cell_link);
    wr_unlock(&waiter->cell->fleet->lock);
}

/* Under the fleet's lock. */
static struct wr_waiter *find(struct wr_fleet *fleet, int64_t number)
{
    wr_list_each(at, bucket(fleet, number)) {
        struct wr_waiter *waiter = WR_CONTAINER(at, struct wr_waiter, link);
        if (waiter->number == number)
            return waiter;
    }
    return NULL;
}

/* Tells the waiter that it is served, or has to ask anew. Called with the fleet's lock, which it releases. A waiter that parks
 * may be gone once the lock is free. */
static void tell(struct wr_fleet *fleet, struct wr_waiter *waiter)
{
    void (*told)(struct wr_waiter *) = waiter->told;
    struct wr_fleet_cell *cell = waiter->cell;

    if (told) {
        cell->refs++; /* the waiter is part of it, and its guard may be freed meanwhile */
        wr_list_remove(&waiter->link);
        wr_list_remove(&waiter->cell_link);
    } else {
        weir_unpark(waiter->parker);
    }
    wr_unlock(&fleet->lock);
    if (told) {
        told(waiter);
        wr_cell_unref(cell);
    }
}

void wr_waiter_serve(struct wr_fleet *fleet, int64_t number, int64_t token, int64_t count,
                     int64_t ends)
{
    struct wr_waiter *waiter;

    wr_lock(&fleet->lock);
    waiter = find(fleet, number);
    if (!waiter || waiter->served) {
        wr_unlock(&fleet->lock);
        return;
    }
    waiter->served = true;
    waiter->token = (uint64_t)token;
    waiter->count = count;
    waiter->ends = ends;
    tell(fleet, waiter);
}

void wr_waiter_forgotten(struct wr_fleet *fleet, int64_t number)
{
    struct wr_waiter *waiter;

    wr_lock(&fleet->lock);
    waiter = find(fleet, number);
    if (!waiter || waiter->served || !waiter->in_line) {
        wr_unlock(&fleet->lock);
        return;
    }
    waiter->again = true;
    waiter->in_line = false;
    tell(fleet, waiter);
}

/* Parks until the waiter is served (1), has to ask again (2), or until the deadline or a cancel: an error. */
static int stand_in_line(struct wr_waiter *waiter, weir_time deadline)
{
    struct wr_fleet *fleet = waiter->cell->fleet;
    int rc = 0;

    for (;;) {
        bool served, again;

        wr_lock(&fleet->lock);
        served = waiter->served;
        again = waiter->again;
        waiter->again = false;
        wr_unlock(&fleet->lock);
        if (served)
            return 1;
        if (again)
            return 2;
        if (rc)
            return rc;
        rc = weir_cancelled() ? WEIR_ECANCELED : weir_park(waiter->parker, deadline);
        if (!rc && weir_cancelled())
            rc = WEIR_ECANCELED;
    }
}

/* ---- entering ------------------------------------------------------------------------------------ */

struct entry {
    struct wr_fleet_cell *cell;
    weir_remote_call *call;
    struct wr_hold *hold;
    struct wr_waiter waiter;
    weir_parker_room room;
    bool may_wait, patient;
    /* Of the latest request that was answered: our clock before it, and the server's when it
     * answered */
    weir_time sent;
    int64_t clock;
    uint64_t evictions; /* messages of operators heard before it asked */
    char who[WR_FLEET_WHO];
};

/* Asks the server once. Answers 0 refused, 1 entered, 2 in line, or an error. */
static int ask(struct entry *e)
{
    struct wr_fleet_cell *cell = e->cell;
    struct wr_reply *reply = NULL;
    struct wr_words words;
    weir_time sent;
    int64_t state;
    int keys, rc;

    wr_words_init(&words);
    keys = wr_cell_keys(&words, cell, 5);
    wr_words_add(&words, "enter");
    wr_words_add(&words, cell->fleet->process);
    wr_words_number(&words, e->hold->number);
    wr_words_number(&words, e->hold->count);
    wr_words_number(&words, e->hold->count);
    wr_words_add(&words, e->may_wait ? "1" : "0");
    wr_words_add(&words, e->who);
    sent = wr_os_now();
    rc = wr_cell_call(&reply, cell, &cell->fleet->permits, &words, keys, e->call->deadline);
    wr_words_fini(&words);
    if (rc)
        return rc;
    state = wr_reply_number(reply, 0);
    /* Only a caller that waits can stand in line, whatever the answer says. */
    rc = state >= 0 && state <= (e->may_wait ? 2 : 1) ? (int)state : WEIR_EPROTO;
    e->sent = sent;
    e->clock = wr_reply_number(reply, 4);
    e->hold->token = (uint64_t)wr_reply_number(reply, 1);
    e->hold->until = wr_cell_until(cell, e->sent, e->clock, wr_reply_number(reply, 3));
    if (rc == 2) {
        int64_t next = wr_reply_number(reply, 6);
        weir_time due = e->sent + cell->lease_ns / 3;
        weir_time freed = wr_os_now() + wr_server_span(e->clock, next) + 1000000;
        wr_lock(&cell->fleet->lock);
        e->waiter.in_line = !e->waiter.served;
        wr_unlock(&cell->fleet->lock);
        wr_cell_renew_by(cell, next && freed < due ? freed : due);
    }
    wr_cell_saw(cell, wr_reply_number(reply, 5), wr_reply_number(reply, 8),
                wr_reply_number(reply, 9));
    wr_reply_free(reply);
    return rc;
}

/* The call has entered: its lease is kept from now on, and the call names the hold. If an operator took any permit away
 * meanwhile, it may have been this one, before the hold was in the list: a renewal asks the server. */
static int entered(struct entry *e)
{
    e->call->token = e->hold->token;
    e->call->number = (int64_t)(uintptr_t)e->hold;
    wr_hold_keep(e->cell, e->hold);
    if (wr_load(&e->cell->fleet->evictions, relaxed) != e->evictions)
        wr_cell_renew_now(e->cell);
    return 0;
}

/* The call was served while it stood in line: its lease began then, by the server's clock. Our clock was at least `sent` when
 * the server's was `clock`, so the lease does not end before the time that is noted here. */
static int entered_from_line(struct entry *e)
{
    e->hold->token = e->waiter.token;
    e->hold->until = wr_cell_until(e->cell, e->sent, e->clock, e->waiter.ends);
    return entered(e);
}

/* Asks, and waits in line, until the call has entered or has failed. */
static int ask_and_wait(struct entry *e)
{
    weir_time deadline = e->call->deadline;

    for (;;) {
        int rc = ask(e);

        if (rc == 2)
            rc = stand_in_line(&e->waiter, deadline);
        else if (rc == 1)
            return entered(e);
        else if (rc == 0)
            return WEIR_EAGAIN;
        if (rc == 1)
            return entered_from_line(e);
        if (rc == 2 || (rc == WEIR_ELOST && e->patient && wr_os_now() < deadline))
            continue;
        if (rc == WEIR_ETIMEDOUT && e->waiter.in_line)
            return WEIR_EAGAIN; /* it stood in line until the deadline: the server is not away */
        return rc;
    }
}

int wr_hold_enter(weir_cell *base, weir_remote_call *call)
{
    struct entry e = { .cell = wr_cell_of(base), .call = call };
    struct wr_fleet_cell *cell = e.cell;
    bool last_moment;
    int rc;

    e.hold = wr_hold_new(cell, call->permits);
    if (!e.hold)
        return WEIR_ENOMEM;
    wr_fleet_who(e.who, sizeof(e.who), cell->fleet);
    e.evictions = wr_load(&cell->fleet->evictions, relaxed);
    e.may_wait = call->deadline > wr_os_now();
    e.patient = e.may_wait && cell->when_away == WEIR_AWAY_CLOSED;
    if (e.may_wait) {
        e.waiter.number = e.hold->number;
        e.waiter.parker = weir_parker_self(&e.room);
        wr_list_init(&e.waiter.link);
        wr_list_init(&e.waiter.cell_link);
        wr_waiter_enlist(&e.waiter, cell);
    }
    rc = ask_and_wait(&e);
    if (e.may_wait)
        wr_waiter_delist(&e.waiter);
    if (!rc)
        return 0;
    /* Served in the very moment it gave up: that counts, unless it was cancelled. */
    last_moment = e.may_wait && e.waiter.served && e.clock && rc != WEIR_ECANCELED;
    if (last_moment)
        return entered_from_line(&e);
    if (rc == WEIR_EAGAIN && !e.waiter.in_line) {
        wr_hold_free(e.hold); /* refused: the server has given nothing */
        return rc;
    }
    give_back(cell, e.hold);
    return wr_fleet_is_away(rc) ? wr_away_enter(cell, call, rc) : rc;
}
