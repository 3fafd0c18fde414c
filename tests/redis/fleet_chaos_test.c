/* Faults by chance, more than a thousand per run: holders, whose wall clocks jump all the time, are killed and stopped, connections
 * cut, the server frozen, killed and emptied. What the processes wrote down meanwhile is judged by tests/redis/history.py, which shares no code with us.
 * SPDX-License-Identifier: MIT */
#include "redis/member.h"

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

enum fault { KILLED, STOPPED, CUT, DEAF, FLUSHED, FROZEN, EMPTIED, FAULT_KINDS };
static const int weight[FAULT_KINDS] = { 25, 25, 30, 10, 8, 2, 1 };

struct fleet {
    struct member member[MEMBERS];
    char log[MEMBERS][160];     /* of the present process */
    weir_time stopped[MEMBERS]; /* continues then; 0: runs */
    char dir[128], own_log[160];
    int logs, faults[FAULT_KINDS];
    int slack_ms; /* the longest time for which this process did not run although it could */
    struct luck luck;
};

static void note(const char *path, char what)
{
    struct timespec t;
    FILE *file = fopen(path, "a");

    assert_non_null(file);
    clock_gettime(CLOCK_MONOTONIC, &t);
    fprintf(file, "%c * 0 %lld 0 0\n", what, (long long)t.tv_sec * 1000000000 + t.tv_nsec);
    fclose(file);
}

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
    kill(f->member[i].pid, SIGKILL);
    close(f->member[i].in);
    member_reap(&f->member[i]);
    f->stopped[i] = 0;
    note(f->log[i], 'K');
    start(f, i);
}

/* One connection of all, by chance. */
static void cut_one(struct fleet *f, const char *type)
{
    char *list = server_say(&server, "CLIENT LIST TYPE %s", type), *at = list;
    uint64_t skip = luck_below(&f->luck, 2 * MEMBERS);

    for (; skip > 0 && at && strchr(at, '\n') && strchr(at, '\n')[1]; skip--)
        at = strchr(at, '\n') + 1;
    if (at && strncmp(at, "id=", 3) == 0)
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
    default:
        note(f->own_log, 'D');
        server_kill(&server);
        server_again(&server);
        note(f->own_log, 'U');
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

static void rest(struct fleet *f, int64_t ms)
{
    weir_time until = weir_in_ms(ms);
    int late;

    weir_sleep(until);
    late = (int)((weir_now() - until) / 1000000);
    if (late > f->slack_ms)
        f->slack_ms = late;
}

static void judge(struct fleet *f)
{
    char command[512];

    fflush(stdout);
    snprintf(command, sizeof(command),
             "/usr/bin/python3 %s/tests/redis/history.py %d %d g1=1,g2=2,g3=3,g5=5 %s/*",
             WEIR_SOURCE, LEASE_MS, f->slack_ms, f->dir);
    assert_int_equal(system(command), 0);
}

static void test_a_thousand_faults_break_no_limit_lose_no_permit_and_forget_no_waiter(void)
{
    struct fleet f = { .logs = 0 };
    int count = (int)soak_times(FAULTS);
    weir_store *store;

    seed_init();
    f.luck = luck_of(0);
    snprintf(f.dir, sizeof(f.dir), "%s/history", server.dir);
    snprintf(f.own_log, sizeof(f.own_log), "%s/server", f.dir);
    assert_int_equal(mkdir(f.dir, 0700), 0);
    for (int i = 0; i < MEMBERS; i++)
        start(&f, i);
    weir_sleep(weir_in_ms(200));
    for (int n = 0; n < count; n++) {
        inject(&f, choose(&f));
        rest(&f, 5 + (int64_t)luck_below(&f.luck, 20));
        continue_due(&f, false);
    }
    continue_due(&f, true);
    for (int i = 0; i < MEMBERS; i++)
        close(f.member[i].in);
    for (int i = 0; i < MEMBERS; i++)
        assert_int_equal(member_reap(&f.member[i]), 0);
    for (int i = 0; i < FAULT_KINDS && count >= 1000; i++)
        assert_true(f.faults[i] > 0);
    printf("faults: %d killed, %d stopped, %d cut, %d deaf, %d flushed, %d frozen, %d emptied\n",
           f.faults[0], f.faults[1], f.faults[2], f.faults[3], f.faults[4], f.faults[5],
           f.faults[6]);
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
    judge(&f);
}

/* What the judge must not let pass, one history each, and one that it must. */
static void test_the_judge_sees_what_is_wrong(void)
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
        { "A g 0 1 0 0\nE g 5 2000000000 9000000000 0\nL g 5 2000000001 9000000000 0\n",
          false }, /* idle */
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char path[160], command[512];
        FILE *file;

        snprintf(path, sizeof(path), "%s/case", server.dir);
        file = fopen(path, "w");
        assert_non_null(file);
        fputs(cases[i].history, file);
        fclose(file);
        snprintf(command, sizeof(command),
                 "/usr/bin/python3 %s/tests/redis/history.py 1 0 g=1 %s >/dev/null", WEIR_SOURCE,
                 path);
        if ((system(command) == 0) != cases[i].right)
            fail_msg("history %zu", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_judge_sees_what_is_wrong),
        TEST(test_a_thousand_faults_break_no_limit_lose_no_permit_and_forget_no_waiter),
    };

    return cmocka_run_group_tests(tests, start_server, stop_server);
}
