/* The tables of a journal, and how it is opened: for the code that writes it and the code that reads it.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_ENGINE_JOURNAL_SCHEMA_H
#define WR_CLI_ENGINE_JOURNAL_SCHEMA_H

/* "weir", in the header of the file; and which tables these are. */
#define JOURNAL_APPLICATION "2003134834"
#define JOURNAL_VERSION     "1"

/* How long to wait for another program that has the file locked: without shared memory readers and writers exclude each
 * other. */
enum { JOURNAL_PATIENCE_MS = 20000 };

/* task: one row for each task that was ever met. `met` is the run that met it last, `run` the one whose result it has.
 * same: how often an equal task came in a run. */
#define JOURNAL_SCHEMA                                                                             \
    "CREATE TABLE run(id INTEGER PRIMARY KEY, began REAL, ended REAL, pid INTEGER, host TEXT,"     \
    " command TEXT);"                                                                              \
    "CREATE TABLE task(id INTEGER PRIMARY KEY, hash INTEGER NOT NULL, hash2 INTEGER NOT NULL,"     \
    " nth INTEGER NOT NULL, words BLOB, record BLOB, \"group\" BLOB, env BLOB, cwd BLOB,"          \
    " first_run INTEGER, met INTEGER, run INTEGER, seq INTEGER, reason TEXT, exit INTEGER,"        \
    " signal INTEGER, attempts INTEGER, started REAL, ended REAL, failed_attempts TEXT);"          \
    "CREATE UNIQUE INDEX task_identity ON task(hash, hash2, nth);"                                 \
    "CREATE TABLE same(hash INTEGER NOT NULL, hash2 INTEGER NOT NULL, run INTEGER, count INTEGER," \
    " PRIMARY KEY(hash, hash2)) WITHOUT ROWID;"                                                    \
    "PRAGMA application_id=" JOURNAL_APPLICATION ";"                                               \
    "PRAGMA user_version=" JOURNAL_VERSION ";"

#endif
