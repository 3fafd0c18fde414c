/* Groups with a limit of the whole fleet: permits are leased in batches, shared fairly, and explained.
 * SPDX-License-Identifier: MIT */
#include "redis/member.h"
#include "redis/relay.h"

enum { LEASE_MS = 300 };

static _Atomic int running, most, done;

static int busy(void **value, void *arg)
{
    int now = atomic_fetch_add(&running, 1) + 1, seen = atomic_load(&most);

    (void)value;
    while (now > seen && !atomic_compare_exchange_weak(&most, &seen, now))
        ;
    if (arg)
        weir_sleep(weir_now() + (int64_t)(intptr_t)arg);
    atomic_fetch_sub(&running, 1);
    atomic_fetch_add(&done, 1);
    return 0;
}

struct fixture {
    weir_store *store;
    weir_guard *guard;
    weir_executor *ex;
    weir_group *group;
};

static struct fixture fixture_with(weir_store *store, const char *name,
                                   const weir_guard_options *opt)
{
    struct fixture f;

    running = most = done = 0;
    f.store = store;
    f.guard = guard_of(f.store, name, opt);
    assert_int_equal(weir_executor_new(&f.ex, WEIR_POLICY(.workers = 2, .group_limit = 100), NULL),
                     0);
    assert_int_equal(weir_group_get(&f.group, f.ex, "customers"), 0);
    assert_int_equal(weir_group_guard_add(NULL, f.group, f.guard, 0), 0);
    return f;
}

static struct fixture fixture_of(const char *name, const weir_guard_options *opt)
{
    return fixture_with(store_of(NULL), name, opt);
}

static void fixture_free(struct fixture *f)
{
    weir_executor_free(f->ex);
    weir_guard_unref(f->guard);
    weir_store_free(f->store);
}

static void test_most_starts_of_a_leased_group_need_no_round_trip(void)
{
    struct fixture f = fixture_of("batch", WEIR_CONCURRENCY(.limit = 8, .lease_ns = MS(60000)));
    long long before = scripts_run();

    for (int i = 0; i < 5000; i++)
        assert_int_equal(weir_submit(NULL, f.group, busy, NULL, NULL), 0);
    assert_int_equal(weir_executor_drain(f.ex, patience()), 0);
    assert_int_equal(done, 5000);
    assert_true(most <= 8);
    assert_true(scripts_run() - before < 60);
    fixture_free(&f);
    await_number(0, "ZCARD weir:{batch}:held");
    await_number(0, "HLEN weir:{batch}:wants");
}

static void test_an_idle_group_gives_its_permits_back_and_falls_silent(void)
{
    struct fixture f = fixture_of("silent", WEIR_CONCURRENCY(.limit = 4, .lease_ns = MS(LEASE_MS)));

    for (int i = 0; i < 100; i++)
        weir_submit(NULL, f.group, busy, NULL, NULL);
    assert_int_equal(weir_executor_drain(f.ex, patience()), 0);
    await_number(0, "ZCARD weir:{silent}:held");
    await_number(0, "HLEN weir:{silent}:wants");
    await_silence(3 * LEASE_MS);
    fixture_free(&f);
}

/* While its one task runs no other can start, which is no wish for more once it is over. */
static void test_an_idle_group_with_a_limit_of_one_gives_its_permit_back(void)
{
    struct fixture f = fixture_of("single", WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(LEASE_MS)));

    for (int i = 0; i < 3; i++) {
        assert_int_equal(weir_submit(NULL, f.group, busy, (void *)(intptr_t)MS(20), NULL), 0);
        assert_int_equal(weir_executor_drain(f.ex, patience()), 0);
        await_number(0, "ZCARD weir:{single}:held");
        await_number(0, "HLEN weir:{single}:wants");
    }
    fixture_free(&f);
}

static void test_why_says_the_fleet_s_limit_and_which_process_holds_it_where(void)
{
    weir_store *other = store_of(WEIR_FLEET(.host = "elsewhere"));
    weir_guard *guard = guard_of(other, "why", WEIR_CONCURRENCY(.limit = 2, .lease_ns = MS(2000)));
    weir_permit p = WEIR_PERMIT;
    struct fixture f;
    weir_task *task;
    weir_why why = { .size = sizeof(why) };
    weir_message text;
    weir_time end = patience();

    assert_int_equal(weir_guard_enter_n(&p, guard, 2, WEIR_NOW_OR_NEVER), 0);
    f = fixture_of("why", WEIR_CONCURRENCY(.limit = 2, .lease_ns = MS(2000)));
    assert_int_equal(weir_submit(&task, f.group, busy, NULL, NULL), 0);
    do
        assert_int_equal(weir_task_why(&why, task), 0);
    while ((why.reason != WEIR_REASON_FLEET || why.held != 2) && weir_now() < end);
    assert_int_equal(why.reason, WEIR_REASON_FLEET);
    assert_string_equal(why.key, "why");
    assert_int_equal(why.limit, 2);
    assert_int_equal(why.held, 2);
    assert_int_equal(weir_fleet_why(&text, task, f.guard), 0);
    assert_non_null(strstr(text.text, "fleet's limit"));
    assert_non_null(strstr(text.text, "2 of 2"));
    assert_non_null(strstr(text.text, "held by elsewhere process"));
    assert_int_equal(done, 0);
    weir_guard_leave(&p, 0);
    assert_int_equal(weir_task_wait(NULL, task, patience()), 0);
    assert_int_equal(done, 1);
    weir_task_unref(task);
    fixture_free(&f);
    weir_guard_unref(guard);
    weir_store_free(other);
}

static void test_rates_and_windows_hold_groups_back_in_their_queue(void)
{
    struct fixture f = fixture_of("group-rate", WEIR_RATE(.limit = 1, .period_ns = MS(40)));
    weir_time begin = weir_now();

    for (int i = 0; i < 6; i++)
        weir_submit(NULL, f.group, busy, NULL, NULL);
    assert_int_equal(weir_executor_drain(f.ex, patience()), 0);
    assert_true(weir_now() - begin >= MS(199));
    fixture_free(&f);
    f = fixture_of("group-window",
                   WEIR_FREQUENCY(.mode = WEIR_EXACT, .limit = 2, .period_ns = MS(100)));
    begin = weir_now();
    for (int i = 0; i < 6; i++)
        weir_submit(NULL, f.group, busy, NULL, NULL);
    assert_int_equal(weir_executor_drain(f.ex, patience()), 0);
    assert_true(weir_now() - begin >= MS(190));
    assert_int_equal(done, 6);
    fixture_free(&f);
}

static int until_cancelled(void **value, void *arg)
{
    (void)value, (void)arg;
    atomic_fetch_add(&running, 1);
    return weir_sleep(patience());
}

static void test_tasks_of_a_group_whose_lease_cannot_be_kept_are_cancelled(void)
{
    struct fixture f = fixture_of("cut", WEIR_CONCURRENCY(.limit = 3, .lease_ns = MS(1500)));
    weir_task *task[4];
    weir_result result = WEIR_RESULT;
    weir_time end = patience();

    for (int i = 0; i < 4; i++)
        assert_int_equal(weir_submit(&task[i], f.group, until_cancelled, NULL, NULL), 0);
    while (running < 3 && weir_now() < end)
        weir_sleep(weir_in_ms(1));
    assert_int_equal(running, 3);
    server_freeze(&server);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(weir_task_wait(&result, task[i], patience()), 0);
        assert_int_equal(result.outcome, WEIR_CANCELLED);
    }
    assert_int_equal(running, 3); /* the fourth waits in the queue: closed */
    server_thaw(&server);
    while (running < 4 && weir_now() < end)
        weir_sleep(weir_in_ms(1));
    assert_int_equal(running, 4);
    for (int i = 0; i < 4; i++) {
        weir_task_cancel(task[i]);
        weir_task_unref(task[i]);
    }
    fixture_free(&f);
}

/* The first answer was about one task; the next renewal is twenty minutes away. */
static void test_a_lease_grows_as_soon_as_more_tasks_wait(void)
{
    struct fixture f = fixture_of("grows", WEIR_CONCURRENCY(.limit = 100, .lease_ns = MS(3600000)));

    assert_int_equal(weir_submit(NULL, f.group, until_cancelled, NULL, NULL), 0);
    AWAIT(running == 1);
    for (int i = 0; i < 19; i++)
        assert_int_equal(weir_submit(NULL, f.group, until_cancelled, NULL, NULL), 0);
    AWAIT(running == 20);
    fixture_free(&f);
}

static _Atomic int told;

static void count_loss(const weir_lost *lost, void *arg)
{
    (void)arg;
    atomic_fetch_add(&told, (int)lost->permits);
}

static void test_a_task_whose_permit_an_operator_takes_away_is_cancelled(void)
{
    struct fixture f = fixture_of(
        "evicted", WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(3600000), .on_lost = count_loss));
    weir_result result = WEIR_RESULT;
    weir_holder holder[2];
    weir_task *task;

    told = 0;
    assert_int_equal(weir_submit(&task, f.group, until_cancelled, NULL, NULL), 0);
    AWAIT(running == 1);
    assert_int_equal(weir_guard_holders(holder, 2, f.guard), 1);
    assert_int_equal(weir_guard_evict(f.guard, holder[0].id, "operator", "stuck"), 0);
    assert_int_equal(weir_task_wait(&result, task, patience()), 0);
    assert_int_equal(result.outcome, WEIR_CANCELLED);
    AWAIT(told == 1);
    weir_task_unref(task);
    fixture_free(&f);
}

/* Patient: answers that the relay holds back are late, not lost. */
static weir_store *store_behind(const struct relay *relay)
{
    return store_at(WEIR_REDIS(.url = relay->url, .reply_ms = 600000),
                    WEIR_FLEET(.look_ms = ANSWER_MS));
}

static void *enter_and_leave(void *guard)
{
    weir_permit p = WEIR_PERMIT;

    CHECK_EQUAL(weir_guard_enter(&p, guard, patience()), 0);
    weir_guard_leave(&p, 0);
    return NULL;
}

static void *enter_and_stay(void *guard)
{
    weir_permit p = WEIR_PERMIT;

    CHECK_EQUAL(weir_guard_enter(&p, guard, patience()), 0);
    AWAIT(told == 1);
    CHECK_EQUAL(weir_permit_until(&p), 0);
    weir_guard_leave(&p, 0);
    return NULL;
}

static bool another_is_held(weir_guard *guard, const weir_holder *taken)
{
    weir_holder holder;

    return weir_guard_holders(&holder, 1, guard) == 1 && strcmp(holder.id, taken->id) != 0;
}

/* The answer that grants the permit comes after the message that it was taken away. A second guard, whose permit is handed on by a
 * message behind that one, shows that it was heard. */
static void test_a_permit_that_is_taken_away_before_its_grant_is_heard_is_noticed(void)
{
    const weir_guard_options *one = WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(3600000));
    weir_store *other = store_of(NULL);
    weir_guard *theirs = guard_of(other, "early", one), *held = guard_of(other, "behind", one);
    weir_guard *awaited;
    weir_result result = WEIR_RESULT;
    weir_permit p = WEIR_PERMIT;
    struct relay relay;
    weir_holder holder;
    struct fixture f;
    pthread_t waiter;
    weir_task *task;

    told = 0;
    relay_start(&relay, &server);
    f = fixture_with(store_behind(&relay), "early",
                     WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(3600000), .on_lost = count_loss));
    awaited = guard_of(f.store, "behind", one);
    assert_int_equal(weir_guard_enter(&p, held, WEIR_NOW_OR_NEVER), 0);
    assert_int_equal(pthread_create(&waiter, NULL, enter_and_leave, awaited), 0);
    await_number(1, "ZCARD weir:{behind}:line");
    assert_int_equal(weir_guard_holders(&holder, 1, awaited), 1); /* its answer was before this */
    await_listeners(1);
    relay.hold = true;
    assert_int_equal(weir_submit(&task, f.group, until_cancelled, NULL, NULL), 0);
    /* On a busy machine it may go back once before it is evicted: then it is gone, and comes again. */
    AWAIT(weir_guard_holders(&holder, 1, theirs) == 1 &&
          weir_guard_evict(theirs, holder.id, "operator", "stuck") == 0);
    weir_guard_leave(&p, 0);
    assert_int_equal(pthread_join(waiter, NULL), 0);
    relay.hold = false;
    /* If its worker is slow, the permit has gone back unused before the server was asked about it, or the loss was heard before
     * the task could start: then it begins with another. */
    AWAIT(told == 1 || another_is_held(theirs, &holder));
    weir_task_cancel(task);
    assert_int_equal(weir_task_wait(&result, task, patience()), 0);
    assert_int_equal(result.outcome, WEIR_CANCELLED);
    weir_task_unref(task);
    weir_guard_unref(awaited);
    fixture_free(&f);
    relay_stop(&relay);
    weir_guard_unref(theirs);
    weir_guard_unref(held);
    weir_store_free(other);
}

/* The same for a caller of its own: its answer waits in the relay while the message is heard. */
static void test_a_caller_whose_permit_is_taken_away_before_its_grant_is_heard_is_told(void)
{
    const weir_guard_options *one = WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(3600000));
    weir_store *other = store_of(NULL), *store;
    weir_guard *theirs = guard_of(other, "alone", one), *held = guard_of(other, "after", one);
    weir_guard *awaited, *mine;
    weir_permit p = WEIR_PERMIT;
    pthread_t waiter, caller;
    struct relay relay;
    weir_holder holder;

    told = 0;
    relay_start(&relay, &server);
    store = store_behind(&relay);
    mine = guard_of(store, "alone",
                    WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(3600000), .on_lost = count_loss));
    awaited = guard_of(store, "after", one);
    assert_int_equal(weir_guard_enter(&p, held, WEIR_NOW_OR_NEVER), 0);
    assert_int_equal(pthread_create(&waiter, NULL, enter_and_leave, awaited), 0);
    await_number(1, "ZCARD weir:{after}:line");
    assert_int_equal(weir_guard_holders(&holder, 1, awaited), 1); /* its answer was before this */
    await_listeners(1);
    relay.hold = true;
    assert_int_equal(pthread_create(&caller, NULL, enter_and_stay, mine), 0);
    await_number(1, "ZCARD weir:{alone}:held");
    assert_int_equal(weir_guard_holders(&holder, 1, theirs), 1);
    assert_int_equal(weir_guard_evict(theirs, holder.id, "operator", "stuck"), 0);
    weir_guard_leave(&p, 0);
    assert_int_equal(pthread_join(waiter, NULL), 0);
    relay.hold = false;
    assert_int_equal(pthread_join(caller, NULL), 0);
    assert_int_equal(told, 1);
    weir_guard_unref(mine);
    weir_guard_unref(awaited);
    weir_store_free(store);
    relay_stop(&relay);
    weir_guard_unref(theirs);
    weir_guard_unref(held);
    weir_store_free(other);
}

static _Atomic bool linger, lingers, go;

/* Keeps all other callbacks of its client waiting. */
static void stay(const weir_lost *lost, void *arg)
{
    (void)lost, (void)arg;
    lingers = true;
    AWAIT(!linger);
    lingers = false;
}

static int until_go(void **value, void *arg)
{
    (void)value, (void)arg;
    running++;
    AWAIT(go);
    return 0;
}

/* The client is kept from hearing that its lease was renewed until that was nearly over; the group asks in between. */
static void test_a_group_that_was_refused_because_a_renewal_was_heard_late_goes_on(void)
{
    enum { LATE_LEASE_MS = 3000 };
    const weir_guard_options *one = WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(3600000));
    weir_store *other = store_of(NULL);
    weir_guard *theirs = guard_of(other, "pastime", one), *pastime;
    weir_result result = WEIR_RESULT;
    weir_permit p = WEIR_PERMIT;
    struct relay relay;
    weir_holder holder;
    struct fixture f;
    weir_task *first;
    long long before;
    weir_time late;

    go = false;
    relay_start(&relay, &server);
    f = fixture_with(store_behind(&relay), "late",
                     WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(LATE_LEASE_MS)));
    pastime = guard_of(f.store, "pastime",
                       WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(3600000), .on_lost = stay));
    assert_int_equal(weir_guard_enter(&p, pastime, WEIR_NOW_OR_NEVER), 0);
    assert_int_equal(weir_submit(&first, f.group, until_go, NULL, NULL), 0);
    assert_int_equal(weir_submit(NULL, f.group, busy, NULL, NULL), 0);
    AWAIT(running == 1);
    late = weir_in_ms(LATE_LEASE_MS);
    before = scripts_run();
    await_listeners(1);
    relay.hold = true;
    AWAIT(scripts_run() > before); /* the lease was renewed; the client does not know */
    linger = true;
    assert_int_equal(weir_guard_holders(&holder, 1, theirs), 1);
    assert_int_equal(weir_guard_evict(theirs, holder.id, "operator", "stuck"), 0);
    AWAIT(lingers);
    relay.hold = false;
    weir_sleep(late);
    go = true;
    assert_int_equal(weir_task_wait(&result, first, patience()), 0);
    linger = false;
    assert_int_equal(weir_executor_drain(f.ex, patience()), 0);
    assert_int_equal(done, 1);
    weir_task_unref(first);
    weir_guard_leave(&p, 0);
    weir_guard_unref(pastime);
    fixture_free(&f);
    relay_stop(&relay);
    weir_guard_unref(theirs);
    weir_store_free(other);
}

/* Its tasks wait in their queue: one place in line is the process', however many they are. It must not ask again and again. */
static void test_a_group_stands_in_line_also_where_callers_may_not_wait(void)
{
    const weir_guard_options *one =
        WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(3600000), .waiters_max = WEIR_NO_WAITERS);
    weir_store *other = store_of(NULL);
    weir_guard *theirs = guard_of(other, "unwaited", one);
    weir_permit p = WEIR_PERMIT;
    struct fixture f;
    long long before;

    assert_int_equal(weir_guard_enter(&p, theirs, WEIR_NOW_OR_NEVER), 0);
    f = fixture_of("unwaited", one);
    for (int i = 0; i < 3; i++)
        assert_int_equal(weir_submit(NULL, f.group, busy, NULL, NULL), 0);
    await_number(1, "ZCARD weir:{unwaited}:line");
    await_silence(200);
    before = scripts_run();
    weir_guard_leave(&p, 0);
    assert_int_equal(weir_executor_drain(f.ex, patience()), 0);
    assert_int_equal(done, 3);
    assert_true(scripts_run() - before < 20);
    fixture_free(&f);
    weir_guard_unref(theirs);
    weir_store_free(other);
}

static void test_a_process_that_ends_leaves_its_share_to_others_at_once(void)
{
    struct fixture f = fixture_of("heir", WEIR_CONCURRENCY(.limit = 4, .lease_ns = MS(3600000)));

    for (int i = 0; i < 20; i++)
        assert_int_equal(weir_submit(NULL, f.group, busy, NULL, NULL), 0);
    assert_int_equal(weir_executor_drain(f.ex, patience()), 0);
    fixture_free(&f);
    await_number(0, "HLEN weir:{heir}:wants");
    await_number(0, "ZCARD weir:{heir}:held");
}

static void test_a_permit_that_is_handed_to_a_group_that_is_gone_comes_back_at_once(void)
{
    weir_store *other = store_of(NULL);
    weir_guard *guard =
        guard_of(other, "handed", WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(3600000)));
    weir_permit p = WEIR_PERMIT;
    struct fixture f;

    assert_int_equal(weir_guard_enter(&p, guard, WEIR_NOW_OR_NEVER), 0);
    f = fixture_of("handed", WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(3600000)));
    assert_int_equal(weir_submit(NULL, f.group, busy, NULL, NULL), 0);
    await_number(1, "ZCARD weir:{handed}:line");
    weir_executor_free(f.ex);
    f.ex = NULL;
    weir_guard_leave(&p, 0);
    await_number(0, "ZCARD weir:{handed}:line");
    await_number(0, "ZCARD weir:{handed}:held");
    weir_guard_unref(f.guard);
    weir_store_free(f.store);
    weir_guard_unref(guard);
    weir_store_free(other);
}

/* ---- several processes ---------------------------------------------------------------------------- */

/* Waits until it has begun. */
static void await_ready(struct member *m)
{
    char text[6];

    assert_int_equal(read(m->out, text, sizeof(text)), 6);
}

static void count_anew(struct member *m)
{
    assert_int_equal(write(m->in, "", 1), 1);
}

static long count_of(struct member *m)
{
    char text[32] = "";

    close(m->in);
    m->in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (read(m->out, text, sizeof(text) - 1) < 1)
        return 0;
    return atol(text);
}

/* `count` processes with more to do than the limit allows, for a while: how much of what the limit allows is done, and Jain's index
 * of fairness. */
static void share_once(double *done_part, double *jain, const char *name, int count, int limit,
                       int task_us, int ms)
{
    struct member member[4];
    long sum = 0, got[4];
    double squares = 0, possible;
    weir_time begin;
    int64_t took;

    for (int i = 0; i < count; i++)
        member_start(&member[i], name, limit, LEASE_MS, "/dev/null", "group", (uint64_t)task_us,
                     4 * limit);
    for (int i = 0; i < count; i++)
        await_ready(&member[i]);
    for (int i = 0; i < count; i++)
        count_anew(&member[i]);
    begin = weir_now();
    weir_sleep(weir_in_ms(ms));
    took = (weir_now() - begin) / 1000;
    for (int i = 0; i < count; i++) {
        got[i] = count_of(&member[i]);
        sum += got[i];
        squares += (double)got[i] * (double)got[i];
    }
    for (int i = 0; i < count; i++)
        assert_int_equal(member_end(&member[i]), 0);
    *jain = squares > 0 ? (double)sum * (double)sum / (count * squares) : 0;
    possible = (double)limit * (double)took / task_us;
    printf("%d processes, limit %d: %ld tasks of %.0f possible, Jain %.3f\n", count, limit, sum,
           possible, *jain);
    *done_part = (double)sum / possible;
}

/* The work of one process that has the limit for itself, as a part of what the limit allows: less than all if the machine is slow,
 * or has other work. */
static double part_of_one(const char *name, int limit, int task_us, int ms)
{
    double part, jain;
    char alone[40];

    snprintf(alone, sizeof(alone), "%s alone", name);
    share_once(&part, &jain, alone, 1, limit, task_us, ms);
    return part < 1 ? part : 1;
}

/* At least so much of what the limit allows, or, on a slow machine, of what one process does: one round of some is to be as it
 * should, since other work does not disturb all evenly. Never more than the limit. */
static void share(const char *name, int count, int limit, int task_us, int ms, double least)
{
    double part = 0, jain = 0;
    bool enough = false;

    for (int round = 0; round < 8 && !enough; round++) {
        char fresh[32];

        snprintf(fresh, sizeof(fresh), "%s %d", name, round);
        share_once(&part, &jain, fresh, count, limit, task_us, ms);
        assert_true(part <= 1.1);
        enough = jain >= 0.95 &&
                 (part >= least || part >= least * part_of_one(fresh, limit, task_us, ms));
    }
    assert_true(enough);
}

static void test_processes_that_share_a_limit_get_equal_shares(void)
{
    share("two", 2, 8, 5000, 1000, 0.6);
    share("four", 4, 8, 5000, 1000, 0.6);
    share("odd", 4, 6, 5000, 2500, 0.6); /* what does not divide goes around */
    share("few", 4, 2, 5000, 2000,
          0.3); /* more processes than permits: in turns, each a round trip */
}

/* How many permits that process holds. */
static int held_by(weir_guard *guard, pid_t pid)
{
    weir_holder holder[8];
    int64_t all = weir_guard_holders(holder, 8, guard);
    int count = 0;

    assert_true(all <= 8);
    for (int64_t i = 0; i < all; i++)
        count += holder[i].pid == pid;
    return count;
}

static void test_permits_one_process_does_not_use_others_may(void)
{
    enum { KEPT_LEASE_MS = 3000 }; /* a process that loses its lease loses tasks, too */
    weir_store *store = store_of(NULL);
    weir_guard *guard =
        guard_of(store, "lend", WEIR_CONCURRENCY(.limit = 8, .lease_ns = MS(KEPT_LEASE_MS)));
    struct member busy_one, idle_one;

    member_start(&idle_one, "lend", 8, KEPT_LEASE_MS, "/dev/null", "group", 5000, 1);
    await_ready(&idle_one);
    member_start(&busy_one, "lend", 8, KEPT_LEASE_MS, "/dev/null", "group", 5000, 32);
    await_ready(&busy_one);
    AWAIT(held_by(guard, busy_one.pid) > 4); /* more than half of the limit */
    count_of(&busy_one);
    count_of(&idle_one);
    assert_int_equal(member_end(&busy_one), 0);
    assert_int_equal(member_end(&idle_one), 0);
    weir_guard_unref(guard);
    weir_store_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_most_starts_of_a_leased_group_need_no_round_trip),
        TEST(test_an_idle_group_gives_its_permits_back_and_falls_silent),
        TEST(test_an_idle_group_with_a_limit_of_one_gives_its_permit_back),
        TEST(test_why_says_the_fleet_s_limit_and_which_process_holds_it_where),
        TEST(test_rates_and_windows_hold_groups_back_in_their_queue),
        TEST(test_tasks_of_a_group_whose_lease_cannot_be_kept_are_cancelled),
        TEST(test_a_lease_grows_as_soon_as_more_tasks_wait),
        TEST(test_a_task_whose_permit_an_operator_takes_away_is_cancelled),
        TEST(test_a_permit_that_is_taken_away_before_its_grant_is_heard_is_noticed),
        TEST(test_a_caller_whose_permit_is_taken_away_before_its_grant_is_heard_is_told),
        TEST(test_a_group_that_was_refused_because_a_renewal_was_heard_late_goes_on),
        TEST(test_a_group_stands_in_line_also_where_callers_may_not_wait),
        TEST(test_a_process_that_ends_leaves_its_share_to_others_at_once),
        TEST(test_a_permit_that_is_handed_to_a_group_that_is_gone_comes_back_at_once),
        TEST(test_processes_that_share_a_limit_get_equal_shares),
        TEST(test_permits_one_process_does_not_use_others_may),
    };

    return cmocka_run_group_tests(tests, start_server, stop_server);
}
