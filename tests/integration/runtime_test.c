/* Runtimes and bodies, as users meet them.
 * SPDX-License-Identifier: MIT */
#include "support/check.h"
#include "support/child.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- options --------------------------------------------------------------------------------- */

static void test_each_option_out_of_range_is_refused(void)
{
    const weir_runtime_options *bad[] = {
        WEIR_RUNTIME(.workers = 4097),
        WEIR_RUNTIME(.workers = UINT32_MAX),
        WEIR_RUNTIME(.threads_max = 65537),
        WEIR_RUNTIME(.threads_max = UINT32_MAX),
        WEIR_RUNTIME(.thread_idle_ms = 86400001),
        WEIR_RUNTIME(.stack_size = 1),
        WEIR_RUNTIME(.stack_size = (16 << 10) - 1),
        WEIR_RUNTIME(.stack_size = ((size_t)1 << 30) + 1),
        WEIR_RUNTIME(.stack_size = SIZE_MAX),
        WEIR_RUNTIME(.stall_after_ms = 86400001),
        WEIR_RUNTIME(.replacements_max = 4097),
        WEIR_RUNTIME(.replacements_max = UINT32_MAX),
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        weir_runtime *rt = (weir_runtime *)&bad;
        CHECK_EQUAL(weir_runtime_new(&rt, bad[i]), WEIR_EINVAL);
        CHECK(rt == NULL);
    }
    CHECK_EQUAL(weir_runtime_new(NULL, NULL), WEIR_EINVAL);
}

static void test_the_smallest_allowed_options_work(void)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1, .threads_max = 1, .thread_idle_ms = 1,
                                                .stack_size = 16 << 10, .stall_after_ms = 1,
                                                .replacements_max = 1));

    weir_runtime_free(rt);
}

static void test_options_without_a_size_are_refused(void)
{
    weir_runtime_options o = { .workers = 1 };
    weir_spawn_options s = { .tag = 1 };
    weir_runtime *rt = NULL;

    for (o.size = 0; o.size < sizeof(size_t); o.size++)
        CHECK_EQUAL(weir_runtime_new(&rt, &o), WEIR_EINVAL);
    CHECK(rt == NULL);
    rt = new_runtime(WEIR_RUNTIME(.workers = 1));
    CHECK_EQUAL(weir_spawn(rt, free, NULL, &s), WEIR_EINVAL);
    weir_runtime_free(rt);
}

static void test_options_of_an_older_program_are_understood(void)
{
    weir_runtime_options o = { .size = offsetof(weir_runtime_options, threads_max), .workers = 2 };
    weir_runtime *rt;

    o.stack_size = 1; /* would be refused, but such a program has no such field */
    rt = new_runtime(&o);
    CHECK_EQUAL(stats_of(rt).workers, 2);
    weir_runtime_free(rt);
}

static void test_a_field_of_a_newer_program_is_refused_only_if_set(void)
{
    struct {
        weir_runtime_options known;
        uint64_t unknown;
    } newer = { .known = { .size = sizeof(newer), .workers = 1 } };
    struct {
        weir_spawn_options known;
        uint64_t unknown;
    } spawn = { .known = { .size = sizeof(spawn) } };
    weir_runtime *rt = NULL;

    newer.unknown = 1;
    CHECK_EQUAL(weir_runtime_new(&rt, &newer.known), WEIR_EVERSION);
    CHECK(rt == NULL);
    newer.unknown = 0;
    rt = new_runtime(&newer.known);
    CHECK_EQUAL(weir_spawn(rt, free, NULL, &spawn.known), 0);
    spawn.unknown = (uint64_t)1 << 63;
    CHECK_EQUAL(weir_spawn(rt, free, NULL, &spawn.known), WEIR_EVERSION);
    weir_runtime_free(rt);
}

/* As many as the machine offers, at most; and as the affinity mask says, if no quota cuts it. */
static void test_the_cpus_are_those_this_process_may_use(void)
{
    cpu_set_t all, one;
    uint32_t cpus = weir_cpus();

    CHECK(cpus >= 1 && cpus <= (uint32_t)sysconf(_SC_NPROCESSORS_CONF));
    CHECK_EQUAL(sched_getaffinity(0, sizeof(all), &all), 0);
    CHECK(cpus <= (uint32_t)CPU_COUNT(&all));
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    CHECK_EQUAL(sched_setaffinity(0, sizeof(one), &one), 0);
    CHECK_EQUAL(weir_cpus(), 1);
    CHECK_EQUAL(sched_setaffinity(0, sizeof(all), &all), 0);
    CHECK_EQUAL(weir_cpus(), cpus);
}

static void test_the_default_is_one_worker_per_cpu(void)
{
    weir_runtime *rt = new_runtime(NULL);
    weir_runtime_stats s = stats_of(rt);

    CHECK_EQUAL(s.workers, weir_cpus());
    CHECK_EQUAL(s.workers_live, s.workers);
    weir_runtime_free(rt);
}

static void test_spawn_refuses_a_body_it_cannot_run(void)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1));

    CHECK_EQUAL(weir_spawn(NULL, free, NULL, NULL), WEIR_EINVAL);
    CHECK_EQUAL(weir_spawn(rt, NULL, NULL, NULL), WEIR_EINVAL);
    CHECK_EQUAL(weir_spawn(rt, free, NULL, WEIR_SPAWN(.run_on = (weir_carrier)2)), WEIR_EINVAL);
    CHECK_EQUAL(stats_of(rt).accepted, 0);
    weir_runtime_free(rt);
}

/* ---- bodies keep their thread ------------------------------------------------------------------ */

static _Thread_local int local;

/* Apart, so that no address is kept across a wait. */
static __attribute__((noinline)) int *local_address(void)
{
    return &local;
}

struct keeper {
    weir_runtime *rt;
    int fd[2];
    _Atomic int same;
};

static int no_work(void *arg)
{
    (void)arg;
    return 0;
}

static void keep_thread(void *arg)
{
    struct keeper *keeper = arg;
    pthread_t thread = pthread_self();
    int *address = local_address();
    int mine;

    for (int i = 0; i < 8; i++) {
        switch (i % 4) {
        case 0:
            CHECK_EQUAL(weir_sleep(weir_in_us(300)), 0);
            break;
        case 1:
            CHECK_EQUAL(weir_yield(), 0);
            break;
        case 2:
            CHECK_EQUAL(weir_fd_wait(keeper->fd[0], WEIR_READ, weir_in_us(300)), WEIR_ETIMEDOUT);
            break;
        case 3:
            CHECK_EQUAL(weir_blocking(NULL, no_work, NULL, WEIR_FOREVER), 0);
            break;
        }
        mine = pthread_equal(thread, pthread_self()) && address == local_address();
        CHECK(mine);
        atomic_fetch_add(&keeper->same, mine);
    }
}

static void test_a_body_keeps_its_thread_across_waits(void)
{
    struct keeper keeper = { .rt = new_runtime(WEIR_RUNTIME(.workers = 3)) };

    assert_int_equal(pipe(keeper.fd), 0);
    for (int i = 0; i < 100; i++)
        CHECK_EQUAL(weir_spawn(keeper.rt, keep_thread, &keeper, NULL), 0);
    drain(keeper.rt);
    CHECK_EQUAL(atomic_load(&keeper.same), 800);
    weir_runtime_free(keeper.rt);
    close(keeper.fd[0]);
    close(keeper.fd[1]);
}

struct mutexed {
    pthread_mutex_t mutex;
    int holders; /* under the mutex */
    _Atomic int done;
};

static void hold_mutex_while_asleep(void *arg)
{
    struct mutexed *m = arg;

    /* Others on this thread hold it, too, so it must not be waited for in pthread_mutex_lock. */
    while (pthread_mutex_trylock(&m->mutex))
        CHECK_EQUAL(weir_sleep(weir_in_us(100)), 0);
    CHECK_EQUAL(m->holders++, 0);
    CHECK_EQUAL(weir_sleep(weir_in_us(200)), 0);
    CHECK_EQUAL(--m->holders, 0);
    CHECK_EQUAL(pthread_mutex_unlock(&m->mutex), 0);
    atomic_fetch_add(&m->done, 1);
}

static void test_a_mutex_may_be_held_across_a_wait(void)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 2));
    struct mutexed m = { .holders = 0 };
    pthread_mutexattr_t attr;

    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK); /* only the owner may unlock */
    pthread_mutex_init(&m.mutex, &attr);
    for (int i = 0; i < 20; i++)
        CHECK_EQUAL(weir_spawn(rt, hold_mutex_while_asleep, &m, NULL), 0);
    drain(rt);
    weir_runtime_free(rt);
    CHECK_EQUAL(atomic_load(&m.done), 20);
    pthread_mutex_destroy(&m.mutex);
    pthread_mutexattr_destroy(&attr);
}

struct mask {
    int blocked, open; /* signals */
    _Atomic int looked;
};

static void look_at_mask(void *arg)
{
    struct mask *mask = arg;
    sigset_t now;

    CHECK_EQUAL(pthread_sigmask(SIG_BLOCK, NULL, &now), 0);
    CHECK_EQUAL(sigismember(&now, mask->blocked), 1);
    CHECK_EQUAL(sigismember(&now, mask->open), 0);
    atomic_store(&mask->looked, 1);
}

static void test_threads_have_the_signal_mask_of_their_starters(void)
{
    struct mask worker = { .blocked = SIGUSR1, .open = SIGUSR2 };
    struct mask pool = { .blocked = SIGUSR2, .open = SIGUSR1 };
    sigset_t user1, user2, before, after;
    weir_runtime *rt;

    sigemptyset(&user1);
    sigaddset(&user1, SIGUSR1);
    sigemptyset(&user2);
    sigaddset(&user2, SIGUSR2);
    pthread_sigmask(SIG_SETMASK, &user1, &before);
    rt = new_runtime(WEIR_RUNTIME(.workers = 1));
    pthread_sigmask(SIG_SETMASK, &user2, &after);
    CHECK(sigismember(&after, SIGUSR1) == 1 && sigismember(&after, SIGUSR2) == 0);
    CHECK_EQUAL(weir_spawn(rt, look_at_mask, &worker, NULL), 0);
    CHECK_EQUAL(weir_spawn(rt, look_at_mask, &pool, WEIR_SPAWN(.run_on = WEIR_THREADS)), 0);
    drain(rt);
    CHECK(atomic_load(&worker.looked) && atomic_load(&pool.looked));
    weir_runtime_free(rt);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void await_flag(void *arg)
{
    AWAIT(atomic_load((_Atomic int *)arg));
}

static void test_threads_have_names_that_tell_whose_they_are(void)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 2));
    _Atomic int go_on = 0;

    CHECK_EQUAL(weir_spawn(rt, await_flag, &go_on, WEIR_SPAWN(.run_on = WEIR_THREADS)), 0);
    AWAIT(threads_called("weir-w0"));
    AWAIT(threads_called("weir-w1"));
    AWAIT(threads_called("weir-monitor"));
    AWAIT(threads_called("weir-t0"));
    CHECK(!threads_called("weir-w2"));
    atomic_store(&go_on, 1);
    weir_runtime_free(rt);
    CHECK(!threads_called("weir-w0") && !threads_called("weir-monitor"));
}

/* ---- order ----------------------------------------------------------------------------------- */

struct line {
    weir_runtime *rt;
    int next; /* one worker only */
    _Atomic int done;
};

struct in_line {
    struct line *line;
    int place;
};

static void be_next(void *arg)
{
    struct in_line *self = arg;

    CHECK_EQUAL(self->line->next++, self->place);
    atomic_fetch_add(&self->line->done, 1);
}

static void test_the_first_to_come_is_the_first_to_run(void)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1, .stall_after_ms = 60000));
    static struct in_line bodies[1000];
    struct line line = { .rt = rt };

    for (int i = 0; i < 1000; i++) {
        bodies[i] = (struct in_line){ &line, i };
        CHECK_EQUAL(weir_spawn(rt, be_next, &bodies[i], NULL), 0);
    }
    drain(rt);
    CHECK_EQUAL(atomic_load(&line.done), 1000);
    weir_runtime_free(rt);
}

static void yield_until(void *arg)
{
    while (!atomic_load((_Atomic int *)arg) && weir_yield() == 0)
        ;
}

static void set_flag(void *arg)
{
    atomic_store((_Atomic int *)arg, 1);
}

static void test_bodies_that_yield_do_not_shut_out_newcomers(void)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1, .stall_after_ms = 60000));
    _Atomic int flag = 0;

    for (int i = 0; i < 10; i++)
        CHECK_EQUAL(weir_spawn(rt, yield_until, &flag, NULL), 0);
    CHECK_EQUAL(weir_spawn(rt, set_flag, &flag, NULL), 0);
    CHECK_EQUAL(weir_runtime_drain(rt, patience()), 0);
    atomic_store(&flag, 1);
    weir_runtime_free(rt);
}

static void sleep_then_set(void *arg)
{
    CHECK_EQUAL(weir_sleep(weir_in_ms(2)), 0);
    set_flag(arg);
}

static void test_bodies_that_yield_do_not_shut_out_deadlines(void)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1, .stall_after_ms = 60000));
    _Atomic int flag = 0;

    CHECK_EQUAL(weir_spawn(rt, sleep_then_set, &flag, NULL), 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQUAL(weir_spawn(rt, yield_until, &flag, NULL), 0);
    CHECK_EQUAL(weir_runtime_drain(rt, patience()), 0);
    atomic_store(&flag, 1);
    weir_runtime_free(rt);
}

static void sleep_a_little(void *arg)
{
    weir_time when = weir_in_ms(30);

    CHECK_EQUAL(weir_sleep(when), 0);
    CHECK(weir_now() >= when);
    atomic_fetch_add((_Atomic int *)arg, 1);
}

static void test_very_many_wait_on_few_threads(void)
{
    enum { MANY = SANITIZED ? 1000 : 20000 };
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 2, .stack_size = 16 << 10));
    _Atomic int woke = 0;

    for (int i = 0; i < MANY; i++)
        CHECK_EQUAL(weir_spawn(rt, sleep_a_little, &woke, NULL), 0);
    drain(rt);
    CHECK_EQUAL(atomic_load(&woke), MANY);
    weir_runtime_free(rt);
}

/* ---- draining -------------------------------------------------------------------------------- */

static void sleep_for_ever(void *arg)
{
    CHECK_EQUAL(weir_sleep(WEIR_FOREVER), WEIR_ECANCELED);
    atomic_fetch_add((_Atomic int *)arg, 1);
}

static void sleep_for_seconds(void *arg)
{
    weir_sleep(weir_in_s(2));
    atomic_fetch_add((_Atomic int *)arg, 1);
}

static void test_drain_gives_up_at_its_deadline_and_changes_nothing(void)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1));
    _Atomic int ended = 0;
    weir_time deadline = weir_in_ms(20);

    CHECK_EQUAL(weir_spawn(rt, sleep_for_ever, &ended, NULL), 0);
    CHECK_EQUAL(weir_runtime_drain(rt, deadline), WEIR_ETIMEDOUT);
    CHECK(weir_now() >= deadline);
    CHECK_EQUAL(weir_runtime_drain(rt, WEIR_NOW_OR_NEVER), WEIR_ETIMEDOUT);
    CHECK_EQUAL(atomic_load(&ended), 0);
    CHECK_EQUAL(weir_spawn(rt, free, NULL, NULL), 0); /* still open */
    weir_runtime_free(rt);
    CHECK_EQUAL(atomic_load(&ended), 1);
}

static void test_drain_takes_any_moment_before_now_for_a_deadline_that_has_passed(void)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1));
    _Atomic int ended = 0;

    CHECK_EQUAL(weir_runtime_drain(rt, -1), 0); /* nothing to wait for */
    CHECK_EQUAL(weir_spawn(rt, sleep_for_seconds, &ended, NULL), 0);
    CHECK_EQUAL(weir_runtime_drain(rt, 1), WEIR_ETIMEDOUT);
    CHECK_EQUAL(weir_runtime_drain(rt, -1), WEIR_ETIMEDOUT);
    CHECK_EQUAL(weir_runtime_drain(rt, INT64_MIN), WEIR_ETIMEDOUT);
    CHECK_EQUAL(atomic_load(&ended), 0); /* and did so at once */
    weir_runtime_free(rt);
}

static void test_drain_of_nothing_succeeds(void)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1));

    CHECK_EQUAL(weir_runtime_drain(rt, WEIR_NOW_OR_NEVER), 0);
    CHECK_EQUAL(weir_runtime_drain(NULL, WEIR_FOREVER), WEIR_EINVAL);
    weir_runtime_free(rt);
}

struct two_runtimes {
    weir_runtime *own, *other;
    _Atomic int flag;
};

static void drain_own(void *arg)
{
    struct two_runtimes *two = arg;

    CHECK_EQUAL(weir_runtime_drain(two->own, patience()), WEIR_EDEADLK);
    atomic_fetch_add(&two->flag, 1);
}

static void test_a_body_cannot_drain_its_own_runtime(void)
{
    struct two_runtimes two = { .own = new_runtime(WEIR_RUNTIME(.workers = 1)) };

    CHECK_EQUAL(weir_spawn(two.own, drain_own, &two, NULL), 0);
    CHECK_EQUAL(weir_spawn(two.own, drain_own, &two, WEIR_SPAWN(.run_on = WEIR_THREADS)), 0);
    drain(two.own);
    CHECK_EQUAL(atomic_load(&two.flag), 2);
    weir_runtime_free(two.own);
}

static void drain_other(void *arg)
{
    struct two_runtimes *two = arg;

    CHECK_EQUAL(weir_runtime_drain(two->other, patience()), 0);
    CHECK_EQUAL(atomic_load(&two->flag), 1);
}

static void test_a_body_can_drain_another_runtime(void)
{
    struct two_runtimes two = { .own = new_runtime(WEIR_RUNTIME(.workers = 1)),
                                .other = new_runtime(WEIR_RUNTIME(.workers = 1)) };

    CHECK_EQUAL(weir_spawn(two.other, sleep_then_set, &two.flag, NULL), 0);
    CHECK_EQUAL(weir_spawn(two.own, drain_other, &two, NULL), 0);
    CHECK_EQUAL(weir_spawn(two.own, drain_other, &two, WEIR_SPAWN(.run_on = WEIR_THREADS)), 0);
    drain(two.own);
    weir_runtime_free(two.own);
    weir_runtime_free(two.other);
}

static void drain_in_vain(void *arg)
{
    struct two_runtimes *two = arg;

    CHECK_EQUAL(weir_runtime_drain(two->other, WEIR_FOREVER), WEIR_ECANCELED);
}

static void test_a_cancelled_body_stops_draining_another_runtime(void)
{
    struct two_runtimes two = { .own = new_runtime(WEIR_RUNTIME(.workers = 1)),
                                .other = new_runtime(WEIR_RUNTIME(.workers = 1)) };

    CHECK_EQUAL(weir_spawn(two.other, sleep_for_ever, &two.flag, NULL), 0);
    CHECK_EQUAL(weir_spawn(two.own, drain_in_vain, &two, NULL), 0);
    CHECK_EQUAL(weir_spawn(two.own, drain_in_vain, &two, WEIR_SPAWN(.run_on = WEIR_THREADS)), 0);
    weir_runtime_free(two.own);
    CHECK_EQUAL(atomic_load(&two.flag), 0);
    weir_runtime_free(two.other);
}

static void spawn_again(void *arg)
{
    struct line *line = arg;

    weir_sleep(weir_in_us(100));
    if (atomic_fetch_add(&line->done, 1) < 50)
        CHECK_EQUAL(weir_spawn(line->rt, spawn_again, line, NULL), 0);
}

static void test_drain_waits_for_bodies_accepted_meanwhile(void)
{
    struct line line = { .rt = new_runtime(WEIR_RUNTIME(.workers = 2)) };

    CHECK_EQUAL(weir_spawn(line.rt, spawn_again, &line, NULL), 0);
    drain(line.rt);
    CHECK_EQUAL(atomic_load(&line.done), 51);
    weir_runtime_free(line.rt);
}

/* ---- freeing --------------------------------------------------------------------------------- */

struct freeing {
    weir_runtime *rt;
    _Atomic int begun, done, other;
    int fd[2];
    pid_t pid;
    weir_carrier on;
};

static void *free_runtime(void *arg)
{
    struct freeing *f = arg;

    weir_runtime_free(f->rt);
    atomic_store(&f->done, 1);
    return NULL;
}

/* Frees the runtime once `count` bodies have begun; if that does not come to an end, the check fails
 * and rescue() lets the bodies go. */
static void free_in_time(struct freeing *f, int count, void (*rescue)(struct freeing *f))
{
    pthread_t thread;

    AWAIT(atomic_load(&f->begun) == count);
    assert_int_equal(pthread_create(&thread, NULL, free_runtime, f), 0);
    AWAIT(atomic_load(&f->done));
    if (!atomic_load(&f->done) && rescue)
        rescue(f);
    pthread_join(thread, NULL);
}

static void begin_and_sleep(void *arg)
{
    struct freeing *f = arg;

    atomic_fetch_add(&f->begun, 1);
    CHECK_EQUAL(weir_sleep(WEIR_FOREVER), WEIR_ECANCELED);
    CHECK(weir_cancelled());
    CHECK_EQUAL(weir_sleep(weir_in_s(100)), WEIR_ECANCELED); /* at once, from now on */
    CHECK_EQUAL(weir_yield(), WEIR_ECANCELED);
    CHECK_EQUAL(weir_blocking(NULL, no_work, NULL, WEIR_FOREVER), WEIR_ECANCELED);
    CHECK_EQUAL(weir_spawn(f->rt, free, NULL, NULL), WEIR_ECLOSED);
    CHECK_EQUAL(weir_spawn(f->rt, free, NULL, WEIR_SPAWN(.run_on = WEIR_THREADS)), WEIR_ECLOSED);
    atomic_fetch_add(&f->other, 1);
}

static void test_free_cancels_sleepers(void)
{
    struct freeing f = { .rt = new_runtime(WEIR_RUNTIME(.workers = 2)) };

    for (int i = 0; i < 50; i++)
        CHECK_EQUAL(weir_spawn(f.rt, begin_and_sleep, &f, NULL), 0);
    free_in_time(&f, 50, NULL);
    CHECK_EQUAL(atomic_load(&f.other), 50);
}

static void test_free_cancels_sleepers_on_threads(void)
{
    struct freeing f = { .rt = new_runtime(WEIR_RUNTIME(.workers = 1)) };

    for (int i = 0; i < 8; i++)
        CHECK_EQUAL(weir_spawn(f.rt, begin_and_sleep, &f, WEIR_SPAWN(.run_on = WEIR_THREADS)), 0);
    free_in_time(&f, 8, NULL);
    CHECK_EQUAL(atomic_load(&f.other), 8);
}

static void begin_and_read(void *arg)
{
    struct freeing *f = arg;
    char byte;

    atomic_fetch_add(&f->begun, 1);
    CHECK_EQUAL(weir_fd_wait(f->fd[0], WEIR_READ, WEIR_FOREVER), WEIR_ECANCELED);
    CHECK_EQUAL(weir_fd_wait(f->fd[0], WEIR_READ, patience()), WEIR_ECANCELED);
    CHECK_EQUAL(weir_read(f->fd[0], &byte, 1, patience()), WEIR_ECANCELED);
    CHECK_EQUAL(weir_write(f->fd[1], &byte, 1, patience()), WEIR_ECANCELED);
    CHECK_EQUAL(weir_accept(f->fd[0], NULL, NULL, patience()), WEIR_ECANCELED);
    CHECK_EQUAL(weir_connect(f->fd[0], &(struct sockaddr){ .sa_family = AF_UNIX }, 2, patience()),
                WEIR_ECANCELED);
    atomic_fetch_add(&f->other, 1);
}

static void feed_reader(struct freeing *f)
{
    CHECK_EQUAL(write(f->fd[1], "", 1), 1);
}

static void free_with_readers(weir_carrier on)
{
    struct freeing f = { .rt = new_runtime(WEIR_RUNTIME(.workers = 1)) };

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, f.fd), 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQUAL(weir_spawn(f.rt, begin_and_read, &f, WEIR_SPAWN(.run_on = on)), 0);
    free_in_time(&f, 3, feed_reader);
    CHECK_EQUAL(atomic_load(&f.other), 3);
    close(f.fd[0]);
    close(f.fd[1]);
}

static void test_free_cancels_waits_for_descriptors(void)
{
    free_with_readers(WEIR_WORKERS);
}

static void test_free_cancels_waits_for_descriptors_on_threads(void)
{
    free_with_readers(WEIR_THREADS);
}

static void begin_and_await_child(void *arg)
{
    struct freeing *f = arg;

    atomic_fetch_add(&f->begun, 1);
    CHECK_EQUAL(weir_child_wait(NULL, f->pid, WEIR_FOREVER), WEIR_ECANCELED);
    atomic_fetch_add(&f->other, 1);
}

static void kill_child(struct freeing *f)
{
    kill(f->pid, SIGKILL);
}

static void free_with_parents(weir_carrier on)
{
    struct freeing f = { .pid = fork() };

    if (f.pid == 0) {
        pause();
        _exit(0);
    }
    f.rt = new_runtime(WEIR_RUNTIME(.workers = 1));
    CHECK_EQUAL(weir_spawn(f.rt, begin_and_await_child, &f, WEIR_SPAWN(.run_on = on)), 0);
    free_in_time(&f, 1, kill_child);
    CHECK_EQUAL(atomic_load(&f.other), 1);
    kill(f.pid, SIGKILL);
    waitpid(f.pid, NULL, 0);
}

static void test_free_cancels_waits_for_children(void)
{
    free_with_parents(WEIR_WORKERS);
}

static void test_free_cancels_waits_for_children_on_threads(void)
{
    free_with_parents(WEIR_THREADS);
}

static void spin_until_cancelled(void *arg)
{
    struct freeing *f = arg;

    atomic_fetch_add(&f->begun, 1);
    while (!weir_cancelled())
        ;
}

static void note_cancelled(void *arg)
{
    struct freeing *f = arg;

    CHECK(weir_cancelled());
    atomic_fetch_add(&f->other, 1);
}

static void test_bodies_that_had_not_started_still_run(void)
{
    struct freeing f = { .rt = new_runtime(WEIR_RUNTIME(.workers = 1, .threads_max = 1,
                                                        .stall_after_ms = 60000)) };

    CHECK_EQUAL(weir_spawn(f.rt, spin_until_cancelled, &f, NULL), 0);
    CHECK_EQUAL(weir_spawn(f.rt, spin_until_cancelled, &f, WEIR_SPAWN(.run_on = WEIR_THREADS)), 0);
    AWAIT(atomic_load(&f.begun) == 2);
    for (int i = 0; i < 100; i++)
        CHECK_EQUAL(weir_spawn(f.rt, note_cancelled, &f,
                               WEIR_SPAWN(.run_on = i % 2 ? WEIR_THREADS : WEIR_WORKERS)),
                    0);
    free_in_time(&f, 2, NULL);
    CHECK_EQUAL(atomic_load(&f.other), 100);
}

static void test_free_leaves_no_thread_and_no_descriptor(void)
{
    int threads = thread_count(), descriptors = descriptor_count();
    struct freeing f = { .rt = new_runtime(WEIR_RUNTIME(.workers = 3)) };

    for (int i = 0; i < 10; i++)
        CHECK_EQUAL(
            weir_spawn(f.rt, begin_and_sleep, &f, WEIR_SPAWN(.run_on = (weir_carrier)(i % 2))), 0);
    weir_runtime_free(f.rt);
    weir_runtime_free(NULL);
    CHECK_EQUAL(thread_count(), threads);
    CHECK_EQUAL(descriptor_count(), descriptors);
}

static void free_other(void *arg)
{
    struct two_runtimes *two = arg;

    weir_runtime_free(two->other);
    CHECK_EQUAL(atomic_load(&two->flag), 1);
}

static void test_a_body_can_make_and_free_another_runtime(void)
{
    struct two_runtimes two = { .own = new_runtime(WEIR_RUNTIME(.workers = 1)),
                                .other = new_runtime(WEIR_RUNTIME(.workers = 1)) };

    CHECK_EQUAL(weir_spawn(two.other, sleep_for_ever, &two.flag, NULL), 0);
    CHECK_EQUAL(weir_spawn(two.own, free_other, &two, NULL), 0);
    drain(two.own);
    weir_runtime_free(two.own);
}

static void test_outside_a_body_nothing_is_cancelled(void)
{
    weir_time when = weir_in_ms(1);

    CHECK(!weir_cancelled());
    CHECK_EQUAL(weir_yield(), 0);
    CHECK_EQUAL(weir_sleep(when), 0);
    CHECK(weir_now() >= when);
    CHECK_EQUAL(weir_sleep(WEIR_NOW_OR_NEVER), 0);
    CHECK_EQUAL(weir_sleep(-1), 0);
}

/* ---- figures --------------------------------------------------------------------------------- */

static void test_figures_tell_what_happened(void)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 3));
    _Atomic int flag = 0;
    weir_runtime_stats s;

    for (int i = 0; i < 5; i++)
        CHECK_EQUAL(weir_spawn(rt, await_flag, &flag, NULL), 0);
    CHECK_EQUAL(weir_spawn(rt, await_flag, &flag, WEIR_SPAWN(.run_on = WEIR_THREADS)), 0);
    s = stats_of(rt);
    CHECK_EQUAL(s.workers, 3);
    CHECK_EQUAL(s.workers_live, 3);
    CHECK_EQUAL(s.threads, 1);
    CHECK_EQUAL(s.accepted, 6);
    CHECK_EQUAL(s.ended, 0);
    CHECK(s.stacks >= 3 && s.stacks_free <= s.stacks);
    atomic_store(&flag, 1);
    drain(rt);
    s = stats_of(rt);
    CHECK_EQUAL(s.accepted, 6);
    CHECK_EQUAL(s.ended, 6);
    CHECK_EQUAL(s.stack_waits, 0);
    AWAIT(stats_of(rt).workers_idle == 3);
    weir_runtime_free(rt);
}

static void test_figures_fit_the_struct_of_the_caller(void)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 2));
    struct {
        weir_runtime_stats known;
        uint64_t unknown;
    } newer = { .known = { .size = sizeof(newer) }, .unknown = 1 };
    weir_runtime_stats older = { .size = offsetof(weir_runtime_stats, workers_live),
                                 .workers_live = 77 };
    weir_runtime_stats none = { .size = 0 };

    CHECK_EQUAL(weir_runtime_stats_get(&newer.known, rt), 0);
    CHECK_EQUAL(newer.known.workers, 2);
    CHECK_EQUAL(newer.known.size, sizeof(newer));
    CHECK_EQUAL(newer.unknown, 0); /* what we do not know reads as nothing */
    CHECK_EQUAL(weir_runtime_stats_get(&older, rt), 0);
    CHECK_EQUAL(older.workers, 2);
    CHECK_EQUAL(older.workers_live, 77);
    CHECK_EQUAL(weir_runtime_stats_get(&none, rt), WEIR_EINVAL);
    CHECK_EQUAL(weir_runtime_stats_get(NULL, rt), WEIR_EINVAL);
    CHECK_EQUAL(weir_runtime_stats_get(&older, NULL), WEIR_EINVAL);
    weir_runtime_free(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_each_option_out_of_range_is_refused),
        TEST(test_the_smallest_allowed_options_work),
        TEST(test_options_without_a_size_are_refused),
        TEST(test_options_of_an_older_program_are_understood),
        TEST(test_a_field_of_a_newer_program_is_refused_only_if_set),
        TEST(test_the_cpus_are_those_this_process_may_use),
        TEST(test_the_default_is_one_worker_per_cpu),
        TEST(test_spawn_refuses_a_body_it_cannot_run),
        TEST(test_a_body_keeps_its_thread_across_waits),
        TEST(test_a_mutex_may_be_held_across_a_wait),
        TEST(test_threads_have_the_signal_mask_of_their_starters),
        TEST(test_threads_have_names_that_tell_whose_they_are),
        TEST(test_the_first_to_come_is_the_first_to_run),
        TEST(test_bodies_that_yield_do_not_shut_out_newcomers),
        TEST(test_bodies_that_yield_do_not_shut_out_deadlines),
        TEST(test_very_many_wait_on_few_threads),
        TEST(test_drain_gives_up_at_its_deadline_and_changes_nothing),
        TEST(test_drain_takes_any_moment_before_now_for_a_deadline_that_has_passed),
        TEST(test_drain_of_nothing_succeeds),
        TEST(test_a_body_cannot_drain_its_own_runtime),
        TEST(test_a_body_can_drain_another_runtime),
        TEST(test_a_cancelled_body_stops_draining_another_runtime),
        TEST(test_drain_waits_for_bodies_accepted_meanwhile),
        TEST(test_free_cancels_sleepers),
        TEST(test_free_cancels_sleepers_on_threads),
        TEST(test_free_cancels_waits_for_descriptors),
        TEST(test_free_cancels_waits_for_descriptors_on_threads),
        TEST(test_free_cancels_waits_for_children),
        TEST(test_free_cancels_waits_for_children_on_threads),
        TEST(test_bodies_that_had_not_started_still_run),
        TEST(test_free_leaves_no_thread_and_no_descriptor),
        TEST(test_a_body_can_make_and_free_another_runtime),
        TEST(test_outside_a_body_nothing_is_cancelled),
        TEST(test_figures_tell_what_happened),
        TEST(test_figures_fit_the_struct_of_the_caller),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
