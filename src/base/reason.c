/* The table of reasons: names and sentences by number.
 * SPDX-License-Identifier: MIT */
#include "base/reason.h"

/* By number, with gaps where there is none. One that stands twice does not compile (-Woverride-init). */
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
