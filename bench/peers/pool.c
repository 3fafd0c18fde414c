/* What one writes in an hour: two threads, one mutex, one condition variable, one malloc per task, and
 * per group a count of running tasks and a list of waiting ones. usage: pool w1|w2|w3
 * SPDX-License-Identifier: MIT */
#include "common.h"

#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 2 };

struct task {
    struct task *next;
    void (*fn)(void *);
    void *arg;
    struct group *group;
};

struct fifo {
    struct task *head, *tail;
};

struct group {
    int running, limit;
    struct fifo waiting;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, quiet = PTHREAD_COND_INITIALIZER;
static struct fifo ready;
static long left;
static int idle;

/* ---- the pool -------------------------------------------------------------------------------- */

static void push(struct fifo *fifo, struct task *task)
{
    task->next = NULL;
    if (fifo->tail)
        fifo->tail->next = task;
    else
        fifo->head = task;
    fifo->tail = task;
}

static struct task *pop(struct fifo *fifo)
{
    struct task *task = fifo->head;

    if (task && !(fifo->head = task->next))
        fifo->tail = NULL;
    return task;
}

static void submit(struct group *group, void (*fn)(void *), void *arg)
{
    struct task *task = malloc(sizeof(*task));

    if (!task)
        abort();
    *task = (struct task){ .fn = fn, .arg = arg, .group = group };
    pthread_mutex_lock(&mutex);
    left++;
    if (group->running < group->limit) {
        group->running++;
        push(&ready, task);
        if (idle)
            pthread_cond_signal(&work);
    } else {
        push(&group->waiting, task);
    }
    pthread_mutex_unlock(&mutex);
}

/* Under the mutex. */
static struct task *next_task(void)
{
    struct task *task;

    while (!(task = pop(&ready))) {
        idle++;
        pthread_cond_wait(&work, &mutex);
        idle--;
    }
    return task;
}

static void *worker(void *unused)
{
    pthread_mutex_lock(&mutex);
    for (;;) {
        struct task *task = next_task(), *successor;
        struct group *group = task->group;
        pthread_mutex_unlock(&mutex);
        task->fn(task->arg);
        free(task);
        pthread_mutex_lock(&mutex);
        successor = pop(&group->waiting);
        if (successor)
            push(&ready, successor);
        else
            group->running--;
        if (--left == 0)
            pthread_cond_broadcast(&quiet);
    }
    return unused;
}

static void drain(void)
{
    pthread_mutex_lock(&mutex);
    while (left)
        pthread_cond_wait(&quiet, &mutex);
    pthread_mutex_unlock(&mutex);
}

/* ---- workloads ------------------------------------------------------------------------------- */

static atomic_int open_, done;
static uint64_t burn_steps;

static void empty(void *unused)
{
    (void)unused;
}

static void hold(void *unused)
{
    (void)unused;
    while (!atomic_load(&open_))
        usleep(1000);
}

static void flood(void *unused)
{
    (void)unused;
    burn(burn_steps);
}

static void neighbour(void *sample_arg)
{
    struct sample *sample = sample_arg;

    sample->started = now_ns();
    atomic_fetch_add(&done, 1);
}

static void w1(void)
{
    static struct group group[GROUPS];
    double ns[ROUNDS];

    for (int i = 0; i < GROUPS; i++)
        group[i].limit = LIMIT;
    for (int round = -WARM_UPS; round < ROUNDS; round++) {
        uint64_t begin = now_ns();
        for (int i = 0; i < TASKS; i++)
            submit(&group[i % GROUPS], empty, NULL);
        drain();
        if (round >= 0)
            ns[round] = (double)(now_ns() - begin) / TASKS;
    }
    print_w1("pool", ns);
}

static void w2(void)
{
    static struct group group = { .limit = 1 };
    double before = status_kb("VmRSS");

    submit(&group, hold, NULL);
    for (int i = 0; i < TASKS; i++)
        submit(&group, empty, NULL);
    print_w2("pool", before);
    atomic_store(&open_, 1);
    drain();
}

static void w3(void)
{
    static struct group a = { .limit = FLOOD_LIMIT }, b = { .limit = FLOOD_LIMIT };
    static struct sample sample[TICKS];
    uint64_t tick;

    burn_steps = burn_calibrate();
    for (int i = 0; i < FLOOD; i++)
        submit(&a, flood, NULL);
    tick = now_ns();
    for (int i = 0; i < TICKS; i++) {
        tick += TICK_NS;
        sleep_until(tick);
        sample[i].tick = tick;
        sample[i].submitted = now_ns();
        submit(&b, neighbour, &sample[i]);
    }
    while (atomic_load(&done) < TICKS)
        usleep(1000);
    print_w3("pool", sample);
}

int main(int argc, char **argv)
{
    const char *workload = argc > 1 ? argv[1] : "";
    pthread_t thread;

    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread, NULL, worker, NULL))
            return 1;
    if (strcmp(workload, "w1") == 0)
        w1();
    else if (strcmp(workload, "w2") == 0)
        w2();
    else if (strcmp(workload, "w3") == 0)
        w3();
    else
        return 2;
    leave();
}
