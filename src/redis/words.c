/* Words of script calls; see words.h.
 * SPDX-License-Identifier: MIT */
#include "redis/words.h"

#include "base/os.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void wr_words_init(struct wr_words *words)
{
    words->word = words->word_inline;
    words->size = words->size_inline;
    words->digits = words->digits_inline;
    words->count = words->numbers = 0;
    words->room = words->numbers_room = WR_WORDS_INLINE;
    words->failed = false;
}

void wr_words_fini(struct wr_words *words)
{
    if (words->word != words->word_inline) {
        wr_os_free(words->word);
        wr_os_free(words->size);
    }
    if (words->digits != words->digits_inline)
        wr_os_free(words->digits);
}

static bool grow_words(struct wr_words *words)
{
    size_t room = 2 * (size_t)words->room;
    const char **word = wr_os_alloc_raw(room * sizeof(*word));
    size_t *size = wr_os_alloc_raw(room * sizeof(*size));

    if (!word || !size) {
        wr_os_free(word);
        wr_os_free(size);
        return false;
    }
    memcpy(word, words->word, (size_t)words->count * sizeof(*word));
    memcpy(size, words->size, (size_t)words->count * sizeof(*size));
    if (words->word != words->word_inline) {
        wr_os_free(words->word);
        wr_os_free(words->size);
    }
    words->word = word;
    words->size = size;
    words->room = (int)room;
    return true;
}

/* Digits move when they grow: words that point to them move along. */
static bool grow_digits(struct wr_words *words)
{
    size_t room = 2 * (size_t)words->numbers_room;
    char(*digits)[24] = wr_os_alloc_raw(room * sizeof(*digits));
    char *from = (char *)words->digits, *end = (char *)(words->digits + words->numbers);

    if (!digits)
        return false;
    memcpy(digits, words->digits, (size_t)words->numbers * sizeof(*digits));
    for (int i = 0; i < words->count; i++)
        if (words->word[i] >= from && words->word[i] < end)
            words->word[i] = (char *)digits + (words->word[i] - from);
    if (words->digits != words->digits_inline)
        wr_os_free(words->digits);
    words->digits = digits;
    words->numbers_room = (int)room;
    return true;
}

void wr_words_bytes(struct wr_words *words, const char *bytes, size_t size)
{
    if (words->failed || (words->count == words->room && !grow_words(words))) {
        words->failed = true;
        return;
    }
    words->word[words->count] = bytes;
    words->size[words->count++] = size;
}

void wr_words_add(struct wr_words *words, const char *text)
{
    wr_words_bytes(words, text, strlen(text));
}

void wr_words_number(struct wr_words *words, int64_t number)
{
    char *at;

    if (words->failed || (words->numbers == words->numbers_room && !grow_digits(words))) {
        words->failed = true;
        return;
    }
    at = words->digits[words->numbers++];
    wr_words_bytes(words, at, (size_t)snprintf(at, sizeof(words->digits[0]), "%" PRId64, number));
}

struct wr_command wr_words_command(const struct wr_words *words, const struct wr_script *script,
                                   int keys)
{
    return (struct wr_command){ .script = script,
                                .keys = keys,
                                .count = words->count,
                                .words = words->word,
                                .sizes = words->size };
}

int64_t wr_reply_number(const struct wr_reply *reply, size_t at)
{
    const struct wr_reply *item;

    if (!reply || reply->type != WR_REPLY_ARRAY || at >= reply->count)
        return 0;
    item = reply->items[at];
    if (item->type == WR_REPLY_INTEGER)
        return item->integer;
    return item->type == WR_REPLY_STRING ? strtoll(item->text, NULL, 10) : 0;
}

size_t wr_reply_count(const struct wr_reply *reply, size_t at)
{
    int64_t count = wr_reply_number(reply, at);

    if (count <= 0 || at + 1 >= reply->count)
        return 0;
    return (uint64_t)count < reply->count - at - 1 ? (size_t)count : reply->count - at - 1;
}

int64_t wr_server_span(int64_t from, int64_t to)
{
    const int64_t most_us = INT64_C(315360000000000);
    int64_t span;

    if (__builtin_sub_overflow(to, from, &span))
        span = to > from ? most_us : -most_us;
    return (span > most_us ? most_us : span < -most_us ? -most_us : span) * 1000;
}

const char *wr_reply_text(const struct wr_reply *reply, size_t at)
{
    if (!reply || reply->type != WR_REPLY_ARRAY || at >= reply->count ||
        reply->items[at]->type != WR_REPLY_STRING)
        return "";
    return reply->items[at]->text;
}
