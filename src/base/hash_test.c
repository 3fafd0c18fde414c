/* Tests of the hash: texts of all lengths differ, and so do seeds.
 * SPDX-License-Identifier: MIT */
#include "base/hash.h"

#include "support/check.h"

#include <string.h>

static const uint64_t seed[2] = { 0x0706050403020100, 0x0f0e0d0c0b0a0908 };

static void test_each_byte_and_the_length_count(void)
{
    char text[33] = { 0 };
    uint64_t hash[33 * 9];
    size_t count = 0;

    for (size_t length = 0; length <= 32; length++)
        hash[count++] = wr_hash(seed, text, length); /* zeros, more of them each time */
    for (size_t bit = 0; bit < 32 * 8; bit++) {
        text[bit / 8] = (char)(1 << bit % 8);
        hash[count++] = wr_hash(seed, text, 32);
        text[bit / 8] = 0;
    }
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++)
            assert_true(hash[i] != hash[k]);
}

static void test_the_seed_counts(void)
{
    const uint64_t other[2] = { seed[0], seed[1] ^ 1 }, another[2] = { seed[0] ^ 1, seed[1] };

    assert_true(wr_hash(seed, "key", 3) == wr_hash(seed, "key", 3));
    assert_true(wr_hash(seed, "key", 3) != wr_hash(other, "key", 3));
    assert_true(wr_hash(seed, "key", 3) != wr_hash(another, "key", 3));
}

/* 64 seeds flip 32 bits each on average; 160 is five standard deviations of their sum. */
static void test_one_bit_of_the_text_flips_half_of_the_hash(void)
{
    static const size_t lengths[] = { 1, 2, 3, 4, 7, 8, 9, 16, 17, 33, 48 };
    enum { SEEDS = 64 };

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
        for (size_t bit = 0; bit < lengths[i] * 8; bit++) {
            int flipped = 0;
            for (uint64_t n = 1; n <= SEEDS; n++) {
                uint64_t seeds[2] = { n * 0x9e3779b97f4a7c15, n * 0xbf58476d1ce4e5b9 }, hash;
                char text[48] = "a key as long as keys are and then some more...";
                hash = wr_hash(seeds, text, lengths[i]);
                text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
                flipped += __builtin_popcountll(hash ^ wr_hash(seeds, text, lengths[i]));
            }
            assert_in_range(flipped, 32 * SEEDS - 160, 32 * SEEDS + 160);
        }
}

/* Both ends are used: the upper bits for a shard, the lower ones for a bucket. */
static void test_upper_and_lower_bits_spread_evenly(void)
{
    enum { TEXTS = 64 * 1000, PLACES = 64 };
    int low[PLACES] = { 0 }, high[PLACES] = { 0 };
    char text[16];

    for (int i = 0; i < TEXTS; i++) {
        size_t length = (size_t)snprintf(text, sizeof(text), "g%d", i);
        uint32_t hash = (uint32_t)wr_hash(seed, text, length);
        low[hash % PLACES]++;
        high[hash >> 26]++;
    }
    for (int i = 0; i < PLACES; i++) /* 1000 each, give or take five standard deviations */
        assert_true(low[i] > 840 && low[i] < 1160 && high[i] > 840 && high[i] < 1160);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_each_byte_and_the_length_count),
        TEST(test_the_seed_counts),
        TEST(test_one_bit_of_the_text_flips_half_of_the_hash),
        TEST(test_upper_and_lower_bits_spread_evenly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
