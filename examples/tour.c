/* A tour of the runtime: ten thousand sleepers, an echo server with its clients, code that blocks, a
 * child process with a deadline, and a shutdown that leaves nothing behind.
 * SPDX-License-Identifier: MIT */
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weir.h>

static weir_time start;

static void say(const char *what)
{
    printf("%7.3f s  %s\n", (double)(weir_now() - start) / 1e9, what);
    fflush(stdout);
}

static void must(int rc, const char *what)
{
    if (rc >= 0)
        return;
    fprintf(stderr, "%s: %s\n", what, weir_strerror(rc));
    exit(1);
}

/* ---- 1. many that wait ----------------------------------------------------------------------- */

enum { SLEEPERS = 10000 };
static _Atomic int awake_again;

static void sleeper(void *arg)
{
    (void)arg;
    weir_sleep(weir_in_ms(1000));
    atomic_fetch_add(&awake_again, 1);
}

static void many_sleepers(weir_runtime *rt)
{
    weir_runtime_stats stats = { .size = sizeof(stats) };
    char line[128];

    for (int i = 0; i < SLEEPERS; i++)
        must(weir_spawn(rt, sleeper, NULL, NULL), "spawn");
    weir_sleep(weir_in_ms(500));
    weir_runtime_stats_get(&stats, rt);
    snprintf(line, sizeof(line), "%lu bodies asleep on %u workers, %lu stacks",
             (unsigned long)(stats.accepted - stats.ended), stats.workers,
             (unsigned long)(stats.stacks - stats.stacks_free));
    say(line);
    must(weir_runtime_drain(rt, weir_in_s(10)), "drain");
    snprintf(line, sizeof(line), "%d woke up, one second after each fell asleep", awake_again);
    say(line);
}

/* ---- 2. a server and its clients, all in one process ------------------------------------------ */

enum { CLIENTS = 50, MESSAGES = 100 };
static _Atomic int echoed;

static void serve_one(void *arg)
{
    int fd = (int)(intptr_t)arg;
    char buffer[256];
    int64_t n;

    while ((n = weir_read(fd, buffer, sizeof(buffer), weir_in_s(5))) > 0)
        weir_write(fd, buffer, (size_t)n, weir_in_s(5));
    close(fd);
}

struct server {
    weir_runtime *rt;
    int listener;
    struct sockaddr_in address;
};

static void serve(void *arg)
{
    struct server *server = arg;

    for (int i = 0; i < CLIENTS; i++) {
        int fd = weir_accept(server->listener, NULL, NULL, weir_in_s(5));
        must(fd, "accept");
        must(weir_spawn(server->rt, serve_one, (void *)(intptr_t)fd, NULL), "spawn");
    }
}

static void client(void *arg)
{
    struct server *server = arg;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char text[64], back[64];

    must(weir_connect(fd, (struct sockaddr *)&server->address, sizeof(server->address),
                      weir_in_s(5)),
         "connect");
    for (int i = 0; i < MESSAGES; i++) {
        int size = snprintf(text, sizeof(text), "message %d", i);
        must((int)weir_write(fd, text, (size_t)size, weir_in_s(5)), "write");
        int64_t n = weir_read(fd, back, sizeof(back), weir_in_s(5));
        if (n == size && memcmp(text, back, (size_t)n) == 0)
            atomic_fetch_add(&echoed, 1);
    }
    close(fd);
}

static void echo_server(weir_runtime *rt)
{
    struct server server = { .rt = rt };
    socklen_t length = sizeof(server.address);
    char line[128];

    server.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    server.address.sin_family = AF_INET;
    server.address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    must(bind(server.listener, (struct sockaddr *)&server.address, sizeof(server.address)), "bind");
    must(listen(server.listener, CLIENTS), "listen");
    getsockname(server.listener, (struct sockaddr *)&server.address, &length);
    must(weir_spawn(rt, serve, &server, WEIR_SPAWN(.name = "server")), "spawn");
    for (int i = 0; i < CLIENTS; i++)
        must(weir_spawn(rt, client, &server, WEIR_SPAWN(.name = "client")), "spawn");
    must(weir_runtime_drain(rt, weir_in_s(20)), "drain");
    close(server.listener);
    snprintf(line, sizeof(line), "%d clients had %d messages echoed", CLIENTS, echoed);
    say(line);
}

/* ---- 3. code that blocks ----------------------------------------------------------------------- */

static int slow_library_call(void *arg)
{
    poll(NULL, 0, *(int *)arg); /* blocks its thread, as code that knows nothing of weir does */
    return 7;
}

static void polite(void *arg)
{
    int ms = 100, result = 0;

    must(weir_blocking(&result, slow_library_call, &ms, weir_in_s(5)), "blocking");
    say("a blocking call ran on a thread of its own; the task parked meanwhile");
    (void)arg;
}

static void rude(void *arg)
{
    int ms = 100;

    slow_library_call(&ms); /* right on the worker */
    (void)arg;
}

static void on_stall(const weir_stall *stall, void *arg)
{
    char line[160];

    snprintf(line, sizeof(line), "the monitor: worker %u %s in \"%s\" %s %.0f ms%s", stall->worker,
             stall->over ? "was stuck" : "is stuck", stall->name, stall->over ? "for" : "since",
             (double)stall->stuck_ns / 1e6,
             stall->replaced && !stall->over ? "; another took its place" : "");
    say(line);
    (void)arg;
}

/* ---- 4. a child with a deadline ----------------------------------------------------------------- */

static void child_with_deadline(void *arg)
{
    pid_t pid = fork();

    if (pid == 0) {
        execl("/bin/sleep", "sleep", "60", (char *)NULL);
        _exit(127);
    }
    if (weir_child_wait(NULL, pid, weir_in_ms(200)) == WEIR_ETIMEDOUT) {
        int status = 0;
        kill(pid, SIGTERM);
        weir_child_wait(&status, pid, weir_in_s(5));
        say(WIFSIGNALED(status) ? "a child that took too long was ended" : "the child ended");
    }
    (void)arg;
}

int main(void)
{
    weir_runtime *rt;

    start = weir_now();
    must(weir_runtime_new(&rt, WEIR_RUNTIME(.on_stall = on_stall, .report_overflow = true)),
         "runtime");
    printf("weir %s\n", weir_version());
    many_sleepers(rt);
    echo_server(rt);
    must(weir_spawn(rt, polite, NULL, WEIR_SPAWN(.name = "polite")), "spawn");
    must(weir_spawn(rt, rude, NULL, WEIR_SPAWN(.name = "rude")), "spawn");
    must(weir_spawn(rt, child_with_deadline, NULL, WEIR_SPAWN(.name = "parent")), "spawn");
    must(weir_runtime_drain(rt, weir_in_s(20)), "drain");
    for (int i = 0; i < 1000; i++)
        must(weir_spawn(rt, sleeper, NULL, NULL), "spawn");
    weir_runtime_free(rt);
    say("freed with 1000 sleepers aboard: each was woken, ended, and nothing is left");
    return echoed == CLIENTS * MESSAGES ? 0 : 1;
}
