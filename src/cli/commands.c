/* The table of commands, and weir's own options.
 * SPDX-License-Identifier: MIT */
#include "cli/commands.h"

#include "cli/screen/say.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

bool standard_input_is_closed;

static const struct command commands[] = {
    { &command_map, cmd_map },
    { &command_log, cmd_log },
    { &command_help, cmd_help },
    { &command_man, cmd_man },
    { &command_completion, cmd_completion },
};
enum { COMMANDS = sizeof(commands) / sizeof(*commands) };

static const struct opt_command *const subcommands[] = {
    &command_map, &command_log, &command_help, &command_man, &command_completion, NULL,
};

static const struct opt options[] = {
    { 'h', 'h', "help", NULL, "Print this help.", OPT_TEXT, NULL },
    { 'V', 'V', "version", NULL, "Print the version.", OPT_TEXT, NULL },
    { 0 },
};

static const struct opt_section sections[] = {
    { "Exit status",
      "0: success. 255: bad arguments, or an error that is not the failure of a task. Each "
      "command's page lists the others." },
    { 0 },
};

const struct opt_command command_weir = {
    .name = "",
    .synopsis = "COMMAND [OPTION]...",
    .summary = "runs work by group, each group under its own limits",
    .intro = "Work comes in kinds: hosts, tenants, endpoints. weir runs kinds side by side, each "
             "with a limit "
             "of its own, so that none starves or sinks the others, and can always say what waits "
             "and why.",
    .options = options,
    .sections = sections,
    .subcommands = subcommands,
};

const struct command *command_find(const char *name)
{
    for (int i = 0; i < COMMANDS; i++)
        if (!strcmp(commands[i].options->name, name))
            return &commands[i];
    return NULL;
}

int command_unknown(const char *name)
{
    weir_message message = { "" };

    opt_subcommand(&command_weir, name, &message); /* says which there are, or which may be meant */
    return command_wrong(&command_weir, &message);
}

static int terminal_width(void)
{
    struct winsize size;

    if (ioctl(1, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col > 100 ? 100 : size.ws_col;
    return 80;
}

void command_print_help(const struct opt_command *command)
{
    opt_print_help(stdout, command, terminal_width());
}

int command_wrong(const struct opt_command *command, const weir_message *message)
{
    say("%s", message->text);
    fprintf(stderr, "Try 'weir %s%s--help'.\n", command->name, command->name[0] ? " " : "");
    return 255;
}
