/* Guards of the host, among real processes: shared counts, deaths, files that are not guards.
 * SPDX-License-Identifier: MIT */
#include "support/child.h"
#include "support/seed.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <weir/sys/store.h>

static char directory[128];

static weir_store *host(void)
{
    weir_store *store = NULL;
    weir_message why;

    if (!CHECK(weir_store_host(&store, WEIR_HOST(.directory = directory), &why) == 0))
        printf("%s\n", why.text);
    return store;
}

static weir_guard *open_guard(weir_store *store, const char *name, const weir_guard_options *opt)
{
    weir_guard *guard = NULL;
    weir_message why;

    if (!CHECK(weir_guard_new(&guard, store, name, opt, &why) == 0))
        printf("%s\n", why.text);
    return guard;
}

static weir_guard_stats figures(weir_guard *guard)
{
    weir_guard_stats s = { .size = sizeof(s) };

    CHECK_EQUAL(weir_guard_stats_get(&s, guard), 0);
    return s;
}

static int files(const char *prefix)
{
    DIR *d = opendir(directory);
    int count = 0;

    for (struct dirent *e = readdir(d); e; e = readdir(d))
        count += strncmp(e->d_name, prefix, strlen(prefix)) == 0;
    closedir(d);
    return count;
}

static pid_t fork_child(void (*run)(void *), void *arg)
{
    pid_t pid;

    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        atomic_store(&checks_failed, 0);
        run(arg);
        fflush(NULL);
        _exit(atomic_load(&checks_failed) ? 1 : 0);
    }
    return pid;
}

static void *shared(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(memory != MAP_FAILED);
    return memory;
}

/* ---- what is shared --------------------------------------------------------------------------------- */

static void spends(void *arg)
{
    weir_store *store = host();
    weir_guard *rate =
        open_guard(store, "rate", WEIR_RATE(.limit = 3, .period_ns = INT64_C(3600000000000)));
    weir_guard *breaker =
        open_guard(store, "breaker", WEIR_BREAKER(.window = 2, .failure_percent = 50));
    weir_permit p = WEIR_PERMIT;

    (void)arg;
    for (int i = 0; i < 2; i++) {
        p = WEIR_PERMIT;
        CHECK_EQUAL(weir_guard_enter(&p, rate, 0), 0);
    }
    for (int i = 0; i < 2; i++) {
        p = WEIR_PERMIT;
        CHECK_EQUAL(weir_guard_enter(&p, breaker, 0), 0);
        CHECK_EQUAL(weir_guard_leave(&p, -EIO), 0);
    }
    /* It ends without a word, as short-lived commands do. */
}

static void test_what_was_spent_outlives_processes_until_it_is_whole(void)
{
    weir_store *store = host();
    weir_guard *rate, *breaker, *bulkhead;
    weir_permit p = WEIR_PERMIT;

    CHECK_EQUAL(child_end(fork_child(spends, NULL)), 0);
    rate = open_guard(store, "rate", WEIR_RATE(.limit = 3, .period_ns = INT64_C(3600000000000)));
    breaker = open_guard(store, "breaker", WEIR_BREAKER(.window = 2, .failure_percent = 50));
    CHECK_EQUAL(figures(rate).available, 1);
    CHECK_EQUAL(figures(breaker).state, WEIR_OPEN);
    CHECK_EQUAL(weir_guard_enter(&p, breaker, 0), WEIR_EBROKEN);
    CHECK_EQUAL(weir_guard_reset(breaker), 0);
    bulkhead = open_guard(store, "whole", WEIR_BULKHEAD());
    CHECK_EQUAL(files("guard-"), 3);
    weir_guard_unref(rate);
    weir_guard_unref(breaker); /* closed again, so its file goes */
    weir_guard_unref(bulkhead);
    CHECK_EQUAL(files("guard-"), 1);
    CHECK_EQUAL(files("guard-rate"), 1);
    weir_store_free(store);
    CHECK_EQUAL(files("bell-"), 0);
}

static void test_settings_are_shared_and_others_are_told(void)
{
    weir_store *a = host(), *b = host();
    weir_guard *first = open_guard(a, "s", WEIR_BULKHEAD(.limit = 2)), *second, *none;
    weir_message why;

    second = open_guard(b, "s", WEIR_BULKHEAD(.limit = 2));
    CHECK(first != second);
    CHECK_EQUAL(weir_guard_new(&none, b, "s", WEIR_BULKHEAD(.limit = 3), &why), WEIR_EEXIST);
    CHECK_EQUAL(weir_guard_change(first, WEIR_BULKHEAD(.limit = 7), NULL, NULL), 0);
    CHECK_EQUAL(figures(second).limit, 7);
    CHECK_EQUAL(weir_guard_new(&none, b, "nothing", NULL, &why), WEIR_ENOGUARD);
    weir_guard_unref(first);
    weir_guard_unref(second);
    weir_store_free(a);
    weir_store_free(b);
}

static void test_a_mutex_has_one_holder_on_the_host_and_says_which(void)
{
    weir_store *a = host(), *b = host();
    weir_guard *one = open_guard(a, "m", WEIR_MUTEX()), *two = open_guard(b, "m", WEIR_MUTEX());
    weir_permit p = WEIR_PERMIT, q = WEIR_PERMIT;
    weir_message text;
    char wanted[64];
    uint64_t token;

    CHECK_EQUAL(weir_guard_enter(&p, one, 0), 0);
    CHECK_EQUAL(weir_guard_enter(&q, two, 0), WEIR_ELOCKED);
    CHECK_EQUAL(weir_guard_describe(&text, two), 0);
    snprintf(wanted, sizeof(wanted), "held by process %d (1)", getpid());
    CHECK(strstr(text.text, wanted));
    token = p.token;
    CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
    CHECK_EQUAL(weir_guard_enter(&q, two, 0), 0);
    CHECK(q.token > token);
    CHECK_EQUAL(weir_guard_leave(&q, 0), 0);
    weir_guard_unref(one);
    weir_guard_unref(two);
    weir_store_free(a);
    weir_store_free(b);
}

/* ---- first come, first served ------------------------------------------------------------------------ */

enum { ROW = 6 };
struct row {
    _Atomic int turn, joined, order[ROW], in;
};

struct standing {
    struct row *row;
    weir_guard *guard;
    int me;
};

static void has_its_turn(void *arg)
{
    struct standing *s = arg;
    weir_permit p = WEIR_PERMIT;

    CHECK_EQUAL(weir_guard_enter(&p, s->guard, patience()), 0);
    s->row->order[atomic_fetch_add(&s->row->in, 1)] = s->me;
    CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
}

static void stands_in_line(void *arg)
{
    struct row *row = arg;
    weir_store *store = host();
    struct standing s = { row, open_guard(store, "line", WEIR_BULKHEAD(.limit = 1)),
                          atomic_fetch_add(&row->joined, 1) };

    /* The caller before us stands in line already. */
    AWAIT(figures(s.guard).waiting == s.me);
    if (s.me % 2) {
        weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1));
        CHECK_EQUAL(weir_spawn(rt, has_its_turn, &s, NULL), 0);
        drain(rt);
        weir_runtime_free(rt);
    } else {
        has_its_turn(&s);
    }
    weir_guard_unref(s.guard);
    weir_store_free(store);
}

/* Every other one is a task. */
static void test_processes_are_served_in_the_order_they_came(void)
{
    struct row *row = shared(sizeof(*row));
    weir_store *store = host();
    weir_guard *g = open_guard(store, "line", WEIR_BULKHEAD(.limit = 1));
    weir_permit p = WEIR_PERMIT;
    pid_t pid[ROW];

    CHECK_EQUAL(weir_guard_enter(&p, g, 0), 0);
    for (int i = 0; i < ROW; i++)
        pid[i] = fork_child(stands_in_line, row);
    AWAIT(figures(g).waiting == ROW);
    CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
    for (int i = 0; i < ROW; i++)
        CHECK_EQUAL(child_end(pid[i]), 0);
    for (int i = 0; i < ROW; i++)
        CHECK_EQUAL(row->order[i], i);
    weir_guard_unref(g);
    weir_store_free(store);
    munmap(row, sizeof(*row));
}

/* Tasks park, they do not block their worker: one worker carries many that wait. */
struct many {
    weir_guard *guard;
    _Atomic int done, ticks;
};

static void waits_as_task(void *arg)
{
    struct many *many = arg;
    weir_permit p = WEIR_PERMIT;

    CHECK_EQUAL(weir_guard_enter(&p, many->guard, patience()), 0);
    CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
    many->done++;
}

static void ticks(void *arg)
{
    ((struct many *)arg)->ticks++;
}

static void test_tasks_that_wait_for_the_host_do_not_hold_their_worker(void)
{
    weir_store *a = host(), *b = host();
    struct many many = { .guard = open_guard(a, "t", WEIR_BULKHEAD(.limit = 1)) };
    weir_guard *other = open_guard(b, "t", WEIR_BULKHEAD(.limit = 1));
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1));
    weir_permit p = WEIR_PERMIT;

    CHECK_EQUAL(weir_guard_enter(&p, other, 0), 0);
    for (int i = 0; i < 20; i++)
        CHECK_EQUAL(weir_spawn(rt, waits_as_task, &many, NULL), 0);
    AWAIT(figures(other).waiting == 20);
    CHECK_EQUAL(weir_spawn(rt, ticks, &many, NULL), 0);
    AWAIT(many.ticks == 1);
    CHECK_EQUAL(many.done, 0);
    CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
    drain(rt);
    CHECK_EQUAL(many.done, 20);
    weir_runtime_free(rt);
    weir_guard_unref(many.guard);
    weir_guard_unref(other);
    weir_store_free(a);
    weir_store_free(b);
}

/* ---- deaths ------------------------------------------------------------------------------------------- */

static void holds_and_sleeps(void *arg)
{
    weir_guard *g = open_guard(host(), "d", WEIR_BULKHEAD(.limit = 2));
    weir_permit p = WEIR_PERMIT;

    CHECK_EQUAL(weir_guard_enter_n(&p, g, 2, 0), 0);
    *(_Atomic int *)arg = 1;
    for (;;)
        pause();
}

static void test_a_killed_holder_gives_its_permits_back(void)
{
    _Atomic int *in = shared(sizeof(*in));
    weir_store *store = host();
    weir_guard *g = open_guard(store, "d", WEIR_BULKHEAD(.limit = 2));
    weir_permit p = WEIR_PERMIT;
    pid_t pid = fork_child(holds_and_sleeps, (void *)in);
    weir_message text;

    AWAIT(*in);
    CHECK_EQUAL(weir_guard_enter(&p, g, 0), WEIR_EFULL);
    CHECK_EQUAL(weir_guard_describe(&text, g), 0);
    CHECK(strstr(text.text, "2 of 2 permits in use, held by process"));
    kill(pid, SIGKILL);
    AWAIT(figures(g).used == 0 || weir_guard_enter(&p, g, 0) == 0); /* a zombie is dead, too */
    CHECK_EQUAL(figures(g).used, 1);
    waitpid(pid, NULL, 0);
    CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
    *in = 0;
    pid = fork_child(holds_and_sleeps, (void *)in);
    AWAIT(*in);
    kill(pid, SIGKILL); /* while we wait: the kernel says so */
    CHECK_EQUAL(weir_guard_enter(&p, g, patience()), 0);
    waitpid(pid, NULL, 0);
    CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
    weir_guard_unref(g);
    weir_store_free(store);
    munmap((void *)in, sizeof(*in));
}

/* ---- stopped waiters ---------------------------------------------------------------------------------- */

static void waits_once(void *arg)
{
    weir_store *store = host();
    weir_guard *g = open_guard(store, "aside", WEIR_BULKHEAD(.limit = 1));
    weir_permit p = WEIR_PERMIT;

    CHECK_EQUAL(weir_guard_enter(&p, g, patience()), 0);
    ++*(_Atomic int *)arg;
    CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
    weir_guard_unref(g);
    weir_store_free(store);
}

/* First in line, and it cannot come: those behind it, and newcomers, go past. When it goes on it has its turn. */
static void test_a_waiter_that_is_stopped_steps_aside(void)
{
    _Atomic int *in = shared(2 * sizeof(*in));
    weir_store *store = host();
    weir_guard *g = open_guard(store, "aside", WEIR_BULKHEAD(.limit = 1));
    weir_permit p = WEIR_PERMIT;
    int status;
    pid_t pid[2];

    CHECK_EQUAL(weir_guard_enter(&p, g, 0), 0);
    for (int i = 0; i < 2; i++) {
        pid[i] = fork_child(waits_once, (void *)&in[i]);
        AWAIT(figures(g).waiting == i + 1);
    }
    kill(pid[0], SIGSTOP);
    CHECK(waitpid(pid[0], &status, WUNTRACED) == pid[0] && WIFSTOPPED(status));
    CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
    CHECK_EQUAL(child_end(pid[1]), 0); /* the second has had its turn */
    CHECK_EQUAL(in[1], 1);
    CHECK_EQUAL(weir_guard_enter(&p, g, patience()), 0);
    kill(pid[0], SIGCONT);
    AWAIT(figures(g).waiting == 1); /* it stands in line again */
    CHECK_EQUAL(in[0], 0);
    kill(pid[0], SIGSTOP);
    CHECK(waitpid(pid[0], &status, WUNTRACED) == pid[0] && WIFSTOPPED(status));
    CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
    CHECK_EQUAL(weir_guard_enter(&p, g, 0), 0); /* a newcomer looks, too, before it is refused */
    CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
    kill(pid[0], SIGCONT);
    CHECK_EQUAL(child_end(pid[0]), 0);
    CHECK_EQUAL(in[0], 1);
    weir_guard_unref(g);
    weir_store_free(store);
    munmap((void *)in, 2 * sizeof(*in));
}

/* ---- groups ------------------------------------------------------------------------------------------- */

static void holds_one_and_sleeps(void *arg)
{
    weir_guard *g = open_guard(host(), "group", WEIR_BULKHEAD(.limit = 1));
    weir_permit p = WEIR_PERMIT;

    CHECK_EQUAL(weir_guard_enter(&p, g, 0), 0);
    *(_Atomic int *)arg = 1;
    for (;;)
        pause();
}

static int counts_itself(void **value, void *arg)
{
    (void)value;
    ++*(_Atomic int *)arg;
    return 0;
}

/* Also of processes that came after the group had waited for the first time. */
static void test_a_group_that_waits_is_woken_by_the_death_of_any_holder(void)
{
    _Atomic int *in = shared(2 * sizeof(*in));
    weir_store *store = host();
    weir_guard *g = open_guard(store, "group", WEIR_BULKHEAD(.limit = 1));
    weir_executor *ex = NULL;
    weir_group *group = NULL;

    CHECK_EQUAL(weir_executor_new(&ex, WEIR_POLICY(.workers = 1), NULL), 0);
    CHECK_EQUAL(weir_group_get(&group, ex, "k"), 0);
    CHECK_EQUAL(weir_group_guard_add(NULL, group, g, 0), 0);
    for (int round = 1; round <= 3; round++) {
        pid_t pid;

        in[0] = 0;
        pid = fork_child(holds_one_and_sleeps, (void *)in);
        AWAIT(in[0]);
        CHECK_EQUAL(weir_submit(NULL, group, counts_itself, (void *)&in[1], NULL), 0);
        AWAIT(figures(g).waiting == 1);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        AWAIT(in[1] == round);
    }
    weir_executor_free(ex);
    weir_guard_unref(g);
    weir_store_free(store);
    munmap((void *)in, 2 * sizeof(*in));
}

enum { MANY = 150 };

static void one_of_many(void *arg)
{
    _Atomic int *count = arg;
    weir_store *store = host();
    weir_guard *g = open_guard(store, "many", WEIR_BULKHEAD(.limit = MANY));
    weir_permit p = WEIR_PERMIT;

    CHECK_EQUAL(weir_guard_enter(&p, g, 0), 0);
    ++count[0];
    AWAIT(count[0] == MANY); /* all of them are inside at once */
    CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
    weir_guard_unref(g);
    weir_store_free(store);
    ++count[1];
}

static void test_a_hundred_and_fifty_processes_share_a_guard(void)
{
    _Atomic int *count = shared(2 * sizeof(*count));
    weir_store *store = host();
    weir_guard *g = open_guard(store, "many", WEIR_BULKHEAD(.limit = MANY));
    pid_t pid[MANY];

    for (int i = 0; i < MANY; i++)
        pid[i] = fork_child(one_of_many, (void *)count);
    for (int i = 0; i < MANY; i++)
        waitpid(pid[i], NULL, 0);
    CHECK_EQUAL(count[1], MANY);
    CHECK_EQUAL(figures(g).used, 0);
    weir_guard_unref(g);
    weir_store_free(store);
    munmap((void *)count, 2 * sizeof(*count));
}

static void test_a_child_of_fork_cannot_use_its_parents_guard(void)
{
    weir_store *store = host();
    weir_guard *g = open_guard(store, "f", WEIR_BULKHEAD());
    weir_permit p = WEIR_PERMIT;
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0)
        _exit(weir_guard_enter(&p, g, 0) == WEIR_ECLOSED ? 0 : 1);
    waitpid(pid, &status, 0);
    CHECK_EQUAL(status, 0);
    CHECK_EQUAL(weir_guard_enter(&p, g, 0), 0);
    CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
    weir_guard_unref(g);
    weir_store_free(store);
}

/* ---- five hundred deaths among eight ------------------------------------------------------------------ */

enum { WORKERS = 8, GUARDS = 2, DEATHS = 500, STOPS = 300, LOG_MAX = 1 << 21 };
static const int limits[GUARDS] = { 1, 3 };

/* A history that no part of the library writes or reads. IN is written after enter returned, OUT before leave is called, KILL
 * before the signal is sent: so what it shows as inside was inside. */
enum what { IN = 1, OUT, KILL, WANT };
struct entry {
    _Atomic uint32_t what; /* what | worker << 8 | guard << 16; 0: not written yet */
    uint32_t life;
};
struct history {
    _Atomic uint32_t count, stop;
    _Atomic uint32_t entered[WORKERS];
    struct entry entry[LOG_MAX];
};
static struct history *history;

static void note(enum what what, int worker, int guard, uint32_t life)
{
    uint32_t at = atomic_fetch_add(&history->count, 1);

    if (at >= LOG_MAX)
        return;
    history->entry[at].life = life;
    atomic_store(&history->entry[at].what, what | (uint32_t)worker << 8 | (uint32_t)guard << 16);
}

static void worker_main(int me, uint32_t life)
{
    struct luck luck = luck_of(life * 100 + (uint32_t)me);
    weir_store *store = host();
    weir_guard *g[GUARDS] = { open_guard(store, "mutex", WEIR_MUTEX()),
                              open_guard(store, "three", WEIR_BULKHEAD(.limit = 3)) };

    while (!atomic_load(&history->stop)) {
        int k = (int)luck_below(&luck, GUARDS);
        weir_permit p = WEIR_PERMIT;
        weir_time deadline =
            luck_below(&luck, 8) ? WEIR_FOREVER : weir_in_us((int64_t)luck_below(&luck, 500));

        note(WANT, me, k, life);
        if (weir_guard_enter(&p, g[k], deadline))
            continue;
        note(IN, me, k, life);
        atomic_fetch_add(&history->entered[me], 1);
        if (luck_below(&luck, 3) == 0)
            weir_sleep(weir_in_us((int64_t)luck_below(&luck, 400)));
        note(OUT, me, k, life);
        if (weir_guard_leave(&p, 0))
            _exit(2);
    }
    for (int k = 0; k < GUARDS; k++)
        weir_guard_unref(g[k]);
    weir_store_free(store);
    _exit(0);
}

static pid_t start_worker(int me, uint32_t life)
{
    pid_t pid;

    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        worker_main(me, life);
    return pid;
}

/* Goes through the history once, from the first entry to the last. */
static void judge_history(void)
{
    int inside[GUARDS] = { 0 }, at_work[WORKERS];
    uint32_t count = history->count < LOG_MAX ? history->count : LOG_MAX, entries = 0;

    for (int i = 0; i < WORKERS; i++)
        at_work[i] = -1;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t word = history->entry[i].what;
        int worker = (int)(word >> 8 & 255), guard = (int)(word >> 16);

        switch (word & 255) {
        case IN:
            entries++;
            at_work[worker] = guard;
            if (!CHECK(++inside[guard] <= limits[guard]))
                printf("entry %u: worker %d makes it %d inside\n", i, worker, inside[guard]);
            break;
        case OUT:
            at_work[worker] = -1;
            inside[guard]--;
            break;
        case KILL: /* what it held is free from here on at the earliest */
            if (at_work[worker] >= 0)
                inside[at_work[worker]]--;
            at_work[worker] = -1;
            break;
        default: /* a dead process did not finish its entry, or it only wanted in */
            break;
        }
    }
    printf("%u entries\n", entries);
}

/* After KILL a worker may still write: what it wrote then does not count. So: every entry of a life after its KILL is
 * taken out before the history is judged. */
static void cut_after_kill(void)
{
    static uint32_t killed[WORKERS];
    uint32_t count = history->count < LOG_MAX ? history->count : LOG_MAX;

    memset(killed, 0, sizeof(killed));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t word = history->entry[i].what;
        int worker = (int)(word >> 8 & 255);

        if ((word & 255) == KILL)
            killed[worker] = history->entry[i].life;
        else if (killed[worker] && history->entry[i].life <= killed[worker])
            history->entry[i].what = 0;
    }
}

static void test_five_hundred_deaths_lose_no_permit_and_forget_no_waiter(void)
{
    struct luck luck = luck_of(1);
    int deaths = (int)soak_times(DEATHS);
    uint32_t life = 1, before[WORKERS];
    pid_t pid[WORKERS];
    weir_store *store;
    weir_guard *g[GUARDS];
    weir_permit p = WEIR_PERMIT;
    int status;

    history = shared(sizeof(*history));
    for (int i = 0; i < WORKERS; i++)
        pid[i] = start_worker(i, life);
    for (int n = 0; n < deaths; n++) {
        int victim = (int)luck_below(&luck, WORKERS);

        usleep((useconds_t)luck_below(&luck, 6000));
        note(KILL, victim, 0, life);
        kill(pid[victim], SIGKILL);
        if (luck_below(&luck, 2))
            usleep((useconds_t)luck_below(&luck, 1000)); /* a zombie for a while */
        waitpid(pid[victim], &status, 0);
        CHECK(WIFSIGNALED(status));
        pid[victim] = start_worker(victim, ++life);
    }
    CHECK_EQUAL(life, deaths + 1);
    CHECK(history->count < LOG_MAX); /* else some of it could not be judged */
    for (int i = 0; i < WORKERS; i++)
        before[i] = history->entered[i];
    for (int i = 0; i < WORKERS; i++) /* no waiter is forgotten: all come in again */
        AWAIT(history->entered[i] > before[i] + 3);
    history->stop = 1;
    for (int i = 0; i < WORKERS; i++)
        CHECK_EQUAL(child_end(pid[i]), 0);
    cut_after_kill();
    judge_history();
    store = host(); /* no permit is lost */
    g[0] = open_guard(store, "mutex", WEIR_MUTEX());
    g[1] = open_guard(store, "three", WEIR_BULKHEAD(.limit = 3));
    for (int k = 0; k < GUARDS; k++) {
        CHECK_EQUAL(weir_guard_enter_n(&p, g[k], limits[k], 0), 0);
        CHECK_EQUAL(figures(g[k]).used, limits[k]);
        CHECK_EQUAL(figures(g[k]).waiting, 0);
        CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
        weir_guard_unref(g[k]);
    }
    weir_store_free(store);
    CHECK_EQUAL(files("guard-mutex") + files("guard-three"), 0);
    CHECK_EQUAL(files("bell-"), 0);
    munmap(history, sizeof(*history));
}

/* ---- three hundred stops among eight ------------------------------------------------------------------ */

/* Nobody dies here, so what is inside can be counted as it happens. */
struct yard {
    _Atomic int inside[3], stop;
    _Atomic int64_t spent;
    _Atomic uint32_t answered[WORKERS];
};
static struct yard *yard;
static const int room[3] = { 1, 3, 1000 };

static weir_guard *yard_guard(weir_store *store, int k)
{
    return k == 0   ? open_guard(store, "yard mutex", WEIR_MUTEX())
           : k == 1 ? open_guard(store, "yard three", WEIR_BULKHEAD(.limit = 3))
                    : open_guard(store, "yard wide", WEIR_BULKHEAD(.limit = 1000));
}

static weir_guard *yard_rate(weir_store *store)
{
    return open_guard(store, "yard rate",
                      WEIR_RATE(.limit = WEIR_PERMITS_MAX, .period_ns = INT64_C(3600000000000)));
}

static void hurries(int me)
{
    struct luck luck = luck_of(1000 + (uint32_t)me);
    weir_store *store = host();
    weir_guard *g[3], *rate = yard_rate(store);

    for (int k = 0; k < 3; k++)
        g[k] = yard_guard(store, k);
    while (!atomic_load(&yard->stop)) {
        int k = (int)luck_below(&luck, 3);
        weir_permit p = WEIR_PERMIT, token = WEIR_PERMIT;
        weir_time deadline =
            luck_below(&luck, 8) ? WEIR_NOW_OR_NEVER : weir_in_us((int64_t)luck_below(&luck, 300));
        int rc = weir_guard_enter(&p, g[k], deadline);

        CHECK(rc == 0 || rc == (k ? WEIR_EFULL : WEIR_ELOCKED));
        if (rc == 0) {
            CHECK(atomic_fetch_add(&yard->inside[k], 1) < room[k]);
            atomic_fetch_sub(&yard->inside[k], 1);
            CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
        }
        if (luck_below(&luck, 4) == 0) {
            CHECK_EQUAL(weir_guard_enter(&token, rate, 0), 0);
            atomic_fetch_add(&yard->spent, 1);
        }
        atomic_fetch_add(&yard->answered[me], 1);
    }
    for (int k = 0; k < 3; k++)
        weir_guard_unref(g[k]);
    weir_guard_unref(rate);
    weir_store_free(store);
}

static void hurries_as(void *arg)
{
    hurries((int)(intptr_t)arg);
}

static void all_but_one_go_on(int one)
{
    uint32_t before[WORKERS];

    for (int i = 0; i < WORKERS; i++)
        before[i] = yard->answered[i];
    for (int i = 0; i < WORKERS; i++)
        if (i != one)
            AWAIT(yard->answered[i] > before[i] + 3);
}

/* Stopped anywhere, also in a step: calls of the others get their answers meanwhile, and when it goes on nothing is out of
 * order: never too many inside, no permit lost, each call of a rate counted once. */
static void test_a_process_that_is_stopped_keeps_no_other_from_an_answer(void)
{
    struct luck luck = luck_of(2);
    int stops = (int)soak_times(STOPS), in_steps = 0, before;
    weir_store *store;
    pid_t pid[WORKERS];
    weir_guard *g;

    yard = shared(sizeof(*yard));
    for (int i = 0; i < WORKERS; i++)
        pid[i] = fork_child(hurries_as, (void *)(intptr_t)i);
    for (int i = 0; i < WORKERS; i++)
        AWAIT(yard->answered[i]);
    for (int n = 0; n < stops; n++) {
        int victim = (int)luck_below(&luck, WORKERS), status;

        usleep((useconds_t)luck_below(&luck, 1000));
        before = files("next-");
        kill(pid[victim], SIGSTOP);
        CHECK(waitpid(pid[victim], &status, WUNTRACED) == pid[victim] && WIFSTOPPED(status));
        all_but_one_go_on(victim);
        in_steps += files("next-") > before;
        kill(pid[victim], SIGCONT);
    }
    all_but_one_go_on(-1);
    yard->stop = 1;
    for (int i = 0; i < WORKERS; i++)
        CHECK_EQUAL(child_end(pid[i]), 0);
    printf("%d stops, %d of them in a step\n", stops, in_steps);
    store = host();
    for (int k = 0; k < 3; k++) {
        g = yard_guard(store, k);
        CHECK_EQUAL(figures(g).used, 0);
        CHECK_EQUAL(figures(g).waiting, 0);
        weir_guard_unref(g);
    }
    g = yard_rate(store);
    CHECK_EQUAL(figures(g).available, WEIR_PERMITS_MAX - yard->spent);
    weir_guard_unref(g);
    weir_store_free(store);
    CHECK_EQUAL(files("guard-yard") - files("guard-yard%20rate") + files("bell-"), 0);
    munmap(yard, sizeof(*yard));
}

/* ---- death in the middle of a step ---------------------------------------------------------------------- */

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

/* ---- files that are not guards ------------------------------------------------------------------------- */

static void refused(const char *what)
{
    weir_store *store = host();
    weir_guard *g = NULL;
    weir_message why;

    CHECK_EQUAL(weir_guard_new(&g, store, "bad", WEIR_BULKHEAD(.limit = 2), &why), WEIR_EFOREIGN);
    if (!CHECK(strstr(why.text, what) && strstr(why.text, "guard-bad")))
        printf("%s, not %s\n", why.text, what);
    weir_store_free(store);
}

static void path_of(char *path, size_t size, const char *file)
{
    snprintf(path, size, "%s/%s", directory, file);
}

static void write_file(const char *bytes, size_t size)
{
    char path[256];
    int fd;

    path_of(path, sizeof(path), "guard-bad");
    unlink(path);
    fd = open(path, O_CREAT | O_WRONLY, 0600);
    CHECK_EQUAL(write(fd, bytes, size), (ssize_t)size);
    close(fd);
}

/* A good file, of which one byte is changed. */
static void damage(long at)
{
    weir_store *store = host();
    char path[256], *bytes;
    weir_guard *g;
    int64_t size;
    int fd;

    path_of(path, sizeof(path), "guard-bad");
    unlink(path);
    g = open_guard(store, "bad", WEIR_BULKHEAD(.limit = 2));
    fd = open(path, O_RDWR);
    size = lseek(fd, 0, SEEK_END);
    bytes = malloc((size_t)size);
    CHECK_EQUAL(pread(fd, bytes, (size_t)size, 0), size);
    close(fd);
    weir_guard_unref(g); /* it was whole, so it is gone */
    weir_store_free(store);
    CHECK(access(path, F_OK) != 0);
    bytes[at] = (char)(bytes[at] ^ 0x55);
    write_file(bytes, (size_t)size);
    free(bytes);
}

static void test_files_that_are_not_guards_are_refused_with_a_sentence(void)
{
    char path[256], zeros[100000] = "";

    write_file("", 0);
    refused("not a guard of weir");
    write_file("hello", 5);
    refused("not a guard of weir");
    write_file(zeros, sizeof(zeros));
    refused("not a guard of weir");
    damage(0);
    refused("not a guard of weir");
    damage(8);
    refused("made by another version of weir");
    damage(30);
    refused("damaged: its header is not valid");
    path_of(path, sizeof(path), "guard-bad");
    unlink(path);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    refused("not a plain file of this user");
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    refused("not a plain file of this user");
    rmdir(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    refused("not a plain file of this user");
    unlink(path);
}

/* A few bytes anywhere: refused, or as good as any; never a crash, never a wait without end. */
static void opens_what_is_left(void *arg)
{
    weir_store *store = host();
    weir_guard *g = NULL;
    weir_permit p = WEIR_PERMIT;
    weir_guard_stats s = { .size = sizeof(s) };
    weir_message why;
    int rc = weir_guard_new(&g, store, "bad", NULL, &why);

    (void)arg;
    CHECK(rc == 0 || rc == WEIR_EFOREIGN || rc == WEIR_ENOGUARD);
    if (rc == 0) {
        if (weir_guard_enter(&p, g, weir_in_ms(1)) == 0)
            CHECK_EQUAL(weir_guard_leave(&p, -EIO), 0);
        CHECK_EQUAL(weir_guard_stats_get(&s, g), 0);
        CHECK_EQUAL(weir_guard_describe(&why, g), 0);
        weir_guard_unref(g);
    }
    weir_store_free(store);
}

static const weir_guard_options *some_options(int n)
{
    static weir_guard_options opt;

    opt = n % 4 == 0   ? *WEIR_BULKHEAD(.limit = 3)
          : n % 4 == 1 ? *WEIR_RATE(.limit = 3, .period_ns = INT64_C(3600000000000))
          : n % 4 == 2
              ? *WEIR_FREQUENCY(.mode = WEIR_EXACT, .limit = 20)
              : *WEIR_BREAKER(.window = 9, .mode = n % 8 == 3 ? WEIR_BY_TIME : WEIR_BY_COUNT);
    return &opt;
}

static void leaves_something(void *arg)
{
    weir_store *store = host();
    weir_guard *g = open_guard(store, "bad", some_options((int)(intptr_t)arg));

    for (int i = 0; i < 3; i++) {
        weir_permit p = WEIR_PERMIT;
        CHECK_EQUAL(weir_guard_enter(&p, g, 0), 0);
        if (i)
            CHECK_EQUAL(weir_guard_leave(&p, -EIO), 0);
    }
    fflush(NULL);
    _exit(atomic_load(&checks_failed) ? 1 : 0); /* without a word, so the file stays */
}

static void test_random_damage_is_refused_or_harmless(void)
{
    struct luck luck = luck_of(77);
    char path[256];
    int fd;

    path_of(path, sizeof(path), "guard-bad");
    for (int n = 0; n < 200; n++) {
        int64_t size, hot = n % 2 ? 3000 : INT32_MAX;

        unlink(path);
        CHECK_EQUAL(child_end(fork_child(leaves_something, (void *)(intptr_t)n)), 0);
        fd = open(path, O_RDWR);
        size = lseek(fd, 0, SEEK_END);
        for (uint64_t k = luck_below(&luck, 6); k < 6; k++) {
            int64_t at = (int64_t)luck_below(&luck, (uint64_t)(hot < size ? hot : size));
            char byte = (char)luck_next(&luck);
            CHECK_EQUAL(pwrite(fd, &byte, 1, at), 1);
        }
        close(fd);
        if (!CHECK_EQUAL(child_end(fork_child(opens_what_is_left, NULL)), 0))
            break;
    }
    unlink(path);
}

static void test_directories_that_are_open_to_others_are_refused(void)
{
    weir_store *store = NULL;
    weir_message why;
    char path[256];

    path_of(path, sizeof(path), "open");
    assert_int_equal(mkdir(path, 0755), 0);
    chmod(path, 0755);
    CHECK_EQUAL(weir_store_host(&store, WEIR_HOST(.directory = path), &why), WEIR_EINVAL);
    CHECK(strstr(why.text, "closed to others"));
    rmdir(path);
    CHECK_EQUAL(weir_store_host(&store, WEIR_HOST(.directory = "/nowhere/at/all"), &why), -ENOENT);
    CHECK_EQUAL(weir_store_host(&store, WEIR_HOST(.directory = ""), &why), WEIR_EINVAL);
    CHECK_EQUAL(weir_store_host(NULL, NULL, NULL), WEIR_EINVAL);
}

static void test_names_may_have_any_bytes(void)
{
    weir_store *store = host();
    char name[WEIR_KEY_MAX + 2];
    weir_guard *a, *b;

    for (int i = 0; i < WEIR_KEY_MAX + 1; i++)
        name[i] = (char)(i % 255 + 1);
    name[WEIR_KEY_MAX + 1] = '\0';
    CHECK_EQUAL(weir_guard_new(&a, store, name, WEIR_BULKHEAD(), NULL), WEIR_EINVAL);
    name[WEIR_KEY_MAX] = '\0';
    a = open_guard(store, name, WEIR_BULKHEAD());
    b = open_guard(store, "../../etc/passwd", WEIR_BULKHEAD());
    CHECK_EQUAL(files("guard-..%2F..%2Fetc%2Fpasswd"), 1);
    weir_guard_unref(a);
    weir_guard_unref(b);
    weir_store_free(store);
}

/* ---- references --------------------------------------------------------------------------------- */

static void *enter_and_leave(void *guard)
{
    weir_permit p = WEIR_PERMIT;

    CHECK_EQUAL(weir_guard_enter(&p, guard, WEIR_FOREVER), 0);
    CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
    return NULL;
}

/* The last reference of the process goes while one of its threads waits: the file stays mapped, and the permit comes. */
static void test_a_waiter_outlives_the_last_reference_of_its_process(void **state)
{
    weir_store *store = host(), *other = host();
    weir_guard *g = open_guard(store, "kept", WEIR_MUTEX());
    weir_guard *holder = open_guard(other, "kept", WEIR_MUTEX());
    weir_permit p = WEIR_PERMIT;
    pthread_t thread;

    (void)state;
    CHECK_EQUAL(weir_guard_enter(&p, holder, WEIR_NOW_OR_NEVER), 0);
    assert_int_equal(pthread_create(&thread, NULL, enter_and_leave, g), 0);
    while (figures(holder).waiting == 0)
        sched_yield();
    weir_guard_unref(g);
    CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
    pthread_join(thread, NULL);
    weir_guard_unref(holder);
    weir_store_free(store);
    weir_store_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_what_was_spent_outlives_processes_until_it_is_whole),
        TEST(test_settings_are_shared_and_others_are_told),
        TEST(test_a_mutex_has_one_holder_on_the_host_and_says_which),
        TEST(test_processes_are_served_in_the_order_they_came),
        TEST(test_tasks_that_wait_for_the_host_do_not_hold_their_worker),
        TEST(test_a_killed_holder_gives_its_permits_back),
        TEST(test_a_waiter_that_is_stopped_steps_aside),
        TEST(test_a_group_that_waits_is_woken_by_the_death_of_any_holder),
        TEST(test_a_hundred_and_fifty_processes_share_a_guard),
        TEST(test_a_child_of_fork_cannot_use_its_parents_guard),
        TEST(test_five_hundred_deaths_lose_no_permit_and_forget_no_waiter),
        TEST(test_a_step_of_a_stopped_process_is_passed_over_and_done_again),
        TEST(test_a_process_that_is_stopped_keeps_no_other_from_an_answer),
        TEST(test_a_lock_whose_owner_was_killed_is_taken_over_and_its_step_undone),
        TEST(test_files_that_are_not_guards_are_refused_with_a_sentence),
        TEST(test_random_damage_is_refused_or_harmless),
        TEST(test_directories_that_are_open_to_others_are_refused),
        TEST(test_names_may_have_any_bytes),
        TEST(test_a_waiter_outlives_the_last_reference_of_its_process),
    };
    char remove[160];
    int failed;

    seed_init();
    snprintf(directory, sizeof(directory), "/dev/shm/weir-test-%d", getpid());
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    snprintf(remove, sizeof(remove), "rm -rf %s", directory);
    return system(remove) || failed;
}
