/* The table of groups: SipHash-1-3 over the key, chains, doubling.
 *
 * The hash is J.-P. Aumasson and D. J. Bernstein's SipHash with one compression and three finalisation
 * rounds, written down from its specification: keyed, so that nobody who does not know the seed can
 * make keys that share a chain.
 * SPDX-License-Identifier: MIT */
#include "executor/table.h"

#include "base/os.h"
#include "executor/group.h"

#include <string.h>
#include <weir/error.h>

enum { FIRST_SIZE = 64 };

static uint64_t rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[0] = rotate(v[0], 32);
    v[2] += v[3];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
}

static void sip_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
}

uint64_t wr_table_hash(const struct wr_table *table, const char *key, size_t length)
{
    uint64_t v[4] = { table->seed[0] ^ 0x736f6d6570736575u, table->seed[1] ^ 0x646f72616e646f6du,
                      table->seed[0] ^ 0x6c7967656e657261u, table->seed[1] ^ 0x7465646279746573u };
    uint64_t word, last = (uint64_t)length << 56;
    size_t at = 0;

    for (; at + 8 <= length; at += 8) {
        memcpy(&word, key + at, 8);
        sip_word(v, word);
    }
    for (size_t i = at; i < length; i++)
        last |= (uint64_t)(unsigned char)key[i] << 8 * (i - at);
    sip_word(v, last);
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

int wr_table_init(struct wr_table *table)
{
    table->seed[0] = wr_os_random();
    table->seed[1] = wr_os_random();
    table->bucket = wr_os_alloc(FIRST_SIZE * sizeof(table->bucket[0]));
    table->size = table->bucket ? FIRST_SIZE : 0;
    return table->bucket ? 0 : WEIR_ENOMEM;
}

void wr_table_fini(struct wr_table *table)
{
    wr_os_free(table->bucket);
}

static struct weir_group **bucket_of(struct wr_table *table, uint64_t hash)
{
    return &table->bucket[hash & (table->size - 1)];
}

struct weir_group *wr_table_get(struct wr_table *table, uint64_t hash, const char *key)
{
    struct weir_group *group = *bucket_of(table, hash);

    while (group && (group->hash != (uint32_t)hash || strcmp(group->key, key) != 0))
        group = group->table_next;
    return group;
}

/* Twice the buckets; without memory the chains just get longer. */
static void grow(struct wr_table *table)
{
    struct weir_group **old = table->bucket;
    size_t old_size = table->size;
    struct weir_group **larger = wr_os_alloc(2 * old_size * sizeof(larger[0]));

    if (!larger)
        return;
    table->bucket = larger;
    table->size = 2 * old_size;
    for (size_t i = 0; i < old_size; i++)
        while (old[i]) {
            struct weir_group *group = old[i];
            struct weir_group **bucket = bucket_of(table, group->hash);
            old[i] = group->table_next;
            group->table_next = *bucket;
            *bucket = group;
        }
    wr_os_free(old);
}

void wr_table_put(struct wr_table *table, struct weir_group *group)
{
    struct weir_group **bucket;

    if (table->count >= table->size)
        grow(table);
    bucket = bucket_of(table, group->hash);
    group->table_next = *bucket;
    *bucket = group;
    table->count++;
}

void wr_table_remove(struct wr_table *table, struct weir_group *group)
{
    struct weir_group **at = bucket_of(table, group->hash);

    while (*at != group)
        at = &(*at)->table_next;
    *at = group->table_next;
    table->count--;
}

struct weir_group *wr_table_first(struct wr_table *table, size_t *from)
{
    while (*from < table->size && !table->bucket[*from])
        *from += 1;
    return *from < table->size ? table->bucket[*from] : NULL;
}

struct weir_group *wr_table_next(struct wr_table *table, struct weir_group *group)
{
    size_t i = 0;

    if (group && group->table_next)
        return group->table_next;
    if (group)
        i = (size_t)(group->hash & (table->size - 1)) + 1;
    for (; i < table->size; i++)
        if (table->bucket[i])
            return table->bucket[i];
    return NULL;
}
