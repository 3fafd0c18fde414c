/* Commands and replies on the wire.
 * SPDX-License-Identifier: MIT */
#include "redis/wire.h"

#include "base/os.h"
#include "redis/config.h"

#include <hiredis/hiredis.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <weir/error.h>

/* ---- bytes ----------------------------------------------------------------------------------- */

enum { BYTES_FIRST = 4096, BYTES_KEPT = 1 << 20 };

int wr_bytes_append(struct wr_bytes *bytes, const char *data, size_t size)
{
    size_t room = bytes->room ? bytes->room : BYTES_FIRST;
    char *larger;

    if (size > WR_BYTES_MAX || bytes->size + size > WR_BYTES_MAX)
        return WEIR_EAGAIN;
    if (bytes->size + size > bytes->room) {
        while (room < bytes->size + size)
            room *= 2;
        larger = wr_os_alloc_raw(room);
        if (!larger)
            return WEIR_ENOMEM;
        if (bytes->size)
            memcpy(larger, bytes->data, bytes->size);
        wr_os_free(bytes->data);
        bytes->data = larger;
        bytes->room = room;
    }
    memcpy(bytes->data + bytes->size, data, size);
    bytes->size += size;
    return 0;
}

void wr_bytes_clear(struct wr_bytes *bytes)
{
    bytes->at = bytes->size = 0;
    if (bytes->room > BYTES_KEPT)
        wr_bytes_free(bytes);
}

void wr_bytes_free(struct wr_bytes *bytes)
{
    wr_os_free(bytes->data);
    *bytes = (struct wr_bytes){ 0 };
}

/* ---- commands -------------------------------------------------------------------------------- */

void wr_script_init(struct wr_script *script, const char *text)
{
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned size = 0;

    script->text = text;
    /* Should OpenSSL refuse (a policy may forbid it), there is no hash, and the text is sent each time. */
    if (!EVP_Digest(text, strlen(text), hash, &size, EVP_sha1(), NULL))
        size = 0;
    script->sha[0] = '\0';
    for (size_t i = 0; i < size && i < 20; i++)
        snprintf(script->sha + i * 2, 3, "%02x", hash[i]);
}

size_t wr_command_size(const struct wr_command *command, int word)
{
    return command->sizes ? command->sizes[word] : strlen(command->words[word]);
}

const char *wr_command_key(const struct wr_command *command, size_t *size)
{
    int word = command->script ? 0 : command->key;

    *size = 0;
    if (command->script ? command->keys < 1 : command->key < 1 || command->key >= command->count)
        return NULL;
    *size = wr_command_size(command, word);
    return command->words[word];
}

static int format(struct wr_bytes *out, int count, const char **words, const size_t *sizes)
{
    char *text = NULL;
    long long size = redisFormatCommandArgv(&text, count, words, sizes); /* int before 1.0 */
    int rc;

    if (size < 0 || !text)
        return WEIR_ENOMEM;
    rc = wr_bytes_append(out, text, (size_t)size);
    redisFreeCommand(text);
    return rc;
}

int wr_command_format(struct wr_bytes *out, const struct wr_command *command, bool full,
                      bool asking)
{
    enum { FEW = 32 };
    const char *few_words[FEW], **words = few_words;
    size_t few_sizes[FEW], *sizes = few_sizes, was = out->size;
    int extra = command->script ? 3 : 0, count = command->count + extra, rc = 0;
    char keys[16];

    if (command->count < 1 - extra || command->count > WR_COMMAND_WORDS ||
        (extra && (command->keys < 0 || command->keys > command->count)))
        return WEIR_EINVAL;
    if (count > FEW) {
        words = wr_os_alloc_raw((size_t)count * (sizeof(*words) + sizeof(*sizes)));
        if (!words)
            return WEIR_ENOMEM;
        sizes = (size_t *)(words + count);
    }
    if (extra) {
        full = full || !command->script->sha[0];
        snprintf(keys, sizeof(keys), "%d", command->keys);
        words[0] = full ? "EVAL" : "EVALSHA";
        words[1] = full ? command->script->text : command->script->sha;
        words[2] = keys;
        for (int i = 0; i < extra; i++)
            sizes[i] = strlen(words[i]);
    }
    for (int i = 0; i < command->count; i++) {
        words[extra + i] = command->words[i];
        sizes[extra + i] = wr_command_size(command, i);
    }
    if (asking)
        rc = format(out, 1, &(const char *){ "ASKING" }, &(size_t){ 6 });
    if (!rc)
        rc = format(out, count, words, sizes);
    if (rc)
        out->size = was;
    if (words != few_words)
        wr_os_free(words);
    return rc;
}

struct wr_command *wr_command_copy(const struct wr_command *command)
{
    size_t count = (size_t)command->count, bytes = 0;
    struct wr_command *copy;
    const char **words;
    size_t *sizes;
    char *text;

    for (int i = 0; i < command->count; i++)
        bytes += wr_command_size(command, i) + 1;
    copy = wr_os_alloc_raw(sizeof(*copy) + count * (sizeof(*words) + sizeof(*sizes)) + bytes);
    if (!copy)
        return NULL;
    *copy = *command;
    words = (const char **)(copy + 1);
    sizes = (size_t *)(words + count);
    text = (char *)(sizes + count);
    for (int i = 0; i < command->count; i++) {
        sizes[i] = wr_command_size(command, i);
        memcpy(text, command->words[i], sizes[i]);
        text[sizes[i]] = '\0';
        words[i] = text;
        text += sizes[i] + 1;
    }
    copy->words = words;
    copy->sizes = sizes;
    return copy;
}

/* ---- replies --------------------------------------------------------------------------------- */

void wr_reply_free(struct wr_reply *reply)
{
    if (!reply)
        return;
    for (size_t i = 0; i < reply->count; i++)
        wr_reply_free(reply->items[i]); /* no deeper than WR_REPLY_DEPTH */
    wr_os_free(reply);
}

bool wr_reply_is_error(const struct wr_reply *reply, const char *word)
{
    size_t size = strlen(word);

    return reply && reply->type == WR_REPLY_ERROR && reply->size >= size &&
           !memcmp(reply->text, word, size) && (reply->size == size || reply->text[size] == ' ');
}

/* One piece of memory per reply: what it points to lies behind it. */
static struct wr_reply *make(const redisReadTask *task, enum wr_reply_type type, size_t behind)
{
    struct wr_reply *reply = wr_os_alloc_raw(sizeof(*reply) + behind);

    if (!reply)
        return NULL;
    *reply = (struct wr_reply){ .type = type };
    if (task->parent)
        ((struct wr_reply *)task->parent->obj)->items[task->idx] = reply;
    return reply;
}

static void *make_text(const redisReadTask *task, char *text, size_t size)
{
    enum wr_reply_type type = task->type == REDIS_REPLY_ERROR    ? WR_REPLY_ERROR
                              : task->type == REDIS_REPLY_STATUS ? WR_REPLY_STATUS
                                                                 : WR_REPLY_STRING;
    struct wr_reply *reply = make(task, type, size + 1);

    if (!reply)
        return NULL;
    reply->text = (char *)(reply + 1);
    reply->size = size;
    memcpy(reply->text, text, size);
    reply->text[size] = '\0';
    return reply;
}

#if HIREDIS_MAJOR >= 1
static void *make_array(const redisReadTask *task, size_t count)
#else
static void *make_array(const redisReadTask *task, int count)
#endif
{
    size_t items = (size_t)count;
    struct wr_reply *reply;
    int depth = 0;

    for (const redisReadTask *outer = task->parent; outer; outer = outer->parent)
        depth++; /* 1.x sets no bound of its own that would suit a recursive function */
    if (items > WR_REPLY_ITEMS || depth >= WR_REPLY_DEPTH)
        return NULL; /* the parser then says that it has no memory */
    reply = make(task, WR_REPLY_ARRAY, items * sizeof(reply->items[0]));
    if (!reply)
        return NULL;
    reply->items = (struct wr_reply **)(reply + 1);
    reply->count = items;
    if (items)
        memset(reply->items, 0, items * sizeof(reply->items[0]));
    return reply;
}

static void *make_integer(const redisReadTask *task, long long value)
{
    struct wr_reply *reply = make(task, WR_REPLY_INTEGER, 0);

    if (reply)
        reply->integer = value;
    return reply;
}

static void *make_nil(const redisReadTask *task)
{
    return make(task, WR_REPLY_NIL, 0);
}

static void drop(void *reply)
{
    wr_reply_free(reply);
}

/* Types that only RESP3 has are not asked for; without a function the parser would use NULL. */
#if HIREDIS_MAJOR >= 1
static void *make_double(const redisReadTask *task, double value, char *text, size_t size)
{
    (void)value;
    return make_text(task, text, size);
}

static void *make_bool(const redisReadTask *task, int value)
{
    return make_integer(task, value);
}
#endif

static redisReplyObjectFunctions functions = {
    .createString = make_text,
    .createArray = make_array,
    .createInteger = make_integer,
    .createNil = make_nil,
    .freeObject = drop,
#if HIREDIS_MAJOR >= 1
    .createDouble = make_double,
    .createBool = make_bool,
#endif
};

int wr_wire_init(struct wr_wire *wire)
{
    wire->reader = redisReaderCreateWithFunctions(&functions);
    return wire->reader ? 0 : WEIR_ENOMEM;
}

void wr_wire_fini(struct wr_wire *wire)
{
    if (wire->reader)
        redisReaderFree(wire->reader);
    wire->reader = NULL;
}

int wr_wire_feed(struct wr_wire *wire, const char *data, size_t size)
{
    if (wire->reader->len + size > WR_BYTES_MAX)
        return WEIR_EPROTO;
    return redisReaderFeed(wire->reader, data, size) == REDIS_OK ? 0 : WEIR_ENOMEM;
}

int wr_wire_next(struct wr_reply **out, struct wr_wire *wire, weir_message *message)
{
    void *reply = NULL;

    *out = NULL;
    if (redisReaderGetReply(wire->reader, &reply) != REDIS_OK) {
        bool no_memory = wire->reader->err == REDIS_ERR_OOM;
        return wr_redis_fail(WEIR_EPROTO, message, "the server sent no valid reply: %s",
                             no_memory ? "it is too large" : wire->reader->errstr);
    }
    *out = reply;
    return reply != NULL;
}
