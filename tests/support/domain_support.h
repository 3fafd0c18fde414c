/* Shared by tests of domains: the worked example of the catalogue, and short ways to fill and look at it.
 * SPDX-License-Identifier: MIT */
#ifndef WR_TESTS_DOMAIN_SUPPORT_H
#define WR_TESTS_DOMAIN_SUPPORT_H

#include "support/executor_support.h"

enum { MANY = 160 };

/* SEMANTICS 2.7: T = 64, Q = 128. Groups "A" and "B" are in the domains of their names, all others in the
 * default one; groups have no limits of their own. */
static UNUSED weir_domain_policy example_domains[] = {
    { .name = "A", .slots = 16, .queue = 32 },
    { .name = "B", .slots = 32, .slots_mode = WEIR_RESERVED, .queue = 64 },
};
static UNUSED weir_group_policy example_groups[] = { { .key = "A", .domain = "A" },
                                                     { .key = "B", .domain = "B" } };

/* Domains "A" and "B" of any size. */
#define AB_POLICY(domains_, slots_, places_, ...)                                      \
    WEIR_POLICY(.workers = 2, .group_limit = WEIR_NO_LIMIT, .slots = (slots_),         \
                .queue_places = (places_), .domains = (domains_), .domain_count = 2,   \
                .groups = example_groups, .group_count = 2, .rejection = WEIR_DISCARD, \
                __VA_ARGS__)
#define EXAMPLE_POLICY(...) AB_POLICY(example_domains, 64, 128, __VA_ARGS__)

static inline weir_domain_stats domain_of(weir_executor *ex, const char *name)
{
    weir_domain_stats stats = { .size = sizeof(stats) };

    CHECK(weir_domain_stats_get(&stats, ex, name) == 0);
    return stats;
}

/* A heap of tasks of one group. */
struct heap {
    weir_task *task[MANY];
    int count;
};

static inline void heap_add(struct heap *heap, weir_executor *ex, const char *key, int count,
                            struct body *body)
{
    for (int i = 0; i < count; i++)
        heap->task[heap->count++] = submit(ex, key, body);
}

/* How many of them were refused, for that reason. */
static inline int heap_refused(struct heap *heap, weir_reason reason)
{
    int refused = 0;

    for (int i = 0; i < heap->count; i++) {
        weir_result result = WEIR_RESULT;
        if (!weir_task_done(heap->task[i]))
            continue;
        CHECK(weir_task_wait(&result, heap->task[i], WEIR_NOW_OR_NEVER) == 0);
        refused += result.outcome == WEIR_REJECTED && result.reason == reason;
    }
    return refused;
}

static inline void heap_free(struct heap *heap)
{
    for (int i = 0; i < heap->count; i++)
        weir_task_unref(heap->task[i]);
    heap->count = 0;
}

/* Lets the workers start what they may: no virtual time passes in their work, so a moment later all is
 * done. The moments are counted, so that exact times stay exact. */
static inline void let_start(void)
{
    CHECK(weir_sleep(weir_now() + 1000) == 0);
}

#define CHECK_DOMAIN(ex, name, used_, borrowed_, waiting_) \
    do {                                                   \
        weir_domain_stats d_ = domain_of(ex, name);        \
        CHECK_EQ(d_.used, used_);                          \
        CHECK_EQ(d_.borrowed, borrowed_);                  \
        CHECK_EQ(d_.waiting, waiting_);                    \
    } while (0)

/* D7: after all is done the ledgers read zero, and limits are what was configured. */
static inline void check_ledgers(weir_executor *ex)
{
    const char *name;

    for (size_t i = 0; (name = weir_domain_name(ex, i)); i++) {
        weir_domain_stats d = domain_of(ex, name);
        CHECK_EQ(d.used, 0);
        CHECK_EQ(d.borrowed, 0);
        CHECK_EQ(d.charged, 0);
        CHECK_EQ(d.waiting, 0);
        CHECK_EQ(d.queue_borrowed, 0);
        CHECK_EQ(d.overhang, 0);
        CHECK_EQ(d.limit, d.slots - d.lent + d.taken);
        CHECK_EQ(d.recalled, 0);
        CHECK_EQ(d.queue_recalled, 0);
        CHECK_EQ(d.queue_limit, d.queue - d.queue_lent + d.queue_taken);
    }
}

static inline void check_domain_books(weir_executor *ex)
{
    weir_executor_stats s;

    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    let_start(); /* a worker may have a slot in its hands for which it finds no task any more */
    s = stats_all(ex);
    CHECK_EQ(s.running, 0);
    CHECK_EQ(s.waiting, 0);
    CHECK_EQ(s.submitted, s.succeeded + s.failed + s.cancelled + s.rejected + s.timed_out);
    check_ledgers(ex);
}

#endif
