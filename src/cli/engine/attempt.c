/* One attempt at a task: starts the command, reads what it writes, ends it when its time is up.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/child.h"
#include "cli/engine/command.h"
#include "cli/engine/printer.h"
#include "cli/engine/run.h"
#include "cli/engine/strays.h"
#include "cli/engine/write_whole.h"
#include "cli/screen/quote.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COOL_FD = 3, FLOWS = 2, PROCESS = 2 }; /* events carry the number of a flow, or PROCESS */

struct attempt {
    struct task *task;
    struct engine *engine;
    struct slot *slot;
    uint32_t number; /* of the slot */
    struct child child;
    int input; /* the command's standard input; ours to close unless it is the common null */
    int theirs[FLOWS];  /* what the command writes to                      */
    int ours[FLOWS];    /* where we read that; -1: closed, or a file       */
    int cool[2];        /* a pipe for --cool-code; -1: none                */
    bool looked;        /* the deadline is only when to look again         */
    bool sentenced;     /* its group was told to end                       */
    bool no_file;       /* --files: one could not be created               */
    bool lost;          /* we could not keep its output                    */
    char **argv;        /* of this attempt: with the slot's number in it   */
    weir_time deadline; /* TERM then, or KILL if it is sentenced          */
    int64_t stopped_ns; /* suspends that the deadline takes account of  */
};

static void close_if(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* ---- descriptors --------------------------------------------------------------------------------- */

/* Not through a link, nor over a file of another run: only the file of an earlier attempt of this task is replaced. */
static int open_file(const struct attempt *a, const char *suffix)
{
    char name[40];
    int again = a->task->attempts > 1 ? O_TRUNC : O_EXCL;

    snprintf(name, sizeof(name), "%llu.%s", (unsigned long long)a->task->seq, suffix);
    return openat(a->engine->directory_fd, name,
                  O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | again, 0666);
}

/* Bytes as a file without a name, to be read from its beginning. */
static int open_bytes(const char *bytes, size_t length)
{
    int fd = memfd_create("weir-input", MFD_CLOEXEC);

    if (fd >= 0 && write_whole(fd, bytes, length) == 0 && lseek(fd, 0, SEEK_SET) == 0)
        return fd;
    close_if(&fd);
    return -1;
}

/* --tty: the command reads from the terminal, and writes where we would. */
static bool open_terminal(struct attempt *a)
{
    a->input = fcntl(a->engine->tty_fd, F_DUPFD_CLOEXEC, 4);
    a->theirs[0] = fcntl(1, F_DUPFD_CLOEXEC, 4);
    a->theirs[1] = fcntl(2, F_DUPFD_CLOEXEC, 4);
    return a->input >= 0 && a->theirs[0] >= 0 && a->theirs[1] >= 0;
}

/* False with errno. */
static bool open_all(struct attempt *a)
{
    static const char *const suffix[FLOWS] = { "out", "err" };
    int fds[2];

    if (a->engine->opt->tty)
        return open_terminal(a);
    if (a->task->plan.input &&
        (a->input = open_bytes(a->task->plan.input, a->task->plan.input_length)) < 0)
        return false;
    for (int i = 0; i < FLOWS; i++) {
        if (a->engine->opt->output == OUTPUT_FILES) {
            a->theirs[i] = open_file(a, suffix[i]);
            a->no_file = a->theirs[i] < 0;
            if (a->no_file)
                return false;
            continue;
        }
        if (pipe2(fds, O_CLOEXEC) < 0)
            return false;
        a->ours[i] = fds[0];
        a->theirs[i] = fds[1];
    }
    return a->engine->opt->cool_code < 0 || pipe2(a->cool, O_CLOEXEC | O_NONBLOCK) == 0;
}

static void close_theirs(struct attempt *a)
{
    for (int i = 0; i < FLOWS; i++)
        close_if(&a->theirs[i]);
    close_if(&a->cool[1]);
    if (a->input != a->engine->null_fd)
        close_if(&a->input);
}

/* Takes the descriptor out of the set before it is closed: a child of another thread that is between fork and exec
 * may still hold a copy, which would keep it in the set after close. */
static void drop(struct attempt *a, int *fd)
{
    if (*fd < 0)
        return;
    epoll_ctl(a->slot->epoll, EPOLL_CTL_DEL, *fd, NULL);
    close_if(fd);
}

static bool add(struct attempt *a, int fd, uint32_t number)
{
    struct epoll_event event = { .events = EPOLLIN, .data.u32 = number };

    return fd < 0 || epoll_ctl(a->slot->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

static bool watch_all(struct attempt *a)
{
    if (a->slot->epoll < 0)
        a->slot->epoll = epoll_create1(EPOLL_CLOEXEC);
    return a->slot->epoll >= 0 && add(a, a->ours[0], 0) && add(a, a->ours[1], 1) &&
           add(a, a->child.fd, PROCESS);
}

/* -t */
static void print_command(const struct attempt *a)
{
    char *text = NULL;
    size_t length;
    FILE *file = open_memstream(&text, &length);

    if (!file)
        return;
    quote_command(file, a->argv);
    putc('\n', file);
    if (fclose(file) == 0)
        printer_text(a->engine->printer, 2, text, length);
    free(text);
}

/* ---- time ---------------------------------------------------------------------------------------- */

static void set_deadline(struct attempt *a, int64_t ns_from_now)
{
    a->stopped_ns = suspend_ns(&a->engine->suspend);
    a->deadline = weir_in_ns(ns_from_now);
}

/* The deadline has passed. True: we have been stopped meanwhile, and that puts it off. */
static bool was_put_off(struct attempt *a)
{
    int64_t ns = suspend_ns(&a->engine->suspend) - a->stopped_ns;

    a->stopped_ns += ns;
    a->deadline += ns;
    return a->deadline > weir_now();
}

/* ---- what it writes ------------------------------------------------------------------------------ */

/* Ends the command's whole group; KILL if TERM was sent before. */
static void end_group(struct attempt *a, int signal)
{
    a->sentenced = true;
    a->looked = false;
    slots_signal(a->engine->slots, a->slot, signal);
}

static void keep(struct attempt *a, int flow, const char *text, size_t length)
{
    int rc;

    if (a->lost)
        return;
    if (a->engine->opt->output == OUTPUT_LINES)
        rc = printer_lines(a->engine->printer, a->task, flow, text, length);
    else
        rc = spooled_add(&a->task->stream[flow], a->engine->spool, text, length);
    if (!rc)
        return;
    a->lost = true;
    a->task->output_error = -rc;
    set_deadline(a, a->engine->opt->grace_ns);
    engine_say(a->engine, "task %llu: cannot store its output in %s: %s; ending the command",
               (unsigned long long)a->task->seq, a->engine->opt->temporary, strerror(-rc));
    end_group(a, SIGTERM);
}

/* Reads once, at most `size` bytes; false: nothing more will come. */
static bool read_flow(struct attempt *a, int flow, size_t size)
{
    /* Not a thread's for longer than this call, which does not park. */
    static _Thread_local char buffer[SPOOL_PIECE];
    ssize_t n = read(a->ours[flow], buffer, size < sizeof(buffer) ? size : sizeof(buffer));

    if (n > 0)
        keep(a, flow, buffer, (size_t)n);
    return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

/* The command has ended; what it wrote is in the pipes. Processes that it left behind may hold them open and
 * write more, so we take only what is there now. */
static void drain(struct attempt *a)
{
    for (int i = 0; i < FLOWS; i++) {
        int left = 0;
        if (a->ours[i] >= 0 && ioctl(a->ours[i], FIONREAD, &left) < 0)
            left = 0;
        while (left > 0 && read_flow(a, i, (size_t)left))
            left -= left < SPOOL_PIECE ? left : SPOOL_PIECE;
    }
}

/* ---- until it has ended -------------------------------------------------------------------------- */

/* The command's time is up: TERM, and KILL the next time. */
static void overdue(struct attempt *a)
{
    bool warned = a->sentenced;

    a->task->outcome = OUTCOME_TIMED_OUT;
    end_group(a, warned ? SIGKILL : SIGTERM);
    if (warned)
        a->deadline = WEIR_FOREVER;
    else
        set_deadline(a, a->engine->opt->grace_ns);
}

/* Looks once at what is ready; answers how much it was. *runs: the command has not ended. */
static int serve_once(struct attempt *a, bool *runs)
{
    struct epoll_event event[FLOWS + 1];
    int n = epoll_wait(a->slot->epoll, event, FLOWS + 1, 0);

    for (int i = 0; i < n; i++) {
        uint32_t number = event[i].data.u32;
        if (number == PROCESS)
            *runs = false;
        else if (a->ours[number] >= 0 && !read_flow(a, (int)number, SPOOL_PIECE))
            drop(a, &a->ours[number]);
    }
    return n;
}

/* Serves what is ready. False: the command has ended. A process closes its pipes just before it is gone, so it
 * is worth looking again before going to sleep over it. */
static bool serve(struct attempt *a)
{
    bool runs = true;

    while (serve_once(a, &runs) > 0 && runs && a->ours[0] < 0 && a->ours[1] < 0)
        ;
    return runs;
}

/* --timeout N%: the deadline depends on how long other commands take, so it is looked at again and again. */
static void look_at_median(struct attempt *a)
{
    enum { LOOK_MS = 200 };
    int64_t usual = a->engine->opt->timeout_percent ? median_get(&a->engine->median) : 0;
    weir_time due;

    if (!a->engine->opt->timeout_percent || a->sentenced)
        return;
    due = a->task->started_at + suspend_ns(&a->engine->suspend) - a->stopped_ns +
          (int64_t)((double)usual * (double)a->engine->opt->timeout_percent / 100);
    a->looked = !usual || due > weir_now();
    a->deadline = a->looked ? weir_in_ms(LOOK_MS) : weir_now();
}

static void wait_for_end(struct attempt *a)
{
    int rc;

    for (;;) {
        rc = 0;
        look_at_median(a);
        if (a->engine->opt->output == OUTPUT_LINES && printer_is_full(a->engine->printer))
            rc = weir_fd_wait(printer_room_fd(a->engine->printer), WEIR_READ, a->deadline);
        if (rc >= 0)
            rc = weir_fd_wait(a->slot->epoll, WEIR_READ, a->deadline);
        if (rc == WEIR_ETIMEDOUT) {
            if (!a->looked && !was_put_off(a))
                overdue(a);
        } else if (!serve(a)) {
            return;
        }
    }
}

/* How long the group should pause: as the command said, or as the option says. */
static int64_t cool_time(struct attempt *a)
{
    char text[64];
    ssize_t n = read(a->cool[0], text, sizeof(text) - 1);
    int64_t ns;

    if (n <= 0)
        return a->engine->opt->cool_ns;
    text[n] = 0;
    text[strcspn(text, "\n")] = 0;
    if (quantity_duration(&ns, text))
        return ns;
    engine_say(
        a->engine,
        "task %llu: \"%s\" on descriptor %d is not a duration such as 30s or 5m; using %llds",
        (unsigned long long)a->task->seq, text, COOL_FD,
        (long long)(a->engine->opt->cool_ns / 1000000000));
    return a->engine->opt->cool_ns;
}

static void judge(struct attempt *a, int64_t *cool_ns)
{
    struct task *task = a->task;
    int status = task->status;

    if (a->lost)
        task->outcome = OUTCOME_OUTPUT_LOST;
    else if (task->outcome == OUTCOME_TIMED_OUT)
        return;
    else if (status == 0) {
        task->outcome = OUTCOME_DONE;
        median_add(&a->engine->median, task->ended_at - task->started_at);
    } else if (a->engine->tty_fd >= 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) {
        task->outcome =
            OUTCOME_FAILED; /* Ctrl-C went to the command, but is meant for the run, too */
        kill(getpid(), SIGINT);
    } else if (atomic_load(&a->engine->phase) == PHASE_ENDING)
        task->outcome =
            OUTCOME_HALTED; /* also if it took the signal, tidied up and told by its status */
    else
        task->outcome = OUTCOME_FAILED;
    if (a->cool[0] >= 0 && WIFEXITED(status) && WEXITSTATUS(status) == a->engine->opt->cool_code)
        *cool_ns = cool_time(a);
}

static void see_it_through(struct attempt *a, int64_t *cool_ns)
{
    bool ending;

    a->task->outcome = OUTCOME_DONE;
    if (!watch_all(a)) {
        a->task->output_error = errno;
        engine_say(a->engine, "task %llu: cannot watch the command: %s; ending it",
                   (unsigned long long)a->task->seq, strerror(a->task->output_error));
        a->lost = true;
        end_group(a, SIGKILL);
    } else {
        if (atomic_load(&a->engine->phase) == PHASE_ENDING)
            end_group(a, SIGTERM); /* it was started while the others were being ended */
        wait_for_end(a);
        drain(a);
    }
    ending = a->sentenced || atomic_load(&a->engine->phase) == PHASE_ENDING;
    epoll_ctl(a->slot->epoll, EPOLL_CTL_DEL, a->child.fd, NULL);
    if (a->engine->tty_fd >= 0)
        tcsetpgrp(a->engine->tty_fd, getpgrp()); /* SIGTTOU is ignored */
    slots_ended(a->engine->slots, a->slot, ending);
    if (ending)
        strays_note(a->engine->strays, a->task->seq, (uint64_t)a->task->attempts);
    a->task->status = child_reap(&a->child);
    a->task->ended_at = weir_now();
    judge(a, cool_ns);
}

/* ---- start --------------------------------------------------------------------------------------- */

static int start(struct attempt *a)
{
    char **env;
    int rc;

    if (!open_all(a))
        return -errno;
    env = command_environment(a->engine, a->task, a->number, a->cool[1] >= 0 ? COOL_FD : -1);
    a->argv = command_words(&a->task->plan, a->number);
    if (!env || !a->argv) {
        free(env);
        return -ENOMEM;
    }
    if (a->engine->opt->trace)
        print_command(a);
    suspend_hold_off(&a->engine->suspend);
    rc = child_start(&a->child,
                     &(struct child_plan){
                         .file = a->engine->opt->resolved ? a->engine->opt->resolved : a->argv[0],
                         .argv = a->argv,
                         .envp = env,
                         .directory = a->task->plan.directory,
                         .input = a->input,
                         .output = a->theirs[0],
                         .error = a->theirs[1],
                         .extra = a->cool[1],
                         .group = &a->slot->group,
                         .terminal = a->engine->tty_fd,
                     });
    suspend_allow(&a->engine->suspend);
    free(env);
    return rc;
}

/* There is no place for the command's output, nor for that of other commands. */
static void fail_file(struct attempt *a, int error)
{
    a->task->outcome = OUTCOME_OUTPUT_LOST;
    a->task->output_error = error;
    a->task->no_files = true;
    a->task->ended_at = weir_now();
    engine_fail(a->engine, "task %llu was not run: cannot create its files in %s: %s",
                (unsigned long long)a->task->seq, a->engine->files_directory, strerror(error));
}

/* --delay counts from now, should it have taken a while since the turn came. */
static void push_next_start(struct engine *engine, weir_time now)
{
    weir_time before = atomic_load(&engine->next_start), next;

    if (!engine->opt->delay_ns || __builtin_add_overflow(now, engine->opt->delay_ns, &next))
        return;
    while (before < next && !atomic_compare_exchange_weak(&engine->next_start, &before, next))
        ;
}

void attempt_run(struct task *task, int64_t *cool_ns)
{
    struct engine *engine = task->engine;
    struct attempt a = {
        .task = task,
        .engine = engine,
        .input = engine->null_fd,
        .theirs = { -1, -1 },
        .ours = { -1, -1 },
        .cool = { -1, -1 },
        .child = { .fd = -1 },
        .deadline = WEIR_FOREVER,
    };
    int rc;

    *cool_ns = -1;
    a.slot = slots_take(engine->slots, &a.number);
    atomic_store(&a.slot->seq, task->seq);
    task->started_at = weir_now();
    push_next_start(engine, task->started_at);
    if (engine->opt->timeout_ns)
        set_deadline(&a, engine->opt->timeout_ns);
    rc = start(&a);
    close_theirs(&a);
    if (rc && a.no_file && rc != -EMFILE && rc != -ENFILE) {
        fail_file(&a, -rc);
    } else if (rc) {
        task->outcome = OUTCOME_CANNOT_RUN;
        task->exec_error = -rc;
        task->ended_at = weir_now();
    } else {
        see_it_through(&a, cool_ns);
    }
    for (int i = 0; i < FLOWS; i++)
        drop(&a, &a.ours[i]);
    close_if(&a.cool[0]);
    if (a.argv != task->plan.argv)
        free(a.argv);
    slots_give(engine->slots, a.slot);
}
