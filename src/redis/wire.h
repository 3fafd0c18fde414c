/* Bytes on the wire: commands become bytes, bytes become replies. No sockets here; hiredis does both.
 * SPDX-License-Identifier: MIT */
#ifndef WR_REDIS_WIRE_H
#define WR_REDIS_WIRE_H

#include "redis/client.h"

#include <hiredis/read.h>

/* Bytes that wait to be written: [at, size) of data. */
struct wr_bytes {
    char *data;
    size_t at, size, room;
};

enum {
    WR_BYTES_MAX = 64 << 20,   /* most bytes that wait to be written, or that one reply may have */
    WR_REPLY_ITEMS = 1 << 20,  /* most items of one array                                        */
    WR_REPLY_DEPTH = 7,        /* most arrays inside each other, as in hiredis 0.14              */
    WR_COMMAND_WORDS = 1 << 16 /* most words of a command                                        */
};

/* WEIR_ENOMEM, or WEIR_EAGAIN: it would be more than WR_BYTES_MAX. */
int wr_bytes_append(struct wr_bytes *bytes, const char *data, size_t size);
void wr_bytes_clear(struct wr_bytes *bytes); /* keeps its room, unless that is large */
void wr_bytes_free(struct wr_bytes *bytes);

/* Appends a command. `full` sends a script's text rather than its hash; `asking` puts ASKING before. */
int wr_command_format(struct wr_bytes *out, const struct wr_command *command, bool full,
                      bool asking);

/* A copy in one piece of memory, scripts excepted, to be freed with wr_os_free. NULL without memory. */
struct wr_command *wr_command_copy(const struct wr_command *command);

/* The key that says where the command goes, or NULL: anywhere. */
const char *wr_command_key(const struct wr_command *command, size_t *size);

size_t wr_command_size(const struct wr_command *command, int word);

/* The parser of replies. */
struct wr_wire {
    redisReader *reader;
};

int wr_wire_init(struct wr_wire *wire);
void wr_wire_fini(struct wr_wire *wire);

/* Feeds bytes to the parser. WEIR_ENOMEM, WEIR_EPROTO. After an error the stream is of no use any more. */
int wr_wire_feed(struct wr_wire *wire, const char *data, size_t size);

/* The next reply that is complete: 1; 0: there is none yet; WEIR_EPROTO: the bytes are not a reply, and `message` (may be NULL)
 * says what is wrong with it. */
int wr_wire_next(struct wr_reply **out, struct wr_wire *wire, weir_message *message);

#endif
