/* SipHash-1-3: J.-P. Aumasson and D. J. Bernstein's SipHash with one compression and three finalisation rounds, written
 * down from its specification.
 * SPDX-License-Identifier: MIT */
#include "base/hash.h"

#include <string.h>

struct state {
    uint64_t a, b, c, d;
};

static inline uint64_t rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

/* By value: so the state stays in registers. */
static inline __attribute__((always_inline)) struct state sip_round(struct state s)
{
    s.a += s.b;
    s.b = rotate(s.b, 13) ^ s.a;
    s.a = rotate(s.a, 32);
    s.c += s.d;
    s.d = rotate(s.d, 16) ^ s.c;
    s.a += s.d;
    s.d = rotate(s.d, 21) ^ s.a;
    s.c += s.b;
    s.b = rotate(s.b, 17) ^ s.c;
    s.c = rotate(s.c, 32);
    return s;
}

static inline struct state sip_word(struct state s, uint64_t word)
{
    s.d ^= word;
    s = sip_round(s);
    s.a ^= word;
    return s;
}

/* The last bytes, fewer than eight, in the order in which eight would be loaded on a little-endian machine. */
static inline uint64_t rest_of(const char *text, size_t length)
{
    uint64_t rest = 0;

    for (size_t i = 0; i < length; i++)
        rest |= (uint64_t)(unsigned char)text[i] << 8 * i;
    return rest;
}

uint64_t wr_hash(const uint64_t seed[2], const char *text, size_t length)
{
    struct state s = { seed[0] ^ 0x736f6d6570736575u, seed[1] ^ 0x646f72616e646f6du,
                       seed[0] ^ 0x6c7967656e657261u, seed[1] ^ 0x7465646279746573u };
    uint64_t word, last = (uint64_t)length << 56;

    for (; length >= 8; length -= 8, text += 8) {
        memcpy(&word, text, 8);
        s = sip_word(s, word);
    }
    s = sip_word(s, last | rest_of(text, length));
    s.c ^= 0xff;
    s = sip_round(sip_round(sip_round(s)));
    return s.a ^ s.b ^ s.c ^ s.d;
}
