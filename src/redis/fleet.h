/* Guards of a fleet: a store on a server. Inside the room.
 *
 * A process that uses the store has a random id, a channel of that name, and a number for each permit that it asks for. Its
 * permits are in lists of the guard's cell and are renewed from the client's own body (renew.c), so that no worker has to be
 * free for that.
 *
 * Locks: one per cell, held for some dozen instructions, never across a call of the client that waits, nor across a function
 * of the user; the fleet's (the list of cells, waiters by number) may be taken under a cell's. See docs/internals/leases.md.
 * SPDX-License-Identifier: MIT */
#ifndef WR_REDIS_FLEET_H
#define WR_REDIS_FLEET_H

#include "base/list.h"
#include "base/lock.h"
#include "redis/client.h"
#include "redis/words.h"

#include <weir/sys/park.h>
#include <weir/sys/store.h>

#define WR_MS INT64_C(1000000)

enum {
    WR_FLEET_PROCESS = 17, /* 16 digits and a zero */
    WR_FLEET_WHO = 256,
    WR_FLEET_BUCKETS = 256,
};

enum wr_fleet_key {
    WR_KEY_SETTINGS,
    WR_KEY_HELD, /* permits */
    WR_KEY_INFO,
    WR_KEY_LINE,
    WR_KEY_WANTS,
    WR_KEY_AUDIT,
    WR_KEY_USE = WR_KEY_HELD, /* rates and windows */
    WR_KEY_LOG = WR_KEY_INFO,
    WR_KEYS = WR_KEY_AUDIT + 1,
};

struct wr_fleet {
    weir_store store; /* first */
    struct wr_redis *redis;
    struct wr_script open, permits, rate, window, compat;
    char process[WR_FLEET_PROCESS];
    char host[64];
    char *application; /* part of the keys' names; NULL: the whole fleet shares them */
    bool compatible;
    int64_t look_ns; /* how long even a call that does not wait may wait for the server's reply */
    int64_t keep_ms;
    weir_store *shares; /* of this process: guards that stand in while the server is away */

    _Atomic int64_t number;     /* the next number for a permit */
    _Atomic uint64_t evictions; /* how many messages of operators were heard */
    struct wr_lock lock;        /* of all below, and for opening and closing cells */
    struct wr_list cells;
    struct wr_list waiters[WR_FLEET_BUCKETS]; /* by number */
    struct wr_subscription *bell;
    bool bell_asked;
    bool away; /* as on_state said last: for gates, which cannot ask the client */
};

/* Permits that a caller of this process holds. The caller's permit points to the hold. It is in its cell's list while its
 * lease is kept. */
struct wr_hold {
    struct wr_list link;
    int64_t number, count;
    uint64_t token;
    /* The end of the lease, counted from before the request that won or renewed it was sent */
    weir_time until;
    /* When the renewal that is under way was sent */
    weir_time asked;
    bool lost; /* its holder was told to stop; it is not renewed any more                     */
    /* Entered while the server was away */
    bool uncounted;
    /* The task that entered, with a reference; or NULL */
    weir_task *task;
    /* Of the guard that stands in for the server */
    weir_permit share;
};

/* A call, or a pool, that stands in a guard's line. Under the fleet's lock from enlist to delist. */
struct wr_waiter {
    struct wr_list link; /* in its bucket                                                      */
    /* In its cell */
    struct wr_list cell_link;
    struct wr_fleet_cell *cell;
    int64_t number;
    /* The server said that it is in line */
    bool in_line;
    bool served; /* it has the permits; token, count, ends are set                                */
    bool again;  /* the server does not know it any more: ask anew                                */
    uint64_t token;
    int64_t count,
        ends; /* ends: by the server's clock                                              */
    weir_parker
        *parker; /* of a call: unparked when `served` or `again` is set                      */
    void (*told)(struct wr_waiter *waiter); /* of a pool: called then, delisted, without a lock */
};

/* One guard. All is under its lock except what is fixed once it is open. */
struct wr_fleet_cell {
    weir_cell cell; /* first */
    struct wr_fleet *fleet;
    weir_guard *guard;
    char *key[WR_KEYS];
    size_t key_size[WR_KEYS];
    weir_guard_kind kind;
    weir_guard_mode mode;
    /* Learned again when the guard is opened anew; also read without the lock */
    _Atomic int64_t lease_ns;
    int64_t margin_ns, share;
    weir_when_away when_away;
    bool keep_task;
    void (*on_lost)(const weir_lost *lost, void *arg);
    void *lost_arg;
    struct wr_list link; /* in the fleet */

    struct wr_lock lock;
    weir_guard_options made,
        set;               /* as last seen                                                    */
    int64_t version, born; /* 0: the server was away when it was opened                       */
    int64_t seen_limit, seen_held, seen_waiting;
    struct wr_list holds, waiters;
    struct wr_list leaving; /* holds whose leave could not be sent                             */
    struct wr_leased *pool; /* permits for groups; NULL until one needs it                      */
    struct wr_redis_timer renewal;
    weir_time renew_at; /* the time that `renewal` is set to; WEIR_FOREVER: it is not set  */
    weir_time renewing; /* when the renewal that is under way was sent; 0: none is         */
    bool again;         /* another renewal is to follow the one under way                  */
    bool closing;
    int refs;             /* the guard's, and one per answer that is to come                 */
    _Atomic bool refused; /* the server's latest answer was an error: */
    char refusal[200];    /* its words                                */
    uint64_t uncounted, lost;
    weir_guard *share_guard; /* under the cell's lock                                           */
    _Atomic int64_t crowd;   /* rate, frequency: callers that wait                              */
};

static inline struct wr_fleet *wr_fleet_of(weir_store *store)
{
    return (struct wr_fleet *)store;
}

static inline struct wr_fleet_cell *wr_cell_of(weir_cell *cell)
{
    return (struct wr_fleet_cell *)cell;
}

/* ---- cells ----------------------------------------------------------------------------------- */

int wr_fleet_open_cell(weir_cell **out, weir_store *store, weir_guard *guard,
                       const weir_guard_options *opt, weir_guard_options *made,
                       weir_guard_options *set, weir_message *message) WEIR_PARKS;
void wr_fleet_close_cell(weir_cell *cell) WEIR_PARKS;
int wr_cell_settings(weir_cell *cell, weir_guard_options *set) WEIR_PARKS;
int wr_cell_change(weir_cell *cell, const weir_guard_options *from,
                   const weir_guard_options *to) WEIR_PARKS;
int wr_cell_look(weir_cell *cell, weir_guard_stats *out) WEIR_PARKS;
void wr_cell_say(weir_cell *cell, weir_message *out) WEIR_PARKS;

/* ---- calls ----------------------------------------------------------------------------------- */

/* Adds the cell's first `count` keys to `words`, and answers `count`. */
int wr_cell_keys(struct wr_words *words, const struct wr_fleet_cell *cell, int count);

/* When to try again after a failure. */
weir_time wr_cell_soon(const struct wr_fleet_cell *cell, weir_time now);

/* Calls a script and waits for its reply, an array that begins with a number, which the caller frees. A guard that the server
 * does not know is opened again. If the server is down, the call waits for it until the deadline, but only with
 * WEIR_AWAY_CLOSED; for the reply of a server that is up it waits as wr_fleet_deadline says. WEIR_ENOGUARD: the server still
 * does not know the guard; else as wr_redis_call. */
int wr_cell_call(struct wr_reply **out, struct wr_fleet_cell *cell, const struct wr_script *script,
                 const struct wr_words *words, int keys, weir_time deadline) WEIR_PARKS;

/* Opens the guard: sends the settings known here (`make`), and reads those that the server has. */
int wr_cell_open(struct wr_fleet_cell *cell, bool make, weir_time deadline,
                 weir_message *message) WEIR_PARKS;

/* Notes the limit and the permits held (-1: not known) that a reply names. An older version than ours means that the server
 * has forgotten ours: our settings are sent again. */
void wr_cell_saw(struct wr_fleet_cell *cell, int64_t version, int64_t limit, int64_t held);

/* What a script's answer means: `error`, or WEIR_EFOREIGN if the settings or the keys are not weir's. Keeps the text of an
 * error until the server answers well again, to tell users why no call enters; of WEIR_EFOREIGN `message` (may be NULL) gets it, too. */
int wr_cell_judge(struct wr_fleet_cell *cell, int error, const struct wr_reply *reply,
                  weir_message *message);

/* Appends ", the server refuses: ...", if the latest answer was an error. */
void wr_cell_say_refused(struct wr_fleet_cell *cell, weir_message *out);

/* When a lease ends by our clock that ends at `ends` by the server's, if our clock was at least `sent` when the server's was
 * `clock`. At most one lease from now on, whatever the server says. */
weir_time wr_cell_until(const struct wr_fleet_cell *cell, weir_time sent, int64_t clock,
                        int64_t ends);

/* Whether an error means that the server is away, rather than that it refuses. */
bool wr_fleet_is_away(int error);

/* The deadline for a reply: at least look_ms from now on, so that a call that does not wait gets an answer. */
weir_time wr_fleet_deadline(const struct wr_fleet *fleet, weir_time deadline);

/* ---- holding --------------------------------------------------------------------------------- */

int wr_hold_enter(weir_cell *cell, weir_remote_call *call) WEIR_PARKS;
int wr_hold_leave(weir_cell *cell, weir_remote_call *call);

/* Sends `leave` for `count` numbers from `number` on. 0, or why it was not sent. */
int wr_cell_send_leave(struct wr_fleet_cell *cell, int64_t number, int64_t count);

/* A hold with numbers of its own; NULL without memory. */
struct wr_hold *wr_hold_new(struct wr_fleet_cell *cell, int64_t count);

/* Puts the hold into its cell's list, which keeps its lease from then on. */
void wr_hold_keep(struct wr_fleet_cell *cell, struct wr_hold *hold);
void wr_hold_free(struct wr_hold *hold);

/* Writes the name of the caller as a holder: "host pid task". */
void wr_fleet_who(char *out, size_t size, const struct wr_fleet *fleet);

/* The waiter with this number has its permits. From the client's body. */
void wr_waiter_serve(struct wr_fleet *fleet, int64_t number, int64_t token, int64_t count,
                     int64_t ends);

/* The server does not know the waiter with this number any more: it must ask anew. From the client's body. */
void wr_waiter_forgotten(struct wr_fleet *fleet, int64_t number);

void wr_waiter_enlist(struct wr_waiter *waiter, struct wr_fleet_cell *cell);
void wr_waiter_delist(struct wr_waiter *waiter);

/* ---- renewing -------------------------------------------------------------------------------- */

void wr_cell_renewal_init(struct wr_fleet_cell *cell);

/* Has the cell's timer fire at `when` at the latest. Without the cell's lock. */
void wr_cell_renew_by(struct wr_fleet_cell *cell, weir_time when);

/* Has it fire now: the connection is back, or a message may have been missed. */
void wr_cell_renew_now(struct wr_fleet_cell *cell);

void wr_cell_ref(struct wr_fleet_cell *cell);
void wr_cell_unref(struct wr_fleet_cell *cell);

/* Subscribes to this process's channel, if that has not been done yet. */
void wr_fleet_listen(struct wr_fleet *fleet);

/* The listener of that channel. */
void wr_fleet_heard(enum wr_redis_event event, const char *message, size_t size, void *arg);

/* An operator took the permit with this number away. */
void wr_cell_evicted(struct wr_fleet_cell *cell, int64_t number);

/* ---- without the server ---------------------------------------------------------------------- */

/* The server is away: enters the call uncounted, or by the share of this process, or answers an error, as when_away says. */
int wr_away_enter(struct wr_fleet_cell *cell, weir_remote_call *call, int error) WEIR_PARKS;
void wr_away_leave(struct wr_hold *hold);

/* ---- rates and windows ------------------------------------------------------------------------ */

int wr_timed_enter(weir_cell *cell, weir_remote_call *call) WEIR_PARKS;
int wr_timed_undo(weir_cell *cell, weir_remote_call *call);
int64_t wr_timed_drain(weir_cell *cell) WEIR_PARKS;

/* ---- groups ---------------------------------------------------------------------------------- */

int wr_gate_group(struct weir_gate **out, weir_cell *cell, weir_group *group, weir_guard *guard);
int wr_gate_timed(struct weir_gate **out, struct wr_fleet_cell *cell, weir_group *group,
                  weir_guard *guard);

/* A message for the gates of a cell: the server names a new target. From the client's body. */
void wr_gates_target(struct wr_fleet_cell *cell, int64_t target);

/* Has the pool of the cell's gates renew, or ask, now. From the client's body. */
void wr_gates_renew(struct wr_fleet_cell *cell);

/* ---- names of the original ------------------------------------------------------------------- */

/* Whether the guard has a name of the original. */
bool wr_compat_serves(const struct wr_fleet_cell *cell);
int wr_compat_enter(struct wr_fleet_cell *cell, weir_remote_call *call) WEIR_PARKS;
int wr_compat_leave(struct wr_fleet_cell *cell, weir_remote_call *call);

/* Extends the lease of the hold with this number. WEIR_ENOGUARD: the lock is free, or has another holder. */
int wr_compat_renew(struct wr_fleet_cell *cell, int64_t number) WEIR_PARKS;

extern const weir_store_ops wr_fleet_ops;

#endif
