/* weir help, weir man, weir completion: what the option tables print.
 * SPDX-License-Identifier: MIT */
#include "cli/commands.h"

#include <string.h>

static const struct opt options[] = {
    { 'h', 'h', "help", NULL, "Print this help.", OPT_TEXT, NULL },
    { 0 },
};

const struct opt_command command_help = {
    .name = "help",
    .synopsis = "[OPTION]",
    .summary = "prints the help of weir, or of a command",
    .intro = "weir help prints what there is; weir help map prints the help of weir map.",
    .options = options,
};

const struct opt_command command_man = {
    .name = "man",
    .synopsis = "[OPTION]",
    .summary = "prints the manual page of weir, or of a command, for man(1)",
    .intro = "weir man map prints weir-map(1); the build installs these pages.",
    .options = options,
};

const struct opt_command command_completion = {
    .name = "completion",
    .synopsis = "bash|zsh|fish",
    .summary = "prints a completion script for a shell",
    .intro = "Prints a script by which the shell completes weir's commands and options:\n\n"
             "    weir completion bash > ~/.local/share/bash-completion/completions/weir",
    .options = options,
};

/* Reads the word, if any, that follows one of these commands. False: there is nothing more to do, and *status is set. */
static bool read_word(const char **word, const struct opt_command *command, char **argv,
                      int *status)
{
    weir_message message = { "" };
    struct opt_reader reader;
    int id;

    opt_start(&reader, command, argv);
    id = opt_next(&reader, &message);
    *word = reader.argv[0];
    *status = 0;
    if (id == OPT_WRONG)
        *status = command_wrong(command, &message);
    else if (id != OPT_END)
        command_print_help(command);
    return id == OPT_END;
}

/* The table of the command that the word names; NULL, with *status set: there is no such command. */
static const struct opt_command *named(const char *word, int *status)
{
    const struct command *command = word ? command_find(word) : NULL;

    if (!word)
        return &command_weir;
    if (!command)
        *status = command_unknown(word);
    return command ? command->options : NULL;
}

int cmd_help(char **argv)
{
    const struct opt_command *about;
    const char *word;
    int status;

    if (read_word(&word, &command_help, argv, &status) && (about = named(word, &status)))
        command_print_help(about);
    return status;
}

int cmd_man(char **argv)
{
    const struct opt_command *about;
    const char *word;
    int status;

    if (read_word(&word, &command_man, argv, &status) && (about = named(word, &status)))
        opt_print_man(stdout, about, weir_version(), "");
    return status;
}

int cmd_completion(char **argv)
{
    const char *word;
    int status;

    if (!read_word(&word, &command_completion, argv, &status))
        return status;
    if (word && opt_print_completion(stdout, &command_weir, word))
        return 0;
    return command_wrong(&command_completion,
                         &(weir_message){ "completion: for which shell? bash, zsh or fish" });
}
