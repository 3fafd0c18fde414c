/* From inputs to plans: opens, reads, fills in.
 * SPDX-License-Identifier: MIT */
#include "cli/input/feed.h"

#include "cli/input/batch.h"
#include "cli/input/key.h"
#include "cli/input/records.h"
#include "cli/input/template.h"
#include "cli/opt/refuse.h"
#include "cli/screen/say.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct feed {
    const struct feed_options *opt;
    struct record_syntax syntax;
    struct records *records;
    struct batches *batches; /* NULL: each record is a task of its own */
    bool no_more;            /* records                                */
    int stop_fd;
    bool dropped; /* a record, since the search for its group was stopped */
    struct template *command, *tag, *directory;
    struct key_rule *key_rule;
    bool needs_fields; /* a placeholder or the group is a column, or the form is to be checked */
};

static int wrong_text(const weir_message *message, int rc)
{
    say("%s", message->text[0] ? message->text : weir_strerror(rc));
    return SAY_WRONG;
}

/* ---- templates ----------------------------------------------------------------------------------- */

static size_t length_of(char *const *words)
{
    size_t n = 0;

    while (words[n])
        n++;
    return n;
}

static int make_one(struct template **out, const char *text, const struct feed *feed,
                    weir_message *message)
{
    char *word = (char *)text;

    return text ? template_new(out, &word, 1, &feed->syntax, false, message) : 0;
}

static unsigned needs(const struct template *template)
{
    return template ? template_needs(template) : 0;
}

/* The number of the header's column of that name; 0: there is none. */
static size_t column(const struct feed *feed, const char *name)
{
    for (size_t i = 0; i < feed->syntax.name_count; i++)
        if (strcmp(feed->syntax.names[i], name) == 0)
            return i + 1;
    return 0;
}

/* {key} and {seq} are ours; but if there is a column of that name it may be meant, and without groups a key is
 * empty. The user should learn of neither from what the commands did. */
static int check_our_names(const struct feed *feed, weir_message *message)
{
    const char *group_by = feed->opt->group_by;
    unsigned needed =
        needs(feed->command) | needs(feed->directory) | (feed->opt->tag ? needs(feed->tag) : 0);
    size_t key = column(feed, "key"), seq = column(feed, "seq");

    if ((needs(feed->directory) | needs(feed->tag)) & TEMPLATE_NEEDS_SLOT)
        return refuse(message, "{%%} is known only when a command starts: use it in the command");
    if (needed & TEMPLATE_NEEDS_SEQ && seq)
        return refuse(message,
                      "{seq} could be the task's number or the column \"seq\": write {%zu} for "
                      "the column; the number is in $WEIR_SEQ",
                      seq);
    if (!(needed & TEMPLATE_NEEDS_KEY) || (group_by && (!key || strcmp(group_by, "key") == 0)))
        return 0;
    if (!key)
        return refuse(message, "{key} needs --group-by; for the text itself"
                               " write \\{key}");
    return refuse(message,
                  "{key} could be the group or the column \"key\": write {%zu} for the column; the "
                  "group is in $WEIR_KEY",
                  key);
}

static int make_command(struct feed *feed, char **words, weir_message *message)
{
    const struct feed_options *opt = feed->opt;
    bool append = !opt->to_stdin && !opt->no_append;
    size_t count = length_of(words);

    if (opt->shell)
        return template_new_shell(&feed->command, "/bin/sh", words, count, &feed->syntax, message);
    return template_new(&feed->command, words, count, &feed->syntax, append, message);
}

static int make_templates(struct feed *feed, char **words)
{
    const struct feed_options *opt = feed->opt;
    const char *tag = opt->tag ? opt->tag : opt->group_by ? "{key}" : "{}";
    weir_message message = { "" };
    int rc = make_command(feed, words, &message);

    if (!rc)
        rc = make_one(&feed->directory, opt->directory, feed, &message);
    if (!rc && opt->tagged)
        rc = make_one(&feed->tag, tag, feed, &message);
    if (!rc && opt->group_by && !records_are_none(feed->records))
        rc = key_rule_new(&feed->key_rule, opt->group_by, &feed->syntax, feed->stop_fd, &message);
    if (!rc)
        rc = check_our_names(feed, &message);
    feed->needs_fields =
        feed->syntax.form != FORM_LINES || feed->key_rule ||
        (needs(feed->command) | needs(feed->tag) | needs(feed->directory)) & TEMPLATE_NEEDS_FIELDS;
    if (!rc && template_nests_code(feed->command))
        say("warning: a placeholder inside a script for another shell (sh -c, eval, ssh) is code "
            "there, not text: pass it as an argument, sh -c '... \"$1\"' sh {}");
    return rc ? wrong_text(&message, rc) : 0;
}

/* Several records per command: finds the words that stand once per record. */
static int make_batches(struct feed *feed)
{
    size_t words = template_words(feed->command);
    bool *repeats = calloc(words, sizeof(*repeats));
    weir_message message = { "" };
    int rc = repeats ? 0 : WEIR_ENOMEM;

    for (size_t w = 0; w < words && !rc; w++) {
        unsigned needed = template_word_needs(feed->command, w);
        repeats[w] = needed & (TEMPLATE_NEEDS_RECORD | TEMPLATE_NEEDS_FIELDS);
        if (needed & (TEMPLATE_NEEDS_SEQ | TEMPLATE_NEEDS_SLOT))
            rc = refuse(&message, "{seq} and {%%} do not work with several records per command: "
                                  "use $WEIR_SEQ and $WEIR_SLOT");
    }
    if (!rc)
        rc = batches_new(&feed->batches, feed->opt, repeats, words);
    free(repeats);
    return rc ? wrong_text(&message, rc) : 0;
}

int feed_open(struct feed **out, const struct feed_options *opt, const struct record_syntax *syntax,
              char **words, int stop_fd)
{
    struct feed *feed = *out = calloc(1, sizeof(*feed));
    int status;

    if (!feed)
        return say_wrong("cannot start", ENOMEM);
    feed->opt = opt;
    feed->syntax = *syntax;
    feed->stop_fd = stop_fd;
    status = records_open(&feed->records, opt, &feed->syntax, stop_fd);
    if (!status)
        status = make_templates(feed, words);
    if (!status && feed_batches(opt))
        status = make_batches(feed);
    return status;
}

void feed_free(struct feed *feed)
{
    if (!feed)
        return;
    batches_free(feed->batches);
    key_rule_free(feed->key_rule);
    template_free(feed->command);
    template_free(feed->directory);
    template_free(feed->tag);
    records_free(feed->records);
    record_syntax_fini(&feed->syntax);
    free(feed);
}

uint64_t feed_position(void *arg)
{
    return records_position(((struct feed *)arg)->records);
}

bool feed_is_used_up(void *arg)
{
    const struct feed *feed = arg;

    return !feed->dropped && records_are_used_up(feed->records) &&
           (!feed->batches || batches_are_empty(feed->batches));
}

int64_t feed_size(const struct feed *feed)
{
    return records_size(feed->records);
}

int feed_input(const struct feed *feed, size_t index, uint64_t *device, uint64_t *inode)
{
    return records_input(feed->records, index, device, inode);
}

bool feed_command_is_fixed(const struct feed *feed)
{
    return !feed->opt->shell && template_command_is_fixed(feed->command);
}

/* ---- plans --------------------------------------------------------------------------------------- */

/* Fills in what the command line says about the record; 0, or WEIR_EINVAL with a sentence, or WEIR_ENOMEM. */
static int fill(struct plan *out, struct feed *feed, struct record *record, uint64_t seq,
                weir_message *message)
{
    struct template_values values = {
        .record = record, .syntax = &feed->syntax, .seq = seq, .plan = out
    };
    int rc = feed->needs_fields ? record_split(record, &feed->syntax, message) : 0;

    if (!rc && feed->key_rule)
        rc = key_of(&out->key, feed->key_rule, record, &feed->syntax, message);
    if (rc)
        return rc;
    values.key = out->key ? out->key : "";
    rc = template_fill(&out->argv, feed->command, &values, message);
    values.plan = NULL;
    if (!rc && feed->opt->identify &&
        template_needs(feed->command) & (TEMPLATE_NEEDS_SEQ | TEMPLATE_NEEDS_SLOT)) {
        values.as_written = true;
        rc = template_fill(&out->known_as, feed->command, &values, message);
        values.as_written = false;
    }
    if (!rc && feed->directory)
        rc = template_fill_one(&out->directory, feed->directory, &values, message);
    if (!rc && feed->tag)
        rc = template_fill_one(&out->tag, feed->tag, &values, message);
    return rc;
}

/* The record as standard input, with its end: many programs ignore a line without one. In a stream that is split
 * among commands (--pipe) no end is added that the input lacks. */
static int give_input(struct plan *out, const struct record *record, const struct feed_options *opt)
{
    struct span end = feed_record_end(opt);

    out->input_is_cut = opt->whole_stream && record->is_cut;
    if (out->input_is_cut)
        end.length = 0;
    out->input = malloc(record->length + end.length + 1);
    if (!out->input)
        return WEIR_ENOMEM;
    memcpy(out->input, record->text, record->length);
    memcpy(out->input + record->length, end.text, end.length);
    out->input_length = record->length + end.length;
    return 0;
}

/* A copy of the record as it stood in the input, for results and the journal. */
static int keep_record(struct plan *out, const struct record *record)
{
    out->record = malloc(sizeof(*out->record) + record->length);
    if (!out->record)
        return WEIR_ENOMEM;
    out->record->text = memcpy(out->record + 1, record->text, record->length);
    out->record->length = record->length;
    out->record_count = 1;
    return 0;
}

/* A plan of one record: 1; without a command if the record makes none. 0: there are no more. */
static int next_plan(struct plan *out, struct feed *feed, uint64_t seq, weir_message *message)
{
    struct record record;
    int rc = records_next(&record, feed->records, message);

    if (rc <= 0)
        return rc;
    rc = fill(out, feed, &record, seq, message);
    out->weight = record.length;
    if (!rc && feed->opt->keep_records)
        rc = keep_record(out, &record);
    if (!rc && feed->opt->to_stdin)
        rc = give_input(out, &record, feed->opt);
    record_fini(&record);
    if (!rc)
        return 1;
    plan_fini(out);
    feed->dropped |= rc == WEIR_ECANCELED;
    return rc == WEIR_EINVAL ? 1 : rc;
}

int feed_next(struct plan *out, void *arg, uint64_t seq, weir_message *message)
{
    struct feed *feed = arg;
    int rc;

    if (!feed->batches)
        return next_plan(out, feed, seq, message);
    for (;;) {
        rc = batches_take(out, feed->batches, feed->no_more);
        if (rc || feed->no_more)
            return rc;
        rc = next_plan(out, feed, seq, message);
        if (rc < 0 || (rc && !out->argv))
            return rc;
        feed->no_more = rc == 0;
        if (rc)
            rc = batches_add(feed->batches, out);
        if (rc < 0)
            return rc;
    }
}
