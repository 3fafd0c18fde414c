/* SPDX-License-Identifier: MIT */
#include "cli/engine/spool.h"

#include "support/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static char buffer[SPOOL_PIECE];

static struct spool *open_spool(const char *directory)
{
    struct spool *spool;

    assert_int_equal(spool_new(&spool, directory), 0);
    return spool;
}

/* Bytes that tell where they belong. */
static char byte_at(size_t i)
{
    return (char)(i % 251);
}

static void add(struct spooled *s, struct spool *spool, size_t from, size_t length)
{
    char text[SPOOL_PIECE];

    for (size_t i = 0; i < length; i++)
        text[i] = byte_at(from + i);
    assert_int_equal(spooled_add(s, spool, text, length), 0);
}

static size_t read_all(const struct spooled *s, struct spool *spool)
{
    size_t position = 0, total = 0;
    int64_t n;

    while ((n = spooled_read(s, spool, buffer, &position)) > 0) {
        for (int64_t i = 0; i < n; i++)
            assert_int_equal(buffer[i], byte_at(total + (size_t)i));
        total += (size_t)n;
    }
    assert_int_equal(n, 0);
    return total;
}

static void test_a_little_stays_in_memory(void)
{
    struct spool *spool = open_spool("/nonexistent"); /* a file would be missed */
    struct spooled s = { 0 };

    assert_true(spooled_is_empty(&s));
    assert_int_equal(read_all(&s, spool), 0);
    for (size_t i = 0; i < 100; i++)
        add(&s, spool, i * 7, 7);
    assert_false(spooled_is_empty(&s));
    assert_int_equal(read_all(&s, spool), 700);
    assert_int_equal(read_all(&s, spool), 700); /* reading takes nothing away */
    spooled_fini(&s, spool);
    assert_true(spooled_is_empty(&s));
    spool_free(spool);
}

static void test_much_goes_to_a_file_and_comes_back_in_order(void)
{
    struct spool *spool = open_spool("/tmp");
    struct spooled a = { 0 }, b = { 0 };
    size_t in_a = 0, in_b = 0;

    for (size_t i = 0; i < 300; i++) {
        size_t n = 1 + i * 7919 % SPOOL_PIECE;
        add(&a, spool, in_a, n);
        in_a += n;
        add(&b, spool, in_b, n / 2);
        in_b += n / 2;
    }
    assert_int_equal(read_all(&a, spool), in_a);
    assert_int_equal(read_all(&b, spool), in_b);
    spooled_fini(&a, spool);
    assert_int_equal(read_all(&b, spool), in_b);
    add(&a, spool, 0, SPOOL_PIECE); /* in a's former place */
    add(&a, spool, SPOOL_PIECE, SPOOL_PIECE);
    assert_int_equal(read_all(&a, spool), 2 * SPOOL_PIECE);
    assert_int_equal(read_all(&b, spool), in_b);
    spooled_fini(&a, spool);
    spooled_fini(&b, spool);
    spool_free(spool);
}

static void test_no_room_for_the_file_is_said_and_nothing_is_lost_that_was_there(void)
{
    struct spool *spool = open_spool("/nonexistent");
    struct spooled s = { 0 };

    add(&s, spool, 0, SPOOL_PIECE);
    assert_int_equal(spooled_add(&s, spool, "x", 1), -ENOENT);
    assert_int_equal(read_all(&s, spool), SPOOL_PIECE);
    spooled_fini(&s, spool);
    spool_free(spool);
}

/* The memory of all tails together is bounded: beyond that, tails go to the file half full. */
static void test_thousands_of_outputs_do_not_pile_up_in_memory(void)
{
    enum { OUTPUTS = 2500, EACH = 50000 };
    struct spool *spool = open_spool("/tmp");
    struct spooled *s = calloc(OUTPUTS, sizeof(*s));
    size_t in_memory = 0;

    for (size_t i = 0; i < OUTPUTS; i++) {
        for (size_t done = 0; done < EACH; done += EACH / 10)
            add(&s[i], spool, done, EACH / 10);
    }
    for (size_t i = 0; i < OUTPUTS; i++)
        in_memory += s[i].size;
    assert_true(in_memory < (size_t)80 << 20); /* of 125 MB that were written */
    for (size_t i = 0; i < OUTPUTS; i++) {
        assert_int_equal(read_all(&s[i], spool), EACH);
        spooled_fini(&s[i], spool);
    }
    free(s);
    spool_free(spool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_little_stays_in_memory),
        TEST(test_much_goes_to_a_file_and_comes_back_in_order),
        TEST(test_no_room_for_the_file_is_said_and_nothing_is_lost_that_was_there),
        TEST(test_thousands_of_outputs_do_not_pile_up_in_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
