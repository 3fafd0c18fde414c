/* Option structs that can grow: the caller says how large its struct is.
 * SPDX-License-Identifier: MIT */
#ifndef WR_BASE_OPTIONS_H
#define WR_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies the caller's options into `ours` (of `size` bytes, whose first member is a size_t size) and
 * zero-fills the fields that an older caller does not know. `theirs` may be NULL: all defaults.
 * WEIR_EINVAL: their size is not even that of the size field. WEIR_EVERSION: a newer caller has set
 * a field that we do not know. */
int wr_options_load(void *ours, size_t size, const void *theirs);

/* Copies an entry of the caller's, `their_size` bytes, into `ours` and zero-fills the rest. For structs that
 * carry no size, because the array they stand in says it. WEIR_EVERSION: as above. */
int wr_options_entry(void *ours, size_t size, const void *theirs, size_t their_size);

/* Copies a struct we filled to a caller whose struct may be older or newer; sets its size. */
int wr_options_store(void *theirs, const void *ours, size_t size);

/* Whether `ms` is a span of time that options may have: up to WEIR_SPAN_MAX_MS, or WEIR_NO_LIMIT. */
bool wr_is_span(int64_t ms);

#endif
