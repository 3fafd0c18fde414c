/* weir map: the table of its options, and its manual.
 * SPDX-License-Identifier: MIT */
#include "cli/commands.h"
#include "cli/map_options.h"

static const struct opt options[] = {
    { 0, 0, "Input", NULL, NULL, OPT_TEXT, NULL },
    { MAP_INPUT, 'a', "input", "FILE",
      "Read records from FILE; - is standard input, the default. Several are read one after the "
      "other.",
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
    { MAP_DELIMITER, 'd', "delimiter", "TEXT",
      "What separates columns: a byte, or for plain lines also several; \\t is a tab. Default for "
      "plain lines: blanks.",
      OPT_TEXT, NULL },
    { MAP_RECORD_END, 0, "record-end", "TEXT",
      "Plain records end with TEXT instead of an end of line; \\n, \\r, \\t, \\0 and \\xHH are "
      "known.",
      OPT_TEXT, NULL },
    { MAP_SHUF, 0, "shuf", NULL,
      "Run in random order. All of the input is read first, into memory.", OPT_TEXT, NULL },

    { 0, 0, "Groups and limits", NULL, NULL, OPT_TEXT, NULL },
    { MAP_GROUP_BY, 'g', "group-by", "SPEC",
      "How to find a record's group: a column's number or a field's name; /REGEX/ for the part "
      "of the record that its first (...) matches; host for the host of the record's first URL, "
      "host:FIELD for the host of the URL in a field; or a text with placeholders.",
      OPT_TEXT, NULL },
    { MAP_JOBS, 'j', "jobs", "N",
      "Run at most N commands at once, over all groups. Default: the CPUs this process may use. +N "
      "is N more than these, N% a share of them. The name of a file with such a value is fine, "
      "too: it is read again while weir runs.",
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
      "Read input for at most N tasks ahead of the running commands. Default 10000. This bounds "
      "memory, "
      "however long the input is; but if N tasks of one group wait, groups further down in the "
      "input are not read yet.",
      OPT_TEXT, NULL },

    { MAP_LOAD, 0, "load", "N",
      "Hold commands back while N processes or more run on this machine; N% is a share of the "
      "CPUs.",
      OPT_TEXT, NULL },
    { MAP_MEM_FREE, 0, "mem-free", "SIZE",
      "Hold commands back while less than SIZE (512M, 2G) of memory is available.", OPT_TEXT,
      NULL },
    { MAP_PRESSURE, 0, "pressure", "WHAT=N%",
      "Hold commands back while the kernel says that processes stall for cpu, memory or io in N% "
      "of "
      "the time or more (PSI, over ten seconds).",
      OPT_TEXT, NULL },

    { 0, 0, "Each command", NULL, NULL, OPT_TEXT, NULL },
    { MAP_TIMEOUT, 0, "timeout", "T",
      "End a command that runs longer than T (30s, 5m, 1.5h), or than N% of what commands usually "
      "take (the median of those that succeeded, once there are three): send TERM to its process "
      "group, and KILL after --grace.",
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
      "variables, never text of the script. {} is not appended. See Scripts.",
      OPT_TEXT, NULL },
    { MAP_STDIN, 0, "stdin", NULL,
      "Give each command its record on standard input, with its end of line; {} is not appended. "
      "Without this option standard input is empty.",
      OPT_TEXT, NULL },
    { MAP_NO_APPEND, 'N', "no-append", NULL,
      "Do not append {} to a command without placeholders: run it as it is, once per record.",
      OPT_TEXT, NULL },

    { MAP_RECORDS, 'n', "records", "N",
      "Up to N records of one group per command: a word with {} or a column is repeated for each "
      "record. With --stdin all of them are on standard input.",
      OPT_TEXT, NULL },
    { MAP_FIT, 'X', "fit", NULL,
      "As -n, with as many records as fit into a command line (128 KiB at most).", OPT_TEXT, NULL },
    { MAP_PIPE, 0, "pipe", NULL,
      "Split the input among commands: each gets a block of whole records on standard input; {} "
      "is not appended. With -n, N records.",
      OPT_TEXT, NULL },
    { MAP_BLOCK, 0, "block", "SIZE", "Bytes of a --pipe block, at most. Default 1M.", OPT_TEXT,
      NULL },
    { MAP_ENV, 0, "env", "NAME[=VALUE]",
      "Set a variable for the commands. With a journal the value belongs to each task: if it "
      "changes, --resume runs the task again.",
      OPT_TEXT, NULL },
    { MAP_TTY, 0, "tty", NULL,
      "Give each command the terminal: for editors and questions. One runs at a time.", OPT_TEXT,
      NULL },

    { 0, 0, "Output", NULL, NULL, OPT_TEXT, NULL },
    { MAP_KEEP_ORDER, 'k', "keep-order", NULL, "Print outputs in the order of the input.", OPT_TEXT,
      NULL },
    { MAP_TAG, 0, "tag", "[TEXT]",
      "Begin each line with TEXT and a tab. Default: the group's key, or {} without groups.",
      OPT_TEXT, NULL },
    { MAP_TRACE, 't', "trace", NULL, "Print each command on standard error as it starts.", OPT_TEXT,
      NULL },
    { MAP_LINE_BUFFER, 0, "line-buffer", NULL,
      "Print each line as soon as it is complete (lines beyond 64 KiB in parts). Default: print "
      "a command's output in one piece when the command has ended.",
      OPT_TEXT, NULL },
    { MAP_FILES, 0, "files", "DIR",
      "Write outputs to DIR/SEQ.out and DIR/SEQ.err, and print none; DIR is created if needed.",
      OPT_DIRECTORY, NULL },
    { MAP_RESULTS, 0, "results", "FILE",
      "Write a line of JSON per task to FILE; - is standard output. See below.", OPT_FILE, NULL },
    { MAP_JOURNAL, 0, "journal", "FILE",
      "Record in FILE, an SQLite database, how each task ended; weir log reads it. One weir uses "
      "it "
      "at a time.",
      OPT_FILE, NULL },
    { MAP_RESUME, 0, "resume", NULL,
      "Skip tasks that have ended by the --journal, whether they succeeded or failed. A task is "
      "known by its command, record, group, --env and "
      "directory, not by its line, so the input may change. If there is no such file, it is "
      "created.",
      OPT_TEXT, NULL },
    { MAP_RETRY_FAILED, 0, "retry-failed", NULL, "As --resume, but run tasks that failed again.",
      OPT_TEXT, NULL },
    { MAP_IF_EXISTS, 0, "if-exists", "WHAT",
      "What to do if the --results file has content, or the --files directory has outputs of an "
      "earlier run. refuse: run nothing, the default; append: add to the file; new: write to "
      "FILE.2 or DIR.2 (or .3, ...), and say so.",
      OPT_CHOICE, "refuse append new" },
    { MAP_SHOW_RETRIES, 0, "show-retries", NULL,
      "Also print the output of attempts that failed and were retried. Default: print the last "
      "attempt's output. The --results line keeps the end of it (4 KiB) in any case.",
      OPT_TEXT, NULL },
    { MAP_PROGRESS, 0, "progress", "WHEN",
      "auto: a live display if standard error is a terminal, else nothing; always: without a "
      "terminal a line every second; never: nothing.",
      OPT_CHOICE, "auto never always" },

    { 0, 0, "The whole run", NULL, NULL, OPT_TEXT, NULL },
    { MAP_HALT, 0, "halt", "WHEN",
      "soon,fail=N: start no more commands once N have failed; now,fail=N: also end the running "
      "ones. success=N counts those that succeeded. N% is a share of those "
      "that have ended, and counts once there are three. Default: never.",
      OPT_TEXT, NULL },
    { MAP_DRY_RUN, 0, "dry-run", NULL, "Print the commands, quoted for a shell, and run none.",
      OPT_TEXT, NULL },
    { MAP_HELP, 'h', "help", NULL, "Print this help.", OPT_TEXT, NULL },
    { 0 },
};

static const struct opt_section sections[] = {
    { "Placeholders",
      "In COMMAND, --cwd and --tag: {} is the record, {1} {2} its columns, {name} a field by its "
      "name, {key} its group, {seq} or {#} the task's number from 1, {.} the record without its "
      "extension, {/} the last part of its path, {//} the directory, {/.} the last part without "
      "extension; {1/.} and {name//} are the same of a column. In COMMAND also {%}, the number of "
      "the "
      "slot it runs in. A name that no column has is an error, and so are placeholders of GNU "
      "parallel's that are not known here; \\{name} is the text {name}, and \\{} the text {}. All "
      "else in braces is text: {print $1}, {a,b}, {1..3}, { cmd; }, and a name that another "
      "language marks as its own: ${name}, $ENV{name}, %{name}, {{name}}. Write a column named key "
      "or seq by its "
      "number. Values become arguments as they are, without a shell: blanks, quotes and newlines "
      "in "
      "them are harmless. If COMMAND has no placeholder, {} is appended, but not with --shell, "
      "--stdin "
      "or --pipe. A record without a field that a placeholder or --group-by names is not run, and "
      "counts as failed." },
    { "Environment",
      "Set for each command: WEIR_KEY, the group; WEIR_SEQ, the task's number; WEIR_SLOT, a "
      "number from 1 to -j that no other running command has; WEIR_ATTEMPT, which counts from "
      "1; WEIR_RUN, which marks the processes of this run.\n\n"
      "weir itself reads NO_COLOR, TERM and TMPDIR, the directory for output that waits to be "
      "printed, beyond 64 KiB per command." },
    { "Signals",
      "Commands run in process groups of their own, so Ctrl-C reaches weir alone. After the first "
      "Ctrl-C weir starts no more commands and waits for the running ones; the second ends them "
      "(TERM, then KILL after --grace); the third kills them. TERM and HUP act like the second "
      "Ctrl-C. Ctrl-Z stops the commands as well, and the clocks of --timeout and --grace. If weir "
      "itself ends, even by kill -9, its commands are ended, and so is what they started, also in "
      "sessions of its own, unless it has cleared WEIR_RUN. USR1 and USR2: one more, one less at a "
      "time. weir does not wait for background "
      "processes of a command that ended by itself. As the first process of a container, weir "
      "also reaps processes that commands leave behind." },
    { "Display", "On a terminal each group has a line: done, running, waiting, failed, rate per "
                 "second. Press w to see which tasks wait, and why." },
    { "Results",
      "Each line of the --results file is an object: seq, group, command (an array), exit (null if "
      "it did not exit by itself), signal, attempts, queued, started and ended (seconds since "
      "1970; "
      "of the last attempt), reason, record (with -n an array), and failed_attempts, if there were "
      "retries: exit, signal and the end of out and err (4 KiB each). The reason is done, failed, "
      "timed_out, cannot_run, bad_input, output_lost (its output could not be stored), "
      "not_recorded (it ran, but the journal could not be written), halted or not_run. Bytes that "
      "are not UTF-8 appear as \\udc80 to \\udcff." },
    { "Values",
      "::: after the command is followed by values: weir map -- echo ::: a b. Several lists are "
      "combined, {1} {2} are their values, {} all of them with blanks between; :::+ goes on with "
      "the "
      "list before it; :::: is followed by files, each a list of lines." },
    { "Scripts",
      "With --shell the words are one script for /bin/sh. A placeholder is a variable of it, so no "
      "value can become code; where bash would calculate with it, it must be a whole number, and "
      "where a variable's name is expected, there can be none; nor can ${x@P} be there, with which "
      "bash runs what is in x. But inside of a script for another shell (sh -c 'echo {}', eval, "
      "ssh) it is part of that script, and code there, with --shell or without: weir warns. Pass "
      "it as an argument: sh -c 'echo \"$1\"' sh {}. What the script does with variables of its "
      "own is "
      "not followed: after x={}, bash runs commands in x if the script calculates with it, $((x)) "
      "or "
      "[[ $x -gt 5 ]], takes it for a name, ${!x} or [[ -v $x ]], or for code, eval, trap, PS4." },
    { "Exit status",
      "0: all commands succeeded. 1 to 100: the number of commands that failed, without those that "
      "--halt ended; with --resume also what failed in earlier runs and was not run again. 101: "
      "more "
      "than 100 failed. 126, 127: the command, the same for all records, "
      "cannot be run, or was not found. 255: another error: bad arguments, unreadable input, "
      "output that could not be written, or an interrupt before all commands had run." },
    { "Examples",
      "At most 8 at once, and 2 per host, at most 5 per second to the slow one:\n\n"
      "    weir map -j8 -J2 --group-by host --rate 'slow.example=5/s' -a urls.txt -- curl -sSfO "
      "{}\n\n"
      "A column names the group; failures are tried again:\n\n"
      "    weir map --csv --group-by region --retries 3 -- ./import --id {id} --file {path}\n\n"
      "Go on where an earlier run ended:\n\n"
      "    weir map --journal run.journal --resume -a urls.txt -- curl -sSfO {}\n\n"
      "A pipeline per file, with a shell:\n\n"
      "    ls *.log | weir map --shell -- 'gzip -dc {} | sort | uniq -c > {/.}.counts'" },
    { 0 },
};

static const struct opt_hint hints[] = {
    { "-P", "use -j N, --jobs N" },
    { "--max-procs", "use -j N, --jobs N" },
    { "-I", "write {} where the record belongs" },
    { "--replace", "write {} where the record belongs" },
    { "-i", "write {} where the record belongs" },
    { "-L", "use -n N, --records N" },
    { "-l", "use -n N, --records N" },
    { "--max-lines", "use -n N, --records N" },
    { "--max-args", "use -n N, --records N" },
    { "-s", "use -X: as many as fit, within the limits of the system" },
    { "--max-chars", "use -X: as many as fit, within the limits of the system" },
    { "-m", "use -X" },
    { "--xargs", "use -X" },
    { "--multiple", "use -X" },
    { "-x", "a command line that is too long is an error in any case" },
    { "--exit", "a command line that is too long is an error in any case" },
    { "-r", "leave it out: without records nothing runs" },
    { "--no-run-if-empty", "leave it out: without records nothing runs" },
    { "-E", "there is no end mark: use sed or head before weir" },
    { "-e", "there is no end mark: use sed or head before weir" },
    { "--eof", "there is no end mark: use sed or head before weir" },
    { "-o", "use --tty" },
    { "--open-tty", "use --tty" },
    { "-p", "there are no questions before commands; look first with --dry-run" },
    { "--interactive", "there are no questions before commands; look first with --dry-run" },
    { "--verbose", "use -t, --trace" },
    { "-v", "use -t, --trace" },
    { "--process-slot-var", "the slot is in $WEIR_SLOT, and {%}" },
    { "--arg-file", "use -a FILE, --input FILE" },
    { "-S", "commands run on this machine only: use ssh in the command, with --group-by for limits "
            "per host" },
    { "--sshlogin", "commands run on this machine only: use ssh in the command, with --group-by "
                    "for limits per host" },
    { "--sshloginfile", "commands run on this machine only: use ssh in the command, with "
                        "--group-by for limits per host" },
    { "--slf", "commands run on this machine only: use ssh in the command, with --group-by for "
               "limits per host" },
    { "--onall", "commands run on this machine only: use ssh in the command" },
    { "--nonall", "commands run on this machine only: use ssh in the command" },
    { "--transfer", "commands run on this machine only: use scp or rsync in the command" },
    { "--return", "commands run on this machine only: use scp or rsync in the command" },
    { "--cleanup", "commands run on this machine only" },
    { "--joblog", "use --journal FILE, or --results FILE for lines of JSON" },
    { "--bar", "on a terminal there is a display; --progress always prints lines elsewhere" },
    { "--eta",
      "on a terminal there is a display with it; --progress always prints lines elsewhere" },
    { "--resume-failed", "use --retry-failed" },
    { "-u", "use --line-buffer: lines are never mixed" },
    { "--ungroup", "use --line-buffer: lines are never mixed" },
    { "--lb", "use --line-buffer" },
    { "--linebuffer", "use --line-buffer" },
    { "--group", "leave it out: outputs are not mixed" },
    { "--colsep", "use -d, --delimiter" },
    { "-C", "use -d, --delimiter" },
    { "--tagstring", "use --tag=TEXT" },
    { "--wd", "use --cwd DIR" },
    { "--workdir", "use --cwd DIR" },
    { "--memfree", "use --mem-free SIZE" },
    { "--memsuspend", "use --mem-free SIZE: commands are held back" },
    { "--noswap", "use --pressure memory=N%" },
    { "--limitlocal", "use --pressure" },
    { "--nice", "run nice weir map ..." },
    { "--recend", "use --record-end TEXT" },
    { "--recstart", "records are known by their end: use --record-end TEXT" },
    { "--spreadstdin", "use --pipe" },
    { "--pipepart", "use --pipe -a FILE" },
    { "--pipe-part", "use --pipe -a FILE" },
    { "--round-robin", "use --pipe: a block for each command" },
    { "--roundrobin", "use --pipe: a block for each command" },
    { "--tee", "use tee(1) in a --shell script" },
    { "--plus", "{.}, {/}, {//} and {/.} are always known; use --shell for more" },
    { "--rpl", "use --shell: a placeholder is a variable there" },
    { "--transferfile", "commands run on this machine only: use scp or rsync in the command" },
    { "--trc", "commands run on this machine only: use scp or rsync in the command" },
    { "--basefile", "commands run on this machine only: use scp or rsync in the command" },
    { "--hostgroups", "commands run on this machine only: use ssh in the command" },
    { "--controlmaster", "commands run on this machine only: use ssh in the command" },
    { "--fg", "a run ends when its commands have ended" },
    { "--wait", "a run ends when its commands have ended" },
    { "--shellquote", "use --dry-run, which quotes for a shell" },
    { "--dryrun", "use --dry-run" },
    { "--quote", "leave it out: values are never seen by a shell" },
    { "-q", "leave it out: values are never seen by a shell" },
    { "--link", "use :::+" },
    { "--header", "use --csv or --tsv" },
    { "--semaphore", "weir limits what it starts itself; use flock(1)" },
    { "--sem", "weir limits what it starts itself; use flock(1)" },
    { "--termseq", "use --halt" },
    { "--no-notice", "there is no notice" },
    { "--will-cite", "there is no notice" },
    { "--citation", "there is no notice" },
    { "--bg", "a run has no background: use & of the shell" },
    { "--fifo", "use --pipe: standard input" },
    { "--cat", "use --pipe: standard input" },
    { "--compress", "output that waits is not compressed; $TMPDIR says where" },
    { "--tmpdir", "set $TMPDIR" },
    { "--trim", "use sed before weir" },
    { "--number-of-cores", "see nproc(1)" },
    { "--gnu", "leave it out" },
    { "--silent", "leave it out" },
    { "-D", "use --dry-run, or -t" },
    { NULL, NULL },
};

const struct opt_command command_map = {
    .name = "map",
    .synopsis =
        "[OPTION]... -- COMMAND [ARGUMENT]...\n[OPTION]... -- COMMAND [ARGUMENT]... ::: VALUE...",
    .summary = "runs a command per line of input, with limits per group",
    .intro = "Reads records (lines, rows, objects), fills each into COMMAND, and runs these "
             "commands side by side, with a limit for all of them and a limit for each group. "
             "Groups take turns, so a slow or large group does not hold up the others. Input is "
             "read as it is needed, so it may be endless.",
    .options = options,
    .sections = sections,
    .hints = hints,
};
