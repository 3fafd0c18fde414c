/* weir map --journal on a file system of another machine: here FUSE, whose files may be anywhere.
 * SPDX-License-Identifier: MIT */
#include "command/command.h"
#include "command/fuse_directory.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

static bool mounted;

static int mount_it(void **state)
{
    char from[300], to[300];

    (void)state;
    snprintf(from, sizeof(from), "%s", scratch("behind"));
    snprintf(to, sizeof(to), "%s", scratch("remote"));
    if (mkdir(from, 0700) < 0 || mkdir(to, 0700) < 0)
        return -1;
    mounted = fuse_directory_mount(from, to);
    if (!mounted)
        print_message("no FUSE here: skipped\n");
    return 0;
}

static void need_mount(void)
{
    if (!mounted)
        skip();
}

/* One file, and none of the shared memory that needs one machine. */
static void test_a_journal_there_has_no_shared_memory_and_says_so(void)
{
    const struct ran *r;

    need_mount();
    r = MAP("a\nb\n", "-j1", "--journal", "remote/plain", "--resume", "--", "echo");
    assert_ran(r, 0, "a\nb\n",
               "weir: remote/plain is on a network file system: commits are slower there\n");
    assert_ran(SCRIPT(NULL, "ls behind; head -c 20 behind/plain | od -An -tu1 -j18"), 0,
               "plain\n   1   1\n", ""); /* 2 2 would be a write-ahead log */
}

static void test_a_later_run_goes_on_there(void)
{
    need_mount();
    MAP("a\nb\n", "-j1", "--journal", "remote/on", "--resume", "--", "echo");
    assert_string_equal(
        MAP("b\nc\na\n", "-j1", "--journal", "remote/on", "--resume", "--", "echo")->out, "c\n");
    assert_contains(SCRIPT(NULL, "weir log remote/on")->out, "\tdone\t0\t");
}

static void test_a_second_weir_is_refused_there(void)
{
    const struct ran *r;

    need_mount();
    r = SCRIPT(NULL, "mkfifo held; weir map --journal remote/held -- true <held & exec 9>held; "
                     "until weir log remote/held >/dev/null 2>&1; do sleep 0.02; done; "
                     "weir map --journal remote/held -- true </dev/null; echo $?; exec 9>&-; wait");
    assert_contains(r->err, "weir: remote/held: process ");
    assert_string_equal(r->out, "255\n");
}

/* Without shared memory a process that reads keeps others from writing meanwhile: both have to wait a little. */
static void test_a_journal_that_is_read_all_the_time_is_written_there(void)
{
    need_mount();
    assert_ran(SCRIPT(NULL,
                      "weir map --journal remote/r -- true ::: 0 2>/dev/null; "
                      "while [ ! -e over ]; do weir log remote/r >/dev/null || echo bad; done & "
                      "seq 200 | weir map -j2 --journal remote/r --resume -- true 2>/dev/null; "
                      "echo $?; touch over; wait"),
               0, "0\n", "");
}

/* The purpose of a rollback journal. A command kills weir, while others are on their way into the journal. */
static void test_a_task_told_there_does_not_run_again_after_kill_9(void)
{
    static const char script[] =
        "cat >one <<'END'\necho $1; [ $1 != 20 ] || kill -9 $PPID\nEND\n"
        "rm -f behind/k*; weir map -j2 --journal remote/k --resume -- sh one ::: $(seq 40) >told; "
        "weir map -j2 --journal remote/k --resume -- sh one ::: $(seq 19) >again 2>/dev/null; "
        "weir log remote/k >/dev/null && sort told again | uniq -d | wc -l";

    need_mount();
    for (int i = 0; i < (SANITIZED ? 3 : 10); i++)
        assert_string_equal(SCRIPT(NULL, script)->out, "0\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_journal_there_has_no_shared_memory_and_says_so),
        TEST(test_a_later_run_goes_on_there),
        TEST(test_a_second_weir_is_refused_there),
        TEST(test_a_journal_that_is_read_all_the_time_is_written_there),
        TEST(test_a_task_told_there_does_not_run_again_after_kill_9),
    };

    return cmocka_run_group_tests(tests, mount_it, NULL);
}
