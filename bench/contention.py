#!/usr/bin/env python3
"""How many cores until a shared word binds: a simulation of workers and submitters that meet in weir's locks.

Each worker goes round: takes a group from the ring (the lock of a part, and the line in which parts show their first), begins the
turn (the group's lock), runs the turn's tasks one after the other (alone), ends the turn (the group's lock), puts the group back (a
ticket, the lock of a part). Each submitter goes round: makes a task (alone), puts it into a group (that group's lock). A lock, or
a word that all write, is served first come, first served. Who gets it from another core pays for the cache line that comes
along; who had it last pays nothing for it.

What it prints, for each number of cores (half of them workers, if there are submitters): tasks per second over all and
per worker, beside what as many cores would do that share nothing; and how busy the busiest lock of each kind is. 1.0 is the end:
beyond that more cores add nothing.
SPDX-License-Identifier: MIT
"""
import argparse
import heapq
import random


class Lock:
    """One holder at a time, in the order of asking."""

    def __init__(self):
        self.free_at = 0.0
        self.last = None
        self.busy = 0.0

    def hold(self, who, now, span, line):
        """When `who`, who asks at `now`, has got it and let go of it again."""
        begin = max(now, self.free_at)
        span += line if self.last not in (None, who) else 0.0
        self.free_at = begin + span
        self.busy += span
        self.last = who
        return self.free_at


def steps_of_worker(args, parts, words, groups, rand):
    """What a worker does in one round: (lock or None, ns), and how many tasks are done after it."""
    group = groups[rand.randrange(len(groups))]
    part = parts[rand.randrange(len(parts))]
    shown, tickets = words if args.parts > 1 else (None, None)
    return [(part, args.ring_ns, 0), (shown, args.word_ns, 0), (group, args.group_ns, 0),
            (None, args.turn * args.task_ns, args.turn), (group, args.group_ns, 0),
            (tickets, args.word_ns, 0), (part, args.ring_ns, 0)]


def steps_of_submitter(args, groups, rand):
    return [(None, args.make_ns, 0), (groups[rand.randrange(len(groups))], args.group_ns, 0)]


def simulate(args, cores):
    """Tasks done, and how busy the busiest of the ring's locks and words, and of the groups are, as parts of the time."""
    rand = random.Random(args.seed)
    parts = [Lock() for _ in range(args.parts)]
    words = [Lock(), Lock()]
    groups = [Lock() for _ in range(args.groups)]
    workers = max(1, cores // 2) if args.submitters else cores
    todo = [[] for _ in range(cores)]
    events = [(rand.random() * args.task_ns, who) for who in range(cores)]
    end = args.us * 1000.0
    done = 0
    heapq.heapify(events)
    while events:
        now, who = heapq.heappop(events)
        if now >= end:
            continue
        if not todo[who]:
            todo[who] = (steps_of_worker(args, parts, words, groups, rand) if who < workers else
                         steps_of_submitter(args, groups, rand))
        lock, span, tasks = todo[who].pop(0)
        then = lock.hold(who, now, span, args.line_ns) if lock else now + span
        done += tasks if then <= end else 0
        heapq.heappush(events, (then, who))
    return done, workers, max(l.busy for l in parts + words) / end, max(l.busy for l in groups) / end


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    add = parser.add_argument
    add('--cores', default='1,2,4,8,16,32,64,128', help='numbers of cores, with commas')
    add('--groups', type=int, default=64)
    add('--parts', type=int, default=4, help='of the ring; 1: one lock, and no words besides')
    add('--turn', type=int, default=128, help='tasks of a turn')
    add('--task-ns', type=float, default=25, help='a task, with the step of the hand')
    add('--make-ns', type=float, default=20, help='what a submitter does without a lock')
    add('--ring-ns', type=float, default=15, help='one hold of the ring')
    add('--word-ns', type=float, default=5, help='one step of a word that all write')
    add('--group-ns', type=float, default=15, help='one hold of a group')
    add('--line-ns', type=float, default=60, help='a cache line that comes from another core')
    add('--submitters', action='store_true', help='half of the cores submit')
    add('--us', type=float, default=2000, help='simulated time')
    add('--seed', type=int, default=1)
    args = parser.parse_args()
    print('%6s %14s %16s %9s %6s %6s' % ('cores', 'tasks/us', 'per worker, of 1', '', 'ring', 'group'))
    alone = None
    for cores in [int(text) for text in args.cores.split(',')]:
        done, workers, ring, group = simulate(args, cores)
        rate = done / args.us
        alone = alone or rate / workers
        print('%6d %14.1f %16.2f %9s %6.2f %6.2f' %
              (cores, rate, rate / workers / alone, '', min(ring, 1), min(group, 1)))


if __name__ == '__main__':
    main()
