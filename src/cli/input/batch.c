/* Several records per command.
 * SPDX-License-Identifier: MIT */
#include "cli/input/batch.h"

#include "base/assert.h"
#include "base/list.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Batches that are open at the same time, and bytes in them: beyond this the oldest goes as it is. */
enum { OPEN_MAX_ = 1000, OPEN_BYTES = 64 << 20 };

/* What a command line may take, as xargs has it, if the system allows it. */
enum { LINE_BYTES = 128 << 10, LINE_SPARE = 4096 };

struct batch {
    struct wr_list link;
    char *key;
    struct plan *part;
    size_t count;
    size_t line, input; /* bytes of the command line and of standard input */
};

struct batches {
    const struct feed_options *opt;
    bool *repeats;
    size_t words, line_max;
    void *tree;           /* open ones, by key */
    struct wr_list open;  /* the oldest first */
    struct wr_list ready; /* complete         */
    size_t open_count, bytes;
};

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct batch *)a)->key, ((const struct batch *)b)->key);
}

static size_t environment_size(void)
{
    extern char **environ;
    size_t size = 0;

    for (char **at = environ; *at; at++)
        size += strlen(*at) + 1 + sizeof(char *);
    return size;
}

static size_t line_max(void)
{
    long most = sysconf(_SC_ARG_MAX);
    size_t used = environment_size() + LINE_SPARE;

    if (most <= 0 || (size_t)most < used + LINE_SPARE)
        return LINE_SPARE;
    return (size_t)most - used < LINE_BYTES ? (size_t)most - used : LINE_BYTES;
}

int batches_new(struct batches **out, const struct feed_options *opt, const bool *repeats,
                size_t words)
{
    struct batches *batches = *out = calloc(1, sizeof(*batches));

    if (!batches)
        return WEIR_ENOMEM;
    wr_list_init(&batches->open);
    wr_list_init(&batches->ready);
    batches->opt = opt;
    batches->words = words;
    batches->line_max = line_max();
    batches->repeats = malloc(words * sizeof(*repeats) + 1);
    if (!batches->repeats)
        return WEIR_ENOMEM;
    memcpy(batches->repeats, repeats, words * sizeof(*repeats));
    return 0;
}

static void batch_free(struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        plan_fini(&batch->part[i]);
    free(batch->part);
    free(batch->key);
    free(batch);
}

void batches_free(struct batches *batches)
{
    if (!batches)
        return;
    wr_list_each_safe(link, &batches->open) {
        struct batch *batch = WR_CONTAINER(link, struct batch, link);
        tdelete(batch, &batches->tree, by_key);
        batch_free(batch);
    }
    wr_list_each_safe(link, &batches->ready)
        batch_free(WR_CONTAINER(link, struct batch, link));
    free(batches->repeats);
    free(batches);
}

/* ---- adding ---------------------------------------------------------------------------------------- */

/* Bytes that a plan's words take; for a further record (not `first`) only of words that stand once per record. */
static size_t line_size(const struct batches *batches, const struct plan *plan, bool first)
{
    size_t size = 0;

    for (size_t w = 0; w < batches->words; w++)
        if (first || batches->repeats[w])
            size += strlen(plan->argv[w]) + 1 + sizeof(char *);
    return size;
}

static void close_batch(struct batches *batches, struct batch *batch)
{
    tdelete(batch, &batches->tree, by_key);
    wr_list_remove(&batch->link);
    wr_list_append(&batches->ready, &batch->link);
    batches->open_count--;
}

static bool has_room(const struct batches *batches, const struct batch *batch,
                     const struct plan *plan)
{
    const struct feed_options *opt = batches->opt;

    if (opt->batch_fit && batch->line + line_size(batches, plan, false) > batches->line_max)
        return false;
    return !opt->batch_bytes || batch->input + plan->input_length <= opt->batch_bytes;
}

static bool is_complete(const struct batches *batches, const struct batch *batch)
{
    const struct feed_options *opt = batches->opt;

    return (opt->batch_records && batch->count >= opt->batch_records) ||
           (opt->batch_bytes && batch->input >= opt->batch_bytes);
}

static struct batch *open_batch(struct batches *batches, const char *key)
{
    struct batch *batch = calloc(1, sizeof(*batch));

    if (batch)
        batch->key = strdup(key);
    if (!batch || !batch->key || !tsearch(batch, &batches->tree, by_key)) {
        if (batch)
            free(batch->key);
        free(batch);
        return NULL;
    }
    wr_list_append(&batches->open, &batch->link);
    batches->open_count++;
    return batch;
}

/* The open batch of a key that has room for the plan; a new one if there is none. */
static struct batch *batch_for(struct batches *batches, const struct plan *plan)
{
    struct batch probe = { .key = plan->key ? plan->key : "" }, **found;

    found = tfind(&probe, &batches->tree, by_key);
    if (found && has_room(batches, *found, plan))
        return *found;
    if (found)
        close_batch(batches, *found);
    return open_batch(batches, probe.key);
}

static int append(struct batches *batches, struct batch *batch, struct plan *plan)
{
    struct plan *larger = batch->part;

    if (!(batch->count & (batch->count - 1)))
        larger = realloc(larger, (batch->count ? 2 * batch->count : 1) * sizeof(*larger));
    if (!larger)
        return WEIR_ENOMEM;
    batch->part = larger;
    batch->line += line_size(batches, plan, batch->count == 0);
    batch->input += plan->input_length;
    batches->bytes += plan->weight;
    batch->part[batch->count++] = *plan;
    *plan = (struct plan){ 0 };
    return 0;
}

int batches_add(struct batches *batches, struct plan *plan)
{
    struct batch *batch = batch_for(batches, plan);
    int rc = batch ? append(batches, batch, plan) : WEIR_ENOMEM;

    if (rc)
        return rc;
    if (is_complete(batches, batch))
        close_batch(batches, batch);
    else if (batches->open_count > OPEN_MAX_ || batches->bytes > OPEN_BYTES)
        close_batch(batches, WR_CONTAINER(batches->open.next, struct batch, link));
    return 0;
}

/* ---- taking ---------------------------------------------------------------------------------------- */

/* The words of all parts in one allocation: of the first part all, of the others those that repeat, each behind the
 * one of the part before. `known`: of known_as instead of argv. */
static char **join_words(const struct batches *batches, const struct batch *batch, bool known)
{
    size_t count = 0, size = 0, used = 0;
    char **words, *text;

#define WORDS_OF(i) (known ? batch->part[i].known_as : batch->part[i].argv)
#define EACH_WORD(w, i)                         \
    for (size_t w = 0; w < batches->words; w++) \
        for (size_t i = 0; i < (batches->repeats[w] ? batch->count : 1); i++)
    EACH_WORD(w, i)
    {
        count++;
        size += strlen(WORDS_OF(i)[w]) + 1;
    }
    words = malloc((count + 1) * sizeof(*words) + size);
    if (!words)
        return NULL;
    text = (char *)(words + count + 1);
    EACH_WORD(w, i)
    {
        words[used++] = text;
        text = stpcpy(text, WORDS_OF(i)[w]) + 1;
    }
    words[used] = NULL;
#undef EACH_WORD
#undef WORDS_OF
    return words;
}

/* The last record of a file may lack its end, which keeps it apart from the first record of the next file. */
static int join_input(struct plan *out, const struct batches *batches, const struct batch *batch)
{
    struct span end = feed_record_end(batches->opt);

    if (!batch->part[0].input)
        return 0;
    out->input = malloc(batch->input + batch->count * end.length + 1);
    if (!out->input)
        return WEIR_ENOMEM;
    for (size_t i = 0; i < batch->count; i++) {
        const struct plan *part = &batch->part[i];
        memcpy(out->input + out->input_length, part->input, part->input_length);
        out->input_length += part->input_length;
        if (part->input_is_cut && i + 1 < batch->count) {
            memcpy(out->input + out->input_length, end.text, end.length);
            out->input_length += end.length;
        }
    }
    return 0;
}

static int join_records(struct plan *out, const struct batch *batch)
{
    size_t size = 0;
    char *text;

    if (!batch->part[0].record)
        return 0;
    for (size_t i = 0; i < batch->count; i++)
        size += sizeof(struct span) + batch->part[i].record->length;
    out->record = malloc(size);
    if (!out->record)
        return WEIR_ENOMEM;
    text = (char *)(out->record + batch->count);
    for (size_t i = 0; i < batch->count; i++) {
        struct span record = *batch->part[i].record;
        memcpy(text, record.text, record.length);
        out->record[i] = (struct span){ text, record.length };
        text += record.length;
    }
    out->record_count = batch->count;
    return 0;
}

static int join(struct plan *out, const struct batches *batches, struct batch *batch)
{
    struct plan *first = &batch->part[0];
    int rc;

    for (size_t i = 0; i < batch->count; i++)
        out->weight += batch->part[i].weight;
    out->argv = join_words(batches, batch, false);
    if (out->argv && first->known_as)
        out->known_as = join_words(batches, batch, true);
    if (!out->argv || (first->known_as && !out->known_as))
        return WEIR_ENOMEM;
    rc = join_input(out, batches, batch);
    if (!rc)
        rc = join_records(out, batch);
    if (rc)
        return rc;
    out->key = first->key;
    out->directory = first->directory;
    out->tag = first->tag;
    first->key = first->directory = first->tag = NULL;
    return 0;
}

int batches_take(struct plan *out, struct batches *batches, bool all)
{
    struct batch *batch;
    int rc;

    if (wr_list_empty(&batches->ready) && all && !wr_list_empty(&batches->open))
        close_batch(batches, WR_CONTAINER(batches->open.next, struct batch, link));
    if (wr_list_empty(&batches->ready))
        return 0;
    batch = WR_CONTAINER(batches->ready.next, struct batch, link);
    wr_list_remove(&batch->link);
    *out = (struct plan){ 0 };
    rc = join(out, batches, batch);
    batches->bytes -= out->weight;
    batch_free(batch);
    if (rc)
        plan_fini(out);
    return rc ? rc : 1;
}

bool batches_are_empty(const struct batches *batches)
{
    return wr_list_empty(&batches->open) && wr_list_empty(&batches->ready);
}
