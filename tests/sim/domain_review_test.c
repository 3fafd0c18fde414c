/* What an independent review of domains found.
 * SPDX-License-Identifier: MIT */
#include "support/domain_support.h"

static weir_domain_policy one_domain[] = { { .name = "A", .slots = 2 } };

static int nothing(void **value, void *arg)
{
    (void)arg;
    *value = NULL;
    return 0;
}

/* Tasks that nobody holds are handed on from body to body; a group whose last task goes that way wants nothing
 * any more, and must not be found in its ring. */
SIM_TEST(silent_tasks_are_handed_on, 3000)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = WEIR_NO_LIMIT,
                                                 .slots = 6, .domains = one_domain,
                                                 .domain_count = 1));

    for (int i = 0; i < 12; i++)
        CHECK(weir_submit_key(NULL, ex, i % 3 ? "g" : "h", nothing, NULL, NULL) == 0);
    check_domain_books(ex);
    weir_executor_free(ex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silent_tasks_are_handed_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
