/* Messages of ours on standard error.
 * SPDX-License-Identifier: MIT */
#include "cli/screen/say.h"

#include "cli/screen/glyph.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

void say_clean(char *text, size_t size)
{
    bool utf8 = MB_CUR_MAX > 1 || !isatty(2); /* a file takes UTF-8 in any locale */
    char *copy = strdup(text);
    const char *at = copy;
    struct glyph glyph;
    size_t length = 0;

    if (!copy)
        return;
    while (glyph_next(&glyph, &at, utf8) && length + glyph.length < size) {
        memcpy(text + length, glyph.bytes, glyph.length);
        length += glyph.length;
    }
    text[length] = 0;
    free(copy);
}

void say(const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    say_clean(text, sizeof(text));
    fprintf(stderr, "weir: %s\n", text);
}

void say_why(char *text, size_t size, int error)
{
    struct rlimit limit;

    if (error == EMFILE && getrlimit(RLIMIT_NOFILE, &limit) == 0)
        snprintf(text, size,
                 "no file descriptor left (limit %llu): raise it with `ulimit -n`, or lower -j",
                 (unsigned long long)limit.rlim_cur);
    else if (error == EAGAIN && getrlimit(RLIMIT_NPROC, &limit) == 0)
        snprintf(text, size, "no process left (limit %llu): raise it with `ulimit -u`, or lower -j",
                 (unsigned long long)limit.rlim_cur);
    else if (error == E2BIG)
        snprintf(text, size, "%s (an argument has at most 128 KiB): pass the record by --stdin",
                 strerror(error));
    else if (error == EBADF)
        snprintf(text, size, "it is closed");
    else
        snprintf(text, size, "%s", strerror(error));
}

int say_wrong(const char *what, int error)
{
    char why[160];

    say_why(why, sizeof(why), error);
    say("%s: %s", what, why);
    return SAY_WRONG;
}
