/* One run, and many: options, luck, failure, report.
 * SPDX-License-Identifier: MIT */
#include "base/options.h"
#include "sim/sim.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/error.h>

enum { TAIL = 128 }; /* kept free in the message for where, when and the seed */

struct wr_sim wr_sim;

/* ---- inside a run ---------------------------------------------------------------------------- */

void wr_sim_log(const char *format, ...)
{
    va_list args;

    fprintf(stderr, "%" PRId64 ".%09" PRId64 " #%" PRIu64 " %s ", wr_sim.now / 1000000000,
            wr_sim.now % 1000000000, wr_sim.report.points,
            wr_sim.current ? wr_sim.current->name : "-");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

void wr_sim_call(const char *name)
{
    if (!wr_sim.current) {
        fprintf(stderr, "weir sim: %s is for use inside weir_sim_run\n", name);
        abort();
    }
    wr_sim_point();
}

bool wr_sim_interrupted(void)
{
    if (!wr_sim_chance(wr_sim.opt.eintr_per_256))
        return false;
    wr_sim.report.interrupts++;
    WR_SIM_LOG("is interrupted");
    return true;
}

/* Finishes the message that stands in the report. */
static void failed(const char *thread)
{
    char *message = wr_sim.report.message;
    size_t used = strlen(message);

    wr_sim.failed = true;
    if (thread)
        used += (size_t)snprintf(message + used, sizeof(wr_sim.report.message) - used,
                                 "\nin thread %s at %" PRId64, thread, wr_sim.now);
    snprintf(message + used, sizeof(wr_sim.report.message) - used,
             "\nreplay with WEIR_SEED=%" PRIu64, wr_sim.report.seed);
}

void weir_sim_fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (!wr_sim.current) {
        vfprintf(stderr, format, args);
        abort();
    }
    vsnprintf(wr_sim.report.message, sizeof(wr_sim.report.message) - TAIL, format, args);
    va_end(args);
    failed(wr_sim.current->name);
    wr_sim_go_home();
}

uint64_t weir_sim_seed(void)
{
    return wr_sim.report.seed;
}

uint64_t weir_sim_random(void)
{
    return wr_sim_draw(&wr_sim.test_luck);
}

uint64_t wr_os_random(void)
{
    wr_sim_point();
    return wr_sim_draw(&wr_sim.library_luck);
}

unsigned wr_os_cpus(void)
{
    return wr_sim.current ? wr_sim.opt.cpus : 2;
}

/* ---- before and after ------------------------------------------------------------------------ */

static uint64_t seed_of_environment(uint64_t otherwise)
{
    const char *text = getenv("WEIR_SEED");

    return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

static bool trace_of_environment(void)
{
    const char *text = getenv("WEIR_TRACE");

    return text && *text && strcmp(text, "0") != 0;
}

static void options_complete(weir_sim_options *o, uint64_t luck)
{
    o->cpus = o->cpus ? o->cpus : 2;
    o->switch_every = o->switch_every ? o->switch_every : 2u << 2 * wr_sim_below(&luck, 4);
    o->points_max = o->points_max ? o->points_max : 20000000;
    o->jumps_max = o->jumps_max ? o->jumps_max : 200000;
    if (o->spurious_per_256 == 0)
        o->spurious_per_256 = 4;
    else if (o->spurious_per_256 == WEIR_SIM_NEVER)
        o->spurious_per_256 = 0;
}

static void begin(const weir_sim_options *opt)
{
    uint64_t luck = opt->seed;

    memset(&wr_sim, 0, sizeof(wr_sim));
    wr_sim.opt = *opt;
    wr_sim.report.size = sizeof(wr_sim.report);
    wr_sim.report.seed = opt->seed;
    wr_sim.trace = opt->trace || trace_of_environment();
    wr_sim.now = WEIR_SIM_START;
    wr_sim.schedule_luck = wr_sim_draw(&luck);
    wr_sim.fault_luck = wr_sim_draw(&luck);
    wr_sim.library_luck = wr_sim_draw(&luck);
    wr_sim.test_luck = wr_sim_draw(&luck);
    options_complete(&wr_sim.opt, luck);
}

static void clean_up(void)
{
    wr_sim.current = NULL;
    wr_sim_threads_reset(); /* first: what follows would wake threads that wait for descriptors */
    wr_sim_sched_reset();
    wr_sim_fds_reset();
    wr_sim_children_reset();
    wr_sim_memory_reset();
}

/* What must hold after a scenario that returned. */
static void inspect(void)
{
    char *message = wr_sim.report.message, left[512] = "";
    uint64_t spoilt = wr_sim_memory_spoilt();
    unsigned threads = wr_sim_thread_count - 1;

    wr_sim_memory_left(left, sizeof(left));
    if (threads > 0)
        wr_sim_list_add(left, sizeof(left), "%u thread%s (first: %s)", threads,
                        threads == 1 ? "" : "s", wr_sim_threads[1]->name);
    wr_sim_fds_left(left, sizeof(left));
    if (left[0])
        snprintf(message, sizeof(wr_sim.report.message) - TAIL, "leak: %s", left);
    if (spoilt)
        snprintf(message, sizeof(wr_sim.report.message) - TAIL,
                 "allocation #%" PRIu64 " was written to after it was freed", spoilt);
    if (message[0])
        failed(NULL);
}

/* True if a run is going on. A test framework's longjmp may have left one for good. */
static bool is_inside(void)
{
    const void *here = __builtin_frame_address(0);

    if (!wr_sim.current)
        return false;
    if (wr_sim_thread_owns(here) || wr_sim_memory_maps(here))
        return true;
    wr_sim_crash_reset();
    clean_up();
    return false;
}

static int run(const weir_sim_options *opt, void (*scenario)(void *arg), void *arg)
{
    struct wr_sim_thread *main;

    begin(opt);
    main = wr_sim_thread_new("main", scenario, arg);
    if (!main)
        return WEIR_ENOMEM;
    wr_sim_crash_watch();
    wr_sim_leave_home(main);
    wr_sim_crash_unwatch();
    if (!wr_sim.failed)
        inspect();
    wr_sim.report.ok = !wr_sim.failed;
    wr_sim.report.ended_at = wr_sim.now;
    clean_up();
    return wr_sim.failed ? WEIR_EDEADLK : 0;
}

static int options_load(weir_sim_options *ours, const weir_sim_options *theirs,
                        void (*scenario)(void *arg))
{
    if (!scenario || is_inside())
        return WEIR_EINVAL;
    return wr_options_load(ours, sizeof(*ours), theirs);
}

static void print_failure(void)
{
    fprintf(stderr, "weir sim: %s\n", wr_sim.report.message);
}

int weir_sim_run(weir_sim_report *report, const weir_sim_options *opt, void (*scenario)(void *arg),
                 void *arg)
{
    weir_sim_options o;
    int rc = options_load(&o, opt, scenario);

    if (rc < 0)
        return rc;
    if (o.seed == 0)
        o.seed = seed_of_environment(1);
    rc = run(&o, scenario, arg);
    if (rc < 0 && !report)
        print_failure();
    if (report)
        wr_options_store(report, &wr_sim.report, sizeof(wr_sim.report));
    return rc;
}

int weir_sim_explore(const weir_sim_options *base, uint64_t seeds, void (*scenario)(void *arg),
                     void *arg, weir_sim_report *first_failure)
{
    weir_sim_options o;
    uint64_t wanted = seed_of_environment(0);
    int rc = options_load(&o, base, scenario);

    if (rc < 0)
        return rc;
    if (wanted != 0) {
        o.seed = wanted;
        seeds = 1;
    }
    o.seed = o.seed ? o.seed : 1;
    wr_sim_crash_watch();
    for (uint64_t i = 0; i < seeds && rc == 0; i++, o.seed++)
        rc = run(&o, scenario, arg);
    wr_sim_crash_unwatch();
    if (rc < 0)
        print_failure();
    if (first_failure)
        wr_options_store(first_failure, &wr_sim.report, sizeof(wr_sim.report));
    return rc;
}
