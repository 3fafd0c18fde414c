/* Shared by tests of guards: a store per scenario, short ways to ask, callers side by side, events that are kept.
 * SPDX-License-Identifier: MIT */
#ifndef WR_TESTS_GUARD_SUPPORT_H
#define WR_TESTS_GUARD_SUPPORT_H

#include "support/executor_support.h"

enum { CALLERS_MAX = 64, KEPT_MAX = 256 };

static UNUSED weir_store *store; /* of the scenario that runs */

/* GUARD_TEST(name) { ... }: a scenario with a store of its own, under 40 schedules. */
#define GUARD_TEST(name)                      \
    static void name##_body(void);            \
    SIM_TEST(name, 40)                        \
    {                                         \
        CHECK(weir_store_local(&store) == 0); \
        kept.count = 0;                       \
        name##_body();                        \
        weir_store_free(store);               \
    }                                         \
    static void name##_body(void)

static inline weir_guard *guard_of(const char *name, const weir_guard_options *opt)
{
    weir_guard *guard = NULL;
    weir_message why;

    if (weir_guard_new(&guard, store, name, opt, &why))
        weir_sim_fail("guard %s: %s", name, why.text);
    return guard;
}

static inline weir_guard_stats figures(weir_guard *guard)
{
    weir_guard_stats s = { .size = sizeof(s) };

    CHECK(weir_guard_stats_get(&s, guard) == 0);
    return s;
}

/* Enters and leaves with that error; answers what enter did. */
static inline int call_once(weir_guard *guard, int error)
{
    weir_permit p = WEIR_PERMIT;
    int rc = weir_guard_enter(&p, guard, WEIR_NOW_OR_NEVER);

    if (!rc)
        CHECK(weir_guard_leave(&p, error) == 0);
    return rc;
}

/* "FFS" and the like: calls one after the other, each let in. */
static inline void calls(weir_guard *guard, const char *outcomes)
{
    for (; *outcomes; outcomes++)
        CHECK_EQ(call_once(guard, *outcomes == 'F' ? -EIO : 0), 0);
}

/* A call that takes so long. */
static inline void slow_call(weir_guard *guard, int64_t ms, int error)
{
    weir_permit p = WEIR_PERMIT;

    CHECK_EQ(weir_guard_enter(&p, guard, WEIR_NOW_OR_NEVER), 0);
    CHECK(weir_sleep(weir_now() + ms * MS) == 0);
    CHECK(weir_guard_leave(&p, error) == 0);
}

/* ---- callers side by side ---------------------------------------------------------------------- */

struct caller {
    weir_guard *guard;
    weir_time deadline;
    int64_t ms;            /* how long it is inside        */
    int64_t n;             /* permits; 0: 1                */
    int rc;                /* of enter                     */
    int order;             /* the n-th to get in, from 1   */
    int64_t in_ms, out_ms; /* when enter returned, and it left */
    weir_time retry_at;
};

static _Atomic int got_in;

static inline void caller_body(void *arg)
{
    struct caller *c = arg;
    weir_permit p = WEIR_PERMIT;

    c->rc = weir_guard_enter_n(&p, c->guard, c->n ? c->n : 1, c->deadline);
    c->in_ms = (weir_now() - WEIR_SIM_START) / MS;
    c->retry_at = p.retry_at;
    if (c->rc)
        return;
    c->order = ++got_in;
    if (c->ms)
        weir_sleep(weir_now() + c->ms * MS);
    c->out_ms = (weir_now() - WEIR_SIM_START) / MS;
    CHECK(weir_guard_leave(&p, 0) == 0);
}

/* Callers, every other one a task, the others plain threads; `apart_ms` between two of them. */
static inline void side_by_side(struct caller *c, int count, int64_t apart_ms)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 2));
    int64_t thread[CALLERS_MAX] = { 0 };

    got_in = 0;
    for (int i = 0; i < count; i++) {
        if (i % 2)
            thread[i] = weir_sim_thread(caller_body, &c[i], "caller");
        else
            CHECK(weir_spawn(rt, caller_body, &c[i], NULL) == 0);
        if (apart_ms)
            CHECK(weir_sleep(weir_now() + apart_ms * MS) == 0);
    }
    for (int i = 0; i < count; i++)
        if (thread[i])
            weir_sim_join(thread[i]);
    CHECK(weir_runtime_drain(rt, WEIR_FOREVER) == 0);
    weir_runtime_free(rt);
}

static inline int let_in(const struct caller *c, int count)
{
    int in = 0;

    for (int i = 0; i < count; i++)
        in += c[i].rc == 0;
    return in;
}

/* ---- events ------------------------------------------------------------------------------------- */

static struct {
    weir_guard_event event[KEPT_MAX];
    _Atomic int count;
} kept;

static UNUSED void keep(const weir_guard_event *event, void *arg)
{
    (void)arg;
    CHECK(kept.count < KEPT_MAX);
    kept.event[kept.count++] = *event;
}

static inline int kept_of(weir_guard_event_type type)
{
    int count = 0;

    for (int i = 0; i < kept.count; i++)
        count += kept.event[i].type == type;
    return count;
}

#endif
