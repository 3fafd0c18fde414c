/* Faults by chance, more than a thousand per run: holders, whose wall clocks jump all the time, are killed and stopped, connections
 * cut, the server frozen, killed and emptied, or replaced by a replica that lacks the last of what it had. What the server did and what
 * the processes wrote down meanwhile is judged by tests/redis/history.py, which shares no code with us.
 * SPDX-License-Identifier: MIT */
#include "redis/member.h"
#include "redis/witness.h"

#include "support/seed.h"
#include "support/soak.h"

#include <sys/stat.h>
#include <time.h>

enum { LEASE_MS = 250, GUARDS = 4, PER_GUARD = 3, MEMBERS = GUARDS * PER_GUARD };

/* Where sanitizers look a few are enough; the count is the release build's. */
enum { FAULTS = SANITIZED ? 300 : 1000 };

static const struct {
    const char *name;
    int limit;
} guards[GUARDS] = { { "g1", 1 }, { "g2", 2 }, { "g3", 3 }, { "g5", 5 } };

static const char *const names[] = { "g1", "g2", "g3", "g5", NULL };

enum fault { KILLED, STOPPED, CUT, DEAF, FLUSHED, FROZEN, EMPTIED, FAILED_OVER, FAULT_KINDS };
static const int weight[FAULT_KINDS] = { 25, 25, 30, 10, 8, 2, 1, 2 };

struct fleet {
    struct member member[MEMBERS];
    char log[MEMBERS][160];     /* of the present process */
    weir_time stopped[MEMBERS]; /* continues then; 0: runs */
    char dir[128], own_log[160];
    int logs, faults[FAULT_KINDS];
    struct server replica;
    char address[96]; /* where the server is: a link to the socket of the one that is in use */
    struct witness witness;
    struct luck luck;
};

static long long clock_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (long long)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void write_line(const char *path, char what, long long at, long long wall)
{
    FILE *file = fopen(path, "a");

    assert_non_null(file);
    fprintf(file, "%c * 0 %lld %lld 0\n", what, at, wall);
    fclose(file);
}

static void note_at(const char *path, char what, long long at)
{
    write_line(path, what, at, 0);
}

static void note(const char *path, char what)
{
    note_at(path, what, clock_ns(CLOCK_MONOTONIC));
}

/* Both clocks at one moment: they are read again if this thread was kept from running in between. */
static void note_clocks(const char *path)
{
    enum { ONE_MOMENT_NS = 1000000 };
    long long before, wall;

    do {
        before = clock_ns(CLOCK_MONOTONIC);
        wall = clock_ns(CLOCK_REALTIME);
    } while (clock_ns(CLOCK_MONOTONIC) - before > ONE_MOMENT_NS);
    write_line(path, 'O', before, wall);
}

/* ---- the server and its replica -------------------------------------------------------------------- */

/* Clients find it from now on, and not before its witness is there. */
static void show_server(struct fleet *f, const char *why)
{
    witness_begin(&f->witness, &server, why, names);
    assert_int_equal(symlink(server.socket, f->address), 0);
    note(f->own_log, 'U');
}

static void lose_server(struct fleet *f)
{
    note(f->own_log, 'D');
    unlink(f->address);
    server_kill(&server);
    witness_end(&f->witness);
}

/* Starts it with nothing: replicas leave what they got from their master in a file. */
static void start_empty(struct server *it)
{
    char path[96];

    snprintf(path, sizeof(path), "%s/dump.rdb", it->dir);
    unlink(path);
    server_again(it);
}

static void follow_server(struct fleet *f)
{
    server_do(&f->replica, "REPLICAOF 127.0.0.1 %d", server.port);
}

static void await_in_step(struct fleet *f)
{
    AWAIT(server_says(&f->replica, "INFO replication", "master_link_status:up"));
}

static void swap_servers(struct fleet *f)
{
    struct server other = f->replica;

    f->replica = server;
    server = other;
    snprintf(server.url, sizeof(server.url), "%s", f->replica.url);
}

/* Changes that the server made while it was cut off from its replica are lost with it. */
static void fail_over(struct fleet *f)
{
    await_in_step(f);
    server_freeze(&f->replica);
    server_do(&server, "CLIENT KILL TYPE replica");
    weir_sleep(weir_in_ms((int64_t)luck_below(&f->luck, 30)));
    lose_server(f);
    server_thaw(&f->replica);
    swap_servers(f);
    free(server_say(&server, "REPLICAOF NO ONE"));
    show_server(f, "fail-over");
    start_empty(&f->replica);
    follow_server(f);
}

static void start_servers(struct fleet *f)
{
    snprintf(f->address, sizeof(f->address), "%s/address", server.dir);
    snprintf(server.url, sizeof(server.url), "unix://%s", f->address);
    server_start(&f->replica, NULL);
    follow_server(f);
    show_server(f, "first");
}

/* ---- faults ------------------------------------------------------------------------------------------ */

static void start(struct fleet *f, int i)
{
    int g = i % GUARDS;

    snprintf(f->log[i], sizeof(f->log[i]), "%s/%d", f->dir, f->logs++);
    member_start(&f->member[i], guards[g].name, guards[g].limit, LEASE_MS, f->log[i], "work",
                 luck_below(&f->luck, 1u << 30), 0);
}

static void go_on(struct fleet *f, int i)
{
    if (f->stopped[i]) {
        note(f->log[i], 'C');
        kill(f->member[i].pid, SIGCONT);
    }
    f->stopped[i] = 0;
}

static void kill_one(struct fleet *f, int i)
{
    long long at;

    kill(f->member[i].pid, SIGKILL);
    at = clock_ns(CLOCK_MONOTONIC); /* it does nothing any more, however long it takes to be gone */
    close(f->member[i].in);
    member_reap(&f->member[i]);
    f->stopped[i] = 0;
    note_at(f->log[i], 'K', at);
    start(f, i);
}

/* One connection of all, by chance. */
static void cut_one(struct fleet *f, const char *type)
{
    char *list = server_say(&server, "CLIENT LIST TYPE %s", type), *at = list;
    uint64_t skip = luck_below(&f->luck, 2 * MEMBERS);

    for (; skip > 0 && at && strchr(at, '\n') && strchr(at, '\n')[1]; skip--)
        at = strchr(at, '\n') + 1;
    if (strchr(at, '\n'))
        *strchr(at, '\n') = '\0';
    if (strncmp(at, "id=", 3) == 0 && !strstr(at, " flags=O")) /* not the witness */
        server_do(&server, "CLIENT KILL ID %lld", strtoll(at + 3, NULL, 10));
    free(list);
}

static void inject(struct fleet *f, enum fault fault)
{
    int i = (int)luck_below(&f->luck, MEMBERS);

    f->faults[fault]++;
    switch (fault) {
    case KILLED:
        kill_one(f, i);
        break;
    case STOPPED:
        if (!f->stopped[i]) {
            kill(f->member[i].pid, SIGSTOP);
            note(f->log[i], 'S');
            f->stopped[i] = weir_in_ms(LEASE_MS + (int64_t)luck_below(&f->luck, LEASE_MS));
        }
        break;
    case CUT:
        cut_one(f, "normal");
        break;
    case DEAF:
        cut_one(f, "pubsub");
        break;
    case FLUSHED:
        free(server_say(&server, "SCRIPT FLUSH SYNC"));
        break;
    case FROZEN: /* half open: connections stand, and nothing comes */
        note(f->own_log, 'D');
        server_freeze(&server);
        weir_sleep(weir_in_ms(20 + (int64_t)luck_below(&f->luck, 2 * LEASE_MS)));
        server_thaw(&server);
        note(f->own_log, 'U');
        break;
    case FAILED_OVER:
        fail_over(f);
        break;
    default:
        lose_server(f);
        start_empty(&server);
        show_server(f, "emptied");
        weir_sleep(weir_in_ms(2 * LEASE_MS));
    }
}

static enum fault choose(struct fleet *f)
{
    int sum = 0, at;

    for (int i = 0; i < FAULT_KINDS; i++)
        sum += weight[i];
    at = (int)luck_below(&f->luck, (uint64_t)sum);
    for (int i = 0; i < FAULT_KINDS; i++)
        if ((at -= weight[i]) < 0)
            return (enum fault)i;
    return KILLED;
}

static void continue_due(struct fleet *f, bool all)
{
    weir_time now = weir_now();

    for (int i = 0; i < MEMBERS; i++)
        if (f->stopped[i] && (all || now >= f->stopped[i]))
            go_on(f, i);
}

static void judge(struct fleet *f)
{
    char command[512];

    fflush(stdout);
    snprintf(command, sizeof(command),
             "/usr/bin/python3 %s/tests/redis/history.py %d g1=1,g2=2,g3=3,g5=5 %s/../witness %s/*",
             WEIR_SOURCE, LEASE_MS, f->dir, f->dir);
    assert_int_equal(system(command), 0);
}

static void test_a_thousand_faults_break_no_limit_lose_no_permit_and_forget_no_waiter(void)
{
    struct fleet f = { .logs = 0 };
    int count = (int)soak_times(FAULTS);
    char log[160];
    weir_store *store;

    seed_init();
    f.luck = luck_of(0);
    snprintf(f.dir, sizeof(f.dir), "%s/history", server.dir);
    snprintf(log, sizeof(log), "%s/witness", server.dir);
    snprintf(f.own_log, sizeof(f.own_log), "%s/server", f.dir);
    assert_int_equal(mkdir(f.dir, 0700), 0);
    witness_open(&f.witness, log);
    note_clocks(f.own_log);
    start_servers(&f);
    for (int i = 0; i < MEMBERS; i++)
        start(&f, i);
    weir_sleep(weir_in_ms(200));
    for (int n = 0; n < count; n++) {
        inject(&f, choose(&f));
        weir_sleep(weir_in_ms(5 + (int64_t)luck_below(&f.luck, 20)));
        continue_due(&f, false);
    }
    continue_due(&f, true);
    for (int i = 0; i < MEMBERS; i++)
        close(f.member[i].in);
    for (int i = 0; i < MEMBERS; i++)
        assert_int_equal(member_reap(&f.member[i]), 0);
    for (int i = 0; i < FAULT_KINDS && count >= 1000; i++)
        assert_true(f.faults[i] > 0);
    printf("faults: %d killed, %d stopped, %d cut, %d deaf, %d flushed, %d frozen, %d emptied, "
           "%d failed over\n",
           f.faults[0], f.faults[1], f.faults[2], f.faults[3], f.faults[4], f.faults[5],
           f.faults[6], f.faults[7]);
    store = store_of(NULL);
    for (int i = 0; i < GUARDS; i++) {
        weir_guard *guard =
            guard_of(store, guards[i].name,
                     WEIR_CONCURRENCY(.limit = guards[i].limit, .lease_ns = MS(LEASE_MS)));
        weir_audit audit = { .size = sizeof(audit) };

        assert_int_equal(weir_guard_audit(&audit, guard), 0);
        assert_true(audit.sound);
        weir_guard_unref(guard);
    }
    weir_store_free(store);
    witness_end(&f.witness);
    witness_close(&f.witness);
    note_clocks(f.own_log);
    judge(&f);
    server_stop(&f.replica);
}

/* ---- the judge ------------------------------------------------------------------------------------- */

static void write_file(const char *name, const char *text)
{
    char path[160];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", server.dir, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* A lease is a millisecond, the limit 1. `log`: the server's, or NULL. */
static bool finds_right(const char *one, const char *other, const char *log)
{
    char command[512];

    write_file("one", one);
    write_file("other", other);
    write_file("log", log ? log : "");
    snprintf(command, sizeof(command),
             "cd %s && /usr/bin/python3 %s/tests/redis/history.py 1 g=1 %s one other >/dev/null",
             server.dir, WEIR_SOURCE, log ? "log" : "-");
    return system(command) == 0;
}

static void test_the_judge_sees_what_clients_do_wrong(void)
{
    static const struct {
        const char *history;
        bool right;
    } cases[] = {
        { "A g 0 1 0 0\nE g 5 2 900 0\nL g 5 9 900 0\nA g 0 9 0 0\nE g 6 10 900 0\nL g 6 11 900 "
          "0\n",
          true },
        { "A g 0 1 0 0\nE g 5 2 900 0\nA g 0 3 0 1\nE g 6 4 900 1\nL g 5 9 900 0\nL g 6 9 900 1\n",
          false }, /* two */
        { "A g 0 1 0 0\nE g 5 2 900 0\nA g 0 3 0 1\nE g 6 899 1800 1\nL g 6 950 1800 1\nL g 5 990 "
          "0 0\n",
          false },
        { "A g 0 1 0 0\nE g 5 2 900 0\nL g 5 9 900 0\nA g 0 9 0 0\nE g 4 10 900 0\nL g 4 11 900 "
          "0\n",
          false },                                                                 /* token */
        { "A g 0 1 0 0\nE g 5 2 900 0\nW g 5 901 900 0\nL g 5 902 0 0\n", false }, /* works on */
        { "A g 0 1 0 0\nE g 5 2 900 0\nL g 5 9 900 0\nA g 0 10 0 0\n", false },    /* forgotten */
        { "A g 0 1 0 0\nE g 5 2 900 0\nL g 5 9 900 0\nA g 0 10 0 0\nT g 7 20 0 0\n",
          false }, /* gave up */
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (finds_right(cases[i].history, "", NULL) != cases[i].right)
            fail_msg("history %zu", i);
}

#define ASKS(at, process, pid)                                                \
    at " [0 u] \"EVALSHA\" \"x\" \"1\" \"weir:{g}:cfg\" \"enter\" \"" process \
       "\" \"1\" \"1\" \"1\" \"1\" \"h " pid " -\"\n"
#define RENEWS(at, process)                                                                    \
    at " [0 u] \"EVALSHA\" \"x\" \"1\" \"weir:{g}:cfg\" \"renew\" \"" process "\" \"-1\"\n" at \
       " [0 lua] \"PEXPIRE\" \"weir:{g}:held\" \"1500\"\n"
#define PINGS(at) at " [0 u] \"PING\"\n"
#define GETS(at, id, end, token)                                         \
    at " [0 lua] \"ZADD\" \"weir:{g}:held\" \"" end "\" \"" id "\"\n" at \
       " [0 lua] \"HSET\" \"weir:{g}:info\" \"" id "\" \"h " token " 1 h 7 -\"\n"
#define WAITS(at, id)  at " [0 lua] \"ZADD\" \"weir:{g}:line\" \"6\" \"" id "\"\n"
#define SERVED(at, id) at " [0 lua] \"ZREM\" \"weir:{g}:line\" \"" id "\"\n"
#define GOES(at, id)   at " [0 lua] \"ZREM\" \"weir:{g}:held\" \"" id "\"\n"

/* Process 7 enters at 1 ms; process 8 asks at 1.4 ms, and is told at 1.6 ms. */
#define BEGIN      "# begin 0 first\n# begun 0\n"
#define SEVEN_IN   ASKS("0.001000", "p7", "7") GETS("0.001000", "p7:1", "2000", "5")
#define EIGHT_WAIT ASKS("0.001500", "p8", "8") WAITS("0.001500", "p8:1")
#define EIGHT_IN(at, end) \
    ASKS(at, "p8", "8") GOES(at, "p7:1") SERVED(at, "p8:1") GETS(at, "p8:1", end, "9")
#define SEVEN "O * 0 0 0 0\nP * 7 0 0 0\nA g 0 500000 0 0\nE g 5 1100000 1900000 0\n"
#define EIGHT "P * 8 0 0 0\nA g 0 1400000 0 0\n"

/* By the server's clock: how late the lines of processes are does not matter. */
static void test_the_judge_sees_permits_that_the_server_loses(void)
{
    static const struct {
        const char *what, *seven, *eight, *log;
        bool right;
    } cases[] = {
        { "back in time", SEVEN "K * 0 1600000 0 0\n",
          EIGHT "E g 9 900000001 901000000 0\nL g 9 900000002 901000000 0\n",
          BEGIN SEVEN_IN EIGHT_WAIT EIGHT_IN("0.900000", "901000"), true },
        { "too late after a kill", SEVEN "K * 0 1600000 0 0\n",
          EIGHT "E g 9 1200000001 1201000000 0\nL g 9 1200000002 1201000000 0\n",
          BEGIN SEVEN_IN EIGHT_WAIT EIGHT_IN("1.200000", "1201000"), false },
        { "the same while it is stopped",
          SEVEN "S * 0 1600000 0 0\nC * 0 1300000000 0 0\nL g 5 1300000001 0 0\n",
          EIGHT "E g 9 1200000001 1201000000 0\nL g 9 1200000002 1201000000 0\n",
          BEGIN SEVEN_IN EIGHT_WAIT EIGHT_IN("1.200000", "1201000"), false },
        { "the same after it left", SEVEN "L g 5 1600000 1900000 0\n",
          EIGHT "E g 9 1200000001 1201000000 0\nL g 9 1200000002 1201000000 0\n",
          BEGIN SEVEN_IN EIGHT_WAIT EIGHT_IN("1.200000", "1201000"), false },
        { "the same while there was no server",
          SEVEN "K * 0 1600000 0 0\nD * 0 2000000 0 0\nU * 0 800000000 0 0\n",
          EIGHT "E g 9 1200000001 1201000000 0\nL g 9 1200000002 1201000000 0\n",
          BEGIN SEVEN_IN EIGHT_WAIT EIGHT_IN("1.200000", "1201000"), true },
        { "a free permit beside a waiter", SEVEN "L g 5 1600000 1900000 0\n",
          EIGHT "E g 9 1950000 2600000 0\nL g 9 1960000 2600000 0\n",
          BEGIN SEVEN_IN EIGHT_WAIT ASKS("0.001700", "p7", "7") GOES("0.001700", "p7:1")
              EIGHT_IN("0.001900", "2900"),
          false },
        { "two", SEVEN "L g 5 1600000 1900000 0\n",
          EIGHT "E g 9 1650000 1900000 0\nL g 9 1660000 1900000 0\n",
          BEGIN SEVEN_IN ASKS("0.001500", "p8", "8") GETS("0.001500", "p8:1", "2500", "9")
              ASKS("0.001700", "p7", "7"),
          false },
        { "a waiter that the server does not know", SEVEN "L g 5 1600000 1900000 0\n",
          EIGHT "E g 9 1200000001 1201000000 0\nL g 9 1200000002 1201000000 0\n",
          BEGIN SEVEN_IN ASKS("0.001700", "p7", "7") GOES("0.001700", "p7:1")
              EIGHT_IN("1.200000", "1201000"),
          false },
        { "the same, but its machine did not run it", SEVEN "L g 5 1600000 1900000 0\n",
          EIGHT "Z g 0 2000000 700000000 0\nE g 9 1200000001 1201000000 0\n"
                "L g 9 1200000002 1201000000 0\n",
          BEGIN SEVEN_IN ASKS("0.001700", "p7", "7") GOES("0.001700", "p7:1")
              EIGHT_IN("1.200000", "1201000"),
          true },
        { "the same, but for a moment only", SEVEN "L g 5 1600000 1900000 0\n",
          EIGHT "Z g 0 2000000 90000000 0\nE g 9 1200000001 1201000000 0\n"
                "L g 9 1200000002 1201000000 0\n",
          BEGIN SEVEN_IN ASKS("0.001700", "p7", "7") GOES("0.001700", "p7:1")
              EIGHT_IN("1.200000", "1201000"),
          false },
        { "too late after a kill, because the machine did not run the waiter",
          SEVEN "K * 0 1600000 0 0\n",
          EIGHT "Z g 0 2000000 700000000 0\nE g 9 1200000001 1201000000 0\n"
                "L g 9 1200000002 1201000000 0\n",
          BEGIN SEVEN_IN EIGHT_WAIT EIGHT_IN("1.200000", "1201000"), true },
        { "two, of which the first went with its key", SEVEN "L g 5 1600000 1900000 0\n",
          EIGHT "E g 9 2310000 3300000 0\nL g 9 2320000 3300000 0\n",
          BEGIN SEVEN_IN
          "0.001200 [0 lua] \"PEXPIRE\" \"weir:{g}:held\" \"1\"\n" EIGHT_IN("0.002300", "3300"),
          true },
        { "the same after the script was called, and before it ran",
          SEVEN "L g 5 1600000 1900000 0\n",
          EIGHT "E g 9 2310000 3300000 0\nL g 9 2320000 3300000 0\n",
          BEGIN SEVEN_IN "0.001200 [0 lua] \"PEXPIRE\" \"weir:{g}:held\" \"1\"\n" ASKS(
              "0.002100", "p8", "8") GETS("0.002300", "p8:1", "3300", "9") RENEWS("0.002400", "p8"),
          true },
        { "two, of which a fail-over lost one", SEVEN "L g 5 1800000 1900000 0\n",
          EIGHT "E g 9 1710000 2500000 0\nL g 9 1720000 2500000 0\n",
          BEGIN SEVEN_IN
          "# end 1200\n# begin 1300 fail-over\n# begun 1300\n" EIGHT_IN("0.001700", "2700"),
          true },
        { "two after a fail-over that lost nothing", SEVEN "L g 5 1800000 1900000 0\n",
          EIGHT "E g 9 1710000 2500000 0\nL g 9 1720000 2500000 0\n",
          BEGIN SEVEN_IN
          "# end 1200\n# begin 1300 fail-over\n0.001300 \"known\" \"ZADD\" "
          "\"weir:{g}:held\" \"2000\" \"p7:1\"\n# begun 1300\n" EIGHT_IN("0.001700", "2700"),
          false },
        { "two, of which a fail-over lost a renewal of the first, which then went with its key",
          "O * 0 0 0 0\nP * 7 0 0 0\nA g 0 500000 0 0\nE g 5 1100000 2900000 0\nL g 5 2800000 "
          "2900000 0\n",
          EIGHT "E g 9 2450000 3300000 0\nL g 9 2460000 3300000 0\n",
          BEGIN SEVEN_IN "# end 1200\n# begin 1300 fail-over\n0.001300 \"known\" \"ZADD\" "
                         "\"weir:{g}:held\" \"1600\" \"p7:1\"\n0.001300 \"known\" \"PEXPIRE\" "
                         "\"weir:{g}:held\" \"1\"\n# begun 1300\n" ASKS("0.002400", "p8", "8")
                             GETS("0.002400", "p8:1", "3400", "9"),
          true },
        { "a token that the server did not give", SEVEN "L g 5 1600000 1900000 0\n", "",
          BEGIN ASKS("0.000800", "p7", "7"), false },
        { "two, of which the first was given by a server in the moment of its death",
          SEVEN "L g 5 1800000 1900000 0\n",
          EIGHT "E g 9 1710000 2500000 0\nL g 9 1720000 2500000 0\n",
          BEGIN PINGS("0.000900") "# end 1200\n# begin 1300 fail-over\n# begun 1300\n" EIGHT_IN(
              "0.001700", "2700"),
          true },
        { "the same, but the server lived on for a while", SEVEN "L g 5 1800000 1900000 0\n",
          EIGHT "E g 9 2710000 3500000 0\nL g 9 2720000 3500000 0\n",
          BEGIN PINGS("0.002150") "# end 2200\n# begin 2300 fail-over\n# begun 2300\n" EIGHT_IN(
              "0.002700", "3700"),
          false },
        { "the same, but asked for after that death",
          "O * 0 0 0 0\nP * 7 0 0 0\nA g 0 1400000 0 0\nE g 5 1500000 1900000 0\nL g 5 1600000 "
          "1900000 0\n",
          EIGHT "E g 9 1710000 2500000 0\nL g 9 1720000 2500000 0\n",
          BEGIN PINGS("0.000900") "# end 1200\n# begin 1300 fail-over\n# begun 1300\n" EIGHT_IN(
              "0.001700", "2700"),
          false },
        { "the same, but with a lease of more than the server could give",
          "O * 0 0 0 0\nP * 7 0 0 0\nA g 0 500000 0 0\nE g 5 1100000 2300000 0\nL g 5 1120000 "
          "2300000 0\n",
          EIGHT "E g 9 1710000 2500000 0\nL g 9 1720000 2500000 0\n",
          BEGIN PINGS("0.000900") "# end 1200\n# begin 1300 fail-over\n# begun 1300\n" EIGHT_IN(
              "0.001700", "2700"),
          false },
        { "two, and the second never knew the guard that the server forgot",
          SEVEN "L g 5 1800000 1900000 0\n",
          EIGHT "E g 9 1710000 2500000 0\nL g 9 1720000 2500000 0\n",
          BEGIN SEVEN_IN
          "# end 1200\n# begin 1300 emptied\n# begun 1300\n" EIGHT_IN("0.001700", "2700"),
          true },
        { "the same after one that knew it was there", SEVEN "L g 5 1800000 1900000 0\n",
          EIGHT "E g 9 1710000 2500000 0\nL g 9 1720000 2500000 0\n",
          BEGIN SEVEN_IN "# end 1200\n# begin 1300 emptied\n# begun 1300\n" RENEWS("0.001500", "p7")
              EIGHT_IN("0.001700", "2700"),
          false },
        { "three, of which two never knew it", SEVEN "L g 5 1800000 1900000 0\n",
          EIGHT "E g 9 1710000 2500000 0\nA g 0 1700000 0 1\nE g 10 1720000 2500000 1\n"
                "L g 9 1730000 2500000 0\nL g 10 1740000 2500000 1\n",
          BEGIN SEVEN_IN "# end 1200\n# begin 1300 emptied\n# begun 1300\n" EIGHT_IN(
              "0.001700", "2700") GOES("0.001710", "p8:1") GETS("0.001710", "p8:2", "2700", "10"),
          false },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (finds_right(cases[i].seven, cases[i].eight, cases[i].log) != cases[i].right)
            fail_msg("%s", cases[i].what);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_judge_sees_what_clients_do_wrong),
        TEST(test_the_judge_sees_permits_that_the_server_loses),
        TEST(test_a_thousand_faults_break_no_limit_lose_no_permit_and_forget_no_waiter),
    };

    return cmocka_run_group_tests(tests, start_server, stop_server);
}
