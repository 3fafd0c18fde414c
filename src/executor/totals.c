/* Totals of groups, and an archive of them by key that is bounded: see totals.h.
 * SPDX-License-Identifier: MIT */
#include "executor/totals.h"

#include "base/assert.h"
#include "base/os.h"
#include "executor/state.h"

#include <string.h>

struct wr_archived {
    struct wr_list link; /* by age */
    struct wr_totals totals;
    struct wr_map_node node;
    char key[]; /* of wr_key_room bytes */
};

WR_KEY_LIES_BEHIND(struct wr_archived, node, key);

void wr_totals_add(struct wr_totals *to, const struct wr_totals *from)
{
#define ADD(type, name, ...) to->name += from->name;
    to->generations += from->generations;
    WR_FIGURES(ADD)
#undef ADD
}

void wr_totals_add_group(struct wr_totals *to, const struct weir_group *group)
{
#define ADD(type, name, where, ...) to->name += (where);
    to->generations++;
    WR_FIGURES(ADD)
#undef ADD
}

/* ---- the archive ------------------------------------------------------------------------------- */

void wr_archive_init(struct wr_archive *archive, size_t max)
{
    archive->max = max;
    wr_map_init(&archive->map);
    wr_list_init(&archive->by_age);
}

void wr_archive_fini(struct wr_archive *archive)
{
    wr_list_each_safe(node, &archive->by_age)
        wr_os_free(WR_CONTAINER(node, struct wr_archived, link));
    wr_map_fini(&archive->map);
}

static struct wr_archived *find(const struct wr_archive *archive, const struct wr_key *key)
{
    struct wr_map_node *node = wr_map_get(&archive->map, key);

    return node ? WR_CONTAINER(node, struct wr_archived, node) : NULL;
}

void wr_archive_sum(struct wr_totals *to, struct wr_archive *archive, const struct wr_key *key)
{
    struct wr_archived *entry;

    wr_lock(&archive->lock);
    entry = key ? find(archive, key) : NULL;
    if (entry || !key)
        wr_totals_add(to, entry ? &entry->totals : &archive->other);
    wr_unlock(&archive->lock);
}

/* A new entry, or NULL without memory. */
static struct wr_archived *append(struct wr_archive *archive, const struct wr_key *key)
{
    struct wr_archived *entry = wr_os_alloc(sizeof(*entry) + wr_key_room(key->length));

    if (!entry)
        return NULL;
    entry->node.hash = key->hash;
    memcpy(entry->key, key->text, key->length);
    wr_list_init(&entry->link);
    wr_map_put(&archive->map, &entry->node);
    return entry;
}

/* The entry that was not added to for longest becomes part of `other`. */
static void fold_oldest(struct wr_archive *archive)
{
    struct wr_archived *oldest = WR_CONTAINER(archive->by_age.next, struct wr_archived, link);

    wr_totals_add(&archive->other, &oldest->totals);
    wr_map_remove(&archive->map, &oldest->node);
    wr_list_remove(&oldest->link);
    wr_os_free(oldest);
}

void wr_archive_add(struct wr_archive *archive, const struct wr_key *key,
                    const struct wr_totals *totals)
{
    struct wr_archived *entry;

    if (!archive->max)
        return;
    wr_lock(&archive->lock);
    entry = find(archive, key);
    if (!entry)
        entry = append(archive, key);
    wr_totals_add(entry ? &entry->totals : &archive->other, totals);
    if (entry) {
        wr_list_remove(&entry->link);
        wr_list_append(&archive->by_age, &entry->link);
    }
    if (archive->map.count > archive->max)
        fold_oldest(archive);
    wr_unlock(&archive->lock);
}
