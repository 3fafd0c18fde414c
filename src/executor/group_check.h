/* The equations beside struct weir_group, walked.
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_GROUP_CHECK_H
#define WR_EXECUTOR_GROUP_CHECK_H

#include <stdbool.h>

struct weir_group;

/* Whether they hold. For WR_ASSERT_SLOW, under the group's lock, after a step is complete: wr_group_refresh comes before.
 * Long queues are taken on trust, so that a step costs no more for them. */
bool wr_group_is_valid(struct weir_group *group);

#endif
