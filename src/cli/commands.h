/* The subcommands of weir: their option tables and what runs them. One file each, cmd_*.c.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_COMMANDS_H
#define WR_CLI_COMMANDS_H

#include "cli/opt.h"

/* argv: after the subcommand's name. Answers the exit status. */
struct command {
    const struct opt_command *options;
    int (*run)(char **argv);
};

extern const struct opt_command command_map;
int cmd_map(char **argv);

/* Prints help for a terminal as wide as ours. */
void command_help(const struct opt_command *command);

/* "weir: <message>", and where to find help; answers 255. */
int command_wrong(const struct opt_command *command, const weir_message *message);

#endif
