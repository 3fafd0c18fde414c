/* The terminal: a block of lines at its bottom that is redrawn in place, and key presses.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_TERM_H
#define WR_CLI_TERM_H

#include "cli/screen/view.h"

struct term {
    int fd; /* where the display goes (standard error), a terminal */
    /* /dev/tty for key presses; -1: none (suspended, not in the foreground, or not to be had). Changes in
     * term_suspend and term_resume, so wait on it anew after these. */
    int key_fd;
    struct view_look look;
    int drawn;       /* lines on the screen now */
    int drawn_width; /* the width they were drawn for: narrower now means they wrapped */
    /* saved terminal settings etc.; private to term.c */
    void *saved;
};

/* Whether fd is a terminal that a live display is possible on (TERM set and not dumb). */
bool term_is_live(int fd);

/* Opens the terminal behind fd once more, to write to it without waiting; other processes that have fd do not notice.
 * -1: it cannot be opened. */
int term_reopen(int fd);

/* Takes hold of the terminal on `fd`. Colour unless NO_COLOR is set and not empty; utf8 by the locale's codeset (the
 * caller has called setlocale). Key presses come without echo and without Enter; Ctrl-C, Ctrl-Z and Ctrl-\ keep
 * their meaning. Works without keys if we are not the terminal's foreground process, or if fd is not our
 * controlling terminal; look.keys tells. 0, -ENOTTY or -ENOMEM; after an error there is nothing to close. */
int term_open(struct term *term, int fd);

/* Asks for the size again (after SIGWINCH). */
void term_resized(struct term *term);

/* Replaces the block by `text`, in one write. The cursor ends below it at column 1. Sends nothing if the text is what
 * stands there already, nor while the terminal takes nothing (Ctrl-S): the next frame will do. */
void term_draw(struct term *term, const struct view_text *text);

/* Removes the block, so that output can go there; the next draw puts it below that. */
void term_clear(struct term *term);

/* A key that was pressed, or 0. Does not wait. Keys that send a sequence (arrows) are swallowed. */
int term_key(struct term *term);

/* Call before stopping (Ctrl-Z). Restores the terminal's settings, cursor visible. The block stays as it is, and the next
 * draw begins below whatever has been written since; clear first to remove it. */
void term_suspend(struct term *term);

/* Call after going on, also after every SIGCONT that no suspend came before: takes up keys and size anew. */
void term_resume(struct term *term);

/* As term_suspend, for good. */
void term_close(struct term *term);

#endif
