/* Hands: giving and folding them; see hand.h.
 * SPDX-License-Identifier: MIT */
#include "executor/hand.h"

#include "base/assert.h"
#include "executor/state.h"

void wr_hand_finish(struct wr_hand *hand)
{
    if (!wr_hand_is_out(hand))
        return;
    wr_group_lock(hand->group); /* which is there as long as its body is */
    wr_unlock(&hand->group->lock);
}

/* While a hand is out there is no pending task, and its address stands in their place, marked. */
enum { MARK = 1 };

bool wr_hand_give(struct wr_hand *hand, struct weir_group *group, struct weir_task *task,
                  uint32_t most)
{
    hand->end = 0;
    if (!most || group->pending_first)
        return false;
    hand->end =
        wr_queue_copy_entries(&group->queue, hand->entry, most < WR_HAND_MAX ? most : WR_HAND_MAX);
    if (!hand->end)
        return false;
    hand->group = group;
    hand->task = task;
    wr_store(&hand->next, 0, relaxed);
    group->pending_first = (struct weir_task *)((uintptr_t)hand | MARK);
    return true;
}

void wr_entry_to_record(const uint64_t *entry, struct weir_task *task, weir_time started_at)
{
    task->fn = wr_entry_fn(entry);
    task->u.arg = wr_entry_arg(entry);
    task->queued_at = wr_entry_time(entry);
    task->started_at = started_at > task->queued_at ? started_at : task->queued_at;
}

static int64_t waited(const uint64_t *entry, weir_time started_at)
{
    weir_time queued_at = wr_entry_time(entry);

    return started_at > queued_at ? started_at - queued_at : 0; /* it may be another CPU's clock */
}

void wr_group_pop_entries(struct weir_group *group, uint32_t count)
{
    wr_queue_pop(&group->queue, count * WR_ENTRY_WORDS, count);
    group->sums.queued -= count;
    group->sums.queued_cost -= count;
}

/* Brings its times and its last task into group and record. Answers when that began. */
static weir_time read_hand(struct weir_group *group, const struct wr_hand *hand, uint32_t count)
{
    weir_time last = hand->at[count - 1];

    for (uint32_t i = 0; i < count; i++)
        group->waited_ns += waited(hand->entry[i], hand->at[i]);
    if (last > hand->task->started_at) /* each ended when the next began */
        group->ran_ns += last - hand->task->started_at;
    wr_entry_to_record(hand->entry[count - 1], hand->task, last);
    return last;
}

void wr_hand_fold(struct weir_group *group)
{
    struct wr_hand *hand = (struct wr_hand *)((uintptr_t)group->pending_first & ~(uintptr_t)MARK);
    uint32_t count = wr_swap(&hand->next, WR_HAND_FOLDING, acq_rel);
    struct weir_task *task = hand->task;
    weir_time last = 0;

    WR_ASSERT(count <= hand->end);
    group->pending_first = NULL;
    if (count)
        last = read_hand(group, hand, count);
    wr_store(&hand->next, WR_HAND_FOLDED, release); /* pairs with wr_hand_finish */
    if (!count)
        return;
    group->submitted += count;
    group->started += count;
    group->succeeded += count;
    wr_group_pop_entries(group, count);
    if (wr_group_gates(group))
        wr_group_gates_went_on(group, task, count, last);
    if ((wr_group_place(group) == WR_READY || wr_group_is_counted(group)) &&
        wr_group_refresh(group))
        wr_executor_wake(group->executor);
    WR_ASSERT_SLOW(wr_group_is_valid(group));
}
