/* A link: one connection that many callers share. Whenever it breaks, the link connects again.
 *
 * A caller appends its request to `out` and to the ring, in one step under the lock; replies come in the order of the
 * ring. Two roles decide which thread uses the socket. Each role has one holder at a time:
 *     writing   moves the bytes of `out` to the socket
 *     reading   takes replies from the socket and completes the requests they belong to
 * A thread that calls takes a role if it is free. A worker's task writes if few requests are under way, and never reads:
 * a busy worker would keep all other callers waiting. Two bodies on the client's runtime do the rest. See
 * docs/internals/redis.md.
 * SPDX-License-Identifier: MIT */
#ifndef WR_REDIS_LINK_H
#define WR_REDIS_LINK_H

#include "base/list.h"
#include "base/lock.h"
#include "redis/conn.h"
#include "redis/teller.h"

#include <weir/sys/park.h>

struct wr_job;  /* job.h   */
struct wr_node; /* redis.h */

enum wr_request_kind {
    WR_CALL_THREAD, /* a thread waits for the reply, and may take the roles  */
    WR_CALL_WORKER, /* a task waits for the reply, parked on a worker        */
    WR_ASK,         /* a struct wr_job: its result is posted to the teller   */
    WR_SEND,        /* a struct wr_job: only errors are posted to the teller */
};

/* A request on its way. Under the link's lock. */
struct wr_request {
    enum wr_request_kind kind;
    bool done;
    bool unsent; /* done, failed, and the server has certainly not seen it */
    int error;
    struct wr_reply *reply; /* if done and error is 0 */
    weir_parker *parker;    /* calls: the caller's    */
    uint64_t place;         /* in the ring            */
};

struct wr_slot {
    struct wr_request *request; /* NULL: the reply is dropped        */
    uint64_t start;             /* where its bytes begin             */
    weir_time since;            /* when it was appended, roughly      */
};

struct wr_link {
    struct wr_redis *redis; /* fixed */
    struct wr_node *node;

    struct wr_lock lock;        /* all below except what a role owns. Before the teller's lock */
    weir_parker *body, *writer; /* the bodies, while they run */
    enum wr_redis_state state;
    bool broken;          /* UP, but the connection is of no use any more  */
    weir_time away_since; /* not valid while it is UP and not broken       */
    bool closing;
    bool hurry;             /* connect at once, whatever pause is due */
    int error;              /* why it is DOWN or broken ...     */
    weir_message why;       /* ... in words                      */
    weir_message lost;      /* why the latest connection was lost */
    struct wr_list waiting; /* struct wr_link_waiter: callers that wait for a change of state */
    struct wr_list held;    /* jobs that came while it was CONNECTING        */

    bool reading, writing; /* the roles                                                         */
    bool standby;          /* the body has left reading to threads, and parks                   */
    bool poked;            /* the writer was woken and has not looked yet                       */
    uint64_t thread_reads; /* how often a thread has read                                       */
    int others;            /* requests in the ring that a worker's task or the teller waits for */

    struct wr_bytes out, going; /* bytes to be written; bytes that the writing role has taken    */
    uint64_t queued, written; /* bytes of this connection: appended so far, taken by the socket  */
    struct wr_slot *ring;     /* places [head, tail) at place % ring_room, a power of two       */
    uint64_t head, tail;
    uint32_t ring_room;

    /* conn.fd, conn.tls: fixed while UP; tls is used under the lock. conn.wire: the reading
     * role's. */
    struct wr_conn conn;
    weir_time last_read;
    struct wr_redis_timer watch; /* gives up a server that owes a reply for too long */
    bool watched;                /* it is set */
    struct wr_redis_stats stats;
};

/* A link of a node. Its bodies start with wr_link_start, and end after wr_link_stop. */
void wr_link_init(struct wr_link *link, struct wr_redis *redis, struct wr_node *node);
int wr_link_start(struct wr_link *link);
void wr_link_stop(struct wr_link *link);
void wr_link_fini(struct wr_link *link); /* after the runtime is freed */

/* Sends a request and waits for its reply. 0: request->reply is the answer, maybe an error reply. Never waits beyond the
 * deadline; `patience` is as in struct wr_command. `asking`: `bytes` begin with ASKING. */
int wr_link_call(struct wr_link *link, struct wr_request *request, const struct wr_bytes *bytes,
                 bool asking, weir_time patience, weir_time deadline,
                 weir_message *message) WEIR_PARKS;

/* Sends a job, or holds it until the link is up. WEIR_EAWAY and the like: the link is down. */
int wr_link_submit(struct wr_link *link, struct wr_job *job, const struct wr_bytes *bytes,
                   bool asking);

/* Takes back a job that is not done. False: it is done, and the teller has it or will get it. */
bool wr_link_abandon(struct wr_link *link, struct wr_job *job);

/* Waits until the link is up. While it is down, its error is answered at once unless `patient`. */
int wr_link_wait(struct wr_link *link, bool patient, weir_time deadline,
                 weir_message *message) WEIR_PARKS;

/* If the link is up, waits until all requests in the ring are answered. */
void wr_link_finish(struct wr_link *link, weir_time deadline) WEIR_PARKS;

/* Ends the pause before the next attempt to connect: node->wanted has changed. Not under the lock. */
void wr_link_hurry(struct wr_link *link);

/* Gives up the present connection, if there is one, and connects again at once. Not under the lock. */
void wr_link_break(struct wr_link *link, int error, const char *why);

/* The server is now at `to`: gives up a connection to any other address. Not under the lock. */
void wr_link_move(struct wr_link *link, const struct wr_endpoint *to, const char *why);

/* ---- between link.c, link_io.c and link_life.c: under the lock --------------------------------- */

/* The link's state has changed: wakes the callers that wait for that. */
void wr_link_changed(struct wr_link *link);
void wr_link_give_up(struct wr_link *link, int error, const weir_message *why);
int wr_link_push(struct wr_link *link, struct wr_request *request, const struct wr_bytes *bytes,
                 bool asking);
void wr_link_complete(struct wr_link *link, struct wr_request *request, int error,
                      struct wr_reply *reply, const struct wr_request *self);

/* Writes what the socket takes at once, and leaves the rest to the writer. The caller has just appended a request. */
void wr_link_flush(struct wr_link *link);

/* Has the writer write. */
void wr_link_poke(struct wr_link *link);

/* Takes the reading role, releases the lock, reads what there is, and takes the lock again. A thread passes its own request
 * as `self`: it waits for bytes first, until the deadline, and need not be woken for its own reply. The body passes NULL: it
 * knows that there are bytes, and does not wait. 0, or why nothing was read. */
int wr_link_read(struct wr_link *link, const struct wr_request *self,
                 weir_time deadline) WEIR_PARKS;

/* The bodies. */
void wr_link_main(void *arg);
void wr_link_writer(void *arg);

#endif
