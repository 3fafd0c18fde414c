/* The live display: a table of groups with their total, or a bar with a sentence below it.
 * SPDX-License-Identifier: MIT */
#include "cli/screen/view.h"

#include "cli/screen/glyph.h"
#include "cli/screen/view_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Drops the noun if it does not fit. */
static void put_more(struct page *page, uint64_t count, const char *what)
{
    char text[64];
    int length = snprintf(text, sizeof(text), "%s and %llu more", page->utf8 ? "…" : "...",
                          (unsigned long long)count);

    if (glyph_columns(text, page->utf8) + (int)strlen(what) + 1 <= page->columns)
        snprintf(text + length, sizeof(text) - (size_t)length, "%s%s", what,
                 *what && count != 1 ? "s" : "");
    page_style(page, DIM);
    page_cut(page, text, page->columns, false);
    page_unstyle(page, DIM);
    page_end_line(page);
}

/* ---- the sentence: what the total is, part by part ----------------------------------------------- */

enum part { P_DONE, P_FAILED, P_RUNNING, P_WAITING, P_RATE, P_ELAPSED, P_ETA, PARTS };

struct sentence {
    char part[PARTS][48]; /* empty: left out */
};

static struct sentence sentence_of(const struct view *view, const struct row *total)
{
    const struct view_group *counts = &view->total;
    struct sentence s = { 0 };
    struct table full = { .full_max = UINT64_MAX };
    char figure[48];

    table_show_cell(figure, &full, total, DONE);
    snprintf(s.part[P_DONE], sizeof(s.part[0]), "%.40s done", figure);
    if (counts->failed > 0)
        snprintf(s.part[P_FAILED], sizeof(s.part[0]), "%llu failed",
                 (unsigned long long)counts->failed);
    table_show_cell(figure, &full, total, RUNNING);
    if (*figure)
        snprintf(s.part[P_RUNNING], sizeof(s.part[0]), "%.38s running", figure);
    if (counts->waiting > 0)
        snprintf(s.part[P_WAITING], sizeof(s.part[0]), "%llu waiting",
                 (unsigned long long)counts->waiting);
    table_show_cell(s.part[P_RATE], &full, total, RATE);
    row_show_seconds(s.part[P_ELAPSED], view->elapsed_ns);
    if (view->eta_ns >= 0) {
        row_show_seconds(figure, view->eta_ns);
        snprintf(s.part[P_ETA], sizeof(s.part[0]), "eta %s%.40s", total->estimate ? "~" : "",
                 figure);
    }
    return s;
}

static const char *separator(bool utf8)
{
    return utf8 ? " · " : ", ";
}

/* How many lines it takes, parts not being broken; `end` gets the columns of the last. */
static int lines_of(const struct sentence *s, int columns, bool utf8, int *end)
{
    int between = utf8 ? 3 : 2, lines = 0, at = 0;

    for (int i = 0; i < PARTS; i++) {
        int length = (int)strlen(s->part[i]);
        if (length == 0)
            continue;
        if (lines == 0 || at + between + length > columns) {
            lines++;
            at = length;
        } else {
            at += between + length;
        }
    }
    *end = at;
    return lines;
}

/* Leaves out parts until it takes no more than `lines`. */
static int shorten(struct sentence *s, int columns, bool utf8, int lines)
{
    static const enum part least_first[] = { P_RATE, P_ELAPSED, P_WAITING, P_RUNNING,
                                             P_ETA,  P_FAILED,  P_DONE };
    int end;

    for (size_t i = 0; i < PARTS && lines_of(s, columns, utf8, &end) > lines; i++)
        s->part[least_first[i]][0] = '\0';
    return lines_of(s, columns, utf8, &end);
}

static const char *part_style(int part)
{
    return part == P_DONE ? BOLD : part == P_FAILED ? RED : part == P_RUNNING ? CYAN : PLAIN;
}

static void put_sentence(struct page *page, const struct sentence *s)
{
    const char *between = separator(page->utf8);
    int width = page->utf8 ? 3 : 2;

    for (int i = 0; i < PARTS; i++) {
        int length = (int)strlen(s->part[i]);
        if (length == 0)
            continue;
        if (page->at > 0 && page->at + width + length > page->columns) {
            page_end_line(page);
        } else if (page->at > 0) {
            page_style(page, DIM);
            page_text(page, between, width);
            page_unstyle(page, DIM);
        }
        page_style(page, part_style(i));
        page_text(page, s->part[i], page->columns);
        page_unstyle(page, part_style(i));
    }
}

/* Behind the sentence, in as many words as fit there; on a line of its own if there is none. */
static void put_hint(struct page *page, const struct view *view)
{
    const char *hint = view->why_count > 0 ? "w: hide the reasons" : "w: what waits and why";
    int between = page->at == 0 ? 0 : page->utf8 ? 3 : 2;
    int room = page->columns - page->at - between, length;

    if ((int)strlen(hint) > room)
        hint = view->why_count > 0 ? "w: hide" : "w: why";
    length = (int)strlen(hint);
    if (length > room)
        return;
    page_style(page, DIM);
    if (between)
        page_text(page, separator(page->utf8), between);
    page_text(page, hint, length);
    page_unstyle(page, DIM);
}

/* ---- reasons ------------------------------------------------------------------------------------- */

/* Where a line of at most `columns` ends and the next begins: at a space, if there is one. */
static const char *wrap(const char *text, int columns, bool utf8, const char **next)
{
    const char *at = text, *space = NULL;
    struct glyph glyph;
    int used = 0;

    for (;;) {
        const char *before = at;
        if (!glyph_next(&glyph, &at, utf8))
            return *next = before;
        if (*before == ' ' && before > text)
            space = before;
        if (used + glyph.columns > columns) {
            if (!space)
                return *next = before > text ? before : at; /* not even one fits: it is lost */
            *next = space + 1;
            return space;
        }
        used += glyph.columns;
    }
}

enum { REASON_LINES_MAX = 3, INDENT = 2 };

/* One reason over a few lines; true if all of `lines` was enough. Only counts without a page. */
static int reason_lines(struct page *page, const char *text, int lines, bool write)
{
    int count = 0;

    do {
        int indent = count > 0 ? 2 * INDENT : INDENT;
        int columns = larger(page->columns - indent, 1);
        const char *next, *end = wrap(text, columns, page->utf8, &next);

        count++;
        if (write) {
            page_spaces(page, indent);
            if (count == lines)
                page_cut(page, text, columns, false);
            else
                for (struct glyph glyph; text < end && glyph_next(&glyph, &text, page->utf8);)
                    page_text(page, glyph.bytes, glyph.columns);
            page_end_line(page);
        }
        text = next;
    } while (*text && count < lines);
    return count;
}

/* How many of `max` lines the reasons take. */
static int lines_for_reasons(struct page *page, const struct view *view, int max)
{
    int lines = 0;

    for (size_t i = 0; i < view->why_count && lines < max; i++)
        lines += reason_lines(page, view->why[i], REASON_LINES_MAX, false);
    return smaller(lines + (view->why_others > 0), max);
}

/* The last line tells how many more there are, if they do not all fit. */
static void put_reasons(struct page *page, const struct view *view, int max)
{
    for (size_t i = 0; i < view->why_count && max > 0; i++) {
        int lines = reason_lines(page, view->why[i], REASON_LINES_MAX, false);
        bool last = i + 1 == view->why_count && !view->why_others;
        if (lines > max || (!last && lines == max)) {
            if (i > 0 || max == 1) {
                put_more(page, view->why_count - i + view->why_others, "");
                return;
            }
            lines = last ? max : max - 1;
        }
        max -= reason_lines(page, view->why[i], lines, true);
    }
    if (view->why_others && max > 0)
        put_more(page, view->why_others, "");
}

/* ---- the whole ----------------------------------------------------------------------------------- */

/* How the lines of a page are given to its parts. */
struct plan {
    int sentence, phase, reasons;
    bool hint, header, more;
    size_t groups;
};

static void plan_groups(struct plan *plan, const struct view *view, int left)
{
    if (!view->grouped || left <= 0 || (view->count == 0 && view->others == 0))
        return;
    plan->header = left >= 4 && view->count > 0;
    left -= plan->header;
    plan->groups = view->count;
    plan->more = view->others > 0 || view->count > (size_t)left;
    if (view->count > (size_t)(left - plan->more))
        plan->groups = (size_t)(left - plan->more);
}

static void put_groups(struct page *page, const struct view *view, const struct plan *plan,
                       const struct table *table)
{
    if (plan->header)
        table_put_header(page, table);
    for (size_t i = 0; i < plan->groups; i++) {
        struct row row = row_of_group(&view->groups[i]);
        table_put_row(page, table, &row);
    }
    if (plan->more)
        put_more(page, view->count - plan->groups + view->others, " group");
}

/* The bar over the whole width and what it means. */
static void put_summary_bar(struct page *page, const struct row *total)
{
    char percent[8];

    row_show_percent(percent, total);
    row_put_bar(page, total, larger(smaller(page->columns - 6, 72), 1));
    page_right(page, percent, 6, BOLD);
    page_end_line(page);
}

/* What the table does not show of the total is said below it. */
static void leave_to_table(struct sentence *s, const struct table *table)
{
    static const enum column shown_in[PARTS] = {
        DONE, FAILED, RUNNING, WAITING, RATE, STATE, STATE
    };

    for (int i = 0; i < PARTS; i++)
        if (table->width[shown_in[i]] > 0)
            s->part[i][0] = '\0';
}

/* Both times for the table, or the one that matters more if they are uncommonly long. */
static void show_times(char *out, size_t size, const struct sentence *s, bool utf8)
{
    const char *elapsed = s->part[P_ELAPSED], *eta = s->part[P_ETA];

    snprintf(out, size, "%s%s%s", elapsed, *eta ? separator(utf8) : "", eta);
    if (*eta && glyph_columns(out, utf8) > STATE_COLUMNS)
        snprintf(out, size, "%s", eta);
}

static void put_phase(struct page *page, const char *phase)
{
    page_style(page, YELLOW);
    page_cut(page, phase, page->columns, false);
    page_unstyle(page, YELLOW);
    page_end_line(page);
}

static void render(struct page *page, const struct view *view, const struct view_look *look)
{
    struct row total = row_of_total(view, "");
    struct sentence sentence = sentence_of(view, &total);
    bool tabular = view->grouped && view->count > 0;
    struct table table = { 0 };
    struct plan plan = { 0 };
    char times[104];
    int left = page->left, bar = tabular || total.of > 0;

    show_times(times, sizeof(times), &sentence, page->utf8);
    total.state = times;
    if (tabular) {
        table =
            table_for(view, look,
                      view->count < (size_t)page->left ? view->count : (size_t)page->left, &total);
        leave_to_table(&sentence, &table);
    } else if (left < 2) {
        bar = 0;
    }
    left -= bar;
    plan.sentence =
        shorten(&sentence, page->columns, page->utf8, smaller(left, 1 + smaller(left / 4, 3)));
    plan.hint = look->keys && (plan.sentence > 0 || left > 8);
    left -= larger(plan.sentence, plan.hint);
    plan.phase = view->phase && *view->phase && left > 0;
    left -= plan.phase;
    plan.reasons = lines_for_reasons(page, view, tabular ? (left + 1) / 2 : left);
    plan_groups(&plan, view, left - plan.reasons);

    put_groups(page, view, &plan, &table);
    if (tabular)
        table_put_row(page, &table, &total);
    else if (bar)
        put_summary_bar(page, &total);
    put_sentence(page, &sentence);
    if (plan.hint)
        put_hint(page, view);
    if (page->at > 0)
        page_end_line(page);
    if (plan.phase)
        put_phase(page, view->phase);
    put_reasons(page, view, plan.reasons);
}

void view_render(struct view_text *out, const struct view *view, const struct view_look *look)
{
    struct page page = { .out = out,
                         .color = look->color,
                         .utf8 = look->utf8,
                         .columns = look->width - 1,
                         .left = look->height - 1 };

    page_begin(&page);
    if (page.columns > 0 && page.left > 0)
        render(&page, view, look);
    page_finish(&page);
}

void view_render_plain(struct view_text *out, const struct view *view)
{
    struct page page = { .out = out, .utf8 = MB_CUR_MAX > 1, .columns = INT32_MAX, .left = 1 };
    const struct view_group *counts = &view->total;
    char text[256], of[48] = "", rate[24], eta[16];
    struct row total = row_of_total(view, "");

    page_begin(&page);
    if (total.of > 0)
        snprintf(of, sizeof(of), " of %s%llu", total.estimate ? "about " : "",
                 (unsigned long long)total.of);
    row_show_rate(rate, sizeof(rate), counts->per_second);
    snprintf(text, sizeof(text), "weir: %llu%s done, %llu failed, %llu running, %llu waiting, %s",
             (unsigned long long)counts->done, of, (unsigned long long)counts->failed,
             (unsigned long long)counts->running, (unsigned long long)counts->waiting, rate);
    page_text(&page, text, page.columns);
    if (view->eta_ns >= 0) {
        row_show_seconds(eta, view->eta_ns);
        page_text(&page, ", eta ", page.columns);
        page_text(&page, eta, page.columns);
    }
    if (view->phase && *view->phase) {
        page_text(&page, "; ", page.columns);
        page_text(&page, view->phase, page.columns);
    }
    page_end_line(&page);
    page_finish(&page);
}
