/* Output that has to wait: a little of it in memory, the rest in one unlinked file.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_SPOOL_H
#define WR_CLI_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The file, shared by all outputs, in pieces of SPOOL_PIECE bytes that are used again and again: it grows to
 * what waits at the same time, not to what passes through. */
enum { SPOOL_PIECE = 64 * 1024 };

struct spool;

/* `directory` is where the file will be, once it is needed. */
int spool_new(struct spool **out, const char *directory);
void spool_free(struct spool *spool);

/* One stream of one command. Begins zeroed. Used by one thread at a time. */
struct spooled {
    struct spool_extent *extent; /* what lies in the file, in order       */
    size_t extents, extents_size;
    char *tail; /* what follows, in memory                */
    size_t length, size;
};

static inline bool spooled_is_empty(const struct spooled *s)
{
    return s->extents == 0 && s->length == 0;
}

/* Whether so many bytes more would still be all in memory. */
bool spooled_fits(const struct spooled *s, const struct spool *spool, size_t length);

/* Adds at most SPOOL_PIECE bytes. 0, -ENOMEM, or what the file system said (-ENOSPC). */
int spooled_add(struct spooled *s, struct spool *spool, const char *text, size_t length);

/* Nothing more is added: if memory is short, what is in memory goes to the file. */
void spooled_settle(struct spooled *s, struct spool *spool);

/* Reads on from *position (at first zero) into a buffer of SPOOL_PIECE bytes; answers how many, 0 at the end,
 * or a negated errno. */
int64_t spooled_read(const struct spooled *s, struct spool *spool, char *buffer, size_t *position);

/* Gives everything back. */
void spooled_fini(struct spooled *s, struct spool *spool);

#endif
