/* The breaker against a machine that is written down plainly and remembers every outcome.
 * SPDX-License-Identifier: MIT */
#include "guard/breaker.h"
#include "support/luck.h"

#include <string.h>

enum { MOST = 64, SECOND = 1000000000 };

/* All that ever ended since the window began, and no sums. */
struct model {
    struct wr_breaker_settings set;
    weir_breaker_state state;
    int64_t since; /* of the state: its number, to tell calls of earlier ones apart */
    int64_t window_since;
    bool small; /* the window is that of half open */
    int64_t out, attempt;
    weir_time until;
    struct {
        weir_time at;
        bool failed, slow;
    } log[MOST];
    int logged;
};

static weir_time later_by(weir_time now, int64_t ns)
{
    return ns > INT64_MAX - now ? INT64_MAX : now + ns;
}

static void model_enter(struct model *m, weir_breaker_state to, weir_time now, int64_t open_ns)
{
    m->state = to;
    m->since++;
    if (to == WEIR_OPEN) {
        m->attempt++;
        m->until = later_by(now, open_ns);
        return;
    }
    m->window_since = m->since;
    m->small = to == WEIR_HALF_OPEN;
    m->logged = 0;
    m->out = 0;
    if (to == WEIR_HALF_OPEN)
        m->until = later_by(now, m->set.half_open_ns);
    else
        m->attempt = 0;
}

static void model_time(struct model *m, weir_time now, int64_t open_ns)
{
    if (m->state == WEIR_OPEN && m->set.auto_half_open && now > m->until)
        model_enter(m, WEIR_HALF_OPEN, now, open_ns);
    if (m->state == WEIR_HALF_OPEN && now >= m->until)
        model_enter(m, m->set.half_open_then, now, open_ns);
}

/* Counts what the window holds: the latest so many, or those of the latest seconds. */
static int64_t model_count(const struct model *m, weir_time now, int64_t *failed, int64_t *slow)
{
    int64_t size = m->small ? m->set.probes : m->set.window, stored = 0;

    *failed = *slow = 0;
    for (int i = m->logged - 1; i >= 0; i--) {
        if (m->set.by_time && !m->small ? m->log[i].at / SECOND <= now / SECOND - size
                                        : stored == size)
            break;
        stored++;
        *failed += m->log[i].failed;
        *slow += m->log[i].slow;
    }
    return stored;
}

static int64_t model_enough(const struct model *m)
{
    int64_t size = m->small ? m->set.probes : m->set.window;

    return (m->set.by_time && !m->small) || m->set.minimum < size ? m->set.minimum : size;
}

static bool model_permits(const struct model *m, weir_time now)
{
    int64_t failed, slow;

    if (m->state == WEIR_OPEN)
        return now > m->until;
    if (m->state == WEIR_HALF_OPEN)
        return m->out + model_count(m, now, &failed, &slow) < m->set.probes;
    return m->state != WEIR_FORCED_OPEN;
}

static void model_end(struct model *m, weir_time now, int64_t epoch, bool failed, bool slow,
                      int64_t open_ns)
{
    int64_t stored, bad, late;

    if (epoch != m->window_since || m->state == WEIR_DISABLED || m->state == WEIR_FORCED_OPEN)
        return;
    if (m->state == WEIR_HALF_OPEN)
        m->out--;
    if (m->logged == MOST) {
        memmove(&m->log[0], &m->log[1], sizeof(m->log[0]) * (MOST - 1));
        m->logged--;
    }
    m->log[m->logged].at = now;
    m->log[m->logged].failed = failed;
    m->log[m->logged++].slow = slow;
    stored = model_count(m, now, &bad, &late);
    if (stored < model_enough(m) || m->state == WEIR_OPEN || m->state == WEIR_METRICS_ONLY)
        return;
    if ((double)bad * 100 >= m->set.failure_percent * (double)stored ||
        (double)late * 100 >= m->set.slow_percent * (double)stored)
        model_enter(m, WEIR_OPEN, now, open_ns);
    else if (m->state == WEIR_HALF_OPEN)
        model_enter(m, WEIR_CLOSED, now, open_ns);
}

static bool model_set(struct model *m, weir_breaker_state to, weir_time now, int64_t open_ns)
{
    if (m->state == to)
        return true;
    if ((m->state == WEIR_CLOSED && to == WEIR_HALF_OPEN) ||
        (m->state == WEIR_METRICS_ONLY && (to == WEIR_OPEN || to == WEIR_HALF_OPEN)))
        return false;
    model_enter(m, to, now, open_ns);
    return true;
}

static void draw_settings(struct wr_breaker_settings *set)
{
    static const double percents[] = { 10, 25, 33.4, 50, 60, 75, 100 };

    memset(set, 0, sizeof(*set));
    set->failure_percent = percents[between(0, 6)];
    set->slow_percent = percents[between(0, 6)];
    set->open_growth = 1;
    set->slow_ns = 50;
    set->window = between(1, 8);
    set->minimum = between(1, 8);
    set->probes = between(1, 5);
    set->open_ns = set->open_max_ns =
        chance(90) ? between(1, 4) * SECOND : between(1, INT64_MAX) >> between(0, 40);
    set->half_open_ns = chance(30) ? INT64_MAX : between(1, 4) * SECOND;
    set->by_time = chance(50);
    set->auto_half_open = chance(50);
    set->half_open_then = chance(50) ? WEIR_OPEN : WEIR_CLOSED;
    if (!set->by_time && set->minimum > set->window)
        set->minimum = set->window;
    set->initial = WEIR_CLOSED;
}

static void check(const struct wr_breaker *b, const struct model *m, weir_time now)
{
    int64_t failed, slow, stored = model_count(m, now, &failed, &slow);
    weir_time when;

    MUST_BE(b->state, m->state);
    MUST_BE(wr_breaker_permits(b, now, &when), model_permits(m, now));
    MUST_BE(b->outcomes.sum.stored, stored);
    MUST_BE(b->outcomes.sum.failed, failed);
    MUST_BE(b->outcomes.sum.slow, slow);
    MUST_BE(b->attempt, m->attempt);
    if (m->state == WEIR_HALF_OPEN)
        MUST_BE(b->probes_out, m->out);
}

static void life(void)
{
    struct {
        uint64_t epoch;
        int64_t model;
    } call[MOST];
    struct wr_breaker_settings set;
    struct wr_breaker *b;
    struct model m = { .logged = 0 };
    weir_time now = between(0, 5) * SECOND + between(0, SECOND);
    int calls = 0;

    draw_settings(&set);
    m.set = set;
    b = calloc(1, wr_breaker_size(&set));
    wr_breaker_init(b, &set, now);
    model_enter(&m, WEIR_CLOSED, now, 0);
    for (int i = 0; i < 60; i++) {
        struct wr_breaker_news news = { .count = 0 };
        struct wr_breaker_step step = { now, 7, &news };
        bool failed = chance(50), slow = chance(30), late;
        weir_time when;

        now += chance(40) ? between(0, SECOND) : 0;
        if (chance(2)) /* idle for years */
            now += between(0, INT64_MAX / 64) >> between(0, 30);
        step.now = now;
        late = m.state == WEIR_OPEN || m.state == WEIR_HALF_OPEN;
        if (late && chance(10) && m.until < INT64_MAX / 2)
            step.now = now = m.until + between(-1, 1) > now ? m.until + between(-1, 1) : now;
        if (now < 0 || now > INT64_MAX / 2)
            break;
        wr_breaker_refresh(b, &step);
        wr_outcomes_refresh(&b->outcomes, now);
        model_time(&m, now, set.open_ns);
        if (chance(55)) {
            if (model_permits(&m, now)) {
                MUST(wr_breaker_permits(b, now, &when));
                if (m.state == WEIR_OPEN)
                    model_enter(&m, WEIR_HALF_OPEN, now, 0);
                if (m.state == WEIR_HALF_OPEN)
                    m.out++;
                uint64_t epoch = wr_breaker_pass(b, &step);
                if (calls < MOST) {
                    call[calls].epoch = epoch;
                    call[calls++].model = m.since;
                }
            }
        } else if (calls && chance(90)) {
            int k = (int)between(0, calls - 1);
            if (chance(10)) {
                wr_breaker_undo(b, call[k].epoch);
                if (m.state == WEIR_HALF_OPEN && call[k].model == m.since)
                    m.out--;
            } else {
                wr_breaker_end(b, &step, call[k].epoch, failed, slow ? 51 : 50);
                model_end(&m, now, call[k].model, failed, slow, set.open_ns);
            }
            call[k] = call[--calls];
        } else if (chance(30)) {
            weir_breaker_state to = (weir_breaker_state)between(WEIR_CLOSED, WEIR_FORCED_OPEN);
            MUST_BE(wr_breaker_set(b, &step, to, 0), model_set(&m, to, now, set.open_ns));
        }
        check(b, &m, now);
        MUST(news.count == 0 || news.change[news.count - 1].to == b->state);
    }
    free(b);
}

static void test_breakers_agree_with_the_plain_machine(void **state)
{
    (void)state;
    live(life);
}

static void test_open_waits_grow_up_to_a_cap_and_vary_by_chance(void **state)
{
    struct wr_breaker_settings set = { .open_ns = 5000, .open_growth = 1.5, .open_max_ns = 100000 };

    (void)state;
    assert_int_equal(wr_breaker_open_ns(&set, 1, 7), 5000);
    assert_int_equal(wr_breaker_open_ns(&set, 2, 7), 7500);
    assert_int_equal(wr_breaker_open_ns(&set, 3, 7), 11250);
    assert_int_equal(wr_breaker_open_ns(&set, 1000000, 7), 100000);
    set.open_jitter = 0.5;
    for (uint64_t luck = 0; luck < 1000; luck++) {
        int64_t ns = wr_breaker_open_ns(&set, 1, luck * 0x9e3779b97f4a7c15u);
        assert_true(ns >= 2500 && ns <= 7500);
    }
}

static void test_a_ring_of_four_evicts_the_oldest(void **state)
{
    struct wr_outcomes *o = calloc(1, wr_outcomes_size(4, false));

    (void)state;
    wr_outcomes_reset(o, 4, false, 0);
    wr_outcomes_add(o, 0, WR_FAILED, 100);
    for (int i = 0; i < 3; i++)
        wr_outcomes_add(o, 0, 0, 100);
    assert_int_equal(o->sum.failed, 1);
    assert_int_equal(o->sum.ns, 400);
    wr_outcomes_add(o, 0, WR_SLOW, 500);
    assert_int_equal(o->sum.failed, 0);
    assert_int_equal(o->sum.slow, 1);
    assert_int_equal(o->sum.stored, 4);
    assert_int_equal(o->sum.ns / o->sum.stored, 200);
    for (int i = 0; i < 11; i++) /* round and round */
        wr_outcomes_add(o, 0, WR_FAILED | WR_SLOW, INT64_MAX);
    assert_int_equal(o->sum.slow_failed, 4);
    assert_true(o->sum.ns > 0);
    free(o);
}

static void test_seconds_leave_the_window_one_by_one(void **state)
{
    struct wr_outcomes *o = calloc(1, wr_outcomes_size(5, true));
    weir_time t = 100 * (weir_time)SECOND;

    (void)state;
    wr_outcomes_reset(o, 5, true, t);
    wr_outcomes_add(o, t, WR_FAILED, 10);
    wr_outcomes_add(o, t + SECOND, 0, 90 * (int64_t)SECOND); /* longer than a second counts whole */
    wr_outcomes_refresh(o, t + 4 * (weir_time)SECOND);
    assert_int_equal(o->sum.stored, 2);
    wr_outcomes_refresh(o, t + 5 * (weir_time)SECOND);
    assert_int_equal(o->sum.stored, 1);
    assert_int_equal(o->sum.failed, 0);
    assert_int_equal(o->sum.ns, 90 * (int64_t)SECOND);
    wr_outcomes_refresh(o, t + 6 * (weir_time)SECOND);
    assert_int_equal(o->sum.stored, 0);
    free(o);
}

/* Many calls that went well, added at once, leave what adding them one by one does. */
static void test_many_fine_calls_are_added_as_single_ones(void **state)
{
    const size_t room = wr_outcomes_size(9, true) + wr_outcomes_size(9, false);
    struct wr_outcomes *one = calloc(1, room), *many = calloc(1, room);

    (void)state;
    for (int round = 0; round < 2000; round++) {
        bool by_time = round % 2;
        weir_time now = 7 * (weir_time)SECOND;

        memset(one, 0, room);
        memset(many, 0, room);
        wr_outcomes_reset(one, 1 + round % 9, by_time, now);
        wr_outcomes_reset(many, 1 + round % 9, by_time, now);
        for (int step = 0; step < 12; step++) {
            uint32_t ns[16];
            size_t count = (size_t)between(0, 15);
            int bits = (int)between(0, 3);

            now += between(0, 2) * (weir_time)SECOND;
            wr_outcomes_add(one, now, bits, 3 * step);
            wr_outcomes_add(many, now, bits, 3 * step);
            for (size_t i = 0; i < count; i++) {
                ns[i] = (uint32_t)between(0, UINT32_MAX);
                wr_outcomes_add(one, now, 0, ns[i]);
            }
            wr_outcomes_add_fine(many, ns, count);
            assert_memory_equal(one, many, room);
        }
    }
    free(one);
    free(many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_breakers_agree_with_the_plain_machine),
        cmocka_unit_test(test_open_waits_grow_up_to_a_cap_and_vary_by_chance),
        cmocka_unit_test(test_a_ring_of_four_evicts_the_oldest),
        cmocka_unit_test(test_seconds_leave_the_window_one_by_one),
        cmocka_unit_test(test_many_fine_calls_are_added_as_single_ones),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
