/* weir map: what commands write, and what becomes of it.
 * SPDX-License-Identifier: MIT */
#include "command/ample.h"
#include "command/map_results.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- in one piece -------------------------------------------------------------------------------- */

static void test_large_outputs_are_not_mixed(void)
{
    enum { EACH = 300000 };
    const struct ran *r = MAP("a\nb\nc\nd\n", "-j4", "--", "sh", "-c",
                              "yes $1 | head -c 300000; yes $1 | head -c 300000 >&2", "sh", "{}");
    int changes[2] = { 0, 0 };

    assert_status(r, 0);
    assert_int_equal(r->out_length, 4 * EACH);
    assert_int_equal(r->err_length, 4 * EACH);
    for (size_t i = 2; i < 4 * EACH; i += 2) {
        changes[0] += r->out[i] != r->out[i - 2];
        changes[1] += r->err[i] != r->err[i - 2];
    }
    assert_int_equal(changes[0], 3);
    assert_int_equal(changes[1], 3);
}

static void test_output_comes_when_a_command_has_ended(void)
{
    command_start(&(struct command){
        .argv =
            WORDS(WEIR_COMMAND, "map", "-j2", "--", "sh", "-c",
                  "echo $1; [ $1 = 2 ] || until [ -e ended.go ]; do :; done; echo $1", "sh", "{}"),
        .input = "1\n2\n" });
    assert_true(command_await_output("2\n2\n")); /* nothing of the first, which came before */
    scratch_write("ended.go", "x", 0);
    assert_ran(sound(command_finish()), 0, "2\n2\n1\n1\n", "");
}

/* A command's output is handed over before the next one may start. */
static void test_one_at_a_time_prints_in_the_order_of_the_input(void)
{
    static const char script[] =
        "seq 300 >numbers.in; weir map -j1 -a numbers.in -- " MAP_CHILD " say {} | "
        "cmp - numbers.in && weir map -j1 --tag -a numbers.in -- " MAP_CHILD " say {} | "
        "cut -f2 | cmp - numbers.in";

    assert_ran(SCRIPT(NULL, script), 0, "", "");
}

static void test_errors_go_to_standard_error(void)
{
    assert_ran(MAP("a\n", "--", "sh", "-c", "echo out $1; echo err $1 >&2", "sh", "{}"), 0,
               "out a\n", "err a\n");
}

static void test_output_of_failed_commands_is_printed_too(void)
{
    const struct ran *r = MAP("a\n", "--", "sh", "-c", "echo $1; exit 1", "sh", "{}");

    assert_status(r, 1);
    assert_string_equal(r->out, "a\n");
}

static void test_bytes_are_printed_as_they_are(void)
{
    const struct ran *r =
        MAP("a\n", "--", "sh", "-c", "printf '\\000\\377\\n\\r\\033[0m'; : $1", "sh", "{}");

    assert_status(r, 0);
    assert_int_equal(r->out_length, 8);
    assert_memory_equal(r->out, "\0\377\n\r\033[0m", 8);
}

/* ---- in order ------------------------------------------------------------------------------------ */

static void test_keep_order_prints_in_the_order_of_the_input(void)
{
    assert_ran(
        MAP("1\n2\n3\n", "-j3", "--keep-order", "--", "sh", "-c",
            "[ $1 = 3 ] || until [ -e order.$(($1 + 1)) ]; do :; done; touch order.$1; echo $1; "
            "echo $1 >&2",
            "sh", "{}"),
        0, "1\n2\n3\n", "1\n2\n3\n"); /* they end as 3, 2, 1 */
}

static void test_keep_order_goes_past_those_that_failed_or_wrote_nothing(void)
{
    const struct ran *r = MAP("1\n2\n3\n4\n", "-k", "--", "sh", "-c",
                              "[ $1 = 2 ] || echo $1; [ $1 != 3 ]", "sh", "{}");

    assert_status(r, 1);
    assert_string_equal(r->out, "1\n3\n4\n");
}

static void test_keep_order_goes_past_bad_input(void)
{
    const struct ran *r = MAP("{\"a\":1}\n?\n{\"a\":3}\n", "-k", "--jsonl", "--", "echo", "{a}");

    assert_status(r, 1);
    assert_string_equal(r->out, "1\n3\n");
}

/* ---- tags ---------------------------------------------------------------------------------------- */

static void test_tag_begins_each_line(void)
{
    assert_ran(
        MAP("x\n", "--tag", "--", "sh", "-c", "printf '1\\n\\n2'; echo e >&2; : $1", "sh", "{}"), 0,
        "x\t1\nx\t\nx\t2", "x\te\n");
}

static void test_tag_is_the_group_if_there_are_groups(void)
{
    assert_ran(MAP("a b\n", "--tag", "-g2", "--", "echo", "{1}"), 0, "b\ta\n", "");
}

static void test_tag_is_a_text_with_placeholders(void)
{
    assert_ran(MAP("a b\n", "--tag=<{2} {seq}>", "--", "echo", "{1}"), 0, "<b 1>\ta\n", "");
    assert_ran(MAP("a b\n", "--tag=", "--", "echo", "{1}"), 0, "\ta\n", "");
}

static void test_tag_of_a_missing_field_is_bad_input(void)
{
    const struct ran *r = MAP("{\"a\":1}\n", "--jsonl", "--tag={b}", "--", "echo", "{a}");

    assert_status(r, 1);
    assert_string_equal(r->out, "");
    assert_contains(r->err, "line 1: the object has no field \"b\"");
}

static void test_tag_of_a_large_output(void)
{
    const struct ran *r =
        MAP("x\n", "--tag", "--", "sh", "-c", "yes | head -n 100000; : $1", "sh", "{}");

    assert_status(r, 0);
    assert_int_equal(r->out_length, 400000);
    for (size_t i = 0; i < r->out_length; i += 4)
        assert_memory_equal(r->out + i, "x\ty\n", 4);
}

/* ---- lines as they come -------------------------------------------------------------------------- */

static void test_line_buffer_prints_lines_before_the_command_ends(void)
{
    command_start(&(struct command){
        .argv = WORDS(WEIR_COMMAND, "map", "--line-buffer", "--", "sh", "-c",
                      "echo one; printf tw; until [ -e line.go ]; do :; done; echo o; : $1", "sh",
                      "{}"),
        .input = "1\n" });
    assert_true(command_await_output("one\n"));
    scratch_write("line.go", "x", 0);
    assert_ran(sound(command_finish()), 0, "one\ntwo\n", "");
}

static void test_line_buffer_never_mixes_lines(void)
{
    enum { EACH = 4000, WIDTH = 101 };
    const struct ran *r = MAP("a\nb\nc\nd\n", "-j4", "--line-buffer", "--", "sh", "-c",
                              "yes $(printf '%0100d' 0 | tr 0 $1) | head -n 4000", "sh", "{}");
    int seen[4] = { 0 };

    assert_status(r, 0);
    assert_int_equal(r->out_length, 4 * EACH * WIDTH);
    for (size_t i = 0; i < r->out_length; i += WIDTH) {
        for (size_t k = 1; k < WIDTH - 1; k++)
            assert_true(r->out[i + k] == r->out[i]);
        assert_true(r->out[i + WIDTH - 1] == '\n');
        seen[r->out[i] - 'a']++;
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(seen[i], EACH);
}

static void test_line_buffer_treats_errors_likewise(void)
{
    const struct ran *r =
        MAP("a\nb\n", "--line-buffer", "--tag", "--", "sh", "-c", "echo e$1 >&2", "sh", "{}");

    assert_status(r, 0);
    assert_contains(r->err, "a\tea\n");
    assert_contains(r->err, "b\teb\n");
}

/* Or another command's line would run on in it. */
static void test_line_buffer_ends_a_last_line_that_has_no_newline(void)
{
    assert_ran(MAP("a\n", "--line-buffer", "--tag", "--", "sh", "-c", "printf 'x\\ny'", "{}"), 0,
               "a\tx\na\ty\n", "");
}

/* The last thing to happen is a printed line: the run must end then, not at the next look at the clock. */
/* However many parts it was printed in: with 64 KiB at a time, an even number left nothing to end. */
static void test_line_buffer_ends_a_long_last_line_too(void)
{
    assert_ran(SCRIPT("65536\n131072\n196608\n",
                      "weir map -j1 --line-buffer --tag=x -- head -c {} /dev/zero | tr -d '\\0'"),
               0, "x\t\nx\t\nx\t\n", "");
}

static void test_line_buffer_ends_with_its_last_line(void)
{
    double limit = 25 * (double)ample_ns() / 1e9;

    for (int i = 0; i < 30; i++) {
        const struct ran *r = MAP("a\n", "--line-buffer", "--", "sh", "-c",
                                  "head -c 200000 /dev/zero | tr '\\0' x; echo; : $1", "sh", "{}");
        assert_status(r, 0);
        assert_int_equal(r->out_length, 200001);
        assert_true(r->seconds < limit);
    }
}

static void test_line_buffer_does_not_join_a_failed_attempt_to_the_next(void)
{
    assert_ran(MAP("a\n", "--line-buffer", "--retries", "1", "--backoff", "1ms", "--", "sh", "-c",
                   "printf try$WEIR_ATTEMPT; [ $WEIR_ATTEMPT = 2 ] && echo", "{}"),
               0, "try1\ntry2\n", "");
}

/* ---- files --------------------------------------------------------------------------------------- */

static void test_files_take_the_outputs(void)
{
    assert_ran(
        MAP("a\nb\n", "--files", "outs", "--", "sh", "-c", "echo $1; echo e$1 >&2", "sh", "{}"), 0,
        "", "");
    assert_string_equal(scratch_read("outs/1.out"), "a\n");
    assert_string_equal(scratch_read("outs/1.err"), "ea\n");
    assert_string_equal(scratch_read("outs/2.out"), "b\n");
    assert_string_equal(scratch_read("outs/2.err"), "eb\n");
}

static void test_files_hold_the_last_attempt(void)
{
    assert_status(MAP("a\n", "--files", "again", "--retries", "1", "--backoff", "1ms", "--", "sh",
                      "-c", "echo $WEIR_ATTEMPT; [ $WEIR_ATTEMPT = 2 ]", "{}"),
                  0);
    assert_string_equal(scratch_read("again/1.out"), "2\n");
}

static void test_files_need_a_directory(void)
{
    scratch_write("file", "x", 0);
    assert_ran(MAP("a\n", "--files", "file", "--", "echo"), 255, "",
               "weir: --files file: Not a directory\n");
    assert_ran(MAP("a\n", "--files", "no/such", "--", "echo"), 255, "",
               "weir: --files no/such: No such file or directory\n");
}

/* ---- results ------------------------------------------------------------------------------------- */

static void test_results_tell_what_became_of_each(void)
{
    static struct results results;

    assert_status(MAP("k 0\nk 3\n", "-j1", "-g1", "--results", "results", "--", "sh", "-c",
                      "exit $1", "sh", "{2}"),
                  1);
    read_results(&results, "results");
    assert_int_equal(results.count, 2);
    for (size_t i = 1; i <= 2; i++) {
        assert_string_equal(text_of(&results, i, "group"), "k");
        assert_string_equal(word_of(&results, i, 0), "sh");
        assert_string_equal(word_of(&results, i, 4), i == 1 ? "0" : "3");
        assert_null(word_of(&results, i, 5));
        assert_number(&results, i, "signal", -1);
        assert_number(&results, i, "attempts", 1);
        assert_true(number(&results, i, "queued") > 1e9);
        assert_true(number(&results, i, "queued") <= number(&results, i, "started"));
        assert_true(number(&results, i, "started") <= number(&results, i, "ended"));
    }
    assert_string_equal(word_of(&results, 2, 2), "exit $1");
    assert_number(&results, 1, "exit", 0);
    assert_string_equal(text_of(&results, 1, "reason"), "done");
    assert_number(&results, 2, "exit", 3);
    assert_string_equal(text_of(&results, 2, "reason"), "failed");
    free(results.text);
}

static void test_results_of_a_signal_have_no_exit(void)
{
    static struct results results;

    assert_status(MAP("a\n", "--results", "signal", "--", "sh", "-c", "kill -15 $$", "{}"), 1);
    read_results(&results, "signal");
    assert_number(&results, 1, "exit", -1);
    assert_number(&results, 1, "signal", 15);
    free(results.text);
}

static void test_results_keep_bytes_that_are_no_text(void)
{
    static struct results results;

    assert_status(MAP("\xff\xc3(\"\\\x01\n", "--results", "bytes", "--", "true"), 0);
    read_results(&results, "bytes");
    assert_string_equal(word_of(&results, 1, 1), "\xff\xc3(\"\\\x01");
    assert_contains(results.text, "\\udcff");
    free(results.text);
}

static void test_results_have_bad_input_as_well(void)
{
    static struct results results;

    assert_status(MAP("?\n", "--jsonl", "--results", "bad", "--", "echo", "{a}"), 1);
    read_results(&results, "bad");
    assert_string_equal(text_of(&results, 1, "reason"), "bad_input");
    assert_null(word_of(&results, 1, 0));
    assert_number(&results, 1, "started", -1);
    free(results.text);
}

static void test_results_do_not_destroy_an_older_file(void)
{
    scratch_write("old", "old\n", 0);
    assert_ran(MAP("", "--results", "old", "--", "true"), 255, "",
               "weir: --results old: it has results already: remove it, or use --if-exists append "
               "or --if-exists new\n");
    assert_string_equal(scratch_read("old"), "old\n");
}

static void test_results_that_cannot_be_opened(void)
{
    assert_ran(MAP("a\n", "--results", "no/such", "--", "echo"), 255, "",
               "weir: --results no/such: No such file or directory\n");
    assert_ran(MAP("a\n", "--results", ".", "--", "echo"), 255, "",
               "weir: --results .: Is a directory\n");
}

/* ---- when nothing more goes out ------------------------------------------------------------------ */

static void test_results_on_a_full_disk_are_an_error(void)
{
    const struct ran *r = MAP("a\n", "--results", "/dev/full", "--", "echo");

    assert_status(r, 255);
    assert_string_equal(r->out, "a\n");
    assert_contains(r->err, "weir: --results /dev/full: No space left on device");
}

static void test_a_full_disk_for_output_ends_the_run(void)
{
    const struct ran *r = SCRIPT(
        "1\n2\n", "weir map -j2 -- sh -c '[ $1 = 1 ] || exec sleep 1000; echo $1' sh >/dev/full");

    assert_status(r, 255);
    assert_contains(r->err, "weir: cannot write to standard output: No space left on device; ");
}

/* It is noticed with the next thing to be written, which is the second command's line. */
static void test_a_reader_that_goes_away_ends_the_run_without_a_word(void)
{
    const struct ran *r =
        SCRIPT("1\n2\n3\n", "weir map -j3 -- sh -c 'case $1 in 3) exec sleep 1000;; "
                            "2) until [ -e reader.gone ]; do :; done;; esac; echo $1' sh | "
                            "{ head -1; exec <&-; touch reader.gone; }");

    assert_ran(r, 0, "1\n", "");
}

static void test_a_reader_that_goes_away_is_status_255(void)
{
    const struct ran *r = sound(command_run(&(struct command){
        .argv =
            WORDS("/bin/bash", "-c", "yes | weir map -- echo | head -1; exit ${PIPESTATUS[1]}") }));

    assert_ran(r, 255, "y\n", "");
}

static void test_closed_standard_output_is_an_error_if_something_is_to_be_written(void)
{
    const struct ran *r = SCRIPT("a\n", "weir map -- true >&-");

    assert_ran(r, 0, "", "");
    r = SCRIPT("a\n", "weir map -- echo >&-");
    assert_status(r, 255);
    assert_contains(r->err, "weir: cannot write to standard output: it is closed; ending the ");
}

static void test_closed_standard_error_is_no_reason_to_hang(void)
{
    const struct ran *r = SCRIPT("a\n", "weir map -- sh -c 'echo $1; echo $1 >&2' sh 2>&-");

    assert_true(r->status == 0 || r->status == 255);
    assert_string_equal(r->out, "a\n");
}

static const struct ran *map_without_room(const char *script)
{
    return sound(command_run(&(struct command){
        .argv = WORDS(WEIR_COMMAND, "map", "-j1", "--grace", "200ms", "--results", "lost",
                      "--if-exists", "new", "--", "sh", "-c", script),
        .input = "1\n2\n",
        .env = WORDS("TMPDIR=/nowhere/at/all"),
    }));
}

static void test_output_that_cannot_be_kept_ends_its_command_alone(void)
{
    const struct ran *r = map_without_room("[ {} = 2 ] || yes; echo {}");
    static struct results results;

    assert_status(r, 1);
    assert_contains(r->err,
                    "weir: task 1: cannot store its output in /nowhere/at/all: No such file or "
                    "directory; ending the command\n");
    assert_contains(r->err, "the first: task 1 ran, but its output could not be written (No such "
                            "file or directory)\n");
    assert_contains(r->out, "2\n");
    read_results(&results, "lost");
    assert_string_equal(text_of(&results, 1, "reason"), "output_lost");
    assert_string_equal(text_of(&results, 2, "reason"), "done");
    free(results.text);
}

static void test_a_command_that_ignores_term_is_killed_if_its_output_cannot_be_kept(void)
{
    const struct ran *r = map_without_room("trap '' TERM; [ {} = 2 ] || yes; echo {}");

    assert_status(r, 1);
}

static void test_a_full_temporary_directory_ends_the_command_that_fills_it(void)
{
    const struct ran *r;

    if (system("unshare -m true 2>&1") != 0)
        skip(); /* mounting is not for us */
    mkdir(scratch("small"), 0777);
    r = SCRIPT("1\n2\n", "exec unshare -m sh -c 'mount -t tmpfs -o size=256k none small && "
                         "TMPDIR=small exec weir map -j1 -- sh -c \"[ {} = 2 ] || yes; echo {}\"'");
    assert_status(r, 1);
    assert_contains(r->err,
                    "weir: task 1: cannot store its output in small: No space left on device");
    assert_contains(r->err, "task 1 ran, but its output could not be written (No space left on "
                            "device)\n");
    assert_contains(r->out, "2\n");
}

static void test_nothing_is_left_in_the_temporary_directory(void)
{
    mkdir(scratch("temporary"), 0777);
    assert_status(sound(command_run(&(struct command){
                      .argv = WORDS(WEIR_COMMAND, "map", "--", "sh", "-c",
                                    "yes | head -c 500000; : $1", "sh", "{}"),
                      .input = "1\n2\n",
                      .env = WORDS("TMPDIR=temporary"),
                  })),
                  0);
    assert_int_equal(rmdir(scratch("temporary")), 0); /* it is empty */
}

/* ---- dry run ------------------------------------------------------------------------------------- */

static void test_dry_run_prints_commands_for_a_shell_and_runs_none(void)
{
    assert_ran(MAP("a b\nit's\n\n$x\n", "--dry-run", "--", "touch", "dry", "{}"), 0,
               "touch dry 'a b'\ntouch dry 'it'\\''s'\ntouch dry ''\ntouch dry '$x'\n", "");
    assert_null(scratch_read("dry"));
}

static void test_dry_run_of_a_script_does_the_same_as_the_run(void)
{
    const struct ran *r =
        SCRIPT("it's\n$(x) \"\n", "weir map --dry-run --shell -- 'printf \"<%s>\" {}' | sh");

    assert_ran(r, 0, "<it's><$(x) \">", "");
}

static void test_dry_run_counts_tasks_that_could_not_run(void)
{
    const struct ran *r = MAP("{}\n{\"a\":1}\n", "--dry-run", "--jsonl", "--", "echo", "{a}");

    assert_ran(r, 1, "echo 1\n", "weir: line 1: the object has no field \"a\"\n");
}

static void test_dry_run_needs_no_such_command(void)
{
    assert_ran(MAP("a\n", "--dry-run", "--", "no-such-command"), 0, "no-such-command a\n", "");
}

static void test_dry_run_to_a_full_disk_is_an_error(void)
{
    assert_ran(SCRIPT("a\n", "weir map --dry-run -- echo >/dev/full"), 255, "",
               "weir: standard output: No space left on device\n");
}

/* ---- progress ------------------------------------------------------------------------------------ */

static void test_progress_always_says_so_at_the_end_too(void)
{
    const struct ran *r = MAP("a\nb\n", "--progress", "always", "--", "true");

    assert_status(r, 0);
    assert_string_equal(r->out, "");
    assert_contains(r->err, "2");
}

static void test_a_short_run_shows_no_progress_in_a_pipe(void)
{
    assert_ran(MAP("a\n", "--progress", "auto", "--", "true"), 0, "", "");
    assert_ran(MAP("a\n", "--progress", "never", "--", "true"), 0, "", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_large_outputs_are_not_mixed),
        TEST(test_output_comes_when_a_command_has_ended),
        TEST(test_one_at_a_time_prints_in_the_order_of_the_input),
        TEST(test_errors_go_to_standard_error),
        TEST(test_output_of_failed_commands_is_printed_too),
        TEST(test_bytes_are_printed_as_they_are),
        TEST(test_keep_order_prints_in_the_order_of_the_input),
        TEST(test_keep_order_goes_past_those_that_failed_or_wrote_nothing),
        TEST(test_keep_order_goes_past_bad_input),
        TEST(test_tag_begins_each_line),
        TEST(test_tag_is_the_group_if_there_are_groups),
        TEST(test_tag_is_a_text_with_placeholders),
        TEST(test_tag_of_a_missing_field_is_bad_input),
        TEST(test_tag_of_a_large_output),
        TEST(test_line_buffer_prints_lines_before_the_command_ends),
        TEST(test_line_buffer_never_mixes_lines),
        TEST(test_line_buffer_treats_errors_likewise),
        TEST(test_line_buffer_ends_a_last_line_that_has_no_newline),
        TEST(test_line_buffer_ends_a_long_last_line_too),
        TEST(test_line_buffer_ends_with_its_last_line),
        TEST(test_line_buffer_does_not_join_a_failed_attempt_to_the_next),
        TEST(test_files_take_the_outputs),
        TEST(test_files_hold_the_last_attempt),
        TEST(test_files_need_a_directory),
        TEST(test_results_tell_what_became_of_each),
        TEST(test_results_of_a_signal_have_no_exit),
        TEST(test_results_keep_bytes_that_are_no_text),
        TEST(test_results_have_bad_input_as_well),
        TEST(test_results_do_not_destroy_an_older_file),
        TEST(test_results_that_cannot_be_opened),
        TEST(test_results_on_a_full_disk_are_an_error),
        TEST(test_a_full_disk_for_output_ends_the_run),
        TEST(test_a_reader_that_goes_away_ends_the_run_without_a_word),
        TEST(test_a_reader_that_goes_away_is_status_255),
        TEST(test_closed_standard_output_is_an_error_if_something_is_to_be_written),
        TEST(test_closed_standard_error_is_no_reason_to_hang),
        TEST(test_output_that_cannot_be_kept_ends_its_command_alone),
        TEST(test_a_command_that_ignores_term_is_killed_if_its_output_cannot_be_kept),
        TEST(test_a_full_temporary_directory_ends_the_command_that_fills_it),
        TEST(test_nothing_is_left_in_the_temporary_directory),
        TEST(test_dry_run_prints_commands_for_a_shell_and_runs_none),
        TEST(test_dry_run_of_a_script_does_the_same_as_the_run),
        TEST(test_dry_run_counts_tasks_that_could_not_run),
        TEST(test_dry_run_needs_no_such_command),
        TEST(test_dry_run_to_a_full_disk_is_an_error),
        TEST(test_progress_always_says_so_at_the_end_too),
        TEST(test_a_short_run_shows_no_progress_in_a_pipe),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
