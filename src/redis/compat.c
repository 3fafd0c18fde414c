/* Locks and windows under the original's names, shared with its programs. Those programs send no message when they unlock, so
 * a waiter looks again every tenth of a second, as they do; there is no line.
 * SPDX-License-Identifier: MIT */
#include "redis/fleet.h"

#include "base/os.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <weir/wait.h>

enum { LOOK_AGAIN_MS = 100 };

bool wr_compat_serves(const struct wr_fleet_cell *cell)
{
    return cell->fleet->compatible &&
           (cell->kind == WEIR_GUARD_MUTEX ||
            (cell->kind == WEIR_GUARD_FREQUENCY && cell->mode != WEIR_EXACT));
}

/* lock:<name>, and <name> for windows; of an application <name>-<application>. */
static void key_of(char *out, size_t size, const struct wr_fleet_cell *cell)
{
    const char *application = cell->fleet->application;

    snprintf(out, size, "%s%s%s%s", cell->kind == WEIR_GUARD_MUTEX ? "lock:" : "",
             weir_guard_name(cell->guard), application ? "-" : "", application ? application : "");
}

/* The owner of a lock: the instance, and a number in place of its thread. */
static void owner_of(char *out, size_t size, const struct wr_fleet_cell *cell, int64_t number)
{
    snprintf(out, size, "%s@%s$%" PRId64, cell->fleet->process, cell->fleet->host, number);
}

static int call_script(struct wr_reply **out, struct wr_fleet_cell *cell, const char *verb,
                       const char *owner, const int64_t *numbers, int count, weir_time deadline)
{
    char key[WEIR_KEY_MAX + 256];
    struct wr_words words;
    int rc;

    key_of(key, sizeof(key), cell);
    wr_words_init(&words);
    wr_words_add(&words, key);
    wr_words_add(&words, verb);
    if (owner)
        wr_words_add(&words, owner);
    for (int i = 0; i < count; i++)
        wr_words_number(&words, numbers[i]);
    rc = wr_cell_call(out, cell, &cell->fleet->compat, &words, 1, deadline);
    wr_words_fini(&words);
    return rc == WEIR_EREPLY ? WEIR_EFOREIGN : rc;
}

static int try_lock(struct wr_fleet_cell *cell, weir_remote_call *call, struct wr_hold *hold)
{
    int64_t lease_ms = cell->lease_ns / WR_MS;
    weir_time sent = wr_os_now();
    struct wr_reply *reply;
    char owner[128];
    int rc;

    owner_of(owner, sizeof(owner), cell, hold->number);
    rc = call_script(&reply, cell, "lock", owner, &lease_ms, 1, call->deadline);
    if (rc)
        return rc;
    rc = wr_reply_number(reply, 0) == 1 ? 0 : WEIR_EAGAIN;
    hold->token = (uint64_t)wr_reply_number(reply, 1);
    hold->until = sent + cell->lease_ns;
    wr_reply_free(reply);
    return rc;
}

static int enter_lock(struct wr_fleet_cell *cell, weir_remote_call *call)
{
    struct wr_hold *hold = wr_hold_new(cell, 1);
    int rc;

    if (!hold)
        return WEIR_ENOMEM;
    for (;;) {
        weir_time now;

        rc = try_lock(cell, call, hold);
        now = wr_os_now();
        if (rc != WEIR_EAGAIN || now >= call->deadline)
            break;
        now += LOOK_AGAIN_MS * WR_MS;
        rc = weir_sleep(now < call->deadline ? now : call->deadline);
        if (rc)
            break;
    }
    if (rc) {
        wr_hold_free(hold);
        return rc;
    }
    call->token = hold->token;
    call->number = (int64_t)(uintptr_t)hold;
    wr_hold_keep(cell, hold);
    return 0;
}

static int enter_window(struct wr_fleet_cell *cell, weir_remote_call *call)
{
    int64_t words[4];
    struct wr_reply *reply;
    int rc;

    wr_lock(&cell->lock);
    words[0] = cell->set.limit == WEIR_NO_CALLS ? 0 : cell->set.limit;
    words[1] = cell->set.period_ns / WR_MS > 0 ? cell->set.period_ns / WR_MS : 1;
    wr_unlock(&cell->lock);
    words[2] = call->permits;
    words[3] = cell->mode == WEIR_WEIGHTED;
    for (;;) {
        rc = call_script(&reply, cell, "window", NULL, words, 4, call->deadline);
        if (rc)
            return rc;
        rc = wr_reply_number(reply, 0) == 1 ? 0 : WEIR_EAGAIN;
        call->retry_at =
            wr_os_now() + wr_server_span(wr_reply_number(reply, 1), wr_reply_number(reply, 2));
        wr_reply_free(reply);
        if (!rc || wr_os_now() >= call->deadline || call->retry_at > call->deadline)
            return rc;
        rc = weir_sleep(call->retry_at);
        if (rc)
            return rc;
    }
}

int wr_compat_enter(struct wr_fleet_cell *cell, weir_remote_call *call)
{
    int rc = cell->kind == WEIR_GUARD_MUTEX ? enter_lock(cell, call) : enter_window(cell, call);

    return wr_fleet_is_away(rc) ? wr_away_enter(cell, call, rc) : rc;
}

int wr_compat_leave(struct wr_fleet_cell *cell, weir_remote_call *call)
{
    struct wr_hold *hold = (struct wr_hold *)(uintptr_t)call->number;
    char key[WEIR_KEY_MAX + 256], owner[128];
    struct wr_command command;
    struct wr_words words;

    if (!hold || cell->kind != WEIR_GUARD_MUTEX)
        return 0;
    if (hold->uncounted) {
        wr_away_leave(hold);
        return 0;
    }
    wr_lock(&cell->lock);
    wr_list_remove(&hold->link);
    wr_unlock(&cell->lock);
    key_of(key, sizeof(key), cell);
    owner_of(owner, sizeof(owner), cell, hold->number);
    wr_words_init(&words);
    wr_words_add(&words, key);
    wr_words_add(&words, "unlock");
    wr_words_add(&words, owner);
    command = wr_words_command(&words, &cell->fleet->compat, 1);
    wr_redis_send(cell->fleet->redis, &command);
    wr_words_fini(&words);
    wr_hold_free(hold);
    return 0;
}

int wr_compat_renew(struct wr_fleet_cell *cell, int64_t number)
{
    int64_t lease_ms = cell->lease_ns / WR_MS;
    struct wr_reply *reply;
    char owner[128];
    int rc;

    owner_of(owner, sizeof(owner), cell, number);
    rc = call_script(&reply, cell, "extend", owner, &lease_ms, 1, 0);
    if (rc)
        return rc;
    rc = reply->type == WR_REPLY_INTEGER && reply->integer == 1 ? 0 : WEIR_ENOGUARD;
    wr_reply_free(reply);
    return rc;
}
