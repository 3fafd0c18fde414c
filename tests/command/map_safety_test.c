/* weir map: nothing is destroyed, nothing is left behind, and nothing keeps it from ending.
 * SPDX-License-Identifier: MIT */
#include "command/ample.h"
#include "command/map_results.h"
#include "support/sanitized.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- results -------------------------------------------------------------------------------------- */

static void test_results_are_appended_or_named_anew_if_asked(void)
{
    assert_status(MAP("a\n", "--results", "asked", "--", "true"), 0);
    assert_ran(MAP("b\n", "--results", "asked", "--if-exists", "new", "--", "true"), 0, "",
               "weir: results go to asked.2\n");
    assert_status(MAP("c\n", "--results", "asked", "--if-exists", "append", "--", "true"), 0);
    assert_contains(scratch_read("asked"), "\"record\":\"a\"}\n{\"seq\":1,");
    assert_contains(scratch_read("asked"), "\"record\":\"c\"}\n");
    assert_contains(scratch_read("asked.2"), "\"record\":\"b\"}\n");
}

static void test_results_do_not_destroy_the_input(void)
{
    scratch_write("both", "a\n", 0);
    assert_ran(MAP(NULL, "-a", "both", "--results", "both", "--", "echo"), 255, "",
               "weir: --results both: this is the input; name another file\n");
    assert_ran(SCRIPT(NULL, "weir map --results both --if-exists append -- echo <both"), 255, "",
               "weir: --results both: this is the input; name another file\n");
    assert_string_equal(scratch_read("both"), "a\n");
}

static void test_results_are_not_shared_by_two_runs(void)
{
    command_start(&(struct command){
        .argv = WORDS(WEIR_COMMAND, "map", "--results", "shared", "--", "sh", "-c",
                      "until [ -e shared.go ]; do sleep 0.01; done; : $1", "sh", "{}"),
        .input = "a\n" });
    assert_true(scratch_await("shared", ""));
    assert_int_equal(system("cd \"$(dirname \"$0\")\" 2>/dev/null; :"), 0);
    {
        char line[600];
        snprintf(line, sizeof(line), "echo b | %s map --results %s -- true 2>%s; [ $? = 255 ]",
                 WEIR_COMMAND, scratch("shared"), "/dev/null");
        assert_int_equal(system(line), 0);
    }
    scratch_write("shared.go", "x", 0);
    assert_ran(sound(command_finish()), 0, "", "");
}

static void test_a_result_is_there_when_its_output_is(void)
{
    command_start(&(struct command){
        .argv =
            WORDS(WEIR_COMMAND, "map", "-j1", "--results", "there", "--", "sh", "-c",
                  "[ $1 = 1 ] || until [ -e there.go ]; do sleep 0.01; done; echo $1", "sh", "{}"),
        .input = "1\n2\n" });
    assert_true(command_await_output("1\n"));
    assert_contains(scratch_read("there"), "{\"seq\":1,"); /* and not a second later */
    scratch_write("there.go", "x", 0);
    assert_ran(sound(command_finish()), 0, "1\n2\n", "");
}

static void test_results_go_to_standard_output_if_asked(void)
{
    const struct ran *r = MAP("a\n", "--results", "-", "--", "true");

    assert_status(r, 0);
    assert_contains(r->out, "{\"seq\":1,\"group\":\"\",\"command\":[\"true\",\"a\"],\"exit\":0,");
    assert_contains(r->out, "\"reason\":\"done\",\"record\":\"a\"}\n");
}

static void test_output_of_failed_attempts_is_kept_in_results_and_shown_if_asked(void)
{
    static const char script[] = "echo out $WEIR_ATTEMPT; echo err >&2; [ $WEIR_ATTEMPT = 2 ]";

    assert_ran(MAP("a\n", "--retries", "1", "--backoff", "1ms", "--results", "tried", "--shell",
                   "--", script),
               0, "out 2\n", "err\n");
    assert_contains(scratch_read("tried"),
                    "\"failed_attempts\":[{\"exit\":1,\"signal\":null,\"out\":\"out 1\\n\",\"err\":"
                    "\"err\\n\"}]}\n");
    assert_ran(
        MAP("a\n", "--retries", "1", "--backoff", "1ms", "--show-retries", "--shell", "--", script),
        0, "out 1\nout 2\n", "err\nerr\n");
}

static void test_output_of_earlier_attempts_is_not_taken_for_a_later_ones(void)
{
    const struct ran *r = MAP("a\n", "--retries", "2", "--backoff", "1ms", "--show-retries",
                              "--results", "thrice", "--shell", "--",
                              "[ $WEIR_ATTEMPT != 1 ] || yes | head -c 200000; echo "
                              "o$WEIR_ATTEMPT; [ $WEIR_ATTEMPT = 3 ]");

    assert_status(r, 0);
    assert_contains(r->out, "y\no1\no2\no3\n");
    assert_contains(scratch_read("thrice"), "y\\no1\\n\",\"err\":\"\"},{\"exit\":1,"
                                            "\"signal\":null,\"out\":\"o2\\n\",\"err\":\"\"}]}\n");
}

/* ---- --files -------------------------------------------------------------------------------------- */

static void test_files_of_an_earlier_run_are_not_mixed_with_new_ones(void)
{
    assert_status(MAP("a\nb\n", "--files", "f", "--", "echo"), 0);
    assert_ran(MAP("c\n", "--files", "f", "--", "echo"), 255, "",
               "weir: --files f: it has outputs of an earlier run: remove them, name another "
               "directory, or use --if-exists new\n");
    assert_string_equal(scratch_read("f/2.out"), "b\n");
    assert_ran(MAP("c\n", "--files", "f", "--if-exists", "new", "--", "echo"), 0, "",
               "weir: outputs go to f.2\n");
    assert_string_equal(scratch_read("f.2/1.out"), "c\n");
}

static void test_files_do_not_follow_links(void)
{
    const struct ran *r;

    scratch_write("precious", "precious\n", 0);
    r = SCRIPT("a\n", "mkdir linked; weir map --files linked --shell -- "
                      "'ln -s ../precious linked/2.out; : {}'; "
                      "rm linked/1.*; echo x | weir map -a - -a - --files linked -- echo; :");
    assert_status(r, 0);
    r = SCRIPT("a\nb\n", "rm -rf linked; weir map -j1 --files linked --shell -- "
                         "'ln -sf ../precious linked/2.out 2>/dev/null; echo {}'");
    assert_status(r, 255);
    assert_contains(r->err, "weir: task 2 was not run: cannot create its files in linked: ");
    assert_string_equal(scratch_read("precious"), "precious\n");
}

static void test_a_directory_that_vanishes_is_not_blamed_on_the_command(void)
{
    const struct ran *r = SCRIPT("a\nb\nc\n", "weir map -j1 --files gone -- sh -c 'rm -r gone' sh");

    assert_status(r, 255);
    assert_contains(r->err,
                    "weir: task 2 was not run: cannot create its files in gone: No such file "
                    "or directory\n");
    assert_contains(r->err, "task 2 was not run: its --files could not be created (No such file");
}

/* ---- ends ----------------------------------------------------------------------------------------- */

/* A reader that does not read: as much as a pipe holds is in it. */
static void await_full(int fd)
{
    int held = 0;

    for (int i = 0; i < 60000 && held < 60000; i++) {
        usleep(1000);
        assert_int_equal(ioctl(fd, FIONREAD, &held), 0);
    }
    assert_true(held >= 60000);
}

static void test_one_term_ends_it_while_its_output_is_blocked(void)
{
    int fd;

    assert_int_equal(mkfifo(scratch("blocked"), 0600), 0);
    fd = open(scratch("blocked"), O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    command_start(&(struct command){
        .argv =
            WORDS("/bin/sh", "-c",
                  "exec " WEIR_COMMAND
                  " map -j2 --grace 100ms -N -- head -c 100000 /dev/zero ::: 1 2 3 4 >blocked") });
    await_full(fd);
    kill(command_pid(), SIGTERM);
    assert_status(sound(command_finish()), 255);
    close(fd);
}

static void test_a_regular_expression_takes_time_by_the_length_of_a_line(void)
{
    const struct ran *r = SCRIPT(NULL, "head -c 1048576 /dev/zero | tr '\\0' a >line; echo >>line; "
                                       "weir map -a line -g '/(a*)b/' --stdin -- wc -c");

    assert_ran(r, 0, "1048577\n", "");
    assert_true(r->seconds < 30);
}

/* Without a look at what asks it to stop, this one would take half an hour. */
static void test_one_term_ends_it_while_a_regular_expression_runs(void)
{
    enum { LENGTH = 8 << 20 };
    char *lines = malloc(LENGTH + 4);

    assert_non_null(lines);
    memset(lines, 'a', LENGTH + 4);
    lines[0] = 'x';
    lines[1] = lines[LENGTH + 3] = '\n';
    scratch_write("lines", lines, LENGTH + 4);
    free(lines);
    command_start(
        &(struct command){ .argv = WORDS(WEIR_COMMAND, "map", "-a", scratch("lines"), "-g",
                                         "/((a{200}){90})b/", "--stdin", "--", "cat") });
    assert_true(command_await_output("x\n")); /* so the next line has been asked for */
    kill(command_pid(), SIGTERM);
    assert_status(sound(command_finish()), 255);
}

static void test_an_expression_that_repeats_repetitions_takes_no_memory(void)
{
    char pattern[10000] = "/(a";
    const struct ran *r;

    memset(pattern + 3, '+', sizeof(pattern) - 6);
    strcpy(pattern + sizeof(pattern) - 3, ")/");
    r = MAP("baa\n", "-g", pattern, "--tag", "--", "echo");
    assert_ran(r, 0, "aa\tbaa\n", "");
    assert_true(r->peak_kb < 100000);
}

static void test_too_few_descriptors_for_one_command_are_told_at_once(void)
{
    for (int n = 16; n <= 21; n++) {
        char line[100];
        const struct ran *r;
        snprintf(line, sizeof(line), "ulimit -n %d; weir map -- echo", n);
        r = SCRIPT("a\n", line);
        assert_status(r, 255);
        assert_contains(r->err, "raise it with `ulimit -n`");
    }
}

static void test_a_task_that_waits_for_a_descriptor_at_a_stop_has_not_failed(void)
{
    const struct ran *r;

    command_start(
        &(struct command){ .argv = WORDS("/bin/sh", "-c",
                                         "ulimit -n 32; seq 10 >ten; exec " WEIR_COMMAND
                                         " map -a ten -j10 -N --journal scarce -- sleep 300") });
    assert_true(command_await_message("has to wait"));
    weir_sleep(weir_now() + ample_ns()); /* its reader comes to the last line meanwhile */
    kill(command_pid(), SIGTERM);
    r = sound(command_finish());
    assert_status(r, 255);
    assert_lacks(r->err, "failed");
    assert_contains(r->err, "tasks were not run");
    assert_ran(SCRIPT(NULL, "weir log --failed scarce | wc -l"), 0, "1\n", ""); /* the heading */
}

static void test_a_limit_on_the_size_of_files_is_an_error_not_a_death(void)
{
    const struct ran *r =
        SCRIPT(NULL, "ulimit -f 1; seq 200 | weir map -j1 --results limited -- true");

    assert_status(r, 255);
    assert_contains(r->err, "weir: --results limited: File too large; starting no more commands\n");
}

static int count_of_sleeps(const char *seconds)
{
    char line[200];

    snprintf(line, sizeof(line),
             "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | "
             "grep -c 'slee[p] %s ' >count_of_sleeps; :",
             seconds);
    SCRIPT(NULL, line);
    return atoi(scratch_read("count_of_sleeps"));
}

/* The time is doubled until the process was in its session before its task was ended. */
static void test_processes_that_left_their_session_are_ended_with_their_task(void)
{
    for (int ms = 200; !scratch_read("session.own"); ms *= 2) {
        char timeout[20];
        snprintf(timeout, sizeof(timeout), "%dms", ms);
        assert_true(ms < 1000000);
        assert_status(MAP("a\n", "--timeout", timeout, "--grace", "50ms", "--", "sh", "-c",
                          "setsid sh -c 'touch session.own; exec sleep 4711.25' >/dev/null 2>&1 & "
                          "sleep 6000; : $1",
                          "sh", "{}"),
                      1);
        assert_int_equal(count_of_sleeps("4711.25"), 0);
    }
}

static void test_processes_that_left_their_session_do_not_outlive_weir(void)
{
    command_start(&(struct command){
        .argv =
            WORDS(WEIR_COMMAND, "map", "--", "sh", "-c",
                  "setsid sh -c 'touch session.left; exec sleep 4712.5' >/dev/null 2>&1 & wait"),
        .input = "a\n",
        .leaves = true });
    assert_true(scratch_await("session.left", ""));
    kill(command_pid(), SIGKILL);
    assert_int_equal(command_finish()->status, 128 + SIGKILL);
    for (int i = 0; i < 500 && count_of_sleeps("4712.5"); i++)
        usleep(10000);
    assert_int_equal(count_of_sleeps("4712.5"), 0);
}

/* A bound on resident memory; sanitizers keep what was freed. */
static void assert_peak(const struct ran *r, long megabytes)
{
    if (!SANITIZED)
        assert_in_range(r->peak_kb, 0, megabytes << 10);
}

/* ---- memory --------------------------------------------------------------------------------------- */

static void test_outputs_behind_a_slow_task_do_not_stay_in_memory(void)
{
    const struct ran *r = sound(command_run(
        &(struct command){ .argv = WORDS("/bin/sh", "-c",
                                         "seq 3001 | " WEIR_COMMAND
                                         " map -k -j2 --shell -- 'if [ {} = 1 ]; then until [ -e "
                                         "slow.go ]; do sleep 0.05; done; else head -c 60000 "
                                         "/dev/zero; [ {} != 3001 ] || touch slow.go; fi'"),
                           .count_only = true }));

    assert_status(r, 0);
    assert_int_equal(r->out_length, 3000l * 60000);
    assert_peak(r, 140);
}

static void test_it_says_why_nothing_starts_behind_a_slow_task(void)
{
    command_start(&(struct command){
        .argv = WORDS(WEIR_COMMAND, "map", "-k", "-j2", "--max-wait", "1", "--shell", "--",
                      "[ {} != 1 ] || until [ -e order.go ]; do sleep 0.01; done; echo {}"),
        .input = "1\n2\n3\n4\n5\n6\n" });
    assert_true(command_await_message(
        "weir: nothing starts: 2 outputs wait for task 1 (--keep-order, --max-wait)\n"));
    scratch_write("order.go", "", 0);
    assert_ran(sound(command_finish()), 0, "1\n2\n3\n4\n5\n6\n",
               "weir: nothing starts: 2 outputs wait for task 1 (--keep-order, --max-wait)\n");
}

static void test_a_long_tag_before_many_lines_takes_little_memory(void)
{
    const struct ran *r = sound(command_run(
        &(struct command){ .argv = WORDS("/bin/sh", "-c",
                                         "head -c 20000 /dev/zero | tr '\\0' x | " WEIR_COMMAND
                                         " map --tag -N -- sh -c 'yes \"\" | head -c 65536'"),
                           .count_only = true }));

    assert_status(r, 0);
    assert_true(r->out_length == 65536ull * (20000 + 2));
    assert_peak(r, 40);
}

static void test_a_row_of_very_many_columns_is_refused(void)
{
    const struct ran *r = SCRIPT(NULL, "head -c 30000000 /dev/zero | tr '\\0' , | weir map --csv "
                                       "--no-header -- echo {1}");

    assert_status(r, 1);
    assert_contains(r->err, "weir: line 1 has more than 100000 columns\n");
    assert_peak(r, 200);
}

/* ---- text ----------------------------------------------------------------------------------------- */

static void test_names_cannot_break_out_of_messages(void)
{
    const struct ran *r = MAP("a\n", "--cwd", "no\n\033[31m\302\233such", "--", "echo");

    assert_status(r, 1);
    assert_lacks(r->err, "\033");
    assert_lacks(r->err, "\302\233");
    assert_contains(r->err, "such: No such file or directory\n");
    r = MAP("a\n", "--", "no\nsuch");
    assert_status(r, 127);
    assert_lacks(r->err, "no\n");
    r = MAP("\033[2J\n", "--dry-run", "--", "echo");
    assert_ran(r, 0, "echo $'\\033[2J'\n", "");
}

static void test_progress_lines_come_only_if_asked_for(void)
{
    assert_ran(MAP("1.2\n", "--progress", "auto", "--", "sleep"), 0, "", "");
    assert_contains(MAP("1.2\n", "--progress", "always", "--", "sleep")->err, "weir: 1 of 1 done");
}

static void test_settings_without_meaning_together_are_refused(void)
{
    assert_contains(MAP("", "--no-header", "--", "echo")->err, "--no-header needs --csv or --tsv");
    assert_contains(MAP("", "--tag", "--files", "x", "--", "echo")->err,
                    "use only one of --tag and --files");
    assert_contains(MAP("", "--timeout", "0", "--", "echo")->err, "a duration that is not zero");
    assert_contains(MAP("", "--block", "1k", "--", "echo")->err, "--block needs --pipe");
    assert_contains(MAP("", "-n2", "--shell", "--", "echo")->err, "do not go with --shell");
}

/* ---- order and signals ---------------------------------------------------------------------------- */

static void test_one_at_a_time_prints_in_order(void)
{
    static char expected[5000];

    for (int i = 1; i <= 600; i++)
        snprintf(expected + strlen(expected), 16, "%d\n", i);
    for (int i = 0; i < 3; i++)
        assert_ran(SCRIPT(NULL, "seq 600 | weir map -j1 -- echo"), 0, expected, "");
}

static void test_usr1_and_usr2_change_how_many_run_at_once(void)
{
    command_start(&(struct command){
        .argv = WORDS(WEIR_COMMAND, "map", "-j1", "--shell", "--",
                      "echo {} >>usr.began; until [ -e usr.go ]; do sleep 0.01; done; : {}"),
        .input = "1\n2\n3\n" });
    assert_true(scratch_await("usr.began", "1\n"));
    kill(command_pid(), SIGUSR1);
    assert_true(command_await_message("weir: at most 2 at once from now on\n"));
    assert_true(scratch_await("usr.began", "2\n"));
    kill(command_pid(), SIGUSR2);
    assert_true(command_await_message("weir: at most 1 at once from now on\n"));
    scratch_write("usr.go", "x", 0);
    assert_status(sound(command_finish()), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_results_are_appended_or_named_anew_if_asked),
        TEST(test_results_do_not_destroy_the_input),
        TEST(test_results_are_not_shared_by_two_runs),
        TEST(test_a_result_is_there_when_its_output_is),
        TEST(test_results_go_to_standard_output_if_asked),
        TEST(test_output_of_failed_attempts_is_kept_in_results_and_shown_if_asked),
        TEST(test_output_of_earlier_attempts_is_not_taken_for_a_later_ones),
        TEST(test_files_of_an_earlier_run_are_not_mixed_with_new_ones),
        TEST(test_files_do_not_follow_links),
        TEST(test_a_directory_that_vanishes_is_not_blamed_on_the_command),
        TEST(test_one_term_ends_it_while_its_output_is_blocked),
        TEST(test_a_regular_expression_takes_time_by_the_length_of_a_line),
        TEST(test_one_term_ends_it_while_a_regular_expression_runs),
        TEST(test_an_expression_that_repeats_repetitions_takes_no_memory),
        TEST(test_too_few_descriptors_for_one_command_are_told_at_once),
        TEST(test_a_task_that_waits_for_a_descriptor_at_a_stop_has_not_failed),
        TEST(test_a_limit_on_the_size_of_files_is_an_error_not_a_death),
        TEST(test_processes_that_left_their_session_are_ended_with_their_task),
        TEST(test_processes_that_left_their_session_do_not_outlive_weir),
        TEST(test_outputs_behind_a_slow_task_do_not_stay_in_memory),
        TEST(test_it_says_why_nothing_starts_behind_a_slow_task),
        TEST(test_a_long_tag_before_many_lines_takes_little_memory),
        TEST(test_a_row_of_very_many_columns_is_refused),
        TEST(test_names_cannot_break_out_of_messages),
        TEST(test_progress_lines_come_only_if_asked_for),
        TEST(test_settings_without_meaning_together_are_refused),
        TEST(test_one_at_a_time_prints_in_order),
        TEST(test_usr1_and_usr2_change_how_many_run_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
