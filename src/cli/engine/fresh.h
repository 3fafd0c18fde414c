/* Names for what a run writes, so that nothing of an earlier run is destroyed.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_FRESH_H
#define WR_CLI_FRESH_H

#include <stdbool.h>

/* `path` itself; or, if another is asked for and `free` says no, the first of path.2, path.3, ... that is free. To be
 * freed; NULL with errno. */
char *fresh_name(const char *path, bool another, bool (*is_free)(const char *path));

/* There is no such file, or it is empty, or it is no regular file. */
bool fresh_is_empty_file(const char *path);

/* There is no such directory, or it has no file SEQ.out or SEQ.err. */
bool fresh_is_clean_directory(const char *path);

#endif
