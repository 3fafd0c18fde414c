/* The table of reasons: names and sentences by number.
 * SPDX-License-Identifier: MIT */
#include "executor/reason.h"

#include "executor/task.h"

#include <assert.h>

#define FITS(name, number, label, text) \
    static_assert((number) <= WR_REASON_MAX, "a reason has its place in a task's word");
WEIR_REASONS(FITS)
#undef FITS

/* A switch, not an array: numbers may have gaps, and one that stands twice does not compile. */
const char *weir_reason_name(weir_reason reason)
{
    switch ((unsigned)reason) {
#define NAME(name, number, label, text) \
    case number:                        \
        return label;
        WEIR_REASONS(NAME)
#undef NAME
    default:
        return "?";
    }
}

const char *weir_reason_text(weir_reason reason)
{
    switch ((unsigned)reason) {
#define TEXT(name, number, label, text) \
    case number:                        \
        return text;
        WEIR_REASONS(TEXT)
#undef TEXT
    default:
        return "?";
    }
}

bool wr_reason_is_known(weir_reason reason)
{
    switch ((unsigned)reason) {
#define KNOWN(name, number, label, text) case number:
        WEIR_REASONS(KNOWN)
#undef KNOWN
        return true;
    default:
        return false;
    }
}
