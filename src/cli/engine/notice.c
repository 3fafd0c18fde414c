/* What other threads have for the loop: that it should look, what it should print, when it should stop.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/printer.h"
#include "cli/engine/run.h"
#include "cli/screen/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* One write is enough until the loop has looked: `woken` is cleared before it does. */
void engine_wake(struct engine *engine)
{
    uint64_t one = 1;
    ssize_t n;

    if (atomic_exchange(&engine->woken, true))
        return;
    n = write(engine->wake_fd, &one, sizeof(one));
    (void)n; /* cannot fail below 2^64 - 1 wake-ups that the loop has not read */
}

static void print_message(struct engine *engine, const char *format, va_list args)
{
    char text[1024] = "weir: ";
    size_t length = strlen(text);

    vsnprintf(text + length, sizeof(text) - length - 1, format, args);
    say_clean(text, sizeof(text) - 1);
    length = strlen(text);
    text[length++] = '\n';
    printer_text(engine->printer, 2, text, length);
}

void engine_say(struct engine *engine, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_message(engine, format, args);
    va_end(args);
}

void engine_ask(struct engine *engine, enum halt_when when)
{
    int before = atomic_load(&engine->asked);

    while ((int)when > before && !atomic_compare_exchange_weak(&engine->asked, &before, (int)when))
        ;
    if ((int)when > before)
        engine_wake(engine);
}

void engine_fail(struct engine *engine, const char *format, ...)
{
    va_list args;

    if (!atomic_exchange(&engine->wrong, true)) {
        va_start(args, format);
        print_message(engine, format, args);
        va_end(args);
    }
    engine_ask(engine, HALT_SOON);
}
