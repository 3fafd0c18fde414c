/* Arrays that grow: doubling.
 * SPDX-License-Identifier: MIT */
#include "base/array.h"

#include "base/os.h"

#include <string.h>

size_t wr_array_grow(void *array, size_t room, size_t count, size_t size)
{
    void **at = array, *larger;

    if (count < room)
        return room;
    room = room ? 2 * room : WR_ARRAY_FIRST;
    larger = wr_os_alloc(room * size);
    if (!larger)
        return count;
    if (count)
        memcpy(larger, *at, count * size);
    wr_os_free(*at);
    *at = larger;
    return room;
}
