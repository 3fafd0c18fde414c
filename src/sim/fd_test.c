/* Tests of the simulated kernel's descriptors: pipes, sockets, pollers, children.
 * SPDX-License-Identifier: MIT */
#include "base/os.h"

#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <weir/io.h>
#include <weir/sim.h>

#include <cmocka.h>

#define MS    INT64_C(1000000)
#define CHECK WEIR_SIM_CHECK
#define EXACT WEIR_SIM_OPTIONS(.spurious_per_256 = WEIR_SIM_NEVER)

static void passes(const weir_sim_options *opt, uint64_t seeds, void (*scenario)(void *arg))
{
    weir_sim_report report = WEIR_SIM_REPORT;

    if (weir_sim_explore(opt, seeds, scenario, NULL, &report) != 0)
        fail_msg("%s", report.message);
}

static void fails_with(const char *message, void (*scenario)(void *arg))
{
    weir_sim_report report = WEIR_SIM_REPORT;

    assert_true(weir_sim_run(&report, NULL, scenario, NULL) < 0);
    if (!strstr(report.message, message))
        fail_msg("\"%s\" is not in: %s", message, report.message);
}

/* ---- pipes ----------------------------------------------------------------------------------- */

static void pipe_scenario(void *arg)
{
    char bytes[5000] = "hello", back[5000];
    int fds[2];

    (void)arg;
    CHECK(weir_sim_pipe(fds) == 0);
    CHECK(wr_os_write(fds[1], bytes, 5) == 5);       /* no attempt blocks, whatever the mode */
    CHECK(wr_os_write(fds[1], bytes, 5) == -EAGAIN); /* in blocking mode only when empty */
    CHECK(wr_os_read(fds[0], back, 10) == 5);
    CHECK(wr_os_read(fds[0], back, 10) == -EAGAIN);
    CHECK(wr_os_set_nonblocking(fds[0], true) == 0);
    CHECK(wr_os_set_nonblocking(fds[0], true) == 1);
    weir_sim_nonblocking(fds[1], true);
    CHECK(wr_os_read(fds[1], back, 10) == -EBADF);
    CHECK(wr_os_write(fds[0], bytes, 10) == -EBADF);
    CHECK(wr_os_write(fds[1], bytes, 5) == 5);
    CHECK(wr_os_read(fds[0], back, 3) == 3 && memcmp(back, "hel", 3) == 0);
    CHECK(wr_os_write(fds[1], bytes, 4096) == -EAGAIN); /* one page at most, in one piece */
    CHECK(wr_os_write(fds[1], bytes, 5000) == 4094);
    CHECK(wr_os_write(fds[1], bytes, 1) == -EAGAIN);
    CHECK(wr_os_read(fds[0], back, 5000) == 4096 && memcmp(back, "lohel", 5) == 0);
    CHECK(wr_os_write(fds[1], bytes, 2) == 2);
    weir_sim_close(fds[1]);
    CHECK(wr_os_read(fds[0], back, 10) == 2);
    CHECK(wr_os_read(fds[0], back, 10) == 0);
    weir_sim_close(fds[0]);
    CHECK(wr_os_read(fds[0], back, 10) == -EBADF);
}

static void broken_pipe_scenario(void *arg)
{
    int fds[2];

    (void)arg;
    weir_sim_pipe(fds);
    weir_sim_close(fds[0]);
    CHECK(wr_os_write(fds[1], "x", 1) == -EPIPE);
    weir_sim_close(fds[1]);
}

static void test_pipes_hold_a_page_and_know_their_ends(void **state)
{
    (void)state;
    passes(EXACT, 1, pipe_scenario);
    passes(EXACT, 1, broken_pipe_scenario);
}

static void writes_20000(void *arg)
{
    int fd = *(int *)arg;
    char bytes[20000];

    for (int i = 0; i < 20000; i++)
        bytes[i] = (char)(i % 251);
    for (int64_t n, done = 0; done<20000; done += n> 0 ? n : 0) {
        n = wr_os_write(fd, bytes + done, (size_t)(20000 - done));
        CHECK(n > 0 || n == -EINTR || n == -EAGAIN);
        if (n == -EAGAIN)
            wr_os_fd_poll(fd, WEIR_WRITE, WEIR_FOREVER);
    }
    weir_sim_close(fd);
}

static void transfer_scenario(void *arg)
{
    int fds[2], total = 0;
    int64_t writer, n;
    char bytes[700];

    (void)arg;
    weir_sim_pipe(fds);
    writer = weir_sim_thread(writes_20000, &fds[1], "writer");
    while ((n = wr_os_read(fds[0], bytes, sizeof(bytes))) != 0) {
        CHECK(n > 0 || n == -EINTR || n == -EAGAIN);
        if (n == -EAGAIN)
            wr_os_fd_poll(fds[0], WEIR_READ, WEIR_FOREVER);
        for (int64_t i = 0; i < n; i++, total++)
            CHECK(bytes[i] == (char)(total % 251));
    }
    CHECK(total == 20000);
    weir_sim_join(writer);
    weir_sim_close(fds[0]);
}

static void test_the_ends_of_a_pipe_wait_for_each_other(void **state)
{
    (void)state;
    passes(NULL, 200, transfer_scenario);
}

static void test_interruptions_and_short_counts_happen_when_asked_for(void **state)
{
    weir_sim_report report = WEIR_SIM_REPORT;

    (void)state;
    passes(WEIR_SIM_OPTIONS(.eintr_per_256 = 64, .short_per_256 = 64), 200, transfer_scenario);
    weir_sim_run(&report, WEIR_SIM_OPTIONS(.eintr_per_256 = 64, .short_per_256 = 64),
                 transfer_scenario, NULL);
    assert_true(report.interrupts > 0);
    assert_true(report.shorts > 0);
    weir_sim_run(&report, NULL, transfer_scenario, NULL);
    assert_int_equal(report.interrupts, 0);
    assert_int_equal(report.shorts, 0);
}

static void double_close_scenario(void *arg)
{
    int fd = weir_sim_file();

    (void)arg;
    weir_sim_close(fd);
    weir_sim_close(fd);
}

static void test_closing_twice_fails_the_run(void **state)
{
    (void)state;
    fails_with("close of descriptor 100, which is not open", double_close_scenario);
}

/* ---- waiting for one descriptor -------------------------------------------------------------- */

static void writes_later(void *arg)
{
    weir_sim_busy(3 * MS);
    CHECK(wr_os_write(*(int *)arg, "x", 1) == 1);
}

static void poll_scenario(void *arg)
{
    int fds[2], file = weir_sim_file();
    int64_t writer;

    (void)arg;
    weir_sim_pipe(fds);
    CHECK(wr_os_fd_poll(file, WEIR_READ, 0) == WEIR_READ);
    CHECK(wr_os_fd_poll(fds[1], WEIR_WRITE, 0) == WEIR_WRITE);
    CHECK(wr_os_fd_poll(fds[0], WEIR_READ, 0) == -ETIMEDOUT);
    CHECK(wr_os_fd_poll(fds[0], WEIR_READ, WEIR_SIM_START + MS) == -ETIMEDOUT);
    CHECK(wr_os_now() == WEIR_SIM_START + MS);
    writer = weir_sim_thread(writes_later, &fds[1], "writer");
    CHECK(wr_os_fd_poll(fds[0], WEIR_READ, WEIR_FOREVER) == WEIR_READ);
    CHECK(wr_os_now() == WEIR_SIM_START + 4 * MS);
    weir_sim_join(writer);
    CHECK(wr_os_fd_poll(fds[1], WEIR_WRITE, 0) == -ETIMEDOUT); /* no room for a whole page */
    weir_sim_close(fds[1]);
    CHECK(wr_os_fd_poll(fds[0], WEIR_READ, 0) == (WEIR_READ | WEIR_HANGUP));
    weir_sim_close(fds[0]);
    CHECK(wr_os_fd_poll(fds[0], WEIR_READ, 0) == -EBADF);
    weir_sim_close(file);
}

static void test_polling_waits_for_exactly_the_events_asked_for(void **state)
{
    (void)state;
    passes(EXACT, 100, poll_scenario);
}

static void closes_later(void *arg)
{
    weir_sim_busy(MS);
    weir_sim_close(*(int *)arg);
    *(int *)arg = weir_sim_file(); /* the same number, always ready */
}

static void unnoticed_scenario(void *arg)
{
    int fds[2], reused;
    int64_t closer;

    (void)arg;
    weir_sim_pipe(fds);
    reused = fds[0];
    closer = weir_sim_thread(closes_later, &reused, "closer");
    CHECK(wr_os_fd_poll(fds[0], WEIR_READ, WEIR_SIM_START + 9 * MS) == -EBADF);
    CHECK(wr_os_now() == WEIR_SIM_START + 9 * MS);
    weir_sim_join(closer);
    CHECK(reused == fds[0]);
    weir_sim_close(fds[0]);
    weir_sim_close(fds[1]);
}

static void test_closing_a_descriptor_wakes_no_thread(void **state)
{
    (void)state;
    passes(EXACT, 1, unnoticed_scenario);
}

/* ---- pollers --------------------------------------------------------------------------------- */

static void watch_scenario(void *arg)
{
    struct wr_os_poller poller;
    struct wr_os_ready ready[4];
    int fds[2], file = weir_sim_file();
    char byte;

    (void)arg;
    CHECK(wr_os_poller_open(&poller) == 0);
    weir_sim_pipe(fds);
    CHECK(wr_os_poller_watch(&poller, 5, WEIR_READ, 0) == -EBADF);
    CHECK(wr_os_poller_watch(&poller, file, WEIR_READ, 0) == -EPERM);
    CHECK(wr_os_poller_watch(&poller, fds[0], 0, 0) == -ENOENT);
    CHECK(wr_os_poller_watch(&poller, fds[0], WEIR_READ, 0) == 0);
    CHECK(wr_os_poller_wait(&poller, ready, 4, 0) == 0);
    wr_os_write(fds[1], "x", 1);
    CHECK(wr_os_poller_wait(&poller, ready, 4, WEIR_FOREVER) == 1);
    CHECK(ready[0].fd == fds[0] && ready[0].events == WEIR_READ);
    CHECK(wr_os_poller_wait(&poller, ready, 4, 0) == 0); /* reported once */
    CHECK(wr_os_poller_watch(&poller, fds[0], WEIR_READ, 0) == 0);
    CHECK(wr_os_poller_wait(&poller, ready, 4, 0) == 1);
    CHECK(wr_os_read(fds[0], &byte, 1) == 1);
    CHECK(wr_os_poller_watch(&poller, fds[0], WEIR_READ, 0) == 0);
    CHECK(wr_os_poller_wait(&poller, ready, 4, WEIR_SIM_START + MS) == 0);
    CHECK(wr_os_now() == WEIR_SIM_START + MS);
    weir_sim_close(fds[1]);
    CHECK(wr_os_poller_wait(&poller, ready, 4, 0) == 1 && ready[0].events == WEIR_HANGUP);
    CHECK(wr_os_poller_watch(&poller, fds[0], WEIR_READ, 0) == 0);
    weir_sim_close(fds[0]); /* and with it the watch */
    CHECK(wr_os_poller_wait(&poller, ready, 4, 0) == 0);
    weir_sim_close(file);
    wr_os_poller_close(&poller);
}

static void test_a_watch_reports_once(void **state)
{
    (void)state;
    passes(EXACT, 1, watch_scenario);
}

static void rings(void *arg)
{
    weir_sim_busy(2 * MS);
    wr_os_poller_ring(arg);
}

static void bell_scenario(void *arg)
{
    struct wr_os_poller poller;
    struct wr_os_ready ready[1];
    int64_t ringer;

    (void)arg;
    wr_os_poller_open(&poller);
    wr_os_poller_ring(&poller);
    wr_os_poller_ring(&poller);
    CHECK(wr_os_poller_wait(&poller, ready, 1, WEIR_FOREVER) == 0); /* heard */
    ringer = weir_sim_thread(rings, &poller, "ringer");
    CHECK(wr_os_poller_wait(&poller, ready, 1, WEIR_FOREVER) == 0);
    CHECK(wr_os_now() == WEIR_SIM_START + 2 * MS);
    weir_sim_join(ringer);
    wr_os_poller_close(&poller);
}

static void silence_scenario(void *arg)
{
    struct wr_os_poller poller;
    struct wr_os_ready ready[1];

    (void)arg;
    wr_os_poller_open(&poller);
    for (;;)
        wr_os_poller_wait(&poller, ready, 1, WEIR_FOREVER);
}

static void late_ring_scenario(void *arg)
{
    struct wr_os_poller poller;

    (void)arg;
    wr_os_poller_open(&poller);
    wr_os_poller_close(&poller);
    wr_os_poller_ring(&poller);
}

static void test_a_bell_is_remembered(void **state)
{
    (void)state;
    passes(EXACT, 100, bell_scenario);
    fails_with("main waits in poller 100", silence_scenario);
    fails_with("ring of poller 100, which is not open", late_ring_scenario);
}

static void many_scenario(void *arg)
{
    struct wr_os_poller poller;
    struct wr_os_ready ready[2];
    int fds[10][2], found = 0, n;

    (void)arg;
    wr_os_poller_open(&poller);
    for (int i = 0; i < 10; i++) {
        weir_sim_pipe(fds[i]);
        wr_os_poller_watch(&poller, fds[i][0], WEIR_READ, 0);
        wr_os_write(fds[i][1], "x", 1);
    }
    while ((n = wr_os_poller_wait(&poller, ready, 2, 0)) > 0)
        found += n;
    CHECK(found == 10);
    for (int i = 0; i < 10; i++) {
        weir_sim_close(fds[i][0]);
        weir_sim_close(fds[i][1]);
    }
    wr_os_poller_close(&poller);
}

static void test_reports_that_do_not_fit_come_later(void **state)
{
    (void)state;
    passes(EXACT, 20, many_scenario);
}

/* ---- sockets --------------------------------------------------------------------------------- */

static struct sockaddr_in address_of(uint16_t port)
{
    return (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port) };
}

static void client(void *arg)
{
    struct sockaddr_in to = address_of(80);
    int fd = weir_sim_socket(), rc;
    char answer[4];

    (void)arg;
    weir_sim_nonblocking(fd, true);
    rc = wr_os_connect(fd, (struct sockaddr *)&to, sizeof(to));
    if (rc == -EINPROGRESS || rc == -EINTR) {
        CHECK(wr_os_connect(fd, (struct sockaddr *)&to, sizeof(to)) == -EALREADY);
        while ((rc = wr_os_fd_poll(fd, WEIR_WRITE, WEIR_FOREVER)) == -EINTR)
            ;
        CHECK(rc == WEIR_WRITE);
        rc = wr_os_connect_result(fd);
    }
    CHECK(rc == 0);
    CHECK(wr_os_connect(fd, (struct sockaddr *)&to, sizeof(to)) == -EISCONN);
    while (wr_os_write(fd, "ping", 4) == -EINTR)
        ;
    while (wr_os_fd_poll(fd, WEIR_READ, WEIR_FOREVER) == -EINTR)
        ;
    while ((rc = (int)wr_os_read(fd, answer, 4)) == -EINTR)
        ;
    CHECK(rc == 4 && memcmp(answer, "pong", 4) == 0);
    weir_sim_close(fd);
}

static void server_scenario(void *arg)
{
    int64_t handle = 0;
    int listener = weir_sim_listener(80), fd, rc;
    char question[4];

    (void)arg;
    CHECK(weir_sim_listener(80) == -EADDRINUSE);
    handle = weir_sim_thread(client, NULL, "client");
    while ((fd = wr_os_accept(listener, NULL, NULL)) == -EINTR)
        ;
    CHECK(fd > 0);
    while (wr_os_fd_poll(fd, WEIR_READ, WEIR_FOREVER) == -EINTR)
        ;
    while ((rc = (int)wr_os_read(fd, question, 4)) == -EINTR)
        ;
    CHECK(rc == 4 && memcmp(question, "ping", 4) == 0);
    while (wr_os_write(fd, "pong", 4) == -EINTR)
        ;
    weir_sim_join(handle);
    while ((rc = (int)wr_os_read(fd, question, 4)) == -EINTR)
        ;
    CHECK(rc == 0);
    while ((rc = (int)wr_os_write(fd, "x", 1)) == -EINTR)
        ;
    CHECK(rc == -EPIPE);
    weir_sim_close(fd);
    weir_sim_close(listener);
}

static void refused_scenario(void *arg)
{
    struct sockaddr_in to = address_of(81);
    int fd = weir_sim_socket(), fds[2], rc;

    (void)arg;
    rc = wr_os_connect(fd, (struct sockaddr *)&to, sizeof(to)); /* in blocking mode */
    CHECK(rc == -ECONNREFUSED);
    CHECK(wr_os_accept(fd, NULL, NULL) == -EINVAL);
    weir_sim_close(fd);
    CHECK(weir_sim_socketpair(fds) == 0);
    CHECK(wr_os_read(fds[0], &rc, 1) == -EAGAIN);
    CHECK(wr_os_write(fds[0], "x", 1) == 1 && wr_os_read(fds[1], &rc, 4) == 1);
    weir_sim_close(fds[1]);
    CHECK(wr_os_fd_poll(fds[0], WEIR_READ | WEIR_WRITE, 0) ==
          (WEIR_READ | WEIR_WRITE | WEIR_HANGUP));
    weir_sim_close(fds[0]);
    CHECK(wr_os_connect(fds[0], (struct sockaddr *)&to, sizeof(to)) == -EBADF);
    weir_sim_pipe(fds);
    CHECK(wr_os_connect(fds[0], (struct sockaddr *)&to, sizeof(to)) == -ENOTSOCK);
    weir_sim_close(fds[0]);
    weir_sim_close(fds[1]);
}

static void test_sockets_connect_now_or_later(void **state)
{
    (void)state;
    passes(NULL, 100, server_scenario);
    passes(WEIR_SIM_OPTIONS(.eintr_per_256 = 64), 100, server_scenario);
    passes(NULL, 20, refused_scenario);
}

static void unaccepted_scenario(void *arg)
{
    struct sockaddr_in to = address_of(80);
    int listener = weir_sim_listener(80), fd = weir_sim_socket();
    char byte;

    (void)arg;
    CHECK(wr_os_connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0);
    weir_sim_close(listener);
    CHECK(wr_os_read(fd, &byte, 1) == 0);
    weir_sim_close(fd);
}

static void test_a_closed_listener_hangs_up_on_those_in_its_queue(void **state)
{
    (void)state;
    passes(NULL, 20, unaccepted_scenario);
}

/* ---- children -------------------------------------------------------------------------------- */

static void child_scenario(void *arg)
{
    pid_t pid = weir_sim_child(5 * MS, 0x100);
    int fd = wr_os_child_open(pid), status = 0;

    (void)arg;
    CHECK(wr_os_child_open(pid + 1) == -ECHILD);
    CHECK(wr_os_child_reap(&status, fd) == -EAGAIN);
    CHECK(wr_os_fd_poll(fd, WEIR_READ, WEIR_FOREVER) == WEIR_READ);
    CHECK(wr_os_now() == WEIR_SIM_START + 5 * MS);
    CHECK(wr_os_child_reap(&status, fd) == 0 && status == 0x100);
    CHECK(wr_os_child_reap(&status, fd) == -ECHILD);
    CHECK(wr_os_child_open(pid) == -ECHILD);
    weir_sim_close(fd);
}

static void test_a_child_ends_when_it_was_told_to(void **state)
{
    (void)state;
    passes(NULL, 1, child_scenario);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipes_hold_a_page_and_know_their_ends),
        cmocka_unit_test(test_the_ends_of_a_pipe_wait_for_each_other),
        cmocka_unit_test(test_interruptions_and_short_counts_happen_when_asked_for),
        cmocka_unit_test(test_closing_twice_fails_the_run),
        cmocka_unit_test(test_polling_waits_for_exactly_the_events_asked_for),
        cmocka_unit_test(test_closing_a_descriptor_wakes_no_thread),
        cmocka_unit_test(test_a_watch_reports_once),
        cmocka_unit_test(test_a_bell_is_remembered),
        cmocka_unit_test(test_reports_that_do_not_fit_come_later),
        cmocka_unit_test(test_sockets_connect_now_or_later),
        cmocka_unit_test(test_a_closed_listener_hangs_up_on_those_in_its_queue),
        cmocka_unit_test(test_a_child_ends_when_it_was_told_to),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
