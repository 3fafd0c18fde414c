/* Counts by reason: few reasons come up in one group, so an array of those.
 * SPDX-License-Identifier: MIT */
#include "limits/refusals.h"

#include "base/array.h"
#include "base/os.h"

void wr_refusals_fini(struct wr_refusals *refusals)
{
    wr_os_free(refusals->entry);
    *refusals = (struct wr_refusals){ 0 };
}

static struct wr_refusal *find(const struct wr_refusals *refusals, weir_reason reason)
{
    for (uint32_t i = 0; i < refusals->entries; i++)
        if (refusals->entry[i].reason == reason)
            return &refusals->entry[i];
    return NULL;
}

/* A new entry; NULL without memory. */
static struct wr_refusal *append(struct wr_refusals *refusals, weir_reason reason)
{
    refusals->room = (uint32_t)wr_array_grow(&refusals->entry, refusals->room, refusals->entries,
                                             sizeof(refusals->entry[0]));
    if (refusals->entries == refusals->room)
        return NULL;
    refusals->entry[refusals->entries] = (struct wr_refusal){ .reason = reason };
    return &refusals->entry[refusals->entries++];
}

void wr_refusals_add(struct wr_refusals *refusals, weir_reason reason)
{
    struct wr_refusal *entry = find(refusals, reason);

    if (!entry)
        entry = append(refusals, reason);
    if (entry)
        entry->count++;
    refusals->total++;
}

uint64_t wr_refusals_count(const struct wr_refusals *refusals, weir_reason reason)
{
    const struct wr_refusal *entry = find(refusals, reason);

    return entry ? entry->count : 0;
}
