/* The file of a journal: where it may lie.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/journal_file.h"

#include "support/check.h"

static void test_file_systems_of_other_machines_are_known(void)
{
    assert_true(journal_is_remote(0x6969));      /* NFS   */
    assert_true(journal_is_remote(0xff534d42));  /* CIFS  */
    assert_true(journal_is_remote(0x65735546));  /* FUSE  */
    assert_false(journal_is_remote(0xef53));     /* ext4  */
    assert_false(journal_is_remote(0x01021994)); /* tmpfs */
    assert_false(journal_is_remote(0x9123683e)); /* btrfs */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_file_systems_of_other_machines_are_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
