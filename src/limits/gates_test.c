/* Several gates together: one behaviour at a time, then random turns in which every gate must agree with the list.
 * SPDX-License-Identifier: MIT */
#include "limits/gates.h"

#include "limits/admit.h"
#include "support/sanitized.h"
#include "support/soak.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <weir/error.h>

enum { LASTS = 8000, MANY = 1000, INTERVAL = 100 };

/* A gate that lets `most` through, and notes what it hears.
 *     let == starts that it was asked for and allowed, less those taken back and those that happened */
struct fake {
    struct weir_gate gate;
    uint32_t most;
    weir_time again;
    int64_t let;
    int asked_for; /* by the last call of `ask` */
    int starts, ends, followed, last_error, left;
    uint64_t word, last_word;
    int64_t last_ran;
    weir_reason says; /* to what is submitted */
    bool rests;
};

static uint32_t fake_ask(void *arg, uint32_t count, weir_time now, weir_time *again)
{
    struct fake *fake = arg;
    uint32_t some = count < fake->most ? count : fake->most;

    (void)now;
    fake->asked_for = (int)count;
    *again = fake->again;
    fake->let += some;
    return count ? some : fake->most > 0;
}

static void fake_take_back(void *arg, uint32_t count, weir_time now)
{
    (void)now;
    ((struct fake *)arg)->let -= count;
}

static uint64_t fake_started(void *arg, weir_task *task, weir_time now)
{
    struct fake *fake = arg;

    (void)task, (void)now;
    fake->starts++;
    return ++fake->word;
}

static void fake_ended(void *arg, uint64_t word, int error, int64_t ran_ns, weir_time now)
{
    struct fake *fake = arg;

    (void)now;
    fake->ends++;
    fake->last_word = word;
    fake->last_error = error;
    fake->last_ran = ran_ns;
}

static void fake_went_on(void *arg, uint64_t word, uint32_t count, weir_time now)
{
    struct fake *fake = arg;

    (void)now;
    fake->last_word = word;
    fake->followed += (int)count;
}

static void fake_leave_line(void *arg, weir_time now)
{
    (void)now;
    ((struct fake *)arg)->left++;
}

static weir_reason fake_accept(void *arg, uint32_t cost, weir_time now)
{
    (void)cost, (void)now;
    return ((struct fake *)arg)->says;
}

static void fake_describe(void *arg, weir_gate_state *out, weir_time now)
{
    (void)now;
    out->limit = ((struct fake *)arg)->most;
    out->held = 7;
}

static bool fake_at_rest(void *arg, weir_time now)
{
    (void)now;
    return ((struct fake *)arg)->rests;
}

/* Counts, and hears of nothing else. */
static const weir_gate_calls counts = { .size = sizeof(counts),
                                        .ask = fake_ask,
                                        .take_back = fake_take_back };
static const weir_gate_calls hears_all = { .size = sizeof(hears_all),
                                           .name = "all ears",
                                           .ask = fake_ask,
                                           .take_back = fake_take_back,
                                           .started = fake_started,
                                           .ended = fake_ended,
                                           .describe = fake_describe,
                                           .at_rest = fake_at_rest };
static const weir_gate_calls by_turn = { .size = sizeof(by_turn),
                                         .ask = fake_ask,
                                         .take_back = fake_take_back,
                                         .started = fake_started,
                                         .ended = fake_ended,
                                         .went_on = fake_went_on };
static const weir_gate_calls keeps_a_line = { .size = sizeof(keeps_a_line),
                                              .ask = fake_ask,
                                              .take_back = fake_take_back,
                                              .describe = fake_describe,
                                              .leave_line = fake_leave_line };
static const weir_gate_calls judges = { .size = sizeof(judges),
                                        .ask = fake_ask,
                                        .accept = fake_accept };

static void add(struct wr_gates *gates, struct fake *fake, const weir_gate_calls *calls,
                uint32_t most)
{
    *fake = (struct fake){ .gate.calls = *calls, .gate.arg = fake, .most = most };
    fake->again = WEIR_FOREVER;
    wr_gates_join(gates, &fake->gate, false, 0);
}

static struct wr_gates *new_gates(void)
{
    struct wr_gates *gates = calloc(1, sizeof(*gates));

    assert_non_null(gates);
    wr_gates_init(gates);
    return gates;
}

static void free_gates(struct wr_gates *gates)
{
    wr_gates_leave_all(gates);
    wr_gates_fini(gates);
    free(gates);
}

/* Tasks are opaque to gates. */
static weir_task *task_at(int i)
{
    static char place[8];

    return (weir_task *)&place[i];
}

static bool grant(struct wr_gates *gates, weir_time now)
{
    return wr_gates_grant(gates, MANY, LASTS, now);
}

/* Starts all that is granted. */
static void start_granted(struct wr_gates *gates, weir_time now)
{
    while (gates->granted)
        wr_gates_started(gates, task_at(0), now);
}

/* ---- asking -------------------------------------------------------------------------------------- */

static void test_the_least_answer_holds_and_the_surplus_goes_back(void **state)
{
    struct wr_gates *gates = new_gates();
    struct fake wide, narrow, last;
    (void)state;
    add(gates, &wide, &counts, 100);
    add(gates, &narrow, &counts, 3);
    add(gates, &last, &counts, 100);
    for (int i = 0; i < 2; i++) { /* for one, for two */
        assert_true(grant(gates, 0));
        start_granted(gates, 0);
    }
    wide.let = narrow.let = last.let = 0;
    assert_true(grant(gates, 0));
    assert_int_equal(wide.asked_for, 4);
    assert_int_equal(last.asked_for, 3);
    assert_int_equal(gates->granted, 3);
    assert_int_equal(wide.let, 3);
    assert_int_equal(narrow.let, 3);
    assert_int_equal(last.let, 3);
    free_gates(gates);
}

static void test_the_first_that_refuses_is_named_with_its_time(void **state)
{
    struct wr_gates *gates = new_gates();
    struct fake open, shut, behind;
    weir_gate_state said;
    (void)state;
    add(gates, &open, &counts, 5);
    add(gates, &shut, &hears_all, 0);
    add(gates, &behind, &counts, 0);
    shut.again = 500;
    behind.again = 900;
    assert_false(grant(gates, 100));
    assert_ptr_equal(gates->refused, &shut.gate);
    assert_int_equal(gates->again, 500);
    assert_int_equal(open.let, 0);
    assert_string_equal(wr_gates_describe(gates, &said, 100), "all ears");
    assert_int_equal(said.reason, WEIR_REASON_GATED);
    assert_int_equal(said.earliest, 500);
    assert_int_equal(said.held, 7);
    assert_int_equal(wr_gates_open_at(gates, 100), 900); /* both must be open */
    behind.again = WEIR_FOREVER;
    assert_int_equal(wr_gates_open_at(gates, 100), 0);
    behind.most = shut.most = 1;
    wr_gates_look(gates, 600);
    assert_null(gates->refused);
    assert_int_equal(wr_gates_open_at(gates, 600), 0);
    free_gates(gates);
}

static void test_a_gate_without_words_is_described_by_its_reason_alone(void **state)
{
    struct wr_gates *gates = new_gates();
    struct fake shut;
    weir_gate_state said;
    (void)state;
    add(gates, &shut, &counts, 0);
    wr_gates_look(gates, 0);
    assert_string_equal(wr_gates_describe(gates, &said, 0), "");
    assert_int_equal(said.reason, WEIR_REASON_GATED);
    assert_int_equal(said.earliest, 0);
    assert_int_equal(said.limit, 0);
    free_gates(gates);
}

static void test_looking_lets_nothing_through(void **state)
{
    struct wr_gates *gates = new_gates();
    struct fake one;
    (void)state;
    add(gates, &one, &counts, 5);
    wr_gates_look(gates, 0);
    assert_int_equal(one.asked_for, 0);
    assert_int_equal(one.let, 0);
    assert_int_equal(gates->granted, 0);
    assert_null(gates->refused);
    free_gates(gates);
}

static void test_a_turn_asks_for_twice_as_many_each_time(void **state)
{
    struct wr_gates *gates = new_gates();
    struct fake one;
    static const int asked[] = { 1, 2, 4, 8, 16, 32, 32 };
    (void)state;
    add(gates, &one, &counts, MANY);
    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
        assert_true(grant(gates, 0));
        assert_int_equal(one.asked_for, asked[i]);
        assert_true(grant(gates, 0)); /* is granted already */
        assert_int_equal(one.let, asked[i]);
        start_granted(gates, 0);
        one.let = 0;
    }
    assert_false(wr_gates_return(gates, 0)); /* the turn is over: the next one begins small */
    assert_true(grant(gates, 0));
    assert_int_equal(one.asked_for, 1);
    free_gates(gates);
}

static void test_no_more_are_asked_for_than_wait(void **state)
{
    struct wr_gates *gates = new_gates();
    struct fake one;
    (void)state;
    add(gates, &one, &counts, MANY);
    for (int i = 0; i < 4; i++) {
        assert_true(wr_gates_grant(gates, 3, LASTS, 0));
        assert_in_range(one.asked_for, 1, 3);
        start_granted(gates, 0);
    }
    free_gates(gates);
}

static void test_starts_that_a_turn_leaves_go_back(void **state)
{
    struct wr_gates *gates = new_gates();
    struct fake one, two;
    (void)state;
    add(gates, &one, &counts, MANY);
    add(gates, &two, &counts, MANY);
    assert_true(grant(gates, 0));
    start_granted(gates, 0);
    assert_true(grant(gates, 0));
    wr_gates_started(gates, task_at(0), 0);
    one.let = two.let = 1;
    assert_true(wr_gates_return(gates, 0));
    assert_int_equal(one.let, 0);
    assert_int_equal(two.let, 0);
    assert_int_equal(gates->granted, 0);
    free_gates(gates);
}

static void test_a_grant_does_not_outlast_a_long_body(void **state)
{
    struct wr_gates *gates = new_gates();
    struct fake one;
    (void)state;
    add(gates, &one, &counts, MANY);
    assert_true(grant(gates, 0));
    start_granted(gates, 0);
    one.let = 0;
    assert_true(grant(gates, 10));
    assert_int_equal(one.let, 2);
    assert_true(grant(gates, 10 + LASTS - 1));
    assert_int_equal(one.let, 2);
    assert_true(grant(gates, 10 + LASTS)); /* goes back, and the asking begins anew */
    assert_int_equal(one.asked_for, 1);
    assert_int_equal(one.let, 1);
    free_gates(gates);
}

/* ---- the list ------------------------------------------------------------------------------------ */

static void test_a_gate_that_joins_is_asked_for_starts_granted_without_it(void **state)
{
    struct wr_gates *gates = new_gates();
    struct fake one, late;
    (void)state;
    add(gates, &one, &counts, 5);
    assert_true(grant(gates, 0));
    add(gates, &late, &counts, 0);
    assert_int_equal(one.let, 0);
    assert_int_equal(gates->granted, 0);
    assert_false(grant(gates, 0));
    assert_ptr_equal(gates->refused, &late.gate);
    free_gates(gates);
}

static void test_a_gate_that_leaves_gets_its_grants_and_hears_nothing_more(void **state)
{
    struct wr_gates *gates = new_gates();
    struct fake goes, stays;
    (void)state;
    add(gates, &goes, &hears_all, MANY);
    add(gates, &stays, &hears_all, MANY);
    assert_true(grant(gates, 0));
    wr_gates_started(gates, task_at(1), 0);
    assert_true(grant(gates, 0));
    goes.let = stays.let = gates->granted;
    wr_gates_leave(gates, &goes.gate, 0);
    assert_int_equal(goes.let, 0);
    assert_int_equal(stays.let, 2);
    wr_gates_ended(gates, task_at(1), 0, 0, 10);
    assert_int_equal(goes.ends, 0);
    assert_int_equal(stays.ends, 1);
    free_gates(gates);
}

static void test_all_leave_and_only_the_users_are_handed_out(void **state)
{
    struct wr_gates *gates = new_gates();
    struct fake one, two;
    struct weir_gate *left;
    (void)state;
    add(gates, &one, &counts, 1);
    wr_gates_set_pace(gates, &(struct wr_pace){ .interval = INTERVAL }, 0);
    wr_gates_cool_down(gates, 100, 0);
    add(gates, &two, &counts, 1);
    left = wr_gates_leave_all(gates);
    assert_ptr_equal(left, &one.gate);
    assert_ptr_equal(left->next, &two.gate);
    assert_null(left->next->next);
    wr_gates_look(gates, 0);
    assert_null(gates->refused);
    free_gates(gates);
}

static void test_the_first_objection_to_a_task_counts(void **state)
{
    struct wr_gates *gates = new_gates();
    struct fake indifferent, fine, picky;
    (void)state;
    add(gates, &indifferent, &counts, 1);
    assert_false(wr_gates_judge(gates));
    assert_int_equal(wr_gates_accept(gates, 1, 0), WEIR_REASON_NONE);
    add(gates, &fine, &judges, 1);
    add(gates, &picky, &judges, 1);
    assert_true(wr_gates_judge(gates));
    assert_int_equal(wr_gates_accept(gates, 1, 0), WEIR_REASON_NONE);
    picky.says = WEIR_REASON_GROUP_QUEUE_FULL;
    assert_int_equal(wr_gates_accept(gates, 1, 0), WEIR_REASON_GROUP_QUEUE_FULL);
    fine.says = WEIR_REASON_GATED;
    assert_int_equal(wr_gates_accept(gates, 1, 0), WEIR_REASON_GATED);
    free_gates(gates);
}

static void test_gates_rest_when_each_does(void **state)
{
    struct wr_gates *gates = new_gates();
    struct fake indifferent, one;
    (void)state;
    add(gates, &indifferent, &counts, 1);
    assert_true(wr_gates_are_at_rest(gates, 0));
    add(gates, &one, &hears_all, 1);
    assert_false(wr_gates_are_at_rest(gates, 0));
    one.rests = true;
    assert_true(wr_gates_are_at_rest(gates, 0));
    free_gates(gates);
}

/* ---- words --------------------------------------------------------------------------------------- */

static void test_each_end_brings_its_own_word(void **state)
{
    struct wr_gates *gates = new_gates();
    struct fake one;
    (void)state;
    add(gates, &one, &hears_all, MANY);
    for (int i = 0; i < 3; i++) {
        assert_true(grant(gates, 0));
        wr_gates_started(gates, task_at(i), 0);
    }
    wr_gates_ended(gates, task_at(1), WEIR_ECANCELED, 30, 50);
    assert_int_equal(one.last_word, 2);
    assert_int_equal(one.last_error, WEIR_ECANCELED);
    assert_int_equal(one.last_ran, 20);
    wr_gates_ended(gates, task_at(1), 0, 30, 50); /* it has none any more */
    assert_int_equal(one.ends, 1);
    wr_gates_ended(gates, task_at(2), 0, 50, 30); /* another CPU's clock */
    assert_int_equal(one.last_word, 3);
    assert_int_equal(one.last_ran, 0);
    wr_gates_ended(gates, task_at(0), 0, 30, 50);
    assert_int_equal(one.last_word, 1);
    assert_int_equal(gates->passes, 0);
    free_gates(gates);
}

static void test_a_gate_by_turn_is_asked_for_one_and_told_how_many_followed(void **state)
{
    struct wr_gates *gates = new_gates();
    struct fake one;
    (void)state;
    add(gates, &one, &by_turn, MANY);
    for (int i = 0; i < 3; i++) {
        assert_true(grant(gates, 0));
        assert_int_equal(one.let, i + 1);
        wr_gates_started(gates, task_at(i), 0);
    }
    assert_int_equal(wr_gates_follow(gates), WR_INF);
    wr_gates_went_on(gates, task_at(1), 12, 0);
    assert_int_equal(one.followed, 12);
    assert_int_equal(one.last_word, 2);
    free_gates(gates);
}

/* It said that a task could start, and has let none through since. */
static void test_a_gate_by_turn_is_asked_again_after_others_followed_only_if_it_refused(
    void **state)
{
    struct wr_gates *gates = new_gates();
    struct fake one;
    (void)state;
    add(gates, &one, &by_turn, MANY);
    assert_true(grant(gates, 0));
    wr_gates_started(gates, task_at(0), 0);
    one.asked_for = -1;
    wr_gates_went_on(gates, task_at(0), 12, 0);
    assert_int_equal(one.asked_for, -1);
    one.most = 0;
    wr_gates_look(gates, 0);
    assert_non_null(gates->refused);
    one.most = MANY;
    wr_gates_went_on(gates, task_at(0), 1, 0);
    assert_int_equal(one.asked_for, 0);
    assert_null(gates->refused);
    free_gates(gates);
}

static void test_a_group_waits_in_the_line_of_one_gate_at_a_time(void **state)
{
    struct wr_gates *gates = new_gates();
    struct fake first, second, third;
    (void)state;
    add(gates, &first, &keeps_a_line, MANY);
    add(gates, &second, &keeps_a_line, 0);
    add(gates, &third, &keeps_a_line, MANY);
    assert_false(grant(gates, 0));
    assert_ptr_equal(gates->refused, &second.gate);
    assert_int_equal(first.left, 0); /* it let the group through */
    assert_int_equal(second.left, 0);
    assert_int_equal(third.left, 1);
    second.asked_for = -1;
    assert_int_equal(wr_gates_open_at(gates, 0), 0); /* not known, and none is asked */
    assert_int_equal(second.asked_for, -1);
    second.most = MANY;
    assert_true(grant(gates, 0));
    assert_int_equal(third.left, 1);
    free_gates(gates);
}

static void test_as_many_follow_as_are_granted_and_none_past_a_gate_that_hears_each(void **state)
{
    struct wr_gates *gates = new_gates();
    struct fake deaf, ears;
    (void)state;
    assert_int_equal(wr_gates_follow(gates), WR_INF);
    add(gates, &deaf, &counts, MANY);
    assert_true(grant(gates, 0));
    start_granted(gates, 0);
    assert_true(grant(gates, 0));
    assert_int_equal(wr_gates_follow(gates), 2);
    wr_gates_went_on(gates, task_at(0), 2, 0);
    assert_int_equal(wr_gates_follow(gates), 0);
    add(gates, &ears, &hears_all, MANY);
    assert_true(grant(gates, 0));
    assert_int_equal(wr_gates_follow(gates), 0);
    free_gates(gates);
}

/* ---- the group's own ------------------------------------------------------------------------------- */

static void test_a_cool_down_comes_before_all_and_ends_by_itself(void **state)
{
    struct wr_gates *gates = new_gates();
    struct fake shut;
    weir_gate_state said;
    (void)state;
    add(gates, &shut, &counts, 0);
    wr_gates_cool_down(gates, 100, 0);
    wr_gates_look(gates, 0);
    wr_gates_describe(gates, &said, 0);
    assert_int_equal(said.reason, WEIR_REASON_COOLING_DOWN);
    assert_int_equal(said.earliest, 100);
    assert_false(wr_gates_are_at_rest(gates, 99));
    assert_true(wr_gates_are_at_rest(gates, 100));
    shut.most = 1;
    assert_int_equal(wr_gates_open_at(gates, 0), 100);
    assert_false(grant(gates, 99));
    assert_true(grant(gates, 100));
    wr_gates_cool_down(gates, 300, 150); /* again: what was granted is to be asked for again */
    assert_int_equal(gates->granted, 0);
    assert_false(grant(gates, 299));
    assert_true(grant(gates, 300));
    free_gates(gates);
}

static void test_a_pace_lets_its_burst_through_and_then_one_per_interval(void **state)
{
    struct wr_gates *gates = new_gates();
    weir_gate_state said;
    int starts = 0;
    (void)state;
    wr_gates_set_pace(gates, &(struct wr_pace){ INTERVAL, 2 * INTERVAL }, 1000);
    for (; grant(gates, 1000); starts++)
        wr_gates_started(gates, task_at(0), 1000);
    assert_int_equal(starts, 3);
    assert_int_equal(gates->again, 1000 + INTERVAL);
    wr_gates_describe(gates, &said, 1000);
    assert_int_equal(said.reason, WEIR_REASON_PACED);
    assert_true(wr_gates_wait_for_pace(gates));
    assert_false(wr_gates_are_at_rest(gates, 1000));
    wr_gates_return(gates, 1000);
    assert_true(grant(gates, 1000 + INTERVAL));
    wr_gates_return(gates, 1000 + INTERVAL); /* not used: as if it had not been asked for */
    assert_true(grant(gates, 1000 + INTERVAL));
    start_granted(gates, 1000 + INTERVAL);
    assert_false(grant(gates, 1000 + INTERVAL));
    wr_gates_set_pace(gates, &(struct wr_pace){ 0 }, 1000 + INTERVAL); /* none */
    assert_true(grant(gates, 1000 + INTERVAL));
    assert_true(wr_gates_are_at_rest(gates, 1000 + INTERVAL));
    free_gates(gates);
}

static void test_nothing_waits_for_its_pace_alone_behind_a_gate_of_the_users(void **state)
{
    struct wr_gates *gates = new_gates();
    struct fake open;
    (void)state;
    wr_gates_cool_down(gates, 0, 0);
    wr_gates_set_pace(gates, &(struct wr_pace){ .interval = INTERVAL }, 0);
    assert_true(grant(gates, 1000));
    start_granted(gates, 1000);
    assert_true(wr_gates_wait_for_pace(gates)); /* a cool-down that is over is not in the way */
    add(gates, &open, &counts, 1);
    wr_gates_look(gates, 1000);
    assert_ptr_equal(gates->refused, &gates->pace_gate);
    assert_false(wr_gates_wait_for_pace(gates));
    free_gates(gates);
}

/* ---- random turns ---------------------------------------------------------------------------------- */

enum { GATES = 3, TURNS = SANITIZED ? 2000 : 20000 };

static uint32_t below(uint64_t *luck, uint32_t end)
{
    *luck = *luck * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*luck >> 33) % end;
}

/* One step of a turn; after each, every gate has let through exactly what the list says is granted. */
static void step(struct wr_gates *gates, struct fake *fake, uint64_t *luck, weir_time now)
{
    uint32_t queued = 1 + below(luck, 40);

    switch (below(luck, 8)) {
    case 0:
        wr_gates_return(gates, now);
        break;
    case 1:
        fake[below(luck, GATES)].most = below(luck, 9);
        break;
    case 2:
        wr_gates_look(gates, now);
        break;
    default:
        if (!wr_gates_grant(gates, queued, LASTS, now)) {
            assert_non_null(gates->refused);
            break;
        }
        assert_null(gates->refused);
        if (below(luck, 4) == 0)
            break; /* another limit was in the way */
        wr_gates_started(gates, task_at(0), now);
        for (int i = 0; i < GATES; i++)
            fake[i].let--;
        wr_gates_ended(gates, task_at(0), 0, now, now);
    }
    for (int i = 0; i < GATES; i++)
        assert_int_equal(fake[i].let, gates->granted);
    assert_true(!gates->refused || !gates->granted);
    assert_int_equal(gates->passes, 0);
}

static void test_in_random_turns_every_gate_counts_as_the_list_does(void **state)
{
    uint64_t luck = soak_seed(1), turns = soak_times(TURNS);
    weir_time now = 0;
    (void)state;
    while (turns-- > 0) {
        struct wr_gates *gates = new_gates();
        struct fake fake[GATES];
        for (int i = 0; i < GATES; i++)
            add(gates, &fake[i], below(&luck, 2) ? &counts : &hears_all, 1 + below(&luck, 40));
        for (int i = 0; i < 30; i++)
            step(gates, fake, &luck, now += below(&luck, 3000));
        for (int i = 0; i < GATES; i++)
            assert_int_equal(fake[i].starts, fake[i].ends);
        free_gates(gates);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_least_answer_holds_and_the_surplus_goes_back),
        cmocka_unit_test(test_the_first_that_refuses_is_named_with_its_time),
        cmocka_unit_test(test_a_gate_without_words_is_described_by_its_reason_alone),
        cmocka_unit_test(test_looking_lets_nothing_through),
        cmocka_unit_test(test_a_turn_asks_for_twice_as_many_each_time),
        cmocka_unit_test(test_no_more_are_asked_for_than_wait),
        cmocka_unit_test(test_starts_that_a_turn_leaves_go_back),
        cmocka_unit_test(test_a_grant_does_not_outlast_a_long_body),
        cmocka_unit_test(test_a_gate_that_joins_is_asked_for_starts_granted_without_it),
        cmocka_unit_test(test_a_gate_that_leaves_gets_its_grants_and_hears_nothing_more),
        cmocka_unit_test(test_all_leave_and_only_the_users_are_handed_out),
        cmocka_unit_test(test_the_first_objection_to_a_task_counts),
        cmocka_unit_test(test_gates_rest_when_each_does),
        cmocka_unit_test(test_each_end_brings_its_own_word),
        cmocka_unit_test(test_a_gate_by_turn_is_asked_for_one_and_told_how_many_followed),
        cmocka_unit_test(
            test_a_gate_by_turn_is_asked_again_after_others_followed_only_if_it_refused),
        cmocka_unit_test(test_a_group_waits_in_the_line_of_one_gate_at_a_time),
        cmocka_unit_test(test_as_many_follow_as_are_granted_and_none_past_a_gate_that_hears_each),
        cmocka_unit_test(test_a_cool_down_comes_before_all_and_ends_by_itself),
        cmocka_unit_test(test_a_pace_lets_its_burst_through_and_then_one_per_interval),
        cmocka_unit_test(test_nothing_waits_for_its_pace_alone_behind_a_gate_of_the_users),
        cmocka_unit_test(test_in_random_turns_every_gate_counts_as_the_list_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
