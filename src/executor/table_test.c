/* Tests of the table: shards by key, walks that meet each group once.
 * SPDX-License-Identifier: MIT */
#include "executor/table.h"

#include "executor/group.h"
#include "support/check.h"

enum { GROUPS = 5000 };

static struct wr_table table;
static struct weir_group *group[GROUPS];

static int setup(void **state)
{
    (void)state;
    assert_int_equal(wr_table_init(&table), 0);
    for (int i = 0; i < GROUPS; i++) {
        group[i] = calloc(1, sizeof(*group[i]) + 16);
        assert_non_null(group[i]);
        snprintf(group[i]->key, 16, "k%d", i);
        group[i]->hash = wr_table_key(&table, group[i]->key).hash;
        wr_list_init(&group[i]->retired);
        wr_map_put(&wr_table_shard(&table, group[i]->hash)->present, &group[i]->in_table);
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    wr_table_fini(&table);
    for (int i = 0; i < GROUPS; i++)
        free(group[i]);
    return 0;
}

static struct weir_group *find(const char *text)
{
    struct wr_key key = wr_table_key(&table, text);

    return wr_shard_get(wr_table_shard(&table, key.hash), &key);
}

static void retire(struct weir_group *one)
{
    struct wr_shard *shard = wr_table_shard(&table, one->hash);

    wr_map_remove(&shard->present, &one->in_table);
    one->evicted = true;
    wr_list_append(&shard->retired, &one->retired);
}

/* How often a walk meets each group, counted in group->peak. */
static void count_visits(struct weir_group *(*next)(struct wr_table *, struct weir_group *))
{
    for (int i = 0; i < GROUPS; i++)
        group[i]->peak = 0;
    for (struct weir_group *at = NULL; (at = next(&table, at));)
        at->peak++;
}

static void test_each_key_is_found(void **state)
{
    size_t count = 0;

    (void)state;
    for (int i = 0; i < GROUPS; i++)
        assert_ptr_equal(find(group[i]->key), group[i]);
    assert_null(find("k-1"));
    for (int i = 0; i < WR_SHARDS; i++) {
        count += table.shard[i].present.count;
        assert_in_range(table.shard[i].present.count, 1, table.shard[i].present.size);
    }
    assert_int_equal(count, GROUPS);
}

static void test_a_group_that_was_taken_out_is_not_found(void **state)
{
    (void)state;
    for (int i = 0; i < GROUPS; i += 3)
        retire(group[i]);
    for (int i = 0; i < GROUPS; i++)
        assert_ptr_equal(find(group[i]->key), i % 3 ? group[i] : NULL);
}

static void test_a_walk_meets_each_group_once_and_leaves_nothing_locked(void **state)
{
    (void)state;
    for (int i = 0; i < GROUPS; i += 3)
        retire(group[i]);
    count_visits(wr_table_walk);
    for (int i = 0; i < GROUPS; i++)
        assert_int_equal(group[i]->peak, 1);
    wr_table_lock_all(&table); /* or this would wait for ever */
    count_visits(wr_table_next);
    wr_table_unlock_all(&table);
    for (int i = 0; i < GROUPS; i++)
        assert_int_equal(group[i]->peak, i % 3 != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_key_is_found, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_group_that_was_taken_out_is_not_found, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_walk_meets_each_group_once_and_leaves_nothing_locked,
                                        setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
