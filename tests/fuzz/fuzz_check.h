/* The fuzzer's judge: what must hold whatever was called, looked at from outside of the library.
 * SPDX-License-Identifier: MIT */
#ifndef WR_FUZZ_CHECK_H
#define WR_FUZZ_CHECK_H

#include "fuzz/fuzz_world.h"

/* ---- limits ------------------------------------------------------------------------------------- */

/* Its body may run on without permits, or is outside of all limits. */
static inline bool is_outside_limits(const struct item *item)
{
    return item->by_caller || (item->timed && world.policy.overdue != WEIR_HOLD);
}

static inline int64_t permits_of_bodies(int key)
{
    int64_t sum = 0;

    for (int i = 0; i < world.items; i++)
        if (world.item[i].inside && !is_outside_limits(&world.item[i]) &&
            (key < 0 || world.item[i].key == key))
            sum += world.item[i].cost;
    return sum;
}

static inline int64_t permits_of_pending(void)
{
    int64_t sum = 0;

    for (int i = 0; i < world.items; i++)
        if (world.item[i].pends && !world.item[i].ending && !world.item[i].inside &&
            !is_outside_limits(&world.item[i]) && !world.item[i].timed)
            sum += world.item[i].cost;
    return sum;
}

/* A group may be above a limit that was lowered, but never above the highest it ever had; an eviction without
 * WEIR_CARRY_OVER begins anew beside what runs. */
static inline void check_limits(int key)
{
    int64_t ceiling = world.group_ceiling[key] < ITEMS * 4 ? world.group_ceiling[key] : ITEMS * 4;
    int64_t runs = permits_of_bodies(key);
    int64_t flies = permits_of_bodies(-1) + permits_of_pending();

    if (runs > ceiling * (1 + world.plain_evictions[key]))
        weir_sim_fail("group %s runs %lld, its limit was never above %lld", group_name[key],
                      (long long)runs, (long long)ceiling);
    if (flies > world.inflight_ceiling)
        weir_sim_fail("%lld are in flight, the limit was never above %lld", (long long)flies,
                      (long long)world.inflight_ceiling);
}

/* ---- results ------------------------------------------------------------------------------------ */

/* A task that was not timed out has kept its own deadlines. They count from its entry, which was before submit
 * returned: it may have waited for room until then, or for a listener. */
static inline void check_in_time(struct item *item, const weir_result *result)
{
    const weir_deadlines *d = &item->deadlines;

    CHECK_ITEM(item, !d->run_ms || result->ended_at - result->started_at <= d->run_ms * MS);
    if (item->submitting)
        return;
    CHECK_ITEM(item, !d->total_ms || result->ended_at <= item->entered_by + d->total_ms * MS);
    CHECK_ITEM(item, !d->wait_ms || result->started_at <= item->entered_by + d->wait_ms * MS);
}

/* All callers that ask see the same outcome, and one that makes sense. */
static inline void check_result(struct item *item, const weir_result *result)
{
    CHECK_ITEM(item, result->outcome != WEIR_UNSETTLED && result->outcome <= WEIR_TIMED_OUT);
    CHECK_ITEM(item, !item->outcome || item->outcome == result->outcome);
    item->outcome = result->outcome;
    CHECK_ITEM(item, result->queued_at <= result->started_at);
    CHECK_ITEM(item, result->started_at <= result->ended_at && result->ended_at <= weir_now());
    CHECK_ITEM(item, result->outcome != WEIR_REJECTED || !item->began);
    if (!world.late && !item->by_caller &&
        (result->outcome == WEIR_DONE || result->outcome == WEIR_FAILED))
        check_in_time(item, result);
    CHECK_ITEM(item, (result->outcome != WEIR_DONE && result->outcome != WEIR_FAILED) ||
                         item->began == 1 || item->hasty);
    CHECK_ITEM(item, result->outcome != WEIR_DONE || result->error == 0);
    CHECK_ITEM(item, result->outcome != WEIR_TIMED_OUT || item->timed);
    if (result->outcome == WEIR_REJECTED || result->outcome == WEIR_TIMED_OUT)
        CHECK_ITEM(item, result->reason != WEIR_REASON_NONE);
    if (result->outcome == WEIR_DONE || result->outcome == WEIR_FAILED)
        CHECK_ITEM(item, result->reason == WEIR_REASON_NONE);
    CHECK_ITEM(item, result->reason != WEIR_REASON_SHUT_DOWN || world.closing);
}

/* The answer of a wait, given its question. */
static inline void check_wait(const struct actor *actor, struct item *item, int rc,
                              const weir_result *result, weir_time deadline)
{
    switch (rc) {
    case 0:
    case WEIR_EREJECTED:
        CHECK_ITEM(item, weir_task_done(item->task));
        check_result(item, result);
        if (!world.policy.rejection_fn)
            CHECK_ITEM(item, (rc == WEIR_EREJECTED) == (result->outcome == WEIR_REJECTED &&
                                                        world.policy.rejection == WEIR_ABORT));
        break;
    case WEIR_ETIMEDOUT:
        CHECK_ITEM(item, weir_now() >= deadline);
        break;
    case WEIR_ECANCELED:
        CHECK_ITEM(item, weir_cancelled());
        break;
    case WEIR_EDEADLK:
        CHECK_ITEM(item, actor->place != ON_THREAD); /* it holds nothing */
        break;
    default:
        weir_sim_fail("a wait for task %d answers %s", item->number, weir_errname(rc));
    }
}

/* A wait was refused: the caller keeps what it has. If the task ends all the same, though no call changed
 * anything and no deadline passed, the refusal was wrong. */
static inline void check_never_ends(struct item *item)
{
    uint64_t changes = world.changes;

    for (int ms = 0; ms < 60 && !world.changing && !weir_cancelled(); ms++) {
        weir_sleep(weir_now() + MS);
        if (world.changes != changes)
            return;
        if (weir_task_done(item->task) && world.changes == changes && !world.changing)
            weir_sim_fail("a wait for task %d was refused, but the task has ended", item->number);
    }
}

/* ---- the end ------------------------------------------------------------------------------------- */

static inline void check_item(struct item *item)
{
    weir_result result = WEIR_RESULT;

    CHECK_ITEM(item, item->began <= 1 && item->ended == item->began);
    CHECK_ITEM(item, item->made == item->dropped + item->taken || item->task);
    if (!item->accepted) {
        CHECK_ITEM(item, !item->began && !item->told_by_option && !item->args_dropped);
        return;
    }
    CHECK_ITEM(item, item->told == item->asked);
    CHECK_ITEM(item, item->told_by_option == item->calls_back);
    if (world.listens) {
        CHECK_ITEM(item, item->heard_submitted == 1);
        CHECK_ITEM(item, item->heard_completed + item->heard_rejected -
                                 (item->heard_rejected && item->began) ==
                             1);
        CHECK_ITEM(item, item->heard_started >= item->began);
    }
    if (!item->task)
        return;
    int rc = weir_task_wait(&result, item->task, WEIR_NOW_OR_NEVER);
    CHECK_ITEM(item, rc == 0 || rc == WEIR_EREJECTED);
    check_result(item, &result);
}

/* How many tasks are known to have ended so. */
static inline uint64_t ended_as(weir_outcome outcome)
{
    uint64_t count = 0;

    for (int i = 0; i < world.items; i++)
        count += world.item[i].accepted && world.item[i].outcome == outcome;
    return count;
}

static inline uint64_t accepted_items(void)
{
    uint64_t count = 0;

    for (int i = 0; i < world.items; i++)
        count += world.item[i].accepted;
    return count;
}

/* All that was submitted was counted once, and as what it was. */
static inline void check_sums(void)
{
    weir_executor_stats s = { .size = sizeof(s) };

    CHECK(weir_executor_stats_get(&s, world.ex) == 0);
    CHECK_EQ(s.submitted, s.succeeded + s.failed + s.cancelled + s.rejected + s.timed_out);
    CHECK_EQ(s.submitted, accepted_items());
    CHECK(s.succeeded >= ended_as(WEIR_DONE) && s.failed >= ended_as(WEIR_FAILED));
    CHECK(s.cancelled >= ended_as(WEIR_CANCELLED) && s.rejected >= ended_as(WEIR_REJECTED));
    CHECK(s.timed_out >= ended_as(WEIR_TIMED_OUT));
}

static inline void check_group_sums(void)
{
    weir_group_stats s = { .size = sizeof(s) };

    for (int k = 0; k < KEYS; k++)
        if (weir_group_stats_get(&s, world.ex, group_name[k]) == 0) {
            CHECK_EQ(s.submitted, s.succeeded + s.failed + s.cancelled + s.rejected + s.timed_out);
            CHECK_EQ(s.running + s.inflight + s.waiting + s.overdue, 0);
        }
}

static inline void check_slots(void)
{
    int64_t sum = 0;

    for (int d = 0; d < DOMAINS; d++)
        sum += domain_of(world.ex, domain_name[d]).slots;
    CHECK_EQ(sum, world.policy.slots);
    check_ledgers(world.ex);
}

/* Nothing moves any more. */
static inline void check_rest(void)
{
    weir_executor_stats s = { .size = sizeof(s) };

    CHECK(weir_executor_stats_get(&s, world.ex) == 0);
    CHECK_EQ(s.running, 0);
    CHECK_EQ(s.inflight, 0);
    CHECK_EQ(s.waiting, 0);
    CHECK_EQ(s.overdue, 0);
    if (!world.faults) {
        check_sums();
        check_group_sums();
    }
    if (world.policy.domain_count)
        check_slots();
}

/* The reason it waits, in words; false if it waits for nothing. */
static inline bool say_what_for(char *text, size_t size, struct item *item)
{
    weir_why why = { .size = sizeof(why) };
    char reason[160] = "no handle";

    if (item->submitting && item->submitter && !item->began)
        return snprintf(text, size, "task %d submits it", item->submitter->number) > 0;
    if (item->submitting && !item->began)
        return snprintf(text, size, "a thread submits it") > 0;
    if (item->inside && item->awaits)
        return snprintf(text, size, "its body waits for task %d", item->awaits->number) > 0;
    if ((!item->accepted && !item->began) || (item->ended && !item->task) ||
        (item->task && weir_task_done(item->task)))
        return false;
    if (item->task && weir_task_why(&why, item->task) == 0)
        weir_why_text(reason, sizeof(reason), &why);
    return snprintf(text, size, "%s%s", item->inside ? "inside its body, " : "", reason) > 0;
}

/* It does not end: says what each task waits for. */
static inline __attribute__((noreturn)) void complain(const char *what)
{
    char text[900] = "", one[200];
    size_t length = 0;

    for (int i = 0; i < world.items && length < sizeof(text); i++)
        if (say_what_for(one, sizeof(one), &world.item[i]))
            length += (size_t)snprintf(text + length, sizeof(text) - length, "\n  %d of %s: %s", i,
                                       group_name[world.item[i].key], one);
    weir_sim_fail("%s%s", what, text);
}

#endif
