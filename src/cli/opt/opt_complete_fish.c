/* Prints the completion script for fish.
 * SPDX-License-Identifier: MIT */
#include "cli/opt/opt_complete.h"

#include <string.h>

static const char fish_place[] =
    "    set -l command weir\n"
    "    set -l words (commandline -opc)\n"
    "    set -l ended no\n"
    "    set -e words[1]\n"
    "    while set -q words[1]\n"
    "        set -l word $words[1]\n"
    "        switch $word\n"
    "            case --\n"
    "                set -e words[1]\n"
    "                set ended yes\n"
    "                break\n"
    "            case '--*=*'\n"
    "            case '--*'\n"
    "                contains -- \"$command $word\" $takes; and set -e words[1]\n"
    "            case '-?*'\n"
    "                # In a cluster, the first letter that takes a value takes the rest, or the "
    "next word.\n"
    "                for i in (seq 2 (string length -- $word))\n"
    "                    if contains -- \"$command -\"(string sub -s $i -l 1 -- $word) $takes\n"
    "                        test $i = (string length -- $word); and set -e words[1]\n"
    "                        break\n"
    "                    end\n"
    "                end\n"
    "            case '*'\n"
    "                if test $command != weir\n"
    "                    set ended yes\n"
    "                    break\n"
    "                end\n"
    "                set command $word\n"
    "        end\n"
    "        set -q words[1]; and set -e words[1]\n"
    "    end\n"
    "    printf '%s\\n' $command $ended $words\n"
    "end\n"
    "\n"
    "# Whether the cursor is where options of this command may stand.\n"
    "function __weir_options_of\n"
    "    set -l place (__weir_place)\n"
    "    test $place[1] = $argv[1] -a $place[2] = no\n"
    "end\n"
    "\n"
    "# Whether the cursor is at the words of this command.\n"
    "function __weir_words_of\n"
    "    set -l place (__weir_place)\n"
    "    test $place[1] = $argv[1]\n"
    "end\n"
    "\n"
    "# Completes the command line after the options.\n"
    "function __weir_command_line\n"
    "    set -l place (__weir_place)\n"
    "    set -l before\n"
    "    set -q place[3]; and set before (string escape -- $place[3..-1])\n"
    "    set -l current (commandline -ct)\n"
    "    test $place[2] = no; and string match -q -- '-*' $current; and return\n"
    "    set -l line (string join ' ' -- $before \"$current\")\n"
    "    complete \"--do-complete=$line\"\n"
    "end\n"
    "\n"
    "complete -c weir -f\n";

static void fish_text(FILE *out, struct opt_piece text)
{
    fputc('\'', out);
    complete_put_escaped(out, text, "\\", "\\'");
    fputc('\'', out);
}

static void fish_option(FILE *out, const struct opt_command *command, const struct opt *opt)
{
    fprintf(out, "complete -c weir -n '__weir_options_of %s'", complete_name_of(command));
    if (opt->letter)
        fprintf(out, " -s %c", opt->letter);
    fprintf(out, " -l %s", opt->name);
    /* An optional value stays unasked for: fish would take the next word for it. */
    if (opt->argument && !opt_value_is_optional(opt))
        fputs(opt->value == OPT_FILE ? " -r -F" : " -x", out);
    if (opt->argument && opt->value == OPT_DIRECTORY)
        fputs(" -a '(__fish_complete_directories (commandline -ct))'", out);
    else if (opt->argument && opt->value == OPT_CHOICE)
        fprintf(out, " -a '%s'", opt->choices);
    fputs(" -d ", out);
    fish_text(out, opt_text_sentence(opt->help));
    fputc('\n', out);
}

static void fish_words(FILE *out, const struct opt_command *command)
{
    switch (complete_words_of(command)) {
    case WORDS_SUBCOMMAND:
        for (size_t i = 0; command->subcommands[i]; i++) {
            const struct opt_command *sub = command->subcommands[i];
            fprintf(out, "complete -c weir -n '__weir_words_of weir' -a %s -d ", sub->name);
            fish_text(out,
                      (struct opt_piece){ .text = sub->summary, .length = strlen(sub->summary) });
            fputc('\n', out);
        }
        break;
    case WORDS_COMMAND:
        fprintf(out, "complete -c weir -n '__weir_words_of %s' -a '(__weir_command_line)'\n",
                command->name);
        break;
    case WORDS_CHOICE:
        fprintf(out, "complete -c weir -n '__weir_words_of %s' -a '", command->name);
        complete_put_choices(out, command);
        fputs("'\n", out);
        break;
    case WORDS_FILES:
        fprintf(out, "complete -c weir -n '__weir_words_of %s' -F\n", command->name);
        break;
    case WORDS_NONE:
        break;
    }
}

void complete_print_fish(FILE *out, const struct opt_command *weir)
{
    const struct opt_command *command;

    fputs(
        "# Completion of weir for fish: weir completion fish prints this.\n\n"
        "# Where the cursor is: the command, whether its options have ended, and the words since.\n"
        "function __weir_place\n    set -l takes",
        out);
    for (size_t i = 0; (command = complete_command_at(weir, i)); i++)
        for (const struct opt *opt = NULL; (opt = opt_after(command, opt));) {
            if (!opt->argument || opt_value_is_optional(opt))
                continue;
            fprintf(out, " \\\n        '%s --%s'", complete_name_of(command), opt->name);
            if (opt->letter)
                fprintf(out, " '%s -%c'", complete_name_of(command), opt->letter);
        }
    fputc('\n', out);
    fputs(fish_place, out);
    for (size_t i = 0; (command = complete_command_at(weir, i)); i++) {
        fputc('\n', out);
        fish_words(out, command);
        for (const struct opt *opt = NULL; (opt = opt_after(command, opt));)
            fish_option(out, command, opt);
    }
}
