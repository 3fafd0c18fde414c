/* Which thread goes on: points, blocking, the clock, futexes.
 *
 * The ready set holds every thread that could run, the current one included. At a point the current
 * thread may be put behind another; when it blocks, another is drawn; when there is none, the clock
 * jumps to the next moment at which something happens. If nothing ever will, that is a deadlock.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "sim/sim.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

static struct wr_sim_thread *ready[WR_SIM_THREADS_MAX];
static unsigned ready_count;

/* ---- the ready set --------------------------------------------------------------------------- */

void wr_sim_ready_add(struct wr_sim_thread *thread)
{
    thread->state = WR_SIM_READY;
    thread->ready_place = ready_count;
    ready[ready_count++] = thread;
}

static void ready_remove(struct wr_sim_thread *thread)
{
    struct wr_sim_thread *last = ready[--ready_count];

    WR_ASSERT(ready[thread->ready_place] == thread);
    ready[thread->ready_place] = last;
    last->ready_place = thread->ready_place;
}

static struct wr_sim_thread *ready_draw(void)
{
    return ready[wr_sim_below(&wr_sim.schedule_luck, ready_count)];
}

/* Draws a ready thread that is not the current one. */
static struct wr_sim_thread *ready_draw_other(void)
{
    unsigned place = wr_sim_below(&wr_sim.schedule_luck, ready_count - 1);

    return ready[place < wr_sim.current->ready_place ? place : place + 1];
}

void wr_sim_sched_reset(void)
{
    ready_count = 0;
}

/* ---- what threads wait for ------------------------------------------------------------------- */

static int describe(char *out, size_t size, const struct wr_sim_thread *thread)
{
    switch (thread->state) {
    case WR_SIM_READY:
        return snprintf(out, size, "can run");
    case WR_SIM_FUTEX:
        return snprintf(out, size, "waits on futex %p while it is %" PRIu64, thread->on,
                        thread->number);
    case WR_SIM_POLLER:
        return snprintf(out, size, "waits in poller %" PRIu64, thread->number);
    case WR_SIM_FD:
        return snprintf(out, size, "waits for descriptor %" PRIu64, thread->number);
    case WR_SIM_JOIN:
        return snprintf(out, size, "waits for the end of thread %s",
                        ((const struct wr_sim_thread *)thread->on)->name);
    case WR_SIM_BUSY:
        return snprintf(out, size, "is busy");
    case WR_SIM_ENDED:
        return snprintf(out, size, "has ended");
    }
    return 0;
}

size_t wr_sim_describe(char *out, size_t size)
{
    size_t used = 0;

    for (unsigned i = 0; i < wr_sim_thread_count && used + 1 < size; i++) {
        const struct wr_sim_thread *thread = wr_sim_threads[i];

        used += (size_t)snprintf(out + used, size - used, "\n  %s ", thread->name);
        if (used + 1 < size)
            used += (size_t)describe(out + used, size - used, thread);
        if (thread->deadline != WEIR_FOREVER && thread->state != WR_SIM_READY && used + 1 < size)
            used += (size_t)snprintf(out + used, size - used, " until %" PRId64, thread->deadline);
    }
    return used < size ? used : size - 1;
}

static _Noreturn void fail_with_threads(const char *what, uint64_t count)
{
    char threads[800] = "";

    wr_sim_describe(threads, sizeof(threads));
    if (count > 0)
        weir_sim_fail("%s %" PRIu64 "%s", what, count, threads);
    weir_sim_fail("%s%s", what, threads);
}

/* ---- the clock ------------------------------------------------------------------------------- */

bool wr_sim_has_passed(weir_time deadline)
{
    return deadline <= wr_sim.now;
}

static bool is_waiting(const struct wr_sim_thread *thread)
{
    return thread->state != WR_SIM_READY && thread->state != WR_SIM_ENDED;
}

static weir_time next_moment(void)
{
    weir_time sockets = wr_sim_sockets_due(), children = wr_sim_children_due();
    weir_time next = sockets < children ? sockets : children;

    for (unsigned i = 0; i < wr_sim_thread_count; i++)
        if (is_waiting(wr_sim_threads[i]) && wr_sim_threads[i]->deadline < next)
            next = wr_sim_threads[i]->deadline;
    return next;
}

/* Moves the clock to the next moment at which something happens; false if nothing ever will. */
static bool clock_jump(void)
{
    weir_time next = next_moment();

    if (next == WEIR_FOREVER)
        return false;
    if (++wr_sim.jumps > wr_sim.opt.jumps_max)
        fail_with_threads("livelock: no end after moves of the clock:", wr_sim.opt.jumps_max);
    if (next > wr_sim.now)
        wr_sim.now = next;
    WR_SIM_LOG("lets time pass");
    for (unsigned i = 0; i < wr_sim_thread_count; i++)
        if (is_waiting(wr_sim_threads[i]) && wr_sim_has_passed(wr_sim_threads[i]->deadline))
            wr_sim_wake(wr_sim_threads[i], -ETIMEDOUT);
    wr_sim_sockets_tick();
    wr_sim_children_tick();
    return true;
}

/* ---- switching ------------------------------------------------------------------------------- */

static void maybe_preempt(void)
{
    if (ready_count > 1 && wr_sim_below(&wr_sim.schedule_luck, wr_sim.opt.switch_every) == 0 &&
        !wr_sim.frozen)
        wr_sim_jump(ready_draw_other(), false);
}

void wr_sim_point(void)
{
    if (!wr_sim.current)
        return; /* code that is used outside of a run, too */
    if (++wr_sim.report.points > wr_sim.opt.points_max && !wr_sim.frozen)
        fail_with_threads("livelock: no end after points:", wr_sim.opt.points_max);
    if (wr_sim.opt.slip_per_65536 != 0 && !wr_sim.frozen &&
        (wr_sim_draw(&wr_sim.fault_luck) & 65535) < wr_sim.opt.slip_per_65536)
        clock_jump();
    maybe_preempt();
}

/* The thread that goes on when the current one cannot. */
static struct wr_sim_thread *next_thread(void)
{
    while (ready_count == 0)
        if (!clock_jump())
            fail_with_threads("deadlock: no thread can run and no deadline is pending", 0);
    return ready_draw();
}

int wr_sim_block(enum wr_sim_state state, const void *on, uint64_t number, weir_time deadline)
{
    struct wr_sim_thread *self = wr_sim.current, *next;

    WR_ASSERT(state != WR_SIM_READY && state != WR_SIM_ENDED);
    if (wr_sim_has_passed(deadline))
        return -ETIMEDOUT;
    ready_remove(self);
    self->state = state;
    self->on = on;
    self->number = number;
    self->deadline = deadline;
    self->waits_since = ++wr_sim.waits;
    next = next_thread();
    if (next != self)
        wr_sim_jump(next, false);
    WR_ASSERT(self->state == WR_SIM_READY && wr_sim.current == self);
    return self->result;
}

void wr_sim_wake(struct wr_sim_thread *thread, int result)
{
    WR_ASSERT(is_waiting(thread));
    thread->result = result;
    wr_sim_ready_add(thread);
}

void wr_sim_leave(void)
{
    ready_remove(wr_sim.current);
    wr_sim.current->state = WR_SIM_ENDED;
    wr_sim.current->deadline = WEIR_FOREVER;
    wr_sim_jump(next_thread(), true);
    __builtin_unreachable(); /* an ended thread is never in the ready set */
}

void weir_sim_pause(void)
{
    wr_sim_call("weir_sim_pause");
    wr_os_yield();
}

void weir_sim_busy(int64_t ns)
{
    wr_sim_call("weir_sim_busy");
    wr_sim_block(WR_SIM_BUSY, NULL, 0, wr_sim.now + (ns > 0 ? ns : 0));
}

/* ---- the door -------------------------------------------------------------------------------- */

weir_time wr_os_now(void)
{
    wr_sim_point();
    return wr_sim.current ? wr_sim.now : WEIR_SIM_START;
}

weir_time wr_os_now_coarse(void)
{
    return wr_os_now();
}

/* The clock costs nothing here, so every reading is a pulse. */
void wr_os_pulse_join(void)
{
}

void wr_os_pulse_part(void)
{
}

void wr_os_pulse_want(weir_time now)
{
    (void)now;
}

weir_time wr_os_pulse_end(weir_time pulse)
{
    return pulse;
}

void wr_os_yield(void)
{
    wr_sim_point();
    if (wr_sim.current && ready_count > 1)
        wr_sim_jump(ready_draw_other(), false);
}

/* Simulated threads see each other's stores in order. */
bool wr_os_fence_heavy_ready(void)
{
    return true;
}

void wr_os_fence_heavy(void)
{
    wr_sim_point();
}

/* A spinning thread waits for another one, so that one should run. */
void wr_os_relax(void)
{
    wr_os_yield();
}

int wr_os_futex_wait(_Atomic uint32_t *word, uint32_t expected, weir_time deadline)
{
    wr_sim_call("futex_wait");
    wr_sim.report.futex_waits++;
    if (atomic_load(word) != expected)
        return 0;
    /* To wake for no reason later on would look the same as doing so now and being preempted. */
    if (wr_sim_chance(wr_sim.opt.spurious_per_256) || wr_sim_chance(wr_sim.opt.eintr_per_256)) {
        wr_sim.report.interrupts++;
        return 0;
    }
    WR_SIM_LOG("waits on futex %p while it is %" PRIu32, (void *)word, expected);
    return wr_sim_block(WR_SIM_FUTEX, (const void *)word, expected, deadline);
}

static struct wr_sim_thread *futex_first(const void *word)
{
    struct wr_sim_thread *first = NULL;

    for (unsigned i = 0; i < wr_sim_thread_count; i++) {
        struct wr_sim_thread *thread = wr_sim_threads[i];

        if (thread->state == WR_SIM_FUTEX && thread->on == word &&
            (!first || thread->waits_since < first->waits_since))
            first = thread;
    }
    return first;
}

void wr_os_futex_wake(_Atomic uint32_t *word, unsigned count)
{
    struct wr_sim_thread *thread;

    wr_sim_call("futex_wake");
    wr_sim.report.futex_wakes++;
    WR_SIM_LOG("wakes %u on futex %p", count, (void *)word);
    while (count-- > 0 && (thread = futex_first((const void *)word)))
        wr_sim_wake(thread, 0);
}
