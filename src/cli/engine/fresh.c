/* Names for what a run writes.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/fresh.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

char *fresh_name(const char *path, bool another, bool (*is_free)(const char *path))
{
    enum { MOST = 100000 };
    char *name = strdup(path);

    for (int i = 2; name && another && !is_free(name) && i < MOST; i++) {
        free(name);
        if (asprintf(&name, "%s.%d", path, i) < 0)
            name = NULL;
    }
    if (!name)
        errno = ENOMEM;
    return name;
}

bool fresh_is_empty_file(const char *path)
{
    struct stat st;

    return stat(path, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0;
}

/* 12.out, 3.err */
static bool is_output(const char *name)
{
    size_t digits = strspn(name, "0123456789");

    return digits && (!strcmp(name + digits, ".out") || !strcmp(name + digits, ".err"));
}

bool fresh_is_clean_directory(const char *path)
{
    DIR *directory = opendir(path);
    bool clean = true;

    if (!directory)
        return errno == ENOENT;
    for (struct dirent *entry; clean && (entry = readdir(directory));)
        clean = !is_output(entry->d_name);
    closedir(directory);
    return clean;
}
