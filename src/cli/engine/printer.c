/* The printer: a queue of outputs and messages, and the piece that is being written.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/printer.h"

#include "base/assert.h"
#include "base/lock.h"
#include "cli/screen/term.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINES_MAX = 1 << 20 }; /* bytes of text that wait at most before commands have to */

/* Text on its way; the bytes follow, then the tag that goes before each line, if it has one. It is put there when the
 * text is written: a long tag and many lines would make much of little. */
struct text {
    struct wr_list link;
    int fd;
    size_t length;
    bool tagged, line_starts;
    char bytes[];
};

/* The lock is for what other threads bring: tasks, texts, held, and next_seq with --keep-order. The rest is the
 * loop's. */
struct printer {
    struct engine *engine;
    struct wr_lock lock;
    struct wr_list tasks; /* ended, not printed yet; with --keep-order sorted by number           */
    struct wr_list texts; /* lines and messages                                                  */
    size_t held;          /* bytes in texts                                                      */
    bool full;            /* room_fd is not readable                                             */
    int room_fd;
    uint64_t waiting;  /* tasks in the list */
    uint64_t next_seq; /* --keep-order: the task to be printed next                              */

    struct task *task; /* being printed */
    int flow;
    size_t position; /* in its stream */
    bool line_starts[2];
    struct text *text;  /* being printed                                                         */
    const char *source; /* what comes next of its bytes, or of `raw`: source_left bytes          */
    size_t source_left;
    const char *tag;
    bool *starts; /* whether the next byte of the source begins a line                           */
    char *piece;  /* what is being written, to fd: `left` bytes from `at`       */
    char raw[SPOOL_PIECE];
    size_t piece_size, at, left;
    int fd;
    bool broken[3], is_pipe[3],
        is_terminal[3]; /* by descriptor; a terminal that need not be waited for is
                                                   like a pipe */
    int own_fd[3];      /* what such a terminal is written to by; else -1 */
    bool in_line;
};

static void look_at(struct printer *printer, int fd)
{
    struct stat st;

    printer->is_terminal[fd] = isatty(fd);
    printer->own_fd[fd] = printer->is_terminal[fd] ? term_reopen(fd) : -1;
    printer->is_pipe[fd] = printer->own_fd[fd] >= 0 ||
                           (fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)));
}

int printer_new(struct printer **out, struct engine *engine)
{
    struct printer *printer = calloc(1, sizeof(*printer));

    if (!printer)
        return WEIR_ENOMEM;
    printer->engine = engine;
    printer->next_seq = 1;
    wr_list_init(&printer->tasks);
    wr_list_init(&printer->texts);
    look_at(printer, 1);
    look_at(printer, 2);
    printer->room_fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    if (printer->room_fd < 0) {
        free(printer);
        return -errno;
    }
    *out = printer;
    return 0;
}

void printer_free(struct printer *printer)
{
    if (!printer)
        return;
    wr_list_each_safe(link, &printer->texts)
        free(WR_CONTAINER(link, struct text, link));
    for (int fd = 1; fd <= 2; fd++)
        if (printer->own_fd[fd] >= 0)
            close(printer->own_fd[fd]);
    close(printer->room_fd);
    free(printer->text);
    free(printer->piece);
    free(printer);
}

/* ---- what other threads bring -------------------------------------------------------------------- */

static struct task *task_of(struct wr_list *link)
{
    return WR_CONTAINER(link, struct task, link);
}

void printer_task(struct printer *printer, struct task *task)
{
    struct engine *engine = task->engine;
    bool next;
    struct wr_list *at;

    wr_lock(&printer->lock);
    at = printer->tasks.prev;
    while (engine->opt->keep_order && at != &printer->tasks && task_of(at)->seq > task->seq)
        at = at->prev;
    wr_list_append(at->next, &task->link);
    printer->waiting++;
    next = !engine->opt->keep_order || task->seq == printer->next_seq;
    wr_unlock(&printer->lock);
    if (next || window_is_full(engine))
        engine_wake(engine);
}

bool printer_waits_for(struct printer *printer, uint64_t *seq, uint64_t *waiting)
{
    bool waits;

    wr_lock(&printer->lock);
    waits =
        !wr_list_empty(&printer->tasks) && task_of(printer->tasks.next)->seq != printer->next_seq;
    *seq = printer->next_seq;
    *waiting = printer->waiting;
    wr_unlock(&printer->lock);
    return waits;
}

static void set_full(struct printer *printer, bool full)
{
    uint64_t value = 1;
    ssize_t n;

    if (full == printer->full)
        return;
    printer->full = full;
    n = full ? read(printer->room_fd, &value, sizeof(value))
             : write(printer->room_fd, &value, sizeof(value));
    (void)n; /* neither can fail: it is readable exactly while not full */
}

static void add_text(struct printer *printer, struct text *text)
{
    wr_lock(&printer->lock);
    wr_list_append(&printer->texts, &text->link);
    printer->held += text->length;
    set_full(printer, printer->held > LINES_MAX);
    wr_unlock(&printer->lock);
    engine_wake(printer->engine);
}

void printer_text(struct printer *printer, int fd, const char *bytes, size_t length)
{
    struct text *text = malloc(sizeof(*text) + length);

    if (!text)
        return; /* there is no better place to say so */
    *text = (struct text){ .fd = fd, .length = length };
    memcpy(text->bytes, bytes, length);
    add_text(printer, text);
}

int printer_room_fd(const struct printer *printer)
{
    return printer->room_fd;
}

bool printer_is_full(struct printer *printer)
{
    bool full;

    wr_lock(&printer->lock);
    full = printer->full;
    wr_unlock(&printer->lock);
    return full;
}

/* ---- lines as they come -------------------------------------------------------------------------- */

/* Prints what the stream has kept and `length` bytes more. */
static int print_lines(struct printer *printer, struct task *task, int flow, const char *bytes,
                       size_t length)
{
    struct spooled *kept = &task->stream[flow];
    const char *tag = task->plan.tag;
    struct text *text = malloc(sizeof(*text) + kept->length + length + (tag ? strlen(tag) + 1 : 0));

    if (!text)
        return -ENOMEM;
    *text = (struct text){ .fd = flow + 1,
                           .length = kept->length + length,
                           .tagged = tag != NULL,
                           .line_starts = !task->amid_line[flow] };
    memcpy(text->bytes, kept->tail ? kept->tail : "", kept->length);
    memcpy(text->bytes + kept->length, bytes, length);
    if (tag)
        strcpy(text->bytes + text->length, tag);
    task->amid_line[flow] =
        text->length ? text->bytes[text->length - 1] != '\n' : task->amid_line[flow];
    kept->length = 0;
    add_text(printer, text);
    return 0;
}

int printer_lines(struct printer *printer, struct task *task, int flow, const char *text,
                  size_t length)
{
    const char *last = memrchr(text, '\n', length);
    size_t whole = last ? (size_t)(last + 1 - text) : 0;
    struct spooled *kept = &task->stream[flow];
    int rc = 0;

    /* A line beyond what we keep in memory is printed in parts. */
    if (!whole && !spooled_fits(kept, printer->engine->spool, length))
        whole = length;
    if (whole)
        rc = print_lines(printer, task, flow, text, whole);
    if (!rc && length > whole)
        rc = spooled_add(kept, printer->engine->spool, text + whole, length - whole);
    return rc;
}

/* ---- the loop's part ---------------------------------------------------------------------------- */

static bool reserve_piece(struct printer *printer, size_t size)
{
    char *larger;

    if (size <= printer->piece_size)
        return true;
    larger = realloc(printer->piece, size);
    if (!larger)
        return false;
    printer->piece = larger;
    printer->piece_size = size;
    return true;
}

/* ---- tags ---------------------------------------------------------------------------------------- */

/* How much of the source makes at most PIECE_MAX bytes, or one line; *size is how much that is with its tags. */
static size_t take_lines(size_t *size, const struct printer *printer)
{
    enum { PIECE_MAX = 2 * SPOOL_PIECE };
    size_t tag = strlen(printer->tag) + 1, taken = 0;
    const char *end;

    *size = 0;
    while (taken < printer->source_left) {
        const char *line = printer->source + taken;
        size_t rest = printer->source_left - taken, n, more;
        end = memchr(line, '\n', rest);
        n = end ? (size_t)(end + 1 - line) : rest;
        more = n + (taken || *printer->starts ? tag : 0);
        if (taken && *size + more > PIECE_MAX)
            break;
        *size += more;
        taken += n;
    }
    return taken;
}

/* Copies so much of the source into the piece, with the tag and a tab before each line. */
static size_t put_lines(struct printer *printer, size_t taken)
{
    const char *at = printer->source, *stop = at + taken;
    char *out = printer->piece;

    while (at < stop) {
        const char *line_end = memchr(at, '\n', (size_t)(stop - at));
        size_t n = (size_t)((line_end ? line_end + 1 : stop) - at);
        if (*printer->starts) {
            out = stpcpy(out, printer->tag);
            *out++ = '\t';
        }
        out = mempcpy(out, at, n);
        at += n;
        *printer->starts = line_end != NULL;
    }
    return (size_t)(out - printer->piece);
}

/* Makes the next piece of the source. False: no memory, and the rest of the source is dropped. */
static bool next_piece(struct printer *printer)
{
    size_t size = printer->source_left, taken = size;

    if (printer->tag)
        taken = take_lines(&size, printer);
    printer->at = 0;
    if (!reserve_piece(printer, size)) {
        printer->source_left = 0;
        return false;
    }
    if (printer->tag)
        size = put_lines(printer, taken);
    else
        memcpy(printer->piece, printer->source, size);
    printer->left = size;
    printer->source += taken;
    printer->source_left -= taken;
    return true;
}

/* ---- what comes next ----------------------------------------------------------------------------- */

/* Takes a text up; false if there is none. */
static bool load_text(struct printer *printer)
{
    struct text *text = NULL;

    wr_lock(&printer->lock);
    if (!wr_list_empty(&printer->texts)) {
        text = WR_CONTAINER(printer->texts.next, struct text, link);
        wr_list_remove(&text->link);
        printer->held -= text->length;
        set_full(printer, printer->held > LINES_MAX);
    }
    wr_unlock(&printer->lock);
    if (!text)
        return false;
    free(printer->text);
    printer->text = text;
    printer->fd = text->fd;
    printer->source = text->bytes;
    printer->source_left = text->length;
    printer->tag = text->tagged ? text->bytes + text->length : NULL;
    printer->starts = &text->line_starts;
    return true;
}

/* The next task in line, if its turn has come. */
static struct task *next_task(struct printer *printer)
{
    struct task *task = NULL;

    wr_lock(&printer->lock);
    if (!wr_list_empty(&printer->tasks)) {
        task = task_of(printer->tasks.next);
        if (printer->engine->opt->keep_order && task->seq != printer->next_seq)
            task = NULL;
    }
    if (task) {
        wr_list_remove(&task->link);
        printer->waiting--;
        printer->next_seq++;
    }
    wr_unlock(&printer->lock);
    return task;
}

static void lost(struct printer *printer, int error)
{
    char text[200];
    int n = snprintf(text, sizeof(text),
                     "weir: task %llu ran, but its stored output cannot be read: %s\n",
                     (unsigned long long)printer->task->seq, strerror(error));

    atomic_store(&printer->engine->wrong, true);
    printer_text(printer, 2, text, (size_t)n);
}

/* Loads the task's next piece; false: it has no more, and is gone. */
static bool load_piece(struct printer *printer)
{
    struct task *task = printer->task;

    for (; printer->flow < 2; printer->flow++, printer->position = 0) {
        struct spooled *stream = &task->stream[printer->flow];
        int64_t n = spooled_read(stream, printer->engine->spool, printer->raw, &printer->position);
        if (n < 0)
            lost(printer, (int)-n);
        if (n <= 0)
            continue;
        printer->fd = printer->flow + 1;
        printer->source = printer->raw;
        printer->source_left = (size_t)n;
        printer->tag = task->plan.tag;
        printer->starts = &printer->line_starts[printer->flow];
        return true;
    }
    printer->task = NULL;
    task_release(task);
    return false;
}

int printer_pending(struct printer *printer)
{
    while (!printer->left || printer->broken[printer->fd]) {
        printer->left = 0;
        if (printer->broken[printer->fd])
            printer->source_left = 0;
        if (printer->source_left) {
            if (!next_piece(printer) && printer->task)
                lost(printer, ENOMEM);
            continue;
        }
        if (printer->task) {
            load_piece(printer);
            continue;
        }
        if (load_text(printer))
            continue;
        printer->task = next_task(printer);
        if (!printer->task)
            return -1;
        printer->flow = 0;
        printer->position = 0;
        printer->line_starts[0] = printer->line_starts[1] = true;
    }
    return printer->fd;
}

/* How much to write at once: a pipe that polls as writable takes so much without making us wait. */
static size_t at_once(const struct printer *printer)
{
    return printer->is_pipe[printer->fd] && printer->left > PIPE_BUF ? PIPE_BUF : printer->left;
}

int printer_write(struct printer *printer)
{
    int fd = printer->fd;
    ssize_t n = write(printer->own_fd[fd] >= 0 ? printer->own_fd[fd] : fd,
                      printer->piece + printer->at, at_once(printer));

    if (n < 0) {
        if (errno == EAGAIN)
            printer->is_pipe[fd] = true; /* it is non-blocking by now: poll it from now on */
        if (errno == EINTR || errno == EAGAIN)
            return 0;
        printer->broken[fd] = true;
        return -errno;
    }
    if (n > 0 && printer->is_terminal[fd])
        printer->in_line = printer->piece[printer->at + (size_t)n - 1] != '\n';
    printer->at += (size_t)n;
    printer->left -= (size_t)n;
    return 0;
}

bool printer_in_line(const struct printer *printer)
{
    return printer->in_line;
}

bool printer_is_amid(const struct printer *printer)
{
    return printer->left || printer->source_left || printer->task;
}

void printer_line_ended(struct printer *printer)
{
    printer->in_line = false;
}

void printer_give_up(struct printer *printer)
{
    printer->broken[1] = printer->broken[2] = true;
}

bool printer_may_wait(const struct printer *printer)
{
    return printer->is_pipe[printer->fd];
}

bool printer_writes_to_terminal(const struct printer *printer)
{
    return printer->is_terminal[printer->fd];
}
