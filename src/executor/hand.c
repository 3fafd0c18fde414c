/* Hands: giving and folding them; see hand.h.
 * SPDX-License-Identifier: MIT */
#include "executor/hand.h"

#include "base/assert.h"
#include "base/os.h"
#include "executor/settle.h"
#include "executor/state.h"

void wr_hand_finish(struct wr_hand *hand)
{
    if (!wr_hand_is_out(hand))
        return;
    wr_group_lock(hand->group); /* which is there as long as its body is */
    wr_unlock(&hand->group->lock);
}

bool wr_hand_give(struct wr_hand *hand, struct weir_group *group, struct weir_task *task,
                  uint32_t most, uint32_t runs_or_idle)
{
    uintptr_t mark = runs_or_idle == WR_HAND_IDLE ? WR_HAND_OUT | WR_HAND_OF_BEAT : WR_HAND_OUT;

    hand->end = 0;
    if (!most || group->pending_first)
        return false;
    hand->end =
        wr_queue_copy_entries(&group->queue, hand->entry, most < WR_HAND_MAX ? most : WR_HAND_MAX);
    if (!hand->end)
        return false;
    hand->group = group;
    hand->task = task;
    wr_store(&hand->word, runs_or_idle, relaxed);
    group->pending_first = (struct weir_task *)((uintptr_t)hand | mark);
    return true;
}

/* So many of its tasks have begun, and so many ended. */
static void count(struct weir_group *group, const struct wr_hand *hand, uint32_t began,
                  uint32_t ended)
{
    for (uint32_t i = 0; i < began; i++)
        group->waited_ns += wr_span(wr_entry_time(hand->entry[i]), hand->began[i]);
    group->submitted += began;
    group->started += began;
    wr_count_ends(group, WEIR_DONE, ended);
    wr_queue_pop(&group->queue, began * WR_ENTRY_WORDS, began);
    group->sums.queued -= began;
    group->sums.queued_cost -= began;
}

void wr_hand_fold(struct weir_group *group)
{
    uintptr_t out = (uintptr_t)group->pending_first;
    struct wr_hand *hand = (struct wr_hand *)(out & ~(uintptr_t)(WR_HAND_OUT | WR_HAND_OF_BEAT));
    struct wr_beat *beat = out & WR_HAND_OF_BEAT ? WR_CONTAINER(hand, struct wr_beat, hand) : NULL;
    uint32_t word = wr_swap(&hand->word, WR_HAND_FOLDING, acq_rel);
    uint32_t began = word & (WR_HAND_IDLE - 1);
    bool runs = !(word & WR_HAND_IDLE);
    struct weir_task *task = hand->task;
    weir_time last = began ? hand->began[began - 1] : 0;

    WR_ASSERT(began <= hand->end);
    group->pending_first = NULL;
    if (began)
        count(group, hand, began, beat && runs ? began - 1 : began);
    if (beat)
        wr_beat_fold(beat, began, runs);
    else if (began) /* each ended when the next began */
        group->ran_ns += wr_span(task->started_at, last);
    if (began && runs) {
        wr_task_read_entry(task, hand->entry[began - 1]);
        task->started_at = last > task->queued_at ? last : task->queued_at;
    }
    wr_store(&hand->word, WR_HAND_FOLDED, release); /* pairs with wr_hand_finish */
    if (!began && !beat)
        return;
    if (wr_group_gates(group))
        wr_group_gates_went_on(group, task, began, beat ? wr_os_now() : last);
    if ((beat || wr_group_place(group) == WR_READY || wr_group_is_counted(group)) &&
        wr_group_refresh(group))
        wr_executor_wake(group->executor);
    WR_ASSERT_SLOW(wr_group_is_valid(group));
}
