/* Spawning under load: every accepted body runs exactly once, also while runtimes come and go.
 * SPDX-License-Identifier: MIT */
#include "support/check.h"
#include "support/seed.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum {
    SPAWNERS = 4,
    BODIES = SANITIZED ? 12000 : 120000, /* all together, children included */
    PER_SPAWNER = BODIES / SPAWNERS,
    RUNTIMES = SANITIZED ? 100 : 250,
    FAST = SANITIZED ? 20000 : 200000,
};

/* ---- exactly once ---------------------------------------------------------------------------- */

struct body {
    weir_runtime *rt;
    struct body *children; /* spawned by this one, `child_count` of them */
    uint32_t child_count;
    uint32_t number;
    _Atomic uint32_t runs;
};

static struct body bodies[BODIES];

static void act(void *arg)
{
    struct body *self = arg;
    struct luck luck = luck_of(self->number);

    atomic_fetch_add(&self->runs, 1);
    for (uint32_t i = 0; i < self->child_count; i++)
        CHECK_EQUAL(weir_spawn(self->rt, act, &self->children[i], NULL), 0);
    switch (luck_below(&luck, 6)) {
    case 0:
        for (uint64_t n = luck_below(&luck, 8); n > 0; n--)
            CHECK_EQUAL(weir_yield(), 0);
        break;
    case 1: {
        weir_time when = weir_in_us((int64_t)luck_below(&luck, 200));
        CHECK_EQUAL(weir_sleep(when), 0);
        CHECK(weir_now() >= when);
        break;
    }
    default:
        break;
    }
}

/* Some bodies of a share are spawned by the thread, and spawn the few that follow them. */
static void *spawn_share(void *arg)
{
    struct body *share = arg;
    struct luck luck = luck_of(1000000 + share->number);

    for (uint32_t i = 0; i < PER_SPAWNER;) {
        struct body *body = &share[i++];
        uint64_t children = luck_below(&luck, 5);
        body->children = &share[i];
        while (children-- > 0 && i < PER_SPAWNER) {
            body->child_count++;
            i++;
        }
        CHECK_EQUAL(weir_spawn(body->rt, act, body, NULL), 0);
    }
    return NULL;
}

static void test_bodies_of_many_spawners_run_exactly_once(void)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 3, .stack_size = 32 << 10));
    pthread_t thread[SPAWNERS];

    for (uint32_t i = 0; i < BODIES; i++) {
        bodies[i].rt = rt;
        bodies[i].number = i;
    }
    for (int i = 0; i < SPAWNERS; i++)
        assert_int_equal(
            pthread_create(&thread[i], NULL, spawn_share, &bodies[(size_t)i * PER_SPAWNER]), 0);
    for (int i = 0; i < SPAWNERS; i++)
        pthread_join(thread[i], NULL);
    drain(rt);
    CHECK_EQUAL(stats_of(rt).accepted, BODIES);
    CHECK_EQUAL(stats_of(rt).ended, BODIES);
    weir_runtime_free(rt);
    for (uint32_t i = 0; i < BODIES; i++)
        CHECK_EQUAL(atomic_load(&bodies[i].runs), 1);
}

/* ---- figures --------------------------------------------------------------------------------- */

static void do_nothing(void *arg)
{
    (void)arg;
}

static void *spawn_many(void *rt_arg)
{
    for (int i = 0; i < FAST / 2; i++)
        CHECK_EQUAL(weir_spawn(rt_arg, do_nothing, NULL, NULL), 0);
    return NULL;
}

static void test_figures_read_meanwhile_make_sense(void)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 2));
    uint64_t accepted = 0, most_ended = 0;
    pthread_t thread[2];

    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, spawn_many, rt), 0);
    while (accepted < FAST / 2 * 2) {
        weir_runtime_stats s = stats_of(rt);
        CHECK(s.accepted >= accepted);
        accepted = s.accepted;
        if (s.ended > most_ended)
            most_ended = s.ended;
        CHECK(s.workers_idle <= s.workers_live);
        CHECK(s.stacks_free <= s.stacks);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    drain(rt);
    CHECK_EQUAL(stats_of(rt).ended, accepted);
    CHECK(most_ended <= accepted); /* never more than there will ever be */
    weir_runtime_free(rt);
}

/* ---- runtimes come and go -------------------------------------------------------------------- */

struct load {
    weir_runtime *rt;
    int pipe[2];
    _Atomic uint64_t accepted, ran;
    _Atomic uint64_t number; /* of the next body, for its luck */
};

static void live(void *arg);

static void spawn_live(struct load *load)
{
    struct luck luck = luck_of(7000000 + atomic_fetch_add(&load->number, 1));
    weir_carrier on = luck_below(&luck, 32) ? WEIR_WORKERS : WEIR_THREADS;
    int rc = weir_spawn(load->rt, live, load, WEIR_SPAWN(.run_on = on, .name = "live"));

    if (rc == 0)
        atomic_fetch_add(&load->accepted, 1);
    else
        CHECK_EQUAL(rc, WEIR_ECLOSED);
}

static int block_shortly(void *arg)
{
    (void)arg;
    usleep(50);
    return 7;
}

static void live(void *arg)
{
    struct load *load = arg;
    struct luck luck = luck_of(8000000 + atomic_fetch_add(&load->number, 1));
    char byte;
    int result = 0, rc = 0;

    atomic_fetch_add(&load->ran, 1);
    switch (luck_below(&luck, 8)) {
    case 0:
        rc = weir_sleep(WEIR_FOREVER);
        CHECK_EQUAL(rc, WEIR_ECANCELED);
        break;
    case 1:
        rc = (int)weir_read(load->pipe[0], &byte, 1, weir_in_ms(2));
        CHECK(rc == WEIR_ECANCELED || rc == WEIR_ETIMEDOUT);
        break;
    case 2:
        rc = weir_blocking(&result, block_shortly, NULL, WEIR_FOREVER);
        CHECK(rc == WEIR_ECANCELED || (rc == 0 && result == 7));
        break;
    case 3:
        while (weir_yield() == 0)
            ;
        CHECK(weir_cancelled());
        break;
    default:
        rc = weir_sleep(weir_in_us((int64_t)luck_below(&luck, 100)));
        CHECK(rc == 0 || rc == WEIR_ECANCELED);
        spawn_live(load);
    }
}

static void test_runtimes_with_live_load_are_freed(void)
{
    struct load load;
    struct luck luck = luck_of(5000000);

    memset(&load, 0, sizeof(load));
    assert_int_equal(pipe2(load.pipe, O_CLOEXEC), 0);
    for (int i = 0; i < RUNTIMES; i++) {
        uint64_t count = luck_below(&luck, 100);
        load.rt = new_runtime(WEIR_RUNTIME(.workers = 1 + (uint32_t)luck_below(&luck, 3),
                                           .threads_max = 4, .stack_size = 32 << 10));
        atomic_store(&load.accepted, 0);
        atomic_store(&load.ran, 0);
        for (uint64_t n = 0; n < count; n++)
            spawn_live(&load);
        if (luck_below(&luck, 2))
            weir_sleep(weir_in_us((int64_t)luck_below(&luck, 1000)));
        weir_runtime_free(load.rt);
        CHECK_EQUAL(atomic_load(&load.ran), atomic_load(&load.accepted));
    }
    close(load.pipe[0]);
    close(load.pipe[1]);
}

static void test_idle_runtimes_come_and_go(void)
{
    for (int i = 0; i < RUNTIMES; i++) {
        weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1 + (uint32_t)i % 3));
        if (i % 2)
            CHECK_EQUAL(weir_spawn(rt, do_nothing, NULL, NULL), 0);
        weir_runtime_free(rt);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_bodies_of_many_spawners_run_exactly_once),
        TEST(test_figures_read_meanwhile_make_sense),
        TEST(test_runtimes_with_live_load_are_freed),
        TEST(test_idle_runtimes_come_and_go),
    };

    seed_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
