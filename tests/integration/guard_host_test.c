/* Guards of the host, among real processes: shared counts, first come, first served, groups, references.
 * SPDX-License-Identifier: MIT */
#include "support/host_guards.h"

#include <pthread.h>
#include <sched.h>

/* ---- what is shared --------------------------------------------------------------------------------- */

static void spends(void *arg)
{
    weir_store *store = host();
    weir_guard *rate =
        open_guard(store, "rate", WEIR_RATE(.limit = 3, .period_ns = INT64_C(3600000000000)));
    weir_guard *breaker =
        open_guard(store, "breaker", WEIR_BREAKER(.window = 2, .failure_percent = 50));
    weir_permit p = WEIR_PERMIT;

    (void)arg;
    for (int i = 0; i < 2; i++) {
        p = WEIR_PERMIT;
        CHECK_EQUAL(weir_guard_enter(&p, rate, 0), 0);
    }
    for (int i = 0; i < 2; i++) {
        p = WEIR_PERMIT;
        CHECK_EQUAL(weir_guard_enter(&p, breaker, 0), 0);
        CHECK_EQUAL(weir_guard_leave(&p, -EIO), 0);
    }
    /* It ends without a word, as short-lived commands do. */
}

static void test_a_spent_guard_outlives_processes_until_it_is_whole(void)
{
    weir_store *store = host();
    weir_guard *rate, *breaker, *bulkhead;
    weir_permit p = WEIR_PERMIT;

    CHECK_EQUAL(child_end(fork_child(spends, NULL)), 0);
    rate = open_guard(store, "rate", WEIR_RATE(.limit = 3, .period_ns = INT64_C(3600000000000)));
    breaker = open_guard(store, "breaker", WEIR_BREAKER(.window = 2, .failure_percent = 50));
    CHECK_EQUAL(figures(rate).available, 1);
    CHECK_EQUAL(figures(breaker).state, WEIR_OPEN);
    CHECK_EQUAL(weir_guard_enter(&p, breaker, 0), WEIR_EBROKEN);
    CHECK_EQUAL(weir_guard_reset(breaker), 0);
    bulkhead = open_guard(store, "whole", WEIR_BULKHEAD());
    CHECK_EQUAL(files("guard-"), 3);
    weir_guard_unref(rate);
    weir_guard_unref(breaker); /* closed again, so its file goes */
    weir_guard_unref(bulkhead);
    CHECK_EQUAL(files("guard-"), 1);
    CHECK_EQUAL(files("guard-rate"), 1);
    weir_store_free(store);
    CHECK_EQUAL(files("bell-"), 0);
}

static void test_settings_are_shared_and_others_are_told(void)
{
    weir_store *a = host(), *b = host();
    weir_guard *first = open_guard(a, "s", WEIR_BULKHEAD(.limit = 2)), *second, *none;
    weir_message why;

    second = open_guard(b, "s", WEIR_BULKHEAD(.limit = 2));
    CHECK(first != second);
    CHECK_EQUAL(weir_guard_new(&none, b, "s", WEIR_BULKHEAD(.limit = 3), &why), WEIR_EEXIST);
    CHECK_EQUAL(weir_guard_change(first, WEIR_BULKHEAD(.limit = 7), NULL, NULL), 0);
    CHECK_EQUAL(figures(second).limit, 7);
    CHECK_EQUAL(weir_guard_new(&none, b, "nothing", NULL, &why), WEIR_ENOGUARD);
    weir_guard_unref(first);
    weir_guard_unref(second);
    weir_store_free(a);
    weir_store_free(b);
}

static void test_a_mutex_has_one_holder_on_the_host_and_says_which(void)
{
    weir_store *a = host(), *b = host();
    weir_guard *one = open_guard(a, "m", WEIR_MUTEX()), *two = open_guard(b, "m", WEIR_MUTEX());
    weir_permit p = WEIR_PERMIT, q = WEIR_PERMIT;
    weir_message text;
    char wanted[64];
    uint64_t token;

    CHECK_EQUAL(weir_guard_enter(&p, one, 0), 0);
    CHECK_EQUAL(weir_guard_enter(&q, two, 0), WEIR_ELOCKED);
    CHECK_EQUAL(weir_guard_describe(&text, two), 0);
    snprintf(wanted, sizeof(wanted), "held by process %d (1)", getpid());
    CHECK(strstr(text.text, wanted));
    token = p.token;
    CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
    CHECK_EQUAL(weir_guard_enter(&q, two, 0), 0);
    CHECK(q.token > token);
    CHECK_EQUAL(weir_guard_leave(&q, 0), 0);
    weir_guard_unref(one);
    weir_guard_unref(two);
    weir_store_free(a);
    weir_store_free(b);
}

/* ---- first come, first served ------------------------------------------------------------------------ */

enum { ROW = 6 };
struct row {
    _Atomic int turn, joined, order[ROW], in;
};

struct standing {
    struct row *row;
    weir_guard *guard;
    int me;
};

static void has_its_turn(void *arg)
{
    struct standing *s = arg;
    weir_permit p = WEIR_PERMIT;

    CHECK_EQUAL(weir_guard_enter(&p, s->guard, patience()), 0);
    s->row->order[atomic_fetch_add(&s->row->in, 1)] = s->me;
    CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
}

static void stands_in_line(void *arg)
{
    struct row *row = arg;
    weir_store *store = host();
    struct standing s = { row, open_guard(store, "line", WEIR_BULKHEAD(.limit = 1)),
                          atomic_fetch_add(&row->joined, 1) };

    /* The caller before us stands in line already. */
    AWAIT(figures(s.guard).waiting == s.me);
    if (s.me % 2) {
        weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1));
        CHECK_EQUAL(weir_spawn(rt, has_its_turn, &s, NULL), 0);
        drain(rt);
        weir_runtime_free(rt);
    } else {
        has_its_turn(&s);
    }
    weir_guard_unref(s.guard);
    weir_store_free(store);
}

/* Every other one is a task. */
static void test_processes_are_served_in_the_order_they_came(void)
{
    struct row *row = shared(sizeof(*row));
    weir_store *store = host();
    weir_guard *g = open_guard(store, "line", WEIR_BULKHEAD(.limit = 1));
    weir_permit p = WEIR_PERMIT;
    pid_t pid[ROW];

    CHECK_EQUAL(weir_guard_enter(&p, g, 0), 0);
    for (int i = 0; i < ROW; i++)
        pid[i] = fork_child(stands_in_line, row);
    AWAIT(figures(g).waiting == ROW);
    CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
    for (int i = 0; i < ROW; i++)
        CHECK_EQUAL(child_end(pid[i]), 0);
    for (int i = 0; i < ROW; i++)
        CHECK_EQUAL(row->order[i], i);
    weir_guard_unref(g);
    weir_store_free(store);
    munmap(row, sizeof(*row));
}

/* Tasks park, they do not block their worker: one worker carries many that wait. */
struct many {
    weir_guard *guard;
    _Atomic int done, ticks;
};

static void waits_as_task(void *arg)
{
    struct many *many = arg;
    weir_permit p = WEIR_PERMIT;

    CHECK_EQUAL(weir_guard_enter(&p, many->guard, patience()), 0);
    CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
    many->done++;
}

static void ticks(void *arg)
{
    ((struct many *)arg)->ticks++;
}

static void test_tasks_that_wait_for_the_host_do_not_hold_their_worker(void)
{
    weir_store *a = host(), *b = host();
    struct many many = { .guard = open_guard(a, "t", WEIR_BULKHEAD(.limit = 1)) };
    weir_guard *other = open_guard(b, "t", WEIR_BULKHEAD(.limit = 1));
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1));
    weir_permit p = WEIR_PERMIT;

    CHECK_EQUAL(weir_guard_enter(&p, other, 0), 0);
    for (int i = 0; i < 20; i++)
        CHECK_EQUAL(weir_spawn(rt, waits_as_task, &many, NULL), 0);
    AWAIT(figures(other).waiting == 20);
    CHECK_EQUAL(weir_spawn(rt, ticks, &many, NULL), 0);
    AWAIT(many.ticks == 1);
    CHECK_EQUAL(many.done, 0);
    CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
    drain(rt);
    CHECK_EQUAL(many.done, 20);
    weir_runtime_free(rt);
    weir_guard_unref(many.guard);
    weir_guard_unref(other);
    weir_store_free(a);
    weir_store_free(b);
}

/* ---- groups ------------------------------------------------------------------------------------------- */

static void holds_one_and_sleeps(void *arg)
{
    weir_guard *g = open_guard(host(), "group", WEIR_BULKHEAD(.limit = 1));
    weir_permit p = WEIR_PERMIT;

    CHECK_EQUAL(weir_guard_enter(&p, g, patience()), 0); /* the task before may be about to end */
    *(_Atomic int *)arg = 1;
    for (;;)
        pause();
}

static int counts_itself(void **value, void *arg)
{
    (void)value;
    ++*(_Atomic int *)arg;
    return 0;
}

/* Also of processes that came after the group had waited for the first time. */
static void test_a_group_that_waits_is_woken_by_the_death_of_any_holder(void)
{
    _Atomic int *in = shared(2 * sizeof(*in));
    weir_store *store = host();
    weir_guard *g = open_guard(store, "group", WEIR_BULKHEAD(.limit = 1));
    weir_executor *ex = NULL;
    weir_group *group = NULL;

    CHECK_EQUAL(weir_executor_new(&ex, WEIR_POLICY(.workers = 1), NULL), 0);
    CHECK_EQUAL(weir_group_get(&group, ex, "k"), 0);
    CHECK_EQUAL(weir_group_guard_add(NULL, group, g, 0), 0);
    for (int round = 1; round <= 3; round++) {
        pid_t pid;

        in[0] = 0;
        pid = fork_child(holds_one_and_sleeps, (void *)in);
        AWAIT(in[0]);
        CHECK_EQUAL(weir_submit(NULL, group, counts_itself, (void *)&in[1], NULL), 0);
        AWAIT(figures(g).waiting == 1);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        AWAIT(in[1] == round);
    }
    weir_executor_free(ex);
    weir_guard_unref(g);
    weir_store_free(store);
    munmap((void *)in, 2 * sizeof(*in));
}

enum { MANY = 150 };

static void one_of_many(void *arg)
{
    _Atomic int *count = arg;
    weir_store *store = host();
    weir_guard *g = open_guard(store, "many", WEIR_BULKHEAD(.limit = MANY));
    weir_permit p = WEIR_PERMIT;

    CHECK_EQUAL(weir_guard_enter(&p, g, 0), 0);
    ++count[0];
    AWAIT(count[0] == MANY); /* all of them are inside at once */
    CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
    weir_guard_unref(g);
    weir_store_free(store);
    ++count[1];
}

static void test_a_hundred_and_fifty_processes_share_a_guard(void)
{
    _Atomic int *count = shared(2 * sizeof(*count));
    weir_store *store = host();
    weir_guard *g = open_guard(store, "many", WEIR_BULKHEAD(.limit = MANY));
    pid_t pid[MANY];

    for (int i = 0; i < MANY; i++)
        pid[i] = fork_child(one_of_many, (void *)count);
    for (int i = 0; i < MANY; i++)
        waitpid(pid[i], NULL, 0);
    CHECK_EQUAL(count[1], MANY);
    CHECK_EQUAL(figures(g).used, 0);
    weir_guard_unref(g);
    weir_store_free(store);
    munmap((void *)count, 2 * sizeof(*count));
}

static void test_a_child_of_fork_cannot_use_its_parents_guard(void)
{
    weir_store *store = host();
    weir_guard *g = open_guard(store, "f", WEIR_BULKHEAD());
    weir_permit p = WEIR_PERMIT;
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0)
        _exit(weir_guard_enter(&p, g, 0) == WEIR_ECLOSED ? 0 : 1);
    waitpid(pid, &status, 0);
    CHECK_EQUAL(status, 0);
    CHECK_EQUAL(weir_guard_enter(&p, g, 0), 0);
    CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
    weir_guard_unref(g);
    weir_store_free(store);
}

/* ---- references --------------------------------------------------------------------------------- */

static void *enter_and_leave(void *guard)
{
    weir_permit p = WEIR_PERMIT;

    CHECK_EQUAL(weir_guard_enter(&p, guard, WEIR_FOREVER), 0);
    CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
    return NULL;
}

/* The last reference of the process goes while one of its threads waits: the file stays mapped, and the permit comes. */
static void test_a_waiter_outlives_the_last_reference_of_its_process(void **state)
{
    weir_store *store = host(), *other = host();
    weir_guard *g = open_guard(store, "kept", WEIR_MUTEX());
    weir_guard *holder = open_guard(other, "kept", WEIR_MUTEX());
    weir_permit p = WEIR_PERMIT;
    pthread_t thread;

    (void)state;
    CHECK_EQUAL(weir_guard_enter(&p, holder, WEIR_NOW_OR_NEVER), 0);
    assert_int_equal(pthread_create(&thread, NULL, enter_and_leave, g), 0);
    while (figures(holder).waiting == 0)
        sched_yield();
    weir_guard_unref(g);
    CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
    pthread_join(thread, NULL);
    weir_guard_unref(holder);
    weir_store_free(store);
    weir_store_free(other);
}

struct late {
    weir_guard *guard;
    _Atomic int in, out;
    int left; /* what leave answered */
};

static void *enters_and_stays(void *arg)
{
    struct late *late = arg;
    weir_permit p = WEIR_PERMIT;

    CHECK_EQUAL(weir_guard_enter(&p, late->guard, WEIR_FOREVER), 0);
    atomic_store(&late->in, 1);
    while (!atomic_load(&late->out))
        sched_yield();
    late->left = weir_guard_leave(&p, 0);
    return NULL;
}

/* So many that the table grows, for which guards that are not needed have to go. */
static void make_many(weir_store *store)
{
    weir_guard *many[64];
    char name[24];

    for (int i = 0; i < 64; i++) {
        snprintf(name, sizeof(name), "many-%d", i);
        many[i] = open_guard(store, name, WEIR_BULKHEAD());
    }
    for (int i = 0; i < 64; i++)
        weir_guard_unref(many[i]);
}

/* And it enters, and stays inside while the process goes through all its guards. */
static void keeps_its_permit(const weir_guard_options *opt)
{
    weir_store *store = host(), *other = host(), *local = NULL;
    weir_guard *holder = open_guard(other, "late", opt);
    struct late late = { .guard = open_guard(store, "late", opt), .left = 1 };
    weir_permit p = WEIR_PERMIT, q = WEIR_PERMIT;
    pthread_t thread;

    CHECK_EQUAL(weir_store_local(&local), 0);
    CHECK_EQUAL(weir_guard_enter(&p, holder, WEIR_NOW_OR_NEVER), 0);
    assert_int_equal(pthread_create(&thread, NULL, enters_and_stays, &late), 0);
    while (figures(holder).waiting == 0)
        sched_yield();
    weir_guard_unref(late.guard);
    CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
    while (!atomic_load(&late.in))
        sched_yield();
    make_many(local);
    CHECK_EQUAL(figures(holder).used, 1);
    CHECK(weir_guard_enter(&q, holder, WEIR_NOW_OR_NEVER) < 0);
    atomic_store(&late.out, 1);
    pthread_join(thread, NULL);
    CHECK_EQUAL(late.left, 0);
    CHECK_EQUAL(figures(holder).used, 0);
    weir_store_free(local);
    weir_store_free(store);
    weir_guard_unref(holder);
    CHECK_EQUAL(files("guard-late"), 0);
    weir_store_free(other);
}

static void test_a_waiter_that_enters_after_the_last_reference_keeps_its_permit(void **state)
{
    (void)state;
    keeps_its_permit(WEIR_BULKHEAD(.limit = 1));
    keeps_its_permit(WEIR_MUTEX());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_spent_guard_outlives_processes_until_it_is_whole),
        TEST(test_settings_are_shared_and_others_are_told),
        TEST(test_a_mutex_has_one_holder_on_the_host_and_says_which),
        TEST(test_processes_are_served_in_the_order_they_came),
        TEST(test_tasks_that_wait_for_the_host_do_not_hold_their_worker),
        TEST(test_a_group_that_waits_is_woken_by_the_death_of_any_holder),
        TEST(test_a_hundred_and_fifty_processes_share_a_guard),
        TEST(test_a_child_of_fork_cannot_use_its_parents_guard),
        TEST(test_a_waiter_outlives_the_last_reference_of_its_process),
        TEST(test_a_waiter_that_enters_after_the_last_reference_keeps_its_permit),
    };

    return HOST_TESTS(tests);
}
