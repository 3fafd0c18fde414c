/* weir map: groups, and the limits they are under.
 * SPDX-License-Identifier: MIT */
#include "command/map_results.h"

#include <unistd.h>

/* ---- which group --------------------------------------------------------------------------------- */

static void test_a_group_is_a_column(void)
{
    assert_ran(MAP("a x\nb y\n", "-k", "-g", "2", "--", "echo", "{key}", "{}"), 0, "x a x\ny b y\n",
               "");
    assert_ran(MAP("a:x\n", "-d:", "--group-by", "2", "--", "echo", "{key}", "{1}"), 0, "x a\n",
               "");
}

static void test_a_group_is_a_field_by_name(void)
{
    assert_ran(MAP("id,city\n1,Rome\n", "--csv", "-g", "city", "--", "echo", "{key}{id}"), 0,
               "Rome1\n", "");
    assert_ran(
        MAP("{\"a\":{\"b\":\"in\"}}\n", "--jsonl", "-g", "a.b", "--", "echo", "{key}", "{a.b}"), 0,
        "in in\n", "");
}

static void test_a_group_is_the_match_of_a_regular_expression(void)
{
    assert_ran(MAP("u17-x\nu9\nnone\n", "-k", "-g", "/u([0-9]+)/", "--", "echo", "[{key}]{}"), 0,
               "[17]u17-x\n[9]u9\n[]none\n", "");
    assert_ran(MAP("ab12\n", "-g", "/[0-9]+/", "--", "echo", "[{key}]{}"), 0, "[12]ab12\n", "");
}

static void test_a_group_is_the_host_of_a_url(void)
{
    assert_ran(
        MAP("get http://u:p@Example.COM:80/x?y\nftp://[::1]/z\nno url\n", "-k", "-g", "host", "--",
            "printf", "[%s]", "{key}", "{seq}", "{}"),
        0,
        "[example.com][1][get http://u:p@Example.COM:80/x?y][::1][2][ftp://[::1]/z][][3][no url]",
        "");
}

static void test_a_group_is_the_host_in_a_field(void)
{
    assert_ran(MAP("n,url\n1,https://a.b/c\n", "--csv", "-g", "host:url", "--", "echo", "{key}{n}"),
               0, "a.b1\n", "");
}

static void test_a_group_is_a_text_with_placeholders(void)
{
    assert_ran(MAP("a b\n", "-g", "{2}/{1}", "--", "echo", "{key}", "{}"), 0, "b/a a b\n", "");
}

static void test_a_record_without_the_column_fails(void)
{
    const struct ran *r = MAP("a b\na\n", "-g", "2", "--", "echo");

    assert_status(r, 1);
    assert_string_equal(r->out, "a b\n");
    assert_contains(r->err, "weir: line 2: no column \"2\", only 1 column\n");
}

/* ---- how many ------------------------------------------------------------------------------------ */

/* The most that ran at once according to the results, of one group or of all. */
static int most_at_once(const struct results *results, const char *group)
{
    int most = 0;

    for (size_t a = 1; a <= results->count; a++) {
        double moment = number(results, a, "started");
        int n = 0;
        for (size_t b = 1; b <= results->count; b++)
            n += (!group || strcmp(text_of(results, b, "group"), group) == 0) &&
                 number(results, b, "started") <= moment && moment < number(results, b, "ended");
        most = n > most ? n : most;
    }
    return most;
}

static void test_jobs_is_how_many_run_at_once(void)
{
    static struct results results;

    /* all three have to be there before any goes on */
    assert_ran(MAP("1\n2\n3\n", "-j3", "--", "sh", "-c",
                   "touch at.$1; until [ -e at.1 ] && [ -e at.2 ] && [ -e at.3 ]; do :; done", "sh",
                   "{}"),
               0, "", "");
    assert_status(MAP("1\n2\n3\n4\n", "--jobs", "1", "--results", "one", "--", "true"), 0);
    read_results(&results, "one");
    assert_int_equal(most_at_once(&results, NULL), 1);
    free(results.text);
}

static void test_jobs_may_be_a_share_of_the_cpus(void)
{
    if (system("taskset -c 0 true 2>&1") != 0)
        skip();
    assert_ran(SCRIPT("1\n2\n",
                      "taskset -c 0 weir map -j 200% -- sh -c "
                      "'touch cpu.$1; until [ -e cpu.1 ] && [ -e cpu.2 ]; do :; done' sh"),
               0, "", "");
}

static void test_jobs_are_by_default_as_many_as_cpus(void)
{
    if (system("taskset -c 0 true 2>&1") != 0)
        skip();
    assert_ran(SCRIPT("1\n2\n3\n", "taskset -c 0 weir map -k -- sh -c 'echo $WEIR_SLOT $1' sh"), 0,
               "1 1\n1 2\n1 3\n", "");
}

static void test_per_group_limits_each_group(void)
{
    static struct results results;

    assert_status(MAP("a 1\na 2\nb 3\nb 4\na 5\nb 6\n", "-j6", "-J1", "-g1", "--results", "per",
                      "--", "sh", "-c", "sleep 0.03", "{}"),
                  0);
    read_results(&results, "per");
    assert_int_equal(most_at_once(&results, "a"), 1);
    assert_int_equal(most_at_once(&results, "b"), 1);
    free(results.text);
}

static void test_groups_run_beside_each_other(void)
{
    assert_ran(MAP("a\nb\n", "-j2", "-J1", "-g1", "--", "sh", "-c",
                   "touch side.$1; until [ -e side.a ] && [ -e side.b ]; do :; done", "sh", "{}"),
               0, "", "");
}

static void test_limit_is_for_groups_that_match_and_the_last_counts(void)
{
    static struct results results;

    assert_status(MAP("x1\nx1\nx1\nx2\nx2\nx2\ny\ny\ny\n", "-j9", "-g", "{}", "--limit", "x*=2",
                      "--limit", "?2=1", "--results", "limit", "--", "sh", "-c", "sleep 0.05",
                      "{}"),
                  0);
    read_results(&results, "limit");
    assert_true(most_at_once(&results, "x1") <= 2);
    assert_int_equal(most_at_once(&results, "x2"), 1);
    free(results.text);
}

static void test_a_limit_may_be_above_that_of_other_groups(void)
{
    assert_ran(MAP("a 1\na 2\n", "-j2", "-J1", "-g1", "--limit", "a=2", "--", "sh", "-c",
                   "touch up.$1; until [ -e up.1 ] && [ -e up.2 ]; do :; done", "sh", "{2}"),
               0, "", "");
}

static void test_a_full_group_does_not_hold_up_others(void)
{
    /* the first of a waits for b, which comes last */
    assert_ran(MAP("a 1\na 2\na 3\nb 4\n", "-j2", "-J1", "-g1", "--", "sh", "-c",
                   "touch full.$1; until [ -e full.4 ]; do :; done", "sh", "{2}"),
               0, "", "");
}

/* ---- how often ----------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* When those of a group started, in order; answers how many. */
static size_t starts(double *at, const struct results *results, const char *group)
{
    size_t n = 0;

    for (size_t i = 1; i <= results->count; i++)
        if (strcmp(text_of(results, i, "group"), group) == 0)
            at[n++] = number(results, i, "started");
    qsort(at, n, sizeof(*at), by_value);
    return n;
}

static void test_rate_spreads_the_starts_of_a_group(void)
{
    static struct results results;
    double at[16];

    assert_status(MAP("s 1\ns 2\nf 3\ns 4\ns 5\nf 6\n", "-j6", "-g1", "--rate", "s=10/s",
                      "--results", "rate", "--", "true"),
                  0);
    read_results(&results, "rate");
    assert_int_equal(starts(at, &results, "s"), 4);
    for (int i = 1; i < 4; i++)
        assert_true(at[i] - at[0] >= 0.1 * i - 0.03);
    free(results.text);
}

static void test_a_burst_starts_at_once_and_then_the_rate_holds(void)
{
    static struct results results;
    double at[16];

    assert_status(
        MAP("1\n2\n3\n4\n5\n", "-j5", "--rate", "2/200ms:3", "--results", "burst", "--", "true"),
        0);
    read_results(&results, "burst");
    assert_int_equal(starts(at, &results, ""), 5);
    assert_true(at[3] - at[0] >= 0.07);
    assert_true(at[4] - at[0] >= 0.17);
    free(results.text);
}

static void test_a_heavier_group_gets_more_turns(void)
{
    char input[1000] = "";
    int heavy = 0;
    const struct ran *r;

    for (int i = 0; i < 40; i++)
        strcat(input, "light\nheavy\n");
    r = MAP(input, "-j1", "-g1", "--weight", "heavy=4", "--", "echo");
    assert_status(r, 0);
    assert_int_equal(r->out_length, 480);
    for (int i = 0; i < 30; i++)
        heavy += r->out[i * 6] == 'h';
    assert_true(heavy >= 20);
}

static void test_groups_of_equal_weight_take_turns(void)
{
    char input[1000] = "";
    int first = 0;
    const struct ran *r;

    for (int i = 0; i < 40; i++)
        strcat(input, "a\n");
    for (int i = 0; i < 20; i++)
        strcat(input, "b\n");
    r = MAP(input, "-j1", "-g1", "--", "echo");
    assert_status(r, 0);
    for (int i = 0; i < 40; i++)
        first += r->out[i * 2] == 'b';
    assert_true(first >= 15);
}

/* ---- how far ahead ------------------------------------------------------------------------------- */

static void test_max_wait_is_how_far_the_reader_goes_ahead(void)
{
    static struct results results;

    assert_status(
        MAP("1\n2\n3\n4\n5\n6\n", "-j1", "--max-wait", "2", "--results", "ahead", "--", "true"), 0);
    read_results(&results, "ahead");
    for (size_t i = 1; i + 3 <= 6; i++)
        assert_true(number(&results, i + 3, "queued") >= number(&results, i, "ended") - 0.000002);
    free(results.text);
}

static void test_max_wait_may_be_nothing(void)
{
    assert_ran(MAP("1\n2\n3\n", "-j1", "--max-wait", "0", "--", "echo"), 0, "1\n2\n3\n", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_group_is_a_column),
        TEST(test_a_group_is_a_field_by_name),
        TEST(test_a_group_is_the_match_of_a_regular_expression),
        TEST(test_a_group_is_the_host_of_a_url),
        TEST(test_a_group_is_the_host_in_a_field),
        TEST(test_a_group_is_a_text_with_placeholders),
        TEST(test_a_record_without_the_column_fails),
        TEST(test_jobs_is_how_many_run_at_once),
        TEST(test_jobs_may_be_a_share_of_the_cpus),
        TEST(test_jobs_are_by_default_as_many_as_cpus),
        TEST(test_per_group_limits_each_group),
        TEST(test_groups_run_beside_each_other),
        TEST(test_limit_is_for_groups_that_match_and_the_last_counts),
        TEST(test_a_limit_may_be_above_that_of_other_groups),
        TEST(test_a_full_group_does_not_hold_up_others),
        TEST(test_rate_spreads_the_starts_of_a_group),
        TEST(test_a_burst_starts_at_once_and_then_the_rate_holds),
        TEST(test_a_heavier_group_gets_more_turns),
        TEST(test_groups_of_equal_weight_take_turns),
        TEST(test_max_wait_is_how_far_the_reader_goes_ahead),
        TEST(test_max_wait_may_be_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
