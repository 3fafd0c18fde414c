/* weir map: its options, and what they mean.
 * SPDX-License-Identifier: MIT */
#include "cli/commands.h"
#include "cli/map.h"
#include "cli/quantity.h"

#include "base/os.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    INPUT = 1,
    NUL,
    CSV,
    TSV,
    JSONL,
    NO_HEADER,
    DELIMITER,
    GROUP_BY,
    JOBS,
    PER_GROUP,
    LIMIT,
    RATE,
    WEIGHT,
    MAX_WAIT,
    TIMEOUT,
    GRACE,
    RETRIES,
    BACKOFF,
    BACKOFF_MAX,
    DELAY,
    COOL_CODE,
    COOL_DOWN,
    CWD,
    SHELL,
    STDIN,
    NO_APPEND,
    KEEP_ORDER,
    TAG,
    LINE_BUFFER,
    FILES,
    RESULTS,
    PROGRESS,
    HALT,
    DRY_RUN,
    HELP
};

static const struct opt options[] = {
    { 0, 0, "Input", NULL, NULL, OPT_TEXT, NULL },
    { INPUT, 'a', "input", "FILE", "Read records from FILE instead of standard input, which - is.",
      OPT_FILE, NULL },
    { NUL, '0', "null", NULL, "Records end with a zero byte, as find -print0 writes them.",
      OPT_TEXT, NULL },
    { CSV, 0, "csv", NULL,
      "Records are rows of comma-separated values; the first row names the columns.", OPT_TEXT,
      NULL },
    { TSV, 0, "tsv", NULL, "The same, separated by tabs.", OPT_TEXT, NULL },
    { JSONL, 0, "jsonl", NULL,
      "Each line is a JSON object; {name} is a field, {a.b} one inside another.", OPT_TEXT, NULL },
    { NO_HEADER, 0, "no-header", NULL,
      "With --csv or --tsv: the first row is a record like the others.", OPT_TEXT, NULL },
    { DELIMITER, 'd', "delimiter", "C",
      "The byte between columns. Plain lines have columns, too: by default what blanks separate.",
      OPT_TEXT, NULL },

    { 0, 0, "Groups and limits", NULL, NULL, OPT_TEXT, NULL },
    { GROUP_BY, 'g', "group-by", "SPEC",
      "What a record's group is: a column's number or a field's name; /REGEX/ for the part of the "
      "record that its "
      "first (...) matches; host for the host of the record's first URL, host:FIELD for that in a "
      "field; or a "
      "text with {} in it.",
      OPT_TEXT, NULL },
    { JOBS, 'j', "jobs", "N",
      "Run at most N commands at once, over all groups. Default: the CPUs this process may use. N% "
      "is a share of "
      "them.",
      OPT_TEXT, NULL },
    { PER_GROUP, 'J', "per-group", "N",
      "Run at most N commands of a group at once. Default: no limit but -j.", OPT_TEXT, NULL },
    { LIMIT, 0, "limit", "PATTERN=N",
      "The same for groups whose key matches PATTERN (*, ? and [...] as in file names). May be "
      "given "
      "several times; the last that matches counts.",
      OPT_TEXT, NULL },
    { RATE, 0, "rate", "PATTERN=N/T",
      "Start at most N commands per T (10/s, 100/m, 5/250ms) of each group that matches, evenly "
      "spread; N/T:BURST "
      "lets up to BURST start at once. Without PATTERN= for all groups.",
      OPT_TEXT, NULL },
    { WEIGHT, 0, "weight", "PATTERN=N",
      "Groups that match get N turns where others get one. Default 1.", OPT_TEXT, NULL },
    { MAX_WAIT, 0, "max-wait", "N",
      "Read at most N records ahead of those that run. Default 10000. Memory stays bounded "
      "however long the input is; but a group whose records fill this keeps others, further "
      "down in the input, from being seen.",
      OPT_TEXT, NULL },

    { 0, 0, "Each command", NULL, NULL, OPT_TEXT, NULL },
    { TIMEOUT, 0, "timeout", "T",
      "End a command that runs for longer than T (30s, 5m, 1.5h): TERM to its process group, KILL "
      "after the "
      "grace.",
      OPT_TEXT, NULL },
    { GRACE, 0, "grace", "T", "Time between TERM and KILL. Default 5s.", OPT_TEXT, NULL },
    { RETRIES, 0, "retries", "N", "Try a failed command up to N times more.", OPT_TEXT, NULL },
    { BACKOFF, 0, "backoff", "T",
      "Wait T before the second attempt, twice as long before each further one. Default 1s. "
      "Nothing "
      "is occupied meanwhile.",
      OPT_TEXT, NULL },
    { BACKOFF_MAX, 0, "backoff-max", "T", "But never longer than this. Default 5m.", OPT_TEXT,
      NULL },
    { DELAY, 0, "delay", "T", "Let at least T pass between any two starts.", OPT_TEXT, NULL },
    { COOL_CODE, 0, "cool-code", "N",
      "A command that exits with N asks for a pause: its group starts nothing for a while, then "
      "the command is "
      "run again (this does not count as a failure, up to 100 times). It may write how long (30s) "
      "to the descriptor "
      "that "
      "$WEIR_COOL_FD names.",
      OPT_TEXT, NULL },
    { COOL_DOWN, 0, "cool-down", "T", "How long, if the command does not say. Default 10s.",
      OPT_TEXT, NULL },
    { CWD, 0, "cwd", "DIR", "Run commands in DIR, in which placeholders are filled in.",
      OPT_DIRECTORY, NULL },
    { SHELL, 0, "shell", NULL,
      "The command is a script for /bin/sh. Placeholders in it are safe, whatever the input: they "
      "become "
      "variables, never text of the script.",
      OPT_TEXT, NULL },
    { STDIN, 0, "stdin", NULL,
      "Give each command its record on standard input, with its end of line (else it has none). "
      "Then no {} is appended.",
      OPT_TEXT, NULL },
    { NO_APPEND, 'N', "no-append", NULL,
      "Append no {} to a command without placeholders: run it as it is, once per record.", OPT_TEXT,
      NULL },

    { 0, 0, "Output", NULL, NULL, OPT_TEXT, NULL },
    { KEEP_ORDER, 'k', "keep-order", NULL, "Print outputs in the order of the input.", OPT_TEXT,
      NULL },
    { TAG, 0, "tag", "[TEXT]",
      "Begin each line with TEXT and a tab. Default: the group's key, or {} without groups.",
      OPT_TEXT, NULL },
    { LINE_BUFFER, 0, "line-buffer", NULL,
      "Print whole lines as they come (those beyond 64 KiB in parts), instead of each command's "
      "output in one piece when it has ended.",
      OPT_TEXT, NULL },
    { FILES, 0, "files", "DIR",
      "Write outputs to DIR/SEQ.out and DIR/SEQ.err instead; DIR is made if need be.",
      OPT_DIRECTORY, NULL },
    { RESULTS, 0, "results", "FILE", "Write a line of JSON per command to FILE; see below.",
      OPT_FILE, NULL },
    { PROGRESS, 0, "progress", "WHEN",
      "auto shows what goes on if standard error is a terminal, else a line every ten seconds; "
      "always: a line every "
      "second; never.",
      OPT_CHOICE, "auto never always" },

    { 0, 0, "The whole run", NULL, NULL, OPT_TEXT, NULL },
    { HALT, 0, "halt", "WHEN",
      "soon,fail=N: start nothing more once N commands have failed; now,fail=N: end those that "
      "run, too; N% is a "
      "share of those that have ended, once three have failed. Default never.",
      OPT_TEXT, NULL },
    { DRY_RUN, 'n', "dry-run", NULL, "Print the commands, ready for a shell, and run none.",
      OPT_TEXT, NULL },
    { HELP, 'h', "help", NULL, "Print this help.", OPT_TEXT, NULL },
    { 0 },
};

static const struct opt_section sections[] = {
    { "Placeholders",
      "In COMMAND, --cwd and --tag: {} the record, {1} {2} its columns, {name} a field by its "
      "name, {key} its "
      "group, {seq} its number from 1, {.} the record without its extension, {/} the last part of "
      "its path, {//} the "
      "directory, {/.} the last part without extension. Anything else in braces stays as it is; "
      "but a name "
      "that the header of --csv or --tsv lacks is an error, unless it follows a $. \\{name} is the "
      "text {name}. Columns named key or seq go by their numbers. "
      "Values become arguments as they are, without a shell: blanks, quotes and newlines in them "
      "are harmless. If "
      "no placeholder of the record's is there, {} is appended. A record without the field that is "
      "asked for is not run, and counts as failed." },
    { "Environment",
      "Commands find in their environment: WEIR_KEY, the group; WEIR_SEQ, the record's number; "
      "WEIR_SLOT, from 1 to -j, different for all that run at the same time; WEIR_ATTEMPT, from "
      "1.\n\n"
      "weir itself looks at NO_COLOR, TERM and TMPDIR (output that waits to be printed goes there, "
      "beyond 64 KiB "
      "per command)." },
    { "Signals",
      "Commands run in process groups of their own, so Ctrl-C reaches weir alone. The first one "
      "starts nothing more "
      "and waits for what runs; the second ends it (TERM, then KILL after the grace); the third "
      "kills it. TERM and "
      "HUP act like the second. Ctrl-Z stops the commands, too, and their time (--timeout, "
      "--grace) with them. Whatever happens to weir, kill -9 "
      "included, its commands do not outlive it. What a command that ended by itself has left in "
      "the background "
      "is its own affair; weir does not wait for it. As the first process of a container weir also "
      "reaps what commands leave behind." },
    { "Display", "On a terminal each group has a line: done, running, waiting, failed, how many "
                 "per second. Press w to see what "
                 "waits and why." },
    { "Results", "Each line of the --results file is an object: seq, group, command (an array), "
                 "exit (null if it did not exit by "
                 "itself), signal, attempts, queued, started and ended (seconds since 1970; of the "
                 "last attempt), and reason: "
                 "done, failed, timed_out, cannot_run, bad_input, output_lost, halted, not_run. "
                 "Bytes that are not UTF-8 "
                 "appear as \\udc80 to \\udcff." },
    { "Exit status",
      "0: all commands succeeded. 1 to 100: so many failed; those that --halt ended are not among "
      "them. 101: more than 100 failed. 126, 127: "
      "the command, the same "
      "for all records, cannot be run, or was not found. 255: something else went wrong: bad "
      "arguments, unreadable "
      "input, output that could not be written, or an interrupt before all had run." },
    { "Examples",
      "At most 8 at once, and 2 per host, at most 5 per second to the slow one:\n\n"
      "    weir map -j8 -J2 --group-by host --rate 'slow.example=5/s' -a urls.txt -- curl -sSfO "
      "{}\n\n"
      "A column names the group; failures are tried again:\n\n"
      "    weir map --csv --group-by region --retries 3 -- ./import --id {id} --file {path}\n\n"
      "A pipeline per file, with a shell:\n\n"
      "    ls *.log | weir map --shell -- 'gzip -dc {} | sort | uniq -c > {/.}.counts'" },
    { 0 },
};

const struct opt_command command_map = {
    .name = "map",
    .synopsis = "[OPTION]... -- COMMAND [ARGUMENT]...",
    .summary = "runs a command per line of input, with limits per group",
    .intro = "Reads records (lines, rows, objects), fills each into COMMAND, and runs these "
             "commands side by side: at "
             "most so many in all, and at most so many of each group. Groups take turns, so a slow "
             "or large one "
             "does not hold up the others. Input is read as it is needed, so it may be endless.",
    .options = options,
    .sections = sections,
};

/* ---- reading them -------------------------------------------------------------------------------- */

struct parsed {
    struct map_options opt;
    struct record_syntax syntax;
    weir_message *message;
};

static int bad_value(weir_message *message, const struct opt_reader *reader, const char *wanted)
{
    snprintf(message->text, sizeof(message->text), "--%s %.100s: use %s", reader->found->name,
             reader->value, wanted);
    return WEIR_EINVAL;
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
    if (syntax->form != FORM_LINES && syntax->form != form) {
        snprintf(message->text, sizeof(message->text), "use only one of --csv, --tsv, --jsonl");
        return WEIR_EINVAL;
    }
    syntax->form = form;
    return 0;
}

static int set_output(struct map_options *opt, enum output_mode mode, weir_message *message)
{
    if (opt->output != OUTPUT_GROUPED && opt->output != mode) {
        snprintf(message->text, sizeof(message->text), "use only one of --line-buffer and --files");
        return WEIR_EINVAL;
    }
    opt->output = mode;
    return 0;
}

static int set_input_option(struct parsed *p, int id, const struct opt_reader *reader)
{
    switch (id) {
    case INPUT:
        p->opt.input = strcmp(reader->value, "-") ? reader->value : NULL;
        return 0;
    case NUL:
        p->opt.separator = 0;
        return 0;
    case CSV:
        return set_form(&p->syntax, FORM_CSV, p->message);
    case TSV:
        return set_form(&p->syntax, FORM_TSV, p->message);
    case JSONL:
        return set_form(&p->syntax, FORM_JSONL, p->message);
    case NO_HEADER:
        p->opt.header = false;
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

static int set_limit_option(struct map_options *opt, int id, const struct opt_reader *reader,
                            weir_message *message)
{
    switch (id) {
    case GROUP_BY:
        opt->group_by = reader->value;
        return 0;
    case JOBS:
        return jobs(&opt->jobs, reader, message);
    case PER_GROUP:
        return count(&opt->per_group, reader, message, 1, SLOTS_MAX);
    case LIMIT:
        return add_rule(&opt->rules, RULE_LIMIT, reader, message);
    case RATE:
        return add_rule(&opt->rules, RULE_RATE, reader, message);
    case WEIGHT:
        return add_rule(&opt->rules, RULE_WEIGHT, reader, message);
    default:
        return count(&opt->max_wait, reader, message, 0, 1000000);
    }
}

static int set_command_option(struct map_options *opt, int id, const struct opt_reader *reader,
                              weir_message *message)
{
    switch (id) {
    case TIMEOUT:
        return duration(&opt->timeout_ns, reader, message);
    case GRACE:
        return duration(&opt->grace_ns, reader, message);
    case RETRIES:
        return count(&opt->retries, reader, message, 0, 1000000);
    case BACKOFF:
        return duration(&opt->backoff_ns, reader, message);
    case BACKOFF_MAX:
        return duration(&opt->backoff_max_ns, reader, message);
    case DELAY:
        return duration(&opt->delay_ns, reader, message);
    case COOL_CODE:
        return count(&opt->cool_code, reader, message, 1, 255);
    case COOL_DOWN:
        return duration(&opt->cool_ns, reader, message);
    case CWD:
        opt->directory = reader->value;
        return 0;
    case SHELL:
        opt->shell = true;
        return 0;
    case NO_APPEND:
        opt->no_append = true;
        return 0;
    default:
        opt->to_stdin = true;
        return 0;
    }
}

static int set_output_option(struct map_options *opt, int id, const struct opt_reader *reader,
                             weir_message *message)
{
    switch (id) {
    case KEEP_ORDER:
        opt->keep_order = true;
        return 0;
    case TAG:
        opt->tagged = true;
        opt->tag = reader->value;
        return 0;
    case LINE_BUFFER:
        return set_output(opt, OUTPUT_LINES, message);
    case FILES:
        opt->files_directory = reader->value;
        return set_output(opt, OUTPUT_FILES, message);
    case RESULTS:
        opt->results_path = reader->value;
        return 0;
    case PROGRESS:
        return progress(&opt->progress, reader, message);
    case HALT:
        return halt_parse(&opt->halt, reader->value, message);
    default:
        opt->dry_run = true;
        return 0;
    }
}

static int set_option(struct parsed *p, int id, const struct opt_reader *reader)
{
    if (id < GROUP_BY)
        return set_input_option(p, id, reader);
    if (id < TIMEOUT)
        return set_limit_option(&p->opt, id, reader, p->message);
    if (id < KEEP_ORDER)
        return set_command_option(&p->opt, id, reader, p->message);
    return set_output_option(&p->opt, id, reader, p->message);
}

static void set_defaults(struct map_options *opt)
{
    const char *temporary = getenv("TMPDIR");
    const int64_t second = 1000000000;

    *opt = (struct map_options){
        .separator = '\n',
        .header = true,
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

/* Without groups all records have the key "": a rule for others would be ignored in silence. */
static int check_rules(const struct map_options *opt, weir_message *message)
{
    for (size_t i = 0; i < opt->rules.count && !opt->group_by; i++) {
        if (fnmatch(opt->rules.rule[i].pattern, "", 0) == 0)
            continue;
        snprintf(message->text, sizeof(message->text),
                 "a rule for \"%.80s\" needs groups: set them with --group-by",
                 opt->rules.rule[i].pattern);
        return WEIR_EINVAL;
    }
    return 0;
}

int cmd_map(char **argv)
{
    weir_message message = { "" };
    struct parsed p = { .message = &message };
    struct opt_reader reader;
    int id, rc = 0;

    set_defaults(&p.opt);
    opt_start(&reader, &command_map, argv);
    while (!rc && (id = opt_next(&reader, &message)) != OPT_END) {
        if (id == HELP) {
            command_help(&command_map);
            return 0;
        }
        rc = id == OPT_WRONG ? WEIR_EINVAL : set_option(&p, id, &reader);
    }
    if (!rc && !reader.argv[0]) {
        snprintf(message.text, sizeof(message.text),
                 "map: which command? Write it after the options: "
                 "weir map [OPTION]... -- COMMAND [ARGUMENT]...");
        rc = WEIR_EINVAL;
    }
    if (!rc && p.opt.keep_order && p.opt.output == OUTPUT_LINES) {
        snprintf(message.text, sizeof(message.text),
                 "use only one of --keep-order and --line-buffer");
        rc = WEIR_EINVAL;
    }
    if (!rc)
        rc = check_rules(&p.opt, &message);
    id = rc ? command_wrong(&command_map, &message) : map_run(&p.opt, &p.syntax, reader.argv);
    rules_fini(&p.opt.rules);
    return id;
}
