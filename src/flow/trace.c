/* A run as a timeline: one slice per body, on as few tracks as there were bodies at a time, and an arrow per edge.
 *
 * Tracks are found afterwards: bodies in the order of their starts, each on the first track that is free. So bodies never
 * overlap on a track, and runs pay nothing for being drawn.
 * SPDX-License-Identifier: MIT */
#include "base/json.h"
#include "base/os.h"
#include "flow/look.h"
#include "flow/picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/error.h>

/* A body. */
struct slice {
    struct wr_run *run;
    uint32_t node;
    uint32_t track;
    weir_time from, to;
    char *name; /* with the path to its sub-flow */
};

struct slices {
    struct slice *slice;
    size_t count, room;
    bool failed;
};

/* ---- collecting ----------------------------------------------------------------------------------------- */

/* The path, the id and the end, one after the other. */
static char *name_of(const char *path, const char *id, const char *end)
{
    size_t size = strlen(path) + strlen(id) + strlen(end) + 1;
    char *name = malloc(size);

    if (name)
        snprintf(name, size, "%s%s%s", path, id, end);
    return name;
}

static struct slice *slice_add(struct slices *all)
{
    if (all->count == all->room) {
        size_t room = all->room ? all->room * 2 : 64;
        struct slice *larger = realloc(all->slice, room * sizeof(*larger));
        if (!larger)
            return NULL;
        all->slice = larger;
        all->room = room;
    }
    return &all->slice[all->count++];
}

static void collect_node(struct slices *all, struct wr_run *run, uint32_t n, const char *path,
                         weir_time now)
{
    weir_time from = wr_times_get(&run->times[n].started_at, now);
    weir_time to = wr_times_get(&run->times[n].ended_at, now);
    struct slice *slice = from && run->flow->body[n].fn ? slice_add(all) : NULL;

    if (slice)
        *slice = (struct slice){ .run = run,
                                 .node = n,
                                 .from = from,
                                 .to = to ? to : now,
                                 .name = name_of(path, wr_flow_node(run->flow, n)->id, "") };
    all->failed = all->failed || (slice ? !slice->name : from && run->flow->body[n].fn);
}

/* With its sub-runs, as deep as flows are nested. */
static void collect(struct slices *all, struct wr_run *run, const char *path, weir_time now)
{
    for (uint32_t n = 0; n < run->flow->count && !all->failed; n++) {
        struct wr_run *sub = wr_run_sub(run, n);
        char *inner;
        collect_node(all, run, n, path, now);
        if (!sub || !sub->times)
            continue;
        inner = name_of(path, wr_flow_node(run->flow, n)->id, "/");
        all->failed = all->failed || !inner;
        if (!inner)
            return;
        collect(all, sub, inner, now);
        free(inner);
    }
}

static int by_start(const void *a_arg, const void *b_arg)
{
    const struct slice *a = a_arg, *b = b_arg;

    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    return a->to < b->to ? -1 : a->to > b->to ? 1 : a->node < b->node ? -1 : a->node > b->node;
}

/* Answers how many tracks there are. */
static size_t find_tracks(struct slices *all)
{
    weir_time *free_at = calloc(all->count ? all->count : 1, sizeof(*free_at));
    size_t tracks = 0, track;

    if (!free_at) {
        all->failed = true;
        return 0;
    }
    if (all->count)
        qsort(all->slice, all->count, sizeof(all->slice[0]), by_start);
    for (size_t i = 0; i < all->count; i++) {
        for (track = 0; track < tracks && free_at[track] > all->slice[i].from; track++)
            ;
        tracks = track == tracks ? tracks + 1 : tracks;
        free_at[track] = all->slice[i].to;
        all->slice[i].track = (uint32_t)track + 1;
    }
    free(free_at);
    return tracks;
}

/* ---- writing --------------------------------------------------------------------------------------------- */

static void add_string(struct wr_text *text, const char *value)
{
    size_t size = 6 * strlen(value) + 3;
    char *quoted = malloc(size);

    if (!quoted) {
        text->failed = true;
        return;
    }
    quoted[wr_json_quote(quoted, size, value, strlen(value))] = '\0';
    wr_text_add(text, "%s", quoted);
    free(quoted);
}

static double us_since(weir_time began, weir_time when)
{
    return (double)(when - began) / 1e3;
}

static void add_slice(struct wr_text *text, const struct slice *s, weir_time began)
{
    weir_time ready = wr_times_get(&s->run->times[s->node].ready_at, WEIR_FOREVER);

    wr_text_add(text, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%u,\"ts\":%.3f,\"dur\":%.3f,\"name\":",
                s->track, us_since(began, s->from), us_since(s->from, s->to));
    add_string(text, s->name);
    wr_text_add(text, ",\"args\":{\"standing\":\"%s\",\"waited_us\":%.3f}}",
                wr_standing_name(s->run, s->node), us_since(ready, s->from));
}

static int by_node(const void *a_arg, const void *b_arg)
{
    const struct slice *a = *(const struct slice *const *)a_arg;
    const struct slice *b = *(const struct slice *const *)b_arg;

    if (a->run != b->run)
        return (uintptr_t)a->run < (uintptr_t)b->run ? -1 : 1;
    return a->node < b->node ? -1 : a->node > b->node;
}

/* An arrow from one body to another, which it was needed for. It begins inside of the first one's slice: viewers bind it to
 * what is there, and the end of one slice may be the start of the next. */
static void add_arrow(struct wr_text *text, const struct slice *from, const struct slice *to,
                      uint64_t number, weir_time began)
{
    weir_time left = (from->to < to->from ? from->to : to->from) - 1;

    left = left > from->from ? left : from->from;
    wr_text_add(text,
                ",\n{\"ph\":\"s\",\"pid\":1,\"tid\":%u,\"ts\":%.3f,\"id\":%llu,\"cat\":\"edge\","
                "\"name\":\"edge\"}",
                from->track, us_since(began, left), (unsigned long long)number);
    wr_text_add(text,
                ",\n{\"ph\":\"f\",\"bp\":\"e\",\"pid\":1,\"tid\":%u,\"ts\":%.3f,\"id\":%llu,"
                "\"cat\":\"edge\",\"name\":\"edge\"}",
                to->track, us_since(began, to->from), (unsigned long long)number);
}

/* One for each edge between two bodies, also of sub-runs. */
static void add_arrows(struct wr_text *text, const struct slices *all, weir_time began)
{
    const struct slice **found, **sorted = malloc((all->count + 1) * sizeof(*sorted));
    uint64_t number = 0;

    if (!sorted) {
        text->failed = true;
        return;
    }
    for (size_t i = 0; i < all->count; i++)
        sorted[i] = &all->slice[i];
    qsort(sorted, all->count, sizeof(*sorted), by_node);
    for (size_t i = 0; i < all->count; i++) {
        const struct slice *to = sorted[i];
        const struct weir_flow *flow = to->run->flow;
        for (uint32_t k = flow->in_at[to->node]; k < flow->in_at[to->node + 1]; k++) {
            const struct slice key = { .run = to->run, .node = flow->in[k] }, *up = &key;
            found = bsearch(&up, sorted, all->count, sizeof(*sorted), by_node);
            if (found && (*found)->from <= to->from) /* else it was not waited for */
                add_arrow(text, *found, to, ++number, began);
        }
    }
    free(sorted);
}

static void draw_slices(struct wr_text *text, struct slices *all, struct wr_run *run)
{
    size_t tracks = find_tracks(all);
    weir_time began = all->count ? all->slice[0].from : 0;

    for (uint32_t i = 0; i < run->flow->roots; i++) {
        weir_time ready = wr_times_get(&run->times[run->flow->root[i]].ready_at, WEIR_FOREVER);
        began = ready && ready < began ? ready : began;
    }
    wr_text_add(text, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
                      "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":");
    add_string(text, run->flow->name);
    wr_text_add(text, "}}");
    for (size_t i = 1; i <= tracks; i++)
        wr_text_add(text,
                    ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%zu,\"name\":\"thread_name\","
                    "\"args\":{\"name\":\"slot %zu\"}}",
                    i, i);
    for (size_t i = 0; i < all->count; i++)
        add_slice(text, &all->slice[i], began);
    add_arrows(text, all, began);
    wr_text_add(text, "\n]}\n");
}

void wr_trace_draw(struct wr_text *text, struct wr_run *run)
{
    struct slices all = { .slice = NULL };

    collect(&all, run, "", wr_os_now());
    if (!all.failed)
        draw_slices(text, &all, run);
    text->failed = text->failed || all.failed;
    for (size_t i = 0; i < all.count; i++)
        free(all.slice[i].name);
    free(all.slice);
}
