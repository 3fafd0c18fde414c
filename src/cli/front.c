/* The main thread: signals, phases, printing, retries that are due.
 * SPDX-License-Identifier: MIT */
#include "cli/front.h"

#include "cli/glyph.h"
#include "cli/orphans.h"
#include "cli/printer.h"
#include "cli/results.h"
#include "cli/tally.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { SIGNALS, WAKES, KEYS, OUTPUT, POLLED };

struct front {
    struct map *map;
    struct show show;
    int signal_fd;
    int interrupts;    /* Ctrl-C so far                                       */
    weir_time kill_at; /* MAP_ENDING: when patience ends                      */
    weir_time flush_at;
    bool redraw;
    bool quiet_end; /* our reader went away: nobody wants to hear more */
    char phase[80];
};

/* ---- waking -------------------------------------------------------------------------------------- */

/* One write is enough until the front has looked: `woken` is cleared before it does. */
void front_wake(struct map *map)
{
    uint64_t one = 1;
    ssize_t n;

    if (atomic_exchange(&map->woken, true))
        return;
    n = write(map->wake_fd, &one, sizeof(one));
    (void)n; /* cannot fail below 2^64 - 1 wake-ups that nobody read */
}

static void clear_wakes(struct map *map)
{
    uint64_t count;
    ssize_t n = read(map->wake_fd, &count, sizeof(count));

    (void)n;
    atomic_store(&map->woken, false);
}

/* Names and records may hold anything; a terminal is sent text alone. */
static void clean(char *text, size_t size)
{
    const char *at;
    struct glyph glyph;
    size_t length = 0;
    char *copy;

    if (!isatty(2) || !(copy = strdup(text)))
        return;
    at = copy;
    while (glyph_next(&glyph, &at, MB_CUR_MAX > 1) && length + glyph.length < size) {
        memcpy(text + length, glyph.bytes, glyph.length);
        length += glyph.length;
    }
    text[length] = 0;
    free(copy);
}

void map_say(struct map *map, const char *format, ...)
{
    char text[1024] = "weir: ";
    size_t length = strlen(text);
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(text + length, sizeof(text) - length - 1, format, args);
    va_end(args);
    if (n < 0)
        return;
    clean(text, sizeof(text) - 1);
    length = strlen(text);
    text[length++] = '\n';
    printer_text(map->printer, 2, text, length);
}

/* ---- phases -------------------------------------------------------------------------------------- */

/* Starts nothing more. What waits has not run; what was to be tried again has failed (see the loop). */
static void stop_starting(struct front *front)
{
    struct map *map = front->map;
    int running = MAP_RUNNING;

    if (!atomic_compare_exchange_strong(&map->phase, &running, MAP_DRAINING))
        return;
    intake_stop(map);
    weir_executor_close(map->executor, WEIR_LEAVE_RUNNING);
    front->redraw = true;
}

static void end_running(struct front *front)
{
    struct map *map = front->map;

    stop_starting(front);
    if (atomic_exchange(&map->phase, MAP_ENDING) == MAP_ENDING)
        return;
    slots_signal_all(map->slots, SIGTERM);
    front->kill_at = weir_in_ns(map->opt->grace_ns);
    front->redraw = true;
}

static void kill_running(struct front *front)
{
    end_running(front);
    slots_signal_all(front->map->slots, SIGKILL);
    front->kill_at = weir_in_s(1); /* one may have been between fork and exec */
}

/* What a signal of ours does to others. */
static void act_as_usual(int signal)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, signal);
    raise(signal);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void stop_with_commands(struct front *front)
{
    slots_signal_all(front->map->slots, SIGSTOP);
    if (front->show.live)
        term_suspend(&front->show.term);
    act_as_usual(SIGTSTP);
    if (front->show.live)
        term_resume(&front->show.term);
}

/* Ctrl-Z: the commands stop as well, then we do; but not where no shell could make us go on. */
static void suspend(struct front *front)
{
    struct standstill *standstill = &front->map->standstill;
    int64_t ns;

    if (standstill_begin(standstill))
        stop_with_commands(front);
    else
        map_say(front->map, "cannot stop now: a command is still being started");
    ns = standstill_end(standstill);
    if (front->kill_at < WEIR_FOREVER - ns)
        front->kill_at += ns;
    slots_signal_all(front->map->slots, SIGCONT);
    front->redraw = true;
}

static void reap_orphans(struct front *front)
{
    pid_t pid;

    while ((pid = orphans_reap_one()))
        slots_reaped(front->map->slots, pid);
}

/* Nobody may be there to read what is left to print, or what is printed only when its command is dead. */
static void give_up_printing(struct front *front)
{
    atomic_store(&front->map->wrong, true);
    printer_give_up(front->map->printer);
}

static void interrupt(struct front *front)
{
    atomic_store(&front->map->interrupted, true);
    switch (++front->interrupts) {
    case 1:
        stop_starting(front);
        if (!front->show.live) /* which would say so */
            map_say(front->map,
                    "starting no more commands; press Ctrl-C again to end those that run");
        break;
    case 2:
        end_running(front);
        break;
    default:
        kill_running(front);
        give_up_printing(front);
        break;
    }
}

static void take_signals(struct front *front)
{
    struct signalfd_siginfo info;

    while (read(front->signal_fd, &info, sizeof(info)) == sizeof(info)) {
        switch (info.ssi_signo) {
        case SIGINT:
            interrupt(front);
            break;
        case SIGTERM:
        case SIGHUP:
            front->interrupts = front->interrupts < 1 ? 1 : front->interrupts;
            interrupt(front);
            break;
        case SIGTSTP:
            suspend(front);
            break;
        case SIGCHLD:
            reap_orphans(front);
            break;
        case SIGQUIT:
            if (front->show.live)
                term_suspend(&front->show.term);
            act_as_usual(SIGQUIT); /* our end; the guardian does the rest */
            break;
        default:
            if (front->show.live)
                term_resized(&front->show.term);
            front->redraw = true;
            break;
        }
    }
}

/* What failures ask for. */
static void take_halt(struct front *front)
{
    int asked = atomic_load(&front->map->asked);

    if (asked == HALT_SOON)
        stop_starting(front);
    else if (asked == HALT_NOW)
        end_running(front);
}

/* ---- output -------------------------------------------------------------------------------------- */

static void output_failed(struct front *front, int fd, int error)
{
    atomic_store(&front->map->wrong, true);
    if (error == EPIPE)
        front->quiet_end = true;
    else
        map_say(front->map, "%s: %s; ending", fd == 1 ? "standard output" : "standard error",
                strerror(error));
    end_running(front);
}

static bool takes_more(int fd)
{
    struct pollfd polled = { .fd = fd, .events = POLLOUT };

    return poll(&polled, 1, 0) > 0;
}

/* Writes what can be written without waiting. */
static void print(struct front *front)
{
    enum { AT_ONCE = 64 }; /* then look at signals again */
    struct printer *printer = front->map->printer;

    for (int i = 0; i < AT_ONCE; i++) {
        int fd = printer_pending(printer), rc;
        if (fd < 0 || (printer_may_wait(printer) && !takes_more(fd)))
            return;
        if (printer_writes_to_terminal(printer)) {
            show_make_way(&front->show);
            front->redraw = true;
        }
        rc = printer_write(printer);
        if (rc)
            output_failed(front, fd, -rc);
    }
}

static void flush_results(struct front *front)
{
    int rc;

    if (!front->map->results)
        return;
    rc = results_flush(front->map->results);
    front->flush_at = weir_in_s(1);
    if (!rc)
        return;
    atomic_store(&front->map->wrong, true);
    map_say(front->map, "%s: %s; starting no more commands", front->map->opt->results_path,
            strerror(-rc));
    stop_starting(front);
}

/* ---- the loop ------------------------------------------------------------------------------------ */

/* Submits those that are due; answers when to look again. Once nothing more is started, all have failed, also
 * those that come from commands which end only now. */
static weir_time submit_retries(struct map *map)
{
    struct job *job;
    weir_time next;

    if (atomic_load(&map->phase) == MAP_RUNNING) {
        while ((job = retries_due(map->retries, weir_now(), &next)))
            job_submit(job);
        return next;
    }
    while ((job = retries_any(map->retries)))
        job_end(job);
    return WEIR_FOREVER;
}

static const char *phase_text(struct front *front)
{
    weir_executor_stats stats = { .size = sizeof(stats) };
    int phase = atomic_load(&front->map->phase);

    if (phase == MAP_RUNNING || weir_executor_stats_get(&stats, front->map->executor) < 0)
        return NULL;
    snprintf(front->phase, sizeof(front->phase),
             phase == MAP_ENDING ? "ending %llu commands (Ctrl-C kills them)"
                                 : "starting no more; %llu still running (Ctrl-C ends them)",
             (unsigned long long)stats.running);
    return front->phase;
}

static weir_time earlier(weir_time a, weir_time b)
{
    return a < b ? a : b;
}

/* How long to sleep, in milliseconds; rounded up, so as not to look too early. */
static int sleep_ms(struct front *front, weir_time next)
{
    weir_time now = weir_now();
    int64_t ms;

    if (front->show.live || front->show.plain)
        next = earlier(next, front->show.next);
    if (front->map->results)
        next = earlier(next, front->flush_at);
    if (atomic_load(&front->map->phase) == MAP_ENDING)
        next = earlier(next, front->kill_at);
    if (next == WEIR_FOREVER)
        return -1;
    ms = (next - now + 999999) / 1000000;
    return ms < 0 ? 0 : ms > 60000 ? 60000 : (int)ms;
}

/* Sleeps until there is something to do. */
static void sleep_until_work(struct front *front, weir_time next)
{
    int fd = printer_pending(front->map->printer);
    bool waits = fd >= 0 && printer_may_wait(front->map->printer);
    struct pollfd polled[POLLED] = {
        [SIGNALS] = { .fd = front->signal_fd, .events = POLLIN },
        [WAKES] = { .fd = front->map->wake_fd, .events = POLLIN },
        [KEYS] = { .fd = front->show.live ? front->show.term.key_fd : -1, .events = POLLIN },
        [OUTPUT] = { .fd = waits ? fd : -1, .events = POLLOUT },
    };
    int key;

    if (poll(polled, POLLED, fd >= 0 && !waits ? 0 : sleep_ms(front, next)) <= 0)
        return;
    if (polled[WAKES].revents)
        clear_wakes(front->map);
    if (polled[SIGNALS].revents)
        take_signals(front);
    if (polled[KEYS].revents & (POLLHUP | POLLERR))
        term_suspend(&front->show.term); /* it is gone, so no key will come */
    while (polled[KEYS].revents && (key = term_key(&front->show.term))) {
        show_key(&front->show, key);
        front->redraw = true;
    }
}

static bool is_over(struct map *map)
{
    return window_is_closed(map) && printer_pending(map->printer) < 0;
}

static void loop(struct front *front)
{
    struct map *map = front->map;
    weir_time next;

    if (orphans_come_to_us()) /* some may have ended before we took signals */
        reap_orphans(front);
    for (;;) {
        print(front);
        take_halt(front);
        next = submit_retries(map);
        if (map->results && weir_now() >= front->flush_at)
            flush_results(front);
        if (atomic_load(&map->phase) == MAP_ENDING && weir_now() >= front->kill_at)
            kill_running(front);
        show_update(&front->show, front->redraw, phase_text(front));
        front->redraw = false;
        if (is_over(map)) /* asked after printing: nobody wakes us for the last line */
            return;
        sleep_until_work(front, next);
    }
}

/* Not those that we were started to ignore (nohup): blocked ones would come all the same. */
void front_signals(sigset_t *set)
{
    static const int ours[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH };
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

    front_signals(&set);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* As GNU parallel's: how many failed, up to 100; 101 for more; 255 if something else went wrong. What we ended
 * because others failed has not failed. */
static int exit_status(const struct map *map)
{
    uint64_t failed = atomic_load(&map->failed);
    bool incomplete =
        atomic_load(&map->not_run) || atomic_load(&map->halted) || !atomic_load(&map->all_read);

    if (atomic_load(&map->wrong) || (atomic_load(&map->interrupted) && incomplete))
        return 255;
    return failed > 100 ? 101 : (int)failed;
}

/* What stopping early has cost: ": 1 command was ended, 3 records were read but not run". */
static const char *what_is_missing(char *text, size_t size, uint64_t halted, uint64_t not_run)
{
    int n = 0;

    text[0] = 0;
    if (halted)
        n = snprintf(text, size, ": %llu %s ended", (unsigned long long)halted,
                     halted == 1 ? "command was" : "commands were");
    if (not_run)
        snprintf(text + n, size - (size_t)n, "%s %llu %s read but not run", n ? "," : ":",
                 (unsigned long long)not_run, not_run == 1 ? "record was" : "records were");
    return text;
}

static void last_words(struct front *front)
{
    char text[120];
    struct map *map = front->map;
    uint64_t failed = atomic_load(&map->failed), not_run = atomic_load(&map->not_run);

    if (front->quiet_end)
        return;
    clean(map->first_failure, sizeof(map->first_failure));
    if (failed)
        fprintf(stderr, "weir: %llu of %llu failed; the first: %s\n", (unsigned long long)failed,
                (unsigned long long)atomic_load(&map->ended), map->first_failure);
    if (atomic_load(&map->phase) != MAP_RUNNING)
        fprintf(stderr, "weir: stopped early%s\n",
                what_is_missing(text, sizeof(text), atomic_load(&map->halted), not_run));
}

/* Nothing runs any more: signals do again what they usually do, so that a reader of our last words who does
 * not read cannot keep us. Those that came so far were meant for the run. */
static void release_signals(struct front *front)
{
    struct signalfd_siginfo info;
    sigset_t set;

    while (read(front->signal_fd, &info, sizeof(info)) == sizeof(info))
        ;
    front_signals(&set);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

int front_run(struct map *map)
{
    struct front front = { .map = map, .signal_fd = open_signals(), .flush_at = weir_in_s(1) };
    pthread_t reader;
    int rc;

    rc = front.signal_fd < 0 ? -errno : show_open(&front.show, map);
    if (!rc)
        rc = intake_start(&reader, map);
    if (rc) {
        fprintf(stderr, "weir: cannot start: %s\n", strerror(-rc));
        return 255;
    }
    loop(&front);
    pthread_join(reader, NULL);
    rc = results_close(map->results);
    map->results = NULL;
    if (!front.show.live)
        release_signals(&front);
    show_close(&front.show); /* the terminal is as it was */
    release_signals(&front);
    close(front.signal_fd);
    if (rc) {
        atomic_store(&map->wrong, true);
        fprintf(stderr, "weir: %s: %s\n", map->opt->results_path, strerror(-rc));
    }
    last_words(&front);
    return exit_status(map);
}
