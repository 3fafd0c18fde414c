/* Tests of maps: keys of all lengths, chains that grow, and what is left when nodes go.
 * SPDX-License-Identifier: MIT */
#include "base/map.h"

#include "base/assert.h"
#include "support/check.h"

enum { ENTRIES = 1000, LONGEST = 40 };

struct entry {
    struct wr_map_node node;
    char text[];
};

static struct wr_map map;
static struct entry *entry[ENTRIES];

static struct wr_key key_of(const char *text, uint32_t hash)
{
    return (struct wr_key){ text, strlen(text), hash };
}

/* Exactly as large as it must be, so that a look beyond it is seen. */
static struct entry *entry_new(const char *text, uint32_t hash)
{
    size_t length = strlen(text);
    struct entry *made = calloc(1, sizeof(*made) + wr_key_room(length));

    assert_non_null(made);
    made->node.hash = hash;
    memcpy(made->text, text, length);
    return made;
}

/* So that several share each hash, and all share chains. */
static uint32_t hash_of(int i)
{
    return (uint32_t)i / 3 * 5;
}

static int setup(void **state)
{
    char text[16];

    (void)state;
    wr_map_init(&map);
    for (int i = 0; i < ENTRIES; i++) {
        snprintf(text, sizeof(text), "k%d", i);
        entry[i] = entry_new(text, hash_of(i));
        wr_map_put(&map, &entry[i]->node);
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    wr_map_fini(&map);
    for (int i = 0; i < ENTRIES; i++)
        free(entry[i]);
    return 0;
}

/* It lies without room behind it, as a caller's may. */
static struct wr_map_node *get(const char *text, uint32_t hash)
{
    char *exact = strdup(text);
    struct wr_key key = key_of(exact, hash);
    struct wr_map_node *found = wr_map_get(&map, &key);

    free(exact);
    return found;
}

static void test_each_key_is_found(void **state)
{
    (void)state;
    for (int i = 0; i < ENTRIES; i++)
        assert_ptr_equal(get(entry[i]->text, hash_of(i)), &entry[i]->node);
    assert_null(get("k1", hash_of(4)));
    assert_null(get("no such key", hash_of(4)));
    assert_int_equal(map.count, ENTRIES);
    assert_in_range(map.count, map.size / 2, map.size);
}

static void test_removed_entries_are_not_found_and_the_others_are(void **state)
{
    (void)state;
    for (int i = 0; i < ENTRIES; i += 3)
        wr_map_remove(&map, &entry[i]->node);
    for (int i = 0; i < ENTRIES; i++)
        assert_ptr_equal(get(entry[i]->text, hash_of(i)), i % 3 ? &entry[i]->node : NULL);
    assert_int_equal(map.count, ENTRIES - (ENTRIES + 2) / 3);
}

static void test_a_walk_meets_each_node_once(void **state)
{
    (void)state;
    for (struct wr_map_node *at = NULL; (at = wr_map_next(&map, at));)
        at->number++;
    for (int i = 0; i < ENTRIES; i++)
        assert_int_equal(entry[i]->node.number, 1);
}

static void test_an_empty_map_has_nothing(void **state)
{
    struct wr_map empty;
    struct wr_key key = key_of("", 7);

    (void)state;
    wr_map_init(&empty);
    assert_null(wr_map_get(&empty, &key));
    assert_null(wr_map_next(&empty, NULL));
    wr_map_fini(&empty);
}

/* Of each length: the key itself, and keys that differ in one byte, or are shorter or longer. */
static void test_keys_of_all_lengths_are_told_apart(void **state)
{
    char text[LONGEST + 2], other[LONGEST + 2];

    (void)state;
    for (size_t length = 0; length <= LONGEST; length++) {
        struct entry *stored;
        struct wr_key key;
        memset(text, 'x', length);
        text[length] = '\0';
        stored = entry_new(text, 1);
        key = key_of(text, 1);
        assert_true(wr_key_is(&key, stored->text));
        for (size_t at = 0; at <= length; at++) {
            memcpy(other, text, sizeof(text));
            other[at] = at < length ? 'y' : 'x'; /* behind the last: it is longer */
            other[length + (at == length)] = '\0';
            key = key_of(other, 1);
            assert_false(wr_key_is(&key, stored->text));
            other[at] = '\0';
            key = key_of(other, 1);
            assert_int_equal(wr_key_is(&key, stored->text), at == length);
        }
        free(stored);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_key_is_found, setup, teardown),
        cmocka_unit_test_setup_teardown(test_removed_entries_are_not_found_and_the_others_are,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_walk_meets_each_node_once, setup, teardown),
        cmocka_unit_test(test_an_empty_map_has_nothing),
        cmocka_unit_test(test_keys_of_all_lengths_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
