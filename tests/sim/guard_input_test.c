/* Guards and bad input (K-32, K-40, L-21, B-14), retries and their budget, adaptive limits, sentences, failing memory.
 * SPDX-License-Identifier: MIT */
#include "support/guard_support.h"

#define S (1000 * MS)

#define CHECK_SAYS(message, sentence)                                              \
    do {                                                                           \
        if (strcmp((message).text, sentence) != 0)                                 \
            weir_sim_fail("\"%s\" does not say \"%s\"", (message).text, sentence); \
    } while (0)

/* Refused, with a sentence that names the setting. */
static void bad(const char *what, const weir_guard_options *opt)
{
    weir_guard *g = NULL;
    weir_message why;

    CHECK_EQ(weir_guard_new(&g, store, "bad", opt, &why), WEIR_EINVAL);
    if (!strstr(why.text, what))
        weir_sim_fail("\"%s\" does not say \"%s\"", why.text, what);
    CHECK(g == NULL);
}

GUARD_TEST(test_settings_out_of_range_are_refused_and_named)
{
    int many[40] = { 0 };

    bad("limit is -1: use 1 to 2147483647, WEIR_NO_CALLS, or 0 for the default",
        WEIR_BULKHEAD(.limit = -1));
    bad("limit is 2147483648", WEIR_BULKHEAD(.limit = WEIR_PERMITS_MAX + 1));
    bad("limit is 9223372036854775807", WEIR_RATE(.limit = INT64_MAX));
    bad("wait_ns is -5", WEIR_BULKHEAD(.wait_ns = -5));
    bad("waiters_max is -7", WEIR_BULKHEAD(.waiters_max = -7));
    bad("limit is missing", WEIR_CONCURRENCY());
    bad("limit is missing", WEIR_FREQUENCY(.period_ns = 1));
    bad("one holder", WEIR_MUTEX(.limit = 2));
    bad("only a rate with .mode = WEIR_SMOOTH", WEIR_RATE(.burst = 5));
    bad("period_ns is -1", WEIR_RATE(.period_ns = -1));
    bad("WEIR_NO_CALLS", WEIR_RATE(.limit = WEIR_NO_CALLS));
    bad("burst is -1", WEIR_RATE(.mode = WEIR_SMOOTH, .burst = -1));
    bad("burst is too large", WEIR_RATE(.mode = WEIR_SMOOTH, .limit = 1, .period_ns = INT64_MAX));
    bad("initial_ns is -1", WEIR_RATE(.mode = WEIR_SMOOTH, .initial_ns = -1));
    bad("limit is 1000001", WEIR_FREQUENCY(.mode = WEIR_EXACT, .limit = 1000001));
    bad("mode is 2", WEIR_RATE(.mode = WEIR_FIXED));
    bad("mode is 77", WEIR_BREAKER(.mode = (weir_guard_mode)77));
    bad("kind is 99", WEIR_GUARD_OPTIONS(.kind = (weir_guard_kind)99));
    bad("failure_percent is -1", WEIR_BREAKER(.failure_percent = -1));
    bad("failure_percent is 100.5", WEIR_BREAKER(.failure_percent = 100.5));
    bad("failure_percent is nan", WEIR_BREAKER(.failure_percent = __builtin_nan("")));
    bad("slow_percent is 101", WEIR_BREAKER(.slow_percent = 101));
    bad("slow_ns is -1", WEIR_BREAKER(.slow_ns = -1));
    bad("window is -1", WEIR_BREAKER(.window = -1));
    bad("window is 86401", WEIR_BREAKER(.mode = WEIR_BY_TIME, .window = 86401));
    bad("minimum is -1", WEIR_BREAKER(.minimum = -1));
    bad("probes is -1", WEIR_BREAKER(.probes = -1));
    bad("open_ns is 999999", WEIR_BREAKER(.open_ns = 999999));
    bad("open_growth is 0.5", WEIR_BREAKER(.open_growth = 0.5));
    bad("open_jitter is 1.5", WEIR_BREAKER(.open_jitter = 1.5));
    bad("open_max_ns", WEIR_BREAKER(.open_ns = 5 * S, .open_max_ns = 4 * S));
    bad("half_open_ns is -1", WEIR_BREAKER(.half_open_ns = -1));
    bad("half_open_then", WEIR_BREAKER(.half_open_then = WEIR_DISABLED));
    bad("initial is 3", WEIR_BREAKER(.initial = WEIR_HALF_OPEN));
    bad("open_ns and open_for",
        WEIR_BREAKER(.open_ns = S,
                     .open_for = (void *)test_settings_out_of_range_are_refused_and_named_body));
    bad("more than 32", WEIR_BREAKER(.failures = many, .failure_count = 33));
    bad("NULL", WEIR_BREAKER(.failure_count = 3));
    bad("other_errors is 9", WEIR_BREAKER(.other_errors = (weir_call_result)9));
    bad("other_errors is -1", WEIR_BREAKER(.other_errors = (weir_call_result)-1));
    bad("limit_min is -1", WEIR_ADAPTIVE(.limit_min = -1));
    bad("limit_max is 5", WEIR_ADAPTIVE(.limit_min = 6, .limit_max = 5));
    bad("latency_ns is -1", WEIR_ADAPTIVE(.latency_ns = -1));
    bad("budget_percent is 101", WEIR_BUDGET(.budget_percent = 101));
}

/* Also those that have no effect on a guard of this kind: such a program is mistaken about something. */
GUARD_TEST(test_settings_of_another_kind_have_to_be_in_range_and_change_nothing)
{
    weir_guard *g = guard_of("g", WEIR_BULKHEAD(.limit = 3, .slow_ns = 1, .period_ns = S,
                                                .window = 5, .burst = 2, .budget_percent = 50));
    weir_permit p = WEIR_PERMIT;
    weir_message why;

    bad("slow_ns is -4: use 1 to 9223372036854775807", WEIR_BULKHEAD(.slow_ns = -4));
    bad("limit is -2", WEIR_BREAKER(.limit = -2));
    bad("period_ns is -1", WEIR_CONCURRENCY(.limit = 1, .period_ns = -1));
    bad("burst is -1", WEIR_FREQUENCY(.limit = 1, .burst = -1));
    bad("burst is -2", WEIR_RATE(.burst = -2));
    bad("initial_ns is -2", WEIR_RATE(.initial_ns = -2));
    bad("failure_percent is -50", WEIR_RATE(.failure_percent = -50));
    bad("failure_percent is nan", WEIR_MUTEX(.failure_percent = __builtin_nan("")));
    bad("half_open_then is 9", WEIR_MUTEX(.half_open_then = (weir_breaker_state)9));
    bad("initial is -1", WEIR_MUTEX(.initial = (weir_breaker_state)-1));
    bad("limit_max is -4", WEIR_BULKHEAD(.limit_max = -4));
    bad("latency_ns is -1", WEIR_BUDGET(.latency_ns = -1));
    bad("budget_percent is -4", WEIR_ADAPTIVE(.budget_percent = -4));
    bad("window is -1", WEIR_ADAPTIVE(.window = -1));
    CHECK_EQ(weir_guard_change(g, WEIR_BULKHEAD(.limit = 2, .open_ns = -S), NULL, &why),
             WEIR_EINVAL);
    CHECK(strstr(why.text, "open_ns is -1000000000"));
    CHECK_EQ(figures(g).limit, 3);
    CHECK_EQ(weir_guard_enter_n(&p, g, 3, 0), 0);
    CHECK_EQ(call_once(g, 0), WEIR_EFULL);
    CHECK_EQ(weir_guard_leave(&p, 0), 0);
    weir_guard_unref(g);
}

GUARD_TEST(test_settings_at_the_edge_work)
{
    weir_guard *r =
        guard_of("r", WEIR_RATE(.limit = WEIR_PERMITS_MAX, .period_ns = 1, .wait_ns = INT64_MAX));
    weir_guard *l = guard_of("l", WEIR_RATE(.limit = 1, .period_ns = INT64_MAX));
    weir_guard *f =
        guard_of("f", WEIR_FREQUENCY(.limit = WEIR_PERMITS_MAX, .period_ns = INT64_MAX));
    weir_guard *b = guard_of("b", WEIR_BREAKER(.window = 1, .minimum = 50, .open_ns = INT64_MAX,
                                               .half_open_ns = INT64_MAX, .slow_ns = INT64_MAX));
    weir_permit p = WEIR_PERMIT;

    CHECK_EQ(weir_guard_enter_n(&p, r, WEIR_PERMITS_MAX, 0), 0);
    p = WEIR_PERMIT;
    CHECK_EQ(weir_guard_enter(&p, r, WEIR_FOREVER), 0);
    CHECK_EQ(weir_now(), WEIR_SIM_START + 1);
    CHECK_EQ(call_once(l, 0), 0);
    p = WEIR_PERMIT;
    CHECK_EQ(weir_guard_enter(&p, l, 0), WEIR_ETOOFAST);
    CHECK(p.retry_at > weir_now());
    p = WEIR_PERMIT;
    CHECK_EQ(weir_guard_enter_n(&p, f, WEIR_PERMITS_MAX, 0), 0);
    CHECK_EQ(call_once(f, 0), WEIR_ETOOFAST);
    calls(b, "F"); /* the minimum is cut to the window */
    CHECK_EQ(figures(b).state, WEIR_OPEN);
    p = WEIR_PERMIT;
    CHECK_EQ(weir_guard_enter(&p, b, 0), WEIR_EBROKEN);
    CHECK_EQ(p.retry_at, WEIR_FOREVER);
    weir_guard_unref(r);
    weir_guard_unref(l);
    weir_guard_unref(f);
    weir_guard_unref(b);
}

GUARD_TEST(test_bad_arguments_are_refused)
{
    weir_guard *g = guard_of("g", WEIR_BULKHEAD(.limit = 3)), *out = NULL;
    weir_guard *b = guard_of("b", WEIR_BREAKER());
    weir_permit p = WEIR_PERMIT, foreign;
    weir_guard_stats small = { .size = 0 };
    char name[WEIR_KEY_MAX + 2];
    weir_message why;
    struct {
        weir_guard_options opt;
        int64_t newer;
    } newer = { .opt = { .size = sizeof(newer), .kind = WEIR_GUARD_BULKHEAD }, .newer = 1 };

    CHECK_EQ(weir_guard_new(NULL, store, "x", WEIR_BULKHEAD(), NULL), WEIR_EINVAL);
    CHECK_EQ(weir_guard_new(&out, store, NULL, WEIR_BULKHEAD(), NULL), WEIR_EINVAL);
    CHECK_EQ(weir_guard_new(&out, store, "", WEIR_BULKHEAD(), &why), WEIR_EINVAL);
    CHECK(strstr(why.text, "the name has no bytes"));
    memset(name, 'x', sizeof(name));
    name[WEIR_KEY_MAX + 1] = '\0';
    CHECK_EQ(weir_guard_new(&out, store, name, WEIR_BULKHEAD(), &why), WEIR_EINVAL);
    CHECK(strstr(why.text, "the name has too many bytes"));
    CHECK_EQ(weir_guard_new(&out, store, "x", &newer.opt, &why), WEIR_EVERSION);
    CHECK_EQ(weir_guard_new(&out, store, "x", NULL, &why), WEIR_ENOGUARD);
    CHECK_SAYS(why, "x: unknown guard");
    CHECK_EQ(weir_guard_enter(NULL, g, 0), WEIR_EINVAL);
    CHECK_EQ(weir_guard_enter(&p, NULL, 0), WEIR_EINVAL);
    CHECK_EQ(weir_guard_enter_n(&p, g, 0, 0), WEIR_EINVAL);
    CHECK_EQ(weir_guard_enter_n(&p, g, -1, 0), WEIR_EINVAL);
    CHECK_EQ(weir_guard_enter_n(&p, g, 4, WEIR_FOREVER),
             WEIR_EINVAL); /* it could never have that many */
    CHECK_EQ(weir_guard_enter_n(&p, g, INT64_MAX, 0), WEIR_EINVAL);
    CHECK_EQ(weir_guard_enter_n(&p, b, 2, 0), WEIR_EINVAL);
    CHECK_EQ(weir_guard_reserve(&p, g, 0, 0), WEIR_EINVAL);
    CHECK_EQ(weir_guard_drain(g), WEIR_EINVAL);
    CHECK_EQ(weir_guard_drain(NULL), WEIR_EINVAL);
    CHECK_EQ(weir_guard_reset(g), WEIR_EINVAL);
    CHECK_EQ(weir_guard_set_state(g, WEIR_OPEN, 0, (weir_breaker_state)0, NULL), WEIR_EINVAL);
    CHECK_EQ(weir_guard_set_state(g, WEIR_OPEN, 0, (weir_breaker_state)0, &why), WEIR_EINVAL);
    CHECK_SAYS(why, "g is not a breaker: it is a bulkhead");
    CHECK_EQ(weir_guard_set_state(NULL, WEIR_OPEN, 0, (weir_breaker_state)0, &why), WEIR_EINVAL);
    CHECK_SAYS(why, "the guard is NULL");
    CHECK_EQ(weir_guard_set_state(b, (weir_breaker_state)9, 0, (weir_breaker_state)0, &why),
             WEIR_EINVAL);
    CHECK_SAYS(why, "9 is not a state: use 1 to 6");
    CHECK_EQ(weir_guard_set_state(b, (weir_breaker_state)-1, 0, (weir_breaker_state)0, NULL),
             WEIR_EINVAL);
    CHECK_EQ(weir_guard_set_state(b, WEIR_OPEN, 0, (weir_breaker_state)7, &why), WEIR_EINVAL);
    CHECK_SAYS(why, "7 is not a state: use 1 to 6");
    CHECK_EQ(figures(b).state, WEIR_CLOSED);
    CHECK_EQ(weir_guard_change(NULL, WEIR_BULKHEAD(), NULL, NULL), WEIR_EINVAL);
    CHECK_EQ(weir_guard_change(g, NULL, NULL, NULL), WEIR_EINVAL);
    CHECK_EQ(weir_guard_change(g, WEIR_BULKHEAD(.limit = -3), NULL, &why), WEIR_EINVAL);
    CHECK_EQ(weir_guard_change(g, WEIR_MUTEX(), NULL, &why), WEIR_EINVAL);
    CHECK_EQ(weir_guard_change(b, WEIR_BREAKER(.window = 7), NULL, &why), WEIR_EINVAL);
    CHECK_EQ(figures(g).limit, 3);
    CHECK_EQ(weir_guard_stats_get(&small, g), WEIR_EINVAL);
    CHECK_EQ(weir_guard_stats_get(NULL, g), WEIR_EINVAL);
    CHECK_EQ(weir_guard_describe(NULL, g), WEIR_EINVAL);
    memset(&foreign, 0x5a, sizeof(foreign)); /* not a permit at all */
    CHECK_EQ(weir_guard_leave(&foreign, 0), WEIR_EINVAL);
    CHECK_EQ(weir_guard_release(&foreign), WEIR_EINVAL);
    CHECK_EQ(weir_permit_move(&p, &foreign), WEIR_EINVAL);
    CHECK_EQ(weir_permit_move(NULL, &p), WEIR_EALREADY);
    weir_guard_unref(NULL);
    weir_store_free(NULL);
    weir_permit_end(NULL);
    CHECK(strcmp(weir_guard_event_name((weir_guard_event_type)0), "?") == 0);
    CHECK(strcmp(weir_guard_event_name(WEIR_EVENT_DRAINED), "drained") == 0);
    CHECK(strcmp(weir_breaker_state_name((weir_breaker_state)0), "?") == 0);
    CHECK_EQ(weir_store_local(NULL), WEIR_EINVAL);
    weir_guard_unref(g);
    weir_guard_unref(b);
}

GUARD_TEST(test_guards_say_what_they_are)
{
    weir_guard *g = guard_of("db", WEIR_BULKHEAD(.limit = 2));
    weir_guard *r = guard_of("api", WEIR_RATE(.limit = 1, .period_ns = 2 * S));
    weir_guard *b = guard_of("mail", WEIR_BREAKER(.window = 4, .failure_percent = 50));
    weir_permit p = WEIR_PERMIT, q = WEIR_PERMIT;
    weir_message text;

    CHECK(weir_guard_enter_n(&p, g, 2, 0) == 0);
    CHECK(weir_guard_describe(&text, g) == 0);
    CHECK(strcmp(text.text, "bulkhead db: 2 of 2 permits in use") == 0);
    CHECK(weir_guard_enter(&q, r, 0) == 0);
    CHECK(weir_guard_describe(&text, r) == 0);
    CHECK(strcmp(text.text, "rate api: 0 of 1 calls left, again in 2000 ms") == 0);
    calls(b, "SFSF");
    CHECK(weir_guard_describe(&text, b) == 0);
    CHECK(strcmp(text.text,
                 "breaker mail: open, 50.0 % of 4 calls failed, 0.0 % were slow, again in 60 s") ==
          0);
    CHECK(weir_guard_leave(&p, 0) == 0);
    CHECK(strcmp(weir_guard_name(g), "db") == 0);
    weir_guard_unref(g);
    weir_guard_unref(r);
    weir_guard_unref(b);
}

/* ---- retries ------------------------------------------------------------------------------------ */

struct flaky {
    int fails, made, error;
    weir_time at[16];
};

static int flaky_call(void *arg)
{
    struct flaky *f = arg;

    f->at[f->made++] = weir_now();
    return f->made <= f->fails ? f->error : 42;
}

GUARD_TEST(test_retries_pause_longer_each_time)
{
    struct flaky f = { .fails = 3, .error = -EIO };
    uint32_t attempts;

    CHECK_EQ(
        weir_retry(&attempts, flaky_call, &f, WEIR_FOREVER,
                   WEIR_RETRY(.attempts = 5, .first_ns = 10 * MS, .growth = 3, .max_ns = 40 * MS)),
        42);
    CHECK_EQ(attempts, 4);
    CHECK_EQ(f.at[1] - f.at[0], 10 * MS);
    CHECK_EQ(f.at[2] - f.at[1], 30 * MS);
    CHECK_EQ(f.at[3] - f.at[2], 40 * MS);
    f = (struct flaky){ .fails = 9, .error = -EIO };
    CHECK_EQ(weir_retry(&attempts, flaky_call, &f, WEIR_FOREVER, NULL), -EIO);
    CHECK_EQ(attempts, 3);
    f = (struct flaky){ .fails = 9, .error = WEIR_EINVAL }; /* not worth another attempt */
    CHECK_EQ(weir_retry(&attempts, flaky_call, &f, WEIR_FOREVER, NULL), WEIR_EINVAL);
    CHECK_EQ(attempts, 1);
    f = (struct flaky){ .fails = 9, .error = -EIO };
    CHECK_EQ(
        weir_retry(&attempts, flaky_call, &f, weir_now() + 250 * MS, WEIR_RETRY(.attempts = 9)),
        -EIO);
    CHECK_EQ(attempts, 2); /* the third would come too late: 100 + 200 ms */
    CHECK_EQ(weir_retry(NULL, NULL, &f, 0, NULL), WEIR_EINVAL);
    CHECK_EQ(weir_retry(NULL, flaky_call, &f, 0, WEIR_RETRY(.growth = 0.5)), WEIR_EINVAL);
    CHECK_EQ(weir_retry(NULL, flaky_call, &f, 0, WEIR_RETRY(.jitter = 2)), WEIR_EINVAL);
    CHECK_EQ(weir_retry(NULL, flaky_call, &f, 0, WEIR_RETRY(.jitter = -0.5)), WEIR_EINVAL);
    CHECK_EQ(weir_retry(NULL, flaky_call, &f, 0, WEIR_RETRY(.first_ns = -1)), WEIR_EINVAL);
    CHECK_EQ(weir_retry(NULL, flaky_call, &f, 0, WEIR_RETRY(.max_ns = -1)), WEIR_EINVAL);
    CHECK_EQ(f.made, 2); /* bad options: not called */
    CHECK_EQ(weir_backoff(9, 0, WEIR_RETRY(.growth = 1, .first_ns = 500)), 500);
    CHECK_EQ(weir_backoff(99, 0, WEIR_RETRY(.first_ns = 500, .max_ns = 100000)), 100000);
    for (uint64_t luck = 0; luck < 100; luck++) {
        int64_t ns = weir_backoff(1, luck * 0x9e3779b97f4a7c15u,
                                  WEIR_RETRY(.first_ns = 1000, .jitter = 0.5));
        CHECK(ns >= 500 && ns <= 1000);
    }
    CHECK_EQ(weir_backoff(0, 0, NULL), WEIR_EINVAL);
    CHECK_EQ(weir_backoff(3, 0, NULL), 400 * MS);
    CHECK_EQ(weir_backoff(1000, 0, NULL), 30 * S);
}

GUARD_TEST(test_a_budget_bounds_the_storm)
{
    weir_guard *budget = guard_of("budget", WEIR_BUDGET(.limit = 5, .budget_percent = 10));
    uint32_t attempts, made = 0;

    for (int i = 0; i < 100; i++) { /* all fail, each would be tried three times */
        struct flaky f = { .fails = 9, .error = -EIO };
        CHECK_EQ(weir_retry(&attempts, flaky_call, &f, WEIR_FOREVER,
                            WEIR_RETRY(.first_ns = 1, .budget = budget)),
                 -EIO);
        made += attempts;
    }
    CHECK_EQ(made, 100 + 5 + 9); /* earned 10, of which the first fell on a full budget */
    CHECK_EQ(figures(budget).available, 0);
    weir_guard_unref(budget);
}

/* ---- adaptive ------------------------------------------------------------------------------------ */

GUARD_TEST(test_an_adaptive_limit_falls_when_calls_fail)
{
    weir_guard *g = guard_of("a", WEIR_ADAPTIVE(.mode = WEIR_AIMD, .limit = 10, .limit_min = 2));

    for (int i = 0; i < 40; i++)
        CHECK_EQ(call_once(g, -EIO), 0);
    CHECK_EQ(figures(g).limit, 2);
    CHECK_EQ(figures(g).failed, 40);
    CHECK(weir_guard_change(g, WEIR_ADAPTIVE(.limit_min = 4), NULL, NULL) == 0);
    CHECK_EQ(figures(g).limit, 4);
    weir_guard_unref(g);
}

/* ---- memory that fails --------------------------------------------------------------------------- */

static void makes_guards(UNUSED void *arg)
{
    weir_store *s = NULL;
    weir_guard *g;

    if (weir_store_local(&s))
        return;
    for (int i = 0; i < 3; i++) {
        int rc = weir_guard_new(&g, s, i == 0 ? "a" : i == 1 ? "b" : "a", WEIR_BULKHEAD(), NULL);
        CHECK(rc == 0 || rc == WEIR_ENOMEM);
        if (rc == 0)
            weir_guard_unref(g);
    }
    weir_store_free(s);
}

static void test_failing_memory_leaves_nothing_behind(void **state)
{
    weir_sim_report report = WEIR_SIM_REPORT;

    (void)state;
    assert_int_equal(weir_sim_run(&report, NULL, makes_guards, NULL), 0);
    for (uint64_t n = 1, last = report.allocs; n <= last; n++)
        if (weir_sim_run(&report, WEIR_SIM_OPTIONS(.seed = 1, .fail_alloc = n), makes_guards, NULL))
            fail_msg("%s", report.message);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settings_out_of_range_are_refused_and_named),
        cmocka_unit_test(test_settings_of_another_kind_have_to_be_in_range_and_change_nothing),
        cmocka_unit_test(test_settings_at_the_edge_work),
        cmocka_unit_test(test_bad_arguments_are_refused),
        cmocka_unit_test(test_guards_say_what_they_are),
        cmocka_unit_test(test_retries_pause_longer_each_time),
        cmocka_unit_test(test_a_budget_bounds_the_storm),
        cmocka_unit_test(test_an_adaptive_limit_falls_when_calls_fail),
        cmocka_unit_test(test_failing_memory_leaves_nothing_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
