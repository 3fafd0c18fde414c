/* Records from all inputs of a run: files one after the other, or lists of the command line; shuffled if asked.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_INPUT_RECORDS_H
#define WR_CLI_INPUT_RECORDS_H

#include "cli/input/feed.h"

struct records;

/* Opens the first input and reads the header into `syntax`. 0, or an exit status, and what is wrong was said. Both
 * must outlive it. */
int records_open(struct records **out, const struct feed_options *opt, struct record_syntax *syntax,
                 int stop_fd);
void records_free(struct records *records);

/* As reader_next; a sentence names the file if there are several. */
int records_next(struct record *out, struct records *records, weir_message *message);

/* Whether not even a header came, so that no name can be looked for. */
bool records_are_none(const struct records *records);

uint64_t records_position(const struct records *records);
int64_t records_size(const struct records *records);

/* Whether all records were taken, as far as that is known without reading: never for a pipe. */
bool records_are_used_up(const struct records *records);

int records_input(const struct records *records, size_t index, uint64_t *device, uint64_t *inode);

#endif
