/* Tests of task locals on a plain thread: what many settings cost.
 * SPDX-License-Identifier: MIT */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <weir.h>

#include <cmocka.h>

static uint64_t dropped;

static void count_drop(void *value)
{
    (void)value;
    dropped++;
}

static const weir_local key = WEIR_LOCAL(count_drop), other = WEIR_LOCAL(NULL);

static void test_a_million_settings_take_the_memory_of_one(void **state)
{
    static char value[1000];
    size_t before;

    (void)state;
    assert_int_equal(weir_local_set(&other, value), 0);
    assert_int_equal(weir_local_set(&key, value), 0);
    before = mallinfo2().uordblks; /* zero under a sanitizer, then and now */
    for (int i = 0; i < 1000000; i++) {
        assert_int_equal(weir_local_set(&key, &value[i % 1000]), 0);
        assert_ptr_equal(weir_local_get(&key), &value[i % 1000]);
    }
    assert_true(mallinfo2().uordblks < before + 4096);
    assert_int_equal(dropped, 1000000);
    assert_ptr_equal(weir_local_get(&other), value);
    weir_local_clear();
    assert_int_equal(dropped, 1000001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_million_settings_take_the_memory_of_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
