/* Leasing permits for groups: asking, renewing, giving back. All from the client's body; see leased.h.
 *
 * A pool asks for twice what it has while its groups are refused, up to the share that the server names. It gives back what was
 * idle between two renewals; all that is idle when others go short; and what is above its share, as tasks end. At its
 * share it asks for nothing: the server says when the share grows.
 * SPDX-License-Identifier: MIT */
#include "redis/leased.h"

#include "base/assert.h"
#include "base/os.h"

#include <string.h>

enum { MS = 1000000, SOON_MIN_MS = 5, SOON_MAX_MS = 1000 };

void wr_leased_kick(struct wr_leased *pool, weir_time when)
{
    if (when >= pool->timer_at || pool->closing)
        return;
    pool->timer_at = when;
    wr_redis_timer_set(pool->cell->fleet->redis, &pool->timer, when);
}

static weir_time soon(const struct wr_leased *pool, weir_time now)
{
    int64_t pause = pool->cell->lease_ns / 10;

    if (pause < SOON_MIN_MS * MS)
        pause = SOON_MIN_MS * MS;
    return now + (pause > (int64_t)SOON_MAX_MS * MS ? (int64_t)SOON_MAX_MS * MS : pause);
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* What this process could use. Under the lock. */
static int64_t want(const struct wr_leased *pool)
{
    if (pool->asked)
        return most(pool->units, pool->in_use) + most(most(pool->asked, pool->units), 1);
    return most(pool->peak, pool->in_use);
}

/* Under the lock. */
static bool has_to_renew(const struct wr_leased *pool)
{
    return pool->units || pool->waiting || pool->known;
}

/* As soon as can be; if an answer is on its way, once more after it. Under the lock. */
static void renew_now(struct wr_leased *pool)
{
    pool->renew_at = wr_os_now();
    pool->again = pool->renewing || pool->asking;
    wr_leased_kick(pool, pool->renew_at);
}

/* Groups that were refused are to ask again. Under the lock. */
static void open_gates(struct wr_leased *pool)
{
    pool->asked = 0;
    wr_list_each(at, &pool->gates) {
        struct wr_fleet_gate *gate = WR_CONTAINER(at, struct wr_fleet_gate, link);
        if (gate->hungry && gate->gate) {
            gate->hungry = false;
            weir_gate_open(gate->gate);
        }
    }
}

/* Under the lock. */
static bool add_units(struct wr_leased *pool, int64_t number, int64_t count, weir_time until)
{
    if (count < 0 || count > pool->requested) /* not what was asked for: it is not kept, and ends */
        return false;
    if (pool->units + count > pool->room) {
        int64_t room = most(2 * pool->room, pool->units + count);
        int64_t *unit = wr_os_alloc((size_t)room * sizeof(*unit));
        if (!unit)
            return false;
        if (pool->units)
            memcpy(unit, pool->unit, (size_t)pool->units * sizeof(*unit));
        wr_os_free(pool->unit);
        pool->unit = unit;
        pool->room = room;
    }
    if (!pool->units || until < pool->until)
        pool->until = until;
    for (int64_t i = 0; i < count; i++)
        pool->unit[pool->units++] = number + i;
    pool->fresh += count;
    return true;
}

/* ---- giving back --------------------------------------------------------------------------------- */

/* Takes `count` units out and sends them home, in one command. Under the lock. */
static void give_back(struct wr_leased *pool, int64_t count)
{
    struct wr_fleet_cell *cell = pool->cell;
    struct wr_command command;
    struct wr_words words;
    int keys;

    if (count <= 0)
        return;
    wr_words_init(&words);
    keys = wr_cell_keys(&words, cell, 4);
    wr_words_add(&words, "leave");
    wr_words_add(&words, cell->fleet->process);
    while (count-- > 0) {
        wr_words_number(&words, pool->unit[--pool->units]);
        wr_words_add(&words, "1");
    }
    command = wr_words_command(&words, &cell->fleet->permits, keys);
    /* What cannot be sent ends with its lease. */
    if (!words.failed)
        wr_redis_send(cell->fleet->redis, &command);
    wr_words_fini(&words);
}

/* What may go: above the share; all that is idle if somebody else goes short. Under the lock. */
static int64_t surplus(const struct wr_leased *pool)
{
    int64_t idle = pool->units - pool->in_use - pool->fresh, above = pool->units - pool->target;

    if (pool->target < 0 || idle <= 0 || above <= 0)
        return 0;
    return idle < above ? idle : above;
}

/* ---- asking -------------------------------------------------------------------------------------- */

static void answered(int error, struct wr_reply *reply, void *arg);

static void served(struct wr_waiter *waiter)
{
    struct wr_leased *pool = WR_CONTAINER(waiter, struct wr_leased, waiter);

    wr_lock(&pool->lock);
    if (pool->closing) { /* wr_leased_close gives back whatever the server has of it */
        wr_unlock(&pool->lock);
        return;
    }
    if (waiter->served && !pool->asking) {
        pool->waiting = false;
        if (add_units(pool, waiter->number, waiter->count,
                      wr_cell_until(pool->cell, pool->sent, pool->clock, waiter->ends)))
            open_gates(pool);
    } else if (waiter->again) {
        pool->waiting = false;
    }
    /* Else its answer is still on the way: that looks at `served` itself. */
    wr_leased_kick(pool, wr_os_now());
    wr_unlock(&pool->lock);
}

/* Under the lock. */
static bool should_ask(const struct wr_leased *pool)
{
    return pool->asked && !pool->asking && !pool->waiting && !pool->renewing &&
           (pool->target < 0 || pool->units < pool->target || pool->units == 0 ||
            want(pool) > pool->told);
}

/* Without the lock; `asking` is set. */
static void send_enter(struct wr_leased *pool, int64_t wanted, int64_t have)
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
    wr_leased_kick(pool, soon(pool, wr_os_now()));
    wr_unlock(&pool->lock);
    wr_cell_unref(cell);
}

/* Under the lock. True: it is in line, and stays listed. */
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
    if (state == 2) { /* the message was faster */
        add_units(pool, waiter->number, waiter->count,
                  wr_cell_until(pool->cell, pool->sent, pool->clock, waiter->ends));
        open_gates(pool);
    } else if (state == 1) {
        add_units(pool, waiter->number, wr_reply_number(reply, 2),
                  wr_cell_until(pool->cell, pool->sent, pool->clock, ends));
        open_gates(pool);
    }
    return false;
}

/* After an answer that came at `now`. A renewal that was due, or asked for while the answer was on its way, stays due: what it is
 * for may concern permits that only this answer has brought. Under the lock; `idle`: there was nothing to renew before. */
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
    idle = !has_to_renew(pool);
    /* The fleet's lock comes after ours, and messages come from the same body as this answer. */
    if (!error && !forgotten)
        listed = take_answer(pool, reply);
    pool->asking = false;
    if (error) /* what the server may have given is not renewed */
        wr_cell_send_leave(cell, pool->waiter.number, pool->requested);
    if (pool->closing) {
        give_back(pool, pool->units);
        listed = false;
    }
    if (pool->units || pool->waiting)
        plan_renewal(pool, idle, now);
    wr_leased_kick(pool, error ? soon(pool, now) : now);
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

/* ---- renewing ------------------------------------------------------------------------------------ */

static void renewed(int error, struct wr_reply *reply, void *arg);
static void lose(struct wr_leased *pool, int64_t permits, const char *why);

/* Under the lock, which it gives back while it sends. */
static void send_renewal(struct wr_leased *pool, weir_time now)
{
    struct wr_fleet_cell *cell = pool->cell;
    struct wr_command command;
    struct wr_words words;
    int64_t born;
    int keys, rc;

    if (!pool->asked)
        give_back(pool, pool->units - most(pool->peak, pool->in_use) -
                            pool->fresh); /* idle since the last one */
    wr_lock(&cell->lock);
    born = cell->born;
    wr_unlock(&cell->lock);
    wr_words_init(&words);
    keys = wr_cell_keys(&words, cell, 5);
    wr_words_add(&words, "renew");
    wr_words_add(&words, cell->fleet->process);
    wr_words_number(&words, want(pool));
    wr_words_number(&words, pool->units);
    wr_words_number(&words, pool->units);
    wr_words_number(&words, born);
    for (int64_t i = 0; i < pool->units; i++)
        wr_words_number(&words, pool->unit[i]);
    if (pool->waiting)
        wr_words_number(&words, pool->waiter.number);
    pool->told = want(pool);
    pool->known = pool->units || want(pool);
    pool->peak = pool->in_use;
    pool->fresh = 0;
    pool->renewing = true;
    pool->again = false;
    pool->renewed_at = now;
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
        pool->renew_at = soon(pool, now);
        pool->known = true; /* it may be */
        wr_cell_unref(cell);
    }
}

/* Units that the server does not know any more are gone; the others last on. Under the lock. */
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
        pool->renew_at = forgotten ? now : soon(pool, now);
    } else {
        size_t at = 8 + wr_reply_count(reply, 7);

        dropped = drop_lost(pool, reply);
        pool->target = wr_reply_number(reply, 3);
        pool->until = pool->renewed_at + cell->lease_ns;
        pool->renew_at = pool->again ? now : pool->renewed_at + cell->lease_ns / 3;
        number = wr_reply_number(reply, at);
        token = wr_reply_number(reply, at + 1);
        count = wr_reply_number(reply, at + 2);
        ends = wr_reply_number(reply, at + 3);
        if (pool->waiting && token == 0) {
            int64_t next = wr_reply_number(reply, 2);
            weir_time freed = now + wr_server_span(wr_reply_number(reply, 0), next) + MS;
            if (next && freed < pool->renew_at)
                pool->renew_at = freed;
        }
        wr_lock(&cell->lock);
        cell->born = wr_reply_number(reply, 6);
        wr_unlock(&cell->lock);
    }
    if (dropped)
        lose(pool, dropped, "the server does not know the permit any more");
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

/* All that runs is asked to end. Under the lock, which it gives back meanwhile. */
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

/* So many units are gone. Nobody knows which task had which of them: if more run than there are left, all are asked to end. Under
 * the lock, which it gives back meanwhile. */
static void lose(struct wr_leased *pool, int64_t permits, const char *why)
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

static void fire(struct wr_redis_timer *timer, void *arg)
{
    struct wr_leased *pool = arg;
    struct wr_fleet_cell *cell = pool->cell;
    weir_time now = wr_os_now();
    int64_t wanted = 0, have = 0;
    bool ask;

    (void)timer;
    wr_lock(&pool->lock);
    pool->timer_at = WEIR_FOREVER;
    if (pool->units && now >= pool->until - cell->margin_ns) {
        int64_t all = pool->units;
        pool->units = pool->fresh = 0;
        lose(pool, all, "the lease could not be renewed");
    }
    if (wr_list_empty(&pool->gates)) /* the last group is gone: also what was handed to it since */
        give_back(pool, pool->units);
    give_back(pool, surplus(pool));
    if (has_to_renew(pool) && now >= pool->renew_at && !pool->renewing && !pool->asking)
        send_renewal(pool, now);
    ask = should_ask(pool);
    if (ask) {
        pool->asking = true;
        wanted = pool->told = want(pool);
        have = pool->units;
    }
    if (pool->units)
        wr_leased_kick(pool, pool->until - cell->margin_ns);
    if (has_to_renew(pool) && !pool->renewing && !pool->asking)
        wr_leased_kick(pool, pool->renew_at > now ? pool->renew_at : now + MS);
    wr_unlock(&pool->lock);
    if (ask)
        send_enter(pool, wanted, have);
}

void wr_leased_init(struct wr_leased *pool, struct wr_fleet_cell *cell)
{
    pool->cell = cell;
    wr_list_init(&pool->gates);
    pool->target = -1;
    pool->epoch = 1;
    pool->timer_at = WEIR_FOREVER;
    pool->timer = (struct wr_redis_timer){ .fire = fire, .arg = pool };
}

void wr_leased_close(struct wr_leased *pool)
{
    struct wr_fleet_cell *cell = pool->cell;
    bool listed, given;

    wr_lock(&pool->lock);
    pool->closing = true;
    wr_unlock(&pool->lock);
    wr_redis_timer_stop(cell->fleet->redis, &pool->timer);
    wr_lock(&pool->lock);
    give_back(pool, pool->units);
    listed = pool->waiting;
    given = pool->waiting || pool->asking; /* whatever the server has given, or will give, for it */
    pool->waiting = false;
    wr_unlock(&pool->lock);
    if (listed)
        wr_waiter_delist(&pool->waiter);
    if (given)
        wr_cell_send_leave(cell, pool->waiter.number, pool->requested);
}

/* ---- what the server says ------------------------------------------------------------------------ */

static struct wr_leased *pool_of(struct wr_fleet_cell *cell)
{
    struct wr_leased *pool;

    wr_lock(&cell->lock);
    pool = cell->pool;
    wr_unlock(&cell->lock);
    return pool;
}

void wr_gates_target(struct wr_fleet_cell *cell, int64_t target)
{
    struct wr_leased *pool = pool_of(cell);

    if (!pool)
        return;
    wr_lock(&pool->lock);
    if (pool->asked && target == pool->target) { /* nothing new for one that is short itself */
        give_back(pool, surplus(pool));
        wr_unlock(&pool->lock);
        return;
    }
    pool->target = target;
    if (!pool->asked) { /* nothing is short here: what is idle helps others */
        give_back(pool, pool->units - pool->in_use - pool->fresh);
        pool->peak = pool->in_use;
    } else {
        give_back(pool, surplus(pool));
    }
    renew_now(pool); /* so that the server knows what is wanted here */
    wr_unlock(&pool->lock);
}

void wr_gates_renew(struct wr_fleet_cell *cell)
{
    struct wr_leased *pool = pool_of(cell);

    if (!pool)
        return;
    wr_lock(&pool->lock);
    if (has_to_renew(pool) || pool->asking)
        renew_now(pool);
    else if (pool->asked)
        wr_leased_kick(pool, wr_os_now());
    wr_unlock(&pool->lock);
}
