/* All of a text into a descriptor.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_ENGINE_WRITE_WHOLE_H
#define WR_CLI_ENGINE_WRITE_WHOLE_H

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

/* 0, or an errno. */
static inline int write_whole(int fd, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t n = write(fd, text, length);
        if (n < 0 && errno != EINTR)
            return errno;
        text += n < 0 ? 0 : n;
        length -= n < 0 ? 0 : (size_t)n;
    }
    return 0;
}

#endif
