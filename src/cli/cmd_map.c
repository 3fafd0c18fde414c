/* weir map: runs a command per record.
 * SPDX-License-Identifier: MIT */
#include "cli/commands.h"
#include "cli/engine/child.h"
#include "cli/map_options.h"
#include "cli/screen/quote.h"
#include "cli/screen/say.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { STATUS_NOT_FOUND = 127, STATUS_NOT_EXECUTABLE = 126 };
enum { FILES_MAX = 64 }; /* inputs that are compared with the files that are written to */

/* ---- --dry-run ------------------------------------------------------------------------------------ */

static void print_plan(const struct plan *plan)
{
    if (plan->tag)
        printf("%s\t", plan->tag);
    quote_command(stdout, plan->argv);
    putchar('\n');
}

static int dry_run(struct feed *feed)
{
    weir_message message = { "" };
    uint64_t seq = 0, failed = 0;
    struct plan plan = { 0 };
    int rc;

    while ((rc = feed_next(&plan, feed, ++seq, &message)) > 0) {
        if (plan.argv)
            print_plan(&plan);
        else
            say("%s", message.text);
        failed += !plan.argv;
        plan_fini(&plan);
    }
    if (rc < 0)
        say("%s", message.text[0] ? message.text : weir_strerror(rc));
    return rc < 0 ? SAY_WRONG : failed > 100 ? 101 : (int)failed;
}

/* ---- a run ---------------------------------------------------------------------------------------- */

/* A command that is the same for all tasks is looked for once; if it does not exist, nothing is run. */
static int find_command(char **resolved, const struct map_options *opt, const struct feed *feed)
{
    const char *command = opt->words[0];
    bool relative = command[0] != '/' && strchr(command, '/');
    int error;

    *resolved = NULL;
    /* A relative path is looked up from --cwd, as by a shell after `cd`. */
    if (!feed_command_is_fixed(feed) || (opt->feed.directory && relative))
        return 0;
    *resolved = child_find(command);
    if (*resolved)
        return 0;
    error = errno;
    if (error == ENOENT && !strchr(command, '/'))
        say("%s: command not found", command);
    else
        say("%s: %s", command, strerror(error));
    return error == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
}

/* Whether records may be typed in. */
static bool reads_terminal(const struct feed_options *opt)
{
    bool stdin_is_read = !opt->lists && !opt->input_count;

    for (size_t i = 0; i < opt->input_count; i++)
        stdin_is_read |= !strcmp(opt->inputs[i], "-");
    return stdin_is_read && isatty(0);
}

static int run(struct map_options *opt, struct feed *feed, int stop_fd)
{
    const struct source source = { .next = feed_next,
                                   .position = feed_position,
                                   .size = feed_size(feed),
                                   .is_used_up = feed_is_used_up,
                                   .arg = feed };
    struct file_id input[FILES_MAX];
    size_t inputs = 0;
    char *resolved;
    int status = find_command(&resolved, opt, feed);

    opt->engine.resolved = resolved;
    while (inputs < FILES_MAX &&
           feed_input(feed, inputs, &input[inputs].device, &input[inputs].inode) == 0)
        inputs++;
    opt->engine.inputs = input;
    opt->engine.input_count = inputs;
    opt->engine.typed_input = reads_terminal(&opt->feed);
    if (!status)
        status = engine_run(&opt->engine, &source, stop_fd);
    free(resolved);
    return status;
}

static int run_or_print(struct map_options *opt)
{
    int stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), status;
    struct feed *feed = NULL;

    if (stop_fd < 0)
        return say_wrong("cannot start", errno);
    status = feed_open(&feed, &opt->feed, &opt->syntax, opt->words, stop_fd);
    if (!status)
        status = opt->dry_run ? dry_run(feed) : run(opt, feed, stop_fd);
    feed_free(feed);
    close(stop_fd);
    return status;
}

int cmd_map(char **argv)
{
    weir_message message = { "" };
    struct map_options opt;
    int rc = map_options_read(&opt, argv, &message), status = 0;

    if (rc)
        status = command_wrong(&command_map, &message);
    else if (opt.help)
        command_print_help(&command_map);
    else
        status = run_or_print(&opt);
    map_options_fini(&opt);
    return status;
}
