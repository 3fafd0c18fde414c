/* What the runtime asks an executor about a body that stalls or overflows, and tells it of stalls.
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_STALL_H
#define WR_EXECUTOR_STALL_H

#include "runtime/runtime.h"

/* As wr_source.describe; counts the stall against the group whose body it is. */
uint64_t wr_stall_describe(struct wr_source *source, void *item, char *name,
                           const struct wr_sighting *seen);

/* As wr_source.identify. */
void wr_stall_identify(struct wr_source *source, void *item, const char *part[WR_NAME_PARTS]);

/* As weir_runtime_options.on_stall. */
void wr_stall_told(const weir_stall *stall, void *ex);

#endif
