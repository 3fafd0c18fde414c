/* Bytes in, numbers out: what the fuzzer decides by.
 *
 * All actors read the same bytes, each from a place of its own, so that what one does never depends on how
 * far another has got. Past the end the input goes on with zeros.
 * SPDX-License-Identifier: MIT */
#ifndef WR_FUZZ_INPUT_H
#define WR_FUZZ_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct input {
    const uint8_t *bytes;
    size_t size, at;
};

static inline uint8_t take_byte(struct input *in)
{
    return in->at < in->size ? in->bytes[in->at++] : 0;
}

static inline bool input_is_over(const struct input *in)
{
    return in->at >= in->size;
}

static inline uint64_t take_number(struct input *in, int bytes)
{
    uint64_t number = 0;

    for (int i = 0; i < bytes; i++)
        number |= (uint64_t)take_byte(in) << 8 * i;
    return number;
}

/* 0 to limit - 1; 0 once the input is over. `limit` is 256 at most. */
static inline uint32_t take_below(struct input *in, uint32_t limit)
{
    return take_byte(in) % limit;
}

/* From `low` to `high`. */
static inline uint32_t take_between(struct input *in, uint32_t low, uint32_t high)
{
    return low + take_below(in, high - low + 1);
}

/* True once in so many times; never once the input is over. */
static inline bool take_chance(struct input *in, uint32_t once_in)
{
    return take_below(in, once_in) == once_in - 1;
}

/* A reader of the same bytes from another place. */
static inline struct input take_branch(struct input *in)
{
    size_t at = (size_t)take_number(in, 2);

    return (
        struct input){ .bytes = in->bytes, .size = in->size, .at = in->size ? at % in->size : 0 };
}

#endif
