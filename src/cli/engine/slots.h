/* Slots: the numbers of running commands, from 1, and their process groups, so that none is left behind.
 *
 * The table lies in memory shared with a small process of ours, the guardian, which does nothing until we are
 * gone; then it kills the groups in the table. So even `kill -9` of weir leaves no command running.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_SLOTS_H
#define WR_CLI_SLOTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { SLOTS_MAX = 10000 };

struct slot {
    _Atomic pid_t group;  /* 0: nothing runs here. Cleared before the leader is reaped: the number
                            belongs to it until then                                             */
    _Atomic uint64_t seq; /* of the task, while it runs                                          */
    int epoll;            /* a set of descriptors, kept from command to command; -1: none yet     */
};

struct slots;

/* Before any thread is started, since it forks. `run_id`: processes that commands leave outside of their groups are known
 * by it (see strays.h). 0, or a negated errno. */
int slots_new(struct slots **out, uint32_t count, const char *run_id);

/* The lowest free slot; there are as many as may run at once. *number is from 1. */
struct slot *slots_take(struct slots *slots, uint32_t *number);
void slots_give(struct slots *slots, struct slot *slot);

/* The command in this slot has ended and is about to be reaped; `sweep`: other processes in its group are
 * killed. */
void slots_ended(struct slots *slots, struct slot *slot, bool sweep);

/* How many commands run. */
uint32_t slots_running(struct slots *slots);

/* Sends a signal to the group of one slot. */
void slots_signal(struct slots *slots, struct slot *slot, int signal);

/* Sends a signal to the groups of all slots. */
void slots_signal_all(struct slots *slots, int signal);

/* A child of the main thread's was reaped elsewhere: if it is the guardian, slots_free does not wait for it any more. */
void slots_reaped(struct slots *slots, pid_t pid);

void slots_free(struct slots *slots);

#endif
