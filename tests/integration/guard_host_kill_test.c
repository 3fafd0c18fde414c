/* Guards of the host, and processes that are killed: permits come back, no waiter is forgotten.
 * SPDX-License-Identifier: MIT */
#include "support/host_guards.h"

/* ---- deaths ------------------------------------------------------------------------------------------- */

static void holds_and_sleeps(void *arg)
{
    weir_guard *g = open_guard(host(), "d", WEIR_BULKHEAD(.limit = 2));
    weir_permit p = WEIR_PERMIT;

    CHECK_EQUAL(weir_guard_enter_n(&p, g, 2, 0), 0);
    *(_Atomic int *)arg = 1;
    for (;;)
        pause();
}

static void test_a_killed_holder_gives_its_permits_back(void)
{
    _Atomic int *in = shared(sizeof(*in));
    weir_store *store = host();
    weir_guard *g = open_guard(store, "d", WEIR_BULKHEAD(.limit = 2));
    weir_permit p = WEIR_PERMIT;
    pid_t pid = fork_child(holds_and_sleeps, (void *)in);
    weir_message text;

    AWAIT(*in);
    CHECK_EQUAL(weir_guard_enter(&p, g, 0), WEIR_EFULL);
    CHECK_EQUAL(weir_guard_describe(&text, g), 0);
    CHECK(strstr(text.text, "2 of 2 permits in use, held by process"));
    kill(pid, SIGKILL);
    AWAIT(figures(g).used == 0 || weir_guard_enter(&p, g, 0) == 0); /* a zombie is dead, too */
    CHECK_EQUAL(figures(g).used, 1);
    waitpid(pid, NULL, 0);
    CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
    *in = 0;
    pid = fork_child(holds_and_sleeps, (void *)in);
    AWAIT(*in);
    kill(pid, SIGKILL); /* while we wait: the kernel says so */
    CHECK_EQUAL(weir_guard_enter(&p, g, patience()), 0);
    waitpid(pid, NULL, 0);
    CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
    weir_guard_unref(g);
    weir_store_free(store);
    munmap((void *)in, sizeof(*in));
}

/* ---- five hundred deaths among eight ------------------------------------------------------------------ */

enum { WORKERS = 8, GUARDS = 2, DEATHS = 500, LOG_MAX = 1 << 21 };
static const int limits[GUARDS] = { 1, 3 };

/* A history that no part of the library writes or reads. IN is written after enter returned, OUT before leave is called, KILL
 * before the signal is sent: so what it shows as inside was inside. */
enum what { IN = 1, OUT, KILL, WANT };
struct entry {
    _Atomic uint32_t what; /* what | worker << 8 | guard << 16; 0: not written yet */
    uint32_t life;
};
struct history {
    _Atomic uint32_t count, stop;
    _Atomic uint32_t entered[WORKERS];
    struct entry entry[LOG_MAX];
};
static struct history *history;

static void note(enum what what, int worker, int guard, uint32_t life)
{
    uint32_t at = atomic_fetch_add(&history->count, 1);

    if (at >= LOG_MAX)
        return;
    history->entry[at].life = life;
    atomic_store(&history->entry[at].what, what | (uint32_t)worker << 8 | (uint32_t)guard << 16);
}

static void worker_main(int me, uint32_t life)
{
    struct luck luck = luck_of(life * 100 + (uint32_t)me);
    weir_store *store = host();
    weir_guard *g[GUARDS] = { open_guard(store, "mutex", WEIR_MUTEX()),
                              open_guard(store, "three", WEIR_BULKHEAD(.limit = 3)) };

    while (!atomic_load(&history->stop)) {
        int k = (int)luck_below(&luck, GUARDS);
        weir_permit p = WEIR_PERMIT;
        weir_time deadline =
            luck_below(&luck, 8) ? WEIR_FOREVER : weir_in_us((int64_t)luck_below(&luck, 500));

        note(WANT, me, k, life);
        if (weir_guard_enter(&p, g[k], deadline))
            continue;
        note(IN, me, k, life);
        atomic_fetch_add(&history->entered[me], 1);
        if (luck_below(&luck, 3) == 0)
            weir_sleep(weir_in_us((int64_t)luck_below(&luck, 400)));
        note(OUT, me, k, life);
        if (weir_guard_leave(&p, 0))
            _exit(2);
    }
    for (int k = 0; k < GUARDS; k++)
        weir_guard_unref(g[k]);
    weir_store_free(store);
    _exit(0);
}

static pid_t start_worker(int me, uint32_t life)
{
    pid_t pid;

    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        worker_main(me, life);
    return pid;
}

/* Goes through the history once, from the first entry to the last. */
static void judge_history(void)
{
    int inside[GUARDS] = { 0 }, at_work[WORKERS];
    uint32_t count = history->count < LOG_MAX ? history->count : LOG_MAX, entries = 0;

    for (int i = 0; i < WORKERS; i++)
        at_work[i] = -1;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t word = history->entry[i].what;
        int worker = (int)(word >> 8 & 255), guard = (int)(word >> 16);

        switch (word & 255) {
        case IN:
            entries++;
            at_work[worker] = guard;
            if (!CHECK(++inside[guard] <= limits[guard]))
                printf("entry %u: worker %d makes it %d inside\n", i, worker, inside[guard]);
            break;
        case OUT:
            at_work[worker] = -1;
            inside[guard]--;
            break;
        case KILL: /* what it held is free from here on at the earliest */
            if (at_work[worker] >= 0)
                inside[at_work[worker]]--;
            at_work[worker] = -1;
            break;
        default: /* a dead process did not finish its entry, or it only wanted in */
            break;
        }
    }
    printf("%u entries\n", entries);
}

/* After KILL a worker may still write: what it wrote then does not count. So: every entry of a life after its KILL is
 * taken out before the history is judged. */
static void cut_after_kill(void)
{
    static uint32_t killed[WORKERS];
    uint32_t count = history->count < LOG_MAX ? history->count : LOG_MAX;

    memset(killed, 0, sizeof(killed));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t word = history->entry[i].what;
        int worker = (int)(word >> 8 & 255);

        if ((word & 255) == KILL)
            killed[worker] = history->entry[i].life;
        else if (killed[worker] && history->entry[i].life <= killed[worker])
            history->entry[i].what = 0;
    }
}

static void test_five_hundred_deaths_lose_no_permit_and_forget_no_waiter(void)
{
    struct luck luck = luck_of(1);
    int deaths = (int)soak_times(DEATHS);
    uint32_t life = 1, before[WORKERS];
    pid_t pid[WORKERS];
    weir_store *store;
    weir_guard *g[GUARDS];
    weir_permit p = WEIR_PERMIT;
    int status;

    history = shared(sizeof(*history));
    for (int i = 0; i < WORKERS; i++)
        pid[i] = start_worker(i, life);
    for (int n = 0; n < deaths; n++) {
        int victim = (int)luck_below(&luck, WORKERS);

        usleep((useconds_t)luck_below(&luck, 6000));
        note(KILL, victim, 0, life);
        kill(pid[victim], SIGKILL);
        if (luck_below(&luck, 2))
            usleep((useconds_t)luck_below(&luck, 1000)); /* a zombie for a while */
        waitpid(pid[victim], &status, 0);
        CHECK(WIFSIGNALED(status));
        pid[victim] = start_worker(victim, ++life);
    }
    CHECK_EQUAL(life, deaths + 1);
    CHECK(history->count < LOG_MAX); /* else some of it could not be judged */
    for (int i = 0; i < WORKERS; i++)
        before[i] = history->entered[i];
    for (int i = 0; i < WORKERS; i++) /* no waiter is forgotten: all come in again */
        AWAIT(history->entered[i] > before[i] + 3);
    history->stop = 1;
    for (int i = 0; i < WORKERS; i++)
        CHECK_EQUAL(child_end(pid[i]), 0);
    cut_after_kill();
    judge_history();
    store = host(); /* no permit is lost */
    g[0] = open_guard(store, "mutex", WEIR_MUTEX());
    g[1] = open_guard(store, "three", WEIR_BULKHEAD(.limit = 3));
    for (int k = 0; k < GUARDS; k++) {
        CHECK_EQUAL(weir_guard_enter_n(&p, g[k], limits[k], 0), 0);
        CHECK_EQUAL(figures(g[k]).used, limits[k]);
        CHECK_EQUAL(figures(g[k]).waiting, 0);
        CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
        weir_guard_unref(g[k]);
    }
    weir_store_free(store);
    CHECK_EQUAL(files("guard-mutex") + files("guard-three"), 0);
    CHECK_EQUAL(files("bell-"), 0);
    munmap(history, sizeof(*history));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_killed_holder_gives_its_permits_back),
        TEST(test_five_hundred_deaths_lose_no_permit_and_forget_no_waiter),
    };

    return HOST_TESTS(tests);
}
