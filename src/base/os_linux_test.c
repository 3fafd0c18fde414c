/* SPDX-License-Identifier: MIT */
#include "base/os.h"

#include <errno.h>
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

/* Whether touching that byte kills: a child tries. */
static bool faults(volatile char *address, bool write)
{
    int status = 0;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
        signal(SIGSEGV, SIG_DFL); /* not cmocka's, nor a sanitizer's */
        if (write)
            *address = 1;
        else
            (void)*address;
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == SIGSEGV : WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

static bool is_resident(void *page)
{
    unsigned char answer = 0;

    assert_int_equal(mincore(page, wr_os_page_size(), &answer), 0);
    return answer & 1;
}

/* ---- time, luck ------------------------------------------------------------------------------ */

static void test_the_clock_runs_and_luck_varies(void **state)
{
    weir_time before = wr_os_now();
    uint64_t first = wr_os_random();
    (void)state;
    assert_true(before > 0);
    assert_true(wr_os_now() >= before);
    assert_true(first != wr_os_random() || first != wr_os_random());
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void test_memory_is_zero_at_first(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        char *memory = wr_os_alloc(1000);
        assert_non_null(memory);
        for (int j = 0; j < 1000; j++)
            assert_int_equal(memory[j], 0);
        memset(memory, 0xff, 1000);
        wr_os_free(memory);
    }
    wr_os_free(NULL);
}

static void test_a_map_costs_only_the_pages_that_are_touched(void **state)
{
    size_t page = wr_os_page_size();
    char *memory = wr_os_map(100 * page);
    (void)state;
    assert_non_null(memory);
    assert_int_equal((uintptr_t)memory % page, 0);
    memory[50 * page] = 1;
    assert_true(is_resident(memory + 50 * page));
    assert_false(is_resident(memory + 49 * page));
    assert_false(is_resident(memory + 51 * page));
    assert_int_equal(memory[99 * page], 0);
    wr_os_unmap(memory, 100 * page);
}

static void test_memory_that_was_unmapped_is_gone(void **state)
{
    size_t page = wr_os_page_size();
    char *memory = wr_os_map(page);
    (void)state;
    assert_false(faults(memory, true));
    wr_os_unmap(memory, page);
    assert_true(faults(memory, false));
}

static void test_more_than_there_is_cannot_be_mapped(void **state)
{
    (void)state;
    assert_null(wr_os_map((size_t)1 << 62));
}

static void test_discarded_memory_is_zero_again_and_costs_nothing(void **state)
{
    size_t page = wr_os_page_size();
    char *memory = wr_os_map(4 * page);
    (void)state;
    memset(memory, 0xff, 4 * page);
    wr_os_discard(memory + page, 2 * page);
    assert_true(is_resident(memory));
    assert_false(is_resident(memory + page));
    assert_false(is_resident(memory + 2 * page));
    assert_int_equal(memory[page], 0);
    assert_int_equal(memory[3 * page - 1], 0);
    assert_int_equal((unsigned char)memory[page - 1], 0xff);
    assert_int_equal((unsigned char)memory[3 * page], 0xff);
    wr_os_unmap(memory, 4 * page);
}

static void test_guards_fault_and_their_neighbours_do_not(void **state)
{
    size_t page = wr_os_page_size(), stride = 4 * page, count = 3;
    char *memory = wr_os_map(count * stride);
    (void)state;
    assert_int_equal(wr_os_guard(memory, page, stride, count), 0);
    for (size_t i = 0; i < count; i++) {
        char *guard = memory + i * stride;
        assert_true(faults(guard, false));
        assert_true(faults(guard, true));
        assert_true(faults(guard + page - 1, true));
        assert_false(faults(guard + page, true));
        assert_false(faults(guard + stride - 1, true));
    }
    wr_os_unmap(memory, count * stride);
}

static void test_guards_stay_when_memory_is_discarded(void **state)
{
    size_t page = wr_os_page_size();
    char *memory = wr_os_map(4 * page);
    (void)state;
    assert_int_equal(wr_os_guard(memory + page, page, page, 1), 0);
    memory[0] = 1;
    wr_os_discard(memory, 4 * page);
    assert_int_equal(memory[0], 0);
    assert_true(faults(memory + page, false));
    assert_false(faults(memory + 2 * page, true));
    wr_os_unmap(memory, 4 * page);
}

/* More than go into one system call. */
static void test_very_many_guards_are_set(void **state)
{
    size_t page = wr_os_page_size(), stride = 2 * page, count = 3000;
    char *memory = wr_os_map(count * stride);
    (void)state;
    assert_int_equal(wr_os_guard(memory, page, stride, count), 0);
    for (size_t i = 0; i < count; i++)
        memory[i * stride + page] = 1;
    for (size_t i = 0; i < count; i += 271)
        assert_true(faults(memory + i * stride, true));
    assert_true(faults(memory + (count - 1) * stride, true));
    wr_os_unmap(memory, count * stride);
}

static void test_light_guards_are_guards_where_there_are_any(void **state)
{
    size_t page = wr_os_page_size(), stride = 2 * page, count = 200;
    char *memory = wr_os_map(count * stride);
    bool light = wr_os_guard_light(memory, page, stride, count);
    (void)state;
    assert_int_equal(faults(memory, true), light);
    assert_int_equal(faults(memory + (count - 1) * stride, true), light);
    assert_false(faults(memory + page, true));
    wr_os_unmap(memory, count * stride);
    assert_false(wr_os_guard_light(memory, page, stride, 1)); /* not mapped */
}

static void test_a_guard_of_unmapped_memory_is_refused(void **state)
{
    size_t page = wr_os_page_size();
    char *memory = wr_os_map(page);
    (void)state;
    wr_os_unmap(memory, page);
    assert_true(wr_os_guard(memory, page, page, 1) < 0);
}

/* ---- threads --------------------------------------------------------------------------------- */

struct visit {
    char name[32];
    void *local_before, *local_after;
    sigset_t mask;
};

static void visit_thread(void *arg)
{
    struct visit *visit = arg;

    pthread_getname_np(pthread_self(), visit->name, sizeof(visit->name));
    visit->local_before = *wr_os_local();
    *wr_os_local() = visit;
    wr_os_yield();
    visit->local_after = *wr_os_local();
    pthread_sigmask(SIG_BLOCK, NULL, &visit->mask);
}

static void test_a_thread_has_a_name_and_a_slot_of_its_own(void **state)
{
    struct wr_os_thread thread[3];
    struct visit visit[3];
    (void)state;
    *wr_os_local() = &thread;
    for (int i = 0; i < 3; i++)
        assert_int_equal(wr_os_thread_start(&thread[i], visit_thread, &visit[i],
                                            i ? "test-thread" : "a-name-that-is-too-long"),
                         0);
    for (int i = 0; i < 3; i++) {
        wr_os_thread_join(&thread[i]);
        assert_string_equal(visit[i].name, i ? "test-thread" : "a-name-that-is-");
        assert_null(visit[i].local_before);
        assert_ptr_equal(visit[i].local_after, &visit[i]);
    }
    assert_ptr_equal(*wr_os_local(), &thread);
    *wr_os_local() = NULL;
}

static _Atomic uint32_t sleeper_number, sleeper_may_end;

static void sleep_in_the_kernel(void *arg)
{
    (void)arg;
    wr_store(&sleeper_number, wr_os_thread_number(), seq_cst);
    while (!wr_load(&sleeper_may_end, seq_cst))
        wr_os_futex_wait(&sleeper_may_end, 0, WEIR_FOREVER);
}

static void test_a_thread_in_the_kernel_does_not_compute(void **state)
{
    struct wr_os_thread thread;
    uint32_t number;

    (void)state;
    assert_true(wr_os_thread_computes(wr_os_thread_number())); /* it runs: it asks */
    assert_int_equal(wr_os_thread_start(&thread, sleep_in_the_kernel, NULL, "odd) R name"), 0);
    while (!(number = wr_load(&sleeper_number, seq_cst)) || wr_os_thread_computes(number))
        wr_os_yield(); /* until it sleeps, and then it is known to */
    wr_store(&sleeper_may_end, 1, seq_cst);
    wr_os_futex_wake(&sleeper_may_end, 1);
    wr_os_thread_join(&thread);
    assert_true(wr_os_thread_computes(number)); /* nothing is known of it */
}

static void test_a_thread_has_the_signal_mask_of_its_starter(void **state)
{
    struct wr_os_thread thread;
    struct visit visit;
    sigset_t mask, before;
    (void)state;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR2);
    pthread_sigmask(SIG_SETMASK, &mask, &before);
    assert_int_equal(wr_os_thread_start(&thread, visit_thread, &visit, "x"), 0);
    wr_os_thread_join(&thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    assert_int_equal(sigismember(&visit.mask, SIGUSR2), 1);
    assert_int_equal(sigismember(&visit.mask, SIGUSR1), 0);
}

/* ---- fences ---------------------------------------------------------------------------------- */

enum { FENCE_ROUNDS = 3000 };

/* Each side stores to its own word and then loads the other's: at least one sees the other's store. */
static struct {
    _Atomic uint32_t round, done, light, heavy;
    bool light_saw;
} fences;

static void pass_light_fences(void *arg)
{
    (void)arg;
    for (uint32_t round = 1; round <= FENCE_ROUNDS; round++) {
        while (wr_load(&fences.round, acquire) != round)
            wr_os_relax();
        wr_store(&fences.light, round, relaxed);
        wr_fence_light();
        fences.light_saw = wr_load(&fences.heavy, relaxed) == round;
        wr_store(&fences.done, round, release);
    }
}

static void test_a_light_and_a_heavy_fence_keep_each_other_in_order(void **state)
{
    struct wr_os_thread thread;

    (void)state;
    if (!wr_os_fence_heavy_ready())
        skip();
    assert_int_equal(wr_os_thread_start(&thread, pass_light_fences, NULL, "fences"), 0);
    for (uint32_t round = 1; round <= FENCE_ROUNDS; round++) {
        bool heavy_saw;
        wr_store(&fences.round, round, release);
        wr_store(&fences.heavy, round, relaxed);
        wr_os_fence_heavy();
        heavy_saw = wr_load(&fences.light, relaxed) == round;
        while (wr_load(&fences.done, acquire) != round)
            wr_os_yield();
        assert_true(heavy_saw || fences.light_saw);
    }
    wr_os_thread_join(&thread);
}

/* ---- futex ----------------------------------------------------------------------------------- */

static void test_a_futex_wait_is_never_early(void **state)
{
    _Atomic uint32_t word = 7;
    (void)state;
    for (int64_t us = 0; us < 3000; us += 190) {
        weir_time deadline = wr_os_now() + us * 1000;
        int rc;
        while ((rc = wr_os_futex_wait(&word, 7, deadline)) == 0)
            ; /* for no reason */
        assert_int_equal(rc, -ETIMEDOUT);
        assert_true(wr_os_now() >= deadline);
    }
}

static void test_a_futex_deadline_in_the_past_is_over_at_once(void **state)
{
    const weir_time past[] = { 0, 1, -1, -1000000000, INT64_MIN, wr_os_now() };
    _Atomic uint32_t word = 7;
    (void)state;
    for (size_t i = 0; i < sizeof(past) / sizeof(past[0]); i++)
        assert_int_equal(wr_os_futex_wait(&word, 7, past[i]), -ETIMEDOUT);
}

static void test_a_futex_that_has_changed_is_not_waited_for(void **state)
{
    _Atomic uint32_t word = 8;
    (void)state;
    assert_int_equal(wr_os_futex_wait(&word, 7, WEIR_FOREVER), 0);
    assert_int_equal(wr_os_futex_wait(&word, 7, wr_os_now() + 300000000000), 0);
}

struct futex {
    _Atomic uint32_t word;
    _Atomic int woke;
    weir_time deadline;
};

static void *sleep_on(void *arg)
{
    struct futex *f = arg;

    while (atomic_load(&f->word) == 0)
        if (wr_os_futex_wait(&f->word, 0, f->deadline))
            return NULL;
    atomic_fetch_add(&f->woke, 1);
    return NULL;
}

static void wake_sleepers(weir_time deadline, unsigned count)
{
    struct futex f = { .word = 0, .deadline = deadline };
    pthread_t thread[3];

    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, sleep_on, &f), 0);
    atomic_store(&f.word, 1);
    for (int i = 0; i < 3; i++)
        wr_os_futex_wake(&f.word, count);
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(atomic_load(&f.woke), 3);
}

static void test_a_futex_wakes_its_sleepers(void **state)
{
    (void)state;
    wake_sleepers(WEIR_FOREVER, UINT32_MAX);
    wake_sleepers(WEIR_FOREVER, 1);
    wake_sleepers(wr_os_now() + 300000000000, 1);
    wake_sleepers(WEIR_FOREVER - 1, 2); /* far, but not for ever */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_clock_runs_and_luck_varies),
        cmocka_unit_test(test_memory_is_zero_at_first),
        cmocka_unit_test(test_a_map_costs_only_the_pages_that_are_touched),
        cmocka_unit_test(test_memory_that_was_unmapped_is_gone),
        cmocka_unit_test(test_more_than_there_is_cannot_be_mapped),
        cmocka_unit_test(test_discarded_memory_is_zero_again_and_costs_nothing),
        cmocka_unit_test(test_guards_fault_and_their_neighbours_do_not),
        cmocka_unit_test(test_guards_stay_when_memory_is_discarded),
        cmocka_unit_test(test_very_many_guards_are_set),
        cmocka_unit_test(test_light_guards_are_guards_where_there_are_any),
        cmocka_unit_test(test_a_guard_of_unmapped_memory_is_refused),
        cmocka_unit_test(test_a_thread_has_a_name_and_a_slot_of_its_own),
        cmocka_unit_test(test_a_thread_in_the_kernel_does_not_compute),
        cmocka_unit_test(test_a_thread_has_the_signal_mask_of_its_starter),
        cmocka_unit_test(test_a_light_and_a_heavy_fence_keep_each_other_in_order),
        cmocka_unit_test(test_a_futex_wait_is_never_early),
        cmocka_unit_test(test_a_futex_deadline_in_the_past_is_over_at_once),
        cmocka_unit_test(test_a_futex_that_has_changed_is_not_waited_for),
        cmocka_unit_test(test_a_futex_wakes_its_sleepers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
