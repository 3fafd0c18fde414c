/* A crew of actors: the same scenario played by tasks, by bodies on the pool's threads, and by plain
 * threads. The calls of the library must not tell the difference.
 * SPDX-License-Identifier: MIT */
#ifndef WR_TESTS_CREW_H
#define WR_TESTS_CREW_H

#include "support/check.h"

#include <pthread.h>

enum { CREW_MAX = 16 };

enum crew_way { AS_TASKS, AS_POOL_THREADS, AS_PLAIN_THREADS };

struct crew_actor {
    weir_body *act;
    void *arg;
    pthread_t thread;
};

struct crew {
    enum crew_way way;
    weir_runtime *rt;
    struct crew_actor actor[CREW_MAX];
    int size;
};

static inline void *crew_thread(void *arg)
{
    struct crew_actor *actor = arg;

    actor->act(actor->arg);
    return NULL;
}

/* Has act(arg) played, beside the caller. */
static inline void crew_go(struct crew *crew, weir_body *act, void *arg)
{
    struct crew_actor *actor = &crew->actor[crew->size++];

    assert_true(crew->size <= CREW_MAX);
    *actor = (struct crew_actor){ .act = act, .arg = arg };
    if (crew->way == AS_PLAIN_THREADS)
        assert_int_equal(pthread_create(&actor->thread, NULL, crew_thread, actor), 0);
    else
        CHECK_EQUAL(
            weir_spawn(crew->rt, act, arg,
                       WEIR_SPAWN(.run_on = crew->way == AS_TASKS ? WEIR_WORKERS : WEIR_THREADS)),
            0);
}

/* Waits until all actors are done; the crew may go again. */
static inline void crew_join(struct crew *crew)
{
    if (crew->way == AS_PLAIN_THREADS)
        for (int i = 0; i < crew->size; i++)
            pthread_join(crew->actor[i].thread, NULL);
    else
        drain(crew->rt);
    crew->size = 0;
}

/* Runs a scenario that needs no actor beside it. */
static inline void crew_play(struct crew *crew, weir_body *act, void *arg)
{
    crew_go(crew, act, arg);
    crew_join(crew);
}

/* Scenarios are `static void test_...(struct crew *crew)`, and listed as PLAY(test_...): three tests. */
#define PLAY(scenario)                                                                          \
    { #scenario "_as_tasks", crew_tasks, NULL, NULL, (void *)(uintptr_t)(scenario) },           \
        { #scenario "_as_pool_threads", crew_pool, NULL, NULL, (void *)(uintptr_t)(scenario) }, \
    {                                                                                           \
#scenario "_as_plain_threads", crew_plain, NULL, NULL, (void *)(uintptr_t)(scenario)    \
    }

static inline void crew_run(void *scenario, enum crew_way way)
{
    void (*play)(struct crew *) = (void (*)(struct crew *))(uintptr_t)scenario;
    struct crew crew = { .way = way };

    restore_fault_actions();
    atomic_store(&checks_failed, 0);
    if (way != AS_PLAIN_THREADS)
        crew.rt = new_runtime(WEIR_RUNTIME(.workers = 2));
    play(&crew);
    weir_runtime_free(crew.rt);
    assert_int_equal(atomic_load(&checks_failed), 0);
}

static inline void crew_tasks(void **state)
{
    crew_run(*state, AS_TASKS);
}

static inline void crew_pool(void **state)
{
    crew_run(*state, AS_POOL_THREADS);
}

static inline void crew_plain(void **state)
{
    crew_run(*state, AS_PLAIN_THREADS);
}

#endif
