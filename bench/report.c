/* What was measured: a table to read, and JSON lines for programs.
 * SPDX-License-Identifier: MIT */
#include "bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static double figure_median(const struct bench_figure *figure)
{
    double sorted[BENCH_RUNS_MAX];

    memcpy(sorted, figure->value, figure->runs * sizeof(sorted[0]));
    return bench_median(sorted, figure->runs);
}

static double figure_best(const struct bench_figure *figure)
{
    bool more = strstr(figure->metric, "_per_s") != NULL;
    double best = figure->value[0];

    for (size_t i = 1; i < figure->runs; i++)
        if (more ? figure->value[i] > best : figure->value[i] < best)
            best = figure->value[i];
    return best;
}

/* ---- table ----------------------------------------------------------------------------------- */

/* Enough digits to see a difference of a percent. */
static void number_print(char *out, size_t size, double value)
{
    snprintf(out, size, "%.*f", value >= 1000 ? 0 : value >= 100 ? 1 : value >= 1 ? 2 : 3, value);
}

static bool is_whose(const struct bench_figure *figure, const char *whose)
{
    if (strcmp(whose, BENCH_BEST_PEER) != 0)
        return strcmp(figure->system, whose) == 0;
    return strcmp(figure->system, BENCH_WEIR) != 0 &&
           strcmp(figure->system, BENCH_REFERENCE) != 0 && strncmp(figure->system, "floor", 5) != 0;
}

/* What the target compares with; NULL if nobody measured it. */
static const struct bench_figure *rival_find(const struct bench_results *results,
                                             const struct bench_target *target)
{
    const char *metric = target->of ? target->of : target->metric;
    const struct bench_figure *best = NULL;

    for (size_t i = 0; i < results->count; i++) {
        const struct bench_figure *figure = &results->figure[i];
        if (strcmp(figure->workload, target->workload) == 0 &&
            strcmp(figure->metric, metric) == 0 && is_whose(figure, target->whose) &&
            (!best || figure_median(figure) < figure_median(best)))
            best = figure;
    }
    return best;
}

static bool is_for(const struct bench_target *target, const struct bench_figure *figure)
{
    return strcmp(figure->system, BENCH_WEIR) == 0 &&
           strcmp(target->workload, figure->workload) == 0 &&
           strcmp(target->metric, figure->metric) == 0;
}

/* " (0.7 x go-workers)": whose, if another system's; or what, if our own. */
static void factor_print(char *out, size_t size, const struct bench_target *target,
                         const struct bench_figure *rival)
{
    bool ours = target->of && strcmp(target->whose, BENCH_BEST_PEER) != 0;
    const char *name = ours ? rival->metric : rival->system;

    if (target->at_most + target->at_least == 1)
        snprintf(out, size, "  (%s)", name);
    else
        snprintf(out, size, "  (%g x %s)", target->at_most + target->at_least, name);
}

/* The limit that a target sets; false if nobody measured what it compares with. */
static bool limit_find(double *limit, const struct bench_figure **rival,
                       const struct bench_results *results, const struct bench_target *target)
{
    *limit = target->at_most + target->at_least; /* one of them is set */
    *rival = target->whose ? rival_find(results, target) : NULL;
    if (*rival)
        *limit *= figure_median(*rival);
    return *rival || !target->whose;
}

/* "<= 2.00  ok", or nothing where there is no target; of several the hardest. */
static void verdict_print(char *out, size_t size, const struct bench_results *results,
                          const struct bench_figure *figure)
{
    const struct bench_target *target = NULL;
    const struct bench_figure *rival = NULL, *other;
    char number[32], factor[64] = "";
    double limit = 0, another;

    out[0] = '\0';
    for (const struct bench_target *t = bench_targets; t->workload; t++)
        if (is_for(t, figure) && limit_find(&another, &other, results, t) &&
            (!target || (t->at_least ? another > limit : another < limit))) {
            target = t;
            rival = other;
            limit = another;
        }
    if (!target)
        return;
    if (rival)
        factor_print(factor, sizeof(factor), target, rival);
    number_print(number, sizeof(number), limit);
    if (target->at_least)
        snprintf(out, size, ">= %-6s  %s%s", number,
                 figure_median(figure) >= limit ? "ok" : "MISSED", factor);
    else
        snprintf(out, size, "<= %-6s  %s%s", number,
                 figure_median(figure) <= limit ? "ok" : "MISSED", factor);
}

static void row_print(const char *const column[7])
{
    printf("%-10s %-14s %-27s %10s %10s %5s", column[0], column[1], column[2], column[3], column[4],
           column[5]);
    printf("%s%s\n", column[6][0] ? "  " : "", column[6]);
}

void bench_table_print(const struct bench_results *results)
{
    row_print(
        (const char *[]){ "workload", "system", "metric", "median", "best", "runs", "target" });
    for (size_t i = 0; i < results->count; i++) {
        const struct bench_figure *figure = &results->figure[i];
        char median[32], best[32], runs[32], verdict[128];
        number_print(median, sizeof(median), figure_median(figure));
        number_print(best, sizeof(best), figure_best(figure));
        snprintf(runs, sizeof(runs), "%zu", figure->runs);
        verdict_print(verdict, sizeof(verdict), results, figure);
        row_print((const char *[]){ figure->workload, figure->system, figure->metric, median, best,
                                    runs, verdict });
    }
}

/* ---- JSON lines ------------------------------------------------------------------------------ */

/* Four decimals, without zeros that say nothing. */
static void json_number(FILE *file, double value)
{
    char text[64];
    size_t length = (size_t)snprintf(text, sizeof(text), "%.4f", value);

    while (length > 1 && text[length - 1] == '0')
        length--;
    if (text[length - 1] == '.')
        length--;
    fprintf(file, "%.*s", (int)length, text);
}

static void json_line(FILE *file, const struct bench_figure *figure)
{
    fprintf(file, "{\"workload\":\"%s\",\"system\":\"%s\",\"metric\":\"%s\",\"median\":",
            figure->workload, figure->system, figure->metric);
    json_number(file, figure_median(figure));
    fprintf(file, ",\"best\":");
    json_number(file, figure_best(figure));
    fprintf(file, ",\"runs\":%zu}\n", figure->runs);
}

/* Copies the lines of `path` that are not of workload `but`. They are ours, so they all begin alike. */
static void json_keep(FILE *to, const char *path, const char *but)
{
    FILE *from = fopen(path, "r");
    char *line = NULL, start[BENCH_NAME_MAX + 32];
    size_t size = 0;
    ssize_t length;

    if (!from)
        return;
    snprintf(start, sizeof(start), "{\"workload\":\"%s\",", but);
    while ((length = getline(&line, &size, from)) > 0)
        if (strncmp(line, start, strlen(start)) != 0)
            fprintf(to, "%s%s", line, line[length - 1] == '\n' ? "" : "\n");
    free(line);
    fclose(from);
}

int bench_json_write(const char *path, const struct bench_results *results, const char *only)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size), *file = NULL;
    int rc = 0;

    if (!memory)
        return -errno;
    if (only)
        json_keep(memory, path, only);
    for (size_t i = 0; i < results->count; i++)
        json_line(memory, &results->figure[i]);
    if (fclose(memory) || !(file = fopen(path, "w")) || fwrite(text, 1, size, file) != size)
        rc = -errno;
    if (file && fclose(file) && !rc)
        rc = -errno;
    free(text);
    return rc;
}
