/* Why a task waits, or what became of it: one vocabulary for waiting, rejection and cancellation.
 *
 * A reason is decided once, where the task was refused, by the node of the tree that refused it.
 * SPDX-License-Identifier: MIT */
#ifndef WEIR_REASON_H
#define WEIR_REASON_H

#include <weir/time.h>

WEIR_BEGIN_DECLS

#define WEIR_REASONS(X)                                                                   \
    X(NONE, "none", "nothing holds it back")                                              \
    /* waiting */                                                                         \
    X(NO_WORKER, "no_worker", "it may start as soon as a worker is free")                 \
    X(BEHIND_OTHERS, "behind_others", "others of its group are before it")                \
    X(GROUP_LIMIT, "group_limit", "its group runs as many as it may")                     \
    X(GROUP_INFLIGHT, "group_inflight", "its group has as many in flight as it may")      \
    X(GLOBAL_INFLIGHT, "global_inflight", "the executor has as many in flight as it may") \
    X(DOMAIN_SLOTS, "domain_slots", "its domain uses as many slots as it may")            \
    X(NO_THREAD, "no_thread", "as many bodies are on threads as may be")                  \
    X(PAUSED, "paused", "its group is paused")                                            \
    X(COOLING_DOWN, "cooling_down", "its group is cooling down")                          \
    X(PACED, "paced", "its group has started as many as its pace allows for now")         \
    /* started */                                                                         \
    X(RUNNING, "running", "it runs")                                                      \
    X(PENDING, "pending", "it will be settled from outside")                              \
    X(SETTLED, "settled", "it is over")                                                   \
    /* rejected */                                                                        \
    X(GLOBAL_QUEUE_FULL, "global_queue_full", "as many wait for the executor as may")     \
    X(GROUP_INFLIGHT_QUEUE_FULL, "group_inflight_queue_full",                             \
      "as many wait for the group's in-flight limit as may")                              \
    X(GROUP_QUEUE_FULL, "group_queue_full", "as many wait for the group as may")          \
    X(DOMAIN_QUEUE_FULL, "domain_queue_full", "as many wait in its domain as may")        \
    X(DOMAIN_RELEASED, "domain_released", "its domain's slots were released to another")  \
    X(SHUT_DOWN, "shut_down", "the executor or the group was shut down")                  \
    X(EVICTED, "evicted", "its group was evicted")                                        \
    /* timed out */                                                                       \
    X(WAIT_DEADLINE, "wait_deadline", "it had waited for as long as it may")              \
    X(RUN_DEADLINE, "run_deadline", "it had run for as long as it may")                   \
    X(TOTAL_DEADLINE, "total_deadline", "it had taken as long as it may in all")          \
    /* cancelled */                                                                       \
    X(CANCELLED, "cancelled", "it was cancelled")

typedef enum weir_reason {
#define WEIR_REASON_ENUM_(name, label, text) WEIR_REASON_##name,
    WEIR_REASONS(WEIR_REASON_ENUM_)
#undef WEIR_REASON_ENUM_
} weir_reason;

/* "group_limit" and the like, for logs; and the sentence above. Static storage. */
const char *weir_reason_name(weir_reason reason);
const char *weir_reason_text(weir_reason reason);

WEIR_END_DECLS

#endif
