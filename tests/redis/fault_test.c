/* Faults: servers that die, hang, refuse, or talk nonsense. Every call answers by its deadline, with a code and a sentence.
 * SPDX-License-Identifier: MIT */
#include "redis/client_support.h"
#include "redis/one_server.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* How late a call may answer on a machine that is busy with other things. */
enum { LATE_MS = 5000 };

static void check_in_time(weir_time deadline)
{
    CHECK(weir_now() < deadline + LATE_MS * INT64_C(1000000));
}

/* For servers that are frozen for as long as this machine takes: they are not given up. */
static weir_redis_options patient;

static int start_patiently(void **state)
{
    start_server(state);
    patient = *WEIR_REDIS(.url = server.url, .reply_ms = 600000);
    return 0;
}

/* ---- gone ------------------------------------------------------------------------------------ */

static void test_a_server_that_is_not_there_is_away_and_the_sentence_says_where(void)
{
    char url[64];
    struct wr_redis *redis;
    weir_message message;

    snprintf(url, sizeof(url), "redis://127.0.0.1:%d", free_port());
    redis = open_client(WEIR_REDIS(.url = url));
    assert_int_equal(wr_redis_ready(redis, patience(), &message), WEIR_EAWAY);
    assert_non_null(strstr(message.text, url + strlen("redis://")));
    assert_non_null(strstr(message.text, "onnection refused"));
    assert_int_equal(call_fails(redis, WR_COMMAND("PING"), patience(), &message), WEIR_EAWAY);
    assert_int_equal(wr_redis_state(redis, &message), WR_REDIS_DOWN);
    assert_non_null(strstr(message.text, "onnection refused"));
    assert_int_equal(wr_redis_send(redis, WR_COMMAND("PING")), WEIR_EAWAY);
    assert_int_equal(wr_redis_ask(redis, WR_COMMAND("PING"), patience(), NULL, NULL), WEIR_EAWAY);
    wr_redis_close(redis);

    redis = open_client(WEIR_REDIS(.url = "unix:///nowhere/at/all"));
    assert_int_equal(wr_redis_ready(redis, patience(), &message), WEIR_EAWAY);
    assert_non_null(strstr(message.text, "/nowhere/at/all"));
    wr_redis_close(redis);
    redis = open_client(WEIR_REDIS(.url = "redis://no-such-host.invalid"));
    assert_int_equal(wr_redis_ready(redis, patience(), &message), WEIR_EAWAY);
    assert_non_null(strstr(message.text, "no-such-host.invalid"));
    wr_redis_close(redis);
}

/* A patient call waits for a server that is down, until its deadline. */
static void test_a_patient_call_waits_for_the_server_to_come_back(void)
{
    struct wr_redis *redis =
        open_ready(WEIR_REDIS(.url = server.url, .backoff_ms = 5, .backoff_max_ms = 20));
    struct wr_command ping = *WR_COMMAND("PING");
    weir_message message;
    weir_time deadline;

    ping.patience = WEIR_FOREVER;
    server_kill(&server);
    AWAIT(wr_redis_state(redis, NULL) == WR_REDIS_DOWN);
    deadline = weir_in_ms(50);
    assert_int_equal(call_fails(redis, &ping, deadline, &message), WEIR_ETIMEDOUT);
    assert_true(weir_now() >= deadline);
    check_in_time(deadline);
    assert_non_null(strstr(message.text, "no connection: "));
    server_again(&server);
    assert_int_equal(call(redis, &ping), 4);
    wr_redis_close(redis);
}

struct states {
    _Atomic int up, down, connecting;
    char why[512];
};

static void note_state(enum wr_redis_state state, const char *why, void *arg)
{
    struct states *states = arg;

    if (state == WR_REDIS_DOWN)
        snprintf(states->why, sizeof(states->why), "%s", why);
    atomic_fetch_add(state == WR_REDIS_UP     ? &states->up
                     : state == WR_REDIS_DOWN ? &states->down
                                              : &states->connecting,
                     1);
}

static void test_up_and_down_are_told_and_recovery_comes_by_itself(void)
{
    struct states states = { 0 };
    struct wr_redis_calls calls = { .on_state = note_state, .arg = &states };
    struct wr_redis_stats stats;
    struct wr_redis *redis;

    assert_int_equal(
        wr_redis_open(&redis, WEIR_REDIS(.url = server.url, .backoff_ms = 5, .backoff_max_ms = 20),
                      &calls, NULL),
        0);
    for (int round = 1; round <= 3; round++) {
        AWAIT(atomic_load(&states.up) == round);
        assert_true(echoes(redis, "up"));
        server_kill(&server);
        AWAIT(atomic_load(&states.down) >= round);
        assert_true(states.why[0] != '\0');
        server_again(&server);
    }
    AWAIT(atomic_load(&states.up) == 4);
    wr_redis_stats_get(&stats, redis);
    assert_int_equal(stats.connects, 4);
    assert_int_equal(stats.losses, 3);
    wr_redis_close(redis);
}

/* ---- lost on the way --------------------------------------------------------------------------- */

struct background {
    struct wr_redis *redis;
    weir_time deadline;
    const char *command;
    _Atomic int done;
    int rc;
    weir_message message;
};

static void *call_in_background(void *arg)
{
    struct background *background = arg;
    struct wr_reply *reply = NULL;

    background->rc = wr_redis_call(&reply, background->redis, WR_COMMAND(background->command, "x"),
                                   background->deadline, &background->message);
    wr_reply_free(reply);
    atomic_store(&background->done, 1);
    return NULL;
}

static void call_in_body(void *arg)
{
    call_in_background(arg);
}

/* Callers wait for a server that is frozen; then it dies. All are told that the command may have run. */
static void test_a_connection_that_breaks_before_the_reply_is_a_loss(void)
{
    struct wr_redis *redis =
        open_ready(WEIR_REDIS(.url = server.url, .backoff_ms = 5, .reply_ms = 600000));
    weir_runtime *rt = new_runtime(NULL);
    struct background callers[6] = { 0 };
    struct wr_redis_stats stats;
    pthread_t threads[3];

    server_freeze(&server);
    for (int i = 0; i < 6; i++) {
        callers[i] =
            (struct background){ .redis = redis, .deadline = patience(), .command = "ECHO" };
        if (i < 3)
            pthread_create(&threads[i], NULL, call_in_background, &callers[i]);
        else
            weir_spawn(rt, call_in_body, &callers[i], NULL);
    }
    AWAIT((wr_redis_stats_get(&stats, redis), stats.commands == 6 && stats.unsent == 0));
    server_kill(&server);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    drain(rt);
    for (int i = 0; i < 6; i++) {
        CHECK_EQUAL(callers[i].rc, WEIR_ELOST);
        CHECK(strstr(callers[i].message.text, "the server closed the connection"));
    }
    weir_runtime_free(rt);
    server_again(&server);
    AWAIT(wr_redis_state(redis, NULL) == WR_REDIS_UP);
    assert_true(echoes(redis, "again"));
    wr_redis_close(redis);
}

/* ---- slow and frozen --------------------------------------------------------------------------- */

static void test_a_caller_that_gives_up_at_the_deadline_leaves_the_stream_in_step(void)
{
    struct wr_redis *redis = open_ready(&patient);
    weir_runtime *rt = new_runtime(NULL);
    struct background callers[20] = { 0 };
    struct wr_redis_stats stats;
    pthread_t threads[10];
    weir_message message;
    char text[32];

    for (int round = 0; round < 3; round++) {
        weir_time deadline = weir_in_ms(20);
        server_freeze(&server);
        assert_int_equal(call_fails(redis, WR_COMMAND("ECHO", "old"), deadline, &message),
                         WEIR_ETIMEDOUT);
        check_in_time(deadline);
        assert_int_equal(call_fails(redis, WR_COMMAND("ECHO", "now"), WEIR_NOW_OR_NEVER, &message),
                         WEIR_ETIMEDOUT);
        for (int i = 0; i < 20; i++) {
            callers[i] = (struct background){ .redis = redis,
                                              .deadline = i % 2 ? weir_in_ms(20) : patience(),
                                              .command = "ECHO" };
            if (i < 10)
                pthread_create(&threads[i], NULL, call_in_background, &callers[i]);
            else
                weir_spawn(rt, call_in_body, &callers[i], NULL);
        }
        for (int i = 1; i < 20; i += 2)
            AWAIT(atomic_load(&callers[i].done));
        server_thaw(&server);
        for (int i = 0; i < 10; i++)
            pthread_join(threads[i], NULL);
        drain(rt);
        for (int i = 0; i < 20; i++)
            CHECK_EQUAL(callers[i].rc, i % 2 ? WEIR_ETIMEDOUT : 0);
        for (int i = 0; i < 50; i++) {
            snprintf(text, sizeof(text), "%d in step", i);
            assert_true(echoes(redis, text));
        }
    }
    wr_redis_stats_get(&stats, redis);
    assert_int_equal(stats.abandoned, 36);
    assert_int_equal(stats.losses, 0);
    weir_runtime_free(rt);
    wr_redis_close(redis);
}

/* A server that takes requests and answers none is given up after reply_ms, so that the client knows that it is away. */
static void test_a_server_that_never_answers_is_given_up(void)
{
    struct wr_redis *redis = open_ready(
        WEIR_REDIS(.url = server.tcp, .reply_ms = 100, .connect_ms = 100, .backoff_ms = 20));
    struct wr_command ping = *WR_COMMAND("PING");
    struct wr_reply *reply = NULL;
    weir_message message;

    server_freeze(&server);
    assert_int_equal(call_fails(redis, WR_COMMAND("PING"), patience(), &message), WEIR_ELOST);
    assert_non_null(strstr(message.text, "has not answered for 100 ms"));
    AWAIT(wr_redis_state(redis, &message) == WR_REDIS_DOWN); /* it connects, and says nothing */
    assert_int_equal(call_fails(redis, WR_COMMAND("PING"), patience(), &message), WEIR_EAWAY);
    server_thaw(&server);
    ping.patience = WEIR_FOREVER;
    AWAIT(wr_redis_call(&reply, redis, &ping, patience(), NULL) == 0); /* within 100 ms once */
    wr_reply_free(reply);
    wr_redis_close(redis);
}

static void note(int error, struct wr_reply *reply, void *arg)
{
    wr_reply_free(reply);
    atomic_store((_Atomic int *)arg, error);
}

static void test_a_result_that_does_not_come_is_told_at_its_deadline(void)
{
    struct wr_redis *redis = open_ready(&patient);
    _Atomic int error = 0;

    server_freeze(&server);
    assert_int_equal(wr_redis_ask(redis, WR_COMMAND("PING"), weir_in_ms(30), note, &error), 0);
    AWAIT(atomic_load(&error));
    assert_int_equal(error, WEIR_ETIMEDOUT);
    server_thaw(&server);
    assert_true(echoes(redis, "in step"));
    wr_redis_close(redis);
}

/* A task that is cancelled while it waits for the server is told at once. */
static int call_in_task(void **value, void *arg)
{
    (void)value;
    call_in_background(arg);
    return 0;
}

static void test_a_cancelled_task_stops_waiting_for_the_server(void)
{
    struct wr_redis *redis = open_ready(&patient);
    struct background caller = { .redis = redis, .deadline = WEIR_FOREVER, .command = "ECHO" };
    struct wr_redis_stats stats;
    weir_executor *ex;
    weir_group *group;
    weir_task *task;

    assert_int_equal(weir_executor_new(&ex, WEIR_POLICY(.workers = 1), NULL), 0);
    assert_int_equal(weir_group_get(&group, ex, "g"), 0);
    server_freeze(&server);
    assert_int_equal(weir_submit(&task, group, call_in_task, &caller, NULL), 0);
    AWAIT((wr_redis_stats_get(&stats, redis), stats.commands) == 1);
    weir_task_cancel(task);
    AWAIT(atomic_load(&caller.done));
    assert_int_equal(caller.rc, WEIR_ECANCELED);
    server_thaw(&server);
    assert_true(echoes(redis, "in step"));
    weir_task_unref(task);
    weir_executor_free(ex);
    wr_redis_close(redis);
}

/* Workers that compute do not keep a thread from its replies, nor results from being told. */
static _Atomic int computing, enough;

static void compute(void *arg)
{
    (void)arg;
    atomic_fetch_add(&computing, 1);
    while (!atomic_load(&enough))
        ;
}

static void test_busy_workers_hold_up_no_other_caller(void)
{
    struct wr_redis *redis = open_ready(&patient);
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1));
    struct background waits = { .redis = redis, .deadline = patience(), .command = "ECHO" };
    struct wr_redis_stats stats;
    _Atomic int error = 1;

    atomic_store(&computing, 0);
    atomic_store(&enough, 0);
    server_freeze(&server);
    weir_spawn(rt, call_in_body, &waits, NULL); /* its reply comes when its worker is busy */
    AWAIT((wr_redis_stats_get(&stats, redis), stats.commands) == 1);
    weir_spawn(rt, compute, NULL, NULL);
    AWAIT(atomic_load(&computing) == 1);
    server_thaw(&server);
    assert_true(echoes(redis, "at once"));
    assert_int_equal(wr_redis_ask(redis, WR_COMMAND("PING"), patience(), note, &error), 0);
    AWAIT(atomic_load(&error) == 0);
    assert_int_equal(atomic_load(&waits.done), 0);
    atomic_store(&enough, 1);
    drain(rt);
    assert_int_equal(waits.rc, 0);
    weir_runtime_free(rt);
    wr_redis_close(redis);
}

/* ---- refused ----------------------------------------------------------------------------------- */

static void test_a_wrong_password_is_denied_and_the_right_one_is_not(void)
{
    static const char *const extra[] = { "--requirepass", "secret", "--user",  "guest", "on", ">pw",
                                         "~mine:*",       "+@all",  "-config", "&*",    NULL };
    struct server guarded;
    struct wr_redis *redis;
    weir_message message;

    server_start(&guarded, extra);
    redis = open_client(WEIR_REDIS(.url = guarded.url, .password = "wrong"));
    assert_int_equal(wr_redis_ready(redis, patience(), &message), WEIR_EDENIED);
    assert_non_null(strstr(message.text, "WRONGPASS"));
    assert_null(strstr(message.text, "wrong"));
    assert_int_equal(call_fails(redis, WR_COMMAND("PING"), patience(), &message), WEIR_EDENIED);
    wr_redis_close(redis);

    redis = open_client(WEIR_REDIS(.url = guarded.url));
    assert_int_equal(wr_redis_ready(redis, patience(), &message), WEIR_EDENIED);
    assert_non_null(strstr(message.text, "NOAUTH"));
    wr_redis_close(redis);

    redis = open_ready(WEIR_REDIS(.url = guarded.url, .password = "secret"));
    assert_int_equal(call(redis, WR_COMMAND("SET", "a", "1")), 2);
    wr_redis_close(redis);

    redis = open_ready(WEIR_REDIS(.url = guarded.url, .user = "guest", .password = "pw"));
    assert_int_equal(call(redis, WR_COMMAND("SET", "mine:a", "1")), 2);
    assert_int_equal(call_fails(redis, WR_COMMAND("GET", "a"), patience(), &message), WEIR_EDENIED);
    assert_non_null(strstr(message.text, "NOPERM"));
    assert_int_equal(call_fails(redis, WR_COMMAND("CONFIG", "GET", "*"), patience(), &message),
                     WEIR_EDENIED);
    wr_redis_close(redis);
    server_stop(&guarded);
}

static void test_a_database_that_the_server_does_not_have_is_said(void)
{
    struct wr_redis *redis = open_client(WEIR_REDIS(.url = server.url, .database = 16));
    weir_message message;

    assert_int_equal(wr_redis_ready(redis, patience(), &message), WEIR_EAWAY);
    assert_non_null(strstr(message.text, "DB index is out of range"));
    wr_redis_close(redis);
}

static void test_a_server_without_memory_says_so(void)
{
    static const char *const extra[] = { "--maxmemory", "1mb", "--maxmemory-policy", "noeviction",
                                         NULL };
    struct server small;
    struct wr_redis *redis;
    struct wr_reply *reply = NULL;
    weir_message message;
    char big[100001];
    int rc = 0;

    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    server_start(&small, extra);
    redis = open_ready(WEIR_REDIS(.url = small.url));
    for (int i = 0; i < 100 && !rc; i++) {
        char key[16];
        wr_reply_free(reply);
        snprintf(key, sizeof(key), "%d", i);
        rc = wr_redis_call(&reply, redis, WR_COMMAND("SET", key, big), patience(), &message);
    }
    assert_int_equal(rc, WEIR_EREPLY);
    assert_true(wr_reply_is_error(reply, "OOM"));
    assert_non_null(strstr(message.text, "OOM"));
    wr_reply_free(reply);
    wr_redis_close(redis);
    server_stop(&small);
}

static void test_a_replica_refuses_to_be_written(void)
{
    struct server replica;
    char port[16];
    const char *extra[] = { "--replicaof", "127.0.0.1", port, NULL };
    struct wr_redis *redis;
    struct wr_reply *reply;
    weir_message message;

    snprintf(port, sizeof(port), "%d", server.port);
    server_start(&replica, extra);
    redis = open_ready(WEIR_REDIS(.url = replica.url));
    assert_int_equal(
        wr_redis_call(&reply, redis, WR_COMMAND("SET", "a", "1"), patience(), &message),
        WEIR_EREPLY);
    assert_true(wr_reply_is_error(reply, "READONLY"));
    wr_reply_free(reply);
    wr_redis_close(redis);
    server_stop(&replica);
}

/* ---- nonsense ---------------------------------------------------------------------------------- */

/* A server of ours that says the same to every client, whatever it is asked: once per read. */
struct liar {
    struct sockaddr_un address;
    int fd;
    pthread_t thread;
    const char *says;
    size_t size;
    bool hangs_up; /* after it has said it */
    _Atomic int connections;
    char url[128];
};

static void *lie(void *arg)
{
    struct liar *liar = arg;
    char data[4096];
    int fd;

    while ((fd = accept(liar->fd, NULL, NULL)) >= 0) {
        atomic_fetch_add(&liar->connections, 1);
        while (read(fd, data, sizeof(data)) > 0) {
            if (liar->size && send(fd, liar->says, liar->size, MSG_NOSIGNAL) < 0)
                break;
            if (liar->hangs_up)
                break;
        }
        close(fd);
    }
    return NULL;
}

static void liar_start(struct liar *liar, const char *says, bool hangs_up)
{
    memset(liar, 0, sizeof(*liar));
    liar->says = says;
    liar->size = strlen(says);
    liar->hangs_up = hangs_up;
    liar->address.sun_family = AF_UNIX;
    snprintf(liar->address.sun_path, sizeof(liar->address.sun_path), "%s/liar", server.dir);
    snprintf(liar->url, sizeof(liar->url), "unix://%s", liar->address.sun_path);
    unlink(liar->address.sun_path);
    liar->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(liar->fd, (struct sockaddr *)&liar->address, sizeof(liar->address)), 0);
    assert_int_equal(listen(liar->fd, 16), 0);
    assert_int_equal(pthread_create(&liar->thread, NULL, lie, liar), 0);
}

static void liar_stop(struct liar *liar)
{
    shutdown(liar->fd, SHUT_RDWR);
    pthread_join(liar->thread, NULL);
    close(liar->fd);
}

static void test_a_text_that_is_no_reply_is_an_error_and_never_a_hang(void)
{
    static const struct {
        const char *says;
        bool hangs_up;
        int rc;
        const char *sentence;
        bool waits; /* for more, so that only the clock ends it */
    } rows[] = {
        { "HTTP/1.0 400 Bad Request\r\n\r\n", false, WEIR_EPROTO, "no valid reply", false },
        { "*1000000000\r\n", false, WEIR_EPROTO, "no valid reply", false },
        { "$-7\r\n", false, WEIR_EPROTO, "no valid reply", false },
        { "", true, WEIR_EAWAY, "closed the connection", false },
        { "$100\r\nhalf", true, WEIR_EAWAY, "closed the connection", false },
        { "-ERR max number of clients reached\r\n", true, WEIR_EAWAY, NULL, false },
        { "-NOAUTH Authentication required.\r\n", false, WEIR_EDENIED, "NOAUTH", false },
        { "$100\r\nhalf", false, WEIR_EAWAY, NULL, true }, /* and then nothing */
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct wr_redis *redis;
        struct liar liar;
        weir_message message = { "" };
        weir_time deadline = patience();
        uint32_t ms = rows[i].waits ? 200 : 60000;
        liar_start(&liar, rows[i].says, rows[i].hangs_up);
        redis = open_client(
            WEIR_REDIS(.url = liar.url, .connect_ms = ms, .reply_ms = ms, .backoff_ms = 5));
        int rc = wr_redis_ready(redis, deadline, &message);
        if (!rc) /* it passed for a server until it was asked */
            rc = call_fails(redis, WR_COMMAND("PING"), deadline, &message);
        if (!CHECK_EQUAL(rc == WEIR_ELOST ? WEIR_EAWAY : rc, rows[i].rc) ||
            !CHECK(!rows[i].sentence || strstr(message.text, rows[i].sentence)))
            printf("%s: %s: %s\n", rows[i].says, weir_errname(rc), message.text);
        CHECK(weir_now() < deadline);
        wr_redis_close(redis);
        liar_stop(&liar);
    }
}

/* A state that passes is waited for, but not beyond the deadline; then the caller gets the server's own words. */
static void test_a_server_that_is_still_loading_is_asked_again_until_the_deadline(void)
{
    struct wr_reply *reply = NULL;
    struct wr_redis_stats stats;
    struct wr_redis *redis;
    weir_message message;
    weir_time deadline;
    struct liar liar;
    int rc;

    liar_start(&liar, "-LOADING Redis is loading the dataset in memory\r\n", false);
    redis = open_ready(WEIR_REDIS(.url = liar.url));
    for (int64_t ms = 100, asked = 0; asked < 2; ms *= 2) { /* a busy machine takes longer */
        wr_redis_stats_get(&stats, redis);
        asked = -(int64_t)stats.commands;
        deadline = weir_in_ms(ms);
        rc = wr_redis_call(&reply, redis, WR_COMMAND("GET", "a"), deadline, &message);
        check_in_time(deadline);
        wr_redis_stats_get(&stats, redis);
        asked += (int64_t)stats.commands;
        CHECK(asked <= ms / 2);
        if (rc == WEIR_ETIMEDOUT) /* its last answer was on its way */
            asked = 0;
        else if (CHECK_EQUAL(rc, WEIR_EREPLY) && CHECK(wr_reply_is_error(reply, "LOADING")))
            CHECK(strstr(message.text, "LOADING"));
        wr_reply_free(reply);
    }
    wr_redis_close(redis);
    liar_stop(&liar);
}

/* One reply too many is found out: later replies would belong to other requests. */
static void test_a_reply_without_a_request_ends_the_connection(void)
{
    struct wr_redis *redis;
    weir_message message;
    struct liar liar;

    liar_start(&liar, "+OK\r\n+OK\r\n", false);
    redis = open_client(WEIR_REDIS(.url = liar.url, .backoff_ms = 5));
    assert_int_equal(wr_redis_ready(redis, patience(), &message), WEIR_EPROTO);
    assert_non_null(strstr(message.text, "a reply without a request"));
    wr_redis_close(redis);
    liar_stop(&liar);
}

/* A server that hangs up on every client is tried again with pauses, not in a loop. */
static void test_attempts_to_connect_come_with_growing_pauses(void)
{
    struct wr_redis *redis;
    struct liar liar;

    liar_start(&liar, "", true);
    redis = open_client(WEIR_REDIS(.url = liar.url, .backoff_ms = 20, .backoff_max_ms = 1000));
    weir_sleep(weir_in_ms(400));
    /* Pauses of at least 10, 20, 40, 80, 160, 320 ms. */
    assert_true(atomic_load(&liar.connections) <= 8);
    AWAIT(atomic_load(&liar.connections) >= 2);
    wr_redis_close(redis);
    liar_stop(&liar);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_server_that_is_not_there_is_away_and_the_sentence_says_where),
        TEST(test_a_patient_call_waits_for_the_server_to_come_back),
        TEST(test_up_and_down_are_told_and_recovery_comes_by_itself),
        TEST(test_a_connection_that_breaks_before_the_reply_is_a_loss),
        TEST(test_a_caller_that_gives_up_at_the_deadline_leaves_the_stream_in_step),
        TEST(test_a_server_that_never_answers_is_given_up),
        TEST(test_a_result_that_does_not_come_is_told_at_its_deadline),
        TEST(test_a_cancelled_task_stops_waiting_for_the_server),
        TEST(test_busy_workers_hold_up_no_other_caller),
        TEST(test_a_wrong_password_is_denied_and_the_right_one_is_not),
        TEST(test_a_database_that_the_server_does_not_have_is_said),
        TEST(test_a_server_without_memory_says_so),
        TEST(test_a_replica_refuses_to_be_written),
        TEST(test_a_text_that_is_no_reply_is_an_error_and_never_a_hang),
        TEST(test_a_server_that_is_still_loading_is_asked_again_until_the_deadline),
        TEST(test_a_reply_without_a_request_ends_the_connection),
        TEST(test_attempts_to_connect_come_with_growing_pauses),
    };

    return cmocka_run_group_tests(tests, start_patiently, stop_server);
}
