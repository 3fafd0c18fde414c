/* The plots of docs/guards.md: arrivals against admissions of each limiter, and the life of a breaker. Real guards on the
 * simulated clock. `guard-plots docs/plots` draws them anew; without a directory it only tries, as the tests do.
 * SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir.h>
#include <weir/sim.h>

enum { WIDTH = 760, LEFT = 110, RIGHT = 20, ROW = 34, POINTS_MAX = 4096 };

#define MS INT64_C(1000000)

static const char *directory;

/* ---- drawing ------------------------------------------------------------------------------------ */

struct plot {
    FILE *file;
    double from_ms, span_ms;
    int y;
};

static double x_of(const struct plot *p, double ms)
{
    return LEFT + (ms - p->from_ms) / p->span_ms * (WIDTH - LEFT - RIGHT);
}

static void plot_begin(struct plot *p, const char *name, const char *title, double from_ms,
                       double to_ms, double every_ms, const char *unit, int height)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/%s.svg", directory ? directory : "", name);
    p->file = directory ? fopen(path, "w") : tmpfile();
    if (!p->file)
        weir_sim_fail("%s: %s", path, strerror(errno));
    p->from_ms = from_ms;
    p->span_ms = to_ms - from_ms;
    p->y = 44;
    fprintf(p->file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
            "<text x=\"%d\" y=\"20\" font-weight=\"bold\">%s</text>\n",
            WIDTH, height, LEFT, title);
    for (double ms = from_ms; ms <= to_ms + every_ms / 2; ms += every_ms)
        fprintf(p->file,
                "<line x1=\"%.1f\" y1=\"36\" x2=\"%.1f\" y2=\"%d\" stroke=\"#ddd\"/>"
                "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" fill=\"#666\">%g</text>\n",
                x_of(p, ms), x_of(p, ms), height - 24, x_of(p, ms), height - 8, ms);
    fprintf(p->file, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\" fill=\"#666\">%s</text>\n",
            LEFT - 16, height - 8, unit);
}

static void plot_label(struct plot *p, const char *text)
{
    fprintf(p->file, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", LEFT - 8, p->y + 12,
            text);
}

/* A smaller line below that. */
static void plot_remark(struct plot *p, const char *text)
{
    fprintf(
        p->file,
        "<text x=\"%d\" y=\"%d\" font-size=\"10\" fill=\"#666\" text-anchor=\"end\">%s</text>\n",
        LEFT - 8, p->y + 24, text);
}

/* A stroke per call, a short one for a call that is refused. */
static void plot_stroke(struct plot *p, double ms, const char *colour, int height)
{
    if (ms >= p->from_ms && ms <= p->from_ms + p->span_ms)
        fprintf(p->file,
                "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"%s\" "
                "stroke-width=\"1.5\"/>\n",
                x_of(p, ms), p->y + 16 - height, x_of(p, ms), p->y + 16, colour);
}

static void plot_tick(struct plot *p, double ms, const char *colour)
{
    plot_stroke(p, ms, colour, 16);
}

static void plot_box(struct plot *p, double from_ms, double to_ms, const char *colour,
                     const char *text)
{
    fprintf(p->file, "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"16\" fill=\"%s\"/>\n",
            x_of(p, from_ms), p->y, x_of(p, to_ms) - x_of(p, from_ms), colour);
    if (x_of(p, to_ms) - x_of(p, from_ms) > 6.5 * (double)strlen(text) + 8)
        fprintf(p->file, "<text x=\"%.1f\" y=\"%d\" fill=\"white\" font-size=\"11\">%s</text>\n",
                x_of(p, from_ms) + 4, p->y + 12, text);
    else /* below it */
        fprintf(p->file,
                "<text x=\"%.1f\" y=\"%d\" fill=\"%s\" font-size=\"11\" "
                "text-anchor=\"middle\">%s</text>\n",
                x_of(p, (from_ms + to_ms) / 2), p->y + 28, colour, text);
}

static void plot_end(struct plot *p)
{
    fprintf(p->file, "</svg>\n");
    fclose(p->file);
}

/* ---- limiters ------------------------------------------------------------------------------------ */

static double arrival[POINTS_MAX];
static int arrivals;

/* A steady stream, a gap, a burst, a stream that is too fast. */
static void draw_arrivals(void)
{
    arrivals = 0;
    for (double t = 0; t < 300; t += 20)
        arrival[arrivals++] = t;
    for (int i = 0; i < 30; i++)
        arrival[arrivals++] = 489 + i * 0.7; /* around the border of two windows */
    for (double t = 600; t < 1000; t += 4)
        arrival[arrivals++] = t;
}

/* Every caller looks once. */
static void row(struct plot *p, const char *label, const weir_guard_options *opt)
{
    weir_store *store;
    weir_guard *guard;
    weir_time begin = weir_now() + MS;
    int in = 0, seen = 0;
    char text[64];

    begin +=
        1000 * MS - (begin - WEIR_SIM_START) % (1000 * MS); /* windows begin where the plot does */
    if (weir_store_local(&store) || weir_sleep(begin))
        weir_sim_fail("no store");
    if (weir_guard_new(&guard, store, label, opt, NULL))
        weir_sim_fail("%s cannot be", label);
    plot_label(p, label);
    for (int i = 0; i < arrivals; i++) {
        weir_permit permit = WEIR_PERMIT;
        bool ok;
        weir_sleep(begin + (weir_time)(arrival[i] * 1e6));
        ok = weir_guard_enter(&permit, guard, WEIR_NOW_OR_NEVER) == 0;
        if (arrival[i] < p->from_ms || arrival[i] > p->from_ms + p->span_ms)
            continue;
        seen++;
        in += ok;
        plot_stroke(p, arrival[i], ok ? "#0a5" : "#d88", ok ? 16 : 6);
    }
    snprintf(text, sizeof(text), "%d of %d", in, seen);
    plot_remark(p, text);
    p->y += ROW;
    weir_guard_unref(guard);
    weir_store_free(store);
}

static void arrivals_row(struct plot *p)
{
    plot_label(p, "arrivals");
    for (int i = 0; i < arrivals; i++)
        plot_tick(p, arrival[i], "#444");
    p->y += ROW;
}

static void limiters(const char *name, const char *title, double from_ms, double to_ms,
                     double every_ms)
{
    struct plot p;

    draw_arrivals();
    plot_begin(&p, name, title, from_ms, to_ms, every_ms, "ms", 44 + 6 * ROW + 24);
    arrivals_row(&p);
    row(&p, "rate, cycles", WEIR_RATE(.limit = 10, .period_ns = 100 * MS));
    row(&p, "smooth, burst 5",
        WEIR_RATE(.mode = WEIR_SMOOTH, .limit = 10, .period_ns = 100 * MS, .burst = 5));
    row(&p, "fixed window", WEIR_FREQUENCY(.mode = WEIR_FIXED, .limit = 10, .period_ns = 100 * MS));
    row(&p, "two windows",
        WEIR_FREQUENCY(.mode = WEIR_WEIGHTED, .limit = 10, .period_ns = 100 * MS));
    row(&p, "exact window", WEIR_FREQUENCY(.mode = WEIR_EXACT, .limit = 10, .period_ns = 100 * MS));
    plot_end(&p);
}

/* ---- those who wait ------------------------------------------------------------------------------- */

struct waiter {
    weir_guard *guard;
    weir_time arrives, begin;
    double in_ms;
    int64_t inside_ns;
    int64_t thread;
};

static void waits(void *arg)
{
    struct waiter *w = arg;
    weir_permit permit = WEIR_PERMIT;

    weir_sleep(w->arrives);
    if (weir_guard_enter(&permit, w->guard, WEIR_FOREVER))
        weir_sim_fail("a waiter was refused");
    w->in_ms = (double)(weir_now() - w->begin) / 1e6;
    if (w->inside_ns)
        weir_sleep(weir_now() + w->inside_ns);
    weir_guard_leave(&permit, 0);
}

/* Forty callers at once, all patient. */
static void waiting_row(struct plot *p, const char *label, const weir_guard_options *opt,
                        int64_t inside_ns)
{
    static struct waiter w[40];
    weir_store *store;
    weir_guard *guard;
    weir_time begin = weir_now() + MS;

    begin += 1000 * MS - (begin - WEIR_SIM_START) % (1000 * MS);
    weir_store_local(&store);
    weir_sleep(begin);
    if (weir_guard_new(&guard, store, label, opt, NULL))
        weir_sim_fail("%s cannot be", label);
    for (int i = 0; i < 40; i++) {
        w[i] = (struct waiter){
            .guard = guard, .begin = begin, .arrives = begin + i * MS / 10, .inside_ns = inside_ns
        };
        w[i].thread = weir_sim_thread(waits, &w[i], "waiter");
    }
    for (int i = 0; i < 40; i++)
        weir_sim_join(w[i].thread);
    plot_label(p, label);
    for (int i = 0, from = 0; i < 40; i++) {
        plot_tick(p, w[i].in_ms, "#0a5");
        if (i < 39 && w[i + 1].in_ms - w[from].in_ms < 3)
            continue;
        if (i > from) /* how many came together */
            fprintf(p->file, "<text x=\"%.1f\" y=\"%d\" font-size=\"10\" fill=\"#0a5\">%d</text>\n",
                    x_of(p, w[i].in_ms) + 4, p->y + 8, i - from + 1);
        from = i + 1;
    }
    p->y += ROW;
    weir_guard_unref(guard);
    weir_store_free(store);
}

static void waiting(void)
{
    struct plot p;

    plot_begin(&p, "waiting",
               "40 callers at 0 ms, all of them wait: when they are let in, and how many together",
               0, 400, 50, "ms", 44 + 5 * ROW + 24);
    waiting_row(&p, "rate, cycles", WEIR_RATE(.limit = 10, .period_ns = 100 * MS), 0);
    waiting_row(&p, "smooth, burst 5",
                WEIR_RATE(.mode = WEIR_SMOOTH, .limit = 10, .period_ns = 100 * MS, .burst = 5), 0);
    waiting_row(&p, "two windows", WEIR_FREQUENCY(.limit = 10, .period_ns = 100 * MS), 0);
    waiting_row(&p, "exact window",
                WEIR_FREQUENCY(.mode = WEIR_EXACT, .limit = 10, .period_ns = 100 * MS), 0);
    waiting_row(&p, "bulkhead of 4", WEIR_BULKHEAD(.limit = 4), 40 * MS);
    plot_end(&p);
}

/* ---- a breaker's life ------------------------------------------------------------------------------ */

static struct {
    double at;
    weir_breaker_state from, to;
} change[64];
static int changes;
static weir_time breaker_begin;

static void on_event(const weir_guard_event *event, void *arg)
{
    (void)arg;
    if (event->type != WEIR_EVENT_TRANSITION)
        return;
    change[changes].at = (double)(event->at - breaker_begin) / 1e6;
    change[changes].from = event->from;
    change[changes++].to = event->to;
}

/* A server that is down from 800 to 2300 ms; one call every 20 ms, and three at a time while half open. */
static bool server_is_down(double ms)
{
    return ms >= 800 && ms < 2300;
}

static void breaker(void)
{
    static const char *const colour[] = { "#888", "#0a5", "#c33", "#e90", "#888", "#888", "#888" };
    double end = 4000;
    struct plot p;
    weir_store *store;
    weir_guard *guard;
    weir_breaker_state state = WEIR_CLOSED;
    double from = 0;

    changes = 0;
    weir_store_local(&store);
    breaker_begin = weir_now();
    if (weir_guard_new(&guard, store, "b",
                       WEIR_BREAKER(.window = 20, .failure_percent = 50, .probes = 3,
                                    .open_ns = 300 * MS, .open_growth = 2, .on_event = on_event),
                       NULL))
        weir_sim_fail("no breaker");
    plot_begin(&p, "breaker",
               "A breaker: opens at 50 % of 20 calls, waits 300, 600, 1200 ms, three probes decide",
               0, end, 500, "ms", 44 + 4 * ROW + 36);
    plot_label(&p, "server");
    plot_box(&p, 0, 800, "#0a5", "up");
    plot_box(&p, 800, 2300, "#c33", "down");
    plot_box(&p, 2300, end, "#0a5", "up");
    p.y += ROW;
    plot_label(&p, "calls made");
    plot_remark(&p, "red: failed");
    for (double t = 0; t < end; t += 20) {
        weir_permit permit = WEIR_PERMIT;
        int rc;
        weir_sleep(breaker_begin + (weir_time)(t * 1e6));
        rc = weir_guard_enter(&permit, guard, WEIR_NOW_OR_NEVER);
        if (rc == 0) {
            plot_tick(&p, t, server_is_down(t) ? "#c33" : "#0a5");
            weir_guard_leave(&permit, server_is_down(t) ? -ECONNREFUSED : 0);
        } else {
            p.y += ROW;
            plot_tick(&p, t, "#bbb");
            p.y -= ROW;
        }
    }
    p.y += ROW;
    plot_label(&p, "refused");
    p.y += ROW;
    plot_label(&p, "state");
    for (int i = 0; i < changes; i++) {
        plot_box(&p, from, change[i].at, colour[state], weir_breaker_state_name(state));
        from = change[i].at;
        state = change[i].to;
    }
    plot_box(&p, from, end, colour[state], weir_breaker_state_name(state));
    p.y += ROW;
    plot_end(&p);
    weir_guard_unref(guard);
    weir_store_free(store);
}

/* ---- an adaptive limit ------------------------------------------------------------------------------- */

static double y_of(double limit)
{
    return 204 - limit * 4;
}

/* A server that runs 20 calls at a time, then 8, then 20 again; calls that find it busy queue there. */
static void adaptive_line(struct plot *p, weir_guard_mode mode, const char *colour)
{
    weir_store *store;
    weir_guard *guard;
    int first = 1;

    weir_store_local(&store);
    if (weir_guard_new(
            &guard, store, "a",
            WEIR_ADAPTIVE(.mode = mode, .limit = 10, .limit_max = 60, .latency_ns = 15 * MS), NULL))
        weir_sim_fail("no guard");
    fprintf(p->file, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" d=\"", colour);
    for (int step = 0; step < 1500; step++) {
        int64_t capacity = step >= 500 && step < 1000 ? 8 : 20, limit;
        static weir_permit permit[64];
        weir_guard_stats s = { .size = sizeof(s) };
        weir_guard_stats_get(&s, guard);
        limit = s.limit;
        for (int64_t i = 0; i < limit; i++) {
            permit[i] = WEIR_PERMIT;
            if (weir_guard_enter(&permit[i], guard, WEIR_NOW_OR_NEVER))
                weir_sim_fail("full");
        }
        weir_sleep(weir_now() + (limit <= capacity ? 10 * MS : 10 * MS * limit / capacity));
        for (int64_t i = 0; i < limit; i++)
            weir_guard_leave(&permit[i], 0);
        fprintf(p->file, "%c%.1f %.1f ", first ? 'M' : 'L', x_of(p, step), y_of((double)limit));
        first = 0;
    }
    fprintf(p->file, "\"/>\n");
    weir_guard_unref(guard);
    weir_store_free(store);
}

static void adaptive(void)
{
    struct plot p;

    plot_begin(&p, "adaptive",
               "Adaptive limits on a server that takes 20, then 8, then 20 calls at a time (grey)",
               0, 1500, 250, "rounds", 240);
    for (int limit = 0; limit <= 40; limit += 10)
        fprintf(p.file,
                "<line x1=\"%d\" y1=\"%.0f\" x2=\"%d\" y2=\"%.0f\" stroke=\"#eee\"/>"
                "<text x=\"%d\" y=\"%.0f\" text-anchor=\"end\" fill=\"#666\">%d</text>\n",
                LEFT, y_of(limit), WIDTH - RIGHT, y_of(limit), LEFT - 8, y_of(limit) + 4, limit);
    fprintf(p.file,
            "<path fill=\"none\" stroke=\"#bbb\" stroke-width=\"6\" d=\"M%.0f %.0f L%.0f %.0f "
            "L%.0f %.0f L%.0f %.0f L%.0f %.0f L%.0f %.0f\"/>\n",
            x_of(&p, 0), y_of(20), x_of(&p, 500), y_of(20), x_of(&p, 500), y_of(8), x_of(&p, 1000),
            y_of(8), x_of(&p, 1000), y_of(20), x_of(&p, 1500), y_of(20));
    fprintf(p.file, "<text x=\"%d\" y=\"%.0f\" text-anchor=\"end\" fill=\"#666\">limit</text>\n",
            LEFT - 28, y_of(20) + 4);
    adaptive_line(&p, WEIR_GRADIENT, "#36c");
    adaptive_line(&p, WEIR_AIMD, "#c63");
    fprintf(p.file,
            "<text x=\"%d\" y=\"58\" fill=\"#36c\">gradient</text><text x=\"%d\" y=\"58\" "
            "fill=\"#c63\">AIMD</text><text x=\"%d\" y=\"58\" fill=\"#888\">what the server "
            "takes</text>\n",
            LEFT + 10, LEFT + 80, LEFT + 130);
    plot_end(&p);
}

static void all(void *arg)
{
    (void)arg;
    limiters("limiters",
             "10 calls per 100 ms: who is let in (green) and who is refused (short, red)", 0, 1000,
             100);
    limiters("burst",
             "The 30 calls around 500 ms, where one window or cycle ends and the next begins", 485,
             515, 5);
    waiting();
    breaker();
    adaptive();
}

int main(int argc, char **argv)
{
    weir_sim_report report = WEIR_SIM_REPORT;

    directory = argc > 1 ? argv[1] : NULL; /* none: only see whether all works */
    return weir_sim_run(&report, WEIR_SIM_OPTIONS(.seed = 1, .points_max = 1000000000), all,
                        NULL) != 0;
}
