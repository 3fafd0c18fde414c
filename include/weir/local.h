/* Task locals: values that travel with tasks, not with threads.
 *
 * A value is seen by the thread or task that has set it, and by every task submitted from there afterwards. A task
 * starts with the values of its submitter; values it sets itself end with it. (Thread-local storage cannot do that: a
 * worker runs many tasks.)
 *
 *     static const weir_local trace_id = WEIR_LOCAL(NULL);
 *     weir_local_set(&trace_id, id);
 *     weir_submit(...);                       in the body: weir_local_get(&trace_id) == id
 * SPDX-License-Identifier: MIT */
#ifndef WEIR_LOCAL_H
#define WEIR_LOCAL_H

#include <weir/defs.h>

WEIR_BEGIN_DECLS

/* A key. Its address is what counts; it must outlive every value set under it. */
typedef struct weir_local {
    /* Called once for each value set, when no task and no thread sees it any more; may be NULL. It runs where the last
     * of them ends or sets another value. */
    void (*drop)(void *value);
} weir_local;
#define WEIR_LOCAL(drop_fn) \
    {                       \
        drop_fn             \
    }

/* The value the caller sees; NULL if none was set. */
void *weir_local_get(const weir_local *key);

/* Sets a value for the caller and the tasks it submits from now on. It replaces the value the caller saw before; tasks
 * submitted before keep that one. On failure the caller still owns the value. WEIR_EINVAL: no key. WEIR_ENOMEM. */
int weir_local_set(const weir_local *key, void *value);

/* Removes all values the caller sees. A plain thread that has called weir_local_set calls this before it ends; tasks
 * need not. */
void weir_local_clear(void);

WEIR_END_DECLS

#endif
