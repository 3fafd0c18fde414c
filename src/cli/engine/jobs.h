/* How many at once: -j N, +N, N%, or a file that says so.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_ENGINE_JOBS_H
#define WR_CLI_ENGINE_JOBS_H

#include <stdbool.h>
#include <stdint.h>

/* N; +N: so many more than there are CPUs; N%: a share of them. False: none of these, or more than SLOTS_MAX. */
bool jobs_parse(int64_t *jobs, const char *text);

/* The first line of a file. */
bool jobs_from_file(int64_t *jobs, const char *path);

#endif
