/* The opt-in reporter of stack overflows: names the body that ran off its stack, then lets the
 * process die as it would have.
 * SPDX-License-Identifier: MIT */
#include "runtime/overflow.h"

#include "base/os.h"
#include "runtime/worker.h"

#include <string.h>

/* Called in the signal's context: no locks, no allocation, no stdio. */
static void on_fault(const void *address)
{
    struct wr_worker *worker = wr_worker_self();
    struct wr_fiber *fiber = worker ? wr_load(&worker->current, relaxed) : NULL;
    weir_runtime *rt = worker ? worker->carrier.runtime : NULL;
    char name[32] = "", message[160];
    void *item;
    size_t n = 0;

    if (!fiber || !wr_stack_overflowed(&rt->stacks, fiber, address))
        return;
    item = wr_load(&fiber->item, acquire);
    if (item)
        rt->source->describe(rt->source, item, name, NULL);
    name[sizeof(name) - 1] = '\0';
    const char *part[] = { "weir: stack overflow in body \"", name[0] ? name : "(unnamed)",
                           "\"; weir_runtime_options.stack_size is how to give it more\n" };
    for (int i = 0; i < 3; i++) {
        memcpy(message + n, part[i], strlen(part[i]));
        n += strlen(part[i]);
    }
    wr_os_say(message, n);
}

int wr_overflow_install(const weir_runtime *rt)
{
    return rt->options.report_overflow ? wr_os_on_fault(on_fault) : 0;
}

void wr_overflow_thread_begin(const weir_runtime *rt)
{
    if (rt->options.report_overflow)
        wr_os_fault_stack(true);
}

void wr_overflow_thread_end(const weir_runtime *rt)
{
    if (rt->options.report_overflow)
        wr_os_fault_stack(false);
}
