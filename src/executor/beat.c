/* Beats: giving, stepping and folding them; see beat.h.
 *
 * Lock order: group, then ring, then clock.
 * SPDX-License-Identifier: MIT */
#include "executor/beat.h"

#include "base/assert.h"
#include "base/os.h"
#include "executor/slice.h"

#include <string.h>

/* While a beat is out there is no pending task, and its address stands in their place, marked. */
enum { MARK = 2 };

/* ---- the wheel; under the ring's lock, but for what says otherwise -------------------------------- */

/* The clock's thread looks no later than at that time. */
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
        return WR_CONTAINER(timer, struct wr_beat, timer)->group;
    wr_store(&beats->first, wr_wheel_next(&beats->wheel), relaxed);
    return NULL;
}

/* The group's lock is not held: its turn has begun (wr_beat_give), so its ring does not count for it. */
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

/* All workers may sleep. Without the lock. */
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
        wr_store(&ex->beats, beats, release); /* pairs with who looks without the lock */
    }
    wr_unlock(&ex->ring.part->lock);
    return beats != NULL;
}

/* Until its next start. */
static void stand_by(struct wr_beat *beat)
{
    struct wr_beats *beats = wr_load(&beat->group->executor->beats, relaxed);
    weir_time when = beat->next - wr_group_gates(beat->group)->pace.slack;

    wr_timer_arm(&beats->wheel, &beat->timer, when);
    wr_store(&beat->group->stand.place, WR_KEEPS_TIME, relaxed);
    wake_by(beats, when);
}

/* ---- giving; under the group's lock ------------------------------------------------------------- */

/* Whether a task without anything is kept by the pace alone, and starts by itself when that allows it. */
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
           !group->pending_first && !group->extras->levels[0].first && !listener->started &&
           !listener->completed;
}

static struct wr_beat *beat_new(struct weir_group *group)
{
    struct wr_beat *beat = has_beats(group->executor) ? wr_os_alloc(sizeof(*beat)) : NULL;

    if (!beat)
        return NULL;
    wr_timer_init(&beat->timer);
    beat->group = group;
    return beat;
}

/* Copies of the group's first tasks. False: they are no entries, or there is no memory. */
static bool fill(struct weir_group *group)
{
    struct wr_group_gates *gates = group->extras->gates;

    if (!wr_group_first_in(group, &group->queue))
        return false;
    if (!gates->beat)
        gates->beat = beat_new(group);
    if (!gates->beat)
        return false;
    gates->beat->end = wr_queue_copy_entries(&group->queue, gates->beat->entry, WR_BEAT_MAX);
    return gates->beat->end > 0;
}

bool wr_beat_give(struct weir_group *group, struct wr_slice *slice)
{
    struct wr_line *ring = wr_group_ring(group);
    struct wr_beat *beat;

    if (slice->on_thread || !slice->record || !waits_for_pace(group) || !is_simple(group) ||
        !fill(group))
        return false;
    wr_group_gates_disarm(group);
    beat = group->extras->gates->beat;
    beat->next = wr_group_gates(group)->pace_next;
    beat->task = slice->record;
    slice->record = NULL;
    group->records++;
    __atomic_store_n(&beat->task->group, group, __ATOMIC_RELEASE); /* as in run.c, make_record */
    wr_store(&beat->task->watchers, NULL, relaxed);
    wr_store(&beat->task->word, WR_PHASE_RUNNING | WR_REF, release);
    group->stand.turn_left = 1;
    group->pending_first = (struct weir_task *)((uintptr_t)beat | MARK);
    wr_store(&beat->state, 0, relaxed);
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
    uint32_t step = wr_load(&beat->state, acquire);

    if (step >= beat->end) /* folded, the one before still runs, or it was the last */
        return false;
    beat->began[step] = now;
    beat->runner = wr_parker_self(NULL);
    beat->cancels = wr_cancels(group);
    if (!wr_cas(&beat->state, &step, (step + 1) | WR_BEAT_RUNS, acq_rel)) /* pairs with a fold */
        return false;
    wr_store(&beat->task->error, (int32_t)beat->cancels, relaxed);
    *slice = (struct wr_slice){ .group = group,
                                .began = now,
                                .clock = now,
                                .fn = wr_entry_fn(beat->entry[step]),
                                .arg = wr_entry_arg(beat->entry[step]),
                                .record = slice->record,
                                .tasks = 1,
                                .closed = true,
                                .cancels = beat->cancels,
                                .beat = beat,
                                .step = (uint16_t)(step + 1) };
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
    uint32_t runs = step | WR_BEAT_RUNS;

    if (step == beat->end)
        return false;
    beat->ended[step - 1] = now;
    return wr_cas(&beat->state, &runs, step, acq_rel); /* pairs with a fold, and the next step */
}

/* ---- folding; under the group's lock ------------------------------------------------------------ */

static int64_t span(weir_time from, weir_time to)
{
    return to > from ? to - from : 0; /* the times may be different CPUs' */
}

/* One whose time has come keeps its place in the ring; if a worker has just taken it, that will look. */
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

/* The last task that began runs on, with its permits. */
static void begin(struct weir_group *group, const struct wr_beat *beat, uint32_t step)
{
    wr_entry_to_record(beat->entry[step - 1], beat->task, beat->began[step - 1]);
    wr_store(&beat->task->error, (int32_t)beat->cancels, relaxed);
    beat->task->runner = beat->runner;
    group->bodies++;
    group->sums.running++;
    group->sums.inflight++;
}

static void count(struct weir_group *group, const struct wr_beat *beat, uint32_t began,
                  uint32_t ended)
{
    struct wr_gates *gates = wr_group_gates(group);

    for (uint32_t i = 0; i < began; i++) {
        group->waited_ns += span(wr_entry_time(beat->entry[i]), beat->began[i]);
        gates->pace_next = wr_pace_after(&gates->pace, gates->pace_next, beat->began[i]);
        if (i < ended)
            group->ran_ns += span(beat->began[i], beat->ended[i]);
    }
    group->submitted += began;
    group->started += began;
    group->succeeded += ended;
    if (began && group->bodies >= group->peak)
        group->peak = group->bodies + 1;
    wr_group_pop_entries(group, began);
}

void wr_beat_fold(struct weir_group *group)
{
    struct wr_beat *beat = (struct wr_beat *)((uintptr_t)group->pending_first & ~(uintptr_t)MARK);
    uint32_t state = wr_swap(&beat->state, WR_BEAT_FOLDED, acq_rel);
    uint32_t began = state & (WR_BEAT_RUNS - 1);
    bool runs = state & WR_BEAT_RUNS;

    WR_ASSERT(began <= beat->end);
    group->pending_first = NULL;
    leave_wheel(group, beat);
    count(group, beat, began, runs ? began - 1 : began);
    if (runs) {
        begin(group, beat, began);
        group->extras->gates->beat =
            NULL; /* its worker's: it may be about to say that it is over */
    } else {
        wr_task_recycle(group, beat->task);
    }
    wr_group_gates_look(group, wr_os_now());
    wr_waits_suspect(group->executor); /* it has come to its turn, or has none */
    if (wr_group_refresh(group))
        wr_executor_wake(group->executor);
    WR_ASSERT_SLOW(wr_group_is_valid(group));
}
