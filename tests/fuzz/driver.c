/* Drives a fuzzing target with inputs made of its words and of random bytes, a bounded count of them.
 * WEIR_SEED= replays, WEIR_FUZZ_COUNT= says how many.
 * SPDX-License-Identifier: MIT */
#include "fuzz/fuzz_target.h"
#include "support/sanitized.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUT_MAX = 600, COUNT = SANITIZED ? 10000 : 20000 };

static uint64_t state;

static uint64_t luck(uint64_t below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state >> 33) % below;
}

/* Appends a word, or a random byte; answers the new length. */
static size_t add(uint8_t *input, size_t length, size_t words)
{
    const char *word = fuzz_words[luck(words)];
    size_t n = strlen(word);

    if (luck(4) == 0 || length + n > INPUT_MAX) {
        if (length < INPUT_MAX)
            input[length++] = (uint8_t)luck(256);
        return length;
    }
    memcpy(input + length, word, n);
    return length + n;
}

int main(void)
{
    const char *seed = getenv("WEIR_SEED"), *count = getenv("WEIR_FUZZ_COUNT");
    long rounds = count ? atol(count) : COUNT;
    size_t words = 0;

    state = seed ? strtoull(seed, NULL, 0) : 1;
    while (fuzz_words[words])
        words++;
    for (long i = 0; i < rounds; i++) {
        uint8_t input[INPUT_MAX], *exact;
        size_t length = 0;
        for (uint64_t pieces = luck(30); pieces > 0; pieces--)
            length = add(input, length, words);
        exact = malloc(length ? length : 1); /* so that a byte too far is noticed */
        if (!exact)
            return 1;
        memcpy(exact, input, length);
        LLVMFuzzerTestOneInput(exact, length);
        free(exact);
    }
    fprintf(stderr, "%ld inputs\n", rounds);
    return 0;
}
