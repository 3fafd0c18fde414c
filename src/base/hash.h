/* A hash of texts with a seed: without the seed an attacker cannot choose texts that collide. It is no cipher: the seed can be
 * found from hashes, so do not show them.
 * SPDX-License-Identifier: MIT */
#ifndef WR_BASE_HASH_H
#define WR_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t wr_hash(const uint64_t seed[2], const char *text, size_t length);

#endif
