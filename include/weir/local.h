/* Task locals: values that travel with work, not with threads.
 *
 * What is set in a thread or task is seen there and in every task submitted from there afterwards: a task
 * starts with what its submitter had, and what it sets itself ends with it. Thread-local storage cannot do
 * that, because workers carry many tasks.
 *
 *     static const weir_local trace_id = WEIR_LOCAL(NULL);
 *     weir_local_set(&trace_id, id);
 *     weir_submit(...);                       in the body: weir_local_get(&trace_id) == id
 * SPDX-License-Identifier: MIT */
#ifndef WEIR_LOCAL_H
#define WEIR_LOCAL_H

#include <weir/defs.h>

WEIR_BEGIN_DECLS

/* A key: its address counts. It must outlive every value set under it. */
typedef struct weir_local {
    void (*drop)(
        void *value); /* called when nobody can see the value any more; NULL: nothing to do */
} weir_local;
#define WEIR_LOCAL(drop_fn) \
    {                       \
        drop_fn             \
    }

/* The value the caller sees; NULL if none was set. */
void *weir_local_get(const weir_local *key);

/* Sets it for the caller and what the caller submits from now on. Replaces the value that the caller had set before;
 * tasks submitted before keep that one, and it is dropped when the last of them has ended. On failure the value
 * is the caller's. WEIR_EINVAL: no key. WEIR_ENOMEM. */
int weir_local_set(const weir_local *key, void *value);

/* Forgets all that the calling thread has set. A plain thread that used weir_local_set does this before it
 * ends; tasks need not. */
void weir_local_clear(void);

WEIR_END_DECLS

#endif
