/* A policy after it was checked: our own copy, and what it says of a key.
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_POLICY_H
#define WR_EXECUTOR_POLICY_H

#include <weir/executor.h>

struct wr_policy {
    weir_policy given;        /* with defaults filled in; `groups` points to our copy           */
    weir_group_policy *group; /* sorted by key; the keys lie in the same allocation             */
};

/* What a new group starts with. */
struct wr_group_limits {
    uint32_t limit, inflight_max, queue_max;
    uint16_t weight;
};

int wr_policy_init(struct wr_policy *policy, const weir_policy *given, weir_message *message);
void wr_policy_fini(struct wr_policy *policy);

/* Calls the user's limit_for, so without any lock. */
struct wr_group_limits wr_policy_resolve(const struct wr_policy *policy, const char *key);

/* A limit as the header writes it, as we count: 0 if it is not valid. And back. */
uint32_t wr_limit_from(int64_t limit);
int64_t wr_limit_to(uint32_t limit);

/* The same for queue_max, where 0 is a fair value; false if it is not valid. */
bool wr_queue_from(uint32_t *out, int64_t queue_max);
int64_t wr_queue_to(uint32_t queue_max);

#endif
