/* The table of reasons: names and sentences by number; and why a task waits, in words.
 * SPDX-License-Identifier: MIT */
#include "base/reason.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <weir/task.h>

/* By number, with gaps. A number that stands twice does not compile (-Woverride-init). */
static const struct row {
    const char *label, *text;
} table[] = {
#define ROW(name, number, label, text) [number] = { label, text },
    WEIR_REASONS(ROW)
#undef ROW
};

bool wr_reason_is_known(weir_reason reason)
{
    return (unsigned)reason < sizeof(table) / sizeof(table[0]) && table[reason].label;
}

const char *weir_reason_name(weir_reason reason)
{
    return wr_reason_is_known(reason) ? table[reason].label : "?";
}

const char *weir_reason_text(weir_reason reason)
{
    return wr_reason_is_known(reason) ? table[reason].text : "?";
}

/* As snprintf, behind the first `length` characters, which need not all have fitted. Answers how long the text would be now, given
 * room. */
static __attribute__((format(printf, 4, 5))) int add(char *text, size_t size, int length,
                                                     const char *format, ...)
{
    bool fits = (size_t)length < size;
    va_list args;

    va_start(args, format);
    length +=
        vsnprintf(fits ? text + length : NULL, fits ? size - (size_t)length : 0, format, args);
    va_end(args);
    return length;
}

int weir_why_text(char *text, size_t size, const weir_why *why)
{
    int n = add(text, size, 0, "%s", weir_reason_text(why->reason));
    bool named = strcmp(why->node, "executor") != 0; /* there is only one of these */

    if (why->limit || why->reason == WEIR_REASON_DOMAIN_SLOTS)
        n = add(text, size, n, " (%s%s%s%s: %lld of %lld in use)", why->node, named ? " \"" : "",
                named ? why->key : "", named ? "\"" : "", (long long)why->held,
                (long long)why->limit);
    if (why->holders[0])
        n = add(text, size, n, ", held by %s", why->holders);
    if (why->ahead)
        n = add(text, size, n, ", %llu before it", (unsigned long long)why->ahead);
    return n;
}
