/* Asking the server for units of a pool, and what it answers. See leased.h.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/os.h"
#include "redis/leased.h"

static void answered(int error, struct wr_reply *reply, void *arg);

static void served(struct wr_waiter *waiter)
{
    struct wr_leased *pool = WR_CONTAINER(waiter, struct wr_leased, waiter);

    wr_lock(&pool->lock);
    if (pool->closing) { /* wr_leased_close gives back all that the server has given for it */
        wr_unlock(&pool->lock);
        return;
    }
    if (waiter->served && !pool->asking) {
        pool->waiting = false;
        wr_leased_add(pool, waiter->number, waiter->count,
                      wr_cell_until(pool->cell, pool->sent, pool->clock, waiter->ends));
    } else if (waiter->again) {
        pool->waiting = false;
    }
    /* Else the answer to `enter` is still on its way, and take_answer looks at `served`. */
    wr_leased_kick(pool, wr_os_now());
    wr_unlock(&pool->lock);
}

/* Under the lock. */
bool wr_leased_should_ask(const struct wr_leased *pool)
{
    return pool->asked && !pool->asking && !pool->waiting && !pool->renewing &&
           (pool->target < 0 || pool->units < pool->target || pool->units == 0 ||
            wr_leased_want(pool) > pool->told);
}

/* Without the lock; `asking` is set. */
void wr_leased_ask(struct wr_leased *pool, int64_t wanted, int64_t have)
{
    struct wr_fleet_cell *cell = pool->cell;
    struct wr_waiter *waiter = &pool->waiter;
    char who[WR_FLEET_WHO];
    struct wr_command command;
    struct wr_words words;
    int64_t count = wanted - have;
    int keys, rc;

    *waiter = (struct wr_waiter){ .told = served };
    waiter->number = wr_add(&cell->fleet->number, count, relaxed);
    pool->requested = count;
    wr_waiter_enlist(waiter, cell);
    wr_fleet_who(who, sizeof(who), cell->fleet);
    wr_words_init(&words);
    keys = wr_cell_keys(&words, cell, 5);
    wr_words_add(&words, "enter");
    wr_words_add(&words, cell->fleet->process);
    wr_words_number(&words, waiter->number);
    wr_words_number(&words, count);
    wr_words_add(&words, "1");
    wr_words_add(&words, "1");
    wr_words_add(&words, who);
    wr_words_number(&words, wanted);
    wr_words_number(&words, have);
    command = wr_words_command(&words, &cell->fleet->permits, keys);
    pool->asked_at = wr_os_now();
    wr_cell_ref(cell);
    rc = words.failed ? WEIR_ENOMEM
                      : wr_redis_ask(cell->fleet->redis, &command, pool->asked_at + cell->lease_ns,
                                     answered, pool);
    wr_words_fini(&words);
    if (!rc)
        return;
    wr_waiter_delist(waiter);
    wr_lock(&pool->lock);
    pool->asking = false;
    wr_leased_kick(pool, wr_cell_soon(pool->cell, wr_os_now()));
    wr_unlock(&pool->lock);
    wr_cell_unref(cell);
}

/* Under the lock. True: the waiter is in line, and stays listed. */
static bool take_answer(struct wr_leased *pool, const struct wr_reply *reply)
{
    struct wr_waiter *waiter = &pool->waiter;
    int64_t state = wr_reply_number(reply, 0), ends = wr_reply_number(reply, 3);

    pool->sent = pool->asked_at;
    pool->clock = wr_reply_number(reply, 4);
    pool->target = wr_reply_number(reply, 7);
    pool->known = true;
    if (state == 2 && !waiter->served) {
        pool->waiting = true;
        return true;
    }
    if (state == 2) /* the message that it was served came before this answer */
        wr_leased_add(pool, waiter->number, waiter->count,
                      wr_cell_until(pool->cell, pool->sent, pool->clock, waiter->ends));
    else if (state == 1)
        wr_leased_add(pool, waiter->number, wr_reply_number(reply, 2),
                      wr_cell_until(pool->cell, pool->sent, pool->clock, ends));
    return false;
}

/* Sets the next renewal after an answer that came at `now`. A renewal that was due, or asked for while the answer was on its
 * way, stays due: it may concern permits that only this answer has brought. Under the lock; `idle`: there was nothing to renew
 * before. */
static void plan_renewal(struct wr_leased *pool, bool idle, weir_time now)
{
    weir_time due = pool->asked_at + pool->cell->lease_ns / 3;

    if (pool->again)
        pool->renew_at = now;
    else if (idle || due < pool->renew_at)
        pool->renew_at = due;
}

static void answered(int error, struct wr_reply *reply, void *arg)
{
    struct wr_leased *pool = arg;
    struct wr_fleet_cell *cell = pool->cell;
    bool forgotten = !error && wr_reply_number(reply, 0) < 0, listed = false, idle;
    weir_time now;

    wr_cell_judge(cell, error, reply, NULL);
    if (forgotten)
        wr_cell_open(cell, true, wr_fleet_deadline(cell->fleet, 0), NULL);
    else if (!error)
        wr_cell_saw(cell, wr_reply_number(reply, 5), wr_reply_number(reply, 8),
                    wr_reply_number(reply, 9));
    now = wr_os_now();
    wr_lock(&pool->lock);
    idle = !wr_leased_has_to_renew(pool);
    /* The fleet's lock comes after ours, and messages come from the same body as this answer. */
    if (!error && !forgotten)
        listed = take_answer(pool, reply);
    pool->asking = false;
    if (!error && wr_reply_number(reply, 0) == 0 && wr_leased_should_ask(pool))
        pool->ask_at = wr_cell_soon(cell, now); /* no storm on a server that says no */
    if (error) { /* units that it may have given go back; the want it may have noted is known */
        wr_cell_send_leave(cell, pool->waiter.number, pool->requested);
        pool->known = true;
    }
    if (pool->closing) {
        wr_leased_give_back(pool, pool->units);
        listed = false;
    }
    if (wr_leased_has_to_renew(pool))
        plan_renewal(pool, idle, now);
    wr_leased_kick(pool, error ? wr_cell_soon(pool->cell, now) : now);
    wr_unlock(&pool->lock);
    if (listed) {
        wr_lock(&cell->fleet->lock);
        pool->waiter.in_line = true;
        wr_unlock(&cell->fleet->lock);
    } else {
        wr_waiter_delist(&pool->waiter);
    }
    wr_reply_free(reply);
    wr_cell_unref(cell);
}
