/* The door to the kernel, Linux side: a word with the time, which a thread stores about every millisecond.
 *
 * Two readings of the cheapest exact clock cost more than all else that a short call does. Frequent callers read
 * this word instead, and say from time to time that they want it. The thread rests if none does for some pulses, so that
 * it costs no CPU in a process that is idle, or whose calls are rare. A caller that wants it compares it with
 * the exact clock, so that a pulse that gets no CPU is found out and not relied on.
 *
 *     word == 0       <=>  no pulse: it was never wanted, rests, was found late, or this is a child of fork
 *     mode == PULSES    =>  the thread pulses, or is about to
 * SPDX-License-Identifier: MIT */
#include "base/os.h"

#include <pthread.h>

enum { NO_THREAD, RESTS, PULSES, ENDS, NOT_POSSIBLE };
enum { UNWANTED_PULSES = 4 };

_Atomic weir_time wr_os_pulse_word;

static _Atomic uint32_t mode;  /* the thread sleeps on it while it rests                          */
static _Atomic uint32_t wants; /* grows                                                           */
static _Atomic weir_time late_from,
    late_to; /* the last time it was late; late_from is 0 while these change */

/* Under this lock: how many callers may want it, and starting and ending the thread. */
static pthread_mutex_t members_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned members;
static struct wr_os_thread thread;

/* ---- the thread ---------------------------------------------------------------------------------- */

static void note_late(weir_time from, weir_time to)
{
    wr_store(&late_from, 0, relaxed);
    wr_store(&late_to, to, release);
    wr_store(&late_from, from, release); /* pairs with wr_os_pulse_end */
}

/* Pulses until no caller has wanted it for some pulses, or a caller has ended it. */
static void pulse_while_wanted(void)
{
    weir_time last = wr_os_now();
    uint32_t seen = wr_load(&wants, relaxed), now_seen;

    wr_store(&wr_os_pulse_word, last, relaxed);
    for (int unwanted = 0; unwanted < UNWANTED_PULSES && wr_load(&mode, relaxed) == PULSES;) {
        weir_time now, before = last;

        wr_os_futex_wait(&mode, PULSES, last + WR_OS_PULSE_NS);
        now = wr_os_now();
        if (now - last > WR_OS_PULSE_LATE_NS)
            note_late(last, now);
        if (!wr_cas(&wr_os_pulse_word, &before, now, acq_rel))
            return;
        last = now;
        now_seen = wr_load(&wants, relaxed);
        unwanted = now_seen == seen ? unwanted + 1 : 0;
        seen = now_seen;
    }
    wr_store(&wr_os_pulse_word, 0, relaxed);
}

static void pulse(void *unused)
{
    uint32_t pulses;

    (void)unused;
    while (wr_load(&mode, acquire) != ENDS) {
        pulse_while_wanted();
        pulses = PULSES;
        if (wr_cas(&mode, &pulses, RESTS, acq_rel))
            while (wr_load(&mode, acquire) == RESTS)
                wr_os_futex_wait(&mode, RESTS, WEIR_FOREVER);
    }
}

/* ---- callers ------------------------------------------------------------------------------------- */

/* Only the caller's thread is in the child. */
static void forked(void)
{
    static const pthread_mutex_t free_lock = PTHREAD_MUTEX_INITIALIZER;

    wr_store(&wr_os_pulse_word, 0, relaxed);
    wr_store(&mode, NO_THREAD, relaxed);
    members_lock = free_lock;
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forked);
}

/* Starts the thread, for the first caller that wants it. */
static void start(void)
{
    pthread_mutex_lock(&members_lock);
    if (wr_load(&mode, relaxed) == NO_THREAD && members > 0) {
        wr_store(&mode, PULSES, relaxed);
        if (wr_os_thread_start(&thread, pulse, NULL, "weir-pulse"))
            wr_store(&mode, NOT_POSSIBLE, relaxed);
    }
    pthread_mutex_unlock(&members_lock);
}

static void end_late(weir_time last, weir_time now)
{
    note_late(last, now);
    wr_cas(&wr_os_pulse_word, &last, 0, acq_rel);
}

void wr_os_pulse_want(weir_time now)
{
    weir_time last = wr_os_pulse();
    uint32_t rests = RESTS;

    wr_add(&wants, 1, relaxed);
    if (last && now - last > WR_OS_PULSE_LATE_NS)
        end_late(last, now);
    else if (!last && wr_load(&mode, relaxed) == NO_THREAD)
        start();
    else if (!last && wr_cas(&mode, &rests, PULSES, acq_rel))
        wr_os_futex_wake(&mode, 1);
}

weir_time wr_os_pulse_end(weir_time pulse)
{
    weir_time from = wr_load(&late_from, acquire), to = wr_load(&late_to, acquire);

    return from == pulse && wr_load(&late_from, relaxed) == from && to > pulse ? to : pulse;
}

void wr_os_pulse_join(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&members_lock);
    members++;
    pthread_mutex_unlock(&members_lock);
}

void wr_os_pulse_part(void)
{
    uint32_t last_mode;

    pthread_mutex_lock(&members_lock);
    if (--members == 0) {
        last_mode = wr_swap(&mode, ENDS, acq_rel);
        wr_os_futex_wake(&mode, 1);
        if (last_mode == PULSES || last_mode == RESTS)
            wr_os_thread_join(&thread);
        wr_store(&mode, NO_THREAD, relaxed);
    }
    pthread_mutex_unlock(&members_lock);
}
