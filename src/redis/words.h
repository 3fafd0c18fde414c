/* The words of a script call: keys first, then arguments, built up one after the other.
 * SPDX-License-Identifier: MIT */
#ifndef WR_REDIS_WORDS_H
#define WR_REDIS_WORDS_H

#include "redis/client.h"

enum { WR_WORDS_INLINE = 32 };

/* On the stack of its user, from _init to _fini. Few short words need no memory of their own. */
struct wr_words {
    const char **word;
    size_t *size;
    int count, room;
    bool failed; /* there was no memory: the call is not made */
    const char *word_inline[WR_WORDS_INLINE];
    size_t size_inline[WR_WORDS_INLINE];
    char digits_inline[WR_WORDS_INLINE][24];
    char (*digits)[24];
    int numbers, numbers_room;
};

void wr_words_init(struct wr_words *words);
void wr_words_fini(struct wr_words *words);
void wr_words_add(struct wr_words *words, const char *text); /* not copied: kept until _fini */
void wr_words_bytes(struct wr_words *words, const char *bytes, size_t size);
void wr_words_number(struct wr_words *words, int64_t number);

/* The call of that script, `keys` of the words being keys. Good until _fini. */
struct wr_command wr_words_command(const struct wr_words *words, const struct wr_script *script,
                                   int keys);

/* Item `at` of an array as a number: integers, and texts that are one. 0 if there is none. */
int64_t wr_reply_number(const struct wr_reply *reply, size_t at);

/* Item `at` as the number of items that follow: at most as many as there are. */
size_t wr_reply_count(const struct wr_reply *reply, size_t at);

/* How long it is from one time of the server (us) to another, in ns. A server may say anything: at most ten years, either
 * way. */
int64_t wr_server_span(int64_t from, int64_t to);

/* Item `at` as a text; "" if it is none. */
const char *wr_reply_text(const struct wr_reply *reply, size_t at);

#endif
