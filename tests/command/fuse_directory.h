/* A file system of its own kind: a directory, served through FUSE, as sshfs serves one of another machine.
 * SPDX-License-Identifier: MIT */
#ifndef WR_TESTS_FUSE_DIRECTORY_H
#define WR_TESTS_FUSE_DIRECTORY_H

#include <stdbool.h>

/* Mounts `from` on `to`, in a name space of mounts that only this process and its children see, until the process
 * ends; a thread serves it. False: that is not allowed here. Files only, no directories within. */
bool fuse_directory_mount(const char *from, const char *to);

#endif
