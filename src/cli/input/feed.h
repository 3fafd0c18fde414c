/* From inputs to plans: reads records, finds their groups, fills them into the command.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_INPUT_FEED_H
#define WR_CLI_INPUT_FEED_H

#include "cli/input/record.h"
#include "cli/plan.h"

struct feed_options {
    const char *const *inputs; /* files, read one after the other; "-" is standard input */
    size_t input_count;        /* 0: standard input                  */
    bool stdin_is_closed;
    char **lists;           /* from ::: on; NULL: none            */
    char separator;         /* of records: '\n' or 0              */
    const char *record_end; /* of several bytes; NULL: the separator */
    size_t record_end_length;
    bool header; /* the first row has names            */
    bool shell, to_stdin, no_append;
    bool shuffle; /* all records are read first         */
    bool tagged;
    bool keep_records;    /* plans tell what stood in the input */
    bool identify;        /* plans tell what the journal knows them as */
    size_t batch_records; /* records per command; 0: one, or as many as fit */
    bool batch_fit;       /* as many as fit into a command line */
    bool whole_stream;    /* commands together get the input, byte by byte: --pipe */
    size_t batch_bytes;   /* as many as make so many bytes of standard input; 0: no */
    const char *group_by, *tag, *directory; /* a specification, and templates; NULL: none */
};

/* What ends a record, as it stands in the input. */
static inline struct span feed_record_end(const struct feed_options *opt)
{
    return opt->record_end ? (struct span){ opt->record_end, opt->record_end_length }
                           : (struct span){ &opt->separator, opt->separator ? 1 : 0 };
}

/* Whether a command takes several records. */
static inline bool feed_batches(const struct feed_options *opt)
{
    return opt->batch_records > 1 || opt->batch_fit || opt->batch_bytes;
}

struct feed;

/* Opens the inputs, reads the header, and looks at the words of the command. 0; or an exit status, and what is wrong
 * was said. `syntax` is copied; `opt` and `words` must outlive the feed. */
int feed_open(struct feed **out, const struct feed_options *opt, const struct record_syntax *syntax,
              char **words, int stop_fd);
void feed_free(struct feed *feed);

/* As struct source has it (engine/engine.h). */
int feed_next(struct plan *out, void *feed, uint64_t seq, weir_message *message);
uint64_t feed_position(void *feed);
bool feed_is_used_up(void *feed);

/* Bytes of the input, or tasks from lists; 0: not known. */
int64_t feed_size(const struct feed *feed);

/* The files that are read, as device and inode; -1: no such one. */
int feed_input(const struct feed *feed, size_t index, uint64_t *device, uint64_t *inode);

/* Whether every task runs the command that is written first. */
bool feed_command_is_fixed(const struct feed *feed);

#endif
