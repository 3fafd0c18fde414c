/* Sentences for a person to read; see say.h.
 * SPDX-License-Identifier: MIT */
#include "base/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void wr_say(weir_message *message, const char *format, ...)
{
    size_t used = message ? strlen(message->text) : 0;
    va_list args;

    if (!message)
        return;
    va_start(args, format);
    vsnprintf(message->text + used, sizeof(message->text) - used, format, args);
    va_end(args);
}
