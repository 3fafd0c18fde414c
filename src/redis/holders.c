/* The holders of a fleet's permits: listed, audited, evicted by an operator; and why a task waits for a permit.
 * SPDX-License-Identifier: MIT */
#include "redis/fleet.h"

#include "base/options.h"
#include "base/os.h"
#include "base/say.h"
#include "redis/config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PAGE = 256, SAID = 4, SAID_LOOK = 64 };

/* The cell of a guard of ours; NULL: it is of another store, or has no holders. */
static struct wr_fleet_cell *cell_of(weir_guard *guard)
{
    weir_cell *cell = guard ? weir_guard_cell(guard) : NULL;
    struct wr_fleet_cell *mine = cell && cell->ops == &wr_fleet_ops ? wr_cell_of(cell) : NULL;

    if (!mine || mine->kind == WEIR_GUARD_RATE || mine->kind == WEIR_GUARD_FREQUENCY)
        return NULL;
    return mine;
}

static int call_verb(struct wr_reply **out, struct wr_fleet_cell *cell, const char *const *words,
                     int count)
{
    struct wr_words all;
    int keys, rc;

    wr_words_init(&all);
    keys = wr_cell_keys(&all, cell, WR_KEYS);
    for (int i = 0; i < count; i++)
        wr_words_add(&all, words[i]);
    rc = wr_cell_call(out, cell, &cell->fleet->permits, &all, keys, 0);
    wr_words_fini(&all);
    return rc;
}

/* ---- listing ------------------------------------------------------------------------------------- */

static void read_holder(weir_holder *out, const struct wr_reply *reply, size_t at, weir_time now)
{
    int64_t clock = wr_reply_number(reply, 0), ends = wr_reply_number(reply, at + 1);
    int64_t token = 0, count = 0;

    memset(out, 0, sizeof(*out));
    snprintf(out->id, sizeof(out->id), "%s", wr_reply_text(reply, at));
    sscanf(wr_reply_text(reply, at + 2), "h %" SCNd64 " %" SCNd64 " %63s %" SCNd64 " %127s", &token,
           &count, out->host, &out->pid, out->task);
    out->token = (uint64_t)token;
    out->since = now + wr_server_span(clock, token); /* tokens follow the clock */
    out->until = now + wr_server_span(clock, ends);
}

/* One page of holders, from place `from` on. Answers how many there are in all. */
static int64_t list_page(weir_holder *out, size_t most, size_t from, struct wr_fleet_cell *cell)
{
    struct wr_reply *reply = NULL;
    char first[24], count[24];
    weir_time now;
    int64_t all;
    int rc;

    snprintf(first, sizeof(first), "%zu", from);
    snprintf(count, sizeof(count), "%zu", most);
    rc = call_verb(&reply, cell, (const char *const[]){ "holders", first, count }, 3);
    if (rc)
        return rc;
    now = wr_os_now();
    all = wr_reply_number(reply, 1);
    for (size_t i = 0; i < most; i++) {
        memset(&out[i], 0, sizeof(out[i]));
        if (2 + 3 * i + 2 < reply->count)
            read_holder(&out[i], reply, 2 + 3 * i, now);
    }
    wr_reply_free(reply);
    return all;
}

int64_t weir_guard_holders(weir_holder *out, size_t most, weir_guard *guard)
{
    struct wr_fleet_cell *cell = cell_of(guard);
    weir_holder none;
    int64_t all = 0;

    if (!cell || (most && !out))
        return WEIR_EINVAL;
    if (most == 0)
        return list_page(&none, 1, 0, cell);
    for (size_t at = 0; at < most && all >= 0; at += PAGE) {
        all = list_page(out + at, most - at < PAGE ? most - at : PAGE, at, cell);
        if (all >= 0 && at + PAGE >= (size_t)all && at + PAGE < most)
            memset(out + at + PAGE, 0, (most - at - PAGE) * sizeof(*out));
        if (all >= 0 && at + PAGE >= (size_t)all)
            break;
    }
    return all;
}

int weir_guard_audit(weir_audit *out, weir_guard *guard)
{
    struct wr_fleet_cell *cell = cell_of(guard);
    weir_audit audit = { .size = sizeof(audit) };
    struct wr_reply *reply = NULL;
    int rc;

    if (!cell || !out || !out->size)
        return WEIR_EINVAL;
    rc = call_verb(&reply, cell, (const char *const[]){ "audit" }, 1);
    if (rc)
        return rc;
    audit.limit = wr_reply_number(reply, 1);
    audit.held = wr_reply_number(reply, 2);
    audit.waiting = wr_reply_number(reply, 3);
    audit.overdue = wr_reply_number(reply, 4);
    for (size_t i = 5; i < 9; i++)
        audit.orphans += wr_reply_number(reply, i);
    audit.sound = audit.held <= audit.limit && audit.orphans == 0;
    wr_reply_free(reply);
    return wr_options_store(out, &audit, sizeof(audit));
}

/* ---- taking away --------------------------------------------------------------------------------- */

int weir_guard_evict(weir_guard *guard, const char *id, const char *operator_name, const char *why)
{
    struct wr_fleet_cell *cell = cell_of(guard);
    struct wr_reply *reply = NULL;
    int rc;

    if (!cell || !id || !operator_name || !*operator_name || strchr(operator_name, '\n') ||
        (why && strchr(why, '\n')))
        return WEIR_EINVAL;
    rc = call_verb(&reply, cell,
                   (const char *const[]){ "evict", id, operator_name, why ? why : "" }, 4);
    if (rc)
        return rc;
    rc = reply->type == WR_REPLY_INTEGER && reply->integer == 1 ? 0 : WEIR_EALREADY;
    wr_reply_free(reply);
    return rc;
}

/* time \n operator \n why \n id \n info */
static void read_eviction(weir_eviction *out, const char *text)
{
    char *const part[] = { out->operator_name, out->why, out->id, out->holder };
    const size_t size[] = { sizeof(out->operator_name), sizeof(out->why), sizeof(out->id),
                            sizeof(out->holder) };

    memset(out, 0, sizeof(*out));
    sscanf(text, "%" SCNd64, &out->at_us);
    for (int i = 0; i < 4; i++) {
        const char *end = strchr(text, '\n');
        if (!end)
            return;
        text = end + 1;
        end = strchr(text, '\n');
        snprintf(part[i], size[i], "%.*s", end ? (int)(end - text) : (int)strlen(text), text);
    }
}

int64_t weir_guard_evictions(weir_eviction *out, size_t most, weir_guard *guard)
{
    struct wr_fleet_cell *cell = cell_of(guard);
    struct wr_reply *reply = NULL;
    char last[24];
    int64_t count;
    int rc;

    if (!cell || (most && !out))
        return WEIR_EINVAL;
    snprintf(last, sizeof(last), "%lld", (long long)most - 1);
    if (most == 0)
        return 0;
    rc = wr_redis_call(&reply, cell->fleet->redis,
                       WR_COMMAND("LRANGE", cell->key[WR_KEY_AUDIT], "0", last),
                       wr_fleet_deadline(cell->fleet, 0), NULL);
    if (rc) {
        wr_reply_free(reply);
        return rc;
    }
    count = (int64_t)reply->count;
    for (size_t i = 0; i < reply->count; i++)
        read_eviction(&out[i], wr_reply_text(reply, i));
    wr_reply_free(reply);
    return count;
}

/* ---- one's own ----------------------------------------------------------------------------------- */

weir_time weir_permit_until(const weir_permit *permit)
{
    struct wr_fleet_cell *cell =
        permit && weir_permit_is_held(permit) ? cell_of(permit->guard) : NULL;
    const struct wr_hold *hold;
    weir_time until;

    if (!cell)
        return WEIR_FOREVER;
    hold = (const struct wr_hold *)(uintptr_t)permit->since;
    if (!hold || hold->uncounted)
        return WEIR_FOREVER;
    wr_lock(&cell->lock);
    until = hold->lost ? 0 : hold->until;
    wr_unlock(&cell->lock);
    return until;
}

/* ---- in words ------------------------------------------------------------------------------------ */

/* Holders of one process are said once, with how many permits they have. */
static void say_holders(weir_message *out, struct wr_fleet_cell *cell)
{
    weir_holder *list = wr_os_alloc(SAID_LOOK * sizeof(*list));
    int64_t all = list ? list_page(list, SAID_LOOK, 0, cell) : 0;
    int said = 0;

    for (int i = 0; i < SAID_LOOK && list && list[i].id[0] && said < SAID; i++) {
        int64_t same = 0;
        bool before = false;

        for (int k = 0; k < SAID_LOOK && list[k].id[0]; k++)
            if (list[k].pid == list[i].pid && strcmp(list[k].host, list[i].host) == 0) {
                before = before || k < i;
                same++;
            }
        if (!before)
            wr_say(out, "%s %s process %" PRId64 " (%" PRId64 ")", said++ ? "," : ", held by",
                   list[i].host, list[i].pid, same);
    }
    if (all > SAID_LOOK)
        wr_say(out, " and others");
    wr_os_free(list);
}

void wr_cell_say(weir_cell *base, weir_message *out)
{
    static const char *const mode[] = { "", "no call enters", "all calls enter",
                                        "calls enter by the share of this process" };
    struct wr_fleet_cell *cell = wr_cell_of(base);
    struct wr_redis *redis = cell->fleet->redis;
    weir_message why = { "" };

    if (wr_redis_state(redis, &why) != WR_REDIS_UP) {
        wr_say(out, ", the server has been unreachable for %" PRId64 " ms (%.200s): %s",
               (wr_os_now() - wr_redis_away_since(redis)) / 1000000, why.text,
               mode[cell->when_away]);
        return;
    }
    wr_cell_say_refused(cell, out);
    if (cell->kind != WEIR_GUARD_RATE && cell->kind != WEIR_GUARD_FREQUENCY)
        say_holders(out, cell);
}

int weir_fleet_why(weir_message *out, weir_task *task, weir_guard *guard)
{
    weir_why why = { .size = sizeof(why) };
    int rc = out && guard ? weir_task_why(&why, task) : WEIR_EINVAL;
    struct wr_fleet_cell *cell = rc ? NULL : cell_of(guard);

    if (rc || !cell)
        return rc ? rc : WEIR_EINVAL;
    weir_why_text(out->text, sizeof(out->text), &why);
    if (why.reason == WEIR_REASON_FLEET) {
        wr_cell_say_refused(cell, out);
        say_holders(out, cell);
    }
    return 0;
}
