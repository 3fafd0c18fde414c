/* The bare switch for machines without assembly of their own: slow (two system calls) but portable.
 * A suspended stack holds its ucontext in its own frame; `sp` points there.
 * SPDX-License-Identifier: MIT */
#include "runtime/context.h"

#include <string.h>
#include <ucontext.h>

/* makecontext passes ints only, so two pointers travel as halves. */
union pointer_halves {
    void *pointer;
    void (*entry)(void *arg);
    unsigned half[2];
};

static void start(unsigned e0, unsigned e1, unsigned a0, unsigned a1)
{
    union pointer_halves entry = { .half = { e0, e1 } };
    union pointer_halves arg = { .half = { a0, a1 } };

    entry.entry(arg.pointer);
}

void wr_switch(void **from, void *to)
{
    ucontext_t here;

    *from = &here;
    swapcontext(&here, to);
}

void *wr_switch_prepare(void *top, void (*entry)(void *arg), void *arg)
{
    /* The context lies at the top of the very stack it describes; the room below is the stack. */
    ucontext_t *fresh = (ucontext_t *)(((uintptr_t)top - sizeof(ucontext_t)) & ~(uintptr_t)63);
    union pointer_halves e = { .pointer = NULL };
    union pointer_halves a = { .pointer = arg };
    enum { ROOM = 8192 }; /* makecontext only needs to know where the top is */

    e.entry = entry;
    memset(fresh, 0, sizeof(*fresh));
    getcontext(fresh);
    fresh->uc_stack.ss_sp = (char *)fresh - ROOM;
    fresh->uc_stack.ss_size = ROOM;
    fresh->uc_link = NULL;
    makecontext(fresh, (void (*)(void))(uintptr_t)start, 4, e.half[0], e.half[1], a.half[0],
                a.half[1]);
    return fresh;
}
