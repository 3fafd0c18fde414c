/* weir map: reads its options.
 * SPDX-License-Identifier: MIT */
#include "cli/map_options.h"

#include "base/os.h"
#include "cli/commands.h"
#include "cli/engine/jobs.h"
#include "cli/engine/slots.h"
#include "cli/input/values.h"
#include "cli/map_values.h"
#include "cli/opt/refuse.h"

#include <stdlib.h>
#include <string.h>

/* A list that grows: -a, --env. */
static int add_word(const char ***list, size_t *count, const char *word)
{
    const char **larger = realloc(*list, (*count + 2) * sizeof(*larger));

    if (!larger)
        return WEIR_ENOMEM;
    *list = larger;
    larger[(*count)++] = word;
    larger[*count] = NULL;
    return 0;
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
        return add_word(&p->inputs, &p->feed.input_count, reader->value);
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
        p->no_header = true;
        return 0;
    case MAP_RECORD_END:
        return map_value_record_end(p, reader, p->message);
    case MAP_SHUF:
        p->feed.shuffle = true;
        return 0;
    default:
        return map_value_delimiter(p, reader, p->message);
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
        return map_value_jobs(p, reader, message);
    case MAP_PER_GROUP:
        return map_value_count(&opt->per_group, reader, message, 1, SLOTS_MAX);
    case MAP_LIMIT:
        return add_rule(&opt->rules, RULE_LIMIT, reader, message);
    case MAP_RATE:
        return add_rule(&opt->rules, RULE_RATE, reader, message);
    case MAP_WEIGHT:
        return add_rule(&opt->rules, RULE_WEIGHT, reader, message);
    case MAP_LOAD:
        return map_value_load(&opt->gate.load, reader, message);
    case MAP_MEM_FREE:
        return map_value_bytes(&opt->gate.memory, reader, message);
    case MAP_PRESSURE:
        return map_value_pressure(&opt->gate, reader, message);
    default:
        return map_value_count(&opt->max_wait, reader, message, 0, 1000000);
    }
}

static int set_command_option(struct map_options *p, int id, const struct opt_reader *reader)
{
    struct engine_options *opt = &p->engine;
    weir_message *message = p->message;

    switch (id) {
    case MAP_TIMEOUT:
        return map_value_timeout(opt, reader, message);
    case MAP_GRACE:
        return map_value_duration(&opt->grace_ns, reader, message);
    case MAP_RETRIES:
        return map_value_count(&opt->retries, reader, message, 0, 1000000);
    case MAP_BACKOFF:
        return map_value_duration(&opt->backoff_ns, reader, message);
    case MAP_BACKOFF_MAX:
        return map_value_duration(&opt->backoff_max_ns, reader, message);
    case MAP_DELAY:
        return map_value_duration(&opt->delay_ns, reader, message);
    case MAP_COOL_CODE:
        return map_value_count(&opt->cool_code, reader, message, 1, 255);
    case MAP_COOL_DOWN:
        return map_value_duration(&opt->cool_ns, reader, message);
    case MAP_CWD:
        p->feed.directory = reader->value;
        return 0;
    case MAP_SHELL:
        p->feed.shell = true;
        return 0;
    case MAP_NO_APPEND:
        p->feed.no_append = true;
        return 0;
    case MAP_RECORDS:
        return map_value_count(&p->records, reader, message, 1, 1000000);
    case MAP_FIT:
        p->feed.batch_fit = true;
        return 0;
    case MAP_PIPE:
        p->pipe = true;
        return 0;
    case MAP_BLOCK:
        return map_value_bytes(&p->block, reader, message);
    case MAP_ENV:
        if (!reader->value[0] || reader->value[0] == '=')
            return map_value_refuse(message, reader, "a name, or NAME=VALUE");
        return add_word((const char ***)&p->env, &opt->env_count, reader->value);
    case MAP_TTY:
        opt->tty = true;
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
    case MAP_TRACE:
        opt->trace = true;
        return 0;
    case MAP_LINE_BUFFER:
        return set_output(opt, OUTPUT_LINES, message);
    case MAP_FILES:
        opt->files_directory = reader->value;
        return set_output(opt, OUTPUT_FILES, message);
    case MAP_RESULTS:
        opt->results_path = reader->value;
        p->feed.keep_records = true;
        return 0;
    case MAP_JOURNAL:
        opt->journal_path = reader->value;
        p->feed.keep_records = p->feed.identify = true;
        return 0;
    case MAP_RESUME:
        opt->resume = true;
        return 0;
    case MAP_RETRY_FAILED:
        opt->resume = opt->retry_failed = true;
        return 0;
    case MAP_IF_EXISTS:
        return map_value_choice((int *)&opt->if_exists, reader, message);
    case MAP_SHOW_RETRIES:
        opt->show_retries = true;
        return 0;
    case MAP_PROGRESS:
        return map_value_choice((int *)&opt->progress, reader, message);
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

/* ---- the whole ------------------------------------------------------------------------------------- */

/* Sets what follows from several options together. */
static void combine(struct map_options *p)
{
    enum { BLOCK = 1 << 20 };

    p->feed.inputs = p->inputs;
    p->feed.stdin_is_closed = standard_input_is_closed;
    p->feed.batch_records = (size_t)p->records;
    p->engine.env = p->env;
    if (p->pipe) {
        p->feed.whole_stream = true;
        p->feed.to_stdin = true;
        p->feed.batch_bytes = p->block ? (size_t)p->block : p->records ? 0 : BLOCK;
    }
    if (p->engine.tty) {
        p->engine.jobs = p->jobs_given ? p->engine.jobs : 1;
        p->engine.progress = PROGRESS_NEVER;
    }
}

static char **duplicate_words(char **words)
{
    size_t count = 0;
    char **copy;

    while (words[count])
        count++;
    copy = malloc((count + 1) * sizeof(*copy));
    if (copy)
        memcpy(copy, words, (count + 1) * sizeof(*copy));
    return copy;
}

/* Cuts the words in two: the command ends where a list begins. */
static void cut_lists(struct map_options *p)
{
    for (char **word = p->words; *word; word++)
        if (values_open(*word)) {
            p->lists = duplicate_words(word);
            p->feed.lists = p->lists;
            *word = NULL;
            return;
        }
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
        if (!rc)
            p->given[id] = true;
    }
    p->words = reader.argv;
    if (rc)
        return rc;
    cut_lists(p);
    combine(p);
    return map_options_check(p, message);
}

void map_options_fini(struct map_options *p)
{
    rules_fini(&p->engine.rules);
    free(p->inputs);
    free(p->env);
    free(p->record_end);
    free(p->delimiter);
    free(p->lists);
}
