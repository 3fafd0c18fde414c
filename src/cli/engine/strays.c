/* Strays: found by what stands in their environment.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/strays.h"

#include "base/lock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

enum { ENVIRONMENT_MAX = 256 << 10, ROUNDS_MAX = 20 };

void strays_make_id(char out[RUN_ID_SIZE])
{
    uint64_t random[2];
    struct timespec now;

    if (getrandom(random, sizeof(random), 0) != sizeof(random)) {
        clock_gettime(CLOCK_REALTIME, &now);
        random[0] = (uint64_t)getpid();
        random[1] = (uint64_t)now.tv_sec << 30 | (uint64_t)now.tv_nsec;
    }
    snprintf(out, RUN_ID_SIZE, "%016llx%016llx", (unsigned long long)random[0],
             (unsigned long long)random[1]);
}

/* ---- one process ---------------------------------------------------------------------------------- */

/* The value of NAME= in an environment as /proc has it, ended by two zero bytes; NULL: not there. */
static const char *value_of(const char *environment, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = environment; *at; at += strlen(at) + 1)
        if (!strncmp(at, name, length))
            return at + length;
    return NULL;
}

static bool read_environment(char *out, int proc, const char *pid)
{
    char path[64];
    size_t used = 0;
    ssize_t n = 0;
    int fd;

    snprintf(path, sizeof(path), "%.32s/environ", pid);
    fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    while (used < ENVIRONMENT_MAX && (n = read(fd, out + used, ENVIRONMENT_MAX - used)) > 0)
        used += (size_t)n;
    close(fd);
    out[used] = out[used + 1] = 0;
    return used > 0;
}

struct search {
    const char *run_id;
    bool (*is_meant)(uint64_t seq, uint64_t attempt, void *arg);
    void *arg;
    char *environment;
    int proc;
};

static bool is_ours(const struct search *search, const char *pid)
{
    const char *run, *seq, *attempt;

    if (!read_environment(search->environment, search->proc, pid))
        return false;
    run = value_of(search->environment, "WEIR_RUN=");
    seq = value_of(search->environment, "WEIR_SEQ=");
    attempt = value_of(search->environment, "WEIR_ATTEMPT=");
    return run && seq && !strcmp(run, search->run_id) &&
           search->is_meant(strtoull(seq, NULL, 10), attempt ? strtoull(attempt, NULL, 10) : 0,
                            search->arg);
}

/* True: it was a stray. The process is looked at again behind a descriptor, so that no other one can have its number. */
static bool kill_if_ours(const struct search *search, const char *pid)
{
    int fd;
    bool ours = is_ours(search, pid);

    if (!ours)
        return false;
    fd = (int)syscall(SYS_pidfd_open, atoi(pid), 0);
    if (fd < 0)
        return false;
    ours = is_ours(search, pid) && syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) == 0;
    close(fd);
    return ours;
}

/* ---- all of them ---------------------------------------------------------------------------------- */

static bool kill_round(struct search *search)
{
    DIR *proc = opendir("/proc");
    bool found = false;

    if (!proc)
        return false;
    search->proc = dirfd(proc);
    for (struct dirent *entry; (entry = readdir(proc));)
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
            found |= kill_if_ours(search, entry->d_name);
    closedir(proc);
    return found;
}

void strays_kill(const char *run_id, bool (*is_meant)(uint64_t seq, uint64_t attempt, void *arg),
                 void *arg)
{
    struct search search = { .run_id = run_id, .is_meant = is_meant, .arg = arg };

    search.environment = malloc(ENVIRONMENT_MAX + 2);
    /* Processes that were just being made are found the next time. */
    for (int i = 0; search.environment && i < ROUNDS_MAX && kill_round(&search); i++)
        ;
    free(search.environment);
}

/* ---- those of a run ------------------------------------------------------------------------------- */

/* A task to look for, and its last attempt that is over. */
struct note {
    uint64_t seq, attempt;
};

struct strays {
    struct wr_lock lock;
    const char *run_id;
    struct note *note;
    size_t count, size;
};

int strays_new(struct strays **out, const char *run_id)
{
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return -ENOMEM;
    (*out)->run_id = run_id;
    return 0;
}

void strays_free(struct strays *strays)
{
    if (strays)
        free(strays->note);
    free(strays);
}

void strays_note(struct strays *strays, uint64_t seq, uint64_t attempt)
{
    wr_lock(&strays->lock);
    if (strays->count == strays->size) {
        size_t size = strays->size ? 2 * strays->size : 16;
        struct note *larger = realloc(strays->note, size * sizeof(*larger));
        if (larger) {
            strays->size = size;
            strays->note = larger;
        }
    }
    if (strays->count < strays->size)
        strays->note[strays->count++] = (struct note){ seq, attempt };
    wr_unlock(&strays->lock);
}

struct notes {
    struct note *note;
    size_t count;
};

static int by_task(const void *a, const void *b)
{
    uint64_t x = ((const struct note *)a)->seq, y = ((const struct note *)b)->seq;

    return (x > y) - (x < y);
}

/* The latest attempt of a task first. */
static int by_task_and_attempt(const void *a, const void *b)
{
    uint64_t x = ((const struct note *)a)->attempt, y = ((const struct note *)b)->attempt;
    int order = by_task(a, b);

    return order ? order : (y > x) - (y < x);
}

/* Keeps the latest of each task. */
static void sort(struct notes *notes)
{
    size_t kept = 0;

    qsort(notes->note, notes->count, sizeof(*notes->note), by_task_and_attempt);
    for (size_t i = 0; i < notes->count; i++)
        if (!kept || notes->note[kept - 1].seq != notes->note[i].seq)
            notes->note[kept++] = notes->note[i];
    notes->count = kept;
}

static bool is_noted(uint64_t seq, uint64_t attempt, void *arg)
{
    const struct notes *notes = arg;
    const struct note *note =
        bsearch(&(struct note){ .seq = seq }, notes->note, notes->count, sizeof(*note), by_task);

    return note && attempt <= note->attempt;
}

bool strays_sweep(struct strays *strays)
{
    struct notes notes;

    wr_lock(&strays->lock);
    notes = (struct notes){ strays->note, strays->count };
    strays->note = NULL;
    strays->count = strays->size = 0;
    wr_unlock(&strays->lock);
    if (!notes.count)
        return false;
    sort(&notes);
    strays_kill(strays->run_id, is_noted, &notes);
    free(notes.note);
    return true;
}
