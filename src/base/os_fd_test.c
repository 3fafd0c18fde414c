/* SPDX-License-Identifier: MIT */
#include "base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weir/io.h>

#include <cmocka.h>

static int fd[2];

static int open_pipe(void **state)
{
    (void)state;
    return pipe2(fd, O_CLOEXEC);
}

static int open_sockets(void **state)
{
    (void)state;
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd);
}

static int close_both(void **state)
{
    (void)state;
    close(fd[0]);
    close(fd[1]);
    return 0;
}

static weir_time soon(void)
{
    return wr_os_now() + 300000000000;
}

/* ---- attempts -------------------------------------------------------------------------------- */

static void test_an_attempt_on_a_blocking_descriptor_does_not_block(void **state)
{
    char bytes[3000] = "hello", back[3000];
    int64_t n, in = 0, out = 0;
    (void)state;
    assert_false(fcntl(fd[0], F_GETFL) & O_NONBLOCK);
    assert_int_equal(wr_os_read(fd[0], back, sizeof(back)), -EAGAIN);
    assert_int_equal(wr_os_write(fd[1], bytes, 5), 5);
    assert_int_equal(wr_os_read(fd[0], back, sizeof(back)), 5); /* what is there, not all */
    assert_memory_equal(back, "hello", 5);
    while ((n = wr_os_write(fd[1], bytes, sizeof(bytes))) > 0)
        in += n;
    assert_int_equal(n, -EAGAIN);
    assert_true(in >= 4096);
    while ((n = wr_os_read(fd[0], back, sizeof(back))) > 0)
        out += n;
    assert_int_equal(n, -EAGAIN);
    assert_int_equal(in, out);
    assert_false(fcntl(fd[1], F_GETFL) & O_NONBLOCK); /* and leaves the mode alone */
}

static void test_a_large_write_goes_as_far_as_there_is_room(void **state)
{
    size_t size = 8 << 20;
    char *bytes = calloc(1, size);
    int64_t n = wr_os_write(fd[1], bytes, size);
    (void)state;
    assert_true(n > 0 && n < (int64_t)size);
    free(bytes);
}

static void test_the_end_is_zero_and_no_reader_is_a_broken_pipe(void **state)
{
    char byte = 0;
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);
    (void)state;
    close(fd[1]);
    assert_int_equal(wr_os_read(fd[0], &byte, 1), 0);
    close(fd[0]);
    assert_int_equal(pipe(fd), 0);
    close(fd[0]);
    assert_int_equal(wr_os_write(fd[1], &byte, 1), -EPIPE);
    signal(SIGPIPE, before);
}

static void test_files_and_devices_can_be_read_and_written(void **state)
{
    char path[] = "/tmp/weir-fd-XXXXXX", bytes[20000], back[20000];
    int file = mkstemp(path), null = open("/dev/null", O_RDWR), zero = open("/dev/zero", O_RDONLY);
    int64_t done = 0, n = 1;
    (void)state;
    assert_true(file >= 0 && null >= 0 && zero >= 0);
    unlink(path);
    memset(bytes, 'x', sizeof(bytes));
    for (; done < (int64_t)sizeof(bytes) && n > 0; done += n)
        n = wr_os_write(file, bytes + done, sizeof(bytes) - (size_t)done);
    assert_int_equal(done, sizeof(bytes));
    assert_int_equal(lseek(file, 0, SEEK_CUR), done); /* at the file's own position */
    assert_int_equal(wr_os_read(file, back, sizeof(back)), 0);
    lseek(file, 0, SEEK_SET);
    for (done = 0, n = 1; n > 0; done += n)
        n = wr_os_read(file, back + done, sizeof(back) - (size_t)done);
    assert_int_equal(done, sizeof(bytes));
    assert_memory_equal(bytes, back, sizeof(bytes));
    assert_int_equal(wr_os_write(null, bytes, 100), 100);
    assert_int_equal(wr_os_read(null, back, 100), 0);
    assert_int_equal(wr_os_read(zero, back, 100), 100);
    assert_int_equal(back[99], 0);
    close(file);
    close(null);
    close(zero);
}

static void test_descriptors_that_do_not_fit_are_refused(void **state)
{
    char byte = 0;
    (void)state;
    assert_int_equal(wr_os_read(fd[1], &byte, 1), -EBADF); /* the end for writing */
    assert_int_equal(wr_os_write(fd[0], &byte, 1), -EBADF);
    assert_int_equal(wr_os_read(-1, &byte, 1), -EBADF);
    assert_int_equal(wr_os_write(-1, &byte, 1), -EBADF);
    assert_int_equal(wr_os_read(9999, &byte, 1), -EBADF);
    assert_int_equal(wr_os_set_nonblocking(-1, true), -EBADF);
    assert_int_equal(wr_os_accept(9999, NULL, NULL), -EBADF);
    assert_int_equal(wr_os_connect_result(9999), -EBADF);
}

static void test_the_mode_can_be_set_and_tells_what_it_was(void **state)
{
    (void)state;
    assert_int_equal(wr_os_set_nonblocking(fd[0], true), 0);
    assert_int_equal(wr_os_set_nonblocking(fd[0], true), 1);
    assert_true(fcntl(fd[0], F_GETFL) & O_NONBLOCK);
    assert_int_equal(wr_os_set_nonblocking(fd[0], false), 1);
    assert_int_equal(wr_os_set_nonblocking(fd[0], false), 0);
    assert_false(fcntl(fd[0], F_GETFL) & O_NONBLOCK);
}

/* ---- polling one ------------------------------------------------------------------------------ */

static void test_polling_answers_what_is_ready(void **state)
{
    weir_time deadline = wr_os_now() + 2000000;
    (void)state;
    assert_int_equal(wr_os_fd_poll(fd[0], WEIR_READ, deadline), -ETIMEDOUT);
    assert_true(wr_os_now() >= deadline);
    assert_int_equal(wr_os_fd_poll(fd[0], WEIR_READ, 0), -ETIMEDOUT);
    assert_int_equal(wr_os_fd_poll(fd[0], WEIR_READ, -1), -ETIMEDOUT);
    assert_int_equal(wr_os_fd_poll(fd[0], WEIR_READ | WEIR_WRITE, WEIR_FOREVER), WEIR_WRITE);
    assert_int_equal(write(fd[1], "x", 1), 1);
    assert_int_equal(wr_os_fd_poll(fd[0], WEIR_READ, soon()), WEIR_READ);
    close(fd[1]);
    assert_int_equal(wr_os_fd_poll(fd[0], WEIR_READ, soon()), WEIR_READ | WEIR_HANGUP);
    assert_int_equal(wr_os_fd_poll(9999, WEIR_READ, soon()), -EBADF);
}

static void on_signal(int signal)
{
    (void)signal;
}

static void *interrupt(void *arg)
{
    /* Until the other has noticed: it may not have been asleep yet. */
    while (!atomic_load((_Atomic int *)arg))
        kill(getpid(), SIGUSR1);
    return NULL;
}

static void test_a_signal_interrupts_polling(void **state)
{
    struct sigaction action = { .sa_handler = on_signal }, before;
    _Atomic int noticed = 0;
    pthread_t thread;
    sigset_t mask;
    (void)state;
    sigaction(SIGUSR1, &action, &before);
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &mask, NULL); /* inherited: the other thread does not take it */
    assert_int_equal(pthread_create(&thread, NULL, interrupt, &noticed), 0);
    pthread_sigmask(SIG_UNBLOCK, &mask, NULL);
    assert_int_equal(wr_os_fd_poll(fd[0], WEIR_READ, soon()), -EINTR);
    atomic_store(&noticed, 1);
    pthread_join(thread, NULL);
    sigaction(SIGUSR1, &before, NULL);
}

/* ---- pollers --------------------------------------------------------------------------------- */

static struct wr_os_poller poller;
static struct wr_os_ready ready[8];

static int open_poller(void **state)
{
    return open_sockets(state) || wr_os_poller_open(&poller);
}

static int close_poller(void **state)
{
    wr_os_poller_close(&poller);
    return close_both(state);
}

/* Waits until there is a report, or the deadline has come. */
static int wait_until(weir_time deadline)
{
    for (;;) {
        int n = wr_os_poller_wait(&poller, ready, 8, deadline);
        if (n || wr_os_now() >= deadline)
            return n;
    }
}

static int wait_briefly(void)
{
    return wait_until(wr_os_now() + 2000000);
}

static void test_a_poller_without_requests_waits_for_its_deadline(void **state)
{
    (void)state;
    for (int64_t us = 0; us < 2000; us += 170) {
        weir_time deadline = wr_os_now() + us * 1000;
        assert_int_equal(wait_until(deadline), 0);
        assert_true(wr_os_now() >= deadline);
    }
    assert_int_equal(wr_os_poller_wait(&poller, ready, 8, 0), 0);
    assert_int_equal(wr_os_poller_wait(&poller, ready, 8, -1), 0);
}

static void test_a_report_tells_what_was_asked_under_which_tag(void **state)
{
    (void)state;
    assert_int_equal(wr_os_poller_watch(&poller, fd[0], WEIR_READ, 77), 0);
    assert_int_equal(wait_briefly(), 0);
    assert_int_equal(write(fd[1], "x", 1), 1);
    assert_int_equal(wait_until(soon()), 1);
    assert_int_equal(ready[0].fd, fd[0]);
    assert_int_equal(ready[0].tag, 77);
    assert_int_equal(ready[0].events, WEIR_READ);
}

static void test_a_request_is_good_for_one_report(void **state)
{
    (void)state;
    assert_int_equal(write(fd[1], "x", 1), 1);
    for (uint32_t tag = 1; tag < 4; tag++) {
        assert_int_equal(wr_os_poller_watch(&poller, fd[0], WEIR_READ, tag), 0);
        assert_int_equal(wait_until(soon()), 1);
        assert_int_equal(ready[0].tag, tag);
        assert_int_equal(wait_briefly(), 0); /* although it is still readable */
    }
    close(fd[1]); /* nor does a hang-up break the silence */
    assert_int_equal(wait_briefly(), 0);
    fd[1] = dup(0);
}

static void test_a_new_request_takes_the_place_of_the_old(void **state)
{
    (void)state;
    assert_int_equal(wr_os_poller_watch(&poller, fd[0], WEIR_READ, 1), 0);
    assert_int_equal(wr_os_poller_watch(&poller, fd[0], WEIR_WRITE, 2), 0);
    assert_int_equal(wait_until(soon()), 1);
    assert_int_equal(ready[0].events, WEIR_WRITE);
    assert_int_equal(ready[0].tag, 2);
    assert_int_equal(write(fd[1], "x", 1), 1);
    assert_int_equal(wr_os_poller_watch(&poller, fd[0], WEIR_READ | WEIR_WRITE, UINT32_MAX), 0);
    assert_int_equal(wait_until(soon()), 1);
    assert_int_equal(ready[0].events, WEIR_READ | WEIR_WRITE);
    assert_int_equal(ready[0].tag, UINT32_MAX);
}

static void test_a_request_can_be_taken_back(void **state)
{
    (void)state;
    assert_int_equal(wr_os_poller_watch(&poller, fd[0], WEIR_READ, 1), 0);
    assert_int_equal(wr_os_poller_watch(&poller, fd[0], 0, 2), 0);
    assert_int_equal(write(fd[1], "x", 1), 1);
    assert_int_equal(wait_briefly(), 0);
    assert_int_equal(wr_os_poller_watch(&poller, fd[0], WEIR_READ, 3), 0); /* and made again */
    assert_int_equal(wait_until(soon()), 1);
}

static void test_the_other_end_going_away_is_reported(void **state)
{
    (void)state;
    assert_int_equal(wr_os_poller_watch(&poller, fd[0], WEIR_READ, 1), 0);
    shutdown(fd[1], SHUT_WR);
    assert_int_equal(wait_until(soon()), 1);
    assert_int_equal(ready[0].events, WEIR_READ); /* half a hang-up: it still reads what we write */
    assert_int_equal(wr_os_poller_watch(&poller, fd[0], WEIR_READ, 2), 0);
    close(fd[1]);
    assert_int_equal(wait_until(soon()), 1);
    assert_true(ready[0].events & WEIR_HANGUP);
    fd[1] = dup(0);
}

static void test_several_reports_come_at_once_but_not_more_than_wanted(void **state)
{
    int pipes[4][2], seen = 0;
    (void)state;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pipe(pipes[i]), 0);
        assert_int_equal(wr_os_poller_watch(&poller, pipes[i][1], WEIR_WRITE, (uint32_t)i), 0);
    }
    assert_int_equal(wr_os_poller_wait(&poller, ready, 1, soon()), 1);
    seen |= 1 << ready[0].tag;
    assert_int_equal(wait_until(soon()), 3);
    for (int i = 0; i < 3; i++)
        seen |= 1 << ready[i].tag;
    assert_int_equal(seen, 15);
    for (int i = 0; i < 4; i++) {
        close(pipes[i][0]);
        close(pipes[i][1]);
    }
}

static void test_a_descriptor_that_cannot_be_watched_is_refused(void **state)
{
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    (void)state;
    assert_int_equal(wr_os_poller_watch(&poller, file, WEIR_READ, 1), -EPERM);
    assert_int_equal(wr_os_poller_watch(&poller, -1, WEIR_READ, 1), -EBADF);
    assert_int_equal(wr_os_poller_watch(&poller, 9999, WEIR_WRITE, 1), -EBADF);
    close(file);
}

static void test_a_bell_rung_before_the_wait_keeps_it_from_sleeping(void **state)
{
    weir_time deadline = soon();
    (void)state;
    wr_os_poller_ring(&poller);
    wr_os_poller_ring(&poller); /* twice is as good as once */
    assert_int_equal(wr_os_poller_wait(&poller, ready, 8, deadline), 0);
    assert_true(wr_os_now() < deadline);
    deadline = wr_os_now() + 2000000;
    assert_int_equal(wait_until(deadline), 0); /* and then it is silent */
    assert_true(wr_os_now() >= deadline);
    wr_os_poller_ring(&poller);
    deadline = soon();
    assert_int_equal(wr_os_poller_wait(&poller, ready, 8, deadline), 0);
    assert_true(wr_os_now() < deadline);
}

struct ringing {
    _Atomic int waiting, heard;
};

static void *ring(void *arg)
{
    struct ringing *r = arg;

    while (!atomic_load(&r->waiting))
        wr_os_yield();
    wr_os_poller_ring(&poller);
    return NULL;
}

static void test_a_bell_rung_during_the_wait_ends_it(void **state)
{
    struct ringing r = { .waiting = 0 };
    pthread_t thread;
    (void)state;
    for (int i = 0; i < 50; i++) {
        weir_time deadline = soon();
        atomic_store(&r.waiting, 0);
        assert_int_equal(pthread_create(&thread, NULL, ring, &r), 0);
        atomic_store(&r.waiting, 1);
        assert_int_equal(wr_os_poller_wait(&poller, ready, 8, i % 2 ? deadline : WEIR_FOREVER), 0);
        assert_true(wr_os_now() < deadline);
        pthread_join(thread, NULL);
    }
}

static void test_the_bell_does_not_hide_reports(void **state)
{
    (void)state;
    assert_int_equal(wr_os_poller_watch(&poller, fd[0], WEIR_WRITE, 5), 0);
    wr_os_poller_ring(&poller);
    assert_int_equal(wait_until(soon()), 1);
    assert_int_equal(ready[0].tag, 5);
}

/* ---- connections ------------------------------------------------------------------------------ */

static void test_accept_and_connect_do_not_block(void **state)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t length = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), connection;
    int client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    (void)state;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(wr_os_accept(listener, NULL, NULL), -EAGAIN);
    int rc = wr_os_connect(client, (struct sockaddr *)&address, length);
    assert_true(rc == 0 || rc == -EINPROGRESS);
    assert_int_equal(wr_os_fd_poll(client, WEIR_WRITE, soon()), WEIR_WRITE);
    assert_int_equal(wr_os_connect_result(client), 0);
    assert_int_equal(wr_os_fd_poll(listener, WEIR_READ, soon()), WEIR_READ);
    connection = wr_os_accept(listener, NULL, NULL);
    assert_true(connection >= 0);
    assert_true(fcntl(connection, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(connection, F_GETFD) & FD_CLOEXEC);
    close(client);
    close(listener);
    close(connection);
    client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    rc = wr_os_connect(client, (struct sockaddr *)&address, length);
    if (rc == -EINPROGRESS) {
        assert_true(wr_os_fd_poll(client, WEIR_WRITE, soon()) & WEIR_HANGUP);
        rc = wr_os_connect_result(client);
    }
    assert_int_equal(rc, -ECONNREFUSED);
    wr_os_close(client);
    assert_int_equal(fcntl(client, F_GETFD), -1);
}

/* ---- children -------------------------------------------------------------------------------- */

static void test_a_child_is_reaped_once_it_has_ended(void **state)
{
    int child, status = -1;
    pid_t pid = fork();
    (void)state;
    if (pid == 0) {
        char byte;
        close(fd[1]);
        _exit(read(fd[0], &byte, 1) == 0 ? 21 : 22);
    }
    child = wr_os_child_open(pid);
    assert_true(child >= 0);
    assert_true(fcntl(child, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(wr_os_child_reap(&status, child), -EAGAIN);
    assert_int_equal(status, -1);
    close(fd[1]);
    assert_true(wr_os_fd_poll(child, WEIR_READ, soon()) & WEIR_READ);
    assert_int_equal(wr_os_child_reap(&status, child), 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 21);
    assert_int_equal(wr_os_child_reap(&status, child), -ECHILD);
    wr_os_close(child);
    assert_int_equal(wr_os_child_open(pid), -ECHILD);
}

static void test_a_child_that_was_killed_tells_the_signal(void **state)
{
    int child, status = -1;
    pid_t pid = fork();
    (void)state;
    if (pid == 0) {
        for (;;)
            pause();
    }
    child = wr_os_child_open(pid);
    assert_true(child >= 0);
    kill(pid, SIGTERM);
    assert_true(wr_os_fd_poll(child, WEIR_READ, soon()) & WEIR_READ);
    assert_int_equal(wr_os_child_reap(&status, child), 0);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    wr_os_close(child);
}

static void test_others_are_not_our_children(void **state)
{
    int status, other = wr_os_child_open(getppid());
    (void)state;
    if (other >= 0) {
        assert_int_equal(wr_os_child_reap(&status, other), -ECHILD);
        wr_os_close(other);
    }
    assert_int_equal(wr_os_child_open(0x3fffffff), -ECHILD); /* no process has that number */
}

int main(void)
{
#define ON_PIPE(test) cmocka_unit_test_setup_teardown(test, open_pipe, close_both)
#define ON_SOCKETS(test)                                          \
    {                                                             \
#test "_on_sockets", test, open_sockets, close_both, NULL \
    }
#define ON_POLLER(test) cmocka_unit_test_setup_teardown(test, open_poller, close_poller)
    const struct CMUnitTest tests[] = {
        ON_PIPE(test_an_attempt_on_a_blocking_descriptor_does_not_block),
        ON_SOCKETS(test_an_attempt_on_a_blocking_descriptor_does_not_block),
        ON_PIPE(test_a_large_write_goes_as_far_as_there_is_room),
        ON_SOCKETS(test_a_large_write_goes_as_far_as_there_is_room),
        ON_PIPE(test_the_end_is_zero_and_no_reader_is_a_broken_pipe),
        cmocka_unit_test(test_files_and_devices_can_be_read_and_written),
        ON_PIPE(test_descriptors_that_do_not_fit_are_refused),
        ON_PIPE(test_the_mode_can_be_set_and_tells_what_it_was),
        ON_SOCKETS(test_polling_answers_what_is_ready),
        ON_SOCKETS(test_a_signal_interrupts_polling),
        ON_POLLER(test_a_poller_without_requests_waits_for_its_deadline),
        ON_POLLER(test_a_report_tells_what_was_asked_under_which_tag),
        ON_POLLER(test_a_request_is_good_for_one_report),
        ON_POLLER(test_a_new_request_takes_the_place_of_the_old),
        ON_POLLER(test_a_request_can_be_taken_back),
        ON_POLLER(test_the_other_end_going_away_is_reported),
        ON_POLLER(test_several_reports_come_at_once_but_not_more_than_wanted),
        ON_POLLER(test_a_descriptor_that_cannot_be_watched_is_refused),
        ON_POLLER(test_a_bell_rung_before_the_wait_keeps_it_from_sleeping),
        ON_POLLER(test_a_bell_rung_during_the_wait_ends_it),
        ON_POLLER(test_the_bell_does_not_hide_reports),
        cmocka_unit_test(test_accept_and_connect_do_not_block),
        ON_PIPE(test_a_child_is_reaped_once_it_has_ended),
        cmocka_unit_test(test_a_child_that_was_killed_tells_the_signal),
        cmocka_unit_test(test_others_are_not_our_children),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
