/* Slots, their process groups, and the guardian.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/slots.h"

#include "base/lock.h"
#include "cli/engine/strays.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The lock keeps a group's number from being reaped, and so reused, while a signal is sent to it. */
struct slots {
    struct wr_lock lock;
    uint32_t count;
    struct slot *slot; /* shared with the guardian */
    uint64_t *taken;   /* a bit each               */
    const char *run_id;
    int lifeline; /* the guardian reads the other end; it closes when we are gone */
    pid_t guardian;
};

static size_t table_size(uint32_t count)
{
    return count * sizeof(struct slot);
}

#ifndef SYS_close_range
#define SYS_close_range 436 /* Linux 5.9; the same everywhere */
#endif

static void close_from(int first)
{
    enum { MOST = 1 << 20 };
    long end = sysconf(_SC_OPEN_MAX);

    if (syscall(SYS_close_range, first, ~0U, 0) == 0)
        return;
    for (int fd = first; fd < (end > 0 && end < MOST ? (int)end : MOST); fd++)
        close(fd);
}

/* Whether a task runs, for the guardian: nothing changes any more. */
static bool runs_in_slot(uint64_t seq, uint64_t attempt, void *arg)
{
    const struct slots *slots = arg;

    (void)attempt;
    for (uint32_t i = 0; i < slots->count; i++)
        if (atomic_load(&slots->slot[i].seq) == seq)
            return true;
    return false;
}

/* Waits for our end, whatever it is, and cleans up. Nothing the terminal sends may end it before that. */
static void guard(const struct slots *slots, int lifeline)
{
    char byte;

    setsid();
    prctl(PR_SET_NAME, "weir-guardian");
    for (int s = 1; s < NSIG; s++)
        signal(s, SIG_IGN);
    dup2(lifeline, 0);
    close_from(1); /* readers of our output must not wait for the guardian */
    while (read(0, &byte, 1) < 0 && errno == EINTR)
        ;
    for (uint32_t i = 0; i < slots->count; i++) {
        pid_t group = atomic_load(&slots->slot[i].group);
        if (group > 0)
            kill(-group, SIGKILL);
    }
    strays_kill(slots->run_id, runs_in_slot, (void *)slots);
    _exit(0);
}

static int start_guardian(struct slots *slots)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    slots->guardian = fork();
    if (slots->guardian == 0) {
        close(fds[1]);
        guard(slots, fds[0]);
    }
    close(fds[0]);
    slots->lifeline = fds[1];
    return slots->guardian < 0 ? -errno : 0;
}

int slots_new(struct slots **out, uint32_t count, const char *run_id)
{
    struct slots *slots = calloc(1, sizeof(*slots));
    int rc = -ENOMEM;

    if (!slots)
        return rc;
    slots->count = count;
    slots->run_id = run_id;
    slots->lifeline = -1;
    slots->taken = calloc((count + 63) / 64, sizeof(*slots->taken));
    slots->slot =
        mmap(NULL, table_size(count), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (slots->slot == MAP_FAILED)
        slots->slot = NULL;
    if (slots->taken && slots->slot)
        rc = start_guardian(slots);
    if (rc) {
        slots_free(slots);
        return rc;
    }
    for (uint32_t i = 0; i < count; i++)
        slots->slot[i].epoll = -1;
    *out = slots;
    return 0;
}

struct slot *slots_take(struct slots *slots, uint32_t *number)
{
    uint32_t i = 0;

    wr_lock(&slots->lock);
    while (slots->taken[i / 64] == UINT64_MAX)
        i += 64;
    i += (uint32_t)__builtin_ctzll(~slots->taken[i / 64]);
    slots->taken[i / 64] |= UINT64_C(1) << i % 64;
    wr_unlock(&slots->lock);
    *number = i + 1;
    return &slots->slot[i];
}

void slots_give(struct slots *slots, struct slot *slot)
{
    size_t i = (size_t)(slot - slots->slot);

    wr_lock(&slots->lock);
    atomic_store(&slot->seq, 0);
    slots->taken[i / 64] &= ~(UINT64_C(1) << i % 64);
    wr_unlock(&slots->lock);
}

void slots_ended(struct slots *slots, struct slot *slot, bool sweep)
{
    wr_lock(&slots->lock);
    if (sweep && atomic_load(&slot->group) > 0)
        kill(-atomic_load(&slot->group), SIGKILL);
    atomic_store(&slot->group, 0);
    wr_unlock(&slots->lock);
}

uint32_t slots_running(struct slots *slots)
{
    uint32_t running = 0;

    wr_lock(&slots->lock);
    for (uint32_t i = 0; i < slots->count; i++)
        running += atomic_load(&slots->slot[i].group) > 0;
    wr_unlock(&slots->lock);
    return running;
}

static void send(struct slot *slot, int signal)
{
    pid_t group = atomic_load(&slot->group);

    if (group <= 0)
        return;
    kill(-group, signal);
    if (signal == SIGTERM)
        kill(-group, SIGCONT); /* a stopped process would not hear it */
}

void slots_signal(struct slots *slots, struct slot *slot, int signal)
{
    wr_lock(&slots->lock);
    send(slot, signal);
    wr_unlock(&slots->lock);
}

void slots_signal_all(struct slots *slots, int signal)
{
    wr_lock(&slots->lock);
    for (uint32_t i = 0; i < slots->count; i++)
        send(&slots->slot[i], signal);
    wr_unlock(&slots->lock);
}

void slots_reaped(struct slots *slots, pid_t pid)
{
    if (pid == slots->guardian)
        slots->guardian = 0;
}

void slots_free(struct slots *slots)
{
    if (!slots)
        return;
    if (slots->lifeline >= 0) {
        close(slots->lifeline);
        while (slots->guardian > 0 && waitpid(slots->guardian, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    for (uint32_t i = 0; slots->slot && i < slots->count; i++) {
        if (slots->slot[i].epoll >= 0)
            close(slots->slot[i].epoll);
    }
    if (slots->slot)
        munmap(slots->slot, table_size(slots->count));
    free(slots->taken);
    free(slots);
}
