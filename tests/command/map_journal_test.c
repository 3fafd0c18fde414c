/* weir map --journal: what ran, what runs again, and what survives a sudden end.
 * SPDX-License-Identifier: MIT */
#include "command/command.h"
#include "support/sanitized.h"
#include "support/seed.h"

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

#define LOG(...) \
    sound(command_run(&(struct command){ .argv = WORDS(WEIR_COMMAND, "log", __VA_ARGS__) }))

/* ---- what runs again ------------------------------------------------------------------------------ */

/* Two runs on one journal; `shell` runs both, with $weir for the command and its journal. */
struct edit {
    const char *what, *first, *second, *runs_again;
};

#define M "$weir -k -j1 "

static const struct edit edits[] = {
    { "nothing", "printf 'a\\nb\\n' | " M "-- echo", "printf 'a\\nb\\n' | " M "-- echo", "" },
    { "a line more", "printf 'a\\nb\\n' | " M "-- echo", "printf 'a\\nb\\nc\\n' | " M "-- echo",
      "c\n" },
    { "a line less", "printf 'a\\nb\\n' | " M "-- echo", "printf 'b\\n' | " M "-- echo", "" },
    { "another order", "printf 'a\\nb\\nc\\n' | " M "-- echo",
      "printf 'c\\na\\nb\\n' | " M "-- echo", "" },
    { "a line in front", "printf 'a\\nb\\n' | " M "-- echo", "printf 'x\\na\\nb\\n' | " M "-- echo",
      "x\n" },
    { "a line twice", "printf 'a\\nb\\n' | " M "-- echo", "printf 'a\\nb\\na\\n' | " M "-- echo",
      "a\n" },
    { "a line changed", "printf 'a 1\\nb 2\\n' | " M "-- echo",
      "printf 'a 1\\nb 3\\n' | " M "-- echo", "b 3\n" },
    { "another command", "printf 'a\\nb\\n' | " M "-- echo", "printf 'a\\nb\\n' | " M "-- echo x",
      "x a\nx b\n" },
    { "a column that the command does not use", "echo 'a 1' | " M "-- echo {1}",
      "echo 'a 2' | " M "-- echo {1}", "a\n" },
    { "numbers and slots", "printf 'a\\nb\\n' | " M "-- echo {seq} {%} {}",
      "printf 'x\\na\\nb\\n' | " M "-- echo {seq} {%} {}", "1 1 x\n" },
    { "another group", "echo 'a 1' | " M "-g1 -- echo {}", "echo 'a 1' | " M "-g2 -- echo {}",
      "a 1\n" },
    { "declared environment", "echo a | " M "--env X=1 -- echo", "echo a | " M "--env X=2 -- echo",
      "a\n" },
    { "a variable that is named", "echo a | X=1 " M "--env X -- echo",
      "echo a | X=2 " M "--env X -- echo", "a\n" },
    { "environment that is not declared", "echo a | X=1 " M "-- echo", "echo a | X=2 " M "-- echo",
      "" },
    { "another directory", "echo a | " M "--cwd / -- echo", "echo a | " M "--cwd /tmp -- echo",
      "a\n" },
    { "limits and outputs", "echo a | " M "-- echo",
      "echo a | " M "-j8 --timeout 9s --tag --progress never -- echo", "" },
    { "a file instead of a pipe", "echo a | " M "-- echo", "echo a >a.in; " M "-a a.in -- echo",
      "" },
    { "values instead of lines", "printf 'a\\nb\\n' | " M "-- echo", M "-- echo ::: b a", "" },
    { "batches", "printf 'a\\nb\\nc\\n' | " M "-n2 -- echo",
      "printf 'a\\nb\\nc\\nd\\n' | " M "-n2 -- echo", "c d\n" },
    { "what failed", "echo 1 | " M "--shell -- 'echo {}; exit {}'; :",
      "echo 1 | " M "--shell -- 'echo {}; exit {}'; :", "" },
    { "what failed, if asked", "echo 1 | " M "--shell -- 'echo {}; exit {}'; :",
      "echo 1 | " M "--retry-failed --shell -- 'echo {}; exit {}'; :", "1\n" },
};

static void test_an_edit_decides_which_tasks_run_again(void)
{
    for (size_t i = 0; i < sizeof(edits) / sizeof(*edits); i++) {
        char line[1000];
        const struct ran *r;
        snprintf(line, sizeof(line),
                 "rm -f edit.journal*; weir='weir map --journal edit.journal --resume'; "
                 "(%s) >/dev/null 2>&1; (%s) 2>/dev/null",
                 edits[i].first, edits[i].second);
        r = SCRIPT(NULL, line);
        if (strcmp(r->out, edits[i].runs_again))
            print_message("%s:\n", edits[i].what);
        assert_string_equal(r->out, edits[i].runs_again);
        assert_status(r, 0);
    }
}

/* ---- the log -------------------------------------------------------------------------------------- */

static void test_the_log_says_what_became_of_tasks(void)
{
    const struct ran *r =
        MAP("a 0\nb 3\n", "-j1", "-g1", "--journal", "said", "--shell", "--", "exit {2}");

    assert_status(r, 1);
    r = LOG("--failed", "--format", "jsonl", "said");
    assert_status(r, 0);
    assert_contains(r->out, "{\"run\":1,\"seq\":2,\"group\":\"b\",\"reason\":\"failed\",\"exit\":3,"
                            "\"signal\":null,\"attempts\":1,\"seconds\":");
    assert_contains(r->out, "\"record\":\"b 3\",\"command\":[\"/bin/sh\",\"-c\",");
    assert_lacks(r->out, "\"group\":\"a\"");
    r = LOG("--by-group", "--format", "csv", "said");
    assert_contains(r->out, "group,tasks,done,failed,average,slowest\na,1,1,0,");
    assert_contains(r->out, "\nb,1,0,1,");
    r = LOG("--slowest", "1", "said");
    assert_contains(r->out,
                    "run\tseq\tgroup\treason\texit\tsignal\tattempts\tseconds\trecord\tcommand\n");
    assert_status(LOG("no-such"), 255);
    assert_contains(LOG("--format", "xml", "said")->err, "use text, jsonl or csv");
}

static void test_options_of_the_log_may_stand_behind_the_file(void)
{
    SCRIPT(NULL, "weir map -j1 --journal behind -- sh -c 'exit $1' sh ::: 0 1");
    assert_ran(SCRIPT(NULL, "weir log behind --format csv --failed | cut -d, -f2,4"), 0,
               "seq,reason\n2,failed\n", "");
    assert_ran(SCRIPT(NULL, "weir log --failed -- behind | wc -l"), 0, "2\n", "");
    assert_contains(SCRIPT(NULL, "weir log behind behind")->err, "which journal?");
    assert_contains(SCRIPT(NULL, "weir log behind --nonsense")->err, "--nonsense: no such option");
}

static void test_the_log_says_why_something_ran_again(void)
{
    const struct ran *r;

    SCRIPT(NULL, "printf 'a\\nb\\n' | weir map -j1 --journal why --resume -- echo; "
                 "printf 'a\\nb\\nc\\n' | weir map -j1 --journal why --resume -- echo x");
    r = LOG("--why-rerun", "--format", "csv", "why");
    assert_ran(r, 0,
               "seq,group,why,record,command\n1,,the command changed,a,echo x a\n"
               "2,,the command changed,b,echo x b\n3,,it is new,c,echo x c\n",
               "");
    SCRIPT(NULL, "weir map --journal why -- echo x ::: c");
    r = LOG("--why-rerun", "--format", "csv", "why");
    assert_contains(r->out, "\"it had not succeeded, or --resume was not given\",c,");
}

static void test_the_log_is_read_without_write_access(void)
{
    const struct ran *r = SCRIPT(
        "a\n", "chmod 755 . && mkdir -m 755 ro && weir map --journal ro/j -- true && chmod 444 "
               "ro/j && chmod 555 ro && "
               "if [ $(id -u) = 0 ]; then exec setpriv --reuid 65534 --clear-groups weir log ro/j; "
               "else exec weir log ro/j; fi");

    if (r->status == 127 || strstr(r->err, "Permission denied"))
        skip(); /* the scratch directory is not for others */
    assert_status(r, 0);
    assert_contains(r->out, "done");
    SCRIPT(NULL, "chmod 755 ro");
}

/* ---- one at a time, and only journals -------------------------------------------------------------- */

static void test_a_second_weir_is_told_which_one_uses_the_journal(void)
{
    char pid[40];
    const struct ran *r = SCRIPT(
        NULL,
        "mkfifo held.fifo; weir map --journal held -- true <held.fifo & echo $!; exec 9>held.fifo; "
        "until weir log held >/dev/null 2>&1; do sleep 0.02; done; "
        "weir map --journal held -- true </dev/null; echo $?; exec 9>&-; wait");

    snprintf(pid, sizeof(pid), "held: process %d uses this journal (", atoi(r->out));
    assert_contains(r->err, pid);
    assert_contains(r->out, "\n255\n");
}

static void test_a_file_of_another_kind_is_not_touched(void)
{
    scratch_write("text", "precious\n", 0);
    assert_ran(MAP("a\n", "--journal", "text", "--", "echo"), 255, "",
               "weir: --journal text: not a journal of weir; name another file\n");
    assert_string_equal(scratch_read("text"), "precious\n");
}

static void test_a_damaged_journal_is_moved_aside_and_named(void)
{
    const struct ran *r = SCRIPT(
        NULL, "seq 500 | weir map -j2 --journal hurt -n1 -- true && "
              "head -c 40000 /dev/zero | tr '\\0' x | dd of=hurt bs=4096 seek=1 conv=notrunc "
              "2>/dev/null; echo a | weir map --journal hurt --resume -- echo; ls hurt.damaged-* | "
              "wc -l");

    assert_status(r, 0);
    assert_contains(r->err, "weir: hurt is damaged: it was moved to hurt.damaged-2");
    assert_contains(r->out, "a\n");
    assert_status(LOG("hurt"), 0);
}

/* Two within a second have two names. */
static void test_damaged_journals_are_all_kept(void)
{
    const struct ran *r =
        SCRIPT(NULL, "for i in 1 2 3; do seq 50 | weir map -j2 --journal twice -- true; "
                     "printf 'SQLite format 3\\0%0200d' $i >twice; rm -f twice-*; "
                     "echo a | weir map --journal twice --resume -- true; rm twice; done 2>&1 | "
                     "grep -c 'is damaged'; cat twice.damaged-*[0-9] | tr -d '\\0' | tail -c 700");

    assert_contains(r->out, "3\n");
    for (int i = 1; i <= 3; i++) {
        char end[20];
        snprintf(end, sizeof(end), "000%d", i);
        assert_contains(r->out, end);
    }
}

static void test_a_journal_that_cannot_be_written_is_told_with_the_reason(void)
{
    const struct ran *r = SCRIPT("a\n", "ulimit -f 0; weir map --journal limited -- echo");

    assert_ran(r, 255, "", "weir: --journal limited: File too large\n");
    r = SCRIPT("a\n", "mkdir vanished; cd vanished; rmdir ../vanished; "
                      "weir map --journal \"$OLDPWD/nowhere\" -- echo");
    assert_status(r, 255);
    assert_contains(r->err, "nowhere: the current directory: No such file or directory\n");
}

static void test_a_path_that_is_no_file_is_no_journal(void)
{
    assert_ran(SCRIPT("a\n", "mkfifo pipe; weir map --journal pipe -- echo"), 255, "",
               "weir: --journal pipe: not a regular file; name another\n");
    assert_ran(LOG("pipe"), 255, "", "weir: pipe: not a regular file\n");
    assert_ran(LOG("/dev/null"), 255, "", "weir: /dev/null: not a regular file\n");
}

static void test_resume_needs_a_journal(void)
{
    assert_contains(MAP("", "--resume", "--", "echo")->err,
                    "--resume and --retry-failed need a journal: --journal FILE");
}

/* ---- sudden ends ----------------------------------------------------------------------------------- */

enum { TASKS = 60, LINE = 16 };

/* All of a journal that lies in that directory, indexes too, is as SQLite wants it. None is fine. */
static void assert_intact(const char *directory)
{
    char path[500];
    sqlite3 *database;
    sqlite3_stmt *statement;

    snprintf(path, sizeof(path), "%s/j", scratch(directory));
    if (access(path, F_OK) != 0)
        return;
    assert_int_equal(sqlite3_open_v2(path, &database, SQLITE_OPEN_READWRITE, NULL), 0);
    assert_int_equal(sqlite3_prepare_v2(database, "PRAGMA integrity_check", -1, &statement, NULL),
                     0);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(statement, 0), "ok");
    sqlite3_finalize(statement);
    sqlite3_close(database);
}

/* Counts lines "1" to "TASKS" of a text from `from` on. */
static void count_lines(int *count, const char *text, size_t from)
{
    const char *at = text + from, *end;

    for (; (end = strchr(at, '\n')); at = end + 1) {
        int n = atoi(at);
        if (n >= 1 && n <= TASKS)
            count[n]++;
    }
}

/* Tasks a series of runs has told of, and tasks its commands have done. */
struct trial {
    int told[TASKS + 1], done[TASKS + 1];
    size_t effects; /* bytes of the file of effects so far */
};

static void check_run(struct trial *t, const struct ran *r)
{
    int again[TASKS + 1] = { 0 };
    const char *effects = scratch_read("effects");
    char *copy = strdup(effects ? effects : "");

    count_lines(again, copy, t->effects);
    t->effects = strlen(copy);
    free(copy);
    for (int i = 1; i <= TASKS; i++) {
        if (again[i] && t->told[i])
            fail_msg("task %d ran again after it was told as done", i);
        t->done[i] += again[i];
    }
    count_lines(t->told, r->out, 0);
    for (int i = 1; i <= TASKS; i++)
        if (t->told[i] > 1)
            fail_msg("task %d was told %d times", i, t->told[i]);
}

static const char *input(void)
{
    static char text[TASKS * LINE];

    if (!text[0])
        for (int i = 1; i <= TASKS; i++)
            snprintf(text + strlen(text), LINE, "%d\n", i);
    return text;
}

static void begin_trial(struct trial *t)
{
    *t = (struct trial){ .effects = 0 };
    SCRIPT(NULL, "rm -f effects killed killed-wal killed-shm");
    scratch_write("killed.in", input(), 0);
}

static void start_one(void)
{
    command_start(
        &(struct command){ .argv = WORDS(WEIR_COMMAND, "map", "-j3", "-a", "killed.in", "--journal",
                                         "killed", "--resume", "--", MAP_CHILD, "note", "effects"),
                           .leaves = true });
}

/* Kills at random moments until a run comes through; answers how many were killed. */
static int kill_until_done(struct trial *t, struct luck *luck)
{
    int killed = 0, status;

    for (;;) {
        const struct ran *r;
        start_one();
        usleep((useconds_t)luck_below(luck, (SANITIZED ? 400000 : 30000) +
                                                5000 * (uint64_t)killed)); /* or none would end */
        kill(command_pid(), SIGKILL);
        r = command_finish();
        check_run(t, r);
        status = r->status;
        /* A copy: to look at it is to repair it. */
        SCRIPT(NULL, "rm -rf seen; mkdir seen; [ ! -e killed ] || cp killed seen/j; "
                     "[ ! -e killed-wal ] || cp killed-wal seen/j-wal");
        assert_intact("seen");
        if (status != 128 + SIGKILL)
            return killed;
        killed++;
        assert_true(killed < 10000);
    }
}

static void test_a_task_told_as_done_does_not_run_again_after_kill_9(void)
{
    struct luck luck = luck_of(1);
    const int wanted = SANITIZED ? 60 : 500;
    struct trial t;

    for (int killed = 0; killed < wanted;) {
        begin_trial(&t);
        killed += kill_until_done(&t, &luck);
        assert_status(LOG("killed"), 0);
        for (int i = 1; i <= TASKS; i++)
            if (!t.done
                     [i]) /* what was recorded, but killed before it was told, is done all the same */
                fail_msg("task %d has not run", i);
    }
}

enum { FULL_DISKS = SANITIZED ? 15 : 100 };

/* A journal on a file system of a few pages: runs fail, and go on when there is room. */
static void test_a_full_disk_loses_nothing_that_was_told(void)
{
    char line[3000], saved[40];
    const struct ran *r;

    if (system("unshare -m true 2>&1") != 0)
        skip(); /* mounting is not for us */
    snprintf(
        line, sizeof(line),
        "cat >numbers; mkdir tiny saved; : >fulls; cat >trial <<'END'\n"
        "i=0\n"
        "while [ $(wc -l <fulls) -lt %d ] && [ $i -lt 1000 ]; do\n"
        "  i=$((i + 1))\n"
        "  mount -t tmpfs -o size=$((28 + i %% 25 * 4))k none tiny || exit 9\n"
        "  rm -f disk.effects told; : >told\n"
        "  weir map -j3 -a numbers --journal tiny/j --resume -- " MAP_CHILD
        " note disk.effects >>told 2>err; first=$?\n"
        "  [ $first = 0 ] || [ $first = 255 ] || { echo status $first; cat err; exit 1; }\n"
        "  [ $first = 0 ] || grep -q 'No space left on device' err || { cat err; exit 7; }\n"
        "  ! grep 'the first: $' err || exit 8\n"
        "  [ $first = 0 ] || { echo full >>fulls; n=$(wc -l <fulls); mkdir saved/$n; }\n"
        "  [ $first = 0 ] || cp tiny/j* saved/$n 2>/dev/null || :\n"
        "  sort told >told.before; : >disk.effects.new\n"
        "  mv disk.effects effects.before 2>/dev/null || : >effects.before\n"
        "  mount -o remount,size=4m tiny || exit 9\n"
        "  weir map -j3 -a numbers --journal tiny/j --resume -- " MAP_CHILD
        " note disk.effects >>told 2>err || { cat err; exit 2; }\n"
        "  [ -e disk.effects ] || : >disk.effects\n"
        "  sort disk.effects | comm -12 - told.before >again; [ ! -s again ] || { echo again; cat "
        "again; exit 3; }\n"
        "  cat effects.before disk.effects | sort -nu | cmp - numbers || exit 4\n"
        "  sort -n told | cmp - numbers || exit 5\n"
        "  weir log tiny/j >/dev/null || exit 6\n"
        "  umount tiny\n"
        "done\n"
        "echo $(wc -l <fulls)\n"
        "END\n"
        "exec unshare -m sh trial",
        FULL_DISKS);
    r = SCRIPT(input(), line);
    assert_status(r, 0);
    assert_int_equal(atoi(r->out), FULL_DISKS);
    for (int i = 1; i <= FULL_DISKS; i++) {
        snprintf(saved, sizeof(saved), "saved/%d", i);
        assert_intact(saved);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_an_edit_decides_which_tasks_run_again),
        TEST(test_the_log_says_what_became_of_tasks),
        TEST(test_options_of_the_log_may_stand_behind_the_file),
        TEST(test_the_log_says_why_something_ran_again),
        TEST(test_the_log_is_read_without_write_access),
        TEST(test_a_second_weir_is_told_which_one_uses_the_journal),
        TEST(test_a_file_of_another_kind_is_not_touched),
        TEST(test_a_damaged_journal_is_moved_aside_and_named),
        TEST(test_damaged_journals_are_all_kept),
        TEST(test_a_journal_that_cannot_be_written_is_told_with_the_reason),
        TEST(test_a_path_that_is_no_file_is_no_journal),
        TEST(test_resume_needs_a_journal),
        TEST(test_a_task_told_as_done_does_not_run_again_after_kill_9),
        TEST(test_a_full_disk_loses_nothing_that_was_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
