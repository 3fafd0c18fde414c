/* The file of a journal: opened by one weir at a time, checked, and moved aside if it is damaged.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_ENGINE_JOURNAL_FILE_H
#define WR_CLI_ENGINE_JOURNAL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sqlite3.h>

struct journal_file {
    sqlite3 *database;
    int lock_fd; /* -1: none */
};

/* 0, or an exit status, and what is wrong was said. To be closed in any case. */
int journal_file_open(struct journal_file *file, const char *path);
void journal_file_close(struct journal_file *file);

/* What went wrong last, in the system's words where SQLite has only "disk I/O error". */
void journal_file_why(const struct journal_file *file, char *text, size_t size);

/* Adds a row for this run, whose number is *run. */
bool journal_file_begin_run(struct journal_file *file, int64_t *run);
void journal_file_end_run(struct journal_file *file, int64_t run);

/* Whether a file system of that type (see statfs(2)) is on another machine, where SQLite's shared memory does not
 * work. */
bool journal_is_remote(unsigned long type);

#endif
