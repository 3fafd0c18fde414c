/* Paced groups with random tasks, bodies and orders: none starts before its pace and its limit allow it, none after another
 * that was submitted later, and none waits for nothing.
 *
 * Whatever moves does so at whole milliseconds; looks come in between, when all that can start has started.
 * SPDX-License-Identifier: MIT */
#include "support/executor_support.h"

enum { GROUPS = 3, TASKS = 60, LEVELS = 2, LOOK_NS = 500000 };

enum kind { RETURNS, PARKS, COMPUTES, FAILS, KINDS };

struct item {
    struct crowd *crowd;
    enum kind kind;
    int64_t ms;
    int level; /* 1: WEIR_LOW, with a handle */
    weir_task *task;
    bool began;
};

struct crowd {
    weir_group *group;
    int limit, running;
    int64_t step, burst; /* no pace: step is 0 */
    weir_time next;      /* when its next start is due, were its burst 1 */
    struct item item[TASKS];
    int items;
    weir_time last[LEVELS]; /* the latest start */
    int newest[LEVELS];     /* and which that was, of those that started then */
};

static struct {
    weir_executor *ex;
    struct crowd crowd[GROUPS];
    int workers, computing;
} w;

static int below(int n)
{
    return (int)(weir_sim_random() % (uint64_t)n);
}

static weir_time open_at(const struct crowd *crowd)
{
    return crowd->step ? crowd->next - (crowd->burst - 1) * crowd->step : 0;
}

static void note_start(struct crowd *crowd, struct item *item)
{
    weir_time now = weir_now();
    int number = (int)(item - crowd->item);

    CHECK(!item->began);
    item->began = true;
    CHECK(++crowd->running <= crowd->limit);
    CHECK(now >= open_at(crowd));
    crowd->next = (crowd->next > now ? crowd->next : now) + crowd->step;
    if (now > crowd->last[item->level] || number > crowd->newest[item->level])
        crowd->newest[item->level] = number;
    else /* of one moment: workers may begin them in any order */
        CHECK(w.workers > 1);
    crowd->last[item->level] = now;
}

static int body(void **value, void *arg)
{
    struct item *item = arg;
    struct crowd *crowd = item->crowd;

    (void)value;
    note_start(crowd, item);
    if (item->kind == COMPUTES) {
        w.computing++;
        weir_sim_busy(item->ms * MS);
        w.computing--;
    } else if (item->kind == PARKS) {
        CHECK(weir_sleep(weir_now() + item->ms * MS) == 0);
    }
    crowd->running--;
    return item->kind == FAILS ? WEIR_EINVAL : 0;
}

static void submit_one(struct crowd *crowd)
{
    struct item *item = &crowd->item[crowd->items++];
    bool has_handle = below(4) == 0;

    *item = (struct item){ .crowd = crowd, .kind = below(KINDS), .ms = 1 + below(9) };
    item->level = has_handle && below(2);
    CHECK(weir_submit(has_handle ? &item->task : NULL, crowd->group, body, item,
                      item->level ? WEIR_TASK(.priority = WEIR_LOW) : NULL) == 0);
}

static void begin(void)
{
    memset(&w, 0, sizeof(w));
    w.workers = 1 + below(2);
    w.ex = new_executor(WEIR_POLICY(.workers = (uint32_t)w.workers, .stall_after_ms = 10000));
    for (int i = 0; i < GROUPS; i++) {
        struct crowd *crowd = &w.crowd[i];
        crowd->group = group_of(w.ex, (const char *[]){ "a", "b", "c" }[i]);
        crowd->limit = 1 + below(3);
        crowd->step = below(3) ? (1 + below(8)) * MS : 0;
        crowd->burst = 1 + below(4);
        CHECK(weir_group_resize(crowd->group, crowd->limit, 0, 0) == 0);
        CHECK(weir_group_set_weight(crowd->group, below(2) ? 1 : 3) == 0);
        CHECK(!crowd->step || weir_group_pace(crowd->group, 1, crowd->step, crowd->burst) == 0);
    }
}

/* Whether one waits that nothing keeps. If a worker is free, each group that can start something has started it. */
static bool waits_for_nothing(const struct crowd *crowd)
{
    int began = 0;

    for (int i = 0; i < crowd->items; i++)
        began += crowd->item[i].began;
    return began < crowd->items && crowd->running < crowd->limit && weir_now() >= open_at(crowd) &&
           w.computing < w.workers;
}

static void look(int64_t ms)
{
    CHECK(weir_sleep(at(ms) + LOOK_NS) == 0);
    for (int i = 0; i < GROUPS; i++) {
        CHECK(!waits_for_nothing(&w.crowd[i]));
        CHECK_EQ(stats_of(w.ex, weir_group_key(w.crowd[i].group)).running, w.crowd[i].running);
    }
}

static void end(void)
{
    CHECK(weir_executor_drain(w.ex, WEIR_FOREVER) == 0);
    check_books(w.ex);
    weir_executor_free(w.ex);
    for (int g = 0; g < GROUPS; g++)
        for (int i = 0; i < w.crowd[g].items; i++) {
            CHECK(w.crowd[g].item[i].began);
            weir_task_unref(w.crowd[g].item[i].task);
        }
}

SIM_TEST(test_paced_groups_start_neither_early_nor_late, 400)
{
    int64_t ms = 0;

    begin();
    for (int left = TASKS; left > 0; ms++) {
        for (int i = below(3) ? 0 : 1 + below(8); i > 0 && left > 0; i--, left--)
            submit_one(&w.crowd[below(GROUPS)]);
        look(ms);
        sleep_until(ms + 1);
    }
    for (int64_t last = ms + 100; ms < last; ms++)
        look(ms);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paced_groups_start_neither_early_nor_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
