/* Leasing permits for groups: units, when to ask and to renew, giving back. All from the client's body; see leased.h.
 *
 * A pool asks for twice what it has while its groups are refused, up to the share that the server names. It gives back units
 * that were idle between two renewals; all idle units when other processes go short; and units above its share, as tasks end.
 * At its share it asks for nothing: the server says when the share grows.
 * SPDX-License-Identifier: MIT */
#include "redis/leased.h"

#include "base/assert.h"
#include "base/os.h"

#include <string.h>

void wr_leased_kick(struct wr_leased *pool, weir_time when)
{
    if (when >= pool->timer_at || pool->closing)
        return;
    pool->timer_at = when;
    wr_redis_timer_set(pool->cell->fleet->redis, &pool->timer, when);
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* How many units this process could use. Under the lock. */
int64_t wr_leased_want(const struct wr_leased *pool)
{
    if (pool->asked)
        return most(pool->units, pool->in_use) + most(most(pool->asked, pool->units), 1);
    return most(pool->peak, pool->in_use);
}

bool wr_leased_has_to_renew(const struct wr_leased *pool)
{
    return pool->units || pool->waiting || pool->known;
}

int64_t wr_leased_capacity(const struct wr_leased *pool, weir_time now)
{
    struct wr_fleet_cell *cell = pool->cell;
    struct wr_fleet *fleet = cell->fleet;
    int64_t leased = now < pool->until - cell->margin_ns ? pool->units : 0;
    bool away;

    if (cell->when_away == WEIR_AWAY_CLOSED)
        return leased;
    wr_lock(&fleet->lock);
    away = fleet->away;
    wr_unlock(&fleet->lock);
    if (!away)
        return leased;
    if (cell->when_away == WEIR_AWAY_OPEN)
        return INT64_MAX;
    return leased > cell->share ? leased : cell->share;
}

/* Renews as soon as possible; if an answer is on its way, once more after it. Under the lock. */
static void renew_now(struct wr_leased *pool)
{
    pool->renew_at = wr_os_now();
    pool->again = pool->renewing || pool->asking;
    wr_leased_kick(pool, pool->renew_at);
}

/* Has the groups that were refused ask again, if there are units for them. Under the lock. */
static void open_gates(struct wr_leased *pool, weir_time now)
{
    if (!pool->asked || wr_leased_capacity(pool, now) <= pool->in_use)
        return;
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
void wr_leased_add(struct wr_leased *pool, int64_t number, int64_t count, weir_time until)
{
    if (count < 0 || count > pool->requested) /* not what was asked for: the leases run out */
        return;
    if (pool->units + count > pool->room) {
        int64_t room = most(2 * pool->room, pool->units + count);
        int64_t *unit = wr_os_alloc((size_t)room * sizeof(*unit));
        if (!unit)
            return;
        if (pool->units)
            memcpy(unit, pool->unit, (size_t)pool->units * sizeof(*unit));
        wr_os_free(pool->unit);
        pool->unit = unit;
        pool->room = room;
    }
    if (!pool->units || until < pool->until)
        pool->until = until;
    if (until < pool->added_until)
        pool->added_until = until;
    for (int64_t i = 0; i < count; i++)
        pool->unit[pool->units++] = number + i;
    pool->fresh += count;
}

/* ---- giving back --------------------------------------------------------------------------------- */

/* Gives `count` units back to the server, in one command. Under the lock. */
void wr_leased_give_back(struct wr_leased *pool, int64_t count)
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
    /* Units that cannot be sent back end with their lease. */
    if (!words.failed)
        wr_redis_send(cell->fleet->redis, &command);
    wr_words_fini(&words);
}

/* How many units may go back: idle ones above the share, which shrinks if other processes go short. Under the lock. */
static int64_t surplus(const struct wr_leased *pool)
{
    int64_t idle = pool->units - pool->in_use - pool->fresh, above = pool->units - pool->target;

    if (pool->target < 0 || idle <= 0 || above <= 0)
        return 0;
    return idle < above ? idle : above;
}

/* ---- the timer ----------------------------------------------------------------------------------- */

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
        wr_leased_lose(pool, all, "the lease could not be renewed");
    }
    if (wr_list_empty(&pool->gates)) /* the last group is gone: also units that came for it since */
        wr_leased_give_back(pool, pool->units);
    wr_leased_give_back(pool, surplus(pool));
    open_gates(pool, now);
    if (wr_leased_has_to_renew(pool) && now >= pool->renew_at && !pool->renewing && !pool->asking)
        wr_leased_renew(pool, now);
    ask = wr_leased_should_ask(pool);
    if (ask && now < pool->ask_at) {
        wr_leased_kick(pool, pool->ask_at);
        ask = false;
    }
    if (ask) {
        pool->asking = true;
        wanted = pool->told = wr_leased_want(pool);
        have = pool->units;
    }
    if (pool->units)
        wr_leased_kick(pool, pool->until - cell->margin_ns);
    if (wr_leased_has_to_renew(pool) && !pool->renewing && !pool->asking)
        wr_leased_kick(pool, pool->renew_at > now ? pool->renew_at : now + WR_MS);
    wr_unlock(&pool->lock);
    if (ask)
        wr_leased_ask(pool, wanted, have);
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
    wr_leased_give_back(pool, pool->units);
    listed = pool->waiting;
    given = pool->waiting || pool->asking; /* whatever the server has given, or will give, for it */
    pool->waiting = false;
    if (pool->known || pool->asking || pool->renewing)
        wr_leased_want_nothing(pool);
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
    if (pool->asked && target == pool->target) { /* nothing new for a pool that is short itself */
        wr_leased_give_back(pool, surplus(pool));
        wr_unlock(&pool->lock);
        return;
    }
    pool->target = target;
    if (!pool->asked) { /* no group is short here: idle units help other processes */
        wr_leased_give_back(pool, pool->units - pool->in_use - pool->fresh);
        pool->peak = pool->in_use;
    } else {
        wr_leased_give_back(pool, surplus(pool));
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
    if (wr_leased_has_to_renew(pool) || pool->asking)
        renew_now(pool);
    else if (pool->asked)
        wr_leased_kick(pool, wr_os_now());
    wr_unlock(&pool->lock);
}
