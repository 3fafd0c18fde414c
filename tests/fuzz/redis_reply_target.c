/* Fuzzing: what a server may send, in pieces of any size. Whatever comes, it is replies, not yet a reply, or an error; and all
 * that the codes and sentences are made of stays inside the reply.
 * SPDX-License-Identifier: MIT */
#include "fuzz/fuzz_target.h"
#include "redis/cluster.h"
#include "redis/conn.h"

#include <stdio.h>

const char *const fuzz_words[] = { "+OK\r\n",
                                   ":1\r\n",
                                   "$3\r\nabc\r\n",
                                   "$-1\r\n",
                                   "*2\r\n",
                                   "*0\r\n",
                                   "*-1\r\n",
                                   "-ERR\r\n",
                                   "-MOVED 1 a:1\r\n",
                                   "*1\r\n*1\r\n",
                                   "\r\n",
                                   "$",
                                   "*",
                                   "9999999",
                                   "-",
                                   ":",
                                   "%1\r\n",
                                   "~1\r\n",
                                   "$1048576\r\n",
                                   "*1048577\r\n",
                                   "message",
                                   "subscribe",
                                   "\r",
                                   "\n",
                                   NULL };

/* Looks at every byte, so that a sanitizer can. */
static size_t walk(const struct wr_reply *reply)
{
    size_t sum = (size_t)reply->integer;

    for (size_t i = 0; i < reply->size; i++)
        sum += (unsigned char)reply->text[i];
    if (reply->text && reply->text[reply->size] != '\0')
        abort();
    for (size_t i = 0; i < reply->count; i++) {
        if (!reply->items[i])
            abort();
        sum += walk(reply->items[i]);
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static volatile size_t sink;
    struct wr_wire wire;
    size_t piece = size ? data[0] % 16 + 1 : 1;
    int rc = wr_wire_init(&wire);

    for (size_t at = 0; at < size && rc >= 0; at += piece) {
        struct wr_reply *reply;
        size_t n = size - at < piece ? size - at : piece;
        rc = wr_wire_feed(&wire, (const char *)data + at, n);
        while (rc >= 0 && (rc = wr_wire_next(&reply, &wire, NULL)) == 1) {
            weir_message message;
            sink += walk(reply);
            sink += (size_t)wr_reply_code(reply, &message);
            if (reply->text)
                sink += wr_slot_of(reply->text, reply->size);
            wr_reply_free(reply);
        }
    }
    if (rc >= 0 || rc == WEIR_EPROTO || rc == WEIR_ENOMEM) {
        wr_wire_fini(&wire);
        (void)sink; /* clang takes it for unused otherwise */
        return 0;
    }
    abort();
}
