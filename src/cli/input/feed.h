/* From inputs to plans: reads records, finds their groups, fills them into the command.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_INPUT_FEED_H
#define WR_CLI_INPUT_FEED_H

#include "cli/input/record.h"
#include "cli/plan.h"

struct feed_options {
    const char *input; /* a file; NULL: standard input       */
    char separator;    /* of records: '\n' or 0               */
    bool header;       /* the first row has names             */
    bool shell, to_stdin, no_append;
    bool tagged;
    const char *group_by, *tag, *directory; /* a specification, and templates; NULL: none */
};

struct feed;

/* Opens the input, reads its header, and looks at the words of the command. 0; or an exit status, and what is wrong
 * was said. `syntax` is copied; `opt` and `words` must outlive the feed. */
int feed_open(struct feed **out, const struct feed_options *opt, const struct record_syntax *syntax,
              char **words, int stop_fd);
void feed_free(struct feed *feed);

/* As struct source has it (engine/engine.h). */
int feed_next(struct plan *out, void *feed, uint64_t seq, weir_message *message);
uint64_t feed_position(void *feed);

/* Bytes of the input; 0: not known. */
int64_t feed_size(const struct feed *feed);

/* Whether every task runs the command that is written first. */
bool feed_command_is_fixed(const struct feed *feed);

#endif
