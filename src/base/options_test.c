/* SPDX-License-Identifier: MIT */
#include "base/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <weir/error.h>

#include <cmocka.h>

/* The same options at three ages of the library. */
struct old {
    size_t size;
    uint32_t a;
};
struct present {
    size_t size;
    uint32_t a, b;
    const char *name;
};
struct future {
    size_t size;
    uint32_t a, b;
    const char *name;
    uint64_t more[2];
};

static int load(struct present *ours, const void *theirs)
{
    memset(ours, 0xff, sizeof(*ours));
    return wr_options_load(ours, sizeof(*ours), theirs);
}

static void test_no_options_are_all_defaults(void **state)
{
    struct present ours;
    (void)state;
    assert_int_equal(load(&ours, NULL), 0);
    assert_int_equal(ours.size, sizeof(ours));
    assert_int_equal(ours.a, 0);
    assert_int_equal(ours.b, 0);
    assert_null(ours.name);
}

static void test_options_of_the_same_age_are_copied(void **state)
{
    struct present ours, theirs = { .size = sizeof(theirs), .a = 1, .b = 2, .name = "n" };
    (void)state;
    assert_int_equal(load(&ours, &theirs), 0);
    assert_memory_equal(&ours, &theirs, sizeof(ours));
}

static void test_fields_an_older_caller_did_not_know_are_zero(void **state)
{
    struct old *theirs = malloc(sizeof(*theirs)); /* ASan sees a look beyond it */
    struct present ours;
    (void)state;
    memset(theirs, 0, sizeof(*theirs));
    theirs->size = sizeof(*theirs);
    theirs->a = 7;
    assert_int_equal(load(&ours, theirs), 0);
    assert_int_equal(ours.size, sizeof(ours));
    assert_int_equal(ours.a, 7);
    assert_null(ours.name);
    free(theirs);
}

static void test_a_size_field_alone_is_enough(void **state)
{
    size_t *theirs = malloc(sizeof(*theirs));
    struct present ours;
    (void)state;
    *theirs = sizeof(*theirs);
    assert_int_equal(load(&ours, theirs), 0);
    assert_int_equal(ours.size, sizeof(ours));
    assert_int_equal(ours.a, 0);
    free(theirs);
}

static void test_a_size_too_small_for_itself_is_refused(void **state)
{
    struct present ours, theirs = { .a = 1 };
    (void)state;
    for (theirs.size = 0; theirs.size < sizeof(size_t); theirs.size++)
        assert_int_equal(load(&ours, &theirs), WEIR_EINVAL);
}

static void test_fields_a_newer_caller_left_alone_do_not_matter(void **state)
{
    struct future theirs = { .size = sizeof(theirs), .a = 1, .b = 2 };
    struct present ours;
    (void)state;
    assert_int_equal(load(&ours, &theirs), 0);
    assert_int_equal(ours.size, sizeof(ours));
    assert_int_equal(ours.b, 2);
}

static void test_any_byte_a_newer_caller_set_is_refused(void **state)
{
    struct present ours;
    (void)state;
    for (size_t i = sizeof(ours); i < sizeof(struct future); i++) {
        struct future theirs = { .size = sizeof(theirs), .a = 1 };
        ((unsigned char *)&theirs)[i] = 0x80;
        assert_int_equal(load(&ours, &theirs), WEIR_EVERSION);
    }
}

static void test_figures_are_stored_as_far_as_the_caller_knows_them(void **state)
{
    const struct present ours = { .size = sizeof(ours), .a = 1, .b = 2, .name = "n" };
    struct old old = { .size = sizeof(old) };
    struct present same = { .size = sizeof(same) };
    struct future newer;
    (void)state;
    assert_int_equal(wr_options_store(&old, &ours, sizeof(ours)), 0);
    assert_int_equal(old.size, sizeof(old));
    assert_int_equal(old.a, 1);

    assert_int_equal(wr_options_store(&same, &ours, sizeof(ours)), 0);
    assert_memory_equal(&same, &ours, sizeof(ours));

    memset(&newer, 0xff, sizeof(newer));
    newer.size = sizeof(newer);
    assert_int_equal(wr_options_store(&newer, &ours, sizeof(ours)), 0);
    assert_int_equal(newer.size, sizeof(newer));
    assert_int_equal(newer.b, 2);
    assert_int_equal(newer.more[0] | newer.more[1], 0);
}

static void test_figures_need_a_place_with_a_size(void **state)
{
    const struct present ours = { .size = sizeof(ours), .a = 1 };
    struct present theirs = { .size = 0, .a = 5 };
    (void)state;
    assert_int_equal(wr_options_store(NULL, &ours, sizeof(ours)), WEIR_EINVAL);
    for (; theirs.size < sizeof(size_t); theirs.size++)
        assert_int_equal(wr_options_store(&theirs, &ours, sizeof(ours)), WEIR_EINVAL);
    assert_int_equal(theirs.a, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_options_are_all_defaults),
        cmocka_unit_test(test_options_of_the_same_age_are_copied),
        cmocka_unit_test(test_fields_an_older_caller_did_not_know_are_zero),
        cmocka_unit_test(test_a_size_field_alone_is_enough),
        cmocka_unit_test(test_a_size_too_small_for_itself_is_refused),
        cmocka_unit_test(test_fields_a_newer_caller_left_alone_do_not_matter),
        cmocka_unit_test(test_any_byte_a_newer_caller_set_is_refused),
        cmocka_unit_test(test_figures_are_stored_as_far_as_the_caller_knows_them),
        cmocka_unit_test(test_figures_need_a_place_with_a_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
