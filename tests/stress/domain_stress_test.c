/* Domains on real threads: slots hold and nothing is lost, while tasks are submitted, cancelled and timed out,
 * slots and places are lent and recalled, and domains released, restored and resized.
 * SPDX-License-Identifier: MIT */
#include "support/check.h"
#include "support/seed.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <weir.h>

#if SANITIZED
enum { TASKS = 3000 };
#else
enum { TASKS = 30000 };
#endif
enum { GROUPS = 8, SUBMITTERS = 2, SLOTS = 9, DOMAINS = 4 };

struct load {
    weir_executor *ex;
    _Atomic int running;
    _Atomic uint64_t submitted, settled, detached;
    weir_overdue overdue;
    unsigned seed;
    _Atomic unsigned submitters;
};

struct one {
    struct load *load;
    unsigned luck;
};

static const char *const names[DOMAINS] = { "default", "max", "reserved", "own" };
static struct one ones[TASKS];
static _Atomic int next_one;

static int domain_for(const char **domain, const char *key, void *arg)
{
    (void)arg;
    *domain = names[(key[1] - '0') % DOMAINS];
    return 0;
}

static int body(void **value, void *arg)
{
    struct one *one = arg;
    struct timespec blink = { .tv_nsec = one->luck % 50000 };

    (void)value;
    CHECK(atomic_fetch_add(&one->load->running, 1) < SLOTS || one->load->overdue != WEIR_HOLD);
    if (one->luck % 8 == 0)
        weir_sleep(weir_in_us(one->luck % 3000));
    else if (one->luck % 8 == 1)
        weir_yield();
    else if (one->luck % 64 == 6)
        nanosleep(&blink, NULL);
    atomic_fetch_sub(&one->load->running, 1);
    return 0;
}

static void settled(weir_task *task, const weir_result *result, void *arg)
{
    struct one *one = arg;

    (void)task;
    CHECK(result->outcome != WEIR_UNSETTLED);
    atomic_fetch_add(&one->load->settled, 1);
}

static void *submitter(void *arg)
{
    struct load *load = arg;
    unsigned luck = load->seed + 7919 * atomic_fetch_add(&load->submitters, 1);
    weir_task *handle = NULL;
    char key[8];

    for (int i = 0; i < TASKS / SUBMITTERS; i++) {
        struct one *one = &ones[atomic_fetch_add(&next_one, 1)];
        unsigned kind = (unsigned)rand_r(&luck);
        weir_deadlines deadlines = { .wait_ms = kind % 3 == 0 ? 1 + kind % 5 : 0,
                                     .run_ms = kind % 5 == 0 ? 1 : 0 };
        *one = (struct one){ load, (unsigned)rand_r(&luck) };
        snprintf(key, sizeof(key), "g%u", (unsigned)rand_r(&luck) % GROUPS);
        if (one->luck % 2) { /* no handle: its slot can be handed on */
            CHECK(weir_submit_key(NULL, load->ex, key, body, one, NULL) == 0);
            atomic_fetch_add(&load->detached, 1);
            atomic_fetch_add(&load->submitted, 1);
            continue;
        }
        CHECK(weir_submit_key(
                  &handle, load->ex, key, body, one,
                  WEIR_TASK(.on_done = settled, .on_done_arg = one, .deadlines = deadlines)) == 0);
        atomic_fetch_add(&load->submitted, 1);
        if (one->luck % 16 == 0)
            weir_task_cancel(handle);
        else if (one->luck % 64 == 2)
            CHECK(weir_task_wait(NULL, handle, WEIR_FOREVER) == 0);
        weir_task_unref(handle);
    }
    return NULL;
}

static void *meddler(void *arg)
{
    struct load *load = arg;
    unsigned luck = load->seed * 31;

    while (atomic_load(&load->submitted) < TASKS / SUBMITTERS * SUBMITTERS) {
        const char *name = names[1 + (unsigned)rand_r(&luck) % (DOMAINS - 1)];
        weir_domain_stats stats = { .size = sizeof(stats) };
        int64_t limits = 0;
        switch (rand_r(&luck) % 5) {
        case 0:
            weir_domain_release(load->ex, name, names[(unsigned)rand_r(&luck) % DOMAINS],
                                rand_r(&luck) % 2 ? WEIR_CANCEL_RUNNING : 0, NULL);
            break;
        case 1:
            weir_domain_restore(load->ex, name, NULL);
            break;
        case 2: /* or refused */
            weir_domain_resize(load->ex, name, rand_r(&luck) % 4, rand_r(&luck) % 60, NULL);
            break;
        case 3:
            CHECK(weir_group_evict(load->ex, "g2", WEIR_CARRY_OVER) == 0);
            break;
        default:
            for (int d = 0; d < DOMAINS; d++) {
                CHECK(weir_domain_stats_get(&stats, load->ex, names[d]) == 0);
                CHECK(stats.used >= 0 && stats.used <= SLOTS);
                limits += stats.limit;
            }
            CHECK(limits >= 0);
        }
        weir_sleep(weir_in_us(rand_r(&luck) % 500));
    }
    return NULL;
}

static void check_ledgers(weir_executor *ex)
{
    for (int d = 0; d < DOMAINS; d++) {
        weir_domain_stats s = { .size = sizeof(s) };
        weir_time deadline = patience();
        do { /* a worker may have a slot in its hands for a moment */
            CHECK(weir_domain_stats_get(&s, ex, names[d]) == 0);
        } while (s.used && weir_now() < deadline);
        CHECK(s.used == 0 && s.borrowed == 0 && s.charged == 0 && s.waiting == 0);
        CHECK(s.limit == s.slots - s.lent + s.taken);
        CHECK(s.queue_limit == s.queue - s.queue_lent + s.queue_taken);
    }
}

static void live(unsigned luck, weir_overdue overdue)
{
    weir_domain_policy domains[] = {
        { .name = "max", .slots = 2, .queue = 40 },
        { .name = "reserved",
          .slots = 2,
          .slots_mode = WEIR_RESERVED,
          .queue = 40,
          .queue_mode = WEIR_RESERVED },
        { .name = "own", .slots = 2, .slots_mode = WEIR_RESERVED, .queue = 40, .workers = 1 },
    };
    weir_group_policy groups[] = { { .key = "g5", .domain = "max", .run_on = WEIR_THREADS } };
    struct load load = { .seed = luck, .overdue = overdue };
    pthread_t thread[SUBMITTERS + 1];
    weir_executor_stats s = { .size = sizeof(s) };

    atomic_store(&next_one, 0);
    CHECK(weir_executor_new(&load.ex,
                            WEIR_POLICY(.workers = 2, .group_limit = WEIR_NO_LIMIT, .slots = SLOTS,
                                        .queue_places = 200, .domains = domains, .domain_count = 3,
                                        .domain_for = domain_for, .groups = groups,
                                        .group_count = 1, .rejection = WEIR_DISCARD,
                                        .overdue = overdue, .stall_policy = WEIR_STALL_TO_THREADS,
                                        .lending = { .period_ms = 1, .hold = 1 }),
                            NULL) == 0);
    for (int i = 0; i < SUBMITTERS; i++)
        CHECK(pthread_create(&thread[i], NULL, submitter, &load) == 0);
    CHECK(pthread_create(&thread[SUBMITTERS], NULL, meddler, &load) == 0);
    for (int i = 0; i <= SUBMITTERS; i++)
        CHECK(pthread_join(thread[i], NULL) == 0);
    for (int d = 1; d < DOMAINS; d++)
        weir_domain_restore(load.ex, names[d], NULL);
    for (int d = 1; d < DOMAINS; d++) /* the default domain may have been left without slots */
        while (weir_domain_resize(load.ex, names[d], 1, 0, NULL)) /* until its restore is over */
            weir_sleep(weir_in_ms(1));
    CHECK(weir_executor_drain(load.ex, patience()) == 0);
    CHECK(atomic_load(&load.settled) + atomic_load(&load.detached) == atomic_load(&load.submitted));
    CHECK(weir_executor_stats_get(&s, load.ex) == 0);
    CHECK(s.submitted == s.succeeded + s.failed + s.cancelled + s.rejected + s.timed_out);
    check_ledgers(load.ex);
    weir_executor_free(load.ex);
    CHECK(atomic_load(&load.running) == 0);
}

static void test_domains_keep_their_books_under_load(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        live((unsigned)seed + (unsigned)i, (weir_overdue)i);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(
        test_domains_keep_their_books_under_load) };

    seed_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
