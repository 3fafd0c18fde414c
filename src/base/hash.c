/* Words are taken in pairs, mixed with the seed and with what came before, and multiplied; the halves of the product are folded
 * into one another. So every bit of a pair counts for every bit of what it becomes, at the price of one multiplication.
 * SPDX-License-Identifier: MIT */
#include "base/hash.h"

#include "base/words.h"

static inline uint64_t fold(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t load1(const char *text)
{
    return (unsigned char)*text;
}

/* The last bytes, at most sixteen, as two words that overlap if they are fewer. */
static inline uint64_t fold_rest(uint64_t seed, uint64_t hash, const char *text, size_t length)
{
    const char *end = text + length;

    if (length >= 8)
        return fold(wr_word8(text) ^ seed, wr_word8(end - 8) ^ hash);
    if (length >= 4)
        return fold(wr_word4(text) ^ seed, wr_word4(end - 4) ^ hash);
    if (length > 0)
        return fold((load1(text) << 16 | load1(text + length / 2) << 8 | load1(end - 1)) ^ seed,
                    hash);
    return fold(seed, hash);
}

uint64_t wr_hash(const uint64_t seed[2], const char *text, size_t length)
{
    uint64_t hash = seed[0] ^ length;

    for (; length > 16; length -= 16, text += 16)
        hash = fold(wr_word8(text) ^ seed[1], wr_word8(text + 8) ^ hash);
    hash = fold_rest(seed[1], hash, text, length);
    return fold(hash ^ 0x9e3779b97f4a7c15u, seed[0] ^ 0xd1342543de82ef95u);
}
