/* Shared by random lives of executors: the names of their domains and groups, the way they pick, and small bodies.
 * SPDX-License-Identifier: MIT */
#ifndef WR_TESTS_LIFE_SUPPORT_H
#define WR_TESTS_LIFE_SUPPORT_H

#include "support/domain_support.h"

enum { DOMAINS = 4, GROUPS = 8 };

static const char *const domain_name[DOMAINS] = { "default", "max", "reserved", "own" };
static const char *const group_name[GROUPS] = { "g0", "g1", "g2", "g3", "g4", "g5", "g6", "g7" };

static inline uint32_t pick(uint32_t below)
{
    return (uint32_t)(weir_sim_random() % below);
}

/* Groups belong to domains in turn. */
static inline int domain_for(const char **domain, const char *key, void *arg)
{
    (void)arg;
    *domain = domain_name[(key[1] - '0') % DOMAINS];
    return 0;
}

static inline int sleeps(void **value, void *ms_arg)
{
    *value = NULL;
    return weir_sleep(weir_now() + (int64_t)(intptr_t)ms_arg * MS);
}

/* ---- tasks that are settled from outside --------------------------------------------------------- */

enum { PENDING_MAX = 128 };

static struct {
    _Atomic int count;
    weir_task *_Atomic task[PENDING_MAX];
} pending;

/* Returns what a body returns that stays pending; 0 if there is no room, or the caller runs it. */
static inline int stay_pending(void)
{
    weir_task *self = weir_task_self();
    int at = self ? pending.count++ : PENDING_MAX;

    if (at >= PENDING_MAX)
        return 0;
    pending.task[at] = weir_task_ref(self);
    return WEIR_PENDING;
}

static inline int pends(void **value, void *arg)
{
    (void)arg;
    *value = NULL;
    return stay_pending();
}

/* About one in `once_in`; all of them with 1. Answers how many. */
static inline int settle_some(uint32_t once_in)
{
    int count = pending.count < PENDING_MAX ? pending.count : PENDING_MAX, settled = 0;

    for (int i = 0; i < count; i++) {
        weir_task *task = pick(once_in) ? NULL : atomic_exchange(&pending.task[i], NULL);
        if (!task)
            continue;
        weir_task_settle(task, pick(4) ? 0 : -EIO, NULL);
        weir_task_unref(task);
        settled++;
    }
    return settled;
}

#endif
