/* The weir command under signals: it drains, ends, kills, and whatever happens leaves no process behind.
 * SPDX-License-Identifier: MIT */
#include "command/ample.h"
#include "command/weir_run.h"

#include "support/seed.h"

/* A command that starts another in the background, tells both numbers, and waits at the gate. */
#define WITH_GRANDCHILD                                                                 \
    "sh", "-c",                                                                         \
        "sh -c 'echo $$ >grand$1; read x <gate' sh $1 & echo $$ >pid$1; read x <gate; " \
        "echo done $1; wait",                                                           \
        "sh", "{}"

/* ---- help ---------------------------------------------------------------------------------------- */

/* Whether a signal has been sent and not been taken yet: a second one would be lost. */
static bool is_pending(pid_t pid, int signal)
{
    char path[64];
    const char *at;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    at = strstr(read_file(path), "ShdPnd:");
    return at && (strtoull(at + 7, NULL, 16) >> (signal - 1) & 1);
}

static void send_signal(pid_t pid, int signal)
{
    CHECK_EQUAL(kill(pid, signal), 0);
    AWAIT_THAT(!is_pending(pid, signal));
}

static void forget_pids(void)
{
    static const char *const names[] = { "pid1", "pid2", "grand1", "grand2" };

    for (int i = 0; i < 4; i++)
        unlink(names[i]);
}

static bool two_run(void)
{
    return pid_in("pid1") && pid_in("pid2") && pid_in("grand1") && pid_in("grand2");
}

static int count_of(const char *path, const char *text)
{
    int count = 0;

    for (const char *at = read_file(path); (at = strstr(at, text)); at++)
        count++;
    return count;
}

static void numbers(const char *path, int count)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    for (int i = 1; i <= count; i++)
        fprintf(file, "%d\n", i);
    assert_int_equal(fclose(file), 0);
}

static void sleep_us(uint64_t us)
{
    nanosleep(&(struct timespec){ .tv_sec = (time_t)(us / 1000000),
                                  .tv_nsec = (long)(us % 1000000) * 1000 },
              NULL);
}

/* 0: it does not have its name yet. */
static pid_t guardian_of(pid_t weir)
{
    pid_t pids[64];
    int n = children_of(weir, pids, 64);

    for (int i = 0; i < n; i++) {
        char path[64];
        snprintf(path, sizeof(path), "/proc/%d/comm", (int)pids[i]);
        if (!strcmp(read_file(path), "weir-guardian\n"))
            return pids[i];
    }
    return 0;
}

/* ---- Ctrl-C, once, twice, thrice ------------------------------------------------------------------- */

static void test_the_first_interrupt_drains(void)
{
    int gate = gate_new("gate");
    pid_t pid;

    forget_pids();
    numbers("in", 5);
    pid = weir_start(WEIR("map", "-j2", "--results", "results", "--", WITH_GRANDCHILD), "in", "out",
                     "err");
    AWAIT_THAT(two_run());
    send_signal(pid, SIGINT);
    AWAIT_THAT(count_of("err", "starting no more commands") == 1);
    CHECK_EQUAL(waitpid(pid, NULL, WNOHANG), 0);
    gate_open(gate, 4);
    CHECK_EQUAL(weir_end(pid), 255);
    CHECK_EQUAL(count_lines_of("out"), 2);
    CHECK_EQUAL(count_of("out", "done "), 2);
    assert_string_equal(
        read_file("err"),
        "weir: starting no more commands; press Ctrl-C again to end those that run\n"
        "weir: stopped early: 3 tasks were not run\n");
    CHECK_EQUAL(count_lines_of("results"), 5);
    CHECK_EQUAL(count_of("results", "\"done\""), 2);
    CHECK_EQUAL(count_of("results", "\"not_run\""), 3);
    nothing_is_left();
    close(gate);
}

static void test_the_second_interrupt_ends_whole_process_groups(void)
{
    int gate = gate_new("gate");
    pid_t pid;

    forget_pids();
    numbers("in", 5);
    pid = weir_start(WEIR("map", "-j2", "--results", "results", "--", WITH_GRANDCHILD), "in", "out",
                     "err");
    AWAIT_THAT(two_run());
    send_signal(pid, SIGINT);
    CHECK(!is_gone(pid_in("grand1")) && !is_gone(pid_in("grand2")));
    send_signal(pid, SIGINT);
    CHECK_EQUAL(weir_end(pid), 255);
    CHECK_EQUAL(count_of("results", "\"halted\""), 2);
    CHECK_EQUAL(count_of("results", "\"signal\":15"), 2);
    CHECK_EQUAL(count_of("results", "\"not_run\""), 3);
    CHECK_EQUAL(count_of("err", "failed"), 0);
    CHECK_EQUAL(count_of("err", "stopped early: 2 commands were ended, 3 tasks were not run"), 1);
    nothing_is_left();
    close(gate);
}

/* Nothing was left to be started, so only what was ended tells that not all went well. */
static void test_commands_that_an_interrupt_has_ended_are_no_success(void)
{
    int gate = gate_new("gate");
    pid_t pid;

    forget_pids();
    numbers("in", 2);
    pid = weir_start(WEIR("map", "-j2", "--", WITH_GRANDCHILD), "in", "out", "err");
    AWAIT_THAT(two_run());
    send_signal(pid, SIGTERM);
    CHECK_EQUAL(weir_end(pid), 255);
    CHECK_EQUAL(count_of("err", "stopped early: 2 commands were ended\n"), 1);
    nothing_is_left();
    close(gate);
}

static void test_a_command_that_ignores_term_is_killed_after_the_grace(void)
{
    pid_t pid;
    weir_time began;
    int64_t took;

    unlink("pid1");
    numbers("in", 2);
    pid =
        weir_start(WEIR("map", "-j1", "--grace", "300ms", "--results", "results", "--", "sh", "-c",
                        "trap '' TERM; (sleep 1000; true) & echo $$ >pid$1; while :; do wait; done",
                        "sh", "{}"),
                   "in", "out", "err");
    AWAIT_THAT(pid_in("pid1"));
    send_signal(pid, SIGINT);
    began = weir_now();
    send_signal(pid, SIGINT);
    CHECK_EQUAL(weir_end(pid), 255);
    took = weir_now() - began;
    CHECK(took >= 300 * INT64_C(1000000));
    CHECK(took < 12 * ample_ns());
    CHECK_EQUAL(count_of("results", "\"signal\":9"), 1);
    nothing_is_left();
}

static void test_the_third_interrupt_kills_at_once(void)
{
    pid_t pid;

    unlink("pid1");
    numbers("in", 2);
    pid =
        weir_start(WEIR("map", "-j1", "--grace", "1h", "--", "sh", "-c",
                        "trap '' TERM; (sleep 1000; true) & echo $$ >pid$1; while :; do wait; done",
                        "sh", "{}"),
                   "in", "out", "err");
    AWAIT_THAT(pid_in("pid1"));
    send_signal(pid, SIGINT);
    send_signal(pid, SIGINT);
    CHECK(!is_gone(pid_in("pid1")));
    send_signal(pid, SIGINT);
    CHECK_EQUAL(weir_end(pid), 255);
    nothing_is_left();
}

static void test_term_and_hup_end_running_commands(void)
{
    int gate = gate_new("gate");

    numbers("in", 5);
    for (int i = 0; i < 2; i++) {
        pid_t pid;
        forget_pids();
        pid = weir_start(WEIR("map", "-j2", "--results", "results", "--", WITH_GRANDCHILD), "in",
                         "out", "err");
        AWAIT_THAT(two_run());
        send_signal(pid, i ? SIGHUP : SIGTERM);
        CHECK_EQUAL(weir_end(pid), 255);
        CHECK_EQUAL(count_of("results", "\"signal\":15"), 2);
        nothing_is_left();
    }
    close(gate);
}

static void test_signals_that_are_ignored_from_the_start_stay_ignored(void)
{
    static const char *const script = "trap '' HUP INT TERM; exec \"$0\" map -j2 -- sh -c 'echo $$ "
                                      ">pid{}; read x <gate; echo {}'";
    const char *const argv[] = { "/bin/sh", "-c", script, WEIR_COMMAND, NULL };
    int gate = gate_new("gate");
    pid_t pid;

    forget_pids();
    numbers("in", 2);
    pid = weir_start(argv, "in", "out", "err");
    AWAIT_THAT(pid_in("pid1") && pid_in("pid2"));
    kill(pid, SIGHUP);
    kill(pid, SIGINT);
    kill(pid, SIGTERM);
    gate_open(gate, 2);
    CHECK_EQUAL(weir_end(pid), 0);
    CHECK_EQUAL(count_lines_of("out"), 2);
    nothing_is_left();
    close(gate);
}

/* ---- interrupts while it waits for something -------------------------------------------------------- */

/* Whatever weir waits for, an interrupt is answered. `in` may be a pipe's name. */
static void interrupt_while_waiting(const char *const *argv, const char *in, int status)
{
    weir_time began;
    int64_t took;
    pid_t pid;

    unlink("pid1");
    pid = weir_start(argv, in, "out", "err");
    AWAIT_THAT(pid_in("pid1"));
    AWAIT_THAT(is_gone(pid_in("pid1")));
    began = weir_now();
    send_signal(pid, SIGINT);
    CHECK_EQUAL(weir_end(pid), status);
    took = weir_now() - began;
    CHECK(took < 16 * ample_ns());
    nothing_is_left();
}

static void test_an_interrupt_ends_the_wait_for_input(void)
{
    int input = gate_new("slow");

    CHECK_EQUAL(write(input, "1\n", 2), 2);
    interrupt_while_waiting(WEIR("map", "--", "sh", "-c", "echo $$ >pid1 # $1", "sh", "{}"), "slow",
                            255);
    close(input);
}

static void test_an_interrupt_ends_the_wait_for_a_start(void)
{
    numbers("in", 3);
    interrupt_while_waiting(
        WEIR("map", "--delay", "1h", "--", "sh", "-c", "echo $$ >pid1 # $1", "sh", "{}"), "in",
        255);
    interrupt_while_waiting(
        WEIR("map", "--rate", "1/h", "--", "sh", "-c", "echo $$ >pid1 # $1", "sh", "{}"), "in",
        255);
}

static void test_an_interrupt_ends_the_wait_for_another_attempt(void)
{
    numbers("in", 1);
    interrupt_while_waiting(WEIR("map", "--retries", "3", "--backoff", "1h", "--backoff-max", "1h",
                                 "--", "sh", "-c", "echo $$ >pid$1; exit 1", "sh", "{}"),
                            "in", 1);
    interrupt_while_waiting(WEIR("map", "--cool-code", "7", "--cool-down", "1h", "--", "sh", "-c",
                                 "echo $$ >pid$1; exit 7", "sh", "{}"),
                            "in", 1);
}

/* The reader waits for room, so it has not met the end of the file when the interrupt comes; but nothing is missing. */
static void test_an_interrupt_takes_nothing_from_a_file_that_is_used_up(void)
{
    for (int status = 0; status < 2; status++) {
        int gate = gate_new("gate");
        pid_t pid;

        unlink("pid1");
        write_file("in", status ? "1\n" : "0\n");
        pid = weir_start(WEIR("map", "-j1", "--max-wait", "0", "--", "sh", "-c",
                              "echo $$ >pid1; read x <gate; exit $1", "sh"),
                         "in", "out", "err");
        AWAIT_THAT(pid_in("pid1"));
        send_signal(pid, SIGINT);
        AWAIT_THAT(count_of("err", "starting no more commands") == 1);
        gate_open(gate, 1);
        CHECK_EQUAL(weir_end(pid), status);
        nothing_is_left();
        close(gate);
    }
}

/* Commands that end while the interrupt is taken ask for another attempt a moment too late. */
static void test_no_retry_slips_through_an_interrupt(void)
{
    struct luck luck = luck_of(1);

    numbers("in", 100);
    for (uint64_t i = 0; i < soak_times(30); i++) {
        pid_t pid =
            weir_start(WEIR("map", "-j4", "--retries", "3", "--backoff", "1h", "--backoff-max",
                            "1h", "--results", "results", "--", "/bin/false"),
                       "in", "out", "err");
        int status;
        sleep_us(1000 + luck_below(&luck, 20000));
        kill(pid, SIGINT);
        status = weir_end(pid);
        CHECK(status == 100 || status == 255 || status == 1000 + SIGINT);
        if (!CHECK(nothing_is_left()))
            break;
    }
}

/* The reader does not read, and does not go away. */
static void test_output_that_no_reader_takes_cannot_keep_it(void)
{
    int fd = gate_new("blocked");
    pid_t pid;

    unlink("pid1");
    numbers("in", 3);
    pid = weir_start(WEIR("map", "-j1", "--", "sh", "-c", "echo $$ >pid$1; seq 100000", "sh", "{}"),
                     "in", "blocked", "err");
    AWAIT_THAT(pid_in("pid1"));
    AWAIT_THAT(is_gone(pid_in("pid1")));
    send_signal(pid, SIGINT);
    send_signal(pid, SIGINT);
    send_signal(pid, SIGINT);
    CHECK_EQUAL(weir_end(pid), 255);
    nothing_is_left();
    close(fd);
}

/* Output of a command that the third interrupt has killed comes to be printed only then. */
static void test_output_that_no_reader_takes_cannot_come_too_late(void)
{
    int fd = gate_new("blocked");
    pid_t pid;

    unlink("pid1");
    numbers("in", 1);
    pid = weir_start(WEIR("map", "-j1", "--", "sh", "-c",
                          "trap '' TERM; seq 100000; echo $$ >pid$1; while :; do sleep 1000; done",
                          "sh", "{}"),
                     "in", "blocked", "err");
    AWAIT_THAT(pid_in("pid1"));
    send_signal(pid, SIGINT);
    send_signal(pid, SIGINT);
    send_signal(pid, SIGINT);
    CHECK_EQUAL(weir_end(pid), 255);
    nothing_is_left();
    close(fd);
}

/* ---- timeouts ------------------------------------------------------------------------------------- */

static void test_a_timeout_ends_whole_process_groups(void)
{
    numbers("in", 4);
    CHECK_EQUAL(weir_run(WEIR("map", "-j4", "--timeout", ample(), "--grace", "100ms", "--results",
                              "results", "--", "sh", "-c",
                              "[ $1 -gt 2 ] && trap '' TERM; (sleep 1000; true) & sleep 1000; wait",
                              "sh", "{}"),
                         "in"),
                4);
    CHECK_EQUAL(count_of("results", "\"timed_out\""), 4);
    CHECK_EQUAL(count_of("results", "\"signal\":15"), 2);
    nothing_is_left();
}

/* ---- kill -9 ---------------------------------------------------------------------------------------- */

static void test_killing_weir_kills_its_commands(void)
{
    int gate = gate_new("gate");
    pid_t pid, guardian;

    numbers("in", 5);
    for (int stopped = 0; stopped < 2; stopped++) {
        forget_pids();
        pid = weir_start(WEIR("map", "-j2", "--", WITH_GRANDCHILD), "in", "out", "err");
        AWAIT_THAT(two_run());
        AWAIT_THAT((guardian = guardian_of(pid)) > 0);
        if (stopped) {
            kill(-pid_in("pid1"), SIGSTOP);
            kill(pid, SIGSTOP);
            AWAIT_THAT(process_state(pid, NULL) == 'T');
        }
        kill(pid, SIGKILL);
        CHECK_EQUAL(weir_end(pid), 1000 + SIGKILL);
        nothing_is_left();
        CHECK(is_gone(guardian));
    }
    close(gate);
}

/* A signal that the terminal or a person sends to all of them does not end the guardian first. */
static void test_the_guardian_outlives_other_signals(void)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGUSR1, SIGPIPE };
    int gate = gate_new("gate");
    pid_t pid, guardian;

    forget_pids();
    numbers("in", 2);
    pid = weir_start(WEIR("map", "-j2", "--", WITH_GRANDCHILD), "in", "out", "err");
    AWAIT_THAT(two_run());
    AWAIT_THAT((guardian = guardian_of(pid)) > 0);
    for (size_t i = 0; guardian > 0 && i < sizeof(signals) / sizeof(*signals); i++)
        kill(guardian, signals[i]);
    CHECK(guardian_of(pid) == guardian);
    kill(pid, SIGKILL);
    weir_end(pid);
    nothing_is_left();
    close(gate);
}

static void test_without_its_guardian_weir_goes_on(void)
{
    int gate = gate_new("gate");
    pid_t pid, guardian;

    forget_pids();
    numbers("in", 3);
    pid =
        weir_start(WEIR("map", "-j2", "--", "sh", "-c", "echo $$ >pid$1; read x <gate", "sh", "{}"),
                   "in", "out", "err");
    AWAIT_THAT(pid_in("pid1") && pid_in("pid2"));
    AWAIT_THAT((guardian = guardian_of(pid)) > 0);
    if (guardian > 0) /* 0 would be ourselves */
        kill(guardian, SIGKILL);
    gate_open(gate, 3);
    CHECK_EQUAL(weir_end(pid), 0);
    nothing_is_left();
    close(gate);
}

static void test_killing_weir_at_full_speed_leaves_nothing(void)
{
    struct luck luck = luck_of(2);

    numbers("in", 2000);
    for (uint64_t i = 0; i < soak_times(100); i++) {
        pid_t pid = weir_start(WEIR("map", "-j8", "--", "/bin/true"), "in", "out", "err");
        sleep_us(luck_below(&luck, 8000));
        kill(pid, SIGKILL);
        CHECK_EQUAL(weir_end(pid), 1000 + SIGKILL);
        if (!CHECK(nothing_is_left()))
            break;
    }
}

static void test_killing_weir_while_commands_start_others_leaves_nothing(void)
{
    struct luck luck = luck_of(3);

    numbers("in", 200);
    for (uint64_t i = 0; i < soak_times(40); i++) {
        pid_t pid =
            weir_start(WEIR("map", "-j8", "--", "sh", "-c",
                            "sleep 1000 & [ $((WEIR_SEQ % 3)) = 0 ] && sleep 1000; kill $!"),
                       "in", "out", "err");
        sleep_us(2000 + luck_below(&luck, 30000));
        kill(pid, SIGKILL);
        CHECK_EQUAL(weir_end(pid), 1000 + SIGKILL);
        if (!CHECK(nothing_is_left()))
            break;
    }
}

/* ---- orphans ---------------------------------------------------------------------------------------- */

/* As weir_run, with weir as the process to which orphans come. */
static pid_t start_as_subreaper(const char *const *argv)
{
    pid_t pid;

    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* outlasts exec */
    redirect(0, "in");
    redirect(1, "out");
    redirect(2, "err");
    execv(argv[0], (char *const *)argv);
    _exit(127);
}

static void test_orphans_that_come_to_it_are_reaped(void)
{
    int gate = gate_new("gate"), orphans = gate_new("orphans");
    pid_t pid, orphan, parent = 0;

    unlink("grand1");
    numbers("in", 1);
    pid = start_as_subreaper(
        WEIR("map", "--", "sh", "-c",
             "(sh -c 'echo $$ >grand$1; read x <orphans' sh $1 &); read x <gate", "sh", "{}"));
    AWAIT_THAT((orphan = pid_in("grand1")) > 0);
    AWAIT_THAT(process_state(orphan, &parent) && parent == pid);
    gate_open(orphans, 1);
    AWAIT_THAT(process_state(orphan, NULL) == 0); /* not even a zombie */
    gate_open(gate, 1);
    CHECK_EQUAL(weir_end(pid), 0);
    nothing_is_left();
    close(gate);
    close(orphans);
}

/* A process that reaps orphans must not reap commands: their exit status would be lost. */
static void test_reaping_orphans_does_not_disturb_commands(void)
{
    numbers("in", 300);
    CHECK_EQUAL(weir_end(start_as_subreaper(
                    WEIR("map", "-j8", "--results", "results", "--", "sh", "-c",
                         "(/bin/true &); (sh -c '/bin/true & exit 3' &); exit $((WEIR_SEQ % 10 == "
                         "0))"))),
                30);
    CHECK_EQUAL(count_of("results", "\"exit\":1,"), 30);
    CHECK_EQUAL(count_of("results", "\"exit\":0,"), 270);
    nothing_is_left();
}

static bool may_make_pid_namespaces(void)
{
    const char *const argv[] = { "/bin/sh", "-c",
                                 "unshare --pid --fork --mount-proc true 2>/dev/null", NULL };

    write_file("in", "");
    return weir_run(argv, "in") == 0;
}

/* As in a container. The last command waits until there is no zombie but, for a moment, itself. */
static void test_the_first_process_reaps_orphans(void)
{
    const char *const argv[] = {
        "/bin/sh", "-c",
        "exec unshare --pid --fork --mount-proc \"$0\" map -j1 --timeout 300s -- sh -c '"
        "if [ {} -lt 20 ]; then (/bin/true &); (sh -c \"exit 1\" &); exit; fi\n"
        "while grep -qs \"^State:.Z\" /proc/[0-9]*/status; do :; done; echo $PPID'",
        WEIR_COMMAND, NULL
    };

    if (!may_make_pid_namespaces()) {
        print_message("no PID namespace can be made here: not tested\n");
        skip();
    }
    numbers("in", 20);
    CHECK_EQUAL(weir_run(argv, "in"), 0);
    assert_string_equal(read_file("out"), "1\n"); /* weir is the first process there */
    nothing_is_left();
}

/* ---- at random moments ------------------------------------------------------------------------------ */

static void test_interrupts_at_random_moments_leave_nothing(void)
{
    struct luck luck = luck_of(4);

    numbers("in", 300);
    for (uint64_t i = 0; i < soak_times(60); i++) {
        pid_t pid = weir_start(WEIR("map", "-j6", "--grace", "20ms", "--results", "results", "--",
                                    "sh", "-c",
                                    "[ $((WEIR_SEQ % 4)) = 0 ] && trap '' TERM\n"
                                    "(sleep 1000; true) & (sleep 1000; true) &\n"
                                    "[ $((WEIR_SEQ % 2)) = 0 ] && wait; kill -9 0"),
                               "in", "out", "err");
        int status;
        sleep_us(luck_below(&luck, 40000));
        for (int times = 0; times < 3; times++) {
            kill(pid, SIGINT);
            sleep_us(luck_below(&luck, 5000));
        }
        kill(pid, SIGTERM);
        status = weir_end(pid);
        CHECK(status <= 101 || status == 255 || status == 1000 + SIGINT ||
              status == 1000 + SIGTERM);
        if (!CHECK(nothing_is_left()))
            break;
    }
}

static void test_a_reader_that_goes_away_leaves_nothing(void)
{
    const char *const argv[] = { "/bin/sh", "-c",
                                 "seq 1000 | \"$0\" map -j4 -- sh -c 'echo $1; (sleep 1000; true) "
                                 "& [ $1 != 7 ] || sleep 1000; "
                                 "kill -9 0' sh | head -n 1",
                                 WEIR_COMMAND, NULL };

    numbers("in", 1);
    for (uint64_t i = 0; i < soak_times(60); i++) {
        CHECK_EQUAL(weir_run(argv, "in"), 0);
        CHECK_EQUAL(count_lines_of("out"), 1);
        assert_string_equal(read_file("err"), "");
        if (!CHECK(nothing_is_left()))
            break;
    }
}

/* ---- the end ----------------------------------------------------------------------------------------- */

/* No moment's patience here: what waits for weir finds nothing of it. */
static void test_nothing_of_weir_outlasts_it(void)
{
    numbers("in", 20);
    for (uint64_t i = 0; i < soak_times(40); i++) {
        CHECK_EQUAL(weir_run(WEIR("map", "-j4", "--", "/bin/true"), "in"), 0);
        if (!CHECK(no_children()))
            break;
    }
}

static void test_weir_outlives_its_parent(void)
{
    const char *const argv[] = {
        "/bin/sh", "-c",
        "\"$0\" map -j2 -- sh -c 'echo $$ >pid$1; read x <gate; echo $1' sh <in & sleep 0",
        WEIR_COMMAND, NULL
    };
    int gate = gate_new("gate");

    forget_pids();
    numbers("in", 2);
    CHECK_EQUAL(weir_run(argv, "in"), 0);
    AWAIT_THAT(pid_in("pid1") && pid_in("pid2"));
    gate_open(gate, 2);
    AWAIT_THAT(count_lines_of("out") == 2);
    nothing_is_left();
    close(gate);
}

/* ---- options by chance ------------------------------------------------------------------------------- */

struct words {
    const char *word[64];
    int count;
};

static void add(struct words *words, const char *word)
{
    words->word[words->count++] = word;
    words->word[words->count] = NULL;
}

static void add_two(struct words *words, const char *name, const char *value)
{
    add(words, name);
    add(words, value);
}

static void add_some_options(struct words *words, struct luck *luck)
{
    static const char *const jobs[] = { "1", "2", "3", "8", "50" };
    static const char *const ahead[] = { "0", "1", "7", "1000" };
    static const char *const single[] = { "--line-buffer", "-k", "--stdin", "--tag" };

    add_two(words, "-j", jobs[luck_below(luck, 5)]);
    bool grouped = luck_below(luck, 2);
    if (grouped)
        add_two(words, "--group-by", luck_below(luck, 2) ? "{}" : "/(.)$/");
    if (luck_below(luck, 3) == 0)
        add_two(words, "-J", jobs[luck_below(luck, 3)]);
    if (luck_below(luck, 3) == 0)
        add_two(words, "--max-wait", ahead[luck_below(luck, 4)]);
    if (luck_below(luck, 3) == 0) {
        add_two(words, "--retries", ahead[luck_below(luck, 2)]);
        add_two(words, "--backoff", luck_below(luck, 2) ? "0.1ms" : "3ms");
    }
    if (luck_below(luck, 4) == 0)
        add_two(words, "--timeout", luck_below(luck, 2) ? "1ms" : "5s");
    if (luck_below(luck, 4) == 0)
        add_two(words, "--delay", "0.2ms");
    if (luck_below(luck, 4) == 0)
        add_two(words, "--rate", grouped && luck_below(luck, 2) ? "1=500/s" : "*=2000/s");
    if (grouped && luck_below(luck, 4) == 0)
        add_two(words, "--limit", "[1-4]=1");
    if (grouped && luck_below(luck, 4) == 0)
        add_two(words, "--weight", "[1-4]=3");
    if (luck_below(luck, 4) == 0) {
        add_two(words, "--cool-code", "1");
        add_two(words, "--cool-down", "0.1ms");
    }
    if (luck_below(luck, 2))
        add(words, single[luck_below(luck, 4)]);
    else if (luck_below(luck, 4) == 0)
        add_two(words, "--files", "files");
    if (luck_below(luck, 3) == 0)
        add_two(words, "--progress", luck_below(luck, 2) ? "always" : "never");
}

static void add_a_command(struct words *words, struct luck *luck)
{
    uint64_t which = luck_below(luck, 6);
    bool cools = false;

    for (int i = 0; i < words->count; i++)
        cools |= !strcmp(words->word[i], "--cool-code");
    add(words, "--");
    if (which == 0 && !cools) {
        add(words, "/bin/false");
    } else if (which == 1) {
        add_two(words, "sh", "-c");
        add(words, "echo $WEIR_SLOT {}; exit $((WEIR_SEQ % 3 == 0 && WEIR_ATTEMPT == 1))");
    } else if (which == 2 && !cools) {
        add_two(words, "cat", "in");
    } else if (which == 3) {
        add(words, "./missing{seq}");
    } else {
        add(words, "/bin/true");
    }
}

static void tell_words(const struct words *words)
{
    for (int i = 0; i < words->count; i++)
        printf(" '%s'", words->word[i]);
    printf("\n");
}

static void test_any_options_end_with_a_result_per_record(void)
{
    struct luck luck = luck_of(5);

    for (uint64_t i = 0; i < soak_times(100); i++) {
        struct words words = { .count = 0 };
        int records = (int)luck_below(&luck, 25), status;
        int failed = atomic_load(&checks_failed);

        numbers("in", records);
        add(&words, WEIR_COMMAND);
        add_two(&words, "map", "--results");
        add(&words, "results");
        add_some_options(&words, &luck);
        add_a_command(&words, &luck);
        CHECK_EQUAL(system("rm -rf files"), 0);
        status = weir_run(words.word, "in");
        CHECK(status <= records);
        CHECK_EQUAL(count_lines_of("results"), records);
        nothing_is_left();
        if (atomic_load(&checks_failed) > failed) {
            printf("run %d, %d records, status %d:", (int)i, records, status);
            tell_words(&words);
            break;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_first_interrupt_drains),
        TEST(test_the_second_interrupt_ends_whole_process_groups),
        TEST(test_commands_that_an_interrupt_has_ended_are_no_success),
        TEST(test_a_command_that_ignores_term_is_killed_after_the_grace),
        TEST(test_the_third_interrupt_kills_at_once),
        TEST(test_term_and_hup_end_running_commands),
        TEST(test_signals_that_are_ignored_from_the_start_stay_ignored),
        TEST(test_an_interrupt_ends_the_wait_for_input),
        TEST(test_an_interrupt_ends_the_wait_for_a_start),
        TEST(test_an_interrupt_ends_the_wait_for_another_attempt),
        TEST(test_an_interrupt_takes_nothing_from_a_file_that_is_used_up),
        TEST(test_no_retry_slips_through_an_interrupt),
        TEST(test_output_that_no_reader_takes_cannot_keep_it),
        TEST(test_output_that_no_reader_takes_cannot_come_too_late),
        TEST(test_a_timeout_ends_whole_process_groups),
        TEST(test_killing_weir_kills_its_commands),
        TEST(test_the_guardian_outlives_other_signals),
        TEST(test_without_its_guardian_weir_goes_on),
        TEST(test_killing_weir_at_full_speed_leaves_nothing),
        TEST(test_killing_weir_while_commands_start_others_leaves_nothing),
        TEST(test_orphans_that_come_to_it_are_reaped),
        TEST(test_reaping_orphans_does_not_disturb_commands),
        TEST(test_the_first_process_reaps_orphans),
        TEST(test_interrupts_at_random_moments_leave_nothing),
        TEST(test_a_reader_that_goes_away_leaves_nothing),
        TEST(test_nothing_of_weir_outlasts_it),
        TEST(test_weir_outlives_its_parent),
        TEST(test_any_options_end_with_a_result_per_record),
    };

    seed_init();
    return cmocka_run_group_tests(tests, work_begin, work_end);
}
