/* Looking at a run from outside: results by id, figures.
 * SPDX-License-Identifier: MIT */
#include "flow/look.h"
#include "base/options.h"

#include <string.h>
#include <weir/error.h>

struct wr_run *wr_run_sub(struct wr_run *run, uint32_t n)
{
    struct wr_run *sub = NULL;
    struct wr_own *own;

    wr_lock(&run->lock);
    own = run->added_by ? run->added_by[n] : NULL;
    if (!own)
        own = wr_own_of(run, n);
    if (own && own->task)
        sub = wr_run_of(own->task);
    wr_unlock(&run->lock);
    return sub;
}

/* An id may have a slash in it: the longest one that there is, and then the rest. */
bool wr_run_find(struct wr_run **run, uint32_t *n, const char *id)
{
    for (;;) {
        const char *end = id + strlen(id);
        weir_node *node = wr_flow_find((*run)->flow, id, (size_t)(end - id));
        if (node) {
            *n = node->index;
            return true;
        }
        while (!node && end > id)
            if (*--end == '/')
                node = wr_flow_find((*run)->flow, id, (size_t)(end - id));
        if (!node || !(*run = wr_run_sub(*run, node->index)))
            return false;
        id = end + 1;
    }
}

int weir_run_result(weir_node_result *out, weir_task *task, const char *id)
{
    struct wr_run *run = wr_run_of(task);
    weir_node_result result;
    uint32_t n;

    if (!out || !run || !id || !wr_run_find(&run, &n, id))
        return WEIR_EINVAL;
    wr_node_result(&result, run, n);
    return wr_options_store(out, &result, sizeof(result));
}

static void count_node(weir_run_stats *stats, uint64_t word)
{
    switch (wr_word_outcome(word)) {
    case WEIR_DONE:
        stats->succeeded++;
        break;
    case WEIR_FAILED:
        stats->failed++;
        break;
    case WEIR_CANCELLED:
        stats->cancelled++;
        break;
    case WEIR_REJECTED:
        stats->rejected++;
        break;
    case WEIR_TIMED_OUT:
        stats->timed_out++;
        break;
    case WEIR_SKIPPED:
        stats->skipped++;
        break;
    default:
        stats->ready += !!(word & WR_READY);
        stats->waiting += wr_word_waits(word);
        stats->running += !(word & (WR_READY | WR_DECIDING)) && !(word & WR_COUNTER);
    }
}

int weir_run_stats_get(weir_run_stats *out, weir_task *task)
{
    struct wr_run *run = wr_run_of(task);
    weir_run_stats stats = { .size = sizeof(stats) };
    uint32_t held;

    if (!out || !run)
        return WEIR_EINVAL;
    stats.nodes = run->flow->count;
    stats.bytes = run->bytes;
    for (uint32_t n = 0; n < run->flow->count; n++)
        count_node(&stats, wr_load(&run->plan.word[n], relaxed));
    held = wr_turn_holds(run, WR_NODE_NONE);
    held = held < stats.running ? held : (uint32_t)stats.running;
    stats.ready += held;
    stats.running -= held;
    return wr_options_store(out, &stats, sizeof(stats));
}

enum wr_standing wr_run_standing(struct wr_run *run, uint32_t n)
{
    uint64_t word = wr_load(&run->plan.word[n], acquire);

    if (wr_word_outcome(word) || word & WR_DECIDING)
        return WR_STANDS_ENDED;
    if (word & WR_COUNTER)
        return WR_STANDS_WAITING;
    return word & WR_READY || wr_turn_holds(run, n) ? WR_STANDS_READY : WR_STANDS_RUNNING;
}

const char *wr_standing_name(struct wr_run *run, uint32_t n)
{
    static const char *const outcome[] = { "ended",    "done",      "failed", "cancelled",
                                           "rejected", "timed out", "skipped" };

    switch (wr_run_standing(run, n)) {
    case WR_STANDS_WAITING:
        return "waiting";
    case WR_STANDS_READY:
        return "ready";
    case WR_STANDS_RUNNING:
        return "running";
    default:
        return outcome[wr_word_outcome(wr_load(&run->plan.word[n], acquire))];
    }
}

const char *wr_need_name(uint8_t kind)
{
    static const char *const name[] = { "must",     "optional", "any",
                                        "at_least", "after",    "none_failed" };

    return name[kind];
}
