/* The weir command in a real pseudo-terminal: what a person sees of it, and what it leaves behind.
 * SPDX-License-Identifier: MIT */
#include "command/weir_run.h"

static const struct terminal_options usual = { .cols = 80, .rows = 24, .in = "in" };

/* Each of a group waits at the group's gate, and fails in the group named bad. */
#define WAIT_AT_GATE "sh", "-c", "read x <gate-$1; [ $1 != bad ]", "sh", "{1}"

/* ---- the display --------------------------------------------------------------------------------- */

static void test_each_group_has_a_line_with_its_counts(void)
{
    int a = gate_new("gate-a"), bad = gate_new("gate-bad"), c = gate_new("gate-c");
    struct terminal t;

    write_file("in", "a 1\na 2\na 3\na 4\nbad 1\nc 1\nbad 2\n");
    terminal_start(&t, &usual, WEIR("map", "-j9", "-J2", "--group-by", "1", "--", WAIT_AT_GATE));
    SEE(&t, "a             ──────┈┈┈┈┈┈   0/4");
    SEE_THAT(&t, is_raw(&t));
    SEE(&t, "group                       done  run  wait  fail    rate");
    SEE(&t, "  0/4  2/2     2     ·       ·");
    SEE(&t, "  0/2  2/2     ·     ·       ·");
    SEE(&t, "  0/1  1/2     ·     ·       ·");
    SEE(&t, "  0/7    5     2     ·       ·");
    SEE(&t, "w: what waits and why");
    gate_open(bad, 2);
    SEE(&t, "  2/2  0/2     ·     2 ");
    SEE(&t, "  2/7    3     2     2 ");
    SEE(&t, "total    28%");
    gate_open(a, 3);
    SEE(&t, "  3/4  1/2     ·     · ");
    SEE(&t, "  5/7    2     ·     2 ");
    gate_open(a, 1);
    gate_open(c, 1);
    CHECK_EQUAL(terminal_end(&t), 2);
    CHECK(shows(&t, "total   100%"));
    CHECK(shows(&t, "  7/7 "));
    CHECK(shows(&t, "weir: 2 of 7 failed; the first: task "));
    CHECK(!shows(&t, "w: what"));
    CHECK_EQUAL(screen_cursor_col(t.screen), 0);
    terminal_free(&t);
    close(a);
    close(bad);
    close(c);
}

static void test_bars_show_ended_failed_running_and_waiting_tasks(void)
{
    int a = gate_new("gate-a"), bad = gate_new("gate-bad");
    struct terminal t;

    write_file("in", "a 1\na 2\na 3\na 4\nbad 1\nbad 2\n");
    terminal_start(&t, &usual, WEIR("map", "-j2", "-J1", "--group-by", "1", "--", WAIT_AT_GATE));
    gate_open(a, 1);
    gate_open(bad, 1);
    SEE(&t, "a             ━━━───┈┈┈┈┈┈   1/4  1/1     2     · ");
    SEE(&t, "bad           ━━━━━━──────   1/2  1/1     ·     1 ");
    CHECK_EQUAL(strstr(t.raw, "\033[31m━━━━━━\033[0m") != NULL, true);
    gate_open(a, 3);
    gate_open(bad, 1);
    CHECK_EQUAL(terminal_end(&t), 2);
    terminal_free(&t);
    close(a);
    close(bad);
}

static void test_without_groups_there_is_one_bar(void)
{
    int a = gate_new("gate-a");
    struct terminal t;

    write_file("in", "a 1\na 2\na 3\na 4\n");
    terminal_start(&t, &usual, WEIR("map", "-j2", "--", WAIT_AT_GATE));
    SEE(&t, "0/4 done · 2 running · 2 waiting · ");
    gate_open(a, 2);
    SEE(&t, "2/4 done · 2 running · ");
    SEE(&t, "━━━━──");
    CHECK(shows(&t, " 50%"));
    gate_open(a, 2);
    CHECK_EQUAL(terminal_end(&t), 0);
    CHECK(shows(&t, "4/4 done"));
    CHECK(shows(&t, "100%"));
    terminal_free(&t);
    close(a);
}

static void test_a_task_that_waits_for_a_job_names_the_option(void)
{
    int a = gate_new("gate-a"), b = gate_new("gate-b");
    struct terminal t;

    write_file("in", "a 1\nb 1\n");
    terminal_start(&t, &usual, WEIR("map", "-j1", "--group-by", "1", "--", WAIT_AT_GATE));
    SEE_THAT(&t, is_raw(&t));
    type(&t, "w");
    SEE(&t, "b: 1 wait; task 2: all places of -j are in use (1 of 1)");
    gate_open(a, 1);
    gate_open(b, 1);
    CHECK_EQUAL(terminal_end(&t), 0);
    terminal_free(&t);
    close(a);
    close(b);
}

static void test_a_task_that_is_held_back_says_so(void)
{
    struct terminal t;

    write_file("in", "a 1\na 2\na 3\n");
    terminal_start(&t, &usual,
                   WEIR("map", "-j2", "--group-by", "1", "--mem-free", "4000T", "--", "echo"));
    SEE(&t, "held back: ");
    SEE_THAT(&t, is_raw(&t));
    type(&t, "w");
    SEE(&t, "a: 3 wait; task 1: held_back (");
    kill(t.weir, SIGTERM);
    CHECK_EQUAL(terminal_end(&t), 255);
    terminal_free(&t);
}

static void test_w_shows_what_waits_and_why_and_hides_it_again(void)
{
    int a = gate_new("gate-a"), b = gate_new("gate-b");
    struct terminal t;

    write_file("in", "a 1\na 2\na 3\nb 1\n");
    terminal_start(&t, &usual, WEIR("map", "-j4", "-J1", "--group-by", "1", "--", WAIT_AT_GATE));
    SEE(&t, "  0/4    2     2 ");
    SEE_THAT(&t, is_raw(&t));
    type(&t, "w");
    SEE(&t, "a: 2 wait; task 2: the group is at its limit (group \"a\": 1 of 1 in use)");
    CHECK(shows(&t, "w: hide the reasons"));
    CHECK(!shows(&t, "b: "));
    gate_open(a, 1);
    SEE(&t, "a: 1 wait; task 3: ");
    type(&t, "w");
    SEE_NOT(&t, "1 wait; task");
    SEE(&t, "w: what waits and why");
    type(&t, "xyzW"); /* keys without a meaning are not shown */
    SEE(&t, "a: 1 wait; task 3: ");
    gate_open(a, 2);
    gate_open(b, 1);
    CHECK_EQUAL(terminal_end(&t), 0);
    CHECK(!shows(&t, "xyz"));
    CHECK(!shows(&t, "wait; task"));
    CHECK_EQUAL(screen_line(t.screen, 0)[0], 'g'); /* the picture's heading, and nothing above it */
    terminal_free(&t);
    close(a);
    close(b);
}

static void test_more_groups_than_rows_are_counted(void)
{
    const struct terminal_options small = { .cols = 80, .rows = 10, .in = "in" };
    char input[2048] = "";
    struct terminal t;
    int gate = gate_new("gate");

    for (int i = 0; i < 30; i++)
        sprintf(input + strlen(input), "group%d\n", i);
    write_file("in", input);
    terminal_start(
        &t, &small,
        WEIR("map", "-j40", "--group-by", "1", "--", "sh", "-c", "read x <gate # $1", "sh", "{}"));
    SEE(&t, " 0/30   30 ");
    SEE(&t, "… and 24 more groups");
    CHECK_EQUAL(screen_find(t.screen, "group "), 0);
    CHECK_EQUAL(screen_find(t.screen, "group0"), 1);
    type(&t, "w");
    resize(&t, 80, 40);
    SEE(&t, "group29");
    SEE_NOT(&t, "more groups");
    resize(&t, 80, 5);
    SEE(&t, "more groups");
    resize(&t, 80, 10);
    gate_open(gate, 30);
    CHECK_EQUAL(terminal_end(&t), 0);
    CHECK(shows(&t, "30/30"));
    terminal_free(&t);
    close(gate);
}

/* ---- output -------------------------------------------------------------------------------------- */

/* Forty groups wait for their rate; the two that run came last. */
static void test_groups_that_run_are_among_those_shown(void)
{
    int a = gate_new("gate-z1"), b = gate_new("gate-z2");
    char input[4096] = "";
    struct terminal t;

    for (int i = 0; i < 40; i++)
        sprintf(input + strlen(input), "a%d 1\na%d 2\n", i, i);
    strcat(input, "z1 1\nz2 1\n");
    write_file("in", input);
    terminal_start(&t, &usual,
                   WEIR("map", "-j4", "--group-by", "1", "--rate", "a*=1/1h", "--", "sh", "-c",
                        "case $1 in z*) read x <gate-$1; esac", "sh", "{1}"));
    SEE(&t, "z1");
    SEE(&t, "z2");
    SEE(&t, "more groups");
    CHECK_EQUAL(kill(t.weir, SIGTERM), 0);
    CHECK_EQUAL(terminal_end(&t), 255);
    terminal_free(&t);
    close(a);
    close(b);
}

static void test_bars_are_not_full_when_tasks_were_given_up(void)
{
    int a = gate_new("gate-a");
    struct terminal t;

    write_file("in", "a 1\na 2\na 3\na 4\n");
    terminal_start(&t, &usual, WEIR("map", "-j1", "--group-by", "1", "--", WAIT_AT_GATE));
    gate_open(a, 1);
    SEE(&t, "  1/4 ");
    type(&t, "\003");
    SEE(&t, "starting no more");
    gate_open(a, 1);
    CHECK_EQUAL(terminal_end(&t), 255);
    CHECK(shows(&t, "a             ━━━━━━┈┈┈┈┈┈   2/4"));
    terminal_free(&t);
    close(a);
}

static void test_a_command_may_have_the_terminal(void)
{
    struct terminal t;

    write_file("in", "1\n2\n");
    terminal_start(&t, &usual,
                   WEIR("map", "--tty", "-a", "in", "--", "sh", "-c",
                        "printf 'number %s? ' $1; read x; echo got-$x-$1", "sh", "{}"));
    SEE(&t, "number 1?");
    type(&t, "yes\n");
    SEE(&t, "got-yes-1");
    SEE(&t, "number 2?");
    type(&t, "no\n");
    SEE(&t, "got-no-2");
    CHECK_EQUAL(terminal_end(&t), 0);
    terminal_free(&t);
}

static void test_output_goes_above_the_display(void)
{
    const struct terminal_options small = { .cols = 80, .rows = 8, .in = "in" };
    int gate = gate_new("gate");
    struct terminal t;
    char input[512] = "", wanted[1024] = "";

    for (int i = 1; i <= 30; i++) {
        sprintf(input + strlen(input), "%d\n", i);
        sprintf(wanted + strlen(wanted), "line of %d\n", i);
    }
    write_file("in", input);
    terminal_start(
        &t, &small,
        WEIR("map", "-j1", "--", "sh", "-c", "read x <gate; echo line of $1", "sh", "{}"));
    for (int i = 1; i <= 30; i++) {
        char line[32];
        snprintf(line, sizeof(line), "line of %d", i);
        gate_open(gate, 1);
        SEE(&t, line);
    }
    CHECK_EQUAL(terminal_end(&t), 0);
    CHECK_EQUAL(strncmp(screen_text(t.screen), wanted, strlen(wanted)), 0);
    CHECK(strstr(screen_text(t.screen) + strlen(wanted), "30/30 done") != NULL);
    CHECK(strstr(screen_text(t.screen) + strlen(wanted), "line of") == NULL);
    terminal_free(&t);
    close(gate);
}

static void test_output_without_a_newline_is_not_overwritten(void)
{
    int gate = gate_new("gate");
    struct terminal t;

    write_file("in", "1\n2\n3\n");
    terminal_start(&t, &usual,
                   WEIR("map", "-j1", "-k", "--", "sh", "-c",
                        "read x <gate; printf \"part $1\"; printf \"error $1\" >&2", "sh", "{}"));
    SEE(&t, "0/3 done");
    for (int i = 1; i <= 3; i++) {
        char line[32];
        gate_open(gate, 1);
        snprintf(line, sizeof(line), "part %d", i);
        SEE(&t, line);
        snprintf(line, sizeof(line), "error %d", i);
        SEE(&t, line);
    }
    CHECK_EQUAL(terminal_end(&t), 0);
    CHECK(shows(&t, "3/3 done"));
    for (int i = 1; i <= 3; i++) { /* with one of them or with both in a line */
        char line[32];
        snprintf(line, sizeof(line), "part %d", i);
        CHECK_EQUAL(strncmp(screen_line(t.screen, screen_find(t.screen, line)), "part", 4), 0);
    }
    terminal_free(&t);
    close(gate);
}

/* Lines that take several rows, with colours of their own, and more of them than fit. */
static void test_long_lines_of_output_stay_intact(void)
{
    const struct terminal_options small = { .cols = 40, .rows = 10, .in = "in" };
    struct terminal t;
    char wanted[256];
    const char *text;

    write_file("in", "a\nb\nc\nd\ne\nf\n");
    terminal_start(
        &t, &small,
        WEIR("map", "-j2", "--line-buffer", "--shell", "--",
             "printf '\\033[31m%0100d\\033[0m\\n' 7; sleep 0.08; printf '%060d.{}\\n' 8"));
    CHECK_EQUAL(terminal_end(&t), 0);
    screen_resize(t.screen, 200, 50); /* joins what had wrapped */
    text = screen_text(t.screen);
    snprintf(wanted, sizeof(wanted), "%0100d\n", 7);
    for (int i = 0; i < 6; i++) {
        text = strstr(text, wanted);
        if (!CHECK(text != NULL))
            break;
        text += strlen(wanted);
    }
    for (char c = 'a'; c <= 'f'; c++) {
        snprintf(wanted, sizeof(wanted), "%060d.%c", 8, c);
        if (!CHECK(shows(&t, wanted)))
            printf("%s", screen_text(t.screen));
    }
    terminal_free(&t);
}

static void test_only_the_terminal_is_drawn_on(void)
{
    const struct terminal_options into_file = { .cols = 80, .rows = 24, .in = "in", .out = "out" };
    int gate = gate_new("gate");
    struct terminal t;

    write_file("in", "1\n2\n");
    terminal_start(&t, &into_file,
                   WEIR("map", "-j1", "--", "sh", "-c", "read x <gate; echo to-$1", "sh", "{}"));
    SEE(&t, "0/2 done");
    gate_open(gate, 1);
    AWAIT_DOING(count_lines_of("out") == 1, pump(&t, 5)); /* only -k would keep the order */
    gate_open(gate, 1);
    CHECK_EQUAL(terminal_end(&t), 0);
    CHECK(!shows(&t, "to-1"));
    assert_string_equal(read_file("out"), "to-1\nto-2\n");
    terminal_free(&t);
    close(gate);
}

static void test_keys_cannot_write_to_the_terminal(void)
{
    int gate = gate_new("gate");
    struct terminal t;

    write_file("in", "\033[31mred\033[0m\n\033]0;title\007\nbell\007\b\b\n\302\233"
                     "5A\n\377\376\n");
    terminal_start(
        &t, &usual,
        WEIR("map", "-j9", "--group-by", "{}", "--", "sh", "-c", "read x <gate # {seq}"));
    SEE(&t, "  0/5    5 ");
    type(&t, "w");
    SEE(&t, "31mred");
    SEE(&t, "title");
    gate_open(gate, 5);
    CHECK_EQUAL(terminal_end(&t), 0);
    CHECK(strstr(t.raw, "\033[31mred") == NULL);
    CHECK(strstr(t.raw, "\033]") == NULL);
    CHECK(strchr(t.raw, '\007') == NULL);
    CHECK(strchr(t.raw, '\b') == NULL);
    CHECK(strstr(t.raw, "\302\233") == NULL);
    CHECK(strchr(t.raw, '\377') == NULL);
    terminal_free(&t);
    close(gate);
}

/* Also in what is said about a task that failed or has no such field. */
static void test_messages_cannot_write_to_the_terminal(void)
{
    struct terminal t;

    write_file("in", "a\033]0;title\007b 1\n");
    terminal_start(&t, &usual, WEIR("map", "--group-by", "1", "--", "false"));
    CHECK_EQUAL(terminal_end(&t), 1);
    SEE(&t, "the first: task 1");
    CHECK(strstr(t.raw, "\033]") == NULL);
    terminal_free(&t);

    write_file("in", "./no\033]0;title\007such\n");
    terminal_start(&t, &usual, WEIR("map", "--", "{}"));
    CHECK_EQUAL(terminal_end(&t), 1);
    CHECK(strstr(t.raw, "\033]") == NULL);
    terminal_free(&t);
}

/* ---- the terminal's kind and size ------------------------------------------------------------------ */

static void test_a_narrow_window_shows_what_matters(void)
{
    const struct terminal_options narrow = { .cols = 30, .rows = 24, .in = "in" };
    int a = gate_new("gate-a"), bad = gate_new("gate-bad");
    struct terminal t;

    write_file("in", "a 1\na 2\na 3\nbad 1\n");
    terminal_start(&t, &narrow, WEIR("map", "-j9", "-J1", "--group-by", "1", "--", WAIT_AT_GATE));
    SEE(&t, "a          ───┈┈┈┈┈  0/3    ·");
    gate_open(bad, 1);
    SEE(&t, "bad        ━━━━━━━━  1/1    1");
    SEE(&t, "1 running · 2 waiting · ");
    gate_open(a, 3);
    CHECK_EQUAL(terminal_end(&t), 1);
    CHECK_EQUAL(screen_find(t.screen, "group"), 0);
    CHECK_EQUAL(screen_find(t.screen, "a "), 1);
    CHECK_EQUAL(screen_find(t.screen, "bad "), 2);
    CHECK_EQUAL(screen_find(t.screen, "total"), 3);
    terminal_free(&t);
    close(a);
    close(bad);
}

/* How often a text is to be seen, on the screen and above it. */
static int times_seen(struct terminal *t, const char *text)
{
    int times = 0;

    for (const char *at = screen_text(t->screen); (at = strstr(at, text)); at++)
        times++;
    return times;
}

static void test_resizing_leaves_no_garbage(void)
{
    static const int sizes[][2] = { { 30, 24 }, { 120, 24 }, { 60, 12 }, { 25, 30 }, { 80, 24 } };
    int a = gate_new("gate-a"), b = gate_new("gate-b");
    struct terminal t;

    write_file("in", "a 1\na 2\nb 1\nb 2\n");
    terminal_start(&t, &usual, WEIR("map", "-j9", "-J1", "--group-by", "1", "--", WAIT_AT_GATE));
    SEE(&t, "  0/4    2     2 ");
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t before;
        resize(&t, sizes[i][0], sizes[i][1]);
        before = t.length;
        SEE_THAT(&t, t.length > before && strstr(t.raw + before, "\033[?2026l"));
        SEE(&t, "0/4");
        CHECK_EQUAL(times_seen(&t, "group"), 1);
        CHECK_EQUAL(times_seen(&t, "total"), 1);
        CHECK_EQUAL(times_seen(&t, "0/4"), 1);
        CHECK_EQUAL(times_seen(&t, "0/2"), 2);
        CHECK_EQUAL(screen_find(t.screen, "group"), 0);
    }
    gate_open(a, 2);
    gate_open(b, 2);
    CHECK_EQUAL(terminal_end(&t), 0);
    CHECK_EQUAL(times_seen(&t, "group"), 1);
    CHECK_EQUAL(times_seen(&t, "total"), 1);
    terminal_free(&t);
    close(a);
    close(b);
}

static void run_some(struct terminal *t, const struct terminal_options *opt, const char *progress)
{
    int gate = gate_new("gate");

    write_file("in", "1\n2\nbad\n");
    terminal_start(t, opt,
                   WEIR("map", "-j3", "--progress", progress, "--", "sh", "-c",
                        "read x <gate; [ $1 != bad ]", "sh", "{}"));
    if (strcmp(progress, "never") != 0)
        SEE(t, "3 running");
    gate_open(gate, 3);
    CHECK_EQUAL(terminal_end(t), 1);
    CHECK(shows(t, "weir: 1 of 3 failed; the first: task 3 exited with 1"));
    close(gate);
}

static void test_no_color_means_no_colours(void)
{
    struct terminal t;

    setenv("NO_COLOR", "1", 1);
    run_some(&t, &usual, "auto");
    unsetenv("NO_COLOR");
    CHECK(shows(&t, "3/3 done"));
    for (const char *at = t.raw; (at = strstr(at, "\033[")); at++)
        CHECK(at[2 + strspn(at + 2, "0123456789;?")] != 'm');
    terminal_free(&t);
    run_some(&t, &usual, "auto");
    CHECK(strstr(t.raw, "\033[31m") != NULL); /* while otherwise there are */
    terminal_free(&t);
}

static void test_a_dumb_terminal_gets_lines(void)
{
    struct terminal t;

    setenv("TERM", "dumb", 1);
    run_some(&t, &usual, "always");
    setenv("TERM", "xterm", 1);
    CHECK(shows(&t, "weir: 0 of 3 done, 0 failed, 3 running, 0 waiting, 0/s"));
    CHECK(shows(&t, "weir: 3 of 3 done, 1 failed, 0 running, 0 waiting, "));
    CHECK(strchr(t.raw, '\033') == NULL);
    terminal_free(&t);
}

static void test_nothing_is_shown_if_so_wished(void)
{
    struct terminal t;

    run_some(&t, &usual, "never");
    CHECK(strchr(t.raw, '\033') == NULL);
    assert_string_equal(screen_text(t.screen),
                        "weir: 1 of 3 failed; the first: task 3 exited with 1\n");
    terminal_free(&t);
}

static void test_without_a_terminal_lines_come_if_so_wished(void)
{
    int gate = gate_new("gate");
    pid_t pid;

    write_file("in", "1\n2\n");
    pid = weir_start(WEIR("map", "-j1", "--progress", "always", "--", "sh", "-c", "read x <gate"),
                     "in", "out", "err");
    AWAIT_THAT(strstr(read_file("err"),
                      "weir: 0 of 2 done, 0 failed, 1 running, 1 waiting, 0/s\n") != NULL);
    gate_open(gate, 2);
    CHECK_EQUAL(weir_end(pid), 0);
    CHECK(strstr(read_file("err"), "weir: 2 of 2 done, 0 failed, 0 running, 0 waiting, ") != NULL);
    CHECK(strchr(read_file("err"), '\033') == NULL);
    assert_string_equal(read_file("out"), "");
    close(gate);

    CHECK_EQUAL(weir_run(WEIR("map", "--", "true"), "in"), 0);
    assert_string_equal(read_file("err"), ""); /* and not for what is over at once, else */
}

/* It is ours; a command in the background of it would be stopped there for ever. */
static void test_a_command_that_reads_from_the_terminal_fails_instead_of_hanging(void)
{
    struct terminal t;

    write_file("in", "1\n");
    terminal_start(&t, &usual, WEIR("map", "--", "sh", "-c", "read x </dev/tty"));
    CHECK_EQUAL(terminal_end(&t), 1);
    terminal_free(&t);
}

/* ---- the terminal's settings, jobs ------------------------------------------------------------------ */

static void test_control_c_gives_the_terminal_back(void)
{
    int gate = gate_new("gate");
    struct terminal t;

    write_file("in", "1\n2\n");
    terminal_start(&t, &usual, WEIR("map", "-j1", "--", "sh", "-c", "read x <gate"));
    SEE_THAT(&t, is_raw(&t));
    SEE(&t, "1 running");
    type(&t, "\003");
    SEE(&t, "starting no more; 1 still running (Ctrl-C ends them)");
    type(&t, "\003");
    CHECK_EQUAL(terminal_end(&t), 255);
    SEE(&t, "weir: stopped early: 1 command was ended, 1 task was not run");
    terminal_free(&t);
    close(gate);
}

static void test_being_terminated_gives_the_terminal_back(void)
{
    int gate = gate_new("gate");
    struct terminal t;

    write_file("in", "1\n2\n");
    for (int i = 0; i < 2; i++) {
        terminal_start(&t, &usual, WEIR("map", "-j1", "--", "sh", "-c", "read x <gate"));
        SEE_THAT(&t, is_raw(&t));
        SEE(&t, "1 running");
        kill(t.weir, i ? SIGHUP : SIGTERM);
        CHECK_EQUAL(terminal_end(&t), 255);
        terminal_free(&t);
    }
    close(gate);
}

static void test_control_backslash_gives_the_terminal_back(void)
{
    int gate = gate_new("gate");
    struct terminal t;

    write_file("in", "1\n2\n");
    terminal_start(&t, &usual, WEIR("map", "-j1", "--", "sh", "-c", "read x <gate"));
    SEE_THAT(&t, is_raw(&t));
    SEE(&t, "1 running");
    type(&t, "\034");
    CHECK_EQUAL(terminal_end(&t), 1000 + SIGQUIT);
    terminal_free(&t);
    close(gate);
}

static void test_control_z_stops_everything_and_fg_goes_on(void)
{
    int gate = gate_new("gate");
    struct terminal t;
    pid_t child[2], grandchild;

    write_file("in", "1\n2\n");
    terminal_start(
        &t, &usual,
        WEIR("map", "-j2", "--", "sh", "-c",
             "(sh -c 'echo $$ >grand$1; read x <gate' sh $1; true) & echo $$ >pid$1; wait", "sh",
             "{}"));
    AWAIT_DOING(pid_in("pid1") && pid_in("pid2") && pid_in("grand1") && pid_in("grand2"),
                pump(&t, 5));
    child[0] = pid_in("pid1");
    child[1] = pid_in("pid2");
    grandchild = pid_in("grand2");
    SEE(&t, "2 running");
    for (int round = 0; round < 3; round++) {
        SEE_THAT(&t, is_raw(&t));
        type(&t, "\032");
        SEE_THAT(&t, t.stopped);
        CHECK_EQUAL(process_state(t.weir, NULL), 'T');
        AWAIT_THAT(process_state(child[0], NULL) == 'T');
        AWAIT_THAT(process_state(child[1], NULL) == 'T');
        AWAIT_THAT(process_state(grandchild, NULL) == 'T');
        while (pump(&t, 0))
            continue;
        CHECK(settings_are_back(&t));
        CHECK(screen_cursor_visible(t.screen));
        t.stopped = false;
        CHECK_EQUAL(write(t.orders, "f", 1), 1);
        AWAIT_DOING(process_state(child[0], NULL) != 'T', pump(&t, 5));
        AWAIT_DOING(process_state(child[1], NULL) != 'T', pump(&t, 5));
        AWAIT_DOING(process_state(grandchild, NULL) != 'T', pump(&t, 5));
    }
    SEE_THAT(&t, is_raw(&t));
    gate_open(gate, 2);
    CHECK_EQUAL(terminal_end(&t), 0);
    CHECK(shows(&t, "2/2 done"));
    terminal_free(&t);
    close(gate);
}

/* A directory that takes a millisecond or more to get into: a chain of links, each as long as can be. */
static void make_maze(void)
{
    enum { LINKS = 39, LINK_SIZE = 4000 };
    char name[16], target[LINK_SIZE + 16];

    for (int i = 0; i < LINKS; i++) {
        for (int at = 0; at < LINK_SIZE; at += 2)
            snprintf(target + at, 3, "./");
        snprintf(target + LINK_SIZE, 16, "maze%d", i + 1);
        snprintf(name, sizeof(name), "maze%d", i);
        CHECK_EQUAL(symlink(target, name), 0);
    }
    snprintf(name, sizeof(name), "maze%d", LINKS);
    CHECK_EQUAL(mkdir(name, 0777), 0);
}

static long size_of(const char *path)
{
    struct stat st;

    return stat(path, &st) < 0 ? 0 : (long)st.st_size;
}

/* Children that are neither stopped nor dead. */
static int running_children(pid_t pid)
{
    pid_t pids[64];
    int n = children_of(pid, pids, 64), running = 0;

    for (int i = 0; i < n; i++) {
        int state = process_state(pids[i], NULL);
        running += state != 'T' && state != 'Z';
    }
    return running;
}

/* While a command gets into its directory it shares our memory, and the thread that starts it waits until it has
 * executed: were it stopped there, that thread could not stop, nor could we. */
static void test_control_z_while_commands_are_being_started(void)
{
    struct terminal t;
    FILE *in = fopen("in", "w");

    assert_non_null(in);
    for (int i = 0; i < 100000; i++)
        fputs("1\n", in);
    assert_int_equal(fclose(in), 0);
    make_maze();
    terminal_start(
        &t, &usual,
        WEIR("map", "-j8", "--cwd", "maze0", "--", "sh", "-c", "echo $1 >>ran", "sh", "{}"));
    AWAIT_DOING(size_of("maze0/ran") > 0, pump(&t, 5));
    for (int round = 0; round < 5; round++) {
        long size;
        SEE_THAT(&t, is_raw(&t));
        type(&t, "\032");
        SEE_THAT(&t, t.stopped);
        AWAIT_DOING(running_children(t.weir) == 1, pump(&t, 5)); /* the guardian */
        size = size_of("maze0/ran");
        t.stopped = false;
        CHECK_EQUAL(write(t.orders, "f", 1), 1);
        AWAIT_DOING(size_of("maze0/ran") > size, pump(&t, 5));
    }
    SEE_THAT(&t, is_raw(&t));
    type(&t, "\003");
    CHECK_EQUAL(terminal_end(&t), 255);
    terminal_free(&t);
}

/* Stops weir while two commands wait at the gate, for longer than they may take; then it may go on. */
static void start_and_stop_for_long(struct terminal *t, const char *timeout, int64_t stopped_ms)
{
    weir_time until;

    unlink("pid1");
    unlink("pid2");
    write_file("in", "1\n2\n");
    terminal_start(t, &usual,
                   WEIR("map", "-j2", "--timeout", timeout, "--results", "results", "--", "sh",
                        "-c", "echo $$ >pid$1; read x <gate", "sh", "{}"));
    AWAIT_DOING(pid_in("pid1") && pid_in("pid2"), pump(t, 5));
    SEE_THAT(t, is_raw(t));
    type(t, "\032");
    SEE_THAT(t, t->stopped);
    t->stopped = false;
    until = weir_in_ms(stopped_ms);
    AWAIT_THAT(weir_now() >= until);
}

static void test_time_spent_stopped_is_not_taken_from_the_timeout(void)
{
    int gate = gate_new("gate");
    struct terminal t;

    start_and_stop_for_long(&t, "3s", 3200);
    gate_open(gate, 2); /* they are stopped, and find it open when they go on */
    CHECK_EQUAL(write(t.orders, "f", 1), 1);
    CHECK_EQUAL(terminal_end(&t), 0);
    CHECK(strstr(read_file("results"), "timed_out") == NULL);
    terminal_free(&t);
    close(gate);
}

static void test_the_rest_of_the_timeout_counts_after_a_stop(void)
{
    int gate = gate_new("gate");
    struct terminal t;
    weir_time began = weir_now();
    int64_t took;

    start_and_stop_for_long(&t, "2s", 1000);
    CHECK_EQUAL(write(t.orders, "f", 1), 1);
    CHECK_EQUAL(terminal_end(&t), 2);
    took = weir_now() - began;
    CHECK(took >= 3000 * INT64_C(1000000)); /* two seconds, and one that was none of them */
    CHECK(strstr(read_file("results"), "timed_out") != NULL);
    terminal_free(&t);
    close(gate);
}

/* A session of its own, as in a container: no process could make it go on. */
static void test_control_z_without_a_shell_stops_nothing(void)
{
    struct winsize size = { .ws_col = 80, .ws_row = 24 };
    int gate = gate_new("gate"), master;
    pid_t pid;

    write_file("in", "1\n");
    unlink("pid1");
    pid = forkpty(&master, NULL, NULL, &size);
    assert_true(pid >= 0);
    if (pid == 0) {
        redirect(0, "in");
        execl(WEIR_COMMAND, "weir", "map", "--", "sh", "-c", "echo $$ >pid$1; read x <gate", "sh",
              NULL);
        _exit(127);
    }
    fcntl(master, F_SETFD, FD_CLOEXEC);
    AWAIT_THAT(pid_in("pid1"));
    CHECK_EQUAL(write(master, "\032", 1), 1);
    gate_open(gate, 1);
    CHECK_EQUAL(weir_end(pid), 0);
    nothing_is_left();
    close(master);
    close(gate);
}

static void test_in_the_background_it_is_not_stopped(void)
{
    struct terminal_options behind = usual;
    int gate = gate_new("gate");
    struct terminal t;

    behind.background = true;
    write_file("in", "1\n2\n");
    terminal_start(&t, &behind,
                   WEIR("map", "-j1", "--", "sh", "-c", "read x <gate; echo out-$1", "sh", "{}"));
    SEE(&t, "0/2 done");
    CHECK(!is_raw(&t));
    CHECK(!shows(&t, "w: "));
    gate_open(gate, 2);
    CHECK_EQUAL(terminal_end(&t), 0);
    CHECK(!t.stopped);
    CHECK(shows(&t, "out-2"));
    CHECK(shows(&t, "2/2 done"));
    terminal_free(&t);
    close(gate);
}

/* Records typed by hand: the keys are for them. */
static void test_a_terminal_as_input_is_left_alone(void)
{
    struct terminal_options typed = usual;
    int gate = gate_new("gate");
    struct terminal t;

    typed.in = NULL;
    terminal_start(&t, &typed,
                   WEIR("map", "-j1", "--", "sh", "-c", "echo got-$1; read x <gate", "sh", "{}"));
    type(&t, "w1\n");
    gate_open(gate, 1);
    SEE(&t, "got-w1");
    CHECK(!is_raw(&t));
    type(&t, "w2\n");
    gate_open(gate, 1);
    SEE(&t, "got-w2");
    type(&t, "\004");
    CHECK_EQUAL(terminal_end(&t), 0);
    CHECK(shows(&t, "w1"));
    terminal_free(&t);
    close(gate);
}

/* The window was closed. There is no screen to draw on, and waiting for keys must not take a CPU. */
static void test_a_terminal_that_is_gone_costs_nothing(void)
{
    struct terminal_options gone = {
        .cols = 80, .rows = 24, .in = "in", .out = "out", .ignore = SIGHUP
    };
    int gate = gate_new("gate");
    struct rusage before, after;
    struct terminal t;
    int64_t ms;

    write_file("in", "1\n2\n");
    terminal_start(&t, &gone,
                   WEIR("map", "-j1", "-k", "--", "sh", "-c", "read x <gate; echo $1", "sh", "{}"));
    SEE(&t, "0/2 done");
    close(t.master);
    nanosleep(&(struct timespec){ .tv_nsec = 500000000 }, NULL); /* for a CPU to be taken */
    gate_open(gate, 2);
    getrusage(RUSAGE_CHILDREN, &before);
    close(t.orders);
    AWAIT_THAT(is_gone(t.weir));
    nothing_is_left();
    getrusage(RUSAGE_CHILDREN, &after);
    ms = (after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1000 +
         (after.ru_utime.tv_usec - before.ru_utime.tv_usec) / 1000 +
         (after.ru_stime.tv_sec - before.ru_stime.tv_sec) * 1000 +
         (after.ru_stime.tv_usec - before.ru_stime.tv_usec) / 1000;
    if (!SANITIZED && !CHECK(ms < 250))
        printf("%lld ms of CPU time\n", (long long)ms);
    assert_string_equal(read_file("out"), "1\n2\n");
    close(t.news);
    terminal_free(&t);
    close(gate);
}

/* ---- speed --------------------------------------------------------------------------------------- */

static int64_t time_of_many(const char *progress)
{
    struct terminal t;
    weir_time began = weir_now();
    int64_t ns;

    terminal_start(
        &t, &usual,
        WEIR("map", "-j4", "--group-by", "/(.)$/", "--progress", progress, "--", "/bin/true"));
    SEE_THAT(&t, t.ended);
    ns = weir_now() - began;
    CHECK_EQUAL(terminal_end(&t), 0);
    terminal_free(&t);
    return ns;
}

static void test_the_display_does_not_slow_the_work(void)
{
    int64_t best = INT64_MAX, best_shown = INT64_MAX;
    FILE *in = fopen("in", "w");

    assert_non_null(in);
    for (int i = 0; i < 2000; i++)
        fprintf(in, "%d\n", i);
    fclose(in);
    for (int i = 0; i < 30; i++) { /* a quiet moment for each will come */
        int64_t ns = time_of_many("never"), shown = time_of_many("auto");
        best = ns < best ? ns : best;
        best_shown = shown < best_shown ? shown : best_shown;
        if (i > 0 && best_shown * 10 < best * 13)
            break;
    }
    if (!SANITIZED && !CHECK(best_shown * 10 < best * 13))
        printf("%lld ms, with the display %lld ms\n", (long long)(best / 1000000),
               (long long)(best_shown / 1000000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_each_group_has_a_line_with_its_counts),
        TEST(test_bars_show_ended_failed_running_and_waiting_tasks),
        TEST(test_without_groups_there_is_one_bar),
        TEST(test_a_task_that_waits_for_a_job_names_the_option),
        TEST(test_a_task_that_is_held_back_says_so),
        TEST(test_w_shows_what_waits_and_why_and_hides_it_again),
        TEST(test_more_groups_than_rows_are_counted),
        TEST(test_groups_that_run_are_among_those_shown),
        TEST(test_bars_are_not_full_when_tasks_were_given_up),
        TEST(test_a_command_may_have_the_terminal),
        TEST(test_output_goes_above_the_display),
        TEST(test_output_without_a_newline_is_not_overwritten),
        TEST(test_long_lines_of_output_stay_intact),
        TEST(test_only_the_terminal_is_drawn_on),
        TEST(test_keys_cannot_write_to_the_terminal),
        TEST(test_messages_cannot_write_to_the_terminal),
        TEST(test_a_narrow_window_shows_what_matters),
        TEST(test_resizing_leaves_no_garbage),
        TEST(test_no_color_means_no_colours),
        TEST(test_a_dumb_terminal_gets_lines),
        TEST(test_nothing_is_shown_if_so_wished),
        TEST(test_without_a_terminal_lines_come_if_so_wished),
        TEST(test_a_command_that_reads_from_the_terminal_fails_instead_of_hanging),
        TEST(test_control_c_gives_the_terminal_back),
        TEST(test_being_terminated_gives_the_terminal_back),
        TEST(test_control_backslash_gives_the_terminal_back),
        TEST(test_control_z_stops_everything_and_fg_goes_on),
        TEST(test_control_z_while_commands_are_being_started),
        TEST(test_time_spent_stopped_is_not_taken_from_the_timeout),
        TEST(test_the_rest_of_the_timeout_counts_after_a_stop),
        TEST(test_control_z_without_a_shell_stops_nothing),
        TEST(test_in_the_background_it_is_not_stopped),
        TEST(test_a_terminal_as_input_is_left_alone),
        TEST(test_a_terminal_that_is_gone_costs_nothing),
        TEST(test_the_display_does_not_slow_the_work),
    };

    return cmocka_run_group_tests(tests, work_begin, work_end);
}
