/* Shared by tests of guards of the host: a directory of their own, children, memory that these share.
 * SPDX-License-Identifier: MIT */
#ifndef WR_TESTS_HOST_GUARDS_H
#define WR_TESTS_HOST_GUARDS_H

#include "support/child.h"
#include "support/seed.h"

#include <sys/mman.h>
#include <sys/stat.h>

static char directory[128];

static inline weir_store *host(void)
{
    weir_store *store = NULL;
    weir_message why;

    if (!CHECK(weir_store_host(&store, WEIR_HOST(.directory = directory), &why) == 0))
        printf("%s\n", why.text);
    return store;
}

static inline weir_guard *open_guard(weir_store *store, const char *name,
                                     const weir_guard_options *opt)
{
    weir_guard *guard = NULL;
    weir_message why;

    if (!CHECK(weir_guard_new(&guard, store, name, opt, &why) == 0))
        printf("%s\n", why.text);
    return guard;
}

static inline weir_guard_stats figures(weir_guard *guard)
{
    weir_guard_stats s = { .size = sizeof(s) };

    CHECK_EQUAL(weir_guard_stats_get(&s, guard), 0);
    return s;
}

static inline int files(const char *prefix)
{
    DIR *d = opendir(directory);
    int count = 0;

    for (struct dirent *e = readdir(d); e; e = readdir(d))
        count += strncmp(e->d_name, prefix, strlen(prefix)) == 0;
    closedir(d);
    return count;
}

static inline pid_t fork_child(void (*run)(void *), void *arg)
{
    pid_t pid;

    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        atomic_store(&checks_failed, 0);
        run(arg);
        fflush(NULL);
        _exit(atomic_load(&checks_failed) ? 1 : 0);
    }
    return pid;
}

static inline void *shared(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(memory != MAP_FAILED);
    return memory;
}

/* Runs the tests in their directory, which is gone afterwards. */
#define HOST_TESTS(tests) host_tests_end(cmocka_run_group_tests(tests, host_tests_begin, NULL))

static inline int host_tests_begin(void **state)
{
    (void)state;
    seed_init();
    snprintf(directory, sizeof(directory), "/dev/shm/weir-test-%d", getpid());
    return mkdir(directory, 0700);
}

static inline int host_tests_end(int failed)
{
    char remove[160];

    snprintf(remove, sizeof(remove), "rm -rf %s", directory);
    return system(remove) || failed;
}

#endif
