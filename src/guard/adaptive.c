/* Two ways for a limit to follow latency.
 *
 * AIMD: one more per round of calls while they are fast and the limit is made use of; nine tenths when one is slow or fails, once
 * per round.
 * Gradient: latency beside the least there is without a queue says whether calls queue somewhere behind us. Both are averages
 * of many calls, since single ones differ without any queue. The limit moves to limit x slack x least / present, plus room
 * for a short queue; so it settles at slack x capacity + root of the limit. The least falls with the present; it rises only
 * by measuring: now and then half the limit for a moment, so that slowness does not become usual.
 * SPDX-License-Identifier: MIT */
#include "guard/adaptive.h"

#include "guard/math.h"

#define DECREASE 0.9
#define STEP     0.2 /* of the way to the new limit, per round of calls                          */
#define SLACK    1.2 /* latency may be so many times the least before the limit falls            */
#define FAR      4   /* a call that takes so many times the usual counts as that many            */

enum { AVERAGE = 100, MEASURE_EVERY = 1000, MEASURED = 30 }; /* calls */

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

/* Whether a bad call says something new: not if it was under way when the limit fell last. */
static bool is_news(struct wr_adaptive *a, bool bad, int64_t used)
{
    if (a->quiet > 0)
        a->quiet--;
    if (!bad || a->quiet > 0)
        return false;
    a->quiet = used;
    return true;
}

static void aimd(struct wr_adaptive *a, bool bad, int64_t used)
{
    if (is_news(a, bad, used))
        a->exact = bounded(a, a->exact * DECREASE);
    else if (!bad && used * 2 >= (int64_t)a->exact)
        a->exact = bounded(a, a->exact + 1 / a->exact);
}

/* Half the limit until the calls that are under way have ended, and some more were measured. */
static void probe_begin(struct wr_adaptive *a, int64_t used)
{
    a->samples = 0;
    a->probing = used + MEASURED;
    a->probed_ns = 0;
    a->before = a->exact;
    a->exact = bounded(a, a->exact / 2);
}

static void probe(struct wr_adaptive *a, double ns)
{
    if (a->probing <= MEASURED)
        a->probed_ns += ns;
    if (--a->probing > 0)
        return;
    a->least_ns = a->probed_ns / MEASURED;
    a->exact = bounded(a, a->before);
}

static void average(struct wr_adaptive *a, double ns)
{
    a->averaged = wr_min(a->averaged + 1, AVERAGE);
    a->usual_ns += (ns - a->usual_ns) / (double)a->averaged;
    if (a->least_ns == 0 || (a->averaged == AVERAGE && a->usual_ns < a->least_ns))
        a->least_ns = a->usual_ns;
}

static void gradient(struct wr_adaptive *a, bool failed, int64_t took, int64_t used)
{
    double ratio, aim, ns = took > 1 ? (double)took : 1;

    if (is_news(a, failed, used))
        a->exact = bounded(a, a->exact * DECREASE);
    if (failed)
        return;
    if (a->averaged && ns > FAR * a->usual_ns)
        ns = FAR * a->usual_ns;
    if (a->probing > 0) {
        probe(a, ns);
        return;
    }
    average(a, ns);
    if (used * 2 < (int64_t)a->exact)
        return; /* the limit was not what held calls back */
    ratio = SLACK * a->least_ns / a->usual_ns;
    ratio = ratio < 0.5 ? 0.5 : ratio > 1 ? 1 : ratio;
    aim = a->exact * ratio + root(a->exact);
    a->exact = bounded(a, a->exact + (aim - a->exact) * STEP / a->exact);
    if (++a->samples >= MEASURE_EVERY)
        probe_begin(a, used);
}

void wr_adaptive_end(struct wr_adaptive *a, bool failed, int64_t ns, int64_t used)
{
    if (a->mode == WEIR_AIMD)
        aimd(a, failed || ns > a->latency_ns, used);
    else
        gradient(a, failed, ns, used);
}
