/* Two ways for a limit to follow latency.
 *
 * AIMD: one more while calls are fast and the limit is made use of; nine tenths when a call is slow or fails.
 * Gradient: the ratio of usual to present latency says whether calls queue somewhere behind us. The limit moves to limit x ratio plus
 * room for a short queue, a fifth of the way per call; a failure counts as a halved ratio.
 * SPDX-License-Identifier: MIT */
#include "guard/adaptive.h"

#include "guard/math.h"

#define DECREASE 0.9
#define STEP     0.2   /* of the way to the new limit, per call                                 */
#define SLACK    1.5   /* latency may be so many times the usual before the limit falls         */
#define LONG_RUN 600.0 /* calls over which latency is averaged                                  */
#define WARM_UP  10    /* calls whose plain mean is the usual latency                           */

static double bounded(const struct wr_adaptive *a, double limit)
{
    double low = (double)a->limit_min, high = (double)a->limit_max;

    return limit < low ? low : limit > high ? high : limit;
}

void wr_adaptive_bound(struct wr_adaptive *a, int64_t limit, int64_t limit_min, int64_t limit_max,
                       int64_t latency_ns)
{
    a->limit_min = limit_min;
    a->limit_max = limit_max;
    a->latency_ns = latency_ns;
    a->exact = bounded(a, limit ? (double)limit : a->exact);
}

void wr_adaptive_init(struct wr_adaptive *a, weir_guard_mode mode, int64_t limit, int64_t limit_min,
                      int64_t limit_max, int64_t latency_ns)
{
    *a = (struct wr_adaptive){ .mode = mode };
    wr_adaptive_bound(a, limit, limit_min, limit_max, latency_ns);
}

int64_t wr_adaptive_limit(const struct wr_adaptive *a)
{
    return (int64_t)a->exact;
}

static double root(double x)
{
    double r = x > 1 ? x : 1;

    for (int i = 0; i < 20; i++)
        r = (r + x / r) / 2;
    return r;
}

static void aimd(struct wr_adaptive *a, bool bad, int64_t used)
{
    if (bad)
        a->exact = bounded(a, a->exact * DECREASE);
    else if (used * 2 >= (int64_t)a->exact)
        a->exact = bounded(a, a->exact + 1 / a->exact);
}

/* The mean of the first calls, then a mean in which each call weighs 1 / LONG_RUN. A drop is believed sooner, so that one
 * bad hour does not make slowness usual. */
static void learn(struct wr_adaptive *a, double ns)
{
    double weight = a->samples < WARM_UP ? 1.0 / (double)(a->samples + 1) : 1 / LONG_RUN;

    a->samples++;
    if (ns < a->usual_ns && weight < 0.02)
        weight = 0.02;
    a->usual_ns += (ns - a->usual_ns) * weight;
}

static void gradient(struct wr_adaptive *a, bool failed, int64_t ns, int64_t used)
{
    double present = ns > 0 ? (double)ns : 1, ratio;

    if (!failed)
        learn(a, present);
    if (!failed && used * 2 < (int64_t)a->exact)
        return; /* the limit was not what held calls back */
    ratio = failed ? 0.5 : SLACK * a->usual_ns / present;
    ratio = ratio < 0.5 ? 0.5 : ratio > 1 ? 1 : ratio;
    a->exact +=
        (a->exact * ratio + (failed ? 0 : root(a->exact)) - a->exact) * STEP / root(a->exact);
    a->exact = bounded(a, a->exact);
}

void wr_adaptive_end(struct wr_adaptive *a, bool failed, int64_t ns, int64_t used)
{
    if (a->mode == WEIR_AIMD)
        aimd(a, failed || ns > a->latency_ns, used);
    else
        gradient(a, failed, ns, used);
}
