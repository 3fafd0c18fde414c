/* Model of idle workers: who is woken when there is new work, and why nobody sleeps beside it.
 * SPDX-License-Identifier: MIT */

/* pan: -O2 -DSAFETY ; -m100000 */

#ifndef WORKERS
#define WORKERS   2
#endif
#ifndef EVENTS
#define EVENTS 1
#endif
#ifndef PRODUCERS
#define PRODUCERS 2
#endif
#define NONE WORKERS

byte source;                 /* published, not yet taken */
byte taken;
short searching;
short idle_count;
bool idle[WORKERS];
bool asleep[WORKERS];
bool bell[WORKERS];
bool inbox[WORKERS];
bool busy[WORKERS];
#ifdef BUG_FLAG_LATE
bool told[WORKERS];
#define promised told[me]
#endif

inline rouse(who)
{
    atomic {
        if
        :: asleep[who] -> asleep[who] = false
        :: else -> who = NONE; break
        fi
    };
    atomic { bell[who] = true; who = NONE }
}

inline wake()
{
    do
    :: atomic { idle_count == 0 -> break }
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
#if WORKERS > 2
           :: idle[2] -> w = 2
#endif
           :: else -> goto none_left
           fi;
           idle[w] = false; idle_count--
       };
#ifdef BUG_FLAG_LATE
       told[w] = true;
#endif
       rouse(w);
       break;
none_left:
       searching--;
#ifdef BUG_NONE_LEFT
       break
#else
       atomic { 
          if
          :: source == 0 -> break
          :: else
          fi
       }
#endif
    od
}

proctype producer(byte me)
{
    byte w = NONE;

    atomic { source + taken >= me -> source++ };
    wake()
}

proctype outside(byte w)
{
    inbox[w] = true;
    do :: rouse(w); break od
}

inline unpromise()
{
    atomic { assert(searching > 0); searching--; promised = false }
}

proctype worker(byte me)
{
    byte w = NONE;
    bool found, item;
#ifndef BUG_FLAG_LATE
    bool promised;
#endif

#ifdef START
goto end_asleep;
#endif
loop:
    atomic {
    if
    :: inbox[me] -> inbox[me] = false; 
#ifdef BUG_KEEP
goto running;
#endif
    goto settle
    :: source > 0 -> source--; taken++; item = ENDLESS; goto settle
    :: !inbox[me]
    fi};
    atomic {
       if
    :: source > 0 -> source--; taken++; item = ENDLESS;
       :: else -> goto bed
       fi
    };

settle:
    atomic {
    if
    :: promised
    :: else -> goto running
    fi;
#ifdef BUG_LOOK_FIRST
       found = source > 0;
    };
       unpromise();
       atomic {
#else
       unpromise();
       };
       atomic {
       found = source > 0;
#endif
#ifdef BUG_NO_CHAIN
     found = false;
#endif
       if
       :: found -> found = false
       :: else -> goto running
       fi
       };
       wake();

running:
    if
    :: !item -> goto loop
    :: busy[me] = true
    fi;
end_busy:
    false;

bed:
    atomic {
    if
    :: promised -> unpromise()
    :: else
    fi;
    };
#ifndef BUG_ASLEEP_LATE
    asleep[me] = true;
#endif
    atomic { idle[me] = true; idle_count++ };
#ifdef BUG_INBOX_FIRST
    if
    :: inbox[me] -> goto up
    :: else
    fi;
#endif
    atomic {
#ifndef BUG_NO_RECHECK
    found = (source > 0);
#endif
    if
    :: found -> goto up
    :: else
    fi };
#ifdef BUG_ASLEEP_LATE
    asleep[me] = true;
#endif
    if
    :: inbox[me]
    :: else ->
end_asleep:
       atomic { bell[me] -> bell[me] = false }
    fi;

up:
    asleep[me] = false;
#ifdef BUG_STAY
    if
    :: !found && idle[me] -> goto loop
    :: else
    fi;
#endif
    atomic { 
    if
    :: idle[me] -> idle[me] = false; idle_count--
    :: else ->
#ifndef BUG_FLAG_LATE
     promised = true
#endif
    fi;
    if
    :: found && !promised -> found = false
    :: else -> found = false; goto loop
    fi };
#ifndef BUG_NO_RETAKE
       atomic {
           if
           :: searching == 0 -> searching = 1; promised = true
           :: else
           fi; goto loop
       };
#else
    goto loop
#endif
}

init
{
    byte i, n;
#ifdef START
for (i : 0 .. WORKERS - 1) { idle[i] = true; asleep[i]=true; idle_count++ };
#endif
    atomic {
        run producer(0);
        run producer(1);
#if PRODUCERS > 2
        run producer(2);
#endif
#if EVENTS > 0
        run outside(0);
#endif
#if EVENTS > 1
        run outside(1);
#endif
        run worker(0);
        run worker(1);
#if WORKERS > 2
        run worker(2);
#endif
    };
    timeout;
    d_step {
        for (i : 0 .. WORKERS - 1) {
            assert(idle[i] != busy[i]);
            assert(busy[i] || (asleep[i] && !inbox[i] && source == 0));
            n = n + idle[i]
        };
        assert(idle_count == n);
        assert(searching == 0);
        assert(source + taken == PRODUCERS)
    }
}
