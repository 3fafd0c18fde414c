/* w6: permits of a fleet. Acquire (awaited) and release (sent without waiting), one at a time and fifty, beside a bare loop that
 * sends the very same scripts in the same pattern over one connection of hiredis; and tasks of a group that leases its
 * permits. The server is started here, on a socket.
 * SPDX-License-Identifier: MIT */
#ifdef WEIR_HAS_REDIS
#include "bench.h"
#include "redis/scripts.h"

#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weir/redis.h>

enum { /* of one slice */
       PAIRS = 2000,
       AT_A_TIME = 50,
       LIMIT = 1000,
       TASKS = 100000,
       WORKS = 40000, /* long enough for the lease to grow */
       WORK_NS = 10000,
       SLICES = 30,
       SLICES_MIN = 3,
       BUDGET_S =
           12, /* no further slice after so long: a busy machine takes ten times as long for one */
       WARM_UP = 500
};

static char dir[] = "/tmp/weir-w6-XXXXXX";
static char path[64], url[80];
static pid_t server;

static void start_server(void)
{
    redisContext *c = NULL;

    if (!mkdtemp(dir))
        bench_die("w6: no directory");
    snprintf(path, sizeof(path), "%s/s", dir);
    snprintf(url, sizeof(url), "unix://%s", path);
    server = fork();
    if (server == 0) {
        execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", path, "--save", "",
               "--dir", dir, "--loglevel", "warning", "--logfile", "/dev/null", (char *)NULL);
        _exit(127);
    }
    for (int i = 0; i < 1000 && (!c || c->err); i++) {
        if (c)
            redisFree(c);
        usleep(10000);
        c = redisConnectUnix(path);
    }
    if (!c || c->err)
        bench_die("w6: redis-server does not answer");
    redisFree(c);
}

static void stop_server(void)
{
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    unlink(path);
    rmdir(dir);
}

static double seconds(weir_time since)
{
    return (double)(weir_now() - since) / 1e9;
}

/* ---- reference ------------------------------------------------------------------------------------- */

static char sha[64];

static redisReply *must(redisReply *reply)
{
    if (!reply || reply->type == REDIS_REPLY_ERROR)
        bench_die("w6: %s", reply ? reply->str : "the server is gone");
    return reply;
}

static void append_enter(redisContext *c, long number)
{
    redisAppendCommand(c,
                       "EVALSHA %s 5 weir:{w6}:cfg weir:{w6}:held weir:{w6}:info weir:{w6}:line "
                       "weir:{w6}:wants enter 0123456789abcdef %ld 1 1 0 %s",
                       sha, number, "host 12345 -");
}

static void append_leave(redisContext *c, long number)
{
    redisAppendCommand(c,
                       "EVALSHA %s 4 weir:{w6}:cfg weir:{w6}:held weir:{w6}:info weir:{w6}:line "
                       "leave 0123456789abcdef %ld 1",
                       sha, number);
}

static void collect(redisContext *c)
{
    redisReply *reply = NULL;

    if (redisGetReply(c, (void **)&reply) != REDIS_OK)
        bench_die("w6: the server is gone");
    freeReplyObject(must(reply));
}

/* `width` acquires go out together and are awaited; their releases go out with the next ones. */
static double bare_loop(redisContext *c, long pairs, int width)
{
    static long number = 1;
    weir_time begin = weir_now();
    int owed = 0;

    for (long done = 0; done < pairs; done += width) {
        for (int i = 0; i < width; i++)
            append_enter(c, number + i);
        for (int i = 0; i < owed + width; i++)
            collect(c);
        for (int i = 0; i < width; i++)
            append_leave(c, number + i);
        for (int sent = 0; !sent;)
            redisBufferWrite(c, &sent);
        owed = width;
        number += width;
    }
    for (int i = 0; i < owed; i++)
        collect(c);
    return (double)pairs / seconds(begin);
}

static void load_script(redisContext *c)
{
    redisReply *reply = must(redisCommand(c, "SCRIPT LOAD %s", wr_lua_permits));

    snprintf(sha, sizeof(sha), "%s", reply->str);
    freeReplyObject(reply);
}

/* ---- guards ----------------------------------------------------------------------------------------- */

static weir_guard *guard;
static double latency[PAIRS + AT_A_TIME];
static _Atomic long left, measured;

static void one_pair(double *took)
{
    weir_permit p = WEIR_PERMIT;
    weir_time begin = weir_now();
    int rc = weir_guard_enter(&p, guard, WEIR_NOW_OR_NEVER);

    if (rc)
        bench_die("w6: a guard that should not bind refused: %d", rc);
    *took = (double)(weir_now() - begin) / 1e3;
    weir_guard_leave(&p, 0);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static int pairs_body(void **value, void *arg)
{
    (void)value, (void)arg;
    while (atomic_fetch_sub(&left, 1) > 0)
        one_pair(&latency[atomic_fetch_add(&measured, 1)]);
    return 0;
}

static double by_one(void)
{
    weir_time begin = weir_now();

    for (long i = 0; i < PAIRS; i++)
        one_pair(&latency[i]);
    return PAIRS / seconds(begin);
}

static double by_fifty(weir_executor *ex)
{
    weir_task *task[AT_A_TIME];
    weir_time begin = weir_now();

    atomic_store(&left, PAIRS);
    atomic_store(&measured, 0);
    for (int i = 0; i < AT_A_TIME; i++)
        bench_must(weir_submit_key(&task[i], ex, "fifty", pairs_body, NULL, NULL), "weir_submit");
    weir_task_wait_all(task, AT_A_TIME, WEIR_FOREVER);
    for (int i = 0; i < AT_A_TIME; i++)
        weir_task_unref(task[i]);
    return PAIRS / seconds(begin);
}

static int empty(void **value, void *arg)
{
    (void)value, (void)arg;
    return 0;
}

static int some_work(void **value, void *arg)
{
    (void)value, (void)arg;
    for (weir_time end = weir_now() + WORK_NS; weir_now() < end;)
        ;
    return 0;
}

static double stream(weir_executor *ex, const char *key, weir_fn *body, long tasks)
{
    weir_group *group;
    weir_time begin;

    bench_must(weir_group_get(&group, ex, key), "weir_group_get");
    begin = weir_now();
    for (long i = 0; i < tasks; i++)
        bench_must(weir_submit(NULL, group, body, NULL, NULL), "weir_submit");
    bench_must(weir_executor_drain(ex, WEIR_FOREVER), "weir_executor_drain");
    return (double)tasks / seconds(begin);
}

static void keep_best(double *best, double value)
{
    if (value > *best)
        *best = value;
}

static void keep_least(double *least, int percent)
{
    qsort(latency, PAIRS, sizeof(latency[0]), compare);
    if (*least == 0 || latency[PAIRS / 100 * percent] < *least)
        *least = latency[PAIRS / 100 * percent];
}

void bench_w6(struct bench_out *out)
{
    double bare_1 = 0, bare_50 = 0, own_1 = 0, own_50 = 0, leased = 0, unlimited = 0, limited = 0,
           p50 = 0, p99 = 0;
    weir_message message;
    weir_executor *ex;
    weir_group *group;
    weir_store *store;
    weir_guard *wide;
    weir_time until;
    redisContext *c;

    start_server();
    ex = bench_executor(WEIR_POLICY(.group_limit = AT_A_TIME));
    if (weir_store_redis(&store, WEIR_REDIS(.url = url), NULL, &message) ||
        weir_guard_new(&guard, store, "w6", WEIR_CONCURRENCY(.limit = LIMIT), &message) ||
        weir_guard_new(&wide, store, "w6 leased", WEIR_CONCURRENCY(.limit = LIMIT), &message))
        bench_die("w6: %s", message.text);
    c = redisConnectUnix(path);
    load_script(c);
    bench_must(weir_group_get(&group, ex, "leased"), "weir_group_get");
    bench_must(weir_group_guard_add(NULL, group, wide, 0), "weir_group_guard_add");
    bare_loop(c, WARM_UP, 1);
    one_pair(&latency[0]);
    stream(ex, "plain", empty, WORKS);
    stream(ex, "leased", empty, WORKS);
    /* In turns, and the best slice of each: what disturbs one disturbs the other. */
    until = weir_in_s(BUDGET_S);
    for (int i = 0; i < SLICES && (i < SLICES_MIN || weir_now() < until); i++) {
        keep_best(&bare_1, bare_loop(c, PAIRS, 1));
        keep_best(&own_1, by_one());
        keep_least(&p50, 50);
        keep_best(&bare_50, bare_loop(c, PAIRS, AT_A_TIME));
        keep_best(&own_50, by_fifty(ex));
        keep_least(&p99, 99);
        keep_best(&leased, stream(ex, "leased", empty, TASKS));
        keep_best(&unlimited, stream(ex, "plain", some_work, WORKS));
        keep_best(&limited, stream(ex, "leased", some_work, WORKS));
    }
    bench_put(out, BENCH_WEIR, "acquires_per_s_1", own_1);
    bench_put(out, BENCH_WEIR, "acquires_per_s_50", own_50);
    bench_put(out, BENCH_WEIR, "p50_us_1", p50);
    bench_put(out, BENCH_WEIR, "p99_us_50", p99);
    bench_put(out, BENCH_WEIR, "leased_per_s", leased);
    bench_put(out, BENCH_REFERENCE, "evalsha_per_s_1", bare_1);
    bench_put(out, BENCH_REFERENCE, "evalsha_per_s_50", bare_50);
    /* Tasks of 10 us: behind a limit that never binds, and without one. */
    bench_put(out, BENCH_WEIR, "leased_work_per_s", limited);
    bench_put(out, BENCH_REFERENCE, "plain_work_per_s", unlimited);
    redisFree(c);
    weir_executor_free(ex);
    weir_guard_unref(guard);
    weir_guard_unref(wide);
    weir_store_free(store);
    stop_server();
}
#endif
