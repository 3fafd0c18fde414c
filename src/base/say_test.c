/* Tests of sentences.
 * SPDX-License-Identifier: MIT */
#include "base/say.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_a_message_grows_until_it_is_full(void **state)
{
    weir_message message = { "" };

    (void)state;
    wr_say(NULL, "%d", 1);
    wr_say(&message, "a %s", "task");
    wr_say(&message, " of %d", 2);
    assert_string_equal(message.text, "a task of 2");
    for (size_t i = 0; i < sizeof(message.text); i++)
        wr_say(&message, "%d", 7);
    assert_int_equal(strlen(message.text), sizeof(message.text) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_message_grows_until_it_is_full),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
