/* The server that simulated fleets run on (tests/redis/sim/model_server.c) does what the scripts do: the same calls by chance
 * to both, on the same clock, must have the same answers and tell the same processes the same.
 *
 * The scripts run as they are but for three calls: the time is that of the test, keys do not fade meanwhile, and what is
 * published is kept in a list.
 * SPDX-License-Identifier: MIT */
#include "redis/one_server.h"
#include "redis/scripts.h"
#include "redis/sim/model.h"
#include "sim/sim.h"
#include "support/check.h"
#include "support/seed.h"

#include <stdarg.h>
#include <string.h>

enum {
    LIVES = SANITIZED ? 60 : 250,
    STEPS = 120,
    PROCESSES = 3,
    WORDS = 64,
    SAID = 64,
    NUMBERS = 40
};
enum script { OPEN, PERMITS, RATE, SCRIPTS };

#define PERMIT_KEYS "permits", "held", "info", "line", "wants"
#define LEASE_US    100000

/* ---- what the model asks for ------------------------------------------------------------------------- */

struct wr_sim wr_sim; /* its clock is all that is used of it */

void weir_sim_fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    abort();
}

static char told[SAID][128]; /* by the model: process and message */
static int told_count;

void model_publish(const char *process, const char *text)
{
    assert_true(told_count < SAID);
    snprintf(told[told_count++], sizeof(told[0]), "weir:bell:%s %s", process, text);
}

/* ---- both servers -------------------------------------------------------------------------------------- */

static redisContext *real;
static struct wr_script script[SCRIPTS];
static char *sha[SCRIPTS];

static redisReply *ask(int count, const char **words)
{
    redisReply *reply = redisCommandArgv(real, count, words, NULL);

    assert_non_null(reply);
    return reply;
}

static void put(char **text, const char *from, const char *to)
{
    char *at, *next;
    bool found = false;

    while ((at = strstr(*text, from))) {
        assert_true(asprintf(&next, "%.*s%s%s", (int)(at - *text), *text, to, at + strlen(from)) >
                    0);
        free(*text);
        *text = next;
        found = true;
    }
    assert_true(found);
}

static void load_scripts(void)
{
    const char *const text[SCRIPTS] = { wr_lua_open, wr_lua_permits, wr_lua_rate };

    for (int i = 0; i < SCRIPTS; i++) {
        redisReply *reply;
        char *changed;
        assert_true(asprintf(&changed, "local function fades() end\n%s", text[i]) > 0);
        put(&changed, "redis.call('TIME')", "redis.call('MGET', 'clock:s', 'clock:us')");
        put(&changed, "redis.call('PEXPIRE', ", "fades(");
        if (i == PERMITS)
            put(&changed, "redis.call('PUBLISH', ", "redis.call('RPUSH', 'told', ");
        reply = ask(3, (const char *[]){ "SCRIPT", "LOAD", changed });
        assert_int_equal(reply->type, REDIS_REPLY_STRING);
        sha[i] = strdup(reply->str);
        script[i].text = text[i]; /* the model knows them by that */
        freeReplyObject(reply);
        free(changed);
    }
}

static void set_clock(void)
{
    char s[24], us[24];

    snprintf(s, sizeof(s), "%lld", (long long)(model_clock() / 1000000));
    snprintf(us, sizeof(us), "%lld", (long long)(model_clock() % 1000000));
    freeReplyObject(ask(5, (const char *[]){ "MSET", "clock:s", s, "clock:us", us }));
}

/* ---- comparing ------------------------------------------------------------------------------------------ */

static char story[WORDS * 24]; /* the call */

static void differ(const char *what, long long got, long long wanted)
{
    fail_msg("%s: %s: %lld in the model, %lld on the server (WEIR_SEED=%llu)", story, what, got,
             wanted, (unsigned long long)seed);
}

static void compare_items(const struct wr_reply *model, const redisReply *answer)
{
    char what[32];

    if (model->type == WR_REPLY_ERROR || answer->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", story, answer->type == REDIS_REPLY_ERROR ? answer->str : model->text);
    if (model->count != answer->elements)
        differ("items", (long long)model->count, (long long)answer->elements);
    for (size_t i = 0; i < answer->elements; i++) {
        snprintf(what, sizeof(what), "item %zu", i);
        assert_int_equal(answer->element[i]->type, REDIS_REPLY_INTEGER);
        if (model->items[i]->integer != answer->element[i]->integer)
            differ(what, model->items[i]->integer, answer->element[i]->integer);
    }
}

/* A server that was made anew answers settings, in no order. */
static const char *field_of(const struct wr_reply *model, const char *name)
{
    for (size_t i = 2; i + 1 < model->count; i += 2)
        if (strcmp(model->items[i]->text, name) == 0)
            return model->items[i + 1]->text;
    return "none";
}

static void compare_settings(const struct wr_reply *model, const redisReply *answer)
{
    for (size_t i = 2; i + 1 < answer->elements; i += 2) {
        const char *name = answer->element[i]->str, *value = answer->element[i + 1]->str;
        if (strcmp(name, "keep") != 0 && strcmp(field_of(model, name), value) != 0)
            fail_msg("%s: %s is %s in the model, %s on the server", story, name,
                     field_of(model, name), value);
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Whom a call tells what; in which order does not matter, since each goes to another process. */
static void compare_told(void)
{
    redisReply *list = ask(4, (const char *[]){ "LRANGE", "told", "0", "-1" });
    static char real_told[SAID][128];
    int count = (int)list->elements / 2;

    assert_true(count <= SAID);
    for (int i = 0; i < count; i++)
        snprintf(real_told[i], sizeof(real_told[i]), "%s %s", list->element[2 * i]->str,
                 list->element[2 * i + 1]->str);
    freeReplyObject(list);
    freeReplyObject(ask(2, (const char *[]){ "DEL", "told" }));
    if (count != told_count)
        differ("messages", told_count, count);
    qsort(told, (size_t)count, sizeof(told[0]), by_text);
    qsort(real_told, (size_t)count, sizeof(real_told[0]), by_text);
    for (int i = 0; i < count; i++)
        if (strcmp(told[i], real_told[i]) != 0)
            fail_msg("%s: the model told '%s', the server '%s'", story, told[i], real_told[i]);
    told_count = 0;
}

/* Calls both. The answer of the model, which the caller frees. */
static struct wr_reply *call(enum script which, int keys, int count, const char *const *words)
{
    struct wr_command command = {
        .script = &script[which], .keys = keys, .count = count, .words = words
    };
    const char *all[WORDS + 3] = { "EVALSHA", sha[which] };
    struct wr_reply *model;
    redisReply *answer;
    char number[8];
    size_t at = 0;

    set_clock();
    snprintf(number, sizeof(number), "%d", keys);
    all[2] = number;
    story[0] = '\0';
    for (int i = 0; i < count; i++) {
        all[3 + i] = words[i];
        if (i >= keys && at < sizeof(story))
            at += (size_t)snprintf(story + at, sizeof(story) - at, "%s ", words[i]);
    }
    model = model_run(&command);
    answer = ask(count + 3, all);
    assert_non_null(model);
    if (which == OPEN && model->count > 1 && answer->type == REDIS_REPLY_ARRAY &&
        answer->elements > 1)
        compare_settings(model, answer);
    else
        compare_items(model, answer);
    compare_told();
    freeReplyObject(answer);
    return model;
}

/* ---- calls by chance -------------------------------------------------------------------------------------- */

struct words {
    char text[WORDS][24];
    const char *word[WORDS];
    int count;
};

static __attribute__((format(printf, 2, 3))) void add(struct words *w, const char *format, ...)
{
    va_list args;

    assert_true(w->count < WORDS);
    va_start(args, format);
    vsnprintf(w->text[w->count], sizeof(w->text[0]), format, args);
    va_end(args);
    w->word[w->count] = w->text[w->count];
    w->count++;
}

static void add_keys(struct words *w, enum script which)
{
    static const char *const permit_keys[] = { PERMIT_KEYS };

    w->count = 0;
    for (size_t i = 0; i < (which == RATE ? 1 : sizeof(permit_keys) / sizeof(permit_keys[0])); i++)
        add(w, "%s", which == RATE ? "rate" : permit_keys[i]);
    if (which == RATE)
        add(w, "use");
}

static struct luck luck;
static int64_t version, born; /* of the guard of permits, as last heard */

static int64_t below(int64_t limit)
{
    return (int64_t)luck_below(&luck, (uint64_t)limit);
}

static struct wr_reply *do_call(enum script which, const struct words *w)
{
    return call(which, which == RATE ? 2 : 5, w->count, w->word);
}

static void open_permits(bool known)
{
    struct wr_reply *reply;
    struct words w;

    add_keys(&w, PERMITS);
    w.count = 1;
    add(&w, "open");
    add(&w, "%lld", (long long)(known ? version : 0));
    add(&w, "1");
    add(&w, "1000");
    for (int i = 0; i < 4; i++) {
        static const char *const name[] = { "kind", "limit", "lease", "waiters" };
        add(&w, "%s", name[i]);
        add(&w, "%lld",
            (long long)(i == 0   ? WEIR_GUARD_CONCURRENCY
                        : i == 1 ? 1 + below(5)
                        : i == 2 ? LEASE_US
                                 : below(4)));
    }
    reply = call(OPEN, 1, w.count, w.word);
    version = strtoll(field_of(reply, "version"), NULL, 10);
    born = strtoll(field_of(reply, "born"), NULL, 10);
    wr_reply_free(reply);
}

static void open_rate(void)
{
    struct words w;

    add_keys(&w, RATE);
    w.count = 1;
    add(&w, "open");
    add(&w, "0");
    add(&w, "1");
    add(&w, "1000");
    for (int i = 0; i < 5; i++) {
        static const char *const name[] = { "kind", "limit", "period", "mode", "burst" };
        add(&w, "%s", name[i]);
        add(&w, "%lld",
            (long long)(i == 0   ? WEIR_GUARD_RATE
                        : i == 1 ? 1 + below(9)
                        : i == 2 ? 1 + below(LEASE_US)
                        : i == 3 ? WEIR_SMOOTH
                                 : 1 + below(4)));
    }
    wr_reply_free(call(OPEN, 1, w.count, w.word));
}

static void enter(void)
{
    int64_t n = 1 + below(3);
    struct words w;

    add_keys(&w, PERMITS);
    add(&w, "enter");
    add(&w, "p%d", (int)below(PROCESSES));
    add(&w, "%lld", (long long)(1 + below(NUMBERS)) * 4); /* those of one call are in a row */
    add(&w, "%lld", (long long)n);
    add(&w, "%lld", (long long)(1 + below(n)));
    add(&w, "%d", (int)below(2));
    add(&w, "who");
    if (below(2)) {
        add(&w, "%lld", (long long)below(6));
        add(&w, "%lld", (long long)below(3));
    }
    wr_reply_free(do_call(PERMITS, &w));
}

static void leave(void)
{
    struct words w;

    add_keys(&w, PERMITS);
    add(&w, "leave");
    add(&w, "p%d", (int)below(PROCESSES));
    for (int64_t i = below(8) + 1; i > 0; i--) {
        add(&w, "%lld", (long long)(1 + below(NUMBERS)) * 4);
        add(&w, "%lld", (long long)(1 + below(3)));
    }
    wr_reply_free(do_call(PERMITS, &w));
}

static void renew(void)
{
    int64_t held = below(20), waiting = below(10);
    struct words w;

    add_keys(&w, PERMITS);
    add(&w, "renew");
    add(&w, "p%d", (int)below(PROCESSES));
    add(&w, "%lld", (long long)below(5) - 1);
    add(&w, "%lld", (long long)below(3));
    add(&w, "%lld", (long long)held);
    add(&w, "%lld", (long long)(below(3) ? born : below(2) ? 0 : 77));
    for (int64_t i = 0; i < held + waiting; i++)
        add(&w, "%lld", (long long)((1 + below(NUMBERS)) * 4 + (below(4) ? 0 : below(3))));
    wr_reply_free(do_call(PERMITS, &w));
}

static void change(void)
{
    struct wr_reply *reply;
    struct words w;

    add_keys(&w, PERMITS);
    add(&w, "change");
    add(&w, "%lld", (long long)(below(4) ? version : version + 1));
    add(&w, "limit");
    add(&w, "%lld", (long long)below(6));
    reply = do_call(PERMITS, &w);
    if (reply->count == 2)
        version = reply->items[1]->integer;
    wr_reply_free(reply);
}

static void look(void)
{
    struct words w;

    add_keys(&w, PERMITS);
    add(&w, "look");
    wr_reply_free(do_call(PERMITS, &w));
}

static void take(void)
{
    int64_t n = 1 + below(4);
    struct words w;

    add_keys(&w, RATE);
    add(&w, "take");
    add(&w, "%lld", (long long)n);
    add(&w, "%lld", (long long)below(LEASE_US));
    if (below(2))
        add(&w, "%lld", (long long)(1 + below(n)));
    wr_reply_free(do_call(RATE, &w));
}

static void forget(void)
{
    freeReplyObject(ask(8, (const char *[]){ "DEL", PERMIT_KEYS, "rate", "use" }));
    model_obey(MODEL_FORGET, 0);
}

static void step(void)
{
    static void (*const calls[])(void) = { enter, enter, enter, leave, renew, renew, look, take };

    if (below(3))
        wr_sim.now += below(LEASE_US) * 1000 / (below(4) ? 8 : 1);
    switch (below(30)) {
    case 0:
        forget();
        if (below(4))
            open_permits(below(2));
        if (below(2))
            open_rate();
        break;
    case 1:
        open_permits(below(2));
        break;
    case 2:
        change();
        break;
    default:
        calls[below(8)]();
        break;
    }
}

static void test_the_model_answers_as_the_scripts_do(void)
{
    uint64_t lives = soak_times(LIVES);

    load_scripts();
    for (uint64_t i = 0; i < lives; i++) {
        luck = luck_of(i);
        wr_sim.now += 10000 * INT64_C(1000000);
        model_server_init();
        forget();
        version = 0;
        open_permits(false);
        open_rate();
        for (int k = 0; k < STEPS; k++)
            step();
    }
    for (int i = 0; i < SCRIPTS; i++)
        free(sha[i]);
}

static int begin(void **state)
{
    int rc = start_server(state);

    real = rc ? NULL : redisConnectUnix(server.socket);
    return rc || !real || real->err;
}

static int end(void **state)
{
    redisFree(real);
    return stop_server(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_model_answers_as_the_scripts_do),
    };

    seed_init();
    return cmocka_run_group_tests(tests, begin, end);
}
