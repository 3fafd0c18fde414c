/* Files of guards that this process cannot share: of another boot, another version, another pid namespace; and which users
 * may open them.
 * SPDX-License-Identifier: MIT */
#include "store/host.h"
#include "support/check.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[64], path[128];

static const weir_guard_options *hourly(void)
{
    static weir_guard_options opt;

    opt = *WEIR_RATE(.limit = 3, .period_ns = INT64_C(3600000000000));
    return &opt;
}

/* Opens the guard, says how many calls are left, and spends one. */
static int64_t left_and_spend(void)
{
    weir_guard_stats s = { .size = sizeof(s) };
    weir_permit p = WEIR_PERMIT;
    weir_store *store = NULL;
    weir_guard *g = NULL;

    CHECK_EQUAL(weir_store_host(&store, WEIR_HOST(.directory = directory), NULL), 0);
    CHECK_EQUAL(weir_guard_new(&g, store, "hourly", hourly(), NULL), 0);
    CHECK_EQUAL(weir_guard_stats_get(&s, g), 0);
    CHECK_EQUAL(weir_guard_enter(&p, g, 0), 0);
    weir_guard_unref(g);
    weir_store_free(store);
    return s.available;
}

static int refusal(weir_message *why)
{
    weir_store *store = NULL;
    weir_guard *g = NULL;
    int rc;

    CHECK_EQUAL(weir_store_host(&store, WEIR_HOST(.directory = directory), NULL), 0);
    rc = weir_guard_new(&g, store, "hourly", hourly(), why);
    weir_guard_unref(g);
    weir_store_free(store);
    return rc;
}

/* As the machine that wrote it would have: FNV-1a of all before, and of the name. */
static uint64_t sum_of(const struct wr_host_file *file)
{
    const unsigned char *h = (const unsigned char *)&file->header;
    uint64_t sum = 0xcbf29ce484222325u;

    for (size_t i = 0; i < offsetof(struct wr_host_header, sum); i++)
        sum = (sum ^ h[i]) * 0x100000001b3u;
    for (size_t i = 0; i < file->header.name_length; i++)
        sum = (sum ^ (unsigned char)file->name[i]) * 0x100000001b3u;
    return sum;
}

/* Changes the header, which adds up again afterwards. */
static void rewrite(void (*change)(struct wr_host_header *header))
{
    struct wr_host_file *file;
    struct stat st;
    int fd = open(path, O_RDWR);

    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    file = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(file != MAP_FAILED);
    CHECK_EQUAL(file->header.sum, sum_of(file));
    change(&file->header);
    file->header.sum = sum_of(file);
    munmap(file, (size_t)st.st_size);
    close(fd);
}

static void reboot(struct wr_host_header *header)
{
    header->machine[3] ^= 1; /* the first 16 bytes are the boot's */
}

static void other_processes(struct wr_host_header *header)
{
    header->machine[16] ^= 1; /* the rest is the pid namespace */
}

static void newer_layout(struct wr_host_header *header)
{
    header->layout++;
}

static void newer_guard(struct wr_host_header *header)
{
    header->version++;
}

static void test_spent_calls_do_not_outlive_a_reboot(void)
{
    CHECK_EQUAL(left_and_spend(), 3);
    CHECK_EQUAL(left_and_spend(), 2);
    rewrite(reboot);
    CHECK_EQUAL(left_and_spend(), 3);
    CHECK_EQUAL(left_and_spend(), 2);
    unlink(path);
}

static void refused_and_left_as_it_is(void (*change)(struct wr_host_header *header),
                                      const char *what)
{
    struct stat before, after;
    weir_message why;

    CHECK_EQUAL(left_and_spend(), 3);
    rewrite(change);
    CHECK_EQUAL(stat(path, &before), 0);
    CHECK_EQUAL(refusal(&why), WEIR_EFOREIGN);
    if (!CHECK(strstr(why.text, what) && strstr(why.text, path)))
        printf("%s\n", why.text);
    CHECK(stat(path, &after) == 0 && before.st_ino == after.st_ino);
    unlink(path);
}

static void test_another_version_of_weir_is_refused_and_its_file_left_as_it_is(void)
{
    refused_and_left_as_it_is(newer_layout, "made by another version of weir");
    refused_and_left_as_it_is(newer_guard, "made by another version of weir");
}

static void test_processes_that_cannot_be_told_alive_do_not_share(void)
{
    refused_and_left_as_it_is(other_processes, "made in another pid namespace");
}

static void test_files_are_closed_to_other_users(void)
{
    struct stat st;

    CHECK_EQUAL(left_and_spend(), 3);
    CHECK(stat(directory, &st) == 0 && (st.st_mode & 07777) == 0700);
    CHECK(stat(path, &st) == 0 && (st.st_mode & 07777) == 0600 && st.st_uid == geteuid());
    if (geteuid() == 0) { /* a file of another user is not taken for ours */
        weir_message why;
        CHECK_EQUAL(chown(path, 12345, 12345), 0);
        CHECK_EQUAL(refusal(&why), WEIR_EFOREIGN);
        CHECK(strstr(why.text, "not a plain file of this user"));
    }
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_spent_calls_do_not_outlive_a_reboot),
        TEST(test_another_version_of_weir_is_refused_and_its_file_left_as_it_is),
        TEST(test_processes_that_cannot_be_told_alive_do_not_share),
        TEST(test_files_are_closed_to_other_users),
    };
    int failed;

    snprintf(directory, sizeof(directory), "/dev/shm/weir-files-%d", getpid());
    snprintf(path, sizeof(path), "%s/guard-hourly", directory);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    return rmdir(directory) || failed;
}
