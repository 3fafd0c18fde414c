/* Quick books: when they are open, and how they are carried over.
 * SPDX-License-Identifier: MIT */
#include "guard/quick.h"

#include "guard/math.h"

enum { ALIGN = 128, SPINS = 24, CROWD = 64 };

/* Calls are timed by the pulse if they come at least this often on average, as each costs more by the exact clock than its share
 * of the pulse does, and if a call is slow only after many pulses. A call that takes longer than SURE_NS is timed by the exact
 * clock at its end. */
#define PULSE_SLOW_NS INT64_C(1000000000)
enum { PULSE_CALL_NS = 500, COUNT_CALLS = WR_QUICK_ROOM, COUNT_NS = COUNT_CALLS * PULSE_CALL_NS };
enum { SURE_NS = 2 * WR_OS_PULSE_LATE_NS };

/* Memory that begins with a pair of cache lines; the pointer to the allocated block stands before it. */
static struct wr_quick *books_new(size_t count)
{
    const size_t each = sizeof(struct wr_quick);
    char *block = wr_os_alloc(count * each + ALIGN + sizeof(void *)), *at;

    if (!block)
        return NULL;
    at = block + sizeof(void *);
    at += (ALIGN - (uintptr_t)at % ALIGN) % ALIGN;
    ((void **)(void *)at)[-1] = block;
    return (struct wr_quick *)(void *)at;
}

static void books_free(struct wr_quick *books)
{
    if (books)
        wr_os_free(((void **)(void *)books)[-1]);
}

void wr_quick_init(struct weir_guard *guard)
{
    bool serves = guard->kind == &wr_kind_rate || guard->kind == &wr_kind_breaker;

    /* A guard with on_event, judge or drain_on goes the long way; a guard in shared memory has no room for books. */
    if (serves && !guard->on_event && !guard->judge && !guard->drain_on &&
        guard->ops->word(guard->cell))
        guard->quick = books_new(1);
    if (guard->quick)
        wr_spin_lock(&guard->quick->lock, 1);
}

void wr_quick_free(struct weir_guard *guard)
{
    if (wr_load(&guard->pulses, relaxed))
        wr_os_pulse_part();
    books_free(wr_load(&guard->spread, relaxed));
    books_free(guard->quick);
}

_Thread_local unsigned wr_quick_thread;

/* ---- with the guard locked ------------------------------------------------------------------------ */

static void fold_one(struct weir_guard *guard, struct wr_quick *quick)
{
    struct wr_state *state = guard->ops->write(guard->cell);
    struct wr_counts *c = &guard->counts;
    uint64_t more;

    wr_spin_lock(&quick->lock, 1);
    if (!quick->pass)
        return;
    quick->pass = 0;
    if (guard->kind == &wr_kind_rate) {
        state->as.rate.available = quick->as.rate.available;
        more = quick->as.rate.entered;
    } else {
        more = wr_load(&quick->as.breaker.count, relaxed);
        wr_outcomes_add_fine(&wr_state_breaker(state)->outcomes, quick->as.breaker.ns, more);
        guard->pace.calls += more;
        wr_store(&c->left, wr_load(&c->left, relaxed) + more, relaxed);
        wr_store(&c->succeeded, wr_load(&c->succeeded, relaxed) + more, relaxed);
    }
    wr_store(&c->entered, wr_load(&c->entered, relaxed) + more, relaxed);
}

void wr_quick_fold(struct weir_guard *guard)
{
    struct wr_quick *spread = wr_load(&guard->spread, relaxed);

    fold_one(guard, guard->quick);
    for (int i = 0; spread && i < WR_QUICK_SPREAD; i++)
        fold_one(guard, &spread[i]);
}

static void arm_rate(struct wr_quick *quick, const struct wr_rate *rate)
{
    if (rate->smooth || rate->hole[0].n || rate->available <= 0)
        return;
    quick->pass = 1;
    quick->as.rate.until = rate->cycle_end;
    quick->as.rate.available = rate->available;
    quick->as.rate.cycle = rate->cycle;
    quick->as.rate.era = rate->era;
    quick->as.rate.entered = 0;
}

static uint64_t ticks_of(int64_t ns, uint64_t rate)
{
    return (uint64_t)((double)wr_max(ns, 0) * 0x1p32 / (double)rate);
}

/* Whether calls come fast. */
static bool count_pace(struct weir_guard *guard, weir_time now)
{
    int64_t calls = (int64_t)guard->pace.calls, ns = now - guard->pace.since;

    if (calls >= COUNT_CALLS || ns >= COUNT_NS) {
        guard->pace.fast = calls * PULSE_CALL_NS >= ns;
        guard->pace.calls = 0;
        guard->pace.since = now;
    }
    return guard->pace.fast;
}

/* The token of usual calls, 0 if none are expected; `terms` says which calls are usual. */
static uint64_t terms_of(struct wr_quick_terms *terms, struct weir_guard *guard,
                         const struct wr_breaker *b)
{
    uint64_t rate = wr_os_tick_rate();
    weir_time now;

    if (!rate || b->state != WEIR_CLOSED || b->outcomes.sum.failed || b->outcomes.sum.slow)
        return 0;
    /* A span in nanoseconds has to fit into 32 bits, and ticks * rate into 64. */
    terms->rate = rate;
    terms->slow_ns = wr_min(b->set.slow_ns, INT32_MAX);
    terms->slow = ticks_of(terms->slow_ns, rate);
    terms->until = UINT64_MAX;
    terms->until_ns = WEIR_FOREVER;
    now = wr_os_now();
    if (b->outcomes.by_time) {
        terms->until_ns = now < b->outcomes.second_end ? b->outcomes.second_end : 0;
        terms->until = wr_os_ticks() + ticks_of(terms->until_ns - now, rate);
    }
    return b->filling |
           (count_pace(guard, now) && b->set.slow_ns >= PULSE_SLOW_NS ? WR_SINCE_PULSE : 0);
}

static void open_book(struct wr_quick *quick, uint64_t pass, const struct wr_quick_terms *terms)
{
    quick->pass = pass;
    quick->as.breaker.terms = *terms;
    wr_store(&quick->as.breaker.count, 0, relaxed);
    wr_spin_unlock(&quick->lock);
}

void wr_quick_arm(struct weir_guard *guard)
{
    const struct wr_state *state = guard->ops->read(guard->cell);
    struct wr_quick *spread = wr_load(&guard->spread, relaxed);
    struct wr_quick_terms terms = { .slow = 0 };
    uint64_t pass;

    if (guard->kind == &wr_kind_rate) {
        arm_rate(guard->quick, &state->as.rate);
        wr_spin_unlock(&guard->quick->lock);
        return;
    }
    pass = terms_of(&terms, guard, wr_state_breaker(state));
    if (wr_load(&guard->pass, relaxed) != pass)
        wr_store(&guard->pass, pass, release);
    for (int i = 0; spread && i < WR_QUICK_SPREAD; i++)
        open_book(&spread[i], pass, &terms);
    open_book(guard->quick, pass, &terms);
}

/* ---- in each other's way -------------------------------------------------------------------------- */

/* Threads that have been in each other's way on a breaker for a while get books of their own. */
static void spread_out(struct weir_guard *guard)
{
    struct wr_quick *books = books_new(WR_QUICK_SPREAD);

    if (!books || wr_guard_lock(guard)) {
        books_free(books);
        return;
    }
    if (!wr_load(&guard->spread, relaxed)) {
        for (int i = 0; i < WR_QUICK_SPREAD; i++)
            wr_spin_lock(&books[i].lock, 1);
        wr_store(&guard->spread, books, release);
        books = NULL;
    }
    wr_guard_unlock(guard);
    books_free(books);
}

__attribute__((noinline)) bool wr_quick_contended(struct weir_guard *guard, struct wr_quick *quick)
{
    static _Atomic unsigned threads;

    if (!wr_quick_thread)
        wr_quick_thread = wr_add(&threads, 1, relaxed) + 1;
    if (guard->kind == &wr_kind_breaker && !wr_load(&guard->spread, relaxed) &&
        wr_add(&guard->crowd, 1, relaxed) >= CROWD) {
        spread_out(guard);
        return false;
    }
    for (int i = 0; i < SPINS; i++) {
        for (int k = 0; k <= i; k++)
            wr_os_relax();
        if (wr_spin_try(&quick->lock, 1))
            return true;
    }
    return false;
}

static void want_pulse(struct weir_guard *guard, weir_time now)
{
    if (!wr_load(&guard->pulses, relaxed) && !wr_swap(&guard->pulses, true, relaxed))
        wr_os_pulse_join();
    wr_os_pulse_want(now);
}

void wr_quick_empty(struct weir_guard *guard)
{
    if (wr_guard_lock(guard))
        return;
    wr_guard_unlock(guard);
    if (wr_load(&guard->pass, relaxed) & WR_SINCE_PULSE)
        want_pulse(guard, wr_os_now());
}

bool wr_quick_ended(struct weir_guard *guard, uint64_t token, int64_t ns, weir_time now)
{
    struct wr_quick *quick = wr_quick_mine(guard);
    const struct wr_quick_terms *terms = &quick->as.breaker.terms;

    return wr_quick_lock(guard, quick) &&
           wr_quick_note(quick,
                         (quick->pass & ~WR_SINCE_PULSE) == token && now < terms->until_ns &&
                             ns <= terms->slow_ns,
                         (uint64_t)wr_max(ns, 0));
}

/* ---- since when ------------------------------------------------------------------------------------ */

static int64_t ticks_passed(uint64_t since)
{
    uint64_t ticks = wr_os_ticks() - since;

    if (ticks >> 63)
        ticks = 0; /* counters of two processors that differ by a few ticks */
    return wr_os_ticks_to_ns(ticks, wr_os_tick_rate());
}

/* By pulses a span is too long or too short by up to one, and right on average. A long span is measured to its exact end, and
 * not from a pulse that stood still, as the call may have begun at the end of that pulse. */
static int64_t pulses_passed(weir_time since, weir_time now)
{
    weir_time pulse = wr_os_pulse();

    if (pulse && now - since < SURE_NS)
        return wr_max(pulse - since, 0);
    return wr_max(now - wr_os_pulse_end(since), 0);
}

void wr_permit_settle(weir_permit *permit)
{
    weir_time now;

    if (permit->guard->kind != &wr_kind_breaker ||
        !(permit->token & (WR_SINCE_TICKS | WR_SINCE_PULSE)))
        return;
    now = wr_os_now();
    permit->since = now - (permit->token & WR_SINCE_PULSE ? pulses_passed(permit->since, now)
                                                          : ticks_passed((uint64_t)permit->since));
    permit->token &= ~(WR_SINCE_TICKS | WR_SINCE_PULSE);
}
