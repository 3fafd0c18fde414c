/* What a C program has at hand in place of guards, for w5: a sem_t, and a count under a pthread mutex. One permit taken
 * and given back; one thread, and two that contend. Nanoseconds are wall time x threads / calls.
 * SPDX-License-Identifier: MIT */
#include "common.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

enum { PERMITS = 4, CALLS = 2000000, MEASURED = 5 };

static sem_t semaphore;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int used;

static void with_semaphore(void)
{
    sem_wait(&semaphore);
    sem_post(&semaphore);
}

static void with_mutex(void)
{
    pthread_mutex_lock(&mutex);
    used += used < PERMITS;
    pthread_mutex_unlock(&mutex);
    pthread_mutex_lock(&mutex);
    used--;
    pthread_mutex_unlock(&mutex);
}

static void (*call)(void);
static atomic_int ready;
static int threads;

static void *run(void *arg)
{
    atomic_fetch_add(&ready, 1);
    while (atomic_load(&ready) < threads)
        ;
    for (int i = 0; i < CALLS; i++)
        call();
    return arg;
}

static double round_ns(void)
{
    uint64_t begin = now_ns();
    pthread_t other;

    atomic_store(&ready, 0);
    if (threads == 2 && pthread_create(&other, NULL, run, NULL))
        exit(1);
    run(NULL);
    if (threads == 2)
        pthread_join(other, NULL);
    return (double)(now_ns() - begin) / CALLS;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void measure(const char *system, void (*what)(void))
{
    double ns[MEASURED];

    call = what;
    for (threads = 1; threads <= 2; threads++) {
        round_ns();
        for (int i = 0; i < MEASURED; i++)
            ns[i] = round_ns();
        qsort(ns, MEASURED, sizeof(ns[0]), compare);
        printf("RESULT w5 %s bulkhead_ns_%d=%.2f\n", system, threads, ns[MEASURED / 2]);
    }
}

int main(void)
{
    sem_init(&semaphore, 0, PERMITS);
    measure("sem_t", with_semaphore);
    measure("pthread-count", with_mutex);
    return 0;
}
