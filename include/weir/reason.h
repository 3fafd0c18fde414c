/* Reasons: why a task waits, or why it was rejected, cancelled or timed out. One table for all.
 *
 * The reason of a settled task is fixed when it settles. That of a waiting task is found out when weir_task_why asks,
 * and may be another one a moment later. SPDX-License-Identifier: MIT */
#ifndef WEIR_REASON_H
#define WEIR_REASON_H

#include <weir/time.h>

WEIR_BEGIN_DECLS

/* Name, number, label for logs, sentence. Numbers are ABI: below 128, added, never reused. A program may meet
 * numbers that are newer than its header: weir_reason_name and weir_reason_text know them. */
#define WEIR_REASONS(X)                                                           \
    X(NONE, 0, "none", "nothing holds it back")                                   \
    /* waiting */                                                                 \
    X(NO_WORKER, 1, "no_worker", "it is next; all workers are busy")              \
    X(BEHIND_OTHERS, 2, "behind_others", "other tasks of the group go first")     \
    X(GROUP_LIMIT, 3, "group_limit", "the group is at its limit")                 \
    X(GROUP_INFLIGHT, 4, "group_inflight", "the group is at its in-flight limit") \
    X(GLOBAL_INFLIGHT, 5, "global_inflight", "the executor is at its limit")      \
    X(DOMAIN_SLOTS, 6, "domain_slots", "the domain has no free slot")             \
    X(NO_THREAD, 7, "no_thread", "all threads are in use")                        \
    X(PAUSED, 8, "paused", "the group is paused")                                 \
    X(COOLING_DOWN, 9, "cooling_down", "the group is cooling down")               \
    X(PACED, 10, "paced", "the group's rate allows no more starts yet")           \
    /* started */                                                                 \
    X(RUNNING, 11, "running", "it is running")                                    \
    X(PENDING, 12, "pending", "its body has returned; it will be settled later")  \
    X(SETTLED, 13, "settled", "it has settled")                                   \
    /* rejected */                                                                \
    X(GLOBAL_QUEUE_FULL, 14, "global_queue_full", "the executor's queue is full") \
    X(GROUP_INFLIGHT_QUEUE_FULL, 15, "group_inflight_queue_full",                 \
      "the queue for the group's in-flight limit is full")                        \
    X(GROUP_QUEUE_FULL, 16, "group_queue_full", "the group's queue is full")      \
    X(DOMAIN_QUEUE_FULL, 17, "domain_queue_full", "the domain's queue is full")   \
    X(DOMAIN_RELEASED, 18, "domain_released",                                     \
      "the domain's slots were released to another domain")                       \
    X(SHUT_DOWN, 19, "shut_down", "the executor or the group was shut down")      \
    X(EVICTED, 20, "evicted", "the group was evicted")                            \
    /* timed out */                                                               \
    X(WAIT_DEADLINE, 21, "wait_deadline", "its deadline for waiting passed")      \
    X(RUN_DEADLINE, 22, "run_deadline", "its deadline for running passed")        \
    X(TOTAL_DEADLINE, 23, "total_deadline", "its total deadline passed")          \
    /* cancelled */                                                               \
    X(CANCELLED, 24, "cancelled", "it was cancelled")                             \
    X(GAVE_UP, 25, "gave_up", "it gave up without being asked to")                \
    /* flows: a run that is under way; a skipped node; one that others decided */ \
    X(FLOW, 26, "flow", "nodes of its flow are under way")                        \
    X(NOT_NEEDED, 27, "not_needed", "no node that could still start needs it")    \
    X(DEPENDENCY, 28, "dependency", "a node that it depends on did not succeed")  \
    /* waiting, or rejected */                                                    \
    X(GATED, 29, "gated", "a gate of the group is closed")                        \
    X(GUARDED, 30, "guarded", "a guard of the group allows no start yet")         \
    X(BREAKER_OPEN, 31, "breaker_open", "the group's circuit breaker is open")    \
    X(FLEET, 32, "fleet", "the fleet's limit is reached")

typedef enum weir_reason {
#define WEIR_REASON_ENUM_(name, number, label, text) WEIR_REASON_##name = (number),
    WEIR_REASONS(WEIR_REASON_ENUM_)
#undef WEIR_REASON_ENUM_
} weir_reason;

/* "group_limit" and the like, for logs; "?" for a number that is not in the table. Static storage. */
const char *weir_reason_name(weir_reason reason);

/* The sentence of the table; "?" for a number that is not there. Static storage. */
const char *weir_reason_text(weir_reason reason);

WEIR_END_DECLS

#endif
