/* weir map: the table of its options, and its manual.
 * SPDX-License-Identifier: MIT */
#include "cli/commands.h"
#include "cli/map_options.h"

static const struct opt options[] = {
    { 0, 0, "Input", NULL, NULL, OPT_TEXT, NULL },
    { MAP_INPUT, 'a', "input", "FILE", "Read records from FILE; - is standard input, the default.",
      OPT_FILE, NULL },
    { MAP_NUL, '0', "null", NULL, "Records end with a zero byte, as find -print0 writes them.",
      OPT_TEXT, NULL },
    { MAP_CSV, 0, "csv", NULL,
      "Records are rows of comma-separated values; the first row names the columns.", OPT_TEXT,
      NULL },
    { MAP_TSV, 0, "tsv", NULL, "As --csv, but separated by tabs.", OPT_TEXT, NULL },
    { MAP_JSONL, 0, "jsonl", NULL,
      "Each line is a JSON object; {name} is a field, {a.b} one inside another.", OPT_TEXT, NULL },
    { MAP_NO_HEADER, 0, "no-header", NULL,
      "With --csv or --tsv: the first row is a record like the others.", OPT_TEXT, NULL },
    { MAP_DELIMITER, 'd', "delimiter", "C",
      "The byte between columns. Default for plain lines: blanks separate columns.", OPT_TEXT,
      NULL },

    { 0, 0, "Groups and limits", NULL, NULL, OPT_TEXT, NULL },
    { MAP_GROUP_BY, 'g', "group-by", "SPEC",
      "How to find a record's group: a column's number or a field's name; /REGEX/ for the part "
      "of the record that its first (...) matches; host for the host of the record's first URL, "
      "host:FIELD for the host of the URL in a field; or a text with placeholders.",
      OPT_TEXT, NULL },
    { MAP_JOBS, 'j', "jobs", "N",
      "Run at most N commands at once, over all groups. Default: the CPUs this process may use. N% "
      "is a share of these CPUs.",
      OPT_TEXT, NULL },
    { MAP_PER_GROUP, 'J', "per-group", "N",
      "Run at most N commands of each group at once. Default: only -j limits them.", OPT_TEXT,
      NULL },
    { MAP_LIMIT, 0, "limit", "PATTERN=N",
      "As -J, for groups whose key matches PATTERN (*, ? and [...] as in file names). May be "
      "given several times; the last rule that matches counts.",
      OPT_TEXT, NULL },
    { MAP_RATE, 0, "rate", "PATTERN=N/T",
      "Start at most N commands per T (10/s, 100/m, 5/250ms) of each group that matches, evenly "
      "spread; N/T:BURST lets up to BURST start at once. Without PATTERN= the rate is for each "
      "group.",
      OPT_TEXT, NULL },
    { MAP_WEIGHT, 0, "weight", "PATTERN=N",
      "Give groups that match PATTERN N turns for each turn of other groups. Default 1.", OPT_TEXT,
      NULL },
    { MAP_MAX_WAIT, 0, "max-wait", "N",
      "Read at most N records ahead of the running commands. Default 10000. This bounds memory, "
      "however long the input is; but if N records of one group wait, groups further down in the "
      "input are not read yet.",
      OPT_TEXT, NULL },

    { 0, 0, "Each command", NULL, NULL, OPT_TEXT, NULL },
    { MAP_TIMEOUT, 0, "timeout", "T",
      "End a command that runs longer than T (30s, 5m, 1.5h): send TERM to its process group, "
      "and KILL after --grace.",
      OPT_TEXT, NULL },
    { MAP_GRACE, 0, "grace", "T", "Time between TERM and KILL. Default 5s.", OPT_TEXT, NULL },
    { MAP_RETRIES, 0, "retries", "N", "Run a failed command again, up to N times.", OPT_TEXT,
      NULL },
    { MAP_BACKOFF, 0, "backoff", "T",
      "Wait T before the second attempt, twice as long before each further one. Default 1s. "
      "A command that waits for its retry takes no place of -j.",
      OPT_TEXT, NULL },
    { MAP_BACKOFF_MAX, 0, "backoff-max", "T", "Longest wait before a retry. Default 5m.", OPT_TEXT,
      NULL },
    { MAP_DELAY, 0, "delay", "T", "Wait at least T between any two starts.", OPT_TEXT, NULL },
    { MAP_COOL_CODE, 0, "cool-code", "N",
      "Exit status N asks for a pause: the command's group starts nothing for --cool-down, then "
      "the command is run again (up to 100 times, and not counted as a failure). The command may "
      "write another duration (30s) to descriptor $WEIR_COOL_FD.",
      OPT_TEXT, NULL },
    { MAP_COOL_DOWN, 0, "cool-down", "T",
      "Pause after --cool-code, unless the command writes its own. Default 10s.", OPT_TEXT, NULL },
    { MAP_CWD, 0, "cwd", "DIR", "Run commands in DIR, which may contain placeholders.",
      OPT_DIRECTORY, NULL },
    { MAP_SHELL, 0, "shell", NULL,
      "The command is a script for /bin/sh. Placeholders in it are safe, whatever the input: they "
      "become "
      "variables, never text of the script.",
      OPT_TEXT, NULL },
    { MAP_STDIN, 0, "stdin", NULL,
      "Give each command its record on standard input, with its end of line; {} is not appended. "
      "Without this option standard input is empty.",
      OPT_TEXT, NULL },
    { MAP_NO_APPEND, 'N', "no-append", NULL,
      "Do not append {} to a command without placeholders: run it as it is, once per record.",
      OPT_TEXT, NULL },

    { 0, 0, "Output", NULL, NULL, OPT_TEXT, NULL },
    { MAP_KEEP_ORDER, 'k', "keep-order", NULL, "Print outputs in the order of the input.", OPT_TEXT,
      NULL },
    { MAP_TAG, 0, "tag", "[TEXT]",
      "Begin each line with TEXT and a tab. Default: the group's key, or {} without groups.",
      OPT_TEXT, NULL },
    { MAP_LINE_BUFFER, 0, "line-buffer", NULL,
      "Print each line as soon as it is complete (lines beyond 64 KiB in parts). Default: print "
      "a command's output in one piece when the command has ended.",
      OPT_TEXT, NULL },
    { MAP_FILES, 0, "files", "DIR",
      "Write outputs to DIR/SEQ.out and DIR/SEQ.err, and print none; DIR is created if needed.",
      OPT_DIRECTORY, NULL },
    { MAP_RESULTS, 0, "results", "FILE", "Write a line of JSON per command to FILE; see below.",
      OPT_FILE, NULL },
    { MAP_PROGRESS, 0, "progress", "WHEN",
      "auto: a live display if standard error is a terminal, else a line every ten seconds; "
      "always: a line every second; never: nothing.",
      OPT_CHOICE, "auto never always" },

    { 0, 0, "The whole run", NULL, NULL, OPT_TEXT, NULL },
    { MAP_HALT, 0, "halt", "WHEN",
      "soon,fail=N: start no more commands once N have failed; now,fail=N: also end the running "
      "ones. N% is a share of the commands that have ended, and counts once three have failed. "
      "Default: never.",
      OPT_TEXT, NULL },
    { MAP_DRY_RUN, 'n', "dry-run", NULL, "Print the commands, quoted for a shell, and run none.",
      OPT_TEXT, NULL },
    { MAP_HELP, 'h', "help", NULL, "Print this help.", OPT_TEXT, NULL },
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
