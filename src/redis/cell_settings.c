/* The settings of a guard of a fleet, as the server has them: opened, read, changed, and brought back to a server that lost them.
 * SPDX-License-Identifier: MIT */
#include "redis/cell.h"

#include "base/assert.h"
#include "redis/config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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

void wr_settings_name_nothing(weir_guard_options *o)
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
    wr_settings_name_nothing(o);
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

/* Takes over the settings that the server has. Under the lock. */
static int learn(struct wr_fleet_cell *cell, const struct wr_reply *reply, weir_message *message)
{
    weir_guard_kind kind = (weir_guard_kind)number_of(reply, "kind");
    int64_t lease = number_of(reply, "lease");
    const char *made = field(reply, "made");
    weir_guard_options *set = &cell->set;
    const char *wrong = !made || !read_settings(&cell->made, made)              ? "made"
                        : lease < WR_LEASE_MIN_MS * INT64_C(1000)               ? "lease"
                        : kind < WEIR_GUARD_BULKHEAD || kind > WEIR_GUARD_MUTEX ? "kind"
                                                                                : NULL;

    if (wrong) {
        const char *is = field(reply, wrong);
        return wr_redis_fail(
            WEIR_EFOREIGN, message, "%s: field %s is %s%.40s%s: not as weir writes it",
            cell->key[WR_KEY_SETTINGS], wrong, is ? "'" : "", is ? is : "missing", is ? "'" : "");
    }
    cell->kind = kind;
    cell->mode = (weir_guard_mode)number_of(reply, "mode");
    cell->lease_ns = lease * 1000;
    *set = cell->made;
    set->limit = number_of(reply, "limit");
    set->period_ns = number_of(reply, "period") * 1000;
    set->burst = number_of(reply, "burst");
    set->wait_ns = number_of(reply, "wait");
    set->waiters_max = number_of(reply, "waiters");
    wr_settings_name_nothing(set);
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
    rc = wr_cell_judge(cell, rc, reply, message);
    WR_ASSERT(rc || reply);
    if (!rc && wr_reply_number(reply, 0) < 0)
        rc = WEIR_ENOGUARD;
    if (!rc) {
        wr_lock(&cell->lock);
        rc = learn(cell, reply, message);
        wr_unlock(&cell->lock);
    }
    wr_reply_free(reply);
    return rc;
}

/* The server has an older version than we have seen: sends it our settings, without waiting for the answer. */
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

int wr_cell_change(weir_cell *base, const weir_guard_options *from, const weir_guard_options *to)
{
    struct wr_fleet_cell *cell = wr_cell_of(base);
    struct wr_reply *reply = NULL;
    const struct wr_script *script;
    struct wr_words words;
    int keys, rc;

    (void)from; /* the version says it */
    script = wr_cell_script(cell, &keys);
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
