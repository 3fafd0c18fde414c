/* Nodes that are tasks of their own, and sub-flows: what these files share with each other.
 *
 *     own.c     the task of a node: its body, its end, its task locals
 *     retry.c   another try after a failure, and the pause before it
 *     sub.c     sub-flows, and nodes that a body has added
 *
 * The node is READY while its task waits, so that it can be skipped, and RUNNING from when its body begins. The task's
 * end is the node's; if the node was decided before, the task's end changes nothing.
 * SPDX-License-Identifier: MIT */
#ifndef WR_FLOW_OWN_H
#define WR_FLOW_OWN_H

#include "flow/run.h"

static inline bool wr_own_is_decided(const struct wr_own *own)
{
    return wr_word_outcome(wr_load(&own->run->plan.word[own->node], acquire));
}

/* ---- own.c ------------------------------------------------------------------------------------- */

/* Something is about to be submitted for the node: a try, or the pause before it. What was submitted before has ended, so that
 * no other thread comes here; but a thread may be late to keep its handle. */
uint32_t wr_own_next_stage(struct wr_own *own);

/* Keeps the task's handle, unless it has ended already; if the node was decided meanwhile, the task is cancelled. */
void wr_own_keep_task(struct wr_own *own, weir_task *task, uint32_t stage);

/* The task has ended: its handle is given back, if it was kept. */
void wr_own_drop_task(struct wr_own *own);

/* A reference to what was submitted for the node; NULL: there is none. */
weir_task *wr_own_ref_task(struct wr_own *own);

/* The context of this thread goes on to the nodes that the end of this one makes ready. A body that runs on after its node has
 * ended may come here late, when that makes no difference any more. */
void wr_own_keep_locals(struct wr_own *own);

/* Tells of the node's end. Its callbacks are still part of the run, and must not wait for it: see wr_telling_task. */
void wr_own_tell_end(struct wr_own *own, weir_task *task);

/* How many milliseconds are left until the node's total deadline, at most `most`; 0: it has passed. Without a deadline,
 * `most`. */
int64_t wr_own_time_left(const struct wr_own *own, int64_t most);

/* Submits a try. `last`: as the last thing that the caller does before it looks for work. */
void wr_own_submit(struct wr_own *own, bool last);

/* ---- retry.c ----------------------------------------------------------------------------------- */

/* Submits another try, now or after a pause. False: there is none. */
bool wr_own_try_again(struct wr_own *own, const weir_result *result);

/* ---- sub.c ------------------------------------------------------------------------------------- */

/* `begin` comes before the sub-flow; there is no body. */
void wr_own_begin_sub(struct wr_own *own);

#endif
