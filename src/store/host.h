/* The store of all processes of a machine, inside: the layout of a cell's file, and what each source file does.
 *
 *     host.c        the store, cells: lock, state, permits
 *     host_file.c   files: made, checked, refused, removed
 *     host_line.c   the line: tickets, places, telling the first
 *     host_move.c   a cell whose owner was stopped in a step goes on in another file
 *     host_watch.c  the thread that hears the bell and notices deaths
 *
 * Why every change is one store, or can be derived: docs/internals/guards.md.
 * SPDX-License-Identifier: MIT */
#ifndef WR_STORE_HOST_H
#define WR_STORE_HOST_H

#include "base/list.h"
#include "base/lock.h"
#include "base/os.h"
#include "base/spin.h"
#include "runtime/runtime.h"

#include <weir/sys/store.h>

enum { WR_SEATS = 1024, WR_LINE = 4096, WR_HOST_LAYOUT = 3 };

#define WR_HOST_MAGIC UINT64_C(0x3164726175477257) /* "WrGuard1" */

/* A bit in the word of the lock: the cell goes on in the next file; see host_move.c. No process's number has it set. */
#define WR_HOST_MOVED (UINT64_C(1) << 31)

/* Written before the file has a name, and never again. */
struct wr_host_header {
    uint64_t magic;
    uint32_t layout, kind, version, name_length;
    uint64_t birth;      /* random; the same in all files that follow one another               */
    uint64_t generation; /* 0: the file with the guard's name                                   */
    /* When the cell was copied from the file before: the permits of the process that was stopped in a step, */
    int64_t displaced_held;
    /* and which copy of the state counted */
    uint64_t displaced_active;
    uint64_t state_size, file_size;
    unsigned char machine[WR_OS_MACHINE];
    uint64_t sum; /* of all before, and of the name */
};

struct wr_seat {
    _Atomic uint64_t process; /* 0: free */
    _Atomic int64_t held;
};

/* Used under the lock, except for single loads:
 *     used == sum of seat[i].held                 derived, when a lock is taken over
 *     line[t % WR_LINE], head <= t < tail, is the seat + 1 of a place; 0: given up
 *     head == tail or line[head % WR_LINE] != 0   after each change                        */
struct wr_host_file {
    struct wr_host_header header;
    _Alignas(64) struct wr_spin lock; /* the owner's identity                                     */
    _Atomic uint64_t hint;
    _Atomic uint64_t active; /* which copy of the state counts                                    */
    _Atomic int64_t used;
    _Atomic uint64_t head, tail;
    _Alignas(64) struct wr_seat seat[WR_SEATS];
    _Atomic uint32_t line[WR_LINE];
    _Atomic uint64_t stamp[WR_LINE]; /* when each place came                                      */
    char name[WEIR_KEY_MAX + 1];
    _Alignas(64) unsigned char state[]; /* two copies, wr_host_stride apart                       */
};

struct wr_host_store {
    struct weir_store base; /* first */
    int dir;
    uint64_t self;
    uint32_t forks; /* wr_os_forks() when it was opened; if it has changed, this is a child       */
    unsigned char machine[WR_OS_MACHINE];
    char path[512];

    /* Held while a cell of this process goes on to its next file; inside, only `waiters_lock` is taken */
    struct wr_lock moving;

    /* The watcher. It holds `watching` while it works on cells, and so do threads that close a cell. `watching` is taken before
     * a cell's lock, which is taken before `waiters_lock`. */
    struct wr_lock watching;
    struct wr_lock waiters_lock;
    struct wr_list waiters; /* of this process                                                    */
    struct wr_os_thread thread;
    struct wr_os_poller poller;
    int bell;
    _Atomic bool dozing; /* the watcher sleeps until it is woken; else it looks now and then    */
    bool started; /* under `watching`                                                       */
    _Atomic bool over;
    struct {
        uint64_t process;
        int fd;
    } watched[WR_SEATS]; /* under `watching`                                                      */
    size_t watched_count;
};

/* What has been done since the lock was taken. */
struct wr_host_step {
    bool dirty; /* the other copy is being written                                             */
    bool took;  /* the step decided something else: if it does not count it is to be done again */
    int64_t delta; /* permits taken, less those given                                             */
    struct wr_host_place *joined;
    uint64_t ring; /* the process to be told after unlock; 0: none                                */
};

struct wr_host_cell {
    struct weir_cell base; /* first */
    struct wr_host_store *store;
    struct wr_host_file *file;
    const char *file_name; /* allocated */
    size_t stride;
    int fd;
    uint32_t seat;
    bool (*is_whole)(const void *state, weir_time now);

    struct wr_host_step step; /* under the cell's lock */
};

struct wr_host_place {
    void (*told)(weir_place *place);
    uint64_t stamp;
    struct wr_list link; /* in the store's list of waiters */
    struct wr_parker *parker;
    struct wr_parker storage;
    uint64_t ticket;
    struct wr_host_cell *cell;
    bool watches; /* all processes it depends on are watched, and it has looked since             */
};

enum { WR_NEXT_NAME = 64 };

static inline struct wr_host_cell *wr_host_cell_of(weir_cell *cell)
{
    return (struct wr_host_cell *)cell;
}

/* host.c */
int wr_host_lock(weir_cell *cell);
int wr_host_unlock(weir_cell *cell);
bool wr_host_sweep(weir_cell *cell);

/* Under the file's lock: computes again what is derived. */
void wr_host_recover(struct wr_host_file *file);

/* host_file.c: opens or makes the file, maps it and answers with it locked, so that no process removes it. */
int wr_host_file_open(struct wr_host_cell *cell, const weir_cell_spec *spec, weir_message *message);
void wr_host_file_close(struct wr_host_cell *cell);
uint64_t wr_host_header_sum(const struct wr_host_file *file);
void wr_host_say(weir_message *message, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* host_line.c. Under the cell's lock, except wr_host_wait. */
int wr_host_join(weir_cell *cell, weir_place *place);
bool wr_host_is_first(weir_cell *cell, const weir_place *place);
bool wr_host_is_before(weir_cell *cell, uint64_t stamp);
void wr_host_part(weir_cell *cell, weir_place *place);
int64_t wr_host_waiting(weir_cell *cell);
void wr_host_tell(weir_cell *cell);
void wr_host_wait(weir_cell *cell, weir_place *place, weir_time deadline);

/* Under the cell's lock: gives up the places of a seat. */
void wr_host_line_forget(struct wr_host_cell *cell, uint32_t seat);

/* Under the cell's lock: gives up the places of seats that are free. */
void wr_host_line_mend(struct wr_host_cell *cell);

/* Whether the place was given up while its process was stopped, and others went past. */
bool wr_host_lost_place(const struct wr_host_place *place);

/* Without the lock: a stopped process that is first in line loses its place. */
void wr_host_pass_over(struct wr_host_cell *cell);

/* Under the cell's lock: gives up the places of this process at which no caller waits. */
void wr_host_line_settle(struct wr_host_cell *cell);

static inline void wr_host_wake(struct wr_host_place *p)
{
    if (p->told)
        p->told((weir_place *)p);
    else
        wr_unpark(p->parker);
}

/* host_move.c. The name of a cell's n-th file, n from 1. */
void wr_host_next_name(char name[WR_NEXT_NAME], const struct wr_host_header *header, uint64_t n);

/* Whether the cell's lock says that the cell goes on in another file. */
bool wr_host_is_moved(const struct wr_host_cell *cell);

/* Has the cell go on in the newest file, if its lock says so. */
void wr_host_follow(struct wr_host_cell *cell);

/* This thread has just finished a step, but the cell had moved. WEIR_EAGAIN: the step decided something, and does not count;
 * else 0. */
int wr_host_displaced(struct wr_host_cell *cell, struct wr_host_step *step);

/* host_watch.c */
enum { WR_BELL_NAME = 32 };
void wr_host_bell_name(char name[WR_BELL_NAME], uint64_t process);

/* Has all processes with a seat watched. False: not possible; look again after a while. */
bool wr_host_watch(struct wr_host_cell *cell);
void wr_host_watch_end(struct wr_host_store *store);

#endif
