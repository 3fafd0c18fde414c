/* switch: what it costs to wait for another task and be woken by it.
 *
 * Two tasks of one worker wake each other by turns; next to it, on the same thread, two stacks switch
 * to and fro with nothing around the bare switch. Slices of both alternate, so that whatever disturbs
 * the machine disturbs both, and their ratio means something on a busy machine, too.
 * SPDX-License-Identifier: MIT */
#include "base/os.h"
#include "bench.h"
#include "runtime/context.h"
#include "runtime/runtime.h"

#include <limits.h>
#include <stdlib.h>

enum {
    SLICES = 100,
    ROUNDS = 20000,
    CROSS_ROUNDS = 20000, /* each may be two sleeps in the kernel */
    STACK_SIZE = 64 << 10,
    STALL_MS = 60000, /* a replacement worker would carry one of the two tasks away */
};

static double ns_each(weir_time begin, long rounds)
{
    return (double)(weir_now() - begin) / (double)rounds;
}

static void spawn(weir_runtime *rt, weir_body *body, void *arg)
{
    bench_must(weir_spawn(rt, body, arg, NULL), "weir_spawn");
}

static void drain(weir_runtime *rt)
{
    bench_must(weir_runtime_drain(rt, WEIR_FOREVER), "weir_runtime_drain");
}

/* ---- bare ------------------------------------------------------------------------------------ */

struct side {
    void *sp;
    struct side *other;
};

/* Both sides run this one loop, so both return to the same call, as parked fibers do: the processor
 * predicts the return of a switch as well, or as badly, here and there. */
static __attribute__((noinline)) void bare_loop(struct side *self, long rounds)
{
    for (long i = 0; i < rounds; i++)
        wr_switch(&self->sp, self->other->sp);
}

/* It never gets to the end: the near side leaves it in the middle of a switch. */
static void bare_far_side(void *self)
{
    bare_loop(self, LONG_MAX);
    abort();
}

/* A body, because it should run on the worker's thread. */
static void bare_slice(void *ns)
{
    static _Alignas(16) char stack[STACK_SIZE];
    struct side near, far = { .other = &near };
    weir_time begin;

    near.other = &far;
    far.sp = wr_switch_prepare(stack + sizeof(stack), bare_far_side, &far);
    begin = weir_now();
    bare_loop(&near, ROUNDS);
    *(double *)ns = ns_each(begin, ROUNDS);
}

/* ---- one worker ------------------------------------------------------------------------------ */

struct player {
    int number; /* 0 or 1; 0 is spawned first */
    struct match *match;
    _Atomic(struct wr_parker *) parker; /* NULL: has not started */
    struct wr_worker *worker;
    double ns;
};

struct match {
    struct player player[2];
    _Atomic int turn; /* across workers: whose it is */
    _Atomic int done;
};

static void match_init(struct match *match)
{
    *match = (struct match){ .player[1].number = 1 };
    match->player[0].match = match;
    match->player[1].match = match;
}

/* Makes oneself known and waits for the other to do so. */
static struct wr_parker *match_enter(struct player *self, struct wr_parker *parker,
                                     void (*wait)(void))
{
    struct player *other = &self->match->player[!self->number];
    struct wr_parker *found;

    self->worker = parker->worker;
    wr_store(&self->parker, parker, release);
    while (!(found = wr_load(&other->parker, acquire)))
        wait();
    return found;
}

static void let_others_run(void)
{
    weir_yield();
}

static __attribute__((noinline)) void same_loop(struct wr_parker *self, struct wr_parker *other)
{
    for (long i = 0; i < ROUNDS; i++) {
        wr_unpark(other);
        wr_park(self, WEIR_FOREVER);
    }
}

static void same_body(void *player)
{
    struct player *self = player;
    struct wr_parker storage, *parker = wr_parker_self(&storage);
    struct wr_parker *other = match_enter(self, parker, let_others_run);
    weir_time begin = weir_now();

    same_loop(parker, other);
    self->ns = ns_each(begin, ROUNDS);
    /* Player 1 made the first move, to no effect since the other was awake. So it ends first and has
     * to wake the other from its last wait. */
    if (self->number == 1)
        wr_unpark(other);
}

static double same_slice(weir_runtime *rt)
{
    struct match match;

    match_init(&match);
    spawn(rt, same_body, &match.player[0]);
    spawn(rt, same_body, &match.player[1]);
    drain(rt);
    if (match.player[0].worker != match.player[1].worker)
        bench_die("the tasks were to share a worker");
    return match.player[0].ns;
}

static void measure_same(struct bench_out *out)
{
    weir_runtime *rt = bench_runtime(WEIR_RUNTIME(.workers = 1, .stall_after_ms = STALL_MS));
    double bare[SLICES], same[SLICES], bare_ns, same_ns;

    for (int i = 0; i < SLICES; i++) {
        spawn(rt, bare_slice, &bare[i]);
        drain(rt);
        same[i] = same_slice(rt);
    }
    weir_runtime_free(rt);
    bare_ns = bench_median(bare, SLICES);
    same_ns = bench_median(same, SLICES);
    bench_put(out, BENCH_WEIR, "same_worker_ns", same_ns);
    bench_put(out, BENCH_REFERENCE, "bare_ns", bare_ns);
    bench_put(out, BENCH_WEIR, "same_worker_ratio", same_ns / bare_ns);
}

/* ---- two workers ----------------------------------------------------------------------------- */

/* The turn makes sure that there is one ball in the game: both may be woken while they run. */
static void cross_loop(struct player *self, struct wr_parker *parker, struct wr_parker *other)
{
    struct match *match = self->match;

    for (long i = 0; i < CROSS_ROUNDS; i++) {
        while (wr_load(&match->turn, acquire) != self->number)
            wr_park(parker, WEIR_FOREVER);
        wr_store(&match->turn, !self->number, release);
        wr_unpark(other);
    }
}

/* Waits for the other without leaving the worker, which therefore cannot start the other. Neither may
 * end while the other could still unpark it. */
static void cross_body(void *player)
{
    struct player *self = player;
    struct wr_parker storage, *parker = wr_parker_self(&storage);
    struct wr_parker *other = match_enter(self, parker, wr_os_yield);
    weir_time begin = weir_now();

    cross_loop(self, parker, other);
    self->ns = ns_each(begin, CROSS_ROUNDS);
    wr_add(&self->match->done, 1, seq_cst);
    while (wr_load(&self->match->done, seq_cst) < 2)
        weir_yield();
}

static void measure_cross(struct bench_out *out)
{
    weir_runtime *rt = bench_runtime(WEIR_RUNTIME(.workers = 2, .stall_after_ms = STALL_MS));
    struct match match;

    match_init(&match);
    spawn(rt, cross_body, &match.player[0]);
    spawn(rt, cross_body, &match.player[1]);
    drain(rt);
    weir_runtime_free(rt);
    if (match.player[0].worker == match.player[1].worker)
        bench_die("the tasks were to have a worker each");
    bench_put(out, BENCH_WEIR, "cross_worker_ns", match.player[0].ns);
}

void bench_switch(struct bench_out *out)
{
    measure_same(out);
    measure_cross(out);
}
