/* The helper itself: servers start, answer, survive a kill -9 of theirs, and leave nothing behind.
 * SPDX-License-Identifier: MIT */
#include "redis/server.h"

#include "support/check.h"

#include <string.h>
#include <unistd.h>

static void test_a_server_starts_answers_and_leaves_nothing_behind(void)
{
    struct server server;
    char dir[sizeof(server.dir)];
    char *text;

    server_start(&server, NULL);
    memcpy(dir, server.dir, sizeof(dir));
    text = server_say(&server, "SET %s %d", "a", 7);
    assert_string_equal(text, "OK");
    free(text);
    assert_int_equal(server_do(&server, "GET a"), 7);
    server_kill(&server);
    server_again(&server);
    assert_int_equal(server_do(&server, "GET a"), -1); /* nothing is saved */
    server_stop(&server);
    assert_int_not_equal(access(dir, F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_server_starts_answers_and_leaves_nothing_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
