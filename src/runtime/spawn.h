/* Bodies spawned without further ado: one queue, first come, first served.
 * SPDX-License-Identifier: MIT */
#ifndef WR_RUNTIME_SPAWN_H
#define WR_RUNTIME_SPAWN_H

#include "base/lock.h"
#include "runtime/runtime.h"

/* Under the lock, except `waiting`, which is also read without it. */
struct wr_spawn {
    struct wr_source source;
    weir_runtime *runtime;
    struct wr_lock lock;
    struct wr_spawn_item *first, *last; /* waiting for a worker              */
    struct wr_spawn_item *unused;
    struct wr_spawn_slab *slabs;
    _Atomic uint64_t waiting; /* length of the queue               */
    uint64_t accepted;
    bool closed;
};

void wr_spawn_init(struct wr_spawn *spawn, weir_runtime *rt);
void wr_spawn_fini(struct wr_spawn *spawn);

/* From here on weir_spawn answers WEIR_ECLOSED. */
void wr_spawn_close(struct wr_spawn *spawn);

void wr_spawn_count(struct wr_spawn *spawn, uint64_t *accepted, uint64_t *ended);

#endif
