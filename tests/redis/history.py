#!/usr/bin/env python3
"""Judges what the processes of a fleet did: history.py <lease ms> <slack ms> <limits> <log>...

Knows nothing of weir but the lines that its clients and tests/redis/fleet_chaos_test.c write (see holder.c there):
    <what> <guard> <token> <time> <until> <thread>
    A guard 0 time 0          asks to be let in
    E guard token time until  is inside; its lease lasts until then, unless it is renewed
    W guard token time until  is about to change something
    L guard token time until  goes; until 0: it has lost its lease before
    X guard token time until  was told that its lease is lost
    T guard error time 0      gave up waiting
    K * 0 time 0              this process was killed       S, C: stopped, continued
    D * 0 time 0              the server went away          U: it is back

A hold counts from E to its L; if there is none (killed, stopped), or it comes after the lease, to the end of the lease as its
holder last knew it. Then it must be so:
    1. never more holds of a guard at a time than its limit, and no token twice
    2. no W later than the lease it names; no token of a guard below one that was given before it was asked for
    3. no permit is idle for longer than lease + 1 s while somebody waits, time without the server aside, nor the longest
       time for which this machine kept a process from running (slack)
    4. no waiter gives up, and none that lives waits at the end
SPDX-License-Identifier: MIT
"""
import sys


def read(path):
    with open(path, "rb") as file:
        for line in file.read().decode().split("\n"):
            word = line.split(" ")
            if len(word) == 6:  # a killed process may leave half a line
                yield word[0], word[1], int(word[2]), int(word[3]), int(word[4]), word[5]


def holds_and_waits(path, outages, problems):
    """What one process did: its holds, the times in which it waited and could run, and its faults."""
    holds, waits, open_holds, asked, faults, stopped, gone = [], [], {}, {}, [], [], None
    for what, guard, token, at, until, thread in read(path):
        if what in "DU":
            outages.append((what, at))
        elif what == "A":
            asked[guard, thread] = at
        elif what == "E":
            since = asked.pop((guard, thread), at)
            open_holds[guard, token] = {"guard": guard, "token": token, "asked": since, "from": at, "to": until}
            holds.append(open_holds[guard, token])
            waits.append((guard, since, at))
        elif what == "W":
            if at > until:
                problems.append(f"{path}: changed something at {at} with a lease until {until}")
            open_holds[guard, token]["to"] = max(open_holds[guard, token]["to"], until)
        elif what == "L":
            hold = open_holds.pop((guard, token))
            hold["to"] = min(at, max(hold["to"], until)) if until else min(at, hold["to"])
        elif what == "X" and (guard, token) in open_holds:
            open_holds[guard, token]["to"] = min(open_holds[guard, token]["to"], until)
        elif what == "T":
            problems.append(f"{path}: gave up waiting for {guard}, error {token}")
            waits.append((guard, asked.pop((guard, thread), at), at))
        elif what == "K":
            gone = at
            faults.append(at)
            for hold in open_holds.values():
                hold["to"] = min(hold["to"], at)
        elif what == "S":
            faults.append(at)
            stopped.append((at, None))
        elif what == "C" and stopped:
            stopped[-1] = (stopped[-1][0], at)
    for (guard, _), since in asked.items():
        if gone is None:
            problems.append(f"{path}: a waiter for {guard} since {since} was forgotten")
        else:
            waits.append((guard, since, gone))
    for begin, end in stopped:  # one that is stopped does not wait
        end = end or gone or begin
        waits = [part for guard, a, z in waits for part in ((guard, a, min(z, begin)), (guard, max(a, end), z))
                 if part[1] < part[2]]
    return holds, waits, faults


def most_at_once(holds):
    """How many overlap at most, and when that begins."""
    events = sorted([(h["from"], 1) for h in holds] + [(h["to"], -1) for h in holds if h["to"] >= h["from"]]
                    + [(h["from"], -1) for h in holds if h["to"] < h["from"]])
    now = most = when = 0
    for at, step in events:
        now += step
        if now > most:
            most, when = now, at
    return most, when


def longest_idle(holds, waits, faults, limit, outages, lease):
    """The longest time in which a permit was free although somebody waited."""
    events = [(t, step, 0) for h in holds for t, step in ((h["from"], 1), (max(h["to"], h["from"]), -1))]
    events += [(t, 0, step) for _, since, end in waits for t, step in ((since, 1), (end, -1))]
    events.sort()
    inside = waiting = longest = 0
    begin = None
    for at, enter, wait in events:
        inside, waiting = inside + enter, waiting + wait
        idle = inside < limit and waiting > 0
        if idle and begin is None:
            begin = at
        elif not idle and begin is not None:
            # A permit may go from one process that is killed or stopped to the next: a lease each. After an outage the
            # server may wait for the leases from before.
            excuse = lease * max(sum(begin - lease <= t <= at for t in faults) - 1, 0)
            excuse += sum(lease + 10 ** 9 for _, t in outages if begin - lease <= t <= at)
            longest, begin = max(longest, at - begin - excuse), None
    return longest


def main():
    lease = int(sys.argv[1]) * 1000000
    slack = int(sys.argv[2]) * 1000000
    limits = dict((g, int(n)) for g, n in (pair.split("=") for pair in sys.argv[3].split(",")))
    problems, outages, holds, waits, faults = [], [], [], [], {}
    for path in sys.argv[4:]:
        some, waited, hit = holds_and_waits(path, outages, problems)
        holds += some
        waits += waited
        for guard in {h["guard"] for h in some} | {w[0] for w in waited}:
            faults[guard] = faults.get(guard, []) + hit
    for guard, limit in limits.items():
        mine = sorted((h for h in holds if h["guard"] == guard), key=lambda h: h["token"])
        most, when = most_at_once(mine)
        if most > limit:
            problems.append(f"{guard}: {most} inside at {when}, but the limit is {limit}")
        for one, other in zip(mine, mine[1:]):
            if one["token"] == other["token"]:
                problems.append(f"{guard}: token {one['token']} twice")
        by_entry = sorted(mine, key=lambda h: h["from"])
        by_ask = sorted(mine, key=lambda h: h["asked"])
        highest, at = 0, 0
        for h in by_ask:
            while at < len(by_entry) and by_entry[at]["from"] < h["asked"]:
                highest = max(highest, by_entry[at]["token"])
                at += 1
            if h["token"] < highest:
                problems.append(f"{guard}: token {h['token']} was given after {highest}")
        mine_waits = [w for w in waits if w[0] == guard]
        idle = longest_idle(mine, mine_waits, faults.get(guard, []), limit, outages, lease)
        if idle > lease + 10 ** 9 + slack:
            problems.append(f"{guard}: a permit was idle for {idle / 1e6:.0f} ms while somebody waited")
        if not mine:
            problems.append(f"{guard}: nobody ever entered")
        print(f"{guard}: {len(mine)} holds, at most {most} of {limit} inside, idle at most {idle / 1e6:.0f} ms")
    for problem in problems[:20]:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
