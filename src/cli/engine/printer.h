/* The printer: puts what commands wrote onto our standard output and error.
 *
 * A task's output is printed in one piece; with --keep-order in the order of input. Lines (--line-buffer) and
 * messages go in between. Nothing here waits: the loop asks what it may write and calls again.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_PRINTER_H
#define WR_CLI_PRINTER_H

#include "cli/engine/run.h"

int printer_new(struct printer **out, struct engine *engine);
void printer_free(struct printer *printer);

/* A task is over; the printer releases it when it is printed. */
void printer_task(struct printer *printer, struct task *task);

/* Text for descriptor 1 or 2, printed as it stands. */
void printer_text(struct printer *printer, int fd, const char *text, size_t length);

/* What a command wrote to flow 0 (output) or 1 (error): whole lines are printed now, the rest is kept in the
 * task's stream until its end. 0, or -ENOMEM. */
int printer_lines(struct printer *printer, struct task *task, int flow, const char *text,
                  size_t length);

/* Readable while there is room for more lines; see attempt.c. */
int printer_room_fd(const struct printer *printer);
bool printer_is_full(struct printer *printer);

/* --keep-order: the task that is to be printed next and has not ended, and how many tasks after it have ended. False:
 * no task waits for it. */
bool printer_waits_for(struct printer *printer, uint64_t *seq, uint64_t *waiting);

/* ---- for the loop ------------------------------------------------------------------------------- */

/* The descriptor that has something to be written to it, or -1. Brings the next piece if need be. */
int printer_pending(struct printer *printer);

/* Writes once. 0, or a negated errno: -EPIPE, -ENOSPC. After an error on a descriptor what is for it is
 * dropped. */
int printer_write(struct printer *printer);

/* Whether the last byte on a terminal was not a newline. */
bool printer_in_line(const struct printer *printer);
void printer_line_ended(struct printer *printer);

/* Whether a task's output, or a text, has been written in part: nothing may come in between. */
bool printer_is_amid(const struct printer *printer);

/* Whether what is pending goes to a pipe, so that only poll(2) tells when it can be written. */
bool printer_may_wait(const struct printer *printer);

/* Whether what is pending goes to a terminal. */
bool printer_writes_to_terminal(const struct printer *printer);

/* Drops what is not written yet, and all that comes later. */
void printer_give_up(struct printer *printer);

#endif
