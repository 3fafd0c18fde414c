/* Several guards as one step: all or none, against a model; and side by side with others.
 * SPDX-License-Identifier: MIT */
#include "support/guard_support.h"

enum { GUARDS = 5, OUT = 8, LIVES = SANITIZED ? 100 : 1000, STEPS = 15, TIMES = 64 };

/* ---- a model of each, as plain as can be -------------------------------------------------------------- */

struct model {
    weir_guard_kind kind;
    int64_t limit, period;
    int64_t used;          /* bulkhead, mutex                               */
    weir_time start;       /* rate                                          */
    weir_time went[TIMES]; /* rate, frequency: all that were let in         */
    int count;
    weir_breaker_state state; /* breaker: window 2, half fail, one probe       */
    int64_t epoch;
    weir_time until;
    int stored, failed[2], probes;
    int64_t open_ns;
};

static int64_t pick(int64_t low, int64_t high)
{
    return low + (int64_t)(weir_sim_random() % (uint64_t)(high - low + 1));
}

static weir_time later(weir_time a, weir_time b)
{
    return a > b ? a : b;
}

static int64_t cycle_of(const struct model *m, weir_time t)
{
    return (t - m->start) / m->period;
}

/* How many of them are in the present cycle, or in the latest stretch of one period. */
static int present(const struct model *m, weir_time now)
{
    int count = 0;

    for (int i = 0; i < m->count; i++)
        count += m->kind == WEIR_GUARD_RATE ? cycle_of(m, m->went[i]) == cycle_of(m, now)
                                            : m->went[i] > now - m->period;
    return count;
}

static void model_time(struct model *m, weir_time now)
{
    if (m->kind == WEIR_GUARD_BREAKER && m->state == WEIR_HALF_OPEN && now >= m->until) {
        m->state = WEIR_OPEN;
        m->epoch++;
        m->until = now + m->open_ns;
    }
}

static weir_time model_when(struct model *m, weir_time now)
{
    switch (m->kind) {
    case WEIR_GUARD_RATE:
        return present(m, now) < m->limit ? now : m->start + (cycle_of(m, now) + 1) * m->period;
    case WEIR_GUARD_FREQUENCY:
        return present(m, now) < m->limit ? now : m->went[m->count - m->limit] + m->period;
    case WEIR_GUARD_BREAKER:
        if (m->state == WEIR_OPEN)
            return now > m->until ? now : m->until + 1;
        return m->state == WEIR_HALF_OPEN && m->probes ? WEIR_FOREVER : now;
    default:
        return m->used < m->limit ? now : WEIR_FOREVER;
    }
}

static int64_t model_take(struct model *m, weir_time now)
{
    if (m->kind == WEIR_GUARD_RATE || m->kind == WEIR_GUARD_FREQUENCY) {
        CHECK(m->count < TIMES);
        m->went[m->count++] = now;
    } else if (m->kind == WEIR_GUARD_BREAKER) {
        if (m->state == WEIR_OPEN) {
            m->state = WEIR_HALF_OPEN;
            m->epoch++;
            m->until = now + m->open_ns;
            m->stored = m->probes = 0;
        }
        m->probes += m->state == WEIR_HALF_OPEN;
    } else {
        m->used++;
    }
    return m->epoch;
}

static void model_end(struct model *m, weir_time now, int64_t epoch, bool failed)
{
    if (m->kind == WEIR_GUARD_BULKHEAD || m->kind == WEIR_GUARD_MUTEX)
        m->used--;
    if (m->kind != WEIR_GUARD_BREAKER)
        return;
    model_time(m, now);
    if (epoch != m->epoch || m->state == WEIR_OPEN)
        return;
    if (m->state == WEIR_HALF_OPEN) { /* the one probe decides */
        m->state = failed ? WEIR_OPEN : WEIR_CLOSED;
        m->epoch++;
        m->until = now + m->open_ns;
        m->stored = 0;
        return;
    }
    m->failed[0] = m->failed[1];
    m->failed[1] = failed;
    m->stored += m->stored < 2;
    if (m->stored == 2 && m->failed[0] + m->failed[1] >= 1) {
        m->state = WEIR_OPEN;
        m->epoch++;
        m->until = now + m->open_ns;
    }
}

/* ---- lives -------------------------------------------------------------------------------------------- */

static const int rank[] = { [WEIR_GUARD_BREAKER] = 1,
                            [WEIR_GUARD_RATE] = 2,
                            [WEIR_GUARD_FREQUENCY] = 3,
                            [WEIR_GUARD_BULKHEAD] = 4,
                            [WEIR_GUARD_MUTEX] = 5 };
static const int error_of[] = { [WEIR_GUARD_BREAKER] = WEIR_EBROKEN,
                                [WEIR_GUARD_RATE] = WEIR_ETOOFAST,
                                [WEIR_GUARD_FREQUENCY] = WEIR_ETOOFAST,
                                [WEIR_GUARD_BULKHEAD] = WEIR_EFULL,
                                [WEIR_GUARD_MUTEX] = WEIR_ELOCKED };

struct life {
    struct model model[GUARDS];
    weir_guard *guard[GUARDS];
    struct {
        weir_permit permit[GUARDS];
        int which[GUARDS], count;
        int64_t epoch[GUARDS];
    } out[OUT];
    int outs;
};

static void life_begin(struct life *l)
{
    static const weir_guard_kind kinds[] = { WEIR_GUARD_BULKHEAD, WEIR_GUARD_MUTEX, WEIR_GUARD_RATE,
                                             WEIR_GUARD_FREQUENCY, WEIR_GUARD_BREAKER };

    l->outs = 0;
    for (int i = 0; i < GUARDS; i++) {
        struct model *m = &l->model[i];
        char name[2] = { (char)('e' - i), 0 };
        weir_guard_options opt = { .size = sizeof(opt) };

        *m = (struct model){ .kind = kinds[i < 4 ? i : (int)pick(0, 4)],
                             .period = pick(2, 50) * MS,
                             .limit = pick(1, 3),
                             .start = weir_now(),
                             .state = WEIR_CLOSED,
                             .epoch = 1,
                             .open_ns = pick(1, 60) * MS };
        m->limit = m->kind == WEIR_GUARD_MUTEX ? 1 : m->limit;
        opt.kind = m->kind;
        opt.limit = m->limit;
        opt.period_ns = m->period;
        opt.mode = m->kind == WEIR_GUARD_FREQUENCY ? WEIR_EXACT : (weir_guard_mode)0;
        if (m->kind == WEIR_GUARD_BREAKER)
            opt = *WEIR_BREAKER(.window = 2, .failure_percent = 50, .probes = 1,
                                .open_ns = m->open_ns);
        l->guard[i] = guard_of(name, &opt);
    }
}

/* The models say what must come of it: which guard refuses first, and from when on all would admit. */
static void life_enter(struct life *l)
{
    weir_permit permit[GUARDS];
    weir_guard *guard[GUARDS];
    int which[GUARDS], count = 0, wanted = 0, best = 99, order = (int)pick(0, GUARDS - 1), rc;
    weir_time now = weir_now(), all = now;

    for (int k = 0; k < GUARDS; k++) {
        int i = (order + k) % GUARDS;
        weir_time when;
        if (pick(0, 2) == 0)
            continue;
        permit[count] = WEIR_PERMIT;
        guard[count] = l->guard[i];
        which[count++] = i;
        model_time(&l->model[i], now);
        when = model_when(&l->model[i], now);
        all = later(all, when);
        if (when > now && (rank[l->model[i].kind] < best)) {
            best = rank[l->model[i].kind];
            wanted = error_of[l->model[i].kind];
        }
    }
    if (count == 0)
        return;
    rc = weir_guards_enter(permit, guard, (size_t)count, WEIR_NOW_OR_NEVER);
    CHECK_EQ(rc, wanted);
    for (int k = 0; k < count; k++) {
        CHECK((permit[k].guard != NULL) == (rc == 0));
        if (rc)
            CHECK_EQ(permit[k].retry_at, all);
    }
    if (rc)
        return;
    l->out[l->outs].count = count;
    for (int k = 0; k < count; k++) {
        l->out[l->outs].permit[k] = WEIR_PERMIT;
        CHECK(weir_permit_move(&l->out[l->outs].permit[k], &permit[k]) == 0);
        l->out[l->outs].which[k] = which[k];
        l->out[l->outs].epoch[k] = model_take(&l->model[which[k]], now);
    }
    l->outs++;
}

static void life_leave(struct life *l, bool failed)
{
    int k = l->outs - 1; /* permits stay where they are */

    weir_guards_leave(l->out[k].permit, (size_t)l->out[k].count, failed ? -EIO : 0);
    for (int i = l->out[k].count - 1; i >= 0; i--)
        model_end(&l->model[l->out[k].which[i]], weir_now(), l->out[k].epoch[i], failed);
    l->outs--;
}

static void life_check(struct life *l)
{
    for (int i = 0; i < GUARDS; i++) {
        struct model *m = &l->model[i];
        weir_guard_stats s = figures(l->guard[i]);

        model_time(m, weir_now());
        if (m->kind == WEIR_GUARD_RATE || m->kind == WEIR_GUARD_FREQUENCY)
            CHECK_EQ(s.available, m->limit - present(m, weir_now()));
        else if (m->kind == WEIR_GUARD_BREAKER)
            CHECK_EQ(s.state, m->state);
        else
            CHECK_EQ(s.used, m->used);
        CHECK_EQ(s.waiting, 0);
    }
}

static void lives(UNUSED void *arg)
{
    for (int n = 0; n < LIVES; n++) {
        struct life l;

        CHECK(weir_store_local(&store) == 0);
        life_begin(&l);
        for (int i = 0; i < STEPS; i++) {
            if (pick(0, 2) == 0)
                weir_sim_busy(pick(0, 40) * MS / 2);
            if (l.outs < OUT && pick(0, 2))
                life_enter(&l);
            else if (l.outs)
                life_leave(&l, pick(0, 1));
            life_check(&l);
        }
        while (l.outs)
            life_leave(&l, false);
        for (int i = 0; i < GUARDS; i++)
            weir_guard_unref(l.guard[i]);
        weir_store_free(store);
    }
}

static void test_all_or_none_as_the_model_says(void **state)
{
    (void)state;
    explore(100, WEIR_SIM_OPTIONS(.seed = 1, .points_max = 1000000000, .jumps_max = 10000000),
            lives);
}

/* ---- beside others ------------------------------------------------------------------------------------- */

struct pair {
    weir_guard *a, *b;
    _Atomic bool over;
};

static void asks_for_both(void *arg)
{
    struct pair *pair = arg;
    weir_guard *both[2] = { pair->b, pair->a };

    for (int i = 0; i < 30; i++) {
        weir_permit p[2] = { WEIR_PERMIT, WEIR_PERMIT };
        CHECK_EQ(weir_guards_enter(p, both, 2, WEIR_NOW_OR_NEVER), WEIR_EFULL);
    }
    pair->over = true;
}

/* T16: callers that are refused never make others fail. */
GUARD_TEST(test_a_refused_caller_has_taken_nothing_meanwhile)
{
    struct pair pair = { .a = guard_of("a", WEIR_BULKHEAD(.limit = 1)),
                         .b = guard_of("b", WEIR_BULKHEAD(.limit = 1)) };
    weir_permit held = WEIR_PERMIT;
    int64_t thread;

    CHECK(weir_guard_enter(&held, pair.b, 0) == 0);
    thread = weir_sim_thread(asks_for_both, &pair, "both");
    while (!pair.over)
        CHECK_EQ(call_once(pair.a, 0), 0);
    weir_sim_join(thread);
    CHECK(weir_guard_leave(&held, 0) == 0);
    CHECK_EQ(figures(pair.a).refused + figures(pair.b).refused, 30);
    weir_guard_unref(pair.a);
    weir_guard_unref(pair.b);
}

struct table {
    weir_guard *fork[3];
    _Atomic int eating[3], meals;
};

static void dines(void *arg)
{
    struct table *t = arg;

    for (int i = 0; i < 6; i++) {
        int left = (int)(weir_sim_random() % 3), right = (left + 1) % 3;
        weir_guard *forks[2] = { t->fork[left], t->fork[right] };
        weir_permit p[2] = { WEIR_PERMIT, WEIR_PERMIT };

        CHECK_EQ(weir_guards_enter(p, forks, 2, WEIR_FOREVER), 0);
        CHECK_EQ(++t->eating[left], 1);
        CHECK_EQ(++t->eating[right], 1);
        weir_sleep(weir_now() + (int64_t)(weir_sim_random() % 1000));
        t->eating[left]--;
        t->eating[right]--;
        t->meals++;
        weir_guards_leave(p, 2, 0);
    }
}

static void dinner(UNUSED void *arg)
{
    struct table t = { .meals = 0 };
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 2));
    int64_t thread[3];

    CHECK(weir_store_local(&store) == 0);
    for (int i = 0; i < 3; i++)
        t.fork[i] = guard_of(i == 0 ? "x" : i == 1 ? "y" : "z", WEIR_MUTEX());
    for (int i = 0; i < 3; i++) {
        thread[i] = weir_sim_thread(dines, &t, "philosopher");
        CHECK(weir_spawn(rt, dines, &t, NULL) == 0);
    }
    for (int i = 0; i < 3; i++)
        weir_sim_join(thread[i]);
    CHECK(weir_runtime_drain(rt, WEIR_FOREVER) == 0);
    weir_runtime_free(rt);
    CHECK_EQ(t.meals, 36);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(figures(t.fork[i]).used, 0);
        CHECK_EQ(figures(t.fork[i]).waiting, 0);
        weir_guard_unref(t.fork[i]);
    }
    weir_store_free(store);
}

static void test_a_caller_that_waits_for_several_holds_none_and_gets_all(void **state)
{
    (void)state;
    explore(400, WEIR_SIM_OPTIONS(.seed = 1), dinner);
}

GUARD_TEST(test_a_wait_for_several_ends_when_the_last_of_them_admits)
{
    weir_guard *g[3] = {
        guard_of("m", WEIR_MUTEX()), guard_of("r", WEIR_RATE(.limit = 1, .period_ns = 100 * MS)),
        guard_of("f", WEIR_FREQUENCY(.mode = WEIR_EXACT, .limit = 1, .period_ns = 250 * MS))
    };
    weir_permit p[3] = { WEIR_PERMIT, WEIR_PERMIT, WEIR_PERMIT };

    CHECK(weir_guards_enter(p, g, 3, WEIR_NOW_OR_NEVER) == 0);
    weir_guards_leave(p, 3, 0);
    CHECK_EQ(weir_guards_enter(p, g, 3, at(200)),
             WEIR_ETOOFAST); /* at once: it is known to be too late */
    CHECK_EQ(p[0].retry_at, at(250));
    CHECK_EQ(weir_now(), at(0));
    CHECK_EQ(weir_guards_enter(p, g, 3, at(1000)), 0);
    CHECK_EQ(weir_now(), at(250));
    weir_guards_leave(p, 3, 0);
    CHECK_EQ(weir_guards_enter(p, g, 0, 0), WEIR_EINVAL);
    g[2] = g[0];
    CHECK_EQ(weir_guards_enter(p, g, 3, 0), WEIR_EINVAL); /* the same twice */
    weir_guard_unref(g[0]);
    weir_guard_unref(g[1]);
    CHECK(weir_guard_new(&g[2], store, "f", NULL, NULL) == 0);
    weir_guard_unref(g[2]);
    weir_guard_unref(g[2]);
}

/* ---- work that ends elsewhere --------------------------------------------------------------------------- */

struct job {
    weir_permit permit[2]; /* of a bulkhead and a breaker */
    int error;
};

static void ends_the_job(void *arg)
{
    struct job *job = arg;

    CHECK(weir_sleep(weir_now() + 30 * MS) == 0);
    weir_guards_leave(job->permit, 2, job->error);
}

/* L-23, B-15, B-16, K-33, K-34: a permit goes with the work and is left where that ends, once; if the work cannot even be
 * begun it is given back, and nothing is counted. */
GUARD_TEST(test_a_permit_is_left_where_the_work_ends)
{
    weir_guard *g[2] = { guard_of("one", WEIR_BULKHEAD(.limit = 1)),
                         guard_of("breaker", WEIR_BREAKER()) };
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 2));
    weir_permit here[2] = { WEIR_PERMIT, WEIR_PERMIT };
    struct job job = { .permit = { WEIR_PERMIT, WEIR_PERMIT }, .error = -EIO };

    CHECK_EQ(weir_guards_enter(here, g, 2, WEIR_NOW_OR_NEVER), 0);
    for (int i = 0; i < 2; i++)
        CHECK(weir_permit_move(&job.permit[i], &here[i]) == 0);
    CHECK(weir_spawn(rt, ends_the_job, &job, NULL) == 0);
    weir_guards_leave(here, 2, 0); /* the caller goes its way, and has nothing to leave */
    sleep_until(10);
    CHECK_EQ(call_once(g[0], 0), WEIR_EFULL);
    CHECK_EQ(figures(g[1]).stored, 0);
    CHECK(weir_runtime_drain(rt, WEIR_FOREVER) == 0);
    CHECK_EQ(weir_now(), at(30));
    CHECK_EQ(figures(g[1]).stored_failed, 1);
    CHECK_EQ(figures(g[1]).stored_ns, 30 * MS);
    CHECK_EQ(weir_guard_leave(&job.permit[0], 0), WEIR_EALREADY);
    CHECK_EQ(weir_guards_enter(here, g, 2, WEIR_NOW_OR_NEVER), 0); /* and now it cannot be begun */
    for (int i = 0; i < 2; i++)
        CHECK(weir_guard_release(&here[i]) == 0);
    CHECK_EQ(figures(g[0]).used, 0);
    CHECK_EQ(figures(g[1]).stored, 1);
    weir_runtime_free(rt);
    weir_guard_unref(g[0]);
    weir_guard_unref(g[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_or_none_as_the_model_says),
        cmocka_unit_test(test_a_refused_caller_has_taken_nothing_meanwhile),
        cmocka_unit_test(test_a_caller_that_waits_for_several_holds_none_and_gets_all),
        cmocka_unit_test(test_a_wait_for_several_ends_when_the_last_of_them_admits),
        cmocka_unit_test(test_a_permit_is_left_where_the_work_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
