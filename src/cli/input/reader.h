/* Records from a descriptor, one at a time, as they arrive.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_READER_H
#define WR_CLI_READER_H

#include "cli/input/record.h"

enum { READER_RECORD_MAX = 64 << 20 }; /* bytes; longer ones are refused, not kept in memory */

struct reader;

/* Reads from fd, which stays the caller's. `name` is what messages call it ("standard input"); it is
 * copied. `separator` ends a record: '\n', or 0. Of `syntax` only form and delimiter are looked at; it
 * must outlive the reader. `stop_fd`: becoming readable ends a wait for input; -1: none. */
int reader_new(struct reader **out, int fd, const char *name, char separator,
               const struct record_syntax *syntax, int stop_fd);

/* Plain lines end with this text instead of the separator; it must outlive the reader. */
void reader_set_end(struct reader *reader, const char *text, size_t length);

/* The next record, not split yet: 1, and the caller owns it (record_fini); 0 at the end of the input.
 * WEIR_ECANCELED: stop_fd was readable when more input was needed; nothing is lost by asking again.
 * WEIR_EINVAL (a record too long) or another negative errno (a read failed): with a sentence. WEIR_ENOMEM.
 *
 * A last line without its end counts. In CSV a quoted field may span lines. CSV, TSV and JSONL skip empty
 * lines, a \r before the \n and a byte order mark at the beginning; FORM_LINES keeps every byte. */
int reader_next(struct record *out, struct reader *reader, weir_message *message);

/* How much of the input the records so far took, for estimates of what is left. */
uint64_t reader_bytes(const struct reader *reader);

void reader_free(struct reader *reader);

#endif
