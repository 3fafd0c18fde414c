/* Beats: the wheel, and what they add to giving, stepping and folding a hand; see beat.h.
 *
 * Lock order: group, then ring, then clock.
 * SPDX-License-Identifier: MIT */
#include "executor/beat.h"

#include "base/os.h"
#include "executor/slice.h"

#include <stddef.h>

/* ---- the wheel; under the ring's lock, except where it says otherwise ----------------------------- */

/* Has the clock's thread look no later than at that time. */
static void wake_by(struct wr_beats *beats, weir_time when)
{
    if (when < wr_load(&beats->first, relaxed))
        wr_store(&beats->first, when, relaxed);
    if (when >= beats->alarm_at)
        return;
    beats->alarm_at = when;
    wr_clock_set(&beats->executor->clock, &beats->alarm, when);
}

/* The next group whose time has come; NULL: there is none. */
static struct weir_group *next_due(struct wr_beats *beats, weir_time now)
{
    struct wr_timer *timer;

    if (wr_load(&beats->first, relaxed) > now)
        return NULL;
    timer = wr_wheel_expire(&beats->wheel, now);
    if (timer)
        return WR_CONTAINER(timer, struct wr_beat, timer)->hand.group;
    wr_store(&beats->first, wr_wheel_next(&beats->wheel), relaxed);
    return NULL;
}

/* Moves groups whose time has come to the end of the ring. Their locks are not held: wr_beat_give has set turn_left, which is
 * under the group's lock, so that wr_line_add only reads it. */
static void bring(struct wr_beats *beats)
{
    weir_time now = wr_os_now();
    struct weir_group *group;

    while ((group = next_due(beats, now))) {
        wr_store(&group->stand.needs, 1 | WR_HAS_BEAT, relaxed);
        wr_line_add(&beats->executor->ring, &group->stand, false);
    }
}

void wr_beats_bring(struct wr_beats *beats)
{
    struct wr_lock *lock = &beats->executor->ring.part->lock;

    if (wr_load(&beats->first, relaxed) > wr_os_now())
        return; /* the clock's thread will if the time comes just now */
    wr_lock(lock);
    bring(beats);
    wr_unlock(lock);
}

/* The alarm: all workers may be asleep. Called without the lock. */
static void look(struct wr_alarm *alarm, weir_time now)
{
    struct wr_beats *beats = WR_CONTAINER(alarm, struct wr_beats, alarm);
    struct weir_executor *ex = beats->executor;

    (void)now;
    wr_lock(&ex->ring.part->lock);
    bring(beats);
    beats->alarm_at = WEIR_FOREVER;
    wake_by(beats, wr_wheel_next(&beats->wheel));
    wr_unlock(&ex->ring.part->lock);
    if (wr_executor_has_ready(ex))
        wr_executor_wake(ex);
}

/* Made if need be. False: there is no memory. Without the lock. */
static bool has_beats(struct weir_executor *ex)
{
    struct wr_beats *beats = wr_load(&ex->beats, acquire);

    if (beats)
        return true;
    wr_lock(&ex->ring.part->lock);
    beats = wr_load(&ex->beats, relaxed);
    if (!beats && (beats = wr_os_alloc(sizeof(*beats)))) {
        wr_wheel_init(&beats->wheel, wr_os_now());
        wr_store(&beats->first, WEIR_FOREVER, relaxed);
        wr_alarm_init(&beats->alarm, look);
        beats->alarm_at = WEIR_FOREVER;
        beats->executor = ex;
        wr_store(&ex->beats, beats, release); /* pairs with the loads without the lock */
    }
    wr_unlock(&ex->ring.part->lock);
    return beats != NULL;
}

/* The beat goes into the wheel until its next start. */
static void stand_by(struct wr_beat *beat)
{
    struct weir_group *group = beat->hand.group;
    struct wr_beats *beats = wr_load(&group->executor->beats, relaxed);
    weir_time when = beat->next - wr_group_gates(group)->pace.slack;

    wr_timer_arm(&beats->wheel, &beat->timer, when);
    wr_store(&group->stand.place, WR_KEEPS_TIME, relaxed);
    wake_by(beats, when);
}

/* ---- giving; under the group's lock ------------------------------------------------------------- */

/* Whether a plain task is kept by the pace alone, and starts by itself when the pace allows it. */
static bool waits_for_pace(const struct weir_group *group)
{
    const struct wr_sums *s = &group->sums;

    return wr_group_place(group) == WR_GATED && wr_gates_wait_for_pace(wr_group_gates(group)) &&
           !s->counted && s->queue_max == WR_INF && (uint64_t)s->running + s->carried < s->limit &&
           (uint64_t)s->inflight + s->carried < s->inflight_max;
}

static bool is_simple(const struct weir_group *group)
{
    const weir_listener *listener = &group->executor->policy.given.listener;

    return !group->executor->domains && group->carrier == WEIR_WORKERS && !group->has_thread &&
           !group->evicted && wr_load(&group->stand.weight, relaxed) == 1 &&
           !group->extras->levels[0].first && !listener->started && !listener->completed;
}

/* Made if need be; NULL without memory. */
static struct wr_beat *beat_of(struct weir_group *group)
{
    struct wr_beat **beat = &group->extras->gates->beat;

    if (!*beat && has_beats(group->executor))
        *beat = wr_os_alloc(offsetof(struct wr_beat, hand.entry[WR_BEAT_MAX]));
    return *beat;
}

bool wr_beat_give(struct weir_group *group, struct wr_slice *slice)
{
    struct wr_line *ring = wr_group_ring(group);
    struct wr_beat *beat;

    if (slice->on_thread || !slice->record || !waits_for_pace(group) || !is_simple(group) ||
        !wr_group_first_in(group, &group->queue) || !(beat = beat_of(group)) ||
        !wr_hand_give(&beat->hand, group, slice->record, WR_BEAT_MAX, WR_HAND_IDLE))
        return false;
    wr_slice_use_record(group, slice);
    wr_group_gates_disarm(group);
    wr_timer_init(&beat->timer);
    beat->next = wr_group_gates(group)->pace_next;
    beat->ran_ns[0] = 0;
    group->stand.turn_left = 1;
    group->stand.part = 0; /* from now on: the wheel is under that lock */
    wr_lock(&ring->part->lock);
    stand_by(beat);
    wr_unlock(&ring->part->lock);
    return true;
}

/* ---- stepping ----------------------------------------------------------------------------------- */

static bool step(struct weir_group *group, struct wr_slice *slice, weir_time now)
{
    struct wr_beat *beat = group->extras->gates->beat;
    struct wr_hand *hand = &beat->hand;
    uint32_t cancels = wr_cancels(group);
    const uint64_t *entry = wr_hand_step(hand, WR_HAND_IDLE, now);

    if (!entry) /* folded, the one before still runs, or it was the last */
        return false;
    /* A fold that has counted this step waits for the ring's lock before it looks at the record. */
    wr_store(&hand->task->error, (int32_t)cancels, relaxed);
    hand->task->runner = wr_parker_self(NULL);
    *slice = (struct wr_slice){ .group = group,
                                .began = now,
                                .clock = now,
                                .fn = wr_entry_fn(entry),
                                .arg = wr_entry_arg(entry),
                                .record = slice->record,
                                .tasks = 1,
                                .closed = true,
                                .cancels = cancels,
                                .beat = beat,
                                .step = (uint16_t)((entry - hand->entry[0]) / WR_ENTRY_WORDS + 1) };
    beat->next = wr_pace_after(&wr_group_gates(group)->pace, beat->next, now);
    wr_line_drop(&group->executor->ring, &group->stand);
    stand_by(beat);
    return true;
}

bool wr_beat_grant(struct wr_stand *stand, void *slice)
{
    if (wr_load(&stand->needs, relaxed) & WR_HAS_BEAT &&
        !step(wr_group_at(stand), slice, wr_os_now()))
        wr_store(&stand->needs, 1, relaxed);
    return true;
}

bool wr_beat_over(struct wr_beat *beat, uint32_t step, weir_time now)
{
    uint32_t runs = step;

    if (step == beat->hand.end)
        return false;
    beat->ran_ns[step % 2] =
        beat->ran_ns[(step - 1) % 2] + wr_span(beat->hand.began[step - 1], now);
    /* Pairs with a fold, and the next step. */
    return wr_cas(&beat->hand.word, &runs, step | WR_HAND_IDLE, acq_rel);
}

/* ---- folding; under the group's lock ------------------------------------------------------------ */

/* A group whose time has come keeps its place in the ring. If a worker has just taken the group, that worker will look. */
static void leave_wheel(struct weir_group *group, struct wr_beat *beat)
{
    struct wr_line *ring = wr_group_ring(group);

    wr_lock(&ring->part->lock);
    if (wr_load(&group->stand.place, relaxed) == WR_KEEPS_TIME) {
        wr_timer_cancel(&wr_load(&group->executor->beats, relaxed)->wheel, &beat->timer);
        wr_store(&group->stand.place, WR_AT_REST, relaxed);
    } else if (wr_load(&group->stand.place, relaxed) == WR_READY) {
        wr_store(&group->stand.needs, 1, relaxed);
    }
    wr_unlock(&ring->part->lock);
}

void wr_beat_fold(struct wr_beat *beat, uint32_t began, bool runs)
{
    struct weir_group *group = beat->hand.group;

    leave_wheel(group, beat); /* from here on the last step is seen as a whole */
    wr_group_gates(group)->pace_next = beat->next;
    group->ran_ns += beat->ran_ns[(began - runs) % 2];
    if (began && group->bodies >= group->peak)
        group->peak = group->bodies + 1;
    if (runs) {
        group->bodies++;
        group->sums.running++;
        group->sums.inflight++;
        group->extras->gates->beat = NULL; /* it belongs to the worker now */
    } else {
        wr_task_recycle(group, beat->hand.task);
    }
    wr_waits_suspect(group->executor); /* it has come to its turn, or has none */
}
