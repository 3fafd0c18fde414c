/* Figures and bars of the view.
 * SPDX-License-Identifier: MIT */
#include "cli/screen/view_row.h"

#include "cli/opt/quantity.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static uint64_t sum(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

void row_show_count(char *out, size_t size, uint64_t n, uint64_t full_max)
{
    static const char units[] = "kMGTPE";
    uint64_t whole = n / 1000, rest = n % 1000;
    int unit = 0;

    if (n <= full_max) {
        snprintf(out, size, "%llu", (unsigned long long)n);
        return;
    }
    for (; whole >= 1000; unit++) {
        rest = whole % 1000;
        whole /= 1000;
    }
    if (whole >= 100)
        snprintf(out, size, "%u%c", (unsigned)whole, units[unit]);
    else if (whole >= 10)
        snprintf(out, size, "%u.%u%c", (unsigned)whole, (unsigned)rest / 100, units[unit]);
    else
        snprintf(out, size, "%u.%02u%c", (unsigned)whole, (unsigned)rest / 10, units[unit]);
}

void row_show_rate(char *out, size_t size, double per_second)
{
    char count[16];

    if (!isfinite(per_second) || per_second * 3600 < 0.05)
        snprintf(out, size, "0/s");
    else if (per_second >= 1e18)
        snprintf(out, size, "999P/s");
    else if (per_second >= 1000) {
        row_show_count(count, sizeof(count), (uint64_t)per_second, 999);
        snprintf(out, size, "%s/s", count);
    } else if (per_second >= 99.95)
        snprintf(out, size, "%.0f/s", per_second);
    else if (per_second >= 0.095)
        snprintf(out, size, "%.1f/s", per_second);
    else if (per_second * 60 >= 0.095)
        snprintf(out, size, "%.1f/m", per_second * 60);
    else
        snprintf(out, size, "%.1f/h", per_second * 3600);
}

void row_show_seconds(char out[16], int64_t ns)
{
    const int64_t second = 1000000000;

    if (ns < second)
        memcpy(out, "0s", 3);
    else
        quantity_show_duration(out, ns / second * second);
}

static uint64_t known_so_far(const struct view_group *counts)
{
    return sum(sum(counts->done, counts->not_run), sum(counts->running, counts->waiting));
}

struct row row_of_group(const struct view_group *group)
{
    return (struct row){ .name = group->key && *group->key ? group->key : "(none)",
                         .counts = group,
                         .of = known_so_far(group),
                         .state = group->state ? group->state : "" };
}

/* An estimate may have been overtaken by what has come. */
struct row row_of_total(const struct view *view, const char *state)
{
    uint64_t known = known_so_far(&view->total);

    return (struct row){ .name = "total",
                         .counts = &view->total,
                         .of =
                             view->expected == 0 || view->expected > known ? view->expected : known,
                         .estimate = view->expected_is_estimate && view->expected > known,
                         .state = state,
                         .total = true };
}

void row_show_percent(char out[8], const struct row *row)
{
    uint64_t percent = 100;

    out[0] = '\0';
    if (row->of == 0)
        return;
    if (row->counts->done < row->of) {
        percent = (uint64_t)((double)row->counts->done / (double)row->of * 100);
        percent = percent > 99 ? 99 : percent;
    }
    snprintf(out, 8, "%s%u%%", row->estimate ? "~" : "", (unsigned)percent);
}

/* How `cells` are shared out: heavy for what has ended (the last of them red for what has failed),
 * light for what runs, dotted for what waits. Ended ones are told to half a cell. */
struct bar {
    int ended, failed, running, waiting; /* whole cells               */
    bool half;                           /* one more cell, half ended */
};

static double part_of(uint64_t n, double of)
{
    return (double)n < of ? (double)n / of : 1;
}

/* A single task in a thousand is still to be seen: whatever there is takes a cell if there is room,
 * and the bar is not full before everything has ended. */
static struct bar share_out(const struct row *row, int cells)
{
    const struct view_group *counts = row->counts;
    double of = row->of ? (double)row->of : 1;
    double ended = part_of(counts->done, of), running = part_of(counts->running, of);
    double failed = part_of(counts->failed, of);
    struct bar bar = { 0 };
    int halves, reach, used;

    halves = ended >= 1 ? 2 * cells : (int)(ended * 2 * cells);
    if (counts->done < row->of)
        halves = smaller(halves, 2 * cells - 1);
    if (counts->done > 0)
        halves = larger(halves, 1);
    bar.half = halves % 2;
    bar.ended = halves / 2;
    used = bar.ended + bar.half;
    if (counts->failed > 0)
        bar.failed = smaller(larger((int)(failed * cells + 0.5), 1), used);
    if (counts->running > 0) {
        reach = smaller((int)((ended + running) * cells + 0.99), cells);
        if (counts->done < row->of - counts->running && reach == cells)
            reach--;
        bar.running = larger(smaller(larger(reach - used, 1), cells - used), 0);
    }
    bar.waiting = cells - used - bar.running;
    return bar;
}

void row_put_bar(struct page *page, const struct row *row, int cells)
{
    struct bar bar = share_out(row, cells);
    const char *heavy = page->utf8 ? "━" : "=", *light = page->utf8 ? "─" : "-";
    const char *dotted = page->utf8 ? "┈" : ".", *half;
    int red = bar.failed - bar.half;

    if (page->utf8)
        half = bar.running > 0 ? "╾" : "╸";
    else
        half = bar.ended == 0 || bar.running == 0 ? "=" : "-";
    red = larger(red, 0);
    if (bar.ended > red) {
        page_style(page, GREEN);
        page_mark(page, heavy, bar.ended - red);
        page_unstyle(page, GREEN);
    }
    if (red > 0 || bar.half) {
        const char *style = bar.failed > 0 ? RED : GREEN;
        page_style(page, style);
        page_mark(page, heavy, red);
        page_mark(page, half, bar.half);
        page_unstyle(page, style);
    }
    if (bar.running > 0) {
        page_style(page, CYAN);
        page_mark(page, light, bar.running);
        page_unstyle(page, CYAN);
    }
    if (bar.waiting > 0) {
        page_style(page, DIM);
        page_mark(page, dotted, bar.waiting);
        page_unstyle(page, DIM);
    }
}
