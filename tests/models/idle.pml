/* Model of idle workers: who is woken when there is new work, and why nobody sleeps beside it.
 * SPDX-License-Identifier: MIT */

/* pan: -O2 -DSAFETY ; -m10000 */
/* pan: -O2 -DSAFETY ; -m10000 ; -DWORKERS=3 -DEVENTS=1 */
/* pan: -O2 -DSAFETY ; -m10000 ; -DWORKERS=3 -DEVENTS=0 -DBENCH */
/* pan: -O2 -DSAFETY ; -m10000 ; -DEVENTS=0 -DFEEDS=2 */
/* pan: -O2 -DNP ; -l -m10000 ; -DWORKERS=3 -DEVENTS=1 */

/* The protocol is "Idle workers and new work" of docs/internals/parking.md, together with the bell of
 * "Unpark from another thread", by which a worker is woken for other reasons.
 *
 * At first all workers sleep. Producers publish an item each and call wake; events from outside make a
 * fiber of a worker ready; with BENCH the monitor sends a worker to the bench, where it takes no items,
 * and perhaps back. Whatever a worker runs, item or fiber, ends soon or never: so an item that a sleeper
 * could run must not wait for a worker that is busy. With FEEDS what a worker ran may leave items behind,
 * and instead of waking another the worker searches itself (wr_runtime_search), as the last thing before it
 * looks; or, if it has something else to run after all, passes that on (wr_search_pass_on).
 *
 * Checked when nothing moves any more, in every interleaving: each item was taken, once, or nobody is
 * left to take it; who is neither busy nor benched sleeps, has nothing in its inbox and stands in the idle
 * set; nobody is searching. The last search looks for a cycle and finds none: every
 * run comes to rest.
 *
 * It all hangs on one rule. Whoever takes `searching` down looks at the source afterwards, and if there
 * is work, sees to it that somebody searches: those whom wake sent away meanwhile rely on that look.
 *
 * A step is one access to what threads share, in one total order, together with whatever the thread does
 * to its own data. A critical section is one step if only one of its effects shows without the lock; so
 * are those of the source.
 *
 * `spin -D<mutation> -a` puts in a mistake, which one of the searches must find: */
/* mutation: BUG_NO_RECHECK    a worker sleeps without looking at the source once more                 */
/* mutation: BUG_INBOX_FIRST   it looks at the inbox first, and if that has something, at nothing else */
/* mutation: BUG_NO_RETAKE     that look finds work, and it goes on without searching again            */
/* mutation: BUG_NO_CHAIN      a searching worker takes an item and wakes nobody for the rest          */
/* mutation: BUG_LOOK_FIRST    it looks whether there is a rest before it stops searching              */
/* mutation: BUG_FIBER_FIRST   it runs a ready fiber and goes on being counted as searching            */
/* mutation: BUG_BENCH_DROPS@3 it finds itself benched, stops searching, and does not look             */
/* mutation: BUG_NONE_LEFT     wake finds the idle set empty, stops searching, and does not look       */
/* mutation: BUG_NOT_TOLD      a worker that was taken out of the idle set does not search             */
/* mutation: BUG_STAYS_IDLE    a worker woken for another reason does not leave the idle set           */
/* mutation: BUG_ASLEEP_LATE   a worker enters the idle set before it can be rung                      */
/* mutation: BUG_FEED_SILENT   it leaves an item behind, wakes nobody, and runs something else            */
/* mutation: BUG_FEED_KEEPS    it searches itself, and runs something else without passing that on        */

#ifndef WORKERS
#define WORKERS   2
#endif
#ifndef EVENTS
#define EVENTS    2          /* one for each worker, at most */
#endif
#define PRODUCERS 2

/* ---- what threads share ---------------------------------------------------------------------- */

byte  source, taken;         /* items published and not yet taken; items taken               */
byte  fed;                   /* items that workers left behind                               */
short searching;             /* 0 or 1                                                       */
bool  idle[WORKERS];         /* the set                                                      */
bool  promised[WORKERS];     /* worker.searching: its own, shared only for asserts           */
bool  benched[WORKERS];
bool  asleep[WORKERS];
bool  bell[WORKERS];         /* once rung, stays so until heard                              */
bool  inbox[WORKERS];        /* has a fiber to wake                                          */
bool  busy[WORKERS];         /* for good; only for asserts                                   */

inline ring_if_asleep(who)
{
    atomic { was = asleep[who]; asleep[who] = false };
    if
    :: was -> atomic { bell[who] = true; was = false }
    :: else
    fi
}

#define nobody_idle (!idle[0] && !idle[1] && !idle[WORKERS - 1])

inline wake()
{
    do
    :: nobody_idle -> break
    :: else ->
       atomic {
           if
           :: searching == 0 -> searching = 1
           :: else -> break
           fi
       };
       atomic {
           if
           :: idle[0] -> w = 0
           :: idle[1] -> w = 1
           :: idle[WORKERS - 1] -> w = WORKERS - 1
           :: else -> goto none_left
           fi;
           idle[w] = false
       };
       ring_if_asleep(w);
       break;
none_left:
       searching--;
       if
       :: source == 0 -> break
#ifdef BUG_NONE_LEFT
       :: else -> break
#else
       :: else               /* once more: there may be idle ones by now */
#endif
       fi
    od;
    w = 0
}

/* ---- other threads --------------------------------------------------------------------------- */

proctype producer(byte me)
{
    byte w;
    bool was;

    atomic { source + taken >= me -> source++ };   /* in turn: they are all alike */
    wake()
}

proctype event(byte w)
{
    bool was;

    inbox[w] = true;
    ring_if_asleep(w)
}

proctype monitor(byte w)
{
    bool was;

    benched[w] = true;
    ring_if_asleep(w);
    if
    :: benched[w] = false; ring_if_asleep(w)
    :: true
    fi
}

/* ---- the worker ------------------------------------------------------------------------------ */

inline stop_searching()
{
    assert(searching == 1);
    searching--;
    promised[me] = false
}

#define may_take (source > 0 && !benched[me])

proctype worker(byte me)
{
    byte w;
    bool was, found;
    bool entered = true;     /* the idle set */

    goto end_sleeping;

loop:
    atomic {
        if                   /* first at the inbox and then at the source, or the other way round */
        :: inbox[me] -> inbox[me] = false;
#ifdef BUG_FIBER_FIRST
           goto running
#else
           goto settle
#endif
        :: may_take -> source--; taken++; goto settle
        :: !inbox[me]
        fi
    };
    atomic {
        if
        :: may_take -> source--; taken++
        :: else -> goto to_sleep
        fi
    };

settle:                      /* nothing is run by a worker that is searching */
    atomic {
        if
        :: promised[me]
        :: else -> goto running
        fi;
#ifdef BUG_LOOK_FIRST
        found = source > 0
    };
    atomic {
#endif
        stop_searching()
    };
    atomic {
#ifndef BUG_LOOK_FIRST
        found = source > 0;
#endif
        if
#ifndef BUG_NO_CHAIN
        :: found -> found = false
#endif
        :: else -> found = false; goto running
        fi
    };
    wake();

running:
    if
    :: goto loop
#ifdef FEEDS
    :: atomic { fed < FEEDS -> fed++; source++ };
       goto feeding
#endif
    :: busy[me] = true
    fi;
    goto end_busy;

#ifdef FEEDS
feeding:
#ifndef BUG_FEED_SILENT
    if
    :: benched[me] -> wake(); goto running
    :: else
    fi;
    if
    :: nobody_idle           /* whoever comes to be idle looks at the source itself */
    :: else ->
       atomic {
           if
           :: searching == 0 -> searching = 1; promised[me] = true
           :: else           /* somebody will look after this moment */
           fi
       }
    fi;
#endif
    if
    :: goto loop
    :: true
    fi;
#ifdef BUG_FEED_KEEPS
    goto running;
#else
    goto settle;             /* as before anything else that it runs */
#endif
#endif

end_busy:
    false;

to_sleep:
#ifndef BUG_ASLEEP_LATE
    asleep[me] = true;       /* first: who is in the idle set can be chosen, and has to be rung */
#endif
    if
    :: benched[me] -> goto on_the_bench
    :: else                  /* if that comes later it is rung, since it is asleep */
    fi;
    atomic {
        if
        :: promised[me] -> stop_searching()
        :: else
        fi
    };
    atomic { assert(!idle[me]); idle[me] = true; entered = true };
#ifdef BUG_INBOX_FIRST
    if
    :: inbox[me] -> goto awake
    :: else
    fi;
#endif
    atomic {
#ifndef BUG_NO_RECHECK
        found = source > 0;
#endif
        if
        :: found -> goto awake
        :: else
        fi
    };
#ifdef BUG_ASLEEP_LATE
    asleep[me] = true;
#endif
    goto last_look;

on_the_bench:
    atomic {
        if
        :: promised[me] -> stop_searching()
        :: else -> goto last_look
        fi
    };
#ifndef BUG_BENCH_DROPS
    if
    :: source > 0 -> wake()
    :: else
    fi;
#endif

last_look:
    if
    :: inbox[me] -> goto awake
    :: else
    fi;

end_sleeping:
    atomic { bell[me] -> bell[me] = false };

awake:
    asleep[me] = false;
    atomic {
        if
#ifndef BUG_STAYS_IDLE
        :: idle[me] -> idle[me] = false
#endif
#ifndef BUG_NOT_TOLD
        :: entered && !idle[me] -> promised[me] = true     /* somebody has taken us out */
#endif
        :: else
        fi;
        entered = false;
#ifdef BUG_NO_RETAKE
        found = false;
#endif
        if
        :: found && !promised[me] -> found = false
        :: else -> found = false; goto loop
        fi
    };
    atomic {                 /* there may be more than this one item, and others who sleep */
        if
        :: searching == 0 -> searching = 1; promised[me] = true
        :: else              /* somebody will look after this moment */
        fi;
        goto loop
    }
}

/* ---- rest ------------------------------------------------------------------------------------ */

init
{
    byte i;

    atomic {
        for (i : 0 .. WORKERS - 1) {
            asleep[i] = true;
            idle[i] = true;
            run worker(i)
        }
        for (i : 0 .. PRODUCERS - 1) {
            run producer(i)
        }
        for (i : 0 .. EVENTS - 1) {
            run event(i)
        }
#ifdef BENCH
        run monitor(1)
#endif
    }
    timeout;
    for (i : 0 .. WORKERS - 1) {
        assert(source == 0 || busy[i] || benched[i]);
        assert(idle[i] == !(busy[i] || benched[i]));
        assert(busy[i] || (asleep[i] && !inbox[i]))
    }
    assert(searching == 0);
    assert(source + taken == PRODUCERS + fed)
}
