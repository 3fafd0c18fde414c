/* weir map: reads its options.
 * SPDX-License-Identifier: MIT */
#include "cli/map_options.h"

#include "base/os.h"
#include "cli/commands.h"
#include "cli/engine/slots.h"
#include "cli/opt/quantity.h"
#include "cli/opt/refuse.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

static int bad_value(weir_message *message, const struct opt_reader *reader, const char *wanted)
{
    return refuse(message, "--%s %.100s: use %s", reader->found->name, reader->value, wanted);
}

static int duration(int64_t *ns, const struct opt_reader *reader, weir_message *message)
{
    return quantity_duration(ns, reader->value)
               ? 0
               : bad_value(message, reader, "a duration such as 500ms, 30s, 5m or 1.5h");
}

static int count(int64_t *n, const struct opt_reader *reader, weir_message *message, int64_t low,
                 int64_t high)
{
    char wanted[80];

    if (quantity_count(n, reader->value, low, high))
        return 0;
    snprintf(wanted, sizeof(wanted), "a number from %lld to %lld", (long long)low, (long long)high);
    return bad_value(message, reader, wanted);
}

/* N, or N% of the CPUs. */
static int jobs(int64_t *n, const struct opt_reader *reader, weir_message *message)
{
    size_t length = strlen(reader->value);
    char digits[24], wanted[40];
    int64_t percent;

    if (length == 0 || length >= sizeof(digits) || reader->value[length - 1] != '%')
        return count(n, reader, message, 1, SLOTS_MAX);
    memcpy(digits, reader->value, length - 1);
    digits[length - 1] = 0;
    if (!quantity_count(&percent, digits, 1, 100000))
        return bad_value(message, reader, "a number, or a share of the CPUs such as 200%");
    *n = (wr_os_cpus() * percent + 99) / 100;
    if (*n <= SLOTS_MAX)
        return 0;
    snprintf(wanted, sizeof(wanted), "at most %d commands at once", SLOTS_MAX);
    return bad_value(message, reader, wanted);
}

static int delimiter(struct record_syntax *syntax, const struct opt_reader *reader,
                     weir_message *message)
{
    const char *value = strcmp(reader->value, "\\t") ? reader->value : "\t";

    if (strlen(value) != 1 || *value == '\n' || *value == '"')
        return bad_value(message, reader, "one byte, or \\t");
    syntax->delimiter = *value;
    return 0;
}

static int progress(enum progress_mode *mode, const struct opt_reader *reader,
                    weir_message *message)
{
    static const char *const names[] = { "auto", "never", "always" };

    for (int i = 0; i < 3; i++) {
        if (!strcmp(reader->value, names[i])) {
            *mode = (enum progress_mode)i;
            return 0;
        }
    }
    return bad_value(message, reader, "auto, never or always");
}

static int set_form(struct record_syntax *syntax, enum record_form form, weir_message *message)
{
    if (syntax->form != FORM_LINES && syntax->form != form)
        return refuse(message, "use only one of --csv, --tsv, --jsonl");
    syntax->form = form;
    return 0;
}

static int set_output(struct engine_options *opt, enum output_mode mode, weir_message *message)
{
    if (opt->output != OUTPUT_GROUPED && opt->output != mode)
        return refuse(message, "use only one of --line-buffer and --files");
    opt->output = mode;
    return 0;
}

static int set_input_option(struct map_options *p, int id, const struct opt_reader *reader)
{
    switch (id) {
    case MAP_INPUT:
        p->feed.input = strcmp(reader->value, "-") ? reader->value : NULL;
        return 0;
    case MAP_NUL:
        p->feed.separator = 0;
        return 0;
    case MAP_CSV:
        return set_form(&p->syntax, FORM_CSV, p->message);
    case MAP_TSV:
        return set_form(&p->syntax, FORM_TSV, p->message);
    case MAP_JSONL:
        return set_form(&p->syntax, FORM_JSONL, p->message);
    case MAP_NO_HEADER:
        p->feed.header = false;
        return 0;
    default:
        return delimiter(&p->syntax, reader, p->message);
    }
}

/* What is wrong with a rule, with the option in front. */
static int add_rule(struct rules *rules, enum rule_kind kind, const struct opt_reader *reader,
                    weir_message *message)
{
    weir_message why = { "" };
    int rc = rules_add(rules, kind, reader->value, &why);

    if (rc)
        snprintf(message->text, sizeof(message->text), "--%s %.400s", reader->found->name,
                 why.text);
    return rc;
}

static int set_limit_option(struct map_options *p, int id, const struct opt_reader *reader)
{
    struct engine_options *opt = &p->engine;
    weir_message *message = p->message;

    switch (id) {
    case MAP_GROUP_BY:
        p->feed.group_by = reader->value;
        opt->grouped = true;
        return 0;
    case MAP_JOBS:
        return jobs(&opt->jobs, reader, message);
    case MAP_PER_GROUP:
        return count(&opt->per_group, reader, message, 1, SLOTS_MAX);
    case MAP_LIMIT:
        return add_rule(&opt->rules, RULE_LIMIT, reader, message);
    case MAP_RATE:
        return add_rule(&opt->rules, RULE_RATE, reader, message);
    case MAP_WEIGHT:
        return add_rule(&opt->rules, RULE_WEIGHT, reader, message);
    default:
        return count(&opt->max_wait, reader, message, 0, 1000000);
    }
}

static int set_command_option(struct map_options *p, int id, const struct opt_reader *reader)
{
    struct engine_options *opt = &p->engine;
    weir_message *message = p->message;

    switch (id) {
    case MAP_TIMEOUT:
        return duration(&opt->timeout_ns, reader, message);
    case MAP_GRACE:
        return duration(&opt->grace_ns, reader, message);
    case MAP_RETRIES:
        return count(&opt->retries, reader, message, 0, 1000000);
    case MAP_BACKOFF:
        return duration(&opt->backoff_ns, reader, message);
    case MAP_BACKOFF_MAX:
        return duration(&opt->backoff_max_ns, reader, message);
    case MAP_DELAY:
        return duration(&opt->delay_ns, reader, message);
    case MAP_COOL_CODE:
        return count(&opt->cool_code, reader, message, 1, 255);
    case MAP_COOL_DOWN:
        return duration(&opt->cool_ns, reader, message);
    case MAP_CWD:
        p->feed.directory = reader->value;
        return 0;
    case MAP_SHELL:
        p->feed.shell = true;
        return 0;
    case MAP_NO_APPEND:
        p->feed.no_append = true;
        return 0;
    default:
        p->feed.to_stdin = true;
        return 0;
    }
}

static int set_output_option(struct map_options *p, int id, const struct opt_reader *reader)
{
    struct engine_options *opt = &p->engine;
    weir_message *message = p->message;

    switch (id) {
    case MAP_KEEP_ORDER:
        opt->keep_order = true;
        return 0;
    case MAP_TAG:
        p->feed.tagged = true;
        p->feed.tag = reader->value;
        return 0;
    case MAP_LINE_BUFFER:
        return set_output(opt, OUTPUT_LINES, message);
    case MAP_FILES:
        opt->files_directory = reader->value;
        return set_output(opt, OUTPUT_FILES, message);
    case MAP_RESULTS:
        opt->results_path = reader->value;
        return 0;
    case MAP_PROGRESS:
        return progress(&opt->progress, reader, message);
    case MAP_HALT:
        return halt_parse(&opt->halt, reader->value, message);
    default:
        p->dry_run = true;
        return 0;
    }
}

static int set_option(struct map_options *p, int id, const struct opt_reader *reader)
{
    if (id < MAP_GROUP_BY)
        return set_input_option(p, id, reader);
    if (id < MAP_TIMEOUT)
        return set_limit_option(p, id, reader);
    if (id < MAP_KEEP_ORDER)
        return set_command_option(p, id, reader);
    return set_output_option(p, id, reader);
}

static void set_defaults(struct map_options *p)
{
    const char *temporary = getenv("TMPDIR");
    const int64_t second = 1000000000;

    p->feed = (struct feed_options){ .separator = '\n', .header = true };
    p->engine = (struct engine_options){
        .jobs = wr_os_cpus(),
        .max_wait = 10000,
        .grace_ns = 5 * second,
        .backoff_ns = second,
        .backoff_max_ns = 300 * second,
        .cool_code = -1,
        .cool_ns = 10 * second,
        .temporary = temporary && *temporary ? temporary : "/tmp",
    };
}

/* ---- what goes together -------------------------------------------------------------------------- */

/* Without groups all tasks have the key "": a rule for others would be ignored in silence. */
static int check_rules(const struct rules *rules, weir_message *message)
{
    for (size_t i = 0; i < rules->count; i++)
        if (fnmatch(rules->rule[i].pattern, "", 0) != 0)
            return refuse(message, "a rule for \"%.80s\" needs groups: set them with --group-by",
                          rules->rule[i].pattern);
    return 0;
}

static int check(const struct map_options *p, weir_message *message)
{
    if (!p->words[0])
        return refuse(message, "map: which command? Write it after the options: "
                               "weir map [OPTION]... -- COMMAND [ARGUMENT]...");
    if (p->engine.keep_order && p->engine.output == OUTPUT_LINES)
        return refuse(message, "use only one of --keep-order and --line-buffer");
    return p->engine.grouped ? 0 : check_rules(&p->engine.rules, message);
}

int map_options_read(struct map_options *p, char **argv, weir_message *message)
{
    struct opt_reader reader;
    int id, rc = 0;

    *p = (struct map_options){ .message = message };
    set_defaults(p);
    opt_start(&reader, &command_map, argv);
    while (!rc && (id = opt_next(&reader, message)) != OPT_END) {
        if (id == MAP_HELP) {
            p->help = true;
            return 0;
        }
        rc = id == OPT_WRONG ? WEIR_EINVAL : set_option(p, id, &reader);
    }
    p->words = reader.argv;
    return rc ? rc : check(p, message);
}

void map_options_fini(struct map_options *p)
{
    rules_fini(&p->engine.rules);
}
