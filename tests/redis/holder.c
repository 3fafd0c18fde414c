/* A process of a fleet, for tests to kill, stop and cut off: holder <url> <guard> <limit> <lease ms> <log> <mode> [seed]
 *
 * Modes: hold   enters, waiting if need be, and stays inside
 *        work   enters, works a little, leaves, again and again, until its standard input ends
 *        group  the same by tasks of a group that the guard stands before
 *
 * What it does it writes into its log, one line per event, for tests/redis/history.py to judge:
 *     <what> <guard> <token> <time> <until> <thread>     times in ns of CLOCK_MONOTONIC, which all processes share
 *     P its pid   A asks   E entered   W is about to change something   L leaves   X was told that its lease is lost   T gave up waiting
 *     Z was not run by its machine, from <time> to <until>
 *
 * Its wall clock jumps by hours, to and fro, with each look at it: nothing that a fleet relies on may depend on that.
 * SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <weir.h>
#include <weir/redis.h>

static int log_fd;
static const char *name;
static weir_guard *guard;
static _Atomic bool over, gone;
static _Atomic long count;
static _Thread_local int thread_number;

/* In place of the C library's, for all that is linked into this program. */
int clock_gettime(clockid_t clock, struct timespec *t)
{
    static _Atomic unsigned looks;
    int rc = (int)syscall(SYS_clock_gettime, clock, t);

    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
        t->tv_sec += 3600 * ((int)(looks++ * 5 % 7) - 3);
    return rc;
}

time_t time(time_t *seconds)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    if (seconds)
        *seconds = t.tv_sec;
    return t.tv_sec;
}

static bool wall_clock_jumps(void)
{
    time_t before = time(NULL);

    return labs(time(NULL) - before) >= 3600;
}

static int64_t monotonic(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* One write, so that lines of threads do not mix and a killed process leaves whole ones. */
static void note(char what, uint64_t token, int64_t at, int64_t until)
{
    char line[256];
    int size = snprintf(line, sizeof(line), "%c %s %" PRIu64 " %" PRId64 " %" PRId64 " %d\n", what,
                        name, token, at, until, thread_number);

    if (write(log_fd, line, (size_t)size) != size)
        _exit(3);
}

/* The offset from weir's clock, which may begin elsewhere. */
static int64_t of_monotonic(weir_time when)
{
    return when == WEIR_FOREVER ? INT64_MAX : when ? monotonic() + (when - weir_now()) : 0;
}

static void lost(const weir_lost *loss, void *arg)
{
    (void)arg;
    note('X', loss->token, monotonic(), of_monotonic(loss->until));
}

static uint64_t chance(uint64_t *seed, uint64_t below)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (*seed >> 33) % below;
}

static void work_once(uint64_t *seed)
{
    weir_permit p = WEIR_PERMIT;
    int64_t until;
    int rc;

    note('A', 0, monotonic(), 0);
    rc = weir_guard_enter(&p, guard, weir_in_s(60));
    if (rc) {
        note('T', (uint64_t)-rc, monotonic(), 0);
        return;
    }
    until = of_monotonic(weir_permit_until(&p));
    note('E', p.token, monotonic(), until);
    for (uint64_t i = chance(seed, 4); until && i > 0; i--) {
        int64_t now = monotonic();

        until = of_monotonic(weir_permit_until(&p));
        if (!until || now >= until)
            break;
        note('W', p.token, now, until);
        usleep((useconds_t)chance(seed, 8000));
    }
    until = of_monotonic(weir_permit_until(&p));
    note('L', p.token, monotonic(), until);
    weir_guard_leave(&p, 0);
    atomic_fetch_add(&count, 1);
}

/* Looks every 10 ms whether the machine runs this process in time. */
static void *feel_pulse(void *arg)
{
    enum { PULSE_NS = 10000000 };

    while (!atomic_load(&gone)) {
        int64_t due = monotonic() + PULSE_NS, now;

        usleep(PULSE_NS / 1000);
        now = monotonic();
        if (now - due > PULSE_NS)
            note('Z', 0, due, now);
    }
    return arg;
}

static void *work(void *arg)
{
    uint64_t seed = (uint64_t)(uintptr_t)arg;

    thread_number = (int)(seed % 2);
    while (!atomic_load(&over)) {
        work_once(&seed);
        usleep((useconds_t)chance(&seed, 5000));
    }
    return NULL;
}

static bool input_is_over(int timeout_ms)
{
    struct pollfd in = { .fd = 0, .events = POLLIN };
    char byte;

    if (poll(&in, 1, timeout_ms) != 1)
        return false;
    if (read(0, &byte, 1) <= 0)
        return true;
    atomic_store(&count, 0);
    return false;
}

/* ---- a group -------------------------------------------------------------------------------------- */

static weir_group *group;
static int64_t task_us;

static int body(void **value, void *arg)
{
    (void)value, (void)arg;
    weir_sleep(weir_now() + task_us * 1000);
    atomic_fetch_add(&count, 1);
    if (!atomic_load(&over))
        weir_submit(NULL, group, body, NULL, NULL);
    return 0;
}

static void run_group(long tasks)
{
    weir_executor *ex;

    if (weir_executor_new(&ex, WEIR_POLICY(.workers = 1, .group_limit = 100000), NULL) ||
        weir_group_get(&group, ex, "fleet") || weir_group_guard_add(NULL, group, guard, 0))
        exit(4);
    for (long i = 0; i < tasks; i++)
        weir_submit(NULL, group, body, NULL, NULL);
    while (atomic_load(&count) == 0)
        usleep(1000);
    printf("ready\n"); /* counts anew from the next byte on, and says how far it came at the end */
    fflush(stdout);
    while (!input_is_over(1000))
        ;
    printf("%ld\n", atomic_load(&count));
    fflush(stdout);
    atomic_store(&over, true);
    weir_executor_free(ex);
}

int main(int argc, char **argv)
{
    weir_message message;
    weir_store *store;
    pthread_t thread[2], pulse;
    weir_permit p = WEIR_PERMIT;
    int64_t limit, lease_ms;
    uint64_t seed;
    int rc;

    prctl(PR_SET_PDEATHSIG, SIGKILL); /* also if it is stopped then */
    if (argc < 7 || !wall_clock_jumps())
        return 2;
    name = argv[2];
    limit = atoll(argv[3]);
    lease_ms = atoll(argv[4]);
    seed = argc > 7 ? strtoull(argv[7], NULL, 10) : 1;
    log_fd = open(argv[5], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    note('P', (uint64_t)getpid(), monotonic(), 0);
    rc = weir_store_redis(
        &store, WEIR_REDIS(.url = argv[1], .backoff_ms = 5, .backoff_max_ms = 50, .reply_ms = 500),
        NULL, &message);
    for (int i = 0; !rc && i < 1000; i++) { /* the server may be away just now */
        rc = weir_guard_new(
            &guard, store, name,
            WEIR_CONCURRENCY(.limit = limit, .lease_ns = lease_ms * 1000000, .on_lost = lost),
            &message);
        if (!rc || rc == WEIR_EEXIST || rc == WEIR_EINVAL || rc == WEIR_EFOREIGN)
            break;
        rc = 0;
        usleep(10000);
    }
    if (rc || log_fd < 0) {
        fprintf(stderr, "holder: %s\n", message.text);
        return 1;
    }
    if (strcmp(argv[6], "hold") == 0) {
        rc = weir_guard_enter(&p, guard, WEIR_FOREVER);
        note('E', p.token, monotonic(), of_monotonic(weir_permit_until(&p)));
        while (!input_is_over(1000))
            ;
        return 0;
    }
    if (strcmp(argv[6], "group") == 0) {
        task_us = (int64_t)seed;
        run_group(argc > 8 ? atol(argv[8]) : 64);
    } else {
        pthread_create(&pulse, NULL, feel_pulse, NULL);
        for (int i = 0; i < 2; i++)
            pthread_create(&thread[i], NULL, work, (void *)(uintptr_t)(seed * 2 + (uint64_t)i));
        while (!input_is_over(1000))
            ;
        atomic_store(&over, true);
        for (int i = 0; i < 2; i++)
            pthread_join(thread[i], NULL);
        atomic_store(&gone, true);
        pthread_join(pulse, NULL);
    }
    weir_guard_unref(guard);
    weir_store_free(store);
    return 0;
}
