/* The weir command: picks the subcommand.
 * SPDX-License-Identifier: MIT */
#include "cli/commands.h"

#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { OPT_HELP = 1, OPT_VERSION };

static const struct opt options[] = {
    { OPT_HELP, 'h', "help", NULL, "Print this help.", OPT_TEXT, NULL },
    { OPT_VERSION, 'V', "version", NULL, "Print the version.", OPT_TEXT, NULL },
    { 0 },
};

static const struct opt_command *const subcommands[] = { &command_map, NULL };

static const struct opt_section sections[] = {
    { "Completion",
      "weir completion bash, zsh or fish prints a completion script for that shell:\n\n"
      "    weir completion bash > ~/.local/share/bash-completion/completions/weir" },
    { "Exit status",
      "0: success. 255: bad arguments, or an error that is not the failure of a task. Each "
      "command's page lists the others." },
    { 0 },
};

static const struct opt_command weir = {
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

static const struct command commands[] = { { &command_map, cmd_map } };
enum { COMMANDS = sizeof(commands) / sizeof(*commands) };

static int terminal_width(void)
{
    struct winsize size;

    if (ioctl(1, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col > 100 ? 100 : size.ws_col;
    return 80;
}

void command_help(const struct opt_command *command)
{
    opt_print_help(stdout, command, terminal_width());
}

int command_wrong(const struct opt_command *command, const weir_message *message)
{
    fprintf(stderr, "weir: %s\nTry 'weir %s%s--help'.\n", message->text, command->name,
            command->name[0] ? " " : "");
    return 255;
}

static const struct command *find(const char *name)
{
    for (int i = 0; name && i < COMMANDS; i++) {
        if (!strcmp(commands[i].options->name, name))
            return &commands[i];
    }
    return NULL;
}

/* What is written last tells whether all of it went out. */
static int finish(int status)
{
    if (fflush(stdout) || ferror(stdout)) {
        perror("weir: standard output");
        return 255;
    }
    return status;
}

static int unknown(const char *name)
{
    weir_message message = { "" };

    opt_subcommand(&weir, name, &message); /* says which there are, or what may be meant */
    return command_wrong(&weir, &message);
}

/* weir help [COMMAND], weir completion SHELL, and, for the build, weir man [COMMAND]. */
static int words(char **argv)
{
    const struct command *command = find(argv[1]);

    if (argv[1] && strcmp(argv[0], "completion") != 0 && !command)
        return unknown(argv[1]);
    if (!strcmp(argv[0], "help")) {
        command_help(command ? command->options : &weir);
    } else if (!strcmp(argv[0], "man")) {
        opt_print_man(stdout, command ? command->options : &weir, weir_version(), "");
    } else if (!argv[1] || !opt_print_completion(stdout, &weir, argv[1])) {
        return command_wrong(&weir,
                             &(weir_message){ "completion: for which shell? bash, zsh or fish" });
    }
    return finish(0);
}

/* Descriptors 0 to 3 are handed to commands: whatever we open must come after them. */
static void reserve_descriptors(void)
{
    int fd;

    do {
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    } while (fd >= 0 && fd <= 3);
    if (fd > 3)
        close(fd);
}

int main(int argc, char **argv)
{
    struct opt_reader reader;
    weir_message message;
    int id;

    (void)argc;
    setlocale(LC_ALL, "");
    setlocale(LC_NUMERIC, "C"); /* 1.5s has a point everywhere */
    reserve_descriptors();
    opt_start(&reader, &weir, argv + 1);
    while ((id = opt_next(&reader, &message)) != OPT_END) {
        if (id == OPT_WRONG)
            return command_wrong(&weir, &message);
        if (id == OPT_VERSION)
            printf("weir %s\n", weir_version());
        else
            command_help(&weir);
        return finish(0);
    }
    if (!reader.argv[0]) {
        command_help(&weir);
        return finish(255);
    }
    if (!strcmp(reader.argv[0], "help") || !strcmp(reader.argv[0], "man") ||
        !strcmp(reader.argv[0], "completion"))
        return words(reader.argv);
    if (!find(reader.argv[0]))
        return unknown(reader.argv[0]);
    return finish(find(reader.argv[0])->run(reader.argv + 1));
}
