/* The elastic pool of OS threads for work that blocks.
 * SPDX-License-Identifier: MIT */
#ifndef WR_RUNTIME_POOL_H
#define WR_RUNTIME_POOL_H

#include "base/list.h"
#include "base/lock.h"
#include "runtime/runtime.h"

#include <stdbool.h>
#include <stdint.h>
#include <weir/runtime.h>

struct wr_member;

/* Under the lock:
 *     threads == length of everyone == running a job + idle     (one that rests is idle)
 *     jobs is not empty  =>  idle is empty and threads > 0                                        */
struct wr_pool {
    weir_runtime *runtime;
    uint32_t threads_max; /* one more for each thread that is lost */
    int64_t idle_ns;      /* an idle thread ends after this */
    struct wr_lock lock;
    struct wr_list jobs; /* waiting for a thread, first come first                             */
    struct wr_list idle; /* threads waiting for a job; the last to come is the first to go     */
    /* All threads that live */
    struct wr_list everyone;
    struct wr_list gone; /* threads that have ended, to be joined                              */
    uint32_t threads;
    uint32_t number; /* of the next thread                                                 */
};

void wr_pool_init(struct wr_pool *pool, weir_runtime *rt);

/* Waits for all threads. No job may be left; wr_pool_wake_all must have been called. */
void wr_pool_fini(struct wr_pool *pool);

/* Waits for `fd` on the calling pool thread, so that an unpark can end the wait. As weir_fd_wait. */
int wr_pool_fd_wait(struct wr_member *member, int fd, int events, weir_time deadline);

/* Wakes every thread from whatever weir wait its body is in; idle ones end. */
void wr_pool_wake_all(struct wr_pool *pool);

/* Has job->run called on a thread; see wr_runtime_job.
 * WEIR_ENOMEM, WEIR_EAGAIN: the pool has no thread and cannot get one; the job was not taken. */
int wr_pool_submit(struct wr_pool *pool, struct wr_job *job, enum wr_job_turn turn);

/* lost: one more thread is lost in a body that does not return. Not lost: one less. */
void wr_pool_lost(struct wr_pool *pool, bool lost);

/* Takes back a job that no thread has begun. False: it has begun. */
bool wr_pool_withdraw(struct wr_pool *pool, struct wr_job *job);

uint32_t wr_pool_threads(struct wr_pool *pool);

#endif
