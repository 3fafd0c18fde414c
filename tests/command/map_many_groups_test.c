/* weir map: an unbounded set of groups, little memory.
 * SPDX-License-Identifier: MIT */
#include "command/command.h"

enum { MANY = SANITIZED ? 3000 : 60000 };

/* Numbers from 1, a line each, in a file: each will be a group. */
static void write_numbers(const char *name, int count)
{
    FILE *file = fopen(scratch(name), "w");

    assert_non_null(file);
    for (int i = 1; i <= count; i++)
        fprintf(file, "%d\n", i);
    assert_int_equal(fclose(file), 0);
}

/* The most memory, in KiB, of a run over that many groups of a record each. */
static long peak_of_groups(int count)
{
    const struct ran *r;

    write_numbers("each", count);
    r = sound(command_run(&(struct command){
        .argv = WORDS(WEIR_COMMAND, "map", "-j4", "-g1", "--max-wait", "100", "--rate",
                      "*=1000000/s", "--weight", "*=2", "-a", "each", "--", MAP_CHILD, "say", "{}"),
        .count_only = true,
    }));
    assert_status(r, 0);
    return r->peak_kb;
}

static void test_groups_that_are_done_take_no_memory_whatever_their_rules(void)
{
    enum { FEWER = MANY / 4, BYTES = 100 }; /* a group that is remembered takes 700 */
    long few = peak_of_groups(FEWER), many = peak_of_groups(MANY);

    print_message("%d groups: %ld KiB, %d groups: %ld KiB\n", FEWER, few, MANY, many);
    if (!SANITIZED) /* which keeps freed memory for a while */
        assert_true((many - few) * 1024 < (long)(MANY - FEWER) * BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_groups_that_are_done_take_no_memory_whatever_their_rules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
