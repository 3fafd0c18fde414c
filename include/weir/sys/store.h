/* Stores: where guards keep their counts. For programs that write one.
 *
 * A store keeps cells by name. A cell is a few bytes of state that change in steps, permits that end with the process
 * that took them, and a line of waiters. It knows nothing of limits: what the bytes mean is the guard's business.
 *
 * A guard does all its work on a cell between lock and unlock. Its writes become visible as one step, or not at all if the
 * process dies before unlock. This interface may change sooner than others.
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
    uint32_t kind;     /* of the guard                                                          */
    uint32_t version;  /* of the layout of its state. A cell has one kind and one version        */
    size_t state_size; /* of a new cell; one that exists keeps its size                          */
    bool create;       /* make the cell if it does not exist                                     */
    /* Fills the zeroed state of a new cell. */
    void (*init)(void *state, const void *arg);
    const void *arg;
    /* Whether the bytes of an existing cell are a valid state. */
    bool (*is_sound)(const void *state, size_t state_size);
    /* Whether a state is as good as a new one, if no permit is held. */
    bool (*is_whole)(const void *state, weir_time now);
} weir_cell_spec;

/* A place in a cell's line. It belongs to the waiter, which keeps it from join to part. */
typedef struct weir_place {
    /* Set by the waiter before it joins. NULL: the waiter calls `wait`. Else the store calls `told` when the place is the
     * first and may look again: under the cell's lock or another, so it must be short and must not call the store. */
    void (*told)(struct weir_place *place);
    /* Set by the waiter before it joins: when it came. Of two places the one with the smaller stamp came first; no two in a
     * process are equal. */
    uint64_t stamp;
    void *link[2]; /* this and all further fields belong to the store */
    void *parker;
    void *room[6];
    uint64_t ticket;
    weir_cell *cell;
} weir_place;

/* Stores of process memory keep permits in use in one word, which guards may change without the lock while SLOW is clear:
 *     SLOW | entered << 32 | used
 * SLOW is the sign, so that one subtraction gives permits back and tells whether it was set. */
#define WEIR_WORD_USED    UINT64_C(0x7fffffff)
#define WEIR_WORD_ENTERED UINT64_C(0x100000000)
#define WEIR_WORD_SLOW    UINT64_C(0x8000000000000000)

/* Parts of a cell in shared memory that a guard may use without calls, as long as the cell is open. The lock is taken by a
 * compare-and-swap of 0 to `owner`, and given back by one of `owner` to 0. If either fails, the guard has taken nothing, and
 * must use the calls. All but the state must be used atomically. */
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

/* A server has no memory to share, so such a store keeps whole guards: each call of a guard is one call of the store. The store
 * has `remote`, free_store and close; its other functions are not called. */

/* One call that enters, has entered, or leaves. */
typedef struct weir_remote_call {
    size_t size;
    int64_t permits;
    weir_time deadline; /* when the call stops waiting; a time in the past: look once             */
    bool reserve;       /* do not wait: answer how long the wait is, at most patience_ns          */
    int64_t patience_ns;

    /* What the store keeps with the permit: `enter` sets these, `leave` and `undo` get them back. Users see `token`. */
    uint64_t token;
    int64_t number, where;

    weir_time retry_at; /* refused: the earliest time it could enter; WEIR_FOREVER: not known    */
    int64_t wait_ns;    /* reserved: how long the caller has to wait                             */
} weir_remote_call;

struct weir_gate;

typedef struct weir_remote_ops {
    size_t size;

    /* Opens the guard of that name, or makes it. `opt` has all defaults filled in; if its kind is WEIR_GUARD_ANY, the call
     * only finds a guard. `made` and `set` get the settings that the guard was made with, and the present ones.
     * WEIR_ENOGUARD, WEIR_EFOREIGN; WEIR_EINVAL: the server cannot keep such a guard; errors of the connection. */
    int (*open)(weir_cell **out, weir_store *store, weir_guard *guard,
                const weir_guard_options *opt, weir_guard_options *made, weir_guard_options *set,
                weir_message *message) WEIR_PARKS;

    /* 0: entered. WEIR_EAGAIN: refused. WEIR_ECANCELED; errors of the connection. */
    int (*enter)(weir_cell *cell, weir_remote_call *call) WEIR_PARKS;
    int (*leave)(weir_cell *cell, weir_remote_call *call);
    int (*undo)(weir_cell *cell, weir_remote_call *call);
    int64_t (*drain)(weir_cell *cell) WEIR_PARKS;

    /* Reads the present settings. */
    int (*settings)(weir_cell *cell, weir_guard_options *set) WEIR_PARKS;

    /* Changes the settings if they are still those of `from`. WEIR_EALREADY: they are not. */
    int (*change)(weir_cell *cell, const weir_guard_options *from,
                  const weir_guard_options *to) WEIR_PARKS;

    /* Fills in the server's figures; the guard adds its own counts. */
    int (*look)(weir_cell *cell, struct weir_guard_stats *out) WEIR_PARKS;

    /* Appends to the guard's description what only the store knows, with a comma before it. */
    void (*say)(weir_cell *cell, weir_message *out) WEIR_PARKS;

    /* Puts the guard before the tasks of a group, as weir_group_guard_add. The store keeps a reference to `guard` until the
     * gate is dropped. */
    int (*group)(struct weir_gate **out, weir_cell *cell, weir_group *group, weir_guard *guard);
} weir_remote_ops;

typedef struct weir_store_ops {
    size_t size;
    void (*free_store)(weir_store *store);

    /* Opens a cell, or makes it. WEIR_ENOGUARD, WEIR_EFOREIGN, WEIR_ENOMEM, -errno. */
    int (*open)(weir_cell **out, weir_store *store, const weir_cell_spec *spec,
                weir_message *message);
    void (*close)(weir_cell *cell);

    /* Locks the cell, for some dozen instructions: never across a wait, or a call of a user's function. Several cells are
     * locked in the order that docs/internals/guards.md gives. WEIR_ECLOSED: another process opened the store (fork). */
    int (*lock)(weir_cell *cell);

    /* Unlocks the cell. WEIR_EAGAIN: this process was stopped, and another went on without it, so nothing that was done
     * since `lock` counts; do it again. Never the answer if the step only gave back, left a line, or told. */
    int (*unlock)(weir_cell *cell);

    /* Under the lock: the state, to be read. */
    const void *(*read)(weir_cell *cell);

    /* Under the lock: the state, to be changed. Its address may differ from that of `read`. */
    void *(*write)(weir_cell *cell);

    /* Under the lock: permits held by all processes. Until unlock the number changes only by permits that come back. */
    int64_t (*used)(weir_cell *cell);

    /* Under the lock: this process holds so many permits more, or fewer. */
    void (*take)(weir_cell *cell, int64_t permits);
    void (*give)(weir_cell *cell, int64_t permits);

    /* Under the lock: adds a place to the line, behind those that came before it; a store that cannot do that adds it at the end.
     * WEIR_EAGAIN: the line is full. */
    int (*join)(weir_cell *cell, weir_place *place);

    /* Under the lock: whether the place is the first in line. NULL: whether the line is empty. */
    bool (*is_first)(weir_cell *cell, const weir_place *place);

    /* Under the lock: whether a place with this stamp would come before the first in line. */
    bool (*is_before)(weir_cell *cell, uint64_t stamp);

    /* Under the lock: takes the place out of the line. */
    void (*part)(weir_cell *cell, weir_place *place);

    /* Under the lock: the length of the line. */
    int64_t (*waiting)(weir_cell *cell);

    /* Under the lock: tells the first in line to look again. */
    void (*tell)(weir_cell *cell);

    /* Without the lock: waits until the place is told, until the deadline, or for no reason. */
    void (*wait)(weir_cell *cell, weir_place *place, weir_time deadline) WEIR_PARKS;

    /* Without the lock: called for places with `told`, before they depend on being told. May be NULL. */
    void (*watch)(weir_cell *cell);

    /* Without the lock: gives back the permits of processes that have ended. True: there were some. */
    bool (*sweep)(weir_cell *cell);

    /* The word of permits in use (WEIR_WORD_USED), to be used atomically as long as the cell is open. NULL: permits change
     * under the lock only. */
    uint64_t *(*word)(weir_cell *cell);

    /* A word beside the state, written under the lock and read without it; to be used atomically, likewise. */
    uint64_t *(*hint)(weir_cell *cell);

    /* Fills in the parts of the cell that may be used directly. False, or no such function: use the calls. */
    bool (*direct)(weir_direct *out, weir_cell *cell);

    /* Under the lock: processes that hold permits, one after the other; `at` counts them from 0. False: no more. */
    bool (*holder)(weir_cell *cell, size_t at, int64_t *pid, int64_t *permits);

    /* Of a store on a server; else NULL. */
    const weir_remote_ops *remote;

    /* Under the lock: permits held by this process, which end if it closes the cell. NULL: `used` says it. */
    int64_t (*held)(weir_cell *cell);
} weir_store_ops;

/* The first member of the struct of each store, and of each cell. */
struct weir_store {
    const weir_store_ops *ops;
};
struct weir_cell {
    const weir_store_ops *ops;
};

/* Whether something is in the permit. It belongs to its address, or to the byte behind that if its caller waited (see
 * docs/internals/guards.md, Waiting). */
static inline bool weir_permit_is_held(const weir_permit *permit)
{
    return permit->guard && (permit->place == permit || permit->place == (const char *)permit + 1);
}

/* The cell of a guard. A store must compare the cell's `ops` with its own before it uses the cell. */
weir_cell *weir_guard_cell(weir_guard *guard);

WEIR_END_DECLS

#endif
