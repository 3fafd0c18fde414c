/* Model of parking: fibers of one worker, woken by each other, by deadlines, and from other threads.
 * SPDX-License-Identifier: MIT */

/* pan: -O2 -DSAFETY ; -m10000 */
/* pan: -O2 -DNP ; -l -m10000 */

/* The protocol is "Unpark from another thread" of docs/internals/parking.md; (1) to (7) are its numbers.
 *
 * A worker has two stacks for three bodies, so the third reuses one, sometimes while it still stands in
 * the inbox. A body waits until both unparkers have reported to it (body 1: and body 0 has ended), or
 * until its deadline, which may also never come. Each unparker has a lock and waiters of its own, as if
 * the body waited for two things at once; so both can be inside unpark of the same fiber.
 *
 * The first search checks the asserts, and that nothing gets stuck before every body has ended. A lost
 * wake-up is such a stuck run: the worker asleep, its bell silent, and a fiber parked although all that
 * it waits for was reported. The second search looks for a cycle and finds none: every run ends.
 *
 * A step is one access to what threads share, in one total order, together with whatever the thread does
 * to its own data. A critical section that touches only what its lock guards is one step too. The order
 * of the worker's chores is left open, so the result holds for any policy of its loop.
 *
 * `spin -D<mutation> -a` puts in a mistake, which one of the searches must find: */
/* mutation: BUG_NO_RECHECK    the worker sleeps without looking at the inbox again                    */
/* mutation: BUG_RING_FIRST    unpark looks whether the worker sleeps, and only then pushes            */
/* mutation: BUG_POSTED_LATE   posted is cleared when the fiber has had its turn                       */
/* mutation: BUG_LINK_LATE     the inbox link is read after posted was cleared                         */
/* mutation: BUG_POSTED_RESET  a new body starts with posted cleared, like the rest of its fiber       */
/* mutation: BUG_POOL_POSTED   stacks go to the shared pool while the inbox may hold some of them      */
/* mutation: BUG_UNLOCKED      a waker unparks after it let go of the lock                             */
/* mutation: BUG_NO_TOKEN      unpark of a running fiber leaves no token                               */
/* mutation: BUG_READY_TWICE   a deadline makes its fiber ready without a look at the state            */
/* mutation: BUG_READY_FREE    a stack that comes out of the inbox without a body is made ready        */

#define STACKS    2
#define BODIES    3
#define UNPARKERS 2
#define NONE      STACKS

/* ---- what threads share ---------------------------------------------------------------------- */

bool posted[STACKS];
byte link[STACKS];           /* in the inbox: who posted may write it, then the worker, until (4) */
byte inbox = NONE;           /* newest first; pushed by compare-and-swap, taken as a whole        */
bool asleep;
bool bell;                   /* once rung, stays so until heard */

typedef thing {              /* what bodies wait for; an unparker reports to each of them in turn */
    bool lock;               /* guards the rest */
    bool reported[BODIES];
    byte waiter[BODIES]      /* the stack plus one; 0: does not wait */
}
thing things[UNPARKERS];

/* Only for asserts, and changed in the same step as what they watch. */
bool queued[STACKS];         /* in the inbox, or taken from it and not yet looked at */
bool pooled[STACKS];         /* in the pool that all workers share                   */

/* ---- other threads --------------------------------------------------------------------------- */

inline push(it)
{
    do
    :: link[it] = inbox;
       atomic {
           if
           :: inbox == link[it] ->
              assert(!queued[it] && !pooled[it]);
              queued[it] = true;
              inbox = it;
              break
           :: else
           fi
       }
    od
}

inline ring_if_asleep()
{
    if
    :: asleep ->
       atomic { was = asleep; asleep = false };
       if
       :: was -> bell = true
       :: else
       fi
    :: else
    fi
}

inline unpark(fiber)
{
    atomic { assert(!pooled[fiber]); was = posted[fiber]; posted[fiber] = true };   /* (1) */
    if
    :: was
    :: else ->
#ifdef BUG_RING_FIRST
       ring_if_asleep();
       push(fiber)
#else
       push(fiber);                                                                 /* (2) */
       ring_if_asleep()                                                             /* (3) */
#endif
    fi
}

proctype unparker(byte me)
{
    byte b, f;
    bool was;

    do
    :: b < BODIES ->
       atomic {
           !things[me].lock -> things[me].lock = true;
           things[me].reported[b] = true;
           f = things[me].waiter[b]
       };
#ifdef BUG_UNLOCKED
       things[me].lock = false;
#endif
       if
       :: f > 0 -> unpark(f - 1)
       :: else
       fi;
       atomic { things[me].lock = false; f = 0; was = false; b++ }
    :: else -> break
    od
}

/* ---- the worker ------------------------------------------------------------------------------ */

mtype = { POOLED, FREE, RUNNING, PARKED, READY };   /* FREE: at home, without a body */

inline make_ready(it)
{
    assert(!(ready ?? [eval(it)]));
    state[it] = READY;
    ready ! it
}

inline unpark_here(fiber)
{
    if
    :: state[fiber] == PARKED -> make_ready(fiber)
#ifndef BUG_NO_TOKEN
    :: state[fiber] == RUNNING -> token[fiber] = true
#endif
#ifdef BUG_READY_FREE
    :: state[fiber] == FREE -> make_ready(fiber)
#endif
    :: else                  /* it has not looked yet, or is not there */
    fi
}

#define may_expire(fiber) (armed[fiber] && state[fiber] != RUNNING)

inline expire(fiber)
{
    armed[fiber] = false;
    expired[fiber] = true;
#ifdef BUG_READY_TWICE
    make_ready(fiber)
#else
    unpark_here(fiber)
#endif
}

inline drain()
{
    atomic { it = inbox; inbox = NONE };
    do
    :: it == NONE -> break
    :: else ->
#ifndef BUG_LINK_LATE
       atomic { after = link[it]; link[it] = NONE };   /* after (4) somebody may write it again */
#endif
       atomic {
           assert(queued[it]);
           queued[it] = false;
#ifndef BUG_POSTED_LATE
           posted[it] = false                                                       /* (4) */
#endif
       };
#ifdef BUG_LINK_LATE
       after = link[it];
#endif
       atomic { unpark_here(it); it = after; after = 0 }                            /* (5) */
    od;
    it = 0
}

inline sleep()
{
    asleep = true;                                                                  /* (6) */
    if
#ifdef BUG_NO_RECHECK
    :: true ->
#else
    :: inbox != NONE                                                                /* (7) */
    :: else ->
#endif
       if                    /* in the poller */
       :: atomic { bell -> bell = false }
       :: may_expire(0) || may_expire(1)
       fi
    fi;
    asleep = false
}

inline give(stack)
{
    atomic {
        if
        :: state[stack] == FREE ->
           assert(!queued[stack] && !posted[stack]);
           pooled[stack] = true;
           state[stack] = POOLED
        :: else
        fi
    }
}

#define is_free(stack) (state[stack] == POOLED || state[stack] == FREE)
#define me             body[f]

proctype worker()
{
    mtype state[STACKS] = POOLED;
    chan ready = [STACKS] of { byte };
    byte body[STACKS], started, ended, f, it, after;
    bool token[STACKS], armed[STACKS], expired[STACKS], zero_ended, done;

loop:
    if
    :: ended == BODIES -> goto finished
    :: ended < BODIES && len(ready) > 0 ->
       atomic { ready ? f; assert(state[f] == READY); state[f] = RUNNING };
       goto look
    :: inbox != NONE -> drain(); goto loop
    :: atomic { may_expire(0) -> expire(0); goto loop }
    :: atomic { may_expire(1) -> expire(1); goto loop }
    :: started < BODIES && is_free(0) -> f = 0; goto start
    :: started < BODIES && is_free(1) && started > 0 -> f = 1; goto start   /* stacks are alike */
    :: else -> sleep(); goto loop
    fi;

start:
    atomic {
        pooled[f] = false;
        state[f] = RUNNING;
        me = started;
        started++;
        if
        :: started < BODIES -> armed[f] = true
        :: true              /* no deadline, or one far away: it hides no lost wake-up */
        fi
    };
#ifdef BUG_POSTED_RESET
    posted[f] = false;
#endif
    atomic { !things[0].lock -> things[0].waiter[me] = f + 1 };
    atomic { !things[1].lock -> things[1].waiter[me] = f + 1 };

look:
    atomic { !things[0].lock -> done = things[0].reported[me] };
    atomic { !things[1].lock -> done = done && things[1].reported[me] };
    atomic {
        done = (done && (me != 1 || zero_ended)) || expired[f];
        if
        :: done -> done = false; goto ending
        :: else
        fi
    };
    if
    :: inbox != NONE -> drain()   /* as a body may that calls into the loop: it is RUNNING */
    :: true
    fi;
#ifdef BUG_POSTED_LATE
    posted[f] = false;
#endif
    if
    :: token[f] -> token[f] = false; goto look
    :: else -> state[f] = PARKED; f = 0; goto loop
    fi;

ending:
    atomic { !things[0].lock -> things[0].waiter[me] = 0 };
    atomic { !things[1].lock -> things[1].waiter[me] = 0 };
    atomic {
        ended++;
        if
        :: me == 0 -> zero_ended = true; unpark_here(1 - f)
        :: else
        fi;
        me = 0; token[f] = false; armed[f] = false; expired[f] = false
    };
    atomic {
        state[f] = FREE;
        f = 0;
        if
        :: ended < BODIES -> goto loop
        :: true              /* there are enough at hand: the free ones go to the pool */
        fi
    };
#ifndef BUG_POOL_POSTED
    drain();
#endif
    give(0);
    give(1);
    goto loop;

finished:
    skip
}

init
{
    atomic { run worker(); run unparker(0); run unparker(1) }
}
