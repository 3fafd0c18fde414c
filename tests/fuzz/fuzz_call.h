/* All calls of the fuzzer, by number.
 * SPDX-License-Identifier: MIT */
#ifndef WR_FUZZ_CALL_H
#define WR_FUZZ_CALL_H

#include "fuzz/fuzz_control.h"
#include "fuzz/fuzz_odd.h"

static inline void call_by_number(struct actor *actor)
{
    static void (*const call[])(struct actor *) = {
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
        call_odd,
    };
    uint32_t which = take_below(&actor->in, sizeof(call) / sizeof(call[0]));

    bool changes = call[which] != call_wait && call[which] != call_sleep;

    world.changing += changes;
    call[which](actor);
    world.changing -= changes;
    world.changes += changes;
}

static inline void act(struct actor *actor, uint32_t calls)
{
    while (calls-- && world.fuel > 0 && !input_is_over(&actor->in)) {
        world.fuel--;
        call_by_number(actor);
    }
}

#endif
