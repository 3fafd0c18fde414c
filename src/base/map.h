/* A map from keys, which are texts, to nodes that lie in their owner's records, in chains whose number doubles as they fill. It
 * has no lock.
 * SPDX-License-Identifier: MIT */
#ifndef WR_BASE_MAP_H
#define WR_BASE_MAP_H

#include "base/words.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A key to look for. Its hash depends on a seed of the owner's, see hash.h. */
struct wr_key {
    const char *text;
    size_t length;
    uint32_t hash;
};

/* The text of the key lies behind it, in wr_key_room(length) bytes: filled up with zeros to whole words. */
struct wr_map_node {
    uint32_t hash;
    uint32_t number; /* whatever the owner uses it for */
    struct wr_map_node *next;
};

#define WR_KEY_LIES_BEHIND(type, node, text)                                                 \
    static_assert(offsetof(type, text) == offsetof(type, node) + sizeof(struct wr_map_node), \
                  "the key lies behind its node")

/*     count == nodes in all chains */
struct wr_map {
    size_t size, count; /* size: how many chains, a power of two */
    struct wr_map_node **chain;
    struct wr_map_node
        *only; /* the only chain, as long as there is one: few nodes need no memory */
};

void wr_map_init(struct wr_map *map);

/* Nodes that are left in the map belong to their owner. */
void wr_map_fini(struct wr_map *map);

/* Adds a node whose key is not in the map yet. Without memory the chains just get longer. */
void wr_map_put(struct wr_map *map, struct wr_map_node *node);
void wr_map_remove(struct wr_map *map, const struct wr_map_node *node);

/* The node after `node` (NULL: the first) in no particular order; NULL: there are no more. */
struct wr_map_node *wr_map_next(const struct wr_map *map, const struct wr_map_node *node);

static inline size_t wr_key_room(size_t length)
{
    return (length / 8 + 1) * 8;
}

/* Whether a text that is filled up as above is the key. No byte beyond its words is read: the comparison goes on for as long as
 * the text equals the key, which has no zeros. */
static inline bool wr_key_is(const struct wr_key *key, const char *filled)
{
    const char *text = key->text;
    size_t length = key->length, at = 0;

    for (; at + 8 < length; at += 8)
        if (wr_word8(text + at) != wr_word8(filled + at))
            return false;
    if (length >= 8) {
        at = length - 8;
        return wr_word8(text + at) == wr_word8(filled + at) && !filled[length];
    }
    if (length >= 4) {
        at = length - 4;
        return wr_word4(text) == wr_word4(filled) && wr_word4(text + at) == wr_word4(filled + at) &&
               !filled[length];
    }
    while (at < length && text[at] == filled[at])
        at++;
    return at == length && !filled[length];
}

/* The first node of that key from `node` (or NULL) on in its chain. */
static inline struct wr_map_node *wr_map_find(struct wr_map_node *node, const struct wr_key *key)
{
    while (node && (node->hash != key->hash || !wr_key_is(key, (const char *)(node + 1))))
        node = node->next;
    return node;
}

/* NULL: there is none. */
static inline struct wr_map_node *wr_map_get(const struct wr_map *map, const struct wr_key *key)
{
    return wr_map_find(map->chain[key->hash & (map->size - 1)], key);
}

#endif
