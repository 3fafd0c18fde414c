/* weir map: many tasks, much output, little memory.
 * SPDX-License-Identifier: MIT */
#include "command/command.h"
#include "command/map_child.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MANY = SANITIZED ? 3000 : 30000, SOME = SANITIZED ? 1000 : 5000 };

/* Numbers from 1, a line each, in a file. */
static void write_numbers(const char *name, int count)
{
    FILE *file = fopen(scratch(name), "w");

    assert_non_null(file);
    for (int i = 1; i <= count; i++)
        fprintf(file, "%d\n", i);
    assert_int_equal(fclose(file), 0);
}

static void test_every_line_of_very_many_runs_exactly_once(void)
{
    char *seen = calloc(MANY + 1, 1), *at;
    const struct ran *r;
    int lines = 0;

    write_numbers("many", MANY);
    r = sound(command_run(&(struct command){
        .argv = WORDS(WEIR_COMMAND, "map", "-j4", "-a", "many", "--", MAP_CHILD, "say", "{}"),
    }));
    assert_status(r, 0);
    for (at = r->out; *at; lines++) {
        long n = strtol(at, &at, 10);
        assert_in_range(n, 1, MANY);
        assert_int_equal(seen[n]++, 0);
        assert_true(*at++ == '\n');
    }
    assert_int_equal(lines, MANY);
    if (!SANITIZED)
        assert_true(r->peak_kb < 64 << 10);
    free(seen);
}

/* ---- limits -------------------------------------------------------------------------------------- */

static struct gauge *map_gauges(const char *name)
{
    int fd = open(scratch(name), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    struct gauge *gauges;

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, GAUGES * sizeof(struct gauge)), 0);
    gauges = mmap(NULL, GAUGES * sizeof(struct gauge), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(gauges != MAP_FAILED);
    close(fd);
    return gauges;
}

/* Groups 1 to 20: 7 may run one, 8 and 9 three, the others two at once; twelve in all. */
static void test_limits_hold_whatever_happens(void)
{
    enum { JOBS = 12, GROUPS = 20 };
    struct gauge *gauges = map_gauges("gauges");
    FILE *file = fopen(scratch("groups"), "w");
    unsigned state = 1;
    int ran = 0;

    assert_non_null(file);
    for (int i = 0; i < SOME; i++) {
        state = state * 1103515245 + 12345;
        fprintf(file, "%u\n", (state >> 16) % GROUPS + 1);
    }
    assert_int_equal(fclose(file), 0);
    assert_status(
        sound(command_run(&(struct command){
            .argv = WORDS(WEIR_COMMAND, "map", "-j12", "-J2", "-g1", "--limit", "7=1", "--limit",
                          "[89]=3", "-a", "groups", "--", MAP_CHILD, "overlap", "gauges", "{}"),
        })),
        0);
    assert_int_equal(gauges[0].ran, SOME);
    assert_in_range(gauges[0].peak, 2, JOBS);
    for (int g = 1; g <= GROUPS; g++) {
        assert_in_range(gauges[g].peak, 1, g == 7 ? 1 : g == 8 || g == 9 ? 3 : 2);
        assert_int_equal(gauges[g].now, 0);
        ran += gauges[g].ran;
    }
    assert_int_equal(ran, SOME);
    /* slots: never two at once in one, and none beyond -j */
    for (int s = 0; s < GAUGES - SLOT_GAUGES; s++)
        assert_in_range(gauges[SLOT_GAUGES + s].peak, 0, s >= 1 && s <= JOBS ? 1 : 0);
    munmap(gauges, GAUGES * sizeof(struct gauge));
}

/* ---- output -------------------------------------------------------------------------------------- */

static const struct ran *much(const char *option, size_t more)
{
    const struct ran *r = sound(command_run(&(struct command){
        .argv = WORDS(WEIR_COMMAND, "map", option, "--", "head", "-c", "{}", "/dev/zero"),
        .input = "268435456\n",
        .count_only = true,
    }));

    assert_status(r, 0);
    assert_int_equal(r->out_length, 268435456 + more);
    if (!SANITIZED)
        assert_true(r->peak_kb < 64 << 10);
    return r;
}

static void test_much_output_does_not_pile_up_in_memory(void)
{
    much("-j2", 0);
}

static void test_much_output_as_it_comes_does_not_pile_up_either(void)
{
    much("--line-buffer", 1); /* which ends the line */
}

static void test_a_slow_reader_slows_the_commands_down(void)
{
    /* The reader waits until the command has written much more than may wait; then all of it comes. */
    const struct ran *r =
        SCRIPT("1\n", "weir map --line-buffer -- sh -c 'yes | head -c 100000000; touch "
                      "slow.done' sh {} | { sleep 0.5; [ -e slow.done ] && echo early; wc -c; }");

    assert_ran(r, 0, "100000000\n", "");
}

static void test_many_records_ahead_are_bounded_in_memory(void)
{
    /* 200 MB of lines behind one that takes its time. */
    const struct ran *r;

    if (SANITIZED)
        skip();
    r = sound(command_run(&(struct command){
        .argv =
            WORDS("/bin/sh", "-c",
                  "(echo first; yes \"$(head -c 100000 /dev/zero | tr '\\0' x)\" | head -n 2000) | "
                  "{ weir map -j1 --halt now -- sh -c 'sleep 1; exit 1' x; }"),
    }));
    assert_true(r->peak_kb < 256 << 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_every_line_of_very_many_runs_exactly_once),
        TEST(test_limits_hold_whatever_happens),
        TEST(test_much_output_does_not_pile_up_in_memory),
        TEST(test_much_output_as_it_comes_does_not_pile_up_either),
        TEST(test_a_slow_reader_slows_the_commands_down),
        TEST(test_many_records_ahead_are_bounded_in_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
