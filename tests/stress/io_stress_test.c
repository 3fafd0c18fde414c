/* Descriptors under load: many tasks talk over sockets and pipes, with deadlines that race.
 * SPDX-License-Identifier: MIT */
#include "support/check.h"
#include "support/seed.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    PAIRS = 40,
    ROUNDS = SANITIZED ? 500 : 3000,
    MESSAGE_MAX = 3000,
    STREAMS = 6,
    STREAM_BYTES = SANITIZED ? 2000000 : 10000000,
    SHARERS = 8,
    SHARED_BYTES = SANITIZED ? 20000 : 100000,
    CHURN = SANITIZED ? 100 : 1000,
};

static weir_time soon(struct luck *luck)
{
    return weir_in_us((int64_t)luck_below(luck, 100));
}

/* Reads or writes all of it, in as many waits as their short deadlines make of it. */
static bool read_all(int fd, char *buffer, size_t size, struct luck *luck)
{
    for (size_t done = 0; done < size;) {
        weir_time deadline = luck_below(luck, 4) ? patience() : soon(luck);
        int64_t n = weir_read(fd, buffer + done, size - done, deadline);
        if (n == WEIR_ETIMEDOUT && weir_now() >= deadline)
            continue;
        if (!CHECK(n > 0 && n <= (int64_t)(size - done)))
            return false;
        done += (size_t)n;
    }
    return true;
}

static bool write_all(int fd, const char *buffer, size_t size, struct luck *luck)
{
    for (size_t done = 0; done < size;) {
        weir_time deadline = luck_below(luck, 4) ? patience() : soon(luck);
        int64_t n = weir_write(fd, buffer + done, size - done, deadline);
        if (n == WEIR_ETIMEDOUT && weir_now() >= deadline)
            continue;
        if (!CHECK(n > 0 && n <= (int64_t)(size - done)))
            return false;
        done += (size_t)n;
    }
    return true;
}

/* ---- echo ------------------------------------------------------------------------------------ */

struct pair {
    int fd[2];
    uint64_t number;
    _Atomic uint64_t rounds;
};

static void echo(void *arg)
{
    struct pair *pair = arg;
    struct luck luck = luck_of(100 + pair->number);
    char buffer[512];

    for (;;) {
        int64_t n = weir_read(pair->fd[1], buffer, sizeof(buffer), patience());
        if (n == 0)
            return;
        if (!CHECK(n > 0) || !write_all(pair->fd[1], buffer, (size_t)n, &luck))
            return;
    }
}

static void ask(void *arg)
{
    struct pair *pair = arg;
    struct luck luck = luck_of(200 + pair->number);
    char sent[MESSAGE_MAX], back[MESSAGE_MAX];

    for (int i = 0; i < ROUNDS; i++) {
        size_t size = 1 + luck_below(&luck, luck_below(&luck, 8) ? 64 : MESSAGE_MAX);
        memset(sent, (int)luck_below(&luck, 256), size);
        memset(back, 0, size);
        if (!write_all(pair->fd[0], sent, size, &luck) || !read_all(pair->fd[0], back, size, &luck))
            break;
        CHECK(memcmp(sent, back, size) == 0);
        atomic_fetch_add(&pair->rounds, 1);
    }
    shutdown(pair->fd[0], SHUT_WR);
    CHECK_EQUAL(weir_read(pair->fd[0], back, 1, patience()), 0);
}

static void hang_up(void *arg)
{
    struct pair *pair = arg;

    echo(pair);
    close(pair->fd[1]);
}

static void test_echoes_come_back_whole(void)
{
    static struct pair pair[PAIRS];
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 3));

    for (uint64_t i = 0; i < PAIRS; i++) {
        int flags = i % 2 ? SOCK_NONBLOCK : 0;
        pair[i].number = i;
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0, pair[i].fd), 0);
        CHECK_EQUAL(weir_spawn(rt, hang_up, &pair[i], NULL), 0);
        CHECK_EQUAL(
            weir_spawn(rt, ask, &pair[i], i % 8 ? NULL : WEIR_SPAWN(.run_on = WEIR_THREADS)), 0);
    }
    drain(rt);
    for (int i = 0; i < PAIRS; i++) {
        CHECK_EQUAL(atomic_load(&pair[i].rounds), ROUNDS);
        close(pair[i].fd[0]);
    }
    weir_runtime_free(rt);
}

/* ---- streams through pipes that block --------------------------------------------------------- */

static void pour(void *arg)
{
    struct pair *stream = arg;
    struct luck luck = luck_of(300 + stream->number);
    static char bytes[1 << 16];

    for (size_t left = STREAM_BYTES; left > 0;) {
        size_t size = 1 + luck_below(&luck, sizeof(bytes));
        size = size < left ? size : left;
        if (!write_all(stream->fd[1], bytes, size, &luck))
            break;
        left -= size;
    }
    close(stream->fd[1]);
}

static void drink(void *arg)
{
    struct pair *stream = arg;
    struct luck luck = luck_of(400 + stream->number);
    char bytes[8192];
    size_t total = 0;

    for (;;) {
        int64_t n =
            weir_read(stream->fd[0], bytes, 1 + luck_below(&luck, sizeof(bytes)), patience());
        if (n <= 0) {
            CHECK_EQUAL(n, 0);
            break;
        }
        total += (size_t)n;
    }
    CHECK_EQUAL(total, STREAM_BYTES);
}

static void test_streams_through_blocking_pipes_lose_no_byte(void)
{
    struct pair stream[STREAMS];
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 2));

    for (uint64_t i = 0; i < STREAMS; i++) {
        stream[i].number = i;
        assert_int_equal(pipe2(stream[i].fd, O_CLOEXEC), 0);
        CHECK_EQUAL(weir_spawn(rt, drink, &stream[i], NULL), 0);
        CHECK_EQUAL(weir_spawn(rt, pour, &stream[i], NULL), 0);
    }
    drain(rt);
    weir_runtime_free(rt);
    for (int i = 0; i < STREAMS; i++)
        close(stream[i].fd[0]);
}

/* ---- many readers of one descriptor ------------------------------------------------------------ */

struct shared {
    int fd[2];
    uint64_t left; /* of the writer */
    _Atomic int64_t got;
};

/* All bodies read the same descriptor, also on different workers: what one is told of, another may
 * have taken. */
static void share(void *arg)
{
    struct shared *shared = arg;
    struct luck luck = luck_of(500 + (uint64_t)weir_now() % 64);
    char bytes[16];

    for (;;) {
        weir_time deadline = luck_below(&luck, 4) ? patience() : soon(&luck);
        int64_t n = weir_read(shared->fd[0], bytes, 1 + luck_below(&luck, 15), deadline);
        if (n == WEIR_ETIMEDOUT && weir_now() >= deadline)
            continue;
        if (n <= 0) {
            CHECK_EQUAL(n, 0);
            return;
        }
        atomic_fetch_add(&shared->got, n);
    }
}

static void feed(void *arg)
{
    struct shared *shared = arg;
    struct luck luck = luck_of(600);
    char bytes[64] = { 0 };

    while (shared->left > 0) {
        size_t size = 1 + luck_below(&luck, sizeof(bytes));
        size = size < shared->left ? size : shared->left;
        if (!write_all(shared->fd[1], bytes, size, &luck))
            break;
        shared->left -= size;
        if (luck_below(&luck, 4) == 0)
            weir_sleep(soon(&luck));
    }
    close(shared->fd[1]);
}

static void share_one(struct shared *shared)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 3));

    shared->left = SHARED_BYTES;
    atomic_store(&shared->got, 0);
    for (int i = 0; i < SHARERS; i++)
        CHECK_EQUAL(weir_spawn(rt, share, shared, NULL), 0);
    CHECK_EQUAL(weir_spawn(rt, feed, shared, NULL), 0);
    drain(rt);
    weir_runtime_free(rt);
    CHECK_EQUAL(atomic_load(&shared->got), SHARED_BYTES);
    close(shared->fd[0]);
}

static void test_many_readers_share_a_nonblocking_pipe(void)
{
    struct shared shared;

    assert_int_equal(pipe2(shared.fd, O_CLOEXEC | O_NONBLOCK), 0);
    share_one(&shared);
}

static void test_many_readers_share_a_blocking_pipe(void)
{
    struct shared shared;
    struct iovec part = { .iov_base = &shared, .iov_len = 1 };

    assert_int_equal(pipe2(shared.fd, O_CLOEXEC), 0);
    if (preadv2(shared.fd[0], &part, 1, -1, RWF_NOWAIT) < 0 && errno != EAGAIN) {
        printf("this kernel cannot read a pipe without waiting\n");
        close(shared.fd[0]);
        close(shared.fd[1]);
        skip();
    }
    share_one(&shared);
}

static void test_many_readers_share_a_blocking_socket(void)
{
    struct shared shared;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, shared.fd), 0);
    share_one(&shared);
}

/* ---- descriptors come and go ------------------------------------------------------------------ */

/* Waits for descriptors whose numbers were just another task's, on this worker or another. */
static void churn(void *arg)
{
    struct luck luck = luck_of(700 + (uint64_t)(uintptr_t)arg);

    for (int i = 0; i < CHURN; i++) {
        char byte = (char)i, back = 0;
        int fd[2];
        if (!CHECK(pipe2(fd, O_CLOEXEC | (i % 2 ? O_NONBLOCK : 0)) == 0))
            return;
        weir_time deadline = soon(&luck);
        CHECK_EQUAL(weir_fd_wait(fd[0], WEIR_READ, deadline), WEIR_ETIMEDOUT);
        CHECK(weir_now() >= deadline);
        CHECK(weir_fd_wait(fd[1], WEIR_WRITE, patience()) == WEIR_WRITE);
        CHECK_EQUAL(weir_write(fd[1], &byte, 1, patience()), 1);
        CHECK_EQUAL(weir_fd_wait(fd[0], WEIR_READ, patience()), WEIR_READ);
        CHECK_EQUAL(weir_read(fd[0], &back, 1, patience()), 1);
        CHECK_EQUAL(back, byte);
        close(fd[1]);
        CHECK_EQUAL(weir_read(fd[0], &back, 1, patience()), 0);
        close(fd[0]);
    }
}

static void test_reused_descriptor_numbers_are_told_apart(void)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 3));

    for (uintptr_t i = 0; i < 12; i++)
        CHECK_EQUAL(weir_spawn(rt, churn, (void *)i, NULL), 0);
    drain(rt);
    weir_runtime_free(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_echoes_come_back_whole),
        TEST(test_streams_through_blocking_pipes_lose_no_byte),
        TEST(test_many_readers_share_a_nonblocking_pipe),
        TEST(test_many_readers_share_a_blocking_pipe),
        TEST(test_many_readers_share_a_blocking_socket),
        TEST(test_reused_descriptor_numbers_are_told_apart),
    };

    seed_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
