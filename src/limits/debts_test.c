/* Tests of debts.
 * SPDX-License-Identifier: MIT */
#include "limits/debts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { A, B, C, COUNT, MOST = 10 };

struct scene {
    struct wr_list debts;
    struct wr_debt debt[COUNT];
};

static void scene_init(struct scene *scene)
{
    *scene = (struct scene){ .debt = { { .permits = 0 } } };
    wr_list_init(&scene->debts);
}

static uint64_t before(const struct scene *scene, int who)
{
    return wr_debts_before(&scene->debts, &scene->debt[who], MOST);
}

static void test_the_asker_refused_first_leaves_nothing_to_others(void **state)
{
    struct scene scene;

    (void)state;
    scene_init(&scene);
    assert_int_equal(before(&scene, A), 0);
    wr_debt_note(&scene.debts, &scene.debt[B], 3);
    wr_debt_note(&scene.debts, &scene.debt[A], 4);
    assert_int_equal(before(&scene, B), 0);
    assert_int_equal(before(&scene, A), 3);
    assert_int_equal(before(&scene, C), 7); /* it was not refused yet */
}

static void test_an_asker_refused_again_keeps_its_place_and_a_served_one_loses_it(void **state)
{
    struct scene scene;

    (void)state;
    scene_init(&scene);
    wr_debt_note(&scene.debts, &scene.debt[A], 3);
    wr_debt_note(&scene.debts, &scene.debt[B], 2);
    wr_debt_note(&scene.debts, &scene.debt[A], 5);
    assert_int_equal(before(&scene, A), 0);
    assert_int_equal(before(&scene, B), 5);
    wr_debt_end(&scene.debt[A]);
    wr_debt_end(&scene.debt[A]); /* it is owed nothing, and that is fine */
    assert_int_equal(before(&scene, B), 0);
    wr_debt_note(&scene.debts, &scene.debt[A], 3);
    assert_int_equal(before(&scene, A), 2);
    assert_ptr_equal(wr_debt_before(&scene.debts, &scene.debt[A], NULL, MOST), &scene.debt[B]);
    assert_null(wr_debt_before(&scene.debts, &scene.debt[A], &scene.debt[B], MOST));
}

static void test_an_asker_owed_more_than_there_are_keeps_no_other_waiting(void **state)
{
    struct scene scene;

    (void)state;
    scene_init(&scene);
    wr_debt_note(&scene.debts, &scene.debt[A], MOST + 1);
    wr_debt_note(&scene.debts, &scene.debt[B], MOST);
    assert_int_equal(before(&scene, B), 0);
    assert_int_equal(before(&scene, C), MOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_asker_refused_first_leaves_nothing_to_others),
        cmocka_unit_test(test_an_asker_refused_again_keeps_its_place_and_a_served_one_loses_it),
        cmocka_unit_test(test_an_asker_owed_more_than_there_are_keeps_no_other_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
