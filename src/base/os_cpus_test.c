/* SPDX-License-Identifier: MIT */
#include "base/os_cpus.h"

#include "base/os.h"

#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* A tree of our own, in place of /sys/fs/cgroup and /proc/self/cgroup. */
static char root[] = "/tmp/weir-cpus-XXXXXX";
static char membership[64];

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *walk)
{
    (void)s;
    (void)type;
    (void)walk;
    return remove(path);
}

static int setup(void **state)
{
    (void)state;
    strcpy(root, "/tmp/weir-cpus-XXXXXX");
    if (!mkdtemp(root))
        return -1;
    snprintf(membership, sizeof(membership), "%s/membership", root);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Writes root/path, with the directories it needs. */
static void put(const char *path, const char *text)
{
    char full[PATH_MAX];
    FILE *f;

    snprintf(full, sizeof(full), "%s/%s", root, path);
    for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(full, 0700);
        *slash = '/';
    }
    f = fopen(full, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static unsigned long quota(const char *groups)
{
    put("membership", groups);
    return wr_os_quota_millicpus(root, membership);
}

static unsigned workers_of_4(const char *groups)
{
    return wr_os_cpus_for(4, quota(groups));
}

/* ---- version 2 ------------------------------------------------------------------------------- */

static void test_a_quota_is_rounded_up_to_whole_workers(void **state)
{
    static const struct {
        const char *text;
        unsigned long millicpus;
        unsigned workers;
    } cases[] = {
        { "50000 100000\n", 500, 1 },   { "100000 100000\n", 1000, 1 },
        { "100001 100000\n", 1001, 2 }, { "150000 100000\n", 1500, 2 },
        { "300000 100000\n", 3000, 3 }, { "400000 100000\n", 4000, 4 },
        { "800000 100000\n", 8000, 4 }, { "1000 100000\n", 10, 1 },
        { "1 1000000\n", 1, 1 },        { "max 100000\n", 0, 4 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        put("app/cpu.max", cases[i].text);
        assert_int_equal(quota("0::/app\n"), cases[i].millicpus);
        assert_int_equal(workers_of_4("0::/app\n"), cases[i].workers);
    }
}

static void test_the_tightest_quota_on_the_way_up_counts(void **state)
{
    (void)state;
    put("a/b/c/cpu.max", "300000 100000\n");
    put("a/b/cpu.max", "max 100000\n");
    put("a/cpu.max", "150000 100000\n");
    assert_int_equal(workers_of_4("0::/a/b/c\n"), 2);
    put("a/b/c/cpu.max", "50000 100000\n");
    assert_int_equal(workers_of_4("0::/a/b/c\n"), 1);
    put("cpu.max", "20000 100000\n"); /* the root itself, as a container sees its own group */
    assert_int_equal(quota("0::/a/b/c\n"), 200);
}

static void test_the_group_may_be_the_root(void **state)
{
    (void)state;
    assert_int_equal(quota("0::/\n"), 0);
    put("cpu.max", "250000 100000\n");
    assert_int_equal(workers_of_4("0::/\n"), 3);
}

static void test_a_group_that_cannot_be_seen_is_passed_over(void **state)
{
    (void)state;
    put("cpu.max", "150000 100000\n");
    assert_int_equal(workers_of_4("0::/docker/0123/not/here\n"), 2);
    assert_int_equal(workers_of_4("0::/../../elsewhere\n"), 2);
}

static void test_groups_beside_ours_do_not_count(void **state)
{
    (void)state;
    put("app/cpu.max", "300000 100000\n");
    put("app2/cpu.max", "50000 100000\n");
    put("ap/cpu.max", "50000 100000\n");
    assert_int_equal(workers_of_4("0::/app\n"), 3);
}

/* ---- version 1 ------------------------------------------------------------------------------- */

static void put_v1(const char *directory, const char *cfs_quota, const char *cfs_period)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", directory);
    put(path, cfs_quota);
    snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", directory);
    put(path, cfs_period);
}

static void test_version_1_has_two_files(void **state)
{
    (void)state;
    put_v1("cpu/app", "50000\n", "100000\n");
    assert_int_equal(workers_of_4("3:cpu:/app\n"), 1);
    put_v1("cpu/app", "100000\n", "100000\n");
    assert_int_equal(workers_of_4("3:cpu:/app\n"), 1);
    put_v1("cpu/app", "150000\n", "100000\n");
    assert_int_equal(workers_of_4("3:cpu:/app\n"), 2);
    put_v1("cpu/app", "-1\n", "100000\n");
    assert_int_equal(quota("3:cpu:/app\n"), 0);
    put_v1("cpu", "350000\n", "100000\n");
    assert_int_equal(quota("3:cpu:/app\n"), 3500);
}

static void test_version_1_may_mount_controllers_together(void **state)
{
    static const char *const together[] = { "cpu,cpuacct", "cpuacct,cpu", "cpuset,cpu,cpuacct" };
    (void)state;
    for (size_t i = 0; i < sizeof(together) / sizeof(together[0]); i++) {
        char directory[64], groups[128];
        snprintf(directory, sizeof(directory), "%s/app", together[i]);
        snprintf(groups, sizeof(groups), "5:memory:/\n4:%s:/app\n1:name=systemd:/app\n",
                 together[i]);
        put_v1(directory, "150000\n", "100000\n");
        assert_int_equal(workers_of_4(groups), 2);
    }
    put_v1("cpu/linked", "250000\n", "100000\n"); /* the usual link beside such a mount */
    assert_int_equal(workers_of_4("4:cpu,cpuacct:/linked\n"), 3);
}

static void test_other_controllers_are_not_taken_for_cpu(void **state)
{
    (void)state;
    put_v1("cpuset/app", "50000\n", "100000\n");
    put_v1("cpuacct/app", "50000\n", "100000\n");
    put_v1("cpuset,cpuacct/app", "50000\n", "100000\n");
    put_v1("cpu/app", "50000\n", "100000\n");
    assert_int_equal(quota("3:cpuset:/app\n"), 0);
    assert_int_equal(quota("3:cpuacct:/app\n"), 0);
    assert_int_equal(quota("3:cpuset,cpuacct:/app\n2:memory:/app\n"), 0);
    assert_int_equal(quota("3:name=cpu:/app\n"), 0);
}

static void test_both_versions_at_once_give_the_tighter(void **state)
{
    (void)state;
    put_v1("cpu/app", "150000\n", "100000\n");
    put("app/cpu.max", "300000 100000\n");
    assert_int_equal(quota("3:cpu:/app\n0::/app\n"), 1500);
    put("app/cpu.max", "50000 100000\n");
    assert_int_equal(quota("3:cpu:/app\n0::/app\n"), 500);
}

/* ---- files that are missing or make no sense ---------------------------------------------------- */

static void test_without_files_there_is_no_quota(void **state)
{
    (void)state;
    assert_int_equal(wr_os_quota_millicpus(root, "/nonexistent"), 0);
    assert_int_equal(wr_os_quota_millicpus("/nonexistent", membership), 0);
    assert_int_equal(quota(""), 0);
    assert_int_equal(quota("0::/app\n"), 0);
    put("cpu/app/cpu.cfs_quota_us", "50000\n"); /* without its period */
    assert_int_equal(quota("1:cpu:/app\n"), 0);
}

static void test_nonsense_in_a_quota_is_no_quota(void **state)
{
    static const char *const nonsense[] = {
        "",           "\n",          "max\n",
        "max max\n",  "50000\n",     "0 0\n",
        "50000 0\n",  "-1 100000\n", "50000 -100000\n",
        "x 100000\n", "50000 x\n",   "\xff\xfe\xfd 1\n",
        "0 100000\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
        put("app/cpu.max", nonsense[i]);
        assert_int_equal(quota("0::/app\n"), 0);
    }
    put_v1("cpu/app", "x\n", "100000\n");
    assert_int_equal(quota("1:cpu:/app\n"), 0);
    put_v1("cpu/app", "50000\n", "0\n");
    assert_int_equal(quota("1:cpu:/app\n"), 0);
    put_v1("cpu/app", "50000\n", "\n");
    assert_int_equal(quota("1:cpu:/app\n"), 0);
}

static void test_a_quota_beyond_all_measure_does_not_bind(void **state)
{
    static const char *const huge[] = {
        "9223372036854775807 100000\n",
        "9223372036854775807 1\n",
        "9223372036854775807 9223372036854775807\n",
        "18446744073709551615 100000\n",
        "99999999999999999999999999 100000\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(huge) / sizeof(huge[0]); i++) {
        put("app/cpu.max", huge[i]);
        assert_in_range(workers_of_4("0::/app\n"), i == 2 ? 1 : 4, 4);
    }
}

static void test_nonsense_in_the_membership_is_passed_over(void **state)
{
    char groups[3 * PATH_MAX];
    (void)state;
    put("app/cpu.max", "150000 100000\n");
    assert_int_equal(quota("nonsense\n\n:\n::\n0:\n0::/app\n"), 1500);
    assert_int_equal(quota("0::/app"), 1500); /* no newline at the end */
    memset(groups, 'x', sizeof(groups));      /* a line longer than any path */
    memcpy(groups, "0::/", 4);
    strcpy(groups + sizeof(groups) - 12, "\n0::/app\n");
    assert_int_equal(quota(groups), 1500);
}

/* ---- sums ------------------------------------------------------------------------------------ */

static void test_affinity_bounds_the_cpus_a_quota_grants(void **state)
{
    (void)state;
    assert_int_equal(wr_os_cpus_for(4, 0), 4);
    assert_int_equal(wr_os_cpus_for(4, 1), 1);
    assert_int_equal(wr_os_cpus_for(4, 1000), 1);
    assert_int_equal(wr_os_cpus_for(4, 1001), 2);
    assert_int_equal(wr_os_cpus_for(4, 100000), 4);
    assert_int_equal(wr_os_cpus_for(1, 8000), 1);
    assert_int_equal(wr_os_cpus_for(0, 0), 1);
    assert_int_equal(wr_os_cpus_for(0, 8000), 1);
    assert_int_equal(wr_os_cpus_for(UINT_MAX, 0), UINT_MAX);
    assert_int_equal(wr_os_cpus_for(4, ULONG_MAX), 4);
}

static void test_this_machine_has_a_cpu(void **state)
{
    (void)state;
    assert_in_range(wr_os_cpus(), 1, (unsigned)sysconf(_SC_NPROCESSORS_CONF));
}

int main(void)
{
#define CPU_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        CPU_TEST(test_a_quota_is_rounded_up_to_whole_workers),
        CPU_TEST(test_the_tightest_quota_on_the_way_up_counts),
        CPU_TEST(test_the_group_may_be_the_root),
        CPU_TEST(test_a_group_that_cannot_be_seen_is_passed_over),
        CPU_TEST(test_groups_beside_ours_do_not_count),
        CPU_TEST(test_version_1_has_two_files),
        CPU_TEST(test_version_1_may_mount_controllers_together),
        CPU_TEST(test_other_controllers_are_not_taken_for_cpu),
        CPU_TEST(test_both_versions_at_once_give_the_tighter),
        CPU_TEST(test_without_files_there_is_no_quota),
        CPU_TEST(test_nonsense_in_a_quota_is_no_quota),
        CPU_TEST(test_a_quota_beyond_all_measure_does_not_bind),
        CPU_TEST(test_nonsense_in_the_membership_is_passed_over),
        cmocka_unit_test(test_affinity_bounds_the_cpus_a_quota_grants),
        cmocka_unit_test(test_this_machine_has_a_cpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
