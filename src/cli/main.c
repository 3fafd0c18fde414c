/* The weir command: picks the subcommand.
 * SPDX-License-Identifier: MIT */
#include "cli/commands.h"

#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <unistd.h>

/* Writes what standard output still holds; a failure means that not all of it went out. */
static int finish(int status)
{
    if (fflush(stdout) || ferror(stdout)) {
        perror("weir: standard output");
        return 255;
    }
    return status;
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
    standard_input_is_closed = fcntl(0, F_GETFD) < 0;
    reserve_descriptors();
    opt_start(&reader, &command_weir, argv + 1);
    while ((id = opt_next(&reader, &message)) != OPT_END) {
        if (id == OPT_WRONG)
            return command_wrong(&command_weir, &message);
        if (id == 'V')
            printf("weir %s\n", weir_version());
        else
            command_print_help(&command_weir);
        return finish(0);
    }
    if (!reader.argv[0]) {
        command_print_help(&command_weir);
        return finish(255);
    }
    if (!command_find(reader.argv[0]))
        return command_unknown(reader.argv[0]);
    return finish(command_find(reader.argv[0])->run(reader.argv + 1));
}
