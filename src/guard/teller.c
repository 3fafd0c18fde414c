/* The teller's thread and its list.
 * SPDX-License-Identifier: MIT */
#include "guard/teller.h"

#include "base/assert.h"
#include "base/lock.h"
#include "base/os.h"

#include <limits.h>
#include <weir/error.h>

/* Under the lock, except the atomics. A thread serves as long as `number` is the one it was started with. */
static struct {
    struct wr_lock lock;
    struct wr_list list; /* valid while refs > 0 */
    struct wr_teller_job *current;
    struct wr_os_thread thread;
    unsigned refs;
    uintptr_t number;
    uint32_t serves; /* number of the thread that runs `current`                                  */
    _Atomic uint32_t calls; /* grows with each call: the thread sleeps on it                     */
    _Atomic uint32_t runs;  /* grows with each run: threads in wr_teller_part sleep on it        */
} teller;

/* Whether this is the teller's thread. Under the lock. */
static bool is_teller(void)
{
    return teller.current && teller.serves == wr_os_thread_number();
}

static void serve(void *number)
{
    wr_lock(&teller.lock);
    while (teller.number == (uintptr_t)number) {
        uint32_t seen = wr_load(&teller.calls, acquire);
        struct wr_teller_job *job;

        if (wr_list_empty(&teller.list)) {
            wr_unlock(&teller.lock);
            wr_os_futex_wait(&teller.calls, seen, WEIR_FOREVER);
            wr_lock(&teller.lock);
            continue;
        }
        job = WR_CONTAINER(teller.list.next, struct wr_teller_job, link);
        wr_list_remove(&job->link);
        job->waiting = false;
        teller.current = job;
        teller.serves = wr_os_thread_number();
        wr_unlock(&teller.lock);
        job->run(job);
        wr_lock(&teller.lock);
        teller.current = NULL;
        wr_add(&teller.runs, 1, release);
        wr_os_futex_wake(&teller.runs, INT_MAX);
    }
    wr_unlock(&teller.lock);
}

int wr_teller_join(struct wr_teller_job *job, void (*run)(struct wr_teller_job *job))
{
    int rc = 0;

    job->waiting = false;
    job->run = run;
    wr_lock(&teller.lock);
    if (teller.refs == 0) {
        wr_list_init(&teller.list);
        rc = wr_os_thread_start(&teller.thread, serve, (void *)teller.number, "weir-guards");
    }
    if (!rc)
        teller.refs++;
    wr_unlock(&teller.lock);
    return rc ? WEIR_EAGAIN : 0;
}

static void wake(void)
{
    wr_add(&teller.calls, 1, release);
    wr_os_futex_wake(&teller.calls, 1);
}

void wr_teller_call(struct wr_teller_job *job)
{
    wr_lock(&teller.lock);
    if (!job->waiting) {
        job->waiting = true;
        wr_list_append(&teller.list, &job->link);
    }
    wr_unlock(&teller.lock);
    wake();
}

void wr_teller_part(struct wr_teller_job *job)
{
    struct wr_os_thread thread;
    bool last, own;

    WR_ASSERT(job);
    wr_lock(&teller.lock);
    own = is_teller();
    while (teller.current == job && !own) {
        uint32_t seen = wr_load(&teller.runs, acquire);
        wr_unlock(&teller.lock);
        wr_os_futex_wait(&teller.runs, seen, WEIR_FOREVER);
        wr_lock(&teller.lock);
    }
    if (job->waiting)
        wr_list_remove(&job->link);
    job->waiting = false;
    last = --teller.refs == 0;
    teller.number += last;
    thread = teller.thread;
    wr_unlock(&teller.lock);
    if (last && !own) { /* else this thread ends after the present run */
        wake();
        wr_os_thread_join(&thread);
    }
}
