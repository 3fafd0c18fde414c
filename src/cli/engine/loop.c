/* The main thread: signals, phases, printing, retries that are due.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/show.h"

#include "cli/engine/child.h"
#include "cli/engine/jobs.h"
#include "cli/engine/orphans.h"
#include "cli/engine/printer.h"
#include "cli/engine/results.h"
#include "cli/engine/strays.h"
#include "cli/engine/tally.h"
#include "cli/engine/verdict.h"
#include "cli/screen/say.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { SWEEP_MS = 200, JOBS_FILE_MS = 500 };
static const int64_t BLOCKED_NS = 1000000000;

enum { SIGNALS, WAKES, KEYS, OUTPUT, POLLED };

struct loop {
    struct engine *engine;
    struct show show;
    int signal_fd;
    int interrupts;           /* Ctrl-C so far                                       */
    weir_time kill_at;        /* PHASE_ENDING: when patience ends                      */
    bool terminated;          /* by TERM or HUP                                      */
    weir_time patience_until; /* until then commands that were told to end may write    */
    weir_time blocked_at;     /* when output that cannot be written is given up     */
    weir_time sweep_at, jobs_at;
    bool redraw;
    bool quiet_end; /* the reader of our output went away: nothing more is said */
    char phase[120];
    bool order_told, gate_told;
};

/* ---- phases -------------------------------------------------------------------------------------- */

/* Starts nothing more. Tasks that wait are not run; tasks that were to be tried again have failed (see the loop). */
static void stop_starting(struct loop *loop)
{
    struct engine *engine = loop->engine;
    int running = PHASE_RUNNING;

    if (!atomic_compare_exchange_strong(&engine->phase, &running, PHASE_DRAINING))
        return;
    supply_stop(engine);
    weir_executor_close(engine->executor, WEIR_LEAVE_RUNNING);
    loop->redraw = true;
}

static void end_running(struct loop *loop)
{
    struct engine *engine = loop->engine;

    stop_starting(loop);
    if (atomic_exchange(&engine->phase, PHASE_ENDING) == PHASE_ENDING)
        return;
    slots_signal_all(engine->slots, SIGTERM);
    loop->kill_at = weir_in_ns(engine->opt->grace_ns);
    loop->redraw = true;
}

static void kill_running(struct loop *loop)
{
    end_running(loop);
    slots_signal_all(loop->engine->slots, SIGKILL);
    loop->kill_at = weir_in_s(1); /* a command may have been between fork and exec */
}

/* Lets a signal that comes to the loop do what it does to other processes. */
static void act_as_usual(int signal)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, signal);
    raise(signal);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void stop_with_commands(struct loop *loop)
{
    slots_signal_all(loop->engine->slots, SIGSTOP);
    if (loop->show.live)
        term_suspend(&loop->show.term);
    act_as_usual(SIGTSTP);
    if (loop->show.live)
        term_resume(&loop->show.term);
}

/* Ctrl-Z: the commands stop as well, then we do; but not where no shell could make us go on. */
static void suspend(struct loop *loop)
{
    struct suspend *suspend = &loop->engine->suspend;
    int64_t ns;

    if (suspend_begin(suspend))
        stop_with_commands(loop);
    else
        engine_say(loop->engine, "cannot stop now: a command is still being started");
    ns = suspend_end(suspend);
    if (loop->kill_at < WEIR_FOREVER - ns)
        loop->kill_at += ns;
    slots_signal_all(loop->engine->slots, SIGCONT);
    loop->redraw = true;
}

static void reap_orphans(struct loop *loop)
{
    pid_t pid;

    while ((pid = orphans_reap_one()))
        slots_reaped(loop->engine->slots, pid);
}

/* Drops what is left to print, and what is printed only when its command is dead: there may be no reader for it. */
static void give_up_printing(struct loop *loop)
{
    atomic_store(&loop->engine->wrong, true);
    printer_give_up(loop->engine->printer);
}

static void interrupt(struct loop *loop)
{
    atomic_store(&loop->engine->interrupted, true);
    switch (++loop->interrupts) {
    case 1:
        stop_starting(loop);
        if (!loop->show.live) /* which would say so */
            engine_say(loop->engine,
                       "starting no more commands; press Ctrl-C again to end those that run");
        break;
    case 2:
        end_running(loop);
        break;
    default:
        kill_running(loop);
        give_up_printing(loop);
        break;
    }
}

/* ---- -j while it runs ------------------------------------------------------------------------------ */

static void set_jobs(struct loop *loop, int64_t jobs)
{
    struct engine *engine = loop->engine;

    jobs = jobs < 1 ? 1 : jobs > SLOTS_MAX ? SLOTS_MAX : jobs;
    if (jobs == atomic_load(&engine->jobs) || engine->opt->tty)
        return;
    child_raise_descriptors((rlim_t)jobs * 8 + 64);
    weir_executor_resize(engine->executor, jobs, 0);
    atomic_store(&engine->jobs, jobs);
    engine_say(engine, "at most %lld at once from now on", (long long)jobs);
    loop->redraw = true;
}

/* -j FILE: a number, or a share of the CPUs; what is none of these changes nothing. */
static void look_at_jobs_file(struct loop *loop)
{
    const char *path = loop->engine->opt->jobs_file;
    int64_t jobs;

    if (!path || weir_now() < loop->jobs_at)
        return;
    loop->jobs_at = weir_in_ms(JOBS_FILE_MS);
    if (jobs_from_file(&jobs, path))
        set_jobs(loop, jobs);
}

static void take_signals(struct loop *loop)
{
    struct signalfd_siginfo info;

    while (read(loop->signal_fd, &info, sizeof(info)) == sizeof(info)) {
        switch (info.ssi_signo) {
        case SIGINT:
            interrupt(loop);
            break;
        case SIGTERM:
        case SIGHUP:
            if (!loop->terminated)
                loop->patience_until = weir_in_ns(loop->engine->opt->grace_ns);
            loop->terminated = true;
            loop->interrupts = loop->interrupts < 1 ? 1 : loop->interrupts;
            interrupt(loop);
            break;
        case SIGTSTP:
            suspend(loop);
            break;
        case SIGUSR1:
        case SIGUSR2:
            set_jobs(loop, atomic_load(&loop->engine->jobs) + (info.ssi_signo == SIGUSR1 ? 1 : -1));
            break;
        case SIGCHLD:
            reap_orphans(loop);
            break;
        case SIGQUIT:
            if (loop->show.live)
                term_suspend(&loop->show.term);
            act_as_usual(SIGQUIT); /* our end; the guardian does the rest */
            break;
        default:
            if (loop->show.live)
                term_resized(&loop->show.term);
            loop->redraw = true;
            break;
        }
    }
}

/* Does what failures ask for. */
static void take_halt(struct loop *loop)
{
    int asked = atomic_load(&loop->engine->asked);

    if (asked == HALT_SOON)
        stop_starting(loop);
    else if (asked == HALT_NOW)
        end_running(loop);
}

/* ---- output -------------------------------------------------------------------------------------- */

static void output_failed(struct loop *loop, int fd, int error)
{
    char why[160];

    atomic_store(&loop->engine->wrong, true);
    say_why(why, sizeof(why), error);
    if (error == EPIPE)
        loop->quiet_end = true;
    else
        engine_say(loop->engine, "cannot write to %s: %s; ending the commands",
                   fd == 1 ? "standard output" : "standard error", why);
    end_running(loop);
}

static bool takes_more(int fd)
{
    struct pollfd polled = { .fd = fd, .events = POLLOUT };

    return poll(&polled, 1, 0) > 0;
}

/* Writes what can be written without waiting. */
static void print(struct loop *loop)
{
    enum { AT_ONCE = 64 }; /* then look at signals again */
    struct printer *printer = loop->engine->printer;

    for (int i = 0; i < AT_ONCE; i++) {
        int fd = printer_pending(printer), rc;
        if (fd < 0 || (printer_may_wait(printer) && !takes_more(fd)))
            return;
        if (printer_writes_to_terminal(printer)) {
            show_make_way(&loop->show);
            loop->redraw = true;
        }
        rc = printer_write(printer);
        if (rc)
            output_failed(loop, fd, -rc);
    }
}

/* A reader of our output that does not read must not keep us after TERM: what cannot be written for a second is
 * given up, once commands have had their grace. */
static void give_up_if_blocked(struct loop *loop)
{
    struct printer *printer = loop->engine->printer;
    int fd = printer_pending(printer);
    weir_time now = weir_now();

    if (!loop->terminated || fd < 0 || !printer_may_wait(printer) || takes_more(fd))
        loop->blocked_at = WEIR_FOREVER;
    else if (loop->blocked_at == WEIR_FOREVER)
        loop->blocked_at = now + BLOCKED_NS;
    else if (now >= loop->blocked_at &&
             (now >= loop->patience_until || slots_running(loop->engine->slots) == 0))
        give_up_printing(loop);
}

/* Ends processes that tasks ended by force have left behind; looks for them a few times a second at most. */
static void sweep(struct loop *loop)
{
    if (weir_now() < loop->sweep_at)
        return;
    if (strays_sweep(loop->engine->strays))
        loop->sweep_at = weir_in_ms(SWEEP_MS);
}

/* ---- the loop ------------------------------------------------------------------------------------ */

/* Submits the tasks that are due for another attempt; answers when to look again. Once nothing more is started, all
 * of them have failed, also those whose command ends only now. */
static weir_time submit_retries(struct engine *engine)
{
    struct task *task;
    weir_time next;

    if (atomic_load(&engine->phase) == PHASE_RUNNING) {
        while ((task = retries_due(engine->retries, weir_now(), &next)))
            task_submit(task);
        return next;
    }
    while ((task = retries_any(engine->retries))) {
        task->journal_id = 0; /* the task has attempts left: a later run goes on with it */
        task_end(task);
    }
    return WEIR_FOREVER;
}

/* --keep-order behind a slow task: no more is read, and so nothing starts. Said once where there is no display. */
static bool order_holds_up(struct loop *loop)
{
    struct engine *engine = loop->engine;
    uint64_t seq, waiting;

    if (!engine->opt->keep_order || !printer_waits_for(engine->printer, &seq, &waiting) ||
        !window_is_full_of(engine, waiting + 1))
        return false;
    snprintf(loop->phase, sizeof(loop->phase),
             "nothing starts: %llu %s for task %llu (--keep-order, --max-wait)",
             (unsigned long long)waiting, waiting == 1 ? "output waits" : "outputs wait",
             (unsigned long long)seq);
    if (!loop->order_told && !loop->show.live)
        engine_say(engine, "%s", loop->phase);
    loop->order_told = true;
    return true;
}

/* --load and the like. Said once where there is no display. */
static bool gate_holds_back(struct loop *loop)
{
    char why[100];

    if (!gate_why(&loop->engine->gate, why, sizeof(why)))
        return false;
    snprintf(loop->phase, sizeof(loop->phase), "held back: %s", why);
    if (!loop->gate_told && !loop->show.live && !loop->show.plain)
        engine_say(loop->engine, "%s", loop->phase);
    loop->gate_told = true;
    return true;
}

static const char *phase_text(struct loop *loop)
{
    weir_executor_stats stats = { .size = sizeof(stats) };
    int phase = atomic_load(&loop->engine->phase);

    if (phase == PHASE_RUNNING && (gate_holds_back(loop) || order_holds_up(loop)))
        return loop->phase;
    if (phase == PHASE_RUNNING || weir_executor_stats_get(&stats, loop->engine->executor) < 0)
        return NULL;
    snprintf(loop->phase, sizeof(loop->phase),
             phase == PHASE_ENDING ? "ending %llu commands (Ctrl-C kills them)"
                                   : "starting no more; %llu still running (Ctrl-C ends them)",
             (unsigned long long)stats.running);
    return loop->phase;
}

static weir_time earlier(weir_time a, weir_time b)
{
    return a < b ? a : b;
}

/* How long to sleep, in milliseconds; rounded up, so as not to look too early. */
static int sleep_ms(struct loop *loop, weir_time next)
{
    weir_time now = weir_now();
    int64_t ms;

    if (loop->show.live || loop->show.plain)
        next = earlier(next, loop->show.next);
    if (loop->terminated)
        next = earlier(next, weir_in_ms(100));
    if (loop->engine->opt->jobs_file)
        next = earlier(next, loop->jobs_at);
    if (atomic_load(&loop->engine->phase) == PHASE_ENDING)
        next = earlier(next, loop->kill_at);
    if (next == WEIR_FOREVER)
        return -1;
    ms = (next - now + 999999) / 1000000;
    return ms < 0 ? 0 : ms > 60000 ? 60000 : (int)ms;
}

static void clear_wakes(struct engine *engine)
{
    uint64_t count;
    ssize_t n = read(engine->wake_fd, &count, sizeof(count));

    (void)n;
    atomic_store(&engine->woken, false);
}

/* Sleeps until there is something to do. */
static void sleep_until_work(struct loop *loop, weir_time next)
{
    int fd = printer_pending(loop->engine->printer);
    bool waits = fd >= 0 && printer_may_wait(loop->engine->printer);
    struct pollfd polled[POLLED] = {
        [SIGNALS] = { .fd = loop->signal_fd, .events = POLLIN },
        [WAKES] = { .fd = loop->engine->wake_fd, .events = POLLIN },
        [KEYS] = { .fd = loop->show.live ? loop->show.term.key_fd : -1, .events = POLLIN },
        [OUTPUT] = { .fd = waits ? fd : -1, .events = POLLOUT },
    };
    int key;

    if (poll(polled, POLLED, fd >= 0 && !waits ? 0 : sleep_ms(loop, next)) <= 0)
        return;
    if (polled[WAKES].revents)
        clear_wakes(loop->engine);
    if (polled[SIGNALS].revents)
        take_signals(loop);
    if (polled[KEYS].revents & (POLLHUP | POLLERR))
        term_suspend(&loop->show.term); /* it is gone, so no key will come */
    while (polled[KEYS].revents && (key = term_key(&loop->show.term))) {
        show_key(&loop->show, key);
        loop->redraw = true;
    }
}

static bool is_over(struct engine *engine)
{
    return window_is_closed(engine) && printer_pending(engine->printer) < 0;
}

static void turn(struct loop *loop)
{
    struct engine *engine = loop->engine;
    weir_time next;

    if (orphans_come_to_us()) /* some may have ended before we took signals */
        reap_orphans(loop);
    for (;;) {
        print(loop);
        take_halt(loop);
        next = submit_retries(engine);
        sweep(loop);
        look_at_jobs_file(loop);
        give_up_if_blocked(loop);
        if (atomic_load(&engine->phase) == PHASE_ENDING && weir_now() >= loop->kill_at)
            kill_running(loop);
        show_update(&loop->show, loop->redraw, phase_text(loop));
        loop->redraw = false;
        if (is_over(engine)) /* asked after printing: no thread wakes us for the last line */
            return;
        sleep_until_work(loop, next);
    }
}

/* Without the signals that we were started to ignore (nohup): blocked ones would come all the same. */
void loop_signals(sigset_t *set)
{
    static const int ours[] = { SIGINT,  SIGTERM,  SIGHUP,  SIGQUIT,
                                SIGTSTP, SIGWINCH, SIGUSR1, SIGUSR2 };
    struct sigaction action;

    sigemptyset(set);
    for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++) {
        if (sigaction(ours[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(set, ours[i]);
    }
    if (orphans_come_to_us())
        sigaddset(set, SIGCHLD);
}

static int open_signals(void)
{
    sigset_t set;

    loop_signals(&set);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Nothing runs any more: signals do again what they usually do, so that a reader of our last words that does
 * not read cannot keep us. Signals that came so far were meant for the run. */
static void release_signals(struct loop *loop)
{
    struct signalfd_siginfo info;
    sigset_t set;

    while (read(loop->signal_fd, &info, sizeof(info)) == sizeof(info))
        ;
    loop_signals(&set);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

int loop_run(struct engine *engine)
{
    struct loop loop = { .engine = engine,
                         .signal_fd = open_signals(),
                         .blocked_at = WEIR_FOREVER };
    pthread_t reader;
    int rc;

    rc = loop.signal_fd < 0 ? -errno : show_open(&loop.show, engine);
    if (!rc)
        rc = supply_start(&reader, engine);
    if (rc)
        return say_wrong("cannot start", -rc);
    turn(&loop);
    strays_sweep(engine->strays);
    pthread_join(reader, NULL);
    rc = results_close(engine->results);
    engine->results = NULL;
    if (!loop.show.live)
        release_signals(&loop);
    show_close(&loop.show); /* the terminal is as it was */
    release_signals(&loop);
    close(loop.signal_fd);
    if (rc) {
        atomic_store(&engine->wrong, true);
        say("--results %s: %s", engine->opt->results_path, strerror(-rc));
    }
    if (!loop.quiet_end)
        verdict_say(engine);
    return verdict_status(engine);
}
