/* The reporter of stack overflows: names the body that ran off its stack, then lets the process die as
 * it would have.
 * SPDX-License-Identifier: MIT */
#include "runtime/overflow.h"

#include "base/os.h"
#include "runtime/worker.h"

#include <string.h>

/* A line in the making. All of this is called in a signal's context: no locks, no allocation, no stdio. */
struct line {
    char text[512];
    size_t length;
};

static void add(struct line *line, const char *part)
{
    size_t room = sizeof(line->text) - line->length, length = strlen(part);

    if (length > room)
        length = room;
    memcpy(line->text + line->length, part, length);
    line->length += length;
}

static void add_number(struct line *line, size_t number)
{
    char digits[24], *at = digits + sizeof(digits) - 1;

    *at = '\0';
    do {
        *--at = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    add(line, at);
}

/* Keys and ids may be long; what follows must still fit. */
static void add_name(struct line *line, const char *name)
{
    enum { NAME_MAX_SHOWN = 128 };
    char cut[NAME_MAX_SHOWN + 1];

    strncpy(cut, name, NAME_MAX_SHOWN);
    cut[NAME_MAX_SHOWN] = '\0';
    add(line, cut);
}

static void add_body(struct line *line, const weir_runtime *rt, struct wr_fiber *fiber)
{
    const char *part[WR_NAME_PARTS] = { NULL };
    void *item = wr_load(&fiber->item, acquire);

    if (item)
        rt->source->identify(rt->source, item, part);
    else
        part[0] = "a callback"; /* what runs here after the body, on behalf of it */
    for (int i = 0; i < WR_NAME_PARTS && part[i]; i++)
        add_name(line, part[i]);
}

static void on_fault(const void *address)
{
    struct wr_worker *worker = wr_worker_self();
    struct wr_fiber *fiber = worker ? wr_load(&worker->current, relaxed) : NULL;
    weir_runtime *rt = worker ? worker->member.runtime : NULL;
    struct line line = { .length = 0 };

    if (!fiber || !rt->options.report_overflow || !wr_stack_overflowed(&rt->stacks, fiber, address))
        return;
    add(&line, "weir: stack overflow in ");
    add_body(&line, rt, fiber);
    add(&line, ": its stack_size is ");
    add_number(&line, rt->options.stack_size);
    add(&line, ": raise it\n");
    wr_os_say(line.text, line.length);
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
