#!/usr/bin/env python3
"""Judges what the processes of a fleet did: history.py <lease ms> <limits> <server's log, or -> <log>...

Knows nothing of weir but its keys (docs/redis.md) and the lines that its clients and tests/redis/fleet_chaos_test.c write:
    <what> <guard> <token> <time> <until> <thread>
    P * pid time 0            which process writes this log
    A guard 0 time 0          asks to be let in
    E guard token time until  is inside; its lease lasts until then, unless it is renewed
    W guard token time until  is about to change something
    L guard token time until  goes; until 0: it has lost its lease before
    X guard token time until  was told that its lease is lost
    T guard error time 0      gave up waiting
    Z guard 0 time until      was not run by its machine meanwhile, though nobody had stopped it
    K * 0 time 0              this process was killed       S, C: stopped, continued
    D * 0 time 0              the server went away          U: it is back
    O * 0 time wall           both clocks at one moment: wall is what the server's clock says

The server's log (tests/redis/witness.h) is what MONITOR shows of it, with the server's clock, so it does not matter when a process of
the test got to run. A hold counts from E to its L; if there is none (killed, stopped), or it comes after the lease, to the end of the
lease as its holder last knew it. A permit's owner ends when it leaves, is told that it has lost it, is killed, or stopped. So it must be:
    1. never more holds of a guard at a time than its limit, and no token twice. A permit that a fail-over lost, because the replica
       did not have it yet, counts up to the fail-over; one of which it lost a renewal, to the end of the lease as the replica has it.
       Later holds have higher tokens, by which a resource refuses it. What a server gave in the moment of its death, so that only the
       holder heard of it, went with it; no other token may be one that the server's log does not have. If a process that never knew
       a guard makes it anew after the server lost all, permits may be given beside those from before until one that knew it renews
    2. no W later than the lease it names; no token of a guard below one that was given before it was asked for
    3. never more permits in the server than the limit; no free one beside a waiter that lives; none whose owner has ended more
       than lease + 1 s ago while one waits, time without the server aside
    4. no waiter gives up, none that lives waits at the end, and none stands outside of the line for more than lease + 1 s while there
       is a free permit
    Time in which this machine did not run the server, or the process that waits, does not count: nothing was done in it.
SPDX-License-Identifier: MIT
"""
import bisect
import re
import sys

SECOND = 10 ** 9
PULSE = 10 ** 7  # how often a process, and the server's witness, look whether this machine runs them
MOMENT = 10 ** 6  # as exactly as the clocks of the processes and the server can be compared
FAR = 1 << 62
WORD = re.compile(r'"((?:[^"\\]|\\.)*)"')
KEY = re.compile(r"weir:\{(.*)\}:(held|line|info|cfg)$")


def shared(begin, end, *lists):
    """How much of a time is in spans of these lists, each of which is in order."""
    spans, sum, at = [], 0, begin
    for one in lists:
        i = max(bisect.bisect_left(one, (begin, 0)) - 1, 0)
        while i < len(one) and one[i][0] < end:
            spans.append(one[i])
            i += 1
    for low, high in sorted(spans):
        low, high = max(low, at), min(high, end)
        if low < high:
            sum += high - low
            at = high
    return sum


def read(path):
    with open(path, "rb") as file:
        for line in file.read().decode().split("\n"):
            word = line.split(" ")
            if len(word) == 6:  # a killed process may leave half a line
                yield word[0], word[1], int(word[2]), int(word[3]), int(word[4]), word[5]


class Process:
    """What one process did: its holds, the times in which it waited, and when it could run."""

    def __init__(self, path, problems, outages, clocks):
        self.path, self.pid, self.gone, self.stops = path, None, FAR, []
        self.holds, self.waits, self.ends, self.pauses = [], [], {}, []
        inside, asked = {}, {}
        for what, guard, token, at, until, thread in read(path):
            if what in "DU":
                outages.append((what, at))
            elif what == "O":
                clocks.append(until - at)
            elif what == "P":
                self.pid = token
            elif what == "A":
                asked[guard, thread] = at
            elif what == "E":
                since = asked.pop((guard, thread), at)
                hold = {"guard": guard, "token": token, "asked": since, "from": at, "to": until, "lease": until}
                inside[guard, token] = hold
                self.ends[guard, token] = FAR
                self.holds.append(hold)
                self.waits.append((guard, since, at))
            elif what == "W":
                if at > until:
                    problems.append(f"{path}: changed something at {at} with a lease until {until}")
                inside[guard, token]["to"] = max(inside[guard, token]["to"], until)
            elif what == "L":
                hold = inside.pop((guard, token))
                hold["to"] = min(at, max(hold["to"], until)) if until else min(at, hold["to"])
                self.ends[guard, token] = min(self.ends[guard, token], at)
            elif what == "X" and (guard, token) in inside:
                inside[guard, token]["to"] = min(inside[guard, token]["to"], until)
                self.ends[guard, token] = min(self.ends[guard, token], at)
            elif what == "T":
                problems.append(f"{path}: gave up waiting for {guard}, error {token}")
                self.waits.append((guard, asked.pop((guard, thread), at), at))
            elif what == "K":
                self.gone = at
                for hold in inside.values():
                    hold["to"] = min(hold["to"], at)
            elif what == "Z":
                self.pauses.append((at, until))
            elif what == "S":
                self.stops.append((at, FAR))
            elif what == "C" and self.stops:
                self.stops[-1] = (self.stops[-1][0], at)
        for (guard, _), since in asked.items():
            if self.gone == FAR:
                problems.append(f"{path}: a waiter for {guard} since {since} was forgotten")
            else:
                self.waits.append((guard, since, self.gone))

    def running(self, begin, end):
        """The parts of a time in which it could run."""
        at, end = begin, min(end, self.gone)
        for stop, go in self.stops:
            if stop < end and go > at:
                if stop > at:
                    yield at, stop
                at = go
        if at < end:
            yield at, end

    def end_of(self, guard, token, granted, now):
        """When the owner of a permit had ended, as it stood at that time; FAR: it had not."""
        end = min(self.gone, self.ends.get((guard, token), granted))  # one that it never knew of: from the grant on
        for stop, go in self.stops:
            if stop <= now < go:
                end = min(end, stop)
        end = max(end, granted)  # handed to one that was gone already
        return end if end <= now else FAR


def most_at_once(holds):
    """How many overlap at most, and when that begins."""
    events = sorted([(h["from"], 1) for h in holds] + [(max(h["to"], h["from"]), -1) for h in holds])
    now = most = when = 0
    for at, step in events:
        now += step
        if now > most:
            most, when = now, at
    return most, when


class Guard:
    """What the server has of one: permits with the ends of their leases, and the line."""

    def __init__(self, limit):
        self.limit, self.grace, self.idle, self.worst, self.expired = limit, -FAR, [], 0, {}
        self.token, self.granted, self.given, self.restored, self.users, self.before = {}, {}, set(), {}, set(), set()
        self.emptied = None  # when the server lost it, as long as nobody who knew it has renewed a permit or a place in line
        self.gaps = []  # (from, tokens): when it was lost, and what was given then by order of those that did not know it
        self.forget()

    def forget(self):
        self.held, self.line, self.dies = {}, {}, {"held": FAR, "line": FAR}

    def end_keys(self, now):
        """Keys whose time is over are gone, with all that is in them."""
        if self.dies["held"] <= now:
            for id, end in self.held.items():
                self.expired[self.token.get(id)] = end
            self.held.clear()
        if self.dies["line"] <= now:
            self.line.clear()


class Server:
    """Follows the server's log. All times are those of the processes' clock, in ns."""

    def __init__(self, lease, limits, processes, outages, offset, problems):
        self.lease, self.processes, self.problems, self.offset = lease, processes, problems, offset
        self.guards = {name: Guard(limit) for name, limit in limits.items()}
        self.by_pid = {p.pid: p for p in processes if p.pid}
        self.fresh, self.owner, self.since, self.lost, self.fail_overs, self.scripts = -FAR, {}, 0, [], [], 0
        self.deaths, self.last, self.running, self.called = [], -FAR, None, False
        self.outages, self.stalls, down = [], [], None
        for what, at in sorted(outages, key=lambda o: o[1]):
            if what == "D":
                down = at
            elif down is not None:
                self.outages.append((down, at))
                down = None

    def find_stalls(self, path):
        """When the server did not see its witness' pings, which come every 10 ms, it was not run, or the witness was not."""
        last = None
        with open(path, errors="replace") as file:
            for line in file:
                if line[0] == "#":
                    last = None
                elif line.rstrip().endswith('"PING"'):
                    at = self.time_of(line)
                    if last is not None and at - last > PULSE * 3:
                        self.stalls.append((last + PULSE, at))
                    last = at

    def time_of(self, line):
        seconds, part = line.split(" ", 1)[0].split(".")
        return self.of_wall(int(seconds) * 1000000 + int(part))

    def without_server(self, begin, end):
        return shared(begin, end, self.outages, self.stalls)

    def not_run(self, process, begin, end):
        """How much of a time this machine did not run the server or that process."""
        return shared(begin, end, self.stalls, process.pauses)

    def waits(self, guard, since, until, begin=-FAR, span=0):
        """Whether one that can run stands in line at some time from `since` on, so long after `begin`: time in which it could be run."""
        for id in guard.line:
            owner = self.owner.get(id.split(":")[0])
            lost = shared(begin, until, self.outages, self.stalls, owner.pauses if owner else [])
            at = max(since, begin + span + lost)
            if at < until and (owner is None or any(True for _ in owner.running(at, until))):
                return True
        return False

    def quiet(self, until):
        """Nothing has changed since the last script, and now another one begins, or the log ends."""
        since, self.since = self.since, until
        for name, guard in self.guards.items():
            guard.end_keys(since)
            if len(guard.held) > guard.limit:
                self.problems.append(f"{name}: the server had {len(guard.held)} permits out at {since}")
            free = since if len(guard.held) < guard.limit else min(guard.held.values())
            free = max(free, since, guard.grace)
            shut = max(guard.grace, self.fresh)  # one of the line must come then
            if len(guard.held) < guard.limit and self.waits(guard, since, until, shut, SECOND):
                self.problems.append(f"{name}: a free permit beside a waiter from {since} to {until}")
            if free < until and not guard.line:
                for down, up in self.outages:
                    if free < down < until:
                        guard.idle.append((free, down))
                        free = up
                if free < until:
                    guard.idle.append((free, until))
            for id in guard.held if guard.line else ():
                owner = self.owner.get(id.split(":")[0])
                end = owner.end_of(name, guard.token.get(id, 0), guard.granted[id], until) if owner else FAR
                if end == FAR:
                    continue
                if self.waits(guard, max(end, since), until):
                    guard.worst = max(guard.worst, until - end - self.without_server(end, until))
                if self.waits(guard, since, until, end, self.lease + SECOND):
                    self.problems.append(f"{name}: permit {id} was out at {until}, its owner's end was {(until - end) // 10 ** 6} ms before")
            guard.end_keys(until)  # before the script that begins now

    def change(self, at, word):
        match = KEY.match(word[1]) if len(word) > 2 else None
        if not match or match.group(1) not in self.guards:
            return
        guard, kind, verb = self.guards[match.group(1)], match.group(2), word[0].upper()
        if verb == "ZADD" and kind in ("held", "line"):
            table, id, new = getattr(guard, kind), word[-1], word[-1] not in getattr(guard, kind)
            if new and "XX" in word[2:-2]:
                return
            table[id] = self.of_wall(float(word[-2])) if kind == "held" else 0
            if new and kind == "held":
                guard.granted.setdefault(id, at)
            guard.dies[kind] = FAR
        elif verb == "ZREM" and kind in ("held", "line"):
            for id in word[2:]:
                end = getattr(guard, kind).pop(id, FAR)
                if kind == "held" and end <= at:
                    guard.expired[guard.token.get(id)] = end
        elif verb == "PEXPIRE" and kind in ("held", "line"):
            guard.dies[kind] = at + int(word[2]) * 10 ** 6
            if self.running == (guard, "renew"):  # it was done, by one that knew the guard
                guard.emptied = None
        elif verb == "HSET" and kind == "info" and word[3].startswith("h "):
            self.give(guard, at, word[2], int(word[3].split(" ")[1]))
        elif verb == "HSET" and kind == "cfg":
            for field, value in zip(word[2::2], word[3::2]):
                if field == "grace":
                    guard.grace = self.of_wall(float(value))
                    guard.emptied = None
        elif verb in ("DEL", "UNLINK"):
            self.problems.append(f"{word[1]} was deleted")

    def give(self, guard, at, id, token):
        if not token:  # it is its old one, which the server forgot
            guard.restored[guard.token.get(id)] = at
            return
        guard.token[id] = token
        guard.given.add(token)
        if guard.emptied is not None:
            if not guard.gaps or guard.gaps[-1][0] != guard.emptied:
                guard.gaps.append((guard.emptied, set()))
            guard.gaps[-1][1].add(token)

    def of_wall(self, us):
        return int(us) * 1000 - self.offset

    def begin(self, at, why):
        """Another server, or the same without its memory: what it knows follows."""
        self.before = {name: set(g.held) for name, g in self.guards.items()} if why == "fail-over" else {}
        self.fail_overs += [at] if why == "fail-over" else []
        self.since = at
        self.fresh = at if why == "fail-over" else -FAR  # its line is an old one until the guard is used
        for guard in self.guards.values():
            guard.forget()
            if why == "emptied":
                guard.emptied, guard.before = at, set(guard.users)

    def end(self, at):
        """The server is gone. It may have answered what its log did not come to show: nothing before the last line of that."""
        self.quiet(at)
        self.deaths.append((self.last, at))

    def script(self, word):
        self.scripts += 1
        self.called = True
        key, said = KEY.match(word[3]), word[3 + int(word[2]):]
        guard = self.guards.get(key.group(1)) if key else None
        self.running = None
        if said and said[0] == "enter" and len(said) > 6 and said[1] not in self.owner:
            self.owner[said[1]] = self.by_pid.get(int(said[6].split(" ")[1]))
        if guard and said and said[0] in ("enter", "renew"):
            if said[0] == "renew" and said[1] in guard.before:
                self.running = guard, "renew"
            guard.users.add(said[1])

    def begun(self, at):
        for name, had in self.before.items():
            guard = self.guards[name]
            self.lost += [(name, guard.token.get(id), at) for id in had - set(guard.held)]
        self.before = {}

    def follow(self, path):
        with open(path, errors="replace") as file:
            for line in file:
                if line[0] == "#":
                    word = line.split()
                    at = self.of_wall(int(word[2]))
                    if word[1] == "begin":
                        self.begin(at, word[3])
                    elif word[1] == "begun":
                        self.begun(at)
                    elif word[1] == "end":
                        self.end(at)
                    continue
                if not line[0].isdigit():
                    continue
                at = self.last = self.time_of(line)
                word = WORD.findall(line)
                if " lua]" in line[:60] or (word and word[0] == "known"):
                    if self.called:  # it runs only now: to read it may have taken the server a while
                        for guard in self.guards.values():
                            guard.end_keys(at)
                    self.called = False
                    self.change(at, word[1:] if word[0] == "known" else word)
                elif word and word[0].upper() in ("EVAL", "EVALSHA"):
                    self.quiet(at)
                    self.script(word)

    def forgotten(self):
        for process in self.processes:
            for name, since, until in process.waits:
                idle = self.guards[name].idle if name in self.guards else []
                for a, z in process.running(since, until):
                    at = max(bisect.bisect_left(idle, (a, 0)) - 1, 0)
                    while at < len(idle) and idle[at][0] < z:
                        begin, end, most = max(a, idle[at][0]), min(z, idle[at][1]), self.lease + SECOND
                        if end - begin > most and end - begin - self.not_run(process, begin, end) > most:
                            self.problems.append(f"{process.path}: waited for {name} outside of the line from {a} to {z}")
                        at += 1

    def merge(self):
        for guard in self.guards.values():
            merged = []
            for begin, end in guard.idle:
                if merged and merged[-1][1] == begin:
                    merged[-1] = (merged[-1][0], end)
                else:
                    merged.append((begin, end))
            guard.idle = merged


def judge_tokens(guard, holds, problems):
    by_token = sorted(holds, key=lambda h: h["token"])
    for one, other in zip(by_token, by_token[1:]):
        if one["token"] == other["token"]:
            problems.append(f"{guard}: token {one['token']} twice")
    by_entry = sorted(holds, key=lambda h: h["from"])
    highest, at = 0, 0
    for h in sorted(holds, key=lambda h: h["asked"]):
        while at < len(by_entry) and by_entry[at]["from"] < h["asked"]:
            highest = max(highest, by_entry[at]["token"])
            at += 1
        if h["token"] < highest:
            problems.append(f"{guard}: token {h['token']} was given after {highest}")


def end_with_their_servers(guard, holds, server, problems):
    """Holds of which only the holder knows: see rule 1."""
    lost = {token: at for name, token, at in server.lost if name == guard}
    for h in holds:
        h["to"] = min(h["to"], lost.get(h["token"], FAR))
        if any(h["from"] < at < h["to"] for at in server.fail_overs):
            h["to"] = min(h["to"], server.guards[guard].expired.get(h["token"], FAR))
        if h["token"] in server.guards[guard].given:
            continue
        deaths = [end for last, end in server.deaths
                  if h["asked"] < end and last - MOMENT < h["from"] and h["lease"] <= end + server.lease]
        if not deaths:
            problems.append(f"{guard}: token {h['token']} at {h['from']} is none that the server gave")
            continue
        after = [at for at in server.fail_overs if at >= deaths[0]]
        if after and not any(deaths[0] < end < after[0] for _, end in server.deaths):
            h["to"] = min(h["to"], after[0])


def judge_limit(guard, holds, limit, server, problems):
    gaps = server.guards[guard].gaps if server else []
    restored = server.guards[guard].restored if server else {}
    beside = set().union(*(tokens for _, tokens in gaps))
    since = [dict(h) for h in holds]  # what was there before a gap does not count until it is restored
    for begin, tokens in gaps:
        for h in [h for h in since if h["from"] < begin < h["to"] and h["token"] not in tokens]:
            at = restored.get(h["token"], FAR)
            if begin <= at < h["to"]:
                since.append(dict(h, **{"from": at}))
            h["to"] = begin
    most = 0
    for some in ([h for h in holds if h["token"] not in beside], since):
        now, when = most_at_once(some)
        if now > limit:
            problems.append(f"{guard}: {now} inside at {when}, but the limit is {limit}")
        most = max(most, now)
    return most


def main():
    lease = int(sys.argv[1]) * 10 ** 6
    limits = dict((g, int(n)) for g, n in (pair.split("=") for pair in sys.argv[2].split(",")))
    problems, outages, clocks = [], [], []
    processes = [Process(path, problems, outages, clocks) for path in sys.argv[4:]]
    server = None
    if sys.argv[3] != "-":
        if not clocks or max(clocks) - min(clocks) > 10 ** 7:
            problems.append("this machine's clock was set meanwhile: nothing can be said")
        server = Server(lease, limits, processes, outages, clocks[0] if clocks else 0, problems)
        server.find_stalls(sys.argv[3])
        server.follow(sys.argv[3])
        server.merge()
        server.forgotten()
    holds = [h for p in processes for h in p.holds]
    for guard, limit in limits.items():
        mine = [h for h in holds if h["guard"] == guard]
        judge_tokens(guard, mine, problems)
        if server:
            end_with_their_servers(guard, mine, server, problems)
        most = judge_limit(guard, mine, limit, server, problems)
        if not mine:
            problems.append(f"{guard}: nobody ever entered")
        print(f"{guard}: {len(mine)} holds, at most {most} of {limit} inside"
              + (f", a permit came back at most {server.guards[guard].worst / 1e6:.0f} ms after its owner's end" if server else ""))
    if server:
        print(f"{server.scripts} scripts; {len(server.fail_overs)} fail-overs, which lost {len(server.lost)} permits")
        if not server.scripts:
            problems.append("the server's log is empty")
    for problem in problems[:20]:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
