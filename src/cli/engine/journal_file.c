/* The file of a journal.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/journal_file.h"

#include "cli/engine/fresh.h"
#include "cli/engine/journal_schema.h"
#include "cli/screen/say.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

/* Far behind the bytes that SQLite locks. */
static const off_t LOCK_AT = INT64_C(1) << 40;

/* ---- one at a time -------------------------------------------------------------------------------- */

/* The command line of a process, for people; "" if it is not known. */
static void command_of(char *out, size_t size, pid_t pid)
{
    char path[40];
    int fd;
    ssize_t n;

    snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, out, size - 1);
    if (fd >= 0)
        close(fd);
    out[n > 0 ? n : 0] = 0;
    for (ssize_t i = 0; i + 1 < n; i++)
        if (!out[i])
            out[i] = ' ';
}

/* The process of the run that has not ended, if the journal says so; 0: not known. */
static pid_t holder_of(const char *path)
{
    sqlite3_stmt *statement = NULL;
    sqlite3 *database = NULL;
    pid_t pid = 0;

    if (sqlite3_open_v2(path, &database, SQLITE_OPEN_READONLY, NULL) == 0 &&
        sqlite3_prepare_v2(database,
                           "SELECT pid FROM run WHERE ended IS NULL ORDER BY id DESC LIMIT 1", -1,
                           &statement, NULL) == 0 &&
        sqlite3_step(statement) == SQLITE_ROW)
        pid = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(database);
    return pid;
}

/* The other run may just have begun, or be in a commit: its row is waited for a little. */
static int tell_holder(const char *path)
{
    enum { TIMES = 40, PAUSE_US = 25000 };
    char command[200] = "";
    pid_t pid = 0;

    for (int i = 0; i < TIMES && !command[0]; i++) {
        if (i)
            usleep(PAUSE_US);
        pid = holder_of(path);
        if (pid > 0)
            command_of(command, sizeof(command), pid);
    }
    if (command[0])
        say("%s: process %d uses this journal (%s); wait for it, or name another file", path,
            (int)pid, command);
    else
        say("%s: another weir uses this journal; wait for it, or name another file", path);
    return SAY_WRONG;
}

/* The lock belongs to this descriptor, and dies with the process. (One that belongs to the process would go when SQLite
 * closes any descriptor of the same file.) */
static int lock_file(struct journal_file *file, const char *path)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCK_AT, .l_len = 1 };

    file->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file->lock_fd < 0) {
        say("--journal %s: %s", path, strerror(errno));
        return SAY_WRONG;
    }
    if (fcntl(file->lock_fd, F_OFD_SETLK, &lock) == 0)
        return 0;
    if (errno == EAGAIN || errno == EACCES)
        return tell_holder(path);
    say("--journal %s: cannot lock it: %s", path, strerror(errno));
    return SAY_WRONG;
}

/* ---- what kind of file ---------------------------------------------------------------------------- */

bool journal_is_remote(unsigned long type)
{
    static const unsigned long remote[] = {
        0x6969,     /* NFS  */ 0xff534d42, /* CIFS */ 0xfe534d42, /* SMB2 */
        0x517b,     /* SMB  */ 0x01021997, /* 9P   */ 0x65735546, /* FUSE, as sshfs is */
        0x00c36400, /* Ceph */ 0x5346414f, /* AFS  */ 0x6b414653, /* kAFS */
    };

    for (size_t i = 0; i < sizeof(remote) / sizeof(*remote); i++)
        if (type == remote[i])
            return true;
    return false;
}

static bool is_regular(const struct journal_file *file)
{
    struct stat st;

    return fstat(file->lock_fd, &st) == 0 && S_ISREG(st.st_mode);
}

static bool is_empty(const struct journal_file *file)
{
    struct stat st;

    return fstat(file->lock_fd, &st) == 0 && st.st_size == 0;
}

static bool has_header(const struct journal_file *file)
{
    static const char header[16] = "SQLite format 3";
    char found[16];

    return pread(file->lock_fd, found, sizeof(found), 0) == sizeof(found) &&
           !memcmp(found, header, sizeof(header));
}

static int number(sqlite3 *database, const char *query, int64_t *out)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(database, query, -1, &statement, NULL);

    if (!rc) {
        rc = sqlite3_step(statement);
        *out = rc == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    }
    sqlite3_finalize(statement);
    return rc == SQLITE_ROW ? 0 : rc ? rc : SQLITE_ERROR;
}

/* ---- opening -------------------------------------------------------------------------------------- */

static int open_database(struct journal_file *file, const char *path)
{
    struct statfs st;
    bool remote = fstatfs(file->lock_fd, &st) == 0 && journal_is_remote((unsigned long)st.f_type);
    int rc =
        sqlite3_open_v2(path, &file->database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);

    if (!rc)
        rc = sqlite3_busy_timeout(file->database, JOURNAL_PATIENCE_MS);
    if (!rc)
        rc = sqlite3_exec(file->database,
                          remote ? "PRAGMA journal_mode=DELETE; PRAGMA synchronous=NORMAL"
                                 : "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL",
                          NULL, NULL, NULL);
    if (!rc && remote)
        say("%s is on a network file system: commits are slower there", path);
    return rc;
}

static bool is_damage(int rc)
{
    rc &= 0xff;
    return rc == SQLITE_CORRUPT || rc == SQLITE_NOTADB || rc == SQLITE_FORMAT;
}

/* Whether all pages are as they should be. SQLITE_CORRUPT: they are not. */
static int check_pages(sqlite3 *database)
{
    sqlite3_stmt *statement = NULL;
    const char *text;
    int rc = sqlite3_prepare_v2(database, "PRAGMA quick_check(1)", -1, &statement, NULL);

    if (!rc) {
        rc = sqlite3_step(statement);
        text = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(statement, 0) : NULL;
        rc = rc == SQLITE_ROW ? (text && !strcmp(text, "ok") ? 0 : SQLITE_CORRUPT) : rc;
    }
    sqlite3_finalize(statement);
    return rc;
}

/* 0: it is ours, or new. Else an error of SQLite's, or SQLITE_MISMATCH for a database of another program. */
static int check_or_create(struct journal_file *file, bool is_new)
{
    static const char create[] = "BEGIN IMMEDIATE;" JOURNAL_SCHEMA "COMMIT";
    int64_t application = 0, version = 0, tables = 0;
    int rc;

    if (is_new)
        return sqlite3_exec(file->database, create, NULL, NULL, NULL);
    rc = check_pages(file->database);
    if (!rc)
        rc = number(file->database, "SELECT count(*) FROM sqlite_master", &tables);
    if (!rc && !tables) /* a run was ended before its first commit */
        return sqlite3_exec(file->database, create, NULL, NULL, NULL);
    if (!rc)
        rc = number(file->database, "PRAGMA application_id", &application);
    if (!rc)
        rc = number(file->database, "PRAGMA user_version", &version);
    if (rc)
        return rc;
    return application == atoll(JOURNAL_APPLICATION) && version == atoll(JOURNAL_VERSION)
               ? 0
               : SQLITE_MISMATCH;
}

static bool is_not_there(const char *path)
{
    struct stat st;

    return lstat(path, &st) < 0;
}

/* A free name that says when the file was found damaged; NULL without memory. */
static char *name_aside(const char *path)
{
    char stamp[32], *dated, *name;
    time_t now = time(NULL);
    struct tm tm;

    strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", localtime_r(&now, &tm));
    if (asprintf(&dated, "%s.damaged-%s", path, stamp) < 0)
        return NULL;
    name = fresh_name(dated, true, is_not_there);
    free(dated);
    return name;
}

static int move_one(const char *path, const char *aside, const char *ending)
{
    char *from = NULL, *to = NULL;
    int rc = -1;

    if (asprintf(&from, "%s%s", path, ending) >= 0 && asprintf(&to, "%s%s", aside, ending) >= 0)
        rc = rename(from, to) < 0 && errno != ENOENT ? -1 : 0;
    free(from);
    free(to);
    return rc;
}

/* Keeps a damaged journal under another name, with the files that belong to it. */
static int move_aside(const char *path)
{
    static const char *const endings[] = { "", "-wal", "-shm", "-journal" };
    char *aside = name_aside(path);
    int rc = aside ? 0 : -1;

    for (size_t i = 0; i < sizeof(endings) / sizeof(*endings) && !rc; i++)
        rc = move_one(path, aside, endings[i]);
    if (!rc)
        say("%s is damaged: it was moved to %s, and a new journal begins: all tasks run", path,
            aside);
    free(aside);
    return rc;
}

static int refuse_file(const char *path, const char *why)
{
    say("--journal %s: %s", path, why);
    return SAY_WRONG;
}

void journal_file_why(const struct journal_file *file, char *text, size_t size)
{
    int code = sqlite3_errcode(file->database), error = sqlite3_system_errno(file->database);

    if (code == SQLITE_FULL)
        say_why(text, size, ENOSPC);
    else if ((code == SQLITE_IOERR || code == SQLITE_CANTOPEN) && error)
        say_why(text, size, error);
    else
        snprintf(text, size, "%s", sqlite3_errmsg(file->database));
}

/* As journal_file_open; -1: it was damaged and moved aside. */
static int try_open(struct journal_file *file, const char *path)
{
    char why[200];
    bool is_new;
    int rc;

    *file = (struct journal_file){ .lock_fd = -1 };
    rc = lock_file(file, path);
    if (rc)
        return rc;
    if (!is_regular(file))
        return refuse_file(path, "not a regular file; name another");
    is_new = is_empty(file);
    if (!is_new && !has_header(file))
        return refuse_file(path, "not a journal of weir; name another file");
    rc = open_database(file, path);
    if (!rc)
        rc = check_or_create(file, is_new);
    if (rc == SQLITE_MISMATCH)
        return refuse_file(path, "this is a database of another program, or of another weir");
    if (is_damage(rc))
        return move_aside(path) ? refuse_file(path, strerror(errno)) : -1;
    if (!rc)
        return 0;
    if (file->database)
        journal_file_why(file, why, sizeof(why));
    return refuse_file(path, file->database ? why : sqlite3_errstr(rc));
}

int journal_file_open(struct journal_file *file, const char *path)
{
    int status = try_open(file, path);

    if (status < 0) {
        journal_file_close(file);
        status = try_open(file, path);
    }
    return status < 0 ? SAY_WRONG : status;
}

void journal_file_close(struct journal_file *file)
{
    sqlite3_close_v2(file->database);
    if (file->lock_fd >= 0)
        close(file->lock_fd);
    *file = (struct journal_file){ .lock_fd = -1 };
}

bool journal_file_begin_run(struct journal_file *file, int64_t *run)
{
    char host[100] = "", command[400] = "";
    sqlite3_stmt *statement = NULL;
    bool fine;

    gethostname(host, sizeof(host) - 1);
    command_of(command, sizeof(command), getpid());
    fine = sqlite3_prepare_v2(file->database,
                              "INSERT INTO run(began, pid, host, command) "
                              "VALUES(strftime('%s', 'now'), ?1, ?2, ?3)",
                              -1, &statement, NULL) == SQLITE_OK;
    if (fine) {
        sqlite3_bind_int(statement, 1, getpid());
        sqlite3_bind_text(statement, 2, host, -1, SQLITE_STATIC);
        sqlite3_bind_text(statement, 3, command, -1, SQLITE_STATIC);
        fine = sqlite3_step(statement) == SQLITE_DONE;
    }
    sqlite3_finalize(statement);
    *run = sqlite3_last_insert_rowid(file->database);
    return fine;
}

void journal_file_end_run(struct journal_file *file, int64_t run)
{
    char text[100];

    snprintf(text, sizeof(text), "UPDATE run SET ended=strftime('%%s', 'now') WHERE id=%lld",
             (long long)run);
    sqlite3_exec(file->database, text, NULL, NULL, NULL);
}
