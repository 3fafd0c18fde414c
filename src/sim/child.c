/* Simulated child processes: all they do is end.
 * SPDX-License-Identifier: MIT */
#include "sim/sim.h"

#include <errno.h>

enum { CHILDREN_MAX = 256, PID_FIRST = 1000 };

static struct process {
    weir_time ends_at;
    int status;
    bool reaped;
} processes[CHILDREN_MAX];
static unsigned process_count;

static struct process *process_get(pid_t pid)
{
    if (pid < PID_FIRST || pid >= PID_FIRST + (pid_t)process_count)
        return NULL;
    return &processes[pid - PID_FIRST];
}

bool wr_sim_child_ended(pid_t pid)
{
    return wr_sim_has_passed(process_get(pid)->ends_at);
}

weir_time wr_sim_children_due(void)
{
    weir_time due = WEIR_FOREVER;

    for (unsigned i = 0; i < process_count; i++)
        if (!wr_sim_has_passed(processes[i].ends_at) && processes[i].ends_at < due)
            due = processes[i].ends_at;
    return due;
}

void wr_sim_children_tick(void)
{
    struct wr_sim_fd *fd;
    unsigned place = 0;

    while ((fd = wr_sim_fd_next(WR_SIM_CHILD, &place)))
        if (wr_sim_child_ended(fd->pid))
            wr_sim_fd_changed(fd);
}

void wr_sim_children_reset(void)
{
    process_count = 0;
}

pid_t weir_sim_child(int64_t ns, int status)
{
    wr_sim_call("weir_sim_child");
    if (process_count == CHILDREN_MAX)
        weir_sim_fail("more than %d children in one run", CHILDREN_MAX);
    processes[process_count] =
        (struct process){ .ends_at = wr_sim.now + (ns > 0 ? ns : 0), .status = status };
    return PID_FIRST + (pid_t)process_count++;
}

int wr_os_child_open(pid_t pid)
{
    struct process *process;
    struct wr_sim_fd *fd;

    wr_sim_call("child_open");
    process = process_get(pid);
    if (!process || process->reaped)
        return -ECHILD;
    fd = wr_sim_fd_new(WR_SIM_CHILD);
    if (!fd)
        return -EMFILE;
    fd->pid = pid;
    return wr_sim_fd_number(fd);
}

int wr_os_child_reap(int *status, int child_fd)
{
    struct process *process;
    struct wr_sim_fd *fd;

    wr_sim_call("child_reap");
    fd = wr_sim_fd_get(child_fd);
    if (!fd || fd->kind != WR_SIM_CHILD)
        return -EBADF;
    process = process_get(fd->pid);
    if (process->reaped)
        return -ECHILD;
    if (!wr_sim_has_passed(process->ends_at))
        return -EAGAIN;
    process->reaped = true;
    *status = process->status;
    return 0;
}
