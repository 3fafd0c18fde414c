/* Strays: processes that left their command's process group, as setsid(2) makes them.
 *
 * A process inherits its environment, so $WEIR_RUN, $WEIR_SEQ and $WEIR_ATTEMPT tell whose it is, wherever it went and whoever its
 * parent is now. Only one that has changed these is not found. All of /proc is looked at, so this is done for tasks
 * that are ended by force, and several at a time.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_STRAYS_H
#define WR_CLI_STRAYS_H

#include <stdbool.h>
#include <stdint.h>

enum { RUN_ID_SIZE = 40 };

/* An id that no other run has. */
void strays_make_id(char out[RUN_ID_SIZE]);

/* Kills the processes of that run whose task and attempt are such that `is_meant` says; until none is found. */
void strays_kill(const char *run_id, bool (*is_meant)(uint64_t seq, uint64_t attempt, void *arg),
                 void *arg);

struct strays;

int strays_new(struct strays **out, const char *run_id);
void strays_free(struct strays *strays);

/* An attempt of a task was ended by force: what is left of it, and of those before it, is to be killed. The next attempt may
 * run already when that is done. From any thread. */
void strays_note(struct strays *strays, uint64_t seq, uint64_t attempt);

/* Kills what was noted so far. True: there was something to look for. */
bool strays_sweep(struct strays *strays);

#endif
