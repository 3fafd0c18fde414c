/* Guards by name: one per store and name, made, found, forgotten.
 *
 * Without references a guard stays until it is whole: whoever takes it up again finds what it has counted. Those that
 * are whole by then go when the table grows.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/lock.h"
#include "base/options.h"
#include "base/os.h"
#include "guard/quick.h"
#include "guard/remote.h"

#include <stdio.h>
#include <string.h>

enum { FIRST_SIZE = 16, LAYOUT = 2 };

/*     count == number of guards in all buckets;  count == 0  =>  bucket == NULL */
static struct {
    struct wr_lock lock;
    struct weir_guard **bucket;
    size_t size, count;
    uint64_t seed;
} table;

/* A hash that depends on a seed, so that names cannot be made to share a bucket by those who do not know it. */
static uint64_t mix(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)(a ^ 0x9e3779b97f4a7c15u) * (b | 1);

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t hash_of(const weir_store *store, const char *name)
{
    uint64_t hash = mix(table.seed, (uint64_t)(uintptr_t)store);
    size_t length = strlen(name), at = 0;
    uint64_t word;

    for (; at < length; at += sizeof(word)) {
        word = 0;
        memcpy(&word, name + at, length - at < sizeof(word) ? length - at : sizeof(word));
        hash = mix(hash ^ word, table.seed + at);
    }
    return mix(hash, length);
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

static struct weir_guard **find(const weir_store *store, const char *name, uint64_t hash)
{
    struct weir_guard **at;

    if (!table.bucket)
        return NULL;
    for (at = &table.bucket[hash % table.size]; *at; at = &(*at)->next)
        if ((*at)->hash == hash && (*at)->store == store && strcmp((*at)->name, name) == 0)
            return at;
    return NULL;
}

static struct weir_guard *unlink_guard(struct weir_guard **at)
{
    struct weir_guard *guard = *at;

    *at = guard->next;
    if (--table.count == 0) {
        wr_os_free(table.bucket);
        table.bucket = NULL;
        table.size = 0;
        table.seed = 0;
    }
    return guard;
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

/* Nothing is lost if it goes: a store that outlives us keeps what there is, except for our permits. */
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

/* Takes out what can go, into a list. */
static struct weir_guard *sweep(void)
{
    struct weir_guard *gone = NULL, **at;

    for (size_t i = 0; table.bucket && i < table.size; i++)
        for (at = &table.bucket[i]; table.bucket && *at;)
            if (can_go(*at)) {
                struct weir_guard *guard = unlink_guard(at);
                guard->next = gone;
                gone = guard;
            } else {
                at = &(*at)->next;
            }
    return gone;
}

static bool grow(void)
{
    size_t size = table.size ? 2 * table.size : FIRST_SIZE;
    struct weir_guard **bucket = wr_os_alloc(size * sizeof(*bucket)), *guard;

    if (!bucket)
        return table.size != 0; /* longer chains will do */
    for (size_t i = 0; i < table.size; i++)
        while ((guard = table.bucket[i])) {
            table.bucket[i] = guard->next;
            guard->next = bucket[guard->hash % size];
            bucket[guard->hash % size] = guard;
        }
    wr_os_free(table.bucket);
    table.bucket = bucket;
    table.size = size;
    return true;
}

static void guard_free(struct weir_guard *guard)
{
    guard->ops->close(guard->cell);
    if (guard->remote)
        wr_remote_close(guard);
    wr_quick_free(guard);
    wr_os_free(guard);
}

static void free_list(struct weir_guard *gone)
{
    while (gone) {
        struct weir_guard *next = gone->next;
        guard_free(gone);
        gone = next;
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

/* What is known of a guard once its cell is open. */
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
    struct weir_guard *guard = wr_os_alloc(sizeof(*guard) + length + 1);
    weir_cell_spec spec = { .size = sizeof(spec), .name = name, .kind = 1, .version = LAYOUT };
    int rc;

    if (!guard)
        return WEIR_ENOMEM;
    memcpy(guard->name, name, length + 1);
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

/* Whether it is what was asked for. */
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

/* Enters a new guard into the table, or finds that another thread was faster. */
static struct weir_guard *insert(struct weir_guard *guard, struct weir_guard **gone)
{
    struct weir_guard **at, *other = NULL;

    wr_lock(&table.lock);
    if (table.count >= table.size)
        *gone = sweep(); /* first: the seed goes with the last guard */
    if (!table.seed)
        table.seed = wr_os_random() | 1;
    guard->hash = hash_of(guard->store, guard->name);
    at = find(guard->store, guard->name, guard->hash);
    if (at) {
        other = *at;
        wr_bump(&other->refs);
    } else {
        if (table.count >= table.size && !grow())
            guard = NULL;
        if (guard) {
            WR_ASSERT(table.size > 0);
            guard->next = table.bucket[guard->hash % table.size];
            table.bucket[guard->hash % table.size] = guard;
            table.count++;
        }
    }
    wr_unlock(&table.lock);
    return other ? other : guard;
}

static struct weir_guard *look_up(weir_store *store, const char *name)
{
    struct weir_guard **at, *guard = NULL;

    wr_lock(&table.lock);
    at = table.count ? find(store, name, hash_of(store, name)) : NULL;
    if (at) {
        guard = *at;
        wr_bump(&guard->refs);
    }
    wr_unlock(&table.lock);
    return guard;
}

static int get(struct weir_guard **out, weir_store *store, const char *name,
               const weir_guard_options *opt, const struct wr_settings *set, weir_message *message)
{
    struct weir_guard *guard = look_up(store, name), *mine, *gone = NULL;
    int rc;

    if (!guard) {
        rc = make(&mine, store, name, opt, set, message);
        if (rc)
            return rc;
        guard = insert(mine, &gone);
        if (guard != mine)
            guard_free(mine);
        free_list(gone);
        if (!guard)
            return WEIR_ENOMEM;
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
    struct weir_guard *gone = NULL, **at;

    if (!guard)
        return;
    wr_lock(&table.lock);
    WR_ASSERT(wr_load(&guard->refs, relaxed) > 0);
    wr_store(&guard->refs, wr_load(&guard->refs, relaxed) - 1, relaxed);
    at = find(guard->store, guard->name, guard->hash);
    if (at && can_go(guard))
        gone = unlink_guard(at);
    wr_unlock(&table.lock);
    if (gone)
        guard_free(gone);
}

const char *weir_guard_name(const weir_guard *guard)
{
    return guard ? guard->name : "";
}

void weir_store_free(weir_store *store)
{
    struct weir_guard *gone = NULL, **at;

    if (!store)
        return;
    wr_lock(&table.lock);
    for (size_t i = 0; table.bucket && i < table.size; i++)
        for (at = &table.bucket[i]; table.bucket && *at;)
            if ((*at)->store == store) {
                struct weir_guard *guard = unlink_guard(at);
                WR_ASSERT(wr_load(&guard->refs, relaxed) == 0);
                guard->next = gone;
                gone = guard;
            } else {
                at = &(*at)->next;
            }
    wr_unlock(&table.lock);
    free_list(gone);
    store->ops->free_store(store);
}
