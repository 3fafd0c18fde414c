/* SPDX-License-Identifier: MIT */
#include "runtime/stack.h"

#include "base/assert.h"
#include "base/os.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { SIZE = 64 << 10 };

static struct wr_stack_pool pool;

static int setup(void **state)
{
    (void)state;
    wr_stack_pool_init(&pool, SIZE);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    wr_stack_pool_fini(&pool);
    return 0;
}

static struct wr_fiber *take(size_t want, size_t *got)
{
    struct wr_fiber *list = wr_stack_take(&pool, want, got);
    size_t length = 0;

    assert_non_null(list);
    for (struct wr_fiber *f = list; f; f = f->next)
        length++;
    assert_int_equal(length, *got);
    assert_in_range(*got, 1, want);
    return list;
}

static struct wr_fiber *take_one(void)
{
    size_t got;
    struct wr_fiber *fiber = take(1, &got);

    return fiber;
}

static void give_one(struct wr_fiber *fiber)
{
    fiber->next = NULL;
    wr_stack_give(&pool, fiber, 1);
}

static void assert_count(uint64_t total, uint64_t free)
{
    uint64_t t, f;

    wr_stack_count(&pool, &t, &f);
    assert_int_equal(t, total);
    assert_int_equal(f, free);
}

static size_t resident_pages(const struct wr_fiber *fiber)
{
    size_t pages = fiber->context.stack_size / wr_os_page_size(), count = 0;
    unsigned char answer[SIZE / 1024];

    assert_true(pages <= sizeof(answer));
    assert_int_equal(mincore(fiber->context.stack_low, fiber->context.stack_size, answer), 0);
    for (size_t i = 0; i < pages; i++)
        count += answer[i] & 1;
    return count;
}

/* The status of a child process that calls run(arg). */
static int child_status(void (*run)(void *arg), void *arg)
{
    int status = 0;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
        signal(SIGSEGV, SIG_DFL); /* not cmocka's, nor a sanitizer's */
        signal(SIGABRT, SIG_DFL);
        run(arg);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* ---- taking and giving ------------------------------------------------------------------------ */

static void test_an_unused_pool_has_nothing(void **state)
{
    (void)state;
    assert_count(0, 0);
    assert_int_equal(wr_stack_trim(&pool), 0);
}

static void test_stacks_have_the_size_asked_for_and_do_not_overlap(void **state)
{
    struct wr_fiber *fiber[40];
    (void)state;
    for (int i = 0; i < 40; i++) {
        struct wr_context *c;
        fiber[i] = take_one();
        c = &fiber[i]->context;
        assert_int_equal(fiber[i]->state, WR_FIBER_FREE);
        assert_true(c->stack_size >= SIZE);
        assert_ptr_equal(wr_stack_top(fiber[i]), (char *)c->stack_low + c->stack_size);
        assert_int_equal((uintptr_t)wr_stack_top(fiber[i]) % 16, 0);
        memset(c->stack_low, i + 1, c->stack_size);
    }
    for (int i = 0; i < 40; i++) {
        char *low = fiber[i]->context.stack_low, *top = wr_stack_top(fiber[i]);
        assert_int_equal(*low, i + 1);
        assert_int_equal(top[-1], i + 1);
        give_one(fiber[i]);
    }
}

static void test_odd_sizes_are_rounded_up_to_pages(void **state)
{
    struct wr_stack_pool odd;
    struct wr_fiber *fiber;
    size_t got;
    (void)state;
    wr_stack_pool_init(&odd, (16 << 10) + 1);
    fiber = wr_stack_take(&odd, 1, &got);
    assert_non_null(fiber);
    assert_int_equal(fiber->context.stack_size, (16 << 10) + wr_os_page_size());
    wr_stack_give(&odd, fiber, 1);
    wr_stack_pool_fini(&odd);
}

static void test_stacks_taken_and_given_are_counted(void **state)
{
    size_t got;
    uint64_t total, free;
    struct wr_fiber *list = take(3, &got);
    (void)state;
    wr_stack_count(&pool, &total, &free);
    assert_int_equal(total, free + got);
    wr_stack_give(&pool, list, got);
    assert_count(total, total);
}

static void test_the_last_given_is_the_first_taken(void **state)
{
    struct wr_fiber *a = take_one(), *b = take_one();
    (void)state;
    give_one(a);
    give_one(b);
    assert_ptr_equal(take_one(), b); /* its memory is warm */
    assert_ptr_equal(take_one(), a);
    give_one(a);
    give_one(b);
}

static void test_a_pool_grows_as_it_must(void **state)
{
    enum { MANY = 1000 };
    static struct wr_fiber *fiber[MANY];
    uint64_t total, free;
    (void)state;
    for (int i = 0; i < MANY; i++)
        fiber[i] = take_one();
    wr_stack_count(&pool, &total, &free);
    assert_int_equal(total, free + MANY);
    assert_true(total < 3 * MANY); /* ahead of need, but not absurdly */
    for (int i = 0; i < MANY; i++)
        give_one(fiber[i]);
    assert_count(total, total);
    for (int i = 0; i < MANY; i++)
        fiber[i] = take_one();
    assert_count(total, total - MANY); /* no more are made while there are some */
    for (int i = 0; i < MANY; i++)
        give_one(fiber[i]);
}

static void fini_too_early(void *arg)
{
    (void)arg;
    take_one();
    close(STDERR_FILENO); /* it would complain */
    wr_stack_pool_fini(&pool);
}

static void test_a_pool_must_not_end_before_all_stacks_are_back(void **state)
{
    int status = child_status(fini_too_early, NULL);
    (void)state;
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void test_a_stack_costs_only_the_pages_that_are_touched(void **state)
{
    struct wr_fiber *fiber = take_one();
    (void)state;
    assert_int_equal(resident_pages(fiber), 0);
    ((char *)wr_stack_top(fiber))[-1] = 1;
    assert_int_equal(resident_pages(fiber), 1);
    give_one(fiber);
    assert_int_equal(resident_pages(fiber), 1); /* it stays warm for the next */
}

static void test_memory_not_needed_for_a_while_is_given_back(void **state)
{
    struct wr_fiber *fiber[10];
    (void)state;
    for (int i = 0; i < 10; i++) {
        fiber[i] = take_one();
        memset(fiber[i]->context.stack_low, 0xff, fiber[i]->context.stack_size);
    }
    for (int i = 0; i < 10; i++)
        give_one(fiber[i]);
    assert_int_equal(wr_stack_trim(&pool), 0); /* they were in use just now */
    assert_int_equal(resident_pages(fiber[0]), fiber[0]->context.stack_size / wr_os_page_size());
    assert_int_equal(wr_stack_trim(&pool), 10);
    for (int i = 0; i < 10; i++)
        assert_int_equal(resident_pages(fiber[i]), 0);
    assert_int_equal(wr_stack_trim(&pool), 0);
    assert_int_equal(*(char *)fiber[0]->context.stack_low, 0);
}

static void test_stacks_that_were_needed_keep_their_memory(void **state)
{
    struct wr_fiber *fiber[10], *again[4];
    size_t resident = 0;
    (void)state;
    for (int i = 0; i < 10; i++) {
        fiber[i] = take_one();
        ((char *)wr_stack_top(fiber[i]))[-1] = 1;
    }
    for (int i = 0; i < 10; i++)
        give_one(fiber[i]);
    assert_int_equal(wr_stack_trim(&pool), 0);
    for (int i = 0; i < 4; i++)
        again[i] = take_one();
    for (int i = 0; i < 4; i++)
        give_one(again[i]);
    assert_int_equal(wr_stack_trim(&pool), 6);
    for (int i = 0; i < 4; i++)
        assert_int_equal(resident_pages(again[i]), 1);
    for (int i = 0; i < 10; i++)
        resident += resident_pages(fiber[i]);
    assert_int_equal(resident, 4);
}

/* More than one batch. */
static void test_very_many_are_given_back(void **state)
{
    enum { MANY = 300 };
    static struct wr_fiber *fiber[MANY];
    uint64_t total, free;
    (void)state;
    for (int i = 0; i < MANY; i++) {
        fiber[i] = take_one();
        ((char *)wr_stack_top(fiber[i]))[-1] = 1;
    }
    for (int i = 0; i < MANY; i++)
        give_one(fiber[i]);
    wr_stack_trim(&pool);
    assert_int_equal(wr_stack_trim(&pool), MANY);
    wr_stack_count(&pool, &total, &free);
    assert_int_equal(total, free); /* they still exist */
    for (int i = 0; i < MANY; i++)
        assert_int_equal(resident_pages(fiber[i]), 0);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(fiber[i]->state, WR_FIBER_FREE);
}

/* ---- guards ---------------------------------------------------------------------------------- */

static void write_to(void *address)
{
    *(volatile char *)address = 1;
}

static bool faults(char *address)
{
    int status = child_status(write_to, address);

    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

static void test_a_body_that_leaves_the_stack_at_its_end_dies(void **state)
{
    struct wr_fiber *fiber[9]; /* of two slabs */
    (void)state;
    for (int i = 0; i < 9; i++)
        fiber[i] = take_one();
    for (int i = 0; i < 9; i++) {
        char *low = fiber[i]->context.stack_low;
        assert_false(faults(low));
        assert_true(faults(low - 1));
        assert_true(faults(low - pool.guard_size));
        assert_false(faults((char *)wr_stack_top(fiber[i]) - 1));
        give_one(fiber[i]);
    }
    wr_stack_trim(&pool);
    wr_stack_trim(&pool);
    assert_true(faults((char *)fiber[0]->context.stack_low - 1)); /* also when it was trimmed */
}

static __attribute__((noinline)) int run_off(int depth)
{
    volatile char frame[512];

    frame[0] = (char)depth;
    return (depth < 100000000 ? run_off(depth + 1) : 0) + frame[0];
}

static void run_off_entry(void *arg)
{
    *(volatile int *)arg = run_off(0);
    _exit(1);
}

static void overflow(void *arg)
{
    struct wr_fiber *fiber = arg;
    struct wr_context home;
    static int sink;

    wr_context_init_thread(&home);
    wr_context_prepare(&fiber->context, wr_stack_top(fiber), run_off_entry, &sink);
    wr_context_switch(&home, &fiber->context);
}

static void test_recursion_without_end_dies_at_the_guard(void **state)
{
    struct wr_fiber *fiber = take_one();
    int status = child_status(overflow, fiber);
    (void)state;
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    give_one(fiber);
}

static void test_an_overflow_is_known_by_its_address(void **state)
{
    struct wr_fiber *fiber = take_one(), *other = take_one();
    char *low = fiber->context.stack_low;
    (void)state;
    assert_true(wr_stack_overflowed(&pool, fiber, low - 1));
    assert_true(wr_stack_overflowed(&pool, fiber, low - pool.guard_size));
    assert_false(wr_stack_overflowed(&pool, fiber, low));
    assert_false(wr_stack_overflowed(&pool, fiber, low - pool.guard_size - 1));
    assert_false(wr_stack_overflowed(&pool, fiber, NULL));
    assert_false(wr_stack_overflowed(&pool, other, low - 1));
    give_one(fiber);
    give_one(other);
}

/* ---- bare stacks ----------------------------------------------------------------------------- */

enum { RUN = 6, SMALL_SLABS = 1016, KEPT = 2048 };

/* Stacks that stay taken until the test is over: a stack that comes back is not bare any more. */
static struct wr_fiber *kept[KEPT];
static size_t kept_count;
static bool bare; /* false: this kernel's guards take map entries, so no stack is bare */

/* All stacks of the small slabs. */
static int setup_bare(void **state)
{
    setup(state);
    while (kept_count < SMALL_SLABS)
        kept[kept_count++] = take_one();
    return 0;
}

static int teardown_bare(void **state)
{
    while (kept_count > 0)
        give_one(kept[--kept_count]);
    return teardown(state);
}

/* The first is the lowest. */
static struct wr_fiber **take_run(void)
{
    struct wr_fiber **run = kept + kept_count, *list;
    size_t got;

    list = take(RUN, &got);
    assert_int_equal(got, RUN);
    for (int i = RUN; i-- > 0; list = list->next)
        run[i] = list;
    kept_count += RUN;
    bare = run[RUN - 1]->bare;
    return run;
}

static void test_the_first_stacks_are_never_bare(void **state)
{
    (void)state;
    for (int i = 0; i < SMALL_SLABS; i++)
        assert_false(kept[i]->bare);
    assert_true(faults((char *)kept[SMALL_SLABS - 1]->context.stack_low - 1));
}

static void test_a_run_has_a_guard_at_its_end_and_is_used_from_the_top(void **state)
{
    struct wr_fiber **run = take_run();
    (void)state;
    if (bare) {
        for (int i = 0; i < RUN; i++) {
            assert_int_equal(run[i]->bare, i > 0);
            assert_int_equal(faults((char *)run[i]->context.stack_low - 1), i == 0);
            assert_int_equal(run[i]->below, i);
            assert_int_equal(run[i]->above, RUN - 1 - i);
        }
        for (int i = 1; i < RUN; i++)
            assert_ptr_equal(wr_stack_top(run[i - 1]),
                             (char *)run[i]->context.stack_low - pool.guard_size);
    }
}

static void test_one_guard_brings_those_of_the_whole_run(void **state)
{
    struct wr_fiber **run = take_run();
    (void)state;
    if (bare) {
        for (int i = 0; i < RUN; i++)
            memset(run[i]->context.stack_low, i + 1, run[i]->context.stack_size);
        wr_stack_guard(&pool, run[RUN / 2]);
        for (int i = 0; i < RUN; i++) {
            char *low = run[i]->context.stack_low, *top = wr_stack_top(run[i]);
            assert_false(run[i]->bare);
            assert_true(faults(low - 1));
            assert_true(faults(low - pool.guard_size));
            assert_int_equal(*low, i + 1); /* and what they held is still there */
            assert_int_equal(top[-1], i + 1);
        }
    }
}

static void test_locked_memory_is_guarded_as_well(void **state)
{
    struct wr_fiber **run = take_run();
    (void)state;
    if (bare && mlock((char *)run[1]->context.stack_low - pool.guard_size, pool.stack_size) == 0) {
        wr_stack_guard(&pool, run[1]);
        assert_true(faults((char *)run[1]->context.stack_low - 1));
        assert_true(faults((char *)run[2]->context.stack_low - 1));
    }
}

static void test_a_stack_that_comes_back_bare_is_guarded(void **state)
{
    struct wr_fiber **run = take_run();
    (void)state;
    if (bare) {
        struct wr_fiber *given = run[RUN - 1];
        give_one(given);
        for (int i = 0; i < RUN; i++) {
            assert_false(run[i]->bare);
            assert_true(faults((char *)run[i]->context.stack_low - 1));
        }
        assert_ptr_equal(take_one(), given);
    }
}

static void test_a_bare_stack_alone_is_not_bare(void **state)
{
    struct wr_fiber *alone = take_one();
    (void)state;
    assert_false(alone->bare);
    assert_true(faults((char *)alone->context.stack_low - 1));
    give_one(alone);
}

static void test_a_bare_stack_is_safe_while_all_below_is_unused(void **state)
{
    struct wr_fiber **run = take_run();
    (void)state;
    if (bare) {
        int there;
        run[2]->context.sp = &there; /* in use */
        assert_true(wr_stack_is_safe(run[1]));
        assert_true(wr_stack_is_safe(run[2]));
        assert_false(wr_stack_is_safe(run[3]));
        assert_false(wr_stack_is_safe(run[RUN - 1]));
        wr_stack_guard(&pool, run[3]);
        assert_true(wr_stack_is_safe(run[3]));
    }
}

static void test_an_overflow_of_a_bare_stack_is_known_by_its_address(void **state)
{
    struct wr_fiber **run = take_run();
    (void)state;
    if (bare) {
        char *low = run[3]->context.stack_low, *end = run[0]->context.stack_low;
        assert_true(wr_stack_overflowed(&pool, run[3], low - 1));
        assert_true(wr_stack_overflowed(&pool, run[3], end - 1));
        assert_true(wr_stack_overflowed(&pool, run[3], end - pool.guard_size));
        assert_false(wr_stack_overflowed(&pool, run[3], end - pool.guard_size - 1));
        assert_false(wr_stack_overflowed(&pool, run[3], low));
        wr_stack_guard(&pool, run[3]);
        assert_true(wr_stack_overflowed(&pool, run[3], low - 1));
        assert_false(wr_stack_overflowed(&pool, run[3], end - 1));
    }
}

static struct wr_fiber **neighbours; /* which must not change */
static struct wr_fiber *guilty;

static void look_at_neighbours(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)context;
    for (int i = 0; i < RUN; i++) {
        char *low = neighbours[i]->context.stack_low, *top = wr_stack_top(neighbours[i]);
        if (*low != i + 1 || top[-1] != i + 1)
            _exit(1);
    }
    _exit(wr_stack_overflowed(&pool, guilty, info->si_addr) ? 42 : 2);
}

static void overflow_among_neighbours(void *fiber_arg)
{
    static char stack[64 << 10];
    struct sigaction action = { .sa_sigaction = look_at_neighbours,
                                .sa_flags = SA_SIGINFO | SA_ONSTACK };

    sigaltstack(&(stack_t){ .ss_sp = stack, .ss_size = sizeof(stack) }, NULL);
    sigaction(SIGSEGV, &action, NULL);
    guilty = fiber_arg;
    overflow(fiber_arg);
}

static void overflows_alone(struct wr_fiber *fiber)
{
    int status = child_status(overflow_among_neighbours, fiber);

    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 42);
}

/* The run below is in use. */
static void test_recursion_without_end_harms_no_neighbour(void **state)
{
    struct wr_fiber **lower = take_run(), **upper = take_run();
    (void)state;
    if (bare) {
        assert_ptr_equal(wr_stack_top(lower[RUN - 1]),
                         (char *)upper[0]->context.stack_low - pool.guard_size);
        for (int i = 0; i < RUN; i++)
            memset(lower[i]->context.stack_low, i + 1, lower[i]->context.stack_size);
        neighbours = lower;
        overflows_alone(upper[RUN - 1]); /* through the whole run */
        overflows_alone(upper[0]);
        wr_stack_guard(&pool, upper[1]);
        overflows_alone(upper[RUN - 1]);
    }
}

static void die(void *fiber_arg)
{
    wr_stack_die(&pool, fiber_arg);
}

static void test_a_body_found_outside_its_stack_dies_as_at_the_guard(void **state)
{
    struct wr_fiber **run = take_run();
    (void)state;
    if (bare) {
        int status = child_status(die, run[2]);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    }
}

/* ---- together -------------------------------------------------------------------------------- */

static void *take_and_give(void *arg)
{
    unsigned luck = (unsigned)(uintptr_t)arg;

    for (int i = 0; i < 2000; i++) {
        size_t got = 0;
        struct wr_fiber *list = wr_stack_take(&pool, 1 + luck % 16, &got);
        WR_ASSERT(list);
        for (struct wr_fiber *f = list; f; f = f->next)
            ((char *)wr_stack_top(f))[-1] = (char)i; /* no other thread has it */
        wr_stack_give(&pool, list, got);
        if (i % 64 == 0)
            wr_stack_trim(&pool);
        luck = luck * 1103515245 + 12345;
    }
    return NULL;
}

static void test_threads_take_and_give_at_the_same_time(void **state)
{
    pthread_t thread[4];
    uint64_t total, free;
    (void)state;
    for (uintptr_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, take_and_give, (void *)i), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    wr_stack_count(&pool, &total, &free);
    assert_int_equal(total, free);
    assert_true(total <= 512);
}

int main(void)
{
#define STACK_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        STACK_TEST(test_an_unused_pool_has_nothing),
        STACK_TEST(test_stacks_have_the_size_asked_for_and_do_not_overlap),
        cmocka_unit_test(test_odd_sizes_are_rounded_up_to_pages),
        STACK_TEST(test_stacks_taken_and_given_are_counted),
        STACK_TEST(test_the_last_given_is_the_first_taken),
        STACK_TEST(test_a_pool_grows_as_it_must),
        STACK_TEST(test_a_pool_must_not_end_before_all_stacks_are_back),
        STACK_TEST(test_a_stack_costs_only_the_pages_that_are_touched),
        STACK_TEST(test_memory_not_needed_for_a_while_is_given_back),
        STACK_TEST(test_stacks_that_were_needed_keep_their_memory),
        STACK_TEST(test_very_many_are_given_back),
        STACK_TEST(test_a_body_that_leaves_the_stack_at_its_end_dies),
        STACK_TEST(test_recursion_without_end_dies_at_the_guard),
        STACK_TEST(test_an_overflow_is_known_by_its_address),
        STACK_TEST(test_threads_take_and_give_at_the_same_time),
    };
    const struct CMUnitTest bare_tests[] = {
        cmocka_unit_test(test_the_first_stacks_are_never_bare),
        cmocka_unit_test(test_a_run_has_a_guard_at_its_end_and_is_used_from_the_top),
        cmocka_unit_test(test_one_guard_brings_those_of_the_whole_run),
        cmocka_unit_test(test_locked_memory_is_guarded_as_well),
        cmocka_unit_test(test_a_stack_that_comes_back_bare_is_guarded),
        cmocka_unit_test(test_a_bare_stack_alone_is_not_bare),
        cmocka_unit_test(test_a_bare_stack_is_safe_while_all_below_is_unused),
        cmocka_unit_test(test_an_overflow_of_a_bare_stack_is_known_by_its_address),
        cmocka_unit_test(test_recursion_without_end_harms_no_neighbour),
        cmocka_unit_test(test_a_body_found_outside_its_stack_dies_as_at_the_guard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) +
           cmocka_run_group_tests(bare_tests, setup_bare, teardown_bare);
}
