/* The sums of admission: each function by itself, then random schedules against a model that counts.
 * SPDX-License-Identifier: MIT */
#include "limits/admit.h"

#include "support/sanitized.h"
#include "support/soak.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NONE WEIR_REASON_NONE

/* Without permits in hand. */
static weir_reason start_unreserved(struct wr_sums *s, struct wr_root *root, uint32_t cost)
{
    uint32_t none = 0;

    return wr_start(s, root, cost, &none);
}

static struct wr_sums group(uint32_t limit, uint32_t inflight_max, uint32_t queue_max)
{
    return (struct wr_sums){ .limit = limit, .inflight_max = inflight_max, .queue_max = queue_max };
}

static struct wr_root executor(uint32_t inflight_max, uint32_t queue_max)
{
    return (struct wr_root){ .inflight_max = inflight_max, .queue_max = queue_max };
}

/* ---- one function at a time ------------------------------------------------------------------ */

static void test_free_is_the_rest_of_the_tighter_limit(void **state)
{
    struct wr_sums s = group(5, 7, 0);
    (void)state;
    assert_int_equal(wr_free(&s), 5);
    s.running = 2;
    s.inflight = 6;
    assert_int_equal(wr_free(&s), 1);
    s.running = 6; /* a lowered limit drains */
    assert_int_equal(wr_free(&s), 0);
    s.running = 0;
    s.inflight = 9;
    assert_int_equal(wr_free(&s), 0);
    s = group(WR_INF, WR_INF, 0);
    assert_int_equal(wr_free(&s), WR_INF);
}

static void test_ready_are_those_the_group_would_let_start(void **state)
{
    struct wr_sums s = group(3, WR_INF, WR_INF);
    (void)state;
    assert_int_equal(wr_ready_tasks(&s, 1), 0); /* no task waits */
    s.queued = 5;
    s.queued_cost = 5;
    assert_int_equal(wr_ready_tasks(&s, 1), 3);
    s.running = 3;
    assert_int_equal(wr_ready_tasks(&s, 1), 0);
    s.running = 0;
    s.queued_cost = 7; /* mixed costs: the first, and after its start one asks again */
    assert_int_equal(wr_ready_tasks(&s, 2), 1);
    assert_int_equal(wr_ready_tasks(&s, 4), 0);
    s.limit = 7;
    assert_int_equal(wr_ready_tasks(&s, 2), 5);
    s.closed = WR_SHUT;
    assert_int_equal(wr_ready_tasks(&s, 2), 0);
}

static void test_a_closed_gate_leaves_nothing_free(void **state)
{
    struct wr_root root = executor(WR_INF, WR_INF);
    struct wr_sums s = group(5, 5, WR_INF);
    (void)state;
    wr_set_closed(&s, &root, WR_SHUT);
    assert_int_equal(wr_free(&s), 0);
    assert_int_equal(wr_admit(&s, &root, 1), NONE);
    assert_int_equal(start_unreserved(&s, &root, 1), WEIR_REASON_GATED);
    assert_false(wr_lacks_only_thread(&s, 1));
    wr_set_closed(&s, &root, WR_LACKS_THREAD);
    assert_int_equal(wr_free(&s), 0);
    assert_int_equal(start_unreserved(&s, &root, 1), WEIR_REASON_NO_THREAD);
    assert_true(wr_lacks_only_thread(&s, 5));
    wr_set_closed(&s, &root, WR_OPEN);
    assert_int_equal(start_unreserved(&s, &root, 1), NONE);
}

static void test_claims_are_tasks_that_fly_and_tasks_that_could(void **state)
{
    struct wr_root root = executor(WR_INF, WR_INF);
    struct wr_sums s = group(3, WR_INF, WR_INF);
    (void)state;
    for (int i = 0; i < 5; i++)
        assert_int_equal(wr_admit(&s, &root, 1), NONE);
    assert_int_equal(wr_claims(&s), 3);
    assert_int_equal(start_unreserved(&s, &root, 1), NONE);
    assert_int_equal(wr_claims(&s), 3); /* one flies, two are ready */
    wr_pend(&s, &root, 1);
    assert_int_equal(wr_claims(&s), 4); /* one is pending, three are ready */
}

static void test_a_cost_beyond_any_limit_can_never_run(void **state)
{
    struct wr_root root = executor(4, 0);
    struct wr_sums s = group(5, 3, 0);
    (void)state;
    assert_true(wr_can_ever(&s, &root, 3));
    assert_false(wr_can_ever(&s, &root, 4));
    s.inflight_max = WR_INF;
    assert_true(wr_can_ever(&s, &root, 4));
    assert_false(wr_can_ever(&s, &root, 5));
    wr_store(&root.inflight_max, WR_INF, relaxed);
    assert_true(wr_can_ever(&s, &root, 5));
    assert_false(wr_can_ever(&s, &root, 6));
}

/* How many of cost 1 get in, whatever starts meanwhile. */
static int fill(struct wr_sums *s, struct wr_root *root, bool start)
{
    int in = 0;
    while (in < 1000 && wr_admit(s, root, 1) == NONE) {
        in++;
        if (start)
            start_unreserved(s, root, 1);
    }
    return in;
}

static void test_exactly_the_limit_and_the_queue_are_inside(void **state)
{
    (void)state;
    for (uint32_t m = 1; m < 5; m++)
        for (uint32_t q = 0; q < 4; q++)
            for (int start = 0; start < 2; start++) {
                struct wr_root root = executor(WR_INF, WR_INF);
                struct wr_sums s = group(m, WR_INF, q), f = group(9, m, q);
                assert_int_equal(fill(&s, &root, start), m + q);
                assert_int_equal(wr_admit(&s, &root, 1), WEIR_REASON_GROUP_QUEUE_FULL);
                assert_int_equal(fill(&f, &root, start), m + q);
                assert_int_equal(wr_admit(&f, &root, 1), WEIR_REASON_GROUP_INFLIGHT_QUEUE_FULL);
            }
}

static void test_exactly_the_executors_limit_and_queue_are_inside(void **state)
{
    (void)state;
    for (uint32_t m = 1; m < 5; m++)
        for (uint32_t q = 0; q < 4; q++)
            for (int start = 0; start < 2; start++) {
                struct wr_root root = executor(m, q);
                struct wr_sums a = group(1, WR_INF, 0), b = group(WR_INF, WR_INF, 0);
                wr_set_counted(&a, &root, true);
                wr_set_counted(&b, &root, true);
                assert_int_equal(fill(&a, &root, start), 1);
                assert_int_equal(wr_admit(&a, &root, 1), WEIR_REASON_GROUP_QUEUE_FULL);
                assert_int_equal(fill(&b, &root, start), m + q - 1);
                assert_int_equal(wr_admit(&b, &root, 1), WEIR_REASON_GLOBAL_QUEUE_FULL);
                assert_true(wr_load(&root.held, relaxed) <= m);
            }
}

static void test_a_refused_task_leaves_no_trace(void **state)
{
    struct wr_root root = executor(1, 0);
    struct wr_sums s = group(4, WR_INF, 0), before;
    (void)state;
    wr_set_counted(&s, &root, true);
    assert_int_equal(wr_admit(&s, &root, 1), NONE);
    before = s;
    assert_int_equal(wr_admit(&s, &root, 1), WEIR_REASON_GLOBAL_QUEUE_FULL);
    assert_memory_equal(&s, &before, sizeof(s));
    assert_int_equal(wr_load(&root.claimed, relaxed), 1);
}

static void test_start_takes_all_permits_or_none(void **state)
{
    struct wr_root root = executor(2, WR_INF);
    struct wr_sums a = group(9, WR_INF, WR_INF), b = group(9, WR_INF, WR_INF), before;
    (void)state;
    wr_set_counted(&a, &root, true);
    wr_set_counted(&b, &root, true);
    assert_int_equal(wr_admit(&a, &root, 1), NONE);
    assert_int_equal(start_unreserved(&a, &root, 1), NONE);
    assert_int_equal(wr_admit(&b, &root, 2), NONE);
    before = b;
    assert_int_equal(start_unreserved(&b, &root, 2), WEIR_REASON_GLOBAL_INFLIGHT);
    assert_memory_equal(&b, &before, sizeof(b));
    assert_int_equal(wr_load(&root.held, relaxed), 1);
    wr_finish(&a, &root, 1);
    assert_int_equal(start_unreserved(&b, &root, 2), NONE);
    assert_int_equal(wr_load(&root.held, relaxed), 2);
}

static void test_the_nearest_limit_is_named(void **state)
{
    struct wr_root root = executor(3, WR_INF);
    struct wr_sums s = group(2, 3, WR_INF);
    (void)state;
    wr_set_counted(&s, &root, true);
    assert_int_equal(wr_blocked_by(&s, &root, 2), NONE);
    assert_int_equal(wr_blocked_by(&s, &root, 3), WEIR_REASON_GROUP_LIMIT);
    s.limit = 9;
    assert_int_equal(wr_blocked_by(&s, &root, 4), WEIR_REASON_GROUP_INFLIGHT);
    s.inflight_max = 9;
    assert_int_equal(wr_blocked_by(&s, &root, 4), WEIR_REASON_GLOBAL_INFLIGHT);
}

static void test_a_pending_task_gives_its_place_among_the_running(void **state)
{
    struct wr_root root = executor(9, WR_INF);
    struct wr_sums s = group(1, 2, WR_INF);
    (void)state;
    wr_set_counted(&s, &root, true);
    for (int i = 0; i < 3; i++)
        assert_int_equal(wr_admit(&s, &root, 1), NONE);
    assert_int_equal(start_unreserved(&s, &root, 1), NONE);
    assert_int_equal(start_unreserved(&s, &root, 1), WEIR_REASON_GROUP_LIMIT);
    wr_pend(&s, &root, 1);
    assert_int_equal(start_unreserved(&s, &root, 1), NONE);
    wr_pend(&s, &root, 1);
    assert_int_equal(start_unreserved(&s, &root, 1), WEIR_REASON_GROUP_INFLIGHT);
    wr_settle_pending(&s, &root, 1);
    assert_int_equal(wr_load(&root.held, relaxed), 1);
    assert_int_equal(start_unreserved(&s, &root, 1), NONE);
}

static void test_a_reserved_permit_is_used_or_given_back(void **state)
{
    struct wr_root root = executor(2, WR_INF), unlimited = executor(WR_INF, WR_INF);
    struct wr_sums s = group(9, WR_INF, WR_INF);
    uint32_t first = 0, second = 0, third = 0;
    (void)state;
    wr_set_counted(&s, &root, true);
    assert_int_equal(wr_admit(&s, &root, 2), NONE);
    assert_true(wr_reserve(&root, 1, &first));
    assert_true(wr_reserve(&root, 1, &second));
    assert_false(wr_reserve(&root, 1, &third));
    assert_int_equal(third, 0);
    assert_int_equal(wr_start(&s, &root, 2, &first), WEIR_REASON_GLOBAL_INFLIGHT);
    assert_int_equal(first, 1); /* still in hand */
    assert_false(wr_reserve(&root, 2, &first));
    wr_unreserve(&root, &second);
    assert_true(wr_reserve(&root, 2, &first));
    assert_int_equal(first, 2);
    assert_int_equal(wr_start(&s, &root, 2, &first), NONE);
    assert_int_equal(first, 0);
    assert_int_equal(wr_load(&root.held, relaxed), 2);
    assert_true(wr_reserve(&unlimited, 1, &third));
    wr_unreserve(&unlimited, &third);
    assert_int_equal(wr_load(&unlimited.held, relaxed), 0);
}

static void test_withdrawing_gives_the_place_back(void **state)
{
    struct wr_root root = executor(1, 1);
    struct wr_sums s = group(9, WR_INF, 0);
    (void)state;
    wr_set_counted(&s, &root, true);
    assert_int_equal(fill(&s, &root, true), 2);
    wr_withdraw(&s, &root, 1);
    assert_int_equal(wr_load(&root.claimed, relaxed), 1);
    assert_int_equal(fill(&s, &root, false), 1);
}

static void test_permits_are_handed_over_unless_a_limit_was_lowered(void **state)
{
    struct wr_root root = executor(2, WR_INF);
    struct wr_sums s = group(2, WR_INF, WR_INF);
    (void)state;
    wr_set_counted(&s, &root, true);
    for (int i = 0; i < 6; i++)
        assert_int_equal(wr_admit(&s, &root, 1), NONE);
    assert_int_equal(start_unreserved(&s, &root, 1), NONE);
    assert_int_equal(start_unreserved(&s, &root, 1), NONE);
    assert_true(wr_hand_over(&s, &root, 1));
    assert_int_equal(s.running, 2);
    assert_int_equal(s.queued, 3);
    wr_set_limits(&s, &root, 1, WR_INF, WR_INF);
    assert_false(wr_hand_over(&s, &root, 1));
    wr_set_limits(&s, &root, 2, 1, WR_INF);
    assert_false(wr_hand_over(&s, &root, 1));
    wr_set_limits(&s, &root, 2, WR_INF, WR_INF);
    wr_store(&root.inflight_max, 1, relaxed);
    assert_false(wr_hand_over(&s, &root, 1));
    wr_store(&root.inflight_max, 2, relaxed);
    wr_set_closed(&s, &root, WR_SHUT);
    assert_false(wr_hand_over(&s, &root, 1));
    wr_set_closed(&s, &root, WR_OPEN);
    assert_true(wr_hand_over(&s, &root, 1));
}

static void test_permits_carried_over_count_until_they_are_given_back(void **state)
{
    struct wr_root root = executor(WR_INF, WR_INF);
    struct wr_sums s = group(3, WR_INF, 0);
    (void)state;
    wr_carry(&s, &root, 2);
    assert_int_equal(fill(&s, &root, true), 1);
    assert_int_equal(s.running, 1);
    assert_int_equal(wr_blocked_by(&s, &root, 1), WEIR_REASON_GROUP_LIMIT);
    wr_carry(&s, &root, 1);
    assert_int_equal(fill(&s, &root, true), 1);
    assert_int_equal(s.inflight, 2);
}

static void test_joining_and_leaving_the_executors_sums(void **state)
{
    struct wr_root root = executor(WR_INF, WR_INF);
    struct wr_sums s = group(3, WR_INF, WR_INF);
    (void)state;
    for (int i = 0; i < 5; i++)
        assert_int_equal(wr_admit(&s, &root, 1), NONE);
    assert_int_equal(start_unreserved(&s, &root, 1), NONE);
    assert_int_equal(wr_load(&root.held, relaxed), 0);
    for (int twice = 0; twice < 2; twice++) {
        wr_set_counted(&s, &root, true);
        assert_int_equal(wr_load(&root.held, relaxed), 1);
        assert_int_equal(wr_load(&root.claimed, relaxed), 3);
    }
    wr_set_counted(&s, &root, false);
    assert_int_equal(wr_load(&root.held, relaxed), 0);
    assert_int_equal(wr_load(&root.claimed, relaxed), 0);
}

/* ---- the model -------------------------------------------------------------------------------- */

/* Written from the rules A1 to A9, without a single sum that is kept: tasks in the order they came, each
 * in a state, and everything else counted anew. NO stands for no limit: more than there ever are. */

enum { GROUPS = 3, TASKS = 64, NO = 1 << 30, MANY = NO / 2 };
enum state { GONE, WAITS, RUNS, PENDS };

struct task {
    enum state state;
    int group, cost;
};

struct model {
    struct {
        int64_t limit, inflight_max, queue_max, carried;
        bool shut, threadless, counted;
    } g[GROUPS];
    int64_t inflight_max, queue_max;
    struct task task[TASKS];
    int tasks;
};

static int64_t cost_in(const struct model *m, int g, enum state state)
{
    int64_t sum = 0;
    for (int i = 0; i < m->tasks; i++)
        if (m->task[i].group == g && m->task[i].state == state)
            sum += m->task[i].cost;
    return sum;
}

static int64_t count_in(const struct model *m, int g, enum state state)
{
    int64_t sum = 0;
    for (int i = 0; i < m->tasks; i++)
        sum += m->task[i].group == g && m->task[i].state == state;
    return sum;
}

static int first_of(const struct model *m, int g, enum state state)
{
    for (int i = 0; i < m->tasks; i++)
        if (m->task[i].group == g && m->task[i].state == state)
            return i;
    return -1;
}

static int64_t inflight_of(const struct model *m, int g)
{
    return cost_in(m, g, RUNS) + cost_in(m, g, PENDS);
}

static bool is_closed(const struct model *m, int g)
{
    return m->g[g].shut || m->g[g].threadless;
}

/* Whether the group, for its part, would let `more` permits be taken at once. */
static bool group_lets(const struct model *m, int g, int64_t more)
{
    more += m->g[g].carried;
    return !is_closed(m, g) && cost_in(m, g, RUNS) + more <= m->g[g].limit &&
           inflight_of(m, g) + more <= m->g[g].inflight_max;
}

/* Permits that waiting tasks could take now, as far as their group is concerned. */
static int64_t ready_of(const struct model *m, int g)
{
    int64_t ready = 0, waits = cost_in(m, g, WAITS);
    while (ready < waits && group_lets(m, g, ready + 1))
        ready++;
    return ready;
}

static int64_t held_of(const struct model *m)
{
    int64_t sum = 0;
    for (int g = 0; g < GROUPS; g++)
        if (m->g[g].counted)
            sum += inflight_of(m, g);
    return sum;
}

static int64_t claimed_of(const struct model *m)
{
    int64_t sum = 0;
    for (int g = 0; g < GROUPS; g++)
        if (m->g[g].counted)
            sum += inflight_of(m, g) + ready_of(m, g);
    return sum;
}

/* Waiting tasks that keep a place of the group's queue: those that are not ready. Ready are, of tasks that cost
 * one each, as many as there are permits; of others, all or none. */
static int64_t places_of(const struct model *m, int g)
{
    int64_t count = count_in(m, g, WAITS), cost = cost_in(m, g, WAITS);
    if (ready_of(m, g) == cost)
        return 0;
    return count == cost ? count - ready_of(m, g) : count;
}

/* Waiting tasks that could not start if all did that can, in order. */
static int64_t held_back_of(const struct model *m, int g)
{
    int64_t taken = 0, behind = 0;
    for (int i = 0; i < m->tasks; i++) {
        if (m->task[i].group != g || m->task[i].state != WAITS)
            continue;
        if (!behind && group_lets(m, g, taken + m->task[i].cost))
            taken += m->task[i].cost;
        else
            behind++;
    }
    return behind;
}

/* A3, A4: the answer to a submit. */
static weir_reason model_admit(const struct model *m, int g, int cost)
{
    int64_t waits = cost_in(m, g, WAITS), k = 1 + m->g[g].carried;
    if (!group_lets(m, g, waits + cost)) {
        if (m->g[g].queue_max == NO || places_of(m, g) < m->g[g].queue_max)
            return NONE;
        while (k <= 8 && cost_in(m, g, RUNS) + k <= m->g[g].limit && /* 8 are more than any limit */
               inflight_of(m, g) + k <= m->g[g].inflight_max)
            k++;
        return cost_in(m, g, RUNS) + k <= m->g[g].limit && k <= 8
                   ? WEIR_REASON_GROUP_INFLIGHT_QUEUE_FULL
                   : WEIR_REASON_GROUP_QUEUE_FULL;
    }
    if (!m->g[g].counted || m->inflight_max == NO || m->queue_max == NO)
        return NONE;
    return claimed_of(m) + cost <= m->inflight_max + m->queue_max ? NONE
                                                                  : WEIR_REASON_GLOBAL_QUEUE_FULL;
}

static weir_reason model_blocked_by(const struct model *m, int g, int cost)
{
    if (m->g[g].shut)
        return WEIR_REASON_GATED;
    if (m->g[g].threadless)
        return WEIR_REASON_NO_THREAD;
    if (cost_in(m, g, RUNS) + m->g[g].carried + cost > m->g[g].limit)
        return WEIR_REASON_GROUP_LIMIT;
    if (inflight_of(m, g) + m->g[g].carried + cost > m->g[g].inflight_max)
        return WEIR_REASON_GROUP_INFLIGHT;
    if (m->inflight_max != NO && held_of(m) + cost > m->inflight_max)
        return WEIR_REASON_GLOBAL_INFLIGHT;
    return NONE;
}

/* ---- the driver -------------------------------------------------------------------------------- */

struct run {
    uint64_t seed, luck;
    struct model model, before;
    struct wr_sums s[GROUPS];
    struct wr_root root;
    int costs; /* 1: all cost one */
    bool trace;
    char last[128];
};

static uint64_t draw(struct run *r)
{
    uint64_t z = r->luck += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static int below(struct run *r, int n)
{
    return (int)(draw(r) % (uint64_t)n);
}

#define MUST(r, condition)                                                                  \
    do {                                                                                    \
        if (!(condition))                                                                   \
            fail_msg("%s:%d: %s, after %s; replay with WEIR_SEED=%llu", __FILE__, __LINE__, \
                     #condition, (r)->last, (unsigned long long)(r)->seed);                 \
    } while (0)

#define STEP(r, ...)                                         \
    do {                                                     \
        snprintf((r)->last, sizeof((r)->last), __VA_ARGS__); \
        if ((r)->trace)                                      \
            fprintf(stderr, "%s\n", (r)->last);              \
    } while (0)

static uint32_t as_limit(int64_t limit)
{
    return limit == NO ? WR_INF : (uint32_t)limit;
}

static bool agree(const struct run *r, int g)
{
    const struct model *m = &r->model;
    const struct wr_sums *s = &r->s[g];
    int64_t room = ready_of(m, g);
    uint32_t free = wr_free(s);

    return s->running == cost_in(m, g, RUNS) && s->inflight == inflight_of(m, g) &&
           s->queued == count_in(m, g, WAITS) && s->queued_cost == (uint64_t)cost_in(m, g, WAITS) &&
           wr_claims(s) == (uint64_t)(inflight_of(m, g) + room) &&
           (free == 0 || group_lets(m, g, free < MANY ? free : MANY)) &&
           (free >= NO || !group_lets(m, g, (int64_t)free + 1)) && s->counted == m->g[g].counted;
}

/* Rules that must hold after every step. */
static void check(struct run *r)
{
    const struct model *m = &r->model, *b = &r->before;

    MUST(r, wr_load(&r->root.held, relaxed) == (uint64_t)held_of(m));
    MUST(r, wr_load(&r->root.claimed, relaxed) == (uint64_t)claimed_of(m));
    for (int g = 0; g < GROUPS; g++) {
        const struct wr_sums *s = &r->s[g];
        int first = first_of(m, g, WAITS);
        MUST(r, agree(r, g));
        MUST(r, s->running <= s->inflight); /* what admit.h says */
        MUST(r, (s->queued == 0) == (s->queued_cost == 0));
        if (s->running > cost_in(b, g, RUNS)) /* I1: what grows stays within */
            MUST(r, s->running + m->g[g].carried <= m->g[g].limit);
        if (s->inflight > inflight_of(b, g))
            MUST(r, s->inflight + m->g[g].carried <= m->g[g].inflight_max);
        if (first >= 0) /* I6: nothing keeps it back but what does */
            MUST(r, wr_blocked_by(s, &r->root, (uint32_t)m->task[first].cost) ==
                        model_blocked_by(m, g, m->task[first].cost));
        for (int cost = 1; cost <= 3; cost++)
            MUST(r, wr_can_ever(s, &r->root, (uint32_t)cost) ==
                        (cost <= m->g[g].limit && cost <= m->g[g].inflight_max &&
                         cost <= m->inflight_max));
    }
    if (m->inflight_max != NO && held_of(m) > held_of(b)) /* I2, but for groups that join */
        MUST(r, held_of(m) <= m->inflight_max);
}

static void submit(struct run *r, int g)
{
    int cost = 1 + below(r, r->costs);
    weir_reason said, expected = model_admit(&r->model, g, cost);
    bool needs_place = !group_lets(&r->model, g, cost_in(&r->model, g, WAITS) + cost);

    if (r->model.tasks == TASKS || !wr_can_ever(&r->s[g], &r->root, (uint32_t)cost))
        return;
    said = wr_admit(&r->s[g], &r->root, (uint32_t)cost);
    STEP(r, "submit to %d of %d: %d", g, cost, said);
    MUST(r, said == expected);
    if (said == NONE)
        r->model.task[r->model.tasks++] = (struct task){ WAITS, g, cost };
    if (said == NONE && needs_place && r->model.g[g].queue_max != NO) /* I3 */
        MUST(r, held_back_of(&r->model, g) <= r->model.g[g].queue_max);
}

static void start(struct run *r, int g)
{
    int i = first_of(&r->model, g, WAITS);
    weir_reason said, expected;

    if (i < 0)
        return;
    expected = model_blocked_by(&r->model, g, r->model.task[i].cost);
    if (below(r, 2)) {
        said = start_unreserved(&r->s[g], &r->root, (uint32_t)r->model.task[i].cost);
    } else { /* the same, as workers do it */
        uint32_t reserved = 0;
        uint32_t wanted = below(r, 2) ? 1 : (uint32_t)r->model.task[i].cost;
        if (!wr_reserve(&r->root, wanted, &reserved))
            MUST(r, expected != NONE);
        said = wr_start(&r->s[g], &r->root, (uint32_t)r->model.task[i].cost, &reserved);
        wr_unreserve(&r->root, &reserved);
    }
    STEP(r, "start %d: %d", i, said);
    MUST(r, said == expected);
    if (said == NONE)
        r->model.task[i].state = RUNS;
}

/* Any task of the group in that state, or -1. */
static int any_of(struct run *r, int g, enum state state)
{
    int64_t count = count_in(&r->model, g, state);
    int64_t skip = count ? below(r, (int)count) : 0;

    for (int i = 0; i < r->model.tasks && count; i++)
        if (r->model.task[i].group == g && r->model.task[i].state == state && skip-- == 0)
            return i;
    return -1;
}

static void end_one(struct run *r, int g, enum state state)
{
    int i = any_of(r, g, state);
    struct task *task;

    if (i < 0)
        return;
    task = &r->model.task[i];
    STEP(r, "end %d in state %d", i, state);
    if (state == WAITS)
        wr_withdraw(&r->s[g], &r->root, (uint32_t)task->cost);
    else if (state == RUNS)
        wr_finish(&r->s[g], &r->root, (uint32_t)task->cost);
    else
        wr_settle_pending(&r->s[g], &r->root, (uint32_t)task->cost);
    task->state = GONE;
}

static void pend(struct run *r, int g)
{
    int i = any_of(r, g, RUNS);

    if (i < 0)
        return;
    STEP(r, "pend %d", i);
    wr_pend(&r->s[g], &r->root, (uint32_t)r->model.task[i].cost);
    r->model.task[i].state = PENDS;
}

/* To hand over is to finish one and to start the next, if nothing was over its limit; on the thread that is at hand. */
static void hand_over(struct run *r, int g)
{
    int from = any_of(r, g, RUNS), to = first_of(&r->model, g, WAITS);
    bool threadless = r->model.g[g].threadless;
    weir_reason expected;
    bool did;

    if (from < 0 || to < 0 || r->model.task[from].cost != r->model.task[to].cost)
        return;
    r->model.task[from].state = GONE;
    r->model.g[g].threadless = false;
    expected = model_blocked_by(&r->model, g, r->model.task[to].cost);
    r->model.g[g].threadless = threadless;
    did = wr_hand_over(&r->s[g], &r->root, (uint32_t)r->model.task[to].cost);
    STEP(r, "hand over from %d to %d: %d", from, to, did);
    MUST(r, did == (expected == NONE));
    if (did)
        r->model.task[to].state = RUNS;
    else
        r->model.task[from].state = RUNS;
}

static int64_t some_limit(struct run *r)
{
    int n = below(r, 6);
    return n == 0 ? NO : n;
}

static int64_t some_queue(struct run *r)
{
    int n = below(r, 6);
    return n == 5 ? NO : n;
}

static void resize(struct run *r, int g)
{
    r->model.g[g].limit = some_limit(r);
    r->model.g[g].inflight_max = some_limit(r);
    r->model.g[g].queue_max = some_queue(r);
    STEP(r, "resize %d to %lld %lld %lld", g, (long long)r->model.g[g].limit,
         (long long)r->model.g[g].inflight_max, (long long)r->model.g[g].queue_max);
    wr_set_limits(&r->s[g], &r->root, as_limit(r->model.g[g].limit),
                  as_limit(r->model.g[g].inflight_max), as_limit(r->model.g[g].queue_max));
}

static void set_gate(struct run *r, int g)
{
    r->model.g[g].shut = below(r, 4) == 0;
    r->model.g[g].threadless = below(r, 4) == 0;
    STEP(r, "gate %d: %d %d", g, r->model.g[g].shut, r->model.g[g].threadless);
    wr_set_closed(&r->s[g], &r->root,
                  r->model.g[g].shut         ? WR_SHUT
                  : r->model.g[g].threadless ? WR_LACKS_THREAD
                                             : WR_OPEN);
}

static void carry(struct run *r, int g)
{
    r->model.g[g].carried = below(r, 4);
    STEP(r, "carry %lld over to %d", (long long)r->model.g[g].carried, g);
    wr_carry(&r->s[g], &r->root, (uint32_t)r->model.g[g].carried);
}

/* As weir_executor_resize: while there is no limit groups join or leave, each at its own time. */
static void resize_executor(struct run *r)
{
    bool all = true;

    for (int g = 0; g < GROUPS; g++)
        all = all && r->model.g[g].counted;
    r->model.inflight_max = all ? some_limit(r) : NO;
    r->model.queue_max = some_queue(r);
    STEP(r, "executor to %lld %lld", (long long)r->model.inflight_max,
         (long long)r->model.queue_max);
    wr_store(&r->root.inflight_max, as_limit(r->model.inflight_max), relaxed);
    wr_store(&r->root.queue_max, as_limit(r->model.queue_max), relaxed);
}

static void set_counted(struct run *r, int g)
{
    if (r->model.inflight_max != NO)
        return;
    r->model.g[g].counted = below(r, 4) != 0;
    STEP(r, "count %d: %d", g, r->model.g[g].counted);
    wr_set_counted(&r->s[g], &r->root, r->model.g[g].counted);
}

static void step(struct run *r)
{
    int g = below(r, GROUPS), what = below(r, 100);

    r->before = r->model;
    if (what < 34)
        submit(r, g);
    else if (what < 58)
        start(r, g);
    else if (what < 68)
        end_one(r, g, RUNS);
    else if (what < 73)
        pend(r, g);
    else if (what < 77)
        end_one(r, g, PENDS);
    else if (what < 81)
        end_one(r, g, WAITS);
    else if (what < 87)
        hand_over(r, g);
    else if (what < 91)
        resize(r, g);
    else if (what < 93)
        set_gate(r, g);
    else if (what < 95)
        carry(r, g);
    else if (what < 98)
        resize_executor(r);
    else
        set_counted(r, g);
    check(r);
}

/* I4: when all is over nothing is left, and all there ever was can be had again. */
static void end(struct run *r)
{
    for (int g = 0; g < GROUPS; g++)
        for (enum state state = WAITS; state <= PENDS; state++)
            while (count_in(&r->model, g, state))
                end_one(r, g, state);
    r->before = r->model;
    check(r);
    MUST(r, wr_load(&r->root.held, relaxed) == 0 && wr_load(&r->root.claimed, relaxed) == 0);
    wr_store(&r->root.inflight_max, WR_INF, relaxed);
    for (int g = 0; g < GROUPS; g++) {
        wr_set_closed(&r->s[g], &r->root, WR_OPEN);
        wr_carry(&r->s[g], &r->root, 0);
        wr_set_limits(&r->s[g], &r->root, 2, WR_INF, 1);
        MUST(r, fill(&r->s[g], &r->root, true) == 3);
        MUST(r, r->s[g].running == 2 && r->s[g].queued == 1);
    }
}

static void run_one(uint64_t seed, bool trace)
{
    struct run r = { .seed = seed, .luck = seed, .trace = trace };
    bool counted = draw(&r) & 1;

    r.costs = below(&r, 2) ? 3 : 1;
    r.model.inflight_max = NO;
    for (int g = 0; g < GROUPS; g++) {
        resize(&r, g);
        r.model.g[g].counted = counted;
        wr_set_counted(&r.s[g], &r.root, counted);
    }
    resize_executor(&r);
    for (int i = 0; i < 30; i++)
        step(&r);
    end(&r);
}

enum { SCHEDULES = SANITIZED ? 10000 : 50000 };

static void test_random_schedules_agree_with_the_model(void **state)
{
    const char *given = getenv("WEIR_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : soak_seed(1);
    uint64_t count = given ? 1 : soak_times(SCHEDULES);
    (void)state;
    print_message("seeds from %llu\n", (unsigned long long)seed);
    for (uint64_t i = 0; i < count; i++)
        run_one(seed + i, given && getenv("WEIR_TRACE"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_free_is_the_rest_of_the_tighter_limit),
        cmocka_unit_test(test_ready_are_those_the_group_would_let_start),
        cmocka_unit_test(test_a_closed_gate_leaves_nothing_free),
        cmocka_unit_test(test_claims_are_tasks_that_fly_and_tasks_that_could),
        cmocka_unit_test(test_a_cost_beyond_any_limit_can_never_run),
        cmocka_unit_test(test_exactly_the_limit_and_the_queue_are_inside),
        cmocka_unit_test(test_exactly_the_executors_limit_and_queue_are_inside),
        cmocka_unit_test(test_a_refused_task_leaves_no_trace),
        cmocka_unit_test(test_start_takes_all_permits_or_none),
        cmocka_unit_test(test_the_nearest_limit_is_named),
        cmocka_unit_test(test_a_pending_task_gives_its_place_among_the_running),
        cmocka_unit_test(test_a_reserved_permit_is_used_or_given_back),
        cmocka_unit_test(test_withdrawing_gives_the_place_back),
        cmocka_unit_test(test_permits_are_handed_over_unless_a_limit_was_lowered),
        cmocka_unit_test(test_permits_carried_over_count_until_they_are_given_back),
        cmocka_unit_test(test_joining_and_leaving_the_executors_sums),
        cmocka_unit_test(test_random_schedules_agree_with_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
