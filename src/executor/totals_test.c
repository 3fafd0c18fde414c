/* Tests of the archive of totals: by key, and bounded.
 * SPDX-License-Identifier: MIT */
#include "executor/totals.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const struct wr_totals one = { .generations = 1,
                                      .submitted = 2,
                                      .started = 3,
                                      .succeeded = 4,
                                      .failed = 5,
                                      .cancelled = 6,
                                      .rejected = 7,
                                      .timed_out = 8,
                                      .waited_ns = 9,
                                      .ran_ns = 10 };

static struct wr_key key_of(const char *text, uint32_t hash)
{
    return (struct wr_key){ text, strlen(text), hash };
}

static uint64_t generations_of(struct wr_archive *archive, const char *text)
{
    struct wr_key key = key_of(text, (uint32_t)text[0] % 3);
    struct wr_totals totals = { 0 };

    wr_archive_sum(&totals, archive, &key);
    return totals.generations;
}

static void add(struct wr_archive *archive, const char *text)
{
    struct wr_key key = key_of(text, (uint32_t)text[0] % 3); /* few hashes: chains */

    wr_archive_add(archive, &key, &one);
}

static void test_every_figure_is_added(void **state)
{
    struct wr_totals sum = one;

    (void)state;
    wr_totals_add(&sum, &one);
    assert_int_equal(sum.generations, 2);
    assert_int_equal(sum.submitted, 4);
    assert_int_equal(sum.started, 6);
    assert_int_equal(sum.succeeded, 8);
    assert_int_equal(sum.failed, 10);
    assert_int_equal(sum.cancelled, 12);
    assert_int_equal(sum.rejected, 14);
    assert_int_equal(sum.timed_out, 16);
    assert_int_equal(sum.waited_ns, 18);
    assert_int_equal(sum.ran_ns, 20);
}

static void test_beyond_the_most_the_key_that_went_first_is_folded(void **state)
{
    struct wr_archive archive = { 0 };

    (void)state;
    wr_archive_init(&archive, 3);
    add(&archive, "a");
    add(&archive, "b");
    add(&archive, "c");
    add(&archive, "a"); /* is the newest now */
    add(&archive, "d");
    assert_int_equal(generations_of(&archive, "a"), 2);
    assert_int_equal(generations_of(&archive, "b"), 0);
    assert_int_equal(generations_of(&archive, "c"), 1);
    assert_int_equal(generations_of(&archive, "d"), 1);
    assert_int_equal(archive.other.generations, 1);
    add(&archive, "b"); /* starts anew */
    assert_int_equal(generations_of(&archive, "b"), 1);
    assert_int_equal(generations_of(&archive, "c"), 0);
    assert_int_equal(archive.other.generations, 2);
    assert_int_equal(archive.other.ran_ns, 20);
    assert_int_equal(archive.map.count, 3);
    wr_archive_fini(&archive);
}

static void test_many_keys_are_found_again(void **state)
{
    struct wr_archive archive = { 0 };
    struct wr_key key;
    char text[16];

    (void)state;
    wr_archive_init(&archive, 800);
    for (uint32_t i = 0; i < 1000; i++) {
        snprintf(text, sizeof(text), "key %u", i);
        key = key_of(text, i * 7);
        wr_archive_add(&archive, &key, &one);
    }
    for (uint32_t i = 0; i < 1000; i++) {
        struct wr_totals totals = { 0 };
        snprintf(text, sizeof(text), "key %u", i);
        key = key_of(text, i * 7);
        wr_archive_sum(&totals, &archive, &key);
        assert_int_equal(totals.generations, i >= 200);
    }
    assert_int_equal(archive.map.count, 800);
    assert_int_equal(archive.other.generations, 200);
    wr_archive_fini(&archive);
}

static void test_an_archive_that_keeps_none_takes_no_memory(void **state)
{
    struct wr_archive archive = { 0 };

    (void)state;
    wr_archive_init(&archive, 0);
    add(&archive, "a");
    assert_int_equal(generations_of(&archive, "a"), 0);
    assert_int_equal(archive.map.size, 1); /* which lies in the archive */
    assert_int_equal(archive.map.count, 0);
    wr_archive_fini(&archive);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_figure_is_added),
        cmocka_unit_test(test_beyond_the_most_the_key_that_went_first_is_folded),
        cmocka_unit_test(test_many_keys_are_found_again),
        cmocka_unit_test(test_an_archive_that_keeps_none_takes_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
