/* A store on a server: its life, and the messages it hears.
 * SPDX-License-Identifier: MIT */
#include "redis/fleet.h"

#include "base/assert.h"
#include "base/options.h"
#include "base/os.h"
#include "redis/config.h"
#include "redis/scripts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LOOK_MS = 1000, KEEP_DAYS = 7, NAME_MAX_BYTES = 128 };

bool wr_fleet_is_away(int error)
{
    return error == WEIR_EAWAY || error == WEIR_ELOST || error == WEIR_ETIMEDOUT ||
           error == WEIR_EPROTO;
}

weir_time wr_fleet_deadline(const struct wr_fleet *fleet, weir_time deadline)
{
    weir_time least = wr_os_now() + fleet->look_ns;

    return deadline > least ? deadline : least;
}

/* Appends a word of a holder's name. Spaces separate words, so those inside become underscores. */
static void add_word(char *out, size_t size, const char *word)
{
    size_t used = strlen(out);

    if (!*word)
        word = "-";
    for (; *word && used + 1 < size; word++)
        out[used++] = (unsigned char)*word > ' ' ? *word : '_';
    out[used] = '\0';
}

void wr_fleet_who(char *out, size_t size, const struct wr_fleet *fleet)
{
    weir_task *task = weir_task_self();
    size_t used;

    out[0] = '\0';
    add_word(out, size, fleet->host);
    used = strlen(out);
    snprintf(out + used, size - used, " %" PRId64 " ", (int64_t)getpid());
    add_word(out, size, task ? weir_task_key(task) : "-");
    if (task && *weir_task_id(task) && strlen(out) + 2 < size) {
        used = strlen(out);
        snprintf(out + used, size - used, "/");
        add_word(out, size, weir_task_id(task));
    }
}

/* ---- what it hears ----------------------------------------------------------------------------- */

/* Calls `what` for each cell, which stays as long as the call takes. */
static void each_cell(struct wr_fleet *fleet, void (*what)(struct wr_fleet_cell *cell, int64_t arg),
                      int64_t arg)
{
    struct wr_fleet_cell *cell = NULL, *next;

    do {
        struct wr_list *at;

        wr_lock(&fleet->lock);
        at = cell ? cell->link.next : fleet->cells.next;
        next = at == &fleet->cells ? NULL : WR_CONTAINER(at, struct wr_fleet_cell, link);
        if (next)
            next->refs++;
        wr_unlock(&fleet->lock);
        if (cell)
            wr_cell_unref(cell);
        cell = next;
        if (cell)
            what(cell, arg);
    } while (cell);
}

static void look_after(struct wr_fleet_cell *cell, int64_t unused)
{
    (void)unused;
    wr_cell_renew_now(cell);
    wr_gates_renew(cell);
}

static void look_after_gates(struct wr_fleet_cell *cell, int64_t unused)
{
    (void)unused;
    wr_gates_renew(cell);
}

static void look_after_evicted(struct wr_fleet_cell *cell, int64_t number)
{
    wr_cell_evicted(cell, number);
    wr_gates_renew(cell); /* it may be one of a group's */
}

static void on_state(enum wr_redis_state state, const char *why, void *arg)
{
    struct wr_fleet *fleet = arg;
    bool up = state == WR_REDIS_UP;

    (void)why;
    wr_lock(&fleet->lock);
    fleet->away = !up;
    wr_unlock(&fleet->lock);
    /* Without the server some guards let groups start that stood in line. */
    each_cell(fleet, up ? look_after : look_after_gates, 0);
}

/* The cell of a settings key, with a reference; NULL: there is none. */
static struct wr_fleet_cell *cell_of_key(struct wr_fleet *fleet, const char *key, size_t size)
{
    struct wr_fleet_cell *found = NULL;

    wr_lock(&fleet->lock);
    wr_list_each(at, &fleet->cells) {
        struct wr_fleet_cell *cell = WR_CONTAINER(at, struct wr_fleet_cell, link);
        if (cell->key_size[WR_KEY_SETTINGS] == size &&
            memcmp(cell->key[WR_KEY_SETTINGS], key, size) == 0) {
            found = cell;
            found->refs++;
            break;
        }
    }
    wr_unlock(&fleet->lock);
    return found;
}

static void told_target(struct wr_fleet *fleet, const char *text)
{
    struct wr_fleet_cell *cell;
    int64_t target;
    int key = 0;

    if (sscanf(text, "t %" SCNd64 " %n", &target, &key) != 1 || !key)
        return;
    cell = cell_of_key(fleet, text + key, strlen(text + key));
    if (!cell)
        return;
    wr_gates_target(cell, target);
    wr_cell_unref(cell);
}

void wr_fleet_heard(enum wr_redis_event event, const char *message, size_t size, void *arg)
{
    struct wr_fleet *fleet = arg;
    int64_t number, token, count, ends;

    if (event == WR_REDIS_LISTENING)
        each_cell(fleet, look_after, 0); /* asks for what was missed meanwhile */
    if (event != WR_REDIS_MESSAGE || size < 3)
        return;
    if (sscanf(message, "g %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64, &number, &token, &count,
               &ends) == 4)
        wr_waiter_serve(fleet, number, token, count, ends);
    else if (message[0] == 't')
        told_target(fleet, message);
    else if (sscanf(message, "x %" SCNd64, &number) == 1) {
        wr_add(&fleet->evictions, 1, relaxed); /* first: see entered, in hold.c */
        each_cell(fleet, look_after_evicted, number);
    }
}

void wr_fleet_listen(struct wr_fleet *fleet)
{
    char channel[WR_FLEET_PROCESS + 16];
    struct wr_subscription *bell = NULL;
    bool first;

    wr_lock(&fleet->lock);
    first = !fleet->bell_asked;
    fleet->bell_asked = true;
    wr_unlock(&fleet->lock);
    if (!first)
        return;
    snprintf(channel, sizeof(channel), "weir:bell:%s", fleet->process);
    if (wr_redis_subscribe(&bell, fleet->redis, channel, wr_fleet_heard, fleet))
        bell = NULL;
    wr_lock(&fleet->lock);
    fleet->bell = bell;
    fleet->bell_asked = bell != NULL;
    wr_unlock(&fleet->lock);
}

/* ---- life -------------------------------------------------------------------------------------- */

static void fleet_free(weir_store *store)
{
    struct wr_fleet *fleet = wr_fleet_of(store);

    wr_redis_unsubscribe(fleet->bell);
    wr_redis_close(fleet->redis);
    weir_store_free(fleet->shares);
    wr_os_free(fleet->application);
    wr_os_free(fleet);
}

static int check(const weir_fleet_options *opt, weir_message *message)
{
    if (opt->application && (!*opt->application || strlen(opt->application) > NAME_MAX_BYTES))
        return wr_redis_fail(WEIR_EINVAL, message, "application: use 1 to %d bytes",
                             NAME_MAX_BYTES);
    if (opt->look_ms > 3600000)
        return wr_redis_fail(WEIR_EINVAL, message, "look_ms is %u: use 1 to 3600000", opt->look_ms);
    if (opt->keep_ms < 0 || (opt->keep_ms && opt->keep_ms < 1000))
        return wr_redis_fail(WEIR_EINVAL, message, "keep_ms is %" PRId64 ": use 1000 or more",
                             opt->keep_ms);
    return 0;
}

static void fleet_init(struct wr_fleet *fleet, const weir_fleet_options *opt)
{
    fleet->store.ops = &wr_fleet_ops;
    wr_script_init(&fleet->open, wr_lua_open);
    wr_script_init(&fleet->permits, wr_lua_permits);
    wr_script_init(&fleet->rate, wr_lua_rate);
    wr_script_init(&fleet->window, wr_lua_window);
    wr_script_init(&fleet->compat, wr_lua_compat);
    snprintf(fleet->process, sizeof(fleet->process), "%016" PRIx64, wr_os_random());
    if (opt->host)
        snprintf(fleet->host, sizeof(fleet->host), "%s", opt->host);
    else if (gethostname(fleet->host, sizeof(fleet->host) - 1))
        strcpy(fleet->host, "-");
    fleet->compatible = opt->compatible;
    fleet->look_ns = (int64_t)(opt->look_ms ? opt->look_ms : LOOK_MS) * 1000000;
    fleet->keep_ms = opt->keep_ms ? opt->keep_ms : INT64_C(86400000) * KEEP_DAYS;
    fleet->number = 1;
    wr_list_init(&fleet->cells);
    for (int i = 0; i < WR_FLEET_BUCKETS; i++)
        wr_list_init(&fleet->waiters[i]);
}

int weir_store_redis(weir_store **out, const weir_redis_options *server,
                     const weir_fleet_options *options, weir_message *message)
{
    struct wr_redis_calls calls = { .on_state = on_state };
    weir_fleet_options opt;
    struct wr_fleet *fleet;
    int rc = wr_options_load(&opt, sizeof(opt), options);

    if (message)
        message->text[0] = '\0';
    if (!rc)
        rc = out ? check(&opt, message) : WEIR_EINVAL;
    if (rc)
        return rc;
    fleet = wr_os_alloc(sizeof(*fleet));
    if (!fleet)
        return WEIR_ENOMEM;
    fleet_init(fleet, &opt);
    if (opt.application) {
        fleet->application = wr_text_copy(opt.application, strlen(opt.application));
        rc = fleet->application ? 0 : WEIR_ENOMEM;
    }
    rc = rc ? rc : weir_store_local(&fleet->shares);
    calls.arg = fleet;
    rc = rc ? rc : wr_redis_open(&fleet->redis, server, &calls, message);
    if (rc) {
        weir_store_free(fleet->shares);
        wr_os_free(fleet->application);
        wr_os_free(fleet);
        return rc;
    }
    *out = &fleet->store;
    return 0;
}

static const weir_remote_ops remote_ops;

const weir_store_ops wr_fleet_ops = {
    .size = sizeof(wr_fleet_ops),
    .free_store = fleet_free,
    .close = wr_fleet_close_cell,
    .remote = &remote_ops,
};

static int enter(weir_cell *base, weir_remote_call *call)
{
    struct wr_fleet_cell *cell = wr_cell_of(base);

    if (wr_compat_serves(cell))
        return wr_compat_enter(cell, call);
    if (cell->kind == WEIR_GUARD_RATE || cell->kind == WEIR_GUARD_FREQUENCY)
        return wr_timed_enter(base, call);
    return wr_hold_enter(base, call);
}

static int leave(weir_cell *base, weir_remote_call *call)
{
    struct wr_fleet_cell *cell = wr_cell_of(base);

    return wr_compat_serves(cell) ? wr_compat_leave(cell, call) : wr_hold_leave(base, call);
}

static const weir_remote_ops remote_ops = {
    .size = sizeof(remote_ops),
    .open = wr_fleet_open_cell,
    .enter = enter,
    .leave = leave,
    .undo = wr_timed_undo,
    .drain = wr_timed_drain,
    .settings = wr_cell_settings,
    .change = wr_cell_change,
    .look = wr_cell_look,
    .say = wr_cell_say,
    .group = wr_gate_group,
};
