/* Descriptors and children. Each scenario is played by tasks, by pool threads and by plain threads.
 * SPDX-License-Identifier: MIT */
#include "support/check.h"
#include "support/child.h"
#include "support/crew.h"

#include <limits.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

static void close_both(int fd[2])
{
    close(fd[0]);
    close(fd[1]);
}

static bool is_nonblocking(int fd)
{
    return fcntl(fd, F_GETFL) & O_NONBLOCK;
}

/* Writes, without waiting, until there is no room; answers how much. */
static int64_t fill(int fd)
{
    static char bytes[4096];
    int flags = fcntl(fd, F_GETFL);
    int64_t total = 0;
    ssize_t n;

    fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    while ((n = write(fd, bytes, sizeof(bytes))) > 0 || (n = write(fd, bytes, 1)) > 0)
        total += n;
    fcntl(fd, F_SETFL, flags);
    return total;
}

struct wait {
    int fd;
    int events;
    weir_time deadline;
    int answer; /* wanted */
    _Atomic int begun, done;
};

#define WAIT(fd, events, deadline, answer) \
    {                                      \
        fd, events, deadline, answer, 0, 0 \
    }

static void wait_for(void *arg)
{
    struct wait *w = arg;

    atomic_store(&w->begun, 1);
    CHECK_EQUAL(weir_fd_wait(w->fd, w->events, w->deadline), w->answer);
    if (w->answer == WEIR_ETIMEDOUT)
        CHECK(weir_now() >= w->deadline);
    atomic_store(&w->done, 1);
}

/* ---- readiness ------------------------------------------------------------------------------- */

static void test_a_wait_answers_what_is_ready(struct crew *crew)
{
    int fd[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    struct wait write_only = WAIT(fd[0], WEIR_WRITE, patience(), WEIR_WRITE);
    struct wait either = WAIT(fd[0], WEIR_READ | WEIR_WRITE, patience(), WEIR_WRITE);
    struct wait both = WAIT(fd[0], WEIR_READ | WEIR_WRITE, patience(), WEIR_READ | WEIR_WRITE);
    struct wait read_only = WAIT(fd[0], WEIR_READ, patience(), WEIR_READ);
    crew_play(crew, wait_for, &write_only);
    crew_play(crew, wait_for, &either);
    CHECK_EQUAL(write(fd[1], "x", 1), 1);
    crew_play(crew, wait_for, &both);
    crew_play(crew, wait_for, &read_only);
    close_both(fd);
}

static void test_a_wait_ends_when_something_comes(struct crew *crew)
{
    int fd[2];

    assert_int_equal(pipe(fd), 0);
    struct wait w = WAIT(fd[0], WEIR_READ, patience(), WEIR_READ);
    crew_go(crew, wait_for, &w);
    AWAIT(atomic_load(&w.begun));
    CHECK(!atomic_load(&w.done));
    CHECK_EQUAL(write(fd[1], "x", 1), 1);
    crew_join(crew);
    close_both(fd);
}

static void test_a_wait_ends_when_there_is_room(struct crew *crew)
{
    char bytes[65536];
    int fd[2];

    assert_int_equal(pipe(fd), 0);
    fill(fd[1]);
    struct wait w = WAIT(fd[1], WEIR_WRITE, patience(), WEIR_WRITE);
    crew_go(crew, wait_for, &w);
    AWAIT(atomic_load(&w.begun));
    CHECK(!atomic_load(&w.done));
    CHECK(read(fd[0], bytes, sizeof(bytes)) > 0);
    crew_join(crew);
    close_both(fd);
}

static void test_a_deadline_ends_a_wait_and_not_before(struct crew *crew)
{
    int fd[2];

    assert_int_equal(pipe(fd), 0);
    for (int i = 0; i < 5; i++) {
        struct wait w = WAIT(fd[0], WEIR_READ, weir_in_us(700 * i), WEIR_ETIMEDOUT);
        crew_play(crew, wait_for, &w);
    }
    close_both(fd);
}

static void test_a_deadline_in_the_past_looks_once(struct crew *crew)
{
    weir_time past[] = { WEIR_NOW_OR_NEVER, 1, -1, INT64_MIN, weir_now() };
    int fd[2];

    for (size_t i = 0; i < sizeof(past) / sizeof(past[0]); i++) {
        assert_int_equal(pipe(fd), 0);
        struct wait nothing = WAIT(fd[0], WEIR_READ, past[i], WEIR_ETIMEDOUT);
        struct wait something = WAIT(fd[0], WEIR_READ, past[i], WEIR_READ);
        struct wait room = WAIT(fd[1], WEIR_WRITE, past[i], WEIR_WRITE);
        crew_play(crew, wait_for, &nothing);
        crew_play(crew, wait_for, &room);
        CHECK_EQUAL(write(fd[1], "x", 1), 1);
        crew_play(crew, wait_for, &something);
        close_both(fd);
    }
}

/* The end of a file is something to read: a loop that waits and reads must come to it. */
static void test_the_end_of_a_pipe_is_ready_to_read(struct crew *crew)
{
    int fd[2];

    assert_int_equal(pipe(fd), 0);
    close(fd[1]);
    struct wait w = WAIT(fd[0], WEIR_READ, patience(), WEIR_READ | WEIR_HANGUP);
    crew_play(crew, wait_for, &w);
    close(fd[0]);
}

static void test_the_end_of_a_connection_is_ready_to_read(struct crew *crew)
{
    int fd[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    shutdown(fd[1], SHUT_WR);
    struct wait half = WAIT(fd[0], WEIR_READ, patience(), WEIR_READ);
    crew_play(crew, wait_for, &half); /* it may still be written to */
    close(fd[1]);
    struct wait whole = WAIT(fd[0], WEIR_READ, patience(), WEIR_READ | WEIR_HANGUP);
    crew_play(crew, wait_for, &whole);
    close(fd[0]);
}

static void test_a_closed_reader_ends_a_wait_for_room(struct crew *crew)
{
    int fd[2];

    assert_int_equal(pipe(fd), 0);
    fill(fd[1]);
    struct wait w = WAIT(fd[1], WEIR_WRITE, patience(), WEIR_WRITE | WEIR_HANGUP);
    crew_go(crew, wait_for, &w);
    AWAIT(atomic_load(&w.begun));
    close(fd[0]);
    crew_join(crew);
    close(fd[1]);
}

/* One waits to read, one to write, the same socket; each is woken by what it waits for. */
static void test_a_reader_and_a_writer_share_a_descriptor(struct crew *crew)
{
    char bytes[4096];
    int fd[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
    for (int first = 0; first < 2; first++) {
        fill(fd[0]);
        struct wait reader = WAIT(fd[0], WEIR_READ, patience(), WEIR_READ);
        struct wait writer = WAIT(fd[0], WEIR_WRITE, patience(), WEIR_WRITE);
        crew_go(crew, wait_for, first ? &reader : &writer);
        crew_go(crew, wait_for, first ? &writer : &reader);
        AWAIT(atomic_load(&reader.begun) && atomic_load(&writer.begun));
        if (first) {
            CHECK_EQUAL(write(fd[1], "x", 1), 1);
            AWAIT(atomic_load(&reader.done));
            CHECK(!atomic_load(&writer.done));
            while (read(fd[1], bytes, sizeof(bytes)) > 0)
                ;
        } else {
            while (read(fd[1], bytes, sizeof(bytes)) > 0)
                ;
            AWAIT(atomic_load(&writer.done));
            CHECK(!atomic_load(&reader.done));
            CHECK_EQUAL(write(fd[1], "x", 1), 1);
        }
        crew_join(crew);
        CHECK_EQUAL(read(fd[0], bytes, 1), 1);
    }
    close_both(fd);
}

static void test_all_waiters_of_a_descriptor_are_woken(struct crew *crew)
{
    struct wait w[8];
    int fd[2];

    assert_int_equal(pipe(fd), 0);
    for (int i = 0; i < 8; i++) {
        w[i] = (struct wait)WAIT(fd[0], WEIR_READ, patience(), WEIR_READ);
        crew_go(crew, wait_for, &w[i]);
    }
    for (int i = 0; i < 8; i++)
        AWAIT(atomic_load(&w[i].begun));
    CHECK_EQUAL(write(fd[1], "x", 1), 1);
    crew_join(crew);
    close_both(fd);
}

/* The deadline of one waiter is no reason to forget the other. */
static void test_one_of_two_waits_times_out(struct crew *crew)
{
    int fd[2];

    assert_int_equal(pipe(fd), 0);
    struct wait patient = WAIT(fd[0], WEIR_READ, patience(), WEIR_READ);
    struct wait hasty = WAIT(fd[0], WEIR_READ, weir_in_ms(5), WEIR_ETIMEDOUT);
    crew_go(crew, wait_for, &patient);
    crew_go(crew, wait_for, &hasty);
    AWAIT(atomic_load(&hasty.done));
    CHECK(!atomic_load(&patient.done));
    CHECK_EQUAL(write(fd[1], "x", 1), 1);
    crew_join(crew);
    close_both(fd);
}

static void test_two_descriptors_of_one_file_are_told_apart(struct crew *crew)
{
    int fd[2], twin;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    twin = dup(fd[0]);
    struct wait a = WAIT(fd[0], WEIR_READ, patience(), WEIR_READ);
    struct wait b = WAIT(twin, WEIR_READ | WEIR_WRITE, patience(), WEIR_WRITE);
    crew_go(crew, wait_for, &a);
    crew_go(crew, wait_for, &b);
    AWAIT(atomic_load(&b.done));
    CHECK(!atomic_load(&a.done));
    CHECK_EQUAL(write(fd[1], "x", 1), 1);
    crew_join(crew);
    close(twin);
    close_both(fd);
}

static void use_regular_file(void *arg)
{
    char text[] = "0123456789", back[32] = "";
    int fd = *(int *)arg;

    CHECK_EQUAL(weir_fd_wait(fd, WEIR_READ, patience()), WEIR_READ);
    CHECK_EQUAL(weir_fd_wait(fd, WEIR_WRITE, WEIR_NOW_OR_NEVER), WEIR_WRITE);
    CHECK_EQUAL(weir_fd_wait(fd, WEIR_READ | WEIR_WRITE, patience()), WEIR_READ | WEIR_WRITE);
    CHECK_EQUAL(weir_write(fd, text, 10, patience()), 10);
    CHECK_EQUAL(lseek(fd, 0, SEEK_SET), 0);
    CHECK_EQUAL(weir_read(fd, back, sizeof(back), WEIR_NOW_OR_NEVER), 10);
    CHECK(strcmp(back, text) == 0);
    CHECK_EQUAL(weir_read(fd, back, sizeof(back), patience()), 0);
    CHECK_EQUAL(lseek(fd, 0, SEEK_SET), 0);
    CHECK_EQUAL(ftruncate(fd, 0), 0);
}

static void test_regular_files_are_always_ready(struct crew *crew)
{
    char path[] = "/tmp/weir-io-XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    crew_play(crew, use_regular_file, &fd);
    unlink(path);
    close(fd);
}

/* ---- what is refused -------------------------------------------------------------------------- */

static void use_closed_descriptor(void *arg)
{
    int fd = *(int *)arg;
    char byte = 0;
    struct sockaddr_in address = { .sin_family = AF_INET };

    CHECK_EQUAL(weir_fd_wait(fd, WEIR_READ, patience()), WEIR_EBADF);
    CHECK_EQUAL(weir_fd_wait(fd, WEIR_WRITE, WEIR_NOW_OR_NEVER), WEIR_EBADF);
    CHECK_EQUAL(weir_read(fd, &byte, 1, patience()), WEIR_EBADF);
    CHECK_EQUAL(weir_write(fd, &byte, 1, patience()), WEIR_EBADF);
    CHECK_EQUAL(weir_accept(fd, NULL, NULL, patience()), WEIR_EBADF);
    CHECK_EQUAL(weir_connect(fd, (struct sockaddr *)&address, sizeof(address), patience()),
                WEIR_EBADF);
}

static void test_descriptors_that_are_not_open_are_refused(struct crew *crew)
{
    int closed = fcntl(0, F_DUPFD, 500), negative = -1, minimum = INT_MIN, large = 100000;

    close(closed);
    crew_play(crew, use_closed_descriptor, &closed);
    crew_play(crew, use_closed_descriptor, &negative);
    crew_play(crew, use_closed_descriptor, &minimum);
    crew_play(crew, use_closed_descriptor, &large);
}

static int absurd;

static void use_absurd_descriptor(void)
{
    weir_runtime *rt = NULL;

    setrlimit(RLIMIT_CPU, &(struct rlimit){ 5, 5 }); /* should it look for ever */
    CHECK_EQUAL(weir_runtime_new(&rt, WEIR_RUNTIME(.workers = 1)), 0);
    CHECK_EQUAL(weir_spawn(rt, use_closed_descriptor, &absurd, NULL), 0);
    drain(rt);
    weir_runtime_free(rt);
}

static void test_numbers_no_descriptor_ever_has_are_refused(void)
{
    int numbers[] = { 1 << 26, 1 << 30, INT_MAX };

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        absurd = numbers[i];
        CHECK_EQUAL(in_child(use_absurd_descriptor), 0);
    }
}

static void pass_nonsense(void *arg)
{
    int fd = *(int *)arg;
    char byte;

    CHECK_EQUAL(weir_fd_wait(fd, 0, patience()), WEIR_EINVAL);
    CHECK_EQUAL(weir_fd_wait(fd, WEIR_HANGUP, patience()), WEIR_EINVAL);
    CHECK_EQUAL(weir_fd_wait(fd, WEIR_READ | 8, patience()), WEIR_EINVAL);
    CHECK_EQUAL(weir_fd_wait(fd, -1, patience()), WEIR_EINVAL);
    CHECK_EQUAL(weir_read(fd, NULL, 1, patience()), WEIR_EINVAL);
    CHECK_EQUAL(weir_read(fd, &byte, SIZE_MAX, patience()), WEIR_EINVAL);
    CHECK_EQUAL(weir_write(fd, NULL, 1, patience()), WEIR_EINVAL);
    CHECK_EQUAL(weir_write(fd, &byte, SIZE_MAX, patience()), WEIR_EINVAL);
    CHECK_EQUAL(weir_connect(fd, NULL, 0, patience()), WEIR_EINVAL);
    CHECK_EQUAL(weir_child_wait(NULL, 0, patience()), WEIR_EINVAL);
    CHECK_EQUAL(weir_child_wait(NULL, -1, patience()), WEIR_EINVAL);
    CHECK_EQUAL(weir_accept(fd, NULL, NULL, patience()), -ENOTSOCK);
}

static void test_nonsense_is_refused(struct crew *crew)
{
    int fd[2];

    assert_int_equal(pipe(fd), 0);
    crew_play(crew, pass_nonsense, &fd[0]);
    close_both(fd);
}

/* ---- reading and writing ----------------------------------------------------------------------- */

static void read_to_the_end(void *arg)
{
    int fd = *(int *)arg;
    char bytes[16];

    CHECK_EQUAL(weir_read(fd, bytes, sizeof(bytes), patience()), 3);
    CHECK_EQUAL(weir_read(fd, bytes, sizeof(bytes), patience()), 0);
    CHECK_EQUAL(weir_read(fd, bytes, sizeof(bytes), WEIR_NOW_OR_NEVER), 0);
}

static void test_a_peer_that_closes_is_the_end_of_file(struct crew *crew)
{
    int fd[2];

    for (int sockets = 0; sockets < 2; sockets++) {
        assert_int_equal(sockets ? socketpair(AF_UNIX, SOCK_STREAM, 0, fd) : pipe(fd), 0);
        CHECK_EQUAL(write(fd[1], "abc", 3), 3);
        crew_go(crew, read_to_the_end, &fd[0]);
        close(fd[1]);
        crew_join(crew);
        close(fd[0]);
    }
}

static void write_without_reader(void *arg)
{
    CHECK_EQUAL(weir_write(*(int *)arg, "abc", 3, patience()), WEIR_EPIPE);
}

static void test_a_reader_that_closes_is_a_broken_pipe(struct crew *crew)
{
    int fd[2];

    for (int sockets = 0; sockets < 2; sockets++) {
        assert_int_equal(sockets ? socketpair(AF_UNIX, SOCK_STREAM, 0, fd) : pipe(fd), 0);
        close(fd[0]);
        crew_play(crew, write_without_reader, &fd[1]);
        close(fd[1]);
    }
}

static void use_socket_without_reader(void)
{
    int fd[2];

    signal(SIGPIPE, SIG_DFL);
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    close(fd[0]);
    write_without_reader(&fd[1]);
}

static void test_sockets_raise_no_sigpipe(void)
{
    CHECK_EQUAL(in_child(use_socket_without_reader), 0);
}

struct wide {
    int fd;
    int64_t size, answer;
    weir_time deadline;
};

static void write_wide(void *arg)
{
    struct wide *wide = arg;
    char *bytes = calloc(1, (size_t)wide->size);
    int64_t n = weir_write(wide->fd, bytes, (size_t)wide->size, wide->deadline);

    if (wide->answer)
        CHECK_EQUAL(n, wide->answer);
    else
        CHECK(n > 0 && n < wide->size);
    free(bytes);
}

static void test_a_write_that_is_stopped_tells_how_far_it_came(struct crew *crew)
{
    int fd[2];

    for (int sockets = 0; sockets < 2; sockets++) {
        assert_int_equal(sockets ? socketpair(AF_UNIX, SOCK_STREAM, 0, fd) : pipe(fd), 0);
        struct wide some = { fd[1], 4 << 20, 0, weir_in_ms(5) };
        struct wide none = { fd[1], 100000, WEIR_ETIMEDOUT, weir_in_ms(5) };
        crew_play(crew, write_wide, &some);
        fill(fd[1]);
        crew_play(crew, write_wide, &none);
        none.deadline = WEIR_NOW_OR_NEVER;
        crew_play(crew, write_wide, &none);
        CHECK(!is_nonblocking(fd[1]));
        close_both(fd);
    }
}

enum { LARGE = SANITIZED ? 3 << 20 : 8 << 20 };

static uint8_t large_byte(size_t at)
{
    return (uint8_t)(at * 31 ^ at >> 9);
}

static void write_large(void *arg)
{
    uint8_t *bytes = malloc(LARGE);

    for (size_t i = 0; i < LARGE; i++)
        bytes[i] = large_byte(i);
    CHECK_EQUAL(weir_write(*(int *)arg, bytes, LARGE, patience()), LARGE);
    free(bytes);
    close(*(int *)arg);
}

static void read_large(void *arg)
{
    static const size_t sizes[] = { 1, 100, 4096, 5000, 65536 };
    uint8_t *bytes = malloc(65536);
    size_t at = 0;
    bool same = true;

    for (int i = 0;; i++) {
        int64_t n = weir_read(*(int *)arg, bytes, sizes[i % 5], patience());
        if (n <= 0) {
            CHECK_EQUAL(n, 0);
            break;
        }
        for (int64_t j = 0; j < n; j++)
            same = same && bytes[j] == large_byte(at++);
    }
    CHECK(same);
    CHECK_EQUAL(at, LARGE);
    free(bytes);
}

static void test_large_writes_go_through_small_buffers(struct crew *crew)
{
    int fd[2];

    for (int sockets = 0; sockets < 2; sockets++) {
        assert_int_equal(sockets ? socketpair(AF_UNIX, SOCK_STREAM, 0, fd) : pipe(fd), 0);
        crew_go(crew, read_large, &fd[0]);
        crew_go(crew, write_large, &fd[1]);
        crew_join(crew);
        close(fd[0]);
    }
}

struct greed {
    int fd;
    _Atomic int stop;
};

static void read_until_stopped(void *arg)
{
    struct greed *greed = arg;
    char bytes[16];

    while (!atomic_load(&greed->stop))
        if (!CHECK_EQUAL(weir_read(greed->fd, bytes, sizeof(bytes), patience()), sizeof(bytes)))
            break;
}

static void stop_reader(void *arg)
{
    atomic_store(&((struct greed *)arg)->stop, 1);
}

static void test_a_descriptor_that_is_always_ready_does_not_shut_out_others(void)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1, .stall_after_ms = 60000));
    struct greed greed = { .fd = open("/dev/zero", O_RDONLY | O_CLOEXEC) };

    CHECK_EQUAL(weir_spawn(rt, read_until_stopped, &greed, NULL), 0);
    CHECK_EQUAL(weir_spawn(rt, stop_reader, &greed, NULL), 0);
    CHECK_EQUAL(weir_runtime_drain(rt, patience()), 0);
    atomic_store(&greed.stop, 1);
    weir_runtime_free(rt);
    close(greed.fd);
}

static _Atomic int interrupts;

static void on_interrupt(int signal)
{
    (void)signal;
    atomic_fetch_add(&interrupts, 1);
}

static void read_one(void *arg)
{
    char byte = 0;

    CHECK_EQUAL(weir_read(*(int *)arg, &byte, 1, patience()), 1);
    CHECK_EQUAL(byte, 'x');
}

static void test_an_interrupted_wait_goes_on(void)
{
    struct sigaction action = { .sa_handler = on_interrupt }, old; /* no SA_RESTART */
    struct crew crew = { .way = AS_PLAIN_THREADS };
    int fd[2];

    sigaction(SIGUSR1, &action, &old);
    assert_int_equal(pipe(fd), 0);
    crew_go(&crew, read_one, &fd[0]);
    for (weir_time limit = patience(); atomic_load(&interrupts) < 20 && weir_now() < limit;) {
        pthread_kill(crew.actor[0].thread, SIGUSR1);
        weir_sleep(weir_in_us(100));
    }
    CHECK(atomic_load(&interrupts) >= 20);
    CHECK_EQUAL(write(fd[1], "x", 1), 1);
    crew_join(&crew);
    sigaction(SIGUSR1, &old, NULL);
    close_both(fd);
}

/* ---- connections ------------------------------------------------------------------------------ */

static int listen_at_loopback(struct sockaddr_in *address, int backlog)
{
    socklen_t length = sizeof(*address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    *address = (struct sockaddr_in){ .sin_family = AF_INET };
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)address, sizeof(*address)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)address, &length), 0);
    assert_int_equal(listen(fd, backlog), 0);
    return fd;
}

/* An abstract address, so that nothing is left behind. */
static int listen_at_local(struct sockaddr_un *address, socklen_t *length, int backlog)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    *address = (struct sockaddr_un){ .sun_family = AF_UNIX };
    *length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                          (size_t)snprintf(address->sun_path + 1, 90, "weir-io-%d", getpid()));
    assert_int_equal(bind(fd, (struct sockaddr *)address, *length), 0);
    assert_int_equal(listen(fd, backlog), 0);
    return fd;
}

struct connection {
    int listener;
    struct sockaddr *address;
    socklen_t length;
    int type; /* flags for the socket */
    weir_time deadline;
    int answer;
};

static void greet(void *arg)
{
    struct connection *c = arg;
    struct sockaddr_storage peer;
    socklen_t length = sizeof(peer);
    int fd = weir_accept(c->listener, (struct sockaddr *)&peer, &length, patience());

    if (!CHECK(fd >= 0))
        return;
    CHECK_EQUAL(peer.ss_family, c->address->sa_family);
    CHECK(is_nonblocking(fd));
    CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    CHECK(is_nonblocking(c->listener));
    CHECK_EQUAL(weir_write(fd, "hello", 5, patience()), 5);
    close(fd);
}

static void visit(void *arg)
{
    struct connection *c = arg;
    char word[8] = "";
    int fd = socket(c->address->sa_family, SOCK_STREAM | c->type, 0);

    CHECK_EQUAL(weir_connect(fd, c->address, c->length, patience()), 0);
    CHECK_EQUAL(is_nonblocking(fd), c->type == SOCK_NONBLOCK); /* as it was */
    CHECK_EQUAL(weir_read(fd, word, 5, patience()), 5);
    CHECK(strcmp(word, "hello") == 0);
    CHECK_EQUAL(weir_read(fd, word, 5, patience()), 0);
    close(fd);
}

static void test_one_connects_and_one_accepts(struct crew *crew)
{
    struct sockaddr_in internet;
    struct sockaddr_un local;
    socklen_t local_length;
    int fd[2] = { listen_at_loopback(&internet, 8), listen_at_local(&local, &local_length, 8) };

    for (int i = 0; i < 8; i++) {
        struct connection c = { .listener = fd[i % 2], .type = i & 2 ? SOCK_NONBLOCK : 0 };
        c.address = i % 2 ? (struct sockaddr *)&local : (struct sockaddr *)&internet;
        c.length = i % 2 ? local_length : sizeof(internet);
        crew_go(crew, i & 4 ? greet : visit, &c); /* the first of both waits for the other */
        crew_go(crew, i & 4 ? visit : greet, &c);
        crew_join(crew);
    }
    close_both(fd);
}

static void accept_in_vain(void *arg)
{
    CHECK_EQUAL(weir_accept(*(int *)arg, NULL, NULL, weir_in_ms(3)), WEIR_ETIMEDOUT);
    CHECK_EQUAL(weir_accept(*(int *)arg, NULL, NULL, WEIR_NOW_OR_NEVER), WEIR_ETIMEDOUT);
}

static void test_no_client_connects_before_the_deadline(struct crew *crew)
{
    struct sockaddr_in address;
    int fd = listen_at_loopback(&address, 8);

    crew_play(crew, accept_in_vain, &fd);
    close(fd);
}

static void connect_to(void *arg)
{
    struct connection *c = arg;
    int fd = socket(c->address->sa_family, SOCK_STREAM | c->type, 0);

    CHECK_EQUAL(weir_connect(fd, c->address, c->length, c->deadline), c->answer);
    if (c->answer == WEIR_ETIMEDOUT)
        CHECK(weir_now() >= c->deadline);
    CHECK_EQUAL(is_nonblocking(fd), c->type == SOCK_NONBLOCK);
    close(fd);
}

static void test_connecting_without_a_listener_is_refused(struct crew *crew)
{
    struct sockaddr_in internet;
    struct sockaddr_un local = { .sun_family = AF_UNIX, .sun_path = "/nonexistent/weir" };
    struct connection c = { .address = (struct sockaddr *)&internet, .length = sizeof(internet) };

    close(listen_at_loopback(&internet, 8));
    c.deadline = patience();
    c.answer = -ECONNREFUSED;
    crew_play(crew, connect_to, &c);
    c.type = SOCK_NONBLOCK;
    crew_play(crew, connect_to, &c);
    c.address = (struct sockaddr *)&local;
    c.length = sizeof(local);
    c.answer = -ENOENT;
    crew_play(crew, connect_to, &c);
}

/* A listener without a server: when its queue is full, newcomers wait. */
static void queue_up(struct connection *c, int *waiting, int count)
{
    for (int i = 0; i < count; i++) {
        waiting[i] = socket(c->address->sa_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
        connect(waiting[i], c->address, c->length);
    }
}

static void test_a_full_listener_keeps_newcomers_waiting(struct crew *crew)
{
    struct sockaddr_in internet;
    struct sockaddr_un local;
    socklen_t local_length;
    int fd[2] = { listen_at_loopback(&internet, 0), listen_at_local(&local, &local_length, 0) };
    int waiting[4];

    for (int i = 0; i < 4; i++) {
        struct connection c = { .listener = fd[i % 2], .answer = WEIR_ETIMEDOUT };
        c.address = i % 2 ? (struct sockaddr *)&local : (struct sockaddr *)&internet;
        c.length = i % 2 ? local_length : sizeof(internet);
        queue_up(&c, waiting, 4);
        c.deadline = i & 2 ? WEIR_NOW_OR_NEVER : weir_in_ms(10);
        crew_play(crew, connect_to, &c);
        for (int j = 0; j < 4; j++)
            close(waiting[j]);
    }
    close_both(fd);
}

static void test_a_place_in_a_full_queue_becomes_free(struct crew *crew)
{
    struct sockaddr_un local;
    socklen_t length;
    int listener = listen_at_local(&local, &length, 0), waiting[2], served;
    struct connection c = { .address = (struct sockaddr *)&local, .length = length };

    queue_up(&c, waiting, 2);
    c.deadline = patience();
    crew_go(crew, connect_to, &c);
    served = accept(listener, NULL, NULL);
    CHECK(served >= 0);
    crew_join(crew);
    close(served);
    close_both(waiting);
    close(listener);
}

/* ---- children -------------------------------------------------------------------------------- */

struct parent {
    pid_t pid;
    weir_time deadline;
    int answer, status;
};

static void await_child(void *arg)
{
    struct parent *p = arg;
    int status = -1;

    CHECK_EQUAL(weir_child_wait(&status, p->pid, p->deadline), p->answer);
    CHECK_EQUAL(status, p->answer ? -1 : p->status); /* untouched on failure */
}

/* A child that ends with `status` when the pipe's other end closes. */
static pid_t child_that_exits(int status, int fd[2])
{
    char byte;
    pid_t pid;

    assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(fd[1]);
        while (read(fd[0], &byte, 1) < 0)
            ;
        _exit(status);
    }
    close(fd[0]);
    return pid;
}

static pid_t child_that_dies_of(int signal)
{
    pid_t pid = fork();

    if (pid == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
        sigaction(signal, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
        raise(signal);
        _exit(99);
    }
    return pid;
}

static void test_a_child_exits(struct crew *crew)
{
    for (int status = 0; status < 256; status += 51) {
        int fd[2];
        struct parent p = { child_that_exits(status, fd), patience(), 0, status << 8 };
        crew_go(crew, await_child, &p);
        close(fd[1]);
        crew_join(crew);
        CHECK_EQUAL(waitpid(p.pid, NULL, WNOHANG), -1); /* reaped */
    }
}

static void test_a_child_dies_of_a_signal(struct crew *crew)
{
    int signals[] = { SIGKILL, SIGTERM };

    for (int i = 0; i < 2; i++) {
        struct parent p = { child_that_dies_of(signals[i]), patience(), 0, signals[i] };
        crew_play(crew, await_child, &p);
    }
}

static void test_a_child_outlives_the_deadline(struct crew *crew)
{
    int fd[2];
    pid_t pid = child_that_exits(3, fd);
    struct parent later = { pid, weir_in_ms(3), WEIR_ETIMEDOUT, 0 };
    struct parent now = { pid, WEIR_NOW_OR_NEVER, WEIR_ETIMEDOUT, 0 };
    struct parent end = { pid, patience(), 0, 3 << 8 };

    crew_play(crew, await_child, &later);
    crew_play(crew, await_child, &now);
    close(fd[1]);
    crew_play(crew, await_child, &end);
}

static void test_several_children_end_in_any_order(struct crew *crew)
{
    struct parent p[6];
    int fd[6][2];

    for (int i = 0; i < 6; i++) {
        p[i] = (struct parent){ child_that_exits(10 + i, fd[i]), patience(), 0, (10 + i) << 8 };
        crew_go(crew, await_child, &p[i]);
    }
    for (int i = 6; i-- > 0;) /* later ones inherited the pipes of those before */
        close(fd[i][1]);
    crew_join(crew);
}

static void test_processes_that_are_not_our_children_are_refused(struct crew *crew)
{
    struct parent foreign = { getppid(), patience(), WEIR_ECHILD, 0 };
    struct parent self = { getpid(), patience(), WEIR_ECHILD, 0 };
    struct parent reaped = { child_that_dies_of(SIGKILL), patience(), WEIR_ECHILD, 0 };

    CHECK_EQUAL(waitpid(reaped.pid, NULL, 0), reaped.pid);
    crew_play(crew, await_child, &foreign);
    crew_play(crew, await_child, &self);
    crew_play(crew, await_child, &reaped);
}

static void await_child_without_asking(void *arg)
{
    CHECK_EQUAL(weir_child_wait(NULL, *(pid_t *)arg, patience()), 0);
}

static void test_a_caller_need_not_ask_for_the_status(struct crew *crew)
{
    pid_t pid = child_that_dies_of(SIGKILL);

    crew_play(crew, await_child_without_asking, &pid);
}

static void test_waits_leave_no_descriptor_behind(void)
{
    int before = descriptor_count();
    pid_t pid = child_that_dies_of(SIGKILL);

    await_child_without_asking(&pid);
    CHECK_EQUAL(weir_child_wait(NULL, pid, patience()), WEIR_ECHILD);
    CHECK_EQUAL(weir_child_wait(NULL, getppid(), patience()), WEIR_ECHILD);
    CHECK_EQUAL(descriptor_count(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAY(test_a_wait_answers_what_is_ready),
        PLAY(test_a_wait_ends_when_something_comes),
        PLAY(test_a_wait_ends_when_there_is_room),
        PLAY(test_a_deadline_ends_a_wait_and_not_before),
        PLAY(test_a_deadline_in_the_past_looks_once),
        PLAY(test_the_end_of_a_pipe_is_ready_to_read),
        PLAY(test_the_end_of_a_connection_is_ready_to_read),
        PLAY(test_a_closed_reader_ends_a_wait_for_room),
        PLAY(test_a_reader_and_a_writer_share_a_descriptor),
        PLAY(test_all_waiters_of_a_descriptor_are_woken),
        PLAY(test_one_of_two_waits_times_out),
        PLAY(test_two_descriptors_of_one_file_are_told_apart),
        PLAY(test_regular_files_are_always_ready),
        PLAY(test_descriptors_that_are_not_open_are_refused),
        TEST(test_numbers_no_descriptor_ever_has_are_refused),
        PLAY(test_nonsense_is_refused),
        PLAY(test_a_peer_that_closes_is_the_end_of_file),
        PLAY(test_a_reader_that_closes_is_a_broken_pipe),
        TEST(test_sockets_raise_no_sigpipe),
        PLAY(test_a_write_that_is_stopped_tells_how_far_it_came),
        PLAY(test_large_writes_go_through_small_buffers),
        TEST(test_a_descriptor_that_is_always_ready_does_not_shut_out_others),
        TEST(test_an_interrupted_wait_goes_on),
        PLAY(test_one_connects_and_one_accepts),
        PLAY(test_no_client_connects_before_the_deadline),
        PLAY(test_connecting_without_a_listener_is_refused),
        PLAY(test_a_full_listener_keeps_newcomers_waiting),
        PLAY(test_a_place_in_a_full_queue_becomes_free),
        PLAY(test_a_child_exits),
        PLAY(test_a_child_dies_of_a_signal),
        PLAY(test_a_child_outlives_the_deadline),
        PLAY(test_several_children_end_in_any_order),
        PLAY(test_processes_that_are_not_our_children_are_refused),
        PLAY(test_a_caller_need_not_ask_for_the_status),
        TEST(test_waits_leave_no_descriptor_behind),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
