/* One guard of a fleet: its keys and settings, as the server has them.
 * SPDX-License-Identifier: MIT */
#include "redis/fleet.h"

#include "base/assert.h"
#include "base/os.h"
#include "redis/config.h"
#include "redis/leased.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MS = 1000000, LEASE_MIN_MS = 20, LEASE_S = 30 };

/* ---- names -------------------------------------------------------------------------------------- */

/* Braces in a name would end the hash tag early: they, and the percent sign, become %XX. */
static size_t escape(char *out, const char *name)
{
    size_t used = 0;

    for (; *name; name++)
        if (*name == '{' || *name == '}' || *name == '%')
            used += (size_t)sprintf(out + used, "%%%02X", (unsigned char)*name);
        else
            out[used++] = *name;
    out[used] = '\0';
    return used;
}

/* weir:{name}:kind; of an application: weir:{name-application}:kind. */
static bool make_keys(struct wr_fleet_cell *cell, const char *name)
{
    static const char *const permits[WR_KEYS] = { "cfg", "held", "info", "line", "wants", "audit" };
    static const char *const timed[WR_KEYS] = { "cfg", "use", "log", "line", "wants", "audit" };
    bool is_timed = cell->kind == WEIR_GUARD_RATE || cell->kind == WEIR_GUARD_FREQUENCY;
    const char *application = cell->fleet->application;
    size_t most = 3 * (strlen(name) + (application ? strlen(application) + 1 : 0)) + 32;
    char *tag = wr_os_alloc(most);
    size_t used;

    if (!tag)
        return false;
    used = escape(tag, name);
    if (application) {
        tag[used++] = '-';
        escape(tag + used, application);
    }
    for (int i = 0; i < WR_KEYS; i++) {
        wr_os_free(cell->key[i]);
        cell->key[i] = wr_os_alloc(strlen(tag) + 32);
        if (!cell->key[i])
            break;
        cell->key_size[i] =
            (size_t)sprintf(cell->key[i], "weir:{%s}:%s", tag, (is_timed ? timed : permits)[i]);
    }
    wr_os_free(tag);
    return cell->key[WR_KEYS - 1] != NULL;
}

int wr_cell_keys(struct wr_words *words, const struct wr_fleet_cell *cell, int count)
{
    for (int i = 0; i < count; i++)
        wr_words_bytes(words, cell->key[i], cell->key_size[i]);
    return count;
}

/* ---- settings ------------------------------------------------------------------------------------ */

static int64_t us(int64_t ns)
{
    return ns / 1000;
}

/* "limit period burst initial wait waiters", in which a setting of nothing is 0. */
static void write_settings(char *out, size_t size, const weir_guard_options *o)
{
    snprintf(out, size, "%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64,
             o->limit == WEIR_NO_CALLS ? 0 : o->limit, us(o->period_ns), o->burst,
             us(o->initial_ns), o->wait_ns == WEIR_NO_WAIT ? 0 : o->wait_ns,
             o->waiters_max == WEIR_NO_WAITERS ? 0 : o->waiters_max);
}

static void name_nothing(weir_guard_options *o)
{
    o->size = sizeof(*o);
    o->limit = o->limit ? o->limit : WEIR_NO_CALLS;
    o->wait_ns = o->wait_ns ? o->wait_ns : WEIR_NO_WAIT;
    o->waiters_max = o->waiters_max ? o->waiters_max : WEIR_NO_WAITERS;
}

static bool read_settings(weir_guard_options *o, const char *text)
{
    if (sscanf(text, "%" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64,
               &o->limit, &o->period_ns, &o->burst, &o->initial_ns, &o->wait_ns,
               &o->waiters_max) != 6)
        return false;
    o->period_ns *= 1000;
    o->initial_ns *= 1000;
    name_nothing(o);
    return true;
}

/* Fields of the hash that can change, and their values. */
static void add_changeable(struct wr_words *words, const weir_guard_options *o)
{
    wr_words_add(words, "limit");
    wr_words_number(words, o->limit == WEIR_NO_CALLS ? 0 : o->limit);
    wr_words_add(words, "period");
    wr_words_number(words, us(o->period_ns));
    wr_words_add(words, "burst");
    wr_words_number(words, o->burst);
    wr_words_add(words, "wait");
    wr_words_number(words, o->wait_ns == WEIR_NO_WAIT ? 0 : o->wait_ns);
    wr_words_add(words, "waiters");
    wr_words_number(words, o->waiters_max == WEIR_NO_WAITERS ? 0 : o->waiters_max);
}

static void add_all(struct wr_words *words, const struct wr_fleet_cell *cell, char *made,
                    size_t size)
{
    add_changeable(words, &cell->set);
    wr_words_add(words, "kind");
    wr_words_number(words, cell->kind);
    wr_words_add(words, "mode");
    wr_words_number(words, cell->mode);
    wr_words_add(words, "initial");
    wr_words_number(words, us(cell->made.initial_ns));
    wr_words_add(words, "lease");
    wr_words_number(words, us(cell->lease_ns));
    write_settings(made, size, &cell->made);
    wr_words_add(words, "made");
    wr_words_add(words, made);
}

static const char *field(const struct wr_reply *reply, const char *name)
{
    for (size_t i = 2; i + 1 < reply->count; i += 2)
        if (strcmp(wr_reply_text(reply, i), name) == 0)
            return wr_reply_text(reply, i + 1);
    return NULL;
}

static int64_t number_of(const struct wr_reply *reply, const char *name)
{
    const char *text = field(reply, name);
    int64_t value = 0;

    if (text)
        sscanf(text, "%" SCNd64, &value);
    return value;
}

/* What the server has becomes what we know. Under the lock. */
static int learn(struct wr_fleet_cell *cell, const struct wr_reply *reply)
{
    weir_guard_kind kind = (weir_guard_kind)number_of(reply, "kind");
    int64_t lease = number_of(reply, "lease");
    const char *made = field(reply, "made");
    weir_guard_options *set = &cell->set;

    if (!made || !read_settings(&cell->made, made) || lease < LEASE_MIN_MS * 1000 ||
        kind < WEIR_GUARD_BULKHEAD || kind > WEIR_GUARD_MUTEX)
        return WEIR_EFOREIGN;
    cell->kind = kind;
    cell->mode = (weir_guard_mode)number_of(reply, "mode");
    cell->lease_ns = lease * 1000;
    *set = cell->made;
    set->limit = number_of(reply, "limit");
    set->period_ns = number_of(reply, "period") * 1000;
    set->burst = number_of(reply, "burst");
    set->wait_ns = number_of(reply, "wait");
    set->waiters_max = number_of(reply, "waiters");
    name_nothing(set);
    set->kind = cell->made.kind = kind;
    set->mode = cell->made.mode = cell->mode;
    cell->version = number_of(reply, "version");
    cell->seen_limit = number_of(reply, "limit");
    if (!cell->born)
        cell->born = number_of(reply, "born");
    return 0;
}

int wr_cell_open(struct wr_fleet_cell *cell, bool make, weir_time deadline, weir_message *message)
{
    struct wr_reply *reply = NULL;
    struct wr_command command;
    struct wr_words words;
    char made[192];
    int keys, rc;

    wr_words_init(&words);
    keys = wr_cell_keys(&words, cell, 1);
    wr_words_add(&words, "open");
    wr_lock(&cell->lock);
    wr_words_number(&words, cell->version);
    wr_words_add(&words, make ? "1" : "0");
    wr_words_number(&words, cell->fleet->keep_ms);
    if (make)
        add_all(&words, cell, made, sizeof(made));
    wr_unlock(&cell->lock);
    command = wr_words_command(&words, &cell->fleet->open, keys);
    rc = words.failed ? WEIR_ENOMEM
                      : wr_redis_call(&reply, cell->fleet->redis, &command, deadline, message);
    wr_words_fini(&words);
    if (!rc && wr_reply_number(reply, 0) < 0)
        rc = WEIR_ENOGUARD;
    if (!rc) {
        wr_lock(&cell->lock);
        rc = learn(cell, reply);
        wr_unlock(&cell->lock);
    } else if (rc == WEIR_EREPLY && wr_reply_is_error(reply, "WRONGTYPE")) {
        rc = WEIR_EFOREIGN;
    }
    wr_reply_free(reply);
    return rc;
}

static int take_options(struct wr_fleet_cell *cell, const weir_guard_options *opt,
                        weir_message *message)
{
    cell->kind = opt->kind;
    cell->mode = opt->mode;
    cell->made = cell->set = *opt;
    name_nothing(&cell->made);
    name_nothing(&cell->set);
    cell->seen_limit = opt->limit == WEIR_NO_CALLS ? 0 : opt->limit;
    cell->lease_ns = opt->lease_ns ? opt->lease_ns : (int64_t)LEASE_S * 1000 * MS;
    cell->share = opt->share ? opt->share : 1;
    cell->when_away = opt->when_away ? opt->when_away : WEIR_AWAY_CLOSED;
    cell->keep_task = opt->keep_task;
    cell->on_lost = opt->on_lost;
    cell->lost_arg = opt->lost_arg;
    if (cell->lease_ns < LEASE_MIN_MS * MS || cell->lease_ns > INT64_C(86400000) * MS)
        return wr_redis_fail(WEIR_EINVAL, message, "lease_ns is %" PRId64 ": use %d ms to a day",
                             cell->lease_ns, LEASE_MIN_MS);
    if (opt->margin_ns < 0 || opt->margin_ns > cell->lease_ns / 2)
        return wr_redis_fail(WEIR_EINVAL, message,
                             "margin_ns is %" PRId64 ": at most half of the lease", opt->margin_ns);
    if (cell->share < 1 || cell->share > WEIR_PERMITS_MAX)
        return wr_redis_fail(WEIR_EINVAL, message, "share is %" PRId64 ": use 1 or more",
                             cell->share);
    if (cell->when_away > WEIR_AWAY_SHARE)
        return wr_redis_fail(WEIR_EINVAL, message, "when_away is %d: not one of weir_when_away",
                             (int)cell->when_away);
    if ((opt->kind == WEIR_GUARD_RATE || opt->kind == WEIR_GUARD_FREQUENCY) &&
        (opt->period_ns % 1000 || opt->initial_ns % 1000 || opt->period_ns > INT64_C(1) << 50))
        return wr_redis_fail(WEIR_EINVAL, message,
                             "period_ns is %" PRId64
                             ": a server counts whole microseconds, up to 13 days",
                             opt->period_ns);
    cell->margin_ns = opt->margin_ns ? opt->margin_ns : cell->lease_ns / 10;
    return 0;
}

/* ---- life ---------------------------------------------------------------------------------------- */

static void free_cell(struct wr_fleet_cell *cell)
{
    for (int i = 0; i < WR_KEYS; i++)
        wr_os_free(cell->key[i]);
    weir_guard_unref(cell->share_guard);
    if (cell->pool)
        wr_os_free(cell->pool->unit);
    wr_os_free(cell->pool);
    wr_os_free(cell);
}

void wr_cell_ref(struct wr_fleet_cell *cell)
{
    wr_lock(&cell->fleet->lock);
    cell->refs++;
    wr_unlock(&cell->fleet->lock);
}

void wr_cell_unref(struct wr_fleet_cell *cell)
{
    struct wr_fleet *fleet = cell->fleet;
    bool last;

    wr_lock(&fleet->lock);
    last = --cell->refs == 0;
    if (last)
        wr_list_remove(&cell->link);
    wr_unlock(&fleet->lock);
    if (last)
        free_cell(cell);
}

static int open_cell(struct wr_fleet_cell *cell, const char *name, const weir_guard_options *opt,
                     weir_message *message)
{
    bool any = opt->kind == WEIR_GUARD_ANY;
    int rc = take_options(cell, opt, message);
    int64_t asked;

    if (!rc && !make_keys(cell, name))
        rc = WEIR_ENOMEM;
    if (rc)
        return rc;
    asked = cell->lease_ns;
    rc = wr_cell_open(cell, !any, wr_fleet_deadline(cell->fleet, 0), message);
    if (wr_fleet_is_away(rc) && !any && cell->when_away != WEIR_AWAY_CLOSED)
        rc = 0; /* it will be opened when the server is there */
    else if (wr_fleet_is_away(rc))
        rc = WEIR_EAWAY; /* however that showed */
    if (!rc && cell->lease_ns != asked) {
        if (opt->lease_ns)
            rc = wr_redis_fail(WEIR_EEXIST, message,
                               "%.100s exists with a lease of %" PRId64 " ms, asked for: %" PRId64
                               " ms",
                               name, cell->lease_ns / MS, opt->lease_ns / MS);
        if (!opt->margin_ns)
            cell->margin_ns = cell->lease_ns / 10;
    }
    /* Only now it is known of what kind one is that was only looked for. */
    return rc ? rc : make_keys(cell, name) ? 0 : WEIR_ENOMEM;
}

int wr_fleet_open_cell(weir_cell **out, weir_store *store, weir_guard *guard,
                       const weir_guard_options *opt, weir_guard_options *made,
                       weir_guard_options *set, weir_message *message)
{
    struct wr_fleet *fleet = wr_fleet_of(store);
    struct wr_fleet_cell *cell = wr_os_alloc(sizeof(*cell));
    int rc;

    if (!cell)
        return WEIR_ENOMEM;
    cell->cell.ops = &wr_fleet_ops;
    cell->fleet = fleet;
    cell->guard = guard;
    cell->refs = 1;
    wr_list_init(&cell->holds);
    wr_list_init(&cell->waiters);
    wr_list_init(&cell->leaving);
    wr_cell_renewal_init(cell);
    rc = open_cell(cell, weir_guard_name(guard), opt, message);
    if (rc) {
        free_cell(cell);
        return rc;
    }
    *made = cell->made;
    *set = cell->set;
    made->kind = set->kind = cell->kind;
    made->mode = set->mode = cell->mode;
    made->lease_ns = set->lease_ns = 0;
    wr_lock(&fleet->lock);
    wr_list_append(&fleet->cells, &cell->link);
    wr_unlock(&fleet->lock);
    *out = &cell->cell;
    return 0;
}

void wr_fleet_close_cell(weir_cell *base)
{
    struct wr_fleet_cell *cell = wr_cell_of(base);

    wr_lock(&cell->lock);
    cell->closing = true;
    wr_unlock(&cell->lock);
    wr_redis_timer_stop(cell->fleet->redis, &cell->renewal);
    if (cell->pool)
        wr_leased_close(cell->pool);
    wr_list_each_safe(at, &cell->leaving) {
        struct wr_hold *hold = WR_CONTAINER(at, struct wr_hold, link);
        wr_cell_send_leave(cell, hold->number, hold->count);
        wr_list_remove(at);
        wr_hold_free(hold);
    }
    wr_cell_unref(cell);
}

/* ---- calls --------------------------------------------------------------------------------------- */

int wr_cell_call(struct wr_reply **out, struct wr_fleet_cell *cell, const struct wr_script *script,
                 const struct wr_words *words, int keys, weir_time deadline)
{
    struct wr_command command = wr_words_command(words, script, keys);
    int rc = words->failed ? WEIR_ENOMEM : 0;

    command.patience = deadline > wr_os_now() && cell->when_away == WEIR_AWAY_CLOSED ? deadline : 0;
    deadline = wr_fleet_deadline(cell->fleet, deadline);
    *out = NULL;
    for (int i = 0; !rc && i < 3; i++) {
        wr_reply_free(*out);
        rc = wr_redis_call(out, cell->fleet->redis, &command, deadline, NULL);
        if (rc || (*out)->type == WR_REPLY_INTEGER || wr_reply_number(*out, 0) >= 0)
            break;
        rc = wr_cell_open(cell, true, deadline, NULL); /* the server has forgotten it */
        if (!rc && i == 2)
            rc = WEIR_ENOGUARD;
    }
    if (rc == WEIR_EREPLY && wr_reply_is_error(*out, "WRONGTYPE"))
        rc = WEIR_EFOREIGN;
    if (rc) {
        wr_reply_free(*out);
        *out = NULL;
    }
    return rc;
}

/* The server has an older version than we have seen: it gets ours. Without waiting for the answer. */
static void remind(struct wr_fleet_cell *cell)
{
    struct wr_command command;
    struct wr_words words;
    char made[192];
    int keys;

    wr_words_init(&words);
    keys = wr_cell_keys(&words, cell, 1);
    wr_words_add(&words, "open");
    wr_lock(&cell->lock);
    wr_words_number(&words, cell->version);
    wr_words_add(&words, "1");
    wr_words_number(&words, cell->fleet->keep_ms);
    add_all(&words, cell, made, sizeof(made));
    wr_unlock(&cell->lock);
    command = wr_words_command(&words, &cell->fleet->open, keys);
    if (!words.failed)
        wr_redis_send(cell->fleet->redis, &command);
    wr_words_fini(&words);
}

void wr_cell_saw(struct wr_fleet_cell *cell, int64_t version, int64_t limit, int64_t held)
{
    bool older;

    wr_lock(&cell->lock);
    if (limit >= 0 && version >= cell->version)
        cell->seen_limit = limit; /* the rest of a newer version is read when it is needed */
    if (held >= 0)
        cell->seen_held = held;
    older = version > 0 && version < cell->version;
    wr_unlock(&cell->lock);
    if (older)
        remind(cell);
}

int wr_cell_settings(weir_cell *base, weir_guard_options *set)
{
    struct wr_fleet_cell *cell = wr_cell_of(base);
    int rc = wr_cell_open(cell, true, wr_fleet_deadline(cell->fleet, 0), NULL);

    if (rc)
        return rc;
    wr_lock(&cell->lock);
    *set = cell->set;
    wr_unlock(&cell->lock);
    set->lease_ns = 0;
    return 0;
}

static const struct wr_script *script_of(const struct wr_fleet_cell *cell, int *keys)
{
    *keys = cell->kind == WEIR_GUARD_RATE ? 2 : cell->kind == WEIR_GUARD_FREQUENCY ? 4 : WR_KEYS;
    return cell->kind == WEIR_GUARD_RATE        ? &cell->fleet->rate
           : cell->kind == WEIR_GUARD_FREQUENCY ? &cell->fleet->window
                                                : &cell->fleet->permits;
}

int wr_cell_change(weir_cell *base, const weir_guard_options *from, const weir_guard_options *to)
{
    struct wr_fleet_cell *cell = wr_cell_of(base);
    struct wr_reply *reply = NULL;
    const struct wr_script *script;
    struct wr_words words;
    int keys, rc;

    (void)from; /* the version says it */
    script = script_of(cell, &keys);
    wr_words_init(&words);
    wr_cell_keys(&words, cell, keys);
    wr_words_add(&words, "change");
    wr_lock(&cell->lock);
    wr_words_number(&words, cell->version);
    wr_unlock(&cell->lock);
    add_changeable(&words, to);
    rc = wr_cell_call(&reply, cell, script, &words, keys, 0);
    wr_words_fini(&words);
    if (!rc && wr_reply_number(reply, 0) != 1)
        rc = WEIR_EALREADY;
    if (!rc) {
        wr_lock(&cell->lock);
        cell->version = wr_reply_number(reply, 1);
        cell->set.limit = to->limit;
        cell->set.period_ns = to->period_ns;
        cell->set.burst = to->burst;
        cell->set.wait_ns = to->wait_ns;
        cell->set.waiters_max = to->waiters_max;
        cell->seen_limit = to->limit == WEIR_NO_CALLS ? 0 : to->limit;
        wr_unlock(&cell->lock);
    }
    wr_reply_free(reply);
    return rc;
}

/* ---- figures ------------------------------------------------------------------------------------- */

static void fill_seen(struct wr_fleet_cell *cell, weir_guard_stats *out)
{
    struct wr_fleet *fleet = cell->fleet;

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
    wr_lock(&fleet->lock);
    out->away = fleet->away;
    out->away_ns = fleet->away ? wr_os_now() - fleet->away_since : 0;
    wr_unlock(&fleet->lock);
}

/* Of the local clock, from one of the server's. */
static weir_time local_time(weir_time now, int64_t server_now, int64_t when)
{
    return when < 0 ? WEIR_FOREVER : now + (when - server_now) * 1000;
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
    script = script_of(cell, &keys);
    wr_words_init(&words);
    wr_cell_keys(&words, cell, keys);
    wr_words_add(&words, "look");
    rc = wr_cell_call(&reply, cell, script, &words, keys, 0);
    wr_words_fini(&words);
    if (rc) {
        out->away = out->away || wr_fleet_is_away(rc);
        return out->away ? 0 : rc;
    }
    fill_looked(cell, out, reply);
    wr_reply_free(reply);
    return 0;
}
