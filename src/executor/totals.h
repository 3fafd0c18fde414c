/* Totals: what the tasks of a group came to, summed over groups and kept when one goes.
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_TOTALS_H
#define WR_EXECUTOR_TOTALS_H

#include "base/list.h"
#include "base/lock.h"
#include "base/map.h"

struct weir_group;

/* The figures of a group: type, name in every snapshot, where `group` has it, unit, and meaning. Sums and snapshots are
 * made from these lists. A gauge is what there is now, and 0 once the group is gone; a counter is what there ever was. */
#define WR_TASK_GAUGES(X)                                                                     \
    X(uint64_t, running, group->bodies, "tasks", "Bodies that have started and not returned") \
    X(uint64_t, inflight, (uint64_t)group->bodies + group->pending, "tasks",                  \
      "Tasks that are running or pending")                                                    \
    X(uint64_t, waiting, group->sums.queued, "tasks", "Tasks that wait in the queue")
#define WR_TASK_COUNTERS(X)                                                          \
    X(uint64_t, submitted, wr_group_submitted(group), "tasks", "Tasks submitted")    \
    X(uint64_t, started, group->started, "tasks", "Tasks that started")              \
    X(uint64_t, succeeded, group->succeeded, "tasks", "Tasks that succeeded")        \
    X(uint64_t, failed, group->failed, "tasks", "Tasks that failed")                 \
    X(uint64_t, cancelled, group->cancelled, "tasks", "Tasks that were cancelled")   \
    X(uint64_t, rejected, group->extras ? group->extras->refused.total : 0, "tasks", \
      "Tasks that were rejected")                                                    \
    X(uint64_t, timed_out, group->extras ? group->extras->timed_out : 0, "tasks",    \
      "Tasks that a deadline ended")
#define WR_TIME_COUNTERS(X)                                                                  \
    X(int64_t, waited_ns, group->waited_ns, "ns", "Time from submit to start, of all tasks") \
    X(int64_t, ran_ns, group->ran_ns, "ns", "Time from start to return, of all bodies")
#define WR_COUNTERS(X) WR_TASK_COUNTERS(X) WR_TIME_COUNTERS(X)
#define WR_FIGURES(X)  WR_TASK_GAUGES(X) WR_COUNTERS(X)

struct wr_totals {
    uint64_t generations; /* that the sum is over */
#define DECLARE(type, name, ...) type name;
    WR_FIGURES(DECLARE)
#undef DECLARE
};

void wr_totals_add(struct wr_totals *to, const struct wr_totals *from);

/* Adds a group's. Under its lock, or when nothing else can reach it. */
void wr_totals_add_group(struct wr_totals *to, const struct weir_group *group);

/* Totals of groups that are gone, by key, if the policy keeps them. Under its lock:
 *     map.count == length of by_age <= max; entries that had to go are in `other` */
struct wr_archive {
    struct wr_lock lock;
    size_t max; /* 0: keeps none                           */
    struct wr_map map;
    struct wr_list by_age; /* the entry whose group went first is first */
    struct wr_totals other;
};

void wr_archive_init(struct wr_archive *archive, size_t max);
void wr_archive_fini(struct wr_archive *archive);

/* Adds the totals of a group that goes. Without memory they go to `other`. */
void wr_archive_add(struct wr_archive *archive, const struct wr_key *key,
                    const struct wr_totals *totals);

/* Adds what is kept of that key, or (NULL) of those that had to go, to `to`. */
void wr_archive_sum(struct wr_totals *to, struct wr_archive *archive, const struct wr_key *key);

#endif
