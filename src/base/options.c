/* Loading and storing structs whose size tells their version.
 * SPDX-License-Identifier: MIT */
#include "base/options.h"

#include <string.h>
#include <weir/error.h>
#include <weir/executor.h>

int wr_options_entry(void *ours, size_t size, const void *theirs, size_t their_size)
{
    memset(ours, 0, size);
    for (size_t i = size; i < their_size; i++)
        if (((const char *)theirs)[i])
            return WEIR_EVERSION;
    memcpy(ours, theirs, their_size < size ? their_size : size);
    return 0;
}

int wr_options_load(void *ours, size_t size, const void *theirs)
{
    size_t their_size;
    int rc;

    memset(ours, 0, size);
    *(size_t *)ours = size;
    if (!theirs)
        return 0;
    memcpy(&their_size, theirs, sizeof(their_size));
    if (their_size < sizeof(their_size))
        return WEIR_EINVAL;
    rc = wr_options_entry(ours, size, theirs, their_size);
    *(size_t *)ours = size;
    return rc;
}

int wr_options_store(void *theirs, const void *ours, size_t size)
{
    size_t their_size;

    if (!theirs)
        return WEIR_EINVAL;
    memcpy(&their_size, theirs, sizeof(their_size));
    if (their_size < sizeof(their_size))
        return WEIR_EINVAL;
    if (their_size > size)
        memset((char *)theirs + size, 0, their_size - size);
    memcpy(theirs, ours, their_size < size ? their_size : size);
    memcpy(theirs, &their_size, sizeof(their_size));
    return 0;
}

bool wr_is_span(int64_t ms)
{
    return ms >= 0 && (ms <= WEIR_SPAN_MAX_MS || ms == WEIR_NO_LIMIT);
}
