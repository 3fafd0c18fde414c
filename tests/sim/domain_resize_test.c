/* Resizing domains while they run: idle and busy slots, free and taken places, loans, releases.
 * SPDX-License-Identifier: MIT */
#include "support/domain_support.h"

/* The totals of the worked example stay. SEMANTICS 2.2 */
static void check_sums(weir_executor *ex)
{
    int64_t slots = 0, limits = 0, places = 0, place_limits = 0;
    const char *name;

    for (size_t i = 0; (name = weir_domain_name(ex, i)); i++) {
        weir_domain_stats d = domain_of(ex, name);
        slots += d.slots;
        limits += d.limit;
        places += d.queue;
        place_limits += d.queue_limit;
    }
    CHECK_EQ(slots, 64);
    CHECK_EQ(limits, 64);
    CHECK_EQ(places, 128);
    CHECK_EQ(place_limits, 128);
}

#define CHECK_SLOTS(ex, name, slots_, limit_, recalled_) \
    do {                                                 \
        weir_domain_stats d_ = domain_of(ex, name);      \
        CHECK_EQ(d_.slots, slots_);                      \
        CHECK_EQ(d_.limit, limit_);                      \
        CHECK_EQ(d_.recalled, recalled_);                \
        check_sums(ex);                                  \
    } while (0)

#define CHECK_QUEUE(ex, name, queue_, limit_, recalled_) \
    do {                                                 \
        weir_domain_stats d_ = domain_of(ex, name);      \
        CHECK_EQ(d_.queue, queue_);                      \
        CHECK_EQ(d_.queue_limit, limit_);                \
        CHECK_EQ(d_.queue_recalled, recalled_);          \
        check_sums(ex);                                  \
    } while (0)

static void resize(weir_executor *ex, const char *domain, int64_t slots, int64_t queue)
{
    weir_message why = { .text = "" };

    if (weir_domain_resize(ex, domain, slots, queue, &why))
        weir_sim_fail("it says: %s", why.text);
}

/* Bodies that end one after the other, one each millisecond. */
static void add_staggered(struct heap *heap, weir_executor *ex, const char *key, struct body *body,
                          int count, int first_ms)
{
    for (int i = 0; i < count; i++) {
        body[i] = (struct body){ .until_ms = first_ms + i };
        heap_add(heap, ex, key, 1, &body[i]);
    }
}

SIM_TEST(test_growing_takes_idle_slots_and_free_places_at_once, 40)
{
    weir_executor *ex = new_executor(EXAMPLE_POLICY(.inflight_max = 0));
    struct body body = { .until_ms = 100 };
    struct heap a = { 0 };

    heap_add(&a, ex, "A", 50, &body);
    CHECK_EQ(heap_refused(&a, WEIR_REASON_DOMAIN_QUEUE_FULL), 2); /* 16 run, 32 wait */
    sleep_until(10);
    resize(ex, "A", 20, 40);
    CHECK_SLOTS(ex, "A", 20, 20, 0);
    CHECK_SLOTS(ex, "default", 12, 12, 0);
    CHECK_QUEUE(ex, "A", 40, 40, 0);
    CHECK_QUEUE(ex, "default", 24, 24, 0);
    heap_add(&a, ex, "A", 14, &body);
    CHECK_EQ(heap_refused(&a, WEIR_REASON_DOMAIN_QUEUE_FULL), 2 + 2); /* 28 waited */
    for (int i = 16; i < 20; i++)
        check_done_at(weir_task_ref(a.task[i]), 10, 100);
    heap_free(&a);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* Slots promised to A go before tasks that wait in the default domain. */
SIM_TEST(test_growing_takes_busy_slots_as_they_fall_free, 40)
{
    weir_executor *ex = new_executor(EXAMPLE_POLICY(.inflight_max = 0));
    struct body d_body[16], late = { .until_ms = 300 };
    struct heap a = { 0 }, d = { 0 };

    add_staggered(&d, ex, "D", d_body, 16, 100);
    heap_add(&d, ex, "D", 3, &late);
    heap_add(&a, ex, "A", 20, &late);
    sleep_until(10);
    resize(ex, "A", 20, 0);
    CHECK_SLOTS(ex, "A", 20, 16, 0);
    CHECK_SLOTS(ex, "default", 12, 16, 4);
    CHECK_EQ(domain_of(ex, "A").lent, 4);
    CHECK_EQ(domain_of(ex, "A").slots_lent, 0); /* it is no loan that a domain asked for */
    for (int i = 0; i < 4; i++) {
        CHECK(weir_sleep(at(100 + i) + 1000) == 0);
        CHECK_SLOTS(ex, "A", 20, 17 + i, 0);
        CHECK_SLOTS(ex, "default", 12, 15 - i, 3 - i);
        CHECK_DOMAIN(ex, "default", 15 - i, 0, 3);
    }
    for (int i = 0; i < 4; i++)
        check_done_at(weir_task_ref(a.task[16 + i]), 100 + i, 300);
    for (int i = 0; i < 3; i++)
        check_done_at(weir_task_ref(d.task[16 + i]), 104 + i, 300);
    heap_free(&a);
    heap_free(&d);
    check_domain_books(ex);
    weir_executor_free(ex);
}

SIM_TEST(test_shrinking_gives_idle_slots_at_once_and_busy_ones_as_they_fall_free, 40)
{
    weir_executor *ex = new_executor(EXAMPLE_POLICY(.inflight_max = 0));
    struct body a_body[14], late = { .until_ms = 300 };
    struct heap a = { 0 }, d = { 0 };

    add_staggered(&a, ex, "A", a_body, 14, 50);
    heap_add(&d, ex, "D", 20, &late);
    let_start();
    CHECK_DOMAIN(ex, "default", 16, 0, 4);
    resize(ex, "A", 12, 0); /* two are idle, the other two are not */
    heap_add(&a, ex, "A", 2, &late);
    let_start();
    CHECK_DOMAIN(ex, "A", 14, 0, 2);
    CHECK_DOMAIN(ex, "default", 18, 0, 2);
    CHECK_SLOTS(ex, "A", 12, 14, 2);
    CHECK_SLOTS(ex, "default", 20, 18, 0);
    for (int i = 0; i < 4; i++) { /* the default domain's waiters come before A's */
        CHECK(weir_sleep(at(50 + i) + 1000) == 0);
        CHECK_SLOTS(ex, "A", 12, i < 2 ? 13 - i : 12, i < 2 ? 1 - i : 0);
        CHECK_DOMAIN(ex, "default", i < 2 ? 19 + i : 20, 0, i < 2 ? 1 - i : 0);
        CHECK_DOMAIN(ex, "A", i < 2 ? 13 - i : 12, 0, i < 2 ? 2 : 3 - i);
    }
    heap_free(&a);
    heap_free(&d);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* As with a group's queue_max: waiting tasks stay, also beyond what there is now. */
SIM_TEST(test_shrinking_a_queue_turns_no_waiting_task_away, 40)
{
    weir_executor *ex = new_executor(EXAMPLE_POLICY(.inflight_max = 0));
    struct body a_body[16], late = { .ms = 1 };
    struct heap a = { 0 };

    add_staggered(&a, ex, "A", a_body, 16, 50);
    heap_add(&a, ex, "A", 6, &late);
    sleep_until(10);
    resize(ex, "A", 0, 2);
    CHECK_QUEUE(ex, "A", 2, 6, 4);
    CHECK_QUEUE(ex, "default", 62, 58, 0);
    heap_add(&a, ex, "A", 1, &late);
    CHECK_EQ(heap_refused(&a, WEIR_REASON_DOMAIN_QUEUE_FULL), 1);
    CHECK(weir_task_cancel(a.task[21]));
    CHECK_QUEUE(ex, "A", 2, 5, 3);
    CHECK(weir_sleep(at(50) + 1000) == 0); /* one starts */
    CHECK_QUEUE(ex, "A", 2, 4, 2);
    resize(ex, "A", 0, 3); /* and back again: one of them it may keep */
    CHECK_QUEUE(ex, "A", 3, 4, 1);
    resize(ex, "A", 0, WEIR_NO_QUEUE);
    CHECK_QUEUE(ex, "A", 0, 4, 4);
    sleep_until(70);
    CHECK_QUEUE(ex, "A", 0, 0, 0);
    CHECK_EQ(heap_refused(&a, WEIR_REASON_DOMAIN_QUEUE_FULL), 1);
    heap_free(&a);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* Tasks of B that stand on the default domain's stand on B's own when it gets those: no task has to end first. */
SIM_TEST(test_slots_a_growing_domain_has_borrowed_become_its_own, 40)
{
    weir_executor *ex = new_executor(EXAMPLE_POLICY(.inflight_max = 0));
    struct body body = { .until_ms = 100 };
    struct heap b = { 0 }, d = { 0 };

    heap_add(&d, ex, "D", 4, &body);
    heap_add(&b, ex, "B", 44, &body);
    let_start();
    CHECK_DOMAIN(ex, "B", 44, 12, 0);
    resize(ex, "B", 42, 0);
    CHECK_SLOTS(ex, "B", 42, 42, 0);
    CHECK_DOMAIN(ex, "B", 44, 2, 0);
    CHECK_SLOTS(ex, "default", 6, 6, 0);
    resize(ex, "B", 48, 0); /* the rest: four of that is busy with the default domain's own */
    CHECK_SLOTS(ex, "B", 48, 44, 0);
    CHECK_DOMAIN(ex, "B", 44, 0, 0);
    CHECK_SLOTS(ex, "default", 0, 4, 4);
    resize(ex, "B", 32, 0);
    CHECK_SLOTS(ex, "B", 32, 44, 12);
    CHECK_SLOTS(ex, "default", 16, 4, 0);
    sleep_until(110);
    CHECK_SLOTS(ex, "B", 32, 32, 0);
    heap_free(&b);
    heap_free(&d);
    check_domain_books(ex);
    weir_executor_free(ex);
}

SIM_TEST(test_borrowed_places_become_a_growing_domains_own, 40)
{
    weir_domain_policy domains[] = {
        { .name = "A", .slots = 1, .queue = 2, .queue_mode = WEIR_RESERVED },
        { .name = "B", .slots = 1, .queue = 2 },
    };
    weir_executor *ex = new_executor(AB_POLICY(domains, 3, 8, .inflight_max = 0));
    struct body body = { .until_ms = 50 };
    struct heap a = { 0 }, d = { 0 };

    heap_add(&a, ex, "A", 6, &body);
    heap_add(&d, ex, "D", 2, &body);
    CHECK_EQ(domain_of(ex, "A").queue_borrowed, 3); /* and one of the default domain's own waits */
    CHECK(weir_domain_resize(ex, "A", 0, 6, NULL) == 0);
    CHECK_EQ(domain_of(ex, "A").queue_borrowed, 0);
    CHECK_EQ(domain_of(ex, "A").queue_limit, 5);
    CHECK_EQ(domain_of(ex, "default").queue_limit, 1);
    CHECK_EQ(domain_of(ex, "default").queue_recalled, 1);
    sleep_until(60);
    CHECK_EQ(domain_of(ex, "A").queue_limit, 6);
    CHECK_EQ(domain_of(ex, "default").queue_limit, 0);
    heap_free(&a);
    heap_free(&d);
    check_domain_books(ex);
    weir_executor_free(ex);
}

SIM_TEST(test_a_resize_to_the_present_size_changes_nothing, 10)
{
    weir_executor *ex = new_executor(EXAMPLE_POLICY(.inflight_max = 0));
    struct body body = { .until_ms = 50 };
    struct heap d = { 0 };

    resize(ex, "A", 16, 32);
    resize(ex, "A", 0, 0);
    CHECK_SLOTS(ex, "A", 16, 16, 0);
    heap_add(&d, ex, "D", 16, &body);
    let_start();
    resize(ex, "A", 18, 0);
    resize(ex, "A", 18, 0); /* under way, and so it stays */
    CHECK_SLOTS(ex, "A", 18, 16, 0);
    CHECK_SLOTS(ex, "default", 14, 16, 2);
    resize(ex, "A", 16, 0); /* not any more */
    CHECK_SLOTS(ex, "A", 16, 16, 0);
    CHECK_SLOTS(ex, "default", 16, 16, 0);
    heap_free(&d);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* ---- with loans ---------------------------------------------------------------------------------- */

/* The example of 2.8: B has lent 16 of its 32 slots to A, and runs 4 tasks. */
static void lend_as_in_the_example(weir_executor *ex, struct heap *a, struct body *a_body,
                                   struct heap *b, struct body *b_body)
{
    *b_body = (struct body){ .until_ms = 500 };
    add_staggered(a, ex, "A", a_body, 32, 100);
    heap_add(b, ex, "B", 4, b_body);
    sleep_until(35);
    CHECK_SLOTS(ex, "A", 16, 32, 0);
    CHECK_SLOTS(ex, "B", 32, 16, 0);
}

SIM_TEST(test_a_lender_that_shrinks_gives_its_idle_slots_and_recalls_the_rest, 25)
{
    weir_executor *ex = new_executor(EXAMPLE_POLICY(.lending = { .period_ms = 10 }));
    struct body a_body[32], b_body;
    struct heap a = { 0 }, b = { 0 };

    lend_as_in_the_example(ex, &a, a_body, &b, &b_body);
    resize(ex, "B", 20, 0);
    CHECK_SLOTS(ex, "B", 20, 4, 0); /* twelve were idle */
    CHECK_SLOTS(ex, "default", 28, 28, 0);
    CHECK_SLOTS(ex, "A", 16, 32, 16);       /* nothing left free: recalled */
    CHECK(weir_sleep(at(107) + 1000) == 0); /* eight of A's have ended */
    CHECK_SLOTS(ex, "B", 20, 12, 0);
    sleep_until(120);
    CHECK_SLOTS(ex, "B", 20, 20, 0);
    CHECK_SLOTS(ex, "A", 16, 16, 0);
    heap_free(&a);
    heap_free(&b);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* It shrinks by more than it has itself: what A owes it, A owes to the default domain now. */
SIM_TEST(test_a_lender_that_shrinks_below_its_loans_passes_them_on, 25)
{
    weir_executor *ex = new_executor(EXAMPLE_POLICY(.lending = { .period_ms = 10 }));
    struct body a_body[32], b_body;
    struct heap a = { 0 }, b = { 0 };

    lend_as_in_the_example(ex, &a, a_body, &b, &b_body);
    resize(ex, "B", 1, 0);
    CHECK_SLOTS(ex, "B", 1, 4, 4); /* all twelve idle ones went, four bodies run on */
    CHECK_SLOTS(ex, "default", 47, 28, 0);
    CHECK_EQ(domain_of(ex, "default").lent, 19); /* four with B, fifteen with A */
    CHECK_EQ(domain_of(ex, "B").lent, 1);
    CHECK_SLOTS(ex, "A", 16, 32, 16);
    sleep_until(120);
    CHECK_SLOTS(ex, "A", 16, 16, 0);
    CHECK_SLOTS(ex, "B", 1, 4, 3); /* what A owed B went on to the default domain */
    CHECK_SLOTS(ex, "default", 47, 44, 0);
    sleep_until(510);
    CHECK_SLOTS(ex, "B", 1, 1, 0);
    heap_free(&a);
    heap_free(&b);
    check_domain_books(ex);
    weir_executor_free(ex);
}

SIM_TEST(test_slots_the_default_domain_lent_become_a_growing_domains_own, 25)
{
    weir_domain_policy domains[] = {
        { .name = "A", .slots = 16, .queue = 32 },
        { .name = "B", .slots = 32, .queue = 64, .lend_max = WEIR_NONE },
        { .name = "default", .lend_max = 8 }
    };
    weir_executor *ex = new_executor(
        WEIR_POLICY(.workers = 2, .group_limit = WEIR_NO_LIMIT, .slots = 64, .queue_places = 128,
                    .domains = domains, .domain_count = 3, .groups = example_groups,
                    .group_count = 2, .rejection = WEIR_DISCARD, .lending = { .period_ms = 10 }));
    struct body body = { .until_ms = 200 };
    struct heap a = { 0 };

    heap_add(&a, ex, "A", 30, &body);
    sleep_until(35);
    CHECK_SLOTS(ex, "A", 16, 24, 0);
    CHECK_EQ(domain_of(ex, "A").taken, 8);
    resize(ex, "A", 22, 0);
    CHECK_SLOTS(ex, "A", 22, 24, 0);
    CHECK_EQ(domain_of(ex, "A").taken, 2);
    CHECK_SLOTS(ex, "default", 10, 8, 0);
    heap_free(&a);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* ---- with releases -------------------------------------------------------------------------------- */

SIM_TEST(test_a_domain_can_be_released_while_it_grows, 25)
{
    weir_executor *ex = new_executor(EXAMPLE_POLICY(.inflight_max = 0));
    struct body d_body[16];
    struct heap d = { 0 };

    add_staggered(&d, ex, "D", d_body, 16, 100);
    let_start();
    resize(ex, "A", 20, 0);
    CHECK_SLOTS(ex, "A", 20, 16, 0);
    CHECK(weir_domain_release(ex, "A", "B", 0, NULL) == 0);
    CHECK_SLOTS(ex, "B", 32, 48, 0);
    CHECK_EQ(domain_of(ex, "B").lent, 4); /* the default domain owes them to B now */
    sleep_until(105);
    CHECK_SLOTS(ex, "B", 32, 52, 0);
    CHECK_SLOTS(ex, "default", 12, 12, 0);
    CHECK(weir_domain_restore(ex, "A", NULL) == 0);
    CHECK_SLOTS(ex, "A", 20, 20, 0);
    heap_free(&d);
    check_domain_books(ex);
    weir_executor_free(ex);
}

SIM_TEST(test_a_domain_can_be_released_while_it_shrinks, 25)
{
    weir_executor *ex = new_executor(EXAMPLE_POLICY(.inflight_max = 0));
    struct body a_body[16];
    struct heap a = { 0 };

    add_staggered(&a, ex, "A", a_body, 16, 100);
    let_start();
    resize(ex, "A", 10, 0);
    CHECK_SLOTS(ex, "A", 10, 16, 6);
    CHECK(weir_domain_release(ex, "A", "B", 0, NULL) == 0);
    CHECK_SLOTS(ex, "A", 10, 6, 6); /* that is the default domain's, and busy */
    CHECK_SLOTS(ex, "B", 32, 42, 0);
    sleep_until(106);
    CHECK_SLOTS(ex, "A", 10, 0, 0);
    CHECK_SLOTS(ex, "default", 22, 22, 0);
    CHECK(weir_domain_restore(ex, "A", NULL) == 0);
    CHECK_SLOTS(ex, "A", 10, 10, 0);
    heap_free(&a);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* Others can be resized while the default domain holds what was released. */
SIM_TEST(test_another_domain_can_be_resized_during_a_release, 25)
{
    weir_executor *ex = new_executor(EXAMPLE_POLICY(.inflight_max = 0));

    CHECK(weir_domain_release(ex, "B", NULL, 0, NULL) == 0);
    resize(ex, "A", 32, 64); /* all that the default domain has of its own */
    CHECK_SLOTS(ex, "A", 32, 32, 0);
    CHECK_SLOTS(ex, "default", 0, 32, 0);
    CHECK(weir_domain_resize(ex, "A", 33, 0, NULL) == WEIR_EINVAL);
    CHECK(weir_domain_restore(ex, "B", NULL) == 0);
    CHECK_SLOTS(ex, "B", 32, 32, 0);
    CHECK_SLOTS(ex, "default", 0, 0, 0);
    CHECK_QUEUE(ex, "B", 64, 64, 0);
    CHECK_QUEUE(ex, "default", 0, 0, 0);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* ---- callers that wait ---------------------------------------------------------------------------- */

static void resize_later(void *ex)
{
    sleep_until(10);
    CHECK(weir_domain_resize(ex, "A", 0, 1, NULL) == 0);
    sleep_until(20);
    CHECK(weir_domain_resize(ex, "A", 2, 0, NULL) == 0);
}

/* WEIR_BLOCK: room comes with places, and with slots. */
SIM_TEST(test_a_caller_that_waits_for_room_is_woken_by_a_resize, 100)
{
    weir_domain_policy domains[] = { { .name = "A", .slots = 1, .queue = WEIR_NO_QUEUE } };
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = WEIR_NO_LIMIT,
                                                 .slots = 2, .queue_places = 1, .domains = domains,
                                                 .domain_count = 1, .groups = example_groups,
                                                 .group_count = 1, .rejection = WEIR_BLOCK));
    struct body body = { .until_ms = 100 };
    struct heap a = { 0 };
    int64_t other = weir_sim_thread(resize_later, ex, "other");

    heap_add(&a, ex, "A", 1, &body);
    heap_add(&a, ex, "A", 1, &body);
    CHECK_EQ(weir_now(), at(10));
    heap_add(&a, ex, "A", 1, &body);
    CHECK_EQ(weir_now(), at(20));
    check_done_at(weir_task_ref(a.task[1]), 20, 100);
    weir_sim_join(other);
    heap_free(&a);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* Places that are not counted: each domain has what it has, and none loses any. */
SIM_TEST(test_a_queue_without_total_is_resized_by_itself, 25)
{
    weir_domain_policy domains[] = { { .name = "A", .slots = 1 }, { .name = "B", .slots = 1 } };
    weir_executor *ex = new_executor(AB_POLICY(domains, 3, 0, .inflight_max = 0));
    struct body body = { .until_ms = 100 };
    struct heap a = { 0 };

    CHECK_EQ(domain_of(ex, "A").queue_limit, WEIR_NO_LIMIT);
    heap_add(&a, ex, "A", 5, &body);
    resize(ex, "A", 0, 2);
    CHECK_EQ(domain_of(ex, "A").queue_limit, 2);
    CHECK_EQ(domain_of(ex, "A").waiting, 4);
    CHECK_EQ(domain_of(ex, "default").queue_limit, WEIR_NO_LIMIT);
    heap_add(&a, ex, "A", 1, &body);
    CHECK_EQ(heap_refused(&a, WEIR_REASON_DOMAIN_QUEUE_FULL), 1);
    resize(ex, "A", 0, 5);
    heap_add(&a, ex, "A", 2, &body);
    CHECK_EQ(heap_refused(&a, WEIR_REASON_DOMAIN_QUEUE_FULL), 2);
    resize(ex, "A", 0, WEIR_NO_LIMIT);
    heap_add(&a, ex, "A", 20, &body);
    CHECK_EQ(heap_refused(&a, WEIR_REASON_DOMAIN_QUEUE_FULL), 2);
    heap_free(&a);
    check_domain_books(ex);
    weir_executor_free(ex);
}

static int lasts_10_ms(void **value, void *arg)
{
    (void)value;
    (void)arg;
    return weir_sleep(weir_in_ms(10));
}

/* Tasks that followed each other on one slot while places were not counted take up none afterwards. */
SIM_TEST(test_a_queue_that_comes_to_be_limited_counts_tasks_that_wait_then, 60)
{
    weir_domain_policy domains[] = { { .name = "A", .slots = 1, .run_on = WEIR_THREADS },
                                     { .name = "B", .slots = 1 } };
    weir_executor *ex = new_executor(AB_POLICY(domains, 3, 0, .inflight_max = 0));
    struct body body = { .ms = 10 };
    struct heap a = { 0 };

    for (int i = 0; i < 5; i++)
        CHECK(weir_submit_key(NULL, ex, "A", lasts_10_ms, NULL, NULL) == 0);
    for (int i = 0; i < 3; i++) {
        sleep_until(5 + 10 * i);
        CHECK_DOMAIN(ex, "A", 1, 0, 4 - i);
    }
    resize(ex, "A", 0, 3);
    CHECK_DOMAIN(ex, "A", 1, 0, 2);
    heap_add(&a, ex, "A", 2, &body); /* one finds a place */
    CHECK_EQ(heap_refused(&a, WEIR_REASON_DOMAIN_QUEUE_FULL), 1);
    sleep_until(35);
    CHECK_DOMAIN(ex, "A", 1, 0, 2);
    heap_add(&a, ex, "A", 2, &body);
    CHECK_EQ(heap_refused(&a, WEIR_REASON_DOMAIN_QUEUE_FULL), 2);
    resize(ex, "A", 0, WEIR_NO_LIMIT);
    heap_add(&a, ex, "A", 2, &body);
    CHECK_EQ(heap_refused(&a, WEIR_REASON_DOMAIN_QUEUE_FULL), 2);
    CHECK_DOMAIN(ex, "A", 1, 0, 5);
    check_done_at(weir_task_ref(a.task[0]), 50, 60);
    check_done_at(weir_task_ref(a.task[2]), 60, 70);
    heap_free(&a);
    check_domain_books(ex);
    weir_executor_free(ex);
}

static void resize_queue_at_10(void *ex)
{
    sleep_until(10);
    resize(ex, "A", 0, 1);
}

/* In the very moment in which one task follows another. */
SIM_TEST(test_a_queue_is_limited_while_a_task_follows_another, 400)
{
    weir_domain_policy domains[] = { { .name = "A", .slots = 1, .run_on = WEIR_THREADS },
                                     { .name = "B", .slots = 1 } };
    weir_executor *ex = new_executor(AB_POLICY(domains, 3, 0, .inflight_max = 0));
    struct body body = { .ms = 10 };
    struct heap a = { 0 };
    int64_t other = weir_sim_thread(resize_queue_at_10, ex, "other");

    for (int i = 0; i < 2; i++)
        CHECK(weir_submit_key(NULL, ex, "A", lasts_10_ms, NULL, NULL) == 0);
    sleep_until(15);
    CHECK_DOMAIN(ex, "A", 1, 0, 0);
    heap_add(&a, ex, "A", 2, &body);
    CHECK_EQ(heap_refused(&a, WEIR_REASON_DOMAIN_QUEUE_FULL), 1);
    CHECK_DOMAIN(ex, "A", 1, 0, 1);
    weir_sim_join(other);
    heap_free(&a);
    check_domain_books(ex);
    weir_executor_free(ex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_growing_takes_idle_slots_and_free_places_at_once),
        cmocka_unit_test(test_growing_takes_busy_slots_as_they_fall_free),
        cmocka_unit_test(test_shrinking_gives_idle_slots_at_once_and_busy_ones_as_they_fall_free),
        cmocka_unit_test(test_shrinking_a_queue_turns_no_waiting_task_away),
        cmocka_unit_test(test_slots_a_growing_domain_has_borrowed_become_its_own),
        cmocka_unit_test(test_borrowed_places_become_a_growing_domains_own),
        cmocka_unit_test(test_a_resize_to_the_present_size_changes_nothing),
        cmocka_unit_test(test_a_lender_that_shrinks_gives_its_idle_slots_and_recalls_the_rest),
        cmocka_unit_test(test_a_lender_that_shrinks_below_its_loans_passes_them_on),
        cmocka_unit_test(test_slots_the_default_domain_lent_become_a_growing_domains_own),
        cmocka_unit_test(test_a_domain_can_be_released_while_it_grows),
        cmocka_unit_test(test_a_domain_can_be_released_while_it_shrinks),
        cmocka_unit_test(test_another_domain_can_be_resized_during_a_release),
        cmocka_unit_test(test_a_caller_that_waits_for_room_is_woken_by_a_resize),
        cmocka_unit_test(test_a_queue_without_total_is_resized_by_itself),
        cmocka_unit_test(test_a_queue_that_comes_to_be_limited_counts_tasks_that_wait_then),
        cmocka_unit_test(test_a_queue_is_limited_while_a_task_follows_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
