/* weir map: what happens to each command, from its environment to its end.
 * SPDX-License-Identifier: MIT */
#include "command/ample.h"
#include "command/map_results.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- environment --------------------------------------------------------------------------------- */

static void test_commands_know_their_group_number_slot_and_attempt(void)
{
    assert_ran(MAP("x\ny\n", "-j1", "-g", "{}", "--", "sh", "-c",
                   "echo $WEIR_KEY $WEIR_SEQ $WEIR_SLOT $WEIR_ATTEMPT $1", "sh", "{}"),
               0, "x 1 1 1 x\ny 2 1 1 y\n", "");
}

static void test_a_weir_inside_weir_sets_its_own(void)
{
    const struct ran *r = SCRIPT("a\n", "WEIR_KEY=outer WEIR_COOL_FD=9 weir map -- sh -c "
                                        "'echo \"$WEIR_KEY,${WEIR_COOL_FD-unset} $1\"' sh");

    assert_ran(r, 0, ",unset a\n", "");
}

static void test_the_rest_of_the_environment_is_passed_on(void)
{
    const struct ran *r = sound(command_run(&(struct command){
        .argv = WORDS(WEIR_COMMAND, "map", "--", "sh", "-c", "echo $MINE $1", "sh", "{}"),
        .input = "a\n",
        .env = WORDS("MINE=yes"),
    }));

    assert_ran(r, 0, "yes a\n", "");
}

static void test_commands_inherit_no_descriptor_of_ours(void)
{
    assert_ran(MAP("a\n", "--cool-code", "9", "--", "sh", "-c", "echo $1 >&2; ls /proc/self/fd",
                   "sh", "{}"),
               0, "0\n1\n2\n3\n4\n", "a\n"); /* 3 is the cool-down's, 4 is ls's own */
    assert_ran(MAP("a\n", "--", "sh", "-c", "echo $1 >&2; ls /proc/self/fd", "sh", "{}"), 0,
               "0\n1\n2\n3\n", "a\n");
}

/* Which a shell is started for, with all its words once more. */
static void test_a_script_without_an_interpreter_may_have_many_words(void)
{
    assert_ran(SCRIPT("a\n", "echo 'echo $#' > script; chmod +x script; "
                             "weir map -- ./script $(seq 20000)"),
               0, "20001\n", "");
}

static void test_commands_have_the_limit_of_descriptors_that_we_had(void)
{
    assert_ran(SCRIPT("a\n", "ulimit -Sn 128; weir map -j100 --shell -- 'ulimit -n; : {}'"), 0,
               "128\n", "");
}

static void test_too_few_descriptors_make_it_slower_only(void)
{
    const struct ran *r =
        SCRIPT(NULL, "ulimit -n 64; seq 100 | weir map -j40 -- sh -c 'sleep 0.02; echo' | wc -l");

    assert_int_equal(r->status, 0);
    assert_string_equal(r->out, "100\n");
    assert_non_null(strstr(
        r->err, "no file descriptor left (limit 64): raise it with `ulimit -n`, or lower -j"));
}

static void test_each_command_leads_a_process_group(void)
{
    assert_ran(MAP("a\n", "--", "sh", "-c",
                   "x=$1; set -- $(cat /proc/$$/stat); [ $5 = $$ ] && echo $x", "sh", "{}"),
               0, "a\n", "");
}

/* Of a line of /proc/self/status: which signals are blocked, or ignored, in this process. */
static unsigned long long own_signals(const char *name)
{
    FILE *file = fopen("/proc/self/status", "r");
    unsigned long long signals = 0;
    char line[256];

    while (file && fgets(line, sizeof(line), file))
        if (!strncmp(line, name, strlen(name)))
            signals = strtoull(line + strlen(name), NULL, 16);
    if (file)
        fclose(file);
    return signals;
}

/* The ones we were started with; but those by which a terminal stops processes in its background are ignored: no process
 * would make them go on. */
static void test_commands_have_usual_signals(void)
{
    const unsigned long long classic =
        0x7fffffff; /* the C library has plans of its own for 32 and 33 */
    unsigned long long terminal = 1ULL << (SIGTTIN - 1) | 1ULL << (SIGTTOU - 1);
    unsigned long long ours = 1ULL << (SIGPIPE - 1) | 1ULL << (SIGCHLD - 1); /* set back for them */
    unsigned long long blocked = 0, ignored = 0;
    const struct ran *r =
        MAP("a\n", "--", "sh", "-c", "grep -E '^Sig(Blk|Ign)' /proc/self/status", "{}");

    assert_status(r, 0);
    assert_int_equal(sscanf(r->out, "SigBlk: %llx SigIgn: %llx", &blocked, &ignored), 2);
    assert_int_equal(blocked & classic, own_signals("SigBlk:") & classic);
    assert_int_equal(ignored & classic, ((own_signals("SigIgn:") & ~ours) | terminal) & classic);
}

static void test_failures_are_seen_even_if_child_signals_were_ignored(void)
{
    const struct ran *r = sound(command_run(&(struct command){
        .argv = WORDS("/bin/bash", "-c", "trap '' CHLD; exec weir map -- sh -c 'exit 3'"),
        .input = "a\n",
    }));

    assert_status(r, 1);
    assert_contains(r->err, "task 1 exited with 3\n");
}

/* ---- directory ----------------------------------------------------------------------------------- */

static void test_cwd_is_where_commands_run(void)
{
    mkdir(scratch("sub"), 0777);
    assert_ran(MAP("sub\n", "--cwd", "{}", "--", "sh", "-c", "basename $PWD; echo {seq}", "{}"), 0,
               "sub\n1\n", "");
    assert_ran(MAP("x\n", "--cwd", "/", "--", "sh", "-c", "pwd", "{}"), 0, "/\n", "");
}

static void test_a_relative_command_is_looked_up_in_cwd(void)
{
    mkdir(scratch("there"), 0777);
    scratch_write("there/tool", "#!/bin/sh\necho here $1\n", 0);
    chmod(scratch("there/tool"), 0777);
    assert_ran(MAP("there\n", "--cwd", "{}", "--", "./tool"), 0, "here there\n", "");
}

static void test_a_directory_that_is_not_there_is_named(void)
{
    const struct ran *r = MAP("nowhere\n/\n", "--cwd", "{}", "--", "echo");

    assert_status(r, 1);
    assert_string_equal(r->out, "/\n");
    assert_contains(r->err, "weir: task 1: nowhere: No such file or directory\n");
    assert_ran(MAP("", "--cwd"), 255, "",
               "weir: --cwd needs a value: --cwd DIR\nTry 'weir map --help'.\n");
}

/* ---- exit status --------------------------------------------------------------------------------- */

static void test_success_is_zero(void)
{
    assert_ran(MAP("a\nb\n", "--", "true"), 0, "", "");
}

static void test_the_status_is_how_many_failed(void)
{
    assert_ran(MAP("0\n3\n0\n7\n3\n", "-j1", "--", "sh", "-c", "exit $1", "sh", "{}"), 3, "",
               "weir: 3 of 5 failed; the first: task 2 exited with 3\n");
}

static char *lines(int count)
{
    char *text = malloc((size_t)count * 8 + 1), *at = text;

    assert_non_null(text);
    for (int i = 1; i <= count; i++)
        at += sprintf(at, "%d\n", i);
    return text;
}

static void test_one_hundred_failures_are_100_and_more_are_101(void)
{
    char *text = lines(101);

    assert_status(MAP(text, "--", "false"), 101);
    text[strlen(text) - 4] = 0;
    assert_status(MAP(text, "--", "false"), 100);
    free(text);
}

static void test_a_signal_is_a_failure_and_is_named(void)
{
    assert_ran(MAP("a\n", "--", "sh", "-c", "kill -9 $$"), 1, "",
               "weir: 1 of 1 failed; the first: task 1 was ended by signal 9\n");
}

static void test_a_command_that_is_not_there(void)
{
    assert_ran(MAP("a\n", "--", "no-such-command"), 127, "",
               "weir: no-such-command: command not found\n");
    assert_ran(MAP("a\n", "--", "./no/such"), 127, "",
               "weir: ./no/such: No such file or directory\n");
    assert_ran(MAP("a\n", "--", ""), 127, "", "weir: : command not found\n");
    assert_status(SCRIPT("a\n", "LC_ALL=C weir map -- no-such-command"), 127);
}

static void test_a_command_that_cannot_be_executed(void)
{
    scratch_write("plain", "#!/bin/sh\n", 0);
    chmod(scratch("plain"), 0644);
    assert_ran(MAP("a\n", "--", "./plain"), 126, "", "weir: ./plain: Permission denied\n");
    assert_ran(MAP("a\n", "--", "/"), 126, "", "weir: /: Permission denied\n");
}

static void test_commands_that_vary_fail_one_by_one(void)
{
    const struct ran *r = MAP("no-such-command\ntrue\n", "--results", "vary", "--", "{}");
    static struct results results;

    assert_status(r, 1);
    assert_contains(r->err, "weir: task 1: no-such-command: No such file or directory\n");
    read_results(&results, "vary");
    assert_string_equal(text_of(&results, 1, "reason"), "cannot_run");
    assert_number(&results, 1, "exit", 127);
    assert_string_equal(text_of(&results, 2, "reason"), "done");
    free(results.text);
}

static void test_a_script_without_a_first_line_is_run_by_a_shell(void)
{
    scratch_write("bare", "echo bare $1\n", 0);
    chmod(scratch("bare"), 0755);
    assert_ran(MAP("a\n", "--", "./bare"), 0, "bare a\n", "");
}

/* ---- time ---------------------------------------------------------------------------------------- */

static void test_a_timeout_ends_the_command(void)
{
    const struct ran *r = MAP("1000\n0\n", "--timeout", ample(), "--", "sleep");

    assert_ran(r, 1, "", "weir: 1 of 2 failed; the first: task 1 exceeded --timeout\n");
}

static void test_a_command_that_ignores_term_is_killed_after_grace_with_all_it_started(void)
{
    const struct ran *r =
        MAP("a\n", "--timeout", ample(), "--grace", "100ms", "--results", "deaf", "--", "sh", "-c",
            "trap '' TERM; sleep 1000 & echo $1; sleep 1000; wait", "sh", "{}");
    static struct results results;

    assert_status(r, 1);
    read_results(&results, "deaf");
    assert_string_equal(text_of(&results, 1, "reason"), "timed_out");
    assert_number(&results, 1, "signal", SIGKILL);
    assert_true(number(&results, 1, "ended") - number(&results, 1, "started") >= 0.4);
    free(results.text);
}

static void test_output_of_a_command_before_its_timeout_is_printed(void)
{
    const struct ran *r =
        MAP("a\n", "--timeout", ample(), "--", "sh", "-c", "echo $1; exec sleep 1000", "sh", "{}");

    assert_status(r, 1);
    assert_string_equal(r->out, "a\n");
}

static void test_a_command_may_use_its_grace(void)
{
    const struct ran *r =
        MAP("a\n", "--timeout", ample(), "--grace", "1000s", "--", "sh", "-c",
            "trap 'echo bye $1; exit' TERM; while :; do sleep 0.01; done", "sh", "{}");

    assert_status(r, 1);
    assert_string_equal(r->out, "bye a\n");
}

static void test_delay_keeps_starts_apart(void)
{
    static struct results results;

    assert_status(MAP("1\n2\n3\n4\n", "-j4", "--delay", "50ms", "--results", "delay", "--", "true"),
                  0);
    read_results(&results, "delay");
    for (size_t a = 1; a <= 4; a++)
        for (size_t b = 1; b < a; b++) {
            double apart = number(&results, a, "started") - number(&results, b, "started");
            assert_true((apart < 0 ? -apart : apart) >= 0.04);
        }
    free(results.text);
}

/* ---- retries ------------------------------------------------------------------------------------- */

static void test_a_failed_command_is_tried_again(void)
{
    static struct results results;

    assert_ran(MAP("a\n", "--retries", "5", "--backoff", "1ms", "--results", "retries", "--", "sh",
                   "-c", "echo $1 $WEIR_ATTEMPT; [ $WEIR_ATTEMPT = 3 ]", "sh", "{}"),
               0, "a 3\n", ""); /* what the last attempt wrote */
    read_results(&results, "retries");
    assert_number(&results, 1, "attempts", 3);
    assert_string_equal(text_of(&results, 1, "reason"), "done");
    free(results.text);
}

static void test_retries_are_so_many_and_no_more(void)
{
    const struct ran *r = MAP("a\n", "--retries", "2", "--backoff", "1ms", "--", "sh", "-c",
                              "echo $WEIR_ATTEMPT $1; exit 1", "sh", "{}");

    assert_status(r, 1);
    assert_string_equal(r->out, "3 a\n");
}

static void test_without_retries_there_is_one_attempt(void)
{
    const struct ran *r = MAP("a\n", "--", "sh", "-c", "echo $WEIR_ATTEMPT $1; exit 1", "sh", "{}");

    assert_status(r, 1);
    assert_string_equal(r->out, "1 a\n");
}

/* Attempts note the time; 100 ms, 200 ms, 200 ms. */
static void test_backoff_doubles_up_to_its_maximum(void)
{
    const char *at;
    double t[4];

    assert_status(MAP("a\n", "--retries", "3", "--backoff", "100ms", "--backoff-max", "200ms", "--",
                      "sh", "-c", "date +%s.%N >>times; exit 1", "{}"),
                  1);
    at = scratch_read("times");
    assert_non_null(at);
    for (int i = 0; i < 4; i++) {
        char *end;
        t[i] = strtod(at, &end);
        at = end;
    }
    assert_true(t[1] - t[0] >= 0.09);
    assert_true(t[2] - t[1] >= 0.19);
    assert_true(t[3] - t[2] >= 0.19);
    assert_true(t[3] - t[0] < 15);
}

static void test_others_run_while_one_waits_for_its_retry(void)
{
    assert_ran(MAP("first\nsecond\n", "-j1", "--retries", "1", "--backoff", "200ms", "--", "sh",
                   "-c", "[ $1 = second ] || [ $WEIR_ATTEMPT = 2 ] && echo $1", "sh", "{}"),
               0, "second\nfirst\n", "");
}

static void test_an_attempt_that_ran_out_of_time_is_tried_again(void)
{
    assert_ran(MAP("a\n", "--timeout", ample(), "--retries", "1", "--backoff", "1ms", "--", "sh",
                   "-c", "[ $WEIR_ATTEMPT = 2 ] || exec sleep 1000; echo $1", "sh", "{}"),
               0, "a\n", "");
}

/* ---- cooling down -------------------------------------------------------------------------------- */

static void test_a_cool_code_pauses_the_group_for_as_long_as_the_command_says(void)
{
    static struct results results;

    assert_status(MAP("x 1\nx 2\ny 3\n", "-j1", "-g", "1", "--cool-code", "75", "--results", "cool",
                      "--", "sh", "-c",
                      "date +%s.%N >>cool.$1; [ $2 = 1 ] && [ $WEIR_ATTEMPT = 1 ] || exit 0; "
                      "echo 400ms >&$WEIR_COOL_FD; exit 75",
                      "sh", "{1}", "{2}"),
                  0);
    read_results(&results, "cool");
    assert_number(&results, 1, "attempts", 2);
    assert_string_equal(text_of(&results, 1, "reason"), "done");
    /* the whole group waited, another did not */
    assert_true(number(&results, 2, "started") - number(&results, 1, "queued") >= 0.39);
    assert_true(number(&results, 1, "started") - number(&results, 1, "queued") >= 0.39);
    assert_true(number(&results, 3, "started") < number(&results, 1, "started"));
    assert_true(number(&results, 3, "started") < number(&results, 2, "started"));
    free(results.text);
}

static void test_cool_down_is_how_long_if_the_command_does_not_say(void)
{
    static struct results results;

    assert_status(MAP("a\n", "--cool-code", "75", "--cool-down", "300ms", "--results", "cool2",
                      "--", "sh", "-c", "[ $WEIR_ATTEMPT = 2 ] || exit 75", "{}"),
                  0);
    read_results(&results, "cool2");
    assert_true(number(&results, 1, "started") - number(&results, 1, "queued") >= 0.29);
    assert_true(number(&results, 1, "ended") - number(&results, 1, "queued") < 8); /* not 10 s */
    free(results.text);
}

/* Two commands ask to slow down: the longer time counts, whichever speaks last. */
static void test_a_short_cool_down_does_not_end_a_long_one(void)
{
    static struct results results;

    assert_status(MAP("1\n2\n", "-j2", "--cool-code", "75", "--results", "cool3", "--", "sh", "-c",
                      "[ $WEIR_ATTEMPT = 1 ] || exit 0; [ $1 = 1 ] && echo 1s >&3 && exit 75; "
                      "sleep 0.3; echo 1ms >&3; exit 75",
                      "sh", "{}"),
                  0);
    read_results(&results, "cool3");
    assert_true(number(&results, 1, "started") - number(&results, 1, "queued") >= 0.99);
    assert_true(number(&results, 2, "started") - number(&results, 1, "queued") >= 0.99);
    free(results.text);
}

static void test_text_that_is_no_duration_is_said_and_the_option_counts(void)
{
    const struct ran *r =
        MAP("a\n", "--cool-code", "75", "--cool-down", "1ms", "--", "sh", "-c",
            "[ $WEIR_ATTEMPT = 2 ] || { echo soon >&$WEIR_COOL_FD; exit 75; }", "{}");

    assert_status(r, 0);
    assert_contains(r->err, "weir: task 1: \"soon\" on descriptor 3 is not a duration");
}

static void test_another_exit_code_does_not_cool(void)
{
    assert_status(MAP("a\n", "--cool-code", "75", "--", "sh", "-c", "exit 74", "{}"), 1);
}

/* ---- halting ------------------------------------------------------------------------------------- */

static void test_halt_soon_starts_nothing_more(void)
{
    const struct ran *r =
        MAP("1\n2\n3\n4\n5\n6\n", "-j1", "-k", "--halt", "soon,fail=2", "--max-wait", "1", "--",
            "sh", "-c", "echo $1; [ $1 != 2 ] && [ $1 != 3 ]", "sh", "{}");

    assert_status(r, 2);
    assert_string_equal(r->out, "1\n2\n3\n");
    assert_contains(r->err, "weir: stopped early");
}

static void test_halt_soon_lets_running_commands_run(void)
{
    const struct ran *r =
        MAP("fail\nslow\n3\n4\n", "-j2", "--halt", "soon", "--results", "soon", "--", "sh", "-c",
            "case $1 in fail) until [ -e soon.runs ]; do :; done; exit 1;; "
            "slow) touch soon.runs; sleep 0.2; echo slow;; *) echo $1;; esac",
            "sh", "{}");
    static struct results results;

    assert_status(r, 1);
    assert_contains(r->out, "slow\n");
    read_results(&results, "soon");
    assert_string_equal(text_of(&results, 2, "reason"), "done");
    free(results.text);
}

static void test_halt_now_ends_running_commands(void)
{
    const struct ran *r =
        MAP("fail\n1000\n", "-j2", "--halt", "now,fail=1", "--results", "now", "--", "sh", "-c",
            "if [ $1 = fail ]; then until [ -e now.runs ]; do :; done; exit 1; fi; "
            "touch now.runs; exec sleep $1",
            "sh", "{}");
    static struct results results;

    assert_status(r, 1); /* the other did not fail: it was ended */
    assert_string_equal(r->err, "weir: 1 of 2 failed; the first: task 1 exited with 1\n"
                                "weir: stopped early: 1 command was ended\n");
    read_results(&results, "now");
    assert_string_equal(text_of(&results, 1, "reason"), "failed");
    assert_string_equal(text_of(&results, 2, "reason"), "halted");
    assert_number(&results, 2, "signal", SIGTERM);
    free(results.text);
}

static void test_halt_now_kills_commands_that_ignore_term(void)
{
    const struct ran *r =
        MAP("fail\nx\n", "-j2", "--grace", "200ms", "--halt", "now", "--", "sh", "-c",
            "if [ $1 = fail ]; then until [ -e deaf.runs ]; do :; done; exit 1; fi; "
            "trap '' TERM; sleep 1000 & touch deaf.runs; sleep 1000; wait",
            "sh", "{}");

    assert_status(r, 1);
}

/* A command that takes the signal, tidies up and says so by its exit status has not failed either. */
static void test_halt_now_counts_no_command_that_obeys(void)
{
    const struct ran *r =
        MAP("fail\n1\n2\n", "-j3", "--halt", "now", "--results", "obey", "--", "sh", "-c",
            "if [ $1 = fail ]; then until [ -e obey.1 ] && [ -e obey.2 ]; do :; done; exit 9; fi; "
            "exec 2>/dev/null; trap 'exit 3' TERM; touch obey.$1; while :; do sleep 0.01; done",
            "sh", "{}");
    static struct results results;

    assert_status(r, 1);
    assert_string_equal(r->err, "weir: 1 of 3 failed; the first: task 1 exited with 9\n"
                                "weir: stopped early: 2 commands were ended\n");
    read_results(&results, "obey");
    assert_string_equal(text_of(&results, 2, "reason"), "halted");
    assert_number(&results, 2, "exit", 3);
    free(results.text);
}

static void test_halt_at_a_share(void)
{
    char *text = lines(50);
    const struct ran *r =
        MAP(text, "-j1", "--max-wait", "1", "--halt", "soon,fail=50%", "--", "sh", "-c",
            "[ $1 -le 4 ]", "sh", "{}"); /* 4 are fine, and 4 of 8 is half */

    assert_status(r, 4);
    assert_contains(r->err, "weir: 4 of 8 failed; the first: task 5 exited with 1\n");
    free(text);
}

static void test_halt_at_a_share_waits_for_three_failures(void)
{
    const struct ran *r = MAP("1\n2\n3\n4\n", "-j1", "--max-wait", "1", "--halt", "soon,fail=1%",
                              "--", "sh", "-c", "[ $1 = 2 ]", "sh", "{}");

    assert_status(r, 3);
    assert_contains(r->err, "weir: 3 of 4 failed");
}

static void test_records_read_but_not_run_are_in_the_results(void)
{
    static struct results results;

    assert_status(MAP("1\n2\n3\n", "-j1", "--halt", "soon", "--results", "notrun", "--", "sh", "-c",
                      "exit 1", "{}"),
                  1);
    read_results(&results, "notrun");
    for (size_t i = 2; i <= results.count; i++) {
        assert_string_equal(text_of(&results, i, "reason"), "not_run");
        assert_number(&results, i, "attempts", 0);
        assert_number(&results, i, "started", -1);
    }
    free(results.text);
}

/* ---- what is left behind ------------------------------------------------------------------------- */

static void test_a_background_process_that_holds_the_pipe_does_not_hold_us(void)
{
    const struct ran *r = command_run(&(struct command){
        .argv = WORDS(WEIR_COMMAND, "map", "--", "sh", "-c", "sleep 1000 & echo $1", "sh", "{}"),
        .input = "a\nb\n",
        .leaves = true,
    });

    assert_false(r->late);
    assert_status(r, 0);
    assert_true(r->out_length == 4);
}

static void test_a_command_that_closes_its_output_runs_on(void)
{
    const struct ran *r =
        MAP("a\n", "--", "sh", "-c", "echo $1; exec >&- 2>&-; sleep 0.1; touch closed", "sh", "{}");

    assert_ran(r, 0, "a\n", "");
    assert_non_null(scratch_read("closed"));
}

static void test_commands_do_not_outlive_a_weir_that_is_killed(void)
{
    command_start(&(struct command){ .argv = WORDS(WEIR_COMMAND, "map", "-j2", "--", "sh", "-c",
                                                   "sleep 1000 & touch kill.$1; wait", "sh", "{}"),
                                     .input = "1\n2\n" });
    assert_true(scratch_await("kill.1", "") && scratch_await("kill.2", ""));
    kill(command_pid(), SIGKILL);
    assert_int_equal(sound(command_finish())->status, 128 + SIGKILL);
}

static void test_term_ends_running_commands(void)
{
    const struct ran *r;

    command_start(&(struct command){ .argv = WORDS(WEIR_COMMAND, "map", "-j1", "--", "sh", "-c",
                                                   "touch term.$1; exec sleep 1000", "sh", "{}"),
                                     .input = "1\n2\n" });
    assert_true(scratch_await("term.1", ""));
    kill(command_pid(), SIGTERM);
    r = sound(command_finish());
    assert_status(r, 255); /* the second has not run */
}

static void test_the_first_interrupt_waits_for_running_commands(void)
{
    const struct ran *r;

    command_start(&(struct command){
        .argv = WORDS(WEIR_COMMAND, "map", "-j1", "--", "sh", "-c",
                      "touch int.$1; until [ -e go ]; do :; done; echo $1", "sh", "{}"),
        .input = "1\n2\n",
        .input_stays = true });
    assert_true(scratch_await("int.1", ""));
    kill(command_pid(), SIGINT);
    assert_true(command_await_message("starting no more commands"));
    scratch_write("go", "x", 0);
    r = sound(command_finish());
    assert_string_equal(r->out, "1\n");
    assert_null(scratch_read("int.2"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_commands_know_their_group_number_slot_and_attempt),
        TEST(test_a_weir_inside_weir_sets_its_own),
        TEST(test_the_rest_of_the_environment_is_passed_on),
        TEST(test_commands_inherit_no_descriptor_of_ours),
        TEST(test_a_script_without_an_interpreter_may_have_many_words),
        TEST(test_commands_have_the_limit_of_descriptors_that_we_had),
        TEST(test_too_few_descriptors_make_it_slower_only),
        TEST(test_each_command_leads_a_process_group),
        TEST(test_commands_have_usual_signals),
        TEST(test_failures_are_seen_even_if_child_signals_were_ignored),
        TEST(test_cwd_is_where_commands_run),
        TEST(test_a_relative_command_is_looked_up_in_cwd),
        TEST(test_a_directory_that_is_not_there_is_named),
        TEST(test_success_is_zero),
        TEST(test_the_status_is_how_many_failed),
        TEST(test_one_hundred_failures_are_100_and_more_are_101),
        TEST(test_a_signal_is_a_failure_and_is_named),
        TEST(test_a_command_that_is_not_there),
        TEST(test_a_command_that_cannot_be_executed),
        TEST(test_commands_that_vary_fail_one_by_one),
        TEST(test_a_script_without_a_first_line_is_run_by_a_shell),
        TEST(test_a_timeout_ends_the_command),
        TEST(test_a_command_that_ignores_term_is_killed_after_grace_with_all_it_started),
        TEST(test_output_of_a_command_before_its_timeout_is_printed),
        TEST(test_a_command_may_use_its_grace),
        TEST(test_delay_keeps_starts_apart),
        TEST(test_a_failed_command_is_tried_again),
        TEST(test_retries_are_so_many_and_no_more),
        TEST(test_without_retries_there_is_one_attempt),
        TEST(test_backoff_doubles_up_to_its_maximum),
        TEST(test_others_run_while_one_waits_for_its_retry),
        TEST(test_an_attempt_that_ran_out_of_time_is_tried_again),
        TEST(test_a_cool_code_pauses_the_group_for_as_long_as_the_command_says),
        TEST(test_cool_down_is_how_long_if_the_command_does_not_say),
        TEST(test_a_short_cool_down_does_not_end_a_long_one),
        TEST(test_text_that_is_no_duration_is_said_and_the_option_counts),
        TEST(test_another_exit_code_does_not_cool),
        TEST(test_halt_soon_starts_nothing_more),
        TEST(test_halt_soon_lets_running_commands_run),
        TEST(test_halt_now_ends_running_commands),
        TEST(test_halt_now_kills_commands_that_ignore_term),
        TEST(test_halt_now_counts_no_command_that_obeys),
        TEST(test_halt_at_a_share),
        TEST(test_halt_at_a_share_waits_for_three_failures),
        TEST(test_records_read_but_not_run_are_in_the_results),
        TEST(test_a_background_process_that_holds_the_pipe_does_not_hold_us),
        TEST(test_a_command_that_closes_its_output_runs_on),
        TEST(test_commands_do_not_outlive_a_weir_that_is_killed),
        TEST(test_term_ends_running_commands),
        TEST(test_the_first_interrupt_waits_for_running_commands),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
