/* Maps: chains and their doubling; see map.h.
 * SPDX-License-Identifier: MIT */
#include "base/map.h"

#include "base/os.h"

void wr_map_init(struct wr_map *map)
{
    *map = (struct wr_map){ .size = 1, .chain = &map->only };
}

void wr_map_fini(struct wr_map *map)
{
    if (map->chain != &map->only)
        wr_os_free(map->chain);
}

static struct wr_map_node **chain_of(const struct wr_map *map, uint32_t hash)
{
    return &map->chain[hash & (map->size - 1)];
}

static void hang(struct wr_map *map, struct wr_map_node *node)
{
    struct wr_map_node **chain = chain_of(map, node->hash);

    node->next = *chain;
    *chain = node;
}

static void grow(struct wr_map *map)
{
    struct wr_map larger = { .size = 2 * map->size, .count = map->count };

    larger.chain = wr_os_alloc(larger.size * sizeof(larger.chain[0]));
    if (!larger.chain)
        return;
    for (size_t i = 0; i < map->size; i++)
        for (struct wr_map_node *node = map->chain[i], *next; node; node = next) {
            next = node->next;
            hang(&larger, node);
        }
    wr_map_fini(map);
    *map = larger;
}

void wr_map_put(struct wr_map *map, struct wr_map_node *node)
{
    if (map->count >= map->size)
        grow(map);
    hang(map, node);
    map->count++;
}

void wr_map_remove(struct wr_map *map, const struct wr_map_node *node)
{
    struct wr_map_node **at = chain_of(map, node->hash);

    while (*at != node)
        at = &(*at)->next;
    *at = node->next;
    map->count--;
}

struct wr_map_node *wr_map_next(const struct wr_map *map, const struct wr_map_node *node)
{
    size_t i = node ? (node->hash & (map->size - 1)) + 1 : 0;

    if (node && node->next)
        return node->next;
    while (i < map->size && !map->chain[i])
        i++;
    return i < map->size ? map->chain[i] : NULL;
}
