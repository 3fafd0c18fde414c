/* From inputs to plans: opens, reads, fills in.
 * SPDX-License-Identifier: MIT */
#include "cli/input/feed.h"

#include "cli/input/key.h"
#include "cli/input/reader.h"
#include "cli/input/template.h"
#include "cli/opt/refuse.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STATUS_WRONG = 255 };

struct feed {
    const struct feed_options *opt;
    struct record_syntax syntax;
    struct reader *reader;
    struct template *command, *tag, *directory;
    struct key_rule *key_rule;
    bool needs_fields; /* a placeholder or the group is a column, or the form is to be checked */
    bool no_rows;      /* not even a header, so that no name can be looked for */
    int64_t size;      /* of a regular file; 0: not known */
};

static int wrong(const char *what, int error)
{
    fprintf(stderr, "weir: %s: %s\n", what, strerror(error));
    return STATUS_WRONG;
}

static int wrong_text(const weir_message *message, int rc)
{
    fprintf(stderr, "weir: %s\n", message->text[0] ? message->text : weir_strerror(rc));
    return STATUS_WRONG;
}

/* ---- input --------------------------------------------------------------------------------------- */

static int open_input(struct feed *feed, int stop_fd)
{
    const char *name = feed->opt->input;
    struct stat st;
    int fd = name ? open(name, O_RDONLY | O_CLOEXEC) : 0, rc;

    if (fd < 0)
        return wrong(name, errno);
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        feed->size = st.st_size;
    if (!name && isatty(0))
        fputs("weir: reading records from the terminal; Ctrl-D ends the input\n", stderr);
    rc = reader_new(&feed->reader, fd, name ? name : "standard input", feed->opt->separator,
                    &feed->syntax, stop_fd);
    return rc ? wrong(name ? name : "standard input", -rc) : 0;
}

/* The first row of a table has the names of the columns; without any row there is nothing to do. */
static int read_header(struct feed *feed)
{
    weir_message message = { "" };
    struct record header;
    int rc;

    if (!feed->opt->header || (feed->syntax.form != FORM_CSV && feed->syntax.form != FORM_TSV))
        return 0;
    rc = reader_next(&header, feed->reader, &message);
    feed->no_rows = rc == 0;
    if (rc <= 0)
        return rc ? wrong_text(&message, rc) : 0;
    rc = record_split(&header, &feed->syntax, &message);
    if (!rc)
        rc = record_syntax_set_names(&feed->syntax, &header, &message);
    record_fini(&header);
    return rc ? wrong_text(&message, rc) : 0;
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

/* {key} and {seq} are ours; but where there is a column of that name it may be meant, and without groups a key is
 * empty. Neither should be noticed by what the commands did. */
static int check_our_names(const struct feed *feed, weir_message *message)
{
    const char *group_by = feed->opt->group_by;
    unsigned needed =
        needs(feed->command) | needs(feed->directory) | (feed->opt->tag ? needs(feed->tag) : 0);
    size_t key = column(feed, "key"), seq = column(feed, "seq");

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
        return template_new_shell(&feed->command, "/bin/sh", words, count, &feed->syntax, append,
                                  message);
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
    if (!rc && opt->group_by && !feed->no_rows)
        rc = key_rule_new(&feed->key_rule, opt->group_by, &feed->syntax, &message);
    if (!rc)
        rc = check_our_names(feed, &message);
    feed->needs_fields =
        feed->syntax.form != FORM_LINES || feed->key_rule ||
        (needs(feed->command) | needs(feed->tag) | needs(feed->directory)) & TEMPLATE_NEEDS_FIELDS;
    return rc ? wrong_text(&message, rc) : 0;
}

int feed_open(struct feed **out, const struct feed_options *opt, const struct record_syntax *syntax,
              char **words, int stop_fd)
{
    struct feed *feed = *out = calloc(1, sizeof(*feed));
    int status;

    if (!feed)
        return wrong("cannot start", ENOMEM);
    feed->opt = opt;
    feed->syntax = *syntax;
    status = open_input(feed, stop_fd);
    if (!status)
        status = read_header(feed);
    if (!status)
        status = make_templates(feed, words);
    return status;
}

void feed_free(struct feed *feed)
{
    if (!feed)
        return;
    key_rule_free(feed->key_rule);
    template_free(feed->command);
    template_free(feed->directory);
    template_free(feed->tag);
    reader_free(feed->reader);
    record_syntax_fini(&feed->syntax);
    free(feed);
}

uint64_t feed_position(void *arg)
{
    return reader_bytes(((struct feed *)arg)->reader);
}

int64_t feed_size(const struct feed *feed)
{
    return feed->size;
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
    struct template_values values = { .record = record, .syntax = &feed->syntax, .seq = seq };
    int rc = feed->needs_fields ? record_split(record, &feed->syntax, message) : 0;

    if (!rc && feed->key_rule)
        rc = key_of(&out->key, feed->key_rule, record, &feed->syntax, message);
    if (rc)
        return rc;
    values.key = out->key ? out->key : "";
    rc = template_fill(&out->argv, feed->command, &values, message);
    if (!rc && feed->directory)
        rc = template_fill_one(&out->directory, feed->directory, &values, message);
    if (!rc && feed->tag)
        rc = template_fill_one(&out->tag, feed->tag, &values, message);
    return rc;
}

/* The record as standard input. It ends as it did in the input: many programs take no notice of a line without its
 * end. */
static void give_input(struct plan *out, struct record *record, char separator)
{
    out->input = record->text; /* followed by a zero byte, which gives way to the separator */
    out->input_length = record->length;
    if (separator)
        out->input[out->input_length++] = separator;
    record->text = NULL;
}

int feed_next(struct plan *out, void *arg, uint64_t seq, weir_message *message)
{
    struct feed *feed = arg;
    struct record record;
    int rc = reader_next(&record, feed->reader, message);

    if (rc <= 0)
        return rc;
    rc = fill(out, feed, &record, seq, message);
    out->weight = record.length;
    if (!rc && feed->opt->to_stdin)
        give_input(out, &record, feed->opt->separator);
    record_fini(&record);
    if (!rc)
        return 1;
    plan_fini(out);
    return rc == WEIR_EINVAL ? 1 : rc;
}
