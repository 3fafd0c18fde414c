/* Model of the lock: giving it back by a plain store, and who sleeps for it.
 * SPDX-License-Identifier: MIT */

/* pan: -O0 -DSAFETY ; -m100000 */
/* pan: -O0 -DSAFETY ; -m100000 ; -DTHREADS=2 -DTIMES=3 */

/* The protocol is src/base/lock.h and lock.c.
 *
 * Each thread takes the lock TIMES times. The store that gives it back waits in the thread's buffer and comes to memory later;
 * an atomic step, and a system call that wakes, wait until the buffer is empty. So the look at the word and the store are two
 * moments, and a thread that marks the word in between loses its mark: nobody wakes it. What it sleeps is a nap.
 *
 * Checked in every interleaving: one thread at a time is inside; all come to their end; the word is free then.
 *
 * `spin -D<mutation> -a` puts in a mistake, which one of the searches must find: */
/* mutation: BUG_NO_NAP        a sleeper waits to be woken, however long that takes                      */
/* mutation: BUG_TORN_TAKE     a thread that finds the lock free takes it by a store of its own          */
/* mutation: BUG_LATE_INSIDE   what is done under the lock goes on after it was given back               */

#ifndef THREADS
#define THREADS 3
#endif
#ifndef TIMES
#define TIMES 1
#endif

#define FREE   0
#define HELD   1
#define MARKED 2 /* held, and a thread may be asleep */

byte word = FREE;
bool gives[THREADS];  /* its store is in its buffer */
bool asleep[THREADS];
byte inside;

/* Stores come to memory. */
active proctype drain()
{
end:
    do
    :: atomic { gives[0] -> word = FREE; gives[0] = false }
    :: atomic { gives[1] -> word = FREE; gives[1] = false }
#if THREADS > 2
    :: atomic { gives[2] -> word = FREE; gives[2] = false }
#endif
    od
}

inline try(how)
{
#ifdef BUG_TORN_TAKE
    !gives[me];
    got = (word == FREE);
    if
    :: got -> word = how
    :: else
    fi
#else
    atomic {
        !gives[me];
        got = (word == FREE);
        if
        :: got -> word = how
        :: else
        fi
    }
#endif
}

inline nap()
{
    atomic { asleep[me] = (word == MARKED) } /* the kernel looks, under its own lock */
    if
    :: !asleep[me]
#ifndef BUG_NO_NAP
    :: asleep[me] = false
#endif
    fi
}

inline wake_one()
{
    atomic {
        !gives[me];
        if
        :: asleep[0] -> asleep[0] = false
        :: !asleep[0] && asleep[1] -> asleep[1] = false
#if THREADS > 2
        :: !asleep[0] && !asleep[1] && asleep[2] -> asleep[2] = false
#endif
        :: else
        fi
    }
}

proctype thread(byte me)
{
    byte n, seen;
    bool got;

    for (n : 1 .. TIMES) {
        try(HELD);
        do
        :: got -> break
        :: !got ->
            atomic { !gives[me]; seen = word; word = MARKED }
            if
            :: seen == FREE -> got = true
            :: else ->
                nap();
                try(MARKED)
            fi
        od;
        inside++;
        assert(inside == 1);
#ifndef BUG_LATE_INSIDE
        inside--;
#endif
        seen = word;
        gives[me] = true;
        if
        :: seen == HELD
        :: else -> wake_one()
        fi;
#ifdef BUG_LATE_INSIDE
        inside--;
#endif
    }
    !gives[me];
}

init {
    atomic {
        run thread(0);
        run thread(1);
#if THREADS > 2
        run thread(2);
#endif
    }
    _nr_pr == 2; /* this one and drain */
    assert(word == FREE);
}
