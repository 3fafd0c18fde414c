/* SPDX-License-Identifier: MIT */
#include "runtime/context.h"

#include "base/os.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { STACK = 128 << 10 };

static struct wr_context home, fiber;
static char *stack;

static int setup(void **state)
{
    (void)state;
    stack = wr_os_map(STACK);
    if (!stack)
        return -1;
    wr_context_init_thread(&home);
    wr_context_init_stack(&fiber, stack, STACK);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    wr_context_fini(&fiber);
    wr_os_unmap(stack, STACK);
    return 0;
}

static void begin(void (*entry)(void *arg), void *arg)
{
    wr_context_prepare(&fiber, stack + STACK, entry, arg);
    wr_context_switch(&home, &fiber);
}

static void go_on(void)
{
    wr_context_switch(&home, &fiber);
}

static void go_home(void)
{
    wr_context_switch(&fiber, &home);
}

static void end(void)
{
    wr_context_leave(&fiber, &home);
    __builtin_unreachable();
}

/* ---- back and forth -------------------------------------------------------------------------- */

static void count_up(void *arg)
{
    for (int *count = arg;;) {
        ++*count;
        if (*count == 1000)
            end();
        go_home();
    }
}

static void test_a_switch_goes_on_where_it_was_left(void **state)
{
    int count = 0;
    (void)state;
    begin(count_up, &count);
    for (int i = 1; i < 1000; i++) {
        assert_int_equal(count, i);
        go_on();
    }
    assert_int_equal(count, 1000);
}

static void add_argument(void *arg)
{
    *(int *)arg += 1;
    end();
}

static void test_a_stack_can_be_used_again_and_again(void **state)
{
    int sum = 0;
    (void)state;
    for (int i = 0; i < 1000; i++)
        begin(add_argument, &sum);
    assert_int_equal(sum, 1000);
}

static void stay(void *arg)
{
    *(int *)arg += 1;
    go_home();
    *(int *)arg = -1000; /* never: it is forgotten */
    go_home();
}

static void test_a_suspended_stack_can_be_forgotten(void **state)
{
    int sum = 0;
    (void)state;
    for (int i = 0; i < 10; i++)
        begin(stay, &sum);
    begin(add_argument, &sum);
    assert_int_equal(sum, 11);
}

static struct wr_context ring[3];

static void pass_on(void *arg)
{
    struct wr_context *self = arg;
    struct wr_context *next = self == &ring[2] ? &home : self + 1;

    for (;;)
        wr_context_switch(self, next);
}

static void test_stacks_switch_to_each_other_directly(void **state)
{
    char *memory[3];
    (void)state;
    for (int i = 0; i < 3; i++) {
        memory[i] = wr_os_map(STACK);
        wr_context_init_stack(&ring[i], memory[i], STACK);
        wr_context_prepare(&ring[i], memory[i] + STACK, pass_on, &ring[i]);
    }
    for (int i = 0; i < 100; i++)
        wr_context_switch(&home, &ring[0]); /* once around */
    for (int i = 0; i < 3; i++) {
        wr_context_fini(&ring[i]);
        wr_os_unmap(memory[i], STACK);
    }
}

/* ---- the stack ------------------------------------------------------------------------------- */

struct place {
    uintptr_t frame;
    char kept[64];
};

static void look_at_stack(void *arg)
{
    struct place *place = arg;

    place->frame = (uintptr_t)__builtin_frame_address(0);
    end();
}

static void test_a_stack_begins_at_its_top_and_is_aligned(void **state)
{
    struct place place;
    (void)state;
    for (size_t below = 0; below < 256; below += 16) {
        wr_context_prepare(&fiber, stack + STACK - below, look_at_stack, &place);
        wr_context_switch(&home, &fiber);
        assert_int_equal(place.frame % 16, 0);
        assert_in_range(place.frame, (uintptr_t)stack + STACK - below - 4096,
                        (uintptr_t)stack + STACK - below);
    }
}

static __attribute__((noinline)) uint64_t descend(unsigned depth, uintptr_t *lowest)
{
    volatile uint64_t mine[4] = { depth, depth + 1, depth + 2, depth + 3 };
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    uint64_t below;

    if (frame < *lowest)
        *lowest = frame;
    if (depth % 16 == 0)
        go_home();
    below = depth ? descend(depth - 1, lowest) : 0;
    return mine[0] == depth && mine[3] == depth + 3 ? below + depth : 0;
}

static void recurse(void *arg)
{
    uintptr_t lowest = UINTPTR_MAX;

    *(uint64_t *)arg = descend(200, &lowest);
    *(uint64_t *)arg += lowest >= (uintptr_t)stack && lowest < (uintptr_t)stack + STACK;
    end();
}

static void test_deep_recursion_stays_on_its_own_stack(void **state)
{
    uint64_t sum = 0;
    (void)state;
    begin(recurse, &sum);
    for (int i = 0; i < 13; i++) {
        assert_int_equal(sum, 0);
        go_on();
    }
    assert_int_equal(sum, 200 * 201 / 2 + 1);
}

/* ---- what travels ---------------------------------------------------------------------------- */

#if defined(__x86_64__)

/* Puts a pattern into each callee-saved register, calls away(), and counts those that came back
 * different. */
int wr_test_keep_registers(uint64_t pattern, void (*away)(void));
__asm__(".text\n"
        ".type wr_test_keep_registers, @function\n"
        "wr_test_keep_registers:\n"
        "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n    pushq %r13\n    pushq %r14\n"
        "    pushq %r15\n    pushq %rdi\n"
        "    leaq 1(%rdi), %rbx\n    leaq 2(%rdi), %rbp\n    leaq 3(%rdi), %r12\n"
        "    leaq 4(%rdi), %r13\n    leaq 5(%rdi), %r14\n    leaq 6(%rdi), %r15\n"
        "    callq *%rsi\n"
        "    popq %rdi\n"
        "    xorl %eax, %eax\n"
        "    leaq 1(%rdi), %rcx\n    cmpq %rcx, %rbx\n    setne %dl\n    addb %dl, %al\n"
        "    leaq 2(%rdi), %rcx\n    cmpq %rcx, %rbp\n    setne %dl\n    addb %dl, %al\n"
        "    leaq 3(%rdi), %rcx\n    cmpq %rcx, %r12\n    setne %dl\n    addb %dl, %al\n"
        "    leaq 4(%rdi), %rcx\n    cmpq %rcx, %r13\n    setne %dl\n    addb %dl, %al\n"
        "    leaq 5(%rdi), %rcx\n    cmpq %rcx, %r14\n    setne %dl\n    addb %dl, %al\n"
        "    leaq 6(%rdi), %rcx\n    cmpq %rcx, %r15\n    setne %dl\n    addb %dl, %al\n"
        "    popq %r15\n    popq %r14\n    popq %r13\n    popq %r12\n    popq %rbx\n    popq %rbp\n"
        "    retq\n"
        ".size wr_test_keep_registers, . - wr_test_keep_registers\n");

static void keep_over_there(void *arg)
{
    for (uint64_t i = 0; i < 20; i++)
        *(int *)arg += wr_test_keep_registers(0x1111111111111111u * (i % 16), go_home);
    *(int *)arg += 100;
    end();
}

static void test_callee_saved_registers_survive_on_both_sides(void **state)
{
    int lost = 0;
    (void)state;
    begin(keep_over_there, &lost);
    for (uint64_t i = 0; i < 20; i++)
        assert_int_equal(wr_test_keep_registers(0xfedcba9876543210u + i, go_on), 0);
    assert_int_equal(lost, 100);
}

/* How floating-point numbers are rounded: of SSE, and of the old x87. */
struct control {
    uint32_t sse;
    uint16_t x87;
};

static struct control control_get(void)
{
    struct control c;

    __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(c.sse), "=m"(c.x87));
    c.sse &= ~0x3fu; /* without the flags of what has happened, which may change at any time */
    return c;
}

static void control_set(struct control c)
{
    __asm__ volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(c.sse), "m"(c.x87));
}

static struct control rounding(struct control c, unsigned mode)
{
    c.sse = (c.sse & ~0x6000u) | mode << 13;
    c.x87 = (uint16_t)((c.x87 & ~0x0c00u) | mode << 10);
    return c;
}

static bool control_is(struct control c)
{
    struct control now = control_get();

    return now.sse == c.sse && now.x87 == c.x87;
}

static void round_differently(void *arg)
{
    struct control mine = rounding(control_get(), 2);
    int *wrong = arg;

    control_set(mine);
    for (int i = 0; i < 3; i++) {
        go_home();
        *wrong += !control_is(mine);
    }
    control_set(rounding(mine, 0));
    end();
}

static void test_every_stack_has_a_rounding_mode_of_its_own(void **state)
{
    struct control before = control_get();
    bool same = true;
    int wrong = 0;
    (void)state;
    begin(round_differently, &wrong);
    same = control_is(before);
    for (unsigned mode = 1; mode <= 3; mode++) {
        control_set(rounding(before, mode));
        go_on();
        same = same && control_is(rounding(before, mode));
    }
    control_set(before);
    assert_true(same);
    assert_int_equal(wrong, 0);
}

static struct control seen;

static void see_control(void *arg)
{
    (void)arg;
    seen = control_get();
    end();
}

static void test_a_fresh_stack_rounds_as_its_maker_does(void **state)
{
    struct control mine = control_get();
    (void)state;
    control_set(rounding(mine, 1));
    begin(see_control, NULL);
    control_set(mine);
    assert_int_equal(seen.sse, rounding(mine, 1).sse);
    assert_int_equal(seen.x87, rounding(mine, 1).x87);
}

#endif

static void keep_numbers(void *arg)
{
    double a = 1.5, b = 2.25, c = -0.125, d = 1e300;
    long long e = 0x123456789abcdef, f = -1;

    for (int i = 0; i < 100; i++) {
        a += 1.0;
        b *= 1.0;
        c -= 1.0;
        d /= 1.0;
        e += 1;
        f -= 1;
        go_home();
    }
    *(int *)arg = a == 101.5 && b == 2.25 && c == -100.125 && d == 1e300 &&
                  e == 0x123456789abcdef + 100 && f == -101;
    end();
}

static void test_numbers_survive_a_hundred_switches(void **state)
{
    double sum = 0.5;
    int kept = 0;
    (void)state;
    begin(keep_numbers, &kept);
    for (int i = 0; i < 100; i++) {
        sum = sum * 1.0 + 1.0;
        go_on();
    }
    assert_true(sum == 100.5);
    assert_true(kept);
}

/* ---- on any thread --------------------------------------------------------------------------- */

struct traveller {
    struct wr_context home, fiber;
    char *stack;
    int turns;
};

static void take_turns(void *arg)
{
    struct traveller *t = arg;

    for (t->turns = 1; t->turns < 2000; t->turns++)
        wr_context_switch(&t->fiber, &t->home);
    wr_context_leave(&t->fiber, &t->home);
    __builtin_unreachable();
}

static void *travel(void *arg)
{
    struct traveller *t = arg;

    wr_context_init_thread(&t->home);
    wr_context_prepare(&t->fiber, t->stack + STACK, take_turns, t);
    for (int i = 0; i < 2000; i++)
        wr_context_switch(&t->home, &t->fiber);
    return NULL;
}

static void test_each_thread_switches_its_own_stacks(void **state)
{
    struct traveller t[3];
    pthread_t thread[3];
    (void)state;
    for (int i = 0; i < 3; i++) {
        t[i].stack = wr_os_map(STACK);
        wr_context_init_stack(&t[i].fiber, t[i].stack, STACK);
        assert_int_equal(pthread_create(&thread[i], NULL, travel, &t[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(t[i].turns, 2000);
        wr_context_fini(&t[i].fiber);
        wr_os_unmap(t[i].stack, STACK);
    }
}

int main(void)
{
#define CONTEXT_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        CONTEXT_TEST(test_a_switch_goes_on_where_it_was_left),
        CONTEXT_TEST(test_a_stack_can_be_used_again_and_again),
        CONTEXT_TEST(test_a_suspended_stack_can_be_forgotten),
        CONTEXT_TEST(test_stacks_switch_to_each_other_directly),
        CONTEXT_TEST(test_a_stack_begins_at_its_top_and_is_aligned),
        CONTEXT_TEST(test_deep_recursion_stays_on_its_own_stack),
#if defined(__x86_64__)
        CONTEXT_TEST(test_callee_saved_registers_survive_on_both_sides),
        CONTEXT_TEST(test_every_stack_has_a_rounding_mode_of_its_own),
        CONTEXT_TEST(test_a_fresh_stack_rounds_as_its_maker_does),
#endif
        CONTEXT_TEST(test_numbers_survive_a_hundred_switches),
        CONTEXT_TEST(test_each_thread_switches_its_own_stacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
