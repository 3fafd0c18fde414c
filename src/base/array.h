/* Arrays that grow.
 * SPDX-License-Identifier: MIT */
#ifndef WR_BASE_ARRAY_H
#define WR_BASE_ARRAY_H

#include <stddef.h>

enum {
    WR_ARRAY_FIRST = 16
}; /* entries of an array that was empty; a power of two times as many later */

/* Makes room for another entry behind `count` ones of `size` bytes each: if they fill the array at `array` (a pointer to it,
 * allocated here or NULL), the array becomes twice as large, and new entries are zeros. Answers how many there is room for now;
 * without memory that is still `count`. */
size_t wr_array_grow(void *array, size_t room, size_t count, size_t size);

#endif
