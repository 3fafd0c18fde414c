/* Model of a turn that works alone, and of how others come to share its run.
 * SPDX-License-Identifier: MIT */

/* pan: -O0 -DSAFETY ; -m10000 */
/* pan: -O0 -DSAFETY ; -m10000 ; -DNODES=3 -DJOINERS=1 */
/* pan: -O0 -DNP ; -l -m10000 ; -DNODES=2 -DJOINERS=1 */

/* The protocol is "calm runs" and "brisk turns" of src/flow/run.h.
 *
 * One turn ends nodes, each of which takes one from a counter. As long as the run is SOLO it does so by a load and a store,
 * and says that it is publishing meanwhile; else by one atomic step. Others take one from the same counter, atomically, after
 * they have parted the run: joiners always come to that under the lock, outsiders look at `calm` first and pass if it says
 * CALM. What is stored waits in a buffer and comes to memory later, in order, while the turn reads on, from its buffer first;
 * an atomic step waits until the buffer is empty; the heavy fence waits for that from outside.
 *
 * Checked in every interleaving: at the end nobody's count is lost; the turn never stores a counter while another may
 * change it. The last search looks for a cycle and finds none: parting always comes to an end.
 *
 * `spin -D<mutation> -a` puts in a mistake, which one of the searches must find: */
/* mutation: BUG_NO_FENCE      who parts does not pass the heavy fence                                   */
/* mutation: BUG_NO_WAIT       who parts does not wait until the turn has stopped publishing             */
/* mutation: BUG_NO_PARTING    who parts says CALM at once, so that an outsider passes too early         */
/* mutation: BUG_LOOK_FIRST    the turn looks at `calm` before it says that it is publishing             */
/* mutation: BUG_END_FIRST     the turn says that it is not publishing any more before it stores         */

#ifndef NODES
#define NODES 2
#endif
#ifndef JOINERS
#define JOINERS 2
#endif
#define OTHERS (JOINERS + 1) /* and an outsider */

mtype = { CALM, PARTING, SOLO };
mtype calm = SOLO;
bool publishing, locked;
byte counter = NODES + OTHERS;
byte done;

#define PUBLISHING 0
#define COUNTER    1
chan buffer = [4] of { byte, byte };

/* Stores come to memory one after the other. */
active proctype drain()
{
    byte what, value;
end:
    do
    :: atomic {
           buffer ? what, value ->
           if
           :: what == PUBLISHING -> publishing = value
           :: else -> counter = value
           fi
       }
    od
}

active proctype turn()
{
    byte n, value;
    mtype seen;

    for (n : 1 .. NODES) {
#ifdef BUG_LOOK_FIRST
        seen = calm;
        buffer ! PUBLISHING, 1;
#else
        buffer ! PUBLISHING, 1;
        seen = calm;
#endif
        if
        :: seen == SOLO ->
            value = counter; /* none of its own stores to it is in the buffer: see the end of this loop */
#ifdef BUG_END_FIRST
            buffer ! PUBLISHING, 0;
            buffer ! COUNTER, value - 1
#else
            buffer ! COUNTER, value - 1;
            buffer ! PUBLISHING, 0
#endif
        :: else ->
            buffer ! PUBLISHING, 0;
            atomic { empty(buffer) -> counter-- }
        fi;
        /* A read of the counter from the buffer would see what was stored last; to wait instead takes nothing away, since
         * the stores to `publishing` of the next node still wait there. */
        atomic { !(buffer ?? [COUNTER, _]) -> skip }
    }
    done++
}

inline part()
{
    atomic { !locked -> locked = true };
    if
    :: calm == SOLO ->
#ifdef BUG_NO_PARTING
        calm = CALM;
#else
        calm = PARTING;
#endif
#ifndef BUG_NO_FENCE
        empty(buffer);
#endif
#ifndef BUG_NO_WAIT
        !publishing;
#endif
        calm = CALM
    :: else -> skip
    fi;
    locked = false
}

active [JOINERS] proctype joiner()
{
    part();
    counter--;
    done++
}

active proctype outsider()
{
    if
    :: calm == CALM -> skip
    :: else -> part()
    fi;
    counter--;
    done++
}

/* Everything that was counted is counted. */
active proctype check()
{
    done == OTHERS + 1 && empty(buffer);
    assert(counter == 0);
    assert(calm == CALM && !locked && !publishing)
}
