/* weir log: what a journal says.
 * SPDX-License-Identifier: MIT */
#include "cli/commands.h"
#include "cli/engine/journal_log.h"
#include "cli/opt/quantity.h"
#include "cli/opt/refuse.h"

#include <stdbool.h>
#include <string.h>

enum { FAILED = 1, SLOWEST, BY_GROUP, WHY_RERUN, FORMAT, HELP };

static const struct opt options[] = {
    { FAILED, 0, "failed", NULL, "Only tasks that have not succeeded.", OPT_TEXT, NULL },
    { SLOWEST, 0, "slowest", "N", "The N that took longest, the slowest first.", OPT_TEXT, NULL },
    { BY_GROUP, 0, "by-group", NULL, "A line per group: how many, how many failed, how long.",
      OPT_TEXT, NULL },
    { WHY_RERUN, 0, "why-rerun", NULL,
      "What the last run ran, and why --resume did not skip it: it is new, it had not succeeded, "
      "or what changed: command, record, group, environment, directory; or --resume was not given.",
      OPT_TEXT, NULL },
    { FORMAT, 0, "format", "FORM",
      "text: columns with tabs between, the default; jsonl: an object per line; csv.", OPT_CHOICE,
      "text jsonl csv" },
    { HELP, 'h', "help", NULL, "Print this help.", OPT_TEXT, NULL },
    { 0 },
};

static const struct opt_section sections[] = {
    { "Examples", "What failed, for another program:\n\n"
                  "    weir log --failed --format jsonl run.journal\n\n"
                  "The ten slowest:\n\n"
                  "    weir log --slowest 10 run.journal" },
    { "Exit status", "0: success. 255: bad arguments, or the journal cannot be read." },
    { 0 },
};

const struct opt_command command_log = {
    .name = "log",
    .synopsis = "[OPTION]... FILE",
    .summary = "shows what a journal of weir map --journal says",
    .intro =
        "Prints a line for each task of the journal FILE that has ended: the run, its number "
        "there, group, reason, exit status, signal, attempts, seconds, record and command. The "
        "file is only read, also while a weir writes it.",
    .options = options,
    .sections = sections,
};

static int set_option(struct journal_log_options *opt, int id, const struct opt_reader *reader,
                      weir_message *message)
{
    static const char *const forms[] = { "text", "jsonl", "csv" };

    switch (id) {
    case FAILED:
        opt->failed = true;
        return 0;
    case SLOWEST:
        if (quantity_count(&opt->slowest, reader->value, 1, INT64_MAX))
            return 0;
        return refuse(message, "--slowest %.80s: use a number, 1 or more", reader->value);
    case BY_GROUP:
        opt->by_group = true;
        return 0;
    case WHY_RERUN:
        opt->why_rerun = true;
        return 0;
    default:
        for (int i = 0; i < 3; i++)
            if (!strcmp(reader->value, forms[i])) {
                opt->form = (enum log_form)i;
                return 0;
            }
        return refuse(message, "--format %.80s: use text, jsonl or csv", reader->value);
    }
}

/* The file, behind which further options may stand. True: there is more to read. */
static bool take_path(struct journal_log_options *opt, struct opt_reader *reader, char **argv)
{
    bool words_only = reader->argv > argv && !strcmp(reader->argv[-1], "--");

    if (opt->path || !*reader->argv)
        return false;
    opt->path = *reader->argv++;
    if (!words_only)
        opt_start(reader, &command_log, reader->argv);
    return !words_only;
}

int cmd_log(char **argv)
{
    struct journal_log_options opt = { 0 };
    weir_message message = { "" };
    struct opt_reader reader;
    int id, rc = 0;

    opt_start(&reader, &command_log, argv);
    do {
        while (!rc && (id = opt_next(&reader, &message)) != OPT_END) {
            if (id == HELP) {
                command_print_help(&command_log);
                return 0;
            }
            rc = id == OPT_WRONG ? WEIR_EINVAL : set_option(&opt, id, &reader, &message);
        }
    } while (!rc && take_path(&opt, &reader, argv));
    if (!rc && (!opt.path || *reader.argv))
        rc = refuse(&message, "log: which journal? weir log [OPTION]... FILE");
    if (!rc && opt.by_group + opt.why_rerun + (opt.slowest > 0 && !opt.by_group) > 1)
        rc = refuse(&message, "use only one of --by-group, --why-rerun and --slowest");
    return rc ? command_wrong(&command_log, &message) : journal_log(&opt);
}
