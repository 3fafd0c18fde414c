/* A cell of the host whose owner is killed or stopped in the middle of a step.
 * SPDX-License-Identifier: MIT */
#include "support/host_guards.h"

#include <weir/sys/store.h>

/* A cell as stores know it: two numbers that must always be equal. */
struct pair {
    int64_t a, b;
};

static void pair_init(void *state, const void *arg)
{
    (void)state;
    (void)arg;
}

static bool pair_is_sound(const void *state, size_t size)
{
    return size == sizeof(struct pair) &&
           ((const struct pair *)state)->a == ((const struct pair *)state)->b;
}

static bool pair_is_whole(const void *state, weir_time now)
{
    (void)now;
    return ((const struct pair *)state)->a == 0;
}

static weir_cell *pair_open(weir_store *store)
{
    weir_cell *cell = NULL;
    weir_cell_spec spec = { .size = sizeof(spec),
                            .name = "pair",
                            .kind = 77,
                            .version = 1,
                            .state_size = sizeof(struct pair),
                            .create = true,
                            .init = pair_init,
                            .is_sound = pair_is_sound,
                            .is_whole = pair_is_whole };

    CHECK_EQUAL(store->ops->open(&cell, store, &spec, NULL), 0);
    return cell;
}

/* Goes so many steps into a section, and stays there. */
struct stuck {
    _Atomic int steps, there;
};

static void gets_stuck(void *arg)
{
    struct stuck *stuck = arg;
    weir_store *store = host();
    weir_cell *cell = pair_open(store);
    weir_place place;
    struct pair *pair;
    int steps = stuck->steps;

    CHECK_EQUAL(cell->ops->lock(cell), 0);
    if (steps > 0)
        cell->ops->take(cell, 2);
    if (steps > 1) {
        pair = cell->ops->write(cell);
        pair->a = 99;
    }
    if (steps > 2)
        CHECK_EQUAL(cell->ops->join(cell, &place), 0);
    if (steps > 3)
        cell->ops->give(cell, 1);
    stuck->there = 1;
    for (;;)
        pause();
}

static void test_a_lock_whose_owner_was_killed_is_taken_over_and_its_step_undone(void)
{
    struct stuck *stuck = shared(sizeof(*stuck));
    weir_store *store = host();
    weir_cell *cell = pair_open(store);
    struct pair *pair;

    CHECK_EQUAL(cell->ops->lock(cell), 0);
    pair = cell->ops->write(cell);
    pair->a = pair->b = 7;
    cell->ops->take(cell, 1);
    cell->ops->unlock(cell);
    for (int round = 0; round < 15; round++) {
        const struct pair *seen;
        pid_t pid;

        stuck->steps = round % 5;
        stuck->there = 0;
        pid = fork_child(gets_stuck, stuck);
        AWAIT(stuck->there);
        kill(pid, SIGKILL);
        CHECK_EQUAL(cell->ops->lock(cell), 0); /* waits until it is dead, and no longer */
        seen = cell->ops->read(cell);
        CHECK_EQUAL(seen->a, 7);
        CHECK_EQUAL(seen->b, 7);
        cell->ops->unlock(cell);
        waitpid(pid, NULL, 0);
        cell->ops->sweep(cell);
        CHECK_EQUAL(cell->ops->lock(cell), 0);
        CHECK_EQUAL(cell->ops->used(cell), 1);
        CHECK_EQUAL(cell->ops->waiting(cell), 0);
        CHECK(cell->ops->is_first(cell, NULL));
        cell->ops->unlock(cell);
    }
    CHECK_EQUAL(cell->ops->lock(cell), 0);
    pair = cell->ops->write(cell);
    pair->a = pair->b = 0;
    cell->ops->give(cell, 1);
    cell->ops->unlock(cell);
    cell->ops->close(cell);
    CHECK_EQUAL(files("guard-pair"), 0);
    weir_store_free(store);
    munmap(stuck, sizeof(*stuck));
}

/* Does the steps, is stopped in the middle of them, and does them again if they do not count. */
static void is_stopped(void *arg)
{
    struct stuck *stuck = arg;
    weir_store *store = host();
    weir_cell *cell = pair_open(store);
    int steps = stuck->steps, rounds = 0, rc;

    do {
        weir_place place = { .told = NULL };
        struct pair *pair;

        CHECK_EQUAL(cell->ops->lock(cell), 0);
        if (steps > 0)
            cell->ops->take(cell, 2);
        if (steps > 1) {
            pair = cell->ops->write(cell);
            pair->a++;
        }
        if (steps > 2)
            CHECK_EQUAL(cell->ops->join(cell, &place), 0);
        if (rounds++ == 0) {
            stuck->there = 1;
            raise(SIGSTOP);
        }
        if (steps > 1)
            pair->b++;
        if (steps > 2)
            cell->ops->part(cell, &place);
        rc = cell->ops->unlock(cell);
    } while (rc == WEIR_EAGAIN);
    CHECK_EQUAL(rounds, steps > 0 ? 2 : 1); /* nothing was decided, nothing is to be done again */
    CHECK_EQUAL(cell->ops->lock(cell), 0);
    if (steps > 0)
        cell->ops->give(cell, 2);
    cell->ops->unlock(cell);
    cell->ops->close(cell);
    weir_store_free(store);
}

static void test_a_step_of_a_stopped_process_is_passed_over_and_done_again(void)
{
    struct stuck *stuck = shared(sizeof(*stuck));
    weir_store *store = host();
    weir_cell *cell = pair_open(store);
    struct pair *pair;

    CHECK_EQUAL(cell->ops->lock(cell), 0);
    cell->ops->take(cell, 1);
    CHECK_EQUAL(cell->ops->unlock(cell), 0);
    for (int round = 0, sum = 0; round < 16; round++) {
        int status;
        pid_t pid;

        stuck->steps = round % 4;
        stuck->there = 0;
        pid = fork_child(is_stopped, stuck);
        CHECK_EQUAL(waitpid(pid, &status, WUNTRACED), pid);
        CHECK(WIFSTOPPED(status) && stuck->there);
        CHECK_EQUAL(cell->ops->lock(cell),
                    0); /* the child has the lock, and does not give it back */
        pair = cell->ops->write(cell);
        CHECK_EQUAL(pair->a, sum);
        CHECK_EQUAL(pair->b, sum);
        pair->a = pair->b = ++sum;
        CHECK_EQUAL(cell->ops->unlock(cell), 0);
        kill(pid, SIGCONT);
        CHECK_EQUAL(child_end(pid), 0);
        sum += round % 4 > 1;
        CHECK_EQUAL(cell->ops->lock(cell), 0);
        pair = (struct pair *)cell->ops->read(cell);
        CHECK_EQUAL(pair->a, sum);
        CHECK_EQUAL(pair->b, sum);
        CHECK_EQUAL(cell->ops->used(cell), 1);
        CHECK_EQUAL(cell->ops->waiting(cell), 0);
        CHECK_EQUAL(cell->ops->unlock(cell), 0);
    }
    CHECK_EQUAL(files("next-"), 16);
    CHECK_EQUAL(cell->ops->lock(cell), 0);
    pair = cell->ops->write(cell);
    pair->a = pair->b = 0;
    cell->ops->give(cell, 1);
    CHECK_EQUAL(cell->ops->unlock(cell), 0);
    cell->ops->close(cell);
    CHECK_EQUAL(files("guard-pair") + files("next-"), 0);
    weir_store_free(store);
    munmap(stuck, sizeof(*stuck));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_lock_whose_owner_was_killed_is_taken_over_and_its_step_undone),
        TEST(test_a_step_of_a_stopped_process_is_passed_over_and_done_again),
    };

    return HOST_TESTS(tests);
}
