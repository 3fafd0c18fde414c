/* Tasks that have nothing but a body, one after the other in one turn of their group: what others see of them meanwhile.
 * SPDX-License-Identifier: MIT */
#include "runtime/runtime.h"
#include "support/executor_support.h"

enum { TASKS = 12 };

/* Bodies note the order in which they begin, and what the group says of itself then. */
struct turn {
    weir_executor *ex;
    weir_group *group;
    int begun;
    int order[TASKS];
    weir_group_stats stats[TASKS];
    int acts_at; /* which of them does something, or stays */
    int64_t stays_ms;
    weir_task *self;
};

struct step {
    struct turn *turn;
    int number;
};

static int note(void **value, void *step_arg)
{
    struct step *step = step_arg;
    struct turn *turn = step->turn;

    (void)value;
    turn->order[turn->begun++] = step->number;
    if (step->number == turn->acts_at && turn->stays_ms)
        sleep_until(turn->stays_ms);
    return 0;
}

static void submit_steps(struct turn *turn, struct step *step, weir_fn *fn)
{
    weir_group_pause(turn->group);
    for (int i = 0; i < TASKS; i++) {
        step[i] = (struct step){ turn, i };
        CHECK(weir_submit(NULL, turn->group, fn, &step[i], NULL) == 0);
    }
    weir_group_resume(turn->group);
}

static void begin(struct turn *turn, uint32_t workers, int64_t limit)
{
    turn->ex = new_executor(WEIR_POLICY(.workers = workers, .group_limit = limit));
    turn->group = group_of(turn->ex, "g");
}

static void end(struct turn *turn)
{
    CHECK(weir_executor_drain(turn->ex, WEIR_FOREVER) == 0);
    check_books(turn->ex);
    weir_executor_free(turn->ex);
}

static int note_stats(void **value, void *step_arg)
{
    struct step *step = step_arg;

    step->turn->stats[step->number] = stats_of(step->turn->ex, "g");
    return note(value, step);
}

SIM_TEST(test_each_body_of_a_turn_finds_the_figures_of_its_own_moment, 50)
{
    struct turn turn = { .acts_at = -1 };
    struct step step[TASKS];

    begin(&turn, 1, 1);
    submit_steps(&turn, step, note_stats);
    CHECK(weir_executor_drain(turn.ex, WEIR_FOREVER) == 0);
    for (uint64_t i = 0; i < TASKS; i++) {
        CHECK_EQ(turn.order[i], (int)i);
        CHECK_EQ(turn.stats[i].submitted, TASKS);
        CHECK_EQ(turn.stats[i].started, i + 1);
        CHECK_EQ(turn.stats[i].succeeded, i);
        CHECK_EQ(turn.stats[i].waiting, TASKS - i - 1);
        CHECK_EQ(turn.stats[i].running, 1);
    }
    end(&turn);
}

SIM_TEST(test_another_thread_finds_the_figures_of_a_turn_whose_body_stays, 50)
{
    struct turn turn = { .acts_at = 5, .stays_ms = 20 };
    struct step step[TASKS];
    weir_group_stats stats;

    begin(&turn, 1, 1);
    submit_steps(&turn, step, note);
    sleep_until(10);
    stats = stats_of(turn.ex, "g");
    CHECK_EQ(stats.started, 6);
    CHECK_EQ(stats.succeeded, 5);
    CHECK_EQ(stats.waiting, TASKS - 6);
    end(&turn);
    CHECK_EQ(weir_now(), at(20));
}

/* The others start although the body before them, of the same turn, does not end. */
SIM_TEST(test_a_body_that_stays_strands_no_task_behind_it, 100)
{
    struct turn turn = { .acts_at = 3, .stays_ms = 50 };
    struct step step[TASKS];

    begin(&turn, 2, 2);
    submit_steps(&turn, step, note);
    sleep_until(10);
    CHECK_EQ(turn.begun, TASKS);
    CHECK_EQ(stats_of(turn.ex, "g").running, 1);
    end(&turn);
    CHECK_EQ(weir_now(), at(50));
}

static int do_nothing(void **value, void *arg)
{
    (void)value, (void)arg;
    return 0;
}

/* The worker that left the body goes on with a task of another group, and with none of this one. */
SIM_TEST(test_a_body_that_parks_in_a_turn_is_not_followed_until_it_ends, 50)
{
    struct turn turn = { .acts_at = 3, .stays_ms = 50 };
    struct step step[TASKS];

    begin(&turn, 1, 1);
    submit_steps(&turn, step, note);
    sleep_until(10);
    CHECK(weir_submit_key(NULL, turn.ex, "other", do_nothing, NULL, NULL) == 0);
    sleep_until(20);
    CHECK_EQ(stats_of(turn.ex, "other").succeeded, 1);
    CHECK_EQ(turn.begun, 4);
    CHECK_EQ(stats_of(turn.ex, "g").started, 4);
    end(&turn);
    CHECK_EQ(turn.begun, TASKS);
}

/* Its worker goes on with another group, and needs the means by which it had begun the tasks of this one. */
SIM_TEST(test_a_turn_can_be_looked_at_while_its_worker_begins_another, 1000)
{
    struct turn turn = { .acts_at = 3, .stays_ms = 50 };
    struct step step[TASKS];
    weir_group *other;
    weir_group_stats stats;

    begin(&turn, 1, 1);
    other = group_of(turn.ex, "other");
    submit_steps(&turn, step, note);
    sleep_until(10);
    weir_group_pause(other);
    for (int i = 0; i < TASKS; i++)
        CHECK(weir_submit(NULL, other, do_nothing, NULL, NULL) == 0);
    weir_group_resume(other);
    stats = stats_of(turn.ex, "g");
    CHECK_EQ(stats.started, 4);
    CHECK_EQ(stats.waiting, TASKS - 4);
    CHECK_EQ(stats.waited_ns, 0);
    end(&turn);
    CHECK_EQ(turn.begun, TASKS);
    CHECK_EQ(weir_now(), at(50));
}

static int pause_own(void **value, void *step_arg)
{
    struct step *step = step_arg;

    if (step->number == step->turn->acts_at)
        weir_group_pause(step->turn->group);
    return note(value, step);
}

SIM_TEST(test_a_pause_in_the_middle_of_a_turn_stops_the_next_task, 50)
{
    struct turn turn = { .acts_at = 4 };
    struct step step[TASKS];

    begin(&turn, 1, 1);
    submit_steps(&turn, step, pause_own);
    sleep_until(1);
    CHECK_EQ(turn.begun, 5);
    CHECK_EQ(stats_of(turn.ex, "g").waiting, TASKS - 5);
    weir_group_resume(turn.group);
    end(&turn);
    CHECK_EQ(turn.begun, TASKS);
}

static int ask_self(void **value, void *step_arg)
{
    struct step *step = step_arg;
    weir_task *self = weir_task_self();

    CHECK(self && weir_task_arg(self) == step);
    if (step->number == step->turn->acts_at)
        step->turn->self = weir_task_ref(self);
    return note(value, step);
}

SIM_TEST(test_a_body_in_a_turn_is_a_task_that_can_be_kept, 50)
{
    struct turn turn = { .acts_at = 6 };
    struct step step[TASKS];

    begin(&turn, 1, 1);
    submit_steps(&turn, step, ask_self);
    CHECK(weir_executor_drain(turn.ex, WEIR_FOREVER) == 0);
    check_done(turn.self);
    CHECK_EQ(turn.begun, TASKS);
    end(&turn);
}

static int fail_once(void **value, void *step_arg)
{
    struct step *step = step_arg;

    return note(value, step) || step->number == step->turn->acts_at ? WEIR_EINVAL : 0;
}

SIM_TEST(test_a_task_that_fails_in_the_middle_of_a_turn_is_counted_as_such, 50)
{
    struct turn turn = { .acts_at = 7 };
    struct step step[TASKS];
    weir_group_stats stats;

    begin(&turn, 1, 1);
    submit_steps(&turn, step, fail_once);
    CHECK(weir_executor_drain(turn.ex, WEIR_FOREVER) == 0);
    stats = stats_of(turn.ex, "g");
    CHECK_EQ(stats.failed, 1);
    CHECK_EQ(stats.succeeded, TASKS - 1);
    end(&turn);
}

/* Virtual time stands still in all bodies but one: the sums of waits and runs are exact. */
SIM_TEST(test_the_times_of_a_turn_add_up, 50)
{
    struct turn turn = { .acts_at = 2, .stays_ms = 30 };
    struct step step[TASKS];
    weir_group_stats stats;

    begin(&turn, 1, 1);
    submit_steps(&turn, step, note);
    CHECK(weir_executor_drain(turn.ex, WEIR_FOREVER) == 0);
    stats = stats_of(turn.ex, "g");
    CHECK_EQ(stats.ran_ns, 30 * 1000000);
    CHECK_EQ(stats.waited_ns, (TASKS - 3) * 30 * 1000000);
    end(&turn);
}

/* More tasks than one slice has. */
enum { LONG = 300 };

static int note_worker(void **value, void *where_arg)
{
    void **where = where_arg;

    (void)value;
    *where = wr_scratch();
    return 0;
}

/* Its worker goes on with it, and the other one sleeps: waking that would cost more than the tasks. */
SIM_TEST(test_a_group_whose_slice_is_over_wakes_no_worker_but_its_own, 100)
{
    struct turn turn = { .acts_at = -1 };
    void *where[LONG] = { NULL };

    begin(&turn, 2, 1);
    sleep_until(1); /* until both workers do */
    weir_group_pause(turn.group);
    for (int i = 0; i < LONG; i++)
        CHECK(weir_submit(NULL, turn.group, note_worker, &where[i], NULL) == 0);
    weir_group_resume(turn.group);
    CHECK(weir_executor_drain(turn.ex, WEIR_FOREVER) == 0);
    for (int i = 0; i < LONG; i++)
        CHECK(where[i] && where[i] == where[0]);
    end(&turn);
}

/* But if another group waits as well, another worker comes for that. */
static int note_and_stay(void **value, void *where_arg)
{
    note_worker(value, where_arg);
    weir_sim_busy(MS);
    return 0;
}

SIM_TEST(test_a_group_whose_slice_is_over_does_not_keep_another_waiting, 100)
{
    struct turn turn = { .acts_at = -1 };
    void *where[2] = { NULL };

    begin(&turn, 2, 1);
    sleep_until(1);
    CHECK(weir_submit(NULL, turn.group, note_and_stay, &where[0], NULL) == 0);
    CHECK(weir_submit(NULL, turn.group, note_and_stay, &where[0], NULL) == 0);
    CHECK(weir_submit(NULL, group_of(turn.ex, "h"), note_and_stay, &where[1], NULL) == 0);
    CHECK(weir_executor_drain(turn.ex, WEIR_FOREVER) == 0);
    CHECK_EQ(weir_now(), at(3));
    end(&turn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_body_of_a_turn_finds_the_figures_of_its_own_moment),
        cmocka_unit_test(test_another_thread_finds_the_figures_of_a_turn_whose_body_stays),
        cmocka_unit_test(test_a_body_that_stays_strands_no_task_behind_it),
        cmocka_unit_test(test_a_body_that_parks_in_a_turn_is_not_followed_until_it_ends),
        cmocka_unit_test(test_a_turn_can_be_looked_at_while_its_worker_begins_another),
        cmocka_unit_test(test_a_pause_in_the_middle_of_a_turn_stops_the_next_task),
        cmocka_unit_test(test_a_body_in_a_turn_is_a_task_that_can_be_kept),
        cmocka_unit_test(test_a_task_that_fails_in_the_middle_of_a_turn_is_counted_as_such),
        cmocka_unit_test(test_the_times_of_a_turn_add_up),
        cmocka_unit_test(test_a_group_whose_slice_is_over_wakes_no_worker_but_its_own),
        cmocka_unit_test(test_a_group_whose_slice_is_over_does_not_keep_another_waiting),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
