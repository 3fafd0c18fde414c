/* weir_execute and weir_execute_all: what comes back, and when.
 * SPDX-License-Identifier: MIT */
#include "support/executor_support.h"

enum { WORKS = 3 };

struct batch {
    weir_executor *ex;
    weir_work work[WORKS];
    weir_result result[WORKS];
    const weir_execute_options *opt;
    int rc;
    weir_time returned;
};

/* Until 50 ms, come what may; uses its argument to the last. */
struct piece {
    int used, dropped;
    char value[8];
};

static int stubborn(void **value, void *arg)
{
    struct piece *piece = arg;

    while (weir_now() < at(50))
        weir_sim_busy(at(50) - weir_now());
    CHECK_EQ(piece->dropped, 0);
    piece->used++;
    *value = piece->value;
    return 0;
}

static int quick(void **value, void *arg)
{
    struct piece *piece = arg;

    piece->used++;
    *value = piece->value;
    return 0;
}

static void drop_piece(void *arg)
{
    ((struct piece *)arg)->dropped++;
}

static int values_dropped;

static void drop_value(void *value)
{
    (void)value;
    values_dropped++;
}

static int runs_batch(void **value, void *arg)
{
    struct batch *batch = arg;

    (void)value;
    batch->rc = batch->opt ? weir_execute(batch->result, batch->ex, batch->work, WORKS, batch->opt)
                           : weir_execute_all(batch->result, batch->ex, batch->work, WORKS);
    batch->returned = weir_now();
    return 0;
}

/* One that ends, one that does not end before 50 ms, one that waits for it. */
static void batch_init(struct batch *batch, struct piece *piece)
{
    weir_group_policy groups[] = { { .key = "b", .run_on = WEIR_THREADS } };

    *batch = (struct batch){ .ex = new_executor(
                                 WEIR_POLICY(.workers = 2, .groups = groups, .group_count = 1)),
                             .work = { { .key = "a", .fn = quick, .arg = &piece[0] },
                                       { .key = "b", .fn = stubborn, .arg = &piece[1] },
                                       { .key = "b", .fn = quick, .arg = &piece[2] } } };
    memset(piece, 0, WORKS * sizeof(*piece));
    values_dropped = 0;
}

static void check_results(const struct batch *batch)
{
    CHECK_EQ(batch->result[0].outcome, WEIR_DONE);
    CHECK_EQ(batch->result[1].outcome, WEIR_CANCELLED);
    CHECK_EQ(batch->result[2].outcome, WEIR_CANCELLED);
    CHECK(batch->result[0].value && !batch->result[2].value);
}

SIM_TEST(test_a_cancelled_batch_returns_when_no_body_uses_its_argument, 100)
{
    struct piece piece[WORKS];
    struct batch batch;
    weir_task *caller;

    batch_init(&batch, piece);
    CHECK(weir_submit_key(&caller, batch.ex, "caller", runs_batch, &batch, NULL) == 0);
    sleep_until(10);
    CHECK(weir_task_cancel(caller));
    CHECK(weir_executor_drain(batch.ex, WEIR_FOREVER) == 0);
    CHECK_EQ(batch.rc, WEIR_ECANCELED);
    CHECK_EQ(batch.returned, at(50));
    check_results(&batch);
    CHECK_EQ(batch.result[1].ended_at, at(10));
    CHECK(batch.result[1].value == piece[1].value); /* late, but not lost */
    CHECK_EQ(piece[2].used, 0);
    weir_task_unref(caller);
    weir_executor_free(batch.ex);
}

SIM_TEST(test_a_batch_has_a_deadline, 100)
{
    struct piece piece[WORKS];
    struct batch batch;

    batch_init(&batch, piece);
    batch.opt = WEIR_EXECUTE(.deadline = at(10));
    runs_batch(NULL, &batch);
    CHECK_EQ(batch.rc, WEIR_ETIMEDOUT);
    CHECK_EQ(batch.returned, at(50));
    check_results(&batch);
    CHECK(batch.result[1].value == piece[1].value);
    check_books(batch.ex);
    weir_executor_free(batch.ex);
}

SIM_TEST(test_a_batch_that_drops_its_arguments_returns_at_its_deadline, 100)
{
    struct piece piece[WORKS];
    struct batch batch;

    batch_init(&batch, piece);
    batch.opt = WEIR_EXECUTE(.deadline = at(10),
                             .task = WEIR_TASK(.drop_arg = drop_piece, .drop = drop_value));
    runs_batch(NULL, &batch);
    CHECK_EQ(batch.rc, WEIR_ETIMEDOUT);
    CHECK_EQ(batch.returned, at(10));
    check_results(&batch);
    CHECK(!batch.result[1].value);
    CHECK_EQ(piece[0].dropped + piece[2].dropped, 2);
    CHECK_EQ(piece[1].dropped, 0);
    CHECK(weir_executor_drain(batch.ex, WEIR_FOREVER) == 0);
    CHECK_EQ(piece[1].dropped, 1);
    CHECK_EQ(values_dropped, 1); /* the late one; the first is the caller's */
    weir_executor_free(batch.ex);
}

static int gives_task_id(void **value, void *arg)
{
    (void)arg;
    *value = strdup(weir_task_id(weir_task_self()));
    return -EIO;
}

SIM_TEST(test_a_batch_shares_its_options, 50)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1));
    weir_work work[2] = { { .key = "g", .fn = gives_task_id },
                          { .key = "g", .id = "own", .fn = gives_task_id } };
    weir_result result[2];

    CHECK(weir_execute(result, ex, work, 2, WEIR_EXECUTE(.task = WEIR_TASK(.id = "shared"))) == 0);
    CHECK(result[0].outcome == WEIR_FAILED && strcmp(result[0].value, "shared") == 0);
    CHECK(result[1].outcome == WEIR_FAILED && strcmp(result[1].value, "own") == 0);
    free(result[0].value); /* of whatever outcome, they are the caller's */
    free(result[1].value);
    CHECK(weir_execute(NULL, ex, NULL, 0, WEIR_EXECUTE()) == 0);
    CHECK(weir_execute(result, ex, work, 2, WEIR_EXECUTE(.task = WEIR_TASK(.priority = 9))) == 0);
    CHECK(result[0].outcome == WEIR_REJECTED && result[0].error == WEIR_EINVAL);
    weir_executor_free(ex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_cancelled_batch_returns_when_no_body_uses_its_argument),
        cmocka_unit_test(test_a_batch_has_a_deadline),
        cmocka_unit_test(test_a_batch_that_drops_its_arguments_returns_at_its_deadline),
        cmocka_unit_test(test_a_batch_shares_its_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
