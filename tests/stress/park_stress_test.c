/* Parking under load: fibers and threads wake each other; nothing is lost, no actor waits for ever.
 * SPDX-License-Identifier: MIT */
#include "base/lock.h"
#include "runtime/runtime.h"
#include "support/check.h"
#include "support/seed.h"

#include <pthread.h>

enum {
    FIBERS = 60,
    THREADS = 4,
    ACTORS = FIBERS + THREADS,
    ROUNDS = SANITIZED ? 1000 : 5000,
    RING = 24,
    HOPS = SANITIZED ? 30000 : 100000,
    PAIRS = 16,
    MESSAGES = SANITIZED ? 2000 : 10000,
};

/* Messages for one actor. Senders unpark under the lock, and the owner takes it to see its last
 * message, so it cannot end before they are through with it. */
struct box {
    struct wr_lock lock;
    struct wr_parker *owner; /* NULL until it has begun */
    uint64_t messages;
    uint64_t taken;
};

static void box_open(struct box *box, struct wr_parker *owner)
{
    wr_lock(&box->lock);
    box->owner = owner;
    wr_unlock(&box->lock);
}

static void box_send(struct box *box)
{
    wr_lock(&box->lock);
    box->messages++;
    if (box->owner)
        wr_unpark(box->owner);
    wr_unlock(&box->lock);
}

static bool box_take(struct box *box)
{
    bool took;

    wr_lock(&box->lock);
    took = box->messages > box->taken;
    box->taken += took;
    wr_unlock(&box->lock);
    return took;
}

static void box_receive(struct box *box, struct wr_parker *self)
{
    while (!box_take(box))
        CHECK_EQUAL(wr_park(self, WEIR_FOREVER), 0);
}

/* Keeps the worker busy for a moment, so that others wake up and take their share. */
static void be_busy(void)
{
    for (weir_time until = weir_in_us(100); weir_now() < until;)
        ;
}

static void *on_thread(void *arg)
{
    struct {
        weir_body *body;
        void *arg;
    } *start = arg;

    start->body(start->arg);
    return NULL;
}

/* Runs body(&arg[i]) on `threads` plain threads and, for the rest of `count`, as tasks. */
static void run_all(weir_body *body, char *args, size_t size, int count, int threads)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 3));
    struct {
        weir_body *body;
        void *arg;
    } start[THREADS];
    pthread_t id[THREADS];

    assert_true(threads <= THREADS);
    for (int i = 0; i < threads; i++) {
        start[i].body = body;
        start[i].arg = args + (size_t)i * size;
        assert_int_equal(pthread_create(&id[i], NULL, on_thread, &start[i]), 0);
    }
    for (int i = threads; i < count; i++)
        CHECK_EQUAL(weir_spawn(rt, body, args + (size_t)i * size, NULL), 0);
    for (int i = 0; i < threads; i++)
        pthread_join(id[i], NULL);
    drain(rt);
    weir_runtime_free(rt);
}

/* ---- all actors wake each other -------------------------------------------------------------- */

static struct box boxes[ACTORS];

/* In each round every actor sends to the one that stands a certain, random, distance away: so each gets
 * one message per round, in whatever order. */
static void mingle(void *arg)
{
    struct wr_parker storage, *self = wr_parker_self(&storage);
    struct box *mine = arg;
    uint64_t number = (uint64_t)(mine - boxes);
    struct luck luck = luck_of(number);

    be_busy();
    box_open(mine, self);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        uint64_t distance = mix(seed + round) % ACTORS;
        box_send(&boxes[(number + distance) % ACTORS]);
        if (luck_below(&luck, 8) == 0)
            weir_yield();
        box_receive(mine, self);
    }
}

static void test_wakes_between_fibers_and_threads_are_conserved(void)
{
    run_all(mingle, (char *)boxes, sizeof(boxes[0]), ACTORS, THREADS);
    for (int i = 0; i < ACTORS; i++) {
        CHECK_EQUAL(boxes[i].messages, ROUNDS);
        CHECK_EQUAL(boxes[i].taken, ROUNDS);
    }
}

/* ---- a ring ---------------------------------------------------------------------------------- */

static struct box ring[RING];
static uint64_t hops; /* only the holder of the token looks */

static void pass_on(void *arg)
{
    struct wr_parker storage, *self = wr_parker_self(&storage);
    struct box *mine = arg;
    struct box *next = &ring[(mine - ring + 1) % RING];
    bool last;

    be_busy();
    box_open(mine, self);
    do {
        box_receive(mine, self);
        last = ++hops > HOPS - RING; /* this is our last turn */
        if (hops < HOPS)             /* else every actor has had it, and the next is gone */
            box_send(next);
    } while (!last);
}

static void test_a_token_travels_a_ring_across_workers(void)
{
    ring[0].messages = 1;
    run_all(pass_on, (char *)ring, sizeof(ring[0]), RING, 1);
    assert_int_equal(hops, HOPS);
    for (int i = 0; i < RING; i++)
        CHECK_EQUAL(ring[i].messages, ring[i].taken);
}

/* ---- deadlines and wakes at the same moment ---------------------------------------------------- */

struct half {
    struct box box;
    uint64_t timeouts;
};

static struct half halves[2 * PAIRS];

/* Each half sends to the other and waits for its messages in many small waits, of about the time the
 * other takes to send: so deadline and wake-up often meet. */
static void wait_briefly(void *arg)
{
    struct wr_parker storage, *self = wr_parker_self(&storage);
    struct half *mine = arg;
    uint64_t number = (uint64_t)(mine - halves);
    struct half *other = &halves[number ^ 1];
    struct luck luck = luck_of(1000 + number);
    uint64_t sent = 0, received = 0;

    be_busy();
    box_open(&mine->box, self);
    while (sent < MESSAGES || received < MESSAGES) {
        if (sent < MESSAGES && luck_below(&luck, 2)) {
            box_send(&other->box);
            sent++;
        }
        if (box_take(&mine->box)) {
            received++;
            continue;
        }
        if (received == MESSAGES)
            continue; /* only sends are left */
        weir_time deadline = sent < MESSAGES || luck_below(&luck, 2)
                                 ? weir_in_ns((int64_t)luck_below(&luck, 30000))
                                 : WEIR_FOREVER;
        int rc = wr_park(self, deadline);
        if (rc == WEIR_ETIMEDOUT) {
            CHECK(weir_now() >= deadline);
            mine->timeouts++;
        } else {
            CHECK_EQUAL(rc, 0);
        }
    }
}

static void test_deadlines_that_race_with_wakes_lose_none(void)
{
    uint64_t timeouts = 0;

    run_all(wait_briefly, (char *)halves, sizeof(halves[0]), 2 * PAIRS, 3);
    for (int i = 0; i < 2 * PAIRS; i++) {
        CHECK_EQUAL(halves[i].box.messages, MESSAGES);
        CHECK_EQUAL(halves[i].box.taken, MESSAGES);
        timeouts += halves[i].timeouts;
    }
    CHECK(timeouts > 0);
}

/* ---- wait queues ----------------------------------------------------------------------------- */

static struct wr_waitq queue;
static _Atomic uint64_t generation;

static void await_each_generation(void *arg)
{
    struct wr_parker storage, *self = wr_parker_self(&storage);
    _Atomic uint64_t *seen = arg;
    struct luck luck = luck_of(2000 + (uint64_t)(uintptr_t)arg % 4096);

    be_busy();
    while (atomic_load(seen) < ROUNDS) {
        struct wr_waiter waiter;
        wr_waitq_enter(&queue, &waiter, self);
        while (atomic_load(&generation) <= atomic_load(seen)) {
            weir_time deadline = luck_below(&luck, 4) ? WEIR_FOREVER : weir_in_us(20);
            wr_park(self, deadline);
        }
        wr_waitq_leave(&queue, &waiter);
        atomic_fetch_add(seen, 1);
    }
}

static void *turn_generations(void *arg)
{
    _Atomic uint64_t *seen = arg;

    for (uint64_t i = 1; i <= ROUNDS; i++) {
        atomic_store(&generation, i);
        wr_waitq_wake_all(&queue);
        /* Sometimes wait for all actors, so that all have to be woken. */
        if (i % 16 == 0)
            for (int a = 0; a < ACTORS; a++)
                AWAIT(atomic_load(&seen[a]) >= i);
    }
    return NULL;
}

static void test_a_wait_queue_wakes_all_actors_each_time(void)
{
    static _Atomic uint64_t seen[ACTORS];
    pthread_t waker;

    wr_waitq_init(&queue);
    assert_int_equal(pthread_create(&waker, NULL, turn_generations, seen), 0);
    run_all(await_each_generation, (char *)seen, sizeof(seen[0]), ACTORS, THREADS);
    pthread_join(waker, NULL);
    for (int i = 0; i < ACTORS; i++)
        CHECK_EQUAL(atomic_load(&seen[i]), ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_wakes_between_fibers_and_threads_are_conserved),
        TEST(test_a_token_travels_a_ring_across_workers),
        TEST(test_deadlines_that_race_with_wakes_lose_none),
        TEST(test_a_wait_queue_wakes_all_actors_each_time),
    };

    seed_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
