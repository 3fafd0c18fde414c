/* Guards of the host, and processes that are stopped: the others go on, and so do these when they are continued.
 * SPDX-License-Identifier: MIT */
#include "support/host_guards.h"

/* ---- stopped waiters ---------------------------------------------------------------------------------- */

static void waits_once(void *arg)
{
    weir_store *store = host();
    weir_guard *g = open_guard(store, "aside", WEIR_BULKHEAD(.limit = 1));
    weir_permit p = WEIR_PERMIT;

    CHECK_EQUAL(weir_guard_enter(&p, g, patience()), 0);
    ++*(_Atomic int *)arg;
    CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
    weir_guard_unref(g);
    weir_store_free(store);
}

/* First in line, and it cannot come: those behind it, and newcomers, go past. When it goes on it has its turn. */
static void test_a_waiter_that_is_stopped_steps_aside(void)
{
    _Atomic int *in = shared(2 * sizeof(*in));
    weir_store *store = host();
    weir_guard *g = open_guard(store, "aside", WEIR_BULKHEAD(.limit = 1));
    weir_permit p = WEIR_PERMIT;
    int status;
    pid_t pid[2];

    CHECK_EQUAL(weir_guard_enter(&p, g, 0), 0);
    for (int i = 0; i < 2; i++) {
        pid[i] = fork_child(waits_once, (void *)&in[i]);
        AWAIT(figures(g).waiting == i + 1);
    }
    kill(pid[0], SIGSTOP);
    CHECK(waitpid(pid[0], &status, WUNTRACED) == pid[0] && WIFSTOPPED(status));
    CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
    CHECK_EQUAL(child_end(pid[1]), 0); /* the second has had its turn */
    CHECK_EQUAL(in[1], 1);
    CHECK_EQUAL(weir_guard_enter(&p, g, patience()), 0);
    kill(pid[0], SIGCONT);
    AWAIT(figures(g).waiting == 1); /* it stands in line again */
    CHECK_EQUAL(in[0], 0);
    kill(pid[0], SIGSTOP);
    CHECK(waitpid(pid[0], &status, WUNTRACED) == pid[0] && WIFSTOPPED(status));
    CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
    CHECK_EQUAL(weir_guard_enter(&p, g, 0), 0); /* a newcomer looks, too, before it is refused */
    CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
    kill(pid[0], SIGCONT);
    CHECK_EQUAL(child_end(pid[0]), 0);
    CHECK_EQUAL(in[0], 1);
    weir_guard_unref(g);
    weir_store_free(store);
    munmap((void *)in, 2 * sizeof(*in));
}

/* ---- three hundred stops among eight ------------------------------------------------------------------ */

enum { WORKERS = 8, STOPS = 300 };

/* No worker dies here, so those inside can be counted as it happens. */
struct yard {
    _Atomic int inside[3], stop;
    _Atomic int64_t spent;
    _Atomic uint32_t answered[WORKERS];
};
static struct yard *yard;
static const int room[3] = { 1, 3, 1000 };

static weir_guard *yard_guard(weir_store *store, int k)
{
    return k == 0   ? open_guard(store, "yard mutex", WEIR_MUTEX())
           : k == 1 ? open_guard(store, "yard three", WEIR_BULKHEAD(.limit = 3))
                    : open_guard(store, "yard wide", WEIR_BULKHEAD(.limit = 1000));
}

static weir_guard *yard_rate(weir_store *store)
{
    return open_guard(store, "yard rate",
                      WEIR_RATE(.limit = WEIR_PERMITS_MAX, .period_ns = INT64_C(3600000000000)));
}

static void hurries(int me)
{
    struct luck luck = luck_of(1000 + (uint32_t)me);
    weir_store *store = host();
    weir_guard *g[3], *rate = yard_rate(store);

    for (int k = 0; k < 3; k++)
        g[k] = yard_guard(store, k);
    while (!atomic_load(&yard->stop)) {
        int k = (int)luck_below(&luck, 3);
        weir_permit p = WEIR_PERMIT, token = WEIR_PERMIT;
        weir_time deadline =
            luck_below(&luck, 8) ? WEIR_NOW_OR_NEVER : weir_in_us((int64_t)luck_below(&luck, 300));
        int rc = weir_guard_enter(&p, g[k], deadline);

        CHECK(rc == 0 || rc == (k ? WEIR_EFULL : WEIR_ELOCKED));
        if (rc == 0) {
            CHECK(atomic_fetch_add(&yard->inside[k], 1) < room[k]);
            atomic_fetch_sub(&yard->inside[k], 1);
            CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
        }
        if (luck_below(&luck, 4) == 0) {
            CHECK_EQUAL(weir_guard_enter(&token, rate, 0), 0);
            atomic_fetch_add(&yard->spent, 1);
        }
        atomic_fetch_add(&yard->answered[me], 1);
    }
    for (int k = 0; k < 3; k++)
        weir_guard_unref(g[k]);
    weir_guard_unref(rate);
    weir_store_free(store);
}

static void hurries_as(void *arg)
{
    hurries((int)(intptr_t)arg);
}

static void all_but_one_go_on(int one)
{
    uint32_t before[WORKERS];

    for (int i = 0; i < WORKERS; i++)
        before[i] = yard->answered[i];
    for (int i = 0; i < WORKERS; i++)
        if (i != one)
            AWAIT(yard->answered[i] > before[i] + 3);
}

/* Stopped anywhere, also in a step: calls of the others get their answers meanwhile, and when it goes on nothing is out of
 * order: never too many inside, no permit lost, each call of a rate counted once. */
static void test_a_process_that_is_stopped_keeps_no_other_from_an_answer(void)
{
    struct luck luck = luck_of(2);
    int stops = (int)soak_times(STOPS), in_steps = 0, before;
    weir_store *store;
    pid_t pid[WORKERS];
    weir_guard *g;

    yard = shared(sizeof(*yard));
    for (int i = 0; i < WORKERS; i++)
        pid[i] = fork_child(hurries_as, (void *)(intptr_t)i);
    for (int i = 0; i < WORKERS; i++)
        AWAIT(yard->answered[i]);
    for (int n = 0; n < stops; n++) {
        int victim = (int)luck_below(&luck, WORKERS), status;

        usleep((useconds_t)luck_below(&luck, 1000));
        before = files("next-");
        kill(pid[victim], SIGSTOP);
        CHECK(waitpid(pid[victim], &status, WUNTRACED) == pid[victim] && WIFSTOPPED(status));
        all_but_one_go_on(victim);
        in_steps += files("next-") > before;
        kill(pid[victim], SIGCONT);
    }
    all_but_one_go_on(-1);
    yard->stop = 1;
    for (int i = 0; i < WORKERS; i++)
        CHECK_EQUAL(child_end(pid[i]), 0);
    printf("%d stops, %d of them in a step\n", stops, in_steps);
    store = host();
    for (int k = 0; k < 3; k++) {
        g = yard_guard(store, k);
        CHECK_EQUAL(figures(g).used, 0);
        CHECK_EQUAL(figures(g).waiting, 0);
        weir_guard_unref(g);
    }
    g = yard_rate(store);
    CHECK_EQUAL(figures(g).available, WEIR_PERMITS_MAX - yard->spent);
    weir_guard_unref(g);
    weir_store_free(store);
    CHECK_EQUAL(files("guard-yard") - files("guard-yard%20rate") + files("bell-"), 0);
    munmap(yard, sizeof(*yard));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_waiter_that_is_stopped_steps_aside),
        TEST(test_a_process_that_is_stopped_keeps_no_other_from_an_answer),
    };

    return HOST_TESTS(tests);
}
