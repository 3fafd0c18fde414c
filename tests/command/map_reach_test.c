/* weir map: what users of xargs and GNU parallel reach for.
 * SPDX-License-Identifier: MIT */
#include "command/ample.h"
#include "command/command.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- values on the command line ------------------------------------------------------------------- */

static void test_values_stand_after_the_command(void)
{
    assert_ran(MAP(NULL, "-j1", "--", "echo", "x", ":::", "a", "b c", ""), 0, "x a\nx b c\nx \n",
               "");
    assert_ran(MAP(NULL, "-j1", "echo", ":::", "a"), 0, "a\n", ""); /* without the dashes, too */
    assert_ran(MAP(NULL, "--", "echo", ":::"), 0, "", "");
}

static void test_lists_are_combined(void)
{
    assert_ran(
        MAP(NULL, "-j1", "--", "echo", "{2}{1}{3}", ":::", "a", "b", ":::", "1", "2", ":::", "x"),
        0, "1ax\n2ax\n1bx\n2bx\n", "");
    assert_ran(MAP(NULL, "-j1", "--", "echo", ":::", "a", "b", ":::", "1"), 0, "a 1\nb 1\n", "");
    assert_ran(MAP(NULL, "-j1", "--", "echo", ":::", "a", ":::"), 0, "", "");
}

static void test_linked_lists_go_on_together(void)
{
    assert_ran(MAP(NULL, "-j1", "--", "echo", "{1}{2}{3}", ":::", "a", "b", ":::+", "1", "2", "3",
                   ":::", "x", "y"),
               0, "a1x\na1y\nb2x\nb2y\n", "");
    assert_contains(MAP(NULL, "--", "echo", ":::+", "a")->err, "begin with ::: or ::::");
}

static void test_lists_may_be_files(void)
{
    scratch_write("l1", "a\nb\n", 0);
    scratch_write("l2", "1\n2\n", 0);
    assert_ran(MAP(NULL, "-j1", "--", "echo", "{1}{2}", "::::", "l1", "l2"), 0, "a1\na2\nb1\nb2\n",
               "");
    assert_ran(MAP("x\ny\n", "-j1", "--", "echo", "{1}{2}", "::::", "-", ":::", "1"), 0, "x1\ny1\n",
               "");
    assert_contains(MAP(NULL, "--", "echo", "::::", "no-such")->err, "no-such: No such file");
    assert_contains(MAP(NULL, "-a", "l1", "--", "echo", ":::", "a")->err,
                    "use only one of ::: and --input");
}

static void test_several_inputs_are_read_in_order(void)
{
    scratch_write("i1", "a\nb\n", 0);
    scratch_write("i2", "c", 0);
    assert_ran(MAP("d\n", "-j1", "-a", "i1", "-a", "-", "-a", "i2", "--", "echo"), 0,
               "a\nb\nd\nc\n", "");
    assert_contains(MAP(NULL, "-a", "i1", "-a", "missing", "--", "echo")->err,
                    "missing: No such file");
    scratch_write("c1", "id,x\n1,2\n", 0);
    scratch_write("c2", "id,x\n3,4\n", 0);
    scratch_write("c3", "id,y\n5,6\n", 0);
    assert_ran(MAP(NULL, "-j1", "--csv", "-a", "c1", "-a", "c2", "--", "echo", "{id}{x}"), 0,
               "12\n34\n", "");
    assert_contains(MAP(NULL, "-j1", "--csv", "-a", "c1", "-a", "c3", "--", "echo", "{id}")->err,
                    "c3: its header differs from that of c1");
}

/* ---- several records per command ------------------------------------------------------------------- */

static void test_a_command_takes_so_many_records(void)
{
    assert_ran(MAP("1\n2\n3\n4\n5\n", "-j1", "-n2", "--", "echo"), 0, "1 2\n3 4\n5\n", "");
    assert_ran(MAP("1\n2\n3\n", "-j1", "-n2", "--", "echo", "x{}y", "z"), 0, "x1y x2y z\nx3y z\n",
               "");
    assert_ran(MAP("1\n2\n3\n", "-j1", "-n2", "--stdin", "--", "wc", "-l"), 0, "2\n1\n", "");
    assert_contains(MAP("1\n", "-n2", "--", "echo", "{seq}")->err,
                    "do not work with several records per command");
}

static void test_a_hundred_thousand_records_are_a_hundred_commands_of_a_thousand(void)
{
    const struct ran *r = SCRIPT(
        NULL,
        "seq 100000 | weir map -k -n 1000 -- sh -c 'n=$#; from=$1; shift 999; echo $n $from $1' sh "
        ">batches; wc -l <batches; head -1 batches; tail -1 batches; cut -d' ' -f1 batches | uniq "
        "-c");

    assert_status(r, 0);
    assert_string_equal(r->out, "100\n1000 1 1000\n1000 99001 100000\n    100 1000\n");
}

static void test_a_batch_is_of_one_group(void)
{
    assert_ran(MAP("a 1\nb 2\na 3\na 4\nb 5\n", "-j1", "-n2", "-g1", "--", "echo", "{key}", "{2}"),
               0, "a 1 3\nb 2 5\na 4\n", "");
}

static void test_as_many_as_fit_are_taken(void)
{
    assert_ran(SCRIPT(NULL,
                      "seq 100000 | weir map -j1 -X -- echo | tee lines | tr ' ' '\\n' | cksum; "
                      "seq 100000 | cksum; wc -l <lines"),
               0, "2052179976 588895\n2052179976 588895\n11\n", "");
    assert_ran(MAP("1\n2\n3\n", "-X", "-n2", "-j1", "--", "echo"), 0, "1 2\n3\n", "");
}

static void test_a_bad_record_fails_alone_in_a_batch(void)
{
    const struct ran *r = MAP("a 1\nb\nc 3\n", "-j1", "-n2", "--", "echo", "{2}");

    assert_status(r, 1);
    assert_string_equal(r->out, "1 3\n");
}

static void test_a_stream_is_split_among_commands(void)
{
    assert_ran(
        SCRIPT(
            NULL,
            "seq 100000 | weir map -k -j2 --pipe --block 100k -- cat | cksum; seq 100000 | cksum"),
        0, "2052179976 588895\n2052179976 588895\n", "");
    assert_ran(SCRIPT(NULL, "seq 10 | weir map -k --pipe -n4 -- wc -l"), 0, "4\n4\n2\n", "");
    assert_ran(SCRIPT(NULL, "seq 9 | weir map -k --pipe --block 6 -- sh -c 'tr \"\\n\" ,; echo'"),
               0, "1,2,3,\n4,5,6,\n7,8,9,\n", "");
}

static void test_a_stream_that_is_split_stays_the_same(void)
{
    assert_ran(MAP("a\nb", "--pipe", "--", "cat"), 0, "a\nb", "");
    assert_ran(MAP("a5b", "-k", "-n1", "--pipe", "--record-end", "5", "--", "cat"), 0, "a5b", "");
    assert_ran(MAP("a5b5", "-k", "--pipe", "--record-end", "5", "--", "cat"), 0, "a5b5", "");
    assert_ran(SCRIPT(NULL, "printf 'a\nb' >cut1; printf 'c\nd' >cut2; "
                            "weir map --pipe -a cut1 -a cut2 -- cat"),
               0, "a\nb\nc\nd", ""); /* records stay apart */
}

/* ---- records and columns ---------------------------------------------------------------------------- */

static void test_records_and_columns_have_ends_of_several_bytes(void)
{
    assert_ran(MAP("a<>b<>c", "-j1", "--record-end", "<>", "--", "echo"), 0, "a\nb\nc\n", "");
    assert_ran(MAP("a\r\nb\r\n", "-j1", "--record-end", "\\r\\n", "--", "echo"), 0, "a\nb\n", "");
    assert_ran(MAP("a::b:c\n", "-d", "::", "--", "echo", "{2}", "{1}"), 0, "b:c a\n", "");
}

static void test_shuffled_records_all_run(void)
{
    assert_ran(
        SCRIPT(
            NULL,
            "seq 200 >s3; weir map -a s3 -j1 --shuf -- echo >s1; weir map -a s3 -j1 --shuf -- echo "
            ">s2; cmp -s s1 s2 && echo same; sort -n s1 | cmp - s3"),
        0, "", "");
}

static void test_slots_are_filled_in(void)
{
    assert_ran(MAP("a\nb\n", "-j1", "--", "echo", "{#}:{%}:{}", "{%}"), 0, "1:1:a 1\n2:1:b 1\n",
               "");
    assert_contains(MAP("a\n", "--cwd", "/{%}", "--", "echo")->err,
                    "{%} is known only when a command starts");
}

static void test_commands_are_printed_as_they_start(void)
{
    assert_ran(MAP("a b\n", "-t", "--", "echo"), 0, "a b\n", "echo 'a b'\n");
}

static void test_variables_are_set_for_commands(void)
{
    assert_ran(MAP("1\n", "--env", "WEIR_T=x y", "--shell", "--", "echo $WEIR_T {}"), 0, "x y 1\n",
               "");
    assert_contains(MAP("1\n", "--env", "=x", "--", "echo")->err,
                    "weir: --env =x: use a name, or NAME=VALUE\n");
}

/* ---- when to start, when to stop ------------------------------------------------------------------- */

static void test_how_many_at_once_may_come_from_a_file(void)
{
    scratch_write("jobs", "1\n", 0);
    command_start(&(struct command){
        .argv = WORDS(WEIR_COMMAND, "map", "-j", "jobs", "--shell", "--",
                      "echo {} >>jobs.began; until [ -e jobs.go ]; do sleep 0.01; done"),
        .input = "1\n2\n3\n" });
    assert_true(scratch_await("jobs.began", "1\n"));
    scratch_write("jobs", "3\n", 0);
    assert_true(command_await_message("weir: at most 3 at once from now on\n"));
    assert_true(scratch_await("jobs.began", "3\n"));
    scratch_write("jobs.go", "x", 0);
    assert_status(sound(command_finish()), 0);
    assert_contains(MAP("", "-j", "jobs.go", "--", "echo")->err,
                    "a file whose first line is a number");
    assert_ran(MAP("a\n", "-j", "+1", "--", "echo"), 0, "a\n", "");
}

static void test_commands_are_held_back_while_memory_is_short(void)
{
    assert_ran(MAP("a\n", "--mem-free", "1k", "--load", "100000", "--", "echo"), 0, "a\n", "");
    command_start(&(struct command){
        .argv = WORDS(WEIR_COMMAND, "map", "--mem-free", "4000T", "--", "echo"), .input = "a\n" });
    assert_true(command_await_message("weir: held back: "));
    kill(command_pid(), SIGTERM);
    assert_status(sound(command_finish()), 255);
}

/* A process that never sleeps is the load. */
static void test_commands_are_held_back_while_others_run(void)
{
    pid_t busy = fork();

    if (busy == 0)
        for (;;)
            ;
    assert_true(busy > 0);
    command_start(
        &(struct command){ .argv = WORDS(WEIR_COMMAND, "map", "--load", "1", "--progress", "always",
                                         "--", "touch", "load.ran", ":::", "a") });
    assert_true(command_await_message("1 waiting, 0/s; held back: "));
    assert_null(scratch_read("load.ran"));
    kill(command_pid(), SIGTERM);
    kill(busy, SIGKILL);
    waitpid(busy, NULL, 0);
    assert_status(sound(command_finish()), 255);
}

static void test_enough_successes_end_the_run(void)
{
    /* The first command goes on until the reader has had ample time to come to the last line. */
    const struct ran *r = MAP("1\n0\n0\n0\n", "-j1", "--halt", "now,success=2", "--retries", "0",
                              "--timeout", ample(), "--grace", "10ms", "--", "sh", "-c",
                              "[ $1 = 0 ] || exec sleep 1000", "sh", "{}");

    assert_status(r, 1);
    assert_contains(r->err, "weir: stopped early: 1 task was not run\n");
}

static void test_a_command_that_takes_much_longer_than_others_is_ended(void)
{
    const struct ran *r = MAP("0\n0\n0\n0\n60\n", "-j1", "--timeout", "1000%", "--grace", "10ms",
                              "--shell", "--", "sleep 0.1; sleep {}");

    assert_status(r, 1);
    assert_contains(r->err, "the first: task 5 exceeded --timeout");
    assert_contains(MAP("", "--timeout", "50%", "--", "echo")->err, "a share of at least 100%");
}

static void test_options_of_other_tools_are_answered(void)
{
    static const char *const options[] = { "-P",       "-I",          "-L",
                                           "--joblog", "--bar",       "--sshlogin",
                                           "--colsep", "--max-procs", "--resume-failed",
                                           "-u",       "--memfree",   "--link",
                                           "--group",  "--tee",       "--trc" };

    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
        const struct ran *r = MAP("", options[i], "x", "--", "echo");
        assert_status(r, 255);
        assert_contains(r->err, "no such option: ");
        assert_contains(r->err, options[i]);
    }
    assert_contains(MAP("", "-P4", "--", "echo")->err, "use -j N");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_values_stand_after_the_command),
        TEST(test_lists_are_combined),
        TEST(test_linked_lists_go_on_together),
        TEST(test_lists_may_be_files),
        TEST(test_several_inputs_are_read_in_order),
        TEST(test_a_command_takes_so_many_records),
        TEST(test_a_hundred_thousand_records_are_a_hundred_commands_of_a_thousand),
        TEST(test_a_batch_is_of_one_group),
        TEST(test_as_many_as_fit_are_taken),
        TEST(test_a_bad_record_fails_alone_in_a_batch),
        TEST(test_a_stream_is_split_among_commands),
        TEST(test_a_stream_that_is_split_stays_the_same),
        TEST(test_records_and_columns_have_ends_of_several_bytes),
        TEST(test_shuffled_records_all_run),
        TEST(test_slots_are_filled_in),
        TEST(test_commands_are_printed_as_they_start),
        TEST(test_variables_are_set_for_commands),
        TEST(test_how_many_at_once_may_come_from_a_file),
        TEST(test_commands_are_held_back_while_memory_is_short),
        TEST(test_commands_are_held_back_while_others_run),
        TEST(test_enough_successes_end_the_run),
        TEST(test_a_command_that_takes_much_longer_than_others_is_ended),
        TEST(test_options_of_other_tools_are_answered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
