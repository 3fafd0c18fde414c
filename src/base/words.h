/* Words out of texts, wherever they begin.
 * SPDX-License-Identifier: MIT */
#ifndef WR_BASE_WORDS_H
#define WR_BASE_WORDS_H

#include <stdint.h>
#include <string.h>

static inline uint64_t wr_word8(const char *text)
{
    uint64_t word;

    memcpy(&word, text, sizeof(word));
    return word;
}

static inline uint32_t wr_word4(const char *text)
{
    uint32_t word;

    memcpy(&word, text, sizeof(word));
    return word;
}

#endif
