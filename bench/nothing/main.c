/* A command that does nothing, without so much as a dynamic linker or a start of the C library.
 * SPDX-License-Identifier: MIT */
#include <unistd.h>

void _start(void);

void _start(void)
{
    _exit(0);
}
