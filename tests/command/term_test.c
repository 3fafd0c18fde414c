/* The live display on a real pseudo-terminal, seen through a screen in memory.
 * SPDX-License-Identifier: MIT */
#include "cli/screen/term.h"

#include "command/screen.h"
#include "support/child.h"

#include <locale.h>
#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <termios.h>

/* A terminal: our end, the program's end, and what is to be seen. */
struct pty {
    int master, slave;
    struct screen *screen;
    size_t bytes; /* that have come */
};

static void pty_open(struct pty *pty, int cols, int rows)
{
    struct winsize size = { .ws_col = (unsigned short)cols, .ws_row = (unsigned short)rows };

    *pty = (struct pty){ .screen = screen_new(cols, rows) };
    assert_int_equal(openpty(&pty->master, &pty->slave, NULL, NULL, &size), 0);
}

static void pty_close(struct pty *pty)
{
    close(pty->master);
    if (pty->slave >= 0)
        close(pty->slave);
    screen_free(pty->screen);
}

/* Takes what has come, waiting for the first of it; false if there is nothing (more). */
static bool pty_pump(struct pty *pty, int timeout_ms)
{
    struct pollfd p = { .fd = pty->master, .events = POLLIN };
    char bytes[4096];
    ssize_t n;

    if (poll(&p, 1, timeout_ms) <= 0)
        return false;
    n = read(pty->master, bytes, sizeof(bytes));
    if (n <= 0)
        return false;
    screen_feed(pty->screen, bytes, (size_t)n);
    pty->bytes += (size_t)n;
    return true;
}

static void pty_settle(struct pty *pty)
{
    while (pty_pump(pty, 20))
        continue;
}

static void pty_resize(struct pty *pty, int cols, int rows)
{
    struct winsize size = { .ws_col = (unsigned short)cols, .ws_row = (unsigned short)rows };

    assert_int_equal(ioctl(pty->master, TIOCSWINSZ, &size), 0);
    screen_resize(pty->screen, cols, rows);
}

static void await_text(struct pty *pty, const char *text)
{
    weir_time limit = patience();

    while (screen_find(pty->screen, text) < 0 && weir_now() < limit)
        pty_pump(pty, 100);
    if (!CHECK(screen_find(pty->screen, text) >= 0))
        printf("not seen: %s\nbut this:\n%s", text, screen_text(pty->screen));
}

static void write_text(int fd, const char *text)
{
    CHECK_EQUAL(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void draw(struct term *term, const char *block)
{
    char copy[1024];
    struct view_text text = { .text = copy, .length = strlen(block) };

    snprintf(copy, sizeof(copy), "%s", block);
    for (const char *at = block; (at = strchr(at, '\n')); at++)
        text.lines++;
    term_draw(term, &text);
}

/* ---- drawing ------------------------------------------------------------------------------------ */

static void test_a_block_is_redrawn_in_place(void)
{
    struct pty pty;
    struct term term;

    pty_open(&pty, 40, 10);
    assert_int_equal(term_open(&term, pty.slave), 0);
    assert_int_equal(term.look.width, 40);
    assert_int_equal(term.look.height, 10);
    write_text(pty.slave, "before\n");
    draw(&term, "one long line\ntwo\nthree\n");
    pty_settle(&pty);
    assert_string_equal(screen_text(pty.screen), "before\none long line\ntwo\nthree\n");
    assert_int_equal(screen_cursor_row(pty.screen), 4);
    assert_int_equal(screen_cursor_col(pty.screen), 0);
    assert_true(screen_cursor_visible(pty.screen));
    draw(&term, "\033[31mone\033[0m\n2\n");
    pty_settle(&pty);
    assert_string_equal(screen_text(pty.screen), "before\none\n2\n");
    assert_int_equal(screen_cursor_row(pty.screen), 3);
    draw(&term, "");
    pty_settle(&pty);
    assert_string_equal(screen_text(pty.screen), "before\n");
    assert_int_equal(screen_unknown(pty.screen), 0);
    term_close(&term);
    pty_close(&pty);
}

static void test_output_goes_above_the_block(void)
{
    struct pty pty;
    struct term term;
    char line[32], wanted[512] = "";

    pty_open(&pty, 40, 6);
    assert_int_equal(term_open(&term, pty.slave), 0);
    for (int i = 0; i < 20; i++) { /* well beyond the bottom of the screen */
        draw(&term, "group a\ngroup b\ntotal\n");
        term_clear(&term);
        snprintf(line, sizeof(line), "line %d\n", i);
        write_text(pty.slave, line);
        strcat(wanted, line);
        pty_settle(&pty);
    }
    draw(&term, "group a\ntotal\n");
    pty_settle(&pty);
    strcat(wanted, "group a\ntotal\n");
    assert_string_equal(screen_text(pty.screen), wanted);
    term_close(&term);
    pty_settle(&pty);
    assert_string_equal(screen_text(pty.screen), wanted);
    pty_close(&pty);
}

static void test_lines_that_a_narrower_terminal_wrapped_are_all_replaced(void)
{
    static const char block[] = "0123456789012345678901234567890123456789\n"
                                "\033[32m日本日本日本日本日本\033[0m\n"
                                "\n"
                                "short\n";
    static const int widths[] = { 39, 25, 20, 11, 7 };
    struct pty pty;
    struct term term;

    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        pty_open(&pty, 60, 20);
        assert_int_equal(term_open(&term, pty.slave), 0);
        write_text(pty.slave, "before\n");
        draw(&term, block);
        pty_settle(&pty);
        pty_resize(&pty, widths[i], 20);
        term_resized(&term);
        assert_int_equal(term.look.width, widths[i]);
        draw(&term, "new\nlines\n");
        pty_settle(&pty);
        assert_string_equal(screen_text(pty.screen), "before\nnew\nlines\n");
        pty_resize(&pty, 60, 20);
        term_resized(&term);
        draw(&term, "wide\nagain\n");
        pty_settle(&pty);
        assert_string_equal(screen_text(pty.screen), "before\nwide\nagain\n");
        term_clear(&term);
        pty_settle(&pty);
        assert_string_equal(screen_text(pty.screen), "before\n");
        term_close(&term);
        pty_close(&pty);
    }
}

static void test_clearing_knows_of_wrapped_lines_too(void)
{
    struct pty pty;
    struct term term;

    pty_open(&pty, 60, 20);
    assert_int_equal(term_open(&term, pty.slave), 0);
    write_text(pty.slave, "before\n");
    draw(&term, "0123456789012345678901234567890123456789\nshort\n");
    pty_settle(&pty);
    pty_resize(&pty, 15, 20);
    term_resized(&term);
    term_clear(&term);
    pty_settle(&pty);
    assert_string_equal(screen_text(pty.screen), "before\n");
    term_close(&term);
    pty_close(&pty);
}

static void test_text_that_stands_there_is_not_sent_again(void)
{
    struct pty pty;
    struct term term;
    size_t bytes;

    pty_open(&pty, 40, 10);
    assert_int_equal(term_open(&term, pty.slave), 0);
    draw(&term, "same\n");
    pty_settle(&pty);
    bytes = pty.bytes;
    draw(&term, "same\n");
    pty_settle(&pty);
    assert_int_equal(pty.bytes, bytes);
    draw(&term, "else\n");
    pty_settle(&pty);
    assert_true(pty.bytes > bytes);
    term_close(&term);
    pty_close(&pty);
}

static void test_a_stopped_terminal_does_not_hold_us_up(void)
{
    struct pty pty;
    struct term term;

    pty_open(&pty, 40, 10);
    assert_int_equal(term_open(&term, pty.slave), 0);
    draw(&term, "first\n");
    assert_int_equal(tcflow(pty.slave, TCOOFF), 0); /* as Ctrl-S does */
    draw(&term, "second\n");
    assert_int_equal(tcflow(pty.slave, TCOON), 0);
    draw(&term, "third\n");
    pty_settle(&pty);
    assert_string_equal(screen_text(pty.screen), "third\n");
    term_close(&term);
    pty_close(&pty);
}

static void *pump_to_the_end(void *arg)
{
    struct pty *pty = arg;

    while (screen_find(pty->screen, "the end") < 0 && pty_pump(pty, 5000))
        continue;
    return NULL;
}

/* More than the terminal takes at once, on a descriptor that does not wait. */
static void test_a_large_block_arrives_whole(void)
{
    struct view_text text = { .text = malloc(300000) };
    struct pty pty;
    struct term term;
    pthread_t reader;

    assert_non_null(text.text);
    pty_open(&pty, 300, 700);
    assert_int_equal(term_open(&term, pty.slave), 0);
    assert_int_equal(fcntl(pty.slave, F_SETFL, O_RDWR | O_NONBLOCK), 0);
    for (; text.lines < 600; text.lines++)
        text.length += (size_t)sprintf(text.text + text.length, "%0250d\n", text.lines);
    text.length += (size_t)sprintf(text.text + text.length, "the end\n");
    text.lines++;
    assert_int_equal(pthread_create(&reader, NULL, pump_to_the_end, &pty), 0);
    term_draw(&term, &text);
    pthread_join(reader, NULL);
    assert_string_equal(screen_line(pty.screen, 600), "the end");
    assert_string_equal(screen_line(pty.screen, 599) + 247, "599");
    term_close(&term);
    pty_close(&pty);
    free(text.text);
}

/* ---- what it finds ------------------------------------------------------------------------------ */

static void test_only_a_terminal_that_can_move_its_cursor_is_live(void)
{
    struct pty pty;
    struct term term;
    int fd[2];

    pty_open(&pty, 40, 10);
    assert_int_equal(pipe(fd), 0);
    setenv("TERM", "xterm", 1);
    assert_true(term_is_live(pty.slave));
    assert_false(term_is_live(fd[1]));
    assert_int_equal(term_open(&term, fd[1]), -ENOTTY);
    setenv("TERM", "dumb", 1);
    assert_false(term_is_live(pty.slave));
    unsetenv("TERM");
    assert_false(term_is_live(pty.slave));
    setenv("TERM", "xterm", 1);
    close(fd[0]);
    close(fd[1]);
    pty_close(&pty);
}

static void test_colour_is_as_the_environment_says(void)
{
    static const struct {
        const char *value;
        bool color;
    } cases[] = { { NULL, true }, { "", true }, { "1", false } };
    struct pty pty;
    struct term term;

    pty_open(&pty, 40, 10);
    for (size_t i = 0; i < 3; i++) {
        if (cases[i].value)
            setenv("NO_COLOR", cases[i].value, 1);
        else
            unsetenv("NO_COLOR");
        assert_int_equal(term_open(&term, pty.slave), 0);
        assert_int_equal(term.look.color, cases[i].color);
        assert_true(term.look.utf8);
        term_close(&term);
    }
    unsetenv("NO_COLOR");
    pty_close(&pty);
}

static void test_a_terminal_without_a_size_is_taken_for_a_usual_one(void)
{
    struct pty pty;
    struct term term;

    pty_open(&pty, 0, 0);
    assert_int_equal(term_open(&term, pty.slave), 0);
    assert_int_equal(term.look.width, 80);
    assert_int_equal(term.look.height, 24);
    term_close(&term);
    pty_close(&pty);
}

static void test_keys_of_another_terminal_are_left_alone(void)
{
    struct pty pty;
    struct term term;

    pty_open(&pty, 40, 10);
    assert_int_equal(term_open(&term, pty.slave), 0);
    assert_int_equal(term.key_fd, -1);
    assert_false(term.look.keys);
    assert_int_equal(term_key(&term), 0);
    term_close(&term);
    pty_close(&pty);
}

/* ---- keys: a child whose terminal it is ----------------------------------------------------------- */

/* The child says on its terminal where it is, and ends with 0 if all its checks held. */
static pid_t pty_fork(struct pty *pty, void (*run)(void))
{
    struct winsize size = { .ws_col = 80, .ws_row = 24 };
    pid_t pid;

    *pty = (struct pty){ .slave = -1, .screen = screen_new(80, 24) };
    fflush(NULL);
    pid = forkpty(&pty->master, NULL, NULL, &size);
    assert_true(pid >= 0);
    if (pid == 0) {
        setvbuf(stdout, NULL, _IONBF, 0);
        atomic_store(&checks_failed, 0);
        run();
        _exit(atomic_load(&checks_failed) ? 1 : 0);
    }
    return pid;
}

static void pty_end(struct pty *pty, pid_t pid)
{
    int status;

    pty_settle(pty);
    status = child_end(pid);
    pty_settle(pty);
    if (!CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0))
        printf("status %x, seen:\n%s", (unsigned)status, screen_text(pty->screen));
    pty_close(pty);
}

static int await_key(struct term *term)
{
    weir_time limit = patience();
    int key = 0;

    while (key == 0 && weir_now() < limit) {
        poll(&(struct pollfd){ .fd = term->key_fd, .events = POLLIN }, 1, 1000);
        key = term_key(term);
    }
    return key;
}

static tcflag_t local_modes(void)
{
    struct termios settings = { 0 };

    CHECK_EQUAL(tcgetattr(STDERR_FILENO, &settings), 0);
    return settings.c_lflag;
}

static void press_some(void)
{
    tcflag_t before = local_modes();
    struct term term;

    CHECK_EQUAL(term_open(&term, STDERR_FILENO), 0);
    CHECK(term.key_fd >= 0 && term.look.keys);
    CHECK_EQUAL(local_modes(), before & ~(tcflag_t)(ICANON | ECHO));
    CHECK_EQUAL(term_key(&term), 0);
    draw(&term, "press w\n");
    CHECK_EQUAL(await_key(&term), 'w');
    draw(&term, "an arrow\n");
    CHECK_EQUAL(await_key(&term), 'q');
    draw(&term, "escape\n");
    CHECK_EQUAL(await_key(&term), '\033');
    term_close(&term);
    CHECK_EQUAL(local_modes(), before);
    CHECK_EQUAL(fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK, 0);
}

static void test_keys_come_without_enter_and_without_echo(void)
{
    struct pty pty;
    pid_t pid = pty_fork(&pty, press_some);

    await_text(&pty, "press w");
    write_text(pty.master, "w");
    await_text(&pty, "an arrow");
    write_text(pty.master, "\033[A");
    usleep(100000); /* a person's next key comes later than an arrow's letters */
    write_text(pty.master, "q");
    await_text(&pty, "escape");
    write_text(pty.master, "\033");
    pty_settle(&pty);
    CHECK_EQUAL(screen_find(pty.screen, "w"), -1); /* "press w" is gone, and no echo came */
    CHECK_EQUAL(screen_find(pty.screen, "q"), -1);
    pty_end(&pty, pid);
}

static void suspend_and_go_on(void)
{
    tcflag_t before = local_modes();
    struct term term;

    CHECK_EQUAL(term_open(&term, STDERR_FILENO), 0);
    draw(&term, "first block\n");
    term_suspend(&term);
    CHECK_EQUAL(local_modes(), before);
    CHECK_EQUAL(term.key_fd, -1);
    CHECK_EQUAL(term_key(&term), 0);
    printf("the shell was here\n");
    term_resume(&term);
    term_resume(&term); /* no harm */
    CHECK_EQUAL(local_modes(), before & ~(tcflag_t)(ICANON | ECHO));
    draw(&term, "second block\n");
    CHECK_EQUAL(await_key(&term), 'x');
    draw(&term, "third block\n");
    term_close(&term);
    CHECK_EQUAL(local_modes(), before);
}

static void test_suspending_gives_the_terminal_back(void)
{
    struct pty pty;
    pid_t pid = pty_fork(&pty, suspend_and_go_on);

    await_text(&pty, "second block");
    write_text(pty.master, "x");
    await_text(&pty, "third block");
    assert_string_equal(screen_text(pty.screen), "first block\nthe shell was here\nthird block\n");
    assert_true(screen_cursor_visible(pty.screen));
    pty_end(&pty, pid);
}

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
}

static void be_interrupted(void)
{
    struct term term;

    signal(SIGINT, on_interrupt);
    CHECK_EQUAL(term_open(&term, STDERR_FILENO), 0);
    draw(&term, "interrupt me\n");
    for (int i = 0; i < 1000 && !interrupted; i++)
        usleep(10000);
    CHECK(interrupted);
    CHECK_EQUAL(term_key(&term), 0);
    term_close(&term);
}

static void test_control_c_keeps_its_meaning(void)
{
    struct pty pty;
    pid_t pid = pty_fork(&pty, be_interrupted);

    await_text(&pty, "interrupt me");
    write_text(pty.master, "\003");
    pty_end(&pty, pid);
}

static void draw_in_the_background(void)
{
    tcflag_t before = local_modes();
    pid_t pid = fork();
    int status = -1;
    struct term term;

    if (pid == 0) {
        setpgid(0, 0);
        CHECK_EQUAL(term_open(&term, STDERR_FILENO), 0);
        CHECK_EQUAL(term.key_fd, -1);
        CHECK(!term.look.keys);
        draw(&term, "from the background\n");
        CHECK_EQUAL(term_key(&term), 0);
        term_suspend(&term);
        term_resume(&term);
        CHECK_EQUAL(local_modes(), before);
        term_close(&term);
        _exit(atomic_load(&checks_failed) ? 1 : 0);
    }
    CHECK_EQUAL(waitpid(pid, &status, WUNTRACED), pid); /* would tell if it were stopped */
    CHECK_EQUAL(status, 0);
    if (WIFSTOPPED(status))
        kill(pid, SIGKILL);
    CHECK_EQUAL(local_modes(), before);
}

static void test_in_the_background_it_draws_but_leaves_the_keys_alone(void)
{
    struct pty pty;
    pid_t pid = pty_fork(&pty, draw_in_the_background);

    await_text(&pty, "from the background");
    pty_end(&pty, pid);
}

/* It took the keys, then another group was moved to the front. */
static void lose_the_foreground(void)
{
    struct term term;
    pid_t other = fork();

    if (other == 0) {
        pause();
        _exit(0);
    }
    setpgid(other, other);
    signal(SIGTTOU, SIG_IGN); /* for tcsetpgrp alone */
    CHECK_EQUAL(term_open(&term, STDERR_FILENO), 0);
    CHECK_EQUAL(tcsetpgrp(STDERR_FILENO, other), 0);
    signal(SIGTTOU, SIG_DFL);
    draw(&term, "behind\n");
    poll(&(struct pollfd){ .fd = term.key_fd, .events = POLLIN }, 1, 10000);
    CHECK_EQUAL(term_key(&term), 0); /* typed for the other one */
    term_close(&term);
    CHECK_EQUAL(local_modes() & ICANON, 0); /* the other one's settings by now */
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
}

static void test_losing_the_foreground_stops_no_process(void)
{
    struct pty pty;
    pid_t pid = pty_fork(&pty, lose_the_foreground);

    await_text(&pty, "behind");
    write_text(pty.master, "w");
    pty_end(&pty, pid);
}

/* ---- the screen itself ---------------------------------------------------------------------------- */

static void feed(struct screen *screen, const char *text)
{
    screen_feed(screen, text, strlen(text));
}

static void test_the_screen_in_memory_is_like_a_real_one(void)
{
    struct screen *screen = screen_new(10, 3);

    feed(screen, "0123456789");
    assert_int_equal(screen_cursor_row(screen), 0); /* wraps only with the next character */
    feed(screen, "ab\r\nlast");
    assert_string_equal(screen_text(screen), "0123456789\nab\nlast\n");
    feed(screen, "\r\nmore");
    assert_string_equal(screen_line(screen, 0), "ab");
    assert_string_equal(screen_text(screen), "0123456789\nab\nlast\nmore\n");
    screen_resize(screen, 20, 3);
    assert_string_equal(screen_text(screen), "0123456789ab\nlast\nmore\n");
    screen_resize(screen, 4, 3);
    assert_string_equal(screen_text(screen), "0123\n4567\n89ab\nlast\nmore\n");
    assert_string_equal(screen_line(screen, 2), "more");
    feed(screen, "\033[2J\033[H日\xe6\x9c");
    feed(screen, "\xac");
    feed(screen, "本"); /* wide ones do not straddle the edge */
    assert_string_equal(screen_line(screen, 0), "日本");
    assert_string_equal(screen_line(screen, 1), "本");
    feed(screen, "\033[1;3Hx\033[?25l\033[31m\033[K");
    assert_string_equal(screen_line(screen, 0), "日x");
    assert_false(screen_cursor_visible(screen));
    assert_int_equal(screen_unknown(screen), 0);
    feed(screen, "\033]0;title\a\033c\001");
    assert_int_equal(screen_unknown(screen), 3);
    screen_free(screen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_screen_in_memory_is_like_a_real_one),
        TEST(test_a_block_is_redrawn_in_place),
        TEST(test_output_goes_above_the_block),
        TEST(test_lines_that_a_narrower_terminal_wrapped_are_all_replaced),
        TEST(test_clearing_knows_of_wrapped_lines_too),
        TEST(test_text_that_stands_there_is_not_sent_again),
        TEST(test_a_stopped_terminal_does_not_hold_us_up),
        TEST(test_a_large_block_arrives_whole),
        TEST(test_only_a_terminal_that_can_move_its_cursor_is_live),
        TEST(test_colour_is_as_the_environment_says),
        TEST(test_a_terminal_without_a_size_is_taken_for_a_usual_one),
        TEST(test_keys_of_another_terminal_are_left_alone),
        TEST(test_keys_come_without_enter_and_without_echo),
        TEST(test_suspending_gives_the_terminal_back),
        TEST(test_control_c_keeps_its_meaning),
        TEST(test_in_the_background_it_draws_but_leaves_the_keys_alone),
        TEST(test_losing_the_foreground_stops_no_process),
    };

    setlocale(LC_ALL, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
