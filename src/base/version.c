/* The library's version as text.
 * SPDX-License-Identifier: MIT */
#include <weir/defs.h>

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

const char *weir_version(void)
{
    return TEXT(WEIR_VERSION_MAJOR) "." TEXT(WEIR_VERSION_MINOR) "." TEXT(WEIR_VERSION_PATCH);
}
