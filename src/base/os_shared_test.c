/* Bells between processes: one whose owner is gone is an error, and no signal.
 * SPDX-License-Identifier: MIT */
#include "base/os.h"
#include "support/child.h"

#include <errno.h>
#include <pthread.h>

enum { RINGS = SANITIZED ? 5000 : 20000 };

static _Atomic bool over;
static int dir;

static void *comes_and_goes(void *arg)
{
    (void)arg;
    while (!atomic_load(&over)) {
        int bell = wr_os_bell_open(dir, "bell");
        if (bell >= 0)
            wr_os_close(bell);
    }
    return NULL;
}

static void rings_while_the_owner_comes_and_goes(void)
{
    pthread_t owner;
    int heard = 0, gone = 0;

    signal(SIGPIPE, SIG_DFL);
    CHECK_EQUAL(pthread_create(&owner, NULL, comes_and_goes, NULL), 0);
    for (int i = 0; i < RINGS; i++) {
        int rc = wr_os_bell_ring(dir, "bell");
        CHECK(rc == 0 || rc == -ENXIO || rc == -ENOENT);
        heard += rc == 0;
        gone += rc != 0;
    }
    atomic_store(&over, true);
    pthread_join(owner, NULL);
    printf("%d heard, %d gone\n", heard, gone);
}

static void test_an_owner_that_ends_while_its_bell_is_rung_ends_no_ringer(void)
{
    char path[64];

    snprintf(path, sizeof(path), "/dev/shm/weir-bell-%d", getpid());
    dir = wr_os_private_dir(path);
    CHECK(dir >= 0);
    CHECK_EQUAL(wr_os_bell_ring(dir, "bell"), -ENOENT);
    CHECK_EQUAL(in_child(rings_while_the_owner_comes_and_goes), 0);
    wr_os_file_remove(dir, "bell");
    wr_os_close(dir);
    rmdir(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_an_owner_that_ends_while_its_bell_is_rung_ends_no_ringer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
