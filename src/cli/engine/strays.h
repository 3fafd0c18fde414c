/* Strays: processes that left their command's process group, as setsid(2) makes them.
 *
 * A process inherits its environment, so $WEIR_RUN, $WEIR_SEQ and $WEIR_ATTEMPT tell to which task it belongs, wherever it
 * went and whichever process its parent is now. Only a process that has changed these is not found. All of /proc is looked
 * at, so this is done only for tasks that are ended by force, and for several at a time.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_STRAYS_H
#define WR_CLI_STRAYS_H

#include <stdbool.h>
#include <stdint.h>

enum { RUN_ID_SIZE = 40 };

/* An id that no other run has. */
void strays_make_id(char out[RUN_ID_SIZE]);

/* Kills the processes of that run for whose task and attempt `is_meant` answers true; until none is found. */
void strays_kill(const char *run_id, bool (*is_meant)(uint64_t seq, uint64_t attempt, void *arg),
                 void *arg);

struct strays;

int strays_new(struct strays **out, const char *run_id);
void strays_free(struct strays *strays);

/* An attempt of a task was ended by force: processes that are left of it, and of attempts before it, are to be killed. The
 * next attempt may run already when that is done. From any thread. */
void strays_note(struct strays *strays, uint64_t seq, uint64_t attempt);

/* Kills what was noted so far. True: there was something to look for. */
bool strays_sweep(struct strays *strays);

#endif
