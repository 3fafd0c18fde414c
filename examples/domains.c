/* Domains at work, as a picture: a burst, lending, recall and the return to normal.
 *
 *     build/release/examples/domains > domains.svg
 *
 * Two kinds of work share twelve slots. "batch" has four; "live" has six, reserved; two are left to the
 * default domain. batch is flooded, so live's idle slots are lent to it; then live bursts, and gets them
 * back as batch's tasks end. The listener is told of every start and end, asks the ledger, and what it writes
 * down is drawn. The program checks what it shows, so the test suite runs it too.
 * SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir.h>

#define MUST(condition)    \
    ((condition) ? (void)0 \
                 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition), exit(1)))

enum { DOMAINS = 3, SLOTS = 12, SAMPLES = 4096, BODY_MS = 40, BURST_AT_MS = 420, END_MS = 900 };

static const char *const name[DOMAINS] = { "batch", "live", "default" };
static const char *const colour[DOMAINS] = { "#3b7dd8", "#e07b39", "#6b9e4a" };

/* What the ledger said at one moment. */
struct sample {
    double ms;
    weir_domain_stats domain[DOMAINS];
};

struct record {
    weir_executor *ex;
    weir_time began;
    pthread_mutex_t mutex;
    struct sample sample[SAMPLES];
    int count;
};

/* ---- listening --------------------------------------------------------------------------------- */

static void write_down(struct record *record)
{
    struct sample *sample;

    pthread_mutex_lock(&record->mutex);
    if (record->ex && record->count < SAMPLES) {
        sample = &record->sample[record->count++];
        sample->ms = (double)(weir_now() - record->began) / 1e6;
        for (int d = 0; d < DOMAINS; d++) {
            sample->domain[d].size = sizeof(sample->domain[d]);
            MUST(weir_domain_stats_get(&sample->domain[d], record->ex, name[d]) == 0);
        }
    }
    pthread_mutex_unlock(&record->mutex);
}

static void started(weir_task *task, void *record)
{
    (void)task;
    write_down(record);
}

static void completed(weir_task *task, const weir_result *result, void *record)
{
    (void)task;
    (void)result;
    write_down(record);
}

/* ---- the work ---------------------------------------------------------------------------------- */

static int serve(void **value, void *ms)
{
    (void)value;
    return weir_sleep(weir_in_ms(*(int *)ms));
}

static weir_executor *new_executor(struct record *record)
{
    weir_domain_policy domains[] = {
        { .name = "batch", .slots = 4 },
        { .name = "live", .slots = 6, .slots_mode = WEIR_RESERVED, .lend_max = 3 },
    };
    weir_group_policy groups[] = { { .key = "reports", .domain = "batch" },
                                   { .key = "requests", .domain = "live" } };
    weir_message why;

    if (weir_executor_new(
            &record->ex,
            WEIR_POLICY(.workers = 2, .group_limit = WEIR_NO_LIMIT, .slots = SLOTS,
                        .domains = domains, .domain_count = 2, .groups = groups, .group_count = 2,
                        .lending = { .period_ms = 40, .hold = 3, .step = 1 },
                        .listener = { .started = started, .completed = completed, .arg = record }),
            &why)) {
        fprintf(stderr, "%s\n", why.text);
        exit(1);
    }
    return record->ex;
}

static void submit(weir_executor *ex, const char *key, int count, int *ms)
{
    for (int i = 0; i < count; i++)
        MUST(weir_submit_key(NULL, ex, key, serve, ms, NULL) == 0);
}

static void work(struct record *record)
{
    static int batch_ms = BODY_MS, live_ms = BODY_MS / 2, glance_ms = 5;
    weir_executor *ex = new_executor(record);

    record->began = weir_now();
    submit(ex, "reports", 130, &batch_ms);
    for (int ms = 20; ms < BURST_AT_MS;
         ms += 40) { /* live has little to do: one request now and then */
        weir_sleep(record->began + ms * (int64_t)1000000);
        submit(ex, "requests", 1, &glance_ms);
    }
    weir_sleep(record->began + BURST_AT_MS * (int64_t)1000000);
    submit(ex, "requests", 70, &live_ms);
    weir_sleep(record->began + END_MS * (int64_t)1000000);
    pthread_mutex_lock(&record->mutex);
    record->ex = NULL; /* the picture ends here */
    pthread_mutex_unlock(&record->mutex);
    MUST(weir_executor_shutdown(ex, weir_in_s(10)) == 0);
    weir_executor_free(ex);
}

/* ---- drawing ----------------------------------------------------------------------------------- */

enum { WIDTH = 1000, LEFT = 70, RIGHT = 190, TOP = 112, ROW = 150, GAP = 44, PLOT = 740 };

static double x_of(double ms)
{
    return LEFT + ms / END_MS * PLOT;
}

/* Slots as a height within a row, of which the base line is at `base`. */
static double y_of(double base, double slots)
{
    return base - slots / SLOTS * ROW;
}

static int64_t figure(const struct sample *sample, int d, char which)
{
    const weir_domain_stats *s = &sample->domain[d];

    switch (which) {
    case 'l':
        return s->limit;
    case 'u': /* with what tasks of others stand on */
        return s->used + s->charged;
    default:
        return s->used - s->borrowed;
    }
}

/* A staircase through all samples; closed down to the base line if it is to be filled. */
static void stairs(FILE *svg, const struct record *record, int d, char which, double base,
                   bool fill)
{
    double last = figure(&record->sample[0], d, which);

    fprintf(svg, "M%.1f %.1f", x_of(0), y_of(base, fill ? 0 : last));
    if (fill)
        fprintf(svg, "V%.1f", y_of(base, last));
    for (int i = 1; i < record->count; i++) {
        double now = figure(&record->sample[i], d, which);
        if (now != last)
            fprintf(svg, "H%.1fV%.1f", x_of(record->sample[i].ms), y_of(base, now));
        last = now;
    }
    fprintf(svg, "H%.1f", x_of(END_MS));
    if (fill)
        fprintf(svg, "V%.1fZ", y_of(base, 0));
}

static void text(FILE *svg, double x, double y, const char *more, const char *words)
{
    fprintf(svg, "<text x=\"%.1f\" y=\"%.1f\" %s>%s</text>\n", x, y, more, words);
}

static void grid(FILE *svg, double base)
{
    char number[16];

    for (int slots = 0; slots <= SLOTS; slots += 4) {
        double y = y_of(base, slots);
        fprintf(svg, "<path d=\"M%d %.1fH%d\" stroke=\"%s\"/>\n", LEFT, y, LEFT + PLOT,
                slots ? "#e4e4e4" : "#888");
        snprintf(number, sizeof(number), "%d", slots);
        text(svg, LEFT - 8, y + 4, "text-anchor=\"end\" class=\"s\"", number);
    }
}

static void row(FILE *svg, const struct record *record, int d, double base)
{
    grid(svg, base);
    fprintf(svg, "<path d=\"");
    stairs(svg, record, d, 'u', base, true);
    fprintf(svg, "\" fill=\"url(#hatch1)\"/>\n<path d=\"");
    stairs(svg, record, d, 'o', base, true);
    fprintf(svg, "\" fill=\"%s\" fill-opacity=\"1\"/>\n<path d=\"", colour[d]);
    stairs(svg, record, d, 'l', base, false);
    fprintf(svg, "\" fill=\"none\" stroke=\"#222\" stroke-width=\"2\"/>\n");
    fprintf(
        svg,
        "<path d=\"M%d %.1fH%d\" stroke=\"#222\" stroke-width=\"1\" stroke-dasharray=\"2 4\"/>\n",
        LEFT, y_of(base, (double)record->sample[0].domain[d].slots), LEFT + PLOT);
}

static void heading(FILE *svg, const struct record *record, int d, double base)
{
    char words[128];

    fprintf(svg, "<text x=\"%d\" y=\"%.1f\" class=\"b\" fill=\"%s\">%s</text>\n", LEFT,
            base - ROW - 10, colour[d], name[d]);
    snprintf(words, sizeof(words), "%s, %lld slots",
             record->sample[0].domain[d].slots_mode == WEIR_RESERVED ? "RESERVED" : "MAX",
             (long long)record->sample[0].domain[d].slots);
    text(svg, LEFT + 70, base - ROW - 10, "class=\"s\"", words);
}

/* An event with its line through all rows. */
static void mark(FILE *svg, double ms, bool before, const char *words)
{
    fprintf(svg,
            "<path d=\"M%.1f %dV%d\" stroke=\"#b03060\" stroke-width=\"1.2\" stroke-dasharray=\"5 "
            "3\"/>\n",
            x_of(ms), TOP - 38, TOP + DOMAINS * (ROW + GAP) - GAP);
    text(svg, x_of(ms) + (before ? -5 : 5), TOP - 32,
         before ? "class=\"m\" text-anchor=\"end\"" : "class=\"m\"", words);
}

static void legend(FILE *svg)
{
    double x = LEFT + PLOT + 20, y = TOP + 6;

    fprintf(svg, "<path d=\"M%.0f %.0fh26\" stroke=\"#222\" stroke-width=\"2\"/>\n", x, y);
    text(svg, x + 34, y + 4, "class=\"s\"", "limit now");
    fprintf(svg, "<path d=\"M%.0f %.0fh26\" stroke=\"#222\" stroke-dasharray=\"2 4\"/>\n", x,
            y + 24);
    text(svg, x + 34, y + 28, "class=\"s\"", "slots configured");
    fprintf(svg, "<rect x=\"%.0f\" y=\"%.0f\" width=\"26\" height=\"12\" fill=\"#999\"/>\n", x,
            y + 42);
    text(svg, x + 34, y + 52, "class=\"s\"", "used on own slots");
    fprintf(svg, "<rect x=\"%.0f\" y=\"%.0f\" width=\"26\" height=\"12\" fill=\"url(#hatch1)\"/>\n",
            x, y + 66);
    text(svg, x + 34, y + 76, "class=\"s\"", "lent to a task of live");
}

static void axis(FILE *svg)
{
    double y = TOP + DOMAINS * (ROW + GAP) - GAP;
    char number[16];

    for (int ms = 0; ms <= END_MS; ms += 100) {
        fprintf(svg, "<path d=\"M%.1f %.1fv6\" stroke=\"#888\"/>\n", x_of(ms), y);
        snprintf(number, sizeof(number), "%d", ms);
        text(svg, x_of(ms), y + 20, "text-anchor=\"middle\" class=\"s\"", number);
    }
    text(svg, LEFT + PLOT + 20, y + 20, "class=\"s\"", "ms");
}

/* The first sample for which live's ledger says so; END_MS: none. */
static double first_with(const struct record *record, double from, bool lent)
{
    for (int i = 0; i < record->count; i++)
        if (record->sample[i].ms >= from && (record->sample[i].domain[1].lent > 0) == lent)
            return record->sample[i].ms;
    return END_MS;
}

static void draw(FILE *svg, const struct record *record)
{
    int height = TOP + DOMAINS * (ROW + GAP) + 6;

    fprintf(svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\">\n"
            "<style>text{paint-order:stroke;stroke:#fff;stroke-width:5px}.s{font-size:12px;fill:#"
            "555}.b{font-size:15px;font-weight:bold}"
            ".m{font-size:12px;fill:#b03060}</style>\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n<defs>\n",
            WIDTH, height, WIDTH, height);
    for (int d = 0; d < DOMAINS; d++)
        fprintf(svg,
                "<pattern id=\"hatch%d\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
                "patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"#fff\"/>"
                "<rect width=\"3\" height=\"6\" fill=\"%s\"/></pattern>\n",
                d, colour[d]);
    fprintf(svg, "</defs>\n");
    text(svg, LEFT, 24, "class=\"b\"", "Twelve slots, three domains: lending and recall");
    for (int d = 0; d < DOMAINS; d++)
        row(svg, record, d, TOP + d * (ROW + GAP) + ROW);
    mark(svg, first_with(record, 0, true), false, "live lends idle slots");
    mark(svg, BURST_AT_MS, true, "burst: recall");
    mark(svg, first_with(record, BURST_AT_MS, false), false, "all back");
    for (int d = 0; d < DOMAINS; d++)
        heading(svg, record, d, TOP + d * (ROW + GAP) + ROW);
    axis(svg);
    legend(svg);
    fprintf(svg, "</svg>\n");
}

/* ---- what the picture must show ------------------------------------------------------------------ */

static void check(const struct record *record)
{
    double lent_at = first_with(record, 0, true), back_at = first_with(record, BURST_AT_MS, false);
    int64_t most = 0;

    for (int i = 0; i < record->count; i++) {
        const weir_domain_stats *batch = &record->sample[i].domain[0];
        most = batch->limit > most ? batch->limit : most;
    }
    MUST(record->count > 100 && record->count < SAMPLES);
    MUST(lent_at < BURST_AT_MS && most > 4); /* idle slots were lent, */
    MUST(back_at < END_MS);                  /* and came back         */
    fprintf(stderr,
            "lent from %.0f ms on, up to %lld slots; recalled at %d ms, all back %.0f ms later\n",
            lent_at, (long long)(most - 4), BURST_AT_MS, back_at - BURST_AT_MS);
}

int main(void)
{
    static struct record record = { .mutex = PTHREAD_MUTEX_INITIALIZER };

    work(&record);
    check(&record);
    draw(stdout, &record);
    MUST(fflush(stdout) == 0);
    return 0;
}
