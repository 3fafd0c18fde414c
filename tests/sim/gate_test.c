/* A gate that a user writes: permits of its own that two groups share, leases that are lost, and outcomes it learns from.
 * SPDX-License-Identifier: MIT */
#include "support/executor_support.h"

#include <weir/sys/gate.h>

enum { TASKS = 30, GATES = 2, BREAKS_AFTER = 3 };

/* A number of permits for several groups. Under the simulator's threads, so with a lock of its own; that it is never
 * held across a call is what makes an atomic word enough. */
struct permits {
    _Atomic int limit, held;
    _Atomic int let_through, started, ended, given_back, dropped;
    _Atomic int failures; /* of tasks that ended with an error      */
    _Atomic bool broken;  /* it lets nothing in after BREAKS_AFTER  */
    _Atomic uint64_t epoch;
    weir_gate *gate[GATES];
};

static weir_reason permits_accept(void *arg, uint32_t cost, weir_time now)
{
    struct permits *p = arg;

    (void)cost, (void)now;
    return p->broken ? WEIR_REASON_GATED : WEIR_REASON_NONE;
}

static uint32_t permits_ask(void *arg, uint32_t count, weir_time now, weir_time *again)
{
    struct permits *p = arg;
    int held = p->held, take;

    (void)now;
    *again = WEIR_FOREVER;
    do {
        take = p->limit - held < (int)count ? p->limit - held : (int)count;
        if (!count || take <= 0)
            return !count && held < p->limit;
    } while (!atomic_compare_exchange_weak(&p->held, &held, held + take));
    p->let_through += take;
    return (uint32_t)take;
}

static void give(struct permits *p, int count)
{
    p->held -= count;
    CHECK(p->held >= 0);
    for (int i = 0; i < GATES; i++)
        if (p->gate[i])
            weir_gate_open(p->gate[i]);
}

static void permits_take_back(void *arg, uint32_t count, weir_time now)
{
    struct permits *p = arg;

    (void)now;
    p->given_back += (int)count;
    give(p, (int)count);
}

static uint64_t permits_started(void *arg, weir_task *task, weir_time now)
{
    struct permits *p = arg;

    (void)now;
    CHECK(task != NULL);
    p->started++;
    return p->epoch;
}

static void permits_ended(void *arg, uint64_t word, int error, int64_t ran_ns, weir_time now)
{
    struct permits *p = arg;

    (void)now;
    CHECK(word <= p->epoch && ran_ns >= 0);
    p->ended++;
    p->failures += error != 0;
    if (p->failures >= BREAKS_AFTER)
        p->broken = true;
    give(p, 1);
}

static void permits_describe(void *arg, weir_gate_state *out, weir_time now)
{
    struct permits *p = arg;

    (void)now;
    out->limit = p->limit;
    out->held = p->held;
}

static bool permits_at_rest(void *arg, weir_time now)
{
    struct permits *p = arg;

    (void)now;
    return p->held == 0;
}

static void permits_drop(void *arg)
{
    struct permits *p = arg;

    p->dropped++;
}

static const weir_gate_calls permits_calls = { .size = sizeof(permits_calls),
                                               .name = "permits",
                                               .accept = permits_accept,
                                               .ask = permits_ask,
                                               .take_back = permits_take_back,
                                               .started = permits_started,
                                               .ended = permits_ended,
                                               .describe = permits_describe,
                                               .at_rest = permits_at_rest,
                                               .drop = permits_drop };

static void put_gate(struct permits *p, int i, weir_executor *ex, const char *key)
{
    CHECK(weir_group_gate_add(&p->gate[i], group_of(ex, key), &permits_calls, p) == 0);
}

static void check_over(const struct permits *p)
{
    CHECK_EQ(p->held, 0);
    CHECK_EQ(p->started, p->ended);
    CHECK_EQ(p->let_through, p->started + p->given_back);
}

/* ---- permits ------------------------------------------------------------------------------------- */

/* Bodies of 10 ms, and two permits for both groups: two at a time, and none is lost. */
SIM_TEST(test_two_groups_share_the_permits_of_a_gate, 200)
{
    struct permits p = { .limit = 2 };
    struct gauge gauge = { 0 };
    struct body body = { .gauge = &gauge, .ms = 10 };
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 8));
    weir_task *task[TASKS];

    put_gate(&p, 0, ex, "a");
    put_gate(&p, 1, ex, "b");
    for (int i = 0; i < TASKS; i++)
        task[i] = submit(ex, i % 2 ? "a" : "b", &body);
    for (int i = 0; i < TASKS; i++)
        CHECK(result_of(task[i]).outcome == WEIR_DONE);
    CHECK_EQ(gauge.peak, 2);
    CHECK_EQ(weir_now(), at(10 * TASKS / 2));
    check_over(&p);
    check_books(ex);
    weir_executor_free(ex);
    CHECK_EQ(p.dropped, 2);
}

/* A permit that is granted while the group's own limit is reached goes back. */
SIM_TEST(test_a_permit_a_gate_grants_in_vain_goes_back, 200)
{
    struct permits p = { .limit = 100 };
    struct gauge gauge = { 0 };
    struct body body = { .gauge = &gauge, .ms = 1 };
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1, .inflight_max = 1));

    put_gate(&p, 0, ex, "a");
    put_gate(&p, 1, ex, "b");
    for (int i = 0; i < TASKS; i++)
        weir_task_unref(submit(ex, i % 2 ? "a" : "b", &body));
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(gauge.peak, 1);
    CHECK_EQ(p.started, TASKS);
    check_over(&p);
    weir_executor_free(ex);
}

/* ---- what it says ---------------------------------------------------------------------------------- */

SIM_TEST(test_why_names_the_gate_and_its_figures, 20)
{
    struct permits p = { .limit = 1 };
    struct body body = { .until_ms = 10 };
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 8));
    weir_task *first, *second;
    weir_why why = { .size = sizeof(why) };

    put_gate(&p, 0, ex, "a");
    first = submit(ex, "a", &body);
    second = submit(ex, "a", &body);
    sleep_until(5);
    CHECK(weir_task_why(&why, second) == 0);
    CHECK_EQ(why.reason, WEIR_REASON_GATED);
    CHECK(strcmp(why.node, "gate") == 0 && strcmp(why.key, "permits") == 0);
    CHECK_EQ(why.limit, 1);
    CHECK_EQ(why.held, 1);
    CHECK_EQ(why.earliest, 0);
    weir_task_unref(first);
    CHECK_EQ(result_of(second).started_at, at(10));
    weir_executor_free(ex);
}

/* ---- a lease that is lost -------------------------------------------------------------------------- */

SIM_TEST(test_a_gate_cancels_tasks_it_let_through, 200)
{
    struct permits p = { .limit = 3, .epoch = 1 };
    struct body body = { .ms = 1000 };
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 8));
    weir_task *old[2], *new;

    put_gate(&p, 0, ex, "a");
    old[0] = submit(ex, "a", &body);
    old[1] = submit(ex, "a", &body);
    sleep_until(5);
    p.epoch = 2;
    new = submit(ex, "a", &body);
    sleep_until(10);
    CHECK_EQ(weir_gate_cancel(p.gate[0], 1), 2);
    for (int i = 0; i < 2; i++) {
        weir_result result = result_of(old[i]);
        CHECK(result.outcome == WEIR_CANCELLED && result.ended_at == at(10));
    }
    CHECK(result_of(new).outcome == WEIR_DONE);
    CHECK_EQ(weir_gate_cancel(p.gate[0], 2), 0);
    check_over(&p);
    weir_executor_free(ex);
}

/* ---- outcomes -------------------------------------------------------------------------------------- */

SIM_TEST(test_a_gate_that_learns_from_failures_turns_tasks_away, 50)
{
    struct permits p = { .limit = 1 };
    struct body fails = { .ms = 1, .error = -5 };
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1, .group_limit = 8));
    weir_task *task[BREAKS_AFTER], *late;
    weir_result result;

    put_gate(&p, 0, ex, "a");
    for (int i = 0; i < BREAKS_AFTER; i++)
        task[i] = submit(ex, "a", &fails);
    for (int i = 0; i < BREAKS_AFTER; i++)
        CHECK(result_of(task[i]).outcome == WEIR_FAILED);
    late = submit(ex, "a", NULL);
    result = result_of(late);
    CHECK(result.outcome == WEIR_REJECTED && result.reason == WEIR_REASON_GATED);
    check_over(&p);
    weir_executor_free(ex);
}

/* Its end is told once, when it is settled. */
SIM_TEST(test_a_gate_hears_of_pending_tasks_when_they_settle, 50)
{
    struct permits p = { .limit = 1 };
    struct body pends = { .error = WEIR_PENDING };
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1, .group_limit = 8));
    weir_task *first, *second;

    put_gate(&p, 0, ex, "a");
    first = submit(ex, "a", &pends);
    second = submit(ex, "a", NULL);
    sleep_until(5);
    CHECK(p.started == 1 && p.ended == 0);
    CHECK(weir_task_settle(first, -5, NULL) == 0);
    CHECK_EQ(result_of(second).started_at, at(5));
    CHECK_EQ(p.failures, 1);
    weir_task_unref(first);
    check_over(&p);
    weir_executor_free(ex);
}

/* Tokens that are spent by a start, as those of a rate are. */
static const weir_gate_calls tokens_calls = { .size = sizeof(tokens_calls),
                                              .name = "tokens",
                                              .ask = permits_ask,
                                              .take_back = permits_take_back };

/* A turn that ends with a pending task has granted starts at hand that cannot happen now: they are not kept from others. */
SIM_TEST(test_a_turn_that_ends_in_a_pending_task_gives_back_the_rest, 100)
{
    struct permits p = { .limit = 100 };
    struct body pends = { .error = WEIR_PENDING };
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 1, .group_limit = 8, .group_inflight_max = 1));
    weir_group *group = group_of(ex, "a");

    CHECK(weir_group_gate_add(&p.gate[0], group, &tokens_calls, &p) == 0);
    weir_group_pause(group);
    CHECK(weir_submit(NULL, group, work, NULL, NULL) == 0);
    CHECK(weir_submit(NULL, group, work, &pends, NULL) == 0);
    for (int i = 0; i < 3; i++)
        CHECK(weir_submit(NULL, group, work, NULL, NULL) == 0);
    weir_group_resume(group);
    sleep_until(5);
    CHECK_EQ(stats_of(ex, "a").started, 2);
    CHECK_EQ(p.held, 2);
    weir_executor_free(ex);
    CHECK_EQ(p.held, 2);
}

/* ---- life ------------------------------------------------------------------------------------------ */

SIM_TEST(test_a_gate_that_is_removed_holds_nothing_back, 100)
{
    struct permits p = { .limit = 0 };
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 8));
    weir_task *task;

    put_gate(&p, 0, ex, "a");
    task = submit(ex, "a", NULL);
    sleep_until(5);
    CHECK(!weir_task_done(task));
    weir_gate_remove(p.gate[0]);
    CHECK_EQ(p.dropped, 1);
    CHECK_EQ(result_of(task).started_at, at(5));
    weir_executor_free(ex);
    CHECK_EQ(p.dropped, 1);
}

/* Pace, cool-down and a gate of the user's: all of them hold, whichever refuses first. */
/* A gate that says no at every third look, for a while, and yes whenever a start is asked for. */
struct fickle {
    _Atomic uint32_t looks;
};

static uint32_t fickle_ask(void *arg, uint32_t count, weir_time now, weir_time *again)
{
    struct fickle *fickle = arg;

    *again = now + 1000000;
    return count ? 1 : fickle->looks++ % 3 < 2;
}

static uint64_t fickle_started(void *arg, weir_task *task, weir_time now)
{
    (void)arg, (void)task, (void)now;
    return 0;
}

static const weir_gate_calls fickle_calls = {
    .size = sizeof(fickle_calls), .name = "fickle", .ask = fickle_ask, .started = fickle_started
};

/* A worker may come for a group that its gate has closed since, and find the gate open again: the group's equations are
 * walked after each step. */
SIM_TEST(test_a_gate_may_change_its_mind_while_a_worker_comes, 300)
{
    struct fickle fickle = { 0 };
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 3, .group_limit = 3));
    weir_group *group = group_of(ex, "a");
    weir_group_stats stats = { .size = sizeof(stats) };
    weir_gate *gate;

    CHECK(weir_group_gate_add(&gate, group, &fickle_calls, &fickle) == 0);
    for (int i = 0; i < TASKS; i++)
        CHECK(weir_submit(NULL, group, work, NULL, NULL) == 0);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK(weir_group_stats_get(&stats, ex, "a") == 0);
    CHECK_EQ(stats.succeeded, TASKS);
    weir_executor_free(ex);
}

SIM_TEST(test_gates_of_all_kinds_hold_together, 100)
{
    struct permits p = { .limit = 1 };
    struct body body = { .ms = 3 };
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 8));
    static const int64_t due[] = { 5, 15, 25 };
    weir_task *task[3];

    CHECK(weir_group_pace(group_of(ex, "a"), 1, 10 * MS, 1) == 0);
    CHECK(weir_group_cool_down(group_of(ex, "a"), at(5)) == 0);
    put_gate(&p, 0, ex, "a");
    for (int i = 0; i < 3; i++)
        task[i] = submit(ex, "a", &body);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(result_of(task[i]).started_at, at(due[i]));
    check_over(&p);
    weir_executor_free(ex);
}

SIM_TEST(test_a_gate_needs_a_question_to_be_asked, 1)
{
    static const weir_gate_calls mute = { .size = sizeof(mute) };
    static const weir_gate_calls small = { .size = 8, .ask = permits_ask };
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1));
    weir_gate *gate;

    CHECK(weir_group_gate_add(&gate, group_of(ex, "a"), &mute, NULL) == WEIR_EINVAL);
    CHECK(weir_group_gate_add(&gate, group_of(ex, "a"), &small, NULL) == WEIR_EINVAL);
    CHECK(weir_group_gate_add(&gate, group_of(ex, "a"), NULL, NULL) == WEIR_EINVAL);
    CHECK(weir_group_gate_add(NULL, group_of(ex, "a"), &permits_calls, NULL) == WEIR_EINVAL);
    CHECK(weir_group_gate_add(&gate, NULL, &permits_calls, NULL) == WEIR_EINVAL);
    weir_gate_remove(NULL);
    weir_executor_free(ex);
}

/* A program that was built when a gate had fewer calls. Memory after its struct is not the gate's. */
SIM_TEST(test_a_gate_of_an_older_header_is_taken_as_it_is, 100)
{
    struct {
        weir_gate_calls calls;
        int after;
    } older = { .calls = permits_calls };
    struct permits p = { .limit = 1 };
    struct body body = { .ms = 3 };
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 8));
    weir_task *first, *second;

    older.calls.size = offsetof(weir_gate_calls, went_on);
    memset(&older.calls.went_on, 0xff, sizeof(older.calls.went_on));
    CHECK(weir_group_gate_add(&p.gate[0], group_of(ex, "a"), &older.calls, &p) == 0);
    memset(&older, 0xff, sizeof(older)); /* it was copied */
    first = submit(ex, "a", &body);
    second = submit(ex, "a", &body);
    CHECK_EQ(result_of(first).started_at, at(0));
    CHECK_EQ(result_of(second).started_at, at(3));
    check_over(&p);
    weir_executor_free(ex);
    CHECK_EQ(p.dropped, 1);
}

SIM_TEST(test_a_gate_of_a_newer_header_must_not_have_calls_that_are_not_known, 1)
{
    struct {
        weir_gate_calls calls;
        void *more;
    } newer = { .calls = permits_calls };
    struct permits p = { .limit = 1 };
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1));

    newer.calls.size = sizeof(newer);
    newer.more = &newer;
    CHECK(weir_group_gate_add(&p.gate[0], group_of(ex, "a"), &newer.calls, &p) == WEIR_EVERSION);
    newer.more = NULL;
    CHECK(weir_group_gate_add(&p.gate[0], group_of(ex, "a"), &newer.calls, &p) == 0);
    weir_executor_free(ex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_groups_share_the_permits_of_a_gate),
        cmocka_unit_test(test_a_permit_a_gate_grants_in_vain_goes_back),
        cmocka_unit_test(test_why_names_the_gate_and_its_figures),
        cmocka_unit_test(test_a_gate_cancels_tasks_it_let_through),
        cmocka_unit_test(test_a_gate_that_learns_from_failures_turns_tasks_away),
        cmocka_unit_test(test_a_gate_hears_of_pending_tasks_when_they_settle),
        cmocka_unit_test(test_a_turn_that_ends_in_a_pending_task_gives_back_the_rest),
        cmocka_unit_test(test_a_gate_that_is_removed_holds_nothing_back),
        cmocka_unit_test(test_a_gate_may_change_its_mind_while_a_worker_comes),
        cmocka_unit_test(test_gates_of_all_kinds_hold_together),
        cmocka_unit_test(test_a_gate_needs_a_question_to_be_asked),
        cmocka_unit_test(test_a_gate_of_an_older_header_is_taken_as_it_is),
        cmocka_unit_test(test_a_gate_of_a_newer_header_must_not_have_calls_that_are_not_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
