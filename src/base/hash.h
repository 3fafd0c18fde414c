/* A hash of texts that comes with a seed: without knowing it, nobody can make texts that collide.
 * SPDX-License-Identifier: MIT */
#ifndef WR_BASE_HASH_H
#define WR_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t wr_hash(const uint64_t seed[2], const char *text, size_t length);

#endif
