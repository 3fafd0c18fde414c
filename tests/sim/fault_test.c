/* Every public call under every failure of memory, maps, threads and pollers, counted down one by
 * one. Whatever fails, the call says so with a documented code, and nothing is left behind: the
 * simulator counts memory, maps, threads and descriptors when the scenario is over.
 * SPDX-License-Identifier: MIT */
#include "support/sim_support.h"

#include <netinet/in.h>
#include <stdatomic.h>
#include <string.h>

/* The codes a shortage may cause. */
static bool is_shortage(int64_t rc)
{
    return rc == WEIR_ENOMEM || rc == WEIR_EAGAIN || rc == -EMFILE;
}

/* A call either works or says what is short. Answers whether it worked. */
static bool worked(int64_t rc)
{
    CHECK(rc >= 0 || is_shortage(rc));
    return rc >= 0;
}

struct world {
    weir_runtime *rt;
    int pipe_fd[2];
    int listener;
    _Atomic int ran;
};

static int answer(void *arg)
{
    (void)arg;
    return 5;
}

static void use_blocking(void *arg)
{
    struct world *world = arg;
    int result = 0;
    if (worked(weir_blocking(&result, answer, NULL, WEIR_FOREVER)))
        CHECK(result == 5);
    atomic_fetch_add(&world->ran, 1);
}

static void use_pipe(void *arg)
{
    struct world *world = arg;
    char text[8] = "";
    int64_t n = weir_read(world->pipe_fd[0], text, sizeof(text), weir_in_ms(50));
    CHECK(n > 0 || n == WEIR_ETIMEDOUT || is_shortage(n));
    atomic_fetch_add(&world->ran, 1);
}

static void feed_pipe(void *arg)
{
    struct world *world = arg;
    CHECK(weir_sleep(weir_in_ms(10)) == 0); /* never fails for want of anything */
    CHECK(weir_yield() == 0);
    int64_t n = weir_write(world->pipe_fd[1], "hello", 5, weir_in_ms(50));
    CHECK(n > 0 || n == WEIR_ETIMEDOUT || is_shortage(n)); /* readers may leave it too full */
    atomic_fetch_add(&world->ran, 1);
}

static void use_accept(void *arg)
{
    struct world *world = arg;
    int fd = weir_accept(world->listener, NULL, NULL, weir_in_ms(50));
    CHECK(fd >= 0 || fd == WEIR_ETIMEDOUT || is_shortage(fd));
    if (fd >= 0)
        weir_sim_close(fd);
    atomic_fetch_add(&world->ran, 1);
}

static void use_connect(void *arg)
{
    struct world *world = arg;
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(80) };
    int fd = weir_sim_socket();
    CHECK(fd >= 0);
    worked(weir_connect(fd, (struct sockaddr *)&address, sizeof(address), weir_in_ms(50)));
    weir_sim_close(fd);
    atomic_fetch_add(&world->ran, 1);
}

static void use_child(void *arg)
{
    struct world *world = arg;
    int status = 0;
    if (worked(weir_child_wait(&status, weir_sim_child(3 * MS, 0x700), weir_in_ms(50))))
        CHECK(status == 0x700);
    atomic_fetch_add(&world->ran, 1);
}

static void everything(void *arg)
{
    static weir_body *const bodies[] = { use_blocking, use_pipe,    feed_pipe,
                                         use_accept,   use_connect, use_child };
    struct world world = { 0 };
    weir_runtime_stats stats = { .size = sizeof(stats) };
    int accepted = 0;
    int rc = weir_runtime_new(&world.rt, WEIR_RUNTIME(.workers = 2, .threads_max = 2));

    (void)arg;
    if (!worked(rc)) {
        CHECK(world.rt == NULL);
        return;
    }
    CHECK(weir_sim_pipe(world.pipe_fd) == 0);
    world.listener = weir_sim_listener(80);
    CHECK(world.listener >= 0);
    for (int on_threads = 0; on_threads < 2; on_threads++)
        for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
            accepted += worked(weir_spawn(world.rt, bodies[i], &world,
                                          WEIR_SPAWN(.run_on = (weir_carrier)on_threads)));
    CHECK(weir_runtime_drain(world.rt, weir_in_s(5)) == 0);
    CHECK(atomic_load(&world.ran) == accepted);
    CHECK(weir_runtime_stats_get(&stats, world.rt) == 0);
    CHECK(stats.accepted == (uint64_t)accepted && stats.ended == stats.accepted);
    weir_runtime_free(world.rt);
    weir_sim_close(world.pipe_fd[0]);
    weir_sim_close(world.pipe_fd[1]);
    weir_sim_close(world.listener);
}

/* ---- counting down --------------------------------------------------------------------------- */

struct kind {
    const char *name;
    size_t fault; /* offset of the option that makes the n-th call fail */
    size_t count; /* offset of how many calls there were                */
};

#define KIND(name, option, counter)                                                  \
    {                                                                                \
        name, offsetof(weir_sim_options, option), offsetof(weir_sim_report, counter) \
    }

static const struct kind kinds[] = {
    KIND("allocation", fail_alloc, allocs), KIND("map", fail_map, maps),
    KIND("guard", fail_guard, guards),      KIND("thread", fail_thread, threads),
    KIND("poller", fail_poller, pollers),   KIND("watch", fail_watch, watches),
};

static uint64_t field(const void *base, size_t offset)
{
    uint64_t value;
    memcpy(&value, (const char *)base + offset, sizeof(value));
    return value;
}

static void run_with(const struct kind *kind, uint64_t n, uint64_t seed, bool sticky)
{
    weir_sim_options opt = { .size = sizeof(opt), .seed = seed, .sticky = sticky };
    weir_sim_report report = WEIR_SIM_REPORT;

    memcpy((char *)&opt + kind->fault, &n, sizeof(n));
    if (weir_sim_run(&report, &opt, everything, NULL))
        fail_msg("%s %lu fails%s: %s", kind->name, (unsigned long)n, sticky ? " for good" : "",
                 report.message);
    assert_true(report.faults > 0);
}

static void count_down(bool sticky)
{
    enum { SEEDS = 12 };
    uint64_t first = soak_seed(1);

    for (uint64_t seed = first; seed < first + soak_times(SEEDS); seed++)
        for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
            weir_sim_report calm = WEIR_SIM_REPORT;
            weir_sim_options opt = { .size = sizeof(opt), .seed = seed };
            assert_int_equal(weir_sim_run(&calm, &opt, everything, NULL), 0);
            for (uint64_t n = 1; n <= field(&calm, kinds[k].count); n++)
                run_with(&kinds[k], n, seed, sticky);
        }
}

static void test_each_single_failure_is_survived(void **state)
{
    (void)state;
    count_down(false);
}

static void test_a_shortage_that_lasts_is_survived(void **state)
{
    (void)state;
    count_down(true);
}

static void test_interrupted_and_short_calls_change_nothing(void **state)
{
    (void)state;
    explore(1000, WEIR_SIM_OPTIONS(.seed = 1, .eintr_per_256 = 64, .short_per_256 = 128),
            everything);
}

/* ---- bad arguments ----------------------------------------------------------------------------
 */

static void bad_arguments(void *arg)
{
    weir_runtime *rt = (weir_runtime *)8;
    char byte = 0;
    struct sockaddr_in address = { .sin_family = AF_INET };
    int (*no_call)(void *) = NULL;
    (void)arg;
    CHECK(weir_runtime_new(NULL, NULL) == WEIR_EINVAL);
    CHECK(weir_runtime_new(&rt, WEIR_RUNTIME(.stack_size = 1)) == WEIR_EINVAL && rt == NULL);
    CHECK(weir_runtime_new(&rt, WEIR_RUNTIME(.workers = UINT32_MAX)) == WEIR_EINVAL);
    CHECK(weir_spawn(NULL, use_child, NULL, NULL) == WEIR_EINVAL);
    CHECK(weir_runtime_drain(NULL, 0) == WEIR_EINVAL);
    CHECK(weir_runtime_stats_get(NULL, NULL) == WEIR_EINVAL);
    weir_runtime_free(NULL);
    CHECK(weir_fd_wait(-1, WEIR_READ, 0) == WEIR_EBADF);
    CHECK(weir_fd_wait(0, 0, 0) == WEIR_EINVAL);
    CHECK(weir_fd_wait(0, 64, 0) == WEIR_EINVAL);
    CHECK(weir_fd_wait(4000, WEIR_READ, 0) == WEIR_EBADF);
    CHECK(weir_read(-1, &byte, 1, 0) == WEIR_EBADF);
    CHECK(weir_read(4000, &byte, 1, 0) == WEIR_EBADF);
    CHECK(weir_read(4000, NULL, 1, 0) == WEIR_EINVAL);
    CHECK(weir_read(4000, &byte, (size_t)-1, 0) == WEIR_EINVAL);
    CHECK(weir_write(-1, &byte, 1, 0) == WEIR_EBADF);
    CHECK(weir_write(4000, &byte, 1, 0) == WEIR_EBADF);
    CHECK(weir_write(4000, NULL, 1, 0) == WEIR_EINVAL);
    CHECK(weir_write(4000, &byte, (size_t)-1, 0) == WEIR_EINVAL);
    CHECK(weir_accept(-1, NULL, NULL, 0) == WEIR_EBADF);
    CHECK(weir_accept(4000, NULL, NULL, 0) == WEIR_EBADF);
    CHECK(weir_connect(-1, (struct sockaddr *)&address, sizeof(address), 0) == WEIR_EBADF);
    CHECK(weir_connect(4000, (struct sockaddr *)&address, sizeof(address), 0) == WEIR_EBADF);
    CHECK(weir_connect(4000, NULL, 0, 0) == WEIR_EINVAL);
    CHECK(weir_child_wait(NULL, 0, 0) == WEIR_EINVAL);
    CHECK(weir_child_wait(NULL, -3, 0) == WEIR_EINVAL);
    CHECK(weir_child_wait(NULL, 999999, 0) == WEIR_ECHILD);
    CHECK(weir_blocking(NULL, no_call, NULL, 0) == WEIR_EINVAL);
    CHECK(!weir_cancelled());
}

static void bad_arguments_in_a_task(void *arg)
{
    weir_runtime *rt = new_runtime(NULL);
    (void)arg;
    CHECK(weir_spawn(rt, NULL, NULL, NULL) == WEIR_EINVAL);
    CHECK(weir_spawn(rt, bad_arguments, NULL, WEIR_SPAWN(.run_on = (weir_carrier)9)) ==
          WEIR_EINVAL);
    CHECK(weir_spawn(rt, bad_arguments, NULL, NULL) == 0);
    CHECK(weir_runtime_drain(rt, WEIR_FOREVER) == 0);
    weir_runtime_free(rt);
}

static void test_bad_arguments_get_the_documented_code_from_a_thread(void **state)
{
    (void)state;
    explore(1, WEIR_SIM_OPTIONS(.seed = 1), bad_arguments);
}

static void test_bad_arguments_get_the_documented_code_from_a_task(void **state)
{
    (void)state;
    explore(20, WEIR_SIM_OPTIONS(.seed = 1), bad_arguments_in_a_task);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_single_failure_is_survived),
        cmocka_unit_test(test_a_shortage_that_lasts_is_survived),
        cmocka_unit_test(test_interrupted_and_short_calls_change_nothing),
        cmocka_unit_test(test_bad_arguments_get_the_documented_code_from_a_thread),
        cmocka_unit_test(test_bad_arguments_get_the_documented_code_from_a_task),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
