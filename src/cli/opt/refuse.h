/* Saying what is wrong with the input, in one sentence.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_REFUSE_H
#define WR_CLI_REFUSE_H

#include <stdarg.h>
#include <stdio.h>
#include <weir.h>

/* Answers WEIR_EINVAL, so that `return refuse(...)` reads as it acts. Names in the sentence may come from
 * data: control characters, which could lead a terminal astray, become '?'. */
__attribute__((format(printf, 2, 3))) static inline int refuse(weir_message *message,
                                                               const char *format, ...)
{
    va_list args;

    if (!message)
        return WEIR_EINVAL;
    va_start(args, format);
    vsnprintf(message->text, sizeof(message->text), format, args);
    va_end(args);
    for (char *at = message->text; *at; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            *at = '?';
    return WEIR_EINVAL;
}

#endif
