#!/usr/bin/env python3
"""A member of a fleet without weir: shares a limit through the scripts and keys of docs/redis.md.

    fleet_client.py <socket> <scripts> <guard> <limit> <lease ms> <rounds> [log]      SPDX-License-Identifier: MIT
"""
import os, random, sys, threading, time
import redis

class Guard:
    def __init__(self, server, scripts, name, limit, lease_ms):
        common = open(f"{scripts}/common.lua").read()
        load = lambda file: server.register_script(common + open(f"{scripts}/{file}.lua").read())
        self.open, self.permits = load("open"), load("permits")
        self.keys = [f"weir:{{{name}}}:{key}" for key in ("cfg", "held", "info", "line", "wants", "audit")]
        self.me, self.number, self.who = f"{random.getrandbits(64):016x}", 0, f"{os.uname().nodename} {os.getpid()} python"
        self.lease, self.until, self.held, self.lock = lease_ms / 1000, {}, set(), threading.Lock()
        made = f"{limit} 3600000000 1 0 9223372036854775807 2147483647"
        self.settings = ["open", 0, 1, 604800000, "limit", limit, "period", 3600000000, "burst", 1, "wait", 9223372036854775807,
                         "waiters", 2147483647, "kind", 2, "mode", 0, "initial", 0, "lease", lease_ms * 1000, "made", made]
        self.open(keys=self.keys[:1], args=self.settings)
        self.bell = server.pubsub(ignore_subscribe_messages=True)
        self.bell.subscribe(f"weir:bell:{self.me}")
        threading.Thread(target=self.renew_for_ever, daemon=True).start()

    def call(self, *args):
        while (reply := self.permits(keys=self.keys, args=args)) == [-1]:  # the server has forgotten the guard
            self.open(keys=self.keys[:1], args=self.settings)
        return reply

    def enter(self):
        with self.lock:
            self.number += 1
            number = self.number
        sent = time.monotonic()
        state, token, _, ends, clock, *_ = self.call("enter", self.me, number, 1, 1, 1, self.who)
        while state == 2:  # in line: wait for the bell, and ask now and then, since messages can be lost
            message = self.bell.get_message(timeout=self.lease / 3)
            word = message["data"].split() if message else [b""]
            if word[0] == b"g" and int(word[1]) == number:
                state, token, ends = 1, int(word[2]), int(word[4])
            elif not message:
                sent = time.monotonic()
                state, token, _, ends, clock, *_ = self.call("enter", self.me, number, 1, 1, 1, self.who)
        with self.lock:
            self.held.add(number)
            self.until[number] = sent + (ends - clock) / 1e6
        return number, token

    def leave(self, number):
        with self.lock:
            self.held.discard(number)
        self.call("leave", self.me, number, 1)

    def renew_for_ever(self):  # on a thread of its own: does not depend on busy ones
        while True:
            time.sleep(self.lease / 3)
            with self.lock:
                numbers, sent = list(self.held), time.monotonic()
            if numbers:
                reply = self.call("renew", self.me, -1, 0, len(numbers), 0, *numbers)
                for number in set(numbers) - set(reply[8:8 + reply[7]]):
                    self.until[number] = sent + self.lease

if __name__ == "__main__":
    path, scripts, name, limit, lease, rounds = sys.argv[1:7]
    guard = Guard(redis.Redis(unix_socket_path=path), scripts, name, int(limit), int(lease))
    log = open(sys.argv[7] if len(sys.argv) > 7 else os.devnull, "a", buffering=1)
    note = lambda what, token, until: log.write(f"{what} {name} {token} {time.monotonic_ns()} {int(until * 1e9)} 0\n")
    for _ in range(int(rounds)):
        note("A", 0, 0)
        number, token = guard.enter()
        note("E", token, guard.until[number])
        time.sleep(random.random() * 0.005)
        note("L", token, guard.until[number])
        guard.leave(number)
    print("left", rounds, "times")
