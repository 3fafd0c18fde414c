/* A hash of texts that comes with a seed: who does not know the seed cannot choose texts that collide. It is no cipher: whoever
 * sees hashes may find the seed, so they are not to be shown.
 * SPDX-License-Identifier: MIT */
#ifndef WR_BASE_HASH_H
#define WR_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t wr_hash(const uint64_t seed[2], const char *text, size_t length);

#endif
