/* Totals of groups, and an archive of them by key that is bounded: see totals.h.
 * SPDX-License-Identifier: MIT */
#include "executor/totals.h"

#include "base/assert.h"
#include "base/os.h"
#include "executor/state.h"

#include <string.h>

enum { FIRST_SIZE = 64 };

struct wr_archived {
    struct wr_archived *next; /* in its bucket */
    struct wr_list link;      /* by age        */
    struct wr_totals totals;
    uint32_t hash;
    char key[];
};

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
    wr_list_init(&archive->by_age);
}

void wr_archive_fini(struct wr_archive *archive)
{
    wr_list_each_safe(node, &archive->by_age)
        wr_os_free(WR_CONTAINER(node, struct wr_archived, link));
    wr_os_free(archive->bucket);
}

/* Where the entry hangs, or would be hung. There are buckets. */
static struct wr_archived **place_of(const struct wr_archive *archive, uint32_t hash,
                                     const char *key)
{
    struct wr_archived **at = &archive->bucket[hash & (archive->size - 1)];

    while (*at && ((*at)->hash != hash || strcmp((*at)->key, key) != 0))
        at = &(*at)->next;
    return at;
}

const struct wr_totals *wr_archive_get(const struct wr_archive *archive, uint32_t hash,
                                       const char *key)
{
    struct wr_archived *entry = archive->size ? *place_of(archive, hash, key) : NULL;

    return entry ? &entry->totals : NULL;
}

/* Twice the buckets; without memory the chains just get longer. */
static void grow(struct wr_archive *archive)
{
    struct wr_archived **old = archive->bucket, *entry;
    size_t old_size = archive->size, size = old_size ? 2 * old_size : FIRST_SIZE;
    struct wr_archived **larger = wr_os_alloc(size * sizeof(larger[0]));

    if (!larger)
        return;
    archive->bucket = larger;
    archive->size = size;
    for (size_t i = 0; i < old_size; i++)
        while ((entry = old[i])) {
            struct wr_archived **bucket = &larger[entry->hash & (size - 1)];
            old[i] = entry->next;
            entry->next = *bucket;
            *bucket = entry;
        }
    wr_os_free(old);
}

/* A new entry, or NULL without memory. */
static struct wr_archived *append(struct wr_archive *archive, uint32_t hash, const char *key)
{
    size_t key_size = strlen(key) + 1;
    struct wr_archived *entry;

    if (archive->count >= archive->size)
        grow(archive);
    entry = archive->size ? wr_os_alloc(sizeof(*entry) + key_size) : NULL;
    if (!entry)
        return NULL;
    entry->hash = hash;
    memcpy(entry->key, key, key_size);
    wr_list_init(&entry->link);
    *place_of(archive, hash, key) = entry;
    archive->count++;
    return entry;
}

/* The entry that was not added to for longest becomes part of `other`. */
static void fold_oldest(struct wr_archive *archive)
{
    struct wr_archived *oldest = WR_CONTAINER(archive->by_age.next, struct wr_archived, link);

    wr_totals_add(&archive->other, &oldest->totals);
    *place_of(archive, oldest->hash, oldest->key) = oldest->next;
    wr_list_remove(&oldest->link);
    wr_os_free(oldest);
    archive->count--;
}

void wr_archive_add(struct wr_archive *archive, uint32_t hash, const char *key,
                    const struct wr_totals *totals)
{
    struct wr_archived *entry;

    if (!archive->max)
        return;
    entry = archive->size ? *place_of(archive, hash, key) : NULL;
    if (!entry)
        entry = append(archive, hash, key);
    wr_totals_add(entry ? &entry->totals : &archive->other, totals);
    if (!entry)
        return;
    wr_list_remove(&entry->link);
    wr_list_append(&archive->by_age, &entry->link);
    if (archive->count > archive->max)
        fold_oldest(archive);
}
