/* Stacks by the thousand: what bodies keep on them is theirs, on the first wait and after, on fresh stacks
 * and on used ones.
 * SPDX-License-Identifier: MIT */
#include "support/check.h"
#include "support/seed.h"

enum {
    BODIES = SANITIZED ? 1300 : 12000, /* beyond the thousandth, stacks are handed out bare */
    WAVES = SANITIZED ? 1 : 4,
    DEPTH_MAX = 8,
    FRAME = 700,
    STACK = 32 << 10, /* the deepest use about a third of it; a sanitizer's frames are larger */
};

struct crowd {
    _Atomic uint32_t begun, ended;
    uint64_t wave;
};

static void wait_a_while(struct luck *luck)
{
    if (luck_below(luck, 4) == 0)
        CHECK_EQUAL(weir_yield(), 0);
    else
        CHECK_EQUAL(weir_sleep(weir_in_us((int64_t)luck_below(luck, 3000))), 0);
}

/* Waits at several depths, and looks on the way back whether the frames are as they were. */
static __attribute__((noinline)) void descend(struct luck *luck, uint64_t depth)
{
    volatile unsigned char frame[FRAME];
    unsigned char mark = (unsigned char)luck_next(luck);
    size_t same = 0;

    for (size_t i = 0; i < FRAME; i++)
        frame[i] = (unsigned char)(mark + i);
    if (depth > 0)
        descend(luck, depth - 1);
    if (luck_below(luck, 3) == 0)
        wait_a_while(luck);
    for (size_t i = 0; i < FRAME; i++)
        same += frame[i] == (unsigned char)(mark + i);
    CHECK_EQUAL(same, FRAME);
}

/* Most wait until all have begun, so that all have a stack at the same time; some come and go before. */
static void member(void *crowd_arg)
{
    struct crowd *crowd = crowd_arg;
    struct luck luck = luck_of(crowd->wave << 32 | atomic_fetch_add(&crowd->begun, 1));
    bool stays = luck_below(&luck, 8) > 0;

    descend(&luck, luck_below(&luck, DEPTH_MAX));
    while (stays && atomic_load(&crowd->begun) < BODIES)
        CHECK_EQUAL(weir_sleep(weir_in_ms(5)), 0);
    descend(&luck, luck_below(&luck, DEPTH_MAX));
    atomic_fetch_add(&crowd->ended, 1);
}

static void test_thousands_of_bodies_keep_what_is_theirs(void)
{
    /* Without stalls: each replacement keeps stacks of its own, and TSan has only so many fibers. */
    weir_runtime *rt =
        new_runtime(WEIR_RUNTIME(.workers = 3, .stack_size = STACK, .stall_after_ms = 60000));

    for (uint64_t wave = 0; wave < WAVES; wave++) {
        struct crowd crowd = { .wave = wave };
        for (int i = 0; i < BODIES; i++)
            CHECK_EQUAL(weir_spawn(rt, member, &crowd, NULL), 0);
        drain(rt);
        CHECK_EQUAL(atomic_load(&crowd.ended), BODIES);
    }
    weir_runtime_free(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_thousands_of_bodies_keep_what_is_theirs),
    };

    seed_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
