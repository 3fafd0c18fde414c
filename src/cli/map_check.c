/* weir map: options that have no meaning together.
 * SPDX-License-Identifier: MIT */
#include "cli/map_options.h"
#include "cli/opt/refuse.h"

#include <fnmatch.h>

/* Without groups all tasks have the key "": a rule for other keys would be ignored in silence. */
static int check_rules(const struct rules *rules, weir_message *message)
{
    for (size_t i = 0; i < rules->count; i++)
        if (fnmatch(rules->rule[i].pattern, "", 0) != 0)
            return refuse(message, "a rule for \"%.80s\" needs groups: set them with --group-by",
                          rules->rule[i].pattern);
    return 0;
}

static int check_pairs(const struct map_options *p, weir_message *message)
{
    const struct engine_options *opt = &p->engine;
    const bool *given = p->given;
    bool columns = p->syntax.form == FORM_CSV || p->syntax.form == FORM_TSV;
    const struct {
        bool both;
        const char *sentence;
    } wrong[] = {
        { opt->keep_order && opt->output == OUTPUT_LINES,
          "use only one of --keep-order and --line-buffer" },
        { p->no_header && !columns, "--no-header needs --csv or --tsv" },
        { p->feed.tagged && opt->output == OUTPUT_FILES,
          "use only one of --tag and --files: with --files no line is printed" },
        { p->feed.lists && p->feed.input_count, "use only one of ::: and --input" },
        { p->feed.lists && p->syntax.form != FORM_LINES,
          "use only one of ::: and --csv, --tsv, --jsonl: ::: is followed by plain values" },
        { p->feed.record_end && p->syntax.form != FORM_LINES,
          "use only one of --record-end and --csv, --tsv, --jsonl" },
        { p->syntax.delimiter_text && p->syntax.form != FORM_LINES,
          "with --csv, --tsv and --jsonl, --delimiter is a single byte" },
        { opt->resume && !opt->journal_path,
          "--resume and --retry-failed need a journal: --journal FILE" },
        { p->block && !p->pipe, "--block needs --pipe" },
        { p->pipe && given[MAP_STDIN], "use only one of --stdin and --pipe" },
        { (given[MAP_BACKOFF] || given[MAP_BACKOFF_MAX]) && !given[MAP_RETRIES],
          "--backoff and --backoff-max need --retries" },
        { given[MAP_COOL_DOWN] && !given[MAP_COOL_CODE], "--cool-down needs --cool-code" },
        { given[MAP_SHOW_RETRIES] && !given[MAP_RETRIES] && !given[MAP_COOL_CODE],
          "--show-retries needs --retries or --cool-code" },
        { p->pipe && p->feed.batch_fit, "use only one of --pipe and -X" },
        { feed_batches(&p->feed) && p->feed.shell && !p->pipe,
          "-n and -X do not go with --shell: write sh -c 'for x; do ...; done' sh" },
        { opt->tty && p->jobs_given && opt->jobs > 1,
          "--tty runs one command at a time: leave out -j" },
        { opt->tty && (opt->output != OUTPUT_GROUPED || p->feed.to_stdin || p->feed.tagged),
          "--tty gives commands the terminal: leave out --files, --line-buffer, --tag, --stdin, "
          "--pipe" },
        { opt->if_exists != EXISTS_REFUSE && !opt->results_path && !opt->files_directory,
          "--if-exists needs --results or --files" },
        { opt->if_exists == EXISTS_APPEND && opt->files_directory,
          "--if-exists append is for --results; with --files use new" },
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        if (wrong[i].both)
            return refuse(message, "%s", wrong[i].sentence);
    return 0;
}

int map_options_check(const struct map_options *p, weir_message *message)
{
    int rc = 0;

    if (!p->words[0])
        return refuse(message, "map: which command? Write it after the options: "
                               "weir map [OPTION]... -- COMMAND [ARGUMENT]...");
    rc = check_pairs(p, message);
    if (!rc)
        rc = gate_check(&p->engine.gate, message);
    if (!rc && !p->engine.grouped)
        rc = check_rules(&p->engine.rules, message);
    return rc;
}
