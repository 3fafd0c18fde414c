/* recall: a lender bursts while its slots are lent. How long until its first task of the burst starts, counted
 * in lengths of the borrower's bodies? All its slots are lent or busy then, so the first start needs one
 * back; the promise is one body's length.
 * SPDX-License-Identifier: MIT */
#include "base/atomic.h"
#include "bench.h"

#include <stdlib.h>

enum {
    SLOTS = 8,    /* of each of the two domains                     */
    BODY_MS = 10, /* of the borrower                                */
    ROUNDS = 12,
    PERIOD_MS = 2, /* of lending                                     */
    POLL_US = 200,
};

struct scene {
    weir_executor *ex;
    weir_group *lender, *borrower;
    _Atomic weir_time first;   /* start of the burst's first task     */
    _Atomic weir_time longest; /* of the borrower's bodies            */
};

static int borrow(void **value, void *scene_arg)
{
    struct scene *scene = scene_arg;
    weir_time took = weir_now(), longest = wr_load(&scene->longest, relaxed);

    (void)value;
    weir_sleep(took + BODY_MS * 1000000);
    took = weir_now() - took;
    while (took > longest && !wr_cas(&scene->longest, &longest, took, seq_cst))
        ;
    return 0;
}

static int own(void **value, void *scene_arg)
{
    struct scene *scene = scene_arg;
    weir_time none = 0;

    (void)value;
    wr_cas(&scene->first, &none, weir_now(), seq_cst);
    weir_sleep(weir_in_ms(1));
    return 0;
}

static weir_domain_stats stats_of(struct scene *scene, const char *name)
{
    weir_domain_stats stats = { .size = sizeof(stats) };

    bench_must(weir_domain_stats_get(&stats, scene->ex, name), "weir_domain_stats_get");
    return stats;
}

static void feed(struct scene *scene)
{
    while (stats_of(scene, "borrower").waiting < SLOTS * 4)
        bench_must(weir_submit(NULL, scene->borrower, borrow, scene, NULL), "weir_submit");
}

/* Waits until every slot of the lender's is lent and busy. */
static void wait_lent(struct scene *scene)
{
    weir_domain_stats b;

    do {
        feed(scene);
        weir_sleep(weir_in_us(POLL_US));
        b = stats_of(scene, "borrower");
    } while (b.used < b.limit || stats_of(scene, "lender").limit > 0 || b.recalled);
}

static double burst(struct scene *scene)
{
    weir_time submitted = weir_now();

    wr_store(&scene->first, 0, seq_cst);
    for (int i = 0; i < SLOTS * 2; i++)
        bench_must(weir_submit(NULL, scene->lender, own, scene, NULL), "weir_submit");
    while (!wr_load(&scene->first, seq_cst) || stats_of(scene, "lender").used ||
           stats_of(scene, "lender").waiting) {
        feed(scene);
        weir_sleep(weir_in_us(POLL_US));
    }
    return (double)(wr_load(&scene->first, seq_cst) - submitted) / 1e6;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

void bench_recall(struct bench_out *out)
{
    weir_domain_policy domains[] = {
        { .name = "borrower", .slots = SLOTS },
        { .name = "lender", .slots = SLOTS, .slots_mode = WEIR_RESERVED, .lend_max = SLOTS },
    };
    weir_group_policy groups[] = { { .key = "b", .domain = "borrower" },
                                   { .key = "l", .domain = "lender" } };
    struct scene scene = {
        .ex = bench_executor(WEIR_POLICY(
                .workers = 2, .group_limit = WEIR_NO_LIMIT, .slots = SLOTS * 2, .domains = domains,
                .domain_count = 2, .groups = groups, .group_count = 2,
                .lending = { .period_ms = PERIOD_MS, .hold = 1, .headroom_percent = WEIR_NONE }))
    };
    double ms[ROUNDS];

    bench_must(weir_group_get(&scene.borrower, scene.ex, "b"), "weir_group_get");
    bench_must(weir_group_get(&scene.lender, scene.ex, "l"), "weir_group_get");
    for (int i = 0; i < ROUNDS; i++) {
        wait_lent(&scene);
        ms[i] = burst(&scene);
    }
    qsort(ms, ROUNDS, sizeof(ms[0]), compare);
    bench_put(out, BENCH_WEIR, "first_start_ms", ms[ROUNDS / 2]);
    bench_put(out, BENCH_WEIR, "worst_start_ms", ms[ROUNDS - 1]);
    bench_put(out, BENCH_REFERENCE, "longest_body_ms",
              (double)wr_load(&scene.longest, seq_cst) / 1e6);
    weir_executor_free(scene.ex);
}
