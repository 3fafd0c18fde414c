/* SPDX-License-Identifier: MIT */
#include "base/list.h"

#include "base/assert.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct item {
    int number;
    struct wr_list link;
};

static struct wr_list list, other;
static struct item item[6];

static int setup(void **state)
{
    (void)state;
    wr_list_init(&list);
    wr_list_init(&other);
    for (int i = 0; i < 6; i++) {
        item[i].number = i;
        wr_list_init(&item[i].link);
    }
    return 0;
}

/* The list holds exactly these, both ways. Digits, first to last: 12 is items 1 and 2. */
static void assert_holds(struct wr_list *head, int digits)
{
    int forward = 0, backward = 0, scale = 1;

    wr_list_each(node, head)
        forward = forward * 10 + WR_CONTAINER(node, struct item, link)->number;
    for (struct wr_list *node = head->prev; node != head; node = node->prev, scale *= 10)
        backward += WR_CONTAINER(node, struct item, link)->number * scale;
    assert_int_equal(forward, digits);
    assert_int_equal(backward, digits);
    assert_int_equal(wr_list_empty(head), digits == 0);
}

static void fill(void)
{
    for (int i = 1; i <= 3; i++)
        wr_list_append(&list, &item[i].link);
}

static void test_a_fresh_list_is_empty(void **state)
{
    (void)state;
    assert_holds(&list, 0);
}

static void test_an_appended_item_comes_last(void **state)
{
    (void)state;
    fill();
    assert_holds(&list, 123);
}

static void test_any_place_can_be_left(void **state)
{
    (void)state;
    fill();
    wr_list_remove(&item[2].link);
    assert_holds(&list, 13);
    wr_list_remove(&item[1].link);
    assert_holds(&list, 3);
    wr_list_remove(&item[3].link);
    assert_holds(&list, 0);
}

static void test_leaving_twice_is_harmless(void **state)
{
    (void)state;
    fill();
    wr_list_remove(&item[2].link);
    wr_list_remove(&item[2].link);
    assert_holds(&list, 13);
    assert_true(wr_list_empty(&item[2].link));
}

static void test_a_removed_item_may_come_back(void **state)
{
    (void)state;
    fill();
    wr_list_remove(&item[1].link);
    wr_list_append(&list, &item[1].link);
    assert_holds(&list, 231);
}

static void test_splicing_moves_all_items_to_the_end(void **state)
{
    (void)state;
    fill();
    wr_list_append(&other, &item[4].link);
    wr_list_append(&other, &item[5].link);
    wr_list_splice(&list, &other);
    assert_holds(&list, 12345);
    assert_holds(&other, 0);
}

static void test_splicing_works_into_and_from_nothing(void **state)
{
    (void)state;
    wr_list_splice(&list, &other);
    assert_holds(&list, 0);
    fill();
    wr_list_splice(&list, &other);
    assert_holds(&list, 123);
    wr_list_splice(&other, &list);
    assert_holds(&other, 123);
    assert_holds(&list, 0);
}

static void test_a_safe_walk_may_remove_where_it_stands(void **state)
{
    (void)state;
    fill();
    wr_list_each_safe(node, &list)
        if (WR_CONTAINER(node, struct item, link)->number != 2)
            wr_list_remove(node);
    assert_holds(&list, 2);
    wr_list_each_safe(node, &list)
        wr_list_remove(node);
    assert_holds(&list, 0);
}

static void test_a_fifo_gives_in_the_order_in_which_it_took(void **state)
{
    struct wr_fifo fifo = { 0 };
    struct wr_fifo_node link[4];

    (void)state;
    assert_null(wr_fifo_take(&fifo));
    wr_fifo_append(&fifo, &link[0]);
    wr_fifo_append(&fifo, &link[1]);
    assert_ptr_equal(wr_fifo_take(&fifo), &link[0]);
    wr_fifo_append(&fifo, &link[2]);
    assert_ptr_equal(wr_fifo_take(&fifo), &link[1]);
    assert_ptr_equal(wr_fifo_take(&fifo), &link[2]);
    assert_null(wr_fifo_take(&fifo));
    wr_fifo_append(&fifo, &link[3]); /* again, after it was empty */
    assert_ptr_equal(wr_fifo_take(&fifo), &link[3]);
    assert_null(wr_fifo_take(&fifo));
}

static void test_a_container_is_found_from_its_member(void **state)
{
    (void)state;
    assert_ptr_equal(WR_CONTAINER(&item[3].link, struct item, link), &item[3]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_a_fresh_list_is_empty, setup),
        cmocka_unit_test_setup(test_an_appended_item_comes_last, setup),
        cmocka_unit_test_setup(test_any_place_can_be_left, setup),
        cmocka_unit_test_setup(test_leaving_twice_is_harmless, setup),
        cmocka_unit_test_setup(test_a_removed_item_may_come_back, setup),
        cmocka_unit_test_setup(test_splicing_moves_all_items_to_the_end, setup),
        cmocka_unit_test_setup(test_splicing_works_into_and_from_nothing, setup),
        cmocka_unit_test_setup(test_a_safe_walk_may_remove_where_it_stands, setup),
        cmocka_unit_test_setup(test_a_fifo_gives_in_the_order_in_which_it_took, setup),
        cmocka_unit_test_setup(test_a_container_is_found_from_its_member, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
