/* A link: one connection that many callers share, and that is made anew whenever it breaks.
 *
 * Whoever has a request appends it to `out` and to the ring, in one step under the lock; replies come in the order of the
 * ring. Two roles decide who touches the socket, each held by one at a time:
 *     writing   takes what is in `out` to the socket
 *     reading   takes replies from the socket and completes the requests they belong to
 * Threads take both roles for themselves if they are free. Workers' tasks write, if few requests are under way, and never
 * read: a busy worker would keep all others waiting. What they do not do, two bodies on the client's runtime do. See
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
    WR_CALL_THREAD, /* its caller waits, and may take the roles             */
    WR_CALL_WORKER, /* its caller waits, parked on a worker                 */
    WR_ASK,         /* of the heap (struct wr_job): the teller is told      */
    WR_SEND,        /* of the heap: the teller is told of errors only       */
};

/* A request on its way. Under the link's lock. */
struct wr_request {
    enum wr_request_kind kind;
    bool done;
    bool unsent; /* done, failed, and the server has certainly not seen it */
    int error;
    struct wr_reply *reply; /* if done and error is 0 */
    weir_parker *who;       /* of calls               */
    uint64_t place;         /* in the ring            */
};

struct wr_slot {
    struct wr_request *request; /* NULL: nobody wants the reply      */
    uint64_t start;             /* where its bytes begin             */
    weir_time since;            /* when it was appended, roughly      */
};

struct wr_link {
    struct wr_redis *redis; /* fixed */
    struct wr_node *node;

    struct wr_lock lock;        /* all below, but for what a role owns. Before the teller's lock */
    weir_parker *body, *writer; /* the bodies, while they run */
    enum wr_redis_state state;
    bool broken;          /* UP, and to be given up            */
    weir_time away_since; /* unless it is UP and not broken    */
    bool closing;
    bool hurry;             /* connect at once, whatever pause is due */
    int error;              /* why it is DOWN or broken ...     */
    weir_message why;       /* ... in words                      */
    weir_message lost;      /* why the latest connection was lost */
    struct wr_list waiting; /* struct wr_link_waiter: for a change of state */
    struct wr_list held;    /* jobs that came while it was CONNECTING        */

    bool reading, writing; /* the roles                                                         */
    bool standby;          /* the body has left reading to threads, and parks                   */
    bool poked;            /* the writer has been told that there is something                  */
    uint64_t thread_reads; /* how often a thread has read                                       */
    int others;            /* requests in the ring that no thread waits for, and somebody does  */

    struct wr_bytes out, going; /* to be written; and what the writing role is about to write    */
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

/* Sends and waits. 0: request->reply is the answer, maybe an error. `deadline` is kept, and so is `patience`, as
 * in struct wr_command. `asking`: bytes begin with ASKING. */
int wr_link_call(struct wr_link *link, struct wr_request *request, const struct wr_bytes *bytes,
                 bool asking, weir_time patience, weir_time deadline,
                 weir_message *message) WEIR_PARKS;

/* Sends a job, or holds it until the link is up. WEIR_EAWAY and the like: it is down. */
int wr_link_submit(struct wr_link *link, struct wr_job *job, const struct wr_bytes *bytes,
                   bool asking);

/* Takes back a job that is not done. False: it is done, and the teller has it or will. */
bool wr_link_abandon(struct wr_link *link, struct wr_job *job);

/* Waits until it is up. What makes it down is answered at once unless `patient`. */
int wr_link_wait(struct wr_link *link, bool patient, weir_time deadline,
                 weir_message *message) WEIR_PARKS;

/* Waits until all that was sent is answered, if it is up. */
void wr_link_finish(struct wr_link *link, weir_time deadline) WEIR_PARKS;

/* Gives the present connection up, if there is one: another is made at once. Not under the lock. */
void wr_link_hurry(struct wr_link *link); /* whether it is wanted has changed */
void wr_link_break(struct wr_link *link, int error, const char *why);

/* The server is at `to` by now: a connection to anywhere else is given up. */
void wr_link_move(struct wr_link *link, const struct wr_endpoint *to, const char *why);

/* ---- between link.c, link_io.c and link_life.c: under the lock --------------------------------- */

void wr_link_changed(struct wr_link *link); /* its state: those who wait for that are woken */
void wr_link_give_up(struct wr_link *link, int error, const weir_message *why);
int wr_link_push(struct wr_link *link, struct wr_request *request, const struct wr_bytes *bytes,
                 bool asking);
void wr_link_complete(struct wr_link *link, struct wr_request *request, int error,
                      struct wr_reply *reply, const struct wr_request *self);

/* Writes as far as the socket takes it; the caller has just appended something. */
void wr_link_flush(struct wr_link *link);
void wr_link_poke(struct wr_link *link); /* has the writer do it */

/* Takes the role, and the lock off, and reads what there is. A thread waits for that first, until the deadline; `self` is its
 * own request, whom nobody need wake. NULL: the body, which knows that there is something. 0, or why nothing was read. */
int wr_link_read(struct wr_link *link, const struct wr_request *self,
                 weir_time deadline) WEIR_PARKS;

/* The bodies. */
void wr_link_main(void *arg);
void wr_link_writer(void *arg);

#endif
