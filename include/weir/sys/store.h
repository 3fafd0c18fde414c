/* Stores, for those who write one: where guards keep their counts.
 *
 * A store keeps cells by name. A cell is a few bytes of state that change in steps, permits that end with the process
 * that took them, and a line of waiters. It knows nothing of limits: what the bytes mean is the guard's business.
 *
 * A guard does all its work on a cell between lock and unlock. Whatever it wrote in between becomes visible as one step,
 * or not at all if the process dies before unlock. This interface may change sooner than others.
 * SPDX-License-Identifier: MIT */
#ifndef WEIR_SYS_STORE_H
#define WEIR_SYS_STORE_H

#include <stdbool.h>
#include <weir/guard.h>

WEIR_BEGIN_DECLS

typedef struct weir_cell weir_cell;

/* What a cell is made of. */
typedef struct weir_cell_spec {
    size_t size;
    const char *name;
    uint32_t
        kind; /* the guard's, and the version of the layout of its state: two that differ in either */
    uint32_t
        version; /* do not share a cell                                                        */
    size_t
        state_size; /* of a new cell; one that exists keeps its own                               */
    bool create;    /* make it if there is none                                                   */
    void (*init)(void *state,
                 const void *arg); /* fills the zeroed state of a new cell               */
    const void *arg;
    bool (*is_sound)(const void *state,
                     size_t state_size); /* whether a state that was found can be one  */
    bool (*is_whole)(const void *state,
                     weir_time now); /* whether it is as good as new, if no permit is out */
} weir_cell_spec;

/* A place in a cell's line. The waiter's, from join to part. */
typedef struct weir_place {
    /* Set by the waiter before it joins. NULL: it waits by `wait`. Else it is called when the place is the first and is told:
     * under the cell's lock or another, so it only passes the word on. */
    void (*told)(struct weir_place *place);
    uint64_t
        stamp; /* likewise: when it came. Of two places the smaller one came first; no two are equal in a process */
    void *link[2]; /* this and all further: the store's */
    void *who;
    void *room[6];
    uint64_t ticket;
    weir_cell *cell;
} weir_place;

/* Stores of process memory keep permits in use in one word, which guards may change without the lock while SLOW is clear:
 *     entered << 32 | SLOW | used */
#define WEIR_WORD_USED    UINT64_C(0x7fffffff)
#define WEIR_WORD_SLOW    UINT64_C(0x80000000)
#define WEIR_WORD_ENTERED UINT64_C(0x100000000)

/* What of a cell in shared memory may be used without calls, all good as long as it is open. The lock is taken by compare and
 * swap of 0 by `owner`, and given back by storing 0; who does not get it at once uses the calls. All to be used
 * atomically, but for the state. */
typedef struct weir_direct {
    uint64_t *lock;
    uint64_t owner;
    /* Permits in use, in all and by this process; the line is empty if head == tail; which of two copies of the state
     * counts, 0 or 1; where the first one is, and how far apart they are. */
    int64_t *used, *held;
    const uint64_t *head, *tail, *active;
    const void *copies;
    size_t stride;
    uint32_t forks; /* usable while the process is no child of the one that opened it */
} weir_direct;

/* ---- stores on a server ---------------------------------------------------------------------- */

/* A server cannot lend its memory: such a store keeps whole guards, and each call of a guard's is one of the store's. It has `remote`,
 * free_store and close; none of the other functions is called. */

/* One call that wants in, was let in, or leaves. */
typedef struct weir_remote_call {
    size_t size;
    int64_t permits;
    weir_time deadline; /* when it gives up waiting; one in the past: look once                   */
    bool reserve; /* do not wait: say how long it would be, at most patience_ns              */
    int64_t patience_ns;

    /* The store's words about the permit: enter sets them, leave and undo get them back. `token` is what the user sees. */
    uint64_t token;
    int64_t number, where;

    weir_time
        retry_at;    /* refused: from when on it could enter; WEIR_FOREVER: not known           */
    int64_t wait_ns; /* reserved: after so long                                                  */
} weir_remote_call;

struct weir_gate;

typedef struct weir_remote_ops {
    size_t size;

    /* Opens the guard of that name, or makes it. `opt` has all defaults filled in; of kind WEIR_GUARD_ANY it only finds.
     * `made` and `set` get the settings it was made with, and the present ones. WEIR_ENOGUARD, WEIR_EFOREIGN, WEIR_EINVAL: what a server
     * cannot keep; those of the connection. */
    int (*open)(weir_cell **out, weir_store *store, weir_guard *guard,
                const weir_guard_options *opt, weir_guard_options *made, weir_guard_options *set,
                weir_message *message) WEIR_PARKS;

    /* 0: entered. WEIR_EAGAIN: refused. WEIR_ECANCELED; those of the connection. */
    int (*enter)(weir_cell *cell, weir_remote_call *call) WEIR_PARKS;
    int (*leave)(weir_cell *cell, weir_remote_call *call);
    int (*undo)(weir_cell *cell, weir_remote_call *call);
    int64_t (*drain)(weir_cell *cell) WEIR_PARKS;

    /* The present settings; and others in their place, if they are still those of `from`. WEIR_EALREADY: they are not. */
    int (*settings)(weir_cell *cell, weir_guard_options *set) WEIR_PARKS;
    int (*change)(weir_cell *cell, const weir_guard_options *from,
                  const weir_guard_options *to) WEIR_PARKS;

    /* Figures, of which the guard adds its own counts; and what there is to say besides, with a comma before it. */
    int (*look)(weir_cell *cell, struct weir_guard_stats *out) WEIR_PARKS;
    void (*say)(weir_cell *cell, weir_message *out) WEIR_PARKS;

    /* Stands before the tasks of a group, as weir_group_guard_add. The store keeps `guard` until the gate is dropped. */
    int (*group)(struct weir_gate **out, weir_cell *cell, weir_group *group, weir_guard *guard);
} weir_remote_ops;

typedef struct weir_store_ops {
    size_t size;
    void (*free_store)(weir_store *store);

    /* Opens the cell, or makes it. WEIR_ENOGUARD, WEIR_EFOREIGN, WEIR_ENOMEM, -errno. */
    int (*open)(weir_cell **out, weir_store *store, const weir_cell_spec *spec,
                weir_message *message);
    void (*close)(weir_cell *cell);

    /* Locks are held for some dozen instructions, never across a wait or a call of the user's. Several cells are locked
     * in the order that docs/internals/guards.md gives. WEIR_ECLOSED: the store is of another process (fork). */
    int (*lock)(weir_cell *cell);
    void (*unlock)(weir_cell *cell);

    /* Under the lock. The state to read; and the same to change, which is another address maybe. */
    const void *(*read)(weir_cell *cell);
    void *(*write)(weir_cell *cell);

    /* Under the lock. Permits held by all processes, which from here to unlock change only by leaves; and more or fewer
     * held by this one. */
    int64_t (*used)(weir_cell *cell);
    void (*take)(weir_cell *cell, int64_t permits);
    void (*give)(weir_cell *cell, int64_t permits);

    /* The line. Under the lock: join at its end (WEIR_EAGAIN: there are as many as may be), whether a place is the first (NULL: whether
     * there is no line), leave, how long it is. Without it: wait until told, or for no reason, or until the deadline; and look
     * for permits of processes that ended, true if there were any. */
    int (*join)(weir_cell *cell, weir_place *place);
    bool (*is_first)(weir_cell *cell, const weir_place *place);
    bool (*is_before)(weir_cell *cell,
                      uint64_t stamp); /* whether one that came then was before the first in line */
    void (*part)(weir_cell *cell, weir_place *place);
    int64_t (*waiting)(weir_cell *cell);
    void (*tell)(weir_cell *cell); /* under the lock: the first in line may look again */
    void (*wait)(weir_cell *cell, weir_place *place, weir_time deadline) WEIR_PARKS;
    void (*watch)(
        weir_cell *
            cell); /* without it, and for places with `told`, before they depend on being told; may be NULL */
    bool (*sweep)(weir_cell *cell);

    /* The word of permits in use, see above; NULL: they change under the lock only. And a word beside the state that is
     * written under the lock and may be read without it. Both to be used atomically; good as long as the cell is open. */
    uint64_t *(*word)(weir_cell *cell);
    uint64_t *(*hint)(weir_cell *cell);

    /* False, or NULL in place of the function: use the calls. */
    bool (*direct)(weir_direct *out, weir_cell *cell);

    /* Under the lock: processes that hold permits, one after the other; `at` counts them from 0. False: no more. */
    bool (*holder)(weir_cell *cell, size_t at, int64_t *pid, int64_t *permits);

    /* Of a store on a server; else NULL. */
    const weir_remote_ops *remote;
} weir_store_ops;

/* The first member of each store's and each cell's own struct. */
struct weir_store {
    const weir_store_ops *ops;
};
struct weir_cell {
    const weir_store_ops *ops;
};

/* The cell of a guard, for the store that opened it: compare its ops. */
weir_cell *weir_guard_cell(weir_guard *guard);

WEIR_END_DECLS

#endif
