/* The server: guards of permits and of rates, as the scripts keep them. Names and order are those of src/redis/scripts/permits.lua and rate.lua.
 * SPDX-License-Identifier: MIT */
#include "redis/sim/model.h"

#include "base/os.h"
#include "redis/scripts.h"
#include "redis/words.h"
#include "sim/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/sim.h>

enum { MANY = 128, FIELDS = 32, TEXT = 200, PROCESSES = 16 };

/* The server's clock is another one than ours. */
#define AHEAD_US INT64_C(1700000000000000)

struct id {
    char process[20];
    int64_t number;
};

struct held {
    struct id id;
    int64_t ends;
};

struct info {
    struct id id;
    bool waits;
    int64_t token, count; /* of a holder */
    int64_t n, few, ends; /* of a waiter */
};

struct line {
    struct id id;
    int64_t place;
};

struct want {
    char process[20];
    int64_t want, have, ends, target;
};

/* One guard, of any kind. */
struct guard {
    char name[TEXT]; /* the key of its settings; "": there is none */
    struct {
        char name[16], value[TEXT];
    } field[FIELDS];
    int fields;
    struct held held[MANY];
    struct info info[MANY];
    struct line line[MANY];
    struct want want[PROCESSES];
    int held_count, info_count, line_count, want_count;
    int64_t tat; /* of a rate, in us times its limit */
};

enum { GUARDS = 3 };

struct memory {
    struct guard guard[GUARDS];
};

static struct memory memory, saved;
static uint64_t commands;

/* The script that runs. */
static struct guard *g;
static const char *const *argv;
static int argc;
static int64_t now, limit, lease, token, first_token, waiters_max, born, grace, version;

/* ---- small things ------------------------------------------------------------------------------ */

static bool same(const struct id *a, const struct id *b)
{
    return a->number == b->number && !strcmp(a->process, b->process);
}

static struct id id_of(const char *process, int64_t number)
{
    struct id id = { .number = number };

    snprintf(id.process, sizeof(id.process), "%s", process);
    return id;
}

static int64_t number_at(int at)
{
    return at < argc ? strtoll(argv[at], NULL, 10) : 0;
}

static const char *field(const struct guard *guard, const char *name)
{
    for (int i = 0; i < guard->fields; i++)
        if (!strcmp(guard->field[i].name, name))
            return guard->field[i].value;
    return NULL;
}

static int64_t setting(const struct guard *guard, const char *name)
{
    const char *value = field(guard, name);

    return value ? strtoll(value, NULL, 10) : 0;
}

static void set(struct guard *guard, const char *name, const char *value)
{
    int at = 0;

    while (at < guard->fields && strcmp(guard->field[at].name, name) != 0)
        at++;
    WEIR_SIM_CHECK(at < FIELDS);
    guard->fields += at == guard->fields;
    snprintf(guard->field[at].name, sizeof(guard->field[at].name), "%s", name);
    snprintf(guard->field[at].value, sizeof(guard->field[at].value), "%s", value);
}

static void set_number(struct guard *guard, const char *name, int64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRId64, value);
    set(guard, name, text);
}

static struct guard *guard_of(const char *name, bool make)
{
    for (int i = 0; i < GUARDS; i++)
        if (!strcmp(memory.guard[i].name, name))
            return &memory.guard[i];
    for (int i = 0; make && i < GUARDS; i++)
        if (!memory.guard[i].name[0]) {
            memset(&memory.guard[i], 0, sizeof(memory.guard[i]));
            snprintf(memory.guard[i].name, TEXT, "%s", name);
            return &memory.guard[i];
        }
    WEIR_SIM_CHECK(!make);
    return NULL;
}

/* The one with permits; NULL: the server knows none. */
static struct guard *permits_guard(void)
{
    for (int i = 0; i < GUARDS; i++)
        if (memory.guard[i].name[0] && setting(&memory.guard[i], "kind") == WEIR_GUARD_CONCURRENCY)
            return &memory.guard[i];
    return NULL;
}

int64_t model_clock(void)
{
    return wr_sim.now / 1000 + AHEAD_US;
}

/* ---- answers ----------------------------------------------------------------------------------- */

static struct wr_reply *integer(int64_t value)
{
    struct wr_reply *reply = wr_os_alloc(sizeof(*reply));

    if (reply)
        *reply = (struct wr_reply){ .type = WR_REPLY_INTEGER, .integer = value };
    return reply;
}

static struct wr_reply *text(enum wr_reply_type type, const char *words)
{
    size_t size = strlen(words);
    struct wr_reply *reply = wr_os_alloc(sizeof(*reply) + size + 1);

    if (!reply)
        return NULL;
    *reply = (struct wr_reply){ .type = type, .text = (char *)(reply + 1), .size = size };
    memcpy(reply->text, words, size + 1);
    return reply;
}

static struct wr_reply *array(size_t count)
{
    struct wr_reply *reply = wr_os_alloc(sizeof(*reply) + count * sizeof(struct wr_reply *));

    if (reply)
        *reply = (struct wr_reply){ .type = WR_REPLY_ARRAY,
                                    .items = (struct wr_reply **)(reply + 1),
                                    .count = count };
    return reply;
}

/* Numbers on their way into an array. */
static int64_t said[4 * MANY];
static size_t said_count;

static void say(int64_t number)
{
    WEIR_SIM_CHECK(said_count < sizeof(said) / sizeof(said[0]));
    said[said_count++] = number;
}

static struct wr_reply *numbers(void)
{
    struct wr_reply *reply = array(said_count);

    for (size_t i = 0; reply && i < said_count; i++) {
        reply->items[i] = integer(said[i]);
        if (!reply->items[i]) {
            wr_reply_free(reply);
            return NULL;
        }
    }
    return reply;
}

/* ---- sets -------------------------------------------------------------------------------------- */

#define FIND(what, wanted)                          \
    for (int at_ = 0; at_ < g->what##_count; at_++) \
        if (same(&g->what[at_].id, wanted))         \
            return &g->what[at_];                   \
    return NULL

static struct held *find_held(const struct id *id)
{
    FIND(held, id);
}

static struct info *find_info(const struct id *id)
{
    FIND(info, id);
}

static struct line *find_line(const struct id *id)
{
    FIND(line, id);
}

/* Whether it was there. */
#define REMOVE(what, entry) ((entry) ? (*(entry) = g->what[--g->what##_count], true) : false)

static bool drop_held(const struct id *id)
{
    struct held *it = find_held(id);

    return REMOVE(held, it);
}

static bool drop_info(const struct id *id)
{
    struct info *it = find_info(id);

    return REMOVE(info, it);
}

static bool drop_line(const struct id *id)
{
    struct line *it = find_line(id);

    return REMOVE(line, it);
}

static void put_held(const struct id *id, int64_t ends)
{
    struct held *it = find_held(id);

    WEIR_SIM_CHECK(g->held_count < MANY);
    if (!it)
        it = &g->held[g->held_count++];
    *it = (struct held){ *id, ends };
}

static struct info *put_info(const struct id *id)
{
    struct info *it = find_info(id);

    WEIR_SIM_CHECK(g->info_count < MANY);
    if (!it)
        it = &g->info[g->info_count++];
    *it = (struct info){ .id = *id };
    return it;
}

static struct line *first_in_line(void)
{
    struct line *first = NULL;

    for (int i = 0; i < g->line_count; i++)
        if (!first || g->line[i].place < first->place)
            first = &g->line[i];
    return first;
}

/* ---- permits ----------------------------------------------------------------------------------- */

static int64_t next_token(void)
{
    token = token + 1 > now ? token + 1 : now;
    return token;
}

static int64_t admit(const struct id *id, int64_t count)
{
    int64_t mine = next_token();

    for (int64_t i = 0; i < count; i++) {
        struct id one = id_of(id->process, id->number + i);
        struct info *info;

        put_held(&one, now + lease);
        info = put_info(&one);
        info->token = mine;
        info->count = i == 0 ? count : 0;
    }
    return mine;
}

static void expire(void)
{
    for (int i = g->held_count - 1; i >= 0; i--)
        if (g->held[i].ends <= now) {
            struct id id = g->held[i].id;
            drop_held(&id);
            drop_info(&id);
        }
}

static int64_t count_free(void)
{
    return now < grace ? 0 : limit - g->held_count;
}

static void serve(void)
{
    int64_t free = count_free();

    while (free > 0 && g->line_count) {
        struct id id = first_in_line()->id;
        struct info *info = find_info(&id);
        int64_t count, mine;
        char words[TEXT];

        if (!info || !info->waits || info->ends <= now) {
            drop_line(&id);
            drop_info(&id);
            continue;
        }
        if (info->few > free)
            break;
        count = info->n < free ? info->n : free;
        drop_line(&id);
        mine = admit(&id, count);
        free -= count;
        snprintf(words, sizeof(words), "g %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64,
                 id.number, mine, count, now + lease, now);
        model_publish(id.process, words);
    }
}

static void finish(void)
{
    if (token != first_token)
        set_number(g, "token", token);
}

static int64_t next_end(void)
{
    int64_t least = 0;

    if (now < grace)
        return grace;
    for (int i = 0; i < g->held_count; i++)
        if (!least || g->held[i].ends < least)
            least = g->held[i].ends;
    return least;
}

/* ---- shares ------------------------------------------------------------------------------------ */

static int by_want(const void *a, const void *b)
{
    const struct want *x = a, *y = b;

    return x->want != y->want ? (x->want < y->want ? -1 : 1) : strcmp(x->process, y->process);
}

static void find_targets(void)
{
    int64_t left = limit, level = -1;

    for (int i = g->want_count - 1; i >= 0; i--)
        if (g->want[i].ends <= now)
            g->want[i] = g->want[--g->want_count];
    for (int i = 0; i < g->want_count; i++)
        g->want[i].target = 0;
    if (g->want_count > limit)
        return;
    qsort(g->want, (size_t)g->want_count, sizeof(g->want[0]), by_want);
    for (int i = 0; i < g->want_count; i++) {
        struct want *it = &g->want[i];
        int64_t each = left / (g->want_count - i);

        if (level < 0 && it->want > each)
            level = each;
        it->target = level >= 0 ? level : it->want;
        left -= it->target;
    }
    for (int i = 0; i < g->want_count; i++) {
        struct want *it = &g->want[(now / lease + i) % g->want_count];

        if (left > 0 && it->target < it->want) {
            it->target++;
            left--;
        }
    }
}

static struct want *find_want(const char *process)
{
    for (int i = 0; i < g->want_count; i++)
        if (!strcmp(g->want[i].process, process))
            return &g->want[i];
    return NULL;
}

static int64_t demand(const char *process, int64_t want, int64_t have, bool recall)
{
    struct want *it = find_want(process);
    int64_t before = it ? it->want : 0, mine = 0;

    if (want == 0 && have == 0) {
        if (it)
            *it = g->want[--g->want_count];
    } else {
        WEIR_SIM_CHECK(it || g->want_count < PROCESSES);
        if (!it)
            it = &g->want[g->want_count++];
        *it = (struct want){ .want = want, .have = have, .ends = now + lease };
        snprintf(it->process, sizeof(it->process), "%s", process);
    }
    find_targets();
    for (int i = 0; i < g->want_count; i++) {
        char words[2 * TEXT];

        it = &g->want[i];
        if (!strcmp(it->process, process)) {
            mine = it->target;
        } else if ((recall && it->have > 0) || (want < before && it->target > it->have)) {
            snprintf(words, sizeof(words), "t %" PRId64 " %s", it->target, g->name);
            model_publish(it->process, words);
        }
    }
    return mine;
}

/* ---- verbs of permits -------------------------------------------------------------------------- */

static struct wr_reply *enter(void)
{
    struct id id = id_of(argv[1], number_at(2));
    int64_t n = number_at(3), few = number_at(4), state = 0, mine = 0, count = 0, target = -1;
    int64_t ends = now + lease;
    struct held *kept;

    expire();
    if (g->line_count)
        serve();
    kept = find_held(&id);
    if (kept) {
        const struct info *known = find_info(&id);

        state = 1;
        mine = known->token;
        count = known->count;
        ends = kept->ends;
    } else {
        int64_t free;
        bool first;

        free = count_free();
        first = g->line_count == 0;
        if (argc > 7) {
            int64_t have = number_at(8);

            target = demand(argv[1], number_at(7), have, free < n || !first);
            n = n < target - have ? n : target - have;
            if (n < 1)
                n = have == 0;
        }
        if (n > 0 && first && free >= few) {
            state = 1;
            count = n < free ? n : free;
            mine = admit(&id, count);
            drop_line(&id);
        } else if (n > 0 && !strcmp(argv[5], "1") && (few == 1 || few <= limit) &&
                   (argc > 7 || g->line_count < waiters_max)) {
            struct info *info;

            state = 2;
            if (!find_line(&id)) {
                WEIR_SIM_CHECK(g->line_count < MANY);
                g->line[g->line_count++] = (struct line){ id, next_token() };
            }
            info = put_info(&id);
            info->waits = true;
            info->n = n;
            info->few = few;
            info->ends = now + lease;
        }
    }
    finish();
    say(state), say(mine), say(count), say(ends), say(now), say(version), say(next_end());
    say(target), say(limit), say(g->held_count);
    return numbers();
}

static struct wr_reply *leave(void)
{
    int64_t gone = 0;

    for (int i = 2; i < argc; i += 2)
        for (int64_t k = 0; k < number_at(i + 1); k++) {
            struct id id = id_of(argv[1], number_at(i) + k);

            gone += drop_held(&id);
            if (drop_info(&id))
                drop_line(&id);
        }
    if (g->line_count) {
        expire();
        serve();
        finish();
    }
    say(gone), say(now), say(version);
    return numbers();
}

/* Whether the lease lasts on. */
static bool renew_one(const struct id *id, bool forgotten)
{
    struct held *it = find_held(id);

    if (it) {
        it->ends = now + lease;
        return true;
    }
    if (!forgotten || g->held_count >= limit)
        return false;
    put_held(id, now + lease);
    put_info(id)->count = 1;
    return true;
}

static struct wr_reply *renew(void)
{
    int64_t count = number_at(4), target = -1, lost[MANY], losses = 0;
    bool forgotten = strcmp(argv[5], "0") != 0 && number_at(5) != born;
    int first_waiter = 6 + (int)count;

    expire();
    if (forgotten && now >= grace && born + lease > now) {
        grace = born + lease;
        set_number(g, "grace", grace);
    }
    for (int i = 6; i < first_waiter; i++) {
        struct id id = id_of(argv[1], number_at(i));

        WEIR_SIM_CHECK(losses < MANY);
        if (!renew_one(&id, forgotten))
            lost[losses++] = number_at(i);
    }
    for (int i = first_waiter; i < argc; i++) {
        struct id id = id_of(argv[1], number_at(i));
        struct info *info = find_info(&id);

        if (info && info->waits)
            info->ends = now + lease;
    }
    if (g->line_count)
        serve();
    if (strcmp(argv[2], "-1") != 0)
        target = demand(argv[1], number_at(2), number_at(3), false);
    finish();
    say(now), say(version), say(next_end()), say(target), say(limit), say(g->held_count);
    say(born), say(losses);
    for (int i = 0; i < losses; i++)
        say(lost[i]);
    for (int i = first_waiter; i < argc; i++) {
        struct id id = id_of(argv[1], number_at(i));
        struct info *info = find_info(&id);
        struct held *held = find_held(&id);

        say(id.number), say(!info ? -1 : info->waits ? 0 : info->token);
        say(info && !info->waits ? info->count : 0), say(held ? held->ends : 0);
    }
    return numbers();
}

/* As in every script. */
static struct wr_reply *change(void)
{
    if (number_at(1) != version) {
        say(0), say(version);
        return numbers();
    }
    for (int i = 2; i + 1 < argc; i += 2)
        set(g, argv[i], argv[i + 1]);
    set_number(g, "version", version + 1);
    limit = setting(g, "limit");
    if (setting(g, "kind") == WEIR_GUARD_CONCURRENCY) {
        expire();
        serve();
        finish();
    }
    say(1), say(version + 1);
    return numbers();
}

static struct wr_reply *look(void)
{
    int64_t held = 0;

    for (int i = 0; i < g->held_count; i++)
        held += g->held[i].ends > now;
    say(now), say(version), say(limit), say(held), say(g->line_count), say(next_end());
    return numbers();
}

/* Loads the guard that a script is about. False: it is not known. */
static bool load(const char *name)
{
    g = guard_of(name, false);
    if (!g)
        return false;
    limit = setting(g, "limit");
    lease = setting(g, "lease");
    token = first_token = setting(g, "token");
    waiters_max = setting(g, "waiters");
    born = setting(g, "born");
    grace = setting(g, "grace");
    version = setting(g, "version");
    return true;
}

static struct wr_reply *run_permits(void)
{
    static const struct {
        const char *verb;
        struct wr_reply *(*run)(void);
    } verbs[] = { { "enter", enter },
                  { "leave", leave },
                  { "renew", renew },
                  { "change", change },
                  { "look", look } };

    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
        if (!strcmp(argv[0], verbs[i].verb))
            return verbs[i].run();
    return text(WR_REPLY_ERROR, "ERR weir: unknown verb");
}

/* ---- rates ------------------------------------------------------------------------------------- */

/* Evenly spread: one every period / limit, after a burst. `tat` counts in parts of a us, `limit` to the us. */
static struct wr_reply *run_rate(void)
{
    int64_t period = setting(g, "period"), burst = setting(g, "burst"), wait, left;
    int64_t n = number_at(1), patience = number_at(2), few = argc > 3 ? number_at(3) : n;

    if (!strcmp(argv[0], "change"))
        return change();
    if (strcmp(argv[0], "take") != 0)
        return text(WR_REPLY_ERROR, "ERR weir: unknown verb");
    if (g->tat < now * limit)
        g->tat = now * limit;
    left = (burst * period - (g->tat - now * limit)) / period;
    if (few < n)
        n = n < left ? n : left < few ? few : left;
    wait = g->tat - now * limit + n * period - burst * period;
    wait = wait > 0 ? (wait + limit - 1) / limit : 0;
    if (wait > patience) {
        say(0), say(now), say(version), say(wait), say(0), say(0), say(0);
        return numbers();
    }
    say(1), say(now), say(version), say(wait), say(g->tat / limit), say(g->tat % limit), say(n);
    g->tat += n * period;
    return numbers();
}

/* ---- opening ----------------------------------------------------------------------------------- */

static struct wr_reply *open_guard(const char *name)
{
    int64_t known = number_at(1);
    struct wr_reply *reply;
    bool make, fresh;

    g = guard_of(name, false);
    fresh = !g;
    make = !strcmp(argv[2], "1") && (fresh || setting(g, "version") < known);
    if (fresh && !make) {
        say(-1);
        return numbers();
    }
    if (make) {
        g = guard_of(name, true);
        for (int i = 4; i + 1 < argc; i += 2)
            set(g, argv[i], argv[i + 1]);
        set_number(g, "version", known > 1 ? known : 1);
    }
    if (fresh) {
        set_number(g, "born", now);
        if (known > 0)
            set_number(g, "grace", now + setting(g, "lease"));
    }
    reply = array(2 + 2 * (size_t)g->fields);
    for (size_t i = 0; reply && i < reply->count; i++) {
        reply->items[i] = i == 0       ? integer(make)
                          : i == 1     ? integer(now)
                          : i % 2 == 0 ? text(WR_REPLY_STRING, g->field[i / 2 - 1].name)
                                       : text(WR_REPLY_STRING, g->field[i / 2 - 1].value);
        if (!reply->items[i]) {
            wr_reply_free(reply);
            return NULL;
        }
    }
    return reply;
}

static void tell_command(void)
{
    fprintf(stderr, "%10.3f ms      ", (double)(wr_sim.now - WEIR_SIM_START) / 1e6);
    for (int i = 0; i < argc && i < 12; i++)
        fprintf(stderr, " %.16s", argv[i]);
    fputc('\n', stderr);
}

struct wr_reply *model_run(const struct wr_command *command)
{
    const char *script = command->script ? command->script->text : NULL;

    commands++;
    said_count = 0;
    now = model_clock();
    argv = command->words + command->keys;
    argc = command->count - command->keys;
    if (getenv("WEIR_TELL"))
        tell_command();
    if (script == wr_lua_open)
        return open_guard(command->words[0]);
    if (script != wr_lua_permits && script != wr_lua_rate)
        return text(WR_REPLY_ERROR, "ERR unknown command");
    if (!load(command->words[0])) {
        say(-1);
        return numbers();
    }
    return script == wr_lua_permits ? run_permits() : run_rate();
}

/* ---- what befalls it --------------------------------------------------------------------------- */

static void evict(int64_t which)
{
    struct id id;
    char words[TEXT];

    if (!g->held_count)
        return;
    id = g->held[which % g->held_count].id;
    drop_held(&id);
    drop_info(&id);
    snprintf(words, sizeof(words), "x %" PRId64, id.number);
    model_publish(id.process, words);
    expire();
    serve();
    finish();
}

/* No client will renew it, or leave. */
static void let_stranger_in(int64_t count)
{
    static const char *const name = "00000000stranger";
    static int64_t number;
    struct id id = id_of(name, number);

    expire();
    if (g->line_count)
        serve();
    if (count > count_free())
        count = count_free();
    if (!g->line_count && count > 0) {
        number += count;
        admit(&id, count);
    }
    finish();
}

void model_obey(enum model_order order, int64_t number)
{
    struct guard *permits = permits_guard();

    if (order == MODEL_FORGET)
        memset(&memory, 0, sizeof(memory));
    else if (order == MODEL_SAVE)
        saved = memory;
    else if (order == MODEL_RESTORE)
        memory = saved;
    now = model_clock();
    if (!permits || !load(permits->name))
        return;
    if (order == MODEL_EVICT) {
        evict(number);
    } else if (order == MODEL_STRANGER) {
        let_stranger_in(number);
    } else if (order == MODEL_LIMIT) {
        limit = number;
        set_number(g, "limit", limit);
        set_number(g, "version", version + 1);
        expire();
        serve();
        finish();
    }
}

void model_server_init(void)
{
    memset(&memory, 0, sizeof(memory));
    memset(&saved, 0, sizeof(saved));
    commands = 0;
}

/* ---- what it knows ----------------------------------------------------------------------------- */

int64_t model_limit(void)
{
    struct guard *permits = permits_guard();

    return permits ? setting(permits, "limit") : 0;
}

int64_t model_held(void)
{
    struct guard *permits = permits_guard();
    int64_t count = 0;

    for (int i = 0; permits && i < permits->held_count; i++)
        count += permits->held[i].ends > model_clock();
    return count;
}

int64_t model_line(bool all)
{
    struct guard *permits = permits_guard();
    int64_t count = 0;

    for (int i = 0; permits && i < permits->info_count; i++)
        count += permits->info[i].waits && (all || permits->info[i].ends > model_clock());
    return count;
}

int64_t model_wants(bool all)
{
    struct guard *permits = permits_guard();
    int64_t count = 0;

    for (int i = 0; permits && i < permits->want_count; i++)
        count += all || permits->want[i].ends > model_clock();
    return count;
}

int64_t model_end(const char *process, int64_t number)
{
    struct guard *permits = permits_guard();
    struct id id = id_of(process, number);

    for (int i = 0; permits && i < permits->held_count; i++)
        if (same(&permits->held[i].id, &id))
            return (permits->held[i].ends - AHEAD_US) * 1000;
    return 0;
}

int64_t model_orphans(void)
{
    int64_t count = 0;

    g = permits_guard();
    for (int i = 0; g && i < g->held_count; i++) {
        const struct info *info = find_info(&g->held[i].id);
        count += !info || info->waits;
    }
    for (int i = 0; g && i < g->line_count; i++) {
        const struct info *info = find_info(&g->line[i].id);
        count += !info || !info->waits;
    }
    return g ? count + labs((long)(g->info_count - g->held_count - g->line_count)) : 0;
}

uint64_t model_commands(void)
{
    return commands;
}
