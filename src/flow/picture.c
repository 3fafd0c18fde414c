/* Pictures of flows and runs: Graphviz and Mermaid. Timelines are in trace.c.
 * SPDX-License-Identifier: MIT */
#include "flow/picture.h"

#include "flow/look.h"

#include <stdlib.h>
#include <string.h>
#include <weir/error.h>

/* ---- what both show ------------------------------------------------------------------------------------ */

/* Colours by standing: first the name that wr_standing_name gives. */
static const struct colour {
    const char *standing, *fill, *line;
} colours[] = {
    { "waiting", "#ffffff", "#888888" },   { "ready", "#fff4c2", "#b58900" },
    { "running", "#cfe8ff", "#1f6feb" },   { "done", "#d7f5dd", "#2da44e" },
    { "failed", "#ffd8d3", "#cf222e" },    { "timed out", "#ffe3c2", "#bc4c00" },
    { "cancelled", "#eeeeee", "#57606a" }, { "rejected", "#ffd8d3", "#cf222e" },
    { "skipped", "#f6f8fa", "#8c959f" },
};

static const struct colour *colour_of(struct wr_run *run, uint32_t n)
{
    const char *standing = wr_standing_name(run, n);
    size_t i = 0;

    while (i + 1 < sizeof(colours) / sizeof(colours[0]) &&
           strcmp(colours[i].standing, standing) != 0)
        i++;
    return &colours[i];
}

/* "10.0 ms": how long its body ran; nothing if that is not known. */
static void add_time(struct wr_text *text, struct wr_run *run, uint32_t n)
{
    weir_node_result result;

    wr_node_result(&result, run, n);
    if (result.started_at && result.ended_at)
        wr_text_add(text, " %.1f ms", (double)(result.ended_at - result.started_at) / 1e6);
}

static bool is_sub_flow(const struct weir_flow *flow, uint32_t n)
{
    return !flow->body[n].fn;
}

/* What an edge says, if it is not a plain must. */
static void add_need(struct wr_text *text, const struct weir_flow *flow, uint32_t i)
{
    uint8_t kind = flow->out_kind[i];
    const struct wr_extra *extra = wr_flow_node(flow, wr_target(flow->out[i]))->extra;

    wr_text_add(text, "%s", wr_need_name(kind));
    if (kind == WEIR_AT_LEAST)
        wr_text_add(text, " %u", extra->options.at_least);
}

/* Ids may contain what would end a line there, or worse. */
static char without_controls(char byte)
{
    return (unsigned char)byte < ' ' || byte == 127 ? ' ' : byte;
}

/* ---- Graphviz -------------------------------------------------------------------------------------------- */

/* Graphviz reads entities in labels. */
static void add_quoted(struct wr_text *text, const char *id)
{
    for (; *id; id++) {
        if (*id == '"' || *id == '\\')
            wr_text_add(text, "\\");
        wr_text_add(text, "%c%s", without_controls(*id), *id == '&' ? "amp;" : "");
    }
}

static void dot_node(struct wr_text *text, const struct weir_flow *flow, struct wr_run *run,
                     uint32_t n)
{
    wr_text_add(text, "    n%u [label=\"", n);
    add_quoted(text, wr_flow_node(flow, n)->id);
    if (run) {
        wr_text_add(text, "\\n%s", wr_standing_name(run, n));
        add_time(text, run, n);
        wr_text_add(text, "\", fillcolor=\"%s\", color=\"%s", colour_of(run, n)->fill,
                    colour_of(run, n)->line);
    }
    wr_text_add(text, "\"%s];\n", is_sub_flow(flow, n) ? ", shape=box3d" : "");
}

static void dot_edge(struct wr_text *text, const struct weir_flow *flow, uint32_t n, uint32_t i)
{
    wr_text_add(text, "    n%u -> n%u", n, wr_target(flow->out[i]));
    if (flow->out_kind[i] != WEIR_MUST) {
        wr_text_add(text, " [style=dashed, label=\"");
        add_need(text, flow, i);
        wr_text_add(text, "\"]");
    }
    wr_text_add(text, ";\n");
}

static void draw_dot(struct wr_text *text, const struct weir_flow *flow, struct wr_run *run)
{
    wr_text_add(text, "digraph \"");
    add_quoted(text, flow->name);
    wr_text_add(text, "\" {\n    rankdir=LR;\n    node [shape=box, style=\"rounded,filled\", "
                      "fillcolor=\"#ffffff\"];\n");
    for (uint32_t n = 0; n < flow->count; n++)
        dot_node(text, flow, run, n);
    for (uint32_t n = 0; n < flow->count; n++)
        for (uint32_t i = flow->hot[n].out_at; i < flow->hot[n + 1].out_at; i++)
            dot_edge(text, flow, n, i);
    wr_text_add(text, "}\n");
}

/* ---- Mermaid ---------------------------------------------------------------------------------------------- */

/* Mermaid reads entity codes in quoted labels. */
static void add_entities(struct wr_text *text, const char *id)
{
    for (; *id; id++) {
        if (*id == '"' || *id == '#' || *id == '<' || *id == '>' || *id == '&' || *id == ';' ||
            *id == '`')
            wr_text_add(text, "#%d;", *id);
        else
            wr_text_add(text, "%c", without_controls(*id));
    }
}

static void mermaid_node(struct wr_text *text, const struct weir_flow *flow, struct wr_run *run,
                         uint32_t n)
{
    bool sub = is_sub_flow(flow, n);

    wr_text_add(text, "    n%u%s\"", n, sub ? "[[" : "(");
    add_entities(text, wr_flow_node(flow, n)->id);
    if (run) {
        wr_text_add(text, "<br>%s", wr_standing_name(run, n));
        add_time(text, run, n);
    }
    wr_text_add(text, "\"%s\n", sub ? "]]" : ")");
    if (run)
        wr_text_add(text, "    style n%u fill:%s,stroke:%s\n", n, colour_of(run, n)->fill,
                    colour_of(run, n)->line);
}

static void mermaid_edge(struct wr_text *text, const struct weir_flow *flow, uint32_t n, uint32_t i)
{
    if (flow->out_kind[i] == WEIR_MUST) {
        wr_text_add(text, "    n%u --> n%u\n", n, wr_target(flow->out[i]));
        return;
    }
    wr_text_add(text, "    n%u -. \"", n);
    add_need(text, flow, i);
    wr_text_add(text, "\" .-> n%u\n", wr_target(flow->out[i]));
}

static void draw_mermaid(struct wr_text *text, const struct weir_flow *flow, struct wr_run *run)
{
    wr_text_add(text, "flowchart LR\n");
    for (uint32_t n = 0; n < flow->count; n++)
        mermaid_node(text, flow, run, n);
    for (uint32_t n = 0; n < flow->count; n++)
        for (uint32_t i = flow->hot[n].out_at; i < flow->hot[n + 1].out_at; i++)
            mermaid_edge(text, flow, n, i);
}

/* ---- the calls --------------------------------------------------------------------------------------------- */

static int draw(char **out, struct weir_flow *flow, struct wr_run *run, weir_picture format)
{
    struct wr_text text = { .text = NULL };

    switch (format) {
    case WEIR_PICTURE_DOT:
        draw_dot(&text, flow, run);
        break;
    case WEIR_PICTURE_MERMAID:
        draw_mermaid(&text, flow, run);
        break;
    case WEIR_PICTURE_TRACE:
        if (!run || !run->times)
            return WEIR_EINVAL;
        wr_trace_draw(&text, run);
        break;
    default:
        return WEIR_EINVAL;
    }
    if (text.failed) {
        free(text.text);
        return WEIR_ENOMEM;
    }
    *out = text.text;
    return 0;
}

int weir_flow_picture(char **text, weir_flow *flow, weir_picture format)
{
    int rc;

    if (!text || !flow)
        return WEIR_EINVAL;
    *text = NULL;
    rc = wr_flow_freeze(flow, NULL);
    return rc ? rc : draw(text, flow, NULL, format);
}

int weir_run_picture(char **text, weir_task *task, weir_picture format)
{
    struct wr_run *run = wr_run_of(task);

    if (!text || !run)
        return WEIR_EINVAL;
    *text = NULL;
    return draw(text, run->flow, run, format);
}
