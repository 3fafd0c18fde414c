/* All calls of the fuzzer, by number.
 * SPDX-License-Identifier: MIT */
#ifndef WR_FUZZ_CALL_H
#define WR_FUZZ_CALL_H

#include "fuzz/fuzz_control.h"
#include "fuzz/fuzz_odd.h"

typedef void call_fn(struct actor *actor);

/* Not every life makes all of them: what seldom meets in a crowd meets often among few. */
static inline call_fn *take_call(struct input *in)
{
    static call_fn *const call[] = {
        call_submit,       call_submit,         call_submit,
        call_submit,       call_submit,         call_submit,
        call_submit,       call_submit,         call_submit_many,
        call_submit_many,  call_execute_all,    call_wait,
        call_wait,         call_wait,           call_wait,
        call_cancel,       call_cancel,         call_settle,
        call_settle,       call_on_done,        call_on_done,
        call_take,         call_unref,          call_fd,
        call_why,          call_task_cool_down, call_local,
        call_gate,         call_gate,           call_group_resize,
        call_group_run_on, call_evict,          call_evict,
        call_release,      call_restore,        call_domain_resize,
        call_resize,       call_look,           call_drain,
        call_close,        call_sleep,          call_sleep,
        call_sleep,        call_busy,           call_blocking,
        call_odd,          call_wait_all,       call_wait_any,
    };
    enum { COUNT = sizeof(call) / sizeof(call[0]) };
    uint32_t which = take_below(in, COUNT);

    return world.calls >> which & 1 ? call[which] : call_submit;
}

/* Whether it may set a waiting task free; see check_never_ends. */
static inline bool is_change(call_fn *call)
{
    return call != call_wait && call != call_wait_all && call != call_wait_any &&
           call != call_sleep;
}

static inline void call_one(struct actor *actor)
{
    call_fn *call = take_call(&actor->in);

    world.changing += is_change(call);
    call(actor);
    world.changing -= is_change(call);
    world.changes += is_change(call);
}

static inline void act(struct actor *actor, uint32_t calls)
{
    while (calls-- && world.fuel > 0 && !input_is_over(&actor->in)) {
        world.fuel--;
        call_one(actor);
    }
}

#endif
