/* Keeping the lease of a pool, and its end: tasks that run without a unit are cancelled. See leased.h.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/os.h"
#include "redis/leased.h"

static void renewed(int error, struct wr_reply *reply, void *arg);

/* Called with the lock, which is released while it sends. */
void wr_leased_renew(struct wr_leased *pool, weir_time now)
{
    struct wr_fleet_cell *cell = pool->cell;
    struct wr_command command;
    struct wr_words words;
    int64_t born;
    int keys, rc;

    if (!pool->asked)
        wr_leased_give_back(pool, pool->units - wr_leased_want(pool) -
                                      pool->fresh); /* units idle since the last renewal */
    wr_lock(&cell->lock);
    born = cell->born;
    wr_unlock(&cell->lock);
    wr_words_init(&words);
    keys = wr_cell_keys(&words, cell, 5);
    wr_words_add(&words, "renew");
    wr_words_add(&words, cell->fleet->process);
    wr_words_number(&words, wr_leased_want(pool));
    wr_words_number(&words, pool->units);
    wr_words_number(&words, pool->units);
    wr_words_number(&words, born);
    for (int64_t i = 0; i < pool->units; i++)
        wr_words_number(&words, pool->unit[i]);
    if (pool->waiting)
        wr_words_number(&words, pool->waiter.number);
    pool->told = wr_leased_want(pool);
    pool->known = pool->units || wr_leased_want(pool);
    pool->peak = pool->in_use;
    pool->fresh = 0;
    pool->renewing = true;
    pool->again = false;
    pool->renewed_at = now;
    pool->added_until = WEIR_FOREVER;
    command = wr_words_command(&words, &cell->fleet->permits, keys);
    wr_unlock(&pool->lock);
    wr_cell_ref(cell);
    rc = words.failed
             ? WEIR_ENOMEM
             : wr_redis_ask(cell->fleet->redis, &command, now + cell->lease_ns, renewed, pool);
    wr_words_fini(&words);
    wr_lock(&pool->lock);
    if (rc) {
        pool->renewing = false;
        pool->renew_at = wr_cell_soon(pool->cell, now);
        pool->known = true; /* the server may have noted it */
        wr_cell_unref(cell);
    }
}

/* Tells the server that no units are wanted: other processes may have this one's share at once. Under the lock. */
void wr_leased_want_nothing(struct wr_leased *pool)
{
    struct wr_fleet_cell *cell = pool->cell;
    struct wr_command command;
    struct wr_words words;
    int keys;

    wr_words_init(&words);
    keys = wr_cell_keys(&words, cell, 5);
    wr_words_add(&words, "renew");
    wr_words_add(&words, cell->fleet->process);
    for (int i = 0; i < 4; i++) /* want, have, units, born: not known */
        wr_words_add(&words, "0");
    command = wr_words_command(&words, &cell->fleet->permits, keys);
    /* If it cannot be sent, the want ends with the lease. */
    if (!words.failed)
        wr_redis_send(cell->fleet->redis, &command);
    wr_words_fini(&words);
}

/* Drops the units that the server does not know any more; answers how many. The others stay. Under the lock. */
static int64_t drop_lost(struct wr_leased *pool, const struct wr_reply *reply)
{
    int64_t dropped = 0;
    size_t lost = wr_reply_count(reply, 7);

    for (size_t i = 0; i < lost; i++)
        for (int64_t k = 0; k < pool->units; k++)
            if (pool->unit[k] == wr_reply_number(reply, 8 + i)) {
                pool->unit[k] = pool->unit[--pool->units];
                dropped++;
                break;
            }
    return dropped;
}

static void renewed(int error, struct wr_reply *reply, void *arg)
{
    struct wr_leased *pool = arg;
    struct wr_fleet_cell *cell = pool->cell;
    bool forgotten = !error && wr_reply_number(reply, 0) < 0;
    int64_t token = 0, dropped = 0, number = 0, count = 0, ends = 0;
    weir_time now;

    wr_cell_judge(cell, error, reply, NULL);
    if (forgotten)
        wr_cell_open(cell, true, wr_fleet_deadline(cell->fleet, 0), NULL);
    now = wr_os_now();
    wr_lock(&pool->lock);
    pool->renewing = false;
    if (error || forgotten) {
        pool->known = true; /* the server may have noted the latest want, or not */
        pool->renew_at = forgotten ? now : wr_cell_soon(pool->cell, now);
    } else {
        size_t at = 8 + wr_reply_count(reply, 7);

        dropped = drop_lost(pool, reply);
        pool->target = wr_reply_number(reply, 3);
        pool->until = pool->renewed_at + cell->lease_ns;
        if (pool->added_until < pool->until) /* the renewal did not name those units */
            pool->until = pool->added_until;
        pool->renew_at = pool->again ? now : pool->renewed_at + cell->lease_ns / 3;
        number = wr_reply_number(reply, at);
        token = wr_reply_number(reply, at + 1);
        count = wr_reply_number(reply, at + 2);
        ends = wr_reply_number(reply, at + 3);
        if (pool->waiting && token == 0) {
            int64_t next = wr_reply_number(reply, 2);
            weir_time freed = now + wr_server_span(wr_reply_number(reply, 0), next) + WR_MS;
            if (next && freed < pool->renew_at)
                pool->renew_at = freed;
        }
        wr_lock(&cell->lock);
        cell->born = wr_reply_number(reply, 6);
        wr_unlock(&cell->lock);
    }
    if (dropped)
        wr_leased_lose(pool, dropped, "the server does not know the permit any more");
    wr_leased_kick(pool, now);
    wr_unlock(&pool->lock);
    if (!error && !forgotten) {
        wr_cell_saw(cell, wr_reply_number(reply, 1), wr_reply_number(reply, 4),
                    wr_reply_number(reply, 5));
        if (token > 0)
            wr_waiter_serve(cell->fleet, number, token, count, ends);
        else if (token < 0)
            wr_waiter_forgotten(cell->fleet, number);
    }
    wr_reply_free(reply);
    wr_cell_unref(cell);
}

/* ---- the end of a lease -------------------------------------------------------------------------- */

/* Cancels all tasks that run behind the pool's gates. Called with the lock, which is released meanwhile. */
static void cancel_all(struct wr_leased *pool)
{
    uint64_t epoch = pool->epoch++;
    struct wr_fleet_gate *gate = NULL;
    struct wr_list *at;

    for (at = pool->gates.next; at != &pool->gates; at = gate->link.next) {
        gate = WR_CONTAINER(at, struct wr_fleet_gate, link);
        gate->pins++;
        wr_unlock(&pool->lock);
        if (gate->gate)
            weir_gate_cancel(gate->gate, epoch);
        wr_lock(&pool->lock);
        gate->pins--;
    }
}

/* So many units are lost. No unit belongs to a certain task: if more tasks run than units are left, all are cancelled. Called
 * with the lock, which is released meanwhile. */
void wr_leased_lose(struct wr_leased *pool, int64_t permits, const char *why)
{
    struct wr_fleet_cell *cell = pool->cell;
    weir_lost lost = { .guard = cell->guard, .permits = permits, .until = pool->until, .why = why };

    wr_lock(&cell->lock);
    cell->lost += (uint64_t)permits;
    wr_unlock(&cell->lock);
    if (!cell->keep_task && pool->in_use > pool->units)
        cancel_all(pool);
    wr_unlock(&pool->lock);
    if (cell->on_lost)
        cell->on_lost(&lost, cell->lost_arg);
    wr_lock(&pool->lock);
}
