/* Several records per command: batches, one per group at a time.
 *
 * Each record is filled into the command by itself; a batch is put together of these plans: a word with a placeholder
 * of the record stands once per record.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_INPUT_BATCH_H
#define WR_CLI_INPUT_BATCH_H

#include "cli/input/feed.h"

struct batches;

/* `repeats`: by word of the command, whether it stands once per record. Copied. */
int batches_new(struct batches **out, const struct feed_options *opt, const bool *repeats,
                size_t words);
void batches_free(struct batches *batches);

/* Adds a plan of one record, which is used up. WEIR_ENOMEM. */
int batches_add(struct batches *batches, struct plan *plan);

/* Takes out a batch that is complete; with `all`, any. 1, and *out is its plan; 0: there is none; WEIR_ENOMEM. */
int batches_take(struct plan *out, struct batches *batches, bool all);

/* Whether no batch is left, complete or not. */
bool batches_are_empty(const struct batches *batches);

#endif
