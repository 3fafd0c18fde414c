/* A target for fuzzing: libFuzzer's interface, so that clang's fuzzer can drive it (-DWEIR_LIBFUZZER=ON), and
 * driver.c can, for a bounded count of inputs, with any compiler.
 * SPDX-License-Identifier: MIT */
#ifndef WR_TESTS_FUZZ_TARGET_H
#define WR_TESTS_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Pieces that random inputs are made of, NULL-ended. */
extern const char *const fuzz_words[];

/* The input as a text, for the caller to free; NULL without memory. strndup looks at one byte too many for some
 * sanitizers. */
static inline __attribute__((unused)) char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    if (!text)
        return NULL;
    memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

#endif
