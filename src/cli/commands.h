/* The subcommands of weir: their option tables and their functions. One file each, cmd_*.c; the table of all is in
 * commands.c.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_COMMANDS_H
#define WR_CLI_COMMANDS_H

#include "cli/opt/opt.h"

/* argv: after the subcommand's name. Answers the exit status. */
struct command {
    const struct opt_command *options;
    int (*run)(char **argv);
};

/* weir itself, with the tables of all its commands. */
extern const struct opt_command command_weir;

extern const struct opt_command command_map, command_log, command_help, command_man,
    command_completion;
int cmd_map(char **argv);
int cmd_log(char **argv);
int cmd_help(char **argv);
int cmd_man(char **argv);
int cmd_completion(char **argv);

/* Whether standard input was closed when weir was started; main sets it. */
extern bool standard_input_is_closed;

/* The command of that name; NULL: there is none. */
const struct command *command_find(const char *name);

/* Says that there is no such command, and which may be meant; answers 255. */
int command_unknown(const char *name);

/* Prints help for a terminal as wide as ours. */
void command_print_help(const struct opt_command *command);

/* "weir: <message>", and where to find help; answers 255. */
int command_wrong(const struct opt_command *command, const weir_message *message);

#endif
