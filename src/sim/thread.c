/* Simulated threads: their stacks, the jumps between them, start and join.
 *
 * The runtime switches stacks by itself inside a simulated thread, so a thread may be left on one
 * stack and found on another. All we keep of where it is, therefore, is what the last jump away
 * from it saved. ASan wants to know the bounds of the stack it is about to arrive on; we learn them
 * from ASan itself, which tells on arrival which stack was just left.
 *
 * Stacks outlive a run: making them anew would cost more than most runs.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "sim/sim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifdef WR_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

enum { STACK_SIZE = 256 * 1024, STACK_GUARD = 4096 };

struct wr_sim_thread *wr_sim_threads[WR_SIM_THREADS_MAX];
unsigned wr_sim_thread_count;

static struct wr_sim_thread *spare; /* records that are not in use */
static struct wr_sim_thread home;   /* the stack that called weir_sim_run */
static uint64_t ids;
static void *slot_outside[WR_OS_LOCALS];

/* ---- jumps ----------------------------------------------------------------------------------- */

#ifdef WR_ASAN
static struct wr_sim_thread *left; /* the thread that the jump in progress left */

static void jump(struct wr_sim_thread *from, struct wr_sim_thread *to, bool for_good)
{
    left = from;
    __sanitizer_start_switch_fiber(for_good ? NULL : &from->fake_stack, to->bounds_low,
                                   to->bounds_size);
    wr_switch(&from->sp, to->sp);
    __sanitizer_finish_switch_fiber(from->fake_stack, &left->bounds_low, &left->bounds_size);
}

static void arrive(void)
{
    __sanitizer_finish_switch_fiber(NULL, &left->bounds_low, &left->bounds_size);
}

static void stack_ready(struct wr_sim_thread *thread)
{
    ASAN_UNPOISON_MEMORY_REGION(thread->stack, STACK_SIZE); /* it may have been abandoned */
    thread->bounds_low = thread->stack;
    thread->bounds_size = STACK_SIZE;
}
#else
static void jump(struct wr_sim_thread *from, struct wr_sim_thread *to, bool for_good)
{
    (void)for_good;
    wr_switch(&from->sp, to->sp);
}

static void arrive(void)
{
}

static void stack_ready(struct wr_sim_thread *thread)
{
    (void)thread;
}
#endif

void wr_sim_jump(struct wr_sim_thread *to, bool for_good)
{
    struct wr_sim_thread *from = wr_sim.current;

    wr_sim.report.switches++;
    wr_sim.report.trace =
        (wr_sim.report.trace ^ to->id ^ wr_sim.report.points << 16) * 0x9e3779b97f4a7c15u;
    wr_sim.report.trace ^= wr_sim.report.trace >> 29;
    wr_sim.current = to;
    WR_SIM_LOG("goes on");
    jump(from, to, for_good);
}

void wr_sim_go_home(void)
{
    struct wr_sim_thread *from = wr_sim.current;

    wr_sim.current = NULL;
    jump(from, &home, true);
    abort(); /* no thread comes back to this stack */
}

void wr_sim_leave_home(struct wr_sim_thread *main)
{
    wr_sim.current = main;
    jump(&home, main, false);
}

static void thread_entry(void *arg)
{
    struct wr_sim_thread *self = arg;

    arrive();
    self->main(self->arg);
    WR_SIM_LOG("ends");
    if (self->id == 1)
        wr_sim_go_home();
    for (unsigned i = 0; i < wr_sim_thread_count; i++) {
        struct wr_sim_thread *joiner = wr_sim_threads[i];

        if (joiner->state == WR_SIM_JOIN && joiner->number == self->id)
            wr_sim_wake(joiner, 0);
    }
    wr_sim_leave();
}

/* ---- life and death -------------------------------------------------------------------------- */

static struct wr_sim_thread *spare_take(void)
{
    struct wr_sim_thread *thread = spare;
    char *stack;

    if (thread) {
        spare = thread->next_spare;
        return thread;
    }
    stack = mmap(NULL, STACK_SIZE + STACK_GUARD, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED)
        return NULL;
    WR_ASSERT(mprotect(stack, STACK_GUARD, PROT_NONE) == 0);
    thread = calloc(1, sizeof(*thread));
    WR_ASSERT(thread != NULL);
    thread->stack = stack + STACK_GUARD;
    return thread;
}

static void spare_give(struct wr_sim_thread *thread)
{
    thread->next_spare = spare;
    spare = thread;
}

struct wr_sim_thread *wr_sim_thread_new(const char *name, void (*main)(void *arg), void *arg)
{
    struct wr_sim_thread *thread;

    if (wr_sim_thread_count == WR_SIM_THREADS_MAX || !(thread = spare_take()))
        return NULL;
    *thread =
        (struct wr_sim_thread){ .stack = thread->stack, .main = main, .arg = arg, .id = ++ids };
    snprintf(thread->name, sizeof(thread->name), "%s", name ? name : "");
    stack_ready(thread);
    thread->sp = wr_switch_prepare(thread->stack + STACK_SIZE, thread_entry, thread);
    wr_sim_threads[wr_sim_thread_count++] = thread;
    wr_sim_ready_add(thread);
    return thread;
}

static unsigned thread_place(uint64_t id)
{
    for (unsigned i = 0; i < wr_sim_thread_count; i++)
        if (wr_sim_threads[i]->id == id)
            return i;
    weir_sim_fail("join of thread #%llu, which does not exist or was joined before",
                  (unsigned long long)id);
}

void wr_sim_thread_join(uint64_t id)
{
    struct wr_sim_thread *thread;
    unsigned place;

    if (id == wr_sim.current->id)
        weir_sim_fail("a thread joins itself");
    /* Looked up anew each time: its place changes, and another thread may have joined it first. */
    while (thread = wr_sim_threads[place = thread_place(id)], thread->state != WR_SIM_ENDED)
        wr_sim_block(WR_SIM_JOIN, thread, id, WEIR_FOREVER);
    memmove(&wr_sim_threads[place], &wr_sim_threads[place + 1],
            (--wr_sim_thread_count - place) * sizeof(wr_sim_threads[0]));
    spare_give(thread);
}

bool wr_sim_thread_owns(const void *address)
{
    const char *a = address;

    for (unsigned i = 0; i < wr_sim_thread_count; i++)
        if (a >= wr_sim_threads[i]->stack && a < wr_sim_threads[i]->stack + STACK_SIZE)
            return true;
    return false;
}

void wr_sim_threads_reset(void)
{
    while (wr_sim_thread_count > 0) /* last first, so that the next run finds the same order */
        spare_give(wr_sim_threads[--wr_sim_thread_count]);
    ids = 0;
}

#ifdef WR_ASAN
void wr_sim_stack_bounds(void **low, size_t *size)
{
    *low = wr_sim.current ? wr_sim.current->stack : NULL;
    *size = STACK_SIZE;
}
#endif

/* ---- the door -------------------------------------------------------------------------------- */

void **wr_os_local(void)
{
    return wr_sim.current ? wr_sim.current->slot : slot_outside;
}

int wr_os_thread_start(struct wr_os_thread *thread, void (*main)(void *arg), void *arg,
                       const char *name)
{
    struct wr_sim_thread *new;

    wr_sim_call("thread_start");
    if (wr_sim_fault(&wr_sim.report.threads, wr_sim.opt.fail_thread))
        return -EAGAIN;
    new = wr_sim_thread_new(name, main, arg);
    if (!new)
        return -EAGAIN;
    WR_SIM_LOG("starts thread %s", new->name);
    thread->handle = (uintptr_t) new->id;
    return 0;
}

/* Simulated threads are not cancelled. */
int wr_os_shield(void)
{
    return 0;
}

void wr_os_unshield(int former)
{
    (void)former;
}

void wr_os_thread_join(struct wr_os_thread *thread)
{
    wr_sim_call("thread_join");
    wr_sim_thread_join(thread->handle);
    thread->handle = 0;
}

uint32_t wr_os_thread_number(void)
{
    return (uint32_t)wr_sim.current->id;
}

bool wr_os_thread_computes(uint32_t number)
{
    (void)number; /* asked of threads that are stuck, and those are in weir_sim_busy */
    wr_sim_call("thread_computes");
    return wr_sim.opt.busy_computes;
}

int64_t weir_sim_thread(void (*body)(void *arg), void *arg, const char *name)
{
    struct wr_sim_thread *new;

    wr_sim_call("weir_sim_thread");
    new = wr_sim_thread_new(name, body, arg);
    return new ? (int64_t) new->id : -EAGAIN;
}

void weir_sim_join(int64_t handle)
{
    wr_sim_call("weir_sim_join");
    wr_sim_thread_join((uint64_t)handle);
}
