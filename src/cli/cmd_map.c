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
    { INPUT, 'a', "input", "FILE", "Read records from FILE; - is standard input, the default.",
      OPT_FILE, NULL },
    { NUL, '0', "null", NULL, "Records end with a zero byte, as find -print0 writes them.",
      OPT_TEXT, NULL },
    { CSV, 0, "csv", NULL,
      "Records are rows of comma-separated values; the first row names the columns.", OPT_TEXT,
      NULL },
    { TSV, 0, "tsv", NULL, "As --csv, but separated by tabs.", OPT_TEXT, NULL },
    { JSONL, 0, "jsonl", NULL,
      "Each line is a JSON object; {name} is a field, {a.b} one inside another.", OPT_TEXT, NULL },
    { NO_HEADER, 0, "no-header", NULL,
      "With --csv or --tsv: the first row is a record like the others.", OPT_TEXT, NULL },
    { DELIMITER, 'd', "delimiter", "C",
      "The byte between columns. Default for plain lines: blanks separate columns.", OPT_TEXT,
      NULL },

    { 0, 0, "Groups and limits", NULL, NULL, OPT_TEXT, NULL },
    { GROUP_BY, 'g', "group-by", "SPEC",
      "How to find a record's group: a column's number or a field's name; /REGEX/ for the part "
      "of the record that its first (...) matches; host for the host of the record's first URL, "
      "host:FIELD for the host of the URL in a field; or a text with placeholders.",
      OPT_TEXT, NULL },
    { JOBS, 'j', "jobs", "N",
      "Run at most N commands at once, over all groups. Default: the CPUs this process may use. N% "
      "is a share of these CPUs.",
      OPT_TEXT, NULL },
    { PER_GROUP, 'J', "per-group", "N",
      "Run at most N commands of each group at once. Default: only -j limits them.", OPT_TEXT,
      NULL },
    { LIMIT, 0, "limit", "PATTERN=N",
      "As -J, for groups whose key matches PATTERN (*, ? and [...] as in file names). May be "
      "given several times; the last rule that matches counts.",
      OPT_TEXT, NULL },
    { RATE, 0, "rate", "PATTERN=N/T",
      "Start at most N commands per T (10/s, 100/m, 5/250ms) of each group that matches, evenly "
      "spread; N/T:BURST lets up to BURST start at once. Without PATTERN= the rate is for each "
      "group.",
      OPT_TEXT, NULL },
    { WEIGHT, 0, "weight", "PATTERN=N",
      "Give groups that match PATTERN N turns for each turn of other groups. Default 1.", OPT_TEXT,
      NULL },
    { MAX_WAIT, 0, "max-wait", "N",
      "Read at most N records ahead of the running commands. Default 10000. This bounds memory, "
      "however long the input is; but if N records of one group wait, groups further down in the "
      "input are not read yet.",
      OPT_TEXT, NULL },

    { 0, 0, "Each command", NULL, NULL, OPT_TEXT, NULL },
    { TIMEOUT, 0, "timeout", "T",
      "End a command that runs longer than T (30s, 5m, 1.5h): send TERM to its process group, "
      "and KILL after --grace.",
      OPT_TEXT, NULL },
    { GRACE, 0, "grace", "T", "Time between TERM and KILL. Default 5s.", OPT_TEXT, NULL },
    { RETRIES, 0, "retries", "N", "Run a failed command again, up to N times.", OPT_TEXT, NULL },
    { BACKOFF, 0, "backoff", "T",
      "Wait T before the second attempt, twice as long before each further one. Default 1s. "
      "A command that waits for its retry takes no place of -j.",
      OPT_TEXT, NULL },
    { BACKOFF_MAX, 0, "backoff-max", "T", "Longest wait before a retry. Default 5m.", OPT_TEXT,
      NULL },
    { DELAY, 0, "delay", "T", "Wait at least T between any two starts.", OPT_TEXT, NULL },
    { COOL_CODE, 0, "cool-code", "N",
      "Exit status N asks for a pause: the command's group starts nothing for --cool-down, then "
      "the command is run again (up to 100 times, and not counted as a failure). The command may "
      "write another duration (30s) to descriptor $WEIR_COOL_FD.",
      OPT_TEXT, NULL },
    { COOL_DOWN, 0, "cool-down", "T",
      "Pause after --cool-code, unless the command writes its own. Default 10s.", OPT_TEXT, NULL },
    { CWD, 0, "cwd", "DIR", "Run commands in DIR, which may contain placeholders.", OPT_DIRECTORY,
      NULL },
    { SHELL, 0, "shell", NULL,
      "The command is a script for /bin/sh. Placeholders in it are safe, whatever the input: they "
      "become "
      "variables, never text of the script.",
      OPT_TEXT, NULL },
    { STDIN, 0, "stdin", NULL,
      "Give each command its record on standard input, with its end of line; {} is not appended. "
      "Without this option standard input is empty.",
      OPT_TEXT, NULL },
    { NO_APPEND, 'N', "no-append", NULL,
      "Do not append {} to a command without placeholders: run it as it is, once per record.",
      OPT_TEXT, NULL },

    { 0, 0, "Output", NULL, NULL, OPT_TEXT, NULL },
    { KEEP_ORDER, 'k', "keep-order", NULL, "Print outputs in the order of the input.", OPT_TEXT,
      NULL },
    { TAG, 0, "tag", "[TEXT]",
      "Begin each line with TEXT and a tab. Default: the group's key, or {} without groups.",
      OPT_TEXT, NULL },
    { LINE_BUFFER, 0, "line-buffer", NULL,
      "Print each line as soon as it is complete (lines beyond 64 KiB in parts). Default: print "
      "a command's output in one piece when the command has ended.",
      OPT_TEXT, NULL },
    { FILES, 0, "files", "DIR",
      "Write outputs to DIR/SEQ.out and DIR/SEQ.err, and print none; DIR is created if needed.",
      OPT_DIRECTORY, NULL },
    { RESULTS, 0, "results", "FILE", "Write a line of JSON per command to FILE; see below.",
      OPT_FILE, NULL },
    { PROGRESS, 0, "progress", "WHEN",
      "auto: a live display if standard error is a terminal, else a line every ten seconds; "
      "always: a line every second; never: nothing.",
      OPT_CHOICE, "auto never always" },

    { 0, 0, "The whole run", NULL, NULL, OPT_TEXT, NULL },
    { HALT, 0, "halt", "WHEN",
      "soon,fail=N: start no more commands once N have failed; now,fail=N: also end the running "
      "ones. N% is a share of the commands that have ended, and counts once three have failed. "
      "Default: never.",
      OPT_TEXT, NULL },
    { DRY_RUN, 'n', "dry-run", NULL, "Print the commands, quoted for a shell, and run none.",
      OPT_TEXT, NULL },
    { HELP, 'h', "help", NULL, "Print this help.", OPT_TEXT, NULL },
    { 0 },
};

static const struct opt_section sections[] = {
    { "Placeholders",
      "In COMMAND, --cwd and --tag: {} is the record, {1} {2} its columns, {name} a field by its "
      "name, {key} its "
      "group, {seq} its number from 1, {.} the record without its extension, {/} the last part of "
      "its path, {//} the "
      "directory, {/.} the last part without extension. Anything else in braces stays as it is; "
      "but a name "
      "that the header of --csv or --tsv lacks is an error, unless it follows a $. \\{name} is the "
      "text {name}. Write a column named key or seq by its number. "
      "Values become arguments as they are, without a shell: blanks, quotes and newlines in them "
      "are harmless. If COMMAND uses no placeholder of the record, {} is appended. A record "
      "without "
      "a field that a placeholder or --group-by names is not run, and counts as failed." },
    { "Environment",
      "Set for each command: WEIR_KEY, the group; WEIR_SEQ, the record's number; WEIR_SLOT, a "
      "number from 1 to -j that no other running command has; WEIR_ATTEMPT, which counts from "
      "1.\n\n"
      "weir itself reads NO_COLOR, TERM and TMPDIR, the directory for output that waits to be "
      "printed, beyond 64 KiB per command." },
    { "Signals",
      "Commands run in process groups of their own, so Ctrl-C reaches weir alone. After the first "
      "Ctrl-C weir starts no more commands and waits for the running ones; the second ends them "
      "(TERM, then KILL after --grace); the third kills them. TERM and HUP act like the second "
      "Ctrl-C. Ctrl-Z stops the commands as well, and the clocks of --timeout and --grace. If weir "
      "itself ends, even by kill -9, its commands are ended. weir does not wait for background "
      "processes of a command that ended by itself. As the first process of a container, weir "
      "also reaps processes that commands leave behind." },
    { "Display", "On a terminal each group has a line: done, running, waiting, failed, rate per "
                 "second. Press w to see which tasks wait, and why." },
    { "Results", "Each line of the --results file is an object: seq, group, command (an array), "
                 "exit (null if it did not exit by "
                 "itself), signal, attempts, queued, started and ended (seconds since 1970; of the "
                 "last attempt), and reason: "
                 "done, failed, timed_out, cannot_run, bad_input, output_lost, halted, not_run. "
                 "Bytes that are not UTF-8 "
                 "appear as \\udc80 to \\udcff." },
    { "Exit status",
      "0: all commands succeeded. 1 to 100: the number of commands that failed, without those that "
      "--halt ended. 101: more than 100 failed. 126, 127: the command, the same for all records, "
      "cannot be run, or was not found. 255: another error: bad arguments, unreadable input, "
      "output that could not be written, or an interrupt before all commands had run." },
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
             "commands side by side, with a limit for all of them and a limit for each group. "
             "Groups take turns, so a slow or large group does not hold up the others. Input is "
             "read as it is needed, so it may be endless.",
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
