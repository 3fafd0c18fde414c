/* The figures of a guard of a fleet.
 * SPDX-License-Identifier: MIT */
#include "redis/cell.h"

#include "base/os.h"

static void fill_seen(struct wr_fleet_cell *cell, weir_guard_stats *out)
{
    wr_lock(&cell->lock);
    out->kind = cell->kind;
    out->mode = cell->mode;
    out->limit = cell->seen_limit;
    out->used = cell->seen_held;
    out->waiting = cell->seen_waiting;
    out->version = (uint64_t)cell->version;
    out->uncounted = cell->uncounted;
    out->lost = cell->lost;
    wr_unlock(&cell->lock);
    out->available = out->limit - out->used;
}

/* Asks the client, which knows it now: the fleet is told of changes later. */
static bool is_away(struct wr_fleet_cell *cell, int error)
{
    return wr_fleet_is_away(error) || wr_redis_state(cell->fleet->redis, NULL) != WR_REDIS_UP;
}

/* The local time of a time by the server's clock. */
static weir_time local_time(weir_time now, int64_t server_now, int64_t when)
{
    return when < 0 ? WEIR_FOREVER : now + wr_server_span(server_now, when);
}

static void fill_looked(struct wr_fleet_cell *cell, weir_guard_stats *out,
                        const struct wr_reply *reply)
{
    weir_time now = wr_os_now();

    out->version = (uint64_t)wr_reply_number(reply, 1);
    out->limit = wr_reply_number(reply, 2);
    out->retry_at = now;
    if (cell->kind == WEIR_GUARD_RATE || cell->kind == WEIR_GUARD_FREQUENCY) {
        out->available = wr_reply_number(reply, 3);
        out->used = 0;
        out->retry_at = local_time(now, wr_reply_number(reply, 0), wr_reply_number(reply, 4));
        out->cycle = wr_reply_number(reply, 5);
        out->waiting = wr_load(&cell->crowd, relaxed);
        return;
    }
    out->used = wr_reply_number(reply, 3);
    out->waiting = wr_reply_number(reply, 4);
    out->available = out->limit - out->used;
    if (out->available <= 0)
        out->retry_at = WEIR_FOREVER;
    wr_lock(&cell->lock);
    cell->seen_held = out->used;
    cell->seen_waiting = out->waiting;
    wr_unlock(&cell->lock);
}

int wr_cell_look(weir_cell *base, weir_guard_stats *out)
{
    struct wr_fleet_cell *cell = wr_cell_of(base);
    struct wr_reply *reply = NULL;
    const struct wr_script *script;
    struct wr_words words;
    int keys, rc;

    fill_seen(cell, out);
    script = wr_cell_script(cell, &keys);
    wr_words_init(&words);
    wr_cell_keys(&words, cell, keys);
    wr_words_add(&words, "look");
    rc = wr_cell_call(&reply, cell, script, &words, keys, 0);
    wr_words_fini(&words);
    if (rc) {
        out->away = is_away(cell, rc);
        if (out->away)
            out->away_ns = wr_os_now() - wr_redis_away_since(cell->fleet->redis);
        return out->away ? 0 : rc;
    }
    fill_looked(cell, out, reply);
    wr_reply_free(reply);
    return 0;
}
