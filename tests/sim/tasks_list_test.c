/* Lists of tasks: those that wait, run and are pending, with their names, since when, and why.
 * SPDX-License-Identifier: MIT */
#include "support/executor_support.h"

static weir_task_info **list_of(weir_executor *ex, const weir_tasks_query *query, size_t expected)
{
    weir_task_info **list = NULL;
    size_t count = 99;

    CHECK(weir_executor_tasks(&list, &count, ex, query) == 0);
    CHECK_EQ(count, expected);
    CHECK(list[count] == NULL);
    return list;
}

static void check_info(const weir_task_info *info, const char *key, const char *id,
                       weir_task_state state, int64_t since_ms, weir_reason reason)
{
    CHECK(strcmp(info->key, key) == 0);
    if (strcmp(info->id, id) != 0)
        weir_sim_fail("id is \"%s\", not \"%s\"", info->id, id);
    CHECK_EQ(info->state, state);
    CHECK_EQ(info->since, at(since_ms));
    CHECK_EQ(info->why->reason, reason);
}

static int becomes_pending(void **value, void *arg)
{
    (void)value;
    (void)arg;
    return WEIR_PENDING;
}

SIM_TEST(test_a_list_has_all_that_wait_run_and_are_pending, 100)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    struct body slow = { .ms = 100 };
    weir_task *task[5];
    weir_task_info **list;
    char text[200];

    sleep_until(1);
    task[0] = submit_with(ex, "a", &slow, WEIR_TASK(.id = "a1"));
    sleep_until(2);
    task[1] = submit_with(ex, "a", &slow, WEIR_TASK(.id = "a2"));
    sleep_until(3);
    task[2] = submit(ex, "a", &slow);
    CHECK(weir_submit_key(&task[3], ex, "b", becomes_pending, NULL, WEIR_TASK(.id = "b1")) == 0);
    sleep_until(4);
    task[4] = submit_with(ex, "c", &slow, WEIR_TASK(.id = "c1"));
    sleep_until(5);

    list = list_of(ex, NULL, 5);
    check_info(list[0], "a", "a1", WEIR_TASK_RUNNING, 1, WEIR_REASON_RUNNING);
    check_info(list[1], "c", "c1", WEIR_TASK_RUNNING, 4, WEIR_REASON_RUNNING);
    check_info(list[2], "b", "b1", WEIR_TASK_PENDING, 3, WEIR_REASON_PENDING);
    check_info(list[3], "a", "a2", WEIR_TASK_WAITING, 2, WEIR_REASON_GROUP_LIMIT);
    check_info(list[4], "a", "", WEIR_TASK_WAITING, 3, WEIR_REASON_GROUP_LIMIT);
    weir_why_text(text, sizeof(text), list[3]->why);
    CHECK(strcmp(text, "the group is at its limit (group \"a\": 1 of 1 in use)") == 0);
    CHECK(weir_task_settle(task[3], 0, NULL) == 0);
    for (int i = 0; i < 5; i++)
        weir_task_unref(task[i]);
    weir_executor_free(ex);
    check_info(list[0], "a", "a1", WEIR_TASK_RUNNING, 1, WEIR_REASON_RUNNING); /* still readable */
    free(list);
}

SIM_TEST(test_a_list_can_be_of_one_group_or_state, 20)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    struct body slow = { .ms = 100 };
    weir_task *task[6];

    for (int i = 0; i < 6; i++)
        task[i] = submit(ex, i % 2 ? "odd" : "even", &slow);
    sleep_until(5);
    free(list_of(ex, WEIR_TASKS(.key = "odd"), 3));
    free(list_of(ex, WEIR_TASKS(.key = "none"), 0));
    free(list_of(ex, WEIR_TASKS(.states = WEIR_TASK_RUNNING), 2));
    free(list_of(ex, WEIR_TASKS(.states = WEIR_TASK_PENDING), 0));
    free(list_of(ex, WEIR_TASKS(.states = WEIR_TASK_WAITING | WEIR_TASK_PENDING), 4));
    free(list_of(ex, WEIR_TASKS(.key = "odd", .states = WEIR_TASK_WAITING), 2));
    for (int i = 0; i < 6; i++)
        check_done(task[i]);
    free(list_of(ex, NULL, 0));
    weir_executor_free(ex);
}

SIM_TEST(test_running_tasks_come_first_if_not_all_fit, 20)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1, .group_limit = 3));
    struct body slow = { .ms = 100 };
    weir_task *task[2000];
    weir_task_info **list;

    for (int i = 0; i < 2000; i++)
        task[i] = submit(ex, "g", &slow);
    sleep_until(5);
    list = list_of(ex, WEIR_TASKS(.max = 5), 5);
    for (int i = 0; i < 5; i++)
        CHECK_EQ(list[i]->state, i < 3 ? WEIR_TASK_RUNNING : WEIR_TASK_WAITING);
    free(list);
    free(list_of(ex, WEIR_TASKS(.max = 2), 2));
    free(list_of(ex, NULL, 1000)); /* the default */
    free(list_of(ex, WEIR_TASKS(.max = 5000), 2000));
    for (int i = 0; i < 2000; i++)
        weir_task_unref(task[i]);
    weir_executor_free(ex);
}

/* A body that does not listen. */
static int stubborn(void **value, void *arg)
{
    (void)value;
    (void)arg;
    while (weir_now() < at(300))
        weir_sim_busy(10 * MS);
    return 0;
}

static void check_stragglers(weir_carrier carrier)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .stall_after_ms = 10000));
    weir_task *task = NULL;
    weir_task_info **list;

    CHECK(weir_group_run_on(group_of(ex, "bad"), carrier) == 0);
    CHECK(weir_submit_key(&task, ex, "bad", stubborn, NULL, WEIR_TASK(.id = "row 17")) == 0);
    weir_task_unref(submit(ex, "good", NULL));
    CHECK(weir_executor_shutdown(ex, at(100)) == WEIR_ETIMEDOUT);
    list = list_of(ex, NULL, 1);
    check_info(list[0], "bad", "row 17", WEIR_TASK_RUNNING, 0, WEIR_REASON_RUNNING);
    CHECK_EQ(list[0]->outcome, WEIR_UNSETTLED);
    free(list);
    CHECK(weir_task_cancel(task)); /* settled, and its body still runs */
    list = list_of(ex, NULL, 1);
    check_info(list[0], "bad", "row 17", WEIR_TASK_RUNNING, 0, WEIR_REASON_CANCELLED);
    CHECK_EQ(list[0]->outcome, WEIR_CANCELLED);
    free(list);
    weir_task_unref(task);
    weir_executor_free(ex);
    CHECK(weir_now() >= at(300));
}

SIM_TEST(test_a_shutdown_that_timed_out_can_name_tasks_that_still_run, 50)
{
    check_stragglers(WEIR_WORKERS);
}

SIM_TEST(test_a_task_that_still_runs_on_a_thread_is_named, 50)
{
    check_stragglers(WEIR_THREADS);
}

SIM_TEST(test_a_list_that_makes_no_sense_is_refused, 1)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1));
    weir_task_info **list = NULL;
    size_t count = 9;

    CHECK(weir_executor_tasks(NULL, &count, ex, NULL) == WEIR_EINVAL);
    CHECK(weir_executor_tasks(&list, &count, NULL, NULL) == WEIR_EINVAL);
    CHECK(weir_executor_tasks(&list, &count, ex, WEIR_TASKS(.states = 8)) == WEIR_EINVAL);
    CHECK(weir_executor_tasks(&list, &count, ex, &(weir_tasks_query){ 0 }) == WEIR_EINVAL);
    CHECK(list == NULL);
    CHECK(weir_executor_tasks(&list, NULL, ex, NULL) == 0);
    CHECK(list[0] == NULL);
    free(list);
    weir_executor_free(ex);
}

/* ---- lists while everything moves ---------------------------------------------------------------- */

enum { KEYS = 3, ROUNDS = 12 };

static const char *const key_of[KEYS] = { "a", "b", "c" };

struct traffic {
    weir_executor *ex;
    _Atomic int submitters;
};

static int quick(void **value, void *arg)
{
    (void)value;
    return weir_sim_random() % 3 ? 0 : weir_sleep(weir_now() + (intptr_t)arg * MS);
}

static void submits_and_evicts(void *arg)
{
    struct traffic *t = arg;

    for (int i = 0; i < ROUNDS; i++) {
        const char *key = key_of[weir_sim_random() % KEYS];
        weir_task *task = NULL;
        CHECK(weir_submit_key(weir_sim_random() % 2 ? &task : NULL, t->ex, key, quick,
                              (void *)(intptr_t)(weir_sim_random() % 3), NULL) == 0);
        if (task && weir_sim_random() % 2)
            weir_task_cancel(task);
        weir_task_unref(task);
        if (weir_sim_random() % 3 == 0)
            CHECK(weir_group_evict(t->ex, key, 0) == 0); /* its record is freed as soon as can be */
        if (weir_sim_random() % 4 == 0)
            weir_sim_busy(MS / 4);
    }
    t->submitters--;
}

SIM_TEST(test_lists_are_sound_while_tasks_end_and_groups_are_evicted, 400)
{
    struct traffic t = { .ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2)),
                         .submitters = 2 };
    int64_t thread[2];

    for (int i = 0; i < 2; i++)
        thread[i] = weir_sim_thread(submits_and_evicts, &t, "submitter");
    while (t.submitters) {
        weir_task_info **list = NULL;
        CHECK(weir_executor_tasks(&list, NULL, t.ex, NULL) == 0);
        for (int i = 0; list[i]; i++)
            CHECK(strlen(list[i]->key) == 1 && list[i]->why->reason != WEIR_REASON_NONE);
        free(list);
        weir_sim_busy(MS / 8);
    }
    for (int i = 0; i < 2; i++)
        weir_sim_join(thread[i]);
    CHECK(weir_executor_drain(t.ex, WEIR_FOREVER) == 0);
    check_books(t.ex);
    weir_executor_free(t.ex);
}

static void without_memory(void *arg)
{
    weir_executor *ex = NULL;
    weir_task_info **list = NULL;
    size_t count;
    int rc;

    (void)arg;
    if (weir_executor_new(&ex, WEIR_POLICY(.workers = 1), NULL))
        return;
    for (int i = 0; i < 3; i++)
        weir_submit_key(NULL, ex, "g", quick, (void *)1, NULL);
    rc = weir_executor_tasks(&list, &count, ex, NULL);
    CHECK(rc == 0 ? list != NULL : rc == WEIR_ENOMEM && list == NULL && count == 0);
    free(list);
    weir_executor_free(ex);
}

static void test_without_memory_there_is_no_list(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 40; n++)
        explore(1, WEIR_SIM_OPTIONS(.seed = 1, .fail_alloc = n), without_memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_list_has_all_that_wait_run_and_are_pending),
        cmocka_unit_test(test_a_list_can_be_of_one_group_or_state),
        cmocka_unit_test(test_running_tasks_come_first_if_not_all_fit),
        cmocka_unit_test(test_a_shutdown_that_timed_out_can_name_tasks_that_still_run),
        cmocka_unit_test(test_a_task_that_still_runs_on_a_thread_is_named),
        cmocka_unit_test(test_a_list_that_makes_no_sense_is_refused),
        cmocka_unit_test(test_lists_are_sound_while_tasks_end_and_groups_are_evicted),
        cmocka_unit_test(test_without_memory_there_is_no_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
