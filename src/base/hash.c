/* SipHash-1-3: J.-P. Aumasson and D. J. Bernstein's SipHash with one compression and three finalisation rounds, written
 * down from its specification.
 * SPDX-License-Identifier: MIT */
#include "base/hash.h"

#include <string.h>

static uint64_t rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[0] = rotate(v[0], 32);
    v[2] += v[3];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
}

static void sip_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
}

uint64_t wr_hash(const uint64_t seed[2], const char *text, size_t length)
{
    uint64_t v[4] = { seed[0] ^ 0x736f6d6570736575u, seed[1] ^ 0x646f72616e646f6du,
                      seed[0] ^ 0x6c7967656e657261u, seed[1] ^ 0x7465646279746573u };
    uint64_t word, last = (uint64_t)length << 56;
    size_t at = 0;

    for (; at + 8 <= length; at += 8) {
        memcpy(&word, text + at, 8);
        sip_word(v, word);
    }
    for (size_t i = at; i < length; i++)
        last |= (uint64_t)(unsigned char)text[i] << 8 * (i - at);
    sip_word(v, last);
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
