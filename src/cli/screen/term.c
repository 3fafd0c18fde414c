/* The terminal, spoken to in the few sequences that all of them know.
 *
 * Note: the block. The cursor rests below the block, at column 1. To redraw, it goes up as many rows
 * as the block takes, writes each line over the old one and clears what is left of it, then clears
 * what is below: nothing is ever blank in between. A terminal that becomes narrower wraps the old
 * lines, so the block is kept, to tell how many rows it takes by now.
 * SPDX-License-Identifier: MIT */
#include "cli/screen/term.h"

#include "cli/screen/glyph.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* Nothing is shown between begin and end of an update; not known everywhere, and harmless there. */
#define UPDATE_BEGIN "\033[?2026h"
#define UPDATE_END   "\033[?2026l"
#define CURSOR_SHOW  "\033[?25h"
#define CURSOR_HIDE  "\033[?25l"
#define CLEAR_LINE   "\033[K"
#define CLEAR_BELOW  "\033[J"

/* From the top of a block. To clear below from the very first place means to clear the screen, of which
 * some terminals put a copy into their history; so the first line goes by itself. */
#define CLEAR_BLOCK CLEAR_LINE "\n" CLEAR_BELOW "\033[A"

/* What the terminal was like, and what is on it. */
struct term_private {
    int own_fd;             /* the terminal once more, not waited for; -1: it is term->fd alone */
    struct termios before;  /* valid while there are keys */
    struct view_text drawn; /* the block, to the letter  */
    char *frame;            /* scratch: what is sent     */
    size_t length, size;
};

/* ---- sending ------------------------------------------------------------------------------------- */

static bool reserve(struct term_private *p, size_t more)
{
    size_t size = p->length + more;
    char *frame;

    if (size <= p->size)
        return true;
    size += size / 2 + 512;
    frame = realloc(p->frame, size);
    if (!frame)
        return false;
    p->frame = frame;
    p->size = size;
    return true;
}

/* Room has been reserved. */
static void add(struct term_private *p, const char *bytes, size_t length)
{
    memcpy(p->frame + p->length, bytes, length);
    p->length += length;
}

static void add_text(struct term_private *p, const char *text)
{
    add(p, text, strlen(text));
}

int term_reopen(int fd)
{
    char path[40];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* Sends all bytes, unless the terminal takes nothing for a second: then it is stopped, and so would we be. If the terminal
 * is gone, nothing is done about that here. */
static void send_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t n = write(fd, bytes, length);
        if (n >= 0) {
            bytes += n;
            length -= (size_t)n;
        } else if (errno == EAGAIN) {
            if (poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1, 1000) == 0)
                return;
        } else if (errno != EINTR) {
            return;
        }
    }
}

/* False: the terminal is stopped, by Ctrl-S, say, and drawing would only hold us up. */
static bool is_writable(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLOUT };

    return poll(&p, 1, 0) == 1 && (p.revents & POLLOUT);
}

/* ---- keys ---------------------------------------------------------------------------------------- */

/* Only the foreground may change settings; from the background we would change the shell's. SIGTTOU
 * is held off in case the foreground is lost right now: it would stop us. */
static bool set_terminal(int fd, const struct termios *settings)
{
    sigset_t set, old;
    bool ok;

    if (tcgetpgrp(fd) != getpgrp())
        return false;
    sigemptyset(&set);
    sigaddset(&set, SIGTTOU);
    pthread_sigmask(SIG_BLOCK, &set, &old);
    do
        ok = tcsetattr(fd, TCSANOW, settings) == 0;
    while (!ok && errno == EINTR);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return ok;
}

/* Opens the terminal anew, so that O_NONBLOCK is not forced on other processes that share standard input. Only
 * the terminal that shows the display: keys typed elsewhere are not meant for it. */
static int open_keys(int fd)
{
    if (tcgetsid(fd) != getsid(0))
        return -1;
    return open("/dev/tty", O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static bool make_raw(int fd, struct termios *before)
{
    struct termios settings;

    if (tcgetattr(fd, before) != 0)
        return false;
    settings = *before;
    settings.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    settings.c_cc[VMIN] = 1;
    settings.c_cc[VTIME] = 0;
    return set_terminal(fd, &settings);
}

static void take_keys(struct term *term)
{
    struct term_private *p = term->saved;
    int fd;

    if (term->key_fd >= 0)
        return;
    fd = open_keys(term->fd);
    if (fd >= 0 && !make_raw(fd, &p->before)) {
        close(fd);
        fd = -1;
    }
    term->key_fd = fd;
    term->look.keys = fd >= 0;
}

static void give_keys_back(struct term *term)
{
    struct term_private *p = term->saved;

    if (term->key_fd < 0)
        return;
    set_terminal(term->key_fd, &p->before);
    close(term->key_fd);
    term->key_fd = -1;
    term->look.keys = false;
}

/* Reads without waiting, and without being stopped for it in the background. */
static ssize_t read_keys(int fd, unsigned char *keys, size_t size)
{
    sigset_t set, old;
    ssize_t n;

    sigemptyset(&set);
    sigaddset(&set, SIGTTIN);
    pthread_sigmask(SIG_BLOCK, &set, &old);
    do
        n = read(fd, keys, size);
    while (n < 0 && errno == EINTR);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return n;
}

int term_key(struct term *term)
{
    unsigned char key, rest[64];

    if (term->key_fd < 0 || read_keys(term->key_fd, &key, 1) != 1)
        return 0;
    /* Arrows and the like send a sequence, whose letters the user has not typed. */
    if (key == '\033' && read_keys(term->key_fd, rest, sizeof(rest)) > 0)
        return 0;
    return key;
}

/* ---- drawing ------------------------------------------------------------------------------------- */

/* Rows that a line which view.c has rendered takes at a width; moves on to the next line. A wide
 * character does not straddle the edge, so dividing would not do. */
static int line_rows(const char **line, const struct view_look *look)
{
    struct glyph glyph;
    int rows = 1, at = 0;

    while (**line != '\n') {
        if (**line == '\033') { /* colours take no room */
            while (**line != 'm' && **line != '\n')
                ++*line;
            *line += **line == 'm';
        } else if (glyph_next(&glyph, line, look->utf8)) {
            if (at + glyph.columns > look->width) {
                rows++;
                at = 0;
            }
            at += glyph.columns;
        }
    }
    ++*line;
    return rows;
}

/* Rows the block takes on the terminal as it is now. */
static int rows_drawn(const struct term *term)
{
    const struct term_private *p = term->saved;
    const char *line = p->drawn.text;
    int rows = 0;

    if (term->look.width >= term->drawn_width)
        return term->drawn;
    for (int i = 0; i < term->drawn; i++)
        rows += line_rows(&line, &term->look);
    return rows;
}

static void add_to_top(struct term *term)
{
    struct term_private *p = term->saved;
    int rows = rows_drawn(term);
    char up[32];

    snprintf(up, sizeof(up), "\033[%dA", rows);
    if (rows > 0)
        add_text(p, up);
    add_text(p, "\r");
    /* Rows that were wrapped stay joined for the next resize unless they are cleared first. */
    if (term->drawn > 0 && term->look.width != term->drawn_width)
        add_text(p, CLEAR_BLOCK);
}

static void add_lines(struct term_private *p, const struct view_text *text)
{
    const char *at = text->text, *end = at + text->length;

    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline ? newline : end;
        add(p, at, (size_t)(stop - at));
        add_text(p, CLEAR_LINE "\r\n");
        at = stop + 1;
    }
}

static bool is_drawn(const struct term *term, const struct view_text *text)
{
    const struct term_private *p = term->saved;

    return term->drawn > 0 && term->drawn_width == term->look.width &&
           p->drawn.length == text->length && memcmp(p->drawn.text, text->text, text->length) == 0;
}

/* Room to remember a block. */
static bool reserve_drawn(struct term_private *p, size_t length)
{
    char *text;

    if (length <= p->drawn.size)
        return true;
    text = realloc(p->drawn.text, 2 * length);
    if (!text)
        return false;
    p->drawn.text = text;
    p->drawn.size = 2 * length;
    return true;
}

void term_draw(struct term *term, const struct view_text *text)
{
    static const size_t per_line = sizeof(CLEAR_LINE "\r\n"), around = 128;
    struct term_private *p = term->saved;

    if (text->lines == 0) {
        term_clear(term);
        return;
    }
    p->length = 0;
    if (is_drawn(term, text) || !is_writable(term->fd) || !reserve_drawn(p, text->length + 1) ||
        !reserve(p, text->length + (size_t)text->lines * per_line + around))
        return; /* the next one will do */
    add_text(p, UPDATE_BEGIN CURSOR_HIDE);
    add_to_top(term);
    add_lines(p, text);
    add_text(p, CLEAR_BELOW CURSOR_SHOW UPDATE_END);
    send_all(term->fd, p->frame, p->length);

    memcpy(p->drawn.text, text->text, text->length + 1); /* with its final zero */
    p->drawn.length = text->length;
    term->drawn = text->lines;
    term->drawn_width = term->look.width;
}

void term_clear(struct term *term)
{
    char text[64];

    if (term->drawn == 0)
        return;
    snprintf(text, sizeof(text), "\033[%dA\r" CLEAR_BLOCK, rows_drawn(term));
    send_all(term->fd, text, strlen(text));
    term->drawn = 0;
}

/* ---- the beginning and the end ------------------------------------------------------------------- */

bool term_is_live(int fd)
{
    const char *name = getenv("TERM");

    return name && *name && strcmp(name, "dumb") != 0 && isatty(fd);
}

void term_resized(struct term *term)
{
    struct winsize size = { 0 };

    if (ioctl(term->fd, TIOCGWINSZ, &size) != 0)
        return;
    /* A serial line does not know; what it shows is most likely this. */
    term->look.width = size.ws_col > 0 ? size.ws_col : 80;
    term->look.height = size.ws_row > 0 ? size.ws_row : 24;
}

int term_open(struct term *term, int fd)
{
    const char *no_color = getenv("NO_COLOR");
    struct term_private *p;

    if (!isatty(fd))
        return -ENOTTY;
    p = calloc(1, sizeof(*p));
    if (!p)
        return -ENOMEM;
    p->own_fd = term_reopen(fd);
    *term = (struct term){ .fd = p->own_fd >= 0 ? p->own_fd : fd, .key_fd = -1, .saved = p };
    term->look = (struct view_look){ .width = 80,
                                     .height = 24,
                                     .color = !no_color || !*no_color,
                                     .utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0 };
    term_resized(term);
    take_keys(term);
    return 0;
}

void term_suspend(struct term *term)
{
    give_keys_back(term);
    send_all(term->fd, CURSOR_SHOW, strlen(CURSOR_SHOW));
    term->drawn = 0; /* the shell will write below it */
}

void term_resume(struct term *term)
{
    term_resized(term);
    take_keys(term);
}

void term_close(struct term *term)
{
    struct term_private *p = term->saved;

    if (!p)
        return;
    term_suspend(term);
    if (p->own_fd >= 0)
        close(p->own_fd);
    free(p->drawn.text);
    free(p->frame);
    free(p);
    term->saved = NULL;
}
