/* Starts and stops servers. See server.h.
 * SPDX-License-Identifier: MIT */
#include "redis/server.h"

#include "support/check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static _Noreturn void give_up(const char *what, const struct server *server)
{
    char line[512];
    FILE *log = server ? fopen(server->log, "r") : NULL;

    fprintf(stderr, "tests/redis/server.c: %s (errno: %s)\n", what, strerror(errno));
    while (log && fgets(line, sizeof(line), log))
        fprintf(stderr, "    %s", line);
    if (log)
        fclose(log);
    _exit(1); /* the servers go with us: see start */
}

static void pause_briefly(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
}

/* By chance, and below those that the kernel gives to connections: one of these might take it while a server is restarted. */
int free_port(void)
{
    enum { FIRST = 10240, COUNT = 20000, ATTEMPTS = 1000 };
    struct sockaddr_in address = { .sin_family = AF_INET };

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < ATTEMPTS; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), rc;
        uint16_t chance = 0;

        if (fd < 0 || getentropy(&chance, sizeof(chance)))
            give_up("no free port", NULL);
        address.sin_port = htons((uint16_t)(FIRST + chance % COUNT));
        rc = bind(fd, (struct sockaddr *)&address, sizeof(address));
        close(fd);
        if (rc == 0)
            return ntohs(address.sin_port);
    }
    give_up("no free port", NULL);
}

static pid_t start(char *const *argv, const char *log)
{
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid < 0)
        give_up("fork", NULL);
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (fd >= 0) {
        dup2(fd, 1);
        dup2(fd, 2);
    }
    execvp(argv[0], argv);
    fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

void run_program(const char *const *argv)
{
    pid_t pid = start((char *const *)argv, "/dev/null");
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (status) {
        fprintf(stderr, "%s: ended with status %d\n", argv[0], status);
        give_up("a program failed", NULL);
    }
}

void server_word(struct server *server, const char *word)
{
    if (server->count + 1 >= SERVER_ARGS || !(server->args[server->count] = strdup(word)))
        give_up("too many words", server);
    server->args[++server->count] = NULL;
}

/* Whether it answers yet. LOADING and NOAUTH are answers, too: it listens. */
static bool answers(struct server *server)
{
    redisContext *context = redisConnectUnix(server->socket);
    redisReply *reply = context && !context->err ? redisCommand(context, "PING") : NULL;
    bool well = reply && !(reply->type == REDIS_REPLY_ERROR && !strncmp(reply->str, "LOADING", 7));

    if (reply)
        freeReplyObject(reply);
    if (context)
        redisFree(context);
    return well;
}

void server_again(struct server *server)
{
    weir_time limit = weir_in_s(60);
    int status;

    server->pid = start(server->args, server->log);
    while (!answers(server)) {
        if (waitpid(server->pid, &status, WNOHANG) == server->pid || weir_now() > limit)
            give_up("the server did not start", server);
        pause_briefly();
    }
}

void server_prepare(struct server *server)
{
    memset(server, 0, sizeof(*server));
    /* In memory where there is such a place: a disk that others keep busy makes servers and logs wait for seconds. */
    snprintf(server->dir, sizeof(server->dir), "%s/weir-redis-XXXXXX",
             access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    if (!mkdtemp(server->dir))
        give_up("no directory", NULL);
    server->port = free_port();
    snprintf(server->socket, sizeof(server->socket), "%s/s", server->dir);
    snprintf(server->log, sizeof(server->log), "%s/log", server->dir);
    snprintf(server->url, sizeof(server->url), "unix://%s", server->socket);
    snprintf(server->tcp, sizeof(server->tcp), "redis://127.0.0.1:%d", server->port);
}

const char *server_program(void)
{
    const char *name = getenv("WEIR_REDIS_SERVER");

    return name && *name ? name : "redis-server";
}

void server_start(struct server *server, const char *const *extra)
{
    char text[32];

    server_prepare(server);
    snprintf(text, sizeof(text), "%d", server->port);
    const char *const words[] = { server_program(),
                                  "--port",
                                  text,
                                  "--bind",
                                  "127.0.0.1",
                                  "-::1",
                                  "--unixsocket",
                                  server->socket,
                                  "--dir",
                                  server->dir,
                                  "--save",
                                  "",
                                  "--appendonly",
                                  "no",
                                  "--repl-diskless-sync-delay",
                                  "0",
                                  "--daemonize",
                                  "no",
                                  NULL };
    for (int i = 0; words[i]; i++)
        server_word(server, words[i]);
    for (int i = 0; extra && extra[i]; i++)
        server_word(server, extra[i]);
    server_again(server);
}

static void end(struct server *server, int number)
{
    if (!server->pid)
        return;
    kill(server->pid, number);
    kill(server->pid, SIGCONT);
    while (waitpid(server->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    server->pid = 0;
}

void server_kill(struct server *server)
{
    end(server, SIGKILL);
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)info, (void)type, (void)where;
    return remove(path);
}

void server_stop(struct server *server)
{
    end(server, SIGKILL); /* nothing of it is needed any more */
    if (server->dir[0])
        nftw(server->dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    for (int i = 0; i < server->count; i++)
        free(server->args[i]);
    memset(server, 0, sizeof(*server));
}

void server_freeze(struct server *server)
{
    int status;

    kill(server->pid, SIGSTOP);
    if (waitpid(server->pid, &status, WUNTRACED) != server->pid || !WIFSTOPPED(status))
        give_up("it did not stop", server);
}

void server_thaw(struct server *server)
{
    kill(server->pid, SIGCONT);
}

/* One attempt. NULL: the connection was reset, as sentinels do with those of servers whose role they change. */
static redisReply *ask_once(struct server *server, const char *format, va_list list)
{
    redisContext *context = redisConnectUnix(server->socket);
    redisReply *reply;

    if (!context || context->err)
        give_up("no connection", server);
    reply = redisvCommand(context, format, list);
    if (!reply && (context->err == REDIS_ERR_EOF || errno == ECONNRESET || errno == EPIPE)) {
        redisFree(context);
        return NULL;
    }
    if (!reply || reply->type == REDIS_REPLY_ERROR) {
        fprintf(stderr, "%s: %s\n", format, reply ? reply->str : context->errstr);
        give_up("the server refused a command", server);
    }
    redisFree(context);
    return reply;
}

static redisReply *ask(struct server *server, const char *format, va_list list)
{
    redisReply *reply = NULL;

    for (int i = 0; i < 20 && !reply; i++) {
        va_list copy;
        va_copy(copy, list);
        reply = ask_once(server, format, copy);
        va_end(copy);
    }
    if (!reply)
        give_up("the server resets every connection", server);
    return reply;
}

long long server_do(struct server *server, const char *format, ...)
{
    long long answer = -1;
    redisReply *reply;
    va_list list;

    va_start(list, format);
    reply = ask(server, format, list);
    va_end(list);
    if (reply->type == REDIS_REPLY_INTEGER)
        answer = reply->integer;
    else if (reply->type == REDIS_REPLY_ARRAY)
        answer = (long long)reply->elements;
    else if (reply->type != REDIS_REPLY_NIL)
        answer = strtoll(reply->str, NULL, 10);
    freeReplyObject(reply);
    return answer;
}

char *server_say(struct server *server, const char *format, ...)
{
    redisReply *reply;
    va_list list;
    char *text;

    va_start(list, format);
    reply = ask(server, format, list);
    va_end(list);
    text = strdup(reply->str ? reply->str : "");
    freeReplyObject(reply);
    return text;
}

bool server_says(struct server *server, const char *command, const char *words)
{
    char *text = server_say(server, command);
    bool found = strstr(text, words) != NULL;

    free(text);
    return found;
}
