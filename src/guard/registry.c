/* Guards by name: one per store and name, made, found, forgotten.
 *
 * Without references a guard stays until it is whole, that is, as good as new: a caller that opens it again finds what it has
 * counted. Guards that are whole by then go when the table grows.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/hash.h"
#include "base/lock.h"
#include "base/options.h"
#include "base/os.h"
#include "guard/quick.h"
#include "guard/remote.h"

#include <stdio.h>
#include <string.h>

enum { LAYOUT = 2, SWEPT = 16 }; /* from so many guards on, a sweep comes before the map grows */

/* Every guard is in the map, which is empty again and without memory when the last one goes. */
static struct {
    struct wr_lock lock;
    struct wr_map map;
    uint64_t seed[2];
} table = { .map = { .size = 1, .chain = &table.map.only } };

/* The key of a guard. Guards of one name in several stores have different hashes, except by chance. */
static struct wr_key key_of(const weir_store *store, const char *name)
{
    size_t length = strlen(name);
    uint64_t seed[2] = { table.seed[0] ^ (uint64_t)(uintptr_t)store, table.seed[1] };

    return (struct wr_key){ name, length, (uint32_t)wr_hash(seed, name, length) };
}

/* ---- states --------------------------------------------------------------------------------------- */

static void state_init(void *state_arg, const void *settings_arg)
{
    struct wr_state *state = state_arg;

    state->made = *(const struct wr_settings *)settings_arg;
    state->set = state->made;
    wr_kind_of(state->set.kind)->init(state, wr_os_now());
}

/* Whether bytes that were found can be a state: all that is used to find other bytes by must be in range. */
static bool state_is_sound(const void *bytes, size_t size)
{
    const struct wr_state *state = bytes;

    return size >= sizeof(*state) && state->made.kind >= WEIR_GUARD_BULKHEAD &&
           state->made.kind <= WEIR_GUARD_BUDGET && state->set.kind == state->made.kind &&
           state->set.mode == state->made.mode && state->set.limit >= 0 &&
           state->set.limit <= WEIR_PERMITS_MAX &&
           wr_kind_of(state->made.kind)->is_sound(state, size);
}

static bool state_is_whole(const void *bytes, weir_time now)
{
    const struct wr_state *state = bytes;

    return wr_kind_of(state->set.kind)->is_whole(state, now) &&
           wr_settings_equal(&state->made, &state->set);
}

/* ---- the table; under its lock ------------------------------------------------------------------- */

/* NULL for NULL. */
static struct weir_guard *guard_of(struct wr_map_node *node)
{
    return node ? WR_CONTAINER(node, struct weir_guard, in_registry) : NULL;
}

static struct weir_guard *find(const weir_store *store, const struct wr_key *key)
{
    struct wr_map_node *node = wr_map_get(&table.map, key);

    while (node && guard_of(node)->store != store)
        node = wr_map_find(node->next, key);
    return guard_of(node);
}

/* Takes the guard out of the map, into a list. */
static void take_out(struct weir_guard *guard, struct wr_map_node **gone)
{
    wr_map_remove(&table.map, &guard->in_registry);
    guard->in_registry.next = *gone;
    *gone = &guard->in_registry;
    if (table.map.count == 0) {
        wr_map_fini(&table.map);
        wr_map_init(&table.map);
        table.seed[0] = 0; /* the next one gets a new seed */
    }
}

/* Its state ends with this process at the latest. */
static bool in_memory(const struct weir_guard *guard)
{
    return guard->ops->word(guard->cell);
}

/* Under the lock: permits of this process. */
static int64_t held(const struct weir_guard *guard)
{
    return guard->ops->held ? guard->ops->held(guard->cell) : guard->ops->used(guard->cell);
}

/* Whether nothing is lost if the guard goes: a store that outlives us keeps its state, except for our permits. */
static bool can_go(struct weir_guard *guard)
{
    bool whole;

    if (wr_load(&guard->refs, relaxed) || wr_load(&guard->pins, acquire))
        return false;
    if (guard->remote || wr_guard_lock(guard))
        return true;
    whole = held(guard) == 0 &&
            (!in_memory(guard) || state_is_whole(wr_guard_read(guard), wr_os_now()));
    wr_guard_unlock(guard);
    return whole;
}

/* Takes out all guards that can go, or (`store`) all guards of that store. */
static void sweep(weir_store *store, struct wr_map_node **gone)
{
    struct wr_map_node *next;

    for (struct wr_map_node *node = wr_map_next(&table.map, NULL); node; node = next) {
        struct weir_guard *guard = guard_of(node);
        next = wr_map_next(&table.map, node);
        if (store ? guard->store == store : can_go(guard))
            take_out(guard, gone);
    }
}

static void guard_free(struct weir_guard *guard)
{
    guard->ops->close(guard->cell);
    if (guard->remote)
        wr_remote_close(guard);
    wr_quick_free(guard);
    wr_os_free(guard);
}

static void free_list(struct wr_map_node *gone)
{
    while (gone) {
        struct weir_guard *guard = guard_of(gone);
        gone = gone->next;
        guard_free(guard);
    }
}

/* ---- making -------------------------------------------------------------------------------------- */

static void copy_functions(struct weir_guard *guard, const weir_guard_options *o)
{
    guard->on_event = o->on_event;
    guard->event_arg = o->event_arg;
    guard->judge = o->judge;
    guard->judge_arg = o->judge_arg;
    guard->drain_on = o->drain_on;
    guard->drain_arg = o->drain_arg;
    guard->open_for = o->open_for;
    guard->open_arg = o->open_arg;
    guard->other_errors = o->other_errors ? o->other_errors : WEIR_IGNORE;
    guard->failure_count = (int)o->failure_count;
    guard->ignored_count = (int)o->ignored_count;
    for (size_t i = 0; i < o->failure_count; i++)
        guard->failures[i] = o->failures[i];
    for (size_t i = 0; i < o->ignored_count; i++)
        guard->ignored[i] = o->ignored[i];
}

/* Fills in what is known of a guard once its cell is open. */
static int attach(struct weir_guard *guard)
{
    const struct wr_state *state;
    int rc = wr_guard_lock(guard);

    if (rc)
        return rc;
    state = wr_guard_read(guard);
    guard->kind = wr_kind_of(state->set.kind);
    guard->hint = (_Atomic uint64_t *)guard->ops->hint(guard->cell);
    wr_store(&guard->limit, state->set.limit, relaxed);
    if (guard->kind->fast && !guard->on_event)
        guard->fast = (_Atomic uint64_t *)guard->ops->word(guard->cell);
    if (guard->kind->fast && !guard->on_event && guard->ops->direct)
        guard->ops->direct(&guard->direct, guard->cell);
    wr_quick_init(guard);
    wr_guard_unlock(guard);
    return 0;
}

static int make(struct weir_guard **out, weir_store *store, const char *name,
                const weir_guard_options *opt, const struct wr_settings *set, weir_message *message)
{
    size_t length = strlen(name);
    struct weir_guard *guard = wr_os_alloc(sizeof(*guard) + wr_key_room(length));
    weir_cell_spec spec = { .size = sizeof(spec), .name = name, .kind = 1, .version = LAYOUT };
    int rc;

    if (!guard)
        return WEIR_ENOMEM;
    memcpy(guard->name, name, length);
    guard->store = store;
    guard->ops = store->ops;
    copy_functions(guard, opt);
    spec.create = set->kind != WEIR_GUARD_ANY;
    spec.state_size = spec.create ? wr_kind_of(set->kind)->size(set) : 0;
    spec.init = state_init;
    spec.arg = set;
    spec.is_sound = state_is_sound;
    spec.is_whole = state_is_whole;
    rc = store->ops->remote ? wr_remote_open(guard, opt, set, message)
                            : store->ops->open(&guard->cell, store, &spec, message);
    if (!rc && !store->ops->remote) {
        rc = attach(guard);
        if (rc)
            guard->ops->close(guard->cell);
    }
    if (rc) {
        wr_os_free(guard);
        return rc;
    }
    guard->refs = 1;
    *out = guard;
    return 0;
}

/* Whether the guard is what was asked for. WEIR_EEXIST: it is not. */
static int compare(struct weir_guard *guard, const struct wr_settings *set, weir_message *message)
{
    struct wr_settings made, now;
    int rc = 0;

    if (guard->remote) {
        wr_remote_settings(guard, &made, &now);
    } else {
        rc = wr_guard_lock(guard);
        if (rc)
            return rc;
        made = wr_guard_read(guard)->made;
        now = wr_guard_read(guard)->set;
        wr_guard_unlock(guard);
    }
    if (set->kind != WEIR_GUARD_ANY && !wr_settings_equal(set, &made) &&
        !wr_settings_equal(set, &now)) {
        rc = WEIR_EEXIST;
        if (message)
            snprintf(
                message->text, sizeof(message->text),
                "%s \"%.100s\" exists with other settings: limit %lld, asked for: %s, limit %lld",
                guard->kind->name, guard->name, (long long)now.limit, wr_kind_of(set->kind)->name,
                (long long)set->limit);
    }
    return rc;
}

/* The guard of that name, with a reference. If there is none, `mine` becomes it; NULL: `mine` is NULL, too. */
static struct weir_guard *look_up(weir_store *store, const char *name, struct weir_guard *mine)
{
    struct wr_map_node *gone = NULL;
    struct weir_guard *guard;
    struct wr_key key;

    wr_lock(&table.lock);
    /* Guards that can go do so before the map grows, and before the seed is used: there is a new seed if no guard is left. */
    if (mine && table.map.count >= SWEPT && table.map.count >= table.map.size)
        sweep(NULL, &gone);
    if (mine && !table.seed[0]) {
        table.seed[0] = wr_os_random() | 1;
        table.seed[1] = wr_os_random();
    }
    key = key_of(store, name);
    guard = find(store, &key);
    if (guard) {
        wr_bump(&guard->refs);
    } else if (mine) {
        guard = mine;
        guard->in_registry.hash = key.hash;
        wr_map_put(&table.map, &guard->in_registry);
    }
    wr_unlock(&table.lock);
    free_list(gone);
    return guard;
}

static int get(struct weir_guard **out, weir_store *store, const char *name,
               const weir_guard_options *opt, const struct wr_settings *set, weir_message *message)
{
    struct weir_guard *guard = look_up(store, name, NULL), *mine;
    int rc;

    if (!guard) {
        rc = make(&mine, store, name, opt, set, message);
        if (rc)
            return rc;
        guard = look_up(store, name, mine);
        if (guard != mine)
            guard_free(mine); /* another thread was faster */
    }
    rc = compare(guard, set, message);
    if (rc)
        weir_guard_unref(guard);
    else
        *out = guard;
    return rc;
}

int weir_guard_new(weir_guard **out, weir_store *store, const char *name,
                   const weir_guard_options *options, weir_message *message)
{
    struct wr_settings set = { .kind = WEIR_GUARD_ANY };
    weir_guard_options opt;
    int rc = wr_options_load(&opt, sizeof(opt), options);

    if (message)
        message->text[0] = '\0';
    if (!out || !name)
        rc = WEIR_EINVAL;
    if (!rc && (!*name || strnlen(name, WEIR_KEY_MAX + 1) > WEIR_KEY_MAX)) {
        rc = WEIR_EINVAL;
        if (message)
            snprintf(message->text, sizeof(message->text), "the name has %s: use 1 to %d bytes",
                     *name ? "too many bytes" : "no bytes", WEIR_KEY_MAX);
    }
    if (!rc && opt.kind != WEIR_GUARD_ANY)
        rc = wr_settings_load(&set, &opt, message);
    if (!rc)
        rc = get(out, store ? store : weir_store_default(), name, &opt, &set, message);
    if (rc && message && !message->text[0])
        snprintf(message->text, sizeof(message->text), "%s", weir_strerror(rc));
    return rc;
}

weir_guard *weir_guard_ref(weir_guard *guard)
{
    wr_lock(&table.lock);
    WR_ASSERT(wr_load(&guard->refs, relaxed) > 0);
    wr_bump(&guard->refs);
    wr_unlock(&table.lock);
    return guard;
}

void weir_guard_unref(weir_guard *guard)
{
    struct wr_map_node *gone = NULL;

    if (!guard)
        return;
    wr_lock(&table.lock);
    WR_ASSERT(wr_load(&guard->refs, relaxed) > 0);
    wr_store(&guard->refs, wr_load(&guard->refs, relaxed) - 1, relaxed);
    if (can_go(guard))
        take_out(guard, &gone);
    wr_unlock(&table.lock);
    free_list(gone);
}

const char *weir_guard_name(const weir_guard *guard)
{
    return guard ? guard->name : "";
}

void weir_store_free(weir_store *store)
{
    struct wr_map_node *gone = NULL;

    if (!store)
        return;
    wr_lock(&table.lock);
    sweep(store, &gone);
    wr_unlock(&table.lock);
    for (struct wr_map_node *node = gone; node; node = node->next)
        WR_ASSERT(wr_load(&guard_of(node)->refs, relaxed) == 0);
    free_list(gone);
    store->ops->free_store(store);
}
