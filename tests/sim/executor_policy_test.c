/* Settings that a policy has for a group: by name, or asked for; and how long a group is remembered.
 * SPDX-License-Identifier: MIT */
#include "support/executor_support.h"

enum { SECOND = 1000 }; /* in milliseconds */

/* ---- pace by name ------------------------------------------------------------------------------------ */

SIM_TEST(test_a_policy_can_pace_a_group, 100)
{
    int start[] = { 0, 0, 0, 10, 20, 30 };
    weir_group_policy groups[] = {
        { .key = "g", .limit = 10, .pace = { .starts = 1, .period_ns = 10 * MS, .burst = 3 } }
    };
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .groups = groups, .group_count = 1));
    weir_task *task[6];

    for (int i = 0; i < 6; i++)
        task[i] = submit(ex, "g", NULL);
    sleep_until(1);
    CHECK_EQ(why_of(task[3]), WEIR_REASON_PACED);
    for (int i = 0; i < 6; i++)
        check_done_at(task[i], start[i], start[i]);
    check_done(submit(ex, "other", NULL)); /* no other group minds */
    CHECK_EQ(weir_now(), at(30));
    weir_executor_free(ex);
}

SIM_TEST(test_a_pace_is_per_second_unless_it_says_otherwise, 50)
{
    weir_group_policy groups[] = { { .key = "g", .pace.starts = 10 } };
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .groups = groups, .group_count = 1));
    weir_task *task[3];

    for (int i = 0; i < 3; i++)
        task[i] = submit(ex, "g", NULL);
    for (int i = 0; i < 3; i++)
        check_done_at(task[i], i * 100, i * 100);
    weir_executor_free(ex);
}

static void refused(weir_group_policy entry, const char *sentence)
{
    weir_executor *ex;
    weir_message message;

    entry.key = "g";
    CHECK(weir_executor_new(&ex, WEIR_POLICY(.groups = &entry, .group_count = 1), &message) ==
          WEIR_EINVAL);
    if (strcmp(message.text, sentence) != 0)
        weir_sim_fail("it says: %s\nnot: %s", message.text, sentence);
}

SIM_TEST(test_a_pace_that_makes_no_sense_is_refused_by_name_and_value, 1)
{
    refused((weir_group_policy){ .pace.starts = -1 },
            "groups[\"g\"].pace.starts is -1: use 1 or more, or 0 for no pace");
    refused((weir_group_policy){ .pace = { .starts = 1, .period_ns = -2 } },
            "groups[\"g\"].pace.period_ns is -2: use 1 or more, or 0 for a second");
    refused((weir_group_policy){ .pace = { .starts = 1, .burst = -3 } },
            "groups[\"g\"].pace.burst is -3: use 1 or more, or 0 for 1");
    refused((weir_group_policy){ .pace.burst = 4 },
            "groups[\"g\"].pace.starts is 0: use 1 or more: period_ns or burst is set");
    refused((weir_group_policy){ .pace = { .starts = 1, .burst = INT64_MAX } },
            "groups[\"g\"].pace.burst is 9223372036854775807: the burst is too large");
}

static void policy_refused(const weir_policy *policy, int error, const char *sentence)
{
    weir_message message = { "not said" };
    weir_executor *ex;

    CHECK_EQ(weir_executor_new(&ex, policy, &message), error);
    CHECK(weir_executor_new(&ex, policy, NULL) == error && !ex);
    if (strcmp(message.text, sentence) != 0)
        weir_sim_fail("it says: %s\nnot: %s", message.text, sentence);
}

SIM_TEST(test_a_value_out_of_range_is_refused_with_the_range, 1)
{
    policy_refused(WEIR_POLICY(.workers = 100000), WEIR_EINVAL,
                   "workers is 100000: use 1 to 4096, or 0 for one per CPU");
    policy_refused(WEIR_POLICY(.replacements_max = 4097), WEIR_EINVAL,
                   "replacements_max is 4097: use 1 to 4096, or 0 for one per worker and 64");
    policy_refused(WEIR_POLICY(.stack_size = 16383), WEIR_EINVAL,
                   "stack_size is 16383: use 16384 to 1073741824 (1 GiB), or 0 for 131072");
    policy_refused(WEIR_POLICY(.stack_size = (1 << 30) + 1), WEIR_EINVAL,
                   "stack_size is 1073741825: use 16384 to 1073741824 (1 GiB), or 0 for 131072");
    policy_refused(WEIR_POLICY(.overdue_max = -1), WEIR_EINVAL,
                   "overdue_max is -1: use 1 to 2147483647, or 0 for 64");
    policy_refused(WEIR_POLICY(.stall_max = INT64_MIN), WEIR_EINVAL,
                   "stall_max is -9223372036854775808: use 1 to 2147483647, or 0 for 1");
    policy_refused(WEIR_POLICY(.group_limit = -1), WEIR_EINVAL,
                   "group_limit is -1: use 1 to 4294967294, WEIR_NO_LIMIT, or 0 for the default");
    policy_refused(WEIR_POLICY(.group_limit = INT64_C(1) << 40), WEIR_EINVAL,
                   "group_limit is 1099511627776: use 1 to 4294967294, WEIR_NO_LIMIT, or 0 for the "
                   "default");
    policy_refused(WEIR_POLICY(.queue_max = -7), WEIR_EINVAL,
                   "queue_max is -7: use 1 to 4294967294, WEIR_NO_LIMIT, WEIR_NO_QUEUE, or 0 for "
                   "the default");
}

SIM_TEST(test_an_executor_that_cannot_be_had_always_says_why, 1)
{
    struct {
        weir_policy policy;
        char newer[8];
    } from_the_future = { .policy = { .size = sizeof(from_the_future) }, .newer = "x" };
    weir_message message = { "not said" };
    weir_policy too_small = { .size = 4 };
    char newer[128];

    snprintf(newer, sizeof(newer),
             "a field is set that weir %s does not know: the program was built for a newer version",
             weir_version());
    policy_refused(&too_small, WEIR_EINVAL,
                   "size is 4: use sizeof(weir_policy), as the macro WEIR_POLICY does");
    policy_refused(&from_the_future.policy, WEIR_EVERSION, newer);
    CHECK(weir_executor_new(NULL, NULL, &message) == WEIR_EINVAL);
    CHECK(strcmp(message.text, "out is NULL: there is nowhere to store the executor") == 0);
}

/* Whatever else fails: the message is never empty, and empty if all is well. */
static void new_or_say(void *arg)
{
    weir_message message = { "not said" };
    weir_executor *ex;
    int rc = weir_executor_new(&ex, WEIR_POLICY(.workers = 1, .idle_evict_ms = 1000), &message);

    (void)arg;
    CHECK((rc == 0) == (message.text[0] == '\0'));
    CHECK(strcmp(message.text, "not said") != 0);
    if (rc)
        CHECK(strstr(message.text, weir_strerror(rc)) != NULL);
    else
        weir_executor_free(ex);
}

static void test_whatever_fails_the_message_is_filled(void **state)
{
    weir_sim_report report = WEIR_SIM_REPORT;

    (void)state;
    assert_int_equal(weir_sim_run(&report, NULL, new_or_say, NULL), 0);
    for (uint64_t n = 1, count = report.allocs; n <= count; n++)
        assert_int_equal(weir_sim_run(NULL, WEIR_SIM_OPTIONS(.fail_alloc = n), new_or_say, NULL),
                         0);
    for (uint64_t n = 1, count = report.threads; n <= count; n++)
        assert_int_equal(weir_sim_run(NULL, WEIR_SIM_OPTIONS(.fail_thread = n), new_or_say, NULL),
                         0);
    for (uint64_t n = 1, count = report.pollers; n <= count; n++)
        assert_int_equal(weir_sim_run(NULL, WEIR_SIM_OPTIONS(.fail_poller = n), new_or_say, NULL),
                         0);
}

/* ---- what the workers are like -------------------------------------------------------------------------- */

SIM_TEST(test_replacements_max_bounds_how_many_blocking_bodies_are_replaced, 20)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 1, .group_limit = 10, .replacements_max = 2));
    struct gauge gauge = { 0 };
    struct body body = { .ms = 500, .gauge = &gauge };

    for (int i = 0; i < 10; i++)
        weir_task_unref(submit_blocking(ex, "g", &body));
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(gauge.peak, 3);
    weir_executor_free(ex);
}

static int waits_deep_down(void **value, void *arg)
{
    volatile char frame[512 << 10];

    (void)arg;
    frame[0] = frame[sizeof(frame) - 1] = 1;
    CHECK(weir_sleep(at(10)) == 0);
    *value = NULL;
    return frame[0] - frame[sizeof(frame) - 1];
}

SIM_TEST(test_bodies_have_the_stack_that_the_policy_says, 20)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1, .stack_size = 1 << 20));
    weir_task *task;

    CHECK(weir_submit_key(&task, ex, "g", waits_deep_down, NULL, NULL) == 0);
    check_done_at(task, 0, 10);
    weir_executor_free(ex);
}

/* ---- asked for ----------------------------------------------------------------------------------------- */

/* The answer of group_for, and how often it was asked. */
struct answer {
    weir_group_policy policy;
    int rc;
    _Atomic int asked;
    weir_executor *ex; /* it submits there before it answers, if it is set */
};

static int answers(weir_group_policy *out, const char *key, void *arg)
{
    struct answer *answer = arg;

    CHECK(strcmp(out->key, key) == 0 && !out->limit && !out->domain);
    if (strcmp(key, "inner") == 0)
        return -1;
    answer->asked++;
    if (answer->ex)
        CHECK(weir_submit_key(NULL, answer->ex, "inner", work, NULL, NULL) == 0);
    *out = answer->policy;
    return answer->rc;
}

static weir_executor *executor_that_asks(struct answer *answer)
{
    return new_executor(WEIR_POLICY(.workers = 2, .group_limit = 5, .group_inflight_max = 6,
                                    .group_queue_max = 7, .group_for = answers,
                                    .group_arg = answer));
}

SIM_TEST(test_a_group_can_be_asked_for_its_limits, 50)
{
    struct answer answer = { .policy = { .limit = 2, .inflight_max = 3, .queue_max = 4 } };
    weir_executor *ex = executor_that_asks(&answer);
    weir_group_stats stats;

    check_done(submit(ex, "g", NULL));
    check_done(submit(ex, "g", NULL));
    stats = stats_of(ex, "g");
    CHECK(stats.limit == 2 && stats.inflight_max == 3 && stats.queue_max == 4);
    CHECK_EQ(stats.run_on, WEIR_WORKERS);
    CHECK_EQ(answer.asked, 1);
    weir_executor_free(ex);
}

SIM_TEST(test_a_field_left_open_has_its_default, 50)
{
    struct answer answer = { .policy = { .run_on = WEIR_THREADS } };
    weir_executor *ex = executor_that_asks(&answer);
    weir_group_stats stats;

    check_done(submit(ex, "g", NULL));
    stats = stats_of(ex, "g");
    CHECK(stats.limit == 5 && stats.inflight_max == 6 && stats.queue_max == 7);
    CHECK_EQ(stats.run_on, WEIR_THREADS);
    weir_executor_free(ex);
}

SIM_TEST(test_without_an_opinion_nothing_of_the_answer_counts, 50)
{
    struct answer answer = { .policy = { .limit = 2,
                                         .inflight_max = 3,
                                         .queue_max = 4,
                                         .run_on = WEIR_THREADS,
                                         .deadlines.run_ms = 1,
                                         .pace = { .starts = 1, .period_ns = SECOND * MS } },
                             .rc = -EIO };
    weir_executor *ex = executor_that_asks(&answer);
    struct body body = { .ms = 10 };
    weir_task *task[2] = { submit(ex, "g", &body), submit(ex, "g", &body) };
    weir_group_stats stats;

    for (int i = 0; i < 2; i++)
        check_done_at(task[i], 0, 10);
    stats = stats_of(ex, "g");
    CHECK(stats.limit == 5 && stats.inflight_max == 6 && stats.queue_max == 7);
    CHECK_EQ(stats.run_on, WEIR_WORKERS);
    weir_executor_free(ex);
}

SIM_TEST(test_a_group_can_be_asked_for_its_pace_and_deadlines, 100)
{
    struct answer answer = { .policy = { .pace = { .starts = 1, .period_ns = 10 * MS, .burst = 2 },
                                         .deadlines.run_ms = 25 } };
    weir_executor *ex = executor_that_asks(&answer);
    struct body quick = { .ms = 5 }, slow = { .ms = 100 };
    weir_task *task[4];
    weir_result result;

    for (int i = 0; i < 4; i++)
        task[i] = submit(ex, "g", i == 3 ? &slow : &quick);
    check_done_at(task[0], 0, 5);
    check_done_at(task[1], 0, 5);
    check_done_at(task[2], 10, 15);
    result = result_of(task[3]);
    CHECK_EQ(result.outcome, WEIR_TIMED_OUT);
    CHECK_EQ(result.ended_at, at(45));
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0); /* its body returns a moment later */
    check_books(ex);
    weir_executor_free(ex);
}

/* A handle leads to the next generation, which has a deadline, the first in this executor. */
SIM_TEST(test_a_deadline_that_comes_with_a_new_generation_holds_at_once, 100)
{
    struct answer answer = { .policy = { .limit = 1 } };
    weir_executor *ex = executor_that_asks(&answer);
    weir_group *group = group_of(ex, "g");
    struct body slow = { .ms = 100 };
    weir_task *task;
    weir_result result;

    CHECK(weir_group_evict(ex, "g", 0) == 0);
    answer.policy.deadlines.total_ms = 20;
    CHECK(weir_submit(&task, group, work, &slow, NULL) == 0);
    result = result_of(task);
    CHECK_EQ(result.outcome, WEIR_TIMED_OUT);
    CHECK_EQ(result.ended_at, at(20));
    weir_executor_free(ex);
}

static int heavy_is_heavy(weir_group_policy *out, const char *key, void *arg)
{
    (void)arg;
    out->weight = strcmp(key, "heavy") == 0 ? 3 : 0;
    return 0;
}

SIM_TEST(test_a_group_can_be_asked_for_its_weight, 50)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 1, .inflight_max = 1, .group_for = heavy_is_heavy));
    _Atomic int began = 0;
    struct body gated = { .ms = 5 }, body[16];
    weir_task *gate = submit(ex, "gate", &gated);
    int heavy = 0;

    sleep_until(1);
    for (int i = 0; i < 16; i++) {
        body[i] = (struct body){ .began = &began, .ms = 2 };
        CHECK(weir_submit_key(NULL, ex, i % 2 ? "heavy" : "light", work, &body[i], NULL) == 0);
    }
    check_done(gate);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    for (int i = 0; i < 16; i++)
        heavy += i % 2 && body[i].order <= 8;
    CHECK_EQ(heavy, 6);
    weir_executor_free(ex);
}

/* ---- functions that are asked ---------------------------------------------------------------------------- */

static int nine(int64_t *limit, const char *key, void *arg)
{
    (void)key;
    ++*(_Atomic int *)arg;
    *limit = 9;
    return 0;
}

SIM_TEST(test_names_go_before_group_for_and_that_before_limit_for, 50)
{
    weir_group_policy groups[] = { { .key = "named", .limit = 3 },
                                   { .key = "open", .inflight_max = 4 } };
    struct answer answer = { .policy = { .limit = 2 } };
    _Atomic int asked = 0;
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .groups = groups, .group_count = 2,
                                                 .group_for = answers, .group_arg = &answer,
                                                 .limit_for = nine, .limit_arg = (void *)&asked));

    CHECK(group_of(ex, "named") && group_of(ex, "open"));
    CHECK_EQ(answer.asked, 0); /* they are among the groups */
    CHECK_EQ(asked, 1);
    CHECK_EQ(stats_of(ex, "named").limit, 3);
    CHECK_EQ(stats_of(ex, "open").limit, 9);
    CHECK(group_of(ex, "asked"));
    CHECK_EQ(answer.asked, 1);
    CHECK_EQ(asked, 1);
    CHECK_EQ(stats_of(ex, "asked").limit, 2);
    answer.policy.limit = 0;
    CHECK(group_of(ex, "asked twice"));
    CHECK_EQ(answer.asked, 2);
    CHECK_EQ(asked, 2);
    CHECK_EQ(stats_of(ex, "asked twice").limit, 9);
    weir_executor_free(ex);
}

static int says_default(const char **domain, const char *key, void *arg)
{
    (void)key;
    ++*(_Atomic int *)arg;
    *domain = NULL;
    return 0;
}

SIM_TEST(test_a_group_can_be_asked_for_its_domain, 50)
{
    weir_domain_policy domains[] = { { .name = "A", .slots = 1 } };
    struct answer answer = { .policy = { .domain = "A" } };
    _Atomic int asked = 0;
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 1, .slots = 2, .domains = domains, .domain_count = 1,
                                 .group_for = answers, .group_arg = &answer,
                                 .domain_for = says_default, .domain_arg = (void *)&asked));
    weir_group *group;

    CHECK(strcmp(weir_group_domain(group_of(ex, "a")), "A") == 0);
    CHECK_EQ(asked, 0);
    answer.policy.domain = NULL;
    CHECK(strcmp(weir_group_domain(group_of(ex, "b")), WEIR_DEFAULT_DOMAIN) == 0);
    CHECK_EQ(asked, 1);
    answer.policy.domain = "there is no such domain";
    CHECK(weir_group_get(&group, ex, "c") == WEIR_ENODOMAIN);
    CHECK_EQ(asked, 1);
    weir_executor_free(ex);
}

SIM_TEST(test_a_domain_where_there_are_none_is_not_found, 50)
{
    struct answer answer = { .policy = { .domain = "A" } };
    weir_executor *ex = executor_that_asks(&answer);
    weir_group *group;

    CHECK(weir_group_get(&group, ex, "g") == WEIR_ENODOMAIN);
    CHECK_EQ(stats_all(ex).groups, 0);
    answer.policy.domain = WEIR_DEFAULT_DOMAIN; /* that one is always there */
    check_done(submit(ex, "g", NULL));
    weir_executor_free(ex);
}

static void submit_g(void *arg)
{
    CHECK(weir_submit_key(NULL, arg, "g", work, NULL, NULL) == 0);
}

SIM_TEST(test_each_generation_is_asked_for_once_and_without_a_lock, 200)
{
    struct answer answer = { .policy = { .limit = 1, .pace.starts = 1000 } };
    weir_executor *ex = executor_that_asks(&answer);
    int64_t thread[2];

    answer.ex = ex;
    for (int i = 0; i < 2; i++)
        thread[i] = weir_sim_thread(submit_g, ex, "user");
    for (int i = 0; i < 2; i++)
        weir_sim_join(thread[i]);
    CHECK_EQ(answer.asked, 1);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK(weir_group_evict(ex, "g", WEIR_CARRY_OVER) == 0);
    CHECK_EQ(answer.asked, 2);
    submit_g(ex);
    CHECK_EQ(answer.asked, 2);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(stats_all(ex).succeeded, 5);
    weir_executor_free(ex);
}

/* ---- answers that make no sense ---------------------------------------------------------------------------- */

SIM_TEST(test_an_answer_that_makes_no_sense_is_brought_into_range, 5)
{
    static const int64_t low[] = { -1, -1000000, INT64_MIN + 1 };
    static const int64_t high[] = { INT64_MAX, INT64_MAX - 1, (int64_t)UINT32_MAX };
    weir_group_stats stats;

    for (int i = 0; i < 3; i++) {
        struct answer answer = { .policy = { .limit = low[i],
                                             .inflight_max = low[i],
                                             .queue_max = low[i],
                                             .weight = low[i],
                                             .run_on = (weir_carrier)77,
                                             .pace = { .starts = low[i], .burst = low[i] } } };
        weir_executor *ex = executor_that_asks(&answer);
        weir_task *task = submit(ex, "g", NULL);

        check_done(task);
        stats = stats_of(ex, "g");
        CHECK(stats.limit == 1 && stats.inflight_max == 1 && stats.queue_max == WEIR_NO_QUEUE);
        CHECK_EQ(stats.run_on, WEIR_WORKERS);
        weir_executor_free(ex);
    }
    for (int i = 0; i < 3; i++) {
        struct answer answer = {
            .policy = { .limit = high[i],
                        .inflight_max = high[i],
                        .queue_max = high[i],
                        .weight = high[i],
                        .deadlines = { .wait_ms = high[i], .run_ms = high[i], .total_ms = high[i] },
                        .pace = { .starts = high[i], .period_ns = high[i], .burst = high[i] } }
        };
        weir_executor *ex = executor_that_asks(&answer);

        for (int n = 0; n < 3; n++)
            check_done(submit(ex, "g", NULL));
        stats = stats_of(ex, "g");
        CHECK(stats.limit == WEIR_NO_LIMIT && stats.inflight_max == WEIR_NO_LIMIT &&
              stats.queue_max == WEIR_NO_LIMIT);
        weir_executor_free(ex);
    }
}

/* One start, a second: what is below the least is the least, what is missing the default. */
SIM_TEST(test_a_negative_pace_is_the_slowest_there_is, 20)
{
    struct answer answer = { .policy = { .limit = 5, .pace = { .starts = -7, .burst = -7 } } };
    weir_executor *ex = executor_that_asks(&answer);
    weir_task *task[2] = { submit(ex, "g", NULL), submit(ex, "g", NULL) };

    check_done_at(task[0], 0, 0);
    check_done_at(task[1], SECOND, SECOND);
    weir_executor_free(ex);
}

SIM_TEST(test_a_negative_deadline_is_the_shortest_there_is, 20)
{
    struct answer answer = { .policy = { .deadlines.run_ms = INT64_MIN } };
    weir_executor *ex = executor_that_asks(&answer);
    struct body slow = { .ms = 100 };
    weir_result result = result_of(submit(ex, "g", &slow));

    CHECK_EQ(result.outcome, WEIR_TIMED_OUT);
    CHECK_EQ(result.ended_at, at(1));
    weir_executor_free(ex);
}

/* A pace without starts is none. */
SIM_TEST(test_a_burst_alone_is_no_pace, 20)
{
    struct answer answer = { .policy = { .limit = 5,
                                         .pace = { .period_ns = 5 * MS, .burst = 2 } } };
    weir_executor *ex = executor_that_asks(&answer);
    weir_task *task[4];

    for (int i = 0; i < 4; i++)
        task[i] = submit(ex, "g", NULL);
    for (int i = 0; i < 4; i++)
        check_done_at(task[i], 0, 0);
    weir_executor_free(ex);
}

/* ---- forgotten, and not too early ----------------------------------------------------------------------------- */

static weir_executor *forgetful(struct answer *answer)
{
    return new_executor(WEIR_POLICY(.workers = 2, .group_limit = 5, .idle_evict_ms = 10,
                                    .group_for = answer ? answers : NULL, .group_arg = answer));
}

/* A burst of three, one a second: after three starts it is whole again in three seconds. */
SIM_TEST(test_a_paced_group_is_forgotten_when_its_burst_is_whole_again, 50)
{
    struct answer answer = { .policy = { .pace = { .starts = 1, .burst = 3 } } };
    weir_executor *ex = forgetful(&answer);

    for (int i = 0; i < 3; i++)
        check_done_at(submit(ex, "g", NULL), 0, 0);
    sleep_until(SECOND / 2);
    CHECK_EQ(stats_all(ex).groups, 1);
    check_done_at(submit(ex, "g", NULL), SECOND, SECOND); /* no burst that it has not earned */
    sleep_until(4 * SECOND - 1);
    CHECK_EQ(stats_all(ex).groups, 1);
    CHECK_EQ(answer.asked, 1);
    sleep_until(4 * SECOND + 20);
    CHECK_EQ(stats_all(ex).groups, 0);
    for (int i = 0; i < 3; i++)
        check_done_at(submit(ex, "g", NULL), 4 * SECOND + 20, 4 * SECOND + 20);
    check_done_at(submit(ex, "g", NULL), 5 * SECOND + 20, 5 * SECOND + 20);
    CHECK_EQ(answer.asked, 2);
    weir_executor_free(ex);
}

static int cools(void **value, void *arg)
{
    (void)value;
    return weir_task_cool_down(weir_task_self(), *(weir_time *)arg);
}

SIM_TEST(test_a_task_can_cool_its_group_down_which_is_forgotten_after_that, 100)
{
    weir_executor *ex = forgetful(NULL);
    weir_time until = at(500);
    weir_task *task;

    CHECK(weir_submit_key(&task, ex, "g", cools, &until, NULL) == 0);
    check_done(task);
    sleep_until(100);
    CHECK_EQ(stats_all(ex).groups, 1);
    task = submit(ex, "g", NULL);
    sleep_until(200);
    CHECK_EQ(why_of(task), WEIR_REASON_COOLING_DOWN);
    check_done_at(task, 500, 500);
    CHECK(weir_submit_key(&task, ex, "g", cools, &until, NULL) == 0); /* in the past */
    check_done(task);
    sleep_until(520);
    CHECK_EQ(stats_all(ex).groups, 0);
    CHECK(weir_task_cool_down(NULL, until) == WEIR_EINVAL);
    weir_executor_free(ex);
}

/* A task of an evicted generation speaks for the present one. */
SIM_TEST(test_a_task_cools_the_present_generation_down, 100)
{
    weir_executor *ex = forgetful(NULL);
    struct body body = { .until_ms = 50 };
    weir_task *old = submit(ex, "g", &body), *task;

    sleep_until(1);
    CHECK(weir_group_evict(ex, "g", 0) == 0);
    CHECK(weir_task_cool_down(old, at(300)) == 0);
    task = submit(ex, "g", NULL);
    check_done_at(old, 0, 50);
    check_done_at(task, 300, 300);
    weir_executor_free(ex);
}

/* A handle of an evicted group leads to a new one: what is asked of it there is not forgotten either. */
SIM_TEST(test_settings_made_by_a_handle_are_not_forgotten, 100)
{
    weir_executor *ex = forgetful(NULL);
    weir_group *paused = group_of(ex, "paused"), *cooled = group_of(ex, "cooled"),
               *resized = group_of(ex, "resized");
    static const char *const keys[] = { "paused", "cooled", "resized" };
    weir_task *task;

    for (int i = 0; i < 3; i++)
        CHECK(weir_group_evict(ex, keys[i], 0) == 0);
    weir_group_pause(paused);
    CHECK(weir_group_cool_down(cooled, at(300)) == 0);
    CHECK(weir_group_resize(resized, 4, 0, 0) == 0);
    sleep_until(100);
    CHECK(stats_of(ex, "paused").paused);
    CHECK_EQ(stats_of(ex, "resized").limit, 4);
    task = submit(ex, "cooled", NULL);
    check_done_at(task, 300, 300);
    sleep_until(400);
    CHECK_EQ(stats_all(ex).groups, 3);
    weir_executor_free(ex);
}

/* ---- without memory --------------------------------------------------------------------------------------------- */

static void paced_with_failures(void *arg)
{
    struct answer answer = { .policy = { .limit = 1, .pace = { .starts = 1, .burst = 1 } } };
    weir_executor *ex = NULL;
    weir_task *task[3] = { 0 };
    int rc, last = 0, tasks = 0;

    rc = weir_executor_new(
        &ex, WEIR_POLICY(.workers = 1, .group_for = answers, .group_arg = &answer), NULL);
    CHECK(rc == 0 || rc == WEIR_ENOMEM);
    if (rc)
        return;
    for (int i = 0; i < 3; i++) {
        rc = weir_submit_key(&task[i], ex, "g", work, NULL, NULL);
        CHECK(rc == WEIR_ENOMEM ? !task[i] : rc == 0 && task[i]);
    }
    for (int i = 0; i < 3; i++) /* a pace is kept, or nothing starts: never without */
        if (task[i]) {
            last = SECOND * tasks++;
            check_done_at(task[i], last, last);
        }
    weir_executor_free(ex);
    ++*(int *)arg;
}

static void test_without_memory_for_its_pace_a_group_is_refused(void **state)
{
    weir_sim_report report = WEIR_SIM_REPORT;
    uint64_t allocs;
    int ran = 0;

    (void)state;
    assert_int_equal(weir_sim_run(&report, WEIR_SIM_OPTIONS(.seed = 1), paced_with_failures, &ran),
                     0);
    allocs = report.allocs;
    for (uint64_t n = 1; n <= allocs; n++)
        if (weir_sim_run(&report, WEIR_SIM_OPTIONS(.seed = 1, .fail_alloc = n), paced_with_failures,
                         &ran))
            fail_msg("failure %d of %d: %s", (int)n, (int)allocs, report.message);
    assert_true(ran > 3);
}

/* One task runs, another waits; then the group is evicted, and a third task comes. */
static void carried_over_with_failures(void *refused_arg)
{
    struct answer answer = {
        .policy = { .limit = 1, .pace = { .starts = 1000, .burst = 1 }, .deadlines.run_ms = 500 }
    };
    struct body until_50 = { .until_ms = 50 };
    weir_executor *ex = NULL;
    weir_task *task[3] = { 0 };
    int rc;

    if (weir_executor_new(
            &ex, WEIR_POLICY(.workers = 2, .group_for = answers, .group_arg = &answer), NULL))
        return;
    weir_submit_key(&task[0], ex, "g", work, &until_50, NULL);
    weir_submit_key(&task[1], ex, "g", work, NULL, NULL);
    sleep_until(5);
    rc = task[0] && task[1] ? weir_group_evict(ex, "g", WEIR_CARRY_OVER) : 1;
    CHECK(rc == 0 || rc == 1 || rc == WEIR_ENOMEM);
    *(int *)refused_arg += rc == WEIR_ENOMEM;
    if (rc <= 0)
        CHECK(weir_submit_key(&task[2], ex, "g", work, NULL, NULL) == 0 || !rc);
    if (task[2]) /* the limit holds over both generations; in the old one another comes first */
        check_done_at(task[2], rc ? 51 : 50, rc ? 51 : 50);
    if (rc == 0)
        check_rejected(task[1], WEIR_REASON_EVICTED);
    else if (rc == WEIR_ENOMEM)
        check_done_at(task[1], 50, 50);
    else
        weir_task_unref(task[1]);
    weir_task_unref(task[0]);
    weir_executor_free(ex);
}

static void test_without_memory_for_the_next_generation_an_eviction_does_nothing(void **state)
{
    weir_sim_report report = WEIR_SIM_REPORT;
    uint64_t allocs;
    int refused = 0;

    (void)state;
    assert_int_equal(
        weir_sim_run(&report, WEIR_SIM_OPTIONS(.seed = 1), carried_over_with_failures, &refused),
        0);
    assert_int_equal(refused, 0);
    allocs = report.allocs;
    for (uint64_t n = 1; n <= allocs; n++)
        if (weir_sim_run(&report, WEIR_SIM_OPTIONS(.seed = 1, .fail_alloc = n),
                         carried_over_with_failures, &refused))
            fail_msg("failure %d of %d: %s", (int)n, (int)allocs, report.message);
    assert_int_equal(refused, 3); /* the generation, its deadlines, its pace */
}

SIM_TEST(test_without_a_domain_for_the_next_generation_an_eviction_does_nothing, 50)
{
    struct answer answer = { .policy = { .limit = 1 } };
    weir_executor *ex = executor_that_asks(&answer);
    struct body until_50 = { .until_ms = 50 };
    weir_task *runs = submit(ex, "g", &until_50), *waits = submit(ex, "g", NULL);

    sleep_until(5);
    answer.policy.domain = "there is no such domain";
    CHECK_EQ(weir_group_evict(ex, "g", WEIR_CARRY_OVER), WEIR_ENODOMAIN);
    CHECK_EQ(weir_group_evict(ex, "unknown", WEIR_CARRY_OVER), 0);
    check_done_at(waits, 50, 50);
    check_done(runs);
    weir_executor_free(ex);
}

/* Whatever answers for the policy may take long. Meanwhile the key is what it was. */
static int answers_late(int64_t *limit, const char *key, void *asked_arg)
{
    (void)key;
    if (++*(int *)asked_arg == 2)
        sleep_until(20);
    *limit = 1;
    return 0;
}

static void evict_g(void *ex_arg)
{
    CHECK(weir_group_evict(ex_arg, "g", WEIR_CARRY_OVER) == 0);
    CHECK_EQ(weir_now(), at(20));
}

SIM_TEST(test_a_group_is_in_use_until_its_next_generation_has_its_limits, 50)
{
    int asked = 0;
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .limit_for = answers_late, .limit_arg = &asked));
    struct body until_50 = { .until_ms = 50 };
    weir_task *first = submit(ex, "g", NULL), *runs, *waits, *next;
    int64_t thread;

    check_done(first);
    thread = weir_sim_thread(evict_g, ex, "evicts");
    sleep_until(10);
    runs = submit(ex, "g", &until_50);
    waits = submit(ex, "g", NULL);
    weir_sim_join(thread);
    next = submit(ex, "g", NULL);
    check_rejected(waits, WEIR_REASON_EVICTED);
    check_done_at(next, 50, 50);
    check_done_at(runs, 10, 50);
    CHECK_EQ(asked, 2);
    weir_executor_free(ex);
}

SIM_TEST(test_limits_that_were_asked_for_are_used_though_the_generation_before_is_gone, 50)
{
    int asked = 0;
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .limit_for = answers_late, .limit_arg = &asked));
    int64_t thread;

    check_done(submit(ex, "g", NULL));
    thread = weir_sim_thread(evict_g, ex, "evicts");
    sleep_until(10);
    CHECK(weir_group_evict(ex, "g", 0) == 0);
    weir_sim_join(thread);
    check_done(submit(ex, "g", NULL));
    CHECK_EQ(asked, 2);
    weir_executor_free(ex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_memory_for_the_next_generation_an_eviction_does_nothing),
        cmocka_unit_test(test_without_a_domain_for_the_next_generation_an_eviction_does_nothing),
        cmocka_unit_test(test_a_group_is_in_use_until_its_next_generation_has_its_limits),
        cmocka_unit_test(
            test_limits_that_were_asked_for_are_used_though_the_generation_before_is_gone),
        cmocka_unit_test(test_a_policy_can_pace_a_group),
        cmocka_unit_test(test_a_pace_is_per_second_unless_it_says_otherwise),
        cmocka_unit_test(test_a_pace_that_makes_no_sense_is_refused_by_name_and_value),
        cmocka_unit_test(test_a_group_can_be_asked_for_its_limits),
        cmocka_unit_test(test_a_field_left_open_has_its_default),
        cmocka_unit_test(test_replacements_max_bounds_how_many_blocking_bodies_are_replaced),
        cmocka_unit_test(test_bodies_have_the_stack_that_the_policy_says),
        cmocka_unit_test(test_a_value_out_of_range_is_refused_with_the_range),
        cmocka_unit_test(test_an_executor_that_cannot_be_had_always_says_why),
        cmocka_unit_test(test_whatever_fails_the_message_is_filled),
        cmocka_unit_test(test_without_an_opinion_nothing_of_the_answer_counts),
        cmocka_unit_test(test_a_group_can_be_asked_for_its_pace_and_deadlines),
        cmocka_unit_test(test_a_deadline_that_comes_with_a_new_generation_holds_at_once),
        cmocka_unit_test(test_a_group_can_be_asked_for_its_weight),
        cmocka_unit_test(test_names_go_before_group_for_and_that_before_limit_for),
        cmocka_unit_test(test_a_group_can_be_asked_for_its_domain),
        cmocka_unit_test(test_a_domain_where_there_are_none_is_not_found),
        cmocka_unit_test(test_each_generation_is_asked_for_once_and_without_a_lock),
        cmocka_unit_test(test_an_answer_that_makes_no_sense_is_brought_into_range),
        cmocka_unit_test(test_a_negative_pace_is_the_slowest_there_is),
        cmocka_unit_test(test_a_negative_deadline_is_the_shortest_there_is),
        cmocka_unit_test(test_a_burst_alone_is_no_pace),
        cmocka_unit_test(test_a_paced_group_is_forgotten_when_its_burst_is_whole_again),
        cmocka_unit_test(test_a_task_can_cool_its_group_down_which_is_forgotten_after_that),
        cmocka_unit_test(test_a_task_cools_the_present_generation_down),
        cmocka_unit_test(test_settings_made_by_a_handle_are_not_forgotten),
        cmocka_unit_test(test_without_memory_for_its_pace_a_group_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
